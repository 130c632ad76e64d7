package lower

import (
	"slices"

	"github.com/p4lb/p4lb/internal/p4/syntax"
	"github.com/p4lb/p4lb/internal/p4/types"
	"github.com/p4lb/p4lb/internal/text/lists"
)

// maxDepth bounds nested inlining; the checker has excluded recursion.
const maxDepth = 200

// Calls follow section 6.8 of the P4_16 specification. The arguments are evaluated
// from left to right: an in argument to a value, an out argument to a place, an
// inout argument to both. The body runs on copies of them. On return the out and
// inout copies are written back to their places, from left to right.
//
// bindArgs first evaluates all arguments. If evaluating a later argument changes an
// earlier value, the earlier one is saved in a temporary (keepBefore). Then
// bindArgs decides which parameters need a copy: a parameter shares the argument's
// place if the body cannot observe the difference.

// bindArgs evaluates the arguments for params; it skips nil parameters. The
// function visible reports whether the callee can name the variable in which an
// argument is stored.
func (l *lowerer) bindArgs(params []*types.Object, call *types.Call, e *env, visible func(syntax.Expr) bool) []binding {
	bs := make([]binding, 0, len(params))
	for k, p := range params {
		if p == nil {
			continue
		}
		m := l.mark()
		b := l.evalArg(p, k, call, e)
		l.keepBefore(bs, m)
		bs = append(bs, b)
	}
	for i := range bs {
		b := &bs[i]
		b.ref = b.param.Dir >= syntax.Out && b.byReference(visible) && !l.overlapsBefore(bs[:i], b.place)
	}
	for i := range bs {
		l.pass(bs, i, visible)
	}
	for _, b := range bs {
		if b.ref && b.param.Dir == syntax.Out {
			l.invalidate(b.place)
		}
	}
	return bs
}

// evalArg evaluates the k-th argument of a call: an in argument to its value, an
// out argument to its place, an inout argument to both.
func (l *lowerer) evalArg(p *types.Object, k int, call *types.Call, e *env) binding {
	b := binding{param: p, typ: e.subst(call.Type.Params[k].Type)}
	if k < len(call.Args) {
		b.arg = call.Args[k]
	}
	if p.Dir >= syntax.Out {
		if b.arg != nil {
			b.place = l.lvalue(b.arg, e)
		}
		if p.Dir == syntax.InOut {
			b.value = b.place
		}
		return b
	}
	v := l.argument(b.arg, call.Type, k, e)
	if st, ok := scalarOf(b.typ); v != nil && ok && !st.str && st.width > 0 {
		if _, isField := v.(*field); !isField {
			v = cast(l.toEx(v, l.at), st)
		}
	}
	b.value = v
	return b
}

// keepBefore saves the values in bs that code emitted since mark m changes.
func (l *lowerer) keepBefore(bs []binding, m int) {
	if l.mark() == m {
		return
	}
	l.spend(len(bs) / costOperand)
	for i := range bs {
		n := l.mark()
		bs[i].value = l.stableValue(bs[i].value, m)
		m += l.mark() - n
	}
}

// byReference reports whether the parameter can share the place of an out or inout
// argument. The place must be fixed and still hold the argument's value, and the
// callee must not access it by another name.
func (b *binding) byReference(visible func(syntax.Expr) bool) bool {
	unchanged := b.param.Dir == syntax.Out || b.value == b.place
	return b.place != nil && unchanged && isPlace(b.place) && !visible(b.arg)
}

// overlapsBefore reports whether the place v shares bits with an earlier out or
// inout argument in bs.
func (l *lowerer) overlapsBefore(bs []binding, v value) bool {
	return slices.ContainsFunc(bs, func(b binding) bool {
		_, isObject := b.place.(*instance)
		return b.place != nil && !isObject && l.overlaps(v, b.place)
	})
}

// pass gives the i-th parameter its place. It copies the argument to it unless the
// parameter shares the argument's place.
func (l *lowerer) pass(bs []binding, i int, visible func(syntax.Expr) bool) {
	b := &bs[i]
	if b.param.Dir < syntax.Out {
		b.value = l.passIn(bs, i, visible)
		return
	}
	switch b.place.(type) {
	case *instance, *next:
		b.value = b.place
		return
	}
	if b.ref {
		b.value = b.place
		return
	}
	tmp := l.alloc(b.param.Name, b.typ, false)
	switch {
	case b.param.Dir == syntax.Out || b.value == nil:
		l.invalidate(tmp)
	default:
		l.assign(tmp, b.value)
	}
	b.value, b.back = tmp, b.place
}

// passIn returns the value of the i-th parameter, an in parameter. It is a copy if
// the body could change the argument through another parameter or by name.
func (l *lowerer) passIn(bs []binding, i int, visible func(syntax.Expr) bool) value {
	b := &bs[i]
	switch v := b.value.(type) {
	case nil:
		return l.alloc(b.param.Name, b.typ, true)
	case *instance, *next, nothing:
		return v
	case *ex:
		if !v.reads() || v.st.str {
			return v
		}
	case *field, *header, *union, *stack, *aggregate:
		if isPlace(v) && b.arg != nil && !visible(b.arg) {
			return l.copyWritten(bs, v)
		}
	}
	tmp := l.alloc(b.param.Name, b.typ, true)
	l.assign(tmp, b.value)
	return tmp
}

// copyWritten copies the parts of v that the body can change through an argument
// passed by reference.
func (l *lowerer) copyWritten(bs []binding, v value) value {
	var written footprint
	for _, b := range bs {
		if b.ref {
			l.cover(&written, b.place)
		}
	}
	if written.places == nil {
		return v
	}
	return l.savedIn(v, &written)
}

// savedIn copies the parts of v that written covers.
func (l *lowerer) savedIn(v value, written *footprint) value {
	if !l.touches(written, v) {
		return v
	}
	a, ok := v.(*aggregate)
	if !ok {
		return l.saved(v)
	}
	c := &aggregate{typ: a.typ}
	for _, el := range a.elems {
		c.elems = append(c.elems, l.savedIn(el, written))
	}
	return c
}

// copyBack writes the out and inout copies to the places of their arguments, in
// the order of the parameters.
func (l *lowerer) copyBack(bs []binding) {
	for _, b := range bs {
		if b.back != nil {
			l.assign(b.back, b.value)
		}
	}
}

// onExit returns a function that copies the out arguments of this call and of the
// enclosing calls back. By section 12.5, exit copies them back too.
func (l *lowerer) onExit(bs []binding, e *env) func() {
	return func() {
		l.copyBack(bs)
		if e.exit != nil {
			e.exit()
		}
	}
}

// enter runs f one level deeper and reports too deep an inlining.
func (l *lowerer) enter(at syntax.Node, f func()) {
	l.spend(costCall)
	if l.depth++; l.depth > maxDepth {
		l.unsupported(at, "calls nested deeper than %d", maxDepth)
	}
	f()
	l.depth--
}

func never(syntax.Expr) bool { return false }

// inline lowers body in callee, with the parameters bound to the arguments.
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
	l.emitLabel(callee.ret)
	m := l.mark()
	l.copyBack(bs)
	return l.stableValue(result, m)
}

// soleReturn evaluates a body that is a single return statement without a variable
// for the result.
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

// actionEnv returns the environment in which an action's body sees its control.
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

// rootObject returns the variable or parameter with which a place expression
// starts.
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

// mentions returns the objects that an action's body names, directly or through the
// actions and methods that it calls.
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
			switch d := o.Decl.(type) {
			case *syntax.ActionDecl:
				visit(d.Body)
			case *syntax.InstDecl: // the methods in its body
				for _, m := range d.Body {
					visit(m)
				}
			}
		}
	}
	visit(d.Body)
	return seen
}

// callBuiltin lowers the built-in methods of headers, unions and stacks.
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
