package syntax

import (
	"cmp"
	"fmt"
	"strings"
	"sync"
)

// A Source is one text that positions point into: a file, an include, or a
// file renamed by #line.
type Source struct {
	Name string

	text string
	from Pos     // the #include that brought the text in
	root *Source // the source as it was before #line renamed it; itself otherwise
	base uint32  // what #line adds (modulo 2^32) to a line of text to give the line shown

	once   sync.Once
	starts []int32 // of the lines of the root's text, once one has been asked for
}

func newSource(name, text string, from Pos) *Source {
	s := &Source{Name: name, text: text, from: from}
	s.root = s
	return s
}

// renamed is the same text under the name and line numbers of a #line.
func (s *Source) renamed(name string, base uint32) *Source {
	return &Source{Name: name, text: s.text, from: s.from, root: s.root, base: base}
}

// line returns the physical line n (from 1) without its end, or "" if there is none.
func (s *Source) line(n uint32) string {
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

// lineLen is the length of the first line of text with its newline.
func lineLen(text string) int {
	if i := strings.IndexByte(text, '\n'); i >= 0 {
		return i + 1
	}
	return len(text)
}

// A Pos is a place in a Source; the zero Pos is unknown.
type Pos struct {
	src       *Source
	line, col uint32
}

// IsKnown reports whether the position points anywhere.
func (p Pos) IsKnown() bool { return p.src != nil }

// File is the name of the source, Line and Col count from 1.
func (p Pos) File() string {
	if p.src == nil {
		return ""
	}
	return p.src.Name
}

// Line is the line, counted from 1.
func (p Pos) Line() int { return int(p.line) }

// Col is the column in bytes, counted from 1.
func (p Pos) Col() int { return int(p.col) }

func (p Pos) String() string {
	if p.src == nil {
		return "-"
	}
	return fmt.Sprintf("%s:%d:%d", p.src.Name, p.line, p.col)
}

// sourceLine is the line of text that the position points into.
func (p Pos) sourceLine() string {
	if p.src == nil {
		return ""
	}
	return p.src.line(p.physical())
}

func (p Pos) physical() uint32 { return p.line - p.src.base }

// includedFrom is the #include that brought the position's file in; it is
// unknown in the main file.
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

// compare orders positions as the preprocessed text has them: an included
// file stands where its #include does. Unknown positions come first.
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
		return tie // one is the command line
	}
	return cmp.Or(cmp.Compare(p.physical(), q.physical()), cmp.Compare(p.col, q.col), tie)
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}
