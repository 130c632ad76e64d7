package sim

import (
	"runtime"
	"strings"
	"testing"
)

// TestBarrier releases parties only after all have arrived, in every round.
func TestBarrier(t *testing.T) {
	rounds := 2000
	if testing.Short() { // spinning is slow under the race detector
		rounds = 200
	}
	var came [3][2000]bool
	m := newBarrier(3)
	m.run(func(i int) {
		for r := range rounds {
			came[i][r] = true
			m.wait()
			for j := range came {
				if !came[j][r] {
					t.Errorf("%d went on in round %d without %d", i, r, j)
				}
			}
			m.wait()
		}
	})
}

// TestBarrierBreaks ends all parties when one panics, passes its value on, and works
// again afterwards.
func TestBarrierBreaks(t *testing.T) {
	m := newBarrier(3)
	for range 2 {
		for bad := range 3 {
			got := func() (what any) {
				defer func() { what = recover() }()
				m.run(func(i int) {
					m.wait()
					if i == bad {
						panic("out of paper")
					}
					m.wait()
				})
				return nil
			}()
			if text, _ := got.(string); !strings.HasPrefix(text, "out of paper\n") {
				t.Errorf("party %d: %v", bad, got)
			}
		}
	}
	// A goroutine ends, as in a failed test.
	ended := make(chan bool)
	go func() {
		defer close(ended)
		m.run(func(i int) {
			if i == 0 {
				runtime.Goexit()
			}
			m.wait()
		})
	}()
	<-ended
	ok := false
	m.run(func(i int) {
		m.wait()
		if i == 0 {
			ok = true
		}
	})
	if !ok {
		t.Error("the barrier does not work again")
	}
}
