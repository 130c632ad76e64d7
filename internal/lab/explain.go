package lab

import (
	"bytes"
	"cmp"
	"context"
	"encoding/csv"
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"github.com/p4lb/p4lb/internal/lab/chart"
	"github.com/p4lb/p4lb/internal/lab/spec"
	"github.com/p4lb/p4lb/internal/text/lists"
	"github.com/p4lb/p4lb/internal/text/plain"
)

// An Effect is the effect of one choice on one target. It is either the change when only this
// choice differs from the file, or the average over a design that changes all choices.
type Effect struct {
	Target *spec.Target
	Choice string   // such as transport.rdma.nack: selective
	Among  bool     // averaged over the second design, from the first value to the last
	Value  Estimate // the target's value with the choice
	Change Estimate // change caused by the choice, paired by seed
	Spread float64  // Morris' design: how much the change depends on the other choices
	P      float64  // p-value, corrected for the number of effects (Holm)

	Verdict     Verdict // verdict with the choice
	levels      []int
	fileVerdict Verdict
}

// changesVerdict reports whether the choice alone changes the verdict, and its effect is significant.
func (e *Effect) changesVerdict() bool { return !e.Among && e.P < sureAt && e.Verdict != e.fileVerdict }

// A Confirmation is a setting that matched a target in the screening, run again with unused
// seeds.
type Confirmation struct {
	Target  *spec.Target
	Choice  string
	Outcome Outcome
	Seeds   spec.Seeds
}

// A Sensitivity lists the effects of open choices on targets.
type Sensitivity struct {
	Experiment *spec.Experiment
	Base       []Outcome
	Effects    []Effect
	Confirmed  []Confirmation
	Settings   int // number of settings tried
	Runs       int
	Seeds      spec.Seeds
}

// A screening contains the settings of an experiment that will be run.
type screening struct {
	r      *Runner
	x      *spec.Experiment
	all    []*spec.Experiment // the first is the experiment as written
	levels [][]int
	alone  int // the settings after the first that change one choice
}

// Explain runs the settings of an experiment's vary section and estimates the effects of its
// choices on the targets. Settings that match a target are run again with new seeds. Runs that a
// choice does not affect are computed once.
func (r *Runner) Explain(ctx context.Context, x *spec.Experiment) (*Sensitivity, error) {
	s, err := r.screening(x)
	if err != nil {
		return nil, err
	}
	runs, err := s.count()
	if err != nil {
		return nil, err
	}
	out := &Sensitivity{Experiment: x, Settings: len(s.all), Runs: runs, Seeds: x.Vary.Screened(x)}
	known := map[string]*Result{}
	results := make([]*Comparison, len(s.all))
	for i := range s.all {
		if results[i], err = s.run(ctx, s.all[i], "settings", s.levels[i], known); err != nil {
			return nil, err
		}
	}
	out.Base = results[0].measured()
	for i, o := range out.Base {
		out.Effects = append(out.Effects, s.effects(results, i, o)...)
	}
	for i, v := range holm(lists.Map(out.Effects, func(e Effect) float64 { return e.P })) {
		out.Effects[i].P = v
	}
	out.Confirmed, err = s.confirm(ctx, out)
	return out, err
}

// screening reads the experiment with each of the settings.
func (r *Runner) screening(x *spec.Experiment) (*screening, error) {
	v := x.Vary
	if v == nil {
		return nil, fmt.Errorf("%s has no variations: want vary: {open: {KEY: [VALUE, …]}}", x.Name)
	}
	if len(x.Targets) == 0 {
		return nil, fmt.Errorf("%s has no targets: choices have nothing to affect", x.Name)
	}
	s := &screening{r: r, x: x, alone: len(v.Alone())}
	s.levels = append([][]int{slices.Repeat([]int{-1}, len(v.Open))}, append(v.Alone(), v.Together()...)...)
	for _, levels := range s.levels {
		other, err := x.Variant(levels)
		if err != nil {
			return nil, err
		}
		other = other.OnlyFigure(x.Figure())
		other.Needed()
		if len(other.Targets) == 0 {
			return nil, fmt.Errorf("%s: no target of %s is of the cases that vary names: %s", x.Name, cmp.Or(x.Figure(), spec.AllFigures), strings.Join(v.Cases, ", "))
		}
		s.seed(other, v.Screened(x))
		s.all = append(s.all, other)
	}
	return s, nil
}

func (s *screening) seed(x *spec.Experiment, seeds spec.Seeds) {
	x.Seeds = seeds
	for i := range x.Cases {
		x.Cases[i].Seeds = seeds
	}
}

// count returns the number of runs, or an error if there are too many.
func (s *screening) count() (int, error) {
	specs := map[string]bool{}
	for i, x := range s.all {
		jobs, err := s.r.Jobs(x)
		if err != nil {
			return 0, fmt.Errorf("%s: %w", s.x.Vary.Describe(s.levels[i]), err)
		}
		for _, j := range jobs {
			specs[j.Key()] = true
		}
	}
	if most := cmp.Or(s.x.Vary.AtMost, spec.DefaultRuns); len(specs) > most {
		return 0, fmt.Errorf("vary of %s: %d settings are %d runs, more than %d: want fewer values or seeds, one figure, or at-most: %d under vary",
			s.x.Name, len(s.all), len(specs), most, len(specs))
	}
	return len(specs), nil
}

// run runs one setting. It reuses runs of earlier settings.
func (s *screening) run(ctx context.Context, x *spec.Experiment, what string, levels []int, known map[string]*Result) (*Comparison, error) {
	r := *s.r
	r.known, r.Record = known, nil
	if r.Dir != "" {
		r.Dir = filepath.Join(r.Dir, what, settingFolder(s.x.Vary, levels))
	}
	c, err := r.Run(ctx, x)
	if err != nil {
		return nil, err
	}
	for _, one := range c.Results {
		known[one.Spec] = one
	}
	return c, nil
}

// settingFolder returns the name of the folder for the runs of a setting.
func settingFolder(v *spec.Vary, levels []int) string {
	var parts []string
	for i, l := range levels {
		if l >= 0 {
			parts = append(parts, fmt.Sprintf("%d-%s", i, plain.Folder(v.Open[i].Levels[l].Text)))
		}
	}
	if parts == nil {
		return "base"
	}
	return strings.Join(parts, "_")
}

// effects estimates the effects of all choices on one target.
func (s *screening) effects(results []*Comparison, target int, base Outcome) (list []Effect) {
	t := base.Target
	before := results[0].samples(&s.all[0].Targets[target], base.Load)
	for i := 1; i <= s.alone; i++ {
		o := results[i].measured()[target]
		after := results[i].samples(&s.all[i].Targets[target], base.Load)
		e := Effect{
			Target: t, Choice: s.x.Vary.Describe(s.levels[i]), Value: newEstimate(after), Change: newEstimate(minus(after, before)),
			Verdict: o.Verdict, fileVerdict: base.Verdict, levels: s.levels[i],
		}
		if e.P = e.Change.p(0); e.Change.Half == 0 && e.Change.Mean == 0 {
			e.P = math.NaN() // the choice does not affect the target, so this is not a test
		}
		list = append(list, e)
	}
	if len(s.all) == s.alone+1 {
		return list
	}
	return append(list, s.among(results, target, base)...)
}

func minus(a, b []float64) []float64 {
	d := make([]float64, min(len(a), len(b)))
	for i := range d {
		d[i] = a[i] - b[i]
	}
	return d
}

// among estimates the effects in the second design. For a factorial design it is the
// mean with the last value minus the mean with the first; for Morris' design it is the
// mean elementary effect.
func (s *screening) among(results []*Comparison, target int, base Outcome) (list []Effect) {
	v := s.x.Vary
	first := s.alone + 1
	at := func(i int) []float64 { return results[i].samples(&s.all[i].Targets[target], base.Load) }
	for k := range v.Open {
		var changes [][]float64
		if v.Design == spec.Factorial {
			half := float64(len(s.all)-first) / 2
			sum := make([]float64, len(at(first)))
			for i := first; i < len(s.all); i++ {
				sign := -1 / half
				if s.levels[i][k] > 0 {
					sign = 1 / half
				}
				for n, value := range at(i) {
					sum[n] += sign * value
				}
			}
			changes = [][]float64{sum}
		} else {
			for i := first + 1; i < len(s.all); i++ {
				if step, ok := onlyStep(s.levels[i-1], s.levels[i]); ok && step == k {
					d := minus(at(i), at(i-1))
					if s.levels[i][k] < s.levels[i-1][k] {
						d = minus(at(i-1), at(i))
					}
					changes = append(changes, d)
				}
			}
		}
		o := v.Open[k]
		e := Effect{Target: base.Target, Among: true, Choice: fmt.Sprintf("%s: %s → %s", o.Key, o.Levels[0].Text, o.Levels[len(o.Levels)-1].Text)}
		e.Change, e.Spread = pooled(changes)
		e.P, e.Verdict, e.fileVerdict = e.Change.p(0), base.Verdict, base.Verdict
		list = append(list, e)
	}
	return list
}

// onlyStep returns the choice in which two settings differ, if it is the only one.
func onlyStep(a, b []int) (step int, ok bool) {
	n := 0
	for i := range a {
		if a[i] != b[i] {
			step, n = i, n+1
		}
	}
	return step, n == 1
}

// pooled returns the mean of several changes, by seed, and their standard deviation.
func pooled(changes [][]float64) (Estimate, float64) {
	if len(changes) == 0 {
		return newEstimate(nil), 0
	}
	mean := make([]float64, len(changes[0]))
	var each []float64
	for _, c := range changes {
		each = append(each, average(c))
		for i := range mean {
			mean[i] += c[i] / float64(len(changes))
		}
	}
	if len(each) < 2 {
		return newEstimate(mean), 0
	}
	return newEstimate(mean), math.Sqrt(variance(each))
}

// confirm runs the settings that match a printed target again with unused seeds, because some of
// many settings match by chance.
func (s *screening) confirm(ctx context.Context, out *Sensitivity) (list []Confirmation, err error) {
	fresh := s.x.Vary.Fresh(s.x)
	ran := map[string]*Comparison{}
	for i, base := range out.Base {
		if good(base.Verdict) {
			continue
		}
		var best *Effect
		for k := range out.Effects {
			e := &out.Effects[k]
			if e.Target == base.Target && !e.Among && good(e.Verdict) && (best == nil || e.Verdict == Within && best.Verdict != Within) {
				best = e
			}
		}
		if best == nil {
			continue
		}
		c := ran[best.Choice]
		if c == nil {
			x, err := s.x.Variant(best.levels)
			if err != nil {
				return nil, err
			}
			x = x.OnlyFigure(s.x.Figure())
			x.Needed()
			s.seed(x, fresh)
			if c, err = s.run(ctx, x, "confirmed", best.levels, map[string]*Result{}); err != nil {
				return nil, err
			}
			ran[best.Choice] = c
		}
		list = append(list, Confirmation{base.Target, best.Choice, c.measured()[i], fresh})
	}
	return list, nil
}

func good(v Verdict) bool { return v == Within || v == Holds }

// Table lists the effects by target, largest first. It lists insignificant effects only for
// targets without a significant one.
func (s *Sensitivity) Table() [][]string {
	table := [][]string{{"", "TARGET", "CHOICE", "CHANGE", "P (HOLM)", "VERDICT"}}
	for _, o := range s.Base {
		table = append(table, []string{o.Figure, o.Name, "as the file says: " + o.Measured, "", "", string(o.Verdict)})
		for _, e := range s.of(o.Target) {
			change, verdict := signed(e.Change), string(e.Verdict)
			if e.Among {
				change, verdict = change+", all others changing too", ""
				if e.Spread > 0 {
					change += ", spread " + digits(e.Spread)
				}
			}
			table = append(table, []string{"", "", e.Choice, change, chanceText(e.P), verdict})
		}
	}
	return table
}

// of returns the effects on a target, largest first.
func (s *Sensitivity) of(t *spec.Target) []Effect {
	list := lists.Filter(s.Effects, func(e Effect) bool { return e.Target == t })
	slices.SortStableFunc(list, func(a, b Effect) int {
		return compareFloats(-math.Abs(a.Change.Mean), -math.Abs(b.Change.Mean))
	})
	return list
}

// chanceText writes a p.
func chanceText(p float64) string {
	switch {
	case math.IsNaN(p):
		return "-"
	case p < 0.001:
		return "<0.001"
	}
	return digits(p)
}

// Summary describes, in one sentence per target, which choices decide its verdict.
func (s *Sensitivity) Summary() []string {
	var list []string
	for _, o := range s.Base {
		var moving []string
		for _, e := range s.of(o.Target) {
			if e.changesVerdict() {
				moving = append(moving, fmt.Sprintf("%s (%s, then %s)", e.Choice, signed(e.Change), e.Verdict))
			}
		}
		line := fmt.Sprintf("%s, %s: %s; ", o.Figure, o.Name, o.Verdict)
		if moving == nil {
			line += "no open choice changes this significantly"
		} else {
			line += "decided by " + strings.Join(moving, "; ")
		}
		for _, c := range s.Confirmed {
			if c.Target == o.Target {
				line += fmt.Sprintf("; with %s and fresh seeds: %s, %s", c.Choice, c.Outcome.Measured, c.Outcome.Verdict)
			}
		}
		list = append(list, line)
	}
	return append(list, fmt.Sprintf("%d settings were tried, in %d runs with the seeds %s; p is corrected by the method of Holm (%d)",
		s.Settings, s.Runs, seedsText(s.Seeds), s.tested()))
}

// tested returns the number of effects that were tested.
func (s *Sensitivity) tested() int {
	return len(lists.Filter(s.Effects, func(e Effect) bool { return !math.IsNaN(e.P) }))
}

func seedsText(list spec.Seeds) string {
	var parts []string
	for i := 0; i < len(list); {
		k := i
		for k+1 < len(list) && list[k+1] == list[k]+1 {
			k++
		}
		switch {
		case k > i+1:
			parts = append(parts, fmt.Sprintf("%d to %d", list[i], list[k]))
		case k == i+1:
			parts = append(parts, fmt.Sprint(list[i]), fmt.Sprint(list[k]))
		default:
			parts = append(parts, fmt.Sprint(list[i]))
		}
		i = k + 1
	}
	return strings.Join(parts, ", ")
}

// Markdown writes the sensitivity as a section of a document.
func (s *Sensitivity) Markdown(command string) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "### %s: effects of open choices\n\n`%s`\n\n", s.Experiment.Name, command)
	for i, line := range s.Table() {
		fmt.Fprintf(&b, "| %s |\n", strings.Join(line, " | "))
		if i == 0 {
			b.WriteString("|---|---|---|---|---|---|\n")
		}
	}
	b.WriteString("\n")
	for _, line := range s.Summary() {
		fmt.Fprintf(&b, "- %s.\n", line)
	}
	return b.Bytes()
}

// Keep writes the table, its figure and the summary into a folder.
func (s *Sensitivity) Keep(dir, command string) error {
	var table bytes.Buffer
	w := csv.NewWriter(&table)
	w.Write([]string{"figure", "target", "choice", "among", "value", "change", "ci95", "p_holm", "verdict"})
	for _, o := range s.Base {
		for _, e := range s.of(o.Target) {
			w.Write([]string{
				o.Figure, o.Name, e.Choice, fmt.Sprint(e.Among), fmt.Sprintf("%.6g", e.Value.Mean), fmt.Sprintf("%.6g", e.Change.Mean),
				fmt.Sprintf("%.6g", e.Change.Half), fmt.Sprintf("%.4g", e.P), string(e.Verdict),
			})
		}
	}
	w.Flush()
	f := s.figure()
	files := map[string][]byte{"sensitivity.csv": table.Bytes(), "sensitivity.svg": f.SVG(), "sensitivity.pdf": f.PDF(), "sensitivity.md": s.Markdown(command)}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err := writeFile(filepath.Join(dir, name), files[name]); err != nil {
			return err
		}
	}
	return nil
}

// signed formats a change with its sign.
func signed(e Estimate) string {
	if e.Mean > 0 {
		return "+" + e.String()
	}
	return e.String()
}

// figure draws the effects of single choices, one colour per target. Reductions are in percentage
// points. All other changes are relative to the value without the choice.
func (s *Sensitivity) figure() *chart.Chart {
	f := &chart.Chart{
		Name: "sensitivity", Title: "Effects of open choices", Wide: true, Y: chart.Axis{Label: "points, or % of the value"},
		About: "Change of the measured value if one choice is changed. " + overSeeds,
	}
	place := map[string]int{}
	for i, o := range s.Base {
		row := chart.Series{Label: o.Figure + " " + o.Name, Kind: chart.Points, Tint: i}
		for _, e := range s.Effects {
			if e.Target != o.Target || e.Among || math.IsNaN(e.Change.Mean) {
				continue
			}
			if _, ok := place[e.Choice]; !ok {
				place[e.Choice] = len(f.X.Names)
				f.X.Names = append(f.X.Names, e.Choice)
			}
			scale := 1.0
			if o.Ratio || o.Against == "" && o.AgainstCase == "" {
				scale = 100 / math.Abs(e.Value.Mean-e.Change.Mean)
			}
			if math.IsInf(scale, 0) || math.IsNaN(scale) {
				continue
			}
			row.X, row.Y, row.Half = append(row.X, float64(place[e.Choice])), append(row.Y, e.Change.Mean*scale), append(row.Half, e.Change.Half*scale)
		}
		if len(row.X) > 0 {
			f.Series = append(f.Series, row)
		}
	}
	return f
}
