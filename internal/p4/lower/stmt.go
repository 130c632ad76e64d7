package lower

import (
	"cmp"

	"github.com/p4lb/p4lb/internal/bmv2"
	"github.com/p4lb/p4lb/internal/p4/names"
	"github.com/p4lb/p4lb/internal/p4/syntax"
	"github.com/p4lb/p4lb/internal/p4/types"
)

// stmts lowers a statement list in a scope of its own.
func (l *lowerer) stmts(list []syntax.Stmt, e *env) {
	for _, s := range list {
		l.stmt(s, e)
	}
}

func (l *lowerer) stmt(s syntax.Stmt, e *env) {
	saved := l.at
	l.at = s
	defer func() { l.at = saved }()
	l.spend(costStmt)
	if l.steps++; l.steps > maxSteps {
		l.unsupported(s, "a program with more than %d statements once its calls are inlined (docs/limits.md)", maxSteps)
	}
	switch s := s.(type) {
	case *syntax.EmptyStmt:
	case *syntax.DeclStmt:
		l.localDecl(s.Decl, e)
	case *syntax.AssignStmt:
		l.assignStmt(s, e)
	case *syntax.CallStmt:
		l.call(s.Call, e)
	case *syntax.BlockStmt:
		l.stmts(s.Stmts, e)
	case *syntax.IfStmt:
		l.ifStmt(s, e)
	case *syntax.SwitchStmt:
		l.switchStmt(s, e)
	case *syntax.ForStmt:
		l.forStmt(s, e)
	case *syntax.ForInStmt:
		l.forInStmt(s, e)
	case *syntax.ReturnStmt:
		if s.Value != nil {
			v := l.eval(s.Value, e)
			if e.result != nil {
				l.assign(e.result, v)
			}
		}
		l.jump(e.ret)
	case *syntax.ExitStmt:
		if e.exit != nil {
			e.exit()
		}
		l.add(&instr{kind: iExit})
	case *syntax.BreakStmt:
		l.jump(e.brk)
	case *syntax.ContinueStmt:
		l.jump(e.cont)
	}
}

// localDecl lowers a declaration in a statement list or before a body.
func (l *lowerer) localDecl(d syntax.Decl, e *env) {
	o := l.info.Defs[d]
	switch d := d.(type) {
	case *syntax.VarDecl:
		v, again := l.declareVar(o, e)
		if d.Value != nil {
			l.assign(v, l.eval(d.Value, e))
		} else if again || e.loops > 0 || l.block == parserBlock {
			l.invalidate(v)
		}
	case *syntax.ConstDecl:
		if o.Value == nil {
			e.bind(o, l.eval(d.Value, e))
		}
	case *syntax.InstDecl:
		e.bind(o, l.instantiate(d, l.info.Insts[d], e, names.Declared(e.inst.name, d.Annotations, d.Name)))
	}
}

// declareVar returns the place of a variable. It returns the same place each time
// the code of the instance is lowered. That is correct because there is no
// recursion, and necessary because a table that is applied twice reads the variable
// in one place.
func (l *lowerer) declareVar(o *types.Object, e *env) (v value, again bool) {
	key := variable{obj: o}
	if len(e.tsub) > 0 {
		key.typ = e.subst(o.Type).String()
	}
	if v, again = e.inst.vars[key]; !again {
		v = l.alloc(e.inst.name+"."+o.Name, e.subst(o.Type), false)
		e.inst.vars[key] = v
	}
	e.bind(o, v)
	return v, again
}

func (l *lowerer) assignStmt(s *syntax.AssignStmt, e *env) {
	lhs := syntax.Unparen(s.LHS)
	dst := l.lvalue(lhs, e)
	m := l.mark()
	src := l.eval(s.RHS, e)
	if s.Op != syntax.NoOp {
		old := l.stableValue(dst, m)
		x, y := l.toEx(old, lhs), l.toEx(src, s.RHS)
		if s.Op == syntax.Div || s.Op == syntax.Mod {
			l.checkDivision(s, x, y)
		}
		if s.Op == syntax.Shl || s.Op == syntax.Shr {
			y = l.shiftAmount(s, s.Op, x, y)
		}
		src = binary(s.Op, x, y, x.st)
	}
	if l.intoDestination(dst, src, m) {
		return
	}
	l.assign(dst, src)
}

// intoDestination redirects the code that has just computed src to write dst
// instead of a temporary. With it, x = f(y) needs no copy of f's result.
func (l *lowerer) intoDestination(dst, src value, m int) bool {
	f, ok := src.(*field)
	if x, isEx := src.(*ex); isEx && x.op == opField {
		f, ok = x.f, true
	}
	d, isField := dst.(*field)
	n := len(l.code.list)
	if !ok || !isField || !f.temp || n <= m || f.st != d.st || d.written != nil {
		return false
	}
	if f.result {
		return l.renamed(f, d, m)
	}
	last := l.code.list[n-1]
	if t, sole := soleTarget(last); !sole || t != f {
		return false
	}
	last.args[0] = d
	return true
}

// renamed replaces the temporary f by d in the code since mark m. It does so, and
// reports true, only if that code writes f and does not use f or d otherwise.
func (l *lowerer) renamed(f, d *field, m int) bool {
	var writes []*instr
	for _, i := range l.code.list[m:] {
		l.spend(1 + i.operands())
		if i.kind == iApply || i.kind == iExit || i.cond != nil && (i.cond.readsField(f) || i.cond.readsField(d)) {
			return false
		}
		t, sole := soleTarget(i)
		rest := i.args
		if sole && t == f {
			writes, rest = append(writes, i), i.args[1:]
		}
		for _, a := range rest {
			if mentions(a, f) || mentions(a, d) {
				return false
			}
		}
	}
	for _, i := range writes {
		i.args[0] = d
	}
	f.dropped = true
	return true
}

// mentions reports whether an argument of a primitive is f or may contain f.
func mentions(a any, f *field) bool {
	switch a := a.(type) {
	case *ex:
		return a.readsField(f)
	case *field:
		return a == f
	case *bmv2.Expr: // given by name: anything except an array may contain f
		return a.Type != bmv2.TypeRegisterArray
	}
	return true
}

// lvalue evaluates x to the place that it names. It evaluates indices now, so the
// place stays the same if variables in the index change later.
func (l *lowerer) lvalue(x syntax.Expr, e *env) value {
	if sl, ok := syntax.Unparen(x).(*syntax.SliceExpr); ok {
		return l.sliceOf(sl, e)
	}
	v := l.eval(x, e)
	if p, ok := v.(*ex); ok && p.op == opParam {
		l.unsupported(x, "assigning to the action parameter %s, which the control plane supplies", syntax.String(x))
	}
	return v
}

// sliceOf evaluates a slice to a place.
func (l *lowerer) sliceOf(sl *syntax.SliceExpr, e *env) *bits {
	hi, lo := l.sliceBounds(sl, e)
	of := l.lvalue(sl.X, e)
	if inner, ok := of.(*bits); ok {
		return &bits{of: inner.of, lo: inner.lo + lo, width: hi - lo + 1}
	}
	return &bits{of: of, lo: lo, width: hi - lo + 1}
}

func (l *lowerer) ifStmt(s *syntax.IfStmt, e *env) {
	els, end := &label{}, &label{}
	if !l.branchOnApply(syntax.Unparen(s.Cond), els, false, e) {
		c := l.scalar(s.Cond, e)
		switch {
		case c.isTrue():
			l.stmt(s.Then, e)
			return
		case c.isFalse():
			if s.Else != nil {
				l.stmt(s.Else, e)
			}
			return
		}
		l.branch(c, els)
	}
	l.stmt(s.Then, e)
	if s.Else != nil {
		l.jump(end)
		l.emitLabel(els)
		l.stmt(s.Else, e)
	} else {
		l.emitLabel(els)
	}
	l.emitLabel(end)
}

// branchOnApply lowers if (t.apply().hit) and its variants to a branch without a
// variable.
func (l *lowerer) branchOnApply(c syntax.Expr, els *label, negated bool, e *env) bool {
	if u, ok := c.(*syntax.UnaryExpr); ok && u.Op == syntax.Not && !negated {
		return l.branchOnApply(syntax.Unparen(u.X), els, true, e)
	}
	sel, ok := c.(*syntax.SelectorExpr)
	if !ok {
		return false
	}
	x, ok := syntax.Unparen(sel.X).(*syntax.CallExpr)
	if !ok {
		return false
	}
	call := l.info.Calls[x]
	if call == nil || call.Kind != types.TableApply {
		return false
	}
	then := &label{used: true}
	els.used = true
	i := l.applyTable(x, call, e)
	if (sel.Sel.Value == "hit") != negated {
		i.hit, i.miss = then, els
	} else {
		i.hit, i.miss = els, then
	}
	l.emitLabel(then)
	return true
}

func (l *lowerer) switchStmt(s *syntax.SwitchStmt, e *env) {
	if sel, ok := syntax.Unparen(s.X).(*syntax.SelectorExpr); ok {
		if x, ok := syntax.Unparen(sel.X).(*syntax.CallExpr); ok {
			if call := l.info.Calls[x]; call != nil && call.Kind == types.TableApply {
				l.switchActionRun(s, x, call, e)
				return
			}
		}
	}
	l.switchValue(s, e)
}

// switchValue lowers a switch on an expression to a chain of comparisons.
func (l *lowerer) switchValue(s *syntax.SwitchStmt, e *env) {
	x := l.scalar(s.X, e)
	if !x.isConst() {
		x = l.settled(x)
	}
	end, def := &label{}, (*label)(nil)
	bodies := make([]*label, len(s.Cases))
	for i, c := range s.Cases {
		bodies[i] = &label{}
		if _, ok := c.Label.(*syntax.DefaultExpr); ok {
			def = bodies[i]
			continue
		}
		no := &label{}
		l.at = c
		l.branch(equal(x, l.scalar(c.Label, e)), no)
		l.jump(bodies[i])
		l.emitLabel(no)
	}
	def = cmp.Or(def, end)
	l.jump(def)
	l.switchBodies(s, bodies, end, e)
}

// switchBodies emits the bodies. A case without a body falls through to the next
// one.
func (l *lowerer) switchBodies(s *syntax.SwitchStmt, bodies []*label, end *label, e *env) {
	for i, c := range s.Cases {
		l.emitLabel(bodies[i])
		if c.Body == nil {
			continue
		}
		l.stmt(c.Body, e)
		l.jump(end)
	}
	l.emitLabel(end)
}

func (l *lowerer) switchActionRun(s *syntax.SwitchStmt, x *syntax.CallExpr, call *types.Call, e *env) {
	end := &label{used: true}
	i := l.applyTable(x, call, e)
	i.runs, i.hit, i.miss = map[string]*label{}, end, end
	bodies := make([]*label, len(s.Cases))
	for k, c := range s.Cases {
		bodies[k] = &label{used: true}
		if _, ok := c.Label.(*syntax.DefaultExpr); ok {
			i.hit, i.miss = bodies[k], bodies[k]
			continue
		}
		o := l.actionLabel(c.Label)
		if o == nil {
			l.unsupported(c, "the label %s", syntax.String(c.Label))
		}
		name := o.Name
		if a := i.table.find(o); a != nil {
			name = a.name
		}
		i.runs[name] = bodies[k]
	}
	l.switchBodies(s, bodies, end, e)
}

// actionLabel returns the action that a switch label names.
func (l *lowerer) actionLabel(x syntax.Expr) *types.Object {
	switch x := syntax.Unparen(x).(type) {
	case *syntax.Name:
		return l.info.Uses[x]
	case *syntax.SelectorExpr:
		return l.info.Uses[x.Sel]
	}
	return nil
}

// forStmt emits a loop as a loop: in BMv2, jumps and edges of the graph may lead
// back.
func (l *lowerer) forStmt(s *syntax.ForStmt, e *env) {
	e = e.child()
	e.loops++
	for _, i := range s.Init {
		l.stmt(i, e)
	}
	top := &label{used: true}
	e.cont, e.brk = &label{}, &label{}
	l.emitLabel(top)
	if s.Cond != nil {
		l.branch(l.scalar(s.Cond, e), e.brk)
	}
	l.stmt(s.Body, e)
	l.emitLabel(e.cont)
	for _, p := range s.Post {
		l.stmt(p, e)
	}
	l.jump(top)
	l.emitLabel(e.brk)
}

func (l *lowerer) forInStmt(s *syntax.ForInStmt, e *env) {
	e = e.child()
	e.loops++
	o := l.info.Defs[s.Var]
	if r, ok := syntax.Unparen(s.Coll).(*syntax.RangeExpr); ok {
		l.forRange(s, r, o, e)
		return
	}
	v := l.eval(s.Coll, e)
	var elems []value
	switch c := v.(type) {
	case *stack:
		elems = c.elems
	case *aggregate:
		elems = c.elems
	default:
		l.unsupported(s.Coll, "a loop over %s", syntax.String(s.Coll))
	}
	e.brk = &label{}
	item, _ := l.declareVar(o, e)
	for _, el := range elems {
		e.cont = &label{}
		l.assign(item, el)
		l.stmt(s.Body, e)
		l.emitLabel(e.cont)
	}
	l.emitLabel(e.brk)
}

// forRange lowers for (T i in lo .. hi), including hi. It tests before it
// increments, because the counter may wrap at the end of its type.
func (l *lowerer) forRange(s *syntax.ForInStmt, r *syntax.RangeExpr, o *types.Object, e *env) {
	lo := l.scalar(r.Lo, e)
	m := l.mark()
	hi := l.scalar(r.Hi, e)
	lo = l.stable(lo, m)
	item, _ := l.declareVar(o, e)
	v, ok := item.(*field)
	if !ok {
		l.unsupported(s, "a loop variable of this type")
	}
	hi = l.settled(cast(hi, v.st))
	count := l.temp(v.st) // the body may change the loop variable
	l.set(count, cast(lo, v.st))
	top := &label{used: true}
	e.cont, e.brk = &label{}, &label{}
	l.branch(binary(syntax.Leq, fieldEx(count), hi, boolean), e.brk)
	l.emitLabel(top)
	l.set(v, fieldEx(count))
	l.stmt(s.Body, e)
	l.emitLabel(e.cont)
	l.branch(binary(syntax.Lss, fieldEx(count), hi, boolean), e.brk)
	l.set(count, binary(syntax.Add, fieldEx(count), intEx(1, v.st), v.st))
	l.jump(top)
	l.emitLabel(e.brk)
}
