package syntax_test

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/p4lb/p4lb/internal/p4/format"
	"github.com/p4lb/p4lb/internal/p4/syntax"
)

// TestLimits feeds programs that would exhaust stack, memory or time.
func TestLimits(t *testing.T) {
	deep := func(before, middle, after string) string {
		return strings.Repeat(before, 20000) + middle + strings.Repeat(after, 20000)
	}
	doubling := "#define A0 x x\n"
	for i := 1; i < 60; i++ {
		n, m := string(rune('A'+i/10))+string(rune('0'+i%10)), string(rune('A'+(i-1)/10))+string(rune('0'+(i-1)%10))
		doubling += "#define " + n + " " + m + " " + m + "\n"
	}
	for _, c := range []struct{ name, text, want string }{
		{"parentheses", "const int a = " + deep("(", "1", ")") + ";", "nests more than 1000 deep"},
		{"unary", "const int a = " + deep("-", "1", "") + ";", "nests more than 1000 deep"},
		{"casts", "const int a = " + deep("(bit<8>)", "1", "") + ";", "nests more than 1000 deep"},
		{"lists", "const int a = " + deep("{", "1", "}") + ";", "nests more than 1000 deep"},
		{"calls", "const int a = " + deep("f(", "1", ")") + ";", "nests more than 1000 deep"},
		{"indexes", "const int a = " + deep("f[", "1", "]") + ";", "nests more than 1000 deep"},
		{"conditionals", "const int a = " + deep("a ? ", "1", " : 2") + ";", "nests more than 1000 deep"},
		{"type arguments", "extern " + deep("T<", "U", "> ") + " f();", "nests more than 1000 deep"},
		{"tuples", "extern " + deep("tuple<", "bool", "> ") + " f();", "nests more than 1000 deep"},
		{"blocks", "void f() {" + deep("{", "", "}") + "}", "nests more than 1000 deep"},
		{"ifs", "void f() {" + deep("if (x) ", ";", "") + "}", "nests more than 1000 deep"},
		{"else ifs", "void f() {" + deep("if (x) ; else ", ";", "") + "}", "more than 10000 else if in a row"},
		{"fors", "void f() {" + deep("for (bit<8> i in a) ", ";", "") + "}", "nests more than 1000 deep"},
		{"switches", "void f() {" + deep("switch (x) { 1: {", "", "} }") + "}", "nests more than 1000 deep"},
		{"lvalues", "void f() {" + deep("(", "x", ")") + " = 1; }", "nests more than 1000 deep"},
		{"keysets", "parser p() { state s { transition select(x) { " + deep("(", "1", ")") + ": s; } } }", "nests more than 1000 deep"},
		{"objects", "T() x = " + deep("{ T() x = ", "{}", "; }") + ";", "nests more than 1000 deep"},
		{"operators", "const int a = 1" + deep(" + 1", "", "") + ";", "more than 10000 operators in a row"},
		{"members of lvalues", "void f() { x" + deep(".x", "", "") + " = 1; }", "more than 10000 parts in a row"},
		{"elements of lvalues", "void f() { x" + deep("[1]", "", "") + " = 1; }", "more than 10000 parts in a row"},
		{"members", "const int a = x" + deep(".x", "", "") + ";", "more than 10000 parts in a row"},
		{"stacks", "extern H" + deep("[1]", "", "") + " f();", "type has more than 1000 sizes"},
		{"digits", "const int a = " + deep("9", "", "") + ";", "integer is too long"},
		{"annotation", "@x(" + deep("(", "", ")") + ") const int a = 1 +;", "expected an expression"},
		{"macro doubling", doubling + "const int a = F9;", "macros use more than 1048576 tokens"},
		{"macro arguments", "#define f(x) x\nconst int a = " + deep("f(", "1", ")") + ";", "macros use more than 1048576 tokens"},
		{"macro arguments, not as deep", "#define f(x) x\nconst int a = " + strings.Repeat("f(", 300) + "1" + strings.Repeat(")", 300) + ";",
			"macro arguments nest more than 200 deep"},
		{"macro argument doubling", "#define f(x) x x\nconst int a = " + strings.Repeat("f(", 60) + "1" + strings.Repeat(")", 60) + ";",
			"macros use more than 1048576 tokens"},
		{"includes", deep("#include \"empty.h\"\n", "", ""), "program includes more than 10000 files"},
		{"condition", "#if " + deep("(", "1", ")") + "\n#endif\n", "nests more than 200 deep"},
		{"condition operators", "#if " + deep("!", "1", "") + "\n#else\n#error reached\n#endif\n", ""},
		{"ifdefs", deep("#ifdef X\n", "", "#endif\n") + "const int a = ;", "expected an expression"},
		{"errors", deep("const int a = ;\n", "", ""), "too many errors"},
		{"braces", deep("{", "", ""), "unexpected {, expected a declaration"},
		{"at signs", deep("@x ", "", ""), "unexpected end of file"},
	} {
		t.Run(c.name, func(t *testing.T) {
			fsys := fstest.MapFS{"main.p4": {Data: []byte(c.text)}, "empty.h": {}}
			file, errs := syntax.Parse(fsys, "main.p4", syntax.Options{})
			if c.want == "" && file == nil || c.want != "" && !strings.Contains(errs.Error(), c.want) {
				t.Errorf("%.40s", errs.Error())
			}
			if _, err := format.Format([]byte(c.text), "main.p4"); err != nil && !strings.Contains(err.Error(), "the file is unchanged") {
				t.Error(err)
			}
		})
	}
}
