package syntax

import "strings"

// resolve finds out what tokens do where their kind leaves it open.
func (f *formatter) resolve() {
	for i := range f.elems {
		if f.elems[i].class == tokenElem {
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
		if f.tok(i).kind == _Lss && f.tok(i).role == noRole {
			f.resolveAngle(i)
		}
	}
	for i := range f.toks {
		f.resolveToken(i)
	}
	for i := range f.toks {
		if f.tok(i).kind == _Lbrace {
			f.markFields(i)
		}
	}
}

var noElem = elem{kind: _EOF, match: -1}

// tok is the i-th token; outside the text there is an end of file.
func (f *formatter) tok(i int) *elem {
	if i < 0 || i >= len(f.toks) {
		return &noElem
	}
	return &f.elems[f.toks[i]]
}

// noteType notes the names that declarations make types.
func (f *formatter) noteType(i int) {
	switch f.tok(i).kind {
	case _Struct, _Header, _HeaderUnion, _Extern, _Control, _Parser, _Package, _Enum:
		if name := f.tok(i + 1); name.kind == _Name {
			f.types[name.text] = true
		}
	case _Typedef, _Type:
		for n := i + 1; n < i+16; n++ {
			if f.tok(n+1).kind == _Semi && f.tok(n).kind == _Name {
				f.types[f.tok(n).text] = true
				return
			}
		}
	}
}

// typish reports whether a word looks like a type: it is declared as one or
// named as types are by custom.
func (f *formatter) typish(e *elem) bool {
	if e.kind != _Name {
		return beginsType(e.kind)
	}
	c := e.text[0]
	return f.types[e.text] || strings.HasSuffix(e.text, "_t") || 'A' <= c && c <= 'Z'
}

// matchBrackets pairs brackets. Each branch of an #if starts from what was
// open before it.
func (f *formatter) matchBrackets() {
	var open []int
	var saved [][]int
	for i := range f.elems {
		e := &f.elems[i]
		if e.class == directiveElem {
			switch directiveWord(e.text) {
			case "if", "ifdef", "ifndef":
				saved = append(saved, append([]int(nil), open...))
			case "else", "elif", "elifdef", "elifndef":
				if n := len(saved); n > 0 {
					open = append([]int(nil), saved[n-1]...)
				}
			case "endif":
				saved = saved[:max(0, len(saved)-1)]
			}
		}
		if e.class != tokenElem {
			continue
		}
		switch e.kind {
		case _Lparen, _Lbrack, _Lbrace:
			open = append(open, i)
		case _Rparen, _Rbrack, _Rbrace:
			if n := len(open) - 1; n >= 0 && closes(f.elems[open[n]].kind, e.kind) {
				e.match = open[n]
				f.elems[open[n]].match = i
				open = open[:n]
			}
		}
	}
}

// matchElse notes for each else which if it belongs to.
func (f *formatter) matchElse() {
	const block = -1
	var pending []int // the ifs that an else may follow, under the open blocks
	for i := 0; i < len(f.toks); i++ {
		e := f.tok(i)
		switch e.kind {
		case _Lparen:
			if n := f.tokenOf(e.match); n > i {
				i = n // the semicolons of a for end nothing
			}
		case _If:
			pending = append(pending, f.toks[i])
		case _Else:
			if n := len(pending) - 1; n >= 0 && pending[n] != block {
				e.match = pending[n]
				pending = pending[:n]
			}
		case _Lbrace:
			pending = append(pending, block)
		case _Rbrace:
			for n := len(pending) - 1; n >= 0; n-- {
				last := pending[n]
				pending = pending[:n]
				if last == block {
					break
				}
			}
		}
		if (e.kind == _Semi || e.kind == _Rbrace) && f.tok(i+1).kind != _Else {
			for n := len(pending) - 1; n >= 0 && pending[n] != block; n-- {
				pending = pending[:n]
			}
		}
	}
}

// closes reports whether end is the bracket that closes open.
func closes(open, end Kind) bool {
	switch end {
	case _Rparen, _Rbrack, _Rbrace:
		return opening(end) == open
	}
	return false
}

// directiveWord is the word behind the # of a directive.
func directiveWord(text string) string {
	text = strings.TrimLeft(text[1:], " \t")
	n := 0
	for n < len(text) && isWord(text[n]) {
		n++
	}
	return text[:n]
}

// markPragmas marks what stands on the line of an @pragma behind it.
func (f *formatter) markPragmas() {
	on := false
	for i := range f.elems {
		e := &f.elems[i]
		on = on && e.breaks == 0
		e.pragma = on
		if e.kind == _At && i+1 < len(f.elems) && f.elems[i+1].text == "pragma" && !f.elems[i+1].space {
			on = true
		}
	}
}

// resolveAngle decides whether the < at token i opens type arguments, and
// marks it and its > where it does.
func (f *formatter) resolveAngle(i int) {
	end, commas := f.angleEnd(i)
	if end < 0 {
		return
	}
	prev := f.tok(i - 1)
	sure := false
	switch prev.kind {
	case _Bit, _IntWord, _Varbit, _Tuple, _List, _ValueSet:
		sure = true
	default:
		if !isNameKind(prev.kind) {
			return
		}
	}
	typish := f.typish(prev) && f.tok(i-2).kind != _Dot || f.typish(f.tok(i+1))
	switch next := f.tok(end + 1); {
	case sure:
	case next.kind == _Lparen, isNameKind(next.kind):
		sure = !commas || typish
	case next.kind >= _Not && next.kind < _Assign && next.kind != _Gtr, next.kind == _Int:
		sure = false
	default:
		sure = !commas || typish
	}
	if sure {
		f.tok(i).role, f.tok(end).role = angle, angle
	}
}

// markBodies marks what stands between the parentheses of an annotation.
func (f *formatter) markBodies() {
	for i := range f.toks {
		if open := f.tok(i + 2); f.tok(i).kind == _At && open.kind == _Lparen {
			for k := i + 3; k < f.tokenOf(open.match); k++ {
				f.tok(k).free = true
			}
		}
	}
}

// An angleList is what angleEnd has found out about one <.
type angleList struct {
	known  bool
	commas bool
	end    int
}

// angleEnd is the token that closes the < at token i, as far as only what can
// stand in type arguments lies between, and whether there are commas; -1
// where there is none.
func (f *formatter) angleEnd(i int) (end int, commas bool) {
	a := &f.angles[i]
	if !a.known {
		a.end, a.commas = f.scanAngle(i)
		a.known = true
	}
	return a.end, a.commas
}

func (f *formatter) scanAngle(i int) (end int, commas bool) {
	sized := false // inside bit<…> there may be arithmetic
	switch f.tok(i - 1).kind {
	case _Bit, _IntWord, _Varbit:
		sized = true
	}
	for k := i + 1; ; k++ {
		e := f.tok(k)
		switch {
		case e.kind == _Gtr:
			return k, commas
		case e.kind == _Lss:
			if k, _ = f.angleEnd(k); k < 0 {
				return -1, false
			}
		case e.kind == _Lparen && sized, e.kind == _Lbrack:
			if k = f.tokenOf(e.match); k < 0 {
				return -1, false
			}
		case e.kind == _Comma:
			commas = true
		case e.kind == _Dot, e.kind == _Int, e.kind == _Underscore, isNameKind(e.kind), beginsType(e.kind):
		case sized && e.kind > _Not && e.kind < _Assign:
		default:
			return -1, false
		}
	}
}

// tokenOf is the index among the tokens of an elem, -1 for none.
func (f *formatter) tokenOf(i int) int {
	lo, hi := 0, len(f.toks)
	for lo < hi {
		if mid := (lo + hi) / 2; f.toks[mid] < i {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	if i < 0 || lo == len(f.toks) {
		return -1
	}
	return lo
}

func (f *formatter) resolveToken(i int) {
	e, prev := f.tok(i), f.tok(i-1)
	switch e.kind {
	case _Not, _Tilde:
		e.role = prefix
	case _Minus, _Plus:
		if !endsOperand(prev) {
			e.role = prefix
		}
	case _Rparen:
		if f.isCast(i) {
			e.role = castParen
		}
	case _Lbrace:
		e.role = f.braceRole(i)
		if e.match >= 0 {
			f.elems[e.match].role = e.role
		}
	case _Rbrace:
		if e.match < 0 {
			e.role = blockBrace
		}
	}
}

// endsOperand reports whether a value can end with e, so that + and - behind
// it have two operands.
func endsOperand(e *elem) bool {
	switch e.kind {
	case _Int, _String, _Rbrack, _Rbrace, _True, _False, _This, _Underscore, _Default, _Invalid:
		return true
	case _Rparen:
		return e.role != castParen
	}
	return isNameKind(e.kind)
}

// isCast reports whether the ) at token i closes a cast.
func (f *formatter) isCast(i int) bool {
	open := f.tokenOf(f.tok(i).match)
	if open < 0 || open+1 == i {
		return false
	}
	switch p := f.tok(open - 1); {
	case endsOperand(p), p.role == angle, p.kind == _If, p.kind == _For, p.kind == _Switch, p.kind == _Select:
		return false
	}
	k := open + 1
	if f.tok(k).kind == _Dot {
		k++
	}
	first := f.tok(k)
	if !beginsType(first.kind) && !isNameKind(first.kind) || !f.typeEndsAt(k, i) {
		return false
	}
	if beginsType(first.kind) {
		return true
	}
	switch next := f.tok(i + 1); next.kind {
	case _Int, _String, _True, _False, _This, _Not, _Tilde:
		return true
	case _Lparen, _Lbrace, _Minus, _Plus, _Dot:
		return f.typish(first)
	default:
		return isNameKind(next.kind)
	}
}

// typeEndsAt reports whether a type that starts at token k ends right before token end.
func (f *formatter) typeEndsAt(k, end int) bool {
	k++
	if f.tok(k).kind == _Lss {
		n, _ := f.angleEnd(k)
		if n < 0 {
			return false
		}
		k = n + 1
	}
	for f.tok(k).kind == _Lbrack {
		n := f.tokenOf(f.tok(k).match)
		if n < 0 {
			return false
		}
		k = n + 1
	}
	return k == end
}

// braceRole tells the braces of a list from those of a block: a list stands
// where a value does and has no semicolons.
func (f *formatter) braceRole(i int) role {
	switch prev := f.tok(i - 1); {
	case prev.kind == _Lparen, prev.kind == _Lbrack, prev.kind == _Comma, prev.kind == _Return, isAssign(prev.kind),
		prev.kind >= _Not && prev.kind < _Assign && prev.role != angle, prev.kind == _Question, prev.role == ternary,
		prev.role == castParen, prev.role == exprBrace:
	default:
		return blockBrace
	}
	if w := f.tok(i - 2).kind; w == _Key || w == _Actions || w == _Entries {
		return blockBrace
	}
	end := f.tokenOf(f.tok(i).match)
	for k := i + 1; k < end; k++ {
		switch e := f.tok(k); e.kind {
		case _Semi:
			return blockBrace
		case _Lbrace:
			if n := f.tokenOf(e.match); n > k {
				k = n
			}
		}
	}
	return exprBrace
}

// markColons tells the : of a ?: and of a slice from that of a label.
func (f *formatter) markColons() {
	type level struct {
		open    Kind
		pending int // ? that wait for their :
	}
	levels := []level{{}}
	for i := range f.toks {
		e := f.tok(i)
		top := &levels[len(levels)-1]
		switch e.kind {
		case _Lparen, _Lbrack, _Lbrace:
			levels = append(levels, level{open: e.kind})
		case _Rparen, _Rbrack, _Rbrace:
			if closes(top.open, e.kind) {
				levels = levels[:len(levels)-1]
			}
		case _Question:
			top.pending++
		case _Semi, _Comma:
			top.pending = 0
		case _Colon:
			switch {
			case top.pending > 0:
				e.role = ternary
				top.pending--
			case top.open == _Lbrack:
				e.role = sliceColon
			}
		}
	}
}

// markFields marks the names of the fields in the struct whose { is at token i.
func (f *formatter) markFields(i int) {
	n := i - 1
	if f.tok(n).role == angle {
		for n--; n > 0 && f.tok(n).role != angle; n-- {
		}
		n--
	}
	switch f.tok(n - 1).kind {
	case _Struct, _Header, _HeaderUnion:
	default:
		return
	}
	end := f.tokenOf(f.tok(i).match)
	for k := i + 1; k < end; k++ {
		if f.tok(k+1).kind == _Semi && isNameKind(f.tok(k).kind) {
			f.tok(k).role = fieldName
		}
	}
}
