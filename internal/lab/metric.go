package lab

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/p4lb/p4lb/fitting"
	"github.com/p4lb/p4lb/internal/controller/inspect"
	"github.com/p4lb/p4lb/internal/lab/spec"
	"github.com/p4lb/p4lb/internal/sim"
	"github.com/p4lb/p4lb/internal/text/lists"
)

// compute says how metrics come from what was measured, by their names.
var compute = computations()

func computations() map[string]func(*measured, []*outcome) float64 {
	m := map[string]func(*measured, []*outcome) float64{
		"fct-mean":          overFlows(fctMS, average),
		"fct-p50":           overFlows(fctMS, quantile(0.5)),
		"fct-p99":           overFlows(fctMS, quantile(0.99)),
		"slowdown-mean":     overFlows(slowdown, average),
		"slowdown-p50":      overFlows(slowdown, quantile(0.5)),
		"slowdown-p99":      overFlows(slowdown, quantile(0.99)),
		"request-mean":      requests(average),
		"request-p99":       requests(quantile(0.99)),
		"throughput":        func(m *measured, _ []*outcome) float64 { return m.goodput / 1e6 },
		"flow-rate":         overFlows(flowRate, average),
		"unfinished":        overFlows(unfinished, percentOf),
		"out-of-order":      perPacket(func(f *outcome) int64 { return f.OutOfOrder }),
		"reordered":         perPacket(func(f *outcome) int64 { return f.Overtaken }),
		"degree-p99":        overFlows(degree, quantile(0.99)),
		"dupacks":           overFlows(func(f *outcome) float64 { return truth(f.DupAcks > 0) }, percentOf),
		"dupacks-3":         overFlows(func(f *outcome) float64 { return truth(f.DupRun > 3) }, percentOf),
		"retransmitted":     perPacket(func(f *outcome) int64 { return f.Retransmitted }),
		"timeouts":          overFlows(func(f *outcome) float64 { return float64(f.Timeouts) }, average),
		"marked":            perPacket(func(f *outcome) int64 { return f.Marked }),
		"queue-mean":        func(m *measured, _ []*outcome) float64 { return 100 * average(m.occupancy) },
		"queue-p99":         func(m *measured, _ []*outcome) float64 { return 100 * quantile(0.99)(m.occupancy) },
		"queue-variance":    func(m *measured, _ []*outcome) float64 { return variance(m.occupancy) },
		"sharing":           func(m *measured, _ []*outcome) float64 { return 100 * m.sharing },
		"utilisation":       func(m *measured, _ []*outcome) float64 { return 100 * m.utilisation },
		"utilisation-whole": func(m *measured, _ []*outcome) float64 { return 100 * m.whole },
		"utilisation-min":   func(m *measured, _ []*outcome) float64 { return 100 * m.idlest },
		"paths-used":        func(m *measured, _ []*outcome) float64 { return 100 * m.pathsUsed },
		"dropped":           func(m *measured, _ []*outcome) float64 { return m.dropped },
		"pauses":            func(m *measured, _ []*outcome) float64 { return m.pauses },
		"paused":            func(m *measured, _ []*outcome) float64 { return m.paused },
		"recirculated":      func(m *measured, _ []*outcome) float64 { return m.recirculated },
		"copies":            func(m *measured, _ []*outcome) float64 { return m.copies },
		"probe-load":        func(m *measured, _ []*outcome) float64 { return m.probes },
		"decision-delay":    func(m *measured, _ []*outcome) float64 { return m.age },
		"granularity":       func(m *measured, _ []*outcome) float64 { return m.granularity },
	}
	maps.Copy(m, fitComputations())
	for _, metric := range spec.Metrics() {
		if m[metric.Name] == nil {
			panic("nobody measures " + metric.Name)
		}
	}
	return m
}

// An outcome is a flow and what became of it.
type outcome struct {
	spec.Flow
	sim.FlowStats
	Started  time.Duration
	Finished time.Duration // 0: not in time
	ideal    time.Duration // alone in the network
	end      time.Duration // of the run
	class    int
	counts   bool // in the statistics: it began after the warm-up, and was to end
}

// fct is the completion time; of a flow that had not ended, the time it had.
func (f *outcome) fct() time.Duration {
	if f.Finished == 0 {
		return f.end - f.Started
	}
	return f.Finished - f.Started
}

// measured is what a run comes to beside its flows.
type measured struct {
	flows   []*outcome
	classes []spec.Class

	goodput     float64   // bit/s
	occupancy   []float64 // samples of the queues upwards, 0 to 1
	sharing     float64
	utilisation float64
	whole       float64 // utilisation until the run was over
	idlest      float64
	pathsUsed   float64 // share of the ports upwards

	dropped, pauses, paused, recirculated, copies, probes float64
	age, granularity                                      float64

	fit *fitting.Fit // of the ports; nil: the experiment has none
}

// values are all metrics of a run by name. What is not a number is left out.
func (m *measured) values() map[string]float64 {
	byClass := make([][]*outcome, len(m.classes))
	var all []*outcome
	for _, f := range m.flows {
		if f.counts {
			all = append(all, f)
			byClass[f.class] = append(byClass[f.class], f)
		}
	}
	v := map[string]float64{}
	for _, c := range spec.AllMetrics(m.classes) {
		flows := all
		if c.Class >= 0 {
			flows = byClass[c.Class]
		}
		if x := compute[c.Name](m, flows); !math.IsNaN(x) && !math.IsInf(x, 0) {
			v[c.Key] = x
		}
	}
	return v
}

func overFlows(of func(*outcome) float64, sum func([]float64) float64) func(*measured, []*outcome) float64 {
	return func(_ *measured, flows []*outcome) float64 {
		return sum(lists.Map(flows, of))
	}
}

func fctMS(f *outcome) float64      { return f.fct().Seconds() * 1e3 }
func slowdown(f *outcome) float64   { return float64(f.fct()) / float64(f.ideal) }
func unfinished(f *outcome) float64 { return truth(f.Finished == 0) }
func degree(f *outcome) float64     { return float64(f.Degree) }
func flowRate(f *outcome) float64   { return float64(f.Received) * 8 / f.fct().Seconds() / 1e6 }

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

func percentOf(values []float64) float64 { return 100 * average(values) }

func quantile(p float64) func([]float64) float64 {
	return func(values []float64) float64 {
		sorted := slices.Clone(values)
		slices.Sort(sorted)
		return percentile(sorted, p)
	}
}

func perPacket(count func(*outcome) int64) func(*measured, []*outcome) float64 {
	return func(_ *measured, flows []*outcome) float64 {
		n, sent := int64(0), int64(0)
		for _, f := range flows {
			n += count(f)
			sent += f.Sent
		}
		return 100 * float64(n) / float64(sent)
	}
}

// requests are the times from a request's first byte to its last.
func requests(sum func([]float64) float64) func(*measured, []*outcome) float64 {
	return func(_ *measured, flows []*outcome) float64 {
		last := map[int]float64{}
		var order []int
		for _, f := range flows {
			if f.Group == 0 {
				continue
			}
			if _, ok := last[f.Group]; !ok {
				order = append(order, f.Group)
			}
			last[f.Group] = max(last[f.Group], fctMS(f))
		}
		return sum(lists.Map(order, func(g int) float64 { return last[g] }))
	}
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

// fitComputations computes the metrics of a polynomial that is fitted to the run,
// for each degree.
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
