package dataplane

import (
	"errors"
	"fmt"

	"github.com/p4lb/p4lb/bmv2"
	"github.com/p4lb/p4lb/dataplane/num"
)

// ErrUnknownPrimitive is in the error of New for a program that calls what only
// a BMv2 with externs of its own has.
var ErrUnknownPrimitive = errors.New("unknown primitive")

// switchPrimitive links the primitives that simple_switch adds to the core
// ones.
func (l *linker) switchPrimitive(p *bmv2.Primitive) (step, error) {
	a := p.Parameters
	if l.sw.tofino != nil {
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
		return l.numbers(a, func(p *State, v []uint64) { p.cloneOn, p.cloneSession, p.cloneList = true, uint16(v[0]), uint16(v[1]) })
	case "resubmit":
		return l.numbers(a, func(p *State, v []uint64) { p.resubmit = uint16(v[0]) })
	case "recirculate":
		return l.numbers(a, func(p *State, v []uint64) { p.recirculate = uint16(v[0]) })
	case "generate_digest":
		return l.numbers(a, func(p *State, v []uint64) { p.digest = uint16(v[1]) })
	case "truncate":
		return l.numbers(a, func(p *State, v []uint64) { p.truncate(v[0]) })
	case "modify_field_rng_uniform":
		return l.random(a)
	case "modify_field_with_hash_based_offset":
		return l.hash(a)
	case "count":
		return l.count(a)
	case "execute_meter":
		return l.executeMeter(a)
	case "register_read":
		return l.registerRead(a)
	case "register_write":
		return l.registerWrite(a)
	}
	return nil, fmt.Errorf("%w %q", ErrUnknownPrimitive, p.Op)
}

// numbers links a primitive that takes at most two numbers.
func (l *linker) numbers(a []*bmv2.Expr, do func(*State, []uint64)) (step, error) {
	var evals [2]eval
	for i, e := range a {
		v, err := l.number(e)
		if err != nil {
			return nil, err
		}
		evals[i] = v.low()
	}
	n := len(a)
	return func(p *State) {
		v := p.ex.push(2)
		for i := range n {
			v[i] = evals[i](p)
		}
		do(p, v)
		p.ex.pop(2)
	}, nil
}

func (l *linker) drop() step {
	std, port := &l.sw.std, uint64(l.sw.opts.DropPort)
	return func(p *State) {
		std.egressSpec.put(p.w, port)
		std.mcastGrp.put(p.w, 0)
	}
}

// markToDrop works on the header that it is given, not on the aliases.
func (l *linker) markToDrop(e *bmv2.Expr) (step, error) {
	r, err := l.header(e)
	if err != nil {
		return nil, err
	}
	if r.h == nil {
		return nil, fmt.Errorf("a run-time index")
	}
	spec, ok := r.h.field("egress_spec")
	if !ok {
		return nil, fmt.Errorf("header %s has no field egress_spec", r.h.name)
	}
	port := uint64(l.sw.opts.DropPort) & num.Mask64(min(spec.width, 64))
	group, ok := r.h.field("mcast_grp")
	if !ok {
		return func(p *State) { p.w[spec.off] = port }, nil
	}
	return func(p *State) {
		p.w[spec.off] = port
		p.w[group.off] = 0
	}, nil
}

// random draws from the source that the caller of New has handed in. With the
// bounds the wrong way round nothing is written.
func (l *linker) random(a []*bmv2.Expr) (step, error) {
	dst, err := l.place(a[0])
	if err != nil {
		return nil, err
	}
	lo, err := l.number(a[1])
	if err != nil {
		return nil, err
	}
	hi, err := l.number(a[2])
	if err != nil {
		return nil, err
	}
	f, g, set, draw := lo.low(), hi.low(), dst.set(), l.sw.opts.Random
	return func(p *State) {
		if x, y := f(p), g(p); x <= y {
			set(p, draw(x, y))
		}
	}, nil
}

// hash links base + H % max, where a max of 0 is taken for 1.
func (l *linker) hash(a []*bmv2.Expr) (step, error) {
	dst, err := l.place(a[0])
	if err != nil {
		return nil, err
	}
	base, err := l.number(a[1])
	if err != nil {
		return nil, err
	}
	c := l.sw.calcs[a[2].Name]
	if a[2].Type != bmv2.TypeCalculation || c == nil {
		return nil, fmt.Errorf("%v is not a calculation", a[2])
	}
	size, err := l.number(a[3])
	if err != nil {
		return nil, err
	}
	f, set := base.low(), dst.set()
	if m, ok := remainderMask(size); ok {
		return func(p *State) { set(p, f(p)+c.output(p)&m) }, nil
	}
	g := size.low()
	return func(p *State) { set(p, f(p)+c.output(p)%max(1, g(p))) }, nil
}

// remainderMask is the mask that does to 64 bits what the remainder of a
// division by v does, if v is a constant for which there is one.
func remainderMask(v value) (m uint64, ok bool) {
	switch {
	case v.kind != constKind:
		return 0, false
	case v.lo.BitLen() > 64:
		return num.Mask64(64), true
	}
	return v.bits - 1, v.bits != 0 && v.bits&(v.bits-1) == 0
}

func (l *linker) count(a []*bmv2.Expr) (step, error) {
	c := l.sw.counters[a[0].Name]
	if a[0].Type != bmv2.TypeCounterArray || c == nil {
		return nil, fmt.Errorf("%v is not a counter array", a[0])
	}
	index, err := l.number(a[1])
	if err != nil {
		return nil, err
	}
	at := index.low()
	return func(p *State) {
		if i := uint64(uint32(at(p))); i < uint64(len(c.cells)) {
			c.cells[i].add(p)
		}
	}, nil
}

func (l *linker) executeMeter(a []*bmv2.Expr) (step, error) {
	m := l.sw.meters[a[0].Name]
	if a[0].Type != bmv2.TypeMeterArray || m == nil {
		return nil, fmt.Errorf("%v is not a meter array", a[0])
	}
	index, err := l.number(a[1])
	if err != nil {
		return nil, err
	}
	dst, err := l.place(a[2])
	if err != nil {
		return nil, err
	}
	had := constInt(0)
	if len(a) > 3 {
		if had, err = l.number(a[3]); err != nil {
			return nil, err
		}
	}
	at, set, color := index.low(), dst.set(), had.low()
	return func(p *State) {
		if i := uint64(uint32(at(p))); i < uint64(len(m.cells)) {
			set(p, m.cells[i].executeColored(m.bytes, p.ingressLength, min(color(p), maxRates), p.now))
		}
	}, nil
}

// assertion links assert and assume: simple_switch stops on a false one, this
// switch drops the packet and says so.
func (l *linker) assertion(pr *bmv2.Primitive) (step, error) {
	v, err := l.number(pr.Parameters[0])
	if err != nil {
		return nil, err
	}
	holds, err := compare("!=", v, constInt(0))
	if err != nil {
		return nil, err
	}
	s, msg := l.sw, pr.Op+" failed"
	if si := pr.SourceInfo; si != nil {
		msg = fmt.Sprintf("%s:%d: %s: %s", si.Filename, si.Line, msg, si.SourceFragment)
	}
	return func(p *State) {
		if holds(p) {
			return
		}
		if p.fail(); s.opts.Log != nil {
			s.opts.Log(msg)
		}
	}, nil
}

// put writes a field of the switch's own, if the program has it.
func (f *stdField) put(w []uint64, v uint64) {
	if f.ok {
		w[f.off] = v & f.mask
	}
}

func (f *stdField) get(w []uint64) uint64 {
	if f.ok {
		return w[f.off]
	}
	return 0
}
