package model_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/p4lb/p4lb/internal/scheme/model"
)

// The deviations that the manifests for Tofino declare, tested on the models alone.

// hardwareModel is a switch on hardware with one group of n paths, firstPort
// and those behind it, out of room for paths.
func hardwareModel(t *testing.T, cfg model.Config, n int) *model.Switch {
	t.Helper()
	if cfg.Hardware == nil {
		cfg.Hardware = &model.Hardware{Cell: 80}
	}
	if cfg.Random == nil {
		r := rand.New(rand.NewPCG(1, 2))
		cfg.Random = func(lo, hi uint64) uint64 { return lo + r.Uint64N(hi-lo+1) }
	}
	cfg.Edge, cfg.Paths = true, max(cfg.Paths, n)
	m, err := model.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	g := groupOf(n)
	for i := range g.Ports {
		g.Weights = append(g.Weights, uint32(i+1))
	}
	m.SetGroup(0, g)
	return m
}

// ticks returns a time of n ticks of 1024 ns.
func ticks(n int64) model.Time { return (*model.Hardware).Clock(&model.Hardware{}, n*1024) }

// TestHardwareClock: 1024 ns, which wrap after 2^32 ticks; times are rounded, not
// truncated.
func TestHardwareClock(t *testing.T) {
	h := &model.Hardware{}
	if got := h.Clock(2047) - h.Clock(1024); got != 0 {
		t.Errorf("within a tick %d pass", got)
	}
	if got := h.Count(h.Clock(1<<42 + 5*1024).Since(h.Clock(1<<42 - 2*1024))); got != 7 {
		t.Errorf("%d ticks pass across the wrap, want 7", got)
	}
	for ns, want := range map[int64]uint64{500_000: 488, 1_000_000: 977, 1024: 1, 100: 0} {
		if got := h.Count(h.Interval(ns)); got != want {
			t.Errorf("%d ns are %d ticks, want %d", ns, got, want)
		}
	}
}

// TestEvenChoice: each of n paths gets 4096/n of 4096 draws, within one draw.
func TestEvenChoice(t *testing.T) {
	for n := 1; n <= 16; n++ {
		next := uint64(0)
		m := hardwareModel(t, model.Config{
			Granularity: "packet", Signal: "none", Choice: "uniform",
			Random: func(lo, hi uint64) uint64 {
				if lo != 0 || hi != 4095 {
					t.Fatalf("a draw from %d to %d", lo, hi)
				}
				next++
				return next - 1
			},
		}, n)
		taken, before := make([]float64, n), 0
		for range 4096 {
			slot := m.Ingress(&model.Packet{}, 0).Slot
			if slot < before {
				t.Fatalf("%d paths: path %d after path %d", n, slot, before)
			}
			taken[slot]++
			before = slot
		}
		for slot, k := range taken {
			if math.Abs(k-4096/float64(n)) >= 1 {
				t.Errorf("path %d of %d has %g of 4096 draws", slot, n, k)
			}
		}
	}
}

// TestWeightedChoice: of 256 grids each path has its share, to one, and a slot
// that the group does not have none.
func TestWeightedChoice(t *testing.T) {
	next := uint64(0)
	m := hardwareModel(t, model.Config{
		Granularity: "packet", Signal: "weights", Choice: "grid", Paths: 8,
		Random: func(lo, hi uint64) uint64 { next++; return next - 1 },
	}, 5)
	taken := map[int]float64{}
	for range 256 {
		taken[m.Ingress(&model.Packet{}, 0).Slot]++
	}
	for slot := range 5 {
		if want := 256 * float64(slot+1) / 15; math.Abs(taken[slot]-want) > 1 {
			t.Errorf("path %d has %g grids of 256, want %g", slot, taken[slot], want)
		}
		delete(taken, slot)
	}
	if len(taken) > 0 {
		t.Errorf("paths that there are not are taken: %v", taken)
	}
}

// TestCongestedFlowsMove: a FlowBender flow with marked acknowledgements moves about
// as often as with a random draw, and reaches all paths.
func TestCongestedFlowsMove(t *testing.T) {
	for n := 2; n <= 16; n *= 2 {
		moves, steps := 0, 0
		for sport := range uint16(30) {
			m := hardwareModel(t, model.Config{Granularity: "flow", Signal: "echo", Choice: "rehash", Params: model.Params{Epoch: ticks(10), Marked: 5}}, n)
			there := model.Flow{Src: 1, Dst: 2, Protocol: 6, Sport: sport, Dport: 80}
			back := model.Flow{Src: 2, Dst: 1, Protocol: 6, Sport: 80, Dport: sport}
			taken, last := map[int]bool{}, -1
			for k := range int64(2*n + 2) {
				slot := m.Ingress(&model.Packet{Flow: there}, ticks(100*k+1)).Slot
				if taken[slot] = true; k > 2 { // the first epoch ends with nothing marked
					steps++
					if slot != last {
						moves++
					}
				}
				last = slot
				m.Ingress(&model.Packet{Flow: back, Group: -1, Ack: true, Echo: true}, ticks(100*k+50))
			}
			if len(taken) < n {
				t.Errorf("%d paths: within %d moves a flow comes to %d of them", n, 2*n, len(taken))
			}
		}
		if share, want := float64(moves)/float64(steps), 1-1/float64(n); share < 0.9*want {
			t.Errorf("%d paths: a flow moves in %.0f %% of all cases, want %.0f %%", n, 100*share, 100*want)
		}
	}
}

// TestMemoryBeforeComparison: DRILL remembers the shortest of the drawn queues, not of
// all queues that it compared.
func TestMemoryBeforeComparison(t *testing.T) {
	draws := []uint64{}
	m := hardwareModel(t, model.Config{
		Granularity: "packet", Signal: "queue", Choice: "sampled", Params: model.Params{D: 2, M: 1, Tb: 1},
		Random: func(lo, hi uint64) uint64 { d := draws[0]; draws = draws[1:]; return d },
	}, 4)
	for slot, n := range []int{5, 9, 7, 8} {
		r, _ := m.Egress(model.Departure{Port: firstPort + slot, Left: n, Packet: &model.Packet{}}, ticks(100))
		m.Learn(r, ticks(100))
	}
	for i, c := range []struct{ a, b, want, memory int }{
		{1, 2, 0, 2}, // path 0 is remembered from the start
		{3, 3, 2, 3}, // the same may be drawn twice
		{1, 1, 3, 1},
		{0, 2, 0, 0},
	} {
		draws = []uint64{uint64(c.a) << 10, uint64(c.b) << 10}
		if got := m.Ingress(&model.Packet{}, ticks(200)).Slot; got != c.want {
			t.Errorf("packet %d takes path %d, want %d", i, got, c.want)
		}
		if got := m.Cells("dr_mem")[0]; got != uint64(c.memory) {
			t.Errorf("after packet %d path %d is remembered, want %d", i, got, c.memory)
		}
	}
}

// TestOrderIsKept: for any queues, a flow changes to another path only if its packet is
// expected to leave there after the flow's previous packet. This also holds when the clock
// wraps.
func TestOrderIsKept(t *testing.T) {
	m := hardwareModel(t, model.Config{Granularity: "packet", Signal: "queue", Choice: "ordered", Params: model.Params{Link: 10e9, Tb: 1}}, 4)
	r := rand.New(rand.NewPCG(3, 4))
	now, changes, last := int64(1<<32-20_000), 0, 0
	free := map[int]int64{} // the last departure by path, as reported
	left := int64(0)
	for range 20_000 {
		now += r.Int64N(4)
		if r.IntN(3) == 0 {
			slot := r.IntN(4)
			report, _ := m.Egress(model.Departure{Port: firstPort + slot, Left: r.IntN(60) << 4, Packet: &model.Packet{}}, ticks(now))
			m.Learn(report, ticks(now))
			free[slot] = int64(report.Len)
		}
		slot := m.Ingress(&model.Packet{}, ticks(now)).Slot
		if slot != last {
			if leaves := now + free[slot]; leaves <= left {
				t.Fatalf("at %d the flow goes over to path %d, which it leaves at %d; its last packet leaves at %d", now, slot, leaves, left)
			}
			changes++
			left = now + free[slot]
		}
		last = slot
	}
	if changes < 100 {
		t.Errorf("the flow goes over %d times", changes)
	}
}

// TestFilterFades: a full link reads 256 and decays with the time
// constant, which is 2^window us within a factor of 1.42.
func TestFilterFades(t *testing.T) {
	for _, link := range []uint64{1e9, 10e9, 25e9, 40e9, 100e9} {
		m := hardwareModel(t, model.Config{Granularity: "flow", Signal: "utilisation", Choice: "best-hop",
			Params: model.Params{Link: link, Window: 9}}, 2)
		const tick = 2
		bytes := int(link * tick * 1024 / 8e9)
		var at int64
		var r model.Report
		for ; at < 1<<14; at += tick {
			r, _ = m.Egress(model.Departure{Port: firstPort, Len: bytes, Packet: &model.Packet{}}, ticks(at))
		}
		if r.Sent < 254 || r.Sent > 260 {
			t.Errorf("a full link of %d bit/s comes to %d, want 256", link, r.Sent)
		}
		for ; ; at++ {
			if r, _ = m.Egress(model.Departure{Port: firstPort, Packet: &model.Packet{}}, ticks(at)); r.Sent < 94 {
				break
			}
		}
		if us := float64(at-1<<14) * 1.024; us < 512/1.45 || us > 512*1.45 {
			t.Errorf("a link of %d bit/s is forgotten by 1/e in %.0f us, want about 512", link, us)
		}
	}
}

// TestWarningWraps: a warning ends, also where the clock wraps meanwhile, and
// does not come back when the clock comes round.
func TestWarningWraps(t *testing.T) {
	m := hardwareModel(t, model.Config{Granularity: "flow", Signal: "none", Choice: "hash", Guard: "rlb",
		Params: model.Params{Hold: ticks(300), QTh: 1 << 20, QPFC: 1 << 21, DT: ticks(40), TWarn: ticks(400)}}, 2)
	p := func() model.Packet { return model.Packet{Len: 100, In: hostPort, Flow: model.Flow{Dst: groupNet(0)}} }
	at := func(n int64) int { q := p(); return m.Ingress(&q, ticks(n)).Slot }
	usual := at(0)
	const wrap = 1 << 32
	for _, began := range []int64{1000, wrap - 100, wrap + 5000, 2*wrap - 200} {
		m.Heed(firstPort+1-usual, model.Warn, 0, ticks(began-900)) // which is over
		m.Heed(firstPort+usual, model.Warn, 0, ticks(began))
		for after, warned := range map[int64]bool{0: true, 150: true, 299: true, 300: false, 5000: false, wrap / 4: false, 3 * wrap / 4: false} {
			if got := at(began+after) != usual; got != warned {
				t.Errorf("%d ticks after a warning at %d: warned about %v, want %v", after, began, got, warned)
			}
		}
	}
}

// TestPrediction: the growth since the interval began reaches Q_PFC within
// T_warn, as a multiple of the interval that is a power of 2.
func TestPrediction(t *testing.T) {
	for _, c := range []struct {
		twarn int64
		bytes int // of a packet, after 10,000
		want  bool
	}{
		{40, 10_000, false}, // 10,000 more until 40,000 are full, and 20,000 left
		{80, 10_000, false},
		{80, 10_001, true},
		{120, 6_001, true}, // 3 is nearer to 4 than to 2, by its logarithm
		{120, 5_999, false},
		{110, 6_001, false}, // 2.75 is not
		{1, 29_999, true},
	} {
		m := hardwareModel(t, model.Config{Granularity: "flow", Signal: "none", Choice: "hash", Guard: "rlb",
			Params: model.Params{Hold: ticks(300), QTh: 10_000, QPFC: 40_000, DT: ticks(40), TWarn: ticks(c.twarn), Derivative: true}}, 2)
		send := func(bytes int, at int64) model.Notice {
			p := model.Packet{Len: 14 + bytes, In: hostPort, Flow: model.Flow{Dst: groupNet(0)}}
			return m.Ingress(&p, ticks(at)).Notice
		}
		if got := send(10_000, 1000); got != model.None {
			t.Errorf("T_warn %d: the first packet warns", c.twarn)
		}
		if got := send(c.bytes, 1010) == model.Warn; got != c.want {
			t.Errorf("T_warn %d, %d bytes after 10,000: warns %v, want %v", c.twarn, c.bytes, got, c.want)
		}
	}
}
