package tofino

import (
	"context"
	"fmt"
	"slices"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/p4lb/p4lb/internal/bfrt"
	"github.com/p4lb/p4lb/internal/bfrt/wire"
	"github.com/p4lb/p4lb/internal/text/lists"
)

// The fields of action profiles and selectors.
const (
	memberField  = "$ACTION_MEMBER_ID"
	groupField   = "$SELECTOR_GROUP_ID"
	statusField  = "$ACTION_MEMBER_STATUS"
	maxSizeField = "$MAX_GROUP_SIZE"
)

// An indirection is the implementation of a match table by an action profile. BfRt
// keeps the actions as members of the profile, and the sets of members as groups of
// the selector. The entry of the match table names a member or a group.
//
// P4Runtime states the actions of an entry in the entry itself (one-shot
// programming), so the session owns members and groups: each entry has its own. A
// modified entry gets new ones before the old ones go, so that packets always find a
// complete group.
type indirection struct {
	members chipTable
	groups  chipTable // the zero value for a profile without a selector
}

// indirectionOf returns the implementation of a match table, or nil if the table contains its
// actions.
func indirectionOf(s *bfrt.Schema, t *bfrt.Table) (*indirection, error) {
	if !hasData(t, memberField) {
		return nil, nil
	}
	in := &indirection{}
	need := slices.Clone(t.DependsOn)
	for i := 0; i < len(need); i++ {
		o := lists.First(s.Tables, func(o *bfrt.Table) bool { return o.ID == need[i] })
		switch {
		case o == nil:
		case o.Type == "Action":
			in.members = chipTable{o}
		case o.Type == "Selector":
			in.groups = chipTable{o}
			need = append(need, o.DependsOn...)
		}
	}
	if in.members.Table == nil || hasData(t, groupField) && in.groups.Table == nil {
		return nil, fmt.Errorf("its action profile or selector is not in the schema")
	}
	return in, nil
}

func hasData(t *bfrt.Table, name string) bool { return chipTable{t}.find(name) != nil }

// A batch is the shared state of the updates in one Write: the used numbers of members and groups
// by BfRt table, and the current members and groups of indirect tables.
type batch struct {
	used map[uint32]map[uint64]bool
	next map[uint32]uint64
	held map[*table]*holding
}

func newBatch() *batch {
	return &batch{used: map[uint32]map[uint64]bool{}, next: map[uint32]uint64{}, held: map[*table]*holding{}}
}

// free returns the smallest free number of a table. The first call for a table reads
// its entries.
func (a *batch) free(ctx context.Context, s *session, t chipTable) (uint64, error) {
	used := a.used[t.ID]
	if used == nil {
		used = map[uint64]bool{}
		err := s.read(ctx, s.place().everywhere(), []*wire.TableEntry{{TableId: t.ID, TableFlags: &wire.TableFlags{}}}, func(e *wire.TableEntry) error {
			used[keyNumber(e)] = true
			return nil
		})
		if err != nil {
			return 0, err
		}
		a.used[t.ID] = used
	}
	id := a.next[t.ID] + 1
	for used[id] {
		id++
	}
	used[id], a.next[t.ID] = true, id
	return id, nil
}

// actionsOf returns the actions of an entry, each repeated according to its weight.
func actionsOf(t *table, a *p4v1.TableAction) (list []*p4v1.Action, err error) {
	switch a := a.GetType().(type) {
	case *p4v1.TableAction_Action:
		return []*p4v1.Action{a.Action}, nil
	case *p4v1.TableAction_ActionProfileActionSet:
		for _, x := range a.ActionProfileActionSet.GetActionProfileActions() {
			if x.GetWeight() < 1 || x.GetWeight() > maxWeight {
				return nil, status.Errorf(codes.InvalidArgument, "table %s: the weight %d of an action is outside 1..%d", t.p4.Name, x.GetWeight(), maxWeight)
			}
			for range x.GetWeight() {
				list = append(list, x.GetAction())
			}
		}
	default:
		return nil, status.Errorf(codes.Unimplemented, "table %s: over BfRt an entry states its actions, not the number of a member or group", t.p4.Name)
	}
	if len(list) == 0 || len(list) > 1 && t.in.groups.Table == nil {
		return nil, status.Errorf(codes.InvalidArgument, "table %s: an entry has %d actions, want %s", t.p4.Name, len(list), t.in.wants())
	}
	return list, nil
}

// maxWeight limits the members for one action of an entry.
const maxWeight = 1 << 12

func (in *indirection) wants() string {
	if in.groups.Table == nil {
		return "one: its action profile has no selector"
	}
	return "at least one"
}

// indirect translates an update of an entry of a table with a profile.
func (s *session) indirect(ctx context.Context, t *table, kind wire.Update_Type, e *p4v1.TableEntry, out *wire.TableEntry, in *batch) change {
	var c change
	if kind != wire.Update_INSERT {
		if c.after, c.err = s.remains(ctx, t, out, in); c.err != nil {
			return c
		}
	}
	if kind == wire.Update_DELETE {
		c.list = []*wire.Update{update(kind, out)}
		return c
	}
	actions, err := actionsOf(t, e.GetAction())
	if err != nil {
		c.err = err
		return c
	}
	b := &builder{}
	var members []uint32
	for _, a := range actions {
		id, err := in.free(ctx, s, t.in.members)
		if err != nil {
			c.err = err
			return c
		}
		data, err := t.data(a)
		if err != nil {
			c.err = err
			return c
		}
		members = append(members, uint32(id))
		b.insert(&c, t.in.members, id, data)
	}
	field, id := memberField, uint64(members[0])
	if t.in.groups.Table != nil {
		field = groupField
		if id, c.err = in.free(ctx, s, t.in.groups); c.err != nil {
			return c
		}
		on := slices.Repeat([]bool{true}, len(members))
		g, err := t.in.groups.entry([]uint64{id}, "", memberField, members, statusField, on, maxSizeField, uint64(len(members)))
		if err != nil {
			c.err = err
			return c
		}
		b.insert(&c, t.in.groups, id, g.GetData())
	}
	f := chipTable{t.schema}.find(field)
	out.Data = &wire.TableData{Fields: []*wire.DataField{{FieldId: f.ID, Value: &wire.DataField_Stream{Stream: sized(id, f.Bits())}}}}
	c.list, c.err = append(b.list, update(kind, out)), b.err
	slices.Reverse(c.undo) // delete a group before its members
	return c
}

// insert adds the insertion of an entry to c, and its deletion to c.undo.
func (b *builder) insert(c *change, t chipTable, id uint64, data *wire.TableData) {
	if b.err != nil {
		return
	}
	var e *wire.TableEntry
	if e, b.err = t.entry([]uint64{id}, ""); b.err != nil {
		return
	}
	c.undo = append(c.undo, update(wire.Update_DELETE, e))
	full := proto.CloneOf(e)
	full.Data = data
	b.list = append(b.list, update(wire.Update_INSERT, full))
}

// remains returns the updates that delete the group and the members of an entry.
func (s *session) remains(ctx context.Context, t *table, e *wire.TableEntry, in *batch) (list []*wire.Update, err error) {
	ask := &wire.TableEntry{TableId: e.GetTableId(), Value: e.GetValue(), TableFlags: &wire.TableFlags{}}
	var entries []*wire.TableEntry
	err = s.read(ctx, s.place().everywhere(), []*wire.TableEntry{ask}, func(x *wire.TableEntry) error {
		entries = append(entries, x)
		return nil
	})
	if err != nil || len(entries) == 0 {
		return nil, err
	}
	held := in.held[t]
	if held == nil {
		if held, err = s.held(ctx, t); err != nil {
			return nil, err
		}
		in.held[t] = held
	}
	b := &builder{}
	for _, x := range entries {
		r := chipTable{t.schema}.row(x.GetData())
		members := []uint32{uint32(r.number(memberField))}
		if r[memberField] == nil {
			id := uint32(r.number(groupField))
			b.add(wire.Update_DELETE, t.in.groups, id, nil)
			members = held.groups[id]
		}
		for _, m := range members {
			b.add(wire.Update_DELETE, t.in.members, m, nil)
		}
	}
	return b.list, b.err
}

// A holding is the current members and groups of an indirect table.
type holding struct {
	members map[uint32]*wire.TableData
	groups  map[uint32][]uint32
}

// held reads the members of a table's profile and the groups of its selector.
func (s *session) held(ctx context.Context, t *table) (*holding, error) {
	h := &holding{members: map[uint32]*wire.TableData{}, groups: map[uint32][]uint32{}}
	err := s.read(ctx, s.place().everywhere(), []*wire.TableEntry{{TableId: t.in.members.ID, TableFlags: &wire.TableFlags{}}}, func(e *wire.TableEntry) error {
		h.members[uint32(keyNumber(e))] = e.GetData()
		return nil
	})
	if err != nil || t.in.groups.Table == nil {
		return h, err
	}
	err = s.read(ctx, s.place().everywhere(), []*wire.TableEntry{{TableId: t.in.groups.ID, TableFlags: &wire.TableFlags{}}}, func(e *wire.TableEntry) error {
		r := t.in.groups.row(e.GetData())
		on := r[statusField].GetBoolArrVal().GetVal()
		for i, m := range r[memberField].GetIntArrVal().GetVal() {
			if i >= len(on) || on[i] {
				h.groups[uint32(keyNumber(e))] = append(h.groups[uint32(keyNumber(e))], m)
			}
		}
		return nil
	})
	return h, err
}

// action converts the actions of an indirect entry to P4Runtime: a single action without a
// selector, and otherwise a set in which equal actions have a weight.
func (h *holding) action(t *table, d *wire.TableData) *p4v1.TableAction {
	r := chipTable{t.schema}.row(d)
	members := h.groups[uint32(r.number(groupField))]
	if r[memberField] != nil {
		members = []uint32{uint32(r.number(memberField))}
	}
	set := &p4v1.ActionProfileActionSet{}
	for _, m := range members {
		a := t.call(h.members[m])
		if a == nil {
			continue
		}
		if t.in.groups.Table == nil {
			return &p4v1.TableAction{Type: &p4v1.TableAction_Action{Action: a}}
		}
		same := lists.First(set.ActionProfileActions, func(x *p4v1.ActionProfileAction) bool { return proto.Equal(x.GetAction(), a) })
		if same != nil {
			same.Weight++
			continue
		}
		set.ActionProfileActions = append(set.ActionProfileActions, &p4v1.ActionProfileAction{Action: a, Weight: 1})
	}
	return &p4v1.TableAction{Type: &p4v1.TableAction_ActionProfileActionSet{ActionProfileActionSet: set}}
}
