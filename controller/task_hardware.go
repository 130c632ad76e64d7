package controller

import (
	"errors"
	"slices"
	"time"
)

// A restartTask is RLB's rezero on hardware, where a queue is what came in less
// what has gone, as reported: both begin anew while the switch holds no packet.
// What found an egress queue full was counted in and never out, and what left
// last may not be reported.
type restartTask struct {
	sw     string
	period time.Duration
	cells  int

	counts [3][]uint64 // of restarted, now
	before [3][]uint64 // and the last time
	seen   bool
}

// restarted are the registers: what came in, what is known to have gone, what
// has gone.
var restarted = [3]string{"ig_in", "ig_out", "eg_out"}

func newRestartTask(n *Node) (Task, error) {
	t := &restartTask{sw: n.Name, period: n.period("hold"), cells: portCells(n)}
	switch {
	case !n.has(restarted[:]...):
		return nil, errors.New("the program lacks one of the registers ig_in, ig_out and eg_out")
	case t.period <= 0:
		return nil, errors.New("the program has no parameter hold")
	}
	return t, nil
}

// Name is the task's in manifests.
func (t *restartTask) Name() string { return "rezero" }

// Switch is the switch that counts.
func (t *restartTask) Switch() string { return t.sw }

// Run clears the counts of ports whose queue is not 0.
func (t *restartTask) Run(now time.Duration, f Fabric) (time.Duration, error) {
	next := now + t.period
	for i, name := range restarted {
		var err error
		if t.counts[i], err = f.ReadRegister(t.sw, name, 0, t.cells, t.counts[i][:0]); err != nil {
			return next, err
		}
	}
	quiet, err := t.quiet(f)
	if err != nil || !quiet {
		return next, err
	}
	for port, in := range t.counts[0] {
		if in == t.counts[1][port] {
			continue
		}
		for _, name := range restarted {
			if err := f.WriteRegister(t.sw, name, port, port+1, 0); err != nil {
				return next, err
			}
		}
	}
	return next, nil
}

// quiet reports whether no packet is in the switch. One that does not tell is
// taken to hold none if nothing has moved since the last run.
func (t *restartTask) quiet(f Fabric) (bool, error) {
	empty, err := f.QueuesEmpty(t.sw)
	if !errors.Is(err, errors.ErrUnsupported) {
		return empty, err
	}
	still := t.seen
	for i := range t.counts {
		still = still && slices.Equal(t.counts[i], t.before[i])
		t.before[i] = append(t.before[i][:0], t.counts[i]...)
	}
	t.seen = true
	return still, nil
}

// An expireTask erases HULA's best paths that no probe has told of for too long:
// on hardware a probe cannot see how old what it is compared with is.
type expireTask struct {
	node   *Node
	period time.Duration
	cells  int

	at, best []uint64
}

// noPath is what HULA's register of best paths begins with: a path of no use,
// and none.
const noPath = 0xFFFFFFFF

func newExpireTask(n *Node) (Task, error) {
	t := &expireTask{node: n, period: n.period("tfail")}
	switch {
	case !n.has("upd", "best"):
		return nil, errors.New("the program lacks one of the registers upd and best")
	case t.period <= 0:
		return nil, errors.New("the program has no parameter tfail")
	}
	for _, g := range n.Groups {
		t.cells = max(t.cells, g.ID+1)
	}
	return t, nil
}

// Name is the task's in manifests.
func (t *expireTask) Name() string { return "expire" }

// Switch is the switch whose paths are forgotten.
func (t *expireTask) Switch() string { return t.node.Name }

// Run erases what is too old.
func (t *expireTask) Run(now time.Duration, f Fabric) (time.Duration, error) {
	next := now + t.period
	var err error
	if t.at, err = f.ReadRegister(t.node.Name, "upd", 0, t.cells, t.at[:0]); err != nil {
		return next, err
	}
	if t.best, err = f.ReadRegister(t.node.Name, "best", 0, t.cells, t.best[:0]); err != nil {
		return next, err
	}
	clock, err := clockOr(f, t.node.Name, t.at)
	if err != nil {
		return next, err
	}
	t.node.inMicros("upd", t.at, clock)
	for group, at := range t.at {
		if at == 0 || t.best[group] == noPath || clock-micros(at) <= t.period {
			continue
		}
		if err := f.WriteRegister(t.node.Name, "best", group, group+1, noPath); err != nil {
			return next, err
		}
	}
	return next, nil
}
