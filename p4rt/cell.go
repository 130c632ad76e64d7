package p4rt

import (
	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc/codes"
)

// A cell of a register may be a struct, as those that Tofino's stateful ALUs
// access at once are. The data plane has it as one number, the first member in
// the most significant bits.

// width is that of a cell.
func (r *registerInfo) width() int { return r.data.bits() }

// bits is the width of all numbers in a value.
func (t *dataType) bits() int {
	n := t.width
	for _, m := range t.members {
		n += m.bits()
	}
	return n
}

// message is a cell, given in words, as a message.
func (r *registerInfo) message(words []uint64) *p4v1.P4Data {
	if r.data.scalar() {
		return r.data.number(words)
	}
	at := r.width()
	return r.data.build(func(leaf *dataType) []uint64 {
		at -= leaf.width
		return bitsAt(words, at, leaf.width)
	})
}

// parse reads a cell from a message.
func (r *registerInfo) parse(d *p4v1.P4Data) ([]uint64, error) {
	if r.data.scalar() {
		return r.data.parse(d)
	}
	words, at := make([]uint64, cellWords(r)), r.width()
	err := r.data.each(d, func(leaf *dataType, part *p4v1.P4Data) error {
		v, err := leaf.parse(part)
		at -= leaf.width
		putBitsAt(words, at, v)
		return err
	})
	return words, err
}

// each calls f for the numbers of a value, in order.
func (t *dataType) each(d *p4v1.P4Data, f func(leaf *dataType, part *p4v1.P4Data) error) error {
	if t.scalar() {
		return f(t, d)
	}
	var parts []*p4v1.P4Data
	switch v := d.GetData().(type) {
	case *p4v1.P4Data_Struct:
		parts = v.Struct.GetMembers()
	case *p4v1.P4Data_Tuple:
		parts = v.Tuple.GetMembers()
	}
	if len(parts) != len(t.members) {
		return failf(codes.InvalidArgument, "the data is %T with %d members, want a struct with %d", d.GetData(), len(parts), len(t.members))
	}
	for i, m := range t.members {
		if err := m.each(parts[i], f); err != nil {
			return err
		}
	}
	return nil
}

// bitsAt are so many bits of a number from one on, counted from the least
// significant.
func bitsAt(words []uint64, from, width int) []uint64 {
	out := make([]uint64, max(1, (width+63)/64))
	for i := range out {
		at := from + 64*i
		out[i] = words[at/64] >> (at % 64)
		if at%64 != 0 && at/64+1 < len(words) {
			out[i] |= words[at/64+1] << (64 - at%64)
		}
	}
	if rest := width % 64; rest != 0 {
		out[len(out)-1] &= 1<<rest - 1
	}
	return out
}

// putBitsAt adds a number to one whose bits from there on are zero.
func putBitsAt(words []uint64, from int, v []uint64) {
	for i, w := range v {
		at := from + 64*i
		if at/64 < len(words) {
			words[at/64] |= w << (at % 64)
		}
		if at%64 != 0 && at/64+1 < len(words) {
			words[at/64+1] |= w >> (64 - at%64)
		}
	}
}
