// Package format formats P4 programs, as gofmt does Go programs.
package format

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/p4lb/p4lb/internal/p4/syntax"
	"github.com/p4lb/p4lb/internal/text/lists"
)

// Format formats a program. It changes white space only: comments, directives and
// macros stay in place, and so do line breaks and the single blank lines that group
// the text. It sets indentation and spaces.
//
// Format works on tokens, because text before preprocessing need not parse. It
// tells types from comparisons by the tokens around them; a wrong guess costs only
// odd spaces. As a last check it scans and formats the result again. The result
// must have the same tokens, comments and directives and must not change any more.
// Otherwise Format returns an error.
func Format(src []byte, name string) ([]byte, error) {
	elems, err := cut(name, string(src))
	if err != nil {
		return nil, err
	}
	for range maxLayouts {
		f := &formatter{elems: elems}
		f.resolve()
		f.layout()
		if f.deep > 0 {
			return nil, fmt.Errorf("%s:%d: nests more than %d deep; the file is unchanged", name, f.deep, maxDepth)
		}
		out := f.align()
		if bytes.Equal(out, src) {
			return out, nil
		}
		again, err := cut(name, string(out))
		if err != nil {
			return nil, fmt.Errorf("formatting %s would break it: %w", name, err)
		}
		if i := differ(elems, again); i >= 0 {
			line := 1
			if i < len(elems) {
				line = elems[i].Line
			}
			return nil, fmt.Errorf("formatting %s would change line %d; the file is unchanged", name, line)
		}
		src, elems = out, again
	}
	return nil, fmt.Errorf("formatting %s does not end; the file is unchanged", name)
}

// maxLayouts bounds the passes until the text no longer changes. A program needs
// two; text that does not parse may need more.
const maxLayouts = 8

// maxDepth bounds the open brackets. The compiler has the same limit, and each
// bracket indents its lines.
const maxDepth = 1000

// An elem is an element of the text: a token, comment or directive.
type elem struct {
	syntax.Element
	role   role
	match  int  // the matching bracket, or the if of an else; -1 if there is none
	indent int  // indentation of the statement that contains it
	pragma bool // on the line of an @pragma, which ends with the line
	free   bool // in the body of an annotation, where the original spaces are kept
}

// A role is the function of a token whose kind alone does not determine it.
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

// cut splits a text into elements.
func cut(name, text string) ([]elem, error) {
	list, errs := syntax.Elements(name, text)
	if err := errs.Err(); err != nil {
		return nil, err
	}
	elems := lists.Map(list, func(e syntax.Element) elem { return elem{Element: e, match: -1} })
	return elems, nil
}

// differ returns the index of the first elem in which two texts differ by more than
// layout, or -1.
func differ(a, b []elem) int {
	for i := range a {
		if i >= len(b) || a[i].Class != b[i].Class || a[i].Kind != b[i].Kind || !sameText(&a[i], &b[i]) {
			return i
		}
		if i > 0 && (a[i].pragma || a[i-1].pragma) && (a[i].Breaks > 0) != (b[i].Breaks > 0) {
			return i
		}
	}
	if len(b) > len(a) {
		return len(a)
	}
	return -1
}

// ended returns a directive without a backslash at its end. At the end of a file,
// the backslash continues no line; if Format appended a line end, it would.
func ended(directive string) string { return strings.TrimRight(directive, "\\ \t\r\n") }

// sameText compares the texts of two elems. It ignores the indentation in block
// comments.
func sameText(a, b *elem) bool {
	if a.Class == syntax.Directive {
		return ended(a.Text) == ended(b.Text)
	}
	if a.Class != syntax.BlockComment || a.Text == b.Text {
		return a.Text == b.Text
	}
	return slices.EqualFunc(strings.Split(a.Text, "\n"), strings.Split(b.Text, "\n"), func(x, y string) bool {
		return strings.TrimSpace(x) == strings.TrimSpace(y)
	})
}

// A formatter holds the state of formatting one text.
type formatter struct {
	elems  []elem
	toks   []int // indices of the elems that are tokens
	types  map[string]bool
	angles []angleList // for each < token
	ended  []int       // for each elem, the number of lines that end before it
	before []int       // for each elem, the token before it; -1 after a directive
	deep   int         // the first line that is nested too deeply
	out    bytes.Buffer

	stack  []bracket
	saved  branches[bracket]
	points []alignPoint
	line   int // lines written
	col    int // characters written on this line
	base   int // indentation of the statement being written
	indent int // indentation of the line being written
}

// An alignPoint is a position in the output that is aligned with the lines above
// and below: the name of a field, or a comment after code.
type alignPoint struct {
	line, col int
	offset    int // in the output
	comment   bool
}

// maxAlign bounds how far a point moves to be aligned with its neighbours.
const maxAlign = 32

// align inserts the spaces that align the recorded points.
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

// alignGroups pads the points of one sort. Points on consecutive lines form a group
// if their columns do not differ too much.
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
