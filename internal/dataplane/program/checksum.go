package program

import (
	"fmt"

	"github.com/p4lb/p4lb/internal/bmv2"
	"github.com/p4lb/p4lb/internal/dataplane/hash"
	"github.com/p4lb/p4lb/internal/dataplane/vector"
)

// A checksum is a field, the calculation of its value, and a condition.
type checksum struct {
	src    *bmv2.Checksum
	target vector.Field
	header *vector.Header
	cond   vector.Test // nil: always
	calc   *hash.Calculation
	set    func(*vector.State, uint64)
}

func (l *Linker) checksums(cfg *bmv2.Config) error {
	for _, c := range cfg.Checksums {
		k, err := l.checksum(c)
		if err != nil {
			return fmt.Errorf("checksum %s: %w", c.Name, err)
		}
		if c.Update == nil || *c.Update {
			l.prog.updates = append(l.prog.updates, k)
		}
		if c.Verify == nil || *c.Verify {
			l.prog.verifies = append(l.prog.verifies, k)
		}
	}
	return nil
}

func (l *Linker) checksum(c *bmv2.Checksum) (*checksum, error) {
	if c.Type != "generic" {
		return nil, fmt.Errorf("unknown type %q", c.Type)
	}
	f, err := l.Layout.Field(c.Target.Header, c.Target.Field)
	if err != nil {
		return nil, err
	}
	k := &checksum{src: c, target: f, header: l.Layout.HeaderNames[c.Target.Header], calc: l.prog.Calcs[c.Calculation]}
	k.set = vector.Place{Field: f}.Set()
	if c.IfCond != nil {
		if e := c.IfCond.Unwrap(); e.Type == bmv2.TypeBool && e.Bool {
			return k, nil
		}
		k.cond, err = l.Boolean(c.IfCond)
	}
	return k, err
}
