package dataplane

import (
	"fmt"

	"github.com/p4lb/p4lb/dataplane/lookup"
	"github.com/p4lb/p4lb/dataplane/num"
)

// A Probe looks keys up in a table without a packet. It sees the entries as
// they are at each lookup, and changes nothing: no counter, no time of a last
// hit.
type Probe struct {
	sw  *Switch
	t   *table
	key []uint64
}

// Probe makes a probe of a table whose key fields have at most 64 bits.
func (s *Switch) Probe(name string) (*Probe, error) {
	p := &Probe{sw: s}
	err := s.withTable(name, func(t *table) error {
		for _, f := range t.key.fields {
			if f.words > 1 {
				return fmt.Errorf("field %s has %d bits, a probe takes 64", f.name, f.width)
			}
		}
		p.t, p.key = t, make([]uint64, t.key.words)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return p, nil
}

// Find returns the entry that a packet with these key fields would hit; ok is
// false where it would miss.
func (p *Probe) Find(fields ...uint64) (h Handle, ok bool) {
	if len(fields) != len(p.t.key.fields) {
		return 0, false
	}
	clear(p.key)
	for i := range fields {
		f := &p.t.key.fields[i]
		v := fields[i] & num.Mask64(f.width)
		if f.mask != nil {
			v &= f.mask[0]
		}
		p.key[f.word] |= v << uint(f.shift)
	}
	p.sw.mu.Lock()
	defer p.sw.mu.Unlock()
	slot := p.t.lookup(p.key)
	if slot == lookup.None {
		return 0, false
	}
	return p.t.handle(int(slot)), true
}
