package sim

import (
	"slices"
	"testing"
	"time"
)

// TestWithoutSACK loses segments of the first window of ten: a round trip repairs
// one, nothing is sent twice, and the timer repairs a lost retransmission.
func TestWithoutSACK(t *testing.T) {
	for _, c := range []struct {
		name       string
		segments   int64
		lose       []int
		again      []int
		recoveries int64
		timeouts   int64
	}{
		{"nothing", 10, nil, nil, 0, 0},
		{"first", 30, []int{0}, []int{0}, 1, 0},
		{"two", 30, []int{3, 5}, []int{3, 5}, 1, 0},
		{"burst", 30, []int{2, 3, 4, 5, 6}, []int{2, 3, 4, 5, 6}, 1, 0},
		{"third from the end", 10, []int{7}, []int{7}, 0, 1},
		{"retransmission", 10, []int{0, 10}, []int{0, 0}, 1, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			w, s, r, stats := tcpCable(usual(t, func(u *Tuning) { u.NewReno = true }), c.segments*segment, false)
			w.fate = losing(c.lose...)
			w.run(time.Second)
			if r.expected != s.size || s.una != s.size || stats.Acknowledged == 0 {
				t.Fatalf("arrived up to %d of %d", r.expected, s.size)
			}
			if got := w.again(); !slices.Equal(got, c.again) {
				t.Errorf("sent again %v, want %v\n%s", got, c.again, w.rounds())
			}
			if stats.Recoveries != c.recoveries || stats.Timeouts != c.timeouts {
				t.Errorf("%d recoveries, %d timeouts, want %d and %d", stats.Recoveries, stats.Timeouts, c.recoveries, c.timeouts)
			}
		})
	}
}

// TestOneLossARoundTrip: five losses take four round trips of 100 us longer than one loss.
func TestOneLossARoundTrip(t *testing.T) {
	took := func(lose ...int) time.Duration {
		w, s, _, stats := tcpCable(usual(t, func(u *Tuning) { u.NewReno = true }), 30*segment, false)
		w.fate = losing(lose...)
		w.run(time.Second)
		if stats.Recoveries != 1 || s.phase != tcpOpen {
			t.Fatalf("%v: %d recoveries", lose, stats.Recoveries)
		}
		if s.window != s.threshold && s.window > 2*s.threshold {
			t.Errorf("%v: a window of %d after recovery, threshold %d", lose, s.window, s.threshold)
		}
		return w.now
	}
	if d := took(2, 3, 4, 5, 6) - took(2); d < 300*time.Microsecond || d > 500*time.Microsecond {
		t.Errorf("four more losses take %v more, want some 400 us", d)
	}
}
