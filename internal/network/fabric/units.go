package fabric

import (
	"fmt"
	"time"

	"github.com/p4lb/p4lb/internal/text/units"
)

// A Rate is in bit/s.
type Rate int64

// Multiples of a Rate.
const (
	Kbps Rate = 1e3
	Mbps Rate = 1e6
	Gbps Rate = 1e9
)

// A Size is in bytes.
type Size int64

// Multiples of a Size.
const (
	KB  Size = 1e3
	MB  Size = 1e6
	KiB Size = 1 << 10
	MiB Size = 1 << 20
)

// ParseRate parses a rate such as 400Mbps, 40G or 2.5Gbps.
func ParseRate(text string) (Rate, error) {
	v, ok := units.Rates.Parse(text)
	if !ok || v == 0 {
		return 0, fmt.Errorf("%q: want a rate such as 40G or 400Mbps", text)
	}
	return Rate(v), nil
}

// ParseSize parses a size such as 250KB or 9MiB.
func ParseSize(text string) (Size, error) {
	v, ok := units.Sizes.Parse(text)
	if !ok {
		return 0, fmt.Errorf("%q: want a size such as 250KB or 9MiB", text)
	}
	return Size(v), nil
}

// maxDelay is the maximum delay of a link; a larger value has probably the
// wrong unit.
const maxDelay = 10 * time.Second

// ParseDelay parses a time such as 2us, 12.5us or 1ms.
func ParseDelay(text string) (time.Duration, error) {
	v, ok := units.Times.Parse(text)
	if text == "0" {
		ok = true
	}
	if !ok || time.Duration(v) > maxDelay {
		return 0, fmt.Errorf("%q: want a time of up to 10s such as 2us or 1ms", text)
	}
	return time.Duration(v), nil
}

// String formats the rate in the form that ParseRate accepts.
func (r Rate) String() string { return units.Rates.Format(int64(r), 3) }

// String formats the size in the form that ParseSize accepts.
func (s Size) String() string { return units.Sizes.Format(int64(s), 3) }

// FormatDelay formats a time in the form that ParseDelay accepts.
func FormatDelay(d time.Duration) string {
	if d == 0 {
		return "0s"
	}
	return units.Times.Format(int64(d), 3)
}

// MarshalText implements encoding.TextMarshaler.
func (r Rate) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// MarshalText implements encoding.TextMarshaler.
func (s Size) MarshalText() ([]byte, error) { return []byte(s.String()), nil }
