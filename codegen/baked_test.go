package codegen

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/p4lb/p4lb/internal/scheme/manifest"
)

// TestEnds: the last grid of each path, of 256; absent paths count nothing.
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

// TestBakedRanks: the table of each formula in the papers ranks fewer than 1 % of
// the pairs of measurements the other way round, as its manifest says.
func TestBakedRanks(t *testing.T) {
	for _, name := range []string{"qall-pkt", "qall-linear", "qall-poly2", "qall-poly3"} {
		m := hardwareManifest(t, name, "tna", 4)
		i := slices.IndexFunc(m.Deviations, func(d manifest.Deviation) bool { return d.What == "occupancy and interval" })
		if i < 0 {
			t.Fatalf("%s: the manifest does not say what quantising costs", name)
		}
		text, _, _ := strings.Cut(m.Deviations[i].Error, " ")
		inverted, err := strconv.ParseFloat(text, 64)
		if err != nil || inverted >= 1 {
			t.Errorf("%s: %s, want less than 1 %%", name, m.Deviations[i].Error)
		}
		if values := bakedOf(t, m, "LbEgress.index").Values; len(values) != 512 || slices.Max(values) != 6 || slices.Min(values) != 0 {
			t.Errorf("%s: %d levels from %d to %d", name, len(values), slices.Min(values), slices.Max(values))
		}
	}
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

// TestHardwareManifest: what BfRt calls things, and what a program for Tofino
// needs beside what one for BMv2 does, which says nothing of it.
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

// TestShares: the draws are all shared out, whatever the size of the group.
func TestShares(t *testing.T) {
	v := &view{params: Params{Ports: MaxPaths}}
	next := map[int]int{}
	for _, s := range v.Shares() {
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
