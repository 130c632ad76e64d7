package server

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/p4lb/p4lb/internal/bfrt"
	"github.com/p4lb/p4lb/internal/bfrt/wire"
	"github.com/p4lb/p4lb/internal/server/gate"
)

// undone sends a batch whose last update fails, with rollback: there is no table 0.
func (r *rig) undone(list ...*wire.Update) {
	r.t.Helper()
	list = append(list, update(del, &wire.TableEntry{}))
	_, err := r.c.Write(r.t.Context(), &wire.WriteRequest{Target: everywhere, ClientId: r.client, Atomicity: wire.WriteRequest_ROLLBACK_ON_ERROR, Updates: list})
	if n := len(details(r.t, err)); n != len(list) {
		r.t.Errorf("%d outcomes, want %d", n, len(list))
	}
}

// scoped sets the pipes of a table: a set in each byte, or single pipes for 0.
func (r *rig) scoped(table string, sets uint64) {
	r.t.Helper()
	m := &wire.Mode{Scope: &wire.Mode_Predef{Predef: wire.Mode_SINGLE}}
	if sets != 0 {
		m = &wire.Mode{Scope: &wire.Mode_UserDefined{UserDefined: sets}}
	}
	r.must(r.write(everywhere, r.attribute(table, &wire.TableAttribute{Attribute: &wire.TableAttribute_EntryScope{EntryScope: &wire.EntryScope{PipeScope: m}}})))
}

// An entry has the time to live of its last update. An update without one keeps it, and an
// undone batch restores it. A read from the chip returns the remaining time.
func TestTimesToLive(t *testing.T) {
	r := newRig(t)
	const table, hour = "In.dmac", 3_600_000
	r.must(r.write(everywhere, r.attribute(table, &wire.TableAttribute{Attribute: &wire.TableAttribute_IdleTable{IdleTable: &wire.IdleTable{
		Enable: true, IdleTableMode: wire.IdleTable_IDLE_TABLE_NOTIFY_MODE, TtlQueryInterval: 1000, MinTtl: 1000, MaxTtl: 9 * hour,
	}}})))
	key := r.key(table, 1)
	lives := func(what string, want uint64) {
		t.Helper()
		e := r.entry(table, key, nil)
		list, err := r.read(everywhere, e)
		r.must(err)
		if got := r.values(table, list[0].GetData(), "$ENTRY_TTL"); !slices.Equal(got, []uint64{want}) {
			t.Errorf("%s: %d ms, want %d", what, got, want)
		}
		if got := r.values(table, r.get(everywhere, table, key), "$ENTRY_TTL"); got[0] > want || got[0] < want/2 {
			t.Errorf("%s: the chip has %d ms left of %d", what, got[0], want)
		}
	}
	r.set(ins, table, key, r.data(table, "send", "port", 2, "$ENTRY_TTL", hour))
	lives("inserted", hour)
	r.set(mod, table, key, r.data(table, "", "$ENTRY_TTL", 2*hour))
	lives("changed", 2*hour)
	r.set(mod, table, key, r.data(table, "send", "port", 1))
	lives("after another action", 2*hour)
	r.undone(update(mod, r.entry(table, key, r.data(table, "", "$ENTRY_TTL", 3*hour))))
	lives("after a change that was undone", 2*hour)
	r.undone(update(del, r.entry(table, key, nil)))
	lives("after a deletion that was undone", 2*hour)
	m := r.s.programs[0].tables[r.table(table).schema.ID].(*matchTable)
	r.s.mu.Lock()
	m.reportIdle(m.scope.parts[0])
	n := len(m.ageing.idle)
	r.s.mu.Unlock()
	if n != 0 {
		t.Error("an entry with time to live is idle")
	}
}

// An undone batch does not change the hit states of entries.
func TestHitStatesUndone(t *testing.T) {
	r := newRig(t)
	const table = "In.dmac"
	r.must(r.write(everywhere, r.attribute(table, &wire.TableAttribute{Attribute: &wire.TableAttribute_IdleTable{IdleTable: &wire.IdleTable{
		Enable: true, IdleTableMode: wire.IdleTable_IDLE_TABLE_POLL_MODE,
	}}})))
	for dst, state := range map[uint64]string{1: "ENTRY_IDLE", 2: "ENTRY_ACTIVE"} {
		key := r.key(table, dst)
		r.set(ins, table, key, r.data(table, "send", "port", 2, "$ENTRY_HIT_STATE", state))
		for _, other := range []string{"ENTRY_IDLE", "ENTRY_ACTIVE"} {
			for _, u := range []*wire.Update{
				update(mod, r.entry(table, key, r.data(table, "", "$ENTRY_HIT_STATE", other))),
				update(del, r.entry(table, key, nil)),
			} {
				r.undone(u)
				if got := r.field(table, r.get(everywhere, table, key), "$ENTRY_HIT_STATE").GetStrVal(); got != state {
					t.Errorf("%v: %s, want %s", u.GetType(), got, state)
				}
			}
		}
	}
}

// If the pipes of a register form sets, a write changes all pipes of the target's set.
// Without sets, a write to one pipe changes only that pipe.
func TestScopeOfRegister(t *testing.T) {
	r := newRig(t)
	const table = "In.seen"
	first := func(what string, want ...uint64) {
		t.Helper()
		if got := r.values(table, r.get(everywhere, table, r.key(table, 3)), "seen.first"); !slices.Equal(got, want) {
			t.Errorf("%s: %d, want %d", what, got, want)
		}
	}
	put := func(at *wire.TargetDevice, v int) {
		t.Helper()
		r.must(r.write(at, update(mod, r.entry(table, r.key(table, 3), r.data(table, "", "seen.first", v)))))
	}
	first("at first", 7, 7, 7, 7)
	r.scoped(table, 0x0c03)
	put(pipe(3), 20)
	first("in one set", 7, 7, 20, 20)
	put(pipe(1), 21)
	first("in both", 21, 21, 20, 20)
	put(everywhere, 22)
	first("everywhere", 22, 22, 22, 22)
	r.scoped(table, 0)
	put(pipe(2), 23)
	first("in a single pipe", 22, 22, 23, 22)
}

// If one pipe refuses an entry, no other pipe keeps it.
func TestRefusedInOnePipe(t *testing.T) {
	r := newRig(t)
	const table = "In.dmac"
	r.scoped(table, 0)
	entry := update(ins, r.entry(table, r.key(table, 9), r.data(table, "send", "port", 2)))
	r.must(r.write(pipe(2), entry))
	r.refused("an entry that pipe 2 has", entry, codes.AlreadyExists, "")
	if n := r.usage(table); n != 1 {
		t.Errorf("%d entries in the four pipes, want 1", n)
	}
	if n := r.size("In.choose"); n != 0 {
		t.Fatal("entries at first")
	}
	r.set(ins, "In.members", r.key("In.members", 4), r.data("In.members", "spread_to", "port", 2))
	for kind := range uint64(16) {
		r.fine(update(ins, r.entry("In.choose", r.key("In.choose", kind), r.data("In.choose", "", "$ACTION_MEMBER_ID", 4))))
	}
	r.refused("one entry too many", update(ins, r.entry("In.choose", r.key("In.choose", 99), r.data("In.choose", "", "$ACTION_MEMBER_ID", 4))), codes.ResourceExhausted, "")
}

// A read of one entry finds it only under the target of its write: all pipes, or the first
// pipe of a set. A read from the chip finds it in each pipe of the set. A read of keys
// names the pipe.
func TestTargetsOfReads(t *testing.T) {
	r := newRig(t)
	const table = "In.dmac"
	found := func(at *wire.TargetDevice, chip, byHandle bool) codes.Code {
		t.Helper()
		e := r.entry(table, r.key(table, 1), nil)
		if byHandle {
			x, code := r.ask(pipe(2), &wire.Entity{Entity: &wire.Entity_Handle{Handle: &wire.HandleId{TableId: e.TableId, Value: &wire.HandleId_Key{Key: e.GetKey()}}}})
			if code != codes.OK {
				t.Fatalf("no handle: %v", code)
			}
			e.Value = &wire.TableEntry_HandleId{HandleId: x.GetHandle().GetHandleId()}
		}
		e.TableFlags = &wire.TableFlags{FromHw: chip}
		_, code := r.ask(at, &wire.Entity{Entity: &wire.Entity_TableEntry{TableEntry: e}})
		return code
	}
	const no = codes.NotFound
	for _, c := range []struct {
		sets           uint64 // 1: all pipes without a set
		all, two, chip codes.Code
		handle         codes.Code // of all pipes
		pipe           uint32     // in a read of keys
	}{
		{1, codes.OK, no, codes.OK, codes.OK, wire.AllPipes},
		{0, no, codes.OK, codes.OK, codes.OK, 2},
		{0x0c03, no, codes.OK, codes.OK, codes.OK, 2},
		{0x060801, no, no, codes.OK, codes.OK, 1},
		{0x0f, no, no, codes.OK, codes.OK, 0},
	} {
		r.set(del, table, nil, nil)
		at := pipe(2)
		if c.sets == 1 {
			at = everywhere
		} else {
			r.scoped(table, c.sets)
		}
		r.must(r.write(at, update(ins, r.entry(table, r.key(table, 1), r.data(table, "send", "port", 2)))))
		got := [4]codes.Code{found(everywhere, false, false), found(pipe(2), false, false), found(pipe(2), true, false), found(everywhere, false, true)}
		if want := [4]codes.Code{c.all, c.two, c.chip, c.handle}; got != want {
			t.Errorf("sets %#x: all pipes, pipe 2, pipe 2 of the chip, all pipes by handle: %v, want %v", c.sets, got, want)
		}
		e := r.entry(table, nil, nil)
		e.TableFlags = &wire.TableFlags{KeyOnly: true}
		list, err := r.read(everywhere, e)
		r.must(err)
		if len(list) != 1 || list[0].GetEntryTgt().GetPipeId() != c.pipe || list[0].GetData() != nil {
			t.Errorf("sets %#x: the key %v, want pipe %d", c.sets, list, c.pipe)
		}
	}
}

// Flags in an old field of the interface count if the current field has none.
func TestOlderFlags(t *testing.T) {
	r := newRig(t)
	const table = "In.dmac"
	r.set(ins, table, r.key(table, 1), r.data(table, "send", "port", 2))
	for _, c := range []struct {
		older *wire.TableReadFlag
		flags *wire.TableFlags
		data  bool
	}{
		{&wire.TableReadFlag{}, nil, true}, {&wire.TableReadFlag{KeyOnly: true}, nil, false}, {&wire.TableReadFlag{KeyOnly: true}, &wire.TableFlags{}, true},
	} {
		e := r.entry(table, r.key(table, 1), nil)
		e.TableReadFlag, e.TableFlags = c.older, c.flags
		list, err := r.read(everywhere, e)
		r.must(err)
		if len(list) != 1 || (list[0].GetData() != nil) != c.data {
			t.Errorf("%v, %v: %v", c.older, c.flags, list)
		}
	}
	r.send(1, frame(1, 0, 0))
	r.leaves(2)
	e := r.entry(table, r.key(table, 1), nil)
	e.TableReadFlag = &wire.TableReadFlag{FromHw: true}
	list, err := r.read(everywhere, e)
	r.must(err)
	if got := r.values(table, list[0].GetData(), "$COUNTER_SPEC_PKTS"); !slices.Equal(got, []uint64{1}) {
		t.Errorf("the chip counted %d packets, want 1", got)
	}
}

// The handle of a cell is its index.
func TestHandlesOfCells(t *testing.T) {
	r := newRig(t)
	for _, table := range []string{"In.seen", "In.sums"} {
		for i, want := range map[uint64]codes.Code{0: codes.OK, 63: codes.OK, 64: codes.InvalidArgument} {
			x, code := r.ask(everywhere, &wire.Entity{Entity: &wire.Entity_Handle{Handle: &wire.HandleId{TableId: r.table(table).schema.ID, Value: &wire.HandleId_Key{Key: r.key(table, i)}}}})
			if code != want || code == codes.OK && uint64(x.GetHandle().GetHandleId()) != i {
				t.Errorf("%s: the handle of cell %d is %d, %v; want %v", table, i, x.GetHandle().GetHandleId(), code, want)
			}
		}
	}
}

// An update that inserts or modifies reports which of the two it did.
func TestMemberInsertedOrModified(t *testing.T) {
	r := newRig(t)
	r.set(ins, "In.dmac", r.key("In.dmac", 7), r.data("In.dmac", "copies", "group", 0))
	either := func(port int) []*wire.Error {
		t.Helper()
		u := update(wire.Update_INSERT_OR_MODIFY, r.entry("In.members", r.key("In.members", 3), r.data("In.members", "spread_to", "port", port)))
		m, err := r.c.Write(withMetadata("error_in_resp", "1"), &wire.WriteRequest{Target: everywhere, ClientId: r.client, Updates: []*wire.Update{u}})
		r.must(err)
		return m.GetStatus()
	}
	first := either(1)
	r.set(ins, "In.choose", r.key("In.choose", 0x1234), r.data("In.choose", "", "$ACTION_MEMBER_ID", 3))
	goes := func(port uint32) {
		t.Helper()
		r.send(2, frame(7, 1, 0x1234))
		r.leaves(port)
	}
	goes(1)
	second := either(2)
	goes(2)
	if len(first) == len(second) && len(first) > 0 && proto.Equal(first[0], second[0]) {
		t.Errorf("the outcomes of adding and changing are both %v", first)
	}
	r.undone(update(wire.Update_INSERT_OR_MODIFY, r.entry("In.members", r.key("In.members", 3), r.data("In.members", "spread_to", "port", 130))))
	goes(2)
	if n := r.size("In.members"); n != 1 {
		t.Errorf("%d members, want 1", n)
	}
}

// A value of another type than its field's is refused with both types.
func TestTypesOfFields(t *testing.T) {
	r := newRig(t)
	set := func(table, field string, v *wire.DataField) *wire.Update {
		v.FieldId = r.table(table).field(field).id
		return update(mod, r.entry(table, r.key(table, 1), &wire.TableData{Fields: []*wire.DataField{v}}))
	}
	r.set(ins, "In.groups", r.key("In.groups", 1), nil)
	text := &wire.DataField{Value: &wire.DataField_StrVal{StrVal: "x"}}
	float := &wire.DataField{Value: &wire.DataField_FloatVal{FloatVal: 1}}
	bits := &wire.DataField{Value: &wire.DataField_Stream{Stream: []byte{1}}}
	flag := &wire.DataField{Value: &wire.DataField_BoolVal{BoolVal: true}}
	none := &wire.DataField{}
	numbers := &wire.DataField{Value: &wire.DataField_IntArrVal{IntArrVal: &wire.DataField_IntArray{Val: []uint32{1}}}}
	flags := &wire.DataField{Value: &wire.DataField_BoolArrVal{BoolArrVal: &wire.DataField_BoolArray{Val: []bool{true}}}}
	texts := &wire.DataField{Value: &wire.DataField_StrArrVal{StrArrVal: &wire.DataField_StrArray{Val: []string{"x"}}}}
	parts := &wire.DataField{Value: &wire.DataField_ContainerArrVal{ContainerArrVal: &wire.DataField_ContainerArray{}}}
	for _, c := range []struct {
		table, field string
		v            *wire.DataField
		want         string
	}{
		{"In.groups", "$ACTION_MEMBER_ID", flags, "field $ACTION_MEMBER_ID is an array, want an array of uint32"},
		{"In.groups", "$ACTION_MEMBER_ID", text, "is a string, want an array of uint32"},
		{"In.groups", "$ACTION_MEMBER_ID", texts, "is an array, want an array of uint32"},
		{"In.groups", "$ACTION_MEMBER_ID", parts, "is an array, want an array of uint32"},
		{"In.groups", "$ACTION_MEMBER_STATUS", numbers, "field $ACTION_MEMBER_STATUS is an array of numbers, and the value is not"},
		{"In.groups", "$ACTION_MEMBER_STATUS", none, "is without value, want an array of bool"},
		{"In.groups", "$MAX_GROUP_SIZE", float, "is a float, want bytes"},
		{"In.groups", "$MAX_GROUP_SIZE", bits, "field $MAX_GROUP_SIZE has 1 bytes, want 4"},
		{"$PORT", "$SPEED", flag, "is a bool, want a string"},
		{"$PORT", "$PORT_ENABLE", bits, "is bytes, want a bool"},
		{"$PORT", "$PORT_ENABLE", numbers, "is an array, want a bool"},
	} {
		r.refused(c.table, set(c.table, c.field, proto.Clone(c.v).(*wire.DataField)), codes.InvalidArgument, c.want)
	}
}

// A client that connects again with its number ends its previous stream. A stream keeps
// its number, and a subscription to another device is refused.
func TestStreamsOfOneClient(t *testing.T) {
	r := newRig(t)
	answer := func(client, device uint32) int32 {
		t.Helper()
		r.must(r.stream.Send(&wire.StreamMessageRequest{ClientId: client, Update: &wire.StreamMessageRequest_Subscribe{Subscribe: &wire.Subscribe{DeviceId: device, Notifications: &wire.Subscribe_Notifications{}}}}))
		return r.hear().GetSubscribe().GetStatus().GetCode()
	}
	if code := codes.Code(answer(1, 1)); code != codes.InvalidArgument {
		t.Errorf("a subscription to device 1: %v", code)
	}
	if code := codes.Code(answer(2, 0)); code != codes.InvalidArgument {
		t.Errorf("another number on the stream: %v", code)
	}
	if code := codes.Code(answer(1, 0)); code != codes.OK {
		t.Errorf("a second subscription: %v", code)
	}
	before := r.heard
	r.subscribe(1, &wire.Subscribe_Notifications{})
	for range before { // until the stream ends
	}
	r.must(r.bind(1, "chip")) // the client was bound on the stream that ended
	r.set(ins, "In.dmac", r.key("In.dmac", 1), r.data("In.dmac", "send", "port", 2))
	if err := r.stream.Send(&wire.StreamMessageRequest{ClientId: 1}); err != nil && err != io.EOF {
		t.Error(err)
	}
	for m := range r.heard {
		t.Errorf("an answer to an empty message: %v", m)
	}
}

// Mirror sessions send copies to one of two groups, or to none.
func TestGroupsOfMirrors(t *testing.T) {
	r := newRig(t)
	for i, c := range []struct {
		list []any
		want uint32
	}{
		{[]any{"$mcast_grp_a", 5, "$mcast_grp_a_valid", true, "$mcast_grp_b", 6, "$mcast_grp_b_valid", true}, 5},
		{[]any{"$mcast_grp_a", 5, "$mcast_grp_a_valid", false, "$mcast_grp_b", 6, "$mcast_grp_b_valid", true}, 6},
		{[]any{"$mcast_grp_a", 5, "$mcast_grp_b", 6}, 0},
	} {
		id := uint64(i + 1)
		r.set(ins, "$mirror.cfg", r.key("$mirror.cfg", id), r.data("$mirror.cfg", "$normal", append([]any{"$session_enable", true, "$max_pkt_len", 100}, c.list...)...))
		for n, sw := range r.s.pipes {
			if m, ok := sw.Mirrors().Get(uint32(id)); !ok || m.Group != c.want || m.Length != 100 || m.HasPort {
				t.Errorf("%v in pipe %d: %+v, %v; want group %d", c.list, n, m, ok, c.want)
			}
		}
	}
	r.set(mod, "$mirror.cfg", r.key("$mirror.cfg", 1), r.data("$mirror.cfg", "$normal", "$session_enable", false))
	if m, ok := r.s.pipes[3].Mirrors().Get(1); ok {
		t.Errorf("a session that is off: %+v", m)
	}
}

// A port of the replication engine may be the CPU port.
func TestCopyToCPU(t *testing.T) {
	r := newRig(t)
	r.set(ins, "$pre.port", r.key("$pre.port", 66), r.data("$pre.port", "", "$COPY_TO_CPU_PORT_ENABLE", true))
	if got := *r.dev.CPU(); got != 66 {
		t.Errorf("the CPU port is %d, want 66", got)
	}
	r.refused("metadata of a port that the chip lacks", update(ins, r.entry("$PORT_METADATA", r.key("$PORT_METADATA", 72), nil)), codes.InvalidArgument, "there is no port 72")
}

// The CPU's Ethernet ports of Tofino 2 are 2 to 5, and it has 20 stages.
func TestChipFactsTofino2(t *testing.T) {
	r := newProgramRig(t, generating2, gate.Limits{})
	d := r.get(everywhere, "device_configuration", nil)
	if got := r.field("device_configuration", d, "eth_cpu_port_list").GetIntArrVal().GetVal(); !slices.Equal(got, []uint32{2, 3, 4, 5}) {
		t.Errorf("CPU ports %v", got)
	}
	for name, want := range map[string]uint64{"num_stages": 20, "pcie_cpu_port": 0} {
		if got := r.values("device_configuration", d, name); !slices.Equal(got, []uint64{want}) {
			t.Errorf("%s is %v, want %d", name, got, want)
		}
	}
}

// The buffer of the packet generator: a part or all of it is cleared, an undone batch
// restores it, and parts that do not exist are refused. Clearing an application resets its
// counters and removes the parameters of its former trigger.
func TestGeneratorBuffer(t *testing.T) {
	r := newProgramRig(t, generating, gate.Limits{})
	const table, apps = "pktgen.pkt_buffer", "pktgen.app_cfg"
	has := func(what string, at *wire.TargetDevice, want string) {
		t.Helper()
		list, err := r.read(at, r.entry(table, r.key(table, 16, 4), nil))
		r.must(err)
		if got := fmt.Sprintf("%x", list[0].GetData().GetFields()[0].GetIntArrVal().GetVal()); got != want {
			t.Errorf("%s: %s, want %s", what, got, want)
		}
	}
	r.buffer(16, 4)
	part := func(kind wire.Update_Type, size uint64) *wire.Update {
		return update(kind, r.entry(table, r.key(table, 16, size), nil))
	}
	twice := update(mod, r.entry(apps, r.key(apps, 1), r.data(apps, "", "app_enable", true)))
	_, err := r.c.Write(t.Context(), &wire.WriteRequest{Target: everywhere, ClientId: r.client, Atomicity: wire.WriteRequest_ROLLBACK_ON_ERROR, Updates: []*wire.Update{part(del, 2), twice}})
	details(t, err)
	has("undone", pipe(3), "[a0 a1 a2 a3]")
	r.must(r.write(pipe(1), part(del, 2)))
	has("in part", pipe(1), "[0 0 a2 a3]")
	has("in another pipe", pipe(0), "[a0 a1 a2 a3]")
	r.fine(part(wire.Update_RESET, 3))
	has("reset", everywhere, "[0 0 0 a3]")
	r.fine(update(wire.Update_RESET, r.entry(table, nil, nil)))
	has("without a key", pipe(2), "[0 0 0 0]")
	if err := r.write(pipe(4), part(del, 2)); r.codeOf(err) != codes.InvalidArgument {
		t.Errorf("pipe 4: %v", err)
	}
	for want, k := range map[string]*wire.TableKey{
		"the key lacks ":              {Fields: r.key(table, 16, 4).GetFields()[:1]},
		"there is no key field ":      {Fields: []*wire.KeyField{{FieldId: 9}}},
		" bytes at offset 0: want a ": r.key(table, 0, 0),
	} {
		for _, kind := range []wire.Update_Type{mod, del} {
			if e := details(t, r.write(everywhere, update(kind, r.entry(table, k, nil)))); !strings.Contains(e[0].GetMessage(), want) {
				t.Errorf("%v, want %q", e[0], want)
			}
		}
	}
	r.fine(update(mod, r.entry(table, r.key(table, 0, bufferSize), r.data(table, "", "buffer", make([]uint32, bufferSize)))))

	r.must(r.app(everywhere, 3, "trigger_timer_one_shot", "timer_nanosec", 1000, "pkt_len", 2, "pkt_buffer_offset", 0, "pkt_counter", 7))
	if n := r.made(pipe(0), 3); n[2] != 7 {
		t.Errorf("counters %d, want 7 packets", n)
	}
	if e := details(t, r.app(everywhere, 3, "trigger_timer_periodic", "app_enable", true))[0]; !strings.Contains(e.GetMessage(), "timer_nanosec is 0") {
		t.Errorf("the time of the former trigger counts: %v", e)
	}
	r.fine(update(del, r.entry(apps, r.key(apps, 3), nil)))
	if n := r.made(everywhere, 3); n != [3]uint64{} {
		t.Errorf("counters of a deleted application: %d", n)
	}
	r.refused("a field that applications lack", update(mod, r.entry(apps, r.key(apps, 3), &wire.TableData{Fields: []*wire.DataField{{FieldId: 9999}}})), codes.NotFound, "there is no field 9999")
	e := r.entry("pktgen.port_cfg", r.key("pktgen.port_cfg", 68), nil)
	e.TableFlags = &wire.TableFlags{KeyOnly: true}
	list, err := r.read(pipe(0), e)
	r.must(err)
	if len(list) != 1 || list[0].GetData() != nil || list[0].GetEntryTgt().GetPipeId() != 0 {
		t.Errorf("keys only: %v", list)
	}
}

// A read of the algorithm of a hash with a polynomial of the program's own returns its
// parameters, and a client can set them again.
func TestOwnPolynomial(t *testing.T) {
	r := newProgramRig(t, entries, gate.Limits{})
	const table = "In.own.algorithm"
	e := r.entry(table, nil, nil)
	e.IsDefaultEntry = true
	list, err := r.read(everywhere, e)
	r.must(err)
	d := list[0].GetData()
	if d.GetActionId() != bfrt.HashUserDefined {
		t.Fatalf("the action is %d, want the user-defined one", d.GetActionId())
	}
	got := map[string]string{}
	for _, p := range r.s.programs[0].tables[r.table(table).schema.ID].(*hashTable).actions[d.GetActionId()].params {
		for _, f := range d.GetFields() {
			if f.GetFieldId() == p.id {
				got[p.name] = fmt.Sprintf("%x%v", uintOf(f.GetStream()), f.GetBoolVal())
			}
		}
	}
	want := map[string]string{"reverse": "0true", "polynomial": "a097false", "init": "1234false", "final_xor": "ff00false", "hash_bit_width": "10false"}
	for name, v := range want {
		if got[name] != v {
			t.Errorf("%s is %s, want %s", name, got[name], v)
		}
	}
	_, before := r.goes(frame(0x112233445566, 0, 9))
	same := r.entry(table, nil, d)
	same.IsDefaultEntry = true
	r.fine(update(mod, same))
	if _, after := r.goes(frame(0x112233445566, 0, 9)); src(after, 16) != src(before, 16) {
		t.Errorf("the parameters give %#x, the program %#x", src(after, 16), src(before, 16))
	}
	none := r.entry(table, nil, r.data(table, "user_defined", "polynomial", 0xa097, "hash_bit_width", 16, "final_xor", 0x10000))
	none.IsDefaultEntry = true
	r.refused("a final_xor that is too wide", update(mod, none), codes.InvalidArgument, "final_xor 0x10000 has more than 16 bits")
}

// A client reads the program back with the pipes that run it.
func TestProgramReadBack(t *testing.T) {
	r := newRig(t)
	program, err := chipProgram()
	r.must(err)
	m, err := r.c.GetForwardingPipelineConfig(t.Context(), &wire.GetForwardingPipelineConfigRequest{ClientId: 1})
	r.must(err)
	if len(m.GetConfig()) != 1 || len(m.GetConfig()[0].GetProfiles()) != 1 {
		t.Fatalf("%d programs", len(m.GetConfig()))
	}
	c := m.GetConfig()[0]
	p := c.GetProfiles()[0]
	if c.GetP4Name() != "chip" || !bytes.Equal(c.GetBfruntimeInfo(), program.Schema) || !bytes.Equal(p.GetBinary(), program.Binary) || p.GetProfileName() != "pipe" || !slices.Equal(p.GetPipeScope(), []uint32{0, 1, 2, 3}) {
		t.Errorf("program %s, profile %s of pipes %d, schema of %d bytes, program of %d", c.GetP4Name(), p.GetProfileName(), p.GetPipeScope(), len(c.GetBfruntimeInfo()), len(p.GetBinary()))
	}
}
