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

// A Network is a simulated network. It is for one goroutine.
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

	bytes  bool      // switches read header bytes
	upper  *[12]byte // what IPv6 addresses have in common; nil: IPv4
	tap    func(at *Port, head []byte, size int)
	pool   *Packet
	ledger ledger
	hops   int64

	// With ties by place, a network consists of parts, each a Network with a clock, a
	// schedule, switches and hosts of its own (parts.go). Without, it is its only part.
	whole *Network
	parts []*Network
	part

	running bool        // within Run, and not in a callback
	held    []*program  // with exclusive access to their switches
	ns3     *ns3Numbers // nil: paths are not hashed as in ns-3
	draws   *ns3Random  // nil: each model has a source of its own

	distance *distance
	tunings  *tunings
	blocked  func(from, to *Host) bool // see SetBlocked; nil: no pair is
	fastest  fabric.Rate               // of the links between switches
}

// A distance is properties of a network from which Ultra Ethernet has its defaults.
type distance struct {
	once  sync.Once
	rtt   time.Duration // without queues, between the hosts that are farthest from each other
	queue int           // bytes of the longest queue
	line  int64         // bit/s of the fastest NIC
}

// Tap calls f for every packet that a port of a switch begins to send or has received,
// with the header bytes, which f must not keep, and the length on the wire. It returns
// false if models forward: they have no bytes.
func (n *Network) Tap(f func(at *Port, head []byte, size int)) bool {
	for _, p := range n.parts {
		p.tap = f
	}
	return n.bytes
}

// Topology returns the topology of New, with the links as they were then.
func (n *Network) Topology() *fabric.Topology { return n.topology }

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

// stream returns the random numbers of one consumer. They do not depend on the draws of
// others.
func (n *Network) stream(consumer string) *rand.Rand { return stream(n.opts.Seed, consumer) }

// stream returns the random numbers of a named consumer, given the seed of a run.
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
	place   int // among the hosts
	mac     fabric.MAC
	gateway fabric.MAC
	nic     *Port
	drained ring[drain]

	first *Host   // of the ports of one host
	ports []*Host // all of them, of the first port; nil: it is the only one

	creditors *creditors // nil: no flow needs credit
}

// creditors are the flows that a host grants credit.
type creditors struct {
	host    *Host
	asking  ring[*creditor]
	waiting ring[*creditor]        // without demand
	plan    func(at time.Duration) // of the next grant
	active  bool                   // one is planned
}

// A creditor is the receiver's part of a flow.
type creditor struct {
	flow    *Flow
	segment int
	send    func(total int64)
	target  int64
	granted int64
	most    int64 // beyond the target
	queued  bool
	idle    bool
}

// A drain is a function that waits for the NIC to queue fewer bytes, or with 0 to be
// free.
type drain struct {
	below int
	f     func()
}

// A FlowSpec describes a flow.
type FlowSpec struct {
	From, To  string // hosts
	Bytes     int64  // payload; 0: without end
	Transport Transport
	Tuning    *Tuning // of the transport; nil: as usual
	// Sport and Dport are its ports; zero: derived from its number.
	Sport, Dport uint16
	// Service, if not nil, is the destination, and To the first of its servers.
	Service *Service
	// PortSeed draws all source ports of the flow; zero: consecutive ports from Sport on.
	PortSeed uint64
	// Rate is the initial rate of paced transports, in bit/s of payload; zero: the
	// NIC's.
	Rate int64
	// Done is called when the flow has finished, if not nil.
	Done func(*Flow)
	// Stats, if not nil, are the counters of the flow. They outlive the flow.
	Stats *FlowStats
}

// A Service is an address that several hosts serve. The program of the switches selects a
// server for the packets to it.
type Service struct {
	Name    string
	IP      uint32
	Port    uint16   // 0: any
	Servers []string // hosts
	Direct  bool     // the hosts have the address themselves
}

// A Flow is a transfer of bytes from one host to another.
type Flow struct {
	FlowSpec
	ID       int // counts from 1 in the order of StartFlow
	Src, Dst *Host

	*FlowStats

	// Strays counts packets of a flow to a service at another server than its first, and
	// answers from another address than the service's.
	Strays int64
	// Unchanged counts packets at servers that still have the address of the service,
	// which the servers do not have.
	Unchanged int64
	served    bool // a packet has reached a server

	accounted   int64 // of UDP: bytes that have arrived or are lost
	net         *Network
	ahead, back headers
	planes      [][2]headers // ahead and back through the second and further ports
	sender      sender
	receiver    endpoint
	step        *step // of a workload; nil: none
	roce        *roce // nil: nothing is behind UDP
}

// An endpoint is one end of a flow. It must not keep the packet.
type endpoint interface{ receive(p *Packet) }

// A sender sends from start on.
type sender interface {
	endpoint
	start()
}

// headers returns the headers of the packet, which has a flow.
func (p *Packet) headers() *headers {
	f := p.Flow
	switch {
	case p.plane > 0 && p.Kind == data:
		return &f.planes[p.plane-1][0]
	case p.plane > 0:
		return &f.planes[p.plane-1][1]
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

// port returns the source port of a choice of paths, from 0. Choice 0 is Sport.
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

// finish ends the flow, in the part n of the network. It is called once.
func (f *Flow) finish(n *Network) {
	f.Finished = n.now
	if f.step != nil {
		f.step.arrived(n, f)
	}
	switch {
	case f.Done == nil:
	case n.placed():
		n.defers(f.place(receiving), func() { f.Done(f) })
	default:
		n.outside(func() { f.Done(f) })
	}
}

// account notes that a packet of a UDP flow has arrived or is lost. The flow ends when
// all of its bytes are accounted for, in any order: nothing is repeated. Parts of the
// network account for the packets that they see.
func (f *Flow) account(n *Network, p *Packet) {
	payload := int64(p.Payload)
	if sum := atomic.AddInt64(&f.accounted, payload); f.Bytes > 0 && sum >= f.Bytes && sum-payload < f.Bytes {
		f.finish(n)
	}
}

// An engine processes packets in a switch: the P4 program, or the model of its scheme.
// Both give the same results.
type engine interface {
	// ingress processes a packet that arrives or recirculates. It forwards the packet
	// and its copies with Switch.enqueue, or ends it with Switch.lose.
	ingress(p *Packet)
	// enqueued handles a packet that joins a queue.
	enqueued(p *Packet, o *Port, depth int)
	// paused handles a PFC frame of the neighbour at a port.
	paused(o *Port, pause bool)
	// cut takes bytes off the end of a packet's payload, before enqueued.
	cut(p *Packet, bytes int)
	// cell returns the unit of queue lengths, in bytes; 0: packets of full length.
	cell() int
	// egress processes a packet that leaves its queue, and forwards its copies first.
	// depth is the queue behind it.
	egress(p *Packet, o *Port, depth int) fate
	// forget frees the engine's state of a packet that ends.
	forget(p *Packet)
	// register reads a register for inspection; setRegister writes it for the controller.
	register(name string, dst []uint64) ([]uint64, error)
	setRegister(name string, from, to int, value uint64) error
}

// A fate is the result of egress.
type fate int

const (
	sent  fate = iota
	round      // it recirculates
	gone
)

// A Switch is a switch: ports with queues, a buffer that they share, and an
// engine that decides.
type Switch struct {
	Name string
	Role fabric.Role

	net    *Network
	engine engine
	ports  [fabric.MaxPort + 1]*Port
	macs   map[int]fabric.MAC
	cpu    *Port // to and from the controller
	loop   *Port // for packets that recirculate without a port of their own

	cellSize int           // unit of queue lengths in bytes; 0: packets
	up       time.Duration // uptime when the run begins

	generated int // packets

	buffer  int // bytes; 0: only queues have limits
	share   int // of each port with a link
	used    int
	reserve int // of it, for packets after pauses
	faults  *faults
	random  *rand.Rand // for ECN
	count   switchCounters

	packetIn func(port int, bytes []byte)
}

// switchCounters are the counters of a switch.
type switchCounters struct {
	Received     int64 // packets from links
	Recirculated int64 // packets that entered ingress once more
	Copies       int64 // of packets
	CopyBytes    int64
	MaxBuffer    int // bytes in use

	Reordered          int64 // packets that waited in a paused queue of ConWeave
	ReorderingTimeouts int64 // such queues that were resumed without a TAIL
	MaxReordering      int   // queues of a port that were paused at once
}

// faults are failures of a switch that its control plane does not know of.
type faults struct {
	random *rand.Rand
	share  float64
	holes  map[[2]*Host]bool
}

// A fifo is a list of packets, linked by their next.
type fifo struct{ head, tail *Packet }

// An arrival is a packet on a link, with its place in the schedule.
type arrival struct {
	at  time.Duration
	seq uint64
	p   *Packet
}

// A ring is a growing queue in one slice.
type ring[T any] struct {
	slots   []T // a power of two of them
	head, n int32
}

// A Port is a queue of a switch or host and the link behind it. Its peer sends the
// packets that arrive at it. Ports for recirculation and to the controller have no peer.
//
// Without a queue, a packet costs one event: its arrival at the other end. A second
// event, when the link is free again, is planned only while the queue is not empty. Of
// the packets on the link, only the first is in the schedule.
//
// The fields are ordered by cache lines. The part of the network in which packets arrive
// writes the first line, and reads no other of this port. The part of the sender writes
// the others.
type Port struct {
	arriving event         // of the first of wire
	wire     ring[arrival] // the packets on the link: the next one's time is at hand without a look at it
	peer     *Port

	queue   fifo
	urgent  fifo  // packets with priority: see Answers.First
	bytes   int32 // of queue
	packets int32
	cells   int32   // of the queue, if the switch counts them
	limit   int32   // bytes that may wait
	part    float32 // its rate as a share of the fastest's, with Options.Scaled; else 1
	paused  bool    // by the peer
	down    bool    // the link
	mac     fabric.MAC
	rate    int64         // bit/s
	rest    int64         // remainder of the last division by rate
	free    time.Duration // when the link can take the next packet

	serving event // at free, if packets wait
	delay   time.Duration
	place   place

	net    *Network
	far    *Network // the part in which packets arrive
	sw     *Switch  // or
	host   *Host
	noise  *noise        // of packets that arrive here; nil: no bit errors
	link   *Link         // nil: there is none, and no peer
	left   time.Duration // when the last packet left the queue
	Number int           // of a switch; 0 at a host

	count Counters
	room  int32         // limit at the full rate
	since time.Duration // that it is paused
	pfc   pfcState
	// stopped are the queues that the program or model has paused, with their packets.
	// Elsewhere all queues of a port are one: packets leave in the order in which they came.
	stopped map[uint8]*fifo
	held    int32 // bytes in stopped, which bytes contains
}

// Counters are the counters of a port.
type Counters struct {
	Packets, Bytes int64         // sent
	Interval       time.Duration // between the last two of them
	Dropped        int64         // packets that exceeded a limit
	DroppedBytes   int64
	Trimmed        int64 // packets that exceeded a limit and went on without payload
	Marked         int64 // packets that got CE
	MaxQueue       int   // bytes
	Pauses         int64 // of the port by its peer
	Paused         time.Duration
}

// A noise is the bit errors of a link in the direction to a port.
type noise struct {
	random *rand.Rand
	right  float64 // the logarithm of the probability that a bit is right
}

// spoils reports whether a bit of a packet is wrong.
func (e *noise) spoils(bytes int) bool {
	return e.random.Float64() < -math.Expm1(8*float64(bytes)*e.right)
}

// A Link joins two ports.
type Link struct {
	Place int // in the topology's Links
	A, B  *Port
}

// pfcState is the PFC state of an ingress port.
type pfcState struct {
	held    int32 // bytes from the port in the buffer
	pausing bool  // the peer is paused
	sent    int64
	line    []pauseFrame // on their way to the peer
	flight  event
}

// A pauseFrame is a PFC frame on its way.
type pauseFrame struct {
	at    time.Duration
	seq   uint64 // 0: drawn when the frame is the first of its line
	pause bool
}

// A place numbers the events that it plans, with ties by place. The upper bits identify
// the place. 0 uses the numbers of the schedule.
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

// The ends of a flow.
const (
	sending = iota
	receiving
)

// place returns the place of an end of the flow.
func (f *Flow) place(end uint64) place {
	if !f.net.placed() {
		return 0
	}
	return place(1<<63 | (2*uint64(f.ID)+end)<<placeBits)
}

// placed reports whether places order events at the same time.
func (n *Network) placed() bool { return n.opts.Ties == ByPlace }

// A part is the state of a network that is divided, or is a part of another one.
type part struct {
	number int
	places uint64        // assigned to ports, in the whole network
	window time.Duration // length limit

	out  [2][][]crossing // to each part, in even and odd windows
	odd  int
	gain int        // packets from other parts less packets to them
	told []deferred // callbacks after the window

	views   [2]view // in even and odd windows, so that a faster part writes the other one
	barrier *barrier
}

// A view is the state that a part publishes before a window.
type view struct {
	next  time.Duration // its next event, here or elsewhere
	calls time.Duration // the next callback; only of the first part
	told  bool          // callbacks are deferred
	gain  int
}

// A crossing is a packet that leaves a part through a port; without a packet, a PFC
// frame of that port; without a port, a free packet.
type crossing struct {
	arrival
	from  *Port
	pause bool
}

// A deferred is a callback about something that has happened at a time and place.
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

// defers plans a callback after the window.
func (n *Network) defers(from place, f func()) {
	n.told = append(n.told, deferred{n.now, from, f})
}

// letGo ends the exclusive access to the switches.
func (n *Network) letGo() {
	for _, e := range n.held {
		e.held = false
		e.alone.Release()
	}
	n.held = n.held[:0]
}

// outside makes a callback, which may access the switches.
func (n *Network) outside(f func()) {
	was := n.running
	n.running = false
	n.letGo()
	f()
	n.running = was
}

// begin accounts for a new packet of a host, switch or controller.
func (n *Network) begin(p *Packet) {
	p.born = int32(p.Size)
	n.ledger.began.add(p)
}

// lose ends a packet.
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

// heldFor is the number of events after which other users of a switch get access.
const heldFor = 1 << 12
