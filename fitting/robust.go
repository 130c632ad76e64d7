package fitting

import (
	"errors"
	"math"
)

// A Robust describes a fit with Huber's loss.
type Robust struct {
	Bound      float64 `json:"bound"` // in standard deviations
	Scale      float64 `json:"scale"` // the standard deviation, normalised
	Iterations int     `json:"iterations"`
	Beyond     int     `json:"rows_beyond"` // rows with reduced weight

	variance float64
}

const (
	robustLimit  = 200
	robustSettle = 10 // iterations after which the scale is frozen
	robustDigits = 1e-9
)

// robust fits by iteratively reweighted least squares. The weight of a row with a
// residual beyond the bound decreases with the residual. The scale is the median of
// the residuals; it is frozen near convergence, which makes the remaining problem
// convex.
func (p *problem) robust(f *Fit) (*Robust, error) {
	r := &Robust{Bound: p.opts.Huber}
	k := len(f.cheb)
	residuals := make([]float64, 0, p.train())
	for r.Iterations < robustLimit {
		r.Iterations++
		c := multiply(toPowers(f.Degree), f.cheb)
		residual := func(row Row) float64 {
			q := p.spans.unit(row)
			return math.Abs(q.Y - evalPowers(c, f.Degree, q.L, q.T))
		}
		if r.Iterations <= robustSettle {
			residuals = p.residuals(residuals[:0], residual)
			r.Scale = madToSigma * quantile(residuals, 0.5)
		}
		bound := r.Bound * r.Scale
		if bound < 0x1p-40 {
			break // more than half of the rows fit exactly
		}
		list, err := p.rows.triangles(p.ctx, f.Degree, p.spans, p.of, p.opts.Folds, func(row Row) float64 {
			return min(1, bound/residual(row))
		})
		if err != nil {
			return nil, err
		}
		t := join(list, -1)
		if p.opts.Ridge > 0 {
			t = p.penalised(t, f.Degree)
		}
		next := t.solve(k)
		// The two differ by so much at most, relative to the largest value.
		var d, size float64
		for i, x := range next {
			d = max(d, math.Abs(x-f.cheb[i]))
			size = max(size, math.Abs(x))
		}
		moved := d / size
		f.cheb = next
		if moved < robustDigits && r.Iterations > robustSettle {
			p.influence(r, residual)
			return r, nil
		}
	}
	if r.Iterations == robustLimit {
		return nil, errors.New("the robust fit does not settle")
	}
	return r, nil
}

func (p *problem) residuals(list []float64, residual func(Row) float64) []float64 {
	i := 0
	for row := range p.rows.All() {
		if p.of.of[i] != inTest {
			list = append(list, residual(row))
		}
		i++
	}
	return list
}

// influence computes the variance that replaces the residual variance in the
// confidence intervals (Huber, Robust Statistics, Section 7.6).
func (p *problem) influence(r *Robust, residual func(Row) float64) {
	bound := r.Bound * r.Scale
	var squares float64
	n := p.train()
	for _, e := range p.residuals(nil, residual) {
		if e > bound {
			r.Beyond++
		}
		squares += min(e, bound) * min(e, bound)
	}
	inside := float64(n-r.Beyond) / float64(n)
	r.variance = squares / float64(n) / (inside * inside)
}
