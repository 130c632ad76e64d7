package bmv2

import (
	"fmt"
	"slices"
)

// The struct tags drive the codec (codec.go). Options after the key:
//
//	omitempty  the key is absent when the value is zero (for a slice: nil)
//	null       the empty string is written as null, null reads as empty
//
// The order of the fields is the order in which p4c writes the keys.

// A Config is one BMv2 JSON document.
type Config struct {
	HeaderTypes       []*HeaderType       `bmv2:"header_types"`
	Headers           []*Header           `bmv2:"headers"`
	HeaderStacks      []*HeaderStack      `bmv2:"header_stacks"`
	HeaderUnionTypes  []*HeaderUnionType  `bmv2:"header_union_types"`
	HeaderUnions      []*HeaderUnion      `bmv2:"header_unions"`
	HeaderUnionStacks []*HeaderUnionStack `bmv2:"header_union_stacks"`
	FieldLists        []*FieldList        `bmv2:"field_lists"`
	Errors            []NamedValue        `bmv2:"errors"`
	Enums             []*Enum             `bmv2:"enums"`
	Parsers           []*Parser           `bmv2:"parsers"`
	ParseVSets        []*ParseVSet        `bmv2:"parse_vsets"`
	Deparsers         []*Deparser         `bmv2:"deparsers"`
	MeterArrays       []*MeterArray       `bmv2:"meter_arrays"`
	CounterArrays     []*CounterArray     `bmv2:"counter_arrays"`
	RegisterArrays    []*RegisterArray    `bmv2:"register_arrays"`
	FilterArrays      []*FilterArray      `bmv2:"filter_arrays,omitempty"`
	Calculations      []*Calculation      `bmv2:"calculations"`
	LearnLists        []*FieldList        `bmv2:"learn_lists"`
	Actions           []*Action           `bmv2:"actions"`
	Pipelines         []*Pipeline         `bmv2:"pipelines"`
	Checksums         []*Checksum         `bmv2:"checksums"`
	ForceArith        []FieldRef          `bmv2:"force_arith"`
	ExternInstances   []*ExternInstance   `bmv2:"extern_instances"`
	FieldAliases      []FieldAlias        `bmv2:"field_aliases"`
	Program           string              `bmv2:"program,omitempty"`
	Meta              *Meta               `bmv2:"__meta__,omitempty"`
}

// Meta is the document's own description. A document without it is of a
// version before 2.0.
type Meta struct {
	Version  []int  `bmv2:"version"`
	Compiler string `bmv2:"compiler,omitempty"`
	// Command made the document, of a program under this licence, as SPDX names
	// it. simple_switch reads neither.
	Command string `bmv2:"command,omitempty"`
	Licence string `bmv2:"license,omitempty"`
	// Architecture is "" in BMv2's own documents, TNA or T2NA in those that
	// have a pipe of Tofino in the same terms.
	Architecture string `bmv2:"architecture,omitempty"`
	// Chip is T2NA for a program of architecture TNA that is compiled for Tofino 2.
	// Otherwise it is empty, and the architecture implies the chip.
	Chip string `bmv2:"chip,omitempty"`
	// Pipes are the programs of Tofino's pipes, where these differ: program 0
	// has the blocks ingress_parser and so on, program 1 pipe1.ingress_parser.
	Pipes []int `bmv2:"pipes,omitempty"`
}

// MadeBy is the document with what made it: a compiler, by which command, of a
// program under which licence, which may be "".
func (c *Config) MadeBy(compiler, command, licence string) *Config {
	made, meta := *c, Meta{}
	if c.Meta != nil {
		meta = *c.Meta
	}
	meta.Compiler, meta.Command, meta.Licence = compiler, command, licence
	made.Meta = &meta
	return &made
}

// PipePrefix is what the blocks of a program for a pipe begin with.
func PipePrefix(program int) string {
	if program == 0 {
		return ""
	}
	return fmt.Sprintf("pipe%d.", program)
}

// Programs is how many programs the pipes of Tofino have.
func (c *Config) Programs() int {
	if c.Meta == nil || len(c.Meta.Pipes) == 0 {
		return 1
	}
	return max(0, slices.Max(c.Meta.Pipes)) + 1
}

// The architectures of programs that BMv2 cannot run.
const (
	TNA  = "tna"
	T2NA = "t2na"
)

// Architecture names the architecture of the program, "" for v1model.
func (c *Config) Architecture() string {
	if c.Meta == nil {
		return ""
	}
	return c.Meta.Architecture
}

// Chip returns the chip of the program: TNA for Tofino 1, T2NA for Tofino 2, and
// the empty string for v1model.
func (c *Config) Chip() string {
	if c.Meta == nil || c.Meta.Chip == "" {
		return c.Architecture()
	}
	return c.Meta.Chip
}

// SourceInfo is where in the P4 program an object comes from.
type SourceInfo struct {
	Filename       string `bmv2:"filename"`
	Line           int    `bmv2:"line"`
	Column         int    `bmv2:"column"`
	SourceFragment string `bmv2:"source_fragment"`
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
	Name    string       `bmv2:"name"`
	Entries []NamedValue `bmv2:"entries"`
}

// A HeaderType is the layout of headers and of metadata structs.
type HeaderType struct {
	Name      string        `bmv2:"name"`
	ID        int           `bmv2:"id"`
	Fields    []HeaderField `bmv2:"fields"`
	LengthExp *Expr         `bmv2:"length_exp,omitempty"`
	// MaxLength is the header's largest size in bytes, for a header with a
	// variable-length field.
	MaxLength int `bmv2:"max_length,omitempty"`
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
	Name       string `bmv2:"name"`
	ID         int    `bmv2:"id"`
	HeaderType string `bmv2:"header_type"`
	Metadata   bool   `bmv2:"metadata"`
	PIOmit     bool   `bmv2:"pi_omit,omitempty"`
}

// A HeaderStack lists the header instances of a stack by id, lowest index
// first.
type HeaderStack struct {
	Name       string `bmv2:"name"`
	ID         int    `bmv2:"id"`
	HeaderType string `bmv2:"header_type"`
	Size       int    `bmv2:"size,omitempty"`
	HeaderIDs  []int  `bmv2:"header_ids"`
}

// A HeaderUnionType lists the members of a union as (member, header type).
type HeaderUnionType struct {
	Name    string        `bmv2:"name"`
	ID      int           `bmv2:"id"`
	Headers []UnionMember `bmv2:"headers"`
}

// A UnionMember is one alternative of a header union type.
type UnionMember struct {
	Name       string
	HeaderType string
}

// A HeaderUnion is a union instance; every member is a header instance of its
// own, and at most one of them is valid.
type HeaderUnion struct {
	Name      string `bmv2:"name"`
	ID        int    `bmv2:"id"`
	UnionType string `bmv2:"union_type"`
	HeaderIDs []int  `bmv2:"header_ids"`
	PIOmit    bool   `bmv2:"pi_omit,omitempty"`
}

// A HeaderUnionStack lists the union instances of a stack by id.
type HeaderUnionStack struct {
	Name           string `bmv2:"name"`
	ID             int    `bmv2:"id"`
	UnionType      string `bmv2:"union_type"`
	Size           int    `bmv2:"size,omitempty"`
	HeaderUnionIDs []int  `bmv2:"header_union_ids"`
}

// A FieldList names fields that survive a clone, resubmit or recirculation,
// or (as a learn list) the content of a digest. Ids start at 1.
type FieldList struct {
	ID         int         `bmv2:"id"`
	Name       string      `bmv2:"name"`
	SourceInfo *SourceInfo `bmv2:"source_info,omitempty"`
	Elements   []*Expr     `bmv2:"elements"`
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
	Name               string `bmv2:"name"`
	ID                 int    `bmv2:"id"`
	CompressedBitwidth int    `bmv2:"compressed_bitwidth"`
	MaxSize            int    `bmv2:"max_size,omitempty"`
}

// A Deparser is the order in which valid headers are written, with
// primitives to run before.
type Deparser struct {
	Name       string       `bmv2:"name"`
	ID         int          `bmv2:"id"`
	SourceInfo *SourceInfo  `bmv2:"source_info,omitempty"`
	Order      []string     `bmv2:"order"`
	Primitives []*Primitive `bmv2:"primitives,omitempty"`
}

// A MeterArray is an array of meters, or the meters of a table's entries.
type MeterArray struct {
	Name         string      `bmv2:"name"`
	ID           int         `bmv2:"id"`
	SourceInfo   *SourceInfo `bmv2:"source_info,omitempty"`
	IsDirect     bool        `bmv2:"is_direct"`
	Size         int         `bmv2:"size,omitempty"`
	RateCount    int         `bmv2:"rate_count"`
	Type         string      `bmv2:"type"` // "bytes" or "packets"
	Binding      string      `bmv2:"binding,omitempty"`
	ResultTarget *FieldRef   `bmv2:"result_target,omitempty"`
}

// A CounterArray is an array of counters, or the counters of a table's
// entries.
type CounterArray struct {
	Name       string      `bmv2:"name"`
	ID         int         `bmv2:"id"`
	SourceInfo *SourceInfo `bmv2:"source_info,omitempty"`
	Size       int         `bmv2:"size,omitempty"`
	IsDirect   bool        `bmv2:"is_direct"`
	Binding    string      `bmv2:"binding,omitempty"`
	// TrueEgress, of Tofino 2, counts packets as they leave egress.
	TrueEgress bool `bmv2:"true_egress,omitempty"`
}

// A RegisterArray is an array of cells of Bitwidth bits.
type RegisterArray struct {
	Name       string      `bmv2:"name"`
	ID         int         `bmv2:"id"`
	SourceInfo *SourceInfo `bmv2:"source_info,omitempty"`
	Size       int         `bmv2:"size"`
	Bitwidth   int         `bmv2:"bitwidth"`
	// Initial is what the cells start with, as a hexstr; "" is 0, which is
	// all that BMv2 knows.
	Initial string `bmv2:"initial,omitempty"`
	// Pair says that a cell is two numbers of half its bits, the first on top, as
	// Tofino's stateful ALUs have them.
	Pair bool `bmv2:"pair,omitempty"`
}

// A FilterArray is an array of low-pass filters for values of Bitwidth bits, or
// of random early detections by such filters. Tofino has them, BMv2 has not.
type FilterArray struct {
	Name       string      `bmv2:"name"`
	ID         int         `bmv2:"id"`
	SourceInfo *SourceInfo `bmv2:"source_info,omitempty"`
	Size       int         `bmv2:"size"`
	Bitwidth   int         `bmv2:"bitwidth"`
	Wred       bool        `bmv2:"wred,omitempty"`
}

// A Calculation is a hash over a list of inputs.
type Calculation struct {
	Name       string      `bmv2:"name"`
	ID         int         `bmv2:"id"`
	SourceInfo *SourceInfo `bmv2:"source_info,omitempty"`
	Algo       string      `bmv2:"algo"`
	CRC        *CRC        `bmv2:"crc,omitempty"` // of the algorithm AlgoCRC
	Input      []*Expr     `bmv2:"input"`
	Hash       *Hash       `bmv2:"hash,omitempty"`
}

// A Hash is what a Calculation stands for in a program for Tofino, where the
// control plane may have it computed otherwise. Its result has Width bits, of which
// the program uses Low to High. Extend is whether the program's algorithm begins
// again where it has fewer bits; they are 0 otherwise.
type Hash struct {
	Name   string `bmv2:"name"`
	Width  int    `bmv2:"width"`
	Low    int    `bmv2:"low"`
	High   int    `bmv2:"high"`
	Extend bool   `bmv2:"extend,omitempty"`
}

// AlgoCRC is the algorithm of a Calculation that brings its polynomial along.
const AlgoCRC = "crc_custom"

// A CRC is a cyclic redundancy check of Width bits, 8 to 64. Poly (without the
// leading bit), Init and Xor are hexstr; Reversed is of both input bytes and
// result.
type CRC struct {
	Width    int    `bmv2:"width"`
	Poly     string `bmv2:"poly"`
	Init     string `bmv2:"init"`
	Xor      string `bmv2:"xor"`
	Reversed bool   `bmv2:"reversed"`
}

// A Checksum writes (update) or checks (verify) the field Target.
type Checksum struct {
	Name        string      `bmv2:"name"`
	ID          int         `bmv2:"id"`
	SourceInfo  *SourceInfo `bmv2:"source_info,omitempty"`
	Target      FieldRef    `bmv2:"target"`
	Type        string      `bmv2:"type"`
	Calculation string      `bmv2:"calculation"`
	Verify      *bool       `bmv2:"verify,omitempty"` // nil means true
	Update      *bool       `bmv2:"update,omitempty"` // nil means true
	IfCond      *Expr       `bmv2:"if_cond"`
}

// An ExternInstance is an instance of an extern type that the target knows.
type ExternInstance struct {
	Name            string            `bmv2:"name"`
	ID              int               `bmv2:"id"`
	SourceInfo      *SourceInfo       `bmv2:"source_info,omitempty"`
	Type            string            `bmv2:"type"`
	AttributeValues []ExternAttribute `bmv2:"attribute_values,omitempty"`
}

// An ExternAttribute is the initial value of an extern's attribute.
type ExternAttribute struct {
	Name  string
	Value *Expr // hexstr, string or expression
}
