package code

import (
	"math/big"
	"unsafe"

	"github.com/p4lb/p4lb/internal/bmv2"
	"github.com/p4lb/p4lb/internal/dataplane/asm"
	"github.com/p4lb/p4lb/internal/dataplane/cell"
	"github.com/p4lb/p4lb/internal/dataplane/num"
	"github.com/p4lb/p4lb/internal/dataplane/vector"
)

// Result writes an operation of P4_14, whose first argument is its destination.
func (k *Writer) Result(op string, dst, left, right *bmv2.Expr) bool {
	a, b := k.Tree(left), k.Tree(right)
	if a == nil || b == nil {
		return false
	}
	t := binaryTree(op, a, b)
	if t == nil {
		return false
	}
	if t.depth = t.registers(); t.depth > len(Pool) {
		return false
	}
	return k.Assignment(dst, t)
}

// Assignment writes the assignment of a number to a field.
func (k *Writer) Assignment(dst *bmv2.Expr, t *Tree) bool {
	if t == nil {
		return false
	}
	if e := dst.Unwrap(); e == nil || e.Type == bmv2.TypeRegister {
		return false
	}
	pl, err := k.Place(dst)
	if err != nil || pl.Base != nil || pl.Field.VarLen || pl.Field.Width > 64 {
		return false
	}
	return k.storeField(pl.Field, t)
}

// storeField stores a number in a field of at most 64 bits, truncated as the
// closures do it.
func (k *Writer) storeField(f vector.Field, t *Tree) bool {
	m := num.Mask64(f.Width)
	if f.Signed {
		low := num.LeastSigned(f.Width)
		fits := t.v.FitsSigned() && t.v.Lo.Cmp(low) >= 0 && t.v.Hi.Cmp(num.Most(f.Width)) <= 0
		switch {
		case fits:
			m = ^uint64(0)
		case f.Width == 64 || !t.v.FitsSigned():
			t = &Tree{op: treeExtend, a: t, bits: uint64(64 - f.Width)}
			m = ^uint64(0)
		default:
			return false
		}
	} else {
		if t.op == treeAnd && t.b.op == treeConst && t.b.bits&m == m {
			t = t.a
		}
		if t.v.FitsUnsigned() && t.v.Hi.Cmp(new(big.Int).SetUint64(m)) <= 0 {
			m = ^uint64(0)
		}
	}
	if t.op == treeConst && asm.Fits(t.bits&m) {
		k.StoreConst(Word(f.Off), t.bits&m)
		return true
	}
	k.Eval(t, 0)
	k.Mask(Pool[0], m)
	k.Store(Word(f.Off), Pool[0])
	return true
}

// cell computes an index of an array with size cells into the first register of the
// pool, and jumps to outside if the index is out of range.
func (k *Writer) cell(index *Tree, size int, outside asm.Label) {
	r := Pool[0]
	k.Eval(index, 0)
	k.Low32(r)
	k.DoConst(asm.Cmp, r, uint64(size))
	k.JumpIf(asm.AboveEqual, outside)
}

// cells loads the address of an array's cells into AX.
//
// Hostile input: none. The address and the size are those of the slice.
func cells[T any](k *Writer, list []T) {
	k.ref(asm.AX, unsafe.Pointer(&list[0]), len(list)*int(unsafe.Sizeof(list[0])))
}

// ReadCell writes the primitive register_read.
func (k *Writer) ReadCell(r *cell.Register, to, at *bmv2.Expr) bool {
	dst, err := k.Place(to)
	if err != nil || dst.Base != nil || dst.Field.Signed || dst.Field.VarLen || dst.Field.Width > 64 {
		return false
	}
	index := k.Tree(at)
	if r == nil || r.Words != 1 || r.Size == 0 || index == nil {
		return false
	}
	skip := k.NewLabel()
	k.cell(index, r.Size, skip)
	cells(k, r.Cells)
	k.Load(Pool[0], asm.Element(asm.AX, Pool[0], 8))
	if dst.Field.Width < r.Width {
		k.Mask(Pool[0], num.Mask64(dst.Field.Width))
	}
	k.Store(Word(dst.Field.Off), Pool[0])
	k.Bind(skip)
	return true
}

// WriteCell writes the primitive register_write.
func (k *Writer) WriteCell(r *cell.Register, at, what *bmv2.Expr) bool {
	index, v := k.Tree(at), k.Tree(what)
	if r == nil || r.Words != 1 || r.Size == 0 || index == nil || v == nil || v.depth >= len(Pool) {
		return false
	}
	skip := k.NewLabel()
	k.cell(index, r.Size, skip)
	k.Eval(v, 1)
	// Without a mask the register could hold more than its cell.
	if !v.v.FitsUnsigned() || v.v.Hi.Cmp(new(big.Int).SetUint64(r.Mask)) > 0 {
		k.Mask(Pool[1], r.Mask)
	}
	cells(k, r.Cells)
	k.Store(asm.Element(asm.AX, Pool[0], 8), Pool[1])
	k.Bind(skip)
	return true
}

// CountPacket writes the primitive count.
func (k *Writer) CountPacket(c *cell.Counters, at *bmv2.Expr) bool {
	index := k.Tree(at)
	if c == nil || index == nil || c.Late != nil {
		return false
	}
	if len(c.Cells) == 0 {
		return true
	}
	skip := k.NewLabel()
	k.cell(index, len(c.Cells), skip)
	cells(k, c.Cells)
	k.ShiftConst(asm.Shl, Pool[0], 1) // a Count has two words
	packets := asm.Element(asm.AX, Pool[0], 8)
	bytes := packets
	packets.Disp = int32(unsafe.Offsetof(cell.Count{}.Packets))
	bytes.Disp = int32(unsafe.Offsetof(cell.Count{}.Bytes))
	k.MemConst(asm.Add, packets, 1)
	k.Load(asm.CX, stateIngress)
	k.MemDo(asm.Add, bytes, asm.CX)
	k.Bind(skip)
	return true
}

// OnFixed calls do for a header that is known at compile time and has a fixed
// length.
func (k *Writer) OnFixed(e *bmv2.Expr, do func(*vector.Header)) bool {
	r, err := k.Header(e)
	if err != nil || r.H == nil || r.H.Metadata || r.H.Type.VarLen >= 0 {
		return false
	}
	do(r.H)
	return true
}

// SetValid makes h valid and the other members of its union invalid.
func (k *Writer) SetValid(h *vector.Header) {
	if h.Union != nil {
		for _, m := range h.Union.Members {
			k.StoreConst(Word(m.Base), 0)
		}
	}
	k.StoreConst(Word(h.Base), 1)
}

// MakeValid writes the primitive add_header.
func (k *Writer) MakeValid(h *vector.Header) {
	skip := k.NewLabel()
	k.MemConst(asm.Cmp, Word(h.Base), 0)
	k.JumpIf(asm.NotEqual, skip)
	k.Set(asm.AX, 0)
	for i := range h.Type.Size {
		k.Store(Word(h.Base+i), asm.AX)
	}
	k.SetValid(h)
	k.MemConst(asm.Add, stateLength, uint64(h.Type.Bits/8))
	k.Bind(skip)
}

// MakeInvalid writes the primitive remove_header.
func (k *Writer) MakeInvalid(h *vector.Header) {
	skip := k.NewLabel()
	k.MemConst(asm.Cmp, Word(h.Base), 0)
	k.JumpIf(asm.Equal, skip)
	k.MemConst(asm.Sub, stateLength, uint64(h.Type.Bits/8))
	k.StoreConst(Word(h.Base), 0)
	k.Bind(skip)
}

// maxCopied is the largest number of words that code copies one by one.
const maxCopied = 32

// CopyHeader writes the primitive assign_header.
func (k *Writer) CopyHeader(dst, src *bmv2.Expr) bool {
	d, err := k.Header(dst)
	if err != nil || d.H == nil || d.H.Metadata || d.H.Type.Size > maxCopied {
		return false
	}
	s, err := k.Header(src)
	if err != nil || s.H == nil {
		return false
	}
	end := k.NewLabel()
	if !s.H.Metadata {
		valid := k.NewLabel()
		k.MemConst(asm.Cmp, Word(s.H.Base), 0)
		k.JumpIf(asm.NotEqual, valid)
		k.StoreConst(Word(d.H.Base), 0)
		k.Jump(end)
		k.Bind(valid)
	}
	k.SetValid(d.H)
	for i := 1; i < d.H.Type.Size; i++ {
		k.Load(asm.AX, Word(s.H.Base+i))
		k.Store(Word(d.H.Base+i), asm.AX)
	}
	k.Bind(end)
	return true
}
