package program

import (
	"github.com/p4lb/p4lb/internal/bmv2"
	"github.com/p4lb/p4lb/internal/dataplane/hash"
	"github.com/p4lb/p4lb/internal/dataplane/vector"
)

// A Profile is an action profile: members are calls that entries share; groups
// are sets of members, from which a selector picks one per packet.
type Profile struct {
	name                        string
	size                        int
	Members                     []ProfileMember
	Groups                      []ProfileGroup
	MemberHandles, GroupHandles Handles
	Actions                     []*action

	Selects bool
	inputs  []hash.Input
	algo    hash.Hasher
	mixes   bool // the hash is made non-linear
	buf     []byte
}

// A ProfileMember is a call that entries share.
type ProfileMember struct {
	Used bool
	Uses int // number of entries and groups that refer to it
	Call Call
}

// A ProfileGroup is a set of members.
type ProfileGroup struct {
	Used    bool
	Uses    int
	Members []Handle // ascending: BMv2 picks the n-th by handle
}

// Most returns the largest number of members and of groups. BMv2 exceeds the
// size in the program without a limit; here the limit is at least 65,536.
func (pr *Profile) Most() int { return max(pr.size, 1<<16) }

func (l *Linker) profile(c *bmv2.ActionProfile) (*Profile, error) {
	pr := &Profile{name: c.Name, size: c.MaxSize}
	if c.Selector == nil {
		return pr, nil
	}
	pr.Selects, pr.mixes = true, c.Selector.Scramble
	var err error
	if pr.algo, err = hash.New(c.Selector.Algo); err != nil {
		return nil, err
	}
	pr.inputs, _, err = hash.LinkInputs(l.Linker, c.Selector.Input)
	return pr, err
}

// lookup returns the call of the member that c refers to, or nil.
func (pr *Profile) lookup(p *vector.State, c *Call) *Call {
	if c.target == TargetMember {
		return &pr.Members[c.index].Call
	}
	g := &pr.Groups[c.index]
	if len(g.Members) == 0 {
		return nil
	}
	pr.buf = hash.AppendInputs(pr.buf[:0], pr.inputs, p)
	h := uint32(pr.algo.Sum(pr.buf))
	if pr.mixes {
		h = mix(h)
	}
	return &pr.Members[g.Members[int(h)%len(g.Members)]].Call
}

// mix is a non-linear permutation, the last step of MurmurHash3. A CRC alone is linear: flows whose
// fields differ in the same bits get the same differences, and often the same member. The function
// of the hardware is not public.
func mix(h uint32) uint32 {
	h = (h ^ h>>16) * 0x85ebca6b
	h = (h ^ h>>13) * 0xc2b2ae35
	return h ^ h>>16
}

// Member returns the member with a handle, or nil.
func (pr *Profile) Member(h Handle) *ProfileMember {
	if int(h) < len(pr.Members) && pr.Members[h].Used {
		return &pr.Members[h]
	}
	return nil
}

// Group returns the group with a handle, or nil.
func (pr *Profile) Group(h Handle) *ProfileGroup {
	if int(h) < len(pr.Groups) && pr.Groups[h].Used {
		return &pr.Groups[h]
	}
	return nil
}

// Refer adds n to the uses of the target of c.
func (pr *Profile) Refer(c *Call, n int) {
	switch c.target {
	case TargetMember:
		pr.Members[c.index].Uses += n
	case TargetGroup:
		pr.Groups[c.index].Uses += n
	}
}

// Clear removes all groups and members that no entry uses.
func (pr *Profile) Clear() {
	for h := range pr.Groups {
		if g := &pr.Groups[h]; g.Used && g.Uses == 0 {
			for _, m := range g.Members {
				pr.Members[m].Uses--
			}
			*g = ProfileGroup{}
			pr.GroupHandles.Release(Handle(h))
		}
	}
	for h := range pr.Members {
		if m := &pr.Members[h]; m.Used && m.Uses == 0 {
			*m = ProfileMember{}
			pr.MemberHandles.Release(Handle(h))
		}
	}
}
