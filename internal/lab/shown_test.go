package lab

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/p4lb/p4lb/internal/lab/chart"
	"github.com/p4lb/p4lb/internal/lab/spec"
	"github.com/p4lb/p4lb/internal/network/fabric"
)

// swept returns made-up rows of the schemes a and b in the given cases and loads. A row of a
// has half the values of b, and each load adds 10.
func swept(cases []string, loads ...float64) *Comparison {
	c := &Comparison{Experiment: &spec.Experiment{Metrics: []string{"fct-mean"}, Schemes: []spec.Scheme{{Label: "a"}, {Label: "b"}}}, World: Sim}
	for _, name := range cases {
		c.Experiment.Cases = append(c.Experiment.Cases, spec.Case{Name: name})
	}
	for i := range cases {
		for k, load := range loads {
			for s := range c.Experiment.Schemes {
				scheme := &c.Experiment.Schemes[s]
				r := &Row{Case: &c.Experiment.Cases[i], Scheme: scheme, Load: load}
				for seed := uint64(1); seed <= 2; seed++ {
					v := float64(10+10*k) * float64(s+1)
					r.Runs = append(r.Runs, &Result{Label: scheme.Label, Seed: seed, Metrics: map[string]float64{"fct-mean": v}, Programs: map[string]string{"leaf": scheme.Label}})
				}
				c.Rows = append(c.Rows, r)
			}
		}
	}
	return c
}

// The conclusion has a sentence for each case and load, six at most. It names the case and
// the load if there are several.
func TestConclusionOfSweeps(t *testing.T) {
	const saves = "fct-mean of a: 50 % less than b (±0.0)."
	for _, test := range []struct {
		cases []string
		loads []float64
		want  []string
	}{
		{[]string{""}, []float64{0.3}, []string{saves}},
		{[]string{""}, []float64{0.3, 0.6}, []string{"load 0.3: " + saves, "load 0.6: " + saves}},
		{[]string{"x", "y"}, []float64{0.3}, []string{"x: " + saves, "y: " + saves}},
		{[]string{"x"}, []float64{0.1, 0.2, 0.3, 0.4, 0.5, 0.6}, []string{"load 0.1: " + saves, "load 0.2: " + saves, "load 0.3: " + saves, "load 0.4: " + saves, "load 0.5: " + saves, "load 0.6: " + saves}},
		{[]string{"x", "y"}, []float64{0.1, 0.2, 0.3, 0.4}, []string{
			"x, load 0.1: " + saves, "x, load 0.2: " + saves, "x, load 0.3: " + saves, "x, load 0.4: " + saves, "y, load 0.1: " + saves, "y, load 0.2: " + saves,
			"The last column of the table has 2 more cases and loads.",
		}},
	} {
		if got := swept(test.cases, test.loads...).Conclusion(); !slices.Equal(got, test.want) {
			t.Errorf("cases %q, loads %v: %q", test.cases, test.loads, got)
		}
	}
	c := swept([]string{""}, 0.3, 0.6)
	c.Rows[1].Runs[0].Metrics["unfinished"], c.Rows[1].Runs[1].Metrics["unfinished"] = 2, 4
	if got := c.Conclusion(); len(got) != 2 || got[0] != "load 0.6: "+saves || !strings.HasPrefix(got[1], "No verdict: more than 1 % of the flows did not finish with load 0.3: b (3.0 %)") {
		t.Errorf("with unfinished flows: %q", got)
	}
	if f := c.findings(); len(f) != 2 || f[0].String() != "no verdict: 3.0 % of the flows of b unfinished" {
		t.Errorf("findings %v", f)
	}
	c.Experiment.Metrics[0] = "fct-none"
	if f := c.findings(); len(f) != 0 {
		t.Errorf("findings about a metric without values: %v", f)
	}
}

// Sentences about clear and open differences, for any number of seeds.
func TestConcludeWords(t *testing.T) {
	f := func(other string, e Estimate) finding {
		return finding{Base: "a", Other: other, Metric: "fct-mean", Saved: e}
	}
	sure, open, never := Estimate{Mean: 20, Half: 2, N: 5}, Estimate{Mean: 2, Half: 4, N: 5}, Estimate{Mean: 0.1, Half: 4, N: 5}
	for _, test := range []struct {
		list []finding
		want string
	}{
		{[]finding{f("b", sure)}, "fct-mean of a: 20 % less than b (±2.0)."},
		{[]finding{f("b", open), f("c", sure)}, "fct-mean of a: 20 % less than c (±2.0). No significant difference from b; about 20 seeds would be needed."},
		{[]finding{f("b", open), f("c", Estimate{Mean: 1, Half: 4, N: 5})}, "fct-mean of a: No significant difference from b and c; about 80 seeds would be needed."},
		{[]finding{f("b", never)}, "fct-mean of a: No significant difference from b; more than 1000 seeds would be needed."},
		{[]finding{f("b", Estimate{Mean: 2, Half: 20, N: 10})}, "fct-mean of a: No significant difference from b; about 1000 seeds would be needed."},
		{[]finding{f("b", Estimate{Mean: 5, N: 1}), f("c", Estimate{Mean: 5, N: 1})}, "fct-mean of a: One seed gives no confidence interval for b and c; use at least 5."},
	} {
		if got := conclude(test.list); got != test.want {
			t.Errorf("%q, want %q", got, test.want)
		}
	}
	for _, e := range []Estimate{{Mean: 0.025, Half: 0.025, N: 2}, {Mean: 0.05, N: 2}, {Mean: 0.01, N: 1}} {
		if f("b", e).level() {
			t.Errorf("%+v is level", e)
		}
	}
	if !f("b", Estimate{Mean: -0.02, Half: 0.02, N: 2}).level() {
		t.Error("a difference that no figure shows is not level")
	}
}

// The bottleneck is given for the largest load; experiments with several cases have none.
func TestBottleneckOfSweeps(t *testing.T) {
	x, top := loaded(t, 100, 1000, "traffic: [{workload: webserver, pattern: halves, load-of: fabric}]\nloads: [0.25, 0.5]\nduration: 1s")
	c := &Comparison{Experiment: x, World: Sim}
	if got := c.limits(); got != "" {
		t.Errorf("without rows: %s", got)
	}
	for _, load := range x.Cases[0].Loads {
		c.Rows = append(c.Rows, &Row{Case: &x.Cases[0], Scheme: &x.Schemes[0], Load: float64(load), network: top})
	}
	if got := c.limits(); !strings.HasPrefix(got, "Bottleneck: the fabric (offered load 50 % of the fabric, 5 % of the hosts). About ") || !strings.HasSuffix(got, " flows a run at load 0.5.") {
		t.Errorf("two loads: %s", got)
	}
	c.Rows[1].network = nil
	if got := c.limits(); got != "" {
		t.Errorf("without a network: %s", got)
	}
	c.Rows = c.Rows[:1]
	x.Cases = append(x.Cases, x.Cases[0])
	if got := c.limits(); got != "" {
		t.Errorf("two cases: %s", got)
	}
}

// Warnings without a reason are named once below figures, and listed apart from the
// accepted ones.
func TestWarningsShown(t *testing.T) {
	c := made(map[string][]float64{"a": {10, 11}}, "a")
	if got := c.warned(); got != "" {
		t.Errorf("no warnings: %q", got)
	}
	c.Warnings = []spec.Warning{{Rule: "few-seeds"}, {Rule: "hosts-limit", Reason: "intended"}, {Rule: "short", Case: "x"}, {Rule: "few-seeds", Case: "y"}}
	if got := c.warned(); got != "Warnings: few-seeds, short" {
		t.Errorf("%q", got)
	}
	p := page{Comparison: c}
	if got := p.Accepted(); len(got) != 1 || got[0].Rule != "hosts-limit" {
		t.Errorf("accepted: %v", got)
	}
	if got := p.Warned(); len(got) != 3 {
		t.Errorf("warned: %v", got)
	}
	if c.Warnings[1].Rule != "hosts-limit" {
		t.Errorf("the list has changed: %v", c.Warnings)
	}
	for _, f := range c.Figures() {
		if f.Note != "Warnings: few-seeds, short" {
			t.Errorf("%s has the note %q", f.Name, f.Note)
		}
	}
}

// A row uses a single path if it has ten flows for each of its paths and fewer than one
// and a half of them carry data.
func TestSinglePathByHand(t *testing.T) {
	_, top := loaded(t, 1000, 1000, "")
	for _, test := range []struct {
		network *fabric.Topology
		flows   int
		used    float64
		want    bool
	}{
		{top, 20, 50, true}, {top, 19, 50, false}, {top, 20, 74, true}, {top, 20, 75, false}, {top, 20, 0, false}, {nil, 20, 50, false},
	} {
		c := made(map[string][]float64{"a": {10, 11}}, "a")
		r := c.Rows[0]
		r.network = test.network
		for _, run := range r.Runs {
			run.Flows, run.Metrics["paths-used"] = test.flows, test.used
		}
		if got := r.singlePath(); got != test.want {
			t.Errorf("%+v: %v", test, got)
		}
		lines := c.cautions()
		if test.want && (len(lines) != 1 || !strings.HasPrefix(lines[0], "One path only: a (1 of 2). ")) || !test.want && lines != nil {
			t.Errorf("%+v: %q", test, lines)
		}
		if head := strings.Join(c.Table()[0], "|"); strings.HasSuffix(head, "|paths-used (%)") != test.want {
			t.Errorf("%+v: columns %s", test, head)
		}
		c.Experiment.Metrics = append(c.Experiment.Metrics, "paths-used", "unfinished")
		if got := c.extra(); got != nil {
			t.Errorf("asked metrics are added again: %q", got)
		}
	}
}

// A mean over flows that did not all finish is a lower bound; rates are no times.
func TestLowerBounds(t *testing.T) {
	c := made(map[string][]float64{"a": {10}}, "a")
	run := c.Rows[0].Runs[0]
	run.Metrics["flow-rate"], run.Metrics["reordered"], run.Metrics["slowdown-p50:short"] = 7, 3, 2
	for metric, want := range map[string]string{"fct-mean": "10.0", "flow-rate": "7.00", "reordered": "3.00", "request-mean": "-"} {
		if got := c.Rows[0].cell(metric); got != want {
			t.Errorf("all finished: %s is %s, want %s", metric, got, want)
		}
	}
	run.Metrics["unfinished"] = 0.5
	for metric, want := range map[string]string{"fct-mean": "≥ 10.0", "flow-rate": "7.00", "reordered": "3.00", "request-mean": "-", "slowdown-p50:short": "≥ 2.00"} {
		if got := c.Rows[0].cell(metric); got != want {
			t.Errorf("some unfinished: %s is %s, want %s", metric, got, want)
		}
	}
	if got := undecidable("fct-mean", c.Rows[0]); got != "" {
		t.Errorf("half a percent unfinished: %s", got)
	}
	run.Metrics["unfinished"] = 1.2
	for metric, want := range map[string]string{"fct-mean": "1.2 % of the flows of a unfinished", "flow-rate": "1.2 % of the flows of a unfinished", "reordered": ""} {
		if got := undecidable(metric, c.Rows...); got != want {
			t.Errorf("%s: %q, want %q", metric, got, want)
		}
	}
	if got := c.extra(); !slices.Equal(got, []string{"unfinished"}) {
		t.Errorf("extra columns %q", got)
	}
	if got, want := string(c.csv()), "case,scheme,load,metric,unit,mean,ci95,runs\n,a,0.7,fct-mean,ms,10,0,1\n"; !strings.HasPrefix(got, want) || strings.Count(got, "\n") != 6 || !strings.Contains(got, "\n,a,0.7,unfinished,%,1.2,0,1\n") {
		t.Errorf("table.csv is %q", got)
	}
}

// The first metric is drawn by scheme, or over the load if there are several loads.
// Completion times and other charts show the largest load.
func TestChartsOfLoads(t *testing.T) {
	names := func(c *Comparison) (list []string) {
		for _, f := range c.Figures() {
			list = append(list, f.Name)
		}
		return list
	}
	one := swept([]string{""}, 0.3)
	f := figure(t, one.Figures(), "schemes")
	if fmt.Sprint(f.X.Names, f.Series[0].X, f.Series[0].Y, f.Series[1].X, f.Series[1].Y, f.Series[1].Tint) != "[a b] [0] [10] [1] [20] 1" || f.Title != "fct-mean" {
		t.Errorf("%+v", f)
	}
	two := swept([]string{"x y", "z"}, 0.3, 0.6)
	if got := names(two); !slices.Equal(got, []string{"load-x_y", "cdf-x_y", "load-z", "cdf-z"}) {
		t.Errorf("figures %q", got)
	}
	f = two.Figures()[0]
	if f.Title != "fct-mean over the load: x y" || f.X.Low != 0.3 || f.X.High != 0.3 || len(f.Series) != 2 || fmt.Sprint(f.Series[1].X, f.Series[1].Y, f.Series[1].Half, f.Series[1].Tint) != "[0.3 0.6] [20 40] [0 0] 1" {
		t.Errorf("%+v", f)
	}
	for _, r := range two.Rows[:4] {
		r.Runs = nil
	}
	if got := names(two); !slices.Equal(got, []string{"load-z", "cdf-z"}) {
		t.Errorf("a case without runs: %q", got)
	}
	if got := heaviest(two.Rows[4:]); len(got) != 2 || got[0].Load != 0.6 {
		t.Errorf("%d rows have the largest load", len(got))
	}
}

// Distributions are quantiles averaged over the runs that have them.
func TestChartsOfQuantiles(t *testing.T) {
	c := swept([]string{""}, 0.3)
	fct := func(first float64) []float64 {
		list := []float64{0}
		for q := range 100 {
			list = append(list, first+float64(q))
		}
		return list
	}
	r := c.Rows[0]
	r.Runs[0].Plots.FCT, r.Runs[1].Plots.FCT = fct(1), fct(3)[:100]
	s := c.drawCDF(c.Rows).Series
	if n := len(s[0].X); len(s) != 2 || n != 100 || len(s[1].X) != 0 || s[0].X[0] != 2 || s[0].Y[0] != 0.01 || s[0].X[98] != 100 || s[0].X[99] != 100 || s[0].Y[99] != 1 {
		t.Errorf("%d points %+v", n, s[0])
	}
	if c.drawTail(c.Rows) != nil {
		t.Error("a run without collectives has a tail")
	}
	r.Runs[0].Plots.Uses = &Uses{}
	r.Runs[0].Plots.Tail, r.Runs[1].Plots.Tail = []float64{200, 201, 202, 203, 204, 205, 206, 207, 208, 999}, []float64{300}
	tail := c.drawTail(c.Rows).Series[0]
	if n := len(tail.X); n != 99+9 || tail.X[0] != 2 || !near(tail.Y[0], 0.99) || !near(tail.Y[98], 0.01) || tail.X[99] != 250 || !near(tail.Y[99], 0.009) || tail.X[107] != 208 || !near(tail.Y[107], 0.001) {
		t.Errorf("%d points %+v", n, tail)
	}
}

// Reordering, queues, shares and ideal times are drawn if a run has them.
func TestChartsOfRuns(t *testing.T) {
	c := swept([]string{""}, 0.3)
	a, b := c.Rows[0], c.Rows[1]
	if c.drawOrder(c.Rows) != nil || c.drawQueue(c.Rows) != nil || c.drawShares(c.Rows) != nil || c.drawIdeal(c.Rows) != nil || c.drawFailed() != nil {
		t.Error("runs without measurements have charts of them")
	}
	b.Runs[0].Metrics["out-of-order"], a.Runs[0].Metrics["reordered"] = 5, 3
	if f := c.drawOrder(c.Rows); !slices.Equal(f.X.Names, []string{"reordered", "out-of-order"}) || f.Series[0].Y[0] != 3 || !math.IsNaN(f.Series[0].Y[1]) || f.Series[1].Y[1] != 5 || f.Series[1].X[1] != 1 || f.Series[1].Kind != chart.Bars {
		t.Errorf("order: %+v", f)
	}
	a.Runs[0].Plots.Time, a.Runs[0].Plots.Queue = []float64{1, 2}, []float64{0.5, 0.25}
	if f := c.drawQueue(c.Rows); fmt.Sprint(f.Series[0].X, f.Series[0].Y) != "[1 2] [50 25]" || !strings.HasSuffix(f.About, "in the run with seed 1.") {
		t.Errorf("queue: %+v", f)
	}
	for i, r := range []*Row{a, b} {
		for k, run := range r.Runs {
			for n := range 17 {
				run.Plots.Names = append(run.Plots.Names, fmt.Sprint("p", n))
				run.Plots.Shares = append(run.Plots.Shares, float64(i+k+n)/100)
			}
		}
	}
	if f := c.drawShares(c.Rows); len(f.X.Names) != 16 || len(f.Series[0].Y) != 16 || !near(f.Series[0].Y[0], 0.5) || !near(f.Series[1].Y[15], 16.5) {
		t.Errorf("shares: %+v", f)
	}
	for i, r := range []*Row{a, b} {
		for _, run := range r.Runs {
			run.Metrics["cct"], run.Metrics["cct-ratio"] = float64(12+i), 2
		}
	}
	if f := c.drawIdeal(c.Rows); len(f.Series) != 3 || f.Series[1].Y[0] != 13 || fmt.Sprint(f.Series[2].X, f.Series[2].Y) != "[0 1] [6 6.5]" {
		t.Errorf("ideal: %+v", f)
	}
}

// Titles name the load if the traffic has one.
func TestTitlesWithLoads(t *testing.T) {
	for text, want := range map[string]string{
		"traffic: [{workload: webserver, pattern: halves}]\nloads: [0.5]":  "x at load 0.5",
		"traffic: [{pattern: pairs, pairs: [h1-h3], size: 1KB, at: [0s]}]": "x",
	} {
		e, _ := loaded(t, 1000, 1000, text)
		if got := atLoad("x", []*Row{{Case: &e.Cases[0], Load: 0.5}}); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

// Steps share eight colours; a legend names four steps of a colour. Six schemes have
// charts of their own.
func TestChartsOfSteps(t *testing.T) {
	for n, want := range map[int]string{
		3: "step 0|step 1|step 2", 9: "step 0, 8|step 1", 32: "step 0, 8, 16, 24|step 1, 9, 17, 25", 33: "step 0, 8, 16, 24, …|step 1, 9, 17, 25", 34: "step 0, 8, 16, 24, …|step 1, 9, 17, 25, …",
	} {
		c := made(map[string][]float64{"a": {10}}, "a")
		run := c.Rows[0].Runs[0]
		run.Plots.Steps = &Steps{Hosts: []string{"h1"}, Rank: []int{0}, Step: []int{n - 1}, Start: []float64{1}, End: []float64{2}}
		f := c.drawSteps(c.Rows[0])
		var got []string
		for _, s := range f.Series {
			got = append(got, s.Label)
		}
		if all := strings.Join(got, "|"); !strings.HasPrefix(all+"|", want+"|") || len(got) != min(n, 8) || f.Title != "Messages of the collective with a" {
			t.Errorf("%d steps: %s of %q", n, all, f.Title)
		}
		run.Plots.Steps.Job, run.Plots.Steps.going = "moe", []bool{true}
		f = c.drawSteps(c.Rows[0])
		if s := f.Series[(n-1)%8]; f.Title != "Messages of job moe with a" || s.Shade[0] != 0.3 || s.Hints[0] != fmt.Sprintf("h1, step %d: from 1 ms, under way", n-1) {
			t.Errorf("%d steps: %q, %+v", n, f.Title, s)
		}
		run.Plots.Steps.going[0] = false
		if s := c.drawSteps(c.Rows[0]).Series[(n-1)%8]; s.Shade[0] != 0.75 || s.Hints[0] != fmt.Sprintf("h1, step %d: 1 to 2 ms", n-1) {
			t.Errorf("%d steps: %+v", n, s)
		}
		rows := slices.Repeat(c.Rows, 8)
		if got := len(c.details(rows)); got != 6 {
			t.Errorf("%d charts of single schemes, want 6", got)
		}
	}
}

// A report shows the network if all rows have one of the same name.
func TestNetworkOfReport(t *testing.T) {
	_, a := loaded(t, 1000, 1000, "")
	same, other := *a, *a
	other.Name = "other"
	for _, test := range []struct {
		networks []*fabric.Topology
		want     bool
	}{{nil, false}, {[]*fabric.Topology{a, a}, true}, {[]*fabric.Topology{a, &same}, true}, {[]*fabric.Topology{a, &other}, false}, {[]*fabric.Topology{a, nil}, false}} {
		c := &Comparison{}
		for _, n := range test.networks {
			c.Rows = append(c.Rows, &Row{network: n})
		}
		if got := c.Network(); (got != nil) != test.want {
			t.Errorf("%d networks: %v", len(test.networks), got)
		}
		if got := strings.HasPrefix(string(c.picture()), "data:image/svg+xml;base64,"); got != test.want {
			t.Errorf("%d networks: a picture: %v", len(test.networks), got)
		}
	}
}

// The digests of programs are listed once, by label and role. Missing runs have none.
func TestDigestsOfReport(t *testing.T) {
	d := func(c string) string { return strings.Repeat(c, 32) }
	p := page{Comparison: &Comparison{Results: []*Result{
		{Label: "b", Programs: map[string]string{"leaf": d("2"), "spine": d("1")}}, nil, {Label: "b", Programs: map[string]string{"leaf": d("2")}},
		{Label: "a", Arch: "tna", Programs: map[string]string{"leaf": d("3")}}, {Label: "b", Programs: map[string]string{"leaf": d("0")}},
	}}}
	if got, want := fmt.Sprint(p.Digests()), "[[a, leaf, for tna 3333333333333333] [b, leaf 0000000000000000] [b, leaf 2222222222222222] [b, spine 1111111111111111]]"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// The settings name the case if it has a name, and the network with its size.
func TestSettingsOfReport(t *testing.T) {
	x, top := loaded(t, 1000, 1000, "traffic: [{workload: webserver, pattern: halves}]\nloads: [0.5]\nduration: 9ms\nwarmup: 2ms\nlatency: 3us\nseeds: [1, 4]\ntransport: dctcp")
	c := &Comparison{Experiment: x, World: Sim}
	find := func(name string) string {
		for _, s := range (page{Comparison: c}).Settings() {
			if s[0] == name {
				return s[1]
			}
		}
		return "-"
	}
	for name, want := range map[string]string{
		"flows begin within": "9ms", "warm-up": "2ms", "seeds": "1 4", "controller's latency": "3us", "transport": "dctcp", "job": "-", "real time, on": "-", "network": "-",
	} {
		if got := find(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	top.Name = "mine"
	c.Rows = []*Row{{Case: &x.Cases[0], Scheme: &x.Schemes[0], network: top, Runs: []*Result{{}}}}
	x.Cases[0].Name, c.World = "ws", Embedded
	for name, want := range map[string]string{"ws: network": "mine, 4 switches, 4 hosts", "ws: warm-up": "2ms", "controller's latency": "-", "real time, on": Embedded} {
		if got := find(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

// Results of cases that agree share a line, which names the cases unless it holds for all.
func TestPerCase(t *testing.T) {
	x := &spec.Experiment{Cases: []spec.Case{{Name: "x"}, {Name: "y"}, {Name: "z"}}}
	for _, test := range []struct{ texts, want string }{{"p p p", "p"}, {"p q p", "x, z: p|y: q"}, {"- q -", "y: q"}, {"- - -", ""}} {
		got := perCase(x, func(c *spec.Case) string {
			return strings.Trim(strings.Fields(test.texts)[slices.Index([]string{"x", "y", "z"}, c.Name)], "-")
		})
		if strings.Join(got, "|") != test.want {
			t.Errorf("%s: %q, want %s", test.texts, got, test.want)
		}
	}
}

// The document of an experiment has its command, time, targets, assumptions and warnings.
func TestMarkdownOfExperiment(t *testing.T) {
	v := func(x float64) *float64 { return &x }
	c := swept([]string{""}, 0.3)
	x := c.Experiment
	x.Name, x.About, x.Scaled = "exp", "A test.", "one leaf"
	x.Cases[0].Loads = []spec.LoadLevel{0.3}
	x.Targets = []spec.Target{
		{Figure: "fig1", Name: "saves", Metric: "fct-mean", Of: "a", Against: "b", Printed: v(50)},
		{Figure: "fig2", Name: "costs", Metric: "fct-mean", Of: "b", Against: "a", Printed: v(10)},
		{Figure: "fig3", Name: "missing", Metric: "fct-mean", Of: "none", Printed: v(10)},
	}
	c.Warnings = []spec.Warning{{Rule: "few-seeds", Text: "two"}, {Rule: "short", Text: "t", Reason: "intended"}}
	got := string(c.Markdown("p4lb lab", 1600*time.Millisecond))
	for _, want := range []string{
		"### exp\n\nA test.\n\n`p4lb lab` (2s)\n\n| | target | printed | measured | verdict |\n|---|---|---|---|---|\n| fig1 | saves | 50.0 % | 50.0 ±0 % | **within band** |\n| fig2 | costs | 10.0 % | -100 ±0 % | contrary |\n",
		"| fig3 | missing | 10.0 |  | not measured (none has not run) |\n\nOf 2 differences, 2 are significant", "Smaller than in the paper: one leaf.\n\n", "Warnings: few-seeds: two.\n\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	for _, no := range []string{"Assumed", "load 0.3", "short"} {
		if strings.Contains(got, no) {
			t.Errorf("%q in\n%s", no, got)
		}
	}
	x.Cases[0].Loads, x.Assumed = append(x.Cases[0].Loads, 0.6), []string{"one", "two"}
	x.Targets = x.Targets[:1]
	got = string(c.Markdown("p4lb lab", 0))
	for _, want := range []string{"`p4lb lab`\n\n|", "| 50.0 ±0 %, load 0.3 | **within band** |\n\nAssumed: one; two.\n\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
}

// Rows that differ only in their candidates are comparable; runs without a seed are not.
func TestComparableCandidates(t *testing.T) {
	for want, edit := range map[string]func(a, b *Row){
		"":         func(_, b *Row) { b.Scheme.Candidates = spec.ByPaths },
		"the same": func(_, _ *Row) {},
		"seeds":    func(a, b *Row) { a.Runs[0].Seed, b.Runs[0].Seed, b.Scheme.Candidates = 0, 0, spec.ByPaths },
		"none":     func(a, b *Row) { a.Runs, b.Runs = nil, nil },
	} {
		c := made(map[string][]float64{"a": {1}, "b": {2}}, "a", "b")
		a, b := c.Rows[0], c.Rows[1]
		b.Runs[0].Programs = a.Runs[0].Programs
		edit(a, b)
		err := a.comparable(b)
		if (err == nil) != (want == "") || errors.Is(err, ErrSame) != (want == "the same") || errors.Is(err, errUnseeded) != (want == "seeds" || want == "none") {
			t.Errorf("%s: %v", want, err)
		}
	}
}
