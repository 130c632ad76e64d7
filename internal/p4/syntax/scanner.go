package syntax

import (
	"strings"
	"unicode/utf8"

	"github.com/p4lb/p4lb/internal/p4/token"
)

// A scanner cuts one source into tokens. Spellings are slices of the source's
// text, so scanning allocates nothing.
type scanner struct {
	src  *source
	text string
	off  int    // offset of the next byte
	from int    // offset of the start of the last token
	bol  int    // offset of the start of the current line
	line uint32 // the number of the current line, for messages

	// inDirective makes the scanner return the end of the line as a token.
	inDirective bool
	// inGroup is set in text that a conditional may skip. Such text may contain an
	// unpaired quotation mark; apart is set if the last string was one.
	inGroup, apart bool
	errorf         func(pos Pos, format string, args ...any)
}

func newScanner(src *source, errorf func(Pos, string, ...any)) *scanner {
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
		t.Kind, t.Text = token.EOF, ""
		if s.inDirective {
			t.Kind = token.EOL
		}
		return
	}
	switch c := text[i]; {
	case token.IsLetter(c):
		t.Text = s.word(i)
		t.Kind = token.Word(t.Text)
		return
	case token.IsDigit(c):
		// Letters after the digits belong to the literal, as in a C pp-number. So
		// 8w ## N can be pasted, and 12abc is a single error.
		t.Kind, t.Text = token.Int, s.word(i)
		return
	case c == '"':
		s.string(t)
		return
	case c == '\n': // only in a directive, see skipSpace
		t.Kind, t.Text = token.EOL, ""
		return
	default:
		kind, n := token.Operator(text[i:])
		if kind == token.Illegal {
			var r rune
			if r, n = utf8.DecodeRuneInString(text[i:]); r == utf8.RuneError && n == 1 {
				s.errorf(t.Pos, "the text is not valid UTF-8")
			}
		}
		i += n
		t.Kind, t.Text = kind, text[s.off:i]
		if kind != token.Illegal && i < len(text) && text[i] == '\\' && s.splicedOperator(t, i) {
			return
		}
	}
	s.off = i
}

// word scans the letters, digits and underscores from offset i on and returns them.
// It removes line continuations inside the word.
func (s *scanner) word(i int) string {
	text, start := s.text, i
	var joined strings.Builder // the parts before start
	for {
		for i < len(text) && token.IsWord(text[i]) {
			i++
		}
		s.off = i
		n := 0
		if i < len(text) && text[i] == '\\' {
			n = continuation(text[i:])
		}
		if n == 0 || i+n >= len(text) || !token.IsWord(text[i+n]) {
			if joined.Len() == 0 {
				return text[start:i]
			}
			joined.WriteString(text[start:i])
			return joined.String()
		}
		joined.WriteString(text[start:i])
		i += n
		start, s.off = i, i
		s.newline()
	}
}

// splicedOperator completes the operator in t, which ends at offset i, with
// characters after a line continuation. It reports whether there are any.
func (s *scanner) splicedOperator(t *Token, i int) bool {
	n := continuation(s.text[i:])
	if n == 0 {
		return false
	}
	rest := s.text[i+n : min(i+n+maxOperator, len(s.text))]
	kind, length := token.Operator(t.Text + rest)
	if kind == token.Illegal || length <= len(t.Text) {
		return false
	}
	s.off = i + n
	s.newline()
	s.off += length - len(t.Text)
	t.Kind, t.Text = kind, t.Text+rest[:length-len(t.Text)]
	return true
}

// maxOperator is the length of the longest operator.
const maxOperator = 4

// skipSpace skips white space, comments and line continuations, and returns the
// flags of the next token.
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

// continuation returns the length of a backslash and the end of line after it, or
// 0. Blanks between the two are allowed, as in the preprocessor that p4c uses.
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
	default:
		return false
	}
	return true
}

// lineComment skips to the end of the line. As in C, a backslash at the end
// continues the comment on the next line.
func (s *scanner) lineComment() {
	rest := s.text[s.off:]
	n := lineCommentLen(rest)
	s.skipLines(rest[:n], s.off)
	if n == len(rest) && strings.HasSuffix(rest, "\\") {
		s.errorf(s.posAt(max(s.off, s.bol)), "comment ends in a backslash at the end of the file")
	}
	s.off += n
}

// skipLines counts the line ends in part, which starts at offset off.
func (s *scanner) skipLines(part string, off int) {
	if n := strings.Count(part, "\n"); n > 0 {
		s.line += uint32(n)
		s.bol = off + strings.LastIndexByte(part, '\n') + 1
	}
}

// string scans a string literal and keeps its escapes. It may span several lines,
// but in a directive only with line continuations.
func (s *scanner) string(t *Token) {
	start := s.off
	n := stringLen(s.text[start:], s.inDirective)
	s.apart = s.inGroup && (n == 0 || hasDirective(s.text[start:start+n]))
	if s.apart || n == 0 {
		if !s.apart {
			s.errorf(t.Pos, "string not terminated")
		}
		n = len(strings.TrimRight(s.text[start:start+lineLen(s.text[start:])], "\r\n"))
		t.Kind, t.Text = token.String, s.text[start:start+n]+`"`
		s.off += n
		return
	}
	t.Kind, t.Text = token.String, s.text[start:start+n]
	s.skipLines(t.Text, start)
	s.off = start + n
	if strings.Contains(t.Text, "\n") {
		// Remove line continuations. A backslash after another one belongs to an
		// escape and continues no line.
		var b strings.Builder
		for i := 0; i < len(t.Text); i++ {
			if t.Text[i] == '\\' {
				if n := continuation(t.Text[i:]); n > 0 {
					i += n - 1
					continue
				}
				if i+1 < len(t.Text) {
					b.WriteByte(t.Text[i])
					i++
				}
			}
			b.WriteByte(t.Text[i])
		}
		t.Text = b.String()
	}
	if !utf8.ValidString(t.Text) {
		s.errorf(t.Pos, "string is not valid UTF-8")
	}
}

// hasDirective reports whether a line of text other than the first is a directive.
func hasDirective(text string) bool {
	for {
		_, rest, ok := strings.Cut(text, "\n")
		if !ok {
			return false
		}
		if text = rest; strings.HasPrefix(strings.TrimLeft(text, " \t"), "#") {
			return true
		}
	}
}

// stringLen returns the length of the string literal at the start of text, or 0 if
// it is not closed.
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
