package server

import (
	"math/big"
	"slices"
	"strings"

	"google.golang.org/grpc/codes"

	"github.com/p4lb/p4lb/internal/bfrt/wire"
	"github.com/p4lb/p4lb/internal/dataplane"
	"github.com/p4lb/p4lb/internal/text/lists"
)

func (a *attachments) find(t *matchTable, p *program) error {
	a.specs, a.known = map[entryAt]spec{}, map[entryAt]dataplane.Count{}
	a.bytes, a.packets = t.field("$COUNTER_SPEC_BYTES"), t.field("$COUNTER_SPEC_PKTS")
	if s := newMeterSpec(t.table); s != nil {
		if s.name = p.directMeter(t.name); s.name == "" {
			return failf(codes.Internal, "table %s has a meter that the program lacks", t.name)
		}
		a.meter = s
	}
	for _, kind := range []struct {
		dst    **filterSpec
		prefix string
		wred   bool
	}{{&a.lpf, "$LPF_SPEC_", false}, {&a.wred, "$WRED_SPEC_", true}} {
		if s := newFilterSpec(t.table, kind.prefix, kind.wred); s != nil {
			if s.name = p.directFilter(t.name, kind.wred); s.name == "" {
				return failf(codes.Internal, "table %s has a filter that the program lacks", t.name)
			}
			*kind.dst = s
		}
	}
	cells := map[string]*registerCell{}
	for _, d := range t.schema.Data {
		f := d.Singleton
		if f == nil || !isRegister(f) {
			continue
		}
		name := p.short(f.Name[:strings.LastIndexByte(f.Name, '.')])
		c := cells[name]
		if c == nil {
			c = &registerCell{name: name}
			cells[name] = c
			a.registers = append(a.registers, c)
		}
		c.parts = append(c.parts, t.fields[f.ID])
	}
	for _, c := range a.registers {
		if err := c.measure(p); err != nil {
			return err
		}
	}
	return nil
}

// renew clears the state that a deleted entry left at the place of a new one.
func (a *attachments) renew(t *matchTable, pipe int, h dataplane.Handle) {
	for _, c := range a.registers {
		c.reset(t.sw(pipe), h.Slot())
	}
	for _, k := range []*filterSpec{a.lpf, a.wred} {
		if k != nil {
			k.reset(t.sw(pipe), h.Slot())
		}
	}
}

func (a *attachments) forget(pipe int, h dataplane.Handle) {
	delete(a.specs, entryAt{pipe, h})
	delete(a.known, entryAt{pipe, h})
}

// count returns the counter of an entry: from the chip if fresh, else as last synced.
func (a *attachments) count(t *matchTable, pipe int, h dataplane.Handle, fresh bool) dataplane.Count {
	at := entryAt{pipe, h}
	if fresh {
		a.known[at], _ = t.sw(pipe).Tables().Counter(t.name, h)
	}
	return a.known[at]
}

// sync copies the counters of all entries from the chip.
func (a *attachments) sync(t *matchTable) {
	if a.bytes == nil && a.packets == nil {
		return
	}
	for _, pipe := range t.program.pipes {
		list, err := t.sw(pipe).Tables().Entries(t.name)
		if err != nil {
			continue
		}
		for _, x := range list {
			a.count(t, pipe, x.Handle, true)
		}
		a.count(t, pipe, dataplane.DefaultEntry, true)
	}
}

// set applies an update's counters, rates and registers. A read returns the sum of a
// counter over the pipes, so set writes the value into the first pipe.
func (a *attachments) set(t *matchTable, pipe int, h dataplane.Handle, d *entryData, first bool) error {
	if len(d.rest) == 0 {
		return nil
	}
	sw, at := t.sw(pipe), entryAt{pipe, h}
	var count *dataplane.Count
	s := a.specs[at]
	rates, filters := false, false
	for _, x := range d.rest {
		f := t.fields[x.GetFieldId()]
		switch {
		case f == a.bytes || f == a.packets:
			if count == nil {
				c, err := sw.Tables().Counter(t.name, h)
				if err != nil {
					return err
				}
				count = &c
			}
			n := ifElse(first, uintOf(x.GetStream()), 0)
			if f == a.bytes {
				count.Bytes = n
			} else {
				count.Packets = n
			}
		case a.cell(f) != nil:
			if h == dataplane.DefaultEntry {
				return failf(unimplemented, "the default entry has no register cell")
			}
			if err := a.cell(f).set(sw, h.Slot(), f, x.GetStream()); err != nil {
				return err
			}
		default:
			next := spec{x.GetFieldId(): x}
			for k, v := range s {
				if k != x.GetFieldId() {
					next[k] = v
				}
			}
			s = next
			rates = rates || a.meter != nil && a.meter.fields.has(f)
			filters = filters || !(a.meter != nil && a.meter.fields.has(f))
		}
	}
	if count != nil {
		if err := sw.Tables().SetCounter(t.name, h, *count); err != nil {
			return err
		}
		a.known[at] = *count
	}
	if rates {
		if err := a.meter.apply(sw, int(h), s); err != nil {
			return err
		}
	}
	if filters {
		for _, k := range []*filterSpec{a.lpf, a.wred} {
			if k == nil {
				continue
			}
			if h == dataplane.DefaultEntry {
				return failf(unimplemented, "the default entry has no filter")
			}
			if err := k.apply(sw, h.Slot(), s); err != nil {
				return err
			}
		}
	}
	if rates || filters {
		a.specs[at] = s
	}
	return nil
}

func (a *attachments) cell(f *datum) *registerCell {
	return lists.First(a.registers, func(c *registerCell) bool { return slices.Contains(c.parts, f) })
}

// saved is the state that a rollback restores.
type saved struct {
	count dataplane.Count
	known dataplane.Count
	spec  spec
	cells []*big.Int
}

func (a *attachments) save(t *matchTable, pipe int, h dataplane.Handle) *saved {
	x := &saved{spec: a.specs[entryAt{pipe, h}]}
	if a.bytes != nil || a.packets != nil {
		x.count, _ = t.sw(pipe).Tables().Counter(t.name, h)
		x.known = a.known[entryAt{pipe, h}]
	}
	for _, c := range a.registers {
		if h != dataplane.DefaultEntry {
			v, _ := t.sw(pipe).Registers().Read(c.name, h.Slot())
			x.cells = append(x.cells, v)
		}
	}
	return x
}

func (a *attachments) restore(t *matchTable, pipe int, h dataplane.Handle, x *saved) {
	sw := t.sw(pipe)
	if a.bytes != nil || a.packets != nil {
		sw.Tables().SetCounter(t.name, h, x.count)
	}
	for i, v := range x.cells {
		if v != nil {
			sw.Registers().Write(a.registers[i].name, h.Slot(), v)
		}
	}
	a.forget(pipe, h)
	a.known[entryAt{pipe, h}] = x.known
	if x.spec != nil {
		a.specs[entryAt{pipe, h}] = x.spec
	}
	if a.meter != nil {
		if a.meter.fields.given(x.spec) {
			a.meter.apply(sw, int(h), x.spec)
		} else {
			sw.Meters().Reset(a.meter.name, int(h))
		}
	}
	for _, k := range []*filterSpec{a.lpf, a.wred} {
		switch {
		case k == nil || h == dataplane.DefaultEntry:
		case k.fields.given(x.spec):
			k.apply(sw, h.Slot(), x.spec)
		default:
			k.reset(sw, h.Slot())
		}
	}
}

// tell adds the attachments to the data of an entry.
func (a *attachments) tell(t *matchTable, out *wire.TableData, at *place, fresh bool, want *filter) {
	if a.bytes != nil || a.packets != nil {
		var sum dataplane.Count
		for i, pipe := range at.pipes {
			if at.handles[i] >= 0 {
				c := a.count(t, pipe, dataplane.Handle(at.handles[i]), fresh)
				sum.Bytes += c.Bytes
				sum.Packets += c.Packets
			}
		}
		tellCount(out, a.bytes, a.packets, sum, want)
	}
	for _, c := range a.registers {
		for i, pipe := range at.pipes {
			if at.handles[i] >= 0 && at.handles[i] != int64(dataplane.DefaultEntry) {
				c.tell(t.sw(pipe), dataplane.Handle(at.handles[i]).Slot(), out, want)
			}
		}
	}
	s := spec(nil)
	for i, pipe := range at.pipes {
		if at.handles[i] >= 0 && s == nil {
			s = a.specs[entryAt{pipe, dataplane.Handle(at.handles[i])}]
		}
	}
	for _, f := range t.order {
		if a.meter != nil && a.meter.fields.has(f) || a.lpf != nil && a.lpf.fields.has(f) || a.wred != nil && a.wred.fields.has(f) {
			s.tell(f, out, want)
		}
	}
}

// tell adds the value that a client set, or the default.
func (s spec) tell(f *datum, out *wire.TableData, want *filter) {
	if !want.has(f.id) {
		return
	}
	switch v := s[f.id]; {
	case v != nil:
		out.Fields = append(out.Fields, v)
	case f.preset != nil:
		out.Fields = append(out.Fields, f.preset)
	}
}
