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

// Decode reads YAML into a value, with no key left over, within the limits of Check
// and without what nothing here needs. Its errors are YAMLErrors.
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
			err = yaml.NodeToValue(tree.Docs[0].Body, into, yaml.Strict()) // Unmarshal would parse once more
		} else {
			err = yaml.UnmarshalWithOptions(text, into, yaml.Strict())
		}
	}
	if err != nil {
		return tree, errorOf(err, tree, reflect.TypeOf(into))
	}
	return tree, nil
}

// A YAMLError is what is wrong with a YAML text, in one line and without words of Go's.
type YAMLError struct {
	Line int    // 0 where it is not known
	Key  string // such as traffic[0].workload; "" where it is not known
	Text string
	err  error
}

// Error is the text alone: who has read a file says which.
func (f *YAMLError) Error() string { return f.Text }

// Unwrap gives the error of who read the value.
func (f *YAMLError) Unwrap() error { return f.err }

// errorOf is an error of the YAML package about a text that was to become a value of
// the type.
func errorOf(err error, tree *ast.File, into reflect.Type) *YAMLError {
	f := &YAMLError{err: err}
	if y := yaml.Error(nil); !errors.As(err, &y) {
		f.Text, _, _ = strings.Cut(err.Error(), "\n")
	} else { // its Error shows the text around it, which takes the square of that
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

// keyAt is the path of a token, or else of the last key on its line.
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

// KeyOf is a path of the YAML package as the file has it: that quotes keys that
// contain dots.
func KeyOf(path string) string { return strings.ReplaceAll(strings.TrimPrefix(path, "$."), "'", "") }

type tokenVisitor struct {
	token       *token.Token
	exact, line string
}

// Visit looks at one node of the tree.
func (v *tokenVisitor) Visit(n ast.Node) ast.Visitor {
	if t := n.GetToken(); t != nil && t.Position.Line == v.token.Position.Line && n.GetPath() != "$" {
		v.line = n.GetPath()
		if t.Position.Column == v.token.Position.Column && t.Value == v.token.Value {
			v.exact = v.line
		}
	}
	return v
}

// keysOf lists the keys that a value of the type has at a place such as "traffic[0].",
// none where there is no such place.
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

// element is what a pointer leads to, and else the type itself.
func element(t reflect.Type) reflect.Type {
	if t.Kind() == reflect.Pointer {
		return t.Elem()
	}
	return t
}

// fieldsOf maps the keys of a struct, and of those that are inlined in it, to their types.
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
