package lab

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/p4lb/p4lb/internal/lab/spec"
	"github.com/p4lb/p4lb/internal/text/lists"
)

// invented returns a comparison of an experiment with drawn results, without running it.
func invented(t *testing.T, text string) *Comparison {
	t.Helper()
	x := load(t, text)
	jobs, err := (&Runner{}).Jobs(x)
	if err != nil {
		t.Fatal(err)
	}
	var results []*Result
	for i, j := range jobs {
		rng := rand.New(rand.NewPCG(j.Seed, 7)) // the same flows for each row
		k := slices.IndexFunc(x.Schemes, func(s spec.Scheme) bool { return s.Label == j.Scheme.Label })
		row, own := []float64{1, 1.3, 1.03, 1.6}[k], rand.New(rand.NewPCG(j.Seed, uint64(100+k)))
		r := &Result{
			Experiment: x.Name, Case: j.Case.Name, Scheme: j.Scheme.Scheme, Label: j.Scheme.Label, Engine: j.Scheme.Engine, Load: j.Load, Seed: j.Seed, Spec: j.Key(),
			Programs: map[string]string{"leaf": fmt.Sprintf("%016x", 7*len(j.Scheme.Label)) + j.Scheme.Label, "spine": strings.Repeat("5", 20)}, Parameters: map[string]string{"d": fmt.Sprint(1 + len(j.Scheme.Label)), "tb": "3us"},
			Flows: 120 + i, Hops: int64(5000 * i), Elapsed: time.Duration(i) * time.Millisecond, Metrics: map[string]float64{},
			Lost: map[string]int64{"queue full": int64(i), "consumed": 99},
		}
		for k, m := range spec.AllMetrics(x.Classes, x.JobNames()) {
			noise := 0.05*rng.Float64() + 0.1*own.Float64()
			if k%7 != 6 || j.Seed != 2 { // some runs lack a metric
				r.Metrics[m.Key] = float64(1+k%13) * (row + noise + j.Load*float64(k%3))
			}
		}
		r.Metrics["unfinished"] = 0
		for q := range 101 {
			r.Plots.FCT = append(r.Plots.FCT, row*float64(q*q)/100)
			r.Plots.Slowdown = append(r.Plots.Slowdown, 1+row*float64(q)/50)
		}
		for k := range sizeBins {
			r.Plots.Sizes = append(r.Plots.Sizes, sizeBin{Flows: (k + 1) * 3 % 7, Slowdown: 1 + row*float64(k)})
		}
		for k := range 5 {
			r.Plots.Time, r.Plots.Queue = append(r.Plots.Time, float64(k)/1000), append(r.Plots.Queue, row*float64(k%3))
		}
		r.Plots.Names, r.Plots.Shares = []string{"l1-s1", "l1-s2"}, []float64{0.5 + 0.05*row, 0.5 - 0.05*row}
		if j.Case.Collective() {
			r.Plots.Tail = []float64{row, 2 * row, 3 * row}
			r.Plots.Steps = &Steps{Hosts: []string{"h1", "h2"}, Rank: []int{0, 1, 0}, Step: []int{0, 0, 1}, Start: []float64{0, 0.5, 1}, End: []float64{1, 1.5, 2 * row}}
			r.Plots.Uses = &Uses{Links: []string{"l1-s1", "l1-s2"}, To: []float64{1, 2}, Use: [][]float64{{0.1, 1}, {0.5, 0}}}
		}
		results = append(results, r)
	}
	return newComparison(x, jobs, results)
}

// outputs writes everything that a comparison says: tables, sentences, verdicts, checks,
// the report without its drawings, and the numbers of each drawing.
func outputs(t *testing.T, c *Comparison) string {
	t.Helper()
	var b strings.Builder
	head := func(name string) { fmt.Fprintf(&b, "-- %s --\n", name) }
	table := func(name string, list [][]string) {
		head(name)
		for _, line := range list {
			b.WriteString(strings.Join(line, " | ") + "\n")
		}
	}
	table("table", c.Table())
	for i, list := range c.Brief(60) {
		table(fmt.Sprint("brief ", i), list)
	}
	head("conclusion")
	b.WriteString(strings.Join(c.Conclusion(), "\n") + "\n")
	head("checks")
	for _, k := range append(c.Checks(), AsChecks(c.Judge())...) {
		fmt.Fprintf(&b, "%v: %s (%s)\n", k.Met, k.Name, k.Why)
	}
	head("verdicts")
	b.Write(c.Markdown("p4lb lab", 90*time.Second))
	missing, of := c.Missing()
	fmt.Fprintf(&b, "%d of %d runs are missing\n", missing, of)
	table("worlds", SideBySide([]*Comparison{c, c}))
	head("report")
	text, err := c.Report(Origin{Command: "p4lb lab x.yaml", Version: "1", Date: "today"})
	if err != nil {
		t.Fatal(err)
	}
	page := regexp.MustCompile(`(?s)<(script|style|svg).*?</(script|style|svg)>|<img[^>]*>|href="[^"]*"`).ReplaceAllString(string(text), "")
	static := lists.Map(regexp.MustCompile(`(?s)<[^>]*>|{{.*?}}`).Split(reportText, -1), strings.TrimSpace)
	for _, line := range regexp.MustCompile(`<[^>]*>`).Split(page, -1) {
		if line = strings.TrimSpace(line); !slices.Contains(static, line) {
			b.WriteString(line + "\n")
		}
	}
	for _, f := range c.Figures() {
		head(fmt.Sprintf("figure %s: %s. %s %+v %+v %s", f.Name, f.Title, f.About, f.X, f.Y, f.Note))
		for _, s := range f.Series {
			fmt.Fprintf(&b, "%s (%v, colour %d, marks %v, %v %v %v):", s.Label, s.Kind, s.Tint, s.Marks, s.To, s.Shade, s.Hints)
			for i := range min(len(s.X), 12) {
				fmt.Fprintf(&b, " %.5g:%.5g", s.X[i], s.Y[i])
				if s.Half != nil {
					fmt.Fprintf(&b, "±%.3g", s.Half[i])
				}
			}
			b.WriteString("\n")
		}
	}
	return b.String()
}

const inventedText = `name: invented
about: A comparison of drawn numbers.
paper: A Paper
topology: {leaf-spine: {leaves: 2, spines: 2, hosts: 4, rate: 1G, host-rate: 1G}}
parameters: default
schemes: [drill, ecmp, {scheme: letflow, label: my flowlets}]
`

// TestOutputs compares all outputs of invented results with their records.
func TestOutputs(t *testing.T) {
	for name, c := range map[string]*Comparison{
		"cases": invented(t, inventedText+`duration: 10ms
seeds: 4
loads: [0.4, 0.8]
metrics: [fct-mean, 'fct-p99:short', reordered, sharing, paths-used]
assumed: [all numbers are drawn, nothing runs]
scaled: fewer hosts
cases: [{name: plain}, {name: lossy, transport: dctcp, switches: {ecn: 20}}]
expect: ["fct-mean of drill < ecmp", "fct-mean < 1.1 * ecmp", "sharing of my flowlets >= 3", "reordered == 0"]
targets:
  - {figure: fig1, name: less than ECMP, case: plain, metric: fct-mean, of: drill, against: ecmp, printed: 15}
  - {figure: fig1, name: below, case: plain, metric: fct-mean, of: drill, against: my flowlets, below: true, load: 0.4}
  - {figure: fig2, name: ratio, case: lossy, metric: fct-mean, of: ecmp, against: drill, ratio: true, printed: 1.2, ours: true}
  - {figure: fig2, name: order, case: lossy, metric: fct-mean, order: [my flowlets, ecmp, drill]}
  - {figure: fig2, name: value, case: lossy, metric: sharing, of: drill, at-least: 1, at-most: 2}
  - {figure: fig3, name: apart, case: plain, metric: 'fct-p99:short', of: drill, against-case: lossy, printed: -5, open: the paper omits it}
  - {figure: fig3, name: other units, case: plain, metric: fct-mean, of: drill, printed: 3, not-comparable: other hosts}
`),
		"collective": invented(t, inventedText+`seeds: 3
traffic: [{collective: all-reduce, size: 1MB}]
transport: {kind: dcqcn}
switches: {pfc: true}
`),
		"job": invented(t, inventedText+`seeds: 2
jobs: [{name: a, ranks: 4, phases: [{compute: 1ms}, {collective: all-reduce, size: 1MB}]}, {name: b, ranks: 2, phases: [{collective: all-gather, size: 10KB}]}]
`),
		"gaps": func() *Comparison { // interrupted, with unfinished flows and packets that loop
			c := invented(t, strings.Replace(inventedText, "schemes: [", "schemes: [ecmp@tna, ", 1)+"duration: 10ms\nseeds: 3\nloads: [0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8]\nfaults: [{at: 1ms, link: l1-s1, down: true}]\n")
			for i, r := range c.Results {
				switch {
				case i%12 == 11:
					c.Results[i] = nil
				case r.Label == "ecmp":
					r.Metrics["unfinished"] = float64(i)
					r.Metrics[pathsUsed] = 50
				case r.Label == "drill":
					r.Lost["no round left"] = 70
					r.Alerts = []string{"a packet of port 1 has no round left"}
				}
			}
			for _, row := range c.Rows {
				row.Runs = lists.Filter(row.Runs, func(r *Result) bool { return slices.Contains(c.Results, r) })
			}
			c.World = BMv2
			c.Warnings = []spec.Warning{{Rule: "few-seeds", Text: "more seeds"}, {Rule: "overload", Text: "less load", Reason: "it is a test"}}
			return c
		}(),
	} {
		if c.World == "" {
			c.World = Sim
		}
		recordedText(t, name, outputs(t, c))
	}
}

// recordedText compares a text with its record in testdata/outputs.
func recordedText(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", "outputs", name+".txt")
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	a, b := strings.Split(got, "\n"), strings.Split(string(want), "\n")
	for i := range max(len(a), len(b)) {
		if i >= len(a) || i >= len(b) || a[i] != b[i] {
			t.Errorf("%s:%d: got\n%q, want\n%q (go test ./internal/lab -run %s -update rewrites it)", file, i+1, a[i:min(len(a), i+1)], b[i:min(len(b), i+1)], t.Name())
			return
		}
	}
}

// TestSensitivity compares all outputs of invented effects of choices with their records.
func TestSensitivity(t *testing.T) {
	targets := []spec.Target{{Figure: "fig1", Name: "saves", Of: "drill", Against: "ecmp"}, {Figure: "fig1", Name: "value", Of: "drill"}, {Figure: "fig2", Name: "order", Order: []string{"drill", "ecmp"}}}
	e := func(mean, half float64) Estimate { return Estimate{Mean: mean, Half: half, N: 5} }
	s := &Sensitivity{Experiment: &spec.Experiment{Name: "invented"}, Settings: 9, Runs: 90, Seeds: spec.Seeds{1, 2, 3, 5, 6, 9, 11, 12, 13, 14}}
	for i := range targets {
		s.Base = append(s.Base, Outcome{Target: &targets[i], Verdict: []Verdict{otherSize, Within, contrary}[i], Measured: fmt.Sprint(i)})
	}
	add := func(target int, choice string, among bool, value, change Estimate, spread, p float64, verdict Verdict) {
		s.Effects = append(s.Effects, Effect{
			Target: &targets[target], Choice: choice, Among: among, Value: value, Change: change, Spread: spread, P: p, Verdict: verdict, fileVerdict: s.Base[target].Verdict,
		})
	}
	add(0, "ecn: 20", false, e(30, 2), e(5, 1), 0, 0.0004, Within)
	add(0, "ecn: 40", false, e(20, 2), e(-9, 1), 0, 0.001, Within)
	add(0, "ecn: 80", false, e(20, 2), e(-1, 1), 0, 0.3, Within)
	add(0, "ecn", true, e(20, 2), e(-3, 1), 0, 0.02, otherSize)
	add(0, "queue", true, e(20, 2), e(2, 1), 1.5, 0.02, otherSize)
	add(1, "ecn: 20", false, e(30, 2), e(5, 1), 0, 0.02, otherSize)
	add(1, "ecn: 40", false, e(5, 2), e(5, 1), 0, math.NaN(), Within)
	add(2, "ecn: 20", false, e(30, 2), e(math.NaN(), 1), 0, math.NaN(), contrary)
	s.Confirmed = []Confirmation{{&targets[0], "ecn: 40", Outcome{Measured: "21 %", Verdict: Within}, spec.Seeds{20}}}
	var b strings.Builder
	b.Write(s.Markdown("p4lb lab explain"))
	f := s.figure()
	fmt.Fprintf(&b, "%s %+v %+v\n%s", f.Title, f.X, f.Y, f.CSV())
	dir := t.TempDir()
	if err := s.Keep(dir, "p4lb lab explain"); err != nil {
		t.Fatal(err)
	}
	table, err := os.ReadFile(filepath.Join(dir, "sensitivity.csv"))
	if err != nil {
		t.Fatal(err)
	}
	b.Write(table)
	recordedText(t, "sensitivity", b.String())
	for _, c := range []struct {
		changes      [][]float64
		mean, spread float64
	}{
		{nil, math.NaN(), 0}, {[][]float64{{1, 3}}, 2, 0}, {[][]float64{{1, 3}, {5, 7}}, 4, 2},
	} {
		if got, spread := pooled(c.changes); got.Mean != c.mean && !math.IsNaN(c.mean) || spread != c.spread {
			t.Errorf("%v: %v with a spread of %g, want %g with %g", c.changes, got, spread, c.mean, c.spread)
		}
	}
	for _, c := range []struct {
		a, b []int
		step int
		ok   bool
	}{{[]int{0, 1, 2}, []int{0, 1, 2}, 0, false}, {[]int{0, 1, 2}, []int{0, 3, 2}, 1, true}, {[]int{0, 1, 2}, []int{0, 3, 1}, 2, false}} {
		if step, ok := onlyStep(c.a, c.b); step != c.step || ok != c.ok {
			t.Errorf("%v to %v: step %d, %v", c.a, c.b, step, ok)
		}
	}
}
