package task

import (
	"slices"
	"time"

	"github.com/p4lb/p4lb/internal/controller/registers"
	"github.com/p4lb/p4lb/internal/scheme/manifest"
)

// FlowAges is the result of a sweep over QDAPS's flows.
type FlowAges struct {
	Time    time.Duration // time by the task's clock
	Switch  string
	Slots   int           // slots that hold a flow
	Waiting int           // flows whose last packet has not left
	Expired int           // flows whose last packet left at least two RTTs before the sweep
	Longest time.Duration // longest time until a flow's last packet leaves
}

// An ageingTask counts QDAPS's flows. The paper (Section III-D) deletes flows that
// are idle for two RTTs. The data plane already treats a flow as new when the
// flow's last packet has left. The task therefore writes nothing and only reports
// counts.
type ageingTask struct {
	identity
	period   time.Duration
	idle     time.Duration
	deadline *registers.Array // time at which each flow's last packet leaves
	slot     *registers.Array // path of each flow
	report   func(FlowAges)

	due, held []uint64
}

// leastSweep is the shortest interval between reads of a table of 65,536 flows.
const leastSweep = 100 * time.Millisecond

func newAgeingTask(s *site) (Task, error) {
	idle := 2 * largestRTT(s.topology, s.Node)
	return &ageingTask{
		identity: s.identity(), period: max(leastSweep, idle), idle: idle, report: s.options.Ageing,
		deadline: s.array(manifest.PartDeadline), slot: s.array(manifest.PartSlot),
	}, nil
}

// Run counts the flows.
func (t *ageingTask) Run(now time.Duration, f Fabric) (time.Duration, error) {
	next := now + t.period
	clock, err := f.Clock(t.sw)
	if err != nil {
		return next, err
	}
	n := t.deadline.Size
	if t.due, err = t.deadline.Read(f, t.sw, 0, n, clock, slices.Grow(t.due[:0], n)); err != nil {
		return next, err
	}
	if t.held, err = t.slot.Read(f, t.sw, 0, n, clock, slices.Grow(t.held[:0], n)); err != nil {
		return next, err
	}
	ages := FlowAges{Time: now, Switch: t.sw}
	for i, d := range t.due {
		if v := t.slot.Valid; v > 0 && t.held[i]>>v&1 == 0 || v == 0 && d == 0 {
			continue
		}
		ages.Slots++
		switch left := registers.Micros(d) - clock; {
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
