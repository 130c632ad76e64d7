package codegen

import (
	"fmt"
	"slices"
	"strings"

	"github.com/p4lb/p4lb/internal/text/lists"
)

// levels describes how a Tofino program compares paths.
type levels struct{ *composition }

// Cuts returns the boundaries between the paths' grids.
func (l levels) Cuts() []int { return l.Slots()[:l.Last()] }

// LowCuts returns the cuts of the first 8 paths. A group of containers holds only
// this many differences.
func (l levels) LowCuts() []int { return l.Cuts()[:min(8, l.Last())] }

// HighCuts returns the remaining cuts.
func (l levels) HighCuts() []int { return l.Cuts()[min(8, l.Last()):] }

// EndParams lists the parameters of set_ends.
func (l levels) EndParams() string {
	list := lists.Map(l.Cuts(), func(i int) string { return fmt.Sprint("bit<8> end_", i) })
	return inLines(8, list)
}

// A first is an entry of a table that finds the first of several paths.
type first struct {
	Key  string
	Slot int
	N    int // size of the groups
}

// Firsts returns the entries that find the first path whose cumulated weight
// reaches the drawn number.
func (l levels) Firsts() []first {
	var list []first
	for slot := range l.N() {
		list = append(list, first{Key: only(l.Last(), slot), Slot: slot})
	}
	return list
}

// only returns a key of n fields. Field i, if it exists, matches 0, and the others
// match anything.
func only(n, i int) string {
	key := slices.Repeat([]string{"_"}, n)
	if i < n {
		key[i] = "0"
	}
	return strings.Join(key, ", ")
}

// Ranks reports whether levels carry the slot of their path in the low bits.
func (l levels) Ranks() bool {
	return l.row.like(choice) == "least" || l.row.like(choice) == "cautious"
}

// Width returns the width of a level. Levels that are compared have a separate container. A
// level stored with a time has 32 bits.
func (l levels) Width() int {
	switch {
	case l.row.like(signal) == "piggyback":
		return 32
	case l.Ranks():
		return 16
	}
	return 8
}

// HoldsLeast reports whether the register of paths extracts the path from the smallest level,
// which saves a stage. A stateful ALU has 3 bits for a mask.
func (l levels) HoldsLeast() bool {
	return l.runs.like(choice) == "least" && l.flows().Kept() != "" && l.N() <= 8
}

// RankParams lists the parameters of set_ranks.
func (l levels) RankParams() string {
	list := lists.Map(l.Slots(), func(i int) string { return fmt.Sprint("level_t rank_", i) })
	return inLines(8, list)
}

// Ranked returns the low byte of all levels if the order of a slot breaks ties: the distance of
// each path from this slot, and the path's own slot.
func (l levels) Ranked(first share) string {
	var list []string
	for i := range l.N() {
		rank := i
		if i < first.N {
			rank = (i - first.Slot + first.N) % first.N
		}
		list = append(list, fmt.Sprintf("0x%02X", rank<<4|i))
	}
	return strings.Join(list, ", ")
}

// A round lists pairs of paths to compare. The smaller of each pair takes the first
// one's place.
type round struct {
	Number int
	Pairs  []pair
}

type pair struct{ First, Second int }

// Rounds returns the rounds of pairwise comparison until one path is left.
func (l levels) Rounds() []round {
	var list []round
	for distance := 1; distance < l.N(); distance *= 2 {
		r := round{Number: len(list)}
		for i := 0; i+distance < l.N(); i += 2 * distance {
			r.Pairs = append(r.Pairs, pair{i, i + distance})
		}
		list = append(list, r)
	}
	return list
}

// ShareType returns the type of a share of marks.
func (l levels) ShareType() string {
	if l.Leasts() {
		return "level_t"
	}
	return "bit<8>"
}

// Leasts reports whether the choice minimises the share of marks.
func (l levels) Leasts() bool { return l.row.like(signal) == "marks" }

// Closed returns a level that no usable path has: the highest value above the rank
// and the slot.
func (l levels) Closed() string {
	if l.Leasts() {
		return "0xFFF0"
	}
	return "0xF000"
}

// DecideSize returns the number of entries of the table that moves flows.
func (l levels) DecideSize() int { return 2*l.N() + 3 }
