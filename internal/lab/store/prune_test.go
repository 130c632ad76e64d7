package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
)

// pruneStore stores four runs, two of which share a table, and the objects of three
// experiments. It returns the keys of the runs.
func pruneStore(t *testing.T, s *Store) (keys []string) {
	t.Helper()
	ctx := t.Context()
	for i, key := range []string{"aa", "ab", "ba", "cc"} {
		key += strings.Repeat(fmt.Sprint(i), keyLength-2)
		keys = append(keys, key)
		// The first two runs share a table.
		table := write(t, s, []string{"shared", "shared", "own 2", "own 3"}[i])
		if err := s.Put(ctx, key, fmt.Appendf(nil, `{"n":%d}`, i), map[string]string{"flows.csv": table}, false); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"experiments/first/run.json", "experiments/second/deep/run.json", "experiments/third/run.json", "submissions/first/job", "submissions/third/job"} {
		if err := s.PutText(ctx, name, []byte(name)); err != nil {
			t.Fatal(err)
		}
	}
	return keys
}

func objects(t *testing.T, s *Store) map[string]bool {
	t.Helper()
	list, err := s.List(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, o := range list {
		names[o.Name] = true
	}
	return names
}

// Prune removes exactly the runs, tables, experiments and job notes that no remaining
// experiment needs. The objects of other experiments stay readable.
func TestPruneKeepsOtherExperiments(t *testing.T) {
	for _, test := range []struct {
		name         string
		needed       []int // of the four runs
		places       []string
		gone, stayed []string
		tables       int // left, of three
	}{
		{"nothing", []int{0, 1, 2, 3}, []string{"first", "second", "third"}, nil, []string{"experiments/first/run.json", "submissions/third/job"}, 3},
		{
			"the third", []int{0, 1, 2}, []string{"first", "second"},
			[]string{"experiments/third/run.json", "submissions/third/job"},
			[]string{"experiments/first/run.json", "experiments/second/deep/run.json", "submissions/first/job"}, 2,
		},
		{
			"one of two runs with a table", []int{1, 3}, []string{"second"},
			[]string{"experiments/first/run.json", "experiments/third/run.json", "submissions/first/job"},
			[]string{"experiments/second/deep/run.json"}, 2,
		},
		{"all", nil, nil, []string{"experiments/first/run.json", "experiments/second/deep/run.json"}, nil, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := openTest(t, t.TempDir())
			keys := pruneStore(t, s)
			needed, places := map[string]bool{}, map[string]bool{}
			for _, i := range test.needed {
				needed[keys[i]] = true
			}
			for _, p := range test.places {
				places[p] = true
			}
			before := objects(t, s)
			var announced []string
			each := func(name string) { announced = append(announced, name) }
			if err := s.Prune(t.Context(), needed, places, true, false, each); err != nil {
				t.Fatal(err)
			}
			if !maps.Equal(objects(t, s), before) {
				t.Fatal("a dry run removes objects")
			}
			dry := slices.Sorted(slices.Values(announced))
			announced = nil
			if err := s.Prune(t.Context(), needed, places, false, false, each); err != nil {
				t.Fatal(err)
			}
			if got := slices.Sorted(slices.Values(announced)); !slices.Equal(got, dry) {
				t.Errorf("removed %v, announced %v", got, dry)
			}
			after := objects(t, s)
			for _, name := range announced {
				if after[name] || !before[name] {
					t.Errorf("%s was announced and is there, or was not there", name)
				}
			}
			if len(before)-len(after) != len(announced) {
				t.Errorf("%d objects removed, %d announced", len(before)-len(after), len(announced))
			}
			for _, name := range test.gone {
				if after[name] {
					t.Errorf("%s stays", name)
				}
			}
			for _, name := range test.stayed {
				if !after[name] {
					t.Errorf("%s is gone", name)
				}
			}
			tables := 0
			for name := range after {
				if strings.HasPrefix(name, "tables/") {
					tables++
				}
			}
			if tables != test.tables {
				t.Errorf("%d tables left, want %d", tables, test.tables)
			}
			for i, key := range keys {
				run, err := s.Get(t.Context(), key)
				if needed[key] {
					if err != nil {
						t.Fatalf("run %d: %v", i, err)
					}
					if _, err := readTable(s, run.Tables["flows.csv"]); err != nil {
						t.Errorf("the table of run %d: %v", i, err)
					}
				} else if !errors.Is(err, ErrMissing) {
					t.Errorf("run %d stays: %v", i, err)
				}
			}
		})
	}
}

// Prune removes leases of dead workers and dead workers, and refuses to work beside a
// live one, whose tables belong to no run yet.
func TestPruneWorkers(t *testing.T) {
	ctx := t.Context()
	s := openTest(t, t.TempDir())
	ended, live := worker(t, s, time.Now), worker(t, s, time.Now)
	for i, w := range []*Worker{ended, live} {
		if _, err := w.Take(ctx, strings.Repeat(fmt.Sprint(i), keyLength)); err != nil {
			t.Fatal(err)
		}
	}
	if err := ended.Close(ctx); err != nil {
		t.Fatal(err)
	}
	prune := func(anyway bool) error { return s.Prune(ctx, nil, nil, false, anyway, func(string) {}) }
	var held *HeldError
	if err := prune(false); !errors.As(err, &held) {
		t.Fatalf("beside a live worker: %v", err)
	}
	if err := prune(true); err != nil {
		t.Fatal(err)
	}
	names := objects(t, s)
	for name, want := range map[string]bool{
		leaseName(strings.Repeat("0", keyLength), 1): false, "owners/" + ended.id: false,
		leaseName(strings.Repeat("1", keyLength), 1): true, "owners/" + live.id: true,
	} {
		if names[name] != want {
			t.Errorf("%s: there %v, want %v", name, names[name], want)
		}
	}
}

// A worker raises its counter at each interval until it is closed, and starts with the
// default interval if it gets none. Its note is in the store with the next update.
func TestHeartbeat(t *testing.T) {
	ctx := t.Context()
	s := openTest(t, t.TempDir())
	w, err := s.NewWorker(ctx, time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Note(map[string]int{"done": 3}); err != nil {
		t.Fatal(err)
	}
	beat := func() int64 { w.mu.Lock(); defer w.mu.Unlock(); return w.owner.Beat }
	first := beat()
	for end := time.Now().Add(10 * time.Second); beat() < first+3; {
		if time.Now().After(end) {
			t.Fatalf("the counter went from %d to %d", first, beat())
		}
		time.Sleep(time.Millisecond)
	}
	if err := w.Close(ctx); err != nil {
		t.Fatal(err)
	}
	last := beat()
	var notes []string
	if err := s.Notes(ctx, func(n json.RawMessage) { notes = append(notes, string(n)) }); err != nil || !slices.Equal(notes, []string{`{"done":3}`}) {
		t.Errorf("notes %v, %v", notes, err)
	}
	if err := w.beat(ctx); err != nil || beat() != last+1 {
		t.Errorf("an update raises the counter from %d to %d, %v", last, beat(), err)
	}
	d, err := s.NewWorker(ctx, 0)
	if err != nil || d.every != 10*time.Second || d.owner.Every != d.every {
		t.Errorf("without an interval: %v, %v", d.every, err)
	}
	d.Close(ctx)
}
