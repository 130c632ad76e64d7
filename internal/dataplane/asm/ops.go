package asm

// The instructions. Each method checks its instruction with the verifier (see
// verify.go) and appends its encoding for this processor.

// Move copies a register, which may hold an address.
func (a *Asm) Move(dst, src Reg) {
	a.write(dst, a.read(src))
	a.move(dst, src)
}

// Set loads a constant into a register.
func (a *Asm) Set(dst Reg, v uint64) {
	a.clobber(dst) // this makes the flags undefined, too
	a.write(dst, upTo(v))
	a.set(dst, v)
}

// Load reads 8 bytes.
func (a *Asm) Load(dst Reg, m Mem) { a.LoadBytes(dst, m, 8) }

// LoadBytes reads 1, 2, 4 or 8 bytes and sets the rest of the register to zero.
func (a *Asm) LoadBytes(dst Reg, m Mem, bytes int) {
	a.access(m, bytes, false)
	a.write(dst, upTo(1<<(8*bytes)-1))
	a.loadBytes(dst, m, bytes)
}

// LoadAddress reads an address from memory that only Go writes. The caller
// vouches that size bytes from that address on may be read and written.
func (a *Asm) LoadAddress(dst Reg, m Mem, size int) {
	a.accessAddress(m)
	a.write(dst, address(size))
	a.load(dst, m)
}

// AddAddress adds an address from memory that only Go writes to a number. The
// caller vouches that size bytes from the sum on may be read and written.
func (a *Asm) AddAddress(dst Reg, m Mem, size int) {
	a.number(dst)
	a.accessAddress(m)
	a.write(dst, address(size))
	a.doMem(Add, dst, m)
}

// Store writes a register of 8 bytes.
func (a *Asm) Store(m Mem, src Reg) { a.StoreBytes(m, src, 8) }

// StoreBytes writes the lowest 1, 2, 4 or 8 bytes of a register.
func (a *Asm) StoreBytes(m Mem, src Reg, bytes int) {
	a.number(src)
	a.access(m, bytes, true)
	a.storeBytes(m, src, bytes)
}

// StoreConst writes a constant that Fits as 8 bytes.
func (a *Asm) StoreConst(m Mem, v uint64) {
	a.immediate(v)
	a.access(m, 8, true)
	a.storeConst(m, v)
}

// StoreByte writes one byte.
func (a *Asm) StoreByte(m Mem, v byte) {
	a.access(m, 1, true)
	a.storeByte(m, v)
}

// Do computes dst op src.
func (a *Asm) Do(op Op, dst, src Reg) {
	a.number(src)
	a.operate(op, dst)
	a.do(op, dst, src)
}

// DoMem computes dst op memory.
func (a *Asm) DoMem(op Op, dst Reg, m Mem) {
	a.access(m, 8, false)
	a.operate(op, dst)
	a.doMem(op, dst, m)
}

// DoConst computes dst op a constant that Fits. Add also moves an address.
func (a *Asm) DoConst(op Op, dst Reg, v uint64) {
	a.immediate(v)
	a.operateConst(op, dst, v)
	a.doConst(op, dst, v)
}

// MemConst computes memory op a constant that Fits.
func (a *Asm) MemConst(op Op, m Mem, v uint64) {
	a.immediate(v)
	a.access(m, 8, op != Cmp)
	a.setFlags(op)
	a.memConst(op, m, v)
}

// MemDo computes memory op src.
func (a *Asm) MemDo(op Op, m Mem, src Reg) {
	a.number(src)
	a.access(m, 8, op != Cmp)
	a.setFlags(op)
	a.memDo(op, m, src)
}

// CmpByte compares a byte in memory with a constant.
func (a *Asm) CmpByte(m Mem, v byte) {
	a.access(m, 1, false)
	a.setFlags(Cmp)
	a.cmpByte(m, v)
}

// Test sets the flags from dst and src.
func (a *Asm) Test(dst, src Reg) {
	a.number(dst)
	a.number(src)
	a.setFlags(Cmp)
	a.test(dst, src)
}

// Mul computes the lower half of dst · src.
func (a *Asm) Mul(dst, src Reg) {
	a.number(src)
	a.operate(Xor, dst)
	a.mul(dst, src)
}

// MulMem computes the lower half of dst · memory.
func (a *Asm) MulMem(dst Reg, m Mem) {
	a.access(m, 8, false)
	a.operate(Xor, dst)
	a.mulMem(dst, m)
}

// MulConst computes the lower half of src · a constant that Fits.
func (a *Asm) MulConst(dst, src Reg, v uint64) {
	a.immediate(v)
	a.number(src)
	a.clobber(dst)
	a.mulConst(dst, src, v)
}

// Div divides AX by src. DX must be 0. AX is the quotient, DX the remainder.
func (a *Asm) Div(src Reg) {
	a.number(src)
	a.number(AX)
	a.number(DX)
	a.clobber(AX)
	a.clobber(DX)
	a.div(src)
}

// Not computes ^dst.
func (a *Asm) Not(dst Reg) {
	a.operate(Xor, dst)
	a.not(dst)
}

// ShiftConst shifts by n < 64 bits.
func (a *Asm) ShiftConst(op Shift, dst Reg, n byte) {
	a.shifted(op, dst, n)
	a.shiftConst(op, dst, n)
}

// ShiftCX shifts by the lowest six bits of CX.
func (a *Asm) ShiftCX(op Shift, dst Reg) {
	a.number(CX)
	a.operate(Xor, dst)
	a.shiftCX(op, dst)
}

// Swap reverses the lowest 2, 4 or 8 bytes of a register. The rest must be zero.
func (a *Asm) Swap(dst Reg, bytes int) {
	a.operate(Xor, dst)
	a.swap(dst, bytes)
}

// SetIf sets dst to 1 if the condition holds, else to 0. It changes no flags.
func (a *Asm) SetIf(c Cond, dst Reg) {
	a.needFlags()
	a.write(dst, upTo(1))
	a.setIf(c, dst)
}

// Jump jumps to a label.
func (a *Asm) Jump(l Label) {
	a.leave(l)
	a.dead = true
	a.jump(l)
}

// JumpIf jumps to a label if the condition holds.
func (a *Asm) JumpIf(c Cond, l Label) {
	a.needFlags()
	a.leave(l)
	a.notTaken(c)
	a.jumpIf(c, l)
}

// JumpTo jumps to an address in memory that only Go writes.
func (a *Asm) JumpTo(m Mem) {
	a.accessAddress(m)
	a.dead = true
	a.jumpTo(m)
}

// Return returns AX to Go.
func (a *Asm) Return() {
	a.number(AX)
	a.dead = true
	a.ret()
}

// Low32 keeps the lowest 32 bits of a register.
func (a *Asm) Low32(dst Reg) {
	a.write(dst, upTo(min(a.number(dst), 1<<32-1)))
	a.low32(dst)
}

// Low8 sets dst to the lowest byte of src.
func (a *Asm) Low8(dst, src Reg) {
	a.write(dst, upTo(min(a.number(src), 0xff)))
	a.low8(dst, src)
}
