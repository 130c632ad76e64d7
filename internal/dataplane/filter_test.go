package dataplane

import (
	"math"
	"testing"
	"time"

	"github.com/p4lb/p4lb/internal/bmv2"
)

// lowPass is a program whose filters replace the header field c by their
// result, at the index a.
func lowPass(t *testing.T) *Switch {
	return pipeProgram{
		filters: []*bmv2.FilterArray{{Name: "f", Size: 4, Bitwidth: 16}},
		ingress: prims(set(toPort3, 3), do("filter_execute", "ig_h.c", bmv2.Ref(bmv2.TypeFilterArray, "f"), "ig_h.c", "ig_h.a")),
	}.start(t, Options{})
}

func filtered(t *testing.T, e *Engine, index byte, x uint16, now time.Duration) int {
	t.Helper()
	out := e.Process(1, []byte{index, 0, byte(x >> 8), byte(x)}, now)
	if len(out) != 1 {
		t.Fatal("packet lost")
	}
	return int(out[0].Data[2])<<8 | int(out[0].Data[3])
}

// A rate settles at the packets per time constant, and decays by 1/e in one
// time constant.
func TestFilterRate(t *testing.T) {
	s := lowPass(t)
	must(t, s.Filters().Set("f", 1, FilterSpec{Rate: true, Gain: time.Millisecond, Shift: 3}))
	e := NewEngine(s)
	now, got := time.Second, 0
	for range 20000 {
		now += time.Microsecond
		got = filtered(t, e, 1, 16, now)
	}
	if want := 16 * 1000 / 8; math.Abs(float64(got-want)) > 2 {
		t.Errorf("settled at %d, want %d", got, want)
	}
	now += time.Millisecond
	if got, want := filtered(t, e, 1, 0, now), int(math.Floor(2000/math.E)); got < want || got > want+1 {
		t.Errorf("after a pause %d, want %d", got, want)
	}
	if got := filtered(t, e, 2, 77, now); got != 0 {
		t.Errorf("a filter that is not set gives %d", got)
	}
	if got := filtered(t, e, 9, 77, now); got != 0 {
		t.Errorf("a filter that is not there gives %d", got)
	}
}

// A sample rises with one time constant and falls with the other.
func TestFilterSample(t *testing.T) {
	s := lowPass(t)
	must(t, s.Filters().Set("f", 0, FilterSpec{Gain: time.Millisecond, Decay: 4 * time.Millisecond}))
	e := NewEngine(s)
	filtered(t, e, 0, 0, time.Second)
	up := filtered(t, e, 0, 1000, time.Second+time.Millisecond)
	down := filtered(t, e, 0, 0, time.Second+2*time.Millisecond)
	if want := int(math.Floor(1000 * (1 - 1/math.E))); up != want {
		t.Errorf("up to %d, want %d", up, want)
	}
	if want := int(1000 * (1 - 1/math.E) * math.Exp(-0.25)); down != want {
		t.Errorf("down to %d, want %d", down, want)
	}
	if v, err := s.filterValue("f", 0); err != nil || int(v) != down {
		t.Errorf("it is said to be %d, %v", v, err)
	}
}

func TestFilterLimits(t *testing.T) {
	s := lowPass(t)
	must(t, s.Filters().Set("f", 3, FilterSpec{Rate: true, Gain: time.Hour}))
	e := NewEngine(s)
	filtered(t, e, 3, 0xffff, time.Second)
	if got := filtered(t, e, 3, 2, time.Second); got != 0xffff {
		t.Errorf("beyond 16 bits: %d", got)
	}
	for _, spec := range []FilterSpec{{Gain: -1}, {Decay: -1}, {Shift: 32}, {Shift: -1}} {
		if s.Filters().Set("f", 0, spec) == nil {
			t.Errorf("%+v is accepted", spec)
		}
	}
	if s.Filters().Set("f", 4, FilterSpec{}) == nil || s.Filters().Set("g", 0, FilterSpec{}) == nil {
		t.Error("cell 4 of 4, or an unknown array, is accepted")
	}
	if spec, ok, err := s.Filters().Spec("f", 3); err != nil || !ok || spec.Gain != time.Hour {
		t.Errorf("%+v, %v, %v", spec, ok, err)
	}
	if _, ok, err := s.Filters().Spec("f", 0); err != nil || ok {
		t.Errorf("a filter that is not set: %v, %v", ok, err)
	}
	if size, width, err := s.Filters().Info("f"); err != nil || size != 4 || width != 16 {
		t.Errorf("%d filters of %d bits, %v", size, width, err)
	}
}
