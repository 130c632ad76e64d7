package dataplane

import (
	"cmp"
	"fmt"
	"math/big"
	"slices"

	"github.com/p4lb/p4lb/internal/dataplane/num"
	"github.com/p4lb/p4lb/internal/dataplane/program"
)

// ValueSets sets the value sets of parsers.
type ValueSets struct{ s *Switch }

// ValueSets returns the value sets of the switch.
func (s *Switch) ValueSets() ValueSets { return ValueSets{s} }

// A SetMember is a member of a parser value set: the concatenation of its fields, without
// padding. Mask has the bits that a key must have in common with Value; nil means all.
type SetMember struct{ Value, Mask []byte }

// Set replaces the members of a parser value set.
func (vs ValueSets) Set(name string, members []SetMember) error {
	return vs.Edit(name, func([]SetMember) []SetMember { return members })
}

// Edit replaces the members of a parser value set by the result of
// edit.
func (vs ValueSets) Edit(name string, edit func(members []SetMember) []SetMember) error {
	vs.s.mu.Lock()
	defer vs.s.mu.Unlock()
	v := vs.s.prog.ValueSets[name]
	if v == nil {
		return fmt.Errorf("unknown value set %q", name)
	}
	members := edit(membersOf(v.Members, v.Width))
	most := cmp.Or(v.MaxSize, program.MaxValues)
	if len(members) > most {
		return fmt.Errorf("value set %s takes %d members, not %d", name, most, len(members))
	}
	var list []program.Member
	for _, m := range members {
		x := program.Member{Value: new(big.Int).SetBytes(m.Value), Mask: num.Most(v.Width)}
		if m.Mask != nil {
			x.Mask = new(big.Int).SetBytes(m.Mask)
		}
		for _, n := range []*big.Int{x.Value, x.Mask} {
			if n.BitLen() > v.Width {
				return fmt.Errorf("value set %s: %x has more than %d bits", name, n, v.Width)
			}
		}
		x.Value.And(x.Value, x.Mask)
		if !slices.ContainsFunc(list, func(o program.Member) bool { return o.Value.Cmp(x.Value) == 0 && o.Mask.Cmp(x.Mask) == 0 }) {
			list = append(list, x)
		}
	}
	v.Set(list)
	return nil
}

// Get returns the members of a parser value set.
func (vs ValueSets) Get(name string) ([]SetMember, error) {
	vs.s.mu.Lock()
	defer vs.s.mu.Unlock()
	v := vs.s.prog.ValueSets[name]
	if v == nil {
		return nil, fmt.Errorf("unknown value set %q", name)
	}
	return membersOf(v.Members, v.Width), nil
}

// membersOf returns members with values and masks of full width.
func membersOf(list []program.Member, width int) (members []SetMember) {
	bytes := func(n *big.Int) []byte { return n.FillBytes(make([]byte, num.Bytes(width))) }
	for _, m := range list {
		x := SetMember{Value: bytes(m.Value)}
		if m.Mask.Cmp(num.Most(width)) != 0 {
			x.Mask = bytes(m.Mask)
		}
		members = append(members, x)
	}
	return members
}
