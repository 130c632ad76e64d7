package dataplane

import (
	"fmt"
	"math/big"

	"github.com/p4lb/p4lb/bmv2"
	"github.com/p4lb/p4lb/dataplane/lookup"
	"github.com/p4lb/p4lb/dataplane/num"
	"github.com/p4lb/p4lb/dataplane/vector"
)

// A keyField is one field of a table's key, with its place in the lookup key
// that the table's index wants.
type keyField struct {
	name   string
	kind   MatchKind
	width  int
	off    int // in the vector
	header *vector.Header
	always bool     // read even if the header is invalid
	mask   []uint64 // static, nil if all ones

	word  int // the first word of the field in the lookup key
	words int
	shift int // within the word; wide fields have none
}

// A tableKey builds lookup keys. The layout depends on the index: exact
// matching packs several fields into a word, longest prefix wants the prefix
// field last and left-aligned with the first bits first, ternary and range
// want words of their own.
type tableKey struct {
	fields []keyField
	order  []int // of fields in the key
	words  int
	simple bool // a single word from a single word of the vector
}

func (l *linker) tableKey(t *bmv2.Table) (*tableKey, error) {
	k := &tableKey{}
	for i, src := range t.Key {
		f, err := l.keyField(src)
		if err != nil {
			return nil, fmt.Errorf("key %d: %w", i, err)
		}
		k.fields = append(k.fields, f)
	}
	k.place(t.MatchType)
	return k, nil
}

func (l *linker) keyField(src *bmv2.TableKey) (keyField, error) {
	kind, err := ParseMatchKind(src.MatchType)
	if err != nil {
		return keyField{}, err
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
		return keyField{}, fmt.Errorf("unknown header %q", ref.Header)
	}
	f, ok := h.Field(ref.Field)
	if !ok || f.VarLen {
		return keyField{}, fmt.Errorf("field %v cannot be matched", ref)
	}
	k := keyField{name: name, kind: kind, width: f.Width, off: f.Off, header: h, words: f.Words()}
	k.always = h.Metadata || ref.Field == "$valid$"
	if src.Mask != "" {
		m, err := bmv2.ParseHex(src.Mask)
		if err != nil {
			return keyField{}, err
		}
		k.mask = num.OfBig(new(big.Int).And(m, num.Most(f.Width)), f.Words())
	}
	return k, nil
}

// place lays out the lookup key.
func (k *tableKey) place(match string) {
	for pass := range 2 {
		for i, f := range k.fields {
			last := match == bmv2.MatchLPM && f.kind == MatchLPM
			if last == (pass == 1) {
				k.order = append(k.order, i)
			}
		}
	}
	used := 64 // bits of the last word
	for _, i := range k.order {
		f := &k.fields[i]
		own := match != bmv2.MatchExact && !(match == bmv2.MatchLPM && f.kind != MatchLPM)
		if own || f.words > 1 || used+f.width > 64 {
			f.word = k.words
			k.words += f.words
			used = f.width
			if own || f.words > 1 {
				used = 64
			}
			continue
		}
		f.word, f.shift = k.words-1, used
		used += f.width
	}
	k.simple = len(k.fields) == 1 && k.words == 1 && k.fields[0].mask == nil
}

// build fills dst, which has k.words words. A field of an invalid header is
// zero.
func (k *tableKey) build(p *vector.State, dst []uint64) {
	if k.simple {
		f := &k.fields[0]
		dst[0] = 0
		if f.always || f.header.IsValid(p) {
			dst[0] = p.W[f.off] & num.Mask64(f.width)
		}
		return
	}
	clear(dst)
	for i := range k.fields {
		f := &k.fields[i]
		if !f.always && !f.header.IsValid(p) {
			continue
		}
		if f.words == 1 {
			v := p.W[f.off] & num.Mask64(f.width)
			if f.mask != nil {
				v &= f.mask[0]
			}
			dst[f.word] |= v << uint(f.shift)
			continue
		}
		for j := range f.words {
			v := p.W[f.off+j]
			if f.mask != nil {
				v &= f.mask[j]
			}
			dst[f.word+j] = v
		}
		num.Mask(dst[f.word:f.word+f.words], f.width)
	}
}

// put writes a number to the field's place in a key.
func (f *keyField) put(dst, number []uint64) {
	for j, x := range number {
		if f.mask != nil {
			x &= f.mask[j]
		}
		dst[f.word+j] |= x << uint(f.shift)
	}
}

// places are where the fields are in the lookup key.
func (k *tableKey) places() []lookup.Place {
	list := make([]lookup.Place, len(k.fields))
	for i, f := range k.fields {
		list[i] = lookup.Place{Word: f.word, Width: f.width}
	}
	return list
}
