package embedded_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/p4lb/p4lb/internal/controller/plan"
	"github.com/p4lb/p4lb/internal/network/fabric"
)

// TestSharedEntries follows the entries of plans from every switch to every host and
// leaf. They must lead to the next hops of the topology, in fat trees with and without
// failed links.
func TestSharedEntries(t *testing.T) {
	healthy, err := fabric.FatTree{K: 4}.Make()
	if err != nil {
		t.Fatal(err)
	}
	fail := func(names ...string) *fabric.Topology {
		var all []int
		for _, name := range names {
			links, err := healthy.FindLinks(name)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, links...)
		}
		return healthy.Fail(all...)
	}
	for name, topology := range map[string]*fabric.Topology{
		"healthy": healthy, "a link to a core": fail("a1-c1"), "a link to a leaf": fail("t1-a1"), "a leaf": fail("t1-a1", "t1-a2"),
	} {
		for _, scheme := range []string{"conga", "drill+rlb", "hermes", "hula"} {
			t.Run(name+"/"+scheme, func(t *testing.T) { follow(t, planFor(t, scheme, topology)) })
		}
	}
}

func follow(t *testing.T, p *plan.Plan) {
	for _, s := range p.Switches {
		for _, h := range p.Topology.Hosts {
			hops, err := p.Routes.NextHops(s.Name, h.Name)
			if err != nil {
				t.Fatal(err)
			}
			ip := h.IP.Addr().As4()
			route := best(s, "ipv4_route", uint64(ip[0])<<24|uint64(ip[1])<<16|uint64(ip[2])<<8|uint64(ip[3]))
			var got []int
			switch {
			case route == nil:
			case route.Action == "forward":
				got = []int{argument(route, "port")}
			default:
				for slot := range argument(route, "n") {
					member := best(s, "member", uint64(argument(route, "gid")), uint64(slot))
					if member == nil {
						t.Fatalf("%s: no member %d for %s", s.Name, slot, h.Name)
					}
					got = append(got, argument(member, "port"))
				}
			}
			if want := numbers(hops); !slices.Equal(got, want) {
				t.Errorf("%s to %s: ports %v, want %v", s.Name, h.Name, got, want)
			}
		}
		if !slices.ContainsFunc(s.Entries, func(e plan.Entry) bool { return e.Table == "LbIngress.leaf" }) {
			continue
		}
		for _, leaf := range p.Topology.Leaves() {
			hops, err := p.Routes.NextHops(s.Name, leaf.Name)
			if err != nil {
				t.Fatal(err)
			}
			e := best(s, "leaf", uint64(leaf.Leaf))
			switch {
			case leaf.Name == s.Name:
				if e != nil && e.Action != "at_home" {
					t.Errorf("%s: %s for a probe to itself", s.Name, e.Action)
				}
			case len(hops) == 0:
				if e != nil {
					t.Errorf("%s: %s for a probe to %s, which is out of reach", s.Name, e.Action, leaf.Name)
				}
			case e == nil || !slices.Contains(numbers(hops), argument(e, "port")):
				t.Errorf("%s: %+v for a probe to %s, want one of %v", s.Name, e, leaf.Name, numbers(hops))
			}
		}
	}
}

func numbers(hops []fabric.Port) []int {
	var list []int
	for _, p := range hops {
		list = append(list, p.Number)
	}
	return list
}

func argument(e *plan.Entry, name string) int {
	for _, a := range e.Args {
		if a.Name == name {
			return int(a.Value)
		}
	}
	return -1
}

// best returns the entry of a table that a packet with some fields takes, or nil.
func best(s *plan.Switch, table string, fields ...uint64) *plan.Entry {
	var found *plan.Entry
	most := -1
	for i := range s.Entries {
		e := &s.Entries[i]
		if e.Table != "LbIngress."+table || len(e.Match) == 0 {
			continue
		}
		weight := e.Priority
		for j, m := range e.Match {
			mask := (uint64(1)<<m.Bits - 1) << (m.Width - m.Bits)
			if m.Mask != nil {
				mask = *m.Mask
			}
			if fields[j]&mask != m.Value&mask {
				weight = -1
				break
			}
			weight += m.Bits
		}
		if weight > most {
			found, most = e, weight
		}
	}
	return found
}

// TestTooLarge plans DHLB, whose probes name switches with 8 bits, in a fat tree of 320
// switches. One error covers all switches whose numbers do not fit.
func TestTooLarge(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine does the work: the race detector has nothing to see")
	}
	topology, err := fabric.FatTree{K: 16}.Make()
	if err != nil {
		t.Fatal(err)
	}
	_, err = plan.New(topology, pipelines(t, "dhlb", topology), plan.Options{})
	const want = "a128: table LbIngress.self: id is 256, which 8 bits cannot hold; 64 more entries have such numbers"
	if err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

// TestEntriesOfFatTree counts table entries in a fat tree with k = 8. A leaf of conga
// has its 4 hosts, 31 routes and 31 origins, 4 members and 1 set of candidates; an
// aggregation switch has 4 routes down, 7 up and 4 members; a core switch has 8 routes.
// With RLB, leaves have no origins but 1 + 4 entries for probes, aggregation switches 4 +
// 4 and candidates, core switches 32.
func TestEntriesOfFatTree(t *testing.T) {
	topology, err := fabric.FatTree{K: 8}.Make()
	if err != nil {
		t.Fatal(err)
	}
	for scheme, want := range map[string]int{
		"conga":     32*(4+31+31+4+1) + 32*(4+7+4) + 16*8,
		"drill+rlb": 32*(4+31+4+1+1+4) + 32*(4+7+4+1+4+4) + 16*(8+32),
	} {
		tables := map[string]int{}
		total := 0
		for _, s := range planFor(t, scheme, topology).Switches {
			for _, e := range s.Entries {
				tables[fmt.Sprintf("%s %s", strings.TrimRight(s.Name, "0123456789"), e.Table)]++
				total++
			}
		}
		if total != want {
			t.Errorf("%s: %d entries, want %d: %v", scheme, total, want, tables)
		}
	}
}
