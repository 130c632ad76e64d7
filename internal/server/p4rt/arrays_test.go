package p4rt

import (
	"testing"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
)

func bitstring(b string) *p4v1.P4Data {
	return &p4v1.P4Data{Data: &p4v1.P4Data_Bitstring{Bitstring: []byte(b)}}
}

func TestRegisters(t *testing.T) {
	s := configured(t)
	const sizes, wide, signs = "AllIngress.sizes", "AllIngress.wide", "AllIngress.signs"
	for _, c := range []struct {
		name string
		in   string
		want string
	}{
		{sizes, "\x01\x02\x03\x04", "\x01\x02\x03\x04"},
		{sizes, "\x00\x00\x07", "\x07"},
		{sizes, "\x00", "\x00"},
		{wide, "\xff\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01", "\xff\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01"},
		{wide, "\x05", "\x05"},
		{signs, "\xff\xff", "\xff"},
		{signs, "\xf8\x00", "\xf8\x00"},
		{signs, "\x07\xff", "\x07\xff"},
	} {
		s.wantWrite(codes.OK, update(mod, registerEntity(t, c.name, 2, bitstring(c.in))))
		got := s.mustRead(1, registerEntity(t, c.name, 2, nil))[0]
		if want := registerEntity(t, c.name, 2, bitstring(c.want)); !proto.Equal(got, want) {
			t.Errorf("%s: wrote %x, read back %v, want %v", c.name, c.in, got, want)
		}
	}
	// A wildcard writes all cells and reads them in order.
	s.wantWrite(codes.OK, update(mod, registerEntity(t, sizes, -1, bitstring("\x2a"))))
	for i, e := range s.mustRead(512, registerEntity(t, sizes, -1, nil)) {
		r := e.GetRegisterEntry()
		if r.GetIndex().GetIndex() != int64(i) || string(r.GetData().GetBitstring()) != "\x2a" {
			t.Fatalf("cell %d is %v", i, r)
		}
	}
	s.mustRead(512+4+4+65536, &p4v1.Entity{Entity: &p4v1.Entity_RegisterEntry{RegisterEntry: &p4v1.RegisterEntry{}}})

	for name, c := range map[string]struct {
		u    *p4v1.Update
		code codes.Code
	}{
		"negative index": {update(mod, registerEntity(t, sizes, 0, bitstring("\x01"))), codes.InvalidArgument},
		"index":          {update(mod, registerEntity(t, sizes, 512, bitstring("\x01"))), codes.OutOfRange},
		"wide":           {update(mod, registerEntity(t, sizes, 0, bitstring("\x01\x00\x00\x00\x00"))), codes.OutOfRange},
		"empty":          {update(mod, registerEntity(t, sizes, 0, bitstring(""))), codes.OutOfRange},
		"wide signed":    {update(mod, registerEntity(t, signs, 0, bitstring("\x08\x00"))), codes.OutOfRange},
		"no data":        {update(mod, registerEntity(t, sizes, 0, nil)), codes.InvalidArgument},
		"wrong type":     {update(mod, registerEntity(t, sizes, 0, &p4v1.P4Data{Data: &p4v1.P4Data_Bool{Bool: true}})), codes.InvalidArgument},
		"delete":         {update(del, registerEntity(t, sizes, 0, bitstring("\x01"))), codes.InvalidArgument},
	} {
		if name == "negative index" {
			c.u.Entity.GetRegisterEntry().Index.Index = -1
		}
		if s.wantWrite(c.code, c.u); t.Failed() {
			t.Fatal(name)
		}
	}
	if _, err := s.read(registerEntity(t, sizes, 512, nil)); updateCodes(err)[0] != codes.OutOfRange {
		t.Errorf("reading behind the end: %v", err)
	}
}

// TestRegistersUnderTraffic reads cells written by packets.
func TestRegistersUnderTraffic(t *testing.T) {
	s := configured(t)
	p := newTestPort()
	s.must(s.rig.dev.AddPort(3, p, nil))
	s.must(s.write(
		update(mod, registerEntity(t, "AllIngress.wide", 0, bitstring("\xff\xff\xff\xff\xff\xff\xff\xff"))),
		update(mod, registerEntity(t, "AllIngress.signs", 0, bitstring("\x00"))),
		insert(t, exactEntry(t, "AllIngress.macs", "AllIngress.forward", []string{"\x03"}, "\x01", "\x03")),
	))
	packet := frame(1, 1, "0123456789")
	p.in <- packet
	p.wantPacket(t, packet)
	for name, want := range map[string]*p4v1.Entity{
		"size":    registerEntity(t, "AllIngress.sizes", 3, bitstring("\x18")),
		"128 bit": registerEntity(t, "AllIngress.wide", 1, bitstring("\x01\x00\x00\x00\x00\x00\x00\x00\x00")),
		"signed":  registerEntity(t, "AllIngress.signs", 1, bitstring("\xff")),
	} {
		r := want.GetRegisterEntry()
		filter := &p4v1.Entity{Entity: &p4v1.Entity_RegisterEntry{RegisterEntry: &p4v1.RegisterEntry{RegisterId: r.RegisterId, Index: r.Index}}}
		if got := s.mustRead(1, filter)[0]; !proto.Equal(got, want) {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
	seen := s.mustRead(1, &p4v1.Entity{Entity: &p4v1.Entity_CounterEntry{CounterEntry: &p4v1.CounterEntry{
		CounterId: idOf(t, "AllIngress.seen"), Index: &p4v1.Index{Index: 3},
	}}})[0].GetCounterEntry().GetData()
	if seen.GetPacketCount() != 1 || seen.GetByteCount() != int64(len(packet)) {
		t.Errorf("the counter has %v", seen)
	}
}

func counterEntity(t testing.TB, index int64, d *p4v1.CounterData) *p4v1.Entity {
	t.Helper()
	e := &p4v1.CounterEntry{CounterId: idOf(t, "AllIngress.seen"), Data: d}
	if index >= 0 {
		e.Index = &p4v1.Index{Index: index}
	}
	return &p4v1.Entity{Entity: &p4v1.Entity_CounterEntry{CounterEntry: e}}
}

func TestCounters(t *testing.T) {
	s := configured(t)
	data := &p4v1.CounterData{PacketCount: 7, ByteCount: 700}
	s.wantWrite(codes.OK, update(mod, counterEntity(t, 2, data)))
	s.wantWrite(codes.OK, update(mod, counterEntity(t, 2, nil))) // changes nothing
	if got := s.mustRead(1, counterEntity(t, 2, nil))[0]; !proto.Equal(got, counterEntity(t, 2, data)) {
		t.Errorf("read back %v", got)
	}
	s.wantWrite(codes.OK, update(mod, counterEntity(t, -1, data)))
	for _, e := range s.mustRead(8, counterEntity(t, -1, nil)) {
		if !proto.Equal(e.GetCounterEntry().GetData(), data) {
			t.Errorf("after a wildcard write there is %v", e)
		}
	}
	s.wantWrite(codes.InvalidArgument, update(ins, counterEntity(t, 2, data)))
	s.wantWrite(codes.InvalidArgument, update(del, counterEntity(t, 2, data)))
	s.wantWrite(codes.OutOfRange, update(mod, counterEntity(t, 8, data)))

	r := route(t, "\x0a\x00\x00\x00", 8, "\x01")
	direct := func(d *p4v1.CounterData) *p4v1.Entity {
		return &p4v1.Entity{Entity: &p4v1.Entity_DirectCounterEntry{DirectCounterEntry: &p4v1.DirectCounterEntry{TableEntry: keyOf(r), Data: d}}}
	}
	s.wantWrite(codes.NotFound, update(mod, direct(data)))
	if _, err := s.read(direct(nil)); updateCodes(err)[0] != codes.NotFound {
		t.Errorf("reading the counter of no entry: %v", err)
	}
	s.wantWrite(codes.OK, insert(t, r))
	s.wantWrite(codes.OK, update(mod, direct(data)))
	s.wantWrite(codes.InvalidArgument, update(ins, direct(data)))
	if got := s.mustRead(1, direct(nil))[0]; !proto.Equal(got, direct(data)) {
		t.Errorf("read back %v", got)
	}
	all := &p4v1.Entity{Entity: &p4v1.Entity_DirectCounterEntry{DirectCounterEntry: &p4v1.DirectCounterEntry{}}}
	s.mustRead(1, all)
	none := &p4v1.Entity{Entity: &p4v1.Entity_DirectCounterEntry{DirectCounterEntry: &p4v1.DirectCounterEntry{
		TableEntry: keyOf(macEntry(t, "\x01")), Data: data,
	}}}
	s.wantWrite(codes.InvalidArgument, update(mod, none))
}

func TestMeters(t *testing.T) {
	s := configured(t)
	entity := func(index int64, c *p4v1.MeterConfig) *p4v1.Entity {
		e := &p4v1.MeterEntry{MeterId: idOf(t, "AllIngress.limit"), Config: c}
		if index >= 0 {
			e.Index = &p4v1.Index{Index: index}
		}
		return &p4v1.Entity{Entity: &p4v1.Entity_MeterEntry{MeterEntry: e}}
	}
	config := &p4v1.MeterConfig{Cir: 1000, Cburst: 100, Pir: 2000, Pburst: 200}
	s.wantWrite(codes.OK, update(mod, entity(1, config)))
	for i, e := range s.mustRead(4, entity(-1, nil)) {
		var want *p4v1.MeterConfig
		if i == 1 {
			want = config
		}
		if !proto.Equal(e.GetMeterEntry().GetConfig(), want) {
			t.Errorf("meter %d has %v, want %v", i, e, want)
		}
	}
	s.wantWrite(codes.OK, update(mod, entity(-1, nil)))
	if got := s.mustRead(1, entity(1, nil))[0].GetMeterEntry(); got.GetConfig() != nil {
		t.Errorf("after a reset there is %v", got)
	}
	for _, c := range []*p4v1.MeterConfig{
		{Cir: -1, Pir: 1}, {Cir: 2, Pir: 1}, {Cir: 1, Pir: 1, Eburst: 1}, {Pburst: -1},
	} {
		s.wantWrite(codes.InvalidArgument, update(mod, entity(0, c)))
	}
	s.wantWrite(codes.InvalidArgument, update(ins, entity(0, config)))
	s.wantWrite(codes.OutOfRange, update(mod, entity(4, config)))

	r := route(t, "\x0a\x00\x00\x00", 8, "\x01")
	direct := &p4v1.Entity{Entity: &p4v1.Entity_DirectMeterEntry{DirectMeterEntry: &p4v1.DirectMeterEntry{TableEntry: keyOf(r), Config: config}}}
	s.wantWrite(codes.NotFound, update(mod, direct))
	s.wantWrite(codes.OK, insert(t, r))
	s.wantWrite(codes.OK, update(mod, direct))
	if got := s.mustRead(1, direct)[0]; !proto.Equal(got, direct) {
		t.Errorf("read back %v, want %v", got, direct)
	}
}

// TestMeterCounters: meters count by color. Every entity that contains the
// counters can read and write them.
func TestMeterCounters(t *testing.T) {
	s := configured(t)
	in, out := newTestPort(), newTestPort()
	s.must(s.rig.dev.AddPort(1, in, nil))
	s.must(s.rig.dev.AddPort(4, out, nil))
	packet := frame(2, 9, "eighteen bytes")
	cell := func(c *p4v1.MeterConfig, d *p4v1.MeterCounterData) *p4v1.Entity {
		return &p4v1.Entity{Entity: &p4v1.Entity_MeterEntry{MeterEntry: &p4v1.MeterEntry{
			MeterId: idOf(t, "AllIngress.limit"), Index: &p4v1.Index{Index: 1}, Config: c, CounterData: d,
		}}}
	}
	counts := func(green, yellow, red int64) *p4v1.MeterCounterData {
		n := int64(len(packet))
		return &p4v1.MeterCounterData{
			Green:  &p4v1.CounterData{PacketCount: green, ByteCount: green * n},
			Yellow: &p4v1.CounterData{PacketCount: yellow, ByteCount: yellow * n},
			Red:    &p4v1.CounterData{PacketCount: red, ByteCount: red * n},
		}
	}
	// The rates are zero: the bursts allow one green and one yellow packet.
	config := &p4v1.MeterConfig{Cburst: int64(len(packet)), Pburst: 2 * int64(len(packet))}
	s.must(s.write(
		insert(t, exactEntry(t, "AllIngress.macs", "AllIngress.forward", []string{"\x04"}, "\x02", "\x01")),
		update(mod, cell(config, nil)),
	))
	for range 5 {
		in.in <- packet
		out.wantPacket(t, packet)
	}
	want := func(e *p4v1.Entity) {
		t.Helper()
		if got := s.mustRead(1, e)[0]; !proto.Equal(got, e) {
			t.Errorf("read %v, want %v", got, e)
		}
	}
	want(cell(config, counts(1, 1, 3)))
	want(cell(config, nil))
	if err := s.writeAs(p4v1.WriteRequest_ROLLBACK_ON_ERROR, update(mod, cell(config, counts(9, 9, 9))), update(ins, cell(config, nil))); err == nil {
		t.Fatal("a batch that inserts a meter is done")
	}
	want(cell(config, counts(1, 1, 3)))
	s.must(s.write(update(mod, cell(config, counts(7, 0, 0)))))
	want(cell(config, counts(7, 0, 0)))

	r := route(t, "\x0a\x00\x00\x00", 8, "\x01")
	s.must(s.write(insert(t, r)))
	direct := directMeter(keyOf(r), config)
	direct.GetDirectMeterEntry().CounterData = counts(1, 2, 3)
	s.wantWrite(codes.InvalidArgument, update(mod, direct)) // they can only be cleared
	direct.GetDirectMeterEntry().CounterData = counts(0, 0, 0)
	s.must(s.write(update(mod, direct)))
	want(direct)
	p := s.rig.server.running
	routes := p.tables[r.GetTableId()]
	first, _ := routes.rows.get(0)
	p.setMeterCounters(routes.info.meter, int(first.entry.handle), counts(1, 2, 3))
	filter := keyOf(r)
	filter.MeterCounterData = &p4v1.MeterCounterData{}
	seen := func() {
		t.Helper()
		if got := s.mustRead(1, entityOf(filter))[0].GetTableEntry(); !proto.Equal(got.GetMeterCounterData(), counts(1, 2, 3)) {
			t.Errorf("read %v", got)
		}
	}
	seen()
	gone := update(del, entityOf(keyOf(r)))
	if err := s.writeAs(p4v1.WriteRequest_ROLLBACK_ON_ERROR, gone, gone); err == nil {
		t.Fatal("a batch that deletes an entry twice is done")
	}
	seen()
	r.MeterConfig, r.MeterCounterData = config, counts(4, 5, 6)
	s.wantWrite(codes.InvalidArgument, modify(t, r))
	seen()
	r.MeterCounterData = &p4v1.MeterCounterData{}
	s.must(s.write(modify(t, r)))
	want(direct)
	missed := directMeter(defaultRoute(t), nil)
	missed.GetDirectMeterEntry().CounterData = counts(0, 0, 0)
	want(missed)
}

func TestValueSets(t *testing.T) {
	s := configured(t)
	set := func(values ...string) *p4v1.Entity {
		e := &p4v1.ValueSetEntry{ValueSetId: idOf(t, "AllParser.ip_types")}
		for _, v := range values {
			e.Members = append(e.Members, &p4v1.ValueSetMember{Match: []*p4v1.FieldMatch{exact(1, v)}})
		}
		return &p4v1.Entity{Entity: &p4v1.Entity_ValueSetEntry{ValueSetEntry: e}}
	}
	s.wantWrite(codes.OK, update(mod, set("\x00\x88\xb5", "\x07")))
	if got := s.mustRead(1, set())[0]; !proto.Equal(got, set("\x88\xb5", "\x07")) {
		t.Errorf("read back %v", got)
	}
	s.wantWrite(codes.ResourceExhausted, update(mod, set("\x01", "\x02", "\x03")))
	s.wantWrite(codes.AlreadyExists, update(mod, set("\x01", "\x00\x01")))
	s.wantWrite(codes.InvalidArgument, update(mod, set("\x01\x00\x00")))
	s.wantWrite(codes.InvalidArgument, update(ins, set("\x01")))
	s.wantWrite(codes.InvalidArgument, update(del, set("\x01")))
	s.wantWrite(codes.OK, update(mod, set()))
	s.mustRead(1, set())
}
