package server

import (
	"slices"
	"time"
)

// sweeps is the clock of ageing. As in the SDE's driver, it advances in steps, one
// for each sweep over all entries, at an interval that clients set. A change of the
// interval starts a new step. Without an interval the clock stands still.
type sweeps struct{ list []interval }

// An interval is a time between sweeps, and the moment from which it applies.
type interval struct {
	from  time.Duration
	every time.Duration // 0: no sweeps
	sum   time.Duration // sum of the earlier steps
}

// mostIntervals bounds the number of remembered intervals. A hit before the first
// one counts as a hit at its start.
const mostIntervals = 64

// change starts a new interval.
func (s *sweeps) change(now, every time.Duration) {
	s.list = append(s.list, interval{now, every, s.at(now, false)})
	if n := len(s.list) - mostIntervals; n > 0 {
		s.list = slices.Delete(s.list, 0, n)
	}
}

// at returns the sum of the steps until t, or with next until the first step after t.
func (s *sweeps) at(t time.Duration, next bool) time.Duration {
	for i, x := range slices.Backward(s.list) {
		if x.from > t {
			continue
		}
		sum := x.sum
		if x.every > 0 {
			steps := (t - x.from) / x.every
			if next && (t-x.from)%x.every > 0 {
				steps++
			}
			sum += steps * x.every
		}
		if i+1 < len(s.list) {
			sum = min(sum, s.list[i+1].sum)
		}
		return sum
	}
	return 0
}

// since returns the age of a hit. The first sweep after the hit sees it, and the age
// starts there.
func (s *sweeps) since(hit, now time.Duration) time.Duration {
	return max(0, s.at(now, false)-s.at(hit, true))
}
