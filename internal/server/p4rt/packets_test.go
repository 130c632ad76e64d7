package p4rt

import (
	"bytes"
	"testing"
	"testing/synctest"
	"time"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
)

// A testPort is a port with the test at its other end.
type testPort struct {
	in  chan []byte
	out chan []byte
	end chan struct{}
}

func newTestPort() *testPort {
	return &testPort{in: make(chan []byte), out: make(chan []byte, 1<<12), end: make(chan struct{})}
}

func (p *testPort) Receive(deliver func([][]byte)) error {
	for {
		select {
		case b := <-p.in:
			deliver([][]byte{b})
		case <-p.end:
			return nil
		}
	}
}

func (p *testPort) Send(b []byte) {
	select {
	case p.out <- bytes.Clone(b):
	default:
	}
}

func (p *testPort) Flush() error { return nil }

func (p *testPort) Close() error {
	close(p.end)
	return nil
}

// wantPacket expects a packet to leave.
func (p *testPort) wantPacket(t testing.TB, want []byte) {
	t.Helper()
	select {
	case got := <-p.out:
		if !bytes.Equal(got, want) {
			t.Errorf("got packet\n%x\nwant\n%x", got, want)
		}
	case <-time.After(patience):
		t.Fatal("no packet leaves")
	}
}

func frame(dst, src byte, payload string) []byte {
	return append([]byte{0, 0, 0, 0, 0, dst, 0, 0, 0, 0, 0, src, 0x88, 0xb5}, payload...)
}

func TestPacketOut(t *testing.T) {
	s := configured(t)
	p := newTestPort()
	s.must(s.rig.dev.AddPort(300, p, nil))
	out := func(m *p4v1.PacketOut) {
		s.send(&p4v1.StreamMessageRequest{Update: &p4v1.StreamMessageRequest_Packet{Packet: m}})
	}
	meta := func(id uint32, v string) *p4v1.PacketMetadata {
		return &p4v1.PacketMetadata{MetadataId: id, Value: []byte(v)}
	}
	packet := frame(1, 2, "hello")
	out(&p4v1.PacketOut{Payload: packet, Metadata: []*p4v1.PacketMetadata{meta(2, "\x00"), meta(1, "\x01\x2c")}})
	p.wantPacket(t, packet)

	for name, m := range map[string]*p4v1.PacketOut{
		"missing": {Payload: packet, Metadata: []*p4v1.PacketMetadata{meta(1, "\x01")}},
		"twice":   {Payload: packet, Metadata: []*p4v1.PacketMetadata{meta(1, "\x01"), meta(1, "\x01")}},
		"unknown": {Payload: packet, Metadata: []*p4v1.PacketMetadata{meta(1, "\x01"), meta(7, "\x01")}},
		"wide":    {Payload: packet, Metadata: []*p4v1.PacketMetadata{meta(1, "\x02\x00"), meta(2, "\x00")}},
		"empty":   {Payload: packet, Metadata: []*p4v1.PacketMetadata{meta(1, ""), meta(2, "\x00")}},
	} {
		out(m)
		e := s.next().GetError()
		if codes.Code(e.GetCanonicalCode()) != codes.InvalidArgument || !proto.Equal(e.GetPacketOut().GetPacketOut(), m) {
			t.Errorf("%s: got %v", name, e)
		}
	}

	backup := s.rig.open()
	backup.claim(arbitration(0))
	backup.wantArbitration(codes.AlreadyExists, uint128(1))
	backup.send(&p4v1.StreamMessageRequest{Update: &p4v1.StreamMessageRequest_Packet{Packet: &p4v1.PacketOut{Payload: packet}}})
	if e := backup.next().GetError(); codes.Code(e.GetCanonicalCode()) != codes.PermissionDenied {
		t.Errorf("a backup sends a packet: %v", e)
	}
	if len(p.out) > 0 {
		t.Errorf("a refused packet was sent: %x", <-p.out)
	}
}

func TestPacketIn(t *testing.T) {
	s := configured(t)
	p := newTestPort()
	s.must(s.rig.dev.AddPort(300, p, nil))
	s.must(s.write(insert(t, exactEntry(t, "AllIngress.macs", "AllIngress.punt", nil, "\x01", "\x01\x2c"))))
	packet := frame(1, 2, "hello")
	p.in <- packet
	got := s.next().GetPacket()
	want := &p4v1.PacketIn{Payload: packet, Metadata: []*p4v1.PacketMetadata{
		{MetadataId: 1, Value: []byte{0x01, 0x2c}}, {MetadataId: 2, Value: []byte{5}}, {MetadataId: 3, Value: []byte{0}},
	}}
	if !proto.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestMulticastAndClone(t *testing.T) {
	s := configured(t)
	ports := map[uint32]*testPort{}
	for i := uint32(1); i <= 4; i++ {
		ports[i] = newTestPort()
		s.must(s.rig.dev.AddPort(i, ports[i], nil))
	}
	multicast := multicastEntity(&p4v1.MulticastGroupEntry{
		MulticastGroupId: 5, Replicas: []*p4v1.Replica{replica("\x02", 1), replica("\x03", 1)}, Metadata: []byte("note"),
	})
	session := cloneEntity(&p4v1.CloneSessionEntry{SessionId: 100, Replicas: []*p4v1.Replica{replica("\x04", 0)}})
	s.must(s.write(
		update(ins, multicast), update(ins, session),
		insert(t, exactEntry(t, "AllIngress.macs", "AllIngress.flood", []string{"\x05"}, "\x01", "\x01")),
		insert(t, exactEntry(t, "AllIngress.macs", "AllIngress.copy", []string{"\x64"}, "\x02", "\x01")),
	))
	for _, e := range []*p4v1.Entity{multicast, session} {
		var all *p4v1.Entity
		if e == session {
			all = cloneEntity(&p4v1.CloneSessionEntry{})
		} else {
			all = multicastEntity(&p4v1.MulticastGroupEntry{})
		}
		if got := s.mustRead(1, all)[0]; !proto.Equal(got, e) {
			t.Errorf("read back %v, want %v", got, e)
		}
	}
	flood, clone := frame(1, 9, "flood"), frame(2, 9, "clone")
	ports[1].in <- flood
	ports[2].wantPacket(t, flood)
	ports[3].wantPacket(t, flood)
	ports[1].in <- clone
	ports[4].wantPacket(t, clone)

	for name, c := range map[string]struct {
		u    *p4v1.Update
		code codes.Code
	}{
		"group 0":       {update(ins, multicastEntity(&p4v1.MulticastGroupEntry{})), codes.InvalidArgument},
		"session 0":     {update(ins, cloneEntity(&p4v1.CloneSessionEntry{})), codes.InvalidArgument},
		"group again":   {update(ins, multicast), codes.AlreadyExists},
		"session again": {update(ins, session), codes.AlreadyExists},
		"no group":      {update(del, multicastEntity(&p4v1.MulticastGroupEntry{MulticastGroupId: 6})), codes.NotFound},
		"no session":    {update(mod, cloneEntity(&p4v1.CloneSessionEntry{SessionId: 6})), codes.NotFound},
		"replica twice": {update(mod, multicastEntity(&p4v1.MulticastGroupEntry{MulticastGroupId: 5, Replicas: []*p4v1.Replica{replica("\x01", 1), replica("\x01", 1)}})), codes.InvalidArgument},
		"instance":      {update(mod, multicastEntity(&p4v1.MulticastGroupEntry{MulticastGroupId: 5, Replicas: []*p4v1.Replica{replica("\x01", 1<<16)}})), codes.InvalidArgument},
		"port":          {update(mod, multicastEntity(&p4v1.MulticastGroupEntry{MulticastGroupId: 5, Replicas: []*p4v1.Replica{replica("\x02\x00", 1)}})), codes.InvalidArgument},
		"class":         {update(mod, cloneEntity(&p4v1.CloneSessionEntry{SessionId: 100, ClassOfService: 1})), codes.InvalidArgument},
		"neither":       {update(ins, &p4v1.Entity{Entity: &p4v1.Entity_PacketReplicationEngineEntry{}}), codes.InvalidArgument},
	} {
		if s.wantWrite(c.code, c.u); t.Failed() {
			t.Fatal(name)
		}
	}
	s.must(s.write(update(del, session), update(del, multicast)))
	ports[1].in <- clone
	ports[1].in <- flood
	for i, p := range ports {
		if len(p.out) > 0 {
			t.Errorf("port %d sends %x for a group that is gone", i, <-p.out)
		}
	}
}

func TestDigest(t *testing.T) {
	s := configured(t)
	p := newTestPort()
	s.must(s.rig.dev.AddPort(3, p, nil))
	id := idOf(t, "learned_t")
	config := &p4v1.Entity{Entity: &p4v1.Entity_DigestEntry{DigestEntry: &p4v1.DigestEntry{
		DigestId: id, Config: &p4v1.DigestEntry_Config{MaxListSize: 2, MaxTimeoutNs: 1e15, AckTimeoutNs: 1e15},
	}}}
	p.in <- frame(1, 1, "before the digest is on")
	s.wantWrite(codes.NotFound, update(mod, config))
	s.wantWrite(codes.OK, update(ins, config))
	s.wantWrite(codes.AlreadyExists, update(ins, config))
	if got := s.mustRead(1, &p4v1.Entity{Entity: &p4v1.Entity_DigestEntry{DigestEntry: &p4v1.DigestEntry{}}})[0]; !proto.Equal(got, config) {
		t.Errorf("read back %v, want %v", got, config)
	}
	for _, src := range []byte{1, 1, 2} {
		p.in <- frame(1, src, "")
	}
	list := s.next().GetDigest()
	if list.GetDigestId() != id || len(list.GetData()) != 2 || list.GetTimestamp() == 0 {
		t.Fatalf("got %v", list)
	}
	for i, d := range list.GetData() {
		m := d.GetStruct().GetMembers()
		if len(m) != 2 || string(m[0].GetBitstring()) != string([]byte{byte(i + 1)}) || string(m[1].GetBitstring()) != "\x03" {
			t.Errorf("record %d is %v", i, d)
		}
	}
	// Until the list is acknowledged, the same sources are not reported again.
	for _, src := range []byte{1, 2, 3, 4} {
		p.in <- frame(1, src, "")
	}
	second := s.next().GetDigest()
	if len(second.GetData()) != 2 || string(second.GetData()[0].GetStruct().GetMembers()[0].GetBitstring()) != "\x03" {
		t.Errorf("got %v", second)
	}
	s.send(&p4v1.StreamMessageRequest{Update: &p4v1.StreamMessageRequest_DigestAck{DigestAck: &p4v1.DigestListAck{DigestId: 1}}})
	if e := s.next().GetError(); codes.Code(e.GetCanonicalCode()) != codes.InvalidArgument || e.GetDigestListAck() == nil {
		t.Errorf("an unknown digest is acknowledged: %v", e)
	}
	s.send(&p4v1.StreamMessageRequest{Update: &p4v1.StreamMessageRequest_DigestAck{DigestAck: &p4v1.DigestListAck{DigestId: id, ListId: list.GetListId()}}})
	// The error for this packet-out arrives after the acknowledgement is
	// processed.
	s.send(&p4v1.StreamMessageRequest{Update: &p4v1.StreamMessageRequest_Packet{Packet: &p4v1.PacketOut{}}})
	s.next()
	p.in <- frame(1, 1, "")
	p.in <- frame(1, 2, "")
	if third := s.next().GetDigest(); len(third.GetData()) != 2 || third.GetListId() <= second.GetListId() {
		t.Errorf("got %v", third)
	}
}

// TestDigestTimes tests a digester with a fake clock.
func TestDigestTimes(t *testing.T) {
	in := testInfo(t)
	synctest.Test(t, func(t *testing.T) {
		lists := make(chan *p4v1.DigestList, 16)
		id := idOf(t, "learned_t")
		d := newDigester(id, in.digests[id], func(l *p4v1.DigestList) { lists <- l })
		d.configure(&p4v1.DigestEntry_Config{MaxListSize: 100, MaxTimeoutNs: int64(time.Second), AckTimeoutNs: int64(time.Minute)})
		record := func(b byte) []byte { return []byte{0, 0, 0, 0, 0, b, 0, 1} }
		want := func(after time.Duration, n int) {
			t.Helper()
			start := time.Now()
			l := <-lists
			if got := time.Since(start); got != after || len(l.GetData()) != n {
				t.Errorf("%d records after %v, want %d after %v", len(l.GetData()), got, n, after)
			}
		}
		d.learn(record(1))
		time.Sleep(600 * time.Millisecond)
		d.learn(record(2))
		want(400*time.Millisecond, 2)

		// A record is reported again after the acknowledgement has timed out.
		time.Sleep(59 * time.Second)
		d.learn(record(1))
		time.Sleep(2 * time.Second)
		d.learn(record(1))
		want(time.Second, 1)

		d.learn(record(3))
		d.configure(nil)
		time.Sleep(time.Hour)
		d.learn(record(4))
		select {
		case l := <-lists:
			t.Errorf("a digest that is off sends %v", l)
		default:
		}
	})
}

func TestIdleTimeout(t *testing.T) {
	s := configured(t)
	e := exactEntry(t, "AllIngress.sources", "NoAction", nil, "\x01")
	e.IdleTimeoutNs, e.Metadata = int64(20*time.Millisecond), []byte("m")
	forever := exactEntry(t, "AllIngress.sources", "NoAction", nil, "\x02")
	s.must(s.write(insert(t, e), insert(t, forever)))
	for range 2 { // the timer restarts after each report
		n := s.next().GetIdleTimeoutNotification()
		if len(n.GetTableEntry()) != 1 || n.GetTimestamp() == 0 {
			t.Fatalf("got %v", n)
		}
		got := n.GetTableEntry()[0]
		if !proto.Equal(keyOf(got), keyOf(e)) || got.GetIdleTimeoutNs() != e.GetIdleTimeoutNs() || string(got.GetMetadata()) != "m" {
			t.Errorf("got %v, want %v", got, e)
		}
	}
	filter := keyOf(forever)
	filter.TimeSinceLastHit = &p4v1.TableEntry_IdleTimeout{}
	if got := s.mustRead(1, entityOf(filter))[0].GetTableEntry(); got.GetTimeSinceLastHit().GetElapsedNs() <= 0 {
		t.Errorf("got %v, want the time since the last hit", got)
	}
	filter.TableId = idOf(t, "AllIngress.macs")
	if _, err := s.read(entityOf(filter)); updateCodes(err)[0] != codes.InvalidArgument {
		t.Errorf("reading the last hit of a table without timeouts: %v", err)
	}
}

func TestBitsOfHeaders(t *testing.T) {
	h := &packetHeader{fields: []paramInfo{{1, "a", 9, nil}, {2, "b", 7, nil}, {3, "c", 48, nil}}, bits: 64}
	m := &p4v1.PacketOut{Payload: []byte("x"), Metadata: []*p4v1.PacketMetadata{
		{MetadataId: 1, Value: []byte{0x01, 0xff}}, {MetadataId: 2, Value: []byte{0x01}}, {MetadataId: 3, Value: []byte{0xab, 0xcd}},
	}}
	b, err := h.encode(m)
	if err != nil {
		t.Fatal(err)
	}
	if want := []byte{0xff, 0x81, 0, 0, 0, 0, 0xab, 0xcd, 'x'}; !bytes.Equal(b, want) {
		t.Errorf("encoded as %x, want %x", b, want)
	}
	back := h.decode(b)
	if !proto.Equal(&p4v1.PacketOut{Payload: back.Payload, Metadata: back.Metadata}, m) {
		t.Errorf("decoded as %v, want %v", back, m)
	}
	if short := h.decode([]byte("abc")); string(short.GetPayload()) != "abc" || short.GetMetadata() != nil {
		t.Errorf("a short packet is %v", short)
	}
}
