package codegen

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/p4lb/p4lb/units"
)

// A Unit is what a parameter's value is measured in.
type Unit string

// The units. Values are kept as integers: times in ns, rates in bit/s, sizes
// in bytes, shares in percent, everything else as the number it is.
const (
	Time    Unit = "time"
	Rate    Unit = "rate"
	Size    Unit = "size"
	Share   Unit = "share"
	Packets Unit = "packets"
	Number  Unit = "number"
	OneOf   Unit = "one of" // a word of Param.Words; the value is its place there
)

// unitNames lists them.
func unitNames() []string {
	return []string{string(Time), string(Rate), string(Size), string(Share), string(Packets), string(Number), string(OneOf)}
}

// scales are the multiples that values of a unit are written in.
var scales = map[Unit]units.Scale{Time: units.Times, Rate: units.Rates, Size: units.Sizes}

// words are what values of a unit that has no multiples are written with.
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

// parse reads a value of the unit, such as 1.5ms.
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

// format writes a value as parse reads it, in the largest suffix that needs no
// fraction.
func (u Unit) format(v int64) string {
	if scale, ok := scales[u]; ok {
		return scale.Format(v, 0)
	}
	if u == Packets {
		return fmt.Sprint(v, " packets")
	}
	return fmt.Sprint(v) + words[u]
}
