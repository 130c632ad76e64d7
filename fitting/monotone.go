package fitting

import (
	"cmp"
	"errors"
	"math"
	"slices"

	"github.com/p4lb/p4lb/internal/text/lists"
	"gonum.org/v1/gonum/floats"
)

// A Projection describes the changes that made a fit rise with L and fall with T.
type Projection struct {
	Against float64 `json:"share_against"` // share of the box in which the fit was not monotone before
	Active  int     `json:"points_held"`   // number of points at which the slope is held at zero
	Moved   float64 `json:"rms_moved"`     // change of the fit over the training rows, normalised
}

const (
	slopeGrid   = 65   // points per side at which slopes are checked
	slopeDigits = 1e-9 // slopes below this count as zero, normalised
	slopeCuts   = 60   // points added per round
	slopeRounds = 100
)

// A cut is a constraint: a combination of the coefficients that must not be
// negative. It is the slope by L at a point, or the negative slope by T.
type cut []float64

// project changes the coefficients as little as possible, measured by the residuals,
// so that the polynomial rises with L and falls with T in the whole normalised box, to
// which a switch clamps its measurements. It adds the worst violations as constraints
// until none is left.
func (f *Fit) project(t *triangle) error {
	all := slopeCutsOf(f.Degree)
	from := f.cheb
	// Count the points that violate a constraint.
	n := 0
	for i := 0; i < len(all); i += 2 {
		if floats.Dot(all[i], from) < -slopeDigits || floats.Dot(all[i+1], from) < -slopeDigits {
			n++
		}
	}
	f.Projection = &Projection{Against: float64(n) / float64(len(all)/2)}
	var cuts []cut
	for range slopeRounds {
		worst := violated(all, f.cheb)
		if len(worst) == 0 {
			break
		}
		cuts = append(cuts, worst...)
		z, active, err := t.nearest(from, cuts)
		if err != nil {
			return err
		}
		f.cheb = z
		f.Projection.Active = active
	}
	// Violations caused by rounding, and between grid points, are too small to
	// change the order of indices.
	moved := slices.Clone(f.cheb)
	floats.Sub(moved, from)
	f.Projection.Moved = floats.Norm(t.times(moved), 2) / math.Sqrt(float64(max(1, t.rows)))
	return nil
}

// slopeCutsOf returns both constraints at each point of the grid.
func slopeCutsOf(degree int) []cut {
	x := make([]float64, slopeGrid)
	for i := range x {
		x[i] = float64(i) / (slopeGrid - 1)
	}
	value, slope := make([]float64, (degree+1)*slopeGrid), make([]float64, (degree+1)*slopeGrid)
	chebyshev(value, x, degree)
	chebyshevSlopes(slope, value, x, degree)
	terms := Terms(degree)
	var list []cut
	for i := range x {
		for j := range x {
			up, down := make(cut, len(terms)), make(cut, len(terms))
			for k, t := range terms {
				up[k] = slope[t.I*slopeGrid+i] * value[t.J*slopeGrid+j]
				down[k] = -value[t.I*slopeGrid+i] * slope[t.J*slopeGrid+j]
			}
			list = append(list, up, down)
		}
	}
	return list
}

// chebyshevSlopes is chebyshev for the derivatives of values.
func chebyshevSlopes(out, values, x []float64, degree int) {
	n := len(x)
	clear(out[:n])
	for k := range n {
		out[n+k] = 2
	}
	for d := 2; d <= degree; d++ {
		for k, u := range x {
			out[d*n+k] = 4*values[(d-1)*n+k] + 2*(2*u-1)*out[(d-1)*n+k] - out[(d-2)*n+k]
		}
	}
}

// violated returns the most violated cuts.
func violated(all []cut, z []float64) []cut {
	type fault struct {
		c cut
		v float64
	}
	var list []fault
	for _, c := range all {
		if v := floats.Dot(c, z); v < -slopeDigits {
			list = append(list, fault{c, v})
		}
	}
	slices.SortStableFunc(list, func(a, b fault) int { return cmp.Compare(a.v, b.v) })
	return lists.Map(list[:min(len(list), slopeCuts)], func(x fault) cut { return x.c })
}

var errNoProjection = errors.New("found no polynomial of this degree that rises with L and falls with T")

// nearest returns the coefficients z that satisfy the cuts with the least
// |R(z-from)|: Lawson and Hanson's least distance problem in w = R(z-from),
// which they solve by non-negative least squares (Solving Least Squares
// Problems, Section 23.4).
func (t *triangle) nearest(from []float64, cuts []cut) (z []float64, active int, err error) {
	n := len(from)
	cols := make([][]float64, len(cuts))
	for i, c := range cuts {
		g := t.forward(c)
		g = append(g, -floats.Dot(c, from))
		floats.Scale(1/floats.Norm(g[:n], 2), g)
		cols[i] = g
	}
	target := make([]float64, n+1)
	target[n] = 1
	u, err := nonNegative(cols, target)
	if err != nil {
		return nil, 0, err
	}
	r := make([]float64, n+1)
	r[n] = -1
	for i, x := range u {
		if x > 0 {
			active++
			floats.AddScaled(r, x, cols[i])
		}
	}
	if r[n] > -slopeDigits {
		return nil, 0, errNoProjection
	}
	w := r[:n]
	floats.Scale(-1/r[n], w)
	z = t.back(w)
	floats.Add(z, from)
	return z, active, nil
}
