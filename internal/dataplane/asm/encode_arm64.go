package asm

import "encoding/binary"

// The same instructions for arm64. A register has the number that it has on
// amd64, where these numbers are less than 16; four others serve what one
// instruction of amd64 does with memory or a constant. Flags are set as on
// amd64 by Cmp, Test and Add, behind which alone they are looked at.
const (
	zero   Reg = 31
	datum  Reg = 16 // what is read from memory, or a constant
	place  Reg = 17 // an address
	second Reg = 4  // a constant beside a datum
)

// Bytes is the code, in which all jumps find their labels.
func (a *Asm) Bytes() []byte {
	for _, j := range a.jumps {
		distance := uint32(a.labels[j.to]-j.at) / 4
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

// flagged are the operations by their numbers on amd64, with two registers.
var flagged = map[Op]uint32{Add: 0xab000000, Or: 0xaa000000, Adc: 0xba000000, And: 0xea000000, Sub: 0xeb000000, Xor: 0xca000000, Cmp: 0xeb000000}

// conditions are the codes of arm64 for the conditions.
var conditions = map[Cond]uint32{Below: 3, AboveEqual: 2, Equal: 0, NotEqual: 1, BelowEqual: 9, Above: 8, Less: 11, GreaterEqual: 10, LessEqual: 13, Greater: 12}

// Move copies a register.
func (a *Asm) Move(dst, src Reg) {
	if dst != src {
		a.three(0xaa000000, dst, zero, src)
	}
}

// Set gives a register a constant.
func (a *Asm) Set(dst Reg, v uint64) {
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

// direct makes memory a register and a distance that one instruction can have.
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
		a.Set(second, uint64(int64(d)))
		a.three(0x8b000000, place, base, second)
		return place, 0
	}
	return base, m.Disp
}

// transfer emits a load or store; op has its size and kind for a distance that
// is a multiple of the size.
func (a *Asm) transfer(op uint32, r, base Reg, disp int32, bytes int) {
	if disp >= 0 && disp%int32(bytes) == 0 {
		a.emit(op | uint32(disp/int32(bytes))<<10 | uint32(base)<<5 | uint32(r))
		return
	}
	const unscaled = 1 << 24
	a.emit(op&^unscaled | uint32(disp)&0x1ff<<12 | uint32(base)<<5 | uint32(r))
}

// The instructions that load and store, by the number of bytes.
var (
	loads  = map[int]uint32{1: 0x39400000, 2: 0x79400000, 4: 0xb9400000, 8: 0xf9400000}
	stores = map[int]uint32{1: 0x39000000, 2: 0x79000000, 4: 0xb9000000, 8: 0xf9000000}
)

// Load reads memory.
func (a *Asm) Load(dst Reg, m Mem) { a.LoadBytes(dst, m, 8) }

// LoadBytes reads 1, 2, 4 or 8 bytes, the rest of the register is zero.
func (a *Asm) LoadBytes(dst Reg, m Mem, bytes int) {
	base, disp := a.direct(m, bytes)
	a.transfer(loads[bytes], dst, base, disp, bytes)
}

// LoadSigned reads 4 bytes with their sign extended.
func (a *Asm) LoadSigned(dst Reg, m Mem) {
	base, disp := a.direct(m, 4)
	a.transfer(0xb9800000, dst, base, disp, 4)
}

// Store writes a register.
func (a *Asm) Store(m Mem, src Reg) { a.StoreBytes(m, src, 8) }

// StoreBytes writes the lowest 1, 2, 4 or 8 bytes of a register.
func (a *Asm) StoreBytes(m Mem, src Reg, bytes int) {
	base, disp := a.direct(m, bytes)
	a.transfer(stores[bytes], src, base, disp, bytes)
}

// constant is a register that holds a constant.
func (a *Asm) constant(v uint64) Reg {
	if v == 0 {
		return zero
	}
	a.Set(second, v)
	return second
}

// StoreConst writes a constant that Fits.
func (a *Asm) StoreConst(m Mem, v uint64) { a.storeConst(m, v, 8) }

// StoreByte writes one byte.
func (a *Asm) StoreByte(m Mem, v byte) { a.storeConst(m, uint64(v), 1) }

func (a *Asm) storeConst(m Mem, v uint64, bytes int) {
	base, disp := a.direct(m, bytes)
	a.transfer(stores[bytes], a.constant(v), base, disp, bytes)
}

// Do computes dst op src.
func (a *Asm) Do(op Op, dst, src Reg) {
	to := dst
	if op == Cmp {
		to = zero
	}
	a.three(flagged[op], to, dst, src)
}

// DoMem computes dst op memory.
func (a *Asm) DoMem(op Op, dst Reg, m Mem) {
	a.Load(datum, m)
	a.Do(op, dst, datum)
}

// DoConst computes dst op a constant that Fits.
func (a *Asm) DoConst(op Op, dst Reg, v uint64) {
	short := map[Op]uint32{Add: 0xb1000000, Sub: 0xf1000000, Cmp: 0xf1000000}[op]
	if short == 0 || v > 4095 {
		a.Do(op, dst, a.constant(v))
		return
	}
	to := dst
	if op == Cmp {
		to = zero
	}
	a.emit(short | uint32(v)<<10 | uint32(dst)<<5 | uint32(to))
}

// MemConst computes memory op a constant that Fits.
func (a *Asm) MemConst(op Op, m Mem, v uint64) {
	a.inMemory(op, m, func() { a.DoConst(op, datum, v) })
}

// MemDo computes memory op src.
func (a *Asm) MemDo(op Op, m Mem, src Reg) {
	a.inMemory(op, m, func() { a.Do(op, datum, src) })
}

func (a *Asm) inMemory(op Op, m Mem, do func()) {
	base, disp := a.direct(m, 8)
	a.transfer(loads[8], datum, base, disp, 8)
	do()
	if op != Cmp {
		a.transfer(stores[8], datum, base, disp, 8)
	}
}

// CmpByte compares a byte in memory with a constant.
func (a *Asm) CmpByte(m Mem, v byte) {
	a.LoadBytes(datum, m, 1)
	a.DoConst(Cmp, datum, uint64(v))
}

// Test sets the flags by dst and src.
func (a *Asm) Test(dst, src Reg) { a.three(flagged[And], zero, dst, src) }

// Mul computes the lower half of dst · src.
func (a *Asm) Mul(dst, src Reg) { a.three(0x9b007c00, dst, dst, src) }

// MulMem computes the lower half of dst · memory.
func (a *Asm) MulMem(dst Reg, m Mem) {
	a.Load(datum, m)
	a.Mul(dst, datum)
}

// MulConst computes the lower half of src · a constant that Fits.
func (a *Asm) MulConst(dst, src Reg, v uint64) {
	a.Set(second, v)
	a.three(0x9b007c00, dst, src, second)
}

// Div divides AX by src; DX is 0 before. AX is the quotient, DX the remainder.
func (a *Asm) Div(src Reg) {
	a.three(0x9ac00800, datum, AX, src)
	a.three(0x9b008000|uint32(AX)<<10, DX, datum, src)
	a.Move(AX, datum)
}

// Neg computes -dst.
func (a *Asm) Neg(dst Reg) { a.three(0xcb000000, dst, zero, dst) }

// Not computes ^dst.
func (a *Asm) Not(dst Reg) { a.three(0xaa200000, dst, zero, dst) }

// ShiftConst shifts by n < 64 bits.
func (a *Asm) ShiftConst(op Shift, dst Reg, n byte) {
	if n == 0 {
		return
	}
	by := uint32(n)
	switch op {
	case Rol:
		a.three(0x93c00000|(64-by)<<10, dst, dst, dst)
	case Shl:
		a.three(0xd3400000|(63-by)<<10, dst, dst, Reg(64-by))
	case Shr:
		a.three(0xd3400000|63<<10, dst, dst, Reg(by))
	case Sar:
		a.three(0x93400000|63<<10, dst, dst, Reg(by))
	}
}

// ShiftCX shifts by the lowest six bits of CX.
func (a *Asm) ShiftCX(op Shift, dst Reg) {
	if op == Rol {
		a.three(0xcb000000, datum, zero, CX)
		a.three(0x9ac02c00, dst, dst, datum)
		return
	}
	a.three(map[Shift]uint32{Shl: 0x9ac02000, Shr: 0x9ac02400, Sar: 0x9ac02800}[op], dst, dst, CX)
}

// Swap turns the lowest 2, 4 or 8 bytes of a register round; the rest must be
// zero.
func (a *Asm) Swap(dst Reg, bytes int) {
	if op := map[int]uint32{2: 0x5ac00400, 4: 0x5ac00800, 8: 0xdac00c00}[bytes]; op != 0 {
		a.emit(op | uint32(dst)<<5 | uint32(dst))
	}
}

// SetIf makes dst 1 or 0 as the flags are. It changes no flags.
func (a *Asm) SetIf(c Cond, dst Reg) {
	a.three(0x9a800400|(conditions[c]^1)<<12, dst, zero, zero)
}

// Jump goes to a label.
func (a *Asm) Jump(l Label) {
	a.jumps = append(a.jumps, jump{len(a.code), l})
	a.emit(0)
}

// JumpIf goes to a label if the flags are so. A condition alone would not reach
// as far.
func (a *Asm) JumpIf(c Cond, l Label) {
	a.emit(0x54000000 | 2<<5 | conditions[c] ^ 1)
	a.Jump(l)
}

// JumpTo goes to the address in memory.
func (a *Asm) JumpTo(m Mem) {
	a.Load(datum, m)
	a.emit(0xd61f0000 | uint32(datum)<<5)
}

// Return ends the code; the result is AX.
func (a *Asm) Return() { a.emit(0xd65f03c0) }

// Low32 keeps the lowest 32 bits of a register.
func (a *Asm) Low32(dst Reg) { a.three(0x2a000000, dst, zero, dst) }

// Low8 is the lowest byte of a register.
func (a *Asm) Low8(dst, src Reg) { a.emit(0x53001c00 | uint32(src)<<5 | uint32(dst)) }
