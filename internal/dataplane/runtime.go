package dataplane

import (
	"fmt"
	"time"

	"github.com/p4lb/p4lb/internal/dataplane/lookup"
	"github.com/p4lb/p4lb/internal/dataplane/program"
)

// The methods below are the control plane's side of a Switch. Tables, profiles and
// arrays have the names of the program. A refused change has no effect; its error
// wraps one of the Err values.

func (s *Switch) table(name string) (*program.Table, error) {
	if t := s.prog.Tables[name]; t != nil {
		return t, nil
	}
	return nil, fmt.Errorf("unknown table %q", name)
}

// withTable runs f on a table under the lock and adds the table's name to the
// error.
func (s *Switch) withTable(name string, f func(*program.Table) error) error {
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

// always turns f into a function that returns no error.
func always[T any](f func(T)) func(T) error {
	return func(x T) error {
		f(x)
		return nil
	}
}

// Tables reads and writes the tables of a switch.
type Tables struct{ s *Switch }

// Tables returns the tables of the switch.
func (s *Switch) Tables() Tables { return Tables{s} }

// Add adds an entry and returns its handle.
func (ts Tables) Add(name string, e Entry) (h Handle, err error) {
	err = ts.s.tableAdd(name, e, func(t *program.Table, te program.TableEntry) (err error) {
		h, err = t.Add(te)
		return err
	})
	return h, err
}

// AddAt adds an entry with its handle, which must be free, as a saved state has it.
func (ts Tables) AddAt(name string, e Entry) error {
	return ts.s.tableAdd(name, e, func(t *program.Table, te program.TableEntry) error { return t.AddAt(e.Handle, te) })
}

func (s *Switch) tableAdd(name string, e Entry, add func(*program.Table, program.TableEntry) error) error {
	return s.withTable(name, func(t *program.Table) error {
		if t.Immutable {
			return ErrImmutable
		}
		if e.IdleTimeout > 0 && !t.Ageing {
			return ErrNotSupported
		}
		c, err := t.Resolve(e.Target, true)
		if err != nil {
			return err
		}
		te := program.TableEntry{Match: e.Match, Priority: e.Priority, Call: c, Idle: e.IdleTimeout, LastHit: s.now}
		if err = add(t, te); err == nil && t.Profile != nil {
			t.Profile.Refer(&c, 1)
		}
		return err
	})
}

// Modify changes the target of an entry.
func (ts Tables) Modify(name string, h Handle, target Target) error {
	return ts.s.withTable(name, func(t *program.Table) error {
		if t.Immutable {
			return ErrImmutable
		}
		e, err := t.Entry(h)
		if err != nil {
			return err
		}
		c, err := t.Resolve(target, true)
		if err != nil {
			return err
		}
		if t.Profile != nil {
			t.Profile.Refer(&c, 1)
			t.Profile.Refer(&e.Call, -1)
		}
		t.SetCall(e, h, c)
		return nil
	})
}

// Delete removes an entry.
func (ts Tables) Delete(name string, h Handle) error {
	return ts.s.withTable(name, func(t *program.Table) error {
		if t.Immutable {
			return ErrImmutable
		}
		if _, err := t.Entry(h); err != nil {
			return err
		}
		t.Delete(h.Slot())
		return nil
	})
}

// Clear removes all entries, and restores the program's default action if
// withDefault is set.
func (ts Tables) Clear(name string, withDefault bool) error {
	return ts.s.withTable(name, func(t *program.Table) error {
		if t.Immutable {
			return ErrImmutable
		}
		t.Clear(withDefault)
		return nil
	})
}

// Find returns the handle of the entry with a match and, in a ternary or
// range table, a priority.
func (ts Tables) Find(name string, match []Match, priority int) (h Handle, err error) {
	err = ts.s.withTable(name, func(t *program.Table) error {
		e := program.TableEntry{Match: match, Priority: priority}
		if _, err := t.Prepare(&e); err != nil {
			return err
		}
		i := t.Same(&e)
		if i == lookup.None {
			return ErrBadHandle
		}
		h = t.Handle(int(i))
		return nil
	})
	return h, err
}

// Entry returns an entry.
func (ts Tables) Entry(name string, h Handle) (e Entry, err error) {
	err = ts.s.withTable(name, func(t *program.Table) error {
		te, err := t.Entry(h)
		if err != nil {
			return err
		}
		e = te.Export(h)
		return nil
	})
	return e, err
}

// Entries returns a snapshot of all entries by handle.
func (ts Tables) Entries(name string) (list []Entry, err error) {
	err = ts.s.withTable(name, always(func(t *program.Table) {
		for slot := range t.Entries {
			if t.Entries[slot].Used {
				list = append(list, t.Entries[slot].Export(t.Handle(slot)))
			}
		}
	}))
	return list, err
}

// Count returns the number of entries of a table.
func (ts Tables) Count(name string) (n int, err error) {
	err = ts.s.withTable(name, always(func(t *program.Table) { n = t.Count }))
	return n, err
}

// Walk returns at most most entries in order of their handles, and the
// position at which to continue, or a negative number at the end. An entry that
// stays in the table during the walk appears once.
func (ts Tables) Walk(name string, from, most int) (list []Entry, next int, err error) {
	next = -1
	err = ts.s.withTable(name, always(func(t *program.Table) {
		for slot := from; slot < len(t.Entries); slot++ {
			if slot == from+most {
				next = slot
				break
			}
			if t.Entries[slot].Used {
				list = append(list, t.Entries[slot].Export(t.Handle(slot)))
			}
		}
	}))
	return list, next, err
}

// Unlock allows changes to the entries of a table that the program has
// filled. P4 forbids them for const entries only; BMv2 JSON does not
// distinguish the two.
func (ts Tables) Unlock(name string) error {
	return ts.s.withTable(name, always(func(t *program.Table) { t.Immutable = false }))
}

// SetDefault sets the action of a table on a miss.
func (ts Tables) SetDefault(name string, target Target) error {
	return ts.s.withTable(name, func(t *program.Table) error {
		if t.ConstDef {
			return ErrConstDefault
		}
		c, err := t.Resolve(target, false)
		if err != nil {
			return err
		}
		if t.ConstAction != nil && c.Action != t.ConstAction {
			return ErrConstAction
		}
		if t.Profile != nil {
			t.Profile.Refer(&c, 1)
			if t.DefUsed {
				t.Profile.Refer(&t.Def, -1)
			}
		}
		t.Def, t.DefUsed = c, true
		return nil
	})
}

// ResetDefault restores the program's default action.
func (ts Tables) ResetDefault(name string) error {
	return ts.s.withTable(name, always(func(t *program.Table) { t.ResetDefault() }))
}

// Default returns the action of a table on a miss; ok is false if there is
// none.
func (ts Tables) Default(name string) (target Target, ok bool, err error) {
	err = ts.s.withTable(name, always(func(t *program.Table) {
		if ok = t.DefUsed; ok {
			target = t.Def.ToTarget()
		}
	}))
	return target, ok, err
}

// A KeyField describes a field of a table's key.
type KeyField struct {
	Name  string
	Kind  MatchKind
	Width int
}

// Key describes a table's key; ordered reports whether entries have a
// priority.
func (ts Tables) Key(name string) (fields []KeyField, ordered bool, err error) {
	err = ts.s.withTable(name, always(func(t *program.Table) {
		for _, f := range t.Key.Fields {
			fields = append(fields, KeyField{f.Name, f.Kind, f.Width})
		}
		ordered = t.Ordered()
	}))
	return fields, ordered, err
}

// ActionWidths returns the widths of an action's parameters.
func (s *Switch) ActionWidths(name string) (widths []int, err error) {
	a := s.prog.ActionByName(name)
	if a == nil {
		return nil, fmt.Errorf("unknown action %q", name)
	}
	for _, p := range a.Params {
		widths = append(widths, p.Width)
	}
	return widths, nil
}

// SetIdleTimeout sets the idle timeout of an entry and restarts it.
func (ts Tables) SetIdleTimeout(name string, h Handle, timeout, now time.Duration) error {
	return ts.s.withTable(name, func(t *program.Table) error {
		if !t.Ageing {
			return ErrNotSupported
		}
		e, err := t.Entry(h)
		if err != nil {
			return err
		}
		e.Idle, e.LastHit = timeout, now
		return nil
	})
}

// LastHit returns the time of an entry's last hit (or of SetIdleTimeout).
func (ts Tables) LastHit(name string, h Handle) (at time.Duration, err error) {
	err = ts.s.withTable(name, func(t *program.Table) error {
		if !t.Ageing {
			return ErrNotSupported
		}
		e, err := t.Entry(h)
		if err != nil {
			return err
		}
		at = e.LastHit
		return nil
	})
	return at, err
}

// IdleEntries returns at most most entries of a table without a hit for their idle
// timeout. The search starts at from; next is the position at which to continue, so
// that small batches reach all entries.
func (ts Tables) IdleEntries(name string, now time.Duration, from, most int) (list []Entry, next int, err error) {
	err = ts.s.withTable(name, always(func(t *program.Table) {
		if from >= len(t.Entries) {
			from = 0
		}
		next = from
		for i := range t.Entries {
			if len(list) == most {
				break
			}
			slot := (from + i) % len(t.Entries)
			next = slot + 1
			if e := &t.Entries[slot]; e.Used && e.Idle > 0 && now-e.LastHit >= e.Idle {
				list = append(list, e.Export(t.Handle(slot)))
			}
		}
	}))
	return list, next, err
}

// Reset empties action profiles, multicast groups and tables that are not
// constant, and restores the initial counters, meters and registers. Clone
// sessions stay.
func (s *Switch) Reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.prog.Tables {
		if !t.Immutable && !t.Fixed {
			t.Clear(true)
		}
	}
	for _, pr := range s.prog.Profiles {
		// The members of constant entries stay.
		pr.Clear()
	}
	for _, c := range s.prog.Counters {
		clear(c.Cells)
	}
	for _, m := range s.prog.Meters {
		for i := range m.Cells {
			m.Cells[i].Configured = false
		}
		m.Missed.Configured = false
	}
	for _, r := range s.prog.Registers {
		r.Reset()
	}
	s.pre = replication{}
}
