package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/p4lb/p4lb/codegen"
	"github.com/p4lb/p4lb/controller"
	"github.com/p4lb/p4lb/internal/controller/pipeline"
	"github.com/p4lb/p4lb/internal/controller/plan"
	"github.com/p4lb/p4lb/internal/network/embedded"
	"github.com/p4lb/p4lb/internal/network/fabric"
	"github.com/p4lb/p4lb/internal/scheme"
)

// A controlCase is a measured deployment.
type controlCase struct {
	name   string
	scheme string
	what   string
	make   func() (*fabric.Topology, error)
}

// The most demanding scheme is the one with the largest program.
const controlScheme, controlLarge = "qall-poly3", "hermes+rlb-star"

func controlCases() []controlCase {
	leafSpine := fabric.LeafSpine{Leaves: 2, Spines: 2, Parallel: 2, Hosts: 16}
	fatTree := fabric.FatTree{K: 8}
	return []controlCase{
		{"leafspine", controlScheme, "2 x 2 leaf-spine with 32 hosts", leafSpine.Make},
		{"leafspine_large", controlLarge, "2 x 2 leaf-spine with 32 hosts", leafSpine.Make},
		{"fattree8", controlScheme, "fat-tree of 80 switches and 128 hosts", fatTree.Make},
		{"fattree8_large", controlLarge, "fat-tree of 80 switches and 128 hosts", fatTree.Make},
	}
}

// Control measures deployments on embedded switches, as a process and within
// this process.
func Control(ctx context.Context, runs int) ([]Measurement, error) {
	var list []Measurement
	type measure func(controlCase, context.Context, *fabric.Topology, int) ([]Measurement, error)
	for _, measure := range []measure{controlCase.process, controlCase.again} {
		for _, c := range controlCases() {
			t, err := c.make()
			if err != nil {
				return nil, err
			}
			more, err := measure(c, ctx, t, min(runs, 5))
			if err != nil {
				return nil, err
			}
			list = append(list, more...)
		}
	}
	inspect, err := Inspect(ctx, runs)
	return append(list, inspect...), err
}

// process measures p4lb deploy from the start of the command to the end of the
// process, after every switch has been verified.
func (c controlCase) process(ctx context.Context, t *fabric.Topology, runs int) ([]Measurement, error) {
	dir, err := os.MkdirTemp("", "p4lb-bench-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, c.name+".yaml")
	if err := os.WriteFile(file, t.YAML(), 0o666); err != nil {
		return nil, err
	}
	u, err := startAndWeigh(ctx, runs, dir, "deploy", "--scheme", c.scheme, "--topology", file, "--once", "--any-port", "-q")
	if err != nil {
		return nil, err
	}
	what := fmt.Sprintf("p4lb deploy --scheme %s --once, %s, embedded with real sockets, process from start to end including verification, median of %d", c.scheme, c.what, runs)
	return []Measurement{
		{"control." + c.name + ".process", median(u.wall).Seconds(), "s", what},
		{"control." + c.name + ".process_cpu", median(u.busy).Seconds(), "s", "its CPU time, median"},
		{"control." + c.name + ".process_memory", float64(u.memory) / 1024, "MiB", "its own peak resident memory, one run"},
	}, nil
}

// again measures the time and the writes of a second deployment, and of one
// after a link failure, with in-memory connections.
func (c controlCase) again(ctx context.Context, t *fabric.Topology, runs int) ([]Measurement, error) {
	s, err := new(scheme.Library).Find(c.scheme)
	if err != nil {
		return nil, err
	}
	pipelines, err := pipeline.For(ctx, s, codegen.Params{}, t)
	if err != nil {
		return nil, err
	}
	planned, err := plan.New(t, pipelines, plan.Options{})
	if err != nil {
		return nil, err
	}
	links, err := t.FindLinks(t.Leaves()[0].Name + ":" + fmt.Sprint(firstUplink(t)))
	if err != nil {
		return nil, err
	}
	broken, err := plan.New(t.Fail(links...), pipelines, plan.Options{})
	if err != nil {
		return nil, err
	}
	target := embedded.New(embedded.Options{Memory: true})
	defer target.Close()
	k, err := controller.New(ctx, planned, target, controller.DeployOptions{})
	if err != nil {
		return nil, err
	}
	defer k.Close()
	if _, err := k.Deploy(ctx); err != nil {
		return nil, err
	}
	var idle, failed []time.Duration
	written, changed := 0, 0
	for range runs {
		for _, p := range []*plan.Plan{planned, broken} {
			if err := k.SetPlan(ctx, p); err != nil {
				return nil, err
			}
			report, err := k.Deploy(ctx)
			if err != nil {
				return nil, err
			}
			if changed = report.Written(); p == broken {
				failed = append(failed, report.Elapsed)
			}
			report, err = k.Deploy(ctx)
			if err != nil {
				return nil, err
			}
			idle = append(idle, report.Elapsed)
			written += report.Written()
		}
	}
	if written != 0 {
		return nil, errors.New("deploying an unchanged plan wrote entries")
	}
	where := fmt.Sprintf("%s, %s, connections in memory, median of ", c.scheme, c.what)
	return []Measurement{
		{"control." + c.name + ".again", milliseconds(median(idle)), "ms", fmt.Sprintf("deploy an unchanged plan, %s%d", where, len(idle))},
		{"control." + c.name + ".again_written", float64(written), "writes", "in all of these deployments together"},
		{"control." + c.name + ".link", milliseconds(median(failed)), "ms", fmt.Sprintf("deploy after a link of a leaf has failed, %s%d", where, len(failed))},
		{"control." + c.name + ".link_written", float64(changed), "writes", "in one of these deployments"},
	}, nil
}

// firstUplink returns the first port of the first leaf that leads to a switch.
func firstUplink(t *fabric.Topology) int {
	for _, p := range t.Ports(t.Leaves()[0].Name) {
		if p.PeerTier > 0 {
			return p.Number
		}
	}
	return 0
}
