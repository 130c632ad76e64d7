package server

import (
	"cmp"
	"maps"
	"math/bits"
	"slices"
	"strings"

	"github.com/p4lb/p4lb/internal/bfrt"
	"github.com/p4lb/p4lb/internal/bfrt/wire"
	"github.com/p4lb/p4lb/internal/dataplane/hash"
	"github.com/p4lb/p4lb/internal/dataplane/num"
)

// A hashTable configures the algorithm or the input of a hash. It has only a default
// entry. An update replaces the whole configuration; missing fields get the defaults
// of the schema.
type hashTable struct {
	*recordTable
	tell func(row *record) // fills in the values that no client has set
}

// hash returns a table of a hash.
func (m *makers) hash(base *table, name string) (object, error) {
	rt := newRecords(base)
	if err := hashShape(rt); err != nil {
		return nil, err
	}
	name = name[:max(0, strings.LastIndexByte(name, '.'))]
	h := m.p.hashes[name]
	if h == nil {
		h = &hashing{p: m.p, name: name}
		m.p.hashes[name] = h
	}
	t := &hashTable{recordTable: rt}
	switch base.schema.Type {
	case "DynHashConfigure":
		if h.parts != nil {
			return nil, invalidf("another table of this kind already configures the hash %s", name)
		}
		h.setParts(base)
		if use, own, bits, err := m.anySwitch().Hashes().Info(name); err == nil && bits == h.bits {
			h.use, h.own = use, own
		}
		t.tell = func(row *record) { h.tellParts(base, row) }
		rt.apply = h.applied(func(row *record) (err error) {
			h.slices, err = h.configured(base, row)
			h.seed = nil // the drivers use the algorithm's seed
			return err
		})
	case "DynHashAlgorithm":
		for _, f := range rt.actions[bfrt.HashPredefined].params {
			f.choices = nil // the SDE accepts lower case too
		}
		t.tell = func(row *record) { h.tellAlgorithm(rt, row) }
		rt.apply = h.applied(func(row *record) error { return h.choose(rt, row) })
	default:
		return &hashCompute{base, h}, nil
	}
	return t, nil
}

// hashShape returns an error if a table of a hash lacks a field.
func hashShape(t *recordTable) error {
	params := func(action uint32, names ...string) error {
		a := t.actions[action]
		if a == nil {
			return invalidf("it has no action %d", action)
		}
		for _, name := range names {
			if !slices.ContainsFunc(a.params, func(d *datum) bool { return d.name == name }) {
				return invalidf("its action %s has no parameter %s", a.name, name)
			}
		}
		return nil
	}
	switch t.schema.Type {
	case "DynHashConfigure":
		for _, f := range t.order {
			for _, part := range []string{"order", "start_bit", "length"} {
				if f.part(part) == nil {
					return invalidf("its field %s has no part %s", f.name, part)
				}
			}
			if n := f.part("length").presetOf(); n < 1 || n > 1<<16 {
				return invalidf("its field %s has %d bits", f.name, n)
			}
		}
	case "DynHashAlgorithm":
		for _, name := range []string{"seed", "extend"} {
			if t.field(name) == nil {
				return invalidf("it has no field %s", name)
			}
		}
		return cmp.Or(
			params(bfrt.HashPredefined, "algorithm_name"),
			params(bfrt.HashUserDefined, "reverse", "polynomial", "init", "final_xor", "hash_bit_width"),
		)
	case "DynHashCompute":
		if len(t.order) != 1 {
			return invalidf("it has %d results", len(t.order))
		}
	}
	return nil
}

// applied returns a hook that reconfigures the hash in all pipes, or restores the
// previous state on an error.
func (h *hashing) applied(say func(*record) error) func(*request, *record, *record) error {
	return func(_ *request, _, after *record) error {
		if h.use == nil {
			return failf(unimplemented, "the hash %s cannot be changed: it copies bits, is @symmetric, or is never computed", h.name)
		}
		if after == nil {
			after = &record{}
		}
		was := *h
		err := say(after)
		if err != nil {
			*h = was
			return err
		}
		return h.set()
	}
}

func (t *hashTable) write(r *request, kind wire.Update_Type, e *wire.TableEntry) error {
	next := &record{fields: map[uint32]*wire.DataField{}}
	switch kind {
	case wire.Update_DELETE, wire.Update_RESET:
		return t.remove(r, "", t.rows[""])
	case wire.Update_INSERT, wire.Update_MODIFY, wire.Update_INSERT_OR_MODIFY:
	default:
		return failf(unimplemented, "the table does not support %v", kind)
	}
	if err := t.merge(next, e.GetData()); err != nil {
		return err
	}
	return t.put(r, "", next)
}

func (t *hashTable) read(r *request, e *wire.TableEntry) error {
	row := &record{fields: map[uint32]*wire.DataField{}}
	if now := t.rows[""]; now != nil {
		row = now.clone()
	}
	t.tell(row)
	return t.give(r, row, t.wanted(e.GetData()), true)
}

// tellParts adds the use of the input to a row.
func (h *hashing) tellParts(t *table, row *record) {
	asSaid := len(row.fields) == 0
	for i, f := range t.order {
		if row.fields[f.id] != nil {
			continue
		}
		order := 0
		if asSaid {
			order = i + 1
		}
		one := &wire.DataField_ContainerArray_Container{Val: []*wire.DataField{
			f.part("order").number(uint64(order)), f.part("start_bit").number(0), f.part("length").preset,
		}}
		row.set(&wire.DataField{FieldId: f.id, Value: &wire.DataField_ContainerArrVal{
			ContainerArrVal: &wire.DataField_ContainerArray{Container: []*wire.DataField_ContainerArray_Container{one}},
		}})
	}
}

// tellAlgorithm adds the program's algorithm to a row without one, and the chip's
// seed.
func (h *hashing) tellAlgorithm(t *recordTable, row *record) {
	if h.use == nil {
		return
	}
	seed := t.field("seed")
	row.set(seed.number(h.matrix().Seed() & num.Mask64(seed.width)))
	if row.action != 0 {
		return
	}
	row.set(t.field("extend").flag(h.own.Extend))
	row.action = bfrt.HashPredefined
	name := "XOR"
	if h.own.CRC != nil {
		name = crcName(h.own.CRC)
	}
	if a := t.actions[row.action]; name != "" {
		row.set(a.params[0].text(name))
		return
	}
	row.action = bfrt.HashUserDefined
	c := h.own.CRC
	xor := c.XorOut
	if c.ReflectOut {
		xor = bits.Reverse64(xor) >> (64 - c.Width)
	}
	for _, d := range t.actions[row.action].params {
		switch d.name {
		case "reverse":
			row.set(d.flag(c.ReflectIn))
		case "polynomial":
			row.set(d.number(c.Poly))
		case "init":
			row.set(d.number(c.Init))
		case "final_xor":
			row.set(d.number(xor))
		case "hash_bit_width":
			row.set(d.number(uint64(c.Width)))
		}
	}
}

// crcName returns the first of the SDE's names for a CRC, "" if it has none.
func crcName(c *hash.Table) string {
	for _, name := range slices.Sorted(maps.Keys(hash.Named)) {
		if hash.Reflected(hash.Named[name]).CRC == c.CRC {
			return name
		}
	}
	return ""
}

// A hashCompute computes a hash for an input of a client.
type hashCompute struct {
	*table
	h *hashing
}

func (t *hashCompute) write(*request, wire.Update_Type, *wire.TableEntry) error {
	return failf(unimplemented, "the table is read only")
}

func (t *hashCompute) read(r *request, e *wire.TableEntry) error {
	if t.h.use == nil {
		return failf(unimplemented, "only the program computes the hash %s", t.h.name)
	}
	if err := known(t.keys, e.GetKey()); err != nil {
		return err
	}
	raw := num.BitWriter{}
	keys := t.keys
	for _, p := range t.h.parts {
		words := make([]uint64, num.Words(p.width))
		if p.constant != nil {
			words[0] = *p.constant
		} else {
			if len(keys) == 0 {
				return invalidf("the key of the table lacks an input field of the hash")
			}
			b, err := keys[0].exact(e.GetKey())
			switch {
			case err != nil:
				return err
			case b == nil:
				return invalidf("the key lacks %s", keys[0].name)
			}
			num.ReadBits(words, b, 8*len(b)-p.width, p.width)
			keys = keys[1:]
		}
		raw.PutWords(words, p.width)
	}
	v := t.h.matrix().Sum(raw.Finish())
	return r.out(&wire.Entity{Entity: &wire.Entity_TableEntry{TableEntry: &wire.TableEntry{
		TableId: t.schema.ID, Value: &wire.TableEntry_Key{Key: e.GetKey()}, TableFlags: r.flags,
		Data: &wire.TableData{Fields: []*wire.DataField{t.order[0].number(v)}},
	}}})
}
