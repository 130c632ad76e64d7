package vector

import (
	"math/big"

	"github.com/p4lb/p4lb/internal/dataplane/num"
)

// An Eval computes the low 64 bits of a number for a packet.
type Eval func(*State) uint64

// A Test evaluates a condition for a packet.
type Test func(*State) bool

// A Step changes a packet.
type Step func(*State)

// A Value is a linked arithmetic expression. BMv2 computes with unbounded
// integers, so a Value has the interval of its possible results. If the
// interval fits 64 bits (signed or unsigned), Low returns the number itself.
// Otherwise Low returns the number modulo 2^64, which suffices if only the low
// bits matter, for instance before a mask. WideFn computes as many limbs as
// needed.
type Value struct {
	Lo, Hi *big.Int // nil Hi: no bound
	Kind   valueKind
	Bits   uint64 // constKind: the low 64 bits
	Off    int    // wordKind, argKind
	fn     Eval   // fnKind
	// Wide computes the value modulo 2^(64·len(dst)). It is set if the interval
	// does not fit 64 bits.
	Wide func(p *State, dst []uint64)
	// masked is the operand of a constant mask, so that a store into a narrower
	// field can omit the mask.
	masked *Value
	mask   uint64
}

type valueKind byte

const (
	ConstKind valueKind = iota // Bits
	WordKind                   // a word of the vector
	ArgKind                    // a word of the action data
	fnKind
)

var (
	bigOne   = big.NewInt(1)
	minInt64 = num.LeastSigned(64)
	maxInt64 = num.Most(63)
	maxUint  = num.Most(64)
)

func constant(v *big.Int) Value {
	c := Value{Lo: v, Hi: v, Kind: ConstKind, Bits: num.LowOfBig(v)}
	if !c.exact() {
		limbs := num.OfBig(v, v.BitLen()/64+1)
		c.Wide = func(_ *State, dst []uint64) { num.Copy(dst, limbs) }
	}
	return c
}

// ConstInt returns a constant of at most 64 bits.
func ConstInt(v int64) Value { return constant(big.NewInt(v)) }

// FieldValue returns the content of a field.
func FieldValue(f Field) Value {
	v := Value{Lo: new(big.Int), Hi: num.Most(f.Width), Kind: WordKind, Off: f.Off}
	if f.Signed {
		// The upper bound is the mask, because BMv2 stores numbers up to the
		// mask unchanged.
		v.Lo = num.LeastSigned(f.Width)
		if f.Width >= 64 {
			v.Hi = num.Most(f.Width - 1)
		}
	}
	if f.Width > 64 {
		v.Wide = wideField(f)
	}
	return v
}

func wideField(f Field) func(*State, []uint64) {
	off, n := f.Off, f.Words()
	if f.Signed {
		return func(p *State, dst []uint64) { num.Copy(dst, p.W[off:off+n]) }
	}
	return func(p *State, dst []uint64) { num.CopyUnsigned(dst, p.W[off:off+n]) }
}

// computed returns a value between lo and hi.
func computed(lo, hi *big.Int, fn Eval) Value {
	return Value{Lo: lo, Hi: hi, Kind: fnKind, fn: fn}
}

// Unsigned64 returns a value of at most width bits.
func Unsigned64(width int, fn Eval) Value {
	return computed(new(big.Int), num.Most(width), fn)
}

// FitsUnsigned reports whether all numbers in the interval are unsigned numbers
// of 64 bits.
func (v *Value) FitsUnsigned() bool {
	return v.Hi != nil && v.Lo.Sign() >= 0 && v.Hi.Cmp(maxUint) <= 0
}

// FitsSigned reports whether all numbers in the interval are signed numbers of
// 64 bits.
func (v *Value) FitsSigned() bool {
	return v.Hi != nil && v.Lo.Cmp(minInt64) >= 0 && v.Hi.Cmp(maxInt64) <= 0
}

// exact reports whether Low returns the number itself.
func (v *Value) exact() bool { return v.FitsUnsigned() || v.FitsSigned() }

// limbs returns the number of limbs that hold every number in the interval.
func (v *Value) limbs() int { return max(v.Lo.BitLen(), v.Hi.BitLen())/64 + 1 }

// Low returns a function that computes the value modulo 2^64.
func (v *Value) Low() Eval {
	off, c := v.Off, v.Bits
	switch v.Kind {
	case ConstKind:
		return func(*State) uint64 { return c }
	case WordKind:
		return func(p *State) uint64 { return p.W[off] }
	case ArgKind:
		return func(p *State) uint64 { return p.Args[off] }
	}
	return v.fn
}

// WideFn returns a function that computes the value modulo a power of 2^64.
func (v *Value) WideFn() func(*State, []uint64) {
	if v.Wide != nil {
		return v.Wide
	}
	low := v.Low()
	if v.FitsUnsigned() {
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

// BigFn returns a function that computes the value as a big number, for
// messages.
func (v *Value) BigFn() func(*State) *big.Int {
	if v.Hi == nil || v.FitsUnsigned() {
		low := v.Low()
		return func(p *State) *big.Int { return new(big.Int).SetUint64(low(p)) }
	}
	wide, n := v.WideFn(), v.limbs()
	return func(p *State) *big.Int {
		t := p.Scratch.Push(n)
		defer p.Scratch.Pop(n)
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

// RemainderMask returns the mask that replaces a division by v, if v is a
// constant with such a mask; ok is false otherwise.
func (v *Value) RemainderMask() (m uint64, ok bool) {
	switch {
	case v.Kind != ConstKind:
		return 0, false
	case v.Lo.BitLen() > 64:
		return num.Mask64(64), true
	}
	return v.Bits - 1, v.Bits != 0 && v.Bits&(v.Bits-1) == 0
}
