package p4rt

import (
	configv1 "github.com/p4lang/p4runtime/go/p4/config/v1"
	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc/codes"

	"github.com/p4lb/p4lb/internal/dataplane"
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
// number.
func (v *valueSetInfo) members(list []*p4v1.ValueSetMember) ([][]byte, error) {
	kinds := make([]dataplane.MatchKind, len(v.fields))
	width := 0
	for i, f := range v.fields {
		if f.match != configv1.MatchField_EXACT && len(list) > 0 {
			return nil, failf(codes.Unimplemented, "%s is matched as %v: this target matches the members of value sets exactly", f.name, f.match)
		}
		kinds[i] = dataplane.MatchExact
		width += f.width
	}
	seen := map[string]bool{}
	var numbers [][]byte
	for _, m := range list {
		k, err := parseKey(v.fields, kinds, m.GetMatch(), 0)
		if err != nil {
			return nil, err
		}
		if seen[k.id] {
			return nil, failf(codes.AlreadyExists, "a member occurs twice")
		}
		seen[k.id] = true
		numbers = append(numbers, v.number(k, width))
	}
	return numbers, nil
}

// number packs a member into the low bits of a byte string.
func (v *valueSetInfo) number(k key, width int) []byte {
	b := make([]byte, (width+7)/8)
	at := 8*len(b) - width
	for i, f := range v.fields {
		putBits(b, at, f.width, k.match[i].Value)
		at += f.width
	}
	return b
}
