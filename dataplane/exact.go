package dataplane

import "slices"

// An exactIndex is a hash table from keys of a fixed number of words to small
// numbers: open addressing with linear probing, at most half full, so that a
// lookup is one or two cache lines and allocates nothing.
type exactIndex struct {
	words int
	keys  []uint64
	vals  []int32 // -1: free
	used  int
	shift uint // of the hash, to get a slot
}

const none int32 = -1

func newExactIndex(words int) *exactIndex {
	x := &exactIndex{words: words}
	x.resize(3)
	return x
}

func (x *exactIndex) resize(log uint) {
	old := *x
	x.keys, x.vals = make([]uint64, x.words<<log), make([]int32, 1<<log)
	for i := range x.vals {
		x.vals[i] = none
	}
	x.shift, x.used = 64-log, 0
	for i, v := range old.vals {
		if v != none {
			x.insert(old.keys[i*x.words:][:x.words], v)
		}
	}
}

func (x *exactIndex) hash(key []uint64) uint64 {
	h := uint64(0x9e3779b97f4a7c15)
	for _, k := range key {
		h = (h ^ k) * 0xbf58476d1ce4e5b9
		h ^= h >> 29
	}
	return h * 0x94d049bb133111eb
}

func (x *exactIndex) hash1(key uint64) uint64 {
	h := (0x9e3779b97f4a7c15 ^ key) * 0xbf58476d1ce4e5b9
	h ^= h >> 29
	return h * 0x94d049bb133111eb
}

// find returns the value of a key, or none.
func (x *exactIndex) find(key []uint64) int32 {
	if x.words == 1 {
		return x.find1(key[0])
	}
	for i := x.hash(key) >> x.shift; ; i = (i + 1) & uint64(len(x.vals)-1) {
		v := x.vals[i]
		if v == none || slices.Equal(x.keys[int(i)*x.words:][:x.words], key) {
			return v
		}
	}
}

func (x *exactIndex) find1(key uint64) int32 {
	for i := x.hash1(key) >> x.shift; ; i = (i + 1) & uint64(len(x.vals)-1) {
		v := x.vals[i]
		if v == none || x.keys[i] == key {
			return v
		}
	}
}

// insert adds or replaces a key.
func (x *exactIndex) insert(key []uint64, val int32) {
	if 2*(x.used+1) > len(x.vals) {
		x.resize(64 - x.shift + 1)
	}
	i := x.hash(key) >> x.shift
	for x.vals[i] != none && !slices.Equal(x.keys[int(i)*x.words:][:x.words], key) {
		i = (i + 1) & uint64(len(x.vals)-1)
	}
	if x.vals[i] == none {
		x.used++
	}
	x.vals[i] = val
	copy(x.keys[int(i)*x.words:], key)
}

// remove deletes a key and moves what follows it up, so that no key is cut off
// from its slot.
func (x *exactIndex) remove(key []uint64) {
	m := uint64(len(x.vals) - 1)
	i := x.hash(key) >> x.shift
	for ; ; i = (i + 1) & m {
		if x.vals[i] == none {
			return
		}
		if slices.Equal(x.keys[int(i)*x.words:][:x.words], key) {
			break
		}
	}
	x.used--
	for j := i; ; {
		j = (j + 1) & m
		if x.vals[j] == none {
			break
		}
		home := x.hash(x.keys[int(j)*x.words:][:x.words]) >> x.shift
		if (j-home)&m >= (j-i)&m {
			x.vals[i] = x.vals[j]
			copy(x.keys[int(i)*x.words:][:x.words], x.keys[int(j)*x.words:][:x.words])
			i = j
		}
	}
	x.vals[i] = none
}
