package server

import (
	"context"
	"io"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/p4lb/p4lb/internal/bfrt/wire"
)

// ask reads one entity and returns the answer, or the code of the refusal.
func (r *rig) ask(target *wire.TargetDevice, e *wire.Entity) (*wire.Entity, codes.Code) {
	r.t.Helper()
	stream, err := r.c.Read(context.Background(), &wire.ReadRequest{Target: target, ClientId: r.client, Entities: []*wire.Entity{e}})
	r.must(err)
	var out *wire.Entity
	for {
		m, err := stream.Recv()
		switch {
		case err == io.EOF:
			return out, codes.OK
		case err != nil:
			return nil, codes.Code(details(r.t, err)[0].GetCanonicalCode())
		case len(m.GetEntities()) == 1:
			out = m.GetEntities()[0]
		}
	}
}

// codeOf is the code of a refused update, or OK.
func (r *rig) codeOf(err error) codes.Code {
	r.t.Helper()
	if err == nil {
		return codes.OK
	}
	return codes.Code(details(r.t, err)[0].GetCanonicalCode())
}

func (r *rig) usage(table string) uint32 {
	r.t.Helper()
	e, code := r.ask(everywhere, &wire.Entity{Entity: &wire.Entity_TableUsage{TableUsage: &wire.TableUsage{TableId: r.table(table).schema.ID}}})
	if code != codes.OK {
		r.t.Fatalf("the usage of %s: %v", table, code)
	}
	return e.GetTableUsage().GetUsage()
}

func (r *rig) attribute(table string, a *wire.TableAttribute) *wire.Update {
	a.TableId = r.table(table).schema.ID
	return &wire.Update{Type: ins, Entity: &wire.Entity{Entity: &wire.Entity_TableAttribute{TableAttribute: a}}}
}

func (r *rig) operation(table, name string) *wire.Update {
	return &wire.Update{Type: ins, Entity: &wire.Entity{Entity: &wire.Entity_TableOperation{TableOperation: &wire.TableOperation{TableId: r.table(table).schema.ID, TableOperationsType: name}}}}
}

// action is the number of an action of a table.
func (r *rig) action(table, name string) uint32 { return r.data(table, name).GetActionId() }

// The default entry of a table applies to packets that match no entry. Deleting it
// restores the program's default, and a refused batch restores the previous one.
func TestDefaultEntries(t *testing.T) {
	r := newRig(t)
	r.set(ins, "In.dmac", r.key("In.dmac", 7), r.data("In.dmac", "copies", "group", 0))
	write := func(kind wire.Update_Type, action string, list ...any) *wire.Update {
		e := r.entry("In.tallies", nil, nil)
		if action != "" {
			e.Data = r.data("In.tallies", action, list...)
		}
		e.IsDefaultEntry = true
		return update(kind, e)
	}
	read := func(target *wire.TargetDevice) *wire.TableEntry {
		t.Helper()
		e := r.entry("In.tallies", nil, nil)
		e.IsDefaultEntry = true
		list, err := r.read(target, e)
		r.must(err)
		if len(list) != 1 || !list[0].GetIsDefaultEntry() || list[0].GetKey() != nil {
			t.Fatalf("the default entry is %v", list)
		}
		return list[0]
	}
	count := func(index uint64) (sum uint64) {
		t.Helper()
		for _, n := range r.values("In.sums", r.get(everywhere, "In.sums", r.key("In.sums", index)), "$COUNTER_SPEC_PKTS") {
			sum += n
		}
		return sum
	}
	packets := func() {
		t.Helper()
		r.set(ins, "In.dmac", r.key("In.dmac", 9), r.data("In.dmac", "send", "port", 2))
		for range 3 {
			r.send(1, frame(9, 1, 1))
			r.leaves(2)
		}
		r.set(del, "In.dmac", r.key("In.dmac", 9), nil)
	}
	tally, none := r.action("In.tallies", "tally"), r.action("In.tallies", "NoAction")
	if got := read(everywhere).GetData().GetActionId(); got != none {
		t.Errorf("the program's default is action %d, want %d", got, none)
	}
	packets()
	r.must(r.write(everywhere, write(mod, "tally", "index", 5)))
	packets()
	if got := read(everywhere).GetData(); got.GetActionId() != tally || len(got.GetFields()) != 1 || uintOf(got.GetFields()[0].GetStream()) != 5 {
		t.Errorf("the default is %v, want tally(5)", got)
	}
	if got := read(pipe(0)).GetData().GetActionId(); got != tally {
		t.Errorf("the default of pipe 0 is action %d, want %d", got, tally)
	}
	_, err := r.c.Write(context.Background(), &wire.WriteRequest{Target: everywhere, ClientId: 1, Atomicity: wire.WriteRequest_ROLLBACK_ON_ERROR, Updates: []*wire.Update{
		write(mod, "tally", "index", 6), write(del, ""), update(del, r.entry("In.dmac", r.key("In.dmac", 99), nil)),
	}})
	if err == nil {
		t.Fatal("a batch with a wrong update is accepted")
	}
	packets()
	r.must(r.write(everywhere, write(del, "")))
	packets()
	if got := read(everywhere).GetData().GetActionId(); got != none {
		t.Errorf("after the deletion the default is action %d, want %d", got, none)
	}
	if a, b := count(5), count(6); a != 6 || b != 0 {
		t.Errorf("%d packets are counted at 5, %d at 6; want 6 and 0", a, b)
	}
}

// In poll mode, entries are active if a packet hit them between the last two updates of
// the hit state. A client may set the state.
func TestHitStates(t *testing.T) {
	r := newRig(t)
	table := "In.dmac"
	r.must(r.write(everywhere, r.attribute(table, &wire.TableAttribute{Attribute: &wire.TableAttribute_IdleTable{IdleTable: &wire.IdleTable{
		Enable: true, IdleTableMode: wire.IdleTable_IDLE_TABLE_POLL_MODE, TtlQueryInterval: 5, MaxTtl: 7, MinTtl: 9,
	}}})))
	e, code := r.ask(everywhere, &wire.Entity{Entity: &wire.Entity_TableAttribute{TableAttribute: &wire.TableAttribute{TableId: r.table(table).schema.ID, Attribute: &wire.TableAttribute_IdleTable{}}}})
	if got := e.GetTableAttribute().GetIdleTable(); code != codes.OK || !got.GetEnable() || got.GetIdleTableMode() != wire.IdleTable_IDLE_TABLE_POLL_MODE || got.GetMaxTtl() != 0 {
		t.Errorf("the attribute is %v, %v", got, code)
	}
	r.set(ins, table, r.key(table, 1), r.data(table, "send", "port", 2))
	r.set(ins, table, r.key(table, 2), r.data(table, "send", "port", 2))
	state := func(dst uint64) string {
		t.Helper()
		for _, f := range r.get(everywhere, table, r.key(table, dst)).GetFields() {
			if s := f.GetStrVal(); s != "" {
				return s
			}
		}
		return ""
	}
	poll := func() { t.Helper(); r.must(r.write(everywhere, r.operation(table, "UpdateHitState"))) }
	want := func(when, one, two string) {
		t.Helper()
		if a, b := state(1), state(2); a != "ENTRY_"+one || b != "ENTRY_"+two {
			t.Errorf("%s: the states are %s and %s, want %s and %s", when, a, b, one, two)
		}
	}
	want("at first", "IDLE", "IDLE")
	r.send(1, frame(1, 0, 0))
	r.leaves(2)
	want("before an update", "IDLE", "IDLE")
	poll()
	want("after a packet", "ACTIVE", "IDLE")
	r.send(130, frame(2, 0, 0)) // in another pipe
	r.leaves(2)
	poll()
	want("after a packet for the other", "IDLE", "ACTIVE")
	poll()
	want("without packets", "IDLE", "IDLE")
	r.set(mod, table, r.key(table, 1), r.data(table, "send", "port", 2, "$ENTRY_HIT_STATE", "ENTRY_ACTIVE"))
	want("set by the client", "ACTIVE", "IDLE")
	r.set(mod, table, r.key(table, 1), r.data(table, "send", "port", 2, "$ENTRY_HIT_STATE", "ENTRY_IDLE"))
	want("reset by the client", "IDLE", "IDLE")
	if code := r.codeOf(r.write(everywhere, r.operation(table, "Nothing"))); code != codes.Unimplemented {
		t.Errorf("an unknown operation: %v", code)
	}
	r.must(r.write(everywhere, r.operation(table, "SyncCounters")))
	r.must(r.write(everywhere, r.operation("In.sums", "Sync")))
	wrong := &wire.IdleTable{Enable: true, IdleTableMode: wire.IdleTable_IDLE_TABLE_NOTIFY_MODE, MinTtl: 11, MaxTtl: 10}
	if code := r.codeOf(r.write(everywhere, r.attribute(table, &wire.TableAttribute{Attribute: &wire.TableAttribute_IdleTable{IdleTable: wrong}}))); code != codes.InvalidArgument {
		t.Errorf("the least time to live above the greatest: %v", code)
	}
	wrong.MinTtl = 10
	r.must(r.write(everywhere, r.attribute(table, &wire.TableAttribute{Attribute: &wire.TableAttribute_IdleTable{IdleTable: wrong}})))
}

// Attributes are returned as they were set, and belong to certain tables.
func TestAttributes(t *testing.T) {
	r := newRig(t)
	read := func(table string, a *wire.TableAttribute) (*wire.TableAttribute, codes.Code) {
		t.Helper()
		a.TableId = r.table(table).schema.ID
		e, code := r.ask(everywhere, &wire.Entity{Entity: &wire.Entity_TableAttribute{TableAttribute: a}})
		return e.GetTableAttribute(), code
	}
	single := &wire.Mode{Scope: &wire.Mode_Predef{Predef: wire.Mode_SINGLE}}
	scope := &wire.TableAttribute{Attribute: &wire.TableAttribute_EntryScope{EntryScope: &wire.EntryScope{PipeScope: single}}}
	r.must(r.write(everywhere, r.attribute("In.dmac", scope)))
	if a, code := read("In.dmac", &wire.TableAttribute{Attribute: &wire.TableAttribute_EntryScope{}}); code != codes.OK || a.GetEntryScope().GetPipeScope().GetPredef() != wire.Mode_SINGLE {
		t.Errorf("the scope is %v, %v", a, code)
	}
	if a, code := read("InPrs.kinds", &wire.TableAttribute{Attribute: &wire.TableAttribute_EntryScope{}}); code != codes.OK || a.GetEntryScope() == nil {
		t.Errorf("the scope of a value set is %v, %v", a, code)
	}
	r.must(r.write(everywhere, r.attribute("In.choose", &wire.TableAttribute{Attribute: &wire.TableAttribute_EntryScope{EntryScope: &wire.EntryScope{PipeScope: single}}})))
	r.must(r.write(pipe(0), update(ins, r.entry("In.dmac", r.key("In.dmac", 1), r.data("In.dmac", "send", "port", 1)))))
	if code := r.codeOf(r.write(everywhere, r.attribute("In.dmac", scope))); code != codes.InvalidArgument {
		t.Errorf("the scope of a table with entries changes: %v", code)
	}
	r.must(r.write(everywhere, r.attribute("In.rates", &wire.TableAttribute{Attribute: &wire.TableAttribute_ByteCountAdj{ByteCountAdj: &wire.ByteCountAdj{ByteCountAdjust: -4}}})))
	if a, code := read("In.rates", &wire.TableAttribute{Attribute: &wire.TableAttribute_ByteCountAdj{}}); code != codes.OK || a.GetByteCountAdj().GetByteCountAdjust() != -4 {
		t.Errorf("the adjustment is %v, %v", a, code)
	}
	r.must(r.write(everywhere, r.attribute("$PORT", &wire.TableAttribute{Attribute: &wire.TableAttribute_PortStatusNotify{PortStatusNotify: &wire.PortStatusChg{Enable: true}}})))
	if a, code := read("$PORT", &wire.TableAttribute{Attribute: &wire.TableAttribute_PortStatusNotify{}}); code != codes.OK || !a.GetPortStatusNotify().GetEnable() {
		t.Errorf("the notification of ports is %v, %v", a, code)
	}
	if a, code := read("In.groups", &wire.TableAttribute{Attribute: &wire.TableAttribute_SelectorUpdateNotify{}}); code != codes.OK || a.GetSelectorUpdateNotify() == nil || a.GetSelectorUpdateNotify().GetEnable() {
		t.Errorf("the notification of members is %v, %v", a, code)
	}
	r.must(r.write(everywhere, r.attribute("In.groups", &wire.TableAttribute{Attribute: &wire.TableAttribute_SelectorUpdateNotify{SelectorUpdateNotify: &wire.SelectorUpdateCb{Enable: true}}})))
	if a, _ := read("In.groups", &wire.TableAttribute{Attribute: &wire.TableAttribute_SelectorUpdateNotify{}}); !a.GetSelectorUpdateNotify().GetEnable() {
		t.Error("the notification of members is off")
	}
	for _, test := range []struct {
		table string
		a     *wire.TableAttribute
	}{
		{"In.sums", &wire.TableAttribute{Attribute: &wire.TableAttribute_EntryScope{EntryScope: &wire.EntryScope{PipeScope: single}}}},
		{"In.sums", &wire.TableAttribute{Attribute: &wire.TableAttribute_IdleTable{IdleTable: &wire.IdleTable{}}}},
		{"In.sums", &wire.TableAttribute{Attribute: &wire.TableAttribute_DynKeyMask{DynKeyMask: &wire.DynKeyMask{}}}},
		{"In.sums", &wire.TableAttribute{Attribute: &wire.TableAttribute_DynHashing{DynHashing: &wire.DynHashing{}}}},
		{"In.sums", &wire.TableAttribute{Attribute: &wire.TableAttribute_ByteCountAdj{ByteCountAdj: &wire.ByteCountAdj{}}}},
		{"In.sums", &wire.TableAttribute{Attribute: &wire.TableAttribute_PortStatusNotify{PortStatusNotify: &wire.PortStatusChg{}}}},
		{"In.sums", &wire.TableAttribute{Attribute: &wire.TableAttribute_IntvlMs{IntvlMs: &wire.StatePullIntvl{}}}},
		{"In.sums", &wire.TableAttribute{Attribute: &wire.TableAttribute_PreDeviceConfig{PreDeviceConfig: &wire.PreDeviceConfig{}}}},
		{"In.sums", &wire.TableAttribute{Attribute: &wire.TableAttribute_SelectorUpdateNotify{SelectorUpdateNotify: &wire.SelectorUpdateCb{}}}},
		{"In.sums", &wire.TableAttribute{}},
	} {
		if code := r.codeOf(r.write(everywhere, r.attribute(test.table, test.a))); code != codes.Unimplemented {
			t.Errorf("%s takes %v: %v", test.table, test.a, code)
		}
	}
	for _, a := range []*wire.TableAttribute{
		{Attribute: &wire.TableAttribute_EntryScope{}}, {Attribute: &wire.TableAttribute_IdleTable{}}, {Attribute: &wire.TableAttribute_DynHashing{}}, {Attribute: &wire.TableAttribute_SelectorUpdateNotify{}}, {},
	} {
		if got, code := read("In.sums", a); code != codes.Unimplemented {
			t.Errorf("a counter has %v: %v", got, code)
		}
	}
}

// Names of tables, actions, fields and digests lead to their numbers.
func TestObjectIDs(t *testing.T) {
	r := newRig(t)
	object := func(o *wire.ObjectId) (uint32, codes.Code) {
		t.Helper()
		e, code := r.ask(everywhere, &wire.Entity{Entity: &wire.Entity_ObjectId{ObjectId: o}})
		return e.GetObjectId().GetId(), code
	}
	in := func(table string, set func(*wire.ObjectId_TableObject)) *wire.ObjectId {
		x := &wire.ObjectId_TableObject{TableName: table}
		if set != nil {
			set(x)
		}
		return &wire.ObjectId{Object: &wire.ObjectId_TableObject_{TableObject: x}}
	}
	action := func(name string) func(*wire.ObjectId_TableObject) {
		return func(x *wire.ObjectId_TableObject) {
			x.Names = &wire.ObjectId_TableObject_ActionName{ActionName: &wire.ObjectId_ActionName{Action: name}}
		}
	}
	key := func(name string) func(*wire.ObjectId_TableObject) {
		return func(x *wire.ObjectId_TableObject) {
			x.Names = &wire.ObjectId_TableObject_KeyFieldName{KeyFieldName: &wire.ObjectId_KeyFieldName{Field: name}}
		}
	}
	data := func(action, name string) func(*wire.ObjectId_TableObject) {
		return func(x *wire.ObjectId_TableObject) {
			x.Names = &wire.ObjectId_TableObject_DataFieldName{DataFieldName: &wire.ObjectId_DataFieldName{Action: action, Field: name}}
		}
	}
	learn := func(name, field string) *wire.ObjectId {
		x := &wire.ObjectId_LearnObject{LearnName: name}
		if field != "" {
			x.DataFieldName = &wire.ObjectId_DataFieldName{Field: field}
		}
		return &wire.ObjectId{Object: &wire.ObjectId_LearnObject_{LearnObject: x}}
	}
	dmac, port := r.table("In.dmac"), r.table("$PORT")
	name := dmac.schema.Name
	send := ""
	for _, a := range dmac.schema.Actions() {
		if strings.HasSuffix(a.Name, "send") {
			send = a.Name
		}
	}
	news := r.s.programs[0].schema.LearnFilters[0]
	counter := slices.IndexFunc(dmac.order, func(d *datum) bool { return d.name == "$COUNTER_SPEC_PKTS" })
	for _, test := range []struct {
		o    *wire.ObjectId
		want uint32
	}{
		{in(name, nil), dmac.schema.ID}, {in(port.schema.Name, nil), port.schema.ID},
		{in(name, action(send)), r.action("In.dmac", "send")}, {in(name, key("hdr.ethernet.dst")), dmac.keys[0].id},
		{in(name, data(send, "port")), r.data("In.dmac", "send", "port", 1).GetFields()[0].GetFieldId()},
		{in(name, data("", "$COUNTER_SPEC_PKTS")), dmac.order[counter].id}, {in(name, data(send, "$COUNTER_SPEC_PKTS")), dmac.order[counter].id},
		{learn(news.Name, ""), news.ID}, {learn(news.Name, news.Fields[1].Name), news.Fields[1].ID},
	} {
		if id, code := object(test.o); id != test.want || code != codes.OK {
			t.Errorf("%v is %d, %v; want %d", test.o, id, code, test.want)
		}
	}
	for _, o := range []*wire.ObjectId{
		in("pipe.In.nothing", nil), in(name, action("nothing")), in(name, key("nothing")), in(name, data("", "nothing")), in(name, data(send, "nothing")), in(name, data("", "port")), learn("nothing", ""), learn(news.Name, "nothing"),
	} {
		if id, code := object(o); code != codes.NotFound {
			t.Errorf("%v is %d, %v; want NOT_FOUND", o, id, code)
		}
	}
	if _, code := object(&wire.ObjectId{}); code != codes.InvalidArgument {
		t.Errorf("no object: %v", code)
	}
}

// Groups, members, entries and value sets are counted, have handles, and can be deleted
// one by one or together. A group that entries use cannot be deleted.
func TestLifeOfEntries(t *testing.T) {
	r := newRig(t)
	handle := func(table string, k *wire.TableKey) (uint32, codes.Code) {
		t.Helper()
		e, code := r.ask(everywhere, &wire.Entity{Entity: &wire.Entity_Handle{Handle: &wire.HandleId{TableId: r.table(table).schema.ID, Value: &wire.HandleId_Key{Key: k}}}})
		return e.GetHandle().GetHandleId(), code
	}
	group := func(id uint64, members ...uint32) {
		active := make([]bool, len(members))
		for i := range active {
			active[i] = true
		}
		r.set(ins, "In.groups", r.key("In.groups", id), r.data("In.groups", "", "$ACTION_MEMBER_ID", members, "$ACTION_MEMBER_STATUS", active))
	}
	for id, port := range map[uint64]int{3: 1, 4: 2} {
		r.set(ins, "In.members", r.key("In.members", id), r.data("In.members", "spread_to", "port", port))
	}
	group(8, 3, 4)
	group(9, 4)
	r.set(ins, "In.choose", r.key("In.choose", 1), r.data("In.choose", "", "$SELECTOR_GROUP_ID", 8))
	r.set(ins, "In.choose", r.key("In.choose", 2), r.data("In.choose", "", "$ACTION_MEMBER_ID", 4))
	r.set(ins, "InPrs.kinds", r.key("InPrs.kinds", 0x11), nil)
	r.set(ins, "InPrs.kinds", r.key("InPrs.kinds", 0x22), nil)
	r.set(ins, "$pre.node", r.key("$pre.node", 8), r.data("$pre.node", "", "$MULTICAST_RID", 5, "$MULTICAST_LAG_ID", []uint32{}, "$DEV_PORT", []uint32{1}))
	for table, want := range map[string]uint32{"In.members": 2, "In.groups": 2, "In.choose": 2, "InPrs.kinds": 2, "In.dmac": 0, "$pre.node": 1} {
		if n := r.usage(table); n != want || int(n) != r.size(table) {
			t.Errorf("%s has %d entries and reads %d, want %d", table, n, r.size(table), want)
		}
	}
	if code := r.codeOf(r.write(everywhere, update(ins, r.entry("In.groups", r.key("In.groups", 8), nil)))); code != codes.AlreadyExists {
		t.Errorf("a second group 8: %v", code)
	}
	for table, k := range map[string]*wire.TableKey{"In.members": r.key("In.members", 5), "In.groups": r.key("In.groups", 7), "In.choose": r.key("In.choose", 3), "InPrs.kinds": r.key("InPrs.kinds", 0x33)} {
		if h, code := handle(table, k); code != codes.NotFound {
			t.Errorf("%s has an entry that was not added, with handle %d, %v", table, h, code)
		}
		if code := r.codeOf(r.write(everywhere, update(del, r.entry(table, k, nil)))); code != codes.NotFound {
			t.Errorf("%s deletes an entry that was not added: %v", table, code)
		}
	}
	for table, k := range map[string]*wire.TableKey{"In.members": r.key("In.members", 4), "In.groups": r.key("In.groups", 9), "In.choose": r.key("In.choose", 2), "InPrs.kinds": r.key("InPrs.kinds", 0x22)} {
		h, code := handle(table, k)
		if code != codes.OK {
			t.Errorf("%s: no handle: %v", table, code)
			continue
		}
		e := r.entry(table, nil, nil)
		e.Value = &wire.TableEntry_HandleId{HandleId: h}
		list, err := r.read(everywhere, e)
		if err != nil || len(list) != 1 || !proto.Equal(list[0].GetKey(), k) {
			t.Errorf("%s by handle %d: %v, %v; want %v", table, h, list, err, k)
		}
	}
	lead := func(kind uint64) (name string, id uint64) {
		t.Helper()
		for _, f := range []string{"$SELECTOR_GROUP_ID", "$ACTION_MEMBER_ID"} {
			if v := r.values("In.choose", r.get(everywhere, "In.choose", r.key("In.choose", kind)), f); len(v) == 1 {
				name, id = f, v[0]
			}
		}
		return name, id
	}
	if name, id := lead(1); name != "$SELECTOR_GROUP_ID" || id != 8 {
		t.Errorf("the first entry leads to %s %d", name, id)
	}
	if name, id := lead(2); name != "$ACTION_MEMBER_ID" || id != 4 {
		t.Errorf("the second entry leads to %s %d", name, id)
	}
	// A read of one field returns no other, and entries without the field return none.
	for _, c := range []struct {
		kind   uint64
		field  string
		fields int
	}{{1, "$SELECTOR_GROUP_ID", 1}, {1, "$ACTION_MEMBER_ID", 0}, {2, "$ACTION_MEMBER_ID", 1}, {2, "$SELECTOR_GROUP_ID", 0}} {
		only := &wire.TableData{Fields: []*wire.DataField{{FieldId: r.table("In.choose").field(c.field).id}}}
		list, err := r.read(everywhere, r.entry("In.choose", r.key("In.choose", c.kind), only))
		if err != nil || len(list) != 1 || len(list[0].GetData().GetFields()) != c.fields {
			t.Errorf("%s of entry %d: %v, %v; want %d fields", c.field, c.kind, list, err, c.fields)
		}
	}
	if code := r.codeOf(r.write(everywhere, update(del, r.entry("In.groups", r.key("In.groups", 8), nil)))); code == codes.OK {
		t.Error("a group is deleted that an entry leads to")
	}
	if code := r.codeOf(r.write(everywhere, update(del, r.entry("In.members", r.key("In.members", 3), nil)))); code == codes.OK {
		t.Error("a member is deleted that a group has")
	}
	r.set(del, "In.groups", r.key("In.groups", 9), nil)
	r.set(del, "In.choose", nil, nil)
	r.set(del, "In.groups", nil, nil)
	r.set(del, "In.members", nil, nil)
	r.set(del, "InPrs.kinds", r.key("InPrs.kinds", 0x11), nil)
	for table, want := range map[string]uint32{"In.members": 0, "In.groups": 0, "In.choose": 0, "InPrs.kinds": 1} {
		if n := r.usage(table); n != want {
			t.Errorf("%s has %d entries left, want %d", table, n, want)
		}
	}
	list := r.list("InPrs.kinds")
	if len(list) != 1 || !proto.Equal(list[0].GetKey(), r.key("InPrs.kinds", 0x22)) {
		t.Errorf("the value set has %v", list)
	}
}
