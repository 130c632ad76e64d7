package codegen

import (
	"fmt"
	"math/big"
)

// An interval is the range of an expression of the program, and how the
// expression reads.
type interval struct {
	text   string
	lo, hi *big.Int
}

// between is a variable or constant.
func between(text string, lo, hi int64) interval {
	return interval{text, big.NewInt(lo), big.NewInt(hi)}
}

// bits is an unsigned variable of a width.
func bits(text string, width uint) interval {
	return interval{text, new(big.Int), new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), width), big.NewInt(1))}
}

func exactly(v int64) interval { return between(fmt.Sprint(v), v, v) }

func (a interval) plus(b interval) interval {
	return interval{"(" + a.text + " + " + b.text + ")", new(big.Int).Add(a.lo, b.lo), new(big.Int).Add(a.hi, b.hi)}
}

func (a interval) minus(b interval) interval {
	return interval{"(" + a.text + " - " + b.text + ")", new(big.Int).Sub(a.lo, b.hi), new(big.Int).Sub(a.hi, b.lo)}
}

func (a interval) times(b interval) interval {
	corners := []*big.Int{
		new(big.Int).Mul(a.lo, b.lo), new(big.Int).Mul(a.lo, b.hi),
		new(big.Int).Mul(a.hi, b.lo), new(big.Int).Mul(a.hi, b.hi),
	}
	r := interval{a.text + "*" + b.text, corners[0], corners[0]}
	for _, c := range corners[1:] {
		if c.Cmp(r.lo) < 0 {
			r.lo = c
		}
		if c.Cmp(r.hi) > 0 {
			r.hi = c
		}
	}
	return r
}

// shifted is a >> n.
func (a interval) shifted(n uint) interval {
	return interval{fmt.Sprintf("(%s >> %d)", a.text, n), new(big.Int).Rsh(a.lo, n), new(big.Int).Rsh(a.hi, n)}
}

// fits wants a to be a bit<width>.
func (a interval) fits(width uint) error {
	if a.lo.Sign() < 0 {
		return fmt.Errorf("%s reaches down to %s: it must not be negative", a.text, a.lo)
	}
	if limit := bits("", width).hi; a.hi.Cmp(limit) > 0 {
		return fmt.Errorf("%s reaches %s, more than the %s of %d bits", a.text, a.hi, limit, width)
	}
	return nil
}
