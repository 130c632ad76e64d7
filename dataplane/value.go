package dataplane

import (
	"math/big"

	"github.com/p4lb/p4lb/dataplane/num"
)

// An eval computes the low 64 bits of a number for a packet.
type eval func(*State) uint64

// A test decides something about a packet.
type test func(*State) bool

// A step changes a packet.
type step func(*State)

// A value is a compiled arithmetic expression. BMv2 computes with unbounded
// integers, so a value carries the interval of what it can be: if that fits 64
// bits (signed or unsigned), low is the number itself; if not, low is the
// number modulo 2^64, which is enough where only the low bits matter (a sum
// that is masked afterwards), and wide computes as many limbs as the user of
// the value needs.
type value struct {
	lo, hi *big.Int // nil hi: not bounded
	kind   valueKind
	bits   uint64 // constKind: the low 64 bits
	off    int    // wordKind, argKind
	fn     eval   // fnKind
	// wide computes the value modulo 2^(64·len(dst)). It is set if the
	// interval does not fit 64 bits.
	wide func(p *State, dst []uint64)
	// masked is the operand of a constant mask, so that a store into a field
	// that is narrower can leave the mask out.
	masked *value
	mask   uint64
}

type valueKind byte

const (
	constKind valueKind = iota
	wordKind            // a word of the vector
	argKind             // a word of the action data
	fnKind
)

var (
	bigOne   = big.NewInt(1)
	minInt64 = num.LeastSigned(64)
	maxInt64 = num.Most(63)
	maxUint  = num.Most(64)
)

func constant(v *big.Int) value {
	c := value{lo: v, hi: v, kind: constKind, bits: num.LowOfBig(v)}
	if !c.exact() {
		limbs := num.OfBig(v, v.BitLen()/64+1)
		c.wide = func(_ *State, dst []uint64) { num.Copy(dst, limbs) }
	}
	return c
}

func constInt(v int64) value { return constant(big.NewInt(v)) }

// fieldValue is the content of a field.
func fieldValue(f field) value {
	v := value{lo: new(big.Int), hi: num.Most(f.width), kind: wordKind, off: f.off}
	if f.signed {
		// The upper bound is the mask and not the largest signed number: BMv2
		// stores a number up to the mask as it is.
		v.lo = num.LeastSigned(f.width)
		if f.width >= 64 {
			v.hi = num.Most(f.width - 1)
		}
	}
	if f.width > 64 {
		v.wide = wideField(f)
	}
	return v
}

func wideField(f field) func(*State, []uint64) {
	off, n := f.off, f.words()
	if f.signed {
		return func(p *State, dst []uint64) { num.Copy(dst, p.w[off:off+n]) }
	}
	return func(p *State, dst []uint64) { num.CopyUnsigned(dst, p.w[off:off+n]) }
}

// argValue is a parameter of the running action.
func argValue(pr param) value {
	v := value{lo: new(big.Int), hi: num.Most(pr.width), kind: argKind, off: pr.off}
	if pr.width > 64 {
		off, n := pr.off, num.Words(pr.width)
		v.wide = func(p *State, dst []uint64) { num.CopyUnsigned(dst, p.args[off:off+n]) }
	}
	return v
}

// computed is a value between lo and hi.
func computed(lo, hi *big.Int, fn eval) value {
	return value{lo: lo, hi: hi, kind: fnKind, fn: fn}
}

// unsigned64 is a value of at most width bits.
func unsigned64(width int, fn eval) value {
	return computed(new(big.Int), num.Most(width), fn)
}

func (v *value) fitsUnsigned() bool {
	return v.hi != nil && v.lo.Sign() >= 0 && v.hi.Cmp(maxUint) <= 0
}

func (v *value) fitsSigned() bool {
	return v.hi != nil && v.lo.Cmp(minInt64) >= 0 && v.hi.Cmp(maxInt64) <= 0
}

// exact reports whether low is the number itself.
func (v *value) exact() bool { return v.fitsUnsigned() || v.fitsSigned() }

// limbs is how many limbs hold every number in the interval.
func (v *value) limbs() int { return max(v.lo.BitLen(), v.hi.BitLen())/64 + 1 }

// low computes the value modulo 2^64.
func (v *value) low() eval {
	off, c := v.off, v.bits
	switch v.kind {
	case constKind:
		return func(*State) uint64 { return c }
	case wordKind:
		return func(p *State) uint64 { return p.w[off] }
	case argKind:
		return func(p *State) uint64 { return p.args[off] }
	}
	return v.fn
}

// wideFn computes the value modulo any power of 2^64.
func (v *value) wideFn() func(*State, []uint64) {
	if v.wide != nil {
		return v.wide
	}
	low := v.low()
	if v.fitsUnsigned() {
		return func(p *State, dst []uint64) {
			dst[0] = low(p)
			clear(dst[1:])
		}
	}
	return func(p *State, dst []uint64) {
		x := low(p)
		dst[0] = x
		for i := 1; i < len(dst); i++ {
			dst[i] = uint64(int64(x) >> 63)
		}
	}
}

// lowOf derives low from wide, for a value that is computed in limbs.
func lowOf(wide func(*State, []uint64), limbs int) eval {
	return func(p *State) uint64 {
		t := p.ex.push(limbs)
		wide(p, t)
		v := t[0]
		p.ex.pop(limbs)
		return v
	}
}

// bigFn computes the value as a big number, for messages.
func (v *value) bigFn() func(*State) *big.Int {
	if v.hi == nil || v.fitsUnsigned() {
		low := v.low()
		return func(p *State) *big.Int { return new(big.Int).SetUint64(low(p)) }
	}
	wide, n := v.wideFn(), v.limbs()
	return func(p *State) *big.Int {
		t := p.ex.push(n)
		defer p.ex.pop(n)
		wide(p, t)
		r := new(big.Int)
		for i := n - 1; i >= 0; i-- {
			r.Lsh(r, 64).Or(r, new(big.Int).SetUint64(t[i]))
		}
		if num.Sign(t) != 0 {
			r.Sub(r, new(big.Int).Lsh(bigOne, uint(64*n)))
		}
		return r
	}
}
