package model

// A PathNews is what a probe along a path has brought back.
type PathNews struct {
	Group, Slot int
	RTT         uint32 // µs, on hardware 1024 ns
	Marked      bool   // it met a long queue
}

// pathState is what probes have said about a path.
type pathState struct {
	rtt   uint32
	at    Time
	marks uint8 // the share of marked probes, of 255
	share filter
}

// LearnPath takes in the news of a probe.
func (s *Switch) LearnPath(n PathNews, now Time) {
	k := &s.paths.of(n.Group)[n.Slot]
	k.rtt, k.at = n.RTT, now
	if s.tofino() {
		k.marks = k.share.average(n.Marked, 7.5*float64(s.cfg.TPath), s.elapsed(now))
		return
	}
	// An average over some eight probes, rounded so that it gets back to 0.
	k.marks -= uint8((int(k.marks) + 7) / 8)
	if n.Marked {
		k.marks += 31
	}
}

// marks is Clove's signal: the share of a path's probes that met a long queue.
type marks struct {
	*Switch
	nothing
}

func (m marks) cost(p *pass, slot int) uint32 { return uint32(m.paths.of(p.Group)[slot].marks) }

func (m marks) weight(p *pass, slot int) uint32 { return 256 - m.cost(p, slot) }
