package model

import (
	"fmt"
	"math"
	"slices"
)

// Hardware describes how a Tofino differs from the papers. The manifests declare
// these differences as deviations. A nil Hardware is a switch that computes as in
// the papers.
//
//   - Times count in 1024 ns, queues in cells.
//   - Paths are drawn by 12 bits of a random number or hash. The values are divided evenly, or in proportion to weights: then a byte selects the path, and each path owns a share of the byte's values.
//   - A register is accessed once. A stored value is exchanged before it is read, and path 0 is the initial value. Slots beyond the group size repeat its paths.
//   - Congestion has few levels, which come from tables.
type Hardware struct {
	Cell  int // bytes per cell
	Flows int // slots in which flows are remembered; 0: Flows

	// The contents of the tables that replace arithmetic.
	Index   []int // QALL's levels, for 16 occupancies, 16 intervals and 2 trends; the occupancy is the fastest index
	Weights []int // weights by level; the last level stands for absent paths and for paths without recent reports
	Zero    []int // if all weights are 0, paths with these levels get equal weights
}

// tofino reports whether the switch is hardware.
func (s *Switch) tofino() bool { return s.cfg.Hardware != nil }

// validate checks that the tables of a scheme are complete.
func (h *Hardware) validate(cfg *Config) error {
	grid := cfg.Choice == "grid" && cfg.Signal != "weights"
	index := cfg.Signal == "behaviour" || cfg.Signal == "fitted"
	switch {
	case h == nil:
		return nil
	case h.Cell <= 0 || h.Flows < 0 || h.Flows > flowSlots:
		return fmt.Errorf("cells of %d bytes, %d slots for flows", h.Cell, h.Flows)
	case index && len(h.Index) != 512:
		return fmt.Errorf("%d levels for the 512 measurements of signal %s", len(h.Index), cfg.Signal)
	case grid && len(h.Weights) < 2:
		return fmt.Errorf("no weights for the levels of signal %s", cfg.Signal)
	}
	return nil
}

// tickShift is the position of the clock's 1024 ns in a Time.
const tickShift = 16

// Clock returns the time of the clock ns nanoseconds after it was 0.
func (h *Hardware) Clock(ns int64) Time {
	if h == nil {
		return Time(ns/1000) & clockMask
	}
	return Time(ns>>10) << tickShift & clockMask
}

// Interval converts ns nanoseconds as the constants of programs do.
func (h *Hardware) Interval(ns int64) Time {
	if h == nil {
		return Time(ns / 1000)
	}
	return Time(math.Round(float64(ns)/1024)) << tickShift
}

// Count converts a time to the unit of registers and headers: µs, or 1024 ns on hardware.
func (h *Hardware) Count(t Time) uint64 {
	if h == nil {
		return uint64(t)
	}
	return uint64(t >> tickShift)
}

// flowSlot returns the slot in which a flow is remembered.
func (s *Switch) flowSlot(f Flow) uint16 {
	if s.cfg.LooseFlows {
		f.Src, f.Dport = 0, f.Dport|3
	}
	if s.tofino() && s.cfg.Hardware.Flows > 0 {
		return uint16(int(f.Hash()) % s.cfg.Hardware.Flows)
	}
	return f.Hash()
}

// draws is the number of values of a random draw that is divided among paths.
const draws = 1 << 12

// spread returns the path that a draw selects among n equally likely paths.
func spread(draw uint64, n int) int { return int(((draw%draws+1)*uint64(n) - 1) / draws) }

// grids is the number of grids of a weighted draw.
const grids = 1 << 8

// pick returns the path of a grid. The first path has at least one grid, and the
// last path has the grids that are left after rounding.
func pick(weights []int, grid uint64) int {
	total, end := 0, 0
	for _, w := range weights {
		total += w
	}
	last := len(weights) - 1
	for i, w := range weights[:last] {
		if end += w; grid < uint64(max(1, end*grids/total)) {
			return i
		}
	}
	return last
}

// grids returns the weights of all slots up to the maximum number of paths.
func (s *Switch) grids(p *pass) []int {
	h := s.cfg.Hardware
	weights := make([]int, s.cfg.Paths)
	if h.Weights == nil { // the controller sets the weights, of which at least one is not 0
		for i := range p.n {
			weights[i] = int(s.signal.weight(p, i))
		}
		return weights
	}
	levels := make([]int, s.cfg.Paths)
	for i := range levels {
		levels[i] = len(h.Weights) - 1
		if i < p.n {
			levels[i] = int(s.signal.cost(p, i))
		}
		weights[i] = h.Weights[levels[i]]
	}
	if slices.Max(weights) > 0 {
		return weights
	}
	none := !slices.ContainsFunc(levels, func(level int) bool { return slices.Contains(h.Zero, level) })
	for i, level := range levels {
		if none || slices.Contains(h.Zero, level) {
			weights[i] = 1
		}
	}
	return weights
}

// steps returns the number of low bits to drop so that a number up to most has 16 steps.
func steps(most int64) (shift int) {
	for int64(16)<<shift < most {
		shift++
	}
	return shift
}

// packet is the average length of a queued packet in bytes.
const packet = 1500

// A baked contains QALL's index as a hardware table, by L and T in 16 steps each.
type baked struct {
	levels         []int
	cells, waiting int // number of bits dropped
}

func newBaked(p Params) *baked {
	h := p.Hardware
	b := &baked{
		levels: h.Index, cells: steps(int64(p.QCap) * packet / int64(h.Cell)), waiting: steps(int64(h.Count(p.Tau))),
	}
	if p.Poly != nil {
		b.waiting = steps(p.Poly.T.Max * 1000 / 1024)
	}
	return b
}

func (b *baked) congestion(r Report) uint32 {
	t := min(15, int(r.T>>tickShift)>>b.waiting)
	return uint32(b.levels[(int(r.V)-falling)<<8|t<<4|int(r.L)])
}

func (b *baked) max() uint32 { return 0 }

// full is the utilisation of a fully used link.
const full = 256

// A filter is a hardware low-pass filter with exponential decay. To estimate a rate, its time
// constant is close to 2^Window µs, chosen such that a full link gives a power of 2.
type filter struct {
	value float64
	at    float64 // as returned by Switch.elapsed
}

// A stopwatch is a clock for filters in whole ticks. It does not wrap.
type stopwatch struct {
	last Time
	ns   float64
}

// elapsed returns the time in ns by which filters decay.
func (s *Switch) elapsed(now Time) float64 {
	if s.cfg.Elapsed != nil {
		return float64(s.cfg.Elapsed())
	}
	s.watch.ns += 1024 * float64(now.Since(s.watch.last)>>tickShift)
	s.watch.last = now
	return s.watch.ns
}

// filter returns the time constant in ns, and the number of bits to drop so that a full link
// gives full.
func (p *Params) filter() (constant float64, shift int) {
	rate := float64(p.Link) / 8e9 // bytes per ns
	window := float64(uint64(1000) << p.Window)
	shift = max(0, int(math.Round(math.Log2(rate*window/full))))
	return math.Round(full * math.Exp2(float64(shift)) / rate), shift
}

// average adds a probe, marked or not, and returns the share of marked probes in 255ths.
func (f *filter) average(marked bool, constant, now float64) uint8 {
	mark := 0.0
	if marked {
		mark = 255 << 8
	}
	f.value += (1 - math.Exp((f.at-now)/constant)) * (mark - f.value)
	f.at = now
	return uint8(int(f.value) >> 8)
}

// add counts a packet and returns the utilisation as a fraction of full.
func (f *filter) add(p *Params, bytes int, now float64) uint32 {
	constant, shift := p.filter()
	f.value = f.value*math.Exp((f.at-now)/constant) + float64(bytes)
	f.at = now
	return uint32(min(1<<16-1, math.Floor(f.value/math.Exp2(float64(shift)))))
}
