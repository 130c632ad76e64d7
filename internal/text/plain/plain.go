// Package plain helps to read files written by users: limits for YAML, names of
// folders, suggestions for misspelled words.
//
// YAML is checked before it is parsed. The parser recurses for each nested
// bracket, key, item or anchor, and rescans long words: a file of a few hundred
// kilobytes can keep it busy for minutes, or overflow the stack. No valid
// topology, experiment or manifest comes near the limits.
package plain

import (
	"bytes"
	"fmt"
)

// The limits of a file.
const (
	MaxBytes  = 16 << 20 // of the complete text
	maxFlow   = 64       // nested brackets and braces
	maxIndent = 256      // spaces at the beginning of a line
	maxMarks  = 64       // "- ", "? " and ": " in one line, outside of brackets
	maxWord   = 1024     // bytes without a space or quotes
	maxSigns  = 1000     // anchors, aliases, tags and "? " in the file
	maxEmpty  = 10000    // lines that end in "-"
	maxBlank  = 10000    // consecutive empty lines, which the parser folds
	maxParts  = 1 << 18  // words, brackets, commas and marks: each needs kilobytes in the syntax tree
	maxKeys   = 10000    // keys at one level: the parser moves all of them for each key
	allParts  = 1 << 22  // of a text that is parsed in pieces
	maxBelow  = 200000   // keys or items below one key of such a text
)

// Check returns an error with its line if the text exceeds a limit.
func Check(text []byte) (line int, err error) {
	if len(text) > MaxBytes {
		return 0, fmt.Errorf("larger than %d MiB", MaxBytes>>20)
	}
	c := checker{line: 1, room: maxParts, keys: maxKeys}
	for line := range bytes.Lines(text) {
		if c.read(line); c.err != nil {
			return c.line, c.err
		}
		c.line++
	}
	return 0, nil
}

// A checker counts nested elements. It does not parse YAML: text that looks
// like keys counts too, which the limits permit.
type checker struct {
	line  int
	flow  int  // open brackets
	signs int  // so far
	empty int  // lines that end in "-"
	blank int  // consecutive empty lines
	quote byte // the open quote; 0 outside of quotes
	err   error

	parts, room int // words, brackets, commas and marks, and their maximum
	keys        int // maximum number of keys at one level
	inBlock     [maxIndent + 1]int
	deepest     int // largest index of inBlock that is not 0
}

func (c *checker) failf(format string, args ...any) {
	if c.err == nil {
		c.err = fmt.Errorf(format, args...)
	}
}

// read counts the elements of one line.
func (c *checker) read(text []byte) {
	text = bytes.TrimRight(text, "\r\n")
	if bytes.HasSuffix(text, []byte("-")) {
		if c.empty++; c.empty > maxEmpty {
			c.failf("more than %d items that begin on the next line", maxEmpty)
		}
	}
	switch indent := len(text) - len(bytes.TrimLeft(text, " \t")); {
	case c.quote != 0:
	case indent > maxIndent:
		c.failf("nested too deeply: indented by %d, want at most %d", indent, maxIndent)
	case c.flow == 0:
		c.block(indent, text[indent:])
	}
	if len(bytes.TrimSpace(text)) > 0 {
		c.blank = 0
	} else if c.blank++; c.blank > maxBlank {
		c.failf("more than %d empty lines in a row", maxBlank)
	}
	marks, word := 0, 0
	for i := 0; i < len(text); i++ {
		b := text[i]
		next := byte(' ')
		if i+1 < len(text) {
			next = text[i+1]
		}
		if c.quote != 0 {
			switch {
			case b == '\\' && c.quote == '"':
				i++
			case b == c.quote:
				c.quote = 0
			}
			continue
		}
		blank, starts := b == ' ' || b == '\t', word == 0
		if word++; blank {
			word = 0
		}
		if word == 1 || b == ',' || b == '[' || b == '{' {
			if c.parts++; c.parts > c.room {
				c.failf("more than %d words and signs", c.room)
			}
		}
		switch {
		case word > maxWord:
			c.failf("a word of more than %d bytes", maxWord)
		case b == '#' && starts:
			return
		case (b == '"' || b == '\'') && starts:
			c.quote, word = b, 0
		case b == '[' || b == '{':
			word = 0
			if c.flow++; c.flow > maxFlow {
				c.failf("nested too deeply: more than %d brackets inside one another", maxFlow)
			}
		case b == ']' || b == '}':
			c.flow, word = max(0, c.flow-1), 0
		case b == ',':
			word = 0
		case (b == '&' || b == '*' || b == '!') && starts:
			c.sign()
		case (b == '-' || b == '?') && starts && next == ' ', b == ':' && (next == ' ' || next == ':'):
			if b == '?' {
				c.sign()
			}
			word = 0
			if marks++; marks > maxMarks && c.flow == 0 {
				c.failf("nested too deeply: more than %d keys and items in one line", maxMarks)
			}
		}
	}
}

// block counts keys in lines with the same indentation.
func (c *checker) block(indent int, text []byte) {
	if len(text) == 0 || text[0] == '#' {
		return
	}
	for ; c.deepest > indent; c.deepest-- {
		c.inBlock[c.deepest] = 0
	}
	if c.deepest = indent; text[0] == '-' || !isKey(text) {
		return
	}
	if c.inBlock[indent]++; c.inBlock[indent] > c.keys {
		c.failf("more than %d keys at one level: use braces for more", c.keys)
	}
}

// isKey reports whether a line begins with a key, or looks like it.
func isKey(text []byte) bool {
	return bytes.HasSuffix(text, []byte(":")) || bytes.Contains(text, []byte(": ")) || bytes.Contains(text, []byte(":\t"))
}

func (c *checker) sign() {
	if c.signs++; c.signs > maxSigns {
		c.failf("more than %d anchors, aliases and tags", maxSigns)
	}
}
