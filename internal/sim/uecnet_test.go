package sim_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/p4lb/p4lb/internal/network/fabric"
	"github.com/p4lb/p4lb/internal/sim"
)

// uecFabric is two leaves and four spines, with short queues.
func uecFabric() fabric.LeafSpine {
	return fabric.LeafSpine{Spines: 4, Hosts: 4, Links: fabric.Links{
		HostRate: 10 * fabric.Gbps, Rate: 10 * fabric.Gbps, HostDelay: 500 * time.Nanosecond, Delay: 500 * time.Nanosecond, Queue: 8,
	}}
}

// uecSteps are an incast of three hosts, and a permutation.
func uecSteps(t *sim.Tuning) (steps []sim.Step) {
	for i, pair := range [][2]int{{1, 5}, {2, 5}, {3, 5}, {4, 6}, {5, 1}, {6, 2}, {7, 3}, {8, 4}} {
		steps = append(steps, sim.Step{FlowSpec: sim.FlowSpec{
			From: fmt.Sprint("h", pair[0]), To: fmt.Sprint("h", pair[1]), Bytes: int64(200_000 + 1000*i), Transport: sim.UltraEthernet, Tuning: t,
		}})
	}
	return steps
}

// TestUECEngines trims packets in switches with programs and with models, of schemes
// that look at lengths, rates or add headers. Nothing is lost, and both agree, with windows and
// with credit.
func TestUECEngines(t *testing.T) {
	topo := leafSpine(t, uecFabric())
	for i := range topo.Links {
		if l := &topo.Links[i]; l.A.Node == "s1" || l.B.Node == "s1" {
			l.Rate /= 4
		}
	}
	for _, scheme := range []string{"ecmp", "rps", "drill", "letflow", "conga", "presto", "hula", "qall-poly3", "drill+rlb", "pdlb", "packet-queue-least", "ar", "ar-flowlet", "packet-drain-least"} {
		for i, tuning := range []*sim.Tuning{
			{Entropy: sim.EntropyFlow},
			{Entropy: sim.EntropyREPS, UEC: sim.UEC{Control: sim.UECCredit, Oversubscription: 2}},
		} {
			o := sim.Options{Seed: 3, Trim: true, UntilSent: true, ECN: sim.ECN{ByBDP: true, Dequeue: true}}
			a := runSteps(t, topo, scheme, o, loadP4, uecSteps(tuning))
			b := runSteps(t, topo, scheme, o, loadModels, uecSteps(tuning))
			trimmed := int64(0)
			for j, f := range a {
				trimmed += f.Trimmed
				if g := b[j]; f.Finished == 0 || f.Finished != g.Finished || *f.FlowStats != *g.FlowStats {
					t.Errorf("%s, tuning %d, flow %d: ends at %v with programs, at %v with models", scheme, i, j, f.Finished, g.Finished)
				}
				if f.Received != f.Bytes {
					t.Errorf("%s, flow %d: %d of %d bytes", scheme, j, f.Received, f.Bytes)
				}
			}
			if trimmed == 0 {
				t.Errorf("%s, tuning %d: nothing was trimmed", scheme, i)
			}
		}
	}
}

// TestUECMarksFabric: with ECN.Fabric, the last link of an incast marks nothing.
func TestUECMarksFabric(t *testing.T) {
	topo := leafSpine(t, uecFabric())
	for _, fabric := range []bool{false, true} {
		o := sim.Options{Seed: 3, Trim: true, UntilSent: true, ECN: sim.ECN{ByBDP: true, Dequeue: true, Fabric: fabric}}
		var steps []sim.Step
		for from := 1; from < 4; from++ { // below one leaf
			steps = append(steps, sim.Step{FlowSpec: sim.FlowSpec{From: fmt.Sprint("h", from), To: "h4", Bytes: 200_000, Transport: sim.UltraEthernet, Tuning: &sim.Tuning{}}})
		}
		marked := int64(0)
		for _, f := range runSteps(t, topo, "ecmp", o, loadModels, steps) {
			marked += f.Marked
		}
		if (marked == 0) != fabric {
			t.Errorf("fabric alone marks: %v: %d marked packets", fabric, marked)
		}
	}
}

// TestUECParts gives the same results on one core and on two.
func TestUECParts(t *testing.T) {
	topo := leafSpine(t, uecFabric())
	for _, tuning := range []*sim.Tuning{nil, {UEC: sim.UEC{Control: sim.UECCredit, Oversubscription: 2}}} {
		var before []*sim.Flow
		for cores := 1; cores <= 2; cores++ {
			o := sim.Options{Seed: 3, Trim: true, UntilSent: true, ECN: sim.ECN{ByBDP: true, Dequeue: true}, Ties: sim.ByPlace, Cores: cores}
			flows := runSteps(t, topo, "rps", o, loadModels, uecSteps(tuning))
			for i, f := range before {
				if g := flows[i]; f.Finished != g.Finished || *f.FlowStats != *g.FlowStats {
					t.Errorf("flow %d ends at %v on one core, at %v on two", i, f.Finished, g.Finished)
				}
			}
			before = flows
		}
	}
}

// TestUECIncast: an incast takes nearly as long as its bytes on the receiver's link.
func TestUECIncast(t *testing.T) {
	topo := leafSpine(t, uecFabric())
	var steps []sim.Step
	for i := 2; i <= 8; i++ {
		steps = append(steps, sim.Step{FlowSpec: sim.FlowSpec{From: fmt.Sprint("h", i), To: "h1", Bytes: 1_000_000, Transport: sim.UltraEthernet}})
	}
	flows := runSteps(t, topo, "ecmp", sim.Options{Trim: true, ECN: sim.ECN{ByBDP: true, Dequeue: true}}, loadModels, steps)
	last, packets := time.Duration(0), int64(0)
	for _, f := range flows {
		last = max(last, f.Finished)
		packets += f.Sent - f.Retransmitted
	}
	ideal := time.Duration(float64(7_000_000+packets*sim.UECHeaders) * 8 / 10) // ns at 10 Gb/s
	if last < ideal || float64(last) > 1.1*float64(ideal) {
		t.Errorf("the incast takes %v: want %v to 10 %% more", last, ideal)
	}
}

// TestTrimPFC refuses trimming where queues have no limit.
func TestTrimPFC(t *testing.T) {
	_, err := sim.New(leafSpine(t, uecFabric()), sim.Options{Trim: true, PFC: sim.PFC{On: true}})
	if err == nil || !strings.Contains(err.Error(), "trimming with PFC") {
		t.Errorf("%v: want a refusal", err)
	}
}

// TestScaledLinks marks and drops on a slow link by its share of the rate.
func TestScaledLinks(t *testing.T) {
	topo := leafSpine(t, uecFabric())
	n, err := sim.New(topo, sim.Options{Scaled: true})
	if err != nil {
		t.Fatal(err)
	}
	l := n.Links()[len(n.Links())-1]
	full := l.A.Limit()
	if err := l.SetRate(2500 * fabric.Mbps); err != nil {
		t.Fatal(err)
	}
	if got := l.A.Limit(); got != full/4 {
		t.Errorf("a link at a quarter of its rate has room for %d bytes: want %d", got, full/4)
	}
	if err := l.SetRate(10 * fabric.Gbps); err != nil {
		t.Fatal(err)
	}
	if l.A.Limit() != full || n.Hosts()[0].NIC().Far().Limit() != full {
		t.Error("other links are scaled")
	}
}

// TestPatientIncast: with IRN an incast takes nearly as long as its bytes on the
// receiver's link, also where packets are reordered.
func TestPatientIncast(t *testing.T) {
	o := uecFabric()
	o.Links.Queue = 100
	topo := leafSpine(t, o)
	tuning := &sim.Tuning{RDMA: sim.RDMA{Nack: sim.Patient}}
	var steps []sim.Step
	for i := 2; i <= 8; i++ {
		steps = append(steps, sim.Step{FlowSpec: sim.FlowSpec{From: fmt.Sprint("h", i), To: "h1", Bytes: 1_000_000, Transport: sim.DCQCN, Tuning: tuning}})
	}
	for _, scheme := range []string{"ecmp", "rps"} {
		flows := runSteps(t, topo, scheme, sim.Options{}, loadModels, steps)
		last, packets := time.Duration(0), int64(0)
		for _, f := range flows {
			last = max(last, f.Finished)
			packets += f.Sent - f.Retransmitted
		}
		ideal := time.Duration(float64(7_000_000+packets*sim.UDPHeaders) * 8 / 10)
		if float64(last) > 1.1*float64(ideal) {
			t.Errorf("%s: the incast takes %v: want %v to 10 %% more", scheme, last, ideal)
		}
	}
}
