package model

import (
	"fmt"
	"slices"
)

// MaxPaths is the size of the largest group.
const MaxPaths = 16

// A Config is a scheme with its constants.
type Config struct {
	Granularity, Signal, Choice, Guard string // the blocks, as the catalogue names them
	Params

	Paths int  // of the largest group that there is room for
	Edge  bool // the switch is a leaf or ToR

	// Direct: what egress measures is known to ingress at once. Otherwise it
	// goes round by report, at most every Tb.
	Direct bool
	// Ghost: so are the lengths of queues, and also when packets come to them.
	Ghost bool
	// Random draws uniformly from lo to hi, both included.
	Random func(lo, hi uint64) uint64
	// Elapsed is the time in ns by which hardware's filters fade: it is finer than
	// the clock, and a filter that is off by a tick is now and then off by one, which
	// is another path where paths are compared. nil: the clock's ticks.
	Elapsed func() int64

	Variant
}

// A Variant is what simulators do otherwise than the programs do, for comparison
// with them: no program for a switch is generated so.
type Variant struct {
	// HostMemory: DRILL remembers for each destination host what it remembers
	// for each group.
	HostMemory bool
	// MemoryFirst: DRILL looks at what it remembers before what it draws, so
	// that it stays there where both are equal.
	MemoryFirst bool
	// QueueNow is the length of a port's queue as it is, for a packet of a flow,
	// which signal queue then takes in place of what it has learnt; nil: it does
	// not.
	QueueNow func(port int, f Flow) uint32
	// LoadNow counts a packet to the load of a port as soon as it is there, by
	// Assigned, and not when it leaves; a port to which more comes than it can send
	// then is more than full.
	LoadNow bool
	// PathHash takes the place of the CRC32 that chooses a path; nil: it stays.
	PathHash func(Flow) uint64
}

// A Group is the paths that lead to one destination.
type Group struct {
	Ports   []int    // by slot: the egress port of the path
	Weights []uint32 // by slot, where the controller gives weights
}

// A Port is what is known of an egress port.
type Port struct {
	Capacity int    // packets that its queue holds
	Service  uint32 // the time that it takes for a packet, in µs/65536
}

// A Packet is what a decision about a packet depends on.
type Packet struct {
	Flow  Flow
	Len   int // bytes
	In    int // the port that it came from
	Group int // where it goes

	Ack, Echo bool // it acknowledges (TCP), and echoes a congestion mark

	From    int // the group that leads to the leaf that it comes from; -1: none
	Overlay Overlay
	Round   Round

	carried int // bytes of the header that another leaf has added, on hardware
}

// A Decision is what becomes of a packet. Without a path, Slot and Port are -1:
// the packet has but one way, or none any more.
type Decision struct {
	Slot int // its path in the group
	Port int // the egress port of that path

	Again  bool   // it comes round instead: Ingress is to be called again
	Notice Notice // for the switch upstream
}

// A Switch runs a scheme.
type Switch struct {
	cfg     Config
	transit bool // nobody asks what the signal knows
	groups  []Group
	ports   []Port

	grain  granularity
	signal signal
	choice choice
	guard  *rlb // nil: none

	controlled controlled
	paths      byGroup[[MaxPaths]pathState]
	feedback   byGroup[int] // the path that the leaf there is told about next

	pass  pass // of the packet being decided about
	watch stopwatch
}

// A pass is a packet on its way through the decision.
type pass struct {
	*Packet
	now   Time
	n     int    // paths of the group
	key   uint16 // slot of the flow
	cell  uint32 // of the flow, on hardware
	again bool   // the packet has to come round, says the choice
	held  int    // the path that the flow has had so far, -1 for none
}

// The blocks. A granularity asks the choice if its packet is to get a path
// anew; a choice asks the signal about paths.
type (
	granularity interface {
		decide(p *pass) int
	}
	choice interface {
		choose(p *pass) int
	}
	signal interface {
		cost(p *pass, slot int) uint32   // the more, the worse
		weight(p *pass, slot int) uint32 // the share of the traffic
		egress(d Departure, now Time) (Report, bool)
		learn(r Report, now Time)
	}
)

// edgeSignals are those that leaves gather and use: all other switches hash.
var edgeSignals = []string{"piggyback", "delay", "one-way", "marks", "classes", "echo"}

// New makes a switch without groups.
func New(cfg Config) (*Switch, error) {
	transit := !cfg.Edge && slices.Contains(edgeSignals, cfg.Signal)
	if transit {
		cfg.Granularity, cfg.Choice = "flow", "hash"
	}
	if err := cfg.Hardware.validate(&cfg); err != nil {
		return nil, err
	}
	if cfg.QTh == 0 {
		cfg.QTh = uint32(cfg.Link * uint64(cfg.Delay) / 8_000_000_000) // d*C
	}
	s := &Switch{cfg: cfg, transit: transit, ports: make([]Port, 512)}
	if s.signal = newSignal(s); s.signal == nil {
		return nil, fmt.Errorf("no model of signal %q", cfg.Signal)
	}
	if s.choice = newChoice(s); s.choice == nil {
		return nil, fmt.Errorf("no model of choice %q", cfg.Choice)
	}
	if s.grain = newGranularity(s); s.grain == nil {
		return nil, fmt.Errorf("no model of granularity %q", cfg.Granularity)
	}
	switch cfg.Guard {
	case "", "none":
	case "rlb", "rlb-star":
		s.guard = &rlb{Switch: s, star: cfg.Guard == "rlb-star"}
	default:
		return nil, fmt.Errorf("no model of guard %q", cfg.Guard)
	}
	return s, nil
}

// SetGroup sets the paths of a group.
func (s *Switch) SetGroup(id int, g Group) {
	for id >= len(s.groups) {
		s.groups = append(s.groups, Group{})
	}
	s.groups[id] = Group{slices.Clone(g.Ports), slices.Clone(g.Weights)}
}

// SetPort sets what is known of a port.
func (s *Switch) SetPort(port int, p Port) { s.ports[port] = p }

// Ingress decides about a packet that arrives, or comes round once more. A
// packet of Group -1 has but one way, which is no matter of the scheme.
func (s *Switch) Ingress(p *Packet, now Time) Decision {
	first := p.Round.Count == 0
	if first {
		s.unwrap(p, now)
		if c, ok := s.choice.(*rehash); ok && p.Ack {
			c.heed(p, now)
		}
	}
	d := Decision{Slot: -1, Port: -1}
	if p.Group >= 0 {
		d = s.decide(p, now)
	}
	if s.guard != nil && (first || s.tofino()) {
		d.Notice = s.guard.predict(p, now)
	}
	if d.Again {
		p.Round.Count++
	} else if d.Slot >= 0 {
		s.wrap(p, d.Slot)
	}
	return d
}

func (s *Switch) decide(p *Packet, now Time) (d Decision) {
	g := &s.groups[p.Group]
	s.pass = pass{Packet: p, now: now, n: len(g.Ports), held: -1}
	if s.guard == nil {
		d.Slot = s.grain.decide(&s.pass)
		d.Again = s.pass.again
	} else {
		d.Slot, d.Again = s.guard.reroute(&s.pass, s.grain)
	}
	d.Port = -1
	if d.Slot >= 0 {
		d.Port = g.Ports[d.Slot%len(g.Ports)]
	}
	return d
}

// PathHash is what a path comes from where a flow's hash chooses it.
func (s *Switch) PathHash(f Flow) uint64 {
	if s.cfg.PathHash != nil {
		return s.cfg.PathHash(f)
	}
	return f.pathHash(s.cfg.Edge)
}

// byGroup is something that is remembered of each group.
type byGroup[T any] []T

func (l *byGroup[T]) of(group int) *T {
	for group >= len(*l) {
		*l = append(*l, *new(T))
	}
	return &(*l)[group]
}

// port is the egress port of a path.
func (s *Switch) port(p *pass, slot int) int { return s.groups[p.Group].Ports[slot] }

// random draws a number from 0 to n-1.
func (s *Switch) random(n int) int {
	if s.tofino() {
		return spread(s.cfg.Random(0, draws-1), n)
	}
	return int(s.cfg.Random(0, uint64(n-1)))
}

// A Departure is a packet that leaves the queue of a port.
type Departure struct {
	Port int
	Met  int // packets that stood in the queue when it came, or cells on hardware
	Left int // those that it leaves behind
	Len  int // bytes of it, on hardware as it came in

	Packet *Packet
	Queued Time // when it was queued
}

// A Report is what egress tells ingress about a port.
type Report struct {
	Port int
	Len  uint32 // of the queue, in packets; on hardware in cells, or QDAPS's in 1024 ns
	L    uint8  // the queue's occupancy that the last packet met, 255 is full; on hardware 15
	T    Time   // since the packet before
	V    uint8  // Rising or Falling
	Sent uint32 // bytes sent lately

	// RLB on hardware: what came in at a port and has left, in bytes.
	In   int
	Gone uint32
}

// Enqueued takes note that a packet has come to the queue of a port, which is so
// long with it.
func (s *Switch) Enqueued(port, length int) {
	if !s.cfg.Ghost {
		return
	}
	if q, ok := s.signal.(*queue); ok {
		q.len[port] = q.measured(length)
	}
}

// Assigned takes note of a packet that has come to a port: see Variant.LoadNow.
func (s *Switch) Assigned(port, bytes int, now Time) {
	if l, ok := s.signal.(interface {
		count(port, bytes int, now Time)
	}); ok {
		l.count(port, bytes, now)
	}
}

// Egress takes note of a packet that leaves. If it returns true, Learn is to be
// called with the report once that has come round.
func (s *Switch) Egress(d Departure, now Time) (Report, bool) {
	r, due := s.signal.egress(d, now)
	due = due && !s.transit
	if s.guard != nil {
		due = s.guard.depart(d, &r, now) || due
	}
	if o, ok := s.signal.(overlaid); ok && d.Packet.Overlay.Valid {
		o.pass(&d.Packet.Overlay, d.Port, now)
	}
	if due && (s.cfg.Direct || s.cfg.Ghost) {
		s.signal.learn(r, now)
		due = false
	}
	return r, due
}

// Learn takes in a report.
func (s *Switch) Learn(r Report, now Time) {
	s.signal.learn(r, now)
	if s.guard != nil && s.tofino() {
		s.guard.learn(r, now)
	}
}
