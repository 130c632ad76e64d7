// Package units parses and formats sizes, rates and times in flags, topologies,
// experiments and parameters.
//
// KB, MB and GB are powers of 1,000, as for links and in papers; KiB, MiB and
// GiB are powers of 1,024, as for memory. Numbers are exact: values that are
// not whole numbers of bytes, bit/s or nanoseconds are rejected instead of
// rounded.
package units

import (
	"math/big"
	"slices"
	"strings"
)

// A Suffix is a multiple of a unit.
type Suffix struct {
	Name  string
	Times int64
}

// A Scale is the list of suffixes of a quantity, in families ordered from the
// largest to the smallest. Format uses the family that needs fewer characters,
// or the earlier one if both need the same.
type Scale struct {
	families [][]Suffix
	also     []Suffix // accepted by Parse but not used by Format
}

// The scales: sizes in bytes, rates in bit/s, times in nanoseconds.
var (
	Sizes = Scale{families: [][]Suffix{
		{{"TB", 1e12}, {"GB", 1e9}, {"MB", 1e6}, {"KB", 1e3}, {"B", 1}},
		{{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"B", 1}},
	}}
	Rates = Scale{
		families: [][]Suffix{{{"Tbps", 1e12}, {"Gbps", 1e9}, {"Mbps", 1e6}, {"kbps", 1e3}, {"bps", 1}}},
		also:     []Suffix{{"T", 1e12}, {"G", 1e9}, {"M", 1e6}, {"k", 1e3}, {"Kbps", 1e3}, {"K", 1e3}},
	}
	Times = Scale{
		families: [][]Suffix{{{"s", 1e9}, {"ms", 1e6}, {"us", 1e3}, {"ns", 1}}},
		also:     []Suffix{{"µs", 1e3}},
	}
)

// With returns the scale with more suffixes that Parse accepts.
func (s Scale) With(more ...Suffix) Scale {
	s.also = slices.Concat(s.also, more)
	return s
}

// Parse parses a non-negative number with one of the suffixes. The result must
// be a whole number: 1.5B is invalid.
func (s Scale) Parse(text string) (v int64, ok bool) {
	text = strings.TrimSpace(text)
	end := strings.LastIndexAny(text, "0123456789.") + 1
	number, name := text[:end], strings.TrimSpace(text[end:])
	if len(number) > 24 || strings.Trim(number, "0123456789.") != "" {
		return 0, false
	}
	r, ok := new(big.Rat).SetString(number)
	if !ok {
		return 0, false
	}
	for _, list := range slices.Concat(s.families, [][]Suffix{s.also}) {
		if i := slices.IndexFunc(list, func(x Suffix) bool { return x.Name == name }); i >= 0 {
			r.Mul(r, new(big.Rat).SetInt64(list[i].Times))
			return r.Num().Int64(), r.IsInt() && r.Num().IsInt64()
		}
	}
	return 0, false
}

// Format formats a value in a form that Parse accepts, with at most the given
// number of decimal places.
func (s Scale) Format(v int64, digits int) string {
	best := ""
	for _, list := range s.families {
		if text := format(v, list, digits); best == "" || len(text) < len(best) {
			best = text
		}
	}
	return best
}

// format uses the largest suffix that needs no more decimal places.
func format(v int64, list []Suffix, digits int) string {
	power := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(digits)), nil)
	i := slices.IndexFunc(list, func(x Suffix) bool {
		scaled := new(big.Rat).Mul(big.NewRat(v, x.Times), new(big.Rat).SetInt(power))
		return x.Times == 1 || v >= x.Times && scaled.IsInt()
	})
	text := big.NewRat(v, list[i].Times).FloatString(digits)
	if digits > 0 {
		text = strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
	}
	return text + list[i].Name
}
