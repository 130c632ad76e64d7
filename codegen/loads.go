package codegen

import (
	"fmt"
	"math"
	"math/big"
)

// loads describes utilisations of links.
type loads struct{ *composition }

func (c *composition) loads() loads { return loads{c} }

// Register returns the register of a port's recent bytes.
func (l loads) Register() string { return l.row.block(signal).Load.Register }

// Symbol returns the paper's symbol for this register.
func (l loads) Symbol() string { return l.row.block(signal).Load.Symbol }

// WindowBytes returns the capacity of a link in 2^window µs.
func (l loads) WindowBytes() int64 {
	bytes := new(big.Int).Lsh(big.NewInt(l.Int("link")), uint(l.Int("window")))
	return max(1, bytes.Quo(bytes, big.NewInt(8_000_000)).Int64())
}

// Rate returns the rate of the links, for comments.
func (l loads) Rate() string { return l.values["link"].Text }

// CEReciprocal returns 8·2³²/WindowBytes, which converts bytes to eighths.
func (l loads) CEReciprocal() int64 { return 8 << 32 / l.WindowBytes() }

// Limit returns the share r of WindowBytes.
func (l loads) Limit() int64 { return l.WindowBytes() * l.Int("r") / 100 }

// A degreeRange is one column of DHLB's Table 1, in bytes.
type degreeRange struct {
	From, To int64
	Degree   int
}

// Degrees returns DHLB's Table 1 for the rate of the links. A utilisation on a boundary belongs
// to the range above it.
func (l loads) Degrees() []degreeRange {
	var list []degreeRange
	full, from := l.WindowBytes(), int64(0)
	for _, c := range []struct {
		below  int64 // in percent
		degree int
	}{{25, 5}, {50, 3}, {70, 2}, {90, 1}} {
		to := (full*c.below + 99) / 100 // the first number of bytes that is not below the limit
		list = append(list, degreeRange{from, max(from, to-1), c.degree})
		from = max(from, to-1) + 1
	}
	return append(list, degreeRange{from, 1<<32 - 1, 0})
}

// full is the number that represents a utilisation of 100 %.
const full = 256

// Shares returns DHLB's Table 1 for utilisations.
func (l loads) Shares() []degreeRange {
	var list []degreeRange
	from := int64(0)
	for _, d := range l.Degrees() {
		to := (d.To + 1) * full / l.WindowBytes()
		if d.Degree == 0 {
			to = 1 << 16
		}
		list = append(list, degreeRange{from, to - 1, d.Degree})
		from = to
	}
	return list
}

// FilterError returns the largest difference between an exponential and a linear decay with the
// same time constant: 1/e, at the end of the linear decay.
func (l loads) FilterError() string { return percent(1 / math.E) }

// Meter returns the name of the filter that measures the rate of a port.
func (l loads) Meter() string {
	if name := l.Register(); name != "" {
		return name
	}
	return "path_rate"
}

// An eighth maps a range of utilisations to the Slot of a level.
type eighth struct{ From, To, Slot int }

// Eighths returns the ranges of utilisations for CONGA's 3 bits.
func (l loads) Eighths() []eighth {
	var list []eighth
	for i := range 8 {
		to := full/8*(i+1) - 1
		if i == 7 {
			to = 1<<16 - 1
		}
		list = append(list, eighth{full / 8 * i, to, i * 256})
	}
	return list
}

// WindowTicks returns the window for measuring rates in ticks.
func (l loads) WindowTicks() int64 { return ((1<<l.Int("window"))*1000 + tick/2) / tick }

// WindowTime returns this window formatted for users.
func (l loads) WindowTime() string { return fmt.Sprintf("%d us", 1<<l.Int("window")) }

// Fading returns the window in which rates decay.
func (l loads) Fading() string { return duration(1000 << l.Int("window")) }

// LinkRate returns the rate of a link in bit/s.
func (l loads) LinkRate() int64 { return l.values["link"].Int }
