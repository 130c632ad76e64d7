package sim

import (
	"hash/fnv"
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/p4lb/p4lb/internal/network/fabric"
)

// A Network is a simulated network. Only one goroutine may use it at a time.
type Network struct {
	topology *fabric.Topology
	opts     Options
	now      time.Duration
	events   schedule
	stopped  bool

	hosts    []*Host
	switches []*Switch
	byName   map[string]any // *Host or *Switch
	links    []*Link
	flows    int

	bytes  bool      // switches read header bytes, so packets must carry them
	upper  *[12]byte // leading bytes that all hosts' IPv6 addresses share; nil: IPv4
	tap    func(at *Port, head []byte, size int)
	pool   *Packet
	ledger ledger
	hops   int64
	huge   hugePages

	// With ties by place, a network consists of parts. Each part is a Network with its own clock,
	// schedule, switches and hosts (parts.go). Without, the network is its only part.
	whole *Network
	parts []*Network
	part

	running bool        // Run is active and no callback is running
	held    []*program  // programs whose switches the network has exclusive access to
	ns3     *ns3Numbers // nil: paths are not hashed as in ns-3
	draws   *ns3Random  // nil: each model has its own random numbers

	distance *distance
	tunings  *tunings
	blocked  func(from, to *Host) bool // see SetBlocked; nil: no pair is blocked
	fastest  fabric.Rate               // highest rate of the links between switches
}

// A distance holds the properties of a network that set Ultra Ethernet's defaults.
type distance struct {
	once  sync.Once
	rtt   time.Duration // round-trip time without queueing between the two hosts farthest from each other
	queue int           // limit of the longest queue, in bytes
	line  int64         // rate of the fastest NIC, in bit/s
}

// Tap calls f for every packet that a switch port starts to send or has received. f gets the
// header bytes, which it must not keep, and the length on the wire. Tap returns false if switches
// run models, because their packets have no bytes.
func (n *Network) Tap(f func(at *Port, head []byte, size int)) bool {
	for _, p := range n.parts {
		p.tap = f
	}
	return n.bytes
}

// Now returns the time since the beginning.
func (n *Network) Now() time.Duration { return n.now }

// Options returns the options of New with zero values filled in.
func (n *Network) Options() Options { return n.opts }

// Hosts returns the hosts, in the order of the topology.
func (n *Network) Hosts() []*Host { return n.hosts }

// Switches returns the switches, in the order of the topology.
func (n *Network) Switches() []*Switch { return n.switches }

// Host returns the named host, or nil.
func (n *Network) Host(name string) *Host {
	h, _ := n.byName[name].(*Host)
	return h
}

// Switch returns the named switch, or nil.
func (n *Network) Switch(name string) *Switch {
	s, _ := n.byName[name].(*Switch)
	return s
}

// Hops returns the number of packets that switches have received so far.
func (n *Network) Hops() (hops int64) {
	for _, p := range n.parts {
		hops += p.hops
	}
	return hops
}

// stream returns a source of random numbers for one consumer. It does not depend on the draws of
// other consumers.
func (n *Network) stream(consumer string) *rand.Rand { return stream(n.opts.Seed, consumer) }

// stream returns the source of random numbers for a named consumer and the seed of a run.
func stream(seed uint64, consumer string) *rand.Rand {
	h := fnv.New64a()
	h.Write([]byte(consumer))
	return rand.New(rand.NewPCG(seed, h.Sum64()))
}

// A Host is a host. Its NIC sends packets in the order of Send, at the rate of its link,
// and never drops any.
type Host struct {
	Name string
	IP   uint32

	net     *Network
	place   int // index among the hosts
	mac     fabric.MAC
	gateway fabric.MAC
	nic     *Port
	drained ring[drain]

	first *Host   // the first port of this host
	ports []*Host // all ports of this host, set in the first port; nil: it has one port

	creditors *creditors // nil: no flow to this host needs credit
}

// creditors are the flows to which a host grants credit.
type creditors struct {
	host    *Host
	asking  ring[*creditor]
	waiting ring[*creditor]        // flows without demand
	plan    func(at time.Duration) // plans the next grant
	active  bool                   // a grant is planned

	throttle *throttle // nil: grants have the rate of the host's links
}

// A throttle is the share of its link at which a receiver grants credit. It changes once per
// interval.
type throttle struct {
	rtt    time.Duration
	least  float64
	random *rand.Rand

	share  float64
	marks  float64 // average share of marked packets
	raised int     // increases since the last decrease
	next   time.Duration
	arrivals
}

// arrivals are the packets of an interval.
type arrivals struct{ all, trimmed, trimmedEarlier, marked int }

// A creditor is the receiver's state of a flow that needs credit.
type creditor struct {
	flow    *Flow
	send    func(total int64)
	target  int64
	granted int64
	most    int64 // largest credit beyond the target
	queued  bool
	idle    bool

	throttled *UEC // parameters of the host's throttle; nil: the flow has none
}

// A drain is a source that waits until fewer than the given bytes are queued in the NIC; 0: until
// it is idle.
type drain struct {
	below int
	turn  turn
}

// A turn is a source that may send one packet.
type turn interface{ send() }

// A FlowSpec describes a flow.
type FlowSpec struct {
	From, To  string // names of hosts
	Bytes     int64  // bytes of payload; 0: the flow does not end
	Transport Transport
	Tuning    *Tuning // parameters of the transport; nil: its defaults
	// Sport and Dport are the ports of the flow; zero: derived from its number.
	Sport, Dport uint16
	// Service, if not nil, is the destination. To is then its first server.
	Service *Service
	// PortSeed, if not zero, makes all source ports of the flow random; zero: consecutive ports
	// from Sport on.
	PortSeed uint64
	// Rate is the initial rate of paced transports, in bit/s of payload; zero: the
	// NIC's.
	Rate int64
	// Done, if not nil, is called when the flow has finished.
	Done func(*Flow)
	// Stats, if not nil, receives the counters of the flow and stays valid after the flow.
	Stats *FlowStats
}

// A Service is an address that several hosts serve. The switches' program selects the server of a
// packet.
type Service struct {
	Name    string
	IP      uint32   // for IPv6 the last 32 bits; hosts have the same upper bits
	Port    uint16   // 0: any port
	Servers []string // names of hosts
	Direct  bool     // the hosts themselves have the address
}

// A Flow is a transfer of bytes from one host to another.
type Flow struct {
	FlowSpec
	ID       int // counts from 1, in the order of StartFlow
	Src, Dst *Host

	*FlowStats

	// Strays counts the packets to a service that reached another server than the first packet,
	// and the answers whose source is not the service's address.
	Strays int32
	// Unchanged counts the packets that reached a server with the service's address as
	// destination, although the server does not have this address.
	Unchanged int32
	served    bool // set when a packet has reached a server

	accounted   int64 // UDP: bytes that have arrived or are lost
	net         *Network
	ahead, back headers
	planes      *[][2]headers // headers in both directions for the second and further ports; nil: the flow uses one
	sender      sender
	receiver    endpoint
	step        *step // the workload step of the flow; nil: none
	roce        *roce // nil: the flow does not use RoCE
}

// An endpoint is one end of a flow. receive must not keep the packet.
type endpoint interface{ receive(p *Packet) }

// A sender sends after start is called.
type sender interface {
	endpoint
	start()
}

// headers returns the headers of a packet that belongs to a flow.
func (p *Packet) headers() *headers {
	f := p.Flow
	switch {
	case p.plane > 0 && p.Kind == data:
		return &(*f.planes)[p.plane-1][0]
	case p.plane > 0:
		return &(*f.planes)[p.plane-1][1]
	case p.Kind == data:
		return &f.ahead
	}
	return &f.back
}

// The range of source ports. With consecutive ports, further paths lie beyond it.
const (
	firstPort   = 10000
	sourcePorts = 50000
)

// port returns the source port for a choice of path, counted from 0. Choice 0 is Sport.
func (f *Flow) port(choice uint16) uint16 {
	if f.PortSeed == 0 {
		return f.Sport + choice
	}
	return firstPort + uint16(mix(f.PortSeed+uint64(choice))%sourcePorts)
}

// mix spreads a number over all 64 bits (SplitMix64).
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// PortSeed returns the seed of the source ports of a flow or connection in a run.
func PortSeed(run, flow uint64) uint64 { return max(1, mix(mix(run)^flow)) }

// finish ends the flow in part n of the network. It is called once.
func (f *Flow) finish(n *Network) {
	f.Finished = n.now
	if f.step != nil {
		f.step.arrived(n, f)
	}
	switch {
	case f.Done == nil:
	case n.placed():
		n.deferCall(f.place(receiving), func() { f.Done(f) })
	default:
		n.callUser(func() { f.Done(f) })
	}
}

// account counts the bytes of a UDP packet that has arrived or is lost. The flow ends when all
// its bytes are counted, in any order, because UDP repeats nothing. Each part of the network
// counts the packets that it handles.
func (f *Flow) account(n *Network, p *Packet) {
	payload := int64(p.Payload)
	if sum := atomic.AddInt64(&f.accounted, payload); f.Bytes > 0 && sum >= f.Bytes && sum-payload < f.Bytes {
		f.finish(n)
	}
}

// An engine processes packets in a switch: it runs the P4 program or the model of its scheme.
// Both engines give the same results.
type engine interface {
	// ingress processes a packet that arrives or recirculates. It forwards the packet
	// and its copies with Switch.enqueue, or ends it with Switch.lose.
	ingress(p *Packet)
	// enqueued handles a packet that joins a queue.
	enqueued(p *Packet, o *Port, depth int)
	// paused handles a PFC frame from the peer of a port.
	paused(o *Port, pause bool)
	// cut removes bytes from the end of a packet's payload. It is called before enqueued.
	cut(p *Packet, bytes int)
	// cell returns the unit of queue lengths in bytes; 0: queues are counted in packets of full
	// length.
	cell() int
	// egress processes a packet that has left its queue, and forwards the packet's copies first.
	// depth is the length of the queue behind it.
	egress(p *Packet, o *Port, depth int) fate
	// forget frees the engine's state for a packet that has ended.
	forget(p *Packet)
	// register reads a register for inspection; setRegister writes it for the controller.
	register(name string, dst []uint64) ([]uint64, error)
	setRegister(name string, from, to int, value uint64) error
}

// A fate is the result of egress.
type fate int

const (
	sent  fate = iota
	round      // the packet recirculates
	gone
)

// A Switch is a switch with ports and their queues, a shared buffer, and an engine that forwards
// packets.
type Switch struct {
	Name string
	Role fabric.Role

	net    *Network
	engine engine
	ports  [fabric.MaxPort + 1]*Port
	macs   map[int]fabric.MAC
	cpu    *Port // port to and from the controller
	loop   *Port // port for packets that recirculate without a port of their own

	cellSize int           // unit of queue lengths in bytes; 0: queues are counted in packets
	up       time.Duration // uptime when the run starts

	generated int // number of generated packets

	buffer  int // size of the buffer in bytes; 0: only queues have limits
	share   int // share of the buffer for each port with a link
	used    int
	reserve int // part of the buffer that is reserved for packets after pauses
	faults  *faults
	random  *rand.Rand // random numbers for ECN marks
	count   switchCounters

	packetIn func(port int, bytes []byte)
}

// switchCounters are the counters of a switch.
type switchCounters struct {
	Received     int64 // packets from links
	Recirculated int64 // packets that entered ingress once more
	Copies       int64 // copies of packets
	CopyBytes    int64
	NoPort       int64 // packets to ports that do not exist
	MaxBuffer    int   // most bytes in use at a time

	Reordered          int64 // packets that waited in a queue paused by ConWeave
	ReorderingTimeouts int64 // paused queues that were resumed without a TAIL packet
	MaxReordering      int   // most queues of one port that were paused at the same time
}

// faults are failures of a switch that its control plane does not detect.
type faults struct {
	random *rand.Rand
	share  float64
	holes  map[[2]*Host]bool
}

// A fifo is a list of packets, linked by their next fields.
type fifo struct{ head, tail *Packet }

// An arrival is a packet on a link and its position in the schedule.
type arrival struct {
	at  time.Duration
	seq uint64
	p   *Packet
}

// A ring is a growing queue in one slice.
type ring[T any] struct {
	slots   []T // their number is a power of two
	head, n int32
}

// A Port is an egress queue of a switch or host and its end of a link. Packets that arrive at the
// port come from its peer. Ports for recirculation and to the controller have no peer.
//
// Without a queue, a packet costs one event: its arrival at the other end. While the queue is not
// empty, a second event is planned for the time at which the link is free again. Of the packets
// on the link, only the first is in the schedule.
//
// The fields are ordered by cache lines. The receiving part of the network writes the first line
// and reads no other line of this port. The sending part writes the others.
type Port struct {
	arriving event         // arrival of the first packet of wire
	wire     ring[arrival] // packets on the link; the ring holds the times, so that reading the next one does not touch its packet
	peer     *Port

	queue     fifo
	urgent    fifo  // priority packets: see Answers.First
	bytes     int32 // bytes in queue
	packets   int32
	cells     int32   // cells in queue, if the switch counts cells
	limit     int32   // limit of queue in bytes
	rateShare float32 // with Options.Scaled: rate of the link divided by the fastest rate; else 1
	paused    bool    // the peer has paused this port
	down      bool    // the link is down
	mac       fabric.MAC
	rate      int64         // bit/s
	remainder int64         // remainder of the last division by rate, carried to the next packet
	free      time.Duration // time at which the link can take the next packet
	sending   int32         // bytes that the packet being sent occupies in the queue, until free

	serving event // event at time free, planned if packets wait
	nested  uint8 // calls of serve that have not returned
	delay   time.Duration
	place   place

	net           *Network
	far           *Network // part of the network in which packets arrive
	sw            *Switch  // the node of the port: host or sw
	host          *Host
	noise         *noise        // bit errors of packets that arrive here; nil: none
	link          *Link         // nil: the port has no link and no peer
	lastDeparture time.Duration // time at which the last packet left the queue
	Number        int           // number of a switch's port; 0 at a host

	count       Counters
	fullLimit   int32         // limit at the full rate of the link
	pausedSince time.Duration // start of the current pause
	pfc         pfcState
	// stopped holds the queues that the program or model has paused, with their packets.
	// Otherwise a port has one queue, and packets leave in the order of arrival.
	stopped map[uint8]*fifo
	held    int32 // bytes in stopped; part of bytes
	// unmarked is the packet being sent, if its mark depends on the queue at time free.
	unmarked *Packet
}

// Counters are the counters of a port.
type Counters struct {
	Packets, Bytes int64         // packets and bytes sent
	Interval       time.Duration // time between the last two packets sent
	Dropped        int64         // packets dropped because of a limit
	DroppedBytes   int64
	Trimmed        int64 // packets trimmed because of a limit
	Marked         int64 // packets marked with CE
	MaxQueue       int   // longest queue in bytes
	Pauses         int64 // pauses of this port by its peer
	Paused         time.Duration
}

// A noise is the state of bit errors for packets that arrive at a port.
type noise struct {
	random *rand.Rand
	right  float64 // logarithm of the probability that a bit is correct
}

// spoils reports whether a bit of a packet is wrong.
func (e *noise) spoils(bytes int) bool {
	return e.random.Float64() < -math.Expm1(8*float64(bytes)*e.right)
}

// A Link joins two ports.
type Link struct {
	Place int // index in the topology's Links
	A, B  *Port
}

// pfcState is the PFC state of an ingress port.
type pfcState struct {
	held    int32 // bytes in the buffer that arrived through the port
	pausing bool  // the peer is paused
	sent    int64
	line    []pauseFrame // PFC frames on their way to the peer
	flight  event
}

// A pauseFrame is a PFC frame on a link.
type pauseFrame struct {
	at    time.Duration
	seq   uint64 // 0: drawn when the frame is the first on the link
	pause bool
}

// A place is the origin of events and numbers the events that it plans, with ties by place. The
// upper bits identify the origin. Place 0 uses the numbers of the schedule.
type place uint64

// placeBits is the number of bits for counting: enough for the full packets of eight
// minutes at 400 Gb/s.
const placeBits = 34

func (p *place) next(n *Network) uint64 {
	if *p == 0 {
		return n.events.next()
	}
	*p++
	return uint64(*p)
}

// newPlace returns the place of a port.
func (n *Network) newPlace() place {
	if !n.placed() {
		return 0
	}
	n.whole.places++
	return place(n.whole.places << placeBits)
}

// The two ends of a flow, as parts of a place.
const (
	sending = iota
	receiving
)

// place returns the origin of events at an end of the flow.
func (f *Flow) place(end uint64) place {
	if !f.net.placed() {
		return 0
	}
	return place(1<<63 | (2*uint64(f.ID)+end)<<placeBits)
}

// placed reports whether places order events at the same time.
func (n *Network) placed() bool { return n.opts.Ties == ByPlace }

// A part is the additional state of a network that is divided into parts, or of one such part.
type part struct {
	number int
	places uint64        // number of places assigned to ports, in the whole network
	window time.Duration // longest window

	out      [2][][]crossing // crossings to each part, in even and odd windows
	odd      int
	gain     int        // packets received from other parts minus packets sent to them
	deferred []deferred // callbacks for the end of the window

	views   [2]view // one each for even and odd windows, because a faster part may already publish the next
	barrier *barrier
}

// A view is the state that a part publishes before a window.
type view struct {
	next        time.Duration // time of the next event in this part, or of a packet sent to another part
	calls       time.Duration // time of the next callback; only used in the first part
	hasDeferred bool          // the part has deferred callbacks
	gain        int
}

// A crossing is a packet that travels from one part to another through a port. Without a packet
// it is a PFC frame of that port. Without a port it is a free packet of the pool.
type crossing struct {
	arrival
	from  *Port
	pause bool
}

// A deferred is a callback that runs at the end of the window, with the time and place of its
// cause.
type deferred struct {
	at   time.Duration
	from place
	call func()
}

// withBytes makes packets carry header bytes.
func (n *Network) withBytes() {
	n.whole.bytes = true
	for _, p := range n.whole.parts {
		p.bytes = true
	}
}

// deferCall registers a callback for the end of the window.
func (n *Network) deferCall(from place, f func()) {
	n.deferred = append(n.deferred, deferred{n.now, from, f})
}

// releaseSwitches ends the network's exclusive access to the switches.
func (n *Network) releaseSwitches() {
	for _, e := range n.held {
		e.held = false
		e.alone.Release()
	}
	n.held = n.held[:0]
}

// callUser calls a user's function, which may access the switches.
func (n *Network) callUser(f func()) {
	was := n.running
	n.running = false
	n.releaseSwitches()
	f()
	n.running = was
}

// begin counts a new packet of a host, switch or controller.
func (n *Network) begin(p *Packet) {
	p.firstSize = int32(p.Size)
	n.ledger.began.add(p)
}

// lose counts the end of a packet and frees it.
func (n *Network) lose(p *Packet, why Reason) {
	n.ledger.lost[why].add(p)
	if why == LinkDown || why == Silent || why == BlackHole || why == Corrupted {
		n.ledger.faulted = n.now
	}
	if f := p.Flow; p.Kind == data && f.Transport == UDP {
		f.account(n, p)
	}
	n.release(p)
}

// heldFor is the number of events after which the network lets other users access its switches.
const heldFor = 1 << 12
