package dataplane

import (
	"errors"
	"fmt"
	"time"
)

// A WredSpec is how a random early detection works (BfRt's $WRED_SPEC): by the
// average of the values with a time constant. Up to Min nothing is dropped,
// from Max on everything; in between with a probability that rises to
// Probability.
type WredSpec struct {
	Time        time.Duration
	Min, Max    uint64
	Probability float64
}

func (w WredSpec) validate() error {
	if w.Time < 0 || w.Min > w.Max || !(w.Probability >= 0 && w.Probability <= 1) {
		return errors.New("the time constant is negative, the least value above the greatest, or the probability outside 0..1")
	}
	return nil
}

// drops draws whether a packet is dropped at an average.
func (w WredSpec) drops(average float64, draw func(lo, hi uint64) uint64) bool {
	least, most := float64(w.Min), float64(w.Max)
	switch {
	case average <= least:
		return false
	case average >= most:
		return true
	}
	const steps = 1 << 32
	return float64(draw(0, steps-1)) < steps*w.Probability*(average-least)/(most-least)
}

// WredSet sets how a random early detection works; it begins anew. One that
// has not been set drops nothing.
func (s *Switch) WredSet(name string, index int, spec WredSpec) error {
	if err := spec.validate(); err != nil {
		return fmt.Errorf("filter array %s: %w", name, err)
	}
	return s.withFilter(name, index, true, func(_ *filterArray, k *filter) {
		*k = filter{spec: FilterSpec{Gain: spec.Time, Decay: spec.Time}, set: true, wred: spec}
	})
}

// WredSpec is how a random early detection works; ok is false if it has not
// been set.
func (s *Switch) WredSpec(name string, index int) (spec WredSpec, ok bool, err error) {
	err = s.withFilter(name, index, true, func(_ *filterArray, k *filter) { spec, ok = k.wred, k.set })
	return spec, ok, err
}

// WredReset puts a random early detection back to where it drops nothing.
func (s *Switch) WredReset(name string, index int) error {
	return s.withFilter(name, index, true, func(_ *filterArray, k *filter) { *k = filter{} })
}
