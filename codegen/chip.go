package codegen

import (
	"fmt"
	"math"
	"strings"
)

// A chip has the ports, units and resolutions of a Tofino program.
type chip struct{ *composition }

func (c *composition) chip() chip { return chip{c} }

// Include returns the name of the file that declares the architecture.
func (c chip) Include() string { return c.arch.name + ".p4" }

// SlotBits returns the width of slots. If a register stores a slot together with a time, both
// must have the same width.
func (c chip) SlotBits() int {
	switch {
	case c.flows().Orders():
		return 32
	case c.runs.like(choice) == "best-hop":
		return 16
	}
	return 8
}

// RecircPort returns the recirculation port of a pipe.
func (c chip) RecircPort() int { return c.arch.recircPort }

// RecircPorts lists the recirculation ports of the four pipes.
func (c chip) RecircPorts() string {
	var list []string
	for pipe := range 4 {
		list = append(list, fmt.Sprint(pipe<<7|c.arch.recircPort))
	}
	return strings.Join(list, ", ")
}

// NoPort returns the port for slots that a group does not have.
func (c chip) NoPort() int { return 511 }

// A step is an entry of a table that maps a number to 4 bits.
type step struct {
	key   string
	Level int
}

// String returns the key of the entry.
func (s step) String() string { return s.key }

// Steps returns the entries of the table: level i begins at i<<shift, and the last
// level is open-ended.
func (c chip) Steps(shift, width int) []step {
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
func (c chip) Cells() int64 { return c.Int("qcap") * packet / int64(c.arch.cellBytes) }

// CellShift returns the shift that divides the capacity into 16 steps.
func (c chip) CellShift() int { return shiftFor(c.Cells()) }

// CellStep returns the size of a step in cells.
func (c chip) CellStep() int { return 1 << c.CellShift() }

// tauTicks returns tau, the interval that counts as idle, in ticks.
func (c chip) tauTicks() int64 {
	if c.poly != nil {
		return c.poly.T.Max * 1000 / tick
	}
	return c.Int("tau")
}

// TickShift returns the shift that divides tau into 16 steps.
func (c chip) TickShift() int { return shiftFor(c.tauTicks()) }

// TickStep returns the size of a step in ticks.
func (c chip) TickStep() int { return 1 << c.TickShift() }

// FullStep returns the step that contains a full queue.
func (c chip) FullStep() int64 { return min(15, c.Cells()>>c.CellShift()) }

// TauStep returns the step that contains tau.
func (c chip) TauStep() int64 { return min(15, c.tauTicks()>>c.TickShift()) }

// DepthShift returns the shift that converts cells to ticks, for programs that
// compare times. It approximates the rate of the links.
func (c chip) DepthShift() int {
	if !c.flows().Orders() {
		return 0
	}
	return max(0, int(math.Round(math.Log2(c.cellsPerTick()))))
}

// cellsPerTick returns the number of cells that a link sends per tick.
func (c chip) cellsPerTick() float64 {
	return float64(c.values["link"].Int) * tick / 8e9 / float64(c.arch.cellBytes)
}

// DepthUnit returns the unit of queue lengths.
func (c chip) DepthUnit() string {
	if c.flows().Orders() {
		return "1024ns"
	}
	return fmt.Sprintf("cells of %d bytes", c.arch.cellBytes)
}

// DelayError returns the deviation of the shift from the exact rate.
func (c chip) DelayError() string {
	return percent(math.Abs(c.cellsPerTick()/float64(int(1)<<c.DepthShift())-1)) + " of a queue's delay"
}

// CPUPort returns the port of the controller. The default is the PCIe port of pipe 0,
// because device ports are numbered differently from the ports of a software switch.
func (c chip) CPUPort() int64 {
	if _, given := c.params.Set["cpu"]; given || c.arch == nil {
		return c.Int("cpu")
	}
	return c.arch.cpuPort
}

// Longer compares the time since an event with a limit in a stateful ALU. The ALU
// computes with more than 32 bits unless the difference is signed. Events more than
// half a clock period ago also count as longer ago.
func (c chip) Longer(since, limit string) string {
	return fmt.Sprintf("(span_t)(meta.now - %s) > (span_t)%s || (span_t)(meta.now - %[1]s) < 0", since, limit)
}

// PacketBytes returns the packet size for converting queue lengths.
func (c chip) PacketBytes() int { return packet }

// CellBytes returns the unit of queue lengths in bytes.
func (c chip) CellBytes() int { return c.arch.cellBytes }

// RecirculationPorts returns the ports used for recirculation.
func (c chip) RecirculationPorts() string {
	var b strings.Builder
	b.WriteString("ports:\n")
	for pipe := range 4 {
		fmt.Fprintf(&b, "- {port: %d, kind: recirculation}\n", pipe<<7|c.arch.recircPort)
	}
	return b.String()
}
