package codegen

import "math"

// sampling describes how random paths are drawn.
type sampling struct{ *composition }

func (c *composition) sampling() sampling { return sampling{c} }

// Draws returns the random draws of a sampled choice, at most one for each path.
func (s sampling) Draws() []int { return count(min(int(s.Int("d")), s.N())) }

// Drawn returns the draws of a shuffle: as many as a sampled choice compares, or
// all paths for an ordered choice.
func (s sampling) Drawn() []int {
	if s.Few() {
		return s.Slots()
	}
	return s.Draws()
}

// Memories returns the remembered paths of a sampled choice.
func (s sampling) Memories() []int { return count(int(s.Int("m"))) }

// Few reports whether an ordered choice examines fewer paths than there are.
func (s sampling) Few() bool { return s.runs.like(choice) == "ordered" && int(s.Int("d")) < s.N() }

// Shuffles reports whether paths are drawn without repetition.
func (s sampling) Shuffles() bool { return s.runs.like(choice) == "sampled" || s.Few() }

// FromHash reports whether draws are taken from the 5-tuple.
func (s sampling) FromHash() bool { return s.runs.like(granularity) == "flow" && s.runs.hashes() }

// First reports whether the program first draws two paths and then reads the queues of these
// and of the remembered path. There are not enough containers for the queues of more than 8
// paths.
func (s sampling) First() bool {
	return !s.arch.software && s.runs.like(choice) == "sampled" && s.runs.like(granularity) == "packet" && s.N() > 8
}

// draws is the number of possible random draws, which are divided among the paths.
const draws = 4096

// A share is the range of draws that select one slot in a group of n.
type share struct{ N, Last, Slot, From, To int }

// Shares returns the shares of all slots, for groups of all sizes.
func (s sampling) Shares() []share {
	var list []share
	for n := 1; n <= s.N(); n++ {
		for k := range n {
			list = append(list, share{n, n - 1, k, draws * k / n, draws*(k+1)/n - 1})
		}
	}
	return list
}

// SharesSize returns the number of shares.
func (s sampling) SharesSize() int { return len(s.Shares()) }

// SpreadError returns the largest deviation of a path's share from an equal share.
func (s sampling) SpreadError() string {
	worst := 0.0
	for _, s := range s.Shares() {
		worst = max(worst, math.Abs(float64((s.To-s.From+1)*s.N)/draws-1))
	}
	return percent(worst)
}

// A wrapped is the sum From of two slots in a group of n, and the Slot to which it
// wraps.
type wrapped struct{ N, From, Slot int }

// Wraps returns the sums of two slots of a group of n, with their values modulo n.
func (s sampling) Wraps() []wrapped {
	var list []wrapped
	for n := 1; n <= s.N(); n++ {
		for sum := range 2*n - 1 {
			list = append(list, wrapped{n, sum, sum % n})
		}
	}
	return list
}

// WrapsSize returns the number of wraps.
func (s sampling) WrapsSize() int { return len(s.Wraps()) }
