package fitting

import (
	"math"
	"testing"
	"time"
)

// qdapsPaper is the network of QDAPS IV: 1 Gbps, 100 us, K = 65 of 256 packets,
// with a flow of web search's mean.
var qdapsPaper = QDAPS{C: 1e9 / 8 / 1500, RTT: 100e-6, K: 65, Y: 1.6e6 / 1460, Cap: 256}

func TestQDAPS(t *testing.T) {
	q := qdapsPaper
	if r1 := q.r1(); math.Abs(r1-0.75*q.C) > 1e-6 {
		t.Errorf("r_1 is %g, not 3/4 of %g", r1, q.C)
	}
	if got, want := q.Closed(), math.Sqrt(1.6*q.Y)-q.C*q.RTT; math.Abs(got-want) > 1e-9 || math.Abs(got-33.54) > 0.01 {
		t.Errorf("S is %g, want %g", got, want)
	}
	s, err := q.Numeric()
	if err != nil {
		t.Fatal(err)
	}
	if d := q.Stay() - q.Move(s); math.Abs(d) > 1e-12 {
		t.Errorf("FCT_1 - FCT_2 is %g at S = %g", d, s)
	}
	if q.Move(s+1) <= q.Stay() || q.Move(s-1) >= q.Stay() {
		t.Errorf("S = %g is not the largest", s)
	}
	q.Printed = true
	if p, err := q.Numeric(); err != nil || p <= s {
		t.Errorf("as printed S is %g, corrected %g, %v", p, s, err)
	}
	// The limits of the queue.
	short := QDAPS{C: 1e6, RTT: 1e-3, K: 65, Y: 10, Cap: 256}
	if got := short.Closed(); got != 2 {
		t.Errorf("S is %g", got)
	}
	if _, err := short.Numeric(); err == nil {
		t.Error("a flow of 10 packets is rerouted")
	}
	long := QDAPS{C: 1e5, RTT: 1e-4, K: 65, Y: 1e9, Cap: 256}
	if s, err := long.Numeric(); long.Closed() != 255 || s != 255 || err != nil {
		t.Errorf("S is %g, %g, %v", long.Closed(), s, err)
	}
}

// TestQDAPSClosedForm derives Eq. 14: it is FCT_1 = FCT_2 with r_2 at its limit
// and the rate of the second phase between half of r_2 and r_2.
func TestQDAPSClosedForm(t *testing.T) {
	q := qdapsPaper
	for _, y := range []float64{500, 1000, 5000, 50_000} {
		q.Y, q.Cap = y, 1e9
		r1, r2 := q.r1(), 1.5*q.C
		w := q.Closed() + q.C*q.RTT
		s1, s2 := w*w/2, 3*w*w/8
		move := s1/r1 + s2/(0.75*r2) + (y-s1-s2)/r2
		if math.Abs(move-q.Stay()) > 1e-12*q.Stay() {
			t.Errorf("Y = %g: FCT_2 %g, FCT_1 %g", y, move, q.Stay())
		}
	}
}

func TestRLB(t *testing.T) {
	at := func(rate, n float64) RLB {
		return RLB{N: n, C: rate / 8, D: 2e-6, QPFC: 256e3, TRC: 300e-9, MTU: 1500}
	}
	for _, c := range []struct{ rate, most float64 }{{40e9, 25}, {100e9, 10}} {
		r := at(c.rate, c.most)
		if low, high, take := r.Threshold(); low > high || take != low || r.Senders() != int(c.most) {
			t.Errorf("%g senders at %g: [%g, %g], %d", c.most, c.rate, low, high, r.Senders())
		}
		r.N++
		if low, high, _ := r.Threshold(); low <= high {
			t.Errorf("%g senders at %g: [%g, %g] is not empty", r.N, c.rate, low, high)
		}
	}
	fast := RLB{N: 30, C: 800e9 / 8, D: 2e-6, QPFC: 256e3}
	if _, _, take := fast.Threshold(); take != 128e3 {
		t.Errorf("takes %g, not half of the PFC threshold", take)
	}
	r := at(40e9, 9)
	// (256000 - 100000 - 8·5e9·300e-9) / 1500 = 144000/1500
	if packets, each := r.Recirculations(100e3); packets != 96 || each != 8 {
		t.Errorf("%d and %d", packets, each)
	}
	if packets, each := r.Recirculations(242e3); packets != 1 || each != 1 {
		t.Errorf("%d and %d", packets, each)
	}
	if packets, each := r.Recirculations(255e3); packets != 0 || each != 0 {
		t.Errorf("%d and %d", packets, each)
	}
}

// TestPDLBCurve: in the network of PDLB's Fig. 3 the model's completion time
// falls with the granularity first, then rises.
func TestPDLBCurve(t *testing.T) {
	for _, x := range []float64{3, 6} {
		for _, bad := range []int{1, 2, 4} {
			p := PDLB{M: 8, Bad: bad, Good: 100e-6, X: x, C: 1e9 / 8 / 1500, Buffer: 250, Size: 10_000, Flows: 10}
			gran, fct, err := p.Granularity()
			if err != nil {
				t.Fatal(err)
			}
			if gran <= 1 || gran >= MaxGranularity {
				t.Errorf("%d bad, X = %g: the best granularity is at the end, %d", bad, x, gran)
			}
			if p.FCT(1) < 1.05*fct || p.FCT(MaxGranularity) < 1.5*fct {
				t.Errorf("%d bad, X = %g: FCT %g, %g, %g is no U", bad, x, p.FCT(1), fct, p.FCT(MaxGranularity))
			}
		}
	}
}

// TestPDLBFlow: every granularity is equally good for a flow that fits into the first
// window, but not for the flow size of the paper.
func TestPDLBFlow(t *testing.T) {
	for _, c := range []struct {
		size float64
		want int
	}{{100, 1}, {1000, 1}, {PDLBFlow, MaxGranularity}} {
		p := PDLB{M: 8, Bad: 1, Good: 100e-6, X: 3, C: 10e9 / 8 / 1500, Buffer: 200, Size: c.size}
		if gran, _, err := p.Granularity(); err != nil || gran != c.want {
			t.Errorf("%g packets: granularity %d, %v, want %d", c.size, gran, err, c.want)
		}
	}
}

func TestPDLB(t *testing.T) {
	p := PDLB{M: 8, Bad: 2, Good: 100e-6, X: 3, C: 1e5, Buffer: 250, Size: 1e4}
	// Eq. 2 by hand: n = 1 is never out of order, n = 2 is 1 - (b² + bg + g²).
	if got := p.reorder(1); got != 0 {
		t.Errorf("P(1) = %g", got)
	}
	if got, want := p.reorder(2), 1-(0.0625+0.1875+0.5625); math.Abs(got-want) > 1e-12 {
		t.Errorf("P(2) = %g, want %g", got, want)
	}
	// Without bad paths, or without good ones, nothing is reordered: the finest.
	for _, bad := range []int{0, 8} {
		p.Bad = bad
		if gran, _, err := p.Granularity(); err != nil || gran != 1 {
			t.Errorf("%d bad: granularity %d, %v", bad, gran, err)
		}
	}
	p.Bad = 2
	slow := p
	slow.X, slow.Exact, p.Exact = 6, true, true
	if slow.FCT(4) <= p.FCT(4) {
		t.Error("slower bad paths do not matter")
	}
	for _, bad := range []PDLB{{}, {M: 8, Bad: 9, Good: 1, X: 1, C: 1, Buffer: 1, Size: 1}, {M: 8, Good: 1, X: 0.5, C: 1, Buffer: 1, Size: 1}} {
		if _, _, err := bad.Granularity(); err == nil {
			t.Errorf("%+v is accepted", bad)
		}
	}
}

func TestDHLB(t *testing.T) {
	for _, c := range []struct {
		rtt time.Duration
		k   int
	}{{time.Microsecond, 0}, {100 * time.Microsecond, 7}, {128 * time.Microsecond, 7}, {129 * time.Microsecond, 8}, {100, 0}} {
		k, delta := DHLB{RTT: c.rtt}.Delta()
		if k != c.k || delta != time.Microsecond<<k {
			t.Errorf("%v: 2^%d, %v", c.rtt, k, delta)
		}
	}
	d := DHLB{RTT: 20 * time.Microsecond}
	if got := d.Probe(0.9); got != HULAProbe {
		t.Errorf("%v at 90 %%", got)
	}
	if got := d.Probe(0.009); got != 10*time.Millisecond {
		t.Errorf("%v at 0.9 %%", got)
	}
	if got := d.Probe(0); got != 10*time.Millisecond {
		t.Errorf("%v without load", got)
	}
	d.RTT = 150 * time.Microsecond
	if got := d.Probe(0.9); got != 300*time.Microsecond {
		t.Errorf("%v, want twice the gap", got)
	}
	// 64 bytes of each of 8 switches in 200 us on 25 MB/s.
	if got := ProbeOverhead(64, 8, 1, 200*time.Microsecond, 25e6); math.Abs(got-0.1024) > 1e-12 {
		t.Errorf("overhead %g", got)
	}
}

// TestSteadyWindow compares the average window with the plain sum of Eq. 5 and 6: the
// shortcut for windows that no longer change must not alter a bit.
func TestSteadyWindow(t *testing.T) {
	plain := func(p PDLB, gran float64) float64 {
		most := (p.C*p.Good + p.Buffer) / max(1, p.Flows)
		w := float64(p.M) * most
		sum, rounds := w, 1.0
		for sum < p.Size {
			n := p.flowcells(w, gran)
			loss := p.reorder(n)
			w = max(1, min(float64(n)*most, (w+1)*(1-loss)+w/2*loss))
			sum += w
			rounds++
		}
		return sum / rounds
	}
	for m := 1; m <= 8; m++ {
		for bad := range m + 1 {
			for _, good := range []float64{20e-6, 300e-6, 5e-3} {
				p := PDLB{M: m, Bad: bad, Good: good, X: 2, C: 1e9 / 8 / 1500, Buffer: 64, Size: PDLBFlow, Flows: 1}
				for _, gran := range []float64{1, 7, 44} {
					if got, want := p.window(gran, p.reorders()), plain(p, gran); got != want {
						t.Errorf("%d of %d paths, %g s, %g packets: %v, want %v", bad, m, good, gran, got, want)
					}
				}
			}
		}
	}
}
