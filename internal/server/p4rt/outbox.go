package p4rt

import (
	"sync"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/protobuf/proto"

	"github.com/p4lb/p4lb/internal/server/gate"
)

// An outbox queues the messages to be sent on a stream, so senders never wait
// for a slow client. If the client is too slow, packets, digests and idle
// timeouts are dropped, as the specification permits. Arbitration messages have
// their own queue, which drops the oldest ones: each message contains the
// complete state.
type outbox struct {
	room int // limit in bytes, for each of the queues
	all  *gate.Backlog

	mu      sync.Mutex
	changed sync.Cond
	first   queue // arbitration messages
	rest    queue
	lost    int // dropped from rest and not reported yet
	closed  bool
}

// A queue is a list of messages with its approximate memory.
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

// The maximum numbers of messages in an outbox, regardless of their size.
const (
	maxUrgent = 256
	maxBulk   = 4096
)

// costOf returns the approximate memory of a message. Decoded entries of an idle timeout take about
// eight times their encoded size.
func costOf(m *p4v1.StreamMessageResponse) int {
	const message, record = 256, 320
	switch u := m.GetUpdate().(type) {
	case *p4v1.StreamMessageResponse_Packet:
		return message + len(u.Packet.GetPayload()) + record*len(u.Packet.GetMetadata())
	case *p4v1.StreamMessageResponse_Digest:
		return message + record*len(u.Digest.GetData())
	case *p4v1.StreamMessageResponse_IdleTimeoutNotification:
		return message + 8*proto.Size(u.IdleTimeoutNotification)
	}
	return message + proto.Size(m)
}

func newOutbox(room int, all *gate.Backlog) *outbox {
	o := &outbox{room: room, all: all}
	o.changed.L = &o.mu
	return o
}

// urgent adds an arbitration message. It is sent before all other messages.
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

// bulk adds another message, or drops it if there is no room.
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

// next waits for a message. It returns false once the outbox is closed. lost is
// the number of messages dropped since the previous call.
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

// pop removes a message from one of the queues.
func (o *outbox) pop(q *queue) *p4v1.StreamMessageResponse {
	before := q.cost
	m := q.pop()
	o.all.Give(before - q.cost)
	return m
}

// close ends next permanently.
func (o *outbox) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.all.Give(o.first.cost + o.rest.cost)
	o.first, o.rest, o.closed = queue{}, queue{}, true
	o.changed.Signal()
}
