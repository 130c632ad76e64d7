// Package tree reads YAML and JSON files. A tree has the values of a file in
// their order and with their lines, so that errors can name the place. Decode
// stores a tree in Go values.
package tree

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"github.com/p4lb/p4lb/internal/text/lists"
	"github.com/p4lb/p4lb/internal/text/plain"
)

// A Node is a value in a file.
type Node struct {
	Line   int
	Kind   Kind
	Text   string  // of a scalar, as written
	Word   bool    // a scalar that can only be a text
	Items  []Node  // of a list
	Fields []Field // of an object
}

// A Field is a key with its value.
type Field struct {
	Line int // of the key
	Key  string
	Node
}

// Kind is the kind of a node.
type Kind int

// The kinds of nodes.
const (
	Null Kind = iota
	Scalar
	List
	Object
)

// String returns the name of the kind in messages.
func (k Kind) String() string {
	return [...]string{"nothing", "a value", "a list", "keys with values"}[k]
}

// An Error is an error in a file, in one line.
type Error struct {
	Line int    // 0 if unknown
	Key  string // for example traffic[0].workload; "" if unknown
	Text string
	err  error
}

// Error returns the text alone; the caller knows the file.
func (e *Error) Error() string { return e.Text }

// Unwrap returns the error of the value's own decoder.
func (e *Error) Unwrap() error { return e.err }

func errorf(line int, format string, args ...any) error {
	return &Error{Line: line, Text: fmt.Sprintf(format, args...)}
}

// Get returns the value of a key, or a null node.
func (n Node) Get(key string) Node {
	for _, f := range n.Fields {
		if f.Key == key {
			return f.Node
		}
	}
	return Node{}
}

// At returns the node at a path such as traffic[0].workload, and whether it
// exists. Otherwise it returns the node around it that is nearest.
func (n Node) At(path string) (Node, bool) {
	for path != "" {
		key, rest := path, ""
		if i := strings.IndexAny(path[1:], ".["); i >= 0 {
			key, rest = path[:i+1], path[i+1:]
		}
		line := n.Line
		if index, ok := strings.CutPrefix(key, "["); ok {
			i, err := strconv.Atoi(strings.TrimSuffix(index, "]"))
			if err != nil || i < 0 || i >= len(n.Items) {
				return n, false
			}
			n = n.Items[i]
		} else {
			i := slices.IndexFunc(n.Fields, func(f Field) bool { return f.Key == key })
			// A key may contain dots.
			for i < 0 && rest != "" {
				more := rest[1:]
				j := strings.IndexAny(more, ".[")
				if j < 0 {
					j = len(more)
				}
				key, rest = key+rest[:j+1], rest[j+1:]
				i = slices.IndexFunc(n.Fields, func(f Field) bool { return f.Key == key })
			}
			if i < 0 {
				return n, false
			}
			line, n = n.Fields[i].Line, n.Fields[i].Node
		}
		if n.Line == 0 {
			n.Line = line
		}
		path = strings.TrimPrefix(rest, ".")
	}
	return n, true
}

// Value returns the node as a Go value: nil, a string, bool, int, float64, []any
// or map[string]any.
func (n Node) Value() any {
	switch n.Kind {
	case Null:
		return nil
	case List:
		return lists.Map(n.Items, Node.Value)
	case Object:
		m := map[string]any{}
		for _, f := range n.Fields {
			m[f.Key] = f.Value()
		}
		return m
	}
	if n.Word {
		return n.Text
	}
	if v, err := strconv.ParseBool(n.Text); err == nil && len(n.Text) > 1 {
		return v
	}
	if v, err := strconv.Atoi(n.Text); err == nil {
		return v
	}
	if v, err := strconv.ParseFloat(n.Text, 64); err == nil {
		return v
	}
	return n.Text
}

// String returns the node in one line.
func (n Node) String() string {
	switch n.Kind {
	case List:
		return "[" + strings.Join(lists.Map(n.Items, Node.String), ", ") + "]"
	case Object:
		return "{" + strings.Join(lists.Map(n.Fields, func(f Field) string { return f.Key + ": " + f.String() }), ", ") + "}"
	case Null:
		return "null"
	}
	return n.Text
}

// Parse parses a YAML document, or JSON, which is YAML too. Its errors are
// Errors.
func Parse(text []byte) (Node, error) {
	if line, err := plain.Check(text); err != nil {
		return Node{}, &Error{Line: line, Text: err.Error(), err: err}
	}
	return parse([]plain.Piece{plain.Whole(text)})
}

// ParseLarge parses a YAML document in pieces. It may be larger than those that
// Parse accepts.
func ParseLarge(text []byte) (Node, error) {
	pieces, line, err := plain.Cut(text)
	if err != nil {
		return Node{}, &Error{Line: line, Text: err.Error(), err: err}
	}
	return parse(pieces)
}

func parse(pieces []plain.Piece) (n Node, err error) {
	section := -1
	for i := range pieces {
		part, err := converter{&pieces[i]}.parse()
		switch {
		case err != nil:
			return Node{}, err
		case i == 0:
			n = part
		case pieces[i].Section == section:
			err = n.Fields[len(n.Fields)-1].join(part.Fields[0].Node)
		default:
			err = n.join(part)
		}
		if err != nil {
			return Node{}, err
		}
		section = pieces[i].Section
	}
	return n, n.checkKeys()
}

// join appends another piece of the same value.
func (n *Node) join(more Node) error {
	if n.Kind != more.Kind {
		return errorf(more.Line, "%v among %v: want one of them", more.Kind, n.Kind)
	}
	n.Items = append(n.Items, more.Items...)
	n.Fields = append(n.Fields, more.Fields...)
	return nil
}

// checkKeys rejects duplicate keys.
func (n *Node) checkKeys() error {
	lines := make(map[string]int, len(n.Fields))
	for i := range n.Fields {
		f := &n.Fields[i]
		if first, ok := lines[f.Key]; ok {
			return errorf(f.Line, "there are two keys %q, the other at line %d: want one", f.Key, first)
		}
		lines[f.Key] = f.Line
		if err := f.checkKeys(); err != nil {
			return err
		}
	}
	for i := range n.Items {
		if err := n.Items[i].checkKeys(); err != nil {
			return err
		}
	}
	return nil
}

// reworded holds plain words for errors in which the parser uses terms of its grammar.
var reworded = map[string]string{
	"',' or ']' must be specified":                                       "a list does not end here: want , or ]",
	"',' or '}' must be specified":                                       "keys and values in braces do not end here: want , or }",
	"sequence end token ']' not found":                                   "a list has no end: want ]",
	"could not find flow mapping end token '}'":                          "keys and values in braces have no end: want }",
	"could not find '[' character corresponding to ']'":                  "a ] without [ before it",
	"could not find '{' character corresponding to '}'":                  "a } without { before it",
	"could not find flow map content":                                    "want a key, a colon and a value",
	"could not find map value":                                           "a key has no value",
	"could not find value for mapping key":                               "a key has no value",
	"unexpected key name":                                                "a line has no colon: want KEY: VALUE",
	"non-map value is specified":                                         "a line has no colon: want KEY: VALUE",
	"mapping value is not allowed in this context":                       "a key cannot stand here: check the indentation, and quote texts that contain a colon",
	"value is not allowed in this context":                               "a value cannot stand here: check the indentation",
	"value is not allowed in this context. map key-value is pre-defined": "a value cannot stand between keys: check the indentation",
	"block sequence entries are not allowed in this context":             "a list item cannot stand here: check the indentation",
	"tab character cannot use as a map key directly":                     "a tab cannot indent: want spaces",
	"could not find end character of double-quoted text":                 "a text has no closing double quote",
	"could not find end character of single-quoted text":                 "a text has no closing single quote",
}

// A converter converts the syntax tree of a piece to nodes.
type converter struct{ piece *plain.Piece }

func (c converter) parse() (n Node, err error) {
	f, err := parser.ParseBytes(c.piece.Text, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		e := &Error{err: err}
		if y := yaml.Error(nil); !errors.As(err, &y) {
			e.Text = err.Error()
		} else { // its Error would include the surrounding text
			e.Text = cmp.Or(reworded[y.GetMessage()], y.GetMessage())
			if t := y.GetToken(); t != nil {
				e.Line = c.piece.Line(t.Position.Line)
			}
		}
		e.Text = strings.ReplaceAll(e.Text, "\n", " ")
		return Node{}, e
	}
	for _, d := range f.Docs {
		switch {
		case d.Body == nil || d.Body.Type() == ast.CommentType:
		case n.Kind != Null:
			return Node{}, errorf(c.line(d.Body), "a second document begins here: want one")
		default:
			if n, err = c.convert(d.Body, 0); err != nil {
				return Node{}, err
			}
		}
	}
	return n, nil
}

func (c converter) line(n ast.Node) int { return c.piece.Line(n.GetToken().Position.Line) }

// maxDepth bounds how deep the values of a document nest.
const maxDepth = 64

func (c converter) convert(n ast.Node, depth int) (out Node, err error) {
	if n == nil {
		return out, nil
	}
	if out.Line = c.line(n); depth > maxDepth {
		return Node{}, errorf(out.Line, "nested too deeply")
	}
	switch n := n.(type) {
	case *ast.NullNode:
	case *ast.MappingValueNode:
		return c.object(out, []*ast.MappingValueNode{n}, depth)
	case *ast.MappingNode:
		return c.object(out, n.Values, depth)
	case *ast.SequenceNode:
		out.Kind = List
		for _, item := range n.Values {
			child, err := c.convert(item, depth+1)
			if err != nil {
				return Node{}, err
			}
			out.Items = append(out.Items, child)
		}
	default:
		out.Kind = Scalar
		out.Text, out.Word, err = c.scalar(n)
	}
	return out, err
}

func (c converter) object(out Node, pairs []*ast.MappingValueNode, depth int) (Node, error) {
	out.Kind = Object
	for _, p := range pairs {
		f := Field{Line: c.line(p.Key)}
		var err error
		if f.Key, _, err = c.scalar(p.Key); err != nil {
			return Node{}, err
		}
		if f.Node, err = c.convert(p.Value, depth+1); err != nil {
			return Node{}, err
		}
		out.Fields = append(out.Fields, f)
	}
	if len(pairs) > 0 {
		out.Line = out.Fields[0].Line
	}
	return out, nil
}

// scalar returns the text of a scalar or a key as written, and whether it can
// only be a text. The type of the Go value decides whether yes and 1.0 are texts
// or numbers. scalar rejects features that no file of p4lb needs.
func (c converter) scalar(n ast.Node) (text string, word bool, err error) {
	switch n := n.(type) {
	case *ast.StringNode:
		return n.Value, true, nil
	case *ast.LiteralNode:
		return n.Value.Value, true, nil
	case *ast.NullNode, *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		return n.GetToken().Value, false, nil
	}
	return "", false, errorf(c.line(n), "want plain keys and values, without anchors, tags and merges")
}

// ParseJSON parses a single JSON value. Its errors are Errors.
func ParseJSON(text []byte) (Node, error) {
	if line, err := plain.Check(text); err != nil {
		return Node{}, &Error{Line: line, Text: err.Error()}
	}
	c := jsonReader{text: text, dec: json.NewDecoder(bytes.NewReader(text)), at: 1}
	c.dec.UseNumber()
	n, err := c.value()
	if err == nil {
		if _, e := c.dec.Token(); e != io.EOF {
			err = errors.New("more than one value")
		}
	}
	if err != nil {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			err = errors.New("unexpected end of file")
		}
		return Node{}, &Error{Line: c.line(), Text: err.Error(), err: err}
	}
	return n, n.checkKeys()
}

// A jsonReader reads the tokens of a decoder.
type jsonReader struct {
	text []byte
	dec  *json.Decoder

	at, offset int // the current line, and the offset up to which lines have been counted
}

// line returns the line of the decoder's position.
func (c *jsonReader) line() int {
	to := min(int(c.dec.InputOffset()), len(c.text))
	c.at += bytes.Count(c.text[c.offset:to], []byte("\n"))
	c.offset = to
	return c.at
}

func (c *jsonReader) value() (n Node, err error) {
	token, err := c.dec.Token()
	if err != nil {
		return Node{}, err
	}
	n.Line = c.line()
	begin, ok := token.(json.Delim)
	if !ok {
		if token != nil {
			n.Kind, n.Text = Scalar, fmt.Sprint(token)
		}
		return n, nil
	}
	for n.Kind = Object; c.dec.More(); {
		f := Field{}
		if begin == '{' {
			key, err := c.dec.Token()
			if err != nil {
				return Node{}, err
			}
			f.Key, f.Line = key.(string), c.line()
		}
		if f.Node, err = c.value(); err != nil {
			return Node{}, err
		}
		if begin == '{' {
			n.Fields = append(n.Fields, f)
		} else {
			n.Items = append(n.Items, f.Node)
		}
	}
	if begin == '[' {
		n.Kind = List
	}
	_, err = c.dec.Token()
	return n, err
}
