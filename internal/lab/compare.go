package lab

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/p4lb/p4lb/internal/lab/spec"
	"github.com/p4lb/p4lb/internal/network/fabric"
	"github.com/p4lb/p4lb/internal/text/lists"
)

// A Comparison holds the results of an experiment by row.
type Comparison struct {
	Experiment *spec.Experiment
	Results    []*Result // by job; nil: the job has not run
	Rows       []*Row
	World      string // the world of the runs: see Worlds
	Warnings   []spec.Warning

	// With a store: the numbers of runs executed now, of runs taken from the store,
	// and of runs left to other workers.
	Made, Taken, Left int
}

// A Row is a scheme in a case at a load, with a run for each seed.
type Row struct {
	Case   *spec.Case
	Scheme *spec.Scheme
	Load   float64
	Runs   []*Result // finished runs, by seed

	network *fabric.Topology // topology with the names in the experiment
}

// errUnseeded is wrapped by the error about comparing rows that had different
// flows.
var errUnseeded = errors.New("rows with other seeds cannot be compared")

func newComparison(x *spec.Experiment, jobs []*Job, results []*Result) *Comparison {
	c := &Comparison{Experiment: x, Results: results}
	var row *Row
	for i, j := range jobs {
		if row == nil || row.Case != j.Case || row.Scheme != j.Scheme || row.Load != j.Load {
			row = &Row{Case: j.Case, Scheme: j.Scheme, Load: j.Load}
			if j.setup != nil {
				row.network = j.setup.named
			}
			c.Rows = append(c.Rows, row)
		}
		if results[i] != nil {
			row.Runs = append(row.Runs, results[i])
		}
	}
	return c
}

// Row returns the row with a label in a case, at a load.
func (c *Comparison) Row(caseName, label string, load float64) *Row {
	return lists.First(c.Rows, func(r *Row) bool { return r.Case.Name == caseName && r.Scheme.Label == label && r.Load == load })
}

// values returns a metric of the row by seed. It is NaN for runs without the metric.
func (r *Row) values(metric string) []float64 {
	var list []float64
	for _, run := range r.Runs {
		v, ok := run.Metrics[metric]
		if !ok {
			v = math.NaN()
		}
		list = append(list, v)
	}
	return list
}

// Estimate estimates a metric of the row, with its confidence interval.
func (r *Row) Estimate(metric string) Estimate { return newEstimate(r.values(metric)) }

// against estimates the percentage by which a metric of the row is below the other row's. Both
// rows must have the same seeds and run different programs.
func (r *Row) against(other *Row, metric string) (Estimate, error) {
	if err := r.comparable(other); err != nil {
		return Estimate{}, err
	}
	return reduction(r.values(metric), other.values(metric)), nil
}

// comparable returns an error if the rows cannot be compared.
func (r *Row) comparable(other *Row) error {
	if len(r.Runs) != len(other.Runs) || len(r.Runs) == 0 {
		return fmt.Errorf("%s has %d runs and %s %d: %w", r.Scheme.Label, len(r.Runs), other.Scheme.Label, len(other.Runs), errUnseeded)
	}
	for i, a := range r.Runs {
		b := other.Runs[i]
		if a.Seed != b.Seed || a.Seed == 0 {
			return fmt.Errorf("%s with seed %d, %s with seed %d: %w", a.Label, a.Seed, b.Label, b.Seed, errUnseeded)
		}
		if r.Case == other.Case && r.Scheme.Candidates == other.Scheme.Candidates && a.Engine == b.Engine && maps.Equal(a.Programs, b.Programs) && maps.Equal(a.Parameters, b.Parameters) {
			return fmt.Errorf("%s and %s: %w", a.Label, b.Label, ErrSame)
		}
	}
	return nil
}

// Table returns a line for each scheme in each case and at each load. A line
// contains the metrics, and the comparison with the first scheme.
func (c *Comparison) Table() [][]string {
	x, head := c.Experiment, c.lead("CASE", "LOAD", "SCHEME")
	shown := slices.Concat(x.Metrics, c.extra())
	for _, name := range shown {
		m, _ := x.Metric(name)
		head = append(head, m.Label())
	}
	if len(x.Schemes) > 1 {
		head = append(head, x.Schemes[0].Label+" vs this scheme")
	}
	table := [][]string{head}
	for _, r := range c.Rows {
		if len(r.Runs) == 0 {
			continue // the experiment was interrupted before this row ran
		}
		line := c.lead(r.Case.Name, spec.Number(r.Load), r.Scheme.Label)
		for _, m := range shown {
			line = append(line, r.cell(m))
		}
		if len(x.Schemes) > 1 {
			words := ""
			if f, ok := c.finding(r); ok {
				words = f.String()
			}
			line = append(line, words)
		}
		table = append(table, line)
	}
	return table
}

// lead returns the columns of Table that identify a row. Case and load have a column if
// there are several.
func (c *Comparison) lead(caseName, load, label string) (list []string) {
	if len(c.Experiment.Cases) > 1 {
		list = append(list, caseName)
	}
	if c.severalLoads() {
		list = append(list, load)
	}
	return append(list, label)
}

// leadColumns returns the number of these columns.
func (c *Comparison) leadColumns() int { return len(c.lead("", "", "")) }

func (c *Comparison) severalLoads() bool {
	return slices.ContainsFunc(c.Rows, func(r *Row) bool { return r.Load != c.Rows[0].Load })
}

// String returns the estimate as tables show it, such as 12.3 ±0.4.
func (e Estimate) String() string {
	switch {
	case math.IsNaN(e.Mean):
		return "-"
	case e.N < 2:
		return digits(e.Mean)
	}
	return digits(e.Mean) + " ±" + digits(e.Half)
}

// digits formats a number with three significant digits.
func digits(v float64) string {
	a := math.Abs(v)
	switch {
	case a >= 100 || a == 0:
		return fmt.Sprintf("%.0f", v)
	case a >= 10:
		return fmt.Sprintf("%.1f", v)
	case a >= 1:
		return fmt.Sprintf("%.2f", v)
	case a >= 0.1:
		return fmt.Sprintf("%.3f", v)
	case a >= 0.001:
		return fmt.Sprintf("%.4f", v)
	}
	return fmt.Sprintf("%.2g", v)
}

// noVerdictAbove is the percentage of unfinished flows above which completion times are not
// compared. For unfinished flows, the time until the end of the run replaces the completion time.
const noVerdictAbove = 1.0

// unfinished returns the percentage of the row's flows that had not ended when the
// runs did.
func (r *Row) unfinished() float64 {
	if v := r.Estimate("unfinished").Mean; !math.IsNaN(v) {
		return v
	}
	return 0
}

// timed reports whether a metric depends on completion times.
func timed(metric string) bool {
	base, _, _ := strings.Cut(metric, ":")
	for _, prefix := range []string{"fct-", "slowdown-", "request-", "flow-rate"} {
		if strings.HasPrefix(base, prefix) {
			return true
		}
	}
	return false
}

// cell returns a metric of the row as tables show it. A mean completion time is a lower bound if
// some flows did not finish.
func (r *Row) cell(metric string) string {
	e := r.Estimate(metric)
	if timed(metric) && !strings.HasPrefix(metric, "flow-rate") && r.unfinished() > 0 && !math.IsNaN(e.Mean) {
		return "≥ " + e.String()
	}
	return e.String()
}

// paths returns the mean number of upward ports of the leaves that send; 0 if the network is not
// known.
func (r *Row) paths() float64 {
	var all mean
	if r.network != nil {
		for _, leaf := range r.network.Leaves() {
			up := lists.Filter(r.network.Ports(leaf.Name), func(p fabric.Port) bool { return p.PeerTier > leaf.Role.Tier() && !p.Down })
			if len(up) > 0 {
				all.add(float64(len(up)))
			}
		}
	}
	if all.n == 0 {
		return 0
	}
	return all.value()
}

// singlePath reports whether the leaves of the row use only one of several paths, although they
// have enough flows for all.
func (r *Row) singlePath() bool {
	const enough = 10 // flows per path
	n, used := r.paths(), r.Estimate(pathsUsed).Mean
	for _, run := range r.Runs {
		if float64(run.Flows) < enough*n {
			return false
		}
	}
	return n > 1 && used > 0 && used/100*n < 1.5
}

// Metrics that tables show when they matter, even if the experiment does not name them.
const (
	unfinishedFlows = "unfinished"
	pathsUsed       = "paths-used"
)

// extra returns the metrics that the table adds: unfinished flows if there are any, and used
// paths if a row uses only one of several.
func (c *Comparison) extra() []string {
	var list []string
	add := func(metric string, matters func(*Row) bool) {
		for _, r := range c.Rows {
			if len(r.Runs) > 0 && matters(r) && !slices.Contains(c.Experiment.Metrics, metric) {
				list = append(list, metric)
				return
			}
		}
	}
	add(unfinishedFlows, func(r *Row) bool { return r.unfinished() > 0 })
	add(pathsUsed, (*Row).singlePath)
	return list
}

// csv returns all metrics as CSV: a line for each row and metric.
func (c *Comparison) csv() []byte {
	var b bytes.Buffer
	out := csv.NewWriter(&b)                                // labels may contain commas
	write := func(cells ...string) { _ = out.Write(cells) } // writing to memory does not fail
	write("case", "scheme", "load", "metric", "unit", "mean", "ci95", "runs")
	for _, r := range c.Rows {
		for _, m := range spec.AllMetrics(c.Experiment.Classes, c.Experiment.JobNames()) {
			if e := r.Estimate(m.Key); !math.IsNaN(e.Mean) {
				write(r.Case.Name, r.Scheme.Label, spec.Number(r.Load), m.Key, m.Unit, fmt.Sprintf("%.8g", e.Mean), fmt.Sprintf("%.8g", e.Half), strconv.Itoa(e.N))
			}
		}
	}
	out.Flush()
	return b.Bytes()
}

// ErrSame is wrapped by the error about comparing rows that run the same program.
var ErrSame = errors.New("two rows run the same program")
