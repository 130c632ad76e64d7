package describe

import (
	"bytes"
	"fmt"
	"sort"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
)

// Text writes a message as p4c writes its .txtpb files: two comment lines that name
// the schema, then protobuf's text format with fields in the order of their numbers
// and map entries in the order of their keys. The output is deterministic; package
// prototext deliberately is not.
func Text(m proto.Message) []byte {
	var p textPrinter
	d := m.ProtoReflect().Descriptor()
	fmt.Fprintf(&p.out, "# proto-file: %s\n", d.ParentFile().Path())
	fmt.Fprintf(&p.out, "# proto-message: %s\n\n", d.FullName())
	p.message(m.ProtoReflect())
	return p.out.Bytes()
}

// A textPrinter holds the text so far and the current nesting depth.
type textPrinter struct {
	out   bytes.Buffer
	depth int
}

// anyName is the name of the message type that wraps other messages.
const anyName protoreflect.FullName = "google.protobuf.Any"

func (p *textPrinter) message(m protoreflect.Message) {
	if m.Descriptor().FullName() == anyName && p.expandedAny(m) {
		return
	}
	fields := m.Descriptor().Fields()
	order := make([]protoreflect.FieldDescriptor, fields.Len())
	for i := range order {
		order[i] = fields.Get(i)
	}
	sort.Slice(order, func(i, j int) bool { return order[i].Number() < order[j].Number() })
	for _, f := range order {
		if m.Has(f) {
			v := m.Get(f)
			switch {
			case f.IsMap():
				p.entries(f, v.Map())
			case f.IsList():
				for i := range v.List().Len() {
					p.value(f.Name(), f, v.List().Get(i))
				}
			default:
				p.value(f.Name(), f, v)
			}
		}
	}
}

func (p *textPrinter) entries(f protoreflect.FieldDescriptor, m protoreflect.Map) {
	var keys []protoreflect.MapKey
	m.Range(func(k protoreflect.MapKey, _ protoreflect.Value) bool {
		keys = append(keys, k)
		return true
	})
	sort.Slice(keys, func(i, j int) bool { return keys[i].String() < keys[j].String() })
	for _, k := range keys {
		p.open(string(f.Name()))
		p.value("key", f.MapKey(), k.Value())
		p.value("value", f.MapValue(), m.Get(k))
		p.close()
	}
}

func (p *textPrinter) value(name protoreflect.Name, f protoreflect.FieldDescriptor, v protoreflect.Value) {
	switch f.Kind() {
	case protoreflect.MessageKind, protoreflect.GroupKind:
		p.open(string(name))
		p.message(v.Message())
		p.close()
	case protoreflect.StringKind:
		p.line(name, quoted([]byte(v.String())))
	case protoreflect.BytesKind:
		p.line(name, quoted(v.Bytes()))
	case protoreflect.EnumKind:
		if e := f.Enum().Values().ByNumber(v.Enum()); e != nil {
			p.line(name, string(e.Name()))
		} else {
			p.line(name, fmt.Sprint(v.Enum()))
		}
	default:
		p.line(name, v.String())
	}
}

// expandedAny prints the message inside an Any, if its type is known.
func (p *textPrinter) expandedAny(m protoreflect.Message) bool {
	fields := m.Descriptor().Fields()
	url := m.Get(fields.ByName("type_url")).String()
	inner, err := protoregistry.GlobalTypes.FindMessageByURL(url)
	if err != nil {
		return false
	}
	msg := inner.New()
	if proto.Unmarshal(m.Get(fields.ByName("value")).Bytes(), msg.Interface()) != nil {
		return false
	}
	p.open("[" + url + "]")
	p.message(msg)
	p.close()
	return true
}

func (p *textPrinter) line(name protoreflect.Name, value string) {
	p.indent()
	fmt.Fprintf(&p.out, "%s: %s\n", name, value)
}

func (p *textPrinter) open(name string) {
	p.indent()
	fmt.Fprintf(&p.out, "%s {\n", name)
	p.depth++
}

func (p *textPrinter) close() {
	p.depth--
	p.indent()
	p.out.WriteString("}\n")
}

func (p *textPrinter) indent() {
	for range p.depth {
		p.out.WriteString("  ")
	}
}

// quoted returns a string or bytes literal of the text format, with octal escapes
// for everything that is not printable ASCII.
func quoted(b []byte) string {
	var out bytes.Buffer
	out.WriteByte('"')
	for _, c := range b {
		switch {
		case c == '\n':
			out.WriteString(`\n`)
		case c == '\r':
			out.WriteString(`\r`)
		case c == '\t':
			out.WriteString(`\t`)
		case c == '"' || c == '\'' || c == '\\':
			out.WriteByte('\\')
			out.WriteByte(c)
		case c < ' ' || c > '~':
			fmt.Fprintf(&out, `\%03o`, c)
		default:
			out.WriteByte(c)
		}
	}
	out.WriteByte('"')
	return out.String()
}
