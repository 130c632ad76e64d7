package server

import (
	"testing"
	"time"
)

// TestSweeps: age advances with the sweeps and stands still without them, and a new
// interval starts a new sweep.
func TestSweeps(t *testing.T) {
	s := &sweeps{}
	for _, c := range []struct {
		at    time.Duration // in seconds
		every time.Duration // -1: the interval stays
		age   time.Duration // of an entry that was hit at 0
	}{
		{5, -1, 0}, {5, 1, 0}, {6, -1, 1}, {10, -1, 5}, {10, 10, 5}, {15, -1, 5}, {15, 1, 5}, {22, -1, 12}, {22, 0, 12}, {30, -1, 12}, {30, 1, 12}, {33, -1, 15},
	} {
		if c.every >= 0 {
			s.change(c.at*time.Second, c.every*time.Second)
		}
		if age := s.since(0, c.at*time.Second); age != c.age*time.Second {
			t.Errorf("after %d s: %v, want %d s", c.at, age, c.age)
		}
	}
	// The next step sees a hit between two steps.
	if age := s.since(31500*time.Millisecond, 34*time.Second); age != 2*time.Second {
		t.Errorf("hit between steps: %v, want 2 s", age)
	}
	for range 10 * mostIntervals {
		s.change(40*time.Second, time.Second)
	}
	if len(s.list) != mostIntervals || s.since(39*time.Second, 45*time.Second) < 5*time.Second {
		t.Errorf("%d intervals, age %v", len(s.list), s.since(39*time.Second, 45*time.Second))
	}
}
