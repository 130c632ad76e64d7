package code

import (
	"github.com/p4lb/p4lb/internal/bmv2"
	"github.com/p4lb/p4lb/internal/dataplane/asm"
	"github.com/p4lb/p4lb/internal/dataplane/num"
	"github.com/p4lb/p4lb/internal/dataplane/vector"
)

// A Tree is an expression to be compiled; the code computes its low 64 bits. The
// closures use the same value v. The interval of v defines the meaning of
// operations in both engines.
type Tree struct {
	op    treeOp
	v     vector.Value
	Off   int    // offset of a word in the vector or the arguments
	bits  uint64 // a constant, the amount of a shift, or for treeExtend the distance of the sign bit
	a, b  *Tree
	cond  *Branch
	depth int // number of registers needed
}

type treeOp byte

const (
	treeConst  treeOp = iota
	treeWord          // a word of the vector
	treeArg           // an argument of the running action
	treeAdd           // from here on, single instructions
	treeSub           //
	treeAnd           //
	treeOr            //
	treeXor           //
	treeMul           //
	treeDiv           // division by zero gives zero
	treeMod           //
	treeShl           // shifts by 64 or more give zero
	treeShr           //
	treeSar           // shifts by 64 or more give the sign
	treeNot           //
	treeExtend        // sign-extends a number of 64-bits bits
	treeTest          // 1 or 0
	treeChoose        // cond ? a : b
)

var instructions = map[treeOp]asm.Op{treeAdd: asm.Add, treeSub: asm.Sub, treeAnd: asm.And, treeOr: asm.Or, treeXor: asm.Xor}

// Tree returns the tree of an expression, or nil if code cannot compute it.
func (k *Writer) Tree(e *bmv2.Expr) *Tree {
	t := k.bareTree(e)
	if t == nil {
		return nil
	}
	t.depth = t.registers()
	if t.depth > len(Pool) {
		return nil
	}
	return t
}

func (k *Writer) bareTree(e *bmv2.Expr) *Tree {
	if e = e.Unwrap(); e == nil {
		return nil
	}
	switch e.Type {
	case bmv2.TypeField:
		f, err := k.FieldRef(e)
		if err != nil || f.VarLen {
			return nil
		}
		return &Tree{op: treeWord, v: vector.FieldValue(f), Off: f.Off}
	case bmv2.TypeHexstr, bmv2.TypeInt, bmv2.TypeLocal, bmv2.TypeRuntimeData:
		v, err := k.Number(e)
		if err != nil {
			return nil
		}
		return k.Leaf(v)
	case bmv2.TypeExpression:
		return k.operationTree(e)
	}
	return nil
}

// Leaf returns the tree of a value that is not an operation.
func (k *Writer) Leaf(v vector.Value) *Tree {
	switch v.Kind {
	case vector.ConstKind:
		return &Tree{op: treeConst, v: v, bits: v.Bits}
	case vector.WordKind:
		return &Tree{op: treeWord, v: v, Off: v.Off}
	case vector.ArgKind:
		if k.InPlace {
			return &Tree{op: treeConst, v: v, bits: k.Known[v.Off]}
		}
		return &Tree{op: treeArg, v: v, Off: v.Off}
	}
	return nil
}

func (k *Writer) operationTree(e *bmv2.Expr) *Tree {
	switch e.Op {
	case "b2d":
		b := k.Condition(e.Right)
		if b == nil {
			return nil
		}
		return &Tree{op: treeTest, v: vector.Unsigned64(1, nil), cond: b}
	case "?":
		cond, a, b := k.Condition(e.Cond), k.Tree(e.Left), k.Tree(e.Right)
		if cond == nil || a == nil || b == nil {
			return nil
		}
		return &Tree{op: treeChoose, v: vector.Choose(nil, a.v, b.v), cond: cond, a: a, b: b}
	case "access_field":
		pl, err := k.ElementField(e)
		if err != nil || pl.Base != nil {
			return nil
		}
		return &Tree{op: treeWord, v: vector.FieldValue(pl.Field), Off: pl.Field.Off}
	case "last_stack_index", "size_stack":
		next, err := k.NextOf(e.Right)
		if err != nil {
			return nil
		}
		count := &Tree{op: treeWord, v: vector.Unsigned64(64, nil), Off: next, depth: 1}
		if e.Op == "size_stack" {
			return count
		}
		return &Tree{op: treeSub, v: vector.Unsigned64(64, nil), a: count, b: &Tree{op: treeConst, bits: 1, depth: 1}}
	}
	b := k.Tree(e.Right)
	if b == nil {
		return nil
	}
	if e.Left == nil {
		v, err := vector.UnaryOp(e.Op, b.v)
		switch {
		case err != nil:
			return nil
		case e.Op == "~":
			return &Tree{op: treeNot, v: v, a: b}
		case e.Op == "-":
			return &Tree{op: treeSub, v: v, a: &Tree{op: treeConst, depth: 1}, b: b}
		}
		return b
	}
	a := k.Tree(e.Left)
	if a == nil {
		return nil
	}
	return binaryTree(e.Op, a, b)
}

// binaries are the operations with two operands that have the same meaning for
// all numbers.
var binaries = map[string]treeOp{
	"+": treeAdd, "-": treeSub, "*": treeMul, "/": treeDiv, "%": treeMod, "&": treeAnd, "|": treeOr, "^": treeXor, "<<": treeShl,
}

func binaryTree(op string, a, b *Tree) *Tree {
	v, err := vector.BinaryOp(op, a.v, b.v)
	if err != nil {
		return nil
	}
	t := &Tree{op: binaries[op], v: v, a: a, b: b}
	switch op {
	case ">>":
		switch {
		case a.v.FitsUnsigned():
			t.op = treeShr
		case a.v.FitsSigned():
			t.op = treeSar
		default:
			return nil
		}
	case "two_comp_mod":
		width := b.bits
		if width >= 64 {
			return &Tree{op: a.op, v: v, Off: a.Off, bits: a.bits, a: a.a, b: a.b, cond: a.cond}
		}
		return &Tree{op: treeExtend, v: v, a: a, bits: 64 - width}
	}
	if t.op == treeConst { // the operation is not supported
		return nil
	}
	if t.commutes() && (b.depth > a.depth || a.op == treeConst) {
		t.a, t.b = b, a
	}
	return t
}

func (t *Tree) commutes() bool {
	switch t.op {
	case treeAdd, treeMul, treeAnd, treeOr, treeXor:
		return true
	}
	return false
}

// operand reports whether an instruction can have t as its second operand.
func (t *Tree) operand() bool {
	return t.op == treeWord || t.op == treeArg || t.op == treeConst && asm.Fits(t.bits)
}

// registers returns the number of registers needed to compute t.
func (t *Tree) registers() int {
	switch t.op {
	case treeConst, treeWord, treeArg:
		return 1
	case treeNot, treeExtend:
		return t.a.depth
	case treeTest:
		return max(1, t.cond.registers())
	case treeChoose:
		return max(t.cond.registers(), t.a.depth, t.b.depth)
	}
	if t.b.operand() && t.op != treeDiv && t.op != treeMod {
		return t.a.depth
	}
	return max(t.a.depth, t.b.depth+1)
}

// Eval computes t into register d of the pool. It may overwrite later registers.
func (k *Writer) Eval(t *Tree, d int) {
	r := Pool[d]
	switch t.op {
	case treeConst:
		k.Set(r, t.bits)
	case treeWord:
		k.Load(r, Word(t.Off))
	case treeArg:
		k.Load(r, asm.At(ArgData, 8*t.Off))
	case treeNot:
		k.Eval(t.a, d)
		k.Not(r)
	case treeExtend:
		k.Eval(t.a, d)
		k.ShiftConst(asm.Shl, r, byte(t.bits))
		k.ShiftConst(asm.Sar, r, byte(t.bits))
	case treeTest:
		k.evalTest(t.cond, d)
	case treeChoose:
		no, end := k.NewLabel(), k.NewLabel()
		k.Branch(t.cond, d, no, false)
		k.Eval(t.a, d)
		k.Jump(end)
		k.Bind(no)
		k.Eval(t.b, d)
		k.Bind(end)
	default:
		k.Eval(t.a, d)
		k.evalBinary(t, d)
	}
}

// evalBinary computes an operation whose first operand is in its register.
func (k *Writer) evalBinary(t *Tree, d int) {
	r, b := Pool[d], t.b
	switch t.op {
	case treeShl, treeShr, treeSar:
		k.evalShift(t, d)
		return
	case treeDiv, treeMod:
		k.Eval(b, d+1)
		// A division by zero gives zero.
		by := Pool[d+1]
		end := k.NewLabel()
		k.Move(asm.AX, r)
		k.Set(r, 0)
		k.Test(by, by)
		k.JumpIf(asm.Equal, end)
		k.Set(asm.DX, 0)
		k.Div(by)
		if t.op == treeDiv {
			k.Move(r, asm.AX)
		} else {
			k.Move(r, asm.DX)
		}
		k.Bind(end)
		return
	case treeMul:
		switch {
		case b.op == treeConst && asm.Fits(b.bits):
			k.MulConst(r, r, b.bits)
		case b.op == treeWord:
			k.MulMem(r, Word(b.Off))
		case b.op == treeArg:
			k.MulMem(r, asm.At(ArgData, 8*b.Off))
		default:
			k.Eval(b, d+1)
			k.Mul(r, Pool[d+1])
		}
		return
	}
	k.do(instructions[t.op], d, b)
}

// do computes the register d op b.
func (k *Writer) do(op asm.Op, d int, b *Tree) {
	r := Pool[d]
	switch {
	case b.op == treeConst && asm.Fits(b.bits):
		k.DoConst(op, r, b.bits)
	case b.op == treeWord:
		k.DoMem(op, r, Word(b.Off))
	case b.op == treeArg:
		k.DoMem(op, r, asm.At(ArgData, 8*b.Off))
	default:
		k.Eval(b, d+1)
		k.Do(op, r, Pool[d+1])
	}
}

var shifts = map[treeOp]asm.Shift{treeShl: asm.Shl, treeShr: asm.Shr, treeSar: asm.Sar}

// evalShift shifts the register d by the low 32 bits of t.b.
func (k *Writer) evalShift(t *Tree, d int) {
	r, op := Pool[d], shifts[t.op]
	if t.b.op == treeConst {
		switch n := uint32(t.b.bits); {
		case n < 64:
			k.ShiftConst(op, r, byte(n))
		case t.op == treeSar:
			k.ShiftConst(op, r, 63)
		default:
			k.Set(r, 0)
		}
		return
	}
	if t.b.operand() {
		switch t.b.op {
		case treeWord:
			k.Load(asm.CX, Word(t.b.Off))
		case treeArg:
			k.Load(asm.CX, asm.At(ArgData, 8*t.b.Off))
		default:
			k.Set(asm.CX, t.b.bits)
		}
	} else {
		k.Eval(t.b, d+1)
		k.Move(asm.CX, Pool[d+1])
	}
	k.Low32(asm.CX)
	near, end := k.NewLabel(), k.NewLabel()
	k.DoConst(asm.Cmp, asm.CX, 64)
	k.JumpIf(asm.Below, near)
	if t.op == treeSar {
		k.ShiftConst(op, r, 63)
	} else {
		k.Set(r, 0)
	}
	k.Jump(end)
	k.Bind(near)
	k.ShiftCX(op, r)
	k.Bind(end)
}

// Mask clears the bits of a register outside a contiguous mask.
func (k *Writer) Mask(r asm.Reg, m uint64) {
	switch {
	case m == ^uint64(0):
	case m == 1<<32-1:
		k.Low32(r)
	case asm.Fits(m):
		k.DoConst(asm.And, r, m)
	default:
		k.Set(asm.AX, m)
		k.Do(asm.And, r, asm.AX)
	}
}

// LoadField loads a word of the vector, cut to a width.
func (k *Writer) LoadField(r asm.Reg, off, width int) {
	switch width {
	case 8, 16, 32, 64:
		k.LoadBytes(r, Word(off), width/8)
	default:
		k.Load(r, Word(off))
		k.Mask(r, num.Mask64(min(width, 64)))
	}
}

// A Branch is a condition to be compiled.
type Branch struct {
	op   branchOp
	a, b *Tree    // numbers to compare
	cond asm.Cond // condition of the comparison
	x, y *Branch
	off  int // word to test
}

// Not returns the opposite of b.
func (b *Branch) Not() *Branch { return &Branch{op: branchNot, x: b} }

type branchOp byte

const (
	branchNever branchOp = iota
	branchAlways
	branchCompare
	branchWord // the word at off is not zero
	branchNot
	branchAnd
	branchOr
)

// Condition returns the branch of an expression, or nil if machine code cannot
// evaluate it.
func (k *Writer) Condition(e *bmv2.Expr) *Branch {
	if e = e.Unwrap(); e == nil {
		return &Branch{op: branchNever}
	}
	if e.Type == bmv2.TypeBool {
		if e.Bool {
			return &Branch{op: branchAlways}
		}
		return &Branch{op: branchNever}
	}
	if e.Type != bmv2.TypeExpression {
		return nil
	}
	switch e.Op {
	case "d2b":
		return k.Comparison("!=", k.Tree(e.Right), k.Leaf(vector.ConstInt(0)))
	case "not":
		if x := k.Condition(e.Right); x != nil {
			return x.Not()
		}
	case "and", "or":
		x, y := k.Condition(e.Left), k.Condition(e.Right)
		if x == nil || y == nil {
			return nil
		}
		if e.Op == "and" {
			return &Branch{op: branchAnd, x: x, y: y}
		}
		return &Branch{op: branchOr, x: x, y: y}
	case "valid":
		r, err := k.Header(e.Right)
		switch {
		case err != nil || r.H == nil:
			return nil
		case r.H.Metadata:
			return &Branch{op: branchAlways}
		}
		return &Branch{op: branchWord, off: r.H.Valid()}
	case "==", "!=", "<", "<=", ">", ">=":
		if vector.KindOf(e.Left) == vector.NumberExpr && vector.KindOf(e.Right) == vector.NumberExpr {
			return k.Comparison(e.Op, k.Tree(e.Left), k.Tree(e.Right))
		}
	}
	return nil
}

var unsignedConds = map[string]asm.Cond{"==": asm.Equal, "!=": asm.NotEqual, "<": asm.Below, "<=": asm.BelowEqual, ">": asm.Above, ">=": asm.AboveEqual}
var signedConds = map[string]asm.Cond{"==": asm.Equal, "!=": asm.NotEqual, "<": asm.Less, "<=": asm.LessEqual, ">": asm.Greater, ">=": asm.GreaterEqual}

// Comparison returns the branch of a comparison, or nil if machine code cannot
// evaluate it.
func (k *Writer) Comparison(op string, a, b *Tree) *Branch {
	if a == nil || b == nil {
		return nil
	}
	if a.op == treeConst && b.op != treeConst {
		op, a, b = vector.Mirrored(op), b, a
	}
	c := &Branch{op: branchCompare, a: a, b: b}
	switch {
	case a.v.FitsUnsigned() && b.v.FitsUnsigned():
		c.cond = unsignedConds[op]
	case a.v.FitsSigned() && b.v.FitsSigned():
		c.cond = signedConds[op]
	default:
		return nil
	}
	if c.registers() > len(Pool) {
		return nil
	}
	return c
}

// registers returns the number of registers needed to evaluate b.
func (b *Branch) registers() int {
	switch b.op {
	case branchCompare:
		if b.b.operand() {
			return b.a.registers()
		}
		return max(b.a.registers(), b.b.registers()+1)
	case branchNot:
		return b.x.registers()
	case branchAnd, branchOr:
		return max(b.x.registers(), b.y.registers())
	}
	return 0
}

// Branch jumps to a label if b equals want. It may overwrite registers of the pool
// from d on.
func (k *Writer) Branch(b *Branch, d int, to asm.Label, want bool) {
	switch b.op {
	case branchNever, branchAlways:
		if (b.op == branchAlways) == want {
			k.Jump(to)
		}
	case branchWord:
		k.MemConst(asm.Cmp, Word(b.off), 0)
		k.jumpAs(asm.NotEqual, to, want)
	case branchCompare:
		k.compare(b, d)
		k.jumpAs(b.cond, to, want)
	case branchNot:
		k.Branch(b.x, d, to, !want)
	default:
		// "x and y" is false if x is false or y is false.
		if (b.op == branchOr) == want {
			k.Branch(b.x, d, to, want)
			k.Branch(b.y, d, to, want)
			return
		}
		past := k.NewLabel()
		k.Branch(b.x, d, past, !want)
		k.Branch(b.y, d, to, want)
		k.Bind(past)
	}
}

func (k *Writer) jumpAs(c asm.Cond, to asm.Label, want bool) {
	if !want {
		c = c.Not()
	}
	k.JumpIf(c, to)
}

// compare sets the flags from the operands of b.
func (k *Writer) compare(b *Branch, d int) {
	if b.a.op == treeWord && b.b.op == treeConst && asm.Fits(b.b.bits) {
		k.MemConst(asm.Cmp, Word(b.a.Off), b.b.bits)
		return
	}
	k.Eval(b.a, d)
	k.do(asm.Cmp, d, b.b)
}

// evalTest computes 1 or 0 into the register d of the pool.
func (k *Writer) evalTest(b *Branch, d int) {
	if b.op == branchCompare {
		k.compare(b, d)
		k.SetIf(b.cond, Pool[d])
		return
	}
	no, end := k.NewLabel(), k.NewLabel()
	k.Branch(b, d, no, false)
	k.Set(Pool[d], 1)
	k.Jump(end)
	k.Bind(no)
	k.Set(Pool[d], 0)
	k.Bind(end)
}
