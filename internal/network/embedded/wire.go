package embedded

import (
	"math/rand/v2"
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

	mu     sync.Mutex
	ready  sync.Cond
	inbox  []arriving
	isOpen bool
	isDown bool
	bits   uint64
	delay  time.Duration
	random target.Random
	last   time.Time // time at which the last packet is due; jitter does not reorder packets
	onLink func(up bool)

	refused uint64 // packets that this end did not accept
}

// An arriving is a packet with its time of arrival; the zero time means at once.
type arriving struct {
	packet []byte
	at     time.Time
}

func (e *end) open() (p4rt.Port, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.isOpen, e.inbox = true, nil
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
	if !f.isOpen || f.isDown || len(f.inbox) >= backlog || f.random.Loss > 0 && rand.Float64() < f.random.Loss {
		f.refused++
		return
	}
	a := arriving{packet: append([]byte(nil), packet...)}
	if f.bits > 0 {
		a.at = time.Now().Add(f.delay + dataplane.OnWire(len(packet), f.bits))
	}
	if j := f.random.Jitter; j > 0 {
		if a.at.IsZero() {
			a.at = time.Now()
		}
		a.at = a.at.Add(time.Duration((2*rand.Float64() - 1) * float64(j)))
		if a.at.Before(f.last) {
			a.at = f.last
		}
		f.last = a.at
	}
	f.inbox = append(f.inbox, a)
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
	for {
		packets, ok := e.take()
		if !ok {
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

// take waits until the first packet has arrived, and returns all packets that have
// arrived.
func (e *end) take() (packets [][]byte, ok bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for {
		for e.isOpen && len(e.inbox) == 0 {
			e.ready.Wait()
		}
		if !e.isOpen {
			return nil, false
		}
		n := 0
		now := time.Now()
		for n < len(e.inbox) && !e.inbox[n].at.After(now) {
			packets = append(packets, e.inbox[n].packet)
			n++
		}
		if n > 0 {
			e.inbox = append(e.inbox[:0], e.inbox[n:]...)
			return packets, true
		}
		wait := e.inbox[0].at.Sub(now)
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
	packets, _ := h.end.take()
	return packets
}
