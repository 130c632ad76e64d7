package dataplane

import (
	"fmt"

	"github.com/p4lb/p4lb/bmv2"
)

// A checksum is a field with the calculation whose result it holds, under a
// condition.
type checksum struct {
	name   string
	target field
	header *header
	cond   test // nil: always
	calc   *calculation
	set    func(*State, uint64)
}

func (l *linker) checksums(list []*bmv2.Checksum) error {
	for _, c := range list {
		k, err := l.checksum(c)
		if err != nil {
			return fmt.Errorf("checksum %s: %w", c.Name, err)
		}
		if c.Update == nil || *c.Update {
			l.sw.updates = append(l.sw.updates, k)
		}
		if c.Verify == nil || *c.Verify {
			l.sw.verifies = append(l.sw.verifies, k)
		}
	}
	return nil
}

func (l *linker) checksum(c *bmv2.Checksum) (*checksum, error) {
	if c.Type != "generic" {
		return nil, fmt.Errorf("unknown type %q", c.Type)
	}
	f, err := l.lay.field(c.Target.Header, c.Target.Field)
	if err != nil {
		return nil, err
	}
	k := &checksum{name: c.Name, target: f, header: l.lay.headerNames[c.Target.Header], calc: l.sw.calcs[c.Calculation]}
	k.set = place{f: f}.set()
	if c.IfCond != nil {
		if e := c.IfCond.Unwrap(); e.Type == bmv2.TypeBool && e.Bool {
			return k, nil
		}
		k.cond, err = l.boolean(c.IfCond)
	}
	return k, err
}

// updateChecksums computes the checksums whose condition holds. Whether the
// header of the target is valid does not matter.
func (s *Switch) updateChecksums(p *State) {
	for _, k := range s.updates {
		if k.cond == nil || k.cond(p) {
			k.set(p, k.calc.output(p))
		}
	}
}

// verifyChecksums notes if a checksum is wrong; one in an invalid header is
// not looked at.
func (s *Switch) verifyChecksums(p *State) {
	for _, k := range s.verifies {
		if k.header.isValid(p) && (k.cond == nil || k.cond(p)) && k.calc.output(p) != p.w[k.target.off] {
			p.checksumError = true
			if s.opts.Trace != nil {
				s.trace(p.id, Event{Kind: EventChecksumError, Name: k.name})
			}
		}
	}
}
