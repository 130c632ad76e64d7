package dataplane

import (
	"fmt"

	"github.com/p4lb/p4lb/internal/dataplane/lookup"
	"github.com/p4lb/p4lb/internal/dataplane/num"
	"github.com/p4lb/p4lb/internal/dataplane/program"
)

// A Probe looks keys up in a table without a packet. It sees the current
// entries at each lookup and changes nothing: no counter and no time of a last
// hit.
type Probe struct {
	sw  *Switch
	t   *program.Table
	key []uint64
}

// Probe returns a probe of a table whose key fields have at most 64 bits.
func (s *Switch) Probe(name string) (*Probe, error) {
	p := &Probe{sw: s}
	err := s.withTable(name, func(t *program.Table) error {
		for _, f := range t.Key.Fields {
			if f.Words > 1 {
				return fmt.Errorf("field %s has %d bits: a probe takes at most 64", f.Name, f.Width)
			}
		}
		p.t, p.key = t, make([]uint64, t.Key.Words)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return p, nil
}

// Find returns the entry that a packet with these key fields would hit; ok is
// false if it would miss.
func (p *Probe) Find(fields ...uint64) (h Handle, ok bool) {
	if len(fields) != len(p.t.Key.Fields) {
		return 0, false
	}
	clear(p.key)
	for i := range fields {
		f := &p.t.Key.Fields[i]
		v := fields[i] & num.Mask64(f.Width)
		if f.Mask != nil {
			v &= f.Mask[0]
		}
		p.key[f.Word] |= v << uint(f.Shift)
	}
	p.sw.mu.Lock()
	defer p.sw.mu.Unlock()
	slot := p.t.Lookup(p.key)
	if slot == lookup.None {
		return 0, false
	}
	return p.t.Handle(int(slot)), true
}
