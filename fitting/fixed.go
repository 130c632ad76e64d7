package fitting

import (
	"cmp"
	"fmt"
	"math"
	"math/big"
)

// FixOptions configure the conversion of a fit to integers. The zero value scales by
// 1000 and uses the narrowest accumulator that holds the sum.
type FixOptions struct {
	Scale int64 // 0: defaultScale, or less if that does not fit into the width; see Auto
	Auto  bool  // take the largest power of ten that fits, instead of Scale
	Width int   // bits of the accumulator, sign included; 0: 64 or 128
}

const (
	// defaultScale is the scale of the coefficients. It has one digit more than the paper's 100.
	defaultScale = 1000

	// maxIndex bounds C_max, because the weights of 16 ports are summed in 32 bits.
	maxIndex = 1 << 28

	maxScale = 1_000_000_000

	// mostUnits is the widest range of a variable. Beyond it, Range.Reciprocal would be 0.
	mostUnits = 255 << 16
)

func (o FixOptions) validate() error {
	switch {
	case o.Scale < 0 || o.Scale > maxScale:
		return fmt.Errorf("scale %d: want 1 to %d", o.Scale, maxScale)
	case o.Width != 0 && (o.Width < 16 || o.Width > 128):
		return fmt.Errorf("an accumulator of %d bits: want 16 to 128", o.Width)
	}
	return nil
}

// An OverflowError reports that a polynomial exceeds its fixed-point format.
type OverflowError struct {
	Width, Need int
	Scale       int64
	Term        Term     // the term with the largest value
	Coeff       int64    // coefficient of the term
	Reach       *big.Int // the largest magnitude of this term alone
	Possible    int64    // the largest scale that fits; 0: none
}

func (e *OverflowError) Error() string {
	way := fmt.Sprintf("%d bits would do", e.Need)
	if e.Need > 128 {
		way = "no accumulator of up to 128 bits would do"
	}
	if e.Possible > 0 {
		way += fmt.Sprintf(", or a scale of at most %d", e.Possible)
	}
	return fmt.Sprintf("at scale %d the sum does not fit in %d bits: the term %d·%s alone reaches %s, the bound is 2^%d: %s",
		e.Scale, e.Width, e.Coeff, e.Term, power2(e.Reach), e.Width-1, way)
}

func power2(x *big.Int) string {
	f, _ := new(big.Float).SetInt(x).Float64()
	return fmt.Sprintf("2^%.1f", math.Log2(f))
}

// String formats a term as in the paper: L²·T is L^2·T.
func (t Term) String() string {
	text := ""
	for _, x := range []struct {
		name string
		n    int
	}{{"L", t.I}, {"T", t.J}} {
		switch {
		case x.n == 0:
			continue
		case text != "":
			text += "·"
		}
		text += x.name
		if x.n > 1 {
			text += fmt.Sprintf("^%d", x.n)
		}
	}
	return cmp.Or(text, "1")
}

// Fix converts the fit to a polynomial for the data plane. rows are the fitted rows;
// the constants of both variables compensate for the average rounding error of their
// bytes.
func (f *Fit) Fix(rows *Rows, o FixOptions) (Poly, error) {
	if err := o.validate(); err != nil {
		return Poly{}, err
	}
	p := Poly{Degree: f.Degree, L: f.Spans.L.outward().exact(), T: f.Spans.T.outward()}
	real := f.inBytes(p.unitOf(f.Spans, rows))
	if err := p.settle(real, o); err != nil {
		return Poly{}, err
	}
	grid := p.Grid()
	p.CMax = largest(grid, p.covered(f.Hull))
	if p.CMax < 1 {
		return Poly{}, fmt.Errorf("at scale %d the index is nowhere positive where the data lie: all ports would have the same weight", p.Scale)
	}
	if p.CMax >= maxIndex {
		return Poly{}, fmt.Errorf("at scale %d the index reaches %d: the weights of 16 ports do not add up within 32 bits, want a scale of at most %d",
			p.Scale, p.CMax, p.Scale*(maxIndex-1)/p.CMax)
	}
	return p, p.Validate()
}

// outward returns the smallest range of whole units that contains the span, except for rounding
// errors. It is limited to ranges with a non-zero reciprocal: T saturates after 255·2^16 µs, 17
// s.
func (s Span) outward() Range {
	low, high := int64(math.Floor(s.Min+1e-9*math.Abs(s.Min))), int64(math.Ceil(s.Max-1e-9*math.Abs(s.Max)))
	return Range{low, low + min(max(high-low, 1), mostUnits)}
}

// exact widens a range of bytes until its Reciprocal is exact. The end of the range
// then becomes 255, to which a switch clamps larger values.
func (r Range) exact() Range {
	width := r.Max - r.Min
	for mostUnits%width != 0 {
		width++
	}
	low := max(0, min(r.Min, 255-width))
	return Range{low, low + width}
}

// unitsPerByte returns how many units of the measurement a step of the byte represents.
func (r Range) unitsPerByte() float64 { return 65536 / float64(r.Reciprocal()) }

// An affine maps x to a + b·x.
type affine struct{ a, b float64 }

// unitOf returns the mapping of the bytes l and t, read as l/256 and t/256, to
// normalised variables. The byte 255 represents the end of the range. Measurements are
// truncated to bytes, so they exceed the byte's value by half a unit on average; the
// exact offset is computed from rows.
func (p Poly) unitOf(s Spans, rows *Rows) (l, t affine) {
	of := func(r Range, s Span) affine {
		return affine{(float64(r.Min) - s.Min) / s.width(), 256 * r.unitsPerByte() / s.width()}
	}
	l, t = of(p.LRange(), s.L), of(p.T, s.T)
	var dl, dt float64
	for r := range rows.All() {
		bl, bt := p.Bytes(r.L, r.T)
		dl += s.L.Unit(r.L) - (l.a + l.b*float64(bl)/256)
		dt += s.T.Unit(r.T) - (t.a + t.b*float64(bt)/256)
	}
	l.a += dl / float64(rows.n)
	t.a += dt / float64(rows.n)
	return l, t
}

// Bytes returns a measurement as the data plane sees it. The switch counts whole
// units.
func (p Poly) Bytes(l, t float64) (int64, int64) {
	whole := func(v float64) int64 { return int64(min(max(v+1e-9*v, 0), 1<<40)) }
	return p.LRange().Byte(whole(l)), p.T.Byte(whole(t))
}

// inBytes returns the coefficients of the fit in the variables l/256 and t/256.
func (f *Fit) inBytes(l, t affine) []float64 {
	out := make([]float64, len(f.Coeff))
	lp, tp := l.powers(f.Degree), t.powers(f.Degree)
	for k, e := range Terms(f.Degree) {
		for i, x := range lp[e.I] {
			for j, y := range tp[e.J] {
				out[termIndex(i, j)] += f.Coeff[k] * x * y
			}
		}
	}
	return out
}

// powers returns the coefficients of (a + b·x)^n for n up to degree.
func (m affine) powers(degree int) [][]float64 {
	list := [][]float64{{1}}
	for n := range degree {
		next := make([]float64, n+2)
		for i, c := range list[n] {
			next[i] += m.a * c
			next[i+1] += m.b * c
		}
		list = append(list, next)
	}
	return list
}

// settle sets the scale and the coefficients.
func (p *Poly) settle(real []float64, o FixOptions) error {
	switch {
	case o.Auto:
		for s := int64(maxScale); s >= 1; s /= 10 {
			if err := p.tryScale(real, s, o.Width); err == nil && p.Scale*int64(math.Ceil(size(real))) < maxIndex {
				return nil
			}
		}
		return p.tryScale(real, 1, o.Width)
	case o.Scale == 0:
		o.Scale = defaultScale
	}
	return p.tryScale(real, o.Scale, o.Width)
}

// size returns a bound of a polynomial's value over the unit square.
func size(c []float64) (sum float64) {
	for _, x := range c {
		sum += math.Abs(x)
	}
	return sum
}

// tryScale sets the coefficients. It fails if the sum may overflow according to interval
// arithmetic over all bytes.
func (p *Poly) tryScale(real []float64, scale int64, width int) error {
	p.Scale, p.Coeff = scale, make([]int64, len(real))
	for k, x := range real {
		v := math.Round(x * float64(scale))
		if math.Abs(v) >= 1<<62 {
			return fmt.Errorf("at scale %d the coefficient of %s is %.3g, more than 62 bits hold: want a smaller scale", scale, Terms(p.Degree)[k], v)
		}
		p.Coeff[k] = int64(v)
	}
	if width == 0 {
		width = min(128, p.Width())
	}
	need := p.bound().BitLen() + 1
	if need <= width {
		return nil
	}
	e := &OverflowError{Width: width, Need: need, Scale: scale, Reach: new(big.Int)}
	for k, t := range Terms(p.Degree) {
		if x := p.reach(k); x.Cmp(e.Reach) > 0 {
			e.Reach, e.Term, e.Coeff = x, t, p.Coeff[k]
		}
	}
	e.Possible = p.possibleScale(real, width)
	return e
}

// reach returns the largest magnitude of a term of the sum.
func (p Poly) reach(k int) *big.Int {
	one := Poly{Degree: p.Degree, Coeff: make([]int64, len(p.Coeff))}
	one.Coeff[k] = p.Coeff[k]
	return one.bound()
}

// possibleScale returns the largest scale at which the sum fits.
func (p Poly) possibleScale(real []float64, width int) int64 {
	lo, hi := int64(0), p.Scale // the sum does not fit at hi; if it fits at any scale, it fits at lo
	for hi-lo > 1 {
		mid := lo + (hi-lo)/2
		q := Poly{Degree: p.Degree, Coeff: make([]int64, len(real))}
		for k, x := range real {
			q.Coeff[k] = int64(math.Round(x * float64(mid)))
		}
		if q.bound().BitLen() < width {
			lo = mid
		} else {
			hi = mid
		}
	}
	return lo
}

// covered marks the bytes with measurements in the hull of the data, or less than
// one unit outside of it.
func (p Poly) covered(hull []Point) []bool {
	in := make([]bool, 1<<16)
	at := func(r Range, b float64) float64 { return float64(r.Min) + b*r.unitsPerByte() }
	for l := range 256 {
		for t := range 256 {
			for _, d := range [...]struct{ l, t float64 }{{0, 0}, {0.5, 0.5}, {0, 1}, {1, 0}, {1, 1}} {
				if inside(hull, Point{at(p.LRange(), float64(l)+d.l), at(p.T, float64(t)+d.t)}) {
					in[l<<8+t] = true
					break
				}
			}
		}
	}
	return in
}

// largest returns the maximum of the covered values.
func largest(grid []int64, covered []bool) int64 {
	best := int64(math.MinInt64)
	for i, c := range covered {
		if c {
			best = max(best, grid[i])
		}
	}
	return best
}
