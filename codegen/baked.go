package codegen

import (
	"fmt"
	"math/rand/v2"

	"github.com/p4lb/p4lb/internal/scheme/manifest"
)

// A bakedIndex is the congestion index as tables.
type bakedIndex struct{ *composition }

// Tofino cannot multiply, so programs look up the congestion index in tables. The
// key of egress's table is the measurements, truncated to 4 bits. The key of
// ingress's table is the levels of all paths, and its result is their weights. The
// controller fills both tables with the values in the manifest.

// levelBits returns the width of a path's level. The levels of all paths form the key of one
// table with at most 65,536 entries.
func levelBits(paths int) int { return min(4, max(12/paths, min(16/paths, 2))) }

// Levels returns the number of congestion levels of a path, without Absent.
func (b bakedIndex) Levels() int { return 1<<levelBits(b.N()) - 1 }

// Worst returns the level of the most congested path.
func (b bakedIndex) Worst() int { return b.Levels() - 1 }

// Absent returns the level of slots without a path.
func (b bakedIndex) Absent() int { return b.Levels() }

// Top returns the number of a level's highest bit.
func (b bakedIndex) Top() int { return levelBits(b.N()) - 1 }

// GridsSize returns the number of vectors of levels.
func (b bakedIndex) GridsSize() int { return 1 << (levelBits(b.N()) * b.N()) }

// bakeable checks for at least two levels besides Absent.
func bakeable(c *composition) error {
	if c.N() > 8 {
		return fmt.Errorf("%d paths: the weights of all are looked up in one table of 65536 entries, which leaves %d bit for each path; want at most 8", c.N(), 16/c.N())
	}
	return nil
}

// index returns the congestion index of bytes l and t and a trend of 1 or 2, as a share of its
// maximum. ok is false if only the controller knows the polynomial.
func (b bakedIndex) index(l, t, trend int64) (c float64, ok bool) {
	switch {
	case b.row.like(signal) == "behaviour":
		return float64(l*(255-t)*trend) / (255 * 255 * 2), true
	case b.poly == nil || b.cmax == 0:
		return 0, false
	}
	return float64(b.poly.Eval(l, t, b.cmax)) / float64(b.cmax), true
}

// level returns the index in a cell of the table. It is the mean over the
// measurements that map to the cell. The steps of occupancies and intervals are
// powers of 2, so a full queue and tau may be in a step other than the last.
func (b bakedIndex) level(L, T, V int64) int {
	sum, n := 0.0, 0
	for _, l := range bytesIn(L, b.chip().CellShift(), b.chip().Cells()) {
		for _, t := range bytesIn(T, b.chip().TickShift(), b.chip().tauTicks()) {
			c, _ := b.index(l, t, V+1)
			sum += c
			n++
		}
	}
	return min(b.Worst(), int(sum/float64(n)*float64(b.Levels())))
}

// bytesIn returns the numbers in a step of 1<<shift, as shares of full in 255ths.
func bytesIn(step int64, shift int, full int64) (list []int64) {
	const samples = 8
	for i := range int64(samples) {
		n := step<<shift + i<<shift/samples
		list = append(list, min(255, (255*n+full/2)/full))
	}
	return list
}

// cells returns the levels of all cells of the table. L changes fastest.
func (b bakedIndex) cells() []int {
	var list []int
	for V := range int64(2) {
		for T := range int64(16) {
			for L := range int64(16) {
				list = append(list, b.level(L, T, V))
			}
		}
	}
	return list
}

// About describes the origin of the index.
func (b bakedIndex) About() string {
	switch {
	case b.row.like(signal) == "behaviour":
		return "Eq. 4 divided by its maximum"
	case b.params.Runtime:
		return "that the controller bakes from its fit"
	}
	return "the polynomial divided by its maximum"
}

// Error returns the share of pairs of measurements that the tables order
// differently from the formula. Two equal levels count as no order.
func (b bakedIndex) Error() string {
	if _, ok := b.index(0, 0, 1); !ok {
		return "known once the controller has baked its fit"
	}
	const pairs = 20000
	r := rand.New(rand.NewPCG(1, 1))
	levels := b.cells()
	draw := func() (float64, int) {
		depth, interval, trend := r.Int64N(b.chip().Cells()+1), r.Int64N(b.chip().tauTicks()+1), 1+r.Int64N(2)
		c, _ := b.index(255*depth/b.chip().Cells(), 255*interval/b.chip().tauTicks(), trend)
		L, T := min(15, depth>>b.chip().CellShift()), min(15, interval>>b.chip().TickShift())
		return c, levels[(trend-1)<<8|T<<4|L]
	}
	inverted := 0
	for range pairs {
		c, level := draw()
		d, other := draw()
		if c < d && level > other || c > d && level < other {
			inverted++
		}
	}
	return percent(float64(inverted)/pairs) + " of pairs of measurements rank the other way round"
}

// LevelError returns the rounding error of a level, as a share of the range.
func (b bakedIndex) LevelError() string {
	return percent(0.5/float64(b.Levels())) + " of the index at most"
}

// tables returns the tables to fill, by name.
func (b bakedIndex) tables() map[string]*manifest.Baked {
	tables := map[string]*manifest.Baked{}
	if b.In("measure") {
		index := &manifest.Baked{Action: "set_level", Keys: []manifest.BakedKey{{Name: "L", Values: 16}, {Name: "T", Values: 16}, {Name: "V", Values: 2}}}
		if _, ok := b.index(0, 0, 1); ok {
			index.Values = b.cells()
		}
		tables["LbEgress.index"] = index
	}
	if b.In("baked") {
		grids := &manifest.Baked{Action: "set_ends", Total: 256}
		for i := range b.N() {
			grids.Keys = append(grids.Keys, manifest.BakedKey{Name: fmt.Sprint("level_", i), Values: b.Levels() + 1})
		}
		grids.Weights, grids.Zero = b.weights()
		tables["LbIngress.grids"] = grids
	}
	return tables
}

// weights computes Eq. 6 for the levels of a path: the difference to the worst
// level, but at least one for an existing path. For degrees, the weight is the
// degree.
func (b bakedIndex) weights() (weights, zero []int) {
	for level := range b.Levels() {
		if b.row.like(signal) == "degree" {
			weights = append(weights, level)
		} else {
			weights = append(weights, 2*(b.Worst()-level)+1)
		}
	}
	return append(weights, 0), []int{0}
}
