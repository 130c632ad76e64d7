package lab

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/p4lb/p4lb/internal/lab/chart"
	"github.com/p4lb/p4lb/internal/lab/spec"
	"github.com/p4lb/p4lb/internal/network/fabric"
	"github.com/p4lb/p4lb/internal/text/lists"
	"github.com/p4lb/p4lb/internal/text/plain"
)

// Steps are the messages of one execution of a collective operation, in columns.
type Steps struct {
	Hosts []string  `json:"hosts"` // the senders
	Rank  []int     `json:"rank"`  // of each message, its place in Hosts
	Step  []int     `json:"step"`  // how many messages precede it in its longest chain
	Start []float64 `json:"start_ms"`
	End   []float64 `json:"end_ms"`
}

// Uses are the utilisations of links over time.
type Uses struct {
	Links []string    `json:"links"`
	To    []float64   `json:"to_ms"` // the ends of the intervals, of which the first begins at 0
	Use   [][]float64 `json:"use"`   // by link and interval, 0 to 1
}

// The largest charts of messages and links.
const (
	maxSpans    = 2048
	maxSenders  = 32
	maxUseTimes = 60
)

// steps returns the messages of the first collective, or nil if there are too many.
func steps(topo *fabric.Topology, flows []*outcome) *Steps {
	var first *spec.Instance
	depth := make([]int, len(flows))
	out := &Steps{}
	at := map[int]int{}
	for _, i := range inOrder(flows) {
		f := flows[i]
		if f.Instance == nil {
			continue
		}
		if first == nil {
			first = f.Instance
		}
		if f.Instance != first {
			continue
		}
		for _, p := range predecessors(f.Waits) {
			if flows[p].Instance == first {
				depth[i] = max(depth[i], depth[p]+1)
			}
		}
		if f.Compute || f.Finished == 0 {
			continue
		}
		if _, ok := at[f.Src]; !ok {
			if len(at) == maxSenders {
				continue
			}
			at[f.Src] = 0
		}
		if len(out.Rank) == maxSpans {
			return nil
		}
		out.Rank, out.Step = append(out.Rank, f.Src), append(out.Step, depth[i])
		out.Start, out.End = append(out.Start, round(f.Started.Seconds()*1e3)), append(out.End, round(f.Finished.Seconds()*1e3))
	}
	if len(out.Rank) == 0 {
		return nil
	}
	for src := range topo.Hosts {
		if _, ok := at[src]; ok {
			at[src] = len(out.Hosts)
			out.Hosts = append(out.Hosts, topo.Hosts[src].Name)
		}
	}
	for k, src := range out.Rank {
		out.Rank[k] = at[src]
	}
	return out
}

// uses returns the utilisations of the links upwards until the last was in use.
func (s *sampler) uses() *Uses {
	const most = 32
	list := s.up[:min(most, len(s.up))]
	last := 0
	for _, w := range list {
		for k, bytes := range w.slots {
			if bytes > 0 {
				last = max(last, k+1)
			}
		}
	}
	if last == 0 {
		return nil
	}
	each := (last + maxUseTimes - 1) / maxUseTimes
	out := &Uses{}
	start := s.r.Case.WarmupTime()
	for k := 0; k < last; k += each {
		end := start + s.interval*time.Duration(min(k+each, last))
		out.To = append(out.To, round(end.Seconds()*1e3))
	}
	for _, w := range list {
		out.Links = append(out.Links, w.name)
		var use []float64
		for k := 0; k < last; k += each {
			slots := w.slots[min(k, len(w.slots)):min(k+each, len(w.slots))]
			sum := int64(0)
			for _, b := range slots {
				sum += b
			}
			full := float64(w.full) / 8 * s.interval.Seconds() * float64(max(1, len(slots)))
			use = append(use, round(min(1, float64(sum)/full)))
		}
		out.Use = append(out.Use, use)
	}
	return out
}

// tails are the quantiles beyond 99 % that a tail has.
func tails(fct []float64) []float64 {
	if len(fct) < 1000 {
		return nil
	}
	var list []float64
	for q := 991; q < 1000; q++ {
		list = append(list, round(percentile(fct, float64(q)/1000)))
	}
	return list
}

// hue is the number of colours that steps take in turn.
const hue = 8

// drawSteps draws the messages of a collective by rank and time.
func (c *Comparison) drawSteps(r *Row) *chart.Chart {
	p := r.Runs[0].Plots.Steps
	if p == nil {
		return nil
	}
	most := slices.Max(p.Step) + 1
	f := &chart.Chart{
		Name: "steps-" + plain.Folder(r.Scheme.Label), Title: "Messages of the collective with " + r.Scheme.Label, Wide: true,
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
		s.Hints = append(s.Hints, fmt.Sprintf("%s, step %d: %.4g to %.4g ms", p.Hosts[p.Rank[k]], p.Step[k], p.Start[k], p.End[k]))
	}
	for i := range f.Series {
		s := &f.Series[i]
		for range s.X {
			s.Shade = append(s.Shade, 0.75) // messages of one sender overlap
		}
	}
	return f
}

// drawUses draws the utilisation of the links upwards over time.
func (c *Comparison) drawUses(r *Row) *chart.Chart {
	p := r.Runs[0].Plots.Uses
	if p == nil {
		return nil
	}
	s := chart.Series{Label: r.Scheme.Label, Kind: chart.Spans, Tint: c.tint(r.Scheme.Label)}
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
		About: fmt.Sprintf("Utilisation of the leaves' links upwards in the run with seed %d: the darker, the closer to the rate of the link.", r.Runs[0].Seed),
		X:     chart.Axis{Label: "time (ms)"}, Y: chart.Axis{Names: p.Links}, Series: []chart.Series{s},
	}
}

// maxDetailed is the number of schemes of a case with charts of their own.
const maxDetailed = 6

// details draws the charts that a scheme has alone.
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

// drawIdeal draws completion times of collectives beside their ideals.
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

// drawTail draws the share of flows that take longer than a time.
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
		s := chart.Series{Label: r.Scheme.Label, Tint: c.tint(r.Scheme.Label)}
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
	m, err := spec.MetricNamed(c.Experiment.Metrics[0], c.Experiment.Classes)
	if err != nil {
		return nil // it has been checked
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
		s := chart.Series{Label: label, Marks: true, Tint: c.tint(label)}
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
		links, _ := r.network.FindLinks(f.Link) // it has been checked
		for i, l := range r.network.Links {
			if slices.Contains(links, i) || f.Switch != "" && (l.A.Node == f.Switch || l.B.Node == f.Switch) {
				down[i] = true
			}
		}
	}
	return len(down)
}
