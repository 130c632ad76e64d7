package server

import (
	"cmp"
	"maps"
	"math/big"
	"slices"

	"github.com/p4lb/p4lb/internal/bfrt/wire"
	"github.com/p4lb/p4lb/internal/dataplane"
	"github.com/p4lb/p4lb/internal/dataplane/num"
)

// A valueSet is the table of a parser's value set.
type valueSet struct {
	*table
	name  string
	scope scope
	rows  []map[string]*wire.TableKey // by pipe
	order []string
}

// member returns the values of a key's fields in a row, then their masks in a row. A
// missing field matches any value.
func (t *valueSet) member(k *wire.TableKey) (string, error) {
	if err := known(t.keys, k); err != nil {
		return "", err
	}
	value, mask := new(big.Int), new(big.Int)
	width := 0
	for i := range t.keys {
		f := &t.keys[i]
		value.Lsh(value, uint(f.width))
		mask.Lsh(mask, uint(f.width))
		width += f.width
		j := slices.IndexFunc(k.GetFields(), func(x *wire.KeyField) bool { return x.GetFieldId() == f.id })
		if j < 0 {
			continue
		}
		var v, m []byte
		switch x := k.GetFields()[j].GetMatchType().(type) {
		case *wire.KeyField_Exact_:
			v, m = x.Exact.GetValue(), full(num.Most(f.width).Bytes(), f.width)
		case *wire.KeyField_Ternary_:
			v, m = x.Ternary.GetValue(), x.Ternary.GetMask()
		default:
			return "", invalidf("key field %s wants a value and a mask", f.name)
		}
		for _, b := range [][]byte{v, m} {
			if err := checkBytes(f.name, b, f.width); err != nil {
				return "", err
			}
		}
		mask.Or(mask, new(big.Int).SetBytes(m))
		value.Or(value, new(big.Int).SetBytes(v)).And(value, mask)
	}
	return string(value.FillBytes(make([]byte, num.Bytes(width)))) + string(mask.FillBytes(make([]byte, num.Bytes(width)))), nil
}

func (t *valueSet) write(r *request, kind wire.Update_Type, e *wire.TableEntry) error {
	pipes, err := t.scope.of(r, t.program)
	if err != nil {
		return err
	}
	var id string
	if e.GetValue() != nil {
		if id, err = t.idOf(e); err != nil {
			return err
		}
	} else if kind != wire.Update_DELETE {
		return invalidf("the entry has neither key nor handle")
	}
	if id != "" {
		if err := t.scope.fits(r); err != nil {
			return err
		}
	}
	for _, pipe := range pipes {
		before := t.rows[pipe]
		next := maps.Clone(before)
		_, there := next[id]
		switch {
		case kind == wire.Update_DELETE && e.GetValue() == nil:
			clear(next)
		case kind == wire.Update_DELETE && !there:
			return failf(notFound, "the member does not exist")
		case kind == wire.Update_DELETE:
			delete(next, id)
		case kind == wire.Update_INSERT && there:
			return failf(alreadyExists, "the member already exists")
		case kind == wire.Update_INSERT && len(next) >= int(t.schema.Size):
			return failf(noSpace, "the table is full: it has %d members", t.schema.Size)
		case kind == wire.Update_INSERT:
			next[id] = e.GetKey()
		default:
			return failf(unimplemented, "members of value sets can only be added and deleted")
		}
		if err := t.put(pipe, next); err != nil {
			return err
		}
		r.done(func() { t.put(pipe, before) })
	}
	if id != "" && !slices.Contains(t.order, id) {
		t.order = append(t.order, id)
	}
	return nil
}

func (t *valueSet) put(pipe int, rows map[string]*wire.TableKey) error {
	var list []dataplane.SetMember
	for id := range rows {
		list = append(list, dataplane.SetMember{Value: []byte(id[:len(id)/2]), Mask: []byte(id[len(id)/2:])})
	}
	if err := t.sw(pipe).ValueSets().Set(t.name, list); err != nil {
		return err
	}
	t.rows[pipe] = rows
	return nil
}

func (t *valueSet) idOf(e *wire.TableEntry) (string, error) {
	if h, ok := e.GetValue().(*wire.TableEntry_HandleId); ok {
		if int(h.HandleId) >= len(t.order) {
			return "", failf(notFound, "there is no member %d", h.HandleId)
		}
		return t.order[h.HandleId], nil
	}
	return t.member(e.GetKey())
}

func (t *valueSet) read(r *request, e *wire.TableEntry) error {
	pipes, err := t.scope.of(r, t.program)
	if err != nil {
		return err
	}
	give := func(k *wire.TableKey) error {
		x := &wire.TableEntry{TableId: t.schema.ID, Value: &wire.TableEntry_Key{Key: k}, TableFlags: r.flags}
		if r.flags.GetKeyOnly() {
			x.EntryTgt = r.target
		} else {
			x.Data = &wire.TableData{}
		}
		return r.out(&wire.Entity{Entity: &wire.Entity_TableEntry{TableEntry: x}})
	}
	if e.GetValue() != nil {
		id, err := t.idOf(e)
		if err != nil {
			return err
		}
		for _, pipe := range pipes {
			if k := t.rows[pipe][id]; k != nil {
				return give(k)
			}
		}
		return failf(notFound, "the member does not exist")
	}
	for _, id := range t.order {
		for _, pipe := range pipes {
			if k := t.rows[pipe][id]; k != nil {
				if err := give(k); err != nil {
					return err
				}
				break
			}
		}
	}
	return nil
}

func (t *valueSet) usage(r *request) (uint32, error) {
	pipes, err := t.scope.of(r, t.program)
	if err != nil {
		return 0, err
	}
	return uint32(len(t.rows[pipes[0]])), nil
}

func (t *valueSet) handle(r *request, k *wire.TableKey) (uint32, error) {
	m, err := t.member(k)
	if err != nil {
		return 0, err
	}
	i := slices.Index(t.order, m)
	if i < 0 {
		return 0, failf(notFound, "the member does not exist")
	}
	return uint32(i), nil
}

// portMetadata returns the table of the port metadata that precedes packets.
func portMetadata(t *table) *recordTable {
	rt := newRecords(t)
	rt.accept = func(row *record) error {
		b, err := t.keys[0].exact(row.key)
		if port := uintOf(b); err == nil && (port&0x7f >= usable || port >= uint64(len(t.s.pipes))<<7) {
			err = invalidf("there is no port %d", port)
		}
		return err
	}
	rt.apply = func(r *request, before, after *record) error {
		row := cmp.Or(after, before)
		b, _ := t.keys[0].exact(row.key)
		var data []byte
		if after != nil {
			data = pack(t.order, after)
		}
		port := uint32(uintOf(b))
		return t.sw(int(port>>7)).SetPortMetadata(port, data)
	}
	return rt
}

// pack concatenates fields, the first in the highest bits.
func pack(order []*datum, row *record) []byte {
	v, width := new(big.Int), 0
	for _, f := range order {
		v.Lsh(v, uint(f.width))
		v.Or(v, new(big.Int).SetBytes(row.fields[f.id].GetStream()))
		width += f.width
	}
	if rest := width % 8; rest != 0 {
		v.Lsh(v, uint(8-rest))
		width += 8 - rest
	}
	return v.FillBytes(make([]byte, width/8))
}
