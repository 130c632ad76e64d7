package fitting

// # From observations to a polynomial
//
// QALL (Section V) fits the traffic that leaves a port as a polynomial in the
// occupancy L of its queue and the interval T between departures, and uses the
// polynomial as the port's congestion index. The paper states the problem as
// ordinary least squares over the products L^i·T^j (Eq. 7). With the powers
// themselves and the normal equations, the solution would lose all its digits long
// before degree 10. Therefore
//
//   - each column is scaled to 0..1 by its range (the paper's "maximum and
//     minimum normalization"), and the unknowns are the coefficients of products
//     of Chebyshev polynomials (basis.go);
//   - the rows pass once through a QR decomposition that keeps only a triangle (triangle.go). Memory does not depend on the number of rows, and one pass gives the results for every fold of the cross-validation and for every lower degree;
//   - the coefficients are converted to coefficients of the powers, which the switch evaluates, only at the end.

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/p4lb/p4lb/internal/student"
)

// Limits of Options.
const (
	maxFolds = 100
	maxTest  = 0.9
)

// Options configure a fit. The zero value fits all rows by least squares and chooses
// the degree by cross-validation.
type Options struct {
	Degree int  // 0: the lowest degree that cross-validation does not find worse than the best
	Sweep  bool // also report every degree up to MaxDegree
	Test   float64
	Folds  int // folds of the cross-validation; 0: 10 if the degree is to be chosen, otherwise none
	Seed   uint64

	Ridge    float64 // penalty on the squares of all coefficients but the constant, per row
	Huber    float64 // residuals beyond this many standard deviations count linearly; 0: never
	Monotone bool    // force the fit to rise with L and fall with T
}

func (o Options) validate() error {
	switch {
	case o.Degree < 0 || o.Degree > MaxDegree:
		return fmt.Errorf("degree %d: want 1 to %d", o.Degree, MaxDegree)
	case !(o.Test >= 0 && o.Test <= maxTest):
		return fmt.Errorf("share of %g for the test: want 0 to %g", o.Test, maxTest)
	case o.Folds < 0 || o.Folds == 1 || o.Folds > maxFolds:
		return fmt.Errorf("%d folds: want 2 to %d, or 0 for none", o.Folds, maxFolds)
	case !(o.Ridge >= 0) || math.IsInf(o.Ridge, 1):
		return fmt.Errorf("ridge penalty %g: want a number from 0 on", o.Ridge)
	case !(o.Huber >= 0) || math.IsInf(o.Huber, 1):
		return fmt.Errorf("bound %g of Huber's loss: want a number from 0 on", o.Huber)
	}
	return nil
}

// A Fit is a fitted polynomial with its statistics.
type Fit struct {
	Degree int
	Spans  Spans

	// Coeff are the coefficients of the terms L^i·T^j in the order of Terms, with all three
	// columns normalised by Spans. Low and High are their 95 % confidence bounds; they are nil
	// after a projection that changed the coefficients.
	Coeff     []float64
	Low, High []float64

	Cond        float64 // condition number of the Chebyshev columns, scaled to length one
	Correlation Correlation
	Train, Test *Metrics // Test is nil if no rows were held back
	CV          *CV      // nil without folds
	Degrees     []DegreeFit
	Hull        []Point // convex hull of the training rows
	Robust      *Robust // nil without Huber
	Projection  *Projection

	cheb []float64
}

// A CV is the result of the cross-validation.
type CV struct {
	Folds  int     `json:"folds"`
	RMSE   float64 `json:"rmse"`
	MSE    float64 `json:"mse_normalised"`
	StdErr float64 `json:"mse_standard_error"`
}

// A DegreeFit is one line of the sweep over degrees, by plain least squares.
type DegreeFit struct {
	Degree int      `json:"degree"`
	Terms  int      `json:"terms"`
	Cond   float64  `json:"condition"`
	Train  *Metrics `json:"train"`
	Test   *Metrics `json:"test,omitempty"`
	CV     *CV      `json:"cross_validation,omitempty"`

	cheb []float64
}

// A RankError reports that the data do not determine a polynomial.
type RankError struct {
	Degree, Terms, Rank int
	Cond                float64
	Possible            int // the highest degree that the data determine; 0: none
}

func (e *RankError) Error() string {
	return fmt.Sprintf("the data do not determine a polynomial of degree %d: its %d terms have rank %d (condition %.1e)",
		e.Degree, e.Terms, e.Rank, e.Cond)
}

// ErrNoRows is returned if no row is left for the fit.
var ErrNoRows = errors.New("there are no rows to fit")

// Fit fits a polynomial to rows that Clean has processed. It reorders them.
func (s *Rows) Fit(ctx context.Context, o Options) (*Fit, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	if s.n == 0 {
		return nil, ErrNoRows
	}
	if o.Degree == 0 && o.Folds == 0 {
		o.Folds = 10
	}
	spans, err := s.spans()
	if err != nil {
		return nil, err
	}
	p := &problem{ctx: ctx, rows: s, opts: o, spans: spans, of: s.divide(o.Test, o.Folds, o.Seed)}
	f := &Fit{Spans: spans, Correlation: s.correlate(spans)}
	if err := p.sweep(f); err != nil {
		return nil, err
	}
	if err := p.refine(f); err != nil {
		return nil, err
	}
	p.assess(f)
	f.Hull = s.hull(p.of)
	return f, ctx.Err()
}

// A problem is one call of Fit.
type problem struct {
	ctx   context.Context
	rows  *Rows
	opts  Options
	spans Spans
	of    split

	folds []*triangle
	all   *triangle
}

// train returns the number of training rows.
func (p *problem) train() int { return p.rows.n - p.of.test }

// smallest returns the size of the smallest training set, in which one fold of the
// cross-validation is left out.
func (p *problem) smallest() int {
	if k := p.opts.Folds; k > 1 {
		return p.train() - (p.train()+k-1)/k
	}
	return p.train()
}

// sweep solves the problem by plain least squares for the requested degrees, and
// chooses the degree.
func (p *problem) sweep(f *Fit) error {
	first, last := p.opts.Degree, p.opts.Degree
	if p.opts.Degree == 0 || p.opts.Sweep {
		first, last = 1, MaxDegree
	}
	if need := len(Terms(max(p.opts.Degree, 1))); p.smallest() < need {
		return fmt.Errorf("%d training rows are fewer than the %d terms of degree %d", p.smallest(), need, max(p.opts.Degree, 1))
	}
	for len(Terms(last)) > p.smallest() {
		last--
	}
	var err error
	p.folds, err = p.rows.triangles(p.ctx, last, p.spans, p.of, p.opts.Folds, nil)
	if err != nil {
		return err
	}
	p.all = join(p.folds, -1)
	rests := p.rests()
	for d := first; d <= last; d++ {
		k := len(Terms(d))
		rank, cond := p.all.rank(k)
		if rank < k {
			if d == p.opts.Degree || d == 1 {
				return &RankError{d, k, rank, cond, p.possible(d)}
			}
			break
		}
		line := DegreeFit{Degree: d, Terms: k, Cond: cond, cheb: p.all.solve(k)}
		line.CV = p.validate(rests, k)
		f.Degrees = append(f.Degrees, line)
	}
	return p.choose(f)
}

// possible returns the highest degree below d that the data determine.
func (p *problem) possible(d int) int {
	for d--; d > 0; d-- {
		if k := len(Terms(d)); k <= p.all.n-1 {
			if rank, _ := p.all.rank(k); rank == k {
				return d
			}
		}
	}
	return 0
}

// rests returns the training sets of the cross-validation: all folds except one.
func (p *problem) rests() []*triangle {
	if len(p.folds) < 2 {
		return nil
	}
	list := make([]*triangle, len(p.folds))
	for i := range list {
		list[i] = join(p.folds, i)
	}
	return list
}

// validate returns the error of a fit with k terms on the folds that were left out.
func (p *problem) validate(rests []*triangle, k int) *CV {
	if rests == nil {
		return nil
	}
	var sum, squares float64
	n := float64(len(rests))
	for i, rest := range rests {
		mse := p.folds[i].error(rest.solve(k)) / float64(p.folds[i].rows)
		sum += mse
		squares += mse * mse
	}
	mean := sum / n
	variance := max(0, squares/n-mean*mean) * n / (n - 1)
	return &CV{
		Folds:  len(rests),
		RMSE:   math.Sqrt(mean) * p.spans.Y.width(),
		MSE:    mean,
		StdErr: math.Sqrt(variance / n),
	}
}

// choose selects the degree: the requested one, or the lowest one with an error within
// one standard error of the best.
func (p *problem) choose(f *Fit) error {
	pick := 0
	if p.opts.Degree == 0 {
		best := f.Degrees[0].CV
		for _, d := range f.Degrees {
			if d.CV.MSE < best.MSE {
				best = d.CV
			}
		}
		for f.Degrees[pick].CV.MSE > best.MSE+best.StdErr {
			pick++
		}
	} else {
		for f.Degrees[pick].Degree != p.opts.Degree {
			pick++
			if pick == len(f.Degrees) {
				k := len(Terms(p.opts.Degree))
				rank, cond := p.all.rank(k)
				return &RankError{p.opts.Degree, k, rank, cond, p.possible(p.opts.Degree)}
			}
		}
	}
	d := f.Degrees[pick]
	f.Degree, f.Cond, f.CV, f.cheb = d.Degree, d.Cond, d.CV, d.cheb
	return nil
}

// refine applies the options beyond least squares to the chosen degree and converts
// the result to powers.
func (p *problem) refine(f *Fit) error {
	k := len(Terms(f.Degree))
	t := p.all.leading(k)
	solved, variance := t, t.rss(k)/float64(max(1, t.rows-k))
	if p.opts.Ridge > 0 {
		solved = p.penalised(t, f.Degree)
		f.cheb = solved.solve(k)
		variance = t.error(f.cheb) / float64(max(1, t.rows-k))
	}
	if p.opts.Huber > 0 {
		r, err := p.robust(f)
		if err != nil {
			return err
		}
		f.Robust, variance = r, r.variance
	}
	if p.opts.Monotone {
		if err := f.project(solved); err != nil {
			return err
		}
	}
	f.Coeff = multiply(toPowers(f.Degree), f.cheb)
	if f.Projection == nil || f.Projection.Moved == 0 {
		f.Low, f.High = f.intervals(t, solved, variance)
	}
	return nil
}

// leading returns the problem restricted to the first k columns.
func (t *triangle) leading(k int) *triangle {
	if k == t.n-1 {
		return t
	}
	o := newTriangle(k + 1)
	o.rows = t.rows
	for i := range k {
		copy(o.row(i), t.row(i)[:k])
		o.row(i)[k] = t.row(i)[t.n-1]
	}
	o.row(k)[k] = math.Sqrt(t.rss(k))
	return o
}

// penalised adds the ridge: for each term except the constant, a row that pulls its coefficient
// towards zero.
func (p *problem) penalised(t *triangle, degree int) *triangle {
	o := t.clone()
	m := toPowers(degree)[1:]
	block := make([]float64, o.n*len(m))
	root := math.Sqrt(p.opts.Ridge * float64(t.rows))
	for i, row := range m {
		for j, v := range row {
			block[j*len(m)+i] = root * v
		}
	}
	o.fold(block, len(m))
	o.rows = t.rows
	return o
}

// intervals returns the 95 % confidence bounds of the coefficients. data is the
// triangle of the rows; solved is the triangle that was solved, with the ridge if
// there is one.
func (f *Fit) intervals(data, solved *triangle, variance float64) (low, high []float64) {
	free := float64(max(1, data.rows-len(f.cheb)))
	q := student.T(free).Quantile(0.975)
	for k, row := range toPowers(f.Degree) {
		// The variance of row·x for x = solved⁻¹·solved⁻ᵀ·Aᵀy, Cov y = variance·1.
		v := solved.forward(row)
		if solved != data {
			v = data.times(solved.back(v))
		}
		var sum float64
		for _, x := range v {
			sum += x * x
		}
		half := q * math.Sqrt(variance*sum)
		low, high = append(low, f.Coeff[k]-half), append(high, f.Coeff[k]+half)
	}
	return low, high
}

// At evaluates the fit at an occupancy and an interval, in the unit of the traffic.
func (f *Fit) At(l, t float64) float64 {
	return f.Spans.Y.Min + f.Spans.Y.width()*f.Unit(f.Spans.L.Unit(l), f.Spans.T.Unit(t))
}

// Unit evaluates the fit in normalised variables.
func (f *Fit) Unit(u, v float64) float64 { return evalPowers(f.Coeff, f.Degree, u, v) }
