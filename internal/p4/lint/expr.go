package lint

import (
	"math/big"
	"math/bits"
	"slices"

	"github.com/p4lb/p4lb/internal/p4/syntax"
	"github.com/p4lb/p4lb/internal/p4/types"
)

// unknown maps the operators that no ALU supports to their names.
var unknown = map[syntax.Operator]string{
	syntax.Mul: "multiplication", syntax.Div: "division", syntax.Mod: "modulo",
}

// expressions checks all expressions of the program. Instances with a body are
// checked in register.go.
func (l *linter) expressions() {
	for _, d := range l.file.Decls {
		syntax.Inspect(d, func(n syntax.Node) bool {
			switch n := n.(type) {
			case *syntax.InstDecl:
				return false // checked in register.go
			case *syntax.BinaryExpr:
				l.binary(n, "")
			case *syntax.AssignStmt:
				// An assignment may contain only one operation.
				x, ok := syntax.Unparen(n.RHS).(*syntax.BinaryExpr)
				if ok && arithmetic(x.Op) && !l.constant(x) {
					for _, side := range []syntax.Expr{x.X, x.Y} {
						inner, ok := syntax.Unparen(side).(*syntax.BinaryExpr)
						if ok && inner.Op == x.Op && (x.Op == syntax.Add || x.Op == syntax.Sub) && !l.constant(inner) && !l.constant(x.X) && !l.constant(x.Y) &&
							!l.constant(inner.X) && !l.constant(inner.Y) {
							l.errorf(n, "a sum of three operands: an action adds two; add the third in an action of a later stage")
						}
					}
				}
			case *syntax.ActionDecl:
				l.chain(n)
				l.immediates(n)
			case *syntax.TableDecl:
				if n.Key != nil {
					for _, k := range n.Key.Elems {
						if w := l.width(k.X); k.Match.Value == "range" && w > maxRange {
							l.errorf(k, "a range of %d bits, at most %d", w, maxRange)
						}
					}
				}
			case *syntax.IfStmt:
				l.condition(n.Cond)
				l.applied(n.Cond)
			case *syntax.CallExpr:
				l.constants(n)
			}
			return true
		})
	}
}

// binary checks that the hardware supports the operator.
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

// arithmetic reports whether an operator takes an ALU step of its own.
func arithmetic(op syntax.Operator) bool {
	switch op {
	case syntax.Add, syntax.Sub, syntax.SatAdd, syntax.SatSub, syntax.And, syntax.Or, syntax.Xor, syntax.Shl, syntax.Shr:
		return true
	}
	return false
}

// chain checks that the statements of an action are independent, because the
// hardware executes them at once.
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
					l.errorf(s, "%s is computed in this action, and all statements of an action run at once: read it in another action, a stage later", name)
				}
			}
			if !l.constant(x) {
				computed[syntax.String(s.LHS)] = true
			}
		}
	}
}

// maxImmediate bounds the bits that a table gets from hashes, random numbers and
// meters.
const maxImmediate = 32

// immediates checks the number of bits that an action gets from hash and random
// units.
func (l *linter) immediates(a *syntax.ActionDecl) {
	sum := 0
	for call := range syntax.Each[*syntax.CallExpr](a.Body) {
		d, method := l.method(call)
		t := l.externOf(d)
		if method != "get" || t == nil || t.Name != "Random" && t.Name != "Hash" {
			continue
		}
		if w := l.width(call); w > maxImmediate {
			continue // the declaration determines the width
		} else if t.Name == "Hash" && l.knownData(call) {
			continue // p4c computes the hash of constants
		} else if sum += w; sum > maxImmediate {
			l.errorf(call, "an action that takes %d bits of hashes and random numbers, at most %d", sum, maxImmediate)
		}
	}
}

// knownData reports whether the input of a hash is constant.
func (l *linter) knownData(c *syntax.CallExpr) bool {
	for _, a := range c.Args {
		list, ok := syntax.Unparen(a.Value).(*syntax.ListExpr)
		if !ok {
			return l.constant(a.Value)
		}
		if slices.ContainsFunc(list.Elems, func(x syntax.Expr) bool { return !l.constant(x) }) {
			return false
		}
	}
	return true
}

// maxRange is the widest key that supports range matches.
const maxRange = 20

// The inputs of a gateway: 4 bytes that can be compared for equality, and 12 more
// bits. Only these 12 can be compared for order.
const (
	maxCondition = 44
	maxOrdered   = 12
)

// condition checks that a gateway can evaluate a condition. The compiler evaluates
// the operands of || one after the other.
func (l *linter) condition(cond syntax.Expr) {
	if x, ok := syntax.Unparen(cond).(*syntax.BinaryExpr); ok && x.Op == syntax.OrOr && !l.constant(x) {
		l.condition(x.X)
		l.condition(x.Y)
		return
	}
	width, seen := 0, map[string]bool{}
	syntax.Inspect(cond, func(n syntax.Node) bool {
		x, ok := n.(*syntax.BinaryExpr)
		if !ok || l.constant(x) {
			return true
		}
		switch x.Op {
		case syntax.Lss, syntax.Leq, syntax.Gtr, syntax.Geq:
			l.plain(x)
			switch w := max(l.width(x.X), l.width(x.Y)); {
			case !l.constant(x.X) && !l.constant(x.Y):
				l.errorf(x, "comparison of two fields: subtract first, for example with |-|, and compare the result with 0")
			case w > maxOrdered && !l.masked(x):
				l.errorf(x, "comparison of %d bits, at most %d; a table with a range decides about more", w, maxOrdered)
			}
		case syntax.Eql, syntax.Neq:
			l.plain(x)
		default:
			return true
		}
		if field, n := l.compared(x); !seen[field] {
			seen[field] = true
			width += n
		}
		return false
	})
	if width > maxCondition {
		l.errorf(cond, "a condition on %d bits, at most %d; a table decides about more", width, maxCondition)
	}
}

// applied checks that a table's apply() is not an operand of && or ||.
func (l *linter) applied(cond syntax.Expr) {
	x, ok := syntax.Unparen(cond).(*syntax.BinaryExpr)
	if !ok || x.Op != syntax.AndAnd && x.Op != syntax.OrOr {
		return
	}
	for c := range syntax.Each[*syntax.CallExpr](x) {
		if l.info.Calls[c] != nil && l.info.Calls[c].Kind == types.TableApply {
			l.errorf(c, "a table applied in a condition with && or ||: it needs a separate if")
		}
	}
}

// constants checks that the data of Mirror, Resubmit and Digest come from fields. A
// mirror session must also come from a field if the mirror has a header.
func (l *linter) constants(c *syntax.CallExpr) {
	d, _ := l.method(c)
	t := l.externOf(d)
	if t == nil || t.Name != "Mirror" && t.Name != "Resubmit" && t.Name != "Digest" || t.Name == "Mirror" && len(c.Args) == 1 {
		return
	}
	for _, a := range c.Args {
		elems := []syntax.Expr{a.Value}
		if list, ok := syntax.Unparen(a.Value).(*syntax.ListExpr); ok {
			elems = list.Elems
		}
		for _, x := range elems {
			if n := types.Number(l.info.Types[x].Value); n != nil && n.Sign() != 0 {
				l.errorf(x, "a constant in the data of %s: only 0 can be a constant: want a field", t.Name)
			}
		}
	}
}

// compared returns the operand of a comparison as text, and its width. For a masked
// operand, it counts only the bits in the mask.
func (l *linter) compared(x *syntax.BinaryExpr) (string, int) {
	side := x.X
	if l.constant(side) {
		side = x.Y
	}
	n := max(l.width(x.X), l.width(x.Y))
	if and, ok := syntax.Unparen(side).(*syntax.BinaryExpr); ok && and.Op == syntax.And {
		for _, mask := range []syntax.Expr{and.X, and.Y} {
			if m := types.Number(l.info.Types[mask].Value); m != nil && m.Sign() >= 0 {
				sum := 0
				for _, w := range m.Bits() {
					sum += bits.OnesCount(uint(w))
				}
				n = min(n, sum)
			}
		}
	}
	return syntax.String(side), n
}

// masked reports whether a comparison for order tests only the sign or the bits
// above a power of two. The compiler turns such a comparison into one for equality.
// If the constant depends on an instance, masked assumes that it does.
func (l *linter) masked(x *syntax.BinaryExpr) bool {
	field, op, bound := x.X, x.Op, x.Y
	if l.constant(field) {
		field, bound = bound, field
		op = map[syntax.Operator]syntax.Operator{
			syntax.Lss: syntax.Gtr, syntax.Gtr: syntax.Lss, syntax.Leq: syntax.Geq, syntax.Geq: syntax.Leq,
		}[op]
	}
	n := types.Number(l.info.Types[bound].Value)
	if n == nil {
		return true
	}
	if op == syntax.Leq || op == syntax.Gtr { // rewrite x <= n as x < n+1
		n = new(big.Int).Add(n, big.NewInt(1))
	}
	if signed(l.info.Types[field].Type) {
		return n.Sign() == 0
	}
	return n.Sign() >= 0 && n.BitLen() <= int(n.TrailingZeroBits())+1
}

// plain checks that both sides of a comparison are fields or constants.
func (l *linter) plain(x *syntax.BinaryExpr) {
	for _, side := range []syntax.Expr{x.X, x.Y} {
		if b, ok := syntax.Unparen(side).(*syntax.BinaryExpr); ok && !l.constant(b) && b.Op != syntax.And {
			l.errorf(x, "a condition that computes %s: compute it first", syntax.String(b))
		}
	}
}
