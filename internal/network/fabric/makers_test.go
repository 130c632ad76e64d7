package fabric

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// count is the size of a network.
type count struct{ switches, hosts, links, leaves int }

func countOf(top *Topology) count {
	return count{len(top.Switches), len(top.Hosts), len(top.Links), len(top.Leaves())}
}

func TestLeafSpine(t *testing.T) {
	for leaves := 1; leaves <= 5; leaves++ {
		for spines := 1; spines <= 4; spines++ {
			for parallel := 1; parallel <= 3; parallel++ {
				o := LeafSpine{Leaves: leaves, Spines: spines, Parallel: parallel, Hosts: 3}
				top, err := o.Make()
				if err != nil {
					t.Fatal(err)
				}
				want := count{leaves + spines, 3 * leaves, 3*leaves + leaves*spines*parallel, leaves}
				if got := countOf(top); got != want {
					t.Errorf("%+v: %+v, want %+v", o, got, want)
				}
				checkStars(t, top, 3+spines*parallel, leaves*parallel)
			}
		}
	}
}

// TestRails puts the NICs of a server on all leaves, and the same NIC of all servers on one.
func TestRails(t *testing.T) {
	top, err := LeafSpine{Leaves: 3, Spines: 2, Hosts: 4, Rails: true}.Make()
	if err != nil {
		t.Fatal(err)
	}
	if got, want := countOf(top), (count{5, 12, 12 + 6, 3}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	checkStars(t, top, 4+2, 3)
	for i, h := range top.Hosts {
		if want := fmt.Sprint("l", i%3+1); h.Name != fmt.Sprint("h", i+1) || h.Switch != want {
			t.Errorf("host %d is %s at %s: want it at %s", i+1, h.Name, h.Switch, want)
		}
	}
}

// checkStars checks that each switch has consecutive ports from 1 on.
func checkStars(t *testing.T, top *Topology, leafPorts, upperPorts int) {
	t.Helper()
	for _, s := range top.Switches {
		want := upperPorts
		if s.Leaf > 0 {
			want = leafPorts
		}
		ports := top.Ports(s.Name)
		if len(ports) != want || ports[0].Number != 1 || ports[len(ports)-1].Number != want {
			t.Errorf("%s has %d ports from %d to %d, want %d", s.Name, len(ports), ports[0].Number, ports[len(ports)-1].Number, want)
		}
	}
}

func TestFatTree(t *testing.T) {
	for k := 2; k <= 10; k += 2 {
		top, err := FatTree{K: k}.Make()
		if err != nil {
			t.Fatal(err)
		}
		half := k / 2
		want := count{k*k + half*half, k * half * half, 3 * k * half * half, k * half}
		if got := countOf(top); got != want {
			t.Errorf("k = %d: %+v, want %+v", k, got, want)
		}
		checkStars(t, top, k, k)
		r := top.Routes()
		for _, c := range []struct {
			to           string
			paths, links int
		}{
			{top.Hosts[1%len(top.Hosts)].Name, 1, 2},              // at the same switch
			{top.Hosts[half*half-1].Name, half, 4},                // in the same pod
			{top.Hosts[len(top.Hosts)-1].Name, half * half, 6},    // in another pod
			{top.Hosts[len(top.Hosts)-half].Name, half * half, 6}, // in another pod
		} {
			if k == 2 && c.links < 6 {
				continue // a pod has one host
			}
			list, err := r.Paths("h1", c.to)
			if err != nil || len(list) != c.paths || len(list[0].Links) != c.links {
				t.Errorf("k = %d: %d paths to %s (%v), want %d of %d links", k, len(list), c.to, err, c.paths, c.links)
			}
		}
		// A core switch reaches pod p through port p.
		for _, p := range top.Ports("c1") {
			if pod := (p.Number - 1) * half; p.Peer != top.Switches[k*half+pod].Name {
				t.Errorf("k = %d: port %d of c1 leads to %s", k, p.Number, p.Peer)
			}
		}
	}
}

// TestFatTreeRoutes compares with numbers counted by hand: a switch has a route
// for each host or switch below it, and one for each other pod or for several
// pods.
func TestFatTreeRoutes(t *testing.T) {
	top, err := FatTree{K: 8}.Make()
	if err != nil {
		t.Fatal(err)
	}
	r := top.Routes()
	for _, c := range []struct {
		name           string
		routes, groups int
	}{
		{"t1", 4 + 2 + 7, 1}, // of its pod, 1, and 2-3; the pods, each a /22 of a /16
		{"a1", 4 + 7, 1},
		{"c1", 8, 0},
	} {
		table, _ := r.Table(c.name, ByHops)
		if len(table.Routes) != c.routes || len(table.Groups) != c.groups {
			t.Errorf("%s has %d routes and %d groups, want %d and %d: %v", c.name, len(table.Routes), len(table.Groups), c.routes, c.groups, table.Routes)
		}
	}
}

func TestOversubscription(t *testing.T) {
	for _, c := range []struct {
		o    LeafSpine
		want Rate
	}{
		{LeafSpine{Hosts: 32, Spines: 8, Oversubscription: 4, Links: Links{HostRate: Gbps}}, Gbps},
		{LeafSpine{Hosts: 16, Spines: 2, Parallel: 2, Oversubscription: 1, Links: Links{HostRate: 100 * Mbps}}, 400 * Mbps},
		{LeafSpine{Hosts: 3, Spines: 2, Oversubscription: 1.5, Links: Links{HostRate: 10 * Gbps}}, 10 * Gbps},
		{LeafSpine{Hosts: 32, Spines: 8, Oversubscription: 4, Links: Links{HostRate: Gbps, Rate: Gbps}}, Gbps},
		{LeafSpine{Hosts: 32, Spines: 8, Links: Links{HostRate: Gbps}}, Gbps},
	} {
		top, err := c.o.Make()
		if err != nil {
			t.Errorf("%+v: %v", c.o, err)
			continue
		}
		if l := top.Links[len(top.Links)-1]; l.Rate != c.want {
			t.Errorf("%+v: links of %v, want %v", c.o, l.Rate, c.want)
		}
	}
}

func TestMakerErrors(t *testing.T) {
	for want, maker := range map[string]func() (*Topology, error){
		"-1 leaves, 2 spines, 2 hosts: want numbers above 0":                                                  LeafSpine{Leaves: -1}.Make,
		"500 hosts and 20×1 links to spines at a leaf: want at most 510":                                      LeafSpine{Hosts: 500, Spines: 20}.Make,
		"200×3 links to leaves at a spine: want at most 510":                                                  LeafSpine{Leaves: 200, Parallel: 3}.Make,
		"oversubscription -1: want a number above 0":                                                          LeafSpine{Oversubscription: -1}.Make,
		"oversubscription NaN: want":                                                                          LeafSpine{Oversubscription: math.NaN()}.Make,
		"oversubscription 2 requires links of 5Gbps, not 40Gbps: omit one":                                    LeafSpine{Oversubscription: 2, Links: Links{Rate: 40 * Gbps}}.Make,
		"oversubscription 1e+30 makes links of":                                                               LeafSpine{Oversubscription: 1e30}.Make,
		"a fat-tree of 5-port switches: want an even number":                                                  FatTree{K: 5}.Make,
		"a fat-tree of 256-port switches: want an even number from 2 to 254":                                  FatTree{K: 256}.Make,
		"a fat-tree of 128-port switches with 64 hosts at a top of rack has 544768 nodes: want at most 60000": FatTree{K: 128}.Make,
		"-1 hosts at a top of rack: want 1 to 254":                                                            FatTree{Hosts: -1}.Make,
		"rate -1bps: want more than 0":                                                                        FatTree{Links: Links{Rate: -1}}.Make,
		"delays 0s and -1s: want 0 to 10s":                                                                    FatTree{Links: Links{Delay: -time.Second}}.Make,
		"90301 nodes: want at most 60000":                                                                     LeafSpine{Leaves: 300, Spines: 1, Hosts: 300}.Make,
		"queue -3: want a number of packets":                                                                  LeafSpine{Links: Links{Queue: -3}}.Make,
	} {
		top, err := maker()
		if top != nil || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

// TestPresets compares the presets with the numbers in the papers.
func TestPresets(t *testing.T) {
	type numbers struct {
		Switches, Hosts, Links int
		Host, Fabric           Rate // of the first link, and of the last between switches
		RTT, Worst             time.Duration
		Paths                  int
		Oversubscription       float64
		Down                   int
	}
	want := map[string]numbers{
		"qall":           {4, 32, 40, 100 * Mbps, 400 * Mbps, 80 * us, 80 * us, 8, 1, 0},
		"qall-asym":      {4, 32, 40, 100 * Mbps, 400 * Mbps, 80 * us, 80 * us, 6, 1, 1},
		"qdaps-4":        {6, 60, 68, Gbps, Gbps, 100 * us, 100 * us, 4, 7.5, 0},
		"qdaps-8":        {10, 100, 116, Gbps, Gbps, 100 * us, 100 * us, 8, 6.25, 0},
		"qdaps-8-asym":   {10, 100, 116, Gbps, Gbps, 100 * us, 100 * us, 8, 50. / 7.2, 0},
		"qdaps-8x8":      {16, 256, 320, Gbps, Gbps, 100 * us, 100 * us, 8, 4, 0},
		"qdaps-star":     {6, 60, 68, Gbps, Gbps, 100 * us, 300 * us, 4, 7.5, 0},
		"qdaps-mininet":  {6, 50, 58, 20 * Mbps, 20 * Mbps, time.Millisecond, time.Millisecond, 4, 6.25, 0},
		"rlb-12x12":      {24, 288, 432, 40 * Gbps, 40 * Gbps, 16 * us, 16 * us, 12, 2, 0},
		"rlb-12x12-asym": {24, 288, 432, 40 * Gbps, 40 * Gbps, 16 * us, 16 * us, 12, 0, 0},
		"rlb-pfc":        {42, 242, 322, 40 * Gbps, 40 * Gbps, 16 * us, 16 * us, 40, 2.525, 0},
		"rlb-testbed":    {10, 16, 32, 40 * Gbps, 40 * Gbps, 16 * us, 16 * us, 8, 1, 0},
		"pdlb":           {16, 256, 320, 10 * Gbps, 10 * Gbps, 100 * us, 300 * us, 8, 4, 0},
		"pdlb-sym":       {16, 256, 320, 10 * Gbps, 10 * Gbps, 100 * us, 100 * us, 8, 4, 0},
		"pdlb-2x8":       {10, 20, 36, Gbps, Gbps, 100 * us, 300 * us, 8, 1.25, 0},
		"pdlb-4":         {6, 12, 20, 10 * Gbps, 10 * Gbps, 200 * us, 200 * us, 4, 1.5, 0},
		"leaf-spine":     {8, 64, 80, 10 * Gbps, 10 * Gbps, 40 * us, 40 * us, 4, 4, 0},
		"dhlb":           {20, 16, 48, 100 * Mbps, 200 * Mbps, 120 * us, 120 * us, 4, 0.5, 0},
	}
	got := map[string]numbers{}
	for _, p := range Presets() {
		top := preset(t, p.Name)
		n := numbers{Switches: len(top.Switches), Hosts: len(top.Hosts), Links: len(top.Links), Host: top.Links[0].Rate}
		var down, up Rate
		for _, l := range top.Links {
			switch {
			case top.Host(l.A.Node) != nil:
				if l.B.Node == top.Switches[0].Name {
					down += l.Rate
				}
			case l.A.Node == top.Switches[0].Name:
				up += l.Rate
				fallthrough
			default:
				n.Fabric = l.Rate
			}
			if l.Down {
				n.Down++
			}
		}
		n.Oversubscription = float64(down) / float64(up)
		if p.Name == "rlb-12x12-asym" {
			n.Oversubscription = 0 // depends on the random choice
		}
		paths, err := top.Routes().Paths("h1", lastLeafHost(top))
		if err != nil {
			t.Fatal(err)
		}
		n.Paths, n.RTT = len(paths), time.Hour
		for _, path := range paths {
			n.RTT, n.Worst = min(n.RTT, 2*path.Delay), max(n.Worst, 2*path.Delay)
		}
		got[p.Name] = n
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// lastLeafHost returns a host at the last leaf.
func lastLeafHost(top *Topology) string {
	leaves := top.Leaves()
	for _, h := range top.Hosts {
		if h.Switch == leaves[len(leaves)-1].Name {
			return h.Name
		}
	}
	return ""
}

// TestAsymmetry: exactly the links that the papers name are slower.
func TestAsymmetry(t *testing.T) {
	slow := map[Rate]int{}
	for _, l := range preset(t, "rlb-12x12-asym").Links {
		slow[l.Rate]++
	}
	if diff := cmp.Diff(map[Rate]int{10 * Gbps: 29, 40 * Gbps: 432 - 29}, slow); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	top := preset(t, "qall-asym")
	for _, l := range top.Links {
		if l.Down && l.A.Node+l.B.Node != "l2s2" {
			t.Errorf("%v is down", l)
		}
	}
	if _, err := PresetNamed("qal"); err == nil || !strings.Contains(err.Error(), "did you mean qall?") {
		t.Errorf("for a typing error: %v", err)
	}
}

// TestNumbersStay adds a link at the end: nothing else may change.
func TestNumbersStay(t *testing.T) {
	o := LeafSpine{Leaves: 3, Spines: 3, Hosts: 4}
	d, err := o.draft()
	if err != nil {
		t.Fatal(err)
	}
	before, err := d.finish("")
	if err != nil {
		t.Fatal(err)
	}
	d.links = append(d.links, draftLink{a: End{Node: "l1"}, b: End{Node: "s1"}, rate: Gbps})
	after, err := d.finish("")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(string(after.YAML()), string(before.YAML())) {
		t.Errorf("got\n%s\nwant a line more than\n%s", after.YAML(), before.YAML())
	}
}

func BenchmarkFatTreeRoutes(b *testing.B) {
	for _, k := range []int{8, 16} {
		top, err := FatTree{K: k}.Make()
		if err != nil {
			b.Fatal(err)
		}
		b.Run(fmt.Sprint("k=", k), func(b *testing.B) {
			for b.Loop() {
				r := top.Routes()
				for _, s := range top.Switches {
					r.Table(s.Name, ByHops)
				}
			}
		})
	}
}
