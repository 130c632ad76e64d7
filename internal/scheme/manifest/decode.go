package manifest

import (
	"cmp"
	"encoding"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/p4lb/p4lb/internal/text/lists"
	"github.com/p4lb/p4lb/internal/text/plain"
)

// Decode reads a manifest in JSON or YAML and checks it as far as that can be
// done without its program. file is what messages call it. An error is of type
// *Error.
func Decode(file string, text []byte) (*Manifest, error) {
	root, err := parse(file, text)
	if err != nil {
		return nil, err
	}
	if err := checkVersion(file, root); err != nil {
		return nil, err
	}
	m := &Manifest{}
	d := decoder{file}
	if err := d.decode(root, "", reflect.ValueOf(m).Elem()); err != nil {
		return nil, err
	}
	if err := m.Validate(); err != nil {
		return nil, locate(file, root, err)
	}
	return m, nil
}

// Unmarshal reads strictly what JSON or YAML text says into the value that into
// points to, by its json tags: structs, lists, maps by words, numbers, words and
// enumerations. An error is of type *Error.
func Unmarshal(file string, text []byte, into any) error {
	trees.Lock()
	root, ok := trees.read[string(text)]
	trees.Unlock()
	if !ok {
		var err error
		if root, err = parse(file, text); err != nil {
			return err
		}
		trees.Lock()
		if len(trees.read) >= maxTrees {
			clear(trees.read)
		}
		if len(text) <= maxTreeText {
			trees.read[string(text)] = root
		}
		trees.Unlock()
	}
	d := decoder{file}
	return d.decode(root, "", reflect.ValueOf(into).Elem())
}

// trees are what Unmarshal has parsed, by the text: most programs say the same of what
// they have in common. Nothing changes a tree.
var trees = struct {
	sync.Mutex
	read map[string]node
}{read: map[string]node{}}

const (
	maxTrees    = 256
	maxTreeText = 8 << 10
)

// checkVersion comes first: in another version the keys may mean anything.
func checkVersion(file string, root node) error {
	if root.shape != mapping {
		return &Error{File: file, Line: root.line, Msg: fmt.Sprintf("want keys with values, not %v: the first is version: %d", root.shape, Version)}
	}
	i := slices.IndexFunc(root.fields, func(f nodeField) bool { return f.key == "version" })
	if i < 0 {
		return &Error{File: file, Line: root.line, Place: "version", Msg: fmt.Sprintf("is missing: want %d", Version)}
	}
	if f := root.fields[i]; f.text != strconv.Itoa(Version) {
		said := f.node.shape.String()
		if f.node.shape == scalar {
			said = f.node.text
		}
		return &Error{File: file, Line: f.line, Place: "version", Msg: fmt.Sprintf("is %s: this p4lb reads version %d", said, Version)}
	}
	return nil
}

// An enumeration is a type of words that has a table of them.
type enumeration interface{ Words() []Word }

// A decoder puts nodes into values.
type decoder struct{ file string }

func (d *decoder) errorf(n node, place, format string, args ...any) error {
	return &Error{File: d.file, Line: n.line, Place: place, Msg: fmt.Sprintf(format, args...)}
}

func (d *decoder) decode(n node, place string, v reflect.Value) error {
	if n.shape == nothing {
		return nil // as if it were not there
	}
	if v.Kind() == reflect.Pointer {
		if v.IsNil() {
			v.Set(reflect.New(v.Type().Elem()))
		}
		return d.decode(n, place, v.Elem())
	}
	if u, ok := v.Addr().Interface().(encoding.TextUnmarshaler); ok {
		if n.shape != scalar {
			return d.errorf(n, place, "want a value, not %v", n.shape)
		}
		if err := u.UnmarshalText([]byte(n.text)); err != nil {
			return d.errorf(n, place, "%v", err)
		}
		return nil
	}
	switch v.Kind() {
	case reflect.Struct:
		return d.object(n, place, v)
	case reflect.Slice:
		if n.shape != sequence {
			return d.errorf(n, place, "want a list, not %v", n.shape)
		}
		list := reflect.MakeSlice(v.Type(), len(n.items), len(n.items))
		for i, item := range n.items {
			at := fmt.Sprintf("%s[%d]", place, i)
			if item.shape == nothing {
				return d.errorf(item, at, "is empty")
			}
			if err := d.decode(item, at, list.Index(i)); err != nil {
				return err
			}
		}
		v.Set(list)
		return nil
	case reflect.Map:
		return d.words(n, place, v)
	}
	return d.scalar(n, place, v)
}

func (d *decoder) object(n node, place string, v reflect.Value) error {
	if n.shape != mapping {
		return d.errorf(n, place, "want keys with values, not %v", n.shape)
	}
	fields := fieldsOf(v.Type())
	for _, f := range n.fields {
		i := slices.IndexFunc(fields, func(s structField) bool { return s.name == f.key })
		at := join(place, f.key)
		if i < 0 {
			names := make([]string, len(fields))
			for i := range fields {
				names[i] = fields[i].name
			}
			f.node.line = f.line
			return d.errorf(f.node, place, "there is no key %q%s", f.key, plain.Meant(f.key, names))
		}
		f.node.line = cmp.Or(f.node.line, f.line)
		if err := d.decode(f.node, at, v.FieldByIndex(fields[i].index)); err != nil {
			return err
		}
	}
	return nil
}

func (d *decoder) words(n node, place string, v reflect.Value) error {
	if n.shape != mapping {
		return d.errorf(n, place, "want keys with values, not %v", n.shape)
	}
	m := reflect.MakeMap(v.Type())
	for _, f := range n.fields {
		key := reflect.New(v.Type().Key()).Elem()
		f.node.line = f.line
		if err := d.scalar(node{line: f.line, shape: scalar, text: f.key, quoted: true}, place, key); err != nil {
			return err
		}
		at := join(place, f.key)
		if f.node.shape == nothing {
			return d.errorf(f.node, at, "is empty")
		}
		value := reflect.New(v.Type().Elem()).Elem()
		if err := d.decode(f.node, at, value); err != nil {
			return err
		}
		m.SetMapIndex(key, value)
	}
	v.Set(m)
	return nil
}

func (d *decoder) scalar(n node, place string, v reflect.Value) error {
	if n.shape != scalar {
		return d.errorf(n, place, "want a value, not %v", n.shape)
	}
	switch v.Kind() {
	case reflect.String:
		if e, ok := v.Interface().(enumeration); ok {
			if names := wordNames(e); !slices.Contains(names, n.text) {
				return d.errorf(n, place, "there is no %q%s", n.text, plain.Meant(n.text, names))
			}
		}
		v.SetString(n.text)
	case reflect.Bool:
		if n.quoted || n.text != "true" && n.text != "false" {
			return d.errorf(n, place, "%q: want true or false", n.text)
		}
		v.SetBool(n.text == "true")
	case reflect.Int, reflect.Int64:
		x, err := strconv.ParseInt(n.text, 0, v.Type().Bits())
		if err != nil || n.quoted {
			return d.errorf(n, place, "%q: want a whole number", n.text)
		}
		v.SetInt(x)
	case reflect.Uint64:
		x, err := strconv.ParseUint(n.text, 0, 64)
		if err != nil || n.quoted {
			return d.errorf(n, place, "%q: want a whole number from 0", n.text)
		}
		v.SetUint(x)
	default:
		panic(fmt.Sprintf("manifest: %s is of the type %v, which cannot be read", place, v.Type()))
	}
	return nil
}

// A structField is one of a struct by its name in manifests, of embedded structs
// as well.
type structField struct {
	name  string
	index []int
	typ   reflect.Type
}

func fieldsOf(t reflect.Type) []structField {
	var list []structField
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous || name == "" || name == "-" {
			continue
		}
		list = append(list, structField{name, f.Index, f.Type})
	}
	return list
}

func wordNames(e enumeration) []string {
	return lists.Map(e.Words(), func(w Word) string { return w.Name })
}

func join(place, key string) string {
	if place == "" {
		return key
	}
	return place + "." + key
}

// locate adds the file and the line to an error about a place.
func locate(file string, root node, err error) error {
	e, ok := err.(*Error)
	if !ok {
		return &Error{File: file, Msg: err.Error()}
	}
	located := *e
	located.File, located.Line = file, lineAt(root, e.Place)
	return &located
}

// lineAt is the line of a place, or of the nearest one around it.
func lineAt(n node, place string) int {
	line := n.line
	for place != "" {
		key, rest := place, ""
		if i := strings.IndexAny(place[1:], ".["); i >= 0 {
			key, rest = place[:i+1], place[i+1:]
		}
		place = strings.TrimPrefix(rest, ".")
		if index, ok := strings.CutPrefix(key, "["); ok {
			i, err := strconv.Atoi(strings.TrimSuffix(index, "]"))
			if err != nil || i >= len(n.items) {
				return line
			}
			n = n.items[i]
		} else {
			i := slices.IndexFunc(n.fields, func(f nodeField) bool { return f.key == key })
			if i < 0 {
				return line
			}
			line, n = n.fields[i].line, n.fields[i].node
		}
		if n.line > 0 {
			line = n.line
		}
	}
	return line
}
