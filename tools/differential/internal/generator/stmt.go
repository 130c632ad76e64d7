package generator

import (
	"math/big"

	"github.com/p4lb/p4lb/tools/differential/internal/source"
)

// block returns a block of at most n statements with its own scope.
func (g *generator) block(n int) *source.Block {
	b := new(source.Block)
	g.with(func() { g.fill(b, n) })
	return b
}

// fill adds n statements to a block.
func (g *generator) fill(b *source.Block, n int) {
	for range n {
		if g.budget <= 0 {
			return
		}
		g.budget--
		g.statement(b)
	}
}

// nested returns a short block.
func (g *generator) nested() *source.Block { return g.block(1 + g.r.IntN(3)) }

const depth = 3 // nesting depth of expressions

func (g *generator) statement(b *source.Block) {
	switch g.r.IntN(28) {
	case 0, 1, 2:
		g.declare(b)
	case 3, 4, 5:
		g.conditional(b)
	case 6:
		g.update(b)
	case 7:
		g.switchValue(b)
	case 8:
		b.Add(source.Scope(g.nested()))
	case 9:
		g.structAssign(b)
	case 10, 11:
		g.callStatement(b)
	case 12:
		g.loop(b)
	case 13:
		g.leave(b)
	case 14, 15:
		g.headerStatement(b)
	case 16, 17, 18:
		g.tableStatement(b)
	case 19, 20, 21:
		g.externStatement(b)
	case 22, 23:
		g.partStatement(b)
	default:
		g.assign(b)
	}
}

// declare declares a variable.
func (g *generator) declare(b *source.Block) {
	v := &source.Var{Name: g.name("v"), Type: g.varType()}
	b.Add(source.Declare(v, g.value(v.Type, depth), ""))
	g.add(v.Ref(), true)
}

// assign assigns to a number, bool or enum.
func (g *generator) assign(b *source.Block) {
	list := g.find(func(p place) bool {
		_, agg := p.x.Type.(*source.Struct)
		_, stack := p.x.Type.(*source.Stack)
		return p.writable && !agg && !stack
	})
	if len(list) == 0 {
		return
	}
	x := pick(g, list).x
	t, ok := x.Type.(source.Bits)
	switch {
	case ok && g.one(8):
		b.Add(source.Assign(x, g.unsized(t)))
	case ok && t.Width > 1 && g.one(4):
		g.p.Use("slice as lvalue")
		low := g.r.IntN(t.Width)
		high := low + g.r.IntN(t.Width-low)
		b.Add(source.Assign(source.Slice(x, high, low), g.bits(source.Bits{Width: high - low + 1}, depth)))
	default:
		b.Add(source.Assign(x, g.value(x.Type, depth)))
	}
}

// update adds a compound assignment.
func (g *generator) update(b *source.Block) {
	list := g.find(func(p place) bool { return p.writable && isBits(p.x.Type) })
	if len(list) == 0 {
		return
	}
	g.p.Use("compound assignment")
	x := pick(g, list).x
	t := x.Type.(source.Bits)
	if g.one(5) && !t.Signed && t.Width > 2 {
		x = source.Slice(x, t.Width-2, 1)
		t = x.Type.(source.Bits)
	}
	if g.one(4) {
		b.Add(source.Update(x, pick(g, []string{"<<", ">>"}), g.amount(t, 1)))
		return
	}
	b.Add(source.Update(x, pick(g, []string{"+", "-", "*", "&", "|", "^", "|+|", "|-|"}), g.bits(t, depth)))
}

// structAssign assigns a whole structure, tuple or header.
func (g *generator) structAssign(b *source.Block) {
	list := g.find(func(p place) bool {
		t, ok := p.x.Type.(*source.Struct)
		return p.writable && ok && t.Kind != source.UnionKind
	})
	if len(list) == 0 {
		return
	}
	g.p.Use("struct")
	x := pick(g, list).x
	b.Add(source.Assign(x, g.aggregate(x.Type.(*source.Struct), 2)))
}

func (g *generator) conditional(b *source.Block) {
	cond := g.boolean(depth)
	then := g.nested()
	if g.one(2) {
		b.Add(source.If(cond, then, nil))
		return
	}
	b.Add(source.If(cond, then, g.nested()))
}

// switchValue adds a switch on a number or enumeration.
func (g *generator) switchValue(b *source.Block) {
	if g.where == inParser { // parsers have no switch (section 13.4)
		return
	}
	g.p.Use("switch")
	var cases []source.SwitchCase
	var x *source.Expr
	body := func() *source.Block {
		if g.one(5) {
			return nil
		}
		return g.nested()
	}
	if g.one(3) {
		t := pick(g, g.enums)
		x = g.enum(t, 1)
		for i := range t.Members[1:] {
			cases = append(cases, source.SwitchCase{Labels: []*source.Expr{source.EnumLiteral(t, i)}, Body: body()})
		}
	} else {
		t := g.likely()
		x = g.bits(t, 1)
		seen := map[string]bool{}
		for range 1 + g.r.IntN(3) {
			l := g.unsized(t)
			if v := l.Num(nil).String(); !seen[v] {
				seen[v] = true
				cases = append(cases, source.SwitchCase{Labels: []*source.Expr{l}, Body: body()})
			}
		}
	}
	if g.one(2) {
		cases = append(cases, source.SwitchCase{Body: g.nested()})
	} else {
		cases[len(cases)-1].Body = g.nested()
	}
	b.Add(source.Switch(x, cases))
}

// callStatement calls a function or an action.
func (g *generator) callStatement(b *source.Block) {
	if g.where == inControl || g.where == inAction {
		if len(g.actions) > 0 && !g.one(3) {
			a := pick(g, g.actions)
			if args := g.arguments(a.Params, 2); args != nil {
				g.p.Use("direct action")
				b.Add(source.CallStmt(a, a.Name, args))
			}
			return
		}
	}
	if len(g.funcs) == 0 {
		return
	}
	f := pick(g, g.funcs)
	if args := g.arguments(f.Params, 2); args != nil {
		g.p.Use("function statement")
		b.Add(source.CallStmt(f, f.Name, args))
	}
}

// loop adds a for loop with few iterations.
func (g *generator) loop(b *source.Block) {
	if g.loops > 0 || g.where == inParser {
		return
	}
	g.p.Use("loop")
	g.loops++
	defer func() { g.loops-- }()
	t := source.Bits{Width: pick(g, []int{4, 8, 16, 32})}
	v := &source.Var{Name: g.name("i"), Type: t}
	body := func() *source.Block {
		var inner *source.Block
		g.with(func() {
			g.add(v.Ref(), false)
			inner = g.nested()
			if g.one(3) {
				s := source.Break()
				if g.one(2) {
					s = source.Continue()
				}
				inner.Add(source.If(g.boolean(2), &source.Block{Stmts: []source.Stmt{s}}, nil))
				g.fill(inner, 1)
			}
		})
		return inner
	}
	n := int64(1 + g.r.IntN(4))
	if g.one(2) {
		low := int64(g.r.IntN(4))
		b.Add(source.ForIn(v, source.Literal(t, big.NewInt(low), 10, true), source.Literal(t, big.NewInt(low+n-1), 10, true), body()))
		return
	}
	step := source.Assign(v.Ref(), source.Binary("+", v.Ref(), source.Literal(t, big.NewInt(1), 10, false)))
	b.Add(source.For(v, source.Literal(t, new(big.Int), 10, false), source.Compare("<", v.Ref(), source.Literal(t, big.NewInt(n), 10, false)), step, body()))
}

// leave adds a conditional return or exit.
func (g *generator) leave(b *source.Block) {
	cond := g.boolean(2)
	switch {
	case g.where == inParser:
	case g.where == inFunction:
		g.p.Use("return")
		var x *source.Expr
		if g.result != nil {
			x = g.value(g.result, 2)
		}
		b.Add(source.If(cond, &source.Block{Stmts: []source.Stmt{source.Return(x)}}, nil))
	case g.one(2):
		g.p.Use("exit")
		b.Add(source.If(cond, &source.Block{Stmts: []source.Stmt{source.Exit()}}, nil))
	default:
		g.p.Use("return")
		b.Add(source.If(cond, &source.Block{Stmts: []source.Stmt{source.Return(nil)}}, nil))
	}
}

// params returns parameters with directions.
func (g *generator) params(n int) []source.Param {
	var list []source.Param
	for range n {
		p := source.Param{Var: &source.Var{Name: g.name("p"), Type: g.fieldType(len(g.structs) > 0)}, Dir: pick(g, []source.Dir{source.In, source.In, source.Out, source.InOut, source.InOut})}
		list = append(list, p)
	}
	return list
}

// enter makes parameters available and initialises the out parameters.
func (g *generator) enter(b *source.Block, params []source.Param) {
	for _, p := range params {
		if p.Dir != source.Out {
			g.add(p.Var.Ref(), p.Dir == source.InOut)
		}
	}
	for _, p := range params {
		if p.Dir == source.Out {
			b.Add(source.Assign(p.Var.Ref(), g.value(p.Var.Type, 2)))
		}
	}
	for _, p := range params {
		if p.Dir == source.Out {
			g.add(p.Var.Ref(), true)
		}
	}
}

// functionPrefix is the prefix of function names, and of no other names.
const functionPrefix = "fn"

// function declares a function.
func (g *generator) function() {
	f := &source.Callable{Name: g.name(functionPrefix), Params: g.params(1 + g.r.IntN(3)), Body: new(source.Block)}
	if !g.one(4) {
		f.Result = g.bitsType()
		if g.one(5) {
			f.Result = g.fieldType(true)
		}
	}
	g.with(func() {
		g.where, g.result, g.budget = inFunction, f.Result, 6
		g.enter(f.Body, f.Params)
		g.fill(f.Body, 1+g.r.IntN(4))
		if f.Result != nil {
			f.Body.Add(source.Return(g.value(f.Result, 2)))
		}
	})
	g.funcs = append(g.funcs, f)
	g.p.DeclareFunc(f)
}

// partStatement applies an instance that is not applied yet.
func (g *generator) partStatement(b *source.Block) {
	if g.where != inControl || g.loops > 0 || len(g.parts) == 0 {
		g.assign(b)
		return
	}
	part := g.parts[0]
	if args := g.arguments(part.Of.Params, 2); args != nil {
		g.parts = g.parts[1:]
		g.p.Use("control in control")
		b.Add(part.Apply(args))
	}
}
