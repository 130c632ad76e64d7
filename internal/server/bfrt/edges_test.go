package server

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/p4lb/p4lb/internal/bfrt"
	"github.com/p4lb/p4lb/internal/bfrt/wire"
	"github.com/p4lb/p4lb/internal/bmv2"
	"github.com/p4lb/p4lb/internal/dataplane"
	"github.com/p4lb/p4lb/internal/server/gate"
	"github.com/p4lb/p4lb/internal/text/lists"
)

// A chip has 1 to 4 pipes, and all of them by default. Only programs for Tofino are served.
func TestNumberOfPipes(t *testing.T) {
	for pipes, want := range map[int]int{0: 4, 1: 1, 4: 4, 5: 0, -1: 0} {
		o := &Options{Arch: bmv2.TNA, Pipes: pipes}
		if err := o.validate(4); (err == nil) != (want > 0) || err == nil && o.Pipes != want {
			t.Errorf("%d pipes: %d, %v; want %d", pipes, o.Pipes, err, want)
		}
	}
	for arch, fine := range map[string]bool{bmv2.TNA: true, bmv2.T2NA: true, "v1model": false, "": false} {
		if err := (&Options{Arch: arch}).validate(4); (err == nil) != fine {
			t.Errorf("%q: %v", arch, err)
		}
	}
}

// The data plane of a single program omits the pipe's name from names; the schema includes
// it.
func TestShortNames(t *testing.T) {
	for _, c := range []struct{ table, name, want string }{
		{"pipe.In.dmac", "pipe.In.dmac", "In.dmac"}, {"p.In.dmac", "p.In.sums", "In.sums"}, {"p.In.dmac", "q.In.sums", "q.In.sums"},
		{"$PORT", "pipe.In.dmac", "In.dmac"}, {"one.table", "pipe.x", "x"}, {".a.b", "pipe.x", "x"}, {"pipe.In.dmac", "dmac", "dmac"},
	} {
		p := &program{config: &bmv2.Config{}, schema: &bfrt.Schema{Tables: []*bfrt.Table{{Name: c.table}}}}
		if got := p.short(c.name); got != c.want {
			t.Errorf("with table %s, %s is %s; want %s", c.table, c.name, got, c.want)
		}
	}
}

// A digest's field list has the name of the digest, with or without the name of the pipe.
// A schema with another digest does not match the program.
func TestLearners(t *testing.T) {
	for name, want := range map[string]string{"pipe.InDep.news": "InDep.news", "InDep.other": "InDep.other", "pipe.InDep.more": "pipe.InDep.more", "pipe.InDep.none": ""} {
		p := &program{config: &bmv2.Config{}, schema: &bfrt.Schema{Tables: []*bfrt.Table{{Name: "pipe.In.dmac"}}}}
		for i, list := range []string{"InDep.news", "InDep.other", "pipe.InDep.more"} {
			p.config.LearnLists = append(p.config.LearnLists, &bmv2.FieldList{Name: list, ID: i + 1})
		}
		l, err := new(Server).newLearner(p, &bfrt.LearnFilter{Name: name, ID: 7})
		if want == "" && err == nil || want != "" && (err != nil || l.list != want || l.id != 7) {
			t.Errorf("%s: %+v, %v; want %s", name, l, err, want)
		}
	}
}

// The error of a batch in the log names its first refused part.
func TestReasonOf(t *testing.T) {
	bad, good := outcome(failf(notFound, "no entry")), &wire.Error{}
	for _, c := range []struct {
		err  error
		want string
	}{
		{nil, "<nil>"}, {failf(codes.Internal, "broken"), "Internal error: broken"}, {refused([]*wire.Error{good, good, bad, outcome(failf(notFound, "later"))}), "part 3: Object not found: no entry"},
		{refused([]*wire.Error{bad}), "part 1: Object not found: no entry"}, {errors.New("plain"), "plain"},
	} {
		if got := fmt.Sprint(reasonOf(c.err)); got != c.want {
			t.Errorf("%v: %q, want %q", c.err, got, c.want)
		}
	}
}

// The parts of a register cell are adjacent, the first in the highest bits, also across
// 64-bit words.
func TestPartsOfCells(t *testing.T) {
	for _, c := range []struct {
		width int
		words []uint64 // from the lowest
		want  []uint64
	}{
		{32, []uint64{0x11111111_22222222}, []uint64{0x11111111, 0x22222222}},
		{64, []uint64{5, 6}, []uint64{6, 5}},
		{40, []uint64{0xbbcccccc_dddddddd, 0xaaaa}, []uint64{0xaaaabbcccc, 0xccdddddddd}},
		{48, []uint64{0x2222_333333333333, 0x11112222}, []uint64{0x111122222222, 0x333333333333}},
		{65, []uint64{1, 2, 3}, []uint64{0, 0}},
	} {
		cell := &registerCell{width: c.width, parts: make([]*datum, 2)}
		if got := []uint64{cell.part(c.words, 0), cell.part(c.words, 1)}; !slices.Equal(got, c.want) {
			t.Errorf("%d bits in %x: %x, want %x", c.width, c.words, got, c.want)
		}
	}
}

// The age of an entry stops at the end of an interval. A hit shortly before the end is as
// old as the sweeps after it, and no sweep of an interval counts after its end.
func TestSweepsAtChanges(t *testing.T) {
	s := &sweeps{}
	s.change(0, 10*time.Second)
	s.change(15*time.Second, time.Second)
	s.change(18*time.Second, 0)
	for _, c := range []struct{ hit, now, want time.Duration }{
		{12, 18, 3}, {12, 30, 3}, {5, 18, 3}, {0, 15, 10}, {16, 18, 2}, {17, 40, 1}, {18, 40, 0}, {20, 40, 0},
	} {
		if got := s.since(c.hit*time.Second, c.now*time.Second); got != c.want*time.Second {
			t.Errorf("hit at %d s, at %d s: %v, want %d s", c.hit, c.now, got, c.want)
		}
	}
}

// Messages that wait for a client count against the backlog of all clients until the
// client takes them or ends.
func TestOutbox(t *testing.T) {
	message := &wire.StreamMessageResponse{Update: &wire.StreamMessageResponse_Digest{Digest: &wire.DigestList{Data: []*wire.TableData{{Fields: []*wire.DataField{{Value: &wire.DataField_Stream{Stream: make([]byte, 40<<10)}}}}}}}}
	n := costOf(message)
	all := gate.NewBacklog(int64(3 * n))
	box := func(room int) *outbox { return &outbox{ready: make(chan struct{}, 1), room: room, all: all} }
	// count returns the number of messages for which a client without limit of its own has room.
	count := func() (k int) {
		o := box(100 * n)
		defer o.close()
		for k < 10 && len(o.list) == k {
			o.put(message)
			k++
		}
		return len(o.list)
	}
	empty := count()
	if empty != 3 {
		t.Fatalf("there is room for %d messages", empty)
	}
	a := box(2 * n)
	for range 3 {
		a.put(message)
	}
	if len(a.list) != 2 || a.cost != 2*n || len(a.ready) != 1 {
		t.Errorf("%d messages of %d bytes wait, ready %d; want 2 of %d", len(a.list), a.cost, len(a.ready), 2*n)
	}
	if full := count(); full >= empty {
		t.Errorf("with waiting messages there is room for %d more, without for %d", full, empty)
	}
	for range 2 {
		if a.take() != message {
			t.Error("another message")
		}
	}
	if a.take() != nil || a.cost != 0 {
		t.Errorf("more messages, of %d bytes", a.cost)
	}
	if got := count(); got != empty {
		t.Errorf("after all are taken there is room for %d, want %d", got, empty)
	}
	a.put(message)
	a.close()
	a.put(message)
	if a.take() != nil {
		t.Error("a client that has ended gets messages")
	}
	if got := count(); got != empty {
		t.Errorf("after the end there is room for %d, want %d", got, empty)
	}
}

// A read that pauses while its program is replaced ends with ABORTED. Otherwise it keeps
// the lock of the tables until it ends.
func TestReadOfReplacedProgram(t *testing.T) {
	r := newRig(t)
	a := &answer{s: r.s, stream: &noStream{ctx: t.Context()}, program: r.s.programs[0]}
	r.must(a.enter())
	if err := a.rest(); err != nil || !a.locked {
		t.Errorf("%v, locked: %v", err, a.locked)
	}
	a.program = &program{name: "old"}
	if err := a.rest(); codeOfError(err) != codes.Aborted || a.ended != err {
		t.Errorf("%v, want ABORTED", err)
	}
	a.leave()
	a.leave() // does nothing
	if !r.s.mu.TryLock() {
		t.Fatal("the tables are still locked")
	}
	r.s.mu.Unlock()
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	r.s.turn <- struct{}{} // another read
	b := &answer{s: r.s, stream: &noStream{ctx: ended}}
	if err := b.enter(); err != context.Canceled || b.locked {
		t.Errorf("a client that is gone: %v, locked: %v", err, b.locked)
	}
	<-r.s.turn
}

// noStream is the stream of a client to which nothing is sent.
type noStream struct {
	wire.ReadServer
	ctx context.Context
}

func (s *noStream) Context() context.Context { return s.ctx }

func codeOfError(err error) codes.Code { return codes.Code(outcome(err).GetCanonicalCode()) }

// A read of keys alone returns all cells of a register without data.
func TestKeysOfCells(t *testing.T) {
	r := newRig(t)
	e := r.entry("In.seen", nil, nil)
	e.TableFlags = &wire.TableFlags{KeyOnly: true}
	list, err := r.read(everywhere, e)
	r.must(err)
	if len(list) != 64 {
		t.Fatalf("%d cells, want 64", len(list))
	}
	for i, e := range list {
		if b := e.GetKey().GetFields()[0].GetExact().GetValue(); uintOf(b) != uint64(i) || len(e.GetData().GetFields()) != 0 {
			t.Fatalf("cell %d is %v", i, e)
		}
	}
}

// Ports of the machine appear as enabled ports of 100 Gbit/s without error correction, and
// the traffic manager has a row for each port of each pipe.
func TestRowsOfPorts(t *testing.T) {
	r := newRig(t)
	d := r.get(everywhere, "$PORT", r.key("$PORT", 130))
	if speed, fec := r.field("$PORT", d, "$SPEED").GetStrVal(), r.field("$PORT", d, "$FEC").GetStrVal(); speed != "BF_SPEED_100G" || fec != "BF_FEC_TYP_NONE" {
		t.Errorf("port 130 has %s and %s", speed, fec)
	}
	if !r.field("$PORT", d, "$PORT_ENABLE").GetBoolVal() {
		t.Error("port 130 is not enabled")
	}
	list := r.list("tf1.tm.port.cfg")
	ports := map[uint64]bool{}
	for _, e := range list {
		ports[uintOf(e.GetKey().GetFields()[0].GetExact().GetValue())] = true
	}
	if len(list) != 4*usable || len(ports) != len(list) {
		t.Errorf("%d rows of %d ports, want %d", len(list), len(ports), 4*usable)
	}
	for pipe := range uint64(4) {
		for _, local := range []uint64{0, 1, usable - 1} {
			if !ports[pipe<<7|local] {
				t.Errorf("pipe %d lacks port %d", pipe, local)
			}
		}
	}
}

// Counters of packets alone, or of bytes alone, have one field, and a failed batch leaves
// them as they were.
func TestCountersOfOneKind(t *testing.T) {
	r := newProgramRig(t, entries, gate.Limits{})
	for _, c := range []struct {
		table, action, field, other string
		kind, want                  uint64
	}{
		{"In.by_number", "numbered", "$COUNTER_SPEC_PKTS", "$COUNTER_SPEC_BYTES", 11, 2},
		{"In.by_volume", "measured", "$COUNTER_SPEC_BYTES", "$COUNTER_SPEC_PKTS", 12, 2 * (64 + 4)},
	} {
		key := r.key(c.table, 7)
		r.set(ins, c.table, key, r.data(c.table, c.action, "port", 2))
		for range 2 {
			r.send(1, frame(7, 1, c.kind))
			r.leaves(2)
		}
		read := func() []uint64 { return r.values(c.table, r.get(everywhere, c.table, key), c.field) }
		if got := read(); !slices.Equal(got, []uint64{c.want}) {
			t.Errorf("%s: %v, want %d", c.table, got, c.want)
		}
		if lists.First(r.table(c.table).order, func(d *datum) bool { return d.name == c.other }) != nil {
			t.Errorf("%s has %s", c.table, c.other)
		}
		_, err := r.c.Write(t.Context(), &wire.WriteRequest{Target: everywhere, ClientId: 1, Atomicity: wire.WriteRequest_ROLLBACK_ON_ERROR, Updates: []*wire.Update{
			update(mod, r.entry(c.table, key, r.data(c.table, c.action, "port", 2, c.field, 1000))),
			update(del, r.entry(c.table, r.key(c.table, 99), nil)),
		}})
		if err == nil {
			t.Fatal("an entry that does not exist is deleted")
		}
		if got := read(); !slices.Equal(got, []uint64{c.want}) {
			t.Errorf("%s after a failed batch: %v, want %d", c.table, got, c.want)
		}
		_, err = r.c.Write(t.Context(), &wire.WriteRequest{Target: everywhere, ClientId: 1, Atomicity: wire.WriteRequest_ROLLBACK_ON_ERROR, Updates: []*wire.Update{
			update(del, r.entry(c.table, key, nil)),
			update(del, r.entry(c.table, r.key(c.table, 99), nil)),
		}})
		if err == nil {
			t.Fatal("an entry that does not exist is deleted")
		}
		if got := read(); !slices.Equal(got, []uint64{c.want}) {
			t.Errorf("%s after a deletion is undone: %v, want %d", c.table, got, c.want)
		}
	}
}

// A default entry has the counter of the packets that match no other entry.
func TestCounterOfDefaultEntry(t *testing.T) {
	r := newRig(t)
	r.set(ins, "In.dmac", r.key("In.dmac", 9), r.data("In.dmac", "send", "port", 2))
	for _, dst := range []uint64{1, 2, 9} { // the last leaves, so the others have been dropped
		r.send(1, frame(dst, 1, 1))
	}
	r.leaves(2)
	e := r.entry("In.dmac", nil, nil)
	e.IsDefaultEntry, e.TableFlags = true, &wire.TableFlags{FromHw: true}
	list, err := r.read(everywhere, e)
	r.must(err)
	if len(list) != 1 {
		t.Fatalf("%d default entries", len(list))
	}
	if got := r.values("In.dmac", list[0].GetData(), "$COUNTER_SPEC_PKTS"); !slices.Equal(got, []uint64{2}) {
		t.Errorf("the default entry counts %v packets, want 2: %v", got, list[0])
	}
}

// Deleted entries leave no state behind: no times of hits, rates or counters.
func TestStateOfDeletedEntries(t *testing.T) {
	r := newRig(t)
	const table = "In.dmac"
	r.must(r.write(everywhere, r.attribute(table, &wire.TableAttribute{Attribute: &wire.TableAttribute_IdleTable{IdleTable: &wire.IdleTable{
		Enable: true, IdleTableMode: wire.IdleTable_IDLE_TABLE_POLL_MODE,
	}}})))
	m := r.s.programs[0].tables[r.table(table).schema.ID].(*matchTable)
	sizes := func() []int {
		return []int{len(m.ageing.idle), len(m.ageing.active), len(m.ageing.came), len(m.attach.specs)}
	}
	for range 3 {
		for dst := range uint64(3) {
			r.set(ins, table, r.key(table, dst), r.data(table, "send", "port", 2, "$ENTRY_HIT_STATE", "ENTRY_ACTIVE"))
			r.send(1, frame(dst, 1, 1))
			r.leaves(2)
			r.get(everywhere, table, r.key(table, dst))
		}
		r.must(r.write(everywhere, r.operation(table, "UpdateHitState")))
		for dst := range uint64(3) {
			r.set(del, table, r.key(table, dst), nil)
		}
		if got := sizes(); !slices.Equal(got, []int{0, 0, 0, 0}) {
			t.Errorf("sizes of the maps: %v, want none", got)
		}
	}
}

// A warm init without a hit also keeps the scopes of value sets.
func TestScopeOfValueSetKept(t *testing.T) {
	r := newRig(t)
	const table = "InPrs.kinds"
	single := &wire.Mode{Scope: &wire.Mode_Predef{Predef: wire.Mode_SINGLE}}
	r.must(r.write(everywhere, r.attribute(table, &wire.TableAttribute{Attribute: &wire.TableAttribute_EntryScope{EntryScope: &wire.EntryScope{PipeScope: single}}})))
	program, _ := chipProgram()
	for _, c := range []struct {
		mode wire.SetForwardingPipelineConfigRequest_DevInitMode
		want codes.Code // of an entry in one pipe
	}{
		{wire.SetForwardingPipelineConfigRequest_HITLESS, codes.OK},
		{wire.SetForwardingPipelineConfigRequest_FAST_RECONFIG, codes.InvalidArgument},
	} {
		_, err := r.c.SetForwardingPipelineConfig(t.Context(), &wire.SetForwardingPipelineConfigRequest{
			ClientId: 1, Action: wire.SetForwardingPipelineConfigRequest_VERIFY_AND_WARM_INIT_BEGIN_AND_END, DevInitMode: c.mode,
			Config: []*wire.ForwardingPipelineConfig{{P4Name: "chip", BfruntimeInfo: program.Schema, Profiles: []*wire.ForwardingPipelineConfig_Profile{{ProfileName: "pipe", Binary: program.Binary}}}},
		})
		r.must(err)
		if code := r.codeOf(r.write(pipe(1), update(ins, r.entry(table, r.key(table, 0x11), nil)))); code != c.want {
			t.Errorf("after %v, an entry in pipe 1: %v, want %v", c.mode, code, c.want)
		}
	}
}

// The notification of an idle entry names its pipe if the pipes have their own entries,
// otherwise all pipes.
func TestPipeOfIdleEntries(t *testing.T) {
	for _, single := range []bool{false, true} {
		r := newRig(t)
		const table = "In.dmac"
		at, want := everywhere, uint32(wire.AllPipes)
		if single {
			at, want = pipe(2), 2
			r.must(r.write(everywhere, r.attribute(table, &wire.TableAttribute{Attribute: &wire.TableAttribute_EntryScope{EntryScope: &wire.EntryScope{
				PipeScope: &wire.Mode{Scope: &wire.Mode_Predef{Predef: wire.Mode_SINGLE}}}}})))
		}
		r.must(r.write(at, update(ins, r.entry(table, r.key(table, 1), r.data(table, "send", "port", 2)))))
		m := r.s.programs[0].tables[r.table(table).schema.ID].(*matchTable)
		part := m.scope.parts[0]
		if single {
			part = m.scope.parts[2]
		}
		r.s.mu.Lock()
		x, err := m.sw(part[0]).Tables().Entries(m.name)
		r.must(err)
		m.tellIdle(part, &x[0], wire.IdleTimeoutNotification_ENTRY_IDLE, (*wire.Subscribe_Notifications).GetEnableIdletimeoutNotifications)
		r.s.mu.Unlock()
		n := r.hear().GetIdleTimeoutNotification()
		if n.GetTarget().GetPipeId() != want || n.GetTableEntry().GetTableId() != m.schema.ID || uintOf(n.GetTableEntry().GetKey().GetFields()[0].GetExact().GetValue()) != 1 {
			t.Errorf("scope of single pipes %v: %v, want pipe %d", single, n, want)
		}
	}
}

// The handle of a group exists in the pipes that have the group.
func TestHandleOfGroupInOnePipe(t *testing.T) {
	r := newRig(t)
	r.set(ins, "In.members", r.key("In.members", 3), r.data("In.members", "spread_to", "port", 1))
	r.must(r.write(pipe(2), update(ins, r.entry("In.groups", r.key("In.groups", 8), r.data("In.groups", "", "$ACTION_MEMBER_ID", []uint32{3}, "$ACTION_MEMBER_STATUS", []bool{true})))))
	for n, want := range []codes.Code{codes.NotFound, codes.NotFound, codes.OK, codes.NotFound} {
		_, code := r.ask(pipe(uint32(n)), &wire.Entity{Entity: &wire.Entity_Handle{Handle: &wire.HandleId{TableId: r.table("In.groups").schema.ID, Value: &wire.HandleId_Key{Key: r.key("In.groups", 8)}}}})
		if code != want {
			t.Errorf("pipe %d: %v, want %v", n, code, want)
		}
	}
	if _, ok := r.s.programs[0].tables[r.table("In.groups").schema.ID].(*selector).idOf(2, dataplane.Handle(1<<20)); ok {
		t.Error("a handle that no group has")
	}
}

// Dynamic hashing is an attribute of tables whose schema lists it, as Intel's may. A client
// reads the setting back.
func TestDynamicHashing(t *testing.T) {
	r := newRig(t)
	set := func(table string) codes.Code {
		return r.codeOf(r.write(everywhere, r.attribute(table, &wire.TableAttribute{Attribute: &wire.TableAttribute_DynHashing{DynHashing: &wire.DynHashing{Alg: 3, Seed: 99}}})))
	}
	if code := set("In.dmac"); code != codes.Unimplemented {
		t.Errorf("a table without the attribute: %v", code)
	}
	s := r.table("In.dmac").schema
	r.s.mu.Lock()
	s.Attributes = append(s.Attributes, "DynamicHashing")
	r.s.mu.Unlock()
	if code := set("In.dmac"); code != codes.OK {
		t.Errorf("a table with the attribute: %v", code)
	}
	e, code := r.ask(everywhere, &wire.Entity{Entity: &wire.Entity_TableAttribute{TableAttribute: &wire.TableAttribute{TableId: s.ID, Attribute: &wire.TableAttribute_DynHashing{}}}})
	if got := e.GetTableAttribute().GetDynHashing(); code != codes.OK || got.GetAlg() != 3 || got.GetSeed() != 99 {
		t.Errorf("read: %v, %v", got, code)
	}
}

// A read of keys alone returns the members of a value set without data, with the target
// that was asked for.
func TestKeysOfValueSet(t *testing.T) {
	r := newRig(t)
	const table = "InPrs.kinds"
	r.set(ins, table, r.key(table, 0x11), nil)
	for _, only := range []bool{false, true} {
		e := r.entry(table, nil, nil)
		e.TableFlags = &wire.TableFlags{KeyOnly: only}
		list, err := r.read(everywhere, e)
		r.must(err)
		if len(list) != 1 || (list[0].GetData() == nil) != only || (list[0].GetEntryTgt().GetPipeId() == wire.AllPipes) != only {
			t.Errorf("keys alone %v: %v", only, list)
		}
	}
}

// Deleting all groups of a pipe leaves the groups of the others.
func TestDeleteGroupsOfOnePipe(t *testing.T) {
	r := newRig(t)
	r.set(ins, "In.members", r.key("In.members", 3), r.data("In.members", "spread_to", "port", 1))
	for id := range uint64(2) {
		r.set(ins, "In.groups", r.key("In.groups", id+8), r.data("In.groups", "", "$ACTION_MEMBER_ID", []uint32{3}, "$ACTION_MEMBER_STATUS", []bool{true}))
	}
	r.must(r.write(pipe(2), update(del, r.entry("In.groups", nil, nil))))
	for n, want := range []int{2, 2, 0, 2} {
		list, err := r.read(pipe(uint32(n)), r.entry("In.groups", nil, nil))
		r.must(err)
		if len(list) != want {
			t.Errorf("pipe %d has %d groups, want %d", n, len(list), want)
		}
	}
}

// Deleting all groups and members of all pipes also deletes objects that only some pipes have.
func TestDeleteAllOfSomePipes(t *testing.T) {
	r := newRig(t)
	for n := range uint32(3) {
		at, id := pipe(n+1), uint64(n)
		r.must(r.write(at, update(ins, r.entry("In.members", r.key("In.members", id), r.data("In.members", "spread_to", "port", 1)))))
		r.must(r.write(at, update(ins, r.entry("In.groups", r.key("In.groups", id), r.data("In.groups", "", "$ACTION_MEMBER_ID", []uint32{n}, "$ACTION_MEMBER_STATUS", []bool{true})))))
	}
	for _, table := range []string{"In.groups", "In.members"} {
		r.set(del, table, nil, nil)
		for n := range uint32(4) {
			list, err := r.read(pipe(n), r.entry(table, nil, nil))
			r.must(err)
			if len(list) != 0 {
				t.Errorf("pipe %d has %d entries of %s left", n, len(list), table)
			}
		}
	}
}

// After an undone update, an entry without rates still has none.
func TestRatesUndone(t *testing.T) {
	r := newProgramRig(t, entries, gate.Limits{})
	const table = "In.metered"
	key := r.key(table, 7)
	r.fine(update(ins, r.entry(table, key, r.data(table, "colour", "port", 2))))
	before := fmt.Sprint(r.values(table, r.get(everywhere, table, key), "$METER_SPEC_CIR_KBPS"))
	r.undone(update(mod, r.entry(table, key, r.data(table, "", "$METER_SPEC_CIR_KBPS", 5, "$METER_SPEC_PIR_KBPS", 6))))
	if after := fmt.Sprint(r.values(table, r.get(everywhere, table, key), "$METER_SPEC_CIR_KBPS")); after != before {
		t.Errorf("the committed rate is %s, want %s", after, before)
	}
	r.set(mod, table, key, r.data(table, "", "$METER_SPEC_CIR_KBPS", 5, "$METER_SPEC_PIR_KBPS", 6))
	if after := r.values(table, r.get(everywhere, table, key), "$METER_SPEC_CIR_KBPS"); !slices.Equal(after, []uint64{5}) {
		t.Errorf("the committed rate is %v, want 5", after)
	}
}

// A client reads back the interval for counters of ports and the configuration of
// replication.
func TestAttributesOfChip(t *testing.T) {
	r := newRig(t)
	read := func(table string, a *wire.TableAttribute) *wire.TableAttribute {
		t.Helper()
		a.TableId = r.table(table).schema.ID
		e, code := r.ask(everywhere, &wire.Entity{Entity: &wire.Entity_TableAttribute{TableAttribute: a}})
		if code != codes.OK {
			t.Fatalf("%s: %v", table, code)
		}
		return e.GetTableAttribute()
	}
	r.must(r.write(everywhere, r.attribute("$PORT_STAT", &wire.TableAttribute{Attribute: &wire.TableAttribute_IntvlMs{IntvlMs: &wire.StatePullIntvl{IntvlVal: 250}}})))
	if got := read("$PORT_STAT", &wire.TableAttribute{Attribute: &wire.TableAttribute_IntvlMs{}}).GetIntvlMs().GetIntvlVal(); got != 250 {
		t.Errorf("the interval is %d ms, want 250", got)
	}
}
