package model_test

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/p4lb/p4lb/internal/scheme/model"
)

// variant returns a variant of a scheme's model with the given number of paths.
func variant(t *testing.T, granularity, choice string, paths int, v model.Variant) *model.Switch {
	t.Helper()
	r := rand.New(rand.NewPCG(1, 2))
	m, err := model.New(model.Config{
		Granularity: granularity, Signal: "queue", Choice: choice, Paths: paths, Edge: true, Direct: true, Variant: v,
		Params: model.Params{Gap: 100}, Random: func(lo, hi uint64) uint64 { return lo + r.Uint64N(hi-lo+1) },
	})
	if err != nil {
		t.Fatal(err)
	}
	ports := make([]int, paths)
	for i := range ports {
		ports[i] = i + 1
	}
	m.SetGroup(0, model.Group{Ports: ports})
	return m
}

// TestLooseFlows: flows to one host with the same source port and neighbouring destination
// ports count as one flow, which keeps its path as long as any of them sends.
func TestLooseFlows(t *testing.T) {
	for _, loose := range []bool{false, true} {
		m := variant(t, "flowlet", "uniform", 8, model.Variant{LooseFlows: loose})
		slots := map[uint16][]int{}
		for host := range uint32(40) {
			for _, dport := range []uint16{100, 103, 104} {
				p := &model.Packet{Flow: model.Flow{Src: host, Dst: 1000, Protocol: 17, Sport: 10000, Dport: dport}}
				slots[dport] = append(slots[dport], m.Ingress(p, model.Time(host)).Slot)
			}
		}
		one := func(list []int) bool { return slices.Min(list) == slices.Max(list) }
		if got := one(slots[100]) && one(slots[104]) && slots[100][0] == slots[103][0]; got != loose {
			t.Errorf("loose %t: paths %v", loose, slots)
		}
		if loose && slots[100][0] == slots[104][0] {
			t.Error("ports 103 and 104 are one")
		}
	}
}

// TestFourPaths: of six equal paths the middle ones are chosen three times as often as
// the outer ones, and of two better paths both equally often.
func TestFourPaths(t *testing.T) {
	const packets = 12000
	for _, c := range []struct {
		busy []int // slots with a queue
		want []int // twelfths
	}{
		{nil, []int{1, 2, 3, 3, 2, 1}},
		{[]int{1, 2, 4, 5}, []int{2, 0, 0, 10, 0, 0}}, // two of the first four are free, and one of the others
		{[]int{0, 1, 4, 5}, []int{0, 0, 6, 6, 0, 0}},
	} {
		m := variant(t, "packet", "least", 6, model.Variant{FourPaths: true})
		for _, slot := range c.busy {
			m.Egress(model.Departure{Port: slot + 1, Met: 9, Left: 9, Packet: &model.Packet{}}, 0)
		}
		taken := make([]int, 6)
		for range packets {
			taken[m.Ingress(&model.Packet{}, 1).Slot]++
		}
		for slot, n := range taken {
			if want := c.want[slot] * packets / 12; n < want*9/10 || n > want*11/10 {
				t.Errorf("with %v busy path %d is taken %d times, want %d", c.busy, slot, n, want)
			}
		}
	}
}

// conga is the model of a leaf with CONGA, of two paths at 100 Gb/s to leaf 0.
func conga(t *testing.T, v model.Variant) *model.Switch {
	t.Helper()
	r := rand.New(rand.NewPCG(1, 2))
	v.LoadNow = true
	m, err := model.New(model.Config{
		Granularity: "flow", Signal: "piggyback", Choice: "least", Paths: 2, Edge: true, Direct: true, Variant: v,
		Params: model.Params{Link: 100e9, Window: 8, Ageing: 10000}, Random: func(lo, hi uint64) uint64 { return lo + r.Uint64N(hi-lo+1) },
	})
	if err != nil {
		t.Fatal(err)
	}
	m.SetGroup(0, model.Group{Ports: []int{1, 2}})
	return m
}

// TestSteps: a load decays by a fifth each 50 µs from the first packet on, in eighths of
// the bytes that a link sends in 250 µs. In the other variant it is 0 after 256 µs.
func TestSteps(t *testing.T) {
	const whole = 100e9 / 8 * 250e-6
	for _, c := range []struct {
		after model.Time
		steps bool
		want  uint8
	}{
		{0, true, 8}, {49, true, 8}, {50, true, 6}, {99, true, 6}, {100, true, 5}, {250, true, 2}, {260, true, 2}, {450, true, 1}, {500, true, 0},
		{0, false, 7}, {50, false, 6}, {130, false, 3}, {256, false, 0},
	} {
		m := conga(t, model.Variant{Steps: c.steps})
		m.Arrived(1, whole, &model.Overlay{}, 1000)
		m.Arrived(1, 0, &model.Overlay{}, 1000+c.after)
		h := &model.Overlay{Valid: true}
		m.Arrived(1, 0, h, 1000+c.after)
		if !c.steps { // packets gather it as they leave
			p := &model.Packet{Overlay: *h}
			m.Egress(model.Departure{Port: 1, Packet: p}, 1000+c.after)
			h = &p.Overlay
		}
		if h.CE != c.want {
			t.Errorf("after %d us, steps %t: %d eighths, want %d", c.after, c.steps, h.CE, c.want)
		}
	}
}

// TestHeardNews: a leaf only reports paths with recent arrivals.
func TestHeardNews(t *testing.T) {
	told := func(m *model.Switch, at model.Time) map[uint8]uint8 {
		list := map[uint8]uint8{}
		for range 20 {
			p := &model.Packet{From: -1}
			m.Ingress(p, at)
			list[p.Overlay.FbTag] = p.Overlay.FbMetric
		}
		return list
	}
	hear := func(m *model.Switch, tag, ce uint8, at model.Time) {
		m.Ingress(&model.Packet{From: 0, Group: -1, Overlay: model.Overlay{Valid: true, Tag: tag, CE: ce, FbTag: 0xff}}, at)
	}
	const nothing = 0xff
	m := conga(t, model.Variant{HeardNews: true})
	for _, c := range []struct {
		at    model.Time
		hears uint8 // of path 0 or 1
		want  map[uint8]uint8
	}{
		{1000, nothing, map[uint8]uint8{nothing: 0}},
		{1010, 1, map[uint8]uint8{1: 5}},
		{1500, nothing, map[uint8]uint8{1: 5}}, // 490 µs old
		{1999, 0, map[uint8]uint8{0: 5, 1: 5}}, // it is looked for each 500 µs
		{2000, nothing, map[uint8]uint8{0: 5}},
		{2499, nothing, map[uint8]uint8{0: 5}},
		{2500, nothing, map[uint8]uint8{nothing: 0}},
	} {
		if c.hears != nothing {
			hear(m, c.hears, 5, c.at)
		}
		if got := told(m, c.at); !maps.Equal(got, c.want) {
			t.Errorf("at %d us: told %v, want %v", c.at, got, c.want)
		}
	}
}

// TestGradesNow: if a switch reads queues, grades are of bytes. An idle port then has a lower
// grade than one that sends its last packet.
func TestGradesNow(t *testing.T) {
	const frame = 4160
	lengths := map[int]uint32{1: frame, 2: frame, 3: frame}
	m, err := model.New(model.Config{
		Granularity: "packet", Signal: "occupancy", Choice: "least", Paths: 3, Edge: true, Direct: true,
		Params:  model.Params{QCap: 17, Grades: [3]uint32{5, 10, 20}},
		Variant: model.Variant{QueueNow: func(port int, _ model.Flow) uint32 { return lengths[port] }, Frame: frame},
		Random:  func(lo, _ uint64) uint64 { return lo },
	})
	if err != nil {
		t.Fatal(err)
	}
	m.SetGroup(0, model.Group{Ports: []int{1, 2, 3}})
	for _, c := range []struct {
		name        string
		free, other uint32
	}{
		{"an idle port", 0, frame},
		{"below a twentieth of the queue", 17*frame/20 - 1, 17*frame/20 + 1},
		{"below a tenth", frame, 2 * frame},
		{"below a fifth", 3 * frame, 4 * frame},
	} {
		for free := range 3 {
			for port := range lengths {
				lengths[port] = c.other
			}
			lengths[free+1] = c.free
			if r := m.Ingress(&model.Packet{Flow: model.Flow{Src: 1, Dst: 2}}, 1); r.Slot != free {
				t.Errorf("%s: port %d, want %d", c.name, r.Slot+1, free+1)
			}
		}
	}
}

// TestDrainNow: if a switch reads queues, signal drain grades the time until a port has sent its
// queue and one more packet, relative to the fastest port. An idle slow port is then worse than a
// fast port with a short queue, and better than one with a long queue.
func TestDrainNow(t *testing.T) {
	const frame = 1500
	lengths := map[int]uint32{}
	m, err := model.New(model.Config{
		Granularity: "packet", Signal: "drain", Choice: "least", Paths: 2, Edge: true, Direct: true,
		Params:  model.Params{QCap: 100, Grades: [3]uint32{2, 10, 20}},
		Variant: model.Variant{QueueNow: func(port int, _ model.Flow) uint32 { return lengths[port] }, Frame: frame},
		Random:  func(lo, _ uint64) uint64 { return lo },
	})
	if err != nil {
		t.Fatal(err)
	}
	m.SetGroup(0, model.Group{Ports: []int{1, 2}})
	m.SetPort(1, model.Port{Service: 4 << 16}) // a quarter of the rate
	m.SetPort(2, model.Port{Service: 1 << 16})
	for _, c := range []struct {
		slow, fast uint32 // packets in the queues
		want       int    // slot
	}{
		{0, 1, 1},  // 4 and 2 packets of the fast port: grades 1 and 0
		{0, 9, 0},  // 4 and 10, which begins grade 2 at 11: both grade 1
		{0, 10, 0}, // 4 and 11: grades 1 and 2
		{2, 9, 1},  // 12 and 10: grades 2 and 1
		{4, 20, 0}, // 20 and 21: grades 2 and 3
		{5, 19, 1}, // 24 and 20: grades 3 and 2
	} {
		lengths[1], lengths[2] = c.slow*frame, c.fast*frame
		if r := m.Ingress(&model.Packet{Flow: model.Flow{Src: 1, Dst: 2}}, 1); r.Slot != c.want {
			t.Errorf("%d packets at the slow port and %d at the fast one: path %d, want %d", c.slow, c.fast, r.Slot, c.want)
		}
	}
}

// TestWeightNow: if a switch reads queues, the weight of a path is the free space of its queue.
func TestWeightNow(t *testing.T) {
	lengths := map[int]uint32{1: 0, 2: 75_000, 3: 150_000} // of queues of 150,000 bytes
	r := rand.New(rand.NewPCG(1, 2))
	m, err := model.New(model.Config{
		Granularity: "packet", Signal: "queue", Choice: "grid", Paths: 3, Edge: true, Direct: true,
		Params:  model.Params{QCap: 100},
		Variant: model.Variant{QueueNow: func(port int, _ model.Flow) uint32 { return lengths[port] }, Frame: 1500},
		Random:  func(lo, hi uint64) uint64 { return lo + r.Uint64N(hi-lo+1) },
	})
	if err != nil {
		t.Fatal(err)
	}
	m.SetGroup(0, model.Group{Ports: []int{1, 2, 3}})
	var taken [3]int
	for range 3000 {
		taken[m.Ingress(&model.Packet{Flow: model.Flow{Src: 1, Dst: 2}}, 1).Slot]++
	}
	if taken[0] < 1900 || taken[0] > 2100 || taken[2] > 5 {
		t.Errorf("an empty, a half full and a full queue: %v of 3000 packets, want about 2000, 1000 and 0", taken)
	}
}

// TestOrderNow: if a switch reads queues, QDAPS computes waiting times from their packets or cells.
// A flow goes over to a shorter queue as soon as its packet leaves there after its last one.
func TestOrderNow(t *testing.T) {
	const frame = 1500
	for _, c := range []struct {
		name     string
		hardware *model.Hardware
		tick     model.Time
		at       model.Time // in ticks after the first packet
		want     int
	}{
		// 21 packets take 21 us, 11 packets 11.
		{"v1model", nil, 1, 10, 0},
		{"v1model", nil, 1, 11, 1},
		// At 12.5 Gbit/s a tick of 1024 ns sends 20 cells, of which the program makes 16.
		// 375 cells take 23 ticks, 188 cells 11.
		{"tna", &model.Hardware{Cell: 80}, 1 << 16, 12, 0},
		{"tna", &model.Hardware{Cell: 80}, 1 << 16, 13, 1},
	} {
		lengths := map[int]uint32{1: 20 * frame, 2: 30 * frame}
		draws := uint64(0)
		m, err := model.New(model.Config{
			Granularity: "packet", Signal: "queue", Choice: "ordered", Paths: 2, Edge: true, Direct: true,
			Params:  model.Params{QCap: 100, D: 2, Link: 12.5e9, Hardware: c.hardware},
			Variant: model.Variant{QueueNow: func(port int, _ model.Flow) uint32 { return lengths[port] }, Frame: frame},
			Random: func(lo, hi uint64) uint64 {
				draws++
				return lo + draws%2*(hi-lo)
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		m.SetGroup(0, model.Group{Ports: []int{1, 2}})
		m.SetPort(1, model.Port{Service: 1 << 16})
		m.SetPort(2, model.Port{Service: 1 << 16})
		const start = 1000
		take := func(now model.Time) int {
			return m.Ingress(&model.Packet{Flow: model.Flow{Src: 1, Dst: 2}}, now*c.tick).Slot
		}
		first := take(start)
		lengths[2] = 10 * frame
		if got := take(start + c.at); first != 0 || got != c.want {
			t.Errorf("%s: paths %d and, after %d ticks, %d: want 0 and %d", c.name, first, c.at, got, c.want)
		}
	}
}
