// Package lint reports the parts of a checked program that Tofino's hardware cannot
// run. Otherwise the user learns about these rules only from the compiler's back
// end, whose errors refer to its intermediate form:
//
//	expressions  no multiplication, division, modulo or shift by a field, no sum
//	             of three, no result used in the action that computes it
//	conditions   44 bits of fields, constants to compare with, 12 bits for < and >,
//	             a table alone
//	deparsers    Mirror, Resubmit and Digest send no constants but 0
//	registers    cells of 8, 16, 32 or two such halves, one access for each packet
//	stateful ALU two comparisons (Tofino 2: four), two fields of the packet;
//	             only signed differences wrap
//	tables       applied once, ranges of 20 bits, 32 bits of hashes and randomness
//	depth        no chain of dependent steps that is longer than the pipeline
//
// A program that passes may still be too large for the chip. The depth is a warning
// only, because the compiler may combine several steps. A comparison of an unsigned
// difference is a warning too: the compiler accepts it, but the difference does not
// wrap.
package lint

import (
	"fmt"
	"slices"

	"github.com/p4lb/p4lb/internal/p4/syntax"
	"github.com/p4lb/p4lb/internal/p4/types"
)

// A Target is a chip.
type Target struct {
	Name        string
	Stages      int
	Comparisons int // of one stateful ALU
	CellBits    int // the widest cell of a register
}

// The targets.
var (
	Tofino1 = Target{Name: "Tofino 1", Stages: 12, Comparisons: 2, CellBits: 64}
	Tofino2 = Target{Name: "Tofino 2", Stages: 20, Comparisons: 4, CellBits: 128}
)

// A linter holds the state of checking one program.
type linter struct {
	file   *syntax.File
	info   *types.Info
	target Target
	errs   syntax.Errors
	said   map[syntax.Pos]bool
}

// Check checks the pipelines in the program's main and the declarations that they
// use. The errors come in source order.
func Check(file *syntax.File, info *types.Info, target Target) syntax.Errors {
	l := &linter{file: file, info: info, target: target, said: map[syntax.Pos]bool{}}
	l.expressions()
	l.registers()
	for _, c := range l.controls() {
		w := &walk{l: l, names: map[string]string{}, deep: new(bool)}
		w.stmt(c.Body, &state{touched: map[string]bool{}, written: map[string]int{}})
	}
	slices.SortStableFunc(l.errs, func(a, b *syntax.Error) int {
		return (a.Pos.Line()-b.Pos.Line())<<10 + a.Pos.Col() - b.Pos.Col()
	})
	return l.errs
}

// errorf reports an error, at most one for each position.
func (l *linter) errorf(n syntax.Node, format string, args ...any) { l.report(n, false, format, args) }

// warnf reports code that the compiler accepts or may accept.
func (l *linter) warnf(n syntax.Node, format string, args ...any) { l.report(n, true, format, args) }

func (l *linter) report(n syntax.Node, warning bool, format string, args []any) {
	if pos := n.Pos(); !l.said[pos] {
		l.said[pos] = true
		l.errs = append(l.errs, &syntax.Error{Pos: pos, Msg: fmt.Sprintf(format, args...), Warning: warning})
	}
}

// controls lists the ingress and egress controls of all pipelines.
func (l *linter) controls() []*syntax.ControlDecl {
	var list []*syntax.ControlDecl
	for _, call := range l.info.Insts {
		pkg, ok := call.Result.(*types.Package)
		if !ok || pkg.Name != "Pipeline" && pkg.Name != "MultiParserPipeline" {
			continue
		}
		for i, arg := range call.Args {
			if i != 1 && i != 4 || arg == nil {
				continue
			}
			if t, ok := l.info.Types[arg].Type.(*types.Control); ok && !slices.Contains(list, t.Decl) {
				list = append(list, t.Decl)
			}
		}
	}
	return list
}

// externOf returns the extern type of an instance, or nil if the instance is not an
// extern object.
func (l *linter) externOf(d *syntax.InstDecl) *types.Extern {
	call := l.info.Insts[d]
	if call == nil {
		return nil
	}
	t, _ := call.Result.(*types.Extern)
	return t
}

// instance returns the declaration of the instance that an expression names.
func (l *linter) instance(x syntax.Expr) *syntax.InstDecl {
	name, ok := syntax.Unparen(x).(*syntax.Name)
	if !ok || l.info.Uses[name] == nil {
		return nil
	}
	d, _ := l.info.Uses[name].Decl.(*syntax.InstDecl)
	return d
}

// method returns the declaration of the object of a method call and the method's
// name. The declaration is nil if c is not a method call.
func (l *linter) method(c *syntax.CallExpr) (object *syntax.InstDecl, name string) {
	fun, ok := c.Fun.(*syntax.SelectorExpr)
	if !ok {
		return nil, ""
	}
	return l.instance(fun.X), fun.Sel.Value
}

// width returns the number of bits of an expression, or 0 if it has no width.
func (l *linter) width(x syntax.Expr) int {
	if t := l.info.Types[x].Type; t != nil {
		if bits, ok := types.WidthOf(t); ok {
			return bits
		}
	}
	return 0
}

// constant reports whether an expression is known when the program is compiled.
func (l *linter) constant(x syntax.Expr) bool {
	if l.info.Types[x].Value != nil {
		return true
	}
	switch x := syntax.Unparen(x).(type) {
	case *syntax.IntLit, *syntax.BoolLit:
		return true
	case *syntax.CastExpr:
		return l.constant(x.X)
	case *syntax.BinaryExpr:
		return l.constant(x.X) && l.constant(x.Y)
	case *syntax.Name:
		o := l.info.Uses[x]
		return o != nil && (o.Ctor || o.Kind == types.ConstObj)
	}
	return false
}
