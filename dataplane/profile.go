package dataplane

import (
	"slices"

	"github.com/p4lb/p4lb/bmv2"
	"github.com/p4lb/p4lb/dataplane/hash"
	"github.com/p4lb/p4lb/dataplane/vector"
)

// A profile is an action profile: members are calls that entries share,
// groups are sets of members of which a selector picks one per packet.
type profile struct {
	name    string
	size    int
	members []profileMember
	groups  []profileGroup
	hm, hg  handles
	actions []*action

	selects bool
	inputs  []hash.Input
	algo    hash.Hasher
	buf     []byte
}

type profileMember struct {
	used bool
	uses int // entries and groups that refer to it
	call call
}

type profileGroup struct {
	used    bool
	uses    int
	members []Handle // ascending: BMv2 picks the n-th by handle
}

// most is how many members a profile has at most, and how many groups. BMv2 goes
// beyond the size that the program names, but not without end here.
func (pr *profile) most() int { return max(pr.size, 1<<16) }

func (l *linker) profile(c *bmv2.ActionProfile) (*profile, error) {
	pr := &profile{name: c.Name, size: c.MaxSize}
	if c.Selector == nil {
		return pr, nil
	}
	pr.selects = true
	var err error
	if pr.algo, err = hash.New(c.Selector.Algo); err != nil {
		return nil, err
	}
	pr.inputs, _, err = hash.LinkInputs(l.Linker, c.Selector.Input)
	return pr, err
}

// allow adds the actions of a table to those that members may have.
func (pr *profile) allow(list []*action) {
	for _, a := range list {
		if !slices.Contains(pr.actions, a) {
			pr.actions = append(pr.actions, a)
		}
	}
}

// lookup returns the call of the member that c leads to, or nil.
func (pr *profile) lookup(p *vector.State, c *call) *call {
	if c.target == TargetMember {
		return &pr.members[c.index].call
	}
	g := &pr.groups[c.index]
	if len(g.members) == 0 {
		return nil
	}
	pr.buf = hash.AppendInputs(pr.buf[:0], pr.inputs, p)
	h := uint32(pr.algo.Sum(pr.buf))
	return &pr.members[g.members[int(h)%len(g.members)]].call
}

func (pr *profile) member(h Handle) *profileMember {
	if int(h) < len(pr.members) && pr.members[h].used {
		return &pr.members[h]
	}
	return nil
}

func (pr *profile) group(h Handle) *profileGroup {
	if int(h) < len(pr.groups) && pr.groups[h].used {
		return &pr.groups[h]
	}
	return nil
}

// refer counts the uses of the target of c up or down.
func (pr *profile) refer(c *call, n int) {
	switch c.target {
	case TargetMember:
		pr.members[c.index].uses += n
	case TargetGroup:
		pr.groups[c.index].uses += n
	}
}

// clear removes groups and members that no entry refers to.
func (pr *profile) clear() {
	for h := range pr.groups {
		if g := &pr.groups[h]; g.used && g.uses == 0 {
			for _, m := range g.members {
				pr.members[m].uses--
			}
			*g = profileGroup{}
			pr.hg.release(Handle(h))
		}
	}
	for h := range pr.members {
		if m := &pr.members[h]; m.used && m.uses == 0 {
			*m = profileMember{}
			pr.hm.release(Handle(h))
		}
	}
}
