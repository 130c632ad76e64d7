package p4rt

import (
	"cmp"
	"math"
	"time"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc/codes"

	"github.com/p4lb/p4lb/internal/dataplane"
)

func (p *pipeline) writeTable(j *journal, typ p4v1.Update_Type, m *p4v1.TableEntry) error {
	t, err := p.table(m.GetTableId())
	if err != nil {
		return err
	}
	if m.GetIsConst() {
		return t.failf(codes.InvalidArgument, "is_const cannot be written: only the program sets it")
	}
	if m.GetIsDefaultAction() {
		return p.writeDefault(j, typ, t, m)
	}
	if t.constEntries && typ != p4v1.Update_MODIFY {
		return t.failf(codes.PermissionDenied, "%v", dataplane.ErrImmutable)
	}
	k, err := p.keys.key(t, m)
	if err != nil {
		return err
	}
	e := t.entries[k.id]
	switch {
	case typ == p4v1.Update_INSERT && e != nil:
		return t.failf(codes.AlreadyExists, "there is an entry with this match already")
	case typ != p4v1.Update_INSERT && e == nil:
		return t.failf(codes.NotFound, "the entry does not exist")
	case e.fixed() && (typ == p4v1.Update_DELETE || m.GetAction() != nil):
		return t.failf(codes.PermissionDenied, "%v", dataplane.ErrImmutable)
	case e.fixed() && m.GetIdleTimeoutNs() > 0:
		return t.failf(codes.InvalidArgument, "an entry that is constant does not time out")
	case typ == p4v1.Update_DELETE:
		return p.deleteEntry(j, t, e)
	}
	if err := t.checkResources(m, cmp.Or(m.GetAction(), e.action())); err != nil {
		return err
	}
	if typ == p4v1.Update_INSERT {
		return p.insertEntry(j, t, k, m)
	}
	return p.modifyEntry(j, t, e, m)
}

// fixed reports whether e is a const entry of the program.
func (e *tableEntry) fixed() bool { return e != nil && e.constant }

func (e *tableEntry) action() *p4v1.TableAction {
	if e == nil {
		return nil
	}
	return e.text.message().GetAction()
}

// priorityOf converts a priority: the largest wins in P4Runtime, the smallest
// in BMv2.
func priorityOf(m *p4v1.TableEntry) int { return math.MaxInt32 - int(m.GetPriority()) }

func (p *pipeline) insertEntry(j *journal, t *tableState, k key, m *p4v1.TableEntry) error {
	if m.GetAction() == nil {
		return t.failf(codes.InvalidArgument, "the entry has no action")
	}
	tg, err := p.newTarget(t, m.GetAction(), nil)
	if err != nil {
		return err
	}
	e := &tableEntry{text: textOf(kept(m)), constant: m.GetIsConst(), id: k.id, use: tg.use}
	err = p.occupied(tg.group, func() (err error) {
		e.handle, err = p.sw.Tables().Add(t.info.name, dataplane.Entry{Match: k.match, Priority: priorityOf(m), Target: tg.data})
		return err
	})
	if err != nil {
		p.dropTarget(tg.use)
		return t.refused(err)
	}
	tg.hold(1)
	t.add(e)
	p.setResources(t, e, m, true)
	j.add(func() { p.takeOut(t, t.entries[e.id]) })
	return nil
}

// takeOut removes an entry together with its one-shot group.
func (p *pipeline) takeOut(t *tableState, e *tableEntry) {
	if p.readers.Load() > 0 {
		e.last = p.look(t, e)
	}
	p.must(p.sw.Tables().Delete(t.info.name, e.handle))
	t.remove(e)
	e.use.hold(-1)
	p.dropTarget(e.use)
}

func (p *pipeline) deleteEntry(j *journal, t *tableState, e *tableEntry) error {
	if j != nil {
		again := p.snapshot(t, e)
		j.add(func() {
			k, err := t.key(again)
			p.must(err)
			p.must(p.insertEntry(nil, t, k, again))
		})
	}
	p.takeOut(t, e)
	return nil
}

// snapshot returns the message that recreates an entry in its current state.
func (p *pipeline) snapshot(t *tableState, e *tableEntry) *p4v1.TableEntry {
	m := e.text.message()
	if t.info.counter {
		m.CounterData = p.entryCounter(t, e)
	}
	if t.info.meter != nil {
		m.MeterCounterData = p.meterCounters(t.info.meter, int(e.handle))
	}
	return m
}

func (p *pipeline) modifyEntry(j *journal, t *tableState, e *tableEntry, m *p4v1.TableEntry) error {
	before := p.snapshot(t, e)
	next := stored(m)
	next.IsConst = e.constant
	if next.Action == nil || next.IsConst {
		next.Action = e.action()
	} else if err := p.retarget(t, e, next.Action); err != nil {
		return err
	}
	t.change(e, textOf(next))
	p.setResources(t, e, m, false)
	j.add(func() { p.must(p.modifyEntry(nil, t, t.entries[e.id], before)) })
	return nil
}

// retarget replaces the action of an entry.
func (p *pipeline) retarget(t *tableState, e *tableEntry, a *p4v1.TableAction) error {
	tg, err := p.newTarget(t, a, e.use.group)
	if err != nil {
		return err
	}
	err = p.occupied(tg.group, func() error { return p.sw.Tables().Modify(t.info.name, e.handle, tg.data) })
	if err != nil {
		p.dropTarget(tg.use)
		return t.refused(err)
	}
	tg.hold(1)
	e.use.hold(-1)
	p.dropTarget(e.use)
	e.use = tg.use
	return nil
}

func (p *pipeline) writeDefault(j *journal, typ p4v1.Update_Type, t *tableState, m *p4v1.TableEntry) error {
	switch {
	case typ != p4v1.Update_MODIFY:
		return t.failf(codes.InvalidArgument, "the default entry always exists: it can only be modified")
	case len(m.GetMatch()) > 0 || m.GetPriority() != 0:
		return t.failf(codes.InvalidArgument, "the default entry cannot have a match or a priority")
	case m.GetIdleTimeoutNs() != 0 || m.GetTimeSinceLastHit() != nil:
		return t.failf(codes.InvalidArgument, "the default entry does not time out")
	case t.constDefault || t.info.profile != nil:
		return t.failf(codes.PermissionDenied, "%v", dataplane.ErrConstDefault)
	}
	if err := t.checkResources(m, cmp.Or(m.GetAction(), t.initial.GetAction())); err != nil {
		return err
	}
	before := p.snapshot(t, t.defaultEntry())
	if t.def == t.initial {
		before.Action = nil
	}
	if err := p.setDefault(t, m); err != nil {
		return err
	}
	j.add(func() { p.must(p.setDefault(t, before)) })
	return nil
}

// setDefault sets the default entry and its resources. Without an action in m
// it restores the program's action.
func (p *pipeline) setDefault(t *tableState, m *p4v1.TableEntry) error {
	if err := p.setDefaultAction(t, m); err != nil {
		return err
	}
	p.setResources(t, t.defaultEntry(), m, false)
	return nil
}

func (p *pipeline) setDefaultAction(t *tableState, m *p4v1.TableEntry) error {
	if m.GetAction() == nil {
		t.def = t.initial
		if m.GetMeterConfig() != nil {
			t.def = stored(t.initial)
			t.def.MeterConfig = m.GetMeterConfig()
		}
		return t.refused(p.sw.Tables().ResetDefault(t.info.name))
	}
	a, ok := m.GetAction().GetType().(*p4v1.TableAction_Action)
	if !ok {
		return t.failf(codes.InvalidArgument, "the default entry has %s: want an action", variant(m.GetAction()))
	}
	call, err := p.entryAction(t.info, a.Action, true)
	if err != nil {
		return err
	}
	if err := p.sw.Tables().SetDefault(t.info.name, dataplane.Target{Action: call}); err != nil {
		return t.refused(err)
	}
	t.def = stored(m)
	return nil
}

// checkResources checks the fields of a written entry besides match and action.
// The entry can set only a counter or meter that its action executes.
func (t *tableState) checkResources(m *p4v1.TableEntry, a *p4v1.TableAction) error {
	id := a.GetAction().GetActionId()
	switch {
	case m.GetTimeSinceLastHit() != nil:
		return t.failf(codes.InvalidArgument, "time_since_last_hit can only be read")
	case m.GetIdleTimeoutNs() < 0:
		return t.failf(codes.InvalidArgument, "the idle timeout is negative")
	case m.GetIdleTimeoutNs() > 0 && !t.timesOut():
		return t.failf(codes.InvalidArgument, "its entries do not time out")
	case m.GetCounterData() != nil && !t.info.counter:
		return t.failf(codes.InvalidArgument, "its entries have no counters")
	case (m.GetMeterConfig() != nil || m.GetMeterCounterData() != nil) && t.info.meter == nil:
		return t.failf(codes.InvalidArgument, "its entries have no meters")
	case m.GetCounterData() != nil && id != 0 && t.counting != nil && !t.counting[id]:
		return t.failf(codes.InvalidArgument, "the action does not count: the entry cannot have counter_data")
	case m.GetMeterConfig() != nil && id != 0 && t.metering != nil && !t.metering[id]:
		return t.failf(codes.InvalidArgument, "the action does not execute the meter: the entry cannot have meter_config")
	}
	if err := onlyZero(m.GetMeterCounterData()); err != nil {
		return prefixed(err, "table %s", t.info.name)
	}
	if m.GetMeterConfig() == nil {
		return nil
	}
	_, err := meterRates(t.info.meter.spec, m.GetMeterConfig())
	return err
}

// setResources applies fields that checkResources has accepted.
func (p *pipeline) setResources(t *tableState, e *tableEntry, m *p4v1.TableEntry, fresh bool) {
	if t.info.counter && m.GetCounterData() != nil {
		p.must(p.sw.Tables().SetCounter(t.info.name, e.handle, countOf(m.GetCounterData())))
	}
	if t.info.meter != nil && (m.GetMeterConfig() != nil || !fresh) {
		p.setMeter(t.info.meter, int(e.handle), m.GetMeterConfig())
	}
	if t.info.meter != nil {
		p.setMeterCounters(t.info.meter, int(e.handle), m.GetMeterCounterData())
	}
	if t.timesOut() && !m.GetIsDefaultAction() && (m.GetIdleTimeoutNs() > 0 || !fresh) {
		p.must(p.sw.Tables().SetIdleTimeout(t.info.name, e.handle, time.Duration(m.GetIdleTimeoutNs()), p.clock()))
	}
}
