package server

import (
	"slices"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/p4lb/p4lb/internal/bfrt/wire"
	"github.com/p4lb/p4lb/internal/server/gate"
)

// A batch with rollback clears a cell or all cells of a register. If a later update fails,
// the cells have their values again, in each pipe.
func TestClearsOfRegister(t *testing.T) {
	r := newRig(t)
	const table = "In.seen"
	for n := range uint32(4) {
		r.must(r.write(pipe(n), update(mod, r.entry(table, r.key(table, 3), r.data(table, "", "first", int(n)+20)))))
	}
	first := func(what string, want ...uint64) {
		t.Helper()
		if got := r.values(table, r.get(everywhere, table, r.key(table, 3)), "first"); !slices.Equal(got, want) {
			t.Errorf("%s: the pipes hold %d, want %d", what, got, want)
		}
	}
	for what, key := range map[string]*wire.TableKey{"one cell": r.key(table, 3), "all cells": nil} {
		r.undone(update(del, r.entry(table, key, nil)))
		first(what+" cleared and undone", 20, 21, 22, 23)
	}
	_, err := r.c.Write(t.Context(), &wire.WriteRequest{
		Target: pipe(1), ClientId: r.client, Atomicity: wire.WriteRequest_ROLLBACK_ON_ERROR, Updates: []*wire.Update{update(del, r.entry(table, nil, nil))},
	})
	r.must(err)
	first("all cells of pipe 1 cleared", 20, 7, 22, 23)
	r.undone(update(mod, r.entry("In.sums", r.key("In.sums", 3), r.data("In.sums", "", "$COUNTER_SPEC_PKTS", 5))), update(del, r.entry("In.sums", nil, nil)))
	if n := r.values("In.sums", r.get(everywhere, "In.sums", r.key("In.sums", 3)), "$COUNTER_SPEC_PKTS"); !slices.Equal(n, []uint64{0}) {
		t.Errorf("a counter has %d", n)
	}
}

// A scope of all pipes ends a scope of single pipes: an entry is in all pipes again.
func TestScopeOfAllPipes(t *testing.T) {
	r := newRig(t)
	const table = "In.dmac"
	entry := r.entry(table, r.key(table, 1), r.data(table, "send", "port", 2))
	for _, m := range []*wire.Mode{{Scope: &wire.Mode_Predef{Predef: wire.Mode_ALL}}, {}} {
		r.scoped(table, 0)
		r.must(r.write(everywhere, r.attribute(table, &wire.TableAttribute{Attribute: &wire.TableAttribute_EntryScope{EntryScope: &wire.EntryScope{PipeScope: m}}})))
		r.must(r.write(everywhere, update(ins, entry)))
		if n := r.usage(table); n != 1 {
			t.Errorf("an entry of all pipes counts %d times", n)
		}
		for _, from := range []uint32{1, 130} {
			r.send(from, frame(1, 0, 0))
			r.leaves(2)
		}
		r.set(del, table, nil, nil)
	}
}

// An application may use the last channel, and a trigger may make 65536 packets.
func TestLimitsOfApplications(t *testing.T) {
	r := newProgramRig(t, generating2, gate.Limits{})
	r.buffer(0, 16)
	r.sends(7)
	r.must(r.app(pipe(0), 2, "trigger_timer_one_shot", "timer_nanosec", 1000, "pkt_len", 1, "pkt_buffer_offset", 0, "assigned_chnl_id", 7, "app_enable", true))
	if got, want := r.arrivals(1)[0], "0007 020000000000 a0"; got != want {
		t.Errorf("of channel 7: %s, want %s", got, want)
	}
	limits := func(batches, packets, length, offset int) error {
		return r.app(pipe(0), 3, "trigger_timer_one_shot", "timer_nanosec", 4_000_000_000, "pkt_len", length, "pkt_buffer_offset", offset, "assigned_chnl_id", 7,
			"batch_count_cfg", batches-1, "packets_per_batch_cfg", packets-1, "pipe_local_source_port", 71, "app_enable", true)
	}
	r.must(limits(256, 256, 16, 16<<10-16))
	if code := r.codeOf(limits(256, 257, 16, 0)); code != codes.ResourceExhausted {
		t.Errorf("65792 packets: %v", code)
	}
	if code := r.codeOf(limits(1, 1, 17, 16<<10-16)); code != codes.InvalidArgument {
		t.Errorf("a packet beyond the buffer: %v", code)
	}
}

// A key of cells names one index by an exact value. Other keys are refused.
func TestBadKeysOfCells(t *testing.T) {
	r := newRig(t)
	for _, table := range []string{"In.seen", "In.sums"} {
		id := r.table(table).keys[0].id
		for what, test := range map[string]struct {
			key  []*wire.KeyField
			code codes.Code
			says string
		}{
			"another field": {[]*wire.KeyField{{FieldId: 77, MatchType: &wire.KeyField_Exact_{Exact: &wire.KeyField_Exact{Value: be(4, 1)}}}}, codes.NotFound, "there is no key field 77"},
			"a mask":        {[]*wire.KeyField{{FieldId: id, MatchType: &wire.KeyField_Ternary_{Ternary: &wire.KeyField_Ternary{Value: be(4, 1), Mask: be(4, 1)}}}}, codes.InvalidArgument, "wants an exact value"},
			"two bytes":     {[]*wire.KeyField{{FieldId: id, MatchType: &wire.KeyField_Exact_{Exact: &wire.KeyField_Exact{Value: be(2, 1)}}}}, codes.InvalidArgument, "has 2 bytes, want 4"},
			"no field":      {nil, codes.InvalidArgument, "the key lacks"},
		} {
			r.refused(table+", "+what, update(del, r.entry(table, &wire.TableKey{Fields: test.key}, nil)), test.code, test.says)
		}
	}
}

// A read of the keys of rows names the target and has no data.
func TestKeysOfRows(t *testing.T) {
	r := newRig(t)
	const table = "$mirror.cfg"
	r.set(ins, table, r.key(table, 5), r.data(table, "$normal", "$session_enable", true))
	for _, key := range []*wire.TableKey{nil, r.key(table, 5)} {
		e := r.entry(table, key, nil)
		e.TableFlags = &wire.TableFlags{KeyOnly: true}
		for _, target := range []*wire.TargetDevice{everywhere, pipe(2)} {
			list, err := r.read(target, e)
			r.must(err)
			if len(list) != 1 || list[0].GetData() != nil || !proto.Equal(list[0].GetEntryTgt(), target) || !proto.Equal(list[0].GetKey(), r.key(table, 5)) {
				t.Errorf("rows %v, want the key 5 of the target %v", list, target)
			}
		}
	}
	if d := r.get(everywhere, table, r.key(table, 5)); d == nil {
		t.Error("a read of a row has no data")
	}
}

// A seed alone changes the hash of the program's algorithm. Another field needs an algorithm.
func TestSeedOfHash(t *testing.T) {
	r := newHashRig(t)
	const table = "In.quick.algorithm"
	_, own := r.now()
	r.must(r.write(everywhere, r.byDefault(mod, table, r.data(table, "", "seed", 0x1234))))
	if _, seeded := r.now(); seeded == own || uint64(seeded) != r.computed("quick") {
		t.Errorf("with a seed the hash is %#x, without %#x, computed %#x", seeded, own, r.computed("quick"))
	}
	r.refused("a seed and another field", r.byDefault(mod, table, r.data(table, "", "seed", 1, "extend", true)), codes.InvalidArgument, "the data names no algorithm")
	r.must(r.write(everywhere, r.byDefault(del, table, nil)))
	if _, again := r.now(); again != own {
		t.Errorf("after a deletion the hash is %#x, want %#x", again, own)
	}
}

// Only a row that exists has a handle, and only a whole key names a row.
func TestHandlesOfRows(t *testing.T) {
	r := newRig(t)
	const table = "$mirror.cfg"
	r.set(ins, table, r.key(table, 5), r.data(table, "$normal", "$session_enable", true))
	for want, key := range map[codes.Code]*wire.TableKey{codes.OK: r.key(table, 5), codes.NotFound: r.key(table, 6), codes.InvalidArgument: {}} {
		_, code := r.ask(everywhere, &wire.Entity{Entity: &wire.Entity_Handle{Handle: &wire.HandleId{TableId: r.table(table).schema.ID, Value: &wire.HandleId_Key{Key: key}}}})
		if code != want {
			t.Errorf("key %v: %v, want %v", key, code, want)
		}
	}
}
