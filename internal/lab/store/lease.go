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

// A Worker executes runs while other workers use the same store. It takes a
// lease on a run first, so no other worker executes the same run.
//
// Workers detect dead lease holders without comparing clocks. Each worker
// increments a counter in the store at an interval. An observer considers a
// worker dead if, by the observer's own clock, the counter has not changed for
// three of the worker's intervals. Leases of a run are numbered; taking over a
// lease creates the next number, which the store allows only once. A holder
// wrongly considered dead may finish its run: the result is the same.
type Worker struct {
	s     *Store
	id    string
	every time.Duration
	now   func() time.Time // the observer's clock; only differences matter

	mu    sync.Mutex
	owner owner
	seen  map[string]sighting
	stop  context.CancelFunc
	done  sync.WaitGroup
}

// An owner is the description of a worker, stored in owners/ID.
type owner struct {
	Beat  int64           `json:"beat"`
	Every time.Duration   `json:"every"` // interval of the counter
	Place string          `json:"place"` // machine and PID namespace; workers with equal places can check each other's processes
	Host  string          `json:"host"`
	PID   int             `json:"pid"`
	Ended bool            `json:"ended"`
	Note  json.RawMessage `json:"note,omitempty"`
}

// A sighting is an observer's last reading of a counter.
type sighting struct {
	beat  int64
	since time.Time
	moved bool // the counter has changed since the first observation
}

// defaultBeat is the default interval.
const defaultBeat = 10 * time.Second

// beatsToDie is the number of intervals without a change after which a worker
// is dead.
const beatsToDie = 3

// NewWorker registers a worker and starts its counter. Close ends it.
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

// live increments the counter until the worker is closed. A failed update is
// repaired by the next one.
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

// Note stores a value that other workers can read, starting with the next
// update.
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

// Close marks the worker as ended, which frees its leases.
func (w *Worker) Close(ctx context.Context) error {
	w.stop()
	w.done.Wait()
	w.mu.Lock()
	w.owner.Ended = true
	w.mu.Unlock()
	return w.beat(ctx)
}

// A Lease is the exclusive right of a worker to execute a run.
type Lease struct {
	w      *Worker
	key    string
	number int
	since  time.Time
}

// A HeldError describes the holder of a lease.
type HeldError struct {
	Host  string
	PID   int
	Alive bool // the holder's counter has changed while observed
}

func (e *HeldError) Error() string { return fmt.Sprintf("process %d on %s executes it", e.PID, e.Host) }

// Take takes the lease on a run. If a live worker holds it, the error is a
// *HeldError.
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
		return nil, &HeldError{Host: "another machine"} // another worker was faster
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

// holder returns the number and the worker of a run's latest lease, or "" if it
// has been removed.
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

// alive returns a description of the worker, or nil if it is dead.
func (w *Worker) alive(ctx context.Context, id string) (*HeldError, error) {
	if !isHex(id, 16) {
		return nil, nil // not a worker's id
	}
	if id == w.id {
		return &HeldError{w.owner.Host, w.owner.PID, true}, nil // held by another goroutine of this process
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

// Release removes the lease and the older leases that it took over, unless
// another worker has taken it over.
func (l *Lease) Release(ctx context.Context) error {
	w := l.w
	if w.now().Sub(l.since) > beatsToDie*w.every { // it may have been considered dead
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

// Notes calls each with the notes of all workers.
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
