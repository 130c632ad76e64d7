package lab

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/p4lb/p4lb/internal/lab/chart"
	"github.com/p4lb/p4lb/internal/lab/spec"
)

// A CollectiveProgress describes how far the collectives of a run have progressed.
type CollectiveProgress struct {
	Text    string
	Figures []*chart.Chart
}

// A collectiveView draws the report's figures during a run, for the messages so far.
type collectiveView struct {
	r      *running
	order  []int // order of flows; nil: not known yet
	depth  []int32
	ideals map[*spec.Instance]time.Duration
}

// An attempt is a started execution of a collective.
type attempt struct {
	*spec.Instance
	begin, end    time.Duration
	all, finished int // number of messages
	begun         int
}

// maxAttempts is the number of executions drawn next to their ideal times: the latest ones.
const maxAttempts = 12

// now returns the progress at the present time.
func (v *collectiveView) now() *CollectiveProgress {
	r := v.r
	if v.order == nil {
		v.order = inOrder(r.flows)
		v.depth, v.ideals = depths(r.flows, v.order), idealTimes(r.topo, r.flows)
	}
	now := r.net.Now()
	all := attempts(r.flows, now)
	ended, arrived, messages := 0, 0, 0
	for _, a := range all {
		if a.finished == a.all {
			ended++
		}
		arrived, messages = arrived+a.finished, messages+a.all
	}
	p := &CollectiveProgress{Text: fmt.Sprintf("%d of %d collectives and %d of %d messages have ended", ended, len(all), arrived, messages)}
	begun := slices.DeleteFunc(all, func(a *attempt) bool { return a.begun == 0 })
	if len(begun) == 0 {
		return p
	}
	slices.SortStableFunc(begun, func(a, b *attempt) int { return cmp.Compare(a.begin, b.begin) })
	result := &Result{Seed: r.Seed, Plots: Plots{Steps: v.messages(begun, now), Uses: r.sampler.uses()}}
	result.Plots.FCT, result.Plots.Tail = v.quantiles()
	row := &Row{Case: r.Case, Scheme: r.Scheme, Load: r.Load, Runs: []*Result{result}}
	c := &Comparison{Experiment: r.x, Rows: []*Row{row}}
	p.Figures = append(p.Figures, v.drawAttempts(begun))
	if len(result.Plots.FCT) > 0 {
		if f := c.drawTail(c.Rows); f != nil {
			p.Figures = append(p.Figures, f)
		}
	}
	p.Figures = append(p.Figures, c.details(c.Rows)...)
	return p
}

// attempts returns the executions of collectives, in the order of their first flows.
func attempts(flows []*outcome, now time.Duration) []*attempt {
	var list []*attempt
	places := map[*spec.Instance]*attempt{}
	for _, f := range flows {
		if f.Instance == nil || f.Compute {
			continue
		}
		a := places[f.Instance]
		if a == nil {
			a = &attempt{Instance: f.Instance, begin: now}
			places[f.Instance] = a
			list = append(list, a)
		}
		a.all++
		if f.Finished > 0 {
			a.finished++
			a.end = max(a.end, f.Finished)
		}
		if f.Sent > 0 {
			a.begun++
			a.begin = min(a.begin, f.Started)
		}
	}
	for _, a := range list {
		if a.finished < a.all {
			a.end = now
		}
	}
	return list
}

// messages returns the messages of the latest executions, of as many as fit in a chart.
func (v *collectiveView) messages(begun []*attempt, now time.Duration) *Steps {
	shown := map[*spec.Instance]bool{}
	room := maxSpans
	for _, a := range slices.Backward(begun) {
		if room -= a.begun; room < 0 {
			break
		}
		shown[a.Instance] = true
	}
	return messages(v.r.topo, v.r.flows, v.order, v.depth, func(x *spec.Instance) bool { return shown[x] }, now)
}

// quantiles returns the quantiles of the completion times of finished messages.
func (v *collectiveView) quantiles() (fct, tail []float64) {
	var times []float64
	for _, f := range v.r.flows {
		if f.counts && f.Finished > 0 {
			times = append(times, fctMS(f))
		}
	}
	if len(times) == 0 {
		return nil, nil
	}
	slices.Sort(times)
	for q := 0; q <= 100; q++ {
		fct = append(fct, round(percentile(times, float64(q)/100)))
	}
	return fct, tails(times)
}

// drawAttempts draws the times so far of the latest executions next to their ideal times.
func (v *collectiveView) drawAttempts(begun []*attempt) *chart.Chart {
	first := max(0, len(begun)-maxAttempts)
	f := &chart.Chart{
		Name: "progress", Title: "Collective completion time so far and its ideal",
		About: "The ideal is a lower bound from the rates of hosts and the chain of messages.",
		Y:     chart.Axis{Label: "cct (ms)"},
	}
	ended, going := chart.Series{Label: "ended", Kind: chart.Bars}, chart.Series{Label: "under way", Kind: chart.Bars, Tint: 1}
	ideal := chart.Series{Label: "ideal", Kind: chart.Hollow, Tint: 6}
	for i, a := range begun[first:] {
		f.X.Names = append(f.X.Names, fmt.Sprintf("%s %d", cmp.Or(a.Kind, "flow list"), first+i+1))
		s := &ended
		if a.finished < a.all {
			s = &going
		}
		s.X, s.Y = append(s.X, float64(i)), append(s.Y, (a.end-a.begin).Seconds()*1e3)
		ideal.X, ideal.Y = append(ideal.X, float64(i)), append(ideal.Y, v.ideals[a.Instance].Seconds()*1e3)
	}
	for _, s := range []chart.Series{ended, going, ideal} {
		if len(s.X) > 0 {
			f.Series = append(f.Series, s)
		}
	}
	return f
}
