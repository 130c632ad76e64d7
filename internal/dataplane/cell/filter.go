package cell

import (
	"errors"
	"math"
	"time"

	"github.com/p4lb/p4lb/internal/bmv2"
	"github.com/p4lb/p4lb/internal/dataplane/num"
	"github.com/p4lb/p4lb/internal/dataplane/vector"
)

// A FilterSpec specifies a low-pass filter of Tofino (BfRt's $LPF_SPEC). For values
// x that arrive at intervals dt, the filter updates v and returns v / 2^Shift,
// rounded down and limited to the filter's width:
//
//	rate    v = v exp(-dt/Gain) + x
//	sample  v = v + (1 - exp(-dt/tau)) (x - v), tau = Gain if x > v, else Decay
//
// A rate is about the sum of the values of the last Gain, a sample an average. Both
// are 0 when the switch starts. The hardware is less precise and stores time
// constants as mantissa and exponent; its rounding is not published.
type FilterSpec struct {
	Rate        bool // a rate; otherwise a sample
	Gain, Decay time.Duration
	Shift       int
}

// Validate reports an error for values that the filter cannot have.
func (f FilterSpec) Validate() error {
	if f.Gain < 0 || f.Decay < 0 || f.Shift < 0 || f.Shift > 31 {
		return errors.New("a time constant is negative or the shift outside 0..31")
	}
	return nil
}

// A Filter is a cell of a Filters array. Without a specification it returns 0.
type Filter struct {
	Spec  FilterSpec
	Set   bool
	value float64
	last  time.Duration
	Wred  WredSpec
}

// A Filters is an array of filters, or of early detections based on filters.
type Filters struct {
	name  string
	Wred  bool
	Width int
	limit float64 // the largest result
	Cells []Filter
}

// NewFilters returns the array of a program; its filters have no specification.
func NewFilters(c *bmv2.FilterArray) *Filters {
	return &Filters{
		name: c.Name, Wred: c.Wred, Width: c.Bitwidth, limit: float64(num.Mask64(c.Bitwidth)),
		Cells: make([]Filter, c.Size),
	}
}

// Link links the execution of a cell. An index out of range returns 0.
func (f *Filters) Link(l *vector.Linker, to, v, at *bmv2.Expr, draw func(lo, hi uint64) uint64) (vector.Step, error) {
	dst, err := l.Place(to)
	if err != nil {
		return nil, err
	}
	value, index, err := vector.Both(l.Number, v, at)
	if err != nil {
		return nil, err
	}
	x, low, set := value.Low(), index.Low(), dst.Set()
	return func(p *vector.State) {
		i := uint64(uint32(low(p)))
		if i >= uint64(len(f.Cells)) {
			set(p, 0)
			return
		}
		k := &f.Cells[i]
		k.take(float64(x(p)), p.Now)
		set(p, f.give(k, draw))
	}, nil
}

// give returns the current result of a filter. For an early detection, it returns 1
// if the packet must be dropped.
func (f *Filters) give(k *Filter, draw func(lo, hi uint64) uint64) uint64 {
	switch {
	case !f.Wred:
		return f.Result(k)
	case k.Wred.drops(k.value, draw):
		return 1
	}
	return 0
}

// take adds a value to a filter.
func (k *Filter) take(x float64, now time.Duration) {
	if !k.Set {
		return
	}
	dt := now - k.last
	k.last = now
	if k.Spec.Rate {
		k.value = k.value*fade(dt, k.Spec.Gain) + x
		return
	}
	tau := k.Spec.Decay
	if x > k.value {
		tau = k.Spec.Gain
	}
	k.value += (1 - fade(dt, tau)) * (x - k.value)
}

// fade returns the share of a value that remains after the time dt.
func fade(dt, tau time.Duration) float64 {
	switch {
	case dt <= 0:
		return 1
	case tau <= 0:
		return 0
	}
	return math.Exp(-float64(dt) / float64(tau))
}

// Result returns the current result of a filter.
func (f *Filters) Result(k *Filter) uint64 {
	v := math.Floor(math.Ldexp(k.value, -k.Spec.Shift))
	if v >= f.limit {
		return num.Mask64(f.Width)
	}
	return uint64(v)
}
