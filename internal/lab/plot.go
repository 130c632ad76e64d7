package lab

import (
	"cmp"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"

	"github.com/p4lb/p4lb/internal/lab/chart"
	"github.com/p4lb/p4lb/internal/lab/spec"
	"github.com/p4lb/p4lb/internal/text/lists"
	"github.com/p4lb/p4lb/internal/text/plain"
)

// Figures draws the comparison. For each case it draws the first metric over the load or by
// scheme, the distribution of completion times, the slowdown by flow size, reordering, queues
// over time, and path shares. For collectives it draws ideal times, tails, messages and link
// utilisation. For papers it draws the printed numbers next to the measured ones.
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

// rowsOf returns the rows of a case that have runs.
func (c *Comparison) rowsOf(name string) []*Row {
	return lists.Filter(c.Rows, func(r *Row) bool { return r.Case.Name == name && len(r.Runs) > 0 })
}

// heaviest returns the rows with the largest load.
func heaviest(rows []*Row) []*Row {
	load := 0.0
	for _, r := range rows {
		load = max(load, r.Load)
	}
	return lists.Filter(rows, func(r *Row) bool { return r.Load == load })
}

// colour returns the colour of a row, which is the same in all figures.
func (c *Comparison) colour(label string) int {
	return slices.IndexFunc(c.Experiment.Schemes, func(s spec.Scheme) bool { return s.Label == label })
}

// labels returns the labels of the rows in order.
func labels(rows []*Row) []string {
	var list []string
	for _, r := range rows {
		list = lists.Add(list, r.Scheme.Label)
	}
	return list
}

const overSeeds = "Means over the seeds, with 95 % confidence intervals."

// atLoad adds the load of the rows to a title, if the traffic has one.
func atLoad(title string, rows []*Row) string {
	if !rows[0].Case.HasLoad() {
		return title
	}
	return title + " at load " + spec.Number(rows[0].Load)
}

// drawMain draws the first metric, over the load if there are several loads.
func (c *Comparison) drawMain(rows []*Row) *chart.Chart {
	m, err := c.Experiment.Metric(c.Experiment.Metrics[0])
	if err != nil {
		return nil // the metric was checked with the experiment
	}
	if len(heaviest(rows)) == len(rows) {
		f := c.bars(rows, m)
		f.Name, f.Title, f.About = "schemes", m.Key, m.About+". "+overSeeds
		return f
	}
	f := &chart.Chart{Name: "load", Title: m.Key + " over the load", About: m.About + ". " + overSeeds, X: chart.Axis{Label: "load (share of capacity)", Low: rows[0].Load, High: rows[0].Load}, Y: chart.Axis{Label: m.Label()}}
	for _, label := range labels(rows) {
		s := chart.Series{Label: label, Marks: true, Tint: c.colour(label)}
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

// bars draws a metric by scheme.
func (c *Comparison) bars(rows []*Row, m spec.Measure) *chart.Chart {
	f := &chart.Chart{X: chart.Axis{Names: labels(rows)}, Y: chart.Axis{Label: m.Label()}}
	for i, r := range rows {
		e := r.Estimate(m.Key)
		f.Series = append(f.Series, chart.Series{Label: r.Scheme.Label, Kind: chart.Bars, Tint: c.colour(r.Scheme.Label), X: []float64{float64(i)}, Y: []float64{e.Mean}, Half: []float64{e.Half}})
	}
	return f
}

// drawCDF draws the distribution of completion times over all runs of each row.
func (c *Comparison) drawCDF(all []*Row) *chart.Chart {
	rows := heaviest(all)
	f := &chart.Chart{
		Name: "cdf", Title: atLoad("Flow completion times", rows), About: "Share of the flows that finish within a time: quantiles of each run, averaged over the seeds.",
		X: chart.Axis{Label: "completion time (ms)", Log: true}, Y: chart.Axis{Label: "share of the flows", High: 1},
	}
	for _, r := range rows {
		s := chart.Series{Label: r.Scheme.Label, Tint: c.colour(r.Scheme.Label)}
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

// drawSizes draws the slowdown by flow size.
func (c *Comparison) drawSizes(all []*Row) *chart.Chart {
	rows := heaviest(all)
	f := &chart.Chart{
		Name: "sizes", Title: atLoad("Slowdown by flow size", rows), About: "Completion time divided by the minimum time in an idle network: mean over the flows of a size class. " + overSeeds,
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

// drawNamed adds a series for each row. of returns the value for each name on the axis.
func (c *Comparison) drawNamed(f *chart.Chart, rows []*Row, kind chart.Kind, of func(r *Row, at int) Estimate) {
	for _, r := range rows {
		s := chart.Series{Label: r.Scheme.Label, Kind: kind, Tint: c.colour(r.Scheme.Label)}
		for at := range f.X.Names {
			e := of(r, at)
			s.X, s.Y, s.Half = append(s.X, float64(at)), append(s.Y, e.Mean), append(s.Half, e.Half)
		}
		f.Series = append(f.Series, s)
	}
}

// slowdown estimates the mean slowdown of the flows in a size bin, over the row's runs.
func (r *Row) slowdown(bin int) Estimate {
	var values []float64
	for _, run := range r.Runs {
		if bin < len(run.Plots.Sizes) && run.Plots.Sizes[bin].Flows > 0 {
			values = append(values, run.Plots.Sizes[bin].Slowdown)
		}
	}
	return newEstimate(values)
}

// drawOrder draws reordering and its cost.
func (c *Comparison) drawOrder(all []*Row) *chart.Chart {
	rows := heaviest(all)
	f := &chart.Chart{
		Name: "order", Title: atLoad("Reordering and retransmission", rows),
		About: "Reordered: overtaken in the network. Out of order: received before an earlier packet, because of reordering or a loss. Retransmitted: sent again. " + overSeeds,
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

// drawQueue draws the upward queues over time, for the first seed.
func (c *Comparison) drawQueue(all []*Row) *chart.Chart {
	rows := heaviest(all)
	if len(rows[0].Runs[0].Plots.Time) == 0 { // in real time, links are not sampled
		return nil
	}
	f := &chart.Chart{
		Name: "queue", Title: atLoad("Queues of uplinks", rows), Wide: true,
		About: fmt.Sprintf("Average occupancy of the leaves' ports to the spines, in the run with seed %d.", rows[0].Runs[0].Seed),
		X:     chart.Axis{Label: "time (s)"}, Y: chart.Axis{Label: "occupancy (%)"},
	}
	for _, r := range rows {
		p := r.Runs[0].Plots
		s := chart.Series{Label: r.Scheme.Label, Tint: c.colour(r.Scheme.Label), X: p.Time}
		for _, q := range p.Queue {
			s.Y = append(s.Y, 100*q)
		}
		f.Series = append(f.Series, s)
	}
	return f
}

// drawShares draws each uplink's share of its leaf's bytes.
func (c *Comparison) drawShares(all []*Row) *chart.Chart {
	rows := heaviest(all)
	names := rows[0].Runs[0].Plots.Names
	if len(names) == 0 { // the network has no upward ports
		return nil
	}
	const most = 16
	names = names[:min(len(names), most)]
	f := &chart.Chart{
		Name: "shares", Title: atLoad("Shares of the paths", rows), Wide: true,
		About: "Bytes on each uplink, as a share of the bytes on all uplinks of the leaf. " + overSeeds,
		X:     chart.Axis{Names: names}, Y: chart.Axis{Label: "share (%)"},
	}
	c.drawNamed(f, rows, chart.Bars, func(r *Row, at int) Estimate {
		return newEstimate(lists.Map(r.Runs, func(run *Result) float64 { return 100 * run.Plots.Shares[at] }))
	})
	return f
}

// drawPrinted draws the numbers of a paper next to the measured ones, one chart per unit.
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
				Name: "printed", Title: "Printed and measured numbers", Wide: true, About: "The numbers below the axis are rows of the table above. " + overSeeds,
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

// printedUnit returns the unit of a target's numbers: a reduction, a factor or a metric.
func printedUnit(t *spec.Target, x *spec.Experiment) string {
	switch {
	case t.Ratio:
		return "factor"
	case t.Against != "" || t.AgainstCase != "":
		return "reduction (%)"
	}
	m, err := x.Metric(t.Metric)
	if err != nil {
		return t.Metric // the metric was checked with the experiment
	}
	return m.Label()
}

// hue is the number of colours that the steps cycle through.
const hue = 8

// drawSteps draws the messages of a collective by rank and time.
func (c *Comparison) drawSteps(r *Row) *chart.Chart {
	p := r.Runs[0].Plots.Steps
	if p == nil {
		return nil
	}
	most, of := slices.Max(p.Step)+1, "the collective"
	if p.Job != "" {
		of = "job " + p.Job
	}
	f := &chart.Chart{
		Name: "steps-" + plain.Folder(r.Scheme.Label), Title: "Messages of " + of + " with " + r.Scheme.Label, Wide: true,
		About: fmt.Sprintf("Each bar is a message of its sender, from its start to its last byte, in the run with seed %d. A step counts the messages before it in its longest chain.", r.Runs[0].Seed),
		X:     chart.Axis{Label: "time (ms)"}, Y: chart.Axis{Label: "sender", Names: p.Hosts},
	}
	for colour := range min(hue, most) {
		var same []string
		for s := colour; s < most && len(same) < 4; s += hue {
			same = append(same, fmt.Sprint(s))
		}
		label := "step " + strings.Join(same, ", ")
		if colour+hue*len(same) < most {
			label += ", …"
		}
		f.Series = append(f.Series, chart.Series{Label: label, Kind: chart.Spans, Tint: colour})
	}
	for k := range p.Rank {
		s := &f.Series[p.Step[k]%hue]
		s.X, s.To, s.Y = append(s.X, p.Start[k]), append(s.To, p.End[k]), append(s.Y, float64(p.Rank[k]))
		hint, shade := fmt.Sprintf("%s, step %d: %.4g to %.4g ms", p.Hosts[p.Rank[k]], p.Step[k], p.Start[k], p.End[k]), 0.75 // messages of one sender may overlap
		if p.going != nil && p.going[k] {
			hint, shade = fmt.Sprintf("%s, step %d: from %.4g ms, under way", p.Hosts[p.Rank[k]], p.Step[k], p.Start[k]), 0.3
		}
		s.Hints, s.Shade = append(s.Hints, hint), append(s.Shade, shade)
	}
	return f
}

// drawUses draws the utilisation of upward links over time.
func (c *Comparison) drawUses(r *Row) *chart.Chart {
	p := r.Runs[0].Plots.Uses
	if p == nil {
		return nil
	}
	s := chart.Series{Label: r.Scheme.Label, Kind: chart.Spans, Tint: c.colour(r.Scheme.Label)}
	for link, use := range p.Use {
		from := 0.0
		for k, u := range use {
			if u > 0 {
				s.X, s.To, s.Y, s.Shade = append(s.X, from), append(s.To, p.To[k]), append(s.Y, float64(link)), append(s.Shade, u)
				s.Hints = append(s.Hints, fmt.Sprintf("%s, %.4g to %.4g ms: %.0f %%", p.Links[link], from, p.To[k], 100*u))
			}
			from = p.To[k]
		}
	}
	return &chart.Chart{
		Name: "links-" + plain.Folder(r.Scheme.Label), Title: "Links over time with " + r.Scheme.Label, Wide: true,
		About: fmt.Sprintf("Utilisation of the leaves' uplinks in the run with seed %d: the darker, the closer to the link rate.", r.Runs[0].Seed),
		X:     chart.Axis{Label: "time (ms)"}, Y: chart.Axis{Names: p.Links}, Series: []chart.Series{s},
	}
}

// maxDetailed is the number of schemes of a case with charts of their own.
const maxDetailed = 6

// details draws the charts that show a single scheme.
func (c *Comparison) details(all []*Row) []*chart.Chart {
	var list []*chart.Chart
	rows := heaviest(all)
	for _, draw := range []func(*Row) *chart.Chart{c.drawSteps, c.drawUses} {
		for _, r := range rows[:min(len(rows), maxDetailed)] {
			if f := draw(r); f != nil {
				list = append(list, f)
			}
		}
	}
	return list
}

// drawIdeal draws completion times of collectives next to their ideal times.
func (c *Comparison) drawIdeal(all []*Row) *chart.Chart {
	m, err := spec.MetricNamed("cct", c.Experiment.Classes)
	rows := heaviest(all)
	if err != nil || !slices.ContainsFunc(rows, func(r *Row) bool { return r.Estimate("cct-ratio").Mean > 0 }) {
		return nil
	}
	f := c.bars(rows, m)
	f.Name, f.Title, f.About = "ideal", "Collective completion time and its ideal", m.About+". The ideal is a lower bound from the rates of hosts and the chain of messages. "+overSeeds
	ideal := chart.Series{Label: "ideal", Kind: chart.Hollow, Tint: 6}
	for i, r := range rows {
		ideal.X, ideal.Y = append(ideal.X, float64(i)), append(ideal.Y, r.Estimate("cct").Mean/r.Estimate("cct-ratio").Mean)
	}
	f.Series = append(f.Series, ideal)
	return f
}

// drawTail draws the share of flows that take longer than each time.
func (c *Comparison) drawTail(all []*Row) *chart.Chart {
	rows := heaviest(all)
	if rows[0].Runs[0].Plots.Steps == nil && rows[0].Runs[0].Plots.Uses == nil {
		return nil // not a collective
	}
	f := &chart.Chart{
		Name: "tail", Title: "Tail of the completion times", About: "Share of the messages that take longer than a time: quantiles of each run, averaged over the seeds.",
		X: chart.Axis{Label: "completion time (ms)"}, Y: chart.Axis{Label: "share that takes longer", Log: true},
	}
	for _, r := range rows {
		s := chart.Series{Label: r.Scheme.Label, Tint: c.colour(r.Scheme.Label)}
		add := func(share float64, of func(*Result) []float64, q int) {
			var at mean
			for _, run := range r.Runs {
				if list := of(run); q < len(list) && list[q] > 0 {
					at.add(list[q])
				}
			}
			if v := at.value(); v > 0 {
				s.X, s.Y = append(s.X, v), append(s.Y, share)
			}
		}
		for q := range 100 {
			add(1-float64(q)/100, func(run *Result) []float64 { return run.Plots.FCT }, q)
		}
		for q := range 9 {
			add(0.009-float64(q)/1000, func(run *Result) []float64 { return run.Plots.Tail }, q)
		}
		f.Series = append(f.Series, s)
	}
	return f
}

// drawFailed draws the first metric over the number of failed links, if cases differ in
// it.
func (c *Comparison) drawFailed() *chart.Chart {
	m, err := c.Experiment.Metric(c.Experiment.Metrics[0])
	if err != nil {
		return nil // the metric was checked with the experiment
	}
	rows := heaviest(lists.Filter(c.Rows, func(r *Row) bool { return len(r.Runs) > 0 && r.network != nil }))
	for len(rows) > 0 {
		first := rows[0]
		alike := lists.Filter(rows, func(r *Row) bool { return sameButFailures(first.Case, r.Case) })
		slices.SortStableFunc(alike, func(a, b *Row) int { return cmp.Compare(failedLinks(a), failedLinks(b)) })
		if failedLinks(alike[0]) < failedLinks(alike[len(alike)-1]) {
			rows = alike
			break
		}
		rows = lists.Filter(rows, func(r *Row) bool { return !sameButFailures(first.Case, r.Case) })
	}
	if len(rows) == 0 {
		return nil
	}
	f := &chart.Chart{
		Name: "failed", Title: m.Key + " over the number of failed links", About: m.About + ". A point for each case. " + overSeeds,
		X: chart.Axis{Label: "failed links"}, Y: chart.Axis{Label: m.Label()},
	}
	for _, label := range labels(rows) {
		s := chart.Series{Label: label, Marks: true, Tint: c.colour(label)}
		for _, r := range rows {
			if r.Scheme.Label == label {
				e := r.Estimate(m.Key)
				s.X, s.Y, s.Half = append(s.X, float64(failedLinks(r))), append(s.Y, e.Mean), append(s.Half, e.Half)
			}
		}
		f.Series = append(f.Series, s)
	}
	return f
}

// sameButFailures reports whether two cases differ only in the links that fail.
func sameButFailures(a, b *spec.Case) bool {
	whole := func(c *spec.Case) spec.Setting {
		s := c.Setting
		s.Fail = nil
		s.Links = lists.Filter(s.Links, func(l spec.LinkChange) bool { return !l.Down })
		s.Faults = lists.Filter(s.Faults, func(f spec.Fault) bool { return !f.Down })
		return s
	}
	return reflect.DeepEqual(whole(a), whole(b))
}

// failedLinks counts the links that are down from the start or fail later.
func failedLinks(r *Row) int {
	down := map[int]bool{}
	for i, l := range r.network.Links {
		if l.Down {
			down[i] = true
		}
	}
	for _, f := range r.Case.Faults {
		if !f.Down {
			continue
		}
		links, _ := r.network.FindLinks(f.Link) // the link was checked with the experiment
		for i, l := range r.network.Links {
			if slices.Contains(links, i) || f.Switch != "" && (l.A.Node == f.Switch || l.B.Node == f.Switch) {
				down[i] = true
			}
		}
	}
	return len(down)
}
