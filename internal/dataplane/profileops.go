package dataplane

import (
	"fmt"
	"slices"

	"github.com/p4lb/p4lb/internal/dataplane/program"
)

func (s *Switch) withProfile(name string, f func(*program.Profile) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	pr := s.prog.Profiles[name]
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

// Profiles reads and writes action profiles, with their members and groups.
type Profiles struct{ s *Switch }

// Profiles returns the action profiles of the switch.
func (s *Switch) Profiles() Profiles { return Profiles{s} }

// AddMember adds a member.
func (ps Profiles) AddMember(name string, c ActionCall) (h Handle, err error) {
	err = ps.s.memberAdd(name, c, func(free *program.Handles, _ int) (Handle, error) {
		h = free.Take()
		return h, nil
	})
	return h, err
}

// AddMemberAt adds a member with its handle, which must be free.
func (ps Profiles) AddMemberAt(name string, m Member) error {
	return ps.s.memberAdd(name, m.Action, claim(m.Handle))
}

// claim returns a function that takes a given handle below a limit.
func claim(h Handle) func(*program.Handles, int) (Handle, error) {
	return func(free *program.Handles, limit int) (Handle, error) {
		if int(h) >= limit || !free.Claim(h) {
			return 0, ErrBadHandle
		}
		return h, nil
	}
}

func (s *Switch) memberAdd(name string, c ActionCall, take func(*program.Handles, int) (Handle, error)) error {
	return s.withProfile(name, func(pr *program.Profile) error {
		a, args, err := program.ResolveCall(pr.Actions, c)
		if err != nil {
			return err
		}
		if pr.MemberHandles.InUse() >= pr.Most() {
			return ErrTableFull
		}
		h, err := take(&pr.MemberHandles, pr.Most())
		if err != nil {
			return err
		}
		for int(h) >= len(pr.Members) {
			pr.Members = append(pr.Members, program.ProfileMember{})
		}
		pr.Members[h] = program.ProfileMember{Used: true, Call: program.Call{Action: a, Args: args}}
		return nil
	})
}

// ModifyMember changes the action of a member, for all entries that use it.
func (ps Profiles) ModifyMember(name string, h Handle, c ActionCall) error {
	return ps.s.withProfile(name, func(pr *program.Profile) error {
		m := pr.Member(h)
		if m == nil {
			return ErrBadHandle
		}
		a, args, err := program.ResolveCall(pr.Actions, c)
		if err != nil {
			return err
		}
		m.Call.Action, m.Call.Args = a, args
		return nil
	})
}

// DeleteMember removes a member that nothing uses.
func (ps Profiles) DeleteMember(name string, h Handle) error {
	return ps.s.withProfile(name, func(pr *program.Profile) error {
		m := pr.Member(h)
		switch {
		case m == nil:
			return ErrBadHandle
		case m.Uses > 0:
			return ErrStillUsed
		}
		*m = program.ProfileMember{}
		pr.MemberHandles.Release(h)
		return nil
	})
}

// Members returns all members by handle.
func (ps Profiles) Members(name string) (list []Member, err error) {
	err = ps.s.withProfile(name, always(func(pr *program.Profile) {
		for h, m := range pr.Members {
			if m.Used {
				list = append(list, Member{Handle(h), program.CallOf(m.Call.Action, m.Call.Args)})
			}
		}
	}))
	return list, err
}

// AddGroup creates an empty group. A table entry can refer to it once it has
// members.
func (ps Profiles) AddGroup(name string) (h Handle, err error) {
	err = ps.s.groupAdd(name, func(free *program.Handles, _ int) (Handle, error) {
		h = free.Take()
		return h, nil
	})
	return h, err
}

// AddGroupAt creates an empty group with a handle, which must be free.
func (ps Profiles) AddGroupAt(name string, h Handle) error { return ps.s.groupAdd(name, claim(h)) }

func (s *Switch) groupAdd(name string, take func(*program.Handles, int) (Handle, error)) error {
	return s.withProfile(name, func(pr *program.Profile) error {
		if !pr.Selects {
			return ErrNotSupported
		}
		if pr.GroupHandles.InUse() >= pr.Most() {
			return ErrTableFull
		}
		h, err := take(&pr.GroupHandles, pr.Most())
		if err != nil {
			return err
		}
		for int(h) >= len(pr.Groups) {
			pr.Groups = append(pr.Groups, program.ProfileGroup{})
		}
		pr.Groups[h] = program.ProfileGroup{Used: true}
		return nil
	})
}

// DeleteGroup removes a group that no entry uses.
func (ps Profiles) DeleteGroup(name string, h Handle) error {
	return ps.s.withProfile(name, func(pr *program.Profile) error {
		g := pr.Group(h)
		switch {
		case g == nil:
			return ErrBadHandle
		case g.Uses > 0:
			return ErrStillUsed
		}
		for _, m := range g.Members {
			pr.Members[m].Uses--
		}
		*g = program.ProfileGroup{}
		pr.GroupHandles.Release(h)
		return nil
	})
}

// GroupUsed reports whether entries refer to a group.
func (ps Profiles) GroupUsed(name string, h Handle) (used bool, err error) {
	err = ps.s.withProfile(name, func(pr *program.Profile) error {
		g := pr.Group(h)
		if g == nil {
			return ErrBadHandle
		}
		used = g.Uses > 0
		return nil
	})
	return used, err
}

// AddToGroup adds a member to a group.
func (ps Profiles) AddToGroup(name string, group, member Handle) error {
	return ps.s.withProfile(name, func(pr *program.Profile) error {
		g, m := pr.Group(group), pr.Member(member)
		if g == nil || m == nil {
			return ErrBadHandle
		}
		i, found := slices.BinarySearch(g.Members, member)
		if found {
			return ErrMemberInGroup
		}
		g.Members = slices.Insert(g.Members, i, member)
		m.Uses++
		return nil
	})
}

// RemoveFromGroup removes a member from a group. Entries of an empty group
// leave their packets unchanged.
func (ps Profiles) RemoveFromGroup(name string, group, member Handle) error {
	return ps.s.withProfile(name, func(pr *program.Profile) error {
		g, m := pr.Group(group), pr.Member(member)
		if g == nil || m == nil {
			return ErrBadHandle
		}
		i, found := slices.BinarySearch(g.Members, member)
		if !found {
			return ErrNotInGroup
		}
		g.Members = slices.Delete(g.Members, i, i+1)
		m.Uses--
		return nil
	})
}

// Groups returns all groups of an action profile by handle.
func (ps Profiles) Groups(name string) (list []Group, err error) {
	err = ps.s.withProfile(name, always(func(pr *program.Profile) {
		for h, g := range pr.Groups {
			if g.Used {
				list = append(list, Group{Handle(h), slices.Clone(g.Members)})
			}
		}
	}))
	return list, err
}

// Uses returns the references of entries and groups to each member, and of
// entries to each group, by handle. Unused handles up to the highest one count 0.
func (ps Profiles) Uses(name string) (members, groups []int, err error) {
	err = ps.s.withProfile(name, always(func(pr *program.Profile) {
		for _, m := range pr.Members {
			members = append(members, m.Uses)
		}
		for _, g := range pr.Groups {
			groups = append(groups, g.Uses)
		}
	}))
	return members, groups, err
}
