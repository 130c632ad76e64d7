package sim

import (
	"time"

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

// A Port is where a switch or host sends: a queue, and the link behind it. What
// comes in there is the peer's. A port of a switch that leads round, or to the
// controller, has no peer.
//
// A packet costs one event while nobody waits: its arrival at the other end. A
// second one, when the link is free again, is planned only while the queue is
// not empty. Of the packets on the link, only the first is in the schedule.
type Port struct {
	Number int // of a switch; 0 at a host

	net  *Network
	sw   *Switch // or
	host *Host
	link *Link
	peer *Port
	mac  fabric.MAC

	rate  int64 // bit/s
	rest  int64 // of the last division by rate: what a bit takes is no whole ns
	delay time.Duration
	limit int // bytes that may wait

	queue   fifo
	bytes   int // of queue
	packets int
	free    time.Duration // when the link has taken in the last packet
	serving event         // at free, if packets wait

	wire     fifo
	arriving event // of the first of wire

	paused bool // by the peer
	since  time.Duration
	pfc    pfcState
	count  Counters
}

// Counters are what a port has counted.
type Counters struct {
	Packets, Bytes int64 // sent
	Dropped        int64 // packets that found no room
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

func (n *Network) newPort(number int) *Port {
	p := &Port{Number: number, net: n}
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

// Link is the link at the port, or nil.
func (o *Port) Link() *Link { return o.link }

// Rate is that of the link.
func (o *Port) Rate() fabric.Rate { return fabric.Rate(o.rate) }

// Queue is the number of bytes that wait.
func (o *Port) Queue() int { return o.bytes }

// QueuePackets is the number of packets that wait.
func (o *Port) QueuePackets() int { return o.packets }

// Limit is the number of bytes that may wait.
func (o *Port) Limit() int { return o.limit }

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
	p.to = o
	o.queue.push(p)
	o.bytes += p.Size
	o.packets++
	o.count.MaxQueue = max(o.count.MaxQueue, o.bytes)
	o.wake()
}

// wake lets the port send if it can: at once, or when the link is free.
func (o *Port) wake() {
	if o.queue.head == nil || o.paused || o.serving.place != 0 {
		return
	}
	if o.free > o.net.now {
		o.net.events.plan(&o.serving, o.free)
		return
	}
	o.serve()
}

// serve sends the first packet of the queue.
func (o *Port) serve() {
	if o.paused || o.queue.head == nil {
		return
	}
	p := o.queue.pop()
	o.bytes -= p.Size
	o.packets--
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
	o.free = o.net.now + o.time(p.Size)
	if o.link != nil && o.link.down {
		o.net.lose(p, LinkDown)
		return
	}
	p.at, p.seq = o.free+o.delay, o.net.events.next()
	o.wire.push(p)
	if o.arriving.place == 0 {
		o.net.events.planAs(&o.arriving, p.at, p.seq)
	}
}

// time is what a packet takes to be sent. What is lost to whole ns is made up
// for by the next.
func (o *Port) time(bytes int) time.Duration {
	bits := int64(bytes)*8*int64(time.Second) + o.rest
	t := bits / o.rate
	o.rest = bits - t*o.rate
	return time.Duration(t)
}

// arrive hands the first packet on the link over.
func (o *Port) arrive() {
	p := o.wire.pop()
	if next := o.wire.head; next != nil {
		o.net.events.planAs(&o.arriving, next.at, next.seq)
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
