// Package vector holds a packet's headers and metadata in a flat vector of
// words (Layout, State), and links the expressions and assignments of a program
// to closures over it (Linker).
package vector

import (
	"fmt"

	"github.com/p4lb/p4lb/internal/bmv2"
	"github.com/p4lb/p4lb/internal/dataplane/num"
)

// A Layout places headers and metadata in a flat vector of words. A field of at
// most 64 bits is one word, sign-extended if the field is signed. A wider field has
// several words, least significant first. Every object gets its position at link
// time, so no name is looked up later.
//
//	[0, scratch)   the target of writes through a bad stack index
//	metadata       contiguous, to reset it at once
//	headers        each: valid, fields
//	stacks         each: the index of the next element
type Layout struct {
	Types   []*HeaderType
	Headers []*Header

	Words    int
	scratch  int
	Metadata [2]int // the metadata's words: from, to

	HeaderNames     map[string]*Header
	StackNames      map[string]*stack
	unionNames      map[string]*union
	UnionStackNames map[string]*unionStack
	aliases         map[string]bmv2.FieldRef
}

// A HeaderType is the type of headers. Offsets are relative to the header's
// base; the word at 0 holds its validity.
type HeaderType struct {
	Name    string
	Fields  []Field
	byName  map[string]int
	Size    int // words
	Bits    int // without the variable-length field
	VarLen  int // index of the variable-length field, or -1
	MaxVar  int // its largest size in bits
	LenExpr *bmv2.Expr
	Chunks  []Chunk
}

// A Field is a field of a type (Off relative to the base) or of a header (Off
// absolute). The word before a variable-length field holds its current width.
type Field struct {
	Name   string
	Off    int
	Width  int
	Signed bool
	VarLen bool
}

// Words returns the number of words of the field.
func (f Field) Words() int { return num.Words(f.Width) }

// LenOff returns the word with the current width of a variable-length field.
func (f Field) LenOff() int { return f.Off - 1 }

func (f Field) at(base int) Field {
	f.Off += base
	return f
}

// A Header is a header or a metadata struct with its place in the vector.
type Header struct {
	Name     string
	Index    int
	Type     *HeaderType
	Base     int
	Metadata bool
	Union    *union
}

// Valid returns the word with the header's validity.
func (h *Header) Valid() int { return h.Base }

// Field returns the field called name, with its absolute offset.
func (h *Header) Field(name string) (Field, bool) {
	f, ok := h.Type.field(name)
	return f.at(h.Base), ok
}

func (t *HeaderType) field(name string) (Field, bool) {
	if name == "$valid$" {
		return Field{Name: name, Off: 0, Width: 1}, true
	}
	i, ok := t.byName[name]
	if !ok {
		return Field{}, false
	}
	return t.Fields[i], true
}

type stack struct {
	name     string
	Type     *HeaderType
	Elements []*Header
	Next     int // the word that counts the used elements
}

type union struct {
	Name    string
	Members []*Header
	names   []string
}

type unionStack struct {
	name     string
	Elements []*union
	Next     int
}

// NewLayout assigns places to the headers and metadata of a program.
func NewLayout(c *bmv2.Config) (*Layout, error) {
	l := &Layout{
		HeaderNames: map[string]*Header{}, StackNames: map[string]*stack{},
		unionNames: map[string]*union{}, UnionStackNames: map[string]*unionStack{},
		aliases: map[string]bmv2.FieldRef{},
	}
	types := map[string]*HeaderType{}
	for _, t := range c.HeaderTypes {
		ht, err := newHeaderType(t)
		if err != nil {
			return nil, err
		}
		l.Types = append(l.Types, ht)
		types[t.Name] = ht
		l.scratch = max(l.scratch, ht.Size)
	}
	l.Words = l.scratch
	byID := map[int]*Header{}
	l.Metadata[0] = l.Words
	for _, metadata := range []bool{true, false} {
		for _, h := range c.Headers {
			if h.Metadata == metadata {
				t := types[h.HeaderType]
				hd := &Header{Name: h.Name, Index: len(l.Headers), Type: t, Base: l.Words, Metadata: h.Metadata}
				l.Words += t.Size
				l.Headers = append(l.Headers, hd)
				l.HeaderNames[h.Name] = hd
				byID[h.ID] = hd
			}
		}
		if metadata {
			l.Metadata[1] = l.Words
		}
	}
	l.placeStacks(c, types, byID)
	for _, a := range c.FieldAliases {
		l.aliases[a.Alias] = a.Field
	}
	if l.Words > MaxWords {
		return nil, fmt.Errorf("the headers and metadata take %d words, more than %d", l.Words, MaxWords)
	}
	return l, nil
}

// MaxWords is the largest size of the vector.
const MaxWords = 1 << 20

func newHeaderType(t *bmv2.HeaderType) (*HeaderType, error) {
	ht := &HeaderType{Name: t.Name, byName: map[string]int{}, VarLen: -1, LenExpr: t.LengthExp}
	ht.Size = 1
	for i, f := range t.Fields {
		fd := Field{Name: f.Name, Width: f.Width, Signed: f.Signed, VarLen: f.VarLen}
		if f.VarLen {
			ht.VarLen = i
			ht.Size++
		} else {
			ht.Bits += f.Width
		}
		fd.Off = ht.Size
		ht.byName[f.Name] = i
		ht.Fields = append(ht.Fields, fd)
		ht.Size += fd.Words()
	}
	if ht.VarLen >= 0 {
		// Size the variable-length field, now that the rest of the header is
		// known.
		ht.MaxVar = t.MaxLength*8 - ht.Bits
		if t.MaxLength == 0 || ht.MaxVar < 0 {
			ht.MaxVar = defaultVarBits
		}
		f := &ht.Fields[ht.VarLen]
		f.Width = ht.MaxVar
		for i := ht.VarLen + 1; i < len(ht.Fields); i++ {
			ht.Fields[i].Off += f.Words()
		}
		ht.Size += f.Words()
	}
	ht.Chunks = cutChunks(ht)
	return ht, nil
}

// defaultVarBits is the size of a variable-length field in a header without
// max_length.
const defaultVarBits = 2048

func (l *Layout) placeStacks(c *bmv2.Config, types map[string]*HeaderType, byID map[int]*Header) {
	for _, s := range c.HeaderStacks {
		st := &stack{name: s.Name, Type: types[s.HeaderType], Next: l.newWord()}
		for _, id := range s.HeaderIDs {
			st.Elements = append(st.Elements, byID[id])
		}
		l.StackNames[s.Name] = st
	}
	unionTypes := map[string]*bmv2.HeaderUnionType{}
	for _, t := range c.HeaderUnionTypes {
		unionTypes[t.Name] = t
	}
	unionIDs := map[int]*union{}
	for _, u := range c.HeaderUnions {
		un := &union{Name: u.Name}
		for i, id := range u.HeaderIDs {
			byID[id].Union = un
			un.Members = append(un.Members, byID[id])
			un.names = append(un.names, unionTypes[u.UnionType].Headers[i].Name)
		}
		l.unionNames[u.Name] = un
		unionIDs[u.ID] = un
	}
	for _, s := range c.HeaderUnionStacks {
		st := &unionStack{name: s.Name, Next: l.newWord()}
		for _, id := range s.HeaderUnionIDs {
			st.Elements = append(st.Elements, unionIDs[id])
		}
		l.UnionStackNames[s.Name] = st
	}
}

func (l *Layout) newWord() int {
	l.Words++
	return l.Words - 1
}

// Field finds a field by header and field name.
func (l *Layout) Field(header, name string) (Field, error) {
	if h := l.HeaderNames[header]; h != nil {
		if f, ok := h.Field(name); ok {
			return f, nil
		}
	}
	return Field{}, fmt.Errorf("unknown field %s.%s", header, name)
}

// Target finds a field that the switch reads or writes, under its alias or its
// own name; ok is false if the program does not have it.
func (l *Layout) Target(header, name string) (f Field, ok bool) {
	ref, ok := l.aliases[header+"."+name]
	if !ok {
		ref = bmv2.FieldRef{Header: header, Field: name}
	}
	f, err := l.Field(ref.Header, ref.Field)
	return f, err == nil
}
