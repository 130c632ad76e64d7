package sim_test

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/p4lb/p4lb/controller"
	"github.com/p4lb/p4lb/fabric"
	"github.com/p4lb/p4lb/sim"
)

// busy makes a network of some hosts at 8 per leaf, each of which sends to one
// elsewhere at 70 % of its link.
func busy(b *testing.B, hosts int, load func(*sim.Network, *fabric.Topology)) *sim.Network {
	topo := leafSpine(b, fabric.LeafSpine{
		Leaves: hosts / 8, Spines: 4, Hosts: 8, // groups of four paths
		Links: fabric.Links{HostRate: 10 * fabric.Gbps, Rate: 20 * fabric.Gbps, HostDelay: time.Microsecond, Delay: 2 * time.Microsecond, Queue: 256},
	})
	n, err := sim.New(topo, sim.Options{Seed: 1})
	if err != nil {
		b.Fatal(err)
	}
	load(n, topo)
	for i := range hosts {
		_, err := n.StartFlow(sim.FlowSpec{From: fmt.Sprint("h", i+1), To: fmt.Sprint("h", (i+8*(1+i%(hosts/8-1)))%hosts+1), Rate: 7e9})
		if err != nil {
			b.Fatal(err)
		}
	}
	if err := n.Run(time.Millisecond); err != nil {
		b.Fatal(err)
	}
	return n
}

// BenchmarkNetwork measures packet-hops, each the way of a packet through one
// switch, with programs and with models.
func BenchmarkNetwork(b *testing.B) {
	engines := map[string]func(testing.TB, *sim.Network, *controller.Plan){"p4": loadP4, "native": loadModels}
	for _, engine := range []string{"p4", "native"} {
		for _, scheme := range []string{"ecmp", "drill", "qall-pkt", "qall-poly3"} {
			for _, hosts := range []int{32, 128, 1024} {
				b.Run(fmt.Sprintf("%s/%s/%d", engine, scheme, hosts), func(b *testing.B) {
					n := busy(b, hosts, func(n *sim.Network, topo *fabric.Topology) { engines[engine](b, n, plan(b, topo, scheme, nil)) })
					b.ReportAllocs()
					b.ResetTimer()
					start, begin := n.Hops(), cpuTime()
					for n.Hops()-start < int64(b.N) {
						n.Run(n.Now() + 200*time.Microsecond)
					}
					b.ReportMetric(float64(n.Hops()-start)/(cpuTime()-begin).Seconds()/1e6, "Mhops/s")
				})
			}
		}
	}
}

// cpuTime is what the process has used of the processor: the machine may be
// doing other things.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
