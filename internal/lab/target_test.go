package lab

import (
	"math"
	"strings"
	"testing"

	"github.com/p4lb/p4lb/internal/lab/spec"
)

// TestPapers reads every experiment of a paper, whole ones too.
func TestPapers(t *testing.T) {
	leftToPlainRun(t)
	if got := strings.Join(Papers(), " "); got != "dhlb pdlb qall qdaps rlb" {
		t.Errorf("the papers are %s", got)
	}
	for _, paper := range Papers() {
		for _, full := range []bool{false, true} {
			list, err := Paper(paper, "", full)
			if err != nil {
				t.Fatal(err)
			}
			for _, x := range list {
				checkPaper(t, x)
				if x.Vary != nil && !full {
					if _, err := (&Runner{}).screening(x); err != nil {
						t.Error(err)
					}
				}
				for i := range x.Cases {
					if _, err := x.Cases[i].Network(spec.NoFiles); err != nil {
						t.Errorf("%s: %v", x.Name, err)
					}
				}
			}
		}
	}
	if _, err := Paper("qall", "fig99", false); err == nil || !strings.Contains(err.Error(), "fig9") {
		t.Errorf("got %v", err)
	}
	if _, err := Paper("nosuch", "", false); err == nil || !strings.Contains(err.Error(), "qdaps") {
		t.Errorf("got %v", err)
	}
}

// checkPaper checks that an experiment states its targets and assumptions, and that
// each figure has a target.
func checkPaper(t *testing.T, x *spec.Experiment) {
	t.Helper()
	if len(x.Targets) == 0 || len(x.Assumed) == 0 || x.About == "" || x.Paper == "" {
		t.Errorf("%s: %d targets, %d assumptions, about %q of %q", x.Name, len(x.Targets), len(x.Assumed), x.About, x.Paper)
	}
	for _, c := range x.Cases {
		if len(c.Seeds) < 5 {
			t.Errorf("%s: %d seeds", x.Name, len(c.Seeds))
		}
	}
	for _, figure := range x.Figures {
		if cut := x.OnlyFigure(figure); len(cut.Targets) == 0 || len(cut.Cases) == 0 {
			t.Errorf("%s: %s has %d targets in %d cases", x.Name, figure, len(cut.Targets), len(cut.Cases))
		}
	}
}

func TestVerdict(t *testing.T) {
	v := func(x float64) *float64 { return &x }
	sure := func(mean float64) Estimate { return Estimate{Mean: mean, Half: 1, N: 5} }
	pair := spec.Target{Of: "a", Against: "b", Printed: v(40)}
	ratio := spec.Target{Of: "a", Against: "b", Ratio: true, Printed: v(2)}
	value := spec.Target{Of: "a", Printed: v(10)}
	for _, c := range []struct {
		name string
		t    spec.Target
		e    Estimate
		want Verdict
	}{
		{"met", pair, sure(40), Within},
		{"at the edge", pair, sure(30), Within},
		{"too little", pair, sure(29), otherSize},
		{"too much", pair, sure(80), otherSize},
		{"small numbers have narrow bands", spec.Target{Of: "a", Against: "b", Printed: v(17)}, sure(3.1), otherSize},
		{"in the printed range", spec.Target{Of: "a", Against: "b", AtLeast: v(8), AtMost: v(53)}, sure(10), Within},
		{"beyond the printed range", spec.Target{Of: "a", Against: "b", AtLeast: v(8), AtMost: v(53)}, sure(70), otherSize},
		{"below", spec.Target{Of: "a", Against: "b", Below: true}, sure(3), Holds},
		{"above", spec.Target{Of: "a", Against: "b", Below: true}, sure(-3), contrary},
		{"neither", spec.Target{Of: "a", Against: "b", Below: true}, Estimate{Mean: 0.2, Half: 0.5, N: 5}, Level},
		{"perhaps below", spec.Target{Of: "a", Against: "b", Below: true}, Estimate{Mean: 2, Half: 3, N: 5}, undecided},
		{"a ratio of 1", spec.Target{Of: "a", Against: "b", Ratio: true, Printed: v(1)}, Estimate{Mean: 0.95, Half: 0.1, N: 5}, Within},
		{"the other way", pair, sure(-10), contrary},
		{"in doubt", pair, Estimate{Mean: 38, Half: 50, N: 5}, undecided},
		{"in the band but not beyond zero", spec.Target{Of: "a", Against: "b", Printed: v(5)}, Estimate{Mean: 4, Half: 5, N: 5}, undecided},
		{"in the band with the other sign", spec.Target{Of: "a", Against: "b", Printed: v(5)}, sure(-3), contrary},
		{"ratio met", ratio, Estimate{Mean: 2.4, Half: 0.1, N: 5}, Within},
		{"ratio on the same side", ratio, Estimate{Mean: 5, Half: 0.1, N: 5}, otherSize},
		{"ratio on the other side", ratio, Estimate{Mean: 0.5, Half: 0.1, N: 5}, contrary},
		{"value met", value, Estimate{Mean: 12.4, Half: 9, N: 5}, Within},
		{"value off", value, Estimate{Mean: 16, Half: 9, N: 5}, undecided},
		{"value beyond doubt", value, sure(16), contrary},
		{"at least", spec.Target{Of: "a", AtLeast: v(3)}, sure(4), Within},
		{"not even", spec.Target{Of: "a", AtLeast: v(3)}, Estimate{Mean: 1.9, Half: 1, N: 5}, contrary},
		{"perhaps", spec.Target{Of: "a", AtLeast: v(3)}, sure(2.5), undecided},
		{"level, and what is printed excluded", pair, Estimate{Mean: -3, Half: 20, N: 5}, Level},
		{"level, and what is printed not excluded", pair, Estimate{Mean: -3, Half: 43.5, N: 5}, undecided},
		{"the same in all runs", spec.Target{Of: "a", Against: "b", AtLeast: v(5)}, Estimate{N: 5}, Level},
		{"level ratio", ratio, Estimate{Mean: 1.1, Half: 0.2, N: 5}, Level},
		{"one seed", spec.Target{Of: "a", AtLeast: v(3)}, Estimate{Mean: 2, N: 1}, undecided},
		{"less than at least", spec.Target{Of: "a", Against: "b", AtLeast: v(30)}, sure(10), otherSize},
		{"the other way than at least", spec.Target{Of: "a", Against: "b", AtLeast: v(22), AtMost: v(46)}, sure(-131), contrary},
		{"between", spec.Target{Of: "a", AtLeast: v(3), AtMost: v(5)}, sure(6.1), contrary},
	} {
		if got := verdictOn(&c.t, c.e); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// TestPrinted: the column of the printed value marks bounds that no paper prints.
func TestPrinted(t *testing.T) {
	v := func(x float64) *float64 { return &x }
	for want, target := range map[string]spec.Target{
		"up to 17.0 %":               {Printed: v(17), UpTo: true},
		"8.00 to 53.0 %":             {AtLeast: v(8), AtMost: v(53)},
		"at least 5.00 %":            {AtLeast: v(5)},
		"at most 3.00 % (our bound)": {AtMost: v(3), Ours: true},
		"below":                      {Below: true},
		"below (our comparison)":     {Below: true, Ours: true},
		"1.00 % (our number)":        {Printed: v(1), Ours: true},
	} {
		if got := printedText(&target, " %"); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// TestReasoned: an open choice or a quantity that cannot be compared determines the
// verdict, regardless of the measurement.
func TestReasoned(t *testing.T) {
	runs := map[string][]float64{"drill": {10, 20, 30, 10, 21, 30}, "ecmp": {11, 22, 33, 20, 40, 60}, "rps": {10, 23, 30, 30, 60, 90}}
	got := judged(t, `
 - {name: a, metric: fct-mean, of: drill, against: ecmp, printed: 45, upto: true, open: the gap}
 - {name: b, metric: fct-mean, of: drill, against: ecmp, printed: 45, upto: true, not-comparable: another clock}
`, runs)
	if got[0].Verdict != decidedByChoice || got[0].Note != "here within band; the gap" {
		t.Errorf("open: %s (%s)", got[0].Verdict, got[0].Note)
	}
	if got[1].Verdict != NotComparable || got[1].Note != "another clock" {
		t.Errorf("not comparable: %s (%s)", got[1].Verdict, got[1].Note)
	}
}

// judged is a comparison with made-up runs.
func judged(t *testing.T, targets string, runs map[string][]float64) []Outcome {
	t.Helper()
	x := load(t, "schemes: [ecmp, drill, rps]\nloads: [0.5, 0.9]\nseeds: 3\nmetrics: [fct-mean]\ntargets:\n"+targets)
	jobs, err := (&Runner{}).Jobs(x)
	if err != nil {
		t.Fatal(err)
	}
	results := make([]*Result, len(jobs))
	for i, j := range jobs {
		v := runs[j.Scheme.Label]
		k := int(j.Seed-1) + 3*int((j.Load-0.5)/0.4+0.5)
		if k < len(v) {
			results[i] = &Result{Label: j.Scheme.Label, Seed: j.Seed, Programs: map[string]string{"leaf": j.Scheme.Label},
				Metrics: map[string]float64{"fct-mean": v[k]}}
		}
	}
	return newComparison(x, jobs, results).Judge()
}

func TestJudge(t *testing.T) {
	runs := map[string][]float64{
		"drill": {10, 20, 30, 10, 21, 30},
		"ecmp":  {11, 22, 33, 20, 40, 60},
		"rps":   {10, 23, 30, 30, 60, 90},
	}
	got := judged(t, `
 - {name: a, metric: fct-mean, of: drill, against: ecmp, printed: 45, upto: true}
 - {name: b, metric: fct-mean, of: drill, against: ecmp, printed: 9, load: 0.5}
 - {name: c, metric: fct-mean, order: [drill, ecmp, rps]}
 - {name: d, metric: fct-mean, order: [ecmp, drill], load: 0.9}
 - {name: e, metric: fct-mean, of: ecmp, against: drill, ratio: true, printed: 2}
 - {name: f, metric: fct-mean, of: rps, at-least: 50}
 - {name: in order but not beyond doubt, metric: fct-mean, load: 0.5, order: [drill, rps]}
`, runs)
	for i, want := range []Verdict{Within, Within, Holds, contrary, Within, Within, undecided} {
		if got[i].Verdict != want {
			t.Errorf("%s: %s with %s measured, want %s", got[i].Name, got[i].Verdict, got[i].Measured, want)
		}
	}
	// 3 seeds with reductions of 0, 13.04 and 0 %: a half-width of 18.7 around 4.35.
	if want := "1 of 1 neighbours in order, 0 beyond the 95 % interval, about 56 seeds would be needed to tell all neighbours apart"; got[6].Note != want {
		t.Errorf("the order in doubt: %s", got[6].Note)
	}
	if want := "of 6 differences"; !strings.HasPrefix(Corrected(got), want) {
		t.Errorf("got %q, want %s", Corrected(got), want)
	}
	if got[0].Load != 0.9 || got[1].Load != 0.5 {
		t.Errorf("judged at the loads %g and %g", got[0].Load, got[1].Load)
	}
	if want := "drill 20.3 < ecmp 40.0 < rps 60.0"; got[2].Measured != want {
		t.Errorf("got %s, want %s", got[2].Measured, want)
	}
}

// TestJudgeLevel: rows without a significant difference are not undecided if the
// interval excludes the printed value. Undecided rows state the number of seeds that
// exclude either no effect or the printed value.
func TestJudgeLevel(t *testing.T) {
	got := judged(t, `
 - {name: a, metric: fct-mean, of: drill, against: ecmp, printed: 60, load: 0.5}
 - {name: b, metric: fct-mean, of: drill, against: rps, printed: 60, load: 0.5}
 - {name: c, metric: fct-mean, of: drill, against: ecmp, printed: 5, load: 0.5}
`, map[string][]float64{"drill": {10, 21, 30}, "ecmp": {11, 20, 31}, "rps": {10, 21, 30}})
	for i, want := range []struct {
		Verdict
		note string
	}{{Level, "level: the interval ends at -15.1 and 20.0 %"}, {Level, "the same in all runs"}, {undecided, "about 142 seeds would be needed"}} {
		if got[i].Verdict != want.Verdict || got[i].Note != want.note {
			t.Errorf("%s: %s (%s) with %s, want %s (%s)", got[i].Name, got[i].Verdict, got[i].Note, got[i].Measured, want.Verdict, want.note)
		}
	}
}

// TestJudgeLevelOrder: if some neighbours are level, within one percent including the
// interval, and the others have the printed order, the verdict is: not as printed. If
// neighbours may well differ, it is: undecided.
func TestJudgeLevelOrder(t *testing.T) {
	order := "\n - {name: a, metric: fct-mean, order: [drill, ecmp, rps], load: 0.5}"
	for _, c := range []struct {
		what      string
		ecmp, rps []float64
		want      Verdict
		note      string
	}{
		{"a neighbour the wrong way, level", []float64{2000, 2200, 2400}, []float64{1998, 2199, 2399}, Level, "1 of 2 neighbours in order, 1 beyond the 95 % interval, 1 level: within 0.144 %"},
		{"all level, neither way", []float64{1000, 1101, 1199}, []float64{1001, 1099, 1199}, Level, "0 beyond the 95 % interval, 2 level: within"},
		{"a neighbour that may differ", []float64{2000, 2200, 2400}, []float64{1990, 2100, 2450}, undecided, "seeds would be needed to tell all neighbours apart"},
		{"level and in order at the ends", []float64{2000, 2200, 2400}, []float64{2001, 2201, 2402}, Holds, "2 of 2 neighbours in order"},
		{"beyond doubt the other way, by a little", []float64{2000, 2200, 2400}, []float64{1990, 2189, 2388}, contrary, "1 the other way beyond it"},
	} {
		got := judged(t, order, map[string][]float64{"drill": {1000, 1100, 1200}, "ecmp": c.ecmp, "rps": c.rps})[0]
		if got.Verdict != c.want || !strings.Contains(got.Note, c.note) {
			t.Errorf("%s: %s (%s), want %s (%s)", c.what, got.Verdict, got.Note, c.want, c.note)
		}
	}
}

// TestTableCommas: a label with a comma is one cell of table.csv.
func TestTableCommas(t *testing.T) {
	x := load(t, "schemes: [{scheme: ecmp, label: \"ECMP, paths\"}]\nseeds: 2\n")
	jobs, err := (&Runner{}).Jobs(x)
	if err != nil {
		t.Fatal(err)
	}
	results := []*Result{{Seed: 1, Metrics: map[string]float64{"fct-mean": 1}}, {Seed: 2, Metrics: map[string]float64{"fct-mean": 3}}}
	if got, want := string(newComparison(x, jobs, results).csv()), "\n,\"ECMP, paths\",0.7,fct-mean,ms,2,"; !strings.Contains(got, want) {
		t.Errorf("table.csv is %q", got)
	}
}

// TestJudgeMissing: missing runs get no verdict.
func TestJudgeMissing(t *testing.T) {
	for _, o := range judged(t, ` - {name: a, metric: fct-mean, of: drill, against: ecmp, printed: 45}
 - {name: c, metric: fct-mean, order: [drill, ecmp, rps]}
 - {name: f, metric: fct-mean, of: rps, at-least: 50}
`, map[string][]float64{"drill": {1, 2, 3, 1, 2, 3}}) {
		if o.Verdict != Unknown {
			t.Errorf("%s: %s", o.Name, o.Verdict)
		}
	}
}

// TestJudgeFew: a metric that only one of several runs has gets no verdict; with some of
// the runs, the verdict names their number.
func TestJudgeFew(t *testing.T) {
	nan := math.NaN()
	for _, c := range []struct {
		last []float64
		want Verdict
		note string
	}{
		{[]float64{60, 61, 62}, Within, ""},
		{[]float64{60, nan, 62}, Within, "in 2 of 3 runs alone"},
		{[]float64{nan, 61, nan}, Unknown, "in 1 of 3 runs alone"},
	} {
		runs := map[string][]float64{"rps": append([]float64{1, 2, 3}, c.last...)}
		o := judged(t, ` - {name: f, metric: fct-mean, of: rps, at-least: 50}`, runs)[0]
		if o.Verdict != c.want || o.Note != c.note {
			t.Errorf("of %v: %s (%s), want %s (%s)", c.last, o.Verdict, o.Note, c.want, c.note)
		}
	}
}

// TestCorrected: two differences that are significant alone are not after correction, and
// a single one needs none.
func TestCorrected(t *testing.T) {
	differences := func(p ...float64) (list []Outcome) {
		for _, v := range p {
			list = append(list, Outcome{P: v})
		}
		return list
	}
	for _, c := range []struct {
		p    []float64
		want string
	}{
		{[]float64{0.001}, ""},
		{[]float64{0.001, math.NaN()}, ""},
		{[]float64{0.001, 0.04}, "of 2 differences, 2 are significant at 95 %; after correction for the number of comparisons (Holm), 2"},
		{[]float64{0.001, 0.05}, "of 2 differences, 1 are significant at 95 %; after correction for the number of comparisons (Holm), 1"},
		{[]float64{0.03, 0.04}, "of 2 differences, 2 are significant at 95 %; after correction for the number of comparisons (Holm), 0"},
	} {
		if got := Corrected(differences(c.p...)); got != c.want {
			t.Errorf("%v: %q, want %q", c.p, got, c.want)
		}
	}
}
