package lab

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/p4lb/p4lb/internal/lab/spec"
	"github.com/p4lb/p4lb/internal/lab/store"
)

// smallSweep is 8 runs of some milliseconds.
const smallSweep = `
name: sweep
topology: {leaf-spine: {leaves: 2, spines: 2, hosts: 2, rate: 100Mbps}}
schemes: [ecmp, {scheme: drill, engine: native}]
traffic: [{workload: webserver, pattern: all-to-all, load-of: hosts, cut: none}]
parameters: default
loads: [0.4, 0.6]
seeds: 2
duration: 5ms
`

func loadSweep(t *testing.T, text string) *spec.Experiment {
	t.Helper()
	x, err := spec.Load("sweep.yaml", []byte(text), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

func openStore(t *testing.T, dir string) *store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), dir, true)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// storedRuns are the objects of runs and tables by name.
func storedRuns(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, pattern := range []string{"runs/*/*.run", "tables/*/*"} {
		files, _ := filepath.Glob(filepath.Join(dir, pattern))
		for _, f := range files {
			text, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			rel, _ := filepath.Rel(dir, f)
			all[rel] = string(text)
		}
	}
	return all
}

func sameRuns(t *testing.T, a, b map[string]string) {
	t.Helper()
	if len(a) != len(b) || len(a) == 0 {
		t.Errorf("%d and %d objects", len(a), len(b))
	}
	for name, text := range a {
		if b[name] != text {
			t.Errorf("%s differs", name)
		}
	}
}

// TestStore: runs in a store equal runs in a folder, regardless of process and order,
// and none is computed twice.
func TestStore(t *testing.T) {
	x := loadSweep(t, smallSweep)
	plain, err := (&Runner{Cores: 1}).Run(t.Context(), x)
	if err != nil {
		t.Fatal(err)
	}
	want := plain.csv()
	dirs := []string{t.TempDir(), t.TempDir()}
	for i, cores := range []int{1, 2} {
		c, err := (&Runner{Cores: cores, Store: openStore(t, dirs[i])}).Run(t.Context(), loadSweep(t, smallSweep))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(c.csv(), want) {
			t.Errorf("with %d cores the table is\n%s, want\n%s", cores, c.csv(), want)
		}
	}
	sameRuns(t, storedRuns(t, dirs[0]), storedRuns(t, dirs[1]))

	// Shards compute each run once, and a later process takes all of them.
	third := t.TempDir()
	made := 0
	for i := range 3 {
		r := &Runner{Cores: 1, Store: openStore(t, third), Shard: Shard{i, 3}}
		r.Progress = func(p Progress) {
			if p.Hops > 0 {
				made++
			}
		}
		if _, err := r.Run(t.Context(), loadSweep(t, smallSweep)); err != nil {
			t.Fatal(err)
		}
	}
	if made != 8 {
		t.Errorf("%d runs were made, want 8", made)
	}
	sameRuns(t, storedRuns(t, dirs[0]), storedRuns(t, third))
	last := &Runner{Store: openStore(t, third), Progress: func(p Progress) {
		if p.Hops > 0 {
			t.Errorf("%s was made again", p.Name)
		}
	}}
	c, err := last.Run(t.Context(), loadSweep(t, smallSweep))
	if err != nil || !bytes.Equal(c.csv(), want) {
		t.Errorf("%v: the table is\n%s, want\n%s", err, c.csv(), want)
	}

	// Labels are not part of a run; seeds are.
	again := loadSweep(t, smallSweep)
	again.Name, again.Schemes[0].Label = "other", "mine"
	k1, _ := described(x)
	k2, err := described(again)
	if err != nil || k1.Runs[0].Key != k2.Runs[0].Key || k1.Runs[0].Key == k1.Runs[1].Key || k1.Digest == k2.Digest {
		t.Errorf("%v: keys %+v and %+v", err, k1.Runs[:2], k2.Runs[:2])
	}

	// The stored description suffices to repeat the experiment.
	a := &Archive{Store: last.Store}
	kept, err := a.Find(context.Background(), "sweep", func(err error) { t.Error(err) })
	if err != nil {
		t.Fatal(err)
	}
	back, err := kept.Experiment(nil)
	if err != nil {
		t.Fatal(err)
	}
	k3, err := described(back)
	if err != nil || k3.Digest != kept.Digest || k3.Form != kept.Form {
		t.Errorf("%v: the experiment that was kept is another:\n%s\n%s", err, k3.Form, kept.Form)
	}
}

// TestArchiveReadsFilesAlone has a folder of results hold what might never end.
func TestArchiveReadsFilesAlone(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "x", keptFile)
	if err := errors.Join(os.Mkdir(filepath.Dir(file), 0o777), os.Symlink(os.DevNull, file)); err != nil {
		t.Fatal(err)
	}
	var said []string
	list, err := (&Archive{Dir: dir}).List(context.Background(), func(err error) { said = append(said, err.Error()) })
	want := []string{"reading " + file + ": is a device, pipe or socket, not a file"}
	if err != nil || len(list) > 0 || !slices.Equal(said, want) {
		t.Errorf("%v, %v: %q, want %q", list, err, said, want)
	}
}

// TestArchiveDistrusts: descriptions in a store may come from an attacker. Names that
// lead out of the store and excessive numbers of runs are refused.
func TestArchiveDistrusts(t *testing.T) {
	k, err := described(loadSweep(t, smallSweep))
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		change func(*Kept)
		want   string
	}{
		"key that is short": {func(k *Kept) { k.Runs[0].Key = "" }, `with the key "": it is not used`},
		"key with a path":   {func(k *Kept) { k.Runs[0].Key = "../" + k.Runs[0].Key[3:] }, "with the key \"../"},
		"run elsewhere":     {func(k *Kept) { k.Runs[0].Name = "../x" }, `names a run "../x"`},
		"world elsewhere":   {func(k *Kept) { k.World = "/../x" }, `is of the world "/../x", which is none`},
		"more runs":         {func(k *Kept) { k.Form += "cases[0].seeds=1000000 items\ncases[0].loads=1000000 items\n" }, "lists other runs than it describes"},
		"more items":        {func(k *Kept) { k.Form = "cases=1000000 items\n" + k.Form }, "all items would take more than 256 MiB"},
	} {
		t.Run(name, func(t *testing.T) {
			bad := *k
			bad.Runs = slices.Clone(k.Runs)
			c.change(&bad)
			bad.Digest = digestOf(bad.Runs)
			dir := t.TempDir()
			if err := os.Mkdir(filepath.Join(dir, "x"), 0o777); err != nil {
				t.Fatal(err)
			}
			if err := (&Runner{Dir: filepath.Join(dir, "x")}).KeepExperiment(context.Background(), &bad); err != nil {
				t.Fatal(err)
			}
			a := &Archive{Dir: dir}
			var said []string
			found, err := a.Find(context.Background(), bad.Name, func(err error) { said = append(said, err.Error()) })
			if found != nil {
				_, err = a.Comparison(context.Background(), found, func(err error) { said = append(said, err.Error()) })
			}
			if err == nil || !strings.Contains(strings.Join(append(said, err.Error()), "\n"), c.want) {
				t.Errorf("%q, %v: want %q", said, err, c.want)
			}
		})
	}
}
