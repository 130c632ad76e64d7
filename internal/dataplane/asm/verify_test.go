package asm

import (
	"strings"
	"testing"
	"unsafe"
)

// memory is the memory of the tests: 10 words of a vector, two refs, and a
// State of 64 bytes with an address at 0 and a writable word at 16.
var memory = Memory{Vector: 80, Refs: 16, State: 64, Addresses: []int{0}, Writable: [][2]int{{16, 8}}}

// The verifier refuses code that could read a register changed by Go, use a
// number as an address, or leave its memory. It accepts the same code if a
// check or a load makes it safe.
func TestVerify(t *testing.T) {
	// leaving returns to Go, which enters again at the label.
	leaving := func(a *Asm, at Label) {
		a.Set(AX, 1)
		a.Return()
		a.Enter(at)
	}
	args := func(a *Asm) { a.LoadAddress(DI, At(R13, 0), 16) }
	for _, c := range []struct {
		name  string
		write func(a *Asm)
		want  string // the error; empty: none
	}{
		{"a load", func(a *Asm) { args(a); a.Load(SI, At(DI, 8)) }, ""},
		{"a register that nothing has loaded", func(a *Asm) { a.Do(Add, SI, R8) }, "register 8 is read but not loaded"},
		{"behind a return from Go", func(a *Asm) {
			args(a)
			l := a.NewLabel()
			leaving(a, l)
			a.Entry(l)
			a.Load(SI, At(DI, 0))
		}, "register 7 is read but not loaded"},
		{"behind a return from Go, loaded again", func(a *Asm) {
			args(a)
			l := a.NewLabel()
			leaving(a, l)
			a.Entry(l)
			args(a)
			a.Load(SI, At(DI, 0))
		}, ""},
		{"at a join of a return from Go with other code", func(a *Asm) {
			args(a)
			l := a.NewLabel()
			a.CmpByte(At(R13, 20), 1)
			a.JumpIf(Equal, l)
			leaving(a, l)
			a.Bind(l)
			a.Load(SI, At(DI, 0))
		}, "register 7 is read but not loaded"},
		{"loaded on one of two paths", func(a *Asm) {
			l := a.NewLabel()
			a.CmpByte(At(R13, 20), 1)
			a.JumpIf(Equal, l)
			args(a)
			a.Bind(l)
			a.Load(SI, At(DI, 0))
		}, "register 7 is read but not loaded"},
		{"loaded on both paths", func(a *Asm) {
			l, end := a.NewLabel(), a.NewLabel()
			a.CmpByte(At(R13, 20), 1)
			a.JumpIf(Equal, l)
			args(a)
			a.Jump(end)
			a.Bind(l)
			args(a)
			a.Bind(end)
			a.Load(SI, At(DI, 0))
		}, ""},
		{"Go enters at a label that expects registers", func(a *Asm) {
			args(a)
			l := a.NewLabel()
			a.Bind(l)
			a.Load(SI, At(DI, 0))
			leaving(a, l)
		}, "Go may enter at a label that needs registers"},
		{"a jump back", func(a *Asm) {
			l := a.NewLabel()
			a.Bind(l)
			a.Jump(l)
		}, "a jump back to a label that is not an entry"},
		{"a jump back to an entry", func(a *Asm) { a.Jump(a.EntryHere()) }, ""},
		{"an address from a packet", func(a *Asm) { a.Load(SI, At(BX, 8)); a.Load(SI, At(SI, 0)) }, "register 6 holds a number and is used as an address"},
		{"an address as a number", func(a *Asm) { args(a); a.Store(At(BX, 8), DI) }, "register 7 holds an address where a number is needed"},
		{"a sum with an address", func(a *Asm) { args(a); a.Set(SI, 8); a.Do(Add, DI, SI) }, "register 7 holds an address"},
		{"outside a block", func(a *Asm) { args(a); a.Load(SI, At(DI, 9)) }, "bytes 9 to 17 of a block of 16"},
		{"before a block", func(a *Asm) { args(a); a.Load(SI, At(DI, -1)) }, "bytes -1 to 7"},
		{"behind a moved address", func(a *Asm) { args(a); a.DoConst(Add, DI, 8); a.Load(SI, At(DI, 8)) }, "bytes 16 to 24"},
		{"a moved address", func(a *Asm) { args(a); a.DoConst(Add, DI, 8); a.LoadBytes(SI, At(DI, 4), 4) }, ""},
		{"an index without a bound", func(a *Asm) { args(a); a.Load(SI, At(BX, 0)); a.Load(SI, Element(DI, SI, 8)) }, "index without a bound"},
		{"an index below a bound", func(a *Asm) {
			args(a)
			l := a.NewLabel()
			a.Load(SI, At(BX, 0))
			a.DoConst(Cmp, SI, 2)
			a.JumpIf(AboveEqual, l)
			a.Load(SI, Element(DI, SI, 8))
			a.Bind(l)
		}, ""},
		{"an index below too high a bound", func(a *Asm) {
			args(a)
			l := a.NewLabel()
			a.Load(SI, At(BX, 0))
			a.DoConst(Cmp, SI, 3)
			a.JumpIf(AboveEqual, l)
			a.Load(SI, Element(DI, SI, 8))
			a.Bind(l)
		}, "bytes 0 to 24 of a block of 16"},
		{"an index changed after the comparison", func(a *Asm) {
			args(a)
			l := a.NewLabel()
			a.Load(SI, At(BX, 0))
			a.DoConst(Cmp, SI, 2)
			a.Load(SI, At(BX, 8))
			a.JumpIf(AboveEqual, l)
			a.Load(SI, Element(DI, SI, 8))
			a.Bind(l)
		}, "index without a bound"},
		{"an index where the bound does not hold", func(a *Asm) {
			args(a)
			l := a.NewLabel()
			a.Load(SI, At(BX, 0))
			a.DoConst(Cmp, SI, 2)
			a.JumpIf(AboveEqual, l)
			a.Bind(l)
			a.Load(SI, Element(DI, SI, 8))
		}, "index without a bound"},
		{"a byte as index", func(a *Asm) {
			a.LoadAddress(CX, At(R12, 8), 1024)
			a.Load(SI, At(BX, 0))
			a.Low8(AX, SI)
			a.LoadBytes(DX, Element(CX, AX, 4), 4)
		}, ""},
		{"outside the vector", func(a *Asm) { a.Load(SI, At(BX, 80)) }, "88 bytes of the vector"},
		{"before the vector", func(a *Asm) { a.Load(SI, At(BX, -8)) }, "not constant"},
		{"outside the refs", func(a *Asm) { a.LoadAddress(CX, At(R12, 16), 8) }, "24 of the refs"},
		{"a ref as a number", func(a *Asm) { a.Load(SI, At(R12, 0)) }, "an address in the refs is written or used as a number"},
		{"a ref written", func(a *Asm) { a.StoreConst(At(R12, 0), 1) }, "an address in the refs is written"},
		{"an address of the State written", func(a *Asm) { a.StoreConst(At(R13, 0), 1) }, "to the State: allowed is"},
		{"an address of the State as a number", func(a *Asm) { a.LoadBytes(SI, At(R13, 4), 1) }, "to the State: allowed is"},
		{"a number of the State as an address", func(a *Asm) { a.LoadAddress(SI, At(R13, 16), 8) }, "to the State: allowed is"},
		{"a jump to a number of the State", func(a *Asm) { a.JumpTo(At(R13, 16)) }, "to the State: allowed is"},
		{"a writable word", func(a *Asm) { a.StoreConst(At(R13, 16), 1) }, ""},
		{"beside a writable word", func(a *Asm) { a.StoreConst(At(R13, 17), 1) }, "to the State: allowed is"},
		{"a register with a fixed meaning", func(a *Asm) { a.Set(BX, 1) }, "register 3 has a fixed meaning"},
		{"no comparison", func(a *Asm) { l := a.NewLabel(); a.JumpIf(Equal, l); a.Bind(l) }, "no comparison has set the flags"},
		{"flags that a constant has changed", func(a *Asm) {
			l := a.NewLabel()
			a.CmpByte(At(R13, 20), 1)
			a.Set(SI, 0)
			a.JumpIf(Equal, l)
			a.Bind(l)
		}, "no comparison has set the flags"},
		{"a constant that does not fit", func(a *Asm) { a.Set(SI, 1); a.DoConst(Add, SI, 1<<31) }, "does not fit"},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := New()
			c.write(a)
			a.Set(AX, 0)
			a.Return()
			_, err := a.Assemble(memory)
			switch {
			case c.want == "" && err != nil:
				t.Error(err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
}

// In a test binary all registers hold 0xbad when Go enters the code, except
// those with pointers.
func TestPoison(t *testing.T) {
	if !Supported {
		t.Skip("machine code cannot be run here")
	}
	if !Debug {
		t.Fatal("this is a test binary, and registers are not poisoned")
	}
	for _, r := range allRegs[1:] {
		a := New()
		a.Move(AX, r)
		a.Return()
		if _, err := a.Assemble(memory); err == nil {
			t.Errorf("the verifier accepts a read of register %d", r)
		}
		c, err := Load(a.bytes())
		if err != nil {
			t.Fatal(err)
		}
		p := unsafe.Pointer(new(uint64))
		if got := Call(c.Entry(0), p, p, p); got != 0xbad {
			t.Errorf("register %d holds %#x", r, got)
		}
	}
}
