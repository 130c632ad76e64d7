package fabric

import (
	"fmt"
	"slices"
	"time"
)

// A Path is a path through the network without a loop.
type Path struct {
	// ID numbers the shortest paths between two leaves from 0. It does not
	// change when other links fail.
	ID int

	Nodes []string      // names of the nodes from end to end
	Ports []int         // Ports[i] is the port through which Nodes[i] sends; 0 for a host
	Links []int         // indexes in Topology.Links
	Delay time.Duration // one way, the sum of the links' delays
	Rate  Rate          // rate of the slowest link
}

// MaxPaths is the maximum number of paths returned by Paths and KShortest.
const MaxPaths = 4096

// Paths returns the shortest paths between two switches or hosts over the links
// that are up, in the order of their ids, which follows the order of their
// ports, or nil if there are none. Parallel links result in separate paths.
//
// The shortest paths over all links have the first ids. Longer paths are
// returned only if all of these have failed, with larger ids.
func (r *Routes) Paths(from, to string) ([]Path, error) {
	t := r.t
	src, dst, err := t.endpoints(from, to)
	if err != nil {
		return nil, err
	}
	list := t.shortestPaths(t.graphOf(true), src, dst)
	all := len(list)
	list = slices.DeleteFunc(list, func(p Path) bool {
		return slices.ContainsFunc(p.Links, func(l int) bool { return t.Links[l].Down })
	})
	if len(list) == 0 {
		list = t.shortestPaths(r.g, src, dst)
		for i := range list {
			list[i].ID += all
		}
	}
	return t.withHosts(list, from, to), nil
}

// endpoints returns the switches of two nodes.
func (t *Topology) endpoints(from, to string) (src, dst int, err error) {
	if src, err = t.leafOf(from); err != nil {
		return 0, 0, err
	}
	if dst, err = t.leafOf(to); err != nil {
		return 0, 0, err
	}
	if from == to {
		return 0, 0, fmt.Errorf("a path from %s to itself: want two nodes", from)
	}
	return src, dst, nil
}

// shortestPaths follows, port by port, the edges that lead nearer to dst.
func (t *Topology) shortestPaths(g *graph, src, dst int) []Path {
	far, _ := g.distances(dst)
	if far[src] < 0 {
		return nil
	}
	var list []Path
	var trail []edge
	var walk func(s int)
	walk = func(s int) {
		if s == dst {
			list = append(list, t.path(src, trail))
			list[len(list)-1].ID = len(list) - 1
			return
		}
		for _, e := range g.edges[s] {
			if far[e.to] == far[s]-1 && len(list) < MaxPaths {
				trail = append(trail, e)
				walk(e.to)
				trail = trail[:len(trail)-1]
			}
		}
	}
	walk(src)
	return list
}

// path returns the path along edges from a switch.
func (t *Topology) path(src int, trail []edge) Path {
	p := Path{Nodes: []string{t.Switches[src].Name}, Rate: 1<<63 - 1}
	for s, i := src, 0; i < len(trail); i++ {
		e := trail[i]
		p.Ports = append(p.Ports, t.ports[s][e.port].Number)
		p.Links = append(p.Links, e.link)
		p.Nodes = append(p.Nodes, t.Switches[e.to].Name)
		p.Delay += time.Duration(e.delay)
		p.Rate = min(p.Rate, e.rate)
		s = e.to
	}
	return p
}

// withHosts adds the links of the hosts to both ends of each path. The result
// is empty if one of them is down.
func (t *Topology) withHosts(list []Path, from, to string) []Path {
	a, b := t.Host(from), t.Host(to)
	for i := range list {
		p := &list[i]
		if a != nil {
			l := t.linkOf(a)
			p.Nodes = slices.Insert(p.Nodes, 0, from)
			p.Ports = slices.Insert(p.Ports, 0, 0)
			p.Links = slices.Insert(p.Links, 0, l)
			t.addLink(p, l)
		}
		if b != nil {
			l := t.linkOf(b)
			p.Nodes, p.Ports, p.Links = append(p.Nodes, to), append(p.Ports, b.Port), append(p.Links, l)
			t.addLink(p, l)
		}
	}
	for _, h := range []*Host{a, b} {
		if h != nil && t.Links[t.linkOf(h)].Down {
			return nil
		}
	}
	return list
}

func (t *Topology) addLink(p *Path, link int) {
	p.Delay += t.Links[link].Delay
	p.Rate = min(p.Rate, t.Links[link].Rate)
}

// linkOf returns the index in Links of a host's link.
func (t *Topology) linkOf(h *Host) int { return t.PortOf(h).Link }
