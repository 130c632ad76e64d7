package sim_test

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/p4lb/p4lb/codegen"
	"github.com/p4lb/p4lb/internal/controller/plan"
	"github.com/p4lb/p4lb/internal/network/fabric"
	"github.com/p4lb/p4lb/internal/scheme/manifest"
	"github.com/p4lb/p4lb/internal/sim"
)

// TestEnginesAgree runs each scheme twice, with programs and with models in the
// switches: all flows must finish at the same times, all ports must have sent
// and dropped the same, and the switches must remember the same.
func TestEnginesAgree(t *testing.T) {
	for i, row := range codegen.Rows() {
		if testing.Short() && i%6 > 0 {
			continue
		}
		t.Run(row.Name, func(t *testing.T) {
			topo := leafSpine(t, twoByTwo())
			p := planned(t, topo, row.Name, nil)
			for name, o := range map[string]sim.Options{
				"drops": {Seed: 3},
				"ecn":   {Seed: 4, ECN: sim.ECN{Min: 15000, Max: 40000, P: 0.5}},
				"pfc":   {Seed: 5, PFC: sim.PFC{On: true, Pause: 20000}},
			} {
				if name != "drops" && row.Signal == "fitted" && row.Name != "qall-poly3" {
					continue // the polynomials differ in nothing else
				}
				t.Run(name, func(t *testing.T) {
					a := crossRun(t, topo, p, o, loadP4)
					b := crossRun(t, topo, p, o, loadModels)
					compareRuns(t, p, a, b)
				})
			}
		})
	}
}

// TestRelayedWarnings: with relay=1 spines send warnings of leaves on to the leaves that
// send to them. Programs and models agree, and without relays there are fewer copies.
func TestRelayedWarnings(t *testing.T) {
	topo := leafSpine(t, twoByTwo())
	o := sim.Options{Seed: 5, PFC: sim.PFC{On: true, Pause: 20000}}
	copies := map[string]int64{}
	for _, relay := range []string{"0", "1"} {
		p := planned(t, topo, "drill+rlb", map[string]string{"relay": relay, "qpfc": "20000B", "qth": "2000B", "dt": "10us", "twarn": "500us", "hold": "200us"})
		a := crossRun(t, topo, p, o, loadP4)
		compareRuns(t, p, a, crossRun(t, topo, p, o, loadModels))
		for _, spine := range []string{"s1", "s2"} {
			copies[relay] += int64(a.net.Switch(spine).Counters().Copies)
		}
	}
	if copies["1"] <= copies["0"] {
		t.Errorf("spines make %d copies with relays, %d without", copies["1"], copies["0"])
	}
}

// twoByTwo is two leaves and two spines with two links between each, so that
// groups have four paths.
//
// The rates are such that all schemes see queues, drops and reordering.
func twoByTwo() fabric.LeafSpine {
	return fabric.LeafSpine{Parallel: 2, Hosts: 4, Links: fabric.Links{
		HostRate: fabric.Gbps, Rate: 600 * fabric.Mbps, HostDelay: time.Microsecond, Delay: 2 * time.Microsecond, Queue: 40,
	}}
}

// A crossed holds the results of a run.
type crossed struct {
	net   *sim.Network
	flows []*sim.Flow
}

// crossRun sends flows of mixed sizes across a network.
func crossRun(t *testing.T, topo *fabric.Topology, p *plan.Plan, o sim.Options, load func(testing.TB, *sim.Network, *plan.Plan)) *crossed {
	t.Helper()
	n, err := sim.New(topo, o)
	if err != nil {
		t.Fatal(err)
	}
	load(t, n, p)
	for _, s := range p.Switches {
		startTasks(n, p, s)
	}
	r := &crossed{net: n}
	rnd := rand.New(rand.NewPCG(5, 5))
	for range 120 {
		from, to := rnd.IntN(8), rnd.IntN(8)
		if from == to {
			to = (to + 4) % 8
		}
		size := int64(1000 + rnd.ExpFloat64()*60000)
		n.At(time.Duration(rnd.IntN(20_000_000)), func() {
			f, err := n.StartFlow(sim.FlowSpec{From: fmt.Sprint("h", from+1), To: fmt.Sprint("h", to+1), Bytes: size, Transport: sim.DCTCP})
			if err != nil {
				t.Error(err)
			}
			r.flows = append(r.flows, f)
		})
	}
	if err := n.Run(2 * time.Second); err != nil {
		t.Fatal(err)
	}
	return r
}

// startTasks runs the controller's tasks at other intervals, but with the packets and
// registers of the manifest.
func startTasks(n *sim.Network, p *plan.Plan, s *plan.Switch) {
	node, man := n.Switch(s.Name), &s.Pipeline.Manifest
	every := func(interval time.Duration, f func()) {
		n.Every(interval, func(now time.Duration) bool {
			f()
			return now < 40*time.Millisecond
		})
	}
	for _, task := range man.Tasks {
		switch task.Kind {
		case "probe":
			every(200*time.Microsecond, func() { node.PacketOut(probe(man, s.Leaf)) })
		case "path-probe":
			every(300*time.Microsecond, func() {
				for _, g := range s.Routes.Groups {
					for slot := range g.Hops {
						node.PacketOut(pathProbe(s.Leaf, g.ID, slot))
					}
				}
			})
		case "threshold":
			every(700*time.Microsecond, func() { node.WriteRegister("qd_S", 0, 1, uint64(n.Now()/time.Millisecond)%20) })
		case "granularity":
			every(700*time.Microsecond, func() { node.WriteRegister("pd_gran", 0, 3, uint64(n.Now()/time.Millisecond)%7+1) })
		case "recirculation-limit":
			every(time.Millisecond, func() { node.WriteRegister("nrc", 0, 1, 3) })
		case "rezero":
			every(500*time.Microsecond, func() {
				if node.Buffered() == 0 {
					node.WriteRegister("ig_q", 0, 512, 0)
				}
			})
		case "failure-detection":
			every(3*time.Millisecond, func() {
				node.WriteRegister("rc_cnt", 0, 512, 0)
				node.WriteRegister("rc_sum", 0, 1, 0)
				node.WriteRegister("rc_pkts", 0, 1, 0)
			})
			n.At(5*time.Millisecond, func() { node.WriteRegister("faulty", 5, 6, 1) })
			n.At(15*time.Millisecond, func() { node.WriteRegister("faulty", 5, 6, 0) })
		}
	}
}

// probe returns the controller's probe of HULA or DHLB about a leaf.
func probe(man *manifest.Manifest, leaf int) []byte {
	b := append(make([]byte, 12), 0x88, 0xB6)
	if man.Signal == "utilisation" {
		return append(binary.BigEndian.AppendUint16(b, uint16(leaf)), 0, 0, 0, 0)
	}
	return append(b, byte(leaf), 0, 7, 5, 0, 0, 0, 0, 0, 0)
}

// pathProbe returns a probe along a path to another leaf.
func pathProbe(from, to, slot int) []byte {
	return append(make([]byte, 12), 0x88, 0xB7, byte(from>>4), byte(from<<4)|byte(to>>8), byte(to), byte(slot)<<4, 0, 0, 0, 0, 0, 0)
}

// compareRuns compares the results of two runs.
func compareRuns(t *testing.T, p *plan.Plan, a, b *crossed) {
	t.Helper()
	for i, f := range a.flows {
		g := b.flows[i]
		if f.Finished == 0 {
			t.Errorf("flow %d has not finished", f.ID)
		}
		if f.Finished != g.Finished || *f.FlowStats != *g.FlowStats {
			t.Fatalf("flow %d: the program ends at %v with %+v, the model at %v with %+v", f.ID, f.Finished, *f.FlowStats, g.Finished, *g.FlowStats)
		}
	}
	for _, s := range p.Switches {
		x, y := a.net.Switch(s.Name), b.net.Switch(s.Name)
		if x.Counters() != y.Counters() {
			t.Errorf("switch %s: %+v with programs, %+v with models", s.Name, x.Counters(), y.Counters())
		}
		for i, o := range x.Ports() {
			if c, d := o.Counters(), y.Ports()[i].Counters(); c != d {
				t.Errorf("switch %s port %d: %+v with programs, %+v with models", s.Name, o.Number, c, d)
			}
		}
		compareRegisters(t, &s.Pipeline.Manifest, x, y)
	}
	if x, y := a.net.Delivered(), b.net.Delivered(); x != y {
		t.Errorf("delivered are %v with programs, %v with models", x, y)
	}
}

func compareRegisters(t *testing.T, man *manifest.Manifest, x, y *sim.Switch) {
	t.Helper()
	for _, reg := range man.Registers {
		v, err := x.ReadRegister(reg.Name, nil)
		if err != nil {
			t.Fatal(err)
		}
		w, err := y.ReadRegister(reg.Name, nil)
		if err != nil {
			t.Error(err)
			continue
		}
		if len(w) != len(v) {
			t.Errorf("switch %s: %s has %d cells with programs, %d with models", x.Name, reg.Name, len(v), len(w))
			continue
		}
		for i := range v {
			if v[i] != w[i] {
				t.Errorf("switch %s: %s[%d] is %d with programs, %d with models", x.Name, reg.Name, i, v[i], w[i])
				break
			}
		}
	}
}
