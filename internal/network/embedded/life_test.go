package embedded_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/p4lb/p4lb/controller"
	"github.com/p4lb/p4lb/internal/controller/plan"
	"github.com/p4lb/p4lb/internal/controller/report"
	"github.com/p4lb/p4lb/internal/controller/target"
	"github.com/p4lb/p4lb/internal/network/embedded"
)

// A fuse is a target that calls a function once, after a number of packets on its
// connections, in both directions together.
type fuse struct {
	*embedded.Target
	left  atomic.Int64
	once  sync.Once
	event func()
}

func newFuse(t testing.TB, after int64, event func()) *fuse {
	f := &fuse{Target: newTarget(t, embedded.Options{Memory: true, Still: true}), event: event}
	f.left.Store(after)
	t.Cleanup(f.blow)
	return f
}

// blow calls the function unless it was called already, and returns after the call: a
// deployment may need fewer packets than the limit.
func (f *fuse) blow() { f.once.Do(f.event) }

// Endpoint returns an endpoint that counts the data on its connections for the fuse.
func (f *fuse) Endpoint(name string) (target.Endpoint, error) {
	e, err := f.Target.Endpoint(name)
	dial := e.Dial
	e.Dial = func(ctx context.Context) (net.Conn, error) {
		c, err := dial(ctx)
		return fusedConn{c, f}, err
	}
	return e, err
}

func (f *fuse) count() {
	if f.left.Add(-1) == 0 {
		go f.blow()
	}
}

type fusedConn struct {
	net.Conn
	f *fuse
}

func (c fusedConn) Write(b []byte) (int, error) {
	c.f.count()
	return c.Conn.Write(b)
}

func (c fusedConn) Read(b []byte) (int, error) {
	c.f.count()
	return c.Conn.Read(b)
}

// settled waits until an observer finds nothing that differs from the plan.
func settled(t *testing.T, p *plan.Plan, target target.Target) {
	t.Helper()
	ctx := testContext(t)
	last := "nothing was read"
	for {
		r, err := controller.Deploy(ctx, p, target, controller.DeployOptions{DryRun: true})
		switch {
		case ctx.Err() != nil:
			t.Fatal(last)
		case err != nil:
			last = err.Error()
		default:
			changes := r.ChangeRows()[1:]
			if len(changes) == 0 {
				return
			}
			last = fmt.Sprintf("%d differences are left, the first %q", len(changes), changes[0])
		}
	}
}

// traffic returns the amount of data that a deployment sends over its connections.
func traffic(t *testing.T, p *plan.Plan) int64 {
	const plenty = 1 << 40
	f := newFuse(t, plenty, func() {})
	deploy(t, p, f, controller.DeployOptions{})
	return plenty - f.left.Load()
}

// TestKilled kills a switch or the controller at a hundred points of a deployment and
// starts it again. In the end the switches hold the plan.
func TestKilled(t *testing.T) {
	p := planFor(t, "drill+rlb", preset(t, "qall"))
	all := traffic(t, p)
	rng := rand.New(rand.NewPCG(6, 6))
	kills := 100
	if testing.Short() { // under the race detector each takes long
		kills = 20
	}
	for i := range kills {
		at, victim := 1+rng.Int64N(all), rng.IntN(len(p.Switches)+1)
		name := "controller"
		if victim < len(p.Switches) {
			name = p.Switches[victim].Name
		}
		t.Run(fmt.Sprintf("%d: %s at %d of %d", i, name, at, all), func(t *testing.T) {
			if name == "controller" {
				killController(t, p, at)
			} else {
				killSwitch(t, p, name, at)
			}
		})
	}
}

func killSwitch(t *testing.T, p *plan.Plan, name string, at int64) {
	var f *fuse
	f = newFuse(t, at, func() {
		if err := f.Restart(t.Context(), name); err != nil {
			t.Errorf("restarting %s: %v", name, err)
		}
	})
	c, err := controller.New(testContext(t), p, f, controller.DeployOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(testContext(t))
	var kept sync.WaitGroup
	kept.Go(func() {
		c.Keep(ctx, func(r report.Switch) { t.Logf("kept %s: %v", r.Name, r.Err) })
	})
	defer func() {
		cancel()
		kept.Wait()
		c.Close()
	}()
	_, err = c.Deploy(testContext(t)) // may fail: Keep continues
	t.Logf("deployed: %v", err)
	f.blow()
	settled(t, p, f)
}

func killController(t *testing.T, p *plan.Plan, at int64) {
	ctx, kill := context.WithCancel(testContext(t))
	defer kill()
	f := newFuse(t, at, kill)
	c, err := controller.New(ctx, p, f, controller.DeployOptions{})
	if err != nil {
		t.Fatal(err)
	}
	c.Deploy(ctx)
	c.Close() // the connections break during any operation
	f.left.Store(1 << 40)
	deploy(t, p, f, controller.DeployOptions{})
	settled(t, p, f)
}

// TestRestart: only a switch that restarts empty is configured again; a restarted
// controller writes nothing.
func TestRestart(t *testing.T) {
	p := planFor(t, "conga", preset(t, "qall"))
	target := newTarget(t, embedded.Options{Memory: true, Still: true})
	c, err := controller.New(testContext(t), p, target, controller.DeployOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Deploy(testContext(t)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(testContext(t))
	told := make(chan report.Switch, 100)
	var kept sync.WaitGroup
	kept.Go(func() { c.Keep(ctx, func(r report.Switch) { told <- r }) })
	if err := target.Restart(t.Context(), "s1"); err != nil {
		t.Fatal(err)
	}
	for {
		r := <-told
		if r.Name != "s1" {
			t.Errorf("%s was looked at, and only s1 was away", r.Name)
		}
		if r.Verified {
			if !r.Pushed || r.Written == 0 {
				t.Errorf("s1 was empty, and nothing was written: %+v", r)
			}
			break
		}
	}
	cancel()
	kept.Wait()
	c.Close()
	if n := deploy(t, p, target, controller.DeployOptions{}).Written(); n != 0 {
		t.Errorf("a new controller has written %d objects", n)
	}
}
