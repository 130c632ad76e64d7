package model

import (
	"fmt"
	"slices"

	"github.com/p4lb/p4lb/fitting"
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
	// recirculates as a report, at most every Tb.
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
	// HostMemory: DRILL has a memory for each destination host instead of each
	// group.
	HostMemory bool
	// MemoryFirst: DRILL compares remembered paths before drawn ones, so that it
	// stays on them in a tie.
	MemoryFirst bool
	// QueueNow returns the current length of a port's queue for a packet of a
	// flow. The signal queue uses it instead of reports unless it is nil.
	QueueNow func(port int, f Flow) uint32
	// LoadNow counts a packet to the load of a port as soon as it is there, by
	// Arrived, and not when it leaves; a port to which more comes than it can send
	// then is more than full.
	LoadNow bool
	// LooseFlows: a flow is remembered by its destination and ports alone, four
	// destination ports being one: flows that differ in nothing else are one.
	LooseFlows bool
	// FourPaths: the least loaded path is chosen among four with numbers that follow
	// each other, beginning at random where there are more; of equals any.
	FourPaths bool
	// Steps: CONGA's loads fade by a fifth each 50 µs, all at once, and with LoadNow
	// packets gather them as they come to a port.
	Steps bool
	// HeardNews: CONGA's leaves report a random path with arrivals in the last 500
	// µs, and expire older information.
	HeardNews bool
	// PathHash takes the place of the CRC32 that chooses a path; nil: it stays.
	PathHash func(Flow) uint64
}

// A Group is the paths that lead to one destination.
type Group struct {
	Ports   []int    // by slot: the egress port of the path
	Weights []uint32 // by slot, where the controller gives weights
}

// A Port describes an egress port.
type Port struct {
	Capacity int    // packets that its queue holds
	Service  uint32 // the time that it takes for a packet, in µs/65536
}

// A Packet contains the facts that a decision depends on.
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

	Again  bool   // it recirculates instead: Ingress is to be called again
	Notice Notice // for the switch upstream
}

// A Switch runs a scheme.
type Switch struct {
	cfg     Config
	transit bool // the signal's information is not used
	groups  []Group
	ports   []Port

	grain  granularity
	signal signal
	choice choice
	guard  *rlb // nil: none

	controlled controlled
	paths      byGroup[[MaxPaths]pathState]
	feedback   byGroup[int] // the next path to report to that leaf

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
	again bool   // the packet has to recirculate, says the choice
	held  int    // the path that the flow has had so far, -1 for none
}

// The blocks. A granularity asks the choice if its packet needs a new path; a choice
// asks the signal about paths.
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

// edgeSignals are the signals that leaves gather and use: switches above the leaves
// choose by a hash with these.
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

// SetPort sets the facts about a port.
func (s *Switch) SetPort(port int, p Port) { s.ports[port] = p }

// Ingress decides about a packet that arrives, or recirculates. A
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
		if o, ok := s.choice.(*ordered); ok {
			o.signal.join(d.Port)
		}
		if o, ok := s.signal.(*occupancy); ok {
			o.join(d.Port)
		}
	}
	return d
}

func (s *Switch) decide(p *Packet, now Time) (d Decision) {
	g := &s.groups[p.Group]
	s.pass = pass{Packet: p, now: now, n: len(g.Ports), held: -1}
	if d, ok := s.signal.(*degree); ok && s.tofino() {
		d.forget(&s.pass)
	}
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

// PathHash returns the hash that selects a path for a flow.
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
	Left int // the packets that it leaves behind
	Len  int // bytes of it, on hardware as it came in

	Packet *Packet
	Queued Time // when it was queued
}

// The values of V, the queuing trend (QALL, Section IV-C).
const (
	Falling = 1
	Rising  = 2
)

// A Report carries the state of a port from egress to ingress.
type Report struct {
	Port int
	Len  uint32 // of the queue, in packets; on hardware in cells, or QDAPS's in 1024 ns
	L    uint8  // the queue's occupancy that the last packet met, 255 is full; on hardware 15
	T    Time   // since the packet before
	V    uint8  // Rising or Falling
	Sent uint32 // bytes sent lately

	// RLB on hardware: bytes that arrived at a port and have left.
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

// Egress takes note of a packet that leaves. If it returns true, Learn is to be
// called with the report once that has recirculated.
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

// Params are the constants of the schemes, with the catalogue's names and in the
// switch's units: times of its clock, sizes in bytes, queues in packets. A scheme
// reads the constants that it needs.
type Params struct {
	Hardware *Hardware // nil: a switch that computes as the papers do

	Gap  Time   // flowlet: a longer pause ends it
	Cell uint32 // flowcell: bytes

	D, M int    // DRILL: paths drawn, paths remembered
	QCap uint32 // packets that a queue holds

	Grades [3]uint32 // adaptive routing: the shares of QCap, in percent, from which grades 1 to 3 begin

	Tb   Time          // reports of a port come at most this often (QALL's T_b)
	Tau  Time          // QALL, tau: the dequeue interval that counts as idle
	Age  Time          // QALL: older state counts as idle; 0: never
	Poly *fitting.Poly // nil: the controller gives one, by SetPattern

	Degree int // of that

	Window uint   // HULA, DHLB, CONGA, Hermes: a load fades in 2^Window µs
	Link   uint64 // bit/s of a link
	TMax   Time   // DHLB: the longest time between probes
	TFail  Time   // HULA: a best path without news for longer is given up
	TProbe Time   // DHLB: between probes
	Ageing Time   // CONGA: older congestion counts as none

	Timeout   Time   // Hermes: a flow that pauses for longer is new
	TECN      uint8  // a share of marks, of 255, that separates good from bad
	Low, High uint32 // µs, on hardware 1024 ns: good paths are faster, congested ones slower
	DRTT      uint32 // the same, by which a notably better path is faster
	DECN      int    // marks, of 255, that it has fewer
	Sent      uint32 // a flow that moves has sent more bytes
	R         uint64 // and less than this share of the link's rate, in percent

	TPath int64 // Hermes, Clove on hardware: ns between probes of a path

	Epoch  Time   // FlowBender: how long marks are counted
	Marked uint64 // the share of marked acknowledgements that moves a flow, in percent

	DT         Time   // RLB: the interval of the prediction
	TWarn      Time   // a warning goes out if less is left
	QPFC       uint32 // bytes of an ingress queue that pause the switch upstream
	QTh        uint32 // no warning below; 0: d*C, the lower end of its range
	Delay      int64  // d, in ns: between two switches
	Hold       Time   // a warning counts, and is not repeated, so long
	Derivative bool   // predict by growth; else as soon as QTh is exceeded
	Rounds     int    // a packet recirculates at most so often
	Halve      bool   // RTT differences count half, as the one-way delays that they stand for
	// LoopQueue takes t_rc from the bytes that wait for recirculation, at RCRate bit/s.
	LoopQueue bool
	RCRate    uint64
	// Suboptimal is the order of the paths that RLB considers: of RTTs, from a random
	// slot on, or from the next slot on.
	Suboptimal Suboptimal
	Relay      int // switches upstream of the next one that a warning goes on to
}

// Set sets a constant by the catalogue's name, with the number from a manifest, where
// times are in ns. Unknown names are an error. Set Hardware first.
func (p *Params) Set(name string, number int64) error {
	times := map[string]*Time{
		"gap": &p.Gap, "tb": &p.Tb, "tau": &p.Tau, "age": &p.Age, "tfail": &p.TFail, "tprobe": &p.TProbe, "tmax": &p.TMax,
		"ageing": &p.Ageing, "timeout": &p.Timeout, "dt": &p.DT, "twarn": &p.TWarn, "hold": &p.Hold, "epoch": &p.Epoch,
	}
	if t := times[name]; t != nil {
		*t = p.Hardware.Interval(number)
		return nil
	}
	switch name {
	case "cell":
		p.Cell = uint32(number)
	case "d":
		p.D = int(number)
	case "m":
		p.M = int(number)
	case "qcap":
		p.QCap = uint32(number)
	case "grade1", "grade2", "grade3":
		p.Grades[name[5]-'1'] = uint32(number)
	case "window":
		p.Window = uint(number)
	case "link":
		p.Link = uint64(number)
	case "tecn":
		p.TECN = uint8(number * 255 / 100)
	case "decn":
		p.DECN = int(number * 255 / 100)
	case "low":
		p.Low = uint32(p.Hardware.Count(p.Hardware.Interval(number)))
	case "high":
		p.High = uint32(p.Hardware.Count(p.Hardware.Interval(number)))
	case "drtt":
		p.DRTT = uint32(p.Hardware.Count(p.Hardware.Interval(number)))
	case "tpath":
		p.TPath = number
	case "sent":
		p.Sent = uint32(number)
	case "marked":
		p.Marked = uint64(number)
	case "r":
		p.R = uint64(number)
	case "qpfc":
		p.QPFC = uint32(number)
	case "qth":
		p.QTh = uint32(number)
	case "predict":
		p.Derivative = number == 0
	case "rc":
		p.Rounds = int(number)
	case "owd":
		p.Halve = number == 1
	case "loop":
		p.LoopQueue = number == 1
	case "suboptimal":
		p.Suboptimal = Suboptimal(number)
	case "relay":
		p.Relay = int(number)
	case "rcrate":
		p.RCRate = uint64(number)
	case "delay":
		p.Delay = number
	case "degree":
		p.Degree = int(number)
	case "priority", "cpu", "theta", "period", "rule", "ecnk", "incast":
		// The controller uses these parameters, or the parser.
	default:
		return fmt.Errorf("unknown parameter %q", name)
	}
	return nil
}

// capacity returns the bytes that a link carries while a load decays.
func (s *Switch) capacity() uint64 { return s.cfg.Link << s.cfg.Window / 8_000_000 }

// controlled is the state that the controller writes.
type controlled struct {
	threshold   uint32          // QDAPS: S, in packets; 0: queues may grow
	granularity byGroup[uint16] // PDLB: packets of a flowcell
	rounds      uint16          // RLB*: N_rc
	faulty      [512]bool       // RLB*: by port
}

// SetThreshold sets QDAPS's S, in packets; 0 is no threshold.
func (s *Switch) SetThreshold(packets uint32) { s.controlled.threshold = packets }

// SetGranularity sets PDLB's size of flowcells to a group, in packets.
func (s *Switch) SetGranularity(group int, packets uint16) {
	*s.controlled.granularity.of(group) = packets
}

// SetRounds sets RLB*'s N_rc.
func (s *Switch) SetRounds(n uint16) { s.controlled.rounds = n }

// SetFaulty sets whether the switch behind a port has failed (RLB*).
func (s *Switch) SetFaulty(port int, failed bool) { s.controlled.faulty[port] = failed }
