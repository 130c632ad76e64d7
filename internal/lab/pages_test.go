package lab

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/p4lb/p4lb/internal/lab/spec"
	"github.com/p4lb/p4lb/internal/network/fabric"
)

// loaded returns an experiment with two leaves, two spines and two hosts at each leaf, and
// its network. Rates are in Mbit/s.
func loaded(t *testing.T, rate, hostRate int, more string) (*spec.Experiment, *fabric.Topology) {
	t.Helper()
	x, err := spec.Load("x.yaml", fmt.Appendf(nil, "schemes: [ecmp]\ntopology: {leaf-spine: {leaves: 2, spines: 2, hosts: 2, rate: %dMbps, host-rate: %dMbps}}\n%s\n", rate, hostRate, more), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	top, err := x.Cases[0].Network(spec.NoFiles)
	if err != nil {
		t.Fatal(err)
	}
	return x, top
}

// A table has columns for cases, loads and the comparison if there are several of each.
func TestColumns(t *testing.T) {
	one := made(map[string][]float64{"a": {10, 11}}, "a")
	if got := strings.Join(one.Table()[0], "|"); got != "SCHEME|fct-mean (ms)|fct-p99 (ms)" {
		t.Errorf("one scheme: %s", got)
	}
	two := made(map[string][]float64{"a": {10, 11}, "b": {10, 11}}, "a", "b")
	two.Rows[1].Load = 0.3
	two.Experiment.Cases = append(two.Experiment.Cases, spec.Case{Name: "other"})
	if got := strings.Join(two.Table()[0], "|"); got != "CASE|LOAD|SCHEME|fct-mean (ms)|fct-p99 (ms)|a vs this scheme" {
		t.Errorf("two schemes, loads and cases: %s", got)
	}
	two.Rows[0].Runs = nil // interrupted before
	if got := len(two.Table()); got != 2 {
		t.Errorf("%d lines, want the head and a row", got)
	}
}

// A table is split where the next column would exceed the width: a table that fits exactly
// is whole.
func TestSplitTables(t *testing.T) {
	c := made(map[string][]float64{"a": {10, 10}, "b": {10, 10}}, "a", "b")
	c.Experiment.MetricsAsked = true
	width := 0
	for i := range c.Table()[0] {
		most := 0
		for _, line := range c.Table() {
			most = max(most, len([]rune(line[i])))
		}
		width += most + 2
	}
	if list := c.Brief(width - 2); len(list) != 1 || len(list[0][0]) != 4 {
		t.Errorf("in %d columns: %q", width-2, list)
	}
	list := c.Brief(width - 3)
	if len(list) != 2 || strings.Join(list[0][0], "|") != "SCHEME|fct-mean (ms)|a vs this scheme" || strings.Join(list[1][0], "|") != "SCHEME|fct-p99 (ms)" {
		t.Errorf("in %d columns: %q", width-3, list)
	}
}

// Numbers have three significant digits, and estimates their interval.
func TestDigits(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0", 1234.5: "1234", 100: "100", 99.94: "99.9", 10: "10.0", 9.994: "9.99", 1: "1.00", 0.9994: "0.999", 0.1: "0.100", 0.09994: "0.0999", 0.001: "0.0010", 0.0009994: "0.001", 0.0000123: "1.2e-05", -12.34: "-12.3",
	} {
		if got := digits(v); got != want {
			t.Errorf("%v: %s, want %s", v, got, want)
		}
	}
	for _, c := range []struct {
		e    Estimate
		want string
	}{{Estimate{Mean: math.NaN(), N: 3}, "-"}, {Estimate{Mean: 5, N: 1, Half: 9}, "5.00"}, {Estimate{Mean: 5, N: 2, Half: 0.25}, "5.00 ±0.250"}} {
		if got := c.e.String(); got != c.want {
			t.Errorf("%+v: %s, want %s", c.e, got, c.want)
		}
	}
	for v, want := range map[float64]string{0: "0", 7: "7", 999: "999", 1000: "1,000", 1234: "1,230", 98765: "98,800", 1234567: "1,230,000", 1235678: "1,240,000", 12.4: "12"} {
		if got := thousands(v); got != want {
			t.Errorf("%v: %s, want %s", v, got, want)
		}
	}
}

// The limit of an experiment is the fabric or the hosts, whichever is loaded more.
func TestBottleneck(t *testing.T) {
	for _, test := range []struct {
		rate, hostRate int
		of             string
		load           float64
		want           string
	}{
		{1000, 1000, spec.OfHosts, 0.5, "Bottleneck: the fabric (offered load 50 % of the fabric, 50 % of the hosts). About "},
		{100, 1000, spec.OfFabric, 0.5, "Bottleneck: the fabric (offered load 50 % of the fabric, 5 % of the hosts). About "},
		{1000, 100, spec.OfHosts, 0.5, "Bottleneck: the hosts (offered load 50 % of the hosts, 5 % of the fabric), so load balancers differ little; use more or faster hosts, or slower links between switches. About "},
		{1000, 800, spec.OfHosts, 0.5, "Bottleneck: the hosts (offered load 50 % of the hosts, 40 % of the fabric), so load balancers differ little; use load-of: fabric. About "},
	} {
		x, top := loaded(t, test.rate, test.hostRate, fmt.Sprintf("traffic: [{workload: webserver, pattern: halves, load-of: %s}]\nloads: [%g]\nduration: 1s", test.of, test.load))
		c := &Comparison{Experiment: x, World: Sim, Rows: []*Row{{Case: &x.Cases[0], Scheme: &x.Schemes[0], Load: test.load, network: top}}}
		if got := c.limits(); !strings.HasPrefix(got, test.want) || !strings.HasSuffix(got, " flows a run.") {
			t.Errorf("links of %d, hosts of %d, load %g of the %s:\n%s\nwant %s", test.rate, test.hostRate, test.load, test.of, got, test.want)
		}
		c.World = Embedded
		if got := c.limits(); got != "" {
			t.Errorf("in real time: %s", got)
		}
	}
}

// The paths of a row are the upward links of its leaves that are up.
func TestPathsOfRow(t *testing.T) {
	_, top := loaded(t, 1000, 1000, "")
	r := &Row{network: top, Case: &spec.Case{}}
	if got := r.paths(); got != 2 {
		t.Errorf("%v paths, want 2", got)
	}
	_, r.network = loaded(t, 1000, 1000, "fail: [l1-s1]")
	if got := r.paths(); got != 1.5 {
		t.Errorf("with a link down: %v paths, want 1.5", got)
	}
	if got := (&Row{}).paths(); got != 0 {
		t.Errorf("without a network: %v", got)
	}
	if got := failedLinks(r); got != 1 {
		t.Errorf("%d failed links, want 1", got)
	}
	r.Case.Faults = []spec.Fault{{Link: "l2-s1", Down: true}, {Link: "l2-s2", Rate: 1e6}, {Link: "l1-s1", Down: true}}
	if got := failedLinks(r); got != 2 {
		t.Errorf("with a fault: %d failed links, want 2", got)
	}
	r.Case.Faults = append(r.Case.Faults, spec.Fault{Switch: "s2", Down: true})
	if got := failedLinks(r); got != 4 {
		t.Errorf("with a failed switch: %d failed links, want 4", got)
	}
}

// Cases that differ only in links that fail are drawn over the number of failures.
func TestCasesOfFailures(t *testing.T) {
	with := func(edit func(*spec.Case)) *spec.Case {
		c := &spec.Case{}
		c.Links = []spec.LinkChange{{Link: "l1-s1", Rate: 1e9}}
		edit(c)
		return c
	}
	plain := with(func(*spec.Case) {})
	for name, test := range map[string]struct {
		c    *spec.Case
		want bool
	}{
		"equal": {with(func(*spec.Case) {}), true}, "a failed link": {with(func(c *spec.Case) { c.Fail = []string{"l1-s2"} }), true},
		"a link down":  {with(func(c *spec.Case) { c.Links = append(c.Links, spec.LinkChange{Link: "l2-s1", Down: true}) }), true},
		"a fault":      {with(func(c *spec.Case) { c.Faults = []spec.Fault{{Link: "l2-s1", Down: true}} }), true},
		"a slow link":  {with(func(c *spec.Case) { c.Links = append(c.Links, spec.LinkChange{Link: "l2-s1", Rate: 1e8}) }), false},
		"a slow fault": {with(func(c *spec.Case) { c.Faults = []spec.Fault{{Link: "l2-s1", Rate: 1e8}} }), false},
		"another time": {with(func(c *spec.Case) { c.Duration = 7 }), false},
	} {
		if got := sameButFailures(plain, test.c); got != test.want {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
}

// The utilisation of links is drawn as bars from the end of the interval before, without
// idle intervals. Each bar has a description.
func TestUsesOfLinks(t *testing.T) {
	c := made(map[string][]float64{"a": {10}}, "a")
	r := c.Rows[0]
	if c.drawUses(r) != nil || c.drawSteps(r) != nil {
		t.Error("a run without collectives has a chart of them")
	}
	r.Runs[0].Plots.Uses = &Uses{Links: []string{"l1-s1", "l1-s2"}, To: []float64{1, 2, 4}, Use: [][]float64{{0.5, 0, 1}, {0, 0.25, 0}}}
	s := c.drawUses(r).Series[0]
	if fmt.Sprint(s.X, s.To, s.Y, s.Shade) != "[0 2 1] [1 4 2] [0 0 1] [0.5 1 0.25]" {
		t.Errorf("bars %v", fmt.Sprint(s.X, s.To, s.Y, s.Shade))
	}
	if want := []string{"l1-s1, 0 to 1 ms: 50 %", "l1-s1, 2 to 4 ms: 100 %", "l1-s2, 1 to 2 ms: 25 %"}; !slices.Equal(s.Hints, want) {
		t.Errorf("words %q, want %q", s.Hints, want)
	}
	r.Runs[0].Plots.Steps = &Steps{Hosts: []string{"h1", "h2"}, Rank: []int{0, 1, 0}, Step: []int{0, 1, 9}, Start: []float64{0, 1, 2}, End: []float64{1, 3, 5}}
	f := c.drawSteps(r)
	if len(f.Series) != hue || f.Series[0].Label != "step 0, 8" || f.Series[1].Label != "step 1, 9" || fmt.Sprint(f.Series[1].X, f.Series[1].To, f.Series[1].Y) != "[1 2] [3 5] [1 0]" {
		t.Errorf("%d series, %+v", len(f.Series), f.Series[1])
	}
	if want := []string{"h2, step 1: 1 to 3 ms", "h1, step 9: 2 to 5 ms"}; !slices.Equal(f.Series[1].Hints, want) {
		t.Errorf("words %q, want %q", f.Series[1].Hints, want)
	}
}

// The slowdown by size has a point for each size that any row has.
func TestSizes(t *testing.T) {
	c := made(map[string][]float64{"a": {10, 11}, "b": {10, 11}}, "a", "b")
	if c.drawSizes(c.Rows) != nil {
		t.Error("runs without sizes have a chart")
	}
	p := page{Comparison: c}
	if got := p.Sizes(); got != nil {
		t.Errorf("runs without sizes have %v", got)
	}
	bins := func(n ...int) []sizeBin {
		list := make([]sizeBin, len(sizeBins))
		for i, k := range n {
			list[i] = sizeBin{k, float64(i + 2)}
		}
		return list
	}
	c.Rows[0].Runs[0].Plots.Sizes, c.Rows[0].Runs[1].Plots.Sizes = bins(4, 0, 3), bins(5, 0, 4)
	c.Rows[1].Runs[0].Plots.Sizes = bins(0, 0, 0, 1)
	f := c.drawSizes(c.Rows)
	if want := []string{sizeName(0), sizeName(2), sizeName(3)}; !slices.Equal(f.X.Names, want) || len(f.Series) != 2 || f.Series[0].Y[1] != 4 || !math.IsNaN(f.Series[0].Y[2]) || f.Series[1].Y[2] != 5 {
		t.Errorf("%q: %+v", f.X.Names, f.Series)
	}
	if got, want := fmt.Sprint(p.Sizes()), fmt.Sprint([][2]string{{sizeName(0), "4.50"}, {sizeName(2), "3.50"}}); got != want {
		t.Errorf("sizes %s, want %s", got, want)
	}
}

// The first error of several runs is returned with the number of the others.
func TestErrorsOfRuns(t *testing.T) {
	first := errors.New("first")
	for n, want := range map[int]string{0: "<nil>", 1: "first", 2: "first (and 1 more runs failed)", 5: "first (and 4 more runs failed)"} {
		w := &work{errs: slices.Repeat([]error{first}, n)}
		if got := fmt.Sprint(w.failure()); got != want {
			t.Errorf("%d errors: %s, want %s", n, got, want)
		}
	}
}

// A paper's illustrations share a line of the screen, in the order of their numbers.
func TestScreenOfCoverage(t *testing.T) {
	c := Coverage{Figures: 12, Items: []CoverageItem{
		{Of: []string{"fig10", "fig2"}, What: "a picture", State: illustration}, {Of: []string{"fig3"}, What: "a testbed; of switches", State: notComparable, Why: "hardware"}, {Of: []string{"fig4"}, What: "more", State: illustration},
	}}
	got := c.Screen()
	if len(got) != 3 || strings.Join(got[1], "|") != "fig3|a testbed|not comparable" || got[2][0] != "3 others" || got[2][2] != illustration || !strings.HasPrefix(got[2][1], "fig2") {
		t.Errorf("%q", got)
	}
	c.Items = c.Items[1:2]
	if got := c.Screen(); len(got) != 2 {
		t.Errorf("without illustrations: %q", got)
	}
}

// The least time of an operation is its longest chain of flows, or the time of its busiest
// host: all of the host's bytes at its rate and the shortest delay to a receiver.
func TestIdealTimes(t *testing.T) {
	_, top := loaded(t, 1000, 1000, "")
	a, b := &spec.Instance{}, &spec.Instance{}
	flow := func(i *spec.Instance, src, dst int, ideal time.Duration, wire int64, after ...int32) *outcome {
		o := &outcome{ideal: ideal, wire: wire}
		o.Instance, o.Src, o.Dst = i, src, dst
		if after != nil {
			o.Waits = &spec.Waits{After: after, Delay: time.Microsecond}
		}
		return o
	}
	// 1,000 bytes take 8 us at 1 Gbit/s.
	got := idealTimes(top, []*outcome{
		flow(a, 0, 1, 10*time.Microsecond, 1000), flow(a, 1, 2, 11*time.Microsecond, 1000, 0), // a chain: 10 + 1 + 11
		flow(b, 0, 1, 12*time.Microsecond, 1000), flow(b, 0, 2, 11*time.Microsecond, 1000), flow(b, 0, 3, 20*time.Microsecond, 1000), // 24 us of bytes, 3 us of delay
		flow(nil, 3, 0, time.Second, 1e9),
	})
	if got[a] != 22*time.Microsecond || got[b] != 27*time.Microsecond || len(got) != 2 {
		t.Errorf("%v and %v, want 22us and 27us", got[a], got[b])
	}
}

// An effect has the printed direction if it lies on the same side of no effect.
func TestDirectionOfEffects(t *testing.T) {
	f := func(v float64) *float64 { return &v }
	for _, c := range []struct {
		t    spec.Target
		v    float64
		want bool
	}{
		{spec.Target{Printed: f(10)}, 3, true}, {spec.Target{Printed: f(10)}, 0, false}, {spec.Target{Printed: f(10)}, -3, false}, {spec.Target{Printed: f(-10)}, -3, true}, {spec.Target{Printed: f(0)}, 3, false},
		{spec.Target{AtLeast: f(5)}, 1, true}, {spec.Target{AtLeast: f(5)}, 0, false}, {spec.Target{AtLeast: f(0)}, 1, false}, {spec.Target{AtMost: f(-5)}, -1, true}, {spec.Target{AtMost: f(-5)}, 0, false}, {spec.Target{AtMost: f(0)}, -1, false}, {spec.Target{}, 1, false},
	} {
		if got := side(&c.t, c.v, 0); got != c.want {
			t.Errorf("%+v: %v is on its side: %v", c.t, c.v, got)
		}
	}
}
