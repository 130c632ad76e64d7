package dataplane

import (
	"fmt"
	"math/big"
	"slices"

	"github.com/p4lb/p4lb/bmv2"
	"github.com/p4lb/p4lb/dataplane/num"
)

// A valueSet is a parser value set: what the control plane has put into it,
// and for every select that asks for it a caseSet with the members in that
// select's form.
type valueSet struct {
	name    string
	width   int // of a member, without padding
	maxSize int // 0: any
	members []*big.Int
	cases   []*caseSet
}

// A caseSet is a value set as one case of a select sees it: the fields of a
// member filled up to bytes, under the case's mask.
type caseSet struct {
	key  *selectKey
	mask []uint64
	list [][]uint64
}

func (v *valueSet) addCase(k *selectKey, mask []uint64) *caseSet {
	c := &caseSet{key: k, mask: mask}
	v.cases = append(v.cases, c)
	return c
}

func (c *caseSet) has(key uint64) bool {
	for _, m := range c.list {
		if m[0] == key {
			return true
		}
	}
	return false
}

func (c *caseSet) hasWide(key, mask []uint64) bool {
next:
	for _, m := range c.list {
		for i, v := range key {
			if v&mask[i] != m[i] {
				continue next
			}
		}
		return true
	}
	return false
}

// fill renews c from the members of its set.
func (c *caseSet) fill(members []*big.Int) {
	c.list = nil
	for _, m := range members {
		rest := new(big.Int).Set(m)
		padded := new(big.Int)
		for i := len(c.key.parts) - 1; i >= 0; i-- {
			part := c.key.parts[i]
			v := new(big.Int).And(rest, num.Most(part.width))
			padded.Or(padded, v.Lsh(v, uint(part.shift)))
			rest.Rsh(rest, uint(part.width))
		}
		limbs := num.OfBig(padded, len(c.mask))
		for i := range limbs {
			limbs[i] &= c.mask[i]
		}
		c.list = append(c.list, limbs)
	}
}

// maxValues is the most members of a set of which the program gives no size.
const maxValues = 1 << 16

func newValueSet(c *bmv2.ParseVSet) *valueSet {
	return &valueSet{name: c.Name, width: c.CompressedBitwidth, maxSize: c.MaxSize}
}

// set replaces the members.
func (v *valueSet) set(members []*big.Int) {
	v.members = members
	for _, c := range v.cases {
		c.fill(members)
	}
}

// SetValueSet replaces the members of a parser value set. A member is the
// concatenation of its fields, without padding.
func (s *Switch) SetValueSet(name string, members [][]byte) error {
	return s.EditValueSet(name, func([][]byte) [][]byte { return members })
}

// EditValueSet replaces the members of a parser value set by what edit makes of
// them.
func (s *Switch) EditValueSet(name string, edit func(members [][]byte) [][]byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	v := s.vsets[name]
	if v == nil {
		return fmt.Errorf("unknown value set %q", name)
	}
	members := edit(v.list())
	most := v.maxSize
	if most == 0 {
		most = maxValues
	}
	if len(members) > most {
		return fmt.Errorf("value set %s takes %d members, not %d", name, most, len(members))
	}
	var list []*big.Int
	for _, m := range members {
		n := new(big.Int).SetBytes(m)
		if n.BitLen() > v.width {
			return fmt.Errorf("value set %s: %x has more than %d bits", name, m, v.width)
		}
		if !slices.ContainsFunc(list, func(o *big.Int) bool { return o.Cmp(n) == 0 }) {
			list = append(list, n)
		}
	}
	v.set(list)
	return nil
}

// ValueSet returns the members of a parser value set.
func (s *Switch) ValueSet(name string) ([][]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v := s.vsets[name]
	if v == nil {
		return nil, fmt.Errorf("unknown value set %q", name)
	}
	return v.list(), nil
}

func (v *valueSet) list() (members [][]byte) {
	for _, m := range v.members {
		members = append(members, m.FillBytes(make([]byte, num.Bytes(v.width))))
	}
	return members
}
