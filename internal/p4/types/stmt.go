package types

import (
	"slices"

	"github.com/p4lb/p4lb/internal/p4/syntax"
)

func (c *checker) stmts(list []syntax.Stmt) {
	for _, s := range list {
		c.stmt(s)
	}
}

func (c *checker) stmt(s syntax.Stmt) {
	switch s := s.(type) {
	case *syntax.DeclStmt:
		c.decl(s.Decl)
	case *syntax.AssignStmt:
		c.assignStmt(s)
	case *syntax.CallStmt:
		tv := c.expr(s.Call)
		if call := c.info.Calls[s.Call]; !tv.IsType && call != nil && call.Kind == Constructor {
			c.errorf(s.Pos(), "an instance of %s is constructed and not named", call.Result)
		}
	case *syntax.BlockStmt:
		c.annotations(s.Annotations)
		c.block(func() { c.stmts(s.Stmts) })
	case *syntax.IfStmt:
		c.assign(s.Cond, Bool, "the condition of if")
		c.block(func() { c.stmt(s.Then) })
		if s.Else != nil {
			c.block(func() { c.stmt(s.Else) })
		}
	case *syntax.SwitchStmt:
		c.switchStmt(s)
	case *syntax.ForStmt:
		c.annotations(s.Annotations)
		c.block(func() {
			c.stmts(s.Init)
			if s.Cond != nil {
				c.assign(s.Cond, Bool, "the condition of for")
			}
			c.loop(s.Body)
			c.stmts(s.Post)
		})
	case *syntax.ForInStmt:
		c.annotations(s.Annotations)
		c.block(func() {
			t := c.varType(s.Var.Type, s.Var.Name)
			c.collection(s, t)
			o := c.declare(&Object{Kind: VarObj, Type: t, used: true}, s.Var, s.Var.Name)
			o.used = true
			c.loop(s.Body)
		})
	case *syntax.ReturnStmt:
		c.returnStmt(s)
	case *syntax.ExitStmt:
		if c.env.place == inFunction || c.env.place == inState {
			c.errorf(s.Pos(), "exit cannot be used %s", c.env.place)
		}
	case *syntax.BreakStmt:
		c.inLoop(s.Pos(), "break")
	case *syntax.ContinueStmt:
		c.inLoop(s.Pos(), "continue")
	}
}

func (c *checker) inLoop(pos syntax.Pos, what string) {
	if c.env.loops == 0 {
		c.errorf(pos, "%s can be used only in a for loop", what)
	}
}

func (c *checker) assignStmt(s *syntax.AssignStmt) {
	lhs := c.value(s.LHS)
	if lhs.Type == Invalid {
		c.value(s.RHS)
		return
	}
	if !lhs.LValue {
		c.errorf(s.LHS.Pos(), "%s cannot be assigned to%s", show(s.LHS), c.whyReadOnly(s.LHS))
		c.value(s.RHS)
		return
	}
	if s.Op != syntax.NoOp {
		c.changes(s.LHS)
		c.opAssign(s, lhs)
		return
	}
	c.assign(s.RHS, lhs.Type, show(s.LHS))
	c.writes(s.LHS)
}

// opAssign checks x op= y as x = x op y.
func (c *checker) opAssign(s *syntax.AssignStmt, lhs TypeAndValue) {
	if _, ok := lhs.Type.(*Bits); !ok {
		c.errorf(s.Pos(), "%s= needs numbers, but %s has type %s", s.Op, show(s.LHS), lhs.Type)
		c.value(s.RHS)
		return
	}
	e := &syntax.BinaryExpr{Op: s.Op, X: s.LHS, Y: s.RHS}
	y := c.value(s.RHS)
	if y.Type == Invalid {
		return
	}
	before := len(c.errs)
	switch s.Op {
	case syntax.Shl, syntax.Shr:
		c.shift(e, lhs, y)
	default:
		c.arith(e, lhs, y)
	}
	// The operator has no node of its own, so diagnostics without a position get
	// the statement's.
	for _, err := range c.errs[before:] {
		if !err.Pos.IsKnown() {
			err.Pos = s.Pos()
		}
	}
}

func (c *checker) returnStmt(s *syntax.ReturnStmt) {
	if c.env.place == inState {
		c.errorf(s.Pos(), "return cannot be used in a parser")
		return
	}
	if c.env.result == nil {
		if s.Value != nil {
			c.value(s.Value)
			c.errorf(s.Pos(), "return gives a value only in a function")
		}
		return
	}
	switch {
	case c.env.result == Void && s.Value != nil:
		c.value(s.Value)
		c.errorf(s.Pos(), "%s returns nothing, but return has a value", c.env.apply.Value)
	case c.env.result == Void:
	case s.Value == nil:
		c.errorf(s.Pos(), "return needs a value of type %s in %s", c.env.result, c.env.apply.Value)
	default:
		c.assign(s.Value, c.env.result, "the result of "+c.env.apply.Value)
	}
}

func (c *checker) loop(body syntax.Stmt) {
	c.env.loops++
	c.block(func() { c.stmt(body) })
	c.env.loops--
}

// collection checks the collection of for (x in …).
func (c *checker) collection(s *syntax.ForInStmt, t Type) {
	name := s.Var.Name.Value
	if r, ok := syntax.Unparen(s.Coll).(*syntax.RangeExpr); ok {
		if _, ok := Underlying(t).(*Bits); !ok && t != Invalid {
			c.errorf(s.Var.Pos(), "%s runs through a range of numbers and cannot have type %s", name, t)
			t = Invalid
		}
		c.assign(r.Lo, t, "the loop variable "+name)
		c.assign(r.Hi, t, "the loop variable "+name)
		c.record(r, TypeAndValue{Type: &Set{Elem: t}})
		return
	}
	tv := c.value(s.Coll)
	var elem Type
	switch u := tv.Type.(type) {
	case *Stack:
		elem = u.Elem
	case *List:
		elem = u.Elem
	case *Tuple:
		if isLiteralList(s.Coll) {
			c.assignValue(s.Coll, tv, &List{Elem: t}, "the loop variable "+name)
			return
		}
		c.errorf(s.Coll.Pos(), "for cannot run through a tuple")
		return
	default:
		c.errorf(s.Coll.Pos(), "for runs through a range, an array or a list, not through %s", tv.Type)
		return
	}
	if !matches(elem, t) && t != Invalid && !castable(t, elem) {
		c.errorf(s.Var.Pos(), "%s has type %s, but the elements of %s have type %s", name, t, show(s.Coll), elem)
	}
}

func (c *checker) switchStmt(s *syntax.SwitchStmt) {
	if c.env.place == inState {
		c.errorf(s.Pos(), "switch cannot be used in a parser")
	}
	c.env.head = syntax.Unparen(s.X)
	x := c.value(s.X)
	c.env.head = nil
	c.switchLabels(s, x)
	for _, k := range s.Cases {
		if k.Body != nil {
			c.block(func() { c.stmt(k.Body) })
		}
	}
}

// switchLabels checks the labels: their types, that no label occurs twice, and that
// default is the last.
func (c *checker) switchLabels(s *syntax.SwitchStmt, x TypeAndValue) {
	if !switchable(x.Type) {
		c.errorf(s.X.Pos(), "switch cannot be made on a value of type %s", x.Type)
		x = invalid
	}
	var dflt *syntax.SwitchCase
	seen := labels{map[*Object]bool{}, map[string]bool{}}
	for _, k := range s.Cases {
		if _, ok := k.Label.(*syntax.DefaultExpr); ok {
			if dflt != nil {
				c.errorf(k.Pos(), "switch has two default labels")
			}
			dflt = k
			c.record(k.Label, dontCare)
			continue
		}
		if dflt != nil {
			c.errorf(k.Pos(), "the label %s comes after default, which must be the last", show(k.Label))
		}
		if run, ok := x.Type.(*ActionRun); ok {
			c.actionLabel(k, run, seen)
		} else {
			c.valueLabel(k, s.X, x, seen)
		}
	}
}

// switchable reports whether a switch can branch on a value of type t.
func switchable(t Type) bool {
	switch t.(type) {
	case *ActionRun, *Bits, *Enum:
		return true
	}
	return t == Int || t == Error || t == Invalid || t == Bool
}

// A labels holds the labels of a switch seen so far.
type labels struct {
	actions map[*Object]bool
	values  map[string]bool // keys are from valueKey
}

func (c *checker) actionLabel(k *syntax.SwitchCase, run *ActionRun, seen labels) {
	n, ok := k.Label.(*syntax.Name)
	if !ok {
		c.errorf(k.Label.Pos(), "a label of action_run must be the name of an action, not %s", show(k.Label))
		return
	}
	actions := c.tables[run.Table]
	var o *Object
	if found := c.scope.lookup(n.Value, nil); found != nil && found.Kind == ActionObj {
		o = found
	}
	if n.Global {
		o = c.top.names[n.Value]
	}
	if o == nil || actions[o] == nil {
		if o = nil; !n.Global {
			for a := range actions {
				if a.Name == n.Value {
					o = a
				}
			}
		}
	}
	if o == nil {
		c.errorf(n.Pos(), "%s is no action of table %s%s", n.Value, run.Table.Name.Value, c.suggest(n.Value, actionNames(actions)))
		c.record(n, invalid)
		return
	}
	c.info.Uses[n] = o
	c.record(n, TypeAndValue{Type: run})
	if seen.actions[o] {
		c.errorf(n.Pos(), "the label %s comes twice", n.Value)
	}
	seen.actions[o] = true
}

func (c *checker) valueLabel(k *syntax.SwitchCase, e syntax.Expr, x TypeAndValue, seen labels) {
	tv := c.value(k.Label)
	if tv.Type == Invalid || x.Type == Invalid {
		return
	}
	tv = c.assignValue(k.Label, tv, x.Type, "the label of the switch on "+show(e))
	if tv.Type == Invalid {
		return
	}
	if !tv.known {
		c.errorf(k.Label.Pos(), "the label %s is not known at compile time", show(k.Label))
		return
	}
	if tv.Value == nil {
		return
	}
	v := valueKey(tv.Value)
	if seen.values[v] {
		c.errorf(k.Label.Pos(), "the label %s comes twice", show(k.Label))
	}
	seen.values[v] = true
}

// terminates reports whether control never reaches the end of s.
func terminates(s syntax.Stmt) bool {
	switch s := s.(type) {
	case *syntax.ReturnStmt, *syntax.ExitStmt:
		return true
	case *syntax.BlockStmt:
		return slices.ContainsFunc(s.Stmts, terminates)
	case *syntax.IfStmt:
		return s.Else != nil && terminates(s.Then) && terminates(s.Else)
	case *syntax.SwitchStmt:
		complete := false
		for _, k := range s.Cases {
			if _, ok := k.Label.(*syntax.DefaultExpr); ok {
				complete = true
			}
			if k.Body != nil && !terminates(k.Body) {
				return false
			}
		}
		return complete && s.Cases[len(s.Cases)-1].Body != nil
	}
	return false
}
