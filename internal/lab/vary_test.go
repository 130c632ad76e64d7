package lab

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/p4lb/p4lb/internal/lab/spec"
)

const varied = tiny + `engine: native
targets:
  - {figure: fig1, name: order, metric: fct-mean, order: [drill, ecmp]}
  - {figure: fig2, name: saves, metric: fct-mean, of: drill, against: ecmp, printed: 5}
`

// TestVaryRefused: invalid variations are refused in one line with their position,
// before anything runs.
func TestVaryRefused(t *testing.T) {
	for name, c := range map[string]struct{ vary, want string }{
		"unknown key":       {"{open: {transport.patience: [3]}}", `vary.open: transport.patience: 3: transport.patience: there is no key "patience"`},
		"unknown parameter": {"{open: {set.nonsense: [3]}}", "no scheme of this experiment has a parameter"},
		"bad value":         {"{open: {duration: [soon]}}", `duration: time "soon": want a time`},
		"contradiction":     {"{open: {switches.pfc-hysteresis: [2KB]}}", "without pfc nothing is paused"},
		"no list":           {"{open: {duration: 3ms}}", "duration: want a list of values"},
		"nothing":           {"{design: morris}", "vary: want open: with 1 to 31 keys"},
		"unknown design":    {"{design: best, open: {duration: [5ms]}}", `vary.design: "best": want one of one-at-a-time, factorial, morris`},
		"one value":         {"{design: factorial, open: {duration: [5ms]}}", "duration has one value: design factorial wants two"},
		"seeds seen":        {"{open: {duration: [5ms]}, confirm: [2]}", "the seeds for confirmation include one of the screening"},
		"no such case":      {"{open: {duration: [5ms]}, cases: [x]}", `vary.cases[0]: there is no target of a case "x"`},
		"no such index":     {"{open: {'traffic[3].size': [5KB]}}", "there is no traffic[3]"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := spec.Load("t.yaml", []byte(varied+"vary: "+c.vary+"\n"), nil, nil)
			var f *spec.FileError
			if !errors.As(err, &f) || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
	x := load(t, varied+"vary: {open: {duration: [5ms, 6ms]}, at-most: 10}\n")
	_, err := (&Runner{}).Explain(t.Context(), x)
	if err == nil || !strings.Contains(err.Error(), "3 settings are 12 runs, more than 10") {
		t.Errorf("got %v", err)
	}
}

// TestExplain: a relevant choice is found, irrelevant choices are not counted for a
// target, and findings are confirmed with other seeds.
func TestExplain(t *testing.T) {
	leftToPlainRun(t)
	text := strings.Replace(varied, "seeds: 2", "seeds: 5", 1) + `
vary:
  design: factorial
  open: {set.d: [1, 2], transport.rdma.window: []}
`
	if _, err := spec.Load("t.yaml", []byte(text), nil, nil); err == nil {
		t.Error("an empty list of values was taken")
	}
	text = strings.Replace(text, ", transport.rdma.window: []", ", topology.leaf-spine.delay: [2us, 400us]", 1)
	dir := t.TempDir()
	s, err := (&Runner{Dir: dir}).Explain(t.Context(), load(t, text))
	if err != nil {
		t.Fatal(err)
	}
	// The file's, four alone, and eight of two choices with their mirror image; the
	// delay as it is in the file and ECMP with another d are known.
	if s.Settings != 13 || s.Runs >= 13*10 {
		t.Errorf("%d settings in %d runs", s.Settings, s.Runs)
	}
	var alone, among *Effect
	for i := range s.Effects {
		e := &s.Effects[i]
		switch {
		case e.Target.Figure != "fig2":
		case e.Choice == "topology.leaf-spine.delay: 400us":
			alone = e
		case e.Among && strings.HasPrefix(e.Choice, "topology"):
			among = e
		case e.Choice == "topology.leaf-spine.delay: 2us" && !math.IsNaN(e.P):
			t.Errorf("what the file says changes something: %+v", e)
		}
	}
	if alone == nil || among == nil || !(math.Abs(alone.Change.Mean) > 0) || alone.Change.Mean*among.Change.Mean < 0 {
		t.Errorf("alone %+v, among others %+v", alone, among)
	}
	again, err := (&Runner{Dir: dir, Resume: true}).Explain(t.Context(), load(t, text))
	if err != nil || strings.Join(again.Summary(), "\n") != strings.Join(s.Summary(), "\n") {
		t.Errorf("once more it is another result: %v", err)
	}
	if err := s.Keep(dir, "p4lb"); err != nil {
		t.Fatal(err)
	}
	for _, c := range s.Confirmed {
		if slices.ContainsFunc(c.Seeds, func(seed uint64) bool { return seed <= 5 }) {
			t.Errorf("%v were looked at before", c.Seeds)
		}
	}
}

// TestDesigns: in the factorial design each choice is at both ends as often, and as
// often with each end of any other; each step of Morris' changes one choice.
func TestDesigns(t *testing.T) {
	v := &spec.Vary{Design: spec.Factorial}
	for i := range 6 {
		v.Open = append(v.Open, spec.OpenChoice{Key: string(rune('a' + i)), Levels: []spec.Level{{Text: "1"}, {Text: "2"}, {Text: "3"}}})
	}
	runs := v.Together()
	sign := func(l int) int {
		if l == 0 {
			return -1
		}
		return 1
	}
	for a := range v.Open {
		sum := 0
		for _, r := range runs {
			sum += sign(r[a])
		}
		for b := range a {
			for c := range b + 1 {
				both, three := 0, 0
				for _, r := range runs {
					both += sign(r[a]) * sign(r[b])
					three += sign(r[a]) * sign(r[b]) * sign(r[c])
				}
				if both != 0 || c != b && three != 0 {
					t.Errorf("choices %d, %d and %d are mixed up", a, b, c)
				}
			}
		}
		if sum != 0 {
			t.Errorf("choice %d is more often at one end", a)
		}
	}
	v.Design = spec.Morris
	steps := 0
	for i, r := range v.Together() {
		if i%7 == 0 {
			continue
		}
		if _, ok := onlyStep(v.Together()[i-1], r); !ok {
			t.Errorf("%v is not one step from the setting before", r)
		}
		steps++
	}
	if steps != spec.Trajectories*6 {
		t.Errorf("%d steps", steps)
	}
}

// TestHolm: the example of Holm's correction: the least is multiplied by the number
// of looks, the next by one less, and none falls below the one before.
func TestHolm(t *testing.T) {
	got := holm([]float64{0.04, 0.01, math.NaN(), 0.03, 0.005})
	for i, want := range []float64{0.06, 0.03, math.NaN(), 0.06, 0.02} {
		if !(math.Abs(got[i]-want) <= 1e-12) && !(math.IsNaN(want) && math.IsNaN(got[i])) {
			t.Errorf("place %d: %g, want %g", i, got[i], want)
		}
	}
	e := newEstimate([]float64{1, 2, 3, 4, 5})
	// t = 3/(1.5811/sqrt 5) = 4.2426 with four degrees of freedom.
	if p := e.p(0); !(math.Abs(p-0.01324) <= 1e-4) {
		t.Errorf("p is %g", p)
	}
	if p := e.p(e.high()); !(math.Abs(p-0.05) <= 1e-9) {
		t.Errorf("at the end of the interval p is %g", p)
	}
}
