package bmv2

// The struct tags drive the codec (codec.go). Options after the key:
//
//	omitempty  the key is absent when the value is zero (for a slice: nil)
//	null       the empty string is written as null, null reads as empty
//
// The order of the fields is the order in which p4c writes the keys.

// A Config is one BMv2 JSON document.
type Config struct {
	HeaderTypes       []*HeaderType       `json:"header_types"`
	Headers           []*Header           `json:"headers"`
	HeaderStacks      []*HeaderStack      `json:"header_stacks"`
	HeaderUnionTypes  []*HeaderUnionType  `json:"header_union_types"`
	HeaderUnions      []*HeaderUnion      `json:"header_unions"`
	HeaderUnionStacks []*HeaderUnionStack `json:"header_union_stacks"`
	FieldLists        []*FieldList        `json:"field_lists"`
	Errors            []NamedValue        `json:"errors"`
	Enums             []*Enum             `json:"enums"`
	Parsers           []*Parser           `json:"parsers"`
	ParseVSets        []*ParseVSet        `json:"parse_vsets"`
	Deparsers         []*Deparser         `json:"deparsers"`
	MeterArrays       []*MeterArray       `json:"meter_arrays"`
	CounterArrays     []*CounterArray     `json:"counter_arrays"`
	RegisterArrays    []*RegisterArray    `json:"register_arrays"`
	Calculations      []*Calculation      `json:"calculations"`
	LearnLists        []*FieldList        `json:"learn_lists"`
	Actions           []*Action           `json:"actions"`
	Pipelines         []*Pipeline         `json:"pipelines"`
	Checksums         []*Checksum         `json:"checksums"`
	ForceArith        []FieldRef          `json:"force_arith"`
	ExternInstances   []*ExternInstance   `json:"extern_instances"`
	FieldAliases      []FieldAlias        `json:"field_aliases"`
	Program           string              `json:"program,omitempty"`
	Meta              *Meta               `json:"__meta__,omitempty"`
}

// Meta is the document's own description. A document without it is of a
// version before 2.0.
type Meta struct {
	Version  []int  `json:"version"`
	Compiler string `json:"compiler,omitempty"`
}

// SourceInfo is where in the P4 program an object comes from.
type SourceInfo struct {
	Filename       string `json:"filename"`
	Line           int    `json:"line"`
	Column         int    `json:"column"`
	SourceFragment string `json:"source_fragment"`
}

// A NamedValue is a name with the number that stands for it in the data
// plane: ["NoError", 0].
type NamedValue struct {
	Name  string
	Value int
}

// An Enum is a P4 enum without underlying type; the values are those that the
// compiler chose.
type Enum struct {
	Name    string       `json:"name"`
	Entries []NamedValue `json:"entries"`
}

// A HeaderType is the layout of headers and of metadata structs.
type HeaderType struct {
	Name      string        `json:"name"`
	ID        int           `json:"id"`
	Fields    []HeaderField `json:"fields"`
	LengthExp *Expr         `json:"length_exp,omitempty"`
	// MaxLength is the header's largest size in bytes, for a header with a
	// variable-length field.
	MaxLength int `json:"max_length,omitempty"`
}

// A HeaderField is one field of a header type. Width is 0 for the
// variable-length field, which the document writes as "*".
type HeaderField struct {
	Name   string
	Width  int
	Signed bool
	VarLen bool
}

// A Header is a header or metadata instance.
type Header struct {
	Name       string `json:"name"`
	ID         int    `json:"id"`
	HeaderType string `json:"header_type"`
	Metadata   bool   `json:"metadata"`
	PIOmit     bool   `json:"pi_omit,omitempty"`
}

// A HeaderStack lists the header instances of a stack by id, lowest index
// first.
type HeaderStack struct {
	Name       string `json:"name"`
	ID         int    `json:"id"`
	HeaderType string `json:"header_type"`
	Size       int    `json:"size,omitempty"`
	HeaderIDs  []int  `json:"header_ids"`
}

// A HeaderUnionType lists the members of a union as (member, header type).
type HeaderUnionType struct {
	Name    string        `json:"name"`
	ID      int           `json:"id"`
	Headers []UnionMember `json:"headers"`
}

// A UnionMember is one alternative of a header union type.
type UnionMember struct {
	Name       string
	HeaderType string
}

// A HeaderUnion is a union instance; every member is a header instance of its
// own, and at most one of them is valid.
type HeaderUnion struct {
	Name      string `json:"name"`
	ID        int    `json:"id"`
	UnionType string `json:"union_type"`
	HeaderIDs []int  `json:"header_ids"`
	PIOmit    bool   `json:"pi_omit,omitempty"`
}

// A HeaderUnionStack lists the union instances of a stack by id.
type HeaderUnionStack struct {
	Name           string `json:"name"`
	ID             int    `json:"id"`
	UnionType      string `json:"union_type"`
	Size           int    `json:"size,omitempty"`
	HeaderUnionIDs []int  `json:"header_union_ids"`
}

// A FieldList names fields that survive a clone, resubmit or recirculation,
// or (as a learn list) the content of a digest. Ids start at 1.
type FieldList struct {
	ID         int         `json:"id"`
	Name       string      `json:"name"`
	SourceInfo *SourceInfo `json:"source_info,omitempty"`
	Elements   []*Expr     `json:"elements"`
}

// A FieldRef names a field as ["header", "field"]. Field is empty where the
// format allows a header alone.
type FieldRef struct {
	Header string
	Field  string
}

// A FieldAlias gives a field the name under which the target looks for it.
type FieldAlias struct {
	Alias string
	Field FieldRef
}

// A ParseVSet is a parser value set.
type ParseVSet struct {
	Name               string `json:"name"`
	ID                 int    `json:"id"`
	CompressedBitwidth int    `json:"compressed_bitwidth"`
	MaxSize            int    `json:"max_size,omitempty"`
}

// A Deparser is the order in which valid headers are written, with
// primitives to run before.
type Deparser struct {
	Name       string       `json:"name"`
	ID         int          `json:"id"`
	SourceInfo *SourceInfo  `json:"source_info,omitempty"`
	Order      []string     `json:"order"`
	Primitives []*Primitive `json:"primitives,omitempty"`
}

// A MeterArray is an array of meters, or the meters of a table's entries.
type MeterArray struct {
	Name         string      `json:"name"`
	ID           int         `json:"id"`
	SourceInfo   *SourceInfo `json:"source_info,omitempty"`
	IsDirect     bool        `json:"is_direct"`
	Size         int         `json:"size,omitempty"`
	RateCount    int         `json:"rate_count"`
	Type         string      `json:"type"` // "bytes" or "packets"
	Binding      string      `json:"binding,omitempty"`
	ResultTarget *FieldRef   `json:"result_target,omitempty"`
}

// A CounterArray is an array of counters, or the counters of a table's
// entries.
type CounterArray struct {
	Name       string      `json:"name"`
	ID         int         `json:"id"`
	SourceInfo *SourceInfo `json:"source_info,omitempty"`
	Size       int         `json:"size,omitempty"`
	IsDirect   bool        `json:"is_direct"`
	Binding    string      `json:"binding,omitempty"`
}

// A RegisterArray is an array of cells of Bitwidth bits.
type RegisterArray struct {
	Name       string      `json:"name"`
	ID         int         `json:"id"`
	SourceInfo *SourceInfo `json:"source_info,omitempty"`
	Size       int         `json:"size"`
	Bitwidth   int         `json:"bitwidth"`
}

// A Calculation is a hash over a list of inputs.
type Calculation struct {
	Name       string      `json:"name"`
	ID         int         `json:"id"`
	SourceInfo *SourceInfo `json:"source_info,omitempty"`
	Algo       string      `json:"algo"`
	Input      []*Expr     `json:"input"`
}

// A Checksum writes (update) or checks (verify) the field Target.
type Checksum struct {
	Name        string      `json:"name"`
	ID          int         `json:"id"`
	SourceInfo  *SourceInfo `json:"source_info,omitempty"`
	Target      FieldRef    `json:"target"`
	Type        string      `json:"type"`
	Calculation string      `json:"calculation"`
	Verify      *bool       `json:"verify,omitempty"` // nil means true
	Update      *bool       `json:"update,omitempty"` // nil means true
	IfCond      *Expr       `json:"if_cond"`
}

// An ExternInstance is an instance of an extern type that the target knows.
type ExternInstance struct {
	Name            string            `json:"name"`
	ID              int               `json:"id"`
	SourceInfo      *SourceInfo       `json:"source_info,omitempty"`
	Type            string            `json:"type"`
	AttributeValues []ExternAttribute `json:"attribute_values,omitempty"`
}

// An ExternAttribute is the initial value of an extern's attribute.
type ExternAttribute struct {
	Name  string
	Value *Expr // hexstr, string or expression
}
