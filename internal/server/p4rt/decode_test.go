package p4rt

import (
	"math/rand/v2"
	"testing"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"
)

// randomEntry returns an entry with fields that the decoder knows and others.
func randomEntry(r *rand.Rand) *p4v1.TableEntry {
	bytes := func() []byte {
		b := make([]byte, r.IntN(4)*r.IntN(60))
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		return b
	}
	m := &p4v1.TableEntry{TableId: r.Uint32(), Priority: int32(r.IntN(3) - 1)}
	for range r.IntN(4) {
		f := &p4v1.FieldMatch{FieldId: r.Uint32N(300)}
		switch r.IntN(6) {
		case 0:
			f.FieldMatchType = &p4v1.FieldMatch_Exact_{Exact: &p4v1.FieldMatch_Exact{Value: bytes()}}
		case 1:
			f.FieldMatchType = &p4v1.FieldMatch_Lpm{Lpm: &p4v1.FieldMatch_LPM{Value: bytes(), PrefixLen: int32(r.IntN(130) - 1)}}
		case 2:
			f.FieldMatchType = &p4v1.FieldMatch_Ternary_{Ternary: &p4v1.FieldMatch_Ternary{Value: bytes(), Mask: bytes()}}
		case 3:
			f.FieldMatchType = &p4v1.FieldMatch_Range_{Range: &p4v1.FieldMatch_Range{Low: bytes(), High: bytes()}}
		case 4:
			f.FieldMatchType = &p4v1.FieldMatch_Optional_{Optional: &p4v1.FieldMatch_Optional{Value: bytes()}}
		}
		m.Match = append(m.Match, f)
	}
	switch a := (&p4v1.Action{ActionId: r.Uint32()}); r.IntN(5) {
	case 0:
	case 1:
		m.Action = &p4v1.TableAction{Type: &p4v1.TableAction_ActionProfileMemberId{ActionProfileMemberId: 7}}
	default:
		for range r.IntN(4) {
			a.Params = append(a.Params, &p4v1.Action_Param{ParamId: r.Uint32N(5), Value: bytes()})
		}
		m.Action = &p4v1.TableAction{Type: &p4v1.TableAction_Action{Action: a}}
	}
	switch r.IntN(12) {
	case 0:
		m.Metadata = bytes()
	case 1:
		m.IdleTimeoutNs = 5
	case 2:
		m.MeterConfig = &p4v1.MeterConfig{Cir: 3}
	case 3:
		m.CounterData = &p4v1.CounterData{}
	case 4:
		m.IsConst = true
	case 5:
		m.IsDefaultAction = true
	}
	return m
}

// known returns an entry without unknown fields.
func known(t *testing.T, m *p4v1.TableEntry) *p4v1.TableEntry {
	t.Helper()
	text, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	m = &p4v1.TableEntry{}
	if err := (proto.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(text, m); err != nil {
		t.Fatal(err)
	}
	return m
}

// TestDecodeWrite compares the decoder with package proto: random requests, and the same
// with a changed, missing or repeated part.
func TestDecodeWrite(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	fast, refused := 0, 0
	messages := 20000
	if testing.Short() {
		messages = 2000 // enough for the race detector
	}
	for range messages {
		m := &p4v1.WriteRequest{DeviceId: r.Uint64(), Role: "a", ElectionId: &p4v1.Uint128{Low: 1}, Atomicity: p4v1.WriteRequest_Atomicity(r.IntN(3))}
		for range r.IntN(4) {
			u := &p4v1.Update{Type: p4v1.Update_Type(r.IntN(4)), Entity: &p4v1.Entity{Entity: &p4v1.Entity_TableEntry{TableEntry: randomEntry(r)}}}
			if r.IntN(10) == 0 {
				u.Entity = &p4v1.Entity{Entity: &p4v1.Entity_MeterEntry{MeterEntry: &p4v1.MeterEntry{MeterId: 3}}}
			}
			m.Updates = append(m.Updates, u)
		}
		text, err := proto.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		switch r.IntN(4) {
		case 0:
			text[r.IntN(len(text))] = byte(r.Uint32())
		case 1:
			text = text[:r.IntN(len(text))]
		case 2:
			at := r.IntN(len(text))
			text = append(text[:at:at], text[r.IntN(at+1):]...)
		}
		var want, got p4v1.WriteRequest
		wantErr := proto.Unmarshal(text, &want)
		gotErr := newCodec().Unmarshal(mem.BufferSlice{mem.SliceBuffer(text)}, &got)
		if (wantErr == nil) != (gotErr == nil) {
			t.Fatalf("%x: got error %v, want %v", text, gotErr, wantErr)
		}
		if wantErr != nil {
			refused++
			continue
		}
		if !proto.Equal(&want, &got) {
			t.Fatalf("%x: got %v, want %v", text, &got, &want)
		}
		for _, u := range want.Updates {
			e := u.GetEntity().GetTableEntry()
			if e == nil {
				continue
			}
			if _, ok := appendEntry(nil, e); ok {
				fast++
			}
			if again := textOf(e).message(); !proto.Equal(known(t, again), known(t, e)) {
				t.Fatalf("%v is kept as %v", e, again)
			}
		}
	}
	if fast < messages/20 || refused < messages/20 {
		t.Errorf("%d entries were encoded without package proto, %d requests refused: the test is too narrow", fast, refused)
	}
}
