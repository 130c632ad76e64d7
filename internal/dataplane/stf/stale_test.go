package stf

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/p4lb/p4lb/internal/dataplane"
	"github.com/p4lb/p4lb/internal/p4"
)

// wideActions is a program whose table t calls the action x with p = 5 and q =
// 7 for h.a = 0x400000. A test replaces ACTION, the body of x. Machine code
// leaves conditions on w, which has 128 bits, to Go.
const wideActions = `#include <v1model.p4>
header h_t { bit<64> a; bit<64> b; bit<64> c; bit<128> w; }
struct headers_t { h_t h; }
struct meta_t { bit<128> v; }
parser P(packet_in b, out headers_t hdr, inout meta_t m, inout standard_metadata_t sm) {
    state start { b.extract(hdr.h); transition accept; }
}
control I(inout headers_t hdr, inout meta_t m, inout standard_metadata_t sm) {
    action x(bit<64> p, bit<64> q) { ACTION }
    action y(bit<64> p) { hdr.h.c = hdr.h.c + p; }
    table t { key = { hdr.h.a: exact; } actions = { x; } const entries = { 0x400000: x(5, 7); } }
    table u { key = { hdr.h.b: exact; } actions = { y; } const entries = { 5: y(9); 12: y(11); } }
    apply { sm.egress_spec = 1; CONTROL }
}
control V(inout headers_t h, inout meta_t m) { apply {} }
control X(inout headers_t h, inout meta_t m, inout standard_metadata_t sm) { apply {} }
control D(packet_out b, in headers_t hdr) { apply { b.emit(hdr.h); } }
V1Switch(P(), V(), I(), X(), V(), D()) main;
`

// An action reads its own arguments after Go has decided or done something: in
// both branches of a condition, after their join, in nested conditions, after
// several conditions, and after a table. A register holds the address of the
// arguments, and Go changes it. Without a reload the code would read at an
// address from the packet (h.a). The sums are worked out by hand.
func TestArgumentsAfterGo(t *testing.T) {
	for _, c := range []struct {
		name, action, control string
		w                     string // of 128 bits
		b, c                  uint64 // afterwards; both begin at 0
	}{
		{"then", "if (hdr.h.w == 1) { hdr.h.b = p; } else { hdr.h.c = q; }", "", "1", 5, 0},
		{"else", "if (hdr.h.w == 1) { hdr.h.b = p; } else { hdr.h.c = q; }", "", "2", 0, 7},
		{"join after then", "if (hdr.h.w == 1) { hdr.h.b = 1; } hdr.h.c = p + q;", "", "1", 1, 12},
		{"join after else", "if (hdr.h.w == 1) { hdr.h.b = 1; } hdr.h.c = p + q;", "", "2", 0, 12},
		{"nested, outer false", nestedWide, "", "0", 7, 12},
		{"nested, inner false", nestedWide, "", "1", 5, 12},
		{"nested, both true", nestedWide, "", "3", 12, 12},
		{"in a row, all false", "if (hdr.h.w > 9) { hdr.h.b = 1; } if (hdr.h.w > 8) { hdr.h.b = 2; } if (hdr.h.w > 7) { hdr.h.b = p; } else { hdr.h.c = q; }", "", "7", 0, 7},
		{"a step in Go", "m.v = hdr.h.w * 3; hdr.h.b = p;", "", "2", 5, 0},
		{"a step in Go in a branch", "if (hdr.h.w == 2) { m.v = hdr.h.w * 3; } else { hdr.h.b = q; } hdr.h.c = p;", "", "2", 0, 5},
		{"a choice", "hdr.h.b = (hdr.h.w == 4 ? p : q);", "", "5", 7, 0},
		{"exit", "if (hdr.h.w == 4) { exit; } hdr.h.b = p;", "", "5", 5, 0},
		{"loop", "for (bit<128> i = 0; i < hdr.h.w; i = i + 1) { hdr.h.b = hdr.h.b + p; } hdr.h.c = q;", "", "3", 15, 7},
		{"behind a table", "if (hdr.h.w == 1) { hdr.h.b = 1; } else { hdr.h.b = p; }", "t.apply(); u.apply();", "2", 5, 9},
		{"both results of a table", "if (hdr.h.w == 1) { hdr.h.b = p + q; } else { hdr.h.b = p; }", "if (t.apply().hit) { u.apply(); } else { hdr.h.c = 1; }", "1", 12, 11},
		{"the action that ran", "if (hdr.h.w == 1) { hdr.h.b = q; } else { hdr.h.b = p; }", "switch (t.apply().action_run) { x: { u.apply(); } default: { hdr.h.c = 1; } }", "2", 5, 9},
	} {
		t.Run(c.name, func(t *testing.T) {
			control := c.control
			if control == "" {
				control = "t.apply();"
			}
			text := strings.NewReplacer("ACTION", c.action, "CONTROL", control).Replace(wideActions)
			out, err := p4.Compile(fstest.MapFS{"x.p4": {Data: []byte(text)}}, "x.p4", p4.Options{})
			if err != nil {
				t.Fatal(err)
			}
			w := strings.Repeat("0", 32-len(c.w)) + c.w
			script, err := Parse("stf", fmt.Sprintf("packet 2 %016x %016x %016x %s\nexpect 1 %016x %016x %016x %s$\n",
				0x400000, 0, 0, w, 0x400000, c.b, c.c, w))
			if err != nil {
				t.Fatal(err)
			}
			for _, closures := range []bool{false, true} {
				o := script.Options(out.Config)
				o.Closures = closures
				sw, err := dataplane.New(out.Config, o)
				if err != nil {
					t.Fatal(err)
				}
				if err := script.Run(sw); err != nil {
					t.Errorf("closures %v: %v", closures, err)
				}
			}
		})
	}
}

const nestedWide = `if (hdr.h.w > 0) {
	if (hdr.h.w > 2) { hdr.h.b = p + q; } else { hdr.h.b = p; }
} else { hdr.h.b = q; }
hdr.h.c = q + p;`
