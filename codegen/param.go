package codegen

import (
	"fmt"
	"slices"
	"strings"
)

// A Param is what a user can set of a scheme.
type Param struct {
	Name    string   `json:"name" yaml:"name"`
	Unit    Unit     `json:"unit" yaml:"unit"`
	Words   []string `json:"words,omitempty" yaml:"words"` // of a Unit OneOf
	Default string   `json:"default" yaml:"default"`
	Min     string   `json:"min,omitempty" yaml:"min"`
	Max     string   `json:"max,omitempty" yaml:"max"`
	Meaning string   `json:"meaning" yaml:"meaning"`
	Source  string   `json:"source" yaml:"source"` // where the paper says so, in short

	Constant string `json:"-" yaml:"constant"` // its name in the program, "" where it is only computed with
	Type     string `json:"-" yaml:"type"`     // of the constant
	Of       int64  `json:"-" yaml:"of"`       // the program counts a share in so many parts
}

// A Value is a parameter that has been set.
type Value struct {
	Name string `json:"name"`
	Text string `json:"value"` // as Param's unit writes it
	Int  int64  `json:"number"`
}

// parse reads a value and holds it to the bounds.
func (p *Param) parse(text string) (Value, error) {
	if p.Unit == OneOf {
		i := slices.Index(p.Words, text)
		if i < 0 {
			return Value{}, fmt.Errorf("%s=%s: want %s", p.Name, text, strings.Join(p.Words, " or "))
		}
		return Value{p.Name, text, int64(i)}, nil
	}
	v, err := p.Unit.parse(text)
	if err != nil {
		return Value{}, fmt.Errorf("%s=%w", p.Name, err)
	}
	for _, bound := range []struct {
		text, side string
		broken     func(limit int64) bool
	}{
		{p.Min, "at least", func(limit int64) bool { return v < limit }},
		{p.Max, "at most", func(limit int64) bool { return v > limit }},
	} {
		if bound.text != "" && bound.broken(p.mustParse(bound.text)) {
			return Value{}, fmt.Errorf("%s=%s: want %s %s", p.Name, text, bound.side, bound.text)
		}
	}
	if p.Unit == Time && p.Constant != "" && v%1000 != 0 {
		return Value{}, fmt.Errorf("%s=%s: the switch's clock counts in us", p.Name, text)
	}
	return Value{p.Name, p.Unit.format(v), v}, nil
}

// mustParse reads a value of the catalogue itself.
func (p *Param) mustParse(text string) int64 {
	v, err := p.Unit.parse(text)
	if err != nil {
		panic(fmt.Sprintf("parameter %s: %v", p.Name, err))
	}
	return v
}

// inProgram is the value as the program has it: times in µs.
func (p *Param) inProgram(v Value) int64 {
	switch {
	case p.Unit == Time:
		return v.Int / 1000
	case p.Of != 0:
		return v.Int * p.Of / 100
	}
	return v.Int
}
