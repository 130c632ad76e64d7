package fabric

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"github.com/p4lb/p4lb/plain"
)

// A value is what a file says at one place, in YAML or JSON. Unlike a map it
// keeps order and lines.
type value struct {
	line   int
	kind   kind
	text   string  // of a scalar
	items  []value // of a list
	fields []field // of an object
}

type field struct {
	line int
	key  string
	value
}

type kind int

const (
	null kind = iota
	scalar
	list
	object
)

// String names the kind as messages do.
func (k kind) String() string {
	return [...]string{"nothing", "a word", "a list", "keys with values"}[k]
}

// get returns the value of a key; there is none where it is null.
func (v value) get(key string) value {
	for _, f := range v.fields {
		if f.key == key {
			return f.value
		}
	}
	return value{}
}

// parseYAML reads the one document in text.
func parseYAML(file string, text []byte) (v value, err error) {
	if line, err := plain.Check(text); err != nil {
		return value{}, &Error{file, line, err.Error()}
	}
	f, err := parser.ParseBytes(text, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		e := &Error{file, 0, err.Error()}
		if y := yaml.Error(nil); errors.As(err, &y) {
			e.Msg = y.GetMessage()
			if t := y.GetToken(); t != nil {
				e.Line = t.Position.Line
			}
		}
		return value{}, e
	}
	c := yamlConverter{file}
	for _, d := range f.Docs {
		switch {
		case d.Body == nil || d.Body.Type() == ast.CommentType:
		case v.kind != null:
			return value{}, &Error{file, d.Body.GetToken().Position.Line, "a second document: want one"}
		default:
			if v, err = c.convert(d.Body); err != nil {
				return value{}, err
			}
		}
	}
	return v, nil
}

// A yamlConverter turns syntax trees into values.
type yamlConverter struct{ file string }

func (c yamlConverter) convert(n ast.Node) (value, error) {
	v := value{line: n.GetToken().Position.Line}
	switch n := n.(type) {
	case *ast.NullNode:
	case *ast.MappingValueNode:
		return c.object(v, []*ast.MappingValueNode{n})
	case *ast.MappingNode:
		return c.object(v, n.Values)
	case *ast.SequenceNode:
		v.kind = list
		for _, item := range n.Values {
			w, err := c.convert(item)
			if err != nil {
				return value{}, err
			}
			v.items = append(v.items, w)
		}
	default:
		text, ok := scalarText(n)
		if !ok {
			return value{}, c.notPlain(v.line)
		}
		v.kind, v.text = scalar, text
	}
	return v, nil
}

func (c yamlConverter) notPlain(line int) error {
	return &Error{c.file, line, "want plain keys and values, without anchors, tags and merges"}
}

func (c yamlConverter) object(v value, pairs []*ast.MappingValueNode) (value, error) {
	v.kind = object
	lines := map[string]int{}
	for _, p := range pairs {
		line := p.Key.GetToken().Position.Line
		key, ok := scalarText(p.Key)
		if p.Key.Type() == ast.NullType {
			key, ok = p.Key.GetToken().Value, true
		}
		if !ok {
			return value{}, c.notPlain(line)
		}
		if first, ok := lines[key]; ok {
			return value{}, &Error{c.file, line, fmt.Sprintf("there are two keys %q, the other at line %d: want one", key, first)}
		}
		lines[key] = line
		w, err := c.convert(p.Value)
		if err != nil {
			return value{}, err
		}
		v.fields = append(v.fields, field{line, key, w})
	}
	if len(pairs) > 0 {
		v.line = v.fields[0].line
	}
	return v, nil
}

// scalarText is what a scalar says, as it is written: whether yes and 1.0 are
// words or numbers is for whoever reads the value.
func scalarText(n ast.Node) (string, bool) {
	switch n := n.(type) {
	case *ast.StringNode:
		return n.Value, true
	case *ast.LiteralNode:
		return n.Value.Value, true
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		return n.GetToken().Value, true
	}
	return "", false
}

// parseJSON reads the one value in text.
func parseJSON(file string, text []byte) (value, error) {
	if _, err := plain.Check(text); err != nil {
		return value{}, &Error{file, 0, err.Error()}
	}
	c := jsonConverter{text: text, dec: json.NewDecoder(bytes.NewReader(text)), at: 1}
	c.dec.UseNumber()
	v, err := c.value()
	if err == nil {
		if _, e := c.dec.Token(); e != io.EOF {
			err = errors.New("more than one value")
		}
	}
	if err != nil {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			err = errors.New("the file ends too early")
		}
		return value{}, &Error{file, c.line(), err.Error()}
	}
	return v, nil
}

// A jsonConverter turns the tokens of a decoder into values.
type jsonConverter struct {
	text []byte
	dec  *json.Decoder

	at, offset int // a line, and where it has been counted up to
}

// line is where the decoder is.
func (c *jsonConverter) line() int {
	to := min(int(c.dec.InputOffset()), len(c.text))
	c.at += bytes.Count(c.text[c.offset:to], []byte("\n"))
	c.offset = to
	return c.at
}

func (c *jsonConverter) value() (value, error) {
	token, err := c.dec.Token()
	if err != nil {
		return value{}, err
	}
	v := value{line: c.line()}
	switch token := token.(type) {
	case nil:
		return v, nil
	case json.Delim:
		if token == '[' {
			return c.list(v)
		}
		return c.object(v)
	}
	v.kind, v.text = scalar, fmt.Sprint(token)
	return v, nil
}

func (c *jsonConverter) list(v value) (value, error) {
	v.kind = list
	for c.dec.More() {
		w, err := c.value()
		if err != nil {
			return value{}, err
		}
		v.items = append(v.items, w)
	}
	_, err := c.dec.Token()
	return v, err
}

func (c *jsonConverter) object(v value) (value, error) {
	v.kind = object
	seen := map[string]bool{}
	for c.dec.More() {
		token, err := c.dec.Token()
		if err != nil {
			return value{}, err
		}
		key := token.(string)
		if seen[key] {
			return value{}, fmt.Errorf("there are two keys %q: want one", key)
		}
		seen[key] = true
		line := c.line()
		w, err := c.value()
		if err != nil {
			return value{}, err
		}
		v.fields = append(v.fields, field{line, key, w})
	}
	_, err := c.dec.Token()
	return v, err
}
