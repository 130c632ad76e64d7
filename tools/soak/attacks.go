package main

import (
	"encoding/binary"
	"fmt"
	"net"
	"strings"
)

// An attack is a p4lb command with input that once made it hang, exhaust memory
// or write outside of its folder.
type attack struct {
	name  string
	files map[string]string
	args  []string
	code  int    // expected exit code; negative: any
	says  string // text that the output must contain
	// serve starts a malicious server. ADDRESS in files and arguments stands
	// for its address.
	serve func(net.Listener) (stop func())
}

// p4 returns a v1model program with the given parts.
func p4(top, locals, apply, egress string) string {
	return strings.NewReplacer("TOP", top, "LOCALS", locals, "APPLY", apply, "EGRESS", egress).Replace(`#include <core.p4>
#include <v1model.p4>
header h_t { bit<32> a; bit<32> b; }
struct H { h_t h; }
struct M { bit<32> m; }
TOP
parser P(packet_in pkt, out H hdr, inout M meta, inout standard_metadata_t std) { state start { pkt.extract(hdr.h); transition accept; } }
control V(inout H hdr, inout M meta) { apply {} }
control I(inout H hdr, inout M meta, inout standard_metadata_t std) { LOCALS apply { APPLY } }
control E(inout H hdr, inout M meta, inout standard_metadata_t std) { apply { EGRESS } }
control D(packet_out pkt, in H hdr) { apply { pkt.emit(hdr.h); } }
V1Switch(P(), V(), I(), E(), V(), D()) main;
`)
}

// numbered concatenates n copies of text, in which # stands for the number of
// the copy.
func numbered(n int, text string) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(strings.ReplaceAll(text, "#", fmt.Sprint(i)))
	}
	return b.String()
}

// doubling returns a chain of n declarations, each of which uses the previous
// one twice.
func doubling(first, next string, n int) string {
	s := first
	for i := 1; i < n; i++ {
		s += strings.NewReplacer("@", fmt.Sprint(i-1), "#", fmt.Sprint(i)).Replace(next)
	}
	return s
}

// manyHosts returns a topology of n hosts.
func manyHosts(n int) string {
	leaves := (n + 399) / 400
	var b strings.Builder
	b.WriteString("switches:\n  s: {role: spine}\n" + numbered(leaves, "  l#: {role: leaf}\n"))
	b.WriteString("hosts:\n" + numbered(n, "  h#:\n") + "links:\n" + numbered(leaves, "  - {ends: [l#, s], rate: 1G}\n"))
	for i := range n {
		fmt.Fprintf(&b, "  - {ends: [h%d, l%d], rate: 1G}\n", i, i/400)
	}
	return b.String()
}

// besiegedTables returns the attacked BfRt program with n tables, each with its
// own action.
func besiegedTables(n int) string {
	return strings.NewReplacer("table routes", numbered(n, "action a#(PortId_t port) { t.ucast_egress_port = port; } table t# { key = { h.h.a: exact; } actions = { a#; NoAction; } }\n")+"table routes",
		"routes.apply();", "routes.apply(); "+numbered(n, "t#.apply(); ")).Replace(besiegedChip)
}

const experiment = `name: x
topology: {leaf-spine: {leaves: 2, spines: 2, hosts: 2, rate: 1G, host-rate: 1G}}
schemes: [ecmp]
engine: native
traffic: [{size: 10KB}]
duration: 2ms
`

// attacks returns all attacks. n scales the size of the input.
func attacks(n int) []attack {
	var list []attack
	compile := func(name, text string, code int, says string) {
		list = append(list, attack{"compile: " + name, map[string]string{"x.p4": text}, []string{"compile", "x.p4", "-o", "x.json", "--p4info", "x.txtpb"}, code, says, nil})
	}
	compile("additions in a row", p4("", "", "meta.m = "+strings.Repeat("hdr.h.a + ", 3000*n)+"1;", ""), 0, "")
	compile("operators nested", p4("", "", "meta.m = "+strings.Repeat("~", 990)+"hdr.h.a;", ""), 0, "")
	compile("brackets", p4("", "", "meta.m = "+strings.Repeat("(", 100000)+";", ""), 1, "nests more than")
	compile("tokens", strings.Repeat("; ", 3000000), 1, "tokens")
	compile("annotations", p4(strings.Repeat("@a ", 50000*n)+"const bit<8> x = 1;", "", "", ""), 0, "")
	compile("members of an enum", p4("enum L {"+numbered(50000*n, "e#, ")+"e}", "", "", ""), 0, "")
	compile("a hash over a long list", p4("", "", "hash(meta.m, HashAlgorithm.crc32, 32w0, {"+strings.Repeat("hdr.h.a, ", 10000*n)+"hdr.h.b}, 32w100);", ""), 0, "")
	compile("entries", p4("", "table t { key = { hdr.h.a: exact; } actions = { NoAction; } const entries = {"+numbered(10000*n, "#: NoAction();\n")+"} }", "t.apply();", ""), 0, "")
	compile("functions that call twice", p4(doubling("bit<32> f0(in bit<32> x) { return x + 1; }\n", "bit<32> f#(in bit<32> x) { return f@(f@(x)); }\n", 60), "", "meta.m = f59(meta.m);", ""), 1, "steps to lower")
	compile("actions that call twice", p4("", doubling("action a0() { meta.m = meta.m + 1; }\n", "action a#() { a@(); a@(); }\n", 60), "a59();", ""), 1, "steps to lower")
	compile("unions compared", p4("header_union u_t { "+numbered(3000, "h_t x#; ")+"}", "u_t u; u_t v;", strings.Repeat("if (u == v) { meta.m = 1; }", 50), ""), 1, "steps to lower")
	compile("unions made valid by each member", strings.Replace(p4("", "", numbered(6000, "hdr.u.x#.setValid(); "), ""), "struct H {", "header_union v_t { "+numbered(6000, "h_t x#; ")+"} struct H { v_t u; ", 1), 0, "")
	compile("headers of many fields made valid", strings.Replace(p4("", "", strings.Repeat("hdr.w.setValid(); hdr.w.setInvalid(); ", 5000), ""), "struct H {", "header w_t { "+numbered(20000, "bit<8> f#; ")+"} struct H { w_t w; ", 1), 0, "")
	compile("warnings", p4("", numbered(60000, "bit<8> v#; "), "", ""), 0, "\nwarning: 59800 more, left out\n")
	compile("an error of 10 MB", "#error "+strings.Repeat("x", 10<<20)+"\n", 1, "bytes)")
	compile("methods of an extern", p4("extern X { "+numbered(50000*n, "void f#(); ")+"}", "", "", ""), 0, "")
	compile("functions of one name", p4(numbered(5000*n, "bit<8> f(in bit<8> p#) { return 1; }\n"), "", "", ""), 1, "more than 256 times")
	compile("type arguments", p4("bit<8> f<"+numbered(20000*n, "T#, ")+"T>(in bit<8> x) { return x; }", "", "meta.m = (bit<32>) f<"+strings.Repeat("bit<8>, ", 20000*n)+"bit<8>>(1);", ""), 0, "")
	compile("instances of a type of many members", p4(numbered(3000*n, "struct S# { bit<8> x; }\n")+"extern G<T> { G(); "+numbered(3000*n, "void f#(in T x); ")+"}", numbered(3000*n, "G<S#>() g#; "), "", ""), 1, "steps to check")
	compile("parameters left out", p4("extern void g("+numbered(20000*n, "@optional in bit<8> f#, ")+"@optional in bit<8> f);", "", strings.Repeat("g(); ", 20000*n), ""), 1, "steps to check")
	compile("types that are each an argument", p4(numbered(20000*n, "type bit<32> S#;\n"), numbered(20000*n, "register<S#>(1) g#; "), "", ""), 0, "more, left out")
	compile("undeclared names", p4("struct S { "+numbered(20000*n, "bit<8> fie#; ")+"}", "", "S s; "+numbered(20000*n, "s.fei# = 1; "), ""), 1, "did you mean")
	compile("long names", p4("", "", "bit<8> "+strings.Repeat("a", 1000000*n)+"; "+strings.Repeat("a", 1000000*n)+"b = 1;", ""), 1, "bytes)")
	compile("arguments by name", p4("bit<8> f("+numbered(20000*n, "in bit<8> p#, ")+"in bit<8> p) { return p; }", "", "meta.m = (bit<32>) f("+numbered(20000*n, "p# = 1, ")+"p = 1);", ""), 0, "")
	compile("controls with a table each", p4("control C(inout bit<32> x) { table t { key = { x: exact; } actions = { NoAction; } } apply { t.apply(); } }", numbered(5000*n, "C() c#; "), numbered(5000*n, "c#.apply(meta.m); "), ""), 0, "")
	compile("numbers that grow", p4(doubling("const int x0 = 1;\n", "const int x# = x@ << 2000;\n", 5000), "", "meta.m = (bit<32>) x4999;", ""), 1, "the number becomes too large")
	compile("macros that double", strings.ReplaceAll(doubling("!define A0 meta.m+\n", "!define A# A@ A@\n", 60), "!", "#")+p4("", "", "meta.m = A59 1;", ""), 1, "macros use more than")
	compile("including a device", "#include \"/dev/zero\"\n", 1, "cannot include")

	tables := besiegedTables(3000 * n)
	for _, verb := range []string{"lint", "manifest init"} {
		list = append(list, attack{verb + ": tables", map[string]string{"x.p4": tables}, append(strings.Fields(verb), "x.p4"), 0, "", nil})
	}

	packets := "mirroring_add 5 1\npacket 1 " + strings.Repeat("00", 64) + "\n"
	test := func(name, apply, egress string) {
		list = append(list, attack{"test: " + name, map[string]string{"x.p4": p4("", "", apply, egress), "x.stf": packets}, []string{"test", "x.p4", "x.stf"}, -1, "no round left", nil})
	}
	test("resubmitted forever", "resubmit_preserving_field_list(0);", "")
	test("recirculated forever", "std.egress_spec = 3;", "recirculate_preserving_field_list(0);")
	test("clones of clones", "clone(CloneType.I2E, 5); std.egress_spec = 3;", "clone(CloneType.E2E, 5);")
	test("doubling clones", "clone(CloneType.I2E, 5); std.egress_spec = 3;", "recirculate_preserving_field_list(0);")

	lab := func(name, text string, says string) {
		list = append(list, attack{"lab: " + name, map[string]string{"x.yaml": text}, []string{"lab", "run", "x.yaml"}, 1, says, nil})
	}
	with := func(old, new string) string { return strings.Replace(experiment, old, new, 1) }
	lab("colons", experiment+"a"+strings.Repeat(": ", 100000), "nested too deeply")
	lab("question marks", experiment+strings.Repeat("? ", 100000), "nested too deeply")
	lab("anchors", experiment+strings.Repeat("&a ", 100000), "anchors")
	lab("brackets", experiment+strings.Repeat("[", 100000), "nested too deeply")
	lab("a long word", experiment+strings.Repeat("<", 200000), "a word of more than")
	lab("a million hosts", with("hosts: 2", "hosts: 1000000"), "at most")
	lab("the longest time", with("2ms", "2562047h"), "1000 hours at most")
	lab("a long time", with("2ms", "900h"), "too large")
	lab("a workload from a device", with("size: 10KB", "workload: /dev/zero"), "is a device")
	lab("coefficients from a device", with("[ecmp]", "[{scheme: ecmp, coeffs: /dev/zero}]"), "is a device")
	lab("200,000 runs", strings.Replace(with("duration", "seeds: 1000\nloads: ["+strings.Repeat("0.1, ", 99)+"0.2]\nduration"), "[ecmp]", "[ecmp, drill]", 1), "200000 runs together")
	lab("rows of one folder", with("[ecmp]", `[{scheme: ecmp, label: "a b"}, {scheme: letflow, label: a_b}]`), "both be kept")
	list = append(list, attack{"lab: a name that leaves the folder", map[string]string{"x.yaml": with("name: x", `name: "../../out"`)}, []string{"lab", "run", "x.yaml"}, 0, "ecmp", nil})

	footer := "PAR1" + strings.Repeat("x", 100) + string(binary.LittleEndian.AppendUint32(nil, 1<<32-1)) + "PAR1"
	list = append(list,
		attack{"inspect: a footer of 4 GiB", map[string]string{"x.parquet": footer}, []string{"inspect", "--replay", "x.parquet"}, 1, "footer is broken", nil},
		attack{"fit: a footer of 4 GiB", map[string]string{"x.parquet": footer}, []string{"fit", "--data", "x.parquet", "--degree", "2", "-o", "m.json"}, 1, "footer is broken", nil},
		attack{"fit: a million columns", map[string]string{"x.csv": strings.Repeat("occupancy,", 1<<20) + "x\n1\n"}, []string{"fit", "--data", "x.csv", "--degree", "2", "-o", "m.json"}, 1, "bytes)", nil},
		attack{"lab: an empty text", map[string]string{"x.yaml": experiment + "a: >\n" + strings.Repeat("\n", 500_000)}, []string{"lab", "run", "x.yaml"}, 1, "empty lines", nil},
		attack{"lab: a list of millions", map[string]string{"x.yaml": experiment + "a: [" + strings.Repeat("1,", 3_000_000) + "1]\n"}, []string{"lab", "run", "x.yaml"}, 1, "words and signs", nil},
		attack{"lab: a load that is not a number", map[string]string{"x.yaml": strings.Replace(experiment, "size: 10KB", "workload: websearch, load: .nan", 1)}, []string{"lab", "run", "x.yaml"}, 1, "want a number", nil},
		attack{"lab: keys at one level", map[string]string{"x.yaml": experiment + numbered(500_000, "k#: 1\n")}, []string{"lab", "run", "x.yaml"}, 1, "x.yaml:10001: more than 10000 keys", nil},
		attack{"lab: keys in braces", map[string]string{"x.yaml": experiment + "a: {" + numbered(60_000, "k#: 1, ") + "k: 1}\n"}, []string{"lab", "run", "x.yaml"}, 1, "there is no key", nil},
		attack{"manifest: empty registers", map[string]string{"x.json": `{"version": 2, "registers": [` + strings.Repeat("{},", 500_000) + "{}]}"}, []string{"manifest", "check", "x.json"}, 1, "words and signs", nil},
		attack{"topo: a million switches", map[string]string{"x.yaml": "switches:\n" + numbered(1_000_000, "  s#:\n")}, []string{"topo", "validate", "x.yaml"}, 1, "x.yaml:200002: more than 200000", nil},
		attack{"topo: 59,000 hosts", map[string]string{"x.yaml": manyHosts(59_000)}, []string{"topo", "validate", "x.yaml"}, 0, "59000 hosts", nil},
		attack{"test: names, numbers and packets of megabytes", map[string]string{
			"x.p4": p4("", "", "std.egress_spec = 3;", ""), "x.stf": "packet 1 " + strings.Repeat("00", 64) + "\nexpect 1 " + strings.Repeat("11", 2<<20) + "\n", "y.stf": "add " + strings.Repeat("x", 4<<20) + " a:1 b()\n", "z.stf": "mirroring_add " + strings.Repeat("9", 4<<20) + " 1\n",
		}, []string{"test", "x.p4", "x.stf", "y.stf", "z.stf"}, 1, "bytes)", nil},
		attack{"fmt: comments", map[string]string{"x.p4": strings.Repeat("// a\n", 300_000)}, []string{"fmt", "-w", "x.p4"}, 0, "", nil},
		attack{"fmt: braces", map[string]string{"x.p4": strings.Repeat("{", 500_000)}, []string{"fmt", "x.p4"}, 1, "nests more than 1000 deep", nil},
		attack{"topo: braces in braces", map[string]string{"x.yaml": "switches: " + strings.Repeat("{a: ", 50000)}, []string{"topo", "validate", "x.yaml"}, 1, "nested too deeply", nil},
	)
	return list
}
