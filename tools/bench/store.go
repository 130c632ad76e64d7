package bench

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/p4lb/p4lb/internal/lab/store"
)

// benchStoredRuns are as many runs as a large sweep has.
const benchStoredRuns = 10_000

// Store measures what a store takes beside the runs, in a folder: around
// each run, and to find and read those of a sweep. P4LB_BENCH_STORE names another
// store, such as an object store, for the first.
func Store(ctx context.Context, runs int) (list []Measurement, err error) {
	dir, err := os.MkdirTemp("", "p4lb-bench-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	where := cmp.Or(os.Getenv("P4LB_BENCH_STORE"), dir)
	s, err := store.Open(ctx, where, true)
	if err != nil {
		return nil, err
	}
	w, err := s.NewWorker(ctx, 0)
	if err != nil {
		return nil, err
	}
	defer w.Close(ctx)
	result, err := json.Marshal(make([]float64, 1500)) // as long as one with its curves
	if err != nil {
		return nil, err
	}
	n := 0
	spent, err := repeat(ctx, runs, 10*time.Second, monotonic(), func() error {
		n++
		return benchOneRun(ctx, s, w, fmt.Sprintf("%032x", time.Now().UnixNano()), result)
	})
	if err != nil {
		return nil, err
	}
	list = append(list, Measurement{"store.run", milliseconds(median(spent)), "ms",
		fmt.Sprintf("around a run: look, lease, look, keep two tables and a result, release; in %s, median of %d", map[bool]string{true: "a folder", false: where}[where == dir], len(spent))})
	if where != dir {
		return list, nil
	}
	for i := range benchStoredRuns {
		if err := s.Put(ctx, fmt.Sprintf("%032x", i+1), result, nil, false); err != nil {
			return nil, err
		}
	}
	start := time.Now()
	have, err := s.Has(ctx)
	if err != nil {
		return nil, err
	}
	listed := time.Since(start)
	for key := range have {
		if _, err := s.Get(ctx, key); err != nil {
			return nil, err
		}
	}
	return append(list,
		Measurement{"store.list", listed.Seconds(), "s", fmt.Sprintf("find %d runs in a folder", len(have))},
		Measurement{"store.read", time.Since(start).Seconds() - listed.Seconds(), "s", fmt.Sprintf("read and check %d results, one after the other", len(have))}), nil
}

// benchOneRun does with a store what lab does around a run.
func benchOneRun(ctx context.Context, s *store.Store, w *store.Worker, key string, result []byte) error {
	s.Get(ctx, key) // there is none
	lease, err := w.Take(ctx, key)
	if err != nil {
		return err
	}
	s.Get(ctx, key)
	tables := map[string]string{}
	for _, name := range []string{"flows.csv", "links.csv"} {
		f, err := s.Scratch()
		if err != nil {
			return err
		}
		defer os.Remove(f.Name())
		fmt.Fprintf(f, "%s of %s\n", name, key)
		if err := f.Close(); err != nil {
			return err
		}
		tables[name] = f.Name()
	}
	if err := s.Put(ctx, key, result, tables, false); err != nil {
		return err
	}
	return lease.Release(ctx)
}

// monotonic is a clock of real time.
func monotonic() func() time.Duration {
	start := time.Now()
	return func() time.Duration { return time.Since(start) }
}
