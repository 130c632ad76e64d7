package lint

import "github.com/p4lb/p4lb/p4/syntax"

// unknown are the operators that no ALU has.
var unknown = map[syntax.Operator]string{
	syntax.Mul: "multiplication", syntax.Div: "division", syntax.Mod: "modulo",
}

// expressions looks at all that the program computes, wherever it does: in
// RegisterActions the stateful ALU is meant.
func (l *linter) expressions() {
	for _, d := range l.file.Decls {
		syntax.Inspect(d, func(n syntax.Node) bool {
			switch n := n.(type) {
			case *syntax.InstDecl:
				return false // registers.go
			case *syntax.BinaryExpr:
				l.binary(n, "")
			case *syntax.AssignStmt:
				l.sum(n)
			case *syntax.ActionDecl:
				l.chain(n)
				l.immediates(n)
			case *syntax.TableDecl:
				l.keys(n)
			case *syntax.IfStmt:
				l.condition(n.Cond)
			}
			return true
		})
	}
}

// binary wants an operator that the hardware has.
func (l *linter) binary(x *syntax.BinaryExpr, where string) {
	if l.constant(x) {
		return
	}
	if name := unknown[x.Op]; name != "" {
		l.errorf(x, "%s%s: there is none at run time", name, where)
	}
	if (x.Op == syntax.Shl || x.Op == syntax.Shr) && !l.constant(x.Y) {
		l.errorf(x, "shift by a number known at run time only%s", where)
	}
}

// arithmetic are the operators that take a step each.
func arithmetic(op syntax.Operator) bool {
	switch op {
	case syntax.Add, syntax.Sub, syntax.SatAdd, syntax.SatSub, syntax.And, syntax.Or, syntax.Xor, syntax.Shl, syntax.Shr:
		return true
	}
	return false
}

// sum wants no more than one operation in an assignment.
func (l *linter) sum(s *syntax.AssignStmt) {
	x, ok := syntax.Unparen(s.RHS).(*syntax.BinaryExpr)
	if !ok || !arithmetic(x.Op) || l.constant(x) {
		return
	}
	for _, side := range []syntax.Expr{x.X, x.Y} {
		inner, ok := syntax.Unparen(side).(*syntax.BinaryExpr)
		if ok && inner.Op == x.Op && (x.Op == syntax.Add || x.Op == syntax.Sub) && !l.constant(inner) && !l.constant(x.X) && !l.constant(x.Y) &&
			!l.constant(inner.X) && !l.constant(inner.Y) {
			l.errorf(s, "three operands: an action adds two; it takes another action, a stage later")
		}
	}
}

// chain wants the statements of an action to be independent: they run at once.
func (l *linter) chain(a *syntax.ActionDecl) {
	computed := map[string]bool{}
	for _, s := range a.Body.Stmts {
		s, ok := s.(*syntax.AssignStmt)
		if !ok {
			continue
		}
		if x, ok := syntax.Unparen(s.RHS).(*syntax.BinaryExpr); ok && arithmetic(x.Op) {
			for _, side := range []syntax.Expr{x.X, x.Y} {
				if name := syntax.String(side); computed[name] {
					l.errorf(s, "%s has just been computed in this action, whose statements run at once; it takes another action, a stage later", name)
				}
			}
			if !l.constant(x) {
				computed[syntax.String(s.LHS)] = true
			}
		}
	}
}

// maxImmediate is what a table gets of hashes, random numbers and meters.
const maxImmediate = 32

// immediates bounds what an action takes from hash and random units.
func (l *linter) immediates(a *syntax.ActionDecl) {
	sum := 0
	syntax.Inspect(a.Body, func(n syntax.Node) bool {
		call, ok := n.(*syntax.CallExpr)
		if !ok {
			return true
		}
		fun, ok := call.Fun.(*syntax.SelectorExpr)
		if !ok || fun.Sel.Value != "get" {
			return true
		}
		d := l.instance(fun.X)
		if d == nil {
			return true
		}
		if t := l.externOf(d); t != nil && (t.Name == "Random" || t.Name == "Hash") {
			if w := l.width(call); w > maxImmediate {
				return true // the declaration says so
			} else if sum += w; sum > maxImmediate {
				l.errorf(call, "an action that takes %d bits of hashes and random numbers, at most %d", sum, maxImmediate)
			}
		}
		return true
	})
}

// maxRange is the widest key that is matched by range.
const maxRange = 20

func (l *linter) keys(t *syntax.TableDecl) {
	if t.Key == nil {
		return
	}
	for _, k := range t.Key.Elems {
		if w := l.width(k.X); k.Match.Value == "range" && w > maxRange {
			l.errorf(k, "a range of %d bits, at most %d", w, maxRange)
		}
	}
}

// What a condition can look at: 4 bytes to compare for equality, and 12 bits
// more, which alone can be compared for order.
const (
	maxCondition = 44
	maxOrdered   = 12
)

// condition wants one that a gateway can decide.
func (l *linter) condition(cond syntax.Expr) {
	bits := 0
	syntax.Inspect(cond, func(n syntax.Node) bool {
		x, ok := n.(*syntax.BinaryExpr)
		if !ok || l.constant(x) {
			return true
		}
		switch x.Op {
		case syntax.Lss, syntax.Leq, syntax.Gtr, syntax.Geq:
			l.order(x)
			bits += l.width(x.X)
		case syntax.Eql, syntax.Neq:
			bits += max(l.width(x.X), l.width(x.Y))
			l.plain(x)
		default:
			return true
		}
		return false
	})
	if bits > maxCondition {
		l.errorf(cond, "a condition on %d bits, at most %d; a table decides about more", bits, maxCondition)
	}
}

func (l *linter) order(x *syntax.BinaryExpr) {
	l.plain(x)
	switch w := max(l.width(x.X), l.width(x.Y)); {
	case !l.constant(x.X) && !l.constant(x.Y):
		l.errorf(x, "comparison of two fields: subtract first, with |-| for instance, and look whether 0 is left")
	case w > maxOrdered:
		l.errorf(x, "comparison of %d bits, at most %d; a table with a range decides about more", w, maxOrdered)
	}
}

// plain wants fields and constants on both sides.
func (l *linter) plain(x *syntax.BinaryExpr) {
	for _, side := range []syntax.Expr{x.X, x.Y} {
		if b, ok := syntax.Unparen(side).(*syntax.BinaryExpr); ok && !l.constant(b) && b.Op != syntax.And {
			l.errorf(x, "a condition that computes %s: compute it first", syntax.String(b))
		}
	}
}
