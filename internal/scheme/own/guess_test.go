package own

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	configv1 "github.com/p4lang/p4runtime/go/p4/config/v1"

	"github.com/p4lb/p4lb/codegen"
	"github.com/p4lb/p4lb/fitting"
	"github.com/p4lb/p4lb/internal/bmv2"
	"github.com/p4lb/p4lb/internal/scheme/manifest"
)

func field(header, name string) *bmv2.Expr {
	return &bmv2.Expr{Type: bmv2.TypeField, Name: header, Field: name}
}

func param(i int) *bmv2.Expr { return &bmv2.Expr{Type: bmv2.TypeRuntimeData, Int: i} }

func constant(hex string) *bmv2.Expr { return &bmv2.Expr{Type: bmv2.TypeHexstr, Hex: hex} }

func array(name string) *bmv2.Expr { return &bmv2.Expr{Type: bmv2.TypeRegisterArray, Name: name} }

func op(op string, left, right *bmv2.Expr) *bmv2.Expr {
	return &bmv2.Expr{Type: bmv2.TypeExpression, Inner: &bmv2.Expr{Type: bmv2.TypeExpression, Op: op, Left: left, Right: right}}
}

func call(op string, args ...*bmv2.Expr) *bmv2.Primitive {
	return &bmv2.Primitive{Op: op, Parameters: args}
}

// Roles follow the assignments of a program: purposes from a value to its sources, kinds
// from a source to the values computed from it. Conditions carry no role.
func TestRolesOfValues(t *testing.T) {
	port := field("standard_metadata", "egress_spec")
	for _, test := range []struct {
		name       string
		primitives []*bmv2.Primitive
		want       map[string]role
	}{
		{"a parameter becomes the port", []*bmv2.Primitive{call("assign", port, param(0))}, map[string]role{"a(0)": toPort, "a(1)": noRole}},
		{
			"through two fields", []*bmv2.Primitive{call("assign", port, field("m", "x")), call("assign", field("m", "x"), field("m", "y")), call("assign", field("m", "y"), param(1))},
			map[string]role{"m.x": toPort, "m.y": toPort, "a(1)": toPort, "a(0)": noRole},
		},
		{"a sum", []*bmv2.Primitive{call("assign", port, op("+", param(0), field("m", "x")))}, map[string]role{"a(0)": toPort, "m.x": toPort}},
		{"a comparison", []*bmv2.Primitive{call("assign", port, op("==", param(0), field("m", "x")))}, map[string]role{"a(0)": noRole, "m.x": noRole}},
		{"the clock is stored", []*bmv2.Primitive{call("assign", field("m", "x"), field("standard_metadata", "ingress_global_timestamp"))}, map[string]role{"m.x": noRole}},
		{
			"a hash from 0 to a parameter", []*bmv2.Primitive{call("modify_field_with_hash_based_offset", field("m", "x"), constant("0x0"), nil, param(0))},
			map[string]role{"m.x": chosen, "a(0)": someOf},
		},
		{
			"a hash from a first parameter", []*bmv2.Primitive{call("modify_field_with_hash_based_offset", field("m", "x"), param(0), nil, param(1))},
			map[string]role{"m.x": member, "a(0)": firstOf, "a(1)": someOf},
		},
		{
			"a hash of constant size", []*bmv2.Primitive{call("modify_field_with_hash_based_offset", field("m", "x"), constant("0x0"), nil, constant("0x400"))},
			map[string]role{"m.x": flowSlot},
		},
		{
			"a random number", []*bmv2.Primitive{call("modify_field_rng_uniform", field("m", "x"), constant("0x0"), param(1))},
			map[string]role{"m.x": chosen, "a(1)": someOf, "a(0)": noRole},
		},
		{
			"a random number from a first parameter to that and another",
			[]*bmv2.Primitive{call("modify_field_rng_uniform", field("m", "x"), param(0), op("+", param(0), param(1)))},
			map[string]role{"m.x": member, "a(0)": firstOf, "a(1)": someOf},
		},
		{
			"the choice is copied", []*bmv2.Primitive{call("modify_field_rng_uniform", field("m", "x"), constant("0x0"), param(1)), call("assign", field("m", "y"), field("m", "x"))},
			map[string]role{"m.y": chosen},
		},
		{"a first field into nothing", []*bmv2.Primitive{call("modify_field_rng_uniform", constant("0x0"), param(0), param(1))}, map[string]role{"a(0)": noRole, "a(1)": noRole}},
		{"arguments are missing", []*bmv2.Primitive{call("assign"), call("register_read"), call("register_write"), call("modify_field_rng_uniform")}, nil},
		{
			"the MAC addresses", []*bmv2.Primitive{call("assign", field("eth", "d"), param(0)), call("assign", field("eth", "s"), param(1))},
			map[string]role{"eth.d": toMAC, "eth.s": fromMAC, "a(0)": toMAC, "a(1)": fromMAC},
		},
		{"the IPv4 address", []*bmv2.Primitive{call("assign", field("ip", "dst"), param(0))}, map[string]role{"ip.dst": toAddress, "ip.src": noRole, "a(0)": toAddress}},
		{
			"not metadata, IPv6 or another header", nil,
			map[string]role{"m.d": noRole, "m.s": noRole, "ip6.dst": noRole, "pair.a": noRole, "four.c": noRole},
		},
	} {
		c := &bmv2.Config{
			HeaderTypes: []*bmv2.HeaderType{
				{Name: "eth_t", Fields: []bmv2.HeaderField{{Name: "d", Width: 48}, {Name: "s", Width: 48}, {Name: "t", Width: 16}}},
				{Name: "ip_t", Fields: []bmv2.HeaderField{{Name: "a", Width: 32}, {Name: "b", Width: 32}, {Name: "c", Width: 32}, {Name: "src", Width: 32}, {Name: "dst", Width: 32}}},
				{Name: "ip6_t", Fields: []bmv2.HeaderField{{Name: "a", Width: 64}, {Name: "src", Width: 128}, {Name: "dst", Width: 128}}},
				{Name: "pair_t", Fields: []bmv2.HeaderField{{Name: "a", Width: 48}, {Name: "b", Width: 48}}},
				{Name: "four_t", Fields: []bmv2.HeaderField{{Name: "a", Width: 64}, {Name: "b", Width: 32}, {Name: "c", Width: 32}, {Name: "d", Width: 32}}},
			},
			Headers: []*bmv2.Header{
				{Name: "eth", HeaderType: "eth_t"}, {Name: "m", HeaderType: "eth_t", Metadata: true}, {Name: "ip", HeaderType: "ip_t"}, {Name: "ip6", HeaderType: "ip6_t"},
				{Name: "pair", HeaderType: "pair_t"}, {Name: "four", HeaderType: "four_t"}, {Name: "lost", HeaderType: "none"},
			},
			Actions: []*bmv2.Action{{Name: "a", RuntimeData: make([]bmv2.RuntimeParam, 2), Primitives: test.primitives}},
		}
		f := flowOf(c)
		if test.name == "the clock is stored" {
			test.want["m.x"] = clockTime
		}
		for value, want := range test.want {
			if f.roles[value] != want {
				t.Errorf("%s: %s has role %d, want %d", test.name, value, f.roles[value], want)
			}
		}
	}
}

// A register's index and content follow from the fields that it is used with. Sessions of
// clones are listed once.
func TestRegistersOfProgram(t *testing.T) {
	clock, depth := field("standard_metadata", "ingress_global_timestamp"), field("standard_metadata", "deq_qdepth")
	c := &bmv2.Config{Actions: []*bmv2.Action{{Name: "a", RuntimeData: make([]bmv2.RuntimeParam, 1), Primitives: []*bmv2.Primitive{
		call("modify_field_with_hash_based_offset", field("m", "slot"), constant("0x0"), nil, constant("0x10")),
		call("register_write", array("times"), field("m", "slot"), clock),
		call("register_write", array("depths"), field("standard_metadata", "egress_port"), depth),
		call("register_read", field("standard_metadata", "egress_spec"), array("ports"), field("standard_metadata", "ingress_port")),
		call("register_write", array("other"), param(0), constant("0x1")),
		call("assign", field("standard_metadata", "egress_spec"), field("m", "out")),
		call("register_write", array("remembered"), field("m", "slot"), field("m", "out")),
		call("assign", field("m", "age"), op("-", clock, constant("0x1"))),
		call("register_write", array("ages"), param(0), field("m", "age")),
		call("clone_ingress_pkt_to_egress", constant("0x5")), call("clone_egress_pkt_to_egress", constant("0xff")), call("clone_ingress_pkt_to_egress", constant("0x5")),
		call("clone_ingress_pkt_to_egress", field("m", "slot")), call("clone_ingress_pkt_to_egress"),
	}}}}
	g := &guess{flow: flowOf(c)}
	for name, want := range map[string]struct {
		r   manifest.Register
		why string
	}{
		"times": {manifest.Register{Index: manifest.ByFlow, Content: manifest.Content{Kind: manifest.Moment, Unit: manifest.Microseconds}}, "its index is a hash, it stores the clock"},
		"depths": {
			manifest.Register{Index: manifest.ByPort, Content: manifest.Content{Kind: manifest.QueueLength, Unit: manifest.Packets}},
			"its index is the egress port, it stores a queue length",
		},
		"ports":      {manifest.Register{Index: manifest.ByPort, Content: manifest.Content{Kind: manifest.Port}}, "its index is the ingress port, it becomes the egress port"},
		"remembered": {manifest.Register{Index: manifest.ByFlow, Content: manifest.Content{Kind: manifest.Port}}, "its index is a hash, it becomes the egress port"},
		"other":      {manifest.Register{Content: manifest.Content{Kind: manifest.Opaque}}, ""},
		"ages":       {manifest.Register{Content: manifest.Content{Kind: manifest.Opaque}}, ""}, // computed from the clock, not a time
	} {
		r, why := g.register(name)
		if r.Name != name || r.Index != want.r.Index || r.Kind != want.r.Kind || r.Unit != want.r.Unit || why != want.why {
			t.Errorf("%s: %+v because %q, want %+v because %q", name, r, why, want.r, want.why)
		}
	}
	if got := g.cloneSessions(); !slices.Equal(got, []int{5, 255}) {
		t.Errorf("clone sessions %v", got)
	}
	if got := g.assigned("a(0)"); len(got) != 0 {
		t.Errorf("assigned to %v", got)
	}
	if g.recirculates() {
		t.Error("recirculates")
	}
	c.Actions = append(c.Actions, &bmv2.Action{Name: "b", Primitives: []*bmv2.Primitive{call("recirculate")}})
	if !g.recirculates() {
		t.Error("does not recirculate")
	}
}

// Complete adds the missing parts and keeps those that the manifest describes, in the
// order of the program.
func TestCompleteKeeps(t *testing.T) {
	name := func(id uint32, text string) *configv1.Preamble { return &configv1.Preamble{Id: id, Name: text} }
	bits := &configv1.P4DataTypeSpec{TypeSpec: &configv1.P4DataTypeSpec_Bitstring{Bitstring: &configv1.P4BitstringLikeTypeSpec{
		TypeSpec: &configv1.P4BitstringLikeTypeSpec_Bit{Bit: &configv1.P4BitTypeSpec{Bitwidth: 48}},
	}}}
	match := func(name string, m configv1.MatchField_MatchType) *configv1.MatchField {
		return &configv1.MatchField{Name: name, Match: &configv1.MatchField_MatchType_{MatchType: m}}
	}
	info := &configv1.P4Info{
		Registers: []*configv1.Register{{Preamble: name(1, "I.new"), TypeSpec: bits, Size: 16}, {Preamble: name(2, "I.known"), TypeSpec: bits, Size: 8}, {Preamble: name(3, "I.sized"), TypeSpec: bits, Size: 4}},
		Counters:  []*configv1.Counter{{Preamble: name(4, "I.count"), Size: 7}, {Preamble: name(5, "I.counted"), Size: 9}},
		Actions: []*configv1.Action{
			{Preamble: name(6, "I.go"), Params: []*configv1.Action_Param{{Name: "port"}, {Name: "mac"}}}, {Preamble: name(7, "NoAction")},
		},
		Tables: []*configv1.Table{
			{Preamble: name(8, "I.fixed"), IsConstTable: true}, {Preamble: name(9, "I.free"), ActionRefs: []*configv1.ActionRef{{Id: 7}}},
			{
				Preamble: name(10, "I.routes"), MatchFields: []*configv1.MatchField{match("a", configv1.MatchField_LPM), match("b", configv1.MatchField_TERNARY)},
				ActionRefs: []*configv1.ActionRef{{Id: 7}, {Id: 6}},
			},
		},
	}
	m := manifest.Manifest{
		Registers: []manifest.Register{
			{Name: "I.known", Content: manifest.Content{Kind: manifest.Count}, Size: 3, Width: 5}, {Name: "I.sized", Content: manifest.Content{Kind: manifest.Port}},
		},
		Counters: []manifest.Counter{{Name: "I.counted", Size: 1}},
		Tables: []manifest.Table{{
			Name: "I.routes", Purpose: manifest.Route, Keys: []manifest.Key{{Name: "b", Value: "3"}},
			Actions: []manifest.Action{{Name: "go", Params: []manifest.Param{{Name: "mac", Carries: manifest.NextMAC}}}},
		}},
	}
	before := m
	given := m
	Complete(&m, info)
	if len(given.Tables[0].Keys) != 1 || len(given.Tables[0].Actions) != 1 || given.Registers[1].Size != 0 {
		t.Errorf("another copy of the manifest became %+v, %+v", given.Tables, given.Registers)
	}
	registers := map[string]manifest.Register{
		"I.new":   {Name: "I.new", Content: manifest.Content{Kind: manifest.Opaque}, Size: 16, Width: 48},
		"I.known": {Name: "I.known", Content: manifest.Content{Kind: manifest.Count}, Size: 3, Width: 5},
		"I.sized": {Name: "I.sized", Content: manifest.Content{Kind: manifest.Port}, Size: 4, Width: 48},
	}
	if len(m.Registers) != len(registers) {
		t.Errorf("registers %+v", m.Registers)
	}
	for _, r := range m.Registers {
		if w := registers[r.Name]; r.Kind != w.Kind || r.Size != w.Size || r.Width != w.Width {
			t.Errorf("%+v, want %+v", r, w)
		}
	}
	counters := map[string]int{}
	for _, c := range m.Counters {
		counters[c.Name] = c.Size
	}
	if !maps.Equal(counters, map[string]int{"I.count": 7, "I.counted": 1}) {
		t.Errorf("counters %v", counters)
	}
	tables := map[string]manifest.Table{}
	for _, table := range m.Tables {
		tables[table.Name] = table
	}
	if len(tables) != 3 || tables["I.fixed"].Purpose != manifest.Program || tables["I.free"].Purpose != manifest.None || tables["I.routes"].Purpose != manifest.Route {
		t.Errorf("tables %+v", tables)
	}
	r := tables["I.routes"]
	if len(r.Keys) != 2 || r.Keys[0].Name != "a" || r.Keys[0].Match != "lpm" || r.Keys[1].Name != "b" || r.Keys[1].Match != "ternary" || r.Keys[1].Value != "3" || r.Keys[0].Value != "" {
		t.Errorf("keys %+v", r.Keys)
	}
	if len(r.Actions) != 2 || r.Actions[0].Name != "NoAction" || r.Actions[1].Name != "go" || len(r.Actions[1].Params) != 2 ||
		r.Actions[1].Params[0] != (manifest.Param{Name: "port"}) || r.Actions[1].Params[1] != (manifest.Param{Name: "mac", Carries: manifest.NextMAC}) {
		t.Errorf("actions %+v", r.Actions)
	}
	if len(before.Registers) != 2 || before.Registers[1].Size != 0 || len(before.Tables[0].Keys) != 1 {
		t.Errorf("the manifest that was passed changed: %+v", before)
	}
}

const guessed1 = `#include <core.p4>
#include <v1model.p4>
header ethernet_t { bit<48> dst; bit<48> src; bit<16> type; }
header ipv4_t { bit<32> a; bit<32> b; bit<32> c; bit<32> src; bit<32> dst; }
@controller_header("packet_in") header in_t { bit<16> port; }
struct H { in_t cpu; ethernet_t ethernet; ipv4_t ipv4; }
struct M { bit<16> group; bit<16> slot; bit<8> class; }
parser P(packet_in pkt, out H hdr, inout M meta, inout standard_metadata_t std) {
    state start { pkt.extract(hdr.ethernet); pkt.extract(hdr.ipv4); transition accept; }
}
control V(inout H hdr, inout M meta) { apply {} }
control I(inout H hdr, inout M meta, inout standard_metadata_t std) {
    register<bit<48>>(64) seen;
    register<bit<8>>(64) plain;
    action drop() { mark_to_drop(std); }
    action direct(bit<9> port, bit<8> class) { std.egress_spec = port; meta.class = class; }
    action group(bit<16> id, bit<16> count) {
        meta.group = id;
        hash(meta.slot, HashAlgorithm.crc16, 16w0, { hdr.ipv4.src }, count);
    }
    action path(bit<9> port, bit<48> mac) { std.egress_spec = port; hdr.ethernet.dst = mac; }
    action rewrite(bit<48> mac) { hdr.ethernet.src = mac; }
    action mark(bit<8> class) { meta.class = class; }
    action again() { clone_preserving_field_list(CloneType.I2E, 7, 0); }
    table routes {
        key = { hdr.ipv4.dst: lpm; meta.class: ternary; }
        actions = { drop; direct; group; }
        default_action = drop();
    }
    table paths {
        key = { meta.group: exact; meta.slot: exact; }
        actions = { path; drop; }
    }
    table classes { key = { hdr.ethernet.type: exact; } actions = { mark; @defaultonly NoAction; } }
    table copies { key = { hdr.ethernet.type: exact; } actions = { again; } const entries = { 5: again(); } }
    table alone { actions = { mark; } }
    apply {
        seen.write(0, std.ingress_global_timestamp);
        plain.write((bit<32>) std.ingress_port, 1);
        routes.apply(); paths.apply(); classes.apply(); copies.apply(); alone.apply();
    }
}
control E(inout H hdr, inout M meta, inout standard_metadata_t std) {
    action own(bit<48> mac) { hdr.ethernet.src = mac; }
    table ports { key = { std.egress_port: exact; } actions = { own; } }
    apply { ports.apply(); if (std.instance_type == 1) { recirculate_preserving_field_list(0); } }
}
control D(packet_out pkt, in H hdr) { apply { pkt.emit(hdr.ethernet); pkt.emit(hdr.ipv4); } }
V1Switch(P(), V(), I(), E(), V(), D()) main;
`

// The whole guess for a program with each kind of table, registers, clones that
// recirculate and a controller. The text follows from the data flow above.
func TestInitText(t *testing.T) {
	file := filepath.Join(t.TempDir(), "1st.p4")
	write(t, file, guessed1)
	text, err := Init(InitRequest{Program: file, Shown: "1st.p4", Includes: []string{"inc dir"}, Defines: []string{"A", "B=2"}})
	if err != nil {
		t.Fatal(err)
	}
	const want = `# The meaning of 1st.p4 for p4lb. Lines marked as a guess were derived from the program:
# check them and remove the mark. docs/manifest.md explains the keys.
version: 2
scheme: "1st"
arch: v1model
includes: ["inc dir"]
defines: {A: "1", B: "2"}
paths: 16  # guess: the size of the largest group in a table
cpu_port: 255  # guess: the program exchanges packets with a controller
registers:
- {name: I.seen, kind: moment, unit: us}  # guess: it stores the clock
- {name: I.plain, index: port, kind: opaque}  # guess: its index is the ingress port
tables:
- name: I.routes
  purpose: route  # guess: its key is the destination, its actions set the next hop
  keys:
  - {name: hdr.ipv4.dst, carries: destination}  # guess: is the destination address
  - {name: meta.class, carries: group}  # guess: is set by direct
  actions:
  - name: direct
    params:
    - {name: port, carries: port}  # guess: becomes the egress port
    - {name: class, value: "0"}  # guess: unknown
  - name: group
    params:
    - {name: id, carries: group}  # guess: the key of another table
    - {name: count, carries: paths}  # guess: the number of choices
- name: I.paths
  purpose: member  # guess: its key is the selected path, its actions set the next hop
`
	if !strings.HasPrefix(string(text), want) {
		t.Errorf("got\n%s\nwant\n%s", text, want)
	}
	const end = `- name: I.classes
  purpose: none  # no guess: the table stays empty until you give entries
  # entries:
  # - {match: {hdr.ethernet.type: …}, action: mark, args: {class: …}}
- name: I.copies
  purpose: program  # the program has its entries
- name: I.alone
  purpose: none  # no guess: the table stays empty until you give entries
  # entries:
  # - {default: true, action: mark, args: {class: …}}
- name: E.ports
  purpose: port  # guess: its key is a port, its actions set properties of the port
  keys:
  - {name: std.egress_port, carries: port}  # guess: is the egress port
  actions:
  - name: own
    params:
    - {name: mac, carries: own-mac}  # guess: becomes the source MAC
clone_sessions:
- {session: 7, port: 500}  # guess: copies recirculate, so use a port without a link
virtual_ports:
- {port: 500, kind: recirculation}
`
	if !strings.HasSuffix(string(text), end) {
		t.Errorf("got\n%s\nwant the end\n%s", text, end)
	}
}

// A word is quoted in YAML if it could be read as another type than a text.
func TestQuoted(t *testing.T) {
	for text, want := range map[string]string{
		"a": "a", "Z_9.$x": "Z_9.$x", "": `""`, "9a": `"9a"`, "0": `"0"`, ".a": `".a"`, "a b": `"a b"`, "a:b": `"a:b"`, "z{": `"z{"`, "a/b": `"a/b"`,
		"[x]": `"[x]"`, "@a": `"@a"`, "`": "\"`\"", "é": `"é"`,
	} {
		if got := quoted(text); got != want {
			t.Errorf("%q is written as %s, want %s", text, got, want)
		}
	}
}

// A program that is stored elsewhere keeps its origin: the generator, the command with its
// flags, and the licence in the program. Settings replace macros.
func TestProvenance(t *testing.T) {
	dir := folder(t)
	program := filepath.Join(dir, "mine.p4")
	write(t, program, "/* SPDX-License-Identifier: MIT */\n"+strings.TrimPrefix(read(t, program), "\n"))
	s := open(t, dir, ".")
	p, err := s.Build(codegen.Params{Provenance: &codegen.Provenance{Version: "1.2", Flags: []string{"--role", "leaf"}}})
	if err != nil {
		t.Fatal(err)
	}
	if m := p.Manifest.Provenance; m == nil || m.Generator != "p4lb 1.2" || m.Command != "p4lb gen --scheme mine --role leaf" || m.Licence != "MIT" {
		t.Errorf("%+v", p.Manifest.Provenance)
	}
	plain, err := s.Build(codegen.Params{})
	if err != nil || plain == p || plain.Manifest.Provenance != nil {
		t.Errorf("without origin: %+v, %v", plain.Manifest.Provenance, err)
	}
	if plain.Manifest.Program != "" || plain.Manifest.Includes != nil || plain.Manifest.Defines != nil {
		t.Errorf("the manifest of the compiled program names sources: %+v", plain.Manifest)
	}
	for _, test := range []struct {
		p    codegen.Params
		want string
	}{
		{codegen.Params{Arch: "tna"}, ". is a program for v1model, not for tna"},
		{codegen.Params{Arch: "v1model", IPv6: true}, ". is a user program: it forwards IPv6 if its own tables do: leave out ipv6"},
		{codegen.Params{Arch: "v1model", Coeffs: &fitting.Poly{}}, ". is a user program: only generated schemes use a fitted polynomial"},
	} {
		if _, err := s.Build(test.p); err == nil || err.Error() != test.want {
			t.Errorf("%+v: %v, want %s", test.p, err, test.want)
		}
	}
}

// Packet tests belong to the folder; with several programs, to the one whose name they
// begin with. Include folders are relative to the manifest.
func TestFiles(t *testing.T) {
	dir := folder(t)
	two := func(name, role string) {
		write(t, filepath.Join(dir, name+".p4"), read(t, filepath.Join(dir, "mine.p4")))
		write(t, filepath.Join(dir, name+".manifest.yaml"), "{version: 2, scheme: x, arch: v1model, role: "+role+", includes: [inc, /abs]}")
		write(t, filepath.Join(dir, name+"-1.stf"), "")
	}
	two("leaf", "leaf")
	two("spine", "spine")
	for _, name := range []string{"mine.p4", "mine.manifest.yaml", "mine.stf"} {
		if err := os.Rename(filepath.Join(dir, name), filepath.Join(dir, name+".old")); err != nil {
			t.Fatal(err)
		}
	}
	write(t, filepath.Join(dir, "other.stf"), "")
	s := open(t, dir, ".")
	tests, err := s.Tests(dir)
	if err != nil || len(tests) != 2 {
		t.Fatalf("%v, %v", tests, err)
	}
	for i, role := range []string{"leaf", "spine"} {
		if tests[i].Role != role || !slices.Equal(tests[i].Files, []string{filepath.Join(dir, role+"-1.stf")}) {
			t.Errorf("%+v", tests[i])
		}
	}
	want := []string{dir, filepath.Join(dir, "inc"), "/abs", dir, filepath.Join(dir, "inc"), "/abs"}
	if got := s.Folders(); !slices.Equal(got, want) {
		t.Errorf("folders %q, want %q", got, want)
	}
	for file, want := range map[string]bool{"leaf.p4": true, "leaf.manifest.yaml": true, "leaf-1.stf": false, "mine.p4": false, "none.manifest.yaml": false} {
		if got := HasManifest(filepath.Join(dir, file)); got != want {
			t.Errorf("%s has a manifest: %v, want %v", file, got, want)
		}
	}
	for name, want := range map[string]bool{"a": false, "a/b": true, ".": true, "..": true, "x.p4": true, "x.yml": true, "x.json": true, "x.yaml": true, "x.txt": false, "ecmp": false} {
		if got := IsPath(name); got != want {
			t.Errorf("%s is a path: %v, want %v", name, got, want)
		}
	}
	// A folder that is named like a scheme of the catalogue gets a hint, unless there is such a scheme.
	if err := os.Mkdir(filepath.Join(dir, "sub"), 0o777); err != nil {
		t.Fatal(err)
	}
	find := Source(dir)
	if s, err := find("sub"); s != nil || err != nil {
		t.Errorf("an empty folder: %v, %v", s, err)
	}
	write(t, filepath.Join(dir, "sub", "manifest.yaml"), "")
	if _, err := find("sub"); err == nil || err.Error() != `there is no scheme "sub", but there is a folder` {
		t.Errorf("a folder without a slash: %v", err)
	} else if h, ok := err.(interface{ Hint() string }); !ok || h.Hint() != "./sub is the scheme in the folder" {
		t.Errorf("no hint: %v", err)
	}
}
