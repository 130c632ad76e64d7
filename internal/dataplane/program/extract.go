package program

import (
	"errors"
	"fmt"

	"github.com/p4lb/p4lb/internal/bmv2"
	"github.com/p4lb/p4lb/internal/dataplane/num"
	"github.com/p4lb/p4lb/internal/dataplane/vector"
)

// extractFixed reads a header without a variable-length field.
func extractFixed(p *vector.State, h *vector.Header, tooShort int64) int64 {
	n := h.Type.Bits / 8
	if p.End-p.Head < n && !p.More(n) {
		return tooShort
	}
	if h.Type.Chunks != nil {
		vector.ReadChunks(h.Type.Chunks, p.W[h.Base:], p.Buf[p.Head:])
	} else {
		at := 0
		for _, f := range h.Type.Fields {
			readField(p, h, f, at)
			at += f.Width
		}
	}
	h.MarkValid(p)
	p.Head += n
	return noError
}

func readField(p *vector.State, h *vector.Header, f vector.Field, at int) {
	dst := p.W[h.Base+f.Off:][:f.Words()]
	num.ReadBits(dst, p.Buf[p.Head:p.End], at, f.Width)
	if f.Signed {
		num.Extend(dst, f.Width)
	}
}

// A varExtract reads a header with a variable-length field of the width that
// length returns.
type varExtract struct {
	length         func(*vector.State, *vector.Header) uint64
	tooShort       int64
	headerTooShort int64
	invalid        int64
}

func (v *varExtract) extract(p *vector.State, h *vector.Header) int64 {
	bits := v.length(p, h)
	if bits%8 != 0 {
		return v.invalid
	}
	t := h.Type
	n := uint64(t.Bits/8) + bits/8
	if uint64(p.End-p.Head) < n && (n > MaxFrame || !p.More(int(n))) {
		return v.tooShort
	}
	if bits > uint64(t.MaxVar) {
		return v.headerTooShort
	}
	at := 0
	for i, f := range t.Fields {
		if i == t.VarLen {
			p.W[h.Base+f.LenOff()] = bits
			clear(p.W[h.Base+f.Off:][:f.Words()])
			f.Width = int(bits)
			if bits == 0 {
				continue
			}
		}
		readField(p, h, f, at)
		at += f.Width
	}
	h.MarkValid(p)
	p.Head += int(n)
	return noError
}

// extract links extract and extract_VL.
func (l *Linker) extract(op *bmv2.ParserOp, codes errorCodes) (parserOp, error) {
	if len(op.Parameters) != 1 && op.Op == "extract" || len(op.Parameters) != 2 && op.Op == "extract_VL" {
		return nil, fmt.Errorf("%s with %d parameters", op.Op, len(op.Parameters))
	}
	target := op.Parameters[0]
	typ, err := l.extractType(target)
	if err != nil {
		return nil, err
	}
	one, err := l.extractOne(op, typ, codes)
	if err != nil {
		return nil, err
	}
	switch target.Type {
	case bmv2.TypeRegular:
		h := l.Layout.HeaderNames[target.Name]
		return func(p *vector.State) int64 { return one(p, h) }, nil
	case bmv2.TypeStack:
		s := l.Layout.StackNames[target.Name]
		return extractNext(s.Next, s.Elements, one, codes), nil
	}
	s := l.Layout.UnionStackNames[target.Name]
	i := s.Member(target.Member)
	var members []*vector.Header
	for _, u := range s.Elements {
		members = append(members, u.Members[i])
	}
	return extractNext(s.Next, members, one, codes), nil
}

// extractNext extracts to the element after the last one in use.
func extractNext(next int, elements []*vector.Header, one func(*vector.State, *vector.Header) int64, codes errorCodes) parserOp {
	return func(p *vector.State) int64 {
		i := p.W[next]
		if i >= uint64(len(elements)) {
			return codes.stackOutOfBounds
		}
		code := one(p, elements[i])
		if code == noError {
			p.W[next]++
		}
		return code
	}
}

func (l *Linker) extractType(target *bmv2.Expr) (*vector.HeaderType, error) {
	switch target.Type {
	case bmv2.TypeRegular:
		if h := l.Layout.HeaderNames[target.Name]; h != nil {
			return h.Type, nil
		}
	case bmv2.TypeStack:
		if s := l.Layout.StackNames[target.Name]; s != nil {
			return s.Type, nil
		}
	case bmv2.TypeUnionStack:
		if s := l.Layout.UnionStackNames[target.Name]; s != nil && s.Member(target.Member) >= 0 {
			return s.Elements[0].Members[s.Member(target.Member)].Type, nil
		}
	}
	return nil, fmt.Errorf("extract to %s %q", target.Type, target.Name)
}

var errNoLength = errors.New("extract to a header of variable length without a length")

// extractOne returns the function that reads one header of a type.
func (l *Linker) extractOne(op *bmv2.ParserOp, typ *vector.HeaderType, codes errorCodes) (func(*vector.State, *vector.Header) int64, error) {
	if typ.Bits%8 != 0 {
		return nil, fmt.Errorf("header type %s has %d bits, which are not whole bytes", typ.Name, typ.Bits)
	}
	v := &varExtract{tooShort: codes.tooShort, headerTooShort: codes.headerTooShort, invalid: codes.invalid}
	switch {
	case op.Op == "extract_VL" && typ.VarLen >= 0:
		n, err := l.Number(op.Parameters[1])
		if err != nil {
			return nil, err
		}
		length := n.Low()
		v.length = func(p *vector.State, _ *vector.Header) uint64 { return uint64(uint32(length(p))) }
	case typ.VarLen >= 0 && typ.LenExpr != nil:
		length, err := l.lengthExpr(typ)
		if err != nil {
			return nil, err
		}
		v.length = length
	case typ.VarLen >= 0:
		return nil, errNoLength
	default:
		tooShort := codes.tooShort
		return func(p *vector.State, h *vector.Header) int64 { return extractFixed(p, h, tooShort) }, nil
	}
	return v.extract, nil
}

// lengthExpr links the length of a P4_14 header of variable length. It depends
// on the fields before, which the function reads first.
func (l *Linker) lengthExpr(typ *vector.HeaderType) (func(*vector.State, *vector.Header) uint64, error) {
	lengths := make([]vector.Eval, len(l.Layout.Headers))
	for _, h := range l.Layout.Headers {
		if h.Type != typ {
			continue
		}
		inner := &vector.Linker{Layout: l.Layout, Cells: l.Cells, Self: h}
		v, err := inner.Number(typ.LenExpr)
		if err != nil {
			return nil, err
		}
		lengths[h.Index] = v.Low()
	}
	return func(p *vector.State, h *vector.Header) uint64 {
		at := 0
		for _, f := range typ.Fields[:typ.VarLen] {
			readField(p, h, f, at)
			at += f.Width
		}
		return uint64(uint32(lengths[h.Index](p)))
	}, nil
}

// lookahead links a lookahead expression as a value.
func lookahead(e *bmv2.Expr) vector.Value {
	at, width := e.Offset, e.Width
	v := vector.Unsigned64(width, func(p *vector.State) uint64 { return p.Peek(at+max(0, width-64), min(width, 64)) })
	v.Widen(func(p *vector.State, dst []uint64) {
		n := num.Words(width)
		t := p.Scratch.Push(n)
		num.ReadBits(t, p.Buf[p.Head:p.End], at, width)
		num.CopyUnsigned(dst, t)
		p.Scratch.Pop(n)
	})
	return v
}

// MaxFrame bounds the copies that mirrors create: a program may mirror mirrored
// packets, and each copy is longer by a header.
const MaxFrame = 1 << 14
