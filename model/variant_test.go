package model_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/p4lb/p4lb/model"
)

// variant is the model of a scheme with as many paths, in a variant.
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

// TestLooseFlows: flows to one host with the same source port and neighbouring
// destination ports are one, and take one path for as long as any of them sends.
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

// TestFourPaths: of six paths that are alike those in the middle are taken three
// times as often as those at the ends, and of two that are better than others
// each as often as the other.
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
