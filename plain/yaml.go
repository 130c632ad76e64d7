package plain

import (
	"errors"
	"reflect"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

// Unplain is the line of the first anchor, alias or tag of a YAML file, 0 where
// it has none. Nothing that p4lb reads needs them, and a tag of nothing is more
// than the YAML package can decode.
func Unplain(f *ast.File) int {
	line := 0
	for _, doc := range f.Docs {
		if doc.Body != nil {
			ast.Walk(plainVisitor{&line}, doc.Body)
		}
	}
	return line
}

type plainVisitor struct{ line *int }

// Visit looks at one node, and at none below what is not plain.
func (v plainVisitor) Visit(n ast.Node) ast.Visitor {
	switch n.Type() {
	case ast.TagType, ast.AnchorType, ast.AliasType, ast.MergeKeyType:
		if *v.line == 0 {
			*v.line = n.GetToken().Position.Line
		}
		return nil
	}
	return v
}

// YAMLError says what an error of the YAML package is, without words of Go's, and
// where; nil where it does not say.
func YAMLError(err error) (text string, at *token.Token) {
	text, _, _ = strings.Cut(err.Error(), "\n")
	if y := yaml.Error(nil); errors.As(err, &y) {
		text, at = y.GetMessage(), y.GetToken()
	}
	var kind *yaml.TypeError
	var number *yaml.OverflowError
	switch {
	case errors.As(err, &kind):
		text = "want " + kindName(kind.DstType) + ", got " + kindName(kind.SrcType)
	case errors.As(err, &number):
		text = number.SrcNum + ": want " + kindName(number.DstType)
	}
	return text, at
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
