package p4rt

import (
	"testing"
	"time"
)

// TestIdleWatch checks that the watch reports only between Wake and the first report
// that returns false.
func TestIdleWatch(t *testing.T) {
	w, stop, reports := NewIdleWatch(), make(chan struct{}), make(chan bool)
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.Run(stop, func() bool { return <-reports })
	}()
	asleep := func() {
		t.Helper()
		select {
		case reports <- true:
			t.Error("a report without Wake")
		case <-time.After(3 * IdleScan):
		}
	}
	asleep()
	for range 2 {
		w.Wake()
		reports <- true
		reports <- true
		reports <- false
		asleep()
	}
	close(stop)
	<-done
}
