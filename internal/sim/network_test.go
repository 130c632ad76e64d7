package sim_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/p4lb/p4lb/internal/network/fabric"
	"github.com/p4lb/p4lb/internal/sim"
)

// small is two leaves and two spines with four hosts each.
func small() fabric.LeafSpine {
	return fabric.LeafSpine{Hosts: 4, Links: fabric.Links{
		HostRate: fabric.Gbps, Rate: 2 * fabric.Gbps, HostDelay: time.Microsecond, Delay: 2 * time.Microsecond, Queue: 64,
	}}
}

// TestPath times packets through P4 switches: over four links, of two rates, each
// is sent whole, and then travels.
func TestPath(t *testing.T) {
	topo := leafSpine(t, small())
	n, err := sim.New(topo, sim.Options{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	loadP4(t, n, planned(t, topo, "ecmp", nil))
	for i := range 4 {
		spec := sim.FlowSpec{From: fmt.Sprint("h", i+1), To: fmt.Sprint("h", i+5), Bytes: 958}
		spec.Done = func(f *sim.Flow) {
			const bits = (958 + sim.UDPHeaders) * 8
			if want := 2*bits*time.Nanosecond + 2*bits*time.Nanosecond/2 + 6*time.Microsecond; f.Finished-f.Started != want {
				t.Errorf("flow %d took %v, want %v", f.ID, f.Finished-f.Started, want)
			}
		}
		n.At(time.Duration(i)*time.Millisecond, func() {
			if _, err := n.StartFlow(spec); err != nil {
				t.Error(err)
			}
		})
	}
	if err := n.Run(sim.Forever); err != nil {
		t.Fatal(err)
	}
	if got := n.Delivered().Packets; got != 4 {
		t.Errorf("%d packets of 4 were delivered", got)
	}
}

// TestOptionsRefused: invalid options return an error.
func TestOptionsRefused(t *testing.T) {
	topo := leafSpine(t, small())
	for _, o := range []sim.Options{
		{MTU: 20}, {MTU: 10000}, {Alpha: -1}, {ECN: sim.ECN{Min: 2, Max: 1}}, {ECN: sim.ECN{P: 2}}, {PFC: sim.PFC{Alpha: -1}},
	} {
		if _, err := sim.New(topo, o); err == nil {
			t.Errorf("%+v is accepted", o)
		}
	}
	n, err := sim.New(topo, sim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range []sim.FlowSpec{{From: "h1", To: "h1"}, {From: "h1", To: "l1"}, {To: "h1"}} {
		if _, err := n.StartFlow(f); err == nil {
			t.Errorf("%+v is accepted", f)
		}
	}
}
