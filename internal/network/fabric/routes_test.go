package fabric

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// floyd computes all distances between switches over links that are up with the
// Floyd-Warshall algorithm; far stands for no path.
func floyd(top *Topology) [][]int {
	const far = 1 << 20
	d := make([][]int, len(top.Switches))
	for i := range d {
		d[i] = make([]int, len(d))
		for j := range d {
			if i != j {
				d[i][j] = far
			}
		}
	}
	for _, l := range top.Links {
		a, okA := top.switchIndex(l.A.Node)
		b, okB := top.switchIndex(l.B.Node)
		if okA && okB && !l.Down {
			d[a][b], d[b][a] = 1, 1
		}
	}
	for k := range d {
		for i := range d {
			for j := range d {
				d[i][j] = min(d[i][j], d[i][k]+d[k][j])
			}
		}
	}
	return d
}

// wantHops computes the expected result of NextHops from distances.
func wantHops(top *Topology, d [][]int, from, leaf int) []Port {
	var hops []Port
	for _, p := range top.ports[from] {
		if n, ok := top.switchIndex(p.Peer); ok && !p.Down && d[n][leaf]+1 == d[from][leaf] {
			hops = append(hops, p)
		}
	}
	return hops
}

func TestNextHops(t *testing.T) {
	manyTopologies(t, 200, 12, 0.2, func(t *testing.T, top *Topology) {
		d, r := floyd(top), top.Routes()
		for i, from := range top.Switches {
			for _, leaf := range top.Leaves() {
				k, _ := top.switchIndex(leaf.Name)
				got, err := r.NextHops(from.Name, leaf.Name)
				if err != nil {
					t.Fatal(err)
				}
				if want := wantHops(top, d, i, k); !slices.Equal(got, want) {
					t.Errorf("next hops from %s to %s (-want +got):\n%s", from.Name, leaf.Name, cmp.Diff(want, got))
				}
			}
		}
	})
}

func TestNextHopsOfNobody(t *testing.T) {
	r := preset(t, "qall").Routes()
	for _, c := range [][2]string{{"l1", "l9"}, {"l9", "l1"}, {"l1", "s1"}} {
		if hops, err := r.NextHops(c[0], c[1]); err == nil {
			t.Errorf("from %s to %s by %v", c[0], c[1], hops)
		}
	}
	if hops, err := r.NextHops("l1", "h3"); err != nil || len(hops) != 1 || hops[0].Peer != "h3" {
		t.Errorf("from l1 to its own host by %v (%v)", hops, err)
	}
	top := preset(t, "qall")
	cut := top.Fail(links(t, top, "h3")...).Routes()
	if hops, err := cut.NextHops("l1", "h3"); err != nil || hops != nil {
		t.Errorf("from l1 to a host that is cut off by %v (%v)", hops, err)
	}
}

// TestRoutesOnce: a topology computes its routes once, and a changed copy has its own.
func TestRoutesOnce(t *testing.T) {
	top := preset(t, "qall")
	r := top.Routes()
	if top.Routes() != r {
		t.Error("the second call computed the routes again")
	}
	cut := top.Fail(links(t, top, "l1-s1")...)
	for name, other := range map[string]*Topology{"failed": cut, "restored": cut.Restore(links(t, top, "l1-s1")...), "drained": top.Drain()} {
		own := other.Routes()
		if own == r || own.t != other {
			t.Errorf("the %s topology has the routes of the first", name)
		}
		hops, err := own.NextHops("l1", "l2")
		if want := len(wantHops(other, floyd(other), 0, 1)); err != nil || len(hops) != want {
			t.Errorf("%s: %d next hops (%v), want %d", name, len(hops), err, want)
		}
	}
}

// lookup finds the longest matching prefix by searching all routes.
func lookup(table Table, ip netip.Addr) (Route, bool) {
	var best Route
	found := false
	for _, r := range table.Routes {
		if r.Prefix.Contains(ip) && (!found || r.Prefix.Bits() > best.Prefix.Bits()) {
			best, found = r, true
		}
	}
	return best, found
}

// hopsOf returns the next hops of a switch by its table.
func hopsOf(t *testing.T, table Table, ip netip.Addr) []Hop {
	t.Helper()
	route, ok := lookup(table, ip)
	switch {
	case !ok:
		return nil
	case route.Group == 0:
		return []Hop{route.Hop}
	}
	for _, g := range table.Groups {
		if g.ID == route.Group {
			return g.Hops
		}
	}
	t.Errorf("%s: there is no group %d of %v", table.Switch, route.Group, route.Prefix)
	return nil
}

// TestTables: looking up each host in each table returns the next hops of
// NextHops.
func TestTables(t *testing.T) {
	for _, by := range []Grouping{ByHops, ByLeaf} {
		manyTopologies(t, 60, 12, 0.2, func(t *testing.T, top *Topology) { checkTables(t, top, by) })
		for _, name := range []string{"qall-asym", "dhlb", "rlb-12x12", "rlb-pfc"} {
			checkTables(t, preset(t, name), by)
		}
	}
}

// TestPlaces: next hops have slots in proportion to the number of their paths.
func TestPlaces(t *testing.T) {
	for _, c := range []struct {
		name, from string
		want       []int // ports
	}{
		{"qall", "l1", []int{17, 18, 19, 20}},
		{"qall-asym", "l1", []int{17, 17, 18, 18, 19, 20}},
		{"qall-asym", "s1", []int{3, 4}},
		{"dhlb", "t1", []int{3, 4}},
	} {
		top := preset(t, c.name)
		table, ok := top.Routes().Table(c.from, ByPath)
		if !ok {
			t.Fatalf("%s: there is no %s", c.name, c.from)
		}
		var got []int
		for _, h := range hopsOf(t, table, top.Hosts[len(top.Hosts)-1].IP.Addr()) {
			got = append(got, h.Port)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s of %s sends to the ports %v, want %v", c.from, c.name, got, c.want)
		}
	}
}

func checkTables(t *testing.T, top *Topology, by Grouping) {
	t.Helper()
	r := top.Routes()
	for _, s := range top.Switches {
		table, ok := r.Table(s.Name, by)
		if !ok {
			t.Fatalf("no table of %s", s.Name)
		}
		for _, h := range top.Hosts {
			hops, err := r.NextHops(s.Name, h.Name)
			if err != nil {
				t.Fatal(err)
			}
			var want []Hop
			for _, p := range hops {
				want = append(want, p.hop())
			}
			if got := hopsOf(t, table, h.IP.Addr()); !slices.Equal(got, want) {
				t.Errorf("%s sends to %s (-want +got):\n%s", s.Name, h.Name, cmp.Diff(want, got))
			}
			route, _ := lookup(table, h.IP.Addr())
			if leaf := top.Switch(h.Switch).Leaf; by == ByLeaf && route.Group != 0 && route.Group != leaf {
				t.Errorf("%s sends to %s by the group %d, want the group of leaf %d", s.Name, h.Name, route.Group, leaf)
			}
		}
		if ip := netip.MustParseAddr("192.0.2.1"); hopsOf(t, table, ip) != nil {
			t.Errorf("%s forwards to an unassigned address", s.Name)
		}
		checkGroups(t, table)
	}
	if _, ok := r.Table("nobody", by); ok {
		t.Error("a table of a switch that is not there")
	}
}

// TestOddSubnets computes routes to subnets that are spread over several
// leaves, contain each other, or have one host each.
func TestOddSubnets(t *testing.T) {
	top, err := Load("odd.yaml", []byte(`
defaults: {switch-links: {rate: 1G}, host-links: {rate: 1G}}
switches: {l1: , l2: , l3: , s1: , s2: }
hosts:
  h1: {ip: 10.0.0.1/8}
  h2: {ip: 10.0.2.1/24}
  h3: {ip: 10.0.2.2/24}
  h4: {ip: 10.0.3.1/24}
  h5: {ip: 10.0.3.2/24}
  h6: {ip: 172.16.0.1/32}
  h7: {ip: 172.16.0.0/31}
  h8: {ip: 10.0.3.3/25}
  h9:
links:
  - {ends: [h1, l1]}
  - {ends: [h2, l2]}
  - {ends: [h3, l2]}
  - {ends: [h4, l2]}
  - {ends: [h5, l3]}
  - {ends: [h6, l1]}
  - {ends: [h7, l3]}
  - {ends: [h8, l3]}
  - {ends: [h9, l1]}
  - {ends: [l1, s1]}
  - {ends: [l1, s2]}
  - {ends: [l2, s1]}
  - {ends: [l2, s2]}
  - {ends: [l3, s1]}
  - {ends: [l3, s2]}
`))
	if err != nil {
		t.Fatal(err)
	}
	checkTables(t, top, ByHops)
	checkTables(t, top, ByLeaf)
	for i := range top.Links {
		checkTables(t, top.Fail(i), ByHops)
	}
}

// checkGroups checks that every group has several members, a unique id, and at
// least one route.
func checkGroups(t *testing.T, table Table) {
	t.Helper()
	seen := map[int]bool{}
	for _, g := range table.Groups {
		used := slices.ContainsFunc(table.Routes, func(r Route) bool { return r.Group == g.ID })
		if len(g.Hops) < 2 || g.ID < 1 || g.ID > maxGroup || seen[g.ID] || !used {
			t.Errorf("%s: group %d has %d members, used: %v, twice: %v", table.Switch, g.ID, len(g.Hops), used, seen[g.ID])
		}
		seen[g.ID] = true
	}
}

// TestDelivery follows every copy of a packet that the tables permit: each must
// arrive after as many steps as there are links.
func TestDelivery(t *testing.T) {
	for _, name := range []string{"qall", "qall-asym", "dhlb", "qdaps-star"} {
		top := preset(t, name)
		r := top.Routes()
		tables := map[string]Table{}
		for _, s := range top.Switches {
			tables[s.Name], _ = r.Table(s.Name, ByHops)
		}
		for _, from := range top.Hosts {
			for _, to := range top.Hosts {
				if from.Name != to.Name {
					deliver(t, top, tables, from, to)
				}
			}
		}
	}
}

func deliver(t *testing.T, top *Topology, tables map[string]Table, from, to Host) {
	t.Helper()
	span, ok := top.Routes().Span(from.Name, to.Name)
	if !ok {
		t.Fatalf("no way from %s to %s", from.Name, to.Name)
	}
	at := map[string]bool{from.Switch: true}
	for range span.Links - 1 {
		next := map[string]bool{}
		for s := range at {
			for _, hop := range hopsOf(t, tables[s], to.IP.Addr()) {
				p := top.ports[top.nodes[s]][top.byPort[top.nodes[s]][hop.Port]]
				if p.Down || hop.Dst != p.PeerMAC || hop.Src != p.MAC {
					t.Errorf("%s sends to %s by %+v, its port is %+v", s, to.Name, hop, p)
				}
				next[p.Peer] = true
			}
		}
		at = next
	}
	if len(at) != 1 || !at[to.Name] {
		t.Errorf("a packet from %s to %s is at %v after %d links", from.Name, to.Name, at, span.Links)
	}
}

// TestSpan compares with the best of all shortest paths.
func TestSpan(t *testing.T) {
	manyTopologies(t, 100, 8, 0.1, func(t *testing.T, top *Topology) {
		r := top.Routes()
		for _, a := range top.Hosts {
			for _, b := range top.Hosts {
				if a.Name == b.Name {
					continue
				}
				paths, err := r.Paths(a.Name, b.Name)
				if err != nil {
					t.Fatal(err)
				}
				want := Span{RTT: time.Hour}
				for _, p := range paths {
					want = Span{len(p.Links), min(want.RTT, 2*p.Delay), max(want.Rate, p.Rate)}
				}
				if got, ok := r.Span(a.Name, b.Name); ok != (len(paths) > 0) || ok && got != want {
					t.Errorf("from %s to %s: %v (%v), want %v of %d paths", a.Name, b.Name, got, ok, want, len(paths))
				}
			}
		}
	})
}

// TestGroupIDs fails links one after the other: a group keeps its id as long as
// its members do not change, and the ids depend on the current state only.
func TestGroupIDs(t *testing.T) {
	top := preset(t, "rlb-12x12")
	ids := map[string]map[string]int{} // by switch and ports
	state := top
	for i, name := range []string{"l1-s1", "l2-s5", "l12-s12", "l3-s1", "l1-s2"} {
		state = state.Fail(links(t, state, name)...)
		other := top
		for _, l := range slices.Backward([]string{"l1-s1", "l2-s5", "l12-s12", "l3-s1", "l1-s2"}[:i+1]) {
			other = other.Fail(links(t, other, l)...)
		}
		if changed := state.Routes().Changed(other.Routes(), ByHops); changed != nil {
			t.Errorf("after %d failures in another order there are other tables of %v", i+1, changed)
		}
		for _, s := range top.Switches {
			table, _ := state.Routes().Table(s.Name, ByHops)
			if ids[s.Name] == nil {
				ids[s.Name] = map[string]int{}
			}
			for _, g := range table.Groups {
				key := ""
				for _, h := range g.Hops {
					key += string(rune(h.Port))
				}
				if before := ids[s.Name][key]; before != 0 && before != g.ID {
					t.Errorf("%s: the group of %d members had the id %d, and %d after %d failures", s.Name, len(g.Hops), before, g.ID, i+1)
				}
				ids[s.Name][key] = g.ID
			}
		}
	}
}

// TestManySets gives a switch more sets of next hops than there are ids.
func TestManySets(t *testing.T) {
	var s sets
	s.index = map[portSet]int32{}
	for i := range 1500 {
		var set portSet
		set.add(200 + i%300)
		set.add(i % 100)
		set.add(100 + i%97)
		s.intern(set)
	}
	s.number(s.several()[:7])
	seen := map[int]bool{}
	for i, id := range s.ids {
		if id < 1 || seen[id] || i < 7 && id != i+1 {
			t.Fatalf("set %d has the id %d, seen before: %v", i, id, seen[id])
		}
		seen[id] = true
	}
}

// TestChanged: the result is exactly the set of switches with different next
// hops to some host.
func TestChanged(t *testing.T) {
	manyTopologies(t, 60, 10, 0.1, func(t *testing.T, top *Topology) {
		before := top.Routes()
		for i := range top.Links {
			after := top.Fail(i).Routes()
			if top.Links[i].Down {
				after = top.Restore(i).Routes()
			}
			var want []string
			for _, s := range top.Switches {
				if slices.ContainsFunc(top.Hosts, func(h Host) bool { return !sameHops(t, before, after, s.Name, h.Name) }) {
					want = append(want, s.Name)
				}
			}
			if diff := cmp.Diff(want, after.Changed(before, ByLeaf)); diff != "" {
				t.Errorf("%v fails or comes back (-want +got):\n%s", top.Links[i], diff)
			}
		}
	})
}

func sameHops(t *testing.T, a, b *Routes, from, to string) bool {
	t.Helper()
	x, errX := a.NextHops(from, to)
	y, errY := b.NextHops(from, to)
	if errX != nil || errY != nil {
		t.Fatal(errX, errY)
	}
	return slices.EqualFunc(x, y, func(p, q Port) bool { return p.hop() == q.hop() })
}

// TestFailureInFatTree compares with numbers counted by hand: the link's ends
// change, and the switches of other pods with a path through its core switch.
func TestFailureInFatTree(t *testing.T) {
	for _, k := range []int{4, 6, 8} {
		top, err := FatTree{K: k}.Make()
		if err != nil {
			t.Fatal(err)
		}
		failed := top.Fail(links(t, top, "a1-c1")...)
		if n := len(failed.Routes().Changed(top.Routes(), ByHops)); n != k+1 {
			t.Errorf("k = %d: %d switches change, want %d", k, n, k+1)
		}
		if top.Links[links(t, top, "a1-c1")[0]].Down {
			t.Error("the topology itself has changed")
		}
		back := failed.Restore(links(t, top, "a1-c1")...)
		if changed := back.Routes().Changed(top.Routes(), ByHops); changed != nil {
			t.Errorf("after the link came back there are other tables of %v", changed)
		}
	}
}

// TestChangedSwitches compares networks with different switches.
func TestChangedSwitches(t *testing.T) {
	small, err := LeafSpine{}.Make()
	if err != nil {
		t.Fatal(err)
	}
	large, err := LeafSpine{Spines: 3}.Make()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"l1", "l2", "s3"}, large.Routes().Changed(small.Routes(), ByHops)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"l1", "l2", "s3"}, small.Routes().Changed(large.Routes(), ByHops)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAggregate(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"two halves", "10.0.0.0/24>1 10.0.1.0/24>1", "10.0.0.0/23>1"},
		{"not halves of one", "10.0.1.0/24>1 10.0.2.0/24>1", "10.0.1.0/24>1 10.0.2.0/24>1"},
		{"two ways", "10.0.0.0/24>1 10.0.1.0/24>2", "10.0.0.0/24>1 10.0.1.0/24>2"},
		{"in turn", "10.0.3.0/24>1 10.0.0.0/24>1 10.0.2.0/24>1 10.0.1.0/24>1", "10.0.0.0/22>1"},
		{"of unequal size", "10.0.0.0/24>1 10.0.1.0/25>1 10.0.1.128/25>1", "10.0.0.0/23>1"},
		{"everything", "0.0.0.0/1>1 128.0.0.0/1>1", "0.0.0.0/0>1"},
		{"a hole", "10.0.0.0/24>1 10.0.1.0/25>1", "10.0.0.0/24>1 10.0.1.0/25>1"},
	} {
		if diff := cmp.Diff(routesIn(t, c.want), aggregate(routesIn(t, c.in)), samePrefix); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}
