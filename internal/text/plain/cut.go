package plain

import (
	"bytes"
	"fmt"
	"regexp"
	"sync"
)

// A Piece is a part of a YAML text that is valid YAML itself: a top-level key
// with some of the keys or items below it. Pieces with the same Section belong
// to the same key.
type Piece struct {
	Text    []byte
	Section int

	head, body int // the lines of the key and of its content in the complete text
}

// Line returns the line in the complete text of line n of the piece.
func (p *Piece) Line(n int) int {
	if n <= 1 {
		return p.head
	}
	return p.body + n - 2
}

// Whole returns the text as one piece.
func Whole(text []byte) Piece { return Piece{Text: text, head: 1, body: 2} }

const (
	small      = 4000 // maximum number of lines of a text in one piece
	pieceLines = 1000 // lines of each piece otherwise
)

// bareKey matches a line with a key and no value.
var bareKey = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9_-]+:[ \t\r]*(#.*)?\n$`) })

// Cut cuts a text into pieces that pass Check. The YAML parser needs time
// quadratic in the number of lines at one level, and kilobytes of memory per
// word. If the text exceeds a limit, Cut returns the line.
func Cut(text []byte) (pieces []Piece, line int, err error) {
	if len(text) > MaxBytes {
		return nil, 0, fmt.Errorf("larger than %d MiB", MaxBytes>>20)
	}
	if bytes.Count(text, []byte{'\n'}) > small {
		c := cutter{checker: checker{line: 1, room: allParts, keys: MaxBytes}}
		if c.cut(text) {
			pieces = c.pieces
		} else if c.err != nil {
			return nil, c.line, c.err
		}
	}
	if pieces == nil {
		pieces = []Piece{Whole(text)}
	}
	for i := range pieces {
		if n, err := Check(pieces[i].Text); err != nil {
			return nil, pieces[i].Line(n), err
		}
	}
	return pieces, 0, nil
}

// A cutter cuts before lines that are below a bare top-level key, outside of
// brackets and quotes, and indented like the first such line.
type cutter struct {
	checker
	pieces []Piece
	key    []byte // the key of the section, or nil if it cannot be cut
	from   int    // its line
	indent int    // indentation of the content; -1 before the content
	list   bool   // the content is a list of items
	lines  int    // number of lines of the last piece
	below  int    // number of keys or items in the section so far
}

// cut reports whether the text can be cut.
func (c *cutter) cut(text []byte) bool {
	for line := range bytes.Lines(text) {
		if c.flow == 0 && c.quote == 0 && !c.begin(line) {
			return false
		}
		if len(c.pieces) > 0 {
			last := &c.pieces[len(c.pieces)-1]
			last.Text = append(last.Text, line...)
			c.lines++
		}
		if c.read(line); c.err != nil {
			return false
		}
		c.line++
	}
	return len(c.pieces) > 0
}

// begin starts a section or a piece at a line if necessary. It reports whether
// the text can be cut.
func (c *cutter) begin(line []byte) bool {
	words := bytes.TrimLeft(line, " \t")
	indent := len(line) - len(words)
	item := bytes.HasPrefix(words, []byte("- "))
	switch words = bytes.TrimRight(words, " \t\r\n"); {
	case len(words) == 0 || words[0] == '#':
		return true
	case c.key != nil && c.indent < 0 && (indent > 0 || item):
		c.indent, c.list, c.below = indent, item, 1
		if !item && !isKey(words) {
			c.key = nil
		}
	case indent == 0 && !(c.key != nil && c.indent == 0 && c.list && item):
		if !isKey(words) || bytes.ContainsAny(words[:1], "-?%&*!|>{[") {
			return false
		}
		section := 0
		if n := len(c.pieces); n > 0 {
			section = c.pieces[n-1].Section + 1
		}
		c.pieces = append(c.pieces, Piece{Section: section, head: c.line, body: c.line + 1})
		if c.key, c.from, c.indent, c.lines, c.below = nil, c.line, -1, 0, 0; bareKey().Match(line) {
			c.key = line
		}
	case c.key != nil && indent == c.indent && item == c.list:
		if c.below++; c.below > maxBelow {
			c.failf("more than %d keys or items below %s", maxBelow, bytes.TrimRight(c.key, ": \n"))
		}
		if c.lines < pieceLines {
			break
		}
		last := &c.pieces[len(c.pieces)-1]
		c.pieces = append(c.pieces, Piece{Text: bytes.Clone(c.key), Section: last.Section, head: c.from, body: c.line})
		c.lines = 0
	}
	return true
}
