package fitting

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"
)

// randomRows makes n rows of a polynomial with the coefficients c in powers of
// the normalised measurements. The corners of the box are among them, so that
// the normalisation is known.
func randomRows(n, degree int, c []float64, noise float64, seed uint64) *Rows {
	rng := rand.New(rand.NewPCG(seed, 1))
	s := new(Rows)
	for i := range n {
		u, v := rng.Float64(), rng.Float64()
		if i < 4 {
			u, v = float64(i%2), float64(i/2)
		}
		y := evalPowers(c, degree, u, v) + noise*rng.NormFloat64()
		s.Append(Row{Y: 1000 + 500*y, L: 20 + 200*u, T: 3 + 4000*v})
	}
	return s
}

func randomCoeff(degree int, seed uint64) []float64 {
	rng := rand.New(rand.NewPCG(seed, 2))
	c := make([]float64, len(Terms(degree)))
	for i := range c {
		c[i] = 0.5 + rng.Float64()
		if rng.IntN(2) == 0 {
			c[i] = -c[i]
		}
	}
	return c
}

// inTraffic undoes the normalisation of the traffic.
func (f *Fit) inTraffic() []float64 {
	c := make([]float64, len(f.Coeff))
	for i, v := range f.Coeff {
		c[i] = v * f.Spans.Y.width()
	}
	c[0] += f.Spans.Y.Min
	return c
}

func mustFit(t *testing.T, s *Rows, o Options) *Fit {
	t.Helper()
	f, err := s.Fit(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// relative is the largest difference of two coefficients, relative to them.
func relative(a, b []float64) float64 {
	var d float64
	for i, x := range a {
		d = max(d, math.Abs(x-b[i])/math.Abs(b[i]))
	}
	return d
}

func TestRecover(t *testing.T) {
	for _, degree := range []int{1, 2, 3, 5, 10} {
		t.Run(fmt.Sprint(degree), func(t *testing.T) {
			c := randomCoeff(degree, uint64(degree))
			f := mustFit(t, randomRows(5000, degree, c, 0, 1), Options{Degree: degree, Test: 0.25})
			want := make([]float64, len(c))
			for i, v := range c {
				want[i] = 500 * v
			}
			want[0] += 1000
			bound := 1e-9
			if degree == 10 {
				bound = 1e-5 // the powers of degree 10 multiply what rounding leaves by 1e8
			}
			if d := relative(f.inTraffic(), want); d > bound {
				t.Errorf("coefficients differ by %.2g, relative", d)
			}
			if f.Train.R2 < 1-1e-12 || f.Test.R2 < 1-1e-12 || f.Test.Rows != 1250 {
				t.Errorf("R² %v and %v", f.Train, f.Test)
			}
		})
	}
}

// TestRational compares with the normal equations in exact arithmetic.
func TestRational(t *testing.T) {
	for _, degree := range []int{1, 2, 3, 4} {
		s := randomRows(60, degree, randomCoeff(degree, 7), 0.2, 9)
		f := mustFit(t, s, Options{Degree: degree})
		if d := relative(f.Coeff, rationalFit(s, f.Spans, degree)); d > 1e-9 {
			t.Errorf("degree %d: coefficients differ by %.2g, relative", degree, d)
		}
	}
}

// rationalFit solves AᵀA·c = Aᵀy by Gauss and Jordan. The normalised values are
// taken as they are rounded.
func rationalFit(s *Rows, p Spans, degree int) []float64 {
	terms := Terms(degree)
	k := len(terms)
	m := make([][]*big.Rat, k)
	for i := range m {
		m[i] = make([]*big.Rat, k+1)
		for j := range m[i] {
			m[i][j] = new(big.Rat)
		}
	}
	for r := range s.All() {
		q := p.unit(r)
		row := make([]*big.Rat, k+1)
		for i, e := range terms {
			row[i] = ratProduct(q.L, e.I, q.T, e.J)
		}
		row[k] = new(big.Rat).SetFloat64(q.Y)
		for i := range k {
			for j := range k + 1 {
				m[i][j].Add(m[i][j], new(big.Rat).Mul(row[i], row[j]))
			}
		}
	}
	for i := range k {
		inverse := new(big.Rat).Inv(m[i][i])
		for j := range k + 1 {
			m[i][j].Mul(m[i][j], inverse)
		}
		for r := range k {
			if r == i {
				continue
			}
			factor := new(big.Rat).Set(m[r][i])
			for j := i; j < k+1; j++ {
				m[r][j].Sub(m[r][j], new(big.Rat).Mul(factor, m[i][j]))
			}
		}
	}
	c := make([]float64, k)
	for i := range c {
		c[i], _ = m[i][k].Float64()
	}
	return c
}

func ratProduct(u float64, i int, v float64, j int) *big.Rat {
	r := big.NewRat(1, 1)
	for range i {
		r.Mul(r, new(big.Rat).SetFloat64(u))
	}
	for range j {
		r.Mul(r, new(big.Rat).SetFloat64(v))
	}
	return r
}

// TestPermuted, TestScaled: the fit depends on the set of rows alone, the split
// and the folds included.
func TestPermuted(t *testing.T) {
	for _, o := range []Options{
		{Degree: 3, Test: 0.25, Folds: 5, Seed: 3},
		{Degree: 2, Huber: 1.345},
		{Huber: 2, Test: 0.25},
		{Degree: 3, Ridge: 1e-4, Test: 0.1},
		{Test: 0.25},
	} {
		a := randomRows(40_000, 3, randomCoeff(3, 4), 0.3, 5)
		b := new(Rows)
		rows := make([]Row, 0, a.Len())
		for r := range a.All() {
			rows = append(rows, r)
		}
		rng := rand.New(rand.NewPCG(6, 6))
		for _, i := range rng.Perm(len(rows)) {
			b.Append(rows[i])
		}
		sameFit(t, mustFit(t, a, o), mustFit(t, b, o), 1)
	}
}

func TestScaled(t *testing.T) {
	const traffic, occupancy, interval = 1.0 / 1024, 3.7, 0.001
	a := randomRows(20_000, 3, randomCoeff(3, 4), 0.3, 5)
	b := new(Rows)
	for r := range a.All() {
		b.Append(Row{r.Y * traffic, r.L * occupancy, r.T * interval})
	}
	o := Options{Degree: 3, Test: 0.25, Folds: 5}
	sameFit(t, mustFit(t, a, o), mustFit(t, b, o), traffic)
}

// sameFit compares two fits; b's traffic is in units that are scale times as
// large.
func sameFit(t *testing.T, a, b *Fit, scale float64) {
	t.Helper()
	if a.Degree != b.Degree || a.Train.Rows != b.Train.Rows {
		t.Fatalf("degree %d of %d rows, %d of %d", a.Degree, a.Train.Rows, b.Degree, b.Train.Rows)
	}
	if d := relative(a.Coeff, b.Coeff); d > 1e-7 {
		t.Errorf("coefficients differ by %.2g, relative", d)
	}
	near := func(name string, x, y float64) {
		t.Helper()
		if math.Abs(x-y) > 1e-9*math.Abs(x) {
			t.Errorf("%s: %v and %v", name, x, y)
		}
	}
	near("R²", a.Train.R2, b.Train.R2)
	near("RMSE", a.Train.RMSE*scale, b.Train.RMSE)
	near("MRE", a.Train.MRE, b.Train.MRE)
	if a.Test != nil {
		near("R² of the test", a.Test.R2, b.Test.R2)
	}
	if a.CV != nil {
		near("cross-validation", a.CV.MSE, b.CV.MSE)
		near("its standard error", a.CV.StdErr, b.CV.StdErr)
	}
}

// TestCrossValidation compares with fits to the folds one by one.
func TestCrossValidation(t *testing.T) {
	s := randomRows(3000, 2, randomCoeff(2, 4), 0.3, 5)
	const folds = 4
	f := mustFit(t, s, Options{Degree: 2, Folds: folds, Seed: 11})
	of := s.divide(0, folds, 11)
	var sum float64
	for k := range folds {
		var rest, fold Rows
		i := 0
		for r := range s.All() {
			if int(of.of[i]) == k {
				fold.Append(r)
			} else {
				rest.Append(r)
			}
			i++
		}
		g := mustFit(t, &rest, Options{Degree: 2})
		var rss float64
		for r := range fold.All() {
			e := (r.Y - g.At(r.L, r.T)) / f.Spans.Y.width()
			rss += e * e
		}
		sum += rss / float64(fold.Len())
	}
	if got, want := f.CV.MSE, sum/folds; math.Abs(got-want) > 1e-10*want {
		t.Errorf("mean squared error %v, want %v", got, want)
	}
}

func TestAutoDegree(t *testing.T) {
	for _, degree := range []int{1, 2, 4} {
		f := mustFit(t, randomRows(4000, degree, randomCoeff(degree, 3), 0.02, 8), Options{})
		if f.Degree != degree {
			t.Errorf("chose degree %d for data of degree %d", f.Degree, degree)
		}
		if len(f.Degrees) != MaxDegree {
			t.Errorf("%d degrees in the sweep", len(f.Degrees))
		}
	}
}

// TestIntervals repeats a fit: about 95 % of the intervals hold the truth.
func TestIntervals(t *testing.T) {
	c := randomCoeff(2, 4)
	for _, o := range []Options{{Degree: 2}, {Degree: 2, Huber: 1.345}} {
		held, all := 0, 0
		for seed := range uint64(200) {
			s := randomRows(300, 2, c, 0.1, 100+seed)
			f := mustFit(t, s, o)
			// The intervals are of the normalised traffic.
			for i, v := range c {
				truth := 500 * v / f.Spans.Y.width()
				if i == 0 {
					truth += (1000 - f.Spans.Y.Min) / f.Spans.Y.width()
				}
				all++
				if f.Low[i] <= truth && truth <= f.High[i] {
					held++
				}
			}
		}
		if share := float64(held) / float64(all); share < 0.92 || share > 0.98 {
			t.Errorf("%+v: %.1f %% of the intervals hold the truth", o, 100*share)
		}
	}
}

func TestRidge(t *testing.T) {
	s := randomRows(2000, 3, randomCoeff(3, 4), 0.5, 5)
	size := func(f *Fit) (sum float64) {
		for _, c := range f.Coeff[1:] {
			sum += c * c
		}
		return sum
	}
	last := math.Inf(1)
	for _, ridge := range []float64{0, 1e-6, 1e-4, 1e-2, 1} {
		f := mustFit(t, s, Options{Degree: 3, Ridge: ridge})
		if size(f) >= last {
			t.Errorf("penalty %g: the coefficients do not shrink: %g after %g", ridge, size(f), last)
		}
		last = size(f)
	}
}

func TestHuber(t *testing.T) {
	c := randomCoeff(2, 4)
	s := randomRows(4000, 2, c, 0.01, 5)
	i := 0
	for k := range s.blocks[0] {
		if i++; i%10 == 0 {
			s.blocks[0][k].Y += 3000 // one row in ten is wrong, all in one direction
		}
	}
	off := func(f *Fit) float64 {
		var d float64
		got := f.inTraffic()
		for i, v := range c[1:] {
			d = max(d, math.Abs(got[i+1]-500*v)/500)
		}
		return d
	}
	plain, robust := mustFit(t, s, Options{Degree: 2}), mustFit(t, s, Options{Degree: 2, Huber: 1.345})
	if off(robust) > 0.02 || off(plain) < 5*off(robust) {
		t.Errorf("off by %g with Huber's loss, %g without", off(robust), off(plain))
	}
	if robust.Robust.Beyond < 400 {
		t.Errorf("%+v", robust.Robust)
	}
}

func TestFitErrors(t *testing.T) {
	few := randomRows(9, 1, randomCoeff(1, 1), 0, 1)
	levels, line, flat := new(Rows), new(Rows), new(Rows)
	for i := range 1000 {
		x := float64(i)
		levels.Append(Row{math.Sin(x), float64(i % 3), x})
		line.Append(Row{math.Sin(x), x, 2 * x})
		flat.Append(Row{math.Sin(x), 7, x})
	}
	for _, c := range []struct {
		rows *Rows
		opts Options
		want string
	}{
		{new(Rows), Options{Degree: 1}, "no rows"},
		{few, Options{Degree: 3}, "9 training rows are fewer than the 10 terms of degree 3"},
		{flat, Options{Degree: 1}, "the column occupancy is constant: all 1000 rows say 7 of 255"},
		{levels, Options{Degree: 3}, "degree 3: its 10 terms have rank 9"},
		{line, Options{Degree: 1}, "degree 1: its 3 terms have rank 2"},
		{line, Options{}, "degree 1: its 3 terms have rank 2"},
		{few, Options{Degree: 11}, "degree 11: want 1 to 10"},
		{few, Options{Degree: 1, Test: 1}, "share of 1 for the test"},
		{few, Options{Degree: 1, Folds: 1}, "1 folds"},
		{few, Options{Degree: 1, Ridge: math.NaN()}, "ridge penalty NaN"},
		{few, Options{Degree: 1, Huber: -1}, "bound -1 of Huber"},
	} {
		_, err := c.rows.Fit(t.Context(), c.opts)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: got %v, want %q", c.opts, err, c.want)
		}
	}
	var rank *RankError
	if _, err := levels.Fit(t.Context(), Options{Degree: 5}); !errors.As(err, &rank) || rank.Possible != 2 {
		t.Errorf("got %v", err)
	}
	// The sweep ends where the data end.
	if f := mustFit(t, levels, Options{}); len(f.Degrees) != 2 {
		t.Errorf("%d degrees", len(f.Degrees))
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := levels.Fit(ctx, Options{Degree: 1}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func BenchmarkFit(b *testing.B) {
	s := randomRows(200_000, 5, randomCoeff(5, 1), 0.2, 1)
	for _, degree := range []int{3, 10} {
		b.Run(fmt.Sprint(degree), func(b *testing.B) {
			for b.Loop() {
				if _, err := s.Fit(b.Context(), Options{Degree: degree, Test: 0.25}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
