package types

import (
	"math/big"
	"slices"

	"github.com/p4lb/p4lb/internal/p4/syntax"
	"github.com/p4lb/p4lb/internal/text/lists"
)

// states checks the states of a parser. States may be used before their
// declaration, so it declares all of them first.
func (c *checker) states(d *syntax.ParserDecl) {
	c.push()
	defer c.pop()
	for _, n := range []string{"accept", "reject"} {
		o := &Object{Kind: StateObj, Name: n, Type: stateType, Parent: c.env.owner, used: true}
		c.insert(o, d.Pos())
	}
	for _, s := range d.States {
		if s.Name.Value == "accept" || s.Name.Value == "reject" {
			c.errorf(s.Name.Pos(), "the state %s is built in and cannot be declared", s.Name.Value)
			c.info.Defs[s] = c.scope.names[s.Name.Value]
			continue
		}
		c.declare(&Object{Kind: StateObj, Type: stateType}, s, s.Name)
	}
	start := c.scope.names["start"]
	if start == nil || start.Kind != StateObj {
		c.errorf(d.Name.Pos(), "parser %s has no state start", d.Name.Value)
	}
	for _, s := range d.States {
		c.annotations(s.Annotations)
		env := c.env
		env.place = inState
		c.within(env, func() {
			c.stmts(s.Stmts)
			switch t := s.Transition.(type) {
			case nil:
				c.warnf(s.Name.Pos(), "state %s has no transition: it rejects the packet", s.Name.Value)
			case *syntax.Name:
				c.next(t)
			case *syntax.SelectExpr:
				c.selectExpr(t)
			}
		})
	}
	c.reachable(d)
}

// next resolves the target state of a transition.
func (c *checker) next(n *syntax.Name) {
	o := c.find(n, "a state", func(o *Object) bool { return o.Kind == StateObj })
	if o == nil {
		c.record(n, invalid)
		return
	}
	c.record(n, TypeAndValue{Type: stateType, known: true})
}

func (c *checker) selectExpr(e *syntax.SelectExpr) {
	c.record(e, TypeAndValue{Type: stateType})
	args := make([]Type, len(e.Args))
	for i, a := range e.Args {
		tv := c.value(a)
		args[i] = tv.Type
		if !selectable(tv.Type) {
			c.errorf(a.Pos(), "select cannot be made on %s, which has type %s", show(a), tv.Type)
			args[i] = Invalid
		}
		if tv.Type == Int {
			c.errorf(a.Pos(), "select needs values with a width, but %s is an int", show(a))
			args[i] = Invalid
		}
	}
	c.env.inSelect = true
	for i, k := range e.Cases {
		c.keyset(k.Key, args)
		c.next(k.Next)
		if isDefault(k.Key) && i < len(e.Cases)-1 {
			c.warnf(e.Cases[i+1].Pos(), "this case is never reached: %s before it matches everything", show(k.Key))
			for _, rest := range e.Cases[i+1:] {
				c.keyset(rest.Key, args)
				c.next(rest.Next)
			}
			break
		}
	}
	c.env.inSelect = false
}

func isDefault(e syntax.Expr) bool {
	_, ok := e.(*syntax.DefaultExpr)
	return ok || isDontCare(e)
}

func selectable(t Type) bool {
	switch t := t.(type) {
	case *Bits, *Enum:
		return true
	case *New:
		return selectable(t.Underlying)
	case *Tuple:
		return !slices.ContainsFunc(t.Elems, func(e Type) bool { return !selectable(e) })
	}
	return t == Bool || t == Invalid || t == Error || t == Int
}

// keyset checks the key of a select case against the types of select's arguments.
func (c *checker) keyset(k syntax.Expr, args []Type) {
	if isDefault(k) {
		c.record(k, dontCare)
		return
	}
	if l, ok := k.(*syntax.ListExpr); ok {
		c.keyList(l, args)
		return
	}
	if len(args) == 1 {
		t, ok := args[0].(*Tuple)
		if !ok {
			c.keyElem(k, args[0], "select")
			return
		}
		args = t.Elems
	}
	tv := c.value(k)
	// One key can match all arguments: a value set or a constant tuple.
	t := tv.Type
	if s, ok := t.(*Set); ok {
		t = s.Elem
	}
	if t == Invalid {
		return
	}
	got := flatten(t)
	ok := len(got) == len(args)
	for i := 0; ok && i < len(got); i++ {
		ok = matches(args[i], got[i]) || keyFits(args[i], got[i])
	}
	if !ok {
		c.errorf(k.Pos(), "the key %s has type %s, but select has arguments of %s", show(k), t, joinTypes(args))
	}
}

func (c *checker) keyList(l *syntax.ListExpr, args []Type) {
	if len(args) == 1 {
		if t, ok := args[0].(*Tuple); ok {
			args = t.Elems
		}
	}
	if len(l.Elems) != len(args) {
		for _, e := range l.Elems {
			c.expr(e)
		}
		c.errorf(l.Pos(), "the key has %s, but select has %s", count(len(l.Elems), "element"), count(len(args), "argument"))
		return
	}
	known := true
	elems := make([]Type, len(args))
	for i, e := range l.Elems {
		tv := c.keyElem(e, args[i], "select")
		known = known && tv.known
		elems[i] = args[i]
	}
	c.record(l, TypeAndValue{Type: &Set{Elem: &Tuple{Elems: elems}}, known: known})
}

func keyFits(want, got Type) bool {
	en, ok := want.(*Enum)
	return ok && en.Repr != nil && identical(en.Repr, got)
}

// flatten returns the scalar parts of a struct or tuple.
func flatten(t Type) []Type {
	switch t := t.(type) {
	case *Struct:
		return slices.Concat(lists.Map(t.Fields, func(f Field) []Type { return flatten(f.Type) })...)
	case *Tuple:
		return slices.Concat(lists.Map(t.Elems, flatten)...)
	}
	return []Type{t}
}

// keyElem checks one element of a keyset against the type that it is matched with.
func (c *checker) keyElem(e syntax.Expr, want Type, to string) TypeAndValue {
	e2 := syntax.Unparen(e)
	if isDefault(e2) {
		return c.record(e, dontCare)
	}
	tv := c.value(e)
	if tv.Type == Invalid || want == Invalid {
		return tv
	}
	if l, ok := e2.(*syntax.ListExpr); ok && len(l.Elems) == 1 {
		if _, ok := want.(*Tuple); !ok {
			return c.record(e, c.keyElem(l.Elems[0], want, to))
		}
	}
	if b := c.sideEffects(e2); b != nil {
		c.errorf(b.Pos(), "%s cannot be called in the key of a select", show(b.Fun))
		return invalid
	}
	elem := want
	if en, ok := want.(*Enum); ok && en.Repr != nil && !fitsKey(tv.Type, want) {
		elem = en.Repr
	}
	switch x := e2.(type) {
	case *syntax.RangeExpr:
		return c.keyPair(e, x.Lo, x.Hi, elem, to)
	case *syntax.MaskExpr:
		out := c.keyPair(e, x.X, x.Mask, elem, to)
		// In the reference implementation, a value with bits outside of its mask
		// never matches.
		v, mask := Number(c.info.Types[x.X].Value), Number(c.info.Types[x.Mask].Value)
		if v != nil && mask != nil && v.Sign() >= 0 && mask.Sign() >= 0 && new(big.Int).AndNot(v, mask).Sign() != 0 {
			c.warnf(x.Pos(), "%s has bits set that the mask %s leaves out", show(x.X), show(x.Mask))
		}
		return out
	}
	if s, ok := tv.Type.(*Set); ok {
		if got := flatten(s.Elem); len(got) != 1 || !matches(elem, got[0]) {
			c.errorf(e.Pos(), "%s has elements of type %s, but %s needs %s", show(e), s.Elem, to, want)
			return invalid
		}
		return tv
	}
	return c.assignValue(e, tv, elem, to)
}

func fitsKey(t, want Type) bool {
	if s, ok := t.(*Set); ok {
		t = s.Elem
	}
	return identical(t, want)
}

// keyPair converts both ends of a range or the value and mask of a mask.
func (c *checker) keyPair(e, x, y syntax.Expr, elem Type, to string) TypeAndValue {
	a := c.assignValue(x, c.info.Types[x], elem, to)
	b := c.assignValue(y, c.info.Types[y], elem, to)
	if a.Type == Invalid || b.Type == Invalid {
		return c.record(e, invalid)
	}
	for _, end := range []opnd{{x, &a}, {y, &b}} {
		if !end.tv.known {
			c.errorf(end.e.Pos(), "%s in %s is not known at compile time", show(end.e), show(e))
			return c.record(e, invalid)
		}
	}
	if r, ok := syntax.Unparen(e).(*syntax.RangeExpr); ok {
		lo, hi := Number(a.Value), Number(b.Value)
		if lo != nil && hi != nil && lo.Cmp(hi) > 0 {
			c.warnf(r.Pos(), "the range %s is empty", show(r))
		}
	}
	return c.record(e, TypeAndValue{Type: &Set{Elem: elem}, known: a.known && b.known})
}

// sideEffects returns the first call in a keyset other than isValid, or nil.
func (c *checker) sideEffects(e syntax.Expr) (bad *syntax.CallExpr) {
	if !c.env.inSelect {
		return nil
	}
	syntax.Inspect(e, func(n syntax.Node) bool {
		if x, ok := n.(*syntax.CallExpr); ok && bad == nil {
			if k := c.info.Calls[x]; k != nil && k.Kind != BuiltinCall {
				bad = x
			}
		}
		return bad == nil
	})
	return bad
}

// reachable warns about unreachable states, and reports a parser without a path
// from start to accept or reject.
func (c *checker) reachable(d *syntax.ParserDecl) {
	byObj := map[*Object]*syntax.StateDecl{}
	var start *syntax.StateDecl
	for _, s := range d.States {
		byObj[c.info.Defs[s]] = s
		if s.Name.Value == "start" {
			start = s
		}
	}
	if start == nil {
		return
	}
	seen := map[*syntax.StateDecl]bool{start: true}
	ends, unknown := false, false
	for todo := []*syntax.StateDecl{start}; len(todo) > 0; {
		s := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		targets := transitions(s)
		ends = ends || targets == nil || isSelect(s)
		for _, n := range targets {
			o := c.info.Uses[n]
			next := byObj[o]
			switch {
			case o == nil:
				unknown = true
			case next == nil:
				ends = true
			case !seen[next]:
				seen[next] = true
				todo = append(todo, next)
			}
		}
	}
	if !ends && !unknown {
		c.errorf(d.Name.Pos(), "parser %s never reaches accept or reject", d.Name.Value)
	}
	for _, s := range d.States {
		if !seen[s] && !unknown && s.Name.Value != "accept" && s.Name.Value != "reject" {
			c.warnf(s.Name.Pos(), "state %s is never reached", s.Name.Value)
		}
	}
}

// isSelect reports whether s ends in a select, which rejects if no case matches.
func isSelect(s *syntax.StateDecl) bool {
	e, ok := s.Transition.(*syntax.SelectExpr)
	return ok && !(len(e.Cases) > 0 && isDefault(e.Cases[len(e.Cases)-1].Key))
}

func transitions(s *syntax.StateDecl) []*syntax.Name {
	switch t := s.Transition.(type) {
	case *syntax.Name:
		return []*syntax.Name{t}
	case *syntax.SelectExpr:
		return lists.Map(t.Cases, func(k *syntax.SelectCase) *syntax.Name { return k.Next })
	}
	return nil
}
