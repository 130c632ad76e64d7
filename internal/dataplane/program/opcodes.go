package program

import (
	"errors"
	"fmt"
	"sync"
	"unsafe"

	"github.com/p4lb/p4lb/internal/bmv2"
	"github.com/p4lb/p4lb/internal/dataplane/cell"
	"github.com/p4lb/p4lb/internal/dataplane/num"
	"github.com/p4lb/p4lb/internal/dataplane/vector"
)

// An opcode describes a primitive: how to link its closure and, if supported, how
// to write its machine code. code writes nothing and returns false if only the
// closure supports the case.
type opcode struct {
	arity int // number of arguments; -1: link checks it
	on    target
	link  func(l *Linker, a []*bmv2.Expr) (vector.Step, error)
	code  func(k *compiler, a []*bmv2.Expr) bool
}

// A target is a set of switches that have a primitive.
type target byte

const (
	everywhere   target = iota
	simpleSwitch        // only on simple_switch
	tofino              // only on Tofino
)

// ErrUnknownPrimitive is the error for a program that uses an extern of a modified
// BMv2. The error of New wraps it.
var ErrUnknownPrimitive = errors.New("unknown primitive")

// Primitive links one call of a primitive other than a jump.
func (l *Linker) Primitive(p *bmv2.Primitive) (vector.Step, error) {
	o, ok := opcodes()[p.Op]
	switch {
	case !ok || o.on == tofino && !l.prog.Tofino():
		return nil, fmt.Errorf("%w %q", ErrUnknownPrimitive, p.Op)
	case o.arity >= 0 && len(p.Parameters) != o.arity:
		return nil, arity(p, o.arity)
	case o.on == simpleSwitch && l.prog.Tofino():
		return nil, fmt.Errorf("%s is not for Tofino", p.Op)
	}
	l.call = p
	return o.link(l, p.Parameters)
}

func arity(p *bmv2.Primitive, n int) error {
	if len(p.Parameters) != n {
		return fmt.Errorf("%d parameters, expected %d", len(p.Parameters), n)
	}
	return nil
}

// opcodes maps names to primitives: those of BMv2's core, with their names in
// P4_14, of simple_switch, and of programs for Tofino.
var opcodes = sync.OnceValue(func() map[string]opcode {
	type exprs = []*bmv2.Expr
	arith := func(op string) opcode {
		return opcode{3, everywhere,
			func(l *Linker, a exprs) (vector.Step, error) { return l.arithmetic(op, a[0], a[1], a[2]) },
			func(k *compiler, a exprs) bool { return k.Result(op, a[0], a[1], a[2]) }}
	}
	toField := func(op string) opcode {
		return opcode{2, everywhere,
			func(l *Linker, a exprs) (vector.Step, error) { return l.arithmetic(op, a[0], a[0], a[1]) },
			func(k *compiler, a exprs) bool { return k.Result(op, a[0], a[0], a[1]) }}
	}
	assign := opcode{2, everywhere,
		func(l *Linker, a exprs) (vector.Step, error) { return l.Assign(a[0], a[1]) },
		func(k *compiler, a exprs) bool { return k.Assignment(a[0], k.Tree(a[1])) }}
	assignHeader := opcode{2, everywhere,
		func(l *Linker, a exprs) (vector.Step, error) { return l.assignHeader(a[0], a[1]) },
		func(k *compiler, a exprs) bool { return k.CopyHeader(a[0], a[1]) }}
	// two links a primitive with two parameters and without machine code.
	two := func(link func(l *Linker, x, y *bmv2.Expr) (vector.Step, error)) opcode {
		return opcode{2, everywhere, func(l *Linker, a exprs) (vector.Step, error) { return link(l, a[0], a[1]) }, nil}
	}
	// asks links a primitive that passes numbers to the switch.
	asks := func(arity int, on target, do func(p *vector.State, v []uint64), code func(k *compiler, a exprs) bool) opcode {
		return opcode{arity, on, func(l *Linker, a exprs) (vector.Step, error) { return l.numbers(a, do) }, code}
	}
	clone := asks(2, simpleSwitch, func(p *vector.State, v []uint64) {
		p.CloneOn, p.CloneSession, p.CloneList = true, uint16(v[0]), uint16(v[1])
	}, (*compiler).clone)
	sum := func(flip uint64) opcode {
		return opcode{2, tofino, func(l *Linker, a exprs) (vector.Step, error) { return l.sum(a[0], a[1], flip) }, nil}
	}
	filter := func(wred bool) opcode {
		return opcode{4, tofino, func(l *Linker, a exprs) (vector.Step, error) { return l.filterExecute(a, wred) }, nil}
	}
	shift := func(op string) opcode {
		return two(func(l *Linker, x, y *bmv2.Expr) (vector.Step, error) { return l.shift(op, x, y) })
	}
	return map[string]opcode{
		"assign": assign, "modify_field": assign, "set": assign,
		"add_to_field": toField("+"), "subtract_from_field": toField("-"),
		"add": arith("+"), "subtract": arith("-"), "bit_xor": arith("^"), "bit_or": arith("|"), "bit_and": arith("&"),
		"shift_left": arith("<<"), "shift_right": arith(">>"),
		"assign_VL":     two(func(l *Linker, x, y *bmv2.Expr) (vector.Step, error) { return l.AssignVL(x, y) }),
		"assign_header": assignHeader, "copy_header": assignHeader,
		"assign_union": two((*Linker).assignUnion), "assign_header_stack": two((*Linker).assignStack),
		"assign_union_stack": two((*Linker).assignUnionStack),
		"push":               shift("push"), "pop": shift("pop"),
		"add_header": {1, everywhere,
			func(l *Linker, a exprs) (vector.Step, error) { return l.addHeader(a[0]) },
			func(k *compiler, a exprs) bool { return k.OnFixed(a[0], k.MakeValid) }},
		"add_header_fast": {1, everywhere,
			func(l *Linker, a exprs) (vector.Step, error) {
				return l.onHeader(a[0], func(p *vector.State, h *vector.Header) { h.MarkValid(p) })
			},
			func(k *compiler, a exprs) bool { return k.OnFixed(a[0], k.SetValid) }},
		"remove_header": {1, everywhere,
			func(l *Linker, a exprs) (vector.Step, error) { return l.onHeader(a[0], removeHeader) },
			func(k *compiler, a exprs) bool { return k.OnFixed(a[0], k.MakeInvalid) }},
		"exit": {0, everywhere,
			func(*Linker, exprs) (vector.Step, error) { return func(p *vector.State) { p.Exit = true }, nil },
			func(k *compiler, _ exprs) bool { return k.exit() }},
		"no_op": {0, everywhere,
			func(*Linker, exprs) (vector.Step, error) { return func(*vector.State) {}, nil },
			func(*compiler, exprs) bool { return true }},
		"assert": {1, everywhere, (*Linker).assertion, nil}, "assume": {1, everywhere, (*Linker).assertion, nil},
		"log_msg": {2, everywhere, (*Linker).logMsg, nil},

		"modify_field_rng_uniform": {3, everywhere, (*Linker).random, nil},
		"modify_field_with_hash_based_offset": {4, everywhere, (*Linker).hash,
			func(k *compiler, a exprs) bool {
				return k.HashInto(k.prog.Calcs[a[2].Name], a, func() { k.toGo(fromHashSetting) })
			}},
		"count": {2, everywhere, (*Linker).count,
			func(k *compiler, a exprs) bool { return k.CountPacket(k.prog.Counters[a[0].Name], a[1]) }},
		"execute_meter": {3, everywhere, (*Linker).executeMeter, nil},
		"register_read": {3, everywhere, (*Linker).registerRead,
			func(k *compiler, a exprs) bool { return k.ReadCell(k.prog.Registers[a[1].Name], a[0], a[2]) }},
		"register_write": {3, everywhere, (*Linker).registerWrite,
			func(k *compiler, a exprs) bool { return k.WriteCell(k.prog.Registers[a[0].Name], a[1], a[2]) }},
		"generate_digest": asks(2, everywhere, func(p *vector.State, v []uint64) { p.Digest = uint16(v[1]) },
			func(k *compiler, a exprs) bool { return k.request(a[1:], unsafe.Offsetof(vector.State{}.Digest)) }),

		"drop":                        {0, simpleSwitch, (*Linker).drop, func(k *compiler, _ exprs) bool { return k.drop() }},
		"mark_to_drop":                {1, simpleSwitch, (*Linker).markToDrop, func(k *compiler, a exprs) bool { return k.dropMark(a[0]) }},
		"clone_ingress_pkt_to_egress": clone, "clone_egress_pkt_to_egress": clone,
		"resubmit": asks(1, simpleSwitch, func(p *vector.State, v []uint64) { p.Resubmit = uint16(v[0]) },
			func(k *compiler, a exprs) bool { return k.request(a, unsafe.Offsetof(vector.State{}.Resubmit)) }),
		"recirculate": asks(1, simpleSwitch, func(p *vector.State, v []uint64) { p.Recirculate = uint16(v[0]) },
			func(k *compiler, a exprs) bool { return k.request(a, unsafe.Offsetof(vector.State{}.Recirculate)) }),
		"truncate": asks(1, simpleSwitch, func(p *vector.State, v []uint64) { p.Truncate(v[0]) }, nil),

		"mirror_emit": {-1, tofino, (*Linker).mirrorEmit, nil}, "resubmit_emit": {-1, tofino, (*Linker).resubmitEmit, nil},
		"csum_add": sum(0xffff), "csum_subtract": sum(0),
		"csum_mark":      {1, tofino, func(l *Linker, a exprs) (vector.Step, error) { return l.sumMark(a[0]) }, nil},
		"csum_deposit":   {3, tofino, (*Linker).sumDeposit, nil},
		"filter_execute": filter(false), "wred_execute": filter(true),
		"execute_meter_colored": {4, tofino, (*Linker).executeMeter, nil},
		"math_unit":             {6, tofino, func(l *Linker, a exprs) (vector.Step, error) { return cell.LinkMathUnit(l.Linker, a) }, nil},
		"register_entry":        {1, tofino, (*Linker).registerEntry, nil},
		"register_fill":         {2, tofino, (*Linker).registerFill, nil},
	}
})

func (l *Linker) action(c *bmv2.Action) (*action, error) {
	a := &action{name: c.Name, id: c.ID}
	for _, r := range c.RuntimeData {
		pr := vector.Param{Name: r.Name, Off: a.argWords, Width: r.Bitwidth}
		a.Params = append(a.Params, pr)
		a.argWords += num.Words(r.Bitwidth)
	}
	l.Params = a.Params
	for i, p := range c.Primitives {
		in, err := l.instruction(p, len(c.Primitives))
		if err != nil {
			return nil, fmt.Errorf("action %s: primitive %d (%s): %w", c.Name, i, p.Op, err)
		}
		a.jumps = a.jumps || in.do == nil
		a.code = append(a.code, in)
		if a.source == nil {
			a.source = p.SourceInfo
		}
	}
	return a, nil
}

func (l *Linker) instruction(p *bmv2.Primitive, count int) (instr, error) {
	switch p.Op {
	case "_jump":
		if err := arity(p, 1); err != nil {
			return instr{}, err
		}
		target, err := jumpTarget(p.Parameters[0], count)
		return instr{target: target}, err
	case "_jump_if_zero":
		if err := arity(p, 2); err != nil {
			return instr{}, err
		}
		zero, err := l.isZero(p.Parameters[0])
		if err != nil {
			return instr{}, err
		}
		target, err := jumpTarget(p.Parameters[1], count)
		return instr{target: target, when: zero}, err
	}
	do, err := l.Primitive(p)
	return instr{do: do}, err
}

// isZero links the condition of a jump, usually a Boolean converted to a
// number.
func (l *Linker) isZero(e *bmv2.Expr) (vector.Test, error) {
	if u := e.Unwrap(); u != nil && u.Op == "b2d" {
		t, err := l.Boolean(u.Right)
		return func(p *vector.State) bool { return !t(p) }, err
	}
	v, err := l.Number(e)
	if err != nil {
		return nil, err
	}
	return vector.Compare("==", v, vector.ConstInt(0))
}

func jumpTarget(e *bmv2.Expr, count int) (int, error) {
	if e = e.Unwrap(); e != nil && e.Type == bmv2.TypeHexstr {
		if v, err := bmv2.ParseHex(e.Hex); err == nil && v.Sign() >= 0 && v.IsInt64() && v.Int64() <= int64(count) {
			return int(v.Int64()), nil
		}
	}
	return 0, fmt.Errorf("jump to %v, which is not an instruction", e)
}
