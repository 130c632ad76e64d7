package sim_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/p4lb/p4lb/internal/controller/plan"
	"github.com/p4lb/p4lb/internal/network/fabric"
	"github.com/p4lb/p4lb/internal/sim"
)

// ringSteps is an all-reduce of n hosts h1 to hn: each of n shares passes 2(n-1) hosts.
func ringSteps(n int, bytes int64, t sim.Transport, tuning *sim.Tuning) []sim.Step {
	var steps []sim.Step
	for c := range n {
		for s := range 2 * (n - 1) {
			step := sim.Step{FlowSpec: sim.FlowSpec{
				From: fmt.Sprint("h", (c+s)%n+1), To: fmt.Sprint("h", (c+s+1)%n+1), Bytes: bytes, Transport: t, Tuning: tuning,
			}}
			if s > 0 {
				step.After = []int32{int32(len(steps) - 1)}
			}
			steps = append(steps, step)
		}
	}
	return steps
}

func runSteps(t *testing.T, topo *fabric.Topology, scheme string, o sim.Options, load func(testing.TB, *sim.Network, *plan.Plan), steps []sim.Step) []*sim.Flow {
	t.Helper()
	n, err := sim.New(topo, o)
	if err != nil {
		t.Fatal(err)
	}
	load(t, n, planned(t, topo, scheme, nil))
	flows := make([]*sim.Flow, len(steps))
	w, err := n.PlanWorkload(len(steps), func(i int) sim.Step { return steps[i] }, flows)
	if err != nil {
		t.Fatal(err)
	}
	if err := n.Run(2 * time.Second); err != nil {
		t.Fatal(err)
	}
	if list := w.Waiting(10); len(list) > 0 || w.Stalled() {
		t.Fatalf("steps wait: %v", list)
	}
	return flows
}

// TestRing compares a ring at one switch with its closed form: 2(n-1) steps, each as
// long as a share takes on a line, and its last packet on the second line.
func TestRing(t *testing.T) {
	const n, bytes, payload, rate, delay = 8, 1_000_000, 4132, 100e9, 500 * time.Nanosecond
	topo := leafSpine(t, fabric.LeafSpine{Leaves: 1, Spines: 1, Hosts: n, Links: fabric.Links{HostRate: fabric.Rate(rate), HostDelay: delay}})
	flows := runSteps(t, topo, "ecmp", sim.Options{MTU: 4160, ByMAC: false}, loadModels, ringSteps(n, bytes, sim.DCQCN, nil))
	packets := (bytes + payload - 1) / payload
	wire := float64(bytes+packets*2*sim.UDPHeaders) * 8 / rate // a host's line carries as many ACKs as data
	last := float64(bytes%payload+sim.UDPHeaders) * 8 / rate
	want := 2 * (n - 1) * (wire + last + 2*delay.Seconds())
	var end time.Duration
	for _, f := range flows {
		end = max(end, f.Finished)
	}
	if got := end.Seconds(); got < want*0.999 || got > want*1.01 {
		t.Errorf("the ring takes %v: want %.3fms and at most 1 %% more", end, want*1e3)
	}
}

// TestWorkloadEngines runs a ring and a computation between two iterations with
// programs and with models.
func TestWorkloadEngines(t *testing.T) {
	topo := leafSpine(t, twoByTwo())
	for _, kind := range []sim.Transport{sim.DCTCP, sim.DCQCN} {
		steps := ringSteps(8, 20000, kind, nil)
		steps = append(steps, sim.Step{Compute: true, FlowSpec: sim.FlowSpec{From: "h1"}, After: []int32{int32(len(steps) - 1)}, Delay: time.Millisecond})
		steps = append(steps, sim.Step{FlowSpec: sim.FlowSpec{From: "h2", To: "h6", Bytes: 50000, Transport: kind}, After: []int32{int32(len(steps) - 1)}, AfterAck: []int32{0, 1}})
		o := sim.Options{Seed: 3, ECN: sim.ECN{Min: 15000, Max: 40000, P: 0.5}}
		a := runSteps(t, topo, "rps", o, loadP4, steps)
		b := runSteps(t, topo, "rps", o, loadModels, steps)
		for i, f := range a {
			if g := b[i]; f != nil && (f.Started != g.Started || f.Finished != g.Finished || *f.FlowStats != *g.FlowStats) {
				t.Fatalf("%v, flow %d: from %v to %v with programs, from %v to %v with models", kind, i, f.Started, f.Finished, g.Started, g.Finished)
			}
		}
	}
}

// TestWorkloadOrder starts each flow after its predecessors and delay, in one part and
// in several, and at the same times on any number of cores.
func TestWorkloadOrder(t *testing.T) {
	topo := leafSpine(t, twoByTwo())
	flow := func(from, to int) sim.Step {
		return sim.Step{FlowSpec: sim.FlowSpec{From: fmt.Sprint("h", from), To: fmt.Sprint("h", to), Bytes: 30000, Transport: sim.DCTCP}}
	}
	steps := []sim.Step{flow(1, 5), flow(5, 2), flow(3, 6), flow(6, 7), flow(8, 4), flow(1, 2)}
	steps[1].After, steps[1].Delay = []int32{0}, 70*time.Microsecond
	steps[3].After, steps[3].AfterAck = []int32{1, 2}, []int32{0}
	steps[4].AfterAck = []int32{2}
	steps[5].After, steps[5].Start = []int32{4}, 5*time.Millisecond
	var before []*sim.Flow
	for _, o := range []sim.Options{{}, {Ties: sim.ByPlace}, {Ties: sim.ByPlace, Cores: 2}} {
		flows := runSteps(t, topo, "ecmp", o, loadModels, steps)
		var slack time.Duration // a window, where parts agree on it
		if o.Ties == sim.ByPlace {
			slack = 2 * time.Microsecond
		}
		exactly := func(i int, at, slack time.Duration) {
			t.Helper()
			if s := flows[i].Started; s < at || s > at+slack {
				t.Errorf("%+v: flow %d begins at %v, not at %v", o, i, s, at)
			}
		}
		exactly(1, flows[0].Finished+70*time.Microsecond, 0)
		exactly(3, max(flows[1].Finished, flows[2].Finished, flows[0].Acknowledged), slack)
		exactly(4, flows[2].Acknowledged, slack)
		exactly(5, 5*time.Millisecond, 0)
		if o.Cores == 2 {
			for i := range flows {
				if flows[i].Finished != before[i].Finished {
					t.Errorf("flow %d ends at %v on two cores, at %v on one", i, flows[i].Finished, before[i].Finished)
				}
			}
		}
		before = flows
	}
}

// TestConnection sends messages over one connection: later ones begin with the window
// that the one before has reached.
func TestConnection(t *testing.T) {
	topo := leafSpine(t, fabric.LeafSpine{Links: fabric.Links{HostRate: 10 * fabric.Gbps, HostDelay: 20 * time.Microsecond}})
	message := func(after int32, connection int32) []sim.Step {
		s := sim.Step{Connection: connection, FlowSpec: sim.FlowSpec{From: "h1", To: "h3", Bytes: 400_000, Transport: sim.TCP}}
		next := s
		next.AfterAck = []int32{after}
		return []sim.Step{s, next}
	}
	times := func(connection int32) (first, second time.Duration) {
		f := runSteps(t, topo, "ecmp", sim.Options{}, loadModels, message(0, connection))
		return f[0].Finished - f[0].Started, f[1].Finished - f[1].Started
	}
	first, second := times(1)
	if second > first*8/10 {
		t.Errorf("the second message takes %v, the first %v: want it without slow start", second, first)
	}
	if first, second := times(0); second < first*99/100 {
		t.Errorf("without a connection, the messages take %v and %v", first, second)
	}
}

// TestQueuePair: messages of a queue pair have one source port, and later ones send to
// the ports that earlier ones found free of congestion.
func TestQueuePair(t *testing.T) {
	topo := leafSpine(t, fabric.LeafSpine{Spines: 4, Links: fabric.Links{HostRate: 10 * fabric.Gbps, Rate: 10 * fabric.Gbps}})
	links, err := topo.FindLinks("l1-s1")
	if err != nil {
		t.Fatal(err)
	}
	list := slices.Clone(topo.Links)
	list[links[0]].Rate = fabric.Gbps
	if topo, err = topo.WithLinks(list); err != nil {
		t.Fatal(err)
	}
	var last []sim.Flow
	for _, load := range []func(testing.TB, *sim.Network, *plan.Plan){loadP4, loadModels} {
		run := func(together bool) (flows []sim.Flow) {
			var steps []sim.Step
			for i := range 20 {
				s := sim.Step{Connection: 1, QueuePair: together, FlowSpec: sim.FlowSpec{
					From: "h1", To: "h3", Bytes: 30_000, Transport: sim.DCTCP, Tuning: &sim.Tuning{Entropy: sim.EntropyREPS, Paths: 16},
				}}
				if i > 0 {
					s.AfterAck = []int32{int32(i - 1)}
				}
				steps = append(steps, s)
			}
			for _, f := range runSteps(t, topo, "ecmp", sim.Options{ECN: sim.ECN{Min: 3000, Max: 3000}}, load, steps) {
				flows = append(flows, *f)
			}
			return flows
		}
		marked := func(flows []sim.Flow) (n int64) {
			for i := range flows {
				n += flows[i].Marked
			}
			return n
		}
		alone, together := run(false), run(true)
		if a, b := alone[1], together[1]; a.Sport == alone[0].Sport || b.Sport != together[0].Sport {
			t.Errorf("ports %d and %d, in a queue pair %d and %d", alone[0].Sport, a.Sport, together[0].Sport, b.Sport)
		}
		if a, b := marked(alone), marked(together); a == 0 || b*2 > a {
			t.Errorf("%d marks, in a queue pair %d: want at most half", a, b)
		}
		for i := range last {
			if last[i].Finished != together[i].Finished {
				t.Errorf("message %d ends at %v with programs, at %v with models", i, last[i].Finished, together[i].Finished)
			}
		}
		last = together
	}
}

// TestWorkloadErrors refuses steps that can never begin, and lists waiting steps.
func TestWorkloadErrors(t *testing.T) {
	topo := leafSpine(t, twoByTwo())
	n, err := sim.New(topo, sim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	steps := ringSteps(3, 1000, sim.UDP, nil)
	for want, change := range map[string]func([]sim.Step){
		"flows wait for each other: [0 2 1 0]":              func(s []sim.Step) { s[0].After, s[3].After = []int32{2}, nil },
		"flow 1: predecessor 99: want 0 to 11":              func(s []sim.Step) { s[1].After = []int32{99} },
		"flow 1: it waits for the acknowledgment of flow 0": func(s []sim.Step) { s[1].AfterAck = []int32{0} },
		`flow 2: a flow from "h9" to "h1"`:                  func(s []sim.Step) { s[2].From, s[2].To = "h9", "h1" },
		`flow 2: a computation on "h9": want a host`:        func(s []sim.Step) { s[2].From, s[2].Compute = "h9", true },
		"flow 2: a negative delay":                          func(s []sim.Step) { s[2].Delay = -1 },
	} {
		list := append([]sim.Step(nil), steps...)
		change(list)
		if _, err := n.PlanWorkload(len(list), func(i int) sim.Step { return list[i] }, nil); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v: want %s", err, want)
		}
	}
	// Nothing forwards: the first flows never end.
	ring := ringSteps(3, 1000, sim.TCP, nil)
	w, err := n.PlanWorkload(len(ring), func(i int) sim.Step { return ring[i] }, nil)
	if err != nil {
		t.Fatal(err)
	}
	n.Advance(time.Second)
	if list := w.Waiting(2); !w.Stalled() || len(list) != 2 || list[0].Step != 1 || list[0].For[0] != 0 {
		t.Errorf("stalled %t, waiting %v: want step 1 for 0", w.Stalled(), list)
	}
}
