package server

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/p4lb/p4lb/internal/bfrt/wire"
)

// TestReadsThatNobodyTakes: reads end at their deadline if clients do not receive them.
func TestReadsThatNobodyTakes(t *testing.T) {
	r := newRig(t)
	r.s.opts.MaxStall = 50 * time.Millisecond
	all := &wire.ReadRequest{ClientId: r.client, Target: everywhere, Entities: []*wire.Entity{update(0, r.entry("In.large", nil, nil)).Entity}}
	var list []wire.ReadClient
	for range 12 {
		stream, err := r.c.Read(t.Context(), all)
		r.must(err)
		list = append(list, stream)
	}
	_, err := r.read(everywhere, r.entry("In.dmac", nil, nil))
	r.must(err)
	for _, stream := range list {
		for err = nil; err == nil; {
			_, err = stream.Recv()
		}
		// The client with the last turn loses its stream.
		if status.Code(err) != codes.DeadlineExceeded && !errors.Is(err, io.EOF) {
			t.Errorf("an answer that nobody takes: %v", err)
		}
	}
}

// TestReadersDelayNobody: while reads wait for clients that do not receive, other
// clients read and write. An entity that a read requests twice takes memory once.
func TestReadersDelayNobody(t *testing.T) {
	r := newRig(t) // whose reads may stall for longer than tests may take
	r.s.opts.MaxStall = time.Hour
	ctx, cancel := context.WithCancel(t.Context())
	all := &wire.ReadRequest{ClientId: r.client, Target: everywhere}
	for range 2000 {
		all.Entities = append(all.Entities, update(0, r.entry("In.large", nil, nil)).Entity)
	}
	for range 20 {
		stream, err := r.c.Read(ctx, all)
		r.must(err)
		_, err = stream.Recv() // it has begun
		r.must(err)
	}
	for n := range uint64(100) {
		r.must(r.write(everywhere, update(ins, r.entry("In.dmac", r.key("In.dmac", n), r.data("In.dmac", "send", "port", 1)))))
		_, err := r.read(everywhere, r.entry("In.dmac", r.key("In.dmac", n), nil))
		r.must(err)
	}
	if n := r.s.reads.Load(); n != 20 {
		t.Errorf("there are %d reads, want the 20 that nobody takes", n)
	}
	cancel()
	until(t, "the reads end", func() bool { return r.s.reads.Load() == 0 })
}

// TestWalkOfMany: a read of all entries continues while others change the table. It
// returns the entries that exist all the time exactly once.
func TestWalkOfMany(t *testing.T) {
	r := newRig(t)
	const many = 3 * walkSize
	var list []*wire.Update
	for n := range uint64(many) {
		list = append(list, update(ins, r.entry("In.dmac", r.key("In.dmac", n), r.data("In.dmac", "send", "port", 1))))
	}
	r.must(r.write(everywhere, list...))
	done := make(chan struct{})
	go func() {
		defer close(done)
		for n := uint64(0); n < many; n += 2 {
			if err := r.write(everywhere, update(del, r.entry("In.dmac", r.key("In.dmac", n), nil))); err != nil {
				t.Error(err)
			}
		}
	}()
	for ended := false; !ended; {
		select {
		case <-done:
			ended = true
		default:
		}
		got, err := r.read(everywhere, r.entry("In.dmac", nil, nil))
		r.must(err)
		odd := 0
		seen := map[string]bool{}
		for _, e := range got {
			key := string(mustMarshal(e.GetKey()))
			if seen[key] {
				t.Fatalf("%v comes twice", e.GetKey())
			}
			seen[key] = true
			if b := e.GetKey().GetFields()[0].GetExact().GetValue(); b[len(b)-1]%2 == 1 {
				odd++
			}
		}
		if odd != many/2 {
			t.Errorf("%d of the %d that stay", odd, many/2)
		}
	}
	if got, err := r.read(everywhere, r.entry("In.dmac", nil, nil)); err != nil || len(got) != many/2 {
		t.Errorf("%d entries are left, %v", len(got), err)
	}
}

// TestManyRefusals: the outcomes of a batch of maximum size fit into a message that
// clients accept.
func TestManyRefusals(t *testing.T) {
	r := newRig(t)
	if testing.Short() { // under the race detector each takes long
		r.s.opts.MaxUpdates = 2000
	}
	req := &wire.WriteRequest{ClientId: r.client, Target: everywhere}
	gone := update(del, r.entry("In.dmac", r.key("In.dmac", 77), nil))
	for range r.s.opts.MaxUpdates {
		req.Updates = append(req.Updates, gone)
	}
	_, err := r.c.Write(context.Background(), req)
	if s := status.Convert(err); s.Code() != codes.Unknown || len(s.Proto().Details) != len(req.Updates) {
		t.Errorf("got %.200v with %d details, want one for each of %d", err, len(s.Proto().Details), len(req.Updates))
	}
	req.Updates = append(req.Updates, gone)
	if _, err := r.c.Write(context.Background(), req); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("one more: %.200v", err)
	}
}
