package server

import (
	"slices"

	"google.golang.org/grpc/codes"

	"github.com/p4lb/p4lb/internal/bfrt/wire"
)

const (
	// maxReads is the number of entities of a read.
	maxReads = 1 << 22
	// pageSize is the number of entities of a response, and pageBytes about the
	// size of one whose entities are made as bytes.
	pageSize, pageBytes = 256, 32 << 10
	// walkSize is how many entries or cells are looked at before others have the
	// tables again.
	walkSize = 256
)

// An answer goes to its client page by page. Pages are made while the tables are
// locked, by one read at a time, and sent while they are not: who takes no page
// holds one, and delays nobody.
type answer struct {
	s       *Server
	stream  wire.ReadServer
	program *program
	locked  bool
	pages   []*wire.ReadResponse // not sent yet
	ended   error                // why there is no more of it
}

// enter waits for the tables.
func (a *answer) enter() error {
	select {
	case a.s.turn <- struct{}{}:
	case <-a.stream.Context().Done():
		return a.stream.Context().Err()
	case <-a.s.stop:
		return failf(codes.Unavailable, "the switch ends")
	}
	a.s.mu.Lock()
	a.locked = true
	return nil
}

// leave lets others have the tables.
func (a *answer) leave() {
	if a.locked {
		a.locked = false
		a.s.mu.Unlock()
		<-a.s.turn
	}
}

// rest is for walks over much, between what they look at: it sends what fills a
// page, and lets others read and write. What the walk knows of the tables may not
// be so any more.
func (a *answer) rest() error {
	a.leave()
	n := len(a.pages)
	if n > 0 && !isFull(a.pages[n-1]) {
		n--
	}
	if a.ended = a.send(n); a.ended == nil {
		a.ended = a.enter()
	}
	if a.ended == nil && !slices.Contains(a.s.programs, a.program) {
		a.ended = failf(codes.Aborted, "program %s has been replaced", a.program.name)
	}
	return a.ended
}

// send sends the first n pages, as long as the client takes them.
func (a *answer) send(n int) error {
	list := a.pages[:n]
	a.pages = slices.Clone(a.pages[n:])
	for i, m := range list {
		list[i] = nil
		if err := a.s.gate.Send(a.stream, m); err != nil {
			return err
		}
	}
	return nil
}

// isFull reports whether an entity wants a response of its own: this one has a
// page of them, or some that are encoded already, which it would come before.
func isFull(m *wire.ReadResponse) bool {
	return len(m.Entities) >= pageSize || len(m.ProtoReflect().GetUnknown()) > 0
}

func (a *answer) last() *wire.ReadResponse {
	if n := len(a.pages); n > 0 && !isFull(a.pages[n-1]) {
		return a.pages[n-1]
	}
	m := &wire.ReadResponse{}
	a.pages = append(a.pages, m)
	return m
}

func (a *answer) add(e *wire.Entity) error {
	m := a.last()
	m.Entities = append(m.Entities, e)
	return nil
}
