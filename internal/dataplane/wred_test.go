package dataplane

import (
	"math"
	"testing"
	"time"

	"github.com/p4lb/p4lb/internal/bmv2"
)

// Nothing is dropped up to the minimum, everything from the maximum, and in
// between a share that grows with the average.
func TestWred(t *testing.T) {
	s := pipeProgram{
		filters: []*bmv2.FilterArray{{Name: "w", Size: 4, Bitwidth: 16, Wred: true}, {Name: "f", ID: 1, Size: 4, Bitwidth: 16}},
		ingress: prims(set(toPort3, 3), do("wred_execute", "ig_h.c", bmv2.Ref(bmv2.TypeFilterArray, "w"), "ig_h.c", "ig_h.a")),
	}.start(t, Options{})
	e := NewEngine(s)
	if got := filtered(t, e, 0, 0xffff, time.Second); got != 0 {
		t.Errorf("one that is not set gives %d", got)
	}
	must(t, s.Filters().SetWred("w", 0, WredSpec{Time: time.Microsecond, Min: 1000, Max: 2000, Probability: 0.4}))
	now := time.Second
	for _, c := range []struct {
		value uint16
		share float64
	}{{1000, 0}, {1500, 0.2}, {1999, 0.3996}, {2000, 1}, {3000, 1}} {
		const packets = 20000
		dropped := 0
		for range packets {
			now += time.Millisecond // the average is the value
			dropped += filtered(t, e, 0, c.value, now)
		}
		if got := float64(dropped) / packets; math.Abs(got-c.share) > 0.02 || c.share == 0 && got != 0 || c.share == 1 && got != 1 {
			t.Errorf("at %d a share of %v is dropped, want %v", c.value, got, c.share)
		}
	}
	for _, spec := range []WredSpec{{Time: -1}, {Min: 2, Max: 1}, {Probability: 1.1}, {Probability: math.NaN()}} {
		if s.Filters().SetWred("w", 0, spec) == nil {
			t.Errorf("%+v is accepted", spec)
		}
	}
	if s.Filters().SetWred("f", 0, WredSpec{}) == nil || s.Filters().Set("w", 0, FilterSpec{}) == nil || s.Filters().SetWred("w", 4, WredSpec{}) == nil {
		t.Error("a filter and a detection are taken for each other")
	}
	if spec, ok, err := s.wredSpec("w", 0); err != nil || !ok || spec.Max != 2000 {
		t.Errorf("%+v, %v, %v", spec, ok, err)
	}
}
