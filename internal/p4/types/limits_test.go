package types

import (
	"fmt"
	"strings"
	"testing"
)

// errorsOf checks a program that may use core.p4 and returns its errors, without
// warnings.
func errorsOf(t *testing.T, text string) []string {
	t.Helper()
	var out []string
	_, errs := check(t, "test.p4", []byte(text))
	for _, e := range errs {
		if !e.Warning {
			out = append(out, e.Error())
		}
	}
	return out
}

// Each limit of docs/limits.md accepts a program at the limit and refuses one above it.
func TestLimits(t *testing.T) {
	tests := []struct {
		what    string
		limit   int
		program func(n int) string
		message string
	}{
		{"functions of one name", 256, func(n int) string {
			var b strings.Builder
			for i := range n {
				fmt.Fprintf(&b, "void f(in bit<8> a%d) { }\n", i)
			}
			return b.String()
		}, "f is declared more than 256 times (docs/limits.md)"},
		{"methods of one name", 256, func(n int) string {
			var b strings.Builder
			for i := range n {
				fmt.Fprintf(&b, "void f(in bit<8> a%d);\n", i)
			}
			return "extern e { e();\n" + b.String() + "}"
		}, "e.f is declared more than 256 times (docs/limits.md)"},
		{"blocks of one name", 256, func(n int) string {
			var b strings.Builder
			for i := range n {
				fmt.Fprintf(&b, "control c()(bit<8> a%d) { apply { } }\n", i)
			}
			return b.String()
		}, "c is declared more than 256 times (docs/limits.md)"},
		{"bytes of a string", 65536, func(n int) string {
			return fmt.Sprintf("const string a = %q ++ %q;", strings.Repeat("x", 60000), strings.Repeat("y", n-60000))
		}, "the string becomes too large"},
		{"fields of a struct", 65535, func(n int) string { // and the struct itself is a part
			var b strings.Builder
			for i := range n {
				fmt.Fprintf(&b, "bool a%d;\n", i)
			}
			return "struct s {\n" + b.String() + "}"
		}, "the type has more than the 65536 parts supported (docs/limits.md)"},
		{"elements of a tuple", 65535, func(n int) string {
			return "typedef tuple<" + strings.TrimSuffix(strings.Repeat("bool,", n), ",") + "> t;"
		}, "the type has more than the 65536 parts supported (docs/limits.md)"},
		{"elements of an array", 65535, func(n int) string { return fmt.Sprintf("typedef bool[%d] t;", n) },
			"the type has more than the 65536 parts supported (docs/limits.md)"},
		{"elements of an array of structs", 32767, func(n int) string {
			return fmt.Sprintf("struct s { bool a; }\ntypedef s[%d] t;", n)
		}, "the type has more than the 65536 parts supported (docs/limits.md)"},
		{"lists of tuples", 21845, func(n int) string { // three parts each, and the tuple around them
			return "typedef tuple<" + strings.TrimSuffix(strings.Repeat("list<tuple<bool>>,", n), ",") + "> t;"
		}, "the type has more than the 65536 parts supported (docs/limits.md)"},
		{"type arguments in a name", 65533, func(n int) string { // box, tuple, bit<8> and the elements: one more than the tuple alone
			return fmt.Sprintf("struct box<T> { bit<8> x; }\ntypedef box<tuple<%s>> t;", strings.TrimSuffix(strings.Repeat("bool,", n), ","))
		}, "the type has more than the 65536 parts supported (docs/limits.md)"},
		{"width of a concatenation", 65536, func(n int) string {
			return fmt.Sprintf("void f(in bit<32768> x, in bit<%d> y) { bit<%d> z = x ++ y; z = z; }", n-32768, min(n, 65536))
		}, "has 65537 bits, more than the 65536 supported (docs/limits.md)"},
	}
	for _, tt := range tests {
		if got := errorsOf(t, tt.program(tt.limit)); len(got) != 0 {
			t.Errorf("%s: at %d: %v", tt.what, tt.limit, got)
		}
		got := errorsOf(t, tt.program(tt.limit+1))
		if len(got) != 1 || !strings.Contains(got[0], tt.message) {
			t.Errorf("%s: at %d: %v, want %q", tt.what, tt.limit+1, got, tt.message)
		}
	}
}

// The checker stops at 1,000 errors, and the list that it returns shows 20 of them.
func TestManyErrors(t *testing.T) {
	var b strings.Builder
	for i := range 3000 {
		fmt.Fprintf(&b, "const bit<8> a%d = nothing%d;\n", i, i)
	}
	b.WriteString("const bit<8> last = 1;\n")
	info, errs := check(t, "test.p4", []byte(b.String()))
	if len(errs) != 21 || errs[20].Msg != "too many errors" {
		t.Errorf("%d errors, the last is %v", len(errs), errs[len(errs)-1])
	}
	if info.Top["a998"] == nil || info.Top["a999"] != nil || info.Top["a1000"] != nil || info.Top["last"] != nil {
		t.Error("the checker did not stop at error 1,000")
	}
}

// A part is refused at every place where it exceeds the limit.
func TestPartsOfNestedTypes(t *testing.T) {
	const message = "the type has more than the 65536 parts supported (docs/limits.md)"
	bools := func(n int) string { return "tuple<" + strings.TrimSuffix(strings.Repeat("bool,", n), ",") + ">" }
	tests := map[string]string{
		"struct pair<T, U> { bool x; }\ntypedef pair<" + bools(40000) + ", " + bools(40000) + "> t;":             message,
		"struct s { " + strings.Repeat("bool[10000] a;", 1) + "}\nstruct large { " + bools(60000) + " x; s y; }": message,
		"struct s { bool a; bool b; }\nstruct large { " + bools(60000) + " x; s[1841] y; }":                      "",
		"struct s { bool a; bool b; }\nstruct large { " + bools(60000) + " x; s[1845] y; }":                      message,
	}
	for text, want := range tests {
		got := errorsOf(t, text)
		if want == "" && len(got) > 0 || want != "" && (len(got) != 1 || !strings.Contains(got[0], want)) {
			t.Errorf("%.40s...%s: %v, want %q", text, text[len(text)-30:], got, want)
		}
	}
}

// A message shows the first line of a text with several.
func TestExpressionsOnOneLine(t *testing.T) {
	got := errorsOf(t, "const bit<8> a = \"one\ntwo\";")
	if len(got) != 1 || got[0] != "test.p4:1:18: \"one... has type string, but the constant a needs bit<8>" {
		t.Errorf("%q", got)
	}
}

// A call finds arguments by name among many parameters.
func TestManyParameters(t *testing.T) {
	for _, n := range []int{31, 32, 33, 40} {
		var params, args strings.Builder
		for i := range n {
			fmt.Fprintf(&params, "in bit<%d> a%d, ", i+1, i)
			fmt.Fprintf(&args, "a%d = 1, ", n-1-i)
		}
		decl := "void f(" + params.String() + "in bool last) { }\nvoid g() { f("
		if got := errorsOf(t, decl+args.String()+"last = true); }"); len(got) > 0 {
			t.Errorf("%d parameters: %v", n, got)
		}
		if got := errorsOf(t, decl+args.String()+"lst = true); }"); len(got) != 1 || !strings.Contains(got[0], "there is no parameter lst") {
			t.Errorf("%d parameters: %v", n, got)
		}
		if got := errorsOf(t, decl+strings.Replace(args.String(), "a5 = 1", "a5 = true", 1)+"last = true); }"); len(got) != 1 || !strings.Contains(got[0], "true has type bool, but parameter a5 of f needs bit<6>") {
			t.Errorf("%d parameters: %v", n, got)
		}
		over := decl[:strings.Index(decl, "void g")] + strings.Replace(decl[:strings.Index(decl, "void g")], "bool last", "bool other", 1)
		if got := errorsOf(t, over); len(got) != 0 {
			t.Errorf("%d parameters, the last of another name: %v", n, got)
		}
		if got := errorsOf(t, over+strings.Replace(decl[:strings.Index(decl, "void g")], "in bool last", "out bool last", 1)); len(got) != 1 {
			t.Errorf("%d parameters, the last of another direction: %v", n, got)
		}
	}
}

// An extern with many methods finds them by name.
func TestManyMethods(t *testing.T) {
	for _, n := range []int{31, 32, 40} {
		var methods, calls strings.Builder
		for i := range n {
			fmt.Fprintf(&methods, "bit<%d> m%d(); ", i+1, i)
			fmt.Fprintf(&calls, "bit<%d> v%d = e.m%d(); ", i+1, i, i)
		}
		text := "extern ext { ext(); " + methods.String() + "}\nvoid f(ext e) { " + calls.String()
		if got := errorsOf(t, text+"}"); len(got) > 0 {
			t.Errorf("%d methods: %v", n, got)
		}
		if got := errorsOf(t, text+"e.nosuch(); }"); len(got) != 1 || !strings.Contains(got[0], "the extern ext has no method nosuch") {
			t.Errorf("%d methods: %v", n, got)
		}
		if got := errorsOf(t, text+"bool b = e.m3; }"); len(got) != 1 || !strings.Contains(got[0], "e.m3 is a method: it can only be called") {
			t.Errorf("%d methods: %v", n, got)
		}
	}
}

// A message shows the beginning of a long expression, on one line.
func TestLongExpressionsAreCut(t *testing.T) {
	got := errorsOf(t, "const bit<8> a = 4w1"+strings.Repeat(" + 4w1", 30)+";")
	if len(got) != 1 || !strings.Contains(got[0], "4w1 + 4w1") || !strings.Contains(got[0], "... has type bit<4>, but the constant a needs bit<8>") {
		t.Errorf("%q", got)
	}
	for _, e := range got {
		if shown := strings.TrimPrefix(strings.SplitN(e, " has type", 2)[0], "test.p4:1:18: "); len(shown) > 60 || len(shown) < 50 {
			t.Errorf("%d bytes are shown of the expression: %q", len(shown), shown)
		}
	}
}

// With more than 32 instances, a generic type still has one instance for each list of
// arguments.
func TestManyInstances(t *testing.T) {
	var decls, uses strings.Builder
	n := 0
	add := func(arg string) {
		fmt.Fprintf(&decls, "in box<%s> a%d, in box<%s> b%d, ", arg, n, arg, n)
		fmt.Fprintf(&uses, "r = a%d == b%d; ", n, n)
		n++
	}
	for w := range 40 {
		add(fmt.Sprintf("bit<%d>", w))
		add(fmt.Sprintf("int<%d>", w+1))
		add(fmt.Sprintf("h[%d]", w+1))
		add(fmt.Sprintf("tuple<bit<%d>, bool>", w))
		add(fmt.Sprintf("tuple<tuple<bit<%d>>, pair<bit<8>, bit<%d>>>", w, w))
		add(fmt.Sprintf("pair<bit<%d>, bool>", w))
		add(fmt.Sprintf("varbit<%d>", w))
		add(fmt.Sprintf("e%d", w))
		add(fmt.Sprintf("t%d", w))
		fmt.Fprintf(&uses, "r = a%d == b%d;\n", n-2, n-1) // e and t
	}
	text := "header h { bit<8> x; }\nstruct pair<T, U> { T x; U y; }\nstruct box<T> { T v; }\n"
	for w := range 40 {
		text += fmt.Sprintf("enum e%d { A }\ntype bit<8> t%d;\n", w, w)
	}
	text += "bool f(" + decls.String() + "in bool q) {\nbool r = q;\n" + uses.String() + "return r; }"
	got := errorsOf(t, text)
	if len(got) != 21 { // 40 wrong comparisons, of which 20 are shown
		t.Errorf("%d errors: %v", len(got), got)
	}
	for i, e := range got[:len(got)-1] {
		if want := fmt.Sprintf("has type box<e%d> and cannot be compared with b%d, which has type box<t%d>", i, 9*i+8, i); !strings.Contains(e, want) {
			t.Errorf("%s: want %q", e, want)
		}
	}
}
