package format

import (
	"strings"
	"unicode/utf8"

	"github.com/p4lb/p4lb/internal/p4/syntax"
	"github.com/p4lb/p4lb/internal/p4/token"
)

const (
	indentWidth = 4
	maxIndent   = 240 // limit of the indentation, at any nesting depth
)

// A bracket is a bracket that is open at the current position of the output.
type bracket struct {
	elem   int
	base   int // the indentation of the statement that contains it
	inside int // the indentation of lines inside it
}

// layout writes all elems.
func (f *formatter) layout() {
	f.ended, f.before = make([]int, len(f.elems)), make([]int, len(f.elems)+1)
	f.before[0] = -1
	for i := range f.elems {
		switch f.elems[i].Class {
		case syntax.TokenElement:
			f.before[i+1] = i
		case syntax.Directive:
			f.before[i+1] = -1
		default:
			f.before[i+1] = f.before[i]
		}
	}
	for i := 1; i < len(f.elems); i++ {
		e := &f.elems[i]
		f.ended[i] = f.ended[i-1]
		if e.Breaks > 0 || e.Class == syntax.Directive {
			f.ended[i]++
		}
	}
	for i := range f.elems {
		e := &f.elems[i]
		if i > 0 {
			f.separate(i)
		}
		switch e.Class {
		case syntax.Directive:
			if i == len(f.elems)-1 {
				f.write(ended(e.Text))
			} else {
				f.write(e.Text)
			}
			f.stack = f.saved.at(e.Text, f.stack)
		case syntax.BlockComment:
			f.writeComment(e)
		default:
			e.indent = f.base
			f.open(i)
			f.write(e.Text)
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

// separate writes the white space between elem i and the one before it.
func (f *formatter) separate(i int) {
	e, prev := &f.elems[i], &f.elems[i-1]
	if !f.breakBefore(i) {
		// The next text on this line is aligned with the neighbouring lines.
		if e.role == fieldName || e.Class == syntax.LineComment {
			p := alignPoint{f.line, f.col, f.out.Len(), e.Class == syntax.LineComment}
			f.points = append(f.points, p)
		}
		if f.spaceBefore(i) {
			f.write(" ")
		}
		return
	}
	f.newline()
	if e.Breaks > 1 && !opensBlock(prev) && !closesBlock(e) {
		f.newline()
	}
	if e.Class == syntax.Directive {
		return
	}
	f.indent = min(f.lineIndent(i), maxIndent)
	f.base = f.indent
	f.write(strings.Repeat(" ", f.indent))
}

func opensBlock(e *elem) bool  { return e.Kind == token.Lbrace && e.role == blockBrace }
func closesBlock(e *elem) bool { return e.Kind == token.Rbrace && e.role == blockBrace }

// breakBefore decides whether a line ends before elem i. It follows the source with
// two exceptions: only statements in a one-line block share a line, and { and else
// stay on the line of their statement.
func (f *formatter) breakBefore(i int) bool {
	e, prev := &f.elems[i], &f.elems[i-1]
	switch {
	case prev.Class == syntax.LineComment, prev.Class == syntax.Directive, e.Class == syntax.Directive:
		return true
	case e.pragma:
		return false
	case prev.pragma || e.Class != syntax.TokenElement || prev.Class == syntax.BlockComment:
		return e.Breaks > 0
	case opensBlock(prev) && e.match == i-1, opensBlock(prev) && prev.match == i:
		return false
	case opensBlock(prev):
		return f.broken(i - 1)
	case closesBlock(e):
		return f.broken(i)
	case prev.Kind == token.Semi && !f.inParens() && f.blockBroken():
		return true
	case opensBlock(e) && joinsBrace(prev), e.Kind == token.Else && closesBlock(prev):
		return false
	case e.Kind == token.Semi || e.Kind == token.Comma:
		return false
	}
	return e.Breaks > 0
}

// joinsBrace reports whether a { after e stays on e's line.
func joinsBrace(e *elem) bool {
	switch e.Kind {
	case token.Rparen, token.Assign, token.Gtr, token.Else, token.Apply, token.Colon, token.Rbrack, token.Error, token.MatchKind:
		return true
	}
	return e.Kind.IsName()
}

// broken reports whether the block with a brace at elem i spans several lines.
func (f *formatter) broken(i int) bool {
	j := f.elems[i].match
	if j < 0 {
		return true
	}
	return f.ended[i] != f.ended[j]
}

func (f *formatter) inParens() bool {
	n := len(f.stack)
	return n > 0 && f.elems[f.stack[n-1].elem].Kind != token.Lbrace
}

// blockBroken reports whether the innermost block spans several lines.
func (f *formatter) blockBroken() bool {
	n := len(f.stack)
	return n == 0 || f.broken(f.stack[n-1].elem)
}

// lineIndent returns the indentation of the line that starts with elem i.
func (f *formatter) lineIndent(i int) int {
	e := &f.elems[i]
	n := len(f.stack)
	inside := 0
	if n > 0 {
		top := f.stack[n-1]
		if e.Class == syntax.TokenElement && closes(f.elems[top.elem].Kind, e.Kind) {
			return top.base
		}
		inside = top.inside
		if f.elems[top.elem].role != blockBrace {
			return inside
		}
	}
	if e.Kind == token.Else && e.match >= 0 {
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

// headOf returns the if, else or for directly before the statement that starts with
// elem i, or nil if there is none.
func (f *formatter) headOf(i int) *elem {
	prev := f.tokenBefore(i)
	switch {
	case prev == nil || opensBlock(&f.elems[i]):
		return nil
	case prev.Kind == token.Else:
		return prev
	case prev.Kind != token.Rparen || prev.match < 0:
		return nil
	}
	before := f.tokenBefore(prev.match)
	if before == nil || before.Kind != token.If && before.Kind != token.For {
		return nil
	}
	return before
}

// tokenBefore returns the last token before elem i. It returns nil if there is none
// or if a directive lies in between.
func (f *formatter) tokenBefore(i int) *elem {
	if i = f.before[i]; i < 0 {
		return nil
	}
	return &f.elems[i]
}

// continues reports whether the line that starts with elem i continues the
// statement of the line before.
func (f *formatter) continues(i int) bool {
	e, prev := &f.elems[i], f.tokenBefore(i)
	if prev == nil {
		return false
	}
	if e.Class == syntax.TokenElement && e.role != prefix && e.role != angle && !opensBlock(e) &&
		(e.Kind >= token.Not && e.Kind <= token.OrOr || e.Kind.IsAssign() || e.Kind == token.Dot && endsOperand(prev) ||
			e.Kind == token.Question || e.role == ternary) {
		return true
	}
	if prev.role == angle {
		return false
	}
	return prev.Kind >= token.Not && prev.Kind <= token.OrOr || prev.Kind.IsAssign() || prev.Kind == token.Question || prev.role == ternary
}

// open records that elem i opens a bracket.
func (f *formatter) open(i int) {
	e := &f.elems[i]
	switch e.Kind {
	case token.Lparen, token.Lbrack, token.Lbrace:
	default:
		return
	}
	b := bracket{elem: i, base: f.base, inside: f.base + indentWidth}
	if e.role != blockBrace && i+1 < len(f.elems) && !f.breakBefore(i+1) {
		b.inside = f.col + 1 // align with the text after the bracket on this line
	}
	if f.stack = append(f.stack, b); len(f.stack) > maxDepth && f.deep == 0 {
		f.deep = e.Line
	}
}

// close records that elem i closes a bracket. The rest of its line belongs to the
// statement around the bracket.
func (f *formatter) close(i int) {
	n := len(f.stack) - 1
	switch e := &f.elems[i]; e.Kind {
	case token.Rparen, token.Rbrack, token.Rbrace:
		if n >= 0 && closes(f.elems[f.stack[n].elem].Kind, e.Kind) {
			f.base = f.stack[n].base
			f.stack = f.stack[:n]
		}
	}
}

// writeComment writes a block comment and shifts its later lines together with the
// first. Lines that begin with a star are aligned below the first one.
func (f *formatter) writeComment(e *elem) {
	lines := strings.Split(e.Text, "\n")
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
				kept := max(0, len(line)-len(bare)-e.Col)
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
	case r.Class != syntax.TokenElement:
		return l.Class != syntax.TokenElement || l.Kind != token.Lparen
	case l.Class != syntax.TokenElement:
		return r.Kind != token.Rparen && r.Kind != token.Comma && r.Kind != token.Semi
	}
	if l.Kind == token.Gtr && r.Kind == token.Gtr && !r.Space && r.Breaks == 0 {
		return false // >> might be a shift
	}
	return wantsSpace(l, r) || token.RunTogether(l.Text, r.Text) && !(l.Kind == token.Gtr && r.Kind == token.Gtr)
}

// wantsSpace reports whether the style has a space between two tokens.
func wantsSpace(l, r *elem) bool {
	switch { // no space on one side
	case l.Kind == token.Illegal || r.Kind == token.Illegal || l.Kind == token.Hash || r.Kind == token.Hash || l.Kind == token.Backslash || r.Kind == token.Backslash:
		return r.Space
	case l.Kind == token.At:
		return r.Space && r.Text == "pragma"
	case l.free && r.free && l.Kind != token.Comma && r.Kind != token.Comma:
		return r.Space || r.Breaks > 0
	case r.Kind == token.Comma, r.Kind == token.Semi, r.Kind == token.Rparen, r.Kind == token.Rbrack, r.Kind == token.PlusColon,
		l.Kind == token.Lparen, l.Kind == token.Lbrack, l.Kind == token.PlusColon:
		return false
	case l.role == prefix, l.role == castParen, l.role == sliceColon, r.role == sliceColon,
		r.role == angle, l.role == angle && l.Kind == token.Lss,
		l.role == exprBrace && l.Kind == token.Lbrace, r.role == exprBrace && r.Kind == token.Rbrace,
		l.role == blockBrace && l.Kind == token.Lbrace && r.Kind == token.Rbrace:
		return false
	case r.Kind == token.Colon:
		return r.role == ternary
	case l.Kind == token.Dot:
		return false
	case r.Kind == token.Dot:
		return !endsOperand(l) && l.role != angle && l.Kind != token.Error
	case r.Kind == token.Lparen:
		return !callsOrDeclares(l)
	case r.Kind == token.Lbrack:
		return !endsOperand(l) && l.role != angle && !l.Kind.BeginsType()
	}
	return true
}

// callsOrDeclares reports whether a ( after e holds arguments or parameters.
func callsOrDeclares(e *elem) bool {
	switch e.Kind {
	case token.Rparen, token.Rbrack, token.Select:
		return true
	}
	return e.role == angle || e.Kind.IsName() || e.Kind.BeginsType() || e.Kind >= token.Abstract && e.Kind != token.If &&
		e.Kind != token.Switch && e.Kind != token.For && e.Kind != token.Return && e.Kind != token.In && e.Kind != token.Else && e.Kind != token.Transition
}
