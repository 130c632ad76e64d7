package p4rt

import (
	"sync"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/protobuf/proto"

	"github.com/p4lb/p4lb/internal/server/gate"
)

// An outbox holds what is to be sent on a stream, so that nobody who has
// something to say waits for a slow client. Packets, digests and idle timeouts
// may be lost by the specification: they are dropped when the client does not
// keep up. Of the arbitration messages the oldest go, since each of them says
// all there is to say.
type outbox struct {
	room int // in bytes, for each of the queues
	all  *gate.Backlog

	mu      sync.Mutex
	changed sync.Cond
	first   queue // arbitration
	rest    queue
	lost    int // of rest, since they were last told of
	closed  bool
}

// A queue knows about how much memory its messages take.
type queue struct {
	list []*p4v1.StreamMessageResponse
	cost int
}

func (q *queue) push(m *p4v1.StreamMessageResponse) {
	q.list = append(q.list, m)
	q.cost += costOf(m)
}

func (q *queue) pop() *p4v1.StreamMessageResponse {
	m := q.list[0]
	q.list[0] = nil
	if q.list = q.list[1:]; len(q.list) == 0 {
		q.list = nil
	}
	q.cost -= costOf(m)
	return m
}

// The messages that an outbox holds at most, whatever their size.
const (
	maxUrgent = 256
	maxBulk   = 4096
)

// costOf is about the memory that a message takes. The entries of an idle
// timeout are the table's.
func costOf(m *p4v1.StreamMessageResponse) int {
	const message, record = 256, 320
	switch u := m.GetUpdate().(type) {
	case *p4v1.StreamMessageResponse_Packet:
		return message + len(u.Packet.GetPayload()) + record*len(u.Packet.GetMetadata())
	case *p4v1.StreamMessageResponse_Digest:
		return message + record*len(u.Digest.GetData())
	case *p4v1.StreamMessageResponse_IdleTimeoutNotification:
		return message + 8*len(u.IdleTimeoutNotification.GetTableEntry())
	}
	return message + proto.Size(m)
}

func newOutbox(room int, all *gate.Backlog) *outbox {
	o := &outbox{room: room, all: all}
	o.changed.L = &o.mu
	return o
}

// urgent adds an arbitration message, which is sent before all others.
func (o *outbox) urgent(m *p4v1.StreamMessageResponse) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return
	}
	o.first.push(m)
	o.all.Add(costOf(m))
	for len(o.first.list) > maxUrgent || (o.first.cost > o.room || o.all.Full()) && len(o.first.list) > 1 {
		o.pop(&o.first)
	}
	o.changed.Signal()
}

// bulk adds another message unless there is no room.
func (o *outbox) bulk(m *p4v1.StreamMessageResponse) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return
	}
	if n := costOf(m); len(o.rest.list) == maxBulk || o.rest.cost+n > o.room || !o.all.Take(n, o.rest.cost) {
		o.lost++
		return
	}
	o.rest.push(m)
	o.changed.Signal()
}

// next waits for a message. ok is false once the outbox is closed. lost is how
// many others have been dropped since it was last asked.
func (o *outbox) next() (m *p4v1.StreamMessageResponse, lost int, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for len(o.first.list) == 0 && len(o.rest.list) == 0 && !o.closed {
		o.changed.Wait()
	}
	lost, o.lost = o.lost, 0
	switch {
	case o.closed:
		return nil, lost, false
	case len(o.first.list) > 0:
		return o.pop(&o.first), lost, true
	}
	return o.pop(&o.rest), lost, true
}

// pop takes a message out of one of the queues.
func (o *outbox) pop(q *queue) *p4v1.StreamMessageResponse {
	before := q.cost
	m := q.pop()
	o.all.Give(before - q.cost)
	return m
}

// close ends next, for all time.
func (o *outbox) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.all.Give(o.first.cost + o.rest.cost)
	o.first, o.rest, o.closed = queue{}, queue{}, true
	o.changed.Signal()
}
