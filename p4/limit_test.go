package p4_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/p4lb/p4lb/p4"
)

// outline is a program for v1model with what a test puts into its places.
func outline(top, header, state, locals, apply string) string {
	return `#include <core.p4>
#include <v1model.p4>
header h_t { bit<32> a; bit<32> b; ` + header + ` }
struct H { h_t h; h_t[16] s; }
struct M { bit<32> m; }
` + top + `
parser P(packet_in pkt, out H hdr, inout M meta, inout standard_metadata_t std) {
    state start { ` + state + ` }
}
control I(inout H hdr, inout M meta, inout standard_metadata_t std) {
    ` + locals + `
    apply { ` + apply + ` }
}
control E(inout H hdr, inout M meta, inout standard_metadata_t std) { apply {} }
control V(inout H hdr, inout M meta) { apply {} }
control U(inout H hdr, inout M meta) { apply {} }
control D(packet_out pkt, in H hdr) { apply { pkt.emit(hdr.h); } }
V1Switch(P(), V(), I(), E(), U(), D()) main;
`
}

// each joins f(0) … f(n-1).
func each(n int, f string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, strings.ReplaceAll(f, "#", "%[1]d"), i)
	}
	return b.String()
}

// TestGrowth compiles programs whose text, tree or document has quadratic and
// exponential ways to be handled. Those must stay within a size, or be refused
// at their place; a step that goes back to such a way makes the test run for
// minutes.
func TestGrowth(t *testing.T) {
	const accept = "transition accept;"
	doubling := func(first, next string, n int) string { // each one calls the one before twice
		s := first
		for i := 1; i < n; i++ {
			s += strings.NewReplacer("@", fmt.Sprint(i-1), "#", fmt.Sprint(i)).Replace(next)
		}
		return s
	}
	functions := func(n int) string {
		return doubling("bit<32> f0(in bit<32> x) { return x + 1; }\n", "bit<32> f#(in bit<32> x) { return f@(f@(x)); }\n", n)
	}
	for _, c := range []struct {
		name, text string
		size       int    // of the JSON, in KB; 0 where it is refused
		want       string // of the error
	}{
		{"3,000 additions", outline("", "", accept, "", "meta.m = "+strings.Repeat("hdr.h.a + ", 3000)+"1;"), 4000, ""},
		{"9,000 comparisons", outline("", "", accept, "", "if ("+strings.Repeat("hdr.h.a == 1 && ", 9000)+"true) meta.m = 1;"), 9000, ""},
		{"negated 990 times", outline("", "", accept, "", "meta.m = "+strings.Repeat("~", 990)+"hdr.h.a;"), 500, ""},
		{"a stack by an index", outline("struct T { bit<32>[20000] v; }", "", accept, "T t;", "meta.m = t.v[meta.m] + t.v[hdr.h.a];"), 99999, ""},
		{"a hash over a long list", outline("", "", accept, "", "hash(meta.m, HashAlgorithm.crc32, 32w0, {"+strings.Repeat("hdr.h.a, ", 20000)+"hdr.h.b}, 32w100);"), 30000, ""},
		{"100,000 annotations", outline(strings.Repeat("@a ", 100000)+"const bit<8> x = 1;", "", accept, "", ""), 20, ""},
		{"an enum of 100,000", outline("enum L {"+each(100000, "e#,\n")+"e}", "", accept, "", ""), 4000, ""},
		{"60,000 fields", outline("", each(60000, "bit<8> f#;\n"), accept, "", "hdr.h.f59999 = 1;"), 99999, "more than the 65536 parts"},
		{"3,000 fields", outline("", each(3000, "bit<8> f#;\n"), accept, "", "hdr.h.f2999 = 1; hdr.s[0] = hdr.h;"), 2000, ""},
		{"20,000 entries", outline("", "", accept, "table t { key = { hdr.h.a: exact; } actions = { NoAction; } const entries = {"+each(20000, "#: NoAction();\n")+"} }", "t.apply();"), 12000, ""},
		{"10,000 tables", outline("", "", accept, each(10000, "table t# { key = { hdr.h.a: exact; } actions = { NoAction; } }\n"), each(10000, "t#.apply();\n")), 12000, ""},
		{"a switch of 10,000 labels", outline("", "", accept, "", "switch (meta.m) {"+each(10000, "#: { meta.m = #; }\n")+"}"), 25000, ""},
		{"14 functions that call twice", outline(functions(14), "", accept, "", "meta.m = f13(meta.m);"), 9000, ""},
		{"60 functions that call twice", outline(functions(60), "", accept, "", "meta.m = f59(meta.m);"), 0, "more than 8388608 steps to lower"},
		{"60 actions that call twice", outline("", "", accept, doubling("action a0() { meta.m = meta.m + 1; }\n", "action a#() { a@(); a@(); }\n", 60), "a59();"), 0, "more than 8388608 steps to lower"},
		{"60 parsers that apply twice", outline(doubling("parser p0(packet_in k, out h_t h) { state start { k.extract(h); transition accept; } }\n",
			"parser p#(packet_in k, out h_t h) { p@() a; p@() b; state start { a.apply(k, h); b.apply(k, h); transition accept; } }\n", 60), "", "p59.apply(pkt, hdr.h); transition accept;", "", ""), 0, "more than 8388608 steps to lower"},
		{"an action's own argument doubled", outline(doubling("bit<32> g0(in bit<32> x) { return x + x; }\n", "bit<32> g#(in bit<32> x) { return g@(x) + g@(x); }\n", 20), "", accept,
			"action a(bit<32> p) { meta.m = g19(p); } table t { key = { hdr.h.a: exact; } actions = { a; } }", "t.apply();"), 0, "operators once its calls are inlined"},
		{"conditions in conditions", outline("", "", accept, "", "bool x0 = meta.m == 1;"+doubling("", "bool x# = x@ == (meta.m == #) ? x@ : !x@;", 40)+"if (x39) meta.m = 2;"), 400, ""},
		{"ranges of four keys", outline("", "", "pkt.extract(hdr.h); transition select(hdr.h.a, hdr.h.b, hdr.h.a, hdr.h.b) { (1..4294967294, 1..4294967294, 1..4294967294, 1..4294967294): accept; default: accept; }", "", ""), 0, "more than 65536 values with masks"},
		{"a stack of none", outline("struct S { h_t[0] s; }", "", accept, "S s;", "meta.m = s.s[0].a;"), 0, "has no elements"},
		{"a field of no bits", outline("struct S { bit<0> s; }", "", accept, "S s;", "meta.m = 1;"), 0, "s.s has no bits"},
		{"an entry twice", outline("", "", accept, "table t { key = { hdr.h.a: exact; } actions = { NoAction; } const entries = { 1: NoAction(); 1: NoAction(); } }", "t.apply();"), 0, "an entry with the same key is there already"},
		{"50 comparisons of large unions", outline("header_union u_t { "+doubling("", "h_t x#; ", 3001)+"}", "", accept, "u_t u; u_t v;", strings.Repeat("if (u == v) { meta.m = 1; }", 50)), 0, "more than 8388608 steps to lower"},
		{"3,000,000 tokens", strings.Repeat("; ", 3000000), 0, "more than 2097152 tokens"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := p4.CompileText("x.p4", []byte(c.text), p4.Options{})
			switch {
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "x.p4:")):
				t.Errorf("error %.300v, want one of x.p4 with %q", err, c.want)
			case c.want == "" && err != nil:
				t.Errorf("error %.300v", err)
			case c.want == "":
				if n := len(p.JSON()) >> 10; n > c.size {
					t.Errorf("the JSON has %d KB, more than %d", n, c.size)
				}
			}
		})
	}
}
