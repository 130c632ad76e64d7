package tofino

import (
	"fmt"
	"testing"
	"time"

	"github.com/p4lb/p4lb/internal/bfrt"
	"github.com/p4lb/p4lb/internal/bfrt/wire"
	"github.com/p4lb/p4lb/internal/controller/plan"
	"github.com/p4lb/p4lb/internal/network/fabric"
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

// A new port gets the configuration of the topology, and a read port has it, also under
// the older names of a FEC.
func TestSignal(t *testing.T) {
	want := fabric.Signal{FEC: "rs", AutoNeg: "off", Lanes: 4}
	got := fmt.Sprint(portFields(100e9, want))
	if got != "[$SPEED BF_SPEED_100G $FEC BF_FEC_TYP_REED_SOLOMON $AUTO_NEGOTIATION PM_AN_FORCE_DISABLE $N_LANES 4 $PORT_ENABLE true]" {
		t.Error(got)
	}
	if got := fmt.Sprint(portFields(1e9, fabric.Signal{})); got != "[$SPEED BF_SPEED_1G $FEC BF_FEC_TYP_NONE $PORT_ENABLE true]" {
		t.Error(got)
	}
	text := func(s string) *wire.DataField { return &wire.DataField{Value: &wire.DataField_StrVal{StrVal: s}} }
	port := row{"$FEC": text("BF_FEC_TYP_RS"), "$AUTO_NEGOTIATION": text("PM_AN_FORCE_DISABLE"), "$N_LANES": {Value: &wire.DataField_Stream{Stream: []byte{0, 0, 0, 4}}}}
	have := signalOf(port)
	if have != want {
		t.Errorf("%+v, want %+v", have, want)
	}
	q := plan.Queue{Port: 4, Rate: 1, Depth: 2, Signal: have}
	for _, c := range []struct {
		want fabric.Signal
		has  bool
	}{
		{fabric.Signal{}, true}, {fabric.Signal{FEC: "rs"}, true}, {want, true},
		{fabric.Signal{FEC: "fc"}, false}, {fabric.Signal{AutoNeg: "on"}, false}, {fabric.Signal{Lanes: 2}, false},
	} {
		if q.Has(plan.Queue{Port: 4, Rate: 1, Depth: 2, Signal: c.want}) != c.has {
			t.Errorf("%+v has %+v: want %t", have, c.want, c.has)
		}
	}
	if unknown := (plan.Queue{Port: 4}); !unknown.Has(plan.Queue{Port: 4, Signal: want}) {
		t.Error("a target without electrical configuration lacks one")
	}
}

// TestTableNamed: names in P4Info have no pipe, unless the pipes run different programs.
func TestTableNamed(t *testing.T) {
	s := &bfrt.Schema{Tables: []*bfrt.Table{{Name: "pipe0.I.t"}, {Name: "pipe1.I.t"}, {Name: "pipe1.I.u"}}}
	for name, want := range map[string]string{"I.t": "pipe0.I.t", "pipe0.I.t": "pipe0.I.t", "pipe1.I.t": "pipe1.I.t", "I.u": "pipe1.I.u", "pipe0.I.u": "", "u": ""} {
		got := ""
		if table := tableNamed(s, name); table != nil {
			got = table.Name
		}
		if got != want {
			t.Errorf("%s: table %q, want %q", name, got, want)
		}
	}
}
