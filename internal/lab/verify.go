package lab

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"slices"

	"github.com/p4lb/p4lb/internal/lab/spec"
	"github.com/p4lb/p4lb/internal/scheme"
	"github.com/p4lb/p4lb/internal/text/lists"
)

// errUnlike is wrapped by the error about a repetition with a different result.
var errUnlike = errors.New("the repetition differs")

// Check reads all data of an experiment in an archive and verifies its digests. It calls each for
// every run, with its error or nil.
func (a *Archive) Check(ctx context.Context, k *Kept, each func(run KeptRun, err error)) (there int, err error) {
	for _, run := range k.Runs {
		if ctx.Err() != nil {
			return there, ctx.Err()
		}
		r, err := a.Result(ctx, k, run)
		if err == nil && r == nil {
			continue
		}
		there++
		for _, name := range []string{flowsFile, linksFile} {
			if err == nil {
				_, err = a.sum(ctx, k, run, name)
			}
		}
		each(run, err)
	}
	return there, nil
}

// sum reads a table to the end, and returns its digest.
func (a *Archive) sum(ctx context.Context, k *Kept, run KeptRun, name string) ([]byte, error) {
	t, err := a.Table(ctx, k, run, name)
	if err != nil {
		return nil, err
	}
	defer t.Close()
	h := sha256.New()
	if _, err := io.Copy(h, t); err != nil {
		return nil, err
	}
	return h.Sum(nil), nil
}

// Repeat executes a sample of an experiment's runs again, spread over all stored runs, and
// compares the results byte for byte. library contains the schemes.
func (a *Archive) Repeat(ctx context.Context, k *Kept, library *scheme.Library, sample int, each func(run KeptRun, err error)) error {
	x, err := k.Experiment(library)
	if err != nil {
		return err
	}
	jobs, err := (&Runner{Rounds: k.Rounds}).Jobs(x)
	if err != nil {
		return err
	}
	if k.World != "" {
		return fmt.Errorf("%s ran in world %s: runs in real time cannot be repeated exactly", k.ID(), k.World)
	}
	var list []int
	for i, j := range jobs {
		if i >= len(k.Runs) || k.Runs[i].Key != j.Key() {
			return fmt.Errorf("%s is of result version %d, this p4lb of %d, which would run something else: want the p4lb that made it", k.ID(), k.Version, resultVersion)
		}
		if r, err := a.Result(ctx, k, k.Runs[i]); err == nil && r != nil {
			list = append(list, i)
		}
	}
	for n := range min(sample, len(list)) {
		i := list[n*len(list)/min(sample, len(list))]
		err := a.repeat(ctx, k, k.Runs[i], jobs[i])
		if ctx.Err() != nil {
			return ctx.Err()
		}
		each(k.Runs[i], err)
	}
	return nil
}

func (a *Archive) repeat(ctx context.Context, k *Kept, run KeptRun, j *Job) error {
	sums := map[string]hash.Hash{flowsFile: sha256.New(), linksFile: sha256.New()}
	got, err := j.run(ctx, sums[flowsFile], sums[linksFile], nil)
	if err != nil {
		return err
	}
	have, err := a.Result(ctx, k, run)
	if err != nil {
		return err
	}
	x, err := storedForm(got)
	if err != nil {
		return err
	}
	y, err := storedForm(have)
	if err != nil {
		return err
	}
	if !bytes.Equal(x, y) {
		return fmt.Errorf("%w: %s", errUnlike, firstDifference(got, have))
	}
	for name, h := range sums {
		kept, err := a.sum(ctx, k, run, name)
		if err != nil {
			return err
		}
		if !bytes.Equal(kept, h.Sum(nil)) {
			return fmt.Errorf("%w in %s", errUnlike, name)
		}
	}
	return nil
}

// firstDifference names a number in which two results differ.
func firstDifference(got, have *Result) string {
	if got.Hops != have.Hops {
		return fmt.Sprintf("%d hops, kept are %d", got.Hops, have.Hops)
	}
	var names []string
	for name, v := range got.Metrics {
		if have.Metrics[name] != v {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	if len(names) == 0 {
		return "beside the metrics"
	}
	return fmt.Sprintf("%s is %v, kept is %v", names[0], got.Metrics[names[0]], have.Metrics[names[0]])
}

// Prune removes experiments from an archive. From a store it also removes all runs that no
// remaining experiment has, and the notes of workers and jobs without an experiment. It fails if
// a worker may be active, unless force is set. With dryRun it removes nothing. It calls each with
// the name of everything that it removes.
func (a *Archive) Prune(ctx context.Context, list []*Kept, dryRun, force bool, each func(what string)) error {
	all, err := a.List(ctx, func(error) {})
	if err != nil {
		return err
	}
	removed := func(k *Kept) bool {
		return slices.ContainsFunc(list, func(g *Kept) bool { return g.ID() == k.ID() })
	}
	if a.Store == nil {
		return a.pruneFolder(all, removed, dryRun, each)
	}
	needed, experiments := map[string]bool{}, map[string]bool{}
	for _, k := range all {
		if removed(k) {
			continue
		}
		experiments[k.ID()] = true
		for _, run := range k.Runs {
			needed[run.Key] = true
		}
	}
	return a.Store.Prune(ctx, needed, experiments, dryRun, force, each)
}

func (a *Archive) pruneFolder(all []*Kept, removed func(*Kept) bool, dryRun bool, each func(string)) error {
	for _, k := range all {
		if !removed(k) {
			continue
		}
		dir := a.folder(k)
		each(dir)
		if dryRun {
			continue
		}
		if err := os.RemoveAll(dir); err != nil {
			return fileError("removing", dir, err)
		}
	}
	return nil
}

// Rows writes a line with identity and metrics for each stored run.
func (a *Archive) Rows(ctx context.Context, k *Kept, warn func(error), head func([]string) error, line func([]string) error) error {
	c, err := a.Comparison(ctx, k, warn)
	if err != nil {
		return err
	}
	columns := []string{"case", "scheme", "arch", "engine", "load", "seed", "flows", "hops", "elapsed_s"}
	names := lists.Map(spec.AllMetrics(c.Experiment.Classes, c.Experiment.JobNames()), func(m spec.Measure) string { return m.Key })
	if err := head(append(columns, names...)); err != nil {
		return err
	}
	for _, r := range c.Results {
		if r == nil {
			continue
		}
		cells := []string{
			r.Case, r.Label, cmp.Or(r.Arch, "v1model"), r.Engine, spec.Number(r.Load), fmt.Sprint(r.Seed), fmt.Sprint(r.Flows), fmt.Sprint(r.Hops), fmt.Sprint(r.Elapsed.Seconds()),
		}
		for _, name := range names {
			text := ""
			if v, ok := r.Metrics[name]; ok {
				text = fmt.Sprint(v)
			}
			cells = append(cells, text)
		}
		if err := line(cells); err != nil {
			return err
		}
	}
	return nil
}
