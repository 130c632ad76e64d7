package fabric

import "slices"

// A graph is the switches and the links between them that are up, by places
// instead of names.
type graph struct {
	edges [][]edge // of each switch, by port
}

// An edge leads from one switch to another.
type edge struct {
	to   int
	port int // place in the ports of the switch that it starts from
	link int // place in Topology.Links

	rate  Rate
	delay int64 // ns
}

// graphOf is the graph of the links that are up, or of all of them.
func (t *Topology) graphOf(all bool) *graph {
	g := &graph{edges: make([][]edge, len(t.Switches))}
	for i, ports := range t.ports {
		for k, p := range ports {
			if p.PeerTier == 0 || p.Down && !all {
				continue
			}
			g.edges[i] = append(g.edges[i], edge{t.nodes[p.Peer], k, p.Link, p.Rate, int64(p.Delay)})
		}
	}
	return g
}

// distances returns how many links each switch is away from one, -1 where there
// is no way, and the switches in the order of it.
func (g *graph) distances(from int) (far []int32, order []int) {
	far = slices.Repeat([]int32{-1}, len(g.edges))
	far[from] = 0
	order = append(make([]int, 0, len(g.edges)), from)
	for i := 0; i < len(order); i++ {
		for _, e := range g.edges[order[i]] {
			if far[e.to] < 0 {
				far[e.to] = far[order[i]] + 1
				order = append(order, e.to)
			}
		}
	}
	return far, order
}
