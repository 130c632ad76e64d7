package p4rt

import (
	"encoding/binary"
	"slices"
	"strings"
	"sync"

	configv1 "github.com/p4lang/p4runtime/go/p4/config/v1"
	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc/codes"

	"github.com/p4lb/p4lb/internal/dataplane"
	"github.com/p4lb/p4lb/internal/dataplane/num"
)

// priorityBytes is the length of the priority at the beginning of key.id.
const priorityBytes = 4

// A key is the match of an entry in the form of the data plane. Equal matches
// have equal ids.
type key struct {
	match []dataplane.Match
	id    string
}

// parseKey checks the match of an entry and replaces its byte strings in the
// message by their canonical form. A missing field matches anything.
func parseKey(fields []fieldInfo, kinds []dataplane.MatchKind, list []*p4v1.FieldMatch, priority int32) (key, error) {
	k := key{match: make([]dataplane.Match, len(fields))}
	var buf [128]byte
	id := binary.BigEndian.AppendUint32(buf[:0], uint32(priority))
	given := 0
	for i := range fields {
		m := findMatch(list, fields[i].id, i)
		if m == nil {
			if fields[i].match == configv1.MatchField_EXACT {
				return k, failf(codes.InvalidArgument, "match field %s is missing", fields[i].name)
			}
			k.match[i] = anyMatch(&fields[i], kinds[i])
			continue
		}
		given++
		var err error
		if k.match[i], err = parseMatch(&fields[i], kinds[i], m); err != nil {
			return k, asInvalid(prefixed(err, "match field %s", fields[i].name))
		}
		id = appendMatch(id, i, &k.match[i])
	}
	if given != len(list) {
		return k, surplusMatch(fields, list)
	}
	k.id = string(id)
	return k, nil
}

// findMatch returns the match of a field. It looks at the expected position
// first.
func findMatch(list []*p4v1.FieldMatch, id uint32, guess int) *p4v1.FieldMatch {
	if guess < len(list) && list[guess].GetFieldId() == id {
		return list[guess]
	}
	for _, m := range list {
		if m.GetFieldId() == id {
			return m
		}
	}
	return nil
}

// surplusMatch returns the error for a match too many.
func surplusMatch(fields []fieldInfo, list []*p4v1.FieldMatch) error {
	seen := map[uint32]bool{}
	for _, m := range list {
		if seen[m.GetFieldId()] {
			return failf(codes.InvalidArgument, "match field %d occurs twice", m.GetFieldId())
		}
		seen[m.GetFieldId()] = true
	}
	for i := range fields {
		delete(seen, fields[i].id)
	}
	for id := range seen {
		return failf(codes.InvalidArgument, "there is no match field %d", id)
	}
	return failf(codes.InvalidArgument, "there are %d matches for %d fields", len(list), len(fields))
}

// appendMatch appends a unique encoding of a field's match.
func appendMatch(id []byte, field int, m *dataplane.Match) []byte {
	id = append(id, byte(field), byte(field>>8))
	id = binary.BigEndian.AppendUint32(id, uint32(m.PrefixLen))
	for _, b := range [][]byte{m.Value, m.Mask, m.High} {
		id = binary.AppendUvarint(id, uint64(len(b)))
		id = append(id, b...)
	}
	return id
}

// anyMatch returns the match that stands for a missing field.
func anyMatch(f *fieldInfo, kind dataplane.MatchKind) dataplane.Match {
	switch kind {
	case dataplane.MatchTernary:
		return dataplane.Match{Value: []byte{0}, Mask: []byte{0}}
	case dataplane.MatchRange:
		return dataplane.Match{Value: []byte{0}, High: ones(f.width)}
	case dataplane.MatchLPM:
		return dataplane.Match{Value: []byte{0}}
	}
	return dataplane.Match{} // optional
}

// ones returns the largest number of a width.
func ones(width int) []byte {
	b := make([]byte, (width+7)/8)
	for i := range b {
		b[i] = 0xff
	}
	if spare := 8*len(b) - width; spare > 0 {
		b[0] >>= spare
	}
	return b
}

func parseMatch(f *fieldInfo, kind dataplane.MatchKind, m *p4v1.FieldMatch) (dataplane.Match, error) {
	var none dataplane.Match
	switch v := m.GetFieldMatchType().(type) {
	case *p4v1.FieldMatch_Exact_:
		if f.match == configv1.MatchField_EXACT {
			return parseExact(f, &v.Exact.Value)
		}
	case *p4v1.FieldMatch_Lpm:
		if f.match == configv1.MatchField_LPM {
			return parseLPM(f, v.Lpm)
		}
	case *p4v1.FieldMatch_Ternary_:
		if f.match == configv1.MatchField_TERNARY {
			return parseTernary(f, v.Ternary)
		}
	case *p4v1.FieldMatch_Range_:
		if f.match == configv1.MatchField_RANGE {
			return parseRange(f, v.Range)
		}
	case *p4v1.FieldMatch_Optional_:
		if f.match == configv1.MatchField_OPTIONAL {
			return parseOptional(f, kind, v.Optional)
		}
	case nil:
		return none, failf(codes.InvalidArgument, "the field match is empty")
	}
	return none, failf(codes.InvalidArgument, "the field has a match of kind %s: want %s", variant(m), strings.ToLower(f.match.String()))
}

func parseExact(f *fieldInfo, value *[]byte) (dataplane.Match, error) {
	b, err := parseValue(value, f.width, f.names)
	return dataplane.Match{Value: b}, err
}

func parseLPM(f *fieldInfo, v *p4v1.FieldMatch_LPM) (dataplane.Match, error) {
	m, err := parseExact(f, &v.Value)
	m.PrefixLen = int(v.GetPrefixLen())
	switch {
	case err != nil:
	case m.PrefixLen <= 0 || m.PrefixLen > f.width:
		err = failf(codes.InvalidArgument, "the prefix length is %d, want 1 to %d: omit the field to match anything", m.PrefixLen, f.width)
	case !num.TrailingZeros(m.Value, f.width-m.PrefixLen):
		err = failf(codes.InvalidArgument, "%v has bits set beyond its prefix of %d bits", hexed(m.Value), m.PrefixLen)
	}
	return m, err
}

func parseTernary(f *fieldInfo, v *p4v1.FieldMatch_Ternary) (dataplane.Match, error) {
	m, err := parseExact(f, &v.Value)
	if err != nil {
		return m, err
	}
	if m.Mask, err = canonize(&v.Mask, f.width); err != nil {
		return m, prefixed(err, "mask")
	}
	switch {
	case num.IsZero(m.Mask):
		err = failf(codes.InvalidArgument, "the mask is zero: omit the field to match anything")
	case !num.Within(m.Value, m.Mask):
		err = failf(codes.InvalidArgument, "%v has bits outside the mask %v", hexed(m.Value), hexed(m.Mask))
	}
	return m, err
}

func parseRange(f *fieldInfo, v *p4v1.FieldMatch_Range) (dataplane.Match, error) {
	m, err := parseExact(f, &v.Low)
	if err != nil {
		return m, prefixed(err, "low")
	}
	if m.High, err = canonize(&v.High, f.width); err != nil {
		return m, prefixed(err, "high")
	}
	switch {
	case less(m.High, m.Value):
		err = failf(codes.InvalidArgument, "the low end %v is above the high end %v", hexed(m.Value), hexed(m.High))
	case num.IsZero(m.Value) && num.AllOnes(m.High, f.width):
		err = failf(codes.InvalidArgument, "the range includes every value: omit the field to match anything")
	}
	return m, err
}

// parseOptional supports compilers that turn optional fields into ternary ones
// in the data plane.
func parseOptional(f *fieldInfo, kind dataplane.MatchKind, v *p4v1.FieldMatch_Optional) (dataplane.Match, error) {
	m, err := parseExact(f, &v.Value)
	if kind == dataplane.MatchTernary {
		m.Mask = ones(f.width)
	}
	return m, err
}

// less compares two canonical numbers.
func less(a, b []byte) bool {
	return len(a) < len(b) || len(a) == len(b) && string(a) < string(b)
}

// fieldMatch returns the message for a match of the data plane, or nil if it
// matches anything.
func fieldMatch(f *fieldInfo, m dataplane.Match) *p4v1.FieldMatch {
	fm := &p4v1.FieldMatch{FieldId: f.id}
	if f.match == configv1.MatchField_OPTIONAL && (m.Value == nil || m.Mask != nil && num.IsZero(canonical(m.Mask))) {
		return nil
	}
	value := showValue(canonical(m.Value), f.names)
	switch f.match {
	case configv1.MatchField_EXACT:
		fm.FieldMatchType = &p4v1.FieldMatch_Exact_{Exact: &p4v1.FieldMatch_Exact{Value: value}}
	case configv1.MatchField_LPM:
		if m.PrefixLen == 0 {
			return nil
		}
		fm.FieldMatchType = &p4v1.FieldMatch_Lpm{Lpm: &p4v1.FieldMatch_LPM{Value: value, PrefixLen: int32(m.PrefixLen)}}
	case configv1.MatchField_TERNARY:
		if num.IsZero(canonical(m.Mask)) {
			return nil
		}
		fm.FieldMatchType = &p4v1.FieldMatch_Ternary_{Ternary: &p4v1.FieldMatch_Ternary{Value: value, Mask: canonical(m.Mask)}}
	case configv1.MatchField_RANGE:
		if high := canonical(m.High); !num.IsZero(value) || !num.AllOnes(high, f.width) {
			fm.FieldMatchType = &p4v1.FieldMatch_Range_{Range: &p4v1.FieldMatch_Range{Low: value, High: high}}
			return fm
		}
		return nil
	default:
		fm.FieldMatchType = &p4v1.FieldMatch_Optional_{Optional: &p4v1.FieldMatch_Optional{Value: value}}
	}
	return fm
}

// P4Runtime encodes integers as big-endian byte strings. A receiver accepts any
// length as long as the number fits its type; a sender writes the shortest
// string. Zero is one zero byte, never the empty string.

// Keys caches checked keys and action calls of messages that several servers of
// one process share, so that each is checked once. The zero value is ready to
// use. The cache keeps references to the messages.
type Keys struct {
	mu    sync.RWMutex
	of    map[**p4v1.FieldMatch]sharedKey // by the address of the first match
	calls map[*p4v1.Action]sharedCall
}

// A sharedKey is a checked key. It is valid for tables with the same fields.
type sharedKey struct {
	key
	fields   []fieldInfo
	kinds    []dataplane.MatchKind
	count    int
	priority int32
}

// key returns the checked key of an entry and caches it in k.
func (k *Keys) key(t *tableState, m *p4v1.TableEntry) (key, error) {
	list := m.GetMatch()
	if k == nil || len(list) == 0 {
		return t.key(m)
	}
	k.mu.RLock()
	have, ok := k.of[&list[0]]
	k.mu.RUnlock()
	if ok && have.count == len(list) && have.priority == m.GetPriority() && slices.Equal(have.fields, t.info.fields) && slices.Equal(have.kinds, t.kinds) {
		return have.key, nil
	}
	made, err := t.key(m)
	if err == nil {
		k.mu.Lock()
		defer k.mu.Unlock()
		if k.of == nil {
			k.of = map[**p4v1.FieldMatch]sharedKey{}
		}
		k.of[&list[0]] = sharedKey{made, t.info.fields, t.kinds, len(list), m.GetPriority()}
	}
	return made, err
}

// key checks the match fields and the priority of an entry.
func (t *tableState) key(m *p4v1.TableEntry) (key, error) {
	switch {
	case len(t.info.fields) == 0:
		return key{}, t.failf(codes.InvalidArgument, "it has no key: only its default entry can be written")
	case t.info.ranked && m.GetPriority() <= 0:
		return key{}, t.failf(codes.InvalidArgument, "the priority is %d, want a positive one", m.GetPriority())
	case !t.info.ranked && m.GetPriority() != 0:
		return key{}, t.failf(codes.InvalidArgument, "the priority is %d, want 0: all its fields are exact or LPM", m.GetPriority())
	}
	k, err := parseKey(t.info.fields, t.kinds, m.GetMatch(), m.GetPriority())
	if err != nil {
		return k, prefixed(err, "table %s", t.info.name)
	}
	return k, nil
}
