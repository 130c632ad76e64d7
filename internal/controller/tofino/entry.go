package tofino

import (
	"bytes"

	configv1 "github.com/p4lang/p4runtime/go/p4/config/v1"
	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/p4lb/p4lb/internal/bfrt/wire"
)

// mostPriority is the largest priority of the SDE. In the SDE the smallest number wins, in
// P4Runtime the largest.
const mostPriority = 1<<24 - 1

// entry translates an entry of P4Runtime. It adds key fields that match everything, which
// P4Runtime omits.
func (p *program) entry(e *p4v1.TableEntry) (*wire.TableEntry, error) {
	t := p.byP4[e.GetTableId()]
	if t == nil {
		return nil, status.Errorf(codes.NotFound, "there is no table %d", e.GetTableId())
	}
	out := &wire.TableEntry{TableId: t.schema.ID, IsDefaultEntry: e.GetIsDefaultAction()}
	if !e.GetIsDefaultAction() {
		k, err := t.key(e)
		if err != nil {
			return nil, err
		}
		out.Value = &wire.TableEntry_Key{Key: k}
	}
	if e.GetAction() == nil {
		return out, nil
	}
	if t.in != nil && !e.GetIsDefaultAction() {
		return out, nil // indirect adds the data
	}
	call := e.GetAction().GetAction()
	if call == nil {
		return nil, status.Errorf(codes.InvalidArgument, "table %s has no action profile: an entry has one action, no member, group or set", t.p4.Name)
	}
	data, err := t.data(call)
	out.Data = data
	return out, err
}

// data returns an action of a table with its arguments as BfRt's data.
func (t *table) data(call *p4v1.Action) (*wire.TableData, error) {
	a := t.actions[call.GetActionId()]
	if a == nil {
		return nil, status.Errorf(codes.NotFound, "table %s has no action %d", t.p4.Name, call.GetActionId())
	}
	out := &wire.TableData{ActionId: a.id}
	for i, p := range a.p4.Params {
		d := &wire.DataField{FieldId: a.params[i]}
		var value []byte
		for _, given := range call.GetParams() {
			if given.GetParamId() == p.ID {
				value = given.GetValue()
			}
		}
		d.Value = &wire.DataField_Stream{Stream: padded(value, p.Width)}
		out.Fields = append(out.Fields, d)
	}
	return out, nil
}

func (t *table) key(e *p4v1.TableEntry) (*wire.TableKey, error) {
	k := &wire.TableKey{}
	for _, f := range t.keys {
		var m *p4v1.FieldMatch
		for _, given := range e.GetMatch() {
			if given.GetFieldId() == f.p4.ID {
				m = given
			}
		}
		out := &wire.KeyField{FieldId: f.id}
		w := f.p4.Width
		switch f.p4.Kind {
		case configv1.MatchField_LPM:
			out.MatchType = &wire.KeyField_Lpm{Lpm: &wire.KeyField_LPM{Value: padded(m.GetLpm().GetValue(), w), PrefixLen: m.GetLpm().GetPrefixLen()}}
		case configv1.MatchField_TERNARY:
			out.MatchType = &wire.KeyField_Ternary_{Ternary: &wire.KeyField_Ternary{Value: padded(m.GetTernary().GetValue(), w), Mask: padded(m.GetTernary().GetMask(), w)}}
		case configv1.MatchField_RANGE:
			low, high := padded(nil, w), ones(w)
			if r := m.GetRange(); r != nil {
				low, high = padded(r.GetLow(), w), padded(r.GetHigh(), w)
			}
			out.MatchType = &wire.KeyField_Range_{Range: &wire.KeyField_Range{Low: low, High: high}}
		case configv1.MatchField_OPTIONAL:
			out.MatchType = &wire.KeyField_Optional_{Optional: &wire.KeyField_Optional{Value: padded(m.GetOptional().GetValue(), w), IsValid: m != nil}}
		default:
			if m == nil {
				return nil, status.Errorf(codes.InvalidArgument, "the entry of table %s lacks %s", t.p4.Name, f.p4.Name)
			}
			out = exact(f.id, padded(m.GetExact().GetValue(), w))
		}
		k.Fields = append(k.Fields, out)
	}
	if t.order != 0 {
		k.Fields = append(k.Fields, exact(t.order, sized(uint64(mostPriority-min(max(e.GetPriority(), 0), mostPriority)), 32)))
	}
	return k, nil
}

// back translates an entry of BfRt to P4Runtime. It omits key fields that match
// everything, as P4Runtime requires.
func (t *table) back(e *wire.TableEntry) *p4v1.TableEntry {
	out := &p4v1.TableEntry{TableId: t.p4.ID, IsDefaultAction: e.GetIsDefaultEntry()}
	for _, f := range t.keys {
		for _, given := range e.GetKey().GetFields() {
			if given.GetFieldId() == f.id {
				if m := f.back(given); m != nil {
					out.Match = append(out.Match, m)
				}
			}
		}
	}
	for _, given := range e.GetKey().GetFields() {
		if t.order != 0 && given.GetFieldId() == t.order {
			out.Priority = int32(mostPriority - min(numberOf(given.GetExact().GetValue()), mostPriority))
		}
	}
	if call := t.call(e.GetData()); call != nil {
		out.Action = &p4v1.TableAction{Type: &p4v1.TableAction_Action{Action: call}}
	}
	return out
}

// call converts an entry's action to P4Runtime; nil: it has none.
func (t *table) call(data *wire.TableData) *p4v1.Action {
	a := t.byID[data.GetActionId()]
	if a == nil {
		return nil
	}
	call := &p4v1.Action{ActionId: a.p4.ID}
	for i, p := range a.p4.Params {
		for _, d := range data.GetFields() {
			if d.GetFieldId() == a.params[i] {
				call.Params = append(call.Params, &p4v1.Action_Param{ParamId: p.ID, Value: short(d.GetStream())})
			}
		}
	}
	return call
}

func (f key) back(m *wire.KeyField) *p4v1.FieldMatch {
	out := &p4v1.FieldMatch{FieldId: f.p4.ID}
	switch m := m.GetMatchType().(type) {
	case *wire.KeyField_Exact_:
		out.FieldMatchType = &p4v1.FieldMatch_Exact_{Exact: &p4v1.FieldMatch_Exact{Value: short(m.Exact.GetValue())}}
	case *wire.KeyField_Lpm:
		if m.Lpm.GetPrefixLen() == 0 {
			return nil
		}
		out.FieldMatchType = &p4v1.FieldMatch_Lpm{Lpm: &p4v1.FieldMatch_LPM{Value: short(m.Lpm.GetValue()), PrefixLen: m.Lpm.GetPrefixLen()}}
	case *wire.KeyField_Ternary_:
		if numberIsZero(m.Ternary.GetMask()) {
			return nil
		}
		out.FieldMatchType = &p4v1.FieldMatch_Ternary_{Ternary: &p4v1.FieldMatch_Ternary{Value: short(m.Ternary.GetValue()), Mask: short(m.Ternary.GetMask())}}
	case *wire.KeyField_Range_:
		if numberIsZero(m.Range.GetLow()) && bytes.Equal(m.Range.GetHigh(), ones(f.p4.Width)) {
			return nil
		}
		out.FieldMatchType = &p4v1.FieldMatch_Range_{Range: &p4v1.FieldMatch_Range{Low: short(m.Range.GetLow()), High: short(m.Range.GetHigh())}}
	case *wire.KeyField_Optional_:
		if !m.Optional.GetIsValid() {
			return nil
		}
		out.FieldMatchType = &p4v1.FieldMatch_Optional_{Optional: &p4v1.FieldMatch_Optional{Value: short(m.Optional.GetValue())}}
	}
	return out
}

func numberIsZero(b []byte) bool { return len(bytes.Trim(b, "\x00")) == 0 }

// ones returns the largest number of width bits.
func ones(width int) []byte {
	b := bytes.Repeat([]byte{0xff}, (width+7)/8)
	if rest := width % 8; rest != 0 {
		b[0] = 1<<rest - 1
	}
	return b
}
