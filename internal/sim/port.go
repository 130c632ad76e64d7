package sim

import (
	"math"
	"time"
	"unsafe"

	"github.com/p4lb/p4lb/internal/dataplane/asm"
	"github.com/p4lb/p4lb/internal/network/fabric"
)

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

func (r *ring[T]) first() *T { return &r.slots[r.head] }

func (r *ring[T]) push(v T) {
	if int(r.n) == len(r.slots) {
		r.grow()
	}
	r.slots[int(r.head+r.n)&(len(r.slots)-1)] = v
	r.n++
}

func (r *ring[T]) grow() {
	slots := make([]T, max(4, 2*len(r.slots)))
	for i := range r.slots {
		slots[i] = r.slots[(int(r.head)+i)&(len(r.slots)-1)]
	}
	r.slots, r.head = slots, 0
}

func (r *ring[T]) pop() (v T) {
	at := &r.slots[r.head]
	*at, v = v, *at
	r.head = int32(int(r.head+1) & (len(r.slots) - 1))
	r.n--
	return v
}

// each calls f for each element.
func (r *ring[T]) each(f func(*T)) {
	for i := range r.n {
		f(&r.slots[int(r.head+i)&(len(r.slots)-1)])
	}
}

// popLast removes the newest packet of a queue that is not empty.
func (q *fifo) popLast() {
	if q.head == q.tail {
		q.head, q.tail = nil, nil
		return
	}
	p := q.head
	for p.next != q.tail {
		p = p.next
	}
	p.next, q.tail = nil, p
}

// A port has two events, so the types of their handlers differ.
type (
	serveHandler  Port
	arriveHandler Port
)

func (h *serveHandler) fire()  { (*Port)(h).serve() }
func (h *arriveHandler) fire() { (*Port)(h).arrive() }

// Hostile input: none. The addresses of p.dp and Flow are Go pointers, only prefetched.
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

// Hostile input: none. The instruction only moves cache lines.
func (h *arriveHandler) soon(next bool) {
	switch {
	case h.wire.n == 0:
	case !next:
		h.wire.first().p.fetch((*Port)(h).there().bytes)
	case h.peer != nil && h.peer.host != nil:
		p := h.wire.first().p
		asm.Prefetch(unsafe.Pointer(p.Flow))
		p.fetchRest()
	case !(*Port)(h).there().bytes:
		h.wire.first().p.fetchHeaders()
	}
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

// Switch returns the name of the port's switch, or "" for a host's port.
func (o *Port) Switch() string {
	if o.sw == nil {
		return ""
	}
	return o.sw.Name
}

// Far returns the port at the other end of the link, or nil.
func (o *Port) Far() *Port { return o.peer }

// Link returns the link of the port, or nil.
func (o *Port) Link() *Link { return o.link }

// Rate returns the rate of the port's link.
func (o *Port) Rate() fabric.Rate { return fabric.Rate(o.rate) }

// Queue returns the number of waiting bytes.
func (o *Port) Queue() int { return int(o.bytes) }

// QueuePackets returns the number of waiting packets.
func (o *Port) QueuePackets() int { return int(o.packets) }

// Limit returns the limit of the queue in bytes.
func (o *Port) Limit() int { return int(o.limit) }

// Paused reports whether the port may not send (PFC).
func (o *Port) Paused() bool { return o.paused }

// Counters returns the counters of the port.
func (o *Port) Counters() Counters {
	c := o.count
	if o.paused {
		c.Paused += o.net.now - o.pausedSince
	}
	return c
}

// accept appends a packet to the queue, which must have room.
func (o *Port) accept(p *Packet) {
	if o.stopped == nil {
		o.queue.push(p)
	} else if held := o.stopped[p.queue()]; held != nil {
		held.push(p)
		o.held += int32(p.Size)
	} else {
		o.queue.push(p)
	}
	o.bytes += int32(p.Size)
	o.packets++
	if o.sw != nil {
		o.cells += o.sw.cellsOf(p.Size)
	}
	o.count.MaxQueue = max(o.count.MaxQueue, int(o.bytes))
	o.wake()
}

// stop pauses a queue of the port. Its packets wait separately, and their bytes still count.
func (o *Port) stop(queue uint8) {
	if o.stopped[queue] != nil {
		return
	}
	if o.stopped == nil {
		o.stopped = map[uint8]*fifo{}
	}
	held, rest := &fifo{}, fifo{}
	for o.queue.head != nil {
		if p := o.queue.pop(); p.queue() == queue {
			held.push(p)
			o.held += int32(p.Size)
		} else {
			rest.push(p)
		}
	}
	o.queue, o.stopped[queue] = rest, held
}

// start resumes a queue of the port. Its packets are appended to the waiting ones.
func (o *Port) start(queue uint8) {
	held := o.stopped[queue]
	if held == nil {
		return
	}
	delete(o.stopped, queue)
	for held.head != nil {
		p := held.pop()
		o.held -= int32(p.Size)
		p.portQueue = 0
		o.queue.push(p)
	}
}

// acceptUrgent queues a priority packet: ahead of all other packets, but behind earlier priority
// packets.
func (o *Port) acceptUrgent(p *Packet) {
	o.urgent.push(p)
	o.wake()
}

// waiting returns the number of waiting bytes, including priority packets.
func (o *Port) waiting() uint32 {
	n := uint32(o.bytes)
	for p := o.urgent.head; p != nil; p = p.next {
		n += uint32(p.Size)
	}
	return n
}

// occupied returns the number of waiting bytes, or this number relative to the scaled limit of the
// queue. With Options.UntilSent it includes the packet being sent.
func (o *Port) occupied(relative bool) uint32 {
	n := o.waiting()
	if o.net.opts.UntilSent && o.free > o.net.now {
		n += uint32(o.sending)
	}
	if relative && o.rateShare != 1 {
		n = uint32(float32(n) / o.rateShare)
	}
	return n
}

// idle reports whether there is nothing that the port may send.
func (o *Port) idle() bool { return (o.queue.head == nil || o.paused) && o.urgent.head == nil }

// wake makes the port send if it can: at once, or when the link is free.
func (o *Port) wake() {
	if o.nested < mostNested && o.ready() {
		o.serve()
	}
}

// mostNested limits the depth of the stack. Egress may clone a packet to the port that sends it,
// which then serves the clone before it returns; beyond the limit the first call serves them.
const mostNested = 32

// ready reports whether the port can send at once. If the link is busy, it plans to send when the
// link is free.
func (o *Port) ready() bool {
	if o.serving.planned() || o.idle() && (o.host == nil || !o.host.wanted()) {
		return false
	}
	if o.free > o.net.now {
		o.net.events.planAs(&o.serving, o.free, o.place.next(o.net))
		return false
	}
	return true
}

// serve sends packets until the link is busy or there are none.
func (o *Port) serve() {
	o.nested++
	for next := true; next; next = o.ready() {
		o.first()
	}
	o.nested--
}

// first sends the first packet of the queue.
func (o *Port) first() {
	if o.unmarked != nil {
		o.markSent()
	}
	if o.idle() {
		if o.host != nil {
			o.host.freed()
		}
		return
	}
	var p *Packet
	if o.urgent.head != nil {
		p = o.urgent.pop()
		o.sending = 0
	} else {
		p = o.queue.pop()
		o.sending = int32(p.Size)
		o.left(p)
	}
	if o.sw != nil {
		o.sw.depart(p, o)
	} else {
		o.host.depart(p, o)
	}
}

// left accounts for a packet that leaves the queue.
func (o *Port) left(p *Packet) {
	o.bytes -= int32(p.Size)
	o.packets--
	if o.sw != nil {
		o.cells -= o.sw.cellsOf(p.Size)
	}
}

// transmit sends a packet on the idle link.
func (o *Port) transmit(p *Packet) {
	o.count.Packets++
	o.count.Bytes += int64(p.Size)
	o.count.Interval, o.lastDeparture = o.net.now-o.lastDeparture, o.net.now
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
	o.carry(o.net, a)
}

// carry plans the arrival of a packet on the link. to is the part of the network at the other
// end.
func (o *Port) carry(to *Network, a arrival) {
	o.wire.push(a)
	if !o.arriving.planned() {
		to.events.planAs(&o.arriving, a.at, a.seq)
	}
}

// there returns the part of the network in which packets arrive. It does not use
// far, which shares a cache line with fields that another part writes.
func (o *Port) there() *Network {
	if o.peer == nil {
		return o.net
	}
	return o.peer.net
}

// time returns the transmission time of a packet. Unless Options.Cut is set, the next packet
// compensates for the rounding to whole nanoseconds.
func (o *Port) time(bytes int) time.Duration {
	bits := int64(bytes)*8*int64(time.Second) + o.remainder
	t := bits / o.rate
	if !o.net.opts.Cut {
		o.remainder = bits - t*o.rate
	}
	return time.Duration(t)
}

// arrive delivers the first packet on the link.
func (o *Port) arrive() {
	p, here, in := o.wire.pop().p, o.there(), o.peer
	if o.wire.n > 0 {
		next := o.wire.first()
		here.events.planAs(&o.arriving, next.at, next.seq)
	}
	switch {
	case in == nil:
		o.sw.count.Recirculated++
		o.sw.engine.ingress(p)
	case in.noise != nil && in.noise.spoils(p.Size):
		here.lose(p, Corrupted)
	case in.sw != nil:
		if here.tap != nil {
			here.tap(in, p.head, p.Size)
		}
		in.sw.receive(p, in)
	default:
		in.host.receive(p)
	}
}

// clampQueue limits a number of bytes to 2 GiB.
func clampQueue(bytes int) int32 { return int32(min(bytes, math.MaxInt32)) }

// frame returns the length of the largest frame that hosts send.
func (n *Network) frame() int { return n.opts.MTU + ethernetLen }

// cross sends a packet to another part at the end of the window. Outside of Run it does so at
// once, because callers may inspect the network.
func (n *Network) cross(to *Network, c crossing) {
	if !n.running {
		n.gain--
		to.take(&c)
		return
	}
	out := n.out[n.odd]
	out[to.number] = append(out[to.number], c)
	n.gain--
}

// take receives a crossing.
func (n *Network) take(c *crossing) {
	n.gain++
	if c.p != nil {
		c.p.claim(n.bytes)
	}
	switch {
	case c.from == nil:
		n.release(c.p)
	case c.p == nil:
		c.from.carryPause(pauseFrame{c.at, c.seq, c.pause})
	default:
		c.from.carry(n, c.arrival)
	}
}

// carryPause plans the arrival of a PFC frame on the link.
func (o *Port) carryPause(f pauseFrame) {
	o.pfc.line = append(o.pfc.line, f)
	if !o.pfc.flight.planned() {
		o.pfc.flight.what = (*pauseHandler)(o)
		o.planPause()
	}
}

// planPause plans the arrival of the first PFC frame on the link. It draws the frame's number
// unless it has one.
func (o *Port) planPause() {
	f := o.pfc.line[0]
	if f.seq == 0 {
		f.seq = o.net.events.next()
	}
	o.far.events.planAs(&o.pfc.flight, f.at, f.seq)
}

type pauseHandler Port

func (h *pauseHandler) fire() { (*Port)(h).deliverPause() }

func (h *pauseHandler) soon(bool) {}

// deliverPause delivers the first PFC frame on the link.
func (o *Port) deliverPause() {
	f := o.pfc.line[0]
	o.pfc.line = append(o.pfc.line[:0], o.pfc.line[1:]...)
	if len(o.pfc.line) > 0 {
		o.planPause()
	}
	if o.down {
		return
	}
	if f.pause {
		o.peer.pause()
	} else {
		o.peer.resume()
	}
}

// pause stops the port after the packet that it is sending.
func (o *Port) pause() {
	if !o.paused {
		o.paused, o.pausedSince = true, o.net.now
		o.count.Pauses++
		o.passPause()
	}
}

// resume lets the port send again.
func (o *Port) resume() {
	if o.paused {
		o.paused = false
		o.count.Paused += o.net.now - o.pausedSince
		o.passPause()
		o.wake()
	}
}

// passPause passes the PFC frame to the switch's engine.
func (o *Port) passPause() {
	if o.sw != nil {
		o.sw.engine.paused(o, o.paused)
	}
}
