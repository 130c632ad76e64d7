package plan

import (
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"testing"

	configv1 "github.com/p4lang/p4runtime/go/p4/config/v1"

	"github.com/p4lb/p4lb/internal/controller/p4info"
	"github.com/p4lb/p4lb/internal/network/fabric"
	"github.com/p4lb/p4lb/internal/scheme/manifest"
)

// network has two leaves behind spines of unequal capacity: s1 has 40 Gbit/s to both
// leaves; s2 gets 2×10 Gbit/s from l1 and has 5 Gbit/s to l2.
const network = `
switches: {l1: {role: leaf}, l2: {role: leaf}, s1: {role: spine}, s2: {role: spine}}
hosts:
  h1: {ip: 10.0.1.1/24}
  h2: {ip: 10.0.2.1/24}
links:
  - {ends: [h1, l1], rate: 100G}
  - {ends: [h2, l2], rate: 100G}
  - {ends: [l1, s1], rate: 40G}
  - {ends: [l1, s2], rate: 10G}
  - {ends: [l1, s2], rate: 10G}
  - {ends: [l2, s1], rate: 40G}
  - {ends: [l2, s2], rate: 5G}
`

func load(t *testing.T, text string) *fabric.Topology {
	t.Helper()
	top, err := fabric.Load("test.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return top
}

// testPlanner returns the planner of a switch, with an empty plan for it.
func testPlanner(t *testing.T, top *fabric.Topology, sw string, by fabric.Grouping) *planner {
	t.Helper()
	p := &Plan{Topology: top, Routes: top.Routes(), Grouping: by, Options: Options{MTU: defaultMTU, Queue: defaultQueue}}
	s := top.Switch(sw)
	b := &planner{plan: p, sw: s, grouping: by, number: int(s.ID), m: &manifest.Manifest{}, ports: top.Ports(sw), out: &Switch{Name: sw, CPUPort: defaultCPU}}
	b.out.Routes, _ = p.Routes.Table(sw, by)
	return b
}

func expr(t *testing.T, text string) manifest.Expr {
	t.Helper()
	e, err := manifest.ParseExpr(text)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestBitWriter(t *testing.T) {
	type number struct {
		v     uint64
		width int
	}
	for _, test := range []struct {
		numbers []number
		want    string
	}{
		{[]number{{0xAB, 8}}, "ab"},
		{[]number{{0x1, 1}, {0x0, 1}, {0x3F, 6}}, "bf"},
		{[]number{{0x5, 3}, {0x123, 9}, {0xF, 4}}, "b23f"}, // 101 100100011 1111
		{[]number{{0x3, 2}}, "c0"},
		{[]number{{0x0123456789ABCDEF, 64}, {0x7, 3}, {0, 5}}, "0123456789abcdefe0"},
		{[]number{{0xFFFF, 4}, {0, 4}}, "f0"}, // only the low bits count
		{nil, ""},
	} {
		var w BitWriter
		for _, n := range test.numbers {
			w.Write(n.v, n.width)
		}
		if got := hex.EncodeToString(w.Bytes); got != test.want {
			t.Errorf("%v: %s, want %s", test.numbers, got, test.want)
		}
	}
}

func TestFrame(t *testing.T) {
	b := testPlanner(t, load(t, network), "l2", fabric.ByHops)
	for _, test := range []struct {
		fields string // value:bits
		want   string // hex, or the error
	}{
		{"0xffffffffffff:48 2:48 0x9999:16 $switch:8", "ffffffffffff000000000002999902"},
		{"0xffffffffffff:48 2:48 0x9999:16 1:7", "error: the frame is no whole number of bytes"},
		{"1:48 2:48", "error: the frame has 12 bytes, an Ethernet header 14"},
		{"1:48 2:48 0x1ffff:16", "error: 131071 does not fit 16 bits"},
	} {
		var fields []manifest.FrameField
		for _, f := range strings.Fields(test.fields) {
			value, bits, _ := strings.Cut(f, ":")
			field := manifest.FrameField{Value: expr(t, value)}
			fmt.Sscan(bits, &field.Bits)
			fields = append(fields, field)
		}
		frame, err := b.here().frame(fields)
		got := hex.EncodeToString(frame.Bytes)
		if err != nil {
			got = "error: " + err.Error()
		}
		if got != test.want {
			t.Errorf("%s: %s, want %s", test.fields, got, test.want)
		}
	}
}

// Weights follow the capacity of the paths to the other leaf. Through s2 it is 5 of 20
// Gbit/s, half of it for each link, so the paths have weights of 40, 2.5 and 2.5.
func TestWeights(t *testing.T) {
	top := load(t, network)
	b := testPlanner(t, top, "l1", fabric.ByLeaf)
	var got []string
	for _, g := range b.out.Routes.Groups {
		if g.ID == 2 {
			for i, w := range b.weights(g) {
				got = append(got, fmt.Sprintf("%s %d", b.port(g.Hops[i].Port).Peer, w))
			}
		}
	}
	if want := []string{"s1 16", "s2 1", "s2 1"}; !slices.Equal(got, want) {
		t.Errorf("weights %v, want %v", got, want)
	}
	// The sum of 16 weights fits in 32 bits, however different the links are.
	wide := testPlanner(t, load(t, strings.NewReplacer("40G", "400G", "rate: 5G", "rate: 46K").Replace(network)), "l1", fabric.ByLeaf)
	for _, g := range wide.out.Routes.Groups {
		if w := wide.weights(g); g.ID == 2 && (slices.Min(w) != 1 || slices.Max(w) != 400_000_000/(400_000_000>>20)) {
			t.Errorf("weights %v of 400 Gbit/s and 23 kbit/s", w)
		}
	}
	// Without a leaf behind a group there is nothing to weigh.
	by := testPlanner(t, top, "l1", fabric.ByHops)
	for _, g := range by.out.Routes.Groups {
		if w := by.weights(g); slices.Max(w) != 0 || len(w) != len(g.Hops) {
			t.Errorf("group %d without leaves: weights %v", g.ID, w)
		}
	}
}

// A program that can only send to groups gets a group, with its own id, for each next hop
// of a route without a choice.
func TestGroupsOfOnePath(t *testing.T) {
	hop := func(port int) fabric.Hop { return fabric.Hop{Port: port} }
	b := testPlanner(t, load(t, network), "l1", fabric.ByHops)
	b.out.Routes.Groups = []fabric.Group{{ID: 3, Hops: []fabric.Hop{hop(1), hop(2)}}, {ID: 7, Hops: []fabric.Hop{hop(2), hop(3)}}}
	b.out.Routes.Routes = []fabric.Route{{Hop: hop(4)}, {Group: 3}, {Hop: hop(5)}, {Hop: hop(4)}}
	b.m.Tables = []manifest.Table{{Name: "t", Purpose: manifest.Route}}
	got := map[int][]fabric.Hop{}
	for _, g := range b.paths() {
		if got[g.ID] != nil {
			t.Errorf("two groups have the id %d", g.ID)
		}
		got[g.ID] = g.Hops
	}
	want := map[int][]fabric.Hop{3: {hop(1), hop(2)}, 7: {hop(2), hop(3)}, 8: {hop(4)}, 9: {hop(5)}}
	for id, hops := range want {
		if !slices.Equal(got[id], hops) {
			t.Errorf("group %d: %v, want %v", id, got[id], hops)
		}
	}
	if len(got) != len(want) || b.single[hop(4)] != 8 || b.single[hop(5)] != 9 {
		t.Errorf("groups %v, of one path %v", got, b.single)
	}
	// The members of a group come after the members of all groups before it.
	for id, first := range map[int]uint64{3: 0, 7: 2, 8: 4, 9: 5} {
		about := b.aboutGroup(fabric.Group{ID: id, Hops: got[id]})
		v, _ := about(manifest.FirstMember, 0)
		m, _ := about(manifest.MemberIndex, 1)
		n, _ := about(manifest.PathCount, 0)
		if v != first || m != first+1 || n != uint64(len(got[id])) {
			t.Errorf("group %d: first member %d, second %d, %d paths; want %d", id, v, m, n, first)
		}
	}
	// With an action that names a port, routes without a choice need no group.
	b = testPlanner(t, load(t, network), "l1", fabric.ByHops)
	b.out.Routes.Routes = []fabric.Route{{Hop: hop(4)}}
	b.m.Tables = []manifest.Table{{Name: "t", Purpose: manifest.Route, Actions: []manifest.Action{{Name: "to_port", Params: []manifest.Param{{Name: "port", Carries: manifest.EgressPort}}}}}}
	if n := len(b.paths()); n != len(b.out.Routes.Groups) {
		t.Errorf("%d groups with an action for a port, want %d", n, len(b.out.Routes.Groups))
	}
}

// Matches of a manifest: each kind, with its limits.
func TestMatch(t *testing.T) {
	p := testPlanner(t, load(t, network), "l1", fabric.ByHops).here()
	match := func(kind manifest.MatchKind, value, other string) map[string]manifest.Match {
		m := manifest.Match{Kind: kind, Value: expr(t, value)}
		if other != "" {
			m.Other = expr(t, other)
		}
		return map[string]manifest.Match{"k": m}
	}
	for _, test := range []struct {
		width int
		list  map[string]manifest.Match
		want  string
	}{
		{8, nil, "any"},
		{8, match(manifest.MaskMatch, "0xA5", "0xF0"), "165 mask 240"},
		{8, match(manifest.RangeMatch, "5", "9"), "5 to 9"},
		{8, match(manifest.RangeMatch, "9", "9"), "9 to 9"},
		{8, match(manifest.RangeMatch, "9", "5"), "error: the range 9..5 is empty"},
		{32, match(manifest.PrefixMatch, "0x0A010203", "8"), "167772160 bits 8"},
		{32, match(manifest.PrefixMatch, "0x0A010203", "32"), "167838211 bits 32"},
		{32, match(manifest.PrefixMatch, "0x0A010203", "0"), "0 bits 0"},
		{32, match(manifest.PrefixMatch, "1", "33"), "error: a prefix of 33 bits: the field has 32"},
		{8, match(manifest.MaskMatch, "256", "1"), "error: 256 does not fit 8 bits"},
	} {
		m, err := p.match(p4info.Field{Name: "k", Width: test.width, Kind: configv1.MatchField_TERNARY}, test.list)
		got := fmt.Sprint(m.Value)
		switch {
		case err != nil:
			got = "error: " + err.Error()
		case m.Any:
			got = "any"
		case m.Mask != nil:
			got += fmt.Sprint(" mask ", *m.Mask)
		case m.High != nil:
			got += fmt.Sprint(" to ", *m.High)
		default:
			got += fmt.Sprint(" bits ", m.Bits)
		}
		if got != test.want {
			t.Errorf("%+v: %s, want %s", test.list, got, test.want)
		}
	}
}

// Sessions and multicast groups have numbers from 1 on, each one once.
func TestSessionsAndGroups(t *testing.T) {
	for _, test := range []struct{ at, to, want string }{
		{"1", "2", ""},
		{"0", "2", "session 0: want a number from 1"},
		{"5", "2", "there is a session 5 already"},
	} {
		b := testPlanner(t, load(t, network), "l1", fabric.ByHops)
		b.out.Sessions = []Session{{ID: 5, Port: 1}}
		b.addSession(&manifest.Session{At: expr(t, test.at), To: expr(t, test.to), Bytes: 64})
		if test.want == "" {
			if len(b.errs) != 0 || !slices.Contains(b.out.Sessions, Session{ID: 1, Port: 2, Bytes: 64}) {
				t.Errorf("session %s: %v, %v", test.at, b.out.Sessions, b.errs)
			}
		} else if len(b.errs) != 1 || !strings.Contains(b.errs[0].Error(), test.want) || len(b.out.Sessions) != 1 {
			t.Errorf("session %s: %v, %v", test.at, b.out.Sessions, b.errs)
		}
	}
	for _, test := range []struct{ at, to, want string }{
		{"1", "$to-port != 2", "[{1 [1 3 4]}]"},
		{"0", "1", "group 0: want a number from 1"},
		{"9", "0", "[]"}, // leads nowhere
	} {
		b := testPlanner(t, load(t, network), "l1", fabric.ByHops)
		b.addGroup(&manifest.Multicast{At: expr(t, test.at), To: expr(t, test.to)})
		got := fmt.Sprint(b.out.Groups)
		if len(b.errs) > 0 {
			got = b.errs[0].Error()
		}
		if !strings.Contains(got, test.want) {
			t.Errorf("group %s to %s: %s, want %s", test.at, test.to, got, test.want)
		}
	}
}

// A link carries rate / (8 MTU) full packets a second, and at least one.
func TestPacketRate(t *testing.T) {
	for _, test := range []struct {
		rate string
		mtu  int
		want uint64
	}{{"10G", 1500, 833333}, {"1M", 1250, 100}, {"8k", 1500, 1}} {
		r, err := fabric.ParseRate(test.rate)
		if err != nil {
			t.Fatal(err)
		}
		if got := PacketRate(r, test.mtu); got != test.want {
			t.Errorf("%s with an MTU of %d: %d, want %d", test.rate, test.mtu, got, test.want)
		}
	}
}

// Registers by port have a cell for each port up to the highest, and one for 0.
func TestPortCells(t *testing.T) {
	for _, test := range []struct {
		ports []int
		want  int
	}{{nil, 0}, {[]int{1}, 2}, {[]int{1, 2, 7}, 8}} {
		n := &Node{}
		for _, p := range test.ports {
			n.Ports = append(n.Ports, fabric.Port{Number: p})
		}
		if got := PortCells(n); got != test.want {
			t.Errorf("ports %v: %d cells, want %d", test.ports, got, test.want)
		}
		if _, ok := n.Port(7); ok != slices.Contains(test.ports, 7) {
			t.Errorf("ports %v: port 7 %v", test.ports, ok)
		}
	}
}

// Front ports become device ports, which skip the ports that the chip reserves: 0 and 64
// to 71 of each pipe of 128 on Tofino, 0 to 7 on Tofino 2. A topology without a reserved
// port has device ports already.
func TestDevicePorts(t *testing.T) {
	numbered := func(to ...int) *fabric.Topology {
		return load(t, network).Renumber(func(port int) int { return to[port-1] })
	}
	for _, test := range []struct {
		arch     string
		from, to []int // the ports of l1
	}{
		{"tna", []int{1, 63, 64, 120}, []int{1, 63, 72, 129}},
		{"tna", []int{68, 119, 238, 239}, []int{76, 127, 255, 257}},
		{"tna", []int{1, 2, 63, 72}, []int{1, 2, 63, 72}},
		{"t2na", []int{1, 2, 120, 121}, []int{8, 9, 127, 136}},
		{"t2na", []int{8, 9, 10, 11}, []int{8, 9, 10, 11}},
		{"v1model", []int{1, 64, 68, 120}, []int{1, 64, 68, 120}},
	} {
		var got []int
		for _, p := range DevicePorts(numbered(test.from...), test.arch).Ports("l1") {
			got = append(got, p.Number)
		}
		if !slices.Equal(got, test.to) {
			t.Errorf("%s: ports %v become %v, want %v", test.arch, test.from, got, test.to)
		}
	}
	var got []int
	for _, p := range DevicePorts(numbered(1, 2, 9, 120), "t2na", 16, 8, 8).Ports("l1") {
		got = append(got, p.Number)
	}
	if want := []int{9, 10, 18, 138}; !slices.Equal(got, want) {
		t.Errorf("with virtual ports 8 and 16 the ports become %v, want %v", got, want)
	}
	for port, want := range map[int]uint64{0: 0, 1: 4, 3: 12} { // four queues a port
		if got := QueueNumber(port); got != want {
			t.Errorf("port %d: queue %d, want %d", port, got, want)
		}
	}
}
