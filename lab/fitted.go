package lab

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/p4lb/p4lb/controller/inspect"
	"github.com/p4lb/p4lb/fitting"
	"github.com/p4lb/p4lb/lab/spec"
)

// observe starts to take down the rows that are to be fitted, if any are.
func (r *running) observe() *fitting.Rows {
	o := r.x.Observe
	if o == nil {
		return nil
	}
	rows := new(fitting.Rows)
	watch := &observing{every: time.Duration(o.Every), only: o.Switches, latest: true, keep: func(list []inspect.Observation) error {
		for _, x := range list {
			rows.Append(fitting.Row{Y: x.Traffic, L: x.Queue * 255 / 100, T: x.Interval})
		}
		return nil
	}}
	watch.plan(r.view())
	return rows
}

// fit fits the rows with every degree that they determine.
func (r *running) fit(ctx context.Context, rows *fitting.Rows) (*fitting.Fit, error) {
	if rows == nil {
		return nil, nil
	}
	rule, err := fitting.ParseOutliers(r.x.Observe.Outliers)
	if err != nil {
		panic(err) // it has been checked
	}
	if _, err = rows.Clean(rule); err != nil {
		return nil, fmt.Errorf("fitting what was observed: %w", err)
	}
	f, err := rows.Fit(ctx, fitting.Options{Degree: 1, Sweep: true, Test: r.x.Observe.Test, Seed: r.Seed})
	if err != nil {
		return nil, fmt.Errorf("fitting what was observed: %w", err)
	}
	return f, nil
}

// fitComputations are those of the polynomials that are fitted.
func fitComputations() map[string]func(*measured, []*outcome) float64 {
	m := map[string]func(*measured, []*outcome) float64{
		"fit-rows":      overFit(func(f *fitting.Fit) float64 { return float64(f.Train.Rows + f.Test.Rows) }),
		"fit-pearson-l": overFit(func(f *fitting.Fit) float64 { return f.Correlation.YL }),
		"fit-pearson-t": overFit(func(f *fitting.Fit) float64 { return f.Correlation.YT }),
	}
	for _, degree := range spec.FittedDegrees {
		m[fmt.Sprintf("fit-r2-%d", degree)] = ofDegree(degree, func(m *fitting.Metrics) float64 { return m.R2 })
		m[fmt.Sprintf("fit-mre-%d", degree)] = ofDegree(degree, func(m *fitting.Metrics) float64 { return m.MRE })
	}
	return m
}

func overFit(of func(*fitting.Fit) float64) func(*measured, []*outcome) float64 {
	return func(m *measured, _ []*outcome) float64 {
		if m.fit == nil {
			return math.NaN()
		}
		return of(m.fit)
	}
}

// ofDegree is NaN where the rows do not determine the polynomial.
func ofDegree(degree int, of func(*fitting.Metrics) float64) func(*measured, []*outcome) float64 {
	return overFit(func(f *fitting.Fit) float64 {
		for i := range f.Degrees {
			if d := &f.Degrees[i]; d.Degree == degree {
				return of(d.Test)
			}
		}
		return math.NaN()
	})
}
