package controller_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/p4lb/p4lb/controller"
	"github.com/p4lb/p4lb/internal/controller/plan"
	"github.com/p4lb/p4lb/internal/controller/registers"
	"github.com/p4lb/p4lb/internal/controller/target"
	"github.com/p4lb/p4lb/internal/controller/task"
	"github.com/p4lb/p4lb/internal/network/embedded"
)

// A calling task calls methods of the fabric, once.
type calling struct {
	do   func(task.Fabric)
	done chan struct{}
}

func (c calling) Name() string { return "calling" }

func (c calling) Switch() string { return "l1" }

func (c calling) Run(_ time.Duration, f task.Fabric) (time.Duration, error) {
	c.do(f)
	close(c.done)
	return task.Never, nil
}

// withFabric deploys the counted program and calls do with the fabric that tasks get.
func withFabric(t *testing.T, to controller.Target, do func(task.Fabric)) {
	t.Helper()
	c, err := controller.New(t.Context(), countedPlan(t), to, controller.DeployOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Deploy(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	x := calling{do, make(chan struct{})}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		c.Loop(ctx, []task.Task{x}, controller.LoopOptions{})
	}()
	<-x.done
	cancel()
	<-ended
}

// A shortened target has registers that return a cell too few from cell 29 on.
type shortened struct{ *embedded.Target }

func (s shortened) Endpoint(name string) (target.Endpoint, error) {
	e, err := s.Target.Endpoint(name)
	if err == nil {
		e.Registers = fewer{e.Registers}
	}
	return e, err
}

type fewer struct{ registers.Access }

func (f fewer) Read(ctx context.Context, name string, from, to int, dst []uint64) ([]uint64, error) {
	if from >= 29 {
		to--
	}
	return f.Access.Read(ctx, name, from, to, dst)
}

// Tasks read and write registers of switches and send packets, in this process and over
// P4Runtime. An operation that a switch lacks is unsupported, and an unknown switch is an
// error.
func TestFabricOfTasks(t *testing.T) {
	memory := embedded.New(embedded.Options{Memory: true, Still: true})
	t.Cleanup(func() { memory.Close() })
	for name, to := range map[string]controller.Target{"embedded": memory, "P4Runtime": newWired(t)} {
		here := name == "embedded"
		withFabric(t, to, func(f task.Fabric) {
			if err := f.WriteRegister("l1", "In.cells", 30, 33, 5); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			got, err := f.ReadRegister("l1", "In.cells", 29, 34, []uint64{1})
			if err != nil || !slices.Equal(got, []uint64{1, 0, 5, 5, 5, 0}) {
				t.Errorf("%s reads %v, %v", name, got, err)
			}
			if got, err = f.ReadRegister("l2", "In.cells", 30, 31, nil); err != nil || !slices.Equal(got, []uint64{0}) {
				t.Errorf("%s: another switch has %v, %v", name, got, err)
			}
			for what, err := range map[string]error{
				"reading an unknown register": second(f.ReadRegister("l1", "In.none", 0, 1, nil)), "writing an unknown register": f.WriteRegister("l1", "In.none", 0, 1, 1),
				"reading an unknown switch": second(f.ReadRegister("l9", "In.cells", 0, 1, nil)), "writing an unknown switch": f.WriteRegister("l9", "In.cells", 0, 1, 1),
				"the clock of an unknown switch": second(f.Clock("l9")), "queues of an unknown switch": second(f.QueuesEmpty("l9")), "a packet at an unknown switch": f.PacketAt("l9", 1, make([]byte, 60)),
				"a packet from an unknown switch": f.PacketOut("l9", make([]byte, 60)),
			} {
				if err == nil {
					t.Errorf("%s: %s: no error", name, what)
				}
			}
			if empty, err := f.QueuesEmpty("l1"); here && (err != nil || !empty) || !here && !errors.Is(err, errors.ErrUnsupported) {
				t.Errorf("%s: queues are empty: %v, %v", name, empty, err)
			}
			if _, err := f.Clock("l1"); here && err != nil || !here && !errors.Is(err, registers.ErrNoClock) {
				t.Errorf("%s: the clock: %v", name, err)
			}
			if err := f.PacketAt("l1", 99, make([]byte, 60)); err == nil || strings.Contains(err.Error(), "no port 99") != here || errors.Is(err, errors.ErrUnsupported) == here {
				t.Errorf("%s: a packet at port 99: %v", name, err)
			}
		})
	}
	withFabric(t, shortened{memory}, func(f task.Fabric) {
		if _, err := f.ReadRegister("l1", "In.cells", 29, 34, nil); err == nil || !strings.Contains(err.Error(), "reading In.cells: 4 cells, want 5") {
			t.Errorf("a cell too few: %v", err)
		}
	})
}

func second[T any](_ T, err error) error { return err }

// A deployment to switches as planned reads them and writes nothing.
func TestStepsOfDeployment(t *testing.T) {
	to := newWired(t)
	p := countedPlan(t)
	steps := func() (list []string) {
		deployed(t, p, to, controller.DeployOptions{Parallel: 1, Progress: func(g controller.Progress) {
			if g.Switch == "l1" && !slices.Contains(list, g.Step) {
				list = append(list, g.Step)
			}
		}})
		return list
	}
	if got := steps(); !slices.Contains(got, "push") || !slices.Contains(got, "write") || !slices.Contains(got, "verify") {
		t.Errorf("steps of the first deployment: %q", got)
	}
	if got := steps(); slices.Contains(got, "push") || slices.Contains(got, "write") || slices.Contains(got, "verify") || !slices.Contains(got, "read") {
		t.Errorf("steps of the second deployment: %q", got)
	}
}

// An atomic deployment to working switches is complete: each reports its changes, the next
// deployment has none, and a controller keeps the new plan.
func TestAtomicWithoutFailure(t *testing.T) {
	to := newWired(t)
	p := countedPlan(t)
	first := deployed(t, p, to, controller.DeployOptions{Atomic: true})
	for _, name := range []string{"l1", "l2", "s1"} {
		if got := changes(first, name); got == fmt.Sprint(map[string]int{}) {
			t.Errorf("%s reports no changes", name)
		}
	}
	for _, s := range first.Switches {
		if !s.Pushed || s.Err != nil {
			t.Errorf("%s: pushed %v, %v", s.Name, s.Pushed, s.Err)
		}
	}
	for _, atomic := range []bool{true, false} {
		again := deployed(t, p, to, controller.DeployOptions{Atomic: atomic})
		for _, s := range again.Switches {
			if got := changes(again, s.Name); got != fmt.Sprint(map[string]int{}) || s.Pushed {
				t.Errorf("atomic %v: %s changes again: %s", atomic, s.Name, got)
			}
		}
	}
}

// If a switch fails, an atomic deployment restores the others: entries, cells, sessions and
// groups. Without --atomic they keep the new plan.
func TestAtomic(t *testing.T) {
	for _, atomic := range []bool{true, false} {
		to := newWired(t)
		before := countedPlan(t)
		deployed(t, before, to, controller.DeployOptions{})
		next := countedPlan(t, "value: 7", "value: 8", "? 2 : 1", "? 3 : 2", "at: 10 + $port", "at: 40 + $port", "{at: 3, to: 1}", "{at: 4, to: 2}")
		s := next.Switch("s1")
		s.Registers = append(s.Registers, plan.Cells{Register: "In.none", To: 1, Value: 1})
		if _, err := controller.Deploy(t.Context(), next, to, controller.DeployOptions{Atomic: atomic}); err == nil || !strings.Contains(err.Error(), "In.none") {
			t.Fatalf("a register that the program lacks: %v", err)
		}
		r, err := controller.Deploy(t.Context(), before, to, controller.DeployOptions{DryRun: true})
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"l1", "l2", "s1"} {
			got := changes(r, name)
			if restored := got == fmt.Sprint(map[string]int{}); restored != (atomic || name == "s1") {
				t.Errorf("atomic %v: %s differs from the plan before by %s", atomic, name, got)
			}
		}
	}
}

// If a switch fails, an atomic deployment of another program restores the former program of the
// others with its entries, but not the contents of registers.
func TestAtomicProgram(t *testing.T) {
	to := newWired(t)
	before := countedPlan(t)
	deployed(t, before, to, controller.DeployOptions{})
	next := countedPlan(t, "(1024) cells", "(512) cells", "? 2 : 1", "? 3 : 2")
	s := next.Switch("s1")
	s.Registers = append(s.Registers, plan.Cells{Register: "In.none", To: 1, Value: 1})
	r, err := controller.Deploy(t.Context(), next, to, controller.DeployOptions{Atomic: true})
	if err == nil || !strings.Contains(err.Error(), "In.none") {
		t.Fatalf("a register that the program lacks: %v", err)
	}
	for _, s := range r.Switches {
		if note := "the program before runs again"; s.Name != "s1" && (!s.Pushed || !s.RolledBack || !strings.Contains(strings.Join(s.Notes, "\n"), note)) {
			t.Errorf("%s: pushed %v, rolled back %v, notes %q; want %q", s.Name, s.Pushed, s.RolledBack, s.Notes, note)
		}
	}
	again := deployed(t, before, to, controller.DeployOptions{})
	for _, s := range again.Switches {
		for _, c := range s.Changes {
			if s.Pushed || !strings.Contains(c.Object, "In.cells") {
				t.Errorf("%s: after the rollback, a deployment changes %s", s.Name, c.Object)
			}
		}
	}
}

// A controller takes only plans for its switches. A refused plan changes nothing.
func TestPlansOfOtherNetworks(t *testing.T) {
	to := embedded.New(embedded.Options{Memory: true, Still: true})
	t.Cleanup(func() { to.Close() })
	first := countedPlan(t)
	c, err := controller.New(t.Context(), first, to, controller.DeployOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fewer, other := countedPlan(t), countedPlan(t)
	fewer.Switches = fewer.Switches[:2]
	other.Switches[1].Name = "l9"
	for want, p := range map[string]*controller.Plan{
		"the plan has 2 switches, the network that runs has 3": fewer,
		"l9: the network that runs has no such switch":         other,
	} {
		for what, err := range map[string]error{"SetPlan": c.SetPlan(t.Context(), p), "Compare": second(c.Compare(t.Context(), p))} {
			var e *plan.Error
			if !errors.As(err, &e) || e.Error() != want || !strings.Contains(e.Hint, "p4lb down") {
				t.Errorf("%s: %v, want %s", what, err, want)
			}
		}
	}
	if c.Plan() != first {
		t.Error("a refused plan replaces the plan")
	}
	if _, err := c.Registers("l9"); err == nil || err.Error() != "there is no switch l9" {
		t.Errorf("registers of an unknown switch: %v", err)
	}
	if err := c.PacketOut(t.Context(), "l9", nil); err == nil || err.Error() != "there is no switch l9" {
		t.Errorf("a packet from an unknown switch: %v", err)
	}
	if _, err := c.Registers("l1"); err != nil {
		t.Error(err)
	}
}

// With Parallel 1, a deployment takes one switch after the other, and counts those that are done.
func TestOneSwitchAtOnce(t *testing.T) {
	to := embedded.New(embedded.Options{Memory: true, Still: true})
	t.Cleanup(func() { to.Close() })
	var order []string
	done := 0
	_, err := controller.Deploy(t.Context(), countedPlan(t), to, controller.DeployOptions{Parallel: 1, Progress: func(p controller.Progress) {
		if len(order) == 0 || order[len(order)-1] != p.Switch {
			order = append(order, p.Switch)
		}
		if p.Step == "done" {
			done++
		}
		if p.Done != done || p.Of != 3 {
			t.Errorf("%s of %s: %d of %d are done, want %d of 3", p.Step, p.Switch, p.Done, p.Of, done)
		}
	}})
	if err != nil || !slices.Equal(order, []string{"l1", "l2", "s1"}) || done != 3 {
		t.Errorf("the switches %q in turn, %d are done: %v", order, done, err)
	}
}
