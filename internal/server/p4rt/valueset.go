package p4rt

import (
	configv1 "github.com/p4lang/p4runtime/go/p4/config/v1"
	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc/codes"

	"github.com/p4lb/p4lb/internal/dataplane"
	"github.com/p4lb/p4lb/internal/dataplane/num"
)

func (p *pipeline) writeValueSet(j *journal, typ p4v1.Update_Type, m *p4v1.ValueSetEntry) error {
	v := p.info.valueSets[m.GetValueSetId()]
	if v == nil {
		return failf(codes.InvalidArgument, "there is no value set %#x", m.GetValueSetId())
	}
	if err := onlyModify(typ, "a value set"); err != nil {
		return err
	}
	if v.size > 0 && len(m.GetMembers()) > v.size {
		return failf(codes.ResourceExhausted, "value set %s has room for %d members, not %d", v.name, v.size, len(m.GetMembers()))
	}
	members, err := v.members(m.GetMembers())
	if err != nil {
		return prefixed(err, "value set %s", v.name)
	}
	if err := p.sw.ValueSets().Set(v.name, members); err != nil {
		return recode(err, codes.InvalidArgument)
	}
	before := &p4v1.ValueSetEntry{ValueSetId: m.GetValueSetId(), Members: p.valueSets[m.GetValueSetId()]}
	p.valueSets[m.GetValueSetId()] = m.GetMembers()
	j.add(func() { p.must(p.writeValueSet(nil, p4v1.Update_MODIFY, before)) })
	return nil
}

// members checks the members of a set and packs the fields of each into one
// number and their masks into another one.
func (v *valueSetInfo) members(list []*p4v1.ValueSetMember) ([]dataplane.SetMember, error) {
	kinds := make([]dataplane.MatchKind, len(v.fields))
	width := 0
	for i, f := range v.fields {
		switch f.match {
		case configv1.MatchField_EXACT:
			kinds[i] = dataplane.MatchExact
		case configv1.MatchField_LPM:
			kinds[i] = dataplane.MatchLPM
		case configv1.MatchField_TERNARY, configv1.MatchField_OPTIONAL:
			kinds[i] = dataplane.MatchTernary
		default:
			if len(list) > 0 {
				return nil, failf(codes.Unimplemented, "%s is matched as %v: value sets support exact, lpm, ternary and optional", f.name, f.match)
			}
		}
		width += f.width
	}
	seen := map[string]bool{}
	var members []dataplane.SetMember
	for _, m := range list {
		k, err := parseKey(v.fields, kinds, m.GetMatch(), 0)
		if err != nil {
			return nil, err
		}
		if seen[k.id] {
			return nil, failf(codes.AlreadyExists, "a member occurs twice")
		}
		seen[k.id] = true
		members = append(members, v.member(k, width))
	}
	return members, nil
}

// member packs the fields of a member into the low bits of byte strings.
func (v *valueSetInfo) member(k key, width int) dataplane.SetMember {
	n := (width + 7) / 8
	m := dataplane.SetMember{Value: make([]byte, n), Mask: make([]byte, n)}
	at := 8*n - width
	for i, f := range v.fields {
		mask := ones(f.width)
		switch f.match {
		case configv1.MatchField_LPM:
			num.ClearLow(mask, f.width-k.match[i].PrefixLen)
		case configv1.MatchField_TERNARY, configv1.MatchField_OPTIONAL:
			mask = k.match[i].Mask
		}
		putBits(m.Value, at, f.width, k.match[i].Value)
		putBits(m.Mask, at, f.width, mask)
		at += f.width
	}
	return m
}
