package p4rt

import (
	"math/big"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc/codes"
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
	words, err := r.data.parse(m.GetData())
	if err != nil {
		return prefixed(err, "register %s", r.name)
	}
	if j != nil {
		before, err := p.cells(r)
		p.must(err)
		n := cellWords(r)
		j.add(func() {
			for i := from; i < to; i++ {
				p.must(p.sw.RegisterWrite(r.name, i, bigOf(before[i*n:(i+1)*n])))
			}
		})
	}
	p.must(p.sw.RegisterWriteRange(r.name, from, to, bigOf(words)))
	return nil
}

// cellWords is the number of words of a cell.
func cellWords(r *registerInfo) int { return max(1, (r.data.width+63)/64) }

// cells reads a register as it is at one moment, a cell in as many words as it
// takes.
func (p *pipeline) cells(r *registerInfo) ([]uint64, error) {
	n := cellWords(r)
	if n == 1 {
		return p.sw.RegisterCells(r.name, nil)
	}
	list, err := p.sw.RegisterReadAll(r.name)
	if err != nil {
		return nil, err
	}
	words := make([]uint64, 0, n*len(list))
	for _, v := range list {
		words = append(words, toWords(v.Bytes(), n)...)
	}
	return words, nil
}

func bigOf(words []uint64) *big.Int {
	return new(big.Int).SetBytes(wordsToBytes(words, 64*len(words)))
}

// A registerCell is the message for one cell with all its parts, so that a
// whole array of them is one allocation.
type registerCell struct {
	entity p4v1.Entity
	kind   p4v1.Entity_RegisterEntry
	entry  p4v1.RegisterEntry
	index  p4v1.Index
	data   p4v1.P4Data
	bits   p4v1.P4Data_Bitstring
	bytes  [8]byte
}

// readRegister sends the cells from ≤ i < to.
func (p *pipeline) readRegister(out *answer, id uint32, index *p4v1.Index) error {
	r := p.info.registers[id]
	if r == nil {
		return failf(codes.InvalidArgument, "there is no register %#x", id)
	}
	from, to, err := span(index, r.size, "register "+r.name)
	if err != nil {
		return err
	}
	words, err := p.cells(r)
	if err != nil {
		return failf(codes.Internal, "%v", err)
	}
	if r.data.form != bitForm || r.data.width > 64 {
		p.addCells(out, id, r, words, from, to)
		return nil
	}
	slab := make([]registerCell, to-from)
	for i := range slab {
		c := &slab[i]
		c.bits.Bitstring = c.put(words[from+i])
		c.data.Data = &c.bits
		c.index.Index = int64(from + i)
		c.entry.RegisterId, c.entry.Index, c.entry.Data = id, &c.index, &c.data
		c.kind.RegisterEntry = &c.entry
		c.entity.Entity = &c.kind
		out.add(&c.entity)
	}
	return nil
}

// put writes v as a canonical byte string into the cell's own room.
func (c *registerCell) put(v uint64) []byte {
	at := len(c.bytes)
	for {
		at--
		c.bytes[at] = byte(v)
		if v >>= 8; v == 0 {
			return c.bytes[at:]
		}
	}
}

// addCells is the general form, for cells that are wide or signed.
func (p *pipeline) addCells(out *answer, id uint32, r *registerInfo, words []uint64, from, to int) {
	n := cellWords(r)
	for i := from; i < to; i++ {
		out.add(&p4v1.Entity{Entity: &p4v1.Entity_RegisterEntry{RegisterEntry: &p4v1.RegisterEntry{
			RegisterId: id, Index: &p4v1.Index{Index: int64(i)}, Data: r.data.number(words[i*n : (i+1)*n]),
		}}})
	}
}
