package controller

import (
	"testing"

	configv1 "github.com/p4lang/p4runtime/go/p4/config/v1"
	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"

	"github.com/p4lb/p4lb/internal/controller/p4info"
)

func exactly(field uint32, value ...byte) *p4v1.FieldMatch {
	return &p4v1.FieldMatch{FieldId: field, FieldMatchType: &p4v1.FieldMatch_Exact_{Exact: &p4v1.FieldMatch_Exact{Value: value}}}
}

// An entry has one key, whatever the order of its fields and the leading zeros of its
// numbers. Matches of different kinds have different keys.
func TestKeysOfEntries(t *testing.T) {
	prefix := &p4v1.FieldMatch{FieldId: 2, FieldMatchType: &p4v1.FieldMatch_Lpm{Lpm: &p4v1.FieldMatch_LPM{Value: []byte{10, 0}, PrefixLen: 8}}}
	masked := &p4v1.FieldMatch{FieldId: 2, FieldMatchType: &p4v1.FieldMatch_Ternary_{Ternary: &p4v1.FieldMatch_Ternary{Value: []byte{5}, Mask: []byte{0xff}}}}
	span := &p4v1.FieldMatch{FieldId: 2, FieldMatchType: &p4v1.FieldMatch_Range_{Range: &p4v1.FieldMatch_Range{Low: []byte{5}, High: []byte{1, 0}}}}
	optional := &p4v1.FieldMatch{FieldId: 2, FieldMatchType: &p4v1.FieldMatch_Optional_{Optional: &p4v1.FieldMatch_Optional{Value: []byte{5}}}}
	wide := exactly(2, 1, 0, 0, 0, 0, 0, 0, 0, 0)
	for _, test := range []struct {
		e    *p4v1.TableEntry
		want string
	}{
		{&p4v1.TableEntry{TableId: 7, IsDefaultAction: true}, "table 7 default"},
		{&p4v1.TableEntry{TableId: 7, Priority: 3, Match: []*p4v1.FieldMatch{exactly(1, 5), exactly(2, 6)}}, "table 7 3 1=5 2=6"},
		{&p4v1.TableEntry{TableId: 7, Priority: 3, Match: []*p4v1.FieldMatch{exactly(2, 0, 6), exactly(1, 0, 0, 5)}}, "table 7 3 1=5 2=6"},
		{&p4v1.TableEntry{TableId: 7, Match: []*p4v1.FieldMatch{prefix}}, "table 7 0 2=2560/8"},
		{&p4v1.TableEntry{TableId: 7, Match: []*p4v1.FieldMatch{masked}}, "table 7 0 2=5&255"},
		{&p4v1.TableEntry{TableId: 7, Match: []*p4v1.FieldMatch{span}}, "table 7 0 2=5-256"},
		{&p4v1.TableEntry{TableId: 7, Match: []*p4v1.FieldMatch{optional}}, "table 7 0 2=?5"},
		{&p4v1.TableEntry{TableId: 7, Match: []*p4v1.FieldMatch{wide}}, "table 7 0 2=18446744073709551616"},
		{&p4v1.TableEntry{TableId: 7, Match: []*p4v1.FieldMatch{{FieldId: 2}}}, "table 7 0 2=other"},
	} {
		before := test.e.GetMatch()
		first := uint32(0)
		if len(before) > 0 {
			first = before[0].GetFieldId()
		}
		if got := entryKey(test.e); got != test.want {
			t.Errorf("key %q, want %q", got, test.want)
		}
		if len(before) > 0 && before[0].GetFieldId() != first {
			t.Errorf("%s: the message has changed", test.want)
		}
	}
}

// An action has one text, whatever the order of its parameters or of the actions of a set.
func TestTextsOfActions(t *testing.T) {
	call := func(id uint32, args ...byte) *p4v1.Action {
		a := &p4v1.Action{ActionId: id}
		for i := 0; i < len(args); i += 2 {
			a.Params = append(a.Params, &p4v1.Action_Param{ParamId: uint32(args[i]), Value: []byte{0, args[i+1]}})
		}
		return a
	}
	set := func(list ...*p4v1.ActionProfileAction) *p4v1.TableAction {
		return &p4v1.TableAction{Type: &p4v1.TableAction_ActionProfileActionSet{ActionProfileActionSet: &p4v1.ActionProfileActionSet{ActionProfileActions: list}}}
	}
	one, two := &p4v1.ActionProfileAction{Action: call(5, 1, 3), Weight: 1}, &p4v1.ActionProfileAction{Action: call(5, 1, 2), Weight: 4}
	for _, test := range []struct {
		a    *p4v1.TableAction
		want string
	}{
		{nil, noAction},
		{&p4v1.TableAction{Type: &p4v1.TableAction_Action{Action: call(5)}}, "5"},
		{&p4v1.TableAction{Type: &p4v1.TableAction_Action{Action: call(5, 2, 7, 1, 9)}}, "5 1=9 2=7"},
		{set(one, two), "one of 5 1=2 *4, 5 1=3 *1"},
		{set(two, one), "one of 5 1=2 *4, 5 1=3 *1"},
		{&p4v1.TableAction{Type: &p4v1.TableAction_ActionProfileMemberId{ActionProfileMemberId: 3}}, "a member or group of an action profile"},
	} {
		if got := actionValue(&p4v1.TableEntry{Action: test.a}); got != test.want {
			t.Errorf("text %q, want %q", got, test.want)
		}
	}
	port := func(instance uint32, b ...byte) *p4v1.Replica {
		return &p4v1.Replica{PortKind: &p4v1.Replica_Port{Port: b}, Instance: instance}
	}
	//lint:ignore SA1019 servers that predate port answer with egress_port
	old := &p4v1.Replica{PortKind: &p4v1.Replica_EgressPort{EgressPort: 300}, Instance: 1}
	if got := replicaValue([]*p4v1.Replica{port(1, 1, 44), port(1, 9), port(2, 9), port(0, 10)}); got != "9 9#2 10#0 300" {
		t.Errorf("replicas %q", got)
	}
	if got := replicaValue([]*p4v1.Replica{old}); got != "300" {
		t.Errorf("a replica of an old server: %q", got)
	}
}

// Messages name tables, fields and parameters as the program does, and show addresses as
// addresses.
func TestDescriptions(t *testing.T) {
	x := routes()
	table := x.Tables[0]
	table.Fields = append(table.Fields, p4info.Field{ID: 2, Name: "h.net", Width: 32, Kind: configv1.MatchField_LPM}, p4info.Field{ID: 3, Name: "kind", Width: 16, Kind: configv1.MatchField_TERNARY})
	go5 := table.ByAction[5]
	go5.Params = append(go5.Params, p4info.Field{ID: 2, Name: "mac", Width: 48})
	table.Profile = &p4info.Profile{ID: 8, Name: "hops"}
	x.Profiles = []*p4info.Profile{{ID: 6, Name: "others"}, table.Profile}
	entity := func(e *p4v1.TableEntry) *p4v1.Entity {
		return &p4v1.Entity{Entity: &p4v1.Entity_TableEntry{TableEntry: e}}
	}
	replication := func(e *p4v1.PacketReplicationEngineEntry) *p4v1.Entity {
		return &p4v1.Entity{Entity: &p4v1.Entity_PacketReplicationEngineEntry{PacketReplicationEngineEntry: e}}
	}
	net := &p4v1.FieldMatch{FieldId: 2, FieldMatchType: &p4v1.FieldMatch_Lpm{Lpm: &p4v1.FieldMatch_LPM{Value: []byte{10, 1, 0, 0}, PrefixLen: 16}}}
	kind := &p4v1.FieldMatch{FieldId: 3, FieldMatchType: &p4v1.FieldMatch_Ternary_{Ternary: &p4v1.FieldMatch_Ternary{Value: []byte{8}, Mask: []byte{0xff}}}}
	routed := entity(&p4v1.TableEntry{TableId: 7, Match: []*p4v1.FieldMatch{exactly(1, 10, 0, 0, 9), net, kind}})
	member := &p4v1.Entity{Entity: &p4v1.Entity_ActionProfileMember{ActionProfileMember: &p4v1.ActionProfileMember{ActionProfileId: 8, MemberId: 4}}}
	group := replication(&p4v1.PacketReplicationEngineEntry{Type: &p4v1.PacketReplicationEngineEntry_MulticastGroupEntry{MulticastGroupEntry: &p4v1.MulticastGroupEntry{MulticastGroupId: 3}}})
	for _, test := range []struct {
		e           *p4v1.Entity
		value       string
		name, shown string
	}{
		{routed, "5 1=9 2=2199023255554", "routes to=10.0.0.9 net=10.1.0.0/16 kind=8&255", "go(port=9, mac=02:00:00:00:00:02)"},
		{routed, "5", "routes to=10.0.0.9 net=10.1.0.0/16 kind=8&255", "go()"},
		{routed, "6 1=9", "routes to=10.0.0.9 net=10.1.0.0/16 kind=8&255", "6 1=9"},
		{routed, "one of 5", "routes to=10.0.0.9 net=10.1.0.0/16 kind=8&255", "one of 5"},
		{routed, noAction, "routes to=10.0.0.9 net=10.1.0.0/16 kind=8&255", "the program's own"},
		{entity(&p4v1.TableEntry{TableId: 7, IsDefaultAction: true}), "5 1=1", "routes default", "go(port=1)"},
		{entity(&p4v1.TableEntry{TableId: 9, IsDefaultAction: true}), "5 1=1", "table 9 table 9 default", "5 1=1"},
		{member, "5 1=1", "hops member 4", "go(port=1)"},
		{&p4v1.Entity{Entity: &p4v1.Entity_ActionProfileGroup{ActionProfileGroup: &p4v1.ActionProfileGroup{ActionProfileId: 6, GroupId: 2}}}, "x", "others group 2", "x"},
		{group, "1 2", "multicast group 3", "ports 1 2"},
		{replication(&p4v1.PacketReplicationEngineEntry{Type: &p4v1.PacketReplicationEngineEntry_CloneSessionEntry{CloneSessionEntry: &p4v1.CloneSessionEntry{SessionId: 12}}}), "4", "clone session 12", "ports 4"},
	} {
		if got := describe(x, test.e); got != test.name {
			t.Errorf("named %q, want %q", got, test.name)
		}
		if got := describeValue(x, test.e, test.value); got != test.shown {
			t.Errorf("%s: shown as %q, want %q", test.name, got, test.shown)
		}
	}
}
