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

// Format formats a program and changes nothing but white space: it keeps comments,
// directives and macros in their places, and line breaks and single blank lines that
// group the text. It sets indentation and spaces.
//
// It works on tokens, because text before preprocessing need not parse, and
// distinguishes types from comparisons by the tokens around them. If that goes
// wrong, spaces look odd. As a last check it scans and formats the result again: it
// must have the same tokens, comments and directives, and formatting must not change
// it any more. Otherwise Format returns an error.
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

// maxLayouts bounds the passes until a text no longer changes. A program needs two;
// a text that does not parse may need more.
const maxLayouts = 8

// maxDepth is how many brackets may be open: the compiler takes no more, and each
// line is indented by them.
const maxDepth = 1000

// An elem is what Format moves around.
type elem struct {
	syntax.Element
	role   role
	match  int  // the other bracket, or the if of an else; -1 where there is none
	indent int  // of the statement that it is written in
	pragma bool // on the line of an @pragma, which ends with the line
	free   bool // in the body of an annotation, which has spaces of its own
}

// A role is the function of a token, if its kind leaves that open.
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

// cut takes a text apart.
func cut(name, text string) ([]elem, error) {
	list, errs := syntax.Elements(name, text)
	if err := errs.Err(); err != nil {
		return nil, err
	}
	elems := lists.Map(list, func(e syntax.Element) elem { return elem{Element: e, match: -1} })
	return elems, nil
}

// differ is the first elem in which two texts differ by more than layout, or -1.
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

// ended is a directive that ends a text: it goes on behind a backslash only where
// there is another line, which Format would give it.
func ended(directive string) string { return strings.TrimRight(directive, "\\ \t\r\n") }

// sameText compares texts, of block comments without their indentation.
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

// A formatter holds one text on its way through Format.
type formatter struct {
	elems  []elem
	toks   []int // the elems that are tokens
	types  map[string]bool
	angles []angleList // for each token that is a <
	ended  []int       // for each elem, how many lines end before it
	before []int       // for each elem, the token before it; -1 behind a directive
	deep   int         // the first line that nests too deeply
	out    bytes.Buffer

	stack  []bracket
	saved  branches[bracket]
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
