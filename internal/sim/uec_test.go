package sim

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// uecCable joins the halves of a connection over a line of 100 Gb/s, with a base round
// trip of 5 µs.
func uecCable(t *testing.T, size int64, change func(*Tuning)) (*cable, *uecSender, *uecReceiver, *FlowStats) {
	u := usual(t, func(u *Tuning) {
		u.UEC.BaseRTT, u.MinRTO = 5*µs, 50*µs
		if change != nil {
			change(u)
		}
	})
	u.law = newWindowLaw(u, 100e9)
	c := new(FlowStats)
	s, r := newUECSender(u, c, size), newUECReceiver(u, c)
	return &cable{a: s, b: r, delay: 2 * µs, spacing: 85 * time.Nanosecond}, s, r, c
}

// TestUECConstants compares NSCC's constants with those that uet-htsim (40ccb05) prints
// for packets of 4,160 bytes, 100 Gb/s and a round trip of 5.35168 µs.
func TestUECConstants(t *testing.T) {
	u := Tuning{Segment: 4096, UEC: UEC{BaseRTT: 5352 * time.Nanosecond}}
	u, err := u.tuned(100e9, 4096)
	if err != nil {
		t.Fatal(err)
	}
	w := newWindow(newWindowLaw(&u, 100e9))
	for _, c := range []struct {
		name      string
		got, want float64
	}{
		{"target_Qdelay", float64(w.target), 4013.760},
		{"alpha", w.alpha, 0.608902},
		{"fi", w.fair, 9133.53},
		{"eta", w.eta, 274.006},
		{"fi_scale", w.fast, 0.111493},
		{"maxwnd", float64(w.most), 100344},
		{"cwnd", float64(w.size), 100344},
		{"min_cwnd", float64(w.least), 4160},
	} {
		if math.Abs(c.got/c.want-1) > 2e-4 {
			t.Errorf("%s: %g: want %g", c.name, c.got, c.want)
		}
	}
}

// TestUECWindow checks the four effects of an acknowledgment, with the constants of the
// previous test.
func TestUECWindow(t *testing.T) {
	u := Tuning{Segment: 4096, UEC: UEC{BaseRTT: 5352 * time.Nanosecond, window: 10}}
	u, err := u.tuned(100e9, 4096)
	if err != nil {
		t.Fatal(err)
	}
	w := newWindow(newWindowLaw(&u, 100e9))
	rtt := func(delay time.Duration) time.Duration { return w.base + delay }
	w.adjusted = 100 * µs
	w.roundEnds = time.Second
	w.acked(100*µs, false, rtt(2*µs), 4160, 0)
	if want := 0.608902 * 4160 * 2013.76; math.Abs(w.gain/want-1) > 1e-3 {
		t.Errorf("proportional increase: %g: want %g", w.gain, want)
	}
	w.gain = 0
	w.acked(101*µs, false, rtt(5*µs), 4160, 0)
	if want := 9133.53 * 4160; math.Abs(w.gain/want-1) > 1e-3 {
		t.Errorf("fair increase: %g: want %g", w.gain, want)
	}
	before := w
	w.acked(102*µs, true, rtt(2*µs), 4160, 0)
	if w.size != before.size || w.gain != before.gain {
		t.Errorf("a mark below the target: window %d to %d", before.size, w.size)
	}
	w.delay = 8 * µs
	w.acked(103*µs, true, rtt(8*µs), 4160, 0)
	if want := 41600 * (1 - 0.8*(8-4.014)/8); math.Abs(float64(w.size)/want-1) > 1e-3 {
		t.Errorf("decrease: window %d: want %g", w.size, want)
	}
	before = w
	w.acked(104*µs, true, rtt(8*µs), 4160, 0)
	if w.size != before.size {
		t.Error("a second decrease within a round trip")
	}
	// The round ends with 4,160 bytes and a trimmed packet.
	w.roundEnds, w.achieved = 104*µs, 4160
	w.nacked(105*µs, 4160, 30000)
	if w.size != 4160 || w.toIgnore != 30000 {
		t.Errorf("quick adapt: window %d, %d bytes to ignore: want 4160 and 30000", w.size, w.toIgnore)
	}
}

// TestUECAcks checks the reasons for an acknowledgment, and its bitmap.
func TestUECAcks(t *testing.T) {
	_, _, r, c := uecCable(t, 100*segment, nil)
	arrive := func(psn int64, change func(*Packet)) *Packet {
		p := Packet{Seq: psn * segment, Payload: segment}
		if change != nil {
			change(&p)
		}
		r.receive(0, &p)
		if !r.ready(0) {
			return nil
		}
		var a Packet
		r.emit(0, &a)
		return &a
	}
	if a := arrive(0, nil); a == nil || a.Ack != 1 || a.report().received != 1064 {
		t.Fatalf("the first packet is answered by %+v: want an acknowledgment at once", a)
	}
	for _, psn := range []int64{1, 2, 5, 70} {
		if a := arrive(psn, nil); a != nil {
			t.Fatalf("packet %d is acknowledged at once", psn)
		}
	}
	a := arrive(71, func(p *Packet) { p.CE = true })
	if a == nil || !a.Echo || a.Ack != 3 || a.report() != (uecReport{71, 1, 6 * 1064, 3}) {
		t.Fatalf("a marked packet is answered by %+v", a)
	}
	if a := arrive(72, func(p *Packet) { p.Trimmed, p.Payload = trimmedEarlier, 0 }); a == nil || a.Kind != nack || a.Seq != 72 || a.Trimmed != trimmedEarlier {
		t.Fatalf("a trimmed packet is answered by %+v: want a Nack of 72", a)
	}
	if a := arrive(70, func(p *Packet) { p.Trimmed, p.Payload = trimmedEarlier, 0 }); a == nil || a.Kind != Ack || a.report().base != 7 || a.report().bitmap != 1<<63 {
		t.Fatalf("a trimmed copy is answered by %+v: want an acknowledgment of packets 7 to 70", a)
	}
	if a := arrive(5, nil); a == nil || c.Duplicates != 1 || a.report().base != 4 || a.report().bitmap != 2 {
		t.Fatalf("a copy is answered by %+v: want an acknowledgment of packet 5", a)
	}
	arrive(3, nil)
	if a := arrive(4, func(p *Packet) { p.Echo = true }); a == nil || a.Ack != 6 || r.early != 2 {
		t.Fatalf("the missing packet is answered by %+v: want all before 6", a)
	}
}

// TestUECLosses sends over a line that trims, loses, copies and delays packets. All bytes
// arrive once, and with trims nothing waits for the timer.
func TestUECLosses(t *testing.T) {
	for loss := UECTrim; loss <= uecGap; loss++ {
		for control := nsccControl; control <= constantWnd; control++ {
			for seed := range uint64(20) {
				random := rand.New(rand.NewPCG(seed, uint64(loss)))
				size := 1 + random.Int64N(300*segment)
				w, s, r, c := uecCable(t, size, func(u *Tuning) { u.UEC.Loss, u.UEC.Control = loss, control })
				w.fate = func(p *Packet, _ int) []time.Duration {
					switch x := random.IntN(100); {
					case x < 5 && p.Kind == data && loss == UECTrim:
						p.Trimmed, p.Payload = trimmedEarlier, 0
					case x < 5 && loss != UECTrim:
						return nil
					case x < 10:
						return []time.Duration{0, 3 * µs}
					case x < 15:
						return []time.Duration{time.Duration(random.IntN(4000))}
					}
					return []time.Duration{0}
				}
				w.run(time.Second)
				if r.c.Received != size || c.Acknowledged == 0 || s.again != 0 || s.deadline() != never {
					t.Fatalf("loss %d, control %d, seed %d: %d of %d bytes, %+v", loss, control, seed, r.c.Received, size, c)
				}
				if loss == UECTrim && c.Timeouts > 0 {
					t.Errorf("seed %d: %d timeouts although packets are only trimmed", seed, c.Timeouts)
				}
				if loss == UECTrim && c.Retransmitted > c.Trimmed {
					t.Errorf("seed %d: %d packets sent again, %d trimmed", seed, c.Retransmitted, c.Trimmed)
				}
			}
		}
	}
}

// TestUECRepeatWithoutAck: with credit, too, a repeated packet asks for an acknowledgment, or its
// timer expires before the receiver has AckBytes bytes to acknowledge.
func TestUECRepeatWithoutAck(t *testing.T) {
	_, s, _, _ := uecCable(t, 100*segment, func(u *Tuning) { u.UEC.Control = UECCredit })
	var first, again Packet
	s.emit(0, &first)
	s.receive(5*µs, &Packet{Kind: grant, Ack: 10 * segment})
	s.receive(5*µs, &Packet{Kind: nack, Seq: 0, Trimmed: trimmedEarlier})
	s.emit(6*µs, &again)
	if again.Seq != 0 || first.Echo || !again.Echo {
		t.Errorf("packet %d asks for an acknowledgment: %v, repeated as %d: %v: want only the repeated one to", first.Seq/segment, first.Echo, again.Seq/segment, again.Echo)
	}
}

// TestCreditRepeatsTotal: a higher target requests a grant although earlier grants cover it. Each
// such grant takes its time, so that receivers grant less than their line while senders have
// credit left.
func TestCreditRepeatsTotal(t *testing.T) {
	h := &Host{net: &Network{}, nic: &Port{}}
	c := &creditor{flow: &Flow{Dst: h}, target: 1024, granted: 4096}
	if c.heed(&Packet{Ack: 1024}); c.queued {
		t.Error("the same target again requests a grant")
	}
	if c.heed(&Packet{Ack: 2048}); !c.queued || c.target != 2048 {
		t.Errorf("target %d, requests a grant: %v: want a request for 2048", c.target, c.queued)
	}
}

// TestCreditGrants: a grant has up to 16 KiB for packets of any size.
func TestCreditGrants(t *testing.T) {
	h := &Host{net: &Network{}, nic: &Port{rate: 100e9}}
	var totals []int64
	c := &creditor{flow: &Flow{Dst: h, FlowStats: &FlowStats{}}, send: func(total int64) { totals = append(totals, total) }}
	c.heed(&Packet{Ack: 20 << 10})
	for range 3 { // the rest of the target, then credit beyond it
		h.creditors.ring()
	}
	if want := []int64{16 << 10, 20 << 10, 36 << 10}; !slices.Equal(totals, want) {
		t.Errorf("grants up to %d: want %d", totals, want)
	}
}

// TestThrottle: receivers in an oversubscribed fabric lower the rate of grants by trims on shared
// links and by a lasting share of marks above 0.3, and raise it by 1, 2, 4 % and so on.
func TestThrottle(t *testing.T) {
	u := UEC{BaseRTT: 10 * µs, Oversubscription: 2}
	h := newThrottle(&u, stream(1, "test"))
	decide := func(all, trimmed, last, marked int) float64 {
		for i := range all {
			p := &Packet{CE: i < marked}
			if i >= all-trimmed {
				p.Trimmed = trimmedEarlier
			} else if i >= all-trimmed-last {
				p.Trimmed = trimmedAtLast
			}
			h.count(p)
		}
		h.pass(h.next)
		return math.Round(h.share*1e4) / 1e4
	}
	for i, c := range []struct {
		all, trimmed, last, marked int
		share, marks               float64
	}{
		{10, 0, 0, 0, 1, 0},
		{10, 1, 0, 0, 0.9, 0},          // one of ten is trimmed
		{10, 0, 5, 0, 0.91, 0},         // on the link to the host: no reason to slow down
		{10, 0, 0, 0, 0.93, 0},         // twice the increase
		{10, 0, 0, 1, 0.94, 0.05},      // marks keep the increase small
		{10, 0, 0, 0, 1, 0.025},        // 0.08 more
		{10, 0, 0, 10, 0.8938, 0.5125}, // (0.5125 - 0.3)/2 less
		{10, 9, 0, 0, 0.45, 0.2563},    // 0.9 of a fair share at least
		{0, 0, 0, 0, 0.46, 0.1281},
	} {
		if share := decide(c.all, c.trimmed, c.last, c.marked); share != c.share || math.Abs(h.marks-c.marks) > 1e-4 {
			t.Errorf("interval %d: share %g, marks %.4f: want %g, %g", i, share, h.marks, c.share, c.marks)
		}
	}
	h.pass(h.next + time.Second) // idle for a long time
	if h.share != 1 || h.marks != 0 || h.next < time.Second {
		t.Errorf("after a second without packets: share %g, marks %g, next decision after %v", h.share, h.marks, h.next)
	}
}

// TestCreditMost: a round trip shorter than the base RTT does not reduce the credit.
func TestCreditMost(t *testing.T) {
	_, s, _, _ := uecCable(t, 1000*segment, func(u *Tuning) { u.UEC.Control = UECCredit })
	most := s.credit.most
	s.w.fastest(s.w.base / 4)
	s.receive(5*µs, &Packet{Kind: grant, Ack: 2 * most})
	if s.credit.bytes != most {
		t.Errorf("%d bytes of credit: want %d", s.credit.bytes, most)
	}
}

// TestUECGap repeats a lost packet without its timer, once packets of a window and a half
// have arrived behind it.
func TestUECGap(t *testing.T) {
	w, _, _, c := uecCable(t, 400*segment, func(u *Tuning) { u.UEC.Loss, u.MinRTO = uecGap, time.Second })
	w.fate = losing(20)
	w.run(100 * time.Millisecond)
	if c.Recoveries == 0 || c.Timeouts > 0 || c.Acknowledged == 0 || c.Acknowledged > 200*µs {
		t.Errorf("%+v: want a recovery", c)
	}
}
