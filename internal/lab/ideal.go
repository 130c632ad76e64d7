package lab

import (
	"math"
	"time"

	"github.com/p4lb/p4lb/internal/lab/spec"
	"github.com/p4lb/p4lb/internal/network/fabric"
)

// The denominator of a flow's slowdown is the least time in which a network without
// other flows could carry it, whatever path each packet takes: from the first bit at
// the sender to the last byte at the receiver, as completion times are measured.
// Packets are stored and forwarded, so the time is at least
//
//	the time of the whole flow on the slowest part of the way
//	+ the time of one packet on each other link
//	+ the delay of the fastest path.
//
// The slowest part is the sender's link, the receiver's link, or the fabric, which
// carries no more between two leaves than their maximum flow. An idealTimer takes the
// largest of the three bounds, so no flow has a slowdown below 1.
type idealTimer struct {
	topo   *fabric.Topology
	routes *fabric.Routes
	hosts  []float64   // bit/s of their links
	inner  fabric.Rate // of the fastest link between switches
	cut    bool        // links take whole nanoseconds, rounded down
	flow   map[[2]string]float64
	ports  [][]int // of each host: its places in Hosts
}

func newIdealTimer(t *fabric.Topology, cut bool) *idealTimer {
	i := &idealTimer{topo: t, routes: t.Routes(), cut: cut, flow: map[[2]string]float64{}}
	byName := map[string]float64{}
	for _, s := range t.Switches {
		for _, p := range t.Ports(s.Name) {
			if p.PeerTier == 0 {
				byName[p.Peer] = float64(p.Rate)
			} else if !p.Down {
				i.inner = max(i.inner, p.Rate)
			}
		}
	}
	for _, ports := range t.HostPorts() {
		sum := 0.0
		for _, p := range ports {
			sum += byName[t.Hosts[p].Name]
		}
		i.hosts = append(i.hosts, sum)
	}
	i.ports = t.HostPorts()
	return i
}

// A framing is how a transport cuts a flow into packets.
type framing struct {
	segment int64 // bytes of payload in a full packet
	headers int64
}

// of returns the least time of a flow; the largest duration if there is no path.
func (i *idealTimer) of(f spec.Flow, frames framing) time.Duration {
	span, ok := i.span(f.Src, f.Dst)
	if !ok {
		return time.Duration(math.MaxInt64)
	}
	full := (f.Bytes - 1) / frames.segment // packets before the last
	last := f.Bytes - full*frames.segment + frames.headers
	first := last
	if full > 0 {
		first = frames.segment + frames.headers
	}
	out, in := i.hosts[f.Src], i.hosts[f.Dst]
	one := func(bytes int64, rate float64) float64 { return i.onLine(float64(bytes), rate) }
	whole := func(rate float64) float64 { return float64(full)*one(first, rate) + one(last, rate) }

	hops := float64(span.Links - 2) // between switches
	inner := float64(i.inner)
	bound := whole(out) + hops*one(last, inner) + one(last, in)
	rest := whole(in)
	if full > 0 {
		rest -= one(last, in) // the last packet may overtake the first on another path
	}
	bound = max(bound, one(first, out)+hops*one(first, inner)+rest)
	if hops > 0 {
		if rate := i.planes(f.Src, f.Dst); rate > 0 {
			bound = max(bound, one(first, out)+whole(rate)+(hops-1)*one(last, inner)+one(last, in))
		}
	}
	rounding := time.Duration(span.Links) // of times on lines
	return max(1, span.RTT/2+max(0, time.Duration(bound)-rounding))
}

// onLine returns the ns that bytes take at a rate.
func (i *idealTimer) onLine(bytes, rate float64) float64 {
	ns := bytes * 8e9 / rate
	if i.cut {
		return math.Floor(ns)
	}
	return ns
}

// span returns the fastest of the spans between the ports of two hosts.
func (i *idealTimer) span(from, to int) (best fabric.Span, found bool) {
	a, b := i.ports[from], i.ports[to]
	for k := range min(len(a), len(b)) {
		s, ok := i.routes.Span(i.topo.Hosts[a[k]].Name, i.topo.Hosts[b[k]].Name)
		if ok && (!found || s.RTT < best.RTT) {
			best, found = s, true
		}
	}
	return best, found
}

// planes returns the bit/s that the fabric can carry from one host to another, through
// all their ports.
func (i *idealTimer) planes(from, to int) (sum float64) {
	a, b := i.ports[from], i.ports[to]
	for k := range min(len(a), len(b)) {
		sum += i.between(i.topo.Hosts[a[k]].Switch, i.topo.Hosts[b[k]].Switch)
	}
	return sum
}

// between returns the bit/s that the fabric can carry from one leaf to another.
func (i *idealTimer) between(from, to string) float64 {
	key := [2]string{from, to}
	rate, ok := i.flow[key]
	if !ok {
		rate = maxFlow(i.topo, from, to)
		i.flow[key] = rate
	}
	return rate
}

// maxFlow returns the maximum flow between two switches by the method of Edmonds and
// Karp: it augments along shortest paths with room until there is none.
func maxFlow(t *fabric.Topology, from, to string) float64 {
	room := map[[2]string]float64{}
	next := map[string][]string{}
	for _, s := range t.Switches {
		for _, p := range t.Ports(s.Name) {
			if p.PeerTier > 0 && !p.Down {
				if room[[2]string{s.Name, p.Peer}] == 0 {
					next[s.Name] = append(next[s.Name], p.Peer)
				}
				room[[2]string{s.Name, p.Peer}] += float64(p.Rate)
			}
		}
	}
	total := 0.0
	for {
		before := map[string]string{from: from}
		for queue := []string{from}; len(queue) > 0 && before[to] == ""; queue = queue[1:] {
			for _, n := range next[queue[0]] {
				if before[n] == "" && room[[2]string{queue[0], n}] > 0 {
					before[n] = queue[0]
					queue = append(queue, n)
				}
			}
		}
		if before[to] == "" {
			return total
		}
		least := math.Inf(1)
		for n := to; n != from; n = before[n] {
			least = min(least, room[[2]string{before[n], n}])
		}
		for n := to; n != from; n = before[n] {
			room[[2]string{before[n], n}] -= least
			room[[2]string{n, before[n]}] += least
		}
		total += least
	}
}
