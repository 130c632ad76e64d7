package p4rt

import (
	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"

	"github.com/p4lb/p4lb/internal/dataplane"
)

// A shower makes the entity of an entry, with what packets have changed of it if
// the read asks for that.
type shower func(*p4v1.TableEntry, *lastSeen) *p4v1.Entity

// look reads what packets change of an entry. No packet is processed meanwhile.
func (p *pipeline) look(t *tableState, e *tableEntry) *lastSeen {
	s := &lastSeen{}
	if t.info.counter {
		s.counter = p.entryCounter(t, e)
	}
	if t.info.meter != nil {
		s.meter = p.meterCounters(t.info.meter, int(e.handle))
	}
	if t.timesOut() && e.handle != dataplane.DefaultEntry {
		at, err := p.sw.LastHit(t.info.name, e.handle)
		p.must(err)
		s.idle = &p4v1.TableEntry_IdleTimeout{ElapsedNs: int64(max(0, p.clock()-at))}
	}
	return s
}

// planRow plans one entry.
func (p *pipeline) planRow(out *plan, t *tableState, r row, volatile bool, show shower) {
	if !volatile {
		out.one(show(r.msg, nil))
		return
	}
	p.hold(out)
	out.walk(func(a *answer) error { return p.addRows(a, t, []row{r}, show) })
}

// planRows plans the entries of a table that are picked, out of those that it
// has now.
func (p *pipeline) planRows(out *plan, t *tableState, volatile bool, show shower, pick func(row) bool) {
	rows := t.rows.view()
	if !volatile {
		out.walk(func(a *answer) error {
			for _, r := range rows.all() {
				if !pick(r) {
					continue
				}
				if err := a.add(show(r.msg, nil)); err != nil {
					return err
				}
			}
			return nil
		})
		return
	}
	p.hold(out)
	out.walk(func(a *answer) error {
		some := make([]row, 0, chunk)
		for _, r := range rows.all() {
			if !pick(r) {
				continue
			}
			if some = append(some, r); len(some) < chunk {
				continue
			}
			if err := p.addRows(a, t, some, show); err != nil {
				return err
			}
			some = some[:0]
		}
		return p.addRows(a, t, some, show)
	})
}

// hold has entries that are removed keep what packets have changed of them, as
// long as the plan is open.
func (p *pipeline) hold(out *plan) {
	p.readers.Add(1)
	out.done = append(out.done, func() { p.readers.Add(-1) })
}

// addRows adds entries with what packets have changed of them, which is looked
// at while no packet is processed: else each look would wait for a packet. An
// entry that has been removed meanwhile is as it was then.
func (p *pipeline) addRows(a *answer, t *tableState, rows []row, show shower) error {
	seen := make([]*lastSeen, len(rows))
	p.dev.Exclusively(func() {
		for i, r := range rows {
			if seen[i] = r.entry.last; seen[i] == nil {
				seen[i] = p.look(t, r.entry)
			}
		}
	})
	for i, r := range rows {
		if err := a.add(show(r.msg, seen[i])); err != nil {
			return err
		}
	}
	return nil
}
