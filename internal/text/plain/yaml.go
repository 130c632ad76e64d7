package plain

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// Decode decodes YAML into a value. It applies the limits of Check and rejects
// unknown keys and unsupported features of YAML. Its errors are YAMLErrors.
func Decode(text []byte, into any) (*ast.File, error) {
	line, err := Check(text)
	if err != nil {
		return nil, &YAMLError{Line: line, Text: err.Error(), err: err}
	}
	tree, err := parser.ParseBytes(text, 0)
	if err == nil {
		if line, err := checkTree(tree); err != nil {
			return tree, &YAMLError{Line: line, Text: err.Error(), err: err}
		}
		if len(tree.Docs) == 1 && tree.Docs[0].Body != nil && tree.Docs[0].Body.Type() == ast.MappingType {
			err = yaml.NodeToValue(tree.Docs[0].Body, into, yaml.Strict()) // Unmarshal would parse the text again
		} else {
			err = yaml.UnmarshalWithOptions(text, into, yaml.Strict())
		}
	}
	if err != nil {
		return tree, errorOf(err, tree, reflect.TypeOf(into))
	}
	return tree, nil
}

// A YAMLError is an error in a YAML text, in one line and without Go terms.
type YAMLError struct {
	Line int    // 0 if unknown
	Key  string // for example traffic[0].workload; "" if unknown
	Text string
	err  error
}

// Error returns the text alone; the caller knows the file.
func (f *YAMLError) Error() string { return f.Text }

// Unwrap returns the error of the value's own decoder.
func (f *YAMLError) Unwrap() error { return f.err }

// errorOf converts an error of the YAML package about decoding into the type.
func errorOf(err error, tree *ast.File, into reflect.Type) *YAMLError {
	f := &YAMLError{err: err}
	if y := yaml.Error(nil); !errors.As(err, &y) {
		f.Text, _, _ = strings.Cut(err.Error(), "\n")
	} else { // its Error would add the surrounding text, which takes quadratic time
		f.Text = y.GetMessage()
		if at := y.GetToken(); at != nil {
			f.Line, f.Key = at.Position.Line, keyAt(tree, at)
		}
	}
	var kind *yaml.TypeError
	var number *yaml.OverflowError
	var unknown *yaml.UnknownFieldError
	switch {
	case errors.As(err, &kind):
		f.Text = "want " + kindName(kind.DstType) + ", got " + kindName(kind.SrcType)
	case errors.As(err, &number):
		f.Text = number.SrcNum + ": want " + kindName(number.DstType)
	case errors.As(err, &unknown) && unknown.Token != nil:
		name := unknown.Token.Value
		place, _, _ := strings.Cut(f.Key, name)
		f.Key = place + name
		f.Text = fmt.Sprintf("there is no key %q%s", name, Meant(name, keysOf(into, place)))
	}
	return f
}

// keyAt returns the path of a token, or of the last key in its line.
func keyAt(tree *ast.File, t *token.Token) string {
	if tree == nil {
		return ""
	}
	v := tokenVisitor{token: t}
	for _, doc := range tree.Docs {
		if doc.Body != nil {
			ast.Walk(&v, doc.Body)
		}
	}
	return KeyOf(cmp.Or(v.exact, v.line))
}

// KeyOf converts a path of the YAML package to the form in the file: the
// package quotes keys that contain dots.
func KeyOf(path string) string { return strings.ReplaceAll(strings.TrimPrefix(path, "$."), "'", "") }

type tokenVisitor struct {
	token       *token.Token
	exact, line string
}

// Visit implements ast.Visitor.
func (v *tokenVisitor) Visit(n ast.Node) ast.Visitor {
	if t := n.GetToken(); t != nil && t.Position.Line == v.token.Position.Line && n.GetPath() != "$" {
		v.line = n.GetPath()
		if t.Position.Column == v.token.Position.Column && t.Value == v.token.Value {
			v.exact = v.line
		}
	}
	return v
}

// keysOf returns the keys of the type at a position such as "traffic[0].", or
// none if there is no such position.
func keysOf(t reflect.Type, place string) []string {
	for _, key := range strings.FieldsFunc(place, func(r rune) bool { return strings.ContainsRune(".[]", r) }) {
		t = element(t)
		switch {
		case t.Kind() == reflect.Struct:
			t = fieldsOf(t)[key]
		case t.Kind() == reflect.Slice || t.Kind() == reflect.Map:
			t = t.Elem()
		default:
			return nil
		}
		if t == nil {
			return nil
		}
	}
	if t = element(t); t.Kind() != reflect.Struct {
		return nil
	}
	return slices.Sorted(maps.Keys(fieldsOf(t)))
}

// element returns the element type of a pointer, or the type itself.
func element(t reflect.Type) reflect.Type {
	if t.Kind() == reflect.Pointer {
		return t.Elem()
	}
	return t
}

// fieldsOf maps the keys of a struct, including inlined structs, to their
// types.
func fieldsOf(t reflect.Type) map[string]reflect.Type {
	fields := map[string]reflect.Type{}
	for f := range t.Fields() {
		key, options, _ := strings.Cut(cmp.Or(f.Tag.Get("yaml"), strings.ToLower(f.Name)), ",")
		switch {
		case options == "inline":
			maps.Copy(fields, fieldsOf(element(f.Type)))
		case key != "" && key != "-":
			fields[key] = f.Type
		}
	}
	return fields
}

// checkTree rejects features that no file of p4lb needs: anchors, aliases and
// tags, some of which the YAML package cannot decode; NaN and infinity, which
// every range check would have to consider; and a second document, which would
// be ignored.
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

// A visitor records the first rejected node.
type visitor struct {
	line int
	err  error
}

// Visit implements ast.Visitor. It does not descend after an error.
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

// kindName describes a Go type in terms of YAML.
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
		return "a whole number of at least 0"
	case reflect.Float32, reflect.Float64:
		return "a number"
	case reflect.String:
		return "a text"
	case reflect.Slice, reflect.Array:
		return "a list"
	}
	return "keys with values"
}
