package server

import (
	"fmt"
	"slices"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/p4lb/p4lb/internal/bfrt/wire"
)

// A member of a value set consists of the fields of its key; masks must be full. A packet
// with a member takes another path through the parser.
func TestValueSetMembers(t *testing.T) {
	exact := func(id uint32, b ...byte) *wire.KeyField {
		return &wire.KeyField{FieldId: id, MatchType: &wire.KeyField_Exact_{Exact: &wire.KeyField_Exact{Value: b}}}
	}
	masked := func(id uint32, b, mask byte) *wire.KeyField {
		return &wire.KeyField{FieldId: id, MatchType: &wire.KeyField_Ternary_{Ternary: &wire.KeyField_Ternary{Value: []byte{b}, Mask: []byte{mask}}}}
	}
	set := &valueSet{table: &table{keys: []keyField{{1, "a", "Ternary", 4}, {2, "b", "Ternary", 9}, {3, "c", "Ternary", 3}}}}
	for _, test := range []struct {
		fields []*wire.KeyField
		want   string // the value and the mask, or "" for an error
	}{
		{[]*wire.KeyField{exact(1, 0xA), exact(2, 1, 0x23), exact(3, 5)}, "a91dffff"}, // 1010 100100011 101
		{[]*wire.KeyField{exact(3, 5), masked(1, 0xA, 0xF), exact(2, 0, 0)}, "a005ffff"},
		{[]*wire.KeyField{masked(1, 0xA, 0x7), exact(2, 0, 0), exact(3, 5)}, "20057fff"},
		{[]*wire.KeyField{exact(1, 0x1A), exact(2, 0, 0), exact(3, 5)}, ""},
		{[]*wire.KeyField{masked(1, 0xA, 0x1F), exact(2, 0, 0), exact(3, 5)}, ""},
		{[]*wire.KeyField{exact(1, 0xA), exact(3, 5)}, "a005f007"}, // any value of b
	} {
		b, err := set.member(&wire.TableKey{Fields: test.fields})
		got := fmt.Sprintf("%x", b)
		if err != nil {
			got = ""
		}
		if got != test.want {
			t.Errorf("%v: %s, %v; want %s", test.fields, got, err, test.want)
		}
	}
	r := newRig(t)
	acl := func(class uint64) *wire.TableKey {
		k := &wire.TableKey{}
		for _, f := range r.table("In.acl").keys {
			if f.match == "Ternary" {
				k.Fields = append(k.Fields, &wire.KeyField{FieldId: f.id, MatchType: &wire.KeyField_Ternary_{Ternary: &wire.KeyField_Ternary{Value: be(6, 0), Mask: be(6, 0)}}})
			} else if f.name == "md.port_class" {
				k.Fields = append(k.Fields, f.value(class))
			} else {
				k.Fields = append(k.Fields, f.value(0))
			}
		}
		return k
	}
	r.set(ins, "In.acl", acl(1), r.data("In.acl", "learn"))
	r.set(ins, "InPrs.kinds", r.key("InPrs.kinds", 0x1234), nil)
	r.set(ins, "In.dmac", r.key("In.dmac", 7), r.data("In.dmac", "send", "port", 2))
	for _, kind := range []uint64{0x1235, 0x1234} {
		r.send(1, frame(7, kind, kind))
		r.leaves(2)
	}
	if d := r.hear().GetDigest(); len(d.GetData()) != 1 || uintOf(d.GetData()[0].GetFields()[0].GetStream()) != 0x1234 {
		t.Errorf("the digest is %v, want one of the packet in the set", d)
	}
	for id := uint64(1); r.size("InPrs.kinds") < 4; id++ {
		r.set(ins, "InPrs.kinds", r.key("InPrs.kinds", id), nil)
	}
	r.refused("a fifth member", update(ins, r.entry("InPrs.kinds", r.key("InPrs.kinds", 99), nil)), codes.ResourceExhausted, "")
	r.refused("a member twice", update(ins, r.entry("InPrs.kinds", r.key("InPrs.kinds", 1), nil)), codes.AlreadyExists, "")
	r.refused("an unknown member", update(del, r.entry("InPrs.kinds", r.key("InPrs.kinds", 98), nil)), codes.NotFound, "")
}

// A table accepts as many rows as its size.
func TestCapacityOfRecords(t *testing.T) {
	r := newRig(t)
	room := int(r.table("$PORT").schema.Size)
	if room != 256 {
		t.Fatalf("room for %d ports", room)
	}
	var list []*wire.Update
	for port := uint64(3); len(list) < room-3; port++ { // 1, 2 and 130 are there
		if port&0x7f < usable && port != 130 {
			list = append(list, update(ins, r.entry("$PORT", r.key("$PORT", port), r.data("$PORT", "", "$SPEED", "BF_SPEED_100G", "$FEC", "BF_FEC_TYP_NONE"))))
		}
	}
	r.must(r.write(everywhere, list...))
	if n := r.size("$PORT"); n != room {
		t.Errorf("%d ports, want %d", n, room)
	}
	r.refused("one too many", update(ins, r.entry("$PORT", r.key("$PORT", 455), r.data("$PORT", "", "$SPEED", "BF_SPEED_100G", "$FEC", "BF_FEC_TYP_NONE"))), codes.ResourceExhausted, "it has 256 entries")
	r.set(mod, "$PORT", r.key("$PORT", 5), r.data("$PORT", "", "$PORT_ENABLE", true)) // a full table can be changed
}

// Flags in lists take increments together with the numbers that they belong to.
func TestIncrementsOfFlags(t *testing.T) {
	r := newRig(t)
	for id := range uint64(3) {
		r.set(ins, "$pre.node", r.key("$pre.node", id), r.data("$pre.node", "", "$MULTICAST_RID", 5, "$MULTICAST_LAG_ID", []uint32{}, "$DEV_PORT", []uint32{uint32(id)}))
	}
	group := func(ids []uint32, valid []bool, xids []uint32) *wire.TableEntry {
		return r.entry("$pre.mgid", r.key("$pre.mgid", 3), r.data("$pre.mgid", "", "$MULTICAST_NODE_ID", ids, "$MULTICAST_NODE_L1_XID_VALID", valid, "$MULTICAST_NODE_L1_XID", xids))
	}
	want := func(ids []uint32, valid []bool, xids []uint32) {
		t.Helper()
		g := r.get(everywhere, "$pre.mgid", r.key("$pre.mgid", 3))
		if a, b, c := r.field("$pre.mgid", g, "$MULTICAST_NODE_ID").GetIntArrVal().GetVal(), r.field("$pre.mgid", g, "$MULTICAST_NODE_L1_XID_VALID").GetBoolArrVal().GetVal(), r.field("$pre.mgid", g, "$MULTICAST_NODE_L1_XID").GetIntArrVal().GetVal(); !slices.Equal(a, ids) || !slices.Equal(b, valid) || !slices.Equal(c, xids) {
			t.Errorf("nodes %v with %v and %v; want %v with %v and %v", a, b, c, ids, valid, xids)
		}
	}
	r.must(r.write(everywhere, update(ins, group([]uint32{0}, []bool{true}, []uint32{4}))))
	r.must(r.write(everywhere, update(wire.Update_MODIFY_INC, group([]uint32{2, 1}, []bool{false, true}, []uint32{5, 6}))))
	want([]uint32{0, 2, 1}, []bool{true, false, true}, []uint32{4, 5, 6})
	less := group([]uint32{2}, []bool{false}, []uint32{5})
	less.TableFlags = &wire.TableFlags{ModDel: true}
	r.must(r.write(everywhere, update(wire.Update_MODIFY_INC, less)))
	want([]uint32{0, 1}, []bool{true, true}, []uint32{4, 6})
}

// The size of a group is part of its data. A group in all pipes has one size.
func TestGroupSize(t *testing.T) {
	r := newRig(t)
	for id := range uint64(3) {
		r.set(ins, "In.members", r.key("In.members", id), r.data("In.members", "spread_to", "port", 1))
	}
	group := func(kind wire.Update_Type, list ...any) *wire.Update {
		return update(kind, r.entry("In.groups", r.key("In.groups", 8), r.data("In.groups", "", list...)))
	}
	size := func(want uint64) {
		t.Helper()
		if got := r.values("In.groups", r.get(everywhere, "In.groups", r.key("In.groups", 8)), "$MAX_GROUP_SIZE"); !slices.Equal(got, []uint64{want}) {
			t.Errorf("the group's size is %v, want %d", got, want)
		}
	}
	r.must(r.write(everywhere, group(ins, "$ACTION_MEMBER_ID", []uint32{0, 1}, "$ACTION_MEMBER_STATUS", []bool{true, true}, "$MAX_GROUP_SIZE", 4)))
	size(4)
	r.must(r.write(everywhere, group(mod, "$MAX_GROUP_SIZE", 8)))
	size(8)
	r.must(r.write(everywhere, group(mod, "$ACTION_MEMBER_ID", []uint32{2}, "$ACTION_MEMBER_STATUS", []bool{true})))
	size(8)
	if err := r.write(pipe(0), group(mod, "$MAX_GROUP_SIZE", 2)); err == nil || codes.Code(details(t, err)[0].GetCode()) != codes.InvalidArgument {
		t.Errorf("the size in one pipe: %v", err)
	}
	r.refused("more members than its size", group(mod, "$ACTION_MEMBER_ID", []uint32{0, 1}, "$ACTION_MEMBER_STATUS", []bool{true, true}, "$MAX_GROUP_SIZE", 1), codes.ResourceExhausted, "which has room for 1")
	size(8)
}

// The data of an update names existing fields, each once, and one action.
func TestDataOfUpdates(t *testing.T) {
	r := newRig(t)
	entry := func(edit func(d *wire.TableData)) *wire.Update {
		d := r.data("In.dmac", "send", "port", 1)
		edit(d)
		return update(ins, r.entry("In.dmac", r.key("In.dmac", 1), d))
	}
	r.refused("a field twice", entry(func(d *wire.TableData) { d.Fields = append(d.Fields, d.Fields[0]) }), codes.InvalidArgument, "occurs twice")
	r.refused("an unknown field", entry(func(d *wire.TableData) { d.Fields[0].FieldId = 999 }), codes.NotFound, "send has no field 999")
	r.refused("an unknown action", entry(func(d *wire.TableData) { d.ActionId = 999 }), codes.NotFound, "there is no action 999")
	r.refused("no action", entry(func(d *wire.TableData) { d.ActionId, d.Fields = 0, nil }), codes.InvalidArgument, "the data names no action")
	r.refused("a member and a group", update(ins, r.entry("In.choose", r.key("In.choose", 1), r.data("In.choose", "", "$ACTION_MEMBER_ID", 1, "$SELECTOR_GROUP_ID", 1))), codes.InvalidArgument, "to a member or to a group, not to both")
	r.refused("an unknown member", update(ins, r.entry("In.choose", r.key("In.choose", 1), r.data("In.choose", "", "$ACTION_MEMBER_ID", 1))), codes.NotFound, "there is no member 1")
	r.refused("an unknown group", update(ins, r.entry("In.choose", r.key("In.choose", 1), r.data("In.choose", "", "$SELECTOR_GROUP_ID", 1))), codes.NotFound, "there is no group 1")
	// A modification keeps the parameters that it does not name.
	r.set(ins, "In.dmac", r.key("In.dmac", 1), r.data("In.dmac", "send", "port", 2))
	r.set(mod, "In.dmac", r.key("In.dmac", 1), r.data("In.dmac", "send"))
	r.send(1, frame(1, 0, 0))
	r.leaves(2)
	// A read may select fields, and an action, which the entry must have.
	read := func(d *wire.TableData) ([]*wire.TableEntry, error) {
		return r.read(everywhere, r.entry("In.dmac", r.key("In.dmac", 1), d))
	}
	whole, err := read(nil)
	r.must(err)
	some, err := read(&wire.TableData{Fields: []*wire.DataField{{FieldId: r.table("In.dmac").field("$COUNTER_SPEC_PKTS").id}}})
	r.must(err)
	if n := len(some[0].GetData().GetFields()); n != 1 || len(whole[0].GetData().GetFields()) <= n {
		t.Errorf("%d of %d fields", n, len(whole[0].GetData().GetFields()))
	}
	if list, err := read(r.data("In.dmac", "drop")); err == nil {
		t.Errorf("with another action: %v", list)
	}
	if list, err := read(r.data("In.dmac", "send")); err != nil || !proto.Equal(list[0].GetKey(), whole[0].GetKey()) {
		t.Errorf("with its action: %v, %v", list, err)
	}
}

// A target names a pipe of the chip, in which the program runs, or all of them.
func TestTargets(t *testing.T) {
	r := newRig(t)
	for id, fine := range map[uint32]bool{0: true, 3: true, 4: false, wire.AllPipes: true} {
		err := r.write(pipe(id), update(mod, r.entry("In.sums", r.key("In.sums", 1), r.data("In.sums", "", "$COUNTER_SPEC_PKTS", 1))))
		if (err == nil) != fine {
			t.Errorf("pipe %d: %v", id, err)
		}
	}
	for _, test := range []struct {
		groups uint64
		want   string
	}{
		{0x0a05, "[[0 2] [1 3]]"}, {0x0f, "[[0 1 2 3]]"}, {0x08040201, "[[0] [1] [2] [3]]"}, {0x0705, ""}, {0x07, ""},
	} {
		c, err := newScope(r.s.programs[0], &wire.EntryScope{PipeScope: &wire.Mode{Scope: &wire.Mode_UserDefined{UserDefined: test.groups}}})
		got := fmt.Sprint(c.parts)
		if err != nil {
			got = ""
		}
		if got != test.want {
			t.Errorf("scope %#x: %s, %v; want %s", test.groups, got, err, test.want)
		}
	}
	single, err := newScope(r.s.programs[0], &wire.EntryScope{PipeScope: &wire.Mode{Scope: &wire.Mode_Predef{Predef: wire.Mode_SINGLE}}})
	if err != nil || len(single.parts) != 4 {
		t.Errorf("single: %v, %v", single.parts, err)
	}
}
