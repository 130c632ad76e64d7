package p4rt

import "testing"

// TestRemovePort: a port that is taken away is closed, and its number is free.
func TestRemovePort(t *testing.T) {
	r := newRig(t, Options{})
	if err := r.dev.RemovePort(3); err == nil {
		t.Error("a port that is not there is removed")
	}
	for range 2 {
		if err := r.dev.AddPort(3, newTestPort(), nil); err != nil {
			t.Fatal(err)
		}
		if !r.dev.PortUp(3) || len(r.dev.PortNumbers()) != 1 {
			t.Errorf("ports %v, up %t", r.dev.PortNumbers(), r.dev.PortUp(3))
		}
		if err := r.dev.RemovePort(3); err != nil {
			t.Fatal(err)
		}
		if r.dev.PortUp(3) || len(r.dev.PortNumbers()) != 0 {
			t.Errorf("ports %v, up %t", r.dev.PortNumbers(), r.dev.PortUp(3))
		}
	}
}
