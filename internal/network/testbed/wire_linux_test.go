package testbed

import (
	"errors"
	"net/netip"
	"testing"

	"github.com/p4lb/p4lb/internal/network/fabric"
)

// TestAddresses: no two ends of management links share an address, all addresses are
// within the net, and names fit the kernel.
func TestAddresses(t *testing.T) {
	net := netip.MustParsePrefix("198.18.0.0/15")
	addresses, names := map[netip.Addr]bool{}, map[string]bool{}
	for block := range blocks {
		for sw := range blockSwitches {
			for end := range 2 {
				a := management(block, sw, end)
				if !net.Contains(a) || addresses[a] {
					t.Fatalf("block %d, switch %d: %v", block, sw, a)
				}
				addresses[a] = true
			}
			name := managementName(block, sw)
			if len(name) > 15 || names[name] {
				t.Fatalf("block %d, switch %d: %s", block, sw, name)
			}
			names[name] = true
		}
	}
	if len(addresses) != 1<<17 {
		t.Errorf("%d addresses", len(addresses))
	}
}

// TestNotStarted: a target without switches returns an error.
func TestNotStarted(t *testing.T) {
	target := New(Options{})
	if _, err := target.Endpoint("l1"); !errors.Is(err, errNotStarted) {
		t.Errorf("Endpoint: %v", err)
	}
	if err := target.Stop("l1"); !errors.Is(err, errNotStarted) {
		t.Errorf("Stop: %v", err)
	}
	if err := target.SetLinks(&fabric.Topology{}); !errors.Is(err, errNotStarted) {
		t.Errorf("SetLinks: %v", err)
	}
	if err := target.In("h1", func() error { return nil }); !errors.Is(err, errNotStarted) {
		t.Errorf("In: %v", err)
	}
	if err := target.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
}
