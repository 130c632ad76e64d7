package manifest

import (
	"fmt"
	"slices"
	"strings"

	configv1 "github.com/p4lang/p4runtime/go/p4/config/v1"

	"github.com/p4lb/p4lb/internal/text/lists"
	"github.com/p4lb/p4lb/internal/text/plain"
	"github.com/p4lb/p4lb/internal/text/tree"
)

// Check compares a manifest with the P4Info of its program. Everything that the manifest names
// must exist and be large enough. The error is the first one in the manifest's order, and of type
// *Error without a file.
func Check(m *Manifest, info *configv1.P4Info) error {
	if err := m.validate(); err != nil {
		return err
	}
	p := newProgram(info)
	for i := range m.Registers {
		if err := p.checkRegister(&m.Registers[i], fmt.Sprintf("registers[%d]", i)); err != nil {
			return err
		}
	}
	for i, c := range m.Counters {
		size, ok := p.counters[c.Name]
		switch {
		case !ok:
			return at(fmt.Sprintf("counters[%d].name", i), "the program has no counter %q%s", c.Name, wantedOf(c.Name, sortedKeys(p.counters)))
		case c.Size != 0 && c.Size != size:
			return at(fmt.Sprintf("counters[%d].size", i), "is %d: counter %s of the program has %d cells", c.Size, c.Name, size)
		}
	}
	for i := range m.Tables {
		if err := p.checkTable(m, &m.Tables[i], fmt.Sprintf("tables[%d]", i)); err != nil {
			return err
		}
	}
	return nil
}

// CheckFile is Check for the manifest that text was decoded from. Its errors contain the file and
// the line.
func CheckFile(file string, text []byte, m *Manifest, info *configv1.P4Info) error {
	err := Check(m, info)
	if err == nil {
		return nil
	}
	root, parseErr := tree.Parse(text)
	if parseErr != nil {
		return located(file, parseErr)
	}
	return locate(file, root, err)
}

// A program contains the objects of a P4Info by name.
type program struct {
	registers map[string]programRegister
	counters  map[string]int
	tables    map[string]*configv1.Table
	actions   map[uint32]*configv1.Action
}

type programRegister struct {
	size   int
	widths []int // widths of the members of a cell, the highest first; one width for a plain cell
}

func newProgram(info *configv1.P4Info) *program {
	p := &program{
		registers: map[string]programRegister{}, counters: map[string]int{},
		tables: map[string]*configv1.Table{}, actions: map[uint32]*configv1.Action{},
	}
	for _, r := range info.GetRegisters() {
		out := programRegister{size: int(r.GetSize())}
		spec := r.GetTypeSpec()
		if s := info.GetTypeInfo().GetStructs()[spec.GetStruct().GetName()]; s != nil {
			for _, member := range s.GetMembers() {
				out.widths = append(out.widths, widthOf(member.GetTypeSpec()))
			}
		} else {
			out.widths = []int{widthOf(spec)}
		}
		p.registers[r.GetPreamble().GetName()] = out
	}
	for _, c := range info.GetCounters() {
		p.counters[c.GetPreamble().GetName()] = int(c.GetSize())
	}
	for _, a := range info.GetActions() {
		p.actions[a.GetPreamble().GetId()] = a
	}
	for _, t := range info.GetTables() {
		p.tables[t.GetPreamble().GetName()] = t
	}
	return p
}

// widthOf returns the width of a cell in bits, or 0 if the P4Info does not contain it.
func widthOf(spec *configv1.P4DataTypeSpec) int {
	switch s := spec.GetBitstring(); {
	case s.GetBit() != nil:
		return int(s.GetBit().GetBitwidth())
	case s.GetInt() != nil:
		return int(s.GetInt().GetBitwidth())
	case spec.GetBool() != nil:
		return 1
	}
	return 0
}

func (r programRegister) width() int {
	sum := 0
	for _, w := range r.widths {
		if w == 0 {
			return 0
		}
		sum += w
	}
	return sum
}

// wantedOf suggests a similar name like plain.Meant, or lists what exists. It returns "" if
// nothing exists.
func wantedOf(name string, have []string) string {
	if len(have) == 0 {
		return ": it has none"
	}
	return plain.Meant(name, have)
}

func (p *program) checkRegister(r *Register, place string) error {
	have, ok := p.registers[r.Name]
	width := have.width()
	switch {
	case !ok:
		return at(place+".name", "the program has no register %q%s", r.Name, wantedOf(r.Name, sortedKeys(p.registers)))
	case r.Size != 0 && r.Size != have.size:
		return at(place+".size", "is %d: register %s of the program has %d cells", r.Size, r.Name, have.size)
	case r.Width != 0 && width != 0 && r.Width != width:
		return at(place+".width", "is %d: the cells of register %s have %d bits in the program", r.Width, r.Name, width)
	case width > 0 && r.Valid >= width:
		return at(place+".valid", "the cells of register %s have %d bits, there is no bit %d", r.Name, width, r.Valid)
	}
	for i, f := range r.Fields {
		if width > 0 && f.Shift+f.Width > width {
			return at(fmt.Sprintf("%s.fields[%d].width", place, i), "field %s ends at bit %d, the cells of register %s have %d bits", f.Label, f.Shift+f.Width-1, r.Name, width)
		}
	}
	for i, c := range r.Cells {
		place := fmt.Sprintf("%s.cells[%d]", place, i)
		if n, ok := c.At.Number(); ok && n >= uint64(have.size) {
			return at(place+".at", "is %d: register %s has %d cells", n, r.Name, have.size)
		}
		if n, ok := c.Value.Number(); ok && width > 0 && width < 64 && n>>width != 0 {
			return at(place+".value", "%d does not fit the %d bits of register %s", n, width, r.Name)
		}
	}
	for i, c := range r.Initial {
		switch {
		case c.Index < -1 || c.Index >= have.size:
			return at(fmt.Sprintf("%s.initial[%d].index", place, i), "is %d: register %s has %d cells", c.Index, r.Name, have.size)
		case width > 0 && width < 64 && uint64(c.Value)>>width != 0:
			return at(fmt.Sprintf("%s.initial[%d].value", place, i), "%d does not fit the %d bits of register %s", c.Value, width, r.Name)
		}
	}
	return nil
}

func (p *program) checkTable(m *Manifest, t *Table, place string) error {
	have := p.tables[t.Name]
	if have == nil {
		return at(place+".name", "the program has no table %q%s", t.Name, wantedOf(t.Name, sortedKeys(p.tables)))
	}
	if have.GetIsConstTable() && (t.Purpose != "" && t.Purpose != None && t.Purpose != Program || len(t.Entries) > 0) {
		return at(place+".purpose", "the entries of table %s are the program's own: want the purpose %s", t.Name, Program)
	}
	if err := p.checkKeys(t, have, place); err != nil {
		return err
	}
	for i := range t.Actions {
		if err := p.checkAction(m, t, &t.Actions[i], have, fmt.Sprintf("%s.actions[%d]", place, i)); err != nil {
			return err
		}
	}
	if t.Purpose == Group {
		if err := checkSlots(m, t, place); err != nil {
			return err
		}
	}
	if t.Baked != nil {
		if err := p.checkBaked(t, have, place+".baked"); err != nil {
			return err
		}
	}
	for i := range t.Entries {
		if err := p.checkEntry(&t.Entries[i], t, have, fmt.Sprintf("%s.entries[%d]", place, i)); err != nil {
			return err
		}
	}
	return nil
}

func (p *program) checkKeys(t *Table, have *configv1.Table, place string) error {
	fields := have.GetMatchFields()
	if _, filled := purposeNeeds[t.Purpose]; filled || t.Purpose == BakedTable {
		for _, f := range fields {
			if !slices.ContainsFunc(t.Keys, func(k Key) bool { return k.Name == f.GetName() }) {
				return at(place+".keys", "field %s of table %s is missing: add it with carries or value", f.GetName(), t.Name)
			}
		}
	}
	for i, k := range t.Keys {
		place := fmt.Sprintf("%s.keys[%d]", place, i)
		f := fieldNamed(fields, k.Name)
		if f == nil {
			names := lists.Map(fields, (*configv1.MatchField).GetName)
			return at(place+".name", "the key of table %s has no field %q%s", t.Name, k.Name, wantedOf(k.Name, names))
		}
		if match := strings.ToLower(f.GetMatchType().String()); k.Match != "" && k.Match != match {
			return at(place+".match", "is %s: field %s of table %s is matched %s", k.Match, k.Name, t.Name, match)
		}
		if k.Value == "*" && f.GetMatchType() == configv1.MatchField_EXACT {
			return at(place+".value", "*: field %s of table %s is matched exactly: want its value, a fact that it carries, or entries", k.Name, t.Name)
		}
		if k.Value != "" {
			if err := fits(place+".value", k.Value, int(f.GetBitwidth()), "field "+k.Name); err != nil {
				return err
			}
		}
	}
	return nil
}

func fieldNamed(fields []*configv1.MatchField, name string) *configv1.MatchField {
	return lists.First(fields, func(f *configv1.MatchField) bool { return f.GetName() == name })
}

// fits checks that the numbers of a match fit into a field.
func (m Match) fits(place string, width int, what string) error {
	if width <= 0 || width >= 64 {
		return nil
	}
	limits := []Expr{m.Value}
	if n, ok := m.Other.Number(); ok && m.Kind == PrefixMatch && n > uint64(width) {
		return at(place, "%s: %s has %d bits", m, what, width)
	} else if m.Kind != PrefixMatch {
		limits = append(limits, m.Other)
	}
	for _, x := range limits {
		if n, ok := x.Number(); ok && n>>width != 0 {
			return at(place, "%s does not fit the %d bits of %s", m, width, what)
		}
	}
	return nil
}

// fits returns an error if the value of a key or parameter, given as text, does not fit in its
// width.
func fits(place, text string, width int, what string) error {
	var m Match
	if err := m.UnmarshalText([]byte(text)); err != nil {
		return at(place, "%v", err)
	}
	return m.fits(place, width, what)
}

// action finds an action of a table by its name, with or without its control.
func (p *program) action(have *configv1.Table, name string) *configv1.Action {
	for _, ref := range have.GetActionRefs() {
		a := p.actions[ref.GetId()]
		if full := a.GetPreamble().GetName(); full == name || Short(full) == name {
			return a
		}
	}
	return nil
}

func (p *program) actionNames(have *configv1.Table) []string {
	return lists.Map(have.GetActionRefs(), func(ref *configv1.ActionRef) string { return Short(p.actions[ref.GetId()].GetPreamble().GetName()) })
}

func (p *program) checkAction(m *Manifest, t *Table, a *Action, have *configv1.Table, place string) error {
	found := p.action(have, a.Name)
	if found == nil {
		return at(place+".name", "table %s has no action %q%s", t.Name, a.Name, wantedOf(a.Name, p.actionNames(have)))
	}
	params := found.GetParams()
	for i, q := range a.Params {
		place := fmt.Sprintf("%s.params[%d]", place, i)
		k := slices.IndexFunc(params, func(have *configv1.Action_Param) bool { return have.GetName() == q.Name })
		if k < 0 {
			names := lists.Map(params, (*configv1.Action_Param).GetName)
			return at(place+".name", "action %s has no parameter %q%s", a.Name, q.Name, wantedOf(q.Name, names))
		}
		width := int(params[k].GetBitwidth())
		if q.Value != "" {
			if err := fits(place+".value", q.Value, width, "parameter "+q.Name); err != nil {
				return err
			}
		}
		if most, ok := largestOf(m, q.Carries); ok && width > 0 && width < 32 && most>>width != 0 {
			return at(place+".carries", "%s goes up to %d, which the %d bits of %s cannot hold", q.Carries, most, width, q.Name)
		}
	}
	if _, filled := purposeNeeds[t.Purpose]; !filled || len(a.Params) == 0 {
		return nil
	}
	for _, have := range params {
		if !slices.ContainsFunc(a.Params, func(q Param) bool { return q.Name == have.GetName() }) {
			return at(place+".params", "parameter %s of action %s is missing: add it with carries or value", have.GetName(), a.Name)
		}
	}
	return nil
}

// largestOf returns the largest value of a fact if the manifest determines it.
func largestOf(m *Manifest, f Fact) (most uint64, ok bool) {
	if m.Paths == 0 {
		return 0, false
	}
	switch f {
	case SlotNumber:
		return uint64(m.Paths - 1), true
	case PathCount:
		return uint64(m.Paths), true
	case WeightEnd:
		return 255, true
	}
	return 0, false
}

// checkSlots compares the parameters of a table of groups with the size of the largest group.
func checkSlots(m *Manifest, t *Table, place string) error {
	for i, a := range t.Actions {
		slots := map[Fact][]int{}
		for _, p := range a.Params {
			if p.Carries != "" && p.Carries != PathCount && p.Carries != FirstMember && p.Carries != GroupID && p.Carries != LeafNumber {
				slots[p.Carries] = append(slots[p.Carries], p.Slot)
			}
		}
		for f, list := range slots {
			want := m.Paths
			if f == WeightEnd {
				want-- // the last path gets the rest
			}
			if m.Paths > 0 && len(list) < want {
				return at("paths", "is %d: action %s of table %s carries %s for %d paths (%s.actions[%d])", m.Paths, a.Name, t.Name, f, len(list), place, i)
			}
		}
	}
	return nil
}

func (p *program) checkBaked(t *Table, have *configv1.Table, place string) error {
	a := p.action(have, t.Baked.Action)
	if a == nil {
		return at(place+".action", "table %s has no action %q%s", t.Name, t.Baked.Action, wantedOf(t.Baked.Action, p.actionNames(have)))
	}
	if len(t.Baked.Keys) != len(have.GetMatchFields()) {
		return at(place+".keys", "there are %d: the key of table %s has %d fields", len(t.Baked.Keys), t.Name, len(have.GetMatchFields()))
	}
	total := 1
	for i, k := range t.Baked.Keys {
		width := int(have.GetMatchFields()[i].GetBitwidth())
		if k.Values < 1 || width > 0 && width < 63 && k.Values > 1<<width {
			return at(fmt.Sprintf("%s.keys[%d].values", place, i), "is %d: field %s has %d bits", k.Values, k.Name, width)
		}
		total *= k.Values
	}
	if n := len(t.Baked.Values); n > 0 && n != total {
		return at(place+".values", "there are %d: the keys are %d", n, total)
	}
	if len(t.Baked.Values) > 0 && len(a.GetParams()) > 0 {
		width := int(a.GetParams()[0].GetBitwidth())
		for i, v := range t.Baked.Values {
			if v < 0 || width < 63 && v>>width != 0 {
				return at(fmt.Sprintf("%s.values[%d]", place, i), "%d does not fit the %d bits of %s", v, width, a.GetParams()[0].GetName())
			}
		}
	}
	return nil
}

// matchSigns are the kinds of match that an entry may use for a field.
var matchSigns = map[configv1.MatchField_MatchType][]MatchKind{
	configv1.MatchField_EXACT:    {ValueMatch},
	configv1.MatchField_LPM:      {ValueMatch, PrefixMatch, AnyMatch},
	configv1.MatchField_TERNARY:  {ValueMatch, MaskMatch, AnyMatch},
	configv1.MatchField_RANGE:    {ValueMatch, RangeMatch, AnyMatch},
	configv1.MatchField_OPTIONAL: {ValueMatch, AnyMatch},
}

func (p *program) checkEntry(e *Entry, t *Table, have *configv1.Table, place string) error {
	fields := have.GetMatchFields()
	for _, name := range sortedKeys(e.Match) {
		f := fieldNamed(fields, name)
		if f == nil {
			names := lists.Map(fields, (*configv1.MatchField).GetName)
			return at(place+".match", "the key of table %s has no field %q%s", t.Name, name, wantedOf(name, names))
		}
		m := e.Match[name]
		if !slices.Contains(matchSigns[f.GetMatchType()], m.Kind) {
			return at(place+".match."+name, "%s: field %s of table %s is matched %s", m, name, t.Name, strings.ToLower(f.GetMatchType().String()))
		}
		if err := m.fits(place+".match."+name, int(f.GetBitwidth()), "field "+name); err != nil {
			return err
		}
	}
	for _, f := range fields {
		if _, ok := e.Match[f.GetName()]; !ok && !e.Default && f.GetMatchType() == configv1.MatchField_EXACT {
			return at(place+".match", "field %s of table %s is missing: it is matched exactly", f.GetName(), t.Name)
		}
	}
	a := p.action(have, e.Action)
	if a == nil {
		return at(place+".action", "table %s has no action %q%s", t.Name, e.Action, wantedOf(e.Action, p.actionNames(have)))
	}
	var names []string
	for _, q := range a.GetParams() {
		names = append(names, q.GetName())
		if e.Args[q.GetName()].IsZero() {
			return at(place+".args", "parameter %s of action %s is missing", q.GetName(), e.Action)
		}
		if err := (Match{Value: e.Args[q.GetName()]}).fits(place+".args."+q.GetName(), int(q.GetBitwidth()), "parameter "+q.GetName()); err != nil {
			return err
		}
	}
	for _, name := range sortedKeys(e.Args) {
		if !slices.Contains(names, name) {
			return at(place+".args", "action %s has no parameter %q%s", e.Action, name, wantedOf(name, names))
		}
	}
	return nil
}
