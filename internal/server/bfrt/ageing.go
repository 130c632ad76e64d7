package server

import (
	"maps"
	"slices"
	"time"

	"github.com/p4lb/p4lb/internal/bfrt/wire"
	"github.com/p4lb/p4lb/internal/dataplane"
	"github.com/p4lb/p4lb/internal/server/p4rt"
)

func (a *ageing) timeout(d *entryData) time.Duration {
	if d.ttl == nil {
		return 0
	}
	return time.Duration(*d.ttl) * time.Millisecond
}

func (a *ageing) woken(pipe int, h dataplane.Handle) { delete(a.idle, entryAt{pipe, h}) }

func (a *ageing) forget(pipe int, h dataplane.Handle) {
	a.woken(pipe, h)
	delete(a.active, entryAt{pipe, h})
	delete(a.came, entryAt{pipe, h})
}

// save returns a function that restores the time to live and the hit state of an entry.
// The entry may have another handle by then.
func (a *ageing) save(t *matchTable, pipe int, x *dataplane.Entry) func(h dataplane.Handle) {
	at := entryAt{pipe, x.Handle}
	last, err := t.sw(pipe).Tables().LastHit(t.name, at.handle)
	if err != nil { // entries of the table do not age
		return func(dataplane.Handle) {}
	}
	active, came := a.active[at], a.came[at]
	return func(h dataplane.Handle) {
		t.sw(pipe).Tables().SetIdleTimeout(t.name, h, x.IdleTimeout, last)
		at := entryAt{pipe, h}
		if delete(a.active, at); active {
			a.active[at] = true
		}
		if delete(a.came, at); came > 0 {
			a.came[at] = came
		}
	}
}

// configure sets the idle timeout of the table.
func (a *ageing) configure(t *matchTable, c *wire.IdleTable) error {
	if c.GetEnable() && c.GetIdleTableMode() == wire.IdleTable_IDLE_TABLE_NOTIFY_MODE && c.GetMaxTtl() != 0 && c.GetMinTtl() > c.GetMaxTtl() {
		return invalidf("the least time to live, %d ms, is above the greatest, %d ms", c.GetMinTtl(), c.GetMaxTtl())
	}
	if c.GetIdleTableMode() == wire.IdleTable_IDLE_TABLE_POLL_MODE {
		c = &wire.IdleTable{Enable: c.GetEnable(), IdleTableMode: c.GetIdleTableMode()} // the other fields are for the other mode
	}
	every := time.Duration(0)
	if c.GetEnable() {
		every = max(time.Duration(c.GetTtlQueryInterval())*time.Millisecond, p4rt.IdleScan)
	}
	a.passed.change(t.s.dev.Elapsed(), every)
	if a.config.GetIdleTableMode() != c.GetIdleTableMode() {
		clear(a.idle) // reported entries must not stay reported while ageing is off
	}
	a.config = c
	clear(a.active)
	t.s.idle.Wake()
	return nil
}

// update records which entries were hit since the previous update.
func (a *ageing) update(t *matchTable) {
	now := t.s.dev.Elapsed()
	clear(a.active)
	for _, pipe := range t.program.pipes {
		list, err := t.sw(pipe).Tables().Entries(t.name)
		if err != nil {
			continue
		}
		for _, x := range list {
			at := entryAt{pipe, x.Handle}
			if hit, err := t.sw(pipe).Tables().LastHit(t.name, x.Handle); err == nil && hit > max(a.polled, a.came[at]) {
				a.active[at] = true
			}
		}
	}
	a.polled = now
}

// arrived records that a new entry has no hits yet.
func (a *ageing) arrived(t *matchTable, pipe int, h dataplane.Handle) {
	if a.ttl != nil {
		a.came[entryAt{pipe, h}] = t.s.dev.Elapsed()
	}
}

// set sets the hit state of an entry to a client's value.
func (a *ageing) set(pipe int, h dataplane.Handle, state string) {
	if at := (entryAt{pipe, h}); state == "ENTRY_ACTIVE" {
		a.active[at] = true
	} else {
		delete(a.active, at)
	}
}

// tell adds the time to live and the hit state to an entry's data.
func (a *ageing) tell(t *matchTable, out *wire.TableData, at *place, x *dataplane.Entry, r *request, want *filter) {
	if a.ttl == nil {
		return
	}
	last, active := time.Duration(0), false
	for i, pipe := range at.pipes {
		if at.handles[i] >= 0 {
			active = active || a.active[entryAt{pipe, dataplane.Handle(at.handles[i])}]
			hit, _ := t.sw(pipe).Tables().LastHit(t.name, dataplane.Handle(at.handles[i]))
			last = max(last, hit)
		}
	}
	if a.hit != nil && a.config.GetEnable() && a.config.GetIdleTableMode() == wire.IdleTable_IDLE_TABLE_POLL_MODE && want.has(a.hit.id) {
		out.Fields = append(out.Fields, a.hit.text(ifElse(active, "ENTRY_ACTIVE", "ENTRY_IDLE")))
	}
	if a.config.GetIdleTableMode() == wire.IdleTable_IDLE_TABLE_NOTIFY_MODE && want.has(a.ttl.id) {
		ttl := x.IdleTimeout
		if r.flags.GetFromHw() && ttl > 0 {
			ttl = max(0, ttl-a.passed.since(last, t.s.dev.Elapsed()))
		}
		out.Fields = append(out.Fields, a.ttl.number(uint64(ttl/time.Millisecond)))
	}
}

// idleAtOnce bounds the entries of a table that are checked under one lock.
const idleAtOnce = 1 << 12

// reportIdle notifies clients of idle entries. It reports whether any table notifies.
func (s *Server) reportIdle() (again bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.programs {
		for _, id := range slices.Sorted(maps.Keys(p.tables)) {
			t, ok := p.tables[id].(*matchTable)
			if !ok || !t.ageing.config.GetEnable() || t.ageing.config.GetIdleTableMode() != wire.IdleTable_IDLE_TABLE_NOTIFY_MODE {
				continue
			}
			again = true
			for _, part := range t.scope.parts {
				t.reportIdle(part)
			}
		}
	}
	return again
}

// reportIdle reports entries that no pipe of a part has hit for their time to live.
// It also reports that an idle entry was hit again.
func (t *matchTable) reportIdle(part []int) {
	a, now := &t.ageing, t.s.dev.Elapsed()
	first := part[0]
	last := func(h dataplane.Handle) time.Duration {
		var v time.Duration
		for _, pipe := range part {
			hit, _ := t.sw(pipe).Tables().LastHit(t.name, h)
			v = max(v, hit)
		}
		return v
	}
	for at, told := range a.idle {
		if at.pipe != first {
			continue
		}
		x, err := t.sw(first).Tables().Entry(t.name, at.handle)
		if err != nil {
			delete(a.idle, at)
			continue
		}
		// Report a hit even if it is old, because this check may be late.
		if last(at.handle) > told {
			delete(a.idle, at)
			t.tellIdle(part, &x, wire.IdleTimeoutNotification_ENTRY_ACTIVE, (*wire.Subscribe_Notifications).GetEnableEntryActiveNotifications)
		}
	}
	list, next, err := t.sw(first).Tables().IdleEntries(t.name, now, a.from[first], idleAtOnce)
	if err != nil {
		return
	}
	a.from[first] = next
	for i := range list {
		x := &list[i]
		at := entryAt{first, x.Handle}
		if _, told := a.idle[at]; !told && a.passed.since(last(x.Handle), now) >= x.IdleTimeout {
			a.idle[at] = now
			t.tellIdle(part, x, wire.IdleTimeoutNotification_ENTRY_IDLE, (*wire.Subscribe_Notifications).GetEnableIdletimeoutNotifications)
		}
	}
}

func (t *matchTable) tellIdle(part []int, x *dataplane.Entry, kind wire.IdleTimeoutNotification_NotificationType, wants func(*wire.Subscribe_Notifications) bool) {
	to := t.s.everywhere()
	if len(t.scope.parts) > 1 {
		to.PipeId = uint32(part[0])
	}
	t.s.clients.tell(wants, t.program, &wire.StreamMessageResponse{Update: &wire.StreamMessageResponse_IdleTimeoutNotification{
		IdleTimeoutNotification: &wire.IdleTimeoutNotification{
			Target: to, Type: kind,
			TableEntry: &wire.TableEntry{TableId: t.schema.ID, Value: &wire.TableEntry_Key{Key: t.keyOf(x)}},
		},
	}})
}
