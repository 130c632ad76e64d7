package p4rt

import (
	"iter"
	"slices"
	"sync/atomic"
)

// A versioned map has numbers as keys and iterates in their order. Taking a
// view of its current state costs nothing: a reader of a million entries
// neither copies the table nor blocks writers while its answer is sent.
//
// The map is a trie over the bits of the key with copy-on-write nodes. A node
// with the epoch of the map belongs to the map alone. Taking a view starts a
// new epoch, so the next change of a node visible to the view copies that node
// and its ancestors. The garbage collector frees nodes that no view uses any
// more.
//
// Changes need a lock. Several goroutines may take views at once if no other
// changes the map, and may iterate over views without a lock.
type versioned[T any] struct {
	root  *trieNode[T]
	shift uint // of the key, to get the index in root
	n     int
	epoch atomic.Uint64
}

const (
	fanBits = 5
	fanOut  = 1 << fanBits
)

// A trieNode has values if it is a leaf, and child nodes otherwise.
type trieNode[T any] struct {
	epoch uint64
	used  uint32 // bit i: slot i is used
	kids  []*trieNode[T]
	vals  []T
}

// A view is the state of a versioned map at one moment.
type view[T any] struct {
	root  *trieNode[T]
	shift uint
}

func (m *versioned[T]) len() int { return m.n }

func (m *versioned[T]) view() view[T] {
	m.epoch.Add(1)
	return view[T]{m.root, m.shift}
}

// own returns a node that may be changed: n itself, a copy, or a new one.
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

// reaches reports whether k fits below a root with this shift.
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

// put sets a value; nil deletes it.
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

// without returns n without the value of k, or nil if it was the last one.
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

// all iterates over keys and values in order of the keys.
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
