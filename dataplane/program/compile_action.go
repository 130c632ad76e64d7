package program

import (
	"unsafe"

	"github.com/p4lb/p4lb/bmv2"
	"github.com/p4lb/p4lb/dataplane/asm"
	"github.com/p4lb/p4lb/dataplane/code"
	"github.com/p4lb/p4lb/dataplane/num"
	"github.com/p4lb/p4lb/dataplane/vector"
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
	var b *code.Branch
	if u := e.Unwrap(); u != nil && u.Op == "b2d" {
		if x := k.Condition(u.Right); x != nil {
			b = x.Not()
		}
	} else {
		b = k.Comparison("==", k.Tree(e), k.Leaf(vector.ConstInt(0)))
	}
	if b == nil {
		k.out(callout{test: in.when, args: k.Known, inside: k.InPlace}, to)
		k.loadArgs()
		return
	}
	k.Branch(b, 0, to, true)
}

// primitive writes a primitive, if that is one of the common ones.
func (k *compiler) primitive(p *bmv2.Primitive) bool {
	a := p.Parameters
	switch p.Op {
	case "assign", "modify_field", "set":
		return k.Assignment(a[0], k.Tree(a[1]))
	case "add_to_field":
		return k.Result("+", a[0], a[0], a[1])
	case "subtract_from_field":
		return k.Result("-", a[0], a[0], a[1])
	case "add":
		return k.Result("+", a[0], a[1], a[2])
	case "subtract":
		return k.Result("-", a[0], a[1], a[2])
	case "bit_xor":
		return k.Result("^", a[0], a[1], a[2])
	case "bit_or":
		return k.Result("|", a[0], a[1], a[2])
	case "bit_and":
		return k.Result("&", a[0], a[1], a[2])
	case "shift_left":
		return k.Result("<<", a[0], a[1], a[2])
	case "shift_right":
		return k.Result(">>", a[0], a[1], a[2])
	case "register_read":
		return k.ReadCell(k.prog.Registers[a[1].Name], a[0], a[2])
	case "register_write":
		return k.WriteCell(k.prog.Registers[a[0].Name], a[1], a[2])
	case "count":
		return k.CountPacket(k.prog.Counters[a[0].Name], a[1])
	case "assign_header", "copy_header":
		return k.CopyHeader(a[0], a[1])
	case "add_header":
		return k.OnFixed(a[0], k.MakeValid)
	case "add_header_fast":
		return k.OnFixed(a[0], k.SetValid)
	case "remove_header":
		return k.OnFixed(a[0], k.MakeInvalid)
	case "mark_to_drop":
		return k.dropMark(a[0])
	case "drop":
		k.storeStd(&k.prog.Std.EgressSpec, uint64(k.prog.opts.DropPort))
		k.storeStd(&k.prog.Std.McastGrp, 0)
		return true
	case "modify_field_with_hash_based_offset":
		return k.HashInto(k.prog.Calcs[a[2].Name], a)
	case "exit":
		k.StoreByte(code.StateExit, 1)
		return true
	case "no_op":
		return true
	}
	return k.request(p)
}

// storeStd stores a constant in a field of the switch's own.
func (k *compiler) storeStd(f *StdField, v uint64) {
	if !f.OK {
		return
	}
	k.Set(asm.AX, v&f.Mask)
	k.Store(code.Word(f.off), asm.AX)
}

// dropMark works on the header that it is given, not on the aliases.
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
	if len(into) == 2 {
		k.StoreByte(asm.At(code.State, int(unsafe.Offsetof(vector.State{}.CloneOn))), 1)
	}
	return true
}
