package controller_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/p4lb/p4lb/internal/bmv2"
	"github.com/p4lb/p4lb/internal/controller/inspect"
	"github.com/p4lb/p4lb/internal/controller/plan"
	"github.com/p4lb/p4lb/internal/controller/registers"
)

// metered is a switch with port counters.
type metered struct {
	registers.Access
	sent map[int]uint64
}

func (m metered) PortCounts(context.Context) (list []bmv2.PortCounts, err error) {
	for port, bytes := range m.sent {
		list = append(list, bmv2.PortCounts{Port: port, OutBytes: bytes})
	}
	return list, nil
}

// TestObserver: rows are in the paper's units and contain the traffic between two
// samples, for reported ports to other switches only.
func TestObserver(t *testing.T) {
	n := newVirtualNet(t, leafSpine(t, 0), "qall-pkt", nil)
	node := n.plan.Nodes()[0]
	regs := metered{n.registers("l1"), map[int]uint64{1: 1e9, 3: 1000, 4: 0}}
	o, err := inspect.NewObserver(node, regs)
	if err != nil {
		t.Fatal(err)
	}
	sample := func() []inspect.Observation {
		t.Helper()
		list, err := o.Sample(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
	for port := range 7 {
		n.write("l1", "q_upd", port, 1)
	}
	if list := sample(); len(list) != 0 {
		t.Errorf("the first sample has rows: %v", list)
	}
	n.now += 10 * ms
	regs.sent[3], regs.sent[4], regs.sent[1] = 51000, 500, 2e9
	for _, port := range []int{1, 3} { // port 4 has not been reported
		n.write("l1", "q_upd", port, 2)
		n.write("l1", "q_L", port, 51)
		n.write("l1", "q_T", port, 240)
	}
	want := []inspect.Observation{{ClockUS: n.now.Microseconds(), Switch: "l1", Port: 3, Traffic: 40000, Queue: 20, Interval: 240}}
	if diff := cmp.Diff(want, sample()); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
}

// TestObserverRefuses: errors name the missing value and a remedy.
func TestObserverRefuses(t *testing.T) {
	n := newVirtualNet(t, leafSpine(t, 0), "ecmp", nil)
	_, err := inspect.NewObserver(n.plan.Nodes()[0], n.registers("l1"))
	var known *plan.Error
	if !errors.As(err, &known) || !strings.Contains(err.Error(), "ecmp does not measure occupancy") || !strings.Contains(known.Hint, "qall-pkt") {
		t.Errorf("error %v", err)
	}
	n = newVirtualNet(t, leafSpine(t, 0), "qall-pkt", nil)
	o, err := inspect.NewObserver(n.plan.Nodes()[0], n.registers("l1"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err = o.Sample(t.Context(), nil); !errors.As(err, &known) || !strings.Contains(err.Error(), "counts what ports send") {
		t.Errorf("error %v", err)
	}
}
