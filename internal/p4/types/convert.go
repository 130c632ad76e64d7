package types

import (
	"fmt"
	"math/big"
	"slices"

	"github.com/p4lb/p4lb/internal/p4/syntax"
	"github.com/p4lb/p4lb/internal/text/lists"
)

// A mismatch describes where and why an expression does not fit its context.
type mismatch struct {
	pos syntax.Pos
	why string
}

// assign checks e and converts it to want. to describes the context in messages:
// "x".
func (c *checker) assign(e syntax.Expr, want Type, to string) TypeAndValue {
	return c.assignValue(e, c.value(e), want, to)
}

// assignValue is assign for an expression that has been checked.
func (c *checker) assignValue(e syntax.Expr, tv TypeAndValue, want Type, to string) TypeAndValue {
	if tv.Type == Invalid || want == Invalid {
		return tv
	}
	out, bad := c.convert(e, tv, want)
	if bad == nil {
		return out
	}
	if bad.pos == e.Pos() {
		c.errorf(e.Pos(), "%s has type %s, but %s needs %s%s", show(e), tv.Type, to, want, bad.why)
	} else {
		c.errorf(bad.pos, "%s does not fit %s, which needs %s%s", show(e), to, want, bad.why)
	}
	return TypeAndValue{Type: Invalid}
}

// convert applies the implicit conversions of section 8.11.2. It records the new
// type and value of e, and of the elements of lists and records.
func (c *checker) convert(e syntax.Expr, tv TypeAndValue, want Type) (TypeAndValue, *mismatch) {
	if want == Invalid || want == wildcard {
		return tv, nil
	}
	out, bad := c.convertExpr(e, tv, want)
	if bad == nil {
		c.record(e, out)
	}
	return out, bad
}

func (c *checker) convertExpr(e syntax.Expr, tv TypeAndValue, want Type) (TypeAndValue, *mismatch) {
	switch x := e.(type) {
	case *syntax.ParenExpr:
		return c.convert(x.X, tv, want)
	case *syntax.CondExpr:
		if !identical(tv.Type, want) {
			return c.convertCond(x, tv, want)
		}
	case *syntax.ListExpr:
		return c.convertList(x, tv, want)
	case *syntax.RecordExpr:
		return c.convertRecord(x, tv, want)
	case *syntax.InvalidExpr:
		if !isHeaderType(want) {
			return TypeAndValue{}, &mismatch{x.Pos(), "; {#} is a header or header_union"}
		}
		return TypeAndValue{Type: want, Value: &AggregateValue{Invalid: true}, known: true}, nil
	case *syntax.Dots:
		if !hasDefault(want) {
			return tv, &mismatch{x.Pos(), "; that type has no default value"}
		}
		return TypeAndValue{Type: want, Value: defaultValue(want), known: true}, nil
	}
	return c.convertScalar(e, tv, want)
}

// weak reports whether the type of such an expression depends on its context.
func weak(t Type) bool {
	switch t := t.(type) {
	case *Basic:
		return t == Int || t == dotsType || t == nullHeader
	case *record:
		return true
	case *Tuple:
		return slices.ContainsFunc(t.Elems, weak)
	}
	return false
}

func (c *checker) convertScalar(e syntax.Expr, tv TypeAndValue, want Type) (TypeAndValue, *mismatch) {
	from := tv.Type
	if identical(from, want) {
		return tv, nil
	}
	if want == Int {
		return c.toInt(e, tv)
	}
	switch w := want.(type) {
	case *Bits:
		if from == Int {
			return c.sizeInt(e, tv, w), nil
		}
		if en, ok := from.(*Enum); ok && en.Repr != nil && *en.Repr == *w {
			tv.Type, tv.Value, tv.LValue = w, numberOrNil(tv.Value), false
			return tv, nil
		}
		return tv, &mismatch{e.Pos(), castHint(from, want)}
	case *New:
		// A plain number can become a "type" directly; only typed values need a
		// cast.
		if b, ok := Underlying(w).(*Bits); ok && from == Int {
			tv = c.sizeInt(e, tv, b)
			tv.Type = w
			return c.record(e, tv), nil
		}
	case *Parser, *Control, *Package, *Extern:
		if why, ok := fitsBlock(want, from); !ok {
			return tv, &mismatch{e.Pos(), why}
		}
		return c.refine(e, tv, want), nil
	}
	if matches(want, from) {
		return tv, nil
	}
	return tv, &mismatch{e.Pos(), castHint(from, want)}
}

// toInt converts a sized number to int. A number that is not constant keeps its
// type; only extern parameters and parameters without direction accept it.
func (c *checker) toInt(e syntax.Expr, tv TypeAndValue) (TypeAndValue, *mismatch) {
	if _, ok := tv.Type.(*Bits); !ok {
		return tv, &mismatch{e.Pos(), castHint(tv.Type, Int)}
	}
	if tv.Value != nil {
		tv.Type, tv.LValue = Int, false
	}
	return tv, nil
}

// numberOrNil is Number, but returns an untyped nil.
func numberOrNil(v Value) Value {
	if n := Number(v); n != nil {
		return n
	}
	return nil
}

// castHint returns a hint if an explicit cast would be allowed.
func castHint(from, to Type) string {
	if !castable(to, from) || from == Int && to == Bool {
		return ""
	}
	return fmt.Sprintf("; cast it: (%s)", to)
}

// sizeInt gives an int expression the type b. It warns if a constant loses its high
// bits.
func (c *checker) sizeInt(e syntax.Expr, tv TypeAndValue, b *Bits) TypeAndValue {
	v, ok := tv.Value.(*big.Int)
	tv.Type, tv.LValue = b, false
	if !ok {
		return tv
	}
	if w := wrap(v, b); w.Cmp(v) != 0 {
		c.warnf(e.Pos(), "%s does not fit %s: it becomes %s", show(e), b, w)
		tv.Value = w
	}
	return tv
}

func (c *checker) convertCond(x *syntax.CondExpr, tv TypeAndValue, want Type) (TypeAndValue, *mismatch) {
	then, bad := c.convert(x.Then, c.info.Types[x.Then], want)
	if bad != nil {
		return tv, bad
	}
	if _, bad := c.convert(x.Else, c.info.Types[x.Else], want); bad != nil {
		return tv, bad
	}
	tv.Type = then.Type
	tv.Value = c.chosen(x)
	return tv, nil
}

// chosen returns the value of a conditional expression with a constant condition.
func (c *checker) chosen(x *syntax.CondExpr) Value {
	cond, ok := c.info.Types[x.Cond].Value.(bool)
	switch {
	case !ok:
		return nil
	case cond:
		return c.info.Types[x.Then].Value
	}
	return c.info.Types[x.Else].Value
}

// convertList converts {a, b} to a struct, header, tuple, array or list.
func (c *checker) convertList(x *syntax.ListExpr, tv TypeAndValue, want Type) (TypeAndValue, *mismatch) {
	switch w := want.(type) {
	case *Struct:
		if w.isUnion() {
			return tv, &mismatch{x.Pos(), "; a header_union is set member by member"}
		}
		types := lists.Map(w.Fields, func(f Field) Type { return f.Type })
		return c.convertElems(x, types, want, "fields")
	case *Tuple:
		return c.convertElems(x, w.Elems, want, "elements")
	case *Stack:
		return c.convertElems(x, slices.Repeat([]Type{w.Elem}, w.Size), want, "elements")
	case *List:
		return c.convertElems(x, slices.Repeat([]Type{w.Elem}, len(x.Elems)), want, "elements")
	case *TypeParam:
		return tv, &mismatch{x.Pos(), ""}
	}
	return tv, &mismatch{x.Pos(), "; a list becomes a struct, header, tuple, array or list"}
}

func (c *checker) convertElems(x *syntax.ListExpr, want []Type, whole Type, what string) (TypeAndValue, *mismatch) {
	out := TypeAndValue{Type: whole, known: true}
	n := len(x.Elems)
	dots := n > 0 && isDots(x.Elems[n-1])
	if n != len(want) && !(dots && n-1 <= len(want)) {
		return out, &mismatch{x.Pos(), fmt.Sprintf("; it has %d %s, not %d", len(want), what, n)}
	}
	agg := &AggregateValue{Elems: make([]Value, len(want))}
	for i, e := range x.Elems {
		if isDots(e) {
			break
		}
		tv, bad := c.convert(e, c.info.Types[e], want[i])
		if bad != nil {
			return out, c.fieldMismatch(e, bad, elemName(whole, i), want[i])
		}
		out.known = out.known && tv.known
		agg.Elems[i] = tv.Value
	}
	if dots {
		for i := n - 1; i < len(want); i++ {
			if !hasDefault(want[i]) {
				return out, &mismatch{x.Elems[n-1].Pos(), fmt.Sprintf("; %s of type %s has no default value", elemName(whole, i), want[i])}
			}
			agg.Elems[i] = defaultValue(want[i])
		}
		c.record(x.Elems[n-1], TypeAndValue{Type: dotsType, known: true})
	}
	out.Value = complete(agg)
	return out, nil
}

// hasDefault reports whether ... can denote a value of type t.
func hasDefault(t Type) bool { return t == Invalid || hasTypeParam(t) || defaultValue(t) != nil }

func isDots(e syntax.Expr) bool {
	_, ok := e.(*syntax.Dots)
	return ok
}

// complete returns agg as a Value, or nil if an element is not constant.
func complete(agg *AggregateValue) Value {
	if slices.Contains(agg.Elems, nil) {
		return nil
	}
	return agg
}

func elemName(t Type, i int) string {
	if s, ok := t.(*Struct); ok {
		return "field " + s.Fields[i].Name
	}
	return fmt.Sprintf("element %d", i)
}

// fieldMismatch returns the mismatch of an element with the element's name.
func (c *checker) fieldMismatch(e syntax.Expr, bad *mismatch, name string, want Type) *mismatch {
	if bad.pos != e.Pos() {
		return bad
	}
	return &mismatch{bad.pos, fmt.Sprintf("; %s needs %s, %s has type %s%s", name, want, show(e), c.info.Types[e].Type, bad.why)}
}

// convertRecord converts {f = a} to a struct or header.
func (c *checker) convertRecord(x *syntax.RecordExpr, tv TypeAndValue, want Type) (TypeAndValue, *mismatch) {
	s, ok := want.(*Struct)
	if !ok || s.isUnion() {
		return tv, &mismatch{x.Pos(), "; {name = value} becomes a struct or header"}
	}
	out := TypeAndValue{Type: want, known: true}
	agg := &AggregateValue{Elems: make([]Value, len(s.Fields))}
	given := make([]bool, len(s.Fields))
	for _, f := range x.Fields {
		i := s.FieldIndex(f.Name.Value)
		if i < 0 {
			return out, &mismatch{f.Pos(), fmt.Sprintf("; %s has no field %s%s", s, f.Name.Value, c.suggest(f.Name.Value, fieldNames(s.Fields)))}
		}
		given[i] = true
		v, bad := c.convert(f.Value, c.info.Types[f.Value], s.Fields[i].Type)
		if bad != nil {
			return out, c.fieldMismatch(f.Value, bad, "field "+f.Name.Value, s.Fields[i].Type)
		}
		out.known = out.known && v.known
		agg.Elems[i] = v.Value
	}
	for i, f := range s.Fields {
		if given[i] {
			continue
		}
		if x.Dots == nil {
			return out, &mismatch{x.Pos(), fmt.Sprintf("; field %s has no value", f.Name)}
		}
		if !hasDefault(f.Type) {
			return out, &mismatch{x.Dots.Pos(), fmt.Sprintf("; field %s of type %s has no default value", f.Name, f.Type)}
		}
		agg.Elems[i] = defaultValue(f.Type)
	}
	if x.Dots != nil {
		c.record(x.Dots, TypeAndValue{Type: dotsType, known: true})
	}
	out.Value = complete(agg)
	return out, nil
}

func fieldNames(fs []Field) func() []string {
	return func() []string { return lists.Map(fs, func(f Field) string { return f.Name }) }
}

// matches is like Identical, but _ matches any type.
func matches(a, b Type) bool {
	if a == wildcard || b == wildcard || a == Invalid || b == Invalid {
		return true
	}
	switch a := a.(type) {
	case *Struct:
		b, ok := b.(*Struct)
		return ok && a.Decl == b.Decl && allMatch(a.Args, b.Args)
	case *Extern:
		b, ok := b.(*Extern)
		return ok && a.Decl == b.Decl && allMatch(a.Args, b.Args)
	case *Package:
		b, ok := b.(*Package)
		return ok && a.Decl == b.Decl && allMatch(a.Args, b.Args)
	case *Tuple:
		b, ok := b.(*Tuple)
		return ok && allMatch(a.Elems, b.Elems)
	case *Stack:
		b, ok := b.(*Stack)
		return ok && a.Size == b.Size && matches(a.Elem, b.Elem)
	case *List:
		b, ok := b.(*List)
		return ok && matches(a.Elem, b.Elem)
	}
	return identical(a, b)
}

func allMatch(a, b []Type) bool { return slices.EqualFunc(a, b, matches) }

// fitsBlock reports whether a parser, control, package or extern of type got can be
// passed as want. If it cannot, why gives the reason.
func fitsBlock(want, got Type) (why string, ok bool) {
	switch w := want.(type) {
	case *Parser:
		if g, ok := got.(*Parser); ok {
			return fitsApply(w.Apply, g.Apply)
		}
	case *Control:
		if g, ok := got.(*Control); ok {
			return fitsApply(w.Apply, g.Apply)
		}
	}
	return "", matches(want, got)
}

// fitsApply compares the parameters of apply. Either side may lack @optional
// parameters at the end.
func fitsApply(want, got *Func) (why string, ok bool) {
	for i := range max(len(want.Params), len(got.Params)) {
		switch {
		case i >= len(got.Params):
			if p := want.Params[i]; !p.Optional && p.Default == nil {
				return fmt.Sprintf("; its apply lacks the parameter %q", paramString(p)), false
			}
		case i >= len(want.Params):
			if p := got.Params[i]; !p.Optional && p.Default == nil {
				return fmt.Sprintf("; the parameter %s of its apply is one too many", p.Name), false
			}
		default:
			w, g := want.Params[i], got.Params[i]
			if w.Dir != g.Dir || !matches(w.Type, g.Type) {
				return fmt.Sprintf("; parameter %d of its apply is %q and should be %q", i+1, paramString(g), paramString(w)), false
			}
		}
	}
	return "", true
}
