package describe

import (
	"math/big"
	"slices"
	"sort"
	"strconv"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/p4lb/p4lb/internal/p4/syntax"
	"github.com/p4lb/p4lb/internal/p4/types"
)

// An Entry is a table entry that the program declares, in P4Runtime's terms. It is
// not the generated message, because the generated package imports gRPC.
type Entry struct {
	Table    uint32
	Match    []Match
	Action   uint32
	Params   []Param
	Priority int32 // larger first; 0 if the table's match kinds have no priority
	Const    bool
}

// A Match is one field of an entry's key.
type Match struct {
	Field     uint32
	Kind      string // exact, lpm, ternary, range or optional
	Value     []byte // the lower bound of a range
	Mask      []byte // for ternary; the upper bound of a range
	PrefixLen int32  // for lpm
}

// A Param is the argument of one parameter of an entry's action.
type Param struct {
	ID    uint32
	Value []byte
}

// Entries returns the entries that the program declares for its tables, in the
// order of declaration. The result is nil if one of the errors is not a warning.
func Entries(file *syntax.File, info *types.Info, arch string) ([]Entry, syntax.Errors) {
	g := newInfoGen(file, info, arch)
	g.build()
	var list []Entry
	for _, u := range g.view.units {
		for _, o := range u.objects {
			if t, ok := o.(*tableSite); ok && t.decl.Entries != nil && t.decl.Key != nil {
				list = append(list, g.tableEntries(t)...)
			}
		}
	}
	if g.errs.Err() != nil {
		return nil, g.errs
	}
	return list, g.errs
}

// EntriesText writes the entries as p4c's --p4runtime-entries-files does: as
// the text of the WriteRequest that inserts them.
func EntriesText(list []Entry) []byte {
	var p textPrinter
	p.out.WriteString("# proto-file: p4/v1/p4runtime.proto\n# proto-message: p4.v1.WriteRequest\n\n")
	for _, e := range list {
		p.open("updates")
		p.line("type", "INSERT")
		p.open("entity")
		p.open("table_entry")
		p.entry(e)
		p.close()
		p.close()
		p.close()
	}
	return p.out.Bytes()
}

func (p *textPrinter) entry(e Entry) {
	p.id("table_id", e.Table)
	for _, m := range e.Match {
		value, mask := "value", "mask"
		if m.Kind == "range" {
			value, mask = "low", "high"
		}
		p.open("match")
		p.id("field_id", m.Field)
		p.open(m.Kind)
		p.line(protoreflect.Name(value), quoted(m.Value))
		if m.Mask != nil {
			p.line(protoreflect.Name(mask), quoted(m.Mask))
		}
		if m.PrefixLen != 0 {
			p.line("prefix_len", strconv.Itoa(int(m.PrefixLen)))
		}
		p.close()
		p.close()
	}
	p.open("action")
	p.open("action")
	p.id("action_id", e.Action)
	for _, a := range e.Params {
		p.open("params")
		p.id("param_id", a.ID)
		p.line("value", quoted(a.Value))
		p.close()
	}
	p.close()
	p.close()
	if e.Priority != 0 {
		p.line("priority", strconv.Itoa(int(e.Priority)))
	}
	if e.Const {
		p.line("is_const", "true")
	}
}

func (p *textPrinter) id(name protoreflect.Name, id uint32) {
	p.line(name, strconv.FormatUint(uint64(id), 10))
}

func (g *infoGen) tableEntries(t *tableSite) []Entry {
	var list []Entry
	priorities, largest := g.priorities(t)
	for i, e := range t.decl.Entries.List {
		call := g.info.ActionRefs[e.Action]
		if call == nil || call.Callee == nil {
			continue
		}
		list = append(list, Entry{
			Table: g.ids.id(tableKind, t.name), Match: g.matches(t, e), Priority: priorities[i],
			Action: g.actionID(t, call.Callee), Params: g.arguments(call, t.site.scope), Const: t.decl.Entries.Const || e.Const,
		})
	}
	sort.SliceStable(list, func(i, j int) bool {
		return list[i].Priority != list[j].Priority && list[i].Priority > list[j].Priority == largest
	})
	return list
}

// priorities returns P4Runtime's priorities. They are 0 if the table's match kinds
// have no priority. Constant entries match in the order of the program, others by
// their declared priorities. Like p4c, it does not invert declared priorities of a
// table in which the smallest wins.
func (g *infoGen) priorities(t *tableSite) (prios []int32, largest bool) {
	n := len(t.decl.Entries.List)
	prios, largest = make([]int32, n), true
	ranked := slices.ContainsFunc(t.decl.Key.Elems, func(k *syntax.KeyElem) bool {
		return slices.Contains([]string{"ternary", "range", "optional"}, k.Match.Value)
	})
	if !ranked {
		return prios, largest
	}
	delta := int32(1)
	if p := t.decl.Property("priority_delta"); p != nil {
		delta = int32(g.integer(p.Value, t))
	}
	if p := t.decl.Property("largest_priority_wins"); p != nil {
		largest, _ = g.view.fold(p.Value, t.site.scope).(bool)
	}
	if t.decl.Entries.Const {
		largest, delta = true, 1
	}
	explicit := slices.ContainsFunc(t.decl.Entries.List, func(e *syntax.Entry) bool { return e.Priority != nil })
	for i, e := range t.decl.Entries.List {
		switch {
		case e.Priority != nil:
			prios[i] = int32(g.integer(e.Priority, t))
		case !explicit && largest:
			prios[i] = 1 + int32(n-1-i)*delta
		case i == 0:
			prios[i] = 1
		case largest:
			prios[i] = prios[i-1] - delta
		default:
			prios[i] = prios[i-1] + delta
		}
	}
	return prios, largest
}

func (g *infoGen) integer(x syntax.Expr, t *tableSite) int64 {
	if n, ok := g.view.fold(x, t.site.scope).(*big.Int); ok && n.IsInt64() {
		return n.Int64()
	}
	g.errorf(x, "this must be a constant number")
	return 0
}

// matches returns the key fields of an entry. It omits fields that match anything.
func (g *infoGen) matches(t *tableSite, e *syntax.Entry) []Match {
	keys := e.Keys
	if len(keys) == 1 && len(t.decl.Key.Elems) > 1 {
		if l, ok := syntax.Unparen(keys[0]).(*syntax.ListExpr); ok {
			keys = l.Elems
		}
	}
	ids := g.keyIDs(t.decl)
	var out []Match
	for i, k := range t.decl.Key.Elems {
		if i >= len(keys) {
			break
		}
		typ := g.keyType(t, k)
		if noBits(typ) {
			continue
		}
		m := &matcher{gen: g, scope: t.site.scope, typ: typ, width: max(bitwidth(typ), 1)}
		if f := m.match(k.Match.Value, syntax.Unparen(keys[i])); f != nil {
			f.Field = ids[i]
			out = append(out, *f)
		}
	}
	return out
}

// A matcher converts one keyset to a match field of a P4Runtime entry.
type matcher struct {
	gen   *infoGen
	scope *scope
	typ   types.Type
	width int
}

func (m *matcher) number(x syntax.Expr) *big.Int {
	v := m.gen.view.fold(x, m.scope)
	if b, ok := v.(bool); ok {
		if b {
			return big.NewInt(1)
		}
		return new(big.Int)
	}
	n := types.Number(v)
	if n == nil {
		m.gen.errorf(x, "the key of an entry must be a constant number, boolean or member of a serializable enum")
		return nil
	}
	return types.Wrap(n, &types.Bits{Width: m.width})
}

func (m *matcher) bytes(n *big.Int) []byte { return bytesValue(n, m.width) }

// match returns the match field, or nil if the keyset matches anything or is
// invalid.
func (m *matcher) match(kind string, x syntax.Expr) *Match {
	switch x.(type) {
	case *syntax.DontCare, *syntax.DefaultExpr:
		return nil
	}
	switch kind {
	case "exact", "optional":
		if n := m.number(x); n != nil {
			return &Match{Kind: kind, Value: m.bytes(n)}
		}
	case "lpm":
		value, mask := m.masked(x)
		if value == nil || mask.Sign() == 0 {
			return nil
		}
		zeros := int(mask.TrailingZeroBits())
		if want := new(big.Int).Xor(ones(m.width), ones(zeros)); mask.Cmp(want) != 0 {
			m.gen.errorf(x, "the mask of an lpm key must be a prefix")
			return nil
		}
		return &Match{Kind: "lpm", Value: m.bytes(value), PrefixLen: int32(m.width - zeros)}
	case "ternary":
		value, mask := m.masked(x)
		if value == nil || mask.Sign() == 0 {
			return nil
		}
		return &Match{Kind: "ternary", Value: m.bytes(value), Mask: m.bytes(mask)}
	case "range":
		lo, hi := x, x
		if r, ok := x.(*syntax.RangeExpr); ok {
			lo, hi = r.Lo, r.Hi
		}
		a, b := m.number(lo), m.number(hi)
		switch {
		case a == nil || b == nil || a.Sign() == 0 && b.Cmp(ones(m.width)) == 0:
			return nil
		case a.Cmp(b) > 0:
			m.gen.errorf(x, "the range is empty")
			return nil
		}
		return &Match{Kind: "range", Value: m.bytes(a), Mask: m.bytes(b)}
	}
	return nil
}

// masked splits a keyset into value and mask. It clears the value's bits outside of
// the mask, as P4Runtime requires.
func (m *matcher) masked(x syntax.Expr) (value, mask *big.Int) {
	mx, ok := x.(*syntax.MaskExpr)
	if !ok {
		return m.number(x), ones(m.width)
	}
	value, mask = m.number(mx.X), m.number(mx.Mask)
	if value == nil || mask == nil {
		return nil, nil
	}
	return new(big.Int).And(value, mask), mask
}

// ones returns the number whose low width bits are all set.
func ones(width int) *big.Int { return types.Wrap(big.NewInt(-1), &types.Bits{Width: width}) }
