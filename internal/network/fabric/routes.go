package fabric

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"math/bits"
	"slices"
	"time"

	"github.com/p4lb/p4lb/internal/text/lists"
)

// Routes are the shortest paths of a topology: all next hops from each switch
// to each leaf.
type Routes struct {
	t     *Topology
	g     *graph
	leafs [][]way // ways by leaf and switch
	sets  []sets  // sets by switch
}

// A way is the result for a switch and a leaf.
type way struct {
	far   int32 // number of links between switches; -1: unreachable
	set   int32 // index in the sets of the switch; -1: no next hop
	rate  Rate  // rate of the slowest link, on the best shortest path
	delay int64 // delay of the fastest shortest path in ns
}

// A sets holds the different sets of next hops of a switch.
type sets struct {
	list  []portSet
	index map[portSet]int32
	ids   []int // id of the group for each set; 0: no group
}

// A portSet is a set of indexes in the list of a switch's ports.
type portSet [(MaxPort + 63) / 64]uint64

func (s *portSet) add(i int) { s[i/64] |= 1 << (i % 64) }

func (s *portSet) len() int {
	n := 0
	for _, word := range s {
		n += bits.OnesCount64(word)
	}
	return n
}

func (s *portSet) hash() uint32 {
	h := fnv.New32a()
	for _, word := range s {
		h.Write(binary.LittleEndian.AppendUint64(nil, word))
	}
	return h.Sum32()
}

// places returns the elements in order.
func (s *portSet) places() []int {
	var list []int
	for w, word := range s {
		for ; word != 0; word &= word - 1 {
			list = append(list, w*64+bits.TrailingZeros64(word))
		}
	}
	return list
}

// Routes returns the routes over the links that are up. It computes them once.
func (t *Topology) Routes() *Routes { return t.routes() }

func (t *Topology) findRoutes() *Routes {
	r := t.routesOver(t.graphOf(false))
	healthy := r
	if t.failed() {
		healthy = t.routesOver(t.graphOf(true))
	}
	for i := range r.sets {
		r.sets[i].number(healthy.sets[i].several())
		r.sets[i].index = nil // needed for building only
	}
	return r
}

func (t *Topology) routesOver(g *graph) *Routes {
	r := &Routes{t: t, g: g, leafs: make([][]way, len(t.leaves)), sets: make([]sets, len(t.Switches))}
	for i := range r.sets {
		r.sets[i].index = map[portSet]int32{}
	}
	for i, leaf := range t.leaves {
		r.leafs[i] = r.waysTo(leaf)
	}
	return r
}

// waysTo computes the ways to one leaf, beginning with the nearest switches:
// the result for a switch follows from the results for its next hops.
func (r *Routes) waysTo(leaf int) []way {
	far, order := r.g.distances(leaf)
	ways := make([]way, len(far))
	for i := range ways {
		ways[i] = way{far: far[i], set: -1}
	}
	ways[leaf].rate = 1<<63 - 1
	for _, s := range order[1:] {
		w := &ways[s]
		w.delay = 1<<63 - 1
		var set portSet
		for _, e := range r.g.edges[s] {
			if far[e.to] == far[s]-1 {
				set.add(e.port)
				w.rate = max(w.rate, min(e.rate, ways[e.to].rate))
				w.delay = min(w.delay, e.delay+ways[e.to].delay)
			}
		}
		w.set = r.sets[s].intern(set)
	}
	return ways
}

func (s *sets) intern(set portSet) int32 {
	i, ok := s.index[set]
	if !ok {
		i = int32(len(s.list))
		s.list = append(s.list, set)
		s.index[set] = i
	}
	return i
}

// maxGroup is the largest id of a group with several members, unless there are more such groups.
// Generated programs have this many slots for the state of groups.
const maxGroup = 1023

// several returns the sets of more than one next hop in the order of their
// discovery, leaf by leaf.
func (s *sets) several() []portSet {
	return slices.DeleteFunc(slices.Clone(s.list), func(set portSet) bool { return set.len() < 2 })
}

// number assigns group ids to the sets of several next hops. Sets that exist
// while all links are up keep their ids regardless of failures. Ids of other
// sets follow, at a position that depends on a hash of the set, so that another
// failure does not change them, unless two sets collide.
func (s *sets) number(healthy []portSet) {
	ids := make(map[portSet]int, len(healthy))
	for i, set := range healthy {
		ids[set] = i + 1
	}
	fresh := slices.DeleteFunc(s.several(), func(set portSet) bool { return ids[set] != 0 })
	slices.SortFunc(fresh, func(a, b portSet) int { return slices.Compare(a[:], b[:]) })
	taken, spare := map[int]bool{}, max(maxGroup-len(healthy), len(fresh))
	for _, set := range fresh {
		at := int(set.hash() % uint32(spare))
		for taken[at] {
			at = (at + 1) % spare
		}
		taken[at] = true
		ids[set] = len(healthy) + 1 + at
	}
	s.ids = make([]int, len(s.list))
	for i, set := range s.list {
		s.ids[i] = ids[set]
	}
}

// hops returns the next hops of a switch towards the leaf at an index of
// Topology.leaves.
func (r *Routes) hops(s, leaf int) []Port {
	w := r.leafs[leaf][s]
	if w.set < 0 {
		return nil
	}
	return lists.Map(r.sets[s].list[w.set].places(), func(i int) Port { return r.t.ports[s][i] })
}

// pathsFrom returns the number of shortest paths to a leaf through a port.
func (r *Routes) pathsFrom(p Port, leaf int) int {
	next, _ := r.t.switchIndex(p.Peer)
	if next == r.t.leaves[leaf] {
		return 1
	}
	n := 0
	for _, q := range r.hops(next, leaf) {
		n += r.pathsFrom(q, leaf)
	}
	return n
}

// NextHops returns the ports, in order, through which the named switch sends to
// the named host or leaf. The result is empty if there is no path or the switch
// is that leaf.
func (r *Routes) NextHops(from, to string) ([]Port, error) {
	s, err := r.t.leafOf(from)
	if err != nil {
		return nil, err
	}
	leaf, err := r.t.leafOf(to)
	if err != nil {
		return nil, err
	}
	if h := r.t.Host(to); h != nil && s == leaf {
		p := r.t.PortOf(h)
		if p.Down {
			return nil, nil
		}
		return []Port{p}, nil
	}
	n := r.t.Switches[leaf].Leaf
	if n == 0 {
		return nil, fmt.Errorf("switch %s has no hosts: want a leaf or a host as the destination", to)
	}
	return r.hops(s, n-1), nil
}

// A Span describes the best connection between two nodes.
type Span struct {
	Links int           // on a shortest path
	RTT   time.Duration // round-trip time on the fastest shortest path, the sum of the links' delays
	Rate  Rate          // rate of the slowest link, on the fastest shortest path by rate
}

// Span returns the span between two hosts, or a host and a leaf; ok is false if
// there is no path.
func (r *Routes) Span(a, b string) (Span, bool) {
	s, errA := r.t.leafOf(a)
	leaf, errB := r.t.leafOf(b)
	if errA != nil || errB != nil || r.t.Switches[leaf].Leaf == 0 {
		return Span{}, false
	}
	w := r.leafs[r.t.Switches[leaf].Leaf-1][s]
	if w.far < 0 {
		return Span{}, false
	}
	span := Span{Links: int(w.far), RTT: 2 * time.Duration(w.delay), Rate: w.rate}
	for _, name := range []string{a, b} {
		if h := r.t.Host(name); h != nil {
			p := r.t.PortOf(h)
			if p.Down {
				return Span{}, false
			}
			span.Links++
			span.RTT += 2 * p.Delay
			span.Rate = min(span.Rate, p.Rate)
		}
	}
	return span, true
}
