package task

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/p4lb/p4lb/internal/controller/plan"
	"github.com/p4lb/p4lb/internal/controller/registers"
	"github.com/p4lb/p4lb/internal/scheme/manifest"
)

// A restartTask implements RLB's rezero on hardware, where a queue is the number of
// arrived minus reported departed packets. It resets both while the switch contains no
// packets, because packets dropped at a full egress queue are never counted out, and
// the last departures may be unreported.
type restartTask struct {
	identity
	period  time.Duration
	cells   int
	arrays  [3]*registers.Array // registers of arrived, reported departed, and departed packets
	counts  [3][]uint64         // their values now
	before  [3][]uint64         // their values in the last run
	started bool
}

func newRestartTask(s *site) (Task, error) {
	t := &restartTask{identity: s.identity(), period: time.Duration(s.task.Period), cells: plan.PortCells(s.Node)}
	for i, part := range []manifest.Part{manifest.PartIn, manifest.PartOut, manifest.PartGone} {
		if t.arrays[i] = s.array(part); t.arrays[i] == nil {
			return nil, fmt.Errorf("task %s wants a register for %s", s.task.Kind, part)
		}
	}
	return t, nil
}

// Run clears the counts of ports with a non-zero queue.
func (t *restartTask) Run(now time.Duration, f Fabric) (time.Duration, error) {
	next := now + t.period
	for i, a := range t.arrays {
		var err error
		if t.counts[i], err = a.Read(f, t.sw, 0, t.cells, 0, t.counts[i][:0]); err != nil {
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
		for _, a := range t.arrays {
			if err := f.WriteRegister(t.sw, a.Parts[0].Register.Name, port, port+1, 0); err != nil {
				return next, err
			}
		}
	}
	return next, nil
}

// quiet reports whether the switch contains no packets. If the switch cannot report this, it
// counts as empty if no counter has changed since the last run.
func (t *restartTask) quiet(f Fabric) (bool, error) {
	empty, err := f.QueuesEmpty(t.sw)
	if !errors.Is(err, errors.ErrUnsupported) {
		return empty, err
	}
	still := t.started
	for i := range t.counts {
		still = still && slices.Equal(t.counts[i], t.before[i])
		t.before[i] = append(t.before[i][:0], t.counts[i]...)
	}
	t.started = true
	return still, nil
}

// An expireTask deletes best paths without a recent probe. On hardware a probe cannot
// see the age of the stored path.
type expireTask struct {
	identity
	period time.Duration
	cells  int
	heard  *registers.Array
	best   *registers.Array
	none   uint64 // initial value of the register of best paths: an unusable path

	at, held []uint64
}

func newExpireTask(s *site) (Task, error) {
	t := &expireTask{
		identity: s.identity(), period: time.Duration(s.task.Period),
		heard: s.array(manifest.PartMoment), best: s.array(manifest.PartBest),
	}
	for _, c := range t.best.Parts[0].Register.Initial {
		if c.Index == -1 {
			t.none = uint64(c.Value)
		}
	}
	for _, g := range s.Groups {
		t.cells = max(t.cells, g.ID+1)
	}
	return t, nil
}

// Run deletes expired paths.
func (t *expireTask) Run(now time.Duration, f Fabric) (time.Duration, error) {
	next := now + t.period
	var clock time.Duration
	var err error
	if t.at, clock, err = t.heard.ReadMoments(f, t.sw, t.cells, t.at[:0]); err != nil {
		return next, err
	}
	if t.held, err = t.best.Read(f, t.sw, 0, t.cells, clock, t.held[:0]); err != nil {
		return next, err
	}
	for group, at := range t.at {
		if at == 0 || t.held[group] == t.none || clock-registers.Micros(at) <= t.period {
			continue
		}
		if err := f.WriteRegister(t.sw, t.best.Parts[0].Register.Name, group, group+1, t.none); err != nil {
			return next, err
		}
	}
	return next, nil
}
