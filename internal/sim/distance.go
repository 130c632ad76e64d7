package sim

import (
	"math"
	"time"

	"github.com/p4lb/p4lb/internal/network/fabric"
)

// measure returns the distance of the network, computed once. The round trip includes a full
// packet and its acknowledgment.
func (n *Network) measure(answer int) *distance {
	d, w := n.whole.distance, n.whole
	d.once.Do(func() {
		far, _ := w.farthest(w.hosts[0], answer)
		_, ns := w.farthest(far, answer)
		d.rtt = time.Duration(math.Round(ns))
		for _, h := range w.hosts {
			d.line = max(d.line, h.nic.rate)
		}
		for _, s := range w.switches {
			for _, o := range s.Ports() {
				d.queue = max(d.queue, int(o.limit))
			}
		}
	})
	return d
}

// timeout returns the retransmission timeout of Ultra Ethernet packets: 15 µs plus the time in
// which a NIC sends six of the longest queues, as in uet-htsim.
func (d *distance) timeout(rate int64) time.Duration {
	return 15*time.Microsecond + time.Duration(6*8e9*float64(d.queue)/float64(rate))
}

// farthest finds the host that is farthest from a host on shortest paths, by number of links and
// then by time. It also returns the round-trip time between both in nanoseconds.
func (n *Network) farthest(from *Host, answer int) (far *Host, rtt float64) {
	seen := map[*Switch]float64{}
	level := []*Switch{from.nic.peer.sw}
	seen[level[0]] = n.trip(from.nic, answer)
	far = from
	for len(level) > 0 {
		next := map[*Switch]float64{}
		var order []*Switch
		for _, s := range level {
			for _, o := range s.Ports() {
				if o.down {
					continue
				}
				t := seen[s] + n.trip(o, answer)
				if h := o.peer.host; h != nil {
					if h != from && t > rtt {
						far, rtt = h, t
					}
					continue
				}
				to := o.peer.sw
				if _, ok := seen[to]; ok {
					continue
				}
				before, ok := next[to]
				if !ok {
					order = append(order, to)
				}
				if !ok || t < before {
					next[to] = t
				}
			}
		}
		for _, s := range order {
			seen[s] = next[s]
		}
		level = order
	}
	return far, rtt
}

// trip returns the nanoseconds of a full packet and its acknowledgment on a link.
func (n *Network) trip(o *Port, answer int) float64 {
	return 2*float64(o.delay) + float64(n.frame()+answer)*8e9/float64(o.rate)
}

// thresholds returns the queue lengths from which switches mark some packets and all.
func (d *distance) thresholds(frame int) (least, most fabric.Size) {
	packets := math.Ceil(d.rtt.Seconds() * float64(d.line) / 8 / float64(frame))
	return fabric.Size(math.Ceil(0.2*packets)) * fabric.Size(frame), fabric.Size(math.Ceil(0.8*packets)) * fabric.Size(frame)
}
