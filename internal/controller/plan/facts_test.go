package plan

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	configv1 "github.com/p4lang/p4runtime/go/p4/config/v1"

	"github.com/p4lb/p4lb/internal/controller/p4info"
	"github.com/p4lb/p4lb/internal/network/fabric"
	"github.com/p4lb/p4lb/internal/scheme/manifest"
)

// halves5 has two hosts at l1, one at l2, and two links from l1 to s2. Switches have the
// numbers l1 1, l2 2, s1 3, s2 4; ports count the links in their order.
const halves5 = `
switches: {l1: {role: leaf}, l2: {role: leaf}, s1: {role: spine}, s2: {role: spine, buffer: 60KB}}
hosts:
  h1: {ip: 10.0.1.1/24, mac: 02:00:00:00:00:01}
  h2: {ip: 10.0.1.2/24, mac: 02:00:00:00:00:02}
  h3: {ip: 10.0.2.1/24, mac: 02:00:00:00:00:03}
links:
  - {ends: [h1, l1], rate: 1G}
  - {ends: [h2, l1], rate: 1G}
  - {ends: [h3, l2], rate: 1G}
  - {ends: [l1, s1], rate: 40M, delay: 5ms, queue: 32}
  - {ends: [l1, s2], rate: 10M}
  - {ends: [l1, s2], rate: 10M}
  - {ends: [l2, s1], rate: 40M, delay: 1ms}
  - {ends: [l2, s2], rate: 5M}
`

// facts evaluates expressions in every place of a repetition.
func facts(t *testing.T, b *planner, r manifest.Repeat, list string) (rows []string) {
	t.Helper()
	err := b.each(&r, func(p *place) error {
		var row []string
		for text := range strings.FieldsSeq(list) {
			v, err := expr(t, text).Eval(p.fact)
			if err != nil {
				row = append(row, "-")
				continue
			}
			row = append(row, fmt.Sprint(v))
		}
		rows = append(rows, strings.Join(row, " "))
		return nil
	})
	if err != nil {
		rows = append(rows, "error: "+err.Error())
	}
	return rows
}

// The facts of each repetition, computed by hand from the network above.
func TestFactsOfPlaces(t *testing.T) {
	top := load(t, halves5)
	for _, test := range []struct {
		sw, each, where, facts string
		want                   []string
	}{
		{"l1", "", "", "$switch $home $tier $ports $hosts $cpu", []string{"1 1 1 5 2 255"}},
		{"s2", "", "", "$switch $home $tier $ports $hosts $cpu", []string{"4 0 2 3 0 255"}},
		{"l1", "port", "", "$port $ingress-port $far-port $mbps $delay $up $above $below $neighbour $host", []string{
			"1 1 0 1000 0 1 0 1 0 1", "2 2 0 1000 0 1 0 1 0 2", "3 3 1 40 5000 1 1 0 3 0", "4 4 1 10 0 1 1 0 4 0", "5 5 2 10 0 1 1 0 4 0",
		}},
		{"l1", "port", "", "$host-address $host-mac $capacity $rate $queue", []string{
			"167772417 2199023255553 64 83333 4", "167772418 2199023255554 64 83333 8", "0 0 32 3333 12", "0 0 64 833 16", "0 0 64 833 20",
		}},
		{"l1", "port", "", "$capacity-reciprocal $service-time", []string{"265264 786435", "265264 786435", "539086 19662766", "265264 78674669", "265264 78674669"}},
		{"s2", "neighbour", "", "$port $leaf $neighbour $above $below $capacity", []string{"1 1 1 0 1 13", "2 1 1 0 1 13", "3 2 2 0 1 13"}},
		{"l1", "neighbour", "", "$port $leaf $host", []string{"3 0 0", "4 0 0", "5 0 0"}},
		{"l1", "port", "$above", "$port", []string{"3", "4", "5"}},
		{"l1", "host", "", "$host $host-place $leaf $here $host-address $port $paths $next-port", []string{
			"1 0 1 1 167772417 1 1 0", "2 1 1 1 167772418 2 1 0", "3 0 2 0 167772673 5 3 3",
		}},
		{"l1", "host path", "", "$host $path $slot $port $first-path", []string{"1 0 0 1 0", "2 1 0 2 1", "3 2 0 3 2", "3 3 1 4 2", "3 4 2 5 2"}},
		{"s1", "leaf", "", "$leaf $port $here", []string{"1 1 -", "2 2 -"}},
		{"s1", "leaf path", "", "$leaf $path $first-path", []string{"1 0 0", "2 1 1"}},
		{"l1", "route path", "", "$path $first-path $slot", []string{"0 0 0", "1 1 0", "2 2 0", "3 2 1", "4 2 2"}},
		{"s1", "leaf source", "", "$leaf $source", []string{"1 2", "2 1"}},
		{"l1", "host sender", "", "$host $sender $sender-leaf", []string{"1 2 1", "1 3 2", "2 1 1", "2 3 2", "3 1 1", "3 2 1"}},
		{"l1", "leaf", "", "$leaf $paths $port", []string{"2 3 4"}},
		{"l1", "leaf path", "", "$leaf $path $slot $port $next-port", []string{"2 0 0 3 2", "2 1 1 4 3", "2 2 2 5 3"}},
		{"l1", "group", "", "$paths $first-member $member $first-path", []string{"3 0 0 0"}},
		{"l1", "group path", "", "$member $slot $port", []string{"0 0 3", "1 1 4", "2 2 5"}},
		{"l1", "route", "", "$destination $prefix-length $paths $port", []string{"167772417 32 1 1", "167772418 32 1 2", "167772672 24 3 5"}},
		{"l1", "route", "", "$paths $first-member", []string{"1 0", "1 0", "3 0"}},
		{"l1", "2..4", "", "$i", []string{"2", "3", "4"}},
		{"l1", "0..1 0..1", "", "$i", []string{"0", "1", "0", "1"}},
		{"l1", "", "", "$switch(s2) $leaf(h3) $leaf(l2) $host-address(h3) $host-mac(h2) $port(h2) $port(s1) $port(h3) $paths(h3) $up(s1)", []string{"4 2 2 167772673 2199023255554 2 3 3 3 1"}},
		{"l1", "", "", "$host-address(s1) $port(x9) $leaf $port", []string{"- - - -"}},
		{"l1", "hop", "", "$port", []string{"error: nothing is known about each hop"}},
	} {
		b := testPlanner(t, top, test.sw, fabric.ByHops)
		r := manifest.Repeat{Each: manifest.Each(test.each)}
		if test.where != "" {
			r.Where = expr(t, test.where)
		}
		if got := facts(t, b, r, test.facts); !slices.Equal(got, test.want) {
			t.Errorf("%s, each %q: %s\ngot  %q\nwant %q", test.sw, test.each, test.facts, got, test.want)
		}
	}
	b := testPlanner(t, top, "l1", fabric.ByHops)
	for _, r := range []manifest.Repeat{{Switches: []string{"l2"}}, {Roles: []string{"spine"}}} {
		if got := facts(t, b, r, "$switch"); len(got) != 0 {
			t.Errorf("%+v: %v", r, got)
		}
	}
	for _, r := range []manifest.Repeat{{Switches: []string{"l2", "l1"}}, {Roles: []string{"leaf"}}} {
		if got := facts(t, b, r, "$switch"); len(got) != 1 {
			t.Errorf("%+v: %v", r, got)
		}
	}
	for text, want := range map[string]string{
		"$port(x9)": "has no x9", "$host-address(s1)": "s1 is a switch: $host-address is one of hosts", "$port": "there is no $port here",
	} {
		if _, err := expr(t, text).Eval(b.here().fact); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

// The ports of a multicast group depend on its kind and on the ingress port.
func TestMembersOfGroups(t *testing.T) {
	for _, test := range []struct {
		sw, members string
		from        int
		want        []int
	}{
		{"l1", "up", 0, []int{3, 4, 5}}, {"s1", "up", 0, nil},
		{"l1", "hosts", 0, []int{1, 2}}, {"l1", "hosts", 1, []int{2}}, {"l1", "hosts", 3, []int{1, 2}},
		{"l1", "neighbours", 0, []int{3, 4, 5}}, {"l1", "neighbours", 4, []int{3, 5}},
		{"l1", "all", 0, []int{1, 2, 3, 4, 5}}, {"l1", "all", 2, []int{1, 3, 4, 5}},
		{"l1", "onward", 0, nil}, {"l1", "onward", 1, nil}, {"l1", "onward", 3, nil},
		{"s2", "onward", 1, []int{2, 3}}, {"s2", "onward", 3, []int{1, 2}},
		{"l1", "ports", 0, []int{9, 1}},
	} {
		b := testPlanner(t, load(t, halves5), test.sw, fabric.ByHops)
		g := &manifest.Multicast{Members: manifest.Members(test.members)}
		if test.members == "ports" {
			g.Ports = []int{9, 1}
		}
		var from *fabric.Port
		if test.from > 0 {
			p := b.port(test.from)
			from = &p
		}
		if got := b.members(g, from); !slices.Equal(got, test.want) {
			t.Errorf("%s: %s from %d: %v, want %v", test.sw, test.members, test.from, got, test.want)
		}
	}
	// Groups per port have numbers from the group's on. A port that leads nowhere has none.
	b := testPlanner(t, load(t, halves5), "s2", fabric.ByHops)
	b.m.MulticastGroups = []manifest.Multicast{{Group: 100, PerPort: true, Members: manifest.MembersOnward}, {Group: 7, Members: manifest.MembersUp}, {Group: 8, Members: manifest.MembersPorts, Ports: []int{9, 1}}}
	b.addMulticasts()
	if got := fmt.Sprint(b.out.Groups); got != "[{101 [2 3]} {102 [1 3]} {103 [1 2]} {8 [1 9]}]" {
		t.Errorf("groups %s", got)
	}
	for port, want := range map[int]uint64{1: 101, 3: 103} {
		if got := b.onward(b.port(port)); got != want {
			t.Errorf("onward from %d: %d, want %d", port, got, want)
		}
	}
	b.m.CloneSessions = []manifest.Session{{Session: 3, Port: 5, Bytes: 20}, {Session: 200, PerPort: true, Bytes: 60}}
	b.addSessions()
	if got := fmt.Sprint(b.out.Sessions); got != "[{3 5 20} {201 1 60} {202 2 60} {203 3 60}]" {
		t.Errorf("sessions %s", got)
	}
	if got, ok := b.sessionTo(b.port(2)); got != 202 || !ok {
		t.Errorf("session to port 2: %d, %v", got, ok)
	}
	l1 := testPlanner(t, load(t, halves5), "l1", fabric.ByHops)
	l1.m.CloneSessions = b.m.CloneSessions
	if got, ok := l1.sessionTo(l1.port(1)); ok {
		t.Errorf("session to a host: %d", got)
	}
}

// fill fills a table with fields of a P4Info and returns its entries, one a line.
func fill(t *testing.T, sw string, by fabric.Grouping, m *manifest.Manifest, fields []p4info.Field, actions map[string][]string) (rows []string, errs []string) {
	t.Helper()
	b := testPlanner(t, load(t, halves5), sw, by)
	b.m = m
	table := &p4info.Table{Name: m.Tables[0].Name, Fields: fields, Actions: map[string]*p4info.Action{}}
	for name, params := range actions {
		a := &p4info.Action{Name: name}
		for _, p := range params {
			a.Params = append(a.Params, p4info.Field{Name: p, Width: 48})
		}
		table.Actions[name] = a
	}
	b.x = &p4info.Index{ByName: map[string]*p4info.Table{table.Name: table}}
	fillers[m.Tables[0].Purpose](b, &m.Tables[0])
	for _, e := range b.out.Entries {
		var match []string
		for _, k := range e.Match {
			text := fmt.Sprint(k.Value)
			if k.High != nil {
				text += fmt.Sprint("..", *k.High)
			} else if k.Bits != 48 {
				text += fmt.Sprint("/", k.Bits)
			}
			match = append(match, text)
		}
		var args []uint64
		for _, a := range e.Args {
			args = append(args, a.Value)
		}
		rows = append(rows, fmt.Sprintf("%s %s %v", strings.Join(match, " "), e.Action, args))
	}
	for _, err := range b.errs {
		errs = append(errs, err.Error())
	}
	return rows, errs
}

// The purpose of a table determines its entries, with keys and arguments, computed by hand
// from the network above.
func TestFillers(t *testing.T) {
	key := func(carries manifest.Fact) manifest.Key { return manifest.Key{Name: string(carries), Carries: carries} }
	action := func(name string, facts ...manifest.Fact) manifest.Action {
		a := manifest.Action{Name: name}
		for i, f := range facts {
			a.Params = append(a.Params, manifest.Param{Name: fmt.Sprint("p", i), Carries: f})
		}
		return a
	}
	for _, test := range []struct {
		sw      string
		by      fabric.Grouping
		purpose manifest.Purpose
		keys    []manifest.Key
		actions []manifest.Action
		want    []string
	}{
		{"l1", fabric.ByHops, manifest.Route, []manifest.Key{key(manifest.Destination)}, []manifest.Action{action("out", manifest.EgressPort), action("spread", manifest.GroupID, manifest.PathCount)}, []string{
			"167772417/32 out [1]", "167772418/32 out [2]", "167772672/24 spread [1 3]",
		}},
		{"l1", fabric.ByHops, manifest.Route, []manifest.Key{key(manifest.Destination)}, []manifest.Action{action("spread", manifest.FirstMember, manifest.PathCount)}, []string{
			"167772417/32 spread [3 1]", "167772418/32 spread [4 1]", "167772672/24 spread [0 3]",
		}},
		{"l1", fabric.ByHops, manifest.Member, []manifest.Key{key(manifest.GroupID), key(manifest.SlotNumber)}, []manifest.Action{action("out", manifest.EgressPort)}, []string{
			"1 0 out [3]", "1 1 out [4]", "1 2 out [5]",
		}},
		{"l1", fabric.ByHops, manifest.Group, []manifest.Key{key(manifest.GroupID)}, []manifest.Action{action("set", manifest.PathCount, manifest.FirstMember)}, []string{"1 set [3 0]"}},
		{"l1", fabric.ByHops, manifest.PortConfig, []manifest.Key{key(manifest.EgressPort)}, []manifest.Action{action("none"), action("rate", manifest.LinkRate)}, []string{
			"1 rate [83333]", "2 rate [83333]", "3 rate [3333]", "4 rate [833]", "5 rate [833]",
		}},
		{"l1", fabric.ByHops, manifest.Neighbour, []manifest.Key{key(manifest.IngressPort)}, []manifest.Action{action("queue", manifest.QueueNumber)}, []string{"3 queue [12]", "4 queue [16]", "5 queue [20]"}},
		{"s1", fabric.ByHops, manifest.Leaf, []manifest.Key{key(manifest.LeafNumber)}, []manifest.Action{action("away", manifest.EgressPort), action("home", manifest.LeafNumber)}, []string{"1 away [1]", "2 away [2]"}},
		{"l1", fabric.ByHops, manifest.Leaf, []manifest.Key{key(manifest.LeafNumber)}, []manifest.Action{action("away", manifest.EgressPort), action("home", manifest.LeafNumber)}, []string{"1 home [1]", "2 away [5]"}},
		{"l1", fabric.ByHops, manifest.LeafOf, []manifest.Key{key(manifest.Destination)}, []manifest.Action{action("leaf", manifest.LeafNumber)}, []string{"167772672/24 leaf [2]"}},
		{"l1", fabric.ByLeaf, manifest.Arrival, []manifest.Key{key(manifest.LeafNumber), key(manifest.IngressPort)}, []manifest.Action{action("slot", manifest.SlotNumber)}, []string{"2 3 slot [0]", "2 4 slot [1]", "2 5 slot [2]"}},
		{"s2", fabric.ByHops, manifest.Identity, nil, []manifest.Action{action("me", manifest.NodeNumber)}, []string{" me [4]"}},
	} {
		m := &manifest.Manifest{Arch: manifest.V1Model, Paths: 4, Tables: []manifest.Table{{Name: "I.t", Purpose: test.purpose, Keys: test.keys, Actions: test.actions}}}
		var fields []p4info.Field
		for _, k := range test.keys {
			f := p4info.Field{Name: k.Name, Width: 48, Kind: configv1.MatchField_EXACT}
			if k.Carries == manifest.Destination {
				f.Width, f.Kind = 32, configv1.MatchField_LPM
			}
			fields = append(fields, f)
		}
		actions := map[string][]string{}
		for _, a := range test.actions {
			actions[a.Name] = nil
			for _, p := range a.Params {
				actions[a.Name] = append(actions[a.Name], p.Name)
			}
		}
		got, errs := fill(t, test.sw, test.by, m, fields, actions)
		if len(errs) > 0 || !slices.Equal(got, test.want) {
			t.Errorf("%s, %s: %q, %v\nwant %q", test.sw, test.purpose, got, errs, test.want)
		}
	}
}

// A field that matches addresses exactly needs an entry for each host; a range needs its
// two ends. A field of the other IP version needs none.
func TestDestinationFields(t *testing.T) {
	for kind, want := range map[configv1.MatchField_MatchType][]string{
		configv1.MatchField_LPM: {"167772417/32", "167772418/32", "167772672/24"}, configv1.MatchField_TERNARY: {"167772417/32", "167772418/32", "167772672/24"},
		configv1.MatchField_EXACT:    {"167772417/32", "167772418/32", "167772673/32"},
		configv1.MatchField_OPTIONAL: {"167772417/32", "167772418/32", "167772673/32"},
		configv1.MatchField_RANGE:    {"167772417..167772417", "167772418..167772418", "167772672..167772927"},
	} {
		for width, none := range map[int]bool{32: false, 128: true} {
			m := &manifest.Manifest{Tables: []manifest.Table{{
				Name: "I.t", Purpose: manifest.Route, Keys: []manifest.Key{{Name: "dst", Carries: manifest.Destination}},
				Actions: []manifest.Action{{Name: "out", Params: []manifest.Param{{Name: "p", Carries: manifest.EgressPort}}}},
			}}}
			rows, errs := fill(t, "l1", fabric.ByHops, m, []p4info.Field{{Name: "dst", Width: width, Kind: kind}}, map[string][]string{"out": {"p"}})
			var got []string
			for _, r := range rows {
				first, _, _ := strings.Cut(r, " ")
				got = append(got, first)
			}
			if len(errs) > 0 || none != (len(got) == 0) || !none && !slices.Equal(got, want) {
				t.Errorf("%v of %d bits: %v, %v; want %v", kind, width, got, errs, want)
			}
		}
	}
}

// The queue of a port has the capacity in the topology, or its share of the buffer, at
// least two packets, or the default.
func TestCapacity(t *testing.T) {
	for _, test := range []struct {
		queue  int
		buffer string
		want   int
	}{{0, "", 64}, {7, "", 7}, {7, "60KB", 7}, {0, "60KB", 13}, {0, "3KB", 2}, {0, "1KB", 2}} {
		text := halves5
		if test.buffer != "60KB" {
			text = strings.Replace(text, ", buffer: 60KB", "", 1)
			if test.buffer != "" {
				text = strings.Replace(text, "s2: {role: spine}", "s2: {role: spine, buffer: "+test.buffer+"}", 1)
			}
		}
		b := testPlanner(t, load(t, text), "s2", fabric.ByHops)
		if got := b.capacity(fabric.Port{Queue: test.queue}); got != test.want {
			t.Errorf("queue %d, buffer %q: %d, want %d", test.queue, test.buffer, got, test.want)
		}
	}
	// Programs multiply by the reciprocal, because they cannot divide by the capacity.
	b := testPlanner(t, load(t, halves5), "l1", fabric.ByHops)
	for queue, want := range map[int]uint64{1: 255 * 65536, 2: 255 * 65536, 3: 255 * 32768, 64: 265264, 256: 65536} {
		if got, ok := b.aboutPort(fabric.Port{Queue: queue})(manifest.Reciprocal, 0); !ok || got != want {
			t.Errorf("the reciprocal of %d is %d, want %d", queue, got, want)
		}
	}
	group, port := Sizes(load(t, halves5))
	if group != 3 || port != 5 {
		t.Errorf("groups of %d paths, ports up to %d", group, port)
	}
}

// A plan lists nodes that failed links cut off: hosts, and leaves that another leaf does
// not reach, once.
func TestCut(t *testing.T) {
	top := load(t, network)
	for down, want := range map[string][]string{
		"":                  nil,
		"l1-s1":             nil,
		"h2-l2":             {"h2 at l2: its link is down"},
		"l2-s1 l2-s2":       {"the hosts of l2: no way from l1"},
		"h1-l1 l1-s1 l1-s2": {"h1 at l1: its link is down", "the hosts of l2: no way from l1"},
	} {
		failed := top
		for name := range strings.FieldsSeq(down) {
			links, err := top.FindLinks(name)
			if err != nil {
				t.Fatal(err)
			}
			failed = failed.Fail(links...)
		}
		p := &Plan{Topology: failed, Routes: failed.Routes()}
		if got := p.Cut(); !slices.Equal(got, want) {
			t.Errorf("without %q: %q, want %q", down, got, want)
		}
	}
}

// An address of 128 bits fits a field if the bits above the field are 0. A number fits
// fields of any width that has its bits.
func TestWideValues(t *testing.T) {
	p := testPlanner(t, load(t, network), "l1", fabric.ByHops).here()
	for _, test := range []struct {
		value string
		width int
		upper uint64
		lower uint64
		err   string
	}{
		{"2001:db8::7", 128, 0x20010db8_00000000, 7, ""},
		{"::ffff:2:3:4:5", 80, 0xffff, 0x0002_0003_0004_0005, ""},
		{"::1:0:2:3:4:5", 80, 0, 0, "does not fit 80 bits"},
		{"::1:2:3:4:5", 65, 1, 0x0002_0003_0004_0005, ""},
		{"::2:2:3:4:5", 65, 0, 0, "does not fit 65 bits"},
		{"255", 8, 0, 255, ""},
		{"256", 8, 0, 0, "256 does not fit 8 bits"},
		{"5", 128, 0, 5, ""},
	} {
		upper, lower, err := p.value(expr(t, test.value), test.width)
		if test.err != "" {
			if err == nil || !strings.Contains(err.Error(), test.err) {
				t.Errorf("%s in %d bits: %v, want %s", test.value, test.width, err, test.err)
			}
		} else if err != nil || upper != test.upper || lower != test.lower {
			t.Errorf("%s in %d bits: %#x %#x, %v; want %#x %#x", test.value, test.width, upper, lower, err, test.upper, test.lower)
		}
	}
}
