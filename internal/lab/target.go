package lab

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/p4lb/p4lb/internal/lab/spec"
	"github.com/p4lb/p4lb/internal/text/lists"
)

// A Verdict is the result of comparing a target with the measurement.
type Verdict string

// The verdicts.
const (
	// Within: the value is within bandPercent of the printed value, or between the printed
	// bounds.
	Within Verdict = "within band"
	// Holds: rows are in the printed order.
	Holds Verdict = "ordering holds"
	// otherSize: the difference has the printed sign and is significant, but has another size.
	otherSize Verdict = "same sign, other size"
	Unknown   Verdict = "not measured"

	// outOfReach: a ceiling shows that no scheme could save as much here.
	outOfReach Verdict = "out of reach here"
	// contrary: the difference has the opposite sign and is significant, or the interval excludes
	// the value.
	contrary Verdict = "contrary"
	// undecided: the interval is too wide, or there are too few seeds, to
	// distinguish the printed value from no effect, or neighbours of an ordering
	// from each other.
	undecided Verdict = "undecided"
	// decidedByChoice: the verdict depends on a detail that the paper omits (Target.Open).
	decidedByChoice Verdict = "decided by an open choice"
	// Level: the interval contains zero effect and excludes the printed value. For an ordering:
	// some neighbours are level, and the others are in order.
	Level Verdict = "not as printed"
	// NotComparable: the paper's quantity is defined differently (Target.NotComparable).
	NotComparable Verdict = "not comparable"
)

// verdicts lists the verdicts on measured targets.
var verdicts = []Verdict{Within, Holds, otherSize, outOfReach, decidedByChoice, NotComparable, Level, contrary, undecided}

// bandPercent is the half-width of the band around a printed number, in percent of it.
const bandPercent = 25

// An Outcome is a target with the measured result.
type Outcome struct {
	*spec.Target
	Experiment string
	Printed    string
	Measured   string
	Load       float64
	Verdict    Verdict
	Note       string
	P          float64 // probability that compared rows differ as much by chance; NaN if no rows are compared

	value Estimate // the measured value, if it is a number
}

// Judge compares the results with the targets of the experiment.
func (c *Comparison) Judge() []Outcome {
	list := c.measured()
	for i := range list {
		o := &list[i]
		if o.Verdict == Unknown {
			continue
		}
		switch here := string(o.Verdict); {
		case o.Open != "":
			o.Verdict, o.Note = decidedByChoice, "here "+here+"; "+o.Open
		case o.NotComparable != "":
			o.Verdict, o.Note = NotComparable, o.NotComparable
		}
	}
	return list
}

// measured is Judge, except that it ignores open choices and quantities that are
// not comparable.
func (c *Comparison) measured() []Outcome {
	var list []Outcome
	for i := range c.Experiment.Targets {
		t := &c.Experiment.Targets[i]
		var o Outcome
		switch {
		case len(t.Order) > 0:
			o = c.judgeOrder(t)
		case t.Against == "" && t.AgainstCase == "":
			o = c.judgeValue(t)
		default:
			o = c.judgePair(t)
		}
		if o.Verdict != Unknown {
			if why := undecidable(t.Metric, c.rowsFor(t, o.Load)...); why != "" {
				o.Verdict, o.Note = Unknown, why
			} else {
				c.applyCeilings(t, &o)
			}
		}
		if o.Verdict == Unknown {
			o.P = math.NaN()
		}
		o.Target, o.Experiment = t, c.Experiment.Name
		list = append(list, o)
	}
	return list
}

// rowsFor returns the rows that a target concerns, at a load.
func (c *Comparison) rowsFor(t *spec.Target, load float64) []*Row {
	var rows []*Row
	add := func(caseName, label string) {
		if r := c.Row(caseName, label, load); r != nil {
			rows = append(rows, r)
		}
	}
	for _, label := range t.Order {
		add(t.Case, label)
	}
	if len(t.Order) == 0 {
		add(t.Case, t.Of)
		if t.Against != "" || t.AgainstCase != "" {
			add(cmp.Or(t.AgainstCase, t.Case), cmp.Or(t.Against, t.Of))
		}
	}
	return rows
}

// loads lists the loads at which a target is evaluated.
func (c *Comparison) loads(t *spec.Target) []float64 {
	var all []float64
	for _, r := range c.Rows {
		if r.Case.Name == t.Case && len(r.Runs) > 0 {
			all = lists.Add(all, r.Load)
		}
	}
	switch {
	case t.Load > 0:
		return []float64{float64(t.Load)}
	case len(all) > 0 && !t.UpTo:
		return []float64{slices.Max(all)}
	}
	return all
}

// levelWithin is the difference in percent up to which neighbours of an ordering count
// as equal. An ordering in a paper is visible in its figure, where one percent is the
// width of a line.
const levelWithin = 1.0

// judgeOrder checks whether the rows are in the expected order and which neighbours
// differ significantly. Neighbours are level if the interval of their difference lies
// within levelWithin.
func (c *Comparison) judgeOrder(t *spec.Target) Outcome {
	o := Outcome{Printed: strings.Join(t.Order, " < ") + ours(t), Verdict: Unknown}
	loads := c.loads(t)
	if len(loads) == 0 {
		return o
	}
	o.Load = loads[0]
	var rows []*Row
	for _, label := range t.Order {
		r := c.Row(t.Case, label, o.Load)
		if r == nil || len(r.Runs) == 0 {
			o.Note = label + " has not run"
			return o
		}
		rows = append(rows, r)
	}
	order := slices.Clone(rows)
	slices.SortStableFunc(order, func(a, b *Row) int {
		return compareFloats(a.Estimate(t.Metric).Mean, b.Estimate(t.Metric).Mean)
	})
	parts := lists.Map(order, func(r *Row) string { return r.Scheme.Label + " " + digits(r.Estimate(t.Metric).Mean) })
	o.Measured = strings.Join(parts, " < ")
	holds, sure, wrong, need, level, within := 0, 0, 0, 0.0, 0, 0.0
	for i := 1; i < len(rows); i++ {
		e, err := rows[i-1].against(rows[i], t.Metric)
		if err == nil && !e.excludes(0) {
			need = max(need, e.seeds(0))
			if most := max(-e.low(), e.high()); e.N > 1 && most <= levelWithin {
				level++
				within = max(within, most)
			}
		}
		switch {
		case err == nil && e.Mean > 0:
			holds++
			if e.excludes(0) {
				sure++
			}
		case err == nil && e.excludes(0):
			wrong++
		}
	}
	n := len(rows) - 1
	ends, err := rows[0].against(rows[n], t.Metric)
	o.P = ends.p(0)
	o.Verdict, o.Note = undecided, fmt.Sprintf("%d of %d neighbours in order, %d beyond the 95 %% interval", holds, n, sure)
	if wrong > 0 {
		o.Verdict = contrary
		o.Note += fmt.Sprintf(", %d the other way beyond it", wrong)
	}
	if holds == n && err == nil && (ends.N < 2 || ends.excludes(0)) {
		o.Verdict = Holds
	}
	switch {
	case o.Verdict == undecided && level > 0 && sure+level == n:
		o.Verdict = Level
		o.Note += fmt.Sprintf(", %d level: within %s %%", level, digits(within))
	case o.Verdict == undecided && ends.N > 1:
		o.Note += ", " + seedsNeeded(need) + " to tell all neighbours apart"
	}
	return o
}

// judgePair judges a reduction or ratio between two rows, or between two cases of one row.
func (c *Comparison) judgePair(t *spec.Target) Outcome {
	o := Outcome{Verdict: Unknown}
	var best Estimate
	for _, load := range c.loads(t) {
		e, err := c.pair(t, load)
		if err != nil {
			o.Note = err.Error()
			continue
		}
		if o.Load == 0 || e.Mean > best.Mean {
			best, o.Load = e, load
		}
	}
	unit := " %"
	if t.Ratio {
		unit = " x"
	}
	o.Printed = printedText(t, unit)
	if o.Load == 0 {
		return o
	}
	o.Note = ""
	o.Measured, o.value = best.String()+unit, best
	o.Verdict, o.P = verdictOn(t, best), best.p(noEffect(t))
	switch {
	case o.Verdict == undecided:
		o.Note = seedsNeeded(min(best.seeds(noEffect(t)), best.seeds(nearestBound(t, best.Mean))))
	case o.Verdict == Level && best == (Estimate{Mean: noEffect(t), N: best.N}):
		o.Note = "the same in all runs"
	case o.Verdict == Level && !best.excludes(noEffect(t)):
		o.Note = fmt.Sprintf("level: the interval ends at %s and %s%s", digits(best.low()), digits(best.high()), unit)
	}
	return o
}

// pair returns the reduction or ratio at a load.
func (c *Comparison) pair(t *spec.Target, load float64) (Estimate, error) {
	against, inCase := cmp.Or(t.Against, t.Of), cmp.Or(t.AgainstCase, t.Case)
	a, b := c.Row(t.Case, t.Of, load), c.Row(inCase, against, load)
	if a == nil || b == nil {
		return Estimate{}, fmt.Errorf("%s or %s has not run at load %g", t.Of, against, load)
	}
	if err := a.comparable(b); err != nil {
		return Estimate{}, err
	}
	return newEstimate(c.samples(t, load)), nil
}

// samples returns the measured values of a target at a load, by seed: a reduction, a
// ratio, a value, or for an ordering the number of neighbours in order.
func (c *Comparison) samples(t *spec.Target, load float64) []float64 {
	if len(t.Order) > 0 {
		return c.inOrder(t, load)
	}
	a := c.Row(t.Case, t.Of, load)
	if a == nil {
		return nil
	}
	list := a.values(t.Metric)
	if t.Against == "" && t.AgainstCase == "" {
		return list
	}
	b := c.Row(cmp.Or(t.AgainstCase, t.Case), cmp.Or(t.Against, t.Of), load)
	if b == nil || len(b.Runs) != len(a.Runs) {
		return nil
	}
	others := b.values(t.Metric)
	if !t.Ratio {
		return reductions(list, others)
	}
	for i := range list {
		list[i] /= others[i]
	}
	return list
}

// inOrder returns the number of neighbours that are in order, by seed.
func (c *Comparison) inOrder(t *spec.Target, load float64) (list []float64) {
	for k := 1; k < len(t.Order); k++ {
		a, b := c.Row(t.Case, t.Order[k-1], load), c.Row(t.Case, t.Order[k], load)
		if a == nil || b == nil || len(a.Runs) != len(b.Runs) {
			return nil
		}
		x, y := a.values(t.Metric), b.values(t.Metric)
		if list == nil {
			list = make([]float64, len(x))
		}
		for i := range list {
			if x[i] < y[i] {
				list[i]++
			}
		}
	}
	return list
}

// judgeValue judges a metric of one row.
func (c *Comparison) judgeValue(t *spec.Target) Outcome {
	o := Outcome{Printed: printedText(t, ""), Verdict: Unknown, P: math.NaN()}
	loads := c.loads(t)
	if len(loads) == 0 {
		return o
	}
	o.Load = loads[0]
	r := c.Row(t.Case, t.Of, o.Load)
	if r == nil || len(r.Runs) == 0 {
		o.Note = t.Of + " has not run"
		return o
	}
	e := r.Estimate(t.Metric)
	if math.IsNaN(e.Mean) {
		o.Note = "there was nothing to measure"
		return o
	}
	o.Measured, o.Verdict, o.value = e.String(), verdictOn(t, e), e
	if o.Verdict == undecided {
		o.Note = seedsNeeded(e.seeds(nearestBound(t, e.Mean)))
	}
	if e.N < len(r.Runs) {
		o.Note = fmt.Sprintf("in %d of %d runs alone", e.N, len(r.Runs))
		if e.N < 2 {
			o.Verdict = Unknown
		}
	}
	return o
}

// nearestBound returns the printed number that is nearest to a value.
func nearestBound(t *spec.Target, v float64) float64 {
	best := math.Inf(1)
	for _, p := range []*float64{t.Printed, t.AtLeast, t.AtMost} {
		if p != nil && math.Abs(*p-v) < math.Abs(best-v) {
			best = *p
		}
	}
	if t.Below {
		return levelWithin
	}
	return best
}

// printedText returns the printed statement.
func printedText(t *spec.Target, unit string) string {
	var text string
	switch {
	case t.Printed != nil && t.UpTo:
		text = "up to " + digits(*t.Printed) + unit
	case t.Printed != nil:
		text = digits(*t.Printed) + unit
	case t.AtLeast != nil && t.AtMost != nil:
		text = digits(*t.AtLeast) + " to " + digits(*t.AtMost) + unit
	case t.AtLeast != nil:
		text = "at least " + digits(*t.AtLeast) + unit
	case t.AtMost != nil:
		text = "at most " + digits(*t.AtMost) + unit
	default:
		text = "below"
	}
	return text + ours(t)
}

// ours describes the parts of a target that the paper does not print.
func ours(t *spec.Target) string {
	switch {
	case !t.Ours:
		return ""
	case t.Printed != nil:
		return " (our number)"
	case t.AtLeast != nil || t.AtMost != nil:
		return " (our bound)"
	}
	return " (our comparison)"
}

// verdictOn judges a number against a target.
func verdictOn(t *spec.Target, e Estimate) Verdict {
	pair := t.Against != "" || t.AgainstCase != ""
	none := noEffect(t)
	differs := !pair || e.N < 2 || e.excludes(none)
	if t.Below {
		return below(e)
	}
	in := t.AtLeast == nil || e.Mean >= *t.AtLeast
	in = in && (t.AtMost == nil || e.Mean <= *t.AtMost)
	if t.Printed != nil {
		in = in && math.Abs(e.Mean-*t.Printed) <= math.Abs(*t.Printed)*bandPercent/100
	}
	// If the band of a ratio contains 1, the ratio need not differ significantly
	// from 1.
	sure := differs || t.Ratio
	switch {
	case in && sure:
		return Within
	case pair && differs && side(t, e.Mean, none):
		return otherSize
	}
	return missed(t, e)
}

// side reports whether a value deviates from no effect in the printed direction.
func side(t *spec.Target, v, none float64) bool {
	switch {
	case t.Printed != nil:
		return (v-none)*(*t.Printed-none) > 0
	case t.AtLeast != nil && *t.AtLeast > none:
		return v > none
	case t.AtMost != nil && *t.AtMost < none:
		return v < none
	}
	return false
}

// below judges a reduction of which the paper prints only the direction.
func below(e Estimate) Verdict {
	switch {
	case e.N < 2:
		return undecided
	case e.excludes(0) && e.Mean > 0:
		return Holds
	case e.excludes(0):
		return contrary
	case max(-e.low(), e.high()) <= levelWithin:
		return Level
	}
	return undecided
}

// noEffect returns the value of a target's metric if two rows do not differ.
func noEffect(t *spec.Target) float64 {
	if t.Ratio {
		return 1
	}
	return 0
}

// missed returns the verdict for a number outside its band.
func missed(t *spec.Target, e Estimate) Verdict {
	against := t.Against != "" || t.AgainstCase != ""
	way := func(v float64) bool { return (e.Mean-noEffect(t))*(v-noEffect(t)) < 0 }
	switch {
	case e.N < 2:
		return undecided
	case against && t.Printed != nil && e.excludes(noEffect(t)) && way(*t.Printed):
		return contrary
	case against && t.AtLeast != nil && *t.AtLeast > noEffect(t) && e.high() < noEffect(t):
		return contrary
	case against && t.AtMost != nil && *t.AtMost < noEffect(t) && e.low() > noEffect(t):
		return contrary
	case !excludes(t, e):
		return undecided
	case against:
		return Level
	}
	return contrary
}

// excludes reports whether the interval excludes the printed value.
func excludes(t *spec.Target, e Estimate) bool {
	return t.Printed != nil && e.excludes(*t.Printed) || t.AtLeast != nil && e.high() < *t.AtLeast || t.AtMost != nil && e.low() > *t.AtMost
}

// seedsNeeded describes how many seeds a decision would need.
func seedsNeeded(seeds float64) string {
	switch {
	case math.IsInf(seeds, 1):
		return "fewer than two seeds have both values"
	case seeds > 1000:
		return "more than 1000 seeds would be needed"
	}
	return fmt.Sprintf("about %.0f seeds would be needed", seeds)
}

// Corrected describes how many of the differences remain significant after correction
// for their number (Holm); "" for fewer than two.
func Corrected(list []Outcome) string {
	p := slices.DeleteFunc(lists.Map(list, func(o Outcome) float64 { return o.P }), math.IsNaN)
	if len(p) < 2 {
		return ""
	}
	below := func(p []float64) int { return len(lists.Filter(p, func(v float64) bool { return v < sureAt })) }
	return fmt.Sprintf("of %d differences, %d are significant at 95 %%; after correction for the number of comparisons (Holm), %d", len(p), below(p), below(holm(p)))
}

// A reach is the upper bound of a ceiling.
type reach struct {
	kind string
	Estimate
}

// ceiling returns the highest ceiling of a target: the percentage by which its metric is below
// the compared row's.
func (c *Comparison) ceiling(t *spec.Target, load float64) (best reach, ok bool) {
	base := c.Row(t.Case, t.Against, load)
	if base == nil || t.Ratio || t.Against == "" {
		return best, false
	}
	for _, kind := range c.Experiment.Ceiling {
		label := t.Against
		if kind == spec.Oracle {
			label = spec.OracleRow
		}
		row := c.Row(spec.CeilingName(t.Case, kind), label, load)
		if row == nil {
			continue
		}
		if e, err := row.against(base, t.Metric); err == nil && e.N > 1 && (!ok || e.Mean > best.Mean) {
			best, ok = reach{kind, e}, true
		}
	}
	return best, ok
}

// applyCeilings changes the verdict of a target if no scheme could reach the printed number.
func (c *Comparison) applyCeilings(t *spec.Target, o *Outcome) {
	if o.Verdict == Within || t.Printed == nil || o.Load == 0 {
		return
	}
	if best, ok := c.ceiling(t, o.Load); ok && *t.Printed > best.high() {
		o.Verdict = outOfReach
		o.Note = fmt.Sprintf("the best ceiling, %s, saves %s %%", best.kind, best)
	}
}
