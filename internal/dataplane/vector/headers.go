package vector

import (
	"slices"

	"github.com/p4lb/p4lb/internal/bmv2"
	"github.com/p4lb/p4lb/internal/dataplane/num"
)

// MarkValid makes h valid and the other members of its union invalid.
func (h *Header) MarkValid(p *State) {
	if h.Union != nil {
		for _, m := range h.Union.Members {
			p.W[m.Base] = 0
		}
	}
	p.W[h.Base] = 1
}

// MarkInvalid makes h invalid.
func (h *Header) MarkInvalid(p *State) { p.W[h.Base] = 0 }

// IsValid reports whether a header is valid; metadata always is.
func (h *Header) IsValid(p *State) bool { return h.Metadata || p.W[h.Base] != 0 }

// varBits returns the current width of the variable-length field.
func (h *Header) varBits(p *State) int {
	if h.Type.VarLen < 0 {
		return 0
	}
	return int(p.W[h.Base+h.Type.Fields[h.Type.VarLen].LenOff()])
}

// Bytes returns the size of the header in a packet.
func (h *Header) Bytes(p *State) int { return (h.Type.Bits + h.varBits(p)) / 8 }

// Assign copies src to dst; an invalid source only makes the destination
// invalid.
func (dst *Header) Assign(p *State, src *Header) {
	if !src.IsValid(p) {
		dst.MarkInvalid(p)
		return
	}
	dst.MarkValid(p)
	copy(p.W[dst.Base+1:dst.Base+dst.Type.Size], p.W[src.Base+1:src.Base+src.Type.Size])
}

// Swap exchanges the values of two headers, valid or not.
func (h *Header) Swap(p *State, other *Header) {
	for i := range h.Type.Size {
		p.W[h.Base+i], p.W[other.Base+i] = p.W[other.Base+i], p.W[h.Base+i]
	}
}

func (h *Header) equal(p *State, other *Header) bool {
	return h.Type == other.Type && h.IsValid(p) && other.IsValid(p) &&
		slices.Equal(p.W[h.Base+1:h.Base+h.Type.Size], p.W[other.Base+1:other.Base+h.Type.Size])
}

// validMember returns the index of the valid member of u, or -1.
func (u *union) validMember(p *State) int {
	for i, m := range u.Members {
		if p.W[m.Base] != 0 {
			return i
		}
	}
	return -1
}

// Assign copies src member by member.
func (u *union) Assign(p *State, src *union) {
	for i, m := range u.Members {
		m.Assign(p, src.Members[i])
	}
}

// Swap exchanges the values of two unions.
func (u *union) Swap(p *State, other *union) {
	for i, m := range u.Members {
		m.Swap(p, other.Members[i])
	}
}

// MarkInvalid does nothing: in BMv2 a push onto or a pop from a stack of unions
// moves elements without clearing the freed ones.
func (u *union) MarkInvalid(*State) {}

func (u *union) equal(p *State, other *union) bool {
	i := u.validMember(p)
	return i >= 0 && i == other.validMember(p) && u.Members[i].equal(p, other.Members[i])
}

// shifted is an element of a stack, for push and pop.
type shifted[T any] interface {
	Swap(p *State, other T)
	MarkInvalid(p *State)
}

// PushFront moves the elements of a stack up by n places; the first n become
// invalid.
func PushFront[T shifted[T]](p *State, elements []T, next int, n uint64) {
	size := uint64(len(elements))
	n = min(n, size)
	p.W[next] = min(size, p.W[next]+n)
	for i := size; i > n; i-- {
		elements[i-1].Swap(p, elements[i-1-n])
	}
	for _, e := range elements[:n] {
		e.MarkInvalid(p)
	}
}

// PopFront moves the elements down by n places; the last n become invalid.
func PopFront[T shifted[T]](p *State, elements []T, next int, n uint64) {
	size := uint64(len(elements))
	n = min(n, size)
	p.W[next] -= min(p.W[next], n)
	for i := uint64(0); i < size-n; i++ {
		elements[i].Swap(p, elements[i+n])
	}
	for _, e := range elements[size-n:] {
		e.MarkInvalid(p)
	}
}

// Clear sets all fields to zero; the variable-length field keeps its width.
func (h *Header) Clear(p *State) {
	bits := h.varBits(p)
	clear(p.W[h.Base : h.Base+h.Type.Size])
	if h.Type.VarLen >= 0 {
		p.W[h.Base+h.Type.Fields[h.Type.VarLen].LenOff()] = uint64(bits)
	}
}

// Write appends the field of the vector w.
func (f Field) Write(b *num.BitWriter, w []uint64) {
	switch {
	case f.VarLen:
		b.PutWords(w[f.Off:], int(w[f.LenOff()]))
	case f.Width <= num.MaxPut:
		b.Put(w[f.Off]&num.Mask64(f.Width), f.Width)
	default:
		b.PutWords(w[f.Off:], f.Width)
	}
}

// Write appends the header's fields.
func (h *Header) Write(b *num.BitWriter, p *State) {
	for _, f := range h.Type.Fields {
		f.at(h.Base).Write(b, p.W)
	}
}

// Like reports whether two unions have members of the same types.
func (u *union) Like(o *union) bool {
	return slices.EqualFunc(u.Members, o.Members, func(a, b *Header) bool { return a.Type == b.Type })
}

func (l *Linker) headerEquality(e *bmv2.Expr) (Test, error) {
	a, b, err := Both(l.Header, e.Left, e.Right)
	if err != nil {
		return nil, err
	}
	f, g := a.Get(), b.Get()
	return func(p *State) bool {
		x, y := f(p), g(p)
		return x != nil && y != nil && x.equal(p, y)
	}, nil
}

func (l *Linker) unionEquality(e *bmv2.Expr) (Test, error) {
	a, b, err := Both(l.Union, e.Left, e.Right)
	if err != nil {
		return nil, err
	}
	f, g := a.Get(), b.Get()
	return func(p *State) bool {
		x, y := f(p), g(p)
		return x != nil && y != nil && x.equal(p, y)
	}, nil
}
