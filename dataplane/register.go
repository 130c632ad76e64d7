package dataplane

import (
	"fmt"

	"github.com/p4lb/p4lb/bmv2"
	"github.com/p4lb/p4lb/dataplane/num"
)

// A registerArray is an array of cells of width bits; wider ones than 64 take
// several words each.
type registerArray struct {
	name  string
	size  int
	width int
	words int
	mask  uint64 // of a cell of at most 64 bits
	cells []uint64
	// initial is what a cell starts with, nil for 0.
	initial []uint64
}

func newRegisterArray(c *bmv2.RegisterArray) *registerArray {
	r := &registerArray{name: c.Name, size: c.Size, width: c.Bitwidth, words: num.Words(c.Bitwidth)}
	r.mask = num.Mask64(min(c.Bitwidth, 64))
	r.cells = make([]uint64, r.size*r.words)
	if v, err := bmv2.ParseHex(c.Initial); err == nil { // it is valid, or empty
		r.initial = num.OfBig(v, r.words)
		r.reset()
	}
	return r
}

// reset gives all cells their initial value.
func (r *registerArray) reset() {
	clear(r.cells)
	for at := 0; r.initial != nil && at < len(r.cells); at += r.words {
		copy(r.cells[at:], r.initial)
	}
}

// registerRead links register_read: out of range the destination stays.
func (l *linker) registerRead(a []*bmv2.Expr) (step, error) {
	dst, err := l.place(a[0])
	if err != nil {
		return nil, err
	}
	r := l.sw.registers[a[1].Name]
	if a[1].Type != bmv2.TypeRegisterArray || r == nil {
		return nil, fmt.Errorf("%v is not a register array", a[1])
	}
	index, err := l.number(a[2])
	if err != nil {
		return nil, err
	}
	at := index.low()
	if dst.base == nil && !dst.f.signed && dst.f.width >= r.width && dst.f.width <= 64 {
		off, src := dst.f.off, index.off
		if index.kind == wordKind {
			return func(p *State) {
				if i := uint64(uint32(p.w[src])); i < uint64(len(r.cells)) {
					p.w[off] = r.cells[i]
				}
			}, nil
		}
		return func(p *State) {
			if i := uint64(uint32(at(p))); i < uint64(len(r.cells)) {
				p.w[off] = r.cells[i]
			}
		}, nil
	}
	if dst.f.width <= 64 && r.words == 1 {
		set := dst.setter(unsigned64(r.width, nil))
		return func(p *State) {
			if i := uint64(uint32(at(p))); i < uint64(len(r.cells)) {
				set(p, r.cells[i])
			}
		}, nil
	}
	store := l.store(dst, r.cellValue(at))
	return func(p *State) {
		if uint64(uint32(at(p))) < uint64(r.size) {
			store(p)
		}
	}, nil
}

// cellValue reads a cell; out of range it is zero.
func (r *registerArray) cellValue(at eval) value {
	v := unsigned64(r.width, func(p *State) uint64 {
		if i := uint64(uint32(at(p))); i < uint64(r.size) {
			return r.cells[int(i)*r.words]
		}
		return 0
	})
	v.widen(func(p *State, dst []uint64) {
		clear(dst)
		if i := uint64(uint32(at(p))); i < uint64(r.size) {
			num.CopyUnsigned(dst, r.cells[int(i)*r.words:][:r.words])
		}
	})
	return v
}

func (l *linker) registerWrite(a []*bmv2.Expr) (step, error) {
	if a[0].Type != bmv2.TypeRegisterArray {
		return nil, fmt.Errorf("%v is not a register array", a[0])
	}
	v, err := l.number(a[2])
	if err != nil {
		return nil, err
	}
	return l.writeCell(a[0].Name, a[1], v)
}

// registerFill links what writes all cells of a register.
func (l *linker) registerFill(a []*bmv2.Expr) (step, error) {
	r := l.sw.registers[a[0].Name]
	if a[0].Type != bmv2.TypeRegisterArray || r == nil {
		return nil, fmt.Errorf("%v is not a register array", a[0])
	}
	v, err := l.number(a[1])
	if err != nil {
		return nil, err
	}
	wide := v.wideFn()
	return func(p *State) {
		t := p.ex.push(r.words)
		wide(p, t)
		num.Mask(t, r.width)
		for at := 0; at < len(r.cells); at += r.words {
			copy(r.cells[at:], t)
		}
		p.ex.pop(r.words)
	}, nil
}

// storeRegister links the assignment to a register cell.
func (l *linker) storeRegister(e *bmv2.Expr, v value) (step, error) {
	return l.writeCell(e.Name, e.Right, v)
}

func (l *linker) writeCell(name string, index *bmv2.Expr, v value) (step, error) {
	r := l.sw.registers[name]
	if r == nil {
		return nil, fmt.Errorf("unknown register array %q", name)
	}
	iv, err := l.number(index)
	if err != nil {
		return nil, err
	}
	at := iv.low()
	if r.words == 1 && iv.kind == wordKind && v.kind == wordKind {
		m, dst, src := r.mask, iv.off, v.off
		return func(p *State) {
			if i := uint64(uint32(p.w[dst])); i < uint64(len(r.cells)) {
				r.cells[i] = p.w[src] & m
			}
		}, nil
	}
	if r.words == 1 {
		f, m := v.low(), r.mask
		return func(p *State) {
			if i := uint64(uint32(at(p))); i < uint64(len(r.cells)) {
				r.cells[i] = f(p) & m
			}
		}, nil
	}
	wide := v.wideFn()
	return func(p *State) {
		i := uint64(uint32(at(p)))
		if i >= uint64(r.size) {
			return
		}
		t := p.ex.push(r.words)
		wide(p, t)
		num.Mask(t, r.width)
		copy(r.cells[int(i)*r.words:], t)
		p.ex.pop(r.words)
	}, nil
}

func (l *linker) registerCell(e *bmv2.Expr) (value, error) {
	r := l.sw.registers[e.Name]
	if r == nil {
		return value{}, fmt.Errorf("unknown register array %q", e.Name)
	}
	index, err := l.number(e.Right)
	if err != nil {
		return value{}, err
	}
	return r.cellValue(index.low()), nil
}
