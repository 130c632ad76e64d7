package controller_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/p4lb/p4lb/controller"
	"github.com/p4lb/p4lb/internal/controller/task"
	"github.com/p4lb/p4lb/internal/network/embedded"
)

// A syncBuffer can be looked at while it is written.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// until waits until ok returns true.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	deadline := time.After(3 * time.Minute)
	for !ok() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("it did not come to it that %s", what)
		}
	}
}

// deployTasks deploys a scheme to switches in this process, and gives its tasks.
func deployTasks(t *testing.T, scheme string) (*embedded.Target, *controller.Controller, []task.Task) {
	t.Helper()
	plan := newPlan(t, leafSpine(t, 0), scheme, nil)
	target := embedded.New(embedded.Options{Memory: true})
	t.Cleanup(func() { target.Close() })
	c, err := controller.New(t.Context(), plan, target, controller.DeployOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if _, err := c.Deploy(t.Context()); err != nil {
		t.Fatal(err)
	}
	tasks, err := task.ForPlan(plan, task.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return target, c, tasks
}

// TestLoop runs PDLB's tasks on real switches: probes go out, delays come back, and
// granularities follow. A switch that restarts empty gets its granularities again.
func TestLoop(t *testing.T) {
	target, c, tasks := deployTasks(t, "pdlb")
	ctx, cancel := context.WithCancel(t.Context())
	var log syncBuffer
	done := make(chan controller.LoopReport)
	go func() {
		done <- c.Loop(ctx, tasks, controller.LoopOptions{BackOff: 5 * time.Millisecond, Log: slog.New(slog.NewTextHandler(&log, nil))})
	}()
	kept := make(chan error)
	go func() { kept <- c.Keep(ctx, nil) }()
	gran := func(sw string, leaf int) uint64 {
		cells, err := target.Device(sw).ReadRegister("pd_gran", leaf, leaf+1)
		if err != nil || len(cells) == 0 {
			return 0
		}
		return cells[0]
	}
	until(t, "both leaves have a granularity", func() bool { return gran("l1", 2) > 0 && gran("l2", 1) > 0 })
	if err := target.Stop("l2"); err != nil {
		t.Fatal(err)
	}
	until(t, "the log says that the task fails", func() bool {
		return strings.Contains(log.String(), `msg="task fails" task=granularity switch=l2`)
	})
	if err := target.Restart(t.Context(), "l2"); err != nil {
		t.Fatal(err)
	}
	until(t, "l2 has a granularity again", func() bool { return gran("l2", 1) > 0 })
	until(t, "the log says that the task works", func() bool {
		return strings.Contains(log.String(), `msg="task works again" task=granularity switch=l2`)
	})
	cancel()
	report := <-done
	if err := <-kept; err != nil && ctx.Err() == nil {
		t.Error(err)
	}
	if report.Runs < 4 || report.Failed == 0 || report.Failed >= report.Runs {
		t.Errorf("report %+v", report)
	}
	if n := strings.Count(log.String(), `msg="task fails"`); n > 40 {
		t.Errorf("%d lines about tasks that fail: one for each is enough", n)
	}
}

// TestLoopRezero: the embedded switch reports that it contains no packets, so
// remaining counts of RLB's ingress queues are cleared immediately.
func TestLoopRezero(t *testing.T) {
	target, c, tasks := deployTasks(t, "drill+rlb")
	if err := target.Device("l1").WriteRegister("ig_q", 3, 4, 4711); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan controller.LoopReport)
	go func() { done <- c.Loop(ctx, tasks, controller.LoopOptions{}) }()
	until(t, "the queue is 0", func() bool {
		cells, err := target.Device("l1").ReadRegister("ig_q", 3, 4)
		return err == nil && cells[0] == 0
	})
	cancel()
	if report := <-done; report.Failed != 0 {
		t.Errorf("report %+v", report)
	}
}

// A lateTask runs for longer than its period.
type lateTask struct {
	name  string
	takes time.Duration
	runs  chan<- time.Duration // when it ran; nil: no one asks
}

func (t lateTask) Name() string { return t.name }

func (t lateTask) Switch() string { return "" }

func (t lateTask) Run(now time.Duration, _ task.Fabric) (time.Duration, error) {
	if t.runs != nil {
		t.runs <- now
	}
	time.Sleep(t.takes)
	return now + time.Millisecond, nil
}

// TestLoopSlow reports a task that cannot keep its period, once, with the times
// between its runs. A task that may be late is no warning.
func TestLoopSlow(t *testing.T) {
	_, c, _ := deployTasks(t, "ecmp")
	ctx, cancel := context.WithCancel(t.Context())
	var log syncBuffer
	slow := make(chan controller.Slowness, 100)
	done := make(chan controller.LoopReport)
	go func() {
		done <- c.Loop(ctx, []task.Task{lateTask{"probe", 2 * time.Millisecond, nil}, lateTask{"rezero", 40 * time.Millisecond, nil}}, controller.LoopOptions{
			Window: 30 * time.Millisecond, Log: slog.New(slog.NewTextHandler(&log, nil)),
			Slow: func(s controller.Slowness) { slow <- s },
		})
	}()
	got := <-slow
	// Two tasks share half of the time of the loop: each rests four times as long as it runs.
	if got.Task != "probe" || got.Period != time.Millisecond || got.Lately < 8*time.Millisecond {
		t.Errorf("got %+v, want the task probe with 1ms and at least 8ms", got)
	}
	until(t, "the log says that rezero runs less often", func() bool {
		return strings.Contains(log.String(), "level=INFO msg=\"a task runs less often than planned\" task=rezero period=100ms")
	})
	cancel()
	report := <-done
	if len(slow) > 0 || strings.Count(log.String(), "cannot keep its period") != 1 {
		t.Errorf("%d more reports; the log:\n%s", len(slow), &log)
	}
	if report.Slowed != report.Runs {
		t.Errorf("report %+v: all runs are slow", report)
	}
}

// TestLoopWaits: a task that can wait leaves 100 ms between its runs.
func TestLoopWaits(t *testing.T) {
	_, c, _ := deployTasks(t, "ecmp")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	runs := make(chan time.Duration, 100)
	go c.Loop(ctx, []task.Task{lateTask{"rezero", 0, runs}}, controller.LoopOptions{})
	first, second := <-runs, <-runs
	if wait := second - first; wait < 100*time.Millisecond {
		t.Errorf("%v between two runs, want at least 100ms", wait)
	}
}
