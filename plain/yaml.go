package plain

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// Decode reads YAML into a value, with no key left over, within the limits of Check
// and without what nothing here needs. YAMLError says what its errors are.
func Decode(text []byte, into any) (tree *ast.File, err error) {
	line, err := Check(text)
	if err != nil {
		return nil, &refused{line, err}
	}
	if tree, err = parser.ParseBytes(text, 0); err != nil {
		return tree, err
	}
	if line, err = checkTree(tree); err != nil {
		return tree, &refused{line, err}
	}
	return tree, yaml.UnmarshalWithOptions(text, into, yaml.Strict())
}

// A refused text is one that Decode does not hand on.
type refused struct {
	line int
	error
}

// checkTree refuses what nothing that p4lb reads needs, and says in which line it is:
// anchors, aliases and tags, of which one of nothing is more than the YAML package
// can decode; numbers that are none or have no end, which would have to be looked for
// wherever there is a limit; and a second document, which nobody would read.
func checkTree(f *ast.File) (line int, err error) {
	for i, doc := range f.Docs {
		if doc.Body == nil {
			continue
		}
		if i > 0 {
			return doc.Body.GetToken().Position.Line, errors.New("a second document begins here: want one")
		}
		v := &visitor{}
		ast.Walk(v, doc.Body)
		if v.err != nil {
			return v.line, v.err
		}
	}
	return 0, nil
}

// A visitor remembers the first node that is refused.
type visitor struct {
	line int
	err  error
}

// Visit looks at one node, and at none below what is not plain.
func (v *visitor) Visit(n ast.Node) ast.Visitor {
	if v.err != nil {
		return nil
	}
	switch n.Type() {
	case ast.TagType, ast.AnchorType, ast.AliasType, ast.MergeKeyType:
		v.err = errors.New("want plain keys and values, without anchors, tags and merges")
	case ast.NanType, ast.InfinityType:
		v.err = fmt.Errorf("%s: want a number", n.GetToken().Value)
	default:
		return v
	}
	v.line = n.GetToken().Position.Line
	return nil
}

// YAMLError says what an error of Decode is, without words of Go's, in which line, and
// at what; 0 and nil where that is not known.
func YAMLError(err error) (text string, line int, at *token.Token) {
	text, _, _ = strings.Cut(err.Error(), "\n")
	if r := (*refused)(nil); errors.As(err, &r) {
		return text, r.line, nil
	}
	if y := yaml.Error(nil); errors.As(err, &y) {
		text, at = y.GetMessage(), y.GetToken()
	}
	if at != nil {
		line = at.Position.Line
	}
	var kind *yaml.TypeError
	var number *yaml.OverflowError
	switch {
	case errors.As(err, &kind):
		text = "want " + kindName(kind.DstType) + ", got " + kindName(kind.SrcType)
	case errors.As(err, &number):
		text = number.SrcNum + ": want " + kindName(number.DstType)
	}
	return text, line, at
}

// kindName says what is written for a Go type.
func kindName(t reflect.Type) string {
	if t == nil {
		return "nothing"
	}
	switch t.Kind() {
	case reflect.Pointer:
		return kindName(t.Elem())
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return "a whole number"
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return "a whole number from 0 on"
	case reflect.Float32, reflect.Float64:
		return "a number"
	case reflect.String:
		return "a text"
	case reflect.Slice, reflect.Array:
		return "a list"
	}
	return "keys with values"
}
