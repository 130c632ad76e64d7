package fabric

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// allTrails returns all paths without a loop between two switches in Yen's
// order.
func allTrails(g *graph, src, dst int) []trail {
	var list []trail
	passed := map[int]bool{}
	var walk func(at int, t trail)
	walk = func(at int, t trail) {
		if at == dst {
			list = append(list, slices.Clone(t))
			return
		}
		passed[at] = true
		for _, e := range g.edges[at] {
			if !passed[e.to] {
				walk(e.to, append(t, e))
			}
		}
		passed[at] = false
	}
	walk(src, nil)
	slices.SortFunc(list, trail.compare)
	return list
}

// TestYen compares with all existing paths and requests one too few, all, and
// one too many.
func TestYen(t *testing.T) {
	manyTopologies(t, 150, 6, 0.1, func(t *testing.T, top *Topology) {
		g := top.graphOf(false)
		for i, a := range top.Switches {
			for j, b := range top.Switches {
				if i == j {
					continue
				}
				all := allTrails(g, i, j)
				if len(all) > 300 {
					continue
				}
				for _, k := range []int{len(all) + 1, max(len(all)-1, 0), min(len(all), 3)} {
					checkYen(t, top, a.Name, b.Name, k, all[:min(k, len(all))])
				}
			}
		}
	})
}

func checkYen(t *testing.T, top *Topology, from, to string, k int, want []trail) {
	t.Helper()
	got, err := top.KShortest(from, to, k)
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != len(want) {
		t.Errorf("from %s to %s: %d of %d paths, want %d", from, to, len(got), k, len(want))
		return
	}
	for n, p := range got {
		var ids []int
		for _, e := range want[n] {
			ids = append(ids, e.link)
		}
		if p.ID != n || p.Delay != time.Duration(want[n].delay()) || !slices.Equal(p.Links, ids) {
			t.Errorf("from %s to %s: path %d is %+v, want links %v", from, to, n, p, ids)
		}
	}
}

// TestYenOnFabrics: the numbers of candidate paths agree with the papers.
func TestYenOnFabrics(t *testing.T) {
	for _, c := range []struct {
		preset, from, to string
		shortest         int // number of shortest paths
		links            int // links of a shortest path
		then             int // links of the next best path
	}{
		{"qall", "h1", "h17", 8, 4, 0}, // all others pass a switch twice
		{"qall-asym", "h1", "h17", 6, 4, 0},
		{"qdaps-8x8", "h1", "h256", 8, 4, 6},
		{"dhlb", "h1", "h16", 4, 6, 8},
		{"dhlb", "h1", "h3", 2, 4, 10}, // down into another pod and up again
	} {
		list, err := preset(t, c.preset).KShortest(c.from, c.to, c.shortest+1)
		if err != nil {
			t.Fatal(err)
		}
		var got []int
		for _, p := range list {
			got = append(got, len(p.Links))
		}
		want := slices.Repeat([]int{c.links}, c.shortest)
		if c.then > 0 {
			want = append(want, c.then)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: paths of %v links from %s to %s, want %v", c.preset, got, c.from, c.to, want)
		}
	}
}

// TestPaths: the result is exactly the set of shortest paths, in the order of
// the ports.
func TestPaths(t *testing.T) {
	manyTopologies(t, 150, 6, 0.1, func(t *testing.T, top *Topology) {
		g, r := top.graphOf(false), top.Routes()
		for i, a := range top.Switches {
			for j, b := range top.Switches {
				if i == j {
					continue
				}
				var want [][]int
				for _, trail := range allTrails(g, i, j) {
					if len(want) > 0 && len(trail) > len(want[0]) {
						break
					}
					want = append(want, top.path(i, trail).Ports)
				}
				slices.SortFunc(want, slices.Compare)
				list, err := r.Paths(a.Name, b.Name)
				if err != nil {
					t.Fatal(err)
				}
				var got [][]int
				for _, p := range list {
					got = append(got, p.Ports)
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("from %s to %s (-want +got):\n%s", a.Name, b.Name, diff)
				}
			}
		}
	})
}

// TestPathIDs: when links fail, the remaining paths keep their ids.
func TestPathIDs(t *testing.T) {
	top := preset(t, "dhlb")
	ids := func(top *Topology) map[string]int {
		list, err := top.Routes().Paths("t1", "t8")
		if err != nil {
			t.Fatal(err)
		}
		m := map[string]int{}
		for _, p := range list {
			m[fmt.Sprint(p.Ports)] = p.ID
		}
		return m
	}
	before := ids(top)
	for i := range top.Links {
		for path, id := range ids(top.Fail(i)) {
			if was, ok := before[path]; !ok || was != id {
				t.Errorf("%v fails: path %s has the id %d, want %d (there: %v)", top.Links[i], path, id, was, ok)
			}
		}
	}
	// After all of them have failed, a longer path has an id of its own.
	for _, name := range []string{"a1-c1", "a1-c2", "t1-a2"} {
		top = top.Fail(links(t, top, name)...)
	}
	for path, id := range ids(top) {
		if id < len(before) {
			t.Errorf("path %s is longer than those before, and has the id %d of one of them", path, id)
		}
	}
	if len(ids(top)) == 0 {
		t.Error("no detour")
	}
}

func TestPathsOfHosts(t *testing.T) {
	top := preset(t, "qall")
	same, err := top.Routes().Paths("h1", "h2")
	if err != nil {
		t.Fatal(err)
	}
	want := []Path{{Nodes: []string{"h1", "l1", "h2"}, Ports: []int{0, 2}, Links: []int{0, 1}, Delay: 20 * us, Rate: 100 * Mbps}}
	if diff := cmp.Diff(want, same); diff != "" {
		t.Errorf("at one leaf (-want +got):\n%s", diff)
	}
	if best, err := top.KShortest("h1", "h2", 5); err != nil || cmp.Diff(want, best) != "" {
		t.Errorf("at one leaf: %v (%v), want %v", best, err, want)
	}
	up, err := top.Routes().Paths("h1", "s2")
	if err != nil || len(up) != 2 || !slices.Equal(up[1].Nodes, []string{"h1", "l1", "s2"}) || !slices.Equal(up[1].Ports, []int{0, 20}) {
		t.Errorf("from a host to a spine: %+v (%v)", up, err)
	}
	for _, c := range [][2]string{{"h1", "h1"}, {"h1", "h99"}, {"l9", "h1"}} {
		if list, err := top.Routes().Paths(c[0], c[1]); err == nil {
			t.Errorf("from %s to %s: %v", c[0], c[1], list)
		}
		if list, err := top.KShortest(c[0], c[1], 3); err == nil {
			t.Errorf("from %s to %s: %v", c[0], c[1], list)
		}
	}
	cut := top.Fail(links(t, top, "h1")...)
	if list, err := cut.Routes().Paths("h1", "h2"); err != nil || list != nil {
		t.Errorf("from a host that is cut off: %v (%v)", list, err)
	}
	if list, err := cut.KShortest("h2", "h1", 3); err != nil || list != nil {
		t.Errorf("to a host that is cut off: %v (%v)", list, err)
	}
}

// TestMaxPaths requests paths in a network with millions of shortest paths.
func TestMaxPaths(t *testing.T) {
	d := &draft{}
	for i := range 8 {
		d.switches = append(d.switches, draftSwitch{name: fmt.Sprint("s", i)})
		for range 10 {
			if i > 0 {
				d.links = append(d.links, draftLink{a: End{Node: fmt.Sprint("s", i-1)}, b: End{Node: fmt.Sprint("s", i)}, rate: 1})
			}
		}
	}
	d.addHosts("s0", 1, &Links{HostRate: 1})
	d.addHosts("s7", 1, &Links{HostRate: 1})
	top, err := d.finish("")
	if err != nil {
		t.Fatal(err)
	}
	if list, err := top.Routes().Paths("h1", "h2"); err != nil || len(list) != MaxPaths {
		t.Errorf("%d paths (%v), want %d", len(list), err, MaxPaths)
	}
}
