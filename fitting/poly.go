// Package fitting converts observations of queues to polynomials that a switch can
// evaluate. It also computes parameters for a network that the papers leave to
// their users.
package fitting

import (
	"errors"
	"fmt"
	"math/big"
	"math/bits"
	"slices"
)

// MaxDegree is the highest degree that QALL fits (Table I).
const MaxDegree = 10

// A Poly estimates a port's congestion from its queue: a polynomial in the
// queue occupancy L and the dequeue interval T with integer coefficients, in
// the fixed point of the data plane.
//
// The variables l and t are bytes from 0 to 255 that represent the fractions l/256
// and t/256. For degree d and coefficients multiplied by Scale,
//
//	C(l,t) = (Σ c_ij·l^i·t^j << 8(d-i-j)) >> 8d
//
// So the sum is exact, and only the last shift rounds (down). C is then clamped to
// [0, Max()].
type Poly struct {
	Degree int   `json:"degree"`
	Scale  int64 `json:"scale"` // the factor of the integer coefficients

	// Coeff has (d+1)(d+2)/2 entries in graded order: 1, L, T, L², LT, T², L³,
	// L²T, … as Terms lists them.
	Coeff []int64 `json:"coeff"`

	// L and T are the measurements for the bytes 0 and 255. L is in units of the
	// occupancy that the switch reports, 1/255 of the queue; T is in µs. The zero
	// Range of L is {0, 255}: the byte as reported.
	L Range `json:"l"`
	T Range `json:"t"`

	// CMax is C_max if it is known. A fit sets it to the largest value in the range of its data,
	// because a polynomial has no meaning beyond. 0: the largest value over all bytes.
	CMax int64 `json:"cmax,omitempty"`
}

// A Range is the range with which a variable was normalised: the range of the data.
type Range struct {
	Min int64 `json:"min"`
	Max int64 `json:"max"`
}

// A Term holds the exponents of L and T in one term.
type Term struct{ I, J int }

// Terms lists the terms up to a degree in the order of Poly.Coeff.
func Terms(degree int) []Term {
	var list []Term
	for d := range degree + 1 {
		for j := range d + 1 {
			list = append(list, Term{d - j, j})
		}
	}
	return list
}

// Reciprocal returns floor(255·2^16 / (Max-Min)), which replaces the division in Byte, because
// switches cannot divide.
func (r Range) Reciprocal() int64 { return 255 << 16 / (r.Max - r.Min) }

// Byte normalises a measurement to 0..255, as the data plane does.
func (r Range) Byte(v int64) int64 {
	v = min(max(v, r.Min), r.Max) - r.Min
	return min(255, v*r.Reciprocal()>>16)
}

// LRange returns the range of L with its default.
func (p Poly) LRange() Range {
	if p.L == (Range{}) {
		return Range{0, 255}
	}
	return p.L
}

// Validate returns an error if p cannot be evaluated.
func (p Poly) Validate() error {
	if p.Degree < 1 || p.Degree > MaxDegree {
		return fmt.Errorf("degree %d: want 1 to %d", p.Degree, MaxDegree)
	}
	switch want := len(Terms(p.Degree)); {
	case len(p.Coeff) != want:
		return fmt.Errorf("%d coefficients: a polynomial of degree %d in L and T has %d", len(p.Coeff), p.Degree, want)
	case p.Scale < 1:
		return fmt.Errorf("scale %d: want at least 1", p.Scale)
	case p.LRange().Max <= p.LRange().Min || p.LRange().Min < 0 || p.LRange().Max > 255:
		return fmt.Errorf("the range of L is %d to %d: want one within 0 to 255", p.L.Min, p.L.Max)
	case p.CMax < 0:
		return fmt.Errorf("a C_max of %d: want a number above 0, or 0 for the largest value of the polynomial", p.CMax)
	case p.T.Max <= p.T.Min || p.T.Min < 0 || p.T.Max >= 1<<32:
		return fmt.Errorf("the range of T is %d to %d us: want one within 0 to 2^32-1", p.T.Min, p.T.Max)
	}
	if w := p.Width(); w > 128 {
		return fmt.Errorf("the sum of the terms needs %d bits, more than the 128 of the widest accumulator: its magnitude reaches %s", w, p.bound())
	}
	if p.Max() < 1 {
		return errors.New("the polynomial is nowhere positive: all ports would have the same weight")
	}
	return nil
}

// bound returns the largest magnitude of any partial sum of Eval: Σ |c_ij|·255^(i+j) << 8(d-i-j).
func (p Poly) bound() *big.Int {
	sum := new(big.Int)
	for k, t := range Terms(p.Degree) {
		x := new(big.Int).Exp(big.NewInt(255), big.NewInt(int64(t.I+t.J)), nil)
		x.Mul(x, new(big.Int).Abs(big.NewInt(p.Coeff[k])))
		sum.Add(sum, x.Lsh(x, uint(8*(p.Degree-t.I-t.J))))
	}
	return sum
}

// Width returns the number of bits of the accumulator, including the sign, that can hold every
// intermediate result of Eval: 64 or 128 if sufficient, and otherwise the exact number.
func (p Poly) Width() int {
	switch need := p.bound().BitLen() + 1; {
	case need <= 64:
		return 64
	case need <= 128:
		return 128
	default:
		return need
	}
}

// raw evaluates the polynomial at the bytes l and t, without limits.
func (p Poly) raw(l, t int64) int64 {
	if p.narrow() {
		return p.sum(l, t) >> (8 * p.Degree)
	}
	if p.wide() {
		return p.raw128(l, t)
	}
	return hornerBig(p.inTBig(l), t, p.Degree)
}

// wide reports whether 128 bits certainly hold every intermediate value, because no
// factor of a coefficient exceeds 2^(8d).
func (p Poly) wide() bool {
	sum := uint64(0)
	for _, c := range p.Coeff {
		over := uint64(0)
		if sum, over = bits.Add64(sum, uint64(max(c, -c)), 0); over > 0 { // for the least integer this is 2^63, which is correct
			return false
		}
	}
	return bits.Len64(sum)+8*p.Degree < 128
}

// raw128 is raw with 128-bit arithmetic, in two halves. It applies Horner's rule in
// t, and in l for each coefficient.
func (p Poly) raw128(l, t int64) int64 {
	var hi, lo uint64
	for j := p.Degree; j >= 0; j-- {
		var h, o uint64
		for i := p.Degree - j; i >= 0; i-- {
			d := i + j
			c, n := p.Coeff[d*(d+1)/2+j], uint(8*(p.Degree-d))
			low, high := uint64(c)<<n, uint64(c>>(64-min(n, 64)))
			if n > 64 {
				high = uint64(c) << (n - 64)
			}
			h, o = mulAdd128(h, o, uint64(l), high, low)
		}
		hi, lo = mulAdd128(hi, lo, uint64(t), h, o)
	}
	n := uint(8 * p.Degree)
	if n < 64 {
		return int64(hi<<(64-n) | lo>>n)
	}
	return int64(hi) >> (n - 64)
}

// mulAdd128 returns a·x+b modulo 2^128.
func mulAdd128(aHi, aLo, x, bHi, bLo uint64) (hi, lo uint64) {
	hi, lo = bits.Mul64(aLo, x)
	lo, carry := bits.Add64(lo, bLo, 0)
	return hi + aHi*x + bHi + carry, lo
}

// maxNarrow is the highest degree whose factors, including 2^(8d), fit in 64 bits.
const maxNarrow = 7

// narrow reports whether 64 bits hold every intermediate value. It is Width without
// big numbers, because the models evaluate it for each packet. Above maxNarrow it
// returns false.
func (p Poly) narrow() bool {
	if p.Degree > maxNarrow {
		return false
	}
	bound, k := uint64(0), 0
	for d := range p.Degree + 1 {
		factor := uint64(power(255, d)) << (8 * (p.Degree - d))
		for range d + 1 {
			c := uint64(max(p.Coeff[k], -p.Coeff[k])) // correct for the least integer too, whose magnitude is 2^63
			over, x := bits.Mul64(c, factor)
			sum, carry := bits.Add64(bound, x, 0)
			if over|carry > 0 {
				return false
			}
			bound, k = sum, k+1
		}
	}
	return bound < 1<<63
}

// sum returns the sum of the terms of a narrow polynomial. Terms of degree d are added
// after the lower ones have been multiplied by 256 once more.
func (p Poly) sum(l, t int64) int64 {
	var powers [maxNarrow + 1]int64 // powers of t
	sum, k := int64(0), 0
	for d, x := 0, int64(1); d <= p.Degree; d, x = d+1, x*t {
		powers[d] = x
		terms, y := int64(0), int64(1)
		for j := d; j >= 0; j, y = j-1, y*l {
			terms += p.Coeff[k+j] * y * powers[j]
		}
		sum, k = sum<<8+terms, k+d+1
	}
	return sum
}

// inT fixes L: it returns the coefficients of the powers of t, all shifted to
// the scale of the sum.
func (p Poly) inT(l int64) []int64 {
	b := make([]int64, p.Degree+1)
	for k, e := range Terms(p.Degree) {
		b[e.J] += p.Coeff[k] * power(l, e.I) << (8 * (p.Degree - e.I - e.J))
	}
	return b
}

func (p Poly) inTBig(l int64) []*big.Int {
	b := make([]*big.Int, p.Degree+1)
	for j := range b {
		b[j] = new(big.Int)
	}
	powers := make([]*big.Int, p.Degree+1) // powers of l
	powers[0] = big.NewInt(1)
	for i := range p.Degree {
		powers[i+1] = new(big.Int).Mul(powers[i], big.NewInt(l))
	}
	var x, c big.Int
	for k, e := range Terms(p.Degree) {
		x.Mul(powers[e.I], c.SetInt64(p.Coeff[k]))
		b[e.J].Add(b[e.J], x.Lsh(&x, uint(8*(p.Degree-e.I-e.J))))
	}
	return b
}

func hornerBig(b []*big.Int, t int64, degree int) int64 {
	sum, x := new(big.Int), big.NewInt(t)
	for _, c := range slices.Backward(b) {
		sum.Add(sum.Mul(sum, x), c)
	}
	return sum.Rsh(sum, uint(8*degree)).Int64() // Rsh rounds down, as >> does
}

func power(x int64, n int) int64 {
	r := int64(1)
	for range n {
		r *= x
	}
	return r
}

// Grid returns raw at all bytes. The value at l and t has the index l<<8 + t.
func (p Poly) Grid() []int64 {
	grid := make([]int64, 0, 1<<16)
	wide := p.Width() > 64
	fits := wide && p.wide()
	for l := range int64(256) {
		if fits {
			for t := range int64(256) {
				grid = append(grid, p.raw128(l, t))
			}
			continue
		}
		if wide {
			for b, t := p.inTBig(l), int64(0); t < 256; t++ {
				grid = append(grid, hornerBig(b, t, p.Degree))
			}
			continue
		}
		for b, t := p.inT(l), int64(0); t < 256; t++ {
			var sum int64
			for _, c := range slices.Backward(b) {
				sum = sum*t + c
			}
			grid = append(grid, sum>>(8*p.Degree))
		}
	}
	return grid
}

// Max returns C_max: CMax, or the largest value over all l and t. The paper uses the corner (1,
// 0), which is the maximum only for the linear polynomial. The quadratic one has its minimum
// there.
func (p Poly) Max() int64 {
	if p.CMax > 0 {
		return p.CMax
	}
	return slices.Max(p.Grid())
}

// Eval returns the congestion index at the bytes l and t, in 0..cmax. cmax is Max(), which
// callers should compute only once because it is slow.
func (p Poly) Eval(l, t, cmax int64) int64 { return min(max(p.raw(l, t), 0), cmax) }

// paperTau is the paper's τ, by which T is normalised (Section IV-C).
const paperTau = 10_000

// paper holds the coefficients of Eq. 8 to 10 as printed in Eq. 11 to 13: multiplied by 100 and
// truncated, in graded order.
var paper = map[int][]int64{
	1: {16, 26, -46},
	2: {17, 79, -89, -106, 142, 84},
	3: {18, 89, -144, -251, 1887, 347, 165, -2294, -5849, -225},
}

// Paper returns the polynomial of degree 1, 2 or 3 printed in the paper; ok is false for other
// degrees. Eq. 13 contains 188·L·T although Eq. 10 gives 1887. printed keeps this misprint.
func Paper(degree int, printed bool) (p Poly, ok bool) {
	coeff, ok := paper[degree]
	if !ok {
		return Poly{}, false
	}
	coeff = slices.Clone(coeff)
	if printed && degree == 3 {
		coeff[4] = 188
	}
	return Poly{Degree: degree, Scale: 100, Coeff: coeff, T: Range{0, paperTau}}, true
}

// WithTau returns the polynomial with T normalised by another tau, in µs.
func (p Poly) WithTau(tau int64) Poly {
	p.T = Range{0, tau}
	return p
}

// DecodePoly reads a polynomial from JSON. It ignores members that Poly does not have, because
// model files contain more.
func DecodePoly(data []byte) (Poly, error) {
	var p Poly
	if err := decode(data, &p); err != nil {
		return Poly{}, err
	}
	return p, p.Validate()
}
