package syntax

// derivedTypeDecl = structDecl | enumDecl .
func (p *parser) derivedTypeDecl(as Annotations) Decl {
	if p.tok.Kind == _Enum {
		return p.enumDecl(as)
	}
	return p.structDecl(as)
}

// structDecl = ( "struct" | "header" | "header_union" ) name [ typeParams ] "{" { field } "}" .
func (p *parser) structDecl(as Annotations) Decl {
	d := &StructDecl{Annotations: as}
	d.pos = p.pos()
	switch p.tok.Kind {
	case _Header:
		d.Kind = StructKindHeader
	case _HeaderUnion:
		d.Kind = StructKindUnion
	}
	p.next()
	d.Name = p.name()
	p.declare(d.Name, symType)
	p.openScope()
	defer p.closeScope()
	d.TypeParams = p.typeParams()
	p.declareTypes(d.TypeParams)
	open := p.pos()
	p.want(_Lbrace)
	p.items(open, func() { d.Fields = append(d.Fields, p.field()) })
	return d
}

// field = annotations typeRef declarator ";" .
func (p *parser) field() *Field {
	f := &Field{Annotations: p.annotations()}
	f.pos = p.pos()
	f.Name, f.Type = p.declarator(p.typeRef())
	p.want(_Semi)
	return f
}

// enumDecl = "enum" ( name "{" nameList "}" | typeRef name "{" member { "," member } "}" ) .
func (p *parser) enumDecl(as Annotations) Decl {
	d := &EnumDecl{Annotations: as}
	d.pos = p.pos()
	p.want(_Enum)
	if p.peek(1).Kind != _Lbrace || beginsType(p.tok.Kind) {
		d.Type = p.typeRef()
	}
	d.Name = p.name()
	p.declare(d.Name, symType)
	open := p.pos()
	p.want(_Lbrace)
	member := func() {
		m := &EnumMember{Name: p.name()}
		m.pos = m.Name.pos
		if d.Type != nil {
			p.want(_Assign)
			m.Value = p.expr()
		}
		d.Members = append(d.Members, m)
	}
	member()
	if p.got(_Comma) {
		p.list(_Rbrace, true, member)
	}
	p.wantClose(_Rbrace, open)
	return d
}

// errorDecl = "error" "{" nameList "}" .
func (p *parser) errorDecl(as Annotations) Decl {
	d := &ErrorDecl{}
	d.pos = p.pos()
	p.noAnnotations(as, "error")
	p.next()
	d.Members = p.nameList(false)
	return d
}

// matchKindDecl = "match_kind" "{" nameList [ "," ] "}" .
func (p *parser) matchKindDecl(as Annotations) Decl {
	d := &MatchKindDecl{}
	d.pos = p.pos()
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
	open := p.pos()
	p.want(_Lbrace)
	names := []*Name{p.name()}
	for p.got(_Comma) && !(trailing && p.tok.Kind == _Rbrace) {
		names = append(names, p.name())
	}
	p.wantClose(_Rbrace, open)
	return names
}

// typedefDecl = ( "typedef" ( typeRef | derivedTypeDecl ) | "type" typeRef ) declarator ";" .
func (p *parser) typedefDecl(as Annotations) Decl {
	d := &TypedefDecl{Annotations: as, New: p.tok.Kind == _Type}
	d.pos = p.pos()
	p.next()
	inline := p.annotations()
	switch p.tok.Kind {
	case _Header, _HeaderUnion, _Struct, _Enum:
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
	p.want(_Semi)
	p.declare(d.Name, symType)
	return d
}

// declarator = name { "[" expr "]" } behind the type, which the brackets make a stack.
func (p *parser) declarator(t Expr) (*Name, Expr) {
	name := p.name()
	return name, p.stackTypes(t)
}
