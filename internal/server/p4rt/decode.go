package p4rt

import (
	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/p4lb/p4lb/internal/text/message"
)

// Loading a table is mostly decoding: the decoder of package proto allocates about a
// dozen messages for each route, one by one and by reflection. The decoder of this file
// allocates many at once. It accepts updates of table entries with match fields and one
// action, each field at most once; package proto decodes all others.
//
// The messages share the bytes of the request.

// Unmarshal decodes a message.
func (c *codec) Unmarshal(list mem.BufferSlice, v any) error {
	m, ok := v.(*p4v1.WriteRequest)
	if !ok {
		return c.CodecV2.Unmarshal(list, v)
	}
	return decodeWrite(list.Materialize(), m)
}

// updatesField is the number of the field in a WriteRequest.
const updatesField = 4

// decodeWrite decodes a request: the updates itself, other fields with package proto.
func decodeWrite(text []byte, m *p4v1.WriteRequest) error {
	var d decoder
	proto.Reset(m)
	rest, err := message.Split(text, updatesField, func(b []byte) error {
		u, ok := d.update(b)
		if !ok {
			u = &p4v1.Update{}
			if err := proto.Unmarshal(b, u); err != nil {
				return err
			}
		}
		m.Updates = append(m.Updates, u)
		return nil
	})
	if err != nil {
		return err
	}
	return proto.UnmarshalOptions{Merge: true}.Unmarshal(rest, m)
}

// A decoder allocates the messages of one request.
type decoder struct {
	updates message.Slab[struct {
		update p4v1.Update
		entity p4v1.Entity
		as     p4v1.Entity_TableEntry
		entry  p4v1.TableEntry
	}]
	actions message.Slab[struct {
		outer p4v1.TableAction
		as    p4v1.TableAction_Action
		inner p4v1.Action
	}]
	params  message.Slab[p4v1.Action_Param]
	matches message.Slab[struct {
		field p4v1.FieldMatch
		// One of them is used.
		asExact   p4v1.FieldMatch_Exact_
		asLPM     p4v1.FieldMatch_Lpm
		asTernary p4v1.FieldMatch_Ternary_
	}]
	exact   message.Slab[p4v1.FieldMatch_Exact]
	lpm     message.Slab[p4v1.FieldMatch_LPM]
	ternary message.Slab[p4v1.FieldMatch_Ternary]
	match   message.Slab[*p4v1.FieldMatch]
	param   message.Slab[*p4v1.Action_Param]
}

func (d *decoder) update(b []byte) (*p4v1.Update, bool) {
	x := d.updates.Next()
	ok := message.Fields(b, 0, func(num protowire.Number, v uint64, text []byte) bool {
		switch {
		case num == 1 && text == nil:
			x.update.Type = p4v1.Update_Type(v)
			return true
		case num == 2 && text != nil:
			x.update.Entity = &x.entity
			return message.Fields(text, 0, func(num protowire.Number, _ uint64, text []byte) bool {
				x.as.TableEntry, x.entity.Entity = &x.entry, &x.as
				return num == 2 && text != nil && d.entry(text, &x.entry)
			})
		}
		return false
	})
	return &x.update, ok
}

func (d *decoder) entry(b []byte, m *p4v1.TableEntry) bool {
	return message.Fields(b, 1<<2, func(num protowire.Number, v uint64, text []byte) bool {
		switch {
		case num == 1 && text == nil:
			m.TableId = uint32(v)
			return true
		case num == 2 && text != nil:
			f := d.matches.Next()
			m.Match = message.Append(&d.match, 1, m.Match, &f.field)
			return d.fieldMatch(text, &f.field, &f.asExact, &f.asLPM, &f.asTernary)
		case num == 3 && text != nil:
			a := d.actions.Next()
			m.Action = &a.outer
			return message.Fields(text, 0, func(num protowire.Number, _ uint64, text []byte) bool {
				a.as.Action, a.outer.Type = &a.inner, &a.as
				return num == 1 && text != nil && d.action(text, &a.inner)
			})
		case num == 4 && text == nil:
			m.Priority = int32(v)
			return true
		}
		return false
	})
}

func (d *decoder) fieldMatch(b []byte, m *p4v1.FieldMatch, asExact *p4v1.FieldMatch_Exact_, asLPM *p4v1.FieldMatch_Lpm, asTernary *p4v1.FieldMatch_Ternary_) bool {
	return message.Fields(b, 0, func(num protowire.Number, v uint64, text []byte) bool {
		if num == 1 && text == nil {
			m.FieldId = uint32(v)
			return true
		}
		if text == nil || m.FieldMatchType != nil {
			return false
		}
		switch num {
		case 2:
			x := d.exact.Next()
			asExact.Exact, m.FieldMatchType = x, asExact
			return message.Fields(text, 0, func(num protowire.Number, _ uint64, text []byte) bool {
				x.Value = text
				return num == 1 && text != nil
			})
		case 3:
			x := d.ternary.Next()
			asTernary.Ternary, m.FieldMatchType = x, asTernary
			return message.Fields(text, 0, func(num protowire.Number, _ uint64, text []byte) bool {
				switch {
				case num == 1 && text != nil:
					x.Value = text
				case num == 2 && text != nil:
					x.Mask = text
				default:
					return false
				}
				return true
			})
		case 4:
			x := d.lpm.Next()
			asLPM.Lpm, m.FieldMatchType = x, asLPM
			return message.Fields(text, 0, func(num protowire.Number, v uint64, text []byte) bool {
				switch {
				case num == 1 && text != nil:
					x.Value = text
				case num == 2 && text == nil:
					x.PrefixLen = int32(v)
				default:
					return false
				}
				return true
			})
		}
		return false
	})
}

func (d *decoder) action(b []byte, m *p4v1.Action) bool {
	return message.Fields(b, 1<<4, func(num protowire.Number, v uint64, text []byte) bool {
		switch {
		case num == 1 && text == nil:
			m.ActionId = uint32(v)
			return true
		case num == 4 && text != nil:
			p := d.params.Next()
			m.Params = message.Append(&d.param, 1, m.Params, p)
			return message.Fields(text, 0, func(num protowire.Number, v uint64, text []byte) bool {
				switch {
				case num == 2 && text == nil:
					p.ParamId = uint32(v)
				case num == 3 && text != nil:
					p.Value = text
				default:
					return false
				}
				return true
			})
		}
		return false
	})
}

// appendEntry encodes an entry that decoder.entry accepts. It reports false for others.
func appendEntry(b []byte, m *p4v1.TableEntry) ([]byte, bool) {
	//lint:ignore SA1019 clients that predate Metadata have their cookie here
	cookie := m.ControllerMetadata
	if cookie != 0 || m.MeterConfig != nil || m.CounterData != nil || m.MeterCounterData != nil || m.IsDefaultAction || m.IdleTimeoutNs != 0 ||
		m.TimeSinceLastHit != nil || len(m.Metadata) > 0 || m.IsConst {
		return b, false
	}
	ok := true
	b = appendNumber(b, 1, uint64(m.TableId))
	for _, f := range m.Match {
		b = appendNested(b, 2, func(b []byte) []byte {
			b = appendNumber(b, 1, uint64(f.FieldId))
			switch x := f.FieldMatchType.(type) {
			case *p4v1.FieldMatch_Exact_:
				return appendNested(b, 2, func(b []byte) []byte { return appendText(b, 1, x.Exact.GetValue()) })
			case *p4v1.FieldMatch_Ternary_:
				return appendNested(b, 3, func(b []byte) []byte {
					return appendText(appendText(b, 1, x.Ternary.GetValue()), 2, x.Ternary.GetMask())
				})
			case *p4v1.FieldMatch_Lpm:
				return appendNested(b, 4, func(b []byte) []byte {
					return appendNumber(appendText(b, 1, x.Lpm.GetValue()), 2, uint64(x.Lpm.GetPrefixLen()))
				})
			}
			ok = false
			return b
		})
	}
	if m.Action != nil {
		a, plain := m.Action.Type.(*p4v1.TableAction_Action)
		if !plain || a.Action == nil {
			return b, false
		}
		b = appendNested(b, 3, func(b []byte) []byte {
			return appendNested(b, 1, func(b []byte) []byte {
				b = appendNumber(b, 1, uint64(a.Action.ActionId))
				for _, p := range a.Action.Params {
					b = appendNested(b, 4, func(b []byte) []byte {
						return appendText(appendNumber(b, 2, uint64(p.GetParamId())), 3, p.GetValue())
					})
				}
				return b
			})
		})
	}
	return appendNumber(b, 4, uint64(m.Priority)), ok
}

func appendNumber(b []byte, field protowire.Number, v uint64) []byte {
	if v == 0 {
		return b
	}
	return protowire.AppendVarint(protowire.AppendTag(b, field, protowire.VarintType), v)
}

func appendText(b []byte, field protowire.Number, v []byte) []byte {
	if len(v) == 0 {
		return b
	}
	return protowire.AppendBytes(protowire.AppendTag(b, field, protowire.BytesType), v)
}

// appendNested encodes a message of which most have less than 128 bytes.
func appendNested(b []byte, field protowire.Number, encode func([]byte) []byte) []byte {
	b = append(protowire.AppendTag(b, field, protowire.BytesType), 0)
	at := len(b)
	b = encode(b)
	size := len(b) - at
	if size < 1<<7 {
		b[at-1] = byte(size)
		return b
	}
	text := append([]byte(nil), b[at:]...)
	return append(protowire.AppendVarint(b[:at-1], uint64(size)), text...)
}
