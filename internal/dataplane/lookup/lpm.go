package lookup

import (
	"math/bits"
	"slices"
)

// An LPM finds the longest prefix with a tree bitmap (Eatherton, Varghese,
// Dittia: "Tree bitmap: hardware/software IP lookups with incremental
// updates"). A node covers six bits of the key. One bitmap marks which of the
// 63 prefixes of zero to five bits end in the node, another which of the 64
// children exist. Results and children are packed and found by counting bits. A
// lookup visits at most width/6+1 nodes and remembers the last result.
//
// Keys are left-aligned, the first bits in the first word. A table with exact
// fields besides the prefix has one tree for each of their values.
type LPM struct {
	// With one tree for keys of at most 64 bits, all prefixes begin with the
	// skipped bits of common, and lookups start at start: the networks of one
	// site share their first bits.
	start   *trieNode
	skipped uint
	common  uint64

	width int // bits of the prefix field
	exact int // words of the exact part
	trees []*trieNode
	roots *Exact // exact part to tree; nil if there is none
}

const stride = 6

// A trieNode has the size of a cache line, so that each node of a row of kids lies
// in one.
type trieNode struct {
	ends     uint64 // bit 2^len-1+prefix: a prefix ends here
	branches uint64
	kids     []trieNode
	others   *[]int32 // the results but the first; nil if there are none
	first    int32    // the first result, usually the only one
	_        [8]byte
}

// prefixesOf[c] holds the bits of all prefixes of the six bits c. The highest
// bit in common with ends is the longest prefix.
var prefixesOf = makePrefixes()

func makePrefixes() (t [1 << stride]uint64) {
	for c := range t {
		for n := range stride {
			t[c] |= 1 << (1<<n - 1 + c>>(stride-n))
		}
	}
	return t
}

// NewLPM returns an empty index of prefixes of a field of width bits, which follows
// exact words.
func NewLPM(exact, width int) *LPM {
	x := &LPM{exact: exact, width: width}
	if exact > 0 {
		x.roots = NewExact(exact)
	} else {
		x.trees = []*trieNode{{}}
	}
	return x
}

// tree returns the tree for a key's exact part, or nil.
func (x *LPM) tree(key []uint64) *trieNode {
	if x.roots == nil {
		return x.trees[0]
	}
	if i := x.roots.Find(key[:x.exact]); i != None {
		return x.trees[i]
	}
	return nil
}

// Find returns the value of the longest prefix of key, or None. Find reverses
// the prefix part of key, which is in value order.
func (x *LPM) Find(key []uint64) int32 {
	if x.start != nil {
		return x.FindWord(key[0])
	}
	n := x.tree(key)
	if n == nil {
		return None
	}
	if x.width <= 64 {
		return n.find64(key[x.exact] << uint(64-x.width))
	}
	var room [4]uint64 // avoids an allocation for most keys
	t := append(room[:0], key[x.exact:]...)
	alignLeft(t, key[x.exact:], x.width)
	return n.find(t)
}

// FindWord is Find for keys of one word.
func (x *LPM) FindWord(key uint64) int32 {
	if x.start == nil { // there is no prefix yet
		return None
	}
	k := key << uint(64-x.width)
	if k>>(64-x.skipped) != x.common {
		return None
	}
	return x.start.find64(k << x.skipped)
}

// alignLeft reverses a number of width bits: its first bits become the highest
// of dst[0].
func alignLeft(dst, src []uint64, width int) {
	last := len(src) - 1
	shift := uint(len(src)*64 - width)
	for i := range dst {
		v := src[last-i] << shift
		if shift > 0 && i < last {
			v |= src[last-i-1] >> (64 - shift)
		}
		dst[i] = v
	}
}

// best returns the value of the longest prefix of c that ends in n.
func (n *trieNode) best(c uint64, otherwise int32) int32 {
	m := n.ends & prefixesOf[c]
	if m == 0 {
		return otherwise
	}
	return n.result(uint64(1) << (bits.Len64(m) - 1))
}

// result returns the value of a prefix that ends in n; bit is its bit in
// n.ends. The values are in the order of their bits, the first in the node
// itself.
func (n *trieNode) result(bit uint64) int32 {
	i := bits.OnesCount64(n.ends & (bit - 1))
	if i == 0 {
		return n.first
	}
	return (*n.others)[i-1]
}

func (n *trieNode) find64(key uint64) int32 {
	r := None
	for {
		c := key >> (64 - stride)
		r = n.best(c, r)
		bit := uint64(1) << c
		if n.branches&bit == 0 {
			return r
		}
		n = &n.kids[bits.OnesCount64(n.branches&(bit-1))]
		key <<= stride
	}
}

func (n *trieNode) find(key []uint64) int32 {
	r := None
	for at := 0; ; at += stride {
		c := chunkAt(key, at)
		r = n.best(c, r)
		bit := uint64(1) << c
		if n.branches&bit == 0 {
			return r
		}
		n = &n.kids[bits.OnesCount64(n.branches&(bit-1))]
	}
}

// chunkAt reads six bits of a left-aligned key.
func chunkAt(key []uint64, at int) uint64 {
	i, off := at/64, uint(at%64)
	if i >= len(key) {
		return 0
	}
	v := key[i] << off
	if off > 64-stride && i+1 < len(key) {
		v |= key[i+1] >> (64 - off)
	}
	return v >> (64 - stride)
}

// Insert adds or replaces a prefix of n bits.
func (x *LPM) Insert(key []uint64, length int, val int32) {
	node := x.tree(key)
	if node == nil {
		node = &trieNode{}
		x.roots.Insert(key[:x.exact], int32(len(x.trees)))
		x.trees = append(x.trees, node)
	}
	prefix := make([]uint64, len(key)-x.exact)
	alignLeft(prefix, key[x.exact:], x.width)
	node.insert(prefix, 0, length, val)
	x.skip()
}

// skip recomputes the start of lookups after a change.
func (x *LPM) skip() {
	if x.roots != nil || x.width > 64 {
		return
	}
	x.start, x.skipped, x.common = x.trees[0], 0, 0
	for n := x.start; n.ends == 0 && bits.OnesCount64(n.branches) == 1; n = x.start {
		x.start, x.skipped = &n.kids[0], x.skipped+stride
		x.common = x.common<<stride | uint64(bits.TrailingZeros64(n.branches))
	}
}

func (n *trieNode) insert(key []uint64, at, length int, val int32) {
	for ; length-at >= stride; at += stride {
		bit := uint64(1) << chunkAt(key, at)
		i := bits.OnesCount64(n.branches & (bit - 1))
		if n.branches&bit == 0 {
			n.branches |= bit
			n.kids = slices.Insert(n.kids, i, trieNode{})
		}
		n = &n.kids[i]
	}
	bit := endBit(key, at, length)
	i := bits.OnesCount64(n.ends & (bit - 1))
	switch fresh := n.ends&bit == 0; {
	case i == 0 && fresh && n.ends != 0:
		n.insertOther(0, n.first)
		n.first = val
	case i == 0:
		n.first = val
	case fresh:
		n.insertOther(i-1, val)
	default:
		(*n.others)[i-1] = val
	}
	n.ends |= bit
}

// insertOther inserts a result before the others from i on.
func (n *trieNode) insertOther(i int, val int32) {
	if n.others == nil {
		n.others = new([]int32)
	}
	*n.others = slices.Insert(*n.others, i, val)
}

// endBit returns the bit of a prefix in its last node.
func endBit(key []uint64, at, length int) uint64 {
	n := length - at
	return 1 << (1<<n - 1 + chunkAt(key, at)>>(stride-n))
}

// Remove deletes a prefix.
func (x *LPM) Remove(key []uint64, length int) {
	if node := x.tree(key); node != nil {
		prefix := make([]uint64, len(key)-x.exact)
		alignLeft(prefix, key[x.exact:], x.width)
		node.remove(prefix, 0, length)
		x.skip()
	}
}

// remove deletes a prefix below n and reports whether n is empty afterwards.
func (n *trieNode) remove(key []uint64, at, length int) bool {
	if length-at >= stride {
		bit := uint64(1) << chunkAt(key, at)
		i := bits.OnesCount64(n.branches & (bit - 1))
		if n.branches&bit != 0 && n.kids[i].remove(key, at+stride, length) {
			n.branches &^= bit
			n.kids = slices.Delete(n.kids, i, i+1)
		}
	} else if bit := endBit(key, at, length); n.ends&bit != 0 {
		i := bits.OnesCount64(n.ends & (bit - 1))
		n.ends &^= bit
		switch {
		case i > 0:
			*n.others = slices.Delete(*n.others, i-1, i)
		case n.ends != 0:
			n.first = (*n.others)[0]
			*n.others = slices.Delete(*n.others, 0, 1)
		}
	}
	return n.ends == 0 && n.branches == 0
}

// FindExact returns the value of exactly this prefix, or None.
func (x *LPM) FindExact(key []uint64, length int) int32 {
	n := x.tree(key)
	if n == nil {
		return None
	}
	prefix := make([]uint64, len(key)-x.exact)
	alignLeft(prefix, key[x.exact:], x.width)
	at := 0
	for ; length-at >= stride; at += stride {
		bit := uint64(1) << chunkAt(prefix, at)
		if n.branches&bit == 0 {
			return None
		}
		n = &n.kids[bits.OnesCount64(n.branches&(bit-1))]
	}
	bit := endBit(prefix, at, length)
	if n.ends&bit == 0 {
		return None
	}
	return n.result(bit)
}
