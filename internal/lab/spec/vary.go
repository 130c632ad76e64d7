package spec

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math/bits"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"

	"github.com/p4lb/p4lb/internal/text/lists"
	"github.com/p4lb/p4lb/internal/text/tree"
)

// A Vary lists details that a paper omits and the design to test their effects. Each
// level of each choice is first tried alone. A second design changes all choices
// together, because effects may interact.
type Vary struct {
	Open    openChoices `yaml:"open"`
	Design  string      `yaml:"design"`  // second design: see Designs
	Cases   []string    `yaml:"cases"`   // the cases with relevant targets; empty: all
	Seeds   Seeds       `yaml:"seeds"`   // none: the seeds of the experiment
	Confirm Seeds       `yaml:"confirm"` // seeds for confirmation; empty: as many seeds after the largest one used
	AtMost  int         `yaml:"at-most"` // largest number of runs; 0: 500
}

// designs are the ways to vary choices together.
var designs = []string{oneAtATime, Factorial, Morris}

const (
	oneAtATime = "one-at-a-time"
	// Factorial: a two-level fractional factorial design and its mirror image, in
	// which main effects are clear of effects of pairs (resolution IV).
	Factorial = "factorial"
	// Morris: paths from random starts through the levels, which change one choice at a time
	// (elementary effects).
	Morris = "morris"

	DefaultRuns  = 500
	mostChoices  = 31
	Trajectories = 4
)

// An OpenChoice is a key of the experiment and its possible values. A key is a path such as
// transport.rdma.nack or traffic[0].cut. set.NAME is a parameter of all schemes that have it.
type OpenChoice struct {
	Key    string
	Levels []Level
	line   int
}

// A Level is a possible value of an open choice.
type Level struct {
	Text  string
	value any
}

type openChoices []OpenChoice

// UnmarshalNode reads keys with lists of values.
func (o *openChoices) UnmarshalNode(n tree.Node) error {
	if n.Kind != tree.Object {
		return errors.New("want keys, each with a list of values")
	}
	for _, f := range n.Fields {
		if len(f.Items) == 0 {
			return &tree.Error{Line: f.Node.Line, Text: f.Key + ": want a list of values"}
		}
		c := OpenChoice{Key: f.Key, line: f.Line}
		for _, item := range f.Items {
			c.Levels = append(c.Levels, Level{item.String(), item.Value()})
		}
		*o = append(*o, c)
	}
	return nil
}

// Describe lists the changed choices.
func (v *Vary) Describe(levels []int) string {
	var parts []string
	for i, l := range levels {
		if l >= 0 {
			parts = append(parts, v.Open[i].Key+": "+v.Open[i].Levels[l].Text)
		}
	}
	if parts == nil {
		return "as the file says"
	}
	return strings.Join(parts, ", ")
}

// Alone lists the settings in which only one choice differs.
func (v *Vary) Alone() (list [][]int) {
	for i := range v.Open {
		for l := range v.Open[i].Levels {
			s := slices.Repeat([]int{-1}, len(v.Open))
			s[i] = l
			list = append(list, s)
		}
	}
	return list
}

// Together lists the settings of the second design.
func (v *Vary) Together() (list [][]int) {
	k := len(v.Open)
	switch v.Design {
	case Factorial:
		n := 1 << bits.Len(uint(k)) // each choice needs its own column
		for _, mirror := range []int{0, 1} {
			for run := range n {
				s := make([]int, k)
				for i := range s {
					if bits.OnesCount(uint(run&(i+1)))%2 != mirror {
						s[i] = len(v.Open[i].Levels) - 1
					}
				}
				list = append(list, s)
			}
		}
	case Morris:
		r := rand.New(rand.NewPCG(uint64(k), Trajectories)) // reproducible
		for range Trajectories {
			s := make([]int, k)
			for i := range s {
				s[i] = r.IntN(len(v.Open[i].Levels))
			}
			list = append(list, slices.Clone(s))
			for _, i := range r.Perm(k) {
				s[i] = (s[i] + 1 + r.IntN(len(v.Open[i].Levels)-1)) % len(v.Open[i].Levels)
				list = append(list, slices.Clone(s))
			}
		}
	}
	return list
}

// checkVary checks the choices before anything runs.
func (x *Experiment) checkVary(src *source) error {
	v := x.Vary
	if v == nil || src.root.Kind == tree.Null {
		return nil
	}
	v.Design = cmp.Or(v.Design, oneAtATime)
	v.AtMost = max(v.AtMost, 0)
	switch {
	case !slices.Contains(designs, v.Design):
		return src.wrong("vary.design", fmt.Errorf("%q: want one of %s", v.Design, strings.Join(designs, ", ")))
	case len(v.Open) == 0 || len(v.Open) > mostChoices:
		return src.wrong("vary", fmt.Errorf("want open: with 1 to %d keys and the values that they may have", mostChoices))
	case slices.ContainsFunc(v.Confirm, func(s uint64) bool { return slices.Contains(v.Screened(x), s) }):
		return src.wrong("vary.confirm", errors.New("the seeds for confirmation include one of the screening: want other seeds"))
	}
	for i, name := range v.Cases {
		if !slices.ContainsFunc(x.Targets, func(t Target) bool { return t.Case == name }) {
			return src.wrong(fmt.Sprintf("vary.cases[%d]", i), fmt.Errorf("there is no target of a case %q", name))
		}
	}
	for _, o := range v.Open {
		if v.Design != oneAtATime && len(o.Levels) < 2 {
			return src.wrong("vary.open", fmt.Errorf("%s has one value: design %s wants two", o.Key, v.Design))
		}
	}
	if x.Paper != "" {
		return nil // tests load p4lb's own settings; only --explain needs these files
	}
	for _, levels := range v.Alone() {
		if _, err := x.Variant(levels); err != nil {
			return err
		}
	}
	return nil
}

// Screened returns the seeds of the runs that screen choices.
func (v *Vary) Screened(x *Experiment) Seeds {
	if len(v.Seeds) > 0 {
		return v.Seeds
	}
	return x.Seeds
}

// Fresh returns seeds that the screening has not used.
func (v *Vary) Fresh(x *Experiment) Seeds {
	if len(v.Confirm) > 0 {
		return v.Confirm
	}
	last := slices.Max(append(slices.Clone(v.Screened(x)), x.Seeds...))
	var list Seeds
	for i := range v.Screened(x) {
		list = append(list, last+1+uint64(i))
	}
	return list
}

// Variant returns the experiment with other choices. It parses the file again, so that all checks
// apply.
func (x *Experiment) Variant(levels []int) (*Experiment, error) {
	root, err := tree.Parse(x.origin.text)
	if err != nil {
		return nil, err
	}
	values, _ := root.Value().(map[string]any)
	for _, key := range []string{"vary", "full", "ceiling"} {
		delete(values, key)
	}
	var last *OpenChoice // choice to name in an error
	for i, l := range levels {
		if l < 0 || err != nil {
			continue
		}
		last = &x.Vary.Open[i]
		err = putAt(values, last.Key, last.Levels[l].value, x.Vary.Cases)
	}
	var other *Experiment
	if err == nil {
		var text []byte
		if text, err = yaml.Marshal(values); err == nil {
			other, err = Load(x.origin.file, text, x.origin.read, x.origin.library, x.origin.own...)
		}
	}
	if err != nil {
		if last == nil {
			return nil, err
		}
		msg := err.Error()
		if f, ok := errors.AsType[*FileError](err); ok {
			msg = f.Key + ": " + f.Msg
		}
		return nil, &FileError{File: x.origin.file, Line: last.line, Key: "vary.open", Msg: x.Vary.Describe(levels) + ": " + msg, err: err}
	}
	other.Name, other.File, other.Vary = x.Name, x.File, x.Vary
	return other, nil
}

// putAt sets the value of a key. It also sets it in cases that override the key's
// section.
func putAt(tree map[string]any, key string, value any, only []string) error {
	if name, ok := strings.CutPrefix(key, "set."); ok {
		return putParameter(tree, name, value)
	}
	head, _, _ := strings.Cut(key, ".")
	head, _, indexed := strings.Cut(head, "[")
	put := false
	cases, _ := tree["cases"].([]any)
	for _, c := range cases {
		m, ok := c.(map[string]any)
		name, _ := m["name"].(string)
		if !ok || m[head] == nil || head == "name" || head == "schemes" || len(only) > 0 && !slices.Contains(only, name) {
			continue
		}
		if err := putIn(m, key, value); err != nil {
			return err
		}
		put = true
	}
	if put && tree[head] == nil && indexed {
		return nil
	}
	return putIn(tree, key, value)
}

// putParameter sets a parameter of all schemes.
func putParameter(tree map[string]any, name string, value any) error {
	schemes, _ := tree["schemes"].([]any)
	for _, s := range schemes {
		if m, ok := s.(map[string]any); ok {
			if set, ok := m["set"].(map[string]any); ok && set[name] != nil {
				set[name] = value
			}
		}
	}
	cases, _ := tree["cases"].([]any)
	if len(cases) == 0 {
		cases = []any{map[string]any{}}
	}
	for _, c := range cases {
		if m, ok := c.(map[string]any); ok {
			set, _ := m["set"].(map[string]any)
			if set == nil {
				set = map[string]any{}
			}
			set[name], m["set"] = value, set
		}
	}
	tree["cases"] = cases
	return nil
}

// putIn sets the value at a path, and creates missing sections.
func putIn(tree map[string]any, path string, value any) error {
	name, rest, more := strings.Cut(path, ".")
	name, index, indexed := strings.Cut(name, "[")
	if indexed {
		i, err := strconv.Atoi(strings.TrimSuffix(index, "]"))
		list, ok := tree[name].([]any)
		if err != nil || !ok || i < 0 || i >= len(list) {
			return fmt.Errorf("there is no %s[%s", name, index)
		}
		if !more {
			list[i] = value
			return nil
		}
		m, ok := list[i].(map[string]any)
		if !ok {
			return fmt.Errorf("%s[%d] has no keys", name, i)
		}
		return putIn(m, rest, value)
	}
	if !more {
		tree[name] = value
		return nil
	}
	switch m := tree[name].(type) {
	case map[string]any:
		return putIn(m, rest, value)
	case string: // short form of a transport
		tree[name] = map[string]any{"kind": m}
	case nil:
		tree[name] = map[string]any{}
	default:
		return fmt.Errorf("%s has no keys", name)
	}
	return putIn(tree[name].(map[string]any), rest, value)
}

// Needed removes the targets of other cases, and the rows that no target uses.
func (x *Experiment) Needed() {
	if only := x.Vary.Cases; len(only) > 0 {
		x.Targets = slices.DeleteFunc(slices.Clone(x.Targets), func(t Target) bool { return !slices.Contains(only, t.Case) })
	}
	wanted := map[string]map[string]bool{}
	add := func(name string, labels ...string) {
		if wanted[name] == nil {
			wanted[name] = map[string]bool{}
		}
		for _, l := range labels {
			if l != "" {
				wanted[name][l] = true
			}
		}
	}
	for i := range x.Targets {
		t := &x.Targets[i]
		add(t.Case, append(slices.Clone(t.Order), t.Of)...)
		inCase, against := t.Case, t.Against
		if t.AgainstCase != "" {
			inCase = t.AgainstCase
			against = cmp.Or(against, t.Of)
		}
		add(inCase, against)
	}
	x.Cases = slices.DeleteFunc(x.Cases, func(c Case) bool { return wanted[c.Name] == nil })
	for i := range x.Cases {
		x.Cases[i].Schemes = slices.Sorted(maps.Keys(wanted[x.Cases[i].Name]))
	}
}

// A Target is a statement of a paper to compare with: an ordering of schemes, a reduction, a
// ratio or a value of a metric.
type Target struct {
	Name   string    `yaml:"name"`   // the statement in the paper's words
	Figure string    `yaml:"figure"` // such as fig9 or table3
	Metric string    `yaml:"metric"`
	Case   string    `yaml:"case"`
	Load   LoadLevel `yaml:"load"` // 0: the largest load
	UpTo   bool      `yaml:"upto"` // the paper says "up to": use the best of all loads

	Order []string `yaml:"order"` // labels of rows, from smallest to largest

	Of          string   `yaml:"of"`
	Against     string   `yaml:"against"`      // label of a row: percentage by which Of is below it
	AgainstCase string   `yaml:"against-case"` // the same row in another case
	Ratio       bool     `yaml:"ratio"`        // the quotient of Of and Against, instead of a percentage
	Printed     *float64 `yaml:"printed"`
	AtMost      *float64 `yaml:"at-most"`
	AtLeast     *float64 `yaml:"at-least"`
	Ours        bool     `yaml:"ours"`  // a bound, number or comparison of this experiment that the paper does not print
	Below       bool     `yaml:"below"` // the paper prints only the direction: Of is below Against

	// Open describes a detail that the paper omits and that changes the verdict, with the
	// measurement that shows it. NotComparable is the reason why the measured quantity differs
	// from the printed one. If set, either decides the verdict.
	Open          string `yaml:"open"`
	NotComparable string `yaml:"not-comparable"`
}

func (x *Experiment) checkTargets(src *source) error {
	for i := range x.Targets {
		if err := x.checkTarget(&x.Targets[i]); err != nil {
			return src.wrong(fmt.Sprintf("targets[%d]", i), err)
		}
	}
	return nil
}

func (x *Experiment) checkTarget(t *Target) error {
	if _, err := x.Metric(t.Metric); err != nil {
		return err
	}
	for _, name := range []string{t.Case, t.AgainstCase} {
		if name != "" && !slices.ContainsFunc(x.Cases, func(c Case) bool { return c.Name == name }) {
			return fmt.Errorf("there is no case %q", name)
		}
	}
	rows := slices.Clone(t.Order)
	if len(t.Order) == 0 {
		rows = append(rows, t.Of)
	}
	if t.Against != "" {
		rows = append(rows, t.Against)
	}
	for _, label := range rows {
		if !slices.ContainsFunc(x.Schemes, func(s Scheme) bool { return s.Label == label }) {
			return fmt.Errorf("there is no row %q", label)
		}
	}
	switch {
	case len(t.Order) == 1:
		return errors.New("order: want two rows or more")
	case len(t.Order) == 0 && t.Printed == nil && t.AtMost == nil && t.AtLeast == nil && !t.Below:
		return errors.New("want an order, a printed value, at-most, at-least or below")
	case t.Below && (t.Against == "" && t.AgainstCase == "" || t.Ratio):
		return errors.New("below compares two rows by percent: want against or against-case, and no ratio")
	case t.Open != "" && t.NotComparable != "":
		return errors.New("want open or not-comparable, not both")
	}
	return nil
}

// AllFigures is the figure name that selects all figures.
const AllFigures = "all"

// Only reduces the experiment to the cases of a figure.
func (x *Experiment) Only(figure string) (*Experiment, error) {
	if figure == AllFigures {
		return x, nil
	}
	var figures []string
	for _, t := range x.Targets {
		figures = lists.Add(figures, t.Figure)
	}
	if !slices.Contains(figures, figure) {
		return nil, fmt.Errorf("%s has no target of a figure %q: want one of %s", x.Name, figure, strings.Join(append(figures, AllFigures), ", "))
	}
	return x.OnlyFigure(figure), nil
}

// OnlyFigure returns the experiment with only the targets of a figure, and their cases.
func (x *Experiment) OnlyFigure(figure string) *Experiment {
	if figure == "" {
		return x
	}
	cut := *x
	cut.Name += "-" + figure
	cut.figure = figure
	cut.Targets, cut.Cases = nil, nil
	wanted := map[string]bool{}
	for _, t := range x.Targets {
		if t.Figure == figure {
			cut.Targets = append(cut.Targets, t)
			wanted[t.Case] = true
			if t.AgainstCase != "" {
				wanted[t.AgainstCase] = true
			}
		}
	}
	for _, c := range x.Cases {
		if wanted[c.Name] || c.ceiling != "" && wanted[c.ceilingOf] || len(wanted) == 0 {
			cut.Cases = append(cut.Cases, c)
		}
	}
	return &cut
}

// Figure returns the figure to which the experiment has been reduced; "": all.
func (x *Experiment) Figure() string { return x.figure }
