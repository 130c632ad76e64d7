package server

import (
	"encoding/binary"
	"math"
	"math/bits"
	"slices"
	"strings"

	"github.com/p4lb/p4lb/internal/bfrt"
	"github.com/p4lb/p4lb/internal/bfrt/wire"
	"github.com/p4lb/p4lb/internal/dataplane/num"
	"github.com/p4lb/p4lb/internal/text/lists"
)

// A datum is a field of a table's data or a parameter of an action.
type datum struct {
	id         uint32
	name, kind string
	width      int // bits of a number
	repeated   bool
	readOnly   bool
	choices    []string
	preset     *wire.DataField // the default; nil: none
	parts      []*datum        // of a container
}

func newDatum(f *bfrt.Field, readOnly bool) *datum {
	d := &datum{id: f.ID, name: f.Name, repeated: f.Repeated, readOnly: readOnly}
	for _, c := range f.Container {
		d.parts = append(d.parts, dataOf(c)...)
	}
	if f.Type == nil {
		d.kind = "container"
		return d
	}
	d.kind, d.choices = f.Type.Type, f.Type.Choices
	d.width = f.Bits()
	if f.Type.Default != nil && !f.Repeated {
		d.preset = d.constant(f.Type.Default)
	}
	return d
}

// dataOf returns the alternatives of a part of the schema's data. An entry has at
// most one of them.
func dataOf(d *bfrt.Data) []*datum {
	return lists.Map(d.Fields(), func(f *bfrt.Field) *datum { return newDatum(f, d.ReadOnly) })
}

// constant returns a default value of the schema.
func (d *datum) constant(v any) *wire.DataField {
	switch v := v.(type) {
	case bool:
		return d.flag(v)
	case string:
		return d.text(v)
	case float64:
		switch {
		case d.kind == "float":
			return d.float(float32(v))
		case v >= math.MaxUint64:
			return d.number(math.MaxUint64)
		}
		return d.number(uint64(v))
	case int:
		return d.number(uint64(v))
	case uint64:
		return d.number(v)
	}
	return nil
}

// number returns v as a value of d: big-endian, in all the bytes of its type.
func (d *datum) number(v uint64) *wire.DataField {
	b := make([]byte, (d.width+7)/8)
	putUint(b, v)
	return &wire.DataField{FieldId: d.id, Value: &wire.DataField_Stream{Stream: b}}
}

func (d *datum) flag(v bool) *wire.DataField {
	return &wire.DataField{FieldId: d.id, Value: &wire.DataField_BoolVal{BoolVal: v}}
}

func (d *datum) text(v string) *wire.DataField {
	return &wire.DataField{FieldId: d.id, Value: &wire.DataField_StrVal{StrVal: v}}
}

func (d *datum) float(v float32) *wire.DataField {
	return &wire.DataField{FieldId: d.id, Value: &wire.DataField_FloatVal{FloatVal: v}}
}

func (d *datum) numbers(list []uint32) *wire.DataField {
	return &wire.DataField{FieldId: d.id, Value: &wire.DataField_IntArrVal{IntArrVal: &wire.DataField_IntArray{Val: list}}}
}

func (d *datum) flags(list []bool) *wire.DataField {
	return &wire.DataField{FieldId: d.id, Value: &wire.DataField_BoolArrVal{BoolArrVal: &wire.DataField_BoolArray{Val: list}}}
}

// check returns an error unless v is a value of d.
func (d *datum) check(v *wire.DataField) error {
	if d.repeated {
		return d.checkMany(v)
	}
	switch d.kind {
	case "bool":
		if _, ok := v.GetValue().(*wire.DataField_BoolVal); !ok {
			return invalidf("field %s is %s, want a bool", d.name, kindOf(v))
		}
	case "float":
		if _, ok := v.GetValue().(*wire.DataField_FloatVal); !ok {
			return invalidf("field %s is %s, want a float", d.name, kindOf(v))
		}
	case "string":
		s, ok := v.GetValue().(*wire.DataField_StrVal)
		if !ok {
			return invalidf("field %s is %s, want a string", d.name, kindOf(v))
		}
		if len(d.choices) > 0 && !slices.Contains(d.choices, s.StrVal) {
			return invalidf("field %s: %q is none of %s", d.name, s.StrVal, strings.Join(d.choices, ", "))
		}
	default:
		s, ok := v.GetValue().(*wire.DataField_Stream)
		if !ok {
			return invalidf("field %s is %s, want bytes", d.name, kindOf(v))
		}
		return checkBytes(d.name, s.Stream, d.width)
	}
	return nil
}

func (d *datum) checkMany(v *wire.DataField) error {
	switch u := v.GetValue().(type) {
	case *wire.DataField_IntArrVal:
		if d.width == 0 {
			return invalidf("field %s is an array of numbers, and the value is not", d.name)
		}
		for _, n := range u.IntArrVal.GetVal() {
			if bits.Len32(n) > d.width {
				return invalidf("field %s: %d has more than %d bits", d.name, n, d.width)
			}
		}
		return nil
	case *wire.DataField_BoolArrVal:
		if d.kind == "bool" {
			return nil
		}
	case *wire.DataField_StrArrVal:
		if d.kind == "string" {
			return nil
		}
	case *wire.DataField_ContainerArrVal:
		if d.kind == "container" {
			return d.checkContainers(u.ContainerArrVal.GetContainer())
		}
	}
	return invalidf("field %s is %s, want an array of %s", d.name, kindOf(v), d.kind)
}

func (d *datum) checkContainers(list []*wire.DataField_ContainerArray_Container) error {
	for _, c := range list {
		for _, v := range c.GetVal() {
			i := slices.IndexFunc(d.parts, func(p *datum) bool { return p.id == v.GetFieldId() })
			if i < 0 {
				return failf(notFound, "field %s has no part %d", d.name, v.GetFieldId())
			}
			if v.GetValue() == nil {
				continue // ignored
			}
			if err := d.parts[i].check(v); err != nil {
				return err
			}
		}
	}
	return nil
}

func kindOf(v *wire.DataField) string {
	switch v.GetValue().(type) {
	case nil:
		return "without value"
	case *wire.DataField_Stream:
		return "bytes"
	case *wire.DataField_FloatVal:
		return "a float"
	case *wire.DataField_StrVal:
		return "a string"
	case *wire.DataField_BoolVal:
		return "a bool"
	}
	return "an array"
}

// checkBytes checks that b has exactly the bytes of a number of width bits, and no
// bit beyond them.
func checkBytes(name string, b []byte, width int) error {
	if n := (width + 7) / 8; len(b) != n {
		return invalidf("field %s has %d bytes, want %d", name, len(b), n)
	}
	if rest := width % 8; rest != 0 && b[0]>>rest != 0 {
		return invalidf("field %s: %#x has more than %d bits", name, b, width)
	}
	return nil
}

// uintOf decodes a number of at most 64 bits.
func uintOf(b []byte) uint64 {
	if len(b) == 4 {
		return uint64(binary.BigEndian.Uint32(b))
	}
	var v uint64
	for _, c := range b {
		v = v<<8 | uint64(c)
	}
	return v
}

// putUint encodes a number of at most 64 bits into all of b.
func putUint(b []byte, v uint64) {
	for i := len(b) - 1; i >= 0; i, v = i-1, v>>8 {
		b[i] = byte(v)
	}
}

// A keyField is a field of a table's key.
type keyField struct {
	id    uint32
	name  string
	match string
	width int // 0 for a string
}

// exact returns the value of an exact field in a key, nil if the key lacks it.
func (f *keyField) exact(k *wire.TableKey) ([]byte, error) {
	for _, x := range k.GetFields() {
		if x.GetFieldId() != f.id {
			continue
		}
		e, ok := x.GetMatchType().(*wire.KeyField_Exact_)
		if !ok {
			return nil, invalidf("key field %s wants an exact value", f.name)
		}
		if f.width == 0 {
			return e.Exact.GetValue(), nil
		}
		return e.Exact.GetValue(), checkBytes(f.name, e.Exact.GetValue(), f.width)
	}
	return nil, nil
}

// value returns a key field with an exact number.
func (f *keyField) value(v uint64) *wire.KeyField {
	b := make([]byte, (f.width+7)/8)
	putUint(b, v)
	return f.bytes(b)
}

func (f *keyField) bytes(b []byte) *wire.KeyField {
	return &wire.KeyField{FieldId: f.id, MatchType: &wire.KeyField_Exact_{Exact: &wire.KeyField_Exact{Value: b}}}
}

// known rejects fields that the table's key does not have.
func known(keys []keyField, k *wire.TableKey) error {
	for i, x := range k.GetFields() {
		if !slices.ContainsFunc(keys, func(f keyField) bool { return f.id == x.GetFieldId() }) {
			return failf(notFound, "there is no key field %d", x.GetFieldId())
		}
		for _, y := range k.GetFields()[:i] {
			if x.GetFieldId() == y.GetFieldId() {
				return invalidf("key field %d occurs twice", x.GetFieldId())
			}
		}
	}
	return nil
}

// indexOf returns the index in a key that has one field.
func indexOf(keys []keyField, k *wire.TableKey, size int) (int, error) {
	if err := known(keys, k); err != nil {
		return 0, err
	}
	b, err := keys[0].exact(k)
	switch {
	case err != nil:
		return 0, err
	case b == nil:
		return 0, invalidf("the key lacks %s", keys[0].name)
	}
	n := uintOf(b)
	if n >= uint64(size) {
		return 0, invalidf("%s %d is outside 0..%d", keys[0].name, n, size-1)
	}
	return int(n), nil
}

// full extends a number to all the bytes of its width.
func full(b []byte, width int) []byte { return num.Aligned(b, num.Bytes(width)) }
