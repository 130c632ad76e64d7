package spec

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/p4lb/p4lb/internal/text/lists"
)

// An Expectation is a condition that an experiment states for its results, such as
//
//	fct-mean of qall-poly3 < 0.9 * ecmp
//	unfinished == 0
//
// It applies to every case and load, and without "of" to each row.
type Expectation struct {
	Text   string
	Metric string
	Of     string // label of a row; "": each row
	Op     string // <, <=, >, >= or ==
	Value  float64
	Times  string // label of the row whose metric is multiplied by Value; "": none
}

// expectForm matches METRIC [of ROW] OPERATOR, then a number, a multiple of a row, or a
// row.
var expectForm = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^([a-z0-9-]+(?::\S+)?)(?:\s+of\s+(.+?))?\s*(<=|>=|==|<|>)\s*(?:([0-9.eE+-]+)\s*(?:\*\s*(.+))?|(.+))$`)
})

// parseExpectation reads an expectation about the rows of an experiment.
func (x *Experiment) parseExpectation(text string) (Expectation, error) {
	m := expectForm().FindStringSubmatch(strings.TrimSpace(text))
	if m == nil {
		return Expectation{}, fmt.Errorf("%q: want METRIC [of ROW] < [NUMBER *] ROW or < NUMBER, such as \"fct-mean of a < 0.9 * b\"", text)
	}
	e := Expectation{Text: strings.TrimSpace(text), Metric: m[1], Of: m[2], Op: m[3], Value: 1, Times: m[5] + m[6]}
	if m[4] != "" {
		v, err := strconv.ParseFloat(m[4], 64)
		if err != nil {
			return e, fmt.Errorf("%q: %q is no number", text, m[4])
		}
		e.Value = v
	}
	if _, err := x.Metric(e.Metric); err != nil {
		return e, err
	}
	for _, row := range []string{e.Of, e.Times} {
		if row != "" && !slices.ContainsFunc(x.Schemes, func(s Scheme) bool { return s.Label == row }) {
			return e, fmt.Errorf("there is no row %q: there are %s", row, strings.Join(lists.Map(x.Schemes, func(s Scheme) string { return s.Label }), ", "))
		}
	}
	if e.Of == e.Times && e.Of != "" {
		return e, errors.New("the row is compared with itself")
	}
	return e, nil
}

// Expectations returns the expectations of the experiment, which Load has checked.
func (x *Experiment) Expectations() []Expectation {
	var list []Expectation
	for _, text := range x.Expect {
		e, err := x.parseExpectation(text)
		if err != nil {
			panic(err) // checked by Load
		}
		list = append(list, e)
	}
	return list
}

func (x *Experiment) checkExpect(src *source) error {
	for i, text := range x.Expect {
		if _, err := x.parseExpectation(text); err != nil {
			return src.wrong(fmt.Sprintf("expect[%d]", i), err)
		}
	}
	return nil
}
