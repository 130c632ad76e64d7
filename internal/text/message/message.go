// Package message decodes protocol buffers and allocates their messages in blocks.
// Package proto allocates each nested message separately and uses reflection, which
// dominated the time for tables with many entries. Decoders pass messages with
// unknown fields to package proto.
package message

import "google.golang.org/protobuf/encoding/protowire"

// block is the number of values that are allocated at once.
const block = 64

// A Slab allocates values in blocks.
type Slab[T any] []T

// Next returns a zero value.
func (s *Slab[T]) Next() *T {
	if len(*s) == 0 {
		*s = make([]T, block)
	}
	p := &(*s)[0]
	*s = (*s)[1:]
	return p
}

// Append appends v to list. A new list gets its first usual elements from a slab.
func Append[T any](s *Slab[*T], usual int, list []*T, v *T) []*T {
	if list == nil {
		if len(*s) < usual {
			*s = make([]*T, block)
		}
		list, *s = (*s)[:0:usual], (*s)[usual:]
	}
	return append(list, v)
}

// Fields calls f for each field of a message, with its number as varint or bytes.
// It reports whether the text is well formed, f accepts all fields, and only
// repeated fields occur twice. Bit n of repeated is set if field n may be repeated.
func Fields(b []byte, repeated uint64, f func(num protowire.Number, v uint64, text []byte) bool) bool {
	var seen uint64
	for len(b) > 0 {
		num, typ, n := protowire.ConsumeTag(b)
		if n < 0 || num > 63 || seen>>num&1 != 0 && repeated>>num&1 == 0 {
			return false
		}
		seen |= 1 << num
		b = b[n:]
		var v uint64
		var text []byte
		switch typ {
		case protowire.VarintType:
			v, n = protowire.ConsumeVarint(b)
		case protowire.BytesType:
			if text, n = protowire.ConsumeBytes(b); text == nil {
				text = []byte{}
			}
			text = text[:len(text):len(text)]
		default:
			return false
		}
		if n < 0 || !f(num, v, text) {
			return false
		}
		b = b[n:]
	}
	return true
}

// Split decodes the elements of a repeated field in text with decode, and returns the
// other fields.
func Split(text []byte, field protowire.Number, decode func(element []byte) error) (rest []byte, err error) {
	for b := text; len(b) > 0; {
		num, typ, n := protowire.ConsumeTag(b)
		if n < 0 {
			return nil, protowire.ParseError(n)
		}
		size := protowire.ConsumeFieldValue(num, typ, b[n:])
		if size < 0 {
			return nil, protowire.ParseError(size)
		}
		whole := b[:n+size]
		b = b[n+size:]
		if num != field || typ != protowire.BytesType {
			rest = append(rest, whole...)
			continue
		}
		element, _ := protowire.ConsumeBytes(whole[n:])
		if err := decode(element); err != nil {
			return nil, err
		}
	}
	return rest, nil
}
