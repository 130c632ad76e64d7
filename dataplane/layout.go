package dataplane

import (
	"fmt"

	"github.com/p4lb/p4lb/bmv2"
	"github.com/p4lb/p4lb/dataplane/num"
)

// A packet's headers and metadata live in one flat vector of words. A field
// of at most 64 bits is one word, sign-extended if the field is signed; a
// wider one is as many words as it takes, least significant first. The
// layout gives every object its place in the vector when a program is linked,
// so that nothing is looked up by name afterwards.
//
//	[0, scratch)   where writes through a bad stack index go
//	metadata       so that one clear resets it
//	headers        each: valid, fields
//	stacks         each: the index of the next element
type layout struct {
	types       []*headerType
	headers     []*header
	stacks      []*stack
	unions      []*union
	unionStacks []*unionStack

	words    int
	scratch  int
	metadata [2]int // the metadata's words: from, to

	headerNames     map[string]*header
	stackNames      map[string]*stack
	unionNames      map[string]*union
	unionStackNames map[string]*unionStack
	aliases         map[string]bmv2.FieldRef
}

// A headerType is what the headers of one type share. Offsets are relative to
// the header's base; the word at 0 says whether the header is valid.
type headerType struct {
	name    string
	fields  []field
	byName  map[string]int
	size    int // words
	bits    int // without the variable-length field
	varLen  int // index of the variable-length field, or -1
	maxVar  int // its largest size in bits
	maxLen  int // the header's largest size in bytes if given, or 0
	lenExpr *bmv2.Expr
	chunks  []chunk
}

// A field is a field of a type (off relative to the base) or of a header (off
// absolute). The variable-length field keeps its current width in the word
// before its value.
type field struct {
	name   string
	off    int
	width  int
	signed bool
	varLen bool
}

func (f field) words() int { return num.Words(f.width) }

func (f field) lenOff() int { return f.off - 1 }

func (f field) at(base int) field {
	f.off += base
	return f
}

type header struct {
	name     string
	index    int
	typ      *headerType
	base     int
	metadata bool
	union    *union
}

func (h *header) valid() int { return h.base }

// field returns the field of a name, with its absolute offset.
func (h *header) field(name string) (field, bool) {
	f, ok := h.typ.field(name)
	return f.at(h.base), ok
}

func (t *headerType) field(name string) (field, bool) {
	if name == "$valid$" {
		return field{name: name, off: 0, width: 1}, true
	}
	i, ok := t.byName[name]
	if !ok {
		return field{}, false
	}
	return t.fields[i], true
}

type stack struct {
	name     string
	typ      *headerType
	elements []*header
	next     int // the word that counts the elements in use
}

type union struct {
	name    string
	members []*header
	names   []string
}

type unionStack struct {
	name     string
	elements []*union
	next     int
}

func newLayout(c *bmv2.Config) (*layout, error) {
	l := &layout{
		headerNames: map[string]*header{}, stackNames: map[string]*stack{},
		unionNames: map[string]*union{}, unionStackNames: map[string]*unionStack{},
		aliases: map[string]bmv2.FieldRef{},
	}
	types := map[string]*headerType{}
	for _, t := range c.HeaderTypes {
		ht, err := newHeaderType(t)
		if err != nil {
			return nil, err
		}
		l.types = append(l.types, ht)
		types[t.Name] = ht
		l.scratch = max(l.scratch, ht.size)
	}
	l.words = l.scratch
	byID := l.placeHeaders(c, types)
	l.placeStacks(c, types, byID)
	for _, a := range c.FieldAliases {
		l.aliases[a.Alias] = a.Field
	}
	if l.words > maxWords {
		return nil, fmt.Errorf("the headers and metadata take %d words, more than %d", l.words, maxWords)
	}
	return l, nil
}

// maxWords bounds the vector of one packet.
const maxWords = 1 << 20

func newHeaderType(t *bmv2.HeaderType) (*headerType, error) {
	ht := &headerType{name: t.Name, byName: map[string]int{}, varLen: -1, maxLen: t.MaxLength, lenExpr: t.LengthExp}
	ht.size = 1
	for i, f := range t.Fields {
		fd := field{name: f.Name, width: f.Width, signed: f.Signed, varLen: f.VarLen}
		if f.VarLen {
			ht.varLen = i
			ht.size++
		} else {
			ht.bits += f.Width
		}
		fd.off = ht.size
		ht.byName[f.Name] = i
		ht.fields = append(ht.fields, fd)
		ht.size += fd.words()
	}
	if ht.varLen >= 0 {
		ht.growVarLen()
	}
	ht.chunks = cutChunks(ht)
	return ht, nil
}

// defaultVarBits is the room for a variable-length field in a header whose
// document gives no max_length.
const defaultVarBits = 2048

// growVarLen gives the variable-length field its room, now that the rest of
// the header is known.
func (t *headerType) growVarLen() {
	t.maxVar = t.maxLen*8 - t.bits
	if t.maxLen == 0 || t.maxVar < 0 {
		t.maxVar = defaultVarBits
	}
	f := &t.fields[t.varLen]
	f.width = t.maxVar
	for i := t.varLen + 1; i < len(t.fields); i++ {
		t.fields[i].off += f.words()
	}
	t.size += f.words()
}

func (l *layout) placeHeaders(c *bmv2.Config, types map[string]*headerType) map[int]*header {
	byID := map[int]*header{}
	l.metadata[0] = l.words
	for _, metadata := range []bool{true, false} {
		for _, h := range c.Headers {
			if h.Metadata == metadata {
				byID[h.ID] = l.placeHeader(h, types[h.HeaderType])
			}
		}
		if metadata {
			l.metadata[1] = l.words
		}
	}
	return byID
}

func (l *layout) placeHeader(h *bmv2.Header, t *headerType) *header {
	hd := &header{name: h.Name, index: len(l.headers), typ: t, base: l.words, metadata: h.Metadata}
	l.words += t.size
	l.headers = append(l.headers, hd)
	l.headerNames[h.Name] = hd
	return hd
}

func (l *layout) placeStacks(c *bmv2.Config, types map[string]*headerType, byID map[int]*header) {
	for _, s := range c.HeaderStacks {
		st := &stack{name: s.Name, typ: types[s.HeaderType], next: l.newWord()}
		for _, id := range s.HeaderIDs {
			st.elements = append(st.elements, byID[id])
		}
		l.stacks = append(l.stacks, st)
		l.stackNames[s.Name] = st
	}
	unionTypes := map[string]*bmv2.HeaderUnionType{}
	for _, t := range c.HeaderUnionTypes {
		unionTypes[t.Name] = t
	}
	unionIDs := map[int]*union{}
	for _, u := range c.HeaderUnions {
		un := &union{name: u.Name}
		for i, id := range u.HeaderIDs {
			byID[id].union = un
			un.members = append(un.members, byID[id])
			un.names = append(un.names, unionTypes[u.UnionType].Headers[i].Name)
		}
		l.unions = append(l.unions, un)
		l.unionNames[u.Name] = un
		unionIDs[u.ID] = un
	}
	for _, s := range c.HeaderUnionStacks {
		st := &unionStack{name: s.Name, next: l.newWord()}
		for _, id := range s.HeaderUnionIDs {
			st.elements = append(st.elements, unionIDs[id])
		}
		l.unionStacks = append(l.unionStacks, st)
		l.unionStackNames[s.Name] = st
	}
}

func (l *layout) newWord() int {
	l.words++
	return l.words - 1
}

// field finds a field by header and field name.
func (l *layout) field(header, name string) (field, error) {
	if h := l.headerNames[header]; h != nil {
		if f, ok := h.field(name); ok {
			return f, nil
		}
	}
	return field{}, fmt.Errorf("unknown field %s.%s", header, name)
}

// target finds a field that the switch itself reads or writes, under its
// alias or its own name; ok is false if the program does not have it.
func (l *layout) target(header, name string) (f field, ok bool) {
	ref, ok := l.aliases[header+"."+name]
	if !ok {
		ref = bmv2.FieldRef{Header: header, Field: name}
	}
	f, err := l.field(ref.Header, ref.Field)
	return f, err == nil
}
