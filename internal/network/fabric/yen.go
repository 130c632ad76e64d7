package fabric

import (
	"cmp"
	"container/heap"
	"slices"
)

// # Yen's algorithm
//
// QALL (Section IV-A) takes the candidate paths of a host pair from Yen's
// algorithm. It finds the best path first. Then it repeatedly selects the best
// candidate. The candidates deviate from the last path found at one of its
// nodes, by a link that no path found so far uses there. Each candidate's
// remainder is a shortest path in the network without the nodes already passed,
// so no path has a loop.
//
// Paths are ordered by the number of links, then by delay, then by their ports.
// Since no two paths are equal in that order, the result is deterministic, and
// parallel links result in different paths.

// KShortest returns the k best paths without a loop between two switches or
// hosts, or all of them if there are fewer, over the links that are up. Their
// IDs count from 0.
func (t *Topology) KShortest(from, to string, k int) ([]Path, error) {
	src, dst, err := t.endpoints(from, to)
	if err != nil {
		return nil, err
	}
	y := &yen{g: t.graphOf(false), src: src, dst: dst}
	var list []Path
	for _, trail := range y.best(min(k, MaxPaths)) {
		p := t.path(src, trail)
		p.ID = len(list)
		list = append(list, p)
	}
	return t.withHosts(list, from, to), nil
}

type yen struct {
	g        *graph
	src, dst int

	candidates trails
	known      map[string]bool // candidates found so far, by their links
}

// A trail is a path as a list of edges.
type trail []edge

// compare orders trails with the same ends.
func (a trail) compare(b trail) int {
	return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a.delay(), b.delay()),
		slices.CompareFunc(a, b, func(x, y edge) int { return cmp.Compare(x.port, y.port) }))
}

func (a trail) delay() (sum int64) {
	for _, e := range a {
		sum += e.delay
	}
	return sum
}

// best returns the k best trails.
func (y *yen) best(k int) []trail {
	y.known = map[string]bool{}
	y.offer(y.shortest(y.src, nil, nil))
	var found []trail
	for len(found) < k && len(y.candidates) > 0 {
		last := heap.Pop(&y.candidates).(trail)
		found = append(found, last)
		if y.src == y.dst {
			break // the empty trail has no deviations
		}
		if len(found) < k {
			// Add the best deviation at each node of the last trail.
			passed := map[int]bool{}
			for i := range last {
				at := y.src
				if i > 0 {
					at = last[i-1].to
				}
				taken := map[int]bool{} // links used by trails with the same beginning
				for _, f := range found {
					if len(f) > i && slices.Equal(f[:i], last[:i]) {
						taken[f[i].link] = true
					}
				}
				if spur, ok := y.shortest(at, passed, taken); ok {
					y.offer(slices.Concat(last[:i], spur), true)
				}
				passed[at] = true
			}
		}
	}
	return found
}

// offer adds a trail to the candidates unless it is known.
func (y *yen) offer(t trail, ok bool) {
	var b []byte
	for _, e := range t {
		b = append(b, byte(e.link), byte(e.link>>8), byte(e.link>>16))
	}
	if key := string(b); ok && !y.known[key] {
		y.known[key] = true
		heap.Push(&y.candidates, t)
	}
}

// shortest returns the best trail to the destination that avoids the passed
// nodes and does not begin with a taken link.
func (y *yen) shortest(from int, passed, taken map[int]bool) (trail, bool) {
	costs := y.costs(from, passed)
	var t trail
	for at := from; at != y.dst; {
		var best edge
		least := unreachable
		for _, e := range y.g.edges[at] {
			if passed[e.to] || e.to == from || at == from && taken[e.link] {
				continue
			}
			if c := costs[e.to].plus(e); c.less(least) {
				best, least = e, c
			}
		}
		if least == unreachable {
			return nil, false
		}
		t = append(t, best)
		at = best.to
	}
	return t, true
}

// A cost is the cost of the rest of a trail.
type cost struct {
	links int32
	delay int64
}

var unreachable = cost{1<<31 - 1, 0}

func (c cost) plus(e edge) cost {
	if c == unreachable {
		return c
	}
	return cost{c.links + 1, c.delay + e.delay}
}

func (c cost) less(d cost) bool {
	return c.links < d.links || c.links == d.links && c.delay < d.delay
}

// costs returns the cost from each switch to the destination without the passed
// nodes and without returning to from. The number of links has priority, so it
// proceeds in layers.
func (y *yen) costs(from int, passed map[int]bool) []cost {
	costs := slices.Repeat([]cost{unreachable}, len(y.g.edges))
	costs[y.dst] = cost{}
	layer := []int{y.dst}
	for len(layer) > 0 {
		var next []int
		for _, s := range layer {
			for _, e := range y.g.edges[s] { // links are bidirectional
				if passed[e.to] || e.to == from {
					continue
				}
				c := costs[s].plus(e)
				if costs[e.to] == unreachable {
					next = append(next, e.to)
				}
				if c.less(costs[e.to]) {
					costs[e.to] = c
				}
			}
		}
		layer = next
	}
	return costs
}

// trails is a heap with the best trail on top.
type trails []trail

func (h trails) Len() int           { return len(h) }
func (h trails) Less(i, j int) bool { return h[i].compare(h[j]) < 0 }
func (h trails) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *trails) Push(x any)        { *h = append(*h, x.(trail)) }

// Pop implements heap.Interface.
func (h *trails) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}
