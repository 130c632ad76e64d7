package syntax

import "github.com/p4lb/p4lb/internal/p4/token"

// kindOf returns the kind of the name at the n-th token from here.
func (p *parser) kindOf(n int) symKind {
	if t := p.peek(n); t.Kind.IsName() {
		return p.kinds[t.Text]
	}
	return symNone
}

// typeAt reports whether a type begins at the n-th token from here: a type keyword,
// a declared type, or list<. A type name before a dot counts too.
func (p *parser) typeAt(n int) bool {
	switch t := p.peek(n); {
	case t.Kind.BeginsType():
		return t.Kind != token.Error || p.peek(n+1).Kind != token.Dot
	case t.Kind == token.List:
		return p.peek(n+1).Kind == token.Lss
	case t.Kind == token.Dot:
		return p.global(p.peek(n+1).Text) == symType
	default:
		return p.kindOf(n) == symType
	}
}

// typeOrVoid = typeRef | "void" .
func (p *parser) typeOrVoid() Expr {
	if p.tok.Kind == token.Void {
		return p.baseType(VoidKind, false)
	}
	return p.typeRef()
}

// typeRef = ( baseType | namedType | listType | tupleType ) { "[" expr "]" } .
func (p *parser) typeRef() Expr {
	if !p.enter() {
		return &Name{}
	}
	defer p.leave()
	return p.stackTypes(p.plainType())
}

// stackTypes = { "[" expr "]" } after the type of the elements.
func (p *parser) stackTypes(t Expr) Expr {
	for n := 0; p.tok.Kind == token.Lbrack && !p.panicking; n++ {
		if n > maxDepth {
			p.giveUp("type has more than %d sizes (docs/limits.md)", maxDepth)
			break
		}
		t = p.stackType(t)
	}
	return t
}

// stackType = "[" expr "]" after the type of the elements.
func (p *parser) stackType(elem Expr) Expr {
	t := &StackType{Elem: elem, expr: exprAt(elem.Pos())}
	open := p.opening(token.Lbrack)
	t.Size = p.innerExpr()
	p.wantClose(token.Rbrack, open)
	return t
}

func (p *parser) plainType() Expr {
	switch p.tok.Kind {
	case token.Bool:
		return p.baseType(BoolKind, false)
	case token.Error:
		return p.baseType(ErrorKind, false)
	case token.MatchKind:
		return p.baseType(MatchKindKind, false)
	case token.StringWord:
		return p.baseType(StringKind, false)
	case token.Bit:
		return p.baseType(BitKind, true)
	case token.IntWord:
		return p.baseType(IntKind, true)
	case token.Varbit:
		return p.baseType(VarbitKind, true)
	case token.Tuple:
		return p.tupleType()
	case token.List:
		if p.peek(1).Kind == token.Lss {
			return p.listType()
		}
	}
	if !p.tok.Kind.IsName() && p.tok.Kind != token.Dot {
		p.unexpected("a type")
	}
	return p.namedType()
}

// baseType = word [ "<" expr "> " ] ; varbit requires the size.
func (p *parser) baseType(kind BaseKind, sized bool) Expr {
	t := &BaseType{Kind: kind, expr: exprAt(p.pos())}
	p.next()
	if !sized {
		return t
	}
	open := p.pos()
	if p.got(token.Lss) {
		t.Size = p.exprNoGtr()
		p.wantClose(token.Gtr, open)
	} else if kind == VarbitKind {
		p.unexpected("<")
	}
	return t
}

// namedType = prefixedName [ typeArgs ] .
func (p *parser) namedType() Expr {
	name := p.prefixedName()
	if p.tok.Kind != token.Lss || p.panicking {
		return name
	}
	return &SpecializedType{Base: name, Args: p.typeArgs(), expr: exprAt(name.pos)}
}

// tupleType = "tuple" typeArgs .
func (p *parser) tupleType() Expr {
	t := &TupleType{expr: exprAt(p.pos())}
	p.next()
	t.Elems = p.typeArgs()
	return t
}

// listType = "list" "<" typeArg ">" .
func (p *parser) listType() Expr {
	t := &ListType{expr: exprAt(p.pos())}
	p.next()
	open := p.opening(token.Lss)
	t.Elem = p.typeArg()
	p.wantClose(token.Gtr, open)
	return t
}

// typeArgs = "<" [ typeArg { "," typeArg } ] ">" .
func (p *parser) typeArgs() []Expr {
	args := []Expr{}
	open := p.opening(token.Lss)
	p.list(token.Gtr, false, func() { args = append(args, p.typeArg()) })
	p.wantClose(token.Gtr, open)
	return args
}

// typeArg = typeRef | "void" | "_" .
func (p *parser) typeArg() Expr {
	if p.tok.Kind == token.Underscore {
		return p.dontCare()
	}
	return p.typeOrVoid()
}

// typeParams = [ "<" name { "," name } ">" ] .
func (p *parser) typeParams() []*Name {
	open := p.pos()
	if !p.got(token.Lss) {
		return nil
	}
	var names []*Name
	p.list(token.EOF, false, func() { names = append(names, p.name()) })
	p.wantClose(token.Gtr, open)
	return names
}

// behindType returns the offset after the type that typeAt found at offset n. It
// only matches brackets, and returns 0 if they are not paired.
func (p *parser) behindType(n int) int {
	if p.peek(n).Kind == token.Dot {
		n++
	}
	n++
	if p.peek(n).Kind == token.Lss {
		if n = p.behindAngles(n); n == 0 {
			return 0
		}
	}
	for p.peek(n).Kind == token.Lbrack {
		if n = p.behindBracket(n); n == 0 {
			return 0
		}
	}
	return n
}

// behindAngles returns the offset after the > that closes the < at offset n, or 0
// if there is none.
func (p *parser) behindAngles(n int) int {
	for depth := 0; ; n++ {
		switch p.peek(n).Kind {
		case token.Lss:
			depth++
		case token.Gtr:
			if depth--; depth == 0 {
				return n + 1
			}
		case token.Lparen, token.Lbrack:
			if n = p.behindBracket(n) - 1; n < 0 {
				return 0
			}
		case token.Rparen, token.Rbrack, token.Semi, token.Lbrace, token.Rbrace, token.EOF, token.Assign:
			return 0
		}
	}
}

// behindBracket returns the offset after the token that closes the parenthesis or
// bracket at offset n, or 0 if there is none.
func (p *parser) behindBracket(n int) int {
	for depth := 0; ; n++ {
		switch p.peek(n).Kind {
		case token.Lparen, token.Lbrack:
			depth++
		case token.Rparen, token.Rbrack:
			if depth--; depth == 0 {
				return n + 1
			}
		case token.Semi, token.EOF:
			return 0
		}
	}
}
