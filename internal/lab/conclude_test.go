package lab

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/p4lb/p4lb/internal/lab/spec"
)

var update = flag.Bool("update", false, "rewrite the page of metrics, and what runs came to")

// made is a comparison of rows that were measured by hand: fct-mean by seed.
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
		"fct-mean of a is 50 % less than worse (±0.0), 25 % more than better (±0.0) and level with same; against near nothing can be said: the intervals overlap; some 22 seeds would tell",
	}
	if got := c.Conclusion(); strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("%q\nwant %q", got, want)
	}
	c = made(map[string][]float64{"a": {10, 11, 10, 11}, "near": {10, 12, 9.9, 11.5}}, "a", "near")
	if got := c.Conclusion(); len(got) != 1 || !strings.Contains(got[0], "the intervals overlap; some 22 seeds would tell") {
		t.Errorf("%q", got)
	}
	if f := c.Findings(); len(f) != 1 || f[0].clear() || f[0].String() != "no clear difference (-2.9 ±6.8 %)" {
		t.Errorf("%v", f)
	}
	c = made(map[string][]float64{"a": {10}, "b": {11}}, "a", "b")
	if got := c.Conclusion(); len(got) != 1 || !strings.Contains(got[0], "one seed tells nothing of chance") {
		t.Errorf("%q", got)
	}
	if got := made(map[string][]float64{"a": {10}}, "a").Conclusion(); got != nil {
		t.Errorf("%q", got)
	}
}

// TestBrief wants tables to fit, and what has to be in them always.
func TestBrief(t *testing.T) {
	c := made(map[string][]float64{"qall-poly3": {10, 11}, "drill": {20, 22}}, "qall-poly3", "drill")
	c.Experiment.Metrics = []string{"fct-mean", "fct-p99", "slowdown-mean", "reordered", "retransmitted", "queue-mean", "sharing"}
	for columns, want := range map[int]int{20: 3, 80: 4, 400: 9} {
		table := c.Brief(columns)
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
		if table[0][1] != "fct-mean (ms)" || table[0][want-1] != "fct-mean OF qall-poly3" || !strings.Contains(table[2][want-1], "50 % less than drill") {
			t.Errorf("%d columns of text: %q", columns, table)
		}
	}
}

// TestOffer holds the load against what it was asked to be.
func TestOffer(t *testing.T) {
	few := func(hosts int) string {
		return fmt.Sprintf("{leaf-spine: {leaves: 4, spines: 4, hosts: %d, rate: 1G, host-rate: 1G, delay: 1us, queue: 64}}", hosts)
	}
	for _, c := range []struct{ of, network, want string }{
		{spec.OfFabric, "leaf-spine", "; the fabric limits, of whose links they ask 60 %, and 15 % of the hosts'"},
		{spec.OfHosts, few(3), "; the hosts limit, of whose links they ask 60 %, and 45 % of the fabric's: a balancer cannot change much, try load-of fabric"},
		{spec.OfHosts, few(1), "; the hosts limit, of whose links they ask 60 %, and 15 % of the fabric's: a balancer cannot change much, the network wants more or faster hosts, or less above them"},
		{spec.OfFabric, few(3), "; the hosts limit, of whose links they ask 80 %, and 60 % of the fabric's: a balancer cannot change much, the network wants more or faster hosts, or less above them"},
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
		if got := c.limits(); !strings.HasSuffix(got, want) {
			t.Errorf("%s: %q, want %q", of, got, want)
		}
		if o, ok := x.Cases[0].Offer(top, 0.6); !ok || o.Flows < 1000 || o.Flows > 1100 {
			t.Errorf("%s: %v gives %g flows", of, x.Cases[0].Duration, o.Flows)
		}
	}
}

// TestMetricsPage holds docs/metrics.md against the definitions.
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

// metricsPage is docs/metrics.md: what each number of a table means.
func metricsPage() []byte {
	var b bytes.Buffer
	b.WriteString(`# Metrics

What p4lb lab and p4lb traffic measure: the columns of tables, of table.csv, and what experiments name in metrics and targets.
A flow counts if it begins after the warm-up; one that had not ended when the run did counts with the time until then.
Every number is the mean over the seeds, with the half-width of its 95 % confidence interval by Student's t; a difference between schemes is paired by seed, since the runs of a seed have the same flows.
The classes are short (up to 100 kB), medium (up to 1 MB) and long, unless the experiment has its own: fct-mean:short is the metric of one class.
"Upwards" is from leaves to spines.

| metric | unit | by class | better | what it is |
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
