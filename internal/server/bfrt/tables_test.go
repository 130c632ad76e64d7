package server

import (
	"fmt"
	"slices"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/p4lb/p4lb/internal/bfrt/wire"
	"github.com/p4lb/p4lb/internal/server/gate"
)

// handleOf returns the handle of an entry.
func (r *rig) handleOf(target *wire.TargetDevice, table string, k *wire.TableKey) uint32 {
	r.t.Helper()
	e, code := r.ask(target, &wire.Entity{Entity: &wire.Entity_Handle{Handle: &wire.HandleId{TableId: r.table(table).schema.ID, Value: &wire.HandleId_Key{Key: k}}}})
	if code != codes.OK {
		r.t.Fatalf("no handle: %v", code)
	}
	return e.GetHandle().GetHandleId()
}

func (r *rig) byHandle(table string, handle uint32, d *wire.TableData) *wire.TableEntry {
	e := r.entry(table, nil, d)
	e.Value = &wire.TableEntry_HandleId{HandleId: handle}
	return e
}

// The table of a group's members returns the member that a hash selects, among the members in use.
func TestGetMember(t *testing.T) {
	r := newRig(t)
	for id := range uint64(3) {
		r.set(ins, "In.members", r.key("In.members", id+3), r.data("In.members", "spread_to", "port", 1))
	}
	group := func(kind wire.Update_Type, active ...bool) {
		r.must(r.write(everywhere, update(kind, r.entry("In.groups", r.key("In.groups", 8), r.data("In.groups", "", "$ACTION_MEMBER_ID", []uint32{3, 4, 5}, "$ACTION_MEMBER_STATUS", active)))))
	}
	const table = "In.groups_get_member"
	member := func(group, hash uint64) string {
		list, err := r.read(everywhere, r.entry(table, r.key(table, group, hash), nil))
		if err != nil {
			return codes.Code(details(t, err)[0].GetCanonicalCode()).String()
		}
		return fmt.Sprint(r.values(table, list[0].GetData(), "$ACTION_MEMBER_ID"))
	}
	group(ins, true, false, true)
	for _, test := range []struct {
		group, hash uint64
		want        string
	}{{8, 0, "[3]"}, {8, 1, "[5]"}, {8, 2, "[3]"}, {8, 1<<63 + 1, "[5]"}, {9, 0, "NotFound"}} {
		if got := member(test.group, test.hash); got != test.want {
			t.Errorf("group %d, hash %d: %s, want %s", test.group, test.hash, got, test.want)
		}
	}
	one, err := r.read(pipe(0), r.entry(table, r.key(table, 8, 1), nil))
	if err != nil || !slices.Equal(r.values(table, one[0].GetData(), "$ACTION_MEMBER_ID"), []uint64{5}) {
		t.Errorf("in one pipe: %v, %v", one, err)
	}
	group(mod, true, true, true)
	if a, b, c := member(8, 0), member(8, 1), member(8, 2); a != "[3]" || b != "[4]" || c != "[5]" {
		t.Errorf("with all members: %s %s %s", a, b, c)
	}
	group(mod, false, false, false)
	if got := member(8, 0); got != "NotFound" {
		t.Errorf("with no member in use: %s", got)
	}
	if _, err := r.read(everywhere, r.entry(table, r.key(table, 8), nil)); err == nil || codes.Code(details(t, err)[0].GetCanonicalCode()) != codes.InvalidArgument {
		t.Errorf("without a hash: %v", err)
	}
	r.refused("a write", update(ins, r.entry(table, r.key(table, 8, 0), nil)), codes.Unimplemented, "read only")
}

// Groups take lists of equal length with existing members, up to the size of the group,
// which is at most the size in the program. A group that entries use keeps an active
// member.
func TestGroupRefusals(t *testing.T) {
	r := newRig(t)
	for id := range uint64(12) {
		r.set(ins, "In.members", r.key("In.members", id), r.data("In.members", "spread_to", "port", 1))
	}
	group := func(kind wire.Update_Type, list ...any) *wire.Update {
		return update(kind, r.entry("In.groups", r.key("In.groups", 8), r.data("In.groups", "", list...)))
	}
	upTo := func(n uint32) (ids []uint32, on []bool) {
		for i := range n {
			ids, on = append(ids, i), append(on, true)
		}
		return ids, on
	}
	r.refused("a change of no group", group(mod, "$MAX_GROUP_SIZE", 4), codes.NotFound, "there is no group 8")
	r.refused("an increment of no group", group(wire.Update_MODIFY_INC, "$ACTION_MEMBER_ID", []uint32{1}, "$ACTION_MEMBER_STATUS", []bool{true}), codes.NotFound, "there is no group 8")
	r.refused("a state too few", group(ins, "$ACTION_MEMBER_ID", []uint32{1, 2}, "$ACTION_MEMBER_STATUS", []bool{true}), codes.InvalidArgument, "differ in length: 2 and 1")
	r.refused("members of no group", group(ins, "$ACTION_MEMBER_ID", []uint32{77}, "$ACTION_MEMBER_STATUS", []bool{true}), codes.NotFound, "there is no member 77")
	r.refused("a size above the program's", group(ins, "$MAX_GROUP_SIZE", 9), codes.InvalidArgument, "above the maximum of the program, 8")
	ids, on := upTo(9)
	r.refused("too many members", group(ins, "$MAX_GROUP_SIZE", 8, "$ACTION_MEMBER_ID", ids, "$ACTION_MEMBER_STATUS", on), codes.ResourceExhausted, "9 members do not fit in the group, which has room for 8")
	ids, on = upTo(8)
	r.fine(group(ins, "$MAX_GROUP_SIZE", 8, "$ACTION_MEMBER_ID", ids, "$ACTION_MEMBER_STATUS", on))
	off := make([]bool, 8)
	r.fine(group(mod, "$ACTION_MEMBER_ID", ids, "$ACTION_MEMBER_STATUS", off)) // nothing leads to it
	r.fine(group(mod, "$ACTION_MEMBER_ID", ids, "$ACTION_MEMBER_STATUS", on))
	r.set(ins, "In.choose", r.key("In.choose", 1), r.data("In.choose", "", "$SELECTOR_GROUP_ID", 8))
	r.refused("no member in use", group(mod, "$ACTION_MEMBER_ID", ids, "$ACTION_MEMBER_STATUS", off), codes.InvalidArgument, "at least one member must be active")
	off[5] = true
	r.fine(group(mod, "$ACTION_MEMBER_ID", ids, "$ACTION_MEMBER_STATUS", off))
	r.refused("a member in use of a group", update(del, r.entry("In.members", r.key("In.members", 5), nil)), codes.AlreadyExists, "still in use")
	outcome := func(kind wire.Update_Type, id uint64) codes.Code {
		err := r.write(everywhere, update(kind, r.entry("In.groups", r.key("In.groups", id), r.data("In.groups", "", "$MAX_GROUP_SIZE", 8))))
		return r.codeOf(err)
	}
	if first, second := outcome(wire.Update_INSERT_OR_MODIFY, 9), outcome(wire.Update_INSERT_OR_MODIFY, 9); first != codes.OK || second == codes.NotFound || r.usage("In.groups") != 2 {
		t.Errorf("an insertion or change: %v, then %v", first, second)
	}
}

// An entry is changed, read and deleted by its handle, under the target that has it.
func TestEntriesByHandle(t *testing.T) {
	r := newRig(t)
	r.must(r.write(everywhere, r.attribute("In.dmac", &wire.TableAttribute{Attribute: &wire.TableAttribute_EntryScope{EntryScope: &wire.EntryScope{PipeScope: &wire.Mode{Scope: &wire.Mode_Predef{Predef: wire.Mode_SINGLE}}}}})))
	for n := range uint32(2) {
		r.must(r.write(pipe(n), update(ins, r.entry("In.dmac", r.key("In.dmac", 1), r.data("In.dmac", "send", "port", int(n)+1)))))
		r.must(r.write(pipe(n), update(ins, r.entry("In.dmac", r.key("In.dmac", 2), r.data("In.dmac", "drop")))))
	}
	first, second := r.handleOf(pipe(0), "In.dmac", r.key("In.dmac", 1)), r.handleOf(pipe(1), "In.dmac", r.key("In.dmac", 1))
	if first == second || first == defaultHandle || second == defaultHandle || r.handleOf(pipe(0), "In.dmac", r.key("In.dmac", 1)) != first {
		t.Errorf("handles %d and %d", first, second)
	}
	port := func(n uint32) uint64 {
		t.Helper()
		d := r.get(pipe(n), "In.dmac", r.key("In.dmac", 1))
		if d.GetActionId() != r.action("In.dmac", "send") {
			t.Fatalf("entry of pipe %d: %v", n, d)
		}
		return uintOf(d.GetFields()[0].GetStream())
	}
	r.must(r.write(pipe(1), update(mod, r.byHandle("In.dmac", second, r.data("In.dmac", "send", "port", 130)))))
	if a, b := port(0), port(1); a != 1 || b != 130 {
		t.Errorf("after the change of pipe 1: ports %d and %d", a, b)
	}
	if err := r.write(pipe(0), update(mod, r.byHandle("In.dmac", second, r.data("In.dmac", "send", "port", 5)))); err == nil {
		t.Error("pipe 0 changes an entry of pipe 1")
	}
	if err := r.write(pipe(1), update(mod, r.byHandle("In.dmac", 999, r.data("In.dmac", "send", "port", 5)))); r.codeOf(err) != codes.NotFound {
		t.Errorf("an unknown handle: %v", err)
	}
	// Handle 1 is the default entry, as a read by handle returns it.
	list, err := r.read(pipe(0), r.byHandle("In.dmac", defaultHandle, nil))
	if err != nil || len(list) != 1 || list[0].GetIsDefaultEntry() || list[0].GetData().GetActionId() != r.action("In.dmac", "drop") {
		t.Errorf("the default entry: %v, %v", list, err)
	}
	r.must(r.write(pipe(1), update(del, r.byHandle("In.dmac", second, nil))))
	if err := r.write(pipe(1), update(del, r.byHandle("In.dmac", second, nil))); err == nil {
		t.Error("an entry is deleted twice")
	}
	if a, b := r.usage("In.dmac"), port(0); a != 3 || b != 1 {
		t.Errorf("%d entries are left, one with port %d", a, b)
	}
	// A new entry has a new handle, even with the key of the deleted one.
	r.must(r.write(pipe(1), update(ins, r.entry("In.dmac", r.key("In.dmac", 1), r.data("In.dmac", "send", "port", 2)))))
	if h := r.handleOf(pipe(1), "In.dmac", r.key("In.dmac", 1)); h == second || h == first {
		t.Errorf("handle %d again", h)
	}
}

// An update can insert an entry or change an existing one. Other kinds of update are
// refused with a reason.
func TestUpdatesOfEntries(t *testing.T) {
	r := newRig(t)
	entry := func(kind wire.Update_Type, port int) *wire.Update {
		return update(kind, r.entry("In.dmac", r.key("In.dmac", 1), r.data("In.dmac", "send", "port", port)))
	}
	port := func() uint64 {
		return uintOf(r.get(everywhere, "In.dmac", r.key("In.dmac", 1)).GetFields()[0].GetStream())
	}
	r.refused("a change of no entry", entry(mod, 1), codes.NotFound, "the entry does not exist")
	r.refused("a deletion of no entry", update(del, r.entry("In.dmac", r.key("In.dmac", 1), nil)), codes.NotFound, "the entry does not exist")
	r.must(r.write(everywhere, entry(wire.Update_INSERT_OR_MODIFY, 1)))
	if port() != 1 {
		t.Errorf("port %d", port())
	}
	r.write(everywhere, entry(wire.Update_INSERT_OR_MODIFY, 2)) // the answer reports a modification
	if port() != 2 || r.usage("In.dmac") != 1 {
		t.Errorf("port %d of %d entries", port(), r.usage("In.dmac"))
	}
	r.refused("a second insertion", entry(ins, 1), codes.AlreadyExists, "")
	r.refused("an increment", entry(wire.Update_MODIFY_INC, 1), codes.Unimplemented, "cannot be incremented")
	r.refused("neither key nor handle", update(ins, r.entry("In.dmac", nil, r.data("In.dmac", "send", "port", 1))), codes.InvalidArgument, "neither key nor handle")
	r.refused("the default entry of a constant", update(mod, &wire.TableEntry{TableId: r.table("In.dmac").schema.ID, IsDefaultEntry: true, Data: r.data("In.dmac", "send", "port", 1)}), codes.Unimplemented, "fixed by the program")
	// A change with the same action keeps the parameters that it leaves out.
	r.set(mod, "In.dmac", r.key("In.dmac", 1), r.data("In.dmac", "send"))
	if port() != 2 {
		t.Errorf("without a parameter the port is %d", port())
	}
	r.set(mod, "In.dmac", r.key("In.dmac", 1), r.data("In.dmac", "copies"))
	if d := r.get(everywhere, "In.dmac", r.key("In.dmac", 1)); d.GetActionId() != r.action("In.dmac", "copies") || uintOf(d.GetFields()[0].GetStream()) != 0 {
		t.Errorf("with another action: %v", d)
	}

	s := newProgramRig(t, entries, gate.Limits{})
	s.refused("an action for the default entry", update(ins, s.entry("In.scoped", s.key("In.scoped", 1), s.data("In.scoped", "only_miss"))), codes.InvalidArgument, "is only for the default entry")
	s.refused("an action for entries", update(mod, &wire.TableEntry{TableId: s.table("In.scoped").schema.ID, IsDefaultEntry: true, Data: s.data("In.scoped", "only_hit")}), codes.InvalidArgument, "is not for the default entry")
	s.set(ins, "In.scoped", s.key("In.scoped", 1), s.data("In.scoped", "only_hit"))
	s.refused("a change to an action for the default entry", update(mod, s.entry("In.scoped", s.key("In.scoped", 1), s.data("In.scoped", "only_miss"))), codes.InvalidArgument, "is only for the default entry")
	for dst, want := range map[uint64]uint32{1: 2, 2: 130} {
		if port, _ := s.goes(frame(dst, 0, 10)); port != want {
			t.Errorf("packets to %d leave by port %d, want %d", dst, port, want)
		}
	}
}

// The parameter of a register's actions is one number, of all pipes or one.
func TestRegisterParam(t *testing.T) {
	r := newProgramRig(t, entries, gate.Limits{})
	total := func(what string, want uint64) {
		t.Helper()
		if _, out := r.goes(frame(0, 0, 8)); src(out, 16) != want {
			t.Errorf("%s: total %d, want %d", what, src(out, 16), want)
		}
	}
	value := func() []uint64 { return r.values("In.step", r.get(everywhere, "In.step", nil), "value") }
	total("the program's step", 100)
	set := func(to *wire.TargetDevice, v int) {
		t.Helper()
		e := r.entry("In.step", nil, r.data("In.step", "", "value", v))
		e.IsDefaultEntry = true
		r.must(r.write(to, update(mod, e)))
	}
	set(everywhere, 7)
	total("another step", 107)
	if got := value(); !slices.Equal(got, []uint64{7}) {
		t.Errorf("the step is %d", got)
	}
	set(pipe(1), 9)
	total("another step in another pipe", 114)
	e := r.entry("In.step", nil, nil)
	e.IsDefaultEntry = true
	r.must(r.write(everywhere, update(del, e)))
	total("the program's step again", 214)
}

// Rates and lengths of queues take effect in the switch: the rates of the queue with a
// number in a port group, if they are enabled.
func TestQueues(t *testing.T) {
	r := newRig(t)
	const cfg, shaping, buffer = "tm.queue.sched_cfg", "tm.queue.sched_shaping", "tm.queue.buffer"
	if m := r.values("tm.queue.map", r.get(pipe(1), "tm.queue.map", r.key("tm.queue.map", 0, 17)), "dev_port"); !slices.Equal(m, []uint64{130}) {
		t.Errorf("queue 17 of group 0 in pipe 1 is one of port %d", m)
	}
	if m := r.values("tm.queue.map", r.get(pipe(1), "tm.queue.map", r.key("tm.queue.map", 0, 17)), "queue_nr"); !slices.Equal(m, []uint64{1}) {
		t.Errorf("queue 17 of group 0 is number %d of its port", m)
	}
	for port, want := range map[uint64][]uint64{0: {0, 0}, 3: {0, 3}, 4: {1, 0}, 130: {0, 2}, 199: {17, 3}} {
		d := r.get(everywhere, "tm.port.cfg", r.key("tm.port.cfg", port))
		if got := append(r.values("tm.port.cfg", d, "pg_id"), r.values("tm.port.cfg", d, "pg_port_nr")...); !slices.Equal(got, want) {
			t.Errorf("port %d is %d, want group and number %d", port, got, want)
		}
	}
	r.refused("a queue beyond a group's", update(mod, r.entry(cfg, r.key(cfg, 0, 32), r.data(cfg, "", "max_rate_enable", true))), codes.InvalidArgument, "no queue 32 of port group 0")
	r.refused("a group beyond a pipe's", update(mod, r.entry(cfg, r.key(cfg, 18, 0), r.data(cfg, "", "max_rate_enable", true))), codes.InvalidArgument, "no queue 0 of port group 18")
	r.refused("the properties of a port", update(mod, r.entry("tm.port.cfg", r.key("tm.port.cfg", 1), nil)), codes.Unimplemented, "read only")
	// Port 2 has the queues 16 to 23 of group 0.
	write := func(table, action string, list ...any) {
		t.Helper()
		r.must(r.write(pipe(0), update(mod, r.entry(table, r.key(table, 0, 16), r.data(table, action, list...)))))
	}
	queue := func(what string, rate uint64, depth int) {
		t.Helper()
		if pps, n, ok := r.dev.Queue(2); pps != rate || n != depth || !ok {
			t.Errorf("%s: %d packets/s, %d packets, %v; want %d and %d", what, pps, n, ok, rate, depth)
		}
	}
	write(buffer, "shared_pool", "guaranteed_cells", 10, "pool_id", "EG_APP_POOL_0", "pool_max_cells", 30)
	write(shaping, "", "unit", "PPS", "max_rate", 5000)
	queue("not enabled", 0, 40)
	write(cfg, "", "max_rate_enable", true)
	queue("enabled", 5000, 40)
	write(shaping, "", "unit", "BPS", "max_rate", 12_000)
	queue("in kilobits", 1000, 40)
	write(cfg, "", "max_rate_enable", false)
	queue("disabled", 0, 40)
	if _, _, ok := r.dev.Queue(1); ok {
		t.Error("the queue of another port is set")
	}
}

// Two tables set the rate of a port: either of them enables or changes it. Packets wait at
// a slow port.
func TestPortRates(t *testing.T) {
	r := newRig(t)
	const port, rate = "tm.port.sched_cfg", "tm.port.sched_shaping"
	r.set(ins, "In.dmac", r.key("In.dmac", 7), r.data("In.dmac", "send", "port", 2))
	waits := func(what string, want bool) {
		t.Helper()
		for range 3 {
			r.send(1, frame(7, 1, 5))
		}
		if want {
			until(t, what, func() bool { return !r.dev.Idle() })
			r.set(del, port, r.key(port, 2), nil) // no limit any more
		}
		for range 3 {
			r.leaves(2)
		}
	}
	enable := func() { r.set(mod, port, r.key(port, 2), r.data(port, "", "max_rate_enable", true)) }
	slow := func(n int) *wire.Update {
		return update(mod, r.entry(rate, r.key(rate, 2), r.data(rate, "", "unit", "BPS", "max_rate", n)))
	}
	waits("no rate", false)
	r.must(r.write(everywhere, slow(1)))
	waits("a rate that is not enabled", false)
	enable()
	waits("a rate that is enabled", true)
	waits("a rate that was reset", false)
	r.must(r.write(everywhere, slow(100_000_000)))
	enable()
	waits("a fast rate", false)
	r.must(r.write(everywhere, slow(1)))
	waits("a rate that was changed", true)
	r.must(r.write(everywhere, slow(100_000_000)))
	enable()
	if _, err := r.c.Write(t.Context(), &wire.WriteRequest{Target: everywhere, ClientId: r.client, Atomicity: wire.WriteRequest_ROLLBACK_ON_ERROR, Updates: []*wire.Update{
		slow(1), update(mod, r.entry(rate, r.key(rate, 72), r.data(rate, "", "max_rate", 1))),
	}}); err == nil {
		t.Error("port 72 has a rate")
	}
	waits("a rate that was undone", false)
}

// Subscribers are notified of a port that fails or comes up, if the attribute of its table
// is set.
func TestPortNotifications(t *testing.T) {
	r := newRig(t)
	notify := func(on bool) {
		r.must(r.write(everywhere, r.attribute("$PORT", &wire.TableAttribute{Attribute: &wire.TableAttribute_PortStatusNotify{PortStatusNotify: &wire.PortStatusChg{Enable: on}}})))
	}
	notify(true)
	for _, up := range []bool{false, true} {
		r.dev.SetPortUp(130, up)
		n := r.hear().GetPortStatusChangeNotification()
		if n == nil || n.GetPortUp() != up || n.GetTableEntry().GetTableId() != r.table("$PORT").schema.ID || !proto.Equal(n.GetTableEntry().GetKey(), r.key("$PORT", 130)) {
			t.Errorf("port 130 up %v: %v", up, n)
		}
		if got := r.field("$PORT", r.get(everywhere, "$PORT", r.key("$PORT", 130)), "$PORT_UP").GetBoolVal(); got != up {
			t.Errorf("port 130 reads up %v, want %v", got, up)
		}
	}
	notify(false)
	r.dev.SetPortUp(130, false)
	notify(true)
	r.dev.SetPortUp(1, false)
	if n := r.hear().GetPortStatusChangeNotification(); !proto.Equal(n.GetTableEntry().GetKey(), r.key("$PORT", 1)) {
		t.Errorf("after a change while notifications were off: %v", n)
	}
}

// Copies of a packet go to the ports of a group's nodes, except for ports that are excluded,
// pruned or down. A backup port takes the copies of a failed one.
func TestCopies(t *testing.T) {
	r := newProgramRig(t, entries, gate.Limits{})
	node := func(id, rid uint64, lags, ports []uint32) {
		r.set(ins, "$pre.node", r.key("$pre.node", id), r.data("$pre.node", "", "$MULTICAST_RID", int(rid), "$MULTICAST_LAG_ID", lags, "$DEV_PORT", ports))
	}
	node(1, 11, []uint32{}, []uint32{1, 2})
	node(2, 12, []uint32{}, []uint32{130})
	node(3, 13, []uint32{5}, []uint32{})
	r.set(ins, "$pre.lag", r.key("$pre.lag", 5), r.data("$pre.lag", "", "$DEV_PORT", []uint32{130, 1}))
	group := func(id uint64, nodes []uint32, excluded []bool, xids []uint32) {
		r.set(ins, "$pre.mgid", r.key("$pre.mgid", id), r.data("$pre.mgid", "", "$MULTICAST_NODE_ID", nodes, "$MULTICAST_NODE_L1_XID_VALID", excluded, "$MULTICAST_NODE_L1_XID", xids))
	}
	group(3, []uint32{1, 2}, []bool{true, false}, []uint32{7, 0})
	group(4, []uint32{3}, []bool{false}, []uint32{0})
	r.set(ins, "$pre.prune", r.key("$pre.prune", 9), r.data("$pre.prune", "", "$DEV_PORT", []uint32{2}))
	packets := uint64(0)
	copies := func(what string, group, xid, prune, rid, hash int, ports ...uint32) {
		t.Helper()
		packets++
		r.set(ins, "In.copied", r.key("In.copied", packets), r.data("In.copied", "copy", "group", group, "xid", xid, "prune", prune, "rid", rid, "hash", hash))
		r.send(2, frame(packets, 0, 7))
		for _, p := range ports {
			if b := r.leaves(p); uintOf(b[:6]) != packets {
				t.Errorf("%s: port %d sends a copy of packet %d", what, p, uintOf(b[:6]))
			}
		}
		r.send(2, frame(0, 0, 99)) // a packet behind it, by port 1
		for uintOf(r.leaves(1)[:6]) != 0 {
			t.Errorf("%s: a further copy by port 1", what)
		}
		for _, p := range []uint32{2, 130} {
			if n := len(r.ports[p].sent); n > 0 {
				t.Errorf("%s: %d further copies by port %d", what, n, p)
				for range n {
					<-r.ports[p].sent
				}
			}
		}
	}
	copies("all", 3, 0, 0, 0, 0, 1, 2, 130)
	copies("a node excluded", 3, 7, 0, 0, 0, 130)
	copies("another exclusion", 3, 8, 0, 0, 0, 1, 2, 130)
	copies("pruned without the node's number", 3, 0, 9, 99, 0, 1, 2, 130)
	copies("pruned", 3, 0, 9, 11, 0, 1, 130)
	copies("no group", 77, 0, 0, 0, 0)
	copies("one of a bundle", 4, 0, 0, 0, 0, 1)
	copies("the other of a bundle", 4, 0, 0, 0, 1, 130)
	r.set(ins, "$pre.port", r.key("$pre.port", 130), r.data("$pre.port", "", "$MULTICAST_FORWARD_STATE", false, "$MULTICAST_BACKUP_PORT", 1))
	copies("a bundle with a failed port", 4, 0, 0, 0, 1, 1)
	r.must(r.write(everywhere, r.attribute("$pre.mgid", &wire.TableAttribute{Attribute: &wire.TableAttribute_PreDeviceConfig{PreDeviceConfig: &wire.PreDeviceConfig{PrePortProtection: &wire.PrePortProtection{Enable: true}}}})))
	copies("a failed port with a backup", 3, 7, 0, 0, 0, 1)
	r.set(mod, "$pre.port", r.key("$pre.port", 130), r.data("$pre.port", "", "$MULTICAST_FORWARD_STATE", true))
	copies("a port that works again", 3, 7, 0, 0, 0, 130)
	r.must(r.write(everywhere, r.attribute("$pre.mgid", &wire.TableAttribute{Attribute: &wire.TableAttribute_PreDeviceConfig{PreDeviceConfig: &wire.PreDeviceConfig{PreGlobalRid: &wire.PreGlobalRid{GlobalRid: 500}}}})))
	copies("pruned by the number of all nodes", 3, 0, 9, 500, 0, 1, 130)
	if code := r.codeOf(r.write(everywhere, r.attribute("$pre.mgid", &wire.TableAttribute{Attribute: &wire.TableAttribute_PreDeviceConfig{PreDeviceConfig: &wire.PreDeviceConfig{PreGlobalRid: &wire.PreGlobalRid{GlobalRid: 1 << 16}}}}))); code != codes.InvalidArgument {
		t.Errorf("a number of 17 bits for all nodes: %v", code)
	}
	e, code := r.ask(everywhere, &wire.Entity{Entity: &wire.Entity_TableAttribute{TableAttribute: &wire.TableAttribute{TableId: r.table("$pre.mgid").schema.ID, Attribute: &wire.TableAttribute_PreDeviceConfig{}}}})
	if c := e.GetTableAttribute().GetPreDeviceConfig(); code != codes.OK || c.GetPreGlobalRid().GetGlobalRid() != 500 || !c.GetPrePortProtection().GetEnable() {
		t.Errorf("the configuration is %v, %v", c, code)
	}
	r.set(del, "$pre.mgid", r.key("$pre.mgid", 3), nil)
	copies("a group that is gone", 3, 0, 0, 0, 0)
}

// The counter of an entry is the sum over its pipes. A read without from_hw returns the
// value at the last sync, and an update of all pipes sets the sum.
func TestEntryCounters(t *testing.T) {
	r := newRig(t)
	key := r.key("In.dmac", 7)
	r.set(ins, "In.dmac", key, r.data("In.dmac", "send", "port", 2))
	r.set(ins, "In.dmac", r.key("In.dmac", 8), r.data("In.dmac", "send", "port", 2, "$COUNTER_SPEC_PKTS", 1000, "$COUNTER_SPEC_BYTES", 5))
	counted := func(what string, k *wire.TableKey, fresh bool, packets, bytes uint64) {
		t.Helper()
		e := r.entry("In.dmac", k, nil)
		e.TableFlags = &wire.TableFlags{FromHw: fresh}
		list, err := r.read(everywhere, e)
		r.must(err)
		d := list[0].GetData()
		got := append(r.values("In.dmac", d, "$COUNTER_SPEC_PKTS"), r.values("In.dmac", d, "$COUNTER_SPEC_BYTES")...)
		if !slices.Equal(got, []uint64{packets, bytes}) {
			t.Errorf("%s: %d packets and bytes, want %d and %d", what, got, packets, bytes)
		}
	}
	for _, port := range []uint32{1, 1, 130} {
		r.send(port, frame(7, 1, 5))
		r.leaves(2)
	}
	size := uint64(64 + 4) // with the frame check sequence
	counted("as last synced", key, false, 0, 0)
	counted("from the chip", key, true, 3, 3*size)
	counted("as last synced", key, false, 3, 3*size)
	r.send(130, frame(7, 1, 5))
	r.leaves(2)
	counted("before the sync", key, false, 3, 3*size)
	r.must(r.write(everywhere, r.operation("In.dmac", "SyncCounters")))
	counted("after the sync", key, false, 4, 4*size)
	r.set(mod, "In.dmac", key, r.data("In.dmac", "", "$COUNTER_SPEC_PKTS", 50))
	counted("set", key, true, 50, 4*size)
	counted("another entry", r.key("In.dmac", 8), true, 1000, 5)
	r.set(del, "In.dmac", key, nil)
	r.set(ins, "In.dmac", key, r.data("In.dmac", "send", "port", 2))
	counted("a new entry", key, true, 0, 0)
	if code := r.codeOf(r.write(everywhere, r.operation("In.dmac", "SyncRegisters"))); code != codes.Unimplemented {
		t.Errorf("an operation of other tables: %v", code)
	}
}

// An update of a counter of packets and bytes may set only one of the two; the other one,
// and the sum over the pipes, stay. This holds in all pipes and in one.
func TestPartsOfCounters(t *testing.T) {
	r := newProgramRig(t, entries, gate.Limits{})
	key := r.key("In.volumes", 9)
	for range 2 {
		r.goes(frame(0, 0, 9))
	}
	counts := func(what string, target *wire.TargetDevice, packets, bytes uint64) {
		t.Helper()
		d := r.get(target, "In.volumes", key)
		got := append(r.values("In.volumes", d, "$COUNTER_SPEC_PKTS"), r.values("In.volumes", d, "$COUNTER_SPEC_BYTES")...)
		if !slices.Equal(got, []uint64{packets, bytes}) {
			t.Errorf("%s: %d packets and bytes, want %d and %d", what, got, packets, bytes)
		}
	}
	set := func(target *wire.TargetDevice, list ...any) {
		t.Helper()
		r.must(r.write(target, update(mod, r.entry("In.volumes", key, r.data("In.volumes", "", list...)))))
	}
	counts("two packets", everywhere, 2, 2*68)
	set(pipe(1), "$COUNTER_SPEC_PKTS", 10, "$COUNTER_SPEC_BYTES", 1000)
	counts("of all pipes", everywhere, 12, 1000+2*68)
	set(everywhere, "$COUNTER_SPEC_BYTES", 7)
	counts("bytes set", everywhere, 12, 7)
	counts("bytes set, in the first pipe", pipe(0), 12, 7)
	counts("bytes set, in the other pipe", pipe(1), 0, 0)
	set(everywhere, "$COUNTER_SPEC_PKTS", 3)
	counts("packets set", everywhere, 3, 7)
	r.set(del, "In.volumes", nil, nil)
	counts("cleared", everywhere, 0, 0)
}

// In poll mode a client can also set the hit state of an entry when it adds the entry.
func TestHitStateOfNewEntries(t *testing.T) {
	r := newRig(t)
	r.must(r.write(everywhere, r.attribute("In.dmac", &wire.TableAttribute{Attribute: &wire.TableAttribute_IdleTable{IdleTable: &wire.IdleTable{Enable: true, IdleTableMode: wire.IdleTable_IDLE_TABLE_POLL_MODE}}})))
	for dst, state := range map[uint64]string{1: "ENTRY_ACTIVE", 2: "ENTRY_IDLE"} {
		r.set(ins, "In.dmac", r.key("In.dmac", dst), r.data("In.dmac", "send", "port", 2, "$ENTRY_HIT_STATE", state))
	}
	r.set(ins, "In.dmac", r.key("In.dmac", 3), r.data("In.dmac", "send", "port", 2))
	for dst, want := range map[uint64]string{1: "ENTRY_ACTIVE", 2: "ENTRY_IDLE"} {
		if got := r.field("In.dmac", r.get(everywhere, "In.dmac", r.key("In.dmac", dst)), "$ENTRY_HIT_STATE").GetStrVal(); got != want {
			t.Errorf("entry %d is %s, want %s", dst, got, want)
		}
	}
}
