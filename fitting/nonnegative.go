package fitting

import (
	"errors"
	"math"

	"gonum.org/v1/gonum/floats"
)

var errNotSettled = errors.New("the projection does not settle")

// nonNegative finds x ≥ 0 with the least |Σ x_i·cols_i - target| by the method of
// Lawson and Hanson (Solving Least Squares Problems, Section 23.3). Columns enter
// the passive set one at a time, the one that reduces the residual fastest first.
// They leave it when their coefficient would become negative.
func nonNegative(cols [][]float64, target []float64) ([]float64, error) {
	x := make([]float64, len(cols))
	var passive []int
	in := make([]bool, len(cols))
	for range 10*len(cols) + 100 {
		enter := mostWanted(cols, target, x, in)
		if enter < 0 {
			return x, nil
		}
		passive, in[enter] = append(passive, enter), true
		for {
			s, ok := leastSquares(cols, passive, target)
			if !ok || s[len(s)-1] <= 0 && passive[len(passive)-1] == enter && x[enter] == 0 {
				// Due to rounding, the column depends on the others.
				in[enter] = false
				return x, nil
			}
			if floats.Min(s) > 0 {
				for k, i := range passive {
					x[i] = s[k]
				}
				break
			}
			passive = retreat(x, s, passive, in)
		}
	}
	return nil, errNotSettled
}

// mostWanted returns the column outside the passive set that reduces the residual fastest, or -1
// if none does.
func mostWanted(cols [][]float64, target, x []float64, in []bool) int {
	rest := append([]float64(nil), target...)
	for i, v := range x {
		if v != 0 {
			floats.AddScaled(rest, -v, cols[i])
		}
	}
	best, pick := 1e-12, -1
	for i, c := range cols {
		if w := floats.Dot(c, rest); !in[i] && w > best {
			best, pick = w, i
		}
	}
	return pick
}

// leastSquares solves for the passive columns. ok is false if they depend on each
// other.
func leastSquares(cols [][]float64, passive []int, target []float64) ([]float64, bool) {
	if len(passive) > len(target) {
		return nil, false
	}
	return solveQR(cols, passive, target)
}

// retreat moves x towards s until a coefficient would become negative. Then it
// removes columns with zero coefficients from the passive set.
func retreat(x, s []float64, passive []int, in []bool) []int {
	step := math.Inf(1)
	for k, i := range passive {
		if s[k] <= 0 {
			step = min(step, x[i]/(x[i]-s[k]))
		}
	}
	kept := passive[:0]
	for k, i := range passive {
		x[i] += step * (s[k] - x[i])
		if s[k] <= 0 && x[i] <= 1e-15 {
			x[i], in[i] = 0, false
			continue
		}
		kept = append(kept, i)
	}
	return kept
}
