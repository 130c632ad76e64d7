package dataplane

import (
	"fmt"
	"time"

	"github.com/p4lb/p4lb/dataplane/lookup"
)

// What follows is the control plane's side of a Switch. Tables, profiles and
// arrays go by the names in the program. A refused change leaves everything as
// it was; the error wraps one of the Err values.

func (s *Switch) table(name string) (*table, error) {
	if t := s.tables[name]; t != nil {
		return t, nil
	}
	return nil, fmt.Errorf("unknown table %q", name)
}

// withTable runs f on a table under the lock and names it in the error.
func (s *Switch) withTable(name string, f func(*table) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, err := s.table(name)
	if err != nil {
		return err
	}
	if err := f(t); err != nil {
		return fmt.Errorf("table %s: %w", name, err)
	}
	return nil
}

// TableAdd adds an entry and returns its handle.
func (s *Switch) TableAdd(name string, e Entry) (h Handle, err error) {
	err = s.withTable(name, func(t *table) error {
		if t.immutable {
			return ErrImmutable
		}
		if e.IdleTimeout > 0 && !t.ageing {
			return ErrNotSupported
		}
		c, err := t.resolve(e.Target, true)
		if err != nil {
			return err
		}
		te := tableEntry{match: e.Match, priority: e.Priority, call: c, idle: e.IdleTimeout, lastHit: s.now}
		if h, err = t.add(te); err == nil && t.profile != nil {
			t.profile.refer(&c, 1)
		}
		return err
	})
	return h, err
}

// TableModify changes what an entry leads to.
func (s *Switch) TableModify(name string, h Handle, target Target) error {
	return s.withTable(name, func(t *table) error {
		if t.immutable {
			return ErrImmutable
		}
		e, err := t.entry(h)
		if err != nil {
			return err
		}
		c, err := t.resolve(target, true)
		if err != nil {
			return err
		}
		if t.profile != nil {
			t.profile.refer(&c, 1)
			t.profile.refer(&e.call, -1)
		}
		e.call = c
		return nil
	})
}

// TableDelete removes an entry.
func (s *Switch) TableDelete(name string, h Handle) error {
	return s.withTable(name, func(t *table) error {
		if t.immutable {
			return ErrImmutable
		}
		if _, err := t.entry(h); err != nil {
			return err
		}
		t.delete(h.Slot())
		return nil
	})
}

// TableClear removes all entries, and puts the default action of the program
// back if withDefault is set.
func (s *Switch) TableClear(name string, withDefault bool) error {
	return s.withTable(name, func(t *table) error {
		if t.immutable {
			return ErrImmutable
		}
		t.clear(withDefault)
		return nil
	})
}

// TableFind returns the handle of the entry with a match and, in a ternary or
// range table, a priority.
func (s *Switch) TableFind(name string, match []Match, priority int) (h Handle, err error) {
	err = s.withTable(name, func(t *table) error {
		e := tableEntry{match: match, priority: priority}
		if _, err := t.prepare(&e); err != nil {
			return err
		}
		i := t.same(&e)
		if i == lookup.None {
			return ErrBadHandle
		}
		h = t.handle(int(i))
		return nil
	})
	return h, err
}

// TableEntry returns an entry.
func (s *Switch) TableEntry(name string, h Handle) (e Entry, err error) {
	err = s.withTable(name, func(t *table) error {
		te, err := t.entry(h)
		if err != nil {
			return err
		}
		e = te.export(h)
		return nil
	})
	return e, err
}

// TableEntries returns all entries by handle, those of one moment.
func (s *Switch) TableEntries(name string) (list []Entry, err error) {
	err = s.withTable(name, func(t *table) error {
		for slot := range t.entries {
			if t.entries[slot].used {
				list = append(list, t.entries[slot].export(t.handle(slot)))
			}
		}
		return nil
	})
	return list, err
}

// TableCount is how many entries a table has.
func (s *Switch) TableCount(name string) (n int, err error) {
	err = s.withTable(name, func(t *table) error {
		n = t.count
		return nil
	})
	return n, err
}

// TableWalk returns some entries, in order of their handles, and where to go on:
// below 0 it has seen all. What stays in the table all the while comes once.
func (s *Switch) TableWalk(name string, from, most int) (list []Entry, next int, err error) {
	next = -1
	err = s.withTable(name, func(t *table) error {
		for slot := from; slot < len(t.entries); slot++ {
			if slot == from+most {
				next = slot
				break
			}
			if t.entries[slot].used {
				list = append(list, t.entries[slot].export(t.handle(slot)))
			}
		}
		return nil
	})
	return list, next, err
}

func (e *tableEntry) export(h Handle) Entry {
	return Entry{Handle: h, Match: e.match, Priority: e.priority, Target: e.call.toTarget(), IdleTimeout: e.idle, Const: e.constant}
}

// TableUnlock lets the entries of a table that the program has filled be
// changed, as those of any other: P4 has it so unless it says const entries,
// BMv2 JSON does not tell the two apart.
func (s *Switch) TableUnlock(name string) error {
	return s.withTable(name, func(t *table) error {
		t.immutable = false
		return nil
	})
}

// TableSetDefault sets what a table does on a miss.
func (s *Switch) TableSetDefault(name string, target Target) error {
	return s.withTable(name, func(t *table) error {
		if t.constDef {
			return ErrConstDefault
		}
		c, err := t.resolve(target, false)
		if err != nil {
			return err
		}
		if t.constAction != nil && c.action != t.constAction {
			return ErrConstAction
		}
		if t.profile != nil {
			t.profile.refer(&c, 1)
			if t.defUsed {
				t.profile.refer(&t.def, -1)
			}
		}
		t.def, t.defUsed = c, true
		return nil
	})
}

// TableResetDefault puts the default action of the program back.
func (s *Switch) TableResetDefault(name string) error {
	return s.withTable(name, func(t *table) error {
		t.resetDefault()
		return nil
	})
}

// TableDefault returns what a table does on a miss; ok is false if nothing.
func (s *Switch) TableDefault(name string) (target Target, ok bool, err error) {
	err = s.withTable(name, func(t *table) error {
		if ok = t.defUsed; ok {
			target = t.def.toTarget()
		}
		return nil
	})
	return target, ok, err
}

// A KeyField describes a field of a table's key.
type KeyField struct {
	Name  string
	Kind  MatchKind
	Width int
}

// TableKey describes a table's key; ordered is whether entries have a
// priority.
func (s *Switch) TableKey(name string) (fields []KeyField, ordered bool, err error) {
	err = s.withTable(name, func(t *table) error {
		for _, f := range t.key.fields {
			fields = append(fields, KeyField{f.name, f.kind, f.width})
		}
		ordered = t.ordered()
		return nil
	})
	return fields, ordered, err
}

// ActionWidths returns the widths of an action's parameters.
func (s *Switch) ActionWidths(name string) (widths []int, err error) {
	a := s.actionByName(name)
	if a == nil {
		return nil, fmt.Errorf("unknown action %q", name)
	}
	for _, p := range a.params {
		widths = append(widths, p.Width)
	}
	return widths, nil
}

// SetIdleTimeout sets the idle timeout of an entry; the time begins anew.
func (s *Switch) SetIdleTimeout(name string, h Handle, timeout, now time.Duration) error {
	return s.withTable(name, func(t *table) error {
		if !t.ageing {
			return ErrNotSupported
		}
		e, err := t.entry(h)
		if err != nil {
			return err
		}
		e.idle, e.lastHit = timeout, now
		return nil
	})
}

// LastHit is the time of an entry's last hit (or of SetIdleTimeout).
func (s *Switch) LastHit(name string, h Handle) (at time.Duration, err error) {
	err = s.withTable(name, func(t *table) error {
		if !t.ageing {
			return ErrNotSupported
		}
		e, err := t.entry(h)
		if err != nil {
			return err
		}
		at = e.lastHit
		return nil
	})
	return at, err
}

// IdleEntries returns entries of a table that have not been hit for their idle
// timeout, at most so many. The search begins at a place in the table, and next
// is the one to go on with, so that with few at a time all have their turn.
func (s *Switch) IdleEntries(name string, now time.Duration, from, most int) (list []Entry, next int, err error) {
	err = s.withTable(name, func(t *table) error {
		if from >= len(t.entries) {
			from = 0
		}
		next = from
		for i := range t.entries {
			if len(list) == most {
				break
			}
			slot := (from + i) % len(t.entries)
			next = slot + 1
			if e := &t.entries[slot]; e.used && e.idle > 0 && now-e.lastHit >= e.idle {
				list = append(list, e.export(t.handle(slot)))
			}
		}
		return nil
	})
	return list, next, err
}

// Reset empties tables that are not constant, action profiles and multicast groups,
// and makes counters, meters and registers as they were in the
// beginning. Clone sessions stay.
func (s *Switch) Reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.tables {
		if !t.immutable && !t.fixed {
			t.clear(true)
		}
	}
	for _, pr := range s.profiles {
		// What a constant entry refers to stays.
		pr.clear()
	}
	for _, c := range s.counters {
		clear(c.Cells)
	}
	for _, m := range s.meters {
		for i := range m.Cells {
			m.Cells[i].Configured = false
		}
		m.Missed.Configured = false
	}
	for _, r := range s.registers {
		r.Reset()
	}
	s.pre = replication{}
}
