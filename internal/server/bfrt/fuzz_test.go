package server

import (
	"bytes"
	"context"
	"hash"
	"hash/fnv"
	"slices"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"

	"github.com/p4lb/p4lb/internal/bfrt/wire"
	"github.com/p4lb/p4lb/internal/server/gate"
)

// A sink receives the responses of a read and hashes them if it has a hash.
type sink struct {
	grpc.ServerStream
	ctx    context.Context
	digest hash.Hash64
}

func (s sink) Context() context.Context { return s.ctx }

func (s sink) Send(m *wire.ReadResponse) error {
	if s.digest == nil {
		return nil
	}
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	s.digest.Write(b)
	return err
}

func (s sink) SendMsg(any) error { return nil }

// The kinds of what FuzzRequest has a chip take, by the first byte.
const (
	fuzzWrite   = iota
	fuzzLenient // a write that ignores missing entries and returns errors in the answer
	fuzzRead
	fuzzHear
	fuzzConfig
	fuzzSchema
	fuzzKinds
)

// FuzzRequest sends any request, or any schema, to a chip with a program. Nothing may
// panic or stay locked, and everything written can be read.
func FuzzRequest(f *testing.F) {
	program, err := chipProgram()
	if err != nil {
		f.Fatal(err)
	}
	r := newLimitedRig(f, gate.Limits{})
	seed := func(kind byte, m proto.Message) {
		b, err := proto.Marshal(m)
		r.must(err)
		f.Add(append([]byte{kind}, b...))
	}
	var all []*wire.Entity
	for _, tables := range []map[uint32]object{r.s.programs[0].tables, r.s.chip.tables} {
		for id, o := range tables {
			if o.head().schema.Name == "pipe.In.large" {
				continue // its 65,536 cells would be all that is done
			}
			all = append(all, &wire.Entity{Entity: &wire.Entity_TableEntry{TableEntry: &wire.TableEntry{TableId: id}}})
		}
	}
	slices.SortFunc(all, func(a, b *wire.Entity) int {
		return int(int64(a.GetTableEntry().GetTableId()) - int64(b.GetTableEntry().GetTableId()))
	})
	everything := &wire.ReadRequest{Target: everywhere, ClientId: 1, Entities: all}
	seed(fuzzRead, everything)
	seed(fuzzRead, &wire.ReadRequest{Target: everywhere, ClientId: 1, Entities: []*wire.Entity{
		{Entity: &wire.Entity_TableEntry{TableEntry: r.entry("In.seen", r.key("In.seen", 3), nil)}},
		{Entity: &wire.Entity_TableUsage{TableUsage: &wire.TableUsage{TableId: r.table("In.dmac").schema.ID}}},
	}})
	seed(fuzzHear, &wire.StreamMessageRequest{ClientId: 2, Update: &wire.StreamMessageRequest_Subscribe{Subscribe: &wire.Subscribe{}}})
	seed(fuzzConfig, &wire.SetForwardingPipelineConfigRequest{ClientId: 1, Config: []*wire.ForwardingPipelineConfig{{P4Name: "chip"}}})
	f.Add(append([]byte{fuzzSchema}, program.Schema...))
	entry := func(table string, k *wire.TableKey, d *wire.TableData) {
		for _, kind := range []wire.Update_Type{ins, mod, del} {
			seed(fuzzWrite+byte(kind)%2, &wire.WriteRequest{
				Target: everywhere, ClientId: 1, Atomicity: wire.WriteRequest_Atomicity(int32(kind) % 3),
				Updates: []*wire.Update{update(ins, r.entry(table, k, d)), update(kind, r.entry(table, k, d))},
			})
		}
	}
	entry("In.dmac", r.key("In.dmac", 7), r.data("In.dmac", "send", "port", 2))
	entry("In.members", r.key("In.members", 3), r.data("In.members", "spread_to", "port", 1))
	entry("In.groups", r.key("In.groups", 8), r.data("In.groups", "", "$ACTION_MEMBER_ID", []uint32{3}))
	entry("In.mixer", r.key("In.mixer", 1), r.data("In.mixer", "mix"))
	entry("In.tallies", r.key("In.tallies", 1), r.data("In.tallies", "tally", "index", 3))
	entry("In.rates", r.key("In.rates", 3), r.data("In.rates", "", "$METER_SPEC_CIR_KBPS", 1))
	entry("In.seen", r.key("In.seen", 3), r.data("In.seen", "", "first", 1, "second", 2))
	entry("In.sums", r.key("In.sums", 3), r.data("In.sums", "", "$COUNTER_SPEC_PKTS", 17))
	entry("$PORT", r.key("$PORT", 130), r.data("$PORT", "", "$SPEED", "BF_SPEED_10G"))
	entry("$mirror.cfg", r.key("$mirror.cfg", 5), r.data("$mirror.cfg", "$normal", "$session_enable", true))
	entry("$pre.node", r.key("$pre.node", 8), r.data("$pre.node", "", "$MULTICAST_RID", 5))
	entry("$pre.mgid", r.key("$pre.mgid", 3), r.data("$pre.mgid", "", "$MULTICAST_NODE_ID", []uint32{8}))

	plainly := context.Background()
	leniently := metadata.NewIncomingContext(plainly, metadata.Pairs("ignore_not_found", "1", "error_in_resp", "1", "deadline_sec", "60"))
	held := func() (uint64, error) {
		d := fnv.New64a()
		err := r.s.Read(everything, sink{ctx: leniently, digest: d})
		return d.Sum64(), err
	}
	newClient := func(id uint32, program string) *client {
		return &client{
			id: id, bound: program, gone: make(chan struct{}),
			outbox: &outbox{ready: make(chan struct{}, 1), room: r.s.opts.MaxPending, all: r.s.gate.Pending()},
		}
	}
	fresh, err := held()
	r.must(err)
	changed := false // by earlier inputs; loading a program takes longest, so only a change causes it
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) == 0 {
			return
		}
		kind, text := data[0]%fuzzKinds, data[1:]
		if changed {
			if err := r.s.Load(program); err != nil {
				t.Fatal(err)
			}
		}
		l := &r.s.clients // an earlier input may have dismissed or replaced the client
		l.mu.Lock()
		l.open[1] = newClient(1, "chip")
		l.mu.Unlock()
		changed = false
		written := func(err error) { changed = changed || err == nil }
		into := func(m proto.Message) bool { return proto.Unmarshal(text, m) == nil }
		switch kind {
		case fuzzWrite, fuzzLenient:
			m, ctx := new(wire.WriteRequest), plainly
			if kind == fuzzLenient {
				ctx = leniently
			}
			if !into(m) {
				return
			}
			for range 2 { // there is something now
				_, err := r.s.Write(ctx, m)
				written(err)
			}
		case fuzzRead:
			if m := new(wire.ReadRequest); into(m) {
				_ = r.s.Read(m, sink{ctx: leniently})
			}
			return
		case fuzzHear:
			if m := new(wire.StreamMessageRequest); into(m) {
				c := newClient(0, "")
				_ = r.s.hear(c, m, func(error) {})
				r.s.clients.leave(c)
				c.outbox.close()
			}
			return
		case fuzzConfig:
			m := new(wire.SetForwardingPipelineConfigRequest)
			if !into(m) {
				return
			}
			_, err := r.s.SetForwardingPipelineConfig(plainly, m)
			written(err)
		case fuzzSchema:
			if err := r.s.Load(Program{Name: "chip", Schema: bytes.Clone(text), Binary: program.Binary}); err != nil {
				return
			}
			changed = true
		}
		now, err := held()
		if err != nil && kind < fuzzRead {
			t.Errorf("after it not everything can be read: %v", err)
		}
		changed = changed || now != fresh // what failed in part has changed something, too
	})
}
