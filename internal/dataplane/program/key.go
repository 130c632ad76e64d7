package program

import (
	"fmt"
	"math/big"

	"github.com/p4lb/p4lb/internal/bmv2"
	"github.com/p4lb/p4lb/internal/dataplane/num"
)

// A KeyField is one field of a table's key, with its place in the lookup key.
type KeyField struct {
	Name  string
	Kind  MatchKind
	Width int
	Off   int      // its word in the vector
	valid int      // the word that is 0 if its header is invalid; negative: read in any case
	Mask  []uint64 // static, nil if all ones

	Word  int // its first word in the lookup key
	Words int
	Shift int // its shift in that word; wide fields have none
}

// A tableKey builds lookup keys. The layout depends on the index. Exact
// matching packs several fields into a word; longest prefix needs the prefix
// field last and left-aligned; ternary and range need separate words.
type tableKey struct {
	Fields []KeyField
	order  []int // fields in the order of the key
	Words  int
	parts  []fieldPart
}

// A fieldPart is a word of a field in a lookup key.
type fieldPart struct {
	off, valid  int32 // as in KeyField
	mask        uint64
	word, shift int32 // its place in the lookup key
}

// of returns the bits of the part in a vector. A field of an invalid header is zero.
func (k *fieldPart) of(w []uint64) uint64 {
	if k.valid >= 0 && w[k.valid] == 0 {
		return 0
	}
	return w[k.off] & k.mask << uint(k.shift&63)
}

func (l *Linker) tableKey(t *bmv2.Table) (*tableKey, error) {
	k := &tableKey{}
	for i, src := range t.Key {
		f, err := l.keyField(src)
		if err != nil {
			return nil, fmt.Errorf("key %d: %w", i, err)
		}
		k.Fields = append(k.Fields, f)
	}
	k.place(t.MatchType)
	return k, nil
}

func (l *Linker) keyField(src *bmv2.TableKey) (KeyField, error) {
	kind, err := parseMatchKind(src.MatchType)
	if err != nil {
		return KeyField{}, err
	}
	name := src.Name
	if name == "" {
		name = src.Target.String()
	}
	ref := src.Target
	if kind == MatchValid {
		ref.Field = "$valid$"
	}
	h := l.Layout.HeaderNames[ref.Header]
	if h == nil {
		return KeyField{}, fmt.Errorf("unknown header %q", ref.Header)
	}
	f, ok := h.Field(ref.Field)
	if !ok || f.VarLen {
		return KeyField{}, fmt.Errorf("field %v cannot be matched", ref)
	}
	k := KeyField{Name: name, Kind: kind, Width: f.Width, Off: f.Off, valid: h.Base, Words: f.Words()}
	if h.Metadata || ref.Field == "$valid$" {
		k.valid = -1
	}
	if src.Mask != "" {
		m, err := bmv2.ParseHex(src.Mask)
		if err != nil {
			return KeyField{}, err
		}
		k.Mask = num.OfBig(new(big.Int).And(m, num.Most(f.Width)), f.Words())
	}
	return k, nil
}

// place assigns each field its position in the lookup key.
func (k *tableKey) place(match string) {
	for pass := range 2 {
		for i, f := range k.Fields {
			last := match == bmv2.MatchLPM && f.Kind == MatchLPM
			if last == (pass == 1) {
				k.order = append(k.order, i)
			}
		}
	}
	used := 64 // used bits of the last word
	for _, i := range k.order {
		f := &k.Fields[i]
		own := match != bmv2.MatchExact && !(match == bmv2.MatchLPM && f.Kind != MatchLPM)
		if own || f.Words > 1 || used+f.Width > 64 {
			f.Word = k.Words
			k.Words += f.Words
			used = f.Width
			if own || f.Words > 1 {
				used = 64
			}
			continue
		}
		f.Word, f.Shift = k.Words-1, used
		used += f.Width
	}
	for _, f := range k.Fields {
		for j := range f.Words {
			m := num.Mask64(min(64, f.Width-64*j))
			if f.Mask != nil {
				m &= f.Mask[j]
			}
			k.parts = append(k.parts, fieldPart{int32(f.Off + j), int32(f.valid), m, int32(f.Word + j), int32(f.Shift)})
		}
	}
}

// Build writes the lookup key of a vector to dst, which has k.Words words.
func (k *tableKey) Build(w, dst []uint64) {
	clear(dst)
	for i := range k.parts {
		dst[k.parts[i].word] |= k.parts[i].of(w)
	}
}

// isCanonical reports whether all matches are exact and of full width.
func isCanonical(k *tableKey, list []Match) bool {
	for i := range list {
		m, f := &list[i], &k.Fields[i]
		if f.Kind != MatchExact || len(m.Value) != num.Bytes(f.Width) || m.Mask != nil || m.High != nil || m.PrefixLen != 0 {
			return false
		}
	}
	return true
}

// canonical returns matches in a form that makes equal matches identical: full
// width, no bits outside the mask. It returns canonical matches unchanged,
// because tables of many switches may share them.
func canonical(k *tableKey, list []Match) []Match {
	if isCanonical(k, list) {
		return list
	}
	out := make([]Match, len(list))
	for i, m := range list {
		f := &k.Fields[i]
		n := num.Bytes(f.Width)
		if f.Kind == MatchOptional && m.Value == nil {
			continue
		}
		v := num.Aligned(m.Value, n)
		switch f.Kind {
		case MatchLPM:
			num.ClearLow(v, f.Width-m.PrefixLen)
			out[i].PrefixLen = m.PrefixLen
		case MatchTernary:
			out[i].Mask = num.Aligned(m.Mask, n)
			for j := range v {
				v[j] &= out[i].Mask[j]
			}
		case MatchRange:
			out[i].High = num.Aligned(m.High, n)
		}
		out[i].Value = v
	}
	return out
}
