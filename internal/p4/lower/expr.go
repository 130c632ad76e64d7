package lower

import (
	"math/big"

	"github.com/p4lb/p4lb/internal/p4/syntax"
	"github.com/p4lb/p4lb/internal/p4/types"
)

// eval evaluates x and emits code for its side effects.
func (l *lowerer) eval(x syntax.Expr, e *env) value {
	l.spend(1)
	v := l.evaluate(x, e)
	if _, isConst := v.(*ex); isConst && isNothing(e.typeOf(x)) {
		return nothing{}
	}
	if n, ok := v.(*ex); ok {
		return l.bounded(n, x)
	}
	return v
}

// scalar evaluates x to one number or boolean.
func (l *lowerer) scalar(x syntax.Expr, e *env) *ex {
	return l.toEx(l.eval(x, e), x)
}

// shape returns the scalar shape of x's type.
func (l *lowerer) shape(x syntax.Expr, e *env) scalar {
	st, ok := scalarOf(e.typeOf(x))
	if !ok {
		l.unsupported(x, "%s as a number", e.typeOf(x))
	}
	return st
}

// toEx reads a scalar value.
func (l *lowerer) toEx(v value, at syntax.Node) *ex {
	switch v := v.(type) {
	case *ex:
		return v
	case nothing:
		return intEx(0, scalar{width: 1})
	case *field:
		return fieldEx(v)
	case *element:
		return l.readElement(v)
	case *bits:
		return slice(l.toEx(v.of, at), v.lo+v.width-1, v.lo)
	case *aggregate:
		if len(v.elems) == 1 {
			return l.toEx(v.elems[0], at)
		}
	}
	l.unsupported(at, "a value of this form where a number is wanted")
	return nil
}

func (l *lowerer) evalName(x *syntax.Name, e *env) value {
	o := l.info.Uses[x]
	if o == nil {
		l.unsupported(x, "the name %s here", x.Value)
	}
	if v, ok := e.lookup(o); ok {
		return v
	}
	switch o.Kind {
	case types.ConstObj:
		if o.Value != nil {
			return l.constant(o.Value, e.subst(o.Type))
		}
		return l.eval(o.Decl.(*syntax.ConstDecl).Value, e)
	case types.InstObj:
		if d, ok := o.Decl.(*syntax.InstDecl); ok && o.Parent == nil {
			return l.topInstance(d, &env{l: l})
		}
	}
	l.unsupported(x, "%s here", x.Value)
	return nil
}

func (l *lowerer) evalSelector(x *syntax.SelectorExpr, e *env) value {
	if c, ok := syntax.Unparen(x.X).(*syntax.CallExpr); ok {
		if call := l.info.Calls[c]; call != nil && call.Kind == types.TableApply {
			if x.Sel.Value != "hit" && x.Sel.Value != "miss" {
				l.unsupported(c, "%s of a table outside of a switch", x.Sel.Value)
			}
			i := l.applyTable(c, call, e)
			t, end := l.temp(boolean), &label{}
			i.hit, i.miss = &label{used: true}, &label{used: true}
			l.emitLabel(i.hit)
			l.set(t, boolEx(x.Sel.Value == "hit"))
			l.jump(end)
			l.emitLabel(i.miss)
			l.set(t, boolEx(x.Sel.Value == "miss"))
			l.emitLabel(end)
			return fieldEx(t)
		}
	}
	v := l.selectPart(l.eval(x.X, e), x.Sel.Value, x)
	if f, ok := v.(*field); ok {
		f.named = true
	}
	return v
}

// selectPart evaluates base.name.
func (l *lowerer) selectPart(base value, name string, at syntax.Node) value {
	switch b := base.(type) {
	case *header:
		if i := b.typ.FieldIndex(name); i >= 0 {
			return b.parts[i]
		}
	case *union:
		if i := b.typ.FieldIndex(name); i >= 0 {
			return b.members[i]
		}
	case *literal:
		if i := b.typ.FieldIndex(name); i >= 0 {
			return l.literalPart(b, i)
		}
	case *aggregate:
		if i := partIndex(b.typ, name); i >= 0 {
			return b.elems[i]
		}
		if s, ok := b.typ.(*types.Stack); ok && name == "size" {
			return intEx(int64(s.Size), code32)
		}
	case *stack:
		switch name {
		case "next":
			return &next{stack: b, member: -1}
		case "last":
			return &element{elems: b.elems, last: b, index: &ex{op: opLastIndex, s: b, st: code32}}
		case "lastIndex":
			return &ex{op: opLastIndex, s: b, st: code32}
		case "size":
			return intEx(int64(len(b.elems)), code32)
		}
		l.unsupported(at, "stack member %s", name)
		return nil
	case *element:
		k := -1
		switch v := b.at(0).(type) {
		case *union:
			k = v.typ.FieldIndex(name)
		case *header:
			k = v.typ.FieldIndex(name)
		case *aggregate:
			k = partIndex(v.typ, name)
		}
		if k < 0 {
			l.unsupported(l.at, "selecting %s here", name)
		}
		return b.inner(k)
	case *next:
		if s, ok := types.Underlying(b.stack.typ.Elem).(*types.Struct); ok && b.member < 0 && s.Kind == syntax.StructKindUnion {
			return &next{stack: b.stack, member: s.FieldIndex(name)}
		}
	}
	l.unsupported(at, "selecting %s here", name)
	return nil
}

func (l *lowerer) evalIndex(x *syntax.IndexExpr, e *env) value {
	base := l.eval(x.X, e)
	index := l.scalar(x.Index, e)
	if a, ok := base.(*aggregate); ok {
		if !index.isConst() && len(a.elems) > 0 {
			return &element{elems: a.elems, index: l.settled(index)}
		}
		if i := int(index.v.Int64()); index.v.IsInt64() && i >= 0 && i < len(a.elems) {
			return a.elems[i]
		}
	}
	s, ok := base.(*stack)
	if !ok {
		l.unsupported(x, "an index on %s", syntax.String(x.X))
	}
	if !index.isConst() {
		return &element{elems: s.elems, index: l.settled(index)}
	}
	if !index.v.IsInt64() || index.v.Sign() < 0 || index.v.Int64() >= int64(len(s.elems)) {
		l.errorf(x.Index, "index %s is outside of %s, which has %d elements", index.v, s.name, len(s.elems))
		panic(bail{})
	}
	return s.elems[index.v.Int64()]
}

// sliceBounds returns the constant bounds of x[hi:lo] or x[lo+:width].
func (l *lowerer) sliceBounds(x *syntax.SliceExpr, e *env) (hi, lo int) {
	number := func(n syntax.Expr) int {
		v := l.scalar(n, e)
		if !v.isConst() || !v.v.IsInt64() {
			l.unsupported(n, "a slice with bounds that are not known at compile time")
		}
		return int(v.v.Int64())
	}
	lo = number(x.Lo)
	if x.Width != nil {
		return lo + number(x.Width) - 1, lo
	}
	return number(x.Hi), lo
}

func (l *lowerer) evalBinary(x *syntax.BinaryExpr, e *env) value {
	if x.Op == syntax.AndAnd || x.Op == syntax.OrOr {
		return l.shortCircuit(x, e)
	}
	a := l.eval(x.X, e)
	m := l.mark()
	b := l.eval(x.Y, e)
	a = l.stableValue(a, m)
	if x.Op == syntax.Eql || x.Op == syntax.Neq {
		r := l.equalValues(a, b, x)
		if x.Op == syntax.Neq {
			return not(r)
		}
		return r
	}
	switch {
	case x.Op == syntax.Concat && a == value(nothing{}):
		return b
	case x.Op == syntax.Concat && b == value(nothing{}):
		return a
	}
	xa, xb := l.toEx(a, x.X), l.toEx(b, x.Y)
	if x.Op == syntax.Div || x.Op == syntax.Mod {
		l.checkDivision(x, xa, xb)
	}
	if x.Op == syntax.Shl || x.Op == syntax.Shr {
		xb = l.shiftAmount(x, x.Op, xa, xb)
	}
	return binary(x.Op, xa, xb, l.shape(x, e))
}

// shiftAmount returns the shift amount by with at most 32 bits, because BMv2
// ignores higher bits. With wideShifts, it limits a wider amount to x's width,
// which gives 0 or copies of the sign as the specification requires. Otherwise it
// warns.
func (l *lowerer) shiftAmount(at syntax.Node, op syntax.Operator, x, by *ex) *ex {
	if by.isConst() {
		if width := int64(x.st.width); width > 0 && by.v.Cmp(big.NewInt(width)) > 0 {
			return intEx(width, code32)
		}
		return by
	}
	if by.st.width <= code32.width {
		return by
	}
	if !l.arch.traits().wideShifts {
		l.report(at, true, "%s by an amount of %d bits: %s uses its low 32 bits: make the amount bit<32> or narrower", op, by.st.width, l.arch.traits().target)
		return by
	}
	by = l.settled(by)
	width := intEx(int64(x.st.width), code32)
	return cond(binary(syntax.Geq, by, cast(width, by.st), boolean), width, cast(by, code32))
}

// checkDivision refuses a divisor that may be 0 at run time, because BMv2 crashes
// on division by zero. Architectures that define the result (divides) allow it.
func (l *lowerer) checkDivision(at syntax.Node, a, b *ex) {
	if a.isConst() && (b.isConst() || a.v.Sign() == 0) {
		return
	}
	if !b.isConst() && !a.st.signed && l.arch.traits().divides {
		return
	}
	if !b.isConst() || b.v.Sign() <= 0 || a.st.signed {
		l.unsupported(at, "division and modulo by a value that is known only at run time")
	}
}

// shortCircuit evaluates && and ||. The code of the right operand runs only if the
// left one does not decide.
func (l *lowerer) shortCircuit(x *syntax.BinaryExpr, e *env) value {
	a := l.scalar(x.X, e)
	and := x.Op == syntax.AndAnd
	if and && a.isFalse() || !and && a.isTrue() {
		return a
	}
	var b *ex
	code := l.sub(func() { b = l.scalar(x.Y, e) })
	if len(code) == 0 {
		return binary(x.Op, a, b, boolean)
	}
	t, end := l.temp(boolean), &label{}
	l.set(t, a)
	if and {
		l.branch(fieldEx(t), end)
	} else {
		l.branch(not(fieldEx(t)), end)
	}
	l.code.list = append(l.code.list, code...)
	l.set(t, b)
	l.emitLabel(end)
	return fieldEx(t)
}

func (l *lowerer) evalCond(x *syntax.CondExpr, e *env) value {
	c := l.scalar(x.Cond, e)
	switch {
	case c.isTrue():
		return l.eval(x.Then, e)
	case c.isFalse():
		return l.eval(x.Else, e)
	}
	var a, b value
	ca := l.sub(func() { a = l.eval(x.Then, e) })
	cb := l.sub(func() { b = l.eval(x.Else, e) })
	st, isScalar := scalarOf(e.typeOf(x))
	if isScalar && len(ca) == 0 && len(cb) == 0 {
		return cond(c, cast(l.toEx(a, x.Then), st), cast(l.toEx(b, x.Else), st))
	}
	t := l.alloc("tmp", e.typeOf(x), true)
	els, end := &label{}, &label{}
	l.branch(c, els)
	l.code.list = append(l.code.list, ca...)
	l.assign(t, a)
	l.jump(end)
	l.emitLabel(els)
	l.code.list = append(l.code.list, cb...)
	l.assign(t, b)
	l.emitLabel(end)
	return t
}

// bounded reports an expression that has grown too large. It moves an expression
// that is nested too deeply to a variable.
func (l *lowerer) bounded(x *ex, at syntax.Node) *ex {
	if x.size > maxOperators {
		l.unsupported(at, "an expression that has more than %d operators once its calls are inlined (docs/limits.md)", maxOperators)
	}
	if x.depth > maxNesting && x.st.width > 0 && !x.st.varbit {
		return l.settled(x)
	}
	return x
}
