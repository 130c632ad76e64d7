package controller

import (
	"context"
	"slices"

	configv1 "github.com/p4lang/p4runtime/go/p4/config/v1"
	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
)

// A Holder reports the state of a switch except its registers. A Peek over P4Runtime
// implements it.
type Holder interface {
	// Tables returns the fill levels of the program's tables.
	Tables(ctx context.Context) ([]TableFill, error)
	// Counters lists the counter cells that are not zero.
	Counters(ctx context.Context) ([]CounterCell, error)
}

// A TableFill is the number of entries in a table.
type TableFill struct {
	Table   string
	Entries int
	Size    int64 // capacity
	// Count is the sum of the direct counter over all entries, or nil if there is
	// no counter.
	Count *Count
}

// A Count holds packets and bytes. Some counters count only one of the two.
type Count struct{ Packets, Bytes int64 }

// A CounterCell is a counter cell that is not zero.
type CounterCell struct {
	Counter string
	Cell    int64
	Count
}

// Tables returns the fill levels of the program's tables.
func (p *p4Peek) Tables(ctx context.Context) (list []TableFill, err error) {
	for _, t := range p.info.GetTables() {
		id, name := t.GetPreamble().GetId(), t.GetPreamble().GetName()
		entries, err := p.readAll(ctx, "table "+name, &p4v1.Entity{Entity: &p4v1.Entity_TableEntry{TableEntry: &p4v1.TableEntry{TableId: id}}})
		if err != nil {
			return nil, err
		}
		fill := TableFill{Table: name, Size: t.GetSize()}
		for _, e := range entries {
			if !e.GetTableEntry().GetIsDefaultAction() {
				fill.Entries++
			}
		}
		direct := func(c *configv1.DirectCounter) bool { return c.GetDirectTableId() == id }
		if slices.ContainsFunc(p.info.GetDirectCounters(), direct) {
			counts, err := p.readAll(ctx, "counters of table "+name, &p4v1.Entity{Entity: &p4v1.Entity_DirectCounterEntry{
				DirectCounterEntry: &p4v1.DirectCounterEntry{TableEntry: &p4v1.TableEntry{TableId: id}},
			}})
			if err != nil {
				return nil, err
			}
			fill.Count = &Count{}
			for _, e := range counts {
				fill.Count.Packets += e.GetDirectCounterEntry().GetData().GetPacketCount()
				fill.Count.Bytes += e.GetDirectCounterEntry().GetData().GetByteCount()
			}
		}
		list = append(list, fill)
	}
	return list, nil
}

// Counters lists the counter cells that are not zero.
func (p *p4Peek) Counters(ctx context.Context) (list []CounterCell, err error) {
	for _, c := range p.info.GetCounters() {
		name := c.GetPreamble().GetName()
		cells, err := p.readAll(ctx, "counter "+name, &p4v1.Entity{Entity: &p4v1.Entity_CounterEntry{CounterEntry: &p4v1.CounterEntry{CounterId: c.GetPreamble().GetId()}}})
		if err != nil {
			return nil, err
		}
		for _, e := range cells {
			cell := e.GetCounterEntry()
			count := Count{cell.GetData().GetPacketCount(), cell.GetData().GetByteCount()}
			if count != (Count{}) {
				list = append(list, CounterCell{name, cell.GetIndex().GetIndex(), count})
			}
		}
	}
	return list, nil
}

func (p *p4Peek) readAll(ctx context.Context, what string, e *p4v1.Entity) ([]*p4v1.Entity, error) {
	most := p.index.Holds()
	for _, c := range p.info.GetCounters() {
		most += int(min(max(c.GetSize(), 0), mostCells))
	}
	x := exchange{timeout: p.timeout}
	return readEntities(ctx, p.link, p.timeout, most, func(err error) error { return x.fault(err, "reading "+what) }, e)
}
