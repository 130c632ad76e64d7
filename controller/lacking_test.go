package controller_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/p4lb/p4lb/controller"
	"github.com/p4lb/p4lb/internal/bmv2"
	"github.com/p4lb/p4lb/internal/controller/plan"
	"github.com/p4lb/p4lb/internal/controller/registers"
	"github.com/p4lb/p4lb/internal/controller/target"
	"github.com/p4lb/p4lb/internal/network/embedded"
	"github.com/p4lb/p4lb/internal/network/fabric"
)

var errBroken = errors.New("broken")

// An altered target has endpoints and links that a test changes.
type altered struct {
	*embedded.Target
	change func(*target.Endpoint)
	down   func(fabric.Link) (bool, error)
}

func (a altered) Endpoint(name string) (target.Endpoint, error) {
	e, err := a.Target.Endpoint(name)
	if a.change != nil && name == "l1" {
		a.change(&e)
	}
	return e, err
}

func (a altered) LinkDown(l fabric.Link) (bool, error) {
	if a.down != nil {
		return a.down(l)
	}
	return a.Target.LinkDown(l)
}

// A brokenAccess fails to read or to write.
type brokenAccess struct {
	registers.Access
	target.Queues
	read, write error
	lost        int  // cells that are missing
	forgets     bool // the settings of queues
	slower      bool // queues than they were set
}

func (b brokenAccess) Read(ctx context.Context, name string, from, to int, dst []uint64) ([]uint64, error) {
	if b.read != nil {
		return dst, b.read
	}
	list, err := b.Access.Read(ctx, name, from, to, dst)
	return list[:len(list)-b.lost], err
}

func (b brokenAccess) Write(ctx context.Context, name string, from, to int, value uint64) error {
	if b.write != nil {
		return b.write
	}
	return b.Access.Write(ctx, name, from, to, value)
}

func (b brokenAccess) Queue(ctx context.Context, port int) (plan.Queue, bool, error) {
	if b.read != nil {
		return plan.Queue{}, false, b.read
	}
	q, ok, err := b.Queues.Queue(ctx, port)
	if b.slower {
		q.Rate--
	}
	return q, ok && !b.forgets, err
}

func (b brokenAccess) SetQueue(ctx context.Context, q plan.Queue) error {
	if b.write != nil {
		return b.write
	}
	return b.Queues.SetQueue(ctx, q)
}

// A brokenFilter is a list of filters that fails.
type brokenFilter struct{}

func (brokenFilter) List(context.Context) ([]plan.Filter, error)  { return nil, errBroken }
func (brokenFilter) SetFilter(context.Context, plan.Filter) error { return errBroken }

// If a target lacks or fails an access, the deployment reports the missing one, as an
// error or as a note, for the switch alone.
func TestLackingTargets(t *testing.T) {
	for name, test := range map[string]struct {
		change    func(*target.Endpoint)
		err, note string
	}{
		"as it is": {func(*target.Endpoint) {}, "", ""},
		"no sessions and groups": {func(e *target.Endpoint) { e.Limits.NoReplication = true },
			"l1: the scheme wants 3 clone sessions and multicast groups, which this target does not have", ""},
		"no registers": {func(e *target.Endpoint) { e.Registers, e.Local, e.Limits.NoRegisters = nil, nil, true }, "", "no way to the registers: [In.cells] begin with 0"},
		"no queues":    {func(e *target.Endpoint) { e.Queues = nil }, "", "no way to the queues: their rates and depths stay as they are"},
		"registers of no use": {func(e *target.Endpoint) {
			e.Registers = brokenAccess{Access: e.Registers, read: fmt.Errorf("reading: %w", errors.ErrUnsupported)}
		}, "", "no way to the registers: [In.cells] begin with 0"},
		"registers that cannot be read": {func(e *target.Endpoint) { e.Registers = brokenAccess{Access: e.Registers, read: errBroken} }, "l1: broken", ""},
		"registers that cannot be written": {func(e *target.Endpoint) { e.Registers = brokenAccess{Access: e.Registers, write: errBroken} },
			"l1: broken", ""},
		"a cell too few": {func(e *target.Endpoint) { e.Registers = brokenAccess{Access: e.Registers, lost: 1} },
			"l1: reading register In.cells: the switch does not hold the changes that it accepted: 20 cells came, 21 were asked for", ""},
		"queues that cannot be read": {func(e *target.Endpoint) { e.Queues = brokenAccess{Queues: e.Queues, read: errBroken} }, "l1: reading the queue of port 1: broken", ""},
		"queues that cannot be set":  {func(e *target.Endpoint) { e.Queues = brokenAccess{Queues: e.Queues, write: errBroken} }, "l1: setting the queue of port 1: broken", ""},
		"queues that cannot be read back": {func(e *target.Endpoint) { e.Queues = brokenAccess{Queues: e.Queues, forgets: true} }, "",
			"the rates and depths of queues cannot be read back: they are not verified"},
		"queues that are slower": {func(e *target.Endpoint) { e.Queues = brokenAccess{Queues: e.Queues, slower: true} },
			"l1: the switch does not hold the changes that it accepted: 2 differences are left, the first to modify queue of port 1", ""},
		"filters that cannot be read": {func(e *target.Endpoint) { e.Filters = brokenFilter{} }, "l1: reading the filters: broken", ""},
	} {
		t.Run(name, func(t *testing.T) {
			to := altered{Target: embedded.New(embedded.Options{Memory: true, Still: true}), change: test.change}
			t.Cleanup(func() { to.Close() })
			attempts := 0
			r, err := controller.Deploy(t.Context(), countedPlan(t), to, controller.DeployOptions{Timeout: 10 * time.Second, Progress: func(p controller.Progress) {
				if p.Switch == "l1" && p.Step == "connect" {
					attempts++
				}
			}})
			// A switch that accepts changes and does not hold them is configured four times.
			if want := map[bool]int{false: 1, true: 4}[strings.Contains(test.err, "does not hold")]; attempts != want {
				t.Errorf("%d attempts, want %d", attempts, want)
			}
			if test.err == "" && err != nil || test.err != "" && (err == nil || err.Error() != test.err) {
				t.Errorf("error %v, want %q", err, test.err)
			}
			for _, s := range r.Switches {
				bad := s.Name == "l1" && test.err != ""
				if s.Verified == bad || (s.Err != nil) != bad {
					t.Errorf("%s: verified %v, %v", s.Name, s.Verified, s.Err)
				}
				notes := strings.Join(s.Notes, "\n")
				if want := test.note; s.Name == "l1" && !strings.Contains(notes, want) || s.Name != "l1" && want != "" && strings.Contains(notes, want) {
					t.Errorf("%s: notes %q, want %q at l1", s.Name, notes, want)
				}
			}
		})
	}
}

// A dry run reads a switch once, even if another attempt may succeed.
func TestDryRunOnce(t *testing.T) {
	to := altered{Target: embedded.New(embedded.Options{Memory: true, Still: true})}
	t.Cleanup(func() { to.Close() })
	p := countedPlan(t)
	deployed(t, p, to, controller.DeployOptions{})
	to.change = func(e *target.Endpoint) { e.Registers = brokenAccess{Access: e.Registers, lost: 1} }
	attempts := 0
	_, err := controller.Deploy(t.Context(), p, to, controller.DeployOptions{DryRun: true, Progress: func(p controller.Progress) {
		if p.Switch == "l1" && p.Step == "connect" {
			attempts++
		}
	}})
	if err == nil || !strings.Contains(err.Error(), "20 cells came, 21 were asked for") || attempts != 1 {
		t.Errorf("%v after %d attempts, want an error after one", err, attempts)
	}
}

// Registers of a target without an access are unsupported.
func TestNoRegisters(t *testing.T) {
	to := altered{Target: embedded.New(embedded.Options{Memory: true, Still: true}), change: func(e *target.Endpoint) { e.Registers, e.Local, e.Limits.NoRegisters = nil, nil, true }}
	t.Cleanup(func() { to.Close() })
	c, err := controller.New(t.Context(), countedPlan(t), to, controller.DeployOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Deploy(t.Context()); err != nil {
		t.Fatal(err)
	}
	r, err := c.Registers("l1")
	if err != nil {
		t.Fatal(err)
	}
	_, read := r.Read(t.Context(), "In.cells", 0, 1, nil)
	_, clock := r.Clock(t.Context())
	for what, err := range map[string]error{"reading": read, "writing": r.Write(t.Context(), "In.cells", 0, 1, 1), "the clock": clock} {
		if !errors.Is(err, errors.ErrUnsupported) || !strings.HasPrefix(err.Error(), "l1: registers: ") {
			t.Errorf("%s: %v", what, err)
		}
	}
	if other, err := c.Registers("l2"); err != nil {
		t.Error(err)
	} else if got, err := other.Read(t.Context(), "In.cells", 0, 1, nil); err != nil || got[0] != 7 {
		t.Errorf("l2 has %v, %v", got, err)
	} else if _, err := other.(registers.Meter).PortCounts(t.Context()); err != nil {
		t.Errorf("l2 counts no ports: %v", err)
	}
	if list, err := r.(registers.Meter).PortCounts(t.Context()); !errors.Is(err, errors.ErrUnsupported) || len(list) > 0 {
		t.Errorf("l1 counts %d ports, %v", len(list), err)
	}
}

// A meteredAccess counts one port.
type meteredAccess struct{ registers.Access }

func (meteredAccess) PortCounts(context.Context) ([]bmv2.PortCounts, error) {
	return []bmv2.PortCounts{{Port: 7}}, nil
}

// A switch with another protocol is read by it, and counts ports if the protocol does.
func TestPeekOfSession(t *testing.T) {
	access := brokenAccess{read: errBroken}
	for _, regs := range []registers.Access{access, meteredAccess{access}} {
		opened := 0
		p, err := controller.NewPeek(t.Context(), target.Endpoint{Address: "127.0.0.1:1", Speak: func(grpc.ClientConnInterface) target.Session {
			opened++
			return target.Session{Registers: regs}
		}}, time.Second)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.Read(t.Context(), "r", 0, 1, nil); err != errBroken || opened != 1 {
			t.Errorf("%v after %d sessions", err, opened)
		}
		m, ok := p.(registers.Meter)
		if _, want := regs.(registers.Meter); ok != want {
			t.Errorf("%T counts ports: %v", regs, ok)
		}
		if ok {
			if list, err := m.PortCounts(t.Context()); err != nil || len(list) != 1 || list[0].Port != 7 {
				t.Errorf("%v, %v", list, err)
			}
		}
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}
}

// A deployment compares the states of links with the plan.
func TestStatesOfLinks(t *testing.T) {
	for name, test := range map[string]struct {
		down func(fabric.Link) (bool, error)
		dry  bool
		err  string
		list int
	}{
		"as planned":          {func(fabric.Link) (bool, error) { return false, nil }, false, "", 0},
		"one is down":         {func(l fabric.Link) (bool, error) { return l.A.Node == "l1" && l.B.Node == "s1", nil }, false, "link l1:2-s1:1 is down, the plan has it up", 1},
		"one is down, dry":    {func(l fabric.Link) (bool, error) { return l.A.Node == "l1" && l.B.Node == "s1", nil }, true, "", 1},
		"one cannot be read":  {func(l fabric.Link) (bool, error) { return false, errBroken }, false, "reading the state of link h1-l1:1: broken", 0},
		"all of them are off": {func(fabric.Link) (bool, error) { return true, nil }, true, "", 4},
	} {
		to := altered{Target: embedded.New(embedded.Options{Memory: true, Still: true})}
		t.Cleanup(func() { to.Close() })
		p := countedPlan(t)
		deployed(t, p, to, controller.DeployOptions{})
		to.down = test.down
		r, err := controller.Deploy(t.Context(), p, to, controller.DeployOptions{DryRun: test.dry})
		if test.err == "" && err != nil || test.err != "" && (err == nil || err.Error() != test.err) || len(r.Links) != test.list {
			t.Errorf("%s: %v, %+v; want %q and %d links", name, err, r.Links, test.err, test.list)
		}
	}
}

// If a switch fails, every switch of an atomic deployment ends as failed, and all are done.
func TestProgressOfFailure(t *testing.T) {
	to := altered{Target: embedded.New(embedded.Options{Memory: true, Still: true}), change: func(e *target.Endpoint) {
		e.Queues = brokenAccess{Queues: e.Queues, write: errBroken}
	}}
	t.Cleanup(func() { to.Close() })
	last, steps, done := map[string]string{}, map[string][]string{}, 0
	r, err := controller.Deploy(t.Context(), countedPlan(t), to, controller.DeployOptions{Atomic: true, Parallel: 1, Progress: func(p controller.Progress) {
		last[p.Switch], done = p.Step, p.Done
		steps[p.Switch] = append(steps[p.Switch], p.Step)
		if p.Of != 3 {
			t.Errorf("%d switches", p.Of)
		}
	}})
	if err == nil || done != 3 {
		t.Errorf("%d switches are done, %v", done, err)
	}
	for _, s := range r.Switches {
		if notes := strings.Join(s.Notes, "\n"); strings.Contains(notes, "since l1 failed") != (s.Name != "l1") {
			t.Errorf("%s: notes %q", s.Name, notes)
		}
	}
	for _, name := range []string{"l1", "l2", "s1"} {
		if last[name] != "failed" || !slices.Contains(steps[name], "push") || !slices.Contains(steps[name], "roll back") {
			t.Errorf("%s ends with %q after the steps %q, want a push and a rollback", name, last[name], steps[name])
		}
	}
}

// An atomic deployment changes no switch if one of them cannot be read.
func TestAtomicUntouched(t *testing.T) {
	to := altered{Target: embedded.New(embedded.Options{Memory: true, Still: true})}
	t.Cleanup(func() { to.Close() })
	p := countedPlan(t)
	deployed(t, p, to, controller.DeployOptions{})
	to.change = func(e *target.Endpoint) { e.Queues = brokenAccess{Queues: e.Queues, read: errBroken} }
	r, err := controller.Deploy(t.Context(), p, to, controller.DeployOptions{Atomic: true})
	if err == nil || err.Error() != "l1: reading the queue of port 1: broken" || r.Written() != 0 {
		t.Errorf("%v, %d changes", err, r.Written())
	}
	for _, s := range r.Switches {
		if notes := strings.Join(s.Notes, "\n"); (notes == "not touched, since l1 failed") != (s.Name != "l1") || s.Verified {
			t.Errorf("%s: notes %q, verified %v", s.Name, notes, s.Verified)
		}
	}
}
