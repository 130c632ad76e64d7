package program

import (
	"unsafe"

	"github.com/p4lb/p4lb/internal/bmv2"
	"github.com/p4lb/p4lb/internal/dataplane/asm"
	"github.com/p4lb/p4lb/internal/dataplane/code"
	"github.com/p4lb/p4lb/internal/dataplane/num"
	"github.com/p4lb/p4lb/internal/dataplane/vector"
)

// body writes the primitives of an action.
func (k *compiler) body(a *action) {
	k.primitives(a, k.sources[a].Primitives)
}

func (k *compiler) primitives(a *action, list []*bmv2.Primitive) {
	k.Params, k.exits = a.Params, false
	for _, p := range list {
		switch p.Op {
		case "exit", "assert", "assume":
			k.exits = true
		}
	}
	if a.jumpsBack() {
		k.call(fromActionLoop, func(p *vector.State) { a.run(p, p.Args) })
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
			k.toGo = func(from string) { k.call(from, in.do) }
			if k.leaves() || !k.primitive(p) {
				k.toGo(fromPrimitive + p.Op)
			}
		case in.when == nil:
			k.Jump(labels[in.target])
		default:
			k.jumpIfZero(p.Parameters[0], in, labels[in.target])
		}
	}
	k.Bind(labels[len(list)])
}

// jumpsBack reports whether an action has a loop. If so, its steps must be counted.
func (a *action) jumpsBack() bool {
	for i, in := range a.code {
		if in.do == nil && in.target <= i {
			return true
		}
	}
	return false
}

func (k *compiler) jumpIfZero(e *bmv2.Expr, in instr, to asm.Label) {
	var b *code.Branch
	if u := e.Unwrap(); u != nil && u.Op == "b2d" {
		if x := k.Condition(u.Right); x != nil {
			b = x.Not()
		}
	} else {
		b = k.Comparison("==", k.Tree(e), k.Leaf(vector.ConstInt(0)))
	}
	if b == nil || k.leaves() {
		k.test(in.when, to)
		return
	}
	k.Branch(b, 0, to, true)
}

// test passes a condition of the running action to Go, and jumps to a label if it
// holds. Go may change every register, so both paths reload the address of the
// arguments, which the following code needs.
func (k *compiler) test(when vector.Test, to asm.Label) {
	holds, past := k.NewLabel(), k.NewLabel()
	k.out(fromActionTest, callout{test: when, args: k.Known, inside: k.InPlace}, holds)
	k.loadArgs()
	k.Jump(past)
	k.Bind(holds)
	k.loadArgs()
	k.Jump(to)
	k.Bind(past)
}

// primitive writes a primitive, or returns false if it has no machine code.
func (k *compiler) primitive(p *bmv2.Primitive) bool {
	o := opcodes()[p.Op]
	return o.code != nil && o.code(k, p.Parameters)
}

func (k *compiler) drop() bool {
	k.storeStd(&k.prog.Std.EgressSpec, uint64(k.prog.opts.DropPort))
	k.storeStd(&k.prog.Std.McastGrp, 0)
	return true
}

func (k *compiler) exit() bool {
	k.StoreByte(code.StateExit, 1)
	return true
}

// storeStd stores a constant in a standard field.
func (k *compiler) storeStd(f *StdField, v uint64) {
	if !f.OK {
		return
	}
	k.Set(asm.AX, v&f.Mask)
	k.Store(code.Word(f.off), asm.AX)
}

// dropMark writes the fields of the header in its parameter and ignores
// aliases.
func (k *compiler) dropMark(e *bmv2.Expr) bool {
	r, err := k.Header(e)
	if err != nil || r.H == nil {
		return false
	}
	spec, _ := r.H.Field("egress_spec")
	k.Set(asm.AX, uint64(k.prog.opts.DropPort)&num.Mask64(min(spec.Width, 64)))
	k.Store(code.Word(spec.Off), asm.AX)
	if group, ok := r.H.Field("mcast_grp"); ok {
		k.StoreConst(code.Word(group.Off), 0)
	}
	return true
}

// request writes a primitive that stores a request to the switch in 16-bit fields
// of the State. into are the offsets of these fields.
func (k *compiler) request(a []*bmv2.Expr, into ...uintptr) bool {
	var trees []*code.Tree
	for i := range into {
		t := k.Tree(a[i])
		if t == nil {
			return false
		}
		trees = append(trees, t)
	}
	for i, t := range trees {
		k.Eval(t, 0)
		k.StoreBytes(asm.At(code.State, int(into[i])), code.Pool[0], 2)
	}
	return true
}

func (k *compiler) clone(a []*bmv2.Expr) bool {
	if !k.request(a, unsafe.Offsetof(vector.State{}.CloneSession), unsafe.Offsetof(vector.State{}.CloneList)) {
		return false
	}
	k.StoreByte(asm.At(code.State, int(unsafe.Offsetof(vector.State{}.CloneOn))), 1)
	return true
}
