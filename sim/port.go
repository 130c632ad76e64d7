package sim

import (
	"errors"
	"math"
	"time"
	"unsafe"

	"github.com/p4lb/p4lb/dataplane/asm"
	"github.com/p4lb/p4lb/fabric"
)

// A fifo is a list of packets, linked by their next.
type fifo struct{ head, tail *Packet }

func (q *fifo) push(p *Packet) {
	p.next = nil
	if q.head == nil {
		q.head = p
	} else {
		q.tail.next = p
	}
	q.tail = p
}

func (q *fifo) pop() *Packet {
	p := q.head
	q.head, p.next = p.next, nil
	return p
}

// An arrival is a packet on a link, with its place in the schedule.
type arrival struct {
	at  time.Duration
	seq uint64
	p   *Packet
}

// A transit is the packets on a link, in a ring that grows: the next one's time is
// at hand without a look at that packet.
type transit struct {
	ring    []arrival // a power of two of them
	head, n int32
}

func (w *transit) first() *arrival { return &w.ring[w.head] }

func (w *transit) push(a arrival) {
	if int(w.n) == len(w.ring) {
		w.grow()
	}
	w.ring[int(w.head+w.n)&(len(w.ring)-1)] = a
	w.n++
}

func (w *transit) grow() {
	ring := make([]arrival, max(4, 2*len(w.ring)))
	for i := range w.ring {
		ring[i] = w.ring[(int(w.head)+i)&(len(w.ring)-1)]
	}
	w.ring, w.head = ring, 0
}

func (w *transit) pop() *Packet {
	a := &w.ring[w.head]
	p := a.p
	a.p = nil
	w.head = int32(int(w.head+1) & (len(w.ring) - 1))
	w.n--
	return p
}

// each calls f for all packets.
func (w *transit) each(f func(*Packet)) {
	for i := range w.n {
		f(w.ring[int(w.head+i)&(len(w.ring)-1)].p)
	}
}

// A Port is where a switch or host sends: a queue, and the link behind it. What
// comes in there is the peer's. A port of a switch that leads round, or to the
// controller, has no peer.
//
// A packet costs one event while nobody waits: its arrival at the other end. A
// second one, when the link is free again, is planned only while the queue is
// not empty. Of the packets on the link, only the first is in the schedule.
type Port struct {
	// What arrivals need, what the queue needs, and what both do: lines of the
	// cache.
	arriving event // of the first of wire
	wire     transit
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

// serving and arriving have a handler each.
type (
	serveHandler  Port
	arriveHandler Port
)

func (h *serveHandler) fire()  { (*Port)(h).serve() }
func (h *arriveHandler) fire() { (*Port)(h).arrive() }

func (h *serveHandler) soon(next bool) {
	p := h.queue.head
	switch {
	case p == nil:
	case next:
		asm.Prefetch(unsafe.Pointer(p.dp))
	default:
		p.fetch(h.net.bytes)
	}
}

func (h *arriveHandler) soon(next bool) {
	switch {
	case h.wire.n == 0:
	case !next:
		h.wire.first().p.fetch(h.net.bytes)
	case h.peer != nil && h.peer.host != nil:
		asm.Prefetch(unsafe.Pointer(h.wire.first().p.Flow))
	}
}

func (n *Network) newPort(number int) *Port {
	p := &Port{Number: number, net: n, far: n, place: n.newPlace()}
	p.serving.what = (*serveHandler)(p)
	p.arriving.what = (*arriveHandler)(p)
	return p
}

// Peer returns the host or switch at the other end and its port; both names are
// empty for a port without link.
func (o *Port) Peer() (name string, port int) {
	switch {
	case o.peer == nil:
		return "", 0
	case o.peer.host != nil:
		return o.peer.host.Name, 0
	}
	return o.peer.sw.Name, o.peer.Number
}

// Switch is the name of the switch that has the port, "" at a host.
func (o *Port) Switch() string {
	if o.sw == nil {
		return ""
	}
	return o.sw.Name
}

// Far is the port at the other end, or nil.
func (o *Port) Far() *Port { return o.peer }

// Link is the link at the port, or nil.
func (o *Port) Link() *Link { return o.link }

// Rate is that of the link.
func (o *Port) Rate() fabric.Rate { return fabric.Rate(o.rate) }

// Queue is the number of bytes that wait.
func (o *Port) Queue() int { return int(o.bytes) }

// QueuePackets is the number of packets that wait.
func (o *Port) QueuePackets() int { return int(o.packets) }

// Limit is the number of bytes that may wait.
func (o *Port) Limit() int { return int(o.limit) }

// Paused reports whether the port may not send (PFC).
func (o *Port) Paused() bool { return o.paused }

// Counters are the port's.
func (o *Port) Counters() Counters {
	c := o.count
	if o.paused {
		c.Paused += o.net.now - o.since
	}
	return c
}

// accept puts a packet into the queue, which must have room.
func (o *Port) accept(p *Packet) {
	o.queue.push(p)
	o.bytes += int32(p.Size)
	o.packets++
	if o.sw != nil {
		o.cells += o.sw.cellsOf(p.Size)
	}
	o.count.MaxQueue = max(o.count.MaxQueue, int(o.bytes))
	o.wake()
}

// hasten puts a packet before all that waits, but for others like it.
func (o *Port) hasten(p *Packet) {
	o.urgent.push(p)
	o.wake()
}

// waiting is the number of bytes that wait, with what goes first.
func (o *Port) waiting() uint32 {
	n := uint32(o.bytes)
	for p := o.urgent.head; p != nil; p = p.next {
		n += uint32(p.Size)
	}
	return n
}

// idle reports whether there is nothing that the port may send.
func (o *Port) idle() bool { return (o.queue.head == nil || o.paused) && o.urgent.head == nil }

// wake lets the port send if it can: at once, or when the link is free.
func (o *Port) wake() {
	if o.serving.planned() || o.idle() && (o.host == nil || !o.host.wanted()) {
		return
	}
	if o.free > o.net.now {
		o.net.events.planAs(&o.serving, o.free, o.place.next(o.net))
		return
	}
	o.serve()
}

// serve sends the first packet of the queue.
func (o *Port) serve() {
	if o.idle() {
		if o.host != nil {
			o.host.freed()
		}
		return
	}
	var p *Packet
	if o.urgent.head != nil {
		p = o.urgent.pop()
	} else {
		p = o.queue.pop()
		o.bytes -= int32(p.Size)
		o.packets--
		if o.sw != nil {
			o.cells -= o.sw.cellsOf(p.Size)
		}
	}
	if o.sw != nil {
		o.sw.depart(p, o)
	} else {
		o.host.depart(p, o)
	}
	o.wake()
}

// transmit puts a packet on the link, which is free.
func (o *Port) transmit(p *Packet) {
	o.count.Packets++
	o.count.Bytes += int64(p.Size)
	o.count.Interval, o.left = o.net.now-o.left, o.net.now
	o.free = o.net.now + o.time(p.Size)
	if o.net.tap != nil && o.sw != nil {
		o.net.tap(o, p.head, p.Size)
	}
	if o.down {
		o.net.lose(p, LinkDown)
		return
	}
	a := arrival{o.free + o.delay, o.place.next(o.net), p}
	if o.far != o.net {
		o.net.cross(o.far, crossing{arrival: a, from: o})
		return
	}
	o.carry(a)
}

// carry lets a packet travel that is on the link.
func (o *Port) carry(a arrival) {
	o.wire.push(a)
	if !o.arriving.planned() {
		o.far.events.planAs(&o.arriving, a.at, a.seq)
	}
}

// time is what a packet takes to be sent. What is lost to whole ns is made up
// for by the next, if by any.
func (o *Port) time(bytes int) time.Duration {
	bits := int64(bytes)*8*int64(time.Second) + o.rest
	t := bits / o.rate
	if !o.net.opts.Cut {
		o.rest = bits - t*o.rate
	}
	return time.Duration(t)
}

// arrive hands the first packet on the link over.
func (o *Port) arrive() {
	p := o.wire.pop()
	if o.wire.n > 0 {
		next := o.wire.first()
		o.far.events.planAs(&o.arriving, next.at, next.seq)
	}
	if o.net.tap != nil && o.peer != nil && o.peer.sw != nil {
		o.net.tap(o.peer, p.head, p.Size)
	}
	switch {
	case o.peer == nil:
		o.sw.comeRound(p)
	case o.peer.sw != nil:
		o.peer.sw.receive(p, o.peer)
	default:
		o.peer.host.receive(p)
	}
}

// A Link joins two ports.
type Link struct {
	Place int // in the topology's Links
	A, B  *Port
}

// connect makes the link at a place of the topology.
func (n *Network) connect(i int, l *fabric.Link) *Link {
	link := &Link{Place: i}
	link.A, link.B = n.end(l.A, l), n.end(l.B, l)
	link.A.peer, link.B.peer = link.B, link.A
	link.A.link, link.B.link = link, link
	link.A.down, link.B.down = l.Down, l.Down
	return link
}

// end makes the port at an end of a link.
func (n *Network) end(e fabric.End, l *fabric.Link) *Port {
	p := n.newPort(e.Port)
	p.rate, p.delay = int64(l.Rate), l.Delay
	p.limit = clampQueue(n.opts.queue(0))
	switch node := n.byName[e.Node].(type) {
	case *Host:
		p.host, node.nic = node, p
		p.mac = node.mac
	case *Switch:
		p.sw, node.ports[e.Port] = node, p
		p.mac = node.macs[e.Port]
		p.limit = clampQueue(n.opts.queue(node.share))
	}
	if l.Queue > 0 {
		p.limit = clampQueue(l.Queue * n.frame())
	}
	return p
}

// clampQueue is a number of bytes that may wait, at most 2 GiB.
func clampQueue(bytes int) int32 { return int32(min(bytes, math.MaxInt32)) }

// frame is the length of the largest packet of hosts.
func (n *Network) frame() int { return n.opts.MTU + ethernetLen }

// Links are the links, in the order of the topology.
func (n *Network) Links() []*Link { return n.links }

// Down reports whether the link has failed.
func (l *Link) Down() bool { return l.A.down }

// Fail cuts the link: what is on it is lost, and what is sent to it.
func (l *Link) Fail() {
	l.A.down, l.B.down = true, true
	l.A.cut()
	l.B.cut()
}

// Restore repairs the link.
func (l *Link) Restore() { l.A.down, l.B.down = false, false }

// SetRate makes the link faster or slower, from the next packet on in either
// direction. Hosts that send by the rate of their link keep to what it was when
// a flow began.
func (l *Link) SetRate(r fabric.Rate) error {
	if r <= 0 {
		return errors.New("a link's rate is above 0")
	}
	for _, o := range []*Port{l.A, l.B} {
		o.rate, o.rest = int64(r), 0
		if o.sw != nil {
			o.sw.reserve = 0 // anew: headroom depends on rates
		}
	}
	return nil
}

// cut loses what is on the link, PFC frames too, and ends any pause: nobody is
// there to do it.
func (o *Port) cut() {
	o.net.events.cancel(&o.arriving)
	o.net.events.cancel(&o.pfc.flight)
	o.pfc.pausing, o.pfc.line = false, o.pfc.line[:0]
	for o.wire.n > 0 {
		o.net.lose(o.wire.pop(), LinkDown)
	}
	o.resume()
}
