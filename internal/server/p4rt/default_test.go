package p4rt

import (
	"testing"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
)

func defaultRoute(t testing.TB) *p4v1.TableEntry {
	return &p4v1.TableEntry{TableId: idOf(t, "AllIngress.routes"), IsDefaultAction: true}
}

func directCounter(m *p4v1.TableEntry, data *p4v1.CounterData) *p4v1.Entity {
	return &p4v1.Entity{Entity: &p4v1.Entity_DirectCounterEntry{DirectCounterEntry: &p4v1.DirectCounterEntry{TableEntry: m, Data: data}}}
}

func directMeter(m *p4v1.TableEntry, c *p4v1.MeterConfig) *p4v1.Entity {
	return &p4v1.Entity{Entity: &p4v1.Entity_DirectMeterEntry{DirectMeterEntry: &p4v1.DirectMeterEntry{TableEntry: m, Config: c}}}
}

// TestDefaultCounter: the counter of a default entry counts misses.
func TestDefaultCounter(t *testing.T) {
	s := configured(t)
	in, out := newTestPort(), newTestPort()
	s.must(s.rig.dev.AddPort(1, in, nil))
	s.must(s.rig.dev.AddPort(4, out, nil))
	s.must(s.write(
		insert(t, exactEntry(t, "AllIngress.macs", "AllIngress.forward", []string{"\x04"}, "\x02", "\x01")),
		insert(t, route(t, "\x0a\x00\x00\x00", 8, "\x04")),
	))
	packet := append(frame(2, 9, "")[:12], 0x08, 0x00, 0x45)
	packet = append(packet, make([]byte, 29)...) // to 0.0.0.0, which matches no route
	send := func(n int) {
		for range n {
			in.in <- packet
			out.wantPacket(t, packet)
		}
	}
	want := func(packets int64) {
		t.Helper()
		data := &p4v1.CounterData{PacketCount: packets, ByteCount: packets * int64(len(packet))}
		if got := s.mustRead(1, directCounter(defaultRoute(t), nil))[0]; !proto.Equal(got, directCounter(defaultRoute(t), data)) {
			t.Errorf("read %v, want %v", got, data)
		}
		filter := defaultRoute(t)
		filter.CounterData = &p4v1.CounterData{}
		if got := s.mustRead(1, entityOf(filter))[0].GetTableEntry(); !proto.Equal(got.GetCounterData(), data) || got.GetAction() == nil {
			t.Errorf("read %v, want %v", got, data)
		}
		if got := s.mustRead(1, directCounter(keyOf(route(t, "\x0a\x00\x00\x00", 8, "")), nil))[0].GetDirectCounterEntry(); got.GetData().GetPacketCount() != 0 {
			t.Errorf("the other entry has counted %v", got)
		}
	}
	want(0)
	send(3)
	want(3)

	other := defaultRoute(t)
	other.CounterData = &p4v1.CounterData{PacketCount: 70}
	refused := insert(t, route(t, "\x0a\x00\x00\x00", 8, "\x04"))
	for _, u := range []*p4v1.Update{
		update(mod, directCounter(defaultRoute(t), &p4v1.CounterData{PacketCount: 50})),
		modify(t, other),
	} {
		if err := s.writeAs(p4v1.WriteRequest_ROLLBACK_ON_ERROR, u, refused); err == nil {
			t.Fatal("a batch with an entry that is there already is done")
		}
		want(3)
	}
	s.must(s.configure(p4v1.SetForwardingPipelineConfigRequest_RECONCILE_AND_COMMIT, testConfig(t)))
	want(3)
	s.must(s.write(update(mod, directCounter(defaultRoute(t), &p4v1.CounterData{}))))
	want(0)
	send(1)
	want(1)

	acl := &p4v1.TableEntry{TableId: idOf(t, "AllIngress.acl"), IsDefaultAction: true}
	s.wantWrite(codes.InvalidArgument, update(mod, directCounter(acl, &p4v1.CounterData{})))
	matching := defaultRoute(t)
	matching.Match = route(t, "\x0a\x00\x00\x00", 8, "").Match
	s.wantWrite(codes.InvalidArgument, update(mod, directCounter(matching, &p4v1.CounterData{})))
}

// TestDefaultMeter: the meter of a default entry can be configured through
// either entity, and keeps its configuration in a new program.
func TestDefaultMeter(t *testing.T) {
	s := configured(t)
	slow := &p4v1.MeterConfig{Cir: 1, Cburst: 1, Pir: 2, Pburst: 2}
	fast := &p4v1.MeterConfig{Cir: 100, Cburst: 10, Pir: 200, Pburst: 20}
	want := func(c *p4v1.MeterConfig) {
		t.Helper()
		if got := s.mustRead(1, directMeter(defaultRoute(t), nil))[0]; !proto.Equal(got, directMeter(defaultRoute(t), c)) {
			t.Errorf("read %v, want %v", got, c)
		}
		filter := defaultRoute(t)
		filter.MeterConfig = &p4v1.MeterConfig{}
		if got := s.mustRead(1, entityOf(filter))[0].GetTableEntry(); !proto.Equal(got.GetMeterConfig(), c) || got.GetAction() == nil {
			t.Errorf("read %v, want %v", got, c)
		}
		if got := s.mustRead(1, entityOf(defaultRoute(t)))[0].GetTableEntry(); got.GetMeterConfig() != nil {
			t.Errorf("the meter is read unasked: %v", got)
		}
	}
	want(nil)
	s.must(s.write(update(mod, directMeter(defaultRoute(t), slow))))
	want(slow)
	e := defaultRoute(t)
	e.Action, e.MeterConfig = tableAction(action(t, "AllIngress.drop")), fast
	s.wantWrite(codes.InvalidArgument, modify(t, e)) // the action does not execute the meter
	e.Action = tableAction(action(t, "AllIngress.metered", "\x01"))
	if err := s.writeAs(p4v1.WriteRequest_ROLLBACK_ON_ERROR, modify(t, e), modify(t, aclEntry(t, 1, exact(4, "\x01")))); err == nil {
		t.Fatal("a batch with an entry that is not there is done")
	}
	want(slow)
	s.must(s.configure(p4v1.SetForwardingPipelineConfigRequest_RECONCILE_AND_COMMIT, testConfig(t)))
	want(slow)
	s.must(s.write(modify(t, e)))
	want(fast)
	s.must(s.write(update(mod, directMeter(defaultRoute(t), nil))))
	want(nil)
	s.wantWrite(codes.InvalidArgument, update(mod, directMeter(defaultRoute(t), &p4v1.MeterConfig{Cir: 2, Pir: 1})))
}
