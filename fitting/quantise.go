package fitting

import (
	"cmp"
	"math"
	"slices"
)

// A Loss measures the error of the integer index relative to the floating-point
// index over a set of rows. Both are in units of the normalised traffic and clamped
// as in the data plane.
type Loss struct {
	Rows int     `json:"rows"`
	Max  float64 `json:"max"`
	Mean float64 `json:"mean"`

	// Inverted is the share of the pairs of rows with different float indices that
	// the integer index orders differently, and Tied the share that it does not
	// distinguish. The order is what matters to a load balancer.
	Inverted float64 `json:"pairs_inverted"`
	Tied     float64 `json:"pairs_tied"`
}

// An Extent is the range of values of the integer index.
type Extent struct {
	Min          int64   `json:"min"` // over all pairs of bytes L and T, before negative values become 0
	Max          int64   `json:"max"`
	HullMin      int64   `json:"hull_min"` // over the hull of the data
	HullMax      int64   `json:"hull_max"`
	Covered      float64 `json:"hull_share"`     // share of the bytes inside the hull
	Negative     float64 `json:"negative_share"` // share of the bytes with a negative value, which becomes 0
	HullNegative float64 `json:"hull_negative_share"`
	Monotone     float64 `json:"monotone_share"` // share of the steps between bytes that do not fall with L or rise with T
}

// extent examines the polynomial at all bytes; hull may be nil for all.
func (p Poly) extent(hull []Point) Extent {
	grid := p.Grid()
	in := slices.Repeat([]bool{true}, len(grid))
	if hull != nil {
		in = p.covered(hull)
	}
	e := Extent{Min: slices.Min(grid), Max: slices.Max(grid), HullMin: math.MaxInt64, HullMax: largest(grid, in)}
	var covered, negative, hullNegative, steps, right int
	for i, v := range grid {
		if v < 0 {
			negative++
		}
		if in[i] {
			covered++
			e.HullMin = min(e.HullMin, v)
			if v < 0 {
				hullNegative++
			}
		}
		if l, t := i>>8, i&255; l < 255 && t < 255 {
			steps++
			if grid[i+256] >= v && grid[i+1] <= v {
				right++
			}
		}
	}
	share := func(n, of int) float64 { return float64(n) / float64(max(1, of)) }
	e.Covered, e.Negative = share(covered, len(grid)), share(negative, len(grid))
	e.HullNegative, e.Monotone = share(hullNegative, covered), share(right, steps)
	return e
}

// maxCompared limits the rows that Loss evaluates, evenly spread.
const maxCompared = 1 << 20

// Loss compares the fit with p over the rows.
func (f *Fit) Loss(p Poly, rows *Rows) Loss {
	grid, cmax := p.Grid(), p.Max()
	return f.compare(rows, float64(cmax)/float64(p.Scale), func(r Row) float64 {
		l, t := p.Bytes(r.L, r.T)
		return float64(min(max(grid[l<<8+t], 0), cmax)) / float64(p.Scale)
	})
}

// compare compares an index with the floating-point index, clamped to top.
func (f *Fit) compare(rows *Rows, top float64, index func(Row) float64) Loss {
	var pairs []indexPair
	stride := (rows.n + maxCompared - 1) / maxCompared
	var loss Loss
	i := 0
	for r := range rows.All() {
		if i++; (i-1)%stride != 0 {
			continue
		}
		float := min(max(f.Unit(f.Spans.L.Unit(r.L), f.Spans.T.Unit(r.T)), 0), top)
		integer := index(r)
		e := math.Abs(integer - float)
		loss.Max = max(loss.Max, e)
		loss.Mean += e
		pairs = append(pairs, indexPair{float, integer})
	}
	loss.Rows = len(pairs)
	loss.Mean /= float64(max(1, len(pairs)))
	loss.Inverted, loss.Tied = disorder(pairs)
	return loss
}

type indexPair struct{ float, integer float64 }

// disorder returns the shares for Loss. As for Kendall's rank correlation, it sorts
// by one index and counts the inversions of the other.
func disorder(list []indexPair) (inverted, tied float64) {
	slices.SortFunc(list, func(a, b indexPair) int {
		return cmp.Or(cmp.Compare(a.float, b.float), cmp.Compare(a.integer, b.integer))
	})
	n := len(list)
	sameFloat := sameRuns(n, func(i int) bool { return list[i].float == list[i-1].float })
	sameBoth := sameRuns(n, func(i int) bool { return list[i] == list[i-1] })
	v := make([]float64, n)
	for i, p := range list {
		v[i] = p.integer
	}
	swaps := inversions(v, make([]float64, n)) // inversions also sorts v
	sameInteger := sameRuns(n, func(i int) bool { return v[i] == v[i-1] })
	ordered := n*(n-1)/2 - sameFloat
	if ordered == 0 {
		return 0, 0
	}
	return float64(swaps) / float64(ordered), float64(sameInteger-sameBoth) / float64(ordered)
}

// sameRuns counts the pairs within runs of equal elements.
func sameRuns(n int, same func(int) bool) (pairs int) {
	run := 0
	for i := 1; i < n; i++ {
		if !same(i) {
			run = 0
			continue
		}
		run++
		pairs += run
	}
	return pairs
}

// inversions sorts v by merging, and counts the pairs that were in the wrong order.
func inversions(v, spare []float64) (count int) {
	if len(v) < 2 {
		return 0
	}
	m := len(v) / 2
	count = inversions(v[:m], spare[:m]) + inversions(v[m:], spare[m:])
	copy(spare, v)
	a, b := spare[:m], spare[m:len(v)]
	for i := range v {
		if len(b) == 0 || len(a) > 0 && a[0] <= b[0] {
			v[i], a = a[0], a[1:]
			continue
		}
		v[i], b = b[0], b[1:]
		count += len(a)
	}
	return count
}
