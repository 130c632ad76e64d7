package program

import (
	"fmt"
	"slices"

	"github.com/p4lb/p4lb/internal/bmv2"
	"github.com/p4lb/p4lb/internal/dataplane/num"
	"github.com/p4lb/p4lb/internal/dataplane/vector"
)

// A deparser writes the valid headers in their order before the payload.
type deparser struct {
	order  []*vector.Header
	before *action // the statements before the headers

	prepares, emits uintptr // for Tofino: the addresses in machine code
}

// deparserNamed returns the deparser called name, or the first one.
func deparserNamed(c *bmv2.Config, name string) *bmv2.Deparser {
	return c.Deparsers[max(0, slices.IndexFunc(c.Deparsers, func(d *bmv2.Deparser) bool { return d.Name == name }))]
}

// deparser links the deparser called deparserName, or the first one.
func (l *Linker) deparser(c *bmv2.Config, deparserName string) (*deparser, error) {
	d := &deparser{before: &action{}}
	if len(c.Deparsers) == 0 {
		return d, nil
	}
	src := deparserNamed(c, deparserName)
	for _, name := range src.Order {
		h := l.Layout.HeaderNames[name]
		if h.Type.Bits%8 != 0 {
			return nil, fmt.Errorf("deparser: header %s has %d bits, which are not whole bytes", name, h.Type.Bits)
		}
		d.order = append(d.order, h)
	}
	var err error
	if d.before, err = l.action(&bmv2.Action{Name: src.Name, Primitives: src.Primitives}); err != nil {
		return nil, fmt.Errorf("deparser: %w", err)
	}
	return d, nil
}

// Room returns the size in bytes of all headers together, at their largest.
func (d *deparser) Room() int {
	n := 0
	for _, h := range d.order {
		n += (h.Type.Bits + h.Type.MaxVar) / 8
	}
	return n
}

// Deparse updates the checksums and writes the headers before the payload, over
// the bytes that were parsed.
func (s *Program) Deparse(p *vector.State) {
	if c := s.Compiled; c != nil {
		c.Run(p, c.deparse)
		return
	}
	if s.updates != nil {
		// A checksum is computed if its condition holds, even if the header of its
		// target is invalid.
		for _, k := range s.updates {
			if k.cond == nil || k.cond(p) {
				k.set(p, k.calc.Output(p))
			}
		}
	}
	if s.Deparser.before.code != nil {
		s.Deparser.Prepare(s, p)
	}
	s.Deparser.Emit(s, p)
}

// Prepare runs the statements of the deparser before the headers.
func (d *deparser) Prepare(s *Program, p *vector.State) {
	if d.prepares != 0 {
		s.Compiled.Run(p, d.prepares)
		return
	}
	d.before.run(p, nil)
}

// Emit writes the valid headers before the payload.
func (d *deparser) Emit(s *Program, p *vector.State) {
	if d.emits != 0 {
		s.Compiled.Run(p, d.emits)
		return
	}
	d.write(s, p)
}

func (d *deparser) write(s *Program, p *vector.State) {
	n := 0
	for _, h := range d.order {
		if h.IsValid(p) {
			n += h.Bytes(p)
		}
	}
	at := p.Head - n
	p.Head = at
	for _, h := range d.order {
		switch {
		case !h.IsValid(p):
		case h.Type.Chunks != nil:
			vector.WriteChunks(h.Type.Chunks, p.W[h.Base:], p.Buf[at:])
			at += h.Type.Bits / 8
		default:
			s.bits = num.BitWriter{Buf: s.bits.Buf[:0]}
			h.Write(&s.bits, p)
			at += copy(p.Buf[at:p.End], s.bits.Finish())
		}
	}
}
