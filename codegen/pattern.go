package codegen

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/p4lb/p4lb/fitting"
	"github.com/p4lb/p4lb/internal/text/lists"
)

// A pattern is QALL's congestion index, a polynomial or Eq. 4.
type pattern struct{ *composition }

func (c *composition) pattern() pattern { return pattern{c} }

// Max returns the largest congestion index of QALL.
func (q pattern) Max() int64 {
	switch {
	case q.params.Runtime:
		return runtimeMax
	case q.poly != nil:
		return q.cmax
	}
	return 255 * q.Int("tau") * 2
}

// runtimeMax is C_max if the controller sets the coefficients. The controller scales them so that
// the polynomial has this maximum.
const runtimeMax = 1000

// MinWeight returns the least weight of QALL. A port with weight 0 would get no traffic, and would
// never be measured again.
func (q pattern) MinWeight() int64 { return max(1, q.Max()>>8) }

// A polyView describes a polynomial as it appears in the program.
type polyView struct {
	Degree int
	Width  int // width of the accumulator
	Shift  int
	Powers []polyPower
	Groups []polyGroup // terms by total degree

	ScalesL     bool // set if L is normalised by its own scale
	LMin, LMax  int64
	LReciprocal int64
	TMin, TMax  int64
	TRange      int64
	TReciprocal int64
}

// A polyGroup is the terms of one total degree.
type polyGroup struct {
	Shift int
	Terms []string
}

// A polyPower is a named power of a variable that several terms share.
type polyPower struct{ Name, Value string }

// A Coefficient is a coefficient that the controller sets.
type Coefficient struct{ Name, Term string }

// Poly returns the polynomial of a fitted row.
func (q pattern) Poly() *polyView {
	p := q.polynomial()
	l := p.LRange()
	pv := &polyView{
		Degree: p.Degree, Width: p.Width(), Shift: 8 * p.Degree,
		ScalesL: l != fitting.Range{Min: 0, Max: 255}, LMin: l.Min, LMax: l.Max, LReciprocal: l.Reciprocal(),
		TMin: p.T.Min, TMax: p.T.Max, TRange: p.T.Max - p.T.Min, TReciprocal: p.T.Reciprocal(),
		Groups: make([]polyGroup, p.Degree+1),
	}
	for i := 2; i <= p.Degree; i++ {
		pv.Powers = append(pv.Powers, polyPower{fmt.Sprint("l", i), powerName("l", i-1) + " * l"}, polyPower{fmt.Sprint("t", i), powerName("t", i-1) + " * t"})
	}
	for k, t := range fitting.Terms(p.Degree) {
		g := &pv.Groups[t.I+t.J]
		g.Shift = 8 * (p.Degree - t.I - t.J)
		text := signed(p.Coeff[k], len(g.Terms) == 0)
		if q.params.Runtime {
			text = plus(len(g.Terms) == 0) + fmt.Sprintf("(int<%d>)meta.%s", pv.Width, coefficientName(t))
		}
		g.Terms = append(g.Terms, text+factors(t))
	}
	return pv
}

// polynomial returns the row's polynomial, or a placeholder for the controller's.
func (q pattern) polynomial() fitting.Poly {
	if !q.params.Runtime {
		return *q.poly
	}
	degree := int(q.values["degree"].Int)
	p := fitting.Poly{Degree: degree, Scale: runtimeMax, T: fitting.Range{Min: 0, Max: q.Int("tau")}}
	for range fitting.Terms(degree) {
		p.Coeff = append(p.Coeff, -1<<31)
	}
	return p
}

func signed(c int64, first bool) string {
	switch {
	case first:
		return fmt.Sprint(c)
	case c < 0:
		return fmt.Sprintf(" - %d", -c)
	}
	return fmt.Sprintf(" + %d", c)
}

func plus(first bool) string {
	if first {
		return ""
	}
	return " + "
}

// factors returns l^i*t^j, using named powers.
func factors(t fitting.Term) string {
	var text string
	if t.I > 0 {
		text += " * " + powerName("l", t.I)
	}
	if t.J > 0 {
		text += " * " + powerName("t", t.J)
	}
	return text
}

func powerName(variable string, power int) string {
	if power == 1 {
		return variable
	}
	return fmt.Sprint(variable, power)
}

func coefficientName(t fitting.Term) string { return fmt.Sprintf("c_%d_%d", t.I, t.J) }

// Runtime reports whether the controller sets the coefficients.
func (q pattern) Runtime() bool { return q.params.Runtime }

// Coefficients lists the coefficients of the polynomial, which the controller can
// change at run time.
func (q pattern) Coefficients() []Coefficient {
	var list []Coefficient
	for _, t := range fitting.Terms(int(q.values["degree"].Int)) {
		term := cmp.Or(strings.Trim(strings.ReplaceAll(factors(t), " * ", "*"), "*"), "1")
		list = append(list, Coefficient{coefficientName(t), term})
	}
	return list
}

// Params lists the parameters of set_pattern.
func (q pattern) Params() string {
	list := lists.Map(q.Coefficients(), func(c Coefficient) string { return "int<32> " + c.Name })
	return inLines(4, list)
}

// Origin describes the origin of the coefficients.
func (q pattern) Origin() []string {
	p := q.polynomial()
	at := func(equation int) string {
		return fmt.Sprintf("Eq. %d, which is Eq. %d times 100 without decimals. l and t are fractions of 256, as in the paper's fit; shifts bring the terms to one scale.", equation+3, equation)
	}
	var text string
	switch {
	case q.params.Runtime:
		text = "The coefficients are set by the controller. l and t are fractions of 256; shifts bring the terms to one scale."
	case q.params.Coeffs != nil:
		text = fmt.Sprintf("The fitted coefficients, times %d. l and t are fractions of 256; shifts bring the terms to one scale.", p.Scale)
	default:
		text = at(7 + p.Degree)
		if p.Degree == 3 && q.params.Printed {
			text += " The paper prints 188 for l*t; its own Eq. 10 gives 1887."
		} else if p.Degree == 3 {
			text += " The paper prints 188 for l*t, but its own Eq. 10 gives 1887."
		}
	}
	return wrap(text)
}

// ScaledL describes how L is scaled to a byte.
func (q pattern) ScaledL() []string {
	p := q.polynomial()
	return wrap(fmt.Sprintf("0 to 255 stand for values of L from %d to %d, by 255*2^16/%d.", p.L.Min, p.L.Max, p.L.Max-p.L.Min))
}

// Range describes how T is scaled to a byte.
func (q pattern) Range() []string {
	p := q.polynomial()
	bytes := fmt.Sprintf("0 to 255 stand for values of T from %d to %d us, by 255*2^16/%d.", p.T.Min, p.T.Max, p.T.Max-p.T.Min)
	if q.params.Coeffs != nil {
		return wrap(bytes)
	}
	return wrap("The paper does not define the normalisation of T. " + bytes)
}
