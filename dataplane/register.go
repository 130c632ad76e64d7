package dataplane

import (
	"fmt"

	"github.com/p4lb/p4lb/bmv2"
	"github.com/p4lb/p4lb/dataplane/num"
	"github.com/p4lb/p4lb/dataplane/vector"
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
func (l *linker) registerRead(a []*bmv2.Expr) (vector.Step, error) {
	dst, err := l.Place(a[0])
	if err != nil {
		return nil, err
	}
	r := l.sw.registers[a[1].Name]
	if a[1].Type != bmv2.TypeRegisterArray || r == nil {
		return nil, fmt.Errorf("%v is not a register array", a[1])
	}
	index, err := l.Number(a[2])
	if err != nil {
		return nil, err
	}
	at := index.Low()
	if dst.Base == nil && !dst.Field.Signed && dst.Field.Width >= r.width && dst.Field.Width <= 64 {
		off, src := dst.Field.Off, index.Off
		if index.Kind == vector.WordKind {
			return func(p *vector.State) {
				if i := uint64(uint32(p.W[src])); i < uint64(len(r.cells)) {
					p.W[off] = r.cells[i]
				}
			}, nil
		}
		return func(p *vector.State) {
			if i := uint64(uint32(at(p))); i < uint64(len(r.cells)) {
				p.W[off] = r.cells[i]
			}
		}, nil
	}
	if dst.Field.Width <= 64 && r.words == 1 {
		set := dst.Setter(vector.Unsigned64(r.width, nil))
		return func(p *vector.State) {
			if i := uint64(uint32(at(p))); i < uint64(len(r.cells)) {
				set(p, r.cells[i])
			}
		}, nil
	}
	store := l.Store(dst, r.cellValue(at))
	return func(p *vector.State) {
		if uint64(uint32(at(p))) < uint64(r.size) {
			store(p)
		}
	}, nil
}

// cellValue reads a cell; out of range it is zero.
func (r *registerArray) cellValue(at vector.Eval) vector.Value {
	v := vector.Unsigned64(r.width, func(p *vector.State) uint64 {
		if i := uint64(uint32(at(p))); i < uint64(r.size) {
			return r.cells[int(i)*r.words]
		}
		return 0
	})
	v.Widen(func(p *vector.State, dst []uint64) {
		clear(dst)
		if i := uint64(uint32(at(p))); i < uint64(r.size) {
			num.CopyUnsigned(dst, r.cells[int(i)*r.words:][:r.words])
		}
	})
	return v
}

func (l *linker) registerWrite(a []*bmv2.Expr) (vector.Step, error) {
	if a[0].Type != bmv2.TypeRegisterArray {
		return nil, fmt.Errorf("%v is not a register array", a[0])
	}
	v, err := l.Number(a[2])
	if err != nil {
		return nil, err
	}
	return l.writeCell(a[0].Name, a[1], v)
}

// registerFill links what writes all cells of a register.
func (l *linker) registerFill(a []*bmv2.Expr) (vector.Step, error) {
	r := l.sw.registers[a[0].Name]
	if a[0].Type != bmv2.TypeRegisterArray || r == nil {
		return nil, fmt.Errorf("%v is not a register array", a[0])
	}
	v, err := l.Number(a[1])
	if err != nil {
		return nil, err
	}
	wide := v.WideFn()
	return func(p *vector.State) {
		t := p.Scratch.Push(r.words)
		wide(p, t)
		num.Mask(t, r.width)
		for at := 0; at < len(r.cells); at += r.words {
			copy(r.cells[at:], t)
		}
		p.Scratch.Pop(r.words)
	}, nil
}

// WriteCell links the assignment to a register cell.
func (l *linker) WriteCell(e *bmv2.Expr, v vector.Value) (vector.Step, error) {
	return l.writeCell(e.Name, e.Right, v)
}

func (l *linker) writeCell(name string, index *bmv2.Expr, v vector.Value) (vector.Step, error) {
	r := l.sw.registers[name]
	if r == nil {
		return nil, fmt.Errorf("unknown register array %q", name)
	}
	iv, err := l.Number(index)
	if err != nil {
		return nil, err
	}
	at := iv.Low()
	if r.words == 1 && iv.Kind == vector.WordKind && v.Kind == vector.WordKind {
		m, dst, src := r.mask, iv.Off, v.Off
		return func(p *vector.State) {
			if i := uint64(uint32(p.W[dst])); i < uint64(len(r.cells)) {
				r.cells[i] = p.W[src] & m
			}
		}, nil
	}
	if r.words == 1 {
		f, m := v.Low(), r.mask
		return func(p *vector.State) {
			if i := uint64(uint32(at(p))); i < uint64(len(r.cells)) {
				r.cells[i] = f(p) & m
			}
		}, nil
	}
	wide := v.WideFn()
	return func(p *vector.State) {
		i := uint64(uint32(at(p)))
		if i >= uint64(r.size) {
			return
		}
		t := p.Scratch.Push(r.words)
		wide(p, t)
		num.Mask(t, r.width)
		copy(r.cells[int(i)*r.words:], t)
		p.Scratch.Pop(r.words)
	}, nil
}

// ReadCell links the value of a register cell.
func (l *linker) ReadCell(e *bmv2.Expr) (vector.Value, error) {
	r := l.sw.registers[e.Name]
	if r == nil {
		return vector.Value{}, fmt.Errorf("unknown register array %q", e.Name)
	}
	index, err := l.Number(e.Right)
	if err != nil {
		return vector.Value{}, err
	}
	return r.cellValue(index.Low()), nil
}
