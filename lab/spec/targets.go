package spec

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// A Target is a statement of a paper that an experiment is held against: an
// order of schemes, a reduction, a ratio or a value of a metric.
type Target struct {
	Name   string    `yaml:"name"`   // as the paper says it
	Figure string    `yaml:"figure"` // such as fig9 or table3
	Metric string    `yaml:"metric"`
	Case   string    `yaml:"case"`
	Load   LoadLevel `yaml:"load"` // 0: the largest
	UpTo   bool      `yaml:"upto"` // the paper says "up to": the best of all loads

	Order []string `yaml:"order"` // rows from the least to the most

	Of          string   `yaml:"of"`
	Against     string   `yaml:"against"`      // a row: percent by which Of lies below it
	AgainstCase string   `yaml:"against-case"` // the same row in another case
	Ratio       bool     `yaml:"ratio"`        // Of over Against, instead of percent
	Printed     *float64 `yaml:"printed"`
	Band        float64  `yaml:"band"` // how far off still counts: points for reductions, otherwise percent; 0: 15
	AtMost      *float64 `yaml:"at-most"`
	AtLeast     *float64 `yaml:"at-least"`
}

const defaultBand = 15

func (x *Experiment) checkTargets(src *source) error {
	for i := range x.Targets {
		if err := x.checkTarget(&x.Targets[i]); err != nil {
			return src.wrong(fmt.Sprintf("targets[%d]", i), err)
		}
	}
	return nil
}

func (x *Experiment) checkTarget(t *Target) error {
	if _, err := MetricNamed(t.Metric, x.Classes); err != nil {
		return err
	}
	if t.Band == 0 {
		t.Band = defaultBand
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
	case len(t.Order) == 0 && t.Printed == nil && t.AtMost == nil && t.AtLeast == nil:
		return errors.New("want an order, a printed value, at-most or at-least")
	}
	return nil
}

// AllFigures stands for the name of a figure.
const AllFigures = "all"

// Only keeps of an experiment what a figure needs.
func (x *Experiment) Only(figure string) (*Experiment, error) {
	if figure == AllFigures {
		return x, nil
	}
	var figures []string
	for _, t := range x.Targets {
		if !slices.Contains(figures, t.Figure) {
			figures = append(figures, t.Figure)
		}
	}
	if !slices.Contains(figures, figure) {
		return nil, fmt.Errorf("%s has no target of a figure %q: want one of %s", x.Name, figure, strings.Join(append(figures, AllFigures), ", "))
	}
	return x.OnlyFigure(figure), nil
}

// OnlyFigure keeps of an experiment the targets of a figure, and the cases that they
// are about.
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

// Figure is the figure that the experiment has been cut to; "" is all.
func (x *Experiment) Figure() string { return x.figure }
