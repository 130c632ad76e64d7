package network

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/p4lb/p4lb/controller"
	"github.com/p4lb/p4lb/internal/controller/plan"
	"github.com/p4lb/p4lb/internal/controller/report"
	"github.com/p4lb/p4lb/internal/controller/task"
)

// stay runs tasks and looks after the switches until ctx ends. On SIGHUP it
// reads the topology again.
func (j *deployJob) stay(ctx context.Context, c *controller.Controller, planned *plan.Plan) error {
	kept := make(chan struct{})
	go func() {
		defer close(kept)
		c.Keep(ctx, j.told)
	}()
	again := make(chan os.Signal, 1)
	signal.Notify(again, syscall.SIGHUP)
	defer signal.Stop(again)
	j.c.Log.Info("keeping the switches as planned, until Ctrl-C", "state", j.state)
	for planned != nil {
		inner, cancel := context.WithCancel(ctx)
		done := make(chan error, 1)
		go func(p *plan.Plan) { done <- j.runTasks(inner, c, p) }(planned)
		select {
		case <-ctx.Done():
			planned = nil
		case <-again:
			planned = j.replan(ctx, c, planned)
		}
		cancel()
		if err := <-done; err != nil {
			return err
		}
	}
	<-kept
	return nil
}

// told logs what has become of a switch that was away.
func (j *deployJob) told(r report.Switch) {
	if r.Err != nil {
		j.c.Log.Warn("a switch does not hold the plan", "switch", r.Name, "error", r.Err)
		j.shown.Tell(r.Name, "does not hold the plan: "+r.Err.Error(), false)
		return
	}
	j.c.Log.Info("a switch is back", "switch", r.Name, "pushed", r.Pushed, "written", r.Written)
	j.shown.Tell(r.Name, "is back, and holds the plan", true)
}

// replan deploys the topology as it is now. What is wrong with it changes
// nothing.
func (j *deployJob) replan(ctx context.Context, c *controller.Controller, before *plan.Plan) *plan.Plan {
	plan, err := j.plan(ctx)
	if err == nil {
		err = c.SetPlan(ctx, plan)
	}
	if err != nil {
		j.c.Report(err)
		return before
	}
	r, err := c.Deploy(ctx)
	if err != nil {
		j.c.Report(j.deployErrors(err))
	}
	j.c.Log.Info("deployed again", "written", r.Written(), "verified", r.Verified())
	j.shown.Tell("", "the topology has been deployed again", r.Verified())
	return plan
}

// runTasks runs what the scheme wants of a controller.
func (j *deployJob) runTasks(ctx context.Context, c *controller.Controller, plan *plan.Plan) error {
	if j.noTasks {
		return nil
	}
	tasks, err := task.ForPlan(plan, task.Options{
		MTU: j.mtu, Queue: j.queue,
		Alert: func(a task.Alert) {
			j.c.Log.Warn(a.Text, "switch", a.Switch)
			j.shown.Tell(a.Switch, a.Text, false)
		},
	})
	if err != nil || len(tasks) == 0 {
		return err
	}
	j.c.Log.Info("running tasks", "number", len(tasks))
	c.Loop(ctx, tasks, controller.LoopOptions{Log: j.c.Log})
	return nil
}
