package codegen

import (
	"fmt"
	"math"
	"math/rand/v2"
)

// probing describes probes and their results.
type probing struct{ *composition }

// Marks reports whether probes are marked at long queues.
func (p probing) Marks() bool { return p.In("ecn") }

// OneWay reports whether the program measures one-way delays.
func (p probing) OneWay() bool { return p.row.like(signal) == "one-way" }

// Periods returns the range of DHLB's probe period, for the controller. The paper requires
// at least twice the flowlet gap, because flowlets would otherwise move too fast.
func (p probing) Periods() string {
	least := "0us"
	if gap, ok := p.values["gap"]; ok {
		least = Time.format(2 * gap.Int)
	}
	return fmt.Sprintf("%s to %s, theta %s", least, p.Word("tmax"), p.Word("theta"))
}

// Sorts reports whether there are several kinds of recirculated packets.
func (p probing) Sorts() bool { return p.Own() || p.In("again") }

// Own reports whether the switch generates probes.
func (p probing) Own() bool { return p.In("cpu") }

// Delays reports whether the program reads the delays of all paths at once.
func (p probing) Delays() bool { return p.Classes() || p.detours().Star() }

// Classes reports whether probes classify paths.
func (p probing) Classes() bool { return p.row.like(signal) == "classes" && p.Edge() }

// KeepsMarks reports whether the program stores each path's share of marked probes.
func (p probing) KeepsMarks() bool { return p.Marks() && p.Edge() }

// Picked returns the prefix of the names of the two delays that RLB* compares.
func (p probing) Picked() string {
	if p.Moves() {
		return "picked"
	}
	return "rtt"
}

// Start returns the time to which queueing delays are added.
func (p probing) Start() string {
	if p.OneWay() {
		return "meta.start"
	}
	return "meta.now"
}

// Moves reports whether packets are recirculated to move their flow.
func (p probing) Moves() bool { return p.runs.like(choice) == "cautious" }

// MarkedUp returns the increment for a marked acknowledgement.
func (p probing) MarkedUp() int64 { return 100 - p.Int("marked") }

// MarkedDown returns the decrement for an unmarked acknowledgement, which is the share of marks
// in percent that moves a flow.
func (p probing) MarkedDown() int64 { return p.Int("marked") }

// ECNCells returns the queue length from which probes are marked.
func (p probing) ECNCells() int64 { return p.Int("ecnk") * packet / int64(p.arch.cellBytes) }

// ShareError returns the deviation of the filter's share of marked probes from the
// average in the program for BMv2, for randomly marked probes. The filter decays
// with time; for periodic probes, this is equivalent to their number.
func (p probing) ShareError() string {
	const probes = 20000
	r := rand.New(rand.NewPCG(1, 1))
	keep := math.Exp(-1 / 7.5)
	sum, filter, average := 0.0, 0.0, 0
	for i := range probes {
		mark := r.Float64() < 0.5+0.5*math.Sin(float64(i)/100)
		average -= (average + 7) >> 3
		filter *= keep
		if mark {
			average += 31
			filter += 255 * (1 - keep)
		}
		sum += math.Abs(filter-float64(average)) / 255
	}
	return percent(sum/probes) + " of all probes on average, where all come back"
}

// Forgotten returns the age at which a delay is ignored: 20 lost probes.
func (p probing) Forgotten() string { return duration(20 * p.values["tpath"].Int) }

// Averaged returns the averaging time for shares of marked probes.
func (p probing) Averaged() string { return duration(p.values["tpath"].Int * 15 / 2) }
