package p4rt

import (
	"math/big"
	"math/bits"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/p4lb/p4lb/internal/dataplane/num"
)

func (p *pipeline) writeRegister(j *journal, typ p4v1.Update_Type, m *p4v1.RegisterEntry) error {
	r := p.info.registers[m.GetRegisterId()]
	if r == nil {
		return failf(codes.InvalidArgument, "there is no register %#x", m.GetRegisterId())
	}
	// INSERT is accepted, because an example of the specification inserts a
	// cell.
	if typ == p4v1.Update_DELETE {
		return failf(codes.InvalidArgument, "a register cannot be deleted")
	}
	from, to, err := span(m.GetIndex(), r.size, "register "+r.name)
	if err != nil {
		return err
	}
	words, err := r.parse(m.GetData())
	if err != nil {
		return prefixed(err, "register %s", r.name)
	}
	if j != nil {
		before, err := p.sw.Registers().Range(r.name, from, to, nil)
		p.must(err)
		n := cellWords(r)
		j.add(func() {
			for i := range to - from {
				p.must(p.sw.Registers().Write(r.name, from+i, bigOf(before[i*n:(i+1)*n])))
			}
		})
	}
	p.must(p.sw.Registers().WriteRange(r.name, from, to, bigOf(words)))
	return nil
}

// cellWords returns the number of words of a cell.
func cellWords(r *registerInfo) int { return max(1, (r.width()+63)/64) }

func bigOf(words []uint64) *big.Int {
	return new(big.Int).SetBytes(num.BytesOf(words, 64*len(words)))
}

// readRegister plans the cells selected by an index.
func (p *pipeline) readRegister(out *plan, id uint32, index *p4v1.Index) error {
	r := p.info.registers[id]
	from, to, err := span(index, r.size, "register "+r.name)
	if err != nil {
		return err
	}
	add := addCells
	if r.data.form == bitForm && r.width() <= 64 {
		add = addSmallCells
	}
	out.inPieces(from, to, func(a *answer, from, to int) error {
		words, err := p.sw.Registers().Range(r.name, from, to, nil)
		p.must(err)
		return add(a, id, r, words, from)
	})
	return nil
}

// addSmallCells adds unsigned cells of at most 64 bits.
func addSmallCells(a *answer, id uint32, r *registerInfo, words []uint64, from int) error {
	if a.stream == nil {
		return addCells(a, id, r, words, from)
	}
	for i, v := range words {
		if err := a.room(cellSize); err != nil {
			return err
		}
		if a.buf == nil {
			a.buf = make([]byte, 0, min((len(words)-i)*cellSize, maxAnswerSize))
		}
		a.buf = appendCell(a.buf, id, from+i, v)
	}
	return nil
}

// The tags, field number and wire type, of a ReadResponse with a RegisterEntry.
const (
	registerEntryTag = 11<<3 | byte(protowire.BytesType)
	registerIDTag    = 1<<3 | byte(protowire.VarintType)
	indexTag         = 2<<3 | byte(protowire.BytesType)
	indexValueTag    = 1<<3 | byte(protowire.VarintType)
	dataTag          = 3<<3 | byte(protowire.BytesType)
	bitstringTag     = 1<<3 | byte(protowire.BytesType)
)

// cellSize is the maximum number of bytes that appendCell appends.
const cellSize = 48

// appendCell appends an unsigned cell of at most 64 bits as an entity of a
// ReadResponse. Each cell consists of five nested messages, and building and
// encoding them would dominate the cost of reading a register. No length is
// above 127, so each takes one byte.
func appendCell(b []byte, id uint32, index int, v uint64) []byte {
	n := max(1, (bits.Len64(v)+7)/8)
	idSize, indexSize := 1+protowire.SizeVarint(uint64(id)), 0
	if index > 0 {
		indexSize = 1 + protowire.SizeVarint(uint64(index))
	}
	entry := idSize + 2 + indexSize + 2 + 2 + n
	b = append(b, entityTag, byte(2+entry), registerEntryTag, byte(entry), registerIDTag)
	b = protowire.AppendVarint(b, uint64(id))
	b = append(b, indexTag, byte(indexSize))
	if index > 0 {
		b = protowire.AppendVarint(append(b, indexValueTag), uint64(index))
	}
	b = append(b, dataTag, byte(2+n), bitstringTag, byte(n))
	for n--; n >= 0; n-- {
		b = append(b, byte(v>>(8*n)))
	}
	return b
}

// addCells adds cells of any type: wide, signed or structs.
func addCells(a *answer, id uint32, r *registerInfo, words []uint64, from int) error {
	n := cellWords(r)
	for i := range len(words) / n {
		if err := a.add(&p4v1.Entity{Entity: &p4v1.Entity_RegisterEntry{RegisterEntry: &p4v1.RegisterEntry{
			RegisterId: id, Index: &p4v1.Index{Index: int64(from + i)}, Data: r.message(words[i*n : (i+1)*n]),
		}}}); err != nil {
			return err
		}
	}
	return nil
}

// A cell of a register may be a struct, like the pairs that Tofino's stateful
// ALUs access. The data plane stores it as one number with the first member in
// the most significant bits.

// message converts a cell to a message.
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
		return failf(codes.InvalidArgument, "the data is %s with %d members: want %s with %d", variant(d), len(parts), t.form, len(t.members))
	}
	for i, m := range t.members {
		if err := m.each(parts[i], f); err != nil {
			return err
		}
	}
	return nil
}

// bitsAt extracts width bits of a number, starting at bit from, where bit 0 is
// the least significant.
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

// putBitsAt inserts v at bit from, where words contains zeros.
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
