package syntax

import "github.com/p4lb/p4lb/internal/p4/token"

// table = "table" name "{" property { property } "}" .
func (p *parser) table(as Annotations) Decl {
	t := &TableDecl{Annotations: as, decl: declAt(p.pos())}
	p.want(token.Table)
	t.Name = p.name()
	p.declare(t.Name, symOther)
	open := p.opening(token.Lbrace)
	if p.tok.Kind == token.Rbrace {
		p.complain(p.tok, "unexpected }, expected a table property")
	}
	p.itemsIn(open, func() { p.property(t) })
	return t
}

// property = "key" "=" "{" { keyElem } "}" | "actions" "=" "{" { actionRef ";" } "}"
//
//	| annotations [ "const" ] "entries" "=" "{" { entry } "}"
//	| annotations [ "const" ] name "=" expr ";" .
func (p *parser) property(t *TableDecl) {
	as := p.annotations()
	pos := p.pos()
	isConst := p.got(token.Const)
	switch k := p.tok.Kind; k {
	case token.Key, token.Actions:
		if isConst || len(as) > 0 {
			p.errorf("unexpected %s, which takes neither const nor annotations", k)
			return
		}
		if k == token.Key {
			p.once(t.Key != nil)
			t.Key = p.tableKey()
		} else {
			p.once(t.Actions != nil)
			t.Actions = p.tableActions()
		}
	case token.Entries:
		p.once(t.Entries != nil)
		t.Entries = p.tableEntries(as, isConst, pos)
	default:
		prop := &Property{Annotations: as, Const: isConst, node: node{pos}}
		if k == token.List {
			p.unexpected("a table property")
		}
		prop.Name = p.name()
		p.want(token.Assign)
		prop.Value = p.expr()
		p.want(token.Semi)
		t.Props = append(t.Props, prop)
	}
}

// once reports a second key, actions or entries property of a table.
func (p *parser) once(already bool) {
	if already {
		p.complain(p.tok, "table has %s twice", p.tok.Text)
	}
}

// braced parses word "=" "{" items "}".
func (p *parser) braced(item func()) {
	p.next()
	p.want(token.Assign)
	p.items(item)
}

// tableKey = "key" "=" "{" { expr ":" name annotations ";" } "}" .
func (p *parser) tableKey() *TableKey {
	k := &TableKey{node: node{p.pos()}}
	p.braced(func() {
		e := &KeyElem{node: node{p.pos()}}
		e.X = p.expr()
		p.want(token.Colon)
		e.Match = p.name()
		e.Annotations = p.annotations()
		p.want(token.Semi)
		k.Elems = append(k.Elems, e)
	})
	return k
}

// tableActions = "actions" "=" "{" { annotations actionRef ";" } "}" .
func (p *parser) tableActions() *TableActions {
	a := &TableActions{node: node{p.pos()}}
	p.braced(func() {
		as := p.annotations()
		ref := p.actionRef()
		ref.Annotations = as
		p.want(token.Semi)
		a.Refs = append(a.Refs, ref)
	})
	return a
}

// actionRef = prefixedName [ args ] .
func (p *parser) actionRef() *ActionRef {
	a := &ActionRef{node: node{p.pos()}, Name: p.prefixedName()}
	if p.tok.Kind == token.Lparen {
		a.HasArgs = true
		a.Args = p.args()
	}
	return a
}

// tableEntries = "entries" "=" "{" { entry } "}" ; the caller has parsed const.
func (p *parser) tableEntries(as Annotations, isConst bool, pos Pos) *TableEntries {
	e := &TableEntries{Annotations: as, Const: isConst, node: node{pos}}
	p.braced(func() { e.List = append(e.List, p.entry()) })
	return e
}

// entry = [ "const" ] [ priority ":" ] keyset ":" actionRef annotations ";" .
func (p *parser) entry() *Entry {
	e := &Entry{node: node{p.pos()}}
	e.Const = p.got(token.Const)
	if p.tok.Kind == token.Priority && p.peek(1).Kind == token.Assign {
		e.Priority = p.priority()
	}
	key := p.keyset()
	if l, ok := key.(*ListExpr); ok && l.Keyset {
		e.Keys = l.Elems
	} else {
		e.Keys = []Expr{key}
	}
	p.want(token.Colon)
	e.Action = p.actionRef()
	e.Annotations = p.annotations()
	p.want(token.Semi)
	return e
}

// priority = "priority" "=" ( integer | "(" expr ")" ) ":" .
func (p *parser) priority() Expr {
	p.next()
	p.want(token.Assign)
	var x Expr
	switch p.tok.Kind {
	case token.Int:
		x = p.intLit()
	case token.Lparen:
		x = p.parenthesized()
	default:
		p.unexpected("an integer or (")
	}
	p.want(token.Colon)
	return x
}
