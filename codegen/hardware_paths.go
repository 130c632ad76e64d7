package codegen

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/p4lb/p4lb/internal/text/lists"
)

// Additional methods for the Tofino templates with probes and with recirculation.

// Delays reports whether the delays of all paths are looked at at once.
func (v *view) Delays() bool { return v.Classes() || v.Star() }

// Classes reports whether probes put paths into classes.
func (v *view) Classes() bool { return v.row.like(signal) == "classes" && v.Edge() }

// KeepsMarks reports whether the share of marked probes of each path is kept.
func (v *view) KeepsMarks() bool { return v.Marks() && v.Edge() }

// ShareType is the type of a share of marks.
func (v *view) ShareType() string {
	if v.Leasts() {
		return "level_t"
	}
	return "bit<8>"
}

// Leasts reports whether the choice minimises the share of marks.
func (v *view) Leasts() bool { return v.row.like(signal) == "marks" }

// Picked begins the names of the two delays that RLB* picks.
func (v *view) Picked() string {
	if v.Moves() {
		return "picked"
	}
	return "rtt"
}

// Start is the time that queueing delays are added to.
func (v *view) Start() string {
	if v.OneWay() {
		return "meta.start"
	}
	return "meta.now"
}

// Ghost reports whether the ghost thread knows the queues.
func (v *view) Ghost() bool { return v.In("ghost") }

// Queues returns the suffixes of names that exist once for each compared queue.
func (v *view) Queues() []string {
	if v.DrawsFirst() {
		return []string{"_a", "_b", "_m"}[:len(v.Looks())]
	}
	return lists.Map(v.Slots(), func(i int) string { return fmt.Sprint("_", i) })
}

// QueuesFirst are the queues that are looked at before anything is compared.
func (v *view) QueuesFirst() []string {
	if v.DrawsFirst() {
		return v.Queues()[:2]
	}
	return v.Queues()
}

// Priorities are the priorities of PFC.
func (v *view) Priorities() []int { return count(8) }

// Grade is the queue length, in packets, from which a grade begins.
func (v *view) Grade(grade int) int64 {
	return v.Int("qcap") * v.Int(fmt.Sprint("grade", grade)) / 100
}

// Enabled is the bit of PFC frames that enables the lossless priority.
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

// PausedLevel is the level of paused ports.
func (v *view) PausedLevel() int { return 4 * 256 }

// ResumedLevel is the level of a port from the end of a pause to its next departure:
// grade 3, because packets waited.
func (v *view) ResumedLevel() int { return 3 * 256 }

// Looks are the paths that DrawsFirst looks at.
func (v *view) Looks() []string {
	list := []string{"the first path drawn", "the second path drawn"}
	if v.Remembers() {
		list = append(list, "the path remembered")
	}
	return list
}

// PathKey is what queues are looked up by.
func (v *view) PathKey() string {
	if v.Ghost() {
		return "queue"
	}
	return "port"
}

// PathType is the type of what queues are looked up by.
func (v *view) PathType() string {
	if v.Ghost() {
		return "qid_t"
	}
	return "PortId_t"
}

// NoQueue stands in for the queues of slots that a group does not have.
func (v *view) NoQueue() int { return 2047 }

// Moves reports whether packets recirculate to move their flow.
func (v *view) Moves() bool { return v.runs.like(choice) == "cautious" }

// Closed is a level that no open path has: levels of 8 bits or a class,
// above the rank and the slot.
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

// DecideSize is the number of lines of the table that moves flows.
func (v *view) DecideSize() int { return 2*v.N() + 3 }

// MarkedUp is the increment for a marked acknowledgement, MarkedDown the decrement for
// an unmarked one.
func (v *view) MarkedUp() int64 { return 100 - v.Int("marked") }

// MarkedDown is the share of marks that moves a flow, in percent.
func (v *view) MarkedDown() int64 { return v.Int("marked") }

// WindowTicks is the window that rates are measured in.
func (v *view) WindowTicks() int64 { return ((1<<v.Int("window"))*1000 + tick/2) / tick }

// WindowTime is that as a user writes it.
func (v *view) WindowTime() string { return fmt.Sprintf("%d us", 1<<v.Int("window")) }

// PacketBytes is the size of packets that queues are measured in.
func (v *view) PacketBytes() int { return packet }

// CellBytes is what queues count in.
func (v *view) CellBytes() int { return v.arch.cellBytes }

// ECNCells is the queue that marks probes.
func (v *view) ECNCells() int64 { return v.Int("ecnk") * packet / int64(v.arch.cellBytes) }

// ShareError is how far the filter's share of marked probes is from the average
// of the program for BMv2, over probes that are marked at random: the filter
// fades by the time that has passed, which for probes is as good as their number.
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
