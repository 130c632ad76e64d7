package lab

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/p4lb/p4lb/internal/lab/spec"
	"github.com/p4lb/p4lb/internal/lab/store"
)

// aKey is a key as runs have it.
var aKey = strings.Repeat("0a", 16)

// kept returns a valid description of an experiment.
func kept(name string, runs ...KeptRun) *Kept {
	return &Kept{Format: keptFormat, Name: name, Digest: digestOf(runs), Runs: runs}
}

// A description that names files outside of its folder, other worlds or other runs than its
// digest is not used.
func TestParseKeptRuns(t *testing.T) {
	good := []KeptRun{{"ecmp/load-0.5/seed-1", aKey}, {"ecmp/load-0.5/seed-2", aKey}}
	for _, c := range []struct {
		edit func(k *Kept)
		want string
	}{
		{func(*Kept) {}, ""},
		{func(k *Kept) { k.World = BMv2 }, ""},
		{func(k *Kept) { k.World = "moon" }, `f is of the world "moon", which is none: it is not used`},
		{func(k *Kept) { k.Runs[1].Key = strings.Repeat("0b", 16) }, "f has another digest than it says: it is not used"},
		{func(k *Kept) { k.Runs[1].Name = "x" }, "f has another digest than it says: it is not used"},
		{func(k *Kept) { k.Runs = k.Runs[:1] }, "f has another digest than it says: it is not used"},
		{func(k *Kept) { k.Runs[1].Name = "../x"; k.Digest = digestOf(k.Runs) }, `f names a run "../x" with the key "` + aKey + `": it is not used`},
		{func(k *Kept) { k.Runs[0].Name = "/x"; k.Digest = digestOf(k.Runs) }, `f names a run "/x" with`},
		{func(k *Kept) { k.Runs[0].Key = "../x"; k.Digest = digestOf(k.Runs) }, `f names a run "ecmp/load-0.5/seed-1" with the key "../x": it is not used`},
	} {
		k := kept("a", slices.Clone(good)...)
		c.edit(k)
		text, err := json.Marshal(k)
		if err != nil {
			t.Fatal(err)
		}
		got, err := parseKept("f", text)
		if c.want == "" && (err != nil || got.ID() != k.ID() || !slices.Equal(got.Runs, k.Runs)) || c.want != "" && (got != nil || err == nil || !strings.HasPrefix(err.Error(), c.want)) {
			t.Errorf("%s: %+v, %v, want %q", text, got, err, c.want)
		}
	}
}

// The description of an experiment repeats it: files, world and choices are restored, without
// the variations, which are no part of its runs.
func TestDescribedExperiment(t *testing.T) {
	x := load(t, oneFlow)
	for world, want := range map[string]string{"": "", Sim: "", Embedded: Embedded} {
		r := &Runner{World: world, Rounds: 9}
		jobs, err := r.Jobs(x)
		if err != nil {
			t.Fatal(err)
		}
		k := r.describe(x, jobs)
		if k.World != want || k.Rounds != 9 || k.Name != "quick" || k.Version != resultVersion || len(k.Runs) != 2 || k.Runs[0].Name != "ecmp/load-0.7/seed-1" || k.Runs[1].Key != jobs[1].Key() || k.Digest != digestOf(k.Runs) {
			t.Errorf("%q: %+v", world, k)
		}
		again, err := k.Experiment(nil)
		if err != nil || again.Vary != nil || len(again.Targets) != 3 || again.Name != "quick" {
			t.Errorf("%q: %+v, %v", world, again, err)
		}
	}
	if x.Vary == nil {
		t.Error("describing an experiment changes it")
	}
	k := kept("a")
	k.Form = "x"
	if _, err := k.Experiment(nil); err == nil || !strings.HasPrefix(err.Error(), "experiment "+k.ID()+": ") {
		t.Errorf("an invalid form: %v", err)
	}
}

// archived writes descriptions into the subfolders of a folder.
func archived(t *testing.T, list map[string]*Kept) *Archive {
	t.Helper()
	a := &Archive{Dir: t.TempDir()}
	for folder, k := range list {
		dir := filepath.Join(a.Dir, folder)
		err := os.MkdirAll(dir, 0o777)
		if err == nil {
			err = (&Runner{Dir: dir}).KeepExperiment(t.Context(), k)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return a
}

// An archive lists the experiments in subfolders by name and digest. Other files and folders
// are skipped, damaged descriptions reported.
func TestListArchive(t *testing.T) {
	b := kept("b", KeptRun{"r", aKey})
	a := archived(t, map[string]*Kept{"1": kept("b"), "2": kept("a"), "3": b})
	for name, text := range map[string]string{"4/other.txt": "x", "5/" + keptFile: "{}", keptFile: "x"} {
		file := filepath.Join(a.Dir, filepath.FromSlash(name))
		err := os.MkdirAll(filepath.Dir(file), 0o777)
		if err == nil {
			err = os.WriteFile(file, []byte(text), 0o666)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	var warnings []string
	list, err := a.List(t.Context(), func(err error) { warnings = append(warnings, err.Error()) })
	var got []string
	for _, k := range list {
		got = append(got, k.ID()+" in "+k.entry)
	}
	want := []string{kept("a").ID() + " in 2", b.ID() + " in 3", kept("b").ID() + " in 1"}
	if slices.Sort(want[1:]); err != nil || !slices.Equal(got, want) {
		t.Errorf("%q, %v, want %q", got, err, want)
	}
	if len(warnings) != 1 || !strings.HasPrefix(warnings[0], filepath.Join(a.Dir, "5", keptFile)+": not a description") {
		t.Errorf("warnings %q", warnings)
	}
	if _, err := (&Archive{Dir: filepath.Join(a.Dir, "none")}).List(t.Context(), nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing folder: %v", err)
	}
}

// An experiment is found by its name, by its name as a folder, or by enough of its ID.
func TestFindInArchive(t *testing.T) {
	long := kept("my test", KeptRun{"r", aKey})
	a := archived(t, map[string]*Kept{"1": kept("my test"), "2": long, "3": kept("one two")})
	one := kept("one two")
	for name, want := range map[string]string{
		"one two": one.ID(), "one_two": one.ID(), one.ID(): one.ID(), long.ID()[:12]: long.ID(), "one_two-": one.ID(), "one_tw": "no", "my test": "any", "my_test": "any", "my_test-": "any", "my_test-zz": "no",
	} {
		k, err := a.Find(t.Context(), name, func(err error) { t.Error(err) })
		switch want {
		case "no", "any":
			if k != nil || err == nil || strings.Contains(err.Error(), "is any of ") != (want == "any") {
				t.Errorf("%s: %v, %v", name, k, err)
			}
		default:
			if err != nil || k.ID() != want {
				t.Errorf("%s: %v, %v, want %s", name, k, err, want)
			}
		}
	}
}

// TestArchiveOfOne compares and repeats a run from its folder, whatever names its result has.
func TestArchiveOfOne(t *testing.T) {
	a := &Archive{Dir: t.TempDir()}
	x := load(t, oneFlow)
	run(t, &Runner{Under: a.Dir, Cores: 1}, x)
	k, err := a.Find(t.Context(), "quick", nil)
	if err != nil {
		t.Fatal(err)
	}
	c, err := a.Comparison(t.Context(), k, nil)
	if err != nil || c.World != Sim || len(c.Rows) != 1 || len(c.Rows[0].Runs) != 2 || c.Results[0].Label != "ecmp" || c.Results[1].Experiment != "quick" || c.Results[0].Plots.FCT != nil {
		t.Fatalf("%+v, %v", c, err)
	}
	if done, err := a.Done(t.Context(), []*Kept{k}); err != nil || !slices.Equal(done, []int{2}) {
		t.Errorf("%v runs, %v, want 2", done, err)
	}
	k.World = Embedded
	if c, err = a.Comparison(t.Context(), k, nil); err != nil || c.World != Embedded {
		t.Errorf("%v, %v", c.World, err)
	}
	const other = " lists other runs than it describes: it is not used"
	renamed, fewer := *k, *k
	renamed.Runs = []KeptRun{k.Runs[1], k.Runs[0]}
	fewer.Runs = k.Runs[:1]
	for _, k := range []*Kept{&renamed, &fewer} {
		if _, err := a.Comparison(t.Context(), k, nil); err == nil || !strings.HasSuffix(err.Error(), other) {
			t.Errorf("%v: %v", k.Runs, err)
		}
	}
	if err := os.Remove(filepath.Join(a.folderOf(k, k.Runs[1]), resultFile)); err != nil {
		t.Fatal(err)
	}
	if r, err := a.Result(t.Context(), k, k.Runs[1]); r != nil || err != nil {
		t.Errorf("a missing run: %v, %v", r, err)
	}
	if done, err := a.Done(t.Context(), []*Kept{k}); err != nil || !slices.Equal(done, []int{1}) {
		t.Errorf("%v runs, %v, want 1", done, err)
	}
	if c, err = a.Comparison(t.Context(), k, nil); err != nil || c.Results[1] != nil || len(c.Rows[0].Runs) != 1 {
		t.Errorf("%+v, %v", c, err)
	}
}

// TestStoreOfOne: a store has the result of each run once. A damaged one is noticed, reported
// and replaced.
func TestStoreOfOne(t *testing.T) {
	dir := t.TempDir()
	var logged []string
	once := func() *Comparison {
		return run(t, &Runner{Store: openStore(t, dir), Cores: 1, Log: func(s string) { logged = append(logged, s) }}, load(t, oneFlow))
	}
	first := once()
	if first.Made != 2 || first.Taken != 0 || first.Left != 0 {
		t.Errorf("%d made, %d taken, %d left", first.Made, first.Taken, first.Left)
	}
	again := once()
	if again.Made != 0 || again.Taken != 2 || len(logged) > 0 || written(t, again.Results[1]) != written(t, first.Results[1]) {
		t.Errorf("%d made, %d taken, logged %q", again.Made, again.Taken, logged)
	}
	stored := storedRuns(t, dir)
	damaged := ""
	for name := range stored {
		if strings.HasPrefix(name, "runs/") {
			damaged = name
		}
	}
	if err := os.WriteFile(filepath.Join(dir, damaged), []byte("x"), 0o666); err != nil {
		t.Fatal(err)
	}
	third := once()
	if third.Made != 1 || third.Taken != 1 || len(logged) != 1 || !strings.HasSuffix(logged[0], ", but made again") {
		t.Errorf("%d made, %d taken, logged %q", third.Made, third.Taken, logged)
	}
	sameRuns(t, stored, storedRuns(t, dir))
	a := &Archive{Store: openStore(t, dir)}
	k, err := a.Find(t.Context(), "quick", nil)
	if err != nil {
		t.Fatal(err)
	}
	if r, err := a.Result(t.Context(), k, KeptRun{"x", aKey}); r != nil || err != nil {
		t.Errorf("a run that the store does not have: %v, %v", r, err)
	}
	if done, err := a.Done(t.Context(), []*Kept{k, kept("x", KeptRun{"x", aKey})}); err != nil || !slices.Equal(done, []int{2, 0}) {
		t.Errorf("%v runs, %v", done, err)
	}
}

// Runs that differ only in the seed cost the same; other loads, rows and cases cost their own
// time.
func TestCosts(t *testing.T) {
	for _, schemes := range []string{"[ecmp, {scheme: drill, engine: native}]", "[ecmp]"} {
		x := load(t, "topology: {leaf-spine: {leaves: 2, spines: 2, hosts: 2, rate: 1G}}\nschemes: "+schemes+"\nengine: p4\nloads: [0.3, 0.6]\nseeds: 2\nduration: 10ms\n")
		r := &Runner{}
		jobs, err := r.Jobs(x)
		if err != nil {
			t.Fatal(err)
		}
		costs, err := r.costs(t.Context(), jobs)
		if err != nil {
			t.Fatal(err)
		}
		for i, j := range jobs {
			hops, err := j.hops()
			if err != nil {
				t.Fatal(err)
			}
			rate := map[string]float64{spec.EngineP4: programHops, spec.EngineNative: modelHops}[j.Scheme.Engine]
			if want := setupSeconds + hops/rate; !near(costs[i], want) {
				t.Errorf("%s: %g s, want %g", j.Name(), costs[i], want)
			}
		}
		if first, last := costs[0], costs[len(costs)-1]; first != costs[1] || schemes == "[ecmp]" && !(last > first) {
			t.Errorf("%s: %v", schemes, costs)
		}
	}
}

// Errors of a full store and of a full disk are alike.
func TestStoreFull(t *testing.T) {
	full := fmt.Errorf("x: %w", store.ErrFull)
	if err := storeError(full); !errors.Is(err, ErrDiskFull) || !errors.Is(err, store.ErrFull) {
		t.Errorf("%v", err)
	}
	other := errors.New("other")
	if err := storeError(other); err != other {
		t.Errorf("%v", err)
	}
	r := &Result{Experiment: "e", Case: "c", Label: "l", Scheme: "s", Seed: 5, Spec: aKey, Elapsed: time.Second}
	text, err := storedForm(r)
	back := new(Result)
	if err != nil || json.Unmarshal(text, back) != nil || back.Experiment+back.Case+back.Label+back.Scheme != "" || back.Seed != 5 || back.Spec != aKey || r.Label != "l" {
		t.Errorf("stored as %s, %v", text, err)
	}
}
