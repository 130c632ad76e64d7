package manifest

import (
	"errors"
	"fmt"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"github.com/p4lb/p4lb/internal/text/plain"
)

// An Error is an error in a manifest, in one line.
type Error struct {
	File  string // what messages call the file; "" for none
	Line  int    // 0: it is about no line
	Place string // such as registers[2].kind, "" for the manifest as a whole
	Msg   string
}

// Error is the message with its place.
func (e *Error) Error() string {
	var b strings.Builder
	if e.File != "" {
		b.WriteString(e.File)
		if e.Line > 0 {
			fmt.Fprintf(&b, ":%d", e.Line)
		}
		b.WriteString(": ")
	}
	if e.Place != "" {
		b.WriteString(e.Place + ": ")
	}
	b.WriteString(e.Msg)
	return b.String()
}

// A node is a value at a position of a text. JSON is read as YAML.
type node struct {
	line   int
	shape  shape
	text   string // of a scalar
	quoted bool   // a scalar that can only be a word
	items  []node
	fields []nodeField
}

type nodeField struct {
	line int
	key  string
	node
}

type shape int

const (
	nothing shape = iota
	scalar
	sequence
	mapping
)

// String names the shape as messages do.
func (s shape) String() string {
	return [...]string{"nothing", "a value", "a list", "keys with values"}[s]
}

// maxDepth bounds how deep the values of a document nest.
const maxDepth = 64

// parse reads the one document in text.
func parse(file string, text []byte) (node, error) {
	if line, err := plain.Check(text); err != nil {
		return node{}, &Error{File: file, Line: line, Msg: err.Error()}
	}
	f, err := parser.ParseBytes(text, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		e := &Error{File: file, Msg: err.Error()}
		if y := yaml.Error(nil); errors.As(err, &y) {
			e.Msg = y.GetMessage()
			if t := y.GetToken(); t != nil {
				e.Line = t.Position.Line
			}
		}
		e.Msg = strings.ReplaceAll(e.Msg, "\n", " ")
		return node{}, e
	}
	t := treeMaker{file}
	var root node
	for _, d := range f.Docs {
		switch {
		case d.Body == nil || d.Body.Type() == ast.CommentType:
		case root.shape != nothing:
			return node{}, &Error{File: file, Line: lineOf(d.Body), Msg: "a second document: want one"}
		default:
			if root, err = t.convert(d.Body, 0); err != nil {
				return node{}, err
			}
		}
	}
	return root, nil
}

func lineOf(n ast.Node) int {
	if t := n.GetToken(); t != nil {
		return t.Position.Line
	}
	return 0
}

// A treeMaker turns syntax trees into nodes.
type treeMaker struct{ file string }

func (t treeMaker) convert(n ast.Node, depth int) (node, error) {
	if n == nil {
		return node{}, nil
	}
	out := node{line: lineOf(n)}
	if depth > maxDepth {
		return node{}, &Error{File: t.file, Line: out.line, Msg: "nested too deeply"}
	}
	switch n := n.(type) {
	case *ast.NullNode:
	case *ast.MappingValueNode:
		return t.mapping(out, []*ast.MappingValueNode{n}, depth)
	case *ast.MappingNode:
		return t.mapping(out, n.Values, depth)
	case *ast.SequenceNode:
		out.shape = sequence
		for _, item := range n.Values {
			child, err := t.convert(item, depth+1)
			if err != nil {
				return node{}, err
			}
			out.items = append(out.items, child)
		}
	default:
		text, quoted, ok := scalarOf(n)
		if !ok {
			return node{}, t.notPlain(out.line)
		}
		out.shape, out.text, out.quoted = scalar, text, quoted
	}
	return out, nil
}

func (t treeMaker) notPlain(line int) error {
	return &Error{File: t.file, Line: line, Msg: "want plain keys and values, without anchors, tags and merges"}
}

func (t treeMaker) mapping(out node, pairs []*ast.MappingValueNode, depth int) (node, error) {
	out.shape = mapping
	lines := map[string]int{}
	for _, p := range pairs {
		line := lineOf(p.Key)
		key, _, ok := scalarOf(p.Key)
		if !ok {
			return node{}, t.notPlain(line)
		}
		if first, twice := lines[key]; twice {
			return node{}, &Error{File: t.file, Line: line, Msg: fmt.Sprintf("there are two keys %q, the other at line %d: want one", key, first)}
		}
		lines[key] = line
		child, err := t.convert(p.Value, depth+1)
		if err != nil {
			return node{}, err
		}
		out.fields = append(out.fields, nodeField{line, key, child})
	}
	if len(out.fields) > 0 {
		out.line = out.fields[0].line
	}
	return out, nil
}

// scalarOf returns the text of a scalar as written. The caller decides whether it is a
// number.
func scalarOf(n ast.Node) (text string, quoted, ok bool) {
	switch n := n.(type) {
	case *ast.StringNode:
		return n.Value, true, true
	case *ast.LiteralNode:
		return n.Value.Value, true, true
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		return n.GetToken().Value, false, true
	}
	return "", false, false
}
