package p4rt

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/p4lb/p4lb/internal/server/gate"
)

// routes fills the table of routes with n /32 prefixes.
func (s *session) routes(t testing.TB, n int) {
	t.Helper()
	var batch []*p4v1.Update
	for i := range n {
		batch = append(batch, insert(t, route(t, string(binary.BigEndian.AppendUint32(nil, uint32(i+1)<<4)), 32, "\x01")))
	}
	s.must(s.write(batch...))
}

// TestFault: a write that panics is answered with INTERNAL and releases its
// locks: the next write succeeds.
func TestFault(t *testing.T) {
	var said bytes.Buffer
	r := newRig(t, Options{Log: slog.New(slog.NewTextHandler(&said, nil))})
	s := r.primary()
	s.must(s.configure(commitNew, testConfig(t)))
	r.server.mu.Lock()
	device := r.server.dev
	r.server.dev = nil
	r.server.mu.Unlock()
	if err := s.write(insert(t, route(t, "\x00\x00\x00\x10", 32, "\x01"))); status.Code(err) != codes.Internal {
		t.Errorf("got %v, want INTERNAL", err)
	}
	r.server.mu.Lock()
	r.server.dev = device
	r.server.mu.Unlock()
	s.routes(t, 1)
	if !strings.Contains(said.String(), "writeAll") {
		t.Errorf("the log says %q, want the stack", &said)
	}
}

// allRoutes requests all routes with their counters.
func allRoutes(t testing.TB) *p4v1.Entity {
	return entityOf(&p4v1.TableEntry{TableId: idOf(t, "AllIngress.routes"), CounterData: &p4v1.CounterData{}})
}

// startRead begins a read without receiving anything.
func (s *session) startRead(t testing.TB, e *p4v1.Entity) p4v1.P4Runtime_ReadClient {
	t.Helper()
	stream, err := s.rig.client.Read(s.rig.context(), &p4v1.ReadRequest{DeviceId: testDevice, Entities: []*p4v1.Entity{e}})
	s.must(err)
	if _, err := stream.Header(); err != nil {
		t.Fatal(err)
	}
	return stream
}

// TestReadIsOfOneMoment: a slow reader does not block writers. It gets the
// entries of the moment of its request; deleted entries have the counters they
// had when they were deleted.
func TestReadIsOfOneMoment(t *testing.T) {
	const n = 20000
	s := configured(t)
	s.routes(t, n)
	var list []*p4v1.Update
	for i, e := range s.mustRead(n, allRoutes(t)) {
		m := e.GetTableEntry()
		m.CounterData.PacketCount = int64(i + 1)
		list = append(list, modify(t, m))
	}
	s.must(s.write(list...))
	stream := s.startRead(t, allRoutes(t))
	for i, u := range list {
		list[i] = update(del, entityOf(keyOf(u.GetEntity().GetTableEntry())))
	}
	s.must(s.write(list...))
	s.mustRead(0, allRoutes(t))
	s.routes(t, 7)
	got := map[int64]bool{}
	for {
		m, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		s.must(err)
		for _, e := range m.GetEntities() {
			got[e.GetTableEntry().GetCounterData().GetPacketCount()] = true
		}
	}
	if len(got) != n || got[0] {
		t.Errorf("read %d different counts, want %d", len(got), n)
	}
	if n := s.rig.server.running.readers.Load(); n != 0 {
		t.Errorf("%d readers are counted although none is left", n)
	}
}

// TestReadThatStalls: a read ends when the client does not receive for
// MaxStall, and when the server stops.
func TestReadThatStalls(t *testing.T) {
	r := newRig(t, Options{Limits: gate.Limits{MaxStall: 500 * time.Millisecond}})
	s := r.primary()
	s.must(s.configure(commitNew, testConfig(t)))
	s.routes(t, 20000)
	stream := s.startRead(t, allRoutes(t))
	deadline := time.Now().Add(patience)
	for ; r.server.running.readers.Load() > 0; runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Fatal("the read does not end")
		}
	}
	var err error
	for err == nil {
		_, err = stream.Recv()
	}
	if status.Code(err) != codes.DeadlineExceeded {
		t.Errorf("got %v, want DEADLINE_EXCEEDED", err)
	}
	s.mustRead(20000, allRoutes(t))
}

func TestStopEndsReads(t *testing.T) {
	s := configured(t)
	s.routes(t, 20000)
	for range 20 {
		s.startRead(t, allRoutes(t))
	}
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	began := time.Now()
	s.rig.server.Stop(ctx)
	if took := time.Since(began); took > patience/2 {
		t.Errorf("stopping took %v", took)
	}
}

func TestLargeRequests(t *testing.T) {
	r := newRig(t, Options{Limits: gate.Limits{MaxUpdates: 3, MaxRequests: 2, MaxEntity: 4096}})
	s := r.primary()
	s.must(s.configure(commitNew, testConfig(t)))
	mac := func(m string, size int) *p4v1.Update {
		e := macEntry(t, m)
		e.Metadata = make([]byte, size)
		return insert(t, e)
	}
	s.wantWrite(codes.OK, mac("\x01", 3000))
	s.wantWrite(codes.InvalidArgument, mac("\x02", 5000))
	if err := s.write(mac("\x03", 0), mac("\x04", 0), mac("\x05", 0), mac("\x06", 0)); codeOfRPC(err) != codes.ResourceExhausted {
		t.Errorf("a batch of 4: %v, want RESOURCE_EXHAUSTED", err)
	}
	any := entityOf(&p4v1.TableEntry{})
	if _, err := s.read(any, any, any); codeOfRPC(err) != codes.ResourceExhausted {
		t.Errorf("a read of 3: %v, want RESOURCE_EXHAUSTED", err)
	}
	if got := s.mustRead(1, entityOf(&p4v1.TableEntry{TableId: idOf(t, "AllIngress.macs")})); len(got[0].GetTableEntry().GetMetadata()) != 3000 {
		t.Error("a rejected update was applied")
	}
}

// TestManyFailures: the errors of a large batch fit into the message that a
// client can receive, one per update.
func TestManyFailures(t *testing.T) {
	n := 100_000
	if testing.Short() { // slow under the race detector
		n = 10_000
	}
	s := configured(t)
	gone := deleteOf(macEntry(t, "\x01"))
	batch := make([]*p4v1.Update, n)
	for i := range batch {
		batch[i] = gone
	}
	list := updateCodes(s.write(batch...))
	if len(list) != n || list[0] != codes.NotFound || list[n-1] != codes.NotFound {
		t.Fatalf("got %d codes, want %d", len(list), n)
	}
	if got := shorten("a\u00e9", 2); got != "a" {
		t.Errorf("cut within a character: %q", got)
	}
}

// TestErrorsQuoteLittle: errors that quote a client's names and values are single lines of
// limited length, and keep their reason.
func TestErrorsQuoteLittle(t *testing.T) {
	s := configured(t)
	e := macEntry(t, "\x01")
	e.Match[0].GetExact().Value = bytes.Repeat([]byte{0xff}, 1<<18)
	err := status.Convert(s.write(insert(t, e)))
	if got := err.Details()[0].(*p4v1.Error).GetMessage(); len(got) > 300 || !strings.Contains(got, "ff… (262144 bytes) takes 2097152 bits, more than the 48 of the type") {
		t.Errorf("%d bytes: %.400s", len(got), got)
	}
	s.role = strings.Repeat("b", 1<<10)
	if _, err := s.read(allRoutes(t)); len(err.Error()) > maxMessage+100 || !strings.Contains(err.Error(), "there is no role") {
		t.Errorf("%d bytes: %.400s", len(err.Error()), err)
	}
	s.role = ""
	config := proto.Clone(testConfig(t)).(*p4v1.ForwardingPipelineConfig)
	config.P4Info.Tables[0].Preamble.Name = "a\nlevel=ERROR \x1b[31m"
	if err := s.configure(commitNew, config); err == nil || strings.ContainsAny(err.Error(), "\n\x1b") || !strings.Contains(err.Error(), "the program has no such table") {
		t.Errorf("got %q", err)
	}
}

func deleteOf(e *p4v1.TableEntry) *p4v1.Update {
	return &p4v1.Update{Type: p4v1.Update_DELETE, Entity: entityOf(keyOf(e))}
}

func TestRoleLimits(t *testing.T) {
	r := newRig(t, Options{Limits: gate.Limits{MaxRoles: 3, MaxEntity: 1000}})
	claim := func(name string, config *anypb.Any) *session {
		s := r.open()
		s.claim(&p4v1.MasterArbitrationUpdate{DeviceId: testDevice, ElectionId: uint128(5), Role: &p4v1.Role{Name: name, Config: config}})
		return s
	}
	claim(strings.Repeat("x", 1025), nil).wantEnd(codes.InvalidArgument)
	claim("x", pack(t, testConfig(t).GetP4Info())).wantEnd(codes.InvalidArgument)
	a, b := claim("a", nil), claim("b", nil)
	a.wantArbitration(codes.OK, uint128(5))
	b.wantArbitration(codes.OK, uint128(5))
	claim("c", nil).wantEnd(codes.ResourceExhausted)
	a.leave()
	c := claim("c", nil)
	c.wantArbitration(codes.OK, uint128(5))
	if _, err := r.server.arb.readScope(testDevice, "a"); codeOf(err) != codes.NotFound {
		t.Errorf("role a: %v, want it forgotten", err)
	}
}

// leave ends a stream and waits until the server has noticed.
func (s *session) leave() {
	s.t.Helper()
	s.cancel()
	deadline := time.Now().Add(patience)
	for live := true; live; {
		a := s.rig.server.arb
		a.mu.Lock()
		live = len(a.roles[s.role].live) > 0
		a.mu.Unlock()
		if time.Now().After(deadline) {
			s.t.Fatal("the stream does not end")
		}
	}
}

func TestCallLimit(t *testing.T) {
	r := newRig(t, Options{Limits: gate.Limits{MaxCalls: 2}})
	a, b := r.primary(), r.open()
	b.claim(&p4v1.MasterArbitrationUpdate{DeviceId: testDevice})
	b.wantArbitration(codes.AlreadyExists, uint128(1))
	ask := func() error {
		_, err := r.client.Capabilities(r.context(), &p4v1.CapabilitiesRequest{})
		return err
	}
	if err := ask(); codeOfRPC(err) != codes.ResourceExhausted {
		t.Errorf("a third call: %v, want RESOURCE_EXHAUSTED", err)
	}
	a.cancel()
	b.wantArbitration(codes.NotFound, uint128(1))
	deadline := time.Now().Add(patience)
	for ask() != nil {
		if time.Now().After(deadline) {
			t.Fatal("calls that have ended are still counted")
		}
	}
}

// TestReadLimit: stalled reads count against the limit until they end.
func TestReadLimit(t *testing.T) {
	r := newRig(t, Options{Limits: gate.Limits{MaxReads: 2}})
	s := r.primary()
	s.must(s.configure(commitNew, testConfig(t)))
	s.routes(t, 20000)
	first := s.startRead(t, allRoutes(t))
	s.startRead(t, allRoutes(t))
	ask := func() error {
		_, err := s.read(entityOf(macEntry(t, "\x01")))
		return err
	}
	if err := ask(); codeOfRPC(err) != codes.ResourceExhausted {
		t.Errorf("a third read: %v, want RESOURCE_EXHAUSTED", err)
	}
	for err := error(nil); err == nil; {
		_, err = first.Recv()
	}
	for deadline := time.Now().Add(patience); ask() != nil; {
		if time.Now().After(deadline) {
			t.Fatal("reads that have ended are still counted")
		}
	}
}

// TestOutboxLimit: messages to a client that receives nothing are dropped at
// the limit, regardless of their type.
func TestOutboxLimit(t *testing.T) {
	o := newOutbox(1<<20, gate.NewBacklog(1<<30))
	packet := &p4v1.StreamMessageResponse{Update: &p4v1.StreamMessageResponse_Packet{Packet: &p4v1.PacketIn{Payload: make([]byte, 100_000)}}}
	digest := &p4v1.StreamMessageResponse{Update: &p4v1.StreamMessageResponse_Digest{Digest: &p4v1.DigestList{Data: make([]*p4v1.P4Data, 1000)}}}
	for range 100 {
		o.bulk(packet)
		o.bulk(digest)
	}
	if o.rest.cost > 1<<20 || len(o.rest.list) < 3 {
		t.Errorf("%d messages of %d bytes are kept", len(o.rest.list), o.rest.cost)
	}
	for i := range 1000 {
		o.urgent(&p4v1.StreamMessageResponse{Update: &p4v1.StreamMessageResponse_Arbitration{Arbitration: &p4v1.MasterArbitrationUpdate{
			ElectionId: uint128(uint64(i)), Role: &p4v1.Role{Name: strings.Repeat("x", 100_000)},
		}}})
	}
	kept := len(o.rest.list)
	var last uint64
	for o.first.cost > 0 {
		m, lost, ok := o.next()
		if !ok || lost != 0 && lost != 200-kept {
			t.Fatalf("got %d lost, want %d", lost, 200-kept)
		}
		last = m.GetArbitration().GetElectionId().GetLow()
	}
	if last != 999 {
		t.Errorf("the last arbitration message is %d, want the newest", last)
	}
	for range kept {
		if _, _, ok := o.next(); !ok {
			t.Fatal("a message is missing")
		}
	}
	if n := o.all.Held(); o.rest.cost != 0 || n != 0 {
		t.Errorf("an empty outbox has %d bytes, and %d are counted", o.rest.cost, n)
	}
}

// TestBacklogOfAll: many clients that receive nothing share a limit. A client
// with few queued messages loses nothing.
func TestBacklogOfAll(t *testing.T) {
	const limit, size = 10 << 20, 10_000
	all := gate.NewBacklog(limit)
	message := &p4v1.StreamMessageResponse{Update: &p4v1.StreamMessageResponse_Packet{Packet: &p4v1.PacketIn{Payload: make([]byte, size)}}}
	claim := &p4v1.StreamMessageResponse{Update: &p4v1.StreamMessageResponse_Arbitration{Arbitration: &p4v1.MasterArbitrationUpdate{}}}
	var list []*outbox
	for range 100 {
		o := newOutbox(1<<20, all)
		for range 200 {
			o.bulk(message)
			o.urgent(claim)
		}
		list = append(list, o)
	}
	if n := all.Held(); n < limit || n > limit+int64(100*(gate.MinPending+costOf(claim))) {
		t.Errorf("%d bytes wait, want hardly more than %d", n, limit)
	}
	late := newOutbox(1<<20, all)
	late.bulk(message)
	if m, lost, ok := late.next(); m != message || lost != 0 || !ok {
		t.Errorf("one that keeps up gets %v, and has lost %d", m, lost)
	}
	late.urgent(claim)
	late.urgent(claim)
	if len(late.first.list) != 1 {
		t.Errorf("%d arbitration messages wait, want the newest", len(late.first.list))
	}
	for _, o := range append(list, late) {
		o.close()
		o.bulk(message)
		o.urgent(claim)
	}
	if n := all.Held(); n != 0 {
		t.Errorf("%d bytes are counted of clients that have gone", n)
	}
}

// TestManyIdleTimeouts: entries that time out together are reported once each,
// in messages that any client can receive.
func TestManyIdleTimeouts(t *testing.T) {
	const n = 6000
	s := configured(t)
	var batch []*p4v1.Update
	for i := range n {
		e := exactEntry(t, "AllIngress.sources", "NoAction", nil, string(binary.BigEndian.AppendUint32([]byte{1}, uint32(i))))
		e.IdleTimeoutNs, e.Metadata = int64(time.Hour), []byte(fmt.Sprintf("entry %0200d", i))
		batch = append(batch, insert(t, e))
	}
	s.must(s.write(batch...))
	s.rig.server.mu.Lock()
	for _, e := range s.rig.server.running.tables[idOf(t, "AllIngress.sources")].entries {
		s.rig.server.running.must(s.rig.server.running.sw.Tables().SetIdleTimeout("AllIngress.sources", e.handle, time.Hour, -2*time.Hour))
	}
	s.rig.server.mu.Unlock()
	seen := map[string]int{}
	for len(seen) < n {
		m := s.next()
		list := m.GetIdleTimeoutNotification().GetTableEntry()
		if len(list) == 0 {
			t.Fatalf("got %v", m)
		}
		for _, e := range list {
			seen[string(e.GetMetadata())]++
		}
		if len(list) > n/4 {
			t.Errorf("a message has %d entries", len(list))
		}
	}
	for k, times := range seen {
		if times != 1 {
			t.Fatalf("%s is reported %d times", k, times)
		}
	}
}

// TestReadersPauseForWriters: while writes arrive, competing readers pause
// after their turns; a single reader does not.
func TestReadersPauseForWriters(t *testing.T) {
	for _, x := range []struct {
		name    string
		packets bool
		wrote   int64
		waiting int64
		want    time.Duration
	}{
		{"nothing comes", false, 0, 3, 0},
		{"packets, no other reader", true, 0, 0, 16},
		{"packets, competing readers", true, 0, 1, 64},
		{"writes, no other reader", false, math.MaxInt64, 0, 0},
		{"writes, competing readers", false, math.MaxInt64, 1, 16},
	} {
		turns := newTurns(func() bool { return x.packets })
		turns.wrote.Store(x.wrote)
		turns.waiting.Store(x.waiting)
		if got := turns.pause(); got != x.want {
			t.Errorf("%s: got %v, want %v", x.name, got, x.want)
		}
	}
	s := configured(t)
	s.must(s.write(insert(t, macEntry(t, "\x01"))))
	if s.rig.server.turns.wrote.Load() == 0 {
		t.Error("a write is not noted")
	}
}

// TestConnectionsTakeTurns: a connection's read waits for at most one read of
// each other connection.
func TestConnectionsTakeTurns(t *testing.T) { synctest.Test(t, testConnectionsTakeTurns) }

func testConnectionsTakeTurns(t *testing.T) {
	turns := newTurns(func() bool { return false })
	turns.free = make(chan struct{}, 1)
	turns.free <- struct{}{}
	had := make(chan string)
	begin := func(name string, line chan struct{}) {
		s := &readStream{P4Runtime_ReadServer: stillStream{}, turns: turns, connSem: line}
		go func() {
			s.begin()
			had <- name
			s.end()
		}()
	}
	crowd, other := make(chan struct{}, 1), make(chan struct{}, 1)
	for range 5 {
		begin("crowd", crowd)
	}
	synctest.Wait()
	begin("other", other)
	synctest.Wait() // it waits for the turn
	<-turns.free
	var order []string
	for range 6 {
		order = append(order, <-had)
	}
	if !slices.Contains(order[:2], "other") {
		t.Errorf("turns are had by %v, want the other second", order)
	}
}

// A stillStream is the stream of a client that does nothing.
type stillStream struct{ p4v1.P4Runtime_ReadServer }

func (stillStream) Context() context.Context { return context.Background() }

// TestLargeHeads: the headers of a call are limited.
func TestLargeHeads(t *testing.T) {
	r := newRig(t, Options{})
	r.primary()
	ask := func(size int) error {
		ctx := metadata.AppendToOutgoingContext(r.context(), "x", strings.Repeat("x", size))
		_, err := r.client.Capabilities(ctx, &p4v1.CapabilitiesRequest{})
		return err
	}
	if err := ask(8 << 10); err != nil {
		t.Errorf("a head of 8 KiB: %v", err)
	}
	if err := ask(20 << 10); err == nil {
		t.Error("a head of 20 KiB is taken")
	}
	if err := ask(0); err != nil {
		t.Errorf("the next call: %v", err)
	}
}

// TestIdleTimeoutsInOutbox: the entries of idle timeouts count with the memory that they take.
func TestIdleTimeoutsInOutbox(t *testing.T) {
	o, entries := newOutbox(1<<24, gate.NewBacklog(1<<30)), 0
	text := textOf(&p4v1.TableEntry{
		TableId: 33554433, Match: []*p4v1.FieldMatch{{FieldId: 1, FieldMatchType: &p4v1.FieldMatch_Exact_{Exact: &p4v1.FieldMatch_Exact{Value: []byte{1, 2, 3, 4}}}}},
		Action:        &p4v1.TableAction{Type: &p4v1.TableAction_Action{Action: &p4v1.Action{ActionId: 16777217, Params: []*p4v1.Action_Param{{ParamId: 1, Value: []byte{2}}}}}},
		IdleTimeoutNs: 1e9, Metadata: []byte("0123456789abcdef"),
	})
	for range 40 {
		m := &p4v1.IdleTimeoutNotification{}
		for range 2000 {
			m.TableEntry = append(m.TableEntry, text.message())
		}
		kept := len(o.rest.list)
		o.bulk(&p4v1.StreamMessageResponse{Update: &p4v1.StreamMessageResponse_IdleTimeoutNotification{IdleTimeoutNotification: m}})
		entries += 2000 * (len(o.rest.list) - kept)
	}
	// A decoded entry takes about 500 bytes.
	if entries < 1<<24/1000 || entries > 1<<24/250 || o.lost == 0 {
		t.Errorf("%d entries are kept in 16 MiB, %d messages are dropped", entries, o.lost)
	}
}
