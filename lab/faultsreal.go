package lab

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/p4lb/p4lb/lab/spec"
)

// A turn is a moment at which links fail or come back.
type turn struct {
	at    time.Duration
	links []int
	on    bool // they fail
}

// turns are those of the case, in their order.
func (r *running) turns() ([]turn, error) {
	var list []turn
	for i := range r.Case.Faults {
		f := &r.Case.Faults[i]
		links, err := f.Links(r.setup.named)
		if err != nil {
			return nil, err
		}
		list = append(list, turn{time.Duration(f.At), links, true})
		if f.Until > 0 {
			list = append(list, turn{time.Duration(f.Until), links, false})
		}
	}
	slices.SortStableFunc(list, func(a, b turn) int { return cmp.Compare(a.at, b.at) })
	return list, nil
}

// happen lets the links of a network in real time fail and come back when that
// is due; the controller hears of it after its latency, as in virtual time.
func (r *running) happen(ctx context.Context, p *place, list []turn) error {
	began := time.Now()
	sleep := func(until time.Duration) bool {
		timer := time.NewTimer(time.Until(began.Add(until)))
		defer timer.Stop()
		select {
		case <-timer.C:
			return true
		case <-ctx.Done():
			return false // the flows have ended before
		}
	}
	var down []int
	for _, t := range list {
		if !sleep(t.at) {
			return nil
		}
		down = spec.Toggled(down, t.links, t.on)
		plan, err := r.plan(r.topo.Fail(down...))
		if err != nil {
			return err
		}
		if err := p.target.Start(ctx, plan); err != nil {
			return fmt.Errorf("a fault at %v: %w", t.at, err)
		}
		if !sleep(t.at + time.Duration(r.x.Latency)) {
			return nil
		}
		if err := p.SetPlan(ctx, plan); err != nil {
			return fmt.Errorf("a fault at %v: %w", t.at, err)
		}
		if _, err := p.Deploy(ctx); err != nil && ctx.Err() == nil {
			return fmt.Errorf("deploying after a fault at %v: %w", t.at, err)
		}
	}
	return nil
}
