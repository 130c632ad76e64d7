package p4rt

import (
	"testing"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
)

const (
	ok     = codes.OK
	bad    = codes.InvalidArgument
	denied = codes.PermissionDenied
	lost   = codes.NotFound
	full   = codes.ResourceExhausted
)

// changed returns a modified copy of an entry.
func changed(e *p4v1.TableEntry, change func(*p4v1.TableEntry)) *p4v1.TableEntry {
	e = proto.Clone(e).(*p4v1.TableEntry)
	change(e)
	return e
}

// specMatches tests the keys of entries.
func specMatches(t testing.TB) []spec {
	ttl := exact(4, "\x40")
	acl := func(match ...*p4v1.FieldMatch) *p4v1.TableEntry { return aclEntry(t, 5, append(match, ttl)...) }
	mac := func(match ...*p4v1.FieldMatch) *p4v1.TableEntry {
		return changed(macEntry(t, "\x01"), func(e *p4v1.TableEntry) { e.Match = match })
	}
	dst, in := exact(1, "\x01"), exact(2, "\x02")
	prefix := func(match ...*p4v1.FieldMatch) *p4v1.TableEntry {
		return changed(route(t, "\x0a\x00\x00\x00", 8, "\x01"), func(e *p4v1.TableEntry) { e.Match = match })
	}
	ranked := func(n int32) *p4v1.TableEntry { return aclEntry(t, n, ttl) }
	with := func(e *p4v1.TableEntry, n int32) *p4v1.TableEntry {
		return changed(e, func(e *p4v1.TableEntry) { e.Priority = n })
	}
	var all []spec
	for _, c := range []struct {
		name string
		e    *p4v1.TableEntry
		want codes.Code
	}{
		{"9.1 a priority of 0 where there must be one", ranked(0), bad},
		{"9.1 a negative priority", ranked(-1), bad},
		{"9.1 the largest priority", ranked(1<<31 - 1), ok},
		{"9.1 the smallest priority", ranked(1), ok},
		{"9.1 a priority of an exact match", with(mac(dst, in), 1), bad},
		{"9.1 a priority of a prefix", with(prefix(lpm(1, "\x0a\x00\x00\x00", 8)), 1), bad},
		{"9.1 table 0", changed(mac(dst, in), func(e *p4v1.TableEntry) { e.TableId = 0 }), bad},
		{"9.1 a table that is none", changed(mac(dst, in), func(e *p4v1.TableEntry) { e.TableId = 5 }), bad},
		{"9.1 an action's id as a table", changed(mac(dst, in), func(e *p4v1.TableEntry) { e.TableId = idOf(t, "AllIngress.drop") }), bad},
		{"9.1 is_const in a write", changed(mac(dst, in), func(e *p4v1.TableEntry) { e.IsConst = true }), bad},
		{"9.1 metadata", changed(mac(dst, in), func(e *p4v1.TableEntry) { e.Metadata = []byte("m") }), ok},
		{"9.1.1 exact fields", mac(dst, in), ok},
		{"9.1.1 exact fields in another order", mac(in, dst), ok},
		{"9.1.1 an exact field left out", mac(dst), bad},
		{"9.1.1 all fields left out", mac(), bad},
		{"9.1.1 a field twice", mac(dst, in, in), bad},
		{"9.1.1 a field twice in place of another", mac(dst, dst), bad},
		{"9.1.1 an unknown field as well", mac(dst, in, exact(9, "\x01")), bad},
		{"9.1.1 field 0", mac(dst, exact(0, "\x01")), bad},
		{"9.1.1 a field without match", mac(dst, &p4v1.FieldMatch{FieldId: 2}), bad},
		{"9.1.1 an exact field by prefix", mac(dst, lpm(2, "\x01", 9)), bad},
		{"9.1.1 an exact field under a mask", mac(dst, ternary(2, "\x01", "\x01")), bad},
		{"9.1.1 an exact field by range", mac(dst, ranged(2, "\x01", "\x02")), bad},
		{"9.1.1 an exact field as optional", mac(dst, optional(2, "\x01")), bad},
		{"9.1.1 prefix 32", prefix(lpm(1, "\x0a\x01\x02\x03", 32)), ok},
		{"9.1.1 prefix 1", prefix(lpm(1, "\x80\x00\x00\x00", 1)), ok},
		{"9.1.1 prefix 0", prefix(lpm(1, "\x00", 0)), bad},
		{"9.1.1 prefix 33", prefix(lpm(1, "\x0a\x00\x00\x00", 33)), bad},
		{"9.1.1 prefix -1", prefix(lpm(1, "\x0a\x00\x00\x00", -1)), bad},
		{"9.1.1 bits behind the prefix", prefix(lpm(1, "\x0a\x00\x00\x01", 8)), bad},
		{"9.1.1 the value 0 with a prefix", prefix(lpm(1, "\x00", 8)), ok},
		{"9.1.1 a prefix left out matches all", prefix(), ok},
		{"9.1.1 a prefix of an empty value", prefix(lpm(1, "", 8)), bad},
		{"9.1.1 a prefix of a value too wide", prefix(lpm(1, "\x01\x00\x00\x00\x00", 8)), bad},
		{"9.1.1 a prefix as exact", prefix(exact(1, "\x0a")), bad},
		{"9.1.1 a prefix under a mask", prefix(ternary(1, "\x0a", "\xff")), bad},
		{"9.1.1 a value under a mask", acl(ternary(1, "\x0a", "\x0f")), ok},
		{"9.1.1 a mask of 0", acl(ternary(1, "\x00", "\x00")), bad},
		{"9.1.1 a value outside the mask", acl(ternary(1, "\x10", "\x0f")), bad},
		{"9.1.1 an empty value under a mask", acl(ternary(1, "", "\x01")), bad},
		{"9.1.1 an empty mask", acl(ternary(1, "\x01", "")), bad},
		{"9.1.1 a mask too wide", acl(ternary(1, "\x01", "\x01\x00\x00\x00\x01")), bad},
		{"9.1.1 a value too wide under a mask", acl(ternary(1, "\x01\x00\x00\x00\x01", "\x01")), bad},
		{"9.1.1 a ternary field as exact", acl(exact(1, "\x01")), bad},
		{"9.1.1 all under the mask", acl(ternary(1, "\x0a\x00\x00\x01", "\xff\xff\xff\xff")), ok},
		{"9.1.1 a range", acl(ranged(2, "\x01", "\x02")), ok},
		{"9.1.1 a range of one", acl(ranged(2, "\x02", "\x02")), ok},
		{"9.1.1 a range that ends before it begins", acl(ranged(2, "\x03", "\x02")), bad},
		{"9.1.1 a range of all", acl(ranged(2, "\x00", "\xff\xff")), bad},
		{"9.1.1 all but one of a range", acl(ranged(2, "\x01", "\xff\xff")), ok},
		{"9.1.1 a range without begin", acl(ranged(2, "", "\x02")), bad},
		{"9.1.1 a range without end", acl(ranged(2, "\x01", "")), bad},
		{"9.1.1 a range too wide", acl(ranged(2, "\x01", "\x01\x00\x00")), bad},
		{"9.1.1 a range as exact", acl(exact(2, "\x01")), bad},
		{"9.1.1 an optional value", acl(optional(3, "\x06")), ok},
		{"9.1.1 an optional value of 0", acl(optional(3, "\x00")), ok},
		{"9.1.1 an empty optional value", acl(optional(3, "")), bad},
		{"9.1.1 an optional value too wide", acl(optional(3, "\x01\x00")), bad},
		{"9.1.1 an optional field as exact", acl(exact(3, "\x06")), bad},
		{"9.1.1 an optional field under a mask", acl(ternary(3, "\x06", "\xff")), bad},
		{"9.1.1 nothing but the exact field", acl(), ok},
		{"9.1.1 all fields", acl(ternary(1, "\x0a", "\xff"), ranged(2, "\x01", "\x09"), optional(3, "\x06")), ok},
		{"8.3 an empty value", mac(dst, exact(2, "")), bad},
		{"8.3 the value 0", mac(dst, exact(2, "\x00")), ok},
		{"8.3 leading zeros", mac(exact(1, "\x00\x00\x00\x01"), in), ok},
		{"8.3 more zeros than there are bytes", mac(exact(1, "\x00\x00\x00\x00\x00\x00\x00\x00\x01"), in), ok},
		{"8.3 the largest value", mac(exact(1, "\xff\xff\xff\xff\xff\xff"), exact(2, "\x01\xff")), ok},
		{"8.3 a bit too many", mac(dst, exact(2, "\x02\x00")), bad},
		{"8.3 a byte too many", mac(exact(1, "\x01\x00\x00\x00\x00\x00\x00"), in), bad},
	} {
		all = append(all, spec{name: c.name, do: insert(t, c.e), want: c.want})
	}
	padded := mac(exact(1, "\x00\x01"), exact(2, "\x00\x00\x02"))
	all = append(all,
		spec{name: "8.3 the same key in another form is there", before: []*p4v1.Update{insert(t, mac(dst, in))}, do: insert(t, padded), want: codes.AlreadyExists},
		spec{name: "8.3 an entry deleted by another form", before: []*p4v1.Update{insert(t, mac(dst, in))}, do: remove(t, padded)},
		spec{name: "8.3 values are read in their shortest form", before: []*p4v1.Update{insert(t, padded)}, run: func(t *testing.T, s *session) {
			got := s.mustRead(1, entityOf(&p4v1.TableEntry{TableId: padded.GetTableId()}))[0].GetTableEntry()
			if !proto.Equal(got, mac(dst, in)) {
				t.Errorf("read %v", got)
			}
		}},
		spec{name: "9.1 a deletion needs no more than the key", before: []*p4v1.Update{insert(t, mac(dst, in))}, do: remove(t, keyOf(mac(dst, in)))},
		spec{name: "9.1 a deletion ignores the action", before: []*p4v1.Update{insert(t, mac(dst, in))},
			do: remove(t, changed(mac(dst, in), func(e *p4v1.TableEntry) { e.Action.GetAction().ActionId = 99 }))},
		spec{name: "9.1 the same match with another priority is another entry", before: []*p4v1.Update{insert(t, ranked(1))}, do: insert(t, ranked(2))},
		spec{name: "9.1 an entry of another priority is not there", before: []*p4v1.Update{insert(t, ranked(1))}, do: remove(t, ranked(2)), want: lost},
		spec{name: "9.1 a table that is full", before: []*p4v1.Update{
			insert(t, macEntry(t, "\x01")), insert(t, macEntry(t, "\x02")), insert(t, macEntry(t, "\x03")), insert(t, macEntry(t, "\x04")),
		}, do: insert(t, macEntry(t, "\x05")), want: full},
		spec{name: "9.1 a full table may be modified", before: []*p4v1.Update{
			insert(t, macEntry(t, "\x01")), insert(t, macEntry(t, "\x02")), insert(t, macEntry(t, "\x03")), insert(t, macEntry(t, "\x04")),
		}, do: modify(t, macEntry(t, "\x04"))},
	)
	return all
}

// specActions tests the actions of entries.
func specActions(t testing.TB) []spec {
	with := func(a *p4v1.TableAction) *p4v1.TableEntry {
		return changed(macEntry(t, "\x01"), func(e *p4v1.TableEntry) { e.Action = a })
	}
	call := func(name string, params ...string) *p4v1.TableEntry {
		return with(tableAction(action(t, name, params...)))
	}
	param := func(id uint32) *p4v1.TableEntry {
		a := action(t, "AllIngress.forward", "\x01")
		a.Params[0].ParamId = id
		return with(tableAction(a))
	}
	var all []spec
	for _, c := range []struct {
		name string
		e    *p4v1.TableEntry
		want codes.Code
	}{
		{"9.1.2 an action with its argument", call("AllIngress.forward", "\x01"), ok},
		{"9.1.2 an argument of 0", call("AllIngress.forward", "\x00"), ok},
		{"9.1.2 the largest argument", call("AllIngress.forward", "\x01\xff"), ok},
		{"9.1.2 an argument too wide", call("AllIngress.forward", "\x02\x00"), bad},
		{"9.1.2 an argument with leading zeros", call("AllIngress.forward", "\x00\x00\x01"), ok},
		{"9.1.2 an empty argument", call("AllIngress.forward", ""), bad},
		{"9.1.2 an argument missing", call("AllIngress.forward"), bad},
		{"9.1.2 an argument too many", call("AllIngress.forward", "\x01", "\x01"), bad},
		{"9.1.2 an argument of another id", param(2), bad},
		{"9.1.2 an argument of id 0", param(0), bad},
		{"9.1.2 an action of another table", call("AllIngress.metered", "\x01"), bad},
		{"9.1.2 an action for entries only", call("AllIngress.drop"), ok},
		{"9.1.2 no action", with(nil), bad},
		{"9.1.2 an empty action", with(&p4v1.TableAction{}), bad},
		{"9.1.2 action 0", with(tableAction(&p4v1.Action{})), bad},
		{"9.1.2 an action that is none", with(tableAction(&p4v1.Action{ActionId: 77})), bad},
		{"9.1.2 a member where there is no profile", with(memberAction(1)), bad},
		{"9.1.2 a group where there is no selector", with(groupAction(1)), bad},
		{"9.1.2 a set where there is no selector", with(actionSet(t, &p4v1.ActionProfileAction{Action: action(t, "AllIngress.drop"), Weight: 1})), bad},
	} {
		all = append(all, spec{name: c.name, do: insert(t, c.e), want: c.want})
	}
	learn := exactEntry(t, "AllIngress.sources", "AllIngress.learn", nil, "\x01")
	return append(all,
		spec{name: "9.1.2 an action for the default entry only", do: insert(t, learn), want: denied},
		spec{name: "9.1.2 MODIFY without action keeps it", before: []*p4v1.Update{insert(t, call("AllIngress.drop"))}, do: modify(t, with(nil))},
		spec{name: "9.1.2 MODIFY to another action", before: []*p4v1.Update{insert(t, call("AllIngress.drop"))}, do: modify(t, call("AllIngress.punt"))},
		spec{name: "9.1.2 MODIFY to an action of another table", before: []*p4v1.Update{insert(t, call("AllIngress.drop"))}, do: modify(t, call("AllIngress.metered", "\x01")), want: bad},
	)
}

// specDefaults tests default entries.
func specDefaults(t testing.TB) []spec {
	def := func(table, act string, params ...string) *p4v1.TableEntry {
		e := &p4v1.TableEntry{TableId: idOf(t, table), IsDefaultAction: true}
		if act != "" {
			e.Action = tableAction(action(t, act, params...))
		}
		return e
	}
	macs := func(act string, params ...string) *p4v1.TableEntry { return def("AllIngress.macs", act, params...) }
	var all []spec
	for _, c := range []struct {
		name string
		e    *p4v1.TableEntry
		want codes.Code
	}{
		{"9.1.3 another default action", macs("AllIngress.forward", "\x01"), ok},
		{"9.1.3 the program's default action", macs(""), ok},
		{"9.1.3 a default action for entries only", macs("AllIngress.drop"), denied},
		{"9.1.3 a default action of another table", macs("AllIngress.metered", "\x01"), bad},
		{"9.1.3 a default action with an argument too wide", macs("AllIngress.forward", "\x02\x00"), bad},
		{"9.1.3 a default entry with a match", changed(macs("AllIngress.punt"), func(e *p4v1.TableEntry) { e.Match = []*p4v1.FieldMatch{exact(1, "\x01")} }), bad},
		{"9.1.3 a default entry with a priority", changed(macs("AllIngress.punt"), func(e *p4v1.TableEntry) { e.Priority = 1 }), bad},
		{"9.1.3 a default action that is constant", def("AllIngress.acl", "AllIngress.drop"), denied},
		{"9.1.3 a constant default action again", def("AllIngress.acl", "NoAction"), denied},
		{"9.1.3 the default action of a table with a profile", def("AllIngress.members", "AllIngress.mark", "\x01"), denied},
		{"9.1.3 the default action of a table without key", def("AllIngress.keyless", "AllIngress.mark", "\x01"), ok},
		{"9.1.3 a default action of a table with constant entries", def("AllIngress.fixed", "AllIngress.mark", "\x01"), ok},
		{"9.1.3 a member as default", changed(macs(""), func(e *p4v1.TableEntry) { e.Action = memberAction(1) }), bad},
		{"9.1.8 a default entry with an idle timeout", changed(def("AllIngress.sources", "NoAction"), func(e *p4v1.TableEntry) { e.IdleTimeoutNs = 1 }), bad},
		{"9.1.3 a default entry of table 0", &p4v1.TableEntry{IsDefaultAction: true}, bad},
	} {
		all = append(all, spec{name: c.name, do: modify(t, c.e), want: c.want})
	}
	return append(all,
		spec{name: "9.1.3 an entry of a table without key", do: insert(t, &p4v1.TableEntry{TableId: idOf(t, "AllIngress.keyless"), Action: tableAction(action(t, "NoAction"))}), want: bad},
		spec{name: "9.1.3 the default entry is read alone", ask: entityOf(macs("")), n: 1},
		spec{name: "9.1.3 no default entry among all", ask: entityOf(&p4v1.TableEntry{TableId: idOf(t, "AllIngress.macs")}), n: 0},
		spec{name: "9.1.3 a default entry is read with a match", ask: entityOf(changed(macs(""), func(e *p4v1.TableEntry) { e.Match = []*p4v1.FieldMatch{exact(1, "\x01")} })), asked: bad},
	)
}

// specConstants tests the const entries of a program. TestPreinitialized tests
// preinitialized tables.
func specConstants(t testing.TB) []spec {
	fixed := func(v, mask string, priority int32) *p4v1.TableEntry {
		e := &p4v1.TableEntry{TableId: idOf(t, "AllIngress.fixed"), Priority: priority}
		if mask != "" {
			e.Match = []*p4v1.FieldMatch{ternary(1, v, mask)}
		}
		return e
	}
	mark := func(e *p4v1.TableEntry) *p4v1.TableEntry {
		return changed(e, func(e *p4v1.TableEntry) { e.Action = tableAction(action(t, "AllIngress.mark", "\x01")) })
	}
	var all []spec
	for _, c := range []struct {
		name string
		do   *p4v1.Update
		want codes.Code
	}{
		{"9.1.4 INSERT into a constant table", insert(t, mark(fixed("\x20", "\xf0", 9))), denied},
		{"9.1.4 INSERT of an existing entry", insert(t, mark(fixed("\x10", "\xf0", 2))), denied},
		{"9.1.4 DELETE of a constant entry", remove(t, fixed("\x10", "\xf0", 2)), denied},
		{"9.1.4 DELETE of a missing entry", remove(t, fixed("\x70", "\xf0", 2)), denied},
		{"9.1.4 MODIFY of the action of a constant entry", modify(t, mark(fixed("\x10", "\xf0", 2))), denied},
		{"9.1.4 MODIFY without action", modify(t, fixed("\x10", "\xf0", 2)), ok},
		{"9.1.4 MODIFY of the entry that matches all", modify(t, fixed("", "", 1)), ok},
		{"9.1.4 MODIFY with another priority", modify(t, fixed("\x10", "\xf0", 7)), lost},
		{"9.1.4 MODIFY with another match", modify(t, fixed("\x30", "\xf0", 2)), lost},
		{"9.1.4 MODIFY with an idle timeout", modify(t, changed(fixed("\x10", "\xf0", 2), func(e *p4v1.TableEntry) { e.IdleTimeoutNs = 1 })), bad},
	} {
		all = append(all, spec{name: c.name, do: c.do, want: c.want})
	}
	readConst := func(t *testing.T, s *session) {
		t.Helper()
		list := s.mustRead(2, entityOf(&p4v1.TableEntry{TableId: idOf(t, "AllIngress.fixed")}))
		for _, e := range list {
			if !e.GetTableEntry().GetIsConst() || e.GetTableEntry().GetAction() == nil || e.GetTableEntry().GetPriority() == 0 {
				t.Errorf("read %v", e)
			}
		}
	}
	touched := changed(fixed("\x10", "\xf0", 2), func(e *p4v1.TableEntry) { e.Metadata = []byte("m") })
	return append(all,
		spec{name: "9.1.4 constant entries are read as such", run: readConst},
		spec{name: "9.1.4 and after a MODIFY", before: []*p4v1.Update{modify(t, touched)}, run: readConst},
		spec{name: "9.1.4 and after a batch that was taken back", run: func(t *testing.T, s *session) {
			if s.writeAs(p4v1.WriteRequest_ROLLBACK_ON_ERROR, modify(t, touched), remove(t, macEntry(t, "\x09"))) == nil {
				t.Error("a batch that must fail is done")
			}
			readConst(t, s)
		}},
		spec{name: "14 constant entries stand RECONCILE_AND_COMMIT", before: []*p4v1.Update{modify(t, touched)}, run: func(t *testing.T, s *session) {
			s.must(s.configure(p4v1.SetForwardingPipelineConfigRequest_RECONCILE_AND_COMMIT, nextConfig(t)))
			readConst(t, s)
			if got := s.mustRead(1, entityOf(fixed("\x10", "\xf0", 2)))[0].GetTableEntry(); string(got.GetMetadata()) != "m" {
				t.Errorf("read %v", got)
			}
		}},
	)
}

// specReads tests wildcard reads of tables.
func specReads(t testing.TB) []spec {
	cookie := func(e *p4v1.TableEntry, m string) *p4v1.TableEntry {
		return changed(e, func(e *p4v1.TableEntry) { e.Metadata = []byte(m) })
	}
	before := []*p4v1.Update{
		insert(t, cookie(macEntry(t, "\x01"), "a")), insert(t, cookie(macEntry(t, "\x02"), "b")),
		insert(t, changed(macEntry(t, "\x03"), func(e *p4v1.TableEntry) { e.Action = tableAction(action(t, "AllIngress.drop")) })),
		insert(t, aclEntry(t, 1, exact(4, "\x01"))), insert(t, aclEntry(t, 2, exact(4, "\x01"))), insert(t, aclEntry(t, 2, exact(4, "\x02"))),
	}
	macs, acl := idOf(t, "AllIngress.macs"), idOf(t, "AllIngress.acl")
	match := macEntry(t, "\x01").GetMatch()
	var all []spec
	for _, c := range []struct {
		name string
		m    *p4v1.TableEntry
		n    int
		code codes.Code
	}{
		{"all tables", &p4v1.TableEntry{}, 8, ok},
		{"a table", &p4v1.TableEntry{TableId: macs}, 3, ok},
		{"a table that is none", &p4v1.TableEntry{TableId: 5}, 0, bad},
		{"an entry", &p4v1.TableEntry{TableId: macs, Match: match}, 1, ok},
		{"an entry that is not there", &p4v1.TableEntry{TableId: macs, Match: macEntry(t, "\x09").GetMatch()}, 0, ok},
		{"an entry with another cookie", &p4v1.TableEntry{TableId: macs, Match: match, Metadata: []byte("b")}, 0, ok},
		{"a cookie", &p4v1.TableEntry{TableId: macs, Metadata: []byte("b")}, 1, ok},
		{"an action", &p4v1.TableEntry{TableId: macs, Action: tableAction(action(t, "AllIngress.drop"))}, 1, ok},
		{"an action that is none", &p4v1.TableEntry{TableId: macs, Action: tableAction(&p4v1.Action{ActionId: 77})}, 0, ok},
		{"a priority", &p4v1.TableEntry{TableId: acl, Priority: 2}, 2, ok},
		{"a priority that none has", &p4v1.TableEntry{TableId: acl, Priority: 7}, 0, ok},
		{"a match with any priority", &p4v1.TableEntry{TableId: acl, Match: []*p4v1.FieldMatch{exact(4, "\x01")}}, 2, ok},
		{"a match and a priority", &p4v1.TableEntry{TableId: acl, Priority: 2, Match: []*p4v1.FieldMatch{exact(4, "\x01")}}, 1, ok},
		{"a match that is no key", &p4v1.TableEntry{TableId: macs, Match: []*p4v1.FieldMatch{exact(7, "\x01")}}, 0, bad},
		{"a match too wide", &p4v1.TableEntry{TableId: macs, Match: []*p4v1.FieldMatch{exact(1, "\x01"), exact(2, "\x02\x00")}}, 0, bad},
		{"the default entry", &p4v1.TableEntry{TableId: macs, IsDefaultAction: true}, 1, ok},
		{"all default entries", &p4v1.TableEntry{IsDefaultAction: true}, 8, ok},
		{"a counter where there is none", &p4v1.TableEntry{TableId: macs, CounterData: &p4v1.CounterData{}}, 0, bad},
		{"a meter where there is none", &p4v1.TableEntry{TableId: macs, MeterConfig: &p4v1.MeterConfig{}}, 0, bad},
		{"a meter's counters where there is none", &p4v1.TableEntry{TableId: macs, MeterCounterData: &p4v1.MeterCounterData{}}, 0, bad},
		{"a timeout where there is none", &p4v1.TableEntry{TableId: macs, TimeSinceLastHit: &p4v1.TableEntry_IdleTimeout{}}, 0, bad},
		{"counters of all tables", &p4v1.TableEntry{CounterData: &p4v1.CounterData{}}, 8, ok},
		{"a counter where there is one", &p4v1.TableEntry{TableId: idOf(t, "AllIngress.routes"), CounterData: &p4v1.CounterData{}}, 0, ok},
	} {
		all = append(all, spec{name: "9.1.6 reading " + c.name, before: before, ask: entityOf(c.m), n: c.n, asked: c.code})
	}
	return append(all,
		spec{name: "13.2 an empty entity", ask: &p4v1.Entity{}, asked: bad},
		spec{name: "13.3 the good requests of a batch are answered", before: before, run: func(t *testing.T, s *session) {
			list, err := s.read(entityOf(&p4v1.TableEntry{TableId: macs}), entityOf(&p4v1.TableEntry{TableId: 5}), &p4v1.Entity{}, entityOf(&p4v1.TableEntry{TableId: acl}))
			got := updateCodes(err)
			if len(list) != 6 || len(got) != 4 || got[0] != ok || got[1] != bad || got[2] != bad || got[3] != ok {
				t.Errorf("%d entities, %v", len(list), err)
			}
		}},
		spec{name: "9.1.8 an idle timeout where there is none", do: insert(t, changed(macEntry(t, "\x01"), func(e *p4v1.TableEntry) { e.IdleTimeoutNs = 1 })), want: bad},
		spec{name: "9.1.8 a negative idle timeout", do: insert(t, changed(exactEntry(t, "AllIngress.sources", "NoAction", nil, "\x01"), func(e *p4v1.TableEntry) { e.IdleTimeoutNs = -1 })), want: bad},
		spec{name: "9.1.8 an idle timeout", do: insert(t, changed(exactEntry(t, "AllIngress.sources", "NoAction", nil, "\x01"), func(e *p4v1.TableEntry) { e.IdleTimeoutNs = 1e12 }))},
		spec{name: "9.1.8 time_since_last_hit in a write", do: insert(t, changed(exactEntry(t, "AllIngress.sources", "NoAction", nil, "\x01"), func(e *p4v1.TableEntry) { e.TimeSinceLastHit = &p4v1.TableEntry_IdleTimeout{} })), want: bad},
	)
}
