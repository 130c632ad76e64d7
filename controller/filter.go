package controller

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/p4lb/p4lb/manifest"
)

// A Filter is how the cells of one of Tofino's low-pass filters are set, all
// alike. A rate is what comes in, which adds up and fades by e within Time; a
// sample the average of what came within Time. 1/2^Shift of it comes out.
type Filter struct {
	Name   string        `json:"name"` // in a plan without its control
	Sample bool          `json:"sample,omitempty"`
	Time   time.Duration `json:"time_ns"`
	Shift  int           `json:"shift"`
}

// String is how the filter is set, as in rate over 1.31 ms, 1/2^8.
func (f Filter) String() string {
	kind := "rate"
	if f.Sample {
		kind = "sample"
	}
	return fmt.Sprintf("%s over %v, 1/2^%d", kind, f.Time.Round(10*time.Nanosecond), f.Shift)
}

// Filters are those of one switch.
type Filters interface {
	// List returns the filters of the program that runs, as they are set.
	List(ctx context.Context) ([]Filter, error)
	// SetFilter sets all cells of a filter.
	SetFilter(ctx context.Context, f Filter) error
}

// fullLoad is what filters give for a link that is busy all the time.
const fullLoad = 256

// FiltersOf are the filters that a program wants, as they are to be set.
func FiltersOf(m *manifest.Manifest) []Filter {
	var list []Filter
	for i := range m.Tasks {
		t := &m.Tasks[i]
		var f Filter
		switch t.Kind {
		case manifest.RateFilter:
			f = loadFilter(t)
		case manifest.SampleFilter:
			f = Filter{Sample: true, Time: time.Duration(t.Window)}
		default:
			continue
		}
		for _, f.Name = range t.Filters {
			list = append(list, f)
		}
	}
	return list
}

// loadFilter gives 256 for a link of the program's rate that is always busy. It
// scales by powers of 2 alone; so it is the time constant that makes up for the
// rest, and is the window within a factor of 1.42.
func loadFilter(t *manifest.Task) Filter {
	rate := float64(t.Rate) / 8
	window := float64(time.Duration(t.Window).Microseconds()) / 1e6
	shift := max(0, math.Round(math.Log2(rate*window/fullLoad)))
	seconds := fullLoad * math.Exp2(shift) / rate
	return Filter{Time: time.Duration(math.Round(seconds * 1e9)), Shift: int(shift)}
}

// liveFilters reads how the filters are set.
func (x *exchange) liveFilters(ctx context.Context, c *contents, want []Filter) (err error) {
	f := x.link.endpoint.Filters
	if f == nil {
		if len(want) > 0 {
			x.note("no way to the filters: they stay as they are, and until somebody sets them utilisation counts as 0")
		}
		return nil
	}
	if c.filters, err = f.List(ctx); err != nil {
		return fmt.Errorf("reading the filters: %w", err)
	}
	for _, w := range want {
		if !slices.ContainsFunc(c.filters, w.is) {
			return fmt.Errorf("the program has no filter %s", w.Name)
		}
	}
	return nil
}

// is reports whether two filters have the same name, one with its control.
func (f Filter) is(other Filter) bool { return short(f.Name) == short(other.Name) }

// filterSteps compares filters that are known on both sides.
func filterSteps(have, want []Filter) []step {
	var list []step
	for _, w := range want {
		i := slices.IndexFunc(have, w.is)
		if i < 0 {
			continue
		}
		h := have[i]
		w.Name = h.Name
		if h != w {
			list = append(list, step{Change: Change{Modify, "filter " + w.Name, h.String(), w.String()}, filter: &w})
		}
	}
	return list
}

func (x *exchange) setFilters(ctx context.Context, list []step) (taken int, err error) {
	for _, s := range list {
		if err := x.link.endpoint.Filters.SetFilter(ctx, *s.filter); err != nil {
			return taken, fmt.Errorf("setting filter %s: %w", s.filter.Name, err)
		}
		taken++
	}
	return taken, nil
}
