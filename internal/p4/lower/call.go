package lower

import (
	"slices"

	"github.com/p4lb/p4lb/internal/p4/syntax"
	"github.com/p4lb/p4lb/internal/p4/types"
	"github.com/p4lb/p4lb/internal/text/lists"
)

// maxDepth bounds nested inlining; the checker has excluded recursion.
const maxDepth = 200

// bindArgs evaluates the arguments in order. visible tells whether the callee
// can name the root of an argument on its own.
func (l *lowerer) bindArgs(params []*types.Object, call *types.Call, e *env, visible func(syntax.Expr) bool) []binding {
	var bs []binding
	for k, p := range params {
		m := l.mark()
		b := l.bindArg(p, k, call, e, bs, visible)
		if p.Dir >= syntax.Out || l.mark() != m {
			l.spend(len(bs) / costOperand)
			l.keepBefore(bs, m)
		}
		bs = append(bs, b)
	}
	return bs
}

// keepBefore makes the in arguments already evaluated survive the code since m.
func (l *lowerer) keepBefore(bs []binding, m int) {
	for i := range bs {
		if bs[i].saved {
			bs[i].saved = false
			continue
		}
		if bs[i].param.Dir == syntax.In || bs[i].param.Dir == syntax.NoDir {
			n := l.mark()
			bs[i].value = l.stableValue(bs[i].value, m)
			m += l.mark() - n
		}
	}
}

func (l *lowerer) bindArg(p *types.Object, k int, call *types.Call, e *env, before []binding, visible func(syntax.Expr) bool) binding {
	var arg syntax.Expr
	if k < len(call.Args) {
		arg = call.Args[k]
	}
	t := e.subst(call.Type.Params[k].Type)
	if p.Dir == syntax.Out || p.Dir == syntax.InOut {
		return l.bindOut(p, arg, t, e, before, visible)
	}
	v := l.argument(arg, call.Type, k, e)
	if v == nil {
		return binding{param: p, value: l.alloc(p.Name, t, true)}
	}
	if st, ok := scalarOf(t); ok && !st.str && st.width > 0 {
		if _, isField := v.(*field); !isField {
			v = cast(l.toEx(v, l.at), st)
		}
	}
	return binding{param: p, value: l.inValue(p, v, t, arg, before, visible)}
}

// inValue passes v by reference where the callee cannot change it meanwhile.
func (l *lowerer) inValue(p *types.Object, v value, t types.Type, arg syntax.Expr, before []binding, visible func(syntax.Expr) bool) value {
	switch v := v.(type) {
	case *instance, nil:
		return v
	case *ex:
		if !v.reads() || v.st.str {
			return v
		}
	case *next:
		return v
	case *field, *header, *union, *stack, *aggregate:
		if isPlace(v) && !l.overlapsAny(before, v) && arg != nil && !visible(arg) {
			return v
		}
	}
	tmp := l.alloc(p.Name, t, true)
	l.assign(tmp, v)
	return tmp
}

func (l *lowerer) overlapsAny(bs []binding, v value) bool {
	return slices.ContainsFunc(bs, func(b binding) bool {
		return b.param.Dir >= syntax.Out && (l.overlaps(b.value, v) || b.back != nil && l.overlaps(b.back, v))
	})
}

func (l *lowerer) bindOut(p *types.Object, arg syntax.Expr, t types.Type, e *env, before []binding, visible func(syntax.Expr) bool) binding {
	if arg == nil {
		return binding{param: p, value: l.alloc(p.Name, t, true)}
	}
	if sl, ok := syntax.Unparen(arg).(*syntax.SliceExpr); ok {
		tmp := l.alloc(p.Name, t, true)
		if p.Dir == syntax.InOut {
			l.assign(tmp, l.eval(sl, e))
		}
		return binding{param: p, value: tmp, back: sl}
	}
	place := l.lvalue(arg, e)
	if inst, ok := place.(*instance); ok {
		return binding{param: p, value: inst}
	}
	if _, isNext := place.(*next); isNext {
		return binding{param: p, value: place}
	}
	// The in arguments that share a place with this out argument are copied.
	for i, b := range before {
		if b.param.Dir != syntax.Out && b.param.Dir != syntax.InOut && b.value != nil && l.overlaps(place, b.value) {
			var written footprint
			l.cover(&written, place)
			before[i].value, before[i].saved = l.savedIn(b.value, &written), true
		}
	}
	if isPlace(place) && !l.overlapsBinding(before, place) && !visible(arg) {
		if p.Dir == syntax.Out {
			l.invalidate(place)
		}
		return binding{param: p, value: place}
	}
	tmp := l.alloc(p.Name, t, true)
	if p.Dir == syntax.InOut {
		l.assign(tmp, place)
	}
	return binding{param: p, value: tmp, back: place}
}

// savedIn copies the parts of v whose places are written.
func (l *lowerer) savedIn(v value, written *footprint) value {
	a, ok := v.(*aggregate)
	if !ok {
		return l.saved(v)
	}
	c := &aggregate{typ: a.typ}
	for _, el := range a.elems {
		if l.touches(written, el) {
			el = l.savedIn(el, written)
		}
		c.elems = append(c.elems, el)
	}
	return c
}

func (l *lowerer) overlapsBinding(bs []binding, v value) bool {
	return slices.ContainsFunc(bs, func(b binding) bool {
		_, ok := b.value.(*instance)
		return !ok && b.value != nil && l.overlaps(v, b.value)
	})
}

// copyBack writes what out parameters hold to where the arguments are.
func (l *lowerer) copyBack(bs []binding, e *env) {
	for _, b := range bs {
		switch back := b.back.(type) {
		case nil:
		case *syntax.SliceExpr:
			l.writeSlice(back, l.toEx(b.value, back), e)
		default:
			l.assign(back, b.value)
		}
	}
}

// writeSlice assigns v to x[hi:lo].
func (l *lowerer) writeSlice(sl *syntax.SliceExpr, v *ex, e *env) {
	hi, lo := l.sliceBounds(sl, e)
	base := syntax.Unparen(sl.X)
	old := l.scalar(base, e)
	whole := insertBits(old, cast(v, scalar{width: hi - lo + 1}), lo, hi-lo+1)
	if inner, ok := base.(*syntax.SliceExpr); ok {
		l.writeSlice(inner, whole, e)
		return
	}
	l.assign(l.lvalue(base, e), whole)
}

// onExit copies out of this call and of those around it.
func (l *lowerer) onExit(bs []binding, e *env) func() {
	return func() {
		l.copyBack(bs, e)
		if e.exit != nil {
			e.exit()
		}
	}
}

// enter guards the depth of inlining.
func (l *lowerer) enter(at syntax.Node, f func()) {
	l.spend(costCall)
	if l.depth++; l.depth > maxDepth {
		l.unsupported(at, "calls nested deeper than %d", maxDepth)
	}
	f()
	l.depth--
}

func never(syntax.Expr) bool { return false }

// inline runs body in callee with the parameters bound.
func (l *lowerer) inline(x syntax.Node, params []*syntax.Param, body *syntax.BlockStmt, call *types.Call, e, callee *env, visible func(syntax.Expr) bool) (result value) {
	sig, _ := call.Callee.Type.(*types.Func)
	if sig != nil {
		callee.bindTypes(sig.TypeParams, call.TypeArgs, e)
	}
	bs := l.bindArgs(l.paramObjects(params), call, e, visible)
	callee.bindAll(bs)
	callee.exit = l.onExit(bs, e)
	callee.ret = &label{}
	if rt := e.subst(call.Result); rt != nil && rt != types.Void {
		callee.result = l.alloc("tmp", rt, true)
		result = callee.result
	}
	l.enter(x, func() {
		if v, ok := l.soleReturn(body, callee); ok {
			result = v
		} else {
			l.stmts(body.Stmts, callee)
		}
	})
	l.place(callee.ret)
	l.copyBack(bs, e)
	return result
}

// soleReturn evaluates a body that is one return statement without a detour
// through a variable.
func (l *lowerer) soleReturn(body *syntax.BlockStmt, callee *env) (value, bool) {
	if len(body.Stmts) != 1 || callee.result == nil {
		return nil, false
	}
	r, ok := body.Stmts[0].(*syntax.ReturnStmt)
	if !ok || r.Value == nil {
		return nil, false
	}
	if st, scalar := scalarOf(callee.typeOf(r.Value)); scalar && !st.varbit {
		return cast(l.scalar(r.Value, callee), st), true
	}
	return nil, false
}

func (l *lowerer) paramObjects(params []*syntax.Param) []*types.Object {
	return lists.Map(params, func(p *syntax.Param) *types.Object { return l.info.Defs[p] })
}

// actionEnv is the environment in which an action's body sees its control.
func (l *lowerer) actionEnv(o *types.Object, e *env) *env {
	scope := e
	for scope != nil && scope.action {
		scope = scope.parent
	}
	if scope == nil || o.Parent == nil {
		return &env{l: l, inst: e.inst, action: true, loops: e.loops}
	}
	c := scope.child()
	c.action, c.loops, c.brk, c.cont, c.result = true, e.loops, nil, nil, nil
	return c
}

// rootObject is the variable or parameter that a place expression starts with.
func (l *lowerer) rootObject(x syntax.Expr) *types.Object {
	for {
		switch n := syntax.Unparen(x).(type) {
		case *syntax.Name:
			return l.info.Uses[n]
		case *syntax.SelectorExpr:
			x = n.X
		case *syntax.IndexExpr:
			x = n.X
		case *syntax.SliceExpr:
			x = n.X
		default:
			return nil
		}
	}
}

// mentions lists what an action's body names, through actions that it calls.
func (l *lowerer) mentions(d *syntax.ActionDecl) map[*types.Object]bool {
	seen := map[*types.Object]bool{}
	var visit func(n syntax.Node)
	visit = func(n syntax.Node) {
		for name := range syntax.Each[*syntax.Name](n) {
			o := l.info.Uses[name]
			if o == nil || seen[o] {
				continue
			}
			seen[o] = true
			if a, ok := o.Decl.(*syntax.ActionDecl); ok {
				visit(a.Body)
			}
		}
	}
	visit(d.Body)
	return seen
}

// callBuiltin: methods of headers, unions and stacks.
func (l *lowerer) callBuiltin(x *syntax.CallExpr, call *types.Call, e *env) value {
	recv := l.eval(call.Recv, e)
	switch call.Builtin {
	case "isValid":
		return l.isValid(recv, x)
	case "setValid", "setInvalid":
		l.setValidity(recv, call.Builtin == "setValid", x)
		return nil
	case "push_front", "pop_front":
		s, ok := recv.(*stack)
		if !ok {
			l.unsupported(x, "%s on this", call.Builtin)
		}
		n := l.scalar(call.Args[0], e)
		if !n.isConst() {
			l.unsupported(x, "%s by a count that is not known at compile time", call.Builtin)
		}
		l.prim(map[string]string{"push_front": "push", "pop_front": "pop"}[call.Builtin], s, cast(n, code32))
		return nil
	}
	l.unsupported(x, "the method %s", call.Builtin)
	return nil
}

func (l *lowerer) isValid(v value, at syntax.Node) *ex {
	switch v := v.(type) {
	case *header:
		return &ex{op: opValid, h: v, st: boolean}
	case *literal:
		return boolEx(!v.invalid)
	case *union:
		return &ex{op: opUnion, u: v, st: boolean}
	case *element:
		r := boolEx(false)
		index := l.settled(v.index)
		for i := range v.elems {
			if fits(i, index.st) {
				r = l.bounded(orElse(r, andAlso(equal(index, intEx(int64(i), index.st)), l.isValid(v.at(i), at))), at)
			}
		}
		return r
	}
	l.unsupported(at, "isValid on this")
	return nil
}

func (l *lowerer) setValidity(v value, valid bool, at syntax.Node) {
	switch v := v.(type) {
	case *header:
		if valid {
			l.prim(l.arch.traits().addHeader, v)
		} else {
			l.prim("remove_header", v)
		}
	case *union:
		if valid {
			l.unsupported(at, "setValid on a header union: call it on a member")
		}
		l.invalidate(v)
	case *element:
		l.eachElement(v, func(el value) { l.setValidity(el, valid, at) })
	default:
		l.unsupported(at, "changing the validity of this")
	}
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
