package codegen

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/p4lb/p4lb/internal/text/lists"
)

// Additional methods for the Tofino templates with probes and with recirculation.

// Delays reports whether the program reads the delays of all paths at once.
func (v *view) Delays() bool { return v.Classes() || v.Star() }

// Classes reports whether probes classify paths.
func (v *view) Classes() bool { return v.row.like(signal) == "classes" && v.Edge() }

// KeepsMarks reports whether the program stores each path's share of marked probes.
func (v *view) KeepsMarks() bool { return v.Marks() && v.Edge() }

// ShareType returns the type of a share of marks.
func (v *view) ShareType() string {
	if v.Leasts() {
		return "level_t"
	}
	return "bit<8>"
}

// Leasts reports whether the choice minimises the share of marks.
func (v *view) Leasts() bool { return v.row.like(signal) == "marks" }

// Picked returns the prefix of the names of the two delays that RLB* compares.
func (v *view) Picked() string {
	if v.Moves() {
		return "picked"
	}
	return "rtt"
}

// Start returns the time to which queueing delays are added.
func (v *view) Start() string {
	if v.OneWay() {
		return "meta.start"
	}
	return "meta.now"
}

// Ghost reports whether the ghost thread provides the queue lengths.
func (v *view) Ghost() bool { return v.In("ghost") }

// Queues returns the suffixes of names that exist once for each compared queue.
func (v *view) Queues() []string {
	if v.DrawsFirst() {
		return []string{"_a", "_b", "_m"}[:len(v.Looks())]
	}
	return lists.Map(v.Slots(), func(i int) string { return fmt.Sprint("_", i) })
}

// QueuesFirst returns the queues that are read before the first comparison.
func (v *view) QueuesFirst() []string {
	if v.DrawsFirst() {
		return v.Queues()[:2]
	}
	return v.Queues()
}

// Priorities returns the priorities of PFC.
func (v *view) Priorities() []int { return count(8) }

// Grade returns the queue length in packets at which a grade begins.
func (v *view) Grade(grade int) int64 {
	return v.Int("qcap") * v.Int(fmt.Sprint("grade", grade)) / 100
}

// Enabled returns the bit of PFC frames that enables the lossless priority.
func (v *view) Enabled() int { return 1 << v.Int("priority") }

// Grades returns the ranges of queue lengths, in cells, of the grades 0 to 3.
func (v *view) Grades() []eighth {
	var list []eighth
	from := 0
	for i := range 4 {
		to := 1<<19 - 1
		if i < 3 {
			to = int(v.Grade(i+1)*packet)/v.arch.cellBytes - 1
		}
		if to >= from {
			list = append(list, eighth{from, to, i * 256})
			from = to + 1
		}
	}
	return list
}

// PausedLevel returns the level of paused ports.
func (v *view) PausedLevel() int { return 4 * 256 }

// ResumedLevel returns the level of a port from the end of a pause to its next departure. It is
// grade 3, because packets waited.
func (v *view) ResumedLevel() int { return 3 * 256 }

// Looks returns the paths whose queues are compared if DrawsFirst.
func (v *view) Looks() []string {
	list := []string{"the first path drawn", "the second path drawn"}
	if v.Remembers() {
		list = append(list, "the path remembered")
	}
	return list
}

// PathKey returns the key for looking up queues.
func (v *view) PathKey() string {
	if v.Ghost() {
		return "queue"
	}
	return "port"
}

// PathType returns the type of this key.
func (v *view) PathType() string {
	if v.Ghost() {
		return "qid_t"
	}
	return "PortId_t"
}

// NoQueue returns the queue number for slots that a group does not have.
func (v *view) NoQueue() int { return 2047 }

// Moves reports whether packets are recirculated to move their flow.
func (v *view) Moves() bool { return v.runs.like(choice) == "cautious" }

// Closed returns a level that no usable path has: the highest value above the rank
// and the slot.
func (v *view) Closed() string {
	if v.Leasts() {
		return "0xFFF0"
	}
	return "0xF000"
}

// AgainSlot describes the slot that a recirculated packet carries.
func (v *view) AgainSlot() string {
	switch {
	case !v.Star():
		return "the path that the flow gets"
	case v.runs.like(choice) == "cautious":
		return "the path that the flow gets, or that the packet waits for"
	}
	return "the path that the packet waits for"
}

// DecideSize returns the number of entries of the table that moves flows.
func (v *view) DecideSize() int { return 2*v.N() + 3 }

// MarkedUp returns the increment for a marked acknowledgement.
func (v *view) MarkedUp() int64 { return 100 - v.Int("marked") }

// MarkedDown returns the decrement for an unmarked acknowledgement, which is the share of marks
// in percent that moves a flow.
func (v *view) MarkedDown() int64 { return v.Int("marked") }

// WindowTicks returns the window for measuring rates in ticks.
func (v *view) WindowTicks() int64 { return ((1<<v.Int("window"))*1000 + tick/2) / tick }

// WindowTime returns this window formatted for users.
func (v *view) WindowTime() string { return fmt.Sprintf("%d us", 1<<v.Int("window")) }

// PacketBytes returns the packet size for converting queue lengths.
func (v *view) PacketBytes() int { return packet }

// CellBytes returns the unit of queue lengths in bytes.
func (v *view) CellBytes() int { return v.arch.cellBytes }

// ECNCells returns the queue length from which probes are marked.
func (v *view) ECNCells() int64 { return v.Int("ecnk") * packet / int64(v.arch.cellBytes) }

// ShareError returns the deviation of the filter's share of marked probes from the
// average in the program for BMv2, for randomly marked probes. The filter decays
// with time; for periodic probes, this is equivalent to their number.
func (v *view) ShareError() string {
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
