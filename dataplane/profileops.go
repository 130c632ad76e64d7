package dataplane

import (
	"fmt"
	"slices"
)

func (s *Switch) withProfile(name string, f func(*profile) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	pr := s.profiles[name]
	if pr == nil {
		return fmt.Errorf("unknown action profile %q", name)
	}
	if err := f(pr); err != nil {
		return fmt.Errorf("action profile %s: %w", name, err)
	}
	return nil
}

// A Member is a member of an action profile.
type Member struct {
	Handle Handle
	Action ActionCall
}

// A Group is a group of an action profile, its members by handle.
type Group struct {
	Handle  Handle
	Members []Handle
}

// MemberAdd adds a member.
func (s *Switch) MemberAdd(name string, c ActionCall) (h Handle, err error) {
	err = s.withProfile(name, func(pr *profile) error {
		a, args, err := resolveCall(pr.actions, c)
		if err != nil {
			return err
		}
		if pr.hm.inUse() >= pr.most() {
			return ErrTableFull
		}
		h = pr.hm.take()
		for int(h) >= len(pr.members) {
			pr.members = append(pr.members, profileMember{})
		}
		pr.members[h] = profileMember{used: true, call: call{action: a, args: args}}
		return nil
	})
	return h, err
}

// MemberModify changes the action of a member, for all entries that use it.
func (s *Switch) MemberModify(name string, h Handle, c ActionCall) error {
	return s.withProfile(name, func(pr *profile) error {
		m := pr.member(h)
		if m == nil {
			return ErrBadHandle
		}
		a, args, err := resolveCall(pr.actions, c)
		if err != nil {
			return err
		}
		m.call.action, m.call.args = a, args
		return nil
	})
}

// MemberDelete removes a member that nothing uses.
func (s *Switch) MemberDelete(name string, h Handle) error {
	return s.withProfile(name, func(pr *profile) error {
		m := pr.member(h)
		switch {
		case m == nil:
			return ErrBadHandle
		case m.uses > 0:
			return ErrStillUsed
		}
		*m = profileMember{}
		pr.hm.release(h)
		return nil
	})
}

// Members returns all members by handle.
func (s *Switch) Members(name string) (list []Member, err error) {
	err = s.withProfile(name, func(pr *profile) error {
		for h, m := range pr.members {
			if m.used {
				list = append(list, Member{Handle(h), callOf(m.call.action, m.call.args)})
			}
		}
		return nil
	})
	return list, err
}

// GroupAdd makes an empty group. A table entry can refer to it once it has
// members.
func (s *Switch) GroupAdd(name string) (h Handle, err error) {
	err = s.withProfile(name, func(pr *profile) error {
		if !pr.selects {
			return ErrNotSupported
		}
		if pr.hg.inUse() >= pr.most() {
			return ErrTableFull
		}
		h = pr.hg.take()
		for int(h) >= len(pr.groups) {
			pr.groups = append(pr.groups, profileGroup{})
		}
		pr.groups[h] = profileGroup{used: true}
		return nil
	})
	return h, err
}

// GroupDelete removes a group that no entry uses.
func (s *Switch) GroupDelete(name string, h Handle) error {
	return s.withProfile(name, func(pr *profile) error {
		g := pr.group(h)
		switch {
		case g == nil:
			return ErrBadHandle
		case g.uses > 0:
			return ErrStillUsed
		}
		for _, m := range g.members {
			pr.members[m].uses--
		}
		*g = profileGroup{}
		pr.hg.release(h)
		return nil
	})
}

// GroupUsed reports whether entries lead to a group.
func (s *Switch) GroupUsed(name string, h Handle) (used bool, err error) {
	err = s.withProfile(name, func(pr *profile) error {
		g := pr.group(h)
		if g == nil {
			return ErrBadHandle
		}
		used = g.uses > 0
		return nil
	})
	return used, err
}

// GroupAddMember puts a member into a group.
func (s *Switch) GroupAddMember(name string, group, member Handle) error {
	return s.withProfile(name, func(pr *profile) error {
		g, m := pr.group(group), pr.member(member)
		if g == nil || m == nil {
			return ErrBadHandle
		}
		i, found := slices.BinarySearch(g.members, member)
		if found {
			return ErrMemberInGroup
		}
		g.members = slices.Insert(g.members, i, member)
		m.uses++
		return nil
	})
}

// GroupRemoveMember takes a member out of a group. A group that is left empty
// while entries use it does nothing to their packets.
func (s *Switch) GroupRemoveMember(name string, group, member Handle) error {
	return s.withProfile(name, func(pr *profile) error {
		g, m := pr.group(group), pr.member(member)
		if g == nil || m == nil {
			return ErrBadHandle
		}
		i, found := slices.BinarySearch(g.members, member)
		if !found {
			return ErrNotInGroup
		}
		g.members = slices.Delete(g.members, i, i+1)
		m.uses--
		return nil
	})
}

// ProfileGroups returns all groups of an action profile by handle.
func (s *Switch) ProfileGroups(name string) (list []Group, err error) {
	err = s.withProfile(name, func(pr *profile) error {
		for h, g := range pr.groups {
			if g.used {
				list = append(list, Group{Handle(h), slices.Clone(g.members)})
			}
		}
		return nil
	})
	return list, err
}
