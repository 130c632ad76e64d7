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

// liveForeign reads the members and groups that prevent entries of the plan. A switch with
// such entries has none: some servers then return the members that they made for them.
func (x *exchange) liveForeign(ctx context.Context, c, want *contents) error {
	if x.link.Endpoint.Speak != nil {
		return nil // in another protocol the members of several clients exist side by side
	}
	var entities []*p4v1.Entity
	for _, p := range x.index.Profiles {
		if p.Selector && want.oneShots(x.index, p) && !c.oneShots(x.index, p) {
			entities = append(entities, memberEntity(&p4v1.ActionProfileMember{ActionProfileId: p.ID}),
				groupEntity(&p4v1.ActionProfileGroup{ActionProfileId: p.ID}))
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

// foreignSteps returns the deletion of members and groups and of the entries that refer to
// them, and the keys of these entries.
func (x *exchange) foreignSteps(have *contents) (list []step, gone map[string]bool) {
	gone = map[string]bool{}
	profiles := map[uint32]bool{}
	add := func(o object, before string, order int) {
		s := newStep(x.index, report.Delete, o, before)
		s.clears = order
		list = append(list, s)
	}
	for _, e := range have.foreign {
		if g := e.GetActionProfileGroup(); g != nil {
			profiles[g.GetActionProfileId()] = true
			add(object{entity: e}, fmt.Sprintf("%d members", len(g.GetMembers())), clearGroups)
		}
		if m := e.GetActionProfileMember(); m != nil {
			profiles[m.GetActionProfileId()] = true
			add(object{entity: e}, callValue(m.GetAction()), clearMembers)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(have.objects)) {
		o := have.objects[key]
		t := x.index.ByID[o.entity.GetTableEntry().GetTableId()]
		if t != nil && t.Profile != nil && profiles[t.Profile.ID] && !o.preset {
			gone[key] = true
			add(o, o.value, clearEntries)
		}
	}
	return list, gone
}
