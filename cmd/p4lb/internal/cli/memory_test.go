package cli

import (
	"runtime"
	"runtime/debug"
	"testing"
)

// TestGrowth: after a collection the heap has the growth of its size, except if a verb has set
// another one.
func TestGrowth(t *testing.T) {
	if growthOf(largeHeap-1) != usualPercent || growthOf(largeHeap) != largePercent {
		t.Errorf("growth of %d and %d %%", growthOf(largeHeap-1), growthOf(largeHeap))
	}
	const early, verb = 900, 15
	before := debug.SetGCPercent(early)
	defer debug.SetGCPercent(before)
	percent := func() int {
		now := debug.SetGCPercent(-1)
		debug.SetGCPercent(now)
		return now
	}
	afterCollection(early)
	for range 1000 { // cleanups run some time after a collection
		if runtime.GC(); percent() != early {
			break
		}
	}
	if now := percent(); now != usualPercent {
		t.Errorf("growth after a collection: %d %%, want %d", now, usualPercent)
	}
	debug.SetGCPercent(verb)
	for range 10 {
		runtime.GC()
	}
	if now := percent(); now != verb {
		t.Errorf("growth of a verb: %d %%, want %d", now, verb)
	}
}
