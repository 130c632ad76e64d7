package p4rt

import (
	"bytes"
	"maps"
	"slices"

	configv1 "github.com/p4lang/p4runtime/go/p4/config/v1"
	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc/codes"

	"github.com/p4lb/p4lb/internal/server/gate"
)

// Read sends the entities that match the request, as of one moment.
func (s *Server) Read(req *p4v1.ReadRequest, stream p4v1.P4Runtime_ReadServer) error {
	sc, err := s.arb.readScope(req.GetDeviceId(), req.GetRole())
	if err != nil {
		return err
	}
	if n := len(req.GetEntities()); n > s.limits.MaxRequests {
		return failf(codes.ResourceExhausted, "the batch has %d requests, want at most %d", n, s.limits.MaxRequests)
	}
	defer s.reads.Add(-1)
	if s.reads.Add(1) > int64(s.limits.MaxReads) {
		return failf(codes.ResourceExhausted, "too many reads: the server is at its limit of %d", s.limits.MaxReads)
	}
	var todo plan
	defer todo.close()
	results := make([]error, len(req.GetEntities()))
	if err := s.plan(sc, req.GetEntities(), &todo, results); err != nil {
		return err
	}
	client := &readStream{P4Runtime_ReadServer: stream, turns: s.turns, connSem: gate.ConnSemaphore(stream.Context()), stop: s.stop, gate: s.gate}
	if err := client.begin(); err != nil {
		return err
	}
	err = todo.run(&answer{stream: client})
	client.end()
	if err != nil {
		return err
	}
	return batchError("requests", results)
}

// plan takes the views needed for the requests. It is the only part of a read
// that blocks writers.
func (s *Server) plan(sc *scope, list []*p4v1.Entity, out *plan, results []error) error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.current == nil {
		return errNoPipeline
	}
	for i, e := range list {
		results[i] = s.current.read(sc, e, out)
	}
	return nil
}

// read plans the answer to one request.
func (p *pipeline) read(sc *scope, e *p4v1.Entity, out *plan) error {
	switch x := e.GetEntity().(type) {
	case *p4v1.Entity_TableEntry:
		return p.readTables(sc, x.TableEntry, out)
	case *p4v1.Entity_ActionProfileMember:
		return p.readMembers(sc, x.ActionProfileMember, out)
	case *p4v1.Entity_ActionProfileGroup:
		return p.readGroups(sc, x.ActionProfileGroup, out)
	case *p4v1.Entity_CounterEntry:
		return eachID(sc, p.info.counters, x.CounterEntry.GetCounterId(), "counter", func(id uint32) error {
			return p.readCounter(id, x.CounterEntry.GetIndex(), out)
		})
	case *p4v1.Entity_MeterEntry:
		return eachID(sc, p.info.meters, x.MeterEntry.GetMeterId(), "meter", func(id uint32) error {
			return p.readMeter(id, x.MeterEntry, out)
		})
	case *p4v1.Entity_RegisterEntry:
		return eachID(sc, p.info.registers, x.RegisterEntry.GetRegisterId(), "register", func(id uint32) error {
			return p.readRegister(out, id, x.RegisterEntry.GetIndex())
		})
	case *p4v1.Entity_DirectCounterEntry:
		return p.readDirect(sc, x.DirectCounterEntry.GetTableEntry(), hasCounter, "counter", out, showCounter)
	case *p4v1.Entity_DirectMeterEntry:
		counters := x.DirectMeterEntry.GetCounterData() != nil
		return p.readDirect(sc, x.DirectMeterEntry.GetTableEntry(), hasMeter, "meter", out, func(m *p4v1.TableEntry, s *lastSeen) *p4v1.Entity {
			return showMeter(m, s, counters)
		})
	case *p4v1.Entity_PacketReplicationEngineEntry:
		return p.readReplication(sc, x.PacketReplicationEngineEntry, out)
	case *p4v1.Entity_ValueSetEntry:
		return eachID(sc, p.info.valueSets, x.ValueSetEntry.GetValueSetId(), "value set", func(id uint32) error {
			out.one(&p4v1.Entity{Entity: &p4v1.Entity_ValueSetEntry{ValueSetEntry: &p4v1.ValueSetEntry{ValueSetId: id, Members: p.valueSets[id]}}})
			return nil
		})
	case *p4v1.Entity_DigestEntry:
		return eachID(sc, p.digests, x.DigestEntry.GetDigestId(), "digest", func(id uint32) error {
			if c := p.digests[id].current(); c != nil {
				out.one(&p4v1.Entity{Entity: &p4v1.Entity_DigestEntry{DigestEntry: &p4v1.DigestEntry{DigestId: id, Config: c}}})
			}
			return nil
		})
	case *p4v1.Entity_ExternEntry:
		if x.ExternEntry.GetExternTypeId() == 0 {
			return nil // a wildcard over externs, of which there are none
		}
		return failf(codes.Unimplemented, "this target supports only externs with entities of their own")
	}
	return failf(codes.InvalidArgument, "the request has no entity")
}

// eachID calls f for one id, or, if id is 0, for all ids that the role may see,
// in order.
func eachID[T any](sc *scope, objects map[uint32]T, id uint32, what string, f func(uint32) error) error {
	if id != 0 {
		if _, ok := objects[id]; !ok {
			return failf(codes.InvalidArgument, "there is no %s %#x", what, id)
		}
		if !sc.allows(id) {
			return nil
		}
		return f(id)
	}
	for _, id := range slices.Sorted(maps.Keys(objects)) {
		if sc.allows(id) {
			if err := f(id); err != nil {
				return err
			}
		}
	}
	return nil
}

func (p *pipeline) readTables(sc *scope, m *p4v1.TableEntry, out *plan) error {
	return eachID(sc, p.tables, m.GetTableId(), "table", func(id uint32) error {
		return p.readTable(p.tables[id], m, out)
	})
}

// readTable plans the entries of a table that match the filter m.
func (p *pipeline) readTable(t *tableState, m *p4v1.TableEntry, out *plan) error {
	alone := m.GetTableId() != 0
	if alone {
		if err := t.checkRead(m); err != nil {
			return err
		}
	}
	show := t.shownAs(m)
	if m.GetIsDefaultAction() {
		if len(m.GetMatch()) > 0 || m.GetPriority() != 0 {
			return t.failf(codes.InvalidArgument, "the default entry cannot have a match or a priority")
		}
		if passes(t.def, m, alone) {
			p.planRow(out, t, rowOf(t.defaultEntry()), volatile(m), show)
		}
		return nil
	}
	match := ""
	if alone && len(m.GetMatch()) > 0 {
		k, err := parseKey(t.info.fields, t.kinds, m.GetMatch(), m.GetPriority())
		if err != nil {
			return prefixed(err, "table %s", t.info.name)
		}
		if e := t.entries[k.id]; e != nil {
			if passes(e.text.message(), m, alone) {
				p.planRow(out, t, rowOf(e), volatile(m), show)
			}
			return nil
		}
		match = k.id[priorityBytes:]
	}
	alone = alone && filters(m)
	p.planRows(out, t, volatile(m), show, func(r row) bool {
		return (match == "" || r.entry.id[priorityBytes:] == match) && (!alone || passes(r.text.message(), m, alone))
	})
	return nil
}

// checkRead rejects a read of resources that the table does not have.
func (t *tableState) checkRead(m *p4v1.TableEntry) error {
	switch {
	case m.GetTimeSinceLastHit() != nil && (m.GetIsDefaultAction() || !t.timesOut()):
		return t.failf(codes.InvalidArgument, "its entries do not time out")
	case m.GetCounterData() != nil && !t.info.counter:
		return t.failf(codes.InvalidArgument, "its entries have no counters")
	case (m.GetMeterConfig() != nil || m.GetMeterCounterData() != nil) && t.info.meter == nil:
		return t.failf(codes.InvalidArgument, "its entries have no meters")
	}
	return nil
}

// filters reports whether a request for one table has filters other than the match.
func filters(m *p4v1.TableEntry) bool {
	//lint:ignore SA1019 clients that predate Metadata filter by it
	cookie := m.GetControllerMetadata()
	return m.GetPriority() != 0 || cookie != 0 || len(m.GetMetadata()) > 0 || m.GetAction().GetAction().GetActionId() != 0
}

// passes applies the filters of a request for one table. A request for all
// tables has no filters.
func passes(e, m *p4v1.TableEntry, alone bool) bool {
	if !alone {
		return true
	}
	//lint:ignore SA1019 clients that predate Metadata filter by it
	cookie, want := e.GetControllerMetadata(), m.GetControllerMetadata()
	action := m.GetAction().GetAction().GetActionId()
	return (m.GetPriority() == 0 || e.GetPriority() == m.GetPriority()) &&
		(want == 0 || cookie == want) &&
		(len(m.GetMetadata()) == 0 || bytes.Equal(e.GetMetadata(), m.GetMetadata())) &&
		(action == 0 || e.GetAction().GetAction().GetActionId() == action)
}

// volatile reports whether a request includes data changed by packets.
func volatile(m *p4v1.TableEntry) bool {
	return m.GetCounterData() != nil || m.GetMeterCounterData() != nil || m.GetTimeSinceLastHit() != nil
}

// shownAs returns a function that builds an entry's message with the requested
// parts, nil if they are the entry's text.
func (t *tableState) shownAs(m *p4v1.TableEntry) shower {
	if !volatile(m) && (m.GetMeterConfig() != nil || t.info.meter == nil) {
		return nil
	}
	return func(e *p4v1.TableEntry, seen *lastSeen) *p4v1.Entity {
		if m.GetMeterConfig() == nil {
			e.MeterConfig = nil
		}
		if m.GetCounterData() != nil {
			e.CounterData = seen.counter
		}
		if m.GetMeterCounterData() != nil {
			e.MeterCounterData = seen.meter
		}
		if m.GetTimeSinceLastHit() != nil && !e.GetIsDefaultAction() {
			e.TimeSinceLastHit = seen.idle
		}
		return entityOf(e)
	}
}

func (p *pipeline) readMembers(sc *scope, m *p4v1.ActionProfileMember, out *plan) error {
	return eachID(sc, p.profiles, m.GetActionProfileId(), "action profile", func(id uint32) error {
		planMessages(out, &p.profiles[id].memberMsgs, m.GetMemberId(), func(m *p4v1.ActionProfileMember) *p4v1.Entity {
			return &p4v1.Entity{Entity: &p4v1.Entity_ActionProfileMember{ActionProfileMember: m}}
		})
		return nil
	})
}

func (p *pipeline) readGroups(sc *scope, m *p4v1.ActionProfileGroup, out *plan) error {
	return eachID(sc, p.profiles, m.GetActionProfileId(), "action profile", func(id uint32) error {
		planMessages(out, &p.profiles[id].groupMsgs, m.GetGroupId(), func(m *p4v1.ActionProfileGroup) *p4v1.Entity {
			return &p4v1.Entity{Entity: &p4v1.Entity_ActionProfileGroup{ActionProfileGroup: m}}
		})
		return nil
	})
}

// planMessages plans the message with the id, or all messages if id is 0.
func planMessages[T any](out *plan, from *versioned[*T], id uint32, entity func(*T) *p4v1.Entity) {
	if id == 0 {
		each(out, from.view(), entity)
	} else if m, ok := from.get(id); ok {
		out.one(entity(m))
	}
}

func (p *pipeline) readCounter(id uint32, index *p4v1.Index, out *plan) error {
	c := p.info.counters[id]
	name := c.GetPreamble().GetName()
	from, to, err := span(index, c.GetSize(), "counter "+name)
	if err != nil {
		return err
	}
	out.inPieces(from, to, func(a *answer, from, to int) error {
		list, err := p.sw.Counters().Range(name, from, to, nil)
		p.must(err)
		for i, v := range list {
			if err := a.add(&p4v1.Entity{Entity: &p4v1.Entity_CounterEntry{CounterEntry: &p4v1.CounterEntry{
				CounterId: id, Index: &p4v1.Index{Index: int64(from + i)}, Data: counterData(v),
			}}}); err != nil {
				return err
			}
		}
		return nil
	})
	return nil
}

func (p *pipeline) readMeter(id uint32, filter *p4v1.MeterEntry, out *plan) error {
	m := p.info.meters[id]
	from, to, err := span(filter.GetIndex(), m.size, "meter "+m.name)
	if err != nil {
		return err
	}
	configs := p.meters[id].view()
	out.walk(func(a *answer) error {
		for i := from; i < to; i++ {
			c, _ := configs.get(uint32(i))
			e := &p4v1.MeterEntry{MeterId: id, Index: &p4v1.Index{Index: int64(i)}, Config: c}
			if filter.GetCounterData() != nil {
				e.CounterData = p.meterCounters(m, i)
			}
			if err := a.add(&p4v1.Entity{Entity: &p4v1.Entity_MeterEntry{MeterEntry: e}}); err != nil {
				return err
			}
		}
		return nil
	})
	return nil
}

// readDirect plans the direct counters or meters of one entry, of all entries
// of a table, or of all tables.
func (p *pipeline) readDirect(sc *scope, m *p4v1.TableEntry, has func(*tableInfo) bool, what string, out *plan, show shower) error {
	if len(m.GetMatch()) > 0 || m.GetIsDefaultAction() || p.namesAny(m) {
		t, e, err := p.directEntry(m, has, what)
		if err == nil && sc.allows(m.GetTableId()) {
			p.planRow(out, t, rowOf(e), true, show)
		}
		return err
	}
	return eachID(sc, p.tables, m.GetTableId(), "table", func(id uint32) error {
		t := p.tables[id]
		if !has(t.info) {
			if m.GetTableId() == 0 {
				return nil
			}
			return t.failf(codes.InvalidArgument, "its entries have no %ss", what)
		}
		p.planRows(out, t, true, show, func(row) bool { return true })
		return nil
	})
}

// namesAny reports whether m, which has no match fields, names the entry that
// matches anything. Such an entry has a priority; a wildcard has none.
func (p *pipeline) namesAny(m *p4v1.TableEntry) bool {
	t := p.tables[m.GetTableId()]
	return t != nil && m.GetPriority() > 0 && !slices.ContainsFunc(t.info.fields, func(f fieldInfo) bool {
		return f.match == configv1.MatchField_EXACT
	})
}

// keyOf returns an entry with only its identifying fields.
func keyOf(m *p4v1.TableEntry) *p4v1.TableEntry {
	return &p4v1.TableEntry{TableId: m.GetTableId(), Match: m.GetMatch(), Priority: m.GetPriority(), IsDefaultAction: m.GetIsDefaultAction()}
}

func showCounter(m *p4v1.TableEntry, seen *lastSeen) *p4v1.Entity {
	return &p4v1.Entity{Entity: &p4v1.Entity_DirectCounterEntry{DirectCounterEntry: &p4v1.DirectCounterEntry{
		TableEntry: keyOf(m), Data: seen.counter,
	}}}
}

func showMeter(e *p4v1.TableEntry, seen *lastSeen, counters bool) *p4v1.Entity {
	m := &p4v1.DirectMeterEntry{TableEntry: keyOf(e), Config: e.GetMeterConfig()}
	if counters {
		m.CounterData = seen.meter
	}
	return &p4v1.Entity{Entity: &p4v1.Entity_DirectMeterEntry{DirectMeterEntry: m}}
}

func (p *pipeline) readReplication(sc *scope, m *p4v1.PacketReplicationEngineEntry, out *plan) error {
	if !sc.replicates() {
		return nil
	}
	switch x := m.GetType().(type) {
	case *p4v1.PacketReplicationEngineEntry_MulticastGroupEntry:
		planMessages(out, &p.multicast, x.MulticastGroupEntry.GetMulticastGroupId(), multicastEntity)
	case *p4v1.PacketReplicationEngineEntry_CloneSessionEntry:
		planMessages(out, &p.clones, x.CloneSessionEntry.GetSessionId(), cloneEntity)
	default:
		return failf(codes.InvalidArgument, "the replication entry is neither a multicast group nor a clone session")
	}
	return nil
}
