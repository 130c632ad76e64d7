package sim

import (
	"hash/fnv"
	"math/rand/v2"
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

	bytes  bool // switches look at header bytes
	tap    func(at *Port, head []byte, size int)
	pool   *Packet
	ledger ledger
	hops   int64

	// A network whose ties are decided by place consists of parts, each a Network
	// with a clock, a schedule, switches and hosts of its own (parts.go); any other
	// is its only part.
	whole *Network
	parts []*Network
	part

	running bool        // within Run, and in nobody else's function
	held    []*program  // whose switches are the network's alone
	ns3     *ns3Numbers // nil: nobody hashes as it does
	draws   *ns3Random  // nil: each model has its own
}

// Tap lets f see every packet that a port of a switch sends, when it begins to,
// and every one that it has received: the header bytes, which are f's until it
// returns, and the length on the wire. It reports false where there are no bytes,
// since models forward.
func (n *Network) Tap(f func(at *Port, head []byte, size int)) bool {
	for _, p := range n.parts {
		p.tap = f
	}
	return n.bytes
}

// Topology is what the network was made from, all links as they were then.
func (n *Network) Topology() *fabric.Topology { return n.topology }

// Now is the time since the beginning.
func (n *Network) Now() time.Duration { return n.now }

// Options gives what the network was made with, zero values filled in.
func (n *Network) Options() Options { return n.opts }

// Hosts are the hosts, in the order of the topology.
func (n *Network) Hosts() []*Host { return n.hosts }

// Switches are the switches, in the order of the topology.
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

// Hops is the number of packets that switches have taken in so far.
func (n *Network) Hops() (hops int64) {
	for _, p := range n.parts {
		hops += p.hops
	}
	return hops
}

// stream makes the random numbers of one consumer: what others draw does not
// change them.
func (n *Network) stream(consumer string) *rand.Rand { return Stream(n.opts.Seed, consumer) }

// Stream makes the random numbers of a named consumer from the seed of a run.
func Stream(seed uint64, consumer string) *rand.Rand {
	h := fnv.New64a()
	h.Write([]byte(consumer))
	return rand.New(rand.NewPCG(seed, h.Sum64()))
}

// A Host is a host. Its NIC sends what it is given in that order, at the rate
// of its link, and never drops.
type Host struct {
	Name string
	IP   uint32

	net     *Network
	place   int // among the hosts
	mac     fabric.MAC
	gateway fabric.MAC
	nic     *Port
	drained ring[drain]
}

// A drain is a function that waits for the NIC to hold less, or with 0 to be about
// to send what it is given.
type drain struct {
	below int
	f     func()
}

// A FlowSpec is what a flow is to be.
type FlowSpec struct {
	From, To  string // hosts
	Bytes     int64  // payload; 0: without end
	Transport Transport
	Tuning    *Tuning // of the transport; nil: as usual
	// Sport and Dport are its ports; zero: some that depend on its number.
	Sport, Dport uint16
	// Rate is at what a transport that keeps a rate begins, in bit/s of payload;
	// zero: at the NIC's.
	Rate int64
	// Done is called when the flow has finished, if not nil.
	Done func(*Flow)
}

// A Flow is a number of bytes on their way from one host to another.
type Flow struct {
	FlowSpec
	ID       int // counts from 1 in the order of StartFlow
	Src, Dst *Host

	Started  time.Duration
	Finished time.Duration // when the last byte arrived, or was lost with UDP; 0: not yet

	FlowStats

	accounted   int64 // of UDP: bytes that have arrived or are lost
	net         *Network
	ahead, back headers
	sender      sender
	receiver    endpoint
	step        *step // of a workload; nil: none
}

// An endpoint is one end of a flow. It must not keep the packet.
type endpoint interface{ receive(p *Packet) }

// A sender begins to send when told so.
type sender interface {
	endpoint
	start()
}

// toward is the headers of packets of a kind.
func (f *Flow) toward(k Kind) *headers {
	if k == Data {
		return &f.ahead
	}
	return &f.back
}

// finish notes that the flow is over, which the part n of the network has seen. It
// is called once.
func (f *Flow) finish(n *Network) {
	f.Finished = n.now
	if f.step != nil {
		f.step.arrived(n)
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

// An engine decides what becomes of packets in a switch. Both kinds make the
// same of them: the P4 program, and the model of its scheme.
type engine interface {
	// ingress takes in a packet that arrives, or recirculates. It sends it and
	// its copies on with Switch.enqueue, or ends it with Switch.lose.
	ingress(p *Packet)
	// enqueued notes that a packet waits behind others.
	enqueued(p *Packet, o *Port, depth int)
	// cell is the unit that queues are counted in, in bytes; 0: packets of full
	// length.
	cell() int
	// egress lets a packet leave its queue, with others left behind. Its copies
	// are sent on first.
	egress(p *Packet, o *Port, depth int) fate
	// forget frees what the engine keeps of a packet that ends.
	forget(p *Packet)
	// register is for looking from outside, and setRegister for the controller.
	register(name string, dst []uint64) ([]uint64, error)
	setRegister(name string, from, to int, value uint64) error
}

// A fate is what becomes of a packet after egress.
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
	cpu    *Port // where the controller's packets come in, and those for it leave
	loop   *Port // for what recirculates without a port of its own

	cellSize int           // of queues as the engine counts them; 0: it counts packets
	up       time.Duration // since when it has been running when the run begins

	generated int // packets

	buffer  int // bytes; 0: no limit but those of the queues
	share   int // of each port with a link
	used    int
	reserve int // of it, for what comes after pauses
	faults  *faults
	random  *rand.Rand // for ECN
	count   SwitchCounters

	packetIn func(port int, bytes []byte)
}

// SwitchCounters are what a switch has counted.
type SwitchCounters struct {
	Received     int64 // packets from links
	Recirculated int64 // packets that entered ingress once more
	Copies       int64 // that were made of packets
	CopyBytes    int64
	MaxBuffer    int // bytes in use
}

// faults are what is wrong with a switch, unknown to its control plane.
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

// A ring is a queue that grows, in one piece.
type ring[T any] struct {
	slots   []T // a power of two of them
	head, n int32
}

// A Port is where a switch or host sends: a queue, and the link behind it. What
// comes in there is the peer's. A port for recirculation, or to the
// controller, has no peer.
//
// A packet costs one event while nobody waits: its arrival at the other end. A
// second one, when the link is free again, is planned only while the queue is
// not empty. Of the packets on the link, only the first is in the schedule.
type Port struct {
	// What arrivals need, what the queue needs, and what both do: lines of the
	// cache.
	arriving event         // of the first of wire
	wire     ring[arrival] // the packets on the link: the next one's time is at hand without a look at it
	peer     *Port

	queue   fifo
	urgent  fifo  // what goes first: see Answers.First
	bytes   int32 // of queue
	packets int32
	cells   int32 // that they fill, where the switch counts them
	limit   int32 // bytes that may wait
	paused  bool  // by the peer
	down    bool  // the link
	mac     fabric.MAC
	rate    int64         // bit/s
	rest    int64         // of the last division by rate: what a bit takes is no whole ns
	free    time.Duration // when the link has taken in the last packet

	serving event // at free, if packets wait
	net     *Network
	far     *Network // the part of it that packets arrive in
	sw      *Switch  // or
	host    *Host
	delay   time.Duration
	place   place
	left    time.Duration // when what the link has taken in left the queue
	Number  int           // of a switch; 0 at a host

	count Counters
	link  *Link
	since time.Duration // that it is paused
	pfc   pfcState
	// stopped are the queues that the program has paused, with their packets. Elsewhere
	// all queues of a port are one: packets leave in the order in which they came.
	stopped map[uint8]*fifo
}

// Counters are what a port has counted.
type Counters struct {
	Packets, Bytes int64         // sent
	Interval       time.Duration // between the last two that were
	Dropped        int64         // packets that found no room
	DroppedBytes   int64
	Marked         int64 // packets that got CE
	MaxQueue       int   // bytes
	Pauses         int64 // that it was paused
	Paused         time.Duration
}

// A Link joins two ports.
type Link struct {
	Place int // in the topology's Links
	A, B  *Port
}

// pfcState is what a switch knows of what came in at a port.
type pfcState struct {
	held    int32 // bytes of it in the buffer
	pausing bool  // the peer has been told to pause
	sent    int64
	line    []pauseFrame // on their way to the peer
	flight  event
}

// A pauseFrame is a PFC frame on its way.
type pauseFrame struct {
	at    time.Duration
	seq   uint64 // 0: drawn when it comes to be the first of its line
	pause bool
}

// A place numbers what is planned there, where ties are decided by place; 0 takes
// the numbers of the schedule. The upper bits say which it is.
type place uint64

// placeBits are left for counting: a port at 400 Gb/s sends so many full packets
// in eight minutes.
const placeBits = 34

func (p *place) next(n *Network) uint64 {
	if *p == 0 {
		return n.events.next()
	}
	*p++
	return uint64(*p)
}

// newPlace is the place of a port.
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

// place is the number by which an end of the flow orders its events.
func (f *Flow) place(end uint64) place {
	if !f.net.placed() {
		return 0
	}
	return place(1<<63 | (2*uint64(f.ID)+end)<<placeBits)
}

// placed reports whether ties are decided by place.
func (n *Network) placed() bool { return n.opts.Ties == ByPlace }

// A part is what a network is, that is a part of another one or has parts.
type part struct {
	number int
	places uint64        // of ports, that the whole has given out
	window time.Duration // the longest that the whole may have

	out  [2][][]crossing // to each part, in even and odd windows
	odd  int
	gain int        // what came from other parts, less what went there
	told []deferred // for those outside

	views   [2]view // in even and odd windows: who is ahead writes the other one
	meeting *meeting
}

// A view is what a part shows to all before a window.
type view struct {
	next  time.Duration // its next event, here or elsewhere
	calls time.Duration // when somebody outside is next to be called: the first part knows
	told  bool          // somebody outside is to be told
	gain  int
}

// A crossing is a packet that leaves a part by a port; without a packet, a PFC
// frame of that port; without a port, a packet that is of use to nobody.
type crossing struct {
	arrival
	from  *Port
	pause bool
}

// A deferred is something to be told outside, which has happened at a time and
// place.
type deferred struct {
	at   time.Duration
	from place
	call func()
}

// withBytes notes that switches look at header bytes.
func (n *Network) withBytes() {
	n.whole.bytes = true
	for _, p := range n.whole.parts {
		p.bytes = true
	}
}

// defers has something called after the window.
func (n *Network) defers(from place, f func()) {
	n.told = append(n.told, deferred{n.now, from, f})
}

// letGo lets others at the switches.
func (n *Network) letGo() {
	for _, e := range n.held {
		e.held = false
		e.alone.Release()
	}
	n.held = n.held[:0]
}

// outside calls something that is not the simulator's own, and may want the
// switches.
func (n *Network) outside(f func()) {
	was := n.running
	n.running = false
	n.letGo()
	f()
	n.running = was
}

// begin notes a packet that hosts, switches or the controller have made.
func (n *Network) begin(p *Packet) {
	p.born = int32(p.Size)
	n.ledger.began.add(p)
}

// lose ends a packet.
func (n *Network) lose(p *Packet, why Reason) {
	n.ledger.lost[why].add(p)
	if f := p.Flow; p.Kind == Data && f.Transport == UDP {
		f.account(n, p)
	}
	n.release(p)
}

// heldFor is how many events at most others wait who want to look at a switch.
const heldFor = 1 << 12
