// Package asm assembles and runs machine code: the few instructions of amd64
// that a compiled program needs, and a way to call them. On arm64 each of them
// becomes what does the same there, with the registers of the same numbers.
//
// The code is a leaf: it calls nothing, uses no stack but the address that it
// returns to, and leaves the registers alone that Go keeps to itself (R14, BP,
// SP). It gets three pointers, in the registers that Call names, and gives one
// number back. Whatever it cannot do it asks for by returning.
package asm

// A Reg is a general-purpose register.
type Reg byte

// The registers that code may use.
const (
	AX  Reg = 0
	CX  Reg = 1
	DX  Reg = 2
	BX  Reg = 3
	SI  Reg = 6
	DI  Reg = 7
	R8  Reg = 8
	R9  Reg = 9
	R10 Reg = 10
	R11 Reg = 11
	R12 Reg = 12
	R13 Reg = 13
	R15 Reg = 15
)

// A Mem is a place in memory: Base + Disp, and with Indexed set + Index·Scale.
type Mem struct {
	Base, Index Reg
	Indexed     bool
	Scale       byte // 1, 2, 4 or 8
	Disp        int32
}

// At is the memory disp bytes behind a register.
func At(base Reg, disp int) Mem { return Mem{Base: base, Disp: int32(disp)} }

// Element is the element at a register of an array of elements of 1, 2, 4 or 8
// bytes.
func Element(base, index Reg, size byte) Mem {
	return Mem{Base: base, Index: index, Indexed: true, Scale: size}
}

// An Op is an arithmetic operation with two operands, by its number in the
// instruction set.
type Op byte

// The operations.
const (
	Add Op = 0
	Or  Op = 1
	Adc Op = 2
	And Op = 4
	Sub Op = 5
	Xor Op = 6
	Cmp Op = 7
)

// A Shift is a shift or rotation, by its number in the instruction set.
type Shift byte

// The shifts.
const (
	Rol Shift = 0
	Shl Shift = 4
	Shr Shift = 5
	Sar Shift = 7
)

// A Cond is a condition of the flags, by its number in the instruction set.
// Exchanging the lowest bit turns it round.
type Cond byte

// The conditions: unsigned below and above, signed less and greater.
const (
	Below        Cond = 2
	AboveEqual   Cond = 3
	Equal        Cond = 4
	NotEqual     Cond = 5
	BelowEqual   Cond = 6
	Above        Cond = 7
	Less         Cond = 12
	GreaterEqual Cond = 13
	LessEqual    Cond = 14
	Greater      Cond = 15
)

// Not is the opposite condition.
func (c Cond) Not() Cond { return c ^ 1 }

// A Label is a place in the code that jumps lead to.
type Label int

// An Asm is code in the making. All operands have 64 bits where a name does not
// say otherwise.
type Asm struct {
	code   []byte
	labels []int // offsets, -1: not bound
	jumps  []jump
}

// A jump is four bytes that are to hold the distance to a label.
type jump struct {
	at int
	to Label
}

// Len is how many bytes there are so far.
func (a *Asm) Len() int { return len(a.code) }

// NewLabel makes a label without a place.
func (a *Asm) NewLabel() Label {
	a.labels = append(a.labels, -1)
	return Label(len(a.labels) - 1)
}

// Bind gives a label the present place.
func (a *Asm) Bind(l Label) { a.labels[l] = len(a.code) }

// Here makes a label for the present place.
func (a *Asm) Here() Label {
	l := a.NewLabel()
	a.Bind(l)
	return l
}

// Bound reports whether a label has its place.
func (a *Asm) Bound(l Label) bool { return a.labels[l] >= 0 }

// Offset is where a label is in the code.
func (a *Asm) Offset(l Label) int { return a.labels[l] }

// Fits reports whether a constant is its lowest 32 bits with their sign
// extended, as instructions have it.
func Fits(v uint64) bool { return int64(v) == int64(int32(v)) }
