package dataplane

import (
	"errors"
	"fmt"

	"github.com/p4lb/p4lb/bmv2"
	"github.com/p4lb/p4lb/dataplane/num"
)

// A parserOp does one operation of a parse state and returns an error code of
// the program, or noError.
type parserOp func(*State) int64

// noError says that a parserOp has succeeded.
const noError int64 = -1

// extractFixed reads a header without variable-length field.
func extractFixed(p *State, h *header, tooShort int64) int64 {
	n := h.typ.bits / 8
	if p.end-p.head < n && !p.more(n) {
		return tooShort
	}
	if h.typ.chunks != nil {
		readChunks(h.typ.chunks, p.w[h.base:], p.buf[p.head:])
	} else {
		at := 0
		for _, f := range h.typ.fields {
			readField(p, h, f, at)
			at += f.width
		}
	}
	h.markValid(p)
	p.head += n
	return noError
}

func readField(p *State, h *header, f field, at int) {
	dst := p.w[h.base+f.off:][:f.words()]
	num.ReadBits(dst, p.buf[p.head:p.end], at, f.width)
	if f.signed {
		num.Extend(dst, f.width)
	}
}

// A varExtract reads a header whose variable-length field has the width that
// length computes.
type varExtract struct {
	length         func(*State, *header) uint64
	tooShort       int64
	headerTooShort int64
	invalid        int64
}

func (v *varExtract) extract(p *State, h *header) int64 {
	bits := v.length(p, h)
	if bits%8 != 0 {
		return v.invalid
	}
	t := h.typ
	n := uint64(t.bits/8) + bits/8
	if uint64(p.end-p.head) < n && (n > maxFrame || !p.more(int(n))) {
		return v.tooShort
	}
	if bits > uint64(t.maxVar) {
		return v.headerTooShort
	}
	at := 0
	for i, f := range t.fields {
		if i == t.varLen {
			p.w[h.base+f.lenOff()] = bits
			clear(p.w[h.base+f.off:][:f.words()])
			f.width = int(bits)
			if bits == 0 {
				continue
			}
		}
		readField(p, h, f, at)
		at += f.width
	}
	h.markValid(p)
	p.head += int(n)
	return noError
}

// extract links extract and extract_VL.
func (l *linker) extract(op *bmv2.ParserOp, codes errorCodes) (parserOp, error) {
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
		h := l.lay.headerNames[target.Name]
		return func(p *State) int64 { return one(p, h) }, nil
	case bmv2.TypeStack:
		s := l.lay.stackNames[target.Name]
		return extractNext(s.next, s.elements, one, codes), nil
	}
	s := l.lay.unionStackNames[target.Name]
	i := s.member(target.Member)
	var members []*header
	for _, u := range s.elements {
		members = append(members, u.members[i])
	}
	return extractNext(s.next, members, one, codes), nil
}

// extractNext extracts to the element after the last one in use.
func extractNext(next int, elements []*header, one func(*State, *header) int64, codes errorCodes) parserOp {
	return func(p *State) int64 {
		i := p.w[next]
		if i >= uint64(len(elements)) {
			return codes.stackOutOfBounds
		}
		code := one(p, elements[i])
		if code == noError {
			p.w[next]++
		}
		return code
	}
}

func (l *linker) extractType(target *bmv2.Expr) (*headerType, error) {
	switch target.Type {
	case bmv2.TypeRegular:
		if h := l.lay.headerNames[target.Name]; h != nil {
			return h.typ, nil
		}
	case bmv2.TypeStack:
		if s := l.lay.stackNames[target.Name]; s != nil {
			return s.typ, nil
		}
	case bmv2.TypeUnionStack:
		if s := l.lay.unionStackNames[target.Name]; s != nil && s.member(target.Member) >= 0 {
			return s.elements[0].members[s.member(target.Member)].typ, nil
		}
	}
	return nil, fmt.Errorf("extract to %s %q", target.Type, target.Name)
}

var errNoLength = errors.New("extract to a header of variable length without a length")

// extractOne returns how one header of a type is read.
func (l *linker) extractOne(op *bmv2.ParserOp, typ *headerType, codes errorCodes) (func(*State, *header) int64, error) {
	if typ.bits%8 != 0 {
		return nil, fmt.Errorf("header type %s has %d bits, which are not whole bytes", typ.name, typ.bits)
	}
	v := &varExtract{tooShort: codes.tooShort, headerTooShort: codes.headerTooShort, invalid: codes.invalid}
	switch {
	case op.Op == "extract_VL" && typ.varLen >= 0:
		n, err := l.number(op.Parameters[1])
		if err != nil {
			return nil, err
		}
		length := n.low()
		v.length = func(p *State, _ *header) uint64 { return uint64(uint32(length(p))) }
	case typ.varLen >= 0 && typ.lenExpr != nil:
		length, err := l.lengthExpr(typ)
		if err != nil {
			return nil, err
		}
		v.length = length
	case typ.varLen >= 0:
		return nil, errNoLength
	default:
		tooShort := codes.tooShort
		return func(p *State, h *header) int64 { return extractFixed(p, h, tooShort) }, nil
	}
	return v.extract, nil
}

// lengthExpr links the length of a P4_14 header of variable length, which is
// computed from the fields before it: those are read first.
func (l *linker) lengthExpr(typ *headerType) (func(*State, *header) uint64, error) {
	lengths := make([]eval, len(l.lay.headers))
	for _, h := range l.lay.headers {
		if h.typ != typ {
			continue
		}
		inner := &Linker{lay: l.lay, cells: l.cells, self: h}
		v, err := inner.number(typ.lenExpr)
		if err != nil {
			return nil, err
		}
		lengths[h.index] = v.low()
	}
	return func(p *State, h *header) uint64 {
		at := 0
		for _, f := range typ.fields[:typ.varLen] {
			readField(p, h, f, at)
			at += f.width
		}
		return uint64(uint32(lengths[h.index](p)))
	}, nil
}

// lookahead is what a lookahead expression reads.
func lookahead(e *bmv2.Expr) value {
	at, width := e.Offset, e.Width
	v := unsigned64(width, func(p *State) uint64 { return p.peek(at+max(0, width-64), min(width, 64)) })
	v.widen(func(p *State, dst []uint64) {
		n := num.Words(width)
		t := p.ex.push(n)
		num.ReadBits(t, p.buf[p.head:p.end], at, width)
		num.CopyUnsigned(dst, t)
		p.ex.pop(n)
	})
	return v
}
