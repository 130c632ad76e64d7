package syntax

import "github.com/p4lb/p4lb/internal/p4/token"

// block = annotations "{" { statementOrDecl } "}" ; the caller has parsed the
// annotations.
func (p *parser) block(as Annotations) *BlockStmt {
	return p.blockOf(as, p.statementOrDecl)
}

func (p *parser) blockOf(as Annotations, statement func() Stmt) *BlockStmt {
	b := &BlockStmt{Annotations: as, stmt: stmtAt(p.pos())}
	if !p.enter() {
		return b
	}
	defer p.leave()
	p.openScope()
	p.items(func() { b.Stmts = append(b.Stmts, statement()) })
	b.Rbrace = p.peek(-1).Pos
	p.closeScope()
	return b
}

// statementOrDecl = constDecl | variable ";" | instantiation ";" | statement .
func (p *parser) statementOrDecl() Stmt {
	if p.tok.Kind == token.At {
		as := p.annotations()
		if p.tok.Kind == token.Const || p.beginsDecl() {
			return p.declStmt(as)
		}
		return p.annotatedStatement(as)
	}
	if p.tok.Kind == token.Const || p.beginsDecl() {
		return p.declStmt(nil)
	}
	return p.statement()
}

// parserStatement = assignment | call | ";" | variable | constDecl | parserBlock | if .
func (p *parser) parserStatement() Stmt {
	switch k := p.tok.Kind; k {
	case token.Return, token.Exit, token.Switch, token.For, token.Break, token.Continue:
		p.errorf("unexpected %s, which a parser state cannot contain", k)
		return &EmptyStmt{}
	case token.At:
		as := p.annotations()
		if p.tok.Kind == token.Lbrace {
			return p.blockOf(as, p.parserStatement)
		}
		return p.declStmt(as)
	case token.Lbrace:
		return p.blockOf(nil, p.parserStatement)
	}
	return p.statementOrDecl()
}

func (p *parser) declStmt(as Annotations) Stmt {
	s := &DeclStmt{stmt: stmtAt(p.pos())}
	switch {
	case p.tok.Kind == token.Const:
		s.Decl = p.constDecl(as)
	case p.beginsDecl():
		s.Decl = p.varOrInstance(as)
		p.want(token.Semi)
	default:
		p.unexpected("a declaration")
	}
	return s
}

// beginsDecl reports whether a declaration of a variable or an instance begins
// here, rather than an assignment or a call. Text that can only be a declaration is
// treated as one even if the type is unknown, because the checker has the better
// message.
func (p *parser) beginsDecl() bool {
	if p.typeAt(0) {
		if p.tok.Kind.BeginsType() || p.tok.Kind == token.List {
			return true
		}
		return p.peek(p.behindType(0)).Kind != token.Dot
	}
	n := btoi(p.tok.Kind == token.Dot)
	if !p.peek(n).Kind.IsName() {
		return false
	}
	switch n++; p.peek(n).Kind {
	case token.Underscore:
		return true
	case token.Lss:
		n = p.behindAngles(n)
	case token.Lparen:
		if p.kindOf(n-1) != symNone {
			return false
		}
		n = p.behindBracket(n)
	}
	return n > 0 && p.peek(n).Kind.IsName()
}

// varOrInstance = typeRef ( declarator [ "=" expr ] | instanceRest ) , without the
// semicolon.
func (p *parser) varOrInstance(as Annotations) Decl {
	pos := p.pos()
	t := p.typeRef()
	if p.tok.Kind == token.Lparen {
		return p.instance(as, t, pos)
	}
	d := &VarDecl{Annotations: as, decl: declAt(pos)}
	d.Name, d.Type = p.declarator(t)
	if p.got(token.Assign) {
		d.Value = p.expr()
	}
	p.declare(d.Name, symOther)
	return d
}

// statement = assignment ";" | call ";" | ";" | block | if | switch | for
//
//	| "return" [ expr ] ";" | "exit" ";" | "break" ";" | "continue" ";" .
func (p *parser) statement() Stmt {
	pos := p.pos()
	switch p.tok.Kind {
	case token.Semi:
		p.next()
		return &EmptyStmt{stmtAt(pos)}
	case token.At:
		return p.annotatedStatement(p.annotations())
	case token.Lbrace:
		return p.block(nil)
	case token.If:
		return p.ifStmt()
	case token.Switch:
		return p.switchStmt()
	case token.For:
		return p.forStmt(nil)
	case token.Return:
		return p.returnStmt()
	case token.Exit:
		p.next()
		p.want(token.Semi)
		return &ExitStmt{stmtAt(pos)}
	case token.Break:
		p.next()
		p.want(token.Semi)
		return &BreakStmt{stmtAt(pos)}
	case token.Continue:
		p.next()
		p.want(token.Semi)
		return &ContinueStmt{stmtAt(pos)}
	}
	s := p.simpleStmt()
	p.want(token.Semi)
	return s
}

// annotatedStatement = annotations ( block | for ) .
func (p *parser) annotatedStatement(as Annotations) Stmt {
	if p.tok.Kind == token.For {
		return p.forStmt(as)
	}
	if p.tok.Kind != token.Lbrace {
		p.unexpected("a declaration, { or for after an annotation")
	}
	return p.block(as)
}

// simpleStmt = lvalue ( "=" | "+=" | … ) expr | call .
func (p *parser) simpleStmt() Stmt {
	pos := p.pos()
	if k := p.tok.Kind; !k.IsName() && k != token.Dot && k != token.This && k != token.Lparen {
		p.unexpected("a statement")
		return &EmptyStmt{}
	}
	lhs := p.lvalue()
	if p.panicking {
		return &EmptyStmt{}
	}
	if p.tok.Kind.IsAssign() {
		s := &AssignStmt{Op: assignOps[p.tok.Kind], LHS: lhs, stmt: stmtAt(pos)}
		p.next()
		s.RHS = p.expr()
		return s
	}
	call, ok := Unparen(lhs).(*CallExpr)
	if !ok {
		p.unexpected("= or (")
		return &EmptyStmt{}
	}
	return &CallStmt{Call: call, stmt: stmtAt(pos)}
}

// lvalue parses the start of a statement: an expression without operators, in which
// < can only open type arguments. A call must be the end of it.
func (p *parser) lvalue() Expr {
	if !p.enter() {
		return &Name{}
	}
	defer p.leave()
	var x Expr
	switch open := p.pos(); {
	case p.got(token.Lparen):
		x = &ParenExpr{X: p.lvalue(), expr: exprAt(open)}
		p.wantClose(token.Rparen, open)
	default:
		x = p.operand()
	}
	for n := 0; !p.panicking; n++ {
		if n > maxChain {
			p.giveUp("expression has more than %d parts in a row (docs/limits.md)", maxChain)
			return x
		}
		switch p.tok.Kind {
		case token.Dot, token.Lbrack:
			x = p.member(x)
		case token.Lss:
			return p.call(x, p.typeArgs())
		case token.Lparen:
			return p.call(x, nil)
		default:
			return x
		}
	}
	return x
}

// ifStmt = "if" "(" expr ")" statement [ "else" statement ] .
func (p *parser) ifStmt() Stmt {
	if !p.enter() {
		return &EmptyStmt{}
	}
	defer p.leave()
	var first, last *IfStmt
	for n := 0; ; n++ {
		if n > maxChain {
			p.giveUp("more than %d else if in a row (docs/limits.md)", maxChain)
			return first
		}
		s := &IfStmt{stmt: stmtAt(p.pos())}
		p.want(token.If)
		s.Cond = p.parenthesized()
		s.Then = p.branch()
		if first == nil {
			first = s
		} else {
			last.Else = s
		}
		if !p.got(token.Else) {
			return first
		}
		if p.tok.Kind != token.If {
			s.Else = p.branch()
			return first
		}
		last = s
	}
}

// parenthesized = "(" expr ")" after if and switch.
func (p *parser) parenthesized() Expr {
	open := p.opening(token.Lparen)
	x := p.innerExpr()
	p.wantClose(token.Rparen, open)
	return x
}

// branch parses a statement that depends on a condition. It cannot be a
// declaration.
func (p *parser) branch() Stmt {
	if !p.panicking && (p.tok.Kind == token.Const || p.beginsDecl()) {
		p.errorf("unexpected declaration: put it between { and }")
		return &EmptyStmt{}
	}
	return p.statement()
}

// switchStmt = "switch" "(" expr ")" "{" { ( "default" | expr ) ":" [ block ] } "}" .
func (p *parser) switchStmt() Stmt {
	s := &SwitchStmt{stmt: stmtAt(p.pos())}
	if !p.enter() {
		return s
	}
	defer p.leave()
	p.want(token.Switch)
	s.X = p.parenthesized()
	p.items(func() { s.Cases = append(s.Cases, p.switchCase()) })
	return s
}

func (p *parser) switchCase() *SwitchCase {
	c := &SwitchCase{node: node{p.pos()}}
	if p.got(token.Default) {
		c.Label = &DefaultExpr{exprAt(c.pos)}
	} else if p.tok.Kind == token.Lbrace {
		p.unexpected("a label")
	} else {
		c.Label = p.expr()
	}
	p.want(token.Colon)
	if p.tok.Kind == token.Lbrace || p.tok.Kind == token.At {
		c.Body = p.block(p.annotations())
	}
	return c
}

// forStmt = "for" "(" [ init ] ";" expr ";" [ post ] ")" statement
//
//	| "for" "(" annotations typeRef name "in" collection ")" statement .
func (p *parser) forStmt(as Annotations) Stmt {
	pos := p.pos()
	if !p.enter() {
		return &EmptyStmt{}
	}
	defer p.leave()
	p.want(token.For)
	open := p.opening(token.Lparen)
	p.openScope()
	defer p.closeScope()
	var init []Stmt
	p.list(token.Semi, false, func() { init = append(init, p.forInit()) })
	if v := loopVar(init); v != nil && p.got(token.In) {
		s := &ForInStmt{Annotations: as, Var: v, stmt: stmtAt(pos)}
		s.Coll = p.collection()
		p.wantClose(token.Rparen, open)
		s.Body = p.branch()
		return s
	}
	s := &ForStmt{Annotations: as, Init: init, stmt: stmtAt(pos)}
	p.want(token.Semi)
	s.Cond = p.innerExpr()
	p.want(token.Semi)
	p.list(token.Rparen, false, func() { s.Post = append(s.Post, p.simpleStmt()) })
	p.wantClose(token.Rparen, open)
	s.Body = p.branch()
	return s
}

// loopVar returns the variable in the header of a for that may be a for … in, or
// nil.
func loopVar(init []Stmt) *VarDecl {
	if len(init) != 1 {
		return nil
	}
	d, ok := init[0].(*DeclStmt)
	if !ok {
		return nil
	}
	v, ok := d.Decl.(*VarDecl)
	if !ok || v.Value != nil {
		return nil
	}
	return v
}

// forInit = annotations variable | simpleStmt .
func (p *parser) forInit() Stmt {
	as := p.annotations()
	if !p.beginsDecl() {
		if len(as) > 0 {
			p.unexpected("a variable")
		}
		return p.simpleStmt()
	}
	return &DeclStmt{stmt: stmtAt(p.pos()), Decl: p.varOrInstance(as)}
}

// collection = expr [ ".." expr ] .
func (p *parser) collection() Expr {
	x := p.innerExpr()
	if !p.got(token.DotDot) {
		return x
	}
	return &RangeExpr{Lo: x, Hi: p.innerExpr(), expr: exprAt(x.Pos())}
}

// returnStmt = "return" [ expr ] ";" .
func (p *parser) returnStmt() Stmt {
	s := &ReturnStmt{stmt: stmtAt(p.pos())}
	p.want(token.Return)
	if p.tok.Kind != token.Semi {
		s.Value = p.expr()
	}
	p.want(token.Semi)
	return s
}
