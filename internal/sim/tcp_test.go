package sim

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// TestSlowStart compares the rounds of a connection with rounds computed by
// hand.
func TestSlowStart(t *testing.T) {
	for _, c := range []struct {
		name      string
		threshold int64
		segments  int64
		change    func(*Tuning)
		want      string
	}{
		{"doubles", never64, 14, func(u *Tuning) { u.Window = 2 }, `
			0: 0 1
			1: 2 3 4 5
			2: 6 7 8 9 10 11 12 13`},
		{"usual window", never64, 12, nil, `
			0: 0 1 2 3 4 5 6 7 8 9
			1: 10 11`},
		// At the threshold of 4, the window grows by one each round.
		{"congestion avoidance", 4 * segment, 22, func(u *Tuning) { u.Window = 2 }, `
			0: 0 1
			1: 2 3 4 5
			2: 6 7 8 9 10
			3: 11 12 13 14 15 16
			4: 17 18 19 20 21`},
		{"window of the receiver", never64, 9, func(u *Tuning) { u.Window, u.MaxWindow = 2, 3*segment }, `
			0: 0 1
			1: 2 3 4
			2: 5 6 7
			3: 8`},
		// Every other packet is acknowledged: the window grows by a half.
		{"delayed acknowledgments", never64, 10, func(u *Tuning) { u.Window, u.DelayedAck = 4, time.Millisecond }, `
			0: 0 1 2 3
			1: 4 5 6 7 8 9`},
	} {
		t.Run(c.name, func(t *testing.T) {
			w, s, _, _ := tcpCable(usual(t, c.change), c.segments*segment, false)
			s.threshold = c.threshold
			w.run(time.Second)
			if got, want := w.rounds(), strings.ReplaceAll(c.want, "\t", "")[1:]+"\n"; got != want {
				t.Errorf("sent\n%swant\n%s", got, want)
			}
		})
	}
}

// TestWindowGrowsOnlyIfItLimits keeps the window where it is while the
// application, or the NIC, sends less than it allows.
func TestWindowGrowsOnlyIfItLimits(t *testing.T) {
	u := usual(t, nil)
	s := newTCPSender(u, new(FlowStats), 100*segment, false)
	for i := range int64(50) {
		var p Packet
		if !s.ready(0) {
			t.Fatal("the window is closed")
		}
		s.emit(0, &p)
		s.receive(time.Millisecond, &Packet{Kind: Ack, Ack: (i + 1) * segment})
	}
	// The first acknowledgment looks like any of a full window.
	if s.window > 11*segment {
		t.Errorf("window of %d with one segment outstanding", s.window)
	}
}

// TestRecovery loses segments at given places. Ten are sent in the first window.
func TestRecovery(t *testing.T) {
	for _, c := range []struct {
		name                 string
		segments             int64
		lose                 []int // transmissions
		again                []int // segments, in the order they are sent again
		recoveries, timeouts int64
	}{
		{"nothing", 10, nil, nil, 0, 0},
		{"first", 30, []int{0}, []int{0}, 1, 0},
		{"middle", 30, []int{4}, []int{4}, 1, 0},
		{"two", 30, []int{3, 5}, []int{3, 5}, 1, 0},
		{"burst", 30, []int{2, 3, 4, 5, 6}, []int{2, 3, 4, 5, 6}, 1, 0},
		// All is known with the third duplicate, and no more will come.
		{"burst at the end", 10, []int{2, 3, 4, 5, 6}, []int{2, 3, 4, 5, 6}, 1, 0},
		{"every other", 30, []int{1, 3, 5, 7, 9}, []int{1, 3, 5, 7, 9}, 1, 0},
		// Nothing shows yet that 7 is lost when the window has room: rule 3.
		{"not known to be lost", 10, []int{2, 7}, []int{2, 7}, 1, 0},
		// The duplicate of one segment arrives, of two, of three.
		{"third from the end", 10, []int{7}, []int{7}, 0, 1},
		{"fourth from the end", 10, []int{6}, []int{6}, 1, 0},
		{"last but one", 10, []int{8}, []int{8}, 0, 1},
		{"last", 10, []int{9}, []int{9}, 0, 1},
		{"last of more", 30, []int{29}, []int{29}, 0, 1},
		{"three last", 10, []int{7, 8, 9}, []int{7, 8, 9}, 0, 1},
		{"only one", 1, []int{0}, []int{0}, 0, 1},
		{"all", 10, []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, 0, 1},
		// Segments 10 and 11 follow by limited transmit. Then 0 is sent again, as the
		// thirteenth, and only the timer detects its loss. Before that, with nothing left
		// to send, rule 4 sends the last segment again.
		{"retransmission", 30, []int{0, 12}, []int{0, 29, 0}, 1, 1},
		{"retransmission twice", 30, []int{0, 12, 32}, []int{0, 29, 0, 0}, 1, 2},
		{"rescue", 10, []int{3, 9}, []int{3, 9}, 1, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			// Patient senders do not mistake losses for reordering either.
			w, s, r, stats := tcpCable(usual(t, func(u *Tuning) { u.MaxDupAcks = 300 }), c.segments*segment, false)
			w.fate = losing(c.lose...)
			w.run(time.Second)
			if r.expected != s.size || s.una != s.size || stats.Acknowledged == 0 {
				t.Fatalf("arrived up to %d of %d", r.expected, s.size)
			}
			if got := w.again(); !slices.Equal(got, c.again) {
				t.Errorf("sent again %v, want %v\n%s", got, c.again, w.rounds())
			}
			if stats.Recoveries != c.recoveries || stats.Timeouts != c.timeouts {
				t.Errorf("%d recoveries, %d timeouts, want %d and %d", stats.Recoveries, stats.Timeouts, c.recoveries, c.timeouts)
			}
			if copies := int64(len(c.again) - len(c.lose)); stats.Duplicates != copies {
				t.Errorf("%d copies arrived, want %d", stats.Duplicates, copies)
			}
		})
	}
}

// TestTimeout blocks all packets for a while: the timer expires after three times 10 ms,
// and after twice as long each time from then on.
func TestTimeout(t *testing.T) {
	w, s, _, stats := tcpCable(usual(t, nil), 30*segment, false)
	w.fate = func(p *Packet, n int) []time.Duration {
		if w.now < 200*time.Millisecond {
			return nil
		}
		return []time.Duration{0}
	}
	w.run(time.Second)
	want := []time.Duration{30, 90, 210}
	var got []time.Duration
	for _, f := range w.sent[10:13] {
		got = append(got, f.at/time.Millisecond)
	}
	if !slices.Equal(got, want) || stats.Timeouts != 3 {
		t.Errorf("sent again after %v ms, want %v", got, want)
	}
	// The first timeout halves the outstanding bytes, the others do not.
	if s.threshold != 5*segment {
		t.Errorf("threshold of %d after three timeouts", s.threshold)
	}
	if s.rtt.rto != 10*time.Millisecond {
		t.Errorf("timeout of %v after round trips of 100 µs", s.rtt.rto)
	}
}

// TestLostRetransmissionHalvesWhatIsOut has the timeout after a lost
// retransmission halve the bytes in the network, not all bytes sent meanwhile.
func TestLostRetransmissionHalvesWhatIsOut(t *testing.T) {
	w, s, _, stats := tcpCable(usual(t, nil), 2000*segment, false)
	w.fate = losing(0, 12)
	for stats.Timeouts == 0 {
		w.run(w.now + time.Millisecond)
	}
	if sent := s.high / segment; sent < 500 {
		t.Fatalf("only %d segments sent before the timeout", sent)
	}
	if s.threshold > 3*segment { // the window was 6
		t.Errorf("threshold of %d", s.threshold)
	}
}

// TestRoundTrip compares the estimate with RFC 6298's, computed by hand.
func TestRoundTrip(t *testing.T) {
	var r roundTrip
	r.init(usual(t, func(u *Tuning) { u.MinRTO = time.Microsecond }))
	for _, c := range []struct{ sample, smooth, varies, rto time.Duration }{
		{800, 800, 400, 2400},
		{1600, 900, 500, 2900},
		{900, 900, 375, 2400},
	} {
		r.sample(c.sample * time.Microsecond)
		if r.smooth != c.smooth*time.Microsecond || r.varies != c.varies*time.Microsecond || r.rto != c.rto*time.Microsecond {
			t.Errorf("after %d µs: %v, %v, %v, want %+v", c.sample, r.smooth, r.varies, r.rto, c)
		}
	}
}

// TestReordering delays the first segment behind others.
func TestReordering(t *testing.T) {
	for _, c := range []struct {
		overtaken                    int
		again                        []int
		outOfOrder, degree, overtook int64
		dupAcks, run                 int64
	}{
		{0, []int{}, 0, 0, 0, 0, 0},
		{1, []int{}, 1, 1, 1, 1, 1},
		{2, []int{}, 2, 2, 1, 2, 2},
		{3, []int{0}, 3, 3, 1, 4, 3}, // the copy is acknowledged as well
	} {
		w, _, _, stats := tcpCable(usual(t, nil), 30*segment, false)
		w.spacing = time.Microsecond
		w.fate = func(p *Packet, n int) []time.Duration {
			if p.Kind == data && n == 0 && c.overtaken > 0 {
				return []time.Duration{time.Duration(c.overtaken)*time.Microsecond + 500}
			}
			return []time.Duration{0}
		}
		w.run(time.Second)
		if got := w.again(); !slices.Equal(got, c.again) {
			t.Errorf("overtaken by %d: sent again %v", c.overtaken, got)
		}
		if stats.OutOfOrder != c.outOfOrder || stats.Degree != c.degree || stats.Overtaken != c.overtook {
			t.Errorf("overtaken by %d: counted %+v", c.overtaken, stats)
		}
		if stats.DupAcks != c.dupAcks || stats.DupRun != c.run || stats.Duplicates != int64(len(c.again)) {
			t.Errorf("overtaken by %d: %d duplicate acknowledgments, %d in a row, %d copies", c.overtaken, stats.DupAcks, stats.DupRun, stats.Duplicates)
		}
	}
}

// TestDupAckThreshold makes a connection patient.
func TestDupAckThreshold(t *testing.T) {
	w, _, _, _ := tcpCable(usual(t, func(u *Tuning) { u.DupAcks = 5 }), 9*segment, false)
	w.spacing = time.Microsecond
	w.fate = func(p *Packet, n int) []time.Duration {
		if p.Kind == data && n == 0 {
			return []time.Duration{4500}
		}
		return []time.Duration{0}
	}
	w.run(time.Second)
	if got := w.again(); len(got) > 0 {
		t.Errorf("sent again %v, overtaken by less than the threshold", got)
	}
}

// TestPatience: five segments overtake one, three times. An adaptive sender retransmits
// the first time, restores its window, and waits the other times.
func TestPatience(t *testing.T) {
	for _, c := range []struct {
		most     int
		again    int
		patience int
		halved   bool
	}{{0, 3, 3, true}, {4, 3, 4, false}, {300, 1, 6, false}} {
		w, s, _, stats := tcpCable(usual(t, func(u *Tuning) { u.MaxDupAcks = c.most }), 200*segment, false)
		w.spacing = time.Microsecond
		w.fate = func(p *Packet, n int) []time.Duration {
			if p.Kind == data && p.Number == 0 && slices.Contains([]int64{0, 40, 80}, p.Seq/segment) {
				return []time.Duration{5500}
			}
			return []time.Duration{0}
		}
		w.run(time.Second)
		if got := w.again(); len(got) != c.again || s.dupThreshold != c.patience || stats.Timeouts > 0 {
			t.Errorf("up to %d: sent again %v, patience %d, %d timeouts", c.most, got, s.dupThreshold, stats.Timeouts)
		}
		if halved := s.threshold < never64; halved != c.halved {
			t.Errorf("up to %d: the threshold of slow start is %d in the end", c.most, s.threshold)
		}
	}
}

// TestLostAcks retransmits nothing, because later acknowledgments are cumulative.
func TestLostAcks(t *testing.T) {
	w, s, _, stats := tcpCable(usual(t, nil), 100*segment, false)
	w.fate = func(p *Packet, n int) []time.Duration {
		if p.Kind == Ack && n%3 != 2 && p.Ack < s.size {
			return nil
		}
		return []time.Duration{0}
	}
	w.run(time.Second)
	if stats.Retransmitted != 0 || s.una != s.size {
		t.Errorf("%d segments sent again, %d acknowledged", stats.Retransmitted, s.una)
	}
}

// arrive hands segments to a receiver and returns its answers.
func arrive(r *tcpReceiver, segments ...int64) []Packet {
	var list []Packet
	for _, i := range segments {
		r.receive(0, &Packet{Seq: i * segment, Payload: segment})
		for r.ready(0) {
			var a Packet
			r.emit(0, &a)
			list = append(list, a)
		}
	}
	return list
}

// TestSACK compares the blocks with RFC 2018: the latest segment's comes
// first, then those reported last.
func TestSACK(t *testing.T) {
	r := newTCPReceiver(usual(t, nil), new(FlowStats))
	block := func(from, to int64) Range { return Range{from * segment, to * segment} }
	for i, c := range []struct {
		segment, ack int64
		blocks       []Range
	}{
		{0, 1, nil},
		{2, 1, []Range{block(2, 3)}},
		{4, 1, []Range{block(4, 5), block(2, 3)}},
		{8, 1, []Range{block(8, 9), block(4, 5), block(2, 3)}},
		{6, 1, []Range{block(6, 7), block(8, 9), block(4, 5)}},
		{3, 1, []Range{block(2, 5), block(6, 7), block(8, 9)}},
		{3, 1, []Range{block(2, 5), block(6, 7), block(8, 9)}}, // a copy
		{1, 5, []Range{block(6, 7), block(8, 9)}},
		{7, 5, []Range{block(6, 9)}},
		{5, 9, nil},
	} {
		a := arrive(r, c.segment)
		if len(a) != 1 || a[0].Ack != c.ack*segment || !slices.Equal(a[0].Sacks[:a[0].NSacks], c.blocks) {
			t.Errorf("%d, segment %d: %+v, want %d and %v", i, c.segment, a, c.ack, c.blocks)
		}
	}
}

// TestDelayedAck acknowledges every other segment, a single one when the time is
// up, and out-of-order segments at once.
func TestDelayedAck(t *testing.T) {
	r := newTCPReceiver(usual(t, func(u *Tuning) { u.DelayedAck = time.Millisecond }), new(FlowStats))
	if got := arrive(r, 0); len(got) != 0 || r.deadline() != time.Millisecond {
		t.Errorf("the first segment: %+v, deadline %v", got, r.deadline())
	}
	if got := arrive(r, 1); len(got) != 1 || got[0].Ack != 2*segment || r.deadline() != never {
		t.Errorf("the second: %+v", got)
	}
	arrive(r, 2)
	if r.tick(time.Millisecond - 1); r.ready(0) {
		t.Error("acknowledged before the time is up")
	}
	if r.tick(time.Millisecond); !r.ready(0) {
		t.Error("not acknowledged when the time is up")
	}
	r.emit(0, new(Packet))
	if got := arrive(r, 4); len(got) != 1 {
		t.Errorf("out of order: %+v", got)
	}
	if got := arrive(r, 3); len(got) != 1 || got[0].Ack != 5*segment {
		t.Errorf("a gap filled: %+v", got)
	}
}
