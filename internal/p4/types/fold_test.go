package types

import (
	"math/big"
	"testing"

	"github.com/p4lb/p4lb/internal/p4/syntax"
)

// Fold computes constants like the lowering: values of declared types and of enums with
// a representation are computed as bits. Section 8 of the specification gives the values.
func TestFold(t *testing.T) {
	id := &New{Name: "id", Underlying: u(8), base: u(8)}
	kind := &Enum{Name: "kind", Repr: &Bits{Width: 4}}
	plain := &Enum{Name: "plain"}
	tests := []struct {
		op     syntax.Operator
		x, y   int64
		xt, yt Type
		want   any // an int, a bool or nil
	}{
		{syntax.Eql, 3, 3, u(8), u(8), true},
		{syntax.Eql, 3, 4, u(8), u(8), false},
		{syntax.Neq, 3, 3, u(8), u(8), false},
		{syntax.Neq, 3, 4, Int, Int, true},
		{syntax.Lss, 3, 3, u(8), u(8), false},
		{syntax.Lss, -4, 3, s(8), s(8), true},
		{syntax.Leq, 3, 3, u(8), u(8), true},
		{syntax.Leq, 4, 3, u(8), u(8), false},
		{syntax.Gtr, 3, 3, u(8), u(8), false},
		{syntax.Gtr, 4, 3, u(8), u(8), true},
		{syntax.Geq, 3, 3, u(8), u(8), true},
		{syntax.Geq, 2, 3, u(8), u(8), false},
		{syntax.Add, 250, 10, u(8), u(8), 4},
		{syntax.Add, 250, 10, id, id, 4},
		{syntax.Add, 15, 3, kind, kind, 2},
		{syntax.Add, 250, 10, Int, Int, 260},
		{syntax.SatAdd, 250, 3, u(8), u(8), 253},
		{syntax.SatAdd, 250, 6, u(8), u(8), 255},
		{syntax.SatSub, 250, 251, u(8), u(8), 0},
		{syntax.SatSub, -120, 9, s(8), s(8), -128},
		{syntax.SatSub, -120, 8, s(8), s(8), -128},
		{syntax.SatSub, -120, 7, s(8), s(8), -127},
		{syntax.Div, 7, 2, u(8), u(8), 3},
		{syntax.Div, 7, 0, u(8), u(8), nil},
		{syntax.Mod, 7, 0, Int, Int, nil},
		{syntax.Mod, 7, -2, Int, Int, nil},
		{syntax.Div, -7, 2, Int, Int, nil},
		{syntax.Shl, 0x81, 1, u(8), u(3), 2},
		{syntax.Shl, 0x9, 1, kind, Int, 2},
		{syntax.Shr, -128, 7, s(8), u(3), -1},
		{syntax.Shr, -128, 200, s(8), u(8), -1},
		{syntax.Shl, 1, -1, u(8), Int, nil},
		{syntax.Concat, 0xA, 0xB, u(4), u(4), 0xAB},
		{syntax.Concat, -1, 0, s(4), u(4), -16},
		{syntax.Concat, 0xA, 0xB, kind, id, 0xA0B},
		{syntax.Concat, 1, 1, Int, u(4), nil},
		{syntax.Concat, 1, 1, u(4), plain, nil},
		{syntax.Xor, 0xF, 0x5, kind, kind, 0xA},
	}
	for _, tt := range tests {
		got := Fold(tt.op, big.NewInt(tt.x), big.NewInt(tt.y), tt.xt, tt.yt)
		ok := false
		switch want := tt.want.(type) {
		case int:
			n, isNumber := got.(*big.Int)
			ok = isNumber && n.Int64() == int64(want)
		default:
			ok = got == want
		}
		if !ok {
			t.Errorf("%d (%s) %s %d (%s) = %v, want %v", tt.x, tt.xt, tt.op, tt.y, tt.yt, got, tt.want)
		}
	}
	if got := FoldUnary(syntax.Compl, big.NewInt(5), kind); got.Int64() != 10 {
		t.Errorf("~5 as bit<4> = %s, want 10", got)
	}
	if got := FoldUnary(syntax.Neg, big.NewInt(-128), s(8)); got.Int64() != -128 {
		t.Errorf("-(-128) as int<8> = %s, want -128", got)
	}
	if got := FoldUnary(syntax.Neg, big.NewInt(1), id); got.Int64() != 255 {
		t.Errorf("-1 as bit<8> = %s, want 255", got)
	}
	if got := FoldUnary(syntax.Plus, big.NewInt(-7), Int); got.Int64() != -7 {
		t.Errorf("+(-7) = %s", got)
	}
	wraps := []struct {
		v    int64
		t    Type
		want int64
	}{
		{255, u(8), 255}, {256, u(8), 0}, {-1, u(8), 255}, {127, s(8), 127}, {128, s(8), -128}, {-129, s(8), 127},
		{20, kind, 4}, {257, id, 1}, {300, Int, 300}, {300, plain, 300}, {5, &Bits{}, 0}, {1, s(1), -1},
	}
	for _, tt := range wraps {
		if got := Wrap(big.NewInt(tt.v), tt.t); got.Int64() != tt.want {
			t.Errorf("%d as %s is %s, want %d", tt.v, tt.t, got, tt.want)
		}
	}
}

// The range of a type holds exactly the numbers that wrapping leaves alone.
func TestFits(t *testing.T) {
	tests := []struct {
		t      *Bits
		lo, hi int64
	}{
		{&Bits{}, 0, 0}, {&Bits{Width: 1}, 0, 1}, {&Bits{Width: 8}, 0, 255}, {&Bits{Width: 1, Signed: true}, -1, 0},
		{&Bits{Width: 8, Signed: true}, -128, 127}, {&Bits{Width: 32}, 0, 1<<32 - 1},
	}
	for _, tt := range tests {
		for v, want := range map[int64]bool{tt.lo: true, tt.hi: true, tt.lo - 1: false, tt.hi + 1: false} {
			n := big.NewInt(v)
			if got := fits(n, tt.t); got != want || want != (wrap(n, tt.t).Cmp(n) == 0) {
				t.Errorf("%d fits %s: %v, want %v; wrapped it is %s", v, tt.t, got, want, wrap(n, tt.t))
			}
		}
	}
}

func TestEqualValues(t *testing.T) {
	plain := &Enum{Name: "plain", Members: []EnumMember{{Name: "a"}, {Name: "b"}}}
	repr := &Enum{Name: "repr", Repr: &Bits{Width: 8}, Members: []EnumMember{{Name: "a", Value: big.NewInt(1)}, {Name: "b", Value: big.NewInt(1)}, {Name: "c", Value: big.NewInt(2)}}}
	n := func(v int64) Value { return big.NewInt(v) }
	agg := func(vs ...Value) Value { return &AggregateValue{Elems: vs} }
	tests := []struct {
		x, y Value
		want bool
	}{
		{n(3), n(3), true}, {n(3), n(4), false}, {true, true, true}, {true, false, false},
		{"a", "a", true}, {"a", "b", false}, {n(1), true, false}, {n(1), nil, false},
		{&ErrorValue{Index: 1}, &ErrorValue{Index: 1}, true}, {&ErrorValue{Index: 1}, &ErrorValue{Index: 2}, false}, {&ErrorValue{Index: 1}, n(1), false},
		{&EnumValue{plain, 0}, &EnumValue{plain, 0}, true}, {&EnumValue{plain, 0}, &EnumValue{plain, 1}, false},
		{&EnumValue{repr, 0}, &EnumValue{repr, 1}, true}, {&EnumValue{repr, 0}, &EnumValue{repr, 2}, false},
		{&EnumValue{repr, 2}, n(2), true}, {n(2), &EnumValue{repr, 2}, true}, {n(3), &EnumValue{repr, 2}, false},
		{agg(n(1), n(2)), agg(n(1), n(2)), true}, {agg(n(1), n(2)), agg(n(1), n(3)), false}, {agg(n(1)), agg(n(1), n(2)), false},
		{agg(agg(n(1))), agg(agg(n(1))), true}, {agg(agg(n(1))), agg(agg(n(2))), false},
		{&AggregateValue{Invalid: true}, &AggregateValue{Invalid: true, Elems: []Value{n(1)}}, true},
		{&AggregateValue{Invalid: true}, agg(n(1)), false}, {agg(n(1)), n(1), false},
	}
	for _, tt := range tests {
		if got := EqualValues(tt.x, tt.y); got != tt.want {
			t.Errorf("%v == %v: %v, want %v", tt.x, tt.y, got, tt.want)
		}
	}
}

func TestSizes(t *testing.T) {
	f := func(ts ...Type) (fs []Field) {
		for _, t := range ts {
			fs = append(fs, Field{Type: t})
		}
		return fs
	}
	h := func(kind syntax.StructKind, ts ...Type) Type { return &Struct{Kind: kind, Fields: f(ts...)} }
	small, large := h(syntax.StructKindHeader, u(8)), h(syntax.StructKindHeader, u(24), Bool)
	variable := h(syntax.StructKindHeader, u(8), &Varbit{Max: 32})
	union := h(syntax.StructKindUnion, large, small, variable)
	repr := &Enum{Repr: &Bits{Width: 5}}
	tests := []struct {
		t      Type
		lo, hi int
		ok     bool
	}{
		{Bool, 1, 1, true}, {u(9), 9, 9, true}, {s(9), 9, 9, true}, {&Varbit{Max: 12}, 0, 12, true}, {repr, 5, 5, true},
		{&New{base: u(3), Underlying: u(3)}, 3, 3, true}, {&Stack{Elem: variable, Size: 3}, 24, 120, true},
		{&Tuple{Elems: []Type{u(3), Bool, repr}}, 9, 9, true}, {&Tuple{}, 0, 0, true},
		{small, 8, 8, true}, {large, 25, 25, true}, {variable, 8, 40, true}, {union, 8, 40, true},
		{h(syntax.StructKindUnion, large, small), 8, 25, true}, {h(syntax.StructKindUnion, small, large), 8, 25, true},
		{h(syntax.StructKindStruct, union, u(2)), 10, 42, true},
		{&Enum{}, 0, 0, false}, {Error, 0, 0, false}, {String, 0, 0, false}, {&List{Elem: u(8)}, 0, 0, false},
		{&Tuple{Elems: []Type{u(8), String}}, 0, 0, false}, {h(syntax.StructKindUnion, small, h(syntax.StructKindHeader, Error)), 0, 0, false},
		{&Stack{Elem: String, Size: 2}, 0, 0, false},
	}
	for _, tt := range tests {
		lo, hi, ok := sizeRange(tt.t)
		if ok != tt.ok || ok && (lo != tt.lo || hi != tt.hi) {
			t.Errorf("%v: %d to %d bits, %v; want %d to %d, %v", tt.t, lo, hi, ok, tt.lo, tt.hi, tt.ok)
		}
		w, fixed := WidthOf(tt.t)
		if want := tt.ok && tt.lo == tt.hi; fixed != want || fixed && w != tt.lo || !fixed && w != 0 {
			t.Errorf("%v: the width is %d, %v", tt.t, w, fixed)
		}
	}
}

// The same names are compared up to a limit; then wrong names have no suggestions.
func TestSuggestionsEnd(t *testing.T) {
	c := &checker{compared: maxCompared - 2}
	two := words("alpha", "beta")
	if got := c.suggest("alpja", two); got != "; did you mean alpha?" {
		t.Errorf("at the limit: %q", got)
	}
	if got := c.suggest("alpja", two); got != "" {
		t.Errorf("above the limit: %q", got)
	}
	c.scope = &scope{names: map[string]*Object{"alpha": {}}}
	if got := c.nearest("alpja", c.scope, nil); got != "" {
		t.Errorf("above the limit, in a scope: %q", got)
	}
	if got := c.suggest("alpja", func() []string { t.Error("the names are listed above the limit"); return nil }); got != "" {
		t.Errorf("above the limit: %q", got)
	}
}
