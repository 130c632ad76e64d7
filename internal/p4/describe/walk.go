package describe

import (
	"slices"

	"github.com/p4lb/p4lb/internal/p4/syntax"
	"github.com/p4lb/p4lb/internal/p4/types"
)

// A walker visits the reachable code and records the objects that it uses.
type walker struct {
	view     *view
	unit     *unit
	scope    *scope
	calls    *[]*externCall // receives the calls of extern functions
	inAction bool           // actions called from an action are inlined
	// returns is set in a body that contains a return. Only then does p4c remove
	// the dead code after returns and exits.
	returns bool
}

// reach visits the code of a parser or control once, at its first application.
func (v *view) reach(s *site, u *unit) {
	if s.reached || s.scope == nil {
		return
	}
	s.reached = true
	w := &walker{view: v, unit: u, scope: s.scope, calls: &u.calls}
	for _, d := range s.body.Locals {
		w.decl(d)
	}
	switch t := s.typ.(type) {
	case *types.Control:
		w.body(t.Decl.Body)
	case *types.Parser:
		w.states(t.Decl)
	}
}

// states visits the states that are reachable from start.
func (w *walker) states(d *syntax.ParserDecl) {
	byName := map[string]*syntax.StateDecl{}
	for _, s := range d.States {
		byName[s.Name.Value] = s
	}
	todo, seen := []string{"start"}, map[string]bool{}
	for len(todo) > 0 {
		s := byName[todo[0]]
		todo = todo[1:]
		if s == nil || seen[s.Name.Value] {
			continue
		}
		seen[s.Name.Value] = true
		w.stmts(s.Stmts)
		switch t := s.Transition.(type) {
		case *syntax.Name:
			todo = append(todo, t.Value)
		case *syntax.SelectExpr:
			w.exprs(t.Args)
			for _, c := range t.Cases {
				w.expr(c.Key)
				todo = append(todo, c.Next.Value)
			}
		}
	}
}

func (w *walker) decl(d syntax.Decl) {
	switch d := d.(type) {
	case *syntax.VarDecl:
		w.expr(d.Value)
	case *syntax.ConstDecl:
		w.expr(d.Value)
	}
}

// body visits the body of a control, action or function.
func (w *walker) body(b *syntax.BlockStmt) {
	if b == nil {
		return
	}
	saved := w.returns
	w.returns = hasReturn(b)
	w.stmts(b.Stmts)
	w.returns = saved
}

func hasReturn(s syntax.Stmt) bool {
	switch s := s.(type) {
	case *syntax.ReturnStmt:
		return true
	case *syntax.BlockStmt:
		return slices.ContainsFunc(s.Stmts, hasReturn)
	case *syntax.IfStmt:
		return hasReturn(s.Then) || hasReturn(s.Else)
	case *syntax.SwitchStmt:
		return slices.ContainsFunc(s.Cases, func(c *syntax.SwitchCase) bool { return c.Body != nil && hasReturn(c.Body) })
	case *syntax.ForStmt:
		return hasReturn(s.Body)
	case *syntax.ForInStmt:
		return hasReturn(s.Body)
	}
	return false
}

// stmts visits statements and reports whether control never reaches the end of the
// list. The statements after a return or exit are dead.
func (w *walker) stmts(list []syntax.Stmt) bool {
	return slices.ContainsFunc(list, w.stmt)
}

func (w *walker) stmt(s syntax.Stmt) bool {
	if w.view.steps++; w.view.steps > maxSteps {
		return true
	}
	switch s := s.(type) {
	case *syntax.DeclStmt:
		w.decl(s.Decl)
	case *syntax.AssignStmt:
		w.expr(s.LHS)
		w.expr(s.RHS)
	case *syntax.CallStmt:
		w.expr(s.Call)
	case *syntax.BlockStmt:
		return w.stmts(s.Stmts)
	case *syntax.IfStmt:
		cond, known := w.view.fold(s.Cond, w.scope).(bool)
		if !known {
			w.expr(s.Cond)
		}
		then, els := false, false
		if !known || cond {
			then = w.stmt(s.Then)
		}
		if s.Else != nil && !(known && cond) {
			els = w.stmt(s.Else)
		}
		switch {
		case !known:
			return then && els
		case cond:
			return then
		}
		return els
	case *syntax.SwitchStmt:
		w.expr(s.X)
		for _, c := range s.Cases {
			w.expr(c.Label)
			if c.Body != nil {
				w.stmts(c.Body.Stmts)
			}
		}
	case *syntax.ForStmt:
		w.stmts(s.Init)
		w.expr(s.Cond)
		w.stmts(s.Post)
		w.stmt(s.Body)
	case *syntax.ForInStmt:
		w.expr(s.Coll)
		w.stmt(s.Body)
	case *syntax.ReturnStmt:
		w.expr(s.Value)
		return true
	case *syntax.ExitStmt:
		return w.returns
	}
	return false
}

func (w *walker) exprs(list []syntax.Expr) {
	for _, x := range list {
		w.expr(x)
	}
}

// expr visits the code that evaluating x runs.
func (w *walker) expr(x syntax.Expr) {
	switch x := x.(type) {
	case *syntax.Name:
		// The expression uses a value set.
		if o := w.view.info.Uses[x]; o != nil && o.Kind == types.ValueSetObj && w.scope.site != nil {
			if d, ok := o.Decl.(*syntax.ValueSetDecl); ok {
				w.scope.site.sets[d] = true
			}
		}
	case *syntax.BinaryExpr:
		w.binary(x)
	case *syntax.CondExpr:
		c, known := w.view.fold(x.Cond, w.scope).(bool)
		if !known {
			w.expr(x.Cond)
		}
		if !known || c {
			w.expr(x.Then)
		}
		if !known || !c {
			w.expr(x.Else)
		}
	case *syntax.CastExpr:
		w.expr(x.X)
	case *syntax.SelectorExpr:
		w.expr(x.X)
	case *syntax.RecordExpr:
		for _, f := range x.Fields {
			w.expr(f.Value)
		}
	case *syntax.CallExpr:
		w.call(x)
	case *syntax.ParenExpr, *syntax.UnaryExpr, *syntax.RangeExpr, *syntax.MaskExpr, *syntax.IndexExpr, *syntax.SliceExpr, *syntax.ListExpr:
		syntax.Children(x, func(n syntax.Node) { w.expr(n.(syntax.Expr)) })
	}
}

// binary visits the operands and returns the value of a constant && or ||. It skips
// a right operand that is never evaluated because the left one is constant.
func (w *walker) binary(x *syntax.BinaryExpr) any {
	if x.Op != syntax.AndAnd && x.Op != syntax.OrOr {
		w.expr(x.X)
		w.expr(x.Y)
		return nil
	}
	var left any
	if b, ok := syntax.Unparen(x.X).(*syntax.BinaryExpr); ok && (b.Op == syntax.AndAnd || b.Op == syntax.OrOr) {
		left = w.binary(b) // fold a long chain once, not once per operator
	} else if left = w.view.fold(x.X, w.scope); left == nil {
		w.expr(x.X)
	}
	l, known := left.(bool)
	if known && l == (x.Op == syntax.OrOr) {
		return l
	}
	w.expr(x.Y)
	if !known {
		return nil
	}
	return w.view.fold(x.Y, w.scope)
}

func (w *walker) call(x *syntax.CallExpr) {
	call := w.view.info.Calls[x]
	if call == nil {
		return
	}
	w.exprs(call.Args)
	switch call.Kind {
	case types.FuncCall:
		if d, ok := call.Callee.Decl.(*syntax.FuncDecl); ok {
			w.inline(call.Callee, d.Body)
		}
	case types.ExternCall:
		if call.Callee.Name != "static_assert" { // p4c removes it after evaluating it
			*w.calls = append(*w.calls, &externCall{call: call, at: x, scope: w.scope})
		}
	case types.MethodCall, types.BuiltinCall:
		w.expr(call.Recv)
	case types.ActionCall:
		d, ok := call.Callee.Decl.(*syntax.ActionDecl)
		switch {
		case !ok:
		case w.inAction:
			w.inline(call.Callee, d.Body)
		default:
			w.unit.called = append(w.unit.called, calledAction{obj: call.Callee, site: w.scope.site})
		}
	case types.TableApply:
		d, ok := call.Callee.Decl.(*syntax.TableDecl)
		if ok && w.scope.site != nil && !w.scope.site.tables[d] {
			w.scope.site.tables[d] = true
			if d.Key != nil {
				for _, k := range d.Key.Elems {
					w.expr(k.X)
				}
			}
		}
	case types.ApplyCall:
		s := w.applied(x, call)
		if s != nil && s.scope != nil {
			for k, p := range s.body.Params {
				if o := w.view.info.Defs[p]; p.Dir == syntax.NoDir && k < len(call.Args) && call.Args[k] != nil {
					if a := w.view.fold(call.Args[k], w.scope); a != nil {
						s.scope.vals[o] = a
					}
				}
			}
			w.view.reach(s, w.unit)
		}
	}
}

// inline visits the body of a function or action. It stops at recursion, which the
// language forbids but an erroneous tree may contain.
func (w *walker) inline(o *types.Object, body *syntax.BlockStmt) {
	if w.view.busy[o] {
		return
	}
	w.view.busy[o] = true
	w.body(body)
	delete(w.view.busy, o)
}

// applied returns the instance to which .apply belongs. A type name before .apply
// creates an instance with the type's name.
func (w *walker) applied(x *syntax.CallExpr, call *types.Call) *site {
	recv := syntax.Unparen(call.Recv)
	if !w.view.info.Types[recv].IsType {
		s, _ := w.view.fold(recv, w.scope).(*site)
		return s
	}
	owner := w.scope.site
	if owner == nil {
		return nil
	}
	if s := owner.byCall[x]; s != nil {
		return s
	}
	ctor := &types.Call{Kind: types.Constructor, Result: w.view.info.Types[recv].Type}
	s := w.view.newSite(ctor, w.scope, owner.name+"."+typeWord(recv), x)
	owner.byCall[x] = s
	owner.direct = append(owner.direct, s)
	return s
}

// typeWord returns the name in a type expression.
func typeWord(x syntax.Expr) string {
	switch x := x.(type) {
	case *syntax.Name:
		return x.Value
	case *syntax.SpecializedType:
		return x.Base.Value
	}
	return syntax.String(x)
}
