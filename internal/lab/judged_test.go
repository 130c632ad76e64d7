package lab

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/p4lb/p4lb/internal/lab/spec"
)

// A target that no ceiling reaches is out of reach, if the interval of the best ceiling
// excludes the printed number.
func TestCeilingByHand(t *testing.T) {
	v := func(x float64) *float64 { return &x }
	c := made(map[string][]float64{"a": {90, 90, 90}, "b": {100, 100, 100}}, "a", "b")
	c.Experiment.Ceiling = []string{spec.NoPauses, spec.FastCore, spec.Oracle}
	add := func(kind, label string, values ...float64) *Row {
		r := &Row{Case: &spec.Case{Name: spec.CeilingName("", kind)}, Scheme: &spec.Scheme{Label: label}, Load: 0.7}
		for i, x := range values {
			r.Runs = append(r.Runs, &Result{Label: label, Seed: uint64(i + 1), Metrics: map[string]float64{"fct-mean": x}})
		}
		c.Rows = append(c.Rows, r)
		return r
	}
	target := &spec.Target{Metric: "fct-mean", Of: "a", Against: "b", Printed: v(40)}
	judge := func(o Outcome, t *spec.Target) Outcome {
		c.applyCeilings(t, &o)
		return o
	}
	open := Outcome{Verdict: otherSize, Load: 0.7}
	if o := judge(open, target); o.Verdict != otherSize || o.Note != "" {
		t.Errorf("without ceilings: %+v", o)
	}
	add(spec.NoPauses, "b", 80, 80, 80)
	best := add(spec.FastCore, "b", 70, 70, 70)
	if o := judge(open, target); o.Verdict != outOfReach || o.Note != "the best ceiling, fast-core, saves 30.0 ±0 %" {
		t.Errorf("30 %% at most: %+v", o)
	}
	oracle := add(spec.Oracle, spec.OracleRow, 65, 65, 65)
	if o := judge(open, target); o.Verdict != outOfReach || o.Note != "the best ceiling, oracle, saves 35.0 ±0 %" {
		t.Errorf("35 %% at most: %+v", o)
	}
	for name, o := range map[string]Outcome{
		"met": judge(Outcome{Verdict: Within, Load: 0.7}, target), "no load": judge(Outcome{Verdict: otherSize}, target),
		"in reach": judge(open, &spec.Target{Metric: "fct-mean", Of: "a", Against: "b", Printed: v(35)}), "no number": judge(open, &spec.Target{Metric: "fct-mean", Of: "a", Against: "b", AtLeast: v(90)}),
		"a ratio": judge(open, &spec.Target{Metric: "fct-mean", Of: "a", Against: "b", Printed: v(90), Ratio: true}), "a value": judge(open, &spec.Target{Metric: "fct-mean", Of: "a", Printed: v(90)}),
	} {
		if o.Verdict == outOfReach || o.Note != "" {
			t.Errorf("%s: %+v", name, o)
		}
	}
	oracle.Runs, best.Runs = oracle.Runs[:1], best.Runs[:2]
	if o := judge(open, target); o.Note != "the best ceiling, no-pauses, saves 20.0 ±0 %" {
		t.Errorf("ceilings with missing runs: %+v", o)
	}
}

// Targets that cannot be judged state why.
func TestNotesOfMissing(t *testing.T) {
	runs := map[string][]float64{"drill": {10, 20, 30, 10, 20, 30}, "ecmp": {10, 20, 30, 20, 40}}
	got := judged(t, `
 - {name: a, metric: fct-mean, order: [drill, rps]}
 - {name: b, metric: fct-mean, of: rps, printed: 5}
 - {name: c, metric: fct-p99, of: drill, printed: 5}
 - {name: d, metric: fct-mean, of: drill, against: ecmp, printed: 5, load: 0.9}
 - {name: e, metric: fct-mean, of: drill, against: rps, printed: 5}
 - {name: f, metric: fct-mean, of: drill, against: ecmp, printed: 1, upto: true}
`, runs)
	for i, want := range []string{
		"rps has not run", "rps has not run", "there was nothing to measure", "drill has 3 runs and ecmp 2: rows with other seeds cannot be compared",
		"drill has 3 runs and rps 0: rows with other seeds cannot be compared", "the same in all runs",
	} {
		if got[i].Note != want || (got[i].Verdict == Unknown) != (i < 5) || i < 5 && got[i].Measured != "" {
			t.Errorf("%s: %s, %q of %s, want %q", got[i].Name, got[i].Verdict, got[i].Note, got[i].Measured, want)
		}
	}
	if got[5].Load != 0.5 || got[5].Printed != "up to 1.00 %" {
		t.Errorf("%s at load %g", got[5].Printed, got[5].Load)
	}
}

// "Up to" is judged at the load with the largest reduction, whichever it is.
func TestBestOfLoads(t *testing.T) {
	for want, runs := range map[float64]map[string][]float64{
		0.5: {"drill": {10, 10, 10, 10, 10, 10}, "ecmp": {30, 30, 30, 20, 20, 20}},
		0.9: {"drill": {10, 10, 10, 10, 10, 10}, "ecmp": {20, 20, 20, 30, 30, 30}},
	} {
		o := judged(t, " - {name: a, metric: fct-mean, of: drill, against: ecmp, printed: 66, upto: true}", runs)[0]
		if o.Load != want || o.Verdict != Within || o.Measured != "66.7 ±0 %" {
			t.Errorf("%s of %s at load %g, want %g", o.Verdict, o.Measured, o.Load, want)
		}
	}
}

// TestReportTable: a report shows the comparison before the metrics, and defines these.
// Keep writes each figure in four formats, and the table.
func TestReportTable(t *testing.T) {
	x := load(t, tiny)
	jobs, err := (&Runner{}).Jobs(x)
	if err != nil {
		t.Fatal(err)
	}
	results := make([]*Result, len(jobs))
	for i, j := range jobs[:len(jobs)-1] {
		results[i] = &Result{Label: j.Scheme.Label, Seed: j.Seed, Metrics: map[string]float64{"fct-mean": float64(10 + i), "reordered": 1}, Programs: map[string]string{"leaf": strings.Repeat(fmt.Sprint(i/2), 16)}, Parameters: map[string]string{"d": "7"}}
	}
	c := newComparison(x, jobs, results)
	c.World = Sim
	text, err := c.Report(Origin{Command: "p4lb lab t.yaml", Version: "v1", Date: "today"})
	if err != nil {
		t.Fatal(err)
	}
	page := string(text)
	heads := regexp.MustCompile(`<th(?: title="([^"]*)")?>([^<]*)</th>`).FindAllStringSubmatch(page, 7)
	for i, want := range []string{"SCHEME", "qall-poly3 vs this scheme", "fct-mean (ms)", "fct-p99 (ms)", "reordered (%)", "queue-mean (%)", "sharing (%)"} {
		if heads[i][2] != want || (heads[i][1] != "") != (i > 1) {
			t.Errorf("column %d is %q, defined as %q, want %s", i, heads[i][2], heads[i][1], want)
		}
	}
	for _, want := range []string{
		"1 of 6 runs are missing", `<tr><td class="words">ecmp</td><td class="words">`, "<td>12.5 ±", "<pre>p4lb lab t.yaml</pre>", "Generated by p4lb v1, today.", "start it with <code>p4lb play</code>", "<td>drill</td><td>d</td><td>7</td><td>2</td>",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("no %q", want)
		}
	}
	if text, err = c.Report(Origin{Playground: "https://play.example/"}); err != nil || strings.Contains(string(text), "start it with") || !strings.Contains(string(text), `href="https://play.example/`) || strings.Contains(string(text), "Generated by") {
		t.Errorf("with a playground: %v", err)
	}
	dir := t.TempDir()
	name, err := c.Keep(dir, Origin{})
	if err != nil || name != filepath.Join(dir, reportFile) {
		t.Fatal(name, err)
	}
	for _, f := range c.Figures() {
		for format, start := range map[string]string{".svg": "<svg", ".pdf": "%PDF", ".csv": "series,", ".tex": "%"} {
			text, err := os.ReadFile(filepath.Join(dir, "plots", f.Name+format))
			if err != nil || !strings.HasPrefix(string(text), start) {
				t.Errorf("%s%s: %v, %.20q", f.Name, format, err, text)
			}
		}
	}
	if text, err := os.ReadFile(filepath.Join(dir, "table.csv")); err != nil || string(text) != string(c.csv()) {
		t.Errorf("table.csv: %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Keep(filepath.Join(dir, "file"), Origin{}); err == nil || !strings.HasPrefix(err.Error(), "making ") {
		t.Errorf("in a file: %v", err)
	}
}

// The number of failed links is drawn for cases that differ in nothing else.
func TestChartOfFailures(t *testing.T) {
	c := swept([]string{"whole", "one", "other", "two"}, 0.3)
	for i, fail := range []string{"", "fail: [l1-s1]", "", "fail: [l1-s1, l2-s2]"} {
		_, c.Rows[2*i].network = loaded(t, 1000, 1000, fail)
		c.Rows[2*i+1].network = c.Rows[2*i].network
		c.Rows[2*i].Runs[0].Metrics["fct-mean"] += float64(2 * i)
	}
	c.Rows[4].Case.Duration = 7
	f := c.drawFailed()
	if len(f.Series) != 2 || f.Name != "failed" || f.Series[0].Label != "a" || f.Series[1].Tint != 1 || fmt.Sprint(f.Series[0].X, f.Series[0].Y, f.Series[1].Y) != "[0 1 2] [10 11 13] [20 20 20]" || len(f.Series[0].Half) != 3 {
		t.Errorf("%+v", f)
	}
	for _, r := range c.Rows {
		r.network = nil
	}
	if c.drawFailed() != nil {
		t.Error("cases without networks have a chart")
	}
	c = swept([]string{"whole", "other"}, 0.3)
	for _, r := range c.Rows {
		_, r.network = loaded(t, 1000, 1000, "")
	}
	c.Rows[2].Case.Duration = 7
	if c.drawFailed() != nil {
		t.Error("single cases have a chart")
	}
}
