// Package bench measures p4lb on the machine that it runs on: the compiler, the
// generator, the embedded switch, the simulator, deployments, fits. Each function
// returns figures with their units and what was run; CPU time rather than that of
// the clock wherever another process could be in the way.
package bench

import (
	"context"
	"fmt"
	"os"
	"time"
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
