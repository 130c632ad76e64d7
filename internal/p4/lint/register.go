package lint

import (
	"slices"
	"strings"

	"github.com/p4lb/p4lb/internal/p4/syntax"
	"github.com/p4lb/p4lb/internal/p4/types"
)

// registers checks the declarations of registers and the bodies of RegisterActions.
func (l *linter) registers() {
	for _, d := range l.file.Decls {
		for inst := range syntax.Each[*syntax.InstDecl](d) {
			switch t := l.externOf(inst); {
			case t == nil:
			case (t.Name == "Register" || t.Name == "DirectRegister") && len(t.Args) > 0:
				l.cell(inst, t.Args[0])
			case t.Name == "Random" && len(t.Args) > 0:
				if w, ok := types.WidthOf(t.Args[0]); ok && w > maxImmediate {
					l.errorf(inst, "a random number of %d bits, at most %d", w, maxImmediate)
				}
			case isRegisterAction(t.Name):
				// The body of a RegisterAction must fit the ALU.
				for _, member := range inst.Body {
					f, ok := member.(*syntax.FuncDecl)
					if !ok || f.Body == nil {
						continue
					}
					a := alu{l: l, own: map[string]bool{}}
					for _, p := range f.Params {
						a.own[p.Name.Value] = true
					}
					a.block(f.Body)
				}
			}
		}
	}
}

// isRegisterAction reports whether name is RegisterAction or one of the variants in
// Tofino 2.
func isRegisterAction(name string) bool {
	return strings.HasPrefix(name, "RegisterAction") || strings.HasPrefix(name, "DirectRegisterAction")
}

// cell checks that a stateful ALU supports the width of a register's cells.
func (l *linter) cell(d *syntax.InstDecl, t types.Type) {
	halves, signs := []int{}, map[bool]bool{}
	if s, ok := t.(*types.Struct); ok {
		for _, f := range s.Fields {
			w, _ := types.WidthOf(f.Type)
			halves, signs[signed(f.Type)] = append(halves, w), true
		}
	} else if w, ok := types.WidthOf(t); ok {
		halves = append(halves, w)
	}
	sum := 0
	for _, w := range halves {
		sum += w
	}
	switch {
	case len(halves) > 2:
		l.errorf(d, "a register with %d values in a cell, at most 2", len(halves))
	case len(halves) == 2 && halves[0] != halves[1]:
		l.errorf(d, "a register with halves of %d and %d bits: both must have the same width", halves[0], halves[1])
	case len(signs) == 2:
		l.errorf(d, "a register with one half signed and the other not: both must have one type")
	case sum > l.target.CellBits:
		l.errorf(d, "a register with a cell of %d bits, at most %d", sum, l.target.CellBits)
	case len(halves) > 0 && !slices.Contains([]int{1, 8, 16, 32, 64}, halves[0]):
		l.errorf(d, "a register with a cell of %d bits: want 1, 8, 16, 32 or two such halves", halves[0])
	}
}

// signed reports whether t is a signed type.
func signed(t types.Type) bool {
	bits, ok := t.(*types.Bits)
	return ok && bits.Signed
}

// maxOperands is the number of packet fields that a stateful ALU can read.
const maxOperands = 2

// An alu collects the operations of one RegisterAction.
type alu struct {
	l           *linter
	own         map[string]bool // parameters and variables of the body
	comparisons []string
	operands    []string
	ordered     []string // pairs of operands that an enclosing condition compares by size
}

func (a *alu) block(b *syntax.BlockStmt) {
	for _, s := range b.Stmts {
		a.stmt(s)
	}
}

func (a *alu) stmt(s syntax.Stmt) {
	switch s := s.(type) {
	case *syntax.BlockStmt:
		a.block(s)
	case *syntax.IfStmt:
		a.reads(s.Cond, s)
		a.compares(s.Cond, s)
		around := a.ordered
		if x, ok := syntax.Unparen(s.Cond).(*syntax.BinaryExpr); ok && x.Op >= syntax.Lss && x.Op <= syntax.Geq {
			a.ordered = append(a.ordered, syntax.String(x.X)+" "+syntax.String(x.Y), syntax.String(x.Y)+" "+syntax.String(x.X))
		}
		a.stmt(s.Then)
		if s.Else != nil {
			a.stmt(s.Else)
		}
		a.ordered = around
	case *syntax.AssignStmt:
		a.reads(s.RHS, s)
		a.computes(s.RHS)
	case *syntax.DeclStmt:
		if v, ok := s.Decl.(*syntax.VarDecl); ok {
			a.own[v.Name.Value] = true
		}
	}
}

// compares counts the distinct comparisons in the body.
func (a *alu) compares(cond syntax.Expr, at syntax.Node) {
	a.computes(cond)
	for x := range syntax.Each[*syntax.BinaryExpr](cond) {
		if x.Op < syntax.Lss || x.Op > syntax.Neq || a.l.constant(x) {
			continue
		}
		for _, side := range []syntax.Expr{x.X, x.Y} {
			a.wraps(side, x)
		}
		// a < b and a >= b count as one.
		op := map[syntax.Operator]string{
			syntax.Lss: "<", syntax.Geq: "<", syntax.Gtr: ">", syntax.Leq: ">", syntax.Eql: "=", syntax.Neq: "=",
		}[x.Op]
		text := syntax.String(x.X) + op + syntax.String(x.Y)
		if !slices.Contains(a.comparisons, text) {
			if a.comparisons = append(a.comparisons, text); len(a.comparisons) == a.l.target.Comparisons+1 {
				a.l.errorf(at, "%d comparisons, the stateful ALU has %d", len(a.comparisons), a.l.target.Comparisons)
			}
		}
	}
}

// wraps reports unsigned differences that are compared by size. The ALU computes
// with more bits than the operands have, so an unsigned difference does not wrap.
func (a *alu) wraps(side syntax.Expr, compared *syntax.BinaryExpr) {
	x, ok := syntax.Unparen(side).(*syntax.BinaryExpr)
	if !ok || x.Op != syntax.Sub || compared.Op == syntax.Eql || compared.Op == syntax.Neq || signed(a.l.info.Types[x].Type) {
		return
	}
	if slices.Contains(a.ordered, syntax.String(x.X)+" "+syntax.String(x.Y)) {
		return // an enclosing condition has compared the two
	}
	a.l.warnf(x, "comparison of an unsigned difference, which does not wrap in the stateful ALU: compare (int<%d>)(%s)", a.l.width(x), syntax.String(x))
}

// computes checks that the ALU supports the operators.
func (a *alu) computes(x syntax.Expr) {
	for b := range syntax.Each[*syntax.BinaryExpr](x) {
		a.l.binary(b, " in the stateful ALU")
	}
}

// reads counts the distinct packet fields that the body reads.
func (a *alu) reads(x syntax.Expr, at syntax.Node) {
	syntax.Inspect(x, func(n syntax.Node) bool {
		var text string
		switch n := n.(type) {
		case *syntax.SelectorExpr:
			if root, ok := n.X.(*syntax.Name); ok && a.own[root.Value] || a.l.constant(n) {
				return false
			}
			text = syntax.String(n)
		case *syntax.Name:
			if a.own[n.Value] || a.l.constant(n) || !a.variable(n) {
				return false
			}
			text = n.Value
		case *syntax.CallExpr:
			return false
		default:
			return true
		}
		if !slices.Contains(a.operands, text) {
			if a.operands = append(a.operands, text); len(a.operands) == maxOperands+1 {
				a.l.errorf(at, "%d fields of the packet, the stateful ALU reads %d", len(a.operands), maxOperands)
			}
		}
		return false
	})
}

func (a *alu) variable(n *syntax.Name) bool {
	o := a.l.info.Uses[n]
	return o != nil && (o.Kind == types.VarObj || o.Kind == types.ParamObj && !o.Ctor)
}
