package server

import (
	"maps"
	"slices"

	"github.com/p4lb/p4lb/internal/bfrt/wire"
	"github.com/p4lb/p4lb/internal/dataplane"
)

func (t *actionProfile) idOf(pipe int, h dataplane.Handle) (uint32, bool) {
	for id, x := range t.handles[pipe] {
		if x == h {
			return id, true
		}
	}
	return 0, false
}

func (t *actionProfile) write(r *request, kind wire.Update_Type, e *wire.TableEntry) error {
	pipes, err := r.pipesOf(t.program)
	if err != nil {
		return err
	}
	if e.GetValue() == nil && !e.GetIsDefaultEntry() && kind == wire.Update_DELETE {
		return t.clear(r, pipes)
	}
	id, err := t.number(e)
	if err != nil {
		return err
	}
	_, there := t.handles[pipes[0]][id]
	switch kind {
	case wire.Update_INSERT:
		return t.insert(r, pipes, id, e)
	case wire.Update_INSERT_OR_MODIFY:
		if !there {
			return t.insert(r, pipes, id, e)
		}
		if err := t.modify(r, pipes, id, e); err != nil {
			return err
		}
		return errModified
	case wire.Update_MODIFY:
		return t.modify(r, pipes, id, e)
	case wire.Update_DELETE:
		if !there {
			return failf(notFound, "there is no member %d", id)
		}
		return t.remove(r, pipes, id)
	}
	return failf(unimplemented, "a member does not support updates of type %v", kind)
}

func (t *actionProfile) call(e *wire.TableEntry) (dataplane.ActionCall, error) {
	d, err := t.data(e.GetData(), t.actions)
	if err == nil && d.action == nil {
		err = invalidf("the data names no action")
	}
	if err != nil {
		return dataplane.ActionCall{}, err
	}
	d.complete()
	return dataplane.ActionCall{Name: d.action.name, Params: d.params}, nil
}

func (t *actionProfile) insert(r *request, pipes []int, id uint32, e *wire.TableEntry) error {
	c, err := t.call(e)
	if err != nil {
		return err
	}
	for _, pipe := range pipes {
		if _, ok := t.handles[pipe][id]; ok {
			return failf(alreadyExists, "member %d already exists", id)
		}
	}
	if len(t.handles[pipes[0]]) >= int(t.schema.Size) {
		return failf(noSpace, "the table is full: it has %d members", t.schema.Size)
	}
	for _, pipe := range pipes {
		if err := t.add(pipe, id, c); err != nil {
			return err
		}
		r.done(func() { t.drop(pipe, id) })
	}
	return nil
}

func (t *actionProfile) add(pipe int, id uint32, c dataplane.ActionCall) error {
	h, err := t.sw(pipe).Profiles().AddMember(t.name, c)
	if err == nil {
		t.handles[pipe][id], t.calls[pipe][id] = h, c
	}
	return err
}

// copy returns the n-th copy of a member; copy 0 is the member itself. A weight
// needs copies, because a group in the data plane contains each member only once.
func (t *actionProfile) copy(pipe int, id uint32, n int) (dataplane.Handle, error) {
	if n == 0 {
		return t.handles[pipe][id], nil
	}
	for len(t.copies[pipe][id]) < n {
		h, err := t.sw(pipe).Profiles().AddMember(t.name, t.calls[pipe][id])
		if err != nil {
			return 0, err
		}
		t.copies[pipe][id] = append(t.copies[pipe][id], h)
	}
	return t.copies[pipe][id][n-1], nil
}

// put replaces the action of a member and of its copies.
func (t *actionProfile) put(pipe int, id uint32, c dataplane.ActionCall) error {
	for _, h := range append([]dataplane.Handle{t.handles[pipe][id]}, t.copies[pipe][id]...) {
		if err := t.sw(pipe).Profiles().ModifyMember(t.name, h, c); err != nil {
			return err
		}
	}
	t.calls[pipe][id] = c
	return nil
}

func (t *actionProfile) drop(pipe int, id uint32) error {
	for len(t.copies[pipe][id]) > 0 {
		last := len(t.copies[pipe][id]) - 1
		if err := t.sw(pipe).Profiles().DeleteMember(t.name, t.copies[pipe][id][last]); err != nil {
			return err
		}
		t.copies[pipe][id] = t.copies[pipe][id][:last]
	}
	err := t.sw(pipe).Profiles().DeleteMember(t.name, t.handles[pipe][id])
	if err == nil {
		delete(t.handles[pipe], id)
		delete(t.calls[pipe], id)
	}
	return err
}

func (t *actionProfile) modify(r *request, pipes []int, id uint32, e *wire.TableEntry) error {
	c, err := t.call(e)
	if err != nil {
		return err
	}
	for _, pipe := range pipes {
		if _, ok := t.handles[pipe][id]; !ok {
			return failf(notFound, "there is no member %d", id)
		}
		before := t.calls[pipe][id]
		if err := t.put(pipe, id, c); err != nil {
			return err
		}
		r.done(func() { t.put(pipe, id, before) })
	}
	return nil
}

func (t *actionProfile) remove(r *request, pipes []int, id uint32) error {
	for _, pipe := range pipes {
		if _, ok := t.handles[pipe][id]; !ok {
			continue
		}
		c := t.calls[pipe][id]
		if err := t.drop(pipe, id); err != nil {
			return err
		}
		r.done(func() { t.add(pipe, id, c) })
	}
	return nil
}

func (t *actionProfile) clear(r *request, pipes []int) error {
	for _, id := range idsIn(pipes, t.handles) {
		if err := t.remove(r, pipes, id); err != nil {
			return err
		}
	}
	return nil
}

// idsIn returns the members or groups that at least one of the pipes has.
func idsIn[T any](pipes []int, lists []map[uint32]T) []uint32 {
	all := map[uint32]bool{}
	for _, pipe := range pipes {
		for id := range lists[pipe] {
			all[id] = true
		}
	}
	return slices.Sorted(maps.Keys(all))
}

func (t *actionProfile) read(r *request, e *wire.TableEntry) error {
	pipes, want, err := t.asked(r, e)
	if err != nil {
		return err
	}
	return giveOf(t.table, r, e, t.calls[pipes[0]], "member", func(id uint32, c dataplane.ActionCall) (*wire.TableData, error) {
		a := t.byName[c.Name]
		if want != nil && want.action != 0 && want.action != a.id {
			return nil, invalidf("member %d has action %s, but the request is for another one", id, a.name)
		}
		d := &wire.TableData{ActionId: a.id}
		for i, p := range a.params {
			if want.has(p.id) {
				d.Fields = append(d.Fields, &wire.DataField{FieldId: p.id, Value: &wire.DataField_Stream{Stream: c.Params[i]}})
			}
		}
		return d, nil
	})
}

func (t *actionProfile) usage(r *request) (uint32, error) {
	pipes, err := r.pipesOf(t.program)
	if err != nil {
		return 0, err
	}
	return uint32(len(t.handles[pipes[0]])), nil
}

func (t *actionProfile) handle(r *request, k *wire.TableKey) (uint32, error) {
	pipes, err := r.pipesOf(t.program)
	if err != nil {
		return 0, err
	}
	id, err := t.number(&wire.TableEntry{Value: &wire.TableEntry_Key{Key: k}})
	if _, ok := t.handles[pipes[0]][id]; err == nil && !ok {
		err = failf(notFound, "there is no member %d", id)
	}
	return id, err
}
