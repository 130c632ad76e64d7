package network

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/p4lb/p4lb/cmd/p4lb/internal/cli"
	"github.com/p4lb/p4lb/cmd/p4lb/internal/view"
	"github.com/p4lb/p4lb/internal/bmv2"
	"github.com/p4lb/p4lb/internal/controller/inspect"
	"github.com/p4lb/p4lb/internal/controller/registers"
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

// A cpuTime counts the ticks in which the machine's processors have worked and
// rested.
type cpuTime struct{ busy, idle float64 }

// readCPU reads the times of all processors together. It returns zero on systems
// that do not report them.
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

// saturated is the CPU utilisation above which the machine affects the results.
const saturated = 0.9

// unreadBy returns the number of packets that the switches of a deployment did not
// read in time. It returns 0 if the switches do not count them.
func unreadBy(ctx context.Context, c *cli.Console, state string) (n uint64) {
	s, err := (&reach{state: state}).open(ctx, c, nil)
	if err != nil {
		return 0
	}
	defer s.close()
	for _, sw := range s.switches {
		meter, ok := sw.registers.(registers.Meter)
		if !ok {
			continue
		}
		list, _ := meter.PortCounts(ctx)
		for i := range list {
			n += list[i].Drops[bmv2.DropUnread]
		}
	}
	return n
}

// warnOfUnread warns of packets that the switches did not read in time.
func warnOfUnread(c *cli.Console, n uint64) {
	if n > 0 {
		c.Warning("the machine is the bottleneck, not the network: the switches did not read %d packets in time; use a lower load, slower links or fewer hosts", n)
	}
}

// A strainWatch warns once while switches are inspected if the machine limits them.
type strainWatch struct {
	c      *cli.Console
	cpu    cpuTime
	since  time.Time
	warned bool
}

// busyFor is the shortest time over which a strainWatch measures CPU utilisation.
const busyFor = time.Second

// see processes a round of readings, read at the time now. readCPU is called only
// when the interval has passed. The first reading of drops counts in full.
func (w *strainWatch) see(r *view.Round, now time.Time, readCPU func() cpuTime) {
	if w.warned {
		return
	}
	var unread float64
	idle := true
	for _, s := range r.Switches {
		if s.Snapshot == nil {
			continue
		}
		for i := range s.Snapshot.Readings {
			switch v := &s.Snapshot.Readings[i]; v.Quantity {
			case inspect.Drops + ": " + bmv2.DropUnread.String():
				unread += v.Value
			case inspect.InRate:
				idle = idle && v.Value == 0
			}
		}
	}
	if w.warned = unread > 0; w.warned {
		warnOfUnread(w.c, uint64(unread))
		return
	}
	if !w.since.IsZero() && now.Sub(w.since) < busyFor {
		return
	}
	cpu := readCPU()
	if !w.since.IsZero() && !idle {
		w.warned = warnOfBusy(w.c, w.cpu, cpu)
	}
	w.cpu, w.since = cpu, now
}

// warnOfBusy warns if the processors were busy all the time since before.
// It reports whether it warned.
func warnOfBusy(c *cli.Console, before, after cpuTime) bool {
	busy, idle := after.busy-before.busy, after.idle-before.idle
	share := busy / (busy + idle)
	if busy+idle <= 0 || share <= saturated {
		return false
	}
	c.Warning("the machine is the bottleneck, not the network: its processors were busy %.0f %% of the time; rates are too low and completion times too long", 100*share)
	return true
}
