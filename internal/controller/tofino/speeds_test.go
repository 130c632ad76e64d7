package tofino

import (
	"testing"
	"time"

	"github.com/p4lb/p4lb/internal/controller/plan"
)

// A port gets the lowest speed that carries the rate, or the highest.
func TestSpeed(t *testing.T) {
	for bits, want := range map[uint64]string{
		0: "BF_SPEED_1G", 1e9: "BF_SPEED_1G", 1e9 + 1: "BF_SPEED_10G", 10e9: "BF_SPEED_10G", 20e9: "BF_SPEED_25G", 25e9 + 1: "BF_SPEED_40G", 45e9: "BF_SPEED_50G",
		100e9: "BF_SPEED_100G", 100e9 + 1: "BF_SPEED_200G", 400e9: "BF_SPEED_400G", 800e9: "BF_SPEED_400G",
	} {
		if got := speed(bits); got != want {
			t.Errorf("%d bit/s: %s, want %s", bits, got, want)
		}
	}
}

// The time of a filter is the plan's if both are equal in the 24 bits of a float.
func TestExactly(t *testing.T) {
	const planned = 1<<25 + 1 // a float has 1<<25
	p := &place{plan: &plan.Switch{Filters: []plan.Filter{{Name: "f", Time: planned}}}}
	for _, test := range []struct {
		have plan.Filter
		want time.Duration
	}{
		{plan.Filter{Name: "f", Time: 1 << 25}, planned}, {plan.Filter{Name: "f", Time: 1<<25 + 8}, 1<<25 + 8}, {plan.Filter{Name: "g", Time: 1 << 25}, 1 << 25},
	} {
		if got := p.exactly(test.have); got.Time != test.want {
			t.Errorf("%+v: %d, want %d", test.have, got.Time, test.want)
		}
	}
	if got := (&place{}).exactly(plan.Filter{Time: 5}); got.Time != 5 {
		t.Errorf("without a plan: %d", got.Time)
	}
}
