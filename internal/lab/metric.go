package lab

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/p4lb/p4lb/fitting"
	"github.com/p4lb/p4lb/internal/controller/inspect"
	"github.com/p4lb/p4lb/internal/lab/spec"
	"github.com/p4lb/p4lb/internal/text/lists"
)

// compute holds the function of each metric, by name.
var compute = computations()

func computations() map[string]func(*measured, []*outcome) float64 {
	m := map[string]func(*measured, []*outcome) float64{
		"fct-mean":          overFlows(fctMS, average),
		"fct-p50":           overFlows(fctMS, quantile(0.5)),
		"fct-p99":           overFlows(fctMS, quantile(0.99)),
		"fct-acked-mean":    acked(average),
		"fct-acked-p99":     acked(quantile(0.99)),
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
		"trimmed":           trimmed,
		"recovery":          func(m *measured, _ []*outcome) float64 { return m.recovery },
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
	maps.Copy(m, collectiveComputations())
	maps.Copy(m, jobComputations())
	maps.Copy(m, fitComputations())
	for _, metric := range spec.Metrics() {
		if m[metric.Name] == nil {
			panic("nobody measures " + metric.Name)
		}
	}
	return m
}

// values returns the defined metrics of a run by name.
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
	for _, c := range spec.AllMetrics(m.classes, lists.Map(m.jobs, func(j *jobTime) string { return j.Name })) {
		flows := all
		if c.Class >= 0 {
			flows = byClass[c.Class]
		}
		if x := m.ofJob(c.Key)(m, flows); !math.IsNaN(x) && !math.IsInf(x, 0) {
			v[c.Key] = x
		}
	}
	return v
}

// ofJob returns the function of a metric, whose key may name one job.
func (m *measured) ofJob(key string) func(*measured, []*outcome) float64 {
	name, of, _ := strings.Cut(key, ":")
	i := slices.IndexFunc(m.jobs, func(j *jobTime) bool { return j.Name == of })
	if metric, err := spec.MetricNamed(name, nil); i < 0 || err != nil || !metric.ByJob() {
		return compute[name]
	}
	one := *m
	one.jobs = m.jobs[i : i+1]
	return func(_ *measured, flows []*outcome) float64 { return compute[name](&one, flows) }
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

// acked summarizes the times until the last acknowledgment. UDP has none.
func acked(sum func([]float64) float64) func(*measured, []*outcome) float64 {
	return func(_ *measured, flows []*outcome) float64 {
		if !slices.ContainsFunc(flows, func(f *outcome) bool { return f.Acknowledged > 0 }) {
			return math.NaN()
		}
		return sum(lists.Map(flows, func(f *outcome) float64 { return f.acked().Seconds() * 1e3 }))
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

// trimmed returns the share of trimmed packets, if switches trim. Otherwise it is
// undefined, so that other experiments do not have this metric.
func trimmed(m *measured, flows []*outcome) float64 {
	if !m.trims {
		return math.NaN()
	}
	return perPacket(func(f *outcome) int64 { return f.Trimmed })(m, flows)
}

// requests summarizes the times from a request's first byte to its last.
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

// An execution contains the times of the flows of an instance.
type execution struct {
	*spec.Instance
	begin, end time.Duration
	last       map[int]time.Duration // by rank: time of its last byte
}

// executions groups flows by their instances, in the order of their first flows.
func executions(flows []*outcome) []*execution {
	var list []*execution
	places := map[*spec.Instance]*execution{}
	for _, f := range flows {
		if f.Instance == nil || f.Compute {
			continue
		}
		x := places[f.Instance]
		if x == nil {
			x = &execution{Instance: f.Instance, begin: f.Started, last: map[int]time.Duration{}}
			places[f.Instance] = x
			list = append(list, x)
		}
		end := f.Started + f.fct()
		x.begin, x.end = min(x.begin, f.Started), max(x.end, end)
		x.last[f.Dst] = max(x.last[f.Dst], end)
	}
	return list
}

func (x *execution) time() time.Duration { return x.end - x.begin }

// straggling returns the time between the last bytes of the median rank and the slowest rank, as
// a share of the total time.
func (x *execution) straggling() float64 {
	ends := make([]time.Duration, 0, len(x.last))
	for _, at := range x.last {
		ends = append(ends, at)
	}
	slices.Sort(ends)
	return float64(x.end-ends[(len(ends)-1)/2]) / float64(x.time())
}

// collectiveComputations computes the metrics of collectives.
func collectiveComputations() map[string]func(*measured, []*outcome) float64 {
	over := func(of func(*measured, *execution) float64, sum func([]float64) float64) func(*measured, []*outcome) float64 {
		return func(m *measured, _ []*outcome) float64 {
			var values []float64
			for _, x := range executions(m.flows) {
				if v := of(m, x); !math.IsNaN(v) {
					values = append(values, v)
				}
			}
			return sum(values)
		}
	}
	ms := func(_ *measured, x *execution) float64 { return x.time().Seconds() * 1e3 }
	bandwidth := func(x *execution) float64 {
		if x.Bytes == 0 {
			return math.NaN()
		}
		return float64(x.Bytes) * 8 / x.time().Seconds() / 1e9
	}
	// The metric exists only in experiments with collectives.
	only := func(of func(*measured, []*outcome) float64) func(*measured, []*outcome) float64 {
		return func(m *measured, flows []*outcome) float64 {
			if len(m.ideals) == 0 {
				return math.NaN()
			}
			return of(m, flows)
		}
	}
	return map[string]func(*measured, []*outcome) float64{
		"fct-max":             only(overFlows(fctMS, greatest)),
		"link-imbalance":      only(func(m *measured, _ []*outcome) float64 { return 100 * m.imbalance }),
		"buffer-peak":         only(func(m *measured, _ []*outcome) float64 { return m.bufferPeak }),
		"cct":                 over(ms, average),
		"cct-p99":             over(ms, quantile(0.99)),
		"cct-ideal":           over(func(m *measured, x *execution) float64 { return m.ideals[x.Instance].Seconds() * 1e3 }, average),
		"cct-ratio":           over(func(m *measured, x *execution) float64 { return float64(x.time()) / float64(m.ideals[x.Instance]) }, average),
		"algorithm-bandwidth": over(func(_ *measured, x *execution) float64 { return bandwidth(x) }, average),
		"bus-bandwidth":       over(func(_ *measured, x *execution) float64 { return bandwidth(x) * x.BusFactor() }, average),
		"straggler-share":     over(func(_ *measured, x *execution) float64 { return 100 * x.straggling() }, average),
		"step-time":           steppings(ms),
		"step-ratio":          steppings(func(m *measured, x *execution) float64 { return float64(x.time()) / float64(m.ideals[x.Instance]) }),
		"iteration-time":      iterationTime,
	}
}

// iterationTime returns the mean time of an iteration: of jobs, or else the time between the
// starts of consecutive iterations.
func iterationTime(m *measured, _ []*outcome) float64 {
	var all mean
	if len(m.jobs) > 0 {
		for _, j := range m.jobs {
			if j.iterations > 0 {
				all.add(j.iteration())
			}
		}
		return all.value()
	}
	var before *execution
	for _, x := range executions(m.flows) {
		if before != nil && x.Iteration == before.Iteration+1 && x.Kind == before.Kind {
			all.add((x.begin - before.begin).Seconds() * 1e3)
		}
		before = x
	}
	return all.value()
}

// steppings averages over the collective operations and messages of jobs.
func steppings(of func(*measured, *execution) float64) func(*measured, []*outcome) float64 {
	return func(m *measured, _ []*outcome) float64 {
		if len(m.jobs) == 0 {
			return math.NaN()
		}
		flows := lists.Filter(m.flows, func(f *outcome) bool {
			return f.Job != nil && slices.ContainsFunc(m.jobs, func(j *jobTime) bool { return j.JobRun == f.Job })
		})
		var all mean
		for _, x := range executions(flows) {
			all.add(of(m, x))
		}
		return all.value()
	}
}

// observe starts recording rows for a fit, if the experiment requests one.
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

// fit fits the recorded rows with every degree that they determine.
func (r *running) fit(ctx context.Context, rows *fitting.Rows) (*fitting.Fit, error) {
	if rows == nil {
		return nil, nil
	}
	rule, err := fitting.ParseOutliers(r.x.Observe.Outliers)
	if err != nil {
		panic(err) // checked when the experiment was loaded
	}
	if _, err = rows.Clean(rule); err != nil {
		return nil, fmt.Errorf("fitting the observations: %w", err)
	}
	f, err := rows.Fit(ctx, fitting.Options{Degree: 1, Sweep: true, Test: r.x.Observe.Test, Seed: r.Seed})
	if err != nil {
		return nil, fmt.Errorf("fitting the observations: %w", err)
	}
	return f, nil
}

// fitComputations returns the metrics of a polynomial fitted to the run, for each degree.
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

// ofDegree returns a metric of the fit of a degree, or NaN if the rows do not determine the
// polynomial.
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

// flowHead are the columns of flows.csv.
const flowHead = "flow,class,src,dst,bytes,start_s,fct_s,slowdown,counted,finished,packets,retransmitted,timeouts,dupacks,out_of_order,reordered,degree,marked,acked_s\n"

// writeFlows writes a row for each flow.
func writeFlows(out io.Writer, r *running) error {
	if out == nil {
		return nil
	}
	w := bufio.NewWriterSize(out, 1<<16)
	w.WriteString(flowHead)
	for i, f := range r.flows {
		if f.Compute {
			continue
		}
		class := cmp.Or(f.Class, r.x.Classes[f.class].Name)
		fmt.Fprintf(w, "%d,%s,%s,%s,%d,%.9f,%.9f,%.5g,%t,%t,%d,%d,%d,%d,%d,%d,%d,%d,%.9f\n", i+1, class,
			r.topo.Hosts[f.Src].Name, r.topo.Hosts[f.Dst].Name, f.Bytes, f.Started.Seconds(), f.fct().Seconds(), slowdown(f),
			f.counts, f.Finished > 0, f.Sent, f.Retransmitted, f.Timeouts, f.DupAcks, f.OutOfOrder, f.Overtaken, f.Degree, f.Marked, f.acked().Seconds())
	}
	return w.Flush()
}
