package codegen

import (
	"fmt"
	"math"
	"math/big"
)

// detours describes RLB.
type detours struct{ *composition }

func (c *composition) detours() detours { return detours{c} }

// QTh returns RLB's Q_th: the given value, or d·C, the lower end of its range.
func (d detours) QTh() int64 {
	if given := d.Int("qth"); given != 0 {
		return given
	}
	return d.linkBytes()
}

// RecirculationTime returns the recirculation time of a byte in us/2^32.
func (d detours) RecirculationTime() int64 { return (8_000_000 << 32) / d.Int("rcrate") }

// linkBytes returns d·C in bytes: the data in flight when a warning is sent.
func (d detours) linkBytes() int64 {
	bits := new(big.Int).Mul(big.NewInt(d.Int("link")), big.NewInt(d.values["delay"].Int))
	return bits.Quo(bits, big.NewInt(8_000_000_000)).Int64()
}

// Star reports whether the guard is RLB*, which limits recirculations.
func (d detours) Star() bool { return d.row.like(guard) == "rlb-star" }

// WarningType returns the type of a cell of RLB's warnings.
func (d detours) WarningType() string {
	if d.Star() {
		return "warning_t"
	}
	return "ticks_t"
}

// Until returns the field with the time until which a warning holds.
func (d detours) Until() string {
	if d.Star() {
		return "held.until"
	}
	return "held"
}

// Flat reports whether statements for packets with several paths have a condition each
// instead of one common branch. On Tofino 1 a branch waits for the preceding
// statements, and the following statements wait for the branch, so RLB's prediction
// and the path choice would use their stages in sequence.
func (d detours) Flat() bool {
	alone := d.flows().InTurn() || d.runs.like(choice) == "sampled" && d.runs.like(granularity) == "packet"
	return d.arch.name == "tna" && d.In("reroute") && !d.In("again") && alone
}

// Grouped returns a statement for packets with several paths.
func (d detours) Grouped(statement string) string {
	if !d.Flat() {
		return statement
	}
	return "if (meta.n != 0) {\n" + statement + "\n}"
}

// Derivative reports whether RLB uses the growth of queues.
func (d detours) Derivative() bool { return d.Word("predict") == "derivative" }

// WarnShift returns T_warn in intervals dt, as the nearest power of 2.
func (d detours) WarnShift() int {
	return max(0, int(math.Round(math.Log2(d.warnRatio()))))
}

func (d detours) warnRatio() float64 {
	return float64(d.values["twarn"].Int) / float64(max(1, d.values["dt"].Int))
}

// PredictionError returns the deviation of the power of 2 from the ratio.
func (d detours) PredictionError() string {
	return percent(math.Abs(float64(int(1)<<d.WarnShift())/d.warnRatio() - 1))
}

// Entries returns the entries for RLB's walk over the paths: for each path, the first one in the
// order of slots without a warning.
func (d detours) Entries() []first {
	var list []first
	for n := 2; n <= d.N(); n++ {
		for slot := range n {
			for turn := range n {
				to := (slot + turn) % n
				list = append(list, first{fmt.Sprintf("%d, %s", slot, only(d.N(), to)), to, n})
			}
		}
	}
	return list
}

// Size returns the number of detours.
func (d detours) Size() int { return len(d.Entries()) }

// AgainSlot describes the slot that a recirculated packet carries.
func (d detours) AgainSlot() string {
	switch {
	case !d.Star():
		return "the path that the flow gets"
	case d.runs.like(choice) == "cautious":
		return "the path that the flow gets, or that the packet waits for"
	}
	return "the path that the packet waits for"
}

// Task returns the parameters of RLB's Eq. 5.
func (d detours) Task() string {
	return fmt.Sprintf("limit: %d, incast: %d, rate: %d, delay: %s, pause: %d",
		d.values["rc"].Int, d.values["incast"].Int, d.values["link"].Int, duration(d.values["delay"].Int), d.values["qpfc"].Int)
}
