package p4rt

import (
	configv1 "github.com/p4lang/p4runtime/go/p4/config/v1"
	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc/codes"

	"github.com/p4lb/p4lb/internal/dataplane"
)

// maxGroupWeight bounds the sum of the weights in a group. Each unit of weight
// is a member of its own in the data plane.
const maxGroupWeight = 1 << 12

func (p *pipeline) writeGroup(j *journal, typ p4v1.Update_Type, m *p4v1.ActionProfileGroup) error {
	pr, err := p.profile(m.GetActionProfileId())
	if err != nil {
		return err
	}
	old := pr.groups[m.GetGroupId()]
	switch {
	case !pr.info.GetWithSelector():
		return pr.failf(codes.InvalidArgument, "it is not a selector and cannot have groups")
	case m.GetGroupId() == 0:
		return pr.failf(codes.InvalidArgument, "group id 0: want 1 or more")
	case typ == p4v1.Update_INSERT && old != nil:
		return pr.failf(codes.AlreadyExists, "group %d already exists already", m.GetGroupId())
	case typ == p4v1.Update_INSERT:
		return p.insertGroup(j, pr, m)
	case old == nil:
		return pr.failf(codes.NotFound, "there is no group %d", m.GetGroupId())
	case typ == p4v1.Update_MODIFY:
		return p.modifyGroup(j, pr, old, m)
	default:
		return p.deleteGroup(j, pr, old)
	}
}

func (p *pipeline) insertGroup(j *journal, pr *profileState, m *p4v1.ActionProfileGroup) error {
	if len(pr.oneShots) > 0 {
		return pr.failf(codes.InvalidArgument, "it has one-shot entries and cannot have groups")
	}
	parts, err := p.groupParts(pr, m)
	if err != nil {
		return err
	}
	h, err := p.sw.Profiles().AddGroup(pr.info.name)
	if err != nil {
		return recode(err, codes.InvalidArgument)
	}
	g := &group{profile: pr, msg: m, handle: h}
	pr.groups[m.GetGroupId()] = g
	pr.groupMsgs.set(m.GetGroupId(), m)
	p.setParts(g, parts)
	j.add(func() { p.must(p.deleteGroup(nil, pr, pr.groups[m.GetGroupId()])) })
	return nil
}

func (p *pipeline) modifyGroup(j *journal, pr *profileState, g *group, m *p4v1.ActionProfileGroup) error {
	if m.GetMaxSize() != g.msg.GetMaxSize() {
		return pr.failf(codes.InvalidArgument, "group %d: max_size is %d and cannot be changed", m.GetGroupId(), g.msg.GetMaxSize())
	}
	parts, err := p.groupParts(pr, m)
	if err != nil {
		return err
	}
	before := g.msg
	g.msg = m
	pr.groupMsgs.set(m.GetGroupId(), m)
	p.setParts(g, parts)
	j.add(func() { p.must(p.modifyGroup(nil, pr, pr.groups[m.GetGroupId()], before)) })
	return nil
}

func (p *pipeline) deleteGroup(j *journal, pr *profileState, g *group) error {
	if g.uses > 0 {
		return pr.failf(codes.FailedPrecondition, "%d table entries lead to group %d", g.uses, g.msg.GetGroupId())
	}
	p.setParts(g, nil)
	p.must(p.sw.Profiles().DeleteGroup(pr.info.name, g.handle))
	delete(pr.groups, g.msg.GetGroupId())
	pr.groupMsgs.delete(g.msg.GetGroupId())
	j.add(func() { p.must(p.insertGroup(nil, pr, g.msg)) })
	return nil
}

// setParts replaces the members of a group.
func (p *pipeline) setParts(g *group, parts []groupPart) {
	for _, part := range parts {
		part.member.groups++
	}
	for _, part := range g.parts {
		part.member.groups--
	}
	g.parts = parts
	p.activate(g)
}

// groupParts checks the members of a group.
func (p *pipeline) groupParts(pr *profileState, m *p4v1.ActionProfileGroup) ([]groupPart, error) {
	if limit := pr.info.GetMaxGroupSize(); limit > 0 && (m.GetMaxSize() <= 0 || m.GetMaxSize() > limit) || m.GetMaxSize() < 0 {
		return nil, pr.failf(codes.InvalidArgument, "group %d: max_size is %d, want 1 to %d", m.GetGroupId(), m.GetMaxSize(), limit)
	}
	seen := map[uint32]bool{}
	var parts []groupPart
	for _, x := range m.GetMembers() {
		mb := pr.members[x.GetMemberId()]
		switch {
		case seen[x.GetMemberId()]:
			return nil, pr.failf(codes.InvalidArgument, "group %d: member %d occurs twice: give it a weight", m.GetGroupId(), x.GetMemberId())
		case mb == nil:
			return nil, pr.failf(codes.NotFound, "group %d: there is no member %d", m.GetGroupId(), x.GetMemberId())
		}
		seen[x.GetMemberId()] = true
		//lint:ignore SA1019 clients that predate watch_port use watch
		part, err := p.newPart(pr, x.GetWeight(), x.GetWatchPort(), x.GetWatch())
		if err != nil {
			return nil, prefixed(err, "group %d: member %d", m.GetGroupId(), x.GetMemberId())
		}
		part.member = mb
		parts = append(parts, part)
	}
	limit := m.GetMaxSize()
	if size := pr.sizeOf(parts, sumsWeights(pr.info.ActionProfile)); limit > 0 && size > int(limit) {
		return nil, pr.failf(codes.ResourceExhausted, "group %d has size %d, more than its max_size %d", m.GetGroupId(), size, limit)
	}
	return parts, pr.checkWeights(parts)
}

func sumsWeights(p *configv1.ActionProfile) bool { return p.GetSumOfMembers() == nil }

func (pr *profileState) sizeOf(parts []groupPart, weights bool) int {
	if !weights {
		return len(parts)
	}
	sum := 0
	for _, part := range parts {
		sum += part.weight
	}
	return sum
}

func (pr *profileState) checkWeights(parts []groupPart) error {
	sum := 0
	for _, part := range parts {
		if sum += part.weight; sum > maxGroupWeight {
			return pr.failf(codes.ResourceExhausted, "the weights of a group add up to more than %d", maxGroupWeight)
		}
	}
	return nil
}

// newPart checks the weight and the watch port of a member of a group.
func (p *pipeline) newPart(pr *profileState, weight int32, port []byte, watch int32) (groupPart, error) {
	part := groupPart{weight: int(weight)}
	limit := pr.info.GetSumOfMembers().GetMaxMemberWeight()
	switch {
	case pr.info.GetWeightsDisallowed():
		if part.weight = 1; weight != 0 {
			return part, failf(codes.InvalidArgument, "the weight is %d, but the selector allows none", weight)
		}
	case weight <= 0:
		return part, failf(codes.InvalidArgument, "the weight is %d, want a positive one", weight)
	case limit > 0 && weight > limit:
		return part, failf(codes.InvalidArgument, "the weight is %d, more than %d", weight, limit)
	}
	switch {
	case len(port) > 0:
		n, err := parsePort(port)
		if err != nil {
			return part, recode(prefixed(err, "watch_port"), codes.InvalidArgument)
		}
		part.port, part.watch = n, true
	case watch != 0:
		part.port, part.watch = uint32(watch), true
	}
	if part.watch && !p.dev.portExists(part.port) {
		return part, failf(codes.InvalidArgument, "there is no port %d to watch", part.port)
	}
	return part, nil
}

// oneShotTarget creates the group of a one-shot entry. Each of its actions
// becomes a member of its own, even if two are equal.
func (p *pipeline) oneShotTarget(t *tableState, pr *profileState, set *p4v1.ActionProfileActionSet, before *group) (target, error) {
	if len(pr.members) > 0 || len(pr.groups) > 0 {
		return target{}, t.failf(codes.InvalidArgument, "the selector has members or groups and cannot have one-shot entries")
	}
	parts, err := p.oneShotParts(t, pr, set)
	if err != nil {
		return target{}, err
	}
	size := pr.sizeOf(parts, sumsWeights(pr.info.ActionProfile))
	used := pr.oneShotSize
	if before != nil && before.msg == nil {
		used -= before.size
	}
	if limit := pr.info.GetSize(); limit > 0 && int64(used+size) > limit {
		return target{}, pr.failf(codes.ResourceExhausted, "the total size of its one-shot entries would be %d, want at most %d", used+size, limit)
	}
	g := &group{profile: pr, size: size}
	pr.oneShotSize += size
	if g.handle, err = p.sw.Profiles().AddGroup(pr.info.name); err != nil {
		pr.oneShotSize -= size
		return target{}, recode(err, codes.InvalidArgument)
	}
	pr.oneShots[g] = true
	p.setParts(g, parts)
	return target{data: dataplane.Target{Kind: dataplane.TargetGroup, Index: g.handle}, use: use{group: g}}, nil
}

func (p *pipeline) oneShotParts(t *tableState, pr *profileState, set *p4v1.ActionProfileActionSet) ([]groupPart, error) {
	weights, err := oneShotSize(pr, set)
	if err != nil {
		return nil, err
	}
	var parts []groupPart
	for i, x := range set.GetActionProfileActions() {
		call, err := p.entryAction(t.info, x.GetAction(), false)
		if err != nil {
			return nil, prefixed(err, "action %d of the set", i)
		}
		//lint:ignore SA1019 clients that predate watch_port use watch
		part, err := p.newPart(pr, x.GetWeight(), x.GetWatchPort(), x.GetWatch())
		if err != nil {
			return nil, prefixed(err, "action %d of the set", i)
		}
		part.member = &member{call: call}
		parts = append(parts, part)
	}
	if limit := pr.info.GetMaxGroupSize(); limit > 0 && pr.sizeOf(parts, weights) > int(limit) {
		return nil, t.failf(codes.InvalidArgument, "the set has size %d, more than %d", pr.sizeOf(parts, weights), limit)
	}
	return parts, pr.checkWeights(parts)
}

// oneShotSize checks the modes of an action set, and reports whether its size
// is the sum of the weights. Selection always uses the selector's own hash.
func oneShotSize(pr *profileState, set *p4v1.ActionProfileActionSet) (weights bool, err error) {
	if set.GetActionSelectionMode() == p4v1.ActionProfileActionSet_RANDOM {
		return false, pr.failf(codes.Unimplemented, "it selects by hash: random selection is not supported")
	}
	switch set.GetSizeSemantics() {
	case p4v1.ActionProfileActionSet_SUM_OF_WEIGHTS:
		return true, nil
	case p4v1.ActionProfileActionSet_SUM_OF_MEMBERS:
		return false, nil
	}
	return sumsWeights(pr.info.ActionProfile), nil
}

// occupied calls f while g has at least one member. The data plane rejects
// entries that refer to an empty group, but P4Runtime allows them, for example
// if all watched ports are down. If necessary, g gets a placeholder member
// during f. No packet sees it, because writes block packets.
func (p *pipeline) occupied(g *group, f func() error) error {
	if g == nil || len(g.active) > 0 {
		return f()
	}
	name := g.profile.info.name
	h, err := p.sw.Profiles().AddMember(name, p.anyAction(g.profile))
	if err != nil {
		return err
	}
	p.must(p.sw.Profiles().AddToGroup(name, g.handle, h))
	err = f()
	p.must(p.sw.Profiles().RemoveFromGroup(name, g.handle, h))
	p.must(p.sw.Profiles().DeleteMember(name, h))
	return err
}

// anyAction returns a call of an arbitrary action of a profile.
func (p *pipeline) anyAction(pr *profileState) dataplane.ActionCall {
	var call dataplane.ActionCall
	for id := range pr.info.actions {
		call.Name = p.info.actions[id].name
		for range p.info.actions[id].params {
			call.Params = append(call.Params, []byte{0})
		}
		break
	}
	return call
}

// dropOneShot removes the group and the members of a one-shot entry.
func (p *pipeline) dropOneShot(g *group) {
	members := g.parts
	p.setParts(g, nil)
	p.must(p.sw.Profiles().DeleteGroup(g.profile.info.name, g.handle))
	for _, part := range members {
		p.freeMember(g.profile, part.member)
	}
	delete(g.profile.oneShots, g)
	g.profile.oneShotSize -= g.size
}
