package model_test

import (
	"math"
	"testing"

	"github.com/p4lb/p4lb/codegen"
	"github.com/p4lb/p4lb/fitting"
	"github.com/p4lb/p4lb/internal/scheme/model"
)

// The rows of QALL's trouble table, each on the program and the model at once.

// eq8to10 are the polynomials as the paper fits them, before it makes integers
// of them, in the order of fitting.Terms.
var eq8to10 = map[int][]float64{
	1: {.167, .261, -.468},
	2: {.175, .797, -.896, -1.068, 1.422, .845},
	3: {.186, .892, -1.446, -2.514, 18.873, 3.472, 1.654, -22.944, -58.49, -2.254},
}

// float evaluates a polynomial at the fractions l and t.
func float(degree int, l, t float64) float64 {
	var sum float64
	for k, e := range fitting.Terms(degree) {
		sum += eq8to10[degree][k] * math.Pow(l, float64(e.I)) * math.Pow(t, float64(e.J))
	}
	return sum
}

// fittedRig is QALL with the paper's polynomial, every packet reported, and a
// queue in which one more packet is one more of L.
func fittedRig(t *testing.T, degree int, printed bool) *rig {
	t.Helper()
	poly, _ := fitting.Paper(degree, printed)
	name := map[int]string{1: "qall-linear", 2: "qall-poly2", 3: "qall-poly3"}[degree]
	r := newRig(t, scheme{name, codegen.Params{Coeffs: &poly, Set: map[string]string{"tb": "0s"}}}, 1)
	r.setPort(firstPort, 256, 10)
	return r
}

// congestion measures C at L = l/255 and T = t µs.
func (r *rig) congestion(l int, t model.Time) int64 {
	r.t.Helper()
	start := r.now + 100_000
	r.measure(firstPort, 0, start)
	r.measure(firstPort, l, start+t)
	return int64(r.cell("q_C", firstPort))
}

func TestErratumQALL1_1887(t *testing.T) {
	for _, c := range []struct {
		printed bool
		sign    string
	}{{false, "positive"}, {true, "zero"}} {
		r := fittedRig(t, 3, c.printed)
		// At L = .5, T = .02 Eq. 10 is .23; with 188 for 1887 it is .04 and at
		// T = .1, where Eq. 10 is still positive, below zero.
		const l, tt = 102, 1000
		got := r.congestion(l, tt)
		if (got > 0) != (c.sign == "positive") {
			t.Errorf("printed=%v: C is %d at L=%d T=%d, want it %s", c.printed, got, l, tt, c.sign)
		}
		want := float(3, l/256., 25/256.)
		if !c.printed && math.Abs(float64(got)/100-want) > .02 {
			t.Errorf("C is %d/100, Eq. 10 gives %.3f", got, want)
		}
	}
}

func TestErratumQALL2_Truncated(t *testing.T) {
	for degree, coeff := range eq8to10 {
		p, ok := fitting.Paper(degree, false)
		if !ok {
			t.Fatalf("there is no preset of degree %d", degree)
		}
		for k, c := range coeff {
			if want := int64(math.Trunc(c*100 + math.Copysign(1e-9, c))); p.Coeff[k] != want {
				t.Errorf("degree %d: coefficient %d is %d, want %d, cut off from %g", degree, k, p.Coeff[k], want, c*100)
			}
		}
	}
}

func TestErratumQALL3_Fractions(t *testing.T) {
	for degree := 1; degree <= 3; degree++ {
		r := fittedRig(t, degree, false)
		for l := 0; l <= 255; l += 51 {
			for us := model.Time(1); us <= 10_000; us += 1250 {
				got := float64(r.congestion(l, us)) / 100
				lf, tf := float64(l)/256, math.Floor(float64(us)*255/10_000)/256
				// Each coefficient was rounded down by up to .01.
				want, slack := max(0, float(degree, lf, tf)), .011*float64(len(eq8to10[degree]))
				if got > 0 && math.Abs(got-want) > slack || got == 0 && want > slack {
					t.Errorf("degree %d: C(%.3f, %.3f) is %.2f, the paper's polynomial %.3f", degree, lf, tf, got, want)
				}
			}
		}
	}
}

func TestErratumQALL4_CMax(t *testing.T) {
	for degree, corner := range map[int]float64{1: .428, 2: -.096, 3: .218} {
		if got := float(degree, 1, 0); math.Abs(got-corner) > .001 {
			t.Errorf("degree %d: C(1,0) = %.3f, want %.3f", degree, got, corner)
		}
		poly, _ := fitting.Paper(degree, false)
		best := poly.Max()
		r := fittedRig(t, degree, false)
		var seen int64
		for l := 0; l <= 255; l += 15 {
			for us := model.Time(1); us <= 10_000; us += 400 {
				seen = max(seen, r.congestion(l, us))
			}
		}
		if seen > best || seen < best*8/10 {
			t.Errorf("degree %d: C reaches %d, C_max is %d", degree, seen, best)
		}
		if degree == 2 && best < 10 {
			t.Errorf("C_max of degree 2 is %d, as if the corner were the maximum", best)
		}
	}
}

func TestErratumQALL5_Negative(t *testing.T) {
	r := fittedRig(t, 3, false)
	if got := float(3, 1, 1); got > -62 {
		t.Errorf("Eq. 10 at (1,1) is %.1f, want about -62.6", got)
	}
	if got := r.congestion(255, 10_000); got != 0 {
		t.Errorf("C at (1,1) is %d, want 0", got)
	}
}

func TestErratumQALL6_Normalisation(t *testing.T) {
	poly, _ := fitting.Paper(1, false)
	poly.L, poly.T = fitting.Range{Min: 20, Max: 220}, fitting.Range{Min: 100, Max: 1100}
	r := newRig(t, scheme{"qall-linear", codegen.Params{Coeffs: &poly, Set: map[string]string{"tb": "0s"}}}, 1)
	r.setPort(firstPort, 256, 10)
	for _, c := range []struct {
		l    int
		us   model.Time
		a, b float64 // the fractions that they stand for
	}{{20, 100, 0, 0}, {5, 3, 0, 0}, {220, 100, 1, 0}, {255, 100, 1, 0}, {120, 100, .5, 0}, {220, 350, 1, .25}} {
		got, want := float64(r.congestion(c.l, c.us)), 16+26*c.a-46*c.b
		if math.Abs(got-want) > 1.5 {
			t.Errorf("L=%d T=%d: C is %g, want about %.1f", c.l, c.us, got, want)
		}
	}
}

// TestOccupancyBeyondTheData uses a range of L with a truncated reciprocal: its end
// maps to 254, and larger occupancies must map to 254 too.
func TestOccupancyBeyondTheData(t *testing.T) {
	for _, l := range []fitting.Range{{Min: 0, Max: 200}, {Min: 20, Max: 220}, {Min: 7, Max: 255}, {Min: 254, Max: 255}} {
		poly := fitting.Poly{Degree: 1, Scale: 1, Coeff: []int64{0, 256, 0}, L: l, T: fitting.Range{Max: 1000}} // C is the byte of L
		r := newRig(t, scheme{"qall-linear", codegen.Params{Coeffs: &poly, Set: map[string]string{"tb": "0s"}}}, 1)
		r.setPort(firstPort, 256, 10)
		for met := range 256 {
			within := min(max(int64(met), l.Min), l.Max) - l.Min
			if got, want := r.congestion(met, 10), within*(255<<16/(l.Max-l.Min))>>16; got != want {
				t.Errorf("the data's L is %d to %d: %d becomes %d, want %d", l.Min, l.Max, met, got, want)
			}
		}
	}
}

// eq4Rig is qall-pkt, reported at every packet, with n ports of 256 places.
func eq4Rig(t *testing.T, n int, set map[string]string) *rig {
	t.Helper()
	if set == nil {
		set = map[string]string{}
	}
	if set["tb"] == "" {
		set["tb"] = "0s"
	}
	r := newRig(t, scheme{"qall-pkt", codegen.Params{Ports: n, Set: set}}, 1)
	g := model.Group{}
	for i := range n {
		r.setPort(firstPort+i, 256, 10)
		g.Ports = append(g.Ports, firstPort+i)
	}
	r.setGroup(0, g)
	return r
}

func TestErratumQALL7_LongInterval(t *testing.T) {
	r := eq4Rig(t, 2, nil)
	if got := r.congestion(200, 9_999); got != 200*1*2 {
		t.Errorf("C just below tau is %d, want 400", got)
	}
	for _, us := range []model.Time{10_000, 10_001, 20_000, 1 << 33} {
		if got := r.congestion(200, us); got != 0 {
			t.Errorf("C for T = %d us is %d, want 0", us, got)
		}
	}
}

func TestErratumQALL8_Starved(t *testing.T) {
	r := eq4Rig(t, 2, nil)
	r.measure(firstPort, 0, 1000)
	r.measure(firstPort, 255, 1001) // full, rising, next to no time in between
	if got := r.cell("q_C", firstPort); got != 255*9_999*2 {
		t.Fatalf("C is %d, want nearly C_max", got)
	}
	for range 20_000 {
		r.send(tcp(0, 1))
		r.queues[firstPort].items, r.queues[firstPort+1].items = nil, nil
	}
	if share := float64(r.taken[[2]int{0, 0}]) / 20_000; share < .002 || share > .006 {
		t.Errorf("the full port gets %.4f of the packets, want about 1/257", share)
	}
}

func TestErratumQALL8_Ageing(t *testing.T) {
	r := eq4Rig(t, 2, map[string]string{"age": "4ms"})
	r.measure(firstPort, 0, 1000)
	r.measure(firstPort, 255, 1001)
	for _, c := range []struct {
		at   model.Time
		want uint64 // of the grids
	}{{5001, 255*20_000 + 255*20_000>>8}, {5002, 2 * 255 * 20_000}} {
		r.now = c.at
		total := uint64(0)
		r.model, r.tape = nil, nil
		pkt := r.sw.Receive(1, r.frame(tcp(0, 1)), r.clock())
		r.sw.Ingress(pkt, r.clock(), nil)
		for _, d := range r.tape {
			total = d.hi
		}
		if total != c.want {
			t.Errorf("at %d us there are %d grids, want %d", c.at, total, c.want)
		}
	}
}

func TestErratumQALL9_EqualL(t *testing.T) {
	r := eq4Rig(t, 2, nil)
	var got []uint64
	for i, met := range []int{0, 0, 7, 7, 7, 3, 3, 9, 9} {
		r.measure(firstPort, met, 1000+model.Time(i))
		got = append(got, r.cell("q_V", firstPort))
	}
	for i, want := range []uint64{1, 1, 2, 2, 2, 1, 1, 2, 2} {
		if got[i] != want {
			t.Fatalf("V goes %v, differs at %d", got, i)
		}
	}
}

func TestErratumQALL10_Timestamp(t *testing.T) {
	r := newRig(t, scheme{"qall-flowlet", codegen.Params{Ports: 16}}, 1)
	g := model.Group{}
	for i := range 16 {
		r.setPort(firstPort+i, 64, 1)
		g.Ports = append(g.Ports, firstPort+i)
	}
	r.setGroup(0, g)
	r.now = 50_000
	first := r.send(tcp(0, 1))
	// Pauses of just the gap never end the flowlet, however long it gets.
	for range 100 {
		r.runUntil(r.now + 10_000)
		if slot := r.send(tcp(0, 1)); slot != first {
			t.Fatalf("the flowlet changes from path %d to %d", first, slot)
		}
	}
	moved := false
	for range 20 {
		r.runUntil(r.now + 10_001)
		moved = r.send(tcp(0, 1)) != first || moved
	}
	if !moved {
		t.Error("pauses longer than the gap never change the path")
	}
}

func TestErratumQALL11_LastCounts(t *testing.T) {
	r := eq4Rig(t, 2, map[string]string{"tb": "1ms"})
	r.measure(firstPort, 0, 2000)
	for i, met := range []int{250, 240, 3} {
		r.measure(firstPort, met, 2100+model.Time(10*i))
	}
	if got := r.cell("q_L", firstPort); got != 0 {
		t.Errorf("L is %d before T_b has passed, want that of the first report", got)
	}
	r.measure(firstPort, 40, 3001)
	for name, want := range map[string]uint64{"q_L": 40, "q_T": 881, "q_V": 2} {
		if got := r.cell(name, firstPort); got != want {
			t.Errorf("%s is %d, want %d: that of the last packet", name, got, want)
		}
	}
}

func TestErratumQALL12_Base(t *testing.T) {
	r := eq4Rig(t, 4, nil)
	pkt := r.sw.Receive(1, r.frame(tcp(0, 1)), r.clock())
	r.sw.Ingress(pkt, r.clock(), nil)
	want := draw{lo: 1, hi: 4 * 255 * 20_000}
	if len(r.tape) != 1 || r.tape[0].lo != want.lo || r.tape[0].hi != want.hi {
		t.Errorf("the draws are %v, want one from %d..%d", r.tape, want.lo, want.hi)
	}
}

func TestErratumQALL13_Overhead(t *testing.T) {
	r := eq4Rig(t, 2, map[string]string{"tb": "1ms"})
	for i := range model.Time(10_000) {
		r.measure(firstPort+int(i%2), 1, 2000+i)
	}
	// At most one report in T_b, but for each port, and with the packet that
	// it came with behind its ten bytes.
	if r.learnt < 18 || r.learnt > 20 {
		t.Errorf("%d reports of two ports in 10 ms, want about 10 for each", r.learnt)
	}
	if want := 10 + 100 - 34; r.reportLen != want {
		t.Errorf("a report is %d bytes long, want %d", r.reportLen, want)
	}
}

// QALL Alg. 1 line 5 finds the candidates by the ingress port.
func TestErratumQALLAlg1_Destination(t *testing.T) {
	r := eq4Rig(t, 2, nil)
	r.setPort(40, 64, 1)
	r.setPort(41, 64, 1)
	r.setGroup(1, model.Group{Ports: []int{40, 41}})
	for in := range 8 {
		for gid := range 2 {
			p := tcp(gid, uint16(in))
			p.In = in
			r.send(p) // fails unless the port is one of the destination's group
		}
	}
}

// tcp returns a packet to a group.
func tcp(gid int, sport uint16) model.Packet {
	return model.Packet{Flow: model.Flow{Src: 1, Dst: groupNet(gid) + 9, Protocol: 6, Sport: sport, Dport: 80}, Len: 100, In: hostPort, Group: gid}
}
