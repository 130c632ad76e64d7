package controller

import (
	"maps"
	"slices"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/protobuf/proto"

	"github.com/p4lb/p4lb/internal/controller/p4info"
	"github.com/p4lb/p4lb/internal/controller/report"
)

// An entry of a table whose action profile has no selector refers to a member, which
// contains the action (P4Runtime, section 9.2.1). The planner knows nothing of members:
// contents hold entries with their actions. All entries of a profile with the same action
// share one member. When two contents are compared, the ids of the members that the switch
// has already are kept, and the others get the smallest free ids.

// memberful reports whether entries of the program refer to members. A session in another
// protocol accepts actions and creates the members itself.
func (x *exchange) memberful() bool {
	return x.link.Endpoint.Speak == nil && slices.ContainsFunc(x.index.Tables, (*p4info.Table).Members)
}

func memberEntity(m *p4v1.ActionProfileMember) *p4v1.Entity {
	return &p4v1.Entity{Entity: &p4v1.Entity_ActionProfileMember{ActionProfileMember: m}}
}

// liveMembers returns the members of the profiles without a selector.
func (x *exchange) liveMembers(list []*p4v1.Entity) map[uint32]map[uint32]*p4v1.Action {
	all := map[uint32]map[uint32]*p4v1.Action{}
	for _, p := range x.index.Profiles {
		if !p.Selector {
			all[p.ID] = map[uint32]*p4v1.Action{}
		}
	}
	for _, e := range list {
		if m := e.GetActionProfileMember(); m != nil && all[m.GetActionProfileId()] != nil {
			all[m.GetActionProfileId()][m.GetMemberId()] = m.GetAction()
		}
	}
	return all
}

// memberIDs contains the ids of members by profile and action.
type memberIDs map[uint32]map[string]uint32

// canonical returns the smallest id of each action.
func (c *contents) canonical() memberIDs {
	ids := memberIDs{}
	for profile, members := range c.members {
		ids[profile] = map[string]uint32{}
		for _, id := range slices.Backward(slices.Sorted(maps.Keys(members))) {
			ids[profile][callValue(members[id])] = id
		}
	}
	return ids
}

// actionOf returns the action of an entry on the switch, with the action of a member in
// place of its id. alias reports whether another member is the canonical one of that action.
func (c *contents) actionOf(x *p4info.Index, ids memberIDs, e *p4v1.TableEntry) (a *p4v1.TableAction, alias bool) {
	t, id := x.ByID[e.GetTableId()], e.GetAction().GetActionProfileMemberId()
	if t == nil || !t.Members() || c.members[t.Profile.ID][id] == nil {
		return e.GetAction(), false
	}
	call := c.members[t.Profile.ID][id]
	return directAction(call), ids[t.Profile.ID][callValue(call)] != id
}

// refer replaces the action of an entry by the id of its member, if the table needs one.
func (ids memberIDs) refer(x *p4info.Index, o object) object {
	e := o.entity.GetTableEntry()
	t := x.ByID[e.GetTableId()]
	if o.preset || t == nil || !t.Members() || ids[t.Profile.ID] == nil {
		return o
	}
	e = proto.CloneOf(e)
	e.Action = &p4v1.TableAction{Type: &p4v1.TableAction_ActionProfileMemberId{ActionProfileMemberId: ids[t.Profile.ID][o.value]}}
	o.entity = tableEntity(e)
	return o
}

// memberSteps returns the changes of members, and the ids that entries refer to afterwards.
func (x *exchange) memberSteps(have, want *contents) (list []step, ids memberIDs) {
	if !x.memberful() {
		return nil, nil
	}
	ids = have.canonical()
	for _, p := range x.index.Profiles {
		if p.Selector {
			continue
		}
		if ids[p.ID] == nil {
			ids[p.ID] = map[string]uint32{}
		}
		d := profileDiff{x: x, profile: p, ids: ids[p.ID]}
		list = append(list, d.steps(have.members[p.ID], x.wantedMembers(want, p))...)
	}
	return list, ids
}

// wantedMembers returns the actions of a profile that contents need, by their values.
func (x *exchange) wantedMembers(want *contents, p *p4info.Profile) map[string]*p4v1.Action {
	calls := map[string]*p4v1.Action{}
	for _, call := range want.members[p.ID] {
		calls[callValue(call)] = call
	}
	for _, o := range want.objects {
		e := o.entity.GetTableEntry()
		if t := x.index.ByID[e.GetTableId()]; t != nil && t.Profile == p && !o.preset {
			if call := e.GetAction().GetAction(); call != nil {
				calls[o.value] = call
			}
		}
	}
	return calls
}

// A profileDiff compares the members of one profile.
type profileDiff struct {
	x       *exchange
	profile *p4info.Profile
	ids     map[string]uint32
}

// steps adds the missing members to d.ids. New members come first and superfluous ones go
// last, so that entries always refer to a member. If the profile has no room for both, new
// actions replace superfluous ones.
func (d *profileDiff) steps(have map[uint32]*p4v1.Action, want map[string]*p4v1.Action) (list []step) {
	var spare []uint32
	for _, id := range slices.Sorted(maps.Keys(have)) {
		if value := callValue(have[id]); want[value] == nil || d.ids[value] != id {
			spare = append(spare, id)
		}
	}
	var missing []string
	for _, value := range slices.Sorted(maps.Keys(want)) {
		if _, ok := d.ids[value]; !ok {
			missing = append(missing, value)
		}
	}
	replaced := 0
	if excess := int64(len(have)+len(missing)) - d.profile.Size; d.profile.Size > 0 && excess > 0 {
		replaced = min(int(excess), len(missing), len(spare))
	}
	next := uint32(1)
	for i, value := range missing {
		if i < replaced {
			d.ids[value] = spare[i]
			list = append(list, d.step(report.Modify, spare[i], want[value], callValue(have[spare[i]])))
			continue
		}
		for have[next] != nil {
			next++
		}
		d.ids[value] = next
		list = append(list, d.step(report.Insert, next, want[value], ""))
		next++
	}
	for _, id := range spare[replaced:] {
		list = append(list, d.step(report.Delete, id, have[id], callValue(have[id])))
	}
	return list
}

func (d *profileDiff) step(kind report.Kind, id uint32, call *p4v1.Action, before string) step {
	m := &p4v1.ActionProfileMember{ActionProfileId: d.profile.ID, MemberId: id, Action: call}
	return newStep(d.x.index, kind, object{entity: memberEntity(m), value: callValue(call), rank: rankMember}, before)
}
