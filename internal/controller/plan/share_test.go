package plan

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	configv1 "github.com/p4lang/p4runtime/go/p4/config/v1"

	"github.com/p4lb/p4lb/internal/controller/p4info"
	"github.com/p4lb/p4lb/internal/network/fabric"
	"github.com/p4lb/p4lb/internal/scheme/manifest"
)

// lookupPrefix returns the action of the longest prefix that matches an id.
func lookupPrefix(list []Entry, i int, id uint64) (action string) {
	best := -1
	for _, e := range list {
		m := e.Match[i]
		if id>>(m.Width-m.Bits) == m.Value>>(m.Width-m.Bits) && m.Bits > best {
			best, action = m.Bits, fmt.Sprint(e.Action, e.Args)
		}
	}
	return action
}

// Merged entries map each id to the same action as before, with no more entries than
// before and no two for one prefix.
func TestMergePrefixes(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 0))
	for n := range 100 {
		const width = 6
		var list []Entry
		actions := 1 + r.IntN(3)
		for id := range uint64(1 << width) {
			if r.IntN(4) > 0 {
				list = append(list, Entry{Table: "t", Action: "a", Args: []Arg{{Name: "p", Value: uint64(r.IntN(actions))}},
					Match: []Match{{Field: "other", Value: 5}, {Field: "id", Value: id, Bits: width, Width: width}}})
			}
		}
		if len(list) == 0 {
			continue
		}
		r.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
		before := fmt.Sprint(list)
		merged := mergePrefixes(list, 1)
		if fmt.Sprint(list) != before {
			t.Fatal("the entries were changed")
		}
		if len(merged) > len(list) || actions == 1 && len(merged) != 1 {
			t.Errorf("list %d: %d entries of %d actions become %d", n, len(list), actions, len(merged))
		}
		seen := map[string]bool{}
		for _, e := range merged {
			m := e.Match[1]
			key := fmt.Sprint(m.Value, "/", m.Bits)
			if seen[key] || m.Value&(1<<(width-m.Bits)-1) != 0 || e.Match[0].Value != 5 {
				t.Errorf("list %d: prefix %s: %+v", n, key, e)
			}
			seen[key] = true
		}
		for _, e := range list {
			id := e.Match[1].Value
			if got, want := lookupPrefix(merged, 1, id), fmt.Sprint(e.Action, e.Args); got != want {
				t.Errorf("list %d: id %d has the action %s, want %s", n, id, got, want)
			}
		}
	}
	// Halves with one action become one entry, again and again.
	list := []Entry{}
	for id, port := range []uint64{1, 2, 1, 1, 3, 3, 3, 3, 1, 1} {
		list = append(list, Entry{Action: "a", Args: []Arg{{Value: port}}, Match: []Match{{Value: uint64(id), Bits: 4, Width: 4}}})
	}
	var got []string
	for _, e := range mergePrefixes(list, 0) {
		got = append(got, fmt.Sprintf("%d/%d %d", e.Match[0].Value, e.Match[0].Bits, e.Args[0].Value))
	}
	if want := []string{"0/0 1", "1/4 2", "4/2 3"}; !slices.Equal(got, want) {
		t.Errorf("merged %q, want %q", got, want)
	}
}

// Only tables of groups whose key is a prefix of the group's id share entries.
func TestShareByPrefix(t *testing.T) {
	for _, test := range []struct {
		purpose manifest.Purpose
		kind    configv1.MatchField_MatchType
		carries manifest.Fact
		want    int
	}{
		{manifest.Group, configv1.MatchField_LPM, manifest.GroupID, 1},
		{manifest.Member, configv1.MatchField_LPM, manifest.GroupID, 1},
		{manifest.Route, configv1.MatchField_LPM, manifest.GroupID, 4},
		{manifest.Group, configv1.MatchField_EXACT, manifest.GroupID, 4},
		{manifest.Group, configv1.MatchField_LPM, manifest.LeafNumber, 4},
	} {
		b := testPlanner(t, load(t, halves5), "l1", fabric.ByLeaf)
		b.x = &p4info.Index{ByName: map[string]*p4info.Table{"t": {Name: "t", Fields: []p4info.Field{{Name: "g", Width: 8, Kind: test.kind}}}}}
		b.out.Entries = []Entry{{Table: "before"}}
		for id := range uint64(4) {
			b.out.Entries = append(b.out.Entries, Entry{Table: "t", Action: "a", Match: []Match{{Field: "g", Value: id, Bits: 8, Width: 8}}})
		}
		b.shareByPrefix(&manifest.Table{Name: "t", Purpose: test.purpose, Keys: []manifest.Key{{Name: "g", Carries: test.carries}}}, 1)
		if n := len(b.out.Entries) - 1; n != test.want || b.out.Entries[0].Table != "before" {
			t.Errorf("%s, %v, %s: %d entries, want %d", test.purpose, test.kind, test.carries, n, test.want)
		}
	}
}

// Leaves at the same distance through the same next hops may share a group. Leaves at
// other distances may not if round-trip times are written for paths.
func TestGrouping(t *testing.T) {
	const three = `
switches: {l1: {role: leaf}, l2: {role: leaf}, l3: {role: leaf}, s1: {role: spine}, s2: {role: spine}}
hosts: {h1: {ip: 10.0.1.1/24}, h2: {ip: 10.0.2.1/24}, h3: {ip: 10.0.3.1/24}}
links:
  - {ends: [h1, l1], rate: 1G}
  - {ends: [h2, l2], rate: 1G}
  - {ends: [h3, l3], rate: 1G}
  - {ends: [l1, s1], rate: 1G, delay: 1us}
  - {ends: [l1, s2], rate: 1G, delay: 1us}
  - {ends: [l2, s1], rate: 1G, delay: 1us}
  - {ends: [l2, s2], rate: 1G, delay: 1us}
  - {ends: [l3, s1], rate: 1G, delay: 1us}
  - {ends: [l3, s2], rate: 1G, delay: FAR}
`
	timed := &manifest.Manifest{GroupBy: manifest.GroupByHops, Registers: []manifest.Register{{Name: "rtt", Writer: manifest.Controller, Content: manifest.Content{Kind: manifest.Delay}}}}
	for _, test := range []struct {
		far  string
		m    *manifest.Manifest
		by   fabric.Grouping
		want fabric.Grouping
	}{
		{"1us", timed, fabric.ByLeaf, fabric.ByHops},
		{"9us", timed, fabric.ByLeaf, fabric.ByLeaf},
		{"9us", timed, fabric.ByHops, fabric.ByHops},
		{"9us", &manifest.Manifest{GroupBy: manifest.GroupByHops}, fabric.ByLeaf, fabric.ByHops},
		{"1us", &manifest.Manifest{}, fabric.ByLeaf, fabric.ByLeaf},
	} {
		top := load(t, strings.Replace(three, "FAR", test.far, 1))
		p := &Plan{Topology: top, Routes: top.Routes(), Grouping: test.by}
		if got := p.groupingAt("l1", test.m); got != test.want {
			t.Errorf("far spine at %s, %+v, groups by %v: by %v, want %v", test.far, test.m.GroupBy, test.by, got, test.want)
		}
	}
	if by := GroupingOf(map[fabric.Role]*manifest.Manifest{fabric.Leaf: {GroupBy: manifest.GroupByHops}, fabric.Spine: {}}); by != fabric.ByHops {
		t.Errorf("programs without a need: by %v", by)
	}
}

// The round-trip time of a path is the sum of its link and the path behind it, in both
// directions, in the unit of the register.
func TestRoundTrips(t *testing.T) {
	for _, test := range []struct {
		by   fabric.Grouping
		unit manifest.Unit
		want string
	}{
		{fabric.ByLeaf, "us", "[{rtt 0 1 12000} {rtt 1 2 0} {rtt 2 3 0}]"},
		{fabric.ByHops, "us", "[{rtt 0 1 12000} {rtt 1 2 0} {rtt 2 3 0}]"},
		{fabric.ByLeaf, "ms", "[{rtt 0 1 12} {rtt 1 2 0} {rtt 2 3 0}]"},
	} {
		b := testPlanner(t, load(t, halves5), "l1", test.by)
		var ids []int
		b.addRoundTrips(&manifest.Register{Name: "rtt", Content: manifest.Content{Unit: test.unit}}, func(group, slot int) int {
			ids = append(ids, group)
			return slot
		})
		if got := fmt.Sprint(b.out.Registers); got != test.want {
			t.Errorf("groups by %v in %s: %s, want %s", test.by, test.unit, got, test.want)
		}
		if test.by == fabric.ByLeaf && (len(ids) == 0 || ids[0] != 2) {
			t.Errorf("groups %v, want the number of leaf 2", ids)
		}
		b.out.Registers = nil
		b.addRoundTrips(&manifest.Register{Name: "rtt", Content: manifest.Content{Unit: test.unit}}, func(group, slot int) int { return -1 })
		if len(b.out.Registers) != 0 {
			t.Errorf("cells that no register has: %v", b.out.Registers)
		}
	}
}

// The program of a network must have room for the largest group and the highest port, even
// if failed links come up.
func TestSizes(t *testing.T) {
	top := load(t, halves5)
	for _, test := range []struct {
		top         *fabric.Topology
		group, port int
	}{
		{top, 3, 5},
		{top.Fail(3, 4), 3, 5},
		{top.Renumber(func(port int) int { return port * 10 }), 3, 50},
		{load(t, "switches: {l1: {role: leaf}}\nhosts: {h1: {ip: 10.0.1.1/24}}\nlinks: [{ends: [h1, l1], rate: 1G}]\n"), 2, 1},
	} {
		if group, port := Sizes(test.top); group != test.group || port != test.port {
			t.Errorf("groups of %d, port %d; want %d and %d", group, port, test.group, test.port)
		}
	}
}

// Nodes have the ports, groups and weights that inspectors show.
func TestNodes(t *testing.T) {
	top := load(t, halves5)
	weighted := &manifest.Manifest{Weights: &manifest.Weights{From: manifest.FromController}}
	nodes, err := NewNodes(top, map[fabric.Role]*manifest.Manifest{fabric.Leaf: weighted, fabric.Spine: {}}, fabric.ByLeaf)
	if err != nil || len(nodes) != 4 {
		t.Fatalf("%d nodes, %v", len(nodes), err)
	}
	l1, s1 := nodes[0], nodes[2]
	if l1.Name != "l1" || l1.Role != fabric.Leaf || l1.Leaf != 1 || !l1.ByLeaf || len(l1.Ports) != 5 || len(l1.Groups) != 1 || fmt.Sprint(l1.Weights) != "map[2:[16 1 1]]" {
		t.Errorf("l1 is %+v", l1)
	}
	if s1.Leaf != 0 || s1.Weights != nil || s1.Manifest == weighted {
		t.Errorf("s1 is %+v", s1)
	}
	if nodes, err = NewNodes(top, map[fabric.Role]*manifest.Manifest{fabric.Leaf: weighted, fabric.Spine: {}}, fabric.ByHops); err != nil || nodes[0].ByLeaf {
		t.Errorf("by hops: %+v, %v", nodes[0], err)
	}
	if _, err := NewNodes(top, map[fabric.Role]*manifest.Manifest{fabric.Leaf: weighted}, fabric.ByHops); err == nil || !strings.Contains(err.Error(), "s1: there is no program for the role spine") {
		t.Errorf("a role without a program: %v", err)
	}
}

// Numbers too wide for the program are reported once for each place, with their number.
func TestTooWide(t *testing.T) {
	b := testPlanner(t, load(t, halves5), "l1", fabric.ByHops)
	b.plan.tooWide = map[string]*widthError{}
	b.checkWidth("t", "a", 255, 8)
	b.checkWidth("t", "a", 1<<63, 64)
	if len(b.errs) != 0 {
		t.Errorf("numbers that fit: %v", b.errs)
	}
	for i, want := range []string{"", "; 1 more entry has such a number", "; 2 more entries have such numbers"} {
		b.checkWidth("t", "a", uint64(256+i), 8)
		if len(b.errs) != 1 || b.errs[0].Error() != "l1: table t: a is 256, which 8 bits cannot hold"+want {
			t.Errorf("%d numbers: %v", i+1, b.errs)
		}
	}
	b.checkWidth("t", "b", 2, 1)
	if len(b.errs) != 2 {
		t.Errorf("another place: %v", b.errs)
	}
}

// Leaf tables with a mask have an entry for each value of the bits that select among the
// paths to most leaves, and one for each other leaf.
func TestSharedWays(t *testing.T) {
	top, err := fabric.LeafSpine{Name: "x", Leaves: 6, Spines: 2, Hosts: 1}.Make()
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		kind configv1.MatchField_MatchType
		want int
	}{{configv1.MatchField_EXACT, 6}, {configv1.MatchField_TERNARY, 3}} {
		b := testPlanner(t, top, "l1", fabric.ByLeaf)
		b.m = &manifest.Manifest{Tables: []manifest.Table{{Name: "t", Purpose: manifest.Leaf, Keys: []manifest.Key{{Name: "leaf", Carries: manifest.LeafNumber}},
			Actions: []manifest.Action{{Name: "away", Params: []manifest.Param{{Name: "port", Carries: manifest.EgressPort}}}, {Name: "home", Params: []manifest.Param{{Name: "n", Carries: manifest.LeafNumber}}}}}}}
		b.x = &p4info.Index{ByName: map[string]*p4info.Table{"t": {Name: "t", Fields: []p4info.Field{{Name: "leaf", Width: 8, Kind: test.kind}}, Actions: map[string]*p4info.Action{
			"away": {Name: "away", Params: []p4info.Field{{Name: "port", Width: 9}}}, "home": {Name: "home", Params: []p4info.Field{{Name: "n", Width: 8}}}}}}}
		b.fillLeaves(&b.m.Tables[0])
		if len(b.errs) > 0 || len(b.out.Entries) != test.want {
			t.Fatalf("%v: %d entries, %v; want %d", test.kind, len(b.out.Entries), b.errs, test.want)
		}
		ports := map[uint64]bool{}
		for leaf := uint64(1); leaf <= 6; leaf++ {
			var best *Entry
			for i := range b.out.Entries {
				e := &b.out.Entries[i]
				m := e.Match[0]
				if (m.Mask == nil && m.Value == leaf || m.Mask != nil && leaf&*m.Mask == m.Value&*m.Mask) && (best == nil || e.Priority > best.Priority) {
					best = e
				}
			}
			switch {
			case best == nil:
				t.Errorf("%v: no entry for leaf %d", test.kind, leaf)
			case leaf == 1 && (best.Action != "home" || best.Args[0].Value != 1):
				t.Errorf("%v: packets to the own leaf: %+v", test.kind, best)
			case leaf > 1 && best.Action != "away":
				t.Errorf("%v: packets to leaf %d: %+v", test.kind, leaf, best)
			case leaf > 1:
				ports[best.Args[0].Value] = true
			}
		}
		if len(ports) != 2 {
			t.Errorf("%v: all leaves are behind %v", test.kind, ports)
		}
	}
}
