package sim

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/p4lb/p4lb/internal/network/fabric"
	"github.com/p4lb/p4lb/internal/scheme/model"
)

// BenchmarkTransport measures packet-hops with each transport, on a leaf–spine of 32 hosts
// with 64 endless flows between the leaves.
func BenchmarkTransport(b *testing.B) {
	for _, c := range transports {
		b.Run(fmt.Sprint(c.transport), func(b *testing.B) {
			n := newNetwork(b, fabric.LeafSpine{Leaves: 4, Spines: 4, Hosts: 8, Buffer: 9e6, Links: fabric.Links{
				HostRate: 10 * fabric.Gbps, Rate: 10 * fabric.Gbps, HostDelay: time.Microsecond, Delay: 2 * time.Microsecond, Queue: 256,
			}}, model.Config{Granularity: "flow", Signal: "none", Choice: "hash"}, c.options)
			random := rand.New(rand.NewPCG(1, 1))
			for i := range 64 {
				from := i % 32
				to := (from + 8 + random.IntN(16)) % 32
				if _, err := n.StartFlow(FlowSpec{From: fmt.Sprint("h", from+1), To: fmt.Sprint("h", to+1), Transport: c.transport}); err != nil {
					b.Fatal(err)
				}
			}
			if err := n.Run(5 * time.Millisecond); err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			b.ResetTimer()
			start := n.Hops()
			for n.Hops()-start < int64(b.N) {
				if err := n.Run(n.Now() + time.Millisecond); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(n.Hops()-start)/b.Elapsed().Seconds()/1e6, "Mhops/s")
		})
	}
}
