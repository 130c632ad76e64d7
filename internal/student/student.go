// Package student has Student's t-distribution, for confidence intervals.
//
// It does without gonum/stat/distuv, which links all of LAPACK: the playground's engine
// has a limit on its size.
package student

import (
	"math"

	"gonum.org/v1/gonum/mathext"
)

// A T is the distribution with the given number of degrees of freedom.
type T float64

// Quantile returns the value below which the share p of the distribution lies, for p
// from 0.5 to 1.
func (n T) Quantile(p float64) float64 {
	nu := float64(n)
	if p <= 0.5 {
		return 0
	}
	t := mathext.InvRegIncBeta(nu/2, 0.5, 2*(1-p))
	return math.Sqrt(nu * (1 - t) / t)
}

// Survival returns the share of the distribution above x, for x from 0.
func (n T) Survival(x float64) float64 {
	nu := float64(n)
	return 0.5 * mathext.RegIncBeta(nu/2, 0.5, nu/(x*x+nu))
}
