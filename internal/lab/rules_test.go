package lab

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/p4lb/p4lb/internal/controller/plan"
	"github.com/p4lb/p4lb/internal/lab/spec"
	"github.com/p4lb/p4lb/internal/lab/store"
	"github.com/p4lb/p4lb/internal/network/fabric"
	"github.com/p4lb/p4lb/internal/scheme"
	"github.com/p4lb/p4lb/internal/scheme/manifest"
	"github.com/p4lb/p4lb/internal/sim"
)

// TestStrainByHand: a real-time world must carry the packets of the seed with the highest rate, and
// carries more on more cores.
func TestStrainByHand(t *testing.T) {
	x := load(t, steadyFlow)
	top, err := x.Cases[0].Network(spec.NoFiles)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		world string
		cores int
		most  float64
	}{{Embedded, 0, 150e3}, {Embedded, 1, 150e3}, {Embedded, 2, 300e3}, {BMv2, -1, 8e3}, {BMv2, 1, 8e3}, {BMv2, 3, 24e3}} {
		rate, most, err := Strain(x, top, c.world, c.cores)
		// 35 segments and half as many acknowledgments, at three switches, in 5 ms.
		if err != nil || most != c.most || !near(rate, 1.5*35*3/5e-3) {
			t.Errorf("%s on %d cores: %g packets a second of %g, %v", c.world, c.cores, rate, most, err)
		}
	}
}

// TestLinger: without a number of controllers to wait for, a moment of late virtual time lasts
// 2 ms from the last call of a controller, and longer while frames for controllers are queued.
func TestLinger(t *testing.T) {
	now := time.Now()
	for _, c := range []struct {
		called time.Duration // ago
		opened time.Duration
		queued int64
		ok     bool
	}{
		{2 * time.Millisecond, 0, 0, true}, {-time.Hour, 0, 0, false}, {time.Hour, 0, 1, false}, {time.Hour, time.Minute, 1, true}, {-time.Hour, time.Minute, 0, true},
	} {
		d := &served{o: &Serve{Slow: 1, Timeout: time.Minute}, moments: 2, began: now.Add(-time.Hour), called: now.Add(-c.called), opened: now.Add(-c.opened)}
		d.queued = int(c.queued)
		ok, again, err := d.settled(time.Second)
		if ok != c.ok || err != nil || ok && again > 0 || !ok && again < 500*time.Microsecond || c.queued > 0 && !ok && again != 500*time.Microsecond {
			t.Errorf("%+v: %v, again after %v, %v", c, ok, again, err)
		}
	}
	d := &served{o: &Serve{Slow: 2, Timeout: time.Minute}, moments: 2, began: now}
	if ok, again, err := d.settled(time.Hour); ok || err != nil || again > 2*time.Hour || again < 2*time.Hour-time.Minute {
		t.Errorf("an hour of virtual time at half the speed: %v, again after %v, %v", ok, again, err)
	}
}

// TestSwitchOptions: the queues of the simulated switches follow from the setting and from the
// programs.
func TestSwitchOptions(t *testing.T) {
	trim := func(dscp int64) *manifest.Manifest {
		return &manifest.Manifest{Guard: manifest.TrimGuard, Parameters: []manifest.Parameter{{Name: "trimmable", Number: dscp}}}
	}
	for _, c := range []struct {
		text    string
		program *manifest.Manifest
		got     func(o *sim.Options) any
		want    string
	}{
		{"switches: {pfc: true, pfc-threshold: 9KB}\ntransport: dcqcn", nil, func(o *sim.Options) any { return []any{o.PFC.On, o.PFC.Pause, o.PFC.Alpha == 0, o.Alpha} }, "[true 9KB true 0]"},
		{"switches: {pfc-alpha: 2}", nil, func(o *sim.Options) any { return []any{o.PFC.On, o.Alpha} }, "[false 2]"},
		{"switches: {pfc: true, pfc-alpha: 2}\ntransport: dcqcn", nil, func(o *sim.Options) any { return []any{o.PFC.On, o.PFC.Alpha, o.Alpha} }, "[true 2 0]"},
		{"switches: {pfc: false, pfc-alpha: 2}\ntransport: dcqcn", nil, func(o *sim.Options) any { return []any{o.PFC.On, o.PFC.Alpha, o.Alpha} }, "[false 0 2]"},
		{"transport: dctcp\nswitches: {ecn: 10}", nil, func(o *sim.Options) any { return []any{o.ECN.Min, o.ECN.Max} }, "[15140B 15140B]"},
		{"transport: dctcp\nswitches: {ecn: none}", nil, func(o *sim.Options) any { return []any{o.ECN.Min, o.ECN.Max} }, "[0B 0B]"},
		{"transport: dcqcn\nswitches: {ecn-min: 5KB, ecn-max: 20KB, ecn-p: 0.2}", nil, func(o *sim.Options) any { return []any{o.ECN.Min, o.ECN.Max, o.ECN.P} }, "[5KB 20KB 0.2]"},
		{"switches: {queue: 3}", nil, func(o *sim.Options) any { return o.Queue }, "4542B"},
		{"ties: place\nlines: whole", nil, func(o *sim.Options) any { return []any{o.Ties == sim.ByPlace, o.Cut} }, "[true true]"},
		{"", nil, func(o *sim.Options) any { return []any{o.Ties == sim.ByPlace, o.Cut, o.Trim, o.TrimmableDSCP} }, "[false false false 0]"},
		{"transport: uec", nil, func(o *sim.Options) any { return []any{o.Trim, o.UntilSent, o.TrimmableDSCP} }, "[true true 0]"},
		{"transport: uec", trim(1), func(o *sim.Options) any { return []any{o.Trim, o.UntilSent, o.TrimmableDSCP} }, "[false false 1]"},
		{"transport: uec", trim(63), func(o *sim.Options) any { return []any{o.Trim, o.UntilSent, o.TrimmableDSCP} }, "[false false 63]"},
		{"transport: uec", trim(0), func(o *sim.Options) any { return []any{o.Trim, o.UntilSent, o.TrimmableDSCP} }, "[true true 0]"},
	} {
		x, _ := loaded(t, 1000, 1000, c.text)
		j := &Job{Case: &x.Cases[0], Scheme: &x.Schemes[0], x: x, Seed: 7, cores: 3, setup: &setup{byRole: map[fabric.Role]*scheme.Program{}}}
		if c.program != nil {
			j.setup.byRole[fabric.Leaf] = &scheme.Program{Manifest: *c.program}
		}
		o := j.simOptions()
		if got := fmt.Sprint(c.got(&o)); got != c.want || o.Seed != 7 || o.Cores != 3 {
			t.Errorf("%q: %s with seed %d and %d cores, want %s", c.text, got, o.Seed, o.Cores, c.want)
		}
	}
}

// TestObservedPorts: the dataset has the ports between switches, without links that are down.
func TestObservedPorts(t *testing.T) {
	for fail, want := range map[string]string{
		"":              "[l1:3 l1:4 l2:3 l2:4 s1:1 s1:2 s2:1 s2:2]",
		"fail: [l1-s2]": "[l1:3 l2:3 l2:4 s1:1 s1:2 s2:2]",
	} {
		x, top := loaded(t, 1000, 1000, fail)
		net, err := sim.New(top, sim.Options{})
		if err != nil {
			t.Fatal(err)
		}
		r := &running{Job: &Job{Case: &x.Cases[0], x: x}, net: net, topo: top}
		for _, only := range [][]string{nil, {"l1"}} {
			o := &observing{every: time.Millisecond, only: only}
			o.plan(r.view())
			var got, wanted []string
			for _, w := range o.ports {
				got = append(got, fmt.Sprintf("%s:%d", w.sw.Name, w.Number))
			}
			for _, name := range strings.Fields(strings.Trim(want, "[]")) {
				if only == nil || strings.HasPrefix(name, "l1:") {
					wanted = append(wanted, name)
				}
			}
			slices.Sort(got)
			if !slices.Equal(got, wanted) {
				t.Errorf("%q, switches %v: ports %v, want %v", fail, only, got, wanted)
			}
		}
	}
}

// TestMainReason: the reason with the most lost packets explains a run; among equals, the first by
// name.
func TestMainReason(t *testing.T) {
	for want, r := range map[string]*Result{
		"":                                      {},
		": 5 packets lost (a)":                  {Lost: map[string]int64{"b": 5, "a": 5}},
		": 6 packets lost (b)":                  {Lost: map[string]int64{"b": 6, "a": 5, "consumed": 99}},
		": x; y":                                {Lost: map[string]int64{"consumed": 99}, Alerts: []string{"x", "y"}},
		": 1 packets lost (queue full); a flow": {Lost: map[string]int64{"queue full": 1}, Alerts: []string{"a flow"}},
	} {
		if got := r.why(); got != want {
			t.Errorf("%+v: %q, want %q", r, got, want)
		}
	}
}

// TestSmallestShare: a leaf that sent a single byte has a share.
func TestSmallestShare(t *testing.T) {
	s := idleSampler(t, "")
	s.carried(1, 0, 0, 0)
	if p := s.plots(); fmt.Sprint(p.Shares) != "[1 0 0 0]" {
		t.Errorf("shares %v", p.Shares)
	}
}

// TestSmallEffects: an effect may be smaller than 1.
func TestSmallEffects(t *testing.T) {
	f := func(v float64) *float64 { return &v }
	for _, c := range []struct {
		v, printed float64
		want       bool
	}{{0.9, 0.5, true}, {1.1, 0.5, false}, {1, 0.5, false}, {1.1, 1.2, true}, {0.9, 1.2, false}, {0.9, 1, false}} {
		if got := side(&spec.Target{Ratio: true, Printed: f(c.printed)}, c.v, 1); got != c.want {
			t.Errorf("a ratio of %g where %g is printed: %v", c.v, c.printed, got)
		}
	}
	if got := side(&spec.Target{AtLeast: f(0.5)}, 0.4, 0); !got {
		t.Error("0.4 is not on the side of at least 0.5")
	}
	if got := side(&spec.Target{AtMost: f(-0.5)}, -0.4, 0); !got {
		t.Error("-0.4 is not on the side of at most -0.5")
	}
}

// TestRehearsal: every row is planned for the network and after each turn of a fault, up to 16
// plans, and the error of any of them names the row.
func TestRehearsal(t *testing.T) {
	faults := "faults: [{at: 1us, until: 2us, every: 4us, times: %d, link: l1-s1, down: true}]\nduration: 3ms\n"
	for _, c := range []struct{ times, fails, calls int }{ // calls: plans that are made
		{2, 0, 5}, {2, 1, 1}, {2, 2, 2}, {2, 5, 5}, {2, 6, 5}, {7, 0, 15}, {8, 0, 16}, {8, 16, 16}, {8, 17, 16}, {20, 0, 16},
	} {
		x, _ := loaded(t, 1000, 1000, fmt.Sprintf(faults, c.times))
		jobs, err := (&Runner{}).Jobs(x)
		if err != nil {
			t.Fatal(err)
		}
		u, calls, wrong := jobs[0].setup, 0, errors.New("a group is too wide")
		linked := u.linked
		u.linked = func() (map[fabric.Role]*plan.Pipeline, error) {
			if calls++; calls == c.fails {
				return nil, wrong
			}
			return linked()
		}
		err = planAll(t.Context(), jobs)
		if refused := c.fails > 0 && c.fails <= c.calls; calls != c.calls || refused != errors.Is(err, wrong) || refused && err.Error() != "ecmp: a group is too wide" || !refused && err != nil {
			t.Errorf("%+v: %d plans, %v", c, calls, err)
		}
	}
}

// TestRowsOfRuns: the rows of an experiment are its runs with their metrics, in the order of the
// columns. Metrics that a run does not have are empty.
func TestRowsOfRuns(t *testing.T) {
	dir := t.TempDir()
	x := loadSweep(t, fmt.Sprintf(twoSeeds, "a", "0.5"))
	k, err := described(x)
	if err != nil {
		t.Fatal(err)
	}
	r := &Runner{Cores: 1, Dir: filepath.Join(dir, k.ID())}
	if err := os.Mkdir(r.Dir, 0o777); err != nil {
		t.Fatal(err)
	}
	c := run(t, r, x)
	if err := r.KeepExperiment(t.Context(), k); err != nil {
		t.Fatal(err)
	}
	a, fail := &Archive{Dir: dir}, func(err error) { t.Error(err) }
	found, err := a.Find(t.Context(), "a", fail)
	if err != nil {
		t.Fatal(err)
	}
	var rows [][]string
	add := func(line []string) error { rows = append(rows, line); return nil }
	if err := a.Rows(t.Context(), found, fail, add, add); err != nil || len(rows) != 3 {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	empty := 0
	for i, res := range c.Results {
		line := rows[i+1]
		want := []string{"", "ecmp", "v1model", "native", "0.5", fmt.Sprint(i + 1), fmt.Sprint(res.Flows), fmt.Sprint(res.Hops), fmt.Sprint(res.Elapsed.Seconds())}
		if !slices.Equal(line[:8], want[:8]) {
			t.Errorf("%v, want %v", line[:8], want[:8])
		}
		for col, name := range rows[0][9:] {
			text := line[9+col]
			v, has := res.Metrics[name]
			if got, err := strconv.ParseFloat(text, 64); has != (text != "") || has && (err != nil || got != v && !math.IsNaN(v)) {
				t.Errorf("%s of seed %d is %q, want %g (%v)", name, i+1, text, v, has)
			}
			if !has {
				empty++
			}
		}
	}
	if empty == 0 {
		t.Error("the runs have all metrics, so that none is empty")
	}
}

// TestSharingFindsRuns: a run that is in the store is taken with its progress, even if a live worker
// holds a lease on it. A run that is not there is left to the holder.
func TestSharingFindsRuns(t *testing.T) {
	ctx := t.Context()
	x := loadSweep(t, fmt.Sprintf(twoSeeds, "a", "0.5"))
	r := &Runner{Cores: 1, Store: openStore(t, t.TempDir())}
	done := run(t, r, x)
	var list []Progress
	r.Progress = func(p Progress) { list = append(list, p) }
	jobs, err := r.Jobs(x)
	if err != nil {
		t.Fatal(err)
	}
	newSharing := func() *sharing {
		w, err := r.Store.NewWorker(ctx, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { w.Close(context.Background()) })
		s := &sharing{work: &work{r: r, jobs: jobs, results: make([]*Result, 2), stored: make([]bool, 2)}, store: r.Store, worker: w, bad: map[int]bool{}}
		for _, j := range jobs {
			s.keys = append(s.keys, j.Key())
		}
		s.shared = s
		return s
	}
	s, other := newSharing(), newSharing()
	missing := strings.Repeat("ab", len(s.keys[0])/2)
	for _, key := range []string{s.keys[0], s.keys[1], missing} {
		if _, err := other.worker.Take(ctx, key); err != nil {
			t.Fatal(err)
		}
	}
	for i := range jobs {
		if err := s.try(ctx, i); err != nil {
			t.Fatal(err)
		}
		if !s.finished(i) || s.results[i] == nil || s.results[i].Hops != done.Results[i].Hops {
			t.Errorf("run %d: %v, %+v", i, s.finished(i), s.results[i])
		}
	}
	want := []Progress{{Done: 1, Of: 2, Taken: 1, Name: jobs[0].Name()}, {Done: 2, Of: 2, Taken: 2, Name: jobs[1].Name()}}
	if fmt.Sprint(list) != fmt.Sprint(want) {
		t.Errorf("progress %+v, want %+v", list, want)
	}
	s.keys[1] = missing
	s.stored[1] = false
	held, alive, err := s.pass(ctx, []int{1})
	if err != nil || !slices.Equal(held, []int{1}) || s.finished(1) {
		t.Errorf("a run of another worker: held %v, alive %v, %v", held, alive, err)
	}
	var holder *store.HeldError
	if err := s.try(ctx, 1); !errors.As(err, &holder) {
		t.Errorf("a run of another worker: %v", err)
	}
}

// TestNumberedNames: the names of figures sort by number, ranges of three and more are abbreviated,
// and long texts end in a mark.
func TestNumberedNames(t *testing.T) {
	list := []string{"table2", "fig10", "fig9", "fig2", "table1", "fig11"}
	slices.SortFunc(list, byNumber)
	if got := strings.Join(list, " "); got != "fig2 fig9 fig10 fig11 table1 table2" {
		t.Errorf("sorted: %s", got)
	}
	if got := ranges(list); got != "fig2 fig9–fig11 table1 table2" {
		t.Errorf("abbreviated: %s", got)
	}
	for _, c := range [][2]string{{"abcde", "abcde"}, {"abcdef", "abcd…"}, {"äöüäö", "äöüäö"}, {"äöüäöü", "äöüä…"}, {"", ""}} {
		if got := shorten(c[0], 5); got != c[1] {
			t.Errorf("%s in 5 letters: %s, want %s", c[0], got, c[1])
		}
	}
	for _, c := range []struct {
		a, b string
		want bool
	}{{"fig9", "fig10", true}, {"fig9", "fig9", false}, {"fig9", "fig8", false}, {"fig9", "fig11", false}, {"fig9", "table10", false}, {"fig", "fig1", false}} {
		if got := follows(c.a, c.b); got != c.want {
			t.Errorf("%s after %s: %v", c.b, c.a, got)
		}
	}
}

// TestActivePorts: the table of links has a row for each port with traffic in an interval, and none
// for idle ports.
func TestActivePorts(t *testing.T) {
	dir := t.TempDir()
	run(t, &Runner{Dir: dir}, load(t, steadyFlow+"interval: 50us\n"))
	f, err := os.Open(filepath.Join(dir, "runs/ecmp/load-0.7/seed-1", linksFile))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil || len(rows) < 20 {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	for _, row := range rows[1:] {
		if row[3] == "0" && row[5] == "0" && row[7] == "0" {
			t.Errorf("an idle port: %v", row)
		}
	}
}
