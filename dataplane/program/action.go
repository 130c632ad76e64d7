package program

import (
	"fmt"

	"github.com/p4lb/p4lb/bmv2"
	"github.com/p4lb/p4lb/dataplane/num"
	"github.com/p4lb/p4lb/dataplane/vector"
)

// An action is a linked action: a list of instructions.
type action struct {
	name     string
	id       int
	Params   []vector.Param
	argWords int
	code     []instr
	jumps    bool // whether any instruction jumps
	source   *bmv2.SourceInfo
	entry    uintptr // in the compiled program
}

// An instr is a step, or a jump to the instruction at target.
type instr struct {
	do     vector.Step
	target int
	when   vector.Test // nil: always
}

// maxSteps bounds the jumps and nodes that a packet may take in one control;
// BMv2 would go in circles for ever.
const maxSteps = 1 << 20

// run executes a for p with the arguments args.
func (a *action) run(p *vector.State, args []uint64) {
	p.Args = args
	if !a.jumps {
		for i := range a.code {
			a.code[i].do(p)
		}
		return
	}
	for pc := 0; pc < len(a.code) && p.Steps < maxSteps; p.Steps++ {
		in := &a.code[pc]
		pc++
		switch {
		case in.do != nil:
			in.do(p)
		case in.when == nil || in.when(p):
			pc = in.target
		}
	}
}

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

// isZero links the condition of a jump, which mostly is a truth value made a
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

func arity(p *bmv2.Primitive, n int) error {
	if len(p.Parameters) != n {
		return fmt.Errorf("%d parameters, expected %d", len(p.Parameters), n)
	}
	return nil
}

func jumpTarget(e *bmv2.Expr, count int) (int, error) {
	if e = e.Unwrap(); e != nil && e.Type == bmv2.TypeHexstr {
		if v, err := bmv2.ParseHex(e.Hex); err == nil && v.Sign() >= 0 && v.IsInt64() && v.Int64() <= int64(count) {
			return int(v.Int64()), nil
		}
	}
	return 0, fmt.Errorf("jump to %v, which is not an instruction", e)
}
