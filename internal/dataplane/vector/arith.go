package vector

import (
	"errors"
	"fmt"
	"math/big"

	"github.com/p4lb/p4lb/internal/dataplane/num"
)

// UnaryOp links an operation with one operand.
func UnaryOp(op string, a Value) (Value, error) {
	switch op {
	case "~":
		r := Value{Lo: a.Lo, Kind: fnKind}
		if a.Hi != nil {
			r.Lo, r.Hi = new(big.Int).Not(a.Hi), new(big.Int).Not(a.Lo)
		}
		f, w := a.Low(), a.WideFn()
		r.fn = func(p *State) uint64 { return ^f(p) }
		r.Widen(func(p *State, dst []uint64) {
			w(p, dst)
			for i := range dst {
				dst[i] = ^dst[i]
			}
		})
		return r, nil
	case "-":
		return BinaryOp("-", ConstInt(0), a)
	case "+":
		return a, nil
	}
	return Value{}, fmt.Errorf("unknown operation %q", op)
}

// Widen sets Wide if the interval does not fit 64 bits.
func (v *Value) Widen(wide func(*State, []uint64)) {
	if !v.exact() {
		v.Wide = wide
	}
}

// maxShift is the largest number of bits that an exact shift to the left can
// produce.
const maxShift = 4096

var errUnbounded = errors.New("the operand has no bound, mask it first")

// BinaryOp links an operation with two operands.
func BinaryOp(op string, a, b Value) (Value, error) {
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
		if b.Kind != ConstKind || b.Lo.Sign() <= 0 || b.Lo.Cmp(big.NewInt(maxShift)) > 0 {
			return Value{}, fmt.Errorf("%s to a width that is not a constant in 1..%d", op, maxShift)
		}
		width := int(b.Lo.Int64())
		if op == "two_comp_mod" {
			return signedMod(a, width), nil
		}
		return saturate(op, a, width)
	}
	return Value{}, fmt.Errorf("unknown operation %q", op)
}

// ring links +, - and *, whose low bits depend only on low bits.
func ring(op string, a, b Value) Value {
	r := Value{Kind: fnKind, fn: ringLow(op, a, b), Lo: new(big.Int)}
	if a.Hi != nil && b.Hi != nil {
		var all [4]*big.Int
		for i, pair := range [4][2]*big.Int{{a.Lo, b.Lo}, {a.Lo, b.Hi}, {a.Hi, b.Lo}, {a.Hi, b.Hi}} {
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
		r.Lo, r.Hi = hull(all[:]...)
		r.forget()
	}
	f, g := a.WideFn(), b.WideFn()
	apply := map[string]func(dst, a, b []uint64){"+": num.Add, "-": num.Sub, "*": num.Mul}[op]
	r.Widen(func(p *State, dst []uint64) {
		n := len(dst)
		t := p.Scratch.Push(2 * n)
		f(p, t[:n])
		g(p, t[n:])
		apply(dst, t[:n], t[n:])
		p.Scratch.Pop(2 * n)
	})
	return r
}

// maxBits is the largest number of bits for which an interval is tracked.
const maxBits = 1 << 17

// forget drops an interval that has become too large.
func (v *Value) forget() {
	if max(v.Lo.BitLen(), v.Hi.BitLen()) > maxBits {
		v.Lo, v.Hi = new(big.Int), nil
	}
}

// hull returns the smallest and the largest of some numbers.
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

func bitwise(op string, a, b Value) Value {
	if op == "&" && a.Kind == ConstKind {
		a, b = b, a
	}
	r := Value{Kind: fnKind, fn: bitwiseLow(op, a, b)}
	r.Lo, r.Hi = bitwiseBounds(op, a, b)
	if op == "&" && b.Kind == ConstKind && b.FitsUnsigned() {
		inner := a
		r.masked, r.mask = &inner, b.Bits
	}
	f, g := a.WideFn(), b.WideFn()
	r.Widen(func(p *State, dst []uint64) {
		n := len(dst)
		t := p.Scratch.Push(n)
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
		p.Scratch.Pop(n)
	})
	return r
}

func bitwiseBounds(op string, a, b Value) (lo, hi *big.Int) {
	if op == "&" {
		// An operand that is not negative bounds the result from above.
		for _, v := range []Value{a, b} {
			if v.Hi != nil && v.Lo.Sign() >= 0 && (hi == nil || v.Hi.Cmp(hi) < 0) {
				hi = v.Hi
			}
		}
		if hi != nil {
			return new(big.Int), hi
		}
	}
	if a.Hi == nil || b.Hi == nil {
		return new(big.Int), nil
	}
	n := max(a.Lo.BitLen(), a.Hi.BitLen(), b.Lo.BitLen(), b.Hi.BitLen())
	hi = num.Most(n)
	if a.Lo.Sign() >= 0 && b.Lo.Sign() >= 0 {
		return new(big.Int), hi
	}
	return new(big.Int).Not(hi), hi
}

// shiftLeft shifts by the low 32 bits of b, like BMv2.
func shiftLeft(a, b Value) Value {
	f, g := a.Low(), b.Low()
	r := Value{Kind: fnKind, Lo: new(big.Int)}
	if b.Kind == ConstKind && b.Bits < 64 {
		n := uint(b.Bits)
		r.fn = func(p *State) uint64 { return f(p) << n }
	} else {
		r.fn = func(p *State) uint64 { return f(p) << uint32(g(p)) }
	}
	if a.Hi != nil && b.Hi != nil && b.Lo.Sign() >= 0 && b.Hi.Cmp(big.NewInt(maxShift)) <= 0 {
		least, most := uint(b.Lo.Uint64()), uint(b.Hi.Uint64())
		r.Lo, r.Hi = hull(new(big.Int).Lsh(a.Lo, least), new(big.Int).Lsh(a.Lo, most),
			new(big.Int).Lsh(a.Hi, least), new(big.Int).Lsh(a.Hi, most))
		r.forget()
	}
	w := a.WideFn()
	r.Widen(func(p *State, dst []uint64) {
		w(p, dst)
		num.Shl(dst, dst, uint64(uint32(g(p))))
	})
	return r
}

func shiftRight(a, b Value) (Value, error) {
	if a.Hi == nil {
		return Value{}, fmt.Errorf(">>: %w", errUnbounded)
	}
	lo, hi := a.Lo, a.Hi
	if hi.Sign() < 0 {
		hi = big.NewInt(-1)
	}
	if lo.Sign() > 0 {
		lo = new(big.Int)
	}
	if b.Kind == ConstKind {
		n := uint(uint32(b.Bits))
		lo, hi = new(big.Int).Rsh(a.Lo, n), new(big.Int).Rsh(a.Hi, n)
	}
	f, g := a.Low(), b.Low()
	r := Value{Lo: lo, Hi: hi, Kind: fnKind}
	switch {
	case a.FitsUnsigned() && b.Kind == ConstKind:
		n := uint(uint32(b.Bits))
		r.fn = func(p *State) uint64 { return f(p) >> n }
	case a.FitsUnsigned():
		r.fn = func(p *State) uint64 { return f(p) >> uint32(g(p)) }
	case a.FitsSigned():
		r.fn = func(p *State) uint64 { return uint64(int64(f(p)) >> uint32(g(p))) }
	default:
		limbs, w := a.limbs(), a.WideFn()
		r.Wide = func(p *State, dst []uint64) {
			t := p.Scratch.Push(limbs)
			w(p, t)
			num.Shr(t, t, uint64(uint32(g(p))))
			num.Copy(dst, t)
			p.Scratch.Pop(limbs)
		}
		wide := r.Wide
		r.fn = func(p *State) uint64 {
			t := p.Scratch.Push(1)
			wide(p, t)
			v := t[0]
			p.Scratch.Pop(1)
			return v
		}
	}
	return r, nil
}

// divide links divisions of numbers that are not negative. Division by zero gives
// zero, whereas BMv2 stops. p4c accepts only divisions by constants, which it
// folds.
func divide(op string, a, b Value) (Value, error) {
	if !a.FitsUnsigned() || !b.FitsUnsigned() {
		return Value{}, fmt.Errorf("%s of numbers that are signed or wider than 64 bits", op)
	}
	f, g := a.Low(), b.Low()
	if op == "/" {
		return computed(new(big.Int), a.Hi, func(p *State) uint64 {
			if d := g(p); d != 0 {
				return f(p) / d
			}
			return 0
		}), nil
	}
	return computed(new(big.Int), b.Hi, func(p *State) uint64 {
		if d := g(p); d != 0 {
			return f(p) % d
		}
		return 0
	}), nil
}

// signedMod makes bit width-1 the sign, like a cast to int<width>.
func signedMod(a Value, width int) Value {
	r := Value{Kind: fnKind, Lo: num.LeastSigned(width), Hi: num.Most(width - 1)}
	if width <= 64 {
		f, shift := a.Low(), uint(64-width)
		r.fn = func(p *State) uint64 { return uint64(int64(f(p)<<shift) >> shift) }
		return r
	}
	w, limbs := a.WideFn(), num.Words(width)
	r.Wide = func(p *State, dst []uint64) {
		t := p.Scratch.Push(limbs)
		w(p, t)
		num.Extend(t, width)
		num.Copy(dst, t)
		p.Scratch.Pop(limbs)
	}
	r.fn = a.Low()
	return r
}

// saturate limits a to the numbers of bit<width> or int<width>.
func saturate(op string, a Value, width int) (Value, error) {
	if a.Hi == nil {
		return Value{}, fmt.Errorf("%s: %w", op, errUnbounded)
	}
	low, high := ConstInt(0), constant(num.Most(width))
	if op == "sat_cast" {
		low = constant(num.LeastSigned(width))
		high = constant(num.Most(width - 1))
	}
	if a.FitsSigned() && low.FitsSigned() && high.FitsSigned() {
		return computed(low.Lo, high.Hi, clamp(a.Low(), int64(low.Bits), int64(high.Bits))), nil
	}
	under, err := Compare("<", a, low)
	if err != nil {
		return Value{}, err
	}
	over, err := Compare(">", a, high)
	if err != nil {
		return Value{}, err
	}
	return Choose(under, low, Choose(over, high, a.within(low.Lo, high.Hi))), nil
}

// clamp limits a signed number.
func clamp(f Eval, low, high int64) Eval {
	return func(p *State) uint64 { return uint64(min(max(int64(f(p)), low), high)) }
}

// within narrows the interval of a value that is used only if it lies in lo to hi.
func (v Value) within(lo, hi *big.Int) Value {
	if v.Lo.Cmp(lo) < 0 {
		v.Lo = lo
	}
	if v.Hi.Cmp(hi) > 0 {
		v.Hi = hi
	}
	return v
}

// Choose links cond ? a : b.
func Choose(cond Test, a, b Value) Value {
	r := Value{Kind: fnKind, Lo: new(big.Int)}
	if a.Hi != nil && b.Hi != nil {
		r.Lo, r.Hi = hull(a.Lo, a.Hi, b.Lo, b.Hi)
	}
	f, g := a.Low(), b.Low()
	r.fn = func(p *State) uint64 {
		if cond(p) {
			return f(p)
		}
		return g(p)
	}
	wf, wg := a.WideFn(), b.WideFn()
	r.Widen(func(p *State, dst []uint64) {
		if cond(p) {
			wf(p, dst)
			return
		}
		wg(p, dst)
	})
	return r
}
