package sim

import (
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"time"

	"github.com/p4lb/p4lb/fabric"
)

// Options are what New needs beside the topology. The zero value works.
type Options struct {
	Seed uint64
	// MTU is the bytes of the largest IP packet of hosts; zero: 1500.
	MTU int
	// Queue is the bytes that wait at a port at most, where its link states no
	// number of packets, which count as an MTU each. Zero: the port's share of
	// the switch's buffer, and without one 64 packets.
	Queue fabric.Size
	ECN   ECN
	PFC   PFC
	// Answers says how switches and NICs treat what receivers send.
	Answers Answers
	// Hash is what flows' paths come from where models choose by hash.
	Hash Hash
	// Alpha, if not zero, limits each queue of a switch with a shared buffer to
	// this many times what is free of it, in place of its own limit.
	Alpha   float64
	Virtual Virtual
	// ByMAC makes hosts send to each other's MACs, as on one link, and not to that of
	// their switch.
	ByMAC bool
	// Ties says what comes first of two events at the same time.
	Ties Ties
	// Cut has each packet take whole nanoseconds on a line, what is left of its
	// last one lost, so that packets of one size take equally long. Otherwise the
	// next packet makes up for it, and lines carry what they say.
	Cut bool
	// Cores is on how many cores a run goes on at once, where ties are decided by
	// place; the bytes are the same on any number. Zero: one.
	Cores int
	// CPU is the port of switches that leads to the controller; zero: 255.
	CPU int
}

// An ECN says when switches mark packets that are capable of it. A queue of
// fewer than Min bytes marks none, one of Max or more all, in between a share
// that rises to P. Min = Max is DCTCP's threshold K; zero values mark nothing.
type ECN struct {
	Min, Max fabric.Size
	P        float64
	// Dequeue decides when a packet leaves the queue, by what it leaves behind,
	// and not when it comes, by what it finds: the mark then tells of the queue as
	// it is, one queueing delay later than it would otherwise set out.
	Dequeue bool
}

// An Answers says how acknowledgments, Nacks and notices of congestion are
// treated: as any other packet where nothing is said.
type Answers struct {
	// Hashed lets them take the path of their flow's hash, whatever the scheme
	// does with data, and keeps the scheme from seeing them. It is for models.
	Hashed bool
	// First lets them pass what waits in queues, and in those of NICs. They are
	// then neither paused nor counted for pauses, and no queue's length has them.
	First bool
}

// A Hash is a way to make a path of the addresses and ports of a flow.
type Hash int

// The hashes.
const (
	HashCRC32 Hash = iota // as the programs do
	HashNS3               // MurmurHash3 as in ns-3's switches for RDMA: see ns3.go
)

// A PFC pauses the other end of a link when too much of what it has sent waits
// in the switch. With it, switches limit no queue, only the buffer.
type PFC struct {
	On bool
	// Pause is the bytes of an ingress port at which its peer is paused. If it
	// is zero, that is Alpha times what is free of the buffer, and without one
	// 256 KiB.
	Pause fabric.Size
	Alpha float64 // zero: 1/16
	// Resume is how far below that its peer goes on; zero: two packets.
	Resume fabric.Size
	// Headroom is the bytes that may still come after a pause; zero: what the
	// link brings in two delays, and two packets of both ends.
	Headroom fabric.Size
}

// A Virtual says how fast packets come round within a switch: through ports
// without interface. All share no rate: each has its own.
type Virtual struct {
	Rate    fabric.Rate   // zero: 100 Gbps
	Latency time.Duration // zero: 1 µs
}

func (o *Options) validate() error {
	if o.MTU < 0 || o.MTU > 0 && o.MTU < 128 || o.MTU > 9216 {
		return fmt.Errorf("an MTU of %d is outside 128..9216", o.MTU)
	}
	if o.Alpha < 0 || o.PFC.Alpha < 0 || o.ECN.P < 0 || o.ECN.P > 1 || o.ECN.Max < o.ECN.Min {
		return errors.New("a share or threshold of ECN, PFC or buffer makes no sense")
	}
	if o.MTU == 0 {
		o.MTU = 1500
	}
	if o.ECN.P == 0 {
		o.ECN.P = 1
	}
	if o.PFC.Alpha == 0 {
		o.PFC.Alpha = 1.0 / 16
	}
	if o.PFC.Resume == 0 {
		o.PFC.Resume = fabric.Size(2 * (o.MTU + ethernetLen))
	}
	if o.Virtual.Rate == 0 {
		o.Virtual.Rate = 100 * fabric.Gbps
	}
	if o.Virtual.Latency == 0 {
		o.Virtual.Latency = time.Microsecond
	}
	if o.CPU == 0 {
		o.CPU = 255
	}
	return nil
}

// queue is the limit of a queue whose share of a buffer is known, or 0.
func (o *Options) queue(share int) int {
	switch {
	case o.Queue > 0:
		return int(o.Queue)
	case share > 0:
		return share
	}
	return 64 * (o.MTU + ethernetLen)
}

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
}

// New makes the network of a topology. Its switches drop everything until they
// are given programs or models.
func New(t *fabric.Topology, o Options) (*Network, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	n := &Network{topology: t, opts: o, byName: map[string]any{}}
	n.whole, n.parts = n, []*Network{n}
	for i := range t.Switches {
		s := newSwitch(n, &t.Switches[i])
		n.switches = append(n.switches, s)
		n.byName[s.Name] = s
	}
	for i := range t.Hosts {
		h := newHost(n, &t.Hosts[i])
		n.hosts = append(n.hosts, h)
		n.byName[h.Name] = h
	}
	for i := range t.Links {
		n.links = append(n.links, n.connect(i, &t.Links[i]))
	}
	for _, h := range n.hosts {
		h.gateway = h.nic.peer.mac
	}
	n.events.fetches = len(n.hosts) > fitsCache
	if o.Hash == HashNS3 {
		n.ns3 = newNS3Numbers(n)
	}
	if o.Ties == ByPlace {
		n.divide(max(1, o.Cores))
	}
	return n, nil
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

// fitsCache is how many hosts a network may have whose packets and flows are in
// the cache anyway. To fetch them ahead would be a seventh of a hop there.
const fitsCache = 64

// Topology is what the network was made from, all links as they were then.
func (n *Network) Topology() *fabric.Topology { return n.topology }

// Now is the time since the beginning.
func (n *Network) Now() time.Duration { return n.now }

// Options are those that the network was made with, zero values filled in.
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

// At calls f at a time, or now if that is past.
func (n *Network) At(t time.Duration, f func()) {
	c := &call{net: n, f: f}
	c.ev.what = c
	n.events.plan(&c.ev, max(t, n.now))
}

// Every calls f after each interval, from now on, until it returns false.
func (n *Network) Every(interval time.Duration, f func(now time.Duration) bool) {
	var t *Timer
	t = n.NewTimer(func() {
		if f(n.now) {
			t.After(interval)
		}
	})
	t.After(interval)
}

// A call is a function that is called once.
type call struct {
	net *Network
	ev  event
	f   func()
}

func (c *call) fire()     { c.net.outside(c.f) }
func (c *call) soon(bool) {}

// heldFor is how many events at most others wait who want to look at a switch.
const heldFor = 1 << 12

// Run lets everything happen up to a time, and checks that no byte was lost
// without a reason. It ends earlier if nothing is left to happen, or after
// Stop. Calling it again goes on.
func (n *Network) Run(until time.Duration) error {
	n.stopped = false
	if n.placed() {
		return n.runParts(until)
	}
	n.running = true
	defer func() {
		n.running = false
		n.letGo()
	}()
	for turn := 1; !n.stopped; turn++ {
		ev, at := n.events.pop(until)
		if ev == nil {
			break
		}
		n.now = at
		ev.what.fire()
		if turn%heldFor == 0 {
			n.letGo()
		}
	}
	if !n.stopped && until != never {
		n.now = max(n.now, until)
	}
	return n.Audit()
}

// Stop ends Run after the event that calls it.
func (n *Network) Stop() { n.stopped = true }

// Forever is a time for Run: until nothing is left to happen.
const Forever = never

// stream makes the random numbers of one consumer: what others draw does not
// change them.
func (n *Network) stream(consumer string) *rand.Rand { return Stream(n.opts.Seed, consumer) }

// Stream makes the random numbers of a named consumer from the seed of a run.
func Stream(seed uint64, consumer string) *rand.Rand {
	h := fnv.New64a()
	h.Write([]byte(consumer))
	return rand.New(rand.NewPCG(seed, h.Sum64()))
}
