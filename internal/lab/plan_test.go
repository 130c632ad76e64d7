package lab

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/p4lb/p4lb/fitting"
	"github.com/p4lb/p4lb/internal/lab/spec"
)

// TestPlanOfShards: a plan counts the runs in the store, and estimates the other runs together, the
// most expensive shard and the most expensive run. Collect takes the runs that are there.
func TestPlanOfShards(t *testing.T) {
	ctx, dir := t.Context(), t.TempDir()
	r := &Runner{Cores: 1, Store: openStore(t, dir)}
	done := run(t, r, loadSweep(t, fmt.Sprintf(twoSeeds, "a", "0.5")))
	p, err := r.Plan(ctx, loadSweep(t, fmt.Sprintf(twoSeeds, "a", "0.5")), 2)
	if err != nil || p.Runs != 2 || p.There != 2 || p.Seconds != 0 || p.Run != 0 || p.Longest != 0 || p.Bytes != 0 {
		t.Errorf("all runs are there: %+v, %v", p, err)
	}
	x := loadSweep(t, fmt.Sprintf(twoSeeds, "b", "0.5, 0.6"))
	for shards, longest := range map[int]float64{1: 2, 2: 1, 3: 1} {
		p, err := r.Plan(ctx, x, shards)
		if err != nil {
			t.Fatal(err)
		}
		if p.Runs != 4 || p.There != 2 || p.Run < setupSeconds || !near(p.Seconds, 2*p.Run) || !near(p.Longest, longest*p.Run) || p.Bytes <= 0 || p.Kept.Name != "b" {
			t.Errorf("%d shards: %+v, want %g expected runs in the longest", shards, p, longest)
		}
	}
	x.Schemes[0].Label = "mine"
	c, err := r.Collect(ctx, x)
	if err != nil || len(c.Results) != 4 || c.World != Sim || len(c.Rows) != 2 {
		t.Fatalf("%+v, %v", c, err)
	}
	for i, res := range c.Results {
		if (res != nil) != (i < 2) || res != nil && (res.Hops != done.Results[i].Hops || res.Experiment != "b" || res.Label != "mine") {
			t.Errorf("run %d: %+v", i, res)
		}
	}
	// A damaged run is not there; the log names it.
	files, err := filepath.Glob(filepath.Join(dir, "runs/*/*.run"))
	if err != nil || len(files) != 2 {
		t.Fatal(files, err)
	}
	for _, f := range files {
		if err := os.WriteFile(f, []byte("x"), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	var lines []string
	r.Log = func(s string) { lines = append(lines, s) }
	if c, err = r.Collect(ctx, x); err != nil || c.Results[0] != nil || c.Results[1] != nil || len(lines) != 2 || !strings.Contains(lines[0], "run ") {
		t.Errorf("%v, %v: %q", c.Results, err, lines)
	}
}

// TestMechanismsOfFigures: mechanisms belong to an experiment and a figure.
func TestMechanismsOfFigures(t *testing.T) {
	all := func(figure string, files ...string) []Mechanism {
		var list []*spec.Experiment
		for _, f := range files {
			list = append(list, &spec.Experiment{File: f})
		}
		found, err := Mechanisms(list, figure)
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	names := PaperExperiments()
	list := all("", names...)
	if len(list) == 0 || len(all(spec.AllFigures, names...)) != len(list) || len(all("")) != 0 || len(all("fig0", names...)) != 0 {
		t.Fatalf("%d mechanisms of all, %d of no experiment", len(list), len(all("")))
	}
	first := list[0]
	for _, m := range all(first.Figure, first.Experiment) {
		if m.Experiment != first.Experiment || m.Figure != first.Figure || m.Why == "" || len(m.Rows) == 0 {
			t.Errorf("%+v", m)
		}
	}
	m := &Mechanism{Experiment: "x", Figure: "fig1", Rows: []string{"a", "b"}, Why: "c"}
	if got := m.String(); got != "x, fig1 (a; b): c" {
		t.Errorf("%s", got)
	}
}

// TestUnmeasuredChecks: an expectation fails with the reason if a row of it has not run or has other
// seeds.
func TestUnmeasuredChecks(t *testing.T) {
	c := made(map[string][]float64{"a": {10, 11}, "b": {20, 22}, "c": {}, "d": {20}}, "a", "b", "c", "d")
	for text, why := range map[string]string{
		"fct-mean of a < b": "measured ", "fct-mean of a < c": "c has not run", "fct-mean of c < a": "no run measured it", "fct-mean of a < d": "a has 2 runs and d 1: rows with other seeds cannot be compared",
	} {
		c.Experiment.Expect = []string{text}
		list := c.Checks()
		if len(list) != 1 || !strings.HasPrefix(list[0].Why, why) || list[0].Met != (why == "measured ") {
			t.Errorf("%s: %+v", text, list)
		}
	}
}

// TestDirectChanges: direct deployment gives the results of P4Runtime if a fault changes entries,
// groups, clone sessions and the filters of Tofino.
func TestDirectChanges(t *testing.T) {
	for _, name := range []string{"hula", "letflow", "drill+rlb", "conga", "conga@tna"} {
		text := `topology: {leaf-spine: {leaves: 2, spines: 2, hosts: 1, rate: 1G, host-rate: 1G, delay: 5us, host-delay: 5us, queue: 64}}
schemes: [` + name + `]
traffic: [{workload: webserver}]
loads: [0.6]
seeds: 1
duration: 3ms
faults:
  - {at: 1ms, until: 2ms, link: l1-s1, down: true}
`
		var list []string
		for _, by := range []deployer{nil, deployOverP4Runtime} {
			c := run(t, &Runner{deploy: by}, loadOnce(t, text))
			list = append(list, written(t, c.Rows[0].Runs[0]))
		}
		if list[0] != list[1] {
			t.Errorf("%s: directly\n%s\nover P4Runtime\n%s", name, list[0], list[1])
		}
	}
}

// TestReportedMetrics: a value that an observer reports is a metric of the run.
func TestReportedMetrics(t *testing.T) {
	begin := func(v *View) error {
		v.Report("mine", 4)
		v.Report("mine", 5)
		v.Report("other", 6)
		return nil
	}
	r := run(t, &Runner{Begin: begin}, load(t, steadyFlow)).Results[0]
	if r.Metrics["mine"] != 5 || r.Metrics["other"] != 6 || r.Metrics["unfinished"] != 0 {
		t.Errorf("%v", r.Metrics)
	}
}

// TestPolynomials: a row has the polynomial of its file, or else the one of the paper for its degree
// with the row's time constant.
func TestPolynomials(t *testing.T) {
	own := &fitting.Poly{Degree: 2}
	if got := (&setup{poly: own}).polynomial(3, 100); got != own {
		t.Errorf("%+v, want the row's own", got)
	}
	u := &setup{scheme: &spec.Scheme{}}
	paper, ok := fitting.Paper(3, false)
	if !ok {
		t.Fatal("the paper has no polynomial of degree 3")
	}
	if got := u.polynomial(3, 123); got == nil || fmt.Sprint(*got) != fmt.Sprint(paper.WithTau(123)) {
		t.Errorf("%+v, want %+v", got, paper.WithTau(123))
	}
	if got := u.polynomial(99, 123); got != nil {
		t.Errorf("of degree 99: %+v", got)
	}
}

// TestFixedPorts: the topology defines queues and ports, so that a Thrift client cannot change them.
func TestFixedPorts(t *testing.T) {
	var n *thriftNode
	for i, err := range []error{n.SetQueueDepth(1, 2, 3), n.SetQueueRate(1, 2, 3), n.Connect(1, "eth0"), n.Disconnect(1)} {
		if err != errFixed {
			t.Errorf("call %d: %v", i, err)
		}
	}
}

// TestRowNames: a row is named with its case if the case has a name.
func TestRowNames(t *testing.T) {
	for name, want := range map[string]string{"": "ecmp", "ws": "ecmp in case ws"} {
		j := &Job{Case: &spec.Case{Name: name}, Scheme: &spec.Scheme{Label: "ecmp"}}
		if got := j.row(); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// TestBoundsOfSizes: a size bin is named by its upper limit, and the last by its lower one.
func TestBoundsOfSizes(t *testing.T) {
	for bin, want := range map[int]string{0: "≤ 10KB", 4: "≤ 1MB", 7: "> 10MB"} {
		if got := sizeName(bin); got != want {
			t.Errorf("bin %d is %s, want %s", bin, got, want)
		}
	}
}

// TestControllersNeedPrograms: a row that a controller of the user serves must be a program in
// virtual time.
func TestControllersNeedPrograms(t *testing.T) {
	x := load(t, strings.Replace(tiny, "[qall-poly3, ecmp, drill]", "[ecmp]", 1)+"engine: native\n")
	_, err := (&Runner{Serve: &Serve{Address: "127.0.0.1:0", Wait: 1, Every: time.Millisecond, Log: func(string) {}}}).Run(t.Context(), x)
	if err == nil || !strings.HasSuffix(err.Error(), "ecmp: a controller drives programs: want engine p4, not native") {
		t.Errorf("%v", err)
	}
}
