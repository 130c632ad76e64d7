package model

import "testing"

// The constants of the tests: a round trip of 4 us without queues.
var weave = ConWeave{Reply: 4_000, PathBusy: 16_000, Resume: 16_000, Inactive: 300_000, Wait: 200_000, Queues: 24}

const weaveRTT = 4_000

// A pathsInTurn draws paths in a fixed order.
type pathsInTurn []WovenPath

func (l *pathsInTurn) draw() WovenPath {
	p := (*l)[0]
	*l = (*l)[1:]
	return p
}

// TestWovenEpochs follows the epochs of a flow in the source ToR: a timely reply keeps its
// path, a late one makes a TAIL, and CLEAR or a pause begins the next epoch.
func TestWovenEpochs(t *testing.T) {
	s := WovenSource[int]{ConWeave: weave}
	f := Flow{Src: 1, Dst: 2}
	paths := pathsInTurn{3, 5, 7}
	send := func(now int64, want WovenHeader) {
		t.Helper()
		want.Sent = now
		if got := s.Send(f, 1, now, weaveRTT, paths.draw); got != want {
			t.Errorf("at %d: %+v, want %+v", now, got, want)
		}
	}
	send(1_000, WovenHeader{Path: 3, Epoch: 1, Request: true})
	send(2_000, WovenHeader{Path: 3, Epoch: 1})
	s.TakeReply(f, 1, 6_000) // before 1,000 + 4,000 + 4,000
	send(7_000, WovenHeader{Path: 3, Epoch: 2, Request: true})
	s.TakeReply(f, 1, 8_000) // of the epoch before
	send(15_000, WovenHeader{Path: 3, Epoch: 2})
	s.TakeReply(f, 2, 15_500) // late: the cut-off was 15,000
	send(16_000, WovenHeader{Path: 3, Epoch: 2, Tail: true, TailSent: 16_000})
	send(17_000, WovenHeader{Path: 5, Epoch: 2, Rerouted: true, TailSent: 16_000})
	send(90_000, WovenHeader{Path: 5, Epoch: 2, Rerouted: true, TailSent: 16_000}) // not again before CLEAR
	s.TakeReply(f, 2, 90_100)
	send(90_200, WovenHeader{Path: 5, Epoch: 2, Rerouted: true, TailSent: 16_000})
	s.TakeClear(f, 2)
	send(91_000, WovenHeader{Path: 5, Epoch: 3, Request: true})
	send(391_001, WovenHeader{Path: 7, Epoch: 4, Request: true}) // 300,001 later
	if len(paths) > 0 {
		t.Errorf("%d paths were not drawn", len(paths))
	}
}

// TestWovenBusy avoids a path for theta_path_busy after NOTIFY, for its leaf alone. With two
// busy paths a flow keeps its own.
func TestWovenBusy(t *testing.T) {
	s := WovenSource[int]{ConWeave: weave}
	begin := func(src uint32, leaf int, now int64, paths ...WovenPath) WovenPath {
		list := pathsInTurn(paths)
		return s.Send(Flow{Src: src}, leaf, now, weaveRTT, list.draw).Path
	}
	s.TakeNotify(1, 3, 1_000)
	s.TakeNotify(1, 4, 1_000)
	for i, c := range []struct {
		leaf  int
		now   int64
		paths []WovenPath
		want  WovenPath
	}{
		{1, 2_000, []WovenPath{3, 5}, 5},
		{1, 2_000, []WovenPath{5}, 5},
		{1, 2_000, []WovenPath{3, 4}, 3}, // it has none yet: the first
		{2, 2_000, []WovenPath{3}, 3},
		{1, 16_999, []WovenPath{3, 5}, 5},
		{1, 17_000, []WovenPath{3}, 3},
	} {
		if got := begin(uint32(i), c.leaf, c.now, c.paths...); got != c.want {
			t.Errorf("case %d: path %d, want %d", i, got, c.want)
		}
	}
	s.TakeNotify(1, 3, 400_000)
	s.TakeNotify(1, 4, 400_000)
	if got := begin(1, 1, 400_001, 3, 4); got != 5 {
		t.Errorf("with two busy paths: %d, want the flow's own, 5", got)
	}
}

// TestWovenOrder follows the packets of an epoch at the destination ToR: REROUTED ones that
// come before the TAIL wait for it.
func TestWovenOrder(t *testing.T) {
	f := Flow{Src: 1, Dst: 2}
	old := func(sent int64) WovenHeader { return WovenHeader{Epoch: 1, Sent: sent} }
	tail := WovenHeader{Epoch: 1, Sent: 9_000, Tail: true, TailSent: 9_000}
	rerouted := WovenHeader{Epoch: 1, Sent: 9_500, Rerouted: true, TailSent: 9_000}
	next := WovenHeader{Epoch: 2, Sent: 20_000, Request: true}
	type step struct {
		now    int64
		h      WovenHeader
		marked bool
		full   bool // no free queue
		want   Arrival
	}
	for name, steps := range map[string][]step{
		"in order": {
			{now: 10_000, h: old(8_000)},
			{now: 11_000, h: tail, want: Arrival{Clear: true}},
			{now: 12_000, h: rerouted},
			{now: 22_000, h: next, want: Arrival{Reply: true}},
		},
		"overtaking": {
			{now: 10_000, h: old(7_000), marked: true, want: Arrival{Notify: true}},
			// The TAIL should come at 10,000 + (9,000 - 7,000).
			{now: 10_500, h: rerouted, want: Arrival{Hold: true, Deadline: 28_000}},
			{now: 10_600, h: rerouted, want: Arrival{Hold: true}},
			// The old path has become slower: at 14,000 + (9,000 - 8,000).
			{now: 14_000, h: old(8_000), want: Arrival{Deadline: 31_000}},
			{now: 15_500, h: tail, want: Arrival{Clear: true, After: true}},
			{now: 15_600, h: rerouted},
		},
		"without an estimate": {
			{now: 10_000, h: rerouted, want: Arrival{Hold: true, Deadline: 226_000}},
		},
		"late for its estimate": {
			{now: 10_000, h: old(8_000)},
			{now: 50_000, h: rerouted, want: Arrival{Hold: true, Deadline: 50_000}},
		},
		"no free queue": {
			{now: 10_000, h: old(8_000)},
			{now: 10_500, h: rerouted, full: true},
			{now: 10_600, h: rerouted, want: Arrival{Hold: true, Deadline: 27_000}},
		},
		"next epoch": {
			{now: 10_500, h: rerouted, want: Arrival{Hold: true, Deadline: 226_500}},
			{now: 22_000, h: next, want: Arrival{Before: true, Reply: true}},
			{now: 23_000, h: tail}, // of the epoch before
		},
	} {
		s := WovenSink{ConWeave: weave}
		for i, c := range steps {
			if got := s.Take(f, &c.h, c.marked, !c.full, c.now); got != c.want {
				t.Errorf("%s, packet %d: %+v, want %+v", name, i, got, c.want)
			}
		}
	}

	s := WovenSink{ConWeave: weave}
	s.Take(f, &rerouted, false, true, 10_000)
	s.Resumed(f) // at its deadline
	if got := s.Take(f, &rerouted, false, true, 300_000); got != (Arrival{}) {
		t.Errorf("after the deadline: %+v, want no queue", got)
	}
}

// TestWovenForgets checks that the ToRs only remember flows that send.
func TestWovenForgets(t *testing.T) {
	source, sink := WovenSource[int]{ConWeave: weave}, WovenSink{ConWeave: weave}
	var now int64
	for i := range uint32(20 * smallTable) {
		now += 10_000 // 200 flows in keptSink
		h := source.Send(Flow{Src: i}, 1, now, weaveRTT, func() WovenPath { return 0 })
		sink.Take(Flow{Src: i}, &h, false, true, now)
	}
	if len(source.flows.flows) > 2*smallTable || len(sink.flows.flows) > 2*smallTable {
		t.Errorf("%d and %d flows are kept", len(source.flows.flows), len(sink.flows.flows))
	}
	// A flow that both have forgotten begins again with epoch 1, and is not held for old.
	f := Flow{Src: 1 << 30}
	for range 3 {
		now += keptSource + 1
		h := source.Send(f, 1, now, weaveRTT, func() WovenPath { return 0 })
		if a := sink.Take(f, &h, false, true, now); h.Epoch != 1 || !a.Reply {
			t.Errorf("epoch %d, answered with %+v", h.Epoch, a)
		}
	}
}
