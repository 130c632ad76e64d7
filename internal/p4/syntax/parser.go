package syntax

import (
	"fmt"
	"slices"

	"github.com/p4lb/p4lb/internal/p4/token"
)

const (
	// maxDepth bounds the nesting of a program, so that the stack suffices for the
	// parser and for functions that walk the tree.
	maxDepth = 1000
	// maxChain bounds a + b + c + … and else if …, whose nesting is in the tree
	// only.
	maxChain = 10000
)

// A parser turns the tokens of a preprocessed program into a tree.
//
// It is a recursive-descent parser. After an error it is in panic mode: productions
// return without consuming tokens or reporting errors. Panic mode ends when a list
// of declarations, statements or members has skipped to the start of its next item.
type parser struct {
	scope
	toks  []Token
	i     int    // index of tok
	tok   *Token // the current token
	errs  *Errors
	depth int

	reported  int  // number of errors
	panicking bool // in panic mode: an error was reported and its text not yet skipped
	trial     bool // report no errors: the caller only tests whether the text parses
	noGtr     bool // > is a closing bracket, not an operator
	typesToo  bool // a type may occur in place of an expression
}

func (p *parser) next() {
	if p.i < len(p.toks)-1 {
		p.i++
		p.tok = &p.toks[p.i]
	}
}

func (p *parser) seek(i int) {
	p.i = i
	p.tok = &p.toks[i]
}

// peek returns the token n places after the current one.
func (p *parser) peek(n int) *Token { return &p.toks[max(0, min(p.i+n, len(p.toks)-1))] }

func (p *parser) pos() Pos { return p.tok.Pos }

// got consumes the token if it is of kind k.
func (p *parser) got(k token.Kind) bool {
	if p.tok.Kind == k && !p.panicking {
		p.next()
		return true
	}
	return false
}

// want consumes a token of kind k or reports that it is missing.
func (p *parser) want(k token.Kind) {
	if !p.got(k) {
		p.unexpected(k.String())
	}
}

// opening is want for the opening bracket k. It returns the bracket's position,
// which wantClose needs.
func (p *parser) opening(k token.Kind) Pos {
	open := p.pos()
	p.want(k)
	return open
}

// wantClose is want for the closing bracket k; open is the position of the opening
// one.
func (p *parser) wantClose(k token.Kind, open Pos) {
	if p.got(k) {
		return
	}
	what := k.String()
	if !sameLine(open, p.tok.Pos) && open.IsKnown() {
		what = fmt.Sprintf("%s for the %s in line %d", what, k.Opening(), open.Line())
	}
	p.unexpected(what)
}

// unexpected reports the current token and the expected text.
func (p *parser) unexpected(what string) {
	p.errorf("unexpected %s, expected %s", p.tok.describe(), what)
}

// errorf reports an error at the current token and starts panic mode.
func (p *parser) errorf(format string, args ...any) { p.errorAt(p.tok, format, args...) }

func (p *parser) errorAt(t *Token, format string, args ...any) {
	if p.panicking {
		return
	}
	p.panicking = true
	p.complain(t, format, args...)
}

// complain reports an error that does not disturb the parsing of the following
// text.
func (p *parser) complain(t *Token, format string, args ...any) {
	if p.trial {
		p.panicking = true // the trial parse has failed
		return
	}
	pos := t.Pos
	if t.Kind == token.EOF {
		if p.errs.Err() != nil {
			return // most likely the missing end is a consequence of an earlier error
		}
		if last := p.peek(-1); p.i > 0 && last.flag&fromMacro == 0 {
			pos = last.Pos
			pos.col += uint32(len(last.Text))
		}
	}
	if p.reported++; p.reported > 10*maxErrors {
		p.seek(len(p.toks) - 1) // enough errors: skip the rest of the text
		return
	}
	msg := fmt.Sprintf(format, args...)
	if t.flag&fromMacro != 0 {
		msg += fmt.Sprintf(" (in the expansion of %s)", wordAt(t.Pos))
	}
	p.errs.add(pos, "%s", msg)
}

// wordAt returns the word at a position. For text from a macro, it is the macro's
// name.
func wordAt(pos Pos) string {
	line, i := pos.sourceLine(), pos.Col()-1
	end := i
	for end < len(line) && token.IsWord(line[end]) {
		end++
	}
	if i >= end {
		return "a macro"
	}
	return line[i:end]
}

// enter adds a level of nesting and reports whether the limit allows it. If it
// returns true, the caller must call leave.
func (p *parser) enter() bool {
	if p.depth < maxDepth {
		p.depth++
		return true
	}
	p.giveUp("program nests more than %d deep here (docs/limits.md)", maxDepth)
	return false
}

func (p *parser) leave() { p.depth-- }

// giveUp reports an error and skips the rest of the program.
func (p *parser) giveUp(format string, args ...any) {
	p.errorf(format, args...)
	if !p.trial {
		p.seek(len(p.toks) - 1)
	}
}

// skipDeclaration ends panic mode at top level. It skips the rest of the
// declaration that started at token start.
func (p *parser) skipDeclaration(start int) {
	// Close the scopes that unfinished productions left open.
	for len(p.open) > 0 {
		p.closeScope()
	}
	p.depth, p.noGtr = 0, false
	if p.i == start {
		p.next()
	}
	for depth := 0; p.tok.Kind != token.EOF; p.next() {
		switch k := p.tok.Kind; {
		case k == token.Lbrace:
			depth++
		case k == token.Rbrace:
			if depth--; depth <= 0 {
				p.next()
				p.panicking = false
				return
			}
		case k == token.Semi && depth == 0:
			p.panicking = false
			return
		case p.atTopLevel():
			p.panicking = false
			return
		}
	}
	p.panicking = false
}

// atTopLevel reports whether the token is the first on its line and a word that
// only begins top-level declarations.
func (p *parser) atTopLevel() bool {
	if p.tok.flag&bol == 0 {
		return false
	}
	switch p.tok.Kind {
	case token.Header, token.HeaderUnion, token.Struct, token.Enum, token.Extern, token.Typedef, token.Control, token.Parser, token.Package:
		return true
	}
	return false
}

// skipItem ends panic mode in a list between braces. It skips the rest of the item
// that started at token start, or stops at the closing brace of the list. At the
// end of the file and before a top-level declaration, panic mode continues, so that
// the enclosing lists end as well.
func (p *parser) skipItem(start int) {
	if p.i == start && !p.atTopLevel() && p.tok.Kind != token.Rbrace {
		p.skipOne()
	}
	for {
		switch k := p.tok.Kind; {
		case k == token.EOF || p.atTopLevel():
			return
		case k == token.Semi:
			p.next()
			p.panicking = false
			return
		case k == token.Rbrace:
			p.panicking = false
			return
		case p.tok.flag&bol != 0 && beginsItem(k):
			p.panicking = false
			return
		case k == token.Lbrace:
			p.skipOne()
			if p.tok.Kind != token.Semi && p.tok.Kind != token.Else {
				p.panicking = false
				return
			}
		default:
			p.next()
		}
	}
}

// skipOne skips one token, or a whole pair of braces with its contents.
func (p *parser) skipOne() {
	depth := 0
	for {
		switch p.tok.Kind {
		case token.EOF:
			return
		case token.Lbrace:
			depth++
		case token.Rbrace:
			depth--
		}
		p.next()
		if depth <= 0 || p.atTopLevel() {
			return
		}
	}
}

// beginsItem reports whether a keyword at the start of a line begins an item of a
// list.
func beginsItem(k token.Kind) bool {
	switch k {
	case token.Action, token.Table, token.State, token.Transition, token.Apply, token.If, token.Switch, token.For, token.Return, token.Exit, token.Const,
		token.Key, token.Actions, token.Entries, token.ValueSet:
		return true
	}
	return false
}

// items parses items between braces. After an error it continues with the next
// item.
func (p *parser) items(item func()) { p.itemsIn(p.opening(token.Lbrace), item) }

// itemsIn is items after the opening brace at position open.
func (p *parser) itemsIn(open Pos, item func()) {
	for p.tok.Kind != token.Rbrace && p.tok.Kind != token.EOF && !p.atTopLevel() && !p.panicking {
		start, depth, opened := p.i, p.depth, len(p.open)
		item()
		if p.panicking && !p.trial {
			p.skipItem(start)
			p.depth, p.noGtr = depth, false
			for len(p.open) > opened {
				p.closeScope()
			}
		}
	}
	p.wantClose(token.Rbrace, open)
}

// list parses items separated by commas, up to (not including) the token end. With
// trailing, a comma may come before end.
func (p *parser) list(end token.Kind, trailing bool, item func()) {
	if p.tok.Kind == end {
		return
	}
	for !p.panicking {
		item()
		if !p.got(token.Comma) || trailing && p.tok.Kind == end {
			return
		}
	}
}

// name = identifier | contextual keyword .
func (p *parser) name() *Name {
	n := &Name{Value: p.tok.Text, expr: exprAt(p.pos())}
	if !p.tok.Kind.IsName() || p.panicking {
		p.unexpected("a name")
		n.Value = ""
		return n
	}
	p.next()
	return n
}

// prefixedName = [ "." ] name .
func (p *parser) prefixedName() *Name {
	pos := p.pos()
	global := p.got(token.Dot)
	n := p.name()
	n.Global, n.pos = global, pos
	return n
}

// annotations = { annotation } .
func (p *parser) annotations() Annotations {
	var as Annotations
	for p.tok.Kind == token.At && !p.panicking {
		as = append(as, p.annotation())
	}
	return as
}

// annotation = "@" word [ "(" tokens ")" | "[" exprList "]" | "[" fields "]" ]
//
//	| "@pragma" word tokens-to-the-end-of-the-line .
func (p *parser) annotation() *Annotation {
	a := &Annotation{node: node{p.pos()}}
	p.want(token.At)
	pragma := p.tok.Text == "pragma" && p.tok.flag&spaced == 0
	if pragma {
		p.next()
	}
	if !p.tok.IsName() || pragma && p.tok.flag&bol != 0 {
		p.unexpected("the name of the annotation")
		return a
	}
	a.Name = &Name{Value: p.tok.Text, expr: exprAt(p.pos())}
	p.next()
	switch {
	case pragma:
		a.Kind = AnnotationBody
		start := p.i
		for p.tok.Kind != token.EOF && p.tok.flag&bol == 0 {
			p.next()
		}
		p.annotationBody(a, start, p.i)
	case p.tok.Kind == token.Lparen:
		a.Kind = AnnotationBody
		start := p.i + 1
		if p.skipParens() {
			p.annotationBody(a, start, p.i-1)
		}
	case p.tok.Kind == token.Lbrack:
		p.structuredBody(a)
	}
	return a
}

// skipParens skips a pair of parentheses with its contents.
func (p *parser) skipParens() bool {
	open := p.tok
	for depth := 0; p.tok.Kind != token.EOF; {
		switch p.tok.Kind {
		case token.Lparen:
			depth++
		case token.Rparen:
			depth--
		}
		p.next()
		if depth == 0 {
			return true
		}
	}
	p.errorAt(open, "no ) for the ( of this annotation")
	return false
}

// annotationBody records the tokens of a body. If they parse as a list of
// expressions, it also records the expressions.
func (p *parser) annotationBody(a *Annotation, start, end int) {
	a.Tokens = slices.Clone(p.toks[start:end])
	if start == end {
		return
	}
	sub := *p
	sub.toks = append(a.Tokens[:len(a.Tokens):len(a.Tokens)], Token{Kind: token.EOF, Pos: p.pos()})
	sub.trial, sub.typesToo, sub.noGtr = true, true, false
	sub.seek(0)
	exprs := sub.exprList(token.EOF, true)
	if !sub.panicking && sub.tok.Kind == token.EOF {
		a.Exprs = exprs
	}
}

// structuredBody = "[" [ exprList | namedExpr { "," namedExpr } ] [ "," ] "]" .
func (p *parser) structuredBody(a *Annotation) {
	open := p.opening(token.Lbrack)
	if p.tok.Kind.IsName() && p.peek(1).Kind == token.Assign {
		a.Kind = AnnotationKeyValues
		p.list(token.Rbrack, true, func() { a.Fields = append(a.Fields, p.namedExpr()) })
	} else {
		a.Kind = AnnotationExprs
		a.Exprs = p.exprList(token.Rbrack, true)
	}
	p.wantClose(token.Rbrack, open)
}
