package p4rt

import (
	"math/big"
	"math/bits"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"github.com/p4lb/p4lb/dataplane/num"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/encoding/protowire"
)

func (p *pipeline) writeRegister(j *journal, typ p4v1.Update_Type, m *p4v1.RegisterEntry) error {
	r := p.info.registers[m.GetRegisterId()]
	if r == nil {
		return failf(codes.InvalidArgument, "there is no register %#x", m.GetRegisterId())
	}
	// An example of the specification inserts a cell.
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
		before, err := p.sw.RegisterRange(r.name, from, to, nil)
		p.must(err)
		n := cellWords(r)
		j.add(func() {
			for i := range to - from {
				p.must(p.sw.RegisterWrite(r.name, from+i, bigOf(before[i*n:(i+1)*n])))
			}
		})
	}
	p.must(p.sw.RegisterWriteRange(r.name, from, to, bigOf(words)))
	return nil
}

// cellWords is the number of words of a cell.
func cellWords(r *registerInfo) int { return max(1, (r.width()+63)/64) }

func bigOf(words []uint64) *big.Int {
	return new(big.Int).SetBytes(num.BytesOf(words, 64*len(words)))
}

// readRegister plans the cells from ≤ i < to.
func (p *pipeline) readRegister(out *plan, id uint32, index *p4v1.Index) error {
	r := p.info.registers[id]
	if r == nil {
		return failf(codes.InvalidArgument, "there is no register %#x", id)
	}
	from, to, err := span(index, r.size, "register "+r.name)
	if err != nil {
		return err
	}
	add := addCells
	if r.data.form == bitForm && r.width() <= 64 {
		add = addSmallCells
	}
	out.inPieces(from, to, func(a *answer, from, to int) error {
		words, err := p.sw.RegisterRange(r.name, from, to, nil)
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

// The tags in the encoding of a ReadResponse with a RegisterEntry: the numbers
// of the fields and how each is written.
const (
	registerEntryTag = 11<<3 | byte(protowire.BytesType)
	registerIDTag    = 1<<3 | byte(protowire.VarintType)
	indexTag         = 2<<3 | byte(protowire.BytesType)
	indexValueTag    = 1<<3 | byte(protowire.VarintType)
	dataTag          = 3<<3 | byte(protowire.BytesType)
	bitstringTag     = 1<<3 | byte(protowire.BytesType)
)

// cellSize is the most that appendCell appends.
const cellSize = 48

// appendCell appends an unsigned cell of at most 64 bits as an entity of a
// ReadResponse. A register has as many of them as cells, each of five nested
// messages; to build and to encode them would be nearly all that a read costs
// the server. No length is above 127, so each takes one byte.
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

// addCells is the general form, for cells that are wide, signed or structs.
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
