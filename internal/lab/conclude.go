package lab

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/p4lb/p4lb/internal/lab/spec"
	"github.com/p4lb/p4lb/internal/text/lists"
)

// A finding compares the experiment's first scheme with another one by the first metric
// of the table.
type finding struct {
	Case   string
	Load   float64
	Base   string // label of the first scheme
	Other  string
	Metric string

	// Saved is the percentage by which Base is below Other, paired by seed.
	Saved Estimate
	// NoVerdict is the reason why the two are not compared; "" if they are.
	NoVerdict string
}

// findings lists the comparisons of the first scheme, row by row.
func (c *Comparison) findings() []finding {
	var list []finding
	for _, r := range c.Rows {
		if f, ok := c.finding(r); ok {
			list = append(list, f)
		}
	}
	return list
}

// finding compares the first scheme with a row. It returns false if one of them has not run.
func (c *Comparison) finding(r *Row) (finding, bool) {
	x := c.Experiment
	f := finding{Case: r.Case.Name, Load: r.Load, Base: x.Schemes[0].Label, Other: r.Scheme.Label, Metric: x.Metrics[0]}
	base := c.Row(f.Case, f.Base, f.Load)
	if base == nil || base == r || len(r.Runs) == 0 {
		return f, false
	}
	var err error
	f.Saved, err = base.against(r, f.Metric)
	f.NoVerdict = undecidable(f.Metric, base, r)
	return f, err == nil && !math.IsNaN(f.Saved.Mean)
}

// clear reports whether the difference is significant.
func (f finding) clear() bool { return f.Saved.excludes(0) }

// level reports whether the difference is too small to be visible in the printed
// figures. This is common if the hosts are the bottleneck.
func (f finding) level() bool {
	const shown = 0.05 // percent; points prints one decimal
	return f.Saved.N > 1 && math.Abs(f.Saved.Mean)+f.Saved.Half < shown
}

// String describes the finding in words, such as 27 % less than drill (±21).
func (f finding) String() string {
	switch {
	case f.NoVerdict != "":
		return "no verdict: " + f.NoVerdict
	case f.Saved.N < 2:
		return f.size() + " (one seed)"
	case f.level():
		return "level with " + f.Other
	case !f.clear():
		return fmt.Sprintf("no significant difference (%s ±%s %%)", points(-f.Saved.Mean), points(f.Saved.Half))
	}
	return fmt.Sprintf("%s (±%s)", f.size(), points(f.Saved.Half))
}

// size returns the difference without its interval.
func (f finding) size() string {
	word := "less"
	if f.Saved.Mean < 0 {
		word = "more"
	}
	return fmt.Sprintf("%s %% %s than %s", points(math.Abs(f.Saved.Mean)), word, f.Other)
}

// points formats a percentage with two significant digits.
func points(v float64) string {
	if math.Abs(v) < 0.05 {
		return "0.0" // avoids -0.0
	}
	if math.Abs(v) >= 9.95 {
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.1f", v)
}

// Conclusion summarises the table in a few sentences: for each case and load the
// significant differences of the first scheme, the seeds that the others would need,
// and the bottleneck.
func (c *Comparison) Conclusion() []string {
	const most = 6
	var lines []string
	groups := 0
	var group []finding
	flush := func() {
		if len(group) > 0 {
			if groups++; groups <= most {
				lines = append(lines, c.where(group[0])+conclude(group))
			}
		}
		group = nil
	}
	for _, f := range c.findings() {
		if f.NoVerdict != "" {
			continue
		}
		if len(group) > 0 && (group[0].Case != f.Case || group[0].Load != f.Load) {
			flush()
		}
		group = append(group, f)
	}
	flush()
	if groups > most {
		lines = append(lines, fmt.Sprintf("The last column of the table has %d more cases and loads.", groups-most))
	}
	lines = append(lines, c.cautions()...)
	if line := c.limits(); line != "" {
		lines = append(lines, line)
	}
	return lines
}

// warned returns the names of the warnings that figures show, or "".
func (c *Comparison) warned() string {
	var rules []string
	for _, w := range c.Warnings {
		if w.Reason == "" {
			rules = lists.Add(rules, w.Rule)
		}
	}
	if len(rules) == 0 {
		return ""
	}
	return "Warnings: " + strings.Join(rules, ", ")
}

// where names the case and the load, if the experiment has several.
func (c *Comparison) where(f finding) string {
	var parts []string
	if len(c.Experiment.Cases) > 1 {
		parts = append(parts, f.Case)
	}
	if c.severalLoads() {
		parts = append(parts, "load "+spec.Number(f.Load))
	}
	if len(parts) == 0 {
		return ""
	}
	return strings.Join(parts, ", ") + ": "
}

// conclude returns sentences with the findings of one case and load.
func conclude(list []finding) string {
	var clear, open []string
	seeds := 0.0
	for _, f := range list {
		if f.clear() || f.level() {
			clear = append(clear, f.String())
			continue
		}
		open = append(open, f.Other)
		seeds = max(seeds, f.Saved.seeds(0))
	}
	head := fmt.Sprintf("%s of %s: ", list[0].Metric, list[0].Base)
	if len(clear) > 0 {
		head += andList(clear) + "."
	}
	if len(open) == 0 {
		return head
	}
	if len(clear) > 0 {
		head += " "
	}
	switch text := head + "No significant difference from " + andList(open); {
	case list[0].Saved.N < 2:
		return head + "One seed gives no confidence interval for " + andList(open) + "; use at least 5."
	case seeds > 1000:
		return text + "; more than 1000 seeds would be needed."
	default:
		return text + fmt.Sprintf("; about %.0f seeds would be needed.", seeds)
	}
}

// seeds estimates how many seeds are needed to distinguish the mean from a value, because the
// half-width falls with the square root of their number. It is infinite if no number suffices.
func (e Estimate) seeds(from float64) float64 {
	off := math.Abs(e.Mean - from)
	if e.N < 2 || off == 0 {
		return math.Inf(1)
	}
	return max(float64(e.N+1), math.Ceil(float64(e.N)*(e.Half/off)*(e.Half/off)))
}

func andList(list []string) string {
	n := len(list)
	if n < 2 {
		return strings.Join(list, "")
	}
	return strings.Join(list[:n-1], ", ") + " and " + list[n-1]
}

// limits names the bottleneck and the number of flows of a run. A load balancer
// distributes load over the links between switches: if the hosts are the bottleneck,
// schemes hardly differ.
func (c *Comparison) limits() string {
	if c.World != Sim || len(c.Rows) == 0 || len(c.Experiment.Cases) > 1 {
		return ""
	}
	r := c.Rows[len(c.Rows)-1]
	if r.network == nil {
		return ""
	}
	o, ok := r.Case.Offer(r.network, r.Load)
	if !ok {
		return ""
	}
	flows := fmt.Sprintf("About %s flows a run", thousands(o.Flows))
	if c.severalLoads() {
		flows += " at load " + spec.Number(r.Load)
	}
	if o.Hosts <= o.Fabric {
		return fmt.Sprintf("Bottleneck: the fabric (offered load %.0f %% of the fabric, %.0f %% of the hosts). %s.", 100*o.Fabric, 100*o.Hosts, flows)
	}
	// With load-of: fabric, the hosts need more capacity than the fabric at this
	// load.
	advice := "use load-of: fabric"
	if of := r.Case.Traffic[0].LoadOf; of == spec.OfFabric || o.Hosts/o.Fabric*r.Load > 1 {
		advice = "use more or faster hosts, or slower links between switches"
	}
	return fmt.Sprintf("Bottleneck: the hosts (offered load %.0f %% of the hosts, %.0f %% of the fabric), so load balancers differ little; %s. %s.", 100*o.Hosts, 100*o.Fabric, advice, flows)
}

// undecidable returns the reason why completion times of rows are not compared; "" if they are.
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

// cautions returns warnings about rows: too many unfinished flows, only one of several paths
// used, or source ports that senders choose but the scheme ignores.
func (c *Comparison) cautions() []string {
	var lost, none, loops, single, portless []string
	for _, r := range c.Rows {
		if len(r.Runs) == 0 {
			continue
		}
		name := c.where(finding{Case: r.Case.Name, Load: r.Load}) + r.Scheme.Label
		if u := r.unfinished(); u > noVerdictAbove {
			lost = append(lost, fmt.Sprintf("%s (%s %%)", name, points(u)))
			if u == 100 {
				none = append(none, name+r.Runs[0].why())
			}
		}
		if n := r.Runs[0].Lost[noRound]; n > 0 && r.unfinished() < 100 {
			loops = append(loops, fmt.Sprintf("%s (%s packets%s)", name, thousands(float64(n)), r.Runs[0].lastRounds()))
		}
		if r.Case.Transport.Sprays() && r.Scheme.IgnoresPorts() {
			portless = append(portless, name)
		}
		if r.singlePath() {
			single = append(single, fmt.Sprintf("%s (1 of %s)", name, spec.Number(math.Round(r.paths()))))
		}
	}
	var lines []string
	if len(none) > 0 {
		lines = append(lines, "No flow finished with "+strings.Join(none, ". No flow finished with ")+".")
	}
	if len(lost) > 0 {
		lines = append(lines, "No verdict: more than 1 % of the flows did not finish with "+andList(lost)+"; their completion times are lower bounds.")
	}
	if len(loops) > 0 {
		lines = append(lines, "Packets loop in switches until no round is left, with "+andList(loops)+".")
	}
	if len(single) > 0 {
		lines = append(lines, "One path only: "+andList(single)+". Such a row has nothing to balance, so a comparison with it shows no effect of load balancing.")
	}
	if len(portless) > 0 {
		lines = append(lines, "Source ports have no effect with "+andList(portless)+": paths do not depend on them, so transport.entropy balances nothing there.")
	}
	return lines
}

// why returns the main reason for packet loss in a run, and its alerts, as the end of a sentence.
func (r *Result) why() string {
	var parts []string
	most := ""
	for _, reason := range slices.Sorted(maps.Keys(r.Lost)) {
		if reason == "consumed" {
			continue // the program ends copies that it has made for itself in every run
		}
		if most == "" || r.Lost[reason] > r.Lost[most] {
			most = reason
		}
	}
	if most != "" {
		parts = append(parts, fmt.Sprintf("%s packets lost (%s)", thousands(float64(r.Lost[most])), most))
	}
	parts = append(parts, r.Alerts...)
	if len(parts) == 0 {
		return ""
	}
	return ": " + strings.Join(parts, "; ")
}

// lastRounds returns the alert about a packet without a round left, after a colon.
func (r *Result) lastRounds() string {
	i := slices.IndexFunc(r.Alerts, func(text string) bool { return strings.Contains(text, noRound) })
	if i < 0 {
		return ""
	}
	return ": " + r.Alerts[i]
}

// thousands formats a count with thousands separators, such as 1,010.
func thousands(v float64) string {
	digit := math.Pow(10, max(0, math.Floor(math.Log10(max(v, 1)))-2))
	s := fmt.Sprintf("%.0f", math.Round(v/digit)*digit)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// Brief returns the table split to fit the given number of columns. The first table has
// as many metrics as fit, at least one, with the comparison and the metrics of extra.
// Further tables have the other metrics, if the experiment names its metrics.
func (c *Comparison) Brief(columns int) [][][]string {
	table := c.Table()
	lead, words := c.leadColumns(), 0
	if len(c.Experiment.Schemes) > 1 {
		words = 1
	}
	width := make([]int, len(table[0]))
	for _, line := range table {
		for i, cell := range line {
			width[i] = max(width[i], utf8.RuneCountInString(cell)+2)
		}
	}
	first := sequence(0, lead)
	must := sequence(len(width)-words-len(c.extra()), len(width))
	rest := sequence(lead, must.from(len(width)))
	var list [][][]string
	for len(rest) > 0 || list == nil {
		room := columns + 2 // the last column has no space after it
		for _, i := range slices.Concat(first, must) {
			room -= width[i]
		}
		n := 0
		for n < len(rest) && (n == 0 || width[rest[n]] <= room) {
			room -= width[rest[n]]
			n++
		}
		list = append(list, pick(table, slices.Concat(first, rest[:n], must)))
		rest, must = rest[n:], nil
		if !c.Experiment.MetricsAsked {
			break
		}
	}
	return list
}

// A columnList is a list of column indices.
type columnList []int

func sequence(from, to int) columnList {
	var list columnList
	for i := from; i < to; i++ {
		list = append(list, i)
	}
	return list
}

// from returns the first index, or otherwise if the list is empty.
func (l columnList) from(otherwise int) int {
	if len(l) == 0 {
		return otherwise
	}
	return l[0]
}

// pick returns the table with some of its columns.
func pick(table [][]string, columns []int) [][]string {
	list := make([][]string, len(table))
	for i, line := range table {
		for _, c := range columns {
			list[i] = append(list[i], line[c])
		}
	}
	return list
}
