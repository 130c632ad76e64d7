package controller

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"

	"github.com/p4lb/p4lb/internal/controller/p4info"
	"github.com/p4lb/p4lb/internal/controller/plan"
	"github.com/p4lb/p4lb/internal/controller/report"
	"github.com/p4lb/p4lb/internal/scheme/manifest"
	"github.com/p4lb/p4lb/internal/text/lists"
)

// A step is a change and the way to make it: an update, a write of a cell, or a
// setting of a queue or filter.
type step struct {
	report.Change
	update *p4v1.Update
	rank   int
	clears int // position among the deletions before all other changes, or 0
	cell   *plan.Cells
	queue  *plan.Queue
	filter *plan.Filter
}

// diff returns the steps from the current to the planned state of a switch. It
// ignores cells, queues and filters that cannot be read.
func (x *exchange) diff(have, want *contents) []step {
	list := x.commonSteps(have, want.common)
	changes, ids := x.memberSteps(have, want)
	list = append(list, changes...)
	changes, gone := x.foreignSteps(have, want)
	list = append(list, changes...)
	for _, key := range slices.Sorted(maps.Keys(want.objects)) {
		w := want.objects[key]
		h, there := have.objects[key]
		there = there && !gone[key]
		switch {
		case w.preset && h.value == w.value:
		case w.preset || there && (h.value != w.value || h.alias):
			list = append(list, newStep(x.index, report.Modify, ids.refer(x.index, w), h.value))
		case !there:
			list = append(list, newStep(x.index, report.Insert, ids.refer(x.index, w), ""))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(have.objects)) {
		if h := have.objects[key]; !want.wants(key) && !h.preset && !gone[key] {
			list = append(list, newStep(x.index, report.Delete, h, h.value))
		}
	}
	list = append(list, cellSteps(have.cells, want.cells)...)
	list = append(list, x.queueSteps(have.queues, want.queues)...)
	return append(list, filterSteps(have.filters, want.filters)...)
}

func newStep(x *p4info.Index, kind report.Kind, o object, before string) step {
	s := step{
		Change: report.Change{Kind: kind, Object: describe(x, o.entity)},
		update: &p4v1.Update{Type: updateTypes[kind], Entity: o.entity},
		rank:   o.rank,
	}
	if before != "" {
		s.Before = describeValue(x, o.entity, before)
	}
	if kind != report.Delete {
		s.After = describeValue(x, o.entity, o.value)
	}
	return s
}

var updateTypes = map[report.Kind]p4v1.Update_Type{
	report.Insert: p4v1.Update_INSERT, report.Modify: p4v1.Update_MODIFY, report.Delete: p4v1.Update_DELETE,
}

// cellSteps compares cells that are known on both sides. Both lists are in order.
func cellSteps(have, want []plan.Cells) []step {
	values := map[plan.Cells]uint64{}
	for _, h := range have {
		values[plan.Cells{Register: h.Register, From: h.From, To: h.To, Value: 0}] = h.Value
	}
	var list []step
	for _, w := range want {
		before, known := values[plan.Cells{Register: w.Register, From: w.From, To: w.To, Value: 0}]
		if known && before != w.Value {
			list = append(list, step{
				Change: report.Change{Kind: report.Modify, Object: fmt.Sprintf("register %s[%d]", w.Register, w.From), Before: strconv.FormatUint(before, 10), After: strconv.FormatUint(w.Value, 10)},
				cell:   &w,
			})
		}
	}
	return list
}

// queueSteps compares queues. Queues with unknown settings are set.
func (x *exchange) queueSteps(have, want []plan.Queue) []step {
	if x.link.Endpoint.Queues == nil {
		return nil
	}
	known := map[int]plan.Queue{}
	for _, h := range have {
		known[h.Port] = h
	}
	var list []step
	for _, w := range want {
		h, ok := known[w.Port]
		if ok && h.Has(w) {
			continue
		}
		s := step{Change: report.Change{Kind: report.Modify, Object: fmt.Sprintf("queue of port %d", w.Port), After: w.String()}, queue: &w}
		if ok {
			s.Before = h.String()
		}
		list = append(list, s)
	}
	return list
}

// describe returns a description of an object with the names of the program.
func describe(x *p4info.Index, e *p4v1.Entity) string {
	if r := e.GetPacketReplicationEngineEntry(); r != nil {
		if g := r.GetMulticastGroupEntry(); g != nil {
			return fmt.Sprintf("multicast group %d", g.GetMulticastGroupId())
		}
		return fmt.Sprintf("clone session %d", r.GetCloneSessionEntry().GetSessionId())
	}
	profile := func(id uint32) string {
		return lists.First(x.Profiles, func(p *p4info.Profile) bool { return p.ID == id }).Name
	}
	if m := e.GetActionProfileMember(); m != nil {
		return fmt.Sprintf("%s member %d", profile(m.GetActionProfileId()), m.GetMemberId())
	}
	if g := e.GetActionProfileGroup(); g != nil {
		return fmt.Sprintf("%s group %d", profile(g.GetActionProfileId()), g.GetGroupId())
	}
	entry := e.GetTableEntry()
	t := x.ByID[entry.GetTableId()]
	if t == nil {
		return fmt.Sprintf("table %d %s", entry.GetTableId(), entryKey(entry))
	}
	if entry.GetIsDefaultAction() {
		return t.Name + " default"
	}
	var b strings.Builder
	b.WriteString(t.Name)
	for _, m := range entry.GetMatch() {
		for _, f := range t.Fields {
			if f.ID == m.GetFieldId() {
				b.WriteString(" " + manifest.Short(f.Name) + "=" + showMatch(f, m))
			}
		}
	}
	return b.String()
}

// showMatch formats a match. It formats addresses as addresses.
func showMatch(f p4info.Field, m *p4v1.FieldMatch) string {
	if l := m.GetLpm(); l != nil && f.Width == 32 {
		return fmt.Sprintf("%s/%d", plan.FormatNumber(numberOf(l.GetValue()), 32), l.GetPrefixLen())
	}
	if e := m.GetExact(); e != nil {
		return plan.FormatNumber(numberOf(e.GetValue()), f.Width)
	}
	return string(appendMatch(nil, m))
}

func numberOf(b []byte) uint64 {
	var v uint64
	for _, c := range b {
		v = v<<8 | uint64(c)
	}
	return v
}

// describeValue describes the value of an object, which is in the form of contents.
func describeValue(x *p4info.Index, e *p4v1.Entity, value string) string {
	if e.GetPacketReplicationEngineEntry() != nil {
		return "ports " + value
	}
	if value == noAction {
		return "the program's own"
	}
	id, params, _ := strings.Cut(value, " ")
	n, err := strconv.ParseUint(id, 10, 32)
	t := x.ByID[e.GetTableEntry().GetTableId()]
	if m := e.GetActionProfileMember(); m != nil {
		t = lists.First(x.Tables, func(t *p4info.Table) bool { return t.Profile != nil && t.Profile.ID == m.GetActionProfileId() })
	}
	if err != nil || t == nil || t.ByAction[uint32(n)] == nil {
		return value
	}
	a := t.ByAction[uint32(n)]
	var args []string
	for _, field := range strings.Fields(params) {
		id, v, _ := strings.Cut(field, "=")
		for _, p := range a.Params {
			if strconv.Itoa(int(p.ID)) == id {
				args = append(args, p.Name+"="+showArg(v, p.Width))
			}
		}
	}
	return a.Name + "(" + strings.Join(args, ", ") + ")"
}

func showArg(text string, width int) string {
	v, err := strconv.ParseUint(text, 10, 64)
	if err != nil || width != 48 {
		return text
	}
	return plan.FormatNumber(v, width)
}
