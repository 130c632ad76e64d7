package fitting

import (
	"fmt"
	"math"

	"github.com/p4lb/p4lb/internal/text/lists"
)

// TableOptions set the resolution of a lookup table.
type TableOptions struct {
	LBits, TBits int  // leading bits of the bytes l and t that are looked up
	Levels       int  // number of congestion levels
	Trend        bool // let a rising queue count double, as V does in QALL's Eq. 4
	Monotone     bool // force levels to rise with L and fall with T
}

func (o TableOptions) validate() error {
	switch {
	case o.LBits < 1 || o.LBits > 8 || o.TBits < 1 || o.TBits > 8:
		return fmt.Errorf("a table over %d bits of L and %d of T: want 1 to 8 of each", o.LBits, o.TBits)
	case o.Levels < 2 || o.Levels > 1<<16:
		return fmt.Errorf("a table of %d levels: want 2 to 65536", o.Levels)
	}
	return nil
}

// A Table is a congestion index for switches that cannot multiply: an exact match on the leading
// bits of l and t and on the queue's trend V gives a level.
type Table struct {
	LBits  int  `json:"l_bits"`
	TBits  int  `json:"t_bits"`
	Levels int  `json:"levels"`
	Trend  bool `json:"trend"`

	// Level has an entry for each V, 1 and 2, if the trend counts, and otherwise one entry for
	// both. The index is ((V-1) << LBits+TBits) + (l bits << TBits) + t bits.
	Level []int `json:"level"`
	Loss  Loss  `json:"loss"`
}

// At returns the level of the bytes l and t. v is 1 for a falling queue and 2 for a rising one.
func (b *Table) At(l, t, v int64) int {
	i := b.cell(l, t)
	if b.Trend {
		i += int(v-1) << (b.LBits + b.TBits)
	}
	return b.Level[i]
}

// Bake computes the table of a fit. A cell has the mean of the fit over its rows
// or, if it has no rows, over its bytes.
func (f *Fit) Bake(p Poly, rows *Rows, o TableOptions) (*Table, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	b := &Table{LBits: o.LBits, TBits: o.TBits, Levels: o.Levels, Trend: o.Trend}
	top := float64(p.Max()) / float64(p.Scale)
	value, weight := f.cells(p, rows, b, top)
	if o.Monotone {
		isotonic(value, weight, 1<<o.LBits, 1<<o.TBits)
	}
	level := func(v, share float64) int { return int(math.Round(v / top * share * float64(o.Levels-1))) }
	if o.Trend {
		for _, v := range value {
			b.Level = append(b.Level, level(v, 0.5))
		}
	}
	flat := lists.Map(value, func(v float64) int { return level(v, 1) })
	b.Level = append(b.Level, flat...)
	b.Loss = f.compare(rows, top, func(r Row) float64 {
		l, t := p.Bytes(r.L, r.T)
		return float64(flat[b.cell(l, t)]) / float64(o.Levels-1) * top
	})
	return b, nil
}

func (b *Table) cell(l, t int64) int { return int(l>>(8-b.LBits)<<b.TBits | t>>(8-b.TBits)) }

// cells returns the means of the clamped fit and the number of rows, by cell.
func (f *Fit) cells(p Poly, rows *Rows, b *Table, top float64) (value, weight []float64) {
	n := 1 << (b.LBits + b.TBits)
	value, weight = make([]float64, n), make([]float64, n)
	for r := range rows.All() {
		l, t := p.Bytes(r.L, r.T)
		i := b.cell(l, t)
		value[i] += min(max(f.Unit(f.Spans.L.Unit(r.L), f.Spans.T.Unit(r.T)), 0), top)
		weight[i]++
	}
	bytes, sum := make([]float64, n), make([]float64, n)
	for k, v := range p.Grid() {
		i := b.cell(int64(k>>8), int64(k&255))
		bytes[i]++
		sum[i] += min(max(float64(v)/float64(p.Scale), 0), top)
	}
	for i := range value {
		if weight[i] > 0 {
			value[i] /= weight[i]
			continue
		}
		// Cells without rows have little weight compared to cells with rows.
		value[i], weight[i] = sum[i]/bytes[i], 0.01
	}
	return value, weight
}
