package lab

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/p4lb/p4lb/internal/lab/spec"
	"github.com/p4lb/p4lb/internal/network/fabric"
	"github.com/p4lb/p4lb/internal/text/lists"
)

// noVerdictAbove is the percentage of unfinished flows from which on completion times
// are not compared: the time until the end of the run stands in for theirs.
const noVerdictAbove = 1.0

// unfinished returns the percentage of the row's flows that had not ended when the
// runs did.
func (r *Row) unfinished() float64 {
	if v := r.Estimate("unfinished").Mean; !math.IsNaN(v) {
		return v
	}
	return 0
}

// timed reports whether a metric depends on completion times.
func timed(metric string) bool {
	base, _, _ := strings.Cut(metric, ":")
	for _, prefix := range []string{"fct-", "slowdown-", "request-", "flow-rate"} {
		if strings.HasPrefix(base, prefix) {
			return true
		}
	}
	return false
}

// cell returns a metric of the row as tables show it. A completion time is a lower
// bound if some flows did not end.
func (r *Row) cell(metric string) string {
	e := r.Estimate(metric)
	if timed(metric) && !strings.HasPrefix(metric, "flow-rate") && r.unfinished() > 0 && !math.IsNaN(e.Mean) {
		return "≥ " + e.String()
	}
	return e.String()
}

// undecidable returns why completion times of rows are not compared; "" if they are.
func undecidable(metric string, rows ...*Row) string {
	if !timed(metric) {
		return ""
	}
	for _, r := range rows {
		if u := r.unfinished(); u > noVerdictAbove {
			return fmt.Sprintf("%s %% of the flows of %s unfinished", points(u), r.Scheme.Label)
		}
	}
	return ""
}

// paths returns how many ports upwards the leaves have that send, on average; 0 if
// the network is not known.
func (r *Row) paths() float64 {
	var all mean
	if r.network != nil {
		for _, leaf := range r.network.Leaves() {
			up := lists.Filter(r.network.Ports(leaf.Name), func(p fabric.Port) bool { return p.PeerTier > leaf.Role.Tier() && !p.Down })
			if len(up) > 0 {
				all.add(float64(len(up)))
			}
		}
	}
	if all.n == 0 {
		return 0
	}
	return all.value()
}

// singlePath reports whether the row's leaves send along one of several paths.
func (r *Row) singlePath() bool {
	n, used := r.paths(), r.Estimate(pathsUsed).Mean
	return n > 1 && used > 0 && used/100*n < 1.5
}

// The metrics that tables show whenever they matter, requested or not.
const (
	unfinishedFlows = "unfinished"
	pathsUsed       = "paths-used"
)

// extra returns the metrics that the table shows although nobody asked for them: the
// unfinished flows if there are any, and the paths used if a row uses one of several.
func (c *Comparison) extra() []string {
	var list []string
	add := func(metric string, matters func(*Row) bool) {
		for _, r := range c.Rows {
			if len(r.Runs) > 0 && matters(r) && !slices.Contains(c.Experiment.Metrics, metric) {
				list = append(list, metric)
				return
			}
		}
	}
	add(unfinishedFlows, func(r *Row) bool { return r.unfinished() > 0 })
	add(pathsUsed, (*Row).singlePath)
	return list
}

// cautions returns what a reader of the table has to know of its rows: which of them
// have too many unfinished flows to be compared, and which use one path of several.
func (c *Comparison) cautions() []string {
	var lost, single []string
	for _, r := range c.Rows {
		if len(r.Runs) == 0 {
			continue
		}
		name := c.where(Finding{Case: r.Case.Name, Load: r.Load}) + r.Scheme.Label
		if u := r.unfinished(); u > noVerdictAbove {
			lost = append(lost, fmt.Sprintf("%s (%s %%)", name, points(u)))
		}
		if r.singlePath() {
			single = append(single, fmt.Sprintf("%s (1 of %s)", name, spec.Number(math.Round(r.paths()))))
		}
	}
	var lines []string
	if len(lost) > 0 {
		lines = append(lines, "No verdict: more than 1 % of the flows did not finish with "+andList(lost)+"; their completion times are lower bounds.")
	}
	if len(single) > 0 {
		lines = append(lines, "One path only: "+andList(single)+". A comparison with such a row is not one of load balancers.")
	}
	return lines
}
