package format

import (
	"slices"
	"strings"

	"github.com/p4lb/p4lb/internal/p4/syntax"
	"github.com/p4lb/p4lb/internal/p4/token"
)

// resolve determines the roles of tokens.
func (f *formatter) resolve() {
	for i := range f.elems {
		if f.elems[i].Class == syntax.TokenElement {
			f.toks = append(f.toks, i)
		}
	}
	f.types = make(map[string]bool)
	for i := range f.toks {
		f.noteType(i)
	}
	f.matchBrackets()
	f.matchElse()
	f.markPragmas()
	f.markBodies()
	f.markColons()
	f.angles = make([]angleList, len(f.toks))
	for i := range f.toks {
		if f.tok(i).Kind == token.Lss && f.tok(i).role == noRole {
			f.resolveAngle(i)
		}
	}
	for i := range f.toks {
		f.resolveToken(i)
	}
	for i := range f.toks {
		if f.tok(i).Kind == token.Lbrace {
			f.markFields(i)
		}
	}
}

var noElem = elem{Element: syntax.Element{Kind: token.EOF}, match: -1}

// tok returns the i-th token, or an end of file if i is out of range.
func (f *formatter) tok(i int) *elem {
	if i < 0 || i >= len(f.toks) {
		return &noElem
	}
	return &f.elems[f.toks[i]]
}

// noteType records names that are declared as types.
func (f *formatter) noteType(i int) {
	switch f.tok(i).Kind {
	case token.Struct, token.Header, token.HeaderUnion, token.Extern, token.Control, token.Parser, token.Package, token.Enum:
		if name := f.tok(i + 1); name.Kind == token.Name {
			f.types[name.Text] = true
		}
	case token.Typedef, token.Type:
		for n := i + 1; n < i+16; n++ {
			if f.tok(n+1).Kind == token.Semi && f.tok(n).Kind == token.Name {
				f.types[f.tok(n).Text] = true
				return
			}
		}
	}
}

// typish reports whether a word looks like a type: it is declared as one, or its
// spelling is the usual one for types.
func (f *formatter) typish(e *elem) bool {
	if e.Kind != token.Name {
		return e.Kind.BeginsType()
	}
	c := e.Text[0]
	return f.types[e.Text] || strings.HasSuffix(e.Text, "_t") || 'A' <= c && c <= 'Z'
}

// matchBrackets pairs brackets. Each branch of an #if starts with the brackets that
// were open before the #if.
func (f *formatter) matchBrackets() {
	var open []int
	var saved branches[int]
	for i := range f.elems {
		e := &f.elems[i]
		if e.Class == syntax.Directive {
			open = saved.at(e.Text, open)
		}
		if e.Class != syntax.TokenElement {
			continue
		}
		switch e.Kind {
		case token.Lparen, token.Lbrack, token.Lbrace:
			open = append(open, i)
		case token.Rparen, token.Rbrack, token.Rbrace:
			if n := len(open) - 1; n >= 0 && closes(f.elems[open[n]].Kind, e.Kind) {
				e.match = open[n]
				f.elems[open[n]].match = i
				open = open[:n]
			}
		}
	}
}

// A branches is a stack with the brackets that were open at each enclosing #if. All
// branches of the #if start with them.
type branches[T any] [][]T

// at returns the brackets that are open after a directive, given the brackets
// before it.
func (b *branches[T]) at(directive string, open []T) []T {
	last := len(*b) - 1
	switch directiveWord(directive) {
	case "if", "ifdef", "ifndef":
		*b = append(*b, slices.Clone(open))
	case "else", "elif", "elifdef", "elifndef":
		if last >= 0 {
			return slices.Clone((*b)[last])
		}
	case "endif":
		*b = (*b)[:max(0, last)]
	}
	return open
}

// matchElse finds the if of each else.
func (f *formatter) matchElse() {
	const block = -1
	var pending []int // the ifs that an else may still follow, below the open blocks
	for i := 0; i < len(f.toks); i++ {
		e := f.tok(i)
		switch e.Kind {
		case token.Lparen:
			if n := f.tokenOf(e.match); n > i {
				i = n // the semicolons of a for header end no statement
			}
		case token.If:
			pending = append(pending, f.toks[i])
		case token.Else:
			if n := len(pending) - 1; n >= 0 && pending[n] != block {
				e.match = pending[n]
				pending = pending[:n]
			}
		case token.Lbrace:
			pending = append(pending, block)
		case token.Rbrace:
			for n := len(pending) - 1; n >= 0; n-- {
				last := pending[n]
				pending = pending[:n]
				if last == block {
					break
				}
			}
		}
		if (e.Kind == token.Semi || e.Kind == token.Rbrace) && f.tok(i+1).Kind != token.Else {
			for n := len(pending) - 1; n >= 0 && pending[n] != block; n-- {
				pending = pending[:n]
			}
		}
	}
}

// closes reports whether end is the bracket that closes open.
func closes(open, end token.Kind) bool { return end.Opening() == open }

// directiveWord returns the word after the # of a directive.
func directiveWord(text string) string {
	text = strings.TrimLeft(text[1:], " \t")
	n := 0
	for n < len(text) && token.IsWord(text[n]) {
		n++
	}
	return text[:n]
}

// markPragmas marks the tokens after an @pragma on its line.
func (f *formatter) markPragmas() {
	on := false
	for i := range f.elems {
		e := &f.elems[i]
		on = on && e.Breaks == 0
		e.pragma = on
		if e.Kind == token.At && i+1 < len(f.elems) && f.elems[i+1].Text == "pragma" && !f.elems[i+1].Space {
			on = true
		}
	}
}

// resolveAngle decides whether the < at token i opens type arguments. If it does,
// it marks the < and its >.
func (f *formatter) resolveAngle(i int) {
	end, commas := f.angleEnd(i)
	if end < 0 {
		return
	}
	prev := f.tok(i - 1)
	sure := false
	switch prev.Kind {
	case token.Bit, token.IntWord, token.Varbit, token.Tuple, token.List, token.ValueSet:
		sure = true
	default:
		if !prev.Kind.IsName() {
			return
		}
	}
	typish := f.typish(prev) && f.tok(i-2).Kind != token.Dot || f.typish(f.tok(i+1))
	switch next := f.tok(end + 1); {
	case sure:
	case next.Kind == token.Lparen, next.Kind.IsName():
		sure = !commas || typish
	case next.Kind >= token.Not && next.Kind < token.Assign && next.Kind != token.Gtr, next.Kind == token.Int:
		sure = false
	default:
		sure = !commas || typish
	}
	if sure {
		f.tok(i).role, f.tok(end).role = angle, angle
	}
}

// markBodies marks the tokens between the parentheses of an annotation.
func (f *formatter) markBodies() {
	for i := range f.toks {
		if open := f.tok(i + 2); f.tok(i).Kind == token.At && open.Kind == token.Lparen {
			for k := i + 3; k < f.tokenOf(open.match); k++ {
				f.tok(k).free = true
			}
		}
	}
}

// An angleList is the cached result of angleEnd for one <.
type angleList struct {
	known  bool
	commas bool
	end    int
}

// angleEnd returns the token that closes the < at token i, and reports whether
// there are commas in between. It returns -1 if a token that cannot be part of type
// arguments occurs first.
func (f *formatter) angleEnd(i int) (end int, commas bool) {
	a := &f.angles[i]
	if !a.known {
		a.end, a.commas = f.scanAngle(i)
		a.known = true
	}
	return a.end, a.commas
}

func (f *formatter) scanAngle(i int) (end int, commas bool) {
	sized := false // bit<…> may contain arithmetic
	switch f.tok(i - 1).Kind {
	case token.Bit, token.IntWord, token.Varbit:
		sized = true
	}
	for k := i + 1; ; k++ {
		e := f.tok(k)
		switch {
		case e.Kind == token.Gtr:
			return k, commas
		case e.Kind == token.Lss:
			if k, _ = f.angleEnd(k); k < 0 {
				return -1, false
			}
		case e.Kind == token.Lparen && sized, e.Kind == token.Lbrack:
			if k = f.tokenOf(e.match); k < 0 {
				return -1, false
			}
		case e.Kind == token.Comma:
			commas = true
		case e.Kind == token.Dot, e.Kind == token.Int, e.Kind == token.Underscore, e.Kind.IsName(), e.Kind.BeginsType():
		case sized && e.Kind > token.Not && e.Kind < token.Assign:
		default:
			return -1, false
		}
	}
}

// tokenOf returns the index of an elem among the tokens, or -1 if it is not a
// token.
func (f *formatter) tokenOf(i int) int {
	at, _ := slices.BinarySearch(f.toks, i)
	if i < 0 || at == len(f.toks) {
		return -1
	}
	return at
}

func (f *formatter) resolveToken(i int) {
	e, prev := f.tok(i), f.tok(i-1)
	switch e.Kind {
	case token.Not, token.Tilde:
		e.role = prefix
	case token.Minus, token.Plus:
		if !endsOperand(prev) {
			e.role = prefix
		}
	case token.Rparen:
		if f.isCast(i) {
			e.role = castParen
		}
	case token.Lbrace:
		e.role = f.braceRole(i)
		if e.match >= 0 {
			f.elems[e.match].role = e.role
		}
	case token.Rbrace:
		if e.match < 0 {
			e.role = blockBrace
		}
	}
}

// endsOperand reports whether a value can end with e, so that a + or - after it is
// binary.
func endsOperand(e *elem) bool {
	switch e.Kind {
	case token.Int, token.String, token.Rbrack, token.Rbrace, token.True, token.False, token.This, token.Underscore, token.Default, token.Invalid:
		return true
	case token.Rparen:
		return e.role != castParen
	}
	return e.Kind.IsName()
}

// isCast reports whether the ) at token i closes a cast.
func (f *formatter) isCast(i int) bool {
	open := f.tokenOf(f.tok(i).match)
	if open < 0 || open+1 == i {
		return false
	}
	switch p := f.tok(open - 1); {
	case endsOperand(p), p.role == angle, p.Kind == token.If, p.Kind == token.For, p.Kind == token.Switch, p.Kind == token.Select:
		return false
	}
	k := open + 1
	if f.tok(k).Kind == token.Dot {
		k++
	}
	first := f.tok(k)
	if !first.Kind.BeginsType() && !first.Kind.IsName() || !f.typeEndsAt(k, i) {
		return false
	}
	if first.Kind.BeginsType() {
		return true
	}
	switch next := f.tok(i + 1); next.Kind {
	case token.Int, token.String, token.True, token.False, token.This, token.Not, token.Tilde:
		return true
	case token.Lparen, token.Lbrace, token.Minus, token.Plus, token.Dot:
		return f.typish(first)
	default:
		return next.Kind.IsName()
	}
}

// typeEndsAt reports whether a type that starts at token k ends right before token end.
func (f *formatter) typeEndsAt(k, end int) bool {
	k++
	if f.tok(k).Kind == token.Lss {
		n, _ := f.angleEnd(k)
		if n < 0 {
			return false
		}
		k = n + 1
	}
	for f.tok(k).Kind == token.Lbrack {
		n := f.tokenOf(f.tok(k).match)
		if n < 0 {
			return false
		}
		k = n + 1
	}
	return k == end
}

// braceRole distinguishes the braces of a list from the braces of a block. A list
// is used as a value and contains no semicolons.
func (f *formatter) braceRole(i int) role {
	switch prev := f.tok(i - 1); {
	case prev.Kind == token.Lparen, prev.Kind == token.Lbrack, prev.Kind == token.Comma, prev.Kind == token.Return, prev.Kind.IsAssign(),
		prev.Kind >= token.Not && prev.Kind < token.Assign && prev.role != angle, prev.Kind == token.Question, prev.role == ternary,
		prev.role == castParen, prev.role == exprBrace:
	default:
		return blockBrace
	}
	if w := f.tok(i - 2).Kind; w == token.Key || w == token.Actions || w == token.Entries {
		return blockBrace
	}
	end := f.tokenOf(f.tok(i).match)
	for k := i + 1; k < end; k++ {
		switch e := f.tok(k); e.Kind {
		case token.Semi:
			return blockBrace
		case token.Lbrace:
			if n := f.tokenOf(e.match); n > k {
				k = n
			}
		}
	}
	return exprBrace
}

// markColons distinguishes the : of a ?: and of a slice from the : after a label.
func (f *formatter) markColons() {
	type level struct {
		open    token.Kind
		pending int // the ? tokens without a : so far
	}
	levels := []level{{}}
	for i := range f.toks {
		e := f.tok(i)
		top := &levels[len(levels)-1]
		switch e.Kind {
		case token.Lparen, token.Lbrack, token.Lbrace:
			levels = append(levels, level{open: e.Kind})
		case token.Rparen, token.Rbrack, token.Rbrace:
			if closes(top.open, e.Kind) {
				levels = levels[:len(levels)-1]
			}
		case token.Question:
			top.pending++
		case token.Semi, token.Comma:
			top.pending = 0
		case token.Colon:
			switch {
			case top.pending > 0:
				e.role = ternary
				top.pending--
			case top.open == token.Lbrack:
				e.role = sliceColon
			}
		}
	}
}

// markFields marks the names of the fields in the struct with its { at token i.
func (f *formatter) markFields(i int) {
	n := i - 1
	if f.tok(n).role == angle {
		for n--; n > 0 && f.tok(n).role != angle; n-- {
		}
		n--
	}
	switch f.tok(n - 1).Kind {
	case token.Struct, token.Header, token.HeaderUnion:
	default:
		return
	}
	end := f.tokenOf(f.tok(i).match)
	for k := i + 1; k < end; k++ {
		if f.tok(k+1).Kind == token.Semi && f.tok(k).Kind.IsName() {
			f.tok(k).role = fieldName
		}
	}
}
