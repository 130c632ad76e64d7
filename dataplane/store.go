package dataplane

import (
	"errors"
	"fmt"
	"math/big"

	"github.com/p4lb/p4lb/bmv2"
	"github.com/p4lb/p4lb/dataplane/num"
)

// place links an expression that can be assigned to.
func (l *Linker) place(e *bmv2.Expr) (place, error) {
	e = e.Unwrap()
	if e == nil {
		return place{}, errNoExpr
	}
	switch {
	case e.Type == bmv2.TypeField:
		f, err := l.fieldRef(e)
		return place{f: f}, err
	case e.Type == bmv2.TypeStackField:
		return l.lastPlace(e)
	case e.Type == bmv2.TypeExpression && e.Op == "access_field":
		return l.elementField(e)
	}
	return place{}, fmt.Errorf("%v cannot be assigned to", e)
}

// assign links an assignment to a field, or to a cell of a register.
func (l *Linker) assign(dst, src *bmv2.Expr) (step, error) {
	v, err := l.number(src)
	if err != nil {
		return nil, err
	}
	if e := dst.Unwrap(); e != nil && e.Type == bmv2.TypeRegister {
		return l.cells.storeRegister(e, v)
	}
	pl, err := l.place(dst)
	if err != nil {
		return nil, err
	}
	if pl.f.varLen {
		return l.assignVL(dst, src)
	}
	return l.store(pl, v), nil
}

func (l *Linker) assignVL(dst, src *bmv2.Expr) (step, error) {
	d, err := l.place(dst)
	if err != nil {
		return nil, err
	}
	s, err := l.place(src)
	if err != nil {
		return nil, err
	}
	if d.base != nil || s.base != nil {
		return nil, errors.New("a variable-length field at a run-time index")
	}
	return assignVarLen(d.f, s.f)
}

// store links the assignment of a number to a place.
func (l *Linker) store(pl place, v value) step {
	if pl.f.width > 64 {
		return storeWide(pl, v)
	}
	if pl.base == nil && !pl.f.signed {
		return storeWord(pl.f, v)
	}
	f, set := v.low(), pl.setter(v)
	return func(p *State) { set(p, f(p)) }
}

// storeWord is the common case: an unsigned field of at most 64 bits.
func storeWord(f field, v value) step {
	off, m := f.off, num.Mask64(f.width)
	if v.masked != nil && v.mask&m == m {
		v = *v.masked
	}
	fits := v.fitsUnsigned() && v.hi.Cmp(new(big.Int).SetUint64(m)) <= 0
	src, c := v.off, v.bits&m
	switch {
	case v.kind == constKind:
		return func(p *State) { p.w[off] = c }
	case v.kind == wordKind && fits:
		return func(p *State) { p.w[off] = p.w[src] }
	case v.kind == argKind && fits:
		return func(p *State) { p.w[off] = p.args[src] }
	case fits:
		fn := v.low()
		return func(p *State) { p.w[off] = fn(p) }
	}
	fn := v.low()
	return func(p *State) { p.w[off] = fn(p) & m }
}

// setter returns how a number with v's interval is written to a place of at
// most 64 bits.
func (pl place) setter(v value) func(*State, uint64) {
	off, base := pl.f.off, pl.base
	fit := pl.f.fitter(v)
	if base == nil {
		return func(p *State, x uint64) { p.w[off] = fit(x) }
	}
	return func(p *State, x uint64) {
		if b, ok := base(p); ok {
			p.w[b+off] = fit(x)
		}
	}
}

// set is the setter for numbers of 64 bits.
func (pl place) set() func(*State, uint64) {
	if pl.f.width > 64 {
		store := func(p *State, x uint64, at int) {
			p.w[at] = x
			clear(p.w[at+1 : at+pl.f.words()])
		}
		if pl.base == nil {
			return func(p *State, x uint64) { store(p, x, pl.f.off) }
		}
		return func(p *State, x uint64) {
			if b, ok := pl.base(p); ok {
				store(p, x, b+pl.f.off)
			}
		}
	}
	return pl.setter(unsigned64(64, nil))
}

// fitter cuts a number to the field. BMv2 keeps in a signed field whatever is
// between its smallest number and its mask, and wraps the rest.
func (f field) fitter(v value) func(uint64) uint64 {
	width := f.width
	if !f.signed {
		m := num.Mask64(width)
		return func(x uint64) uint64 { return x & m }
	}
	if width == 64 || !v.fitsSigned() {
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

func storeWide(pl place, v value) step {
	n, width, signed := pl.f.words(), pl.f.width, pl.f.signed
	wide := v.wideFn()
	base, off := pl.base, pl.f.off
	return func(p *State) {
		b := 0
		if base != nil {
			var ok bool
			if b, ok = base(p); !ok {
				return
			}
		}
		t := p.ex.push(n)
		wide(p, t)
		if signed {
			num.Extend(t, width)
		} else {
			num.Mask(t, width)
		}
		copy(p.w[b+off:b+off+n], t)
		p.ex.pop(n)
	}
}

// assignVarLen copies a variable-length field with its width. It is reached
// through assign_VL and through a parser's set.
func assignVarLen(dst, src field) (step, error) {
	if !dst.varLen || !src.varLen {
		return nil, fmt.Errorf("%s or %s is not of variable length", dst.name, src.name)
	}
	n := min(dst.words(), src.words())
	return func(p *State) {
		p.w[dst.lenOff()] = min(p.w[src.lenOff()], uint64(dst.width))
		clear(p.w[dst.off : dst.off+dst.words()])
		copy(p.w[dst.off:dst.off+n], p.w[src.off:src.off+n])
	}, nil
}
