package spec

import (
	"testing"
	"time"
)

// TestDefaultInterval: a run has 200 samples, and fewer if it is short.
func TestDefaultInterval(t *testing.T) {
	for length, want := range map[time.Duration]time.Duration{
		time.Second: 5 * time.Millisecond, 2 * time.Millisecond: 10 * time.Microsecond, 100 * time.Microsecond: 10 * time.Microsecond,
	} {
		if got := DefaultInterval(length); got != want {
			t.Errorf("%v: a sample every %v, want %v", length, got, want)
		}
	}
}
