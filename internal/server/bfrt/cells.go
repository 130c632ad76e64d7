package server

import (
	"maps"
	"math/big"
	"slices"

	"github.com/p4lb/p4lb/internal/bfrt/wire"
	"github.com/p4lb/p4lb/internal/bmv2"
	"github.com/p4lb/p4lb/internal/dataplane"
	"github.com/p4lb/p4lb/internal/dataplane/num"
)

// A registerCell describes a cell of one or two numbers. The data plane keeps the
// first number in the upper half.
type registerCell struct {
	name    string
	parts   []*datum
	size    int
	width   int // of a part of the cell
	initial *big.Int
}

func (c *registerCell) measure(p *program) error {
	for _, a := range p.config.RegisterArrays {
		if a.Name == c.name {
			c.size, c.width, c.initial = a.Size, a.Bitwidth/len(c.parts), new(big.Int)
			if a.Initial != "" {
				c.initial, _ = bmv2.ParseHex(a.Initial)
			}
			return nil
		}
	}
	return failf(notFound, "the program has no register %s", c.name)
}

// shift returns the position of a part's lowest bit in the cell.
func (c *registerCell) shift(i int) uint { return uint(c.width * (len(c.parts) - 1 - i)) }

func (c *registerCell) set(sw *dataplane.Switch, index int, part *datum, b []byte) error {
	v, err := sw.Registers().Read(c.name, index)
	if err != nil {
		return err
	}
	for i, p := range c.parts {
		if p != part {
			continue
		}
		mask := new(big.Int).Lsh(num.Most(c.width), c.shift(i))
		v.AndNot(v, mask)
		v.Or(v, new(big.Int).And(mask, new(big.Int).Lsh(new(big.Int).SetBytes(b), c.shift(i))))
	}
	return sw.Registers().Write(c.name, index, v)
}

func (c *registerCell) reset(sw *dataplane.Switch, index int) {
	sw.Registers().Write(c.name, index, c.initial)
}

func (c *registerCell) tell(sw *dataplane.Switch, index int, out *wire.TableData, want *filter) {
	words, err := sw.Registers().Range(c.name, index, index+1, nil)
	if err != nil {
		return
	}
	c.give(words, out, want)
}

// give adds the parts of a cell, given as words, to the data of an entry.
func (c *registerCell) give(words []uint64, out *wire.TableData, want *filter) {
	for i, p := range c.parts {
		if want.has(p.id) {
			out.Fields = append(out.Fields, p.number(c.part(words, i)))
		}
	}
}

// part returns a part of a cell, 0 if it is wider than 64 bits.
func (c *registerCell) part(words []uint64, i int) uint64 {
	if c.width > 64 {
		return 0
	}
	shift := c.shift(i)
	v := words[shift/64] >> (shift % 64)
	if shift%64 != 0 && int(shift/64)+1 < len(words) {
		v |= words[shift/64+1] << (64 - shift%64)
	}
	if c.width < 64 {
		v &= 1<<c.width - 1
	}
	return v
}

// cellOf returns the index in an entry's key or handle, below size.
func (t *table) cellOf(e *wire.TableEntry, size int) (int, error) {
	if h, ok := e.GetValue().(*wire.TableEntry_HandleId); ok {
		if h.HandleId >= uint32(size) {
			return 0, failf(notFound, "there is no cell %d", h.HandleId)
		}
		return int(h.HandleId), nil
	}
	return indexOf(t.keys, e.GetKey(), size)
}

// span returns the cells from ≤ i < to that an entry selects: one, or all.
func (t *table) span(e *wire.TableEntry, size int) (from, to int, err error) {
	if e.GetValue() == nil {
		return 0, size, nil
	}
	from, err = t.cellOf(e, size)
	return from, from + 1, err
}

// A registerTable is the table of a register. A read of all pipes returns one value
// per pipe, in order.
type registerTable struct {
	*table
	cell registerCell
	// parts are sets of pipes with common writes. With nil, a write to one pipe
	// affects only that pipe.
	parts [][]int
}

func (t *registerTable) write(r *request, kind wire.Update_Type, e *wire.TableEntry) error {
	pipes, err := r.pipesOf(t.program)
	if err != nil {
		return err
	}
	for _, part := range t.parts {
		if !r.all() && slices.Contains(part, pipes[0]) {
			pipes = part
			break
		}
	}
	if kind == wire.Update_DELETE || kind == wire.Update_RESET {
		return t.clear(r, pipes, e)
	}
	if kind == wire.Update_MODIFY_INC {
		return failf(unimplemented, "register cells cannot be incremented")
	}
	d, err := t.data(e.GetData(), nil)
	if err != nil {
		return err
	}
	index, err := t.cellOf(e, t.cell.size)
	if err != nil {
		return err
	}
	for _, pipe := range pipes {
		sw := t.sw(pipe)
		before, err := sw.Registers().Read(t.cell.name, index)
		if err != nil {
			return err
		}
		for _, x := range d.rest {
			if err := t.cell.set(sw, index, t.fields[x.GetFieldId()], x.GetStream()); err != nil {
				return err
			}
		}
		r.done(func() { sw.Registers().Write(t.cell.name, index, before) })
	}
	return nil
}

// clear sets one cell or all cells to the initial value.
func (t *registerTable) clear(r *request, pipes []int, e *wire.TableEntry) error {
	from, to, err := t.span(e, t.cell.size)
	if err != nil {
		return err
	}
	for _, pipe := range pipes {
		sw := t.sw(pipe)
		if r.undo != nil {
			for i := from; i < to; i++ {
				v, err := sw.Registers().Read(t.cell.name, i)
				if err != nil {
					return err
				}
				r.done(func() { sw.Registers().Write(t.cell.name, i, v) })
			}
		}
		if err := sw.Registers().WriteRange(t.cell.name, from, to, t.cell.initial); err != nil {
			return err
		}
	}
	return nil
}

func (t *registerTable) read(r *request, e *wire.TableEntry) error {
	pipes, want, err := t.asked(r, e)
	if err != nil {
		return err
	}
	from, to, err := t.span(e, t.cell.size)
	if err != nil {
		return err
	}
	if !r.flags.GetKeyOnly() && to-from > 1 {
		return t.encode(r, want, pipes, from, to)
	}
	for i := from; i < to; i++ {
		err := t.give(r, i-from, uint64(i), func() (*wire.TableData, error) {
			d := &wire.TableData{Fields: make([]*wire.DataField, 0, len(pipes)*len(t.cell.parts))}
			for _, pipe := range pipes {
				words, err := t.sw(pipe).Registers().Range(t.cell.name, i, i+1, nil)
				if err != nil {
					return nil, err
				}
				t.cell.give(words, d, want)
			}
			return d, nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// keyAt returns the key with one number.
func (t *table) keyAt(n uint64) *wire.TableKey {
	return &wire.TableKey{Fields: []*wire.KeyField{t.keys[0].value(n)}}
}

// number returns the number in an entry's key or handle, which are equal.
func (t *table) number(e *wire.TableEntry) (uint32, error) {
	if h, ok := e.GetValue().(*wire.TableEntry_HandleId); ok {
		return h.HandleId, nil
	}
	i, err := indexOf(t.keys, e.GetKey(), 1<<32)
	return uint32(i), err
}

// give returns the i-th entry of a walk, with its data unless the client requests
// keys only.
func (t *table) give(r *request, i int, number uint64, data func() (*wire.TableData, error)) (err error) {
	x := t.entry(r, t.keys[0].value(number))
	if r.flags.GetKeyOnly() {
		x.EntryTgt = r.target
	} else if x.Data, err = data(); err != nil {
		return err
	}
	return r.given(i, x)
}

// giveOf returns the row with the requested number, or all rows. what names a row in
// errors.
func giveOf[V any](t *table, r *request, e *wire.TableEntry, rows map[uint32]V, what string, data func(id uint32, row V) (*wire.TableData, error)) error {
	ids := slices.Sorted(maps.Keys(rows))
	if e.GetValue() != nil {
		id, err := t.number(e)
		if err != nil {
			return err
		}
		if _, ok := rows[id]; !ok {
			return failf(notFound, "there is no %s %d", what, id)
		}
		ids = []uint32{id}
	}
	for i, id := range ids {
		row, ok := rows[id]
		if !ok {
			continue // deleted meanwhile
		}
		if err := t.give(r, i, uint64(id), func() (*wire.TableData, error) { return data(id, row) }); err != nil {
			return err
		}
	}
	return nil
}

// entry returns an entry with a key, for an answer.
func (t *table) entry(r *request, key *wire.KeyField) *wire.TableEntry {
	return &wire.TableEntry{TableId: t.schema.ID, TableFlags: r.flags, Value: &wire.TableEntry_Key{Key: &wire.TableKey{Fields: []*wire.KeyField{key}}}}
}

// encode returns many cells as encoded entities. Their bytes differ only in their
// numbers, of which the first is the key.
func (t *registerTable) encode(r *request, want *filter, pipes []int, from, to int) error {
	sizes := []int{(t.keys[0].width + 7) / 8}
	type source struct{ pipe, part int }
	var sources []source
	for pipe := range pipes {
		for i, p := range t.cell.parts {
			if want.has(p.id) {
				sizes, sources = append(sizes, (p.width+7)/8), append(sources, source{pipe, i})
			}
		}
	}
	p := newPattern(sizes, func(numbers [][]byte) *wire.Entity {
		x := t.entry(r, t.keys[0].bytes(numbers[0]))
		x.Data = &wire.TableData{}
		for i, from := range sources {
			x.Data.Fields = append(x.Data.Fields, &wire.DataField{FieldId: t.cell.parts[from.part].id, Value: &wire.DataField_Stream{Stream: numbers[i+1]}})
		}
		return &wire.Entity{Entity: &wire.Entity_TableEntry{TableEntry: x}}
	})
	words := make([][]uint64, len(pipes))
	for size := max(1, pageBytes/len(p.text)); from < to; from += size {
		end := min(to, from+size)
		for i, pipe := range pipes {
			var err error
			if words[i], err = t.sw(pipe).Registers().Range(t.cell.name, from, end, words[i][:0]); err != nil {
				return err
			}
		}
		n := len(words[0]) / (end - from) // words per cell
		page := make([]byte, 0, (end-from)*len(p.text))
		for cell := range end - from {
			page = p.add(page, func(i int) uint64 {
				if i == 0 {
					return uint64(from + cell)
				}
				s := sources[i-1]
				return t.cell.part(words[s.pipe][cell*n:(cell+1)*n], s.part)
			})
		}
		r.pages(page)
		if err := r.rest(); err != nil {
			return err
		}
	}
	return nil
}

func (t *registerTable) handle(_ *request, k *wire.TableKey) (uint32, error) {
	i, err := indexOf(t.keys, k, t.cell.size)
	return uint32(i), err
}

// A counterTable is an array of counters. A read of all pipes returns sums. A write
// to all pipes sets the first pipe to the value and the others to 0, so that the sum
// is the value.
type counterTable struct {
	*table
	name           string
	size           int
	bytes, packets *datum
	known          map[[2]int]dataplane.Count // by pipe and index, as last synced
}

// count returns a counter: from the chip if fresh, else as last synced.
func (t *counterTable) count(pipe, index int, fresh bool) dataplane.Count {
	at := [2]int{pipe, index}
	if fresh {
		t.known[at], _ = t.sw(pipe).Counters().Read(t.name, index)
	}
	return t.known[at]
}

// sync copies all counters from the chip.
func (t *counterTable) sync() {
	for _, pipe := range t.program.pipes {
		for i := range t.size {
			t.count(pipe, i, true)
		}
	}
}

func (t *counterTable) write(r *request, kind wire.Update_Type, e *wire.TableEntry) error {
	pipes, err := r.pipesOf(t.program)
	if err != nil {
		return err
	}
	from, to, err := t.span(e, t.size)
	if err != nil {
		return err
	}
	var v dataplane.Count
	switch kind {
	case wire.Update_DELETE, wire.Update_RESET:
	case wire.Update_MODIFY_INC:
		return failf(unimplemented, "counters cannot be incremented")
	default:
		if to-from != 1 {
			return invalidf("the key lacks %s", t.keys[0].name)
		}
		d, err := t.data(e.GetData(), nil)
		if err != nil {
			return err
		}
		v = t.sum(pipes, from, true)
		for _, x := range d.rest {
			if t.fields[x.GetFieldId()] == t.bytes {
				v.Bytes = uintOf(x.GetStream())
			} else {
				v.Packets = uintOf(x.GetStream())
			}
		}
	}
	for i := from; i < to; i++ {
		for _, pipe := range pipes {
			sw := t.sw(pipe)
			before, err := sw.Counters().Read(t.name, i)
			if err != nil {
				return err
			}
			if err := sw.Counters().Write(t.name, i, v); err != nil {
				return err
			}
			at := [2]int{pipe, i}
			was := t.known[at]
			t.known[at] = v
			if r.undo != nil {
				r.done(func() {
					sw.Counters().Write(t.name, i, before)
					t.known[at] = was
				})
			}
			v = dataplane.Count{} // in the other pipes
		}
	}
	return nil
}

// tellCount adds a count to the fields for it. A nil field is left out.
func tellCount(out *wire.TableData, bytes, packets *datum, c dataplane.Count, want *filter) {
	if bytes != nil && want.has(bytes.id) {
		out.Fields = append(out.Fields, bytes.number(c.Bytes))
	}
	if packets != nil && want.has(packets.id) {
		out.Fields = append(out.Fields, packets.number(c.Packets))
	}
}

func (t *counterTable) sum(pipes []int, i int, fresh bool) dataplane.Count {
	var sum dataplane.Count
	for _, pipe := range pipes {
		c := t.count(pipe, i, fresh)
		sum.Bytes += c.Bytes
		sum.Packets += c.Packets
	}
	return sum
}

func (t *counterTable) read(r *request, e *wire.TableEntry) error {
	pipes, want, err := t.asked(r, e)
	if err != nil {
		return err
	}
	from, to, err := t.span(e, t.size)
	if err != nil {
		return err
	}
	for i := from; i < to; i++ {
		err := t.give(r, i-from, uint64(i), func() (*wire.TableData, error) {
			d := &wire.TableData{}
			tellCount(d, t.bytes, t.packets, t.sum(pipes, i, r.flags.GetFromHw()), want)
			return d, nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (t *counterTable) handle(_ *request, k *wire.TableKey) (uint32, error) {
	i, err := indexOf(t.keys, k, t.size)
	return uint32(i), err
}
