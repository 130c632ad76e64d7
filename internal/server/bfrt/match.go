package server

import (
	"slices"

	"github.com/p4lb/p4lb/internal/bfrt"
	"github.com/p4lb/p4lb/internal/bfrt/wire"
	"github.com/p4lb/p4lb/internal/dataplane"
	"github.com/p4lb/p4lb/internal/text/lists"
)

func (t *matchTable) use(spec *bfrt.ActionSpec, name string) {
	a := newAction(spec, name, lists.Filter(spec.Data, func(f *bfrt.Field) bool { return !isRegister(f) }))
	a.miss, a.hit = spec.Scope == "DefaultOnly", spec.Scope == "TableOnly"
	t.actions[a.id], t.byName[a.name] = a, a
}

func newAction(spec *bfrt.ActionSpec, name string, params []*bfrt.Field) *entryAction {
	return &entryAction{id: spec.ID, name: name, params: lists.Map(params, func(f *bfrt.Field) *datum { return newDatum(f, false) })}
}

// write executes an update of the table.
func (t *matchTable) write(r *request, kind wire.Update_Type, e *wire.TableEntry) error {
	pipes, err := t.scope.of(r, t.program)
	if err != nil {
		return err
	}
	if e.GetIsDefaultEntry() {
		return t.writeDefault(r, pipes, kind, e.GetData())
	}
	if e.GetValue() == nil {
		if kind == wire.Update_DELETE {
			return t.clear(r, pipes)
		}
		return invalidf("the entry has neither key nor handle")
	}
	if k, ok := e.GetValue().(*wire.TableEntry_Key); ok && kind == wire.Update_INSERT {
		at := &place{pipes: pipes, handles: make([]int64, len(pipes))}
		if at.match, at.priority, err = t.key(k.Key); err != nil {
			return err
		}
		return t.insert(r, at, e)
	}
	at, err := t.find(pipes, e)
	if err != nil {
		return err
	}
	switch kind {
	case wire.Update_INSERT_OR_MODIFY:
		if !at.there() {
			return t.insert(r, at, e)
		}
		if err := t.modify(r, at, e); err != nil {
			return err
		}
		return errModified
	case wire.Update_MODIFY:
		return t.modify(r, at, e)
	case wire.Update_MODIFY_INC:
		return failf(unimplemented, "entries of a match table cannot be incremented")
	case wire.Update_DELETE:
		return t.remove(r, at)
	}
	return failf(unimplemented, "an entry does not support updates of type %v", kind)
}

func (p *place) there() bool {
	return slices.ContainsFunc(p.handles, func(h int64) bool { return h >= 0 })
}

// find returns the place of an entry, by key or by handle.
func (t *matchTable) find(pipes []int, e *wire.TableEntry) (*place, error) {
	at := &place{pipes: pipes, handles: make([]int64, len(pipes))}
	if k, ok := e.GetValue().(*wire.TableEntry_Key); ok {
		var err error
		if at.match, at.priority, err = t.key(k.Key); err != nil {
			return nil, err
		}
	} else {
		told, ok := t.told[e.GetHandleId()]
		if !ok {
			return nil, failf(notFound, "there is no entry with handle %d", e.GetHandleId())
		}
		if !slices.Contains(pipes, told.pipe) {
			return nil, invalidf("handle %d belongs to other pipes", e.GetHandleId())
		}
		x, err := t.sw(told.pipe).Tables().Entry(t.name, told.handle)
		if err != nil {
			return nil, err
		}
		at.match, at.priority = x.Match, x.Priority
		for _, part := range t.scope.parts {
			if slices.Contains(part, told.pipe) {
				at.pipes = part
			}
		}
		at.handles = make([]int64, len(at.pipes))
		pipes = at.pipes
	}
	for i, pipe := range pipes {
		h, err := t.sw(pipe).Tables().Find(t.name, at.match, at.priority)
		at.handles[i] = int64(h)
		if err != nil {
			at.handles[i] = -1
			if failureOf(err).code != notFound {
				return nil, err
			}
		}
	}
	return at, nil
}

// insert adds an entry to all pipes of a part, or to none.
func (t *matchTable) insert(r *request, at *place, e *wire.TableEntry) (err error) {
	d, err := t.data(e.GetData(), t.actions)
	if err != nil {
		return err
	}
	d.complete()
	if d.action != nil && d.action.miss {
		return invalidf("action %s is only for the default entry", d.action.name)
	}
	undo := func(n int) {
		for i := range n {
			t.sw(at.pipes[i]).Tables().Delete(t.name, dataplane.Handle(at.handles[i]))
			t.attach.forget(at.pipes[i], dataplane.Handle(at.handles[i]))
		}
	}
	for i, pipe := range at.pipes {
		target, err := t.target(d, pipe)
		if err == nil {
			x := dataplane.Entry{Match: at.match, Priority: at.priority, Target: target, IdleTimeout: t.ageing.timeout(d)}
			var h dataplane.Handle
			if h, err = t.sw(pipe).Tables().Add(t.name, x); err == nil {
				at.handles[i] = int64(h)
				t.attach.renew(t, pipe, h)
				if err = t.attach.set(t, pipe, h, d, i == 0); err != nil {
					undo(i + 1)
					return err
				}
				t.ageing.arrived(t, pipe, h)
				if d.hit != nil {
					t.ageing.set(pipe, h, *d.hit)
				}
				if x.IdleTimeout > 0 {
					t.sw(pipe).Tables().SetIdleTimeout(t.name, h, x.IdleTimeout, r.s.dev.Elapsed())
				}
			}
		}
		if err != nil {
			undo(i)
			return err
		}
	}
	r.done(func() {
		for _, pipe := range at.pipes { // use the key: the handle may have changed since
			if h, err := t.sw(pipe).Tables().Find(t.name, at.match, at.priority); err == nil {
				t.sw(pipe).Tables().Delete(t.name, h)
				t.attach.forget(pipe, h)
			}
		}
	})
	return nil
}

// modify changes the action and the attachments of an entry.
func (t *matchTable) modify(r *request, at *place, e *wire.TableEntry) error {
	d, err := t.data(e.GetData(), t.actions)
	if err != nil {
		return err
	}
	if d.action != nil && d.action.miss {
		return invalidf("action %s is only for the default entry", d.action.name)
	}
	if !at.there() {
		return failf(notFound, "the entry does not exist")
	}
	for i, pipe := range at.pipes {
		if at.handles[i] < 0 {
			continue
		}
		h := dataplane.Handle(at.handles[i])
		before, err := t.sw(pipe).Tables().Entry(t.name, h)
		if err != nil {
			return err
		}
		d.keep(&before.Target)
		d.complete()
		saved, aged := t.attach.save(t, pipe, h), t.ageing.save(t, pipe, &before)
		r.done(func() {
			if h, err := t.sw(pipe).Tables().Find(t.name, at.match, at.priority); err == nil {
				t.sw(pipe).Tables().Modify(t.name, h, before.Target)
				t.attach.restore(t, pipe, h, saved)
				aged(h)
			}
		})
		if d.leads() {
			target, err := t.target(d, pipe)
			if err == nil {
				err = t.sw(pipe).Tables().Modify(t.name, h, target)
			}
			if err != nil {
				return err
			}
		}
		if err := t.attach.set(t, pipe, h, d, i == 0); err != nil {
			return err
		}
		if d.hit != nil {
			t.ageing.set(pipe, h, *d.hit)
		}
		if d.ttl != nil || r.flags.GetResetTtl() && before.IdleTimeout > 0 {
			ttl := before.IdleTimeout
			if d.ttl != nil {
				ttl = t.ageing.timeout(d)
			}
			t.sw(pipe).Tables().SetIdleTimeout(t.name, h, ttl, r.s.dev.Elapsed())
			t.ageing.woken(pipe, h)
		}
	}
	return nil
}

// remove deletes an entry.
func (t *matchTable) remove(r *request, at *place) error {
	if !at.there() {
		return failf(notFound, "the entry does not exist")
	}
	for i, pipe := range at.pipes {
		if at.handles[i] < 0 {
			continue
		}
		if err := t.removeOne(r, pipe, dataplane.Handle(at.handles[i])); err != nil {
			return err
		}
	}
	return nil
}

func (t *matchTable) removeOne(r *request, pipe int, h dataplane.Handle) error {
	sw := t.sw(pipe)
	if r.undo != nil {
		x, err := sw.Tables().Entry(t.name, h)
		if err != nil {
			return err
		}
		saved, aged := t.attach.save(t, pipe, h), t.ageing.save(t, pipe, &x)
		r.done(func() {
			if h, err := sw.Tables().Add(t.name, x); err == nil {
				t.attach.restore(t, pipe, h, saved)
				aged(h)
			}
		})
	}
	t.attach.forget(pipe, h)
	t.ageing.forget(pipe, h)
	if n, ok := t.numbers[entryAt{pipe, h}]; ok {
		delete(t.numbers, entryAt{pipe, h})
		delete(t.told, n)
	}
	return sw.Tables().Delete(t.name, h)
}

func (t *matchTable) clear(r *request, pipes []int) error {
	for _, pipe := range pipes {
		list, err := t.sw(pipe).Tables().Entries(t.name)
		if err != nil {
			return err
		}
		for _, x := range list {
			if x.Const {
				continue
			}
			if err := t.removeOne(r, pipe, x.Handle); err != nil {
				return err
			}
		}
	}
	return nil
}

// writeDefault sets the default entry, or restores the program's.
func (t *matchTable) writeDefault(r *request, pipes []int, kind wire.Update_Type, data *wire.TableData) error {
	if kind == wire.Update_DELETE || kind == wire.Update_RESET {
		for _, pipe := range pipes {
			before, ok, _ := t.sw(pipe).Tables().Default(t.name)
			if err := t.sw(pipe).Tables().ResetDefault(t.name); err != nil {
				return err
			}
			r.done(func() {
				if ok {
					t.sw(pipe).Tables().SetDefault(t.name, before)
				}
			})
		}
		return nil
	}
	d, err := t.data(data, t.actions)
	if err != nil {
		return err
	}
	d.complete()
	if d.action != nil && d.action.hit {
		return invalidf("action %s is not for the default entry", d.action.name)
	}
	for i, pipe := range pipes {
		before, ok, _ := t.sw(pipe).Tables().Default(t.name)
		saved := t.attach.save(t, pipe, dataplane.DefaultEntry)
		r.done(func() {
			if ok {
				t.sw(pipe).Tables().SetDefault(t.name, before)
			} else {
				t.sw(pipe).Tables().ResetDefault(t.name)
			}
			t.attach.restore(t, pipe, dataplane.DefaultEntry, saved)
		})
		if d.leads() {
			target, err := t.target(d, pipe)
			if err == nil {
				err = t.sw(pipe).Tables().SetDefault(t.name, target)
			}
			if err != nil {
				return err
			}
		}
		if err := t.attach.set(t, pipe, dataplane.DefaultEntry, d, i == 0); err != nil {
			return err
		}
	}
	return nil
}

// read returns an entry, the default entry, or all entries.
func (t *matchTable) read(r *request, e *wire.TableEntry) error {
	pipes, err := t.scope.of(r, t.program)
	if err != nil {
		return err
	}
	want := t.wanted(e.GetData())
	h, byHandle := e.GetValue().(*wire.TableEntry_HandleId)
	if e.GetIsDefaultEntry() || byHandle && h.HandleId == defaultHandle {
		return t.readDefault(r, pipes, byHandle, want) // the handle of the default entry
	}
	if e.GetValue() != nil {
		at, err := t.find(pipes, e)
		if err != nil {
			if byHandle && !r.flags.GetFromHw() {
				return failf(notFound, "the entry does not exist")
			}
			return err
		}
		if err := t.reaches(r, e); err != nil {
			return err
		}
		i := slices.IndexFunc(at.handles, func(h int64) bool { return h >= 0 })
		if i < 0 {
			return failf(notFound, "the entry does not exist")
		}
		x, err := t.sw(at.pipes[i]).Tables().Entry(t.name, dataplane.Handle(at.handles[i]))
		if err != nil {
			return err
		}
		return t.give(r, at, &x, want)
	}
	for i := range pipes {
		if i > 0 && (len(t.scope.parts) == 1 || !r.all()) {
			break // all pipes have the same entries
		}
		if err := t.walk(r, pipes, i, want); err != nil {
			return err
		}
	}
	return nil
}

// walk returns the entries of a pipe that no earlier pipe contains.
func (t *matchTable) walk(r *request, pipes []int, i int, want *filter) error {
	for next := 0; next >= 0; {
		list, to, err := t.sw(pipes[i]).Tables().Walk(t.name, next, walkSize)
		if err != nil {
			return err
		}
		for j := range list {
			x := &list[j]
			if a := t.byName[x.Target.Action.Name]; want != nil && want.action != 0 && (a == nil || a.id != want.action) {
				continue // the client requested entries with another action
			}
			at := &place{pipes: pipes, match: x.Match, priority: x.Priority, handles: make([]int64, len(pipes))}
			before := false
			for k, p := range pipes {
				at.handles[k] = int64(x.Handle)
				if k == i {
					continue
				}
				h, err := t.sw(p).Tables().Find(t.name, x.Match, x.Priority)
				if at.handles[k] = int64(h); err != nil {
					at.handles[k] = -1
				} else if k < i {
					before = true
				}
			}
			if before {
				continue
			}
			if err := t.give(r, at, x, want); err != nil {
				return err
			}
		}
		if next = to; next >= 0 {
			if err := r.rest(); err != nil {
				return err
			}
		}
	}
	return nil
}

// reaches returns an error if a read of one entry uses another target than its
// write. The driver stores an entry under the target of the write: all pipes, or
// the first pipe of a part. The chip has the entry in each pipe of the part.
func (t *matchTable) reaches(r *request, e *wire.TableEntry) error {
	_, byHandle := e.GetValue().(*wire.TableEntry_HandleId)
	switch pipe := int(r.target.GetPipeId()); {
	case r.all() && t.scope.common():
		return nil
	case r.all() && byHandle:
		return nil
	case !r.all() && r.flags.GetFromHw():
		return nil
	case !r.all() && !t.scope.common() && slices.ContainsFunc(t.scope.parts, func(part []int) bool { return part[0] == pipe }):
		return nil
	}
	return failf(notFound, "the entry does not exist under this target")
}

// give returns one entry. Counts are sums over the pipes.
func (t *matchTable) give(r *request, at *place, x *dataplane.Entry, want *filter) error {
	first := at.pipes[slices.IndexFunc(at.handles, func(h int64) bool { return h >= 0 })]
	e := &wire.TableEntry{TableId: t.schema.ID, Value: &wire.TableEntry_Key{Key: t.keyOf(x)}, TableFlags: r.flags, EntryTgt: r.own}
	if r.flags.GetKeyOnly() {
		e.EntryTgt = t.s.everywhere()
		if !t.scope.common() {
			e.EntryTgt.PipeId = uint32(first)
		}
		return r.out(&wire.Entity{Entity: &wire.Entity_TableEntry{TableEntry: e}})
	}
	e.Data = &wire.TableData{}
	if err := t.lead(e.Data, &x.Target, first, want); err != nil {
		return err
	}
	t.attach.tell(t, e.Data, at, r.flags.GetFromHw(), want)
	t.ageing.tell(t, e.Data, at, x, r, want)
	return r.out(&wire.Entity{Entity: &wire.Entity_TableEntry{TableEntry: e}})
}

func (t *matchTable) readDefault(r *request, pipes []int, byHandle bool, want *filter) error {
	if r.all() && len(t.scope.parts) > 1 {
		return invalidf("the pipes have different default entries")
	}
	target, ok, err := t.sw(pipes[0]).Tables().Default(t.name)
	if err != nil {
		return err
	}
	e := &wire.TableEntry{TableId: t.schema.ID, IsDefaultEntry: !byHandle, TableFlags: r.flags, Data: &wire.TableData{}}
	if ok {
		if err := t.lead(e.Data, &target, pipes[0], want); err != nil {
			return err
		}
	}
	at := &place{pipes: pipes, handles: make([]int64, len(pipes))}
	for i := range at.handles {
		at.handles[i] = int64(dataplane.DefaultEntry)
	}
	t.attach.tell(t, e.Data, at, r.flags.GetFromHw(), want)
	return r.out(&wire.Entity{Entity: &wire.Entity_TableEntry{TableEntry: e}})
}

func (t *matchTable) usage(r *request) (uint32, error) {
	pipes, err := t.scope.of(r, t.program)
	if err != nil {
		return 0, err
	}
	n := 0
	for _, part := range t.scope.parts {
		if !slices.Contains(pipes, part[0]) {
			continue
		}
		count, err := t.sw(part[0]).Tables().Count(t.name)
		if err != nil {
			return 0, err
		}
		n += count
	}
	return uint32(n), nil
}

func (t *matchTable) handle(r *request, k *wire.TableKey) (uint32, error) {
	pipes, err := t.scope.of(r, t.program)
	if err != nil {
		return 0, err
	}
	at, err := t.find(pipes, &wire.TableEntry{Value: &wire.TableEntry_Key{Key: k}})
	if err != nil {
		return 0, err
	}
	for i, pipe := range at.pipes {
		if at.handles[i] >= 0 {
			return t.number(entryAt{pipe, dataplane.Handle(at.handles[i])}), nil
		}
	}
	return 0, failf(notFound, "the entry does not exist")
}

// defaultHandle is the handle of the default entry.
const defaultHandle = 1

// number returns the handle of an entry for clients.
func (t *matchTable) number(at entryAt) uint32 {
	if t.numbers == nil {
		t.numbers, t.told, t.next = map[entryAt]uint32{}, map[uint32]entryAt{}, defaultHandle
	}
	n, ok := t.numbers[at]
	if !ok {
		t.next++
		n = t.next
		t.numbers[at], t.told[n] = n, at
	}
	return n
}
