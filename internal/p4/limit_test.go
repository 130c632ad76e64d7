package p4_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/p4lb/p4lb/internal/p4"
)

// outline returns a program for v1model with the given texts in its places.
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

// TestGrowth compiles programs that naive compilers handle in quadratic or
// exponential time or space. Each must stay within a size, or be refused at its
// position. A change that makes a step quadratic again makes the test run for
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
	united := func(n int) string {
		text := outline("", "", accept, "", each(n, "hdr.u.x#.setValid();\n"))
		return strings.Replace(text, "struct H {", "header_union u_t {"+each(n, "h_t x#;\n")+"} struct H { u_t u; ", 1)
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
		{"ranges of four keys", outline("", "", "pkt.extract(hdr.h); transition select(hdr.h.a, hdr.h.b, hdr.h.a, hdr.h.b) { (1..4294967294, 1..4294967294, 1..4294967294, 1..4294967294): accept; default: accept; }", "", ""), 0, "more than 65536 values with masks (docs/limits.md)"},
		{"a stack of none", outline("struct S { h_t[0] s; }", "", accept, "S s;", "meta.m = s.s[0].a;"), 0, "has no elements"},
		{"a field of no bits", outline("struct S { bit<0> s; }", "", accept, "S s;", "meta.m = 1; s.s = 0;"), 20, ""},
		{"an entry twice", outline("", "", accept, "table t { key = { hdr.h.a: exact; } actions = { NoAction; } const entries = { 1: NoAction(); 1: NoAction(); } }", "t.apply();"), 0, "an earlier entry of table I.t has the same key: remove one"},
		{"50 comparisons of large unions", outline("header_union u_t { "+doubling("", "h_t x#; ", 3001)+"}", "", accept, "u_t u; u_t v;", strings.Repeat("if (u == v) { meta.m = 1; }", 50)), 0, "more than 8388608 steps to lower"},
		// Arrays.
		{"a register of 4,000,000,000 cells", outline("", "", accept, "register<bit<32>>(4000000000) r;", "r.write(0, 1);"), 0, "x.p4:11:5: not supported: register of 4000000000 cells: want 0 to 33554432"},
		{"a counter of 4,000,000,000 cells", outline("", "", accept, "counter(4000000000, CounterType.packets) r;", "r.count(0);"), 0, "want 0 to 33554432"},
		{"registers of 2 GiB", outline("", "", accept, each(8, "register<bit<64>>(33554432) r#; "), each(8, "r#.write(0, 1);")), 0, "more than 134217728 words of 64 bits up to I.r4"},
		// Unions.
		{"500 unions", outline(each(500, "header_union u#_t { h_t x; h_t y; }\n"), "", accept, each(500, "u#_t u#;\n"), ""), 10000, ""},
		{"a stack of 500 unions by an index", outline("header_union u_t { h_t x; h_t y; }", "", accept, "u_t[500] u;", "u[meta.m].x.setValid(); u[meta.m].y.a = u[hdr.h.a].x.b;"), 20000, ""},
		{"a union of 1,000 made valid 1,000 times", united(1000), 99999, ""},
		{"a union of 5,000 made valid 5,000 times", united(5000), 99999, ""},
		{"a union in a union", outline("header_union a_t { h_t x; } header_union b_t { a_t x; }", "", accept, "b_t u;", ""), 0, "cannot have type a_t"},
		{"a union of itself", outline("header_union a_t { a_t x; }", "", accept, "a_t u;", ""), 0, "a declaration cannot use itself"},
		{"a union of 70,000", outline("header_union u_t {"+each(70000, "h_t x#;")+"}", "", accept, "u_t u;", ""), 0, "more than the 65536 parts"},
		{"a stack of 40,000 unions", outline("header_union u_t { h_t x; h_t y; }", "", accept, "u_t[40000] u;", ""), 0, "more than the 65536 parts"},
		// Widths and numbers.
		{"a signed field of no bits", outline("", "", accept, "int<0> x;", "x = 0;"), 0, "at least one bit"},
		{"a width of 2^31", outline("", "", accept, "bit<(1<<31)> x;", "x = 1;"), 0, "2147483648 is more than the 65536 bits"},
		{"a width of 2^64", outline("", "", accept, "bit<(1<<64)> x;", "x = 1;"), 0, "is more than the 65536 bits"},
		{"a negative width", outline("", "", accept, "bit<(-1)> x;", "x = 1;"), 0, "cannot be negative"},
		{"a number of 100,000 digits", outline("", "", accept, "", "meta.m = "+strings.Repeat("9", 100000)+";"), 0, "integer is too long"},
		{"a shift by 10^26", outline("", "", accept, "", "meta.m = (bit<32>)(1 << 1"+strings.Repeat("0", 26)+");"), 0, "shift amount is too large"},
		{"a shift by less than nothing", outline("", "", accept, "", "meta.m = meta.m << -1;"), 0, "negative"},
		{"shifts of shifts", outline(doubling("const int x0 = 1;\n", "const int x# = x@ << 2000;\n", 2000), "", accept, "", "meta.m = (bit<32>) x1999;"), 0, "the number becomes too large"},
		{"squares of squares", outline(doubling("const int x0 = 3;\n", "const int x# = x@ * x@;\n", 60), "", accept, "", "meta.m = (bit<32>) x59;"), 0, "the number becomes too large"},
		{"9,000 slices of slices", outline("", "", accept, "", "meta.m = meta.m"+strings.Repeat("[31:0]", 9000)+";"), 3000, ""},
		{"64 times 32 bits in a row", outline("", "", accept, "", "meta.m = ("+strings.Repeat("hdr.h.a ++ ", 63)+"hdr.h.a)[31:0];"), 400, ""},
		{"9,000 times 32 bits in a row", outline("", "", accept, "", "meta.m = ("+strings.Repeat("hdr.h.a ++ ", 8999)+"hdr.h.a)[31:0];"), 0, "has 65568 bits, more than the 65536 supported (docs/limits.md)"},
		// Names and types.
		{"10,000 types of types", outline(doubling("typedef bit<32> t0;\n", "typedef t@ t#;\n", 10000), "", accept, "t9999 x;", "x = 1; meta.m = x;"), 30, ""},
		{"a type of itself", outline("typedef t t;", "", accept, "t x;", ""), 0, "t is not declared"},
		{"two types of each other", outline("typedef b a; typedef a b;", "", accept, "a x;", ""), 0, "b is not declared"},
		{"structs that double", outline(doubling("struct s0 { bit<32> a; }\n", "struct s# { s@ a; s@ b; }\n", 60), "", accept, "s59 v;", ""), 0, "more than the 65536 parts"},
		{"tuples that double", outline(doubling("typedef tuple<bit<32>, bit<32>> t0;\n", "typedef tuple<t@, t@> t#;\n", 40), "", accept, "t39 v;", ""), 0, "more than the 65536 parts"},
		{"tuples 900 deep", outline("", "", accept, strings.Repeat("tuple<", 900)+"bit<8>"+strings.Repeat(">", 900)+" v;", ""), 30, ""},
		{"stacks in tuples", outline("", "", accept, "tuple<tuple<h_t[500], h_t[500]>, h_t[500]> v; tuple<tuple<h_t[500], h_t[500]>, h_t[500]> w;", "v = w; if (v == w) { meta.m = 1; }"), 9000, ""},
		{"a stack of 2^63", outline("", "", accept, "h_t[9223372036854775808] q;", ""), 0, "9223372036854775808"},
		{"a table 5,000 times", outline("", "", accept, strings.Repeat("table t { actions = { NoAction; } }\n", 5000), "t.apply();"), 0, "too many errors"},
		{"a field 5,000 times", outline("", strings.Repeat("bit<8> x;\n", 5000), accept, "", ""), 0, "too many errors"},
		{"a name twice, by annotation", outline("", "", accept, `@name("same") table t0 { actions = { NoAction; } } @name("same") table t1 { actions = { NoAction; } }`, "t0.apply(); t1.apply();"), 0, "same"},
		{"a string of 4 MB", outline(`@a("`+strings.Repeat("x", 4<<20)+`") const bit<8> x = 1;`, "", accept, "", ""), 20, ""},
		{"a name of 100,000 letters", outline("", "", accept, `@name("`+strings.Repeat("x", 100000)+`") action a() {} table t { actions = { a; } default_action = a(); }`, "t.apply();"), 2000, ""},
		// Parsers.
		{"a value set of 2^31", strings.Replace(outline("", "", "pkt.extract(hdr.h); transition select(hdr.h.a) { vs: accept; default: accept; }", "", ""), "state start", "value_set<bit<32>>(2147483648) vs; state start", 1), 0, "from 0 to 2147483647"},
		{"1,000 value sets", strings.Replace(outline("", "", "pkt.extract(hdr.h); transition select(hdr.h.a) {"+each(1000, "vs#: accept;\n")+"default: accept; }", "", ""), "state start", each(1000, "value_set<bit<32>>(4) vs#;\n")+"state start", 1), 2000, ""},
		{"a select of 5,000", outline("", "", "pkt.extract(hdr.h); transition select(hdr.h.a) {"+each(5000, "#: accept;\n")+"default: accept; }", "", ""), 10000, ""},
		{"a select over 100 fields", outline("", "", "pkt.extract(hdr.h); transition select("+strings.Repeat("hdr.h.a, ", 99)+"hdr.h.b) { ("+strings.Repeat("1, ", 99)+"2): accept; default: accept; }", "", ""), 100, ""},
		{"5,000 states that nothing reaches", outline("", "", accept+" }"+each(5000, " state s# { transition accept; }")+" state last { transition accept;", "", ""), 20, ""},
		{"2,000 states one after the other", outline("", "", "transition s1999; } "+doubling("state s0 { transition accept; }\n", "state s# { transition s@; }\n", 2000)+" state last { transition accept;", "", ""), 8000, ""},
		// Tables.
		{"a ternary entry 2,000 times", outline("", "", accept, "table t { key = { hdr.h.a: ternary; } actions = { NoAction; } const entries = {"+strings.Repeat("1 &&& 3: NoAction();\n", 2000)+"} }", "t.apply();"), 9000, ""},
		{"a prefix twice", outline("", "", accept, "table t { key = { hdr.h.a: lpm; } actions = { NoAction; } const entries = { 0 &&& 0xff000000: NoAction(); 0 &&& 0xff000000: NoAction(); } }", "t.apply();"), 0, "an earlier entry of table I.t has the same key: remove one"},
		{"2,000 keys", outline("", "", accept, "table t { key = {"+strings.Repeat("hdr.h.a: exact;\n", 2000)+"} actions = { NoAction; } }", "t.apply();"), 2000, ""},
		{"a table of less than nothing", outline("", "", accept, "table t { key = { hdr.h.a: exact; } actions = { NoAction; } size = -1; }", "t.apply();"), 0, "from 0 to 2147483647"},
		{"a table of 10^20", outline("", "", accept, "table t { key = { hdr.h.a: exact; } actions = { NoAction; } size = 100000000000000000000; }", "t.apply();"), 0, "from 0 to 2147483647"},
		{"2,000 registers", outline("", "", accept, each(2000, "register<bit<32>>(1) r#;\n"), each(2000, "r#.write(0, 1);\n")), 9000, ""},
		// The preprocessor.
		{"a macro that names itself", "#define A A\n" + outline("", "", accept, "", "meta.m = A;"), 0, "A is not declared"},
		{"two macros that name each other", "#define A B\n#define B A\n" + outline("", "", accept, "", "meta.m = A;"), 0, "A is not declared"},
		{"a macro that calls itself", "#define F(x) F(F(x))\n" + outline("", "", accept, "", "meta.m = F(F(F(1)));"), 0, "F is not declared"},
		{"macros that call twice", strings.ReplaceAll(doubling("!define F0(x) x+x\n", "!define F#(x) F@(F@(x))\n", 40), "!", "#") + outline("", "", accept, "", "meta.m = F39(1);"), 0, "macros use more than"},
		{"a macro of 20,000 parameters", "#define F(" + strings.TrimSuffix(each(20000, "a#,"), ",") + ") a1\n" + outline("", "", accept, "", "meta.m = F("+strings.TrimSuffix(strings.Repeat("1,", 20000), ",")+");"), 20, ""},
		{"a macro's argument without end", "#define F(x) x\n" + outline("", "", accept, "", "meta.m = F("+strings.Repeat("(", 100000)), 0, "F"},
		{"a program that includes itself", "#include \"x.p4\"\n", 0, "includes nest more than 100 deep"},
		{"500,000 lines that go on", strings.Repeat("\\\n", 500000) + outline("", "", accept, "", ""), 20, ""},
		{"200,000 conditions in conditions", strings.Repeat("#if 1\n", 200000), 0, "too many errors"},
		{"a condition of 100,000 brackets", "#if " + strings.Repeat("(", 100000) + "1\n#endif\n", 0, "nests more than"},
		{"a division by nothing in a condition", "#if 1/0\n#endif\n", 0, "division by zero"},
		{"an error of 1 MB", "#error " + strings.Repeat("x", 1<<20) + "\n", 0, "… (1048583 bytes)"},
		{"a line of 10^20", "#line 100000000000000000000\n" + outline("", "", accept, "", ""), 0, "line number 100000000000000000000 is too large"},
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
