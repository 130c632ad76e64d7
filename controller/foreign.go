package controller

import (
	"context"
	"fmt"
	"maps"
	"slices"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"

	"github.com/p4lb/p4lb/internal/controller/p4info"
	"github.com/p4lb/p4lb/internal/controller/report"
)

// The entries of a plan contain their sets of actions. P4Runtime allows a profile with a
// selector to have either such entries or members and groups (section 9.2.3), so a switch
// with the members of another controller refuses the plan. They are deleted before any
// other change, after the entries that refer to them.
//
// Over BfRt both exist side by side. Members and groups that no entry refers to are deleted,
// because they take room in the profile. A rollback inserts deleted members and groups again.

// The order in which the objects of another controller are deleted.
const (
	clearEntries = iota + 1
	clearGroups
	clearMembers
)

// oneShots reports whether an entry of a profile contains its set of actions.
func (c *contents) oneShots(x *p4info.Index, p *p4info.Profile) bool {
	for _, o := range c.objects {
		e := o.entity.GetTableEntry()
		if t := x.ByID[e.GetTableId()]; t != nil && t.Profile == p && e.GetAction().GetActionProfileActionSet() != nil {
			return true
		}
	}
	return false
}

// uses reports whether the contents have entries of a profile.
func (c *contents) uses(x *p4info.Index, p *p4info.Profile) bool {
	for _, o := range c.objects {
		if t := x.ByID[o.entity.GetTableEntry().GetTableId()]; t != nil && t.Profile == p && !o.preset {
			return true
		}
	}
	return false
}

// besideOthers reports whether members of several controllers can exist side by side.
func (x *exchange) besideOthers() bool { return x.link.Endpoint.Speak != nil }

// liveForeign reads the members and groups of other controllers that a plan replaces, or that a
// rollback restores. Over P4Runtime, a switch with sets of actions has none: some servers then
// return the members that they made for them.
func (x *exchange) liveForeign(ctx context.Context, c, want *contents) error {
	var entities []*p4v1.Entity
	for _, p := range x.index.Profiles {
		needed := p.Selector && (want.whole || want.oneShots(x.index, p)) && !c.oneShots(x.index, p)
		if x.besideOthers() {
			needed = want.whole || want.uses(x.index, p)
		}
		if !needed {
			continue
		}
		entities = append(entities, memberEntity(&p4v1.ActionProfileMember{ActionProfileId: p.ID}))
		if p.Selector {
			entities = append(entities, groupEntity(&p4v1.ActionProfileGroup{ActionProfileId: p.ID}))
		}
	}
	if len(entities) == 0 {
		return nil
	}
	list, err := x.read(ctx, "members and groups", entities...)
	c.foreign = list
	return err
}

func groupEntity(g *p4v1.ActionProfileGroup) *p4v1.Entity {
	return &p4v1.Entity{Entity: &p4v1.Entity_ActionProfileGroup{ActionProfileGroup: g}}
}

// foreignSteps returns the changes of members and groups of other controllers, and of the
// entries that must be deleted before, with the keys of these entries.
func (x *exchange) foreignSteps(have, want *contents) (list []step, gone map[string]bool) {
	gone = map[string]bool{}
	cleared := map[uint32]bool{} // profiles whose entries are deleted
	add := func(o object, before string, order int) {
		s := newStep(x.index, report.Delete, o, before)
		s.clears = order
		list = append(list, s)
	}
	before, after := foreignObjects(have.foreign), foreignObjects(want.foreign)
	for _, key := range slices.Sorted(maps.Keys(before)) {
		if _, stays := after[key]; stays {
			continue
		}
		o, order := before[key], clearMembers
		if o.rank == rankGroup {
			order = clearGroups
		}
		add(o.object, o.value, order)
		cleared[o.profile] = cleared[o.profile] || !x.besideOthers()
	}
	for _, key := range slices.Sorted(maps.Keys(after)) {
		if _, there := before[key]; !there {
			list = append(list, newStep(x.index, report.Insert, after[key].object, ""))
			cleared[after[key].profile] = true // its entries may have taken the numbers
		}
	}
	for _, key := range slices.Sorted(maps.Keys(have.objects)) {
		o := have.objects[key]
		t := x.index.ByID[o.entity.GetTableEntry().GetTableId()]
		if t != nil && t.Profile != nil && cleared[t.Profile.ID] && !o.preset {
			gone[key] = true
			add(o, o.value, clearEntries)
		}
	}
	return list, gone
}

// A foreignObject is a member or group of a profile.
type foreignObject struct {
	object
	profile uint32
}

// foreignObjects returns members and groups by keys that identify them.
func foreignObjects(list []*p4v1.Entity) map[string]foreignObject {
	all := map[string]foreignObject{}
	for _, e := range list {
		if g := e.GetActionProfileGroup(); g != nil {
			o := object{entity: e, value: fmt.Sprintf("%d members", len(g.GetMembers())), rank: rankGroup}
			all[fmt.Sprintf("%d group %d", g.GetActionProfileId(), g.GetGroupId())] = foreignObject{o, g.GetActionProfileId()}
		}
		if m := e.GetActionProfileMember(); m != nil {
			o := object{entity: e, value: callValue(m.GetAction()), rank: rankMember}
			all[fmt.Sprintf("%d member %d", m.GetActionProfileId(), m.GetMemberId())] = foreignObject{o, m.GetActionProfileId()}
		}
	}
	return all
}
