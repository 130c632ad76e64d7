package codegen

import "github.com/p4lb/p4lb/internal/scheme/manifest"

// flows states which packets a decision applies to, and where their path is kept.
type flows struct{ *composition }

func (c *composition) flows() flows { return flows{c} }

// Remembered reports whether the granularity remembers the path of a flow.
func (f flows) Remembered() bool { return f.runs.block(granularity).Holds != "" }

// Holds returns the register with the path of a flow.
func (f flows) Holds() string {
	if name := f.runs.block(granularity).Holds; name != "" {
		return name
	}
	return f.runs.block(choice).Holds
}

// RemembersPath reports whether any block remembers the path of a flow.
func (f flows) RemembersPath() bool {
	return f.Remembered() || f.runs.like(choice) == "cautious" || f.runs.like(choice) == "ordered"
}

// Freshens reports whether the stored path may expire. It is false if every packet
// chooses a path.
func (f flows) Freshens() bool { return f.Holds() != "" && f.runs.like(granularity) != "packet" }

// Granularity returns the unit of traffic of a decision.
func (f flows) Granularity() string { return f.runs.Granularity }

// InTurn reports whether the cells of a flow are numbered and use the paths in
// turn.
func (f flows) InTurn() bool {
	return f.runs.like(granularity) == "flowcell" && f.runs.like(choice) == "round-robin"
}

// TakesTurns reports whether a register stores the next path.
func (f flows) TakesTurns() bool { return f.runs.like(choice) == "round-robin" && !f.InTurn() }

// Kept returns the register with the paths of flowlets or similar parts of flows.
// It returns "" if the program counts cells instead.
func (f flows) Kept() string {
	if f.InTurn() {
		return ""
	}
	return f.runs.block(granularity).Holds
}

// Orders reports whether packets stay in order.
func (f flows) Orders() bool { return f.runs.like(choice) == "ordered" }

// Remembers reports whether the path is remembered from packet to packet.
func (f flows) Remembers() bool {
	return f.Orders() || f.runs.like(choice) == "sampled" && f.Int("m") > 0
}

// paired reports whether flow slots use 15-bit indices (Tofino 2).
func (f flows) paired() bool {
	return f.arch.name == tofino2.name && (f.InTurn() || f.Orders() || f.runs.like(choice) == "cautious" || f.runs.like(choice) == "rehash")
}

// Type returns the type of a flow's slot.
func (f flows) Type() string {
	if f.paired() {
		return "bit<15>"
	}
	return "bit<16>"
}

// timeout returns the pause after which a flow counts as new.
func (f flows) timeout() manifest.Duration {
	for _, name := range []string{"gap", "timeout", "epoch"} {
		if d := f.values[name].Int; d > 0 {
			return manifest.Duration(d)
		}
	}
	return 0
}

// LeastGap returns the smallest flowlet gap. DHLB's probes must be at least two
// gaps apart.
func (f flows) LeastGap() string {
	if gap, ok := f.values["gap"]; ok {
		return ", gap: " + duration(gap.Int)
	}
	return ""
}

// cellsOf returns the number of cells of a register with an index.
func (f flows) cellsOf(index manifest.Index, usual int) int {
	if index == manifest.ByFlow && f.paired() {
		// On Tofino 2 a stage has no room for as many cells of 64 bits as CRC16 has
		// values.
		return usual / 2
	}
	return usual
}
