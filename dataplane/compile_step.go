package dataplane

import (
	"math/big"
	"unsafe"

	"github.com/p4lb/p4lb/bmv2"
	"github.com/p4lb/p4lb/dataplane/asm"
	"github.com/p4lb/p4lb/dataplane/num"
	"github.com/p4lb/p4lb/dataplane/vector"
)

// body writes the primitives of an action.
func (k *compiler) body(a *action) {
	k.primitives(a, k.sources[a].Primitives)
}

func (k *compiler) primitives(a *action, list []*bmv2.Primitive) {
	k.Params, k.exits = a.params, false
	for _, p := range list {
		switch p.Op {
		case "exit", "assert", "assume":
			k.exits = true
		}
	}
	if a.jumpsBack() {
		k.call(func(p *vector.State) { a.run(p, p.Args) })
		return
	}
	labels := make([]asm.Label, len(list)+1)
	for i := range labels {
		labels[i] = k.NewLabel()
	}
	for i, p := range list {
		k.Bind(labels[i])
		switch in := a.code[i]; {
		case in.do != nil:
			if !k.primitive(p) {
				k.call(in.do)
			}
		case in.when == nil:
			k.Jump(labels[in.target])
		default:
			k.jumpIfZero(p.Parameters[0], in, labels[in.target])
		}
	}
	k.Bind(labels[len(list)])
}

// jumpsBack reports whether an action can run in circles: then its steps have to
// be counted.
func (a *action) jumpsBack() bool {
	for i, in := range a.code {
		if in.do == nil && in.target <= i {
			return true
		}
	}
	return false
}

func (k *compiler) jumpIfZero(e *bmv2.Expr, in instr, to asm.Label) {
	var b *branch
	if u := e.Unwrap(); u != nil && u.Op == "b2d" {
		if x := k.condition(u.Right); x != nil {
			b = &branch{op: branchNot, x: x}
		}
	} else {
		b = k.comparison("==", k.tree(e), k.leaf(vector.ConstInt(0)))
	}
	if b == nil {
		k.out(callout{test: in.when, args: k.known, inside: k.inPlace}, to)
		k.loadArgs()
		return
	}
	k.branch(b, 0, to, true)
}

// primitive writes a primitive, if that is one of the common ones.
func (k *compiler) primitive(p *bmv2.Primitive) bool {
	a := p.Parameters
	switch p.Op {
	case "assign", "modify_field", "set":
		return k.assignment(a[0], k.tree(a[1]))
	case "add_to_field":
		return k.result("+", a[0], a[0], a[1])
	case "subtract_from_field":
		return k.result("-", a[0], a[0], a[1])
	case "add":
		return k.result("+", a[0], a[1], a[2])
	case "subtract":
		return k.result("-", a[0], a[1], a[2])
	case "bit_xor":
		return k.result("^", a[0], a[1], a[2])
	case "bit_or":
		return k.result("|", a[0], a[1], a[2])
	case "bit_and":
		return k.result("&", a[0], a[1], a[2])
	case "shift_left":
		return k.result("<<", a[0], a[1], a[2])
	case "shift_right":
		return k.result(">>", a[0], a[1], a[2])
	case "register_read":
		return k.readCell(a)
	case "register_write":
		return k.writeCellOf(a)
	case "count":
		return k.countPacket(a)
	case "assign_header", "copy_header":
		return k.copyHeader(a[0], a[1])
	case "add_header":
		return k.onFixed(a[0], k.makeValid)
	case "add_header_fast":
		return k.onFixed(a[0], k.setValid)
	case "remove_header":
		return k.onFixed(a[0], k.makeInvalid)
	case "mark_to_drop":
		return k.dropMark(a[0])
	case "drop":
		k.storeStd(&k.sw.std.egressSpec, uint64(k.sw.opts.DropPort))
		k.storeStd(&k.sw.std.mcastGrp, 0)
		return true
	case "modify_field_with_hash_based_offset":
		return k.hashInto(a)
	case "exit":
		k.StoreByte(packetExit, 1)
		return true
	case "no_op":
		return true
	}
	return k.request(p)
}

// result writes an operation of P4_14's kind, with its result's place first.
func (k *compiler) result(op string, dst, left, right *bmv2.Expr) bool {
	a, b := k.tree(left), k.tree(right)
	if a == nil || b == nil {
		return false
	}
	t := binaryTree(op, a, b)
	if t == nil {
		return false
	}
	if t.depth = t.registers(); t.depth > len(pool) {
		return false
	}
	return k.assignment(dst, t)
}

// assignment stores a number in a field.
func (k *compiler) assignment(dst *bmv2.Expr, t *tree) bool {
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

// storeField stores a number in a field of at most 64 bits, cut as the closures
// do.
func (k *compiler) storeField(f vector.Field, t *tree) bool {
	m := num.Mask64(f.Width)
	if f.Signed {
		low := num.LeastSigned(f.Width)
		fits := t.v.FitsSigned() && t.v.Lo.Cmp(low) >= 0 && t.v.Hi.Cmp(num.Most(f.Width)) <= 0
		switch {
		case fits:
			m = ^uint64(0)
		case f.Width == 64 || !t.v.FitsSigned():
			t = &tree{op: treeExtend, a: t, bits: uint64(64 - f.Width)}
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
		k.StoreConst(word(f.Off), t.bits&m)
		return true
	}
	k.eval(t, 0)
	k.mask(pool[0], m)
	k.Store(word(f.Off), pool[0])
	return true
}

// storeStd stores a constant in a field of the switch's own.
func (k *compiler) storeStd(f *stdField, v uint64) {
	if !f.ok {
		return
	}
	k.Set(asm.AX, v&f.mask)
	k.Store(word(f.off), asm.AX)
}

// dropMark works on the header that it is given, not on the aliases.
func (k *compiler) dropMark(e *bmv2.Expr) bool {
	r, err := k.Header(e)
	if err != nil || r.H == nil {
		return false
	}
	spec, _ := r.H.Field("egress_spec")
	k.Set(asm.AX, uint64(k.sw.opts.DropPort)&num.Mask64(min(spec.Width, 64)))
	k.Store(word(spec.Off), asm.AX)
	if group, ok := r.H.Field("mcast_grp"); ok {
		k.StoreConst(word(group.Off), 0)
	}
	return true
}

// cell computes an index of an array into the register d of the pool, and jumps
// if it is outside; the array's address is in AX.
func (k *compiler) cell(index *tree, d, size int, first unsafe.Pointer, outside asm.Label) {
	r := pool[d]
	k.eval(index, d)
	k.Low32(r)
	k.DoConst(asm.Cmp, r, uint64(size))
	k.JumpIf(asm.AboveEqual, outside)
	k.ref(asm.AX, first)
}

// readCell writes register_read.
func (k *compiler) readCell(a []*bmv2.Expr) bool {
	dst, err := k.Place(a[0])
	if err != nil || dst.Base != nil || dst.Field.Signed || dst.Field.VarLen || dst.Field.Width > 64 {
		return false
	}
	r, index := k.sw.registers[a[1].Name], k.tree(a[2])
	if r == nil || r.Words != 1 || r.Size == 0 || index == nil {
		return false
	}
	skip := k.NewLabel()
	k.cell(index, 0, r.Size, unsafe.Pointer(&r.Cells[0]), skip)
	k.Load(pool[0], asm.Element(asm.AX, pool[0], 8))
	if dst.Field.Width < r.Width {
		k.mask(pool[0], num.Mask64(dst.Field.Width))
	}
	k.Store(word(dst.Field.Off), pool[0])
	k.Bind(skip)
	return true
}

// writeCellOf writes register_write.
func (k *compiler) writeCellOf(a []*bmv2.Expr) bool {
	r, index, v := k.sw.registers[a[0].Name], k.tree(a[1]), k.tree(a[2])
	if r == nil || r.Words != 1 || r.Size == 0 || index == nil || v == nil || v.depth >= len(pool) {
		return false
	}
	skip := k.NewLabel()
	k.cell(index, 0, r.Size, unsafe.Pointer(&r.Cells[0]), skip)
	k.eval(v, 1)
	k.maskUnless(pool[1], r.Mask, v)
	k.ref(asm.AX, unsafe.Pointer(&r.Cells[0]))
	k.Store(asm.Element(asm.AX, pool[0], 8), pool[1])
	k.Bind(skip)
	return true
}

// maskUnless cuts a register to a mask, if what it holds may be larger.
func (k *compiler) maskUnless(r asm.Reg, m uint64, t *tree) {
	if !t.v.FitsUnsigned() || t.v.Hi.Cmp(new(big.Int).SetUint64(m)) > 0 {
		k.mask(r, m)
	}
}

// countPacket writes count.
func (k *compiler) countPacket(a []*bmv2.Expr) bool {
	c, index := k.sw.counters[a[0].Name], k.tree(a[1])
	if c == nil || index == nil {
		return false
	}
	if len(c.Cells) == 0 {
		return true
	}
	skip := k.NewLabel()
	k.cell(index, 0, len(c.Cells), unsafe.Pointer(&c.Cells[0]), skip)
	k.ShiftConst(asm.Shl, pool[0], 4)
	k.Do(asm.Add, asm.AX, pool[0])
	k.addPacket(asm.AX)
	k.Bind(skip)
	return true
}

// addPacket counts the packet in the counter that a register points to.
func (k *compiler) addPacket(at asm.Reg) {
	k.MemConst(asm.Add, asm.At(at, int(unsafe.Offsetof(Count{}.Packets))), 1)
	k.Load(asm.CX, packetIngress)
	k.MemDo(asm.Add, asm.At(at, int(unsafe.Offsetof(Count{}.Bytes))), asm.CX)
}

// onFixed writes something for a header that is known and has a fixed length.
func (k *compiler) onFixed(e *bmv2.Expr, do func(*vector.Header)) bool {
	r, err := k.Header(e)
	if err != nil || r.H == nil || r.H.Metadata || r.H.Type.VarLen >= 0 {
		return false
	}
	do(r.H)
	return true
}

// setValid makes h valid, and the other members of its union invalid.
func (k *compiler) setValid(h *vector.Header) {
	if h.Union != nil {
		for _, m := range h.Union.Members {
			k.StoreConst(word(m.Base), 0)
		}
	}
	k.StoreConst(word(h.Base), 1)
}

// makeValid writes add_header.
func (k *compiler) makeValid(h *vector.Header) {
	skip := k.NewLabel()
	k.MemConst(asm.Cmp, word(h.Base), 0)
	k.JumpIf(asm.NotEqual, skip)
	k.Set(asm.AX, 0)
	for i := range h.Type.Size {
		k.Store(word(h.Base+i), asm.AX)
	}
	k.setValid(h)
	k.MemConst(asm.Add, packetLength, uint64(h.Type.Bits/8))
	k.Bind(skip)
}

// makeInvalid writes remove_header.
func (k *compiler) makeInvalid(h *vector.Header) {
	skip := k.NewLabel()
	k.MemConst(asm.Cmp, word(h.Base), 0)
	k.JumpIf(asm.Equal, skip)
	k.MemConst(asm.Sub, packetLength, uint64(h.Type.Bits/8))
	k.StoreConst(word(h.Base), 0)
	k.Bind(skip)
}

// maxCopied is the most words of a header that are copied one by one.
const maxCopied = 32

// copyHeader writes assign_header.
func (k *compiler) copyHeader(dst, src *bmv2.Expr) bool {
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
		k.MemConst(asm.Cmp, word(s.H.Base), 0)
		k.JumpIf(asm.NotEqual, valid)
		k.StoreConst(word(d.H.Base), 0)
		k.Jump(end)
		k.Bind(valid)
	}
	k.setValid(d.H)
	for i := 1; i < d.H.Type.Size; i++ {
		k.Load(asm.AX, word(s.H.Base+i))
		k.Store(word(d.H.Base+i), asm.AX)
	}
	k.Bind(end)
	return true
}

// request writes the primitives that ask the switch for something, by fields of
// the packet.
func (k *compiler) request(p *bmv2.Primitive) bool {
	var into []uintptr
	a := p.Parameters
	switch p.Op {
	case "clone_ingress_pkt_to_egress", "clone_egress_pkt_to_egress":
		into = []uintptr{unsafe.Offsetof(vector.State{}.CloneSession), unsafe.Offsetof(vector.State{}.CloneList)}
	case "resubmit":
		into = []uintptr{unsafe.Offsetof(vector.State{}.Resubmit)}
	case "recirculate":
		into = []uintptr{unsafe.Offsetof(vector.State{}.Recirculate)}
	case "generate_digest":
		a, into = a[1:], []uintptr{unsafe.Offsetof(vector.State{}.Digest)}
	default:
		return false
	}
	var trees []*tree
	for i := range into {
		t := k.tree(a[i])
		if t == nil {
			return false
		}
		trees = append(trees, t)
	}
	for i, t := range trees {
		k.eval(t, 0)
		k.StoreBytes(asm.At(packet, int(into[i])), pool[0], 2)
	}
	if len(into) == 2 {
		k.StoreByte(asm.At(packet, int(unsafe.Offsetof(vector.State{}.CloneOn))), 1)
	}
	return true
}
