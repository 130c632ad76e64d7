// Package bench measures p4lb on the machine that it runs on: the compiler, the
// generator, the embedded switch, the simulator, deployments, fits. Each function
// returns figures with their units and what was run; CPU time rather than that of
// the clock wherever another process could be in the way.
package bench

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/p4lb/p4lb/codegen"
	"github.com/p4lb/p4lb/internal/controller/pipeline"
	"github.com/p4lb/p4lb/internal/controller/plan"
	"github.com/p4lb/p4lb/internal/network/fabric"
	"github.com/p4lb/p4lb/internal/scheme"
)

// A measurement is one line of bench.
type Measurement struct {
	Name   string  `json:"name"`
	Value  float64 `json:"value"`
	Unit   string  `json:"unit"`
	Detail string  `json:"detail"`
}

// executable is this binary, for what is measured as a user starts it.
func executable() (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("finding the program: %w", err)
	}
	return self, nil
}

// A usage is what processes of p4lb took, from start to end.
type usage struct {
	wall, busy []time.Duration
	memory     []int64 // KiB, at the most
	said       []byte  // by the last
}

// start runs p4lb in a folder as a user does, some times.
func start(ctx context.Context, runs int, dir string, args ...string) (u usage, err error) {
	self, err := executable()
	if err != nil {
		return u, err
	}
	for range runs {
		cmd := exec.CommandContext(ctx, self, args...)
		cmd.Args[0] = "p4lb" // what a program of tests goes by, which would run these otherwise
		cmd.Dir = dir
		began := time.Now()
		if u.said, err = cmd.CombinedOutput(); err != nil {
			return u, fmt.Errorf("running p4lb %s: %w: %s", args[0], err, u.said)
		}
		u.wall = append(u.wall, time.Since(began))
		u.busy = append(u.busy, cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime())
		u.memory = append(u.memory, cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss)
	}
	return u, nil
}

// planOf plans what the leaves and the spines of a network hold that run a scheme.
func planOf(name string, p codegen.Params, t *fabric.Topology) (*plan.Plan, error) {
	s, err := new(scheme.Library).Find(name)
	if err != nil {
		return nil, err
	}
	pipelines := map[fabric.Role]*plan.Pipeline{}
	for _, role := range []fabric.Role{fabric.Leaf, fabric.Spine} {
		p.Role = string(role)
		if pipelines[role], err = pipeline.Of(s, p); err != nil {
			return nil, err
		}
	}
	return plan.New(t, pipelines, plan.Options{})
}

// machineSteps is the length of the loop of Machine.
const machineSteps = 1_000_000

// Machine measures a loop of integer operations that wait for each other.
func Machine(ctx context.Context, runs int) Measurement {
	x := uint64(1)
	spent, err := repeat(ctx, runs, time.Second, threadTime, func() error {
		for range machineSteps {
			x ^= x << 13
			x ^= x >> 7
			x ^= x << 17
		}
		return nil
	})
	if err != nil || x == 0 {
		return Measurement{Name: "machine.step", Unit: "ns", Detail: "interrupted"}
	}
	return Measurement{"machine.step", float64(median(spent).Nanoseconds()) / machineSteps, "ns",
		"six dependent integer operations, CPU time of one core: how fast the machine is now"}
}
