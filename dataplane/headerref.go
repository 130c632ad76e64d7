package dataplane

import (
	"errors"
	"fmt"

	"github.com/p4lb/p4lb/bmv2"
	"github.com/p4lb/p4lb/dataplane/num"
)

// A headerRef is a header that is known when the program is linked, or picked
// by a run-time index into a stack. get returns nil for an index outside the
// stack, where BMv2 throws: reading such an element gives zero, writing to it
// does nothing.
type headerRef struct {
	typ  *headerType
	h    *header // nil if picked at run time
	pick func(*State) *header
}

func (r headerRef) get() func(*State) *header {
	if h := r.h; h != nil {
		return func(*State) *header { return h }
	}
	return r.pick
}

// header links an expression that denotes a header.
func (l *Linker) header(e *bmv2.Expr) (headerRef, error) {
	e = e.Unwrap()
	if e == nil {
		return headerRef{}, errNoExpr
	}
	switch {
	case e.Type == bmv2.TypeHeader:
		h := l.lay.headerNames[e.Name]
		if h == nil {
			return headerRef{}, fmt.Errorf("unknown header %q", e.Name)
		}
		return headerRef{typ: h.typ, h: h}, nil
	case e.Type == bmv2.TypeExpression && e.Op == "dereference_header_stack":
		return l.element(e)
	case e.Type == bmv2.TypeExpression && e.Op == "access_union_header":
		return l.unionMember(e)
	}
	return headerRef{}, fmt.Errorf("%v is not a header", e)
}

func (l *Linker) element(e *bmv2.Expr) (headerRef, error) {
	s, err := l.stack(e.Left)
	if err != nil {
		return headerRef{}, err
	}
	index, err := l.number(e.Right)
	if err != nil {
		return headerRef{}, err
	}
	if len(s.elements) == 0 {
		return headerRef{}, fmt.Errorf("stack %s is empty", s.name)
	}
	at := index.low()
	return headerRef{typ: s.typ, pick: func(p *State) *header {
		if i := at(p); i < uint64(len(s.elements)) {
			return s.elements[i]
		}
		return nil
	}}, nil
}

func (l *Linker) unionMember(e *bmv2.Expr) (headerRef, error) {
	u, err := l.union(e.Left)
	if err != nil {
		return headerRef{}, err
	}
	if e.Right == nil || e.Right.Type != bmv2.TypeInt || e.Right.Int < 0 || e.Right.Int >= len(u.any.members) {
		return headerRef{}, fmt.Errorf("access_union_header: no member %v", e.Right)
	}
	i := e.Right.Int
	get := u.get()
	return headerRef{typ: u.any.members[i].typ, pick: func(p *State) *header {
		if un := get(p); un != nil {
			return un.members[i]
		}
		return nil
	}}, nil
}

func (l *Linker) stack(e *bmv2.Expr) (*stack, error) {
	e = e.Unwrap()
	if e != nil && e.Type == bmv2.TypeHeaderStack {
		if s := l.lay.stackNames[e.Name]; s != nil {
			return s, nil
		}
	}
	return nil, fmt.Errorf("%v is not a header stack", e)
}

func (l *Linker) unionStack(e *bmv2.Expr) (*unionStack, error) {
	e = e.Unwrap()
	if e != nil && e.Type == bmv2.TypeHeaderUnionStack {
		if s := l.lay.unionStackNames[e.Name]; s != nil {
			return s, nil
		}
	}
	return nil, fmt.Errorf("%v is not a stack of header unions", e)
}

// A unionRef is a union, or one picked from a stack; any is one with the same
// members.
type unionRef struct {
	any  *union
	pick func(*State) *union
}

func (r unionRef) get() func(*State) *union {
	if r.pick != nil {
		return r.pick
	}
	u := r.any
	return func(*State) *union { return u }
}

func (r unionRef) isValid() test {
	get := r.get()
	return func(p *State) bool {
		u := get(p)
		return u != nil && u.validMember(p) >= 0
	}
}

// union links an expression that denotes a header union.
func (l *Linker) union(e *bmv2.Expr) (unionRef, error) {
	e = e.Unwrap()
	if e == nil {
		return unionRef{}, errNoExpr
	}
	if e.Type == bmv2.TypeHeaderUnion && l.lay.unionNames[e.Name] != nil {
		return unionRef{any: l.lay.unionNames[e.Name]}, nil
	}
	if e.Type != bmv2.TypeExpression || e.Op != "dereference_union_stack" {
		return unionRef{}, fmt.Errorf("%v is not a header union", e)
	}
	s, err := l.unionStack(e.Left)
	if err != nil {
		return unionRef{}, err
	}
	index, err := l.number(e.Right)
	if err != nil {
		return unionRef{}, err
	}
	at := index.low()
	return unionRef{any: s.elements[0], pick: func(p *State) *union {
		if i := at(p); i < uint64(len(s.elements)) {
			return s.elements[i]
		}
		return nil
	}}, nil
}

// A place is a field that may be found at run time only: base gives the base
// of its header, or that of the scratch words, and ok whether it exists.
type place struct {
	f    field // relative to base, or absolute if base is nil
	base func(*State) (base int, ok bool)
}

// value reads the place; what is not there is zero.
func (pl place) value() value {
	if pl.base == nil {
		return fieldValue(pl.f)
	}
	v := fieldValue(pl.f)
	base, off, n := pl.base, pl.f.off, pl.f.words()
	v.kind = fnKind
	v.fn = func(p *State) uint64 {
		if b, ok := base(p); ok {
			return p.w[b+off]
		}
		return 0
	}
	if pl.f.width > 64 {
		signed := pl.f.signed
		v.wide = func(p *State, dst []uint64) {
			b, ok := base(p)
			switch {
			case !ok:
				clear(dst)
			case signed:
				num.Copy(dst, p.w[b+off:b+off+n])
			default:
				num.CopyUnsigned(dst, p.w[b+off:b+off+n])
			}
		}
	}
	return v
}

var errNoField = errors.New("access_field: no such field")

// elementField links access_field, the field of a header that may be picked
// at run time.
func (l *Linker) elementField(e *bmv2.Expr) (place, error) {
	r, err := l.header(e.Left)
	if err != nil {
		return place{}, err
	}
	if e.Right == nil || e.Right.Type != bmv2.TypeInt || e.Right.Int < 0 || e.Right.Int > len(r.typ.fields) {
		return place{}, errNoField
	}
	f := field{width: 1} // the hidden field that follows the others: valid
	if e.Right.Int < len(r.typ.fields) {
		f = r.typ.fields[e.Right.Int]
	}
	if r.h != nil {
		return place{f: f.at(r.h.base)}, nil
	}
	pick := r.pick
	return place{f: f, base: func(p *State) (int, bool) {
		if h := pick(p); h != nil {
			return h.base, true
		}
		return 0, false
	}}, nil
}

// lastPlace links stack_field, a field of the last element in use.
func (l *Linker) lastPlace(e *bmv2.Expr) (place, error) {
	s := l.lay.stackNames[e.Name]
	if s == nil {
		return place{}, fmt.Errorf("unknown header stack %q", e.Name)
	}
	f, ok := s.typ.field(e.Field)
	if !ok {
		return place{}, fmt.Errorf("unknown field %s.last.%s", e.Name, e.Field)
	}
	return place{f: f, base: func(p *State) (int, bool) {
		if n := p.w[s.next]; n > 0 && n <= uint64(len(s.elements)) {
			return s.elements[n-1].base, true
		}
		return 0, false
	}}, nil
}

// lastUnionPlace links union_stack_field.
func (l *Linker) lastUnionPlace(e *bmv2.Expr) (place, error) {
	s := l.lay.unionStackNames[e.Name]
	if s == nil {
		return place{}, fmt.Errorf("unknown stack of header unions %q", e.Name)
	}
	i := s.member(e.Member)
	if i < 0 {
		return place{}, fmt.Errorf("%s has no member %q", e.Name, e.Member)
	}
	f, ok := s.elements[0].members[i].typ.field(e.Field)
	if !ok {
		return place{}, fmt.Errorf("unknown field %s.last.%s.%s", e.Name, e.Member, e.Field)
	}
	return place{f: f, base: func(p *State) (int, bool) {
		if n := p.w[s.next]; n > 0 && n <= uint64(len(s.elements)) {
			return s.elements[n-1].members[i].base, true
		}
		return 0, false
	}}, nil
}

func (s *unionStack) member(name string) int {
	for i, n := range s.elements[0].names {
		if n == name {
			return i
		}
	}
	return -1
}

func (l *Linker) lastField(e *bmv2.Expr) (value, error) {
	pl, err := l.lastPlace(e)
	if err != nil {
		return value{}, err
	}
	return pl.value(), nil
}
