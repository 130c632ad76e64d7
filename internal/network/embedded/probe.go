package embedded

import (
	"context"
	"crypto/rand"
	"time"

	"github.com/p4lb/p4lb/internal/network/fabric"
	"github.com/p4lb/p4lb/internal/network/ping"
)

// Prober returns a prober for hosts in this process. It sends packets from the hosts' ends of
// their links in one direction. A packet has arrived when the receiver's switch sends it to the
// receiver. byMAC is set if the switches forward by the hosts' MAC addresses.
func (t *Target) Prober(topology *fabric.Topology, byMAC bool) ping.Prober {
	return inside{t, topology, byMAC}
}

type inside struct {
	target *Target
	topo   *fabric.Topology
	byMAC  bool
}

// Probe sends packets in rounds over all pairs: Count rounds, or with Until as many
// as each pair needs for one arrival.
func (p inside) Probe(ctx context.Context, pairs []ping.Pair, o ping.Options) ([]ping.Result, error) {
	marker := make([]byte, 12)
	rand.Read(marker)
	stop, err := p.target.Trace(marker)
	if err != nil {
		return nil, err
	}
	list := make([]ping.Result, len(pairs))
	number := uint32(0)
	wait := 20 * time.Millisecond
	for range max(o.Count, 1) {
		first := number
		var sent []int
		for i, pair := range pairs {
			if o.Until && list[i].Received > 0 {
				continue
			}
			list[i].From, list[i].To = pair.From.Name, pair.To.Name
			list[i].Sent++
			sent = append(sent, i)
			p.target.Host(pair.From.Name).Send(p.frame(pair, marker, number))
			number++
		}
		for began := time.Now(); ; time.Sleep(time.Millisecond) {
			arrived := 0
			hops := p.target.trace.Load().snapshot(first)
			for n, i := range sent {
				if _, ok := ping.Way(pairs[i].To, hops[first+uint32(n)]); ok {
					arrived++
				}
			}
			if arrived < len(sent) && time.Since(began) < wait && ctx.Err() == nil {
				continue
			}
			for n, i := range sent {
				path, ok := ping.Way(pairs[i].To, hops[first+uint32(n)])
				if list[i].Path = path; ok {
					list[i].Received++
				}
			}
			break
		}
		wait = min(2*wait, time.Second)
	}
	stop()
	return list, ctx.Err()
}

// frame returns an ICMP echo request.
func (p inside) frame(pair ping.Pair, marker []byte, number uint32) []byte {
	mac := pair.To.MAC
	if !p.byMAC {
		for _, port := range p.topo.Ports(pair.From.Switch) {
			if port.Number == pair.From.Port {
				mac = port.MAC
			}
		}
	}
	return ping.Frame(pair, mac, marker, number)
}
