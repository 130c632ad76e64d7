// Package bfrt is the schema of BfRt, the runtime interface of Intel's SDE for
// Tofino. The schema describes a program to its control plane, as tables
// with keys and data. The SDE calls the file bf-rt.json.
//
// Everything is a table: match tables, action profiles and selectors, counters,
// meters, registers, filters, value sets, port metadata, hash algorithms and
// snapshots of the pipe. Clients address tables and their parts by number.
package bfrt

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/p4lb/p4lb/internal/text/lists"
)

// A Schema is a whole document.
type Schema struct {
	Version      string         `json:"schema_version"`
	Tables       []*Table       `json:"tables"`
	LearnFilters []*LearnFilter `json:"learn_filters"`
}

// A Table is a table of the schema. Annotations, ActionSpecs and HasConstDefault are
// nil for table types that lack them.
type Table struct {
	Name            string         `json:"name"`
	ID              uint32         `json:"id"`
	Type            string         `json:"table_type"`
	Size            int64          `json:"size"`
	Annotations     *[]Annotation  `json:"annotations,omitempty"`
	DependsOn       []uint32       `json:"depends_on"`
	HasConstDefault *bool          `json:"has_const_default_action,omitempty"`
	Key             []*Field       `json:"key"`
	ActionSpecs     *[]*ActionSpec `json:"action_specs,omitempty"`
	Data            []*Data        `json:"data"`
	Operations      []string       `json:"supported_operations"`
	Attributes      []string       `json:"attributes"`
	ReadOnly        bool           `json:"read_only,omitempty"`
}

// An Annotation is an annotation of the program or a hint for the SDE.
type Annotation struct {
	Name  string `json:"name"`
	Value string `json:"value,omitempty"`
}

// A Field is a field of a key, of an action's data or of a table's data. Mandatory
// and ReadOnly are nil if the enclosing Data states them.
type Field struct {
	ID          uint32       `json:"id"`
	Name        string       `json:"name"`
	Repeated    bool         `json:"repeated"`
	Annotations []Annotation `json:"annotations"`
	Mandatory   *bool        `json:"mandatory,omitempty"`
	ReadOnly    *bool        `json:"read_only,omitempty"`
	MatchType   string       `json:"match_type,omitempty"`
	Type        *Type        `json:"type,omitempty"`
	Container   []*Data      `json:"container,omitempty"`
}

// A Type is the type of a field's values: bytes (of Width bits), uint32, uint64,
// float, bool or string.
type Type struct {
	Type    string   `json:"type"`
	Width   int      `json:"width,omitempty"`
	Choices []string `json:"choices,omitempty"`
	Default any      `json:"default_value,omitempty"`
	// Mask is the mask of an exact key as the program writes it, or "".
	Mask string `json:"mask,omitempty"`
}

// Data is a part of a table's data: a field, or alternatives of which an entry has
// one.
type Data struct {
	Mandatory bool     `json:"mandatory"`
	ReadOnly  bool     `json:"read_only"`
	Singleton *Field   `json:"singleton,omitempty"`
	OneOf     []*Field `json:"oneof,omitempty"`
}

// Fields returns the fields of the part.
func (d *Data) Fields() []*Field {
	if d.Singleton == nil {
		return d.OneOf
	}
	return append([]*Field{d.Singleton}, d.OneOf...)
}

// An ActionSpec is an action of a table, with its parameters.
type ActionSpec struct {
	ID          uint32       `json:"id"`
	Name        string       `json:"name"`
	Scope       string       `json:"action_scope"`
	Annotations []Annotation `json:"annotations"`
	Data        []*Field     `json:"data"`
}

// A LearnFilter is a digest.
type LearnFilter struct {
	Name        string       `json:"name"`
	ID          uint32       `json:"id"`
	Annotations []Annotation `json:"annotations"`
	Fields      []*Field     `json:"fields"`
}

// Decode reads a document. It rejects null in lists and fields without a type.
func Decode(text []byte) (*Schema, error) {
	s := new(Schema)
	if err := json.Unmarshal(text, s); err != nil {
		return nil, err
	}
	for i, t := range s.Tables {
		if t == nil {
			return nil, fmt.Errorf("table %d is null", i+1)
		}
		if err := t.whole(); err != nil {
			return nil, fmt.Errorf("table %s: %w", t.Name, err)
		}
	}
	for i, l := range s.LearnFilters {
		if l == nil {
			return nil, fmt.Errorf("learn filter %d is null", i+1)
		}
		if err := wholeFields(l.Fields); err != nil {
			return nil, fmt.Errorf("learn filter %s: %w", l.Name, err)
		}
	}
	return s, nil
}

// whole returns an error that names the first missing part of a table.
func (t *Table) whole() error {
	if err := wholeFields(t.Key); err != nil {
		return err
	}
	if t.ActionSpecs != nil {
		for i, a := range *t.ActionSpecs {
			if a == nil {
				return fmt.Errorf("action %d is null", i+1)
			}
			if err := wholeFields(a.Data); err != nil {
				return fmt.Errorf("action %s: %w", a.Name, err)
			}
		}
	}
	return wholeData(t.Data)
}

func wholeData(list []*Data) error {
	for i, d := range list {
		if d == nil {
			return fmt.Errorf("part %d of the data is null", i+1)
		}
		if err := wholeFields(d.Fields()); err != nil {
			return err
		}
	}
	return nil
}

func wholeFields(list []*Field) error {
	for i, f := range list {
		switch {
		case f == nil:
			return fmt.Errorf("field %d is null", i+1)
		case f.Type == nil && f.Container == nil:
			return fmt.Errorf("field %s has no type", f.Name)
		}
		if err := wholeData(f.Container); err != nil {
			return fmt.Errorf("field %s: %w", f.Name, err)
		}
	}
	return nil
}

// Bits returns the number of bits of a field's values, 0 if they are not numbers.
func (f *Field) Bits() int {
	if f.Type == nil {
		return 0
	}
	switch f.Type.Type {
	case "bytes":
		return f.Type.Width
	case "uint64", "int64":
		return 64
	case "uint32", "int32":
		return 32
	case "uint16", "int16":
		return 16
	case "uint8", "int8":
		return 8
	}
	return 0
}

// JSON returns the text of the document.
func (s *Schema) JSON() []byte {
	text, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		panic(err) // every value can be encoded
	}
	return append(text, '\n')
}

// Table returns the table with a name, nil if there is none.
func (s *Schema) Table(name string) *Table {
	return lists.First(s.Tables, func(t *Table) bool { return t.Name == name })
}

// Actions returns the table's actions. Some table types have none.
func (t *Table) Actions() []*ActionSpec {
	if t.ActionSpecs == nil {
		return nil
	}
	return *t.ActionSpecs
}

// Needs adds a table that this one depends on.
func (t *Table) Needs(id uint32) {
	if !slices.Contains(t.DependsOn, id) {
		t.DependsOn = append(t.DependsOn, id)
	}
}
