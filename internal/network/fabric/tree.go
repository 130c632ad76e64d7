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

	"github.com/p4lb/p4lb/internal/text/plain"
)

// A value is a value in a YAML or JSON file. Unlike a map it preserves order
// and lines.
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

// String returns the name of the kind in messages.
func (k kind) String() string {
	return [...]string{"nothing", "a word", "a list", "keys with values"}[k]
}

// get returns the value of a key, or a null value.
func (v value) get(key string) value {
	for _, f := range v.fields {
		if f.key == key {
			return f.value
		}
	}
	return value{}
}

// parseYAML parses a single YAML document.
func parseYAML(file string, text []byte) (v value, err error) {
	pieces, line, err := plain.Cut(text)
	if err != nil {
		return value{}, &Error{file, line, err.Error()}
	}
	section := -1
	for i := range pieces {
		c := yamlConverter{file, &pieces[i]}
		part, err := c.parse()
		switch {
		case err != nil:
			return value{}, err
		case i == 0:
			v = part
		case pieces[i].Section == section:
			err = v.fields[len(v.fields)-1].join(part.fields[0].value, c)
		default:
			err = v.join(part, c)
		}
		if err != nil {
			return value{}, err
		}
		section = pieces[i].Section
	}
	return v, unlike(file, v)
}

// parse parses a piece.
func (c yamlConverter) parse() (v value, err error) {
	f, err := parser.ParseBytes(c.piece.Text, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		e := &Error{c.file, 0, ""}
		if y := yaml.Error(nil); !errors.As(err, &y) {
			e.Msg = err.Error()
		} else { // its Error would include the surrounding text
			e.Msg = y.GetMessage()
			if t := y.GetToken(); t != nil {
				e.Line = c.piece.Line(t.Position.Line)
			}
		}
		return value{}, e
	}
	for _, d := range f.Docs {
		switch {
		case d.Body == nil || d.Body.Type() == ast.CommentType:
		case v.kind != null:
			return value{}, &Error{c.file, c.line(d.Body), "a second document: want one"}
		default:
			if v, err = c.convert(d.Body); err != nil {
				return value{}, err
			}
		}
	}
	return v, nil
}

// join appends another piece of the same value.
func (v *value) join(more value, c yamlConverter) error {
	if v.kind != more.kind {
		return &Error{c.file, more.line, fmt.Sprintf("%v among %v: want one of them", more.kind, v.kind)}
	}
	v.items = append(v.items, more.items...)
	v.fields = append(v.fields, more.fields...)
	return nil
}

// unlike rejects duplicate keys.
func unlike(file string, v value) error {
	lines := make(map[string]int, len(v.fields))
	for _, f := range v.fields {
		if first, ok := lines[f.key]; ok {
			return &Error{file, f.line, fmt.Sprintf("there are two keys %q, the other at line %d: want one", f.key, first)}
		}
		lines[f.key] = f.line
		if err := unlike(file, f.value); err != nil {
			return err
		}
	}
	for _, item := range v.items {
		if err := unlike(file, item); err != nil {
			return err
		}
	}
	return nil
}

// A yamlConverter converts the syntax tree of a piece to values.
type yamlConverter struct {
	file  string
	piece *plain.Piece
}

func (c yamlConverter) line(n ast.Node) int { return c.piece.Line(n.GetToken().Position.Line) }

func (c yamlConverter) convert(n ast.Node) (value, error) {
	v := value{line: c.line(n)}
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
	for _, p := range pairs {
		line := c.line(p.Key)
		key, ok := scalarText(p.Key)
		if p.Key.Type() == ast.NullType {
			key, ok = p.Key.GetToken().Value, true
		}
		if !ok {
			return value{}, c.notPlain(line)
		}
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

// scalarText returns the text of a scalar as written. The reader of the value
// decides whether yes and 1.0 are words or numbers.
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

// parseJSON parses a single JSON value.
func parseJSON(file string, text []byte) (value, error) {
	if line, err := plain.Check(text); err != nil {
		return value{}, &Error{file, line, err.Error()}
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
			err = errors.New("unexpected end of file")
		}
		return value{}, &Error{file, c.line(), err.Error()}
	}
	return v, nil
}

// A jsonConverter converts the tokens of a decoder to values.
type jsonConverter struct {
	text []byte
	dec  *json.Decoder

	at, offset int // the current line, and the offset up to which lines have been counted
}

// line returns the line of the decoder's position.
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
