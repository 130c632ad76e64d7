package model

// load estimates the bytes that each port has recently sent, as HULA and DHLB do: U = size + U(1
// - dt/delta) with delta = 2^Window µs. DHLB's Eq. 1 multiplies this by delta, which diverges and
// is negative for dt > delta. Here, an estimate older than delta is 0.
type load struct {
	*Switch
	reporter
	nothing
	egressSide  [512]estimate
	ingressSide [512]estimate
	commonDecay
	filters [512]filter // replace the estimates on hardware
}

type estimate struct {
	bytes uint32
	at    Time
}

// Variant.Steps and Variant.HeardNews make CONGA behave as in conweave-ns3, with
// the estimator of CONGA's paper. There, all loads of a switch decay together, by a
// fifth every 50 µs. A busy link then holds the bytes of 250 µs.
//
// In the programs each load decays separately, as in HULA. The load of a link that
// was idle for 2^Window µs is then 0, while the paper's estimator still has a third
// of it.
const (
	stepEvery = 50  // µs
	stepWhole = 250 // µs
	newsLife  = 500 // µs: information expires at this age, and is checked at this interval
)

// A fades records how far the loads of a switch have decayed in common. The decay
// starts with the switch's first packet.
type commonDecay struct {
	on    bool // whether the loads decay together; otherwise each decays separately
	begun bool
	began Time
	taken int
}

// begin records the time of the first packet.
func (s *commonDecay) begin(now Time) {
	if !s.begun {
		s.begun, s.began = true, now
	}
}

// step applies the decay of all loads up to now.
func (l *load) step(now Time) {
	l.begin(now)
	due := int(now.Since(l.began) / stepEvery)
	if due == l.taken {
		return
	}
	for range min(due-l.taken, 128) { // after this many steps, every load is 0
		for port := range l.egressSide {
			for _, e := range []*estimate{&l.egressSide[port], &l.ingressSide[port]} {
				e.bytes = uint32(uint64(e.bytes) * 4 / 5)
			}
		}
	}
	l.taken = due
}

// stale reports whether information has expired. Switches check for expired information every
// newsLife.
func (s *commonDecay) stale(news, now Time) bool {
	looked := now.Since(s.began) / newsLife * newsLife
	return looked > news.Since(s.began)+newsLife
}

// faded returns the estimate at a later time.
func (e estimate) faded(now Time, window uint) uint32 {
	dt := now.Since(e.at)
	if dt>>window != 0 {
		return 0
	}
	return e.bytes - uint32(uint64(e.bytes)*uint64(dt)>>window)
}

func (l *load) egress(d Departure, now Time) (Report, bool) {
	if l.tofino() {
		sent := l.filters[d.Port].add(&l.cfg.Params, d.Len, l.elapsed(now))
		l.egressSide[d.Port] = estimate{sent, now}
		// Hardware limits how often a port reports. For RLB's departures the period
		// is T_b. Hermes needs only one report per window.
		period := l.cfg.Tb
		if l.cfg.Choice == "cautious" && l.guard != nil {
			period = l.cfg.Hardware.Interval(1000 << l.cfg.Window)
		}
		return Report{Port: d.Port, Sent: sent}, l.due(d.Port, period, now)
	}
	if l.cfg.LoadNow {
		return Report{}, false
	}
	l.count(d.Port, d.Len, now)
	if l.cfg.Direct {
		l.ingressSide[d.Port] = l.egressSide[d.Port]
		return Report{}, false
	}
	return Report{Port: d.Port, Sent: l.egressSide[d.Port].bytes}, l.due(d.Port, l.cfg.Tb, now)
}

// count adds bytes sent by a port.
func (l *load) count(port, bytes int, now Time) {
	e := &l.egressSide[port]
	if l.on {
		l.step(now)
		*e = estimate{uint32(bytes) + e.bytes, now}
	} else {
		*e = estimate{uint32(bytes) + e.faded(now, l.cfg.Window), now}
	}
	if l.cfg.LoadNow {
		l.ingressSide[port] = *e
	}
}

func (l *load) learn(r Report, now Time) { l.ingressSide[r.Port] = estimate{r.Sent, now} }

// sent returns the load of a port as ingress knows it. A reported load is valid
// until the next report is overdue, at twice T_b. On hardware it does not expire.
func (l *load) sent(port int, now Time) uint32 {
	if l.tofino() {
		return l.ingressSide[port].bytes
	}
	if l.on {
		l.step(now)
		return l.ingressSide[port].bytes
	}
	e := l.ingressSide[port]
	if !l.cfg.Direct && !l.cfg.LoadNow {
		e.at = e.at.After(min(now.Since(e.at), 2*l.cfg.Tb))
	}
	return e.faded(now, l.cfg.Window)
}

// eighths quantises a load to three bits.
func (l *load) eighths(sent uint32) uint8 {
	if l.tofino() {
		return uint8(min(7, sent*8/full))
	}
	reciprocal, most := 8<<32/l.capacity(), uint64(7)
	if l.cfg.LoadNow {
		most = 255
	}
	if l.on {
		return uint8(min(most, uint64(sent)*8/(l.cfg.Link*stepWhole/8_000_000)))
	}
	return uint8(min(most, uint64(sent)*reciprocal>>32))
}

// A Probe describes the paths to its origin.
type Probe struct {
	Origin int    // group of paths that lead to the origin
	Util   uint32 // HULA: bytes on the busiest link of the path; on hardware, the link's utilisation
	Degree uint8  // DHLB: smallest load degree of the path's links
	Seq    uint16 // DHLB: sequence number of the origin's probes
	Hop    uint8  // DHLB: number of switches passed
}

// A prober is a signal that uses probes.
type prober interface {
	probe(p Probe, slot, port int, now Time) Probe
}

// Probe processes a probe that arrives at a port and returns the probe to forward. It
// returns false if no path to the probe's origin starts at the port. The load of the
// reverse direction counts, because packets to the origin use it.
func (s *Switch) Probe(p Probe, port int, now Time) (Probe, bool) {
	k, ok := s.signal.(prober)
	if !ok || p.Origin >= len(s.groups) {
		return p, false
	}
	for slot, out := range s.groups[p.Origin].Ports {
		if out == port {
			return k.probe(p, slot, port, now), true
		}
	}
	return p, false
}

// utilisation implements HULA's signal. It remembers the best path to each
// destination, judged by the utilisation of the path's busiest link.
type utilisation struct {
	load
	best byGroup[bestHop]
}

type bestHop struct {
	hop  path
	util uint32
	at   Time
}

// probe updates the best path. The probe's path becomes the best path if it is
// better, if it already is the best path, or if the best path had no probe for too
// long. Hardware cannot also read the time. It therefore accepts an equally good
// path as well, and discards an expired best path when a packet asks for it.
func (u *utilisation) probe(p Probe, slot, port int, now Time) Probe {
	util := max(p.Util, u.sent(port, now))
	b := u.best.of(p.Origin)
	instead := now.Since(b.at) > u.cfg.TFail
	if u.tofino() {
		instead = util == b.util
	}
	if b.hop == 0 || b.hop == remember(slot) || util < b.util || instead {
		*b = bestHop{remember(slot), util, now}
	}
	p.Util = b.util
	return p
}

// bestOf chooses the best path, or any path before the first probe.
type bestOf struct{ *Switch }

func (c bestOf) choose(p *pass) int {
	best := c.signal.(*utilisation).best.of(p.Group)
	if c.tofino() {
		drawn := c.random(p.n) // Hardware draws a random number for every packet, even if it does not use it.
		if best.hop == 0 || p.now.Since(best.at) > c.cfg.TFail {
			return drawn
		}
		return best.hop.there()
	}
	if slot := best.hop.in(p.n); slot >= 0 {
		return slot
	}
	return c.random(p.n)
}

// degree implements DHLB's signal, a load degree for each path. (Degree 4 in the
// paper's Table 2 is a misprint, because Table 1 has none.) Of the paths with the
// same next hop, the best one with a recent probe counts. A path is silent, with
// degree 0, if probes arrive only on other paths.
type degree struct {
	load
	degrees byGroup[[MaxPaths]pathDegree]
	newest  byGroup[uint16] // sequence number of the newest probe on any path
}

// missed is the number of consecutive probes that a path may miss before it counts as silent.
const missed = 3

// late is the number of probes by which a probe on a slow path may lag. A sequence
// number that lags further means that the origin has restarted at 0.
const late = 1024

// silent reports whether a path has missed probes that came along other paths.
func (d *degree) silent(group, slot int) bool {
	return *d.newest.of(group)-d.degrees.of(group)[slot].seq > missed
}

// forget replaces the comparison of sequence numbers on hardware. It discards the
// paths of a group if no probe has arrived on any of them for long.
func (d *degree) forget(p *pass) {
	for slot := range p.n {
		k := &d.degrees.of(p.Group)[slot]
		if k.known && p.now.signed(k.at) > int64(3*d.cfg.TMax) {
			k.known, k.degree = false, 0
		}
	}
}

type pathDegree struct {
	degree uint8
	seq    uint16 // the newest sequence number of the origin when the last probe arrived on the path
	at     Time
	known  bool // on hardware: the path has had a probe, and exists
}

// loadDegree implements Table 1, whose ranges include their lower limit. percent is the
// utilisation of the link.
func loadDegree(percent uint64) uint8 {
	switch {
	case percent < 25:
		return 5
	case percent < 50:
		return 3
	case percent < 70:
		return 2
	case percent < 90:
		return 1
	}
	return 0
}

func (d *degree) probe(p Probe, slot, port int, now Time) Probe {
	sent, whole := uint64(d.sent(port, now)), d.capacity()
	if d.tofino() {
		sent, whole = sent+1, full // end of a step
		p.Degree = min(p.Degree, loadDegree((100*sent-1)/whole))
	} else {
		p.Degree = min(p.Degree, loadDegree(100*sent/whole))
	}
	p.Hop++
	k := &d.degrees.of(p.Origin)[slot]
	newest := d.newest.of(p.Origin)
	if *newest-p.Seq > late {
		*newest = p.Seq
	}
	k.seq = *newest
	old := now.Since(k.at) > 2*d.cfg.TProbe
	if d.tofino() { // hardware takes information older than half the clock's range as new
		old = now.signed(k.at) > int64(2*d.cfg.TProbe)
	}
	if p.Degree >= k.degree || old {
		k.degree, k.at, k.known = p.Degree, now, true
	}
	return p
}

// cost returns the level that hardware stores.
func (d *degree) cost(p *pass, slot int) uint32 {
	h := d.cfg.Hardware
	switch {
	case h == nil:
		return 0
	case !d.degrees.of(p.Group)[slot].known:
		return uint32(len(h.Weights) - 1)
	}
	return uint32(d.degrees.of(p.Group)[slot].degree)
}

// weight returns the degree of a path, or 0 if the path is silent.
func (d *degree) weight(p *pass, slot int) uint32 {
	if d.silent(p.Group, slot) {
		return 0
	}
	return uint32(d.degrees.of(p.Group)[slot].degree)
}
