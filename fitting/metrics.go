package fitting

import "math"

// Metrics measure how well a polynomial fits a set of rows.
type Metrics struct {
	Rows int     `json:"rows"`
	R2   float64 `json:"r2"`
	RMSE float64 `json:"rmse"` // in the unit of the traffic

	// MRE is the mean of |fit - traffic| / traffic over the MRERows rows with
	// positive traffic.
	MRE     float64 `json:"mre"`
	MRERows int     `json:"mre_rows"`

	// AIC is n·ln(RSS/n) + 2k with k coefficients, of the normalised traffic.
	AIC float64 `json:"aic"`
}

// A score accumulates the data for Metrics.
type score struct {
	n, above       int
	sum, sum2, rss float64
	relative       float64
}

// add adds a row with normalised traffic y and fitted value fit.
func (s *score) add(y, fit float64, span Span) {
	e := fit - y
	s.n++
	s.sum += y
	s.sum2 += y * y
	s.rss += e * e
	if traffic := span.Min + y*span.width(); traffic > 0 {
		s.above++
		s.relative += math.Abs(e) * span.width() / traffic
	}
}

// metrics returns the metrics for a polynomial of k terms. Residuals below the
// rounding error count as the rounding error, so that AIC is finite.
func (s *score) metrics(k int, span Span) *Metrics {
	if s.n == 0 {
		return nil
	}
	n := float64(s.n)
	m := &Metrics{
		Rows:    s.n,
		RMSE:    math.Sqrt(s.rss/n) * span.width(),
		MRERows: s.above,
		AIC:     n*math.Log(max(s.rss/n, 0x1p-104)) + 2*float64(k),
	}
	if total := s.sum2 - s.sum*s.sum/n; total > 0 {
		m.R2 = 1 - s.rss/total
	}
	if s.above > 0 {
		m.MRE = s.relative / float64(s.above)
	}
	return m
}

// assess computes the metrics of the fit and of each degree of the sweep, in
// one pass over the rows.
func (p *problem) assess(f *Fit) {
	models := [][]float64{f.cheb}
	for _, d := range f.Degrees {
		models = append(models, d.cheb)
	}
	degree := f.Degree
	for _, d := range f.Degrees {
		degree = max(degree, d.Degree)
	}
	train, test := make([]score, len(models)), make([]score, len(models))
	e := newDesign(degree, p.spans)
	fit := make([]float64, foldRows)
	start := 0 // row number of the first row in the buffers
	flush := func() {
		e.columns(e.n)
		for m, x := range models {
			predict(fit[:e.n], e.block, x)
			for i, v := range fit[:e.n] {
				s := &train[m]
				if p.of.of[start+i] == inTest {
					s = &test[m]
				}
				s.add(e.y[i], v, p.spans.Y)
			}
		}
		start += e.n
		e.n = 0
	}
	for r := range p.rows.All() {
		q := p.spans.unit(r)
		e.y[e.n], e.u[e.n], e.v[e.n] = q.Y, q.L, q.T
		if e.n++; e.n == foldRows {
			flush()
		}
	}
	flush()
	for m, x := range models {
		a, b := train[m].metrics(len(x), p.spans.Y), test[m].metrics(len(x), p.spans.Y)
		if m == 0 {
			f.Train, f.Test = a, b
			continue
		}
		f.Degrees[m-1].Train, f.Degrees[m-1].Test = a, b
	}
}

// predict computes the sum of the columns in block with the coefficients x.
func predict(fit, block, x []float64) {
	clear(fit)
	for k, c := range x {
		for i, v := range block[k*len(fit) : (k+1)*len(fit)] {
			fit[i] += c * v
		}
	}
}
