package gate

import (
	"runtime"
	"testing"
	"time"
)

// TestPace: connections that never let the server wait rest for each other; those that
// do, and one that is alone, do not.
func TestPace(t *testing.T) {
	now := time.Unix(1, 0)
	p := new(pace)
	flood, other, calm := &worker{pace: p}, &worker{pace: p}, &worker{pace: p}
	// turn has something come after a while, which is worked on for a while.
	turn := func(w *worker, waited, worked time.Duration, full bool, calls int) time.Duration {
		came := now.Add(waited)
		w.got(now, came, full)
		now = came.Add(worked)
		return w.worked(now, calls)
	}
	if rest := turn(flood, 0, 10*time.Millisecond, false, 0); rest != 0 {
		t.Errorf("one that is alone rests for %v", rest)
	}
	turn(other, 0, 10*time.Millisecond, false, 0)
	want := 10 * time.Millisecond * 4 / time.Duration(runtime.GOMAXPROCS(0))
	if rest := turn(other, 0, 10*time.Millisecond, false, 0); rest < want-time.Millisecond {
		t.Errorf("the second one rests for %v, want %v at least", rest, want)
	}
	for range 100 {
		if rest := turn(calm, 100*time.Microsecond, 90*time.Microsecond, false, 0); rest != 0 {
			t.Fatalf("one that lets the server wait rests for %v", rest)
		}
	}
	if rest := turn(calm, 10*time.Microsecond, 10*time.Microsecond, false, 100); rest == 0 {
		t.Error("a hundred calls at once are no work")
	}
	if rest := turn(calm, 2*time.Millisecond, 0, false, 0); rest != 0 || calm.busy.Load() {
		t.Errorf("after a pause it rests for %v", rest)
	}
	if rest := turn(calm, 2*time.Millisecond, 0, true, 0); rest == 0 {
		t.Error("what fills all the room was waited for")
	}
	if rest := turn(flood, 0, time.Hour, false, 0); rest != maxRest {
		t.Errorf("a rest of %v", rest)
	}
	for _, w := range []*worker{flood, other, calm} {
		w.gone()
		w.gone()
	}
	if n := p.busy.Load(); n != 0 {
		t.Errorf("%d are busy that are gone", n)
	}
}
