package controller

import (
	"testing"

	configv1 "github.com/p4lang/p4runtime/go/p4/config/v1"
	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/protobuf/proto"

	"github.com/p4lb/p4lb/internal/controller/p4info"
	"github.com/p4lb/p4lb/internal/controller/plan"
)

// TestTernaryPrefix checks the mask of a ternary match: the bits of a prefix, or the
// given mask. Values have no bits outside it (P4Runtime, section 8.3).
func TestTernaryPrefix(t *testing.T) {
	mask := func(m uint64) *uint64 { return &m }
	six := []byte{0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
	for _, c := range []struct {
		name        string
		width       int
		match       plan.Match
		value, mask []byte // nil: the match is left out
	}{
		{"10.0.1.0/24", 32, plan.Match{Value: 0x0a000100, Bits: 24}, []byte{10, 0, 1, 0}, []byte{255, 255, 255, 0}},
		{"10.0.1.7/24", 32, plan.Match{Value: 0x0a000107, Bits: 24}, []byte{10, 0, 1, 0}, []byte{255, 255, 255, 0}},
		{"one address", 32, plan.Match{Value: 0x0a000107, Bits: 32}, []byte{10, 0, 1, 7}, []byte{255, 255, 255, 255}},
		{"2001:db8::/32", 128, plan.Match{Upper: 0x20010db8_00000000, Bits: 32}, six, []byte{255, 255, 255, 255, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}},
		{"a mask", 8, plan.Match{Value: 0xa5, Bits: 8, Mask: mask(0xf0)}, []byte{0xa0}, []byte{0xf0}},
		{"0.0.0.0/0", 32, plan.Match{}, nil, nil},
	} {
		var want *p4v1.FieldMatch
		if c.mask != nil {
			want = &p4v1.FieldMatch{FieldId: 3, FieldMatchType: &p4v1.FieldMatch_Ternary_{Ternary: &p4v1.FieldMatch_Ternary{Value: c.value, Mask: c.mask}}}
		}
		field := p4info.Field{ID: 3, Width: c.width, Kind: configv1.MatchField_TERNARY}
		if got := encodeMatch(field, c.match, pool{}); !proto.Equal(got, want) {
			t.Errorf("%s: got %v, want %v", c.name, got, want)
		}
	}
}
