package lab

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/p4lb/p4lb/controller/inspect"
	"github.com/p4lb/p4lb/fitting"
)

// Observing is what is noted about ports while flows begin, and fitted when the
// run is over: QALL's dataset (Section III-B) and its Table I. The interval is
// that between the last two packets, as a switch measures it.
type Observing struct {
	Every    Time     `yaml:"every"`
	Switches []string `yaml:"switches"` // whose ports to other switches; empty: all
	Outliers string   `yaml:"outliers"` // as p4lb fit drops them: none, sigma:3
	Test     float64  `yaml:"test"`     // share of the rows that is held back
}

func (o *Observing) check() error {
	switch {
	case o.Every <= 0:
		return fmt.Errorf("every %v: want a time above 0", o.Every)
	case !(o.Test > 0 && o.Test < 1):
		return fmt.Errorf("test %g: want a share of the rows above 0 and below 1", o.Test)
	}
	_, err := fitting.ParseOutliers(o.Outliers)
	return err
}

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

// fittedDegrees are those of QALL's Table I.
var fittedDegrees = []int{1, 2, 3, 5, 8, 10}

// fitMetrics are those of the polynomials that are fitted.
func fitMetrics() []Metric {
	list := []Metric{
		{"fit-rows", "rows", "observations of ports, where the experiment has them fitted", true, false, overFit(func(f *fitting.Fit) float64 {
			return float64(f.Train.Rows + f.Test.Rows)
		})},
		{"fit-pearson-l", "", "correlation of a port's traffic with its queue", true, false, overFit(func(f *fitting.Fit) float64 { return f.Correlation.YL })},
		{"fit-pearson-t", "", "correlation of a port's traffic with the interval between its packets", false, false, overFit(func(f *fitting.Fit) float64 { return f.Correlation.YT })},
	}
	for _, degree := range fittedDegrees {
		list = append(list,
			Metric{fmt.Sprintf("fit-r2-%d", degree), "", fmt.Sprintf("R² of the fit of degree %d, over the rows held back", degree), true, false, ofDegree(degree, func(m *fitting.Metrics) float64 { return m.R2 })},
			Metric{fmt.Sprintf("fit-mre-%d", degree), "", fmt.Sprintf("mean relative error of the fit of degree %d", degree), false, false, ofDegree(degree, func(m *fitting.Metrics) float64 { return m.MRE })},
		)
	}
	return list
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
