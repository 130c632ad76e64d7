package codegen

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/p4lb/p4lb/internal/scheme/manifest"
)

// TestEnds: the last of each path's 256 grids; absent paths have no grids.
func TestEnds(t *testing.T) {
	b := manifest.Baked{Weights: []int{3, 1, 0, 0}, Zero: []int{0}, Total: 256}
	for _, c := range []struct{ levels, want []int }{
		{[]int{0, 0, 0, 0}, []int{63, 127, 191}},
		{[]int{0, 1, 2, 2}, []int{191, 255, 255}},
		{[]int{2, 2, 2, 1}, []int{0, 0, 0}},
		{[]int{1, 2, 1, 2}, []int{127, 127, 255}},
		{[]int{3, 3, 3, 3}, []int{63, 127, 191}},
	} {
		if got := b.Ends(c.levels); !slices.Equal(got, c.want) {
			t.Errorf("%v: %v, want %v", c.levels, got, c.want)
		}
	}
	full := manifest.Baked{Weights: []int{0, 1, 2, 3, 4, 5, 0, 0}, Zero: []int{0}, Total: 256}
	if got, want := full.Ends([]int{0, 0, 7, 7}), []int{127, 255, 255}; !slices.Equal(got, want) {
		t.Errorf("paths of degree 0 alone: %v, want %v", got, want)
	}
}

// TestBakedRanks: the tables of each formula in the papers use all levels, a full
// queue after a short interval is the worst one, and the manifest states how many
// pairs of measurements the tables rank in the wrong order. The test counts these
// pairs with the generated tables.
func TestBakedRanks(t *testing.T) {
	for _, name := range []string{"qall-pkt", "qall-linear", "qall-poly2", "qall-poly3"} {
		m := hardwareManifest(t, name, "tna", 4)
		i := slices.IndexFunc(m.Deviations, func(d manifest.Deviation) bool { return d.What == "occupancy and interval" })
		if i < 0 {
			t.Fatalf("%s: the manifest does not say what quantising costs", name)
		}
		text, _, _ := strings.Cut(m.Deviations[i].Error, " ")
		said, err := strconv.ParseFloat(text, 64)
		if err != nil {
			t.Fatalf("%s: %s", name, m.Deviations[i].Error)
		}
		values := bakedOf(t, m, "LbEgress.index").Values
		if len(values) != 512 || slices.Max(values) != 6 || slices.Min(values) != 0 {
			t.Errorf("%s: %d levels from %d to %d", name, len(values), slices.Min(values), slices.Max(values))
		}
		if name != "qall-pkt" {
			continue
		}
		// 64 packets of 1500 bytes are 1200 cells of 80, in steps of 128: a full queue
		// is step 9. 10 ms are 9765 ticks, in steps of 1024.
		if worst := values[256+9]; worst != 6 {
			t.Errorf("a full, rising queue after a short interval has level %d, want 6", worst)
		}
		wrong, pairs := 0, 0
		r := rand.New(rand.NewPCG(3, 3))
		for range 50_000 {
			c, level := measured(r, values)
			d, other := measured(r, values)
			pairs++
			if c < d && level > other || c > d && level < other {
				wrong++
			}
		}
		if counted := 100 * float64(wrong) / float64(pairs); counted > said+0.3 || counted < said-0.3 {
			t.Errorf("the manifest says %g %% of pairs rank the other way round, the tables give %.2f", said, counted)
		}
	}
}

// measured draws a measurement and returns its index by Eq. 4 and its level.
func measured(r *rand.Rand, values []int) (index float64, level int) {
	const full, tau = 1200, 9765
	depth, ticks, trend := r.IntN(full+1), r.IntN(tau+1), 1+r.IntN(2)
	L, T := min(15, depth/128), min(15, ticks/1024)
	return float64(depth) * float64(tau-ticks) * float64(trend), values[(trend-1)*256+T*16+L]
}

func hardwareManifest(t *testing.T, name, arch string, ports int) manifest.Manifest {
	t.Helper()
	row, err := Lookup(name)
	if err != nil {
		t.Fatal(err)
	}
	p, err := Generate(row, Params{Arch: arch, Ports: ports})
	if err != nil {
		t.Fatal(err)
	}
	return p.Manifest
}

// TestHardwareManifest checks the names in BfRt, and the manifest entries that only
// programs for Tofino need.
func TestHardwareManifest(t *testing.T) {
	m := hardwareManifest(t, "drill", "tna", 4)
	if m.Arch != "tna" || len(m.CloneSessions) != 1 || !slices.Equal(recirculation(m), []int{68, 196, 324, 452}) {
		t.Errorf("%s, mirror sessions %v, recirculation ports %v", m.Arch, m.CloneSessions, recirculation(m))
	}
	for _, r := range m.Registers {
		if r.BfRt != "pipe."+r.Name || r.Width == 0 || r.Size == 0 {
			t.Errorf("register %+v", r)
		}
	}
	if m2 := hardwareManifest(t, "drill", "t2na", 4); recirculation(m2)[0] != 6 {
		t.Errorf("recirculation ports of Tofino 2: %v", recirculation(m2))
	}
	row, _ := Lookup("drill")
	p, err := Generate(row, Params{})
	if err != nil {
		t.Fatal(err)
	}
	if m := p.Manifest; m.Arch != "v1model" || len(m.Deviations) > 0 || len(recirculation(m)) > 0 || m.Registers[0].BfRt != "" {
		t.Errorf("v1model: %+v", m)
	}
}

func recirculation(m manifest.Manifest) (ports []int) {
	for _, p := range m.VirtualPorts {
		if p.Kind == manifest.RecirculationPort {
			ports = append(ports, p.Port)
		}
	}
	return ports
}

func bakedOf(t *testing.T, m manifest.Manifest, table string) *manifest.Baked {
	t.Helper()
	for _, have := range m.Tables {
		if have.Name == table && have.Baked != nil {
			return have.Baked
		}
	}
	t.Fatalf("%s has no table %s that is baked", m.Scheme, table)
	return nil
}

// TestShares: the draws are divided among the members without a remainder, for every size
// of group.
func TestShares(t *testing.T) {
	draw := sampling{&composition{params: Params{Ports: MaxPaths}}}
	next := map[int]int{}
	for _, s := range draw.Shares() {
		if s.From != next[s.N] || s.To < s.From {
			t.Fatalf("share %+v after %d", s, next[s.N])
		}
		next[s.N] = s.To + 1
	}
	for n, end := range next {
		if end != draws {
			t.Errorf("groups of %d: %d draws", n, end)
		}
	}
}
