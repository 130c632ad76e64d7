package wire

import (
	"math/rand/v2"
	"testing"

	"google.golang.org/protobuf/proto"
)

// randomEntity returns an entity with fields that the decoder knows, and others.
func randomEntity(r *rand.Rand) *Entity {
	bytes := func() []byte {
		b := make([]byte, r.IntN(4)*r.IntN(60))
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		return b
	}
	m := &TableEntry{TableId: r.Uint32()}
	if r.IntN(8) > 0 {
		k := &TableKey{}
		for range r.IntN(4) {
			f := &KeyField{FieldId: r.Uint32N(300)}
			switch r.IntN(8) {
			case 0:
				f.MatchType = &KeyField_Ternary_{Ternary: &KeyField_Ternary{Value: bytes(), Mask: bytes()}}
			case 1:
			default:
				f.MatchType = &KeyField_Exact_{Exact: &KeyField_Exact{Value: bytes()}}
			}
			k.Fields = append(k.Fields, f)
		}
		m.Value = &TableEntry_Key{Key: k}
	}
	if r.IntN(8) > 0 {
		m.Data = &TableData{ActionId: r.Uint32N(2)}
		for range r.IntN(6) {
			f := &DataField{FieldId: r.Uint32N(300)}
			switch r.IntN(12) {
			case 0:
				f.Value = &DataField_BoolVal{BoolVal: true}
			case 1:
				f.Value = &DataField_StrVal{StrVal: "text"}
			case 2:
				f.Value = &DataField_IntArrVal{IntArrVal: &DataField_IntArray{Val: []uint32{1, 2}}}
			default:
				f.Value = &DataField_Stream{Stream: bytes()}
			}
			m.Data.Fields = append(m.Data.Fields, f)
		}
	}
	switch r.IntN(10) {
	case 0:
		m.IsDefaultEntry = true
	case 1:
		m.Value = &TableEntry_HandleId{HandleId: 7}
	case 2:
		m.TableReadFlag = &TableReadFlag{FromHw: true}
	case 3:
		return &Entity{Entity: &Entity_TableUsage{TableUsage: &TableUsage{TableId: 3, Usage: 4}}}
	case 4, 5, 6:
		m.TableFlags = &TableFlags{FromHw: r.IntN(2) == 0, KeyOnly: r.IntN(2) == 0, ModDel: r.IntN(2) == 0, ResetTtl: r.IntN(2) == 0, ResetStats: r.IntN(2) == 0}
	default:
		m.EntryTgt = &TargetDevice{PipeId: r.Uint32(), Direction: AllDirections, PrsrId: r.Uint32N(2), DeviceId: r.Uint32N(2)}
	}
	return &Entity{Entity: &Entity_TableEntry{TableEntry: m}}
}

// TestDecodeRead compares the decoder with package proto: random answers, and the same
// with a changed, missing or repeated part.
func TestDecodeRead(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	accepted, refused := 0, 0
	for range 20_000 {
		m := &ReadResponse{}
		for range r.IntN(5) {
			m.Entities = append(m.Entities, randomEntity(r))
		}
		for range r.IntN(2) {
			m.Status = append(m.Status, &Error{})
		}
		text, err := proto.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		switch at := r.IntN(len(text) + 1); {
		case r.IntN(2) == 0 || len(text) == at:
		case r.IntN(3) == 0:
			text[at] ^= 1 << r.IntN(8)
		case r.IntN(2) == 0:
			text = text[:at]
		default:
			text = append(text, text...)
		}
		want, got := &ReadResponse{}, &ReadResponse{Status: []*Error{{}}}
		wantErr, gotErr := proto.Unmarshal(text, want), decodeRead(text, got)
		if (wantErr == nil) != (gotErr == nil) {
			t.Fatalf("%x: error %v, want %v", text, gotErr, wantErr)
		}
		if wantErr != nil {
			refused++
			continue
		}
		accepted++
		if !proto.Equal(got, want) {
			t.Fatalf("%x: %v, want %v", text, got, want)
		}
	}
	if accepted < 10_000 || refused < 1000 {
		t.Errorf("%d answers accepted, %d refused", accepted, refused)
	}
}

// TestDecodeReadAllocates compares the allocations of an answer with the cells of a
// register: package proto allocates each message.
func TestDecodeReadAllocates(t *testing.T) {
	m := &ReadResponse{}
	for i := range 1000 {
		field := func(id uint32) *DataField {
			return &DataField{FieldId: id, Value: &DataField_Stream{Stream: []byte{0, byte(i)}}}
		}
		m.Entities = append(m.Entities, &Entity{Entity: &Entity_TableEntry{TableEntry: &TableEntry{
			TableId: 1, TableFlags: &TableFlags{FromHw: true}, Data: &TableData{Fields: []*DataField{field(1), field(2)}},
			Value: &TableEntry_Key{Key: &TableKey{Fields: []*KeyField{{FieldId: 1, MatchType: &KeyField_Exact_{Exact: &KeyField_Exact{Value: []byte{0, 0, 0, byte(i)}}}}}}},
		}}})
	}
	text, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	decode := func(decode func([]byte, *ReadResponse) error) float64 {
		return testing.AllocsPerRun(5, func() {
			if err := decode(text, &ReadResponse{}); err != nil {
				t.Fatal(err)
			}
		})
	}
	all := decode(func(b []byte, m *ReadResponse) error { return proto.Unmarshal(b, m) })
	if got := decode(decodeRead); got > all/5 {
		t.Errorf("%.0f allocations, package proto makes %.0f", got, all)
	}
}

func BenchmarkDecodeRead(b *testing.B) {
	m := &ReadResponse{}
	for i := range 1000 {
		e := &TableEntry{TableId: 1, TableFlags: &TableFlags{FromHw: true}, Data: &TableData{}, Value: &TableEntry_Key{Key: &TableKey{Fields: []*KeyField{
			{FieldId: 1, MatchType: &KeyField_Exact_{Exact: &KeyField_Exact{Value: []byte{0, 0, 0, byte(i)}}}}}}}}
		for id := range uint32(2) {
			e.Data.Fields = append(e.Data.Fields, &DataField{FieldId: id + 1, Value: &DataField_Stream{Stream: []byte{0, 0, 1, byte(i)}}})
		}
		m.Entities = append(m.Entities, &Entity{Entity: &Entity_TableEntry{TableEntry: e}})
	}
	text, err := proto.Marshal(m)
	if err != nil {
		b.Fatal(err)
	}
	for name, decode := range map[string]func([]byte, *ReadResponse) error{"blocks": decodeRead, "proto": func(b []byte, m *ReadResponse) error { return proto.Unmarshal(b, m) }} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := decode(text, &ReadResponse{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
