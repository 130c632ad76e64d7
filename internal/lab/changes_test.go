package lab

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/p4lb/p4lb/internal/dataplane"
	"github.com/p4lb/p4lb/internal/lab/spec"
)

// madeUp is a comparison with made-up runs of a row, from the given seed on.
func madeUp(t *testing.T, scheme string, seed uint64, values ...float64) *Comparison {
	t.Helper()
	x := load(t, "schemes: ["+scheme+"]\nseeds: 3\nmetrics: [fct-mean]\n")
	jobs, err := (&Runner{}).Jobs(x)
	if err != nil {
		t.Fatal(err)
	}
	results := make([]*Result, len(jobs))
	for i := range jobs {
		results[i] = &Result{Label: scheme, Seed: seed + uint64(i), Programs: map[string]string{"leaf": scheme}, Metrics: map[string]float64{"fct-mean": values[i]}}
	}
	return newComparison(x, jobs, results)
}

// Two archives are compared row by row: seed by seed if both have the same seeds, and
// else by their means. An increase is positive.
func TestChanges(t *testing.T) {
	for _, c := range []struct {
		name          string
		first, second *Comparison
		want          string
	}{
		{"the same", madeUp(t, "ecmp", 1, 10, 20, 30), madeUp(t, "ecmp", 1, 10, 20, 30), "same"},
		{"the same values of other seeds", madeUp(t, "ecmp", 1, 10, 20, 30), madeUp(t, "ecmp", 7, 10, 20, 30), "same"},
		{"seed by seed, 50 % more in each", madeUp(t, "ecmp", 1, 10, 20, 40), madeUp(t, "ecmp", 1, 15, 30, 60), "+50.0 ±0"},
		{"seed by seed, 25 % less in each", madeUp(t, "ecmp", 1, 20, 40, 80), madeUp(t, "ecmp", 1, 15, 30, 60), "-25.0 ±0"},
		{"other seeds, means 20 and 30", madeUp(t, "ecmp", 1, 10, 20, 30), madeUp(t, "ecmp", 7, 20, 30, 40), "+50.0 %"},
		{"other seeds, from nothing", madeUp(t, "ecmp", 1, 0, 0, 0), madeUp(t, "ecmp", 7, 1, 2, 3), "-"},
	} {
		table := Changes(c.first, c.second)
		if len(table) != 2 || table[1][0] != "ecmp" {
			t.Errorf("%s: %q", c.name, table)
			continue
		}
		if got := table[1][5]; !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
	if table := Changes(madeUp(t, "ecmp", 1, 1, 2, 3), madeUp(t, "drill", 1, 1, 2, 3)); len(table) != 1 {
		t.Errorf("rows of one comparison only: %q", table)
	}
}

// More verdicts at their limits: one seed decides nothing, and an interval that excludes
// the printed value by its upper or lower end does.
func TestVerdictLimits(t *testing.T) {
	v := func(x float64) *float64 { return &x }
	below := spec.Target{Of: "a", Against: "b", Below: true}
	most := spec.Target{Of: "a", Against: "b", AtMost: v(-20)}
	for _, c := range []struct {
		name string
		t    spec.Target
		e    Estimate
		want Verdict
	}{
		{"below, one seed", below, Estimate{Mean: 30, N: 1}, undecided},
		{"below, two seeds", below, Estimate{Mean: 30, N: 2}, Holds},
		{"at the edge of level", below, Estimate{Mean: 0, Half: levelWithin, N: 5}, Level},
		{"beyond the edge of level", below, Estimate{Mean: 0, Half: levelWithin + 0.001, N: 5}, undecided},
		{"at most, met", most, Estimate{Mean: -25, Half: 1, N: 5}, Within},
		{"at most, the other way", most, Estimate{Mean: 4, Half: 3, N: 5}, contrary},
		{"at most, perhaps the other way", most, Estimate{Mean: 3, Half: 4, N: 5}, Level},
		{"at most, two seeds", most, Estimate{Mean: 4, Half: 3, N: 2}, contrary},
		{"at most, one seed", most, Estimate{Mean: 4, N: 1}, undecided},
		{"an allowed increase", spec.Target{Of: "a", Against: "b", AtMost: v(20)}, Estimate{Mean: 30, Half: 1, N: 5}, Level},
		{"a value at most", spec.Target{Of: "a", AtMost: v(5)}, Estimate{Mean: 7, Half: 1, N: 5}, contrary},
		{"a value perhaps at most", spec.Target{Of: "a", AtMost: v(5)}, Estimate{Mean: 6, Half: 1, N: 5}, undecided},
	} {
		if got := verdictOn(&c.t, c.e); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
	for seeds, want := range map[float64]string{math.Inf(1): "fewer than two seeds have both values", 1000: "about 1000 seeds would be needed", 1001: "more than 1000 seeds would be needed", 142: "about 142 seeds would be needed"} {
		if got := seedsNeeded(seeds); got != want {
			t.Errorf("%g seeds: %q, want %q", seeds, got, want)
		}
	}
}

// Printed numbers of one unit share a chart; each point has the number of its statement.
func TestChartsOfPrintedNumbers(t *testing.T) {
	x := load(t, "schemes: [ecmp, drill]\nseeds: 3\nmetrics: [fct-mean]\ntargets:\n"+`
 - {name: a, metric: fct-mean, of: drill, against: ecmp, printed: 45}
 - {name: b, metric: fct-mean, of: drill, at-least: 1}
 - {name: c, metric: fct-mean, of: ecmp, against: drill, ratio: true, printed: 2}
 - {name: d, metric: fct-mean, of: ecmp, against: drill, printed: -90}
 - {name: e, metric: fct-mean, of: ecmp, printed: 25}
`)
	jobs, err := (&Runner{}).Jobs(x)
	if err != nil {
		t.Fatal(err)
	}
	results := make([]*Result, len(jobs))
	for i, j := range jobs {
		v := map[string]float64{"ecmp": 20, "drill": 10}[j.Scheme.Label] * float64(j.Seed)
		results[i] = &Result{Label: j.Scheme.Label, Seed: j.Seed, Programs: map[string]string{"leaf": j.Scheme.Label}, Metrics: map[string]float64{"fct-mean": v}}
	}
	list := newComparison(x, jobs, results).drawPrinted()
	var got []string
	for _, f := range list {
		got = append(got, f.Name+" "+f.Y.Label+" "+strings.Join(f.X.Names, ","))
		if ours, theirs := f.Series[0], f.Series[1]; !slices.Equal(ours.X, theirs.X) || ours.X[0] != 0 || len(ours.Half) != len(ours.Y) {
			t.Errorf("%s: measured at %v, printed at %v", f.Name, ours.X, theirs.X)
		}
	}
	if want := "printed reduction (%) 1,4|printed-2 factor 3|printed-3 "; !strings.HasPrefix(strings.Join(got, "|"), want) || len(list) != 3 {
		t.Fatalf("%q, want %q and one more", got, want)
	}
	first := list[0]
	if !slices.Equal(first.Series[0].Y, []float64{50, -100}) || !slices.Equal(first.Series[1].Y, []float64{45, -90}) {
		t.Errorf("measured %v, printed %v", first.Series[0].Y, first.Series[1].Y)
	}
	if list[1].Series[0].Y[0] != 2 || list[2].Series[0].Y[0] != 40 {
		t.Errorf("the factor is %v, the mean %v", list[1].Series[0].Y, list[2].Series[0].Y)
	}
}

// A run reports one alert about packets that recirculate too often: the first one, or the
// first in alphabetical order if results must not depend on the order of simultaneous
// events.
func TestAlertOfRounds(t *testing.T) {
	for ties, want := range map[string]string{"": "port 2 has", spec.ByPlace: "port 1 has"} {
		r := &running{Job: &Job{Case: &spec.Case{}}}
		r.Case.Ties = ties
		for _, port := range []uint32{2, 1, 3} {
			r.packetEnded(dataplane.Ended{Port: port, Rounds: 9})
		}
		got := strings.Join(r.alerts, "\n") + r.unturned.least
		if r.unturned.n != 3 || strings.Count(got, "a packet of") != 1 || !strings.Contains(got, want) {
			t.Errorf("ties %q: %d packets, %q", ties, r.unturned.n, got)
		}
	}
}

// The effect of a choice among the others: for a factorial design the mean with its last
// value minus the mean with its first, for Morris' design the mean of the single steps, in
// the direction from the first value to the last.
func TestEffectsAmongChoices(t *testing.T) {
	for _, c := range []struct {
		design string
		levels [][]int
		values []float64
		change []float64 // of each choice
		spread []float64
	}{
		{"factorial", [][]int{{0, 0}, {0, 0}, {0, 1}, {1, 0}, {1, 1}}, []float64{10, 10, 12, 14, 20}, []float64{6, 4}, []float64{0, 0}},
		{"morris", [][]int{{0, 0}, {0, 0}, {1, 0}, {1, 1}, {0, 1}}, []float64{10, 10, 14, 20, 12}, []float64{6, 6}, []float64{2, 0}},
		{"morris", [][]int{{0, 0}, {0, 1}, {0, 0}, {1, 0}, {0, 1}, {1, 1}}, []float64{10, 12, 10, 14, 12, 20}, []float64{6, 2}, []float64{2, 0}},
	} {
		x := load(t, "schemes: [ecmp]\nseeds: 3\nmetrics: [fct-mean]\ntargets:\n - {name: a, metric: fct-mean, of: ecmp, printed: 10}\nvary: {design: "+c.design+", open: {mtu: [1500, 9000], duration: [5ms, 6ms]}}\n")
		s := &screening{r: &Runner{}, x: x, levels: c.levels}
		var results []*Comparison
		for _, v := range c.values {
			s.all = append(s.all, x)
			results = append(results, madeUp(t, "ecmp", 1, v, v+1, v+2))
		}
		list := s.among(results, 0, Outcome{Target: &x.Targets[0], Load: results[0].Rows[0].Load})
		if len(list) != 2 {
			t.Fatalf("%s: %d effects", c.design, len(list))
		}
		for k, e := range list {
			if !(math.Abs(e.Change.Mean-c.change[k]) <= 1e-9) || !(math.Abs(e.Spread-c.spread[k]) <= 1e-9) || !e.Among {
				t.Errorf("%s: %s changes the mean by %g with spread %g, want %g and %g", c.design, e.Choice, e.Change.Mean, e.Spread, c.change[k], c.spread[k])
			}
			if want := e.Change.p(0); e.P != want && !math.IsNaN(want) {
				t.Errorf("%s: the probability of %s is %g, want %g of no effect", c.design, e.Choice, e.P, want)
			}
		}
		if want := "mtu: 1500 → 9000"; list[0].Choice != want {
			t.Errorf("the choice is %q, want %q", list[0].Choice, want)
		}
	}
}
