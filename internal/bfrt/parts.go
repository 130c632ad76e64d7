package bfrt

// NewTable returns a table without keys, actions and data.
func NewTable(name string, id uint32, kind string, size int64) *Table {
	return &Table{
		Name: name, ID: id, Type: kind, Size: size,
		DependsOn: []uint32{}, Key: []*Field{}, Data: []*Data{}, Operations: []string{}, Attributes: []string{},
	}
}

// Notes sets the annotations of the table. The list may be empty.
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

// AddKey adds a field to the key.
func (t *Table) AddKey(id uint32, name string, mandatory bool, match string, typ *Type, notes ...Annotation) {
	t.Key = append(t.Key, &Field{
		ID: id, Name: name, Annotations: orNone(notes), Mandatory: &mandatory, MatchType: match, Type: typ,
	})
}

// NewField returns a field of data.
func NewField(id uint32, name string, typ *Type, notes ...Annotation) *Field {
	return &Field{ID: id, Name: name, Annotations: orNone(notes), Type: typ}
}

// Many makes the field an array.
func (f *Field) Many() *Field {
	f.Repeated = true
	return f
}

// Param returns a parameter of an action.
func Param(id uint32, name string, mandatory bool, typ *Type, notes ...Annotation) *Field {
	readOnly := false
	return &Field{ID: id, Name: name, Annotations: orNone(notes), Mandatory: &mandatory, ReadOnly: &readOnly, Type: typ}
}

// Optional returns data that an entry may have.
func Optional(f *Field) *Data { return &Data{Singleton: f} }

// Mandatory returns data that an entry must have.
func Mandatory(f *Field) *Data { return &Data{Mandatory: true, Singleton: f} }

// ReadOnly returns data that only the switch writes.
func ReadOnly(f *Field) *Data { return &Data{ReadOnly: true, Singleton: f} }

// Bytes returns the type of numbers with width bits.
func Bytes(width int) *Type { return &Type{Type: "bytes", Width: width} }

// Plain returns a type without attributes: uint32, uint64, float, bool or string.
func Plain(kind string) *Type { return &Type{Type: kind} }

// With sets the default value of the type.
func (t *Type) With(value any) *Type {
	t.Default = value
	return t
}

// OneOf returns the type of a string with a fixed set of values.
func OneOf(choices ...string) *Type { return &Type{Type: "string", Choices: choices} }
