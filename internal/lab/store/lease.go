package store

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

// A Worker makes runs beside others that look at the same store. It takes a
// lease on a run before it makes it, so that no other makes it as well.
//
// Whether the holder of a lease is still there is told by a counter that he
// raises, as each observer sees it by his own clock: who has not raised it for
// three of his intervals is dead. No clock is compared with another. Leases of a
// run are numbered; who takes one over puts the next number, which the store lets
// only one do. A holder that was taken for dead and is not may finish: the result
// is the same.
type Worker struct {
	s     *Store
	id    string
	every time.Duration
	now   func() time.Time // the observer's; only differences count

	mu    sync.Mutex
	owner owner
	seen  map[string]sighting
	stop  context.CancelFunc
	done  sync.WaitGroup
}

// An owner is what a worker says of itself, in owners/ID.
type owner struct {
	Beat  int64           `json:"beat"`
	Every time.Duration   `json:"every"` // between beats
	Place string          `json:"place"` // machine and process space; in one place processes see each other
	Host  string          `json:"host"`
	PID   int             `json:"pid"`
	Ended bool            `json:"ended"`
	Note  json.RawMessage `json:"note,omitempty"`
}

// A sighting is a counter as it was, and when it was first seen so.
type sighting struct {
	beat  int64
	since time.Time
	moved bool // it has been seen to rise
}

// defaultBeat is the interval of workers.
const defaultBeat = 10 * time.Second

// beatsToDie is how many intervals without a beat a worker is allowed.
const beatsToDie = 3

// NewWorker makes a worker, and begins to raise its counter. Close ends it.
func (s *Store) NewWorker(ctx context.Context, every time.Duration) (*Worker, error) {
	if every <= 0 {
		every = defaultBeat
	}
	id := make([]byte, 8)
	rand.Read(id)
	host, _ := os.Hostname()
	w := &Worker{s: s, id: hex.EncodeToString(id), every: every, now: time.Now, seen: map[string]sighting{}}
	w.owner = owner{Every: every, Place: place(), Host: host, PID: os.Getpid()}
	if err := w.beat(ctx); err != nil {
		return nil, err
	}
	ctx, w.stop = context.WithCancel(context.WithoutCancel(ctx))
	w.done.Go(func() { w.live(ctx) })
	return w, nil
}

// live raises the counter until the worker is closed. A beat that the store does
// not take is tried again with the next one.
func (w *Worker) live(ctx context.Context) {
	t := time.NewTicker(w.every)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
			_ = w.beat(ctx)
		}
	}
}

func (w *Worker) beat(ctx context.Context) error {
	w.mu.Lock()
	w.owner.Beat++
	text, err := json.Marshal(w.owner)
	w.mu.Unlock()
	if err != nil {
		return err
	}
	return w.s.PutText(ctx, "owners/"+w.id, text)
}

// Note keeps something with the worker, from its next beat on: what others may
// learn from it.
func (w *Worker) Note(note any) error {
	text, err := json.Marshal(note)
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.owner.Note = text
	return nil
}

// Close ends the worker: its leases, if it has any, are free.
func (w *Worker) Close(ctx context.Context) error {
	w.stop()
	w.done.Wait()
	w.mu.Lock()
	w.owner.Ended = true
	w.mu.Unlock()
	return w.beat(ctx)
}

// A Lease is a worker's on a run.
type Lease struct {
	w      *Worker
	key    string
	number int
	since  time.Time
}

// A HeldError says who makes a run.
type HeldError struct {
	Host  string
	PID   int
	Alive bool // he has been seen to be
}

func (e *HeldError) Error() string { return fmt.Sprintf("process %d on %s makes it", e.PID, e.Host) }

// Take takes the lease on a run, where nobody that lives has it: otherwise the
// error is a *HeldError.
func (w *Worker) Take(ctx context.Context, key string) (*Lease, error) {
	first := leaseName(key, 1)
	err := w.s.b.put(ctx, first, bytesBody([]byte(w.id)), true)
	if err == nil {
		return w.lease(key, 1), nil
	}
	if !errors.Is(err, errExists) {
		return nil, err
	}
	number, holder, err := w.holder(ctx, key)
	if err != nil {
		return nil, err
	}
	if holder != "" {
		if held, err := w.alive(ctx, holder); held != nil || err != nil {
			return nil, errors.Join(err, asError(held))
		}
	}
	next := leaseName(key, number+1)
	err = w.s.b.put(ctx, next, bytesBody([]byte(w.id)), true)
	if errors.Is(err, errExists) {
		return nil, &HeldError{Host: "another machine"} // who was faster
	}
	if err != nil {
		return nil, err
	}
	return w.lease(key, number+1), nil
}

func (w *Worker) lease(key string, number int) *Lease { return &Lease{w, key, number, w.now()} }

func asError(h *HeldError) error {
	if h == nil {
		return nil
	}
	return h
}

func leaseName(key string, number int) string { return fmt.Sprintf("leases/%s/%d", key, number) }

// holder finds the last lease of a run; "" where it has gone meanwhile.
func (w *Worker) holder(ctx context.Context, key string) (number int, id string, err error) {
	err = w.s.b.list(ctx, "leases/"+key+"/", func(o Object) error {
		if n, err := strconv.Atoi(o.Name[strings.LastIndexByte(o.Name, '/')+1:]); err == nil {
			number = max(number, n)
		}
		return nil
	})
	if err != nil || number == 0 {
		return 0, "", err
	}
	text, err := read(ctx, w.s.b, leaseName(key, number), 1<<10)
	if isMissing(err) {
		return 0, "", nil
	}
	return number, string(text), err
}

// alive says who the worker is, unless it is dead.
func (w *Worker) alive(ctx context.Context, id string) (*HeldError, error) {
	if !isHex(id, 16) {
		return nil, nil // nobody can hold it
	}
	if id == w.id {
		return &HeldError{w.owner.Host, w.owner.PID, true}, nil // another goroutine
	}
	text, err := read(ctx, w.s.b, "owners/"+id, 1<<20)
	if isMissing(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var o owner
	if json.Unmarshal(text, &o) != nil || o.Ended {
		return nil, nil
	}
	if o.Place != "" && o.Place == w.owner.Place && !processExists(o.PID) {
		return nil, nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	now, last := w.now(), w.seen[id]
	if last.since.IsZero() || o.Beat != last.beat {
		last = sighting{beat: o.Beat, since: now, moved: !last.since.IsZero()}
		w.seen[id] = last
	}
	if now.Sub(last.since) > beatsToDie*max(o.Every, time.Millisecond) {
		return nil, nil
	}
	return &HeldError{o.Host, o.PID, last.moved}, nil
}

// Release gives the lease back, and the leases that it took over, unless it was
// itself taken over.
func (l *Lease) Release(ctx context.Context) error {
	w := l.w
	if w.now().Sub(l.since) > beatsToDie*w.every { // long enough to be taken for dead
		if last, _, err := w.holder(ctx, l.key); err != nil || last > l.number {
			return err
		}
	}
	for n := 1; n <= l.number; n++ {
		if err := w.s.b.remove(ctx, leaseName(l.key, n)); err != nil {
			return err
		}
	}
	return nil
}

// Notes are what workers have kept, of those that Note can be read into.
func (s *Store) Notes(ctx context.Context, each func(json.RawMessage)) error {
	list, err := s.List(ctx, "owners/")
	if err != nil {
		return err
	}
	for _, o := range list {
		text, err := read(ctx, s.b, o.Name, 1<<20)
		if isMissing(err) {
			continue
		}
		if err != nil {
			return err
		}
		var who owner
		if json.Unmarshal(text, &who) == nil && len(who.Note) > 0 {
			each(who.Note)
		}
	}
	return nil
}
