package syntax

import (
	"strings"

	"github.com/p4lb/p4lb/internal/p4/token"
)

// An Element is a part of a text before preprocessing: a token, a comment or a
// directive, with its position.
type Element struct {
	Class  ElementClass
	Kind   token.Kind
	Text   string
	Breaks int  // line breaks before the element
	Space  bool // white space before the element
	Line   int
	Col    int // bytes before the element on its line
}

// An ElementClass is the class of an element.
type ElementClass uint8

// The classes of elements.
const (
	TokenElement ElementClass = iota
	LineComment               // also a line with a quotation mark that is not closed within its conditional group
	BlockComment
	Directive
)

// Elements cuts text into elements. The elements and the white space between them
// are the whole text. Use the result only if there are no errors other than
// warnings.
func Elements(name, text string) ([]Element, Errors) {
	var errs Errors
	l := &elementScanner{scanner: newScanner(newSource(name, text, Pos{}), errs.add)}
	for l.one() {
	}
	return l.list, errs
}

// An elementScanner collects elements. The scanner skips comments, so the
// elementScanner reads the skipped text again to find them.
type elementScanner struct {
	*scanner
	list []Element
	at   int // end of the text collected so far
	line int
	bol  int // start of the line that contains at
	open int // number of enclosing conditional groups
}

// one collects one token and the comments before it.
func (l *elementScanner) one() bool {
	var t Token
	l.next(&t)
	start := l.from
	e := Element{Kind: t.Kind, Text: l.text[start:l.off]}
	if (t.Kind == token.Hash || t.Kind == token.HashHash) && t.flag&bol != 0 {
		l.skipLine()
		e.Class = Directive
		e.Text = trimmed(l.text[start:l.off])
		l.group(e.Text)
	}
	if t.Kind == token.String && l.apart {
		e.Class = LineComment
	}
	breaks, space := l.gap(start)
	if t.Kind == token.EOF {
		return false
	}
	e.Breaks, e.Space = breaks, space
	l.add(e, start, l.off)
	return true
}

// group counts the conditional groups that a directive opens or closes. Text in
// skipped groups need not be valid.
func (l *elementScanner) group(directive string) {
	name := strings.TrimLeft(directive, "# \t")
	switch {
	case strings.HasPrefix(name, "if"):
		l.open++
	case strings.HasPrefix(name, "endif"):
		l.open = max(0, l.open-1)
	}
	l.inGroup = l.open > 0
}

// add appends e, which covers the text from start to end.
func (l *elementScanner) add(e Element, start, end int) {
	e.Line, e.Col = l.line+1, start-l.bol
	l.list = append(l.list, e)
	l.advance(start, end)
}

func (l *elementScanner) advance(start, end int) {
	if n := strings.Count(l.text[start:end], "\n"); n > 0 {
		l.line += n
		l.bol = start + strings.LastIndexByte(l.text[start:end], '\n') + 1
	}
	l.at = end
}

// trimmed removes the blanks at the end of a comment or directive. It keeps one
// blank after a backslash, which would otherwise continue the line.
func trimmed(text string) string {
	bare := strings.TrimRight(text, " \t\r")
	if len(bare) < len(text) && strings.HasSuffix(bare, `\`) {
		return bare + " "
	}
	return bare
}

// gap collects the comments between the last element and offset end. It returns the
// number of line breaks after the last comment.
func (l *elementScanner) gap(end int) (breaks int, space bool) {
	for l.at < end {
		rest := l.text[l.at:end]
		switch {
		case rest[0] == '\n':
			breaks++
			l.advance(l.at, l.at+1)
			space = true
			continue
		case strings.HasPrefix(rest, "//"):
			n := lineCommentLen(rest)
			l.add(Element{Class: LineComment, Text: trimmed(rest[:n]), Breaks: breaks, Space: space}, l.at, l.at+n)
		case strings.HasPrefix(rest, "/*"):
			n := len(rest)
			if i := strings.Index(rest[2:], "*/"); i >= 0 {
				n = i + 4
			}
			l.add(Element{Class: BlockComment, Text: rest[:n], Breaks: breaks, Space: space}, l.at, l.at+n)
		default:
			l.advance(l.at, l.at+1)
			space = true
			continue
		}
		breaks, space = 0, false
	}
	return breaks, space
}

// lineCommentLen returns the length of the comment at the start of text, including
// lines continued by a backslash.
func lineCommentLen(text string) int {
	end := 0
	for {
		n := strings.IndexByte(text[end:], '\n')
		if n < 0 {
			return len(text)
		}
		line := strings.TrimSuffix(text[end:end+n], "\r")
		end += n
		if !strings.HasSuffix(line, "\\") {
			return end
		}
		end++
	}
}
