package source

import (
	"fmt"
	"math/big"
	"strings"
)

// A Key is a key of a table. Mask is the mask in key = { x & MASK: kind; }, or nil.
// Without a call in the key, BMv2 and Tofino mask the entry as well:
// docs/conformance.md.
type Key struct {
	X    *Expr
	Kind string
	Name string
	Mask *big.Int
}

// Bits returns the type of the key; a bool counts as bit<1>.
func (k *Key) Bits() Bits {
	switch t := k.X.Type.(type) {
	case Bits:
		return t
	case *Enum:
		return *t.Under
	}
	return Bits{Width: 1}
}

// A Match is the condition of an entry on a key, with unsigned numbers.
type Match struct {
	Value  *big.Int
	Mask   *big.Int // for ternary and lpm
	High   *big.Int // for range
	Prefix int      // for lpm
	Any    bool     // matches everything: for ternary, optional, lpm and range
}

// An Invoke is an action with the arguments set by the control plane.
type Invoke struct {
	Action int
	Args   []*big.Int
	Group  bool // in a table with an action profile: Action is the number of a group, not of a member
}

// An Entry is an entry of a table. The smallest priority wins.
type Entry struct {
	Match    []Match
	Priority int
	Do       Invoke
	Hits     int // packets in the direct counter
}

// An ActionRef is an action of a table, with arguments for the parameters that have
// a direction.
type ActionRef struct {
	Action *Callable
	Bound  []*Expr
}

// Loose returns the parameters that the control plane sets.
func (r *ActionRef) Loose() []Param { return r.Action.Params[len(r.Bound):] }

// A Table is a table with its entries.
type Table struct {
	Name    string
	Keys    []Key
	Actions []ActionRef
	Default Invoke
	// FixedDefault is set if the default action is const.
	FixedDefault bool
	Const        []*Entry // entries in the program
	Priorities   bool     // print the priorities of Const
	Runtime      []*Entry
	Counted      bool // has a direct counter
	Properties   []string
	Profile      *Profile // profile, or nil; the default action is then NoAction
	// Calls is set if a key calls a function.
	Calls bool
}

// Ordered reports whether priorities decide among matching entries.
func (t *Table) Ordered() bool {
	for _, k := range t.Keys {
		if k.Kind == "ternary" || k.Kind == "range" || k.Kind == "optional" {
			return true
		}
	}
	return false
}

// lookup returns the entry that matches, or nil. Of several, it is the one with the
// longest prefix or, in tables with a ternary, range or optional key, with the
// smallest priority.
func (t *Table) lookup(m *Machine) *Entry {
	var values []*big.Int
	for _, k := range t.Keys {
		v := k.X.eval(m)
		if v == nil {
			panic(undefined{"a key"})
		}
		if b, ok := v.(bool); ok {
			v = big.NewInt(int64(b2i(b)))
		}
		n := unsigned(k.Bits(), v.(*big.Int))
		if k.Mask != nil {
			n.And(n, k.Mask)
		}
		values = append(values, n)
	}
	var best *Entry
	ordered := t.Ordered()
	for _, e := range append(append([]*Entry(nil), t.Const...), t.Runtime...) {
		if !e.matches(t, values) {
			continue
		}
		switch {
		case best == nil:
			best = e
		case ordered && e.Priority < best.Priority:
			best = e
		case !ordered && e.prefix(t.Keys) > best.prefix(t.Keys):
			best = e
		}
	}
	return best
}

func (e *Entry) prefix(keys []Key) int {
	for i, k := range keys {
		if k.Kind == "lpm" {
			return e.Match[i].Prefix
		}
	}
	return 0
}

func (e *Entry) matches(t *Table, values []*big.Int) bool {
	keys := t.Keys
	for i := range keys {
		c, v := &e.Match[i], values[i]
		if c.Any {
			continue
		}
		want := c.Value
		if keys[i].Mask != nil && !t.Calls {
			want = new(big.Int).And(want, keys[i].Mask)
		}
		switch keys[i].Kind {
		case "exact", "optional":
			if v.Cmp(want) != 0 {
				return false
			}
		case "ternary", "lpm":
			if new(big.Int).And(v, c.Mask).Cmp(new(big.Int).And(want, c.Mask)) != 0 {
				return false
			}
		case "range":
			if v.Cmp(c.Value) < 0 || v.Cmp(c.High) > 0 {
				return false
			}
		}
	}
	return true
}

var noAction = &Callable{Name: "NoAction"}

// An applied is the result of applying a table.
type applied struct {
	hit    bool
	action *Callable
}

// apply applies the table: it looks up the key, updates the counter, and runs the
// action.
func (t *Table) apply(m *Machine) applied {
	m.Applied++
	e := t.lookup(m)
	do := t.Default
	if e != nil {
		do = e.Do
		e.Hits++
	}
	if t.Profile != nil {
		if e == nil {
			return applied{false, noAction}
		}
		do = t.Profile.choose(m, t, do)
	}
	r := &t.Actions[do.Action]
	refs, values := make([]ref, len(r.Bound)), make([]Value, len(r.Action.Params))
	for i, a := range r.Bound {
		switch r.Action.Params[i].Dir {
		case Out:
			refs[i], values[i] = a.ref(m), fresh(a.Type)
		case InOut:
			refs[i] = a.ref(m)
			values[i] = clone(refs[i].get())
		default:
			values[i] = clone(a.eval(m))
		}
		if values[i] == nil && r.Action.Params[i].Dir != Out {
			panic(undefined{"an argument"})
		}
	}
	for i, p := range r.Loose() {
		values[len(r.Bound)+i] = fromBits(p.Var.Type, do.Args[i])
	}
	r.Action.run(m, values, func() {
		for i, p := range r.Action.Params[:len(r.Bound)] {
			if p.Dir == Out || p.Dir == InOut {
				refs[i].set(clone(p.Var.cur))
			}
		}
	})
	return applied{e != nil, r.Action}
}

// fromBits returns v as a value of type t.
func fromBits(t Type, v *big.Int) Value {
	switch t := t.(type) {
	case Bool:
		return v.Sign() != 0
	case Bits:
		return wrap(t, v)
	}
	return v
}

// spell formats v as a constant of type t.
func spell(t Type, v *big.Int) string {
	switch t := t.(type) {
	case Bool:
		return fmt.Sprint(v.Sign() != 0)
	case Bits:
		return wrap(t, v).String()
	case *Enum:
		return fmt.Sprintf("(%s)%v", t.Name, v)
	}
	return v.String()
}

// Apply returns t.apply() as a statement.
func Apply(t *Table) Stmt { return Do(t.Name+".apply();", func(m *Machine) { t.apply(m) }) }

// Hit returns t.apply().hit, or .miss.
func Hit(t *Table, miss bool) *Expr {
	text := ".apply().hit"
	if miss {
		text = ".apply().miss"
	}
	return Native(Bool{}, t.Name+text, func(m *Machine) Value { return t.apply(m).hit != miss })
}

// SwitchAction returns switch (t.apply().action_run). Labels name actions; an empty
// label is the default. A case without a body falls through to the next one.
func SwitchAction(t *Table, labels []string, bodies []*Block) Stmt {
	var cases []SwitchCase
	s := Stmt{}
	for _, b := range bodies {
		cases = append(cases, SwitchCase{Body: b})
		if b != nil {
			s.blocks = append(s.blocks, b)
		}
	}
	s.print = func(p *printer) {
		p.Open("switch (" + t.Name + ".apply().action_run) {")
		for i, l := range labels {
			if l == "" {
				l = "default"
			}
			if bodies[i] == nil {
				p.Line("%s:", l)
				continue
			}
			p.block(l+": {", bodies[i], "}")
		}
		p.Close("}")
	}
	s.exec = func(m *Machine) signal {
		ran, hit := t.apply(m).action, -1
		for i, l := range labels {
			if l == ran.Name || l == "" && hit < 0 {
				hit = i
			}
			if l == ran.Name {
				break
			}
		}
		return execCase(m, cases, hit)
	}
	return s
}

func (t *Table) print(p *printer) {
	p.Open("table " + t.Name + " {")
	p.Open("key = {")
	for _, k := range t.Keys {
		text := k.X.Text
		if k.Mask != nil {
			text = fmt.Sprintf("%s & %v", k.X.at(precBitAnd), k.Mask)
		}
		p.Line("%s: %s @name(%q);", text, k.Kind, k.Name)
	}
	p.Close("}")
	p.Open("actions = {")
	for _, r := range t.Actions {
		if len(r.Bound) > 0 {
			p.Line("%s%s;", r.Action.Name, arguments(r.Bound))
			continue
		}
		p.Line("%s;", r.Action.Name)
	}
	p.Close("}")
	if t.Profile == nil {
		p.Line("%sdefault_action = %s;", map[bool]string{true: "const "}[t.FixedDefault], t.invoke(t.Default))
	}
	for _, s := range t.Properties {
		p.Line("%s;", s)
	}
	if len(t.Const) > 0 {
		head := "const entries = {"
		if t.Priorities { // a constant list has no priorities (section 14.2.1.4)
			head = "entries = {"
		}
		p.Open(head)
		for _, e := range t.Const {
			p.Line("%s%s: %s;", t.priority(e), t.keyset(e), t.invoke(e.Do))
		}
		p.Close("}")
	}
	p.Close("}")
}

func (t *Table) priority(e *Entry) string {
	if !t.Priorities {
		return ""
	}
	return fmt.Sprintf("const priority = %d: ", e.Priority)
}

func (t *Table) invoke(do Invoke) string {
	r := &t.Actions[do.Action]
	args := append([]*Expr(nil), r.Bound...)
	for i, p := range r.Loose() {
		args = append(args, &Expr{Text: spell(p.Var.Type, do.Args[i])})
	}
	return r.Action.Name + arguments(args)
}

func (t *Table) keyset(e *Entry) string {
	var list []string
	for i, k := range t.Keys {
		c := &e.Match[i]
		typ := k.X.Type
		if b, ok := typ.(Bits); ok && b.Signed && k.Kind != "exact" && k.Kind != "optional" {
			typ = Bits{Width: b.Width}
		}
		switch {
		case c.Any:
			list = append(list, "_")
		case k.Kind == "ternary", k.Kind == "lpm":
			list = append(list, fmt.Sprintf("%s &&& %s", spell(typ, c.Value), spell(typ, c.Mask)))
		case k.Kind == "range":
			list = append(list, fmt.Sprintf("%s .. %s", spell(typ, c.Value), spell(typ, c.High)))
		default:
			list = append(list, spell(typ, c.Value))
		}
	}
	if len(list) == 1 {
		return list[0]
	}
	return "(" + strings.Join(list, ", ") + ")"
}

// Entry formats an entry for people.
func (t *Table) Entry(e *Entry) string {
	return fmt.Sprintf("priority %d: %s: %s", e.Priority, t.keyset(e), t.invoke(e.Do))
}
