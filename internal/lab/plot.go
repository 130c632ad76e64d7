package lab

import (
	"fmt"
	"math"
	"slices"

	"github.com/p4lb/p4lb/internal/lab/chart"
	"github.com/p4lb/p4lb/internal/lab/spec"
	"github.com/p4lb/p4lb/internal/text/lists"
	"github.com/p4lb/p4lb/internal/text/plain"
)

// Figures draws the comparison: for each case the first metric over the load or by
// scheme, the distribution of completion times, the slowdown by flow size, the
// reordering, the queues over time and the path shares; of collectives their ideals,
// tails, messages and links over time; and the printed numbers of a paper next to the
// measured ones.
func (c *Comparison) Figures() []*chart.Chart {
	var list []*chart.Chart
	for i := range c.Experiment.Cases {
		name := c.Experiment.Cases[i].Name
		rows := c.rowsOf(name)
		if len(rows) == 0 {
			continue
		}
		var figures []*chart.Chart
		for _, draw := range []func([]*Row) *chart.Chart{c.drawMain, c.drawIdeal, c.drawCDF, c.drawTail, c.drawSizes, c.drawOrder, c.drawQueue, c.drawShares} {
			if f := draw(rows); f != nil {
				figures = append(figures, f)
			}
		}
		for _, f := range append(figures, c.details(rows)...) {
			if name != "" {
				f.Name += "-" + plain.Folder(name)
				f.Title += ": " + name
			}
			list = append(list, f)
		}
	}
	if f := c.drawFailed(); f != nil {
		list = append(list, f)
	}
	list = append(list, c.drawPrinted()...)
	for _, f := range list {
		f.Note = c.warned()
	}
	return list
}

// rowsOf are the rows of a case that have runs.
func (c *Comparison) rowsOf(name string) []*Row {
	return lists.Filter(c.Rows, func(r *Row) bool { return r.Case.Name == name && len(r.Runs) > 0 })
}

// heaviest keeps the rows of the largest load.
func heaviest(rows []*Row) []*Row {
	load := 0.0
	for _, r := range rows {
		load = max(load, r.Load)
	}
	return lists.Filter(rows, func(r *Row) bool { return r.Load == load })
}

// tint is the colour of a row, the same in all figures.
func (c *Comparison) tint(label string) int {
	return slices.IndexFunc(c.Experiment.Schemes, func(s spec.Scheme) bool { return s.Label == label })
}

// labels are the rows' schemes in order.
func labels(rows []*Row) []string {
	var list []string
	for _, r := range rows {
		list = lists.Add(list, r.Scheme.Label)
	}
	return list
}

const (
	overSeeds = "Means over the seeds, with 95 % confidence intervals."
	atLoad    = "at load %s"
)

// drawMain draws the first metric, over the load where there are several loads.
func (c *Comparison) drawMain(rows []*Row) *chart.Chart {
	m, err := spec.MetricNamed(c.Experiment.Metrics[0], c.Experiment.Classes)
	if err != nil {
		return nil // it has been checked
	}
	if len(heaviest(rows)) == len(rows) {
		f := c.bars(rows, m)
		f.Name, f.Title, f.About = "schemes", m.Key, m.About+". "+overSeeds
		return f
	}
	f := &chart.Chart{Name: "load", Title: m.Key + " over the load", About: m.About + ". " + overSeeds, X: chart.Axis{Label: "load (share of capacity)", Low: rows[0].Load, High: rows[0].Load}, Y: chart.Axis{Label: m.Label()}}
	for _, label := range labels(rows) {
		s := chart.Series{Label: label, Marks: true, Tint: c.tint(label)}
		for _, r := range rows {
			if r.Scheme.Label == label {
				e := r.Estimate(m.Key)
				s.X, s.Y, s.Half = append(s.X, r.Load), append(s.Y, e.Mean), append(s.Half, e.Half)
			}
		}
		f.Series = append(f.Series, s)
	}
	return f
}

// bars has a metric by scheme.
func (c *Comparison) bars(rows []*Row, m spec.Measure) *chart.Chart {
	f := &chart.Chart{X: chart.Axis{Names: labels(rows)}, Y: chart.Axis{Label: m.Label()}}
	for i, r := range rows {
		e := r.Estimate(m.Key)
		f.Series = append(f.Series, chart.Series{Label: r.Scheme.Label, Kind: chart.Bars, Tint: c.tint(r.Scheme.Label), X: []float64{float64(i)}, Y: []float64{e.Mean}, Half: []float64{e.Half}})
	}
	return f
}

// drawCDF draws the distribution of the completion times, all runs of a row
// together.
func (c *Comparison) drawCDF(all []*Row) *chart.Chart {
	rows := heaviest(all)
	f := &chart.Chart{
		Name: "cdf", Title: "Flow completion times " + fmt.Sprintf(atLoad, spec.Number(rows[0].Load)), About: "Share of the flows that have ended within a time: quantiles of each run, averaged over the seeds.",
		X: chart.Axis{Label: "completion time (ms)", Log: true}, Y: chart.Axis{Label: "share of the flows", High: 1},
	}
	for _, r := range rows {
		s := chart.Series{Label: r.Scheme.Label, Tint: c.tint(r.Scheme.Label)}
		for q := range r.Runs[0].Plots.FCT {
			var at mean
			for _, run := range r.Runs {
				if q < len(run.Plots.FCT) && run.Plots.FCT[q] > 0 {
					at.add(run.Plots.FCT[q])
				}
			}
			if v := at.value(); v > 0 {
				s.X, s.Y = append(s.X, v), append(s.Y, float64(q)/100)
			}
		}
		f.Series = append(f.Series, s)
	}
	return f
}

// drawSizes draws the slowdown by the size of the flows.
func (c *Comparison) drawSizes(all []*Row) *chart.Chart {
	rows := heaviest(all)
	f := &chart.Chart{
		Name: "sizes", Title: "Slowdown by flow size " + fmt.Sprintf(atLoad, spec.Number(rows[0].Load)), About: "Completion time over the least time in an idle network, mean over the flows of a size. " + overSeeds,
		X: chart.Axis{Label: "flow size (bytes)"}, Y: chart.Axis{Label: "slowdown", Low: 1, High: 1},
	}
	var used []int
	for i := range sizeBins {
		if slices.ContainsFunc(rows, func(r *Row) bool { return !math.IsNaN(r.slowdown(i).Mean) }) {
			used = append(used, i)
			f.X.Names = append(f.X.Names, sizeName(i))
		}
	}
	if len(used) == 0 {
		return nil
	}
	c.drawNamed(f, rows, chart.Points, func(r *Row, at int) Estimate { return r.slowdown(used[at]) })
	return f
}

// drawNamed adds a series for each row, with the value of for each name on the axis.
func (c *Comparison) drawNamed(f *chart.Chart, rows []*Row, kind chart.Kind, of func(r *Row, at int) Estimate) {
	for _, r := range rows {
		s := chart.Series{Label: r.Scheme.Label, Kind: kind, Tint: c.tint(r.Scheme.Label)}
		for at := range f.X.Names {
			e := of(r, at)
			s.X, s.Y, s.Half = append(s.X, float64(at)), append(s.Y, e.Mean), append(s.Half, e.Half)
		}
		f.Series = append(f.Series, s)
	}
}

// slowdown estimates by how much the flows of a bin are slower than alone, over
// the row's runs.
func (r *Row) slowdown(bin int) Estimate {
	var values []float64
	for _, run := range r.Runs {
		if bin < len(run.Plots.Sizes) && run.Plots.Sizes[bin].Flows > 0 {
			values = append(values, run.Plots.Sizes[bin].Slowdown)
		}
	}
	return newEstimate(values)
}

// drawOrder draws the reordering and its cost.
func (c *Comparison) drawOrder(all []*Row) *chart.Chart {
	rows := heaviest(all)
	f := &chart.Chart{
		Name: "order", Title: "Reordering and repair " + fmt.Sprintf(atLoad, spec.Number(rows[0].Load)),
		About: "Reordered: overtaken in the network. Out of order: reached the receiver so, also because of a loss. Retransmitted: sent again. " + overSeeds,
		X:     chart.Axis{}, Y: chart.Axis{Label: "% of the data packets"},
	}
	used := lists.Filter([]string{"reordered", "out-of-order", "retransmitted"}, func(key string) bool {
		return slices.ContainsFunc(rows, func(r *Row) bool { return !math.IsNaN(r.Estimate(key).Mean) })
	})
	if len(used) == 0 {
		return nil
	}
	f.X.Names = used
	c.drawNamed(f, rows, chart.Bars, func(r *Row, at int) Estimate { return r.Estimate(used[at]) })
	return f
}

// drawQueue draws the queues upwards over time, of the first seed.
func (c *Comparison) drawQueue(all []*Row) *chart.Chart {
	rows := heaviest(all)
	if len(rows[0].Runs[0].Plots.Time) == 0 { // the links are not sampled in real time
		return nil
	}
	f := &chart.Chart{
		Name: "queue", Title: "Queues upwards " + fmt.Sprintf(atLoad, spec.Number(rows[0].Load)), Wide: true,
		About: fmt.Sprintf("Average occupancy of the leaves' ports to the spines, in the run with seed %d.", rows[0].Runs[0].Seed),
		X:     chart.Axis{Label: "time (s)"}, Y: chart.Axis{Label: "occupancy (%)"},
	}
	for _, r := range rows {
		p := r.Runs[0].Plots
		s := chart.Series{Label: r.Scheme.Label, Tint: c.tint(r.Scheme.Label), X: p.Time}
		for _, q := range p.Queue {
			s.Y = append(s.Y, 100*q)
		}
		f.Series = append(f.Series, s)
	}
	return f
}

// drawShares draws the share of each uplink in the bytes of its leaf.
func (c *Comparison) drawShares(all []*Row) *chart.Chart {
	rows := heaviest(all)
	names := rows[0].Runs[0].Plots.Names
	if len(names) == 0 { // no port leads upwards
		return nil
	}
	const most = 16
	names = names[:min(len(names), most)]
	f := &chart.Chart{
		Name: "shares", Title: "Shares of the paths " + fmt.Sprintf(atLoad, spec.Number(rows[0].Load)), Wide: true,
		About: "Bytes that each port upwards sent, of all that its leaf sent upwards. " + overSeeds,
		X:     chart.Axis{Names: names}, Y: chart.Axis{Label: "share (%)"},
	}
	c.drawNamed(f, rows, chart.Bars, func(r *Row, at int) Estimate {
		return newEstimate(lists.Map(r.Runs, func(run *Result) float64 { return 100 * run.Plots.Shares[at] }))
	})
	return f
}

// drawPrinted draws the numbers of a paper beside those that were measured, a chart for
// each unit.
func (c *Comparison) drawPrinted() []*chart.Chart {
	var list []*chart.Chart
	byUnit := map[string]*chart.Chart{}
	for i, o := range c.Judge() {
		if o.Target.Printed == nil || o.value.N == 0 {
			continue
		}
		unit := printedUnit(o.Target, c.Experiment)
		f := byUnit[unit]
		if f == nil {
			f = &chart.Chart{
				Name: "printed", Title: "Printed and measured numbers", Wide: true, About: "By the number of the row in the table above. " + overSeeds,
				X: chart.Axis{Label: "statement"}, Y: chart.Axis{Label: unit},
				Series: []chart.Series{{Label: "measured", Kind: chart.Points}, {Label: "printed", Kind: chart.Hollow, Tint: 1}},
			}
			if len(list) > 0 {
				f.Name = fmt.Sprintf("printed-%d", len(list)+1)
			}
			byUnit[unit] = f
			list = append(list, f)
		}
		at := float64(len(f.X.Names))
		f.X.Names = append(f.X.Names, fmt.Sprint(i+1))
		ours, theirs := &f.Series[0], &f.Series[1]
		ours.X, ours.Y, ours.Half = append(ours.X, at), append(ours.Y, o.value.Mean), append(ours.Half, o.value.Half)
		theirs.X, theirs.Y = append(theirs.X, at), append(theirs.Y, *o.Target.Printed)
	}
	return list
}

// printedUnit names what a target's numbers are: a reduction, a factor or a metric.
func printedUnit(t *spec.Target, x *spec.Experiment) string {
	switch {
	case t.Ratio:
		return "factor"
	case t.Against != "" || t.AgainstCase != "":
		return "reduction (%)"
	}
	m, err := spec.MetricNamed(t.Metric, x.Classes)
	if err != nil {
		return t.Metric // it has been checked
	}
	return m.Label()
}
