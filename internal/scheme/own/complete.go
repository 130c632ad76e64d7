package own

import (
	"slices"
	"strings"

	configv1 "github.com/p4lang/p4runtime/go/p4/config/v1"

	"github.com/p4lb/p4lb/internal/scheme/manifest"
)

// Complete adds missing parts of a manifest from the program's P4Info:
// registers (with opaque content), counters, tables, the fields of their keys,
// the parameters of their actions.
func Complete(m *manifest.Manifest, info *configv1.P4Info) {
	m.Registers = slices.Clone(m.Registers)
	for _, r := range info.GetRegisters() {
		completeRegister(m, r)
	}
	m.Counters = slices.Clone(m.Counters)
	for _, c := range info.GetCounters() {
		name := c.GetPreamble().GetName()
		if !slices.ContainsFunc(m.Counters, func(c manifest.Counter) bool { return c.Name == name }) {
			m.Counters = append(m.Counters, manifest.Counter{Name: name, Size: int(c.GetSize())})
		}
	}
	actions := map[uint32]*configv1.Action{}
	for _, a := range info.GetActions() {
		actions[a.GetPreamble().GetId()] = a
	}
	m.Tables = slices.Clone(m.Tables)
	for _, t := range info.GetTables() {
		completeTable(m, t, actions)
	}
}

func completeRegister(m *manifest.Manifest, r *configv1.Register) {
	name, width := r.GetPreamble().GetName(), int(r.GetTypeSpec().GetBitstring().GetBit().GetBitwidth())
	i := slices.IndexFunc(m.Registers, func(r manifest.Register) bool { return r.Name == name })
	if i < 0 {
		i = len(m.Registers)
		m.Registers = append(m.Registers, manifest.Register{Name: name, Content: manifest.Content{Kind: manifest.Opaque}})
	}
	if out := &m.Registers[i]; out.Size == 0 {
		out.Size = int(r.GetSize())
	}
	if out := &m.Registers[i]; out.Width == 0 {
		out.Width = width
	}
}

func completeTable(m *manifest.Manifest, t *configv1.Table, actions map[uint32]*configv1.Action) {
	name := t.GetPreamble().GetName()
	i := slices.IndexFunc(m.Tables, func(t manifest.Table) bool { return t.Name == name })
	if i < 0 {
		i = len(m.Tables)
		m.Tables = append(m.Tables, manifest.Table{Name: name})
	}
	out := &m.Tables[i]
	if out.Purpose == "" {
		out.Purpose = manifest.None
		if t.GetIsConstTable() {
			out.Purpose = manifest.Program
		}
	}
	out.Keys = completeKeys(out.Keys, t)
	var list []manifest.Action
	for _, ref := range t.GetActionRefs() {
		a := actions[ref.GetId()]
		short := manifest.Short(a.GetPreamble().GetName())
		i := slices.IndexFunc(out.Actions, func(a manifest.Action) bool { return manifest.Short(a.Name) == short })
		made := manifest.Action{Name: short}
		for _, p := range a.GetParams() {
			param := manifest.Param{Name: p.GetName()}
			if i >= 0 {
				for _, q := range out.Actions[i].Params {
					if q.Name == param.Name {
						param = q
					}
				}
			}
			made.Params = append(made.Params, param)
		}
		list = append(list, made)
	}
	out.Actions = list
}

// completeKeys returns all fields in the order of the program.
func completeKeys(keys []manifest.Key, t *configv1.Table) []manifest.Key {
	var list []manifest.Key
	for _, f := range t.GetMatchFields() {
		key := manifest.Key{Name: f.GetName()}
		for _, k := range keys {
			if k.Name == key.Name {
				key = k
			}
		}
		key.Match = strings.ToLower(f.GetMatchType().String())
		list = append(list, key)
	}
	return list
}
