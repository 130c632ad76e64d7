package p4rt

import (
	"fmt"
	"slices"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc/codes"

	"github.com/p4lb/p4lb/internal/dataplane"
)

// hold adds n to the reference counts of the member and the group.
func (u use) hold(n int) {
	if u.member != nil {
		u.member.uses += n
	}
	if u.group != nil {
		u.group.uses += n
	}
}

// newTarget checks the action of a table entry. The caller must pass a one-shot
// target to dropTarget if it does not use it. before is the one-shot group that
// it replaces, or nil.
func (p *pipeline) newTarget(t *tableState, a *p4v1.TableAction, before *group) (target, error) {
	profile := p.profileOf(t)
	switch x := a.GetType().(type) {
	case *p4v1.TableAction_Action:
		if profile == nil {
			call, err := p.entryAction(t.info, x.Action, false)
			return target{data: dataplane.Target{Action: call}}, err
		}
	case *p4v1.TableAction_ActionProfileMemberId:
		if profile != nil {
			return memberTarget(t, profile, x.ActionProfileMemberId)
		}
	case *p4v1.TableAction_ActionProfileGroupId:
		if profile != nil && profile.info.GetWithSelector() {
			return groupTarget(t, profile, x.ActionProfileGroupId)
		}
	case *p4v1.TableAction_ActionProfileActionSet:
		if profile != nil && profile.info.GetWithSelector() {
			return p.oneShotTarget(t, profile, x.ActionProfileActionSet, before)
		}
	}
	return target{}, t.failf(codes.InvalidArgument, "the entry has %s: want %s", variant(a), t.wants(profile))
}

// wants describes the forms of an action that the entries of a table can have.
func (t *tableState) wants(profile *profileState) string {
	switch {
	case profile == nil:
		return "action, because the table has no action profile"
	case profile.info.GetWithSelector():
		return fmt.Sprintf("action_profile_action_set, or the id of a member or group of action selector %s", profile.info.name)
	}
	return fmt.Sprintf("action_profile_member_id, the id of a member of action profile %s", profile.info.name)
}

func (p *pipeline) profileOf(t *tableState) *profileState {
	if t.info.profile == nil {
		return nil
	}
	return p.profiles[t.info.profile.GetPreamble().GetId()]
}

func memberTarget(t *tableState, profile *profileState, id uint32) (target, error) {
	m := profile.members[id]
	switch {
	case len(profile.oneShots) > 0:
		return target{}, t.failf(codes.InvalidArgument, "the selector has one-shot entries and cannot have members")
	case m == nil:
		return target{}, t.failf(codes.NotFound, "there is no member %d", id)
	}
	return target{data: dataplane.Target{Kind: dataplane.TargetMember, Index: m.copies[0]}, use: use{member: m}}, nil
}

func groupTarget(t *tableState, profile *profileState, id uint32) (target, error) {
	g := profile.groups[id]
	switch {
	case len(profile.oneShots) > 0:
		return target{}, t.failf(codes.InvalidArgument, "the selector has one-shot entries and cannot have groups")
	case g == nil:
		return target{}, t.failf(codes.NotFound, "there is no group %d", id)
	}
	return target{data: dataplane.Target{Kind: dataplane.TargetGroup, Index: g.handle}, use: use{group: g}}, nil
}

// dropTarget removes the group of a deleted one-shot entry.
func (p *pipeline) dropTarget(u use) {
	if u.group != nil && u.group.msg == nil {
		p.dropOneShot(u.group)
	}
}

func (p *pipeline) profile(id uint32) (*profileState, error) {
	if pr := p.profiles[id]; pr != nil {
		return pr, nil
	}
	return nil, failf(codes.InvalidArgument, "there is no action profile %#x", id)
}

func (pr *profileState) failf(code codes.Code, format string, args ...any) error {
	return prefixed(failf(code, format, args...), "action profile %s", pr.info.name)
}

func (p *pipeline) writeMember(j *journal, typ p4v1.Update_Type, m *p4v1.ActionProfileMember) error {
	pr, err := p.profile(m.GetActionProfileId())
	if err != nil {
		return err
	}
	old := pr.members[m.GetMemberId()]
	switch {
	case m.GetMemberId() == 0:
		return pr.failf(codes.InvalidArgument, "member id 0: want 1 or more")
	case typ == p4v1.Update_INSERT && old != nil:
		return pr.failf(codes.AlreadyExists, "member %d already exists already", m.GetMemberId())
	case typ == p4v1.Update_INSERT:
		return p.insertMember(j, pr, m)
	case old == nil:
		return pr.failf(codes.NotFound, "there is no member %d", m.GetMemberId())
	case typ == p4v1.Update_MODIFY:
		return p.modifyMember(j, pr, old, m)
	default:
		return p.deleteMember(j, pr, old)
	}
}

// memberAction checks the action of a member.
func (p *pipeline) memberAction(pr *profileState, a *p4v1.Action) (dataplane.ActionCall, error) {
	switch {
	case a == nil:
		return dataplane.ActionCall{}, pr.failf(codes.InvalidArgument, "the member has no action")
	case !pr.info.actions[a.GetActionId()]:
		return dataplane.ActionCall{}, pr.failf(codes.InvalidArgument, "action %#x is not one of its tables' actions", a.GetActionId())
	}
	return p.info.parseAction(a)
}

func (p *pipeline) insertMember(j *journal, pr *profileState, m *p4v1.ActionProfileMember) error {
	if len(pr.oneShots) > 0 {
		return pr.failf(codes.InvalidArgument, "it has one-shot entries and cannot have members")
	}
	call, err := p.memberAction(pr, m.GetAction())
	if err != nil {
		return err
	}
	if size := pr.info.GetSize(); size > 0 && int64(len(pr.members)) >= size {
		return pr.failf(codes.ResourceExhausted, "it is full: it has %d members", size)
	}
	h, err := p.sw.Profiles().AddMember(pr.info.name, call)
	if err != nil {
		return recode(err, codes.InvalidArgument)
	}
	mb := &member{msg: m, call: call, copies: []dataplane.Handle{h}}
	pr.members[m.GetMemberId()] = mb
	pr.memberMsgs.set(m.GetMemberId(), m)
	j.add(func() { p.must(p.deleteMember(nil, pr, pr.members[m.GetMemberId()])) })
	return nil
}

func (p *pipeline) modifyMember(j *journal, pr *profileState, mb *member, m *p4v1.ActionProfileMember) error {
	call, err := p.memberAction(pr, m.GetAction())
	if err != nil {
		return err
	}
	before := mb.msg
	for _, h := range mb.copies {
		if err := p.sw.Profiles().ModifyMember(pr.info.name, h, call); err != nil {
			return recode(err, codes.InvalidArgument)
		}
	}
	mb.msg, mb.call = m, call
	pr.memberMsgs.set(m.GetMemberId(), m)
	j.add(func() { p.must(p.modifyMember(nil, pr, pr.members[m.GetMemberId()], before)) })
	return nil
}

func (p *pipeline) deleteMember(j *journal, pr *profileState, mb *member) error {
	id := mb.msg.GetMemberId()
	switch {
	case mb.groups > 0:
		return pr.failf(codes.FailedPrecondition, "member %d is in %d groups", id, mb.groups)
	case mb.uses > 0:
		return pr.failf(codes.FailedPrecondition, "%d table entries lead to member %d", mb.uses, id)
	}
	p.freeMember(pr, mb)
	delete(pr.members, id)
	pr.memberMsgs.delete(id)
	j.add(func() { p.must(p.insertMember(nil, pr, mb.msg)) })
	return nil
}

func (p *pipeline) freeMember(pr *profileState, mb *member) {
	for _, h := range mb.copies {
		p.must(p.sw.Profiles().DeleteMember(pr.info.name, h))
	}
}

// copiesOf returns n handles of a member and creates missing ones.
func (p *pipeline) copiesOf(pr *profileState, mb *member, n int) []dataplane.Handle {
	for len(mb.copies) < n {
		h, err := p.sw.Profiles().AddMember(pr.info.name, mb.call)
		if p.must(err); err != nil {
			return mb.copies
		}
		mb.copies = append(mb.copies, h)
	}
	return mb.copies[:n]
}

// activate updates a group in the data plane: its members are those without
// a watch port and those with one that is up. New members are added first, so
// the group is never empty in between.
func (p *pipeline) activate(g *group) {
	var want []dataplane.Handle
	for _, part := range g.parts {
		if !part.watch || p.dev.PortUp(part.port) {
			want = append(want, p.copiesOf(g.profile, part.member, part.weight)...)
		}
	}
	name := g.profile.info.name
	for _, h := range want {
		if !slices.Contains(g.active, h) {
			p.must(p.sw.Profiles().AddToGroup(name, g.handle, h))
		}
	}
	for _, h := range g.active {
		if !slices.Contains(want, h) {
			p.must(p.sw.Profiles().RemoveFromGroup(name, g.handle, h))
		}
	}
	g.active = want
}

// watchPorts updates all groups after a port has changed its state.
func (p *pipeline) watchPorts() {
	for _, pr := range p.profiles {
		for _, g := range pr.groups {
			p.activate(g)
		}
		for g := range pr.oneShots {
			p.activate(g)
		}
	}
}
