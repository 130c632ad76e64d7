// Package cell holds the state of a program between packets: registers,
// counters, meters, and for Tofino filters and the math unit. Each kind of
// array links the primitives that use it.
package cell

import (
	"fmt"
	"math/big"

	"github.com/p4lb/p4lb/internal/bmv2"
	"github.com/p4lb/p4lb/internal/dataplane/num"
	"github.com/p4lb/p4lb/internal/dataplane/vector"
)

// A Register is an array of cells of width bits. Cells above 64 bits take
// several words.
type Register struct {
	name  string
	Size  int
	Width int
	Words int
	Mask  uint64 // for cells of at most 64 bits
	Cells []uint64
	// initial is the initial value of a cell, nil for 0.
	initial []uint64
}

// NewRegister returns the array of a program with its initial values.
func NewRegister(c *bmv2.RegisterArray) *Register {
	r := &Register{name: c.Name, Size: c.Size, Width: c.Bitwidth, Words: num.Words(c.Bitwidth)}
	r.Mask = num.Mask64(min(c.Bitwidth, 64))
	r.Cells = make([]uint64, r.Size*r.Words)
	if v, err := bmv2.ParseHex(c.Initial); err == nil { // an empty text fails; Validate has checked all others
		r.initial = num.OfBig(v, r.Words)
		r.Reset()
	}
	return r
}

// Reset restores the initial value of all cells.
func (r *Register) Reset() {
	clear(r.Cells)
	for at := 0; r.initial != nil && at < len(r.Cells); at += r.Words {
		copy(r.Cells[at:], r.initial)
	}
}

// LinkRead links the reading of a cell. If the index is out of range, the
// destination keeps its value.
func (r *Register) LinkRead(l *vector.Linker, to, at *bmv2.Expr) (vector.Step, error) {
	dst, err := l.Place(to)
	if err != nil {
		return nil, err
	}
	index, err := l.Number(at)
	if err != nil {
		return nil, err
	}
	low := index.Low()
	if dst.Base == nil && !dst.Field.Signed && dst.Field.Width >= r.Width && dst.Field.Width <= 64 {
		off, src := dst.Field.Off, index.Off
		if index.Kind == vector.WordKind {
			return func(p *vector.State) {
				if i := uint64(uint32(p.W[src])); i < uint64(len(r.Cells)) {
					p.W[off] = r.Cells[i]
				}
			}, nil
		}
		return func(p *vector.State) {
			if i := uint64(uint32(low(p))); i < uint64(len(r.Cells)) {
				p.W[off] = r.Cells[i]
			}
		}, nil
	}
	if dst.Field.Width <= 64 && r.Words == 1 {
		set := dst.Setter(vector.Unsigned64(r.Width, nil))
		return func(p *vector.State) {
			if i := uint64(uint32(low(p))); i < uint64(len(r.Cells)) {
				set(p, r.Cells[i])
			}
		}, nil
	}
	store := dst.Store(r.CellValue(low))
	return func(p *vector.State) {
		if uint64(uint32(low(p))) < uint64(r.Size) {
			store(p)
		}
	}, nil
}

// CellValue returns the value of a cell, or zero if the index is out of range.
func (r *Register) CellValue(at vector.Eval) vector.Value {
	v := vector.Unsigned64(r.Width, func(p *vector.State) uint64 {
		if i := uint64(uint32(at(p))); i < uint64(r.Size) {
			return r.Cells[int(i)*r.Words]
		}
		return 0
	})
	v.Widen(func(p *vector.State, dst []uint64) {
		clear(dst)
		if i := uint64(uint32(at(p))); i < uint64(r.Size) {
			num.CopyUnsigned(dst, r.Cells[int(i)*r.Words:][:r.Words])
		}
	})
	return v
}

// LinkWrite links the writing of a cell. An index out of range has no effect.
func (r *Register) LinkWrite(l *vector.Linker, index *bmv2.Expr, v vector.Value) (vector.Step, error) {
	iv, err := l.Number(index)
	if err != nil {
		return nil, err
	}
	at := iv.Low()
	if r.Words == 1 && iv.Kind == vector.WordKind && v.Kind == vector.WordKind {
		m, dst, src := r.Mask, iv.Off, v.Off
		return func(p *vector.State) {
			if i := uint64(uint32(p.W[dst])); i < uint64(len(r.Cells)) {
				r.Cells[i] = p.W[src] & m
			}
		}, nil
	}
	if r.Words == 1 {
		f, m := v.Low(), r.Mask
		return func(p *vector.State) {
			if i := uint64(uint32(at(p))); i < uint64(len(r.Cells)) {
				r.Cells[i] = f(p) & m
			}
		}, nil
	}
	wide := v.WideFn()
	return func(p *vector.State) {
		i := uint64(uint32(at(p)))
		if i >= uint64(r.Size) {
			return
		}
		t := p.Scratch.Push(r.Words)
		wide(p, t)
		num.Mask(t, r.Width)
		copy(r.Cells[int(i)*r.Words:], t)
		p.Scratch.Pop(r.Words)
	}, nil
}

// LinkFill links the writing of all cells.
func (r *Register) LinkFill(l *vector.Linker, e *bmv2.Expr) (vector.Step, error) {
	v, err := l.Number(e)
	if err != nil {
		return nil, err
	}
	wide := v.WideFn()
	return func(p *vector.State) {
		t := p.Scratch.Push(r.Words)
		wide(p, t)
		num.Mask(t, r.Width)
		for at := 0; at < len(r.Cells); at += r.Words {
			copy(r.Cells[at:], t)
		}
		p.Scratch.Pop(r.Words)
	}, nil
}

// Check reports an error for a range of cells outside the array.
func (r *Register) Check(from, to int) error {
	if from < 0 || to > r.Size || from > to {
		return fmt.Errorf("register %s: cells %d to %d are outside 0..%d", r.name, from, to-1, r.Size-1)
	}
	return nil
}

// Big returns a cell as a big number.
func (r *Register) Big(i int) *big.Int {
	b := make([]byte, 8*r.Words)
	num.PutBytes(b, r.Cells[i*r.Words:][:r.Words])
	return new(big.Int).SetBytes(b)
}
