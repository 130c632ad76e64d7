package types

import (
	"fmt"
	"math/big"
	"os"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/p4lb/p4lb/internal/p4/syntax"
)

// program checks a program without errors and returns its tree and its side tables.
func program(t *testing.T, text string) (*syntax.File, *Info) {
	t.Helper()
	core, err := os.ReadFile("testdata/core.p4")
	if err != nil {
		t.Fatal(err)
	}
	file := parse(t, map[string]string{"test.p4": text, "core.p4": string(core)})
	info, errs := Check(file)
	for _, e := range errs {
		if !e.Warning {
			t.Fatalf("unexpected: %v", e)
		}
	}
	return file, info
}

// exprs finds the expressions of a file that are written like text.
func exprs(f *syntax.File, text string) []syntax.Expr {
	var found []syntax.Expr
	for _, d := range f.Decls {
		syntax.Inspect(d, func(n syntax.Node) bool {
			if e, ok := n.(syntax.Expr); ok && syntax.String(e) == text {
				found = append(found, e)
			}
			return true
		})
	}
	return found
}

// Each expression has the type that its context gives it and, where it is
// constant, its value.
func TestTypes(t *testing.T) {
	f, info := program(t, `
		header h { bit<8> a; bit<16> b; }
		struct s { h x; bit<4> y; }
		enum bit<4> e { A = 9 }
		const bit<8> k = 2 + 3 * 4;
		void f(out s v, inout h w, in bit<8> i) {
			v = { { 1, 2 }, 13 };
			w = { b = 5, a = (7) };
			v.y = e.A;
			w.a = i + 11;
			w.a = w.a << 6;
			w.b = (bit<16>)i;
		}`)
	tests := []struct{ expr, typ, value string }{
		{"{{1, 2}, 13}", "s", "agg"},
		{"{1, 2}", "h", "agg"},
		{"13", "bit<4>", "13"},
		{"2 + 3 * 4", "bit<8>", "14"},
		{"{b = 5, a = (7)}", "h", "agg"},
		{"5", "bit<16>", "5"},
		{"(7)", "bit<8>", "7"},
		{"7", "bit<8>", "7"},
		{"e.A", "bit<4>", "9"},
		{"11", "bit<8>", "11"},
		{"6", "int", "6"},
		{"i + 11", "bit<8>", ""},
		{"(bit<16>)i", "bit<16>", ""},
		{"v.y", "bit<4>", ""},
	}
	for _, tt := range tests {
		es := exprs(f, tt.expr)
		if len(es) == 0 {
			t.Errorf("%s is not in the program", tt.expr)
			continue
		}
		tv := info.Types[es[0]]
		if tv.Type == nil || tv.Type.String() != tt.typ {
			t.Errorf("%s has type %v, want %s", tt.expr, tv.Type, tt.typ)
		}
		got := ""
		switch v := tv.Value.(type) {
		case *big.Int:
			got = v.String()
		case *AggregateValue:
			got = "agg"
		}
		if got != tt.value {
			t.Errorf("%s has value %v, want %q", tt.expr, tv.Value, tt.value)
		}
	}
	agg := info.Types[exprs(f, "{b = 5, a = (7)}")[0]].Value
	want := &AggregateValue{Elems: []Value{big.NewInt(7), big.NewInt(5)}}
	if !EqualValues(agg, want) {
		t.Errorf("a record's elements are not in the order of the fields: %v", agg)
	}
}

// Call.Args has one argument for each parameter, in the order of the parameters.
func TestCalls(t *testing.T) {
	f, info := program(t, `
		extern void g(in bit<8> a, in bit<8> b = 3, out bit<8> c);
		extern reg<T> { reg(bit<32> n); T read(in bit<32> i); }
		T same<T>(in T x) { return x; }
		control inner(inout bit<8> v)(bit<8> n) { apply { v = n; } }
		control c(inout bit<8> x) {
			reg<bit<8>>(16) r;
			inner(4) sub;
			action set(bit<8> v) { x = v; }
			apply {
				g(c = x, a = 1);
				g(1, 2, _);
				x = same(x) + r.read(1);
				sub.apply(x);
				set(7);
			}
		}`)
	tests := []struct {
		call   string
		kind   CallKind
		args   []string
		result string
		targs  string
	}{
		{"g(c = x, a = 1)", ExternCall, []string{"1", "", "x"}, "void", ""},
		{"g(1, 2, _)", ExternCall, []string{"1", "2", ""}, "void", ""},
		{"same(x)", FuncCall, []string{"x"}, "bit<8>", "bit<8>"},
		{"r.read(1)", MethodCall, []string{"1"}, "bit<8>", ""},
		{"sub.apply(x)", ApplyCall, []string{"x"}, "void", ""},
		{"set(7)", ActionCall, []string{"7"}, "void", ""},
	}
	for _, tt := range tests {
		es := exprs(f, tt.call)
		if len(es) != 1 {
			t.Fatalf("%s is %d times in the program", tt.call, len(es))
		}
		call := info.Calls[es[0].(*syntax.CallExpr)]
		if call == nil {
			t.Errorf("%s: no call", tt.call)
			continue
		}
		if call.Kind != tt.kind || call.Result.String() != tt.result || joinTypes(call.TypeArgs) != tt.targs {
			t.Errorf("%s: kind %d result %s type arguments %s", tt.call, call.Kind, call.Result, joinTypes(call.TypeArgs))
		}
		var args []string
		for _, a := range call.Args {
			if a == nil {
				args = append(args, "")
			} else {
				args = append(args, syntax.String(a))
			}
		}
		if fmt.Sprint(args) != fmt.Sprint(tt.args) {
			t.Errorf("%s: arguments %q, want %q", tt.call, args, tt.args)
		}
	}
	if call := info.Calls[exprs(f, "r.read(1)")[0].(*syntax.CallExpr)]; call.Callee == nil || call.Callee.Name != "r" || call.Method.Name != "read" {
		t.Errorf("r.read: callee %v method %v", call.Callee, call.Method)
	}
	for d, call := range info.Insts {
		if d.Name.Value == "r" && call.Result.String() != "reg<bit<8>>" {
			t.Errorf("the instance r has type %s", call.Result)
		}
		if len(call.Args) != 1 || call.Args[0] == nil {
			t.Errorf("the instance %s has arguments %v", d.Name.Value, call.Args)
		}
	}
}

// Actions in tables: in the list, in entries, and as default_action with and
// without parentheses.
func TestActionRefs(t *testing.T) {
	f, info := program(t, `
		#include "core.p4"
		control c(inout bit<8> m) {
			action set(inout bit<8> d, bit<8> v) { d = v; }
			action nop() { }
			table t {
				key = { m : exact; }
				actions = { set(m); nop; }
				default_action = nop;
				const entries = { 1 : set(m, 5); }
			}
			apply {
				switch (t.apply().action_run) { set: { } }
			}
		}`)
	var td *syntax.TableDecl
	var label *syntax.Name
	for _, d := range f.Decls {
		syntax.Inspect(d, func(n syntax.Node) bool {
			switch n := n.(type) {
			case *syntax.TableDecl:
				td = n
			case *syntax.SwitchCase:
				label = n.Label.(*syntax.Name)
			}
			return true
		})
	}
	listed := info.ActionRefs[td.Actions.Refs[0]]
	if listed == nil || len(listed.Args) != 2 || listed.Args[0] == nil || listed.Args[1] != nil {
		t.Errorf("set(m) in the list: %+v, want the argument m and none of the control plane", listed)
	}
	entry := info.ActionRefs[td.Entries.List[0].Action]
	if entry == nil || len(entry.Args) != 2 || entry.Args[1] == nil {
		t.Fatalf("set(m, 5) in the entry: %+v", entry)
	}
	if tv := info.Types[entry.Args[1]]; tv.Type.String() != "bit<8>" {
		t.Errorf("the 5 of the entry has type %s, want bit<8>", tv.Type)
	}
	if tv := info.Types[td.Entries.List[0].Keys[0]]; tv.Type.String() != "bit<8>" {
		t.Errorf("the key of the entry has type %s, want bit<8>", tv.Type)
	}
	dflt := info.ActionRefs[td.Props[0].Value]
	if dflt == nil || dflt.Callee.Name != "nop" {
		t.Errorf("default_action = nop: %+v", dflt)
	}
	if o := info.Uses[label]; o == nil || o != listed.Callee {
		t.Errorf("the label set stands for %v, want the action", o)
	}
}

// What depends on a constructor parameter is known at compile time and has no value.
func TestConstructorParameters(t *testing.T) {
	f, info := program(t, `
		extern reg { reg(bit<32> n); }
		control c(inout bit<8> m)(bit<32> n) {
			reg(n * 2) r;
			const bit<32> k = n + 1;
			apply { m = (bit<8>)k; }
		}`)
	for _, s := range []string{"n * 2", "n + 1"} {
		if tv := info.Types[exprs(f, s)[0]]; tv.Value != nil || tv.Type.String() != "bit<32>" {
			t.Errorf("%s: type %s value %v, want bit<32> and no value", s, tv.Type, tv.Value)
		}
	}
}

func TestSubst(t *testing.T) {
	p, q := &TypeParam{Name: "T"}, &TypeParam{Name: "U"}
	m := map[*TypeParam]Type{p: &Bits{Width: 8}, q: Bool}
	f := &Func{TypeParams: []*TypeParam{p}, Params: []*Object{{Kind: ParamObj, Name: "x", Type: &Stack{Elem: p, Size: 2}}}, Result: &Tuple{Elems: []Type{p, q}}}
	got := Subst(f, m).(*Func)
	if s := got.String() + " " + got.Result.String(); s != "(bit<8>[2] x) tuple<bit<8>, bool>" {
		t.Errorf("substituted: %s", s)
	}
	if f.Params[0].Type.String() != "T[2]" {
		t.Errorf("Subst changed its argument: %s", f)
	}
	plain := &Stack{Elem: Bool, Size: 3}
	if Subst(plain, m) != Type(plain) {
		t.Error("a type without parameters is copied")
	}
}

// Instances of a generic type with the same arguments are the same type.
func TestInstancesAreShared(t *testing.T) {
	f, info := program(t, `
		struct pair<T> { T a; T b; }
		void f(in pair<bit<8>> x, in pair<bit<8>> y, in pair<bool> z) { }`)
	var ts []Type
	for _, d := range f.Decls {
		if fd, ok := d.(*syntax.FuncDecl); ok {
			for _, p := range fd.Params {
				ts = append(ts, info.Defs[p].Type)
			}
		}
	}
	if ts[0] != ts[1] || identical(ts[0], ts[2]) {
		t.Errorf("pair<bit<8>> and pair<bool>: %v", ts)
	}
	if w, ok := WidthOf(ts[0]); !ok || w != 16 {
		t.Errorf("the width of pair<bit<8>> is %d", w)
	}
}

// The checker continues after errors: the Info contains every expression that was
// checked.
func TestInfoOnErrors(t *testing.T) {
	f := parse(t, map[string]string{"test.p4": `
		const bit<8> a = nothing;
		const bit<8> b = a + 1;
		bit<8> f(in bit<8> x) { return y(x, a) + b; }`})
	info, errs := Check(f)
	if info == nil || len(errs) != 2 {
		t.Fatalf("info %v, errors %v; want those of nothing and y alone", info, errs)
	}
	if info.Top["b"] == nil || info.Top["f"] == nil {
		t.Error("the declarations after the error are missing")
	}
}

// FuzzCheck passes programs to the checker, which must not panic on any program that
// parses.
func FuzzCheck(f *testing.F) {
	archives, err := os.ReadDir("testdata")
	if err != nil {
		f.Fatal(err)
	}
	for _, a := range archives {
		if !strings.HasSuffix(a.Name(), ".txtar") {
			continue
		}
		ar, err := txtar.ParseFile("testdata/" + a.Name())
		if err != nil {
			f.Fatal(err)
		}
		for _, file := range ar.Files {
			f.Add(file.Data)
		}
	}
	core, err := os.ReadFile("testdata/core.p4")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		file, _ := parseFiles(map[string]string{"fuzz.p4": string(text), "core.p4": string(core)}, "fuzz.p4")
		if file == nil {
			return
		}
		if info, _ := Check(file); info == nil {
			t.Fatal("no info")
		}
	})
}
