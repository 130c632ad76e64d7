package plan

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	configv1 "github.com/p4lang/p4runtime/go/p4/config/v1"

	"github.com/p4lb/p4lb/internal/controller/p4info"
	"github.com/p4lb/p4lb/internal/network/fabric"
	"github.com/p4lb/p4lb/internal/scheme/manifest"
)

// Pairs of hosts, pairs of leaves and the servers of services, in the network of halves5.
func TestPairsAndServices(t *testing.T) {
	top := load(t, halves5+"services:\n  web: {address: 10.0.9.1, port: 80, servers: [h3, h1]}\n")
	for _, test := range []struct {
		sw, each, facts string
		want            []string
	}{
		{"l1", "host sender", "$host $sender $sender-leaf $sender-address", []string{
			"1 2 1 167772418", "1 3 2 167772673", "2 1 1 167772417", "2 3 2 167772673", "3 1 1 167772417", "3 2 1 167772418",
		}},
		{"s1", "leaf source", "$leaf $source", []string{"1 2", "2 1"}},
		{"l1", "leaf source", "$leaf $source", []string{"2 1"}},
		{"l1", "service", "$service $service-address $service-port $servers $ipv6", []string{"1 167774465 80 2 0"}},
		{"l1", "service server", "$service $server $host $here $leaf $paths", []string{"1 1 1 1 1 1", "1 0 3 0 2 3"}},
		{"l2", "service server", "$server $host $here", []string{"1 1 0", "0 3 1"}},
	} {
		b := testPlanner(t, top, test.sw, fabric.ByHops)
		if got := facts(t, b, manifest.Repeat{Each: manifest.Each(test.each)}, test.facts); !slices.Equal(got, test.want) {
			t.Errorf("%s, each %q: %s\ngot  %q\nwant %q", test.sw, test.each, test.facts, got, test.want)
		}
	}
	// A server outside the pool, drained or unreachable, has no number in it, and the others are
	// numbered without gaps. A service without a server in its pool is left out.
	links, err := top.FindLinks("h3")
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		top         *fabric.Topology
		each, facts string
		want        []string
	}{
		{top.Drain(fabric.Member{Service: "web", Server: "h3"}), "service server", "$servers $server $host", []string{"1 0 1"}},
		{top.Fail(links...), "service server", "$servers $server $host", []string{"1 0 1"}},
		{top.Drain(fabric.Member{Service: "web", Server: "h3"}), "service host", "$host $serves", []string{"1 1", "2 0", "3 1"}},
		{top.Fail(links...), "service host", "$host $serves", []string{"1 1", "2 0", "3 1"}},
		{top.Fail(links...).Drain(fabric.Member{Service: "web", Server: "h1"}), "service", "$servers", nil},
	} {
		b := testPlanner(t, test.top, "l1", fabric.ByHops)
		if got := facts(t, b, manifest.Repeat{Each: manifest.Each(test.each)}, test.facts); !slices.Equal(got, test.want) {
			t.Errorf("each %q: %s\ngot  %q\nwant %q", test.each, test.facts, got, test.want)
		}
	}
	b := testPlanner(t, load(t, halves5), "l1", fabric.ByHops)
	if got := facts(t, b, manifest.Repeat{Each: "service"}, "1"); len(got) != 1 || !strings.HasPrefix(got[0], "error: each service: topology") {
		t.Errorf("without services: %q", got)
	}
}

// A group's parameters by slot: ports, weights and the ends of the weights' shares. Paths
// from l1 have 40, 2.5 and 2.5 Mbit/s, so 16, 1 and 1 of 18 parts.
func TestParametersBySlot(t *testing.T) {
	params := func(f manifest.Fact) (list []manifest.Param) {
		for slot := range 4 {
			list = append(list, manifest.Param{Name: fmt.Sprint("p", slot), Carries: f, Slot: slot})
		}
		return list
	}
	for _, test := range []struct {
		arch manifest.Arch
		fact manifest.Fact
		want string
	}{
		{manifest.V1Model, manifest.EgressPort, "2 set [3 4 5 0]"},
		{manifest.TNA, manifest.EgressPort, "2 set [3 4 5 511]"}, // a port without a link
		{manifest.V1Model, manifest.QueueNumber, "2 set [12 16 20 0]"},
		{manifest.V1Model, manifest.PathWeight, "2 set [16 1 1 0]"},
		{manifest.V1Model, manifest.WeightEnd, "2 set [226 240 255 255]"}, // 16/18, 17/18 and 18/18 of 256, less 1
		{manifest.V1Model, manifest.SlotNumber, "2 set [0 1 2 3]"},
		{manifest.V1Model, manifest.LeafNumber, "2 set [2 2 2 2]"},
		{manifest.V1Model, manifest.PathCount, "2 set [3 3 3 3]"},
	} {
		m := &manifest.Manifest{Arch: test.arch, Paths: 4, Tables: []manifest.Table{{
			Name: "I.t", Purpose: manifest.Group, Keys: []manifest.Key{{Name: "g", Carries: manifest.GroupID}}, Actions: []manifest.Action{{Name: "set", Params: params(test.fact)}},
		}}}
		got, errs := fill(t, "l1", fabric.ByLeaf, m, []p4info.Field{{Name: "g", Width: 48, Kind: configv1.MatchField_EXACT}}, map[string][]string{"set": {"p0", "p1", "p2", "p3"}})
		if len(errs) > 0 || !slices.Contains(got, test.want) {
			t.Errorf("%s on %s: %q, %v; want %s", test.fact, test.arch, got, errs, test.want)
		}
	}
}

// A polynomial's coefficients are two's complement numbers of the parameters' width.
func TestPolynomial(t *testing.T) {
	planner := func(coefficients map[string]int64) *planner {
		b := testPlanner(t, load(t, halves5), "l1", fabric.ByHops)
		b.m = &manifest.Manifest{Scheme: "qall-poly5", Tables: []manifest.Table{{Name: "I.t", Purpose: manifest.Polynomial, Actions: []manifest.Action{{Name: "set", Params: []manifest.Param{
			{Name: "c0", Carries: manifest.Coefficient}, {Name: "c1", Carries: manifest.Coefficient},
		}}}}}}
		b.x = &p4info.Index{ByName: map[string]*p4info.Table{"I.t": {Name: "I.t", Actions: map[string]*p4info.Action{"set": {Name: "set", Params: []p4info.Field{{Name: "c0", Width: 8}, {Name: "c1", Width: 64}}}}}}}
		b.plan.Options.Coefficients = coefficients
		fillers[manifest.Polynomial](b, &b.m.Tables[0])
		return b
	}
	for c0, want := range map[int64]int64{5: 5, -1: 255, 127: 127, -128: 128, 128: -1, -129: -1} {
		b := planner(map[string]int64{"c0": c0, "c1": -2})
		if want < 0 {
			if len(b.errs) == 0 {
				t.Errorf("%d passes as a coefficient of 8 bits: %+v", c0, b.out.Entries)
			}
			continue
		}
		if len(b.errs) > 0 || len(b.out.Entries) != 1 || b.out.Entries[0].Args[0].Value != uint64(want) || b.out.Entries[0].Args[1].Value != 1<<64-2 {
			t.Errorf("%d: %+v, %v", c0, b.out.Entries, b.errs)
		}
	}
	if b := planner(map[string]int64{"c0": 1}); len(b.errs) == 0 {
		t.Errorf("a coefficient is missing: %+v", b.out.Entries)
	}
	b := planner(nil)
	if len(b.errs) != 1 || b.errs[0].Error() != "l1: the program of qall-poly5 leaves its polynomial to the controller, and there is none" && !strings.HasSuffix(b.errs[0].Error(), "leaves its polynomial to the controller, and there is none") || !strings.Contains(b.errs[0].Hint, "--degree 5 ") {
		t.Errorf("no coefficients: %+v", b.errs)
	}
}

// Precomputed values belong to the keys in order, the first key field fastest. All
// switches of a pipeline share the entries.
func TestBakedValues(t *testing.T) {
	pipeline := &Pipeline{}
	baked := func(x *manifest.Baked) *planner {
		b := testPlanner(t, load(t, halves5), "l1", fabric.ByHops)
		b.m = &manifest.Manifest{Tables: []manifest.Table{{Name: "I.t", Purpose: manifest.BakedTable, Baked: x}}}
		fields := []p4info.Field{{Name: "a", Width: 8, Kind: configv1.MatchField_EXACT}, {Name: "b", Width: 8, Kind: configv1.MatchField_EXACT}}
		b.x = &p4info.Index{ByName: map[string]*p4info.Table{"I.t": {Name: "I.t", Fields: fields, Actions: map[string]*p4info.Action{"set": {Name: "set", Params: []p4info.Field{{Name: "v", Width: 8}}}}}}}
		b.out.Pipeline = pipeline
		fillers[manifest.BakedTable](b, &b.m.Tables[0])
		return b
	}
	x := &manifest.Baked{Action: "set", Keys: []manifest.BakedKey{{Name: "a", Values: 2}, {Name: "b", Values: 3}}, Values: []int{10, 11, 12, 13, 14, 15}}
	for range 2 {
		b := baked(x)
		var got []string
		for _, e := range b.out.Entries {
			got = append(got, fmt.Sprint(e.Match[0].Value, e.Match[1].Value, e.Args[0].Value, e.Common))
		}
		want := []string{"0 0 10 true", "1 0 11 true", "0 1 12 true", "1 1 13 true", "0 2 14 true", "1 2 15 true"}
		if len(b.errs) > 0 || !slices.Equal(got, want) {
			t.Errorf("%q, %v; want %q", got, b.errs, want)
		}
	}
	pipeline = &Pipeline{}
	ends := baked(&manifest.Baked{Action: "set", Keys: []manifest.BakedKey{{Name: "a", Values: 2}, {Name: "b", Values: 2}}, Weights: []int{1, 3}, Total: 256})
	var got []uint64
	for _, e := range ends.out.Entries {
		got = append(got, e.Args[0].Value)
	}
	if want := []uint64{127, 191, 63, 127}; !slices.Equal(got, want) { // 1/2, 3/4, 1/4 and 1/2 of 256, less 1
		t.Errorf("shares end at %v, %v; want %v", got, ends.errs, want)
	}
	pipeline = &Pipeline{}
	if b := baked(&manifest.Baked{Action: "set", Keys: []manifest.BakedKey{{Name: "a", Values: 2}}}); len(b.errs) == 0 {
		t.Errorf("no values: %+v", b.out.Entries)
	}
}

// Groups have the numbers of leaves if the program or its tables require it.
func TestGroupings(t *testing.T) {
	table := func(purpose manifest.Purpose, facts ...manifest.Fact) manifest.Table {
		a := manifest.Action{Name: "a"}
		for _, f := range facts {
			a.Params = append(a.Params, manifest.Param{Carries: f})
		}
		return manifest.Table{Purpose: purpose, Actions: []manifest.Action{a}}
	}
	for _, test := range []struct {
		m    manifest.Manifest
		want fabric.Grouping
	}{
		{manifest.Manifest{}, fabric.ByHops},
		{manifest.Manifest{GroupBy: manifest.GroupByLeaf}, fabric.ByLeaf},
		{manifest.Manifest{GroupBy: manifest.GroupByHops}, fabric.ByHops},
		{manifest.Manifest{Tables: []manifest.Table{table(manifest.Route, manifest.LeafNumber)}}, fabric.ByHops},
		{manifest.Manifest{Tables: []manifest.Table{table(manifest.Leaf)}}, fabric.ByLeaf},
		{manifest.Manifest{Tables: []manifest.Table{table(manifest.Route), table(manifest.LeafOf)}}, fabric.ByLeaf},
		{manifest.Manifest{Tables: []manifest.Table{table(manifest.Arrival)}}, fabric.ByLeaf},
		{manifest.Manifest{Tables: []manifest.Table{table(manifest.Group, manifest.EgressPort)}}, fabric.ByHops},
		{manifest.Manifest{Tables: []manifest.Table{table(manifest.Group, manifest.PathWeight)}}, fabric.ByLeaf},
		{manifest.Manifest{Tables: []manifest.Table{table(manifest.Member, manifest.WeightEnd)}}, fabric.ByLeaf},
		{manifest.Manifest{Tables: []manifest.Table{table(manifest.Member, manifest.EgressPort, manifest.LeafNumber)}}, fabric.ByLeaf},
	} {
		if got := groupingOf(&test.m); got != test.want {
			t.Errorf("%+v: %v, want %v", test.m, got, test.want)
		}
	}
}

// A rate filter gives 256 for a full link: 8 Gbit/s over 100 us are 100,000 bytes, which
// 2^9 * 256 exceeds by 31 %, so the time is 131.072 us.
func TestFilters(t *testing.T) {
	m := &manifest.Manifest{Tasks: []manifest.Task{
		{Kind: manifest.Rezero, Filters: []string{"I.no"}},
		{Kind: manifest.RateFilter, Filters: []string{"I.a", "I.b"}, Rate: 8e9, Window: manifest.Duration(100 * time.Microsecond)},
		{Kind: manifest.RateFilter, Filters: []string{"I.slow"}, Rate: 8000, Window: manifest.Duration(time.Millisecond)},
		{Kind: manifest.SampleFilter, Filters: []string{"I.c"}, Window: manifest.Duration(50 * time.Microsecond)},
	}}
	got := FiltersOf(m)
	want := []Filter{
		{Name: "I.a", Time: 131072, Shift: 9}, {Name: "I.b", Time: 131072, Shift: 9},
		{Name: "I.slow", Time: 256 * time.Millisecond}, {Name: "I.c", Sample: true, Time: 50 * time.Microsecond},
	}
	if !slices.Equal(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	if a, c := got[0].String(), got[3].String(); a != "rate over 131.07µs, 1/2^9" || c != "sample over 50µs, 1/2^0" {
		t.Errorf("%s, %s", a, c)
	}
	if !got[0].Is(Filter{Name: "Other.a"}) || got[0].Is(got[1]) {
		t.Error("Is does not compare the names without controls")
	}
}

// An error is a line with its switch; several errors have a line each.
func TestErrors(t *testing.T) {
	cause := errors.New("cause")
	one, two := &Error{Err: cause}, &Error{Switch: "s1", Err: &widthError{table: "I.t", name: "p", value: 600, width: 9}}
	list := Errors{one, two}
	if got := list.Error(); got != "cause\ns1: table I.t: p is 600, which 9 bits cannot hold" {
		t.Errorf("%q", got)
	}
	if !errors.Is(list, cause) || errors.Is(Errors{two}, cause) {
		t.Error("the causes are wrong")
	}
	for more, want := range map[int]string{0: "", 1: "; 1 more entry has such a number", 2: "; 2 more entries have such numbers"} {
		e := &widthError{table: "I.t", name: "p", value: 600, width: 9, more: more}
		if got := e.Error(); got != "table I.t: p is 600, which 9 bits cannot hold"+want {
			t.Errorf("%d more: %s", more, got)
		}
	}
}

// The requirement of one program for group ids applies to all switches.
func TestGroupingOfRoles(t *testing.T) {
	plain, byLeaf := &manifest.Manifest{}, &manifest.Manifest{GroupBy: manifest.GroupByLeaf}
	for _, test := range []struct {
		leaf, spine *manifest.Manifest
		want        fabric.Grouping
	}{{plain, plain, fabric.ByHops}, {byLeaf, plain, fabric.ByLeaf}, {plain, byLeaf, fabric.ByLeaf}, {byLeaf, byLeaf, fabric.ByLeaf}} {
		if got := GroupingOf(map[fabric.Role]*manifest.Manifest{fabric.Leaf: test.leaf, fabric.Spine: test.spine}); got != test.want {
			t.Errorf("leaf %q, spine %q: %v, want %v", test.leaf.GroupBy, test.spine.GroupBy, got, test.want)
		}
	}
}

// A program whose member tables have neither a group nor an index in their key can have one
// group, the largest. Other programs have no such group.
func TestSoleGroup(t *testing.T) {
	hops := func(n int) (list []fabric.Hop) {
		for i := range n {
			list = append(list, fabric.Hop{Port: i + 1})
		}
		return list
	}
	member := func(keys ...manifest.Fact) manifest.Table {
		table := manifest.Table{Name: "t", Purpose: manifest.Member}
		for _, k := range keys {
			table.Keys = append(table.Keys, manifest.Key{Name: string(k), Carries: k})
		}
		return table
	}
	groups := []fabric.Group{{ID: 3, Hops: hops(2)}, {ID: 5, Hops: hops(4)}, {ID: 7, Hops: hops(3)}}
	for _, test := range []struct {
		name   string
		tables []manifest.Table
		groups []fabric.Group
		want   int
	}{
		{"by slot", []manifest.Table{member(manifest.SlotNumber)}, groups, 5},
		{"after another table", []manifest.Table{{Name: "r", Purpose: manifest.Leaf}, member(manifest.SlotNumber)}, groups, 5},
		{"by group", []manifest.Table{member(manifest.GroupID, manifest.SlotNumber)}, groups, 0},
		{"by index", []manifest.Table{member(manifest.MemberIndex)}, groups, 0},
		{"another purpose", []manifest.Table{{Name: "r", Purpose: manifest.Leaf}}, groups, 0},
		{"no groups", []manifest.Table{member(manifest.SlotNumber)}, nil, 0},
	} {
		b := testPlanner(t, load(t, network), "l1", fabric.ByHops)
		b.m.Tables, b.out.Routes.Groups = test.tables, test.groups
		if got := b.soleGroup(); got != test.want {
			t.Errorf("%s: %d, want %d", test.name, got, test.want)
		}
	}
}

// Numbers of 48 bits are MAC addresses and numbers of 32 bits IPv4 addresses.
func TestFormatNumber(t *testing.T) {
	for _, test := range []struct {
		v     uint64
		width int
		want  string
	}{
		{0x0102_03a4_b5c6, 48, "01:02:03:a4:b5:c6"}, {0x0a0b0c0d, 32, "10.11.12.13"}, {0x0a0b0c0d, 31, "168496141"}, {0xffff, 16, "65535"}, {1<<64 - 1, 64, "18446744073709551615"},
	} {
		if got := FormatNumber(test.v, test.width); got != test.want {
			t.Errorf("%#x in %d bits: %s, want %s", test.v, test.width, got, test.want)
		}
	}
}

// Without a host, sender or service, a place has no address.
func TestAddressesOfPlaces(t *testing.T) {
	b := testPlanner(t, load(t, network+"services: {web: {address: 10.0.9.1, port: 80, servers: [h1]}, mail: {address: 10.0.9.2, port: 25, servers: [h2]}}\n"), "l1", fabric.ByHops)
	for _, test := range []struct {
		fact  manifest.Fact
		facts map[manifest.Fact]int64
		node  string
		want  string
	}{
		{manifest.HostAddress, nil, "", "invalid IP"}, {manifest.SenderAddress, nil, "", "invalid IP"}, {manifest.ServiceAddress, nil, "", "invalid IP"},
		{manifest.HostAddress, map[manifest.Fact]int64{manifest.HostNumber: 1}, "", "10.0.1.1"}, {manifest.HostAddress, map[manifest.Fact]int64{manifest.HostNumber: 2}, "", "10.0.2.1"},
		{manifest.SenderAddress, map[manifest.Fact]int64{manifest.SenderNumber: 2}, "", "10.0.2.1"}, {manifest.SenderAddress, map[manifest.Fact]int64{manifest.SenderNumber: 2}, "h1", "invalid IP"},
		{manifest.SenderAddress, map[manifest.Fact]int64{manifest.SenderNumber: 1}, "", "10.0.1.1"},
		{manifest.ServiceAddress, map[manifest.Fact]int64{manifest.ServiceNumber: 1}, "", "10.0.9.1"}, {manifest.ServiceAddress, map[manifest.Fact]int64{manifest.ServiceNumber: 2}, "", "10.0.9.2"},
		{manifest.ServiceAddress, map[manifest.Fact]int64{manifest.ServiceNumber: 1}, "h1", "invalid IP"}, {manifest.Destination, nil, "", "invalid IP"},
		{manifest.HostAddress, nil, "h2", "10.0.2.1"}, {manifest.HostAddress, nil, "s1", "invalid IP"},
	} {
		p := b.here()
		p.facts = map[manifest.Fact]int64{}
		for k, v := range test.facts {
			p.facts[k] = v
		}
		if got, ok := p.address(test.fact, test.node); got.String() != test.want || ok != got.IsValid() {
			t.Errorf("%s of %q with %v: %v, %v; want %s", test.fact, test.node, test.facts, got, ok, test.want)
		}
	}
}

// The key of an entry shows each kind of match. A field that is not matched is *.
func TestTextOfKeys(t *testing.T) {
	v := func(x uint64) *uint64 { return &x }
	for _, test := range []struct {
		m    Match
		want string
	}{
		{Match{Field: "m.a", Value: 7, Bits: 16, Width: 16}, "a=7"},
		{Match{Field: "m.a", Value: 7, Bits: 16, Width: 16, Any: true}, "a=*"},
		{Match{Field: "m.a", Bits: 0, Width: 16}, "a=*"},
		{Match{Field: "m.a", Bits: 0, Width: 32}, "a=0.0.0.0/0"},
		{Match{Field: "m.a", Value: 0x0a000000, Bits: 8, Width: 32}, "a=10.0.0.0/8"},
		{Match{Field: "m.a", Value: 0x0a000001, Bits: 32, Width: 32}, "a=10.0.0.1"},
		{Match{Field: "h.ip.dst", Value: 0x0a000001, Bits: 32, Width: 32}, "dst=10.0.0.1/32"},
		{Match{Field: "h.ip.src", Value: 0x0a000001, Bits: 32, Width: 32}, "src=10.0.0.1/32"},
		{Match{Field: "m.a", Value: 5, Bits: 16, Width: 16, Mask: v(0xff)}, "a=5&&&0xff"},
		{Match{Field: "m.a", Value: 5, Bits: 16, Width: 16, High: v(9)}, "a=5..9"},
		{Match{Field: "m.a", Upper: 0x20010db8_00000000, Value: 1, Bits: 64, Width: 128}, "a=2001:db8::1/64"},
	} {
		if got := (Entry{Table: "t", Match: []Match{test.m, {Field: "z", Value: 1, Bits: 8, Width: 8}}}).Key(); got != "t "+test.want+" z=1" {
			t.Errorf("%+v: %q, want %q", test.m, got, test.want)
		}
	}
	if got := (Entry{Table: "t"}).Key(); got != "t default" {
		t.Errorf("the default entry: %q", got)
	}
}
