package describe

import (
	"math/big"

	"github.com/p4lb/p4lb/internal/p4/names"
	"github.com/p4lb/p4lb/internal/p4/syntax"
	"github.com/p4lb/p4lb/internal/p4/types"
)

// A site is an instance of a parser, control or extern object.
type site struct {
	typ   types.Type
	body  types.Body
	sig   *types.Func
	name  string
	notes syntax.Annotations
	at    syntax.Node
	// inline is set if the instance is constructed in an argument.
	inline bool
	args   []any // the constructor's arguments: constants, sites, or nil if unknown
	scope  *scope

	made     []*site // sites constructed in the constructor's arguments
	locals   map[*syntax.InstDecl]*site
	direct   []*site // sites of types that are applied directly
	byCall   map[*syntax.CallExpr]*site
	reached  bool
	tables   map[*syntax.TableDecl]bool
	sets     map[*syntax.ValueSetDecl]bool
	noAction *types.Object // see view.noAction
}

// A scope binds constructor parameters and type parameters in a site's body.
type scope struct {
	parent *scope
	site   *site
	vals   map[*types.Object]any
	tsub   map[*types.TypeParam]types.Type
}

func (s *scope) lookup(o *types.Object) any {
	for ; s != nil; s = s.parent {
		if v, ok := s.vals[o]; ok {
			return v
		}
	}
	return nil
}

func (s *scope) subst(t types.Type) types.Type {
	if t == nil || len(s.tsub) == 0 {
		return t
	}
	return types.Subst(t, s.tsub)
}

// maxSites bounds the instances of one program: a few lines of nested declarations
// could exhaust the memory.
const maxSites = 1 << 16

// maxSteps bounds the statements visited. The body of a function counts once for
// each call.
const maxSteps = 1 << 20

// newSite evaluates a constructor call. For parsers and controls, it also evaluates
// the instances declared inside.
func (v *view) newSite(call *types.Call, outer *scope, name string, at syntax.Node) *site {
	s := &site{
		typ: outer.subst(call.Result), sig: call.Type, name: name, at: at,
		locals: map[*syntax.InstDecl]*site{}, byCall: map[*syntax.CallExpr]*site{},
		tables: map[*syntax.TableDecl]bool{}, sets: map[*syntax.ValueSetDecl]bool{},
	}
	if v.sites++; v.sites > maxSites {
		return s
	}
	if b, ok := types.BodyOf(s.typ); ok {
		s.body = b
		v.enter(s, call, outer)
		return s
	}
	for k := range call.Args {
		if pipe := v.pipes[at]; pipe != "" {
			v.prefix = pipe + "."
		}
		s.args = append(s.args, v.argument(argExpr(call, k), outer, ""))
		v.prefix = ""
	}
	return s
}

// enter creates the scope of a parser's or control's body and the instances in it.
func (v *view) enter(s *site, call *types.Call, outer *scope) {
	if s.name == "" {
		s.name = v.prefix + names.Block(s.body)
		v.prefix = ""
	}
	s.scope = &scope{site: s, vals: map[*types.Object]any{}, tsub: map[*types.TypeParam]types.Type{}}
	for i, p := range s.body.TypeParams {
		if o := v.info.Defs[p]; o != nil && i < len(s.body.TypeArgs) {
			if tp, ok := o.Type.(*types.TypeParam); ok {
				s.scope.tsub[tp] = s.body.TypeArgs[i]
			}
		}
	}
	for k, p := range s.body.CtorParams {
		if k >= len(call.Args) {
			break
		}
		x := argExpr(call, k)
		a := v.argument(x, outer, s.name+"."+p.Name.Value)
		if inner, ok := a.(*site); ok && inner.at == x {
			s.made = append(s.made, inner)
		}
		s.args = append(s.args, a)
		s.scope.vals[v.info.Defs[p]] = a
	}
	for _, d := range s.body.Locals {
		if inst, ok := d.(*syntax.InstDecl); ok && v.info.Insts[inst] != nil {
			s.locals[inst] = v.newSite(v.info.Insts[inst], s.scope, names.Declared(s.name, inst.Annotations, inst.Name), inst)
			s.locals[inst].notes = inst.Annotations
		}
	}
}

// argExpr returns the k-th argument, or the parameter's default, or nil if there is
// neither.
func argExpr(call *types.Call, k int) syntax.Expr {
	if x := call.Args[k]; x != nil || call.Type == nil || k >= len(call.Type.Params) {
		return x
	}
	return call.Type.Params[k].Default
}

// argument evaluates a constructor argument. If the argument constructs an object,
// name is the object's name.
func (v *view) argument(x syntax.Expr, outer *scope, name string) any {
	if x == nil {
		return nil
	}
	if c, ok := syntax.Unparen(x).(*syntax.CallExpr); ok {
		if made := v.info.Calls[c]; made != nil && made.Kind == types.Constructor {
			s := v.newSite(made, outer, name, x)
			s.inline = true
			return s
		}
	}
	return v.fold(x, outer)
}

func (s *site) extern() *types.Extern {
	x, _ := s.typ.(*types.Extern)
	return x
}

// arg returns the constructor argument for the parameter called name.
func (s *site) arg(name string) any {
	if s.sig == nil {
		return nil
	}
	for i, p := range s.sig.Params {
		if p.Name == name && i < len(s.args) {
			return s.args[i]
		}
	}
	return nil
}

// fold evaluates an expression whose constructors have all run. It returns a
// constant, an instance, or nil.
func (v *view) fold(x syntax.Expr, s *scope) any {
	x = syntax.Unparen(x)
	if val := v.info.Types[x].Value; val != nil {
		return val
	}
	switch x := x.(type) {
	case *syntax.Name:
		o := v.info.Uses[x]
		if o == nil {
			return nil
		}
		if o.Value != nil {
			return o.Value
		}
		switch d := o.Decl.(type) {
		case *syntax.InstDecl:
			for c := s; c != nil; c = c.parent {
				if c.site != nil && c.site.locals[d] != nil {
					return c.site.locals[d]
				}
			}
			if i := v.top[d]; i != nil {
				return i
			}
		case *syntax.ConstDecl:
			return v.fold(d.Value, s)
		}
		return s.lookup(o)
	case *syntax.UnaryExpr:
		switch a := v.fold(x.X, s).(type) {
		case bool:
			if x.Op == syntax.Not {
				return !a
			}
		case *big.Int:
			return types.FoldUnary(x.Op, a, s.subst(v.info.Types[x].Type))
		}
		return nil
	case *syntax.BinaryExpr:
		return v.foldBinary(x, s)
	case *syntax.CondExpr:
		if c, ok := v.fold(x.Cond, s).(bool); ok {
			if c {
				return v.fold(x.Then, s)
			}
			return v.fold(x.Else, s)
		}
	case *syntax.CastExpr:
		if n, ok := v.fold(x.X, s).(*big.Int); ok {
			if t := s.subst(v.info.Types[x].Type); t != types.Bool {
				return types.Wrap(n, t)
			}
		}
	}
	return nil
}

func (v *view) foldBinary(x *syntax.BinaryExpr, s *scope) any {
	a := v.fold(x.X, s)
	if l, ok := a.(bool); ok && (x.Op == syntax.AndAnd || x.Op == syntax.OrOr) {
		if l == (x.Op == syntax.OrOr) {
			return l
		}
		return v.fold(x.Y, s)
	}
	b := v.fold(x.Y, s)
	if _, ok := a.(*site); ok || a == nil || b == nil {
		return nil
	}
	switch x.Op {
	case syntax.Eql:
		return types.EqualValues(a, b)
	case syntax.Neq:
		return !types.EqualValues(a, b)
	}
	m, ok1 := a.(*big.Int)
	n, ok2 := b.(*big.Int)
	if !ok1 || !ok2 {
		return nil
	}
	typeOf := func(x syntax.Expr) types.Type { return s.subst(v.info.Types[syntax.Unparen(x)].Type) }
	r := types.Fold(x.Op, m, n, typeOf(x.X), typeOf(x.Y))
	if n, ok := r.(*big.Int); ok {
		return types.Wrap(n, typeOf(x))
	}
	return r
}
