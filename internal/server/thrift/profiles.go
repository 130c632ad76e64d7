package thrift

import (
	"errors"

	"github.com/p4lb/p4lb/internal/dataplane"
	"github.com/p4lb/p4lb/internal/text/lists"
)

func profileCalls() map[string]call {
	return map[string]call{
		"bm_mt_act_prof_add_member":               ofProfile(addMember),
		"bm_mt_act_prof_delete_member":            ofProfile(deleteMember),
		"bm_mt_act_prof_modify_member":            ofProfile(modifyMember),
		"bm_mt_act_prof_create_group":             ofProfile(createGroup),
		"bm_mt_act_prof_delete_group":             ofProfile(deleteGroup),
		"bm_mt_act_prof_add_member_to_group":      ofPair(dataplane.Profiles.AddToGroup),
		"bm_mt_act_prof_remove_member_from_group": ofPair(dataplane.Profiles.RemoveFromGroup),
		"bm_mt_act_prof_get_members":              listed((*request).hasProfile, getMembers, []fields{}),
		"bm_mt_act_prof_get_member":               ofProfile(getMember),
		"bm_mt_act_prof_get_groups":               listed((*request).hasProfile, getGroups, []fields{}),
		"bm_mt_act_prof_get_group":                ofProfile(getGroup),
	}
}

func ofProfile(f tableCall) call {
	return func(t Target, in record) (any, exception) {
		r := newRequest(t, in)
		if r.profile == nil {
			return nil, invalidProfileName
		}
		return f(r)
	}
}

// aboutHandle returns the code of an error about a member or a group, which
// differs from the code for an entry.
func aboutHandle(err error, invalid, used exception) exception {
	switch {
	case errors.Is(err, dataplane.ErrBadHandle):
		return invalid
	case errors.Is(err, dataplane.ErrStillUsed):
		return used
	}
	return code(err)
}

func (r *request) actionCall(name int16) dataplane.ActionCall {
	return dataplane.ActionCall{Name: r.in.textAt(name), Params: listAt[[]byte](r.in, name+1)}
}

func addMember(r *request) (any, exception) {
	h, err := r.sw.Profiles().AddMember(r.name, r.actionCall(3))
	return int32(h), code(err)
}

func deleteMember(r *request) (any, exception) {
	return nil, aboutHandle(r.sw.Profiles().DeleteMember(r.name, r.handle()), invalidMember, memberStillUsed)
}

func modifyMember(r *request) (any, exception) {
	return nil, aboutHandle(r.sw.Profiles().ModifyMember(r.name, r.handle(), r.actionCall(4)), invalidMember, memberStillUsed)
}

func createGroup(r *request) (any, exception) {
	h, err := r.sw.Profiles().AddGroup(r.name)
	return int32(h), supported(err, noProfileSelection)
}

func deleteGroup(r *request) (any, exception) {
	return nil, aboutHandle(r.sw.Profiles().DeleteGroup(r.name, r.handle()), invalidGroup, groupStillUsed)
}

// ofPair turns f into a call that checks the member and the group first.
func ofPair(f func(ps dataplane.Profiles, profile string, group, member dataplane.Handle) error) call {
	return ofProfile(func(r *request) (any, exception) {
		member, group := r.handle(), dataplane.Handle(uint32(r.in.int32At(4)))
		if _, ok := r.member(member); !ok {
			return nil, invalidMember
		}
		if _, ok := r.group(group); !ok {
			return nil, invalidGroup
		}
		return nil, aboutHandle(f(r.sw.Profiles(), r.name, group, member), invalidMember, memberStillUsed)
	})
}

func (r *request) member(h dataplane.Handle) (dataplane.Member, bool) {
	list, _ := r.sw.Profiles().Members(r.name)
	for _, m := range list {
		if m.Handle == h {
			return m, true
		}
	}
	return dataplane.Member{}, false
}

func (r *request) group(h dataplane.Handle) (dataplane.Group, bool) {
	list, _ := r.sw.Profiles().Groups(r.name)
	for _, g := range list {
		if g.Handle == h {
			return g, true
		}
	}
	return dataplane.Group{}, false
}

func memberFields(m dataplane.Member) fields {
	return fields{{1, int32(m.Handle)}, {2, m.Action.Name}, {3, dataOf(m.Action)}}
}

func groupFields(g dataplane.Group) fields {
	members := lists.Map(g.Members, func(h dataplane.Handle) int32 { return int32(h) })
	return fields{{1, int32(g.Handle)}, {2, members}}
}

func getMembers(r *request) (any, exception) {
	list, err := r.sw.Profiles().Members(r.name)
	return lists.Map(list, memberFields), code(err)
}

func getMember(r *request) (any, exception) {
	m, ok := r.member(r.handle())
	if !ok {
		return nil, invalidMember
	}
	return memberFields(m), 0
}

func getGroups(r *request) (any, exception) {
	list, err := r.sw.Profiles().Groups(r.name)
	return lists.Map(list, groupFields), code(err)
}

func getGroup(r *request) (any, exception) {
	g, ok := r.group(r.handle())
	if !ok {
		return nil, invalidGroup
	}
	return groupFields(g), 0
}
