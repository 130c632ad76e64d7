package server

import (
	"sync"
	"time"

	"github.com/p4lb/p4lb/bfrt"
	"github.com/p4lb/p4lb/bfrt/wire"
	"github.com/p4lb/p4lb/dataplane"
)

// A learner makes learn notifications of the records of a digest.
type learner struct {
	id     uint32
	list   string
	fields []*datum

	mu      sync.Mutex
	next    uint32
	pending [maxPipes][]*wire.TableData
	timer   *time.Timer
}

// newLearner finds the list of fields that a learn filter has in the program.
func (s *Server) newLearner(p *program, f *bfrt.LearnFilter) (*learner, error) {
	name := p.short(f.Name)
	for _, l := range p.config.LearnLists {
		if l.Name != name && l.Name != f.Name {
			continue
		}
		x := &learner{id: f.ID, list: l.Name}
		for _, field := range f.Fields {
			x.fields = append(x.fields, newDatum(field, false, true))
		}
		return x, nil
	}
	return nil, failf(notFound, "the program has no digest %s", f.Name)
}

// learnFor is how long records of a digest are collected.
const learnFor = time.Millisecond

// most records of a notification.
const maxRecords = 1024

// learn takes a record, while a packet is processed.
func (p *program) learn(pipe int, d dataplane.Digest) {
	l := p.learners[d.List]
	if l == nil {
		return
	}
	m := l.record(d.Data)
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.pending[pipe]) >= maxRecords {
		return
	}
	l.pending[pipe] = append(l.pending[pipe], m)
	if l.timer == nil {
		l.timer = time.AfterFunc(learnFor, func() { p.tellLearned(l) })
	}
}

// record takes the bytes of a record apart: fields are filled up to whole bytes.
func (l *learner) record(data []byte) *wire.TableData {
	m := &wire.TableData{}
	for _, f := range l.fields {
		n := min((f.width+7)/8, len(data))
		m.Fields = append(m.Fields, &wire.DataField{FieldId: f.id, Value: &wire.DataField_Stream{Stream: append([]byte(nil), data[:n]...)}})
		data = data[n:]
	}
	return m
}

func (p *program) tellLearned(l *learner) {
	l.mu.Lock()
	lists := l.pending
	l.pending, l.timer = [maxPipes][]*wire.TableData{}, nil
	first := l.next
	l.next += maxPipes
	l.mu.Unlock()
	for pipe, list := range lists {
		if len(list) == 0 {
			continue
		}
		to := p.s.everywhere()
		to.PipeId = uint32(pipe)
		p.s.clients.tell((*wire.Subscribe_Notifications).GetEnableLearnNotifications, p, &wire.StreamMessageResponse{
			Update: &wire.StreamMessageResponse_Digest{Digest: &wire.DigestList{DigestId: l.id, ListId: first + uint32(pipe), Data: list, Target: to}},
		})
	}
}

// everywhere is all of the chip.
func (s *Server) everywhere() *wire.TargetDevice {
	return &wire.TargetDevice{DeviceId: s.opts.Device, PipeId: wire.AllPipes, Direction: wire.AllDirections, PrsrId: wire.AllParsers}
}

// configure sets how entries age.
func (a *ageing) configure(t *matchTable, c *wire.IdleTable) error {
	if c.GetEnable() && c.GetIdleTableMode() == wire.IdleTable_IDLE_TABLE_NOTIFY_MODE && c.GetMaxTtl() != 0 && c.GetMinTtl() > c.GetMaxTtl() {
		return invalidf("the least time to live, %d ms, is above the greatest, %d ms", c.GetMinTtl(), c.GetMaxTtl())
	}
	if c.GetIdleTableMode() == wire.IdleTable_IDLE_TABLE_POLL_MODE {
		c = &wire.IdleTable{Enable: c.GetEnable(), IdleTableMode: c.GetIdleTableMode()} // the rest is of the other mode
	}
	if c.GetEnable() && !a.config.GetEnable() { // time begins
		for _, pipe := range t.program.pipes {
			list, err := t.sw(pipe).TableEntries(t.name)
			if err != nil {
				return err
			}
			for _, x := range list {
				if x.IdleTimeout > 0 {
					t.sw(pipe).SetIdleTimeout(t.name, x.Handle, x.IdleTimeout, t.s.dev.Now())
				}
			}
		}
	}
	if !c.GetEnable() && a.config.GetEnable() {
		a.stopped = t.s.dev.Now() // what is left of entries' time stands
	}
	a.config = c
	clear(a.idle)
	clear(a.active)
	return nil
}

// update looks which entries have been hit since it was last asked.
func (a *ageing) update(t *matchTable) {
	now := t.s.dev.Now()
	clear(a.active)
	for _, pipe := range t.program.pipes {
		list, err := t.sw(pipe).TableEntries(t.name)
		if err != nil {
			continue
		}
		for _, x := range list {
			at := entryAt{pipe, x.Handle}
			if hit, err := t.sw(pipe).LastHit(t.name, x.Handle); err == nil && hit > max(a.polled, a.came[at]) {
				a.active[at] = true
			}
		}
	}
	a.polled = now
}

// arrived notes a new entry, which nothing has hit yet.
func (a *ageing) arrived(t *matchTable, pipe int, h dataplane.Handle) {
	if a.ttl != nil {
		a.came[entryAt{pipe, h}] = t.s.dev.Now()
	}
}

// set writes the hit state that a client gives an entry.
func (a *ageing) set(pipe int, h dataplane.Handle, state string) {
	if at := (entryAt{pipe, h}); state == "ENTRY_ACTIVE" {
		a.active[at] = true
	} else {
		delete(a.active, at)
	}
}

// tell puts the time to live and the hit state into the data of an entry.
func (a *ageing) tell(t *matchTable, out *wire.TableData, at *place, x *dataplane.Entry, r *request, want *filter) {
	if a.ttl == nil {
		return
	}
	last, active := time.Duration(0), false
	for i, pipe := range at.pipes {
		if at.handles[i] >= 0 {
			active = active || a.active[entryAt{pipe, dataplane.Handle(at.handles[i])}]
			hit, _ := t.sw(pipe).LastHit(t.name, dataplane.Handle(at.handles[i]))
			last = max(last, hit)
		}
	}
	if a.hit != nil && a.config.GetEnable() && a.config.GetIdleTableMode() == wire.IdleTable_IDLE_TABLE_POLL_MODE && want.has(a.hit.id) {
		out.Fields = append(out.Fields, a.hit.text(ifElse(active, "ENTRY_ACTIVE", "ENTRY_IDLE")))
	}
	if a.config.GetIdleTableMode() == wire.IdleTable_IDLE_TABLE_NOTIFY_MODE && want.has(a.ttl.id) {
		ttl := x.IdleTimeout
		if now := ifElse(a.config.GetEnable(), t.s.dev.Now(), a.stopped); r.flags.GetFromHw() && ttl > 0 {
			ttl = max(0, ttl-max(0, now-last))
		}
		out.Fields = append(out.Fields, a.ttl.number(uint64(ttl/time.Millisecond)))
	}
}

// idleScan is how often entries are looked at for their idle timeout.
const idleScan = 50 * time.Millisecond

// idleAtOnce bounds the entries of a table that are looked at together.
const idleAtOnce = 1 << 12

// watchIdle reports idle entries until the server stops.
func (s *Server) watchIdle() {
	tick := time.NewTicker(idleScan)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			s.reportIdle()
		case <-s.stop:
			return
		}
	}
}

func (s *Server) reportIdle() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.programs {
		for _, o := range p.tables {
			t, ok := o.(*matchTable)
			if !ok || !t.ageing.config.GetEnable() || t.ageing.config.GetIdleTableMode() != wire.IdleTable_IDLE_TABLE_NOTIFY_MODE {
				continue
			}
			for _, part := range t.scope.parts {
				t.reportIdle(part)
			}
		}
	}
}

// reportIdle tells of the entries of a part of the pipes that have been hit in
// none of them for their time, and of those that were told of and have been hit
// since.
func (t *matchTable) reportIdle(part []int) {
	a, now := &t.ageing, t.s.dev.Now()
	first := part[0]
	last := func(h dataplane.Handle) time.Duration {
		var v time.Duration
		for _, pipe := range part {
			hit, _ := t.sw(pipe).LastHit(t.name, h)
			v = max(v, hit)
		}
		return v
	}
	for at := range a.idle {
		if at.pipe != first {
			continue
		}
		x, err := t.sw(first).TableEntry(t.name, at.handle)
		if err != nil {
			delete(a.idle, at)
			continue
		}
		if now-last(at.handle) < x.IdleTimeout {
			delete(a.idle, at)
			t.tellIdle(part, &x, wire.IdleTimeoutNotification_ENTRY_ACTIVE, (*wire.Subscribe_Notifications).GetEnableEntryActiveNotifications)
		}
	}
	list, next, err := t.sw(first).IdleEntries(t.name, now, a.from[first], idleAtOnce)
	if err != nil {
		return
	}
	a.from[first] = next
	for i := range list {
		x := &list[i]
		if at := (entryAt{first, x.Handle}); !a.idle[at] && now-last(x.Handle) >= x.IdleTimeout {
			a.idle[at] = true
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

// portsChanged tells of ports that went up or down.
func (s *Server) portsChanged() { go s.tellPorts() }

func (s *Server) tellPorts() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.chip.ports.tell()
}
