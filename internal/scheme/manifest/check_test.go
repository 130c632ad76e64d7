package manifest_test

import (
	"strings"
	"testing"

	"github.com/p4lb/p4lb/internal/p4"
	"github.com/p4lb/p4lb/internal/scheme/manifest"
)

// checked is a program that shares flows out among two paths at most.
const checked = `
#include <core.p4>
#include <v1model.p4>

header ipv4_t { bit<32> src; bit<32> dst; }
struct h_t { ipv4_t ip; }
struct m_t { bit<8> group; bit<1> slot; }

parser P(packet_in pkt, out h_t hdr, inout m_t meta, inout standard_metadata_t std) {
    state start { pkt.extract(hdr.ip); transition accept; }
}
control V(inout h_t hdr, inout m_t meta) { apply { } }
control I(inout h_t hdr, inout m_t meta, inout standard_metadata_t std) {
    register<bit<16>>(64) last;
    action go_on(bit<9> port) { std.egress_spec = port; }
    action spread(bit<8> group) { meta.group = group; }
    action both(bit<9> port_0, bit<9> port_1) { last.write(0, (bit<16>)(port_0 + port_1)); }
    table fib { key = { hdr.ip.dst: lpm; } actions = { go_on; spread; NoAction; } }
    table paths { key = { meta.group: exact; meta.slot: exact; } actions = { go_on; NoAction; } }
    table candidates { key = { meta.group: exact; } actions = { both; NoAction; } }
    table fixed { key = { meta.group: exact; } actions = { go_on; NoAction; } const entries = { 1: go_on(1); } }
    apply { fib.apply(); paths.apply(); candidates.apply(); fixed.apply(); }
}
control E(inout h_t hdr, inout m_t meta, inout standard_metadata_t std) { apply { } }
control D(packet_out pkt, in h_t hdr) { apply { pkt.emit(hdr.ip); } }

V1Switch(P(), V(), I(), E(), V(), D()) main;
`

const ofChecked = `version: 2
scheme: mine
arch: v1model
paths: 2
registers:
- {name: I.last, kind: slot, width: 16, size: 64, valid: 15, initial: [{index: 3, value: 9}]}
tables:
- name: I.fib
  purpose: route
  keys: [{name: hdr.ip.dst, match: lpm, carries: destination}]
  actions: [{name: go_on, params: [{name: port, carries: port}]}, {name: spread, params: [{name: group, carries: group}]}]
- name: I.paths
  purpose: member
  keys: [{name: meta.group, carries: group}, {name: meta.slot, carries: slot}]
  actions: [{name: go_on, params: [{name: port, carries: port}]}]
- name: I.candidates
  purpose: group
  keys: [{name: meta.group, carries: group}]
  actions: [{name: both, params: [{name: port_0, carries: port}, {name: port_1, carries: port, slot: 1}]}]
- name: I.fixed
  purpose: program
`

// TestCheck changes one thing at a time in a manifest that is right.
func TestCheck(t *testing.T) {
	program, err := p4.CompileText("checked.p4", []byte(checked), p4.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ from, to, want string }{
		{"", "", ""},
		{"I.last", "I.lats", `m.yaml:6: registers[0].name: the program has no register "I.lats"; did you mean I.last?`},
		{"size: 64", "size: 128", "m.yaml:6: registers[0].size: is 128: register I.last of the program has 64 cells"},
		{"width: 16", "width: 32", "m.yaml:6: registers[0].width: is 32: the cells of register I.last have 16 bits in the program"},
		{"index: 3", "index: 64", "m.yaml:6: registers[0].initial[0].index: is 64: register I.last has 64 cells"},
		{"value: 9", "value: 65536", "m.yaml:6: registers[0].initial[0].value: 65536 does not fit the 16 bits of register I.last"},
		{"I.fib", "I.fob", `m.yaml:8: tables[0].name: the program has no table "I.fob"; did you mean I.fib?`},
		{"{name: hdr.ip.dst, match: lpm", "{name: hdr.ip.dts, match: lpm", "m.yaml:10: tables[0].keys: field hdr.ip.dst of table I.fib is missing: add it with carries or value"},
		{"match: lpm", "match: exact", "m.yaml:10: tables[0].keys[0].match: is exact: field hdr.ip.dst of table I.fib is matched lpm"},
		{"name: spread", "name: sprade", `m.yaml:11: tables[0].actions[1].name: table I.fib has no action "sprade"; did you mean spread?`},
		{"{name: group, carries: group}]}]", "{name: gruop, carries: group}]}]", `m.yaml:11: tables[0].actions[1].params[0].name: action spread has no parameter "gruop"; did you mean group?`},
		{"paths: 2", "paths: 4", "m.yaml:4: paths: is 4: action both of table I.candidates carries port for 2 paths (tables[2].actions[0])"},
		{"purpose: program", "purpose: port\n  keys: [{name: meta.group, carries: port}]", "m.yaml:21: tables[3].purpose: the entries of table I.fixed are the program's own: want the purpose program"},
		{", {name: port_1, carries: port, slot: 1}", "", "m.yaml:19: tables[2].actions[0].params: parameter port_1 of action both is missing: add it with carries or value"},
	} {
		text := []byte(strings.Replace(ofChecked, test.from, test.to, 1))
		m, err := manifest.Decode("m.yaml", text)
		if err == nil {
			err = manifest.CheckFile("m.yaml", text, m, program.P4Info)
		}
		if got := message(err); got != test.want {
			t.Errorf("%s -> %s:\ngot  %s\nwant %s", test.from, test.to, got, test.want)
		}
	}
}

func message(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
