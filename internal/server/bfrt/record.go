package server

import (
	"cmp"
	"maps"
	"slices"

	"github.com/p4lb/p4lb/internal/bfrt/wire"
)

// A recordTable is a table that keeps its entries in the clients' form: fields with
// defaults. Its hooks give them meaning.
type recordTable struct {
	*table
	actions map[uint32]*entryAction
	rows    map[string]*record
	handles map[uint32]string
	next    uint32

	// constant is true if the rows always exist. They can be changed but not added.
	// Function all returns their keys; if it is nil, the keys are 0 to size-1.
	constant bool
	// lenient allows the deletion of missing rows.
	lenient bool
	// accept returns an error for an impossible row; nil accepts all rows.
	accept func(row *record) error
	// apply executes a change. before is nil for a new row, after for a deleted one.
	apply func(r *request, before, after *record) error
	// refresh updates a row from the chip before it is read.
	refresh func(r *request, row *record)
	// less subtracts the elements of a decrement from a row; nil subtracts field by
	// field.
	less func(row, change *record)
	// prepare is called before each read and write.
	prepare func()
	// all returns the keys of rows that exist without an insertion.
	all func(r *request) []*wire.TableKey
}

// A record is a row of a recordTable.
type record struct {
	key    *wire.TableKey
	action uint32
	fields map[uint32]*wire.DataField
	handle uint32
}

// numbered reports whether the rows have the numbers 0 to size-1.
func (t *recordTable) numbered() bool { return t.constant && len(t.keys) == 1 && t.all == nil }

func (x *record) clone() *record {
	c := *x
	c.fields = maps.Clone(x.fields)
	return &c
}

// value returns the value of a named field, or its default, nil if it has neither.
func (x *record) value(t *table, name string) *wire.DataField {
	d := t.field(name)
	if d == nil {
		return nil
	}
	return cmp.Or(x.fields[d.id], d.preset)
}

// number returns the number in a named field, 0 if it has none.
func (x *record) number(t *table, name string) uint64 { return uintOf(x.value(t, name).GetStream()) }

func (x *record) flag(t *table, name string) bool { return x.value(t, name).GetBoolVal() }

func (x *record) text(t *table, name string) string { return x.value(t, name).GetStrVal() }

func (x *record) numbers(t *table, name string) []uint32 {
	return x.value(t, name).GetIntArrVal().GetVal()
}

func (x *record) flags(t *table, name string) []bool {
	return x.value(t, name).GetBoolArrVal().GetVal()
}

func (x *record) set(v *wire.DataField) { x.fields[v.GetFieldId()] = v }

func newRecords(t *table) *recordTable {
	rt := &recordTable{table: t, actions: map[uint32]*entryAction{}, rows: map[string]*record{}, handles: map[uint32]string{}}
	for _, spec := range t.schema.Actions() {
		rt.actions[spec.ID] = newAction(spec, spec.Name, spec.Data)
	}
	return rt
}

// key returns the identity of a row from a key, which must have all fields.
func (t *recordTable) key(k *wire.TableKey) (string, error) {
	if err := known(t.keys, k); err != nil {
		return "", err
	}
	var id []byte
	for i := range t.keys {
		f := &t.keys[i]
		if f.match != "Exact" {
			for _, x := range k.GetFields() {
				if x.GetFieldId() == f.id {
					id = append(id, mustMarshal(x)...)
				}
			}
			continue
		}
		b, err := f.exact(k)
		if err != nil {
			return "", err
		}
		if b == nil {
			return "", invalidf("the key lacks %s", f.name)
		}
		if t.numbered() && uintOf(b) >= uint64(t.schema.Size) {
			return "", invalidf("%s %d is outside 0..%d", f.name, uintOf(b), t.schema.Size-1)
		}
		id = append(append(id, b...), 0)
	}
	return string(id), nil
}

func (t *recordTable) find(e *wire.TableEntry) (string, *record, error) {
	if h, ok := e.GetValue().(*wire.TableEntry_HandleId); ok {
		id, ok := t.handles[h.HandleId]
		if !ok {
			return "", nil, failf(notFound, "there is no entry %d", h.HandleId)
		}
		return id, t.rows[id], nil
	}
	id, err := t.key(e.GetKey())
	return id, t.rows[id], err
}

// merge copies the data of an update into a row.
func (t *recordTable) merge(row *record, m *wire.TableData) error {
	a := t.actions[m.GetActionId()]
	if m.GetActionId() != 0 {
		if a == nil {
			return failf(notFound, "there is no action %d", m.GetActionId())
		}
		if row.action != a.id {
			if old := t.actions[row.action]; old != nil {
				for _, p := range old.params {
					delete(row.fields, p.id)
				}
			}
			row.action = a.id
		}
	}
	for _, x := range m.GetFields() {
		f := t.fields[x.GetFieldId()]
		if a != nil {
			if i := slices.IndexFunc(a.params, func(p *datum) bool { return p.id == x.GetFieldId() }); i >= 0 {
				f = a.params[i]
			}
		}
		switch {
		case f == nil:
			return failf(notFound, "there is no field %d", x.GetFieldId())
		case f.readOnly:
			return invalidf("field %s is read only", f.name)
		}
		if err := f.check(x); err != nil {
			return err
		}
		row.fields[f.id] = x
	}
	return nil
}

func (t *recordTable) write(r *request, kind wire.Update_Type, e *wire.TableEntry) error {
	if t.prepare != nil {
		t.prepare()
	}
	if e.GetValue() == nil && !e.GetIsDefaultEntry() && len(t.keys) > 0 {
		if kind == wire.Update_DELETE || kind == wire.Update_RESET {
			return t.clear(r)
		}
		return invalidf("the entry has neither key nor handle")
	}
	id, row, err := t.find(e)
	if err != nil {
		return err
	}
	if row == nil && (t.constant || len(t.keys) == 0) {
		row = &record{key: e.GetKey(), fields: map[uint32]*wire.DataField{}}
	}
	switch kind {
	case wire.Update_DELETE, wire.Update_RESET:
		return t.remove(r, id, row)
	case wire.Update_INSERT:
		if row != nil && !t.constant && len(t.keys) > 0 {
			return failf(alreadyExists, "the entry already exists")
		}
	case wire.Update_MODIFY:
		if row == nil {
			return failf(notFound, "the entry does not exist")
		}
	case wire.Update_INSERT_OR_MODIFY:
	default:
		return t.increase(r, id, row, e)
	}
	next := &record{key: e.GetKey(), fields: map[uint32]*wire.DataField{}}
	was := row != nil
	if row != nil {
		next = row.clone()
	} else if t.schema.Size > 0 && int64(len(t.rows)) >= t.schema.Size {
		return failf(noSpace, "the table is full: it has %d entries", t.schema.Size)
	}
	if err := t.merge(next, e.GetData()); err != nil {
		return err
	}
	if err := t.put(r, id, next); err != nil {
		return err
	}
	if was && kind == wire.Update_INSERT_OR_MODIFY {
		return errModified
	}
	return nil
}

// change applies a change of a row and stores it. Functions that apply passes to moving
// see the new row.
func (t *recordTable) change(r *request, before, after *record, store func()) error {
	var moving []func()
	inner := *r
	if inner.later == nil {
		inner.later = &moving
	}
	if t.apply != nil {
		if err := t.apply(&inner, before, after); err != nil {
			return err
		}
	}
	store()
	for _, f := range moving {
		f()
	}
	return nil
}

// put replaces a row.
func (t *recordTable) put(r *request, id string, next *record) error {
	if t.accept != nil {
		if err := t.accept(next); err != nil {
			return err
		}
	}
	before := t.rows[id]
	err := t.change(r, before, next, func() {
		if before == nil {
			t.next++
			next.handle = t.next
			t.handles[next.handle] = id
		}
		t.rows[id] = next
	})
	if err != nil {
		return err
	}
	r.done(func() {
		t.change(r, next, before, func() {
			if before == nil {
				delete(t.rows, id)
				delete(t.handles, next.handle)
				return
			}
			t.rows[id] = before
		})
	})
	return nil
}

// increase adds elements to arrays or removes them.
func (t *recordTable) increase(r *request, id string, row *record, e *wire.TableEntry) error {
	if row == nil {
		return failf(notFound, "the entry does not exist")
	}
	next, change := row.clone(), &record{fields: map[uint32]*wire.DataField{}}
	if err := t.merge(change, e.GetData()); err != nil {
		return err
	}
	if t.less != nil && r.flags.GetModDel() {
		t.less(next, change)
		return t.put(r, id, next)
	}
	for fid, x := range change.fields {
		f := t.fields[fid]
		if f == nil || !f.repeated {
			return failf(unimplemented, "field %d cannot be incremented", fid)
		}
		switch u := x.GetValue().(type) {
		case *wire.DataField_IntArrVal:
			next.fields[fid] = f.numbers(splice(row.fields[fid].GetIntArrVal().GetVal(), u.IntArrVal.GetVal(), r.flags.GetModDel()))
		case *wire.DataField_BoolArrVal:
			list := row.fields[fid].GetBoolArrVal().GetVal()
			if n := len(u.BoolArrVal.GetVal()); r.flags.GetModDel() {
				list = list[:max(0, len(list)-n)]
			} else {
				list = append(slices.Clone(list), u.BoolArrVal.GetVal()...)
			}
			next.fields[fid] = f.flags(list)
		default:
			return failf(unimplemented, "field %s cannot be incremented", f.name)
		}
	}
	return t.put(r, id, next)
}

// splice adds elements to an array or removes them. Each element that names an object
// occurs once; elements that belong to such objects are removed from the end.
func splice(list, change []uint32, del bool) []uint32 {
	if !del {
		return append(slices.Clone(list), change...)
	}
	list = slices.Clone(list)
	for _, v := range change {
		if i := slices.Index(list, v); i >= 0 {
			list = slices.Delete(list, i, i+1)
		}
	}
	return list
}

func (t *recordTable) remove(r *request, id string, row *record) error {
	before := t.rows[id]
	if before == nil {
		if row != nil || t.lenient || len(t.keys) == 0 {
			return nil // an unchanged constant row
		}
		return failf(notFound, "the entry does not exist")
	}
	err := t.change(r, before, nil, func() {
		delete(t.rows, id)
		delete(t.handles, before.handle)
	})
	if err != nil {
		return err
	}
	r.done(func() {
		t.change(r, nil, before, func() {
			t.rows[id] = before
			t.handles[before.handle] = id
		})
	})
	return nil
}

func (t *recordTable) clear(r *request) error {
	for _, id := range t.sorted() {
		if err := t.remove(r, id, t.rows[id]); err != nil {
			return err
		}
	}
	return nil
}

func (t *recordTable) sorted() []string { return slices.Sorted(maps.Keys(t.rows)) }

func (t *recordTable) read(r *request, e *wire.TableEntry) error {
	if t.prepare != nil {
		t.prepare()
	}
	want := t.wanted(e.GetData())
	if e.GetValue() != nil || len(t.keys) == 0 {
		_, row, err := t.find(e)
		if err != nil {
			return err
		}
		if row == nil && (t.constant || len(t.keys) == 0) {
			row = &record{key: e.GetKey(), fields: map[uint32]*wire.DataField{}}
		}
		if row == nil {
			return failf(notFound, "the entry does not exist")
		}
		return t.give(r, row, want, e.GetIsDefaultEntry())
	}
	if e.GetIsDefaultEntry() {
		return failf(unimplemented, "the table has no default entry")
	}
	for _, k := range t.fixedKeys(r) {
		id, err := t.key(k)
		if err != nil {
			return err
		}
		row := t.rows[id]
		if row == nil {
			row = &record{key: k, fields: map[uint32]*wire.DataField{}}
		}
		if err := t.give(r, row, want, false); err != nil {
			return err
		}
	}
	if t.all != nil || t.numbered() {
		return nil
	}
	for _, id := range t.sorted() {
		if err := t.give(r, t.rows[id], want, false); err != nil {
			return err
		}
	}
	return nil
}

// fixedKeys returns the keys of rows that always exist.
func (t *recordTable) fixedKeys(r *request) (list []*wire.TableKey) {
	switch {
	case t.all != nil:
		list = t.all(r)
	case t.numbered():
		for i := range t.schema.Size {
			list = append(list, t.keyAt(uint64(i)))
		}
	}
	return list
}

func (t *recordTable) give(r *request, row *record, want *filter, preset bool) error {
	x := &wire.TableEntry{TableId: t.schema.ID, TableFlags: r.flags, IsDefaultEntry: preset}
	if len(t.keys) > 0 {
		x.Value = &wire.TableEntry_Key{Key: row.key}
	}
	if r.flags.GetKeyOnly() {
		x.EntryTgt = r.target
		return r.out(&wire.Entity{Entity: &wire.Entity_TableEntry{TableEntry: x}})
	}
	if t.refresh != nil {
		t.refresh(r, row)
	}
	x.Data = &wire.TableData{ActionId: row.action}
	add := func(f *datum) {
		if !want.has(f.id) {
			return
		}
		if v := cmp.Or(row.fields[f.id], f.preset); v != nil {
			x.Data.Fields = append(x.Data.Fields, v)
		}
	}
	if a := t.actions[row.action]; a != nil {
		for _, p := range a.params {
			add(p)
		}
	}
	for _, f := range t.order {
		add(f)
	}
	return r.out(&wire.Entity{Entity: &wire.Entity_TableEntry{TableEntry: x}})
}

func (t *recordTable) usage(*request) (uint32, error) { return uint32(len(t.rows)), nil }

func (t *recordTable) handle(_ *request, k *wire.TableKey) (uint32, error) {
	id, err := t.key(k)
	if err != nil {
		return 0, err
	}
	row := t.rows[id]
	if row == nil {
		return 0, failf(notFound, "the entry does not exist")
	}
	return row.handle, nil
}
