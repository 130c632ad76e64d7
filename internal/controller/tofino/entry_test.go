package tofino

import (
	"fmt"
	"strings"
	"testing"

	configv1 "github.com/p4lang/p4runtime/go/p4/config/v1"
	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/protobuf/proto"

	"github.com/p4lb/p4lb/internal/bfrt"
	"github.com/p4lb/p4lb/internal/bfrt/wire"
	"github.com/p4lb/p4lb/internal/controller/p4info"
)

// An entry reads back as it was written: numbers without leading zeros, keys that match
// everything left out, and the largest priority first. BfRt gets every key, in the bytes of
// its width, and the smallest number first.
func TestEntriesThereAndBack(t *testing.T) {
	field := func(id uint32, kind configv1.MatchField_MatchType, width int) key {
		return key{p4info.Field{ID: id, Name: fmt.Sprint("f", id), Width: width, Kind: kind}, id + 10}
	}
	act := &action{p4: &p4info.Action{ID: 7, Name: "go", Params: []p4info.Field{{ID: 1, Width: 9}, {ID: 2, Width: 48}}}, id: 70, params: []uint32{5, 6}}
	rules := &table{
		p4: &p4info.Table{ID: 1, Name: "rules"}, schema: &bfrt.Table{ID: 100}, order: 99,
		keys: []key{
			field(1, configv1.MatchField_EXACT, 12), field(2, configv1.MatchField_LPM, 32), field(3, configv1.MatchField_TERNARY, 20),
			field(4, configv1.MatchField_RANGE, 10), field(5, configv1.MatchField_OPTIONAL, 16),
		},
		actions: map[uint32]*action{7: act}, byID: map[uint32]*action{70: act},
	}
	p := &program{byP4: map[uint32]*table{1: rules}}
	exactly := &p4v1.FieldMatch{FieldId: 1, FieldMatchType: &p4v1.FieldMatch_Exact_{Exact: &p4v1.FieldMatch_Exact{Value: []byte{5}}}}
	params := func(port, mac []byte) *p4v1.TableAction {
		return &p4v1.TableAction{Type: &p4v1.TableAction_Action{Action: &p4v1.Action{ActionId: 7, Params: []*p4v1.Action_Param{{ParamId: 1, Value: port}, {ParamId: 2, Value: mac}}}}}
	}
	for _, c := range []struct {
		entry *p4v1.TableEntry
		key   string // of BfRt
	}{
		{&p4v1.TableEntry{TableId: 1, Match: []*p4v1.FieldMatch{exactly}, Priority: 1, Action: params([]byte{3}, []byte{9})},
			"11 =0005, 12 00000000/0, 13 000000&000000, 14 0000..03ff, 15 ?0000 false, 99 =00fffffe"},
		{&p4v1.TableEntry{TableId: 1, Priority: mostPriority, Action: params([]byte{1, 0}, []byte{2, 0, 0, 0, 0, 1}), Match: []*p4v1.FieldMatch{
			{FieldId: 1, FieldMatchType: &p4v1.FieldMatch_Exact_{Exact: &p4v1.FieldMatch_Exact{Value: []byte{0xf, 0xff}}}},
			{FieldId: 2, FieldMatchType: &p4v1.FieldMatch_Lpm{Lpm: &p4v1.FieldMatch_LPM{Value: []byte{10, 0, 0, 0}, PrefixLen: 8}}},
			{FieldId: 3, FieldMatchType: &p4v1.FieldMatch_Ternary_{Ternary: &p4v1.FieldMatch_Ternary{Value: []byte{0}, Mask: []byte{0xf, 0, 0}}}},
			{FieldId: 4, FieldMatchType: &p4v1.FieldMatch_Range_{Range: &p4v1.FieldMatch_Range{Low: []byte{0}, High: []byte{3, 0xfe}}}},
			{FieldId: 5, FieldMatchType: &p4v1.FieldMatch_Optional_{Optional: &p4v1.FieldMatch_Optional{Value: []byte{0}}}},
		}}, "11 =0fff, 12 0a000000/8, 13 000000&0f0000, 14 0000..03fe, 15 ?0000 true, 99 =00000000"},
		{&p4v1.TableEntry{TableId: 1, Priority: 500, Match: []*p4v1.FieldMatch{exactly,
			{FieldId: 4, FieldMatchType: &p4v1.FieldMatch_Range_{Range: &p4v1.FieldMatch_Range{Low: []byte{1}, High: []byte{3, 0xff}}}},
		}}, "11 =0005, 12 00000000/0, 13 000000&000000, 14 0001..03ff, 15 ?0000 false, 99 =00fffe0b"},
	} {
		out, err := p.entry(c.entry)
		if err != nil {
			t.Fatal(err)
		}
		if got := keyText(out.GetKey()); got != c.key || out.GetTableId() != 100 {
			t.Errorf("table %d, %s\nwant %s", out.GetTableId(), got, c.key)
		}
		if back := rules.back(out); !proto.Equal(back, c.entry) {
			t.Errorf("%v\nwant %v", back, c.entry)
		}
	}
	out, err := p.entry(&p4v1.TableEntry{TableId: 1, IsDefaultAction: true, Action: params([]byte{1, 0}, []byte{0})})
	if err != nil || out.GetKey() != nil || !out.GetIsDefaultEntry() || fmt.Sprintf("%x %x", out.GetData().GetFields()[0].GetStream(), out.GetData().GetFields()[1].GetStream()) != "0100 000000000000" {
		t.Errorf("the default entry is %v, %v", out, err)
	}
	for want, e := range map[string]*p4v1.TableEntry{
		"there is no table 2":                 {TableId: 2},
		"the entry of table rules lacks f1":   {TableId: 1},
		"table rules has no action 8":         {TableId: 1, Match: []*p4v1.FieldMatch{exactly}, Action: &p4v1.TableAction{Type: &p4v1.TableAction_Action{Action: &p4v1.Action{ActionId: 8}}}},
		"table rules has no action profile: ": {TableId: 1, Match: []*p4v1.FieldMatch{exactly}, Action: &p4v1.TableAction{Type: &p4v1.TableAction_ActionProfileMemberId{}}},
	} {
		if _, err := p.entry(e); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	if got := rules.call(&wire.TableData{ActionId: 71}); got != nil {
		t.Errorf("an action that the table lacks: %v", got)
	}
}

// keyText formats a key of BfRt.
func keyText(k *wire.TableKey) string {
	var list []string
	for _, f := range k.GetFields() {
		text := fmt.Sprint(f.GetFieldId(), " ")
		switch m := f.GetMatchType().(type) {
		case *wire.KeyField_Exact_:
			text += fmt.Sprintf("=%x", m.Exact.GetValue())
		case *wire.KeyField_Lpm:
			text += fmt.Sprintf("%x/%d", m.Lpm.GetValue(), m.Lpm.GetPrefixLen())
		case *wire.KeyField_Ternary_:
			text += fmt.Sprintf("%x&%x", m.Ternary.GetValue(), m.Ternary.GetMask())
		case *wire.KeyField_Range_:
			text += fmt.Sprintf("%x..%x", m.Range.GetLow(), m.Range.GetHigh())
		case *wire.KeyField_Optional_:
			text += fmt.Sprintf("?%x %v", m.Optional.GetValue(), m.Optional.GetIsValid())
		}
		list = append(list, text)
	}
	return strings.Join(list, ", ")
}
