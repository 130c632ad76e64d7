package fabric

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// randomTopology returns a connected network with parallel links, links within
// a tier, and unequal rates and delays; a fraction of the links is down.
func randomTopology(t testing.TB, rng *rand.Rand, switches, extra int, down float64) *Topology {
	t.Helper()
	d := &draft{name: "random"}
	link := func(a, b string) {
		d.links = append(d.links, draftLink{
			a: End{Node: a}, b: End{Node: b},
			rate: Rate(1+rng.IntN(4)) * Gbps, delay: time.Duration(rng.IntN(3)) * us,
		})
	}
	name := func(i int) string { return fmt.Sprint("s", i+1) }
	for i := range switches {
		d.switches = append(d.switches, draftSwitch{name: name(i)})
		if i > 0 {
			link(name(rng.IntN(i)), name(i))
		}
	}
	for range extra {
		if a, b := rng.IntN(switches), rng.IntN(switches); a != b {
			link(name(a), name(b))
		}
	}
	for i := range d.links {
		d.links[i].down = rng.Float64() < down
	}
	for i := range switches + 2 {
		h := fmt.Sprint("h", i+1)
		d.hosts = append(d.hosts, draftHost{name: h})
		link(h, name(rng.IntN(max(1, switches*2/3))))
	}
	rng.Shuffle(len(d.links), func(i, j int) { d.links[i], d.links[j] = d.links[j], d.links[i] })
	top, err := d.finish("")
	if err != nil {
		t.Fatal(err)
	}
	return top
}

// manyTopologies calls f with random networks of many sizes.
func manyTopologies(t *testing.T, n, switches int, down float64, f func(*testing.T, *Topology)) {
	t.Helper()
	for seed := range uint64(n) {
		rng := rand.New(rand.NewPCG(seed, 1))
		top := randomTopology(t, rng, 2+rng.IntN(switches-1), rng.IntN(2*switches), down)
		f(t, top)
		if t.Failed() {
			t.Fatalf("with seed %d:\n%s", seed, top.YAML())
		}
	}
}

func preset(t testing.TB, name string) *Topology {
	t.Helper()
	p, err := PresetNamed(name)
	if err != nil {
		t.Fatal(err)
	}
	top, err := p.Make()
	if err != nil {
		t.Fatal(err)
	}
	return top
}

// links returns the links that a text names; there must be at least one.
func links(t testing.TB, top *Topology, name string) []int {
	t.Helper()
	list, err := top.FindLinks(name)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// routesIn parses routes such as 10.0.0.0/24>1, to a group each.
func routesIn(t testing.TB, text string) []Route {
	t.Helper()
	var list []Route
	for _, word := range strings.Fields(text) {
		prefix, group, _ := strings.Cut(word, ">")
		n, err := strconv.Atoi(group)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, Route{Prefix: netip.MustParsePrefix(prefix), Group: n})
	}
	return list
}

// samePrefix lets package cmp compare prefixes.
var samePrefix = cmp.Comparer(func(a, b netip.Prefix) bool { return a == b })
