package task

import (
	"testing"

	"github.com/p4lb/p4lb/internal/network/fabric"
	"github.com/p4lb/p4lb/internal/scheme/manifest"
)

// TestHops counts probes by hand. In a leaf-spine, each of L leaves floods one probe to
// itself, S spines and over each of them to L-1 leaves; it sends one probe per spine to
// each other leaf, through 5 switches there and back.
// In a fat tree with k = 4, a flooded probe visits its ToR switch, 2 aggregation switches,
// from each of them the other ToR switch and 2 cores, from each core 3 aggregation
// switches, and from each of those 2 ToR switches: 1 + 2 + 2 + 4 + 12 + 24 = 45 for each of
// 8 ToR switches. Probes along paths: 8 pairs in a pod and 48 others, 2 next hops each,
// 5 or 9 hops.
func TestHops(t *testing.T) {
	tree := fabric.FatTree{K: 4}
	for name, c := range map[string]struct {
		make        func() (*fabric.Topology, error)
		flood, path int
	}{
		"2x2":  {fabric.LeafSpine{}.Make, 2 * (1 + 2 + 2), 2 * 2 * 5},
		"16x4": {fabric.LeafSpine{Leaves: 16, Spines: 4}.Make, 16 * (1 + 4 + 4*15), 16 * 15 * 4 * 5},
		"twin": {fabric.LeafSpine{Parallel: 2}.Make, 2 * (1 + 4 + 4*2 + 4), 2 * 4 * 5},
		"k=4":  {tree.Make, 8 * 45, 8*2*5 + 48*2*9},
	} {
		topology, err := c.make()
		if err != nil {
			t.Fatal(err)
		}
		if flood, path := Hops(topology, manifest.ProbeFlood), Hops(topology, manifest.PathProbe); flood != c.flood || path != c.path {
			t.Errorf("%s: %d and %d hops, want %d and %d", name, flood, path, c.flood, c.path)
		}
	}
	if n := Hops(nil, manifest.Rezero); n != 0 {
		t.Errorf("a task without probes has %d hops", n)
	}
}
