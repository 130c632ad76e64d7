package spec

import (
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"gonum.org/v1/gonum/stat"

	"github.com/p4lb/p4lb/internal/network/fabric"
)

// small is two leaves and two spines with four hosts a leaf.
func small(t testing.TB) *fabric.Topology {
	t.Helper()
	topo, err := fabric.LeafSpine{Hosts: 4, Links: fabric.Links{
		HostRate: fabric.Gbps, Rate: fabric.Gbps, HostDelay: time.Microsecond, Delay: time.Microsecond, Queue: 64,
	}}.Make()
	if err != nil {
		t.Fatal(err)
	}
	return topo
}

// traffic resolves one traffic, as an experiment does.
func traffic(t testing.TB, topo *fabric.Topology, tr Traffic) []Traffic {
	t.Helper()
	if tr.Pattern == "" {
		tr.Pattern = AllToAll
	}
	if err := tr.resolve(topo, NoFiles); err != nil {
		t.Fatal(err)
	}
	return []Traffic{tr}
}

// TestPoisson: the load that the flows bring is the one asked for, and gaps
// between them vary as they should.
func TestPoisson(t *testing.T) {
	topo := small(t)
	for _, c := range []struct {
		of   string
		base float64 // bit/s
	}{{OfHosts, 8e9}, {OfFabric, 4e9 * 7 / 4}, {"500Mbps", 5e8}} {
		list := traffic(t, topo, Traffic{Size: 10000, LoadOf: c.of})
		flows, err := Generate(topo, list, 0.5, 2*time.Second, 1)
		if err != nil {
			t.Fatal(err)
		}
		bits := 0.0
		var gaps []float64
		for i, f := range flows {
			bits += float64(f.Bytes) * 8
			if i > 0 {
				gaps = append(gaps, float64(f.Start-flows[i-1].Start))
			}
		}
		if got := bits / 2 / c.base; !(math.Abs(got/0.5-1) <= 0.05) {
			t.Errorf("load of %s: got %.3f, want 0.5", c.of, got)
		}
		if cv := math.Sqrt(stat.PopVariance(gaps, nil)) / stat.Mean(gaps, nil); !(math.Abs(cv-1) <= 0.05) {
			t.Errorf("load of %s: the gaps have a coefficient of variation of %.3f, want 1", c.of, cv)
		}
	}
}

func TestPatterns(t *testing.T) {
	topo := small(t)
	leaf := leafOf(topo)
	for _, c := range []struct {
		name string
		tr   Traffic
		ok   func(f Flow) bool
	}{
		{"all to all", Traffic{}, func(f Flow) bool { return f.Src != f.Dst }},
		{"from a leaf", Traffic{From: []string{"l1"}, To: []string{"h6..h8"}}, func(f Flow) bool { return f.Src < 4 && f.Dst >= 5 }},
		{"halves", Traffic{Pattern: Halves}, func(f Flow) bool { return f.Src < 4 && f.Dst >= 4 }},
		{"permutation", Traffic{Pattern: permutation}, func(f Flow) bool { return leaf[f.Src] != leaf[f.Dst] }},
		{"incast", Traffic{Pattern: Incast, Degree: 3, Size: 30000}, func(f Flow) bool { return leaf[f.Src] != leaf[f.Dst] && f.Bytes == 10000 && f.Group > 0 }},
		{"pairs", Traffic{Pattern: pairs, Pairs: []string{"h1-h5", "h2..h3-h6..h7"}}, func(f Flow) bool { return f.Dst == f.Src+4 && f.Src < 3 }},
	} {
		if c.tr.Size == 0 {
			c.tr.Size = 20000
		}
		flows, err := Generate(topo, traffic(t, topo, c.tr), 0.5, 100*time.Millisecond, 1)
		if err != nil || len(flows) < 20 {
			t.Errorf("%s: %d flows, %v", c.name, len(flows), err)
		}
		for _, f := range flows {
			if !c.ok(f) {
				t.Errorf("%s: %+v", c.name, f)
				break
			}
		}
	}
}

// TestPermutationIsOne: every host sends to one, and gets from one.
func TestPermutationIsOne(t *testing.T) {
	topo := small(t)
	next, err := permute(sequence(0, 8), leafOf(topo), NewRandom(1, 1))
	if err != nil {
		t.Fatal(err)
	}
	seen := map[int]bool{}
	for _, n := range next {
		seen[n] = true
	}
	if len(seen) != 8 {
		t.Errorf("%v is no permutation", next)
	}
}

func TestBurst(t *testing.T) {
	topo := small(t)
	flows, err := Generate(topo, traffic(t, topo, Traffic{
		Pattern: burst, From: []string{"h1..h3"}, To: []string{"h8"}, Size: 64000, Degree: 2, At: []Time{1000, 2000},
	}), 0.5, time.Second, 1)
	if err != nil {
		t.Fatal(err)
	}
	if len(flows) != 12 || flows[0].Start != 1000 || flows[6].Start != 2000 || flows[11].Dst != 7 {
		t.Errorf("got %+v", flows)
	}
}

// TestSameSeedSameFlows: flows depend on the seed and the load alone.
func TestSameSeedSameFlows(t *testing.T) {
	topo := small(t)
	list := traffic(t, topo, Traffic{Workload: "websearch"})
	draw := func(seed uint64) []Flow {
		flows, err := Generate(topo, list, 0.5, time.Second, seed)
		if err != nil {
			t.Fatal(err)
		}
		return flows
	}
	if !reflect.DeepEqual(draw(1), draw(1)) {
		t.Error("the same seed gives other flows")
	}
	if reflect.DeepEqual(draw(1), draw(2)) {
		t.Error("another seed gives the same flows")
	}
}

func TestSizesBetween(t *testing.T) {
	topo := small(t)
	for _, tail := range []bool{false, true} {
		list := traffic(t, topo, Traffic{MinSize: 50000, Size: 200000, Tail: tail})
		d, err := newDraw(&list[0], topo, NewRandom(3, 0))
		if err != nil {
			t.Fatal(err)
		}
		sum := 0.0
		const n = 50000
		for range n {
			v := d.size()
			if v < 50000 || v > 200000 {
				t.Fatalf("a size of %d", v)
			}
			sum += float64(v)
		}
		if got := sum / n; !(math.Abs(got/d.Mean()-1) <= 0.01) {
			t.Errorf("heavy-tailed %t: the sizes have a mean of %.0f, want %.0f", tail, got, d.Mean())
		}
	}
}

func TestFlowList(t *testing.T) {
	topo := small(t)
	flows, err := Generate(topo, traffic(t, topo, Traffic{Workload: "webserver"}), 0.3, 10*time.Millisecond, 1)
	if err != nil {
		t.Fatal(err)
	}
	again, err := parseFlows("f", FlowList(flows, topo), topo)
	if err != nil || !reflect.DeepEqual(flows, again) {
		t.Errorf("read again it is another list: %v", err)
	}
	for _, text := range []string{"2\n0 4 1000 0.5\n1 5 20 1", "src,dst,bytes,start_s\n0,4,1000,0.5\n1,5,20,1\n", "2\n0 4 3 100 1000 0.5\n1 5 3 100 20 1\n"} {
		if list, err := parseFlows("f", []byte(text), topo); err != nil || len(list) != 2 || list[0].Bytes != 1000 || list[1].Start != time.Second {
			t.Errorf("%q: %+v, %v", text, list, err)
		}
	}
	if _, err := parseFlows("f", []byte("3\n0 4 1000 0.5\n"), topo); err == nil || !strings.Contains(err.Error(), "the first line says 3 flows, and there are 1") {
		t.Errorf("%v", err)
	}
	ByPlace, err := parseFlows("f", []byte("0 4 1000 0.5"), topo)
	if want := (Flow{Src: 0, Dst: 4, Bytes: 1000, Start: 500 * time.Millisecond}); err != nil || ByPlace[0] != want {
		t.Errorf("got %+v and %v", ByPlace, err)
	}
}

func TestFlowListErrors(t *testing.T) {
	topo := small(t)
	for _, c := range []struct{ text, want string }{
		{"", "there is no flow"},
		{"h1 h2 100", "f:1: want src, dst, bytes and start_s"},
		{"# x\nh1 h9 100 0", `f:2: dst: there is no host "h9"`},
		{"h1 h1 100 0", "h1 sends to itself"},
		{"h1 h2 1.5 0", `bytes "1.5"`},
		{"h1 h2 0 0", `bytes "0"`},
		{"h1 h2 9223372036854775807 0", "bytes 9223372036854775807: want at most 1125899906842624"},
		{"h1 h2 1 -1", `start_s "-1"`},
		{"h1 h2 1 NaN", `start_s "NaN"`},
	} {
		if _, err := parseFlows("f", []byte(c.text), topo); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: got %v, want %s", c.text, err, c.want)
		}
	}
}

func FuzzParseFlows(f *testing.F) {
	topo := small(f)
	f.Add([]byte("h1 h2 100 0.1\n0 3 5 2"))
	f.Fuzz(func(t *testing.T, text []byte) {
		flows, err := parseFlows("f", text, topo)
		if err != nil {
			return
		}
		for _, fl := range flows {
			if fl.Src == fl.Dst || fl.Bytes < 1 || fl.Start < 0 {
				t.Fatalf("%+v", fl)
			}
		}
	})
}
