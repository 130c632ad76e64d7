package syntax

import "github.com/p4lb/p4lb/internal/p4/token"

// declaration = annotations ( constDecl | externDecl | actionDecl | parserDecl
//
//	| controlDecl | typeDecl | instantiation | errorDecl | matchKindDecl | function ) .
//
// The position of a declaration is the position after its annotations.
func (p *parser) declaration() Decl {
	as := p.annotations()
	if p.atP414() {
		p.giveUp("P4_14 is not supported: p4lb compiles P4_16; p4c translates with p4test --std p4-14 --pp NEW.p4 OLD.p4")
		return nil
	}
	switch p.tok.Kind {
	case token.Const:
		return p.constDecl(as)
	case token.Extern:
		return p.externDecl(as)
	case token.Action:
		return p.actionDecl(as)
	case token.Parser:
		return p.parserDecl(as)
	case token.Control:
		return p.controlDecl(as)
	case token.Package:
		return p.packageDecl(as)
	case token.Header, token.HeaderUnion, token.Struct, token.Enum:
		return p.derivedTypeDecl(as)
	case token.Typedef, token.Type:
		return p.typedefDecl(as)
	case token.Error:
		if p.peek(1).Kind == token.Lbrace {
			return p.errorDecl(as)
		}
	case token.MatchKind:
		if p.peek(1).Kind == token.Lbrace {
			return p.matchKindDecl(as)
		}
	}
	if !p.typeAt(0) && !p.tok.Kind.IsName() && p.tok.Kind != token.Dot {
		p.unexpected("a declaration")
		return nil
	}
	return p.functionOrInstance(as)
}

// p414 lists words that begin a declaration in P4_14. In P4_16 they are ordinary
// names.
var p414 = map[string]bool{
	"header_type": true, "field_list": true, "field_list_calculation": true, "calculated_field": true,
	"primitive_action": true, "parser_exception": true, "metadata": true, "blackbox": true,
}

// atP414 reports whether the next tokens begin a declaration of P4_14:
// header_type NAME {, parser NAME {, header TYPE NAME; and the like.
func (p *parser) atP414() bool {
	second, third := p.peek(1).Kind, p.peek(2).Kind
	switch p.tok.Kind {
	case token.Parser, token.Control:
		return second.IsName() && third == token.Lbrace
	case token.Header:
		return second.IsName() && third.IsName()
	}
	if !p.tok.Kind.IsName() || !p414[p.tok.Text] {
		return false
	}
	return second.IsName() && (third == token.Lbrace || third.IsName())
}

// functionOrInstance = typeOrVoid ( functionRest | instanceRest ) .
func (p *parser) functionOrInstance(as Annotations) Decl {
	pos := p.pos()
	t := p.typeOrVoid()
	if p.tok.Kind == token.Lparen {
		d := p.instance(as, t, pos)
		p.want(token.Semi)
		return d
	}
	name := p.name()
	if p.tok.Kind == token.Semi || p.tok.Kind == token.Assign {
		p.errorf("unexpected %s, expected (: there are no variables at top level", p.tok.describe())
		return nil
	}
	f := &FuncDecl{Annotations: as, Return: t, Name: name, decl: declAt(pos)}
	p.functionRest(f)
	f.Body = p.block(nil)
	p.closeScope()
	return f
}

// functionRest = [ typeParams ] "(" params ")" ; the caller closes the scope of its
// names.
func (p *parser) functionRest(f *FuncDecl) {
	kind := symOther
	if p.tok.Kind == token.Lss {
		kind = symGeneric
	}
	p.declare(f.Name, kind)
	p.openScope()
	f.TypeParams = p.typeParams()
	p.declareTypes(f.TypeParams)
	f.Params = p.params()
	p.declareParams(f.Params)
}

// instance = args declarator [ "=" "{" { function | instantiation } "}" ] after a
// type, without the semicolon.
func (p *parser) instance(as Annotations, t Expr, pos Pos) Decl {
	d := &InstDecl{Annotations: as, decl: declAt(pos)}
	d.Args = p.args()
	d.Name, d.Type = p.declarator(t)
	if p.got(token.Assign) {
		d.HasBody = true
		d.Body = p.instanceBody()
	}
	p.declare(d.Name, symOther)
	return d
}

func (p *parser) instanceBody() []Decl {
	var decls []Decl
	if !p.enter() {
		return nil
	}
	defer p.leave()
	p.openScope()
	p.items(func() {
		as := p.annotations()
		if d := p.functionOrInstance(as); d != nil {
			decls = append(decls, d)
		}
	})
	p.closeScope()
	return decls
}

// constDecl = "const" typeRef declarator "=" expr ";" .
func (p *parser) constDecl(as Annotations) Decl {
	d := &ConstDecl{Annotations: as, decl: declAt(p.pos())}
	p.want(token.Const)
	d.Name, d.Type = p.declarator(p.typeRef())
	p.want(token.Assign)
	d.Value = p.expr()
	p.want(token.Semi)
	p.declare(d.Name, symOther)
	return d
}

// params = "(" [ param { "," param } ] ")" .
func (p *parser) params() []*Param {
	var params []*Param
	open := p.opening(token.Lparen)
	p.list(token.Rparen, false, func() { params = append(params, p.param()) })
	p.wantClose(token.Rparen, open)
	return params
}

// param = annotations [ "in" | "out" | "inout" ] typeRef declarator [ "=" expr ] .
func (p *parser) param() *Param {
	d := &Param{Annotations: p.annotations(), node: node{p.pos()}}
	switch p.tok.Kind {
	case token.In:
		d.Dir = In
	case token.Out:
		d.Dir = Out
	case token.InOut:
		d.Dir = InOut
	}
	if d.Dir != NoDir {
		p.next()
	}
	d.Name, d.Type = p.declarator(p.typeRef())
	if p.got(token.Assign) {
		d.Default = p.expr()
	}
	return d
}

// externDecl = "extern" ( name [ typeParams ] "{" methods "}" | functionPrototype ";" | name ";" ) .
func (p *parser) externDecl(as Annotations) Decl {
	pos := p.pos()
	p.want(token.Extern)
	if p.externObjectAhead() {
		return p.externObject(as, pos)
	}
	f := &FuncDecl{Annotations: as, Extern: true, decl: declAt(pos)}
	p.prototype(f)
	p.want(token.Semi)
	p.closeScope()
	return f
}

// externObjectAhead distinguishes the objects extern T { and extern T<A> { from the
// function extern T f().
func (p *parser) externObjectAhead() bool {
	if !p.tok.Kind.IsName() {
		return false
	}
	n := 1
	if p.peek(1).Kind == token.Lss {
		if n = p.behindAngles(1); n == 0 {
			return false
		}
	}
	return p.peek(n).Kind == token.Lbrace || p.peek(n).Kind == token.Semi
}

func (p *parser) externObject(as Annotations, pos Pos) Decl {
	d := &ExternDecl{Annotations: as, decl: declAt(pos)}
	d.Name = p.name()
	p.declare(d.Name, symType)
	p.openScope()
	defer p.closeScope()
	d.TypeParams = p.typeParams()
	p.declareTypes(d.TypeParams)
	if p.got(token.Semi) {
		d.Opaque = true
		return d
	}
	p.items(func() { d.Methods = append(d.Methods, p.method(d.Name)) })
	return d
}

// method = annotations ( [ "abstract" ] prototype | name "(" params ")" ) ";" .
//
// The method without a result type is the constructor; it has the name of the
// extern.
func (p *parser) method(extern *Name) *FuncDecl {
	f := &FuncDecl{Annotations: p.annotations(), decl: declAt(p.pos())}
	f.Abstract = p.got(token.Abstract)
	if p.tok.Kind.IsName() && p.peek(1).Kind == token.Lparen && !f.Abstract {
		f.Name = p.name()
		if f.Name.Value != extern.Value {
			p.errorf("method %s has no return type", f.Name.Value)
		}
		f.Params = p.params()
	} else {
		p.prototype(f)
		p.closeScope()
	}
	p.want(token.Semi)
	return f
}

// prototype = typeOrVoid name functionRest .
func (p *parser) prototype(f *FuncDecl) {
	f.Return = p.typeOrVoid()
	f.Name = p.name()
	p.functionRest(f)
}

// actionDecl = "action" name "(" params ")" block .
func (p *parser) actionDecl(as Annotations) Decl {
	d := &ActionDecl{Annotations: as, decl: declAt(p.pos())}
	p.want(token.Action)
	d.Name = p.name()
	p.declare(d.Name, symOther)
	p.openScope()
	d.Params = p.params()
	p.declareParams(d.Params)
	d.Body = p.block(nil)
	p.closeScope()
	return d
}

// parserDecl = "parser" name [ typeParams ] "(" params ")"
//
//	( ";" | [ "(" params ")" ] "{" locals states "}" ) .
func (p *parser) parserDecl(as Annotations) Decl {
	d := &ParserDecl{decl: declAt(p.pos())}
	p.want(token.Parser)
	d.Block = p.blockHead(as)
	defer p.closeScope()
	if d.TypeOnly {
		return d
	}
	p.items(func() { p.parserElement(d) })
	if len(d.States) == 0 {
		p.errorAt(p.peek(-1), "parser %s has no states", d.Name.Value)
	}
	return d
}

// container = name [ typeParams ] "(" params ")" of a parser, control or package;
// the caller closes the scope of its names.
func (p *parser) container() (name *Name, typeParams []*Name, params []*Param) {
	name = p.name()
	p.declare(name, symType)
	p.openScope()
	typeParams = p.typeParams()
	p.declareTypes(typeParams)
	params = p.params()
	p.declareParams(params)
	return name, typeParams, params
}

// blockHead parses the head of a parser or control up to the brace, or of a parser
// or control type up to its semicolon.
func (p *parser) blockHead(as Annotations) Block {
	b := Block{Annotations: as}
	b.Name, b.TypeParams, b.Params = p.container()
	b.TypeOnly = p.got(token.Semi)
	if !b.TypeOnly && p.tok.Kind == token.Lparen && !p.panicking {
		b.CtorParams = p.params()
		p.declareParams(b.CtorParams)
	}
	return b
}

// parserElement = annotations ( constDecl | variable | instantiation | valueSet | state ) .
func (p *parser) parserElement(d *ParserDecl) {
	as := p.annotations()
	if p.tok.Kind == token.State {
		s := p.state(as)
		d.States = append(d.States, s)
		return
	}
	if len(d.States) > 0 {
		p.unexpected("state or }")
		return
	}
	var local Decl
	switch {
	case p.tok.Kind == token.Const:
		local = p.constDecl(as)
	case p.tok.Kind == token.ValueSet:
		local = p.valueSet(as)
	case p.beginsDecl():
		local = p.varOrInstance(as)
		p.want(token.Semi)
	default:
		p.unexpected("a declaration or a state")
		return
	}
	d.Locals = append(d.Locals, local)
}

// valueSet = "value_set" "<" typeRef ">" "(" expr ")" name ";" .
func (p *parser) valueSet(as Annotations) Decl {
	d := &ValueSetDecl{Annotations: as, decl: declAt(p.pos())}
	p.want(token.ValueSet)
	open := p.opening(token.Lss)
	d.Type = p.typeRef()
	p.wantClose(token.Gtr, open)
	open = p.opening(token.Lparen)
	d.Size = p.innerExpr()
	p.wantClose(token.Rparen, open)
	d.Name = p.name()
	p.want(token.Semi)
	p.declare(d.Name, symOther)
	return d
}

// state = "state" name "{" { parserStatement } [ transition ] "}" .
func (p *parser) state(as Annotations) *StateDecl {
	s := &StateDecl{Annotations: as, decl: declAt(p.pos())}
	p.want(token.State)
	s.Name = p.name()
	p.openScope()
	defer p.closeScope()
	p.items(func() {
		switch {
		case s.Transition != nil:
			p.unexpected("}: transition is the last statement of a state")
		case p.tok.Kind == token.Transition:
			s.Transition = p.transition()
		default:
			s.Stmts = append(s.Stmts, p.parserStatement())
		}
	})
	return s
}

// transition = "transition" ( name ";" | select ) .
func (p *parser) transition() Expr {
	p.want(token.Transition)
	if p.tok.Kind == token.Select {
		return p.selectExpr()
	}
	name := p.name()
	p.want(token.Semi)
	return name
}

// selectExpr = "select" "(" exprList ")" "{" { keyset ":" name ";" } "}" .
func (p *parser) selectExpr() Expr {
	s := &SelectExpr{expr: exprAt(p.pos())}
	p.want(token.Select)
	open := p.opening(token.Lparen)
	s.Args = p.exprList(token.Rparen, false)
	p.wantClose(token.Rparen, open)
	p.items(func() {
		c := &SelectCase{node: node{p.pos()}}
		c.Key = p.keyset()
		p.want(token.Colon)
		c.Next = p.name()
		p.want(token.Semi)
		s.Cases = append(s.Cases, c)
	})
	return s
}

// controlDecl = "control" name [ typeParams ] "(" params ")"
//
//	( ";" | [ "(" params ")" ] "{" locals "apply" block "}" ) .
func (p *parser) controlDecl(as Annotations) Decl {
	d := &ControlDecl{decl: declAt(p.pos())}
	p.want(token.Control)
	d.Block = p.blockHead(as)
	defer p.closeScope()
	if d.TypeOnly {
		return d
	}
	p.items(func() { p.controlElement(d) })
	if d.Body == nil {
		p.errorAt(p.peek(-1), "control %s has no apply block", d.Name.Value)
	}
	return d
}

// controlElement = annotations ( constDecl | action | table | variable | instantiation ) | "apply" block .
func (p *parser) controlElement(d *ControlDecl) {
	if d.Body != nil {
		p.unexpected("} after the apply block")
		return
	}
	if p.tok.Kind == token.Apply && p.peek(1).Kind != token.Dot {
		p.next()
		d.Body = &BlockStmt{} // never nil, even if the body has errors
		d.Body = p.block(p.annotations())
		return
	}
	as := p.annotations()
	var local Decl
	switch {
	case p.tok.Kind == token.Const && p.peek(1).Kind != token.Entries:
		local = p.constDecl(as)
	case p.tok.Kind == token.Action:
		local = p.actionDecl(as)
	case p.tok.Kind == token.Table:
		local = p.table(as)
	case p.beginsDecl():
		local = p.varOrInstance(as)
		p.want(token.Semi)
	default:
		if p.tok.Kind == token.Const {
			p.next()
		}
		p.unexpected("a declaration or apply")
		return
	}
	d.Locals = append(d.Locals, local)
}

// packageDecl = "package" name [ typeParams ] "(" params ")" ";" .
func (p *parser) packageDecl(as Annotations) Decl {
	d := &PackageDecl{Annotations: as, decl: declAt(p.pos())}
	p.want(token.Package)
	d.Name, d.TypeParams, d.Params = p.container()
	p.closeScope()
	p.want(token.Semi)
	return d
}
