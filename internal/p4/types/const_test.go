package types

import (
	"math/big"
	"math/rand"
	"testing"

	"github.com/p4lb/p4lb/internal/p4/syntax"
)

func num(t *testing.T, s string) *big.Int {
	t.Helper()
	n, ok := new(big.Int).SetString(s, 0)
	if !ok {
		t.Fatalf("bad number %q", s)
	}
	return n
}

func u(w int) Type { return &Bits{Width: w} }
func s(w int) Type { return &Bits{Width: w, Signed: true} }

// The expected values are computed by hand from section 8 of the language.
func TestFoldBinary(t *testing.T) {
	tests := []struct {
		op   syntax.Operator
		x, y string
		typ  Type
		want string
	}{
		{syntax.Add, "255", "1", u(8), "0"},
		{syntax.Add, "127", "1", s(8), "-128"},
		{syntax.Add, "127", "1", Int, "128"},
		{syntax.Sub, "0", "1", u(8), "255"},
		{syntax.Sub, "-128", "1", s(8), "127"},
		{syntax.Sub, "3", "5", Int, "-2"},
		{syntax.Mul, "16", "17", u(8), "16"},
		{syntax.Mul, "0x123456789abcdef0", "0x100000000", Int, "0x123456789abcdef000000000"},
		{syntax.SatAdd, "250", "10", u(8), "255"},
		{syntax.SatAdd, "120", "10", s(8), "127"},
		{syntax.SatAdd, "-120", "-10", s(8), "-128"},
		{syntax.SatSub, "5", "10", u(8), "0"},
		{syntax.SatSub, "-120", "10", s(8), "-128"},
		{syntax.And, "-1", "0x0f", s(8), "15"},
		{syntax.Or, "0xf0", "0x0f", u(8), "255"},
		{syntax.Xor, "-1", "1", s(8), "-2"},
		{syntax.Div, "17", "5", Int, "3"},
		{syntax.Mod, "17", "5", Int, "2"},
		{syntax.Div, "255", "16", u(8), "15"},
		{syntax.Div, "0", "5", Int, "0"},
		{syntax.Mod, "0", "5", Int, "0"},
	}
	for _, tt := range tests {
		got, err := foldBinary(tt.op, num(t, tt.x), num(t, tt.y), tt.typ)
		if err != nil {
			t.Errorf("%s %s %s as %s: %v", tt.x, tt.op, tt.y, tt.typ, err)
			continue
		}
		if want := num(t, tt.want); got.Cmp(want) != 0 {
			t.Errorf("%s %s %s as %s = %s, want %s", tt.x, tt.op, tt.y, tt.typ, got, want)
		}
	}
}

func TestFoldErrors(t *testing.T) {
	tests := []struct {
		op   syntax.Operator
		x, y int64
		want error
	}{
		{syntax.Div, 1, 0, errDivZero},
		{syntax.Mod, 1, 0, errModZero},
		{syntax.Div, -4, 2, errNegative},
		{syntax.Mod, 4, -2, errNegative},
	}
	for _, tt := range tests {
		if _, err := foldBinary(tt.op, big.NewInt(tt.x), big.NewInt(tt.y), Int); err != tt.want {
			t.Errorf("%d %s %d: error %v, want %v", tt.x, tt.op, tt.y, err, tt.want)
		}
	}
	if _, err := foldShift(syntax.Shl, one, big.NewInt(-1), u(8)); err != errNegShift {
		t.Errorf("shift by -1: error %v", err)
	}
	if _, err := foldShift(syntax.Shl, one, pow2(40), Int); err != errHugeShift {
		t.Errorf("int shifted by 2**40: error %v", err)
	}
}

// A number of type int has up to 65,537 bits.
func TestFoldLimit(t *testing.T) {
	largest := new(big.Int).Sub(pow2(65537), one)
	half := pow2(32768) // 32,769 bits
	tests := []struct {
		op   syntax.Operator
		x, y *big.Int
		ok   bool
	}{
		{syntax.Add, largest, zero, true},
		{syntax.Add, largest, one, false},
		{syntax.Sub, new(big.Int).Neg(largest), one, false},
		{syntax.Mul, half, pow2(32767), true},
		{syntax.Mul, half, half, false},
		{syntax.Shl, one, big.NewInt(65536), true},
		{syntax.Shl, one, big.NewInt(65537), false},
		{syntax.Shl, big.NewInt(3), big.NewInt(65535), true},
		{syntax.Shl, big.NewInt(3), big.NewInt(65536), false},
	}
	for _, tt := range tests {
		got := Fold(tt.op, tt.x, tt.y, Int, Int)
		if (got != nil) != tt.ok {
			t.Errorf("%s of numbers with %d and %d bits: folded %v, want %v", tt.op, tt.x.BitLen(), tt.y.BitLen(), got != nil, tt.ok)
		}
	}
}

func TestFoldShift(t *testing.T) {
	tests := []struct {
		op   syntax.Operator
		x, n string
		typ  Type
		want string
	}{
		{syntax.Shl, "0x81", "1", u(8), "2"},
		{syntax.Shl, "1", "7", s(8), "-128"},
		{syntax.Shl, "1", "100", u(8), "0"},
		{syntax.Shl, "1", "100", Int, "0x10000000000000000000000000"},
		{syntax.Shr, "0x81", "1", u(8), "0x40"},
		{syntax.Shr, "-2", "1", s(8), "-1"},
		{syntax.Shr, "-128", "100", s(8), "-1"},
		{syntax.Shr, "-5", "1", Int, "-3"},
		{syntax.Shr, "5", "0xffffffffffffffffffff", u(8), "0"},
		{syntax.Shr, "5", "0xffffffffffffffffffff", Int, "0"},
		{syntax.Shr, "-5", "0xffffffffffffffffffff", Int, "-1"},
		{syntax.Shl, "5", "0xffffffffffffffffffff", u(8), "0"},
	}
	for _, tt := range tests {
		got, err := foldShift(tt.op, num(t, tt.x), num(t, tt.n), tt.typ)
		if err != nil {
			t.Errorf("%s %s %s: %v", tt.x, tt.op, tt.n, err)
			continue
		}
		if want := num(t, tt.want); got.Cmp(want) != 0 {
			t.Errorf("%s %s %s as %s = %s, want %s", tt.x, tt.op, tt.n, tt.typ, got, want)
		}
	}
}

func TestFoldConcatAndSlice(t *testing.T) {
	x, y := &Bits{Width: 4, Signed: true}, &Bits{Width: 8}
	if got := foldConcat(big.NewInt(-1), big.NewInt(0x0f), x, y); got.Cmp(big.NewInt(-241)) != 0 {
		t.Errorf("4s-1 ++ 8w15 = %s, want -241: the sign is that of the left side", got)
	}
	if got := foldConcat(big.NewInt(0x0f), big.NewInt(-1), y, x); got.Cmp(big.NewInt(0xff)) != 0 {
		t.Errorf("8w15 ++ 4s-1 = %s, want 255", got)
	}
	if got := foldSlice(big.NewInt(0xabcd), 11, 4); got.Cmp(big.NewInt(0xbc)) != 0 {
		t.Errorf("0xabcd[11:4] = %s, want 0xbc", got)
	}
	if got := foldSlice(big.NewInt(-1), 15, 12); got.Cmp(big.NewInt(15)) != 0 {
		t.Errorf("(-1)[15:12] = %s, want 15", got)
	}
}

// Folding of sized numbers must agree with Go's own fixed-width arithmetic.
func TestFoldAgreesWithMachine(t *testing.T) {
	rng := rand.New(rand.NewSource(1))
	ops := map[syntax.Operator]func(x, y uint32) uint32{
		syntax.Add: func(x, y uint32) uint32 { return x + y },
		syntax.Sub: func(x, y uint32) uint32 { return x - y },
		syntax.Mul: func(x, y uint32) uint32 { return x * y },
		syntax.And: func(x, y uint32) uint32 { return x & y },
		syntax.Or:  func(x, y uint32) uint32 { return x | y },
		syntax.Xor: func(x, y uint32) uint32 { return x ^ y },
	}
	for range 2000 {
		x, y := rng.Uint32(), rng.Uint32()
		for op, f := range ops {
			got, _ := foldBinary(op, big.NewInt(int64(x)), big.NewInt(int64(y)), u(32))
			if uint64(f(x, y)) != got.Uint64() {
				t.Fatalf("%d %s %d = %s, want %d", x, op, y, got, f(x, y))
			}
			got, _ = foldBinary(op, big.NewInt(int64(int32(x))), big.NewInt(int64(int32(y))), s(32))
			if int64(int32(f(x, y))) != got.Int64() {
				t.Fatalf("signed %d %s %d = %s, want %d", int32(x), op, int32(y), got, int32(f(x, y)))
			}
		}
		n := y % 40
		got, _ := foldShift(syntax.Shl, big.NewInt(int64(x)), big.NewInt(int64(n)), u(32))
		if uint64(x<<n) != got.Uint64() {
			t.Fatalf("%d << %d = %s, want %d", x, n, got, x<<n)
		}
		got, _ = foldShift(syntax.Shr, big.NewInt(int64(int32(x))), big.NewInt(int64(n)), s(32))
		if int64(int32(x)>>n) != got.Int64() {
			t.Fatalf("%d >> %d = %s, want %d", int32(x), n, got, int32(x)>>n)
		}
	}
}

func TestDefaultValue(t *testing.T) {
	h := &Struct{Named: Named{Name: "h"}, Kind: syntax.StructKindHeader, Fields: []Field{{Name: "a", Type: u(8)}}}
	st := &Struct{Named: Named{Name: "s"}, Fields: []Field{{Name: "x", Type: u(8)}, {Name: "b", Type: Bool}, {Name: "h", Type: h}}}
	want := &AggregateValue{Elems: []Value{new(big.Int), false, &AggregateValue{Invalid: true}}}
	if got := defaultValue(st); !EqualValues(got, want) {
		t.Errorf("the default value of a struct is %v, want %v", got, want)
	}
	repr := &Bits{Width: 8}
	e := &Enum{Name: "e", Repr: repr, Members: []EnumMember{{Name: "one", Value: big.NewInt(1)}}}
	if got, ok := defaultValue(e).(*big.Int); !ok || got.Sign() != 0 {
		t.Errorf("the default value of an enum without a member for 0 is %v, want the number 0", got)
	}
}
