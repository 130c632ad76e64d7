package types

import (
	"github.com/p4lb/p4lb/internal/p4/syntax"
)

// funcDecl checks a function or the prototype of an extern function.
func (c *checker) funcDecl(d *syntax.FuncDecl) {
	c.annotations(d.Annotations)
	f := &Func{Result: Void}
	o := &Object{Kind: FuncObj, Name: d.Name.Value, Decl: d, Type: f, Parent: c.env.owner}
	env := env{owner: o, place: inFunction, apply: d.Name}
	c.within(env, func() {
		f.TypeParams = c.typeParams(d.TypeParams)
		f.Result = c.resultType(d)
		f.Params = c.params(d.Params, false)
		c.forbid(f.Params, false)
		if d.Body != nil {
			c.env.result = f.Result
			c.noOptional(f)
			c.followOut(f)
			c.body(d.Body, f)
		}
	})
	c.declare(o, d, d.Name)
}

// noOptional refuses @optional parameters of declarations with a body.
func (c *checker) noOptional(f *Func) {
	for _, p := range f.Params {
		if p.Optional {
			c.errorf(p.Decl.Pos(), "parameter %s cannot be @optional: only parameters of externs, packages and apply can", p.Name)
		}
	}
}

// body checks the body of a function or abstract method.
func (c *checker) body(b *syntax.BlockStmt, f *Func) {
	c.stmts(b.Stmts)
	if f.Result != Void && f.Result != Invalid && !terminates(b) {
		c.errorf(c.env.apply.Pos(), "%s must return a value of type %s on all paths", c.env.apply.Value, f.Result)
	}
}

func (c *checker) actionDecl(d *syntax.ActionDecl) {
	c.annotations(d.Annotations)
	f := &Func{Result: Void}
	o := &Object{Kind: ActionObj, Name: d.Name.Value, Decl: d, Type: f, Parent: c.env.owner}
	env := env{owner: o, place: inAction, apply: d.Name, control: c.env.control, parser: c.env.parser}
	c.within(env, func() {
		f.Params = c.params(d.Params, false)
		c.forbid(f.Params, false)
		plain := false
		for _, p := range f.Params {
			p.action = true
			plain = plain || p.Dir == syntax.NoDir
			if plain && p.Dir != syntax.NoDir {
				c.errorf(p.Decl.Pos(), "parameter %s has a direction and must stand before the control plane's parameters, which have none", p.Name)
			}
			switch p.Type.(type) {
			case *Extern:
				c.errorf(p.Decl.Pos(), "an action cannot have the parameter %s of the extern type %s", p.Name, p.Type)
			}
			if p.Type == Int || p.Type == String {
				c.errorf(p.Decl.Pos(), "an action cannot have the parameter %s of type %s", p.Name, p.Type)
			}
		}
		c.noOptional(f)
		c.followOut(f)
		c.stmts(d.Body.Stmts)
	})
	c.declare(o, d, d.Name)
	c.controlPlaneName(o, d.Annotations)
}

func (c *checker) parserDecl(d *syntax.ParserDecl) {
	c.blockDecl(d, &Parser{Decl: d}, env{parser: true}, func() { c.states(d) })
}

// blockDecl checks a parser or control of type t. The function code checks its body
// after the declarations.
func (c *checker) blockDecl(d syntax.Decl, t Type, e env, code func()) {
	b := blockOf(t)
	b.Name = d.DeclName().Value
	body, _ := BodyOf(t)
	c.annotations(body.Annotations)
	o := &Object{Kind: TypeObj, Name: b.Name, Decl: d, Type: t}
	e.owner, e.apply = o, body.Name
	c.within(e, func() {
		ps := c.generics(&b.Named, t, body.TypeParams)
		b.Apply, b.Ctor = c.signatures(ps, body.Params, body.CtorParams, t)
		if body.TypeOnly {
			return
		}
		c.noOptional(b.Ctor)
		c.followOut(b.Apply)
		c.block(func() {
			for _, l := range body.Locals {
				c.decl(l)
			}
			code()
		})
	})
	c.declare(o, d, body.Name)
}

// signatures creates the signatures of apply and of the constructor. Their
// parameters share one scope.
func (c *checker) signatures(ps []*TypeParam, apply, ctor []*syntax.Param, t Type) (a, k *Func) {
	a = &Func{TypeParams: ps, Params: c.params(apply, false), Result: Void}
	c.forbid(a.Params, false)
	k = &Func{TypeParams: ps, Params: c.params(ctor, true), Result: t}
	c.forbid(k.Params, true)
	c.checkConcrete(k.Params)
	for _, p := range k.Params {
		if _, ok := p.Type.(*Parser); ok && c.env.control {
			c.errorf(p.Decl.Pos(), "parameter %s has type %s, but a control cannot apply a parser", p.Name, p.Type)
		}
		if _, ok := p.Type.(*Control); ok && c.env.parser {
			c.errorf(p.Decl.Pos(), "parameter %s has type %s, but a parser cannot apply a control", p.Name, p.Type)
		}
	}
	return a, k
}

func (c *checker) controlDecl(d *syntax.ControlDecl) {
	c.blockDecl(d, &Control{Decl: d}, env{control: true}, func() {
		if d.Body != nil {
			c.env.place = inApply
			c.annotations(d.Body.Annotations)
			c.block(func() { c.stmts(d.Body.Stmts) })
		}
	})
}

// instBody checks the implementations of abstract methods in an instance.
func (c *checker) instBody(d *syntax.InstDecl, o *Object, call *Call) {
	x, ok := o.Type.(*Extern)
	if !ok {
		if d.HasBody && o.Type != Invalid {
			c.errorf(d.Pos(), "only instances of externs can have a body of methods, %s has type %s", d.Name.Value, o.Type)
			c.implement(d, o, nil, nil)
		}
		return
	}
	missing := map[string]*Method{}
	for _, m := range x.Methods {
		if m.Decl.Abstract && m.Decl.Annotations.Get("optional") == nil {
			missing[m.Name] = m
		}
	}
	if d.HasBody && !isAbstract(x) {
		c.errorf(d.Pos(), "the extern %s has no abstract methods for %s to implement", x, d.Name.Value)
		c.implement(d, o, nil, nil)
		return
	}
	c.implement(d, o, x, missing)
	for _, m := range x.Methods {
		if missing[m.Name] == m && call != nil {
			c.errorf(d.Pos(), "%s must implement the abstract method %s%s of %s", d.Name.Value, m.Name, m.Type, x)
		}
	}
}

// implement checks the methods in an instance's body and removes them from missing.
func (c *checker) implement(d *syntax.InstDecl, o *Object, x *Extern, missing map[string]*Method) {
	env := c.env
	env.this = o.Type
	c.within(env, func() {
		for _, b := range d.Body {
			f, ok := b.(*syntax.FuncDecl)
			if !ok {
				c.decl(b)
				continue
			}
			sig := c.methodBody(o, f)
			if x != nil {
				delete(missing, f.Name.Value)
				c.checkImplementation(x, f, sig)
			}
		}
	})
}

func (c *checker) methodBody(inst *Object, d *syntax.FuncDecl) *Func {
	f := &Func{Result: Void}
	o := &Object{Kind: FuncObj, Name: d.Name.Value, Type: f, Parent: inst}
	env := c.env
	env.owner, env.place, env.apply = o, inFunction, d.Name
	c.within(env, func() {
		if len(d.TypeParams) > 0 {
			c.errorf(d.TypeParams[0].Pos(), "the implementation of an abstract method cannot have type parameters")
			f.TypeParams = c.typeParams(d.TypeParams)
		}
		f.Result = c.resultType(d)
		f.Params = c.params(d.Params, false)
		c.env.result = f.Result
		c.followOut(f)
		c.body(d.Body, f)
	})
	c.declare(o, d, d.Name)
	return f
}

func (c *checker) checkImplementation(x *Extern, d *syntax.FuncDecl, sig *Func) {
	m := x.method(d.Name.Value)
	if m == nil || !m.Decl.Abstract {
		c.errorf(d.Pos(), "%s has no abstract method %s%s", x, d.Name.Value, c.suggest(d.Name.Value, x.methodNames))
		return
	}
	if !sameSignature(sig, m.Type) {
		c.errorf(d.Pos(), "%s is declared as %s %s%s in %s, not as %s %s%s", d.Name.Value,
			m.Type.Result, m.Name, m.Type, x, sig.Result, d.Name.Value, sig)
	}
}

// sameSignature compares an implementation with its prototype. The implementation
// may omit @optional parameters at the end.
func sameSignature(sig, proto *Func) bool {
	if len(sig.Params) > len(proto.Params) || !matches(proto.Result, sig.Result) {
		return false
	}
	for i, q := range proto.Params {
		if i >= len(sig.Params) {
			if !q.Optional {
				return false
			}
			continue
		}
		if p := sig.Params[i]; p.Dir != q.Dir || !matches(q.Type, p.Type) {
			return false
		}
	}
	return true
}
