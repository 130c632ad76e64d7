package embedded_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/p4lb/p4lb/controller"
	"github.com/p4lb/p4lb/internal/controller/task"
	"github.com/p4lb/p4lb/internal/network/embedded"
	"github.com/p4lb/p4lb/internal/network/fabric"
	"github.com/p4lb/p4lb/internal/scheme/manifest"
)

// A single runs a task once.
type single struct{ task.Task }

func (s single) Run(now time.Duration, f task.Fabric) (time.Duration, error) {
	_, err := s.Task.Run(now, f)
	return task.Never, err
}

// TestHops compares the computed number of hops of probes with the packets that arrive
// at the ports of switches.
func TestHops(t *testing.T) {
	tree, err := fabric.FatTree{K: 4}.Make()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		scheme   string
		kind     manifest.TaskKind
		topology *fabric.Topology
	}{
		{"hula", manifest.ProbeFlood, preset(t, "qall")},
		{"hula", manifest.ProbeFlood, tree},
		{"dhlb", manifest.ProbeFlood, tree},
		{"hermes", manifest.PathProbe, preset(t, "qall")},
		{"hermes", manifest.PathProbe, tree},
	} {
		if c.topology == tree && testing.Short() {
			continue // slow under the race detector, and the other cases run the same code
		}
		p := planFor(t, c.scheme, c.topology)
		target := newTarget(t, embedded.Options{Memory: true})
		ctrl, err := controller.New(testContext(t), p, target, controller.DeployOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer ctrl.Close()
		if _, err := ctrl.Deploy(testContext(t)); err != nil {
			t.Fatal(err)
		}
		tasks, err := task.ForPlan(p, task.Options{})
		if err != nil {
			t.Fatal(err)
		}
		tasks = slices.DeleteFunc(tasks, func(t task.Task) bool { return t.Name() != string(c.kind) })
		for i := range tasks {
			tasks[i] = single{tasks[i]}
		}
		before := received(t, target, c.topology)
		ctx, stop := context.WithCancel(testContext(t))
		var loop sync.WaitGroup
		loop.Go(func() { ctrl.Loop(ctx, tasks, controller.LoopOptions{}) })
		want := task.Hops(c.topology, c.kind)
		sent := len(c.topology.Leaves()) // the first hop is at the controller's port
		if c.kind == manifest.PathProbe {
			sent = 0
			for _, n := range p.Nodes() {
				if n.Manifest.Task(c.kind) == nil {
					continue
				}
				for _, g := range n.Groups {
					sent += len(g.Hops)
				}
			}
		}
		got := 0
		for deadline := time.Now().Add(20 * time.Second); got < want-sent && time.Now().Before(deadline); {
			time.Sleep(10 * time.Millisecond)
			got = received(t, target, c.topology) - before
		}
		time.Sleep(50 * time.Millisecond) // for packets too many
		got = received(t, target, c.topology) - before
		stop()
		loop.Wait()
		if got != want-sent {
			t.Errorf("%s on %s: %d packets arrived, want %d hops less %d of the controller", c.scheme, c.topology.Name, got, want, sent)
		}
	}
}

// received returns the packets that have arrived at switches from other switches.
func received(t *testing.T, target *embedded.Target, topology *fabric.Topology) (sum int) {
	for _, s := range topology.Switches {
		counts := target.Device(s.Name).PortCounts()
		for _, p := range topology.Ports(s.Name) {
			for _, c := range counts {
				if p.PeerTier > 0 && c.Port == p.Number {
					sum += int(c.InPackets)
				}
			}
		}
	}
	return sum
}
