package lab

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/p4lb/p4lb/internal/lab/spec"
	"github.com/p4lb/p4lb/internal/sim"
)

// The metrics of three flows and two requests, computed by hand. Flows that do not count
// are in no metric.
func TestMetricsByHand(t *testing.T) {
	const ms = time.Millisecond
	flow := func(class int32, group int, start, end, ideal time.Duration, s sim.FlowStats) *outcome {
		s.Started, s.Finished = start, end
		f := &outcome{FlowStats: s, ideal: ideal, class: class, counts: true, end: 100 * ms}
		f.Group = group
		return f
	}
	m := &measured{
		classes: []spec.Class{{Name: "short"}, {Name: "long"}},
		flows: []*outcome{
			flow(0, 1, 10*ms, 12*ms, ms, sim.FlowStats{Sent: 10, Received: 1000, OutOfOrder: 1, DupAcks: 1, DupRun: 3, Degree: 2, Marked: 1}),
			flow(0, 1, 10*ms, 16*ms, 2*ms, sim.FlowStats{Sent: 10, Received: 3000, Retransmitted: 2, Timeouts: 3, DupAcks: 9, DupRun: 4, Degree: 5, Trimmed: 1}),
			flow(1, 2, 20*ms, 0, 16*ms, sim.FlowStats{Sent: 20, Received: 10000, Overtaken: 4}),
			{FlowStats: sim.FlowStats{Started: 1, Finished: 2}, ideal: 1},
		},
		goodput: 5e6, occupancy: []float64{0, 0.5, 0.5, 1}, sharing: 0.25, utilisation: 0.5, whole: 0.4, idlest: 0.1, pathsUsed: 0.75,
		dropped: 1, pauses: 2, paused: 3, recirculated: 4, copies: 5, probes: 6, age: 7, granularity: 8, bufferPeak: 9,
	}
	got := m.values()
	for name, want := range map[string]float64{
		"fct-mean": 88.0 / 3, "fct-p50": 6, "fct-p99": 80, "fct-mean:short": 4, "fct-mean:long": 80, "fct-p99:short": 6,
		"slowdown-mean": 10.0 / 3, "slowdown-p50": 3, "slowdown-p99": 5,
		"request-mean": 43, "request-p99": 80,
		"throughput": 5, "flow-rate": (4.0 + 4.0 + 1.0) / 3, "unfinished": 100.0 / 3, "unfinished:short": 0, "unfinished:long": 100,
		"out-of-order": 2.5, "reordered": 10, "degree-p99": 5, "dupacks": 200.0 / 3, "dupacks-3": 100.0 / 3,
		"retransmitted": 5, "retransmitted:short": 10, "timeouts": 1, "marked": 2.5,
		"queue-mean": 50, "queue-p99": 100, "queue-variance": 0.125,
		"sharing": 25, "utilisation": 50, "utilisation-whole": 40, "utilisation-min": 10, "paths-used": 75,
		"dropped": 1, "pauses": 2, "paused": 3, "recirculated": 4, "copies": 5, "probe-load": 6, "decision-delay": 7, "granularity": 8,
	} {
		if v, ok := got[name]; !ok || !(math.Abs(v-want) <= 1e-9) {
			t.Errorf("%s is %v (%v), want %v", name, v, ok, want)
		}
	}
	for _, name := range []string{"trimmed", "cct", "fct-max", "link-imbalance", "buffer-peak", "iteration-time", "fit-rows"} {
		if v, ok := got[name]; ok {
			t.Errorf("%s is %v: the experiment has none", name, v)
		}
	}
	m.trims = true
	if v := m.values()["trimmed"]; v != 2.5 {
		t.Errorf("trimmed is %v", v)
	}
}

// The metrics of two executions of a collective by three ranks: completion times,
// bandwidths, stragglers, and the time between the iterations.
func TestCollectivesByHand(t *testing.T) {
	const ms = time.Millisecond
	first, second := &spec.Instance{Kind: "all-reduce", Bytes: 1e6, Ranks: 4}, &spec.Instance{Kind: "all-reduce", Bytes: 1e6, Ranks: 4, Iteration: 1}
	flow := func(x *spec.Instance, dst int, start, end time.Duration) *outcome {
		f := &outcome{FlowStats: sim.FlowStats{Started: start, Finished: end}, ideal: ms, counts: true}
		f.Instance, f.Dst = x, dst
		return f
	}
	compute := flow(first, 5, 0, 90*ms)
	compute.Compute, compute.counts = true, false
	m := &measured{
		classes: []spec.Class{{Name: "all"}},
		flows: []*outcome{
			flow(first, 1, 2*ms, 4*ms), flow(first, 2, ms, 5*ms), flow(first, 3, 3*ms, 11*ms), compute,
			flow(second, 1, 21*ms, 31*ms), flow(second, 2, 21*ms, 41*ms), flow(second, 3, 22*ms, 41*ms),
		},
		ideals: map[*spec.Instance]time.Duration{first: 5 * ms, second: 5 * ms}, imbalance: 0.5, bufferPeak: 9,
	}
	got := m.values()
	for name, want := range map[string]float64{
		"cct": 15, "cct-p99": 20, "cct-ideal": 5, "cct-ratio": 3, "iteration-time": 20,
		"algorithm-bandwidth": (0.8 + 0.4) / 2, "bus-bandwidth": (0.8 + 0.4) / 2 * 1.5,
		"straggler-share": (60.0 + 0) / 2, // the median rank ends 6 of 10 ms before the last
		"link-imbalance":  50, "buffer-peak": 9, "fct-max": 20,
	} {
		if v, ok := got[name]; !ok || !(math.Abs(v-want) <= 1e-9) {
			t.Errorf("%s is %v (%v), want %v", name, v, ok, want)
		}
	}
}

// The acknowledged completion time ends with the last acknowledgment, or else with the run. It
// does not exist if no flow has acknowledgments.
func TestAcknowledgedByHand(t *testing.T) {
	const ms = time.Millisecond
	flow := func(acknowledged time.Duration) *outcome {
		f := &outcome{FlowStats: sim.FlowStats{Started: 2 * ms, Finished: 3 * ms, Acknowledged: acknowledged}, counts: true}
		f.end = 20 * ms
		return f
	}
	m := &measured{classes: []spec.Class{{Name: "all"}}, flows: []*outcome{flow(4 * ms), flow(8 * ms), flow(0)}}
	if got := m.values()["fct-acked-mean"]; !near(got, (2+6+18)/3.0) {
		t.Errorf("a mean of %v ms, want 8.67", got)
	}
	m.flows = []*outcome{flow(0)}
	if got, ok := m.values()["fct-acked-mean"]; ok {
		t.Errorf("without acknowledgments: %v", got)
	}
}

// The imbalance of links compares the busiest uplink with the mean: if one of two uplinks carries
// almost all packets, it is almost 100 %.
func TestLinkImbalance(t *testing.T) {
	x := load(t, "topology: {leaf-spine: {leaves: 2, spines: 1, hosts: 1, rate: 1G}}\nschemes: [ecmp]\ntraffic: [{pattern: collective, collective: broadcast, size: 1MB}]\nseeds: 1\nmetrics: [link-imbalance]\n")
	c := run(t, &Runner{}, x)
	if got := c.Results[0].Metrics["link-imbalance"]; got < 90 || got >= 100 {
		t.Errorf("%g %%, want 90 to 100 %%: acknowledgments alone return", got)
	}
}

// Numbers of a table have two digits that count.
func TestNumbersInWords(t *testing.T) {
	for v, want := range map[float64]string{0: "0.0", 0.04: "0.0", -0.04: "0.0", 0.05: "0.1", 1.25: "1.2", 9.94: "9.9", 9.95: "10", -12.6: "-13", 123: "123"} {
		if got := points(v); got != want {
			t.Errorf("%g: %s, want %s", v, got, want)
		}
	}
	for n, want := range []string{"", "a", "a and b", "a, b and c"} {
		if got := andList([]string{"a", "b", "c"}[:n]); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
}

// A finding is clear if its interval excludes 0, and level if figures would not show it.
func TestFindingWords(t *testing.T) {
	for _, test := range []struct {
		saved Estimate
		why   string
		want  string
	}{
		{Estimate{Mean: 27, Half: 21, N: 5}, "", "27 % less than b (±21)"},
		{Estimate{Mean: -27, Half: 21, N: 5}, "", "27 % more than b (±21)"},
		{Estimate{Mean: 5, Half: 5, N: 5}, "", "no significant difference (-5.0 ±5.0 %)"},
		{Estimate{Mean: 5, Half: 4.9, N: 5}, "", "5.0 % less than b (±4.9)"},
		{Estimate{Mean: 0.02, Half: 0.02, N: 5}, "", "level with b"},
		{Estimate{Mean: -0.03, Half: 0.03, N: 5}, "", "no significant difference (0.0 ±0.0 %)"},
		{Estimate{Mean: 12, N: 1}, "", "12 % less than b (one seed)"},
		{Estimate{Mean: 12, Half: 1, N: 3}, "late", "no verdict: late"},
	} {
		f := finding{Other: "b", Saved: test.saved, NoVerdict: test.why}
		if got := f.String(); got != test.want {
			t.Errorf("%+v: %s, want %s", test.saved, got, test.want)
		}
	}
	for _, test := range []struct {
		e    Estimate
		from float64
		want float64
	}{
		{Estimate{Mean: 2, Half: 4, N: 5}, 0, 20}, {Estimate{Mean: 4, Half: 2, N: 5}, 0, 6}, {Estimate{Mean: 3, Half: 4, N: 5}, 1, 20}, {Estimate{Mean: 0, Half: 4, N: 5}, 0, math.Inf(1)}, {Estimate{Mean: 2, N: 1}, 0, math.Inf(1)},
	} {
		if got := test.e.seeds(test.from); got != test.want {
			t.Errorf("%+v from %g: %g seeds, want %g", test.e, test.from, got, test.want)
		}
	}
}

// An expectation holds if the whole interval is on its side of the threshold.
func TestHolds(t *testing.T) {
	e := Estimate{Mean: 10, Half: 2, N: 5}
	for _, test := range []struct {
		op        string
		threshold float64
		want      bool
	}{
		{"<", 12, false}, {"<", 12.1, true}, {"<=", 12, true}, {"<=", 11.9, false}, {">", 8, false}, {">", 7.9, true}, {">=", 8, true}, {">=", 8.1, false}, {"==", 10, false},
	} {
		if got := holds(test.op, e, test.threshold); got != test.want {
			t.Errorf("10 ± 2 %s %g: %v", test.op, test.threshold, got)
		}
	}
	if !holds("==", Estimate{Mean: 10, N: 5}, 10) || holds("==", Estimate{Mean: 10, N: 5}, 11) {
		t.Error("equal values")
	}
}

// The p value of a mean follows Student's t: with 4 degrees of freedom 2.776 has 0.05.
func TestPValues(t *testing.T) {
	for _, test := range []struct {
		e    Estimate
		v    float64
		want float64
	}{
		{Estimate{Mean: 3, Half: 1, N: 5}, 2, 0.05}, {Estimate{Mean: 3, Half: 1, N: 5}, 4, 0.05}, {Estimate{Mean: 3, Half: 1, N: 5}, 3, 1},
		{Estimate{Mean: 3, Half: 0, N: 5}, 3, 1}, {Estimate{Mean: 3, Half: 0, N: 5}, 4, 0}, {Estimate{Mean: 3, N: 1}, 4, math.NaN()}, {Estimate{Mean: math.NaN(), Half: 1, N: 5}, 4, math.NaN()},
	} {
		if got := test.e.p(test.v); math.Abs(got-test.want) > 1e-9 || math.IsNaN(got) != math.IsNaN(test.want) {
			t.Errorf("%+v from %g: %g, want %g", test.e, test.v, got, test.want)
		}
	}
	e := Estimate{Mean: 3, Half: 1, N: 2}
	for v, want := range map[float64]bool{2: false, 1.9: true, 4: false, 4.1: true} {
		if got := e.excludes(v); got != want {
			t.Errorf("3 ± 1 excludes %g: %v", v, got)
		}
	}
	if e.low() != 2 || e.high() != 4 {
		t.Errorf("from %g to %g", e.low(), e.high())
	}
	if got := reductions([]float64{1, 2, 3, 9}, []float64{2, 0, 2}); len(got) != 3 || got[0] != 50 || !math.IsNaN(got[1]) || got[2] != -50 {
		t.Errorf("reductions %v", got)
	}
	if v := variance([]float64{1, 3}); v != 1 {
		t.Errorf("variance %g", v)
	}
	if !slices.Equal([]int{compareFloats(1, 2), compareFloats(2, 1), compareFloats(1, 1)}, []int{-1, 1, 0}) {
		t.Error("compareFloats")
	}
}

// Rows are compared only if they have the same seeds and different programs.
func TestComparable(t *testing.T) {
	change := func(edit func(b *Row)) error {
		c := made(map[string][]float64{"a": {1, 2}, "b": {2, 3}}, "a", "b")
		edit(c.Rows[1])
		return c.Rows[0].comparable(c.Rows[1])
	}
	for _, test := range []struct {
		edit func(b *Row)
		want string
	}{
		{func(*Row) {}, ""},
		{func(b *Row) { b.Runs = b.Runs[:1] }, "a has 2 runs and b 1"},
		{func(b *Row) { b.Runs[1].Seed = 7 }, "a with seed 2, b with seed 7"},
		{func(b *Row) { b.Runs[0].Programs = map[string]string{"leaf": "a"} }, "a and b"},
		{func(b *Row) {
			b.Runs[0].Programs = map[string]string{"leaf": "a"}
			b.Runs[0].Parameters = map[string]string{"x": "1"}
		}, ""},
		{func(b *Row) { b.Runs[0].Programs = map[string]string{"leaf": "a"}; b.Runs[0].Engine = "native" }, ""},
		{func(b *Row) { b.Runs[0].Programs = map[string]string{"leaf": "a"}; b.Case = &spec.Case{} }, ""},
	} {
		if err := change(test.edit); (err == nil) != (test.want == "") || err != nil && !strings.HasPrefix(err.Error(), test.want) {
			t.Errorf("%v, want %q", err, test.want)
		}
	}
}

// Values of plots have six digits.
func TestRound(t *testing.T) {
	for v, want := range map[float64]float64{
		0: 0, 1.23456749: 1.23457, -1.23456749: -1.23457, 999999.6: 1000000, 123456789: 123457000, 0.000123456789: 0.000123457, 1: 1, math.Inf(1): math.Inf(1),
	} {
		if got := round(v); got != want && !near(got, want) {
			t.Errorf("%g becomes %g, want %g", v, got, want)
		}
	}
	if got := round(math.NaN()); !math.IsNaN(got) {
		t.Errorf("NaN becomes %g", got)
	}
}
