package types

import (
	"math/big"

	"github.com/p4lb/p4lb/internal/p4/syntax"
)

// selector checks X.Sel outside of calls.
func (c *checker) selector(e *syntax.SelectorExpr) TypeAndValue {
	x := c.expr(e.X)
	if x.Type == Invalid {
		return invalid
	}
	if x.IsType {
		return c.typeMember(e, x.Type)
	}
	switch t := x.Type.(type) {
	case *Struct:
		return c.field(e, x, t)
	case *Stack:
		return c.stackMember(e, x, t)
	case *applyResult:
		switch e.Sel.Value {
		case "hit", "miss":
			return TypeAndValue{Type: Bool}
		case "action_run":
			if c.env.head != e {
				c.errorf(e.Sel.Pos(), "action_run can stand only in the head of a switch")
				return invalid
			}
			return TypeAndValue{Type: &ActionRun{Table: t.Table}}
		}
		c.errorf(e.Sel.Pos(), "the result of a table has no member %s%s", e.Sel.Value, c.suggest(e.Sel.Value, words("hit", "miss", "action_run")))
		return invalid
	case *Extern:
		if t.method(e.Sel.Value) != nil {
			c.errorf(e.Pos(), "%s is a method: it can only be called", show(e))
			return invalid
		}
	case *record:
		c.errorf(e.Pos(), "the type of %s is not known here; cast it to a struct", show(e.X))
		return invalid
	}
	c.errorf(e.Sel.Pos(), "%s has no member %s: its type is %s", show(e.X), e.Sel.Value, x.Type)
	return invalid
}

func (c *checker) field(e *syntax.SelectorExpr, x TypeAndValue, t *Struct) TypeAndValue {
	i := t.FieldIndex(e.Sel.Value)
	if i < 0 {
		c.errorf(e.Sel.Pos(), "%s has no field %s%s", t, e.Sel.Value, c.suggest(e.Sel.Value, fieldNames(t.Fields)))
		return invalid
	}
	tv := TypeAndValue{Type: t.Fields[i].Type, LValue: x.LValue, known: x.known}
	if agg, ok := x.Value.(*AggregateValue); ok && !agg.Invalid && i < len(agg.Elems) {
		tv.Value = agg.Elems[i]
	}
	return tv
}

// typeMember checks Type.member for enums and error.
func (c *checker) typeMember(e *syntax.SelectorExpr, t Type) TypeAndValue {
	name := e.Sel.Value
	if en, ok := t.(*Enum); ok {
		i := en.memberIndex(name)
		if i < 0 {
			c.errorf(e.Sel.Pos(), "enum %s has no member %s%s", en, name, c.suggest(name, en.memberNames))
			return invalid
		}
		return TypeAndValue{Type: en, Value: &EnumValue{Type: en, Index: i}, known: true}
	}
	if t == Error {
		o := c.errors[name]
		if o == nil {
			c.errorf(e.Sel.Pos(), "error has no member %s%s", name, c.suggest(name, words(c.info.Errors...)))
			return invalid
		}
		return TypeAndValue{Type: Error, Value: o.Value, known: true}
	}
	c.errorf(e.Sel.Pos(), "the type %s has no member %s", t, name)
	return invalid
}

func (c *checker) stackMember(e *syntax.SelectorExpr, x TypeAndValue, t *Stack) TypeAndValue {
	name := e.Sel.Value
	if !isHeaderType(t.Elem) {
		if _, ok := t.Elem.(*TypeParam); !ok {
			c.errorf(e.Pos(), "%s is an array of %s; only header stacks have %s", show(e.X), t.Elem, name)
			return invalid
		}
	}
	switch name {
	case "size":
		return TypeAndValue{Type: &Bits{Width: 32}, Value: big.NewInt(int64(t.Size)), known: true}
	case "next", "last", "lastIndex":
		if !c.env.parser {
			c.errorf(e.Sel.Pos(), "%s of a header stack can be used only in a parser", name)
			return invalid
		}
		if name == "lastIndex" {
			return TypeAndValue{Type: &Bits{Width: 32}}
		}
		return TypeAndValue{Type: t.Elem, LValue: x.LValue && name == "next"}
	}
	c.errorf(e.Sel.Pos(), "a header stack has no member %s%s", name, c.suggest(name, words("next", "last", "lastIndex", "size", "push_front", "pop_front")))
	return invalid
}

// index checks X[Index] for arrays, tuples and lists.
func (c *checker) index(e *syntax.IndexExpr) TypeAndValue {
	x, i := c.value(e.X), c.value(e.Index)
	if x.Type == Invalid || i.Type == Invalid {
		return invalid
	}
	i = c.plainBits(e.Index, i)
	if !isInteger(i.Type) {
		c.errorf(e.Index.Pos(), "an index must be a number, but %s has type %s", show(e.Index), i.Type)
		return invalid
	}
	switch t := x.Type.(type) {
	case *Stack:
		return c.element(e, x, i, t.Size, func(int) Type { return t.Elem }, "array")
	case *Tuple:
		if Number(i.Value) == nil {
			c.errorf(e.Index.Pos(), "the index of a tuple must be a constant, but %s is not", show(e.Index))
			return invalid
		}
		return c.element(e, x, i, len(t.Elems), func(k int) Type { return t.Elems[k] }, "tuple")
	case *List:
		return TypeAndValue{Type: t.Elem, known: x.known && i.known}
	}
	c.errorf(e.Pos(), "%s has type %s and cannot be indexed: only header stacks, arrays and tuples can", show(e.X), x.Type)
	return invalid
}

// element checks X[Index] for a list of size elements; elem returns the type of an
// element.
func (c *checker) element(e *syntax.IndexExpr, x, i TypeAndValue, size int, elem func(int) Type, what string) TypeAndValue {
	n := Number(i.Value)
	if n == nil {
		return TypeAndValue{Type: elem(0), LValue: x.LValue, known: x.known && i.known}
	}
	if n.Sign() == 0 && size == 0 && what == "array" {
		c.warnf(e.Index.Pos(), "the array %s has no elements", show(e.X))
		return TypeAndValue{Type: elem(0), LValue: x.LValue}
	}
	if n.Sign() < 0 || n.Cmp(big.NewInt(int64(size))) >= 0 {
		c.errorf(e.Index.Pos(), "index %s is outside of the %s, which has %s", n, what, count(size, "element"))
		return invalid
	}
	k := int(n.Int64())
	tv := TypeAndValue{Type: elem(k), LValue: x.LValue, known: x.known}
	if agg, ok := x.Value.(*AggregateValue); ok && k < len(agg.Elems) {
		tv.Value = agg.Elems[k]
	}
	return tv
}

// slice checks X[Hi:Lo] and X[Lo+:Width].
func (c *checker) slice(e *syntax.SliceExpr) TypeAndValue {
	x := c.value(e.X)
	if e.Width != nil {
		return c.plusSlice(e, x)
	}
	hi, ok1 := c.constInt(e.Hi, "the index of a bit")
	lo, ok2 := c.constInt(e.Lo, "the index of a bit")
	if x.Type == Invalid || !ok1 || !ok2 {
		return invalid
	}
	w, ok := c.sliced(e, &x)
	if !ok || !c.bitIndex(e.Hi, hi, w) || !c.bitIndex(e.Lo, lo, w) {
		return invalid
	}
	if lo.Cmp(hi) > 0 {
		c.errorf(e.Pos(), "in [%s:%s] the high bit comes first", hi, lo)
		return invalid
	}
	return sliceOf(x, int(hi.Int64()), int(lo.Int64()))
}

func sliceOf(x TypeAndValue, hi, lo int) TypeAndValue {
	tv := TypeAndValue{Type: &Bits{Width: hi - lo + 1}, LValue: x.LValue, known: x.known}
	if n := Number(x.Value); n != nil {
		tv.Value = foldSlice(n, hi, lo)
	}
	return tv
}

// sliced checks that x can be sliced, and returns its width.
func (c *checker) sliced(e *syntax.SliceExpr, x *TypeAndValue) (int, bool) {
	lvalue := x.LValue
	*x = c.plainBits(e.X, *x)
	x.LValue = lvalue
	b, ok := x.Type.(*Bits)
	if !ok {
		c.errorf(e.Pos(), "bits can be taken only from bit<> and int<>, but %s has type %s", show(e.X), x.Type)
		return 0, false
	}
	return b.Width, true
}

func (c *checker) bitIndex(e syntax.Expr, n *big.Int, width int) bool {
	if n.Sign() < 0 || n.Cmp(big.NewInt(int64(width))) >= 0 {
		c.errorf(e.Pos(), "bit %s is outside of the %d bits", n, width)
		return false
	}
	return true
}

func (c *checker) plusSlice(e *syntax.SliceExpr, x TypeAndValue) TypeAndValue {
	lo := c.value(e.Lo)
	width, ok := c.constInt(e.Width, "the width of a slice")
	if x.Type == Invalid || lo.Type == Invalid || !ok {
		return invalid
	}
	lo = c.plainBits(e.Lo, lo)
	if !isInteger(lo.Type) {
		c.errorf(e.Lo.Pos(), "the index of a bit must be a number, but %s has type %s", show(e.Lo), lo.Type)
		return invalid
	}
	w, ok := c.sliced(e, &x)
	if !ok {
		return invalid
	}
	if width.Sign() < 0 || width.Cmp(big.NewInt(int64(w))) > 0 {
		c.errorf(e.Width.Pos(), "a slice of %s bits cannot be taken from %d bits", width, w)
		return invalid
	}
	tv := TypeAndValue{Type: &Bits{Width: int(width.Int64())}, LValue: x.LValue, known: x.known && lo.known}
	n := Number(lo.Value)
	if n == nil {
		return tv
	}
	if !c.bitIndex(e.Lo, n, w) {
		return invalid
	}
	if v := Number(x.Value); v != nil && width.Sign() > 0 {
		k := int(n.Int64())
		tv.Value = foldSlice(v, k+int(width.Int64())-1, k)
	}
	return tv
}
