package fitting

// The fit uses products of Chebyshev polynomials of the normalised measurements,
// T_i(2u-1)·T_j(2v-1), in the order of Terms. They span the same space as the powers,
// but are nearly independent of each other, while powers up to degree 10 are almost
// collinear.

// chebyshev fills rows 0 to degree of out, len(x) values each, with T_0 to
// T_degree at 2x-1.
func chebyshev(out, x []float64, degree int) {
	n := len(x)
	for k := range n {
		out[k] = 1
	}
	for k, u := range x {
		out[n+k] = 2*u - 1
	}
	for d := 2; d <= degree; d++ {
		a, b, c := out[(d-2)*n:(d-1)*n], out[(d-1)*n:d*n], out[d*n:(d+1)*n]
		for k, u := range x {
			c[k] = 2*(2*u-1)*b[k] - a[k]
		}
	}
}

// chebyshevPowers returns the coefficients of T_0 to T_degree at 2u-1 in
// powers of u: row d column i. They are integers below 2^24 up to degree 10.
func chebyshevPowers(degree int) [][]float64 {
	rows := make([][]float64, degree+1)
	for d := range rows {
		rows[d] = make([]float64, degree+1)
		switch d {
		case 0:
			rows[0][0] = 1
		case 1:
			rows[1][0], rows[1][1] = -1, 2
		default:
			for i := range d + 1 {
				rows[d][i] = -2*rows[d-1][i] - rows[d-2][i]
				if i > 0 {
					rows[d][i] += 4 * rows[d-1][i-1]
				}
			}
		}
	}
	return rows
}

// toPowers returns the matrix that converts coefficients of the Chebyshev products to
// coefficients of the terms L^i·T^j, row by term and column by product.
func toPowers(degree int) [][]float64 {
	uni, terms := chebyshevPowers(degree), Terms(degree)
	m := make([][]float64, len(terms))
	for r, out := range terms {
		m[r] = make([]float64, len(terms))
		for c, in := range terms {
			if out.I <= in.I && out.J <= in.J {
				m[r][c] = uni[in.I][out.I] * uni[in.J][out.J]
			}
		}
	}
	return m
}

func multiply(m [][]float64, x []float64) []float64 {
	y := make([]float64, len(m))
	for r, row := range m {
		for c, v := range row {
			y[r] += v * x[c]
		}
	}
	return y
}

// evalPowers evaluates the polynomial with the coefficients c in the order of Terms.
func evalPowers(c []float64, degree int, u, v float64) float64 {
	// Horner's rule in v over polynomials in u; the coefficient of u^i·v^j is
	// the j-th of the terms of degree i+j.
	var sum float64
	for j := degree; j >= 0; j-- {
		var inner float64
		for i := degree - j; i >= 0; i-- {
			inner = inner*u + c[termIndex(i, j)]
		}
		sum = sum*v + inner
	}
	return sum
}

// termIndex returns the index of L^i·T^j in Terms.
func termIndex(i, j int) int { return (i+j)*(i+j+1)/2 + j }
