package p4lb

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/p4lb/p4lb/internal/lab"
	"github.com/p4lb/p4lb/internal/lab/spec"
	"github.com/p4lb/p4lb/internal/scheme"
	"github.com/p4lb/p4lb/internal/scheme/own"
	"github.com/p4lb/p4lb/internal/text/lists"
)

// An Experiment is an experiment in which Go code takes part. The same experiment always gives
// the same results if Begin is deterministic.
type Experiment struct {
	// Text is YAML in the format of p4lb lab run: schemes, a network, traffic, loads and
	// seeds. Setup writes it from Go values.
	Text string
	// Files contains the files that the text names; nil: none.
	Files fs.FS
	// Schemes is a folder of the machine. Schemes given by path in the text, such as ./mine, are
	// looked up there: your own programs with their manifests, as described in
	// docs/own-program.md. "": in Files.
	Schemes string
	// Metrics defines the metrics that Begin reports with Network.Report, so that Setup.Metrics
	// and Setup.Expect can name them. Other reported metrics are in Row.Runs only.
	Metrics []Metric
	// Begin, if not nil, is called before the first packet of each run, and plans the
	// caller's own work: a controller, failures, flows, measurements. Runs are made side
	// by side, so Begin is called from several goroutines.
	Begin func(*Network) error
}

// Results are the results of an experiment.
type Results struct{ compared *lab.Comparison }

// Run runs an experiment without code of the caller: see Experiment.
func Run(ctx context.Context, experiment string, files fs.FS) (*Results, error) {
	return Experiment{Text: experiment, Files: files}.Run(ctx)
}

// Run runs the experiment. If ctx is done before the end, it returns its error.
func (e Experiment) Run(ctx context.Context) (*Results, error) {
	files := e.Files
	read := func(name string) ([]byte, error) {
		if files == nil {
			return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
		}
		return fs.ReadFile(files, name)
	}
	library := &scheme.Library{Open: func(dir string) (fs.FS, error) {
		if files == nil {
			return nil, &fs.PathError{Op: "open", Path: dir, Err: fs.ErrNotExist}
		}
		return fs.Sub(files, dir)
	}}
	switch {
	case e.Schemes != "":
		library.Sources = []scheme.Source{own.Source(e.Schemes)}
	case files != nil:
		library.Sources = []scheme.Source{own.SourceIn(files)}
	default:
		library.Sources = []scheme.Source{withoutFiles}
	}
	metrics, err := e.metrics()
	if err != nil {
		return nil, err
	}
	x, err := spec.Load("experiment", []byte(e.Text), read, library, metrics...)
	if err != nil {
		return nil, err
	}
	r := lab.Runner{Read: read}
	if e.Begin != nil {
		r.Begin = func(v *lab.View) error { return e.Begin(newNetwork(v)) }
	}
	c, err := r.Run(ctx, x)
	if err != nil {
		return nil, err
	}
	return &Results{c}, nil
}

// withoutFiles refuses schemes by path, for an experiment without files.
func withoutFiles(name string) (scheme.Scheme, error) {
	if own.IsPath(name) {
		return nil, fmt.Errorf("there is no scheme %q: set Schemes to the folder that contains it, or Files", name)
	}
	return nil, nil
}

// metrics returns the definitions of the caller's metrics.
func (e Experiment) metrics() ([]spec.Metric, error) {
	for i, m := range e.Metrics {
		if err := checkMetric(m.Name); err != nil {
			return nil, err
		}
		if slices.ContainsFunc(e.Metrics[:i], func(o Metric) bool { return o.Name == m.Name }) {
			return nil, fmt.Errorf("there are two metrics %q: want different names", m.Name)
		}
	}
	return lists.Map(e.Metrics, func(m Metric) spec.Metric {
		return spec.Metric{Name: m.Name, Unit: m.Unit, About: m.Meaning, Higher: m.Higher}
	}), nil
}

// checkMetric returns an error if a metric of the caller cannot have a name.
func checkMetric(name string) error {
	base, _, byClass := strings.Cut(name, ":")
	switch _, err := spec.MetricNamed(base, nil); {
	case name == "":
		return errors.New("a metric needs a name")
	case err == nil:
		return fmt.Errorf("each run measures the metric %q itself: want another name", base)
	case byClass || strings.ContainsAny(name, " \t\n"):
		return fmt.Errorf("a metric %q: want a name without spaces and colons", name)
	}
	return nil
}

// A Row is a scheme in a case of an experiment at a load.
type Row struct {
	Scheme, Case string
	Load         float64
	Runs         []Measured

	row *lab.Row
}

// Measured holds the metrics of one run.
type Measured struct {
	Seed    uint64
	Flows   int // number of flows that count
	Metrics map[string]float64
}

// An Estimate is the mean of a metric over the seeds, and half of the 95 % interval around
// it, which is 0 for one run.
type Estimate struct {
	Mean, HalfWidth float64
	Runs            int
}

// Rows returns the results of each scheme in each case at each load.
func (r *Results) Rows() []Row {
	return lists.Map(r.compared.Rows, func(row *lab.Row) Row {
		runs := lists.Map(row.Runs, func(run *lab.Result) Measured { return Measured{run.Seed, run.Flows, run.Metrics} })
		return Row{row.Scheme.Label, row.Case.Name, row.Load, runs, row}
	})
}

// Estimate returns a metric of a row; the second result is false if no run has it.
func (r Row) Estimate(metric string) (Estimate, bool) {
	if !slices.ContainsFunc(r.Runs, func(run Measured) bool { _, ok := run.Metrics[metric]; return ok }) {
		return Estimate{}, false
	}
	e := r.row.Estimate(metric)
	return Estimate{e.Mean, e.Half, e.N}, true
}

// Mean returns a metric of a scheme, identified by its label, at the experiment's
// first load: the mean over the seeds. Metrics lists the metrics; fct-mean is the mean time
// that flows take to complete, in ms.
func (r *Results) Mean(scheme, metric string) (float64, error) {
	var labels []string
	for _, row := range r.compared.Rows {
		if row.Scheme.Label != scheme {
			labels = append(labels, row.Scheme.Label)
			continue
		}
		if len(row.Runs) == 0 || !slices.ContainsFunc(row.Runs, func(run *lab.Result) bool { _, ok := run.Metrics[metric]; return ok }) {
			return 0, fmt.Errorf("%s has no metric %q", scheme, metric)
		}
		return row.Estimate(metric).Mean, nil
	}
	return 0, fmt.Errorf("there is no scheme %q in the experiment: it has %s", scheme, strings.Join(labels, ", "))
}

// A Check is a condition of Setup.Expect, applied to a row.
type Check struct {
	Name string // the condition, with the row
	Met  bool   // by the whole 95 % interval over the seeds
	Why  string // the measured values
}

// Checks applies the conditions of the experiment to its results.
func (r *Results) Checks() []Check {
	return lists.Map(r.compared.Checks(), func(c lab.Check) Check { return Check(c) })
}

// Table returns the comparison as p4lb lab prints it: headings, and a line for each scheme in
// each case and at each load.
func (r *Results) Table() [][]string { return r.compared.Table() }
