package server

import (
	"slices"
	"time"
)

// sweeps is the time by which entries age: as in the SDE's driver it goes on in
// steps, with each look at all entries, at an interval that clients set. A change
// of the interval begins a new one; while there is none time stands, and goes on
// from there.
type sweeps struct{ list []interval }

// An interval is how often entries are looked at from a time on.
type interval struct {
	from  time.Duration
	every time.Duration // 0: not at all
	sum   time.Duration // of the steps before
}

// most intervals that are remembered: what was hit before the first of them counts
// as hit at its beginning.
const mostIntervals = 64

// change begins a new interval.
func (s *sweeps) change(now, every time.Duration) {
	s.list = append(s.list, interval{now, every, s.at(now, false)})
	if n := len(s.list) - mostIntervals; n > 0 {
		s.list = slices.Delete(s.list, 0, n)
	}
}

// at is the sum of the steps until a time, or until the step that follows it.
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

// since is how old what was hit last at a time is: the step after that finds it
// hit, and time begins with that one.
func (s *sweeps) since(hit, now time.Duration) time.Duration {
	return max(0, s.at(now, false)-s.at(hit, true))
}
