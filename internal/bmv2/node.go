package bmv2

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"
)

// A node is a JSON value that preserves the order of an object's keys, unlike
// the maps of encoding/json.
type node struct {
	kind nodeKind
	text string  // of a string (decoded) or a number
	list []*node // of an array or an object
	keys []string
}

type nodeKind byte

const (
	nullNode nodeKind = iota
	falseNode
	trueNode
	numberNode
	stringNode
	arrayNode
	objectNode
)

func (k nodeKind) String() string {
	return [...]string{"null", "a boolean", "a boolean", "a number", "a string", "an array", "an object"}[k]
}

// maxDepth bounds the nesting of a document, so that hostile input cannot
// exhaust the stack. p4c nests two levels per operator of an expression.
const maxDepth = 5000

// parseNode parses a JSON document.
func parseNode(data []byte) (*node, error) {
	r := &nodeReader{text: string(data)}
	n, err := r.value(0)
	if err == nil && !r.ended() {
		err = errors.New("text after the document")
	}
	at := r.at
	switch {
	case err == nil:
		return n, nil
	case r.ended():
		return nil, fmt.Errorf("reading JSON: unexpected end after %d bytes", len(data))
	}
	return nil, fmt.Errorf("reading JSON at byte %d: %w", at, err)
}

// A nodeReader parses JSON text. Switches read programs of a megabyte when they
// start, and encoding/json, which allocates every token and scans it three
// times, took most of that time. Keys and most strings share the memory of the
// text.
type nodeReader struct {
	text string
	at   int    // current position, or position of an error
	free []node // allocated nodes not used yet
}

// peek returns the next byte that is not white space, without consuming it, or
// 0 at the end.
func (r *nodeReader) peek() byte {
	for ; r.at < len(r.text); r.at++ {
		switch c := r.text[r.at]; c {
		case ' ', '\t', '\n', '\r':
		default:
			return c
		}
	}
	return 0
}

func (r *nodeReader) ended() bool { return r.peek() == 0 && r.at == len(r.text) }

// unexpected returns an error about the current character.
func (r *nodeReader) unexpected(want string) error {
	c, _ := utf8.DecodeRuneInString(r.text[r.at:])
	return fmt.Errorf("found %q, want %s", c, want)
}

func (r *nodeReader) value(depth int) (n *node, err error) {
	if len(r.free) == 0 {
		r.free = make([]node, min(64, len(r.text)/8+1))
	}
	n, r.free = &r.free[0], r.free[1:]
	switch c := r.peek(); {
	case depth > maxDepth:
		err = errors.New("nested too deeply")
	case c == '[':
		n.kind = arrayNode
		err = r.members(n, ']', depth)
	case c == '{':
		n.kind = objectNode
		err = r.members(n, '}', depth)
	case c == '"':
		n.kind = stringNode
		n.text, err = r.string()
	case c == '-' || '0' <= c && c <= '9':
		n.kind = numberNode
		n.text, err = r.number()
	default:
		for kind, word := range [...]string{nullNode: "null", falseNode: "false", trueNode: "true"} {
			if strings.HasPrefix(r.text[r.at:], word) {
				n.kind = nodeKind(kind)
				r.at += len(word)
				return n, nil
			}
		}
		err = r.unexpected("a value")
	}
	return n, err
}

// members parses the elements of an array or an object up to its end.
func (r *nodeReader) members(n *node, end byte, depth int) error {
	r.at++
	for r.peek() != end {
		if len(n.list) > 0 {
			if r.peek() != ',' {
				return r.unexpected(fmt.Sprintf("a comma or %q", end))
			}
			r.at++
		}
		if n.kind == objectNode {
			if r.peek() != '"' {
				return r.unexpected("a key in quotes")
			}
			key, err := r.string()
			if err != nil {
				return err
			}
			if r.peek() != ':' {
				return r.unexpected("a colon")
			}
			r.at++
			n.keys = append(n.keys, key)
		}
		e, err := r.value(depth + 1)
		if err != nil {
			return err
		}
		n.list = append(n.list, e)
	}
	r.at++
	return nil
}

// string parses a string at its opening quote.
func (r *nodeReader) string() (s string, err error) {
	begin, plain := r.at, true
	for r.at++; r.at < len(r.text); r.at++ {
		switch c := r.text[r.at]; {
		case c == '"':
			r.at++
			if plain {
				return r.text[begin+1 : r.at-1], nil
			}
			if err = json.Unmarshal([]byte(r.text[begin:r.at]), &s); err != nil {
				r.at = begin
			}
			return s, err
		case c == '\\':
			r.at++
			plain = false
		case c < ' ':
			return "", r.unexpected("an escape sequence: control characters are not allowed in a string")
		case c >= utf8.RuneSelf:
			plain = false
		}
	}
	r.at = len(r.text)
	return "", io.ErrUnexpectedEOF
}

// number parses a number at its first digit or minus sign.
func (r *nodeReader) number() (string, error) {
	begin := r.at
	for r.at < len(r.text) && strings.IndexByte("+-.0123456789Ee", r.text[r.at]) >= 0 {
		r.at++
	}
	text := r.text[begin:r.at]
	if !json.Valid([]byte(text)) {
		r.at = begin
		return "", fmt.Errorf("%.40s is not a number", text) // shortened, since it may be as long as the file
	}
	return text, nil
}

// get returns the value of a key, or nil.
func (n *node) get(key string) *node {
	for i := len(n.keys) - 1; i >= 0; i-- {
		if n.keys[i] == key {
			return n.list[i]
		}
	}
	return nil
}

func (n *node) set(key string, v *node) {
	n.keys = append(n.keys, key)
	n.list = append(n.list, v)
}

func boolNode(b bool) *node {
	if b {
		return &node{kind: trueNode}
	}
	return &node{kind: falseNode}
}

func intNode(i int) *node { return &node{kind: numberNode, text: strconv.Itoa(i)} }

func textNode(s string) *node { return &node{kind: stringNode, text: s} }

func listNode(list ...*node) *node { return &node{kind: arrayNode, list: list} }

// object returns an object node with the given keys and values: key, value,
// key, value, ….
func object(pairs ...any) *node {
	n := &node{kind: objectNode}
	for i := 0; i < len(pairs); i += 2 {
		n.set(pairs[i].(string), pairs[i+1].(*node))
	}
	return n
}

// write formats n like p4c: an array of scalars on one line, anything else with
// one member per line, two spaces per level, and a space on both sides of the
// colon.
func (n *node) write(b *bytes.Buffer, indent int) {
	switch n.kind {
	case arrayNode:
		small := true
		for _, e := range n.list {
			small = small && e.kind < arrayNode
		}
		b.WriteByte('[')
		for i, e := range n.list {
			if i > 0 {
				b.WriteByte(',')
			}
			switch {
			case !small:
				newline(b, indent+1)
			case i > 0:
				b.WriteByte(' ')
			}
			e.write(b, indent+1)
		}
		if !small {
			newline(b, indent)
		}
		b.WriteByte(']')
	case objectNode:
		b.WriteByte('{')
		for i, e := range n.list {
			if i > 0 {
				b.WriteByte(',')
			}
			newline(b, indent+1)
			writeString(b, n.keys[i])
			b.WriteString(" : ")
			e.write(b, indent+1)
		}
		newline(b, indent)
		b.WriteByte('}')
	case stringNode:
		writeString(b, n.text)
	case numberNode:
		b.WriteString(n.text)
	default:
		b.WriteString([...]string{nullNode: "null", falseNode: "false", trueNode: "true"}[n.kind])
	}
}

// maxIndent is the deepest indented level: the indentation of deep expressions
// would be much longer than their text.
const maxIndent = 60

func newline(b *bytes.Buffer, indent int) {
	if indent > maxIndent {
		b.WriteByte(' ')
		return
	}
	b.WriteByte('\n')
	b.WriteString(indentation[:2*indent])
}

var indentation = strings.Repeat("  ", maxIndent)

// writeString escapes only what JSON requires: p4c does not escape <, > and &.
func writeString(b *bytes.Buffer, s string) {
	e := json.NewEncoder(b)
	e.SetEscapeHTML(false)
	e.Encode(s)             // a string cannot fail
	b.Truncate(b.Len() - 1) // the encoder's newline
}
