package dataplane

import (
	"errors"
	"fmt"
	"math/big"

	"github.com/p4lb/p4lb/dataplane/num"
)

// unaryOp compiles an operation with one operand.
func unaryOp(op string, a value) (value, error) {
	switch op {
	case "~":
		lo := new(big.Int).Not(a.hiOrZero())
		r := value{lo: lo, hi: new(big.Int).Not(a.lo), kind: fnKind}
		if a.hi == nil {
			r.lo, r.hi = a.lo, nil
		}
		f, w := a.low(), a.wideFn()
		r.fn = func(p *State) uint64 { return ^f(p) }
		r.widen(func(p *State, dst []uint64) {
			w(p, dst)
			for i := range dst {
				dst[i] = ^dst[i]
			}
		})
		return r, nil
	case "-":
		return binaryOp("-", constInt(0), a)
	case "+":
		return a, nil
	}
	return value{}, fmt.Errorf("unknown operation %q", op)
}

func (v *value) hiOrZero() *big.Int {
	if v.hi == nil {
		return new(big.Int)
	}
	return v.hi
}

// widen sets wide if the interval needs it.
func (v *value) widen(wide func(*State, []uint64)) {
	if !v.exact() {
		v.wide = wide
	}
}

// maxShift bounds the numbers that a shift to the left can make exactly.
const maxShift = 4096

var errUnbounded = errors.New("the operand has no bound, mask it first")

// binaryOp compiles an operation with two operands.
func binaryOp(op string, a, b value) (value, error) {
	switch op {
	case "+", "-", "*":
		return ring(op, a, b), nil
	case "&", "|", "^":
		return bitwise(op, a, b), nil
	case "<<":
		return shiftLeft(a, b), nil
	case ">>":
		return shiftRight(a, b)
	case "/", "%":
		return divide(op, a, b)
	case "two_comp_mod", "usat_cast", "sat_cast":
		if b.kind != constKind || b.lo.Sign() <= 0 || b.lo.Cmp(big.NewInt(maxShift)) > 0 {
			return value{}, fmt.Errorf("%s to a width that is not a constant in 1..%d", op, maxShift)
		}
		width := int(b.lo.Int64())
		if op == "two_comp_mod" {
			return signedMod(a, width), nil
		}
		return saturate(op, a, width)
	}
	return value{}, fmt.Errorf("unknown operation %q", op)
}

// ring compiles +, - and *, whose low bits depend on low bits only.
func ring(op string, a, b value) value {
	r := value{kind: fnKind, fn: ringLow(op, a, b), lo: new(big.Int)}
	if a.hi != nil && b.hi != nil {
		r.lo, r.hi = ringBounds(op, a, b)
		r.forget()
	}
	f, g := a.wideFn(), b.wideFn()
	apply := map[string]func(dst, a, b []uint64){"+": num.Add, "-": num.Sub, "*": num.Mul}[op]
	r.widen(func(p *State, dst []uint64) {
		n := len(dst)
		t := p.ex.push(2 * n)
		f(p, t[:n])
		g(p, t[n:])
		apply(dst, t[:n], t[n:])
		p.ex.pop(2 * n)
	})
	return r
}

// maxBits bounds the numbers whose interval is tracked.
const maxBits = 1 << 17

// forget gives up an interval that has become too large.
func (v *value) forget() {
	if max(v.lo.BitLen(), v.hi.BitLen()) > maxBits {
		v.lo, v.hi = new(big.Int), nil
	}
}

func ringBounds(op string, a, b value) (lo, hi *big.Int) {
	var all [4]*big.Int
	for i, pair := range [4][2]*big.Int{{a.lo, b.lo}, {a.lo, b.hi}, {a.hi, b.lo}, {a.hi, b.hi}} {
		z := new(big.Int)
		switch op {
		case "+":
			z.Add(pair[0], pair[1])
		case "-":
			z.Sub(pair[0], pair[1])
		case "*":
			z.Mul(pair[0], pair[1])
		}
		all[i] = z
	}
	return hull(all[:]...)
}

// hull is the smallest and the largest of some numbers.
func hull(list ...*big.Int) (lo, hi *big.Int) {
	lo, hi = list[0], list[0]
	for _, v := range list[1:] {
		if v.Cmp(lo) < 0 {
			lo = v
		}
		if v.Cmp(hi) > 0 {
			hi = v
		}
	}
	return lo, hi
}

func bitwise(op string, a, b value) value {
	if op == "&" && a.kind == constKind {
		a, b = b, a
	}
	r := value{kind: fnKind, fn: bitwiseLow(op, a, b)}
	r.lo, r.hi = bitwiseBounds(op, a, b)
	if op == "&" && b.kind == constKind && b.fitsUnsigned() {
		inner := a
		r.masked, r.mask = &inner, b.bits
	}
	f, g := a.wideFn(), b.wideFn()
	r.widen(func(p *State, dst []uint64) {
		n := len(dst)
		t := p.ex.push(n)
		f(p, dst)
		g(p, t)
		for i, x := range t {
			switch op {
			case "&":
				dst[i] &= x
			case "|":
				dst[i] |= x
			default:
				dst[i] ^= x
			}
		}
		p.ex.pop(n)
	})
	return r
}

func bitwiseBounds(op string, a, b value) (lo, hi *big.Int) {
	if op == "&" {
		// A number that is not negative bounds the result from above.
		for _, v := range []value{a, b} {
			if v.hi != nil && v.lo.Sign() >= 0 && (hi == nil || v.hi.Cmp(hi) < 0) {
				hi = v.hi
			}
		}
		if hi != nil {
			return new(big.Int), hi
		}
	}
	if a.hi == nil || b.hi == nil {
		return new(big.Int), nil
	}
	n := max(a.lo.BitLen(), a.hi.BitLen(), b.lo.BitLen(), b.hi.BitLen())
	hi = num.Most(n)
	if a.lo.Sign() >= 0 && b.lo.Sign() >= 0 {
		return new(big.Int), hi
	}
	return new(big.Int).Not(hi), hi
}

// shiftLeft shifts by the low 32 bits of b, as BMv2 does.
func shiftLeft(a, b value) value {
	f, g := a.low(), b.low()
	r := value{kind: fnKind, lo: new(big.Int)}
	if b.kind == constKind && b.bits < 64 {
		n := uint(b.bits)
		r.fn = func(p *State) uint64 { return f(p) << n }
	} else {
		r.fn = func(p *State) uint64 { return f(p) << uint32(g(p)) }
	}
	if a.hi != nil && b.hi != nil && b.lo.Sign() >= 0 && b.hi.Cmp(big.NewInt(maxShift)) <= 0 {
		least, most := uint(b.lo.Uint64()), uint(b.hi.Uint64())
		r.lo, r.hi = hull(new(big.Int).Lsh(a.lo, least), new(big.Int).Lsh(a.lo, most),
			new(big.Int).Lsh(a.hi, least), new(big.Int).Lsh(a.hi, most))
		r.forget()
	}
	w := a.wideFn()
	r.widen(func(p *State, dst []uint64) {
		w(p, dst)
		num.Shl(dst, dst, uint64(uint32(g(p))))
	})
	return r
}

func shiftRight(a, b value) (value, error) {
	if a.hi == nil {
		return value{}, fmt.Errorf(">>: %w", errUnbounded)
	}
	lo, hi := a.lo, a.hi
	if hi.Sign() < 0 {
		hi = big.NewInt(-1)
	}
	if lo.Sign() > 0 {
		lo = new(big.Int)
	}
	if b.kind == constKind {
		n := uint(uint32(b.bits))
		lo, hi = new(big.Int).Rsh(a.lo, n), new(big.Int).Rsh(a.hi, n)
	}
	f, g := a.low(), b.low()
	r := value{lo: lo, hi: hi, kind: fnKind}
	switch {
	case a.fitsUnsigned() && b.kind == constKind:
		n := uint(uint32(b.bits))
		r.fn = func(p *State) uint64 { return f(p) >> n }
	case a.fitsUnsigned():
		r.fn = func(p *State) uint64 { return f(p) >> uint32(g(p)) }
	case a.fitsSigned():
		r.fn = func(p *State) uint64 { return uint64(int64(f(p)) >> uint32(g(p))) }
	default:
		limbs, w := a.limbs(), a.wideFn()
		r.wide = func(p *State, dst []uint64) {
			t := p.ex.push(limbs)
			w(p, t)
			num.Shr(t, t, uint64(uint32(g(p))))
			num.Copy(dst, t)
			p.ex.pop(limbs)
		}
		r.fn = lowOf(r.wide, 1)
	}
	return r, nil
}

// divide is for numbers that are not negative; by zero it gives zero, where
// BMv2 stops. p4c lets a division through only if it is by a constant, which
// it has folded.
func divide(op string, a, b value) (value, error) {
	if !a.fitsUnsigned() || !b.fitsUnsigned() {
		return value{}, fmt.Errorf("%s of numbers that are signed or wider than 64 bits", op)
	}
	f, g := a.low(), b.low()
	if op == "/" {
		return computed(new(big.Int), a.hi, func(p *State) uint64 {
			if d := g(p); d != 0 {
				return f(p) / d
			}
			return 0
		}), nil
	}
	return computed(new(big.Int), b.hi, func(p *State) uint64 {
		if d := g(p); d != 0 {
			return f(p) % d
		}
		return 0
	}), nil
}

// signedMod makes bit width-1 the sign, as a cast to int<width> does.
func signedMod(a value, width int) value {
	r := value{kind: fnKind, lo: num.LeastSigned(width), hi: num.Most(width - 1)}
	if width <= 64 {
		f, shift := a.low(), uint(64-width)
		r.fn = func(p *State) uint64 { return uint64(int64(f(p)<<shift) >> shift) }
		return r
	}
	w, limbs := a.wideFn(), num.Words(width)
	r.wide = func(p *State, dst []uint64) {
		t := p.ex.push(limbs)
		w(p, t)
		num.Extend(t, width)
		num.Copy(dst, t)
		p.ex.pop(limbs)
	}
	r.fn = a.low()
	return r
}

// saturate limits a to the numbers of bit<width> or int<width>.
func saturate(op string, a value, width int) (value, error) {
	if a.hi == nil {
		return value{}, fmt.Errorf("%s: %w", op, errUnbounded)
	}
	low, high := constInt(0), constant(num.Most(width))
	if op == "sat_cast" {
		low = constant(num.LeastSigned(width))
		high = constant(num.Most(width - 1))
	}
	if a.fitsSigned() && low.fitsSigned() && high.fitsSigned() {
		return computed(low.lo, high.hi, clamp(a.low(), int64(low.bits), int64(high.bits))), nil
	}
	under, err := compare("<", a, low)
	if err != nil {
		return value{}, err
	}
	over, err := compare(">", a, high)
	if err != nil {
		return value{}, err
	}
	return choose(under, low, choose(over, high, a.within(low.lo, high.hi))), nil
}

// clamp limits a signed number.
func clamp(f eval, low, high int64) eval {
	return func(p *State) uint64 { return uint64(min(max(int64(f(p)), low), high)) }
}

// within narrows the interval of a value that is only used if it lies there.
func (v value) within(lo, hi *big.Int) value {
	if v.lo.Cmp(lo) < 0 {
		v.lo = lo
	}
	if v.hi.Cmp(hi) > 0 {
		v.hi = hi
	}
	return v
}

// choose compiles cond ? a : b.
func choose(cond test, a, b value) value {
	r := value{kind: fnKind, lo: new(big.Int)}
	if a.hi != nil && b.hi != nil {
		r.lo, r.hi = hull(a.lo, a.hi, b.lo, b.hi)
	}
	f, g := a.low(), b.low()
	r.fn = func(p *State) uint64 {
		if cond(p) {
			return f(p)
		}
		return g(p)
	}
	wf, wg := a.wideFn(), b.wideFn()
	r.widen(func(p *State, dst []uint64) {
		if cond(p) {
			wf(p, dst)
			return
		}
		wg(p, dst)
	})
	return r
}
