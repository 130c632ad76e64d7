package syntax

import "github.com/p4lb/p4lb/internal/p4/token"

// derivedTypeDecl = structDecl | enumDecl .
func (p *parser) derivedTypeDecl(as Annotations) Decl {
	if p.tok.Kind == token.Enum {
		return p.enumDecl(as)
	}
	return p.structDecl(as)
}

// structDecl = ( "struct" | "header" | "header_union" ) name [ typeParams ] "{" { field } "}" .
func (p *parser) structDecl(as Annotations) Decl {
	d := &StructDecl{Annotations: as, decl: declAt(p.pos())}
	switch p.tok.Kind {
	case token.Header:
		d.Kind = StructKindHeader
	case token.HeaderUnion:
		d.Kind = StructKindUnion
	}
	p.next()
	d.Name = p.name()
	p.declare(d.Name, symType)
	p.openScope()
	defer p.closeScope()
	d.TypeParams = p.typeParams()
	p.declareTypes(d.TypeParams)
	p.items(func() { d.Fields = append(d.Fields, p.field()) })
	return d
}

// field = annotations typeRef declarator ";" .
func (p *parser) field() *Field {
	f := &Field{Annotations: p.annotations(), node: node{p.pos()}}
	f.Name, f.Type = p.declarator(p.typeRef())
	p.want(token.Semi)
	return f
}

// enumDecl = "enum" ( name "{" nameList "}" | typeRef name "{" member { "," member } "}" ) .
func (p *parser) enumDecl(as Annotations) Decl {
	d := &EnumDecl{Annotations: as, decl: declAt(p.pos())}
	p.want(token.Enum)
	if p.peek(1).Kind != token.Lbrace || p.tok.Kind.BeginsType() {
		d.Type = p.typeRef()
	}
	d.Name = p.name()
	p.declare(d.Name, symType)
	open := p.opening(token.Lbrace)
	member := func() {
		m := &EnumMember{node: node{p.pos()}, Name: p.name()}
		if d.Type != nil {
			p.want(token.Assign)
			m.Value = p.expr()
		}
		d.Members = append(d.Members, m)
	}
	member()
	if p.got(token.Comma) {
		p.list(token.Rbrace, true, member)
	}
	p.wantClose(token.Rbrace, open)
	return d
}

// errorDecl = "error" "{" nameList "}" .
func (p *parser) errorDecl(as Annotations) Decl {
	d := &ErrorDecl{decl: declAt(p.pos())}
	p.noAnnotations(as, "error")
	p.next()
	d.Members = p.nameList(false)
	return d
}

// matchKindDecl = "match_kind" "{" nameList [ "," ] "}" .
func (p *parser) matchKindDecl(as Annotations) Decl {
	d := &MatchKindDecl{decl: declAt(p.pos())}
	p.noAnnotations(as, "match_kind")
	p.next()
	d.Members = p.nameList(true)
	return d
}

func (p *parser) noAnnotations(as Annotations, what string) {
	if len(as) > 0 {
		p.errorf("unexpected %s, expected a declaration that can be annotated", what)
	}
}

// nameList = "{" name { "," name } "}" .
func (p *parser) nameList(trailing bool) []*Name {
	open := p.opening(token.Lbrace)
	names := []*Name{p.name()}
	for p.got(token.Comma) && !(trailing && p.tok.Kind == token.Rbrace) {
		names = append(names, p.name())
	}
	p.wantClose(token.Rbrace, open)
	return names
}

// typedefDecl = ( "typedef" ( typeRef | derivedTypeDecl ) | "type" typeRef ) declarator ";" .
func (p *parser) typedefDecl(as Annotations) Decl {
	d := &TypedefDecl{Annotations: as, New: p.tok.Kind == token.Type, decl: declAt(p.pos())}
	p.next()
	inline := p.annotations()
	switch p.tok.Kind {
	case token.Header, token.HeaderUnion, token.Struct, token.Enum:
		if !d.New {
			d.Inline = p.derivedTypeDecl(inline)
			d.Type = d.Inline.DeclName()
			break
		}
		p.unexpected("a type")
	default:
		p.noAnnotations(inline, p.tok.describe())
		d.Type = p.typeRef()
	}
	d.Name, d.Type = p.declarator(d.Type)
	p.want(token.Semi)
	p.declare(d.Name, symType)
	return d
}

// declarator = name { "[" expr "]" } after the type. Brackets make it a stack type.
func (p *parser) declarator(t Expr) (*Name, Expr) {
	name := p.name()
	return name, p.stackTypes(t)
}
