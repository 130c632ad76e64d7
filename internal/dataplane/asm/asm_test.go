package asm

import (
	"math/bits"
	"testing"
	"unsafe"
)

// run assembles a function, runs it on a vector and returns its result.
func run(t testing.TB, w []uint64, f func(*Asm)) uint64 {
	t.Helper()
	if !Supported {
		t.Skip("machine code cannot be run here")
	}
	a := New()
	f(a)
	a.Return()
	c, err := Load(a.bytes())
	if err != nil {
		t.Fatal(err)
	}
	p := unsafe.Pointer(unsafe.SliceData(w))
	return Call(c.Entry(0), p, p, p)
}

var allRegs = []Reg{AX, CX, DX, SI, DI, R8, R9, R10, R11, R15}

// Each instruction gives the same result as Go, with each register that it can
// have.
func TestInstructions(t *testing.T) {
	x, y := uint64(0xfedcba9876543210), uint64(0x0123456789abcdef)
	ops := map[Op]uint64{Add: x + y, Or: x | y, And: x & y, Sub: x - y, Xor: x ^ y}
	for _, d := range allRegs {
		for _, s := range allRegs {
			if s == d {
				continue
			}
			for op, want := range ops {
				got := run(t, nil, func(a *Asm) { a.Set(d, x); a.Set(s, y); a.Do(op, d, s); a.Move(AX, d) })
				check(t, "Do", d, s, got, want)
			}
			got := run(t, nil, func(a *Asm) { a.Set(d, x); a.Set(s, y); a.Mul(d, s); a.Move(AX, d) })
			check(t, "Mul", d, s, got, x*y)
			got = run(t, nil, func(a *Asm) { a.Set(s, y); a.MulConst(d, s, 0xffff_ffff_ffff_fff9); a.Move(AX, d) })
			check(t, "MulConst", d, s, got, y*0xffff_ffff_ffff_fff9)
		}
		for op, want := range map[Op]uint64{Add: x + 1000, Or: x | 1000, And: x & 1000, Sub: x - 1000, Xor: x ^ 1000} {
			got := run(t, nil, func(a *Asm) { a.Set(d, x); a.DoConst(op, d, 1000); a.Move(AX, d) })
			check(t, "DoConst", d, d, got, want)
		}
		for sh, want := range map[Shift]uint64{Shl: x << 13, Shr: x >> 13, Sar: uint64(int64(x) >> 13)} {
			got := run(t, nil, func(a *Asm) { a.Set(d, x); a.ShiftConst(sh, d, 13); a.Move(AX, d) })
			check(t, "ShiftConst", d, d, got, want)
			if d != CX {
				got = run(t, nil, func(a *Asm) { a.Set(d, x); a.Set(CX, 13); a.ShiftCX(sh, d); a.Move(AX, d) })
				check(t, "ShiftCX", d, d, got, want)
			}
		}
		check(t, "Not", d, d, run(t, nil, func(a *Asm) { a.Set(d, x); a.Not(d); a.Move(AX, d) }), ^x)
		check(t, "Swap8", d, d, run(t, nil, func(a *Asm) { a.Set(d, x); a.Swap(d, 8); a.Move(AX, d) }), bits.ReverseBytes64(x))
		check(t, "Swap4", d, d, run(t, nil, func(a *Asm) { a.Set(d, x&0xffffffff); a.Swap(d, 4); a.Move(AX, d) }), uint64(bits.ReverseBytes32(uint32(x))))
		check(t, "Swap2", d, d, run(t, nil, func(a *Asm) { a.Set(d, x&0xffff); a.Swap(d, 2); a.Move(AX, d) }), uint64(bits.ReverseBytes16(uint16(x))))
		for c, want := range map[Cond]uint64{Below: 0, AboveEqual: 1, Less: 1, GreaterEqual: 0, Equal: 0, NotEqual: 1, Above: 1, BelowEqual: 0, Greater: 0, LessEqual: 1} {
			got := run(t, nil, func(a *Asm) { a.Set(d, x); a.DoConst(Cmp, d, 5); a.SetIf(c, d); a.Move(AX, d) })
			check(t, "SetIf", d, d, got, want)
		}
	}
}

// Memory is read and written with each base, index, distance and size.
func TestMemory(t *testing.T) {
	w := make([]uint64, 200)
	for i := range w {
		w[i] = uint64(i+1) * 0x9e3779b97f4a7c15
	}
	for _, base := range []Reg{BX, R12, R13} {
		for _, at := range []int{0, 1, 100} {
			for _, r := range allRegs {
				check(t, "Load", base, r, run(t, w, func(a *Asm) { a.Load(r, At(base, 8*at)); a.Move(AX, r) }), w[at])
				check(t, "Element", base, r, run(t, w, func(a *Asm) { a.Set(r, uint64(at)); a.Load(r, Element(base, r, 8)); a.Move(AX, r) }), w[at])
				for _, n := range []int{1, 2, 4, 8} {
					want := w[at] << (64 - 8*n) >> (64 - 8*n)
					check(t, "LoadBytes", base, r, run(t, w, func(a *Asm) { a.LoadBytes(r, At(base, 8*at), n); a.Move(AX, r) }), want)
					before := w[at]
					run(t, w, func(a *Asm) { a.Set(r, 0x1122334455667788); a.StoreBytes(At(base, 8*at), r, n) })
					m := ^uint64(0) >> (64 - 8*n)
					check(t, "StoreBytes", base, r, w[at], before&^m|0x1122334455667788&m)
					w[at] = before
				}
			}
			run(t, w, func(a *Asm) { a.StoreConst(At(base, 8*at), 0xffff_ffff_8000_0000) })
			check(t, "StoreConst", base, base, w[at], 0xffff_ffff_8000_0000)
			run(t, w, func(a *Asm) { a.MemConst(Add, At(base, 8*at), 7) })
			check(t, "MemConst", base, base, w[at], 0xffff_ffff_8000_0007)
			run(t, w, func(a *Asm) { a.StoreByte(At(base, 8*at), 9) })
			check(t, "StoreByte", base, base, w[at], 0xffff_ffff_8000_0009)
		}
	}
}

func TestJumpsAndDivision(t *testing.T) {
	// The sum of 1 to 100.
	got := run(t, nil, func(a *Asm) {
		a.Set(AX, 0)
		a.Set(R9, 100)
		loop, end := a.NewLabel(), a.NewLabel()
		a.Bind(loop)
		a.Test(R9, R9)
		a.JumpIf(Equal, end)
		a.Do(Add, AX, R9)
		a.DoConst(Sub, R9, 1)
		a.Jump(loop)
		a.Bind(end)
	})
	check(t, "loop", AX, R9, got, 5050)
	got = run(t, nil, func(a *Asm) { a.Set(AX, 1000); a.Set(DX, 0); a.Set(R8, 7); a.Div(R8) })
	check(t, "Div", AX, R8, got, 142)
}

func check(t *testing.T, what string, d, s Reg, got, want uint64) {
	t.Helper()
	if got != want {
		t.Errorf("%s of registers %d and %d: %#x, want %#x", what, d, s, got, want)
	}
}

func BenchmarkCall(b *testing.B) {
	Debug = false
	defer func() { Debug = true }()
	a := New()
	a.Set(AX, 0)
	a.Return()
	c, err := Load(a.bytes())
	if err != nil {
		b.Skip(err)
	}
	p := unsafe.Pointer(new(uint64))
	for range b.N {
		Call(c.Entry(0), p, p, p)
	}
}
