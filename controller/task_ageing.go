package controller

import (
	"errors"
	"slices"
	"time"

	"github.com/p4lb/p4lb/fabric"
)

// FlowAges is what a sweep over QDAPS's flows finds: how many still wait for
// their last packet to leave.
type FlowAges struct {
	Time    time.Duration // of the task's clock
	Switch  string
	Slots   int           // that hold a flow
	Waiting int           // whose last packet has not left
	Expired int           // whose last packet left before the sweep, two RTTs ago or more
	Longest time.Duration // that a packet still has to wait
}

// An ageingTask counts QDAPS's flows. Section III-D forgets those that are idle
// for two RTTs; in the data plane a flow whose last packet should be gone is as
// good as new at once, so the sweep has nothing to write: it is telemetry.
type ageingTask struct {
	sw     string
	period time.Duration
	idle   time.Duration
	slots  int
	report func(FlowAges)

	due, held []uint64
}

// leastSweep bounds how often a table of 65,536 flows is read.
const leastSweep = 100 * time.Millisecond

func newAgeingTask(t *fabric.Topology, n *Node, o TaskOptions) (Task, error) {
	r, ok := n.register("fl_D")
	if !ok || !n.has("fl_port") {
		return nil, errors.New("the program lacks one of the registers fl_D and fl_port")
	}
	idle := 2 * largestRTT(t, n)
	return &ageingTask{sw: n.Name, period: max(leastSweep, idle), idle: idle, slots: r.Size, report: o.Ageing}, nil
}

// Name is the task's.
func (t *ageingTask) Name() string { return "ageing" }

// Switch is the switch that holds the flows.
func (t *ageingTask) Switch() string { return t.sw }

// Run counts the flows.
func (t *ageingTask) Run(now time.Duration, f Fabric) (time.Duration, error) {
	next := now + t.period
	var err error
	if t.due, err = f.ReadRegister(t.sw, "fl_D", 0, t.slots, slices.Grow(t.due[:0], t.slots)); err != nil {
		return next, err
	}
	if t.held, err = f.ReadRegister(t.sw, "fl_port", 0, t.slots, slices.Grow(t.held[:0], t.slots)); err != nil {
		return next, err
	}
	clock, err := f.Clock(t.sw)
	if err != nil {
		return next, err
	}
	ages := FlowAges{Time: now, Switch: t.sw}
	for i, d := range t.due {
		if t.held[i]>>15&1 == 0 {
			continue
		}
		ages.Slots++
		switch left := time.Duration(d)*time.Microsecond - clock; {
		case left > 0:
			ages.Waiting++
			ages.Longest = max(ages.Longest, left)
		case -left >= t.idle:
			ages.Expired++
		}
	}
	t.report(ages)
	return next, nil
}
