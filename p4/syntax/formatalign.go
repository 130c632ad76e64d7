package syntax

import "strings"

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
