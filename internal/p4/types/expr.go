package types

import (
	"strings"

	"github.com/p4lb/p4lb/internal/p4/syntax"
)

var (
	invalid  = TypeAndValue{Type: Invalid}
	dontCare = TypeAndValue{Type: wildcard, known: true}
)

// expr checks an expression bottom-up and records its type and value.
func (c *checker) expr(e syntax.Expr) TypeAndValue {
	return c.record(e, c.exprNode(e))
}

// value is expr where a value is required, and not a type, function or table.
func (c *checker) value(e syntax.Expr) TypeAndValue {
	tv := c.expr(e)
	if tv.IsType {
		c.errorf(e.Pos(), "%s is a type, a value is wanted here", show(e))
		return c.record(e, invalid)
	}
	switch tv.Type.(type) {
	case *Func:
		c.errorf(e.Pos(), "%s is to be called, it has no value", show(e))
		return c.record(e, invalid)
	case *Table:
		c.errorf(e.Pos(), "%s is a table, a value is wanted here", show(e))
		return c.record(e, invalid)
	}
	if tv.Type == Void {
		c.errorf(e.Pos(), "%s returns nothing", show(e))
		return c.record(e, invalid)
	}
	if tv.Type == stateType {
		c.errorf(e.Pos(), "%s is a parser state, a value is wanted here", show(e))
		return c.record(e, invalid)
	}
	return tv
}

func (c *checker) intLit(e *syntax.IntLit) TypeAndValue {
	tv := TypeAndValue{Type: Int, Value: e.Value, known: true}
	if e.Width == 0 && !strings.ContainsAny(e.Text, "ws") {
		return tv // 0w0 has a width of zero
	}
	if e.Width > maxWidth {
		c.errorf(e.Pos(), "a width of %d is more than the %d bits supported (docs/limits.md)", e.Width, maxWidth)
		return invalid
	}
	if e.Signed && e.Width == 0 {
		c.errorf(e.Pos(), "a signed number has at least one bit")
		return invalid
	}
	b := &Bits{Width: e.Width, Signed: e.Signed}
	tv.Type = b
	if w := wrap(e.Value, b); w.Cmp(e.Value) != 0 {
		c.warnf(e.Pos(), "%s does not fit %s: it becomes %s", e.Text, b, w)
		tv.Value = w
	}
	return tv
}

// ident resolves a name in an expression.
func (c *checker) ident(n *syntax.Name) TypeAndValue {
	o := c.find(n, "a value", nil)
	if o == nil {
		return invalid
	}
	tv := TypeAndValue{Type: o.Type}
	switch o.Kind {
	case ConstObj, ErrorObj:
		tv.Value, tv.known = o.Value, true
	case VarObj:
		c.reads(n, o)
		tv.LValue = true
	case ParamObj:
		c.reads(n, o)
		tv.LValue = o.Dir == syntax.Out || o.Dir == syntax.InOut
		tv.known = o.Dir == syntax.NoDir && !o.action
	case TypeObj:
		tv.IsType, tv.known = true, true
	case InstObj, ValueSetObj, MatchKindObj:
		tv.known = true
	case TableObj:
		if c.env.table && c.env.owner == o {
			c.errorf(n.Pos(), "table %s cannot refer to itself", o.Name)
			return invalid
		}
	}
	return tv
}

func (c *checker) list(e *syntax.ListExpr) TypeAndValue {
	t := &Tuple{Elems: make([]Type, len(e.Elems))}
	agg := &AggregateValue{Elems: make([]Value, len(e.Elems))}
	known, bad := true, false
	for i, x := range e.Elems {
		if isDots(x) && i != len(e.Elems)-1 {
			c.errorf(x.Pos(), "... can only be the last element")
			bad = true
		}
		tv := c.value(x)
		t.Elems[i], agg.Elems[i] = tv.Type, tv.Value
		known = known && tv.known
		bad = bad || tv.Type == Invalid
	}
	if bad {
		return invalid
	}
	return TypeAndValue{Type: t, Value: complete(agg), known: known}
}

func (c *checker) recordExpr(e *syntax.RecordExpr) TypeAndValue {
	r := &record{}
	known, bad := true, false
	seen := map[string]bool{}
	for _, f := range e.Fields {
		if seen[f.Name.Value] {
			c.errorf(f.Pos(), "field %s is given twice", f.Name.Value)
			bad = true
		}
		seen[f.Name.Value] = true
		tv := c.value(f.Value)
		r.fields = append(r.fields, Field{Name: f.Name.Value, Type: tv.Type})
		known = known && tv.known
		bad = bad || tv.Type == Invalid
	}
	if bad {
		return invalid
	}
	return TypeAndValue{Type: r, known: known}
}

// setOf checks lo .. hi and x &&& mask. If one side is a plain number, it gets the
// type of the other side.
func (c *checker) setOf(e, x, y syntax.Expr, op string) TypeAndValue {
	a, b := c.value(x), c.value(y)
	if a.Type == Invalid || b.Type == Invalid {
		return invalid
	}
	a, b = c.plainBits(x, a), c.plainBits(y, b)
	for _, side := range []opnd{{x, &a}, {y, &b}} {
		if !isInteger(Underlying(side.tv.Type)) {
			c.errorf(e.Pos(), "%s needs numbers, but %s has type %s", op, show(side.e), side.tv.Type)
			return invalid
		}
	}
	t := a.Type
	switch {
	case a.Type == Int && b.Type != Int:
		a, _ = c.convert(x, a, b.Type)
		t = b.Type
	case b.Type == Int && a.Type != Int:
		b, _ = c.convert(y, b, a.Type)
	case !identical(a.Type, b.Type):
		c.errorf(e.Pos(), "both sides of %s need the same type, they have %s and %s", op, a.Type, b.Type)
		return invalid
	}
	return TypeAndValue{Type: &Set{Elem: t}, known: a.known && b.known}
}

// plainBits converts a member of an enum with a representation to its number.
func (c *checker) plainBits(e syntax.Expr, tv TypeAndValue) TypeAndValue {
	if en, ok := tv.Type.(*Enum); ok && en.Repr != nil {
		tv, _ = c.convert(e, tv, en.Repr)
	}
	return tv
}

func (c *checker) cond(e *syntax.CondExpr) TypeAndValue {
	cond := c.assign(e.Cond, Bool, "the condition of ?:")
	x, y := c.value(e.Then), c.value(e.Else)
	if cond.Type == Invalid || x.Type == Invalid || y.Type == Invalid {
		return invalid
	}
	if x.Type == Int && y.Type == Int && !cond.known {
		c.errorf(e.Pos(), "one of %s and %s needs a width, as in 8w1", show(e.Then), show(e.Else))
		return invalid
	}
	var bad *mismatch
	if weak(x.Type) && !weak(y.Type) {
		x, bad = c.convert(e.Then, x, y.Type)
	} else if !weak(x.Type) {
		y, bad = c.convert(e.Else, y, x.Type)
	} else if !identical(x.Type, y.Type) {
		bad = &mismatch{}
	}
	if bad != nil || !weak(x.Type) && !identical(x.Type, y.Type) {
		c.errorf(e.Pos(), "both results of ?: need the same type, they have %s and %s", c.info.Types[e.Then].Type, c.info.Types[e.Else].Type)
		return invalid
	}
	if t, ok := x.Type.(*Extern); ok {
		c.errorf(e.Pos(), "?: cannot choose between instances of the extern %s", t)
		return invalid
	}
	return TypeAndValue{Type: x.Type, Value: c.chosen(e), known: cond.known && x.known && y.known}
}

// castable reports whether an explicit cast from one scalar type to another is
// allowed (section 8.11.1).
func castable(to, from Type) bool {
	if identical(to, from) {
		return true
	}
	if n, ok := to.(*New); ok && (identical(n.Underlying, from) || from == Int && isInteger(Underlying(n.Underlying))) {
		return true
	}
	if n, ok := from.(*New); ok && identical(n.Underlying, to) {
		return true
	}
	switch f := from.(type) {
	case *Bits:
		switch t := to.(type) {
		case *Bits:
			return t.Width == f.Width || t.Signed == f.Signed
		case *Enum:
			return t.Repr != nil && *t.Repr == *f
		}
		return to == Int || to == Bool && f.Width == 1 && !f.Signed
	case *Enum:
		if f.Repr == nil {
			return false
		}
		if t, ok := to.(*Enum); ok {
			return t.Repr != nil && *t.Repr == *f.Repr
		}
		b, ok := to.(*Bits)
		return ok && *b == *f.Repr || to == Int
	}
	switch from {
	case Bool:
		b, ok := to.(*Bits)
		return ok && b.Width == 1 && !b.Signed
	case Int:
		if en, ok := to.(*Enum); ok {
			return en.Repr != nil
		}
		return isInteger(to) || to == Bool
	}
	return false
}

func (c *checker) cast(e *syntax.CastExpr) TypeAndValue {
	to := c.typ(e.Type)
	tv := c.value(e.X)
	if to == Invalid || tv.Type == Invalid {
		return invalid
	}
	if weakAggregate(e.X) && aggregate(to) {
		if out := c.assignValue(e.X, tv, to, "the cast"); out.Type != Invalid {
			return out
		}
		return invalid
	}
	switch to.(type) {
	case *Bits, *New, *Enum:
		if en, ok := to.(*Enum); ok && en.Repr == nil && !identical(to, tv.Type) {
			c.errorf(e.Pos(), "nothing can be cast to %s: it has no representation in bits", to)
			return invalid
		}
	case *Struct:
		if identical(to, tv.Type) {
			tv.LValue = false
			return tv
		}
		c.errorf(e.Pos(), "%s has type %s and cannot be cast to %s", show(e.X), tv.Type, to)
		return invalid
	default:
		if to != Bool && to != Int {
			c.errorf(e.Type.Pos(), "nothing can be cast to %s", to)
			return invalid
		}
	}
	if !castable(to, tv.Type) {
		c.errorf(e.Pos(), "%s has type %s and cannot be cast to %s%s", show(e.X), tv.Type, to, twoSteps(to, tv.Type))
		return invalid
	}
	return TypeAndValue{Type: to, Value: c.castValue(e, tv, to), known: tv.known}
}

// weakAggregate reports whether e is a literal whose type depends on the context.
func weakAggregate(e syntax.Expr) bool {
	switch syntax.Unparen(e).(type) {
	case *syntax.ListExpr, *syntax.RecordExpr, *syntax.InvalidExpr, *syntax.Dots:
		return true
	}
	return false
}

func aggregate(t Type) bool {
	switch t.(type) {
	case *Struct, *Stack, *List:
		return true
	}
	return false
}

// twoSteps returns a hint about the common mistake of changing width and sign in
// one cast.
func twoSteps(to, from Type) string {
	t, ok1 := to.(*Bits)
	f, ok2 := from.(*Bits)
	if ok1 && ok2 {
		return "; change the width first: (" + to.String() + ")(" + (&Bits{Width: t.Width, Signed: f.Signed}).String() + ")"
	}
	if n, ok := from.(*New); ok && castable(to, n.Underlying) {
		return "; cast to " + n.Underlying.String() + " first"
	}
	return ""
}

// castValue folds a cast.
func (c *checker) castValue(e *syntax.CastExpr, tv TypeAndValue, to Type) Value {
	if b, ok := tv.Value.(bool); ok {
		if _, ok := Underlying(to).(*Bits); !ok {
			return b
		}
		if b {
			return one
		}
		return zero
	}
	n := Number(tv.Value)
	if n == nil {
		return nil
	}
	switch t := Underlying(to).(type) {
	case *Bits:
		return wrap(n, t)
	case *Enum:
		if !fits(n, t.Repr) {
			c.warnf(e.Pos(), "%s does not fit %s", n, t.Repr)
		}
		return enumValue(t, wrap(n, t.Repr))
	case *Basic:
		if t == Bool {
			if n.Sign() < 0 || n.Cmp(one) > 0 {
				c.errorf(e.Pos(), "only 0 and 1 can be cast to bool, not %s", n)
			}
			return n.Sign() != 0
		}
	}
	return n
}
