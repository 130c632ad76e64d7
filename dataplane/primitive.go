package dataplane

import (
	"errors"
	"fmt"

	"github.com/p4lb/p4lb/bmv2"
)

// primitive links one call of a primitive other than a jump.
func (l *linker) primitive(p *bmv2.Primitive) (step, error) {
	a := p.Parameters
	if n, ok := primitiveArity(p.Op); ok && len(a) != n {
		return nil, arity(p, n)
	}
	switch p.Op {
	case "assign", "modify_field", "set":
		return l.assign(a[0], a[1])
	case "add_to_field":
		return l.arithmetic("+", a[0], a[0], a[1])
	case "subtract_from_field":
		return l.arithmetic("-", a[0], a[0], a[1])
	case "add":
		return l.arithmetic("+", a[0], a[1], a[2])
	case "subtract":
		return l.arithmetic("-", a[0], a[1], a[2])
	case "bit_xor":
		return l.arithmetic("^", a[0], a[1], a[2])
	case "bit_or":
		return l.arithmetic("|", a[0], a[1], a[2])
	case "bit_and":
		return l.arithmetic("&", a[0], a[1], a[2])
	case "shift_left":
		return l.arithmetic("<<", a[0], a[1], a[2])
	case "shift_right":
		return l.arithmetic(">>", a[0], a[1], a[2])
	case "assign_VL":
		return l.assignVL(a[0], a[1])
	case "assign_header", "copy_header":
		return l.assignHeader(a[0], a[1])
	case "assign_union":
		return l.assignUnion(a[0], a[1])
	case "assign_header_stack":
		return l.assignStack(a[0], a[1])
	case "assign_union_stack":
		return l.assignUnionStack(a[0], a[1])
	case "push", "pop":
		return l.shift(p.Op, a[0], a[1])
	case "add_header":
		return l.addHeader(a[0])
	case "add_header_fast":
		return l.onHeader(a[0], func(p *State, h *header) { h.markValid(p) })
	case "remove_header":
		return l.onHeader(a[0], removeHeader)
	case "exit":
		return func(p *State) { p.exit = true }, nil
	case "no_op":
		return func(*State) {}, nil
	case "assert", "assume":
		return l.assertion(p)
	case "log_msg":
		return l.logMsg(p)
	}
	return l.switchPrimitive(p)
}

// primitiveArity is the number of parameters of a primitive.
func primitiveArity(op string) (n int, ok bool) {
	switch op {
	case "exit", "no_op", "drop":
		return 0, true
	case "add_header", "add_header_fast", "remove_header", "mark_to_drop", "resubmit",
		"recirculate", "truncate", "assert", "assume":
		return 1, true
	case "assign", "modify_field", "set", "add_to_field", "subtract_from_field", "assign_VL",
		"assign_header", "copy_header", "assign_union", "assign_header_stack",
		"assign_union_stack", "push", "pop", "log_msg", "count", "generate_digest",
		"clone_ingress_pkt_to_egress", "clone_egress_pkt_to_egress":
		return 2, true
	case "add", "subtract", "bit_xor", "bit_or", "bit_and", "shift_left", "shift_right",
		"register_read", "register_write", "execute_meter", "modify_field_rng_uniform":
		return 3, true
	case "modify_field_with_hash_based_offset":
		return 4, true
	}
	return 0, false
}

func (l *linker) arithmetic(op string, dst, left, right *bmv2.Expr) (step, error) {
	a, err := l.number(left)
	if err != nil {
		return nil, err
	}
	b, err := l.number(right)
	if err != nil {
		return nil, err
	}
	v, err := binaryOp(op, a, b)
	if err != nil {
		return nil, err
	}
	pl, err := l.place(dst)
	if err != nil {
		return nil, err
	}
	return l.store(pl, v), nil
}

func (l *linker) assignHeader(dst, src *bmv2.Expr) (step, error) {
	d, err := l.header(dst)
	if err != nil {
		return nil, err
	}
	s, err := l.header(src)
	if err != nil {
		return nil, err
	}
	if d.typ != s.typ {
		return nil, fmt.Errorf("header types %s and %s differ", d.typ.name, s.typ.name)
	}
	if x, y := d.h, s.h; x != nil && y != nil {
		return func(p *State) { x.assign(p, y) }, nil
	}
	f, g := d.get(), s.get()
	return func(p *State) {
		if x, y := f(p), g(p); x != nil && y != nil {
			x.assign(p, y)
		}
	}, nil
}

func (l *linker) assignUnion(dst, src *bmv2.Expr) (step, error) {
	d, err := l.union(dst)
	if err != nil {
		return nil, err
	}
	s, err := l.union(src)
	if err != nil {
		return nil, err
	}
	if !d.any.like(s.any) {
		return nil, fmt.Errorf("header unions %s and %s differ", d.any.name, s.any.name)
	}
	f, g := d.get(), s.get()
	return func(p *State) {
		if x, y := f(p), g(p); x != nil && y != nil {
			x.assign(p, y)
		}
	}, nil
}

var errStacksDiffer = errors.New("the stacks differ in type or size")

func (l *linker) assignStack(dst, src *bmv2.Expr) (step, error) {
	d, err := l.stack(dst)
	if err != nil {
		return nil, err
	}
	s, err := l.stack(src)
	if err != nil {
		return nil, err
	}
	if d.typ != s.typ || len(d.elements) != len(s.elements) {
		return nil, errStacksDiffer
	}
	return func(p *State) {
		p.w[d.next] = p.w[s.next]
		for i, h := range d.elements {
			h.assign(p, s.elements[i])
		}
	}, nil
}

func (l *linker) assignUnionStack(dst, src *bmv2.Expr) (step, error) {
	d, err := l.unionStack(dst)
	if err != nil {
		return nil, err
	}
	s, err := l.unionStack(src)
	if err != nil {
		return nil, err
	}
	if len(d.elements) != len(s.elements) || !d.elements[0].like(s.elements[0]) {
		return nil, errStacksDiffer
	}
	return func(p *State) {
		p.w[d.next] = p.w[s.next]
		for i, u := range d.elements {
			u.assign(p, s.elements[i])
		}
	}, nil
}

// shift links push and pop.
func (l *linker) shift(op string, stackExpr, count *bmv2.Expr) (step, error) {
	v, err := l.number(count)
	if err != nil {
		return nil, err
	}
	n := v.low()
	if s, err := l.unionStack(stackExpr); err == nil {
		if op == "push" {
			return func(p *State) { pushFront(p, s.elements, s.next, n(p)) }, nil
		}
		return func(p *State) { popFront(p, s.elements, s.next, n(p)) }, nil
	}
	s, err := l.stack(stackExpr)
	if err != nil {
		return nil, err
	}
	if op == "push" {
		return func(p *State) { pushFront(p, s.elements, s.next, n(p)) }, nil
	}
	return func(p *State) { popFront(p, s.elements, s.next, n(p)) }, nil
}

// onHeader links a primitive that does something to a header.
func (l *linker) onHeader(e *bmv2.Expr, do func(*State, *header)) (step, error) {
	r, err := l.header(e)
	if err != nil {
		return nil, err
	}
	if h := r.h; h != nil {
		return func(p *State) { do(p, h) }, nil
	}
	pick := r.pick
	return func(p *State) {
		if h := pick(p); h != nil {
			do(p, h)
		}
	}, nil
}

// addHeader makes a header valid with all fields zero and counts it in the
// packet's length; a header that is valid stays as it is.
func (l *linker) addHeader(e *bmv2.Expr) (step, error) {
	return l.onHeader(e, func(p *State, h *header) {
		if h.isValid(p) {
			return
		}
		h.clear(p)
		h.markValid(p)
		p.length += h.bytes(p)
	})
}

func removeHeader(p *State, h *header) {
	if h.isValid(p) {
		p.length -= h.bytes(p)
		h.markInvalid(p)
	}
}
