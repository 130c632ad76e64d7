package dataplane

import (
	"slices"

	"github.com/p4lb/p4lb/bmv2"
	"github.com/p4lb/p4lb/dataplane/num"
)

// markValid makes h valid, and the other members of its union invalid.
func (h *header) markValid(p *State) {
	if h.union != nil {
		for _, m := range h.union.members {
			p.w[m.base] = 0
		}
	}
	p.w[h.base] = 1
}

func (h *header) markInvalid(p *State) { p.w[h.base] = 0 }

// isValid is true of metadata always.
func (h *header) isValid(p *State) bool { return h.metadata || p.w[h.base] != 0 }

// varBits is the current width of the variable-length field.
func (h *header) varBits(p *State) int {
	if h.typ.varLen < 0 {
		return 0
	}
	return int(p.w[h.base+h.typ.fields[h.typ.varLen].lenOff()])
}

// bytes is the size of the header in a packet.
func (h *header) bytes(p *State) int { return (h.typ.bits + h.varBits(p)) / 8 }

// assign copies src to dst as an assignment of headers does: an invalid
// source only makes the destination invalid.
func (dst *header) assign(p *State, src *header) {
	if !src.isValid(p) {
		dst.markInvalid(p)
		return
	}
	dst.markValid(p)
	copy(p.w[dst.base+1:dst.base+dst.typ.size], p.w[src.base+1:src.base+src.typ.size])
}

// swap exchanges the values of two headers, valid or not.
func (h *header) swap(p *State, other *header) {
	for i := range h.typ.size {
		p.w[h.base+i], p.w[other.base+i] = p.w[other.base+i], p.w[h.base+i]
	}
}

func (h *header) equal(p *State, other *header) bool {
	return h.typ == other.typ && h.isValid(p) && other.isValid(p) &&
		slices.Equal(p.w[h.base+1:h.base+h.typ.size], p.w[other.base+1:other.base+h.typ.size])
}

// validMember is the index of the valid member of u, or -1.
func (u *union) validMember(p *State) int {
	for i, m := range u.members {
		if p.w[m.base] != 0 {
			return i
		}
	}
	return -1
}

func (u *union) assign(p *State, src *union) {
	for i, m := range u.members {
		m.assign(p, src.members[i])
	}
}

func (u *union) swap(p *State, other *union) {
	for i, m := range u.members {
		m.swap(p, other.members[i])
	}
}

// markInvalid does nothing: in BMv2 a push onto or a pop from a stack of unions
// moves the elements and does not touch the ones that come free.
func (u *union) markInvalid(*State) {}

func (u *union) equal(p *State, other *union) bool {
	i := u.validMember(p)
	return i >= 0 && i == other.validMember(p) && u.members[i].equal(p, other.members[i])
}

// shifted is an element of a stack, for push and pop.
type shifted[T any] interface {
	swap(p *State, other T)
	markInvalid(p *State)
}

// pushFront moves the elements of a stack n places up; the first n become
// invalid.
func pushFront[T shifted[T]](p *State, elements []T, next int, n uint64) {
	size := uint64(len(elements))
	n = min(n, size)
	p.w[next] = min(size, p.w[next]+n)
	for i := size; i > n; i-- {
		elements[i-1].swap(p, elements[i-1-n])
	}
	for _, e := range elements[:n] {
		e.markInvalid(p)
	}
}

// popFront moves the elements n places down; the last n become invalid.
func popFront[T shifted[T]](p *State, elements []T, next int, n uint64) {
	size := uint64(len(elements))
	n = min(n, size)
	p.w[next] -= min(p.w[next], n)
	for i := uint64(0); i < size-n; i++ {
		elements[i].swap(p, elements[i+n])
	}
	for _, e := range elements[size-n:] {
		e.markInvalid(p)
	}
}

// clear makes all fields zero; the variable-length field keeps its width.
func (h *header) clear(p *State) {
	bits := h.varBits(p)
	clear(p.w[h.base : h.base+h.typ.size])
	if h.typ.varLen >= 0 {
		p.w[h.base+h.typ.fields[h.typ.varLen].lenOff()] = uint64(bits)
	}
}

// write appends the field from the vector w.
func (f field) write(b *num.BitWriter, w []uint64) {
	switch {
	case f.varLen:
		b.PutWords(w[f.off:], int(w[f.lenOff()]))
	case f.width <= num.MaxPut:
		b.Put(w[f.off]&num.Mask64(f.width), f.width)
	default:
		b.PutWords(w[f.off:], f.width)
	}
}

// write appends the header's fields.
func (h *header) write(b *num.BitWriter, p *State) {
	for _, f := range h.typ.fields {
		f.at(h.base).write(b, p.w)
	}
}

// like reports whether two unions have members of the same types.
func (u *union) like(o *union) bool {
	if len(u.members) != len(o.members) {
		return false
	}
	for i, m := range u.members {
		if m.typ != o.members[i].typ {
			return false
		}
	}
	return true
}

func (l *Linker) validHeader(e *bmv2.Expr) (test, error) {
	r, err := l.header(e)
	if err != nil {
		return nil, err
	}
	get := r.get()
	return func(p *State) bool {
		h := get(p)
		return h != nil && h.isValid(p)
	}, nil
}

func (l *Linker) headerEquality(e *bmv2.Expr) (test, error) {
	a, err := l.header(e.Left)
	if err != nil {
		return nil, err
	}
	b, err := l.header(e.Right)
	if err != nil {
		return nil, err
	}
	f, g := a.get(), b.get()
	return func(p *State) bool {
		x, y := f(p), g(p)
		return x != nil && y != nil && x.equal(p, y)
	}, nil
}

func (l *Linker) unionEquality(e *bmv2.Expr) (test, error) {
	a, err := l.union(e.Left)
	if err != nil {
		return nil, err
	}
	b, err := l.union(e.Right)
	if err != nil {
		return nil, err
	}
	f, g := a.get(), b.get()
	return func(p *State) bool {
		x, y := f(p), g(p)
		return x != nil && y != nil && x.equal(p, y)
	}, nil
}
