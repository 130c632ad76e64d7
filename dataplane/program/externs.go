package program

import (
	"errors"
	"fmt"

	"github.com/p4lb/p4lb/bmv2"
	"github.com/p4lb/p4lb/dataplane/cell"
	"github.com/p4lb/p4lb/dataplane/num"
	"github.com/p4lb/p4lb/dataplane/vector"
)

// ErrUnknownPrimitive is in the error of New for a program that calls what only
// a BMv2 with externs of its own has.
var ErrUnknownPrimitive = errors.New("unknown primitive")

// switchPrimitive links the primitives that simple_switch adds to the core
// ones.
func (l *Linker) switchPrimitive(p *bmv2.Primitive) (vector.Step, error) {
	a := p.Parameters
	if l.prog.Tofino() {
		if do, err := l.pipePrimitive(p); do != nil || err != nil {
			return do, err
		}
	}
	switch p.Op {
	case "drop":
		return l.drop(), nil
	case "mark_to_drop":
		return l.markToDrop(a[0])
	case "clone_ingress_pkt_to_egress", "clone_egress_pkt_to_egress":
		return l.numbers(a, func(p *vector.State, v []uint64) {
			p.CloneOn, p.CloneSession, p.CloneList = true, uint16(v[0]), uint16(v[1])
		})
	case "resubmit":
		return l.numbers(a, func(p *vector.State, v []uint64) { p.Resubmit = uint16(v[0]) })
	case "recirculate":
		return l.numbers(a, func(p *vector.State, v []uint64) { p.Recirculate = uint16(v[0]) })
	case "generate_digest":
		return l.numbers(a, func(p *vector.State, v []uint64) { p.Digest = uint16(v[1]) })
	case "truncate":
		return l.numbers(a, func(p *vector.State, v []uint64) { p.Truncate(v[0]) })
	case "modify_field_rng_uniform":
		return l.random(a)
	case "modify_field_with_hash_based_offset":
		return l.hash(a)
	case "count":
		return l.count(a)
	case "execute_meter":
		return l.executeMeter(a)
	case "register_read":
		r, err := l.register(a[1])
		if err != nil {
			return nil, err
		}
		return r.LinkRead(l.Linker, a[0], a[2])
	case "register_write":
		r, err := l.register(a[0])
		if err != nil {
			return nil, err
		}
		v, err := l.Number(a[2])
		if err != nil {
			return nil, err
		}
		return r.LinkWrite(l.Linker, a[1], v)
	}
	return nil, fmt.Errorf("%w %q", ErrUnknownPrimitive, p.Op)
}

// numbers links a primitive that takes at most two numbers.
func (l *Linker) numbers(a []*bmv2.Expr, do func(*vector.State, []uint64)) (vector.Step, error) {
	var evals [2]vector.Eval
	for i, e := range a {
		v, err := l.Number(e)
		if err != nil {
			return nil, err
		}
		evals[i] = v.Low()
	}
	n := len(a)
	return func(p *vector.State) {
		v := p.Scratch.Push(2)
		for i := range n {
			v[i] = evals[i](p)
		}
		do(p, v)
		p.Scratch.Pop(2)
	}, nil
}

func (l *Linker) drop() vector.Step {
	std, port := &l.prog.Std, uint64(l.prog.opts.DropPort)
	return func(p *vector.State) {
		std.EgressSpec.Put(p.W, port)
		std.McastGrp.Put(p.W, 0)
	}
}

// markToDrop works on the header that it is given, not on the aliases.
func (l *Linker) markToDrop(e *bmv2.Expr) (vector.Step, error) {
	r, err := l.Header(e)
	if err != nil {
		return nil, err
	}
	if r.H == nil {
		return nil, fmt.Errorf("a run-time index")
	}
	spec, ok := r.H.Field("egress_spec")
	if !ok {
		return nil, fmt.Errorf("header %s has no field egress_spec", r.H.Name)
	}
	port := uint64(l.prog.opts.DropPort) & num.Mask64(min(spec.Width, 64))
	group, ok := r.H.Field("mcast_grp")
	if !ok {
		return func(p *vector.State) { p.W[spec.Off] = port }, nil
	}
	return func(p *vector.State) {
		p.W[spec.Off] = port
		p.W[group.Off] = 0
	}, nil
}

// random draws from the source that the caller of New has handed in. With the
// bounds the wrong way round nothing is written.
func (l *Linker) random(a []*bmv2.Expr) (vector.Step, error) {
	dst, err := l.Place(a[0])
	if err != nil {
		return nil, err
	}
	lo, err := l.Number(a[1])
	if err != nil {
		return nil, err
	}
	hi, err := l.Number(a[2])
	if err != nil {
		return nil, err
	}
	f, g, set, draw := lo.Low(), hi.Low(), dst.Set(), l.prog.opts.Random
	return func(p *vector.State) {
		if x, y := f(p), g(p); x <= y {
			set(p, draw(x, y))
		}
	}, nil
}

// hash links base + H % max, where a max of 0 is taken for 1.
func (l *Linker) hash(a []*bmv2.Expr) (vector.Step, error) {
	dst, err := l.Place(a[0])
	if err != nil {
		return nil, err
	}
	base, err := l.Number(a[1])
	if err != nil {
		return nil, err
	}
	c := l.prog.Calcs[a[2].Name]
	if a[2].Type != bmv2.TypeCalculation || c == nil {
		return nil, fmt.Errorf("%v is not a calculation", a[2])
	}
	size, err := l.Number(a[3])
	if err != nil {
		return nil, err
	}
	f, set := base.Low(), dst.Set()
	if m, ok := size.RemainderMask(); ok {
		return func(p *vector.State) { set(p, f(p)+c.Output(p)&m) }, nil
	}
	g := size.Low()
	return func(p *vector.State) { set(p, f(p)+c.Output(p)%max(1, g(p))) }, nil
}

func (l *Linker) count(a []*bmv2.Expr) (vector.Step, error) {
	c := l.prog.Counters[a[0].Name]
	if a[0].Type != bmv2.TypeCounterArray || c == nil {
		return nil, fmt.Errorf("%v is not a counter array", a[0])
	}
	return c.Link(l.Linker, a[1])
}

func (l *Linker) executeMeter(a []*bmv2.Expr) (vector.Step, error) {
	m := l.prog.Meters[a[0].Name]
	if a[0].Type != bmv2.TypeMeterArray || m == nil {
		return nil, fmt.Errorf("%v is not a meter array", a[0])
	}
	return m.Link(l.Linker, a[1:])
}

// assertion links assert and assume: simple_switch stops on a false one, this
// switch drops the packet and says so.
func (l *Linker) assertion(pr *bmv2.Primitive) (vector.Step, error) {
	v, err := l.Number(pr.Parameters[0])
	if err != nil {
		return nil, err
	}
	holds, err := vector.Compare("!=", v, vector.ConstInt(0))
	if err != nil {
		return nil, err
	}
	s, msg := l.prog, pr.Op+" failed"
	if si := pr.SourceInfo; si != nil {
		msg = fmt.Sprintf("%s:%d: %s: %s", si.Filename, si.Line, msg, si.SourceFragment)
	}
	return func(p *vector.State) {
		if holds(p) {
			return
		}
		if p.Fail(); s.opts.Log != nil {
			s.opts.Log(msg)
		}
	}, nil
}

// register finds the register array that a parameter names.
func (l *Linker) register(e *bmv2.Expr) (*cell.Register, error) {
	r := l.prog.Registers[e.Name]
	if e.Type != bmv2.TypeRegisterArray || r == nil {
		return nil, fmt.Errorf("%v is not a register array", e)
	}
	return r, nil
}

// registerOf finds the register array of an expression that denotes a cell.
func (l *Linker) registerOf(e *bmv2.Expr) (*cell.Register, error) {
	if r := l.prog.Registers[e.Name]; r != nil {
		return r, nil
	}
	return nil, fmt.Errorf("unknown register array %q", e.Name)
}

// ReadCell links the value of a register cell.
func (l *Linker) ReadCell(e *bmv2.Expr) (vector.Value, error) {
	r, err := l.registerOf(e)
	if err != nil {
		return vector.Value{}, err
	}
	index, err := l.Number(e.Right)
	if err != nil {
		return vector.Value{}, err
	}
	return r.CellValue(index.Low()), nil
}

// WriteCell links the assignment to a register cell.
func (l *Linker) WriteCell(e *bmv2.Expr, v vector.Value) (vector.Step, error) {
	r, err := l.registerOf(e)
	if err != nil {
		return nil, err
	}
	return r.LinkWrite(l.Linker, e.Right, v)
}
