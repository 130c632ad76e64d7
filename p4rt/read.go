package p4rt

import (
	"bytes"
	"maps"
	"slices"

	configv1 "github.com/p4lang/p4runtime/go/p4/config/v1"
	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
)

// An answer collects entities into messages that a client with the usual
// limit of 4 MiB can receive.
type answer struct {
	messages []*p4v1.ReadResponse
	size     int    // of the last message, about
	cells    []byte // entities that are encoded already, for the next message
}

// The bounds of one message.
const (
	maxEntities   = 4096
	maxAnswerSize = 1 << 20
	usualSize     = 256 // of an entity; only larger ones are measured apart
	maxCellsSize  = 256 << 10
)

func (a *answer) add(e *p4v1.Entity) {
	a.flushCells()
	size := max(usualSize, proto.Size(e))
	last := len(a.messages) - 1
	if last < 0 || len(a.messages[last].Entities) == maxEntities || a.size+size > maxAnswerSize {
		a.messages = append(a.messages, &p4v1.ReadResponse{})
		a.size = 0
		last++
	}
	a.messages[last].Entities = append(a.messages[last].Entities, e)
	a.size += size
}

// flushCells makes a message of the cells that are encoded. To protobuf they
// are unknown fields, which it writes as they are.
func (a *answer) flushCells() {
	if len(a.cells) == 0 {
		return
	}
	m := &p4v1.ReadResponse{}
	m.ProtoReflect().SetUnknown(a.cells)
	a.messages = append(a.messages, m)
	a.cells, a.size = nil, maxAnswerSize // no entity joins them
}

// Read sends the entities that match the request. They are collected first, so
// that a slow client does not keep writers waiting.
func (s *Server) Read(req *p4v1.ReadRequest, stream p4v1.P4Runtime_ReadServer) error {
	sc, err := s.arb.readScope(req.GetDeviceId(), req.GetRole())
	if err != nil {
		return err
	}
	out := &answer{}
	results := make([]error, len(req.GetEntities()))
	if err := s.collect(sc, req.GetEntities(), out, results); err != nil {
		return err
	}
	out.flushCells()
	for _, m := range out.messages {
		if err := stream.Send(m); err != nil {
			return err
		}
	}
	return batchError("requests", results)
}

func (s *Server) collect(sc *scope, list []*p4v1.Entity, out *answer, results []error) error {
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

// read adds the entities that match one request.
func (p *pipeline) read(sc *scope, e *p4v1.Entity, out *answer) error {
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
		return p.readDirect(sc, x.DirectCounterEntry.GetTableEntry(), hasCounter, "counter", out, p.directCounter)
	case *p4v1.Entity_DirectMeterEntry:
		counters := x.DirectMeterEntry.GetCounterData() != nil
		return p.readDirect(sc, x.DirectMeterEntry.GetTableEntry(), hasMeter, "meter", out, func(t *tableState, e *tableEntry) *p4v1.Entity {
			return p.directMeter(t, e, counters)
		})
	case *p4v1.Entity_PacketReplicationEngineEntry:
		return p.readReplication(sc, x.PacketReplicationEngineEntry, out)
	case *p4v1.Entity_ValueSetEntry:
		return eachID(sc, p.info.valueSets, x.ValueSetEntry.GetValueSetId(), "value set", func(id uint32) error {
			out.add(&p4v1.Entity{Entity: &p4v1.Entity_ValueSetEntry{ValueSetEntry: &p4v1.ValueSetEntry{ValueSetId: id, Members: p.valueSets[id]}}})
			return nil
		})
	case *p4v1.Entity_DigestEntry:
		return eachID(sc, p.digests, x.DigestEntry.GetDigestId(), "digest", func(id uint32) error {
			if c := p.digests[id].current(); c != nil {
				out.add(&p4v1.Entity{Entity: &p4v1.Entity_DigestEntry{DigestEntry: &p4v1.DigestEntry{DigestId: id, Config: c}}})
			}
			return nil
		})
	case *p4v1.Entity_ExternEntry:
		if x.ExternEntry.GetExternTypeId() == 0 {
			return nil // a wildcard over the externs, of which there are none
		}
		return failf(codes.Unimplemented, "this target has no externs but those with entities of their own")
	}
	return failf(codes.InvalidArgument, "the request has no entity")
}

// eachID calls f for an id, or for 0 with all ids that the role may see, in
// order.
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

func (p *pipeline) readTables(sc *scope, m *p4v1.TableEntry, out *answer) error {
	return eachID(sc, p.tables, m.GetTableId(), "table", func(id uint32) error {
		return p.readTable(p.tables[id], m, out)
	})
}

// readTable adds the entries of a table that pass the filter m.
func (p *pipeline) readTable(t *tableState, m *p4v1.TableEntry, out *answer) error {
	alone := m.GetTableId() != 0
	if alone {
		if err := t.checkRead(m); err != nil {
			return err
		}
	}
	if m.GetIsDefaultAction() {
		if len(m.GetMatch()) > 0 || m.GetPriority() != 0 {
			return t.failf(codes.InvalidArgument, "the default entry has neither match nor priority")
		}
		p.addEntry(t, t.defaultEntry(), m, out)
		return nil
	}
	match := ""
	if alone && len(m.GetMatch()) > 0 {
		k, err := parseKey(t.info.fields, t.kinds, m.GetMatch(), m.GetPriority())
		if err != nil {
			return prefixed(err, "table %s", t.info.name)
		}
		if e := t.entries[k.id]; e != nil {
			p.addEntry(t, e, m, out)
			return nil
		}
		match = k.id[priorityBytes:]
	}
	p.inTurns(t.list, func(e *tableEntry) {
		if match == "" || e.id[priorityBytes:] == match {
			p.addEntry(t, e, m, out)
		}
	})
	return nil
}

// inTurns calls f for each entry, some at a time while no packet is processed:
// f may ask the data plane, and would have to wait for a packet each time.
func (p *pipeline) inTurns(list []*tableEntry, f func(*tableEntry)) {
	for some := range slices.Chunk(list, chunk) {
		p.dev.exclusively(func() {
			for _, e := range some {
				f(e)
			}
		})
	}
}

// checkRead refuses to read what the table does not have.
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

// passes applies the filters of a request for one table; one for all tables
// has none.
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

func entityOf(m *p4v1.TableEntry) *p4v1.Entity {
	return &p4v1.Entity{Entity: &p4v1.Entity_TableEntry{TableEntry: m}}
}

// addEntry adds an entry with the volatile parts that the request asks for.
func (p *pipeline) addEntry(t *tableState, e *tableEntry, m *p4v1.TableEntry, out *answer) {
	if !passes(e.msg, m, m.GetTableId() != 0) {
		return
	}
	if m.GetCounterData() == nil && m.GetMeterCounterData() == nil && m.GetTimeSinceLastHit() == nil && (m.GetMeterConfig() != nil || e.msg.GetMeterConfig() == nil) {
		out.add(entityOf(e.msg))
		return
	}
	msg := stored(e.msg)
	if m.GetMeterConfig() == nil {
		msg.MeterConfig = nil
	}
	if m.GetCounterData() != nil && t.info.counter {
		msg.CounterData = p.entryCounter(t, e)
	}
	if m.GetMeterCounterData() != nil && t.info.meter != nil {
		msg.MeterCounterData = p.meterCounters(t.info.meter, int(e.handle))
	}
	if m.GetTimeSinceLastHit() != nil && t.timesOut() && !e.msg.GetIsDefaultAction() {
		at, err := p.sw.LastHit(t.info.name, e.handle)
		p.must(err)
		msg.TimeSinceLastHit = &p4v1.TableEntry_IdleTimeout{ElapsedNs: int64(max(0, p.clock()-at))}
	}
	out.add(entityOf(msg))
}

func (p *pipeline) readMembers(sc *scope, m *p4v1.ActionProfileMember, out *answer) error {
	return eachID(sc, p.profiles, m.GetActionProfileId(), "action profile", func(id uint32) error {
		list := p.profiles[id].members
		for _, k := range slices.Sorted(maps.Keys(list)) {
			if m.GetMemberId() == 0 || k == m.GetMemberId() {
				out.add(&p4v1.Entity{Entity: &p4v1.Entity_ActionProfileMember{ActionProfileMember: list[k].msg}})
			}
		}
		return nil
	})
}

func (p *pipeline) readGroups(sc *scope, m *p4v1.ActionProfileGroup, out *answer) error {
	return eachID(sc, p.profiles, m.GetActionProfileId(), "action profile", func(id uint32) error {
		list := p.profiles[id].groups
		for _, k := range slices.Sorted(maps.Keys(list)) {
			if m.GetGroupId() == 0 || k == m.GetGroupId() {
				out.add(&p4v1.Entity{Entity: &p4v1.Entity_ActionProfileGroup{ActionProfileGroup: list[k].msg}})
			}
		}
		return nil
	})
}

func (p *pipeline) readCounter(id uint32, index *p4v1.Index, out *answer) error {
	c := p.info.counters[id]
	name := c.GetPreamble().GetName()
	from, to, err := span(index, c.GetSize(), "counter "+name)
	if err != nil {
		return err
	}
	list, err := p.sw.CounterReadAll(name)
	if err != nil {
		return failf(codes.Internal, "%v", err)
	}
	for i := from; i < to; i++ {
		out.add(&p4v1.Entity{Entity: &p4v1.Entity_CounterEntry{CounterEntry: &p4v1.CounterEntry{
			CounterId: id, Index: &p4v1.Index{Index: int64(i)}, Data: counterData(list[i]),
		}}})
	}
	return nil
}

func (p *pipeline) readMeter(id uint32, filter *p4v1.MeterEntry, out *answer) error {
	m := p.info.meters[id]
	from, to, err := span(filter.GetIndex(), m.size, "meter "+m.name)
	if err != nil {
		return err
	}
	for i := from; i < to; i++ {
		e := &p4v1.MeterEntry{MeterId: id, Index: &p4v1.Index{Index: int64(i)}, Config: p.meters[id][i]}
		if filter.GetCounterData() != nil {
			e.CounterData = p.meterCounters(m, i)
		}
		out.add(&p4v1.Entity{Entity: &p4v1.Entity_MeterEntry{MeterEntry: e}})
	}
	return nil
}

// readDirect adds the direct counters or meters of one entry, of all entries of
// a table, or of all tables.
func (p *pipeline) readDirect(sc *scope, m *p4v1.TableEntry, has func(*tableInfo) bool, what string, out *answer, make func(*tableState, *tableEntry) *p4v1.Entity) error {
	if len(m.GetMatch()) > 0 || m.GetIsDefaultAction() || p.namesAny(m) {
		t, e, err := p.directEntry(m, has, what)
		if err == nil && sc.allows(m.GetTableId()) {
			out.add(make(t, e))
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
		p.inTurns(t.list, func(e *tableEntry) { out.add(make(t, e)) })
		return nil
	})
}

// namesAny reports whether m, which has no match, names the entry of a table
// that matches anything: it has a priority, by which it differs from a wildcard.
func (p *pipeline) namesAny(m *p4v1.TableEntry) bool {
	t := p.tables[m.GetTableId()]
	return t != nil && m.GetPriority() > 0 && !slices.ContainsFunc(t.info.fields, func(f fieldInfo) bool {
		return f.match == configv1.MatchField_EXACT
	})
}

// keyOf is an entry with no more than what identifies it.
func keyOf(m *p4v1.TableEntry) *p4v1.TableEntry {
	return &p4v1.TableEntry{TableId: m.GetTableId(), Match: m.GetMatch(), Priority: m.GetPriority(), IsDefaultAction: m.GetIsDefaultAction()}
}

func (p *pipeline) directCounter(t *tableState, e *tableEntry) *p4v1.Entity {
	return &p4v1.Entity{Entity: &p4v1.Entity_DirectCounterEntry{DirectCounterEntry: &p4v1.DirectCounterEntry{
		TableEntry: keyOf(e.msg), Data: p.entryCounter(t, e),
	}}}
}

func (p *pipeline) directMeter(t *tableState, e *tableEntry, counters bool) *p4v1.Entity {
	m := &p4v1.DirectMeterEntry{TableEntry: keyOf(e.msg), Config: e.msg.GetMeterConfig()}
	if counters {
		m.CounterData = p.meterCounters(t.info.meter, int(e.handle))
	}
	return &p4v1.Entity{Entity: &p4v1.Entity_DirectMeterEntry{DirectMeterEntry: m}}
}

func (p *pipeline) readReplication(sc *scope, m *p4v1.PacketReplicationEngineEntry, out *answer) error {
	if !sc.replicates() {
		return nil
	}
	add := func(x *p4v1.PacketReplicationEngineEntry) {
		out.add(&p4v1.Entity{Entity: &p4v1.Entity_PacketReplicationEngineEntry{PacketReplicationEngineEntry: x}})
	}
	switch x := m.GetType().(type) {
	case *p4v1.PacketReplicationEngineEntry_MulticastGroupEntry:
		for _, id := range slices.Sorted(maps.Keys(p.multicast)) {
			if want := x.MulticastGroupEntry.GetMulticastGroupId(); want == 0 || want == id {
				add(&p4v1.PacketReplicationEngineEntry{Type: &p4v1.PacketReplicationEngineEntry_MulticastGroupEntry{MulticastGroupEntry: p.multicast[id]}})
			}
		}
	case *p4v1.PacketReplicationEngineEntry_CloneSessionEntry:
		for _, id := range slices.Sorted(maps.Keys(p.clones)) {
			if want := x.CloneSessionEntry.GetSessionId(); want == 0 || want == id {
				add(&p4v1.PacketReplicationEngineEntry{Type: &p4v1.PacketReplicationEngineEntry_CloneSessionEntry{CloneSessionEntry: p.clones[id]}})
			}
		}
	default:
		return failf(codes.InvalidArgument, "the replication entry is neither a multicast group nor a clone session")
	}
	return nil
}
