package lower

import (
	"slices"

	"github.com/p4lb/p4lb/internal/p4/syntax"
	"github.com/p4lb/p4lb/internal/text/lists"
)

// assign copies src to the place dst.
func (l *lowerer) assign(dst, src value) {
	switch d := dst.(type) {
	case nil, nothing:
	case *field:
		l.set(d, cast(l.toEx(src, l.at), d.st))
	case *header:
		l.assignHeader(d, src)
	case *union:
		l.assignUnion(d, src)
	case *stack:
		l.assignStack(d, src)
	case *aggregate:
		l.assignAggregate(d, src)
	case *element:
		l.assignElement(d, src)
	case *bits:
		l.assignBits(d, src)
	default:
		l.unsupported(l.at, "assigning to this")
	}
}

func (l *lowerer) assignHeader(d *header, src value) {
	switch s := src.(type) {
	case *header:
		if s != d {
			l.prim("assign_header", d, s)
		}
	case *literal:
		if s.invalid {
			l.prim("remove_header", d)
			return
		}
		// First save values that an earlier assignment of this list would change.
		vals := make([]*ex, len(s.fields))
		written := validity(d)
		for j, v := range s.fields {
			vals[j] = v
			if l.touches(&written, v) {
				t := l.temp(v.st)
				l.set(t, v)
				vals[j] = fieldEx(t)
			}
			l.cover(&written, d.fields[j])
		}
		l.prim(l.arch.traits().addHeader, d)
		for i, f := range d.fields {
			l.set(f, vals[i])
		}
	case *aggregate:
		l.assignHeader(d, l.headerLiteral(&aggregate{typ: d.typ, elems: s.elems}))
	case *element:
		l.eachElement(s, func(v value) { l.assignHeader(d, v) })
	default:
		l.unsupported(l.at, "assigning this to a header")
	}
}

// validity returns the footprint of making h valid. If h is in a union, the other
// members become invalid, so the footprint covers everything.
func validity(h *header) footprint {
	return footprint{places: map[value]bool{h: true}, all: h.member}
}

func (l *lowerer) assignUnion(d *union, src value) {
	switch s := src.(type) {
	case *union:
		if s != d {
			l.prim("assign_union", d, s)
		}
	case *literal:
		for _, m := range d.members {
			l.prim("remove_header", m)
		}
	case *element:
		l.eachElement(s, func(v value) { l.assignUnion(d, v) })
	default:
		l.unsupported(l.at, "assigning this to a header union")
	}
}

func (l *lowerer) assignStack(d *stack, src value) {
	switch s := src.(type) {
	case *stack:
		if s == d {
			return
		}
		if d.union {
			l.prim("assign_union_stack", d, s)
		} else {
			l.prim("assign_header_stack", d, s)
		}
	case *aggregate:
		for i, el := range d.elems {
			if i < len(s.elems) {
				l.assign(el, s.elems[i])
			}
		}
	default:
		l.unsupported(l.at, "assigning this to a header stack")
	}
}

// assignAggregate copies part by part. It first saves the parts that an earlier
// assignment would overwrite.
func (l *lowerer) assignAggregate(d *aggregate, src value) {
	s, ok := src.(*aggregate)
	if !ok || len(s.elems) != len(d.elems) {
		l.unsupported(l.at, "assigning this to a struct")
	}
	if s == d {
		return
	}
	vals := append([]value(nil), s.elems...)
	var written footprint
	for j := range vals {
		if l.touches(&written, vals[j]) {
			vals[j] = l.saved(vals[j])
		}
		l.cover(&written, d.elems[j])
	}
	for i, p := range d.elems {
		l.assign(p, vals[i])
	}
}

// saved copies v to a temporary and returns it.
func (l *lowerer) saved(v value) value {
	switch v := v.(type) {
	case *ex:
		return l.settled(v)
	case *field:
		return l.settled(fieldEx(v))
	case *header:
		t := l.newHeader(l.unique("tmp"), v.typ, true)
		l.assign(t, v)
		return t
	case *aggregate:
		c := &aggregate{typ: v.typ}
		for _, el := range v.elems {
			c.elems = append(c.elems, l.saved(el))
		}
		return c
	case *literal:
		c := &literal{typ: v.typ, invalid: v.invalid}
		for _, f := range v.fields {
			c.fields = append(c.fields, l.settled(f))
		}
		return c
	case *union:
		t := l.newUnion(l.unique("tmp"), v.typ, true)
		l.assign(t, v)
		return t
	case *stack:
		t := l.newStack(l.unique("tmp"), v.typ, true)
		l.assign(t, v)
		return t
	case *element:
		return l.materialize(v)
	case *bits:
		return l.settled(l.toEx(v, l.at))
	}
	return v
}

// equalValues builds a == b for values of any type.
func (l *lowerer) equalValues(a, b value, at syntax.Node) *ex {
	switch av := a.(type) {
	case *aggregate:
		if _, ok := b.(*aggregate); !ok {
			l.unsupported(at, "this comparison")
		}
		return l.equalParts(a, b, at)
	case *header, *literal:
		return l.equalHeaders(a, b, at)
	case *union, *stack:
		return l.equalParts(a, b, at)
	case *element:
		if av.isHeader() {
			return l.equalValues(l.materialize(av), b, at)
		}
	}
	return equal(l.toEx(a, at), l.toEx(b, at))
}

// equalParts compares part by part.
func (l *lowerer) equalParts(a, b value, at syntax.Node) *ex {
	as, bs := elementsOf(a), elementsOf(b)
	if len(as) != len(bs) {
		l.unsupported(at, "this comparison")
	}
	r := boolEx(true)
	for i := range as {
		r = l.bounded(andAlso(r, l.equalValues(as[i], bs[i], at)), at)
	}
	return r
}

// equalHeaders builds a == b for headers: both invalid, or both valid with equal
// fields.
func (l *lowerer) equalHeaders(a, b value, at syntax.Node) *ex {
	if e, ok := b.(*element); ok {
		b = l.materialize(e)
	}
	va, fa := headerParts(a)
	vb, fb := headerParts(b)
	if va == nil || vb == nil {
		l.unsupported(at, "this comparison")
	}
	same := andAlso(va, vb)
	if !same.isFalse() {
		for i := range fa {
			same = l.bounded(andAlso(same, equal(fa[i], fb[i])), at)
		}
	}
	return orElse(andAlso(not(va), not(vb)), same)
}

func headerParts(v value) (valid *ex, fields []*ex) {
	switch v := v.(type) {
	case *header:
		return &ex{op: opValid, h: v, st: boolean}, lists.Map(v.fields, fieldEx)
	case *literal:
		return boolEx(!v.invalid), v.fields
	}
	return nil, nil
}

// isHeader reports whether the element is a whole header or union.
func (d *element) isHeader() bool {
	switch d.at(0).(type) {
	case *header, *union:
		return true
	}
	return false
}

// inner returns part k of the element.
func (d *element) inner(k int) value {
	sel := &element{elems: d.elems, index: d.index, last: d.last, sel: append(slices.Clone(d.sel), k)}
	a, ok := sel.at(0).(*aggregate)
	if !ok {
		return sel
	}
	c := &aggregate{typ: a.typ}
	for i := range a.elems {
		c.elems = append(c.elems, sel.inner(i))
	}
	return c
}

// readElement reads a scalar of stack[index]. BMv2 reads stack.last directly. Other
// indices become a chain of choices, because an index out of range must have no
// effect.
func (l *lowerer) readElement(d *element) *ex {
	if d.isHeader() {
		l.unsupported(l.at, "a header where a number is wanted")
	}
	n := len(d.elems)
	if f, ok := d.at(n - 1).(*field); ok && d.last != nil && l.block == parserBlock {
		r := &ex{op: opLast, s: d.last, str: f.name, st: f.st}
		if d.last.union {
			r.member = d.elems[0].(*union).typ.Fields[d.sel[0]].Name
		}
		return r
	}
	index := l.settled(d.index)
	r := l.toEx(d.at(n-1), l.at)
	for i := n - 2; i >= 0; i-- {
		if fits(i, index.st) {
			r = l.bounded(cond(equal(index, intEx(int64(i), index.st)), l.toEx(d.at(i), l.at), r), l.at)
		}
	}
	return r
}

func fits(i int, st scalar) bool { return st.width == 0 || st.width > 30 || i < 1<<st.width }

// eachElement runs f on the element that the index selects, or on none if the index
// is out of range.
func (l *lowerer) eachElement(d *element, f func(v value)) {
	index := l.settled(d.index)
	end := &label{}
	for i := range d.elems {
		if !fits(i, index.st) {
			break
		}
		skip := &label{}
		l.branch(equal(index, intEx(int64(i), index.st)), skip)
		f(d.at(i))
		l.jump(end)
		l.emitLabel(skip)
	}
	l.emitLabel(end)
}

func (l *lowerer) assignElement(d *element, src value) {
	switch s := src.(type) {
	case *ex:
		if s.reads() {
			src = l.settled(s)
		}
	case *element:
		src = l.materialize(s)
	}
	if d.isHeader() {
		l.eachElement(d, func(v value) { l.assign(v, src) })
		return
	}
	index, x := l.settled(d.index), l.toEx(src, l.at)
	for i := range d.elems {
		if f, ok := d.at(i).(*field); ok && fits(i, index.st) {
			l.set(f, cond(equal(index, intEx(int64(i), index.st)), cast(x, f.st), fieldEx(f)))
		}
	}
}

// materialize copies the selected element to a variable.
func (l *lowerer) materialize(d *element) value {
	if !d.isHeader() {
		return l.settled(l.readElement(d))
	}
	var t value
	switch v := d.at(0).(type) {
	case *header:
		t = l.newHeader(l.unique("tmp"), v.typ, true)
	case *union:
		t = l.newUnion(l.unique("tmp"), v.typ, true)
	}
	l.invalidate(t)
	l.eachElement(d, func(v value) { l.assign(t, v) })
	return t
}

// invalidate resets the headers of a variable at its declaration.
func (l *lowerer) invalidate(v value) {
	switch v := v.(type) {
	case *header:
		l.prim("remove_header", v)
	case *union, *stack, *aggregate:
		for _, e := range elementsOf(v) {
			l.invalidate(e)
		}
	}
}

// assignBits writes a slice: it reads the whole field, replaces the bits, and
// writes the field.
func (l *lowerer) assignBits(b *bits, src value) {
	whole := l.toEx(b.of, l.at)
	l.assign(b.of, insertBits(whole, cast(l.toEx(src, l.at), scalar{width: b.width}), b.lo, b.width))
}
