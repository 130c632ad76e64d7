package p4rt

import (
	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
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
	var rest []byte
	proto.Reset(m)
	for b := text; len(b) > 0; {
		num, typ, n := protowire.ConsumeTag(b)
		if n < 0 {
			return protowire.ParseError(n)
		}
		size := protowire.ConsumeFieldValue(num, typ, b[n:])
		if size < 0 {
			return protowire.ParseError(size)
		}
		field := b[:n+size]
		b = b[n+size:]
		if num != updatesField || typ != protowire.BytesType {
			rest = append(rest, field...)
			continue
		}
		value, _ := protowire.ConsumeBytes(field[n:])
		u, ok := d.update(value)
		if !ok {
			u = &p4v1.Update{}
			if err := proto.Unmarshal(value, u); err != nil {
				return err
			}
		}
		m.Updates = append(m.Updates, u)
	}
	return proto.UnmarshalOptions{Merge: true}.Unmarshal(rest, m)
}

// A slab allocates values in blocks.
type slab[T any] []T

func (s *slab[T]) next() *T {
	if len(*s) == 0 {
		*s = make([]T, 64)
	}
	p := &(*s)[0]
	*s = (*s)[1:]
	return p
}

// A decoder allocates the messages of one request.
type decoder struct {
	updates slab[struct {
		update p4v1.Update
		entity p4v1.Entity
		as     p4v1.Entity_TableEntry
		entry  p4v1.TableEntry
	}]
	actions slab[struct {
		outer p4v1.TableAction
		as    p4v1.TableAction_Action
		inner p4v1.Action
	}]
	params  slab[p4v1.Action_Param]
	matches slab[struct {
		field p4v1.FieldMatch
		// One of them is used.
		asExact   p4v1.FieldMatch_Exact_
		asLPM     p4v1.FieldMatch_Lpm
		asTernary p4v1.FieldMatch_Ternary_
	}]
	exact   slab[p4v1.FieldMatch_Exact]
	lpm     slab[p4v1.FieldMatch_LPM]
	ternary slab[p4v1.FieldMatch_Ternary]
	match   slab[*p4v1.FieldMatch]
	param   slab[*p4v1.Action_Param]
}

// fields calls f for each field of a message, with its number as varint or bytes. It
// reports whether the text is well formed, f accepts all fields, and only repeated fields
// occur twice.
func fields(b []byte, repeated uint64, f func(num protowire.Number, v uint64, text []byte) bool) bool {
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

func (d *decoder) update(b []byte) (*p4v1.Update, bool) {
	x := d.updates.next()
	ok := fields(b, 0, func(num protowire.Number, v uint64, text []byte) bool {
		switch {
		case num == 1 && text == nil:
			x.update.Type = p4v1.Update_Type(v)
			return true
		case num == 2 && text != nil:
			x.update.Entity = &x.entity
			return fields(text, 0, func(num protowire.Number, _ uint64, text []byte) bool {
				x.as.TableEntry, x.entity.Entity = &x.entry, &x.as
				return num == 2 && text != nil && d.entry(text, &x.entry)
			})
		}
		return false
	})
	return &x.update, ok
}

func (d *decoder) entry(b []byte, m *p4v1.TableEntry) bool {
	return fields(b, 1<<2, func(num protowire.Number, v uint64, text []byte) bool {
		switch {
		case num == 1 && text == nil:
			m.TableId = uint32(v)
			return true
		case num == 2 && text != nil:
			f := d.matches.next()
			m.Match = one(&d.match, m.Match, &f.field)
			return d.fieldMatch(text, &f.field, &f.asExact, &f.asLPM, &f.asTernary)
		case num == 3 && text != nil:
			a := d.actions.next()
			m.Action = &a.outer
			return fields(text, 0, func(num protowire.Number, _ uint64, text []byte) bool {
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

// one appends to a list, whose first element comes from a slab.
func one[T any](s *slab[*T], list []*T, v *T) []*T {
	if list == nil {
		if len(*s) == 0 {
			*s = make([]*T, 64)
		}
		list, *s = (*s)[:0:1], (*s)[1:]
	}
	return append(list, v)
}

func (d *decoder) fieldMatch(b []byte, m *p4v1.FieldMatch, asExact *p4v1.FieldMatch_Exact_, asLPM *p4v1.FieldMatch_Lpm, asTernary *p4v1.FieldMatch_Ternary_) bool {
	return fields(b, 0, func(num protowire.Number, v uint64, text []byte) bool {
		if num == 1 && text == nil {
			m.FieldId = uint32(v)
			return true
		}
		if text == nil || m.FieldMatchType != nil {
			return false
		}
		switch num {
		case 2:
			x := d.exact.next()
			asExact.Exact, m.FieldMatchType = x, asExact
			return fields(text, 0, func(num protowire.Number, _ uint64, text []byte) bool {
				x.Value = text
				return num == 1 && text != nil
			})
		case 3:
			x := d.ternary.next()
			asTernary.Ternary, m.FieldMatchType = x, asTernary
			return fields(text, 0, func(num protowire.Number, _ uint64, text []byte) bool {
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
			x := d.lpm.next()
			asLPM.Lpm, m.FieldMatchType = x, asLPM
			return fields(text, 0, func(num protowire.Number, v uint64, text []byte) bool {
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
	return fields(b, 1<<4, func(num protowire.Number, v uint64, text []byte) bool {
		switch {
		case num == 1 && text == nil:
			m.ActionId = uint32(v)
			return true
		case num == 4 && text != nil:
			p := d.params.next()
			m.Params = one(&d.param, m.Params, p)
			return fields(text, 0, func(num protowire.Number, v uint64, text []byte) bool {
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
