package embedded_test

import (
	"testing"
	"time"

	"github.com/p4lb/p4lb/controller"
	"github.com/p4lb/p4lb/internal/network/embedded"
	"github.com/p4lb/p4lb/internal/network/fabric"
)

// TestClocksApart: QDAPS* on running switches spreads bursts over all paths although the clocks of the
// leaves are seconds apart. Delays that l1 measures contain the lead of l2's clock, those
// of l2 its lag.
func TestClocksApart(t *testing.T) {
	o := fabric.LeafSpine{Leaves: 2, Spines: 4, Hosts: 1, Links: fabric.Links{Rate: 10 * fabric.Mbps, HostRate: fabric.Gbps, Queue: 64}}
	topology, err := o.Make()
	if err != nil {
		t.Fatal(err)
	}
	ctx := testContext(t)
	p := planFor(t, "qdaps-star@v1model/shared", topology)
	for _, step := range []time.Duration{0, 3 * time.Second, time.Hour} {
		target := newTarget(t, embedded.Options{Memory: true, Seed: 1, ClockStep: step})
		deploy(t, p, target, controller.DeployOptions{})
		if apart := target.Device("l2").Elapsed() - target.Device("l1").Elapsed(); (apart - step).Abs() > time.Second {
			t.Fatalf("the clocks of l1 and l2 are %v apart, want %v", apart, step)
		}
		hosts := []*fabric.Host{topology.Host("h1"), topology.Host("h2")}
		exchange := func(ports []uint16) {
			for from := range hosts {
				for _, port := range ports {
					target.Host(hosts[from].Name).Send(tcpFrame(hosts[from], hosts[1-from], port))
				}
			}
			for to := range hosts {
				for n := 0; n < len(ports); n += len(target.Host(hosts[to].Name).Receive()) {
					if ctx.Err() != nil {
						t.Fatalf("%d of %d packets arrive", n, len(ports))
					}
					time.Sleep(100 * time.Microsecond)
				}
			}
		}
		for range 20 { // single packets measure some paths before the others
			exchange([]uint16{999})
		}
		sent := func() (list []uint64) {
			for _, leaf := range []string{"l1", "l2"} {
				for _, hop := range p.Switch(leaf).Routes.Groups[0].Hops {
					list = append(list, sentBy(target.Device(leaf), hop.Port))
				}
			}
			return list
		}
		before := sent()
		const bursts, packets = 10, 40 // a burst fills one queue for 48 ms
		for i := range bursts {
			var ports []uint16
			for k := range packets {
				ports = append(ports, uint16(1000+packets*i+k))
			}
			exchange(ports)
		}
		for i, n := range sent() {
			if n -= before[i]; n < bursts/2 { // on a busy machine the packets of a burst arrive one by one
				t.Errorf("clocks %v apart: uplink %d of l1 and l2 has sent %d of %d packets", step, i, n, bursts*packets)
			}
		}
	}
}
