package syntax

import "github.com/p4lb/p4lb/internal/p4/token"

// expr = binaryExpr { "?" expr ":" binaryExpr } .
func (p *parser) expr() Expr {
	return p.condRest(p.binaryExpr(1))
}

// exprNoGtr parses an expression that ends at a >.
func (p *parser) exprNoGtr() Expr {
	defer func(old bool) { p.noGtr = old }(p.noGtr)
	p.noGtr = true
	return p.expr()
}

// innerExpr parses an expression between brackets, in which > is an operator.
func (p *parser) innerExpr() Expr {
	defer func(old bool) { p.noGtr = old }(p.noGtr)
	p.noGtr = false
	return p.expr()
}

// condRest parses the rest of a conditional after its condition x. As in p4c, but
// unlike C, a ? b : c ? d : e is (a ? b : c) ? d : e.
func (p *parser) condRest(x Expr) Expr {
	for n := 0; p.tok.Kind == token.Question && !p.panicking; n++ {
		if n > 0 && !p.trial {
			p.errs.warn(p.pos(), "the conditional before this ? is its condition; put parentheses around one of them")
		}
		if !p.enter() {
			return x
		}
		p.next()
		c := &CondExpr{Cond: x, Then: p.innerExpr(), expr: exprAt(x.Pos())}
		p.want(token.Colon)
		c.Else = p.binaryExpr(1)
		x = c
		p.leave()
		if n > maxChain {
			p.giveUp("expression has more than %d conditionals in a row (docs/limits.md)", maxChain)
		}
	}
	return x
}

// binaryExpr = unaryExpr { operator binaryExpr } , with operators of at least
// precedence prec.
func (p *parser) binaryExpr(prec int) Expr {
	return p.binaryRest(p.unaryExpr(), prec)
}

func (p *parser) binaryRest(x Expr, prec int) Expr {
	for n := 0; !p.panicking; n++ {
		op, opPrec := p.operator()
		if opPrec < prec {
			return x
		}
		if n > maxChain {
			p.giveUp("expression has more than %d operators in a row (docs/limits.md)", maxChain)
			return x
		}
		if op == Shr {
			p.next()
		}
		p.next()
		b := &BinaryExpr{Op: op, X: x, expr: exprAt(x.Pos())}
		b.Y = p.binaryExpr(opPrec + 1)
		x = b
	}
	return x
}

// operator returns the binary operator at the current token and its precedence, or
// 0 if there is none.
func (p *parser) operator() (Operator, int) {
	b := binaryOps[p.tok.Kind]
	if p.tok.Kind == token.Gtr {
		if p.noGtr {
			return NoOp, 0
		}
		if isShr(p.tok, p.peek(1)) {
			return Shr, shiftPrec
		}
	}
	return b.op, int(b.prec)
}

// unaryExpr = { "!" | "~" | "-" | "+" | "(" typeRef ")" } postfixExpr .
func (p *parser) unaryExpr() Expr {
	if !p.enter() {
		return &Name{}
	}
	defer p.leave()
	op := NoOp
	switch p.tok.Kind {
	case token.Not:
		op = Not
	case token.Tilde:
		op = Compl
	case token.Minus:
		op = Neg
	case token.Plus:
		op = Plus
	case token.Lparen:
		return p.parenOrCast()
	default:
		return p.postfix(p.operand())
	}
	x := &UnaryExpr{Op: op, expr: exprAt(p.pos())}
	p.next()
	x.X = p.unaryExpr()
	return x
}

// parenOrCast = "(" expr ")" postfix | "(" typeRef ")" unaryExpr .
func (p *parser) parenOrCast() Expr {
	open := p.pos()
	if !p.castAhead() {
		p.want(token.Lparen)
		return p.parenRest(p.innerExpr(), open)
	}
	p.want(token.Lparen)
	c := &CastExpr{Type: p.typeRef(), expr: exprAt(open)}
	p.want(token.Rparen)
	c.X = p.unaryExpr()
	return c
}

// castAhead reports whether the current parenthesis opens a cast. An undeclared
// name is a cast if the next token can start an operand but cannot follow a value.
func (p *parser) castAhead() bool {
	if p.typeAt(1) {
		n := p.behindType(1)
		return n > 0 && p.peek(n).Kind == token.Rparen
	}
	if !p.peek(1).Kind.IsName() || p.peek(2).Kind != token.Rparen || p.kindOf(1) != symNone {
		return false
	}
	switch k := p.peek(3).Kind; k {
	case token.Int, token.String, token.True, token.False, token.This, token.Lbrace, token.Not, token.Tilde:
		return true
	default:
		return k.IsName()
	}
}

// parenRest parses the closing parenthesis after x; open is the position of the
// opening one.
func (p *parser) parenRest(x Expr, open Pos) Expr {
	paren := &ParenExpr{X: x, expr: exprAt(open)}
	p.wantClose(token.Rparen, open)
	return p.postfix(paren)
}

// operand = literal | name | type | "this" | "{#}" | "..." | braceExpr .
func (p *parser) operand() Expr {
	pos := p.pos()
	switch p.tok.Kind {
	case token.Int:
		return p.intLit()
	case token.String:
		x := &StringLit{Value: unquote(p.tok.Text), expr: exprAt(pos)}
		p.next()
		return x
	case token.True, token.False:
		x := &BoolLit{Value: p.tok.Kind == token.True, expr: exprAt(pos)}
		p.next()
		return x
	case token.This:
		p.next()
		return &ThisExpr{exprAt(pos)}
	case token.DotDotDot:
		return p.dots()
	case token.Invalid:
		p.next()
		return &InvalidExpr{exprAt(pos)}
	case token.Lbrace:
		return p.braceExpr()
	case token.Error:
		if p.peek(1).Kind == token.Dot {
			return p.baseType(ErrorKind, false)
		}
	}
	if p.panicking {
		return &Name{}
	}
	if p.typeAt(0) {
		return p.typeOperand()
	}
	if !p.tok.Kind.IsName() && p.tok.Kind != token.Dot {
		p.unexpected("an expression")
		return &Name{}
	}
	return p.prefixedName()
}

// typeOperand parses a type in an expression: a named type before a member or as a
// constructor.
func (p *parser) typeOperand() Expr {
	if p.typesToo {
		return p.typeRef()
	}
	if !p.tok.Kind.IsName() && p.tok.Kind != token.Dot {
		p.errorf("unexpected type %s, expected an expression (a cast is (type)value)", p.tok.Text)
		return &Name{}
	}
	t := p.namedType()
	if p.tok.Kind != token.Dot && p.tok.Kind != token.Lparen {
		p.errorf("unexpected %s after type %s, expected ( or .", p.tok.describe(), String(t))
	}
	return t
}

func (p *parser) intLit() Expr {
	x := &IntLit{Text: p.tok.Text, expr: exprAt(p.pos())}
	v, wrong := parseInt(p.tok.Text)
	if wrong != "" {
		p.complain(p.tok, "%s: %s", clip(p.tok.Text), wrong)
	}
	x.Value, x.Width, x.Signed = v.value, v.width, v.signed
	p.next()
	return x
}

func (p *parser) dots() *Dots {
	x := &Dots{expr: exprAt(p.pos())}
	p.want(token.DotDotDot)
	return x
}

func (p *parser) dontCare() Expr {
	x := &DontCare{expr: exprAt(p.pos())}
	p.want(token.Underscore)
	return x
}

// postfix = { "." name | "[" index "]" | [ typeArgs ] "(" args ")" } after x.
func (p *parser) postfix(x Expr) Expr {
	for n := 0; !p.panicking; n++ {
		if n > maxChain {
			p.giveUp("expression has more than %d parts in a row (docs/limits.md)", maxChain)
		}
		switch p.tok.Kind {
		case token.Dot, token.Lbrack:
			x = p.member(x)
		case token.Lparen:
			x = p.call(x, nil)
		case token.Lss:
			if !p.typeArgsAhead(x) {
				return x
			}
			x = p.call(x, p.typeArgs())
		default:
			return x
		}
	}
	return x
}

// member = "." name | "[" index "]" after x.
func (p *parser) member(x Expr) Expr {
	if !p.got(token.Dot) {
		return p.indexOrSlice(x)
	}
	return &SelectorExpr{X: x, Sel: p.name(), expr: exprAt(x.Pos())}
}

// typeArgsAhead reports whether the < after x opens type arguments.
func (p *parser) typeArgsAhead(x Expr) bool {
	if p.peek(1).Kind == token.Underscore {
		return true
	}
	if !p.typeAt(1) {
		name, ok := x.(*Name)
		if !ok || p.kinds[name.Value] != symGeneric {
			return false
		}
		n := p.behindAngles(0)
		return n > 0 && p.peek(n).Kind == token.Lparen
	}
	if p.peek(1).Kind.BeginsType() || p.peek(1).Kind == token.List {
		return true
	}
	n := p.behindType(1)
	return n > 0 && p.peek(n).Kind != token.Dot && p.peek(n).Kind != token.Lparen
}

// indexOrSlice = "[" expr [ ":" expr | "+:" expr ] "]" .
func (p *parser) indexOrSlice(x Expr) Expr {
	defer func(old bool) { p.noGtr = old }(p.noGtr)
	p.noGtr = false
	open := p.opening(token.Lbrack)
	first := p.expr()
	var r Expr
	switch {
	case p.got(token.Colon):
		r = &SliceExpr{X: x, Hi: first, Lo: p.expr(), expr: exprAt(x.Pos())}
	case p.got(token.PlusColon):
		r = &SliceExpr{X: x, Lo: first, Width: p.expr(), expr: exprAt(x.Pos())}
	default:
		r = &IndexExpr{X: x, Index: first, expr: exprAt(x.Pos())}
	}
	p.wantClose(token.Rbrack, open)
	return r
}

// call = "(" args ")" after the function and its type arguments.
func (p *parser) call(fun Expr, typeArgs []Expr) Expr {
	return &CallExpr{Fun: fun, TypeArgs: typeArgs, Args: p.args(), expr: exprAt(fun.Pos())}
}

// args = "(" [ arg { "," arg } ] ")" .
func (p *parser) args() []*Arg {
	defer func(old bool) { p.noGtr = old }(p.noGtr)
	p.noGtr = false
	var args []*Arg
	open := p.opening(token.Lparen)
	p.list(token.Rparen, false, func() { args = append(args, p.arg()) })
	p.wantClose(token.Rparen, open)
	return args
}

// arg = [ name "=" ] ( expr | "_" ) .
func (p *parser) arg() *Arg {
	a := &Arg{node: node{p.pos()}}
	if p.tok.Kind.IsName() && p.peek(1).Kind == token.Assign {
		a.Name = p.name()
		p.want(token.Assign)
	}
	if p.tok.Kind == token.Underscore {
		a.Value = p.dontCare()
	} else {
		a.Value = p.expr()
	}
	return a
}

// exprList = [ expr { "," expr } ] , before the token end.
func (p *parser) exprList(end token.Kind, trailing bool) []Expr {
	var list []Expr
	p.list(end, trailing, func() { list = append(list, p.expr()) })
	return list
}

// namedExpr = name "=" expr .
func (p *parser) namedExpr() *NamedExpr {
	n := &NamedExpr{node: node{p.pos()}, Name: p.name()}
	p.want(token.Assign)
	n.Value = p.expr()
	return n
}

// braceExpr = "{" exprList [ "," ] "}"
//
//	| "{" namedExpr { "," namedExpr } [ "," "..." ] [ "," ] "}" .
func (p *parser) braceExpr() Expr {
	defer func(old bool) { p.noGtr = old }(p.noGtr)
	p.noGtr = false
	open := p.opening(token.Lbrace)
	if !p.tok.Kind.IsName() || p.peek(1).Kind != token.Assign {
		l := &ListExpr{Elems: p.exprList(token.Rbrace, true), expr: exprAt(open)}
		p.wantClose(token.Rbrace, open)
		return l
	}
	r := &RecordExpr{expr: exprAt(open)}
	p.list(token.Rbrace, true, func() {
		if p.tok.Kind == token.DotDotDot && r.Dots == nil {
			r.Dots = p.dots()
			return
		}
		if r.Dots != nil {
			p.unexpected("} after ...")
		}
		r.Fields = append(r.Fields, p.namedExpr())
	})
	p.wantClose(token.Rbrace, open)
	return r
}

// keyset = simpleKeyset | "(" simpleKeyset { "," simpleKeyset } ")" .
//
// A single expression in parentheses is the start of an expression, not a tuple.
func (p *parser) keyset() Expr {
	if p.tok.Kind != token.Lparen || p.castAhead() {
		return p.simpleKeyset()
	}
	open := p.pos()
	p.next()
	first := p.simpleKeyset()
	if p.tok.Kind != token.Comma {
		switch first.(type) {
		case *RangeExpr, *MaskExpr, *DefaultExpr, *DontCare:
		default:
			return p.keysetRest(p.condRest(p.binaryRest(p.parenRest(first, open), 1)))
		}
	}
	l := &ListExpr{Keyset: true, Elems: []Expr{first}, expr: exprAt(open)}
	for p.got(token.Comma) {
		l.Elems = append(l.Elems, p.simpleKeyset())
	}
	p.wantClose(token.Rparen, open)
	return l
}

// simpleKeyset = "default" | "_" | expr [ ( "&&&" | ".." ) expr ] .
func (p *parser) simpleKeyset() Expr {
	switch p.tok.Kind {
	case token.Default:
		x := &DefaultExpr{expr: exprAt(p.pos())}
		p.next()
		return x
	case token.Underscore:
		return p.dontCare()
	}
	return p.keysetRest(p.expr())
}

func (p *parser) keysetRest(x Expr) Expr {
	switch {
	case p.got(token.Mask):
		return &MaskExpr{X: x, Mask: p.expr(), expr: exprAt(x.Pos())}
	case p.got(token.DotDot):
		return &RangeExpr{Lo: x, Hi: p.expr(), expr: exprAt(x.Pos())}
	}
	return x
}
