package sim

import (
	"math"
	"slices"
	"testing"
	"time"
)

// TestEcho echoes the mark of every packet, with and without delayed
// acknowledgments: there, a change of marks is acknowledged at once, for the packets before
// it (RFC 8257, Figure 1).
func TestEcho(t *testing.T) {
	type answer struct {
		ack  int64
		echo bool
	}
	marks := []bool{false, true, true, true, false, false, true}
	for _, c := range []struct {
		name  string
		delay time.Duration
		want  []answer
	}{
		{"at once", 0, []answer{{1, false}, {2, true}, {3, true}, {4, true}, {5, false}, {6, false}, {7, true}}},
		{"delayed", time.Millisecond, []answer{{1, false}, {3, true}, {4, true}, {6, false}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newTCPReceiver(usual(t, func(u *Tuning) { u.DelayedAck = c.delay }), new(FlowStats))
			var got []answer
			for i, ce := range marks {
				r.receive(0, &Packet{Seq: int64(i) * segment, Payload: segment, CE: ce})
				for r.ready(0) {
					var a Packet
					r.emit(0, &a)
					got = append(got, answer{a.Ack / segment, a.Echo})
				}
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("%v, want %v", got, c.want)
			}
		})
	}
}

// TestAlpha compares DCTCP's estimate and window with values computed by hand.
func TestAlpha(t *testing.T) {
	s := newTCPSender(usual(t, func(u *Tuning) { u.Gain = 0.25 }), new(FlowStats), 1000*segment, true)
	s.threshold = 10 * segment // in congestion avoidance from the beginning
	var at int64
	round := func(segments, marked int64) {
		for s.ready(0) {
			s.emit(0, new(Packet))
		}
		for i := range segments {
			at += segment
			s.receive(0, &Packet{Kind: Ack, Ack: at, Echo: i >= segments-marked})
		}
	}
	check := func(alpha float64, window int64) {
		t.Helper()
		if math.Abs(s.share.alpha-alpha) > 1e-12 || s.window != window {
			t.Errorf("alpha %v, window %d, want %v and %d", s.share.alpha, s.window, alpha, window)
		}
	}
	// The first acknowledgment ends the first window: a quarter less alpha.
	round(10, 0)
	check(0.75, 11*segment)
	// The first of these eleven acknowledgments ends a window without marks. The
	// last one is marked and reduces the window by alpha/2.
	round(11, 1)
	check(0.5625, 7907) // 11000 - 3093
	// The first of these ends a window of eleven segments, one of them marked.
	round(7, 0)
	check(0.5625*0.75+0.25/11, 7907)
}

// TestDCTCPWindow expects one reduction for a window of data, whether one packet
// is marked or all, and no growth in that window.
func TestDCTCPWindow(t *testing.T) {
	for _, marked := range []int64{1, 10} {
		s := newTCPSender(usual(t, nil), new(FlowStats), 1000*segment, true)
		for s.ready(0) {
			s.emit(0, new(Packet))
		}
		for i := range int64(10) {
			s.receive(0, &Packet{Kind: Ack, Ack: (i + 1) * segment, Echo: i < marked})
		}
		if s.window != 5*segment || s.threshold != 5*segment {
			t.Errorf("window %d, threshold %d after %d marks", s.window, s.threshold, marked)
		}
	}
}

// TestCutEachWindow: alpha begins at 0, a mark ends slow start, and alpha reduces the
// window at the end of each window of data, even without a mark.
func TestCutEachWindow(t *testing.T) {
	s := newTCPSender(usual(t, func(u *Tuning) { u.Gain, u.AlphaFromZero, u.CutEachWindow = 0.5, true, true }), new(FlowStats), 1000*segment, true)
	var at int64
	round := func(marked bool) {
		for s.ready(0) {
			s.emit(0, new(Packet))
		}
		for end := s.high; at < end; {
			at += segment
			s.receive(0, &Packet{Kind: Ack, Ack: at, Echo: marked})
		}
	}
	round(false)
	if s.window != 20*segment || s.share.alpha != 0 {
		t.Fatalf("window %d, alpha %v after a window in slow start", s.window, s.share.alpha)
	}
	// The first acknowledgment ends a window of ten and is the only marked one; later
	// ones increase the window by a segment.
	round(true)
	if s.window != 20500 || s.threshold != 19500 || s.share.alpha != 0.5*0.1 {
		t.Fatalf("window %d, threshold %d, alpha %v after the first marks", s.window, s.threshold, s.share.alpha)
	}
}
