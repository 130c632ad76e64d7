package controller

import (
	"context"
	"fmt"
	"slices"

	"github.com/p4lb/p4lb/internal/controller/plan"
	"github.com/p4lb/p4lb/internal/controller/report"
)

// liveFilters reads the settings of the filters.
func (x *exchange) liveFilters(ctx context.Context, c *contents, want []plan.Filter) (err error) {
	f := x.link.Endpoint.Filters
	if f == nil {
		if len(want) > 0 {
			x.note("the target gives no access to the filters: they stay unchanged, and utilisation reads 0 until they are set")
		}
		return nil
	}
	if c.filters, err = f.List(ctx); err != nil {
		return fmt.Errorf("reading the filters: %w", err)
	}
	for _, w := range want {
		if !slices.ContainsFunc(c.filters, w.Is) {
			return fmt.Errorf("the program has no filter %s", w.Name)
		}
	}
	return nil
}

// filterSteps compares filters that are known on both sides.
func filterSteps(have, want []plan.Filter) []step {
	var list []step
	for _, w := range want {
		i := slices.IndexFunc(have, w.Is)
		if i < 0 {
			continue
		}
		h := have[i]
		w.Name = h.Name
		if h != w {
			list = append(list, step{Change: report.Change{Kind: report.Modify, Object: "filter " + w.Name, Before: h.String(), After: w.String()}, filter: &w})
		}
	}
	return list
}

func (x *exchange) setFilters(ctx context.Context, list []step) (taken int, err error) {
	for _, s := range list {
		if err := x.link.Endpoint.Filters.SetFilter(ctx, *s.filter); err != nil {
			return taken, fmt.Errorf("setting filter %s: %w", s.filter.Name, err)
		}
		taken++
	}
	return taken, nil
}
