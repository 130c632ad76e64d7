package tofino

import (
	"fmt"
	"slices"
	"strings"

	configv1 "github.com/p4lang/p4runtime/go/p4/config/v1"

	"github.com/p4lb/p4lb/internal/bfrt"
	"github.com/p4lb/p4lb/internal/bfrt/wire"
	"github.com/p4lb/p4lb/internal/controller/p4info"
	"github.com/p4lb/p4lb/internal/scheme/manifest"
	"github.com/p4lb/p4lb/internal/text/lists"
)

// A program is a running program, described by the schema of the switch.
type program struct {
	name   string
	schema *bfrt.Schema
	byP4   map[uint32]*table // the tables of a P4Info, by number
	byID   map[uint32]*table // the same tables, by number in the schema
}

// A table is a match table with both of its descriptions.
type table struct {
	p4      *p4info.Table
	schema  *bfrt.Table
	keys    []key
	order   uint32             // number of the priority field; 0: none
	actions map[uint32]*action // by number in P4Info
	byID    map[uint32]*action // by number in the schema
	in      *indirection       // nil: the table contains its actions
}

// A key is a field of a table's key.
type key struct {
	p4 p4info.Field
	id uint32
}

// An action is an action of a table.
type action struct {
	p4     *p4info.Action
	id     uint32
	params []uint32 // the numbers of its parameters in the schema, in the order of P4Info
}

func parse(text []byte) (*bfrt.Schema, error) {
	s, err := bfrt.Decode(text)
	if err != nil {
		return nil, fmt.Errorf("reading the BfRt schema of the switch: %w", err)
	}
	return s, nil
}

// tableNamed returns the table with a name of P4Info, or nil. The schema prefixes the name with a
// pipe's name, which P4Info has too if the pipes run different programs.
func tableNamed(s *bfrt.Schema, name string) *bfrt.Table {
	if t := lists.First(s.Tables, func(t *bfrt.Table) bool { return t.Name == name }); t != nil {
		return t
	}
	return lists.First(s.Tables, func(t *bfrt.Table) bool { return inPipe(t.Name) == name })
}

// inPipe returns a name without the prefix of its pipe.
func inPipe(name string) string {
	_, rest, _ := strings.Cut(name, ".")
	return rest
}

// matchTypes maps the match kinds of P4Info to the words of the schema.
var matchTypes = map[configv1.MatchField_MatchType][]string{
	configv1.MatchField_EXACT:    {"Exact", "ATCAM"},
	configv1.MatchField_LPM:      {"LPM"},
	configv1.MatchField_TERNARY:  {"Ternary"},
	configv1.MatchField_RANGE:    {"Range"},
	configv1.MatchField_OPTIONAL: {"Optional"},
}

// newProgram compares a schema with the P4Info of the program that the switch should
// run. The error names the first difference.
func newProgram(name string, schema *bfrt.Schema, x *p4info.Index) (*program, error) {
	p := &program{name: name, schema: schema, byP4: map[uint32]*table{}, byID: map[uint32]*table{}}
	for _, t := range x.Tables {
		s := tableNamed(schema, t.Name)
		if s == nil {
			return nil, fmt.Errorf("it has no table %s", t.Name)
		}
		made, err := newTable(t, s, schema)
		if err != nil {
			return nil, fmt.Errorf("table %s: %w", t.Name, err)
		}
		p.byP4[t.ID], p.byID[s.ID] = made, made
	}
	for _, r := range x.Registers {
		if s := tableNamed(schema, r.Name); s == nil || s.Size != int64(r.Size) {
			return nil, fmt.Errorf("it has no register %s of %d cells", r.Name, r.Size)
		}
	}
	return p, nil
}

func newTable(p4 *p4info.Table, s *bfrt.Table, schema *bfrt.Schema) (*table, error) {
	t := &table{p4: p4, schema: s, actions: map[uint32]*action{}, byID: map[uint32]*action{}}
	for _, f := range p4.Fields {
		name := strings.Replace(f.Name, "$valid$", "$valid", 1) // P4Info and the schema write isValid() differently
		i := slices.IndexFunc(s.Key, func(k *bfrt.Field) bool { return k.Name == name })
		if i < 0 || s.Key[i].Bits() != f.Width || !slices.Contains(matchTypes[f.Kind], s.Key[i].MatchType) {
			return nil, fmt.Errorf("its key has no field %s of %d bits that matches as the program's", f.Name, f.Width)
		}
		t.keys = append(t.keys, key{f, s.Key[i].ID})
	}
	for _, k := range s.Key {
		if k.ID == bfrt.MatchPriority {
			t.order = k.ID
		}
	}
	var err error
	if t.in, err = indirectionOf(schema, s); err != nil {
		return nil, err
	}
	specs := s.Actions()
	if t.in != nil {
		specs = t.in.members.Actions()
	}
	for _, a := range p4.Actions {
		i := slices.IndexFunc(specs, func(spec *bfrt.ActionSpec) bool { return manifest.Short(spec.Name) == a.Name })
		if i < 0 {
			return nil, fmt.Errorf("it has no action %s", a.Name)
		}
		made := &action{p4: a, id: specs[i].ID}
		for _, param := range a.Params {
			j := slices.IndexFunc(specs[i].Data, func(f *bfrt.Field) bool { return f.Name == param.Name })
			if j < 0 || specs[i].Data[j].Bits() != param.Width {
				return nil, fmt.Errorf("action %s has no parameter %s of %d bits", a.Name, param.Name, param.Width)
			}
			made.params = append(made.params, specs[i].Data[j].ID)
		}
		t.actions[a.ID], t.byID[made.id] = made, made
	}
	return t, nil
}

// A row is the data of an entry, by the names of its fields.
type row map[string]*wire.DataField

// A chipTable is a table that is accessed by the names of its fields: a table of
// every chip, or a register, filter, profile or selector of the program.
type chipTable struct{ *bfrt.Table }

// find returns the field with a name, of the table itself or of an action.
func (t chipTable) find(name string) *bfrt.Field {
	named := func(f *bfrt.Field) bool { return f.Name == name }
	for _, d := range t.Data {
		if f := lists.First(d.Fields(), named); f != nil {
			return f
		}
	}
	for _, a := range t.Actions() {
		if f := lists.First(a.Data, named); f != nil {
			return f
		}
	}
	return nil
}

// entry returns an entry of a table from the values of its key, and from names and
// values of its data.
func (t chipTable) entry(keys []uint64, action string, list ...any) (*wire.TableEntry, error) {
	e := &wire.TableEntry{TableId: t.ID}
	if len(keys) > 0 {
		k := &wire.TableKey{}
		for i, v := range keys {
			k.Fields = append(k.Fields, exact(t.Key[i].ID, sized(v, t.Key[i].Bits())))
		}
		e.Value = &wire.TableEntry_Key{Key: k}
	}
	if len(list) == 0 && action == "" {
		return e, nil
	}
	e.Data = &wire.TableData{}
	if action != "" {
		a := lists.First(t.Actions(), func(a *bfrt.ActionSpec) bool { return a.Name == action })
		if a == nil {
			return nil, fmt.Errorf("table %s of the switch has no action %s", t.Name, action)
		}
		e.Data.ActionId = a.ID
	}
	for i := 0; i < len(list); i += 2 {
		f := t.find(list[i].(string))
		if f == nil {
			return nil, fmt.Errorf("table %s of the switch has no field %s", t.Name, list[i])
		}
		d := &wire.DataField{FieldId: f.ID}
		switch v := list[i+1].(type) {
		case uint64:
			d.Value = &wire.DataField_Stream{Stream: sized(v, f.Bits())}
		case bool:
			d.Value = &wire.DataField_BoolVal{BoolVal: v}
		case string:
			d.Value = &wire.DataField_StrVal{StrVal: v}
		case float32:
			d.Value = &wire.DataField_FloatVal{FloatVal: v}
		case []uint32:
			d.Value = &wire.DataField_IntArrVal{IntArrVal: &wire.DataField_IntArray{Val: v}}
		case []bool:
			d.Value = &wire.DataField_BoolArrVal{BoolArrVal: &wire.DataField_BoolArray{Val: v}}
		default:
			panic(fmt.Sprintf("%T is no value of BfRt", v))
		}
		e.Data.Fields = append(e.Data.Fields, d)
	}
	return e, nil
}

// row returns the data of an entry by name.
func (t chipTable) row(d *wire.TableData) row {
	names := map[uint32]string{}
	for _, part := range t.Data {
		for _, f := range part.Fields() {
			names[f.ID] = f.Name
		}
	}
	for _, a := range t.Actions() {
		for _, f := range a.Data {
			if a.ID == d.GetActionId() && a.ID != 0 {
				names[f.ID] = f.Name
			}
		}
	}
	r := row{}
	for _, f := range d.GetFields() {
		r[names[f.GetFieldId()]] = f
	}
	return r
}

func (r row) number(name string) uint64 { return numberOf(r[name].GetStream()) }
func (r row) flag(name string) bool     { return r[name].GetBoolVal() }
func (r row) text(name string) string   { return r[name].GetStrVal() }

// keyNumber returns the first number of an entry's key.
func keyNumber(e *wire.TableEntry) uint64 {
	if f := e.GetKey().GetFields(); len(f) > 0 {
		return numberOf(f[0].GetExact().GetValue())
	}
	return 0
}

// exact returns a field of a key with one value.
func exact(id uint32, value []byte) *wire.KeyField {
	return &wire.KeyField{FieldId: id, MatchType: &wire.KeyField_Exact_{Exact: &wire.KeyField_Exact{Value: value}}}
}

// sized encodes a number for BfRt: big-endian, in all the bytes of its width.
func sized(v uint64, width int) []byte {
	b := make([]byte, (width+7)/8)
	for i := len(b) - 1; i >= 0; i, v = i-1, v>>8 {
		b[i] = byte(v)
	}
	return b
}

// padded extends a number of P4Runtime, which has no leading zeros, to the bytes of
// its width, as BfRt requires.
func padded(b []byte, width int) []byte {
	n := (width + 7) / 8
	if len(b) >= n {
		return b[len(b)-n:]
	}
	return append(make([]byte, n-len(b)), b...)
}

// short removes leading zeros, as P4Runtime requires.
func short(b []byte) []byte {
	for len(b) > 1 && b[0] == 0 {
		b = b[1:]
	}
	return b
}

func numberOf(b []byte) uint64 {
	var v uint64
	for _, c := range b {
		v = v<<8 | uint64(c)
	}
	return v
}
