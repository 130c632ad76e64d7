package bmv2

import (
	"errors"
	"fmt"
)

// Validate checks that names and ids are unique and that every reference
// resolves. The switch that runs the document checks the operands of
// operations.
func (c *Config) Validate() error {
	v := &validator{c: c}
	steps := []func(){
		v.meta, v.headerTypes, v.headers, v.stacks, v.unions, v.unionStacks, v.arrays, v.filters,
		v.names, v.lists, v.actions, v.parsers, v.deparsers, v.pipelines, v.bindings, v.checksums, v.pipe,
	}
	for _, step := range steps {
		if step(); v.err != nil {
			return v.err
		}
	}
	return nil
}

// A validator indexes the document while it checks it; later steps use the
// indexes of earlier ones.
type validator struct {
	c     *Config
	err   error
	words int // total size of all arrays

	types      map[string]*HeaderType
	fields     map[*HeaderType]map[string]bool // fields by name
	instances  map[string]*HeaderType          // by header name
	headerIDs  map[int]string                  // header type by header id
	stacksOf   map[string]string               // stack name to header type
	unionTypes map[string]*HeaderUnionType
	unionsOf   map[string]*HeaderUnionType
	unionIDs   map[int]string // union type by union id
	unionStack map[string]*HeaderUnionType
	objects    map[ExprType]map[string]bool
	actionsOf  map[int]*Action
	tables     map[string]bool
}

// failf records the first error at a path.
func (v *validator) failf(path, format string, args ...any) {
	if v.err == nil {
		v.err = placed(path, fmt.Errorf(format, args...))
	}
}

// at returns a step of a path: at("headers", 3) is "headers[3]".
func at(path string, i int) string { return fmt.Sprintf("%s[%d]", path, i) }

var errOldVersion = errors.New("version is not 2.x")

func (v *validator) meta() {
	if m := v.c.Meta; m != nil && (len(m.Version) != 2 || m.Version[0] != 2) {
		v.failf("__meta__.version", "%w: %v", errOldVersion, m.Version)
	}
}

// unique checks the names and ids of a list; ids may be nil.
func (v *validator) unique(path string, n int, get func(i int) (string, int)) {
	names, ids := map[string]bool{}, map[int]bool{}
	for i := range n {
		name, id := get(i)
		switch {
		case name == "":
			v.failf(at(path, i), "no name")
		case names[name]:
			v.failf(at(path, i), "a second %q", name)
		case ids[id]:
			v.failf(at(path, i), "a second id %d (%s)", id, name)
		}
		names[name], ids[id] = true, true
	}
}

func (v *validator) headerTypes() {
	list := v.c.HeaderTypes
	v.unique("header_types", len(list), func(i int) (string, int) { return list[i].Name, list[i].ID })
	v.types, v.fields = map[string]*HeaderType{}, map[*HeaderType]map[string]bool{}
	for i, t := range list {
		v.types[t.Name] = t
		v.headerType(at("header_types", i), t)
	}
}

// maxWidth bounds the width of fields and registers, so that a hostile document
// cannot make the switch allocate too much memory.
const maxWidth = 1 << 16

func (v *validator) headerType(path string, t *HeaderType) {
	seen := map[string]bool{}
	v.fields[t] = seen
	varLen := 0
	for i, f := range t.Fields {
		where := at(path+".fields", i)
		switch {
		case f.Name == "" || seen[f.Name]:
			v.failf(where, "field name %q is empty or not unique in %s", f.Name, t.Name)
		case f.VarLen:
			varLen++
		case f.Width <= 0 || f.Width > maxWidth:
			v.failf(where, "width %d of %s.%s is outside 1..%d", f.Width, t.Name, f.Name, maxWidth)
		case f.Signed && f.Width < 2:
			v.failf(where, "signed field %s.%s needs two bits", t.Name, f.Name)
		}
		seen[f.Name] = true
	}
	if varLen > 1 {
		v.failf(path, "%s has more than one variable-length field", t.Name)
	}
	if t.MaxLength < 0 || t.MaxLength > maxWidth {
		v.failf(path, "max_length %d of %s is outside 0..%d", t.MaxLength, t.Name, maxWidth)
	}
}

func (v *validator) headers() {
	list := v.c.Headers
	v.unique("headers", len(list), func(i int) (string, int) { return list[i].Name, list[i].ID })
	v.instances, v.headerIDs = map[string]*HeaderType{}, map[int]string{}
	for i, h := range list {
		t := v.types[h.HeaderType]
		if t == nil {
			v.failf(at("headers", i), "unknown header type %q", h.HeaderType)
		}
		v.instances[h.Name], v.headerIDs[h.ID] = t, h.HeaderType
	}
}

// ids checks that the members of a stack or union exist and have the type
// returned by want.
func (v *validator) ids(path string, ids []int, known map[int]string, want func(i int) string) {
	if len(ids) == 0 {
		v.failf(path, "no members")
	}
	for i, id := range ids {
		switch t, ok := known[id]; {
		case !ok:
			v.failf(at(path, i), "unknown id %d", id)
		case t != want(i):
			v.failf(at(path, i), "id %d is of type %s, expected %s", id, t, want(i))
		}
	}
}

func (v *validator) stacks() {
	list := v.c.HeaderStacks
	v.unique("header_stacks", len(list), func(i int) (string, int) { return list[i].Name, list[i].ID })
	v.stacksOf = map[string]string{}
	for i, s := range list {
		path := at("header_stacks", i)
		if v.types[s.HeaderType] == nil {
			v.failf(path, "unknown header type %q", s.HeaderType)
		}
		v.ids(path+".header_ids", s.HeaderIDs, v.headerIDs, func(int) string { return s.HeaderType })
		v.stacksOf[s.Name] = s.HeaderType
	}
}

func (v *validator) unions() {
	v.unionTypes, v.unionsOf, v.unionIDs = map[string]*HeaderUnionType{}, map[string]*HeaderUnionType{}, map[int]string{}
	for i, t := range v.c.HeaderUnionTypes {
		for _, m := range t.Headers {
			if v.types[m.HeaderType] == nil {
				v.failf(at("header_union_types", i), "unknown header type %q", m.HeaderType)
			}
		}
		v.unionTypes[t.Name] = t
	}
	list := v.c.HeaderUnions
	v.unique("header_unions", len(list), func(i int) (string, int) { return list[i].Name, list[i].ID })
	for i, u := range list {
		path := at("header_unions", i)
		t := v.unionTypes[u.UnionType]
		if t == nil {
			v.failf(path, "unknown union type %q", u.UnionType)
			return
		}
		if len(u.HeaderIDs) != len(t.Headers) {
			v.failf(path, "%d members, the type %s has %d", len(u.HeaderIDs), t.Name, len(t.Headers))
			return
		}
		v.ids(path+".header_ids", u.HeaderIDs, v.headerIDs, func(i int) string { return t.Headers[i].HeaderType })
		v.unionsOf[u.Name], v.unionIDs[u.ID] = t, u.UnionType
	}
}

func (v *validator) unionStacks() {
	list := v.c.HeaderUnionStacks
	v.unique("header_union_stacks", len(list), func(i int) (string, int) { return list[i].Name, list[i].ID })
	v.unionStack = map[string]*HeaderUnionType{}
	for i, s := range list {
		path := at("header_union_stacks", i)
		if v.unionTypes[s.UnionType] == nil {
			v.failf(path, "unknown union type %q", s.UnionType)
		}
		v.ids(path+".header_union_ids", s.HeaderUnionIDs, v.unionIDs, func(int) string { return s.UnionType })
		v.unionStack[s.Name] = v.unionTypes[s.UnionType]
	}
}

const (
	// MaxCells bounds the size of one array of registers, counters or meters.
	MaxCells = 1 << 25
	// MaxWords bounds the size of all arrays in 64-bit words: 1 GiB.
	MaxWords = 1 << 27
	// CounterWords and MeterWords are the sizes of their cells in words.
	CounterWords, MeterWords = 2, 8
)

// RegisterWords returns the size in words of a cell with the given number of
// bits.
func RegisterWords(bits int) int { return (max(bits, 1) + 63) / 64 }

// size checks the number of cells of an array with words per cell.
func (v *validator) size(path string, size, words int) {
	if size < 0 || size > MaxCells {
		v.failf(path, "size %d is outside 0..%d", size, MaxCells)
		return
	}
	if v.words += size * words; v.words > MaxWords {
		v.failf(path, "all arrays together have more than %d 64-bit words", MaxWords)
	}
}

func (v *validator) arrays() {
	m, k, r := v.c.MeterArrays, v.c.CounterArrays, v.c.RegisterArrays
	v.unique("meter_arrays", len(m), func(i int) (string, int) { return m[i].Name, m[i].ID })
	v.unique("counter_arrays", len(k), func(i int) (string, int) { return k[i].Name, k[i].ID })
	v.unique("register_arrays", len(r), func(i int) (string, int) { return r[i].Name, r[i].ID })
	for i, a := range m {
		path := at("meter_arrays", i)
		v.size(path, a.Size, MeterWords)
		if a.Type != "bytes" && a.Type != "packets" {
			v.failf(path, "type %q is neither bytes nor packets", a.Type)
		}
		if a.ResultTarget != nil {
			v.field(path+".result_target", a.ResultTarget.Header, a.ResultTarget.Field)
		}
	}
	for i, a := range k {
		v.size(at("counter_arrays", i), a.Size, CounterWords)
	}
	for i, a := range r {
		v.size(at("register_arrays", i), a.Size, RegisterWords(a.Bitwidth))
		if a.Bitwidth <= 0 || a.Bitwidth > maxWidth {
			v.failf(at("register_arrays", i), "bitwidth %d is outside 1..%d", a.Bitwidth, maxWidth)
		}
		if a.Initial != "" {
			v.number(at("register_arrays", i)+".initial", a.Initial, a.Bitwidth)
		}
	}
}

// names indexes the objects that expressions refer to by name.
func (v *validator) names() {
	v.objects = map[ExprType]map[string]bool{}
	add := func(t ExprType, name string) {
		if v.objects[t] == nil {
			v.objects[t] = map[string]bool{}
		}
		v.objects[t][name] = true
	}
	for _, a := range v.c.MeterArrays {
		add(TypeMeterArray, a.Name)
	}
	for _, a := range v.c.CounterArrays {
		add(TypeCounterArray, a.Name)
	}
	for _, a := range v.c.RegisterArrays {
		add(TypeRegisterArray, a.Name)
		add(TypeRegister, a.Name)
	}
	for _, a := range v.c.FilterArrays {
		add(TypeFilterArray, a.Name)
	}
	for _, a := range v.c.Calculations {
		add(TypeCalculation, a.Name)
	}
	for _, a := range v.c.ExternInstances {
		add(TypeExtern, a.Name)
	}
	for name := range v.instances {
		add(TypeHeader, name)
		add(TypeRegular, name)
	}
	for name := range v.stacksOf {
		add(TypeHeaderStack, name)
		add(TypeStack, name)
	}
	for name := range v.unionsOf {
		add(TypeHeaderUnion, name)
	}
	for name := range v.unionStack {
		add(TypeHeaderUnionStack, name)
	}
}

func (v *validator) lists() {
	for i, l := range v.c.FieldLists {
		v.exprs(at("field_lists", i)+".elements", l.Elements)
	}
	for i, l := range v.c.LearnLists {
		v.exprs(at("learn_lists", i)+".elements", l.Elements)
	}
	for i, k := range v.c.Calculations {
		v.crc(at("calculations", i), k)
		if h := k.Hash; h != nil && (h.Width < 1 || h.Width > 64 || h.Low < 0 || h.Low > h.High || h.High >= h.Width) {
			v.failf(at("calculations", i)+".hash", "bits %d to %d of %d: want a range within at most 64 bits", h.Low, h.High, h.Width)
		}
		v.exprs(at("calculations", i)+".input", k.Input)
	}
	for i, a := range v.c.FieldAliases {
		v.field(at("field_aliases", i), a.Field.Header, a.Field.Field)
	}
	for i, t := range v.c.HeaderTypes {
		v.expr(at("header_types", i)+".length_exp", t.LengthExp)
	}
}
