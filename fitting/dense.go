//go:build !js

package fitting

import "gonum.org/v1/gonum/mat"

// singularValues returns the singular values of a matrix of k by k, the largest first;
// nil if they cannot be computed.
func singularValues(k int, a []float64) []float64 {
	var svd mat.SVD
	if !svd.Factorize(mat.NewDense(k, k, a), mat.SVDNone) {
		return nil
	}
	return svd.Values(nil)
}

// solveQR solves for the passive columns by a QR decomposition.
func solveQR(cols [][]float64, passive []int, target []float64) ([]float64, bool) {
	a := mat.NewDense(len(target), len(passive), nil)
	for k, i := range passive {
		a.SetCol(k, cols[i])
	}
	var qr mat.QR
	qr.Factorize(a)
	var s mat.VecDense
	if err := qr.SolveVecTo(&s, false, mat.NewVecDense(len(target), target)); err != nil {
		return nil, false
	}
	return s.RawVector().Data, true
}
