package controller

import (
	"fmt"
	"slices"
	"testing"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"

	"github.com/p4lb/p4lb/internal/controller/p4info"
	"github.com/p4lb/p4lb/internal/controller/primary"
)

// TestMemberSteps compares the members of a switch with the members that entries need. A
// missing member gets the smallest free id, equal members are merged, and in a full
// profile a member that is no longer needed is modified.
func TestMemberSteps(t *testing.T) {
	for _, c := range []struct {
		name  string
		room  int64
		have  map[uint32]uint32 // action by member
		uses  []uint32          // member of each entry
		wants []uint32          // action of each entry
		steps []string
	}{
		{"a new switch", 8, nil, nil, []uint32{5, 6, 5}, []string{"INSERT member 1: 5", "INSERT member 2: 6", "INSERT entry 0: 1", "INSERT entry 1: 2", "INSERT entry 2: 1"}},
		{"as planned", 8, map[uint32]uint32{4: 5, 9: 6}, []uint32{4, 9}, []uint32{5, 6}, nil},
		{"a gap", 8, map[uint32]uint32{1: 5, 3: 7}, []uint32{1, 3}, []uint32{5, 6}, []string{"DELETE member 3: 7", "INSERT member 2: 6", "MODIFY entry 1: 2"}},
		{"no room", 2, map[uint32]uint32{1: 5, 3: 7}, []uint32{1, 3}, []uint32{5, 6}, []string{"MODIFY entry 1: 3", "MODIFY member 3: 6"}},
		{"two equal members", 8, map[uint32]uint32{1: 5, 2: 5}, []uint32{1, 2}, []uint32{5, 5}, []string{"DELETE member 2: 5", "MODIFY entry 1: 1"}},
		{"an unused member", 8, map[uint32]uint32{1: 5, 2: 6}, []uint32{1}, []uint32{5}, []string{"DELETE member 2: 6"}},
	} {
		profile := &p4info.Profile{ID: 9, Name: "hops", Size: c.room}
		table := &p4info.Table{ID: 7, Name: "routes", Profile: profile}
		x := &exchange{link: &primary.Link{}, index: &p4info.Index{
			Tables: []*p4info.Table{table}, ByID: map[uint32]*p4info.Table{7: table}, Profiles: []*p4info.Profile{profile},
		}}
		have := &contents{objects: map[string]object{}, members: map[uint32]map[uint32]*p4v1.Action{9: {}}}
		for id, a := range c.have {
			have.members[9][id] = &p4v1.Action{ActionId: a}
		}
		entry := func(i int, a *p4v1.TableAction) *p4v1.TableEntry {
			return &p4v1.TableEntry{TableId: 7, Priority: int32(i + 1), Action: a}
		}
		ids := have.canonical()
		for i, member := range c.uses {
			a, alias := have.actionOf(x.index, ids, entry(i, &p4v1.TableAction{Type: &p4v1.TableAction_ActionProfileMemberId{ActionProfileMemberId: member}}))
			o := entryObject(entry(i, a), x.index)
			o.alias = alias
			have.objects[entryKey(o.entity.GetTableEntry())] = o
		}
		want := &contents{objects: map[string]object{}}
		for i, a := range c.wants {
			want.addEntry(entry(i, directAction(&p4v1.Action{ActionId: a})), x.index)
		}
		var got []string
		for _, s := range x.diff(have, want) {
			if m := s.update.GetEntity().GetActionProfileMember(); m != nil {
				got = append(got, fmt.Sprintf("%v member %d: %d", s.update.GetType(), m.GetMemberId(), m.GetAction().GetActionId()))
				continue
			}
			e := s.update.GetEntity().GetTableEntry()
			got = append(got, fmt.Sprintf("%v entry %d: %d", s.update.GetType(), e.GetPriority()-1, e.GetAction().GetActionProfileMemberId()))
		}
		for _, o := range want.objects { // later deployments need the plan's actions
			if e := o.entity.GetTableEntry(); e.GetAction().GetAction() == nil {
				t.Errorf("%s: the plan's entry has become %v", c.name, e)
			}
		}
		slices.Sort(got)
		slices.Sort(c.steps)
		if !slices.Equal(got, c.steps) {
			t.Errorf("%s: %q\nwant %q", c.name, got, c.steps)
		}
	}
}
