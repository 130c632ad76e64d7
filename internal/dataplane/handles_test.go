package dataplane

import (
	"testing"

	"github.com/p4lb/p4lb/internal/dataplane/program"
)

func TestHandlesLowestFirst(t *testing.T) {
	var h program.Handles
	for i := range Handle(10) {
		if got := h.Take(); got != i {
			t.Fatalf("take = %d, want %d", got, i)
		}
	}
	for _, i := range []Handle{7, 2, 9, 4} {
		h.Release(i)
	}
	for _, want := range []Handle{2, 4, 7, 9, 10} {
		if got := h.Take(); got != want {
			t.Errorf("take = %d, want %d", got, want)
		}
	}
}
