package lower

import "slices"

// A value that is a field is read only when some code uses it. If code in between
// writes the field, the value must be saved in a temporary before that code. A
// footprint is the set of places that some code writes.

// overlaps reports whether writing the place p may change the value v.
func (l *lowerer) overlaps(p, v value) bool {
	var written footprint
	l.cover(&written, p)
	return l.touches(&written, v)
}

// A footprint is the set of places that some code writes.
type footprint struct {
	places map[value]bool
	all    bool // the code may write any place
}

// cover adds the place p and all places inside it.
func (l *lowerer) cover(w *footprint, p value) {
	if w.places == nil {
		w.places = map[value]bool{}
	}
	l.spend(1)
	switch p := p.(type) {
	case nil, nothing:
		return
	case *bits:
		l.cover(w, p.of)
	case *element:
		for i := range p.elems {
			l.cover(w, p.at(i))
		}
	case *header:
		for _, f := range p.fields {
			w.places[f] = true
		}
		l.spend(len(p.fields))
	default:
		for _, el := range elementsOf(p) {
			l.cover(w, el)
		}
	}
	w.places[p] = true
}

// touches reports whether code with footprint w may change the value v.
func (l *lowerer) touches(w *footprint, v value) bool {
	if len(w.places) == 0 && !w.all {
		return false
	}
	switch v := v.(type) {
	case nil, nothing, *instance, *next:
		return false
	case *ex:
		l.spend(1 + v.size)
		if w.all {
			return v.reads()
		}
		return v.any(w.changes)
	case *literal:
		return slices.ContainsFunc(v.fields, func(f *ex) bool { return l.touches(w, f) })
	case *bits:
		return l.touches(w, v.of)
	case *element:
		return l.touches(w, v.index) || slices.ContainsFunc(v.elems, func(el value) bool { return l.touches(w, el) })
	case *header:
		l.spend(1 + len(v.fields))
		return w.all || w.places[v] || slices.ContainsFunc(v.fields, func(f *field) bool { return w.places[f] })
	case *field:
		l.spend(1)
		return w.all || w.places[v]
	}
	l.spend(1)
	return w.places[v] || slices.ContainsFunc(elementsOf(v), func(el value) bool { return l.touches(w, el) })
}

// changes reports whether the operand n reads a place in w.
func (w *footprint) changes(n *ex) bool {
	switch n.op {
	case opField:
		return w.places[n.f]
	case opValid:
		return w.places[n.h]
	case opUnion:
		return w.places[n.u] || slices.ContainsFunc(n.u.members, func(h *header) bool { return w.places[h] })
	case opLast, opLastIndex: // the element that they read is known only at run time
		return true
	}
	return false
}

// stable returns x as it was at mark m. If the code since m may change x, it saves
// x in a temporary at m.
func (l *lowerer) stable(x *ex, m int) *ex { return l.stableValue(x, m).(*ex) }

// writtenSince returns the places that the code since mark m writes. Primitives
// that write more than one field count as writing everything.
func (l *lowerer) writtenSince(m int) *footprint {
	w := &footprint{places: map[value]bool{}}
	for _, i := range l.code.list[m:] {
		l.spend(1)
		switch i.kind {
		case iLabel, iJump, iBranch:
			continue
		case iPrim:
			if f, ok := soleTarget(i); ok {
				w.places[f] = true
				continue
			}
			if effectOnly[i.prim] {
				continue
			}
			if h, ok := wholeHeader(i); ok {
				l.cover(w, h)
				continue
			}
		}
		w.all = true
		break
	}
	return w
}

// wholeHeader returns the header that a primitive writes, fields and validity. It
// excludes members of a union, because another member may become invalid too.
func wholeHeader(i *instr) (*header, bool) {
	switch i.prim {
	case "add_header", "add_header_fast", "remove_header", "assign_header":
		h, ok := i.args[0].(*header)
		return h, ok && !h.member
	}
	return nil, false
}

// effectOnly lists primitives that change no field or header.
var effectOnly = map[string]bool{"register_write": true, "count": true, "generate_digest": true, "log_msg": true, "assert": true, "assume": true, "truncate": true}

// stableValue is stable for values of any form. It returns v itself if the code
// since mark m does not change v.
func (l *lowerer) stableValue(v value, m int) value {
	if l.mark() == m {
		return v
	}
	return l.stableParts(v, l.writtenSince(m), &m)
}

// stableParts saves the parts of v that w touches at mark *m, and moves *m after
// the code that saves them.
func (l *lowerer) stableParts(v value, w *footprint, m *int) value {
	if !l.touches(w, v) {
		return v
	}
	switch v := v.(type) {
	case *aggregate:
		c := &aggregate{typ: v.typ}
		for _, el := range v.elems {
			c.elems = append(c.elems, l.stableParts(el, w, m))
		}
		return c
	case *literal:
		c := &literal{typ: v.typ, invalid: v.invalid}
		for _, f := range v.fields {
			c.fields = append(c.fields, l.stableParts(f, w, m).(*ex))
		}
		return c
	}
	t := v
	n := l.mark()
	l.insert(*m, func() {
		switch v := v.(type) {
		case *ex:
			t = l.copyOf(v)
		case *field:
			t = l.copyOf(fieldEx(v))
		default:
			t = l.saved(v)
		}
	})
	*m += l.mark() - n
	return t
}
