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
	Granularity, Signal, Choice, Guard string // The blocks of the scheme, named as in the catalogue.
	Params

	Paths int  // size of the largest possible group
	Edge  bool // the switch is a leaf or ToR

	// Direct is set if ingress can read at once what egress measures. Otherwise the
	// measurements recirculate as a report, at most once every Tb.
	Direct bool
	// Ghost is set if ingress can read queue lengths at once. A packet then counts
	// when it joins a queue.
	Ghost bool
	// Random returns a uniform random number from lo to hi, both included.
	Random func(lo, hi uint64) uint64
	// Elapsed returns the time in ns by which hardware's filters decay. It is finer than the
	// clock: an error of one tick sometimes changes a filter's value by one, and thus the path.
	// nil: use the clock's ticks.
	Elapsed func() int64

	Variant
}

// A Variant selects behaviour of other simulators, for comparison with them. No program
// implements it.
type Variant struct {
	// HostMemory: DRILL has a memory for each destination host instead of each group.
	HostMemory bool
	// MemoryFirst: DRILL compares remembered paths before drawn ones, so a tie keeps the
	// remembered path.
	MemoryFirst bool
	// QueueNow returns the current length of a port's queue for a packet of a
	// flow in bytes. The signals of queue lengths use it instead of reports unless it is nil.
	QueueNow func(port int, f Flow) uint32
	// Frame is the length of a full packet, for lengths from QueueNow in packets.
	Frame int
	// LoadNow counts a packet in the load of a port when it arrives (see Arrived),
	// not when it leaves. The load of an overloaded port can then exceed the port's
	// capacity.
	LoadNow bool
	// LooseFlows distinguishes flows only by destination and ports. Four
	// consecutive destination ports count as one.
	LooseFlows bool
	// FourPaths compares only four consecutive paths. With more paths, it starts
	// from a random one. It breaks ties at random.
	FourPaths bool
	// Steps: all CONGA loads decay by a fifth every 50 µs. With LoadNow, packets collect the
	// loads when they arrive for a port.
	Steps bool
	// HeardNews: CONGA's leaves report a random path that had arrivals in the last 500 µs, and
	// expire older information.
	HeardNews bool
	// PathHash replaces the CRC32 that chooses a path; nil: CRC32.
	PathHash func(Flow) uint64
}

// A Group is the set of paths to a destination.
type Group struct {
	Ports   []int    // by slot: egress port of the path
	Weights []uint32 // by slot, if the controller sets weights
}

// A Port describes an egress port.
type Port struct {
	Capacity int    // packets that its queue can hold
	Service  uint32 // time to send a packet, in µs/65536
}

// A Packet contains the properties of a packet that a decision depends on.
type Packet struct {
	Flow  Flow
	Len   int // bytes
	In    int // ingress port
	Group int // group of its destination

	Ack, Echo bool // acknowledges data (TCP), and echoes a congestion mark

	From    int // group of paths to the leaf that it comes from; -1: none
	Overlay Overlay
	Round   Round

	carried int // on hardware: bytes of the header that another leaf has added
}

// A Decision is the result of Ingress. Slot and Port are -1 if the packet has no
// path. Then the packet has only one way, or none.
type Decision struct {
	Slot int // slot of its path in the group
	Port int // egress port of the path

	Again  bool   // the packet recirculates instead, and Ingress must be called again
	Notice Notice // notice to send to the upstream switch
}

// A Switch runs a scheme.
type Switch struct {
	cfg     Config
	transit bool // the information of the signal is not used
	groups  []Group
	ports   []Port

	grain  granularity
	signal signal
	choice choice
	guard  *rlb // nil: none

	controlled controlled
	paths      byGroup[[MaxPaths]pathState]
	feedback   byGroup[int] // next path to report to the leaf

	pass  pass // state of the packet being decided
	watch stopwatch
}

// A pass is the state of a packet during the decision.
type pass struct {
	*Packet
	now   Time
	n     int    // number of paths in the group
	key   uint16 // slot of the flow
	cell  uint32 // number of the flow's cell, on hardware
	again bool   // the choice requests recirculation of the packet
	held  int    // current path of the flow; -1: none
}

// The blocks. A granularity asks the choice for a path if its packet needs a new one. A choice
// asks the signal about paths.
type (
	granularity interface {
		decide(p *pass) int
	}
	choice interface {
		choose(p *pass) int
	}
	signal interface {
		cost(p *pass, slot int) uint32   // the lower the better
		weight(p *pass, slot int) uint32 // Every path has a share of the traffic.
		egress(d Departure, now Time) (Report, bool)
		learn(r Report, now Time)
	}
)

// edgeSignals lists the signals that leaves collect and use. With them, switches above the leaves
// choose by a hash.
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

// Ingress decides about a packet that arrives or recirculates. The scheme does not handle packets
// of Group -1, for which there is only one way.
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
		if o, ok := s.choice.(*qdaps); ok {
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

// A byGroup holds a value for each group.
type byGroup[T any] []T

func (l *byGroup[T]) of(group int) *T {
	for group >= len(*l) {
		*l = append(*l, *new(T))
	}
	return &(*l)[group]
}

// port returns the egress port of a path.
func (s *Switch) port(p *pass, slot int) int { return s.groups[p.Group].Ports[slot] }

// random returns a random number from 0 to n-1.
func (s *Switch) random(n int) int {
	if s.tofino() {
		return spread(s.cfg.Random(0, draws-1), n)
	}
	return int(s.cfg.Random(0, uint64(n-1)))
}

// A Departure is a packet that leaves the queue of a port.
type Departure struct {
	Port int
	Met  int // queue length when it joined, in packets, or in cells on hardware
	Left int // packets left in the queue
	Len  int // its length in bytes; on hardware, its length at arrival

	Packet *Packet
	Queued Time // time of joining the queue
}

// The values of V, the queuing trend (QALL, Section IV-C).
const (
	falling = 1
	rising  = 2
)

// A Report carries the state of a port from egress to ingress.
type Report struct {
	Port int
	Len  uint32 // queue length in packets; on hardware in cells, or for QDAPS in 1024 ns
	L    uint8  // occupancy that the last packet met: 255 is full, on hardware 15
	T    Time   // time since the previous packet
	V    uint8  // rising or falling
	Sent uint32 // recently sent bytes

	// RLB on hardware: bytes that arrived at a port and have left.
	In   int
	Gone uint32
}

// Enqueued records that a packet has joined the queue of a port. length includes the packet.
func (s *Switch) Enqueued(port, length int) {
	if !s.cfg.Ghost {
		return
	}
	if q, ok := s.signal.(*queue); ok {
		q.len[port] = q.measured(length)
	}
}

// Egress records a departing packet. If it returns true, the caller must pass the report to Learn
// after its recirculation.
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

// Learn processes a report.
func (s *Switch) Learn(r Report, now Time) {
	s.signal.learn(r, now)
	if s.guard != nil && s.tofino() {
		s.guard.learn(r, now)
	}
}

// Params are the constants of all schemes, with the names of the catalogue and in the switch's
// units: times of its clock, sizes in bytes, queues in packets. A scheme uses only its own
// constants.
type Params struct {
	Hardware *Hardware // nil: a switch that computes as in the papers

	Gap  Time   // flowlet: shortest pause that starts a new one
	Cell uint32 // flowcell: size in bytes

	D, M int    // DRILL: number of drawn paths, number of remembered paths
	QCap uint32 // packets that a queue can hold

	Grades [3]uint32 // adaptive routing: shares of QCap, in percent, at which grades 1 to 3 begin

	Tb   Time          // least interval between reports of a port (QALL's T_b)
	Tau  Time          // QALL, tau: the dequeue interval that counts as idle
	Age  Time          // QALL: older state counts as idle; 0: no limit
	Poly *fitting.Poly // nil: the controller sets it with SetPattern

	Degree int // degree of that polynomial

	Window uint   // HULA, DHLB, CONGA, Hermes: loads decay in 2^Window µs
	Link   uint64 // rate of a link in bit/s
	TMax   Time   // DHLB: longest interval between probes
	TFail  Time   // HULA: a best path without probes expires after this time
	TProbe Time   // DHLB: interval of probes
	Ageing Time   // CONGA: older congestion counts as 0

	Timeout   Time   // Hermes: a flow is new after this pause
	TECN      uint8  // share of marks, in 255ths, that separates good from bad paths
	Low, High uint32 // RTT limits in µs, on hardware 1024 ns: good paths are below Low, congested ones above High
	DRTT      uint32 // RTT by which a notably better path is faster, in the same unit
	DECN      int    // share of marks by which a notably better path is lower, in 255ths
	Sent      uint32 // a flow moves only after sending this many bytes
	R         uint64 // and only below this share of the link's rate, in percent

	TPath int64 // Hermes, Clove on hardware: interval in ns between probes of a path

	Epoch  Time   // FlowBender: period for counting marks
	Marked uint64 // share of marked acknowledgements above which a flow moves, in percent

	DT         Time   // RLB: interval of the prediction
	TWarn      Time   // warn if PFC is expected within this time
	QPFC       uint32 // bytes from an ingress port at which the upstream switch is paused
	QTh        uint32 // no warning below this; 0: d*C, the lower end of the paper's range
	Delay      int64  // d, in ns: delay between two switches
	Hold       Time   // time for which a warning is valid and is not repeated
	Derivative bool   // predict by growth; false: warn as soon as QTh is exceeded
	Rounds     int    // most recirculations of a packet
	Halve      bool   // RTT differences count half, because they stand for one-way delays
	// LoopQueue computes t_rc from the bytes that wait for recirculation, at RCRate bit/s.
	LoopQueue bool
	RCRate    uint64
	// Suboptimal is the order in which RLB considers paths: by RTT, by slot from a random one on,
	// or by slot from the next one on.
	Suboptimal Suboptimal
	Relay      int // number of upstream switches beyond the next one that a warning is relayed to
}

// Set sets a constant by its name in the catalogue. number is from a manifest, with times in ns.
// Unknown names are an error. Hardware must be set first.
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
		// The controller or the parser uses these parameters.
	default:
		return fmt.Errorf("unknown parameter %q", name)
	}
	return nil
}

// capacity returns the bytes that a link carries while a load decays.
func (s *Switch) capacity() uint64 { return s.cfg.Link << s.cfg.Window / 8_000_000 }

// controlled contains the state that the controller writes.
type controlled struct {
	threshold   uint32          // QDAPS: S in packets; 0: no limit for queues
	granularity byGroup[uint16] // PDLB: packets per flowcell
	rounds      uint16          // RLB*: N_rc
	faulty      [512]bool       // RLB*: failed ports
}

// SetThreshold sets QDAPS's S in packets; 0: no threshold.
func (s *Switch) SetThreshold(packets uint32) { s.controlled.threshold = packets }

// SetGranularity sets PDLB's flowcell size for a group, in packets.
func (s *Switch) SetGranularity(group int, packets uint16) {
	*s.controlled.granularity.of(group) = packets
}

// SetRounds sets RLB*'s N_rc.
func (s *Switch) SetRounds(n uint16) { s.controlled.rounds = n }

// SetFaulty sets whether the switch behind a port has failed (RLB*).
func (s *Switch) SetFaulty(port int, failed bool) { s.controlled.faulty[port] = failed }
