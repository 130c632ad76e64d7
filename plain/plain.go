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
	maxParts  = 1 << 20  // words, brackets, commas and marks: each becomes kilobytes of a tree
)

// Check refuses a text that passes a limit, and says in which line.
func Check(text []byte) (line int, err error) {
	if len(text) > MaxBytes {
		return 0, fmt.Errorf("larger than %d MiB", MaxBytes>>20)
	}
	c := checker{line: 1}
	for len(text) > 0 && c.err == nil {
		n := bytes.IndexByte(text, '\n') + 1
		if n == 0 {
			n = len(text)
		}
		c.read(text[:n])
		text = text[n:]
		c.line++
	}
	if c.err != nil {
		return c.line - 1, c.err
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
	parts int  // words, brackets, commas and marks
	quote byte // that is open, 0 outside of quotes
	err   error
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
	if indent := len(text) - len(bytes.TrimLeft(text, " \t")); indent > maxIndent && c.quote == 0 {
		c.failf("nested too deeply: indented by %d, more than %d", indent, maxIndent)
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
			if c.parts++; c.parts > maxParts {
				c.failf("more than %d words and signs", maxParts)
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

func (c *checker) sign() {
	if c.signs++; c.signs > maxSigns {
		c.failf("more than %d anchors, aliases and tags", maxSigns)
	}
}
