package fitting

// A browser evaluates polynomials and fits none, so the engine of the playground does
// without LAPACK, a tenth of its size.

func singularValues(int, []float64) []float64 { return nil }

func solveQR([][]float64, []int, []float64) ([]float64, bool) { return nil, false }
