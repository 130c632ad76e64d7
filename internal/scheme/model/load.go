package model

// load is the bytes that each port has sent lately, as HULA and DHLB estimate
// it: U = size + U(1 - dt/delta) with delta = 2^Window µs. DHLB prints delta
// times that (Eq. 1), which diverges, and turns negative for dt > delta; an
// estimate older than delta is 0.
type load struct {
	*Switch
	reporter
	nothing
	egressSide  [512]estimate
	ingressSide [512]estimate
	fades
	filters [512]filter // on hardware, instead of the estimates
}

type estimate struct {
	bytes uint32
	at    Time
}

// Differences of conweave-ns3's CONGA, selected by Variant.Steps and
// Variant.HeardNews. It uses the estimator of CONGA's paper: all loads of a switch
// decay together, by a fifth each 50 µs, so that a busy link holds the bytes of 250
// µs. In the programs each load decays on its own, as in HULA: a link that was idle
// for 2^Window µs is forgotten, while the paper's estimator still has a third of it.
const (
	stepEvery = 50  // µs
	stepWhole = 250 // µs
	newsLife  = 500 // µs: older news is forgotten, as often as that
)

// A fades is how far the loads of a switch have faded: from its first packet on.
type fades struct {
	on    bool // else each load fades by itself
	begun bool
	began Time
	taken int
}

// begin notes when the first packet came.
func (s *fades) begin(now Time) {
	if !s.begun {
		s.begun, s.began = true, now
	}
}

// step lets all loads fade up to now.
func (l *load) step(now Time) {
	l.begin(now)
	due := int(now.Since(l.began) / stepEvery)
	if due == l.taken {
		return
	}
	for range min(due-l.taken, 128) { // after which nothing of any load is left
		for port := range l.egressSide {
			for _, e := range []*estimate{&l.egressSide[port], &l.ingressSide[port]} {
				e.bytes = uint32(uint64(e.bytes) * 4 / 5)
			}
		}
	}
	l.taken = due
}

// stale reports whether information has expired: switches check every newsLife for
// older information.
func (s *fades) stale(news, now Time) bool {
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
		// Hardware reports a port's load at most so often: where T_b is for RLB's
		// departures, Hermes needs a report each window only.
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

// sent returns the load of a port as far as ingress knows. A reported load holds
// until the next report is overdue, at twice T_b; on hardware it never fades.
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

// A Probe describes the paths to its sender.
type Probe struct {
	Origin int    // the group that leads there
	Util   uint32 // HULA: bytes on the busiest link of the path, on hardware its utilisation
	Degree uint8  // DHLB: the least load degree of a link of the path
	Seq    uint16 // DHLB: counts the probes of the origin
	Hop    uint8  // DHLB: switches passed
}

// prober is a signal that lives on probes.
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

// utilisation is HULA's signal: for each destination the best path, by the
// utilisation of its busiest link.
type utilisation struct {
	load
	best byGroup[bestHop]
}

type bestHop struct {
	hop  path
	util uint32
	at   Time
}

// probe changes the best path for a better one, with any news of itself, and
// if there has been none for too long. Hardware cannot look at the time as well:
// it takes one that is as good too, and gives the best path up when asked for it.
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

// bestOf takes the best path, any if no probe has come yet.
type bestOf struct{ *Switch }

func (c bestOf) choose(p *pass) int {
	best := c.signal.(*utilisation).best.of(p.Group)
	if c.tofino() {
		drawn := c.random(p.n) // hardware draws for every packet
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

// degree is DHLB's signal: a load degree for each path (Table 2; its degree of 4 is a
// misprint, Table 1 has none). Of the paths with the same next hop, the best one with
// a recent probe counts. A path without probes, while probes of other paths arrive, is
// silent and has degree 0.
type degree struct {
	load
	degrees byGroup[[MaxPaths]pathDegree]
	newest  byGroup[uint16] // sequence number of the last probe, along any path
}

// missed is how many probes in a row a path may miss before it counts as silent.
const missed = 3

// silent reports whether a path has missed probes that came along other paths.
func (d *degree) silent(group, slot int) bool {
	return *d.newest.of(group)-d.degrees.of(group)[slot].seq > missed
}

// forget is what hardware does instead, which compares no sequence numbers: it
// gives up the paths of a group that no probe came along for long.
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
	seq    uint16 // of the last probe along the path
	at     Time
	known  bool // on hardware, where a path without news is none
}

// loadDegree is Table 1, its ranges closed below: percent of the link is used.
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
		sent, whole = sent+1, full // the end of a step
		p.Degree = min(p.Degree, loadDegree((100*sent-1)/whole))
	} else {
		p.Degree = min(p.Degree, loadDegree(100*sent/whole))
	}
	p.Hop++
	k := &d.degrees.of(p.Origin)[slot]
	k.seq, *d.newest.of(p.Origin) = p.Seq, p.Seq
	old := now.Since(k.at) > 2*d.cfg.TProbe
	if d.tofino() { // which takes news of more than half a clock ago for fresh
		old = now.signed(k.at) > int64(2*d.cfg.TProbe)
	}
	if p.Degree >= k.degree || old {
		k.degree, k.at, k.known = p.Degree, now, true
	}
	return p
}

// cost is the level that hardware keeps.
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

// weight returns the degree of a path, 0 if it is silent.
func (d *degree) weight(p *pass, slot int) uint32 {
	if d.silent(p.Group, slot) {
		return 0
	}
	return uint32(d.degrees.of(p.Group)[slot].degree)
}
