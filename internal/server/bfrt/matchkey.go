package server

import (
	"math"

	"github.com/p4lb/p4lb/internal/bfrt/wire"
	"github.com/p4lb/p4lb/internal/dataplane"
	"github.com/p4lb/p4lb/internal/dataplane/num"
)

// key parses a key.
func (t *matchTable) key(k *wire.TableKey) ([]dataplane.Match, int, error) {
	if err := known(t.keys, k); err != nil {
		return nil, 0, err
	}
	list := make([]dataplane.Match, len(t.matched))
	for i := range t.matched {
		if err := t.matched[i].match1(k, &list[i]); err != nil {
			return nil, 0, err
		}
	}
	priority := 0
	if t.ordered != 0 {
		for _, x := range k.GetFields() {
			if x.GetFieldId() == t.ordered {
				b := x.GetExact().GetValue()
				if err := checkBytes("$MATCH_PRIORITY", b, 32); err != nil {
					return nil, 0, err
				}
				priority = int(min(uintOf(b), math.MaxInt32))
			}
		}
	}
	return list, priority, nil
}

// match1 parses one field of a key. A missing field matches any value, or 0 if it is
// exact.
func (f *keyField) match1(k *wire.TableKey, m *dataplane.Match) error {
	n := (f.width + 7) / 8
	var x *wire.KeyField
	for _, y := range k.GetFields() {
		if y.GetFieldId() == f.id {
			x = y
		}
	}
	if x == nil {
		switch f.match {
		case "LPM":
			m.Value = make([]byte, n)
		case "Ternary":
			m.Value, m.Mask = make([]byte, n), make([]byte, n)
		case "Range":
			m.Value, m.High = make([]byte, n), num.Most(f.width).Bytes()
		default:
			return invalidf("the key lacks %s", f.name)
		}
		return nil
	}
	switch y := x.GetMatchType().(type) {
	case *wire.KeyField_Exact_:
		if f.match == "Exact" || f.match == "ATCAM" {
			m.Value = y.Exact.GetValue()
			return checkBytes(f.name, m.Value, f.width)
		}
	case *wire.KeyField_Ternary_:
		if f.match == "Ternary" {
			m.Value, m.Mask = y.Ternary.GetValue(), y.Ternary.GetMask()
			if err := checkBytes(f.name, m.Mask, f.width); err != nil {
				return err
			}
			return checkBytes(f.name, m.Value, f.width)
		}
	case *wire.KeyField_Lpm:
		if f.match == "LPM" {
			m.Value, m.PrefixLen = y.Lpm.GetValue(), int(y.Lpm.GetPrefixLen())
			if m.PrefixLen < 0 || m.PrefixLen > f.width {
				return invalidf("key field %s: prefix length %d is outside 0..%d", f.name, m.PrefixLen, f.width)
			}
			return checkBytes(f.name, m.Value, f.width)
		}
	case *wire.KeyField_Range_:
		if f.match == "Range" {
			m.Value, m.High = y.Range.GetLow(), y.Range.GetHigh()
			if err := checkBytes(f.name, m.High, f.width); err != nil {
				return err
			}
			return checkBytes(f.name, m.Value, f.width)
		}
	}
	return invalidf("key field %s wants a match of kind %s", f.name, f.match)
}

// keyOf returns the key of an entry for clients.
func (t *matchTable) keyOf(e *dataplane.Entry) *wire.TableKey {
	k := &wire.TableKey{Fields: make([]*wire.KeyField, 0, len(t.keys))}
	for i := range t.matched {
		f, m := &t.matched[i], &e.Match[i]
		x := &wire.KeyField{FieldId: f.id}
		v := full(m.Value, f.width)
		switch f.match {
		case "LPM":
			num.ClearLow(v, f.width-m.PrefixLen)
			x.MatchType = &wire.KeyField_Lpm{Lpm: &wire.KeyField_LPM{Value: v, PrefixLen: int32(m.PrefixLen)}}
		case "Ternary":
			x.MatchType = &wire.KeyField_Ternary_{Ternary: &wire.KeyField_Ternary{Value: v, Mask: full(m.Mask, f.width)}}
		case "Range":
			x.MatchType = &wire.KeyField_Range_{Range: &wire.KeyField_Range{Low: v, High: full(m.High, f.width)}}
		default:
			x.MatchType = &wire.KeyField_Exact_{Exact: &wire.KeyField_Exact{Value: v}}
		}
		k.Fields = append(k.Fields, x)
	}
	if t.ordered != 0 {
		b := make([]byte, 4)
		putUint(b, uint64(e.Priority))
		k.Fields = append(k.Fields, &wire.KeyField{FieldId: t.ordered, MatchType: &wire.KeyField_Exact_{Exact: &wire.KeyField_Exact{Value: b}}})
	}
	return k
}
