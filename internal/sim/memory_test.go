package sim_test

import (
	"fmt"
	"runtime"
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
				const most = 1024
				if n := perPacket(t, scheme, load); n > most {
					t.Errorf("a packet takes %d bytes, more than %d", n, most)
				} else {
					t.Logf("%d bytes", n)
				}
			})
		}
	}
}

// perPacket is the bytes that a packet takes which waits in a switch.
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
