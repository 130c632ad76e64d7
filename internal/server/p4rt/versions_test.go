package p4rt

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestVersions compares a versioned map and its views with plain maps and their
// copies.
func TestVersions(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	key := func() uint32 {
		switch random.IntN(3) {
		case 0:
			return random.Uint32N(40)
		case 1:
			return random.Uint32N(3000)
		}
		return random.Uint32()
	}
	var m versioned[int]
	plain := map[uint32]int{}
	type old struct {
		view[int]
		plain map[uint32]int
	}
	var views []old
	check := func(v view[int], want map[uint32]int) {
		t.Helper()
		last := int64(-1)
		got := map[uint32]int{}
		for k, x := range v.all() {
			if int64(k) <= last {
				t.Fatalf("key %d follows %d", k, last)
			}
			last = int64(k)
			got[k] = x
			if y, ok := v.get(k); !ok || y != x {
				t.Fatalf("key %d: get has %d, %v, the walk %d", k, y, ok, x)
			}
		}
		if !maps.Equal(got, want) {
			t.Fatalf("a view has %d values, want %d", len(got), len(want))
		}
	}
	for i := range 20000 {
		k := key()
		if random.IntN(3) == 0 {
			if len(plain) > 0 && random.IntN(2) == 0 {
				keys := slices.Sorted(maps.Keys(plain))
				k = keys[random.IntN(len(keys))]
			}
			m.delete(k)
			delete(plain, k)
		} else {
			m.set(k, i)
			plain[k] = i
		}
		if random.IntN(500) == 0 {
			views = append(views, old{m.view(), maps.Clone(plain)})
		}
		if m.len() != len(plain) {
			t.Fatalf("step %d: %d values, want %d", i, m.len(), len(plain))
		}
	}
	check(m.view(), plain)
	for _, v := range views {
		check(v.view, v.plain)
	}
	for k := range plain {
		m.delete(k)
	}
	if m.root != nil {
		t.Error("nodes are left of an empty map")
	}
	check(views[0].view, views[0].plain)
	for range views[0].view.all() {
		break // iteration may end early
	}
}
