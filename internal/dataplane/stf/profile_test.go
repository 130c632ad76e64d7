package stf

import (
	"strings"
	"testing"

	"github.com/p4lb/p4lb/internal/p4"
)

// selecting is a program whose table selects a port by the second byte of the
// packet.
const selecting = `#include <v1model.p4>
header h_t { bit<8> dst; bit<8> flow; }
struct H { h_t h; }
struct M { }
parser P(packet_in b, out H hdr, inout M m, inout standard_metadata_t sm) { state start { b.extract(hdr.h); transition accept; } }
control V(inout H hdr, inout M m) { apply { } }
control I(inout H hdr, inout M m, inout standard_metadata_t sm) {
    action via(bit<9> port) { sm.egress_spec = port; }
    action drop() { mark_to_drop(sm); }
    action_selector(HashAlgorithm.identity, 16, 8) paths;
    table routes {
        key = { hdr.h.dst: MATCH; hdr.h.flow: selector; }
        actions = { via; drop; }
        implementation = paths;
    }
    apply { mark_to_drop(sm); routes.apply(); }
}
control E(inout H hdr, inout M m, inout standard_metadata_t sm) { apply { } }
control D(packet_out b, in H hdr) { apply { b.emit(hdr.h); } }
V1Switch(P(), V(), I(), E(), V(), D()) main;
`

// A test fills the tables of a selector: entries with a member and with a
// group, and a default. The hash is the identity, and the member is the hash
// modulo the members of the group.
func TestSelectorTables(t *testing.T) {
	const members = `
act_prof_create_member paths via 1
act_prof_create_member paths I.via 2
act_prof_create_member I.paths drop
act_prof_create_group paths
act_prof_add_member_to_group paths 0 0
act_prof_add_member_to_group paths 1 0
`
	for _, c := range []struct{ match, text, want string }{
		{"exact", members + `
table_indirect_add routes 7 => 1
table_indirect_add_with_group routes 0x08 => 0
packet 3 0700
expect 2 0700
packet 3 0800
expect 1 0800
packet 3 0801
expect 2 0801
packet 3 0900
no_packet
table_indirect_set_default routes 0
packet 3 0900
expect 1 0900
table_indirect_set_default_with_group routes 0
packet 3 0901
expect 2 0901
table_indirect_set_default routes 2
packet 3 0900
no_packet`, ""},
		{"lpm", members + "table_indirect_add routes 0x40/4 => 1\npacket 3 4f00\nexpect 2 4f00\npacket 3 5f00\nno_packet", ""},
		{"ternary", members + "table_indirect_add routes 0x40&&&0xf0 => 0 2\ntable_indirect_add routes 0x40&&&0xff => 1 1\npacket 3 4000\nexpect 2\npacket 3 4100\nexpect 1", ""},
		{"exact", "act_prof_create_member none via 1", `no action profile "none"`},
		{"exact", "act_prof_create_member paths none 1", `no action of I.paths "none"`},
		{"exact", "act_prof_create_member paths via", "action I.via: 0 parameters, expected 1"},
		{"exact", "act_prof_create_member paths via x", `"x" is not a number`},
		{"exact", "act_prof_create_group paths 1", `unexpected "1"`},
		{"exact", members + "act_prof_add_member_to_group paths 9 0", "member"},
		{"exact", members + "table_indirect_add routes => 0", "table I.routes: 0 key fields, expected 1"},
		{"exact", members + "table_indirect_add routes 1 2 => 0", `expected "=>" after 1 key fields, found "2"`},
		{"exact", members + "table_indirect_add routes 1 => x", `member: "x" is not a number`},
		{"exact", members + "table_indirect_add routes 1 => 0 5", `unexpected "5"`},
		{"ternary", members + "table_indirect_add routes 1&&&1 => 0", `priority: "" is not a number`},
		{"exact", members + "table_indirect_add routes 1 => 9", "table I.routes: no such handle"},
	} {
		out, err := p4.CompileText("x.p4", []byte(strings.ReplaceAll(selecting, "MATCH", c.match)), p4.Options{})
		if err != nil {
			t.Fatal(err)
		}
		err = Run(out.Config, c.text)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.text, err, c.want)
		}
	}
}
