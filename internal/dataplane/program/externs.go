package program

import (
	"errors"
	"fmt"
	"math/big"
	"strings"

	"github.com/p4lb/p4lb/internal/bmv2"
	"github.com/p4lb/p4lb/internal/dataplane/cell"
	"github.com/p4lb/p4lb/internal/dataplane/num"
	"github.com/p4lb/p4lb/internal/dataplane/vector"
)

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

func (l *Linker) drop([]*bmv2.Expr) (vector.Step, error) {
	std, port := &l.prog.Std, uint64(l.prog.opts.DropPort)
	return func(p *vector.State) {
		std.EgressSpec.Put(p.W, port)
		std.McastGrp.Put(p.W, 0)
	}, nil
}

// markToDrop writes the fields of the header in its parameter and ignores
// aliases.
func (l *Linker) markToDrop(a []*bmv2.Expr) (vector.Step, error) {
	r, err := l.Header(a[0])
	if err != nil {
		return nil, err
	}
	if r.H == nil {
		return nil, fmt.Errorf("the header has a run-time index: want a constant one")
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

// random draws from Env.Random. It writes nothing if the lower bound exceeds
// the upper one.
func (l *Linker) random(a []*bmv2.Expr) (vector.Step, error) {
	dst, err := l.Place(a[0])
	if err != nil {
		return nil, err
	}
	lo, hi, err := vector.Both(l.Number, a[1], a[2])
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

// hash links base + H % max; a max of 0 counts as 1.
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

// assertion links assert and assume. simple_switch stops if one is false; this
// switch drops the packet and logs it.
func (l *Linker) assertion(a []*bmv2.Expr) (vector.Step, error) {
	v, err := l.Number(a[0])
	if err != nil {
		return nil, err
	}
	holds, err := vector.Compare("!=", v, vector.ConstInt(0))
	if err != nil {
		return nil, err
	}
	s, msg := l.prog, l.call.Op+" failed"
	if si := l.call.SourceInfo; si != nil {
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

func (l *Linker) registerRead(a []*bmv2.Expr) (vector.Step, error) {
	r, err := l.register(a[1])
	if err != nil {
		return nil, err
	}
	return r.LinkRead(l.Linker, a[0], a[2])
}

func (l *Linker) registerWrite(a []*bmv2.Expr) (vector.Step, error) {
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

// register returns the register array of a parameter.
func (l *Linker) register(e *bmv2.Expr) (*cell.Register, error) {
	r := l.prog.Registers[e.Name]
	if e.Type != bmv2.TypeRegisterArray || r == nil {
		return nil, fmt.Errorf("%v is not a register array", e)
	}
	return r, nil
}

// registerOf returns the register array of an expression for a cell.
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

// logMsg links log_msg. It evaluates nothing if there is no log.
func (l *Linker) logMsg(a []*bmv2.Expr) (vector.Step, error) {
	format, list := a[0].Unwrap(), a[1].Unwrap()
	if format == nil || format.Type != bmv2.TypeString || list == nil || list.Type != bmv2.TypeParametersVector {
		return nil, errors.New("expected a string and a vector of parameters")
	}
	parts := splitFormat(format.Name)
	if len(parts)-1 != len(list.List) {
		return nil, fmt.Errorf("the format has %d places for %d arguments", len(parts)-1, len(list.List))
	}
	var args []func(*vector.State) *big.Int
	for _, e := range list.List {
		v, err := l.Number(e)
		if err != nil {
			return nil, err
		}
		args = append(args, v.BigFn())
	}
	s := l.prog
	return func(p *vector.State) {
		if s.opts.Log == nil {
			return
		}
		var b strings.Builder
		b.WriteString(parts[0])
		for i, arg := range args {
			b.WriteString(arg(p).String())
			b.WriteString(parts[i+1])
		}
		s.opts.Log(b.String())
	}, nil
}

// splitFormat splits a format at its {…}; \{ and \} are braces.
func splitFormat(s string) []string {
	var parts []string
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '\\' && i+1 < len(s) && (s[i+1] == '{' || s[i+1] == '}'):
			i++
			b.WriteByte(s[i])
		case s[i] == '{' && strings.IndexByte(s[i:], '}') > 0:
			i += strings.IndexByte(s[i:], '}')
			parts = append(parts, b.String())
			b.Reset()
		default:
			b.WriteByte(s[i])
		}
	}
	return append(parts, b.String())
}
