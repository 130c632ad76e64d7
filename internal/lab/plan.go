package lab

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/p4lb/p4lb/internal/lab/spec"
	"github.com/p4lb/p4lb/internal/lab/store"
)

// A Plan estimates the cost of an experiment that runs in shards.
type Plan struct {
	Kept    *Kept
	Runs    int
	There   int     // number of runs that the store already has
	Seconds float64 // expected time of the other runs on one core
	Longest float64 // expected time of the most expensive shard
	Run     float64 // expected time of the most expensive run
	Bytes   float64 // memory of the largest run
}

// Plan estimates the cost of the runs that are missing from the runner's store, and
// writes the experiment's description to the store, so that workers can run it.
func (r *Runner) Plan(ctx context.Context, x *spec.Experiment, shards int) (*Plan, error) {
	jobs, err := r.prepare(x)
	if err != nil {
		return nil, err
	}
	if err := r.Limits.check(jobs, 1); err != nil {
		return nil, err
	}
	have, err := r.Store.Has(ctx)
	if err != nil {
		return nil, err
	}
	costs, err := r.costs(ctx, jobs)
	if err != nil {
		return nil, err
	}
	p := &Plan{Kept: r.describe(x, jobs), Runs: len(jobs)}
	for i, run := range p.Kept.Runs {
		if _, ok := have[run.Key]; ok {
			p.There++
			costs[i] = 0
			continue
		}
		d, err := jobs[i].demand()
		if err != nil {
			return nil, err
		}
		p.Seconds += costs[i]
		p.Run = max(p.Run, costs[i])
		p.Bytes = max(p.Bytes, d.Bytes)
	}
	for i := range shards {
		own, _ := Shard{i, shards}.divide(costs)
		sum := 0.0
		for _, k := range own {
			sum += costs[k]
		}
		p.Longest = max(p.Longest, sum)
	}
	return p, nil
}

// Collect compares the runs of an experiment that the store has. It runs nothing.
func (r *Runner) Collect(ctx context.Context, x *spec.Experiment) (*Comparison, error) {
	jobs, err := r.prepare(x)
	if err != nil {
		return nil, err
	}
	k := r.describe(x, jobs)
	r.settle(k)
	have, err := r.Store.Has(ctx)
	if err != nil {
		return nil, err
	}
	var list []int
	for i, run := range k.Runs {
		if _, ok := have[run.Key]; ok {
			list = append(list, i)
		}
	}
	results := make([]*Result, len(jobs))
	err = sideBySide(loaders, list, func(i int) error {
		var err error
		results[i], err = r.stored(ctx, jobs[i], k.Runs[i].Key)
		var damaged *store.DamagedError
		switch {
		case errors.Is(err, store.ErrMissing):
			return nil
		case errors.As(err, &damaged):
			if r.Log != nil {
				r.Log(err.Error())
			}
			return nil
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	c := newComparison(x, jobs, results)
	c.World = cmp.Or(r.World, Sim)
	c.Warnings, err = x.Lint(r.Read)
	return c, err
}

// Missing returns how many runs are missing from the comparison, and the total number of runs.
func (c *Comparison) Missing() (missing, of int) {
	for _, r := range c.Results {
		if r == nil {
			missing++
		}
	}
	return missing, len(c.Results)
}

// Done returns how many runs of an experiment the store has. have is the result of store.Has.
func (k *Kept) Done(have map[string]int64) int {
	return len(slices.DeleteFunc(slices.Clone(k.Runs), func(r KeptRun) bool { _, ok := have[r.Key]; return !ok }))
}
