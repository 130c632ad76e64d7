package vector

import (
	"errors"
	"fmt"
	"slices"

	"github.com/p4lb/p4lb/internal/bmv2"
	"github.com/p4lb/p4lb/internal/dataplane/num"
)

// A headerRef is a header known at link time, or one selected by a run-time
// index into a stack. Get returns nil for an index outside the stack, where
// BMv2 throws. Such an element reads as zero and ignores writes.
type headerRef struct {
	Type *HeaderType
	H    *Header // nil if selected at run time
	Pick func(*State) *Header
}

// Get returns a function that returns the header for a packet.
func (r headerRef) Get() func(*State) *Header {
	if h := r.H; h != nil {
		return func(*State) *Header { return h }
	}
	return r.Pick
}

// Header links an expression for a header.
func (l *Linker) Header(e *bmv2.Expr) (headerRef, error) {
	e = e.Unwrap()
	if e == nil {
		return headerRef{}, errNoExpr
	}
	switch {
	case e.Type == bmv2.TypeHeader:
		h := l.Layout.HeaderNames[e.Name]
		if h == nil {
			return headerRef{}, fmt.Errorf("unknown header %q", e.Name)
		}
		return headerRef{Type: h.Type, H: h}, nil
	case e.Type == bmv2.TypeExpression && e.Op == "dereference_header_stack":
		s, err := l.Stack(e.Left)
		if err != nil {
			return headerRef{}, err
		}
		index, err := l.Number(e.Right)
		if err != nil {
			return headerRef{}, err
		}
		if len(s.Elements) == 0 {
			return headerRef{}, fmt.Errorf("stack %s is empty", s.name)
		}
		at := index.Low()
		return headerRef{Type: s.Type, Pick: func(p *State) *Header {
			if i := at(p); i < uint64(len(s.Elements)) {
				return s.Elements[i]
			}
			return nil
		}}, nil
	case e.Type == bmv2.TypeExpression && e.Op == "access_union_header":
		u, err := l.Union(e.Left)
		if err != nil {
			return headerRef{}, err
		}
		if e.Right == nil || e.Right.Type != bmv2.TypeInt || e.Right.Int < 0 || e.Right.Int >= len(u.Any.Members) {
			return headerRef{}, fmt.Errorf("access_union_header: no member %v", e.Right)
		}
		i := e.Right.Int
		get := u.Get()
		return headerRef{Type: u.Any.Members[i].Type, Pick: func(p *State) *Header {
			if un := get(p); un != nil {
				return un.Members[i]
			}
			return nil
		}}, nil
	}
	return headerRef{}, fmt.Errorf("%v is not a header", e)
}

// Stack finds the header stack of an expression.
func (l *Linker) Stack(e *bmv2.Expr) (*stack, error) {
	e = e.Unwrap()
	if e != nil && e.Type == bmv2.TypeHeaderStack {
		if s := l.Layout.StackNames[e.Name]; s != nil {
			return s, nil
		}
	}
	return nil, fmt.Errorf("%v is not a header stack", e)
}

// UnionStack finds the stack of header unions of an expression.
func (l *Linker) UnionStack(e *bmv2.Expr) (*unionStack, error) {
	e = e.Unwrap()
	if e != nil && e.Type == bmv2.TypeHeaderUnionStack {
		if s := l.Layout.UnionStackNames[e.Name]; s != nil {
			return s, nil
		}
	}
	return nil, fmt.Errorf("%v is not a stack of header unions", e)
}

// A unionRef is a union, or one selected from a stack; Any is a union with the
// same members.
type unionRef struct {
	Any  *union
	pick func(*State) *union
}

// Get returns a function that returns the union for a packet.
func (r unionRef) Get() func(*State) *union {
	if r.pick != nil {
		return r.pick
	}
	u := r.Any
	return func(*State) *union { return u }
}

func (r unionRef) isValid() Test {
	get := r.Get()
	return func(p *State) bool {
		u := get(p)
		return u != nil && u.validMember(p) >= 0
	}
}

// Union links an expression for a header union.
func (l *Linker) Union(e *bmv2.Expr) (unionRef, error) {
	e = e.Unwrap()
	if e == nil {
		return unionRef{}, errNoExpr
	}
	if e.Type == bmv2.TypeHeaderUnion && l.Layout.unionNames[e.Name] != nil {
		return unionRef{Any: l.Layout.unionNames[e.Name]}, nil
	}
	if e.Type != bmv2.TypeExpression || e.Op != "dereference_union_stack" {
		return unionRef{}, fmt.Errorf("%v is not a header union", e)
	}
	s, err := l.UnionStack(e.Left)
	if err != nil {
		return unionRef{}, err
	}
	index, err := l.Number(e.Right)
	if err != nil {
		return unionRef{}, err
	}
	at := index.Low()
	return unionRef{Any: s.Elements[0], pick: func(p *State) *union {
		if i := at(p); i < uint64(len(s.Elements)) {
			return s.Elements[i]
		}
		return nil
	}}, nil
}

// A Place is a field, perhaps found at run time: Base returns the base of its
// header, or of the scratch words, and whether the header exists.
type Place struct {
	Field Field // relative to base, or absolute if base is nil
	Base  func(*State) (base int, ok bool)
}

// Value returns the value of the place; a missing header reads as zero.
func (pl Place) Value() Value {
	if pl.Base == nil {
		return FieldValue(pl.Field)
	}
	v := FieldValue(pl.Field)
	base, off, n := pl.Base, pl.Field.Off, pl.Field.Words()
	v.Kind = fnKind
	v.fn = func(p *State) uint64 {
		if b, ok := base(p); ok {
			return p.W[b+off]
		}
		return 0
	}
	if pl.Field.Width > 64 {
		signed := pl.Field.Signed
		v.Wide = func(p *State, dst []uint64) {
			b, ok := base(p)
			switch {
			case !ok:
				clear(dst)
			case signed:
				num.Copy(dst, p.W[b+off:b+off+n])
			default:
				num.CopyUnsigned(dst, p.W[b+off:b+off+n])
			}
		}
	}
	return v
}

var errNoField = errors.New("access_field: no such field")

// ElementField links access_field, a field of a header that may be selected at
// run time.
func (l *Linker) ElementField(e *bmv2.Expr) (Place, error) {
	r, err := l.Header(e.Left)
	if err != nil {
		return Place{}, err
	}
	if e.Right == nil || e.Right.Type != bmv2.TypeInt || e.Right.Int < 0 || e.Right.Int > len(r.Type.Fields) {
		return Place{}, errNoField
	}
	f := Field{Width: 1} // the hidden validity field comes after the others
	if e.Right.Int < len(r.Type.Fields) {
		f = r.Type.Fields[e.Right.Int]
	}
	if r.H != nil {
		return Place{Field: f.at(r.H.Base)}, nil
	}
	pick := r.Pick
	return Place{Field: f, Base: func(p *State) (int, bool) {
		if h := pick(p); h != nil {
			return h.Base, true
		}
		return 0, false
	}}, nil
}

// LastPlace links stack_field, a field of the last used element.
func (l *Linker) LastPlace(e *bmv2.Expr) (Place, error) {
	s := l.Layout.StackNames[e.Name]
	if s == nil {
		return Place{}, fmt.Errorf("unknown header stack %q", e.Name)
	}
	f, ok := s.Type.field(e.Field)
	if !ok {
		return Place{}, fmt.Errorf("unknown field %s.last.%s", e.Name, e.Field)
	}
	return Place{Field: f, Base: func(p *State) (int, bool) {
		if n := p.W[s.Next]; n > 0 && n <= uint64(len(s.Elements)) {
			return s.Elements[n-1].Base, true
		}
		return 0, false
	}}, nil
}

// LastUnionPlace links union_stack_field.
func (l *Linker) LastUnionPlace(e *bmv2.Expr) (Place, error) {
	s := l.Layout.UnionStackNames[e.Name]
	if s == nil {
		return Place{}, fmt.Errorf("unknown stack of header unions %q", e.Name)
	}
	i := s.Member(e.Member)
	if i < 0 {
		return Place{}, fmt.Errorf("%s has no member %q", e.Name, e.Member)
	}
	f, ok := s.Elements[0].Members[i].Type.field(e.Field)
	if !ok {
		return Place{}, fmt.Errorf("unknown field %s.last.%s.%s", e.Name, e.Member, e.Field)
	}
	return Place{Field: f, Base: func(p *State) (int, bool) {
		if n := p.W[s.Next]; n > 0 && n <= uint64(len(s.Elements)) {
			return s.Elements[n-1].Members[i].Base, true
		}
		return 0, false
	}}, nil
}

// Member returns the index of a member in each union, or -1.
func (s *unionStack) Member(name string) int { return slices.Index(s.Elements[0].names, name) }
