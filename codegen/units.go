package codegen

import (
	"fmt"
	"math/big"
	"strings"
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

// suffixes are the multiples that a unit is written in, the largest first.
var suffixes = map[Unit][]struct {
	name  string
	times int64
}{
	Time:    {{"s", 1e9}, {"ms", 1e6}, {"us", 1e3}, {"ns", 1}},
	Rate:    {{"Tbps", 1e12}, {"Gbps", 1e9}, {"Mbps", 1e6}, {"kbps", 1e3}, {"bps", 1}, {"T", 1e12}, {"G", 1e9}, {"M", 1e6}, {"k", 1e3}},
	Size:    {{"GB", 1 << 30}, {"MB", 1 << 20}, {"KB", 1 << 10}, {"B", 1}},
	Share:   {{"%", 1}},
	Packets: {{"packets", 1}, {"", 1}},
	Number:  {{"", 1}},
}

// accepted are examples for messages.
var accepted = map[Unit]string{
	Time:    "a time such as 1ms, 500us or 2s",
	Rate:    "a rate such as 40G or 400Mbps",
	Size:    "a size such as 64KB or 9MB",
	Share:   "a share such as 70%",
	Packets: "a number of packets such as 64",
	Number:  "a number",
}

// parse reads a value of the unit, such as 1.5ms.
func (u Unit) parse(text string) (int64, error) {
	text = strings.TrimSpace(text)
	end := strings.LastIndexAny(text, "0123456789.") + 1
	number, suffix := text[:end], strings.TrimSpace(text[end:])
	for _, s := range suffixes[u] {
		if s.name != suffix {
			continue
		}
		r, ok := new(big.Rat).SetString(number)
		if !ok || strings.ContainsAny(number, "+-/eEpPxX_") {
			break
		}
		r.Mul(r, new(big.Rat).SetInt64(s.times))
		if !r.IsInt() || !r.Num().IsInt64() {
			return 0, fmt.Errorf("%q is no whole number of %s", text, smallest(u))
		}
		return r.Num().Int64(), nil
	}
	return 0, fmt.Errorf("%q: want %s", text, accepted[u])
}

func smallest(u Unit) string {
	switch u {
	case Time:
		return "ns"
	case Rate:
		return "bit/s"
	case Size:
		return "bytes"
	}
	return "units"
}

// format writes a value as parse reads it, in the largest suffix that needs no
// fraction.
func (u Unit) format(v int64) string {
	for _, s := range suffixes[u] {
		if v%s.times == 0 && (v != 0 || s.times == 1) {
			text := fmt.Sprint(v / s.times)
			if len(s.name) > 2 && u == Packets {
				return text + " " + s.name
			}
			return text + s.name
		}
	}
	return fmt.Sprint(v)
}
