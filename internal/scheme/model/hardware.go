package model

import (
	"fmt"
	"math"
	"slices"
)

// Hardware describes the differences of a Tofino, which its manifests declare as
// deviations. A nil Hardware is a switch that computes as in the papers.
//
//   - Times count in 1024 ns, queues in cells.
//   - Paths are drawn by 12 bits of a random number or hash, divided evenly, or in proportion to weights by a byte, of whose values each path has its share.
//   - A register is accessed once. A stored value is exchanged before it is read, and path 0 is the initial value. Slots beyond the group size repeat its paths.
//   - Congestion has few levels, which come from tables.
type Hardware struct {
	Cell  int // bytes of a cell
	Flows int // slots that flows are remembered in; 0: Flows

	// The contents of the tables that replace arithmetic.
	Index   []int // QALL's levels, of 16 occupancies, 16 intervals and 2 trends; occupancies count up fastest
	Weights []int // by level; a path of the last one there is not, or no news of it
	Zero    []int // if all weights are 0, these levels have equal weights
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
	case h.Cell <= 0 || h.Flows < 0 || h.Flows > Flows:
		return fmt.Errorf("cells of %d bytes, %d slots for flows", h.Cell, h.Flows)
	case index && len(h.Index) != 512:
		return fmt.Errorf("%d levels for the 512 measurements of signal %s", len(h.Index), cfg.Signal)
	case grid && len(h.Weights) < 2:
		return fmt.Errorf("no weights for the levels of signal %s", cfg.Signal)
	}
	return nil
}

// tickShift is where in a Time the clock's 1024 ns stand.
const tickShift = 16

// Clock returns the time of the clock ns nanoseconds after it was 0.
func (h *Hardware) Clock(ns int64) Time {
	if h == nil {
		return Time(ns/1000) & clockMask
	}
	return Time(ns>>10) << tickShift & clockMask
}

// Interval is a time of ns nanoseconds as the constants of programs have it.
func (h *Hardware) Interval(ns int64) Time {
	if h == nil {
		return Time(ns / 1000)
	}
	return Time(math.Round(float64(ns)/1024)) << tickShift
}

// Count is a time as registers and headers have it, in µs or in 1024 ns.
func (h *Hardware) Count(t Time) uint64 {
	if h == nil {
		return uint64(t)
	}
	return uint64(t >> tickShift)
}

// flowSlot is where a flow is remembered.
func (s *Switch) flowSlot(f Flow) uint16 {
	if s.cfg.LooseFlows {
		f.Src, f.Dport = 0, f.Dport|3
	}
	if s.tofino() && s.cfg.Hardware.Flows > 0 {
		return uint16(int(f.Hash()) % s.cfg.Hardware.Flows)
	}
	return f.Hash()
}

// draws is how many values a draw has that is shared out among paths.
const draws = 1 << 12

// spread is the path, of n, that a draw leads to.
func spread(draw uint64, n int) int { return int(((draw%draws+1)*uint64(n) - 1) / draws) }

// grids is how many a weighted draw is from.
const grids = 1 << 8

// pick is the path that a grid belongs to. The first path has one at least, and
// what rounding leaves over is the last one's.
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

// grids are the weights of the maximum number of paths.
func (s *Switch) grids(p *pass) []int {
	h := s.cfg.Hardware
	weights := make([]int, s.cfg.Paths)
	if h.Weights == nil { // the controller gives them, not all 0
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

// steps is how many bits of a number up to most are cut off to leave 16 steps.
func steps(most int64) (shift int) {
	for int64(16)<<shift < most {
		shift++
	}
	return shift
}

// packet is the average packet length in a queue, in bytes.
const packet = 1500

// baked is QALL's index as hardware looks it up, by L and T in 16 steps each.
type baked struct {
	levels         []int
	cells, waiting int // bits cut off
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
	return uint32(b.levels[(int(r.V)-Falling)<<8|t<<4|int(r.L)])
}

func (b *baked) max() uint32 { return 0 }

// full is the utilisation of a link that is busy all the time.
const full = 256

// filter is the hardware's low-pass filter, which decays exponentially. To estimate a
// rate its time constant is near 2^Window µs, such that a full link gives a power of
// 2.
type filter struct {
	value float64
	at    float64 // as Switch.elapsed has it
}

// A stopwatch is a clock of filters that has ticks alone. It does not wrap.
type stopwatch struct {
	last Time
	ns   float64
}

// elapsed is the time by which filters fade, in ns.
func (s *Switch) elapsed(now Time) float64 {
	if s.cfg.Elapsed != nil {
		return float64(s.cfg.Elapsed())
	}
	s.watch.ns += 1024 * float64(now.Since(s.watch.last)>>tickShift)
	s.watch.last = now
	return s.watch.ns
}

// filter is the time constant, in ns, and the bits to cut off that make full of
// a full link.
func (p *Params) filter() (constant float64, shift int) {
	rate := float64(p.Link) / 8e9 // bytes in a ns
	window := float64(uint64(1000) << p.Window)
	shift = max(0, int(math.Round(math.Log2(rate*window/full))))
	return math.Round(full * math.Exp2(float64(shift)) / rate), shift
}

// average adds a probe, marked or not, and returns the share of marked probes in
// 255ths.
func (f *filter) average(marked bool, constant, now float64) uint8 {
	mark := 0.0
	if marked {
		mark = 255 << 8
	}
	f.value += (1 - math.Exp((f.at-now)/constant)) * (mark - f.value)
	f.at = now
	return uint8(int(f.value) >> 8)
}

// add counts a packet and returns the utilisation, of full.
func (f *filter) add(p *Params, bytes int, now float64) uint32 {
	constant, shift := p.filter()
	f.value = f.value*math.Exp((f.at-now)/constant) + float64(bytes)
	f.at = now
	return uint32(min(1<<16-1, math.Floor(f.value/math.Exp2(float64(shift)))))
}
