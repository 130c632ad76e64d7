package dataplane

import (
	"slices"

	"github.com/p4lb/p4lb/bmv2"
)

// passive reports whether nothing of a program depends on when, or behind how
// many others, a packet leaves its queue: it has no egress control, and what
// deparsing looks at are headers alone.
func (l *linker) passive(c *bmv2.Config) bool {
	s := l.sw
	if s.tofino != nil || s.opts.Trace != nil || s.egress != nil && s.egress.first != nil || s.deparser.before.code != nil {
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
func (l *linker) headersOnly(e *bmv2.Expr) bool {
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

// Passive reports whether Leave makes the same of a packet whenever it is called:
// it leaves by its port, with bytes that nothing can change any more. Such a
// packet may be finished before it waits.
func (h Held) Passive(p *Packet) bool {
	return h.s.passive && p.st.Recirculate == 0 && !p.st.CloneOn
}
