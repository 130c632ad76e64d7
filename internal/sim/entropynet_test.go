package sim_test

import (
	"encoding/binary"
	"fmt"
	"testing"
	"time"

	"github.com/p4lb/p4lb/internal/network/fabric"
	"github.com/p4lb/p4lb/internal/sim"
)

// TestEntropyEngines sends with a port for each packet through ECMP, with programs and
// with models. Bytes that switches see have the ports, and answers return to them.
func TestEntropyEngines(t *testing.T) {
	topo := leafSpine(t, twoByTwo())
	for _, kind := range []sim.Transport{sim.DCTCP, sim.DCQCN} {
		for entropy := sim.EntropyOblivious; entropy <= sim.EntropyMixed; entropy++ {
			tuning := &sim.Tuning{Entropy: entropy, Paths: 64, MaxDupAcks: 300}
			tuning.RDMA.Nack = sim.Selective
			var steps []sim.Step
			for h := range 4 {
				for _, pair := range [][2]int{{h + 1, h + 5}, {h + 5, (h+1)%4 + 1}} {
					steps = append(steps, sim.Step{FlowSpec: sim.FlowSpec{
						From: fmt.Sprint("h", pair[0]), To: fmt.Sprint("h", pair[1]), Bytes: 300_000, Transport: kind, Tuning: tuning,
					}})
				}
			}
			o := sim.Options{Seed: 3, ECN: sim.ECN{Min: 8000, Max: 8000}}
			a := runSteps(t, topo, "ecmp", o, loadP4, steps)
			b := runSteps(t, topo, "ecmp", o, loadModels, steps)
			overtaken := int64(0)
			for i, f := range a {
				overtaken += f.Overtaken
				if g := b[i]; f.Finished == 0 || f.Finished != g.Finished || *f.FlowStats != *g.FlowStats {
					t.Errorf("%v, entropy %d, flow %d: ends at %v with programs, at %v with models", kind, entropy, i, f.Finished, g.Finished)
				}
			}
			if overtaken == 0 {
				t.Errorf("%v, entropy %d: no packet was overtaken, so all took one path", kind, entropy)
			}
		}
	}
}

// TestEntropyPorts looks at the source and destination ports on the wire.
func TestEntropyPorts(t *testing.T) {
	topo := leafSpine(t, fabric.LeafSpine{Spines: 4})
	n, err := sim.New(topo, sim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	loadP4(t, n, planned(t, topo, "ecmp", nil))
	data, acks := map[uint16]bool{}, map[uint16]bool{}
	n.Tap(func(_ *sim.Port, b []byte, size int) {
		if sport, dport := binary.BigEndian.Uint16(b[34:]), binary.BigEndian.Uint16(b[36:]); dport == 5001 {
			data[sport] = true
		} else {
			acks[dport] = true
		}
	})
	f, err := n.StartFlow(sim.FlowSpec{From: "h1", To: "h3", Bytes: 200_000, Transport: sim.DCTCP, Tuning: &sim.Tuning{Entropy: sim.EntropyOblivious, Paths: 16}})
	if err != nil {
		t.Fatal(err)
	}
	if err := n.Run(time.Second); err != nil {
		t.Fatal(err)
	}
	if f.Finished == 0 || len(data) != 16 || len(acks) != 16 {
		t.Fatalf("data from %d ports, answers to %d: want 16", len(data), len(acks))
	}
	for port := range acks {
		if !data[port] {
			t.Errorf("an answer to port %d, from which nothing came", port)
		}
	}
}

// TestEntropyErrors refuses ports that a flow cannot have.
func TestEntropyErrors(t *testing.T) {
	n, err := sim.New(leafSpine(t, fabric.LeafSpine{}), sim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, u := range []sim.Tuning{{Paths: 2}, {Entropy: sim.EntropyREPS, Paths: 3}, {Entropy: sim.EntropyREPS, Paths: 1 << 13}, {Entropy: 9}} {
		if _, err := n.StartFlow(sim.FlowSpec{From: "h1", To: "h3", Bytes: 1, Transport: sim.DCTCP, Tuning: &u}); err == nil {
			t.Errorf("%d paths with entropy %d are taken", u.Paths, u.Entropy)
		}
	}
}
