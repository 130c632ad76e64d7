package network

import (
	"fmt"
	"os"
	"runtime"
	"strings"

	"github.com/p4lb/p4lb/cmd/p4lb/internal/cli"
	"github.com/p4lb/p4lb/internal/lab"
	"github.com/p4lb/p4lb/internal/lab/spec"
	"github.com/p4lb/p4lb/internal/network/fabric"
)

// warnOfStrain warns if the flows exceed the capacity of this machine's switches,
// because the result would measure the machine.
func warnOfStrain(c *cli.Console, x *spec.Experiment, t *fabric.Topology, world string) error {
	rate, most, err := lab.Strain(x, t, world, runtime.NumCPU())
	if err == nil && rate > most {
		c.Warning("the machine is the bottleneck, not the network: about %.0f packets a second through switches, of %.0f that %s switches carry here; use a lower --load or slower links", rate, most, world)
	}
	return err
}

// A cpuTime is how long the machine's processors have worked and rested, in ticks.
type cpuTime struct{ busy, idle float64 }

// readCPU reads the times of all processors together; zero where the system does not
// tell them.
func readCPU() cpuTime {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return cpuTime{}
	}
	line, _, _ := strings.Cut(string(text), "\n")
	return parseCPU(line)
}

// parseCPU reads the line of /proc/stat that begins with cpu: user, nice, system, idle,
// iowait, irq, softirq and steal.
func parseCPU(line string) (t cpuTime) {
	for i, word := range strings.Fields(line) {
		var v float64
		if _, err := fmt.Sscan(word, &v); err != nil {
			continue // the name
		}
		switch i {
		case 4, 5:
			t.idle += v
		case 1, 2, 3, 6, 7, 8:
			t.busy += v
		}
	}
	return t
}

// saturated is the CPU utilisation from which the machine affects the results.
const saturated = 0.9

// warnOfBusy warns if the processors were busy all the time since before.
func warnOfBusy(c *cli.Console, before, after cpuTime) {
	busy, idle := after.busy-before.busy, after.idle-before.idle
	if share := busy / (busy + idle); busy+idle > 0 && share > saturated {
		c.Warning("the machine is the bottleneck, not the network: its processors were busy %.0f %% of the time; completion times are too long", 100*share)
	}
}
