package syntax

import (
	"cmp"
	"fmt"
	"strings"
	"sync"
)

// A source is a text to which positions refer: a file, an included file, or a file
// renamed by #line.
type source struct {
	Name string

	text string
	from Pos     // the position of the #include of this text
	root *source // the source before #line renamed it; otherwise the source itself
	base uint32  // the number (modulo 2^32) that #line adds to line numbers

	once   sync.Once
	starts []int32 // offsets of the lines in the root's text, computed on first use
}

func newSource(name, text string, from Pos) *source {
	s := &source{Name: name, text: text, from: from}
	s.root = s
	return s
}

// renamed returns the same text under the name and line number of a #line
// directive.
func (s *source) renamed(name string, base uint32) *source {
	return &source{Name: name, text: s.text, from: s.from, root: s.root, base: base}
}

// line returns the physical line n (from 1) without its end, or "" if there is none.
func (s *source) line(n uint32) string {
	r := s.root
	r.once.Do(func() {
		for at := 0; at < len(r.text); at += lineLen(r.text[at:]) {
			r.starts = append(r.starts, int32(at))
		}
	})
	if n < 1 || int64(n) > int64(len(r.starts)) {
		return ""
	}
	text := r.text[r.starts[n-1]:]
	return strings.TrimRight(text[:lineLen(text)], "\r\n")
}

// lineLen returns the length of the first line of text, including its newline.
func lineLen(text string) int {
	if i := strings.IndexByte(text, '\n'); i >= 0 {
		return i + 1
	}
	return len(text)
}

// A Pos is a position in a Source; the zero Pos is unknown.
type Pos struct {
	src       *source
	line, col uint32
}

// IsKnown reports whether the position is known.
func (p Pos) IsKnown() bool { return p.src != nil }

// File returns the name of the source.
func (p Pos) File() string {
	if p.src == nil {
		return ""
	}
	return p.src.Name
}

// Line returns the line, counted from 1.
func (p Pos) Line() int { return int(p.line) }

// Col returns the column in bytes, counted from 1.
func (p Pos) Col() int { return int(p.col) }

func (p Pos) String() string {
	if p.src == nil {
		return "-"
	}
	return fmt.Sprintf("%s:%d:%d", p.src.Name, p.line, p.col)
}

// sourceLine returns the line of text that contains the position.
func (p Pos) sourceLine() string {
	if p.src == nil {
		return ""
	}
	return p.src.line(p.physical())
}

func (p Pos) physical() uint32 { return p.line - p.src.base }

// includedFrom returns the position of the #include of this file. It is unknown in
// the main file.
func (p Pos) includedFrom() Pos {
	if p.src == nil {
		return Pos{}
	}
	return p.src.from
}

func (p Pos) depth() int {
	n := 0
	for p = p.includedFrom(); p.IsKnown(); p = p.includedFrom() {
		n++
	}
	return n
}

// compare orders positions as in the preprocessed text: an included file comes at
// its #include. Unknown positions come first.
func (p Pos) compare(q Pos) int {
	if p.src == nil || q.src == nil {
		return btoi(p.src != nil) - btoi(q.src != nil)
	}
	pd, qd := p.depth(), q.depth()
	tie := pd - qd
	for ; pd > qd; pd-- {
		p = p.src.from
	}
	for ; qd > pd; qd-- {
		q = q.src.from
	}
	for p.src.root != q.src.root && p.src.from.IsKnown() && q.src.from.IsKnown() {
		p, q = p.src.from, q.src.from
	}
	if p.src.root != q.src.root {
		return tie // one of the two is a command-line option
	}
	return cmp.Or(cmp.Compare(p.physical(), q.physical()), cmp.Compare(p.col, q.col), tie)
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}
