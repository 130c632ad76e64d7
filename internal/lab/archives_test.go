package lab

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/p4lb/p4lb/internal/controller/plan"
	"github.com/p4lb/p4lb/internal/dataplane"
	"github.com/p4lb/p4lb/internal/lab/spec"
	"github.com/p4lb/p4lb/internal/lab/store"
	"github.com/p4lb/p4lb/internal/text/lists"
)

// twoSeeds has two runs of a few milliseconds.
const twoSeeds = `name: %s
topology: {leaf-spine: {leaves: 2, spines: 2, hosts: 1, rate: 100Mbps}}
schemes: [ecmp]
engine: native
traffic: [{workload: webserver, load-of: hosts}]
loads: [%s]
seeds: 2
duration: 2ms
`

// TestArchives finds, counts, checks, repeats and removes experiments, in folders and
// in a store.
func TestArchives(t *testing.T) {
	for _, kind := range []string{"folder", "store"} {
		dir := t.TempDir()
		a := &Archive{Dir: dir}
		if kind == "store" {
			a = &Archive{Store: openStore(t, dir)}
		}
		// The experiments b and c share a run with each other, but not with a.
		for _, e := range [][2]string{{"a", "0.5"}, {"b", "0.6"}, {"c", "0.6"}, {"c", "0.7"}} {
			r := &Runner{Cores: 1}
			x := loadSweep(t, fmt.Sprintf(twoSeeds, e[0], e[1]))
			k, err := described(x)
			if err != nil {
				t.Fatal(err)
			}
			if kind == "store" {
				r.Store = a.Store
			} else {
				r.Dir = filepath.Join(dir, k.ID())
				if e[0] == "a" {
					r.Dir = filepath.Join(dir, "by hand") // a folder of another name
				}
				if err := os.MkdirAll(r.Dir, 0o777); err != nil {
					t.Fatal(err)
				}
			}
			if err := r.KeepExperiment(t.Context(), k); err != nil {
				t.Fatal(err)
			}
			run(t, r, x)
		}
		fail := func(err error) { t.Errorf("%s: %v", kind, err) }
		list := func() (text string) {
			all, err := a.List(t.Context(), fail)
			if err != nil {
				t.Fatal(err)
			}
			done, err := a.Done(t.Context(), all)
			if err != nil {
				t.Fatal(err)
			}
			for i, k := range all {
				text += fmt.Sprintf("%s %d of %d, ", k.Name, done[i], len(k.Runs))
			}
			return text
		}
		if got, want := list(), "a 2 of 2, b 2 of 2, c 2 of 2, c 2 of 2, "; got != want {
			t.Errorf("%s: %s, want %s", kind, got, want)
		}
		find := func(name string) *Kept {
			k, err := a.Find(t.Context(), name, fail)
			if err != nil {
				t.Fatalf("%s: %v", kind, err)
			}
			return k
		}
		first, second := find("a"), find("b")
		if k := find(first.ID()[:4]); k.ID() != first.ID() {
			t.Errorf("%s: %s is %s", kind, first.ID()[:4], k.ID())
		}
		for name, want := range map[string]string{"c": `"c" is any of c-`, "d": `there is no experiment "d" in ` + a.String() + ": there are " + first.ID() + ", "} {
			if k, err := a.Find(t.Context(), name, fail); err == nil || !strings.HasPrefix(err.Error(), want) {
				t.Errorf("%s: %v, %v, want %s", kind, k, err, want)
			}
		}
		empty := &Archive{Dir: t.TempDir()}
		if _, err := empty.Find(t.Context(), "a", fail); err == nil || err.Error() != "there is no experiment in "+empty.String() {
			t.Errorf("an empty archive: %v", err)
		}

		// All data are as their digests say, and the same again.
		var checked []string
		there, err := a.Check(t.Context(), first, func(run KeptRun, err error) { checked = append(checked, fmt.Sprint(run.Name, err)) })
		if want := lists.Map(first.Runs, func(r KeptRun) string { return r.Name + "<nil>" }); err != nil || there != 2 || !slices.Equal(checked, want) {
			t.Errorf("%s: checked %v of %d, %v", kind, checked, there, err)
		}
		for sample, want := range map[int]string{1: "[0]", 2: "[0 1]", 9: "[0 1]"} {
			var repeated []int
			err := a.Repeat(t.Context(), first, nil, sample, func(run KeptRun, err error) {
				if repeated = append(repeated, slices.Index(first.Runs, run)); err != nil {
					fail(err)
				}
			})
			if fmt.Sprint(repeated) != want || err != nil {
				t.Errorf("%s: %v repeated, %v, want %s", kind, repeated, err, want)
			}
		}
		real := *first
		real.World = BMv2
		if err := a.Repeat(t.Context(), &real, nil, 1, nil); err == nil || !strings.Contains(err.Error(), " ran in world bmv2: runs in real time cannot be repeated exactly") {
			t.Errorf("%s: %v", kind, err)
		}
		other := *first
		other.Runs = second.Runs
		if err := a.Repeat(t.Context(), &other, nil, 1, nil); err == nil || !strings.Contains(err.Error(), ", which would run something else: want the p4lb that made it") {
			t.Errorf("%s: %v", kind, err)
		}
		var rows [][]string
		err = a.Rows(t.Context(), first, fail, func(head []string) error { rows = append(rows, head); return nil }, func(line []string) error { rows = append(rows, line); return nil })
		if err != nil || len(rows) != 3 || strings.Join(rows[0][:9], " ") != "case scheme arch engine load seed flows hops elapsed_s" || strings.Join(rows[2][:6], " ") != " ecmp v1model native 0.5 2" || len(rows[2]) != len(rows[0]) {
			t.Errorf("%s: %v, %v", kind, rows, err)
		}
		stop := errors.New("stop")
		if err := a.Rows(t.Context(), first, fail, func([]string) error { return stop }, nil); !errors.Is(err, stop) {
			t.Errorf("%s: %v", kind, err)
		}
		if err := a.Rows(t.Context(), first, fail, func([]string) error { return nil }, func([]string) error { return stop }); !errors.Is(err, stop) {
			t.Errorf("%s: %v", kind, err)
		}
		if _, err := a.Table(t.Context(), first, first.Runs[0], "x.csv"); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: a table that no run has: %v", kind, err)
		}
		table, err := a.Table(t.Context(), first, first.Runs[0], flowsFile)
		if err != nil {
			t.Fatal(err)
		}
		if text, err := io.ReadAll(table); err != nil || !strings.HasPrefix(string(text), "flow,class,") {
			t.Errorf("%s: flows %.20q, %v", kind, text, err)
		}
		table.Close()

		// Results of other runs, and tables that have changed, are noticed.
		if kind == "folder" {
			in := func(i int, name string) string { return filepath.Join(a.folderOf(second, second.Runs[i]), name) }
			for name, from := range map[string]string{in(0, resultFile): in(1, resultFile), in(1, linksFile): in(1, flowsFile)} {
				text, err := os.ReadFile(from)
				if err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(name, text, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			var damaged *store.DamagedError
			if _, err := a.Result(t.Context(), second, second.Runs[0]); !errors.As(err, &damaged) || !strings.Contains(err.Error(), "holds the result of something else") {
				t.Errorf("a result of another run: %v", err)
			}
			var said []string
			c, err := a.Comparison(t.Context(), second, func(err error) { said = append(said, err.Error()) })
			if err != nil || len(said) != 1 || c.Results[0] != nil || c.Results[1] == nil || len(c.Rows[0].Runs) != 1 {
				t.Errorf("with a damaged run: %v, %v", said, err)
			}
			err = a.Repeat(t.Context(), second, nil, 5, func(run KeptRun, err error) {
				if run.Name != second.Runs[1].Name || !errors.Is(err, errUnlike) || !strings.HasSuffix(err.Error(), "in "+linksFile) {
					t.Errorf("%s: %v: want links.csv to differ", run.Name, err)
				}
			})
			if err != nil {
				t.Error(err)
			}
		}

		// Only the experiments that are named go, with the runs that no other has.
		var said []string
		prune := func(dry bool, list ...*Kept) int {
			said = nil
			if err := a.Prune(t.Context(), list, dry, true, func(what string) { said = append(said, what) }); err != nil {
				t.Errorf("%s: %v", kind, err)
			}
			return len(said)
		}
		was := list()
		if n := prune(true, first); n == 0 || list() != was {
			t.Errorf("%s: dry, %d removed: %s, was %s", kind, n, list(), was)
		}
		if n := prune(false, first); kind == "folder" && (n != 1 || filepath.Base(said[0]) != "by hand") || n == 0 || list() != strings.TrimPrefix(was, "a 2 of 2, ") {
			t.Errorf("%s: %q removed: %s, was %s", kind, said, list(), was)
		}
		if prune(false, second); list() != "c 2 of 2, c 2 of 2, " {
			t.Errorf("%s: %q removed: %s", kind, said, list())
		}
		if kind == "store" {
			if n := len(storedRuns(t, dir)); n != 12 {
				t.Errorf("%d objects of runs are left: want 4 runs with two tables each", n)
			}
		}
	}
}

// TestParseKept refuses descriptions of other formats.
func TestParseKept(t *testing.T) {
	for text, want := range map[string]string{
		"x":                                "f: not a description of an experiment: invalid character",
		`{"format": "other 1"}`:            `f: not a description of an experiment: format "other 1", want "p4lb-experiment 1"`,
		`{"format": "p4lb-experiment 2"}`:  `f: format "p4lb-experiment 2": this p4lb reads "p4lb-experiment 1"`,
		`{"format": "p4lb-experiment 1"}`:  "f has another digest than it says: it is not used",
		`{"format": "p4lb-experiment 1x"}`: `f: format "p4lb-experiment 1x"`,
	} {
		if k, err := parseKept("f", []byte(text)); k != nil || err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v, %v, want %s", text, k, err, want)
		}
	}
}

// TestKeyOfConnections: runs whose flow lists differ only in connections have different keys.
func TestKeyOfConnections(t *testing.T) {
	flow := func(c int32) spec.Flow { return spec.Flow{Connection: c} }
	for _, c := range []struct {
		flows []spec.Flow
		want  string
	}{{nil, ""}, {[]spec.Flow{flow(0), flow(0)}, ""}, {[]spec.Flow{flow(0), flow(2), flow(11)}, "0 2 11 "}} {
		if got := connections(c.flows); got != c.want {
			t.Errorf("%v: %q, want %q", c.flows, got, c.want)
		}
	}
}

// TestMatches converts the keys of planned entries for each kind of match.
func TestMatches(t *testing.T) {
	v := func(x uint64) *uint64 { return &x }
	for _, c := range []struct {
		kind  dataplane.MatchKind
		width int
		m     plan.Match
		want  string
	}{
		{dataplane.MatchExact, 16, plan.Match{Value: 0x102, Bits: 16}, "0102"},
		{dataplane.MatchExact, 128, plan.Match{Value: 2, Upper: 1, Bits: 128}, "010000000000000002"},
		{dataplane.MatchExact, 8, plan.Match{Bits: 8}, "00"},
		{dataplane.MatchLPM, 32, plan.Match{Value: 0x0a000000, Bits: 8}, "0a000000/8"},
		{dataplane.MatchLPM, 32, plan.Match{Value: 0x0a000000}, "00/0"},
		{dataplane.MatchLPM, 32, plan.Match{Value: 5, Bits: 32, Any: true}, "00/0"},
		{dataplane.MatchTernary, 16, plan.Match{Value: 0x1234, Bits: 8}, "1200 mask ff00"},
		{dataplane.MatchTernary, 16, plan.Match{Value: 0x1234, Bits: 16, Mask: v(0x0f)}, "04 mask 0f"},
		{dataplane.MatchTernary, 16, plan.Match{Value: 0x1234, Bits: 16, Mask: v(0)}, "00 mask 00"},
		{dataplane.MatchTernary, 16, plan.Match{Value: 0x1234, Bits: 16, Any: true}, "00 mask 00"},
		{dataplane.MatchTernary, 8, plan.Match{Value: 7, Bits: 16}, "07 mask ff"},
		{dataplane.MatchRange, 16, plan.Match{Value: 5, Bits: 16, High: v(300)}, "05 to 012c"},
		{dataplane.MatchRange, 16, plan.Match{Value: 5, Bits: 16}, "05 to 05"},
		{dataplane.MatchRange, 16, plan.Match{Bits: 16, Any: true}, "00 to ffff"},
		{dataplane.MatchOptional, 16, plan.Match{Value: 5, Bits: 16}, "05"},
		{dataplane.MatchOptional, 16, plan.Match{Value: 5, Bits: 16, Any: true}, ""},
	} {
		m := matchOf(dataplane.KeyField{Kind: c.kind, Width: c.width}, c.m)
		got := fmt.Sprintf("%x", m.Value)
		if c.kind == dataplane.MatchLPM {
			got += fmt.Sprintf("/%d", m.PrefixLen)
		}
		if m.Mask != nil {
			got += fmt.Sprintf(" mask %x", m.Mask)
		}
		if m.High != nil {
			got += fmt.Sprintf(" to %x", m.High)
		}
		if got != c.want {
			t.Errorf("%v of %d bits, %+v: %s, want %s", c.kind, c.width, c.m, got, c.want)
		}
	}
}

// TestExperimentID: an ID is short, and experiments of other worlds have others.
func TestExperimentID(t *testing.T) {
	for want, k := range map[string]Kept{
		"my_test-01234567":          {Name: "my test", Digest: "0123456789abcdef"},
		"my_test-01234567-embedded": {Name: "my test", Digest: "0123456789abcdef", World: "embedded"},
	} {
		if id := k.ID(); id != want {
			t.Errorf("%+v: %s, want %s", k, id, want)
		}
	}
}
