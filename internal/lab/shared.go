package lab

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/p4lb/p4lb/internal/lab/spec"
	"github.com/p4lb/p4lb/internal/lab/store"
	"github.com/p4lb/p4lb/internal/text/lists"
	"github.com/p4lb/p4lb/internal/text/plain"
)

// share executes the runs that the store does not have.
func (w *work) share(ctx context.Context) (err error) {
	s := &sharing{work: w, store: w.r.Store, keys: lists.Map(w.jobs, (*Job).Key), bad: map[int]bool{}}
	w.shared, w.stored = s, make([]bool, len(w.jobs))
	if s.worker, err = s.store.NewWorker(ctx, w.r.Beat); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.worker.Close(context.WithoutCancel(ctx))) }()
	have, err := s.store.Has(ctx)
	if err != nil {
		return err
	}
	costs, err := w.r.costs(ctx, w.jobs)
	if err != nil {
		return err
	}
	own, others := w.r.Shard.divide(costs)
	if err := s.take(ctx, own, others, have); err != nil {
		return err
	}
	list := slices.DeleteFunc(append(own, others...), func(i int) bool { return s.finished(i) })
	for len(list) > 0 {
		var alive bool
		list, alive, err = s.pass(ctx, list)
		if err != nil || ctx.Err() != nil || len(list) == 0 || alive && !w.r.Shard.whole() {
			break
		}
		if e := plain.Pause(ctx, max(w.r.Beat, 100*time.Millisecond)/2); e != nil {
			return e
		}
	}
	s.left = len(list)
	return cmp.Or(s.failure(), err)
}

// loaders is the number of objects that are read in parallel.
const loaders = 16

// take reads existing runs from the store. For runs of other shards it only checks
// their existence.
func (s *sharing) take(ctx context.Context, own, others []int, have map[string]int64) error {
	for _, i := range others {
		if _, ok := have[s.keys[i]]; ok {
			s.recordExisting(i, nil)
		}
	}
	own = slices.DeleteFunc(slices.Clone(own), func(i int) bool { _, ok := have[s.keys[i]]; return !ok })
	return sideBySide(loaders, own, func(i int) error {
		r, err := s.load(ctx, i)
		if r != nil {
			s.recordExisting(i, r)
		}
		return err
	})
}

// sideBySide calls do for each element of list, at most width at once, until one call fails.
func sideBySide(width int, list []int, do func(int) error) error {
	var mu sync.Mutex
	var failed error
	var group sync.WaitGroup
	next := 0
	for range min(width, len(list)) {
		group.Go(func() {
			for {
				mu.Lock()
				if failed != nil || next == len(list) {
					mu.Unlock()
					return
				}
				i := list[next]
				next++
				mu.Unlock()
				if err := do(i); err != nil {
					mu.Lock()
					failed = errors.Join(failed, err)
					mu.Unlock()
				}
			}
		})
	}
	group.Wait()
	return failed
}

// recordExisting records that a run already exists.
func (s *sharing) recordExisting(i int, r *Result) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.results[i], s.stored[i] = r, true
	s.done++
	s.taken++
	if s.r.Progress != nil {
		s.r.Progress(Progress{Done: s.done, Of: len(s.jobs), Taken: s.taken, Name: s.jobs[i].Name()})
	}
}

func (s *sharing) finished(i int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stored[i]
}

// pass tries each job of the list once and returns the jobs that other processes hold.
// The result alive reports whether all of them are live.
func (s *sharing) pass(ctx context.Context, list []int) (held []int, alive bool, err error) {
	alive = true
	var mu sync.Mutex
	err = sideBySide(s.r.cores(), list, func(i int) error {
		s.mu.Lock()
		stop := s.unusable || ctx.Err() != nil
		s.mu.Unlock()
		if stop {
			return nil
		}
		err := s.try(ctx, i)
		if h, ok := errors.AsType[*store.HeldError](err); ok {
			mu.Lock()
			held, alive = append(held, i), alive && h.Alive
			mu.Unlock()
			return nil
		}
		return err
	})
	slices.Sort(held)
	return held, alive, err
}

// try computes a run under a lease, unless it exists or is held. It returns errors of
// the store; errors of the run are recorded.
func (s *sharing) try(ctx context.Context, i int) error {
	if r, err := s.load(ctx, i); r != nil || err != nil {
		if r != nil {
			s.recordExisting(i, r)
		}
		return err
	}
	lease, err := s.worker.Take(ctx, s.keys[i])
	if err != nil {
		return err
	}
	defer func() { _ = lease.Release(context.WithoutCancel(ctx)) }() // a remaining lease belongs to a dead worker
	if r, err := s.load(ctx, i); r != nil || err != nil {            // another worker has executed it meanwhile
		if r != nil {
			s.recordExisting(i, r)
		}
		return err
	}
	s.runJob(ctx, i)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stored[i] = true
	return nil
}

// load reads a run from the store. It returns nil if there is no usable one.
func (s *sharing) load(ctx context.Context, i int) (*Result, error) {
	if i == 0 && s.r.Record != nil {
		return nil, nil // keep the damaged object for inspection
	}
	r, err := s.r.stored(ctx, s.jobs[i], s.keys[i])
	var damaged *store.DamagedError
	switch {
	case errors.Is(err, store.ErrMissing):
		return nil, nil
	case errors.As(err, &damaged):
		s.mu.Lock()
		if !s.bad[i] && s.r.Log != nil {
			s.r.Log(err.Error() + ", but made again")
		}
		s.bad[i] = true
		s.mu.Unlock()
		return nil, nil
	}
	return r, err
}

// stored reads a run from the runner's store.
func (r *Runner) stored(ctx context.Context, j *Job, key string) (*Result, error) {
	run, err := r.Store.Get(ctx, key)
	if err != nil {
		return nil, err
	}
	res := new(Result)
	if json.Unmarshal(run.Result, res) != nil || res.Spec != key {
		return nil, &store.DamagedError{Store: r.Store.String(), Name: "run " + key, Why: "holds the result of something else"}
	}
	res.Experiment, res.Case, res.Scheme, res.Label = j.x.Name, j.Case.Name, j.Scheme.Scheme, j.Scheme.Label
	return res, nil
}

// storedForm returns a result as it is stored, without names of the experiment.
func storedForm(r *Result) ([]byte, error) {
	plain := *r
	plain.Experiment, plain.Case, plain.Label, plain.Scheme = "", "", "", ""
	return json.Marshal(plain)
}

// keep executes a run and stores it.
func (s *sharing) keep(ctx context.Context, i int, run func(flows, links io.Writer) (*Result, error)) (*Result, error) {
	began := time.Now()
	tables := map[string]string{}
	result, err := s.inScratch(tables, run)
	defer func() {
		for _, file := range tables {
			os.Remove(file)
		}
	}()
	if err != nil {
		return nil, err
	}
	if err := s.learn(s.jobs[i], time.Since(began)); err != nil {
		return nil, err
	}
	text, err := storedForm(result)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	replace := s.bad[i]
	s.mu.Unlock()
	if err := s.store.Put(ctx, s.keys[i], text, tables, replace); err != nil {
		return nil, storeError(err)
	}
	return result, nil
}

// inScratch writes the tables of a run into temporary files for the store, and sets their names
// in tables.
func (s *sharing) inScratch(tables map[string]string, run func(flows, links io.Writer) (*Result, error)) (r *Result, err error) {
	var files []*os.File
	for _, name := range []string{flowsFile, linksFile} {
		f, err := s.store.Scratch()
		if err != nil {
			return nil, storeError(err)
		}
		defer func() { err = errors.Join(err, f.Close()) }()
		tables[name] = f.Name()
		files = append(files, f)
	}
	r, err = run(files[0], files[1])
	return r, diskError(err)
}

// storeError reports a full store like a full disk.
func storeError(err error) error {
	if errors.Is(err, store.ErrFull) {
		return fmt.Errorf("%w: %w", ErrDiskFull, err)
	}
	return err
}

// The cost of a run is the number of hops of its load (demand.go) divided by the rate
// of its switches. Rates are learnt: each worker stores the times of its runs.

// Default number of hops per second on one core.
const (
	programHops = 0.5e6
	modelHops   = 1.5e6
)

// setupSeconds is the time of a run without traffic.
const setupSeconds = 0.02

// kinds returns the kinds of the job for looking up rates, the most specific first.
func (j *Job) kinds() [2]string {
	kind := j.Scheme.Engine + " " + cmp.Or(j.Scheme.Arch, "v1model")
	return [2]string{kind + " " + j.Scheme.Scheme, kind}
}

// hops returns the expected hops of a run.
func (j *Job) hops() (float64, error) {
	d, err := j.demand()
	return d.Events / eventsPerHop, err
}

// seconds returns the expected CPU time of a run.
func (r rates) seconds(j *Job, hops float64) float64 {
	for _, kind := range j.kinds() {
		if s := r[kind]; s != nil && s.Hops > 0 {
			return setupSeconds + hops*s.Seconds/s.Hops
		}
	}
	if j.Scheme.Engine == spec.EngineNative {
		return setupSeconds + hops/modelHops
	}
	return setupSeconds + hops/programHops
}

// costs returns the expected seconds of each job.
func (r *Runner) costs(ctx context.Context, jobs []*Job) ([]float64, error) {
	known := rates{}
	if r.Store != nil {
		if err := r.Store.Notes(ctx, func(text json.RawMessage) {
			var one rates
			if json.Unmarshal(text, &one) == nil {
				known.add(one)
			}
		}); err != nil {
			return nil, err
		}
	}
	list := make([]float64, len(jobs))
	var last *Job
	for i, j := range jobs {
		if last != nil && last.setup == j.setup && last.Load == j.Load { // the jobs differ only in the seed
			list[i] = list[i-1]
			continue
		}
		hops, err := j.hops()
		if err != nil {
			return nil, err
		}
		list[i], last = known.seconds(j, hops), j
	}
	return list, nil
}

func (r rates) add(more rates) {
	for kind, s := range more {
		if s == nil || !(s.Hops > 0 && s.Seconds > 0) {
			continue
		}
		if r[kind] == nil {
			r[kind] = new(spent)
		}
		r[kind].Hops += s.Hops
		r[kind].Seconds += s.Seconds
	}
}

// learn records the time of a run and stores it with the worker.
func (s *sharing) learn(j *Job, took time.Duration) error {
	hops, err := j.hops()
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.rates == nil {
		s.rates = rates{}
	}
	for _, kind := range j.kinds() {
		s.rates.add(rates{kind: &spent{hops, max(took.Seconds()-setupSeconds, 1e-6)}})
	}
	return s.worker.Note(s.rates)
}

// divide gives each shard about the same cost: it assigns the most expensive job
// first, always to the shard with the least cost. It returns the shard's own jobs,
// most expensive first, and those of others, starting at a different position for each
// shard.
func (s Shard) divide(costs []float64) (own, others []int) {
	order := make([]int, len(costs))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(costs[b], costs[a]) })
	if s.whole() {
		return order, nil
	}
	loads := make([]float64, s.Of)
	for _, i := range order {
		least := slices.Index(loads, slices.Min(loads))
		loads[least] += costs[i]
		if least == s.Index {
			own = append(own, i)
		} else {
			others = append(others, i)
		}
	}
	from := len(others) * s.Index / s.Of
	return own, append(slices.Clone(others[from:]), others[:from]...)
}
