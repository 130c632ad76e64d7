package program

import (
	"math/big"

	"github.com/p4lb/p4lb/bmv2"
	"github.com/p4lb/p4lb/dataplane/num"
)

// A valueSet is a parser value set: what the control plane has put into it,
// and for every select that asks for it a caseSet with the members in that
// select's form.
type valueSet struct {
	name    string
	Width   int // of a member, without padding
	MaxSize int // 0: any
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

// MaxValues is the most members of a set of which the program gives no size.
const MaxValues = 1 << 16

func newValueSet(c *bmv2.ParseVSet) *valueSet {
	return &valueSet{name: c.Name, Width: c.CompressedBitwidth, MaxSize: c.MaxSize}
}

// Set replaces the members.
func (v *valueSet) Set(members []*big.Int) {
	v.members = members
	for _, c := range v.cases {
		c.fill(members)
	}
}

// List writes the members as numbers of full width.
func (v *valueSet) List() (members [][]byte) {
	for _, m := range v.members {
		members = append(members, m.FillBytes(make([]byte, num.Bytes(v.Width))))
	}
	return members
}
