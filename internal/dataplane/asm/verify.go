package asm

import (
	"fmt"
	"math"
	"slices"
)

// The verifier follows the code while it is written. For each register it knows
// whether every path to this place has loaded it, and whether it holds a number
// or an address. It keeps an upper bound of each number, and the size of the
// memory of each address. It records an error for code that
//
//	- reads a register that some path has not loaded, for instance after Go has run,
//	- uses a number as an address,
//	- reads or writes outside the memory of an address,
//	- computes with an address or stores it; adding a constant is allowed,
//	- writes a register that has a fixed meaning,
//	- uses flags that no comparison has set.
//
// One pass is enough, because a label is bound in one of two ways. Entry binds
// a label that Go may enter, or that later code may jump to: only the three
// pointers of Call are loaded there. Bind binds a label that only earlier code
// jumps to: a register is loaded there if it is loaded on all these paths.

// A Memory describes the memory that the code may access.
type Memory struct {
	// Vector, Refs and State are the sizes in bytes of the memory at BX, R12
	// and R13. Refs holds addresses and is never written.
	Vector, Refs, State int
	// Addresses are the offsets of the addresses in State, which only Go writes.
	Addresses []int
	// Writable are the ranges of State that the code may write, as offset and size.
	Writable [][2]int
}

// A region is the kind of value in a register.
type region byte

const (
	unset  region = iota // the register may hold anything
	number               // at most hi
	block                // an address in a block of size bytes, at an offset from lo to hi
	vector
	refs
	state
)

// A fact is the verifier's knowledge about a register.
type fact struct {
	region region
	size   int64
	lo, hi uint64
}

func upTo(v uint64) fact { return fact{region: number, hi: v} }

func address(size int) fact { return fact{region: block, size: int64(size)} }

// Facts are the verifier's knowledge at one place of the code.
type facts struct {
	regs  [16]fact
	flags flagsFact
}

// A flagsFact is the verifier's knowledge about the flags.
type flagsFact struct {
	set      bool
	compared bool // with a constant
	reg      Reg
	with     uint64
}

// entry holds the facts where Go enters the code.
var entry = func() (f facts) {
	f.regs[BX].region, f.regs[R12].region, f.regs[R13].region = vector, refs, state
	return f
}()

// join keeps the facts that hold on both of two paths.
func (f *facts) join(g *facts) {
	for i := range f.regs {
		f.regs[i] = f.regs[i].join(g.regs[i])
	}
	if f.flags != g.flags {
		f.flags = flagsFact{}
	}
}

func (f fact) join(g fact) fact {
	if f.region != g.region {
		return fact{}
	}
	return fact{f.region, min(f.size, g.size), min(f.lo, g.lo), max(f.hi, g.hi)}
}

// An access is an access to the State.
type access struct {
	from, bytes int
	write       bool
	address     bool // read for use as an address
}

// A verifier is the part of an Asm that checks the code.
type verifier struct {
	now  facts
	dead bool // this place is unreachable
	err  error

	// Assemble checks the bytes of the vector and the refs that the code uses,
	// and the accesses to the State.
	vectorEnd, refsEnd int
	accesses           map[access]bool
}

// fail records the first error.
func (a *Asm) fail(format string, args ...any) {
	if a.err == nil && !a.dead {
		a.err = fmt.Errorf("machine code, byte %d: %s", a.Len(), fmt.Sprintf(format, args...))
	}
}

// read returns the fact of a register, which must be loaded.
func (a *Asm) read(r Reg) fact {
	f := a.now.regs[r]
	if f.region == unset {
		a.fail("register %d is read but not loaded on every path", r)
	}
	return f
}

// number checks that a register holds a number and returns its upper bound.
func (a *Asm) number(r Reg) uint64 {
	f := a.read(r)
	if f.region == number {
		return f.hi
	}
	a.fail("register %d holds an address where a number is needed", r)
	return math.MaxUint64
}

// write sets the fact of a register from here on.
func (a *Asm) write(r Reg, f fact) {
	switch r {
	case BX, R12, R13:
		a.fail("register %d has a fixed meaning and is written", r)
	}
	if a.now.flags.reg == r {
		a.now.flags.compared = false
	}
	a.now.regs[r] = f
}

// clobber records that a register holds an unknown number and that the flags are undefined.
func (a *Asm) clobber(r Reg) {
	a.write(r, upTo(math.MaxUint64))
	a.now.flags = flagsFact{}
}

// operate records an operation on dst.
func (a *Asm) operate(op Op, dst Reg) {
	a.number(dst)
	if op == Adc {
		a.needFlags()
	}
	if op != Cmp {
		a.clobber(dst)
	}
	a.setFlags(op)
}

func (a *Asm) operateConst(op Op, dst Reg, v uint64) {
	f := a.read(dst)
	if op == Add && f.region == block && int64(v) >= 0 {
		f.lo, f.hi = f.lo+v, f.hi+v
		a.write(dst, f)
		a.now.flags = flagsFact{}
		return
	}
	a.operate(op, dst)
	switch {
	case op == And && int64(v) >= 0:
		a.write(dst, upTo(min(f.hi, v)))
	case op == Cmp:
		a.now.flags = flagsFact{set: true, compared: true, reg: dst, with: v}
	}
}

// shifted records a shift by a constant.
func (a *Asm) shifted(op Shift, dst Reg, n byte) {
	hi := a.number(dst)
	switch {
	case n == 0:
		return
	case op == Shr:
		hi >>= n
	case op == Shl && hi <= math.MaxUint64>>n:
		hi <<= n
	default:
		hi = math.MaxUint64
	}
	a.clobber(dst)
	a.write(dst, upTo(hi))
}

// setFlags records the flags after an operation. Only Cmp, Test and Add set flags
// in the same way on all processors.
func (a *Asm) setFlags(op Op) {
	a.now.flags = flagsFact{set: op == Cmp || op == Add}
}

func (a *Asm) needFlags() {
	if !a.now.flags.set {
		a.fail("no comparison has set the flags")
	}
}

// notTaken records that the condition of a jump did not hold.
func (a *Asm) notTaken(c Cond) {
	if f := a.now.flags; c == AboveEqual && f.compared && f.with > 0 {
		r := &a.now.regs[f.reg]
		r.hi = min(r.hi, f.with-1)
	}
}

func (a *Asm) immediate(v uint64) {
	if !Fits(v) {
		a.fail("the constant %#x does not fit in an instruction", v)
	}
}

// access checks that memory may be read or written.
func (a *Asm) access(m Mem, bytes int, write bool) {
	base := a.read(m.Base)
	switch base.region {
	case number:
		a.fail("register %d holds a number and is used as an address", m.Base)
	case block:
		a.inBlock(base, m, int64(bytes))
	case refs:
		a.fail("an address in the refs is written or used as a number")
	default:
		a.inFixed(base.region, m, access{bytes: bytes, write: write})
	}
}

// accessAddress checks a read of an address that only Go writes.
func (a *Asm) accessAddress(m Mem) {
	base := a.read(m.Base)
	if base.region != refs && base.region != state {
		a.fail("an address is read from memory that the code may write")
		return
	}
	a.inFixed(base.region, m, access{bytes: 8, address: true})
}

func (a *Asm) inFixed(r region, m Mem, x access) {
	if m.Indexed || m.Disp < 0 {
		a.fail("an access to the vector, the refs or the State at a place that is not constant")
	}
	if a.dead {
		return
	}
	x.from = int(m.Disp)
	switch r {
	case vector:
		a.vectorEnd = max(a.vectorEnd, x.from+x.bytes)
	case refs:
		a.refsEnd = max(a.refsEnd, x.from+x.bytes)
	default:
		if a.accesses == nil {
			a.accesses = map[access]bool{}
		}
		a.accesses[x] = true
	}
}

// maxIndex exceeds any index. Sums of smaller numbers do not overflow.
const maxIndex = 1 << 40

func (a *Asm) inBlock(base fact, m Mem, bytes int64) {
	low, high := int64(base.lo)+int64(m.Disp), int64(base.hi)+int64(m.Disp)+bytes
	if m.Indexed {
		most := a.number(m.Index)
		if most > maxIndex {
			a.fail("register %d is used as an index without a bound", m.Index)
			return
		}
		high += int64(most) * int64(m.Scale)
	}
	if low < 0 || high > base.size {
		a.fail("bytes %d to %d of a block of %d bytes are accessed", low, high, base.size)
	}
}

// leave records a jump from here to a label.
func (a *Asm) leave(l Label) {
	if !a.dead {
		a.reach(l, &a.now)
	}
}

// reach adds a path to a label, with the facts on it.
func (a *Asm) reach(l Label, f *facts) {
	p := &a.labels[l]
	switch {
	case p.entry:
	case p.at >= 0:
		a.fail("a jump back to a label that is not an entry")
	case p.known == nil:
		known := *f
		p.known = &known
	default:
		p.known.join(f)
	}
}

// Enter records that Go may enter the code at a label.
func (a *Asm) Enter(l Label) {
	p := &a.labels[l]
	switch {
	case p.entry || p.enterable:
	case p.at >= 0:
		if a.err == nil {
			a.err = fmt.Errorf("machine code, byte %d: Go may enter at a label that needs registers to be loaded", p.at)
		}
	default:
		p.enterable = true
		a.reach(l, &entry)
	}
}

// check checks the accesses that depend on sizes.
func (m *Memory) check(v *verifier) error {
	if v.vectorEnd > m.Vector || v.refsEnd > m.Refs {
		return fmt.Errorf("machine code: %d bytes of the vector and %d of the refs are accessed, which have %d and %d", v.vectorEnd, v.refsEnd, m.Vector, m.Refs)
	}
	for x := range v.accesses {
		if !m.allows(x) {
			return fmt.Errorf("machine code: access %+v to the State: allowed is %+v", x, *m)
		}
	}
	return nil
}

// allows reports whether the code may make an access to the State.
func (m *Memory) allows(x access) bool {
	within := func(from, size int) bool { return x.from >= from && x.from+x.bytes <= from+size }
	apart := func(at int) bool { return x.from >= at+8 || x.from+x.bytes <= at }
	switch {
	case x.address:
		return slices.Contains(m.Addresses, x.from)
	case x.write:
		return slices.ContainsFunc(m.Writable, func(w [2]int) bool { return within(w[0], w[1]) })
	}
	return within(0, m.State) && !slices.ContainsFunc(m.Addresses, func(at int) bool { return !apart(at) })
}
