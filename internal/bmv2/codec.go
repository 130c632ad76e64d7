package bmv2

import (
	"bytes"
	"fmt"
	"io"
	"reflect"
	"strconv"
	"strings"
)

// Load parses and validates a document. Errors contain the path of the faulty
// value, for example "pipelines[0].tables[3].key[1].target: …".
func Load(data []byte) (*Config, error) {
	c, err := decode(data)
	if err != nil {
		return nil, err
	}
	if err := c.Validate(); err != nil {
		return nil, err
	}
	return c, nil
}

func decode(data []byte) (*Config, error) {
	n, err := parseNode(data)
	if err != nil {
		return nil, err
	}
	c := new(Config)
	var d decoder
	if d.into(n, reflect.ValueOf(c).Elem()); d.err != nil {
		return nil, d.err
	}
	return c, nil
}

// Write writes the document in p4c's layout. Equal Configs result in equal
// bytes.
func (c *Config) Write(w io.Writer) error {
	p := &printer{w: w}
	p.value(reflect.ValueOf(c), 0)
	p.b.WriteByte('\n')
	p.flush()
	return p.err
}

// A printer writes values part by part. The nodes of a complete document would
// need many times the memory of its text.
type printer struct {
	w   io.Writer
	b   bytes.Buffer
	err error
}

func (p *printer) flush() {
	if p.err == nil {
		_, p.err = p.w.Write(p.b.Bytes())
	}
	p.b.Reset()
}

func (p *printer) value(v reflect.Value, indent int) {
	for v.Kind() == reflect.Pointer && !v.IsNil() {
		v = v.Elem()
	}
	if _, ok := addressable(v).Interface().(custom); !ok {
		switch {
		case v.Kind() == reflect.Struct:
			p.b.WriteByte('{')
			first := true
			for i := range v.NumField() {
				key, opts := tag(v.Type().Field(i))
				f := v.Field(i)
				if f.IsZero() && opts == "omitempty" {
					continue
				}
				if !first {
					p.b.WriteByte(',')
				}
				first = false
				newline(&p.b, indent+1)
				writeString(&p.b, key)
				p.b.WriteString(" : ")
				if f.IsZero() && opts == "null" {
					p.b.WriteString("null")
					continue
				}
				p.value(f, indent+1)
			}
			newline(&p.b, indent)
			p.b.WriteByte('}')
			return
		case v.Kind() == reflect.Slice && v.Len() > 0 && isStructure(v.Type().Elem()):
			p.b.WriteByte('[')
			for i := range v.Len() {
				if i > 0 {
					p.b.WriteByte(',')
				}
				newline(&p.b, indent+1)
				p.value(v.Index(i), indent+1)
				if p.b.Len() > 1<<16 {
					p.flush()
				}
			}
			newline(&p.b, indent)
			p.b.WriteByte(']')
			return
		}
	}
	encode(v).write(&p.b, indent)
}

// isStructure reports whether values of type t are structs that are written
// field by field.
func isStructure(t reflect.Type) bool {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t.Kind() == reflect.Struct && !reflect.PointerTo(t).Implements(reflect.TypeFor[custom]())
}

// custom is implemented by types with a JSON form other than an object with one
// key per struct field. decodeNode reports errors through d and may leave the
// receiver incomplete.
type custom interface {
	decodeNode(d *decoder, n *node)
	encodeNode() *node
}

// A decoder fills Go values from nodes. It tracks the path in the document and
// records the first error.
type decoder struct {
	path []string
	err  error
}

func (d *decoder) failf(format string, args ...any) {
	if d.err == nil {
		d.err = placed(strings.Join(d.path, ""), fmt.Errorf(format, args...))
	}
}

func placed(path string, err error) error {
	if path = strings.TrimPrefix(path, "."); path == "" {
		return err
	}
	return fmt.Errorf("%s: %w", path, err)
}

// at calls f with a step added to the path.
func (d *decoder) at(step string, f func()) {
	d.path = append(d.path, step)
	f()
	d.path = d.path[:len(d.path)-1]
}

func (d *decoder) index(i int, f func()) { d.at("["+strconv.Itoa(i)+"]", f) }

func (d *decoder) into(n *node, v reflect.Value) {
	if v.Kind() == reflect.Pointer {
		if n.kind != nullNode {
			v.Set(reflect.New(v.Type().Elem()))
			d.into(n, v.Elem())
		}
		return
	}
	if c, ok := v.Addr().Interface().(custom); ok {
		c.decodeNode(d, n)
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		if d.is(n, objectNode) {
			for i := range v.NumField() {
				key, opts := tag(v.Type().Field(i))
				e := n.get(key)
				if e == nil || e.kind == nullNode && opts != "" {
					continue
				}
				d.at("."+key, func() { d.into(e, v.Field(i)) })
			}
		}
	case reflect.Slice:
		d.slice(n, v)
	case reflect.String:
		v.SetString(d.text(n))
	case reflect.Int:
		v.SetInt(int64(d.integer(n)))
	case reflect.Bool:
		v.SetBool(d.boolean(n))
	}
}

func (d *decoder) slice(n *node, v reflect.Value) {
	if n.kind == nullNode || !d.is(n, arrayNode) {
		return
	}
	v.Set(reflect.MakeSlice(v.Type(), len(n.list), len(n.list)))
	for i, e := range n.list {
		d.index(i, func() {
			if e.kind == nullNode {
				d.failf("null is not allowed here")
				return
			}
			d.into(e, v.Index(i))
		})
	}
}

func (d *decoder) is(n *node, k nodeKind) bool {
	if n.kind != k {
		d.failf("expected %v, found %v", k, n.kind)
	}
	return n.kind == k
}

func (d *decoder) text(n *node) string {
	d.is(n, stringNode)
	return n.text
}

func (d *decoder) integer(n *node) int {
	if !d.is(n, numberNode) {
		return 0
	}
	i, err := strconv.ParseInt(n.text, 10, 0)
	if err != nil {
		d.failf("%s is not a 64-bit integer", n.text)
	}
	return int(i)
}

// boolean also accepts numbers: p4c writes 0 for the sign of a boolean field.
func (d *decoder) boolean(n *node) bool {
	switch n.kind {
	case falseNode, trueNode:
		return n.kind == trueNode
	case numberNode:
		return d.integer(n) != 0
	}
	d.failf("expected a boolean, found %v", n.kind)
	return false
}

// tuple checks that n is an array of low to high elements.
func (d *decoder) tuple(n *node, low, high int) bool {
	if !d.is(n, arrayNode) {
		return false
	}
	if len(n.list) < low || len(n.list) > high {
		d.failf("an array of %d elements: want %d to %d", len(n.list), low, high)
		return false
	}
	return true
}

// member decodes element i of a tuple.
func (d *decoder) member(n *node, i int, f func(*node)) {
	d.index(i, func() { f(n.list[i]) })
}

// key decodes the value of a key if the object has it and it is not null.
func (d *decoder) key(n *node, key string, f func(*node)) {
	if e := n.get(key); e != nil && e.kind != nullNode {
		d.at("."+key, func() { f(e) })
	}
}

func tag(f reflect.StructField) (key, opts string) {
	key, opts, _ = strings.Cut(f.Tag.Get("bmv2"), ",")
	return key, opts
}

func encode(v reflect.Value) *node {
	if v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return &node{kind: nullNode}
		}
		return encode(v.Elem())
	}
	if c, ok := addressable(v).Interface().(custom); ok {
		return c.encodeNode()
	}
	switch v.Kind() {
	case reflect.Struct:
		n := object()
		for i := range v.NumField() {
			key, opts := tag(v.Type().Field(i))
			switch {
			case !v.Field(i).IsZero():
				n.set(key, encode(v.Field(i)))
			case opts == "omitempty":
			case opts == "null":
				n.set(key, &node{kind: nullNode})
			default:
				n.set(key, encode(v.Field(i)))
			}
		}
		return n
	case reflect.Slice:
		n := listNode()
		for i := range v.Len() {
			n.list = append(n.list, encode(v.Index(i)))
		}
		return n
	case reflect.String:
		return textNode(v.String())
	case reflect.Bool:
		return boolNode(v.Bool())
	}
	return intNode(int(v.Int()))
}

func addressable(v reflect.Value) reflect.Value {
	if v.CanAddr() {
		return v.Addr()
	}
	p := reflect.New(v.Type())
	p.Elem().Set(v)
	return p
}
