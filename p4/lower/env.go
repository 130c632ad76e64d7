package lower

import (
	"github.com/p4lb/p4lb/bmv2"
	"github.com/p4lb/p4lb/p4/syntax"
	"github.com/p4lb/p4lb/p4/types"
)

// An env binds the names of one activation: of a block, an inlined call, an
// action. Declarations are unique, so a map from object to value is enough.
type env struct {
	l      *lowerer
	parent *env
	vals   map[*types.Object]value
	tsub   map[*types.TypeParam]types.Type
	inst   *instance // the parser or control that the code belongs to
	ret    *label    // where return goes
	result value     // where return leaves its value
	exit   func()    // what remains to be copied out when the program exits here
	brk    *label
	cont   *label
	loops  int // how many loops are open; what they declare must be reset
	action bool
}

func (e *env) child() *env {
	c := *e
	c.parent, c.vals = e, nil
	return &c
}

func (e *env) bind(o *types.Object, v value) {
	if e.vals == nil {
		e.vals = map[*types.Object]value{}
	}
	e.vals[o] = v
}

func (e *env) lookup(o *types.Object) (value, bool) {
	for ; e != nil; e = e.parent {
		if v, ok := e.vals[o]; ok {
			return v, true
		}
	}
	return nil, false
}

// bindTypes makes params stand for args, which are read in the caller's env.
func (e *env) bindTypes(params []*types.TypeParam, args []types.Type, caller *env) {
	if len(params) == 0 {
		return
	}
	sub := make(map[*types.TypeParam]types.Type, len(e.tsub)+len(params))
	for p, t := range e.tsub {
		sub[p] = t
	}
	for i, p := range params {
		if i < len(args) {
			sub[p] = caller.subst(args[i])
		}
	}
	e.tsub = sub
}

func (e *env) subst(t types.Type) types.Type {
	if t == nil || len(e.tsub) == 0 {
		return t
	}
	return types.Subst(t, e.tsub)
}

// typeOf is the type of an expression in this activation.
func (e *env) typeOf(x syntax.Expr) types.Type { return e.subst(e.l.info.Types[x].Type) }

// An instance is an extern object, parser, control or package made at compile time.
type instance struct {
	typ   types.Type
	decl  *syntax.InstDecl // nil where it is made in an argument
	name  string           // the control plane's name
	args  []value          // constructor arguments
	env   *env             // of a parser's or control's body: constructor parameters and locals
	outer *env             // where the instantiation stands
	at    syntax.Node

	applied []binding             // the arguments of the first application
	active  *env                  // its latest application
	vars    map[variable]value    // its local variables
	params  map[string]value      // where parts of its parameters are copied to
	table   *table                // of direct counters and meters
	users   map[*bmv2.Action]bool // the actions that execute a direct counter or meter
	target  value                 // where a direct meter leaves its result
	inputs  []*ex                 // of an action selector
	ready   bool                  // its locals are made
	block   block
}

// A variable is a declared one; in generic code, for one set of type arguments.
type variable struct {
	obj *types.Object
	typ string
}

func (i *instance) extern() *types.Extern {
	x, _ := i.typ.(*types.Extern)
	return x
}

// typeLabel is the name of the parser's or control's declaration; a @name on
// it does not count.
func (i *instance) typeLabel() string {
	if b, ok := types.BodyOf(i.typ); ok {
		return b.Name.Value
	}
	return i.name
}

// instantiate evaluates a constructor call.
func (l *lowerer) instantiate(d *syntax.InstDecl, call *types.Call, e *env, name string) *instance {
	l.spend(costCall)
	i := &instance{typ: e.subst(call.Result), decl: d, name: name, outer: e, at: l.at, block: l.block}
	if d != nil {
		i.at = d
	}
	switch t := i.typ.(type) {
	case *types.Control:
		i.env = l.bodyEnv(i, t.Ctor, call, e)
	case *types.Parser:
		i.env = l.bodyEnv(i, t.Ctor, call, e)
	case *types.Extern:
		for k, arg := range call.Args {
			i.args = append(i.args, l.argument(arg, call.Type, k, e))
		}
		l.declareExtern(i)
	}
	return i
}

// argument evaluates the k-th argument or the parameter's default.
func (l *lowerer) argument(arg syntax.Expr, sig *types.Func, k int, e *env) value {
	if arg == nil && sig != nil && k < len(sig.Params) {
		arg = sig.Params[k].Default
	}
	if arg == nil {
		return nil
	}
	return l.eval(arg, e)
}

// bodyEnv is the environment of a parser's or control's declarations.
func (l *lowerer) bodyEnv(i *instance, ctor *types.Func, call *types.Call, e *env) *env {
	b, _ := types.BodyOf(i.typ)
	body := &env{l: l, inst: i}
	var params []*types.TypeParam
	for _, p := range b.TypeParams {
		if o := l.info.Defs[p]; o != nil {
			if tp, ok := o.Type.(*types.TypeParam); ok {
				params = append(params, tp)
			}
		}
	}
	body.bindTypes(params, b.TypeArgs, e)
	for k, p := range b.CtorParams {
		if k < len(call.Args) {
			v := l.argument(call.Args[k], ctor, k, e)
			if inst, ok := v.(*instance); ok && inst.decl == nil && inst.name == "" {
				inst.name = i.name + "." + p.Name.Value
			}
			i.args = append(i.args, v)
			body.bind(l.info.Defs[p], v)
		}
	}
	return body
}
