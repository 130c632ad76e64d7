package p4rt

import "testing"

// TestRemovePort: a removed port is closed, and its number can be used again.
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

// TestAddPorts: either all ports are added or none.
func TestAddPorts(t *testing.T) {
	r := newRig(t, Options{})
	for name, list := range map[string][]NewPort{
		"twice":     {{Number: 1, Port: newTestPort()}, {Number: 2, Port: newTestPort()}, {Number: 1, Port: newTestPort()}},
		"too large": {{Number: 1, Port: newTestPort()}, {Number: maxPort + 1, Port: newTestPort()}},
	} {
		if err := r.dev.AddPorts(list...); err == nil || len(r.dev.PortNumbers()) != 0 {
			t.Errorf("%s: %v, ports %v", name, err, r.dev.PortNumbers())
		}
	}
	if err := r.dev.AddPorts(NewPort{Number: 1, Port: newTestPort()}, NewPort{Number: 2, Port: newTestPort()}); err != nil || len(r.dev.PortNumbers()) != 2 {
		t.Errorf("%v, ports %v", err, r.dev.PortNumbers())
	}
}
