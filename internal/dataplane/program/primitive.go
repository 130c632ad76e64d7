package program

import (
	"errors"
	"fmt"

	"github.com/p4lb/p4lb/internal/bmv2"
	"github.com/p4lb/p4lb/internal/dataplane/vector"
)

func (l *Linker) arithmetic(op string, dst, left, right *bmv2.Expr) (vector.Step, error) {
	a, b, err := vector.Both(l.Number, left, right)
	if err != nil {
		return nil, err
	}
	v, err := vector.BinaryOp(op, a, b)
	if err != nil {
		return nil, err
	}
	pl, err := l.Place(dst)
	if err != nil {
		return nil, err
	}
	return pl.Store(v), nil
}

func (l *Linker) assignHeader(dst, src *bmv2.Expr) (vector.Step, error) {
	d, s, err := vector.Both(l.Header, dst, src)
	if err != nil {
		return nil, err
	}
	if d.Type != s.Type {
		return nil, fmt.Errorf("header types %s and %s differ", d.Type.Name, s.Type.Name)
	}
	if x, y := d.H, s.H; x != nil && y != nil {
		return func(p *vector.State) { x.Assign(p, y) }, nil
	}
	f, g := d.Get(), s.Get()
	return func(p *vector.State) {
		if x, y := f(p), g(p); x != nil && y != nil {
			x.Assign(p, y)
		}
	}, nil
}

func (l *Linker) assignUnion(dst, src *bmv2.Expr) (vector.Step, error) {
	d, s, err := vector.Both(l.Union, dst, src)
	if err != nil {
		return nil, err
	}
	if !d.Any.Like(s.Any) {
		return nil, fmt.Errorf("header unions %s and %s differ", d.Any.Name, s.Any.Name)
	}
	f, g := d.Get(), s.Get()
	return func(p *vector.State) {
		if x, y := f(p), g(p); x != nil && y != nil {
			x.Assign(p, y)
		}
	}, nil
}

var errStacksDiffer = errors.New("the stacks differ in type or size")

func (l *Linker) assignStack(dst, src *bmv2.Expr) (vector.Step, error) {
	d, s, err := vector.Both(l.Stack, dst, src)
	if err != nil {
		return nil, err
	}
	if d.Type != s.Type || len(d.Elements) != len(s.Elements) {
		return nil, errStacksDiffer
	}
	return func(p *vector.State) {
		p.W[d.Next] = p.W[s.Next]
		for i, h := range d.Elements {
			h.Assign(p, s.Elements[i])
		}
	}, nil
}

func (l *Linker) assignUnionStack(dst, src *bmv2.Expr) (vector.Step, error) {
	d, s, err := vector.Both(l.UnionStack, dst, src)
	if err != nil {
		return nil, err
	}
	if len(d.Elements) != len(s.Elements) || !d.Elements[0].Like(s.Elements[0]) {
		return nil, errStacksDiffer
	}
	return func(p *vector.State) {
		p.W[d.Next] = p.W[s.Next]
		for i, u := range d.Elements {
			u.Assign(p, s.Elements[i])
		}
	}, nil
}

// shift links push and pop.
func (l *Linker) shift(op string, stackExpr, count *bmv2.Expr) (vector.Step, error) {
	v, err := l.Number(count)
	if err != nil {
		return nil, err
	}
	n := v.Low()
	if s, err := l.UnionStack(stackExpr); err == nil {
		if op == "push" {
			return func(p *vector.State) { vector.PushFront(p, s.Elements, s.Next, n(p)) }, nil
		}
		return func(p *vector.State) { vector.PopFront(p, s.Elements, s.Next, n(p)) }, nil
	}
	s, err := l.Stack(stackExpr)
	if err != nil {
		return nil, err
	}
	if op == "push" {
		return func(p *vector.State) { vector.PushFront(p, s.Elements, s.Next, n(p)) }, nil
	}
	return func(p *vector.State) { vector.PopFront(p, s.Elements, s.Next, n(p)) }, nil
}

// onHeader links a primitive that does something to a header.
func (l *Linker) onHeader(e *bmv2.Expr, do func(*vector.State, *vector.Header)) (vector.Step, error) {
	r, err := l.Header(e)
	if err != nil {
		return nil, err
	}
	if h := r.H; h != nil {
		return func(p *vector.State) { do(p, h) }, nil
	}
	pick := r.Pick
	return func(p *vector.State) {
		if h := pick(p); h != nil {
			do(p, h)
		}
	}, nil
}

// addHeader makes a header valid with all fields zero and adds it to the
// packet's length. It leaves a valid header unchanged.
func (l *Linker) addHeader(e *bmv2.Expr) (vector.Step, error) {
	return l.onHeader(e, func(p *vector.State, h *vector.Header) {
		if h.IsValid(p) {
			return
		}
		h.Clear(p)
		h.MarkValid(p)
		p.Length += h.Bytes(p)
	})
}

func removeHeader(p *vector.State, h *vector.Header) {
	if h.IsValid(p) {
		p.Length -= h.Bytes(p)
		h.MarkInvalid(p)
	}
}
