package p4rt

import (
	"sync"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
)

// An outbox holds what is to be sent on a stream, so that nobody who has
// something to say waits for a slow client. Packets, digests and idle timeouts
// may be lost by the specification: they are dropped when the client does not
// keep up. Of the arbitration messages the oldest go, since each of them says
// all there is to say.
type outbox struct {
	mu      sync.Mutex
	changed sync.Cond
	first   []*p4v1.StreamMessageResponse // arbitration
	rest    []*p4v1.StreamMessageResponse
	closed  bool
}

// The messages that an outbox holds at most.
const (
	maxUrgent = 256
	maxBulk   = 4096
)

func newOutbox() *outbox {
	o := &outbox{}
	o.changed.L = &o.mu
	return o
}

// urgent adds an arbitration message, which is sent before all others.
func (o *outbox) urgent(m *p4v1.StreamMessageResponse) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.first) == maxUrgent {
		o.first = o.first[1:]
	}
	o.first = append(o.first, m)
	o.changed.Signal()
}

// bulk adds another message unless there is no room.
func (o *outbox) bulk(m *p4v1.StreamMessageResponse) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.rest) < maxBulk {
		o.rest = append(o.rest, m)
		o.changed.Signal()
	}
}

// next waits for a message. ok is false once the outbox is closed.
func (o *outbox) next() (m *p4v1.StreamMessageResponse, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for len(o.first) == 0 && len(o.rest) == 0 && !o.closed {
		o.changed.Wait()
	}
	queue := &o.rest
	if len(o.first) > 0 {
		queue = &o.first
	}
	if o.closed || len(*queue) == 0 {
		return nil, false
	}
	m = (*queue)[0]
	(*queue)[0] = nil
	*queue = (*queue)[1:]
	return m, true
}

// close ends next, for all time.
func (o *outbox) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	o.changed.Signal()
}
