// Package lookup holds the indices of tables: exact match, longest prefix, and
// values under masks or in ranges. An index maps a key, in the words of its
// fields, to a number. It does not depend on packets or programs. An index is
// not safe for changes during lookups.
package lookup

import "slices"

// An Exact is a hash table from keys of a fixed number of words to small
// numbers. It uses open addressing with linear probing and is at most half
// full. A key lies beside its number, so a lookup touches one or two cache lines
// and does not allocate.
type Exact struct {
	words int
	shift uint     // shift from hash to slot
	slots []uint64 // for each slot: the number plus one, or 0 if the slot is free; the key
	used  int
}

// None means no number.
const None int32 = -1

// NewExact returns an empty index of keys of a number of words.
func NewExact(words int) *Exact {
	x := &Exact{words: words}
	x.resize(3)
	return x
}

func (x *Exact) resize(log uint) {
	old := *x
	x.slots = make([]uint64, (x.words+1)<<log)
	x.shift, x.used = 64-log, 0
	for slot := range slices.Chunk(old.slots, x.words+1) {
		if slot[0] != 0 {
			x.Insert(slot[1:], number(slot))
		}
	}
}

// slot returns slot i: its number plus one, and its key.
func (x *Exact) slot(i uint64) []uint64 { return x.slots[int(i)*(x.words+1):][:x.words+1] }

// number returns the number of a slot, or None if the slot is free.
func number(slot []uint64) int32 { return int32(slot[0]) - 1 }

// mask returns the largest number of a slot.
func (x *Exact) mask() uint64 { return 1<<(64-x.shift) - 1 }

func (x *Exact) hash(key []uint64) uint64 {
	h := uint64(0x9e3779b97f4a7c15)
	for _, k := range key {
		h = (h ^ k) * 0xbf58476d1ce4e5b9
		h ^= h >> 29
	}
	return h * 0x94d049bb133111eb
}

func (x *Exact) hash1(key uint64) uint64 {
	h := (0x9e3779b97f4a7c15 ^ key) * 0xbf58476d1ce4e5b9
	h ^= h >> 29
	return h * 0x94d049bb133111eb
}

// Find returns the number of a key, or None.
func (x *Exact) Find(key []uint64) int32 {
	if x.words == 1 {
		return x.FindWord(key[0])
	}
	return number(x.find(key))
}

// find returns the slot of a key, or the free slot where it would be.
func (x *Exact) find(key []uint64) []uint64 {
	for i := x.hash(key) >> x.shift; ; i = (i + 1) & x.mask() {
		slot := x.slot(i)
		if slot[0] == 0 || slices.Equal(slot[1:], key) {
			return slot
		}
	}
}

// FindWord is Find for keys of one word.
func (x *Exact) FindWord(key uint64) int32 {
	for i := x.hash1(key) >> x.shift; ; i = (i + 1) & x.mask() {
		slot := x.slots[2*i:]
		if slot[0] == 0 || slot[1] == key {
			return number(slot)
		}
	}
}

// Insert adds or replaces a key.
func (x *Exact) Insert(key []uint64, val int32) {
	if uint64(2*(x.used+1)) > x.mask()+1 {
		x.resize(64 - x.shift + 1)
	}
	slot := x.find(key)
	if slot[0] == 0 {
		x.used++
	}
	slot[0] = uint64(val) + 1
	copy(slot[1:], key)
}

// Remove deletes a key and moves up the keys after it, so that each can still
// be found.
func (x *Exact) Remove(key []uint64) {
	m := x.mask()
	i := x.hash(key) >> x.shift
	for ; ; i = (i + 1) & m {
		slot := x.slot(i)
		if slot[0] == 0 {
			return
		}
		if slices.Equal(slot[1:], key) {
			break
		}
	}
	x.used--
	for j := i; ; {
		j = (j + 1) & m
		slot := x.slot(j)
		if slot[0] == 0 {
			break
		}
		home := x.hash(slot[1:]) >> x.shift
		if (j-home)&m >= (j-i)&m {
			copy(x.slot(i), slot)
			i = j
		}
	}
	x.slot(i)[0] = 0
}
