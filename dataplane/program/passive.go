package program

import (
	"slices"

	"github.com/p4lb/p4lb/bmv2"
)

// Passive reports whether nothing of a program depends on when, or behind how
// many others, a packet leaves its queue: it has no egress control, and what
// deparsing looks at are headers alone.
func (s *Program) Passive() bool {
	c, l := s.Config, s.NewLinker()
	if s.Tofino() || s.opts.Trace != nil || s.Egress != nil && s.Egress.first != nil || s.Deparser.before.code != nil {
		return false
	}
	for _, sum := range c.Checksums {
		if sum.Update != nil && !*sum.Update {
			continue
		}
		i := slices.IndexFunc(c.Calculations, func(k *bmv2.Calculation) bool { return k.Name == sum.Calculation })
		if i < 0 || !l.headersOnly(sum.IfCond) || slices.ContainsFunc(c.Calculations[i].Input, func(e *bmv2.Expr) bool { return !l.headersOnly(e) }) {
			return false
		}
	}
	return true
}

// headersOnly reports whether an expression looks at nothing but headers and
// their fields.
func (l *Linker) headersOnly(e *bmv2.Expr) bool {
	if e = e.Unwrap(); e == nil {
		return true
	}
	switch e.Type {
	case bmv2.TypeHexstr, bmv2.TypeBool:
		return true
	case bmv2.TypeField, bmv2.TypeHeader:
		h := l.Layout.HeaderNames[e.Name]
		return h != nil && !h.Metadata
	case bmv2.TypeExpression:
		return l.headersOnly(e.Left) && l.headersOnly(e.Right) && l.headersOnly(e.Cond)
	}
	return false
}
