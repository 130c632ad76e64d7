package sim_test

import (
	"fmt"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/p4lb/p4lb/internal/controller/plan"
	"github.com/p4lb/p4lb/internal/network/fabric"
	"github.com/p4lb/p4lb/internal/sim"
)

// busy returns a network of leaves and four spines. Each host sends to a host of another
// leaf with DCTCP.
func busy(b *testing.B, leaves, hosts int, load func(*sim.Network, *fabric.Topology)) *sim.Network {
	perLeaf := hosts / leaves
	topo := leafSpine(b, fabric.LeafSpine{
		Leaves: leaves, Spines: 4, Hosts: perLeaf,
		Links: fabric.Links{
			HostRate: 10 * fabric.Gbps, Rate: fabric.Rate(perLeaf) * 5 / 2 * fabric.Gbps,
			HostDelay: time.Microsecond, Delay: 2 * time.Microsecond, Queue: 256,
		},
	})
	n, err := sim.New(topo, sim.Options{Seed: 1, ECN: sim.ECN{Min: 65 * 1514, Max: 65 * 1514}})
	if err != nil {
		b.Fatal(err)
	}
	load(n, topo)
	for i := range hosts {
		to := (i + perLeaf*(1+i%(leaves-1))) % hosts
		_, err := n.StartFlow(sim.FlowSpec{From: fmt.Sprint("h", i+1), To: fmt.Sprint("h", to+1), Transport: sim.DCTCP})
		if err != nil {
			b.Fatal(err)
		}
	}
	if err := n.Run(2 * time.Millisecond); err != nil {
		b.Fatal(err)
	}
	return n
}

// BenchmarkNetwork measures packet-hops, each the way of a packet through one
// switch, with programs and with models.
func BenchmarkNetwork(b *testing.B) {
	engines := map[string]func(testing.TB, *sim.Network, *plan.Plan){"p4": loadP4, "native": loadModels}
	for _, engine := range []string{"p4", "native"} {
		for _, scheme := range []string{"ecmp", "drill", "qall-pkt", "qall-poly3"} {
			for leaves, hosts := range map[int]int{4: 32, 8: 128, 32: 1024} {
				b.Run(fmt.Sprintf("%s/%s/%d", engine, scheme, hosts), func(b *testing.B) {
					n := busy(b, leaves, hosts, func(n *sim.Network, topo *fabric.Topology) { engines[engine](b, n, planned(b, topo, scheme, nil)) })
					runtime.GC()
					b.ReportAllocs()
					b.ResetTimer()
					start, begin := n.Hops(), cpuTime()
					n.Every(5*time.Microsecond, func(time.Duration) bool {
						if n.Hops()-start >= int64(b.N) {
							n.Stop()
						}
						return n.Hops()-start < int64(b.N)
					})
					if err := n.Run(sim.Forever); err != nil {
						b.Fatal(err)
					}
					b.ReportMetric(float64(n.Hops()-start)/(cpuTime()-begin).Seconds()/1e6, "Mhops/s")
				})
			}
		}
	}
}

// cpuTime returns the CPU time of the process: the machine may be
// doing other things.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
