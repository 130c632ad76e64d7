// Package bench measures p4lb on the machine that it runs on: the compiler, the
// generator, the embedded switch, the simulator, deployments and fits. Each
// function returns values with units and descriptions. Where other processes could
// interfere, functions measure CPU time instead of elapsed time.
package bench

import (
	"bytes"
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

// A Measurement is one result.
type Measurement struct {
	Name   string  `json:"name"`
	Value  float64 `json:"value"`
	Unit   string  `json:"unit"`
	Detail string  `json:"detail"`
}

// executable returns this binary, for measurements of complete commands.
func executable() (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("finding the program: %w", err)
	}
	return self, nil
}

// A usage is the resource usage of p4lb processes from start to end.
type usage struct {
	wall, busy []time.Duration
	memory     int64  // peak memory of an additional process, in KiB; 0: not measured
	said       []byte // output of the last process
}

// start runs a p4lb command in a folder several times.
func start(ctx context.Context, runs int, dir string, args ...string) (u usage, err error) {
	self, err := executable()
	if err != nil {
		return u, err
	}
	for range runs {
		cmd := exec.CommandContext(ctx, self, args...)
		cmd.Args[0] = "p4lb" // otherwise a test binary would run tests
		cmd.Dir = dir
		began := time.Now()
		if u.said, err = cmd.CombinedOutput(); err != nil {
			return u, fmt.Errorf("running p4lb %s: %w: %s", args[0], err, u.said)
		}
		u.wall = append(u.wall, time.Since(began))
		u.busy = append(u.busy, cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime())
	}
	return u, nil
}

// startAndWeigh is start, followed by one more run that measures the peak memory.
func startAndWeigh(ctx context.Context, runs int, dir string, args ...string) (u usage, err error) {
	if u, err = start(ctx, runs, dir, args...); err != nil {
		return u, err
	}
	self, err := executable()
	if err != nil {
		return u, err
	}
	var said []byte
	if u.memory, said, err = peakOf(ctx, dir, self, args...); err != nil {
		return u, fmt.Errorf("running p4lb %s: %w: %s", args[0], err, said)
	}
	return u, nil
}

// peakOf runs a program and returns its peak resident memory in KiB and its output. The
// resource usage of a child begins with the memory of its parent at the fork, so peakOf
// reads the peak of the program itself every millisecond. Without /proc it returns the
// resource usage.
func peakOf(ctx context.Context, dir, program string, args ...string) (peak int64, said []byte, err error) {
	var out bytes.Buffer
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &out, &out
	cmd.Args[0] = "p4lb" // otherwise a test binary would run tests
	if err := cmd.Start(); err != nil {
		return 0, nil, err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	status := fmt.Sprintf("/proc/%d/status", cmd.Process.Pid)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case err := <-ended:
			if peak == 0 {
				peak = cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss
			}
			return peak, out.Bytes(), err
		case <-tick.C:
			text, _ := os.ReadFile(status) // a process that has ended has no status
			if _, rest, found := bytes.Cut(text, []byte("VmHWM:")); found {
				var n int64
				fmt.Sscan(string(rest), &n)
				peak = max(peak, n)
			}
		}
	}
}

// planOf plans the configuration of a leaf-spine network with a scheme.
func planOf(name string, p codegen.Params, t *fabric.Topology) (*plan.Plan, error) {
	s, err := new(scheme.Library).Find(name)
	if err != nil {
		return nil, err
	}
	pipelines := map[fabric.Role]*plan.Pipeline{}
	for _, sw := range t.Switches {
		role := sw.Role
		if pipelines[role] != nil {
			continue
		}
		p.Role = string(role)
		if pipelines[role], err = pipeline.Of(s, p); err != nil {
			return nil, err
		}
	}
	return plan.New(t, pipelines, plan.Options{})
}

// machineSteps is the length of the loop of Machine.
const machineSteps = 1_000_000

// Machine measures a loop of dependent integer operations.
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
		"six dependent integer operations, CPU time of one core: the current speed of the machine"}
}
