package types

import (
	"math/big"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/p4lb/p4lb/internal/p4/syntax"
)

// An expression is known at compile time if all its operands are. Each ? stands for an
// operand: k is a constructor parameter, which is known, and v is a parameter of apply.
func TestKnownAtCompileTime(t *testing.T) {
	tests := []string{
		"?8", "(?8)", "-?8", "~?8", "+?8", "!?b", "(bit<4>)?8", "(int<8>)?8", "?8[3:0]", "?s.a", "?s.b[1]", "?q[0]", "?q", "{ ?8, 1 }",
		"(one){ ?8 }", "(one){ a = ?8 }", "(two){ a = 1, b = ?8 }", "(two){ ?8, ... }", "pure(?8)", "x.pure(?8)", "?r[1:0]", "(bit<4>)?r",
		"?8 + ?8", "?8 |-| ?8", "?8 << ?8", "8w1 << ?8", "?8 & ?8", "?8 ++ ?8", "?8 == ?8", "?8 != ?8", "?q == ?q", "?8 < ?8", "?b && ?b", "?b || ?b", "?8[?8+:4]", "?s.b[?8]",
		"?b ? ?8 : ?8", "{ ?8, ?b }", "(two){ ?8, ?8 }", "(two){ b = ?8, a = ?8 }", "pure2(?8, ?8)", "?8 + 1", "1 + ?8", "4w1 ++ ?8", "?r == rep.A",
		"true && ?b", "false || ?b", "list[?8]",
	}
	const decls = `
		struct one { bit<8> a; }
		struct two { bit<8> a; bit<8> b; }
		struct both { bit<8> a; bit<8>[2] b; }
		enum bit<4> rep { A = 1 }
		extern sink<T> { sink(T x); }
		extern ext { ext(); @pure bit<8> pure(in bit<8> a); bit<8> impure(in bit<8> a); }
		@pure extern bit<8> pure(in bit<8> a);
		@pure extern bit<8> pure2(in bit<8> a, in bit<8> b);
		extern bit<8> impure(in bit<8> a);
		control c(in bit<8> v8, in bool vb, in both vs, in tuple<bit<8>, bool> vq, in rep vr)
			(bit<8> k8, bool kb, both ks, tuple<bit<8>, bool> kq, rep kr, list<bit<8>> list) {
			ext() x;
			sink(`
	unknown := func(expr string) bool {
		got := errorsOf(t, decls+expr+") i; apply { } }")
		if len(got) > 1 || len(got) == 1 && !strings.Contains(got[0], "must be known at compile time") {
			t.Errorf("%s: %v", expr, got)
		}
		return len(got) > 0
	}
	for _, tt := range tests {
		n := strings.Count(tt, "?b ? ") // the ? of the operator
		operands := strings.Count(tt, "?") - n
		for which := range 1 << operands {
			expr := strings.Replace(tt, "?b ? ", "?b \x00 ", 1)
			for i := range operands {
				expr = strings.Replace(expr, "?", string("kv"[which>>i&1]), 1)
			}
			expr = strings.Replace(expr, "\x00", "?", 1)
			if got, want := unknown(expr), which != 0; got != want {
				t.Errorf("%s is known at compile time: %v, want %v", expr, !got, !want)
			}
		}
	}
	for expr, want := range map[string]bool{
		"false && vb": true, "true || vb": true, "v8.minSizeInBits()": true, "impure(k8)": false, "x.impure(k8)": false,
	} {
		if got := !unknown(expr); got != want {
			t.Errorf("%s is known at compile time: %v, want %v", expr, got, want)
		}
	}
}

// In an action, an extern also accepts expressions of action data for parameters that
// must be known. d is action data, v an in parameter.
func TestKnownWithActionData(t *testing.T) {
	tests := map[string]bool{
		"d": true, "(d)": true, "(bit<8>)w": true, "-d": true, "d + 1": true, "1 + d": true, "d + d": true, "s.a": true, "w[7:0]": true, "3": true, "d + k": true, "d[1+:8]": true, "w[d+:8]": true,
		"v": false, "(v)": false, "-v": false, "d + v": false, "v + d": false, "(bit<8>)u": false, "u[7:0]": false, "w[v+:8]": false, "u[d+:8]": false, "local": false, "d == 1 ? 8w1 : 2": false,
	}
	for expr, want := range tests {
		got := errorsOf(t, `
			struct one { bit<8> a; }
			extern void ex(bit<8> n);
			control c(in bit<8> v, in bit<16> u)(bit<8> k) {
				action act(bit<8> d, bit<16> w, one s) { bit<8> local = d; ex(`+expr+`); }
				table t { actions = { act; } default_action = act(1, 2, { 3 }); }
				apply { t.apply(); }
			}`)
		known := len(got) == 0
		if !known && (len(got) > 1 || !strings.Contains(got[0], "parameter n of ex has no direction: "+expr+" must be known at compile time")) {
			t.Errorf("%s: %v", expr, got)
		}
		if known != want {
			t.Errorf("%s is known with action data: %v, want %v", expr, known, want)
		}
	}
}

// If a call is wrong, errors in its arguments are reported, too.
func TestErrorsInArgumentsOfWrongCalls(t *testing.T) {
	tests := []struct{ place, text, want string }{
		{"apply", "v(nosuch);", "v is a parameter and cannot be called"},
		{"apply", "x.a(nosuch);", "x.a cannot be called"},
		{"apply", "missing(nosuch);", "missing is not declared"},
		{"apply", "missing.m(nosuch);", "missing is not declared"},
		{"apply", "o.missing(nosuch);", "the extern ext has no method missing"},
		{"apply", "x.missing(nosuch);", "h has no field missing"},
		{"apply", "f(a = 1, a = nosuch);", "argument a is given twice"},
		{"apply", "f(1, a = nosuch);", "either all arguments of a call are named or none"},
		{"apply", "f(nosuch, 1);", "there are 2 arguments for 1 parameter"},
		{"apply", "f(b = nosuch);", "there is no parameter b"},
		{"apply", "over(1, 2, nosuch);", "no over takes these 3 arguments"},
		{"apply", "v = h(nosuch);", "h cannot be constructed in an apply block"},
		{"apply", "only.apply(nosuch);", "only is a control type: it has no body to apply"},
		{"apply", "gen.apply(nosuch);", "gen is generic: its type arguments are missing"},
		{"apply", "needs.apply(nosuch);", "needs needs constructor arguments"},
		{"apply", "u.setValid(nosuch);", "a header_union has no setValid: its members have"},
		{"apply", "x.setValid(a = nosuch);", "setValid takes no arguments"},
		{"apply", "s.push_front(1, nosuch);", "push_front: there are 2 arguments for 1 parameter"},
		{"apply", "t.apply(a = nosuch);", "the apply of a table takes no arguments"},
		{"local", "missing(nosuch) i;", "missing is not declared"},
		{"local", "h(nosuch) i;", "h cannot be instantiated"},
		{"local", "none(nosuch) i;", "the extern none has no constructor"},
		{"local", "hold(abs(nosuch)) i;", "the extern abs has abstract methods"},
		{"local", "hold(h<bit<8>>(nosuch)) i;", "h has no type parameter, but 1 are given"},
		{"actions", "missing(nosuch);", "missing is not declared"},
		{"actions", "v(nosuch);", "v is a parameter, not an action"},
		{"actions", "bound(dst = 1, dst = nosuch);", "argument dst is given twice"},
		{"actions", "plain(b = nosuch);", "plain has no parameter for nosuch"},
		{"actions", "plain(a = nosuch);", "parameter a of plain is set by the control plane and cannot be bound here"},
		{"actions", "plain; } default_action = missing(nosuch); size = { 1", "missing is not declared"},
		{"actions", "plain; } default_action = other(nosuch); size = { 1", "other is not in the list of actions of table t"},
		{"actions", "plain; } default_action = plain(a = 1, a = nosuch); size = { 1", "argument a is given twice"},
		{"actions", "plain; } default_action = plain(nosuch, 1); size = { 1", "there are 2 arguments for 1 parameter"},
	}
	for _, tt := range tests {
		text := `
			#include "core.p4"
			header h { bit<8> a; }
			header_union un { h a; h b; }
			extern ext { ext(); }
			extern none { }
			extern abs { abs(); abstract void m(); }
			extern hold { hold(abs a); }
			void f(in bit<8> a) { }
			void over(in bit<8> a) { }
			void over(in bit<8> a, in bit<8> b) { }
			control only(in bit<8> a);
			control gen<T>(in T a) { apply { } }
			control needs(in bit<8> a)(bit<8> n) { apply { } }
			control c(inout bit<8> v, inout h x, inout un u, inout h[2] s) {
				ext() o;
				action plain(bit<8> a) { v = a; }
				action other(bit<8> a) { v = a; }
				action bound(inout bit<8> dst) { dst = 1; }
				LOCAL
				table t { actions = { ACTIONS } }
				apply { APPLY t.apply(); }
			}`
		texts := map[string]string{"apply": "", "local": "", "actions": "plain; bound(v);"}
		texts[tt.place] = strings.Replace(tt.text, "nosuch", "\nnosuch\n", 1) // one error is shown per line
		for place, s := range texts {
			text = strings.Replace(text, strings.ToUpper(place), s, 1)
		}
		got := errorsOf(t, strings.Replace(text, "size = { 1 }", "size = 1;", 1))
		has := func(s string) bool {
			return slices.ContainsFunc(got, func(e string) bool { return strings.Contains(e, s) })
		}
		if len(got) != 2 || !has(tt.want) || !has("nosuch is not declared") {
			t.Errorf("%s: %q; want the errors %q and \"nosuch is not declared\"", tt.text, got, tt.want)
		}
	}
}

// If a program has no errors, each of its expressions has a type, including types and
// the names of functions, actions and states.
func TestEveryExpressionHasAType(t *testing.T) {
	checkTypesOfAll(t, "calls", `
		#include "core.p4"
		extern ext { ext(bit<8> n); void m(in bit<8> a); }
		control sub()(bit<8> n) { apply { } }
		control c(inout bit<8> v, inout bit<8> w) {
			ext[3](1) array;
			ext(2) x;
			sub(3) s;
			action set(inout bit<8> dst, bit<8> n) { dst = n; }
			action nop() { }
			table one {
				key = { v : ternary; w : exact; }
				actions = { set(v); nop; }
				default_action = set(v, 4);
			}
			table two {
				key = { v : ternary; w : ternary; }
				actions = { nop; }
				const default_action = nop();
				const entries = { default : nop(); }
			}
			apply { one.apply(); two.apply(); set(v, 5); nop(); array[0].m(v); x.m(1); s.apply(); }
		}
		parser p(packet_in pkt, in bit<8> v, in bit<8> w) {
			state start { transition select(v, w) { (1, _): more; (2 &&& 3, 4 .. 5): accept; default: reject; } }
			state more { transition select(v) { 1: accept; _: reject; } }
		}`)
	archives, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(archives) == 0 {
		t.Fatalf("no archives: %v", err)
	}
	for _, path := range archives {
		a, err := txtar.ParseFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range a.Files {
			if strings.Contains(string(f.Data), "/* ERROR") {
				continue
			}
			checkTypesOfAll(t, f.Name, string(f.Data))
		}
	}
}

func checkTypesOfAll(t *testing.T, name, text string) {
	t.Helper()
	file, info := program(t, text)
	for _, d := range file.Decls {
		syntax.Inspect(d, func(n syntax.Node) bool {
			e, ok := n.(syntax.Expr)
			if !ok || info.Types[e].Type != nil {
				return true
			}
			if id, isName := n.(*syntax.Name); !isName || info.Uses[id] != nil {
				t.Errorf("%s: %s: %T %s has no type", name, e.Pos(), e, syntax.String(e))
			}
			return true
		})
		for call := range syntax.Each[*syntax.CallExpr](d) {
			if info.Calls[call] == nil {
				t.Errorf("%s: %s: no call for %s", name, call.Pos(), syntax.String(call))
			}
		}
	}
}

// One fault has one message: its consequences have none. Each program has
// exactly the messages that are listed, including warnings.
func TestMessages(t *testing.T) {
	tests := []struct{ text, want string }{
		{"control c() { nosuch(1) i;\napply { i.m(); } }", "1:15: nosuch is not declared"},
		{"struct two { bit<8> a; bit<8> b; }\nconst two x = {\nnosuch };", "3:1: nosuch is not declared"},
		{"struct two { bit<8> a; bit<8> b; }\nconst two x = {\na = 1,\na = 2 };", "4:1: field a is given twice"},
		{"void f(in bit<8>[2] a) { for (nosuch i in a) { } }", "1:31: nosuch is not declared"},
		{"const bit<8> a = k(1)(2);\nbit<8> g(in bit<8> x) { return x; }", "1:18: k is not declared"},
		// A select whose only case is default does not reject.
		{"parser p(in bit<8> x) { state start { transition select(x) { default: start; } } }", "1:8: parser p never reaches accept or reject"},
		{"parser p(in bit<8> x) { state start { transition select(x) { 1: start; } } }", ""},
		{"parser p(in bit<8> x) { state start { transition select(x) { 1: start; default: start; } } }", "1:8: parser p never reaches accept or reject"},
		// Only headers have isValid, and types have none.
		{"header h { bit<8> a; }\nvoid f() { bool b = h.isValid(); }", "2:23: h has no method isValid: its type is h"},
		{"struct h { bit<8> a; }\nvoid f(in h x) { bool b = x.isValid(); }", "2:29: h has no field isValid; it has a"},
		// A cast to a new type takes a value of its underlying type, or a plain number.
		{"type bit<8> id;\nconst id x = (id) 4w1;", "2:14: 4w1 has type bit<4> and cannot be cast to id"},
		{"type bit<8> id;\nconst id x = (id) 8w1;\nconst id y = (id) 1;\nconst id z = 1;", ""},
		{"type bool flag;\nconst flag x = (flag) 1;", "2:16: 1 has type int and cannot be cast to flag"},
		{"type bit<8> id;\nconst id x = 1;\nconst bit<8> y = x;", "3:18: x has type id, but the constant y needs bit<8>; cast it: (bit<8>)"},
		{"type bit<8> id;\nconst id x = 300;", "2:14: warning: 300 does not fit bit<8>: it becomes 44"},
		// A wrong name is reported once, where it stands.
		{"extern cells<T, I> { cells(bit<32> n); }\ncontrol c() { cells<nosuch, bit<8>>(4) r; apply { } }", "2:21: nosuch is not declared"},
		{"extern cells<T, I> { cells(bit<32> n); }\ncontrol c() { cells<bit<8>, nosuch>(4) r; apply { } }", "2:29: nosuch is not declared"},
		{"action f(in bit<8> x) { switch (nosuch) { 1: { } 2: { } } }", "1:33: nosuch is not declared"},
		{"action f(in bit<8> x) { switch (x) { nosuch: { } } }", "1:38: nosuch is not declared"},
		// Only constructors of parsers, controls and packages take blocks, and nothing takes a package.
		{"parser P(in bit<8> x);\nvoid f(P p) { }", "2:8: parameter p cannot have type P: only the constructors of parsers, controls and packages take such"},
		{"package P();\nextern void f(P p);", "2:15: parameter p cannot be a package"},
		// An amount of 0 shifts nothing.
		{"const bit<8> a = 8w1 << 0;\nbit<8> f(in bit<8> x) { return x >> 0; }", ""},
		{"bit<8> f(in bit<8> x) { return x >> -1; }", "1:32: x >> -1: the shift amount is negative, it is -1"},
		// The variable of a for loop takes elements that can be cast to its type.
		{"bit<16> f(in bit<8>[2] a) { bit<16> s = 0; for (bit<16> i in a) { s = s + i; } return s; }", ""},
		{"bool f(in bit<8>[2] a) { bool s = false; for (bool i in a) { s = i; } return s; }", "1:47: i has type bool, but the elements of a have type bit<8>"},
		// Strings are joined with ++, and + takes numbers.
		{"const string a = \"a\" + \"b\";", "1:18: strings are joined with ++"},
		{"const string a = \"a\" + 1;", "1:18: + needs numbers, but \"a\" has type string"},
		{"const string a = 1 + \"b\";", "1:18: + needs numbers, but \"b\" has type string"},
		{"const string a = \"a\" ++ 8w1;", "1:18: ++ joins bits or strings, but \"a\" has type string"},
		{"const string a = 8w1 ++ \"a\";", "1:18: ++ joins bits or strings, but \"a\" has type string"},
		{"const bit<8> a = true +\nnosuch;", "2:1: nosuch is not declared"},
		{"const bit<8> a = nosuch\n+ true;", "1:18: nosuch is not declared"},
		// Both sides of an assignment are checked.
		{"void f() { nosuch =\nmissing; }", "1:12: nosuch is not declared\ntest.p4:2:1: missing is not declared"},
		{"void f() { nosuch +=\nmissing; }", "1:12: nosuch is not declared\ntest.p4:2:1: missing is not declared"},
		{"void f(in bit<8> x) { x =\nmissing; }", "1:23: x cannot be assigned to: it is an in parameter\ntest.p4:2:1: missing is not declared"},
		// Numbers in masks and ranges get the width of the other side.
		{"#include \"core.p4\"\nparser p(packet_in q, in bit<16> x) { state start { transition select(x) {\n1 &&& 8w3: accept;\n} } }", "3:1: 1 has type bit<8>, but select needs bit<16>; cast it: (bit<16>)"},
		{"#include \"core.p4\"\nparser p(packet_in q, in bit<16> x) { state start { transition select(x) {\n8w1 .. 3: accept;\n} } }", "3:1: 8w1 has type bit<8>, but select needs bit<16>; cast it: (bit<16>)"},
		{"#include \"core.p4\"\nparser p(packet_in q, in bit<16> x) { state start { transition select(x) { 1 &&& 16w3: accept; 1 .. 3: reject; } } }", ""},
		// A wrong call shows the function's declaration with all type parameters.
		{"extern void f<T, U>(in T x, in U y);\nvoid g() {\nf(8w1); }", "3:1: f: the argument for y is missing; it is declared as f<T, U>(in T x, in U y)"},
		// The last index of a stack has 32 bits.
		{"#include \"core.p4\"\nheader h { bit<8> a; }\nparser p(packet_in q, out h[3] s, out bit<32> n, out bit<33> m) { state start { q.extract(s.next); n = s.lastIndex;\nm = s.lastIndex; transition accept; } }",
			"4:5: s.lastIndex has type bit<32>, but m needs bit<33>; cast it: (bit<33>)"},
		// The default action comes after the list of actions.
		{"control c() { action a() { } table t { actions = { a; } default_action = a; } apply { t.apply(); } }", ""},
		{"control c() { action a() { } table t { default_action = a; actions = { a; } } apply { t.apply(); } }", "1:36: table t has its default_action before the list of actions"},
		{"control c() { action a() { } table t {\ndefault_action = a;\nactions = { a; } } apply { t.apply(); } }", "1:36: table t has its default_action before the list of actions"},
		// Type arguments are inferred only from instances of the same declaration.
		{"extern a<T> { }\nextern b<T> { }\nextern void f<T>(a<T> x);\ncontrol c(b<bit<8>> y, a<bit<8>> z) { apply { f(z);\nf(y); } }",
			"5:1: the type argument T of f cannot be inferred from the arguments; write f<...>(...)"},
		{"extern a<T> { }\nextern void f<T>(a<T> x);\ncontrol c(bit<8> y) { apply {\nf(y); } }",
			"4:1: the type argument T of f cannot be inferred from the arguments; write f<...>(...)"},
		{"package p<T>();\npackage q<T>();\npackage m<T>(p<T> x);\np<bit<8>>() a;\nq<bit<8>>() b;\nm(a) c;\nm(b) d;",
			"7:1: the type argument T of m cannot be inferred from the arguments; write m<...>(...)"},
		// An inout argument is read and then written.
		{"void g(inout bit<8> x) { }\nbit<8> f() {\nbit<8> v;\ng(v);\nreturn v; }", "4:3: warning: v is read before anything is written to it"},
		{"void g(out bit<8> x) { x = 1; }\nbit<8> f() {\nbit<8> v;\ng(v);\nreturn v; }", ""},
		// A tuple has no initial value if none of its elements has.
		{"bit<8> f() {\ntuple<bit<8>> v;\nreturn v[0]; }", "3:8: warning: v is read before anything is written to it"},
		{"header h { bit<8> x; }\nbit<8> f() {\ntuple<bit<8>, h> v;\nreturn v[0]; }", ""},
		// An index type that is left open takes numbers that are passed in, and nothing else.
		{"extern R<T, I> { R(); T read(in I i); }\ncontrol c(out bit<8> x) { R<bit<8>, _>() r; apply {\nx = r.read(8w1); } }", "3:12: warning: parameter i of R.read has no type, so 8w1 is taken as it is; p4c wants a type in place of _"},
		{"extern R<T, I> { R(); T read(in I i); }\ncontrol c(out bit<8> x) { R<bit<8>, _>() r; apply {\nx = r.read(true); } }", "3:12: true cannot be passed to parameter i of R.read: its type is not known"},
		{"extern R<T, I> { R(); void read(out I i); }\ncontrol c(out bit<8> x) { R<bit<8>, _>() r; apply {\nr.read(x); } }", "3:8: x cannot be passed to parameter i of R.read: its type is not known"},
		// A change in a loop writes the variable, so later reads are no mistake.
		{"bit<8> f() {\nbit<8> v;\nfor (bit<8> i in 8w0 .. 3) { v += i; }\nreturn v; }", ""},
		{"void f(out bit<8> v) {\nfor (bit<8> i in 8w0 .. 3) { v += i; } }", ""},
		// A declaration may be repeated only with the same signature.
		{"void g(in bit<8> x) { }\nvoid g(in bit<8> x) { }", "2:6: warning: g is declared twice with the same parameters; the first is at test.p4:1:1"},
		{"void g(in bit<8> x) { }\nvoid g(in bit<4> x) { }", "2:6: g is declared twice with the same parameters; the first is at test.p4:1:1"},
		{"extern void g<T>(in T x);\nextern void g<U>(in U x);", "2:13: warning: g is declared twice with the same parameters; the first is at test.p4:1:1"},
		{"extern void g<T>(in bit<8> x);\nextern void g(in bit<8> x);", "2:13: g is declared twice with the same parameters; the first is at test.p4:1:1"},
		{"extern T g<T>(in bit<8> x);\nextern bit<8> g<U>(in bit<8> x);", "2:15: g is declared twice with the same parameters; the first is at test.p4:1:1"},
		// Lists of numbers are compared if one can have the type of the other.
		{"const bool a = { 1 } == { 8w1 };\nconst bool b = { 8w1 } == { 1 };\nconst bool c = { 8w1, 1 } == { 1, 8w1 };", ""},
		{"bool f(in tuple<bit<8>> x) { return { 1 } == x || x == { 1 }; }", ""},
		{"bool f(in tuple<bit<8>> x) { return { true } == x; }", "1:37: {true} has type tuple<bool> and cannot be compared with x, which has type tuple<bit<8>>"},
		{"bool f(in tuple<bit<8>> x) { return x == { true }; }", "1:37: x has type tuple<bit<8>> and cannot be compared with {true}, which has type tuple<bool>"},
	}
	for _, tt := range tests {
		var got []string
		_, errs := check(t, "test.p4", []byte(tt.text))
		for _, e := range errs {
			got = append(got, e.Error())
		}
		if strings.TrimPrefix(strings.Join(got, "\n"), "test.p4:") != tt.want {
			t.Errorf("%s\nhas %q, want %q", tt.text, got, tt.want)
		}
	}
}

// A program that has many misspelled names gets suggestions for the first ones only.
func TestSuggestionsAreBounded(t *testing.T) {
	c := &checker{compared: 1<<20 - 3}
	names := words("alpha", "beta", "gamma")
	if got := c.suggest("alpa", names); got != "; did you mean alpha?" {
		t.Errorf("at the limit: %q", got)
	}
	for range 2 {
		if got := c.suggest("alpa", names); got != "" {
			t.Errorf("above the limit: %q", got)
		}
	}
	list := []string{"aa", "bb", "cc", "dd", "ee", "ff", "gg", "hh"}
	for n, want := range map[int]string{0: "", 1: "; it has aa", 2: "; it has aa and bb", 8: "; it has aa, bb, cc, dd, ee, ff, gg and hh"} {
		if got := new(checker).suggest("nosuchname", words(list[:n]...)); got != want {
			t.Errorf("%d names: %q, want %q", n, got, want)
		}
	}
	if got := new(checker).suggest("nosuchname", words(append(list, "ii")...)); got != "" {
		t.Errorf("nine names: %q, want none", got)
	}
}

// Each instance of a generic type costs steps for its fields, methods and parameters.
func TestCostOfInstances(t *testing.T) {
	p := &TypeParam{Name: "T"}
	method := func(params int) *Method {
		return &Method{Type: &Func{Params: slices.Repeat([]*Object{{Type: p}}, params), Result: Void}}
	}
	tests := []struct {
		self Type
		want int
	}{
		{&Struct{Fields: slices.Repeat([]Field{{Type: p}}, 3)}, 12},
		{&Extern{Methods: []*Method{method(2), method(0)}}, 16 + 2*8 + 16},
	}
	for _, tt := range tests {
		got := 0
		g := &generic{params: []*TypeParam{p}, self: tt.self, spend: func(n int) { got += n }}
		namedOf(tt.self).generic, namedOf(tt.self).Args = g, []Type{p}
		for range 2 { // the second use is of the same instance
			g.instance([]Type{Bool})
		}
		if got != tt.want {
			t.Errorf("an instance of %T costs %d steps, want %d", tt.self, got, tt.want)
		}
	}
	for args, want := range map[int]int{0: 2, 1: 1, 2: 0, 3: 0} {
		if got := leftOut(method(2).Type, make([]*syntax.Arg, args)); got != want {
			t.Errorf("%d arguments leave out %d of 2 parameters, want %d", args, got, want)
		}
	}
}

// Comparisons, && and ||, and ?: with constant operands have constant values.
func TestConstantsOfConditions(t *testing.T) {
	_, info := program(t, `
		const bool a = true && false;
		const bool b = true && true;
		const bool c = false || false;
		const bool d = false || true;
		const bool e = false && true;
		const bool f = true || false;
		const bool g = 8w3 < 4 && 8w3 >= 3;
		const bool h = 8w3 > 3;
		const bit<8> i = true ? 1 : 2;
		const bit<8> j = false ? 1 : 2;
		const bit<8> k = 3 == 4 ? 8w1 : 2;`)
	for name, want := range map[string]Value{
		"a": false, "b": true, "c": false, "d": true, "e": false, "f": true, "g": true, "h": false, "i": big.NewInt(1), "j": big.NewInt(2), "k": big.NewInt(2),
	} {
		if o := info.Top[name]; o.Value == nil || !EqualValues(o.Value, want) {
			t.Errorf("%s is %v, want %v", name, o.Value, want)
		}
	}
}

// The call of a default action contains its arguments in the order of the parameters.
func TestDefaultActionArguments(t *testing.T) {
	for value, want := range map[string]string{
		"set(m, 5)": "m 5", "set(v = 5, d = m)": "m 5", "set(m, 2 + 3)": "m 2 + 3", "(set(m, 5))": "m 5",
	} {
		f, info := program(t, `
			control c(inout bit<8> m) {
				action set(inout bit<8> d, bit<8> v) { d = v; }
				table t { actions = { set(m); } default_action = `+value+`; }
				apply { t.apply(); }
			}`)
		for _, d := range f.Decls {
			for table := range syntax.Each[*syntax.TableDecl](d) {
				call := info.ActionRefs[table.Props[0].Value]
				var args []string
				for _, a := range call.Args {
					args = append(args, syntax.String(a))
				}
				if got := strings.Join(args, " "); got != want {
					t.Errorf("%s has the arguments %q, want %q", value, got, want)
				}
			}
		}
	}
}

// An instance that is applied is the callee; a type that is applied has none. The type
// arguments of a generic parser or control come from the parameter of the package.
func TestAppliedInstances(t *testing.T) {
	f, info := program(t, `
		#include "core.p4"
		header h { bit<8> a; }
		control inner(inout bit<8> v) { apply { v = 1; } }
		control C<T, U>(in T x, inout U y);
		package pk<T, U>(C<T, U> c);
		control generic<T, U>(in T x, inout U y) { apply { } }
		control outer(in h x, inout bit<8> v) {
			inner() sub;
			apply { sub.apply(v); inner.apply(v); }
		}
		pk<h, bit<8>>(generic()) main;`)
	for text, want := range map[string]string{"sub.apply(v)": "sub", "inner.apply(v)": ""} {
		call := info.Calls[exprs(f, text)[0].(*syntax.CallExpr)]
		if call == nil || call.Kind != ApplyCall || (call.Callee == nil) != (want == "") || call.Callee != nil && call.Callee.Name != want {
			t.Errorf("%s: %+v, want the callee %q", text, call, want)
		}
	}
	call := info.Calls[exprs(f, "generic()")[0].(*syntax.CallExpr)]
	if call == nil || joinTypes(call.TypeArgs) != "h, bit<8>" || call.Result.String() != "generic<h, bit<8>>" {
		t.Errorf("the instance of generic is %+v", call)
	}
	if tv := info.Types[exprs(f, "generic()")[0]]; tv.Type.String() != "generic<h, bit<8>>" {
		t.Errorf("the instance of generic has type %s", tv.Type)
	}
}
