package dataplane

import (
	"cmp"
	"fmt"
	"math/big"
	"slices"

	"github.com/p4lb/p4lb/internal/dataplane/program"
)

// SetValueSet replaces the members of a parser value set. A member is the
// concatenation of its fields, without padding.
func (s *Switch) SetValueSet(name string, members [][]byte) error {
	return s.EditValueSet(name, func([][]byte) [][]byte { return members })
}

// EditValueSet replaces the members of a parser value set by the result of
// edit.
func (s *Switch) EditValueSet(name string, edit func(members [][]byte) [][]byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	v := s.prog.ValueSets[name]
	if v == nil {
		return fmt.Errorf("unknown value set %q", name)
	}
	members := edit(v.List())
	most := cmp.Or(v.MaxSize, program.MaxValues)
	if len(members) > most {
		return fmt.Errorf("value set %s takes %d members, not %d", name, most, len(members))
	}
	var list []*big.Int
	for _, m := range members {
		n := new(big.Int).SetBytes(m)
		if n.BitLen() > v.Width {
			return fmt.Errorf("value set %s: %x has more than %d bits", name, m, v.Width)
		}
		if !slices.ContainsFunc(list, func(o *big.Int) bool { return o.Cmp(n) == 0 }) {
			list = append(list, n)
		}
	}
	v.Set(list)
	return nil
}

// ValueSet returns the members of a parser value set.
func (s *Switch) ValueSet(name string) ([][]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v := s.prog.ValueSets[name]
	if v == nil {
		return nil, fmt.Errorf("unknown value set %q", name)
	}
	return v.List(), nil
}
