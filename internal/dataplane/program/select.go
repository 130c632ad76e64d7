package program

import (
	"fmt"
	"math/big"
	"slices"

	"github.com/p4lb/p4lb/internal/bmv2"
	"github.com/p4lb/p4lb/internal/dataplane/num"
	"github.com/p4lb/p4lb/internal/dataplane/vector"
)

// A selectKey computes the key of a select: its fields in order, each padded to
// whole bytes.
type selectKey struct {
	parts []keyPart
	bytes int
}

// A keyPart is one field of the key, shift bits above the key's end.
type keyPart struct {
	low   vector.Eval
	wide  func(*vector.State, []uint64) // for more than 64 bits
	width int
	shift int
}

func (l *Linker) selectKey(list []*bmv2.Expr) (selectKey, error) {
	var k selectKey
	for _, e := range list {
		v, width, err := l.keyValue(e)
		if err != nil {
			return k, fmt.Errorf("transition key: %w", err)
		}
		k.parts = append(k.parts, keyPart{low: v.Low(), wide: v.Wide, width: width})
		k.bytes += num.Bytes(width)
	}
	shift := 8 * k.bytes
	for i := range k.parts {
		shift -= 8 * num.Bytes(k.parts[i].width)
		k.parts[i].shift = shift
	}
	return k, nil
}

func (l *Linker) keyValue(e *bmv2.Expr) (vector.Value, int, error) {
	switch e.Type {
	case bmv2.TypeField:
		f, err := l.FieldRef(e)
		return vector.FieldValue(f), f.Width, err
	case bmv2.TypeStackField, bmv2.TypeUnionStackField:
		last := l.LastPlace
		if e.Type == bmv2.TypeUnionStackField {
			last = l.LastUnionPlace
		}
		pl, err := last(e)
		if err != nil {
			return vector.Value{}, 0, err
		}
		return pl.Value(), pl.Field.Width, nil
	case bmv2.TypeLookahead:
		return lookahead(e), e.Width, nil
	}
	return vector.Value{}, 0, fmt.Errorf("%s is not allowed", e.Type)
}

// words computes a key of any size.
func (k *selectKey) words(p *vector.State, dst []uint64) {
	clear(dst)
	n := len(dst)
	t := p.Scratch.Push(n)
	for i := range k.parts {
		part := &k.parts[i]
		clear(t)
		if part.wide != nil {
			part.wide(p, t)
		} else {
			t[0] = part.low(p)
		}
		num.Mask(t, part.width)
		num.Shl(t, t, uint64(part.shift))
		for j, v := range t {
			dst[j] |= v
		}
	}
	p.Scratch.Pop(n)
}

// A parseCase is one case of a select: a value under a mask, or a value set.
type parseCase struct {
	masked
	set  *caseSet
	next *parseState
}

func (l *Linker) parseCase(st *parseState, t bmv2.Transition, next *parseState) (parseCase, error) {
	c := parseCase{next: next}
	n := max(1, (st.key.bytes+7)/8)
	all := num.Most(8 * st.key.bytes)
	mask := all
	if t.Mask != "" {
		m, err := bmv2.ParseHex(t.Mask)
		if err != nil {
			return c, err
		}
		mask = new(big.Int).And(m, all)
	}
	c.mask = num.OfBig(mask, n)
	if t.Type == "parse_vset" {
		v := l.prog.ValueSets[t.Value]
		if v == nil {
			return c, fmt.Errorf("unknown value set %q", t.Value)
		}
		c.set = v.addCase(&st.key, c.mask)
		return c, nil
	}
	v, err := bmv2.ParseHex(t.Value)
	if err != nil {
		return c, err
	}
	c.value = num.OfBig(new(big.Int).And(v, mask), n)
	return c, nil
}

// next returns the next state of the parser.
func (st *parseState) next(p *vector.State) *parseState {
	if len(st.cases) == 0 {
		return st.others
	}
	if st.key.bytes <= 8 {
		var key uint64
		for i := range st.key.parts {
			part := &st.key.parts[i]
			key |= part.low(p) & num.Mask64(part.width) << uint(part.shift)
		}
		for i := range st.cases {
			c := &st.cases[i]
			if c.set != nil {
				if c.set.has(key) {
					return c.next
				}
			} else if key&c.mask[0] == c.value[0] {
				return c.next
			}
		}
		return st.others
	}
	return st.nextWide(p)
}

func (st *parseState) nextWide(p *vector.State) *parseState {
	n := (st.key.bytes + 7) / 8
	key := p.Scratch.Push(n)
	defer p.Scratch.Pop(n)
	st.key.words(p, key)
	for i := range st.cases {
		if st.cases[i].matches(key) {
			return st.cases[i].next
		}
	}
	return st.others
}

func (c *parseCase) matches(key []uint64) bool {
	if c.set != nil {
		return slices.ContainsFunc(c.set.list, func(m masked) bool { return m.matches(key) })
	}
	return c.masked.matches(key)
}

// masked is a number under a mask.
type masked struct{ value, mask []uint64 }

func (m masked) matches(key []uint64) bool {
	for i, v := range key {
		if v&m.mask[i] != m.value[i] {
			return false
		}
	}
	return true
}

// A parseState is a state: its operations, then the first case that matches the
// key, else others. A nil state accepts.
type parseState struct {
	name   string
	ops    []parserOp
	key    selectKey
	cases  []parseCase
	others *parseState
	entry  uintptr // the address in machine code
}

func (st *parseState) run(p *vector.State) int64 {
	for _, op := range st.ops {
		if code := op(p); code != noError {
			return code
		}
	}
	return noError
}

// A valueSet is a parser value set: its members, and for each select that uses
// it a caseSet with the members in that select's form.
type valueSet struct {
	name    string
	Width   int // width of a member without padding
	MaxSize int // 0: no limit
	Members []Member
	cases   []*caseSet
}

// A Member is a member of a parser value set: the concatenation of its fields without
// padding, and a mask of the bits that a key must have in common with it.
type Member struct{ Value, Mask *big.Int }

// A caseSet is a value set in the form of one case of a select: the fields of a
// member padded to bytes, under the case's mask and the member's.
type caseSet struct {
	key  *selectKey
	mask []uint64
	list []masked
}

func (v *valueSet) addCase(k *selectKey, mask []uint64) *caseSet {
	c := &caseSet{key: k, mask: mask}
	v.cases = append(v.cases, c)
	return c
}

func (c *caseSet) has(key uint64) bool {
	for i := range c.list {
		if m := &c.list[i]; key&m.mask[0] == m.value[0] {
			return true
		}
	}
	return false
}

// MaxValues is the largest number of members of a set without a size in the
// program.
const MaxValues = 1 << 16

// Set replaces the members.
func (v *valueSet) Set(members []Member) {
	v.Members = members
	for _, c := range v.cases {
		c.list = nil
		for _, m := range members {
			x := masked{c.padded(m.Value), c.padded(m.Mask)}
			for i := range x.mask {
				x.mask[i] &= c.mask[i]
				x.value[i] &= x.mask[i]
			}
			c.list = append(c.list, x)
		}
	}
}

// padded returns a number of a member in the form of the key.
func (c *caseSet) padded(n *big.Int) []uint64 {
	rest, padded := new(big.Int).Set(n), new(big.Int)
	for i := len(c.key.parts) - 1; i >= 0; i-- {
		part := c.key.parts[i]
		v := new(big.Int).And(rest, num.Most(part.width))
		padded.Or(padded, v.Lsh(v, uint(part.shift)))
		rest.Rsh(rest, uint(part.width))
	}
	return num.OfBig(padded, len(c.mask))
}
