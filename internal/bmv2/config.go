package bmv2

import (
	"fmt"
	"slices"
)

// The struct tags control the codec (codec.go). Options after the key:
//
//	omitempty  omit the key if the value is zero (for a slice: nil)
//	null       write the empty string as null and read null as empty
//
// The fields are in the order in which p4c writes the keys.

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

// Meta describes the document. A document without it predates version 2.0.
type Meta struct {
	Version  []int  `bmv2:"version"`
	Compiler string `bmv2:"compiler,omitempty"`
	// Command created the document from a program with this license (an SPDX
	// identifier). simple_switch reads neither.
	Command string `bmv2:"command,omitempty"`
	Licence string `bmv2:"license,omitempty"`
	// Architecture is "" in BMv2's documents, and TNA or T2NA in documents that
	// describe a pipe of Tofino.
	Architecture string `bmv2:"architecture,omitempty"`
	// Chip is T2NA for a program of architecture TNA that is compiled for Tofino 2.
	// Otherwise it is empty, and the architecture implies the chip.
	Chip string `bmv2:"chip,omitempty"`
	// FlowControl is true if the program pauses and resumes queues (adv_flow_ctl).
	FlowControl bool `bmv2:"flow_control,omitempty"`
	// Pipes are the program numbers of Tofino's pipes if they differ. Program 0
	// has the blocks ingress_parser and so on, program 1 pipe1.ingress_parser.
	Pipes []int `bmv2:"pipes,omitempty"`
}

// MadeBy returns a copy of the document with its origin: the compiler, its
// command, and the license of the program, which may be "".
func (c *Config) MadeBy(compiler, command, licence string) *Config {
	made, meta := *c, Meta{}
	if c.Meta != nil {
		meta = *c.Meta
	}
	meta.Compiler, meta.Command, meta.Licence = compiler, command, licence
	made.Meta = &meta
	return &made
}

// PipePrefix returns the prefix of the block names of a pipe's program.
func PipePrefix(program int) string {
	if program == 0 {
		return ""
	}
	return fmt.Sprintf("pipe%d.", program)
}

// Programs returns the number of different programs in Tofino's pipes.
func (c *Config) Programs() int {
	if c.Meta == nil || len(c.Meta.Pipes) == 0 {
		return 1
	}
	return max(0, slices.Max(c.Meta.Pipes)) + 1
}

// The architectures that BMv2 cannot run.
const (
	TNA  = "tna"
	T2NA = "t2na"
)

// Architecture returns the architecture of the program, or "" for v1model.
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

// SourceInfo is the position of an object in the P4 program.
type SourceInfo struct {
	Filename       string `bmv2:"filename"`
	Line           int    `bmv2:"line"`
	Column         int    `bmv2:"column"`
	SourceFragment string `bmv2:"source_fragment"`
}

// A NamedValue is a name with its number in the data plane: ["NoError", 0].
type NamedValue struct {
	Name  string
	Value int
}

// An Enum is a P4 enum without underlying type; the compiler chooses the
// values.
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
	// MaxLength is the maximum size in bytes of a header with a variable-length
	// field.
	MaxLength int `bmv2:"max_length,omitempty"`
}

// A HeaderField is a field of a header type. Width is 0 for a variable-length
// field, which is "*" in the document.
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

// A HeaderUnion is a union instance. Each member is a separate header instance,
// and at most one of them is valid.
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

// A FieldRef is a field, written as ["header", "field"]. Field is empty where
// the format allows a header alone.
type FieldRef struct {
	Header string
	Field  string
}

// A FieldAlias gives a field the name that the target uses for it.
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

// A Deparser is the order in which valid headers are emitted, with primitives
// to execute before.
type Deparser struct {
	Name       string       `bmv2:"name"`
	ID         int          `bmv2:"id"`
	SourceInfo *SourceInfo  `bmv2:"source_info,omitempty"`
	Order      []string     `bmv2:"order"`
	Primitives []*Primitive `bmv2:"primitives,omitempty"`
}

// A MeterArray is an array of meters, or the direct meters of a table.
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

// A CounterArray is an array of counters, or the direct counters of a table.
type CounterArray struct {
	Name       string      `bmv2:"name"`
	ID         int         `bmv2:"id"`
	SourceInfo *SourceInfo `bmv2:"source_info,omitempty"`
	Size       int         `bmv2:"size,omitempty"`
	IsDirect   bool        `bmv2:"is_direct"`
	Binding    string      `bmv2:"binding,omitempty"`
	// TrueEgress makes the counter count packets as they leave egress (Tofino
	// 2).
	TrueEgress bool `bmv2:"true_egress,omitempty"`
}

// A RegisterArray is an array of cells of Bitwidth bits.
type RegisterArray struct {
	Name       string      `bmv2:"name"`
	ID         int         `bmv2:"id"`
	SourceInfo *SourceInfo `bmv2:"source_info,omitempty"`
	Size       int         `bmv2:"size"`
	Bitwidth   int         `bmv2:"bitwidth"`
	// Initial is the initial value of the cells as a hexstr; "" is 0, the only
	// value in BMv2.
	Initial string `bmv2:"initial,omitempty"`
	// Pair is set if a cell consists of two numbers of half its width, the
	// first one in the upper bits, like the pairs of Tofino's stateful ALUs.
	Pair bool `bmv2:"pair,omitempty"`
}

// A FilterArray is an array of low-pass filters for values of Bitwidth bits, or
// of random early detection (WRED) based on such filters. BMv2 has no such
// objects.
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
	CRC        *CRC        `bmv2:"crc,omitempty"` // if Algo is AlgoCRC
	Input      []*Expr     `bmv2:"input"`
	Hash       *Hash       `bmv2:"hash,omitempty"`
}

// A Hash describes a Calculation of a Tofino program with an algorithm that the
// control plane can replace. The result has Width bits, of which the program
// uses bits Low to High. Extend is set if the program repeats the result of an
// algorithm with fewer bits; otherwise the missing bits are 0.
type Hash struct {
	Name   string `bmv2:"name"`
	Width  int    `bmv2:"width"`
	Low    int    `bmv2:"low"`
	High   int    `bmv2:"high"`
	Extend bool   `bmv2:"extend,omitempty"`
}

// AlgoCRC is the algorithm of a Calculation with its own polynomial.
const AlgoCRC = "crc_custom"

// A CRC is a cyclic redundancy check with 8 to 64 bits. Poly (without the
// leading bit), Init and Xor are hexstr; Reversed applies to both input bytes
// and result.
type CRC struct {
	Width    int    `bmv2:"width"`
	Poly     string `bmv2:"poly"`
	Init     string `bmv2:"init"`
	Xor      string `bmv2:"xor"`
	Reversed bool   `bmv2:"reversed"`
}

// A Checksum updates or verifies the field Target.
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

// An ExternInstance is an instance of an extern type of the target.
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
