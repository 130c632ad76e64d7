package server

import (
	"slices"
	"testing"

	"github.com/p4lb/p4lb/internal/bfrt/wire"
	"github.com/p4lb/p4lb/internal/server/gate"
)

// A counter written in all pipes has the value as the sum of the pipes, and a counter
// written in one pipe changes no other pipe.
func TestCountersOfPipes(t *testing.T) {
	r := newRig(t)
	key := r.key("In.sums", 3)
	count := func(n int) { r.set(mod, "In.sums", key, r.data("In.sums", "", "$COUNTER_SPEC_PKTS", n)) }
	want := func(when string, all uint64, each ...uint64) {
		t.Helper()
		if got := r.values("In.sums", r.get(everywhere, "In.sums", key), "$COUNTER_SPEC_PKTS"); !slices.Equal(got, []uint64{all}) {
			t.Errorf("%s: all pipes count %v, want %d", when, got, all)
		}
		for n, x := range each {
			if got := r.values("In.sums", r.get(pipe(uint32(n)), "In.sums", key), "$COUNTER_SPEC_PKTS"); !slices.Equal(got, []uint64{x}) {
				t.Errorf("%s: pipe %d counts %v, want %d", when, n, got, x)
			}
		}
	}
	count(17)
	want("written in all pipes", 17, 17, 0)
	r.must(r.write(pipe(1), update(mod, r.entry("In.sums", key, r.data("In.sums", "", "$COUNTER_SPEC_PKTS", 5)))))
	want("written in pipe 1", 22, 17, 5)
	count(4)
	want("written in all pipes again", 4, 4, 0)
	r.must(r.write(pipe(0), update(del, r.entry("In.sums", key, nil))))
	want("cleared in pipe 0", 0, 0, 0)
}

// A MODIFY of a group changes where packets go: to the members that are active now, in
// the pipes of the target. Members that the group no longer has can be deleted.
func TestGroupModifyMovesPackets(t *testing.T) {
	r := newRig(t)
	group := func(members []uint32, active []bool) func(target uint32) {
		return func(target uint32) {
			to := everywhere
			if target < 4 {
				to = pipe(target)
			}
			r.must(r.write(to, update(mod, r.entry("In.groups", r.key("In.groups", 8), r.data("In.groups", "", "$ACTION_MEMBER_ID", members, "$ACTION_MEMBER_STATUS", active)))))
		}
	}
	const all = 9
	r.set(ins, "In.dmac", r.key("In.dmac", 7), r.data("In.dmac", "copies", "group", 0)) // keeps the port of choose
	r.set(ins, "In.members", r.key("In.members", 3), r.data("In.members", "spread_to", "port", 1))
	r.set(ins, "In.members", r.key("In.members", 4), r.data("In.members", "spread_to", "port", 2))
	r.set(ins, "In.groups", r.key("In.groups", 8), r.data("In.groups", "", "$ACTION_MEMBER_ID", []uint32{3, 4}, "$ACTION_MEMBER_STATUS", []bool{true, false}))
	r.set(ins, "In.choose", r.key("In.choose", 0x1234), r.data("In.choose", "", "$SELECTOR_GROUP_ID", 8))
	leave := func(from, by uint32) {
		t.Helper()
		for src := range uint64(8) { // any flow
			r.send(from, frame(7, src, 0x1234))
			r.leaves(by)
		}
	}
	leave(2, 1)
	leave(130, 1)
	group([]uint32{3, 4}, []bool{false, true})(0)
	leave(2, 2)
	leave(130, 1)
	group([]uint32{3, 4}, []bool{false, true})(all)
	leave(130, 2)
	group([]uint32{4}, []bool{true})(all)
	leave(2, 2)
	r.set(del, "In.members", r.key("In.members", 3), nil)
}

// MODIFY_INC adds members to a group, changes the status of its members, including the
// first one, and removes members. The group's other members stay.
func TestGroupIncrements(t *testing.T) {
	r := newRig(t)
	r.set(ins, "In.dmac", r.key("In.dmac", 7), r.data("In.dmac", "copies", "group", 0))
	for member, port := range map[uint64]int{3: 1, 4: 2, 5: 130} {
		r.set(ins, "In.members", r.key("In.members", member), r.data("In.members", "spread_to", "port", port))
	}
	r.set(ins, "In.groups", r.key("In.groups", 8), r.data("In.groups", "", "$ACTION_MEMBER_ID", []uint32{3}, "$ACTION_MEMBER_STATUS", []bool{true}))
	r.set(ins, "In.choose", r.key("In.choose", 0x1234), r.data("In.choose", "", "$SELECTOR_GROUP_ID", 8))
	change := func(kind wire.TableModIncFlag_Type, member uint32, active bool) error {
		e := r.entry("In.groups", r.key("In.groups", 8), r.data("In.groups", "", "$ACTION_MEMBER_ID", []uint32{member}, "$ACTION_MEMBER_STATUS", []bool{active}))
		e.TableModIncFlag = &wire.TableModIncFlag{Type: kind}
		return r.write(everywhere, update(wire.Update_MODIFY_INC, e))
	}
	const add, remove = wire.TableModIncFlag_MOD_INC_ADD, wire.TableModIncFlag_MOD_INC_DELETE
	want := func(when string, members ...uint32) {
		t.Helper()
		var got []uint32
		for _, f := range r.get(everywhere, "In.groups", r.key("In.groups", 8)).GetFields() {
			got = append(got, f.GetIntArrVal().GetVal()...)
		}
		if !slices.Equal(got, members) {
			t.Errorf("%s: members %v, want %v", when, got, members)
		}
	}
	leave := func(by uint32) {
		t.Helper()
		for src := range uint64(8) {
			r.send(2, frame(7, src, 0x1234))
			r.leaves(by)
		}
	}
	leave(1)
	r.must(change(add, 4, true))
	r.must(change(add, 3, false)) // the first member is there already
	want("after the first change", 3, 4)
	leave(2)
	r.must(change(add, 5, true))
	r.must(change(remove, 4, true))
	want("after the second change", 3, 5)
	leave(130)
	if err := change(remove, 4, true); err == nil {
		t.Error("a member that the group does not have is removed")
	}
	want("after the refused change", 3, 5)
	leave(130)
}

// Subscribers are notified of members that became active or inactive, if the table and the
// subscription request it.
func TestSelectorNotifications(t *testing.T) {
	r := newRig(t)
	for member := range uint64(3) {
		r.set(ins, "In.members", r.key("In.members", member+3), r.data("In.members", "spread_to", "port", 1))
	}
	group := func(kind wire.Update_Type, members []uint32, active []bool) {
		r.must(r.write(everywhere, update(kind, r.entry("In.groups", r.key("In.groups", 8), r.data("In.groups", "", "$ACTION_MEMBER_ID", members, "$ACTION_MEMBER_STATUS", active)))))
	}
	want := func(members []uint32, added []bool) {
		t.Helper()
		for i, m := range members {
			n := r.hear().GetSelectorUpdateChangeNotification()
			if n.GetSelGroupId() != 8 || n.GetActMemberId() != m || n.GetIsAdd() != added[i] {
				t.Errorf("message %d: %v, want member %d, added %v", i, n, m, added[i])
			}
		}
	}
	group(ins, []uint32{3, 4}, []bool{true, false}) // before anyone asks
	r.must(r.write(everywhere, &wire.Update{Type: ins, Entity: &wire.Entity{Entity: &wire.Entity_TableAttribute{TableAttribute: &wire.TableAttribute{
		TableId: r.table("In.groups").schema.ID, Attribute: &wire.TableAttribute_SelectorUpdateNotify{SelectorUpdateNotify: &wire.SelectorUpdateCb{Enable: true}},
	}}}}))
	group(mod, []uint32{3, 4}, []bool{false, true})
	want([]uint32{3, 4}, []bool{false, true})
	group(mod, []uint32{4, 5, 3}, []bool{true, true, false}) // 4 stays active, at another place
	want([]uint32{5}, []bool{true})
	group(mod, []uint32{3}, []bool{true})
	want([]uint32{4, 5, 3}, []bool{false, false, true})
}

// All cells of a large register have their numbers and values, in one pipe and in all.
func TestLargeRegister(t *testing.T) {
	r := newRig(t)
	const cell = 60_000
	r.must(r.write(pipe(1), update(mod, r.entry("In.large", r.key("In.large", cell), r.data("In.large", "", "first", 5, "second", 6)))))
	for _, test := range []struct {
		target *wire.TargetDevice
		want   []uint64
	}{{pipe(1), []uint64{5, 6}}, {pipe(0), []uint64{0, 0}}} {
		list, err := r.read(test.target, r.entry("In.large", nil, nil))
		r.must(err)
		if len(list) != 1<<16 {
			t.Fatalf("%d cells", len(list))
		}
		for i, e := range list {
			if got := uintOf(e.GetKey().GetFields()[0].GetExact().GetValue()); got != uint64(i) {
				t.Fatalf("cell %d has the number %d", i, got)
			}
			var got []uint64
			for _, f := range e.GetData().GetFields() {
				got = append(got, uintOf(f.GetStream()))
			}
			want := []uint64{0, 0}
			if i == cell {
				want = test.want
			}
			if !slices.Equal(got, want) {
				t.Fatalf("cell %d: %v, want %v", i, got, want)
			}
		}
	}
}

// The counters of a table's entries and of its default entry have the written value, also
// in a pipe with its own entries.
func TestCountersOfSinglePipe(t *testing.T) {
	r := newRig(t)
	const table = "In.dmac"
	r.scoped(table, 0)
	count := func(n int, action string, kind wire.Update_Type, pre bool) {
		t.Helper()
		list := []any{"$COUNTER_SPEC_PKTS", n}
		if action == "send" {
			list = append(list, "port", 1)
		}
		e := r.entry(table, r.key(table, 5), r.data(table, action, list...))
		if pre {
			e = r.entry(table, nil, e.Data)
			e.IsDefaultEntry = true
		}
		r.must(r.write(pipe(2), update(kind, e)))
		e.Data, e.TableFlags = nil, &wire.TableFlags{FromHw: true}
		got, err := r.read(pipe(2), e)
		r.must(err)
		if len(got) != 1 || !slices.Equal(r.values(table, got[0].Data, "$COUNTER_SPEC_PKTS"), []uint64{uint64(n)}) {
			t.Errorf("%v of a default entry (%v): %v, want %d packets", kind, pre, got, n)
		}
	}
	count(7, "send", ins, false)
	count(9, "", mod, false)
	count(4, "", mod, true)
}

// A walk lets others change the tables after each walkSize entries.
func TestWalkPauses(t *testing.T) {
	var at []int
	told := 0
	r := &request{out: func(*wire.Entity) error { told++; return nil }, rest: func() error { at = append(at, told); return nil }}
	for i := range 2*walkSize + 1 {
		if err := r.given(i, &wire.TableEntry{}); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.Equal(at, []int{walkSize, 2 * walkSize}) || told != 2*walkSize+1 {
		t.Errorf("pauses after %v of %d entries", at, told)
	}
}

// Changes of a group, undone ones too, leave the entries that refer to it with that group.
func TestEntriesOfChangedGroups(t *testing.T) {
	r := newRig(t)
	const table = "In.groups"
	r.set(ins, "In.dmac", r.key("In.dmac", 7), r.data("In.dmac", "copies", "group", 0))
	members := func(list ...uint32) *wire.TableData {
		active := make([]bool, len(list))
		for i := range active {
			active[i] = true
		}
		return r.data(table, "", "$ACTION_MEMBER_ID", list, "$ACTION_MEMBER_STATUS", active)
	}
	for member, port := range map[uint64]int{3: 1, 4: 2, 5: 130} {
		r.set(ins, "In.members", r.key("In.members", member), r.data("In.members", "spread_to", "port", port))
	}
	for id := range uint64(3) {
		r.set(ins, table, r.key(table, id+8), members(3))
		r.set(ins, "In.choose", r.key("In.choose", id), r.data("In.choose", "", "$SELECTOR_GROUP_ID", int(id)+8))
	}
	for id, member := range map[uint64]uint32{9: 4, 10: 5} {
		r.set(mod, table, r.key(table, id), members(member))
		r.undone(update(mod, r.entry(table, r.key(table, id), members(3))))
	}
	for id, port := range []uint32{1, 2, 130} {
		if got := r.values("In.choose", r.get(everywhere, "In.choose", r.key("In.choose", uint64(id))), "$SELECTOR_GROUP_ID"); !slices.Equal(got, []uint64{uint64(id) + 8}) {
			t.Errorf("entry %d has the group %d, want %d", id, got, id+8)
		}
		r.send(130, frame(7, 5, uint64(id)))
		r.leaves(port)
	}
}

// A digest names the pipe whose packets it reports.
func TestPipeOfDigest(t *testing.T) {
	r := newRig(t)
	r.set(ins, "In.acl", r.match("In.acl", "port_class", "=00"), r.data("In.acl", "learn"))
	r.set(ins, "In.acl", r.match("In.acl", "port_class", "=01"), r.data("In.acl", "learn"))
	for _, c := range []struct{ port, pipe uint32 }{{130, 1}, {2, 0}, {130, 1}} {
		r.send(c.port, frame(7, 5, 0))
		if d := r.hear().GetDigest(); len(d.GetData()) != 1 || d.GetTarget().GetPipeId() != c.pipe {
			t.Errorf("port %d: the digest is %v, want one of pipe %d", c.port, d, c.pipe)
		}
	}
}

// A client reads back the offset of a group's action data. Intel's schemas have 0xdeadbeef
// for none.
func TestOffsetOfGroup(t *testing.T) {
	r := newRig(t)
	const table = "In.groups"
	r.set(ins, "In.members", r.key("In.members", 3), r.data("In.members", "spread_to", "port", 1))
	offset := func(group, want uint64) {
		t.Helper()
		if got := r.values(table, r.get(everywhere, table, r.key(table, group)), "$ADT_OFFSET"); !slices.Equal(got, []uint64{want}) {
			t.Errorf("group %d has the offset %d, want %d", group, got, want)
		}
	}
	r.set(ins, table, r.key(table, 8), r.data(table, "", "$ACTION_MEMBER_ID", []uint32{3}, "$ACTION_MEMBER_STATUS", []bool{true}))
	r.set(ins, table, r.key(table, 9), r.data(table, "", "$ACTION_MEMBER_ID", []uint32{3}, "$ACTION_MEMBER_STATUS", []bool{true}, "$ADT_OFFSET", 7))
	offset(8, 0xdeadbeef)
	offset(9, 7)
	r.set(mod, table, r.key(table, 8), r.data(table, "", "$ADT_OFFSET", 4))
	r.set(mod, table, r.key(table, 9), r.data(table, "", "$ACTION_MEMBER_ID", []uint32{3}, "$ACTION_MEMBER_STATUS", []bool{false}))
	offset(8, 4)
	offset(9, 7)
}

// A read of all pipes returns the register cells of an entry in the pipes that have it.
func TestCellsOfEntryInSomePipes(t *testing.T) {
	r := newProgramRig(t, entries, gate.Limits{})
	const table = "In.counted"
	r.scoped(table, 0)
	for _, n := range []uint32{1, 3} {
		r.must(r.write(pipe(n), update(ins, r.entry(table, r.key(table, 5), r.data(table, "tally", "port", 2, "first", 20+int(n))))))
	}
	r.must(r.write(pipe(2), update(ins, r.entry(table, r.key(table, 6), r.data(table, "tally", "port", 2, "first", 22)))))
	want := map[string][]uint64{string(mustMarshal(r.key(table, 5))): {21, 23}, string(mustMarshal(r.key(table, 6))): {22}}
	list := r.list(table)
	for _, e := range list {
		if got := r.values(table, e.GetData(), "first"); !slices.Equal(got, want[string(mustMarshal(e.GetKey()))]) {
			t.Errorf("%v: cells %d", e.GetKey(), got)
		}
	}
	if len(list) != 2 {
		t.Errorf("%d entries, want 2", len(list))
	}
}
