package fitting

import (
	"context"
	"math"
)

// foldRows is the number of rows processed at once. With the 67 columns of degree 10, a block has
// 140 KB and fits in the second-level cache.
const foldRows = 256

// A design turns rows into blocks of columns for a triangle.
type design struct {
	degree int
	spans  Spans

	n          int // rows in the buffers
	y, u, v, w [foldRows]float64
	tu, tv     []float64 // Chebyshev polynomials of u and v
	block      []float64
	into       *triangle
}

func newDesign(degree int, spans Spans) *design {
	k := len(Terms(degree))
	return &design{
		degree: degree,
		spans:  spans,
		tu:     make([]float64, (degree+1)*foldRows),
		tv:     make([]float64, (degree+1)*foldRows),
		block:  make([]float64, (k+1)*foldRows),
		into:   newTriangle(k + 1),
	}
}

// add adds a row with a weight.
func (d *design) add(r Row, weight float64) {
	q := d.spans.unit(r)
	d.y[d.n], d.u[d.n], d.v[d.n], d.w[d.n] = q.Y, q.L, q.T, weight
	if d.n++; d.n == foldRows {
		d.flush()
	}
}

// flush folds the buffered rows into the triangle.
func (d *design) flush() {
	b := d.n
	if b == 0 {
		return
	}
	d.columns(b)
	y := d.block[(d.into.n-1)*b : d.into.n*b]
	copy(y, d.y[:b])
	for i, w := range d.w[:b] {
		if w == 1 {
			continue
		}
		root := math.Sqrt(w)
		for j := range d.into.n {
			d.block[j*b+i] *= root
		}
	}
	d.into.fold(d.block[:d.into.n*b], b)
	d.n = 0
}

// columns fills the block with the products of b rows.
func (d *design) columns(b int) {
	chebyshev(d.tu[:(d.degree+1)*b], d.u[:b], d.degree)
	chebyshev(d.tv[:(d.degree+1)*b], d.v[:b], d.degree)
	for k, t := range Terms(d.degree) {
		l, r := d.tu[t.I*b:(t.I+1)*b], d.tv[t.J*b:(t.J+1)*b]
		for i, x := range l {
			d.block[k*b+i] = x * r[i]
		}
	}
}

// triangles folds the training rows into one triangle for each fold. weight may be
// nil.
func (s *Rows) triangles(ctx context.Context, degree int, p Spans, of split, folds int, weight func(Row) float64) ([]*triangle, error) {
	list := make([]*design, max(folds, 1))
	for i := range list {
		list[i] = newDesign(degree, p)
	}
	row := 0
	for _, block := range s.blocks {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		for _, r := range block {
			if fold := of.of[row]; fold != inTest {
				w := 1.0
				if weight != nil {
					w = weight(r)
				}
				list[fold].add(r, w)
			}
			row++
		}
	}
	out := make([]*triangle, len(list))
	for i, d := range list {
		d.flush()
		out[i] = d.into
	}
	return out, nil
}

// join merges all triangles except the one with index without.
func join(list []*triangle, without int) *triangle {
	var sum *triangle
	for i, t := range list {
		switch {
		case i == without:
		case sum == nil:
			sum = t.clone()
		default:
			// The sum then represents the rows of both triangles.
			block := make([]float64, sum.n*sum.n)
			for i := range sum.n {
				for j := i; j < sum.n; j++ {
					block[j*sum.n+i] = t.r[i*sum.n+j]
				}
			}
			rows := sum.rows + t.rows
			sum.fold(block, sum.n)
			sum.rows = rows
		}
	}
	return sum
}
