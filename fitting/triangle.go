package fitting

import (
	"cmp"
	"math"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/gonum"
	"gonum.org/v1/gonum/floats"
)

// A triangle represents a least-squares problem with any number of rows: the factor
// R of the QR decomposition of its columns, with the right-hand side as the last
// column. Householder reflections add rows and keep R triangular. The normal
// equations would square the condition number and so lose twice as many digits.
// Columns are ordered by degree, so the leading part of R is the problem of each
// lower degree.
type triangle struct {
	n    int       // number of columns, including the right-hand side
	r    []float64 // n×n, by rows; only the upper half is used
	rows int
	w    []float64
}

func newTriangle(n int) *triangle {
	return &triangle{n: n, r: make([]float64, n*n), w: make([]float64, n)}
}

func (t *triangle) row(i int) []float64 { return t.r[i*t.n : (i+1)*t.n] }

var kernel gonum.Implementation

// fold adds b rows. It overwrites the block, in which value i of column j is
// block[j*b+i].
func (t *triangle) fold(block []float64, b int) {
	t.rows += b
	for j := range t.n {
		v := block[j*b : (j+1)*b]
		norm2 := floats.Dot(v, v)
		if norm2 == 0 {
			continue
		}
		// The reflection that moves the column below R[j,j] into R[j,j].
		row := t.row(j)
		beta := -math.Copysign(math.Sqrt(row[j]*row[j]+norm2), row[j])
		tau := (beta - row[j]) / beta
		floats.Scale(1/(row[j]-beta), v)
		row[j] = beta
		m := t.n - 1 - j
		if m == 0 {
			continue
		}
		rest, w, right := block[(j+1)*b:t.n*b], t.w[:m], row[j+1:]
		copy(w, right)
		kernel.Dgemv(blas.NoTrans, m, b, 1, rest, b, v, 1, 1, w, 1)
		floats.Scale(tau, w)
		floats.Sub(right, w)
		kernel.Dger(m, b, -1, w, 1, v, 1, rest, b)
	}
}

func (t *triangle) clone() *triangle {
	c := newTriangle(t.n)
	copy(c.r, t.r)
	c.rows = t.rows
	return c
}

// solve returns the coefficients of the first k columns.
func (t *triangle) solve(k int) []float64 {
	right := make([]float64, k)
	for i := range right {
		right[i] = t.row(i)[t.n-1]
	}
	return t.back(right)
}

// rss returns the sum of squared residuals of the fit to the first k columns.
func (t *triangle) rss(k int) float64 {
	var sum float64
	for i := k; i < t.n; i++ {
		sum += t.r[i*t.n+t.n-1] * t.r[i*t.n+t.n-1]
	}
	return sum
}

// error returns the sum of squared residuals in the rows of t for given coefficients of the first
// columns, which may be from another fit.
func (t *triangle) error(x []float64) float64 {
	var sum float64
	for i := range t.n {
		row := t.row(i)
		e := row[t.n-1]
		if i < len(x) {
			e -= floats.Dot(row[i:len(x)], x[i:])
		}
		sum += e * e
	}
	return sum
}

// times returns R·x for the first len(x) columns.
func (t *triangle) times(x []float64) []float64 {
	y := make([]float64, len(x))
	for i := range x {
		y[i] = floats.Dot(t.row(i)[i:len(x)], x[i:])
	}
	return y
}

// back returns R⁻¹·b for the first len(b) columns.
func (t *triangle) back(b []float64) []float64 {
	k := len(b)
	x := make([]float64, k)
	for i := k - 1; i >= 0; i-- {
		row := t.row(i)
		x[i] = (b[i] - floats.Dot(row[i+1:k], x[i+1:])) / row[i]
	}
	return x
}

// forward returns R⁻ᵀ·b for the first len(b) columns.
func (t *triangle) forward(b []float64) []float64 {
	x := make([]float64, len(b))
	for i := range b {
		x[i] = b[i]
		for j := range i {
			x[i] -= t.r[j*t.n+i] * x[j]
		}
		x[i] /= t.r[i*t.n+i]
	}
	return x
}

// rank returns the numerical rank of the first k columns, each scaled to length
// one: the number of singular values above the rounding error. cond is the ratio of
// the largest to the smallest singular value.
func (t *triangle) rank(k int) (rank int, cond float64) {
	a := make([]float64, k*k)
	for j := range k {
		var norm float64
		for i := range j + 1 {
			norm = math.Hypot(norm, t.r[i*t.n+j])
		}
		norm = cmp.Or(norm, 1)
		for i := range j + 1 {
			a[i*k+j] = t.r[i*t.n+j] / norm
		}
	}
	values := singularValues(k, a)
	if values == nil {
		return 0, math.Inf(1)
	}
	floor := values[0] * 0x1p-52 * float64(max(t.rows, k))
	for _, v := range values {
		if v > floor {
			rank++
		}
	}
	return rank, values[0] / max(values[k-1], values[0]*0x1p-52)
}
