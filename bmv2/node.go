package bmv2

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// A node is a JSON value that remembers the order of an object's keys, which
// encoding/json's maps do not.
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

func parseNode(data []byte) (*node, error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	n, err := readNode(d, 0)
	if err != nil {
		if err == io.EOF || err == io.ErrUnexpectedEOF {
			return nil, fmt.Errorf("reading JSON: it ends too early, after %d bytes", len(data))
		}
		return nil, fmt.Errorf("reading JSON at byte %d: %w", d.InputOffset(), err)
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, fmt.Errorf("reading JSON at byte %d: text after the document", d.InputOffset())
	}
	return n, nil
}

func readNode(d *json.Decoder, depth int) (*node, error) {
	if depth > maxDepth {
		return nil, errors.New("nested too deeply")
	}
	t, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch t := t.(type) {
	case nil:
		return &node{kind: nullNode}, nil
	case bool:
		return boolNode(t), nil
	case json.Number:
		return &node{kind: numberNode, text: t.String()}, nil
	case string:
		return &node{kind: stringNode, text: t}, nil
	case json.Delim:
		if t == '[' {
			n := &node{kind: arrayNode}
			for d.More() {
				e, err := readNode(d, depth+1)
				if err != nil {
					return nil, err
				}
				n.list = append(n.list, e)
			}
			_, err := d.Token()
			return n, err
		}
		n := &node{kind: objectNode}
		for d.More() {
			key, err := d.Token()
			if err != nil {
				return nil, err
			}
			e, err := readNode(d, depth+1)
			if err != nil {
				return nil, err
			}
			n.set(key.(string), e)
		}
		_, err := d.Token()
		return n, err
	}
	return nil, fmt.Errorf("unexpected token %v", t)
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

// object makes an object node of key, value, key, value, ….
func object(pairs ...any) *node {
	n := &node{kind: objectNode}
	for i := 0; i < len(pairs); i += 2 {
		n.set(pairs[i].(string), pairs[i+1].(*node))
	}
	return n
}

// write lays n out as p4c does: an array of scalars on one line, everything
// else one member per line, two spaces per level, a blank on both sides of the
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

// maxIndent is the deepest level that is set off: the indentation of deep
// expressions would be many times their text.
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

// writeString escapes what JSON demands and no more: p4c leaves <, > and &
// alone.
func writeString(b *bytes.Buffer, s string) {
	e := json.NewEncoder(b)
	e.SetEscapeHTML(false)
	e.Encode(s)             // of a string: cannot fail
	b.Truncate(b.Len() - 1) // the encoder's newline
}
