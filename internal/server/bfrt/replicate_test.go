package server

import (
	"slices"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/p4lb/p4lb/internal/bfrt/wire"
)

// TestSlots: when a node leaves a set, the others keep their places, and the next new node
// takes the free place.
func TestSlots(t *testing.T) {
	var s slots
	for _, c := range []struct {
		ids  []uint32
		want []uint64 // one more than the numbers
	}{
		{[]uint32{4, 0, 6}, []uint64{5, 1, 7, 0}},
		{[]uint32{4, 6}, []uint64{5, 0, 7, 0}},
		{[]uint32{4, 6, 9, 8}, []uint64{5, 10, 7, 9}},
		{nil, []uint64{0, 0, 0, 0}},
	} {
		if s.hold(c.ids); !slices.Equal(s[:4], c.want) {
			t.Errorf("with nodes %v the slots hold %v, want %v", c.ids, s[:4], c.want)
		}
	}
}

// TestReplicationRead: missing lists read as empty lists, and every exclusion ID can
// be read.
func TestReplicationRead(t *testing.T) {
	r := newRig(t)
	r.set(ins, "$pre.mgid", r.key("$pre.mgid", 3), nil)
	if d := r.get(everywhere, "$pre.mgid", r.key("$pre.mgid", 3)); len(d.GetFields()) != 6 {
		t.Errorf("an empty group has %d fields, want 6: %v", len(d.GetFields()), d)
	}
	if n, want := r.size("$pre.prune"), int(r.table("$pre.prune").schema.Size); n != want {
		t.Errorf("there are %d exclusions, want %d", n, want)
	}
	none := update(ins, r.entry("$pre.ecmp", r.key("$pre.ecmp", 1), r.data("$pre.ecmp", "", "$MULTICAST_NODE_ID", []uint32{7})))
	if e := details(t, r.write(everywhere, none)); codes.Code(e[0].GetCode()) != codes.NotFound {
		t.Errorf("a set of a node that is not there: %v", e)
	}
	wide := &wire.Update{Type: mod, Entity: &wire.Entity{Entity: &wire.Entity_TableAttribute{TableAttribute: &wire.TableAttribute{
		TableId: r.table("$pre.mgid").schema.ID, Attribute: &wire.TableAttribute_PreDeviceConfig{
			PreDeviceConfig: &wire.PreDeviceConfig{PreGlobalRid: &wire.PreGlobalRid{GlobalRid: 0x10000}},
		},
	}}}}
	if e := details(t, r.write(everywhere, wide)); codes.Code(e[0].GetCode()) != codes.InvalidArgument {
		t.Errorf("a RID of 17 bits: %v", e)
	}
}
