package server

import (
	"cmp"
	"maps"
	"slices"

	"github.com/p4lb/p4lb/internal/bfrt/wire"
	"github.com/p4lb/p4lb/internal/dataplane"
)

func (g *selectGroup) clone() *selectGroup {
	c := *g
	c.members, c.active = slices.Clone(g.members), slices.Clone(g.active)
	return &c
}

func (t *selector) idOf(pipe int, h dataplane.Handle) (uint32, bool) {
	for id, g := range t.groups[pipe] {
		if g.handle == h {
			return id, true
		}
	}
	return 0, false
}

// A groupData is the data in an update of a group.
type groupData struct {
	members []uint32
	active  []bool
	given   bool
	size    *uint32
	offset  *wire.DataField
}

func (t *selector) groupData(m *wire.TableData) (*groupData, error) {
	d := &groupData{}
	for _, x := range m.GetFields() {
		f := t.fields[x.GetFieldId()]
		if f == nil {
			return nil, failf(notFound, "there is no field %d", x.GetFieldId())
		}
		if err := f.check(x); err != nil {
			return nil, err
		}
		switch f {
		case t.members:
			d.members, d.given = x.GetIntArrVal().GetVal(), true
		case t.status:
			d.active, d.given = x.GetBoolArrVal().GetVal(), true
		case t.size:
			n := uint32(uintOf(x.GetStream()))
			d.size = &n
		case t.offset:
			d.offset = x
		}
	}
	if len(d.members) != len(d.active) {
		return nil, invalidf("the lists of members and of their states differ in length: %d and %d", len(d.members), len(d.active))
	}
	return d, nil
}

func (t *selector) write(r *request, kind wire.Update_Type, e *wire.TableEntry) error {
	pipes, err := r.pipesOf(t.program)
	if err != nil {
		return err
	}
	if e.GetValue() == nil && kind == wire.Update_DELETE {
		for _, id := range idsIn(pipes, t.groups) {
			if err := t.remove(r, pipes, id); err != nil {
				return err
			}
		}
		return nil
	}
	id, err := t.number(e)
	if err != nil {
		return err
	}
	g := t.groups[pipes[0]][id]
	if kind == wire.Update_DELETE {
		if g == nil {
			return failf(notFound, "there is no group %d", id)
		}
		return t.remove(r, pipes, id)
	}
	d, err := t.groupData(e.GetData())
	if err != nil {
		return err
	}
	switch {
	case kind == wire.Update_INSERT, kind == wire.Update_INSERT_OR_MODIFY && g == nil:
		return t.insert(r, pipes, id, d)
	case g == nil:
		return failf(notFound, "there is no group %d", id)
	case kind == wire.Update_MODIFY, kind == wire.Update_INSERT_OR_MODIFY:
		next := g.clone()
		if d.given {
			next.members, next.active = d.members, d.active
		}
		if d.size != nil {
			if *d.size != g.size && g.whole && len(pipes) < len(t.program.pipes) {
				return invalidf("group %d is in all pipes, and must have the same size in all", id)
			}
			next.size = *d.size
		}
		if d.offset != nil {
			next.offset = d.offset
		}
		if err := t.change(r, pipes, id, next); err != nil {
			return err
		}
		if kind == wire.Update_INSERT_OR_MODIFY {
			return errModified
		}
		return nil
	case kind == wire.Update_MODIFY_INC:
		return t.increase(r, pipes, id, g.clone(), d)
	}
	return failf(unimplemented, "a group does not support updates of type %v", kind)
}

func (t *selector) insert(r *request, pipes []int, id uint32, d *groupData) error {
	for _, pipe := range pipes {
		if t.groups[pipe][id] != nil {
			return failf(alreadyExists, "group %d already exists", id)
		}
	}
	g := &selectGroup{members: d.members, active: d.active, offset: d.offset, whole: len(pipes) == len(t.program.pipes)}
	if t.size != nil && t.size.preset != nil {
		g.size = uint32(uintOf(t.size.preset.GetStream()))
	}
	if d.size != nil {
		g.size = *d.size
	}
	if err := t.sound(pipes, g); err != nil {
		return err
	}
	for _, pipe := range pipes {
		r.done(func() { t.drop(pipe, id) })
		if err := t.add(pipe, id, g); err != nil {
			return err
		}
	}
	t.tell(id, nil, g)
	return nil
}

// sound reports members that do not exist or do not fit into the group.
func (t *selector) sound(pipes []int, g *selectGroup) error {
	if !slices.Contains(g.active, true) && g.there {
		for _, pipe := range pipes {
			if used, err := t.sw(pipe).Profiles().GroupUsed(t.profile.name, g.handle); err == nil && used {
				return invalidf("entries refer to the group, so at least one member must be active")
			}
		}
	}
	if t.most > 0 && int(g.size) > t.most {
		return invalidf("$MAX_GROUP_SIZE %d is above the maximum of the program, %d", g.size, t.most)
	}
	if g.size > 0 && len(g.members) > int(g.size) {
		return failf(noSpace, "%d members do not fit in the group, which has room for %d", len(g.members), g.size)
	}
	for _, m := range g.members {
		for _, pipe := range pipes {
			if _, ok := t.profile.handles[pipe][m]; !ok {
				return failf(notFound, "there is no member %d", m)
			}
		}
	}
	return nil
}

func (t *selector) add(pipe int, id uint32, g *selectGroup) error {
	h, err := t.sw(pipe).Profiles().AddGroup(t.profile.name)
	if err != nil {
		return err
	}
	c := g.clone()
	c.handle, c.there = h, true
	t.groups[pipe][id] = c
	return t.fill(pipe, c)
}

func (t *selector) drop(pipe int, id uint32) error {
	g := t.groups[pipe][id]
	if g == nil {
		return nil // it was not added
	}
	err := t.sw(pipe).Profiles().DeleteGroup(t.profile.name, g.handle)
	if err == nil {
		delete(t.groups[pipe], id)
	}
	return err
}

// fill writes the active members to the data plane.
func (t *selector) fill(pipe int, g *selectGroup) error {
	sw, name := t.sw(pipe), t.profile.name
	groups, err := sw.Profiles().Groups(name)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(groups, func(x dataplane.Group) bool { return x.Handle == g.handle })
	want, times := map[dataplane.Handle]bool{}, map[uint32]int{}
	for k, m := range g.members {
		if !g.active[k] {
			continue
		}
		h, err := t.profile.copy(pipe, m, times[m])
		if err != nil {
			return err
		}
		want[h] = true
		times[m]++
	}
	for _, h := range groups[i].Members {
		if !want[h] {
			if err := sw.Profiles().RemoveFromGroup(name, g.handle, h); err != nil {
				return err
			}
		}
		delete(want, h)
	}
	for _, h := range slices.Sorted(maps.Keys(want)) {
		if err := sw.Profiles().AddToGroup(name, g.handle, h); err != nil {
			return err
		}
	}
	return nil
}

// change replaces the data of a group.
func (t *selector) change(r *request, pipes []int, id uint32, next *selectGroup) error {
	if err := t.sound(pipes, next); err != nil {
		return err
	}
	t.tell(id, t.groups[pipes[0]][id], next)
	for _, pipe := range pipes {
		before := t.groups[pipe][id]
		if before == nil {
			continue
		}
		put := func(g *selectGroup) error {
			c := g.clone()
			c.handle = before.handle
			t.groups[pipe][id] = c
			return t.fill(pipe, c)
		}
		r.done(func() { put(before) })
		if err := put(next); err != nil {
			return err
		}
	}
	return nil
}

// increase adds members to a group, removes them, or changes their status.
func (t *selector) increase(r *request, pipes []int, id uint32, g *selectGroup, d *groupData) error {
	for k, m := range d.members {
		i := slices.Index(g.members, m)
		switch {
		case r.flags.GetModDel() && i < 0:
			return failf(notFound, "group %d has no member %d", id, m)
		case r.flags.GetModDel():
			g.members, g.active = slices.Delete(g.members, i, i+1), slices.Delete(g.active, i, i+1)
		case i >= 0:
			g.active[i] = d.active[k]
		default:
			g.members, g.active = append(g.members, m), append(g.active, d.active[k])
		}
	}
	return t.change(r, pipes, id, g)
}

func (t *selector) remove(r *request, pipes []int, id uint32) error {
	t.tell(id, t.groups[pipes[0]][id], &selectGroup{})
	for _, pipe := range pipes {
		g := t.groups[pipe][id]
		if g == nil {
			continue
		}
		if err := t.drop(pipe, id); err != nil {
			return err
		}
		r.done(func() { t.add(pipe, id, g) })
	}
	return nil
}

// tell notifies subscribers of members that became active or inactive.
func (t *selector) tell(id uint32, before, after *selectGroup) {
	if !t.notify {
		return
	}
	say := func(g *selectGroup, i int, add bool) {
		t.s.clients.tell(func(n *wire.Subscribe_Notifications) bool { return n.GetEnableSelectorUpdateChangeNotifications() }, t.program,
			&wire.StreamMessageResponse{Update: &wire.StreamMessageResponse_SelectorUpdateChangeNotification{
				SelectorUpdateChangeNotification: &wire.SelectorUpdateChgNotification{SelGroupId: id, ActMemberId: g.members[i], LogicalEntryIndex: uint32(i), IsAdd: add},
			}})
	}
	in := func(g *selectGroup, m uint32) bool {
		if g == nil {
			return false
		}
		i := slices.Index(g.members, m)
		return i >= 0 && g.active[i]
	}
	if before != nil {
		for i, m := range before.members {
			if before.active[i] && !in(after, m) {
				say(before, i, false)
			}
		}
	}
	for i, m := range after.members {
		if after.active[i] && !in(before, m) {
			say(after, i, true)
		}
	}
}

func (t *selector) read(r *request, e *wire.TableEntry) error {
	pipes, want, err := t.asked(r, e)
	if err != nil {
		return err
	}
	return giveOf(t.table, r, e, t.groups[pipes[0]], "group", func(_ uint32, g *selectGroup) (*wire.TableData, error) {
		return t.dataOf(g, want), nil
	})
}

func (t *selector) dataOf(g *selectGroup, want *filter) *wire.TableData {
	d := &wire.TableData{}
	add := func(f *datum, v func() *wire.DataField) {
		if f != nil && want.has(f.id) {
			if x := v(); x != nil {
				d.Fields = append(d.Fields, x)
			}
		}
	}
	add(t.members, func() *wire.DataField { return t.members.numbers(g.members) })
	add(t.status, func() *wire.DataField { return t.status.flags(g.active) })
	add(t.size, func() *wire.DataField { return t.size.number(uint64(g.size)) })
	add(t.offset, func() *wire.DataField { return cmp.Or(g.offset, t.offset.preset) })
	return d
}

func (t *selector) usage(r *request) (uint32, error) {
	pipes, err := r.pipesOf(t.program)
	if err != nil {
		return 0, err
	}
	return uint32(len(t.groups[pipes[0]])), nil
}

func (t *selector) handle(r *request, k *wire.TableKey) (uint32, error) {
	pipes, err := r.pipesOf(t.program)
	if err != nil {
		return 0, err
	}
	id, err := t.number(&wire.TableEntry{Value: &wire.TableEntry_Key{Key: k}})
	if err == nil && t.groups[pipes[0]][id] == nil {
		err = failf(notFound, "there is no group %d", id)
	}
	return id, err
}

// A getMember returns the member of a group that a hash value selects.
type getMember struct {
	*table
	selector *selector
}

func (t *getMember) write(*request, wire.Update_Type, *wire.TableEntry) error {
	return failf(unimplemented, "the table is read only")
}

func (t *getMember) read(r *request, e *wire.TableEntry) error {
	pipes, err := r.pipesOf(t.program)
	if err != nil {
		return err
	}
	if err := known(t.keys, e.GetKey()); err != nil {
		return err
	}
	group, err := t.keys[0].exact(e.GetKey())
	if err != nil {
		return err
	}
	hash, err := t.keys[1].exact(e.GetKey())
	if err != nil {
		return err
	}
	if group == nil || hash == nil {
		return invalidf("the key lacks the group or the hash")
	}
	g := t.selector.groups[pipes[0]][uint32(uintOf(group))]
	if g == nil {
		return failf(notFound, "there is no group %d", uintOf(group))
	}
	var in []uint32
	for i, m := range g.members {
		if g.active[i] {
			in = append(in, m)
		}
	}
	if len(in) == 0 {
		return failf(notFound, "group %d has no active member", uintOf(group))
	}
	slices.SortFunc(in, func(a, b uint32) int {
		return int(t.selector.profile.handles[pipes[0]][a]) - int(t.selector.profile.handles[pipes[0]][b])
	})
	m := in[uintOf(hash)%uint64(len(in))]
	return r.out(&wire.Entity{Entity: &wire.Entity_TableEntry{TableEntry: &wire.TableEntry{
		TableId: t.schema.ID, Value: &wire.TableEntry_Key{Key: e.GetKey()}, TableFlags: r.flags,
		Data: &wire.TableData{Fields: []*wire.DataField{t.order[0].number(uint64(m))}},
	}}})
}
