package dataplane

import "testing"

func TestHandlesLowestFirst(t *testing.T) {
	var h handles
	for i := range Handle(10) {
		if got := h.take(); got != i {
			t.Fatalf("take = %d, want %d", got, i)
		}
	}
	for _, i := range []Handle{7, 2, 9, 4} {
		h.release(i)
	}
	for _, want := range []Handle{2, 4, 7, 9, 10} {
		if got := h.take(); got != want {
			t.Errorf("take = %d, want %d", got, want)
		}
	}
}
