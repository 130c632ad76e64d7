package fabric

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"
)

// Grouping determines which destinations share a group.
type Grouping int

const (
	// ByHops gives destinations with the same next hops the same group. Ids
	// count from 1 at each switch.
	ByHops Grouping = iota

	// ByLeaf gives each leaf its own group with id Switch.Leaf, the same at
	// every switch. Schemes with state per destination (CONGA, HULA, Hermes,
	// QDAPS*, PDLB, DHLB) need it.
	ByLeaf

	// ByPath is ByLeaf with slots in proportion to the number of shortest paths
	// through each next hop. A next hop with twice as many paths as another has
	// two slots, so a scheme that chooses among slots sends it twice as much
	// traffic.
	ByPath
)

// A Table is the forwarding state of a switch for all hosts.
type Table struct {
	Switch string
	Routes []Route // sorted by prefix
	Groups []Group // sorted by id
}

// A Route forwards packets to a prefix to a group, or to the single next hop if
// Group is 0.
type Route struct {
	Prefix netip.Prefix
	Group  int
	Hop    Hop
}

// A Group is a set of next hops to one destination. Generated programs call the
// index in Hops a slot.
type Group struct {
	ID   int
	Hops []Hop // sorted by port; with ByPath a port may occur several times
}

// A Hop is a next hop.
type Hop struct {
	Port int
	Dst  MAC // MAC of the node at the other end
	Src  MAC // MAC of the port
}

func (p Port) hop() Hop { return Hop{p.Number, p.PeerMAC, p.MAC} }

// Table returns the forwarding state of the named switch; ok is false if there
// is no such switch. An unreachable host or leaf has no route.
//
// There are routes to the hosts at the switch itself and to the subnets
// elsewhere, or to the single addresses of a subnet with hosts at several
// leaves. Two halves of a prefix with the same next hops are merged. The routes
// cover exactly the subnets of the hosts, so a packet to an unassigned address
// is dropped at the leaf at the latest.
func (r *Routes) Table(name string, by Grouping) (Table, bool) {
	s, ok := r.t.switchIndex(name)
	if !ok {
		return Table{}, false
	}
	b := &tableBuilder{r: r, s: s, by: by, groups: map[int]Group{}}
	// Routes to the hosts at the switch itself.
	var routes []Route
	for _, p := range b.r.t.ports[b.s] {
		if h := b.r.t.Host(p.Peer); h != nil && !p.Down {
			routes = append(routes, Route{Prefix: whole(h.IP.Addr()), Hop: p.hop()})
		}
	}
	for _, d := range r.t.destinations {
		if leaf := r.t.leaves[d.Leaf-1]; leaf != s {
			if route, ok := b.route(d); ok {
				routes = append(routes, route)
			}
		}
	}
	t := Table{Switch: name, Routes: aggregate(routes)}
	t.Groups = slices.SortedFunc(maps.Values(b.groups), func(a, b Group) int { return cmp.Compare(a.ID, b.ID) })
	return t, true
}

type tableBuilder struct {
	r      *Routes
	s      int
	by     Grouping
	groups map[int]Group
}

// route returns the route to a destination at another leaf.
func (b *tableBuilder) route(d Destination) (Route, bool) {
	w := b.r.leafs[d.Leaf-1][b.s]
	if w.set < 0 {
		return Route{}, false
	}
	id := d.Leaf
	if b.by == ByHops {
		id = b.r.sets[b.s].ids[w.set]
	}
	if _, ok := b.groups[id]; !ok {
		g := Group{ID: id}
		hops := b.r.hops(b.s, d.Leaf-1)
		places := b.places(hops, d.Leaf-1)
		for i, p := range hops {
			g.Hops = append(g.Hops, slices.Repeat([]Hop{p.hop()}, places[i])...)
		}
		if len(g.Hops) == 1 {
			return Route{Prefix: d.Prefix, Hop: g.Hops[0]}, true
		}
		b.groups[id] = g
	}
	return Route{Prefix: d.Prefix, Group: id}, true
}

// places returns the number of slots of each next hop.
func (b *tableBuilder) places(hops []Port, leaf int) []int {
	list, divisor := slices.Repeat([]int{1}, len(hops)), 0
	if b.by != ByPath {
		return list
	}
	for i, p := range hops {
		list[i] = b.r.pathsFrom(p, leaf)
		divisor = gcd(divisor, list[i])
	}
	for i := range list {
		list[i] /= divisor
	}
	return list
}

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// findDestinations returns the subnets in order of their addresses. A subnet
// that is spread over several leaves or overlaps with another one is replaced
// by the addresses of its hosts. Destinations therefore do not overlap, and a
// packet to an unreachable leaf is not sent to another one.
func (t *Topology) findDestinations() []Destination {
	subnets := map[netip.Prefix][]Destination{}
	for _, h := range t.Hosts {
		d := Destination{whole(h.IP.Addr()), t.Switch(h.Switch).Leaf}
		subnets[h.IP.Masked()] = append(subnets[h.IP.Masked()], d)
	}
	overlap := map[netip.Prefix]bool{}
	for inner := range subnets {
		for length := range inner.Bits() {
			outer := netip.PrefixFrom(inner.Addr(), length).Masked()
			if _, ok := subnets[outer]; ok {
				overlap[inner], overlap[outer] = true, true
			}
		}
	}
	var list []Destination
	for prefix, hosts := range subnets {
		spread := slices.ContainsFunc(hosts, func(d Destination) bool { return d.Leaf != hosts[0].Leaf })
		if spread || overlap[prefix] {
			list = append(list, hosts...)
		} else {
			list = append(list, Destination{prefix, hosts[0].Leaf})
		}
	}
	slices.SortFunc(list, func(a, b Destination) int { return comparePrefixes(a.Prefix, b.Prefix) })
	return list
}

// comparePrefixes orders prefixes by address, and a prefix before the prefixes
// that it contains.
func comparePrefixes(a, b netip.Prefix) int {
	return cmp.Or(a.Addr().Compare(b.Addr()), cmp.Compare(a.Bits(), b.Bits()))
}

// aggregate sorts the routes, which must not overlap, and merges halves with
// the same next hops as far as possible.
func aggregate(routes []Route) []Route {
	slices.SortFunc(routes, func(a, b Route) int { return comparePrefixes(a.Prefix, b.Prefix) })
	// The routes are in order of their addresses, so a route can only be merged
	// with its predecessor.
	list := routes[:0]
	for _, r := range routes {
		for n := len(list); n > 0; n = len(list) {
			whole, ok := join(list[n-1].Prefix, r.Prefix)
			if !ok || list[n-1].Group != r.Group || list[n-1].Hop != r.Hop {
				break
			}
			list, r.Prefix = list[:n-1], whole
		}
		list = append(list, r)
	}
	return list
}

// join returns the prefix with the halves a and b; a is the first.
func join(a, b netip.Prefix) (netip.Prefix, bool) {
	if a.Bits() != b.Bits() || a.Bits() == 0 || a == b || a.Addr().BitLen() != b.Addr().BitLen() {
		return netip.Prefix{}, false
	}
	p := netip.PrefixFrom(a.Addr(), a.Bits()-1)
	return p, p.Masked() == p && p.Contains(b.Addr())
}

// whole returns the prefix of a single address.
func whole(a netip.Addr) netip.Prefix { return netip.PrefixFrom(a, a.BitLen()) }

// Changed returns the names of the switches with different tables in two
// topologies' routes, in the order of the later topology, followed by removed
// switches.
func (r *Routes) Changed(before *Routes, by Grouping) []string {
	var names []string
	for _, s := range r.t.Switches {
		now, _ := r.Table(s.Name, by)
		then, ok := before.Table(s.Name, by)
		if !ok || !now.equal(then) {
			names = append(names, s.Name)
		}
	}
	for _, s := range before.t.Switches {
		if r.t.Switch(s.Name) == nil {
			names = append(names, s.Name)
		}
	}
	return names
}

func (t Table) equal(u Table) bool {
	return slices.Equal(t.Routes, u.Routes) && slices.EqualFunc(t.Groups, u.Groups, func(a, b Group) bool {
		return a.ID == b.ID && slices.Equal(a.Hops, b.Hops)
	})
}
