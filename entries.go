package p4lb

import (
	"fmt"
	"math/big"
	"slices"

	"github.com/p4lb/p4lb/internal/bmv2"
	"github.com/p4lb/p4lb/internal/dataplane"
)

// A TableEntry is an entry that a table holds: once as an Entry, which Insert, Modify and Delete
// accept, and once with typed values in the order of the program.
type TableEntry struct {
	Entry
	Fields []FieldValue  // values of the key, without those that match anything
	Calls  []ActionValue // the action, or the actions of OneOf
}

// A FieldValue is what an entry matches in a field of the key.
type FieldValue struct {
	Name  string // full name, such as hdr.ipv4.dst
	Kind  string // exact, lpm, ternary, which also implements optional, or range
	Width int    // of the field in bits
	Value *big.Int
	// Prefix is the length of an lpm match, Mask the mask of a ternary one, and High the upper
	// end of a range.
	Prefix int
	Mask   *big.Int
	High   *big.Int
}

// String returns the value as Insert accepts it, with numbers in base 16.
func (v FieldValue) String() string {
	switch v.Kind {
	case dataplane.MatchLPM.String():
		return fmt.Sprintf("%#x/%d", v.Value, v.Prefix)
	case dataplane.MatchTernary.String():
		return fmt.Sprintf("%#x &&& %#x", v.Value, v.Mask)
	case dataplane.MatchRange.String():
		return fmt.Sprintf("%#x..%#x", v.Value, v.High)
	}
	return fmt.Sprintf("%#x", v.Value)
}

// An ActionValue is an action of an entry with its arguments.
type ActionValue struct {
	Name   string // full name, such as Ingress.forward
	Params []ParamValue
}

// A ParamValue is the argument for a parameter of an action.
type ParamValue struct {
	Name  string
	Width int // of the parameter in bits
	Value *big.Int
}

// Entries returns the entries of a table in the order in which P4Runtime clients read them,
// with the entries that the program itself declares. Default returns the table's default.
func (c *Control) Entries(table string) ([]TableEntry, error) {
	t, err := c.table(table)
	if err != nil {
		return nil, err
	}
	fields, ordered, err := c.sw.Tables().Key(t.Name)
	if err != nil {
		return nil, err
	}
	list, err := c.sw.Tables().Entries(t.Name)
	if err != nil {
		return nil, err
	}
	targets, err := c.profile(t)
	if err != nil {
		return nil, err
	}
	entries := make([]TableEntry, len(list))
	for i, held := range list {
		e := &entries[i]
		e.Table, e.Match = t.Name, map[string]string{}
		if ordered {
			e.Priority = topPriority - held.Priority
		}
		for k, f := range fields {
			if v := valueOf(f, held.Match[k]); v != nil {
				e.Fields = append(e.Fields, *v)
				e.Match[f.Name] = v.String()
			}
		}
		e.act(c.calls(targets, held.Target), held.Target)
	}
	return entries, nil
}

// Default returns the default entry of a table, which has no match. It has no action either if
// neither the program nor a controller sets one.
func (c *Control) Default(table string) (TableEntry, error) {
	t, err := c.table(table)
	if err != nil {
		return TableEntry{}, err
	}
	e := TableEntry{Entry: Entry{Table: t.Name}}
	target, ok, err := c.sw.Tables().Default(t.Name)
	if err != nil || !ok {
		return e, err
	}
	targets, err := c.profile(t)
	if err != nil {
		return e, err
	}
	e.act(c.calls(targets, target), target)
	return e, nil
}

// act sets the actions of an entry.
func (e *TableEntry) act(calls []ActionValue, target dataplane.Target) {
	e.Calls = calls
	for _, a := range calls {
		call := Call{Action: a.Name, Args: map[string]string{}}
		for _, p := range a.Params {
			call.Args[p.Name] = fmt.Sprintf("%#x", p.Value)
		}
		if target.Kind == dataplane.TargetGroup {
			e.OneOf = append(e.OneOf, call)
			continue
		}
		e.Action, e.Args = call.Action, call.Args
	}
}

// valueOf returns the value of a key field, or nil if the entry matches anything there.
func valueOf(f dataplane.KeyField, m dataplane.Match) *FieldValue {
	v := &FieldValue{Name: f.Name, Kind: f.Kind.String(), Width: f.Width, Value: new(big.Int).SetBytes(m.Value)}
	switch f.Kind {
	case dataplane.MatchLPM:
		if v.Prefix = m.PrefixLen; v.Prefix == 0 {
			return nil
		}
	case dataplane.MatchTernary:
		if v.Mask = new(big.Int).SetBytes(m.Mask); v.Mask.Sign() == 0 {
			return nil
		}
	case dataplane.MatchRange:
		v.High = new(big.Int).SetBytes(m.High)
		if all := new(big.Int).Lsh(big.NewInt(1), uint(f.Width)); v.Value.Sign() == 0 && new(big.Int).Add(v.High, big.NewInt(1)).Cmp(all) == 0 {
			return nil
		}
	}
	return v
}

// A profile is the content of a table's action profile; both maps are nil without one.
type profile struct {
	members map[dataplane.Handle]dataplane.ActionCall
	groups  map[dataplane.Handle][]dataplane.Handle
}

func (c *Control) profile(t *bmv2.Table) (p profile, err error) {
	if t.ActionProfile == "" {
		return p, nil
	}
	members, err := c.sw.Profiles().Members(t.ActionProfile)
	if err != nil {
		return p, err
	}
	p.members = map[dataplane.Handle]dataplane.ActionCall{}
	for _, m := range members {
		p.members[m.Handle] = m.Action
	}
	if t.Type != bmv2.TableIndirectSelect {
		return p, nil
	}
	groups, err := c.sw.Profiles().Groups(t.ActionProfile)
	if err != nil {
		return p, err
	}
	p.groups = map[dataplane.Handle][]dataplane.Handle{}
	for _, g := range groups {
		p.groups[g.Handle] = g.Members
	}
	return p, nil
}

// calls returns the actions of a target.
func (c *Control) calls(p profile, target dataplane.Target) []ActionValue {
	switch target.Kind {
	case dataplane.TargetMember:
		return []ActionValue{c.action(p.members[target.Index])}
	case dataplane.TargetGroup:
		var list []ActionValue
		for _, h := range p.groups[target.Index] {
			list = append(list, c.action(p.members[h]))
		}
		return list
	}
	return []ActionValue{c.action(target.Action)}
}

// action adds the names and widths of the parameters to a call.
func (c *Control) action(call dataplane.ActionCall) ActionValue {
	a := ActionValue{Name: call.Name}
	i := slices.IndexFunc(c.sw.Config().Actions, func(a *bmv2.Action) bool { return a.Name == call.Name })
	for k, p := range c.sw.Config().Actions[i].RuntimeData {
		a.Params = append(a.Params, ParamValue{Name: p.Name, Width: p.Bitwidth, Value: new(big.Int).SetBytes(call.Params[k])})
	}
	return a
}
