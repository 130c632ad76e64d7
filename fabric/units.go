package fabric

import (
	"fmt"
	"math/big"
	"slices"
	"strings"
	"time"
)

// A Rate is in bit/s.
type Rate int64

// Multiples of a Rate.
const (
	Kbps Rate = 1e3
	Mbps Rate = 1e6
	Gbps Rate = 1e9
	Tbps Rate = 1e12
)

// A Size is in bytes.
type Size int64

// Multiples of a Size.
const (
	KB Size = 1 << 10
	MB Size = 1 << 20
	GB Size = 1 << 30
)

// A suffix is a multiple of a unit. Where there are two names for one multiple,
// the first is written.
type suffix struct {
	name  string
	times int64
}

var (
	rateSuffixes = []suffix{
		{"Tbps", 1e12}, {"Gbps", 1e9}, {"Mbps", 1e6}, {"kbps", 1e3}, {"bps", 1},
		{"T", 1e12}, {"G", 1e9}, {"M", 1e6}, {"k", 1e3}, {"Kbps", 1e3}, {"K", 1e3},
	}
	sizeSuffixes = []suffix{{"GB", 1 << 30}, {"MB", 1 << 20}, {"KB", 1 << 10}, {"B", 1}}
	timeSuffixes = []suffix{{"s", 1e9}, {"ms", 1e6}, {"us", 1e3}, {"ns", 1}, {"µs", 1e3}}
)

// ParseRate reads a rate such as 400Mbps, 40G or 2.5Gbps.
func ParseRate(text string) (Rate, error) {
	v, ok := parseUnit(text, rateSuffixes)
	if !ok || v == 0 {
		return 0, fmt.Errorf("%q: want a rate such as 40G or 400Mbps", text)
	}
	return Rate(v), nil
}

// ParseSize reads a size such as 250KB or 9MB, of 1,024 bytes the KB.
func ParseSize(text string) (Size, error) {
	v, ok := parseUnit(text, sizeSuffixes)
	if !ok {
		return 0, fmt.Errorf("%q: want a size such as 250KB or 9MB", text)
	}
	return Size(v), nil
}

// maxDelay bounds the delay of a link: what is above it is a slip of the unit.
const maxDelay = 10 * time.Second

// ParseDelay reads a time such as 2us, 12.5us or 1ms.
func ParseDelay(text string) (time.Duration, error) {
	v, ok := parseUnit(text, timeSuffixes)
	if text == "0" {
		ok = true
	}
	if !ok || time.Duration(v) > maxDelay {
		return 0, fmt.Errorf("%q: want a time of up to 10s such as 2us or 1ms", text)
	}
	return time.Duration(v), nil
}

// String writes the rate as ParseRate reads it.
func (r Rate) String() string { return formatUnit(int64(r), rateSuffixes[:5]) }

// String writes the size as ParseSize reads it.
func (s Size) String() string { return formatUnit(int64(s), sizeSuffixes) }

// FormatDelay writes a time as ParseDelay reads it.
func FormatDelay(d time.Duration) string {
	if d == 0 {
		return "0s"
	}
	return formatUnit(int64(d), timeSuffixes[:4])
}

// MarshalText writes what String writes.
func (r Rate) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// MarshalText writes what String writes.
func (s Size) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// parseUnit reads a number of 0 or more with one of the suffixes. The result
// must be whole: 1.5bps is an error.
func parseUnit(text string, suffixes []suffix) (int64, bool) {
	end := strings.LastIndexAny(text, "0123456789.") + 1
	number, name := text[:end], strings.TrimSpace(text[end:])
	if len(number) > 24 || strings.Trim(number, "0123456789.") != "" {
		return 0, false
	}
	r, ok := new(big.Rat).SetString(number)
	if !ok {
		return 0, false
	}
	for _, s := range suffixes {
		if s.name == name {
			r.Mul(r, new(big.Rat).SetInt64(s.times))
			return r.Num().Int64(), r.IsInt() && r.Num().IsInt64()
		}
	}
	return 0, false
}

// formatUnit writes a value in the largest suffix that leaves at most three
// digits behind the point.
func formatUnit(v int64, suffixes []suffix) string {
	in := func(s suffix) *big.Rat { return big.NewRat(v, s.times) }
	i := slices.IndexFunc(suffixes, func(s suffix) bool {
		thousandths := new(big.Rat).Mul(in(s), big.NewRat(1000, 1))
		return s.times == 1 || v >= s.times && thousandths.IsInt()
	})
	text := strings.TrimRight(in(suffixes[i]).FloatString(3), "0")
	return strings.TrimSuffix(text, ".") + suffixes[i].name
}
