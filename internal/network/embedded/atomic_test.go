package embedded_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/p4lb/p4lb/controller"
	"github.com/p4lb/p4lb/internal/controller/plan"
	"github.com/p4lb/p4lb/internal/controller/target"
	"github.com/p4lb/p4lb/internal/network/embedded"
)

// refuser passes writes on until its flag is set, then refuses them.
func refuser() (*fault, *atomic.Bool) {
	var refuse atomic.Bool
	return &fault{write: func(context.Context, *p4v1.WriteRequest) error {
		if refuse.Load() {
			return status.Error(codes.Internal, "no")
		}
		return nil
	}}, &refuse
}

// TestAtomic: if one switch refuses, all switches return to their previous state, with
// the same or another program.
func TestAtomic(t *testing.T) {
	topology := preset(t, "qall")
	for name, next := range map[string]*plan.Plan{
		"another topology": planFor(t, "drill+rlb", topology.Fail(39)),
		"another program":  planFor(t, "hula", topology),
	} {
		t.Run(name, func(t *testing.T) {
			before := planFor(t, "drill+rlb", topology)
			f, refuse := refuser()
			target := newFaulty(t, before, "l2", f)
			deploy(t, before, target, controller.DeployOptions{})
			refuse.Store(true)
			r, err := controller.Deploy(testContext(t), next, target, controller.DeployOptions{Atomic: true})
			if err == nil {
				t.Fatal("the refusal is not reported")
			}
			for _, s := range r.Switches {
				switch {
				case s.Verified && s.Written > 0:
					t.Errorf("%s: verified", s.Name)
				case s.Name != "l2" && (s.Written > 0 || s.Pushed) && !s.RolledBack:
					t.Errorf("%s: not rolled back: %+v", s.Name, s)
				}
			}
			refuse.Store(false)
			if name == "another program" {
				// The program of l2 was pushed, and its tables cannot be filled again.
				deploy(t, before, target, controller.DeployOptions{})
			}
			settled(t, before, target)
		})
	}
}

// TestRollbackFails: a rollback that does not restore the switch is an error, and so is one
// that the switch refuses. The switch does not count as rolled back.
func TestRollbackFails(t *testing.T) {
	topology := preset(t, "qall")
	before, next := planFor(t, "drill+rlb", topology), planFor(t, "drill+rlb", topology.Fail(39))
	const lost = "the switch does not hold the changes that it accepted: "
	for name, test := range map[string]struct {
		write func(n int, r *p4v1.WriteRequest) error // the nth write after the first deployment
		want  []string
	}{
		"the switch loses updates": {func(n int, r *p4v1.WriteRequest) error {
			if n > 1 {
				r.Updates = nil
			}
			return nil
		}, []string{lost, "rolling back: " + lost}},
		"the switch refuses the rollback": {func(n int, r *p4v1.WriteRequest) error {
			if n > 1 {
				return status.Error(codes.Internal, "broken")
			}
			return nil
		}, []string{"rolling back: ", "broken"}},
	} {
		t.Run(name, func(t *testing.T) {
			var on atomic.Bool
			var writes atomic.Int32
			f := &fault{write: func(_ context.Context, r *p4v1.WriteRequest) error {
				if !on.Load() {
					return nil
				}
				return test.write(int(writes.Add(1)), r)
			}}
			target := newFaulty(t, before, "l2", f)
			deploy(t, before, target, controller.DeployOptions{})
			on.Store(true)
			r, err := controller.Deploy(testContext(t), next, target, controller.DeployOptions{Atomic: true, Timeout: short})
			if err == nil {
				t.Fatal("no error")
			}
			for _, s := range r.Switches {
				if s.Name != "l2" {
					if s.Written > 0 && !s.RolledBack {
						t.Errorf("%s: not rolled back: %+v", s.Name, s)
					}
					continue
				}
				if s.RolledBack || s.Verified || s.Err == nil {
					t.Errorf("l2: rolled back %v, verified %v, %v", s.RolledBack, s.Verified, s.Err)
				}
				for _, want := range test.want {
					if s.Err != nil && !strings.Contains(s.Err.Error(), want) {
						t.Errorf("l2: %v, want %q", s.Err, want)
					}
				}
			}
		})
	}
}

// TestAtomicEmpty: after a rollback, switches that were empty hold only the program.
func TestAtomicEmpty(t *testing.T) {
	p := planFor(t, "drill+rlb", preset(t, "qall"))
	f, refuse := refuser()
	refuse.Store(true)
	target := newFaulty(t, p, "l2", f)
	r, err := controller.Deploy(testContext(t), p, target, controller.DeployOptions{Atomic: true})
	if err == nil {
		t.Fatal("the refusal is not reported")
	}
	for _, s := range r.Switches {
		if s.Name == "l2" {
			continue
		}
		if !s.RolledBack || !strings.Contains(strings.Join(s.Notes, " "), "with empty tables") {
			t.Errorf("%s: %+v", s.Name, s.Notes)
		}
		list, err := target.Switch(s.Name).Tables().Entries("LbIngress.ipv4_route")
		if err != nil || len(list) != 0 {
			t.Errorf("%s: %d routes are left (%v)", s.Name, len(list), err)
		}
		if ids := target.Switch(s.Name).Mirrors().IDs(); len(ids) != 0 {
			t.Errorf("%s: the sessions %v are left", s.Name, ids)
		}
	}
}

// TestAtomicUnreachable: if one switch is unreachable, no switch changes.
func TestAtomicUnreachable(t *testing.T) {
	p := planFor(t, "ecmp", preset(t, "qall"))
	target := newTarget(t, embedded.Options{Memory: true, Still: true})
	if err := target.Start(testContext(t), p); err != nil {
		t.Fatal(err)
	}
	if err := target.Stop("s2"); err != nil {
		t.Fatal(err)
	}
	r, err := controller.Deploy(testContext(t), p, target, controller.DeployOptions{Atomic: true, Timeout: short})
	if err == nil || !strings.HasPrefix(err.Error(), "s2: cannot be reached") {
		t.Errorf("the error is %v", err)
	}
	if r.Written() != 0 || target.Switch("l1") != nil {
		t.Errorf("%d changes although a switch is not there", r.Written())
	}
}

// A keeping target says that clone sessions and multicast groups outlive programs.
type keeping struct {
	*faulty
	keeps bool
}

func (k keeping) Endpoint(name string) (target.Endpoint, error) {
	e, err := k.faulty.Endpoint(name)
	e.Limits.KeepsReplication = k.keeps
	return e, err
}

// TestKeptReplication: before another program is pushed to a switch that keeps sessions and
// groups, they are deleted: inserting them again would duplicate the copies. Other switches
// lose them with the program.
func TestKeptReplication(t *testing.T) {
	topology := preset(t, "qall")
	before, next := planFor(t, "drill+rlb", topology), planFor(t, "hula", topology)
	old := before.Switch("l2")
	had := len(old.Sessions) + len(old.Groups)
	if had == 0 {
		t.Fatal("the first program has no sessions and groups")
	}
	for _, keeps := range []bool{false, true} {
		var deleted, pushed atomic.Int32
		f := &fault{
			write: func(_ context.Context, r *p4v1.WriteRequest) error {
				for _, u := range r.GetUpdates() {
					if u.GetType() == p4v1.Update_DELETE && u.GetEntity().GetPacketReplicationEngineEntry() != nil && pushed.Load() == 1 {
						deleted.Add(1)
					}
				}
				return nil
			},
			setConfig: func(*p4v1.SetForwardingPipelineConfigRequest) error { pushed.Add(1); return nil },
		}
		to := keeping{newFaulty(t, before, "l2", f), keeps}
		deploy(t, before, to, controller.DeployOptions{})
		if n := deleted.Load(); n != 0 || pushed.Load() != 1 {
			t.Errorf("keeps %v: %d pushes and %d deletions for the first program", keeps, pushed.Load(), n)
		}
		deploy(t, next, to, controller.DeployOptions{})
		want := 0
		if keeps {
			want = had
		}
		if got := int(deleted.Load()); got != want || pushed.Load() != 2 {
			t.Errorf("keeps %v: %d sessions and groups are deleted before push %d, want %d", keeps, got, pushed.Load(), want)
		}
	}
}
