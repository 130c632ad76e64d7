package syntax

// block = annotations "{" { statementOrDecl } "}" ; the annotations have been read.
func (p *parser) block(as Annotations) *BlockStmt {
	return p.blockOf(as, p.statementOrDecl)
}

func (p *parser) blockOf(as Annotations, statement func() Stmt) *BlockStmt {
	b := &BlockStmt{Annotations: as}
	b.pos = p.pos()
	if !p.enter() {
		return b
	}
	defer p.leave()
	p.want(_Lbrace)
	p.openScope()
	p.items(b.pos, func() { b.Stmts = append(b.Stmts, statement()) })
	b.Rbrace = p.peek(-1).Pos
	p.closeScope()
	return b
}

// statementOrDecl = constDecl | variable ";" | instantiation ";" | statement .
func (p *parser) statementOrDecl() Stmt {
	if p.tok.Kind == _At {
		as := p.annotations()
		if p.tok.Kind == _Const || p.beginsDecl() {
			return p.declStmt(as)
		}
		return p.annotatedStatement(as)
	}
	if p.tok.Kind == _Const || p.beginsDecl() {
		return p.declStmt(nil)
	}
	return p.statement()
}

// parserStatement = assignment | call | ";" | variable | constDecl | parserBlock | if .
func (p *parser) parserStatement() Stmt {
	switch k := p.tok.Kind; k {
	case _Return, _Exit, _Switch, _For, _Break, _Continue:
		p.errorf("unexpected %s, which a parser state cannot contain", k)
		return &EmptyStmt{}
	case _At:
		as := p.annotations()
		if p.tok.Kind == _Lbrace {
			return p.blockOf(as, p.parserStatement)
		}
		return p.declStmt(as)
	case _Lbrace:
		return p.blockOf(nil, p.parserStatement)
	}
	return p.statementOrDecl()
}

func (p *parser) declStmt(as Annotations) Stmt {
	s := &DeclStmt{}
	s.pos = p.pos()
	switch {
	case p.tok.Kind == _Const:
		s.Decl = p.constDecl(as)
	case p.beginsDecl():
		s.Decl = p.varOrInstance(as)
		p.want(_Semi)
	default:
		p.unexpected("a declaration")
	}
	return s
}

// beginsDecl reports whether a variable or an instance is declared here,
// rather than something assigned or called. What can only declare does so even
// where the type is not known: the checker has the better message.
func (p *parser) beginsDecl() bool {
	if p.typeAt(0) {
		if beginsType(p.tok.Kind) || p.tok.Kind == _List {
			return true
		}
		return p.peek(p.behindType(0)).Kind != _Dot
	}
	n := btoi(p.tok.Kind == _Dot)
	if !isNameKind(p.peek(n).Kind) {
		return false
	}
	switch n++; p.peek(n).Kind {
	case _Underscore:
		return true
	case _Lss:
		n = p.behindAngles(n)
	case _Lparen:
		if p.kindOf(n-1) != symNone {
			return false
		}
		n = p.behindBracket(n)
	}
	return n > 0 && isNameKind(p.peek(n).Kind)
}

// varOrInstance = typeRef ( declarator [ "=" expr ] | instanceRest ) , without its semicolon.
func (p *parser) varOrInstance(as Annotations) Decl {
	pos := p.pos()
	t := p.typeRef()
	if p.tok.Kind == _Lparen {
		return p.instance(as, t, pos)
	}
	d := &VarDecl{Annotations: as}
	d.pos = pos
	d.Name, d.Type = p.declarator(t)
	if p.got(_Assign) {
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
	case _Semi:
		p.next()
		return &EmptyStmt{stmt{node{pos}}}
	case _At:
		return p.annotatedStatement(p.annotations())
	case _Lbrace:
		return p.block(nil)
	case _If:
		return p.ifStmt()
	case _Switch:
		return p.switchStmt()
	case _For:
		return p.forStmt(nil)
	case _Return:
		return p.returnStmt()
	case _Exit:
		p.next()
		p.want(_Semi)
		return &ExitStmt{stmt{node{pos}}}
	case _Break:
		p.next()
		p.want(_Semi)
		return &BreakStmt{stmt{node{pos}}}
	case _Continue:
		p.next()
		p.want(_Semi)
		return &ContinueStmt{stmt{node{pos}}}
	}
	s := p.simpleStmt()
	p.want(_Semi)
	return s
}

// annotatedStatement = annotations ( block | for ) .
func (p *parser) annotatedStatement(as Annotations) Stmt {
	if p.tok.Kind == _For {
		return p.forStmt(as)
	}
	if p.tok.Kind != _Lbrace {
		p.unexpected("a declaration, { or for after an annotation")
	}
	return p.block(as)
}

// simpleStmt = lvalue ( "=" | "+=" | … ) expr | call .
func (p *parser) simpleStmt() Stmt {
	pos := p.pos()
	if k := p.tok.Kind; !isNameKind(k) && k != _Dot && k != _This && k != _Lparen {
		p.unexpected("a statement")
		return &EmptyStmt{}
	}
	lhs := p.lvalue()
	if p.panicking {
		return &EmptyStmt{}
	}
	if isAssign(p.tok.Kind) {
		s := &AssignStmt{Op: assignOps[p.tok.Kind], LHS: lhs}
		s.pos = pos
		p.next()
		s.RHS = p.expr()
		return s
	}
	call, ok := Unparen(lhs).(*CallExpr)
	if !ok {
		p.unexpected("= or (")
		return &EmptyStmt{}
	}
	s := &CallStmt{Call: call}
	s.pos = pos
	return s
}

// lvalue is what a statement begins with: an expression without operators,
// where a < can only open type arguments. Calls stand nowhere but at its end.
func (p *parser) lvalue() Expr {
	if !p.enter() {
		return &Name{}
	}
	defer p.leave()
	var x Expr
	switch open := p.pos(); {
	case p.got(_Lparen):
		paren := &ParenExpr{X: p.lvalue()}
		paren.pos = open
		p.wantClose(_Rparen, open)
		x = paren
	default:
		x = p.operand()
	}
	for !p.panicking {
		switch p.tok.Kind {
		case _Dot, _Lbrack:
			x = p.member(x)
		case _Lss:
			return p.call(x, p.typeArgs())
		case _Lparen:
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
			p.giveUp("more than %d else if in a row", maxChain)
			return first
		}
		s := &IfStmt{}
		s.pos = p.pos()
		p.want(_If)
		s.Cond = p.parenthesized()
		s.Then = p.branch()
		if first == nil {
			first = s
		} else {
			last.Else = s
		}
		if !p.got(_Else) {
			return first
		}
		if p.tok.Kind != _If {
			s.Else = p.branch()
			return first
		}
		last = s
	}
}

// parenthesized = "(" expr ")" behind if and switch.
func (p *parser) parenthesized() Expr {
	open := p.pos()
	p.want(_Lparen)
	x := p.innerExpr()
	p.wantClose(_Rparen, open)
	return x
}

// branch is a statement that depends on a condition, where nothing can be declared.
func (p *parser) branch() Stmt {
	if !p.panicking && (p.tok.Kind == _Const || p.beginsDecl()) {
		p.errorf("unexpected declaration: put it between { and }")
		return &EmptyStmt{}
	}
	return p.statement()
}

// switchStmt = "switch" "(" expr ")" "{" { ( "default" | expr ) ":" [ block ] } "}" .
func (p *parser) switchStmt() Stmt {
	s := &SwitchStmt{}
	s.pos = p.pos()
	if !p.enter() {
		return s
	}
	defer p.leave()
	p.want(_Switch)
	s.X = p.parenthesized()
	open := p.pos()
	p.want(_Lbrace)
	p.items(open, func() { s.Cases = append(s.Cases, p.switchCase()) })
	return s
}

func (p *parser) switchCase() *SwitchCase {
	c := &SwitchCase{}
	c.pos = p.pos()
	if p.got(_Default) {
		d := &DefaultExpr{}
		d.pos = c.pos
		c.Label = d
	} else if p.tok.Kind == _Lbrace {
		p.unexpected("a label")
	} else {
		c.Label = p.expr()
	}
	p.want(_Colon)
	if p.tok.Kind == _Lbrace || p.tok.Kind == _At {
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
	p.want(_For)
	open := p.pos()
	p.want(_Lparen)
	p.openScope()
	defer p.closeScope()
	var init []Stmt
	p.list(_Semi, false, func() { init = append(init, p.forInit()) })
	if v := loopVar(init); v != nil && p.got(_In) {
		s := &ForInStmt{Annotations: as, Var: v}
		s.pos = pos
		s.Coll = p.collection()
		p.wantClose(_Rparen, open)
		s.Body = p.branch()
		return s
	}
	s := &ForStmt{Annotations: as, Init: init}
	s.pos = pos
	p.want(_Semi)
	s.Cond = p.innerExpr()
	p.want(_Semi)
	p.list(_Rparen, false, func() { s.Post = append(s.Post, p.simpleStmt()) })
	p.wantClose(_Rparen, open)
	s.Body = p.branch()
	return s
}

// loopVar is the variable of a for that may turn out to be a for … in.
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
	s := &DeclStmt{}
	s.pos = p.pos()
	s.Decl = p.varOrInstance(as)
	return s
}

// collection = expr [ ".." expr ] .
func (p *parser) collection() Expr {
	x := p.innerExpr()
	if !p.got(_DotDot) {
		return x
	}
	r := &RangeExpr{Lo: x, Hi: p.innerExpr()}
	r.pos = x.Pos()
	return r
}

// returnStmt = "return" [ expr ] ";" .
func (p *parser) returnStmt() Stmt {
	s := &ReturnStmt{}
	s.pos = p.pos()
	p.want(_Return)
	if p.tok.Kind != _Semi {
		s.Value = p.expr()
	}
	p.want(_Semi)
	return s
}
