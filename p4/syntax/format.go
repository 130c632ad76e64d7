package syntax

import (
	"bytes"
	"fmt"
	"strings"
)

// Format lays the text of a program out anew and changes nothing else: it
// keeps comments, directives and macros where they are, line breaks and single
// blank lines as they group the text, and sets indentation and spaces.
//
// It works on tokens, because text before preprocessing need not parse, and
// tells types from comparisons by what surrounds them. Where that misleads it,
// spaces look odd. As a last check the result is scanned and laid out again: it
// must have the same tokens, comments and directives, and come to rest, so that
// formatting twice changes nothing more. Else Format refuses.
func Format(src []byte, name string) ([]byte, error) {
	elems, errs := formatElems(name, string(src))
	if err := errs.Err(); err != nil {
		return nil, err
	}
	for range maxLayouts {
		f := &formatter{elems: elems}
		f.resolve()
		f.layout()
		out := f.align()
		again, errs := formatElems(name, string(out))
		if err := errs.Err(); err != nil {
			return nil, fmt.Errorf("formatting %s would break it: %w", name, err)
		}
		if i := differ(elems, again); i >= 0 {
			line := 1
			if i < len(elems) {
				line = elems[i].line
			}
			return nil, fmt.Errorf("formatting %s would change line %d; it is left as it is", name, line)
		}
		if bytes.Equal(out, src) {
			return out, nil
		}
		src, elems = out, again
	}
	return nil, fmt.Errorf("formatting %s comes to no end; it is left as it is", name)
}

// maxLayouts is how often a text may be laid out until nothing changes. A
// program needs two, one that does not parse sometimes more.
const maxLayouts = 8

// An elem is what Format moves around: a token, a comment or a directive.
type elem struct {
	class  elemClass
	kind   Kind
	text   string
	breaks int  // line breaks before it
	space  bool // white space before it
	line   int
	col    int // bytes before it on its line
	role   role
	match  int  // the other bracket, or the if of an else; -1 where there is none
	indent int  // of the statement that it is written in
	pragma bool // on the line of an @pragma, whose end is part of it
	free   bool // in the body of an annotation, which has spaces of its own
}

type elemClass uint8

const (
	tokenElem elemClass = iota
	lineCommentElem
	blockCommentElem
	directiveElem
)

// A role is what a token does where its kind leaves it open.
type role uint8

const (
	noRole     role = iota
	angle           // < or > around type arguments
	prefix          // unary operator
	castParen       // ) of a cast
	ternary         // : of ?:
	sliceColon      // : of [hi:lo]
	blockBrace      // { or } around declarations or statements
	exprBrace       // { or } around values
	fieldName       // of a struct
)

// formatElems cuts text into elems.
func formatElems(name, text string) ([]elem, Errors) {
	var errs Errors
	l := &elemScanner{scanner: newScanner(newSource(name, text, Pos{}), errs.add)}
	for l.one() {
	}
	return l.elems, errs
}

// An elemScanner collects elems; what the scanner skips is read again for
// its comments.
type elemScanner struct {
	*scanner
	elems []elem
	at    int // up to where the text has been collected
	line  int
	bol   int // where that line begins
}

// one collects one token with the comments before it.
func (l *elemScanner) one() bool {
	var t Token
	l.next(&t)
	start := l.from
	e := elem{kind: t.Kind, text: l.text[start:l.off], match: -1}
	if (t.Kind == _Hash || t.Kind == _HashHash) && t.flag&bol != 0 {
		l.skipLine()
		e.class = directiveElem
		e.text = strings.TrimRight(l.text[start:l.off], " \t\r")
	}
	breaks, space := l.gap(start)
	if t.Kind == _EOF {
		return false
	}
	e.breaks, e.space = breaks, space
	l.add(e, start, l.off)
	return true
}

// add appends e, which takes the text from start to end.
func (l *elemScanner) add(e elem, start, end int) {
	e.line, e.col = l.line+1, start-l.bol
	l.elems = append(l.elems, e)
	l.advance(start, end)
}

func (l *elemScanner) advance(start, end int) {
	if n := strings.Count(l.text[start:end], "\n"); n > 0 {
		l.line += n
		l.bol = start + strings.LastIndexByte(l.text[start:end], '\n') + 1
	}
	l.at = end
}

// gap collects the comments between the last elem and offset end, and returns
// the line breaks behind the last of them.
func (l *elemScanner) gap(end int) (breaks int, space bool) {
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
			text := strings.TrimRight(rest[:n], " \t\r")
			l.add(elem{class: lineCommentElem, text: text, breaks: breaks, space: space, match: -1}, l.at, l.at+n)
		case strings.HasPrefix(rest, "/*"):
			n := len(rest)
			if i := strings.Index(rest[2:], "*/"); i >= 0 {
				n = i + 4
			}
			l.add(elem{class: blockCommentElem, text: rest[:n], breaks: breaks, space: space, match: -1}, l.at, l.at+n)
		default:
			l.advance(l.at, l.at+1)
			space = true
			continue
		}
		breaks, space = 0, false
	}
	return breaks, space
}

// lineCommentLen is the length of the comment that text starts with, over
// lines that end in a backslash.
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

// differ is the first elem in which two texts differ by more than layout, or -1.
func differ(a, b []elem) int {
	for i := range a {
		if i >= len(b) || a[i].class != b[i].class || a[i].kind != b[i].kind || !sameText(&a[i], &b[i]) {
			return i
		}
		if i > 0 && (a[i].pragma || a[i-1].pragma) && (a[i].breaks > 0) != (b[i].breaks > 0) {
			return i
		}
	}
	if len(b) > len(a) {
		return len(a)
	}
	return -1
}

// sameText compares texts, of block comments without their indentation.
func sameText(a, b *elem) bool {
	if a.class != blockCommentElem || a.text == b.text {
		return a.text == b.text
	}
	al, bl := strings.Split(a.text, "\n"), strings.Split(b.text, "\n")
	if len(al) != len(bl) {
		return false
	}
	for i := range al {
		if strings.TrimSpace(al[i]) != strings.TrimSpace(bl[i]) {
			return false
		}
	}
	return true
}

// A formatter holds one text on its way through Format.
type formatter struct {
	elems  []elem
	toks   []int // the elems that are tokens
	types  map[string]bool
	angles []angleList // for each token that is a <
	ended  []int       // for each elem, how many lines end before it
	out    bytes.Buffer

	stack  []formatBracket
	saved  [][]formatBracket // the stack at each #if
	points []alignPoint
	line   int // lines written
	col    int // characters written on this line
	base   int // indentation of the statement being written
	indent int // indentation of the line being written
}

// An alignPoint is a place in the text written so far that lines up with its
// like on the lines above and below: the name of a field, or a comment behind
// the code of its line.
type alignPoint struct {
	line, col int
	offset    int // in the text
	comment   bool
}

// maxAlign bounds how far a point moves to line up with its neighbours.
const maxAlign = 32

// alignHere notes that elem e, which is written next on the current line,
// lines up with its like.
func (f *formatter) alignHere(e *elem) {
	if e.role == fieldName || e.class == lineCommentElem {
		p := alignPoint{f.line, f.col, f.out.Len(), e.class == lineCommentElem}
		f.points = append(f.points, p)
	}
}

// align inserts the spaces that make the noted points line up.
func (f *formatter) align() []byte {
	pads := make([]int, len(f.points))
	for _, comment := range []bool{false, true} {
		f.alignGroups(comment, pads)
	}
	text := f.out.Bytes()
	var out strings.Builder
	at := 0
	for i, p := range f.points {
		out.Write(text[at:p.offset])
		out.WriteString(strings.Repeat(" ", pads[i]))
		at = p.offset
	}
	out.Write(text[at:])
	return []byte(out.String())
}

// alignGroups pads the points of one sort. Points on lines in a row are a
// group, as long as their columns do not differ too much.
func (f *formatter) alignGroups(comment bool, pads []int) {
	var group []int
	lo, hi := 0, 0
	flush := func() {
		for _, i := range group {
			pads[i] = hi - f.points[i].col
		}
		group = group[:0]
	}
	for i := range f.points {
		p := &f.points[i]
		if p.comment != comment {
			continue
		}
		if i > 0 && f.points[i-1].line == p.line {
			p.col += pads[i-1] // the field before the comment has moved
		}
		if n := len(group); n > 0 && (f.points[group[n-1]].line+1 != p.line || max(hi, p.col)-min(lo, p.col) > maxAlign) {
			flush()
		}
		if len(group) == 0 {
			lo, hi = p.col, p.col
		}
		lo, hi = min(lo, p.col), max(hi, p.col)
		group = append(group, i)
	}
	flush()
}
