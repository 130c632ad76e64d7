package model

import (
	"math"
)

// newSignal makes the signal of a scheme.
func newSignal(s *Switch) signal {
	switch s.cfg.Signal {
	case "none":
		return nothing{}
	case "weights":
		return given{s, nothing{}}
	case "queue":
		return &queue{Switch: s}
	case "occupancy", "drain":
		return newOccupancy(s)
	case "behaviour":
		return newBehaviour(s, &eq4{tau: s.cfg.Tau})
	case "fitted":
		return newBehaviour(s, newFitted(s.cfg.Params))
	case "piggyback":
		return &piggyback{load: load{Switch: s, commonDecay: commonDecay{on: s.cfg.Steps && !s.tofino()}}}
	case "one-way":
		return &oneWay{queue: queue{Switch: s}}
	case "classes":
		if s.tofino() {
			return &load{Switch: s} // loads of the paths' first links
		}
		return nothing{}
	case "delay", "echo":
		return nothing{} // the information is stored by path or flow
	case "marks":
		return marks{Switch: s}
	case "utilisation":
		return &utilisation{load: load{Switch: s}}
	case "degree":
		return &degree{load: load{Switch: s}}
	}
	return nil
}

// nothing is the signal of schemes that use no information about paths.
type nothing struct{}

func (nothing) cost(*pass, int) uint32                { return 0 }
func (nothing) weight(*pass, int) uint32              { return 0 }
func (nothing) egress(Departure, Time) (Report, bool) { return Report{}, false }
func (nothing) learn(Report, Time)                    {}

// given implements the signal of WCMP, weights that the controller has set.
type given struct {
	*Switch
	nothing
}

func (g given) weight(p *pass, slot int) uint32 { return g.groups[p.Group].Weights[slot] }

// A reporter decides which ports report. A port is due when its last report is
// older than Tb (QALL Alg. 3).
type reporter struct {
	last [512]Time
}

func (r *reporter) due(port int, tb, now Time) bool {
	if now.Since(r.last[port]) <= tb {
		return false
	}
	r.last[port] = now
	return true
}

// queue implements the signal of DRILL, the lengths of the ports' queues.
type queue struct {
	*Switch
	reporter
	len [512]uint32
}

// cost returns the length of a path's queue for comparisons: in bytes if the switch knows the
// queue's bytes now.
func (q *queue) cost(p *pass, slot int) uint32 {
	if q.cfg.QueueNow != nil && !q.timed() {
		return q.cfg.QueueNow(q.port(p, slot), p.Flow)
	}
	return q.queue(p, slot)
}

// queue returns the length of a path's queue as far as the switch knows it, in the unit of reports.
func (q *queue) queue(p *pass, slot int) uint32 {
	port := q.port(p, slot)
	if q.cfg.QueueNow == nil {
		return q.len[port]
	}
	unit := q.cfg.Frame
	if q.tofino() {
		unit = q.cfg.Hardware.Cell
	}
	return q.measured((int(q.cfg.QueueNow(port, p.Flow)) + unit - 1) / unit)
}

// weight returns the free space of the queue. It is at least 1, because a full queue also drains.
func (q *queue) weight(p *pass, slot int) uint32 {
	whole := q.cfg.QCap
	if q.cfg.QueueNow != nil {
		whole *= uint32(q.cfg.Frame)
	}
	return max(1, whole-min(whole, q.cost(p, slot)))
}

func (q *queue) egress(d Departure, now Time) (Report, bool) {
	return Report{Port: d.Port, Len: q.measured(d.Left)}, q.cfg.Direct || q.cfg.Ghost || q.due(d.Port, q.cfg.Tb, now)
}

// timed reports whether the switch compares times instead of lengths.
func (q *queue) timed() bool { return q.tofino() && q.cfg.Choice == "ordered" }

// measured returns the reported value of a length. For QDAPS, hardware converts cells
// to times with the power of 2 that is nearest to the cells that a link sends in 1024
// ns.
func (q *queue) measured(length int) uint32 {
	if q.timed() {
		cells := float64(q.cfg.Link) * 1024 / 8e9 / float64(q.cfg.Hardware.Cell)
		length >>= max(0, int(math.Round(math.Log2(cells))))
	}
	return uint32(length)
}

func (q *queue) learn(r Report, _ Time) { q.len[r.Port] = r.Len }

// These costs of paths in adaptive routing are higher than the grades 0 to 3 of
// queue lengths.
const (
	gradeResumed = 3
	gradePaused  = 4
)

// occupancy implements the signal of adaptive routing: grades of queue lengths,
// with paused ports worst. A software switch adds each packet that it sends to a
// path, and corrects the length when packets leave. Hardware only has reports of
// grades. On hardware, the first report after a pause frame ends the pause.
type occupancy struct {
	queue
	grades [3]uint32 // queue lengths, in packets or cells, at which grades 1 to 3 begin
	paused [512]bool
	drain  bool // grades are of times, in packets of the group's fastest port
}

func newOccupancy(s *Switch) *occupancy {
	o := &occupancy{queue: queue{Switch: s}, drain: s.cfg.Signal == "drain"}
	for i, share := range s.cfg.Grades {
		o.grades[i] = s.cfg.QCap * share / 100
		if s.tofino() {
			o.grades[i] = o.grades[i] * packet / uint32(s.cfg.Hardware.Cell)
		}
	}
	return o
}

// grade returns the grade of a queue length.
func (o *occupancy) grade(length uint32) uint32 {
	for i := len(o.grades); i > 0; i-- {
		if length >= o.grades[i-1] {
			return uint32(i)
		}
	}
	return 0
}

func (o *occupancy) cost(p *pass, slot int) uint32 {
	port := o.port(p, slot)
	length := o.len[port]
	g := uint32(0)
	switch {
	case o.cfg.QueueNow != nil:
		g = o.gradeNow(p, port)
	case o.tofino():
		return length
	case o.drain:
		g = o.wait(p, port, length)
	default:
		g = o.grade(length)
	}
	if o.paused[port] {
		g += gradePaused
	}
	return g
}

// gradeNow returns the grade of the bytes in a port's queue now, or of the time until the port has
// sent them and one more packet. Unlike the programs' counts of waiting packets, the bytes
// distinguish an idle port from one that sends its last packet.
func (o *occupancy) gradeNow(p *pass, port int) (grade uint32) {
	bytes := uint64(o.cfg.QueueNow(port, p.Flow))
	frame, service, fastest := uint64(0), uint64(1), uint64(1)
	if o.drain {
		frame, service, fastest = uint64(o.cfg.Frame), uint64(o.ports[port].Service), o.fastest(p)
	}
	wait := (bytes + frame) * service * 100
	for _, share := range o.cfg.Grades {
		from := uint64(share)*uint64(o.cfg.QCap)*uint64(o.cfg.Frame) + frame*100
		if wait >= from*fastest {
			grade++
		}
	}
	return grade
}

// fastest returns the least service time of the group's ports.
func (o *occupancy) fastest(p *pass) uint64 {
	fastest := uint64(math.MaxUint64)
	for slot := range p.n {
		fastest = min(fastest, uint64(o.ports[o.port(p, slot)].Service))
	}
	return fastest
}

// wait returns the grade of the time until a port has sent one more packet. It is the grade of the
// queue with which the fastest port of the group takes this time.
func (o *occupancy) wait(p *pass, port int, length uint32) (grade uint32) {
	fastest := o.fastest(p)
	wait := (uint64(length) + 1) * uint64(o.ports[port].Service)
	for _, from := range o.grades {
		if wait >= fastest*(uint64(from)+1) {
			grade++
		}
	}
	return grade
}

// join counts a packet that is about to be queued at a port.
func (o *occupancy) join(port int) {
	if !o.tofino() {
		o.len[port]++
	}
}

func (o *occupancy) egress(d Departure, now Time) (Report, bool) {
	r, due := o.queue.egress(d, now)
	if o.tofino() {
		r.Len = o.grade(r.Len)
	}
	return r, due
}

// Paused records a PFC frame from the peer of a port.
func (s *Switch) Paused(port int, paused bool) {
	o, ok := s.signal.(*occupancy)
	switch {
	case !ok || s.transit:
	case !o.tofino():
		o.paused[port] = paused
	case paused:
		o.len[port] = gradePaused
	default:
		o.len[port] = gradeResumed
	}
}

// A PathNews is the result of a probe along a path.
type PathNews struct {
	Group, Slot int
	RTT         uint32 // in µs; on hardware in 1024 ns
	Marked      bool   // the probe met a long queue
}

// A pathState is the state of a path according to probes.
type pathState struct {
	rtt   uint32
	at    Time
	marks uint8 // share of marked probes, in 255ths
	share filter
}

// LearnPath processes the result of a probe.
func (s *Switch) LearnPath(n PathNews, now Time) {
	k := &s.paths.of(n.Group)[n.Slot]
	k.rtt, k.at = n.RTT, now
	if s.tofino() {
		k.marks = k.share.average(n.Marked, 7.5*float64(s.cfg.TPath), s.elapsed(now))
		return
	}
	// The average covers about eight probes, and is rounded such that it returns to 0.
	k.marks -= uint8((int(k.marks) + 7) / 8)
	if n.Marked {
		k.marks += 31
	}
}

// marks implements Clove's signal, the share of a path's probes that met a long
// queue.
type marks struct {
	*Switch
	nothing
}

func (m marks) cost(p *pass, slot int) uint32 { return uint32(m.paths.of(p.Group)[slot].marks) }

func (m marks) weight(p *pass, slot int) uint32 { return 256 - m.cost(p, slot) }

// An Overlay is the information that leaves exchange in every packet between them.
type Overlay struct {
	Valid bool
	Tag   uint8 // path of the packet
	FbTag uint8 // path of the destination leaf that the feedback describes

	CE, FbMetric  uint8 // CONGA: congestion of the packet's path so far and of path FbTag, 0 to 7
	Sent, FbDelay Time  // QDAPS*: time of sending; delay of path FbTag
}

// An overlaid is a signal that uses overlay headers.
type overlaid interface {
	receive(leaf int, h *Overlay, now Time)
	send(group int, h *Overlay)
	pass(h *Overlay, port int, now Time)
}

// unwrap processes the information in a packet from another leaf. Hardware only
// processes packets for its own hosts. If a failure diverts a packet through this
// leaf, the packet gets a new header.
func (s *Switch) unwrap(p *Packet, now Time) {
	p.carried = 0
	o, ok := s.signal.(overlaid)
	if !ok || !s.cfg.Edge || !p.Overlay.Valid {
		return
	}
	if s.tofino() {
		p.carried = 10
		if s.cfg.Signal == "one-way" {
			p.carried = 16
		}
		if p.Group >= 0 {
			p.Overlay = Overlay{}
			return
		}
	}
	if p.From >= 0 {
		o.receive(p.From, &p.Overlay, now)
		p.Overlay = Overlay{}
	}
}

// wrap reports the paths from another leaf to this leaf, one per packet in turn.
func (s *Switch) wrap(p *Packet, slot int) {
	o, ok := s.signal.(overlaid)
	if !ok || !s.cfg.Edge {
		return
	}
	next := s.feedback.of(p.Group)
	tag := *next
	if tag >= s.cfg.Paths {
		tag = 0
	}
	*next = tag + 1
	p.Overlay = Overlay{Valid: true, Tag: uint8(slot), FbTag: uint8(tag)}
	o.send(p.Group, &p.Overlay)
}

// piggyback implements CONGA's signal, the congestion of paths in eighths of a
// link. Packets collect it on their way and carry it back.
type piggyback struct {
	load
	toLeaf   byGroup[[MaxPaths]pathDegree]
	fromLeaf byGroup[[MaxPaths]uint8]
	heard    byGroup[[MaxPaths]pathDegree] // with HeardNews: time of the report
}

// cost returns the maximum of the local congestion and the path's.
func (g *piggyback) cost(p *pass, slot int) uint32 {
	remote := g.toLeaf.of(p.Group)[slot]
	switch {
	case g.cfg.HeardNews && !g.tofino():
		if remote.known && g.stale(remote.at, p.now) {
			remote.degree = 0
		}
	case p.now.Since(remote.at) > g.cfg.Ageing:
		remote.degree = 0
		if g.tofino() { // On hardware the clock wraps sooner, so information must expire.
			g.toLeaf.of(p.Group)[slot].degree = 0
		}
	}
	return uint32(max(remote.degree, g.eighths(g.sent(g.port(p, slot), p.now))))
}

func (g *piggyback) receive(leaf int, h *Overlay, now Time) {
	g.fromLeaf.of(leaf)[h.Tag] = h.CE
	if g.cfg.HeardNews && !g.tofino() {
		g.begin(now)
		g.heard.of(leaf)[h.Tag] = pathDegree{at: now, known: true}
		if h.FbTag == noNews {
			return
		}
	}
	g.toLeaf.of(leaf)[h.FbTag] = pathDegree{degree: h.FbMetric, at: now, known: true}
}

func (g *piggyback) send(group int, h *Overlay) {
	if g.cfg.HeardNews && !g.tofino() {
		g.tellHeard(group, h)
		return
	}
	h.FbMetric = g.fromLeaf.of(group)[h.FbTag]
}

func (g *piggyback) pass(h *Overlay, port int, _ Time) {
	if g.on && g.cfg.LoadNow {
		return // Arrived counts it
	}
	h.CE = max(h.CE, g.eighths(g.egressSide[port].bytes))
}

// noNews replaces the path number if a leaf has nothing to report.
const noNews = 0xff

// tellHeard reports the congestion of a random path on which packets have recently
// arrived.
func (g *piggyback) tellHeard(group int, h *Overlay) {
	g.begin(g.Switch.pass.now)
	var heard []uint8
	for slot := range g.cfg.Paths {
		at := g.heard.of(group)[slot]
		if at.known && !g.stale(at.at, g.Switch.pass.now) {
			heard = append(heard, uint8(slot))
		}
	}
	h.FbTag = noNews
	if len(heard) > 0 {
		h.FbTag = heard[g.random(len(heard))]
		h.FbMetric = g.fromLeaf.of(group)[h.FbTag]
	}
}

// Arrived counts a packet that has arrived for a port: see Variant.LoadNow. With Variant.Steps,
// the packet collects the current load.
func (s *Switch) Arrived(port, bytes int, h *Overlay, now Time) {
	l, ok := s.signal.(interface {
		count(port, bytes int, now Time)
	})
	if !ok {
		return
	}
	l.count(port, bytes, now)
	if g, ok := s.signal.(*piggyback); ok && g.on && h.Valid {
		h.CE = max(h.CE, g.eighths(g.egressSide[port].bytes))
	}
}
