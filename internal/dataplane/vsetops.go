package dataplane

import (
	"cmp"
	"fmt"
	"math/big"
	"slices"

	"github.com/p4lb/p4lb/internal/dataplane/program"
)

// ValueSets sets the value sets of parsers.
type ValueSets struct{ s *Switch }

// ValueSets returns the value sets of the switch.
func (s *Switch) ValueSets() ValueSets { return ValueSets{s} }

// Set replaces the members of a parser value set. A member is the
// concatenation of its fields, without padding.
func (vs ValueSets) Set(name string, members [][]byte) error {
	return vs.Edit(name, func([][]byte) [][]byte { return members })
}

// Edit replaces the members of a parser value set by the result of
// edit.
func (vs ValueSets) Edit(name string, edit func(members [][]byte) [][]byte) error {
	vs.s.mu.Lock()
	defer vs.s.mu.Unlock()
	v := vs.s.prog.ValueSets[name]
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

// Get returns the members of a parser value set.
func (vs ValueSets) Get(name string) ([][]byte, error) {
	vs.s.mu.Lock()
	defer vs.s.mu.Unlock()
	v := vs.s.prog.ValueSets[name]
	if v == nil {
		return nil, fmt.Errorf("unknown value set %q", name)
	}
	return v.List(), nil
}
