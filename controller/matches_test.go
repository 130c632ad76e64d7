package controller

import (
	"fmt"
	"testing"

	configv1 "github.com/p4lang/p4runtime/go/p4/config/v1"
	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"

	"github.com/p4lb/p4lb/internal/controller/p4info"
	"github.com/p4lb/p4lb/internal/controller/plan"
)

// TestEncodeMatch writes matches of each kind in P4Runtime's canonical form, and leaves
// out matches of everything.
func TestEncodeMatch(t *testing.T) {
	v := func(x uint64) *uint64 { return &x }
	const exact, lpm, ternary, ranged, optional = configv1.MatchField_EXACT, configv1.MatchField_LPM, configv1.MatchField_TERNARY, configv1.MatchField_RANGE, configv1.MatchField_OPTIONAL
	for _, c := range []struct {
		kind  configv1.MatchField_MatchType
		width int
		m     plan.Match
		want  string
	}{
		{exact, 16, plan.Match{Value: 0x102}, "0102"},
		{exact, 16, plan.Match{}, "00"},
		{exact, 128, plan.Match{Value: 2, Upper: 1}, "010000000000000002"},
		{lpm, 32, plan.Match{Value: 0x0a000000, Bits: 8}, "0a000000/8"},
		{lpm, 32, plan.Match{Value: 5}, "none"},
		{lpm, 128, plan.Match{Value: 2, Upper: 1, Bits: 120}, "010000000000000002/120"},
		{optional, 128, plan.Match{Value: 2, Upper: 1}, "010000000000000002"},
		{ternary, 16, plan.Match{Value: 0x1234, Bits: 8}, "1200&ff00"},
		{ternary, 16, plan.Match{Value: 0x1234, Bits: 16, Mask: v(0x0f)}, "04&0f"},
		{ternary, 16, plan.Match{Value: 0x1234, Bits: 16, Mask: v(0)}, "none"},
		{ternary, 16, plan.Match{Value: 0x1234}, "none"},
		{ternary, 16, plan.Match{Value: 0x1234, Bits: 16, Any: true}, "none"},
		{ranged, 16, plan.Match{Value: 5, High: v(300)}, "05-012c"},
		{ranged, 16, plan.Match{Value: 5}, "05-05"},
		{ranged, 16, plan.Match{High: v(0xffff)}, "none"},
		{ranged, 16, plan.Match{High: v(0xfffe)}, "00-fffe"},
		{ranged, 16, plan.Match{Value: 1, High: v(0xffff)}, "01-ffff"},
		{ranged, 64, plan.Match{High: v(1<<64 - 1)}, "none"},
		{ranged, 128, plan.Match{High: v(1<<64 - 1)}, "00-ffffffffffffffff"},
		{optional, 16, plan.Match{Value: 5}, "05"},
		{optional, 16, plan.Match{Value: 5, Any: true}, "none"},
	} {
		got := "none"
		if m := encodeMatch(p4info.Field{ID: 7, Kind: c.kind, Width: c.width}, c.m, pool{}); m != nil {
			switch x := m.FieldMatchType.(type) {
			case *p4v1.FieldMatch_Exact_:
				got = fmt.Sprintf("%x", x.Exact.Value)
			case *p4v1.FieldMatch_Lpm:
				got = fmt.Sprintf("%x/%d", x.Lpm.Value, x.Lpm.PrefixLen)
			case *p4v1.FieldMatch_Ternary_:
				got = fmt.Sprintf("%x&%x", x.Ternary.Value, x.Ternary.Mask)
			case *p4v1.FieldMatch_Range_:
				got = fmt.Sprintf("%x-%x", x.Range.Low, x.Range.High)
			case *p4v1.FieldMatch_Optional_:
				got = fmt.Sprintf("%x", x.Optional.Value)
			}
			if m.FieldId != 7 {
				t.Errorf("%v: field %d", c.kind, m.FieldId)
			}
		}
		if got != c.want {
			t.Errorf("%v of %d bits, %+v: %s, want %s", c.kind, c.width, c.m, got, c.want)
		}
	}
}
