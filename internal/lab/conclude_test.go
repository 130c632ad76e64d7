package lab

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/p4lb/p4lb/internal/lab/spec"
)

var update = flag.Bool("update", false, "rewrite the page of metrics, and what runs came to")

// made returns a comparison with the given values of fct-mean by seed.
func made(rows map[string][]float64, order ...string) *Comparison {
	c := &Comparison{Experiment: &spec.Experiment{Metrics: []string{"fct-mean", "fct-p99"}, Cases: []spec.Case{{}}}, World: Sim}
	for _, label := range order {
		c.Experiment.Schemes = append(c.Experiment.Schemes, spec.Scheme{Label: label})
	}
	for i, label := range order {
		r := &Row{Case: &c.Experiment.Cases[0], Scheme: &c.Experiment.Schemes[i], Load: 0.7}
		for seed, v := range rows[label] {
			r.Runs = append(r.Runs, &Result{Label: label, Seed: uint64(seed + 1), Metrics: map[string]float64{"fct-mean": v, "fct-p99": 10 * v}, Programs: map[string]string{"leaf": label}})
		}
		c.Rows = append(c.Rows, r)
	}
	return c
}

func TestConclusion(t *testing.T) {
	c := made(map[string][]float64{
		"a": {10, 11, 10, 11}, "worse": {20, 22, 20, 22}, "better": {8, 8.8, 8, 8.8}, "near": {10, 12, 9.9, 11.5}, "same": {10, 11, 10, 11},
	}, "a", "worse", "better", "near", "same")
	want := []string{
		"fct-mean of a: 50 % less than worse (±0.0), 25 % more than better (±0.0) and level with same. No significant difference from near; about 22 seeds would be needed.",
	}
	if got := c.Conclusion(); strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("%q\nwant %q", got, want)
	}
	c = made(map[string][]float64{"a": {10, 11, 10, 11}, "near": {10, 12, 9.9, 11.5}}, "a", "near")
	if got := c.Conclusion(); len(got) != 1 || !strings.Contains(got[0], "No significant difference from near; about 22 seeds would be needed.") {
		t.Errorf("%q", got)
	}
	if f := c.findings(); len(f) != 1 || f[0].clear() || f[0].String() != "no significant difference (-2.9 ±6.8 %)" {
		t.Errorf("%v", f)
	}
	c = made(map[string][]float64{"a": {10}, "b": {11}}, "a", "b")
	if got := c.Conclusion(); len(got) != 1 || !strings.Contains(got[0], "One seed gives no confidence interval for b; use at least 5.") {
		t.Errorf("%q", got)
	}
	if got := made(map[string][]float64{"a": {10}}, "a").Conclusion(); got != nil {
		t.Errorf("%q", got)
	}
}

// TestNothingFinished: a row without any finished flow names where its packets were lost.
func TestNothingFinished(t *testing.T) {
	c := made(map[string][]float64{"mine": {1}, "ecmp": {1}}, "mine", "ecmp")
	r := c.Rows[0].Runs[0]
	r.Metrics["unfinished"], c.Rows[1].Runs[0].Metrics["unfinished"] = 100, 40
	r.Lost = map[string]int64{"consumed": 9000, "program": 1230, "queue full": 5}
	r.Alerts = []string{"nothing fills the table I.routes: every packet takes its default action"}
	lines := c.cautions()
	if want := "No flow finished with mine: 1,230 packets lost (program); nothing fills the table I.routes: every packet takes its default action."; len(lines) != 2 || lines[0] != want {
		t.Errorf("%q\nwant %q first", lines, want)
	}
	other := c.Rows[1].Runs[0]
	other.Lost = map[string]int64{"no round left": 1230}
	other.Alerts = []string{"a flow waits", "a packet of port 1 has no round left"}
	if lines := c.cautions(); lines[len(lines)-1] != "Packets loop in switches until no round is left, with ecmp (1,230 packets: a packet of port 1 has no round left)." {
		t.Errorf("%q", lines)
	}
	other.Lost, other.Alerts = nil, nil
	r.Lost, r.Alerts = nil, nil
	if lines := c.cautions(); lines[0] != "No flow finished with mine." {
		t.Errorf("%q", lines)
	}
}

// TestFewUnfinished: a row is named once more than 1 % of its flows have not finished.
func TestFewUnfinished(t *testing.T) {
	c := made(map[string][]float64{"mine": {1}, "ecmp": {1}}, "mine", "ecmp")
	for share, want := range map[float64]int{0: 0, 1: 0, 1.5: 1} {
		c.Rows[0].Runs[0].Metrics["unfinished"] = share
		if lines := c.cautions(); len(lines) != want {
			t.Errorf("%g %% unfinished: %q, want %d lines", share, lines, want)
		}
	}
}

// TestBrief: tables fit the width and contain the mandatory columns.
func TestBrief(t *testing.T) {
	c := made(map[string][]float64{"qall-poly3": {10, 11}, "drill": {20, 22}}, "qall-poly3", "drill")
	c.Experiment.Metrics = []string{"fct-mean", "fct-p99", "slowdown-mean", "reordered", "retransmitted", "queue-mean", "sharing"}
	for columns, want := range map[int]int{20: 3, 80: 4, 400: 9} {
		tables := c.Brief(columns)
		table := tables[0]
		if len(tables) != 1 {
			t.Errorf("%d columns of text: %d tables of metrics that nobody asked for", columns, len(tables))
		}
		if len(table[0]) != want {
			t.Errorf("%d columns of text: %q", columns, table[0])
		}
		for _, line := range table {
			n := 0
			for _, cell := range line {
				n += 2 + utf8.RuneCountInString(cell)
			}
			if len(line) != want || columns > 20 && n-2 > columns {
				t.Errorf("%d columns of text: %q", columns, line)
			}
		}
		if table[0][1] != "fct-mean (ms)" || table[0][want-1] != "qall-poly3 vs this scheme" || !strings.Contains(table[2][want-1], "50 % less than drill") {
			t.Errorf("%d columns of text: %q", columns, table)
		}
	}
}

// TestBriefOfOne: with a single row there is no comparison, so a narrow table has the first metric
// only.
func TestBriefOfOne(t *testing.T) {
	c := made(map[string][]float64{"ecmp": {10, 11}}, "ecmp")
	c.Experiment.Metrics = []string{"fct-mean", "fct-p99", "queue-mean"}
	if table := c.Brief(20)[0]; !slices.Equal(table[0], []string{"SCHEME", "fct-mean (ms)"}) {
		t.Errorf("the columns are %q", table[0])
	}
}

// TestBriefAsked: all metrics that an experiment asks for are shown.
func TestBriefAsked(t *testing.T) {
	c := made(map[string][]float64{"qall-poly3": {10, 11}, "drill": {20, 22}}, "qall-poly3", "drill")
	c.Experiment.Metrics = []string{"fct-mean", "fct-p99", "slowdown-mean", "reordered", "retransmitted", "queue-mean", "sharing"}
	c.Experiment.MetricsAsked = true
	var shown []string
	for _, table := range c.Brief(60) {
		if table[0][0] != "SCHEME" || table[1][0] != "qall-poly3" {
			t.Errorf("a table without its rows: %q", table)
		}
		width := 0
		for _, cell := range table[0] {
			width += 2 + utf8.RuneCountInString(cell)
		}
		if width-2 > 60 {
			t.Errorf("%d columns of text: %q", width-2, table[0])
		}
		for _, cell := range table[0][1:] {
			name, _, _ := strings.Cut(cell, " ")
			shown = append(shown, name)
		}
	}
	for _, m := range c.Experiment.Metrics {
		if !slices.Contains(shown, m) {
			t.Errorf("%s is not shown: %q", m, shown)
		}
	}
}

// TestOffer compares the load with the requested one.
func TestOffer(t *testing.T) {
	few := func(hosts int) string {
		return fmt.Sprintf("{leaf-spine: {leaves: 4, spines: 4, hosts: %d, rate: 1G, host-rate: 1G, delay: 1us, queue: 64}}", hosts)
	}
	for _, c := range []struct{ of, network, want string }{
		{spec.OfFabric, "leaf-spine", "Bottleneck: the fabric (offered load 60 % of the fabric, 15 % of the hosts). "},
		{spec.OfHosts, few(3), "Bottleneck: the hosts (offered load 60 % of the hosts, 45 % of the fabric), so load balancers differ little; use load-of: fabric. "},
		{spec.OfHosts, few(1), "Bottleneck: the hosts (offered load 60 % of the hosts, 15 % of the fabric), so load balancers differ little; use more or faster hosts, or slower links between switches. "},
		{spec.OfFabric, few(3), "Bottleneck: the hosts (offered load 80 % of the hosts, 60 % of the fabric), so load balancers differ little; use more or faster hosts, or slower links between switches. "},
	} {
		of, network, want := c.of, c.network, c.want
		x, err := spec.Load("x.yaml", []byte(fmt.Sprintf("topology: %s\nschemes: [ecmp]\ntraffic: [{workload: webserver, pattern: halves, load-of: %s}]\nloads: [0.6]\n", network, of)), nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		top, err := x.Cases[0].Network(spec.NoFiles)
		if err != nil {
			t.Fatal(err)
		}
		c := &Comparison{Experiment: x, World: Sim, Rows: []*Row{{Case: &x.Cases[0], Scheme: &x.Schemes[0], Load: 0.6, network: top}}}
		if got := c.limits(); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %q, want %q", of, got, want)
		}
		if o, ok := x.Cases[0].Offer(top, 0.6); !ok || o.Flows < 1000 || o.Flows > 1100 {
			t.Errorf("%s: %v gives %g flows", of, x.Cases[0].Duration, o.Flows)
		}
	}
}

// TestMetricsPage compares docs/metrics.md with the definitions.
func TestMetricsPage(t *testing.T) {
	const file = "docs/metrics.md"
	page := filepath.Join("../..", filepath.FromSlash(file))
	want := metricsPage()
	if *update {
		if err := os.WriteFile(page, want, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(page)
	if err != nil || string(got) != string(want) {
		t.Errorf("%s differs from the definitions (%v): go test ./internal/lab -run TestMetricsPage -update", file, err)
	}
}

// metricsPage returns docs/metrics.md, which defines the metrics.
func metricsPage() []byte {
	var b bytes.Buffer
	b.WriteString(`# Metrics

This page defines the metrics of p4lb lab and p4lb traffic. They are the columns of tables and of table.csv. Experiments name them in metrics and targets.

- A flow counts if it starts after the warm-up. A flow that has not finished at the end of the run counts with its time until then.
- Every figure is the mean over the seeds, with the half-width of its 95 % confidence interval by Student's t. Differences between schemes are paired by seed, because the runs of a seed have the same flows.
- Class metrics such as fct-mean:short cover one class of flows. The default classes are short (up to 100 kB), medium (up to 1 MB) and long.
- Metrics of jobs such as iteration-time:NAME cover one job.
- An uplink is a link from a leaf to a spine.

| metric | unit | by class | better | meaning |
|---|---|---|---|---|
`)
	for _, m := range spec.Metrics() {
		byClass, better := "", "less"
		if m.ByClass {
			byClass = "yes"
		}
		if m.Higher {
			better = "more"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", m.Name, m.Unit, byClass, better, m.About)
	}
	return b.Bytes()
}
