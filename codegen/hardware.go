package codegen

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/p4lb/p4lb/internal/scheme/manifest"
	"github.com/p4lb/p4lb/internal/text/lists"
)

// Additional methods for the Tofino templates: sizes of tables that replace
// arithmetic, and their errors.

// Include returns the name of the file that declares the architecture.
func (v *view) Include() string { return v.arch.name + ".p4" }

// SlotBits returns the width of slots. If a register stores a slot together with a time, both
// must have the same width.
func (v *view) SlotBits() int {
	switch {
	case v.Orders():
		return 32
	case v.runs.like(choice) == "best-hop":
		return 16
	}
	return 8
}

// RecircPort returns the recirculation port of a pipe.
func (v *view) RecircPort() int { return v.arch.recircPort }

// RecircPorts lists the recirculation ports of the four pipes.
func (v *view) RecircPorts() string {
	var list []string
	for pipe := range 4 {
		list = append(list, fmt.Sprint(pipe<<7|v.arch.recircPort))
	}
	return strings.Join(list, ", ")
}

// NoPort returns the port for slots that a group does not have.
func (v *view) NoPort() int { return 511 }

// IndexOf returns the type of a register's index.
func (v *view) IndexOf(r register) string {
	switch r.Index {
	case manifest.ByPort:
		return "PortId_t"
	case manifest.ByFlow:
		return v.FlowType()
	case manifest.ByQueue:
		return "qid_t"
	case manifest.ByGroup:
		return "gid_t"
	}
	return "bit<32>"
}

// Choice executes a template of the row's choice.
func (v *view) Choice(text string) string { return v.of(v.built(v.runs, choice), text) }

// InTurn reports whether the cells of a flow are numbered and use the paths in
// turn.
func (v *view) InTurn() bool {
	return v.runs.like(granularity) == "flowcell" && v.runs.like(choice) == "round-robin"
}

// TakesTurns reports whether a register stores the next path.
func (v *view) TakesTurns() bool { return v.runs.like(choice) == "round-robin" && !v.InTurn() }

// Kept returns the register with the paths of flowlets or similar parts of flows.
// It returns "" if the program counts cells instead.
func (v *view) Kept() string {
	if v.InTurn() {
		return ""
	}
	return v.runs.block(granularity).Holds
}

// Orders reports whether packets stay in order.
func (v *view) Orders() bool { return v.runs.like(choice) == "ordered" }

// Remembers reports whether the path is remembered from packet to packet.
func (v *view) Remembers() bool {
	return v.Orders() || v.runs.like(choice) == "sampled" && v.Int("m") > 0
}

// Sorts reports whether there are several kinds of recirculated packets.
func (v *view) Sorts() bool { return v.Own() || v.In("again") }

// Own reports whether the switch generates probes.
func (v *view) Own() bool { return v.In("cpu") }

// draws is the number of possible random draws, which are divided among the paths.
const draws = 4096

// A share is the range of draws that select one slot in a group of n.
type share struct{ N, Last, Slot, From, To int }

// Shares returns the shares of all slots, for groups of all sizes.
func (v *view) Shares() []share {
	var list []share
	for n := 1; n <= v.N(); n++ {
		for k := range n {
			list = append(list, share{n, n - 1, k, draws * k / n, draws*(k+1)/n - 1})
		}
	}
	return list
}

// SharesSize returns the number of shares.
func (v *view) SharesSize() int { return len(v.Shares()) }

// SpreadError returns the largest deviation of a path's share from an equal share.
func (v *view) SpreadError() string {
	worst := 0.0
	for _, s := range v.Shares() {
		worst = max(worst, math.Abs(float64((s.To-s.From+1)*s.N)/draws-1))
	}
	return percent(worst)
}

func percent(share float64) string { return fmt.Sprintf("%.2g %%", 100*share) }

// A wrapped is the sum From of two slots in a group of n, and the Slot to which it
// wraps.
type wrapped struct{ N, From, Slot int }

// Wraps returns the sums of two slots of a group of n, with their values modulo n.
func (v *view) Wraps() []wrapped {
	var list []wrapped
	for n := 1; n <= v.N(); n++ {
		for sum := range 2*n - 1 {
			list = append(list, wrapped{n, sum, sum % n})
		}
	}
	return list
}

// WrapsSize returns the number of wraps.
func (v *view) WrapsSize() int { return len(v.Wraps()) }

// Cuts returns the boundaries between the paths' grids.
func (v *view) Cuts() []int { return v.Slots()[:v.Last()] }

// LowCuts returns the cuts of the first 8 paths. A group of containers holds only
// this many differences.
func (v *view) LowCuts() []int { return v.Cuts()[:min(8, v.Last())] }

// HighCuts returns the remaining cuts.
func (v *view) HighCuts() []int { return v.Cuts()[min(8, v.Last()):] }

// EndParams lists the parameters of set_ends.
func (v *view) EndParams() string {
	list := lists.Map(v.Cuts(), func(i int) string { return fmt.Sprint("bit<8> end_", i) })
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
func (v *view) Firsts() []first {
	var list []first
	for slot := range v.N() {
		list = append(list, first{Key: only(v.Last(), slot), Slot: slot})
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

// A step is an entry of a table that maps a number to 4 bits.
type step struct {
	key   string
	Level int
}

// String returns the key of the entry.
func (s step) String() string { return s.key }

// Steps returns the entries of the table: level i begins at i<<shift, and the last
// level is open-ended.
func (v *view) Steps(shift, width int) []step {
	var list []step
	mask := (uint64(1)<<width - 1) &^ (uint64(1)<<shift - 1)
	for i := range 15 {
		list = append(list, step{fmt.Sprintf("%#x &&& %#x", i<<shift, mask), i})
	}
	return append(list, step{"_", 15})
}

// shiftFor returns the shift that reduces n to 16 steps.
func shiftFor(n int64) int {
	shift := 0
	for int64(16)<<shift < n {
		shift++
	}
	return shift
}

// packet is the packet size in bytes that is used to convert queue lengths.
const packet = 1500

// Cells returns the capacity of a queue in cells.
func (v *view) Cells() int64 { return v.Int("qcap") * packet / int64(v.arch.cellBytes) }

// CellShift returns the shift that divides the capacity into 16 steps.
func (v *view) CellShift() int { return shiftFor(v.Cells()) }

// CellStep returns the size of a step in cells.
func (v *view) CellStep() int { return 1 << v.CellShift() }

// tauTicks returns tau, the interval that counts as idle, in ticks.
func (v *view) tauTicks() int64 {
	if v.poly != nil {
		return v.poly.T.Max * 1000 / tick
	}
	return v.Int("tau")
}

// TickShift returns the shift that divides tau into 16 steps.
func (v *view) TickShift() int { return shiftFor(v.tauTicks()) }

// FullStep returns the step that contains a full queue, TauStep the step that
// contains tau.
func (v *view) TickStep() int { return 1 << v.TickShift() }

// FullStep returns the step that contains a full queue.
func (v *view) FullStep() int64 { return min(15, v.Cells()>>v.CellShift()) }
func (v *view) TauStep() int64  { return min(15, v.tauTicks()>>v.TickShift()) }

// DepthShift returns the shift that converts cells to ticks, for programs that
// compare times. It approximates the rate of the links.
func (v *view) DepthShift() int {
	if !v.Orders() {
		return 0
	}
	return max(0, int(math.Round(math.Log2(v.cellsPerTick()))))
}

// cellsPerTick returns the number of cells that a link sends per tick.
func (v *view) cellsPerTick() float64 {
	return float64(v.values["link"].Int) * tick / 8e9 / float64(v.arch.cellBytes)
}

// DepthUnit returns the unit of queue lengths.
func (v *view) DepthUnit() string {
	if v.Orders() {
		return "1024ns"
	}
	return fmt.Sprintf("cells of %d bytes", v.arch.cellBytes)
}

// DelayError returns the deviation of the shift from the exact rate.
func (v *view) DelayError() string {
	return percent(math.Abs(v.cellsPerTick()/float64(int(1)<<v.DepthShift())-1)) + " of a queue's delay"
}

// CPUPort returns the port of the controller. Device ports differ from those of a software
// switch: the default is the PCIe port of pipe 0.
func (v *view) CPUPort() int64 {
	if _, given := v.params.Set["cpu"]; given || v.arch == nil {
		return v.Int("cpu")
	}
	return v.arch.cpuPort
}

// full is the number that represents a utilisation of 100 %.
const full = 256

// LoadDegrees returns DHLB's Table 1 for utilisations.
func (v *view) LoadDegrees() []degreeRange {
	var list []degreeRange
	from := int64(0)
	for _, d := range v.Degrees() {
		to := (d.To + 1) * full / v.WindowBytes()
		if d.Degree == 0 {
			to = 1 << 16
		}
		list = append(list, degreeRange{from, to - 1, d.Degree})
		from = to
	}
	return list
}

// FilterError returns the largest difference between an exponential and a linear decay with the
// same time constant: 1/e, at the end of the linear decay.
func (v *view) FilterError() string { return percent(1 / math.E) }

// Meter returns the name of the filter that measures the rate of a port.
func (v *view) Meter() string {
	if name := v.Load(); name != "" {
		return name
	}
	return "path_rate"
}

// Ranks reports whether levels carry the slot of their path in the low bits.
func (v *view) Ranks() bool { return v.row.like(choice) == "least" || v.row.like(choice) == "cautious" }

// LevelWidth returns the width of a level. Levels that are compared have a separate container. A
// level stored with a time has 32 bits.
func (v *view) LevelWidth() int {
	switch {
	case v.row.like(signal) == "piggyback":
		return 32
	case v.Ranks():
		return 16
	}
	return 8
}

// HoldsLeast reports whether the register of paths extracts the path from the smallest level,
// which saves a stage. A stateful ALU has 3 bits for a mask.
func (v *view) HoldsLeast() bool {
	return v.runs.like(choice) == "least" && v.Kept() != "" && v.N() <= 8
}

// RankParams lists the parameters of set_ranks.
func (v *view) RankParams() string {
	list := lists.Map(v.Slots(), func(i int) string { return fmt.Sprint("level_t rank_", i) })
	return inLines(8, list)
}

// Ranked returns the low byte of all levels if the order of a slot breaks ties: the distance of
// each path from this slot, and the path's own slot.
func (v *view) Ranked(first share) string {
	var list []string
	for i := range v.N() {
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
func (v *view) Rounds() []round {
	var list []round
	for distance := 1; distance < v.N(); distance *= 2 {
		r := round{Number: len(list)}
		for i := 0; i+distance < v.N(); i += 2 * distance {
			r.Pairs = append(r.Pairs, pair{i, i + distance})
		}
		list = append(list, r)
	}
	return list
}

// An eighth maps a range of utilisations to the Slot of a level.
type eighth struct{ From, To, Slot int }

// Eighths returns the ranges of utilisations for CONGA's 3 bits.
func (v *view) Eighths() []eighth {
	var list []eighth
	for i := range 8 {
		to := full/8*(i+1) - 1
		if i == 7 {
			to = 1<<16 - 1
		}
		list = append(list, eighth{full / 8 * i, to, i * 256})
	}
	return list
}

// TwoSided reports whether reports concern two ports: the queue of the output port
// and, for RLB, the departures of packets that arrived at the input port.
func (v *view) TwoSided() bool { return v.In("reroute") && (v.In("depth") || v.In("levels")) }

// ReportValues lists the values of a report.
func (v *view) ReportValues() string {
	return strings.Join(strings.Split(v.Place("report.values"), "\n"), ", ")
}

// ReportLag returns the capacity of a link between two reports.
func (v *view) ReportLag() string {
	return fmt.Sprintf("%.3g KB", v.lag()/1000)
}

// lag returns the number of bytes that a link sends in T_b.
func (v *view) lag() float64 {
	return float64(v.values["link"].Int) * float64(v.Int("tb")) * tick / 8e9
}

// RoomForLag returns Q_PFC as a multiple of the bytes sent in T_b.
func (v *view) RoomForLag() string {
	return fmt.Sprintf("%.2g", float64(v.values["qpfc"].Int)/v.lag())
}

// ReportPeriod returns the shortest interval between reports of a port's state. It
// is T_b; if only Hermes' rates need reports, it is longer, with one report per
// window.
func (v *view) ReportPeriod() string {
	if v.In("reroute") && v.runs.like(choice) == "cautious" {
		return "WINDOW"
	}
	return "T_B"
}

// ReportPort returns the port that a report describes: the packet's egress port, or the ingress
// port if only RLB needs the report.
func (v *view) ReportPort() string {
	if v.In("reroute") && !v.TwoSided() {
		return "hdr.bridge.port"
	}
	return "eg.egress_port"
}

// Star reports whether the guard is RLB*, which limits recirculations.
func (v *view) Star() bool { return v.row.like(guard) == "rlb-star" }

// WarningType returns the type of a cell of RLB's warnings.
func (v *view) WarningType() string {
	if v.Star() {
		return "warning_t"
	}
	return "ticks_t"
}

// Until returns the field with the time until which a warning holds.
func (v *view) Until() string {
	if v.Star() {
		return "held.until"
	}
	return "held"
}

// Longer compares the time since an event with a limit in a stateful ALU. The ALU
// computes with more than 32 bits unless the difference is signed. Events more than
// half a clock period ago also count as longer ago.
func (v *view) Longer(since, limit string) string {
	return fmt.Sprintf("(span_t)(meta.now - %s) > (span_t)%s || (span_t)(meta.now - %[1]s) < 0", since, limit)
}

// Flat reports whether statements for packets with several paths have a condition each
// instead of one common branch. On Tofino 1 a branch waits for the preceding
// statements, and the following statements wait for the branch, so RLB's prediction
// and the path choice would use their stages in sequence.
func (v *view) Flat() bool {
	alone := v.InTurn() || v.runs.like(choice) == "sampled" && v.runs.like(granularity) == "packet"
	return v.arch.name == "tna" && v.In("reroute") && !v.In("again") && alone
}

// Grouped returns a statement for packets with several paths.
func (v *view) Grouped(statement string) string {
	if !v.Flat() {
		return statement
	}
	return "if (meta.n != 0) {\n" + statement + "\n}"
}

// Derivative reports whether RLB uses the growth of queues.
func (v *view) Derivative() bool { return v.Word("predict") == "derivative" }

// WarnShift returns T_warn in intervals dt, as the nearest power of 2.
func (v *view) WarnShift() int {
	return max(0, int(math.Round(math.Log2(v.warnRatio()))))
}

func (v *view) warnRatio() float64 {
	return float64(v.values["twarn"].Int) / float64(max(1, v.values["dt"].Int))
}

// PredictionError returns the deviation of the power of 2 from the ratio.
func (v *view) PredictionError() string {
	return percent(math.Abs(float64(int(1)<<v.WarnShift())/v.warnRatio() - 1))
}

// Detours returns the entries for RLB's walk over the paths: for each path, the first one in the
// order of slots without a warning.
func (v *view) Detours() []first {
	var list []first
	for n := 2; n <= v.N(); n++ {
		for slot := range n {
			for turn := range n {
				to := (slot + turn) % n
				list = append(list, first{fmt.Sprintf("%d, %s", slot, only(v.N(), to)), to, n})
			}
		}
	}
	return list
}

// DetoursSize returns the number of detours.
func (v *view) DetoursSize() int { return len(v.Detours()) }

// pairsFlows reports whether flow slots use 15-bit indices (Tofino 2).
func (v *view) pairsFlows() bool {
	return v.arch.name == tofino2.name && (v.InTurn() || v.Orders() || v.runs.like(choice) == "cautious" || v.runs.like(choice) == "rehash")
}

// FlowType returns the type of a flow's slot.
func (v *view) FlowType() string {
	if v.pairsFlows() {
		return "bit<15>"
	}
	return "bit<16>"
}
