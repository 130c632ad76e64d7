package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"

	"github.com/p4lb/p4lb/internal/controller/plan"
	"github.com/p4lb/p4lb/internal/controller/primary"
	"github.com/p4lb/p4lb/internal/controller/report"
	"github.com/p4lb/p4lb/internal/controller/target"
)

// A job is one switch of a deployment.
type job struct {
	c      *Controller
	opts   *DeployOptions
	plan   *plan.Switch
	conn   *primary.Conn
	report *report.Switch
	meter  *meter

	before *snapshot // the previous state, if it may be restored
}

func (j *job) step(name string) { j.meter.step(j.plan.Name, name) }

// finish records the end of a job.
func (j *job) finish(err error) {
	if err == nil {
		j.step(stepDone)
		return
	}
	e := &plan.Error{Switch: j.plan.Name, Err: err}
	if inner, ok := errors.AsType[*plan.Error](err); ok {
		e.Hint = inner.Hint
	}
	j.report.Err, j.report.Error = e, e.Error()
	j.step(stepFailed)
}

// deploy configures one switch. Every step can be repeated, so deploy starts again if
// the switch vanishes.
func (j *job) deploy(ctx context.Context) error {
	j.conn.Busy.Lock()
	defer j.conn.Busy.Unlock()
	pause := primary.FirstPause
	for n := 1; ; n++ {
		changed := j.conn.State().Changed
		x, epoch, err := j.exchange(ctx)
		if err != nil {
			return err // the time limit has passed
		}
		err = j.attempt(ctx, x, epoch)
		if err == nil || !passing(err) || ctx.Err() != nil || j.opts.DryRun || n == attempts {
			return err
		}
		j.opts.Log.Debug("once more", "switch", j.plan.Name, "after", err)
		select {
		case <-changed: // there is a new connection
		case <-time.After(pause):
		case <-ctx.Done():
		}
		pause *= 2
	}
}

// attempt reads the switch, changes it, and reads it again.
func (j *job) attempt(ctx context.Context, x *exchange, epoch int) error {
	defer func() { j.report.Notes = x.notes }()
	want, err := desired(j.plan, &j.c.common)
	if err != nil {
		return err
	}
	if x.link.Endpoint.Limits.NoReplication {
		if n := len(j.plan.Sessions) + len(j.plan.Groups); n > 0 {
			return &plan.Error{
				Err:  fmt.Errorf("the scheme wants %d clone sessions and multicast groups, which this target does not have", n),
				Hint: "p4lb schemes lists schemes that do without, such as ecmp, wcmp and letflow",
			}
		}
	}
	j.step("read")
	push, ran, err := j.look(ctx, x)
	if err != nil {
		return err
	}
	have := &contents{objects: map[string]object{}}
	if !push {
		if have, err = x.live(ctx, want); err != nil {
			return err
		}
	} else if err := j.push(ctx, x, ran, want, have); err != nil {
		return err
	}
	steps := x.diff(have, want)
	j.report.Changes = slices.Grow(j.report.Changes, len(steps))
	for _, s := range steps {
		j.report.Changes = append(j.report.Changes, s.Change)
	}
	if j.opts.DryRun {
		return nil
	}
	if len(steps) > 0 {
		j.step("write")
		n, err := x.apply(ctx, steps)
		j.report.Written += n
		if err != nil {
			return err
		}
		if err := j.verify(ctx, x, want); err != nil {
			return err
		}
	}
	j.report.Verified = true
	j.c.mu.Lock()
	defer j.c.mu.Unlock()
	if j.c.plan.Switch(j.plan.Name) == j.plan {
		j.c.good[j.plan.Name] = epoch
	}
	return nil
}

// exchange waits until this controller is primary.
func (j *job) exchange(ctx context.Context) (*exchange, int, error) {
	j.step("connect")
	index, err := j.plan.Pipeline.Index()
	if err != nil {
		return nil, 0, err
	}
	if !j.opts.Backup {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, j.opts.Timeout)
		defer cancel()
	}
	link, epoch, err := j.conn.Wait(ctx)
	if err != nil {
		return nil, 0, err
	}
	return &exchange{c: j.conn, link: link, timeout: j.opts.Timeout, index: index}, epoch, nil
}

// look reads the running program. push reports whether it must be replaced, and runs whether
// there is one.
func (j *job) look(ctx context.Context, x *exchange) (push, runs bool, err error) {
	have, err := x.config(ctx, p4v1.GetForwardingPipelineConfigRequest_P4INFO_AND_COOKIE)
	if err != nil {
		return false, false, err
	}
	return !sameProgram(have, j.plan.Pipeline, x.index), have.GetP4Info() != nil, nil
}

// push replaces the program and reads back the running one. The tables are then empty;
// the remaining state is stored in have. Entries that are equal in both programs are
// not kept, because their meaning may have changed.
func (j *job) push(ctx context.Context, x *exchange, ran bool, want, have *contents) error {
	j.report.Changes = append(j.report.Changes, report.Change{
		Kind: report.Push, Object: "program", After: fmt.Sprintf("%s for the role %s", j.plan.Pipeline.Manifest.Scheme, j.plan.Role),
	})
	if j.opts.DryRun {
		return nil
	}
	j.step("push")
	if err := x.replace(ctx, forwarding(j.plan.Pipeline, x.index), ran); err != nil {
		return err
	}
	j.report.Pushed = true
	again, _, err := j.look(ctx, x)
	if err != nil {
		return err
	}
	if again {
		return &plan.Error{
			Err:  fmt.Errorf("%w: the switch answers with another P4Info or cookie than those it has just been given", target.ErrOtherProgram),
			Hint: "does another controller write to it?",
		}
	}
	now, err := x.live(ctx, want)
	if err == nil {
		*have = *now
	}
	return err
}

// verify reads the switch again and returns an error if there is a difference.
func (j *job) verify(ctx context.Context, x *exchange, want *contents) error {
	j.step("verify")
	push, _, err := j.look(ctx, x)
	switch {
	case err != nil:
		return err
	case push:
		return fmt.Errorf("%w: its program is another one", errUnsettled)
	}
	have, err := x.live(ctx, want)
	if err != nil {
		return err
	}
	var left []step
	for _, s := range x.diff(have, want) {
		if s.queue != nil && s.Before == "" {
			x.note("the rates and depths of queues cannot be read back: they are not verified")
			continue
		}
		left = append(left, s)
	}
	if len(left) > 0 {
		return fmt.Errorf("%w: %d differences are left, the first to %s %s", errUnsettled, len(left), left[0].Kind, left[0].Object)
	}
	return nil
}
