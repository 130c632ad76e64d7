package types

import (
	"math/big"

	"github.com/p4lb/p4lb/internal/p4/syntax"
)

func (c *checker) unary(e *syntax.UnaryExpr) TypeAndValue {
	tv := c.value(e.X)
	if tv.Type == Invalid {
		return invalid
	}
	tv.LValue = false
	if e.Op == syntax.Not {
		if tv.Type != Bool {
			c.errorf(e.Pos(), "! needs a bool, but %s has type %s", show(e.X), tv.Type)
			return invalid
		}
		if b, ok := tv.Value.(bool); ok {
			tv.Value = !b
		}
		return tv
	}
	tv = c.plainBits(e.X, tv)
	if tv.Type == Int && e.Op == syntax.Compl {
		c.errorf(e.Pos(), "~ needs an operand with a width, as in ~8w1, but %s is an int", show(e.X))
		return invalid
	}
	if !isInteger(tv.Type) {
		c.errorf(e.Pos(), "%s needs a number, but %s has type %s", e.Op, show(e.X), tv.Type)
		return invalid
	}
	if n := Number(tv.Value); n != nil {
		tv.Value = foldUnary(e.Op, n, tv.Type)
	}
	return tv
}

func (c *checker) binary(e *syntax.BinaryExpr) TypeAndValue {
	x, y := c.value(e.X), c.value(e.Y)
	if x.Type == Invalid || y.Type == Invalid {
		return invalid
	}
	switch e.Op {
	case syntax.AndAnd, syntax.OrOr:
		for _, o := range []opnd{{e.X, &x}, {e.Y, &y}} {
			if o.tv.Type != Bool {
				c.errorf(e.Pos(), "%s needs bools, but %s has type %s", e.Op, show(o.e), o.tv.Type)
				return invalid
			}
		}
		tv := TypeAndValue{Type: Bool, known: x.known && y.known}
		a, ok := x.Value.(bool)
		if !ok {
			return tv
		}
		if a == (e.Op == syntax.OrOr) {
			tv.Value, tv.known = a, true
		} else {
			tv.Value = y.Value
		}
		return tv
	case syntax.Shl, syntax.Shr:
		return c.shift(e, x, y)
	case syntax.Concat:
		return c.concat(e, x, y)
	case syntax.Eql, syntax.Neq:
		return c.equality(e, x, y)
	}
	return c.arith(e, x, y)
}

// An opnd is one operand of a binary operator.
type opnd struct {
	e  syntax.Expr
	tv *TypeAndValue
}

// arith checks the operators on two numbers of the same type.
func (c *checker) arith(e *syntax.BinaryExpr, x, y TypeAndValue) TypeAndValue {
	if e.Op == syntax.Add && x.Type == String && y.Type == String {
		c.errorf(e.Pos(), "strings are joined with ++")
		return invalid
	}
	x, y = c.plainBits(e.X, x), c.plainBits(e.Y, y)
	for _, o := range []opnd{{e.X, &x}, {e.Y, &y}} {
		if !isInteger(o.tv.Type) {
			c.errorf(e.Pos(), "%s needs numbers, but %s has type %s%s", e.Op, show(o.e), o.tv.Type, newHint(o.tv.Type))
			return invalid
		}
	}
	if (e.Op == syntax.Div || e.Op == syntax.Mod) && (negative(x) || negative(y)) {
		c.errorf(e.Pos(), "%s: %s", show(e), errNegative)
		return invalid
	}
	x, y, ok := c.sameSize(e, x, y)
	if !ok {
		return invalid
	}
	if x.Type == Int && (e.Op == syntax.SatAdd || e.Op == syntax.SatSub) {
		c.errorf(e.Pos(), "%s needs an operand with a width, as in 8w1, but both are int", e.Op)
		return invalid
	}
	known := x.known && y.known
	a, b := Number(x.Value), Number(y.Value)
	if e.Op >= syntax.Lss && e.Op <= syntax.Geq {
		tv := TypeAndValue{Type: Bool, known: known}
		if a != nil && b != nil {
			tv.Value = foldCompare(e.Op, a, b)
		}
		return tv
	}
	if e.Op == syntax.Div || e.Op == syntax.Mod {
		if !c.checkDiv(e, x, y) {
			return invalid
		}
	}
	tv := TypeAndValue{Type: x.Type, known: known}
	if a == nil || b == nil {
		return tv
	}
	v, err := foldBinary(e.Op, a, b, x.Type)
	if err != nil {
		c.errorf(e.Pos(), "%s: %s", show(e), err)
		return invalid
	}
	tv.Value = v
	return tv
}

// newHint explains that types declared with "type" have no operators.
func newHint(t Type) string {
	if n, ok := t.(*New); ok {
		return "; cast it to " + n.Underlying.String() + " first"
	}
	return ""
}

// sameSize converts an int operand to the type of the other operand.
func (c *checker) sameSize(e *syntax.BinaryExpr, x, y TypeAndValue) (TypeAndValue, TypeAndValue, bool) {
	switch {
	case x.Type == Int && y.Type != Int:
		x, _ = c.convert(e.X, x, y.Type)
	case y.Type == Int && x.Type != Int:
		y, _ = c.convert(e.Y, y, x.Type)
	case !identical(x.Type, y.Type):
		c.errorf(e.Pos(), "%s needs operands of the same type, but %s has type %s and %s has type %s",
			e.Op, show(e.X), x.Type, show(e.Y), y.Type)
		return x, y, false
	}
	return x, y, true
}

func negative(tv TypeAndValue) bool {
	n := Number(tv.Value)
	return n != nil && n.Sign() < 0
}

// checkDiv requires constant operands that are not signed for / and %: no target
// divides fields of packets.
func (c *checker) checkDiv(e *syntax.BinaryExpr, x, y TypeAndValue) bool {
	op := e.Op
	if b, ok := x.Type.(*Bits); ok && b.Signed {
		c.errorf(e.Pos(), "%s is not defined for signed numbers, %s has type %s", op, show(e.X), b)
		return false
	}
	if n := Number(y.Value); n != nil && n.Sign() == 0 {
		c.errorf(e.Pos(), "%s: %s", show(e), map[bool]error{true: errDivZero, false: errModZero}[e.Op == syntax.Div])
		return false
	}
	return true
}

func (c *checker) shift(e *syntax.BinaryExpr, x, y TypeAndValue) TypeAndValue {
	x, y = c.plainBits(e.X, x), c.plainBits(e.Y, y)
	if !isInteger(x.Type) {
		c.errorf(e.Pos(), "%s needs a number to shift, but %s has type %s", e.Op, show(e.X), x.Type)
		return invalid
	}
	n := Number(y.Value)
	b, sized := y.Type.(*Bits)
	switch {
	case n != nil && n.Sign() < 0 && isInteger(y.Type):
		c.errorf(e.Pos(), "%s: %s, it is %s", show(e), errNegShift, n)
		return invalid
	case sized && b.Signed && n == nil:
		c.errorf(e.Pos(), "the shift amount must be unsigned, but %s has type %s", show(e.Y), b)
		return invalid
	case !isInteger(y.Type):
		c.errorf(e.Pos(), "the shift amount must be a number, but %s has type %s", show(e.Y), y.Type)
		return invalid
	case x.Type == Int && sized && !y.known:
		c.errorf(e.Pos(), "%s needs a width, as in 8w1: it is shifted by %s, which is not known at compile time", show(e.X), show(e.Y))
		return invalid
	}
	tv := TypeAndValue{Type: x.Type, known: x.known && y.known}
	if n == nil {
		return tv
	}
	if b, ok := x.Type.(*Bits); ok && n.Cmp(big.NewInt(int64(b.Width))) >= 0 {
		c.warnf(e.Pos(), "%s shifts out all %d bits of %s", show(e), b.Width, show(e.X))
	}
	if n.Cmp(big.NewInt(maxBits)) > 0 {
		c.errorf(e.Pos(), "%s: %s", show(e), errHugeShift)
		return invalid
	}
	if v := Number(x.Value); v != nil {
		r, err := foldShift(e.Op, v, n, x.Type)
		if err != nil {
			c.errorf(e.Pos(), "%s: %s", show(e), err)
			return invalid
		}
		tv.Value = r
	}
	return tv
}

func (c *checker) concat(e *syntax.BinaryExpr, x, y TypeAndValue) TypeAndValue {
	tv := TypeAndValue{known: x.known && y.known}
	if x.Type == String && y.Type == String {
		tv.Type = String
		a, ok1 := x.Value.(string)
		b, ok2 := y.Value.(string)
		if ok1 && ok2 {
			if len(a)+len(b) > maxBits {
				c.errorf(e.Pos(), "the string becomes too large")
				return invalid
			}
			tv.Value = a + b
		}
		return tv
	}
	x, y = c.plainBits(e.X, x), c.plainBits(e.Y, y)
	for _, o := range []opnd{{e.X, &x}, {e.Y, &y}} {
		if o.tv.Type == Int {
			c.errorf(e.Pos(), "++ needs operands with a width, as in 8w1, but %s is an int", show(o.e))
			return invalid
		}
		if _, ok := o.tv.Type.(*Bits); !ok {
			c.errorf(e.Pos(), "++ joins bits or strings, but %s has type %s", show(o.e), o.tv.Type)
			return invalid
		}
	}
	xt, yt := x.Type.(*Bits), y.Type.(*Bits)
	if xt.Width+yt.Width > maxWidth {
		c.errorf(e.Pos(), "%s has %d bits, more than the %d supported (docs/limits.md)", show(e), xt.Width+yt.Width, maxWidth)
		return invalid
	}
	tv.Type = &Bits{Width: xt.Width + yt.Width, Signed: xt.Signed}
	if a, b := Number(x.Value), Number(y.Value); a != nil && b != nil {
		tv.Value = foldConcat(a, b, xt, yt)
	}
	return tv
}

// equality checks == and !=, whose operands must have the same type, and a type
// with equality.
func (c *checker) equality(e *syntax.BinaryExpr, x, y TypeAndValue) TypeAndValue {
	if !identical(x.Type, y.Type) {
		x, y = c.plainBits(e.X, x), c.plainBits(e.Y, y)
	}
	var bad *mismatch
	a, b := x, y
	switch {
	case identical(x.Type, y.Type):
	case weak(x.Type) && !weak(y.Type) || isLiteralList(e.X) && !isLiteralList(e.Y):
		a, bad = c.convert(e.X, x, y.Type)
	default:
		b, bad = c.convert(e.Y, y, x.Type)
		if bad != nil && weak(x.Type) {
			b = y
			a, bad = c.convert(e.X, x, y.Type)
		}
	}
	if bad != nil {
		c.errorf(e.Pos(), "%s has type %s and cannot be compared with %s, which has type %s", show(e.X), x.Type, show(e.Y), y.Type)
		return invalid
	}
	if why := notComparable(a.Type); why != "" {
		c.errorf(e.Pos(), "%s cannot be compared: %s", show(e.X), why)
		return invalid
	}
	tv := TypeAndValue{Type: Bool, known: a.known && b.known}
	if a.Value != nil && b.Value != nil {
		tv.Value = EqualValues(a.Value, b.Value) == (e.Op == syntax.Eql)
	}
	return tv
}

func isLiteralList(e syntax.Expr) bool {
	_, ok := syntax.Unparen(e).(*syntax.ListExpr)
	return ok
}

// notComparable returns the reason why t has no ==, or "" if it has.
func notComparable(t Type) string {
	switch t := t.(type) {
	case *Extern:
		return t.String() + " is an extern"
	case *Parser, *Control, *Package:
		return "it is an instance"
	case *TypeParam:
		return "the type parameter " + t.Name + " may stand for any type"
	case *applyResult:
		return "it is the result of a table"
	case *Set:
		return "it is a set"
	case *Stack:
		return notComparable(t.Elem)
	case *Tuple:
		for _, e := range t.Elems {
			if why := notComparable(e); why != "" {
				return why
			}
		}
	case *Struct:
		for _, f := range t.Fields {
			if why := notComparable(f.Type); why != "" {
				return why
			}
		}
	case *Basic:
		if t == nullHeader || t == dotsType || t == wildcard {
			return "its type is unknown"
		}
	}
	return ""
}
