package bmv2

import (
	"strings"

	"github.com/p4lb/p4lb/internal/text/lists"
)

func (v *validator) pipelines() {
	v.tables = map[string]bool{}
	ids := map[string]bool{}
	for i, p := range v.c.Pipelines {
		path := at("pipelines", i)
		nodes := v.nodes(path, p)
		for _, t := range p.Tables {
			if v.tables[t.Name] {
				v.failf(path, "a second table %q", t.Name)
			}
			v.tables[t.Name] = true
		}
		profiles := map[string]*ActionProfile{}
		for j, a := range p.ActionProfiles {
			if ids[a.Name] {
				v.failf(at(path+".action_profiles", j), "a second action profile %q", a.Name)
			}
			ids[a.Name], profiles[a.Name] = true, a
			if a.Selector != nil {
				v.exprs(at(path+".action_profiles", j)+".selector.input", a.Selector.Input)
			}
		}
		v.next(path+".init_table", p.InitTable, nodes)
		for j, t := range p.Tables {
			v.table(at(path+".tables", j), t, nodes, profiles)
		}
		for i, k := range p.Conditionals {
			where := at(path+".conditionals", i)
			if k.Expression == nil {
				v.failf(where, "%s has no expression", k.Name)
			}
			v.expr(where+".expression", k.Expression)
			v.next(where+".true_next", k.TrueNext, nodes)
			v.next(where+".false_next", k.FalseNext, nodes)
		}
		for i, a := range p.ActionCalls {
			where := at(path+".action_calls", i)
			v.action(where, a.ActionID, nil)
			v.next(where+".next_node", a.NextNode, nodes)
		}
	}
}

// nodes returns the names of the nodes in a control.
func (v *validator) nodes(path string, p *Pipeline) map[string]bool {
	names := lists.Map(p.Tables, func(t *Table) string { return t.Name })
	for _, k := range p.Conditionals {
		names = append(names, k.Name)
	}
	for _, a := range p.ActionCalls {
		names = append(names, a.Name)
	}
	nodes := map[string]bool{}
	for _, name := range names {
		if name == "" || nodes[name] {
			v.failf(path, "node name %q is empty or not unique", name)
		}
		nodes[name] = true
	}
	return nodes
}

func (v *validator) next(path, name string, nodes map[string]bool) {
	if name != "" && !nodes[name] {
		v.failf(path, "unknown node %q", name)
	}
}

// action checks that an action exists and takes the given arguments.
func (v *validator) action(path string, id int, data []string) {
	a := v.actionsOf[id]
	if a == nil {
		v.failf(path, "unknown action_id %d", id)
		return
	}
	if len(data) != len(a.RuntimeData) {
		v.failf(path, "action %s takes %d arguments, found %d", a.Name, len(a.RuntimeData), len(data))
	}
	for i, d := range data {
		v.entryNumber(at(path+".action_data", i), d)
	}
}

// entryNumber checks a number of an entry. p4c writes negative numbers for
// signed fields and parameters; simple_switch fails an assertion on these.
func (v *validator) entryNumber(path, hex string) {
	if _, err := ParseHex(hex); err != nil {
		v.failf(path, "%w", err)
	} else if strings.HasPrefix(hex, "-") {
		v.failf(path, "%s is negative: simple_switch does not support negative numbers in entries", hex)
	}
}

func (v *validator) table(path string, t *Table, nodes map[string]bool, profiles map[string]*ActionProfile) {
	switch t.MatchType {
	case MatchExact, MatchLPM, MatchTernary, MatchRange:
	default:
		v.failf(path, "match_type %q of %s is unknown", t.MatchType, t.Name)
	}
	switch t.Type {
	case TableSimple:
	case TableIndirect, TableIndirectSelect:
		p := profiles[t.ActionProfile]
		if p == nil {
			v.failf(path, "unknown action profile %q", t.ActionProfile)
		} else if t.Type == TableIndirectSelect && p.Selector == nil {
			v.failf(path, "action profile %q has no selector", t.ActionProfile)
		}
	default:
		v.failf(path, "type %q of %s is unknown", t.Type, t.Name)
	}
	lpm := 0
	for i, k := range t.Key {
		v.key(at(path+".key", i), t, k)
		if k.MatchType == MatchLPM {
			lpm++
		}
	}
	if lpm > 1 {
		v.failf(path, "%s has more than one lpm key", t.Name)
	}
	for i, id := range t.ActionIDs {
		if v.actionsOf[id] == nil {
			v.failf(at(path+".action_ids", i), "unknown action id %d", id)
		}
	}
	if len(t.ActionIDs) > 0 && len(t.ActionIDs) != len(t.Actions) {
		v.failf(path, "%d actions but %d action_ids", len(t.Actions), len(t.ActionIDs))
	}
	for _, n := range t.NextTables {
		v.next(path+".next_tables."+n.Label, n.Next, nodes)
	}
	v.next(path+".base_default_next", t.BaseDefaultNext, nodes)
	if t.DefaultEntry != nil {
		v.action(path+".default_entry", t.DefaultEntry.ActionID, t.DefaultEntry.ActionData)
	}
	for i, e := range t.Entries {
		v.entry(at(path+".entries", i), t, e)
	}
}

func (v *validator) key(path string, t *Table, k *TableKey) {
	switch k.MatchType {
	case MatchValid:
		if v.instances[k.Target.Header] == nil {
			v.failf(path+".target", "unknown header %q", k.Target.Header)
		}
		return
	case MatchExact:
	case MatchLPM, MatchTernary, MatchOptional, MatchRange:
		if rank[t.MatchType] < rank[k.MatchType] {
			v.failf(path, "a %s key in the %s table %s", k.MatchType, t.MatchType, t.Name)
		}
	default:
		v.failf(path, "match_type %q is unknown", k.MatchType)
	}
	v.field(path+".target", k.Target.Header, k.Target.Field)
	if k.Mask != "" {
		if _, err := ParseHex(k.Mask); err != nil {
			v.failf(path+".mask", "%w", err)
		}
	}
}

// rank orders the match kinds of tables by the keys that they support.
var rank = map[string]int{MatchLPM: 1, MatchTernary: 2, MatchOptional: 2, MatchRange: 3}

func (v *validator) entry(path string, t *Table, e *Entry) {
	if len(e.MatchKey) != len(t.Key) {
		v.failf(path, "%d match keys, the table %s has %d", len(e.MatchKey), t.Name, len(t.Key))
		return
	}
	for i, k := range e.MatchKey {
		where := at(path+".match_key", i)
		if k.MatchType != t.Key[i].MatchType {
			v.failf(where, "match_type %q, the table's key has %q", k.MatchType, t.Key[i].MatchType)
		}
		for _, hex := range k.values() {
			v.entryNumber(where, hex)
		}
	}
	if e.ActionEntry == nil {
		v.failf(path, "no action_entry")
		return
	}
	v.action(path+".action_entry", e.ActionEntry.ActionID, e.ActionEntry.ActionData)
}

// values returns the hexadecimal numbers of a match key.
func (k *MatchKey) values() []string {
	switch k.MatchType {
	case MatchRange:
		return []string{k.Start, k.End}
	case MatchTernary, MatchOptional:
		return []string{k.Key, k.Mask}
	}
	return []string{k.Key}
}
