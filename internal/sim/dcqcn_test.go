package sim

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

const µs = time.Microsecond

// TestReactionAlpha compares alpha, which is updated only when it is read, with a value
// that is updated in each interval.
func TestReactionAlpha(t *testing.T) {
	u := usual(t, nil)
	random := rand.New(rand.NewPCG(3, 4))
	r := newReaction(&u.RDMA, 40e9)
	r.notice(0)
	alpha, seen, next := 1.0, true, 1*µs
	for now := time.Duration(0); now < 3000*µs; now += time.Duration(random.Int64N(int64(20 * µs))) {
		for ; next <= now; next += µs {
			alpha *= 1 - 1.0/256
			if seen {
				alpha += 1.0 / 256
			}
			seen = false
		}
		if random.IntN(3) == 0 {
			r.notice(now)
			seen = true
		} else {
			r.settle(now)
		}
		if math.Abs(r.alpha-alpha) > 1e-9 {
			t.Fatalf("at %v: %v, want %v", now, r.alpha, alpha)
		}
	}
}

// TestReaction follows the rate through reductions and raises, by hand. The NIC
// has 10 Gb/s, so R_AI is 4 Mb/s.
func TestReaction(t *testing.T) {
	u := usual(t, func(u *Tuning) { u.RDMA.Gain = 0.5 })
	r := newReaction(&u.RDMA, 10e9)
	r.notice(10 * µs)
	if r.rate != 10e9 || r.deadline() != 14*µs {
		t.Fatalf("rate %v, deadline %v after a notification", r.rate, r.deadline())
	}
	r.notice(11 * µs) // in the same interval of reductions
	check := func(rate, target float64, deadline time.Duration) {
		t.Helper()
		if math.Abs(r.rate-rate) > 1 || math.Abs(r.target-target) > 1 || r.deadline() != deadline {
			t.Errorf("rate %v, target %v, deadline %v, want %v, %v, %v", r.rate, r.target, r.deadline(), rate, target, deadline)
		}
	}
	// Alpha: 1 at 10 and 11 µs, with a notification in both intervals, then
	// without for two.
	r.tick(14 * µs)
	check(10e9*(1-0.25/2), 10e9, 314*µs)
	r.tick(314 * µs) // fast recovery
	check(9.375e9, 10e9, 614*µs)
	r.tick(614 * µs) // additive increase, but the target is the line's rate
	check(9.6875e9, 10e9, 914*µs)
	r.notice(700 * µs)
	r.tick(702 * µs)
	if r.target != 9.6875e9 {
		t.Errorf("target %v after raises and a reduction", r.target)
	}
	before := r.rate
	r.notice(703 * µs)
	r.tick(706 * µs)
	if r.target != 9.6875e9 || r.rate >= before {
		t.Errorf("target %v, rate %v after a second reduction without raises", r.target, r.rate)
	}
	target := 9.6875e9
	for i, step := range []float64{0, 4e6, 10e6, 10e6} { // fast recovery, additive, hyper
		r.tick(r.deadline())
		target += step
		if math.Abs(r.target-target) > 1 {
			t.Errorf("target %v after %d raises, want %v", r.target, i+1, target)
		}
	}
}

// TestReactionFloor keeps the rate at the minimum, however many notifications
// come.
func TestReactionFloor(t *testing.T) {
	u := usual(t, nil)
	r := newReaction(&u.RDMA, 10e9)
	for now := time.Duration(0); now < 200*µs; now += µs {
		r.notice(now)
		r.tick(now)
	}
	if r.rate != 100e6 {
		t.Errorf("rate of %v", r.rate)
	}
}

// TestGoBack loses packets: the sender repeats all from the missing one on.
func TestGoBack(t *testing.T) {
	for _, c := range []struct {
		name     string
		lose     []int
		again    []int
		nacks    int64
		timeouts int64
	}{
		{"nothing", nil, []int{}, 0, 0},
		{"first", []int{0}, []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, 1, 0},
		{"middle", []int{6}, []int{6, 7, 8, 9}, 1, 0},
		{"last", []int{9}, []int{9}, 0, 1},
		// Packet 6 is repeated as the eleventh.
		{"twice", []int{6, 10}, []int{6, 7, 8, 9, 6, 7, 8, 9}, 2, 0},
		{"all", []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, 0, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			var stats FlowStats
			u := usual(t, func(u *Tuning) { u.RDMA.NackEvery = 30 * µs })
			s, r := newDCQCNSender(u, &stats, 10*segment, 10e9), newGoBackReceiver(u, &stats)
			w := &cable{a: s, b: r, delay: 50 * µs, spacing: µs, fate: losing(c.lose...)}
			w.run(time.Second)
			if r.expected != s.size || s.una != s.size {
				t.Fatalf("arrived up to %d", r.expected)
			}
			if got := w.again(); !slices.Equal(got, c.again) || stats.Nacks != c.nacks || stats.Timeouts != c.timeouts {
				t.Errorf("sent again %v after %d Nacks and %d timeouts, want %v, %d, %d", got, stats.Nacks, stats.Timeouts, c.again, c.nacks, c.timeouts)
			}
		})
	}
}

// TestStaleNack: a sender that expects Nacks in order ignores a Nack for a packet that
// has arrived since.
func TestStaleNack(t *testing.T) {
	var stats FlowStats
	u := usual(t, func(u *Tuning) { u.RDMA.Nack = GoBackOnExpected })
	s := newDCQCNSender(u, &stats, 10*segment, 10e9)
	for s.ready(0) {
		s.emit(0, new(Packet))
	}
	s.receive(0, &Packet{Kind: Ack, Ack: 5 * segment})
	s.receive(0, &Packet{Kind: nack, Ack: 3 * segment})
	if s.next != s.size || stats.Nacks != 0 {
		t.Errorf("goes on with %d after a Nack of what is acknowledged", s.next)
	}
	s.receive(0, &Packet{Kind: nack, Ack: 6 * segment}) // and acknowledges packet 5
	if s.next != 6*segment || stats.Nacks != 1 {
		t.Errorf("goes on with %d after a Nack of 6", s.next)
	}
}

// TestNackInterval repeats a Nack for the same packet only so often.
func TestNackInterval(t *testing.T) {
	r := newGoBackReceiver(usual(t, nil), new(FlowStats))
	var got []time.Duration
	for now := time.Duration(0); now < 10*µs; now += µs {
		r.receive(now, &Packet{Seq: segment, Payload: segment})
		for r.ready(now) {
			var a Packet
			r.emit(now, &a)
			if a.Kind == nack && a.Ack == 0 {
				got = append(got, now)
			}
		}
	}
	if want := []time.Duration{0, 4 * µs, 8 * µs}; !slices.Equal(got, want) {
		t.Errorf("Nacks at %v, want %v", got, want)
	}
}

// TestNotices limits the rate of congestion notices, also for packets that are not
// acknowledged.
func TestNotices(t *testing.T) {
	r := newGoBackReceiver(usual(t, func(u *Tuning) { u.RDMA.NoticeEvery, u.RDMA.AckEvery = 50*µs, 100 }), new(FlowStats))
	var got []time.Duration
	for i := range int64(200) {
		now := time.Duration(i) * µs
		r.receive(now, &Packet{Seq: i * segment, Payload: segment, CE: i >= 20})
		for r.ready(now) {
			var a Packet
			if r.emit(now, &a); a.Echo {
				got = append(got, now)
			}
			if onlyNotice := a.Kind == cnp; onlyNotice == ((i+1)%100 == 0) {
				t.Errorf("kind %v at %v", a.Kind, now)
			}
		}
	}
	if want := []time.Duration{20 * µs, 70 * µs, 120 * µs, 170 * µs}; !slices.Equal(got, want) {
		t.Errorf("notifications at %v, want %v", got, want)
	}
}

// TestNoticesOfAnswered: a mark on a packet that comes early too soon for another
// Nack makes a notice of its own, or none.
func TestNoticesOfAnswered(t *testing.T) {
	for _, answered := range []bool{false, true} {
		r := newGoBackReceiver(usual(t, func(u *Tuning) { u.RDMA.Answered = answered }), new(FlowStats))
		var got []Kind
		for i, seq := range []int64{1, 2, 0} { // a Nack, one too soon, and the missing packet
			r.receive(time.Duration(i)*µs, &Packet{Seq: seq * segment, Payload: segment, CE: true})
			for r.ready(0) {
				var a Packet
				if r.emit(0, &a); a.Echo {
					got = append(got, a.Kind)
				}
			}
		}
		want := map[bool][]Kind{false: {nack, cnp, Ack}, true: {nack, Ack}}[answered]
		if !slices.Equal(got, want) {
			t.Errorf("%t: notices with %v, want %v", answered, got, want)
		}
	}
}

// TestPace spreads packets by the rate.
func TestPace(t *testing.T) {
	var stats FlowStats
	u := usual(t, nil)
	s := newDCQCNSender(u, &stats, 5*segment, 10e9)
	s.r.rate = 1e9
	w := &cable{a: s, b: newGoBackReceiver(u, &stats), delay: 50 * µs}
	w.run(time.Second)
	gap := time.Duration((segment + UDPHeaders) * 8) // ns at 1 Gb/s
	for i, f := range w.sent {
		if f.at != time.Duration(i)*gap {
			t.Errorf("packet %d at %v, want %v", i, f.at, time.Duration(i)*gap)
		}
	}
}
