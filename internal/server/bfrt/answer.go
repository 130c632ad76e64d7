package server

import (
	"slices"

	"google.golang.org/grpc/codes"

	"github.com/p4lb/p4lb/internal/bfrt/wire"
)

const (
	// maxReads is the number of entities of a read.
	maxReads = 1 << 22
	// pageSize is the number of entities of a response. pageBytes is the approximate
	// size of a response with encoded entities.
	pageSize, pageBytes = 256, 32 << 10
	// walkSize is the number of entries or cells that a read visits before it unlocks
	// the tables for others.
	walkSize = 256
)

// An answer sends the result of a read page by page. One read at a time fills pages
// under the lock of the tables and sends them without it. A client that stops reading
// holds one page and delays no other client.
type answer struct {
	s       *Server
	stream  wire.ReadServer
	program *program
	locked  bool
	pages   []*wire.ReadResponse // not yet sent
	ended   error                // the error that ended the read
}

// enter locks the tables for reading.
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

// leave unlocks the tables.
func (a *answer) leave() {
	if a.locked {
		a.locked = false
		a.s.mu.Unlock()
		<-a.s.turn
	}
}

// rest is called within long walks. It sends full pages and unlocks the tables for a
// moment. Other clients may change the tables meanwhile.
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

// send sends the first n pages until the client ends the call.
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

// isFull reports whether the next entity needs a new response: this one is full, or
// contains encoded entities, which must come last.
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
