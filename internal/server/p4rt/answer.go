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

// What a read costs is bounded whatever it asks for: a plan is made at one
// moment, of views, and then walked as fast as the client takes the answer.
// Between two messages a walk holds nothing but its place. Encoding is done by
// few readers at a time, so that many of them leave processors to packets and
// writers.

// A plan is what a read request will be answered with: walks over what there
// was when it was made.
type plan struct {
	walks []walk
	done  []func()
}

// A walk puts entities into an answer until it is told to stop by an error.
type walk func(*answer) error

func (p *plan) walk(w walk) { p.walks = append(p.walks, w) }

func (p *plan) one(e *p4v1.Entity) {
	p.walk(func(a *answer) error { return a.add(e) })
}

// each plans an entity for each message of a view.
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

// run walks the plan.
func (p *plan) run(a *answer) error {
	for _, w := range p.walks {
		if err := w(a); err != nil {
			return err
		}
	}
	return a.flush()
}

// list walks the plan and returns what it finds.
func (p *plan) list() (all []*p4v1.Entity, err error) {
	err = p.run(&answer{take: func(e *p4v1.Entity) error {
		all = append(all, e)
		return nil
	}})
	return all, err
}

// close must be called when the plan is not needed any more.
func (p *plan) close() {
	for _, f := range p.done {
		f()
	}
}

// An answer gathers entities and sends them, some at a time. Without a stream
// they go to take, one by one.
type answer struct {
	stream *readStream
	take   func(*p4v1.Entity) error
	buf    []byte // entities of the next message, encoded
}

// maxAnswerSize is the size of a message, unless a single entity is larger: that
// of buffers that gRPC uses again. The next larger ones have a megabyte.
const maxAnswerSize = 32 << 10

// entityTag begins an entity of a ReadResponse.
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

// room sees to it that there is room for so many bytes in the message.
func (a *answer) room(size int) error {
	if len(a.buf) > 0 && len(a.buf)+size > maxAnswerSize {
		return a.flush()
	}
	return nil
}

// flush sends what has been gathered. To protobuf entities that are encoded
// already are unknown fields, which it writes as they are.
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

// A turn of a reader is followed by so many times as long in which nobody has one:
// a message costs who receives it some ten times what it costs the switch, and a crowd
// of readers on the machine of the packets takes its share of their processors, too.
const (
	restAlone = 16 // while packets come; and while writes come, where readers wait for each other
	restCrowd = 64 // while packets come and readers wait for each other
)

// recently is how long packets and writes keep readers resting. Packets that other
// work on the machine delays for some milliseconds would else be delayed by readers
// for longer, and so on.
const recently = 50 * time.Millisecond

// turns are those in which readers walk.
type turns struct {
	free    chan struct{} // has room for those that may be had at a time
	waiting atomic.Int64
	wrote   atomic.Int64 // when the last write came or ended, by the wall clock
	packets func() bool  // come
}

func newTurns(packets func() bool) *turns {
	return &turns{free: make(chan struct{}, max(1, runtime.GOMAXPROCS(0)/2)), packets: packets}
}

// write notes that somebody writes.
func (t *turns) write() { t.wrote.Store(time.Now().UnixNano()) }

// rest is how many times as long as a turn nobody has one after it.
func (t *turns) rest() time.Duration {
	switch packets, crowd := t.packets(), t.waiting.Load() > 0; {
	case packets && crowd:
		return restCrowd
	case packets, crowd && time.Now().UnixNano()-t.wrote.Load() < int64(recently):
		return restAlone
	}
	return 0
}

// A readStream is the client of one read. Its walk has a turn but while a
// message is being sent.
type readStream struct {
	p4v1.P4Runtime_ReadServer
	turns *turns
	line  chan struct{}   // of those of the connection that wait for a turn: the first alone does
	stop  <-chan struct{} // of the server
	gate  *gate.Gate

	began time.Time // of the turn; zero without one
}

// begin waits for a turn, which connections have one after the other, however many
// reads come over each.
func (s *readStream) begin() error {
	s.turns.waiting.Add(1)
	defer s.turns.waiting.Add(-1)
	if err := s.enter(s.line); err != nil {
		return err
	}
	defer func() { <-s.line }()
	if err := s.enter(s.turns.free); err != nil {
		return err
	}
	s.began = time.Now()
	return nil
}

// enter waits for room.
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

// end gives the turn back, if there is one.
func (s *readStream) end() {
	if s.began.IsZero() {
		return
	}
	took := time.Since(s.began)
	s.began = time.Time{}
	give := func() { <-s.turns.free }
	if rest := s.turns.rest(); rest > 0 {
		time.AfterFunc(rest*took, give)
		return
	}
	give()
}

// send waits for the client, without a turn.
func (s *readStream) send(m *p4v1.ReadResponse) error {
	s.end()
	err := s.gate.Send(s.P4Runtime_ReadServer, m)
	if err != nil {
		return err
	}
	return s.begin()
}

var errStopping = failf(codes.Unavailable, "the switch is stopping")

// inPieces plans to read cells, so many at a time.
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

// piece is how many cells of an array are read at one moment: an array may be
// larger than what a client that does not read can be let hold.
const piece = 1 << 14
