package p4rt

import (
	"maps"
	"slices"

	configv1 "github.com/p4lang/p4runtime/go/p4/config/v1"
	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc/codes"

	"github.com/p4lb/p4lb/internal/bmv2"
	"github.com/p4lb/p4lb/internal/dataplane"
)

// onlyModify rejects inserting or deleting an object that always exists.
func onlyModify(typ p4v1.Update_Type, what string) error {
	if typ != p4v1.Update_MODIFY {
		return failf(codes.InvalidArgument, "%s can only be modified, not %s", what, typ)
	}
	return nil
}

// span returns the range of cells that an index selects: one cell, or all if it
// is nil.
func span(i *p4v1.Index, size int64, what string) (from, to int, err error) {
	switch {
	case i == nil:
		return 0, int(size), nil
	case i.GetIndex() < 0:
		return 0, 0, failf(codes.InvalidArgument, "%s: index %d is negative", what, i.GetIndex())
	case i.GetIndex() >= size:
		return 0, 0, failf(codes.OutOfRange, "%s: index %d is outside 0..%d", what, i.GetIndex(), size-1)
	}
	return int(i.GetIndex()), int(i.GetIndex()) + 1, nil
}

func countOf(d *p4v1.CounterData) dataplane.Count {
	return dataplane.Count{Packets: uint64(d.GetPacketCount()), Bytes: uint64(d.GetByteCount())}
}

func counterData(c dataplane.Count) *p4v1.CounterData {
	return &p4v1.CounterData{PacketCount: int64(c.Packets), ByteCount: int64(c.Bytes)}
}

func (p *pipeline) writeCounter(j *journal, typ p4v1.Update_Type, m *p4v1.CounterEntry) error {
	c := p.info.counters[m.GetCounterId()]
	if c == nil {
		return failf(codes.InvalidArgument, "there is no counter %#x", m.GetCounterId())
	}
	name := c.GetPreamble().GetName()
	if err := onlyModify(typ, "a counter"); err != nil {
		return err
	}
	from, to, err := span(m.GetIndex(), c.GetSize(), "counter "+name)
	if err != nil || m.GetData() == nil {
		return err
	}
	if j != nil {
		before, err := p.sw.Counters().Range(name, from, to, nil)
		p.must(err)
		j.add(func() {
			for i, v := range before {
				p.must(p.sw.Counters().Write(name, from+i, v))
			}
		})
	}
	for i := from; i < to; i++ {
		p.must(p.sw.Counters().Write(name, i, countOf(m.GetData())))
	}
	return nil
}

// directEntry returns the entry that a direct counter or meter belongs to.
func (p *pipeline) directEntry(m *p4v1.TableEntry, has func(*tableInfo) bool, what string) (*tableState, *tableEntry, error) {
	t, err := p.table(m.GetTableId())
	if err != nil {
		return nil, nil, err
	}
	switch {
	case !has(t.info):
		return nil, nil, t.failf(codes.InvalidArgument, "its entries have no %ss", what)
	case m.GetIsDefaultAction() && (len(m.GetMatch()) > 0 || m.GetPriority() != 0):
		return nil, nil, t.failf(codes.InvalidArgument, "the default entry cannot have a match or a priority")
	case m.GetIsDefaultAction():
		return t, t.defaultEntry(), nil
	}
	k, err := t.key(m)
	if err != nil {
		return nil, nil, err
	}
	e := t.entries[k.id]
	if e == nil {
		return nil, nil, t.failf(codes.NotFound, "the entry does not exist")
	}
	return t, e, nil
}

func hasCounter(t *tableInfo) bool { return t.counter }

func hasMeter(t *tableInfo) bool { return t.meter != nil }

func (p *pipeline) entryCounter(t *tableState, e *tableEntry) *p4v1.CounterData {
	c, err := p.sw.Tables().Counter(t.info.name, e.handle)
	p.must(err)
	return counterData(c)
}

func (p *pipeline) writeDirectCounter(j *journal, typ p4v1.Update_Type, m *p4v1.DirectCounterEntry) error {
	if err := onlyModify(typ, "a direct counter"); err != nil {
		return err
	}
	t, e, err := p.directEntry(m.GetTableEntry(), hasCounter, "counter")
	if err != nil || m.GetData() == nil {
		return err
	}
	before := p.entryCounter(t, e)
	p.must(p.sw.Tables().SetCounter(t.info.name, e.handle, countOf(m.GetData())))
	j.add(func() { p.must(p.sw.Tables().SetCounter(t.info.name, t.again(e).handle, countOf(before))) })
	return nil
}

// meterCounters returns a meter's packet and byte counts per color.
func (p *pipeline) meterCounters(m *meterInfo, index int) *p4v1.MeterCounterData {
	c, err := p.sw.Meters().Counts(m.name, index)
	p.must(err)
	return &p4v1.MeterCounterData{Green: counterData(c[0]), Yellow: counterData(c[1]), Red: counterData(c[2])}
}

// onlyZero rejects values other than zero for the counters of a direct meter.
func onlyZero(d *p4v1.MeterCounterData) error {
	for _, c := range []*p4v1.CounterData{d.GetGreen(), d.GetYellow(), d.GetRed()} {
		if c.GetPacketCount() != 0 || c.GetByteCount() != 0 {
			return failf(codes.InvalidArgument, "the counters of a direct meter can only be set to 0")
		}
	}
	return nil
}

// setMeterCounters sets a meter's counts; nil leaves them unchanged.
func (p *pipeline) setMeterCounters(m *meterInfo, index int, d *p4v1.MeterCounterData) {
	if d != nil {
		p.must(p.sw.Meters().SetCounts(m.name, index, [3]dataplane.Count{countOf(d.GetGreen()), countOf(d.GetYellow()), countOf(d.GetRed())}))
	}
}

// meterRates checks a meter's configuration and converts it to the data plane's
// form: committed and peak rate, per microsecond.
func meterRates(spec *configv1.MeterSpec, c *p4v1.MeterConfig) ([]dataplane.MeterRate, error) {
	equal := c.GetCir() == c.GetPir() && c.GetCburst() == c.GetPburst()
	switch {
	case min(c.GetCir(), c.GetPir(), c.GetCburst(), c.GetPburst(), c.GetEburst()) < 0:
		return nil, failf(codes.InvalidArgument, "meter: a rate or burst is negative")
	case spec.GetType() != configv1.MeterSpec_TWO_RATE_THREE_COLOR && !equal:
		return nil, failf(codes.InvalidArgument, "meter: a single-rate meter needs cir equal to pir and cburst equal to pburst")
	case c.GetEburst() != 0 && spec.GetType() != configv1.MeterSpec_SINGLE_RATE_THREE_COLOR:
		return nil, failf(codes.InvalidArgument, "meter: only a single-rate three-color meter has an excess burst")
	case c.GetEburst() != 0:
		return nil, failf(codes.Unimplemented, "meter: this target does not support an excess burst")
	case c.GetPir() < c.GetCir():
		return nil, failf(codes.InvalidArgument, "meter: the peak rate %d is below the committed rate %d", c.GetPir(), c.GetCir())
	}
	return []dataplane.MeterRate{
		{PerMicrosecond: float64(c.GetCir()) / 1e6, Burst: uint64(c.GetCburst())},
		{PerMicrosecond: float64(c.GetPir()) / 1e6, Burst: uint64(c.GetPburst())},
	}, nil
}

// setMeter applies a checked configuration to a meter; nil removes it.
func (p *pipeline) setMeter(m *meterInfo, index int, c *p4v1.MeterConfig) {
	if c == nil {
		p.must(p.sw.Meters().Reset(m.name, index))
		return
	}
	rates, err := meterRates(m.spec, c)
	p.must(err)
	p.must(p.sw.Meters().Set(m.name, index, rates))
}

// setCell applies setMeter to a cell of an array.
func (p *pipeline) setCell(id uint32, index int, c *p4v1.MeterConfig) {
	p.setMeter(p.info.meters[id], index, c)
	put(p.meters[id], uint32(index), c)
}

func (p *pipeline) writeMeter(j *journal, typ p4v1.Update_Type, m *p4v1.MeterEntry) error {
	mi := p.info.meters[m.GetMeterId()]
	if mi == nil {
		return failf(codes.InvalidArgument, "there is no meter %#x", m.GetMeterId())
	}
	if err := onlyModify(typ, "a meter"); err != nil {
		return err
	}
	from, to, err := span(m.GetIndex(), mi.size, "meter "+mi.name)
	if err != nil {
		return err
	}
	if _, err := meterRates(mi.spec, m.GetConfig()); err != nil {
		return err
	}
	for i := from; i < to; i++ {
		before, _ := p.meters[m.GetMeterId()].get(uint32(i))
		counted := p.meterCounters(mi, i)
		p.setCell(m.GetMeterId(), i, m.GetConfig())
		p.setMeterCounters(mi, i, m.GetCounterData())
		j.add(func() {
			p.setCell(m.GetMeterId(), i, before)
			p.setMeterCounters(mi, i, counted)
		})
	}
	return nil
}

func (p *pipeline) writeDirectMeter(j *journal, typ p4v1.Update_Type, m *p4v1.DirectMeterEntry) error {
	if err := onlyModify(typ, "a direct meter"); err != nil {
		return err
	}
	t, e, err := p.directEntry(m.GetTableEntry(), hasMeter, "meter")
	if err != nil {
		return err
	}
	if err := onlyZero(m.GetCounterData()); err != nil {
		return prefixed(err, "table %s", t.info.name)
	}
	if _, err := meterRates(t.info.meter.spec, m.GetConfig()); err != nil {
		return err
	}
	before, counted := e.text.message().GetMeterConfig(), p.meterCounters(t.info.meter, int(e.handle))
	p.setEntryMeter(t, e, m.GetConfig())
	p.setMeterCounters(t.info.meter, int(e.handle), m.GetCounterData())
	j.add(func() {
		again := t.again(e)
		p.setEntryMeter(t, again, before)
		p.setMeterCounters(t.info.meter, int(again.handle), counted)
	})
	return nil
}

func (p *pipeline) setEntryMeter(t *tableState, e *tableEntry, c *p4v1.MeterConfig) {
	next := e.text.message()
	next.MeterConfig = c
	p.setMeter(t.info.meter, int(e.handle), c)
	if e.handle == dataplane.DefaultEntry {
		t.def = next
		return
	}
	t.change(e, textOf(next))
}

// A lossy port counts packets that it lost before the device received them, or
// after the device sent them.
type lossy interface {
	// Lost returns the number of packets lost on the way in and on the way out.
	Lost() (in, out uint64)
}

// PortCounts returns the packets received, sent and dropped by each port since
// the device was created, in order of port number. It includes disconnected
// ports and ports that never existed if packets were sent to them. Changing the
// program does not reset the counts.
func (d *Device) PortCounts() []bmv2.PortCounts {
	d.mu.Lock()
	defer d.mu.Unlock()
	down := *d.down.Load()
	list := make([]bmv2.PortCounts, 0, len(d.counts))
	for _, number := range slices.Sorted(maps.Keys(d.counts)) {
		c := *d.counts[number]
		c.Down = down[number]
		if a := d.ports[number]; a != nil {
			if l, ok := a.Port.(lossy); ok {
				in, out := l.Lost()
				c.Drops[bmv2.DropUnread] += in
				c.Drops[bmv2.DropLink] += out
			}
		}
		list = append(list, c)
	}
	if d.engine != nil {
		d.engine.Queues(func(q *dataplane.Queues) {
			for i := range list {
				waiting, room := q.Waiting(uint32(list[i].Port))
				list[i].Queued, list[i].Room = uint64(waiting), uint64(room)
			}
		})
	}
	return list
}
