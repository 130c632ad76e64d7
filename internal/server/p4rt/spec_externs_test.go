package p4rt

import (
	"strings"
	"testing"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
)

// specProfiles tests members and groups. The selector has room for 64 members;
// its groups have no limit of their own.
func specProfiles(t testing.TB) []spec {
	member := func(id uint32) *p4v1.Entity { return memberEntity(t, "AllIngress.choice", id, "\x01") }
	bare := func(profile, id uint32, a *p4v1.Action) *p4v1.Entity {
		return &p4v1.Entity{Entity: &p4v1.Entity_ActionProfileMember{ActionProfileMember: &p4v1.ActionProfileMember{ActionProfileId: profile, MemberId: id, Action: a}}}
	}
	choice, plain := idOf(t, "AllIngress.choice"), idOf(t, "AllIngress.plain")
	forward := action(t, "AllIngress.forward", "\x01")
	group := func(id uint32, members ...*p4v1.ActionProfileGroup_Member) *p4v1.Entity {
		return groupEntity(t, id, members...)
	}
	watch := func(port string) *p4v1.ActionProfileGroup_Member {
		m := weighted(1, 1)
		m.WatchKind = &p4v1.ActionProfileGroup_Member_WatchPort{WatchPort: []byte(port)}
		return m
	}
	two := []*p4v1.Update{update(ins, member(1)), update(ins, member(2))}
	grouped := append(two[:2:2], update(ins, group(1, weighted(1, 1), weighted(2, 1))))
	leads := func(a *p4v1.TableAction) *p4v1.TableEntry {
		return changed(exactEntry(t, "AllIngress.groups", "", nil, "\x01"), func(e *p4v1.TableEntry) { e.Action = a })
	}
	used := append(grouped[:3:3], insert(t, leads(groupAction(1))))
	sized := func(e *p4v1.Entity, n int32) *p4v1.Entity {
		e.GetActionProfileGroup().MaxSize = n
		return e
	}
	var many []*p4v1.Update
	for i := range uint32(64) {
		many = append(many, update(ins, member(i+1)))
	}
	var all []spec
	for _, c := range []struct {
		name   string
		before []*p4v1.Update
		do     *p4v1.Update
		want   codes.Code
	}{
		{"9.2.1 a member", nil, update(ins, member(1)), ok},
		{"9.2.1 member 0", nil, update(ins, member(0)), bad},
		{"9.2.1 a member of profile 0", nil, update(ins, bare(0, 1, forward)), bad},
		{"9.2.1 a member of a table", nil, update(ins, bare(idOf(t, "AllIngress.macs"), 1, forward)), bad},
		{"9.2.1 a member without action", nil, update(ins, bare(choice, 1, nil)), bad},
		{"9.2.1 a member of an unknown action", nil, update(ins, bare(choice, 1, &p4v1.Action{ActionId: 9})), bad},
		{"9.2.1 a member of another table's action", nil, update(ins, bare(choice, 1, action(t, "AllIngress.mark", "\x01"))), bad},
		{"9.2.1 a member with an argument too wide", nil, update(ins, bare(choice, 1, action(t, "AllIngress.forward", "\x02\x00"))), bad},
		{"9.2.1 a member without its argument", nil, update(ins, bare(choice, 1, action(t, "AllIngress.forward"))), bad},
		{"9.2.1 the same id in another profile", two, update(ins, bare(plain, 1, forward)), ok},
		{"9.2.1 one member more than there is room for", many, update(ins, member(65)), full},
		{"9.2.1 a member in a group is deleted", grouped, update(del, member(1)), codes.FailedPrecondition},
		{"9.2.1 a member in a group is modified", grouped, update(mod, memberEntity(t, "AllIngress.choice", 1, "\x02")), ok},
		{"9.2.1 a member with an entry is deleted", append(two[:2:2], insert(t, leads(memberAction(1)))), update(del, member(1)), codes.FailedPrecondition},
		{"9.2.1 an entry of a member of a selector", two, insert(t, leads(memberAction(1))), ok},
		{"9.2.1 an entry of an unknown member", two, insert(t, leads(memberAction(7))), lost},
		{"9.2.1 an entry of an action where there is a profile", two, insert(t, leads(tableAction(forward))), bad},
		{"9.2.1 an entry of a group where there is no selector", nil, insert(t, changed(exactEntry(t, "AllIngress.members", "", nil, "\x01"), func(e *p4v1.TableEntry) { e.Action = groupAction(1) })), bad},
		{"9.2.2 a group", two, update(ins, group(1, weighted(1, 1), weighted(2, 3))), ok},
		{"9.2.2 an empty group", nil, update(ins, group(1)), ok},
		{"9.2.2 group 0", two, update(ins, group(0, weighted(1, 1))), bad},
		{"9.2.2 a group of a profile without selector", nil, update(ins, &p4v1.Entity{Entity: &p4v1.Entity_ActionProfileGroup{ActionProfileGroup: &p4v1.ActionProfileGroup{ActionProfileId: plain, GroupId: 1}}}), bad},
		{"9.2.2 a group of an unknown profile", nil, update(ins, &p4v1.Entity{Entity: &p4v1.Entity_ActionProfileGroup{ActionProfileGroup: &p4v1.ActionProfileGroup{ActionProfileId: 7, GroupId: 1}}}), bad},
		{"9.2.2 a group with an unknown member", two, update(ins, group(1, weighted(9, 1))), lost},
		{"9.2.2 a group with a member twice", two, update(ins, group(1, weighted(1, 1), weighted(1, 1))), bad},
		{"9.2.2 a weight of 0", two, update(ins, group(1, weighted(1, 0))), bad},
		{"9.2.2 a negative weight", two, update(ins, group(1, weighted(1, -1))), bad},
		{"9.2.2 weights that add up to too much", two, update(ins, group(1, weighted(1, 1<<31-1), weighted(2, 1<<31-1))), full},
		{"9.2.2 a group larger than its max_size", two, update(ins, sized(group(1, weighted(1, 2), weighted(2, 2)), 3)), full},
		{"9.2.2 a group as large as its max_size", two, update(ins, sized(group(1, weighted(1, 2), weighted(2, 1)), 3)), ok},
		{"9.2.2 a negative max_size", two, update(ins, sized(group(1, weighted(1, 1)), -1)), bad},
		{"9.2.2 another max_size", append(two[:2:2], update(ins, sized(group(1), 3))), update(mod, sized(group(1), 4)), bad},
		{"9.2.2 a group that watches a port", two, update(ins, group(1, watch("\x01"))), ok},
		{"9.2.2 a group that watches a port that is none", two, update(ins, group(1, watch("\x4d"))), bad},
		{"9.2.2 a group that watches a port too wide", two, update(ins, group(1, watch("\x01\x00\x00\x00\x00"))), bad},
		{"9.2.2 a group without members later", grouped, update(mod, group(1)), ok},
		{"9.2.2 a group with an entry is deleted", used, update(del, group(1)), codes.FailedPrecondition},
		{"9.2.2 a group with an entry is emptied", used, update(mod, group(1)), ok},
		{"9.2.2 an entry of an unknown group", grouped, insert(t, leads(groupAction(7))), lost},
	} {
		all = append(all, spec{name: c.name, before: c.before, do: c.do, want: c.want})
	}
	return append(all,
		spec{name: "9.2.1 all members of all profiles", before: append(two[:2:2], update(ins, bare(plain, 1, forward))), ask: bare(0, 0, nil), n: 3},
		spec{name: "9.2.1 the members of a profile", before: append(two[:2:2], update(ins, bare(plain, 1, forward))), ask: bare(choice, 0, nil), n: 2},
		spec{name: "9.2.1 one member", before: two, ask: bare(choice, 2, nil), n: 1},
		spec{name: "9.2.1 a member that is not there", before: two, ask: bare(choice, 9, nil)},
		spec{name: "9.2.1 the members of a profile that is none", before: two, ask: bare(7, 0, nil), asked: bad},
		spec{name: "9.2.2 all groups", before: grouped, ask: group(0), n: 1},
		spec{name: "9.2.2 a group that is not there", before: grouped, ask: group(9)},
	)
}

// specOneShots tests entries with one-shot groups.
func specOneShots(t testing.TB) []spec {
	one := func(port string, weight int32) *p4v1.ActionProfileAction {
		return &p4v1.ActionProfileAction{Action: action(t, "AllIngress.forward", port), Weight: weight}
	}
	entry := func(tos string, set ...*p4v1.ActionProfileAction) *p4v1.TableEntry {
		return changed(exactEntry(t, "AllIngress.groups", "", nil, tos), func(e *p4v1.TableEntry) { e.Action = actionSet(t, set...) })
	}
	watching := func(port string) *p4v1.ActionProfileAction {
		a := one("\x01", 1)
		a.WatchKind = &p4v1.ActionProfileAction_WatchPort{WatchPort: []byte(port)}
		return a
	}
	mode := func(change func(*p4v1.ActionProfileActionSet)) *p4v1.TableEntry {
		return changed(entry("\x01", one("\x01", 1)), func(e *p4v1.TableEntry) { change(e.Action.GetActionProfileActionSet()) })
	}
	there := []*p4v1.Update{insert(t, entry("\x01", one("\x01", 60)))}
	member := update(ins, memberEntity(t, "AllIngress.choice", 1, "\x01"))
	var all []spec
	for _, c := range []struct {
		name   string
		before []*p4v1.Update
		do     *p4v1.Update
		want   codes.Code
	}{
		{"9.2.3 a one-shot", nil, insert(t, entry("\x01", one("\x01", 1), one("\x02", 3))), ok},
		{"9.2.3 a one-shot of the same action twice", nil, insert(t, entry("\x01", one("\x01", 1), one("\x01", 1))), ok},
		{"9.2.3 an empty one-shot", nil, insert(t, entry("\x01")), ok},
		{"9.2.3 a weight of 0", nil, insert(t, entry("\x01", one("\x01", 0))), bad},
		{"9.2.3 a negative weight", nil, insert(t, entry("\x01", one("\x01", -1))), bad},
		{"9.2.3 no action", nil, insert(t, entry("\x01", &p4v1.ActionProfileAction{Weight: 1})), bad},
		{"9.2.3 an action of another table", nil, insert(t, entry("\x01", &p4v1.ActionProfileAction{Weight: 1, Action: action(t, "AllIngress.mark", "\x01")})), bad},
		{"9.2.3 a port to watch", nil, insert(t, entry("\x01", watching("\x02"))), ok},
		{"9.2.3 a port to watch that is none", nil, insert(t, entry("\x01", watching("\x4d"))), bad},
		{"9.2.3 more than the selector has room for", nil, insert(t, entry("\x01", one("\x01", 65))), full},
		{"9.2.3 all one-shots have the selector's room", there, insert(t, entry("\x02", one("\x01", 5))), full},
		{"9.2.3 the remaining room", there, insert(t, entry("\x02", one("\x01", 4))), ok},
		{"9.2.3 another set in the room of the one before", there, modify(t, entry("\x01", one("\x02", 64))), ok},
		{"9.2.3 a member beside one-shots", there, member, bad},
		{"9.2.3 a group beside one-shots", there, update(ins, groupEntity(t, 1)), bad},
		{"9.2.3 a one-shot beside members", []*p4v1.Update{member}, insert(t, entry("\x01", one("\x01", 1))), bad},
		{"9.2.3 members when the one-shots are gone", append(there[:1:1], remove(t, entry("\x01"))), member, ok},
		{"9.2.3 another set", there, modify(t, entry("\x01", one("\x02", 1), one("\x03", 1))), ok},
		{"9.2.3 a one-shot where there is no selector", nil, insert(t, changed(entry("\x01", one("\x01", 1)), func(e *p4v1.TableEntry) { e.TableId = idOf(t, "AllIngress.members") })), bad},
		{"9.2.3 to choose by hash", nil, insert(t, mode(func(s *p4v1.ActionProfileActionSet) { s.ActionSelectionMode = p4v1.ActionProfileActionSet_HASH })), ok},
		{"9.2.3 to choose at random is not known here", nil, insert(t, mode(func(s *p4v1.ActionProfileActionSet) { s.ActionSelectionMode = p4v1.ActionProfileActionSet_RANDOM })), codes.Unimplemented},
		{"9.2.3 a size by members", nil, insert(t, mode(func(s *p4v1.ActionProfileActionSet) { s.SizeSemantics = p4v1.ActionProfileActionSet_SUM_OF_MEMBERS })), ok},
	} {
		all = append(all, spec{name: c.name, before: c.before, do: c.do, want: c.want})
	}
	return append(all,
		spec{name: "9.2.3 a one-shot is read as it was written", run: func(t *testing.T, s *session) {
			e := entry("\x01", one("\x01", 1), watching("\x02"))
			s.must(s.write(insert(t, e)))
			if got := s.mustRead(1, entityOf(&p4v1.TableEntry{TableId: e.GetTableId()}))[0].GetTableEntry(); !proto.Equal(got, e) {
				t.Errorf("read %v", got)
			}
		}},
		spec{name: "9.2.3 a one-shot has no members to read", before: there, ask: &p4v1.Entity{Entity: &p4v1.Entity_ActionProfileMember{ActionProfileMember: &p4v1.ActionProfileMember{}}}},
		spec{name: "9.2.3 a one-shot has no group to read", before: there, ask: &p4v1.Entity{Entity: &p4v1.Entity_ActionProfileGroup{ActionProfileGroup: &p4v1.ActionProfileGroup{}}}},
	)
}

// specArrays tests counters, meters and registers with 8, 4 and 512 cells.
func specArrays(t testing.TB) []spec {
	counter := func(id uint32, index *p4v1.Index, d *p4v1.CounterData) *p4v1.Entity {
		return &p4v1.Entity{Entity: &p4v1.Entity_CounterEntry{CounterEntry: &p4v1.CounterEntry{CounterId: id, Index: index, Data: d}}}
	}
	meter := func(id uint32, index *p4v1.Index, c *p4v1.MeterConfig) *p4v1.Entity {
		return &p4v1.Entity{Entity: &p4v1.Entity_MeterEntry{MeterEntry: &p4v1.MeterEntry{MeterId: id, Index: index, Config: c}}}
	}
	register := func(id uint32, index *p4v1.Index, d *p4v1.P4Data) *p4v1.Entity {
		return &p4v1.Entity{Entity: &p4v1.Entity_RegisterEntry{RegisterEntry: &p4v1.RegisterEntry{RegisterId: id, Index: index, Data: d}}}
	}
	at := func(i int64) *p4v1.Index { return &p4v1.Index{Index: i} }
	seen, limit, sizes, signs, wide := idOf(t, "AllIngress.seen"), idOf(t, "AllIngress.limit"), idOf(t, "AllIngress.sizes"), idOf(t, "AllIngress.signs"), idOf(t, "AllIngress.wide")
	n, rates := &p4v1.CounterData{PacketCount: 7, ByteCount: 8}, &p4v1.MeterConfig{Cir: 1, Cburst: 2, Pir: 3, Pburst: 4}
	var all []spec
	for _, c := range []struct {
		name string
		e    *p4v1.Entity
		want codes.Code
	}{
		{"9.3.2 a counter's cell", counter(seen, at(0), n), ok},
		{"9.3.2 a counter's last cell", counter(seen, at(7), n), ok},
		{"9.3.2 all cells of a counter", counter(seen, nil, n), ok},
		{"9.3.2 a counter without data", counter(seen, at(0), nil), ok},
		{"9.3.2 counter 0", counter(0, at(0), n), bad},
		{"9.3.2 a counter that is none", counter(sizes, at(0), n), bad},
		{"9.3.2 a counter's cell -1", counter(seen, at(-1), n), bad},
		{"9.3.2 a counter's cell behind the last", counter(seen, at(8), n), codes.OutOfRange},
		{"9.3.2 a counter's cell far behind the last", counter(seen, at(1<<63-1), n), codes.OutOfRange},
		{"9.4.2 a meter's cell", meter(limit, at(0), rates), ok},
		{"9.4.2 all cells of a meter", meter(limit, nil, rates), ok},
		{"9.4.2 a meter without configuration", meter(limit, at(0), nil), ok},
		{"9.4.2 meter 0", meter(0, at(0), rates), bad},
		{"9.4.2 a meter's cell -1", meter(limit, at(-1), rates), bad},
		{"9.4.2 a meter's cell behind the last", meter(limit, at(4), rates), codes.OutOfRange},
		{"9.4 a negative rate", meter(limit, at(0), &p4v1.MeterConfig{Cir: -1}), bad},
		{"9.4 a negative burst", meter(limit, at(0), &p4v1.MeterConfig{Cburst: -1}), bad},
		{"9.4 a peak below the committed rate", meter(limit, at(0), &p4v1.MeterConfig{Cir: 2, Pir: 1}), bad},
		{"9.4 an excess burst of two rates", meter(limit, at(0), &p4v1.MeterConfig{Cir: 1, Pir: 1, Eburst: 1}), bad},
		{"9.7 a register's cell", register(sizes, at(0), bitstring("\x09")), ok},
		{"9.7 a register's last cell", register(sizes, at(511), bitstring("\x09")), ok},
		{"9.7 all cells of a register", register(sizes, nil, bitstring("\x09")), ok},
		{"9.7 register 0", register(0, at(0), bitstring("\x09")), bad},
		{"9.7 a register's cell -1", register(sizes, at(-1), bitstring("\x09")), bad},
		{"9.7 a register's cell behind the last", register(sizes, at(512), bitstring("\x09")), codes.OutOfRange},
		{"9.7 a value too wide", register(sizes, at(0), bitstring("\x01\x00\x00\x00\x00")), codes.OutOfRange},
		{"9.7 an empty value", register(sizes, at(0), bitstring("")), codes.OutOfRange},
		{"9.7 no value", register(sizes, at(0), nil), bad},
		{"9.7 a value of another kind", register(sizes, at(0), &p4v1.P4Data{Data: &p4v1.P4Data_Bool{Bool: true}}), bad},
		{"9.7 a tuple for a number", register(sizes, at(0), &p4v1.P4Data{Data: &p4v1.P4Data_Tuple{Tuple: &p4v1.P4StructLike{}}}), bad},
		{"9.7 a value of 128 bits", register(wide, at(0), bitstring(strings.Repeat("\xff", 16))), ok},
		{"9.7 a value of 129 bits", register(wide, at(0), bitstring("\x01"+strings.Repeat("\x00", 16))), codes.OutOfRange},
		{"8.3 int<12> -1", register(signs, at(0), bitstring("\xff")), ok},
		{"8.3 int<12> -1 in two bytes", register(signs, at(0), bitstring("\xff\xff")), ok},
		{"8.3 int<12> -743", register(signs, at(0), bitstring("\xfd\x1d")), ok},
		{"8.3 int<12> of 13 bits", register(signs, at(0), bitstring("\x08\x00")), codes.OutOfRange},
		{"8.3 int<12> the smallest", register(signs, at(0), bitstring("\xf8\x00")), ok},
		{"8.3 int<12> the largest", register(signs, at(0), bitstring("\x07\xff")), ok},
		{"8.3 int<12> too small", register(signs, at(0), bitstring("\xf7\xff")), codes.OutOfRange},
		{"8.3 int<12> without its sign", register(signs, at(0), bitstring("\x0f\xff")), codes.OutOfRange},
	} {
		all = append(all, spec{name: c.name, do: update(mod, c.e), want: c.want})
	}
	for _, c := range []struct {
		name string
		e    *p4v1.Entity
		n    int
		code codes.Code
	}{
		{"9.3.2 reading all counters", counter(0, nil, nil), 8, ok},
		{"9.3.2 reading a counter", counter(seen, nil, nil), 8, ok},
		{"9.3.2 reading a counter's cell", counter(seen, at(3), nil), 1, ok},
		{"9.3.2 reading behind a counter", counter(seen, at(8), nil), 0, codes.OutOfRange},
		{"9.3.2 reading before a counter", counter(seen, at(-1), nil), 0, bad},
		{"9.3.2 reading a counter that is none", counter(5, nil, nil), 0, bad},
		{"9.4.2 reading all meters", meter(0, nil, nil), 4, ok},
		{"9.4.2 reading a meter's cell", meter(limit, at(3), nil), 1, ok},
		{"9.4.2 reading behind a meter", meter(limit, at(4), nil), 0, codes.OutOfRange},
		{"9.4.2 reading a meter that is none", meter(5, nil, nil), 0, bad},
		{"9.7 reading a register", register(sizes, nil, nil), 512, ok},
		{"9.7 reading a register's cell", register(sizes, at(3), nil), 1, ok},
		{"9.7 reading behind a register", register(sizes, at(512), nil), 0, codes.OutOfRange},
		{"9.7 reading before a register", register(sizes, at(-1), nil), 0, bad},
		{"9.7 reading a register that is none", register(5, nil, nil), 0, bad},
		{"9.7 reading all registers", register(0, nil, nil), 512 + 4 + 4 + 65536, ok},
	} {
		all = append(all, spec{name: c.name, ask: c.e, n: c.n, asked: c.code})
	}
	return all
}

// specDirect tests the counters and meters of entries. Only the action metered
// executes the meter of routes.
func specDirect(t testing.TB) []spec {
	r := route(t, "\x0a\x00\x00\x00", 8, "\x01")
	gone := route(t, "\x0b\x00\x00\x00", 8, "\x01")
	drop := changed(r, func(e *p4v1.TableEntry) { e.Action = tableAction(action(t, "AllIngress.drop")) })
	n, rates := &p4v1.CounterData{PacketCount: 7}, &p4v1.MeterConfig{Cir: 1, Cburst: 2, Pir: 3, Pburst: 4}
	counted := func(e *p4v1.TableEntry) *p4v1.TableEntry {
		return changed(e, func(e *p4v1.TableEntry) { e.CounterData = n })
	}
	metered := func(e *p4v1.TableEntry) *p4v1.TableEntry {
		return changed(e, func(e *p4v1.TableEntry) { e.MeterConfig = rates })
	}
	cleared := func(e *p4v1.TableEntry, red int64) *p4v1.TableEntry {
		return changed(e, func(e *p4v1.TableEntry) {
			e.MeterCounterData = &p4v1.MeterCounterData{Red: &p4v1.CounterData{ByteCount: red}}
		})
	}
	withCounts := func(green int64) *p4v1.Entity {
		e := directMeter(keyOf(r), rates)
		e.GetDirectMeterEntry().CounterData = &p4v1.MeterCounterData{Green: &p4v1.CounterData{PacketCount: green}}
		return e
	}
	there := []*p4v1.Update{insert(t, r)}
	var all []spec
	for _, c := range []struct {
		name   string
		before []*p4v1.Update
		do     *p4v1.Update
		want   codes.Code
	}{
		{"9.1.7 INSERT with a count", nil, insert(t, counted(r)), ok},
		{"9.1.7 MODIFY with a count", there, modify(t, counted(r)), ok},
		{"9.1.7 a count where there is no counter", nil, insert(t, counted(macEntry(t, "\x01"))), bad},
		{"9.1.7 INSERT with rates", nil, insert(t, metered(r)), ok},
		{"9.1.7 MODIFY with rates", there, modify(t, metered(r)), ok},
		{"9.1.7 rates where there is no meter", nil, insert(t, metered(macEntry(t, "\x01"))), bad},
		{"9.1.7 rates of an action that has none", nil, insert(t, metered(drop)), bad},
		{"9.1.7 MODIFY to an action that has no rates", there, modify(t, metered(drop)), bad},
		{"9.1.7 rates of the action that stays", there, modify(t, changed(metered(r), func(e *p4v1.TableEntry) { e.Action = nil })), ok},
		{"9.1.7 rates that are wrong", nil, insert(t, changed(r, func(e *p4v1.TableEntry) { e.MeterConfig = &p4v1.MeterConfig{Cir: -1} })), bad},
		{"9.1.7 INSERT with a meter's count of 0", nil, insert(t, cleared(r, 0)), ok},
		{"9.1.7 INSERT with a meter's count", nil, insert(t, cleared(r, 1)), bad},
		{"9.1.7 MODIFY with a meter's count of 0", there, modify(t, cleared(r, 0)), ok},
		{"9.1.7 MODIFY with a meter's count", there, modify(t, cleared(r, 1)), bad},
		{"9.3.1 the count of an entry", there, update(mod, directCounter(keyOf(r), n)), ok},
		{"9.3.1 no count", there, update(mod, directCounter(keyOf(r), nil)), ok},
		{"9.3.1 the count of a missing entry", there, update(mod, directCounter(keyOf(gone), n)), lost},
		{"9.3.1 the count of another table", there, update(mod, directCounter(keyOf(macEntry(t, "\x01")), n)), bad},
		{"9.3.1 the count of no table", there, update(mod, directCounter(nil, n)), bad},
		{"9.3.1 the count of misses", nil, update(mod, directCounter(defaultRoute(t), n)), ok},
		{"9.4.1 the rates of an entry", there, update(mod, directMeter(keyOf(r), rates)), ok},
		{"9.4.1 no rates", there, update(mod, directMeter(keyOf(r), nil)), ok},
		{"9.4.1 the rates of a missing entry", there, update(mod, directMeter(keyOf(gone), rates)), lost},
		{"9.4.1 the rates of another table", there, update(mod, directMeter(keyOf(macEntry(t, "\x01")), rates)), bad},
		{"9.4.1 a negative rate", there, update(mod, directMeter(keyOf(r), &p4v1.MeterConfig{Cir: -1})), bad},
		{"9.4.1 an excess burst", there, update(mod, directMeter(keyOf(r), &p4v1.MeterConfig{Eburst: 1})), bad},
		{"9.4.1 counts of 0", there, update(mod, withCounts(0)), ok},
		{"9.4.1 counts that are not 0", there, update(mod, withCounts(1)), bad},
	} {
		all = append(all, spec{name: c.name, before: c.before, do: c.do, want: c.want})
	}
	fixed := &p4v1.TableEntry{TableId: idOf(t, "AllIngress.routes")}
	return append(all,
		spec{name: "9.3.1 reading the count of an entry", before: there, ask: directCounter(keyOf(r), nil), n: 1},
		spec{name: "9.3.1 reading the count of a missing entry", before: there, ask: directCounter(keyOf(gone), nil), asked: lost},
		spec{name: "9.3.1 reading the counts of a table", before: there, ask: directCounter(fixed, nil), n: 1},
		spec{name: "9.3.1 reading the counts of a table that has none", before: there, ask: directCounter(&p4v1.TableEntry{TableId: idOf(t, "AllIngress.macs")}, nil), asked: bad},
		spec{name: "9.3.1 reading the counts of all tables", before: there, ask: directCounter(&p4v1.TableEntry{}, nil), n: 1},
		spec{name: "9.4.1 reading the rates of an entry", before: there, ask: directMeter(keyOf(r), nil), n: 1},
		spec{name: "9.4.1 reading the rates of a missing entry", before: there, ask: directMeter(keyOf(gone), nil), asked: lost},
		spec{name: "9.4.1 reading the rates of all tables", before: there, ask: directMeter(&p4v1.TableEntry{}, nil), n: 1},
	)
}

// specReplication tests multicast groups and clone sessions.
func specReplication(t testing.TB) []spec {
	group := func(id uint32, list ...*p4v1.Replica) *p4v1.Entity {
		return multicastEntity(&p4v1.MulticastGroupEntry{MulticastGroupId: id, Replicas: list})
	}
	session := func(id uint32, class uint32, length int32, list ...*p4v1.Replica) *p4v1.Entity {
		return cloneEntity(&p4v1.CloneSessionEntry{SessionId: id, ClassOfService: class, PacketLengthBytes: length, Replicas: list})
	}
	one := replica("\x01", 0)
	backup := replica("\x01", 0)
	backup.BackupReplicas = []*p4v1.BackupReplica{{Port: []byte("\x02")}}
	//lint:ignore SA1019 clients that predate port use egress_port
	older := &p4v1.Replica{PortKind: &p4v1.Replica_EgressPort{EgressPort: 1}}
	var all []spec
	for _, c := range []struct {
		name string
		e    *p4v1.Entity
		want codes.Code
	}{
		{"9.5.1 a group", group(1, one, replica("\x02", 0)), ok},
		{"9.5.1 a group of nothing", group(1), ok},
		{"9.5.1 group 0", group(0, one), bad},
		{"9.5.1 the last group", group(maxMulticast, one), ok},
		{"9.5.1 a group behind the last", group(maxMulticast+1, one), bad},
		{"9.5.1 a port twice with different instances", group(1, one, replica("\x01", 1)), ok},
		{"9.5.1 a port twice with one instance", group(1, one, replica("\x01", 0)), bad},
		{"9.5.1 a port twice in two forms", group(1, one, replica("\x00\x01", 0)), bad},
		{"9.5.1 the last port", group(1, replica("\x01\xff", 0)), ok},
		{"9.5.1 a port behind the last", group(1, replica("\x02\x00", 0)), bad},
		{"9.5.1 a port of 8 bytes", group(1, replica("\x01\x00\x00\x00\x00\x00\x00\x01", 0)), bad},
		{"9.5.1 an empty port", group(1, replica("", 0)), bad},
		{"9.5.1 no port", group(1, &p4v1.Replica{Instance: 1}), bad},
		{"9.5.1 a port in the older form", group(1, older), ok},
		{"9.5.1 the last instance", group(1, replica("\x01", maxInstance)), ok},
		{"9.5.1 an instance behind the last", group(1, replica("\x01", maxInstance+1)), bad},
		{"9.5.1 backup replicas are not known here", group(1, backup), codes.Unimplemented},
		{"9.5.2 a session", session(1, 0, 0, one), ok},
		{"9.5.2 session 0", session(0, 0, 0, one), bad},
		{"9.5.2 the last session", session(maxSession, 0, 0, one), ok},
		{"9.5.2 a session behind the last", session(maxSession+1, 0, 0, one), bad},
		{"9.5.2 a session cut to a length", session(1, 0, 64, one), ok},
		{"9.5.2 a negative length", session(1, 0, -1, one), bad},
		{"9.5.2 a class of service that is none", session(1, 9, 0, one), bad},
		{"9.5.2 a session to no port", session(1, 0, 0, &p4v1.Replica{}), bad},
		{"9.5.2 a session to a port twice", session(1, 0, 0, one, replica("\x01", 0)), bad},
		{"9.5 neither group nor session", replicationOf(&p4v1.PacketReplicationEngineEntry{}), bad},
	} {
		all = append(all, spec{name: c.name, do: update(ins, c.e), want: c.want})
	}
	there := []*p4v1.Update{update(ins, group(1, one)), update(ins, group(2)), update(ins, session(5, 0, 0, one))}
	return append(all,
		spec{name: "9.5.1 reading all groups", before: there, ask: group(0), n: 2},
		spec{name: "9.5.1 reading a group", before: there, ask: group(2), n: 1},
		spec{name: "9.5.1 reading a group that is not there", before: there, ask: group(3)},
		spec{name: "9.5.2 reading all sessions", before: there, ask: session(0, 0, 0), n: 1},
		spec{name: "9.5.2 reading a session that is not there", before: there, ask: session(6, 0, 0)},
		spec{name: "9.5 reading neither group nor session", ask: replicationOf(&p4v1.PacketReplicationEngineEntry{}), asked: bad},
	)
}

func replicationOf(m *p4v1.PacketReplicationEngineEntry) *p4v1.Entity {
	return &p4v1.Entity{Entity: &p4v1.Entity_PacketReplicationEngineEntry{PacketReplicationEngineEntry: m}}
}

// specSets tests value sets with two members, and digests.
func specSets(t testing.TB) []spec {
	set := func(id uint32, members ...string) *p4v1.Entity {
		e := &p4v1.ValueSetEntry{ValueSetId: id}
		for _, m := range members {
			e.Members = append(e.Members, &p4v1.ValueSetMember{Match: []*p4v1.FieldMatch{exact(1, m)}})
		}
		return &p4v1.Entity{Entity: &p4v1.Entity_ValueSetEntry{ValueSetEntry: e}}
	}
	digest := func(id uint32, c *p4v1.DigestEntry_Config) *p4v1.Entity {
		return &p4v1.Entity{Entity: &p4v1.Entity_DigestEntry{DigestEntry: &p4v1.DigestEntry{DigestId: id, Config: c}}}
	}
	types, learned := idOf(t, "AllParser.ip_types"), idOf(t, "learned_t")
	var all []spec
	for _, c := range []struct {
		name string
		do   *p4v1.Update
		want codes.Code
	}{
		{"9.6 a value set", update(mod, set(types, "\x01", "\x02")), ok},
		{"9.6 an empty value set", update(mod, set(types)), ok},
		{"9.6 a value set too large", update(mod, set(types, "\x01", "\x02", "\x03")), full},
		{"9.6 a member twice", update(mod, set(types, "\x01", "\x00\x01")), codes.AlreadyExists},
		{"9.6 a member too wide", update(mod, set(types, "\x01\x00\x00")), bad},
		{"9.6 an empty member", update(mod, set(types, "")), bad},
		{"9.6 value set 0", update(mod, set(0, "\x01")), bad},
		{"9.6 a value set that is none", update(mod, set(7, "\x01")), bad},
		{"9.8 a digest", update(ins, digest(learned, &p4v1.DigestEntry_Config{MaxListSize: 1})), ok},
		{"9.8 a digest without configuration", update(ins, digest(learned, nil)), ok},
		{"9.8 digest 0", update(ins, digest(0, nil)), bad},
		{"9.8 a digest that is none", update(ins, digest(7, nil)), bad},
		{"9.8 a negative list size", update(ins, digest(learned, &p4v1.DigestEntry_Config{MaxListSize: -1})), bad},
		{"9.8 a negative timeout", update(ins, digest(learned, &p4v1.DigestEntry_Config{MaxTimeoutNs: -1})), bad},
		{"9.8 a negative wait", update(ins, digest(learned, &p4v1.DigestEntry_Config{AckTimeoutNs: -1})), bad},
	} {
		all = append(all, spec{name: c.name, do: c.do, want: c.want})
	}
	there := []*p4v1.Update{update(mod, set(types, "\x07")), update(ins, digest(learned, nil))}
	return append(all,
		spec{name: "9.6 reading all value sets", before: there, ask: set(0), n: 1},
		spec{name: "9.6 reading a value set that is none", before: there, ask: set(7), asked: bad},
		spec{name: "9.8 reading all digests", before: there, ask: digest(0, nil), n: 1},
		spec{name: "9.8 reading a digest that is off", ask: digest(learned, nil)},
		spec{name: "9.8 reading a digest that is none", ask: digest(7, nil), asked: bad},
	)
}
