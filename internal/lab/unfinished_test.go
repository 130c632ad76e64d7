package lab

import (
	"strings"
	"testing"

	"github.com/p4lb/p4lb/internal/lab/spec"
)

// TestUnfinished: flows that do not end are in every table, mark the completion
// times, and above one percent leave no verdict.
func TestUnfinished(t *testing.T) {
	c := made(map[string][]float64{"a": {10, 11, 10}, "few": {20, 22, 20}, "dead": {300, 310, 290}}, "a", "few", "dead")
	share := map[string]float64{"a": 0, "few": 0.5, "dead": 100}
	for _, r := range c.Rows {
		for _, run := range r.Runs {
			run.Metrics["unfinished"] = share[r.Scheme.Label]
		}
	}
	want := [][]string{
		{"SCHEME", "fct-mean (ms)", "fct-p99 (ms)", "unfinished (%)", "a vs this scheme"},
		{"a", "10.3 ±1.43", "103 ±14.3", "0 ±0", ""},
		{"few", "≥ 20.7 ±2.87", "≥ 207 ±28.7", "0.500 ±0", "50 % less than few (±0.0)"},
		{"dead", "≥ 300 ±24.8", "≥ 3000 ±248", "100 ±0", "no verdict: 100 % of the flows of dead unfinished"},
	}
	for i, line := range c.Table() {
		if strings.Join(line, " | ") != strings.Join(want[i], " | ") {
			t.Errorf("%q\nwant %q", line, want[i])
		}
	}
	text := strings.Join(c.Conclusion(), "\n")
	if !strings.Contains(text, "No verdict: more than 1 % of the flows did not finish with dead (100 %)") || strings.Contains(text, "less than dead") {
		t.Error(text)
	}
	for _, table := range c.Brief(30) { // of which the metrics take more
		if head := strings.Join(table[0], " "); !strings.Contains(head, "unfinished (%)") {
			t.Error(head)
		}
	}
	c.Experiment.Targets = []spec.Target{
		{Name: "printed", Metric: "fct-mean", Of: "a", Against: "dead", Printed: new(float64(96.5))},
		{Name: "order", Metric: "fct-mean", Order: []string{"a", "dead"}},
		{Name: "beside", Metric: "fct-mean", Of: "a", Against: "few", Printed: new(float64(50))},
	}
	for i, want := range []Verdict{Unknown, Unknown, Within} {
		if o := c.Judge()[i]; o.Verdict != want || want == Unknown && o.Note != "100 % of the flows of dead unfinished" {
			t.Errorf("%s: %s (%s), want %s", o.Name, o.Verdict, o.Note, want)
		}
	}
}

// TestDropAll: a program that drops everything does not get a score.
func TestDropAll(t *testing.T) {
	x, err := spec.Load("x.yaml", []byte(`
topology: {leaf-spine: {leaves: 2, spines: 2, hosts: 2, rate: 1G, host-rate: 1G}}
schemes: [ecmp, drill]
engine: native
traffic: [{workload: webserver}]
faults: [{at: 0s, switch: s1, drop: 1}, {at: 0s, switch: s2, drop: 1}]
duration: 5ms
drain: 5ms
seeds: 2
`), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	table := run(t, &Runner{}, x).Table()
	for _, line := range table[1:] {
		if !strings.HasPrefix(line[1], "≥ ") {
			t.Errorf("%q", line)
		}
	}
	if last := table[2][len(table[2])-1]; !strings.HasPrefix(last, "no verdict: 100 % of the flows") {
		t.Errorf("%q", last)
	}
}

// TestSinglePath: a program that sends along one of several paths is named, and its
// share of the paths is in the table.
func TestSinglePath(t *testing.T) {
	const text = `
topology: {leaf-spine: {leaves: 2, spines: 4, hosts: 4, rate: 250Mbps, host-rate: 1G}}
schemes: [rps, {scheme: wcmp, label: stuck}]
parameters: default
engine: native
traffic: [{workload: webserver}]
fail: [%s]
duration: 40ms
seeds: 2
`
	x, err := spec.Load("x.yaml", []byte(strings.Replace(text, "%s", "", 1)), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	c := run(t, &Runner{}, x)
	for _, r := range c.Rows {
		if used := r.Estimate("paths-used").Mean; used != 100 || r.singlePath() {
			t.Errorf("%s uses %g %% of the paths", r.Scheme.Label, used)
		}
	}
	// The result as if all flows had taken the first path.
	for _, run := range c.Rows[1].Runs {
		run.Metrics["paths-used"], run.Flows = 25, 40
	}
	if head := strings.Join(c.Table()[0], " "); !strings.Contains(head, "paths-used (%)") {
		t.Error(head)
	}
	if text := strings.Join(c.Conclusion(), "\n"); !strings.Contains(text, "One path only: stuck (1 of 4).") {
		t.Error(text)
	}
}
