package sim_test

import (
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/p4lb/p4lb/internal/controller/plan"
	"github.com/p4lb/p4lb/internal/network/fabric"
	"github.com/p4lb/p4lb/internal/sim"
)

// TestMemory fills a queue and measures the memory of a packet.
func TestMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine does the work: the race detector has nothing to see")
	}
	engines := map[string]func(testing.TB, *sim.Network, *plan.Plan){"p4": loadP4, "native": loadModels}
	for name, load := range engines {
		for _, scheme := range []string{"ecmp", "qall-poly3", "drill+rlb"} {
			t.Run(name+"/"+scheme, func(t *testing.T) {
				const most = 1088 // of which 448 are the packet in the simulator
				if n := perPacket(t, scheme, load); n > most {
					t.Errorf("a packet takes %d bytes, more than %d", n, most)
				} else {
					t.Logf("%d bytes", n)
				}
			})
		}
	}
}

// perPacket returns the memory in bytes of a packet that waits in a switch.
func perPacket(t *testing.T, scheme string, load func(testing.TB, *sim.Network, *plan.Plan)) int {
	o := small()
	o.Links.Queue = 1 << 20
	topo := leafSpine(t, o)
	n, err := sim.New(topo, sim.Options{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	load(t, n, planned(t, topo, scheme, nil))
	for i := range 4 {
		if _, err := n.StartFlow(sim.FlowSpec{From: fmt.Sprint("h", i+1), To: fmt.Sprint("h", 5), Rate: int64(fabric.Gbps)}); err != nil {
			t.Fatal(err)
		}
	}
	run := func(d time.Duration) int {
		if err := n.Run(n.Now() + d); err != nil {
			t.Fatal(err)
		}
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int(m.HeapAlloc)
	}
	before, packets := run(time.Millisecond), n.InFlight().Packets
	after := run(80 * time.Millisecond)
	runtime.KeepAlive(n)
	return (after - before) / int(n.InFlight().Packets-packets)
}

// TestWorkloadMemory measures the memory that a message of a workload takes besides its counters, in
// the plan and after its end: the step, and the timer until its last deadline.
func TestWorkloadMemory(t *testing.T) {
	const (
		messages = 20000
		most     = 160
	)
	n, stats, at := memoryRig(t, messages)
	before := heap()
	w, err := n.PlanWorkload(messages, func(i int) sim.Step {
		s := at(i)
		if i >= 16 {
			s.AfterAck = []int32{int32(i - 16)}
		}
		return s
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if each := (heap() - before) / messages; each > most {
		t.Errorf("a planned message takes %d bytes, more than %d", each, most)
	}
	for stats[messages-17].Acknowledged == 0 && n.Now() < time.Second {
		if err := n.Run(n.Now() + 100*time.Microsecond); err != nil {
			t.Fatal(err)
		}
	}
	if each := (heap() - before) / messages; stats[messages-17].Acknowledged == 0 || each > most {
		t.Errorf("a message that is over takes %d bytes, more than %d", each, most)
	}
	runtime.KeepAlive(w)
}

// TestMessageMemory measures the memory of messages that are all under way: each has sent a
// packet, and none has ended.
func TestMessageMemory(t *testing.T) {
	const (
		messages = 8000
		most     = 1320
	)
	n, stats, at := memoryRig(t, messages)
	before := heap()
	w, err := n.PlanWorkload(messages, at, nil)
	if err != nil {
		t.Fatal(err)
	}
	waits := func(s sim.FlowStats) bool { return s.Sent == 0 }
	for slices.ContainsFunc(stats, waits) {
		if err := n.Run(n.Now() + 100*time.Microsecond); err != nil {
			t.Fatal(err)
		}
	}
	over := func(s sim.FlowStats) bool { return s.Acknowledged > 0 }
	if each := (heap() - before) / messages; each > most || slices.ContainsFunc(stats, over) {
		t.Errorf("a message under way takes %d bytes, more than %d, or has ended", each, most)
	}
	runtime.KeepAlive(w)
}

// memoryRig returns a network and the messages of a workload without dependencies.
func memoryRig(t *testing.T, messages int) (*sim.Network, []sim.FlowStats, func(i int) sim.Step) {
	t.Helper()
	if testing.Short() {
		t.Skip("one goroutine does the work: the race detector has nothing to see")
	}
	topo := leafSpine(t, small())
	n, err := sim.New(topo, sim.Options{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	loadModels(t, n, planned(t, topo, "ecmp", nil))
	stats := make([]sim.FlowStats, messages)
	return n, stats, func(i int) sim.Step {
		return sim.Step{FlowSpec: sim.FlowSpec{From: fmt.Sprint("h", i%4+1), To: fmt.Sprint("h", 5+i%4), Bytes: 3000, Transport: sim.UltraEthernet, Stats: &stats[i]}}
	}
}

// heap returns the bytes in use.
func heap() int {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}
