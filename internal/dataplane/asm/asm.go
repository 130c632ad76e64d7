// Package asm assembles, verifies and runs machine code. It has the few
// instructions of amd64 that a compiled program needs. On arm64 each becomes
// one or more instructions with the same effect on registers of the same
// numbers.
//
// The code is a leaf function. It calls no other code, uses the stack only for its
// return address, and does not change the registers that Go reserves (R14, BP, SP).
// Call passes three pointers in BX, R12 and R13. The code returns one number in AX:
// 0 at its end, or the number of a request to Go.
//
// # Memory safety
//
// The bytes of a packet are numbers to the code, never addresses. The verifier
// (verify.go) enforces this during assembly. The base of each access is a
// register with an address, and addresses come only from
//
//   - BX, R12 and R13, which Call sets and the code cannot write,
//   - LoadAddress and AddAddress, which read State and refs, where only Go writes.
//
// The verifier compares accesses at constant places with the size of the
// memory. It accepts an index only if a comparison, or the width of a load,
// bounds it within the memory. So an access that depends on packet bytes is
// either bounds-checked by the code or within the memory for all values.
//
// The callers of LoadAddress and AddAddress vouch for the sizes that they
// state. They are the arguments of an action, the cells of an array, the tables
// of a CRC, and the packet's buffer; comments beside the calls give the
// reasons.
//
// Code that the verifier refuses never runs: Assemble fails, and the program
// runs as closures. A test binary also poisons all other registers at each
// entry (Debug), so that tests do not depend on the verifier alone.
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

// At returns the memory at a register plus disp bytes.
func At(base Reg, disp int) Mem { return Mem{Base: base, Disp: int32(disp)} }

// Element returns an element of an array of elements of 1, 2, 4 or 8 bytes,
// which begins at a register.
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

// A Shift is a shift, by its number in the instruction set.
type Shift byte

// The shifts.
const (
	Shl Shift = 4
	Shr Shift = 5
	Sar Shift = 7
)

// A Cond is a condition of the flags, by its number in the instruction set.
// Flipping the lowest bit negates it.
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

// Not returns the opposite condition.
func (c Cond) Not() Cond { return c ^ 1 }

// A Label is a place in the code.
type Label int

// An Asm assembles code. Operands have 64 bits unless a method specifies another
// size.
type Asm struct {
	code   []byte
	labels []label
	jumps  []jump
	verifier
}

// A label is the position of a Label, and the verifier's knowledge at this
// position.
type label struct {
	at        int  // offset in the code; -1: not bound
	entry     bool // bound by Entry: only Call's pointers are loaded
	enterable bool // Go may enter here
	known     *facts
}

// A jump is the position of a distance that Assemble fills in.
type jump struct {
	at int
	to Label
}

// New returns an empty Asm.
func New() *Asm { return &Asm{verifier: verifier{now: entry}} }

// Assemble returns the code, or the first error of the verifier.
func (a *Asm) Assemble(m Memory) ([]byte, error) {
	if a.err != nil {
		return nil, a.err
	}
	if err := m.check(&a.verifier); err != nil {
		return nil, err
	}
	return a.bytes(), nil
}

// Len returns the number of bytes assembled so far.
func (a *Asm) Len() int { return len(a.code) }

// NewLabel returns a label that is not bound.
func (a *Asm) NewLabel() Label {
	a.labels = append(a.labels, label{at: -1})
	return Label(len(a.labels) - 1)
}

// Bind binds a label to this place. Only code before it jumps to the label.
func (a *Asm) Bind(l Label) {
	p := &a.labels[l]
	p.at = len(a.code)
	switch {
	case p.known == nil:
	case a.dead:
		a.now, a.dead = *p.known, false
	default:
		a.now.join(p.known)
	}
	p.known = nil
}

// Entry binds a label to this place. Go may enter at the label, and later code may
// jump back to it. So only the pointers of Call are loaded there.
func (a *Asm) Entry(l Label) {
	a.labels[l] = label{at: len(a.code), entry: true}
	a.now, a.dead = entry, false
}

// EntryHere returns a label that Entry has bound to this place.
func (a *Asm) EntryHere() Label {
	l := a.NewLabel()
	a.Entry(l)
	return l
}

// Bound reports whether a label is bound.
func (a *Asm) Bound(l Label) bool { return a.labels[l].at >= 0 }

// Offset returns the place of a label in the code.
func (a *Asm) Offset(l Label) int { return a.labels[l].at }

// Fits reports whether a constant fits in an instruction: an instruction holds 32
// bits, which the processor sign-extends.
func Fits(v uint64) bool { return int64(v) == int64(int32(v)) }
