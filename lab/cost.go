package lab

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/p4lb/p4lb/lab/spec"
)

// What a run costs is the hops that its load asks for (demand.go), over the rate
// of switches that run what it runs. Rates are learnt: each worker keeps beside
// the store what its runs took.

// rates are hops that runs were expected to take, and the seconds that they took,
// by what ran.
type rates map[string]*spent

type spent struct{ Hops, Seconds float64 }

// Hops per second of one core where nothing is known yet.
const (
	programHops = 0.5e6
	modelHops   = 1.5e6
)

// setupSeconds is what a run takes that has nothing to do.
const setupSeconds = 0.02

// kinds are what a job runs, the closest first.
func (j *Job) kinds() [2]string {
	kind := j.Scheme.Engine + " " + cmp.Or(j.Scheme.Arch, "v1model")
	return [2]string{kind + " " + j.Scheme.Scheme, kind}
}

// hops is what the model expects a run to take.
func (j *Job) hops() (float64, error) {
	d, err := j.demand()
	return d.Events / eventsPerHop, err
}

// seconds is what a run is expected to take on a core.
func (r rates) seconds(j *Job, hops float64) float64 {
	for _, kind := range j.kinds() {
		if s := r[kind]; s != nil && s.Hops > 0 {
			return setupSeconds + hops*s.Seconds/s.Hops
		}
	}
	if j.Scheme.Engine == spec.EngineNative {
		return setupSeconds + hops/modelHops
	}
	return setupSeconds + hops/programHops
}

// costs are the seconds that each job is expected to take.
func (r *Runner) costs(ctx context.Context, jobs []*Job) ([]float64, error) {
	known := rates{}
	if r.Store != nil {
		if err := r.Store.Notes(ctx, func(text json.RawMessage) {
			var one rates
			if json.Unmarshal(text, &one) == nil {
				known.add(one)
			}
		}); err != nil {
			return nil, err
		}
	}
	list := make([]float64, len(jobs))
	var last *Job
	for i, j := range jobs {
		if last != nil && last.setup == j.setup && last.Load == j.Load { // but for the seed
			list[i] = list[i-1]
			continue
		}
		hops, err := j.hops()
		if err != nil {
			return nil, err
		}
		list[i], last = known.seconds(j, hops), j
	}
	return list, nil
}

func (r rates) add(more rates) {
	for kind, s := range more {
		if s == nil || !(s.Hops > 0 && s.Seconds > 0) {
			continue
		}
		if r[kind] == nil {
			r[kind] = new(spent)
		}
		r[kind].Hops += s.Hops
		r[kind].Seconds += s.Seconds
	}
}

// learn takes down what a run took, and keeps it with the worker.
func (s *sharing) learn(j *Job, took time.Duration) error {
	hops, err := j.hops()
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.rates == nil {
		s.rates = rates{}
	}
	for _, kind := range j.kinds() {
		s.rates.add(rates{kind: &spent{hops, max(took.Seconds()-setupSeconds, 1e-6)}})
	}
	return s.worker.Note(s.rates)
}

// divide gives each shard about the same cost: the dearest job first, each to
// the shard that has the least. It returns the shard's own, the dearest first, and
// those of others, beginning at another place for each shard.
func (s Shard) divide(costs []float64) (own, others []int) {
	order := make([]int, len(costs))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(costs[b], costs[a]) })
	if s.whole() {
		return order, nil
	}
	loads := make([]float64, s.Of)
	for _, i := range order {
		least := 0
		for k := range loads {
			if loads[k] < loads[least] {
				least = k
			}
		}
		loads[least] += costs[i]
		if least == s.Index {
			own = append(own, i)
		} else {
			others = append(others, i)
		}
	}
	from := len(others) * s.Index / s.Of
	return own, append(slices.Clone(others[from:]), others[:from]...)
}
