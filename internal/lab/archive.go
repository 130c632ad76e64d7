package lab

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/p4lb/p4lb/internal/lab/spec"
	"github.com/p4lb/p4lb/internal/lab/store"
	"github.com/p4lb/p4lb/internal/text/plain"
)

// An Archive holds finished experiments: a folder with a subfolder for each experiment, as lab
// writes results, or a store.
type Archive struct {
	Dir   string
	Store *store.Store
}

// String returns the location of the archive.
func (a *Archive) String() string {
	if a.Store != nil {
		return a.Store.String()
	}
	return a.Dir
}

// List lists the experiments by name. It reports damaged ones to warn.
func (a *Archive) List(ctx context.Context, warn func(error)) (list []*Kept, err error) {
	each := func(where, entry string, text []byte, err error) {
		var k *Kept
		if err == nil {
			k, err = parseKept(where, text)
		}
		if err != nil {
			warn(err)
			return
		}
		k.entry = entry
		list = append(list, k)
	}
	if a.Store != nil {
		err = a.inStore(ctx, each)
	} else {
		err = a.inFolder(each)
	}
	slices.SortFunc(list, func(a, b *Kept) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Digest, b.Digest)) })
	return list, err
}

func (a *Archive) inStore(ctx context.Context, each func(where, entry string, text []byte, err error)) error {
	objects, err := a.Store.List(ctx, "experiments/")
	if err != nil {
		return err
	}
	for _, o := range objects {
		if strings.HasSuffix(o.Name, "/"+keptFile) {
			text, err := a.Store.Text(ctx, o.Name)
			each(o.Name+" of "+a.Store.String(), "", text, err)
		}
	}
	return nil
}

// inFolder calls each for every experiment in a folder. It skips links, because their targets are
// listed too.
func (a *Archive) inFolder(each func(where, entry string, text []byte, err error)) error {
	entries, err := os.ReadDir(a.Dir)
	if err != nil {
		return fileError("reading", a.Dir, err)
	}
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		file := filepath.Join(a.Dir, e.Name(), keptFile)
		text, err := plain.ReadFile(file)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			err = fileError("reading", file, err)
		}
		each(file, e.Name(), text, err)
	}
	return nil
}

// Find finds an experiment by its name if only one has this name. Otherwise the name needs a
// hyphen and as many digits of the digest as make it unique.
func (a *Archive) Find(ctx context.Context, name string, warn func(error)) (*Kept, error) {
	all, err := a.List(ctx, warn)
	if err != nil {
		return nil, err
	}
	var found, ids []string
	var one *Kept
	for _, k := range all {
		ids = append(ids, k.ID())
		if k.Name == name || plain.Folder(k.Name) == name || strings.HasPrefix(k.ID(), name) && len(name) > len(plain.Folder(k.Name)) {
			found, one = append(found, k.ID()), k
		}
	}
	switch {
	case len(found) == 1:
		return one, nil
	case len(found) > 1:
		return nil, fmt.Errorf("%q is any of %s: want one of them", name, strings.Join(found, ", "))
	case len(ids) == 0:
		return nil, fmt.Errorf("there is no experiment in %s", a)
	}
	return nil, fmt.Errorf("there is no experiment %q in %s: there are %s", name, a, strings.Join(ids[:min(len(ids), 20)], ", "))
}

// folderOf returns the folder of a run of an experiment, in an archive that is a folder.
func (a *Archive) folderOf(k *Kept, run KeptRun) string {
	return filepath.Join(a.folder(k), "runs", filepath.FromSlash(run.Name))
}

// folder returns the folder of an experiment: its ID, or the name given with -o.
func (a *Archive) folder(k *Kept) string { return filepath.Join(a.Dir, cmp.Or(k.entry, k.ID())) }

// Done returns the runs of an experiment that exist.
func (a *Archive) Done(ctx context.Context, list []*Kept) ([]int, error) {
	done := make([]int, len(list))
	if a.Store != nil {
		have, err := a.Store.Has(ctx)
		for i, k := range list {
			done[i] = k.Done(have)
		}
		return done, err
	}
	for i, k := range list {
		for _, run := range k.Runs {
			if _, err := os.Stat(filepath.Join(a.folderOf(k, run), resultFile)); err == nil {
				done[i]++
			}
		}
	}
	return done, nil
}

// Result reads the result of a run, or returns nil if it does not exist.
func (a *Archive) Result(ctx context.Context, k *Kept, run KeptRun) (*Result, error) {
	var text []byte
	if a.Store != nil {
		have, err := a.Store.Get(ctx, run.Key)
		if errors.Is(err, store.ErrMissing) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		text = have.Result
	} else {
		file := filepath.Join(a.folderOf(k, run), resultFile)
		var err error
		if text, err = plain.ReadFile(file); errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		} else if err != nil {
			return nil, fileError("reading", file, err)
		}
	}
	r := new(Result)
	if json.Unmarshal(text, r) != nil || r.Spec != run.Key {
		return nil, &store.DamagedError{Store: a.String(), Name: "run " + run.Name, Why: "holds the result of something else"}
	}
	return r, nil
}

// Table opens the rows of a run: flows.csv or links.csv.
func (a *Archive) Table(ctx context.Context, k *Kept, run KeptRun, name string) (io.ReadCloser, error) {
	if a.Store == nil {
		return os.Open(filepath.Join(a.folderOf(k, run), name))
	}
	have, err := a.Store.Get(ctx, run.Key)
	if err != nil {
		return nil, err
	}
	t, ok := have.Tables[name]
	if !ok {
		return nil, fmt.Errorf("run %s has no %s: %w", run.Name, name, fs.ErrNotExist)
	}
	return a.Store.OpenTable(ctx, t)
}

// Comparison builds the comparison of an experiment from all existing runs, of any
// version of p4lb, without the curves of single runs. It reports damaged runs to warn
// and treats them as missing.
func (a *Archive) Comparison(ctx context.Context, k *Kept, warn func(error)) (*Comparison, error) {
	x := new(spec.Experiment)
	if err := spec.ReadForm([]byte(k.Form), x); err != nil {
		return nil, fmt.Errorf("experiment %s: %w", k.ID(), err)
	}
	other := fmt.Errorf("experiment %s lists other runs than it describes: it is not used", k.ID())
	if x.Runs() != float64(len(k.Runs)) {
		return nil, other // the full error could list very many runs
	}
	var jobs []*Job
	for i := range x.Cases {
		c := &x.Cases[i]
		for _, load := range c.Loads {
			for _, s := range x.SchemesOf(c) {
				for _, seed := range c.Seeds {
					jobs = append(jobs, &Job{Case: c, Scheme: s, Load: float64(load), Seed: seed, x: x})
				}
			}
		}
	}
	if !slices.EqualFunc(jobs, k.Runs, func(j *Job, r KeptRun) bool { return j.Name() == r.Name }) {
		return nil, other
	}
	results := make([]*Result, len(jobs))
	order := make([]int, len(jobs))
	for i := range order {
		order[i] = i
	}
	err := sideBySide(loaders, order, func(i int) error {
		r, err := a.Result(ctx, k, k.Runs[i])
		if _, ok := errors.AsType[*store.DamagedError](err); ok {
			warn(err)
			return nil
		}
		if r != nil {
			j := jobs[i]
			r.Plots = Plots{}
			r.Experiment, r.Case, r.Scheme, r.Label = x.Name, j.Case.Name, j.Scheme.Scheme, j.Scheme.Label
			results[i] = r
		}
		return err
	})
	c := newComparison(x, jobs, results)
	c.World = cmp.Or(k.World, Sim)
	return c, err
}

// Changes compares the metrics of the rows that both comparisons have. It lists both values, and
// the difference of the second in percent. If both have the same seeds, it compares them seed by
// seed.
func Changes(a, b *Comparison) [][]string {
	table := [][]string{{"SCHEME", "LOAD", "METRIC", "FIRST", "SECOND", "CHANGE"}}
	for _, row := range a.Rows {
		other := b.Row(row.Case.Name, row.Scheme.Label, row.Load)
		if other == nil {
			continue
		}
		for _, name := range a.Experiment.Metrics {
			metric, err := a.Experiment.Metric(name)
			if err != nil {
				continue
			}
			first, second := row.Estimate(name), other.Estimate(name)
			label := strings.TrimSpace(row.Case.Name + " " + row.Scheme.Label)
			table = append(table, []string{label, spec.Number(row.Load), metric.Label(), first.String(), second.String(), change(row, other, name)})
		}
	}
	return table
}

func change(a, b *Row, metric string) string {
	va, vb := a.values(metric), b.values(metric)
	switch {
	case slices.Equal(va, vb):
		return "same"
	case slices.EqualFunc(a.Runs, b.Runs, func(x, y *Result) bool { return x.Seed == y.Seed }):
		e := reduction(vb, va)
		e.Mean = -e.Mean
		return signed(e) + " %"
	}
	d := 100 * (b.Estimate(metric).Mean/a.Estimate(metric).Mean - 1)
	if math.IsNaN(d) || math.IsInf(d, 0) {
		return "-"
	}
	return signed(Estimate{Mean: d, N: 1}) + " %"
}
