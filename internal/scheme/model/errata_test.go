package model_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/p4lb/p4lb/codegen"
	"github.com/p4lb/p4lb/internal/scheme/model"
)

// The errata of QDAPS, RLB, PDLB and DHLB that concern the data plane, each on program
// and model together. Errata in the controller's arithmetic are tested there.

// qdapsRig has a group of queues of the given lengths that serve a packet in
// 10 µs each.
func qdapsRig(t *testing.T, set map[string]string, lens ...int) *rig {
	t.Helper()
	r := newRig(t, scheme{"qdaps", codegen.Params{Ports: len(lens), StatePath: "shared", Set: set}}, 1)
	g := groupOf(len(lens))
	for i, port := range g.Ports {
		r.setPort(port, 256, 10)
		r.measure(port, lens[i], 1000)
	}
	r.setGroup(0, g)
	return r
}

func TestErratumQDAPS1_D(t *testing.T) {
	r := qdapsRig(t, nil, 300, 10, 200, 110)
	for sport := range uint16(50) {
		if slot := r.send(tcp(0, sport)); slot != 1 {
			t.Fatalf("a new flow takes path %d, want the shortest queue of all", slot)
		}
	}
	r = qdapsRig(t, map[string]string{"d": "2"}, 3000, 10, 2000, 1100)
	seen := map[int]bool{}
	for sport := range uint16(200) {
		seen[r.send(tcp(0, sport))] = true
	}
	if !seen[1] || !seen[2] || !seen[3] || seen[0] {
		t.Errorf("the least of two are %v, want all but the longest queue", seen)
	}
}

// With shared registers QDAPS knows a packet that has joined a queue at once, not
// only when the next one departs: a burst spreads over all queues.
func TestQDAPSCountsJoining(t *testing.T) {
	r := qdapsRig(t, nil, 0, 0, 0, 0)
	taken := make([]int, 4)
	for sport := range uint16(40) {
		taken[r.send(tcp(0, sport))]++
	}
	for slot, n := range taken {
		if n != 10 {
			t.Errorf("40 new flows at once: path %d gets %d, want 10 of each", slot, n)
		}
	}
	r.runUntil(r.now + 35) // three packets of 10 us leave each queue
	for slot := range 4 {
		if got := r.cell("q_len", firstPort+slot); got != 6 && got != 7 {
			t.Errorf("path %d: %d packets are known to wait", slot, got)
		}
	}
}

func TestErratumQDAPS2_NoneQualifies(t *testing.T) {
	r := qdapsRig(t, nil, 30, 10, 20, 11)
	r.send(tcp(0, 1)) // path 1; leaves after 110 µs
	for i, port := range r.groups[0].Ports {
		r.measure(port, i, 1001)
	}
	r.now = 1010
	if slot := r.send(tcp(0, 1)); slot != 1 {
		t.Errorf("no queue is as long as the packet before has to wait: path %d, want the last one, 1", slot)
	}
}

func TestErratumQDAPS3_NegativeRQD(t *testing.T) {
	// The first packet waits for 11 services of 10.3 µs, to 1113. Afterwards a
	// packet waits 10, 61, 217 and 124 µs in the four queues.
	for at, want := range map[model.Time]int{
		1051: 3, // 62 µs are left
		1053: 1,
		1102: 1, // 11 µs
		1104: 0,
		1113: 0, // the packet has left, so any queue is allowed
		1114: 0,
		9999: 0,
	} {
		r := qdapsRig(t, nil, 30, 10, 20, 11)
		if slot := r.send(tcp(0, 1)); slot != 1 {
			t.Fatalf("the first packet takes path %d", slot)
		}
		r.measure(firstPort, 0, 1001)
		r.measure(firstPort+1, 0, 1002)
		r.measure(firstPort+1, 5, 1003)
		r.now = at
		if slot := r.send(tcp(0, 1)); slot != want {
			t.Errorf("at %d the next packet takes path %d, want %d", at, slot, want)
		}
	}
}

// newDelayRig returns a rig of QDAPS* with a group of four equal paths.
func newDelayRig(t *testing.T) *rig {
	r := newRig(t, scheme{"qdaps-star", codegen.Params{Ports: 4, StatePath: "shared"}}, 5)
	g := groupOf(4)
	for _, port := range g.Ports {
		r.setPort(port, 256, 10)
	}
	r.setGroup(0, g)
	r.now = 5000
	return r
}

// The offset between the leaves' clocks must not change the choices.
func TestErratumQDAPS6_ClockOffset(t *testing.T) {
	var want []int
	for _, ahead := range []model.Time{0, 1, 12_345_678, 1<<47 - 100, 1 << 47, 1<<48 - 777} {
		r := newDelayRig(t)
		for path, delay := range []model.Time{100, 300, 120, 90} {
			p := tcp(-1, 1)
			p.Group, p.From, p.Flow = -1, 0, model.Flow{Src: groupNet(0) + 1, Dst: localNet(firstPort), Protocol: 1}
			p.Overlay = model.Overlay{Valid: true, Tag: 0, FbTag: uint8(path), FbDelay: ahead.After(delay)}
			r.send(p)
		}
		var got []int
		for i := range 300 {
			r.runUntil(r.now + model.Time(i%37))
			got = append(got, r.send(tcp(0, uint16(i%5))))
		}
		if want == nil {
			want = got
		}
		for i := range got {
			if got[i] != want[i] {
				t.Fatalf("with the clock %d ahead, packet %d takes path %d instead of %d", ahead, i, got[i], want[i])
			}
		}
	}
}

// A path that was never measured counts as fast as the fastest one that was,
// whatever the offset between the clocks: all paths are used. A flow that began
// before the first measurement is not bound to its path by the offset.
func TestQDAPSStarUnmeasured(t *testing.T) {
	const second = 1_000_000
	for _, ahead := range []model.Time{0, 5 * second, 1<<48 - 5*second} {
		r := newDelayRig(t)
		old := tcp(0, 999)
		first := r.send(old)
		r.send(model.Packet{
			Flow: model.Flow{Src: groupNet(0) + 1, Dst: localNet(firstPort), Protocol: 1}, Len: 100, In: 1, Group: -1,
			Overlay: model.Overlay{Valid: true, FbTag: uint8(first), FbDelay: ahead.After(100)},
		})
		seen := map[int]bool{}
		for sport := range uint16(64) {
			r.runUntil(r.now + 50)
			seen[r.send(tcp(0, sport))] = true
		}
		if len(seen) != 4 {
			t.Errorf("with the clock %d ahead and one path measured, new flows take the paths %v, want all 4", ahead, seen)
		}
		moved := false
		for range 64 {
			r.runUntil(r.now + 50)
			moved = r.send(old) != first || moved
		}
		if !moved {
			t.Errorf("with the clock %d ahead, a flow of before the first measurement stays on path %d", ahead, first)
		}
	}
}

// QDAPS* must not let a packet overtake the flow's previous packet after that has left the
// switch.
func TestQDAPSStarKeepsOrderInFlight(t *testing.T) {
	r := newRig(t, scheme{"qdaps-star", codegen.Params{Ports: 2, StatePath: "shared"}}, 5)
	g := groupOf(2)
	for _, port := range g.Ports {
		r.setPort(port, 256, 10)
	}
	r.setGroup(0, g)
	delays := func(a, b model.Time) {
		for path, delay := range []model.Time{a, b} {
			r.send(model.Packet{
				Flow: model.Flow{Src: groupNet(0) + 1, Dst: localNet(1 + path), Protocol: 1}, Len: 100, In: 1, Group: -1,
				Overlay: model.Overlay{Valid: true, FbTag: uint8(path), FbDelay: delay},
			})
		}
	}
	r.setPort(1, 256, 1)
	r.setPort(2, 256, 1)
	r.now = 1000
	delays(300, 900)
	if slot := r.send(tcp(0, 1)); slot != 0 {
		t.Fatalf("the first packet takes path %d, want the faster one", slot)
	}
	delays(300, 10) // the other one is free again
	for _, c := range []struct {
		at   model.Time
		want int
	}{{1200, 0}, {1250, 0}, {1560, 1}} {
		r.runUntil(c.at)
		if slot := r.send(tcp(0, 1)); slot != c.want {
			t.Errorf("at %d path %d, want %d", c.at, slot, c.want)
		}
	}
}

// rlbRig is round-robin under RLB, with paths of the given RTTs.
func rlbRig(t *testing.T, guard string, set map[string]string, rtts ...uint32) *rig {
	t.Helper()
	r := newRig(t, scheme{"drb+" + guard, codegen.Params{Ports: max(4, len(rtts)), Set: set}}, 1)
	g := groupOf(len(rtts))
	for _, port := range append(g.Ports, 1) {
		r.setPort(port, 64, 1)
	}
	r.setGroup(0, g)
	r.now = 1000
	for slot, rtt := range rtts {
		r.learnPath(model.PathNews{Group: 0, Slot: slot, RTT: rtt})
	}
	return r
}

// warn marks ports as paused for a long time.
func (r *rig) warn(slots ...int) {
	r.t.Helper()
	for _, slot := range slots {
		r.heed(firstPort+slot, model.Warn, 100_000)
	}
}

// sendRounds sends a packet and lets it recirculate until it leaves; it returns
// the path and the number of recirculations.
func (r *rig) sendRounds(p model.Packet) (slot, rounds int) {
	r.t.Helper()
	before := r.again
	slot = r.send(p)
	for slot < 0 {
		it := r.rounds[0]
		r.rounds = r.rounds[1:]
		r.now = max(r.now, it.due)
		slot = r.comeAgain(it)
	}
	return slot, r.again - before
}

func TestErratumRLB1_Bounded(t *testing.T) {
	for _, n := range []int{2, 3, 4} {
		rtts := []uint32{100, 50_000, 90_000, 150_000}[:n]
		r := rlbRig(t, "rlb", rlb("rc", "5"), rtts...)
		r.warn([]int{0, 1, 2, 3}[:n]...)
		for turn := range 2 * n {
			slot, rounds := r.sendRounds(tcp(0, 1))
			if slot != turn%n {
				t.Errorf("%d paths, all warned: path %d is left for %d, want the first choice", n, turn%n, slot)
			}
			// The next slower path of each path, except the last, is much slower.
			if want := 5; turn%n == 0 && rounds != want {
				t.Errorf("%d rounds, want the limit of %d", rounds, want)
			}
		}
	}
}

func TestErratumRLB2_LowerBound(t *testing.T) {
	// d*C is 2 us * 40 Gb/s = 10,000 bytes: no warning up to this length.
	r := rlbRig(t, "rlb", map[string]string{"link": "40G", "delay": "2us", "predict": "threshold"}, 100, 100)
	for bytes := 1000; bytes <= 11_000; bytes += 1000 {
		before := r.notices
		p := tcp(0, 1)
		p.Len = 1000
		r.send(p)
		if warned := r.notices > before; warned != (bytes == 11_000) {
			t.Errorf("with %d bytes in the queue, warned: %v", bytes, warned)
		}
	}
}

func TestErratumRLB3_EmptyRange(t *testing.T) {
	row, err := codegen.Parse("drill+rlb")
	if err != nil {
		t.Fatal(err)
	}
	set := map[string]string{"link": "100G", "delay": "2us", "qpfc": "256KiB"}
	for n, ok := range map[string]bool{"10": true, "11": false} {
		set["incast"] = n
		_, err := codegen.Generate(row, codegen.Params{Set: set})
		if (err == nil) != ok {
			t.Errorf("n=%s: %v", n, err)
		}
		if err != nil && !strings.Contains(err.Error(), "25000") {
			t.Errorf("the error does not say what would do: %v", err)
		}
	}
}

func TestErratumRLB5_RoundsOfRLBStar(t *testing.T) {
	for nrc, want := range map[uint64]int{0: 0, 1: 1, 3: 3, 60: 5} {
		r := rlbRig(t, "rlb-star", rlb("rc", "5"), 100, 50_000)
		r.write("nrc", 0, nrc)
		r.warn(0)
		if slot, rounds := r.sendRounds(tcp(0, 1)); rounds != want || slot != 1 {
			t.Errorf("N_rc=%d: %d rounds, then path %d; want %d, then path 1", nrc, rounds, slot, want)
		}
	}
}

func TestErratumRLB6_RecirculationDelay(t *testing.T) {
	r := rlbRig(t, "rlb", rlb("rc", "2"), 100, 50_000)
	r.warn(0)
	r.send(tcp(0, 1))
	for _, want := range []model.Time{17, 23} {
		it := r.rounds[0]
		r.rounds = r.rounds[1:]
		r.now += want
		r.comeAgain(it)
	}
	if got := r.cell("t_rc", 0); got != 17 {
		t.Errorf("t_rc is %d us after the second queueing, want 17, the time from the first", got)
	}
	r.runUntil(r.now + 100)
	if got := r.cell("t_rc", 0); got != 23 {
		t.Errorf("t_rc is %d us when the packet leaves, want 23", got)
	}
}

// Eq. 6 compares an accumulated delay with a difference of RTTs; owd halves the
// difference.
func TestErratumRLB7_RTTDifference(t *testing.T) {
	for owd, want := range map[string]int{"false": 4, "true": 2} {
		r := rlbRig(t, "rlb-star", rlb("rc", "9", "owd", owd), 100, 140)
		r.write("nrc", 0, 9)
		r.warn(0)
		r.send(tcp(0, 1))
		start, rounds := r.now, 0
		for slot := -1; slot < 0; rounds++ {
			it := r.rounds[0]
			r.rounds = r.rounds[1:]
			r.now += 10
			slot = r.comeAgain(it)
		}
		// t_rc is 10: after 40 µs the next round would end 50 µs after the
		// arrival.
		if rounds != want || r.now-start != model.Time(10*want) {
			t.Errorf("owd=%s: %d rounds in %d us, want %d of 10 us each", owd, rounds, r.now-start, want)
		}
	}
}

func TestErratumRLB8_OverTheLimit(t *testing.T) {
	for _, c := range []struct {
		warned []int
		want   int
	}{{[]int{0}, 1}, {[]int{0, 1}, 2}, {[]int{0, 1, 2}, 0}} {
		r := rlbRig(t, "rlb", rlb("rc", "0"), 100, 200, 300)
		r.warn(c.warned...)
		if slot := r.send(tcp(0, 1)); slot != c.want {
			t.Errorf("paths %v are warned of: path %d, want %d", c.warned, slot, c.want)
		}
	}
}

// Algorithm 2 runs in the controller. Ports that it marks as faulty are not used.
func TestErratumRLB9_Faulty(t *testing.T) {
	r := rlbRig(t, "rlb-star", rlb(), 100, 100, 100)
	r.write("faulty", firstPort+1, 1)
	for range 30 {
		if slot, _ := r.sendRounds(tcp(0, 1)); slot == 1 {
			t.Fatal("a packet takes the path of the faulty port")
		}
	}
	r.write("faulty", firstPort+1, 0)
	for range 3 {
		r.sendRounds(tcp(0, 1))
	}
	if r.taken[[2]int{0, 1}] != 1 {
		t.Error("the port stays out of use")
	}
}

func TestErratumRLB10_Derivative(t *testing.T) {
	fill := func(predict string, pause model.Time) int {
		r := rlbRig(t, "rlb", rlb("predict", predict, "dt", "100us", "twarn", "500us", "qpfc", "40KiB", "qth", "8KiB"), 100, 100)
		p := tcp(0, 1)
		p.Len = 1000
		for range 20 {
			r.now += pause
			r.send(p) // nothing leaves
		}
		return r.notices
	}
	if n := fill("threshold", 300); n == 0 {
		t.Error("a queue above Q_th does not warn")
	}
	// 1000 bytes in 300 µs reach 40 KB far later than in T_warn.
	if n := fill("derivative", 300); n != 0 {
		t.Errorf("%d warnings of a queue that grows slowly", n)
	}
	if n := fill("derivative", 10); n == 0 {
		t.Error("no warning of a queue that grows fast")
	}
}

func TestErratumRLB11_WarningEnds(t *testing.T) {
	r := rlbRig(t, "rlb", rlb("rc", "0"), 100, 100)
	takes := func(want int) {
		t.Helper()
		if slot := r.send(tcp(0, 1)); slot != want {
			t.Errorf("at %d path %d, want %d", r.now, slot, want)
		}
	}
	r.heed(firstPort, model.Warn, 50)
	takes(1) // turn of 0
	takes(1)
	r.now += 49
	takes(1)
	takes(1)
	r.now++ // the time is over
	takes(0)
	takes(1)
	r.warn(0)
	takes(1)
	takes(1)
	r.heed(firstPort, model.Clear, 0)
	takes(0)
}

func TestErratumPDLB8_Packets(t *testing.T) {
	r := rigOf(t, "pdlb", codegen.Params{}, 16, nil)
	r.write("pd_gran", 0, 7)
	p := tcp(0, 1)
	cell, changes := -1, 0
	for i := range 700 {
		p.Len = 64 + i%1400 // bytes do not count
		slot := r.send(p)
		r.queues[firstPort+slot].items = nil
		switch {
		case i%7 == 0:
			if slot != cell {
				changes++
			}
			cell = slot
		case slot != cell:
			t.Fatalf("packet %d of a cell of 7 leaves path %d for %d", i%7, cell, slot)
		}
	}
	if changes < 80 {
		t.Errorf("the path changes at %d of 100 cells", changes)
	}
}

func TestErratumDHLB1_EWMA(t *testing.T) {
	r := rigOf(t, "dhlb", codegen.Params{Role: "tor", StatePath: "shared", Set: map[string]string{"window": "10"}}, 2, nil)
	// A steady load of 100 bytes every 8 µs is 12,800 bytes in 1024 µs.
	for i := range model.Time(2000) {
		r.measure(firstPort, 0, 1000+8*i)
	}
	if u := r.cell("u", firstPort); u < 12_500 || u > 13_000 {
		t.Errorf("U is %d at a load of 12,800 bytes in delta", u)
	}
	// Eq. 1 would be negative here.
	for _, pause := range []model.Time{1023, 1024, 5000, 1 << 40} {
		r.measure(firstPort, 0, r.now+pause)
		if u := r.cell("u", firstPort); u < 100 || u > 13_000 || pause >= 1024 && u != 100 {
			t.Errorf("U is %d after a pause of %d us", u, pause)
		}
	}
}

func TestErratumDHLB2_Boundaries(t *testing.T) {
	// 8 Mb/s are 1024 bytes in 1024 µs.
	for sent, want := range map[int]uint64{0: 5, 255: 5, 256: 3, 511: 3, 512: 2, 716: 2, 717: 1, 921: 1, 922: 0, 1024: 0, 1500: 0} {
		r := rigOf(t, "dhlb", codegen.Params{Role: "tor", StatePath: "shared", Set: map[string]string{"link": "8Mbps"}}, 2, nil)
		r.now = 5000
		if sent > 0 {
			r.measureLen(firstPort, sent)
		}
		r.flood(model.Probe{Origin: 0, Degree: 5}, firstPort)
		if got := r.cell("deg", 0); got != want {
			t.Errorf("%d of 1024 bytes are a load degree of %d, want %d", sent, got, want)
		}
	}
}

// Table 2 has a degree of 4, which Table 1 cannot give.
func TestErratumDHLB3_NoDegree4(t *testing.T) {
	for sent := 100; sent < 1100; sent += 90 {
		r := rigOf(t, "dhlb", codegen.Params{Role: "tor", StatePath: "shared", Set: map[string]string{"link": "8Mbps"}}, 2, nil)
		r.now = 5000
		r.measureLen(firstPort, sent)
		r.flood(model.Probe{Origin: 0, Degree: 5}, firstPort)
		if d := r.cell("deg", 0); d == 4 || d > 5 {
			t.Errorf("%d bytes are a degree of %d", sent, d)
		}
	}
}

func TestErratumDHLB4_AllFull(t *testing.T) {
	r := rigOf(t, "dhlb", codegen.Params{Role: "tor", Set: map[string]string{"gap": "1us"}}, 4, nil)
	r.now = 1000
	for slot := range 4 {
		r.flood(model.Probe{Origin: 0, Degree: 0}, firstPort+slot)
	}
	taken := make([]int, 4)
	for range 20_000 {
		r.now += 2
		slot := r.send(tcp(0, 1))
		taken[slot]++
		r.queues[firstPort+slot].items = nil
	}
	checkShares(t, taken, equal(4))
}

// keepBusy sends 1500 bytes through path 0 each 80 µs, three quarters of 200 Mb/s,
// and calls at between two packets, at changing times after the last report.
func (r *rig) keepBusy(packets int, at func(i int)) {
	r.t.Helper()
	for i := range packets {
		r.now += 80
		r.measureLen(firstPort, 1500)
		before := r.now
		r.now += model.Time(i*13) % 70
		at(i)
		r.now = before
	}
}

// A busy link reads the same at any time between two reports, which are as far
// apart as the load takes to fade.
func TestReportedLoadHolds(t *testing.T) {
	const steady = 1500 * 1024 / 80 // U = size + U*(1 - dt/delta)
	warm := 100
	set := map[string]string{"link": "200Mbps"}
	hula := rigOf(t, "hula", codegen.Params{Role: "tor", Set: set}, 2, nil)
	hula.now = 5000
	hula.keepBusy(300, func(i int) {
		hula.flood(model.Probe{Origin: 0}, firstPort)
		if got := hula.cell("min_util", 0); i > warm && (got < steady*9/10 || got > steady*11/10) {
			t.Errorf("HULA, packet %d: the link carries %d bytes within its window, want about %d", i, got, steady)
		}
	})
	dhlb := rigOf(t, "dhlb", codegen.Params{Role: "tor", Set: set}, 2, nil)
	dhlb.now = 5000
	dhlb.keepBusy(300, func(i int) {
		dhlb.flood(model.Probe{Origin: 0, Degree: 5, Seq: uint16(i)}, firstPort)
		if got := dhlb.cell("deg", 0); i > warm && i%8 == 0 && got != 1 {
			t.Errorf("DHLB, packet %d: a link at 75 %% has degree %d, want 1", i, got)
		}
	})
	conga := rigOf(t, "conga", codegen.Params{Set: map[string]string{"link": "200Mbps", "gap": "1us", "ageing": "10s"}}, 2, nil)
	conga.now = 5000
	conga.send(model.Packet{
		Flow: model.Flow{Src: groupNet(0) + 1, Dst: localNet(firstPort), Protocol: 1}, Len: 100, In: 1, Group: -1,
		Overlay: model.Overlay{Valid: true, FbTag: 1, FbMetric: 3},
	})
	conga.keepBusy(300, func(i int) {
		if slot := conga.send(tcp(0, uint16(i))); i > warm && slot != 1 {
			t.Errorf("CONGA, packet %d: path %d, of which three quarters are in use, want path 1 with three eighths", i, slot)
		}
		conga.queues[firstPort].items, conga.queues[firstPort+1].items = nil, nil
	})
}

// The load of an idle link decays once its report is overdue.
func TestReportedLoadFades(t *testing.T) {
	r := rigOf(t, "hula", codegen.Params{Role: "tor", Set: map[string]string{"link": "200Mbps"}}, 2, nil)
	r.now = 5000
	r.keepBusy(100, func(int) {})
	for after, want := range map[model.Time]bool{1900: false, 3100: true} {
		at := r.now
		r.now += after
		r.flood(model.Probe{Origin: 0}, firstPort)
		if got := r.cell("min_util", 0); (got == 0) != want {
			t.Errorf("%d us after the last packet %d bytes are left", after, got)
		}
		r.now = at
	}
}

// A path without probes, while probes of other paths arrive, is silent: it gets no
// traffic until a probe returns.
func TestDHLBSilentPath(t *testing.T) {
	r := rigOf(t, "dhlb", codegen.Params{Role: "tor", Set: map[string]string{"gap": "1us"}}, 4, nil)
	share := func() (taken [4]int) {
		for range 400 {
			r.now += 2
			slot := r.send(tcp(0, 1))
			taken[slot]++
			r.queues[firstPort+slot].items = nil
		}
		return taken
	}
	seq := uint16(60000)
	round := func(silent int) {
		r.now += 400
		seq++
		for slot := range 4 {
			if slot != silent {
				r.flood(model.Probe{Origin: 0, Seq: seq, Degree: 5}, firstPort+slot)
			}
		}
	}
	round(-1)
	seq = 1<<16 - 3 // it wraps
	round(-1)
	round(-1)
	for n := 1; n <= 6; n++ {
		round(2)
		if taken := share(); (taken[2] == 0) != (n > 3) {
			t.Errorf("%d probes have stayed away: the paths get %v", n, taken)
		}
	}
	round(-1)
	if taken := share(); taken[2] == 0 {
		t.Errorf("the path has probes again: the paths get %v", taken)
	}
}

// A path whose probes come late is not silent, and neither are the others when a late
// probe has come. A sender that counts from 0 again silences no path.
func TestDHLBLateProbes(t *testing.T) {
	r := rigOf(t, "dhlb", codegen.Params{Role: "tor", Set: map[string]string{"gap": "1us"}}, 4, nil)
	all := func(when string) {
		t.Helper()
		var taken [4]int
		for range 400 {
			r.now += 2
			slot := r.send(tcp(0, 1))
			taken[slot]++
			r.queues[firstPort+slot].items = nil
		}
		if slices.Contains(taken[:], 0) {
			t.Errorf("%s the paths get %v", when, taken)
		}
	}
	for seq := uint16(1<<16 - 3); seq != 40; seq++ { // it wraps
		r.now += 400
		for slot := range 4 {
			r.flood(model.Probe{Origin: 0, Seq: seq - uint16(10*slot), Degree: 5}, firstPort+slot)
		}
		if seq < 1<<15 {
			all("after probes that are 10, 20 and 30 late")
		}
	}
	for seq := range uint16(4) {
		r.now += 400
		for slot := range 4 {
			r.flood(model.Probe{Origin: 0, Seq: 30_000 + seq, Degree: 5}, firstPort+slot)
		}
		all("after another count")
	}
}

// The paper's delta is the flowlet gap as well.
func TestErratumDHLB6_Separate(t *testing.T) {
	row, err := codegen.Parse("dhlb")
	if err != nil {
		t.Fatal(err)
	}
	prog, err := codegen.Generate(row, codegen.Params{Role: "tor", Set: map[string]string{"gap": "123us", "window": "14"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range prog.Manifest.Parameters {
		if v.Name == "gap" && v.Number != 123_000 || v.Name == "window" && v.Number != 14 {
			t.Errorf("%s is %d", v.Name, v.Number)
		}
	}
}

func TestErratumDHLB7_BestWithinTheWindow(t *testing.T) {
	r := rigOf(t, "dhlb", codegen.Params{Role: "tor", Set: map[string]string{"tprobe": "200us"}}, 2, nil)
	probe := func(at model.Time, degree uint8) uint64 {
		r.now = at
		r.flood(model.Probe{Origin: 0, Degree: degree}, firstPort)
		return r.cell("deg", 0)
	}
	for _, c := range []struct {
		at     model.Time
		degree uint8
		want   uint64
	}{
		{1000, 2, 2}, {1010, 5, 5}, // two paths behind one next hop: the better one
		{1200, 2, 5}, {1210, 3, 5}, {1410, 3, 5},
		{1411, 3, 3}, // no news of the better path for two periods
		{1420, 1, 3}, {1421, 5, 5},
	} {
		if got := probe(c.at, c.degree); got != c.want {
			t.Errorf("at %d a probe of degree %d leaves %d, want %d", c.at, c.degree, got, c.want)
		}
	}
}

// With loop=queue t_rc is the time that the packets in the recirculation queue take: none
// wait, then one packet of 1,000 bytes, which takes 800 us at 10 Mbit/s.
func TestErratumRLB6_RecirculationQueue(t *testing.T) {
	r := rlbRig(t, "rlb", rlb("rc", "2", "loop", "queue", "rcrate", "10Mbps"), 100, 50_000)
	r.warn(0)
	p := tcp(0, 1)
	p.Len = 1000
	send := func(waiting int) { // until a packet meets the path that is warned of
		for range 100 {
			if r.send(p); len(r.rounds) == waiting {
				return
			}
		}
		t.Fatalf("%d packets recirculate, want %d", len(r.rounds), waiting)
	}
	send(1)
	if got := r.cell("t_rc", 0); got != 0 {
		t.Errorf("t_rc is %d us while nothing waits", got)
	}
	send(2)
	if got := r.cell("t_rc", 0); got != 799 {
		t.Errorf("t_rc is %d us while 1,000 bytes wait, want 800 rounded down", got)
	}
	it := r.rounds[0]
	r.rounds = r.rounds[1:]
	r.comeAgain(it)
	if got := r.cell("rc_q", 0); got != 2000 {
		t.Errorf("%d bytes wait: one of two packets has come round and goes round again", got)
	}
}

// The suboptimal path of the first one is the next by RTT, here the last slot, or as the
// load balancer selects: the next slot, or a random other one.
func TestErratumRLB12_Suboptimal(t *testing.T) {
	for word, want := range map[string][]int{"rtt": {3}, "turn": {1}, "random": {1, 2, 3}} {
		r := rlbRig(t, "rlb", rlb("suboptimal", word), 100, 90, 80, 110)
		taken := make([]int, 4)
		for turn := range 4 * 300 {
			r.warn(0)
			slot, _ := r.sendRounds(tcp(0, 1))
			if turn%4 == 0 { // else another path is the first choice
				taken[slot]++
			}
		}
		for slot, n := range taken {
			if slices.Contains(want, slot) != (n >= 70) || !slices.Contains(want, slot) && n > 0 {
				t.Errorf("suboptimal=%s: packets by path %v, want paths %v", word, taken, want)
				break
			}
		}
	}
}

// With relays a switch passes a warning on, to the switch that sent the last packet for
// its port, as many times as the warning states. It does not pass a clear on.
func TestErratumRLB13_Relay(t *testing.T) {
	r := rlbRig(t, "rlb", rlb("relay", "3"), 100, 110)
	for _, in := range []int{5, 7} {
		r.setPort(in, 64, 1)
		for range 2 { // one packet to each of the two paths
			p := tcp(0, 1)
			p.In = in
			r.send(p)
		}
		r.runUntil(r.now + 100)
		for slot := range 2 {
			if to := r.heed(firstPort+slot, model.Warn, 50); to != in {
				t.Errorf("a warning from path %d goes on to port %d, want %d", slot, to, in)
			}
			if to := r.heed(firstPort+slot, model.Clear, 0); to >= 0 {
				t.Errorf("a clear from path %d goes on to port %d", slot, to)
			}
		}
	}
}

// TestCONGAEstimator: the estimator of CONGA (Section 3.2) is a low-pass filter with the
// time constant tau: a rate R that begins at 0 gives R*tau*(1-exp(-t/tau)). Here tau is
// 1024 us and the link's C*tau 25,600 bytes. The paper multiplies X by 1-alpha at each
// interval, the program takes away X*dt/tau for each packet: without packets X falls
// evenly, and is 0 after tau, when the paper has exp(-1) of it left.
func TestCONGAEstimator(t *testing.T) {
	const tau, every, bytes = 1024, 32, 400 // 100 Mbps, half of the link
	r := rigOf(t, "conga", codegen.Params{StatePath: "shared", Set: map[string]string{"link": "200Mbps", "gap": "100ms"}}, 2, nil)
	r.now = 5000
	port := 0
	send := func() float64 {
		p := tcp(0, 1)
		p.Len = bytes - 2 // the overlay header has two
		port = firstPort + r.send(p)
		r.runUntil(r.now + 2)
		r.now -= 2
		return float64(r.cell("dre", port))
	}
	var X float64
	for sent := 1; sent <= 10*tau/every; sent++ {
		X = send()
		elapsed := float64(sent * every)
		if want := float64(bytes) / every * tau * (1 - math.Exp(-elapsed/tau)); math.Abs(X-want) > bytes {
			t.Fatalf("after %.0f us the estimator has %.0f bytes, want %.0f", elapsed, X, want)
		}
		r.now += every
	}
	r.now -= every
	for _, pause := range []model.Time{100, 300, 512, 1000, 1024, 5000} {
		r.now += pause
		left := max(0, 1-float64(pause)/tau)
		if got, want := send(), bytes+X*left; math.Abs(got-want) > bytes/10 {
			t.Errorf("%d us after the last packet %.0f of %.0f bytes are left, want %.0f", pause, got-bytes, X, want-bytes)
		}
		for range 10 * tau / every {
			r.now += every
			X = send()
		}
	}
}

// TestCONGAAgeing: a path whose metric is older than the ageing time counts
// as idle (CONGA, Section 3.3), and until then as congested.
func TestCONGAAgeing(t *testing.T) {
	r := rigOf(t, "conga", codegen.Params{StatePath: "shared", Set: map[string]string{"link": "200Mbps", "gap": "1us", "ageing": "10ms"}}, 2, nil)
	r.now = 5000
	told := r.now
	r.send(model.Packet{
		Flow: model.Flow{Src: groupNet(0) + 1, Dst: localNet(firstPort), Protocol: 1}, Len: 100, In: 1, Group: -1,
		Overlay: model.Overlay{Valid: true, FbTag: 0, FbMetric: 7},
	})
	for _, c := range []struct {
		after model.Time
		used  bool
	}{{100, false}, {5000, false}, {9800, false}, {10_100, true}} {
		used := false
		for i := range 60 {
			r.runUntil(told + c.after + model.Time(2*i))
			slot := r.send(tcp(0, uint16(i)))
			used = used || slot == 0
			r.queues[firstPort].items, r.queues[firstPort+1].items = nil, nil
		}
		if used != c.used {
			t.Errorf("%d us after the metric of path 0 was 7, packets take it: %v", c.after, used)
		}
	}
}
