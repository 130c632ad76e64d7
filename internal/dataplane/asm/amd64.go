//go:build !arm64

package asm

import "encoding/binary"

// bytes returns the code after it has filled in the distances of jumps.
func (a *Asm) bytes() []byte {
	for _, j := range a.jumps {
		binary.LittleEndian.PutUint32(a.code[j.at:], uint32(a.labels[j.to].at-j.at-4))
	}
	a.jumps = a.jumps[:0]
	return a.code
}

func (a *Asm) emit(b ...byte) { a.code = append(a.code, b...) }

func (a *Asm) imm32(v int32) { a.code = binary.LittleEndian.AppendUint32(a.code, uint32(v)) }

// rex returns the prefix of an instruction: w selects 64 bits; the registers
// may be the upper eight.
func rex(w bool, reg, index, base Reg) byte {
	p := 0x40 | reg>>3<<2 | index>>3<<1 | base>>3
	if w {
		p |= 8
	}
	return byte(p)
}

// rr emits an instruction with two registers.
func (a *Asm) rr(w bool, reg, rm Reg, op ...byte) {
	a.emit(rex(w, reg, 0, rm))
	a.emit(op...)
	a.emit(0xc0 | byte(reg&7)<<3 | byte(rm&7))
}

// rm emits an instruction with a register and memory.
func (a *Asm) rm(w bool, reg Reg, m Mem, op ...byte) {
	a.emit(rex(w, reg, m.Index, m.Base))
	a.emit(op...)
	mod, short := byte(0x80), m.Disp == int32(int8(m.Disp))
	if short {
		mod = 0x40
	}
	if m.Indexed || m.Base&7 == 4 { // base or index need a second byte
		base := byte(m.Base & 7)
		a.emit(mod | byte(reg&7)<<3 | 4)
		if m.Indexed {
			a.emit(scaleBits(m.Scale)<<6 | byte(m.Index&7)<<3 | base)
		} else {
			a.emit(4<<3 | base)
		}
	} else {
		a.emit(mod | byte(reg&7)<<3 | byte(m.Base&7))
	}
	if short {
		a.emit(byte(m.Disp))
	} else {
		a.imm32(m.Disp)
	}
}

func scaleBits(n byte) byte {
	switch n {
	case 2:
		return 1
	case 4:
		return 2
	case 8:
		return 3
	}
	return 0
}

// move copies a register.
func (a *Asm) move(dst, src Reg) {
	if dst != src {
		a.rr(true, src, dst, 0x89)
	}
}

// set loads a constant into a register.
func (a *Asm) set(dst Reg, v uint64) {
	switch {
	case v == 0:
		a.rr(false, dst, dst, 0x31)
	case v>>32 == 0:
		a.emit(rex(false, 0, 0, dst), 0xb8|byte(dst&7))
		a.imm32(int32(uint32(v)))
	case Fits(v):
		a.rr(true, 0, dst, 0xc7)
		a.imm32(int32(v))
	default:
		a.emit(rex(true, 0, 0, dst), 0xb8|byte(dst&7))
		a.code = binary.LittleEndian.AppendUint64(a.code, v)
	}
}

// load reads memory.
func (a *Asm) load(dst Reg, m Mem) { a.rm(true, dst, m, 0x8b) }

// loadBytes reads 1, 2, 4 or 8 bytes and sets the rest of the register to zero.
func (a *Asm) loadBytes(dst Reg, m Mem, bytes int) {
	switch bytes {
	case 1:
		a.rm(false, dst, m, 0x0f, 0xb6)
	case 2:
		a.rm(false, dst, m, 0x0f, 0xb7)
	case 4:
		a.rm(false, dst, m, 0x8b)
	default:
		a.load(dst, m)
	}
}

// store writes a register.
func (a *Asm) store(m Mem, src Reg) { a.rm(true, src, m, 0x89) }

// storeBytes writes the lowest 1, 2, 4 or 8 bytes of a register.
func (a *Asm) storeBytes(m Mem, src Reg, bytes int) {
	switch bytes {
	case 1:
		a.rm(false, src, m, 0x88)
	case 2:
		a.emit(0x66)
		a.rm(false, src, m, 0x89)
	case 4:
		a.rm(false, src, m, 0x89)
	default:
		a.store(m, src)
	}
}

// storeConst writes a constant that Fits.
func (a *Asm) storeConst(m Mem, v uint64) {
	a.rm(true, 0, m, 0xc7)
	a.imm32(int32(v))
}

// storeByte writes one byte.
func (a *Asm) storeByte(m Mem, v byte) {
	a.rm(false, 0, m, 0xc6)
	a.emit(v)
}

// do computes dst op src.
func (a *Asm) do(op Op, dst, src Reg) { a.rr(true, src, dst, byte(op)<<3|1) }

// doMem computes dst op memory.
func (a *Asm) doMem(op Op, dst Reg, m Mem) { a.rm(true, dst, m, byte(op)<<3|3) }

// doConst computes dst op a constant that Fits.
func (a *Asm) doConst(op Op, dst Reg, v uint64) {
	if v == uint64(int64(int8(v))) {
		a.rr(true, Reg(op), dst, 0x83)
		a.emit(byte(v))
		return
	}
	a.rr(true, Reg(op), dst, 0x81)
	a.imm32(int32(v))
}

// memConst computes memory op a constant that Fits.
func (a *Asm) memConst(op Op, m Mem, v uint64) {
	if v == uint64(int64(int8(v))) {
		a.rm(true, Reg(op), m, 0x83)
		a.emit(byte(v))
		return
	}
	a.rm(true, Reg(op), m, 0x81)
	a.imm32(int32(v))
}

// memDo computes memory op src.
func (a *Asm) memDo(op Op, m Mem, src Reg) { a.rm(true, src, m, byte(op)<<3|1) }

// cmpByte compares a byte in memory with a constant.
func (a *Asm) cmpByte(m Mem, v byte) {
	a.rm(false, Reg(Cmp), m, 0x80)
	a.emit(v)
}

// test sets the flags from dst and src.
func (a *Asm) test(dst, src Reg) { a.rr(true, src, dst, 0x85) }

// mul computes the lower half of dst · src.
func (a *Asm) mul(dst, src Reg) { a.rr(true, dst, src, 0x0f, 0xaf) }

// mulMem computes the lower half of dst · memory.
func (a *Asm) mulMem(dst Reg, m Mem) { a.rm(true, dst, m, 0x0f, 0xaf) }

// mulConst computes the lower half of src · a constant that Fits.
func (a *Asm) mulConst(dst, src Reg, v uint64) {
	a.rr(true, dst, src, 0x69)
	a.imm32(int32(v))
}

// div divides DX:AX by src: AX is the quotient, DX the remainder.
func (a *Asm) div(src Reg) { a.rr(true, 6, src, 0xf7) }

// not computes ^dst.
func (a *Asm) not(dst Reg) { a.rr(true, 2, dst, 0xf7) }

// shiftConst shifts by n < 64 bits.
func (a *Asm) shiftConst(op Shift, dst Reg, n byte) {
	if n != 0 {
		a.rr(true, Reg(op), dst, 0xc1)
		a.emit(n)
	}
}

// shiftCX shifts by the lowest six bits of CX.
func (a *Asm) shiftCX(op Shift, dst Reg) { a.rr(true, Reg(op), dst, 0xd3) }

// swap reverses the lowest 2, 4 or 8 bytes of a register; the rest must be
// zero.
func (a *Asm) swap(dst Reg, bytes int) {
	switch bytes {
	case 2:
		a.emit(0x66)
		a.rr(false, 0, dst, 0xc1) // rotate left by 8
		a.emit(8)
	case 4:
		a.emit(rex(false, 0, 0, dst), 0x0f, 0xc8|byte(dst&7))
	case 8:
		a.emit(rex(true, 0, 0, dst), 0x0f, 0xc8|byte(dst&7))
	}
}

// setIf sets dst to 1 if the condition holds, else to 0. It changes no flags.
func (a *Asm) setIf(c Cond, dst Reg) {
	a.rr(false, 0, dst, 0x0f, 0x90|byte(c))
	a.rr(false, dst, dst, 0x0f, 0xb6)
}

// jump jumps to a label.
func (a *Asm) jump(l Label) {
	a.emit(0xe9)
	a.jumps = append(a.jumps, jump{len(a.code), l})
	a.imm32(0)
}

// jumpIf jumps to a label if the condition holds.
func (a *Asm) jumpIf(c Cond, l Label) {
	a.emit(0x0f, 0x80|byte(c))
	a.jumps = append(a.jumps, jump{len(a.code), l})
	a.imm32(0)
}

// jumpTo jumps to the address in memory.
func (a *Asm) jumpTo(m Mem) { a.rm(false, 4, m, 0xff) }

// ret returns AX to Go.
func (a *Asm) ret() { a.emit(0xc3) }

// low32 keeps the lowest 32 bits of a register.
func (a *Asm) low32(dst Reg) { a.rr(false, dst, dst, 0x89) }

// low8 sets dst to the lowest byte of src.
func (a *Asm) low8(dst, src Reg) { a.rr(false, dst, src, 0x0f, 0xb6) }
