package p4rt

import (
	"slices"
	"testing"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

func macEntry(t testing.TB, mac string) *p4v1.TableEntry {
	t.Helper()
	return exactEntry(t, "AllIngress.macs", "AllIngress.forward", []string{"\x01"}, mac, "\x02")
}

// TestContinueOnError: the server attempts each update, and the details contain
// one error per update, in order.
func TestContinueOnError(t *testing.T) {
	s := configured(t)
	err := s.write(
		insert(t, macEntry(t, "\x01")),
		insert(t, macEntry(t, "\x01")),
		insert(t, macEntry(t, "\x02")),
		remove(t, macEntry(t, "\x03")),
	)
	if codeOfRPC(err) != codes.Unknown {
		t.Errorf("got %v, want UNKNOWN", err)
	}
	want := []codes.Code{codes.OK, codes.AlreadyExists, codes.OK, codes.NotFound}
	if got := updateCodes(err); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	for _, d := range status.Convert(err).Details() {
		if e := d.(*p4v1.Error); (e.GetCanonicalCode() == 0) != (e.GetMessage() == "") {
			t.Errorf("code %d with message %q", e.GetCanonicalCode(), e.GetMessage())
		}
	}
	s.mustRead(2, entityOf(&p4v1.TableEntry{TableId: idOf(t, "AllIngress.macs")}))
}

// TestAllOrNone fills the switch with one entity of each kind. Then batches
// that change all of them fail at the last update: the state must be unchanged.
func TestAllOrNone(t *testing.T) {
	for _, a := range []p4v1.WriteRequest_Atomicity{p4v1.WriteRequest_ROLLBACK_ON_ERROR, p4v1.WriteRequest_DATAPLANE_ATOMIC} {
		t.Run(a.String(), func(t *testing.T) {
			s := configured(t)
			s.must(s.writeAs(a, oneOfEach(t, p4v1.Update_INSERT)...))
			before, err := s.read(everything()...)
			s.must(err)
			bad := remove(t, macEntry(t, "\x77"))

			for name, batch := range map[string][]*p4v1.Update{
				"change": oneOfEach(t, p4v1.Update_MODIFY),
				"delete": backwards(oneOfEach(t, p4v1.Update_DELETE)),
				"again":  append(backwards(oneOfEach(t, p4v1.Update_DELETE)), oneOfEach(t, p4v1.Update_INSERT)...),
				"insert": {insert(t, macEntry(t, "\x55")), insert(t, route(t, "\x0b\x00\x00\x00", 8, "\x01"))},
			} {
				err := s.writeAs(a, append(batch, bad)...)
				got := updateCodes(err)
				if len(got) != len(batch)+1 || got[len(batch)] != codes.NotFound {
					t.Fatalf("%s: got %s", name, describe(err))
				}
				for _, c := range got[:len(batch)] {
					if c != codes.Aborted {
						t.Errorf("%s: a valid update has code %v, want ABORTED", name, c)
					}
				}
				after, err := s.read(everything()...)
				s.must(err)
				wantSame(t, before, after)
			}
			s.must(s.writeAs(a, backwards(oneOfEach(t, p4v1.Update_DELETE))...))
		})
	}
}

func backwards(list []*p4v1.Update) []*p4v1.Update {
	slices.Reverse(list)
	return list
}

// oneOfEach returns an update of one entity of each kind, in an order in which
// they can be inserted. A deletion omits objects that always exist.
func oneOfEach(t testing.TB, typ p4v1.Update_Type) []*p4v1.Update {
	t.Helper()
	port := "\x01"
	if typ == p4v1.Update_MODIFY {
		port = "\x02"
	}
	forward := action(t, "AllIngress.forward", port)
	r := route(t, "\x0a\x00\x00\x00", 8, port)
	r.MeterConfig = &p4v1.MeterConfig{Cir: 10, Cburst: 20, Pir: 30, Pburst: int64(port[0])}
	r.CounterData = &p4v1.CounterData{PacketCount: 3, ByteCount: int64(port[0])}
	oneShot := exactEntry(t, "AllIngress.groups", "", nil, "\x01")
	oneShot.Action = &p4v1.TableAction{Type: &p4v1.TableAction_ActionProfileActionSet{ActionProfileActionSet: &p4v1.ActionProfileActionSet{
		ActionProfileActions: []*p4v1.ActionProfileAction{{Action: forward, Weight: 2}, {Action: action(t, "AllIngress.drop"), Weight: 1}},
	}}}
	member := exactEntry(t, "AllIngress.members", "", nil, "\x06")
	member.Action = memberAction(1)
	e := exactEntry(t, "AllIngress.macs", "AllIngress.forward", []string{port}, "\x01", "\x02")
	list := []*p4v1.Entity{
		{Entity: &p4v1.Entity_ActionProfileMember{ActionProfileMember: &p4v1.ActionProfileMember{
			ActionProfileId: idOf(t, "AllIngress.plain"), MemberId: 1, Action: forward,
		}}},
		entityOf(member), entityOf(oneShot), entityOf(r), entityOf(e),
		multicastEntity(&p4v1.MulticastGroupEntry{MulticastGroupId: 1, Replicas: []*p4v1.Replica{replica(port, 1), replica("\x03", 1)}}),
		cloneEntity(&p4v1.CloneSessionEntry{SessionId: 9, Replicas: []*p4v1.Replica{replica(port, 0)}}),
		{Entity: &p4v1.Entity_DigestEntry{DigestEntry: &p4v1.DigestEntry{
			DigestId: idOf(t, "learned_t"), Config: &p4v1.DigestEntry_Config{MaxListSize: int32(port[0])},
		}}},
	}
	var updates []*p4v1.Update
	for _, x := range list {
		updates = append(updates, &p4v1.Update{Type: typ, Entity: x})
	}
	if typ == p4v1.Update_MODIFY {
		for _, x := range always(t, port) {
			updates = append(updates, &p4v1.Update{Type: typ, Entity: x})
		}
	}
	return updates
}

// always returns entities that can only be modified.
func always(t testing.TB, port string) []*p4v1.Entity {
	n := int64(port[0])
	return []*p4v1.Entity{
		entityOf(&p4v1.TableEntry{TableId: idOf(t, "AllIngress.keyless"), IsDefaultAction: true, Action: tableAction(action(t, "AllIngress.mark", "\x09"))}),
		{Entity: &p4v1.Entity_CounterEntry{CounterEntry: &p4v1.CounterEntry{
			CounterId: idOf(t, "AllIngress.seen"), Index: &p4v1.Index{Index: 3}, Data: &p4v1.CounterData{PacketCount: n, ByteCount: 64 * n},
		}}},
		{Entity: &p4v1.Entity_DirectCounterEntry{DirectCounterEntry: &p4v1.DirectCounterEntry{
			TableEntry: keyOf(route(t, "\x0a\x00\x00\x00", 8, port)), Data: &p4v1.CounterData{PacketCount: 99},
		}}},
		{Entity: &p4v1.Entity_MeterEntry{MeterEntry: &p4v1.MeterEntry{
			MeterId: idOf(t, "AllIngress.limit"), Config: &p4v1.MeterConfig{Cir: n, Cburst: 1, Pir: n + 1, Pburst: 1},
		}}},
		{Entity: &p4v1.Entity_DirectMeterEntry{DirectMeterEntry: &p4v1.DirectMeterEntry{
			TableEntry: keyOf(route(t, "\x0a\x00\x00\x00", 8, port)), Config: &p4v1.MeterConfig{Cir: 1, Cburst: 1, Pir: 1, Pburst: 1},
		}}},
		{Entity: &p4v1.Entity_ValueSetEntry{ValueSetEntry: &p4v1.ValueSetEntry{
			ValueSetId: idOf(t, "AllParser.ip_types"), Members: []*p4v1.ValueSetMember{{Match: []*p4v1.FieldMatch{exact(1, "\x88"+port)}}},
		}}},
		registerEntity(t, "AllIngress.sizes", 5, &p4v1.P4Data{Data: &p4v1.P4Data_Bitstring{Bitstring: []byte(port)}}),
	}
}

func registerEntity(t testing.TB, name string, index int64, data *p4v1.P4Data) *p4v1.Entity {
	t.Helper()
	e := &p4v1.RegisterEntry{RegisterId: idOf(t, name), Data: data}
	if index >= 0 {
		e.Index = &p4v1.Index{Index: index}
	}
	return &p4v1.Entity{Entity: &p4v1.Entity_RegisterEntry{RegisterEntry: e}}
}

func replica(port string, instance uint32) *p4v1.Replica {
	return &p4v1.Replica{PortKind: &p4v1.Replica_Port{Port: []byte(port)}, Instance: instance}
}

// TestModifyKeepsResources: a modified entry keeps its counter unless the
// update sets it, and loses its meter configuration unless the update repeats
// it.
func TestModifyKeepsResources(t *testing.T) {
	s := configured(t)
	r := route(t, "\x0a\x00\x00\x00", 8, "\x01")
	r.CounterData = &p4v1.CounterData{PacketCount: 5, ByteCount: 6}
	r.MeterConfig = &p4v1.MeterConfig{Cir: 1, Cburst: 2, Pir: 3, Pburst: 4}
	s.must(s.write(insert(t, r)))
	filter := entityOf(&p4v1.TableEntry{TableId: r.TableId, CounterData: &p4v1.CounterData{}, MeterConfig: &p4v1.MeterConfig{}})
	if got := s.mustRead(1, filter)[0].GetTableEntry(); !proto.Equal(got, r) {
		t.Errorf("got %v, want %v", got, r)
	}
	next := keyOf(r)
	next.Metadata = []byte("new")
	s.must(s.write(modify(t, next)))
	got := s.mustRead(1, filter)[0].GetTableEntry()
	if !proto.Equal(got.GetAction(), r.GetAction()) || !proto.Equal(got.GetCounterData(), r.GetCounterData()) {
		t.Errorf("the action or the counter is gone: %v", got)
	}
	if got.GetMeterConfig() != nil || string(got.GetMetadata()) != "new" {
		t.Errorf("the meter is still there or the metadata is not: %v", got)
	}
}

func TestTableFull(t *testing.T) {
	s := configured(t)
	for i := range 4 { // the size of the table macs
		s.must(s.write(insert(t, macEntry(t, string(rune('a'+i))))))
	}
	s.wantWrite(codes.ResourceExhausted, insert(t, macEntry(t, "z")))
	s.wantWrite(codes.OK, remove(t, macEntry(t, "a")))
	s.wantWrite(codes.OK, insert(t, macEntry(t, "z")))
}
