package manifest

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/p4lb/p4lb/internal/text/lists"
)

// A purposeNeed lists the facts that a table of a given purpose must contain.
type purposeNeed struct {
	key    [][]Fact // the key needs at least one fact of each set
	params []Fact   // an action needs at least one of these as parameter; none: the purpose has no action of its own
	known  []Fact   // further facts available for each entry
}

// aboutPort are the facts about a port with a link.
var aboutPort = []Fact{EgressPort, OwnMAC, NextMAC, QueueNumber, ServiceTime, Capacity, Reciprocal, LinkRate, NodeNumber}

// purposeNeeds lists the needs of each purpose. Purposes without an entry need nothing.
var purposeNeeds = map[Purpose]purposeNeed{
	Route: {
		key:    [][]Fact{{Destination}},
		params: []Fact{EgressPort, GroupID, FirstMember, PathCount},
		known:  append([]Fact{LeafNumber, HostAddress, HostMAC}, aboutPort...),
	},
	Member: {
		key:    [][]Fact{{SlotNumber, MemberIndex}},
		params: []Fact{EgressPort, QueueNumber},
		known:  append([]Fact{GroupID, PathWeight, LeafNumber}, aboutPort...),
	},
	Group: {
		key:    [][]Fact{{GroupID}},
		params: []Fact{EgressPort, PathWeight, WeightEnd, QueueNumber, ServiceTime, PathCount, FirstMember, Capacity, Reciprocal, LinkRate},
		known:  append([]Fact{LeafNumber}, aboutPort...),
	},
	PortConfig: {key: [][]Fact{{EgressPort, IngressPort}}, known: append([]Fact{CloneTo, FloodTo}, aboutPort...)},
	Neighbour:  {key: [][]Fact{{EgressPort, IngressPort}}, known: append([]Fact{CloneTo, FloodTo, IngressPort}, aboutPort...)},
	Leaf:       {key: [][]Fact{{LeafNumber}}, params: []Fact{EgressPort}, known: append([]Fact{LeafNumber}, aboutPort...)},
	LeafOf:     {key: [][]Fact{{Destination}}, params: []Fact{LeafNumber}},
	Arrival:    {key: [][]Fact{{LeafNumber}, {IngressPort}}, params: []Fact{SlotNumber, FloodTo}, known: []Fact{EgressPort, NodeNumber}},
	Identity:   {params: []Fact{NodeNumber, LeafNumber}},
	Upstream:   {key: [][]Fact{{IngressPort, EgressPort}}, params: []Fact{CloneTo}},
	Polynomial: {params: []Fact{Coefficient}},
}

func (m *Manifest) validateTables() error {
	seen := map[string]int{}
	for i := range m.Tables {
		t, place := &m.Tables[i], fmt.Sprintf("tables[%d]", i)
		first, twice := seen[t.Name]
		switch {
		case t.Name == "":
			return at(place+".name", "is missing")
		case twice:
			return at(place+".name", "table %s is there twice, first as tables[%d]", t.Name, first)
		case t.Purpose == BakedTable && t.Baked == nil:
			return at(place+".baked", "is missing: table %s needs precomputed values", t.Name)
		case t.Purpose != BakedTable && t.Baked != nil:
			purpose := t.Purpose
			if t.Purpose == "" {
				purpose = None
			}
			return at(place+".baked", "table %s is for %s: only the purpose baked has it", t.Name, purpose)
		case t.Baked != nil && len(t.Baked.Keys) == 0:
			return at(place+".baked.keys", "is missing")
		}
		seen[t.Name] = i
		if err := m.validatePurpose(t, place); err != nil {
			return err
		}
		for k := range t.Entries {
			if err := t.Entries[k].validate(fmt.Sprintf("%s.entries[%d]", place, k)); err != nil {
				return err
			}
		}
	}
	return nil
}

// validatePurpose checks that a table carries the facts of its purpose.
func (m *Manifest) validatePurpose(t *Table, place string) error {
	need, ok := purposeNeeds[t.Purpose]
	if !ok {
		return nil
	}
	for _, facts := range need.key {
		if !slices.ContainsFunc(t.Keys, func(k Key) bool { return slices.Contains(facts, k.Carries) }) {
			return at(place+".keys", "table %s is for %s: want a field that carries %s", t.Name, t.Purpose, orList(facts))
		}
	}
	if len(need.params) > 0 && t.Action(need.params...) == nil {
		return at(place+".actions", "table %s is for %s: want an action with a parameter that carries %s", t.Name, t.Purpose, orList(need.params))
	}
	if t.Purpose == Member && m.Paths == 0 {
		return at("paths", "is missing: table %s is for members of groups", t.Name)
	}
	for i, k := range t.Keys {
		at := fmt.Sprintf("%s.keys[%d]", place, i)
		if err := need.check(at, k.Name, t, k.Carries, k.Value); err != nil {
			return err
		}
	}
	for i, a := range t.Actions {
		for k, p := range a.Params {
			place := fmt.Sprintf("%s.actions[%d].params[%d]", place, i, k)
			if err := need.check(place, p.Name, t, p.Carries, p.Value); err != nil {
				return err
			}
			if p.Slot < 0 || p.Slot >= MaxPaths {
				return at(place+".slot", "is %d: want 0 to %d", p.Slot, MaxPaths-1)
			}
		}
	}
	return nil
}

// check checks that the fact of a field or parameter is available for each entry.
func (n purposeNeed) check(place, name string, t *Table, carries Fact, value string) error {
	switch {
	case carries != "" && value != "":
		return at(place+".value", "%s carries %s: want that or a value", name, carries)
	case value != "":
		var v Match
		if err := v.UnmarshalText([]byte(value)); err != nil {
			return at(place+".value", "%v", err)
		}
		var fact Fact
		v.facts(func(f Fact, _ string) { fact = f })
		if fact != "" {
			return at(place+".value", "want a number: a fact is carried, as in carries: %s", fact)
		}
	case carries != "" && !slices.Contains(n.facts(), carries):
		return at(place+".carries", "nothing is known of %s in a table for %s: want %s", carries, t.Purpose, orList(n.facts()))
	}
	return nil
}

// facts returns all facts that are available for each entry.
func (n purposeNeed) facts() []Fact {
	var list []Fact
	for _, f := range slices.Concat(slices.Concat(n.key...), n.params, n.known) {
		if !slices.Contains(list, f) {
			list = append(list, f)
		}
	}
	return list
}

func orList(facts []Fact) string {
	names := lists.Map(facts, func(f Fact) string { return string(f) })
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:len(names)-1], ", ") + " or " + names[len(names)-1]
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
