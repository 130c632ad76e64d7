package syntax

import (
	"strings"
	"unicode/utf8"
)

// A scanner cuts one source into tokens. Spellings are slices of the source's
// text, so scanning allocates nothing.
type scanner struct {
	src  *Source
	text string
	off  int    // of the next byte
	from int    // offset where the last token begins
	bol  int    // offset where the current line begins
	line uint32 // the current line as shown

	// inDirective makes the end of the line a token.
	inDirective bool
	errorf      func(pos Pos, format string, args ...any)
}

func newScanner(src *Source, errorf func(Pos, string, ...any)) *scanner {
	s := &scanner{src: src, text: src.text, line: 1, errorf: errorf}
	if strings.HasPrefix(s.text, "\ufeff") {
		s.off, s.bol = 3, 3
	}
	return s
}

func (s *scanner) posAt(off int) Pos {
	return Pos{src: s.src, line: s.line, col: uint32(off-s.bol) + 1}
}

// next scans one token into t.
func (s *scanner) next(t *Token) {
	t.flag = s.skipSpace()
	text, i := s.text, s.off
	s.from = i
	t.Pos = s.posAt(i)
	if i >= len(text) {
		t.Kind, t.Text = _EOF, ""
		if s.inDirective {
			t.Kind = _EOL
		}
		return
	}
	switch c := text[i]; {
	case isLetter(c):
		i++
		for i < len(text) && isWord(text[i]) {
			i++
		}
		t.Text = text[s.off:i]
		t.Kind = wordKind(t.Text)
	case isDigit(c):
		// Letters that follow belong to the literal, as in a C pp-number, so
		// that 8w ## N pastes and 12abc is one mistake.
		for i++; i < len(text) && isWord(text[i]); i++ {
		}
		t.Kind, t.Text = _Int, text[s.off:i]
	case c == '"':
		s.string(t)
		return
	case c == '\n': // only in a directive, see skipSpace
		t.Kind, t.Text = _EOL, ""
		return
	default:
		kind, n := operatorAt(text[i:])
		if kind == _Illegal {
			var r rune
			if r, n = utf8.DecodeRuneInString(text[i:]); r == utf8.RuneError && n == 1 {
				s.errorf(t.Pos, "the text is not valid UTF-8")
			}
		}
		i += n
		t.Kind, t.Text = kind, text[s.off:i]
	}
	s.off = i
}

// skipSpace skips white space, comments and line continuations, and says how
// the next token stands.
func (s *scanner) skipSpace() tokenFlag {
	var flag tokenFlag
	if s.off == s.bol && !s.inDirective {
		flag = bol
	}
	text := s.text
	for s.off < len(text) {
		switch text[s.off] {
		case ' ', '\t', '\r', '\v', '\f':
			s.off++
		case '\n':
			if s.inDirective {
				return flag
			}
			s.off++
			s.newline()
			flag |= bol
		case '\\':
			n := continuation(text[s.off:])
			if n == 0 {
				return flag
			}
			s.off += n
			s.newline()
		case '/':
			if !s.comment() {
				return flag
			}
		default:
			return flag
		}
		flag |= spaced
	}
	return flag
}

func (s *scanner) newline() {
	s.line++
	s.bol = s.off
}

// continuation is the length of a backslash and the end of line behind it, or 0.
// Blanks between the two do not count, as in the preprocessor that p4c uses.
func continuation(text string) int {
	rest := strings.TrimLeft(text[1:], " \t\r")
	if text[0] != '\\' || !strings.HasPrefix(rest, "\n") {
		return 0
	}
	return len(text) - len(rest) + 1
}

// comment skips a comment if there is one.
func (s *scanner) comment() bool {
	rest := s.text[s.off+1:]
	switch {
	case strings.HasPrefix(rest, "/"):
		s.lineComment()
	case strings.HasPrefix(rest, "*"):
		s.blockComment()
	default:
		return false
	}
	return true
}

// lineComment skips to the end of the line, and on to the next one behind a
// backslash, as in C.
func (s *scanner) lineComment() {
	for {
		n := strings.IndexByte(s.text[s.off:], '\n')
		if n < 0 {
			if strings.HasSuffix(s.text, "\\") {
				s.errorf(s.posAt(s.off), "comment ends in a backslash at the end of the file")
			}
			s.off = len(s.text)
			return
		}
		body := strings.TrimSuffix(s.text[s.off:s.off+n], "\r")
		s.off += n
		if !strings.HasSuffix(body, "\\") {
			return
		}
		s.off++
		s.newline()
	}
}

func (s *scanner) blockComment() {
	body := s.text[s.off+2:]
	n := strings.Index(body, "*/")
	if n < 0 {
		s.errorf(s.posAt(s.off), "comment not terminated")
		n = len(body)
		body += "*/"
	}
	end := min(s.off+n+4, len(s.text))
	s.skipLines(body[:n], s.off+2)
	s.off = end
}

// skipLines counts the lines that end in part, which starts at offset off.
func (s *scanner) skipLines(part string, off int) {
	for {
		n := strings.IndexByte(part, '\n')
		if n < 0 {
			return
		}
		off += n + 1
		part = part[n+1:]
		s.off = off
		s.newline()
	}
}

// string scans a string literal. It may run over several lines, but not in a
// directive without a continuation; escapes stay as they are.
func (s *scanner) string(t *Token) {
	start := s.off
	n := stringLen(s.text[start:], s.inDirective)
	if n == 0 {
		s.errorf(t.Pos, "string not terminated")
		n = len(strings.TrimRight(s.text[start:start+lineLen(s.text[start:])], "\r\n"))
		t.Kind, t.Text = _String, s.text[start:start+n]+`"`
		s.off += n
		return
	}
	t.Kind, t.Text = _String, s.text[start:start+n]
	s.skipLines(t.Text, start)
	s.off = start + n
	if strings.Contains(t.Text, "\n") {
		t.Text = spliced(t.Text)
	}
	if !utf8.ValidString(t.Text) {
		s.errorf(t.Pos, "string is not valid UTF-8")
	}
}

// spliced takes line continuations out of a string. A backslash behind another
// one is an escape's and continues nothing.
func spliced(text string) string {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] == '\\' {
			if n := continuation(text[i:]); n > 0 {
				i += n - 1
				continue
			}
			if i+1 < len(text) {
				b.WriteByte(text[i])
				i++
			}
		}
		b.WriteByte(text[i])
	}
	return b.String()
}

// stringLen is the length of the string literal that text starts with, or 0
// where it does not end.
func stringLen(text string, oneLine bool) int {
	for i := 1; i < len(text); i++ {
		switch text[i] {
		case '"':
			return i + 1
		case '\\':
			i += max(1, continuation(text[i:])-1)
		case '\n':
			if oneLine {
				return 0
			}
		}
	}
	return 0
}

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' || c == '_' }
func isDigit(c byte) bool  { return '0' <= c && c <= '9' }
func isWord(c byte) bool   { return isLetter(c) || isDigit(c) }

// operatorAt is the longest operator or delimiter that text starts with, and
// its length.
func operatorAt(text string) (Kind, int) {
	var c [4]byte
	copy(c[:], text)
	switch c[0] {
	case '@':
		return _At, 1
	case '(':
		return _Lparen, 1
	case ')':
		return _Rparen, 1
	case '[':
		return _Lbrack, 1
	case ']':
		return _Rbrack, 1
	case '{':
		if c[1] == '#' && c[2] == '}' {
			return _Invalid, 3
		}
		return _Lbrace, 1
	case '}':
		return _Rbrace, 1
	case ';':
		return _Semi, 1
	case ',':
		return _Comma, 1
	case ':':
		return _Colon, 1
	case '?':
		return _Question, 1
	case '.':
		switch {
		case c[1] == '.' && c[2] == '.':
			return _DotDotDot, 3
		case c[1] == '.':
			return _DotDot, 2
		}
		return _Dot, 1
	case '#':
		return double(c[1], '#', _Hash, _HashHash)
	case '\\':
		return _Backslash, 1
	case '!':
		return double(c[1], '=', _Not, _Neq)
	case '~':
		return _Tilde, 1
	case '*':
		return double(c[1], '=', _Star, _MulAssign)
	case '/':
		return double(c[1], '=', _Slash, _DivAssign)
	case '%':
		return double(c[1], '=', _Percent, _ModAssign)
	case '^':
		return double(c[1], '=', _Xor, _XorAssign)
	case '=':
		return double(c[1], '=', _Assign, _Eql)
	case '-':
		return double(c[1], '=', _Minus, _SubAssign)
	case '+':
		switch c[1] {
		case '+':
			return _Concat, 2
		case ':':
			return _PlusColon, 2
		}
		return double(c[1], '=', _Plus, _AddAssign)
	case '<':
		if c[1] == '<' {
			return triple(c[2], _Shl, _ShlAssign)
		}
		return double(c[1], '=', _Lss, _Leq)
	case '>':
		if c[1] == '>' && c[2] == '=' {
			return _ShrAssign, 3
		}
		return double(c[1], '=', _Gtr, _Geq)
	case '&':
		switch {
		case c[1] == '&' && c[2] == '&':
			return _Mask, 3
		case c[1] == '&':
			return _AndAnd, 2
		}
		return double(c[1], '=', _And, _AndAssign)
	case '|':
		return barAt(c)
	}
	return _Illegal, 1
}

func barAt(c [4]byte) (Kind, int) {
	switch {
	case c[1] == '|':
		return _OrOr, 2
	case c[1] == '+' && c[2] == '|' && c[3] == '=':
		return _SatAddAssign, 4
	case c[1] == '-' && c[2] == '|' && c[3] == '=':
		return _SatSubAssign, 4
	case c[1] == '+' && c[2] == '|':
		return _SatPlus, 3
	case c[1] == '-' && c[2] == '|':
		return _SatMinus, 3
	}
	return double(c[1], '=', _Or, _OrAssign)
}

// double is the two-character kind where c is the second character, or else the single one.
func double(c, second byte, one, two Kind) (Kind, int) {
	if c == second {
		return two, 2
	}
	return one, 1
}

// triple is the assignment of a two-character operator where c is =.
func triple(c byte, two, three Kind) (Kind, int) {
	if c == '=' {
		return three, 3
	}
	return two, 2
}
