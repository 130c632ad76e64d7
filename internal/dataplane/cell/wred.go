package cell

import (
	"errors"
	"time"
)

// A WredSpec specifies a random early detection (BfRt's $WRED_SPEC). It averages
// the values with a time constant. Up to an average of Min it drops no packet, and
// from Max on every packet. In between, the drop probability rises to Probability.
type WredSpec struct {
	Time        time.Duration
	Min, Max    uint64
	Probability float64
}

// Validate reports an error for values that the detection cannot have.
func (w WredSpec) Validate() error {
	if w.Time < 0 || w.Min > w.Max || !(w.Probability >= 0 && w.Probability <= 1) {
		return errors.New("the time constant is negative, the least value above the greatest, or the probability outside 0..1")
	}
	return nil
}

// drops decides at random whether to drop a packet at the given average.
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
