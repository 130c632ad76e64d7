package p4rt

import (
	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/p4lb/p4lb/internal/dataplane"
)

// A shower returns the entity for an entry. lastSeen is nil unless the read
// includes data changed by packets. A shower may change the message. A nil shower stands
// for the entry as it was written.
type shower func(*p4v1.TableEntry, *lastSeen) *p4v1.Entity

// look reads the data of an entry that packets change. The caller ensures that
// no packet is processed.
func (p *pipeline) look(t *tableState, e *tableEntry) *lastSeen {
	s := &lastSeen{}
	if t.info.counter {
		s.counter = p.entryCounter(t, e)
	}
	if t.info.meter != nil {
		s.meter = p.meterCounters(t.info.meter, int(e.handle))
	}
	if t.timesOut() && e.handle != dataplane.DefaultEntry {
		at, err := p.sw.Tables().LastHit(t.info.name, e.handle)
		p.must(err)
		s.idle = &p4v1.TableEntry_IdleTimeout{ElapsedNs: int64(max(0, p.clock()-at))}
	}
	return s
}

// entryTag is the tag of a table entry in an entity.
const entryTag = 2<<3 | byte(protowire.BytesType)

// row adds an entry.
func (a *answer) row(r row, show shower, seen *lastSeen) error {
	switch {
	case show != nil:
		return a.add(show(r.text.message(), seen))
	case a.stream == nil:
		return a.take(entityOf(r.text.message()))
	}
	size := 1 + protowire.SizeBytes(len(r.text))
	if err := a.room(size); err != nil {
		return err
	}
	a.buf = protowire.AppendVarint(append(a.buf, entityTag), uint64(size))
	a.buf = protowire.AppendString(append(a.buf, entryTag), string(r.text))
	return nil
}

func entityOf(m *p4v1.TableEntry) *p4v1.Entity {
	return &p4v1.Entity{Entity: &p4v1.Entity_TableEntry{TableEntry: m}}
}

func rowOf(e *tableEntry) row { return row{e.text, e} }

// planRow plans one entry.
func (p *pipeline) planRow(out *plan, t *tableState, r row, volatile bool, show shower) {
	if !volatile {
		out.walk(func(a *answer) error { return a.row(r, show, nil) })
		return
	}
	p.hold(out)
	out.walk(func(a *answer) error { return p.addRows(a, t, []row{r}, show) })
}

// planRows plans the current entries of a table for which pick returns true.
func (p *pipeline) planRows(out *plan, t *tableState, volatile bool, show shower, pick func(row) bool) {
	rows := t.rows.view()
	if !volatile {
		out.walk(func(a *answer) error {
			for _, r := range rows.all() {
				if !pick(r) {
					continue
				}
				if err := a.row(r, show, nil); err != nil {
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

// hold makes removed entries keep their counters and meters while the plan is
// open.
func (p *pipeline) hold(out *plan) {
	p.readers.Add(1)
	out.done = append(out.done, func() { p.readers.Add(-1) })
}

// addRows adds entries with the data changed by packets. It reads a whole batch
// between packets, because waiting for a packet per entry would take long. An
// entry removed in the meantime has the data it had then.
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
		if err := a.row(r, show, seen[i]); err != nil {
			return err
		}
	}
	return nil
}
