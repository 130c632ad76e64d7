package syntax

import (
	"strings"
	"unicode/utf8"
)

const (
	indentWidth = 4
	maxIndent   = 240 // however deep the text nests
)

// A formatBracket is an open bracket of the text being written.
type formatBracket struct {
	elem   int
	base   int // the indentation of the statement it stands in
	inside int // the indentation of lines inside it
}

// layout writes all elems.
func (f *formatter) layout() {
	f.ended = make([]int, len(f.elems))
	for i := 1; i < len(f.elems); i++ {
		e := &f.elems[i]
		f.ended[i] = f.ended[i-1] + btoi(e.breaks > 0 || e.class == directiveElem)
	}
	for i := range f.elems {
		e := &f.elems[i]
		if i > 0 {
			f.separate(i)
		}
		switch e.class {
		case directiveElem:
			f.write(e.text)
			f.branch(e)
		case blockCommentElem:
			f.writeComment(e)
		default:
			e.indent = f.base
			f.open(i)
			f.write(e.text)
			f.close(i)
		}
	}
	if len(f.elems) > 0 {
		f.out.WriteByte('\n')
	}
}

func (f *formatter) write(text string) {
	f.out.WriteString(text)
	if n := strings.Count(text, "\n"); n > 0 {
		f.line += n
		f.col = 0
		text = text[strings.LastIndexByte(text, '\n')+1:]
	}
	f.col += utf8.RuneCountInString(text)
}

func (f *formatter) newline() {
	f.out.WriteByte('\n')
	f.line++
	f.col = 0
}

// separate writes what stands between elem i and the one before it.
func (f *formatter) separate(i int) {
	e, prev := &f.elems[i], &f.elems[i-1]
	if !f.breakBefore(i) {
		f.alignHere(e)
		if f.spaceBefore(i) {
			f.write(" ")
		}
		return
	}
	f.newline()
	if e.breaks > 1 && !opensBlock(prev) && !closesBlock(e) {
		f.newline()
	}
	if e.class == directiveElem {
		return
	}
	f.indent = min(f.lineIndent(i), maxIndent)
	f.base = f.indent
	f.write(strings.Repeat(" ", f.indent))
}

func opensBlock(e *elem) bool  { return e.kind == _Lbrace && e.role == blockBrace }
func closesBlock(e *elem) bool { return e.kind == _Rbrace && e.role == blockBrace }

// breakBefore decides whether a line ends before elem i: as in the source, but
// that statements do not share a line unless a block on one line holds them,
// and that { and else stand behind what they belong to.
func (f *formatter) breakBefore(i int) bool {
	e, prev := &f.elems[i], &f.elems[i-1]
	switch {
	case prev.class == lineCommentElem, prev.class == directiveElem, e.class == directiveElem:
		return true
	case e.pragma:
		return false
	case prev.pragma || e.class != tokenElem:
		return e.breaks > 0
	case prev.class == blockCommentElem:
		return e.breaks > 0
	case opensBlock(prev) && e.match == i-1, opensBlock(prev) && prev.match == i:
		return false
	case opensBlock(prev):
		return f.broken(i - 1)
	case closesBlock(e):
		return f.broken(i)
	case prev.kind == _Semi && !f.inParens() && f.blockBroken():
		return true
	case opensBlock(e) && joinsBrace(prev), e.kind == _Else && closesBlock(prev):
		return false
	case e.kind == _Semi || e.kind == _Comma:
		return false
	}
	return e.breaks > 0
}

// joinsBrace reports whether a { behind e continues e's line.
func joinsBrace(e *elem) bool {
	switch e.kind {
	case _Rparen, _Assign, _Gtr, _Else, _Apply, _Colon, _Rbrack, _Error, _MatchKind:
		return true
	}
	return isNameKind(e.kind)
}

// broken reports whether the block with a brace at elem i takes several lines.
func (f *formatter) broken(i int) bool {
	j := f.elems[i].match
	if j < 0 {
		return true
	}
	return f.ended[i] != f.ended[j]
}

func (f *formatter) inParens() bool {
	n := len(f.stack)
	return n > 0 && f.elems[f.stack[n-1].elem].kind != _Lbrace
}

// blockBroken reports whether the innermost block takes several lines.
func (f *formatter) blockBroken() bool {
	n := len(f.stack)
	return n == 0 || f.broken(f.stack[n-1].elem)
}

// lineIndent is the indentation of the line that elem i begins.
func (f *formatter) lineIndent(i int) int {
	e := &f.elems[i]
	n := len(f.stack)
	inside := 0
	if n > 0 {
		top := f.stack[n-1]
		if e.class == tokenElem && closes(f.elems[top.elem].kind, e.kind) {
			return top.base
		}
		inside = top.inside
		if f.elems[top.elem].role != blockBrace {
			return inside
		}
	}
	if e.kind == _Else && e.match >= 0 {
		return f.elems[e.match].indent
	}
	if head := f.headOf(i); head != nil {
		return head.indent + indentWidth
	}
	if f.continues(i) {
		return inside + indentWidth
	}
	return inside
}

// headOf is the if, else or for right before the statement that elem i
// begins, nil where there is none.
func (f *formatter) headOf(i int) *elem {
	prev := f.tokenBefore(i)
	switch {
	case prev == nil || opensBlock(&f.elems[i]):
		return nil
	case prev.kind == _Else:
		return prev
	case prev.kind != _Rparen || prev.match < 0:
		return nil
	}
	before := f.tokenBefore(prev.match)
	if before == nil || before.kind != _If && before.kind != _For {
		return nil
	}
	return before
}

// tokenBefore is the last token before elem i, nil where there is none or a
// directive comes in between.
func (f *formatter) tokenBefore(i int) *elem {
	for i--; i >= 0 && f.elems[i].class != directiveElem; i-- {
		if f.elems[i].class == tokenElem {
			return &f.elems[i]
		}
	}
	return nil
}

// continues reports whether the line that elem i begins goes on with the
// statement of the line before.
func (f *formatter) continues(i int) bool {
	e, prev := &f.elems[i], f.tokenBefore(i)
	if prev == nil {
		return false
	}
	if e.class == tokenElem && e.role != prefix && e.role != angle && !opensBlock(e) &&
		(e.kind >= _Not && e.kind <= _OrOr || isAssign(e.kind) || e.kind == _Dot && endsOperand(prev) ||
			e.kind == _Question || e.role == ternary) {
		return true
	}
	if prev.role == angle {
		return false
	}
	return prev.kind >= _Not && prev.kind <= _OrOr || isAssign(prev.kind) || prev.kind == _Question || prev.role == ternary
}

// open notes that elem i opens a bracket.
func (f *formatter) open(i int) {
	e := &f.elems[i]
	switch e.kind {
	case _Lparen, _Lbrack, _Lbrace:
	default:
		return
	}
	b := formatBracket{elem: i, base: f.base, inside: f.base + indentWidth}
	if e.role != blockBrace && i+1 < len(f.elems) && !f.breakBefore(i+1) {
		b.inside = f.col + 1 // align with what follows on this line
	}
	f.stack = append(f.stack, b)
}

// close notes that elem i closes a bracket: what follows on its line belongs
// to the statement that the bracket stands in.
func (f *formatter) close(i int) {
	n := len(f.stack) - 1
	switch e := &f.elems[i]; e.kind {
	case _Rparen, _Rbrack, _Rbrace:
		if n >= 0 && closes(f.elems[f.stack[n].elem].kind, e.kind) {
			f.base = f.stack[n].base
			f.stack = f.stack[:n]
		}
	}
}

// branch lets each branch of an #if start from the brackets open before it.
func (f *formatter) branch(e *elem) {
	switch directiveWord(e.text) {
	case "if", "ifdef", "ifndef":
		f.saved = append(f.saved, append([]formatBracket(nil), f.stack...))
	case "else", "elif", "elifdef", "elifndef":
		if n := len(f.saved); n > 0 {
			f.stack = append([]formatBracket(nil), f.saved[n-1]...)
		}
	case "endif":
		f.saved = f.saved[:max(0, len(f.saved)-1)]
	}
}

// writeComment writes a block comment, its later lines moved with the first:
// those that begin with a star stand below the first one.
func (f *formatter) writeComment(e *elem) {
	lines := strings.Split(e.text, "\n")
	start := f.col
	for i, line := range lines {
		line = strings.TrimRight(line, " \t\r")
		if i > 0 {
			f.newline()
			bare := strings.TrimLeft(line, " \t")
			switch {
			case bare == "":
				line = ""
			case bare[0] == '*':
				line = strings.Repeat(" ", start+1) + bare
			default:
				kept := max(0, len(line)-len(bare)-e.col)
				line = strings.Repeat(" ", start) + line[len(line)-len(bare)-kept:]
			}
		}
		f.write(line)
	}
}

// spaceBefore decides whether a space separates elem i from the one before it
// on the same line.
func (f *formatter) spaceBefore(i int) bool {
	l, r := &f.elems[i-1], &f.elems[i]
	switch {
	case r.class != tokenElem:
		return l.class != tokenElem || l.kind != _Lparen
	case l.class != tokenElem:
		return r.kind != _Rparen && r.kind != _Comma && r.kind != _Semi
	}
	if l.kind == _Gtr && r.kind == _Gtr && !r.space && r.breaks == 0 {
		return false // >> might be a shift
	}
	return wantsSpace(l, r) || runTogether(l.text, r.text) && !(l.kind == _Gtr && r.kind == _Gtr)
}

// wantsSpace is the house style between two tokens.
func wantsSpace(l, r *elem) bool {
	switch { // what holds to its left or right
	case l.kind == _Illegal || r.kind == _Illegal || l.kind == _Hash || r.kind == _Hash || l.kind == _Backslash || r.kind == _Backslash:
		return r.space
	case l.kind == _At:
		return r.space && r.text == "pragma"
	case l.free && r.free && l.kind != _Comma && r.kind != _Comma:
		return r.space || r.breaks > 0
	case r.kind == _Comma, r.kind == _Semi, r.kind == _Rparen, r.kind == _Rbrack, r.kind == _PlusColon,
		l.kind == _Lparen, l.kind == _Lbrack, l.kind == _PlusColon:
		return false
	case l.role == prefix, l.role == castParen, l.role == sliceColon, r.role == sliceColon:
		return false
	case r.role == angle:
		return false
	case l.role == angle && l.kind == _Lss:
		return false
	case l.role == exprBrace && l.kind == _Lbrace, r.role == exprBrace && r.kind == _Rbrace:
		return false
	case l.role == blockBrace && l.kind == _Lbrace && r.kind == _Rbrace:
		return false
	case r.kind == _Colon:
		return r.role == ternary
	case l.kind == _Dot:
		return false
	case r.kind == _Dot:
		return !endsOperand(l) && l.role != angle && l.kind != _Error
	case r.kind == _Lparen:
		return !callsOrDeclares(l)
	case r.kind == _Lbrack:
		return !endsOperand(l) && l.role != angle && !beginsType(l.kind)
	}
	return true
}

// callsOrDeclares reports whether a ( behind e holds arguments or parameters.
func callsOrDeclares(e *elem) bool {
	switch e.kind {
	case _Rparen, _Rbrack, _Select:
		return true
	}
	return e.role == angle || isNameKind(e.kind) || beginsType(e.kind) || e.kind >= _Abstract && e.kind != _If &&
		e.kind != _Switch && e.kind != _For && e.kind != _Return && e.kind != _In && e.kind != _Else && e.kind != _Transition
}
