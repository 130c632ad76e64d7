package thrift

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"

	wire "github.com/apache/thrift/lib/go/thrift"
)

// The protocol contains the type of each value, so values can be decoded
// without a schema: to bool, int8, int16, int32, int64, float64, []byte (also
// for strings), record, or []any; a list of 64-bit integers becomes []uint64.

// A record is a decoded struct: values by field id.
type record map[int16]any

// A field is one value of a struct to encode.
type field struct {
	id    int16
	value any
}

// fields is a struct to encode, in order.
type fields []field

const (
	// maxDepth bounds the nesting of decoded values.
	maxDepth = 8
	// callValues and answerValues bound the number of values in a call and in a
	// reply, without numbers in lists. A value of one byte takes a hundred
	// bytes of memory.
	callValues   = 1 << 16
	answerValues = 1 << 23
)

// A reader decodes a message of at most left values.
type reader struct {
	in   wire.TProtocol
	left int
}

func (r *reader) record(ctx context.Context, depth int) (record, error) {
	in := r.in
	if depth == 0 {
		return nil, fmt.Errorf("structs are nested more than %d deep", maxDepth)
	}
	if _, err := in.ReadStructBegin(ctx); err != nil {
		return nil, err
	}
	fields := record{}
	for {
		_, typ, id, err := in.ReadFieldBegin(ctx)
		if err != nil {
			return nil, err
		}
		if typ == wire.STOP {
			return fields, in.ReadStructEnd(ctx)
		}
		if fields[id], err = r.value(ctx, typ, depth); err != nil {
			return nil, err
		}
		if err := in.ReadFieldEnd(ctx); err != nil {
			return nil, err
		}
	}
}

func (r *reader) value(ctx context.Context, typ wire.TType, depth int) (any, error) {
	if r.left--; r.left < 0 {
		return nil, errors.New("too many values in one message")
	}
	in := r.in
	switch typ {
	case wire.BOOL:
		return in.ReadBool(ctx)
	case wire.BYTE:
		return in.ReadByte(ctx)
	case wire.I16:
		return in.ReadI16(ctx)
	case wire.I32:
		return in.ReadI32(ctx)
	case wire.I64:
		return in.ReadI64(ctx)
	case wire.DOUBLE:
		return in.ReadDouble(ctx)
	case wire.STRING:
		return in.ReadBinary(ctx)
	case wire.STRUCT:
		return r.record(ctx, depth-1)
	case wire.LIST:
		return r.list(ctx, depth-1)
	}
	// No call takes a map or a set. Skipping a list of empty elements is not an
	// option either: it could be endless.
	return nil, fmt.Errorf("values of wire type %d are not expected", typ)
}

func (r *reader) list(ctx context.Context, depth int) (any, error) {
	in := r.in
	if depth <= 0 {
		return nil, fmt.Errorf("lists are nested more than %d deep", maxDepth)
	}
	typ, n, err := in.ReadListBegin(ctx)
	if err != nil {
		return nil, err
	}
	if n < 0 {
		return nil, fmt.Errorf("a list has the negative length %d", n)
	}
	if typ == wire.I64 {
		return readInts(ctx, in, n)
	}
	// The protocol has checked that the elements fit into the message.
	list := make([]any, 0, min(n, 1024))
	for range n {
		v, err := r.value(ctx, typ, depth)
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	return list, in.ReadListEnd(ctx)
}

// intsAtOnce is the number of 64-bit integers read or written at once. A
// register is a long list, and one protocol call per element would dominate the
// cost of reading it.
const intsAtOnce = 4096

// readInts reads the elements of a list, which are consecutive in the binary
// protocol.
func readInts(ctx context.Context, in wire.TProtocol, n int) ([]uint64, error) {
	list := make([]uint64, 0, min(n, 1<<16))
	buf := make([]byte, 8*min(n, intsAtOnce))
	for n > 0 {
		part := buf[:8*min(n, intsAtOnce)]
		if _, err := io.ReadFull(in.Transport(), part); err != nil {
			return nil, err
		}
		n -= len(part) / 8
		for ; len(part) > 0; part = part[8:] {
			list = append(list, binary.BigEndian.Uint64(part))
		}
	}
	return list, in.ReadListEnd(ctx)
}

func writeFields(ctx context.Context, out wire.TProtocol, name string, list fields) error {
	if err := out.WriteStructBegin(ctx, name); err != nil {
		return err
	}
	for _, f := range list {
		if err := out.WriteFieldBegin(ctx, "", typeOf(f.value), f.id); err != nil {
			return err
		}
		if err := writeValue(ctx, out, f.value); err != nil {
			return err
		}
		if err := out.WriteFieldEnd(ctx); err != nil {
			return err
		}
	}
	if err := out.WriteFieldStop(ctx); err != nil {
		return err
	}
	return out.WriteStructEnd(ctx)
}

func typeOf(v any) wire.TType {
	switch v.(type) {
	case bool:
		return wire.BOOL
	case int32:
		return wire.I32
	case int64:
		return wire.I64
	case float64:
		return wire.DOUBLE
	case string, []byte:
		return wire.STRING
	case fields:
		return wire.STRUCT
	case []uint64, []fields, []int32, [][]byte:
		return wire.LIST
	case map[string]string:
		return wire.MAP
	}
	panic(fmt.Sprintf("thrift: no type for %T", v))
}

func writeValue(ctx context.Context, out wire.TProtocol, v any) error {
	switch v := v.(type) {
	case bool:
		return out.WriteBool(ctx, v)
	case int32:
		return out.WriteI32(ctx, v)
	case int64:
		return out.WriteI64(ctx, v)
	case string:
		return out.WriteString(ctx, v)
	case []byte:
		return out.WriteBinary(ctx, v)
	case float64:
		return out.WriteDouble(ctx, v)
	case fields:
		return writeFields(ctx, out, "", v)
	case []fields:
		return writeList(ctx, out, wire.STRUCT, v)
	case []int32:
		return writeList(ctx, out, wire.I32, v)
	case [][]byte:
		return writeList(ctx, out, wire.STRING, v)
	case map[string]string:
		if err := out.WriteMapBegin(ctx, wire.STRING, wire.STRING, len(v)); err != nil {
			return err
		}
		for _, k := range slices.Sorted(maps.Keys(v)) {
			if err := out.WriteString(ctx, k); err != nil {
				return err
			}
			if err := out.WriteString(ctx, v[k]); err != nil {
				return err
			}
		}
		return out.WriteMapEnd(ctx)
	}
	list := v.([]uint64)
	if err := out.WriteListBegin(ctx, wire.I64, len(list)); err != nil {
		return err
	}
	buf := make([]byte, 0, 8*min(len(list), intsAtOnce))
	for part := range slices.Chunk(list, intsAtOnce) {
		buf = buf[:0]
		for _, x := range part {
			buf = binary.BigEndian.AppendUint64(buf, min(x, math.MaxInt64)) // the protocol has signed integers
		}
		if _, err := out.Transport().Write(buf); err != nil {
			return err
		}
	}
	return out.WriteListEnd(ctx)
}

func writeList[T any](ctx context.Context, out wire.TProtocol, typ wire.TType, list []T) error {
	if err := out.WriteListBegin(ctx, typ, len(list)); err != nil {
		return err
	}
	for _, v := range list {
		if err := writeValue(ctx, out, v); err != nil {
			return err
		}
	}
	return out.WriteListEnd(ctx)
}

// int32At, int64At and textAt return an argument; a missing one is zero, as
// usual in Thrift.
func (r record) int32At(id int16) int32 { v, _ := r[id].(int32); return v }

func (r record) int64At(id int16) int64 { v, _ := r[id].(int64); return v }

func (r record) textAt(id int16) string { v, _ := r[id].([]byte); return string(v) }

func (r record) recordAt(id int16) record { v, _ := r[id].(record); return v }

func (r record) boolAt(id int16) bool { v, _ := r[id].(bool); return v }

func (r record) bytesAt(id int16) []byte { v, _ := r[id].([]byte); return v }

// listAt returns the elements of a list that have type T.
func listAt[T any](r record, id int16) []T {
	list, _ := r[id].([]any)
	out := make([]T, 0, len(list))
	for _, v := range list {
		if x, ok := v.(T); ok {
			out = append(out, x)
		}
	}
	return out
}
