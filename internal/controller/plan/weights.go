package plan

import (
	"math"

	"github.com/p4lb/p4lb/internal/network/fabric"
)

// weights returns weights in proportion to the capacity of each path of a group: the
// rate of the link, or less if the next switch cannot forward as much. Parallel links
// share the capacity of the next switch.
func (b *planner) weights(g fabric.Group) []uint64 {
	if b.grouping < fabric.ByLeaf {
		return make([]uint64, len(g.Hops))
	}
	rates := b.plan.hopRates(b.sw.Name, g.ID)
	weights := make([]uint64, len(g.Hops))
	var divisor, largest uint64
	for i, h := range g.Hops {
		weights[i] = max(1, uint64(rates[h.Port]/fabric.Kbps))
		divisor, largest = gcd(weights[i], divisor), max(largest, weights[i])
	}
	const most = 1 << 20 // the sum of 16 weights fits in 32 bits
	if largest/divisor > most {
		divisor = largest / most
	}
	for i := range weights {
		weights[i] = max(1, weights[i]/divisor)
	}
	return weights
}

func gcd(a, b uint64) uint64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// hopRates returns the capacity of each next hop from a switch to a leaf, by port.
func (p *Plan) hopRates(from string, leaf int) map[int]fabric.Rate {
	to := p.Topology.Leaves()[leaf-1]
	hops, _ := p.Routes.NextHops(from, to.Name)
	links := map[string]fabric.Rate{} // total rate to each next switch
	for _, h := range hops {
		links[h.Peer] += h.Rate
	}
	onward := map[string]fabric.Rate{}
	for peer := range links {
		if peer != to.Name {
			for _, r := range p.hopRates(peer, leaf) {
				onward[peer] += r
			}
		}
	}
	rates := map[int]fabric.Rate{}
	for _, h := range hops {
		rates[h.Number] = h.Rate
		if h.Peer != to.Name {
			share := float64(h.Rate) / float64(links[h.Peer])
			rates[h.Number] = min(h.Rate, fabric.Rate(math.Round(share*float64(onward[h.Peer]))))
		}
	}
	return rates
}
