package dataplane

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/p4lb/p4lb/bmv2"
	"github.com/p4lb/p4lb/dataplane/num"
	"github.com/p4lb/p4lb/dataplane/vector"
)

// A FilterSpec is how a low-pass filter of Tofino works (BfRt's $LPF_SPEC). Of
// values x that come a time dt after each other it keeps v, and gives
// v / 2^Shift, cut to a whole number of the filter's width:
//
//	rate    v = v exp(-dt/Gain) + x
//	sample  v = v + (1 - exp(-dt/tau)) (x - v), tau = Gain if x > v, else Decay
//
// So a rate is about the sum of what came during the last Gain, a sample an
// average. Both are 0 when the switch starts. The hardware computes with fewer
// digits, and has time constants of a mantissa and an exponent; how it rounds
// is not published.
type FilterSpec struct {
	Rate        bool // else sample
	Gain, Decay time.Duration
	Shift       int
}

func (f FilterSpec) validate() error {
	if f.Gain < 0 || f.Decay < 0 || f.Shift < 0 || f.Shift > 31 {
		return errors.New("a time constant is negative or the shift outside 0..31")
	}
	return nil
}

// A filter is a cell of a filterArray. One that has not been set gives 0.
type filter struct {
	spec  FilterSpec
	set   bool
	value float64
	last  time.Duration
	wred  WredSpec
}

// A filterArray is an array of filters, or of early detections by such filters.
type filterArray struct {
	name  string
	wred  bool
	width int
	limit float64 // of the result
	cells []filter
}

func newFilterArray(c *bmv2.FilterArray) *filterArray {
	return &filterArray{
		name: c.Name, wred: c.Wred, width: c.Bitwidth, limit: float64(num.Mask64(c.Bitwidth)),
		cells: make([]filter, c.Size),
	}
}

// filterExecute links filter_execute and wred_execute; out of range they give
// 0.
func (l *linker) filterExecute(a []*bmv2.Expr, wred bool) (vector.Step, error) {
	dst, err := l.Place(a[0])
	if err != nil {
		return nil, err
	}
	f := l.sw.filters[a[1].Name]
	if a[1].Type != bmv2.TypeFilterArray || f == nil || f.wred != wred {
		return nil, fmt.Errorf("%v is not an array of filters of this kind", a[1])
	}
	value, err := l.Number(a[2])
	if err != nil {
		return nil, err
	}
	index, err := l.Number(a[3])
	if err != nil {
		return nil, err
	}
	x, at, set, draw := value.Low(), index.Low(), dst.Set(), l.sw.opts.Random
	return func(p *vector.State) {
		i := uint64(uint32(at(p)))
		if i >= uint64(len(f.cells)) {
			set(p, 0)
			return
		}
		k := &f.cells[i]
		k.take(float64(x(p)), p.Now)
		if wred {
			set(p, b2u(k.wred.drops(k.value, draw)))
		} else {
			set(p, f.result(k))
		}
	}, nil
}

// take takes a value in.
func (k *filter) take(x float64, now time.Duration) {
	if !k.set {
		return
	}
	dt := now - k.last
	k.last = now
	if k.spec.Rate {
		k.value = k.value*fade(dt, k.spec.Gain) + x
		return
	}
	tau := k.spec.Decay
	if x > k.value {
		tau = k.spec.Gain
	}
	k.value += (1 - fade(dt, tau)) * (x - k.value)
}

// fade is what is left of a value after a time.
func fade(dt, tau time.Duration) float64 {
	switch {
	case dt <= 0:
		return 1
	case tau <= 0:
		return 0
	}
	return math.Exp(-float64(dt) / float64(tau))
}

func (f *filterArray) result(k *filter) uint64 {
	v := math.Floor(math.Ldexp(k.value, -k.spec.Shift))
	if v >= f.limit {
		return num.Mask64(f.width)
	}
	return uint64(v)
}

func (s *Switch) withFilter(name string, index int, wred bool, do func(*filterArray, *filter)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.filters[name]
	if f == nil || f.wred != wred {
		return fmt.Errorf("unknown filter array %q", name)
	}
	if index < 0 || index >= len(f.cells) {
		return fmt.Errorf("filter array %s: cell %d is outside 0..%d", name, index, len(f.cells)-1)
	}
	do(f, &f.cells[index])
	return nil
}

// FilterSet sets how a filter works; it begins anew.
func (s *Switch) FilterSet(name string, index int, spec FilterSpec) error {
	if err := spec.validate(); err != nil {
		return fmt.Errorf("filter array %s: %w", name, err)
	}
	return s.withFilter(name, index, false, func(_ *filterArray, k *filter) { *k = filter{spec: spec, set: true} })
}

// FilterSpec is how a filter works; ok is false if it has not been set.
func (s *Switch) FilterSpec(name string, index int) (spec FilterSpec, ok bool, err error) {
	err = s.withFilter(name, index, false, func(_ *filterArray, k *filter) { spec, ok = k.spec, k.set })
	return spec, ok, err
}

// FilterValue is what a filter gave last.
func (s *Switch) FilterValue(name string, index int) (v uint64, err error) {
	err = s.withFilter(name, index, false, func(f *filterArray, k *filter) { v = f.result(k) })
	return v, err
}

// FilterInfo returns the number of filters of an array and the width of what
// they give.
func (s *Switch) FilterInfo(name string) (size, width int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.filters[name]
	if f == nil {
		return 0, 0, fmt.Errorf("unknown filter array %q", name)
	}
	return len(f.cells), f.width, nil
}

// FilterReset puts a filter back to where it gives 0.
func (s *Switch) FilterReset(name string, index int) error {
	return s.withFilter(name, index, false, func(_ *filterArray, k *filter) { *k = filter{} })
}
