package p4lb

import (
	"context"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/p4lb/p4lb/internal/lab"
	"github.com/p4lb/p4lb/internal/lab/spec"
	"github.com/p4lb/p4lb/internal/scheme"
)

// Results are the results of an experiment.
type Results struct{ compared *lab.Comparison }

// Run runs an experiment. The text is YAML in the format of p4lb lab run: schemes, a
// network, traffic, loads and seeds. Run reads the files that it names from files,
// which may be nil otherwise. The same experiment always gives the same results.
func Run(ctx context.Context, experiment string, files fs.FS) (*Results, error) {
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
	x, err := spec.Load("experiment", []byte(experiment), read, library)
	if err != nil {
		return nil, err
	}
	r := lab.Runner{Read: read}
	c, err := r.Run(ctx, x)
	if err != nil {
		return nil, err
	}
	return &Results{c}, nil
}

// Mean is a metric of a scheme, by its label, at the experiment's first load: the
// mean over the seeds. The command p4lb lab list metrics lists them; fct-mean is
// the mean time that flows take to complete, in ms.
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

// Table is the comparison as p4lb lab prints it: a line for each scheme in each
// case and at each load, under a line of headings.
func (r *Results) Table() [][]string { return r.compared.Table() }
