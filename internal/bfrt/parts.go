package bfrt

// NewTable is a table of a type without parts.
func NewTable(name string, id uint32, kind string, size int64) *Table {
	return &Table{
		Name: name, ID: id, Type: kind, Size: size,
		DependsOn: []uint32{}, Key: []*Field{}, Data: []*Data{}, Operations: []string{}, Attributes: []string{},
	}
}

// Notes gives the table annotations, of which there may be none.
func (t *Table) Notes(list []Annotation) *Table {
	list = orNone(list)
	t.Annotations = &list
	return t
}

func orNone(list []Annotation) []Annotation {
	if list == nil {
		return []Annotation{}
	}
	return list
}

// AddKey adds a part of the key.
func (t *Table) AddKey(id uint32, name string, mandatory bool, match string, typ *Type, notes ...Annotation) {
	t.Key = append(t.Key, &Field{
		ID: id, Name: name, Annotations: orNone(notes), Mandatory: &mandatory, MatchType: match, Type: typ,
	})
}

// NewField is a field of data.
func NewField(id uint32, name string, typ *Type, notes ...Annotation) *Field {
	return &Field{ID: id, Name: name, Annotations: orNone(notes), Type: typ}
}

// Many makes a field one of which an entry has several.
func (f *Field) Many() *Field {
	f.Repeated = true
	return f
}

// Param is a parameter of an action.
func Param(id uint32, name string, mandatory bool, typ *Type, notes ...Annotation) *Field {
	readOnly := false
	return &Field{ID: id, Name: name, Annotations: orNone(notes), Mandatory: &mandatory, ReadOnly: &readOnly, Type: typ}
}

// Optional is data that an entry may have.
func Optional(f *Field) *Data { return &Data{Singleton: f} }

// Mandatory is data that an entry must have.
func Mandatory(f *Field) *Data { return &Data{Mandatory: true, Singleton: f} }

// ReadOnly is data that the switch tells.
func ReadOnly(f *Field) *Data { return &Data{ReadOnly: true, Singleton: f} }

// Bytes is the type of numbers of width bits.
func Bytes(width int) *Type { return &Type{Type: "bytes", Width: width} }

// Plain is a type that has no more to it: uint32, uint64, float, bool, string.
func Plain(kind string) *Type { return &Type{Type: kind} }

// With gives the type a default value.
func (t *Type) With(value any) *Type {
	t.Default = value
	return t
}

// OneOf is the type of strings of which there are a few.
func OneOf(choices ...string) *Type { return &Type{Type: "string", Choices: choices} }
