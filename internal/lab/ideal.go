package lab

import (
	"maps"
	"math"
	"slices"
	"time"

	"github.com/p4lb/p4lb/internal/lab/spec"
	"github.com/p4lb/p4lb/internal/network/fabric"
)

// A flow's slowdown is its completion time divided by its ideal time. The ideal
// time is the shortest time in which a network without other flows could carry the
// flow over any paths. It is measured from the first bit at the sender to the last
// byte at the receiver. Switches store and forward packets, so the time is at least
//
//	the time of the whole flow on the slowest part of the path
//	+ the time of one packet on each other link
//	+ the delay of the fastest path.
//
// The slowest part is the sender's link, the receiver's link, or the fabric, which
// carries no more between two leaves than their maximum flow. An idealTimer takes the
// largest of the three bounds, so no flow has a slowdown below 1.
type idealTimer struct {
	topo   *fabric.Topology
	routes *fabric.Routes
	hosts  []float64   // rates of their links in bit/s
	inner  fabric.Rate // rate of the fastest link between switches
	cut    bool        // transmission times are rounded down to whole nanoseconds
	flow   map[[2]string]float64
	pipes  *pipes  // nil: not needed yet
	ports  [][]int // indices in Hosts of each host's ports
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

// A framing describes how a transport divides a flow into packets.
type framing struct {
	segment int64 // payload of a full packet
	headers int64
}

// of returns the ideal time of a flow, or the largest duration if there is no path.
func (i *idealTimer) of(f *spec.Flow, frames framing) time.Duration {
	span, ok := i.span(f.Src, f.Dst)
	if !ok {
		return time.Duration(math.MaxInt64)
	}
	full := (f.Bytes - 1) / frames.segment // number of packets before the last one
	last := f.Bytes - full*frames.segment + frames.headers
	first := last
	if full > 0 {
		first = frames.segment + frames.headers
	}
	out, in := i.hosts[f.Src], i.hosts[f.Dst]
	one := func(bytes int64, rate float64) float64 { return i.onLine(float64(bytes), rate) }
	whole := func(rate float64) float64 { return float64(full)*one(first, rate) + one(last, rate) }

	hops := float64(span.Links - 2) // links between switches
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
	rounding := time.Duration(span.Links) // one rounding per link
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

// planes returns the rate in bit/s that the fabric can carry from one host to another through all
// their ports.
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
		if i.pipes == nil {
			i.pipes = newPipes(i.topo)
		}
		rate = i.pipes.maxFlow(from, to)
		i.flow[key] = rate
	}
	return rate
}

// pipes computes maximum flows between switches by the method of Dinic: it augments along
// all shortest paths with room until there is no path. The arcs of a switch are
// consecutive, and each has its reverse.
type pipes struct {
	place map[string]int
	first []int32   // by switch: index of its first arc, with one more entry at the end
	to    []int32   // by arc
	back  []int32   // by arc: the reverse arc
	rate  []float64 // by arc
	room  []float64 // by arc: remaining capacity for the current flow

	distance []int32 // by switch: arcs with capacity to the destination; 0: not known
	next     []int32 // by switch: next arc to try
	queue    []int32
}

func newPipes(t *fabric.Topology) *pipes {
	p := &pipes{place: map[string]int{}}
	n := len(t.Switches)
	for i, s := range t.Switches {
		p.place[s.Name] = i
	}
	rates := make([]map[int]float64, n) // total rate of all links between two switches
	for i := range rates {
		rates[i] = map[int]float64{}
	}
	for i, s := range t.Switches {
		for _, port := range t.Ports(s.Name) {
			if port.PeerTier > 0 && !port.Down {
				j := p.place[port.Peer]
				rates[i][j] += float64(port.Rate)
				rates[j][i] += 0
			}
		}
	}
	arcs := map[[2]int]int32{}
	for i := range rates {
		p.first = append(p.first, int32(len(p.to)))
		for _, j := range slices.Sorted(maps.Keys(rates[i])) {
			arcs[[2]int{i, j}] = int32(len(p.to))
			p.to, p.rate = append(p.to, int32(j)), append(p.rate, rates[i][j])
		}
	}
	p.first = append(p.first, int32(len(p.to)))
	p.back = make([]int32, len(p.to))
	for pair, arc := range arcs {
		p.back[arc] = arcs[[2]int{pair[1], pair[0]}]
	}
	p.room = make([]float64, len(p.to))
	p.distance, p.next = make([]int32, n), make([]int32, n)
	return p
}

// maxFlow returns the maximum flow from one switch to another.
func (p *pipes) maxFlow(from, to string) (total float64) {
	a, b := int32(p.place[from]), int32(p.place[to])
	copy(p.room, p.rate)
	for p.measure(a, b) {
		copy(p.next, p.first)
		for {
			sent := p.augment(a, b, math.Inf(1))
			if sent == 0 {
				break
			}
			total += sent
		}
	}
	return total
}

// measure computes the distances of switches to b, and reports whether a can reach b.
func (p *pipes) measure(a, b int32) bool {
	clear(p.distance)
	p.distance[b] = 1
	p.queue = append(p.queue[:0], b)
	for k := 0; k < len(p.queue); k++ {
		at := p.queue[k]
		if at == a {
			return true
		}
		for arc := p.first[at]; arc < p.first[at+1]; arc++ {
			if peer := p.to[arc]; p.distance[peer] == 0 && p.room[p.back[arc]] > 0 {
				p.distance[peer] = p.distance[at] + 1
				p.queue = append(p.queue, peer)
			}
		}
	}
	return false
}

// augment sends at most the given flow along a shortest path, and returns the flow sent.
func (p *pipes) augment(at, to int32, most float64) float64 {
	if at == to {
		return most
	}
	for ; p.next[at] < p.first[at+1]; p.next[at]++ {
		arc := p.next[at]
		peer := p.to[arc]
		if p.room[arc] == 0 || p.distance[peer] == 0 || p.distance[peer] != p.distance[at]-1 {
			continue
		}
		if sent := p.augment(peer, to, min(most, p.room[arc])); sent > 0 {
			p.room[arc] -= sent
			p.room[p.back[arc]] += sent
			return sent
		}
	}
	return 0
}
