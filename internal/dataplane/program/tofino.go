package program

import (
	"errors"
	"fmt"

	"github.com/p4lb/p4lb/internal/bmv2"
	"github.com/p4lb/p4lb/internal/dataplane/hash"
	"github.com/p4lb/p4lb/internal/dataplane/num"
	"github.com/p4lb/p4lb/internal/dataplane/vector"
)

// filterExecute links the execution of a low-pass filter, or of an early detection.
func (l *Linker) filterExecute(a []*bmv2.Expr, wred bool) (vector.Step, error) {
	f := l.prog.Filters[a[1].Name]
	if a[1].Type != bmv2.TypeFilterArray || f == nil || f.Wred != wred {
		return nil, fmt.Errorf("%v is not an array of filters of this kind", a[1])
	}
	return f.Link(l.Linker, a[0], a[2], a[3], l.prog.opts.Random)
}

// registerEntry links a primitive that returns the cell of a direct register:
// the slot of the entry last hit.
func (l *Linker) registerEntry(a []*bmv2.Expr) (vector.Step, error) {
	dst, err := l.Place(a[0])
	if err != nil {
		return nil, err
	}
	set := dst.Set()
	return func(p *vector.State) { set(p, uint64(uint32(p.Entry))) }, nil
}

func (l *Linker) registerFill(a []*bmv2.Expr) (vector.Step, error) {
	r, err := l.register(a[0])
	if err != nil {
		return nil, err
	}
	return r.LinkFill(l.Linker, a[1])
}

var errEmit = errors.New("wrong parameters: want a session (to mirror) and at most one header of whole bytes")

// mirrorEmit links mirror_emit, which records the session and the header.
func (l *Linker) mirrorEmit(a []*bmv2.Expr) (vector.Step, error) {
	if len(a) < 1 || len(a) > 2 {
		return nil, errEmit
	}
	v, err := l.Number(a[0])
	if err != nil {
		return nil, err
	}
	header, err := l.emitted(a[1:], maxMirrorHeader, &l.prog.Asked.Mirrored)
	if err != nil {
		return nil, err
	}
	r, session := &l.prog.Asked, v.Low()
	return func(p *vector.State) {
		r.Mirror, r.Session = true, uint16(session(p))
		header(p)
	}, nil
}

// maxMirrorHeader is the largest header of a mirror in bytes.
const maxMirrorHeader = 1 << 12

func (l *Linker) resubmitEmit(a []*bmv2.Expr) (vector.Step, error) {
	if len(a) > 1 {
		return nil, errEmit
	}
	header, err := l.emitted(a, l.prog.opts.PortData, &l.prog.Asked.Again)
	if err != nil {
		return nil, err
	}
	r := &l.prog.Asked
	return func(p *vector.State) {
		r.Resubmit = true
		header(p)
	}, nil
}

// emitted links a step that writes a header of at most size bytes, if there is
// one, to dst.
func (l *Linker) emitted(a []*bmv2.Expr, size int, dst *[]byte) (vector.Step, error) {
	if len(a) == 0 {
		return func(*vector.State) { *dst = (*dst)[:0] }, nil
	}
	ref, err := l.Header(a[0])
	if err != nil {
		return nil, err
	}
	h := ref.H
	if h == nil || h.Type.Bits%8 != 0 || h.Type.VarLen >= 0 {
		return nil, errEmit
	}
	if h.Type.Bits/8 > size {
		return nil, fmt.Errorf("header %s has %d bytes, more than %d", h.Name, h.Type.Bits/8, size)
	}
	return func(p *vector.State) {
		b := num.BitWriter{Buf: (*dst)[:0]}
		h.Write(&b, p)
		*dst = b.Finish()
	}, nil
}

// sum links a primitive that adds the words of a calculation to a checksum or
// subtracts them. The checksum is a ones' complement sum, and calculations return
// the complement of a sum. To add, the primitive therefore adds the complement of
// the result. To subtract, it adds the result.
func (l *Linker) sum(acc, calc *bmv2.Expr, flip uint64) (vector.Step, error) {
	place, get, err := l.accumulator(acc)
	if err != nil {
		return nil, err
	}
	c := l.prog.Calcs[calc.Name]
	if calc.Type != bmv2.TypeCalculation || c == nil {
		return nil, fmt.Errorf("%v is not a calculation", calc)
	}
	return func(p *vector.State) { place(p, onesSum(get(p), c.Output(p)&0xffff^flip)) }, nil
}

// sumMark links an operation that stores the parser's position in the buffer plus
// 1, so that 0 means no mark.
func (l *Linker) sumMark(mark *bmv2.Expr) (vector.Step, error) {
	place, _, err := l.accumulator(mark)
	if err != nil {
		return nil, err
	}
	return func(p *vector.State) { place(p, uint64(p.Head+1)) }, nil
}

// sumDeposit links an operation that writes a residual checksum: the sum without
// the bytes that the parser has read since the mark. Without a mark, it does
// nothing.
func (l *Linker) sumDeposit(a []*bmv2.Expr) (vector.Step, error) {
	residual, _, err := l.accumulator(a[0])
	if err != nil {
		return nil, err
	}
	_, sum, err := l.accumulator(a[1])
	if err != nil {
		return nil, err
	}
	_, mark, err := l.accumulator(a[2])
	if err != nil {
		return nil, err
	}
	return func(p *vector.State) {
		m := int(mark(p))
		if m == 0 {
			return
		}
		s := sum(p)
		if read := p.Buf[m-1 : p.Head]; len(read) > 0 {
			s = onesSum(s, uint64(hash.Internet(read)))
		}
		residual(p, s)
	}, nil
}

func (l *Linker) accumulator(e *bmv2.Expr) (func(*vector.State, uint64), vector.Eval, error) {
	pl, err := l.Place(e)
	if err != nil {
		return nil, nil, err
	}
	v := pl.Value()
	return pl.Set(), v.Low(), nil
}

// onesSum adds two numbers of 16 bits in ones' complement.
func onesSum(a, b uint64) uint64 {
	s := a + b
	return s&0xffff + s>>16
}
