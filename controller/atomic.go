package controller

import (
	"context"
	"errors"
	"fmt"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"

	"github.com/p4lb/p4lb/internal/controller/p4info"
)

// A snapshot is the state of a switch before a change.
type snapshot struct {
	config   *p4v1.ForwardingPipelineConfig // nil: it had no program
	index    *p4info.Index
	contents *contents
}

// snapshot reads everything needed for a rollback. It reads registers only if the program stays
// the same.
func (x *exchange) snapshot(ctx context.Context, want *contents) (*snapshot, error) {
	config, err := x.config(ctx, p4v1.GetForwardingPipelineConfigRequest_ALL)
	if err != nil {
		return nil, err
	}
	s := &snapshot{config: config, index: x.index, contents: &contents{objects: map[string]object{}}}
	if config.GetP4Info() == nil {
		s.config = nil
		return s, nil
	}
	about := &contents{queues: want.queues, whole: true} // filters are always read completely
	if config.GetCookie().GetCookie() == x.index.Cookie {
		about.cells = want.cells
	} else if s.index, err = p4info.New(config.GetP4Info(), config.GetP4DeviceConfig()); err != nil {
		return nil, err
	}
	old := *x
	old.index = s.index
	if s.contents, err = old.live(ctx, about); err != nil {
		return nil, err
	}
	s.contents.whole = true
	return s, nil
}

// atomically deploys to all switches or to none. It changes no switch before all are
// connected, and restores the changed ones if one fails.
func (c *Controller) atomically(ctx context.Context, jobs []*job) {
	c.each(jobs, func(j *job) { j.report.Err = j.remember(ctx) })
	if failed := firstFailed(jobs); failed != "" {
		for _, j := range jobs {
			j.give(fmt.Sprintf("not touched, since %s failed", failed))
		}
		return
	}
	c.each(jobs, func(j *job) { j.report.Err = j.deploy(ctx) })
	failed := firstFailed(jobs)
	if failed == "" {
		for _, j := range jobs {
			j.finish(nil)
		}
		return
	}
	// Restore the changed switches even if ctx has ended.
	c.each(jobs, func(j *job) {
		if j.report.Written == 0 && !j.report.Pushed {
			j.give(fmt.Sprintf("not touched, since %s failed", failed))
			return
		}
		err := j.rollBack(context.WithoutCancel(ctx))
		j.report.RolledBack, j.report.Verified = err == nil, false
		if err != nil {
			j.report.Err = errors.Join(j.report.Err, fmt.Errorf("rolling back: %w", err))
		}
		j.give(fmt.Sprintf("rolled back, since %s failed", failed))
	})
}

// give ends a job that did not complete, with a note unless it has its own error.
func (j *job) give(note string) {
	if j.report.Err == nil {
		j.report.Notes = append(j.report.Notes, note)
		j.step(stepFailed)
		return
	}
	j.finish(j.report.Err)
}

func firstFailed(jobs []*job) string {
	for _, j := range jobs {
		if j.report.Err != nil {
			return j.plan.Name
		}
	}
	return ""
}

// remember takes the snapshot that a rollback needs.
func (j *job) remember(ctx context.Context) error {
	j.conn.Busy.Lock()
	defer j.conn.Busy.Unlock()
	x, _, err := j.exchange(ctx)
	if err != nil {
		return err
	}
	want, err := desired(j.plan, &j.c.common)
	if err != nil {
		return err
	}
	j.step("read")
	j.before, err = x.snapshot(ctx, want)
	return err
}

// rollBack restores the previous state of the switch. A switch without a previous
// program gets one that does nothing.
func (j *job) rollBack(ctx context.Context) error {
	j.conn.Busy.Lock()
	defer j.conn.Busy.Unlock()
	j.step("roll back")
	x, _, err := j.exchange(ctx)
	if err != nil {
		return err
	}
	if j.before.config != nil && j.report.Pushed {
		if err := x.replace(ctx, j.before.config, true); err != nil {
			return err
		}
		j.report.Notes = append(j.report.Notes, "the program before runs again, its registers begin anew")
		j.before.contents.cells = nil
	}
	if j.before.config != nil {
		x.index = j.before.index
	} else if j.report.Pushed {
		j.report.Notes = append(j.report.Notes, "the program stays, with empty tables: P4Runtime cannot take it away")
	}
	have, err := x.live(ctx, j.before.contents)
	if err != nil {
		return err
	}
	if _, err := x.apply(ctx, x.diff(have, j.before.contents)); err != nil {
		return err
	}
	if have, err = x.live(ctx, j.before.contents); err != nil {
		return err
	}
	if left := x.diff(have, j.before.contents); len(left) > 0 {
		return fmt.Errorf("%w: %d differences are left", errUnsettled, len(left))
	}
	return nil
}
