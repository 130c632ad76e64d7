package p4app

import (
	"fmt"
	"math"
	"slices"

	configv1 "github.com/p4lang/p4runtime/go/p4/config/v1"
	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
)

// entry parses the key and the priority of an entry of the table with a name.
func (s *script) entry(name string, words []string) (t *configv1.Table, m *p4v1.TableEntry, rest []string, err error) {
	if t, err = s.table(name); err != nil {
		return nil, nil, nil, err
	}
	before, rest, priority, err := split(t, words)
	if err != nil {
		return nil, nil, nil, err
	}
	match, err := key(t, before)
	if err != nil {
		return nil, nil, nil, fmt.Errorf("table %s: %w", t.GetPreamble().GetName(), err)
	}
	return t, &p4v1.TableEntry{TableId: t.GetPreamble().GetId(), Match: match, Priority: priority}, rest, nil
}

// insert adds an entry with the next handle of its table.
func (s *script) insert(t *configv1.Table, m *p4v1.TableEntry) {
	name := t.GetPreamble().GetName()
	s.entries[name] = append(s.entries[name], m)
	s.put(s.line, p4v1.Update_INSERT, tableEntity(m))
}

func (s *script) tableAdd(words []string) error {
	t, err := s.table(words[0])
	if err != nil {
		return err
	}
	a, err := s.action("table "+t.GetPreamble().GetName(), t.GetActionRefs(), words[1], false)
	if err != nil {
		return err
	}
	t, m, rest, err := s.entry(words[0], words[2:])
	if err != nil {
		return err
	}
	list, err := args(a, rest)
	if err != nil {
		return fmt.Errorf("table %s: %w", t.GetPreamble().GetName(), err)
	}
	m.Action = actionOf(call(a, list))
	s.insert(t, m)
	return nil
}

func (s *script) tableDefault(words []string) error {
	t, err := s.table(words[0])
	if err != nil {
		return err
	}
	a, err := s.action("table "+t.GetPreamble().GetName(), t.GetActionRefs(), words[1], true)
	if err != nil {
		return err
	}
	rest := words[2:]
	if len(rest) > 0 && rest[0] == "=>" {
		rest = rest[1:]
	}
	list, err := args(a, rest)
	if err != nil {
		return fmt.Errorf("table %s: %w", t.GetPreamble().GetName(), err)
	}
	s.put(s.line, p4v1.Update_MODIFY, tableEntity(&p4v1.TableEntry{
		TableId: t.GetPreamble().GetId(), IsDefaultAction: true, Action: actionOf(call(a, list)),
	}))
	return nil
}

// added returns the entry with a handle.
func (s *script) added(table, handle string) (*configv1.Table, *p4v1.TableEntry, error) {
	t, err := s.table(table)
	if err != nil {
		return nil, nil, err
	}
	name := t.GetPreamble().GetName()
	list := s.entries[name]
	h, err := numberArg("handle", handle, math.MaxInt32)
	switch {
	case err != nil:
		return nil, nil, err
	case h >= len(list) || list[h] == nil:
		return nil, nil, fmt.Errorf("table %s: handle %d: no previous command creates such an entry", name, h)
	}
	return t, list[h], nil
}

func (s *script) tableModify(words []string) error {
	t, m, err := s.added(words[0], words[2])
	if err != nil {
		return err
	}
	a, err := s.action("table "+t.GetPreamble().GetName(), t.GetActionRefs(), words[1], false)
	if err != nil {
		return err
	}
	rest := words[3:]
	if len(rest) > 0 && rest[0] == "=>" {
		rest = rest[1:]
	}
	list, err := args(a, rest)
	if err != nil {
		return err
	}
	s.put(s.line, p4v1.Update_MODIFY, tableEntity(&p4v1.TableEntry{TableId: m.TableId, Match: m.Match, Priority: m.Priority, Action: actionOf(call(a, list))}))
	return nil
}

// tableDelete leaves a gap: simple_switch would reuse the handle with another
// version number.
func (s *script) tableDelete(words []string) error {
	t, m, err := s.added(words[0], words[1])
	if err != nil {
		return err
	}
	s.put(s.line, p4v1.Update_DELETE, tableEntity(&p4v1.TableEntry{TableId: m.TableId, Match: m.Match, Priority: m.Priority}))
	list := s.entries[t.GetPreamble().GetName()]
	list[slices.Index(list, m)] = nil
	return nil
}

func (s *script) tableTimeout(words []string) error {
	t, m, err := s.added(words[0], words[1])
	if err != nil {
		return err
	}
	n, err := numberArg("timeout", words[2], math.MaxInt32)
	if err != nil {
		return err
	}
	if t.GetIdleTimeoutBehavior() == configv1.Table_NO_TIMEOUT {
		return fmt.Errorf("table %s: its entries cannot have a timeout: the program has no support_timeout", t.GetPreamble().GetName())
	}
	m.IdleTimeoutNs = int64(n) * 1e6
	return nil
}

func (s *script) profile(name string) (*configv1.ActionProfile, error) {
	return find(s.info.GetActionProfiles(), "action profile", name)
}

func (s *script) createMember(words []string) error {
	p, err := s.profile(words[0])
	if err != nil {
		return err
	}
	name := p.GetPreamble().GetName()
	var refs []*configv1.ActionRef
	for _, t := range s.info.GetTables() {
		if slices.Contains(p.GetTableIds(), t.GetPreamble().GetId()) {
			refs = append(refs, t.GetActionRefs()...)
		}
	}
	a, err := s.action("action profile "+name, refs, words[1], false)
	if err != nil {
		return err
	}
	list, err := args(a, words[2:])
	if err != nil {
		return err
	}
	s.members[name]++ // ids start at 1 in P4Runtime
	s.put(s.line, p4v1.Update_INSERT, &p4v1.Entity{Entity: &p4v1.Entity_ActionProfileMember{ActionProfileMember: &p4v1.ActionProfileMember{
		ActionProfileId: p.GetPreamble().GetId(), MemberId: uint32(s.members[name]), Action: call(a, list),
	}}})
	return nil
}

func (s *script) createGroup(words []string) error {
	p, err := s.profile(words[0])
	if err != nil {
		return err
	}
	name := p.GetPreamble().GetName()
	g := &p4v1.ActionProfileGroup{ActionProfileId: p.GetPreamble().GetId(), GroupId: uint32(len(s.groups[name]) + 1), MaxSize: p.GetMaxGroupSize()}
	s.groups[name] = append(s.groups[name], g)
	return nil
}

// joinGroup writes the group with its members so far. The first member creates
// the group.
func (s *script) joinGroup(words []string) error {
	p, err := s.profile(words[0])
	if err != nil {
		return err
	}
	name := p.GetPreamble().GetName()
	m, err := numberArg("member", words[1], int64(s.members[name])-1)
	if err != nil {
		return fmt.Errorf("action profile %s: member %s: no previous command creates it", name, words[1])
	}
	h, err := numberArg("group", words[2], int64(len(s.groups[name]))-1)
	if err != nil {
		return fmt.Errorf("action profile %s: group %s: no previous command creates it", name, words[2])
	}
	g := s.groups[name][h]
	typ := p4v1.Update_MODIFY
	if len(g.Members) == 0 {
		typ = p4v1.Update_INSERT
	}
	next := &p4v1.ActionProfileGroup{
		ActionProfileId: g.ActionProfileId, GroupId: g.GroupId, MaxSize: g.MaxSize,
		Members: append(slices.Clone(g.Members), &p4v1.ActionProfileGroup_Member{MemberId: uint32(m + 1), Weight: 1}),
	}
	s.groups[name][h] = next
	s.put(s.line, typ, &p4v1.Entity{Entity: &p4v1.Entity_ActionProfileGroup{ActionProfileGroup: next}})
	return nil
}

// indirect adds an entry that refers to a member or a group.
func (s *script) indirect(words []string, to func(id uint32) *p4v1.TableAction) error {
	t, m, rest, err := s.entry(words[0], words[1:])
	if err != nil {
		return err
	}
	if len(rest) != 1 {
		return fmt.Errorf("table %s: want one handle after the arrow", t.GetPreamble().GetName())
	}
	h, err := numberArg("handle", rest[0], math.MaxInt32-1)
	if err != nil {
		return err
	}
	m.Action = to(uint32(h + 1))
	s.insert(t, m)
	return nil
}

func (s *script) indirectAdd(words []string) error {
	return s.indirect(words, func(id uint32) *p4v1.TableAction {
		return &p4v1.TableAction{Type: &p4v1.TableAction_ActionProfileMemberId{ActionProfileMemberId: id}}
	})
}

func (s *script) indirectAddGroup(words []string) error {
	return s.indirect(words, func(id uint32) *p4v1.TableAction {
		return &p4v1.TableAction{Type: &p4v1.TableAction_ActionProfileGroupId{ActionProfileGroupId: id}}
	})
}

func tableEntity(m *p4v1.TableEntry) *p4v1.Entity {
	return &p4v1.Entity{Entity: &p4v1.Entity_TableEntry{TableEntry: m}}
}
