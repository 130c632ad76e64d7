package plan_test

import (
	"bytes"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/p4lb/p4lb/internal/controller/plan"
	"github.com/p4lb/p4lb/internal/network/fabric"
	"github.com/p4lb/p4lb/internal/p4"
	"github.com/p4lb/p4lb/internal/scheme/manifest"
)

// source is a program with keys and parameters of many kinds and widths.
const source = `#include <core.p4>
#include <v1model.p4>
header ether { bit<48> to; bit<48> from; bit<16> kind; }
header addresses { bit<128> six; bit<96> wide; bit<32> four; bit<8> class; }
struct headers { ether eth; addresses ip; }
struct data { bit<16> slot; bit<16> paths; bit<4> nibble; }
parser Prs(packet_in p, out headers h, inout data m, inout standard_metadata_t s) {
    state start { p.extract(h.eth); p.extract(h.ip); transition accept; }
}
control Ver(inout headers h, inout data m) { apply {} }
control In(inout headers h, inout data m, inout standard_metadata_t s) {
    register<bit<32>>(16) cells;
    register<bit<32>>(8) back;
    action_selector(HashAlgorithm.crc16, 32w64, 32w8) spread;
    action drop() { mark_to_drop(s); }
    action go(bit<9> port) { s.egress_spec = port; }
    action rewrite(bit<9> port, bit<48> mac, bit<32> four, bit<128> six) { s.egress_spec = port; h.eth.to = mac; h.ip.four = four; h.ip.six = six; }
    action group(bit<16> id, bit<16> n) { m.slot = id; m.paths = n; }
    action rank(bit<4> r) { m.nibble = r; }
    table four { key = { h.ip.four: lpm; } actions = { go; group; drop; } size = 64; }
    table six { key = { h.ip.six: lpm; } actions = { rewrite; drop; } size = 64; }
    table wide { key = { h.ip.wide: lpm; } actions = { go; drop; } size = 64; }
    table members { key = { m.slot: exact; m.paths: exact; } actions = { go; drop; } size = 64; }
    table rules { key = { h.ip.four: ternary; h.ip.class: range; h.eth.kind: optional; } actions = { rank; drop; } default_action = rank(3); size = 8; }
    table choice { key = { h.eth.kind: exact; h.ip.four: selector; } actions = { go; drop; } implementation = spread; size = 16; }
    table tune { actions = { rank; } default_action = rank(1); }
    table fixed { key = { h.eth.kind: exact; } actions = { drop; } const entries = { 16w5: drop(); } }
    apply {
        bit<32> v;
        cells.read(v, 0);
        back.read(v, 0);
        four.apply(); six.apply(); wide.apply(); members.apply(); rules.apply(); choice.apply(); tune.apply(); fixed.apply();
    }
}
control Eg(inout headers h, inout data m, inout standard_metadata_t s) { apply {} }
control Sum(inout headers h, inout data m) { apply {} }
control Dep(packet_out p, in headers h) { apply { p.emit(h); } }
V1Switch(Prs(), Ver(), In(), Eg(), Sum(), Dep()) main;
`

// network has hosts with IPv4 addresses at l1 and l2, an IPv6 host at l2, and two spines.
const network = `
switches: {l1: {role: leaf}, l2: {role: leaf}, s1: {role: spine}, s2: {role: spine}}
hosts:
  h1: {ip: 10.0.1.1/24, mac: 02:00:00:00:00:01}
  h2: {ip: 10.0.2.2/24, mac: 02:00:00:00:00:02}
  h6: {ip: "2001:db8:2::6/64", mac: 02:00:00:00:00:06}
links:
  - {ends: [h1, l1], rate: 1G}
  - {ends: [h2, l2], rate: 1G}
  - {ends: [h6, l2], rate: 1G}
  - {ends: [l1, s1], rate: 1G}
  - {ends: [l1, s2], rate: 1G}
  - {ends: [l2, s1], rate: 1G}
  - {ends: [l2, s2], rate: 1G}
services:
  web: {address: 10.0.9.1, port: 80, servers: [h2, h1]}
`

func topology(t *testing.T, text string) *fabric.Topology {
	t.Helper()
	top, err := fabric.Load("net.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return top
}

// newPlan plans the program with the sections of a manifest.
func newPlan(t *testing.T, top *fabric.Topology, sections string, o plan.Options) (*plan.Plan, error) {
	t.Helper()
	c, err := p4.CompileText("x.p4", []byte(source), p4.Options{})
	if err != nil {
		t.Fatal(err)
	}
	m, err := manifest.Decode("x.yaml", []byte("version: 2\nscheme: test\narch: v1model\n"+sections))
	if err != nil {
		t.Fatal(err)
	}
	p := &plan.Pipeline{Manifest: *m, P4Info: c.P4Info, Config: c.JSON()}
	return plan.New(top, map[fabric.Role]*plan.Pipeline{fabric.Leaf: p, fabric.Spine: p}, o)
}

const everything = `
cpu_port: 60
queues: 3
virtual_addresses:
- {address: 10.0.9.9, mac: "02:00:00:00:09:09"}
- {address: "2001:db8::9"}
registers:
- name: In.cells
  cells:
  - {each: host, at: $host, value: $port * 10}
  - {at: 0, value: $switch + 7, roles: [spine]}
- name: In.back
  size: 8
  initial:
  - {index: 2, value: 55}
tables:
- name: In.four
  entries:
  - {each: host, where: "!$ipv6", match: {h.ip.four: $host-address/32}, action: go, args: {port: $port}}
  - {match: {h.ip.four: 10.0.0.0/9}, action: group, args: {id: $switch, n: $ports}}
- name: In.six
  entries:
  - {each: host, where: $ipv6, match: {h.ip.six: $host-address}, action: rewrite, args: {port: $port, mac: $next-mac, four: 10.9.8.7, six: $host-address}}
  - {match: {h.ip.six: "2001:db8:ffff:ffff::/40"}, action: drop}
  - {match: {h.ip.six: "2001:db8::ffff/100"}, action: drop}
- name: In.wide
  entries:
  - {match: {h.ip.wide: "::1:2:3:4:5/80"}, action: go, args: {port: 1}}
- name: In.rules
  entries:
  - {priority: 7, match: {h.ip.four: 10.0.1.1&&&255.255.0.0, h.ip.class: 3..9, h.eth.kind: 0x800}, action: rank, args: {r: 2}}
  - {priority: 0 - 5, match: {h.ip.class: 1..1}, action: drop}
  - {default: true, action: rank, args: {r: $leaf(h1)}}
- name: In.choice
  entries:
  - {each: host, where: "!$ipv6", match: {h.eth.kind: $host}, action: go, args: {port: $port}, one_of: path}
  - {match: {h.eth.kind: 99}, where: $above, action: go, args: {port: $port}, one_of: port}
- name: In.tune
  entries:
  - {default: true, action: rank, args: {r: $tier}}
clone_sessions:
- {each: port, where: $neighbour, at: 200 + $port, to: $port, bytes: 64}
multicast_groups:
- {each: port, where: $host, at: 100 + $port, to: $to-port != $port}
- {at: 50, to: $to-above}
- {at: 51, to: $to-host}
tasks:
- {kind: send, period: 2ms, roles: [leaf], frame: ["0xffffffffffff:48", "$own-mac:48", "0x88b5:16", "$sequence:8", "$time:24", "$leaf:8"], each: leaf path}
- {kind: send, period: 3ms, switches: [s2], in: 2, returns: In.back, frame: ["1:48", "2:48", "0x88b6:16"]}
- {kind: send, period: 4ms, switches: [s2], in: $cpu, frame: ["1:48", "2:48", "0x88b6:16"]}
`

// A plan has the entries, cells, sessions, groups and frames of the manifest on each switch.
func TestPlan(t *testing.T) {
	p, err := newPlan(t, topology(t, network), everything, plan.Options{MTU: 1000, Queue: 40})
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]string{}
	for i, r := range p.Rows() {
		if i == 0 {
			if !slices.Equal(r, []string{"SWITCH", "OBJECT", "VALUE"}) {
				t.Errorf("headings %q", r)
			}
			continue
		}
		key := r[0] + " " + r[1]
		if rows[key] != "" {
			t.Errorf("%s is there twice", key)
		}
		rows[key] = r[2]
	}
	for object, want := range map[string]string{
		"l1 program":                                                  "test for the role leaf",
		"s2 program":                                                  "test for the role spine",
		"l1 In.four four=10.0.1.1":                                    "go(port=1)",
		"l1 In.four four=10.0.2.2":                                    "go(port=3)", // the second destination, by the second path
		"l1 In.four four=10.0.0.0/9":                                  "group(id=1, n=3)",
		"s2 In.four four=10.0.0.0/9":                                  "group(id=4, n=2)",
		"s1 In.four four=10.0.2.2":                                    "go(port=2)",
		"l2 In.six six=2001:db8:2::6":                                 "rewrite(port=2, mac=02:00:00:00:00:06, four=168364039, six=2001:db8:2::6)",
		"l1 In.six six=2001:db8:ff00::/40":                            "drop()",
		"l1 In.six six=2001:db8::/100":                                "drop()",
		"l1 In.wide wide=::1:2:3:4:0/80":                              "go(port=1)",
		"l1 In.rules four=10.0.1.1&&&0xffff0000 class=3..9 kind=2048": "rank(r=2)",
		"l1 In.rules four=* class=1..1 kind=*":                        "drop()",
		"l1 In.rules default":                                         "rank(r=1)",
		"l1 In.choice kind=1":                                         "one of go(port=1)",
		"l1 In.choice kind=2":                                         "one of go(port=2), go(port=3)",
		"l2 In.choice kind=99":                                        "one of go(port=3), go(port=4)",
		"l1 In.tune default":                                          "rank(r=1)",
		"s1 In.tune default":                                          "rank(r=2)",
		"l1 clone session 202":                                        "port 2",
		"s1 clone session 201":                                        "port 1",
		"l1 multicast group 101":                                      "ports 2 3",
		"l2 multicast group 102":                                      "ports 1 3 4",
		"l1 multicast group 50":                                       "ports 2 3",
		"l2 multicast group 51":                                       "ports 1 2",
		"l1 register In.cells[1]":                                     "10",
		"l1 register In.cells[2]":                                     "30",
		"s2 register In.cells[0]":                                     "11",
		"l1 register In.back[2]":                                      "55",
		"l1 queue of port 1":                                          "125000 packets/s, 40 packets",
	} {
		if got, ok := rows[object]; !ok || got != want {
			t.Errorf("%s: %q, want %q", object, got, want)
		}
		delete(rows, object)
	}
	for _, absent := range []string{"l1 register In.cells[0]", "s1 multicast group 101", "l1 clone session 201", "s1 In.choice kind=99", "s1 multicast group 50"} {
		if v, ok := rows[absent]; ok {
			t.Errorf("%s: %s", absent, v)
		}
	}
	if t.Failed() {
		for object, value := range rows {
			t.Logf("%s: %s", object, value)
		}
	}
	l1 := p.Switch("l1")
	priority := map[string]int{}
	for _, e := range l1.Entries {
		priority[e.Key()] = e.Priority
	}
	if a, b, c := priority["In.rules four=10.0.1.1&&&0xffff0000 class=3..9 kind=2048"], priority["In.rules four=* class=1..1 kind=*"], priority["In.four four=10.0.1.1"]; a != 7 || b != 1 || c != 0 {
		t.Errorf("priorities %d, %d and %d; want 7, at least 1, and none", a, b, c)
	}
	if l1.CPUPort != 60 || l1.Leaf != 1 || p.Switch("l2").Leaf != 2 || p.Switch("s1").Leaf != 0 || p.Switch("x") != nil {
		t.Errorf("controller's port %d, leaves %d and %d", l1.CPUPort, l1.Leaf, p.Switch("l2").Leaf)
	}
	if p.Queues() != 3 {
		t.Errorf("%d queues", p.Queues())
	}
	if !p.Balances() {
		t.Error("no switch has two paths")
	}
	addresses := p.VirtualAddresses()
	if len(addresses) != 3 || addresses[netip.MustParseAddr("10.0.9.9")] != (fabric.MAC{2, 0, 0, 0, 9, 9}) || addresses[netip.MustParseAddr("2001:db8::9")] != (fabric.MAC{}) {
		t.Errorf("virtual addresses %v", addresses)
	}
	if _, ok := addresses[netip.MustParseAddr("10.0.9.1")]; !ok {
		t.Errorf("no address of a service: %v", addresses)
	}
	if got := p.Empty(); !slices.Equal(got, []string{"In.members"}) {
		t.Errorf("tables without entries %q", got)
	}
}

// Frames of the controller have their fields, the positions of fields that are filled when
// a frame is sent, and the port where they arrive.
func TestFrames(t *testing.T) {
	p, err := newPlan(t, topology(t, network), everything, plan.Options{})
	if err != nil {
		t.Fatal(err)
	}
	frames := p.Switch("l1").Frames
	if len(frames) != 2 {
		t.Fatalf("frames %+v", frames)
	}
	f := frames[1]
	own := f.Bytes[6:12]
	if f.Every.Milliseconds() != 2 || f.Port != nil || !bytes.Equal(f.Bytes[:6], []byte{255, 255, 255, 255, 255, 255}) || bytes.Equal(own, make([]byte, 6)) || bytes.Equal(own, frames[0].Bytes[6:12]) ||
		!bytes.Equal(f.Bytes[12:], []byte{0x88, 0xb5, 0, 0, 0, 0, 2}) || len(f.Stamps) != 2 {
		t.Fatalf("frame %+v", f)
	}
	for i, want := range []plan.Stamp{{Fact: manifest.SendCount, Bit: 112, Width: 8}, {Fact: manifest.SendTime, Bit: 120, Width: 24}} {
		if f.Stamps[i] != want {
			t.Errorf("stamp %+v, want %+v", f.Stamps[i], want)
		}
		f.Stamps[i].Write(f.Bytes, 0xA1B2C3D4)
	}
	if got := f.Bytes[14:]; !bytes.Equal(got, []byte{0xD4, 0xB2, 0xC3, 0xD4, 2}) {
		t.Errorf("stamped %x", got)
	}
	f.Stamps[1].Write(f.Bytes, 0)
	if got := f.Bytes[14:]; !bytes.Equal(got, []byte{0xD4, 0, 0, 0, 2}) {
		t.Errorf("stamped again %x", got)
	}
	bits := []byte{0xFF, 0xFF}
	plan.Stamp{Bit: 5, Width: 6}.Write(bits, 0b101011)
	if bits[0] != 0b11111101 || bits[1] != 0b01111111 {
		t.Errorf("a field across bytes: %08b", bits)
	}
	second := p.Switch("s2").Frames
	if len(second) != 2 || second[0].Port == nil || *second[0].Port != 2 || second[0].Returns != "In.back" || second[0].Cells != 8 || second[1].Port != nil || second[1].Returns != "" {
		t.Errorf("frames of s2 %+v", second)
	}
	if len(p.Switch("s1").Frames) != 0 {
		t.Error("s1 gets frames")
	}
}

// An entry that the network or the program cannot have is reported with its position.
func TestImpossible(t *testing.T) {
	entries := func(table, list string) string { return "tables:\n- name: " + table + "\n  entries:\n" + list }
	for name, test := range map[string]struct{ sections, want string }{
		"an argument too wide":     {entries("In.tune", "  - {default: true, action: rank, args: {r: $switch + 15}}\n"), "l1: table In.tune, entry 1 of the manifest: r: 16 does not fit 4 bits"},
		"a value too wide":         {entries("In.choice", "  - {match: {h.eth.kind: $switch << 16}, action: go, args: {port: 1}, one_of: path, each: host}\n"), "does not fit 16 bits"},
		"an address too wide":      {entries("In.wide", "  - {match: {h.ip.wide: \"2001:db8::1/96\"}, action: go, args: {port: 1}}\n"), "does not fit 96 bits"},
		"an address in expression": {entries("In.six", "  - {each: host, where: $ipv6, match: {h.ip.six: $host-address + 1}, action: drop}\n"), "which has 128 bits"},
		"a prefix too long":        {entries("In.four", "  - {match: {h.ip.four: 10.0.0.0/($switch + 40)}, action: drop}\n"), "a prefix of 41 bits: the field has 32"},
		"two entries of one key":   {entries("In.four", "  - {each: port, match: {h.ip.four: 10.0.0.1}, action: go, args: {port: $port}}\n"), "there is an entry In.four four=10.0.0.1 already, with the action go(port=1): this one has go(port=2)"},
		"too many entries":         {entries("In.rules", "  - {each: 0..8, priority: 1, match: {h.ip.class: $i..$i}, action: drop}\n"), "table In.rules would have 9 entries, and has room for 8: 9 for entry 1 (each: 0..8)"},
		"no member of a selector":  {entries("In.choice", "  - {match: {h.eth.kind: 1}, action: go, args: {port: 1}, one_of: group}\n"), "s1: table In.choice, entry 1 of the manifest: there is no group to choose from"},
		"no such cell":             {"registers:\n- name: In.cells\n  cells:\n  - {at: 15 + $switch, value: 1}\n", "register In.cells, cells 1 of the manifest: there is no cell 16, but 16"},
		"a negative cell":          {"registers:\n- name: In.cells\n  cells:\n  - {at: $switch - 2, value: 1}\n", "there is no cell -1"},
		"a port without a link":    {"tasks:\n- {kind: send, period: 1ms, in: 9, frame: [\"1:48\", \"2:48\", \"3:16\"]}\n", "in: port 9 of l1 has no link: want one that has, or $cpu"},
		"two groups of one number": {"multicast_groups:\n- {each: port, at: 5, to: 1}\n", "multicast groups of the manifest: there is a group 5 already"},
		"frames that return":       {"tasks:\n- {kind: send, period: 1ms, returns: In.none, frame: [\"1:48\", \"2:48\", \"3:16\"]}\n", "returns: the program has no register In.none"},
		"a port of the program":    {"virtual_ports:\n- {port: 2, kind: recirculation}\n", "l1: port 2 has a link, and is one that no interface may be attached to"},
		"a register of no task":    {"registers:\n- {name: In.cells, size: 16, width: 32, writer: controller}\n", "l1: register In.cells: its writer is the controller, but no task writes it and it has no initial values"},
		"a field of a frame":       {"tasks:\n- {kind: send, period: 1ms, frame: [\"1:48\", \"2:48\", \"$port(x):16\"]}\n", "has no x"},
	} {
		_, err := newPlan(t, topology(t, network), "cpu_port: 60\n"+test.sections, plan.Options{})
		var list plan.Errors
		if !errors.As(err, &list) || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v\nwant %s", name, err, test.want)
		}
	}
	for _, o := range []plan.Options{{MTU: -1}, {Queue: -1}} {
		if _, err := newPlan(t, topology(t, network), everything, o); err == nil || !strings.Contains(err.Error(), "want positive numbers") {
			t.Errorf("%+v: %v", o, err)
		}
	}
	_, err := newPlan(t, topology(t, network), entries("In.four", "  - {match: {h.ip.four: 10.0.0.1}, action: drop}\n"), plan.Options{})
	var list plan.Errors
	if !errors.As(err, &list) || !strings.Contains(err.Error(), "l2: host h6 has the address 2001:db8:2::6, and no table of the program test matches IPv6 addresses") || !strings.Contains(list[0].Hint, "IPv4 addresses") {
		t.Errorf("an IPv6 host without a table for it: %v", err)
	}
}

// A switch needs a program for its role, with the controller's port free and room for its
// largest group. The hint describes how to get one.
func TestUnfitPrograms(t *testing.T) {
	top := topology(t, network)
	for sections, want := range map[string]string{
		"cpu_port: 1\n":            "l1: port 1 has a link and is also the controller's port; give the link another port, or the program another one with --set cpu=N",
		"cpu_port: 60\npaths: 1\n": fmt.Sprintf("l1: group 1 has 2 next hops, the program of the role leaf is for 1; generate it with --ports 2 (at most %d)", manifest.MaxPaths),
	} {
		_, err := newPlan(t, top, sections, plan.Options{})
		var list plan.Errors
		if !errors.As(err, &list) || list[0].Error()+"; "+list[0].Hint != want {
			t.Errorf("%q: %v\nwant %s", sections, err, want)
		}
	}
	var all plan.Errors
	_, err := newPlan(t, top, "cpu_port: 60\ntables:\n- name: In.none\n", plan.Options{})
	if !errors.As(err, &all) || !strings.Contains(err.Error(), "the manifest of test does not match its program") || all[0].Hint != "generate program and manifest together" {
		t.Errorf("a manifest of another program: %v", err)
	}
	if _, err := (&plan.Pipeline{Config: []byte("{")}).Index(); err == nil {
		t.Error("a pipeline without a program has an index")
	}
	if _, err := newPlan(t, top, "paths: 2\n"+everything, plan.Options{}); err != nil {
		t.Errorf("groups of as many paths as the program has: %v", err)
	}
	var cut []int
	for _, name := range []string{"l2-s1", "l2-s2"} {
		links, err := top.FindLinks(name)
		if err != nil {
			t.Fatal(err)
		}
		cut = append(cut, links...)
	}
	_, err = newPlan(t, top.Fail(cut...), "cpu_port: 60\ntables:\n- name: In.tune\n  entries:\n  - {default: true, action: rank, args: {r: $port(l2)}}\n", plan.Options{})
	if err == nil || !strings.Contains(err.Error(), "$port(l2): there is no way from l1") {
		t.Errorf("a leaf that is cut off: %v", err)
	}
	// A switch with a wrong port has no other errors that follow.
	_, err = newPlan(t, top.Fail(cut...), "cpu_port: 1\ntables:\n- name: In.tune\n  entries:\n  - {default: true, action: rank, args: {r: $port(l2)}}\n", plan.Options{})
	if !errors.As(err, &all) {
		t.Fatalf("ports that the program uses: %v", err)
	}
	for _, e := range all {
		if !strings.Contains(e.Error(), "port 1 has a link and is also the controller's port") {
			t.Errorf("an error besides the port: %v", e)
		}
	}
	p, err := newPlan(t, top, everything, plan.Options{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = plan.New(top, map[fabric.Role]*plan.Pipeline{fabric.Leaf: p.Switch("l1").Pipeline}, plan.Options{})
	var list plan.Errors
	if !errors.As(err, &list) || list[0].Error() != "s1: there is no program for the role spine" || list[0].Hint != "generate one with --role spine" {
		t.Errorf("a role without a program: %v", err)
	}
}

// Tables for a version of IP that no host has may be empty.
func TestEmptyTables(t *testing.T) {
	four := strings.NewReplacer(`  h6: {ip: "2001:db8:2::6/64", mac: 02:00:00:00:00:06}`+"\n", "", "  - {ends: [h6, l2], rate: 1G}\n", "").Replace(network)
	sections := `paths: 4
tables:
- {name: In.six, purpose: route, keys: [{name: h.ip.six, carries: destination}], actions: [{name: rewrite, params: [{name: port, carries: port}, {name: mac, carries: next-mac}, {name: four, value: "1"}, {name: six, value: "2"}]}]}
- {name: In.four, purpose: route, keys: [{name: h.ip.four, carries: destination}], actions: [{name: go, params: [{name: port, carries: port}]}, {name: group, params: [{name: id, carries: group}, {name: n, carries: paths}]}]}
- {name: In.members, purpose: member, keys: [{name: m.slot, carries: group}, {name: m.paths, carries: slot}], actions: [{name: go, params: [{name: port, carries: port}]}]}
`
	p, err := newPlan(t, topology(t, four), sections, plan.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(p.Empty()); got != "[In.wide In.rules In.choice]" {
		t.Errorf("without IPv6 hosts these are empty: %s", got)
	}
	one := topology(t, "switches: {l1: {role: leaf}}\nhosts:\n  h1: {ip: 10.0.1.1/24}\nlinks:\n  - {ends: [h1, l1], rate: 1G}\n")
	if p, err = newPlan(t, one, sections, plan.Options{}); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(p.Empty()); got != "[In.wide In.rules In.choice]" || p.Balances() {
		t.Errorf("without groups these are empty: %s; balances %v", got, p.Balances())
	}
	if got := p.Cut(); got != nil {
		t.Errorf("cut off: %q", got)
	}
	down, err := one.FindLinks("h1-l1")
	if err != nil {
		t.Fatal(err)
	}
	if p, err = newPlan(t, one.Fail(down...), sections, plan.Options{}); err != nil {
		t.Fatal(err)
	}
	if got := p.Cut(); !slices.Equal(got, []string{"h1 at l1: its link is down"}) {
		t.Errorf("cut off: %q", got)
	}
}

// profiled is a program with a table whose action profile has room for two members.
var profiled = strings.NewReplacer(
	"action_selector(HashAlgorithm.crc16, 32w64, 32w8) spread;", "action_profile(2) spread;", "h.ip.four: selector; ", "",
).Replace(source)

// Equal actions of entries share a member of an action profile. A plan with more different
// actions than the profile has room for is refused.
func TestRoomOfProfiles(t *testing.T) {
	c, err := p4.CompileText("x.p4", []byte(profiled), p4.Options{})
	if err != nil {
		t.Fatal(err)
	}
	top := topology(t, strings.NewReplacer(`  h6: {ip: "2001:db8:2::6/64", mac: 02:00:00:00:00:06}`+"\n", "", "  - {ends: [h6, l2], rate: 1G}\n", "").Replace(network))
	for ports, want := range map[string]string{"1 2 1": "", "1 1 1": "", "1 2 3": "action profile In.spread would have 3 members, and has room for 2"} {
		text := "version: 2\nscheme: test\narch: v1model\ntables:\n- name: In.choice\n  entries:\n"
		for i, port := range strings.Fields(ports) {
			text += fmt.Sprintf("  - {match: {h.eth.kind: %d}, action: go, args: {port: %s}}\n", i+1, port)
		}
		m, err := manifest.Decode("x.yaml", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		p := &plan.Pipeline{Manifest: *m, P4Info: c.P4Info, Config: c.JSON()}
		_, err = plan.New(top, map[fabric.Role]*plan.Pipeline{fabric.Leaf: p, fabric.Spine: p}, plan.Options{})
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("ports %s: %v, want %q", ports, err, want)
		}
	}
}

// A table has room for as many entries as it has in the program, and no more.
func TestRoomOfTables(t *testing.T) {
	four := strings.NewReplacer(`  h6: {ip: "2001:db8:2::6/64", mac: 02:00:00:00:00:06}`+"\n", "", "  - {ends: [h6, l2], rate: 1G}\n", "").Replace(network)
	for last, want := range map[int]string{7: "", 8: "table In.rules would have 9 entries, and has room for 8: 9 for entry 1 (each: 0..8)"} {
		sections := fmt.Sprintf("tables:\n- name: In.rules\n  entries:\n  - {each: 0..%d, priority: 1, match: {h.ip.class: $i..$i}, action: drop}\n", last)
		p, err := newPlan(t, topology(t, four), sections, plan.Options{})
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%d entries: %v, want %q", last+1, err, want)
		}
		if err == nil && len(p.Switch("l1").Entries) != last+1 {
			t.Errorf("%d entries are planned", len(p.Switch("l1").Entries))
		}
	}
}
