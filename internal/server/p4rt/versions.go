package p4rt

import (
	"iter"
	"slices"
	"sync/atomic"
)

// A versioned map has numbers as keys and is walked in their order. A view of
// it, as it is at one moment, costs nothing: who reads a table of a million
// entries neither copies it nor keeps writers out while the answer is sent.
//
// It is a trie over the bits of the key. A node belongs to the map alone as long
// as it is of the map's epoch; taking a view begins another one, so that the
// next change of a node that the view can see copies it first, and with it the
// few nodes above. Nodes that no view sees any more are the garbage collector's.
//
// Changes want a lock; views may be taken by several at a time while none
// changes the map, and walked without any.
type versioned[T any] struct {
	root  *trieNode[T]
	shift uint // of the key, for the place in root
	n     int
	epoch atomic.Uint64
}

const (
	fanBits = 5
	fanOut  = 1 << fanBits
)

// A trieNode has values if it is a leaf, and else nodes.
type trieNode[T any] struct {
	epoch uint64
	used  uint32 // bit i: place i is taken
	kids  []*trieNode[T]
	vals  []T
}

// A view is a versioned map as it was.
type view[T any] struct {
	root  *trieNode[T]
	shift uint
}

func (m *versioned[T]) len() int { return m.n }

func (m *versioned[T]) view() view[T] {
	m.epoch.Add(1)
	return view[T]{m.root, m.shift}
}

// own returns the node in a place such that it may be changed, new if need be.
func (m *versioned[T]) own(n *trieNode[T], leaf bool) *trieNode[T] {
	epoch := m.epoch.Load()
	switch {
	case n == nil && leaf:
		return &trieNode[T]{epoch: epoch, vals: make([]T, fanOut)}
	case n == nil:
		return &trieNode[T]{epoch: epoch, kids: make([]*trieNode[T], fanOut)}
	case n.epoch != epoch:
		return &trieNode[T]{epoch, n.used, slices.Clone(n.kids), slices.Clone(n.vals)}
	}
	return n
}

// reaches reports whether k has a place below a root with this shift.
func reaches(k uint32, shift uint) bool { return uint64(k)>>(shift+fanBits) == 0 }

func place(k uint32, shift uint) uint32 { return k >> shift & (fanOut - 1) }

func (m *versioned[T]) get(k uint32) (v T, ok bool) { return view[T]{m.root, m.shift}.get(k) }

func (v view[T]) get(k uint32) (val T, ok bool) {
	n := v.root
	if n == nil || !reaches(k, v.shift) {
		return val, false
	}
	for s := v.shift; s > 0; s -= fanBits {
		if n = n.kids[place(k, s)]; n == nil {
			return val, false
		}
	}
	i := place(k, 0)
	return n.vals[i], n.used>>i&1 == 1
}

func (m *versioned[T]) set(k uint32, v T) {
	for !reaches(k, m.shift) {
		if old := m.root; old != nil {
			m.root = m.own(nil, false)
			m.root.kids[0], m.root.used = old, 1
		}
		m.shift += fanBits
	}
	at := &m.root
	for s := m.shift; s > 0; s -= fanBits {
		*at = m.own(*at, false)
		i := place(k, s)
		(*at).used |= 1 << i
		at = &(*at).kids[i]
	}
	*at = m.own(*at, true)
	i := place(k, 0)
	if (*at).used>>i&1 == 0 {
		(*at).used |= 1 << i
		m.n++
	}
	(*at).vals[i] = v
}

// put sets a value, or with nil deletes it.
func put[T any](m *versioned[*T], k uint32, v *T) {
	if v == nil {
		m.delete(k)
		return
	}
	m.set(k, v)
}

func (m *versioned[T]) delete(k uint32) {
	if _, ok := m.get(k); ok {
		m.root = m.without(m.root, k, m.shift)
		m.n--
	}
}

// without returns n less the value of a key that it has, nil if it was the last.
func (m *versioned[T]) without(n *trieNode[T], k uint32, shift uint) *trieNode[T] {
	i := place(k, shift)
	var kid *trieNode[T]
	if shift > 0 {
		kid = m.without(n.kids[i], k, shift-fanBits)
	}
	if kid == nil && n.used == 1<<i {
		return nil
	}
	n = m.own(n, shift == 0)
	switch {
	case shift == 0:
		var none T
		n.vals[i] = none
		n.used &^= 1 << i
	case kid == nil:
		n.used &^= 1 << i
		fallthrough
	default:
		n.kids[i] = kid
	}
	return n
}

// all gives the keys and values in order.
func (v view[T]) all() iter.Seq2[uint32, T] {
	return func(yield func(uint32, T) bool) {
		if v.root != nil {
			v.root.walk(0, v.shift, yield)
		}
	}
}

func (n *trieNode[T]) walk(prefix uint32, shift uint, yield func(uint32, T) bool) bool {
	for i := range uint32(fanOut) {
		k := prefix | i<<shift
		switch {
		case n.used>>i&1 == 0:
		case shift == 0:
			if !yield(k, n.vals[i]) {
				return false
			}
		case !n.kids[i].walk(k, shift-fanBits, yield):
			return false
		}
	}
	return true
}
