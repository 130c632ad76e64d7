package tofino

import (
	"context"
	"maps"
	"slices"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/p4lb/p4lb/internal/bfrt/wire"
)

// Each entry that a session writes has members and groups of its own. Members and groups that no
// entry refers to are another controller's. They are read and written by their numbers, as in
// P4Runtime.

// profile returns the tables with an action profile, by its number in P4Info.
func (p *program) profile(id uint32) ([]*table, error) {
	var list []*table
	for _, at := range slices.Sorted(maps.Keys(p.byP4)) {
		if t := p.byP4[at]; t.in != nil && t.p4.Profile != nil && t.p4.Profile.ID == id {
			list = append(list, t)
		}
	}
	if len(list) == 0 {
		return nil, status.Errorf(codes.NotFound, "no table has the action profile %d", id)
	}
	return list, nil
}

// rows reads the entries of a table.
func (s *session) rows(ctx context.Context, t chipTable, initial bool, f func(id uint32, r row, d *wire.TableData)) error {
	ask := []*wire.TableEntry{{TableId: t.ID, IsDefaultEntry: initial, TableFlags: &wire.TableFlags{}}}
	return s.read(ctx, s.place().everywhere(), ask, func(e *wire.TableEntry) error {
		f(uint32(keyNumber(e)), t.row(e.GetData()), e.GetData())
		return nil
	})
}

// foreign reads the members and groups of a profile that no entry refers to.
func (s *session) foreign(ctx context.Context, p *program, id uint32) (members, groups []*p4v1.Entity, err error) {
	tables, err := p.profile(id)
	if err != nil {
		return nil, nil, err
	}
	used, usedGroups := map[uint32]bool{}, map[uint32]bool{}
	for _, t := range tables {
		note := func(_ uint32, r row, _ *wire.TableData) {
			if r[memberField] != nil {
				used[uint32(r.number(memberField))] = true
			}
			if r[groupField] != nil {
				usedGroups[uint32(r.number(groupField))] = true
			}
		}
		if err := s.rows(ctx, chipTable{t.schema}, false, note); err != nil {
			return nil, nil, err
		}
		if t.p4.Presets() {
			if err := s.rows(ctx, chipTable{t.schema}, true, note); err != nil {
				return nil, nil, err
			}
		}
	}
	t := tables[0]
	if t.in.groups.Table != nil {
		err := s.rows(ctx, t.in.groups, false, func(group uint32, r row, _ *wire.TableData) {
			g := &p4v1.ActionProfileGroup{ActionProfileId: id, GroupId: group, MaxSize: int32(r.number(maxSizeField))}
			for _, m := range r[memberField].GetIntArrVal().GetVal() {
				used[m] = used[m] || usedGroups[group]
				g.Members = append(g.Members, &p4v1.ActionProfileGroup_Member{MemberId: m, Weight: 1})
			}
			if !usedGroups[group] {
				groups = append(groups, &p4v1.Entity{Entity: &p4v1.Entity_ActionProfileGroup{ActionProfileGroup: g}})
			}
		})
		if err != nil {
			return nil, nil, err
		}
	}
	err = s.rows(ctx, t.in.members, false, func(member uint32, _ row, d *wire.TableData) {
		if !used[member] {
			m := &p4v1.ActionProfileMember{ActionProfileId: id, MemberId: member, Action: t.call(d)}
			members = append(members, &p4v1.Entity{Entity: &p4v1.Entity_ActionProfileMember{ActionProfileMember: m}})
		}
	})
	return members, groups, err
}

// member translates an update of a member.
func (p *program) member(kind wire.Update_Type, m *p4v1.ActionProfileMember) (c change) {
	tables, err := p.profile(m.GetActionProfileId())
	if err != nil {
		return change{err: err}
	}
	e, err := tables[0].in.members.entry([]uint64{uint64(m.GetMemberId())}, "")
	if err == nil && kind != wire.Update_DELETE {
		e.Data, err = tables[0].data(m.GetAction())
	}
	return change{list: []*wire.Update{update(kind, e)}, err: err}
}

// memberGroup translates an update of a group of members.
func (p *program) memberGroup(kind wire.Update_Type, g *p4v1.ActionProfileGroup) (c change) {
	tables, err := p.profile(g.GetActionProfileId())
	if err != nil {
		return change{err: err}
	}
	t := tables[0].in.groups
	if t.Table == nil {
		return change{err: status.Errorf(codes.InvalidArgument, "the action profile of table %s has no selector", tables[0].p4.Name)}
	}
	var data []any
	if kind != wire.Update_DELETE {
		var members []uint32
		for _, m := range g.GetMembers() {
			members = append(members, slices.Repeat([]uint32{m.GetMemberId()}, int(min(max(m.GetWeight(), 1), maxWeight)))...)
		}
		size := max(int(g.GetMaxSize()), len(members))
		data = []any{memberField, members, statusField, slices.Repeat([]bool{true}, len(members)), maxSizeField, uint64(size)}
	}
	e, err := t.entry([]uint64{uint64(g.GetGroupId())}, "", data...)
	return change{list: []*wire.Update{update(kind, e)}, err: err}
}
