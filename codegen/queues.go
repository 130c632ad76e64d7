package codegen

import (
	"fmt"

	"github.com/p4lb/p4lb/internal/text/lists"
)

// queues describes how a Tofino program reads the lengths of queues.
type queues struct{ *composition }

// Ghost reports whether the ghost thread provides the queue lengths.
func (q queues) Ghost() bool { return q.In("ghost") }

// Names returns the suffixes of names that exist once for each compared queue.
func (q queues) Names() []string {
	if q.sampling().First() {
		return []string{"_a", "_b", "_m"}[:len(q.Paths())]
	}
	return lists.Map(q.Slots(), func(i int) string { return fmt.Sprint("_", i) })
}

// First returns the queues that are read before the first comparison.
func (q queues) First() []string {
	if q.sampling().First() {
		return q.Names()[:2]
	}
	return q.Names()
}

// Priorities returns the priorities of PFC.
func (q queues) Priorities() []int { return count(8) }

// Grade returns the queue length in packets at which a grade begins.
func (q queues) Grade(grade int) int64 {
	return q.Int("qcap") * q.Int(fmt.Sprint("grade", grade)) / 100
}

// Enabled returns the bit of PFC frames that enables the lossless priority.
func (q queues) Enabled() int { return 1 << q.Int("priority") }

// Grades returns the ranges of queue lengths, in cells, of the grades 0 to 3.
func (q queues) Grades() []eighth {
	var list []eighth
	from := 0
	for i := range 4 {
		to := 1<<19 - 1
		if i < 3 {
			to = int(q.Grade(i+1)*packet)/q.arch.cellBytes - 1
		}
		if to >= from {
			list = append(list, eighth{from, to, i * 256})
			from = to + 1
		}
	}
	return list
}

// Paused returns the level of paused ports.
func (q queues) Paused() int { return 4 * 256 }

// Resumed returns the level of a port from the end of a pause to its next departure. It is
// grade 3, because packets waited.
func (q queues) Resumed() int { return 3 * 256 }

// Paths returns the paths whose queues are compared if the program draws paths first.
func (q queues) Paths() []string {
	list := []string{"the first path drawn", "the second path drawn"}
	if q.flows().Remembers() {
		list = append(list, "the path remembered")
	}
	return list
}

// Key returns the key for looking up queues.
func (q queues) Key() string {
	if q.Ghost() {
		return "queue"
	}
	return "port"
}

// KeyType returns the type of this key.
func (q queues) KeyType() string {
	if q.Ghost() {
		return "qid_t"
	}
	return "PortId_t"
}

// None returns the queue number for slots that a group does not have.
func (q queues) None() int { return 2047 }
