package program

import (
	"fmt"
	"math/big"

	"github.com/p4lb/p4lb/internal/bmv2"
	"github.com/p4lb/p4lb/internal/dataplane/num"
	"github.com/p4lb/p4lb/internal/dataplane/vector"
)

// A KeyField is one field of a table's key, with its place in the lookup key.
type KeyField struct {
	Name   string
	Kind   MatchKind
	Width  int
	Off    int // its word in the vector
	header *vector.Header
	always bool     // also read if the header is invalid
	Mask   []uint64 // static, nil if all ones

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
	simple bool // the key is a word of the vector
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
	k := KeyField{Name: name, Kind: kind, Width: f.Width, Off: f.Off, header: h, Words: f.Words()}
	k.always = h.Metadata || ref.Field == "$valid$"
	if src.Mask != "" {
		m, err := bmv2.ParseHex(src.Mask)
		if err != nil {
			return KeyField{}, err
		}
		k.Mask = num.OfBig(new(big.Int).And(m, num.Most(f.Width)), f.Words())
	}
	return k, nil
}

// place assigns the places of the fields in the lookup key.
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
	k.simple = len(k.Fields) == 1 && k.Words == 1 && k.Fields[0].Mask == nil
}

// Build writes the lookup key of p to dst, which has k.Words words. A field of
// an invalid header is zero.
func (k *tableKey) Build(p *vector.State, dst []uint64) {
	if k.simple {
		f := &k.Fields[0]
		dst[0] = 0
		if f.always || f.header.IsValid(p) {
			dst[0] = p.W[f.Off] & num.Mask64(f.Width)
		}
		return
	}
	clear(dst)
	for i := range k.Fields {
		f := &k.Fields[i]
		if !f.always && !f.header.IsValid(p) {
			continue
		}
		if f.Words == 1 {
			v := p.W[f.Off] & num.Mask64(f.Width)
			if f.Mask != nil {
				v &= f.Mask[0]
			}
			dst[f.Word] |= v << uint(f.Shift)
			continue
		}
		for j := range f.Words {
			v := p.W[f.Off+j]
			if f.Mask != nil {
				v &= f.Mask[j]
			}
			dst[f.Word+j] = v
		}
		num.Mask(dst[f.Word:f.Word+f.Words], f.Width)
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
