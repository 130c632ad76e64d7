package lab

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/p4lb/p4lb/internal/lab/chart"
	"github.com/p4lb/p4lb/internal/lab/spec"
)

// oneFlow is a flow alone in a network, whose completion time depends on the delay only.
const oneFlow = `
name: quick
topology: {leaf-spine: {leaves: 2, spines: 2, hosts: 1, rate: 1G, host-rate: 1G, delay: 2us, host-delay: 1us, queue: 64}}
schemes: [ecmp]
traffic: [{pattern: pairs, pairs: [h1-h2], size: 1KB, at: [0s]}]
transport: udp
engine: native
seeds: 2
warmup: 0
duration: 3ms
metrics: [fct-mean]
targets:
  - {figure: fig1, name: slow, metric: fct-mean, of: ecmp, printed: 0.83}
  - {figure: fig2, name: quick, metric: fct-mean, of: ecmp, printed: 0.04}
  - {figure: fig3, name: also, metric: fct-mean, of: ecmp, printed: 0.8}
vary: {open: {topology.leaf-spine.delay: [2us, 400us], duration: [3ms, 4ms]}}
`

// TestExplainOneFlow: the choice that changes a verdict is named, and confirmed with
// unused seeds. Choices without an effect are not tested.
func TestExplainOneFlow(t *testing.T) {
	dir, runs := t.TempDir(), 0
	s, err := (&Runner{Dir: dir, Cores: 1, Progress: func(Progress) { runs++ }}).Explain(t.Context(), load(t, oneFlow))
	if err != nil {
		t.Fatal(err)
	}
	if s.Settings != 5 || s.Runs != 6 || !slices.Equal(s.Seeds, spec.Seeds{1, 2}) || len(s.Effects) != 12 || s.tested() != 3 {
		t.Errorf("%d settings, %d runs, seeds %v, %d effects, %d of them tested", s.Settings, s.Runs, s.Seeds, len(s.Effects), s.tested())
	}
	if runs != 5*2+2 {
		t.Errorf("%d runs, want 2 for each of 5 settings, and 2 that confirm both targets", runs)
	}
	if len(s.Confirmed) != 2 || s.Confirmed[1].Target.Name != "also" || s.Confirmed[1].Outcome.Verdict != Within || s.Confirmed[0].Choice != "topology.leaf-spine.delay: 400us" || !slices.Equal(s.Confirmed[0].Seeds, spec.Seeds{3, 4}) || s.Confirmed[0].Outcome.Verdict != Within {
		t.Errorf("confirmed: %+v", s.Confirmed)
	}
	got := strings.Join(s.Summary(), "\n")
	for _, want := range []string{
		"fig1, slow: contrary; decided by topology.leaf-spine.delay: 400us (+0.796 ±0, then within band); with topology.leaf-spine.delay: 400us and fresh seeds: 0.8",
		"\nfig2, quick: within band; decided by topology.leaf-spine.delay: 400us (+0.796 ±0, then contrary)\n",
		"\n5 settings were tried, in 6 runs with the seeds 1, 2; p is corrected by the method of Holm (3)",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	var folders []string
	for _, pattern := range []string{"settings/*", "confirmed/*"} {
		list, _ := filepath.Glob(filepath.Join(dir, pattern))
		for _, name := range list {
			folders = append(folders, filepath.Base(name))
		}
	}
	if want := []string{"0-2us", "0-400us", "1-3ms", "1-4ms", "base", "0-400us"}; !slices.Equal(folders, want) {
		t.Errorf("folders %q, want %q", folders, want)
	}
	if err := s.Keep(dir, "p4lb lab"); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "sensitivity.csv"))
	if lines := strings.Split(string(text), "\n"); err != nil || len(lines) != 14 || lines[0] != "figure,target,choice,among,value,change,ci95,p_holm,verdict" || !strings.HasPrefix(lines[1], "fig1,slow,topology.leaf-spine.delay: 400us,false,0.8") || !strings.HasSuffix(lines[1], ",0.796,0,0,within band") || !strings.HasSuffix(lines[8], ",0,0,NaN,within band") {
		t.Errorf("%v: %q", err, lines)
	}
	for _, name := range []string{"sensitivity.svg", "sensitivity.pdf", "sensitivity.md"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Error(err)
		}
	}

	f := s.figure()
	if len(f.Series) != 3 || f.Series[0].Label != "fig1 slow" || f.Series[1].Tint != 1 || !slices.Equal(f.X.Names, []string{"topology.leaf-spine.delay: 2us", "topology.leaf-spine.delay: 400us", "duration: 3ms", "duration: 4ms"}) {
		t.Fatalf("%+v", f)
	}
	base := s.Effects[1].Value.Mean - s.Effects[1].Change.Mean
	if y := f.Series[0].Y; y[0] != 0 || !near(y[1], 100*s.Effects[1].Change.Mean/base) || f.Series[0].Kind != chart.Points {
		t.Errorf("changes %v of %g", y, base)
	}
}

// Experiments that cannot be screened are refused before a run.
func TestScreeningRefused(t *testing.T) {
	for want, edit := range map[string]func(x *spec.Experiment){
		"quick has no variations: want vary: {open: {KEY: [VALUE, …]}}":                                                       func(x *spec.Experiment) { x.Vary = nil },
		"quick has no targets: choices have nothing to affect":                                                                func(x *spec.Experiment) { x.Targets = nil },
		"quick: no target of all is of the cases that vary names: none":                                                       func(x *spec.Experiment) { x.Vary.Cases = []string{"none"} },
		"vary of quick: 5 settings are 6 runs, more than 5: want fewer values or seeds, one figure, or at-most: 6 under vary": func(x *spec.Experiment) { x.Vary.AtMost = 5 },
	} {
		x := load(t, oneFlow)
		edit(x)
		if _, err := (&Runner{}).Explain(t.Context(), x); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
	s, err := (&Runner{}).screening(load(t, oneFlow))
	if err != nil {
		t.Fatal(err)
	}
	s.x.Vary.AtMost = 6
	if n, err := s.count(); n != 6 || err != nil {
		t.Errorf("exactly the limit: %d, %v", n, err)
	}
}

// sensitivity returns made-up effects on a ratio, a reduction and a value.
func sensitivity() *Sensitivity {
	targets := []spec.Target{{Figure: "fig1", Name: "ratio", Of: "a", Against: "b", Ratio: true}, {Figure: "fig2", Name: "saves", Of: "a", AgainstCase: "x"}, {Figure: "fig3", Name: "value", Of: "a"}}
	s := &Sensitivity{Experiment: &spec.Experiment{Name: "exp"}, Settings: 7, Runs: 14, Seeds: spec.Seeds{1, 2, 3, 5}}
	for i := range targets {
		t := &targets[i]
		s.Base = append(s.Base, Outcome{Target: t, Measured: "2", Verdict: contrary})
		effect := func(choice string, mean, p float64, v Verdict) Effect {
			return Effect{Target: t, Choice: choice, Value: Estimate{Mean: 2 + mean, N: 5}, Change: Estimate{Mean: mean, Half: 0.25, N: 5}, P: p, Verdict: v, fileVerdict: contrary}
		}
		among := effect("set.d: 1 → 2", 1, 0.01, Within)
		among.Among, among.Spread = true, 0.5
		s.Effects = append(s.Effects, effect("set.d: 1", 0.5, 0.2, Within), effect("set.d: 2", -3, 0.0004, Within), among, effect("set.d: 3", 0, math.NaN(), contrary))
	}
	s.Effects[3].Change.Mean = math.NaN()
	s.Effects[8].Change.Mean, s.Effects[8].Value.Mean = 2, 2 // from 0: no relative change
	return s
}

// Effects are listed by size. Effects among other choices have no verdict.
func TestEffectsShown(t *testing.T) {
	s := sensitivity()
	want := []string{
		"fig2|saves|as the file says: 2|||contrary", "||set.d: 2|-3.00 ±0.250|<0.001|within band", "||set.d: 1 → 2|+1.00 ±0.250, all others changing too, spread 0.500|0.0100|",
		"||set.d: 1|+0.500 ±0.250|0.200|within band", "||set.d: 3|0 ±0.250|-|contrary",
	}
	var got []string
	for _, line := range s.Table()[6:11] {
		got = append(got, strings.Join(line, "|"))
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q\nwant %q", got, want)
	}
	summary := s.Summary()
	if want := "fig2, saves: contrary; decided by set.d: 2 (-3.00 ±0.250, then within band)"; len(summary) != 4 || summary[1] != want {
		t.Errorf("%q, want %q", summary, want)
	}
	if want := "7 settings were tried, in 14 runs with the seeds 1 to 3, 5; p is corrected by the method of Holm (9)"; summary[3] != want {
		t.Errorf("%q, want %q", summary[3], want)
	}
	s.Effects[5].P = sureAt
	if want := "fig2, saves: contrary; no open choice changes this significantly"; s.Summary()[1] != want {
		t.Errorf("%q, want %q", s.Summary()[1], want)
	}
	f := s.figure()
	text := ""
	for _, r := range f.Series {
		text += fmt.Sprintln(r.Label, r.X, r.Y, r.Half)
	}
	// Changes of ratios and values are relative to 2 without the choice, reductions are in points.
	if want := "fig1 ratio [0 1] [25 -150] [12.5 12.5]\nfig2 saves [0 1 2] [0.5 -3 0] [0.25 0.25 0.25]\nfig3 value [1 2] [-150 0] [12.5 12.5]\n"; text != want || len(f.X.Names) != 3 {
		t.Errorf("%s for %q, want %s", text, f.X.Names, want)
	}
	md := string(s.Markdown("p4lb lab"))
	if n := strings.Count(md, "|---|---|---|---|---|---|\n"); n != 1 || !strings.HasPrefix(md, "### exp: effects of open choices\n\n`p4lb lab`\n\n|  | TARGET | CHOICE | CHANGE | P (HOLM) | VERDICT |\n|---|---|---|---|---|---|\n| fig1 | ratio |") || !strings.HasSuffix(md, "- "+summary[3]+".\n") {
		t.Errorf("%s", md)
	}
}

// Consecutive seeds are written as ranges from three on, probabilities below 0.001 as such.
func TestSeedsAndChances(t *testing.T) {
	for want, list := range map[string]spec.Seeds{"": nil, "4": {4}, "4, 5": {4, 5}, "4 to 6": {4, 5, 6}, "1, 3, 5 to 7, 9, 10": {1, 3, 5, 6, 7, 9, 10}} {
		if got := seedsText(list); got != want {
			t.Errorf("%v: %q, want %q", list, got, want)
		}
	}
	for p, want := range map[float64]string{0.0009: "<0.001", 0.001: "0.0010", 0.5: "0.500", 1: "1.00"} {
		if got := chanceText(p); got != want {
			t.Errorf("%g: %s, want %s", p, got, want)
		}
	}
	if got := chanceText(math.NaN()); got != "-" {
		t.Errorf("no test: %s", got)
	}
	if got := fmt.Sprint(minus([]float64{1, 2, 3}, []float64{3, 2}), minus([]float64{1}, []float64{3, 2})); got != "[-2 0] [-2]" {
		t.Errorf("differences %s", got)
	}
	e, spread := pooled([][]float64{{1, 3}, {5, 7}, {3, 5}})
	if e.Mean != 4 || e.N != 2 || !near(spread, math.Sqrt(8.0/3)) {
		t.Errorf("%+v, spread %g", e, spread)
	}
	if e, spread := pooled([][]float64{{1, 3}}); e.Mean != 2 || spread != 0 {
		t.Errorf("one step: %+v, spread %g", e, spread)
	}
	if e, spread := pooled(nil); !math.IsNaN(e.Mean) || spread != 0 {
		t.Errorf("no steps: %+v, spread %g", e, spread)
	}
}

// An order counts the neighbours in order, by seed.
func TestNeighboursInOrder(t *testing.T) {
	c := made(map[string][]float64{"a": {1, 1, 1}, "b": {2, 1, 3}, "c": {3, 4, 2}}, "a", "b", "c")
	order := &spec.Target{Metric: "fct-mean", Order: []string{"a", "b", "c"}}
	if got := fmt.Sprint(c.samples(order, 0.7)); got != "[2 1 1]" {
		t.Errorf("%s, want [2 1 1]", got)
	}
	c.Rows[2].Runs = c.Rows[2].Runs[:2]
	if got := c.samples(order, 0.7); got != nil {
		t.Errorf("with a missing run: %v", got)
	}
	if got := c.samples(order, 0.3); got != nil {
		t.Errorf("at another load: %v", got)
	}
	for want, target := range map[string]*spec.Target{
		"[1 1 1]":       {Metric: "fct-mean", Of: "a"},
		"[2 1 3]":       {Metric: "fct-mean", Of: "b", Against: "a", Ratio: true},
		"[-100 0 -200]": {Metric: "fct-mean", Of: "b", Against: "a"},
		"[]":            {Metric: "fct-mean", Of: "a", Against: "c"},
		"[0 0 0]":       {Metric: "fct-mean", Of: "a", AgainstCase: "", Against: "a"},
	} {
		if got := fmt.Sprint(c.samples(target, 0.7)); got != want {
			t.Errorf("%+v: %s, want %s", target, got, want)
		}
	}
	if _, err := c.pair(&spec.Target{Metric: "fct-mean", Of: "a", Against: "x"}, 0.7); err == nil || err.Error() != "a or x has not run at load 0.7" {
		t.Errorf("%v", err)
	}
	if _, err := c.pair(&spec.Target{Metric: "fct-mean", Of: "a", Against: "c"}, 0.7); !errors.Is(err, errUnseeded) {
		t.Errorf("%v", err)
	}
}

// A target without a load is judged at the largest load, "up to" at all loads with runs.
func TestLoadsOfTargets(t *testing.T) {
	c := swept([]string{"x", "y"}, 0.3, 0.6, 0.9)
	c.Rows[4].Runs, c.Rows[5].Runs = nil, nil // x at load 0.9
	for want, target := range map[string]*spec.Target{
		"[0.6]": {Case: "x"}, "[0.3 0.6]": {Case: "x", UpTo: true}, "[0.4]": {Case: "x", Load: 0.4, UpTo: true}, "[0.9]": {Case: "y"}, "[]": {Case: "z"},
	} {
		if got := fmt.Sprint(c.loads(target)); got != want {
			t.Errorf("%+v: %s, want %s", target, got, want)
		}
	}
	for want, target := range map[string]*spec.Target{
		"x a, x b": {Case: "x", Of: "a", Against: "b"}, "x a": {Case: "x", Of: "a"}, "x a, y a": {Case: "x", Of: "a", AgainstCase: "y"}, "x b, x a": {Case: "x", Order: []string{"b", "a"}}, "": {Case: "x", Of: "c"},
	} {
		var got []string
		for _, r := range c.rowsFor(target, 0.6) {
			got = append(got, r.Case.Name+" "+r.Scheme.Label)
		}
		if strings.Join(got, ", ") != want {
			t.Errorf("%+v: %q, want %s", target, got, want)
		}
	}
}

// The bound that is nearest decides how many seeds are needed.
func TestNearestBound(t *testing.T) {
	v := func(x float64) *float64 { return &x }
	between := &spec.Target{AtLeast: v(10), AtMost: v(20)}
	for value, want := range map[float64]float64{3: 10, 14: 10, 16: 20, 30: 20} {
		if got := nearestBound(between, value); got != want {
			t.Errorf("from %g: %g, want %g", value, got, want)
		}
	}
	if got := nearestBound(&spec.Target{Below: true}, 7); got != levelWithin {
		t.Errorf("below: %g", got)
	}
}
