package embedded

import (
	"sync"

	"github.com/p4lb/p4lb/fabric"
)

// linkEnds name a link.
type linkEnds struct{ a, b fabric.End }

// A link joins two ends. It has neither rate nor delay: queues have the rate.
type link struct{ a, b *end }

func newLink() *link {
	l := &link{a: &end{}, b: &end{}}
	l.a.far, l.b.far = l.b, l.a
	l.a.ready.L, l.b.ready.L = &l.a.mu, &l.b.mu
	return l
}

// set takes the link down or up. Who is at its ends is told.
func (l *link) set(up bool) {
	l.a.setUp(up)
	l.b.setUp(up)
}

// backlog is how many packets wait at an end for its switch; more are lost.
const backlog = 1024

// An end is a port of a switch, or a host's.
type end struct {
	far *end

	mu     sync.Mutex
	ready  sync.Cond
	inbox  [][]byte
	isOpen bool
	isDown bool
	onLink func(up bool)
}

// open makes the end take packets, anew after Close.
func (e *end) open() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.isOpen, e.inbox = true, nil
}

// OnLink lets a device hear of the link.
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

// Send takes a packet to the other end, where it is lost if nobody is there.
func (e *end) Send(packet []byte) {
	f := e.far
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.isOpen && !f.isDown && len(f.inbox) < backlog {
		f.inbox = append(f.inbox, append([]byte(nil), packet...))
		f.ready.Signal()
	}
}

// Flush has nothing to do.
func (e *end) Flush() error { return nil }

// Receive hands on packets until Close.
func (e *end) Receive(deliver func(packets [][]byte)) error {
	for {
		packets, ok := e.take()
		if !ok {
			return nil
		}
		deliver(packets)
	}
}

// take waits for packets.
func (e *end) take() (packets [][]byte, ok bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for e.isOpen && len(e.inbox) == 0 {
		e.ready.Wait()
	}
	packets, e.inbox = e.inbox, nil
	return packets, e.isOpen
}

// Close ends Receive.
func (e *end) Close() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.isOpen, e.onLink = false, nil
	e.ready.Broadcast()
	return nil
}

// A Host is a host's end of its link.
type Host struct{ end *end }

// Send sends a packet to the host's switch.
func (h *Host) Send(packet []byte) { h.end.Send(packet) }

// Receive returns the packets that have come since the last time, and waits
// until there are some; none once the target is closed.
func (h *Host) Receive() [][]byte {
	packets, _ := h.end.take()
	return packets
}
