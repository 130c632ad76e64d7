package controller

import (
	"log/slog"
	"testing"
	"time"
)

// A kind of task is slow if its runs take 1.5 times as long as intended over a window. It is
// reported once, with the means of the window.
func TestPaceOfTasks(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		name   string
		actual []time.Duration // between runs that should be 10 ms apart
		want   []Slowness
	}{
		{"at the limit", []time.Duration{15 * ms, 15 * ms, 15 * ms, 15 * ms}, []Slowness{{"probe", 10 * ms, 15 * ms}}},
		{"below it", []time.Duration{15 * ms, 15 * ms, 15 * ms, 15*ms - 1}, nil},
		{"in the mean", []time.Duration{10 * ms, 25 * ms, 10 * ms, 15 * ms}, []Slowness{{"probe", 10 * ms, 15 * ms}}},
		{"before the window ends", []time.Duration{30 * ms, 29 * ms}, nil},
		{"twice", []time.Duration{60 * ms, 60 * ms, 60 * ms, 60 * ms}, []Slowness{{"probe", 10 * ms, 60 * ms}}},
	} {
		var got []Slowness
		l := &loop{paces: map[string]*pace{}, opts: LoopOptions{Window: 60 * ms, Log: slog.New(slog.DiscardHandler), Slow: func(s Slowness) { got = append(got, s) }}}
		now := time.Second
		l.paces["probe"] = &pace{begin: now}
		for _, d := range c.actual {
			now += d
			l.measure("probe", now, 10*ms, d)
		}
		if len(got) != len(c.want) || len(got) > 0 && got[0] != c.want[0] {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// The more tasks there are, the longer each one rests: all together run half of the time.
func TestRestOfTasks(t *testing.T) {
	for tasks, want := range map[int]time.Duration{1: 2, 2: 4, 5: 10} {
		if got := restOf(tasks); got != want {
			t.Errorf("each of %d tasks rests %d times as long as it runs, want %d", tasks, got, want)
		}
	}
}
