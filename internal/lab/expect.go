package lab

import (
	"encoding/xml"
	"fmt"
	"math"
	"time"

	"github.com/p4lb/p4lb/internal/lab/spec"
)

// A Check is an expectation of an experiment, applied to a row.
type Check struct {
	Name string // the expectation with row, case and load
	Met  bool
	Why  string // the measured values
}

// Checks compares the rows with the expectations of the experiment. An expectation is
// met if the whole 95 % confidence interval of the difference meets it. An interval
// that contains the threshold is a failure, because more seeds could show either.
// Values that are equal in all runs need no interval.
func (c *Comparison) Checks() []Check {
	var list []Check
	for _, e := range c.Experiment.Expectations() {
		n := len(list)
		for _, r := range c.Rows {
			if len(r.Runs) > 0 && (e.Of == "" || e.Of == r.Scheme.Label) && e.Times != r.Scheme.Label {
				list = append(list, c.check(e, r))
			}
		}
		if len(list) == n {
			list = append(list, Check{Name: e.Text, Why: "no run measured it"})
		}
	}
	return list
}

func (c *Comparison) check(e spec.Expectation, r *Row) Check {
	k := Check{Name: e.Text}
	if e.Of == "" {
		k.Name += ", " + r.Scheme.Label
	}
	if where := c.where(finding{Case: r.Case.Name, Load: r.Load}); where != "" {
		k.Name = where + k.Name
	}
	rows, values := []*Row{r}, r.values(e.Metric)
	threshold := e.Value
	if e.Times != "" {
		other := c.Row(r.Case.Name, e.Times, r.Load)
		if other == nil || len(other.Runs) == 0 {
			k.Why = e.Times + " has not run"
			return k
		}
		if err := r.comparable(other); err != nil {
			k.Why = err.Error()
			return k
		}
		rows = append(rows, other)
		for i, v := range other.values(e.Metric) {
			values[i] /= v
		}
	}
	if why := undecidable(e.Metric, rows...); why != "" {
		k.Why = why
		return k
	}
	got := newEstimate(values)
	if math.IsNaN(got.Mean) {
		k.Why = "no run measured it"
		return k
	}
	k.Met = holds(e.Op, got, threshold)
	k.Why = fmt.Sprintf("measured %s", got)
	if e.Times != "" {
		k.Why += " * " + e.Times
	}
	if !k.Met && holds(e.Op, Estimate{Mean: got.Mean, N: got.N}, threshold) {
		k.Why += "; the 95 % interval contains the threshold, " + seedsNeeded(got.seeds(threshold))
	}
	return k
}

// holds reports whether the whole interval satisfies a comparison with the
// threshold.
func holds(op string, e Estimate, threshold float64) bool {
	switch op {
	case "<":
		return e.high() < threshold
	case "<=":
		return e.high() <= threshold
	case ">":
		return e.low() > threshold
	case ">=":
		return e.low() >= threshold
	}
	return e.Mean == threshold && e.Half == 0
}

// JUnit returns checks and verdicts as JUnit XML, which CI systems read: a suite for
// each experiment.
func JUnit(suites []JUnitSuite) ([]byte, error) {
	type failure struct {
		Message string `xml:"message,attr"`
	}
	type testcase struct {
		Name    string   `xml:"name,attr"`
		Class   string   `xml:"classname,attr"`
		Failure *failure `xml:"failure,omitempty"`
	}
	type suite struct {
		Name     string     `xml:"name,attr"`
		Tests    int        `xml:"tests,attr"`
		Failures int        `xml:"failures,attr"`
		Time     string     `xml:"time,attr"`
		Cases    []testcase `xml:"testcase"`
	}
	file := struct {
		XMLName xml.Name `xml:"testsuites"`
		Suites  []suite  `xml:"testsuite"`
	}{}
	for _, s := range suites {
		out := suite{Name: s.Experiment, Tests: len(s.Checks), Time: fmt.Sprintf("%.3f", s.Took.Seconds())}
		for _, k := range s.Checks {
			t := testcase{Name: k.Name, Class: s.Experiment}
			if !k.Met {
				out.Failures++
				t.Failure = &failure{k.Why}
			}
			out.Cases = append(out.Cases, t)
		}
		file.Suites = append(file.Suites, out)
	}
	text, err := xml.MarshalIndent(file, "", "  ")
	return append([]byte(xml.Header), append(text, '\n')...), err
}

// A JUnitSuite contains the checks of an experiment.
type JUnitSuite struct {
	Experiment string
	Checks     []Check
	Took       time.Duration
}

// AsChecks returns the verdicts on targets as checks. Targets that are neither within
// their band nor in order fail.
func AsChecks(outcomes []Outcome) []Check {
	var list []Check
	for _, o := range outcomes {
		k := Check{Name: o.Figure + ": " + o.Name, Met: good(o.Verdict), Why: fmt.Sprintf("%s: printed %s, measured %s", o.Verdict, o.Printed, o.Measured)}
		list = append(list, k)
	}
	return list
}
