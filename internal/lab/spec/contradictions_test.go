package spec

import (
	"bytes"
	"fmt"
	"io/fs"
	"math"
	"slices"
	"strings"
	"testing"
	"time"
)

// Settings that contradict each other are refused with their place.
func TestContradictions(t *testing.T) {
	for text, want := range map[string]string{
		"transport: {kind: tcp, entropy: reps, paths: 1}": "x.yaml:2: transport: paths 1: want a power of two from 2 to ", "transport: {kind: tcp, entropy: reps, paths: 2}": "",
		"transport: {kind: tcp, entropy: reps, paths: 6}": "x.yaml:2: transport: paths 6: want a power of two from 2 to ", "transport: {kind: tcp, paths: 2}": "x.yaml:2: transport: paths 2: want entropy ",
		"traffic: [{to: [h99]}]": `x.yaml:2: traffic[0]: to: there is no host "h99"`,
		"ties: place":            "", "ties: place\nswitches: {knowledge: everywhere}": "x.yaml:2: ties: place cannot read queues of other switches", "switches: {knowledge: everywhere}": "",
		"ties: place\nswitches: {draws: ns3}": "x.yaml:2: ties: place has no order in which switches draw from one sequence", "switches: {draws: ns3}": "",
		"switches: {pfc-hysteresis: 3KB}": "x.yaml:2: switches.pfc-hysteresis: without pfc nothing is paused", "switches: {pfc: true, pfc-threshold: 9KB, pfc-hysteresis: 9KB}": "",
		"switches: {pfc: true, pfc-threshold: 9KB, pfc-hysteresis: 10KB}": "x.yaml:2: switches.pfc-hysteresis: 10KB is more than the threshold of 9KB",
		"transport: {kind: tcp, recovery: newreno, max-dupacks: 9}":       "x.yaml:2: transport.max-dupacks: recovery newreno cannot distinguish reordering from loss", "transport: {kind: tcp, recovery: newreno}": "",
		"transport: {kind: dcqcn, rdma: {nack: none, nack-every: 4us}}":   "x.yaml:2: transport.rdma.nack-every: there are no Nacks with nack: none",
		"transport: {kind: dcqcn, rdma: {reordering: 3us}}":               "x.yaml:2: transport.rdma.reordering: reordering and base-rtt are of nack: irn alone",
		"transport: {kind: dcqcn, rdma: {base-rtt: 3us}}":                 "x.yaml:2: transport.rdma.reordering: reordering and base-rtt are of nack: irn alone",
		"transport: {kind: dcqcn, rdma: {nack: irn, base-rtt: 3us}}":      "",
		"transport: {kind: dcqcn, rdma: {nack: none, nack-as: with-cnp}}": "x.yaml:2: transport.rdma.nack-as: ",
		"switches: {queue-limit: free, queue: 50}":                        "x.yaml:2: switches.queue-limit: free, and queue: 50 packets",
	} {
		_, err := Load("x.yaml", []byte("schemes: [{scheme: conga, engine: native}]\n"+text+"\n"), NoFiles, nil)
		if want == "" && err != nil || want != "" && (err == nil || !strings.HasPrefix(err.Error(), want)) {
			t.Errorf("%s:\ngot  %v\nwant %s", text, err, want)
		}
	}
}

// A warm-up is a time or a share of the duration from 0 % to below 100 %.
func TestWarmupText(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"0": 0, "20ms": 20 * time.Millisecond, "10%": 100 * time.Millisecond, "0%": 0, "99.9%": 999 * time.Millisecond,
		"100%": -1, "-1%": -1, "x%": -1, "%": -1, "NaN%": -1, "5": -1, "": -1,
	} {
		s := &Setting{Duration: Time(time.Second)}
		if err := s.Warmup.UnmarshalText([]byte(text)); err != nil {
			if want >= 0 {
				t.Errorf("%q: %v", text, err)
			}
			continue
		}
		if got := s.WarmupTime(); got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
		again, err := s.Warmup.MarshalText()
		var w Warmup
		if err != nil || w.UnmarshalText(again) != nil || w.Time != s.Warmup.Time || !(math.Abs(w.Share-s.Warmup.Share) <= 1e-12) {
			t.Errorf("%q is written as %q, %v", text, again, err)
		}
	}
}

// Times of SimAI's workloads are whole nanoseconds up to a limit.
func TestNanoseconds(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"0": 0, "7": 7, "1000000000000000": 1e15, "1000000000000001": -1, "-1": -1, "1.5": -1, "": -1, "99999999999999999999": -1,
	} {
		got, err := nanoseconds(text)
		if err != nil {
			got = -1
		}
		if got != want {
			t.Errorf("%q: %v, %v; want %v", text, got, err, want)
		}
	}
}

// A trace set has a trace for each rank from 0 on. A gap, and more ranks than hosts, are
// errors.
func TestRanksOfTraces(t *testing.T) {
	one := newTrace().node(1, etComp, nil, map[string]any{"num_ops": 5}).b
	for _, c := range []struct {
		ranks []int
		hosts int
		want  string
	}{
		{[]int{0}, 4, ""}, {[]int{0, 1, 2, 3}, 4, ""}, {[]int{0, 2}, 4, `there is no trace of rank 1, "x.1.et": there is one of rank 2`},
		{[]int{1, 2}, 4, `reading the trace of rank 0, "x.0.et"`}, {[]int{0, 1, 2}, 2, "the topology has 2 hosts"}, {[]int{0, 1, 4}, 4, `there is no trace of rank 2, "x.2.et": there is one of rank 4`},
	} {
		read := func(name string) ([]byte, error) {
			for _, r := range c.ranks {
				if name == fmt.Sprintf("x.%d.et", r) {
					return one, nil
				}
			}
			return nil, fs.ErrNotExist
		}
		s := &traceSet{file: "x.*.et"}
		err := s.read(0, c.hosts, nil, read)
		if c.want == "" && (err != nil || len(s.traces) != len(c.ranks)) || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("ranks %v, %d hosts: %d traces, %v; want %q", c.ranks, c.hosts, len(s.traces), err, c.want)
		}
	}
}

// A form has a line for each value of a structure. Lines that fit no value, or ask for too
// many items, are errors.
func TestFormErrors(t *testing.T) {
	type part struct{ N int }
	type whole struct {
		List []part
		Map  map[string]string
		At   *part
		Text string
	}
	in := whole{List: []part{{1}, {2}}, Map: map[string]string{"b": "x=y", "a": ""}, At: &part{3}, Text: "line\nline"}
	var b bytes.Buffer
	WriteForm(&b, "", in)
	var out whole
	if err := ReadForm(b.Bytes(), &out); err != nil || fmt.Sprintf("%v %v %v %q", out.List, out.Map, *out.At, out.Text) != fmt.Sprintf("%v %v %v %q", in.List, in.Map, *in.At, in.Text) {
		t.Fatalf("%+v, %v; written as\n%s", out, err, &b)
	}
	items := strings.Index(b.String(), "2 items")
	if items < 0 {
		t.Fatalf("the form is\n%s", &b)
	}
	for old, new := range map[string]string{"[1]": "[2]", "[0]": "[-1]", "[1].": "[1", "2 items": "999999999 items", "=": "", `{"b"}`: `{"b"`, "{a}": "{a}x"} {
		text := strings.Replace(b.String(), old, new, 1)
		if text == b.String() {
			continue // another form of the same path
		}
		var out whole
		if err := ReadForm([]byte(text), &out); err == nil {
			t.Errorf("%s instead of %s: no error", new, old)
		}
	}
}

// An experiment at the paper's size has the sizes of its section full, in each case.
func TestWhole(t *testing.T) {
	x, err := Load("x.yaml", []byte("schemes: [ecmp]\nseeds: 2\nduration: 10ms\nfull: {seeds: 30, duration: 2s, loads: [0.3, 0.9]}\ncases: [{name: a}, {name: b}]\n"), NoFiles, nil)
	if err != nil {
		t.Fatal(err)
	}
	whole := x.Whole()
	if len(whole.Seeds) != 30 || whole.Duration != Time(2*time.Second) || len(whole.Loads) != 2 || whole.Full != nil || whole.Cases[1].Duration != Time(2*time.Second) {
		t.Errorf("whole: %d seeds, %v, loads %v, case b %v", len(whole.Seeds), whole.Duration, whole.Loads, whole.Cases[1].Duration)
	}
	if len(x.Seeds) != 2 || x.Cases[1].Duration != Time(10*time.Millisecond) || x.Full == nil {
		t.Errorf("the experiment itself has changed: %d seeds, %v", len(x.Seeds), x.Cases[1].Duration)
	}
	if again := whole.Whole(); again != whole {
		t.Error("an experiment without a section full has another size")
	}
}

// A case of an experiment with IPv6 uses IPv6, and so does a case with its own key ipv6.
func TestIPv6OfCases(t *testing.T) {
	for text, want := range map[string][]bool{
		"ipv6: true\ncases: [{name: a}, {name: b, ipv6: true}]": {true, true},
		"cases: [{name: a}, {name: b, ipv6: true}]":             {false, true},
	} {
		x, err := Load("x.yaml", []byte("schemes: [ecmp]\n"+text), NoFiles, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := []bool{x.Cases[0].IPv6, x.Cases[1].IPv6}; !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", text, got, want)
		}
	}
}

// The last flow begins with the traffic's list, its times or its end, and else with the
// experiment.
func TestLastStart(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		tr   Traffic
		want time.Duration
	}{
		{Traffic{}, 10 * ms}, {Traffic{Stop: Time(4 * ms)}, 4 * ms}, {Traffic{Stop: Time(40 * ms)}, 10 * ms}, {Traffic{At: []Time{Time(3 * ms), Time(7 * ms), Time(5 * ms)}}, 7 * ms},
		{Traffic{Pattern: List, flows: []Flow{{Start: 2 * ms}, {Start: 6 * ms}, {Start: ms}}}, 6 * ms}, {Traffic{Pattern: List}, 0},
	} {
		if got := c.tr.lastStart(10 * ms); got != c.want {
			t.Errorf("%+v: %v, want %v", c.tr, got, c.want)
		}
	}
}

// One choice at a time has each of its values while all others keep theirs.
func TestAlone(t *testing.T) {
	v := &Vary{Open: openChoices{{Levels: []Level{{Text: "a"}, {Text: "b"}}}, {Levels: []Level{{Text: "c"}}}}}
	if got, want := fmt.Sprint(v.Alone()), "[[0 -1] [1 -1] [-1 0]]"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// Ranks of a job are numbered over data, tensor and pipeline; a stage has all ranks of its
// part of the pipeline.
func TestStages(t *testing.T) {
	d := degrees{data: 2, tensor: 3, pipeline: 2}
	if a, b := d.stage(0), d.stage(1); !slices.Equal(a, []int{0, 1, 2, 3, 4, 5}) || !slices.Equal(b, []int{6, 7, 8, 9, 10, 11}) {
		t.Errorf("stages %v and %v", a, b)
	}
}

// The mean and the mean square of a distribution follow from its quantiles.
func TestMoments(t *testing.T) {
	c, err := parseCDF("x", []byte("100 0\n100 0.5\n300 0.5\n300 1\n"))
	if err != nil {
		t.Fatal(err)
	}
	if mean, square := c.moments(); !(math.Abs(mean-200) <= 1) || !(math.Abs(square-(100*100+300*300)/2) <= 200) {
		t.Errorf("mean %v, mean square %v", mean, square)
	}
}

// Observations are taken at intervals, and some rows of them are held back for the test.
func TestObserving(t *testing.T) {
	for _, c := range []struct {
		o    Observing
		want string
	}{
		{Observing{Every: 1, Test: 0.5, Outliers: "none"}, ""}, {Observing{Every: 1, Test: 0.001, Outliers: "sigma:3"}, ""},
		{Observing{Every: 0, Test: 0.5, Outliers: "none"}, "every 0s: want a time above 0"}, {Observing{Every: 1, Test: 0, Outliers: "none"}, "test 0: want a share"},
		{Observing{Every: 1, Test: 1, Outliers: "none"}, "test 1: want a share"}, {Observing{Every: 1, Test: math.NaN(), Outliers: "none"}, "test NaN: want a share"}, {Observing{Every: 1, Test: 0.5, Outliers: "x"}, "x"},
	} {
		if err := c.o.check(); c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%+v: %v, want %q", c.o, err, c.want)
		}
	}
}

// Jobs without a name are numbered from 1. Two jobs of one name, and names that metrics
// cannot carry, are refused.
func TestNamesOfJobs(t *testing.T) {
	const work = "ranks: 4, phases: [{collective: all-reduce, size: 1MB}]"
	for text, want := range map[string]string{
		"[{%s}, {%s}]": "job1 job2", "[{name: a, %s}, {%s}]": "a job2", "[{name: job2, %s}, {%s}]": "two jobs are called job2", "[{name: 'a:b', %s}, {%s}]": "want no colon, comma or space",
	} {
		x, err := jobSetting(t, strings.ReplaceAll(text, "%s", work))
		got := ""
		if err == nil {
			got = x.Cases[0].Jobs[0].Name + " " + x.Cases[0].Jobs[1].Name
		} else {
			got = err.Error()
		}
		if !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}
