package types

import (
	"errors"
	"math/big"
	"slices"
	"strconv"

	"github.com/p4lb/p4lb/internal/p4/syntax"
	"github.com/p4lb/p4lb/internal/text/lists"
)

// Constants are folded as *big.Int. int has no width; for bit<W> and int<W>, the
// result of each operation is wrapped at the end (sections 8.5 to 8.7 of the
// language).

var (
	one  = big.NewInt(1)
	zero = new(big.Int)
)

// Folding errors. The caller reports them at the operator.
var (
	errDivZero   = errors.New("division by zero")
	errModZero   = errors.New("modulo by zero")
	errNegative  = errors.New("/ and % are defined only for numbers that are not negative")
	errNegShift  = errors.New("the shift amount is negative")
	errHugeShift = errors.New("the shift amount is too large")
	errHuge      = errors.New("the number becomes too large")
)

// maxBits bounds numbers of type int, so that a few constants cannot exhaust the
// memory. The shift of a 1 alone could create a number of any size.
const maxBits = 1 << 16

// pow2 returns 2**n.
func pow2(n int) *big.Int { return new(big.Int).Lsh(one, uint(n)) }

// wrap truncates v to the range of t.
func wrap(v *big.Int, t *Bits) *big.Int {
	if t.Width == 0 {
		return new(big.Int)
	}
	m := pow2(t.Width)
	v = new(big.Int).Mod(v, m)
	if t.Signed && v.Bit(t.Width-1) == 1 {
		v.Sub(v, m)
	}
	return v
}

// limits returns the least and the greatest value of t.
func limits(t *Bits) (lo, hi *big.Int) {
	if t.Width == 0 {
		return zero, zero
	}
	if t.Signed {
		hi = pow2(t.Width - 1)
		return new(big.Int).Neg(hi), new(big.Int).Sub(hi, one)
	}
	return zero, new(big.Int).Sub(pow2(t.Width), one)
}

// fits reports whether t can hold v.
func fits(v *big.Int, t *Bits) bool {
	lo, hi := limits(t)
	return v.Cmp(lo) >= 0 && v.Cmp(hi) <= 0
}

// clamp saturates v to the range of t, as |+| and |-| do.
func clamp(v *big.Int, t *Bits) *big.Int {
	lo, hi := limits(t)
	switch {
	case v.Cmp(lo) < 0:
		return lo
	case v.Cmp(hi) > 0:
		return hi
	}
	return v
}

// foldUnary folds op v, where t is *Bits or Int.
func foldUnary(op syntax.Operator, v *big.Int, t Type) *big.Int {
	r := new(big.Int)
	switch op {
	case syntax.Neg:
		r.Neg(v)
	case syntax.Compl:
		r.Not(v)
	default:
		return v
	}
	if b, ok := t.(*Bits); ok {
		return wrap(r, b)
	}
	return r
}

// foldBinary folds x op y where both have type t, *Bits or Int. Comparisons,
// shifts and concatenations have functions of their own.
func foldBinary(op syntax.Operator, x, y *big.Int, t Type) (*big.Int, error) {
	b, sized := t.(*Bits)
	r := new(big.Int)
	switch op {
	case syntax.Add, syntax.SatAdd:
		r.Add(x, y)
	case syntax.Sub, syntax.SatSub:
		r.Sub(x, y)
	case syntax.Mul:
		if !sized && x.BitLen()+y.BitLen() > maxBits+1 {
			return nil, errHuge
		}
		r.Mul(x, y)
	case syntax.Div, syntax.Mod:
		switch {
		case y.Sign() == 0 && op == syntax.Div:
			return nil, errDivZero
		case y.Sign() == 0:
			return nil, errModZero
		case x.Sign() < 0 || y.Sign() < 0:
			return nil, errNegative
		case op == syntax.Div:
			return new(big.Int).Quo(x, y), nil
		}
		return new(big.Int).Rem(x, y), nil
	case syntax.And:
		r.And(x, y)
	case syntax.Or:
		r.Or(x, y)
	case syntax.Xor:
		r.Xor(x, y)
	}
	switch {
	case !sized && r.BitLen() > maxBits+1:
		return nil, errHuge
	case !sized:
		return r, nil
	case op == syntax.SatAdd || op == syntax.SatSub:
		return clamp(r, b), nil
	}
	return wrap(r, b), nil
}

// Fold computes x op y for numbers, with x of type xt and y of type yt. The result
// is a bool for comparisons, and a *big.Int for arithmetic, bit, shift and
// concatenation operators. It is nil if the result is undefined.
func Fold(op syntax.Operator, x, y *big.Int, xt, yt Type) Value {
	xt, yt = number(xt), number(yt)
	var r *big.Int
	var err error
	switch op {
	case syntax.Eql:
		return x.Cmp(y) == 0
	case syntax.Neq:
		return x.Cmp(y) != 0
	case syntax.Lss, syntax.Leq, syntax.Gtr, syntax.Geq:
		return foldCompare(op, x, y)
	case syntax.Shl, syntax.Shr:
		r, err = foldShift(op, x, y, xt)
	case syntax.Concat:
		xb, xok := xt.(*Bits)
		yb, yok := yt.(*Bits)
		if !xok || !yok {
			return nil
		}
		r = foldConcat(x, y, xb, yb)
	default:
		r, err = foldBinary(op, x, y, xt)
	}
	if err != nil {
		return nil
	}
	return r
}

// FoldUnary computes op x for a number of type t.
func FoldUnary(op syntax.Operator, x *big.Int, t Type) *big.Int { return foldUnary(op, x, number(t)) }

// Wrap truncates a number to the range of t. If t has no range, it returns v
// unchanged.
func Wrap(v *big.Int, t Type) *big.Int {
	if b, ok := number(t).(*Bits); ok {
		return wrap(v, b)
	}
	return v
}

// number returns the type in which values of t are computed: Bits for types derived
// from it.
func number(t Type) Type {
	t = Underlying(t)
	if e, ok := t.(*Enum); ok && e.Repr != nil {
		return e.Repr
	}
	return t
}

// foldShift folds x << n and x >> n; >> of a negative value keeps the sign.
func foldShift(op syntax.Operator, x, n *big.Int, t Type) (*big.Int, error) {
	if n.Sign() < 0 {
		return nil, errNegShift
	}
	b, sized := t.(*Bits)
	if sized && n.Cmp(big.NewInt(int64(b.Width))) > 0 {
		n = big.NewInt(int64(b.Width))
	}
	if op == syntax.Shr && n.Cmp(big.NewInt(int64(x.BitLen()))) > 0 {
		n = big.NewInt(int64(x.BitLen()))
	}
	if n.Cmp(big.NewInt(maxBits)) > 0 {
		return nil, errHugeShift
	}
	r := new(big.Int)
	if op == syntax.Shr {
		return r.Rsh(x, uint(n.Int64())), nil
	}
	if !sized && x.BitLen()+int(n.Int64()) > maxBits+1 {
		return nil, errHuge
	}
	r.Lsh(x, uint(n.Int64()))
	if sized {
		return wrap(r, b), nil
	}
	return r, nil
}

// foldConcat folds x ++ y; the result has the sign of x's type.
func foldConcat(x, y *big.Int, xt, yt *Bits) *big.Int {
	r := new(big.Int).Mod(x, pow2(xt.Width))
	r.Lsh(r, uint(yt.Width))
	r.Or(r, new(big.Int).Mod(y, pow2(yt.Width)))
	return wrap(r, &Bits{Width: xt.Width + yt.Width, Signed: xt.Signed})
}

// foldSlice folds x[hi:lo].
func foldSlice(x *big.Int, hi, lo int) *big.Int {
	r := new(big.Int).Rsh(x, uint(lo))
	return r.Mod(r, pow2(hi-lo+1))
}

// foldCompare folds the ordering comparisons.
func foldCompare(op syntax.Operator, x, y *big.Int) bool {
	d := x.Cmp(y)
	switch op {
	case syntax.Lss:
		return d < 0
	case syntax.Leq:
		return d <= 0
	case syntax.Gtr:
		return d > 0
	}
	return d >= 0
}

// Number returns the number that v denotes: v itself if it is a *big.Int, or the
// number of an enum member with a representation. It returns nil for other values.
func Number(v Value) *big.Int {
	switch v := v.(type) {
	case *big.Int:
		return v
	case *EnumValue:
		return v.Type.Members[v.Index].Value
	}
	return nil
}

// EqualValues compares two constants of the same type.
func EqualValues(x, y Value) bool {
	switch x := x.(type) {
	case *ErrorValue:
		y, ok := y.(*ErrorValue)
		return ok && x.Index == y.Index
	case *AggregateValue:
		y, ok := y.(*AggregateValue)
		return ok && equalAggregates(x, y)
	case *EnumValue:
		// Members of an enum with a representation are equal if their numbers are.
		if y, ok := y.(*EnumValue); ok && x.Type.Repr == nil {
			return x.Index == y.Index
		}
	case bool, string:
		return x == y
	}
	a, b := Number(x), Number(y)
	return a != nil && b != nil && a.Cmp(b) == 0
}

// valueKey returns a text that identifies a label among labels of one type. Enum
// members with the same number have different texts.
func valueKey(v Value) string {
	switch v := v.(type) {
	case *ErrorValue:
		return strconv.Itoa(v.Index)
	case *EnumValue:
		return "." + strconv.Itoa(v.Index)
	case bool:
		return strconv.FormatBool(v)
	}
	return Number(v).String()
}

func equalAggregates(x, y *AggregateValue) bool {
	if x.Invalid || y.Invalid {
		return x.Invalid == y.Invalid
	}
	return slices.EqualFunc(x.Elems, y.Elems, EqualValues)
}

// defaultValue returns the value that ... denotes in an initializer of type t:
// zero, false, the first member, or an invalid header (section 8.26). It returns
// nil if t has no default.
func defaultValue(t Type) Value {
	switch t := t.(type) {
	case *Basic:
		switch t {
		case Bool:
			return false
		case Int:
			return new(big.Int)
		case String:
			return ""
		case Error:
			return &ErrorValue{Name: "NoError"}
		}
	case *Bits:
		return new(big.Int)
	case *New:
		return defaultValue(t.Underlying)
	case *Enum:
		if t.Repr == nil {
			return &EnumValue{Type: t}
		}
		return enumValue(t, zero)
	case *Struct:
		if t.Kind != syntax.StructKindStruct {
			return &AggregateValue{Invalid: true}
		}
		fields := lists.Map(t.Fields, func(f Field) Type { return f.Type })
		return defaultAll(fields)
	case *Tuple:
		return defaultAll(t.Elems)
	case *Stack:
		return defaultAll(slices.Repeat([]Type{t.Elem}, t.Size))
	}
	return nil
}

// enumValue returns the member of t with the number v. If there is none, it returns
// v, because enums with a representation allow other numbers.
func enumValue(t *Enum, v *big.Int) Value {
	for i, m := range t.Members {
		if m.Value != nil && m.Value.Cmp(v) == 0 {
			return &EnumValue{Type: t, Index: i}
		}
	}
	return v
}

func defaultAll(ts []Type) Value {
	agg := &AggregateValue{Elems: make([]Value, len(ts))}
	for i, t := range ts {
		if agg.Elems[i] = defaultValue(t); agg.Elems[i] == nil {
			return nil
		}
	}
	return agg
}
