package lower

import (
	"math/big"

	"github.com/p4lb/p4lb/internal/p4/syntax"
	"github.com/p4lb/p4lb/internal/p4/types"
)

// constant returns a folded constant as a value of type t.
func (l *lowerer) constant(v types.Value, t types.Type) value {
	t = types.Underlying(t)
	st, scalar := scalarOf(t)
	switch v := v.(type) {
	case *big.Int:
		return constEx(v, st)
	case bool:
		return boolEx(v)
	case string:
		return &ex{op: opString, str: v, st: st}
	case *types.ErrorValue:
		return intEx(int64(v.Index), code32)
	case *types.EnumValue:
		if scalar && v.Type.Repr != nil {
			return constEx(v.Type.Members[v.Index].Value, st)
		}
		return intEx(int64(v.Index), code32)
	case *types.AggregateValue:
		if s, ok := t.(*types.Struct); ok && s.Kind == syntax.StructKindHeader {
			lit := &literal{typ: s, invalid: v.Invalid}
			for i, el := range v.Elems {
				lit.fields = append(lit.fields, l.flat(l.constant(el, s.Fields[i].Type), s.Fields[i].Type)...)
			}
			return lit
		}
		a := &aggregate{typ: t}
		_, parts, _ := components(t)
		for i, el := range v.Elems {
			a.elems = append(a.elems, l.constant(el, partType(t, parts, i)))
		}
		return a
	}
	return nil
}

func partType(t types.Type, parts []types.Type, i int) types.Type {
	if list, ok := t.(*types.List); ok {
		return list.Elem
	}
	if i < len(parts) {
		return parts[i]
	}
	return types.Invalid
}

// convert returns a list as a value of the struct, header or tuple type t.
func convert(v value, t types.Type) value {
	a, ok := v.(*aggregate)
	if !ok {
		return v
	}
	return &aggregate{typ: types.Underlying(t), elems: a.elems}
}

func (l *lowerer) evalList(x *syntax.ListExpr, e *env) value {
	t := types.Underlying(e.typeOf(x))
	a := &aggregate{typ: t}
	for i, el := range x.Elems {
		if _, ok := el.(*syntax.Dots); ok {
			_, parts, _ := components(t)
			for k := i; k < len(parts); k++ {
				a.elems = append(a.elems, l.defaultOf(parts[k]))
			}
			break
		}
		a.elems = append(a.elems, l.evalNext(a.elems, el, e))
	}
	return l.headerLiteral(a)
}

// evalNext evaluates x. It saves values in before that the code of x would change.
func (l *lowerer) evalNext(before []value, x syntax.Expr, e *env) value {
	m := l.mark()
	v := l.eval(x, e)
	if l.mark() != m {
		for i := range before {
			n := l.mark()
			before[i] = l.stableValue(before[i], m)
			m += l.mark() - n
		}
	}
	return v
}

// headerLiteral turns a list typed as a header into a literal.
func (l *lowerer) headerLiteral(a *aggregate) value {
	s, ok := a.typ.(*types.Struct)
	if !ok || s.Kind != syntax.StructKindHeader {
		return a
	}
	lit := &literal{typ: s}
	for i, v := range a.elems {
		lit.fields = append(lit.fields, l.flat(v, s.Fields[i].Type)...)
	}
	return lit
}

// flat lists the scalars of v, a value of type t.
func (l *lowerer) flat(v value, t types.Type) []*ex {
	if isNothing(t) {
		return nil
	}
	if st, ok := scalarOf(t); ok {
		return []*ex{cast(l.toEx(v, l.at), st)}
	}
	a, ok := v.(*aggregate)
	_, parts, _ := components(t)
	if !ok || len(parts) != len(a.elems) {
		l.unsupported(l.at, "this value in a header")
	}
	var out []*ex
	for i, el := range a.elems {
		out = append(out, l.flat(el, parts[i])...)
	}
	return out
}

// literalPart returns field i of a header literal.
func (l *lowerer) literalPart(b *literal, i int) value {
	if b.invalid {
		return l.defaultOf(b.typ.Fields[i].Type)
	}
	at := 0
	for _, f := range b.typ.Fields[:i] {
		at += countScalars(f.Type)
	}
	return l.gather(b.fields, b.typ.Fields[i].Type, &at)
}

// gather builds a value of type t from the scalars at *at, and advances *at.
func (l *lowerer) gather(fs []*ex, t types.Type, at *int) value {
	if isNothing(t) {
		return nothing{}
	}
	if _, ok := scalarOf(t); ok {
		*at++
		return fs[*at-1]
	}
	a := &aggregate{typ: types.Underlying(t)}
	_, parts, _ := components(t)
	for _, p := range parts {
		a.elems = append(a.elems, l.gather(fs, p, at))
	}
	return a
}

func countScalars(t types.Type) int {
	if isNothing(t) {
		return 0
	}
	if _, ok := scalarOf(t); ok {
		return 1
	}
	n := 0
	_, parts, _ := components(t)
	for _, p := range parts {
		n += countScalars(p)
	}
	return n
}

func (l *lowerer) evalRecord(x *syntax.RecordExpr, e *env) value {
	t := types.Underlying(e.typeOf(x))
	s, ok := t.(*types.Struct)
	if !ok {
		l.unsupported(x, "a record of type %s", t)
	}
	vals := make([]value, 0, len(x.Fields))
	for _, f := range x.Fields {
		vals = append(vals, l.evalNext(vals, f.Value, e))
	}
	a := &aggregate{typ: t, elems: make([]value, len(s.Fields))}
	for i, f := range x.Fields {
		if k := s.FieldIndex(f.Name.Value); k >= 0 {
			a.elems[k] = vals[i]
		}
	}
	for i := range a.elems {
		if a.elems[i] == nil {
			a.elems[i] = l.defaultOf(s.Fields[i].Type)
		}
	}
	return l.headerLiteral(a)
}

// defaultOf returns the value that "..." denotes.
func (l *lowerer) defaultOf(t types.Type) value {
	t = types.Underlying(t)
	if isNothing(t) {
		return nothing{}
	}
	if st, ok := scalarOf(t); ok {
		return intEx(0, st)
	}
	if s, ok := t.(*types.Struct); ok && s.Kind != syntax.StructKindStruct {
		return &literal{typ: s, invalid: true}
	}
	a := &aggregate{typ: t}
	if s, ok := t.(*types.Stack); ok {
		for range s.Size {
			a.elems = append(a.elems, l.defaultOf(s.Elem))
		}
		return a
	}
	_, parts, _ := components(t)
	for _, p := range parts {
		a.elems = append(a.elems, l.defaultOf(p))
	}
	return a
}
