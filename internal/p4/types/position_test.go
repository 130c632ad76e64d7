package types

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/p4lb/p4lb/internal/p4/syntax"
)

// TestPositions checks where a diagnostic points. The mark « stands before the place.
func TestPositions(t *testing.T) {
	tests := []struct{ program, message string }{
		{"const bit<8> a = 1 + «nothing;", "nothing is not declared"},
		{"const bit<8> a = «4w1 + 4w2;", "4w1 + 4w2 has type bit<4>"},
		{"const «void_t a = 1;", "void_t is not declared"},
		{"const bit<8> a = 1;\nconst bit<8> «a = 2;", "a is declared twice; the first is the constant at test.p4:1:1"},
		{"enum bit<2> e { A = 1, «B = 4 }", "the value 4 of B does not fit bit<2>"},
		{"enum bit<2> e { A = «3w1 }", "3w1 has type bit<3>"},
		{"enum «bool e { A = true }", "an enum can be represented by"},
		{"header h { bit<8> a; «string b; }", "field b of header h cannot have type string"},
		{"struct s { bit<8> a; bit<8> «a; }", "s has two fields a"},
		{"typedef «bit<(-1)> t;", "the width of a type cannot be negative"},
		{"typedef bit<(«1 + true)> t;", "+ needs numbers"},
		{"header h { bit<8> x; }\ntypedef h[«-1] t;", "the size of an array cannot be negative"},
		{"void f(in bit<8> x) { «x = 1; }", "x cannot be assigned to"},
		{"void f(inout bit<8> x) { x = «true; }", "true has type bool"},
		{"void f(inout bit<8> x) { x[«8:0] = 1; }", "bit 8 is outside"},
		{"void f(inout bit<8> x) { x[7:«-1] = 1; }", "bit -1 is outside"},
		{"void f(inout bit<8> x) { «x += true; }", "+ needs numbers, but true has type bool"},
		{"void f(inout bit<8> x) { «x /= 0; }", "division by zero"},
		{"void f() { «break; }", "break can be used only in a for loop"},
		{"void f() { «exit; }", "exit cannot be used in a function"},
		{"bit<8> «f() { }", "f must return a value"},
		{"bit<8> f() { «return; }", "return needs a value"},
		{"void f(in bit<8> x) { switch (x) { 1: { } «1: { } } }", "the label 1 comes twice"},
		{"void f(in bit<8> x) { switch (x) { default: { } «default: { } } }", "switch has two default labels"},
		{"void f(in varbit<8> x) { switch («x) { default: { } } }", "switch cannot be made on"},
		{"void f(in bit<8> x) { for (bit<8> i in «x) { } }", "for runs through"},
		{"void f(in bit<8> x) { for («bool i in 1 .. 2) { } }", "i runs through a range"},
		{"void f() { int «x = 1; }", "x cannot be a variable of type int"},
		{"void g(in bit<8> x) { }\nvoid f(in bit<8> x) { g(x, «x); }", "there are 2 arguments for 1 parameter"},
		{"void g(in bit<8> x) { }\nvoid f(in bit<8> x) { «g(); }", "the argument for x is missing"},
		{"void g(in bit<8> x) { }\nvoid f(in bit<8> x) { g(«y = x); }", "there is no parameter y"},
		{"void g(out bit<8> x) { x = 1; }\nvoid f(in bit<8> x) { g(«x); }", "x cannot be written"},
		{"struct s { bit<8> a; bit<8> b; }\nconst s x = «{ 1 };", "it has 2 fields, not 1"},
		{"struct s { bit<8> a; bool b; }\nconst s x = { 1, «2 };", "field b needs bool"},
		{"struct s { bit<8> a; bool b; }\nconst s x = { a = 1, «c = 2 };", "s has no field c"},
		{"struct s { bit<8> a; bool b; }\nvoid f(in s x) { bit<8> y = x.«c; }", "s has no field c"},
		{"enum e { A }\nconst e x = e.«B;", "enum e has no member B"},
		{"const tuple<bit<8>> t = { 1 };\nconst bit<8> x = t[«1];", "index 1 is outside of the tuple"},
		{"parser «p(in bit<8> x) { state begin { transition accept; } }", "parser p has no state start"},
		{"parser p(in bit<8> x) { state start { transition «nosuch; } }", "nosuch is not declared"},
		{"parser p(in bit<8> x) { state start { transition select(x) { «true: accept; } } }", "true has type bool"},
		{"parser p(in bit<8> x) { state start { transition select(x) { «(1, 2, 3): accept; } } }", "the key has 3 elements"},
		{"control c() { action a() { } table «t { actions = { a; } } apply { } }", "table t has no default_action"},
		{"control c() { action a() { } table t { actions = { a; «a; } default_action = a; } apply { } }", "the action a is listed twice"},
		{"control c() { action a() { } table t { actions = { a; } default_action = «b; } apply { } }", "b is not declared"},
		{"control c() { action a() { } table t { actions = { a; } default_action = a; size = «-1; } apply { } }", "the size of a table must be"},
		{"control c() { action a() { } table t { actions = { a; } default_action = a; size = 1; «size = 1; } apply { } }", "has the property size twice"},
		{"control c() { bit<8> «x; apply { } }", "warning: variable x is never used"},
		{"void f(out bit<8> y) { bit<8> x; y = «x; }", "warning: x is read before anything is written to it"},
		{"control c() { action a(out bit<8> «y) { } apply { bit<8> z; a(z); } }", "warning: nothing is written to the out parameter y"},
		{"void f(out bit<8> «y) { }", "warning: nothing is written to the out parameter y"},
		{"const bit<8> x = «300;", "warning: 300 does not fit bit<8>"},
		{"const bit<8> x = 1 + «8w300;", "warning: 8w300 does not fit bit<8>"},
		{"@name(\"a\") «@name(\"b\") struct s { bit<8> x; }", "warning: @name comes twice"},
		{"«@name(3) struct s { bit<8> x; }", "@name needs one string"},
		{"extern e { e(); void f(in bit<8> a); «void f(in bit<4> a); }", "e.f is declared twice"},
		{"extern e { e(); «bit<8> e(); }", "a constructor has no return type"},
		{"control C();\nextern e { e(); void f(«C c); }", "parameter c cannot have type C"},
	}
	for _, tt := range tests {
		before, _, _ := strings.Cut(tt.program, "«")
		line := 1 + strings.Count(before, "\n")
		col := len(before) - strings.LastIndexByte(before, '\n')
		want := fmt.Sprintf("test.p4:%d:%d: ", line, col)
		_, errs := check(t, "test.p4", []byte(strings.Replace(tt.program, "«", "", 1)))
		found := false
		for _, e := range errs {
			found = found || strings.HasPrefix(e.Error(), want+tt.message) || strings.HasPrefix(e.Error(), want) && strings.Contains(e.Error(), tt.message)
		}
		if !found {
			t.Errorf("%s\n: %v, want %s%s", tt.program, errs, want, tt.message)
		}
	}
}

// Uses of deprecated declarations of another file have a warning with the reason. Uses
// in the file of the declaration have none.
func TestDeprecated(t *testing.T) {
	long := strings.Repeat("é", 300) // 600 bytes
	lib := `
@deprecated("use new_const") const bit<8> old_const = 1;
@deprecated("use new_type") typedef bit<8> old_type;
@deprecated struct old_struct { bit<8> x; }
@deprecated("` + long + `") enum old_enum { A }
@deprecated("use run2") extern void old_run();
extern ext { ext(); @deprecated("use go2") void go(); void go2(); }
@deprecated("use c2") control old_control() { apply { } }
@deprecated("use p2") parser old_parser() { state start { transition accept; } }
@deprecated("use ext") extern old_ext { old_ext(); }
@deprecated("use a2") action old_action() { }
const bit<8> fine = old_const;
`
	main := `#include "lib.p4"
void f(in old_type a, ext e) {
	bit<8> b = old_const;
	old_struct c;
	old_enum d;
	old_run();
	e.go();
	e.go2();
	b = a + c.x;
	b = fine;
	d = d;
}
control c() {
	old_control() o;
	old_ext() x;
	apply { o.apply(); old_action(); }
}
parser p() { old_parser() o; state start { o.apply(); transition accept; } }
`
	fsys := fstest.MapFS{"main.p4": {Data: []byte(main)}, "lib.p4": {Data: []byte(lib)}}
	file, errs := syntax.Parse(fsys, "main.p4", syntax.Options{})
	if file == nil {
		t.Fatal(errs)
	}
	_, errs = Check(file)
	var got []string
	for _, e := range errs {
		if strings.Contains(e.Msg, "deprecated") {
			got = append(got, fmt.Sprintf("%s:%d:%d %s", e.Pos.File(), e.Pos.Line(), e.Pos.Col(), e.Msg))
		}
	}
	want := []string{
		"main.p4:2:11 old_type is deprecated: use new_type",
		"main.p4:3:13 old_const is deprecated: use new_const",
		"main.p4:4:2 old_struct is deprecated",
		"main.p4:5:2 old_enum is deprecated: " + strings.Repeat("é", 200) + "…",
		"main.p4:6:2 old_run is deprecated: use run2",
		"main.p4:7:4 ext.go is deprecated: use go2",
		"main.p4:14:2 old_control is deprecated: use c2",
		"main.p4:15:2 old_ext is deprecated: use ext",
		"main.p4:16:21 old_action is deprecated: use a2",
		"main.p4:18:14 old_parser is deprecated: use p2",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// Every expression of a loop, a switch and a conditional has its type.
func TestTypesOfStatements(t *testing.T) {
	f, info := program(t, `
		enum e { A, B }
		bit<8> f(in bit<8> n, in e x, inout bit<4> y) {
			bit<8> s = 0;
			for (bit<8> i = 11; i < 12; i = i + 13, s = s + 14) { s = s + 15; }
			for (bit<8> j in 16 .. n + 17) { s = j + 18; }
			switch (n) { 19: { s = 20; } default: { s = 21; } }
			switch (x) { e.A: { y = 9; } e.B: { } }
			if (n == 22) { s = 23; } else { s = 24; }
			s += 25;
			s <<= 2;
			y = n == 26 ? y : 6;
			return s + 27;
		}`)
	for _, n := range []string{"11", "12", "13", "14", "15", "16", "17", "18", "19", "20", "21", "22", "23", "24", "26", "27"} {
		for _, e := range exprs(f, n) {
			if tv := info.Types[e]; tv.Type == nil || tv.Type.String() != "bit<8>" {
				t.Errorf("%s has type %v, want bit<8>", n, tv.Type)
			}
		}
	}
	for _, n := range []string{"9", "6"} {
		if tv := info.Types[exprs(f, n)[0]]; tv.Type == nil || tv.Type.String() != "bit<4>" {
			t.Errorf("%s has type %v, want bit<4>", n, tv.Type)
		}
	}
	// Every name stands for an object, and each expression has a type.
	for _, d := range f.Decls {
		fd, ok := d.(*syntax.FuncDecl)
		if !ok {
			continue
		}
		syntax.Inspect(fd.Body, func(n syntax.Node) bool {
			if e, ok := n.(syntax.Expr); ok && info.Types[e].Type == nil && info.Defs[n] == nil {
				if name, ok := n.(*syntax.Name); !ok || info.Uses[name] != nil {
					t.Errorf("%s at %s has no type", syntax.String(e), e.Pos())
				}
			}
			return true
		})
	}
}
