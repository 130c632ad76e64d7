// Package plain is what several rooms need to read what users write: bounds of
// YAML, names that become folders, and slips of the hand.
//
// YAML is bounded before a parser sees it. The parser of YAML descends once for each bracket, key, item or anchor that
// stands inside another, and looks back at long words: a file of a few hundred
// kilobytes can take it minutes, or end the process with its stack. No
// topology, experiment or manifest needs such.
package plain

import (
	"bytes"
	"fmt"
)

// The limits of a file.
const (
	MaxBytes  = 16 << 20 // of the whole text
	maxFlow   = 64       // brackets and braces inside one another
	maxIndent = 256      // spaces in front of a line
	maxMarks  = 64       // "- ", "? " and ": " in one line, outside of brackets
	maxWord   = 1024     // bytes without a space or quotes
	maxSigns  = 1000     // anchors, aliases, tags and "? " in the file
	maxEmpty  = 10000    // lines that end in "-"
	maxBlank  = 10000    // lines of nothing in a row, which a text is folded from
	maxParts  = 1 << 18  // words, brackets, commas and marks: each becomes kilobytes of a tree
	maxKeys   = 10000    // lines with a key below one another: the parser moves all of them for each
	allParts  = 1 << 22  // of a text that is parsed in pieces
	maxBelow  = 200000   // keys or items below one key there
)

// Check refuses a text that passes a limit, and says in which line.
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

// A checker counts what nests. It need not understand YAML: it counts too much
// in a text that only looks like keys, which the limits have room for.
type checker struct {
	line  int
	flow  int  // open brackets
	signs int  // seen so far
	empty int  // lines that end in "-"
	blank int  // lines of nothing, right before
	quote byte // that is open, 0 outside of quotes
	err   error

	parts, room int // words, brackets, commas and marks; how many there may be
	keys        int // in lines below one another: how many there may be
	inBlock     [maxIndent + 1]int
	deepest     int // of inBlock, beyond which all are 0
}

func (c *checker) failf(format string, args ...any) {
	if c.err == nil {
		c.err = fmt.Errorf(format, args...)
	}
}

// read counts one line.
func (c *checker) read(text []byte) {
	text = bytes.TrimRight(text, "\r\n")
	if bytes.HasSuffix(text, []byte("-")) {
		if c.empty++; c.empty > maxEmpty {
			c.failf("more than %d items that begin in the line below", maxEmpty)
		}
	}
	switch indent := len(text) - len(bytes.TrimLeft(text, " \t")); {
	case c.quote != 0:
	case indent > maxIndent:
		c.failf("nested too deeply: indented by %d, more than %d", indent, maxIndent)
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

// block counts the keys of lines that are indented alike.
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
		c.failf("more than %d keys below one another: in braces there may be more", c.keys)
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
