package p4rt

import (
	"runtime"
	"sync/atomic"
	"time"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/p4lb/p4lb/internal/server/gate"
)

// A read answers from immutable views of the tables, taken together under the
// server's lock (a plan). Walking the plan needs no lock, so a slow client
// blocks no writer, and the server keeps no copy of the answer. Walking and
// encoding are limited to a few readers at a time, so many readers leave
// processors to packets and writers.

// A plan is the answer to a read request: a list of walks over views.
type plan struct {
	walks []walk
	done  []func()
}

// A walk adds entities to an answer until it is finished or an add fails.
type walk func(*answer) error

func (p *plan) walk(w walk) { p.walks = append(p.walks, w) }

func (p *plan) one(e *p4v1.Entity) {
	p.walk(func(a *answer) error { return a.add(e) })
}

// each plans one entity per message of a view.
func each[T any](p *plan, v view[T], entity func(T) *p4v1.Entity) {
	p.walk(func(a *answer) error {
		for _, m := range v.all() {
			if err := a.add(entity(m)); err != nil {
				return err
			}
		}
		return nil
	})
}

// run executes the walks of the plan.
func (p *plan) run(a *answer) error {
	for _, w := range p.walks {
		if err := w(a); err != nil {
			return err
		}
	}
	return a.flush()
}

// list executes the plan and returns its entities.
func (p *plan) list() (all []*p4v1.Entity, err error) {
	err = p.run(&answer{take: func(e *p4v1.Entity) error {
		all = append(all, e)
		return nil
	}})
	return all, err
}

// close must be called when the plan is no longer needed.
func (p *plan) close() {
	for _, f := range p.done {
		f()
	}
}

// An answer collects entities and sends them in messages. Without a stream it
// passes each entity to take.
type answer struct {
	stream *readStream
	take   func(*p4v1.Entity) error
	buf    []byte // encoded entities of the next message
}

// maxAnswerSize is the size of a message, unless a single entity is larger.
// gRPC has a pool of buffers of this size; the next larger pool has buffers of
// 1 MiB.
const maxAnswerSize = 32 << 10

// entityTag is the tag of an entity in a ReadResponse.
const entityTag = 1<<3 | byte(protowire.BytesType)

func (a *answer) add(e *p4v1.Entity) error {
	if a.stream == nil {
		return a.take(e)
	}
	size := proto.Size(e)
	if err := a.room(size); err != nil {
		return err
	}
	a.buf = protowire.AppendVarint(append(a.buf, entityTag), uint64(size))
	var err error
	a.buf, err = proto.MarshalOptions{UseCachedSize: true}.MarshalAppend(a.buf, e)
	return err
}

// room makes room for size bytes in the message.
func (a *answer) room(size int) error {
	if len(a.buf) > 0 && len(a.buf)+size > maxAnswerSize {
		return a.flush()
	}
	return nil
}

// flush sends the collected entities. They are already encoded; as unknown
// fields of the message, protobuf writes them verbatim.
func (a *answer) flush() error {
	if len(a.buf) == 0 {
		return nil
	}
	m := &p4v1.ReadResponse{}
	m.ProtoReflect().SetUnknown(a.buf)
	err := a.stream.send(m)
	if cap(a.buf) > 4*maxAnswerSize {
		a.buf = nil
	}
	a.buf = a.buf[:0]
	return err
}

// After each turn, readers pause for a multiple of the turn's time. Receiving a
// message costs the client about ten times as much as sending it costs the
// switch, and clients often run on the machine that processes the packets.
const (
	pauseAlone     = 16 // packets arrive, or writes arrive and readers wait for turns
	pauseContended = 64 // packets arrive and readers wait for turns
)

// recently is the time for which a packet or a write makes readers pause. With
// a shorter time, packets delayed by other work on the machine would be delayed
// further by readers.
const recently = 50 * time.Millisecond

// turns is a semaphore for walking readers.
type turns struct {
	free    chan struct{} // the semaphore: its capacity is the number of turns
	waiting atomic.Int64
	wrote   atomic.Int64 // when the last write began or ended, by the wall clock
	packets func() bool  // reports whether packets are arriving
}

func newTurns(packets func() bool) *turns {
	return &turns{free: make(chan struct{}, max(1, runtime.GOMAXPROCS(0)/2)), packets: packets}
}

// write records that a client is writing.
func (t *turns) write() { t.wrote.Store(time.Now().UnixNano()) }

// pause returns the pause after a turn, as a multiple of the turn's time.
func (t *turns) pause() time.Duration {
	switch packets, crowd := t.packets(), t.waiting.Load() > 0; {
	case packets && crowd:
		return pauseContended
	case packets, crowd && time.Now().UnixNano()-t.wrote.Load() < int64(recently):
		return pauseAlone
	}
	return 0
}

// A readStream is the client of one read. It holds a turn except while it sends
// a message.
type readStream struct {
	p4v1.P4Runtime_ReadServer
	turns   *turns
	connSem chan struct{}   // semaphore of the connection: only one of its reads waits for a turn
	stop    <-chan struct{} // closed when the server stops
	gate    *gate.Gate

	began time.Time // when the turn began; zero without a turn
}

// begin waits for a turn. Only one read of each connection competes for it.
func (s *readStream) begin() error {
	s.turns.waiting.Add(1)
	defer s.turns.waiting.Add(-1)
	if err := s.enter(s.connSem); err != nil {
		return err
	}
	defer func() { <-s.connSem }()
	if err := s.enter(s.turns.free); err != nil {
		return err
	}
	s.began = time.Now()
	return nil
}

// enter acquires a semaphore.
func (s *readStream) enter(room chan<- struct{}) error {
	select {
	case room <- struct{}{}:
		return nil
	case <-s.stop:
		return errStopping
	case <-s.Context().Done():
		return s.Context().Err()
	}
}

// end gives the turn back, if the stream holds one, after the pause.
func (s *readStream) end() {
	if s.began.IsZero() {
		return
	}
	took := time.Since(s.began)
	s.began = time.Time{}
	give := func() { <-s.turns.free }
	if pause := s.turns.pause(); pause > 0 {
		time.AfterFunc(pause*took, give)
		return
	}
	give()
}

// send sends a message. The stream holds no turn meanwhile.
func (s *readStream) send(m *p4v1.ReadResponse) error {
	s.end()
	err := s.gate.Send(s.P4Runtime_ReadServer, m)
	if err != nil {
		return err
	}
	return s.begin()
}

var errStopping = failf(codes.Unavailable, "the switch is stopping")

// inPieces plans reading the cells from ≤ i < to in pieces.
func (p *plan) inPieces(from, to int, f func(a *answer, from, to int) error) {
	p.walk(func(a *answer) error {
		for at := from; at < to; at += piece {
			if err := f(a, at, min(at+piece, to)); err != nil {
				return err
			}
		}
		return nil
	})
}

// piece is the number of cells of an array that are read at once. An array may
// be larger than the memory granted to one client.
const piece = 1 << 14
