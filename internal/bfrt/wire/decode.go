package wire

import (
	"google.golang.org/grpc/encoding"
	encproto "google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/p4lb/p4lb/internal/text/message"
)

// Reading a register is mostly decoding: an answer has tens of thousands of entries of
// about ten messages each. The decoder of this file allocates many messages at once. It
// accepts entries with exact keys, and with bytes as data; package proto decodes others.
//
// The messages share the bytes of the answer.

// A codec decodes answers of Read.
type codec struct{ encoding.CodecV2 }

func newCodec() codec { return codec{encoding.GetCodecV2(encproto.Name)} }

// Unmarshal decodes a message.
func (c codec) Unmarshal(list mem.BufferSlice, v any) error {
	if m, ok := v.(*ReadResponse); ok {
		return decodeRead(list.Materialize(), m)
	}
	return c.CodecV2.Unmarshal(list, v)
}

// entitiesField is the number of the field in a ReadResponse.
const entitiesField = 1

// decodeRead decodes an answer: the entities itself, other fields with package proto.
func decodeRead(text []byte, m *ReadResponse) error {
	var d decoder
	proto.Reset(m)
	rest, err := message.Split(text, entitiesField, func(b []byte) error {
		e, ok := d.entity(b)
		if !ok {
			e = &Entity{}
			if err := proto.Unmarshal(b, e); err != nil {
				return err
			}
		}
		m.Entities = append(m.Entities, e)
		return nil
	})
	if err != nil {
		return err
	}
	return proto.UnmarshalOptions{Merge: true}.Unmarshal(rest, m)
}

// A decoder allocates the messages of one answer.
type decoder struct {
	entries message.Slab[struct {
		entity Entity
		as     Entity_TableEntry
		entry  TableEntry
		asKey  TableEntry_Key
		key    TableKey
		data   TableData
		target TargetDevice
		flags  TableFlags
	}]
	keys message.Slab[struct {
		field KeyField
		as    KeyField_Exact_
		exact KeyField_Exact
	}]
	data message.Slab[struct {
		field DataField
		as    DataField_Stream
	}]
	keyLists  message.Slab[*KeyField]
	dataLists message.Slab[*DataField]
}

func (d *decoder) entity(b []byte) (*Entity, bool) {
	x := d.entries.Next()
	ok := message.Fields(b, 0, func(num protowire.Number, _ uint64, text []byte) bool {
		x.as.TableEntry, x.entity.Entity = &x.entry, &x.as
		return num == 1 && text != nil && message.Fields(text, 0, func(num protowire.Number, v uint64, text []byte) bool {
			switch {
			case num == 1 && text == nil:
				x.entry.TableId = uint32(v)
				return true
			case num == 2 && text != nil:
				x.asKey.Key, x.entry.Value = &x.key, &x.asKey
				return d.key(text, &x.key)
			case num == 3 && text != nil:
				x.entry.Data = &x.data
				return d.fields(text, &x.data)
			case num == 4 && text == nil:
				x.entry.IsDefaultEntry = v != 0
				return true
			case num == 8 && text != nil:
				x.entry.EntryTgt = &x.target
				return target(text, &x.target)
			case num == 9 && text != nil:
				x.entry.TableFlags = &x.flags
				return flags(text, &x.flags)
			}
			return false
		})
	})
	return &x.entity, ok
}

func (d *decoder) key(b []byte, m *TableKey) bool {
	return message.Fields(b, 1<<1, func(num protowire.Number, _ uint64, text []byte) bool {
		if num != 1 || text == nil {
			return false
		}
		k := d.keys.Next()
		m.Fields = message.Append(&d.keyLists, 1, m.Fields, &k.field)
		return message.Fields(text, 0, func(num protowire.Number, v uint64, text []byte) bool {
			switch {
			case num == 1 && text == nil:
				k.field.FieldId = uint32(v)
				return true
			case num == 2 && text != nil:
				k.as.Exact, k.field.MatchType = &k.exact, &k.as
				return message.Fields(text, 0, func(num protowire.Number, _ uint64, text []byte) bool {
					k.exact.Value = text
					return num == 1 && text != nil
				})
			}
			return false
		})
	})
}

func (d *decoder) fields(b []byte, m *TableData) bool {
	return message.Fields(b, 1<<2, func(num protowire.Number, v uint64, text []byte) bool {
		switch {
		case num == 1 && text == nil:
			m.ActionId = uint32(v)
			return true
		case num != 2 || text == nil:
			return false
		}
		f := d.data.Next()
		m.Fields = message.Append(&d.dataLists, 2, m.Fields, &f.field)
		return message.Fields(text, 0, func(num protowire.Number, v uint64, text []byte) bool {
			switch {
			case num == 1 && text == nil:
				f.field.FieldId = uint32(v)
				return true
			case num == 2 && text != nil:
				f.as.Stream, f.field.Value = text, &f.as
				return true
			}
			return false
		})
	})
}

func target(b []byte, m *TargetDevice) bool {
	return message.Fields(b, 0, func(num protowire.Number, v uint64, text []byte) bool {
		if text != nil {
			return false
		}
		switch num {
		case 1:
			m.DeviceId = uint32(v)
		case 2:
			m.PipeId = uint32(v)
		case 3:
			m.Direction = uint32(v)
		case 4:
			m.PrsrId = uint32(v)
		default:
			return false
		}
		return true
	})
}

func flags(b []byte, m *TableFlags) bool {
	return message.Fields(b, 0, func(num protowire.Number, v uint64, text []byte) bool {
		if text != nil {
			return false
		}
		switch num {
		case 1:
			m.FromHw = v != 0
		case 2:
			m.KeyOnly = v != 0
		case 3:
			m.ModDel = v != 0
		case 4:
			m.ResetTtl = v != 0
		case 5:
			m.ResetStats = v != 0
		default:
			return false
		}
		return true
	})
}
