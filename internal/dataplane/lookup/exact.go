// Package lookup holds the indices of tables: exact match, longest prefix, and
// values under masks or in ranges. An index maps a key, in the words of its
// fields, to a number. It does not depend on packets or programs. An index is
// not safe for changes during lookups.
package lookup

import "slices"

// An Exact is a hash table from keys of a fixed number of words to small
// numbers. It uses open addressing with linear probing and is at most half
// full, so a lookup touches one or two cache lines and does not allocate.
type Exact struct {
	words int
	keys  []uint64
	vals  []int32 // -1: free
	used  int
	shift uint // shift from hash to slot
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
	x.keys, x.vals = make([]uint64, x.words<<log), slices.Repeat([]int32{None}, 1<<log)
	x.shift, x.used = 64-log, 0
	for i, v := range old.vals {
		if v != None {
			x.Insert(old.keys[i*x.words:][:x.words], v)
		}
	}
}

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

// Find returns the value of a key, or None.
func (x *Exact) Find(key []uint64) int32 {
	if x.words == 1 {
		return x.find1(key[0])
	}
	for i := x.hash(key) >> x.shift; ; i = (i + 1) & uint64(len(x.vals)-1) {
		v := x.vals[i]
		if v == None || slices.Equal(x.keys[int(i)*x.words:][:x.words], key) {
			return v
		}
	}
}

func (x *Exact) find1(key uint64) int32 {
	for i := x.hash1(key) >> x.shift; ; i = (i + 1) & uint64(len(x.vals)-1) {
		v := x.vals[i]
		if v == None || x.keys[i] == key {
			return v
		}
	}
}

// Insert adds or replaces a key.
func (x *Exact) Insert(key []uint64, val int32) {
	if 2*(x.used+1) > len(x.vals) {
		x.resize(64 - x.shift + 1)
	}
	i := x.hash(key) >> x.shift
	for x.vals[i] != None && !slices.Equal(x.keys[int(i)*x.words:][:x.words], key) {
		i = (i + 1) & uint64(len(x.vals)-1)
	}
	if x.vals[i] == None {
		x.used++
	}
	x.vals[i] = val
	copy(x.keys[int(i)*x.words:], key)
}

// Remove deletes a key and moves up the keys after it, so that each can still
// be found.
func (x *Exact) Remove(key []uint64) {
	m := uint64(len(x.vals) - 1)
	i := x.hash(key) >> x.shift
	for ; ; i = (i + 1) & m {
		if x.vals[i] == None {
			return
		}
		if slices.Equal(x.keys[int(i)*x.words:][:x.words], key) {
			break
		}
	}
	x.used--
	for j := i; ; {
		j = (j + 1) & m
		if x.vals[j] == None {
			break
		}
		home := x.hash(x.keys[int(j)*x.words:][:x.words]) >> x.shift
		if (j-home)&m >= (j-i)&m {
			x.vals[i] = x.vals[j]
			copy(x.keys[int(i)*x.words:][:x.words], x.keys[int(j)*x.words:][:x.words])
			i = j
		}
	}
	x.vals[i] = None
}
