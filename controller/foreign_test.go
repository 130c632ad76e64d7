package controller

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc"

	"github.com/p4lb/p4lb/internal/controller/p4info"
	"github.com/p4lb/p4lb/internal/controller/target"
)

// An answeringSwitch answers reads with a list, and notes the queries.
type answeringSwitch struct {
	notedSwitch
	list []*p4v1.Entity
}

func (s *answeringSwitch) Entities(r *p4v1.ReadRequest) ([]*p4v1.Entity, error) {
	for _, e := range r.GetEntities() {
		switch {
		case e.GetActionProfileMember() != nil:
			s.requests = append(s.requests, fmt.Sprint("members ", e.GetActionProfileMember().GetActionProfileId()))
		case e.GetActionProfileGroup() != nil:
			s.requests = append(s.requests, fmt.Sprint("groups ", e.GetActionProfileGroup().GetActionProfileId()))
		default:
			s.requests = append(s.requests, fmt.Sprint("table ", e.GetTableEntry().GetTableId()))
		}
	}
	return s.list, nil
}

// Members and groups of other controllers are read only where a plan replaces them: over
// P4Runtime in selectors for which the switch has no sets of actions yet, over BfRt in all
// profiles that the plan uses. A rollback reads all.
func TestForeignQueries(t *testing.T) {
	choice, hops := &p4info.Profile{ID: 1, Selector: true}, &p4info.Profile{ID: 2}
	tables := map[uint32]*p4info.Table{11: {ID: 11, Profile: choice}, 12: {ID: 12, Profile: hops}, 13: {ID: 13}}
	x := &p4info.Index{ByID: tables, Profiles: []*p4info.Profile{choice, hops}}
	set := &p4v1.TableAction{Type: &p4v1.TableAction_ActionProfileActionSet{ActionProfileActionSet: &p4v1.ActionProfileActionSet{}}}
	one := directAction(&p4v1.Action{ActionId: 5})
	with := func(whole bool, entries ...*p4v1.TableEntry) *contents {
		c := &contents{objects: map[string]object{}, whole: whole}
		for i, e := range entries {
			c.objects[fmt.Sprint(i)] = object{entity: tableEntity(e), preset: e.GetIsDefaultAction()}
		}
		return c
	}
	sets, plain := &p4v1.TableEntry{TableId: 11, Action: set}, &p4v1.TableEntry{TableId: 12, Action: one}
	for _, test := range []struct {
		name       string
		bfrt       bool
		have, want *contents
		asks       string
	}{
		{"sets of actions", false, with(false), with(false, sets), "members 1, groups 1"},
		{"sets on both sides", false, with(false, sets), with(false, sets), ""},
		{"no sets", false, with(false), with(false, plain, &p4v1.TableEntry{TableId: 11, Action: one}, &p4v1.TableEntry{TableId: 13, Action: set}), ""},
		{"a rollback", false, with(false), with(true), "members 1, groups 1"},
		{"a rollback to sets", false, with(false, sets), with(true), ""},
		{"BfRt, a profile", true, with(false, sets), with(false, plain), "members 2"},
		{"BfRt, a selector", true, with(false, sets), with(false, sets), "members 1, groups 1"},
		{"BfRt, a default action", true, with(false), with(false, &p4v1.TableEntry{TableId: 12, IsDefaultAction: true}), ""},
		{"BfRt, another table", true, with(false), with(false, &p4v1.TableEntry{TableId: 13}), ""},
		{"BfRt, a rollback", true, with(false), with(true), "members 1, groups 1, members 2"},
	} {
		sw := &answeringSwitch{list: []*p4v1.Entity{memberEntity(&p4v1.ActionProfileMember{MemberId: 9})}}
		e := sw.exchange(x)
		e.link.Endpoint.Local = sw
		if test.bfrt {
			e.link.Endpoint.Speak = func(grpc.ClientConnInterface) target.Session { return target.Session{} }
		}
		if err := e.liveForeign(t.Context(), test.have, test.want); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(sw.requests, ", "); got != test.asks || (len(test.have.foreign) == 1) != (test.asks != "") {
			t.Errorf("%s: %s with %d answers, want %s", test.name, got, len(test.have.foreign), test.asks)
		}
	}
}

// Members of profiles without a selector are read with the tables, and replace the ids in
// entries. A session in another protocol has no members.
func TestLiveMembers(t *testing.T) {
	choice, hops := &p4info.Profile{ID: 1, Selector: true}, &p4info.Profile{ID: 2}
	routes, choices := &p4info.Table{ID: 12, Profile: hops}, &p4info.Table{ID: 11, Profile: choice}
	x := &p4info.Index{Tables: []*p4info.Table{routes, choices}, ByID: map[uint32]*p4info.Table{11: choices, 12: routes}, Profiles: []*p4info.Profile{choice, hops}}
	member := func(profile, id, action uint32) *p4v1.Entity {
		return memberEntity(&p4v1.ActionProfileMember{ActionProfileId: profile, MemberId: id, Action: &p4v1.Action{ActionId: action}})
	}
	for _, bfrt := range []bool{false, true} {
		sw := &answeringSwitch{list: []*p4v1.Entity{member(2, 7, 50), member(2, 8, 60), member(1, 7, 70), member(3, 7, 80)}}
		e := sw.exchange(x)
		e.link.Endpoint.Local, e.link.Endpoint.Limits.NoReplication = sw, true
		e.link.Endpoint.Registers, e.link.Endpoint.Queues, e.link.Endpoint.Filters = nil, nil, nil
		if bfrt {
			e.link.Endpoint.Speak = func(grpc.ClientConnInterface) target.Session { return target.Session{} }
		}
		have, err := e.live(t.Context(), &contents{objects: map[string]object{}})
		if err != nil {
			t.Fatal(err)
		}
		if slices.Contains(sw.requests, "members 0") == bfrt {
			t.Errorf("BfRt %v: queries %q", bfrt, sw.requests)
		}
		if got := len(have.members); got != 1 || len(have.members[2]) != 2 || have.members[2][7].GetActionId() != 50 || have.members[2][8].GetActionId() != 60 {
			t.Errorf("BfRt %v: members %v", bfrt, have.members)
		}
	}
}
