package server

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/p4lb/p4lb/bfrt/wire"
)

// TestReadsThatNobodyTakes: they hold so many answers, for so long, and then it
// is others' turn.
func TestReadsThatNobodyTakes(t *testing.T) {
	r := newRig(t)
	r.s.opts.MaxStall = 50 * time.Millisecond
	all := &wire.ReadRequest{ClientId: r.client, Target: everywhere, Entities: []*wire.Entity{update(0, r.entry("In.large", nil, nil)).Entity}}
	var list []wire.ReadClient
	for range 3 * maxAnswers {
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
		// Whose turn came last was taken here.
		if status.Code(err) != codes.DeadlineExceeded && !errors.Is(err, io.EOF) {
			t.Errorf("an answer that nobody takes: %v", err)
		}
	}
}

// TestManyRefusals: what a batch as large as one may be is answered with fits
// what clients take.
func TestManyRefusals(t *testing.T) {
	r := newRig(t)
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
