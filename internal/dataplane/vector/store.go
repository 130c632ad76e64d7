package vector

import (
	"errors"
	"fmt"
	"math/big"

	"github.com/p4lb/p4lb/internal/bmv2"
	"github.com/p4lb/p4lb/internal/dataplane/num"
)

// Place links an expression for the target of an assignment.
func (l *Linker) Place(e *bmv2.Expr) (Place, error) {
	e = e.Unwrap()
	if e == nil {
		return Place{}, errNoExpr
	}
	switch {
	case e.Type == bmv2.TypeField:
		f, err := l.FieldRef(e)
		return Place{Field: f}, err
	case e.Type == bmv2.TypeStackField:
		return l.LastPlace(e)
	case e.Type == bmv2.TypeExpression && e.Op == "access_field":
		return l.ElementField(e)
	}
	return Place{}, fmt.Errorf("%v cannot be assigned to", e)
}

// Assign links an assignment to a field, or to a cell of a register.
func (l *Linker) Assign(dst, src *bmv2.Expr) (Step, error) {
	v, err := l.Number(src)
	if err != nil {
		return nil, err
	}
	if e := dst.Unwrap(); e != nil && e.Type == bmv2.TypeRegister {
		return l.Cells.WriteCell(e, v)
	}
	pl, err := l.Place(dst)
	if err != nil {
		return nil, err
	}
	if pl.Field.VarLen {
		return l.AssignVL(dst, src)
	}
	return pl.Store(v), nil
}

// AssignVL links the assignment of a field of variable length.
func (l *Linker) AssignVL(dst, src *bmv2.Expr) (Step, error) {
	d, s, err := Both(l.Place, dst, src)
	if err != nil {
		return nil, err
	}
	if d.Base != nil || s.Base != nil {
		return nil, errors.New("a variable-length field at a run-time index")
	}
	to, from := d.Field, s.Field
	if !to.VarLen || !from.VarLen {
		return nil, fmt.Errorf("%s or %s is not of variable length", to.Name, from.Name)
	}
	n := min(to.Words(), from.Words())
	return func(p *State) {
		p.W[to.LenOff()] = min(p.W[from.LenOff()], uint64(to.Width))
		clear(p.W[to.Off : to.Off+to.Words()])
		copy(p.W[to.Off:to.Off+n], p.W[from.Off:from.Off+n])
	}, nil
}

// Store links an assignment of a number to a place.
func (pl Place) Store(v Value) Step {
	if pl.Field.Width > 64 {
		n, width, signed := pl.Field.Words(), pl.Field.Width, pl.Field.Signed
		wide := v.WideFn()
		base, off := pl.Base, pl.Field.Off
		return func(p *State) {
			b := 0
			if base != nil {
				var ok bool
				if b, ok = base(p); !ok {
					return
				}
			}
			t := p.Scratch.Push(n)
			wide(p, t)
			if signed {
				num.Extend(t, width)
			} else {
				num.Mask(t, width)
			}
			copy(p.W[b+off:b+off+n], t)
			p.Scratch.Pop(n)
		}
	}
	if pl.Base == nil && !pl.Field.Signed {
		return storeWord(pl.Field, v)
	}
	f, set := v.Low(), pl.Setter(v)
	return func(p *State) { set(p, f(p)) }
}

// storeWord returns the step for the common case: an unsigned field of at most 64
// bits.
func storeWord(f Field, v Value) Step {
	off, m := f.Off, num.Mask64(f.Width)
	if v.masked != nil && v.mask&m == m {
		v = *v.masked
	}
	fits := v.FitsUnsigned() && v.Hi.Cmp(new(big.Int).SetUint64(m)) <= 0
	src, c := v.Off, v.Bits&m
	switch {
	case v.Kind == ConstKind:
		return func(p *State) { p.W[off] = c }
	case v.Kind == WordKind && fits:
		return func(p *State) { p.W[off] = p.W[src] }
	case v.Kind == ArgKind && fits:
		return func(p *State) { p.W[off] = p.Args[src] }
	case fits:
		fn := v.Low()
		return func(p *State) { p.W[off] = fn(p) }
	}
	fn := v.Low()
	return func(p *State) { p.W[off] = fn(p) & m }
}

// Setter returns a function that stores a number in v's interval in a place of
// at most 64 bits.
func (pl Place) Setter(v Value) func(*State, uint64) {
	off, base := pl.Field.Off, pl.Base
	fit := pl.Field.fitter(v)
	if base == nil {
		return func(p *State, x uint64) { p.W[off] = fit(x) }
	}
	return func(p *State, x uint64) {
		if b, ok := base(p); ok {
			p.W[b+off] = fit(x)
		}
	}
}

// Set returns a Setter for numbers of 64 bits.
func (pl Place) Set() func(*State, uint64) {
	if pl.Field.Width > 64 {
		store := func(p *State, x uint64, at int) {
			p.W[at] = x
			clear(p.W[at+1 : at+pl.Field.Words()])
		}
		if pl.Base == nil {
			return func(p *State, x uint64) { store(p, x, pl.Field.Off) }
		}
		return func(p *State, x uint64) {
			if b, ok := pl.Base(p); ok {
				store(p, x, b+pl.Field.Off)
			}
		}
	}
	return pl.Setter(Unsigned64(64, nil))
}

// fitter returns a function that cuts a number to the field. Like BMv2, a
// signed field keeps numbers between its smallest number and its mask, and
// wraps others.
func (f Field) fitter(v Value) func(uint64) uint64 {
	width := f.Width
	if !f.Signed {
		m := num.Mask64(width)
		return func(x uint64) uint64 { return x & m }
	}
	if width == 64 || !v.FitsSigned() {
		return func(x uint64) uint64 { return num.SignExtend(x, width) }
	}
	low, high := -(int64(1) << (width - 1)), int64(num.Mask64(width))
	return func(x uint64) uint64 {
		if int64(x) >= low && int64(x) <= high {
			return x
		}
		return num.SignExtend(x, width)
	}
}
