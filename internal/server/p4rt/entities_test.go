package p4rt

import (
	"testing"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

func codeOfRPC(err error) codes.Code { return status.Code(err) }

func testInfo(t testing.TB) *info {
	t.Helper()
	in, err := newInfo(testConfig(t).GetP4Info())
	if err != nil {
		t.Fatal(err)
	}
	return in
}

// idOf returns the id of an object of testdata/all.p4.
func idOf(t testing.TB, name string) uint32 {
	t.Helper()
	for _, p := range preambles(testConfig(t).GetP4Info()) {
		if p.GetName() == name {
			return p.GetId()
		}
	}
	t.Fatalf("there is no %s in the program", name)
	return 0
}

func action(t testing.TB, name string, params ...string) *p4v1.Action {
	t.Helper()
	a := &p4v1.Action{ActionId: idOf(t, name)}
	for i, p := range params {
		a.Params = append(a.Params, &p4v1.Action_Param{ParamId: uint32(i + 1), Value: []byte(p)})
	}
	return a
}

func tableAction(a *p4v1.Action) *p4v1.TableAction {
	return &p4v1.TableAction{Type: &p4v1.TableAction_Action{Action: a}}
}

func exact(id uint32, v string) *p4v1.FieldMatch {
	return &p4v1.FieldMatch{FieldId: id, FieldMatchType: &p4v1.FieldMatch_Exact_{Exact: &p4v1.FieldMatch_Exact{Value: []byte(v)}}}
}

func lpm(id uint32, v string, n int32) *p4v1.FieldMatch {
	return &p4v1.FieldMatch{FieldId: id, FieldMatchType: &p4v1.FieldMatch_Lpm{Lpm: &p4v1.FieldMatch_LPM{Value: []byte(v), PrefixLen: n}}}
}

func ternary(id uint32, v, mask string) *p4v1.FieldMatch {
	return &p4v1.FieldMatch{FieldId: id, FieldMatchType: &p4v1.FieldMatch_Ternary_{Ternary: &p4v1.FieldMatch_Ternary{Value: []byte(v), Mask: []byte(mask)}}}
}

func ranged(id uint32, low, high string) *p4v1.FieldMatch {
	return &p4v1.FieldMatch{FieldId: id, FieldMatchType: &p4v1.FieldMatch_Range_{Range: &p4v1.FieldMatch_Range{Low: []byte(low), High: []byte(high)}}}
}

func optional(id uint32, v string) *p4v1.FieldMatch {
	return &p4v1.FieldMatch{FieldId: id, FieldMatchType: &p4v1.FieldMatch_Optional_{Optional: &p4v1.FieldMatch_Optional{Value: []byte(v)}}}
}

// exactEntry returns an entry of a table with exact matches or without key.
func exactEntry(t testing.TB, table, act string, params []string, values ...string) *p4v1.TableEntry {
	t.Helper()
	e := &p4v1.TableEntry{TableId: idOf(t, table)}
	for i, v := range values {
		e.Match = append(e.Match, exact(uint32(i+1), v))
	}
	if act != "" {
		e.Action = tableAction(action(t, act, params...))
	}
	return e
}

func insert(t testing.TB, e *p4v1.TableEntry) *p4v1.Update {
	t.Helper()
	return &p4v1.Update{Type: p4v1.Update_INSERT, Entity: entityOf(e)}
}

func modify(t testing.TB, e *p4v1.TableEntry) *p4v1.Update {
	t.Helper()
	return &p4v1.Update{Type: p4v1.Update_MODIFY, Entity: entityOf(e)}
}

func remove(t testing.TB, e *p4v1.TableEntry) *p4v1.Update {
	t.Helper()
	return &p4v1.Update{Type: p4v1.Update_DELETE, Entity: entityOf(e)}
}

func aclEntry(t testing.TB, priority int32, match ...*p4v1.FieldMatch) *p4v1.TableEntry {
	t.Helper()
	return &p4v1.TableEntry{TableId: idOf(t, "AllIngress.acl"), Match: match, Priority: priority, Action: tableAction(action(t, "AllIngress.drop"))}
}

func route(t testing.TB, prefix string, n int32, port string) *p4v1.TableEntry {
	t.Helper()
	return &p4v1.TableEntry{
		TableId: idOf(t, "AllIngress.routes"), Match: []*p4v1.FieldMatch{lpm(1, prefix, n)},
		Action: tableAction(action(t, "AllIngress.metered", port)),
	}
}

// TestReadBack writes one entry per kind of match and reads it back unchanged,
// or in canonical form.
func TestReadBack(t *testing.T) {
	s := configured(t)
	ttl := exact(4, "\x40")
	for name, c := range map[string]struct{ in, want *p4v1.TableEntry }{
		"exact":     {in: exactEntry(t, "AllIngress.macs", "AllIngress.forward", []string{"\x01\xff"}, "\x01\x02\x03\x04\x05\x06", "\x00")},
		"padded":    {in: exactEntry(t, "AllIngress.macs", "AllIngress.forward", []string{"\x00\x07"}, "\x00\x00\x09", "\x00\x01"), want: exactEntry(t, "AllIngress.macs", "AllIngress.forward", []string{"\x07"}, "\x09", "\x01")},
		"lpm":       {in: route(t, "\x0a\x00\x00\x00", 8, "\x05")},
		"lpm any":   {in: &p4v1.TableEntry{TableId: idOf(t, "AllIngress.routes"), Action: tableAction(action(t, "AllIngress.drop"))}},
		"ternary":   {in: aclEntry(t, 1, ternary(1, "\x0a\x00\x00\x01", "\xff\x00\x00\xff"), ttl)},
		"range":     {in: aclEntry(t, 2, ranged(2, "\x40", "\x05\xdc"), ttl)},
		"optional":  {in: aclEntry(t, 3, optional(3, "\x06"), ttl)},
		"all three": {in: aclEntry(t, 4, ternary(1, "\x01", "\x01"), ranged(2, "\x00", "\x01"), optional(3, "\x11"), ttl)},
		"metadata": {in: &p4v1.TableEntry{
			TableId: idOf(t, "AllIngress.sources"), Match: []*p4v1.FieldMatch{exact(1, "\x0f")}, Metadata: []byte("cookie"),
			IdleTimeoutNs: 1e12, Action: tableAction(action(t, "NoAction")),
		}},
	} {
		t.Run(name, func(t *testing.T) {
			want := c.want
			if want == nil {
				want = proto.Clone(c.in).(*p4v1.TableEntry)
			}
			s.must(s.write(insert(t, c.in)))
			filter := &p4v1.TableEntry{TableId: want.TableId, Match: want.Match, Priority: want.Priority}
			got := s.mustRead(1, entityOf(filter))[0].GetTableEntry()
			if !proto.Equal(got, want) {
				t.Errorf("read back\n%v\nwant\n%v", got, want)
			}
			s.wantWrite(codes.AlreadyExists, insert(t, c.in))
			s.must(s.write(remove(t, filter)))
			s.wantWrite(codes.NotFound, remove(t, filter))
		})
	}
}

func TestBadEntries(t *testing.T) {
	s := configured(t)
	ttl := exact(4, "\x40")
	ok := exactEntry(t, "AllIngress.macs", "AllIngress.forward", []string{"\x01"}, "\x01", "\x02")
	with := func(change func(*p4v1.TableEntry)) *p4v1.TableEntry {
		e := proto.Clone(ok).(*p4v1.TableEntry)
		change(e)
		return e
	}
	fixed := &p4v1.TableEntry{TableId: idOf(t, "AllIngress.fixed"), Match: []*p4v1.FieldMatch{ternary(1, "\x10", "\xf0")}, Priority: 2}
	for name, c := range map[string]struct {
		u    *p4v1.Update
		code codes.Code
	}{
		"no such table":        {insert(t, with(func(e *p4v1.TableEntry) { e.TableId = 0x02ffffff })), codes.InvalidArgument},
		"table 0":              {insert(t, with(func(e *p4v1.TableEntry) { e.TableId = 0 })), codes.InvalidArgument},
		"type":                 {&p4v1.Update{Entity: entityOf(ok)}, codes.InvalidArgument},
		"no entity":            {&p4v1.Update{Type: p4v1.Update_INSERT}, codes.InvalidArgument},
		"empty entity":         {&p4v1.Update{Type: p4v1.Update_INSERT, Entity: &p4v1.Entity{}}, codes.InvalidArgument},
		"extern":               {&p4v1.Update{Type: p4v1.Update_INSERT, Entity: &p4v1.Entity{Entity: &p4v1.Entity_ExternEntry{ExternEntry: &p4v1.ExternEntry{}}}}, codes.Unimplemented},
		"is_const":             {insert(t, with(func(e *p4v1.TableEntry) { e.IsConst = true })), codes.InvalidArgument},
		"exact missing":        {insert(t, with(func(e *p4v1.TableEntry) { e.Match = e.Match[:1] })), codes.InvalidArgument},
		"field twice":          {insert(t, with(func(e *p4v1.TableEntry) { e.Match = append(e.Match, e.Match[0]) })), codes.InvalidArgument},
		"field unknown":        {insert(t, with(func(e *p4v1.TableEntry) { e.Match = append(e.Match, exact(9, "\x01")) })), codes.InvalidArgument},
		"wrong kind":           {insert(t, with(func(e *p4v1.TableEntry) { e.Match[0] = ternary(1, "\x01", "\x01") })), codes.InvalidArgument},
		"match of nothing":     {insert(t, with(func(e *p4v1.TableEntry) { e.Match[0] = &p4v1.FieldMatch{FieldId: 1} })), codes.InvalidArgument},
		"empty value":          {insert(t, with(func(e *p4v1.TableEntry) { e.Match[0] = exact(1, "") })), codes.InvalidArgument},
		"wide value":           {insert(t, with(func(e *p4v1.TableEntry) { e.Match[1] = exact(2, "\x02\x00") })), codes.InvalidArgument},
		"priority without":     {insert(t, with(func(e *p4v1.TableEntry) { e.Priority = 1 })), codes.InvalidArgument},
		"no priority":          {insert(t, aclEntry(t, 0, ttl)), codes.InvalidArgument},
		"negative priority":    {insert(t, aclEntry(t, -1, ttl)), codes.InvalidArgument},
		"lpm of 0":             {insert(t, route(t, "\x00", 0, "\x01")), codes.InvalidArgument},
		"lpm of 33":            {insert(t, route(t, "\x00", 33, "\x01")), codes.InvalidArgument},
		"lpm with bits behind": {insert(t, route(t, "\x0a\x00\x00\x01", 8, "\x01")), codes.InvalidArgument},
		"mask of 0":            {insert(t, aclEntry(t, 1, ternary(1, "\x00", "\x00"), ttl)), codes.InvalidArgument},
		"bits outside mask":    {insert(t, aclEntry(t, 1, ternary(1, "\x03", "\x01"), ttl)), codes.InvalidArgument},
		"range upside down":    {insert(t, aclEntry(t, 1, ranged(2, "\x02", "\x01"), ttl)), codes.InvalidArgument},
		"range of everything":  {insert(t, aclEntry(t, 1, ranged(2, "\x00", "\xff\xff"), ttl)), codes.InvalidArgument},
		"no action":            {insert(t, with(func(e *p4v1.TableEntry) { e.Action = nil })), codes.InvalidArgument},
		"action 0":             {insert(t, with(func(e *p4v1.TableEntry) { e.GetAction().GetAction().ActionId = 0 })), codes.InvalidArgument},
		"another's action":     {insert(t, with(func(e *p4v1.TableEntry) { e.Action = tableAction(action(t, "AllIngress.mark", "\x01")) })), codes.InvalidArgument},
		"parameter missing":    {insert(t, with(func(e *p4v1.TableEntry) { e.Action = tableAction(action(t, "AllIngress.forward")) })), codes.InvalidArgument},
		"parameter twice":      {insert(t, with(func(e *p4v1.TableEntry) { e.Action = tableAction(action(t, "AllIngress.forward", "\x01", "\x01")) })), codes.InvalidArgument},
		"wide parameter":       {insert(t, with(func(e *p4v1.TableEntry) { e.Action = tableAction(action(t, "AllIngress.forward", "\x02\x00")) })), codes.InvalidArgument},
		"default only":         {insert(t, exactEntry(t, "AllIngress.sources", "AllIngress.learn", nil, "\x01")), codes.PermissionDenied},
		"table only":           {modify(t, &p4v1.TableEntry{TableId: ok.TableId, IsDefaultAction: true, Action: tableAction(action(t, "AllIngress.drop"))}), codes.PermissionDenied},
		"member in direct":     {insert(t, with(func(e *p4v1.TableEntry) { e.Action = memberAction(1) })), codes.InvalidArgument},
		"no idle timeout":      {insert(t, with(func(e *p4v1.TableEntry) { e.IdleTimeoutNs = 1 })), codes.InvalidArgument},
		"no counter":           {insert(t, with(func(e *p4v1.TableEntry) { e.CounterData = &p4v1.CounterData{} })), codes.InvalidArgument},
		"no meter":             {insert(t, with(func(e *p4v1.TableEntry) { e.MeterConfig = &p4v1.MeterConfig{} })), codes.InvalidArgument},
		"meter counters":       {insert(t, with(func(e *p4v1.TableEntry) { e.MeterCounterData = &p4v1.MeterCounterData{} })), codes.InvalidArgument},
		"keyless":              {insert(t, &p4v1.TableEntry{TableId: idOf(t, "AllIngress.keyless"), Action: tableAction(action(t, "AllIngress.mark", "\x01"))}), codes.InvalidArgument},
		"modify nothing":       {modify(t, ok), codes.NotFound},
		"delete nothing":       {remove(t, ok), codes.NotFound},
		"insert default":       {insert(t, &p4v1.TableEntry{TableId: ok.TableId, IsDefaultAction: true}), codes.InvalidArgument},
		"delete default":       {remove(t, &p4v1.TableEntry{TableId: ok.TableId, IsDefaultAction: true}), codes.InvalidArgument},
		"default with match":   {modify(t, &p4v1.TableEntry{TableId: ok.TableId, IsDefaultAction: true, Match: ok.Match}), codes.InvalidArgument},
		"default that expires": {modify(t, &p4v1.TableEntry{TableId: idOf(t, "AllIngress.sources"), IsDefaultAction: true, IdleTimeoutNs: 1}), codes.InvalidArgument},
		"const default":        {modify(t, &p4v1.TableEntry{TableId: idOf(t, "AllIngress.acl"), IsDefaultAction: true}), codes.PermissionDenied},
		"insert const":         {insert(t, &p4v1.TableEntry{TableId: fixed.TableId, Match: fixed.Match, Priority: 9, Action: tableAction(action(t, "NoAction"))}), codes.PermissionDenied},
		"delete const":         {remove(t, fixed), codes.PermissionDenied},
		"modify const":         {modify(t, &p4v1.TableEntry{TableId: fixed.TableId, Match: fixed.Match, Priority: 2, Action: tableAction(action(t, "NoAction"))}), codes.PermissionDenied},
	} {
		t.Run(name, func(t *testing.T) {
			before, err := s.read(everything()...)
			s.must(err)
			s.t = t
			s.wantWrite(c.code, c.u)
			after, err := s.read(everything()...)
			s.must(err)
			wantSame(t, before, after)
		})
	}
}

// everything returns a request for all entities.
func everything() []*p4v1.Entity {
	return []*p4v1.Entity{
		entityOf(&p4v1.TableEntry{MeterConfig: &p4v1.MeterConfig{}, CounterData: &p4v1.CounterData{}}),
		entityOf(&p4v1.TableEntry{IsDefaultAction: true}),
		{Entity: &p4v1.Entity_ActionProfileMember{ActionProfileMember: &p4v1.ActionProfileMember{}}},
		{Entity: &p4v1.Entity_ActionProfileGroup{ActionProfileGroup: &p4v1.ActionProfileGroup{}}},
		{Entity: &p4v1.Entity_CounterEntry{CounterEntry: &p4v1.CounterEntry{}}},
		{Entity: &p4v1.Entity_MeterEntry{MeterEntry: &p4v1.MeterEntry{}}},
		{Entity: &p4v1.Entity_ValueSetEntry{ValueSetEntry: &p4v1.ValueSetEntry{}}},
		{Entity: &p4v1.Entity_DigestEntry{DigestEntry: &p4v1.DigestEntry{}}},
		multicastEntity(&p4v1.MulticastGroupEntry{}),
		cloneEntity(&p4v1.CloneSessionEntry{}),
	}
}

func wantSame(t testing.TB, before, after []*p4v1.Entity) {
	t.Helper()
	seen := map[string]int{}
	for _, e := range before {
		seen[text(e)]++
	}
	for _, e := range after {
		if seen[text(e)]--; seen[text(e)] < 0 {
			t.Errorf("afterwards there is %v", e)
		}
	}
	for e, n := range seen {
		if n > 0 {
			t.Errorf("afterwards there is no %s", e)
		}
	}
}

func text(e *p4v1.Entity) string {
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(e)
	if err != nil {
		panic(err)
	}
	return string(b)
}

func memberAction(id uint32) *p4v1.TableAction {
	return &p4v1.TableAction{Type: &p4v1.TableAction_ActionProfileMemberId{ActionProfileMemberId: id}}
}

func groupAction(id uint32) *p4v1.TableAction {
	return &p4v1.TableAction{Type: &p4v1.TableAction_ActionProfileGroupId{ActionProfileGroupId: id}}
}
