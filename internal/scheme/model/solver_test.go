package model_test

import (
	"math"
	"testing"
	"time"

	"github.com/p4lb/p4lb/fitting"
)

// The rows of the trouble tables that the constants are solved for, which the
// schemes get from package fitting.

// aDCTCPFlow is the set-up of QDAPS's simulations: 1 Gb/s, 100 µs, 10 MB.
var aDCTCPFlow = fitting.QDAPS{C: 83_333, RTT: 100e-6, K: 65, Y: 6_667, Cap: 256}

func TestErratumQDAPS4_Denominator(t *testing.T) {
	q, printed := aDCTCPFlow, aDCTCPFlow
	printed.Printed = true
	for _, s := range []float64{2, 30, 90} {
		w := q.C*q.RTT + s
		r1, r2 := .75*q.C, .75*w/(s/(2*q.C)+q.RTT)
		t2 := 3 * w * w / 8 / (r1/2 + r2) // as printed in Eq. 11, half of the value in the text
		if got := q.Move(s) - printed.Move(s); math.Abs(got-t2) > 1e-9 {
			t.Errorf("S=%g: the two forms differ by %g s, want T_2 = %g", s, got, t2)
		}
	}
}

func TestErratumQDAPS5_Threshold(t *testing.T) {
	for _, k := range []float64{10, 65, 200} {
		q := aDCTCPFlow
		q.K = k
		want := math.Sqrt(1.6*q.Y) - q.C*q.RTT
		if got := q.Closed(); math.Abs(got-want) > 1e-6 {
			t.Errorf("K=%g: S of Eq. 14 is %g, want %g whatever K is", k, got, want)
		}
	}
	for size, want := range map[float64]float64{10: 2, 1e9: 255} {
		q := aDCTCPFlow
		q.Y = size
		if got := q.Closed(); got != want {
			t.Errorf("S for a flow of %g packets is %g, want it clamped to %g", size, got, want)
		}
	}
	// "The minimum value satisfying FCT_1 >= FCT_2" would be 1: all up to the
	// largest do.
	s, err := aDCTCPFlow.Numeric()
	if err != nil {
		t.Fatal(err)
	}
	for x := 1.0; x < 2*s; x++ {
		if better := aDCTCPFlow.Stay() >= aDCTCPFlow.Move(x); better != (x <= s) {
			t.Fatalf("rerouting at S=%g is better: %v; the largest such S is said to be %g", x, better, s)
		}
	}
}

func TestErratumRLB4_QueueLength(t *testing.T) {
	r := fitting.RLB{N: 4, C: 5e9, D: 2e-6, QPFC: 256 << 10, TRC: 2e-6, MTU: 1500}
	// 262,144 - Q - 3*10,000 bytes are free.
	for queue, want := range map[float64]int{0: 154, 100_000: 88, 230_643: 1, 232_143: 0, 300_000: 0} {
		packets, each := r.Recirculations(queue)
		if packets != want || each != min(want, 8) {
			t.Errorf("with %g bytes queued N_rc is %d, %d for each; want %d, at most 8 each", queue, packets, each, want)
		}
	}
}

func TestErratumPDLB2_SmallestWins(t *testing.T) {
	p := fitting.PDLB{M: 8, Bad: 2, Good: 100e-6, X: 3, C: 833_333, Buffer: 200, Size: 10_000}
	best, fct, err := p.Granularity()
	if err != nil {
		t.Fatal(err)
	}
	for g := 1; g <= fitting.MaxGranularity; g++ {
		if got := p.FCT(g); got < fct || got == fct && g < best {
			t.Errorf("gran %d gives %g s, less than %g s of gran %d", g, got, fct, best)
		}
	}
	again, _, _ := p.Granularity()
	if again != best {
		t.Errorf("the second run gives gran %d, the first %d", again, best)
	}
}

// TestPDLBIsBangBang: over the paper's settings (Table 4: 8 paths, 10 Gbps, 100 us) the
// printed model has its least FCT at flowcells of one packet or of 42 to 44, which is the
// maximum, and never in between.
func TestPDLBIsBangBang(t *testing.T) {
	seen := map[int]int{}
	for bad := 0; bad <= 4; bad++ {
		for x := 1.0; x <= 6; x += 0.25 {
			for _, size := range []float64{100, 1_000, 10_000} {
				p := fitting.PDLB{M: 8, Bad: bad, Good: 100e-6, X: x, C: 833_333, Buffer: 200, Size: size}
				best, _, err := p.Granularity()
				if err != nil {
					t.Fatal(err)
				}
				seen[best]++
			}
		}
	}
	for g, n := range seen {
		if g != 1 && (g < 42 || g > fitting.MaxGranularity) {
			t.Errorf("%d settings have flowcells of %d packets", n, g)
		}
	}
	if seen[1] == 0 || seen[fitting.MaxGranularity] == 0 {
		t.Errorf("flowcells: %v", seen)
	}
}

func TestErratumDHLB5_Inverse(t *testing.T) {
	d := fitting.DHLB{RTT: time.Millisecond, Theta: 10 * time.Millisecond, Max: 100 * time.Millisecond}
	for load, want := range map[float64]time.Duration{
		0: 100 * time.Millisecond, .05: 100 * time.Millisecond,
		.5: 20 * time.Millisecond, 1: 10 * time.Millisecond,
	} {
		if got := d.Probe(load); got != want {
			t.Errorf("T_probe at a load of %g is %v, want %v", load, got, want)
		}
	}
	d.Theta = time.Millisecond
	if got := d.Probe(.9); got != 2*d.Gap() {
		t.Errorf("T_probe is %v, want at least twice the flowlet gap", got)
	}
}
