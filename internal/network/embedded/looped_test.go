package embedded_test

import (
	"slices"
	"sync"
	"testing"

	"github.com/p4lb/p4lb/controller"
	"github.com/p4lb/p4lb/internal/bmv2"
	"github.com/p4lb/p4lb/internal/controller/plan"
	"github.com/p4lb/p4lb/internal/dataplane"
	"github.com/p4lb/p4lb/internal/network/embedded"
	"github.com/p4lb/p4lb/internal/scheme/manifest"
)

// TestLoopedPorts puts the ports in loopback that a manifest reserves for recirculation.
func TestLoopedPorts(t *testing.T) {
	var mu sync.Mutex
	var looped []uint32
	target := newTarget(t, embedded.Options{Memory: true, Still: true, Load: func(text []byte, o dataplane.Options) (*dataplane.Switch, error) {
		mu.Lock()
		looped = o.Looped
		mu.Unlock()
		config, err := bmv2.Load(text)
		if err != nil {
			return nil, err
		}
		return dataplane.New(config, o)
	}})
	p := planFor(t, "ecmp@t2na", plan.DevicePorts(preset(t, "qall"), "t2na", 16))
	for _, s := range p.Switches {
		s.Pipeline.Manifest.VirtualPorts = []manifest.VirtualPort{{Port: 16, Kind: manifest.RecirculationPort}, {Port: 300, Kind: manifest.ReportPort}}
	}
	deploy(t, p, target, controller.DeployOptions{})
	if want := []uint32{16}; !slices.Equal(looped, want) {
		t.Errorf("ports %v are in loopback, want %v", looped, want)
	}
}
