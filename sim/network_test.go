package sim_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/p4lb/p4lb/fabric"
	"github.com/p4lb/p4lb/sim"
)

// small is two leaves and two spines with four hosts each.
func small() fabric.LeafSpine {
	return fabric.LeafSpine{Hosts: 4, Links: fabric.Links{HostRate: fabric.Gbps, Rate: 2 * fabric.Gbps, HostDelay: time.Microsecond, Delay: 2 * time.Microsecond, Queue: 64}}
}

// TestFirst sends one flow over UDP through P4 switches.
func TestFirst(t *testing.T) {
	topo := leafSpine(t, small())
	n, err := sim.New(topo, sim.Options{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	loadP4(t, n, plan(t, topo, "ecmp", nil))
	done := 0
	for i := range 4 {
		_, err := n.StartFlow(sim.FlowSpec{From: fmt.Sprint("h", i+1), To: fmt.Sprint("h", i+5), Bytes: 1e6, Rate: 5e8, Done: func(*sim.Flow) { done++ }})
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := n.Run(sim.Forever); err != nil {
		t.Fatal(err)
	}
	if done != 4 {
		t.Errorf("%d flows of 4 arrived: %v", done, n.Lost(sim.Program))
	}
}
