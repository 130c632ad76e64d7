package codegen

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/p4lb/p4lb/internal/text/units"
)

// A Param is a parameter of a scheme.
type Param struct {
	Name    string   `json:"name" yaml:"name"`
	Unit    Unit     `json:"unit" yaml:"unit"`
	Words   []string `json:"words,omitempty" yaml:"words"` // allowed words, for the unit OneOf
	Default string   `json:"default" yaml:"default"`
	Min     string   `json:"min,omitempty" yaml:"min"`
	Max     string   `json:"max,omitempty" yaml:"max"`
	Meaning string   `json:"meaning" yaml:"meaning"`
	Source  string   `json:"source" yaml:"source"` // a short reference to the paper

	Constant string `json:"-" yaml:"constant"` // name of its constant in the program; "": only used in computations
	Type     string `json:"-" yaml:"type"`     // type of the constant
	Of       int64  `json:"-" yaml:"of"`       // number of parts in which the program expresses a share
}

// A Value is the value of a parameter.
type Value struct {
	Name string `json:"name"`
	Text string `json:"value"` // in the parameter's unit
	Int  int64  `json:"number"`
}

// parse parses a value and checks it against the bounds.
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

// mustParse parses a value from the catalogue.
func (p *Param) mustParse(text string) int64 {
	v, err := p.Unit.parse(text)
	if err != nil {
		panic(fmt.Sprintf("parameter %s: %v", p.Name, err))
	}
	return v
}

// A Unit is the unit of a parameter.
type Unit string

// The units. Values are integers: times in ns, rates in bit/s, sizes in bytes, shares in percent,
// and plain numbers.
const (
	Time    Unit = "time"
	Rate    Unit = "rate"
	Size    Unit = "size"
	Share   Unit = "share"
	Packets Unit = "packets"
	Number  Unit = "number"
	OneOf   Unit = "one of" // a word of Param.Words; the value is its index
)

// scales are the multiples in which values of a unit are written.
var scales = map[Unit]units.Scale{Time: units.Times, Rate: units.Rates, Size: units.Sizes}

// words are the suffixes of values whose unit has no multiples.
var words = map[Unit]string{Share: "%", Packets: "packets", Number: ""}

// accepted are examples for messages.
var accepted = map[Unit]string{
	Time:    "a time such as 1ms, 500us or 2s",
	Rate:    "a rate such as 40G or 400Mbps",
	Size:    "a size such as 64KB, or of 1,024 bytes each 64KiB",
	Share:   "a share such as 70%",
	Packets: "a number of packets such as 64",
	Number:  "a number",
}

// parse parses a value of the unit, such as 1.5ms.
func (u Unit) parse(text string) (int64, error) {
	if scale, ok := scales[u]; ok {
		if v, ok := scale.Parse(text); ok {
			return v, nil
		}
		return 0, fmt.Errorf("%q: want %s", text, accepted[u])
	}
	number := strings.TrimSpace(text)
	if rest, ok := strings.CutSuffix(number, words[u]); ok {
		number = strings.TrimSpace(rest)
	} else if u == Share {
		return 0, fmt.Errorf("%q: want %s", text, accepted[u])
	}
	v, err := strconv.ParseUint(number, 10, 63)
	if err != nil {
		return 0, fmt.Errorf("%q: want %s", text, accepted[u])
	}
	return int64(v), nil
}

// format formats a value for parse, with the largest suffix that needs no fraction.
func (u Unit) format(v int64) string {
	if scale, ok := scales[u]; ok {
		return scale.Format(v, 0)
	}
	if u == Packets {
		return fmt.Sprint(v, " packets")
	}
	return fmt.Sprint(v) + words[u]
}
