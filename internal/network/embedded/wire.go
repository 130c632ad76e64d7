package embedded

import (
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/p4lb/p4lb/internal/controller/target"
	"github.com/p4lb/p4lb/internal/dataplane"
	"github.com/p4lb/p4lb/internal/network/fabric"
	"github.com/p4lb/p4lb/internal/server/p4rt"
)

// linkEnds name a link.
type linkEnds struct{ a, b fabric.End }

// A wire is the link at a port of a switch: either an end of a link in the process,
// or the end of a link to an external host.
type wire interface {
	// open lets the end receive packets, also after the port was closed.
	open() (p4rt.Port, error)
	// setUp makes the end carry or lose packets, and notifies the device.
	setUp(up bool)
	// loses sets the random loss, delay and jitter of packets.
	loses(r target.Random)
	up() bool
}

// A link connects two ends. The queues before it have its rate. The link adds the transmission
// time and the delay.
type link struct{ a, b *end }

// newLink creates the link between two nodes. trace, which may be nil, records the packets that
// its ends send.
func newLink(a, b fabric.End, trace *atomic.Pointer[trace]) *link {
	l := &link{a: &end{at: a, trace: trace}, b: &end{at: b, trace: trace}}
	l.a.far, l.b.far = l.b, l.a
	l.a.ready.L, l.b.ready.L = &l.a.mu, &l.b.mu
	return l
}

// keep sets the rate in bits per second and the delay of the link.
func (l *link) keep(bits uint64, delay time.Duration) {
	l.a.keep(bits, delay)
	l.b.keep(bits, delay)
}

func (e *end) keep(bits uint64, delay time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.bits, e.delay = bits, delay
}

// backlog is the number of packets that may wait at an end for its switch. Further packets are
// lost.
const backlog = 1024

// An end is a port of a switch, or a host's.
type end struct {
	at    fabric.End
	far   *end
	trace *atomic.Pointer[trace]

	mu    sync.Mutex
	ready sync.Cond
	inbox
	isOpen bool
	isDown bool
	bits   uint64
	delay  time.Duration
	random target.Random
	last   time.Time // time at which the last packet is due; jitter does not reorder packets
	onLink func(up bool)

	refused uint64 // packets that this end did not accept
}

// An inbox holds the packets that wait at an end, in order. Their bytes are in blocks, which all
// inboxes share.
type inbox struct {
	waiting  []arriving
	next     int      // first packet in waiting that has not been taken
	filling  *block   // block for further packets
	emptying *block   // block of the packet taken last
	used     []*block // blocks of which all packets have been taken
}

// An arriving is a packet with its time of arrival; the zero time means at once.
type arriving struct {
	packet []byte
	block  *block
	at     time.Time
}

type block struct{ bytes []byte }

// blockSize is the size of most blocks. A larger packet gets a block of its own.
const blockSize = 1 << 14

var blocks = sync.Pool{New: func() any { return &block{make([]byte, 0, blockSize)} }}

func (b *inbox) length() int { return len(b.waiting) - b.next }

func (b *inbox) add(packet []byte, at time.Time) {
	if b.filling == nil || len(b.filling.bytes)+len(packet) > cap(b.filling.bytes) {
		b.filling = blocks.Get().(*block)
	}
	from := len(b.filling.bytes)
	b.filling.bytes = append(b.filling.bytes, packet...)
	b.waiting = append(b.waiting, arriving{b.filling.bytes[from:len(b.filling.bytes):len(b.filling.bytes)], b.filling, at})
}

// arrived appends the packets that have arrived to list. They are valid until the next call.
func (b *inbox) arrived(list [][]byte) [][]byte {
	b.reuse()
	var now time.Time
	for ; b.next < len(b.waiting); b.next++ {
		a := &b.waiting[b.next]
		if !a.at.IsZero() {
			if now.IsZero() {
				now = time.Now()
			}
			if a.at.After(now) {
				break
			}
		}
		list = append(list, a.packet)
		if b.emptying != a.block && b.emptying != nil {
			b.used = append(b.used, b.emptying)
		}
		b.emptying = a.block
	}
	return list
}

// reuse returns the memory of the packets that have been taken.
func (b *inbox) reuse() {
	for _, u := range b.used {
		u.bytes = u.bytes[:0]
		blocks.Put(u)
	}
	b.used = b.used[:0]
	if b.next > 0 && 2*b.next >= len(b.waiting) {
		n := copy(b.waiting, b.waiting[b.next:])
		clear(b.waiting[n:])
		b.waiting, b.next = b.waiting[:n], 0
	}
}

func (e *end) open() (p4rt.Port, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.isOpen, e.inbox = true, inbox{}
	return e, nil
}

// OnLink registers a function that receives the state of the link.
func (e *end) OnLink(f func(up bool)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.onLink = f
}

func (e *end) up() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return !e.isDown
}

func (e *end) setUp(up bool) {
	e.mu.Lock()
	changed, tell := e.isDown == up, e.onLink
	e.isDown = !up
	e.mu.Unlock()
	if changed && tell != nil {
		tell(up)
	}
}

func (e *end) loses(r target.Random) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.random = r
}

// Send sends a packet to the other end. The packet is lost if the port there is closed.
func (e *end) Send(packet []byte) {
	e.trace.Load().sent(e.at, packet)
	f := e.far
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.isOpen || f.isDown || f.length() >= backlog || f.random.Loss > 0 && rand.Float64() < f.random.Loss {
		f.refused++
		return
	}
	var at time.Time
	if f.bits > 0 {
		at = time.Now().Add(f.delay + dataplane.OnWire(len(packet), f.bits))
	}
	if j := f.random.Jitter; j > 0 {
		if at.IsZero() {
			at = time.Now()
		}
		at = at.Add(time.Duration((2*rand.Float64() - 1) * float64(j)))
		if at.Before(f.last) {
			at = f.last
		}
		f.last = at
	}
	f.add(packet, at)
	f.ready.Signal()
}

// Lost returns the number of packets that the other end did not accept.
func (e *end) Lost() (in, out uint64) {
	e.far.mu.Lock()
	defer e.far.mu.Unlock()
	return 0, e.far.refused
}

// Flush does nothing.
func (e *end) Flush() error { return nil }

// Receive delivers packets until Close.
func (e *end) Receive(deliver func(packets [][]byte)) error {
	var packets [][]byte
	for {
		var ok bool
		if packets, ok = e.take(packets[:0]); !ok {
			return nil
		}
		deliver(packets)
	}
}

const (
	// step is the longest time for which an end sleeps before it checks whether it has been
	// closed.
	step = 50 * time.Millisecond
	// The runtime's timers are late by up to a millisecond.
	coarse = 2 * time.Millisecond
)

// take waits until the first packet has arrived, and appends all packets that have arrived to
// list. They are valid until the next call.
func (e *end) take(list [][]byte) (packets [][]byte, ok bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for {
		for e.isOpen && e.length() == 0 {
			e.ready.Wait()
		}
		if !e.isOpen {
			return nil, false
		}
		if packets = e.arrived(list); len(packets) > len(list) {
			return packets, true
		}
		wait := time.Until(e.waiting[e.next].at)
		e.mu.Unlock()
		if wait > coarse {
			time.Sleep(min(wait-coarse/2, step))
		} else {
			p4rt.Nap(wait)
		}
		e.mu.Lock()
	}
}

// Close ends Receive.
func (e *end) Close() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.isOpen, e.onLink = false, nil
	e.ready.Broadcast()
	return nil
}

// A Host is a host's end of a link, for tests and for programs that act as a host.
type Host struct{ end *end }

// Send sends a packet to the host's switch.
func (h *Host) Send(packet []byte) { h.end.Send(packet) }

// Receive returns the packets that have arrived since the last call. It waits for the first one.
// It returns none after the target is closed.
func (h *Host) Receive() [][]byte {
	packets, _ := h.end.take(nil)
	for i, p := range packets {
		packets[i] = slices.Clone(p)
	}
	return packets
}
