package sim

import (
	"runtime"
	"strings"
	"testing"
)

// TestMeeting: nobody goes on before all have come, however often.
func TestMeeting(t *testing.T) {
	rounds := 2000
	if testing.Short() { // under the race detector each look takes long
		rounds = 200
	}
	var came [3][2000]bool
	m := newMeeting(3)
	m.hold(func(i int) {
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

// TestMeetingFails: where one party panics, the others do not wait for it, and who
// holds the meeting gets what it panicked with; and again at the next.
func TestMeetingFails(t *testing.T) {
	m := newMeeting(3)
	for range 2 {
		for bad := range 3 {
			got := func() (what any) {
				defer func() { what = recover() }()
				m.hold(func(i int) {
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
	// A goroutine that ends, as that of a test that fails does.
	ended := make(chan bool)
	go func() {
		defer close(ended)
		m.hold(func(i int) {
			if i == 0 {
				runtime.Goexit()
			}
			m.wait()
		})
	}()
	<-ended
	ok := false
	m.hold(func(i int) {
		m.wait()
		if i == 0 {
			ok = true
		}
	})
	if !ok {
		t.Error("the next meeting is not held")
	}
}
