package asm

import "encoding/binary"

// This file encodes the instructions for arm64. Registers below 16 have the
// same number as on amd64. Four more registers replace operands in memory and
// constants. Only Cmp, Test and Add set the flags as on amd64, so conditions
// are used only after those.
const (
	zero   Reg = 31
	datum  Reg = 16 // operand from memory, or constant
	place  Reg = 17 // an address
	second Reg = 4  // constant needed in addition to a datum
)

// bytes returns the code after it has filled in the distances of jumps.
func (a *Asm) bytes() []byte {
	for _, j := range a.jumps {
		distance := uint32(a.labels[j.to].at-j.at) / 4
		binary.LittleEndian.PutUint32(a.code[j.at:], 0x14000000|distance&(1<<26-1))
	}
	a.jumps = a.jumps[:0]
	return a.code
}

func (a *Asm) emit(op uint32) { a.code = binary.LittleEndian.AppendUint32(a.code, op) }

// three emits an instruction d = n op m.
func (a *Asm) three(op uint32, d, n, m Reg) {
	a.emit(op | uint32(m)<<16 | uint32(n)<<5 | uint32(d))
}

// flagged maps operations to instructions with two registers that set the
// flags.
var flagged = map[Op]uint32{Add: 0xab000000, Or: 0xaa000000, Adc: 0xba000000, And: 0xea000000, Sub: 0xeb000000, Xor: 0xca000000, Cmp: 0xeb000000}

// conditions maps conditions to their codes on arm64.
var conditions = map[Cond]uint32{Below: 3, AboveEqual: 2, Equal: 0, NotEqual: 1, BelowEqual: 9, Above: 8, Less: 11, GreaterEqual: 10, LessEqual: 13, Greater: 12}

// move copies a register.
func (a *Asm) move(dst, src Reg) {
	if dst != src {
		a.three(0xaa000000, dst, zero, src)
	}
}

// set loads a constant into a register.
func (a *Asm) set(dst Reg, v uint64) {
	const movz, movk, movn = 0xd2800000, 0xf2800000, 0x92800000
	zeros, ones := 0, 0
	for i := range 4 {
		switch uint16(v >> (16 * i)) {
		case 0:
			zeros++
		case 0xffff:
			ones++
		}
	}
	first, rest := uint32(movz), uint16(0)
	if ones > zeros {
		first, rest = movn, 0xffff
	}
	begun := false
	for i := range uint32(4) {
		part := uint16(v >> (16 * i))
		switch {
		case part == rest:
			continue
		case begun:
			a.emit(movk | i<<21 | uint32(part)<<5 | uint32(dst))
		default:
			a.emit(first | i<<21 | uint32(part^rest)<<5 | uint32(dst))
			begun = true
		}
	}
	if !begun {
		a.emit(first | uint32(dst))
	}
}

// direct reduces a memory operand to a register and a distance that fits in one
// instruction.
func (a *Asm) direct(m Mem, bytes int) (Reg, int32) {
	base := m.Base
	if m.Indexed {
		log := uint32(0)
		for 1<<log < m.Scale {
			log++
		}
		a.three(0x8b000000|log<<10, place, base, m.Index)
		base = place
	}
	if d := m.Disp; d < -256 || d > 255 && (d%int32(bytes) != 0 || d/int32(bytes) > 4095) {
		a.set(second, uint64(int64(d)))
		a.three(0x8b000000, place, base, second)
		return place, 0
	}
	return base, m.Disp
}

// transfer emits a load or store. op is the instruction for distances that are
// multiples of its size.
func (a *Asm) transfer(op uint32, r, base Reg, disp int32, bytes int) {
	if disp >= 0 && disp%int32(bytes) == 0 {
		a.emit(op | uint32(disp/int32(bytes))<<10 | uint32(base)<<5 | uint32(r))
		return
	}
	const unscaled = 1 << 24
	a.emit(op&^unscaled | uint32(disp)&0x1ff<<12 | uint32(base)<<5 | uint32(r))
}

// The load and store instructions by number of bytes.
var (
	loads  = map[int]uint32{1: 0x39400000, 2: 0x79400000, 4: 0xb9400000, 8: 0xf9400000}
	stores = map[int]uint32{1: 0x39000000, 2: 0x79000000, 4: 0xb9000000, 8: 0xf9000000}
)

// load reads memory.
func (a *Asm) load(dst Reg, m Mem) { a.loadBytes(dst, m, 8) }

// loadBytes reads 1, 2, 4 or 8 bytes and sets the rest of the register to zero.
func (a *Asm) loadBytes(dst Reg, m Mem, bytes int) {
	base, disp := a.direct(m, bytes)
	a.transfer(loads[bytes], dst, base, disp, bytes)
}

// store writes a register.
func (a *Asm) store(m Mem, src Reg) { a.storeBytes(m, src, 8) }

// storeBytes writes the lowest 1, 2, 4 or 8 bytes of a register.
func (a *Asm) storeBytes(m Mem, src Reg, bytes int) {
	base, disp := a.direct(m, bytes)
	a.transfer(stores[bytes], src, base, disp, bytes)
}

// constant returns a register that holds a constant.
func (a *Asm) constant(v uint64) Reg {
	if v == 0 {
		return zero
	}
	a.set(second, v)
	return second
}

// storeConst writes a constant that Fits.
func (a *Asm) storeConst(m Mem, v uint64) { a.storeImmediate(m, v, 8) }

// storeByte writes one byte.
func (a *Asm) storeByte(m Mem, v byte) { a.storeImmediate(m, uint64(v), 1) }

func (a *Asm) storeImmediate(m Mem, v uint64, bytes int) {
	base, disp := a.direct(m, bytes)
	a.transfer(stores[bytes], a.constant(v), base, disp, bytes)
}

// do computes dst op src.
func (a *Asm) do(op Op, dst, src Reg) {
	to := dst
	if op == Cmp {
		to = zero
	}
	a.three(flagged[op], to, dst, src)
}

// doMem computes dst op memory.
func (a *Asm) doMem(op Op, dst Reg, m Mem) {
	a.load(datum, m)
	a.do(op, dst, datum)
}

// doConst computes dst op a constant that Fits.
func (a *Asm) doConst(op Op, dst Reg, v uint64) {
	short := map[Op]uint32{Add: 0xb1000000, Sub: 0xf1000000, Cmp: 0xf1000000}[op]
	if short == 0 || v > 4095 {
		a.do(op, dst, a.constant(v))
		return
	}
	to := dst
	if op == Cmp {
		to = zero
	}
	a.emit(short | uint32(v)<<10 | uint32(dst)<<5 | uint32(to))
}

// memConst computes memory op a constant that Fits.
func (a *Asm) memConst(op Op, m Mem, v uint64) {
	a.inMemory(op, m, func() { a.doConst(op, datum, v) })
}

// memDo computes memory op src.
func (a *Asm) memDo(op Op, m Mem, src Reg) {
	a.inMemory(op, m, func() { a.do(op, datum, src) })
}

func (a *Asm) inMemory(op Op, m Mem, do func()) {
	base, disp := a.direct(m, 8)
	a.transfer(loads[8], datum, base, disp, 8)
	do()
	if op != Cmp {
		a.transfer(stores[8], datum, base, disp, 8)
	}
}

// cmpByte compares a byte in memory with a constant.
func (a *Asm) cmpByte(m Mem, v byte) {
	a.loadBytes(datum, m, 1)
	a.doConst(Cmp, datum, uint64(v))
}

// test sets the flags from dst and src.
func (a *Asm) test(dst, src Reg) { a.three(flagged[And], zero, dst, src) }

// mul computes the lower half of dst · src.
func (a *Asm) mul(dst, src Reg) { a.three(0x9b007c00, dst, dst, src) }

// mulMem computes the lower half of dst · memory.
func (a *Asm) mulMem(dst Reg, m Mem) {
	a.load(datum, m)
	a.mul(dst, datum)
}

// mulConst computes the lower half of src · a constant that Fits.
func (a *Asm) mulConst(dst, src Reg, v uint64) {
	a.set(second, v)
	a.three(0x9b007c00, dst, src, second)
}

// div divides AX by src; DX must be 0. AX is the quotient, DX the remainder.
func (a *Asm) div(src Reg) {
	a.three(0x9ac00800, datum, AX, src)
	a.three(0x9b008000|uint32(AX)<<10, DX, datum, src)
	a.move(AX, datum)
}

// not computes ^dst.
func (a *Asm) not(dst Reg) { a.three(0xaa200000, dst, zero, dst) }

// shiftConst shifts by n < 64 bits.
func (a *Asm) shiftConst(op Shift, dst Reg, n byte) {
	if n == 0 {
		return
	}
	by := uint32(n)
	switch op {
	case Shl:
		a.three(0xd3400000|(63-by)<<10, dst, dst, Reg(64-by))
	case Shr:
		a.three(0xd3400000|63<<10, dst, dst, Reg(by))
	case Sar:
		a.three(0x93400000|63<<10, dst, dst, Reg(by))
	}
}

// shiftCX shifts by the lowest six bits of CX.
func (a *Asm) shiftCX(op Shift, dst Reg) {
	a.three(map[Shift]uint32{Shl: 0x9ac02000, Shr: 0x9ac02400, Sar: 0x9ac02800}[op], dst, dst, CX)
}

// swap reverses the lowest 2, 4 or 8 bytes of a register; the rest must be
// zero.
func (a *Asm) swap(dst Reg, bytes int) {
	if op := map[int]uint32{2: 0x5ac00400, 4: 0x5ac00800, 8: 0xdac00c00}[bytes]; op != 0 {
		a.emit(op | uint32(dst)<<5 | uint32(dst))
	}
}

// setIf sets dst to 1 if the condition holds, else to 0. It changes no flags.
func (a *Asm) setIf(c Cond, dst Reg) {
	a.three(0x9a800400|(conditions[c]^1)<<12, dst, zero, zero)
}

// jump jumps to a label.
func (a *Asm) jump(l Label) {
	a.jumps = append(a.jumps, jump{len(a.code), l})
	a.emit(0)
}

// jumpIf jumps to a label if the condition holds. It emits a conditional jump over
// an unconditional one, because the latter reaches farther.
func (a *Asm) jumpIf(c Cond, l Label) {
	a.emit(0x54000000 | 2<<5 | conditions[c] ^ 1)
	a.jump(l)
}

// jumpTo jumps to the address in memory.
func (a *Asm) jumpTo(m Mem) {
	a.load(datum, m)
	a.emit(0xd61f0000 | uint32(datum)<<5)
}

// ret returns AX to Go.
func (a *Asm) ret() { a.emit(0xd65f03c0) }

// low32 keeps the lowest 32 bits of a register.
func (a *Asm) low32(dst Reg) { a.three(0x2a000000, dst, zero, dst) }

// low8 sets dst to the lowest byte of src.
func (a *Asm) low8(dst, src Reg) { a.emit(0x53001c00 | uint32(src)<<5 | uint32(dst)) }
