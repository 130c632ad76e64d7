package types

import (
	"slices"

	"github.com/p4lb/p4lb/internal/p4/syntax"
	"github.com/p4lb/p4lb/internal/text/lists"
)

// construct checks Type(args) as an expression.
func (c *checker) construct(e *syntax.CallExpr, t Type) (*Call, TypeAndValue) {
	if t == Invalid {
		c.args(e.Args)
		return nil, invalid
	}
	c.record(e.Fun, TypeAndValue{Type: t, IsType: true, known: true})
	if _, ok := t.(*Extern); c.env.place != nowhere && !c.env.table && !(ok && c.env.place != inAction) {
		c.errorf(e.Pos(), "%s cannot be constructed %s", t, c.env.place)
		c.args(e.Args)
		return nil, invalid
	}
	if x, ok := t.(*Extern); ok && isAbstract(x) {
		c.errorf(e.Pos(), "the extern %s has abstract methods: declare an instance that implements them", x)
		c.args(e.Args)
		return nil, invalid
	}
	call := c.instantiate(e.Pos(), t, e.Args)
	if call == nil {
		return nil, invalid
	}
	return call, TypeAndValue{Type: call.Result, known: true}
}

func isAbstract(x *Extern) bool {
	return slices.ContainsFunc(x.Methods, func(m *Method) bool { return m.Decl.Abstract })
}

// instantiate checks the arguments of a constructor. If t has no type arguments, it
// infers them.
func (c *checker) instantiate(pos syntax.Pos, t Type, args []*syntax.Arg) *Call {
	cands, ok := c.constructors(pos, t)
	if !ok {
		c.args(args)
		return nil
	}
	// Infer an argument _: call the constructor of the generic type with the other
	// arguments given.
	if g := genericOf(t); g != nil && g.self != t && hasDontCare(argsOf(t)) {
		return c.instantiatePartly(pos, t, args)
	}
	cand, call := c.choose(pos, namedOf(t).Name, cands, args, nil)
	if call == nil {
		return nil
	}
	if !unspecialized(cand.typ) {
		call.TypeArgs = argsOf(t)
	}
	return constructed(call, cand.typ)
}

// constructed completes a call of t's constructor with the type of the result.
func constructed(call *Call, t Type) *Call {
	call.Kind = Constructor
	call.Result = t
	if unspecialized(t) {
		call.Result = genericOf(t).instance(call.TypeArgs)
	}
	call.Type = &Func{Params: call.Type.Params, Result: call.Result}
	if x, ok := call.Result.(*Extern); ok {
		// The constructor of the instance, which was substituted from the generic
		// constructor.
		ctor := call.Method.Decl
		call.Method = lists.First(x.Methods, func(m *Method) bool { return m.Decl == ctor })
	}
	return call
}

// instantiatePartly infers the type arguments that are written _.
func (c *checker) instantiatePartly(pos syntax.Pos, t Type, args []*syntax.Arg) *Call {
	g := genericOf(t)
	m := map[*TypeParam]Type{}
	var open []*TypeParam
	for i, p := range g.params {
		if a := argsOf(t)[i]; a != wildcard {
			m[p] = a
		} else {
			open = append(open, p)
		}
	}
	cands, _ := c.constructors(pos, g.self)
	for i := range cands {
		cands[i].sig = substFunc(cands[i].sig, m)
		cands[i].vars, cands[i].open = open, true
	}
	_, call := c.choose(pos, namedOf(t).Name, cands, args, nil)
	if call == nil {
		return nil
	}
	for i, p := range open {
		m[p] = call.TypeArgs[i]
	}
	call.TypeArgs = make([]Type, len(g.params))
	for i, p := range g.params {
		call.TypeArgs[i] = m[p]
	}
	return constructed(call, g.self)
}

// constructors returns the constructors of t, or reports why it has none.
func (c *checker) constructors(pos syntax.Pos, t Type) ([]candidate, bool) {
	switch t := t.(type) {
	case *Extern:
		var cands []candidate
		for _, m := range t.Methods {
			if m.IsCtor {
				cands = append(cands, candidate{sig: m.Type, vars: openParams(t), method: m, typ: t})
			}
		}
		if len(cands) == 0 {
			c.errorf(pos, "the extern %s has no constructor: it cannot be instantiated", t)
		}
		return cands, len(cands) > 0
	case *Parser:
		if t.Decl.TypeOnly {
			c.errorf(pos, "%s is a parser type, only parsers can be instantiated", t)
			return nil, false
		}
		return c.blockConstructors(t, t.Decl), true
	case *Control:
		if t.Decl.TypeOnly {
			c.errorf(pos, "%s is a control type, only controls can be instantiated", t)
			return nil, false
		}
		return c.blockConstructors(t, t.Decl), true
	case *Package:
		return c.blockConstructors(t, t.Decl), true
	}
	c.errorf(pos, "%s cannot be instantiated: only externs, parsers, controls and packages can", t)
	return nil, false
}

// openParams returns the type parameters of t for which there are no arguments.
func openParams(t Type) []*TypeParam {
	if unspecialized(t) {
		return genericOf(t).params
	}
	return nil
}

// blockConstructors returns the constructors of the parsers, controls or packages
// with one name. Packages must have all type arguments. For parsers and controls,
// they may be inferred from the use of the instance.
func (c *checker) blockConstructors(t Type, decl syntax.Node) []candidate {
	_, pkg := t.(*Package)
	cands := []candidate{{sig: ctorOf(t), vars: openParams(t), typ: t, open: !pkg}}
	for o := c.info.Defs[decl].next; o != nil; o = o.next {
		u := o.Type
		if args := argsOf(t); !unspecialized(t) && len(args) > 0 {
			if len(paramsOf(u)) != len(args) {
				continue
			}
			u = genericOf(u).instance(args)
		}
		cands = append(cands, candidate{sig: ctorOf(u), vars: openParams(u), typ: u, open: !pkg})
	}
	return cands
}

// refine infers the type arguments of a generic parser or control instance from the
// type that its context requires.
func (c *checker) refine(e syntax.Expr, tv TypeAndValue, want Type) TypeAndValue {
	g := genericOf(tv.Type)
	x, ok := syntax.Unparen(e).(*syntax.CallExpr)
	if g == nil || !ok || !hasDontCare(argsOf(tv.Type)) {
		return tv
	}
	in := newInference(g.params)
	in.unifyApply(applyOf(g.self), applyOf(want))
	call := c.info.Calls[x]
	if call == nil || call.Kind != Constructor {
		return tv
	}
	for i, t := range in.bound {
		if t == nil {
			in.bound[i] = argsOf(tv.Type)[i]
		}
	}
	tv.Type = g.instance(in.bound)
	call.TypeArgs, call.Result = in.bound, tv.Type
	call.Type = &Func{Params: call.Type.Params, Result: tv.Type}
	c.record(x, tv)
	return tv
}

func applyOf(t Type) *Func {
	if b := blockOf(t); b != nil {
		return b.Apply
	}
	return nil
}
