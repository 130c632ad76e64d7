package source

import "fmt"

// A Profile is an action profile or selector with its members and groups. Members
// and groups are numbered from 0.
type Profile struct {
	Name    string
	Members []Invoke
	Groups  [][]int // indices of members, in ascending order
	// Algorithm is the hash of a selector, empty for a profile without groups.
	Algorithm string
}

// choose returns the action of a member. For a group, the hash of the selector keys
// chooses the member: simple_switch takes the hash modulo the size of the group.
// The members of groups for Tofino are equal, because the chip's choice is not
// documented.
func (p *Profile) choose(m *Machine, t *Table, do Invoke) Invoke {
	if !do.Group {
		return p.Members[do.Action]
	}
	group := p.Groups[do.Action]
	var data []*Expr
	for _, k := range t.Keys {
		if k.Kind == selectorKind {
			data = append(data, k.X)
		}
	}
	hash := hashOf(p.Algorithm, bytesOf(m, data))
	return p.Members[group[hash%uint64(len(group))]]
}

// selectorKind is the match kind of keys that only select group members.
const selectorKind = "selector"

// Object declares the profile. For Tofino, it declares a selector's hash and
// profile too.
func (p *Profile) Object(arch string) Stmt {
	switch {
	case arch == V1model && p.Algorithm == "":
		return Object("action_profile(16) %s;", p.Name)
	case arch == V1model:
		return Object("action_selector(HashAlgorithm.%s, 16, 16) %s;", p.Algorithm, p.Name)
	case p.Algorithm == "":
		return Object("ActionProfile(16) %s;", p.Name)
	}
	return Stmt{exec: func(*Machine) signal { return proceed }, print: func(w *printer) {
		w.Line("Hash<bit<16>>(HashAlgorithm_t.CRC16) hash_%s;", p.Name)
		w.Line("ActionProfile(16) %s;", p.Name)
		w.Line("ActionSelector(%s, hash_%s, SelectorMode_t.FAIR, 8, 4) sel_%s;", p.Name, p.Name, p.Name)
	}}
}

// Implementation returns the table property that refers to the profile.
func (p *Profile) Implementation(arch string) string {
	if arch != V1model && p.Algorithm != "" {
		return fmt.Sprintf("implementation = sel_%s", p.Name)
	}
	return "implementation = " + p.Name
}
