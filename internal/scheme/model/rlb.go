package model

import (
	"cmp"
	"math"
)

// rlb implements RLB in combination with any scheme. It includes RLB*, with its
// limits to recirculation and the failed ports that the controller detects.
type rlb struct {
	*Switch
	star  bool
	in    [512]ingressQueue
	until [512]Time // time until which the port is expected to be paused; 0: it is not
	loop  Time      // t_rc: duration of the last recirculation, or estimated from the waiting bytes
	waits uint32    // bytes that wait for recirculation

	rounds  [512]uint32 // recirculations because of this port
	packets [512]uint32 // number of packets that recirculated
	sum     uint32      // sum over all ports

	feeder [512]uint16 // by egress port: ingress port of the last packet; only with relays

	reports reporter    // limits reports, on hardware
	left    [512]uint32 // The bytes that arrived at a port, and the bytes that have left the switch since.
}

// An ingressQueue counts the bytes in the switch that came from an ingress port. RLB predicts PFC
// with it.
type ingressQueue struct {
	bytes  uint32
	before uint32 // bytes at the start of the current interval
	began  Time
	warned Time // time of the warning to the upstream switch; 0: none is in effect

	// Hardware counts arrivals and departures separately, and learns departures from reports.
	arrived, left uint32
}

// occupy computes the bytes of an ingress port that are in the switch, on hardware.
// More bytes may seem to have left than arrived, after the controller has reset the
// counters or one of them has wrapped.
func (q *ingressQueue) occupy() { q.bytes = q.arrived - min(q.arrived, q.left) }

// A Suboptimal determines the order in which RLB considers other paths if a path
// may be paused.
type Suboptimal uint8

// The orders of paths, by the values of the parameter.
const (
	byRTT Suboptimal = iota
	AtRandom
	InTurn
)

// A Notice is a congestion notification to the upstream switch.
type Notice uint8

// The notices.
const (
	None Notice = iota
	Warn
	Clear
)

// A Round is the state of a recirculated packet.
type Round struct {
	Count  int
	base   int    // path chosen first
	to     int    // path that the flow gets
	first  Time   // arrival time of the packet
	queued uint32 // when it was queued for recirculation; 0: it was not
	sent   Time   // queueing time on hardware
}

// Heed processes a notice from the switch at a port.
func (s *Switch) Heed(port int, n Notice, hold, now Time) {
	if s.guard == nil {
		return
	}
	if s.tofino() { // on hardware, the notice carries no further information
		n, hold = Warn, s.cfg.Hold
	}
	s.guard.until[port] = 0
	if n == Warn {
		s.guard.until[port] = now.After(hold)
	}
}

// Relay returns the port on which to forward a warning from the switch at a port, after Heed.
// hops is the number of further switches. A relayed warning is not cancelled.
func (s *Switch) Relay(port int, n Notice, hops int) (to int, ok bool) {
	if s.guard == nil || n != Warn || hops == 0 {
		return 0, false
	}
	return int(s.guard.feeder[port]), true
}

// predict counts an arriving packet and returns the notice for the upstream switch (Section
// III-B.1). Every DT it checks whether the queue, at its current growth, would reach QPFC within
// TWarn.
func (g *rlb) predict(p *Packet, now Time) Notice {
	in := &g.in[p.In]
	if g.tofino() {
		if p.Round.Count == 0 {
			in.arrived += p.ipLen()
		}
		return g.predictHardware(in, now)
	}
	in.bytes += uint32(p.Len)
	near, due := in.bytes > g.cfg.QTh, now.Since(in.began) >= g.cfg.DT
	if g.cfg.Derivative {
		growth, room := int64(in.bytes)-int64(in.before), max(0, int64(g.cfg.QPFC)-int64(in.bytes))
		near = near && due && growth > 0 && room*int64(g.cfg.DT) < growth*int64(g.cfg.TWarn)
	}
	if due {
		in.before, in.began = in.bytes, now
	}
	switch {
	case near && (in.warned == 0 || now.Since(in.warned) > g.cfg.Hold):
		in.warned = now
		return Warn
	case in.warned != 0 && in.bytes <= g.cfg.QTh:
		in.warned = 0
		return Clear
	}
	return None
}

// predictHardware is predict as hardware executes it. Every packet compares the
// growth since the start of the interval, multiplied by T_warn/dt as a power of 2.
// It warns once per hold time and cancels no warnings.
func (g *rlb) predictHardware(in *ingressQueue, now Time) Notice {
	in.occupy()
	near := in.bytes > g.cfg.QTh
	if g.cfg.Derivative {
		growth, room := max(0, int64(in.bytes)-int64(in.before)), max(0, int64(g.cfg.QPFC)-int64(in.bytes))
		near = near && growth<<g.warnIntervals() > room
		g.begin(in, now)
	}
	if near && now.Since(in.warned) > g.cfg.Hold {
		in.warned = now
		return Warn
	}
	return None
}

// warnIntervals returns T_warn in intervals, as a power of 2.
func (g *rlb) warnIntervals() uint {
	return uint(max(0, math.Round(math.Log2(float64(g.cfg.TWarn)/float64(max(1, g.cfg.DT))))))
}

// begin begins an interval if the previous one has ended.
func (g *rlb) begin(in *ingressQueue, now Time) {
	if now.Since(in.began) > g.cfg.DT {
		in.before, in.began = in.bytes, now
	}
}

// learn processes reported departures on hardware.
func (g *rlb) learn(r Report, now Time) {
	in := &g.in[r.In]
	in.left = r.Gone
	in.occupy()
	g.begin(in, now)
}

// depart subtracts a departing packet. On hardware it returns whether to report it.
func (g *rlb) depart(d Departure, r *Report, now Time) (due bool) {
	if g.tofino() {
		port := d.Packet.In
		g.left[port] += d.Packet.ipLen()
		r.In, r.Gone = port, g.left[port]
		return g.reports.due(port, g.cfg.Tb, now)
	}
	g.timeRound(d)
	if g.cfg.Relay > 0 && d.Packet.Len > 0 { // not a probe
		g.feeder[d.Port] = uint16(d.Packet.In)
	}
	in := &g.in[d.Packet.In]
	in.bytes -= min(in.bytes, uint32(d.Packet.Len))
	return false
}

// timeRound measures the duration of a recirculation, from one queueing to the
// next.
func (g *rlb) timeRound(d Departure) {
	if r := &d.Packet.Round; r.queued != 0 && !g.cfg.LoopQueue {
		g.loop = Time(uint32(d.Queued) - r.queued)
	}
}

// Recirculated records a packet that leaves the recirculation port to enter ingress again.
func (s *Switch) Recirculated(d Departure) {
	if s.guard == nil || s.tofino() {
		return
	}
	s.guard.timeRound(d)
	d.Packet.Round.queued = uint32(d.Queued)
	s.guard.waits -= min(s.guard.waits, uint32(d.Packet.Len))
}

func (g *rlb) paused(port int, now Time) bool {
	if g.star && g.controlled.faulty[port] {
		return true
	}
	if g.tofino() {
		left := g.until[port].Since(now)
		return left > 0 && left <= g.cfg.Hold
	}
	return g.until[port] != 0 && g.until[port].signed(now) > 0
}

// reroute executes Algorithm 1, limited to one iteration for each other path. It
// returns the path that replaces the chosen one, or reports that the packet should
// recirculate.
func (g *rlb) reroute(p *pass, grain granularity) (slot int, again bool) {
	if g.tofino() {
		return g.rerouteHardware(p, grain)
	}
	r := &p.Round
	if r.Count == 0 {
		r.base, r.first = grain.decide(p), p.now
	}
	if r.base >= p.n {
		return -1, false // the path has disappeared during the recirculation
	}
	slot = r.base
	if g.cfg.LoopQueue && g.paused(g.port(p, slot), p.now) {
		g.loop = Time(uint64(g.waits) * (8_000_000 << 32 / g.cfg.RCRate) >> 32)
	}
	ahead := 0
	if g.cfg.Suboptimal == AtRandom && p.n > 2 && g.paused(g.port(p, slot), p.now) {
		ahead = g.random(p.n - 1)
	}
	for turn := 1; turn < p.n; turn++ {
		if !g.paused(g.port(p, slot), p.now) {
			return slot, false
		}
		next := g.suboptimal(p, slot)
		if g.cfg.Suboptimal != byRTT {
			next = (r.base + 1 + (ahead+turn-1)%(p.n-1)) % p.n
		}
		gain := g.slower(p, slot, next)
		if gain > g.loop && g.mayRecirculate(r, gain, p.now) {
			g.sum++
			g.waits += uint32(p.Len)
			if g.overdue(&g.paths.of(p.Group)[next], missedProbes, p.now) {
				g.countRound(r, g.port(p, next))
			}
			return slot, true
		}
		slot = next
	}
	if g.paused(g.port(p, slot), p.now) {
		return r.base, false // all paths may be paused: keep the first choice
	}
	return slot, false
}

// countRound counts a recirculation. Its cause is that probes through a port are
// overdue; on hardware, the port itself.
func (g *rlb) countRound(r *Round, port int) {
	g.rounds[port]++
	if r.Count == 0 {
		g.packets[port]++
	}
}

// rerouteHardware is reroute as hardware executes it. RLB takes the next slot in
// order. RLB* recirculates a packet if that saves time, and compares the chosen
// path with the alternative once.
func (g *rlb) rerouteHardware(p *pass, grain granularity) (slot int, again bool) {
	if !g.star {
		slot = g.nextUnpaused(p, grain.decide(p))
		return slot, p.again
	}
	r := &p.Round
	if _, moves := g.choice.(*hermesHardware); moves || r.Count == 0 {
		r.base = grain.decide(p)
	}
	if r.Count == 0 {
		r.first = p.now
	} else {
		g.loop = p.now.Since(r.sent)
	}
	r.sent = p.now
	if p.again {
		return r.base, true
	}
	slot = g.nextUnpaused(p, r.base)
	paths := g.paths.of(p.Group)
	gain := Time(max(0, int64(paths[slot].rtt)-int64(paths[r.base].rtt)))
	if g.cfg.Halve {
		gain /= 2
	}
	gain <<= tickShift
	if gain > g.loop && p.now.Since(r.first)+g.loop <= gain && r.Count < int(g.controlled.rounds) {
		g.sum++
		g.countRound(r, g.port(p, r.base%p.n))
		r.to = r.base
		return r.base, true
	}
	return slot, false
}

// nextUnpaused executes Algorithm 1 as hardware does: it returns the first path
// that is not paused, in the order of slots from the chosen one on.
func (g *rlb) nextUnpaused(p *pass, slot int) int {
	for turn := range p.n {
		next := (slot + turn) % p.n
		if slot < p.n && !g.paused(g.port(p, next), p.now) {
			return next
		}
	}
	return slot
}

// suboptimal returns the next path in the order of RTTs. The fastest follows the slowest.
func (g *rlb) suboptimal(p *pass, slot int) (next int) {
	var rtt [MaxPaths]uint32
	for s := range p.n {
		rtt[s] = g.delay(&g.paths.of(p.Group)[s], p.now)
	}
	before := func(a, b int) bool { return cmp.Or(cmp.Compare(rtt[a], rtt[b]), cmp.Compare(a, b)) < 0 }
	fastest := slot
	next = -1
	for s := range p.n {
		if before(slot, s) && (next < 0 || before(s, next)) {
			next = s
		}
		if before(s, fastest) {
			fastest = s
		}
	}
	if next < 0 {
		return fastest
	}
	return next
}

// slower returns how much slower another path is than the path of a slot, or 0 if it is faster.
func (g *rlb) slower(p *pass, slot, other int) Time {
	paths := g.paths.of(p.Group)
	gain := Time(max(0, int64(g.delay(&paths[other], p.now))-int64(g.delay(&paths[slot], p.now))))
	if g.cfg.Halve {
		gain /= 2
	}
	return gain
}

// delay returns the RTT of a path. It is at least the time for which a probe is
// overdue, so a path without probes has the longest RTT. Switches above the leaves
// send no probes.
func (g *rlb) delay(k *pathState, now Time) uint32 {
	if g.overdue(k, 2, now) {
		return uint32(min(now.Since(k.at), math.MaxUint32))
	}
	return k.rtt
}

// missedProbes is the number of consecutive probes that a path must miss to count
// as failed. Pauses are shorter than that many probes.
const missedProbes = 16

// overdue reports whether a path has missed a number of consecutive probes.
func (g *rlb) overdue(k *pathState, probes int64, now Time) bool {
	return g.cfg.Edge && now.Since(k.at) > Time(probes*(g.cfg.TPath/1000))
}

// mayRecirculate limits the recirculations of a packet. RLB* also limits them by the
// free buffer (Eq. 5) and by the gain (Eq. 6).
func (g *rlb) mayRecirculate(r *Round, gain, now Time) bool {
	if r.Count >= g.cfg.Rounds {
		return false
	}
	return !g.star || r.Count < int(g.controlled.rounds) && now.Since(r.first)+g.loop <= gain
}
