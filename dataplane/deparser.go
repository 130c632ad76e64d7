package dataplane

import (
	"fmt"

	"github.com/p4lb/p4lb/bmv2"
)

// A deparser writes the valid headers in their order before the payload.
type deparser struct {
	order []*header
	steps []step
}

func (l *linker) deparser(c *bmv2.Config) (*deparser, error) {
	d := &deparser{}
	if len(c.Deparsers) == 0 {
		return d, nil
	}
	src := c.Deparsers[0]
	for _, x := range c.Deparsers {
		if x.Name == "deparser" {
			src = x
		}
	}
	for _, name := range src.Order {
		h := l.lay.headerNames[name]
		if h.typ.bits%8 != 0 {
			return nil, fmt.Errorf("deparser: header %s has %d bits, which are not whole bytes", name, h.typ.bits)
		}
		d.order = append(d.order, h)
	}
	for i, p := range src.Primitives {
		do, err := l.primitive(p)
		if err != nil {
			return nil, fmt.Errorf("deparser: primitive %d (%s): %w", i, p.Op, err)
		}
		d.steps = append(d.steps, do)
	}
	return d, nil
}

// room is the largest size in bytes of all headers together.
func (d *deparser) room() int {
	n := 0
	for _, h := range d.order {
		n += (h.typ.bits + h.typ.maxVar) / 8
	}
	return n
}

// deparse updates the checksums, and puts the headers before the payload: over
// the bytes that they, or others, were parsed from.
func (s *Switch) deparse(p *Packet) {
	s.updateChecksums(p)
	for _, do := range s.deparser.steps {
		do(p)
	}
	n := 0
	for _, h := range s.deparser.order {
		if h.isValid(p) {
			n += h.bytes(p)
		}
	}
	at := p.head - n
	p.head = at
	for _, h := range s.deparser.order {
		switch {
		case !h.isValid(p):
		case h.typ.chunks != nil:
			writeChunks(h.typ.chunks, p.w[h.base:], p.buf[at:])
			at += h.typ.bits / 8
		default:
			s.bits = bitWriter{buf: s.bits.buf[:0]}
			h.write(&s.bits, p)
			at += copy(p.buf[at:p.end], s.bits.finish())
		}
	}
}
