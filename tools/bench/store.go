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

// benchStoredRuns is the number of runs in a large sweep.
const benchStoredRuns = 10_000

// Store measures the overhead of a store in a folder: per run, and for finding
// and reading the runs of a sweep. P4LB_BENCH_STORE names another store for the
// first measurement, for example an object store.
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
	result, err := json.Marshal(make([]float64, 1500)) // the size of a result with curves
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
		fmt.Sprintf("overhead of a run: look up, lease, look up, store two tables and a result, release; in %s, median of %d", map[bool]string{true: "a folder", false: where}[where == dir], len(spent))})
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
		Measurement{"store.list", listed.Seconds(), "s", fmt.Sprintf("list %d runs in a folder", len(have))},
		Measurement{"store.read", time.Since(start).Seconds() - listed.Seconds(), "s", fmt.Sprintf("read and verify %d results sequentially", len(have))}), nil
}

// benchOneRun uses a store like lab does for one run.
func benchOneRun(ctx context.Context, s *store.Store, w *store.Worker, key string, result []byte) error {
	s.Get(ctx, key) // does not exist
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

// monotonic returns a clock of elapsed time.
func monotonic() func() time.Duration {
	start := time.Now()
	return func() time.Duration { return time.Since(start) }
}
