package fabric

import "slices"

// A graph consists of the switches and the links between them, by index.
type graph struct {
	edges [][]edge // edges of each switch, by port
}

// An edge leads from one switch to another.
type edge struct {
	to   int
	port int // index in the ports of the switch at its start
	link int // index in Topology.Links

	rate  Rate
	delay int64 // ns
}

// graphOf returns the graph of the links that are up, or of all links.
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

// distances returns the number of links from each switch to one, or -1 without
// a path, and the switches in order of that distance.
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
