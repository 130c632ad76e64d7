package tree

import (
	"cmp"
	"encoding"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/p4lb/p4lb/internal/text/lists"
	"github.com/p4lb/p4lb/internal/text/plain"
)

// Unmarshal parses YAML and stores it in the value that into points to, as
// [Node.Decode] does.
func Unmarshal(text []byte, into any) (Node, error) {
	n, err := Parse(text)
	if err != nil {
		return n, err
	}
	return n, n.Decode(into)
}

// A nodeUnmarshaler reads nodes of several kinds.
type nodeUnmarshaler interface{ UnmarshalNode(Node) error }

// Decode stores the node in the value that into points to: structs, lists, maps,
// numbers, texts, and types with methods UnmarshalText or
// UnmarshalNode. Keys are the names in yaml or json tags, or else the lower-case
// names of the fields. Unknown keys are errors; missing ones and null leave a
// value unchanged. Errors are of type *Error.
func (n Node) Decode(into any) error { return n.decode("", reflect.ValueOf(into).Elem()) }

// errorf returns an error about the node.
func (n Node) errorf(key, format string, args ...any) error {
	return &Error{Line: n.Line, Key: key, Text: fmt.Sprintf(format, args...)}
}

// want returns the error about a node of the wrong kind.
func (n Node) want(key, what string) error {
	if n.Kind == Scalar {
		return n.errorf(key, "%q: want %s", n.Text, what)
	}
	return n.errorf(key, "want %s, not %v", what, n.Kind)
}

func (n Node) decode(key string, v reflect.Value) error {
	if n.Kind == Null {
		return nil
	}
	if v.Kind() == reflect.Pointer {
		if v.IsNil() {
			v.Set(reflect.New(v.Type().Elem()))
		}
		return n.decode(key, v.Elem())
	}
	var err error
	switch u := v.Addr().Interface().(type) {
	case nodeUnmarshaler:
		err = u.UnmarshalNode(n)
	case encoding.TextUnmarshaler:
		if n.Kind != Scalar {
			return n.want(key, "a value")
		}
		err = u.UnmarshalText([]byte(n.Text))
	default:
		return n.decodeKind(key, v)
	}
	if at, ok := err.(*Error); ok { // from a part of the node
		at.Key, at.Line = Join(key, at.Key), cmp.Or(at.Line, n.Line)
		return at
	}
	if err != nil {
		return &Error{Line: n.Line, Key: key, Text: err.Error(), err: err}
	}
	return nil
}

func (n Node) decodeKind(key string, v reflect.Value) error {
	switch v.Kind() {
	case reflect.Struct:
		return n.decodeStruct(key, v)
	case reflect.Map:
		return n.decodeMap(key, v)
	case reflect.Slice:
		if n.Kind != List {
			return n.want(key, "a list")
		}
		list := reflect.MakeSlice(v.Type(), len(n.Items), len(n.Items))
		for i, item := range n.Items {
			at := fmt.Sprintf("%s[%d]", key, i)
			if item.Kind == Null {
				return item.errorf(at, "is empty")
			}
			if err := item.decode(at, list.Index(i)); err != nil {
				return err
			}
		}
		v.Set(list)
		return nil
	case reflect.Interface:
		v.Set(reflect.ValueOf(n.Value()))
		return nil
	}
	return n.decodeScalar(key, v)
}

func (n Node) decodeStruct(key string, v reflect.Value) error {
	if n.Kind != Object {
		return n.want(key, "keys with values")
	}
	fields := FieldsOf(v.Type())
	for _, f := range n.Fields {
		f.Node.Line = cmp.Or(f.Node.Line, f.Line)
		at := Join(key, f.Key)
		i := slices.IndexFunc(fields, func(s StructField) bool { return s.Key == f.Key })
		if i < 0 {
			f.Node.Line = f.Line
			names := lists.Map(fields, func(s StructField) string { return s.Key })
			slices.Sort(names)
			return f.Node.errorf(at, "there is no key %q%s", f.Key, plain.Meant(f.Key, names))
		}
		if err := f.Node.decode(at, v.FieldByIndex(fields[i].Index)); err != nil {
			return err
		}
	}
	return nil
}

// A StructField is a field of a struct, or of one embedded in it, by its key.
type StructField struct {
	Key   string
	Index []int
	Type  reflect.Type
}

// FieldsOf returns the fields of a struct that files may set.
func FieldsOf(t reflect.Type) (list []StructField) {
	for i := range t.NumField() {
		f := t.Field(i)
		key, options, _ := strings.Cut(cmp.Or(f.Tag.Get("yaml"), f.Tag.Get("json"), strings.ToLower(f.Name)), ",")
		switch {
		case options == "inline", f.Anonymous && f.Tag.Get("json") == "":
			for _, inner := range FieldsOf(f.Type) {
				inner.Index = append([]int{i}, inner.Index...)
				list = append(list, inner)
			}
		case key != "" && key != "-" && f.IsExported():
			list = append(list, StructField{key, f.Index, f.Type})
		}
	}
	return list
}

func (n Node) decodeMap(key string, v reflect.Value) error {
	if n.Kind != Object {
		return n.want(key, "keys with values")
	}
	m := reflect.MakeMap(v.Type())
	for _, f := range n.Fields {
		f.Node.Line = cmp.Or(f.Node.Line, f.Line)
		name := reflect.New(v.Type().Key()).Elem()
		if err := (Node{Line: f.Line, Kind: Scalar, Text: f.Key}).decode(key, name); err != nil {
			return err
		}
		at := Join(key, f.Key)
		if f.Kind == Null {
			return f.Node.errorf(at, "is empty")
		}
		value := reflect.New(v.Type().Elem()).Elem()
		if err := f.Node.decode(at, value); err != nil {
			return err
		}
		m.SetMapIndex(name, value)
	}
	v.Set(m)
	return nil
}

func (n Node) decodeScalar(key string, v reflect.Value) error {
	what, err := "a text", error(nil)
	switch v.Kind() {
	case reflect.String:
		v.SetString(n.Text)
	case reflect.Bool:
		what = "true or false"
		var x bool
		if x, err = strconv.ParseBool(strings.ToLower(n.Text)); len(n.Text) < 4 || n.Word {
			err = strconv.ErrSyntax
		}
		v.SetBool(x)
	case reflect.Int, reflect.Int64:
		what = "a whole number"
		var x int64
		x, err = strconv.ParseInt(n.Text, 0, v.Type().Bits())
		if f, e := number(n.Text); err != nil && e == nil && f == math.Trunc(f) && math.Abs(f) < 1<<53 {
			x, err = int64(f), nil
		}
		v.SetInt(x)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		what = "a whole number of at least 0"
		var x uint64
		x, err = strconv.ParseUint(n.Text, 0, v.Type().Bits())
		v.SetUint(x)
	case reflect.Float64:
		what = "a number"
		var x float64
		x, err = number(n.Text)
		v.SetFloat(x)
	default:
		panic(fmt.Sprintf("tree: %s has the type %v, which cannot be decoded", key, v.Type()))
	}
	if err != nil || n.Kind != Scalar {
		return n.want(key, what)
	}
	return nil
}

// number parses a finite number.
func number(text string) (float64, error) {
	x, err := strconv.ParseFloat(strings.ReplaceAll(text, "_", ""), 64)
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return 0, strconv.ErrRange
	}
	return x, err
}

// Join returns the path of a key below another one.
func Join(path, key string) string {
	if path == "" || key == "" || key[0] == '[' {
		return path + key
	}
	return path + "." + key
}
