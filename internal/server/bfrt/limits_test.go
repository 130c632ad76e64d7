package server

import (
	"context"
	"runtime"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/p4lb/p4lb/internal/bfrt/wire"
	"github.com/p4lb/p4lb/internal/server/gate"
)

// until waits until is returns true.
func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !is(); runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within %v", what, patience)
		}
	}
}

// TestReadThatNobodyTakes ends when its time is over.
func TestReadThatNobodyTakes(t *testing.T) {
	r := newLimitedRig(t, gate.Limits{MaxStall: 300 * time.Millisecond})
	alone := func() bool { return r.s.gate.Calls() == 1 } // but for the stream of the client
	until(t, "what came before has ended", alone)
	large := r.entry("In.large", nil, nil)
	stream, err := r.c.Read(context.Background(), &wire.ReadRequest{
		Target: everywhere, ClientId: 1, Entities: []*wire.Entity{{Entity: &wire.Entity_TableEntry{TableEntry: large}}},
	})
	r.must(err)
	header := make(chan error, 1) // the read has begun once its header is there
	go func() {
		_, err := stream.Header()
		header <- err
	}()
	r.must(<-header)
	until(t, "the read ends", alone)
	for err == nil {
		_, err = stream.Recv()
	}
	if status.Code(err) != codes.DeadlineExceeded {
		t.Errorf("got %v, want DEADLINE_EXCEEDED", err)
	}
	if list, err := r.read(everywhere, r.entry("In.large", r.key("In.large", 7), nil)); err != nil || len(list) != 1 {
		t.Errorf("the next read: %d cells, %v", len(list), err)
	}
}

// A faultyTable cannot be read.
type faultyTable struct{ object }

func (faultyTable) read(*request, *wire.TableEntry) error { panic("it cannot be read") }

// TestFault: a read that panics is answered with INTERNAL, and leaves nothing locked.
func TestFault(t *testing.T) {
	r := newRig(t)
	broken := r.entry("In.large", nil, nil)
	r.s.mu.Lock()
	tables := r.s.programs[0].tables
	tables[broken.TableId] = faultyTable{tables[broken.TableId]}
	r.s.mu.Unlock()
	r.faults.wanted.Store(1)
	if _, err := r.read(everywhere, broken); status.Code(err) != codes.Internal {
		t.Errorf("got %v, want INTERNAL", err)
	}
	if r.faults.wanted.Load() != 0 {
		t.Error("the log says nothing of it")
	}
	if err := r.write(everywhere, update(ins, r.entry("In.dmac", r.key("In.dmac", 1), r.data("In.dmac", "send", "port", 1)))); err != nil {
		t.Errorf("the next write: %v", err)
	}
}

// TestTooMuch: requests beyond the limits are refused, without any effect.
func TestTooMuch(t *testing.T) {
	r := newLimitedRig(t, gate.Limits{MaxUpdates: 2, MaxCalls: 3, MaxControllers: 2, MaxMessage: 1 << 20})
	add := func(n uint64) *wire.Update {
		return update(ins, r.entry("In.dmac", r.key("In.dmac", n), r.data("In.dmac", "send", "port", 1)))
	}
	want := func(what string, err error, code codes.Code) {
		t.Helper()
		if status.Code(err) != code {
			t.Errorf("%s: %v, want %v", what, err, code)
		}
	}
	want("three updates", r.write(everywhere, add(1), add(2), add(3)), codes.ResourceExhausted)
	if n := r.size("In.dmac"); n != 0 {
		t.Errorf("%d entries of a batch that was refused", n)
	}
	r.must(r.write(everywhere, add(1), add(2)))

	_, err := r.c.SetForwardingPipelineConfig(context.Background(), &wire.SetForwardingPipelineConfigRequest{
		ClientId: 1, Action: wire.SetForwardingPipelineConfigRequest_VERIFY, Config: []*wire.ForwardingPipelineConfig{{P4Name: "chip", BfruntimeInfo: make([]byte, 2<<20)}},
	})
	want("a message of 2 MiB", err, codes.ResourceExhausted)

	subscribe := func(client uint32) wire.StreamClient {
		t.Helper()
		ctx, cancel := context.WithCancel(context.Background())
		t.Cleanup(cancel)
		s, err := r.c.StreamChannel(ctx)
		r.must(err)
		r.must(s.Send(&wire.StreamMessageRequest{ClientId: client, Update: &wire.StreamMessageRequest_Subscribe{Subscribe: &wire.Subscribe{}}}))
		return s
	}
	calls := func(n int) func() bool { return func() bool { return r.s.gate.Calls() == n } }
	until(t, "what came before has ended", calls(1))
	first := subscribe(2)
	if m, err := first.Recv(); err != nil || m.GetSubscribe().GetStatus().GetCode() != int32(codes.OK) {
		t.Errorf("the second client: %v, %v", m, err)
	}
	second := subscribe(3)
	if m, err := second.Recv(); err != nil || m.GetSubscribe().GetStatus().GetCode() != int32(codes.ResourceExhausted) {
		t.Errorf("the third client: %v, %v", m, err)
	}
	// Three streams are all the calls that there may be.
	want("a fourth call", r.write(everywhere, add(9)), codes.ResourceExhausted)
	if n := r.s.gate.Calls(); n != 3 {
		t.Errorf("%d calls are counted, want 3", n)
	}
}

// The limit of reads counts the reads in progress.
func TestMostReads(t *testing.T) {
	r := newLimitedRig(t, gate.Limits{MaxReads: 2})
	for _, c := range []struct {
		others int64
		want   codes.Code
	}{{1, codes.OK}, {2, codes.ResourceExhausted}} {
		r.s.reads.Add(c.others)
		_, err := r.read(everywhere, r.entry("In.dmac", nil, nil))
		if r.s.reads.Add(-c.others); status.Code(err) != c.want {
			t.Errorf("beside %d reads: %v, want %v", c.others, err, c.want)
		}
		until(t, "the read ends", func() bool { return r.s.reads.Load() == 0 })
	}
}

// TestStopEndsBatches: a server that stops does not continue batches or reads.
func TestStopEndsBatches(t *testing.T) {
	r := newRig(t)
	e := r.entry("In.dmac", r.key("In.dmac", 1), r.data("In.dmac", "send", "port", 1))
	r.must(r.write(everywhere, update(ins, e)))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r.s.Stop(ctx)
	req := &wire.WriteRequest{Target: everywhere, P4Name: "chip", Updates: []*wire.Update{update(del, r.entry("In.dmac", r.key("In.dmac", 1), nil))}}
	if _, err := r.s.Write(t.Context(), req); status.Code(err) != codes.Unavailable {
		t.Errorf("got %v, want UNAVAILABLE", err)
	}
	if list, err := r.s.pipes[0].Tables().Entries("In.dmac"); err != nil || len(list) != 1 {
		t.Errorf("there are %d entries, want the one from before: %v", len(list), err)
	}
}

// TestPace: messages of all streams take turns, and old messages do not delay new ones.
func TestPace(t *testing.T) {
	var p pace
	now := time.Unix(1e9, 0)
	for i := range 100 {
		if got, want := p.turn(now), time.Duration(i)*heardEvery; got != want {
			t.Errorf("message %d waits %v, want %v", i, got, want)
		}
	}
	if got, want := p.turn(now.Add(50*heardEvery)), 50*heardEvery; got != want {
		t.Errorf("one that comes in between waits %v, want %v", got, want)
	}
	if got := p.turn(now.Add(time.Second)); got != 0 {
		t.Errorf("one that comes later waits %v", got)
	}
}

// TestChatter: a client that subscribes again and again is notified each time, and keeps
// the subscription, like a client that subscribes once.
func TestChatter(t *testing.T) {
	r := newRig(t)
	for range 5 * heardAtOnce {
		r.must(r.stream.Send(&wire.StreamMessageRequest{ClientId: 1, Update: &wire.StreamMessageRequest_Subscribe{Subscribe: &wire.Subscribe{}}}))
	}
	for range 5 * heardAtOnce {
		if m := r.hear(); m.GetSubscribe().GetStatus().GetCode() != 0 {
			t.Fatalf("a subscription was answered with %v", m)
		}
	}
	r.set(ins, "In.dmac", r.key("In.dmac", 1), r.data("In.dmac", "send", "port", 1))
}
