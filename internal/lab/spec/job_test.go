package spec

import (
	"bytes"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/p4lb/p4lb/internal/text/lists"
)

// TestJobGroups: of 16 ranks in 2 stages of 4 data-parallel and 2 tensor-parallel ranks,
// tensor groups are consecutive, data groups strided, expert groups parts of these, and
// pipelines cross the stages.
func TestJobGroups(t *testing.T) {
	d := degrees{data: 4, pipeline: 2, tensor: 2, expert: 2}
	for over, want := range map[string][][]int{
		"tensor":   {{0, 1}, {2, 3}, {4, 5}, {6, 7}, {8, 9}, {10, 11}, {12, 13}, {14, 15}},
		"data":     {{0, 2, 4, 6}, {1, 3, 5, 7}, {8, 10, 12, 14}, {9, 11, 13, 15}},
		"expert":   {{0, 2}, {1, 3}, {4, 6}, {5, 7}, {8, 10}, {9, 11}, {12, 14}, {13, 15}},
		"pipeline": {{0, 8}, {1, 9}, {2, 10}, {3, 11}, {4, 12}, {5, 13}, {6, 14}, {7, 15}},
		"all":      {sequence(0, 16)},
	} {
		if got := d.groups(over); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v, want %v", over, got, want)
		}
	}
}

// jobSetting checks jobs on 32 hosts of 4 leaves.
func jobSetting(t *testing.T, jobs string) (*Experiment, error) {
	t.Helper()
	return Load("x.yaml", []byte("name: x\ntopology: {leaf-spine: {leaves: 4, spines: 4, hosts: 8}}\nschemes: [ecmp]\njobs:\n"+jobs), nil, nil)
}

// TestJobPlacement chooses the hosts of each rule.
func TestJobPlacement(t *testing.T) {
	const phases = ", phases: [{collective: all-reduce, size: 1MB}]}\n"
	_, err := jobSetting(t, "  - {name: packed, ranks: 4"+phases+
		"  - {name: list, placement: [h2, l4, h9..h11], ranks: 12"+phases+
		"  - {name: spread, ranks: 4, placement: spread"+phases+
		"  - {name: random, ranks: 4, placement: random"+phases+
		"  - {name: left, ranks: 4, placement: [h1, h3, h32, h4], shared: true"+phases)
	if err == nil || !strings.Contains(err.Error(), "x.yaml:9: jobs[4].placement: h32 is a host of job list too") {
		t.Fatalf("%v: want a host of two jobs refused", err)
	}
	text := "  - {name: packed, ranks: 4" + phases +
		"  - {name: list, placement: [h2, l4, h9..h11], ranks: 12" + phases +
		"  - {name: spread, ranks: 4, placement: spread" + phases +
		"  - {name: random, ranks: 4, placement: random" + phases
	x, err := jobSetting(t, text)
	if err != nil {
		t.Fatal(err)
	}
	c := &x.Cases[0]
	topo, _ := c.Network(NoFiles)
	hosts := func(seed uint64, job int) string {
		runs, err := c.place(topo, seed)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Join(lists.Map(runs[job].Hosts, func(h int) string { return topo.Hosts[h].Name }), " ")
	}
	for job, want := range []string{"h1 h3 h4 h5", "h2 h25 h26 h27 h28 h29 h30 h31 h32 h9 h10 h11", "h6 h12 h17 h7"} {
		if got := hosts(1, job); got != want {
			t.Errorf("%s: %s, want %s", c.Jobs[job].Name, got, want)
		}
	}
	if a, b := hosts(1, 3), hosts(2, 3); a == b || hosts(1, 3) != a {
		t.Errorf("random: %s and %s with another seed: want different hosts", a, b)
	}
	// Shared jobs may meet.
	shared := strings.ReplaceAll("  - {name: a, placement: [l1], shared: true"+phases+"  - {name: b, placement: [h1, h9], shared: true"+phases, "ranks: 0, ", "")
	if _, err := jobSetting(t, shared); err != nil {
		t.Error(err)
	}
}

// TestJobRanks: a job has the ranks that its settings name or multiply to, and otherwise all hosts
// of its list or of the network. A rank computes its own phases and, for each microbatch, the phases
// of its stage.
func TestJobRanks(t *testing.T) {
	const stage = ", phases: [{compute: 3ms}, {pipeline: 1f1b, size: 1KB, phases: [{compute: 1ms}, {compute: 2ms}], backward: [{compute: 5ms}]}]"
	const ring = ", phases: [{compute: 3ms}, {compute: 4ms}, {collective: all-reduce, size: 1MB}]"
	for _, c := range []struct {
		job     string
		ranks   int
		compute time.Duration
	}{
		{"ranks: 8" + ring, 8, 7 * time.Millisecond},
		{"data: 4" + ring, 4, 7 * time.Millisecond},
		{"data: 1, tensor: 2, phases: [{collective: all-reduce, size: 1MB, over: tensor}]", 2, 0},
		{"data: 4, tensor: 2, pipeline: 2" + stage, 16, 11 * time.Millisecond},
		{"data: 4, tensor: 2, pipeline: 2, microbatches: 1" + stage, 16, 11 * time.Millisecond},
		{"data: 4, tensor: 2, pipeline: 2, microbatches: 6" + stage, 16, (3 + 6*8) * time.Millisecond},
		{"ranks: 8, data: 4, tensor: 2" + ring, 8, 7 * time.Millisecond},
		{"data: 4, placement: [h1..h4]" + ring, 4, 7 * time.Millisecond},
		{"placement: [h1..h6]" + ring, 6, 7 * time.Millisecond},
		{"tensor: 2" + ring, 32, 7 * time.Millisecond},
	} {
		x, err := jobSetting(t, "  - {"+c.job+"}\n")
		if err != nil {
			t.Errorf("%s: %v", c.job, err)
			continue
		}
		topo, err := x.Cases[0].Network(NoFiles)
		if err != nil {
			t.Fatal(err)
		}
		runs, err := x.Cases[0].place(topo, 1)
		if err != nil {
			t.Fatal(err)
		}
		if r := runs[0]; len(r.Hosts) != c.ranks || r.Compute != c.compute {
			t.Errorf("%s: %d ranks compute for %v, want %d and %v", c.job, len(r.Hosts), r.Compute, c.ranks, c.compute)
		}
	}
}

// TestJobFlows: a rank sends to others only when its own computation has ended, and the
// next iteration waits for all phases.
func TestJobFlows(t *testing.T) {
	x, err := jobSetting(t, `  - {name: a, placement: [h1..h4], start: 1ms, iterations: 2, phases: [{compute: 1ms}, {collective: reduce-scatter, size: 4KB}]}`)
	if err != nil {
		t.Fatal(err)
	}
	topo, _ := x.Cases[0].Network(NoFiles)
	flows, err := x.Cases[0].Flows(topo, 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	computations, ends := 0, map[int32]int{} // ends by iteration
	computed := map[int]bool{}               // by flow
	for i, f := range flows {
		computed[i] = f.Compute && f.Ends == 0
	}
	for i, f := range flows {
		switch {
		case f.Ends > 0:
			ends[f.Ends]++
		case f.Compute:
			computations++
			if length := f.Start - time.Millisecond; f.Waits == nil && length != time.Millisecond || f.Waits != nil && f.Waits.Delay != time.Millisecond {
				t.Errorf("computation %d starts at %v and waits for %v", i, f.Start, f.Waits)
			}
		default:
			own := 0
			for _, p := range f.Waits.After {
				if computed[int(p)] && flows[p].Src == f.Src {
					own++
				}
			}
			if own != 1 {
				t.Errorf("message %d (%d to %d) waits for %d computations of its sender: want 1", i, f.Src, f.Dst, own)
			}
		}
	}
	if computations != 8 || ends[1] != 4 || ends[2] != 4 || len(flows) != 16+24 {
		t.Errorf("%d computations, ends %v, %d flows: want 8, 4 for each iteration, and 40", computations, ends, len(flows))
	}
	// The flow list and JSON keep every field that the simulator reads.
	if list := FlowList(flows, topo); len(strings.Split(string(list), "\n")) != len(flows)+2 {
		t.Errorf("a list of %d lines", len(strings.Split(string(list), "\n")))
	}
}

// TestJobErrors: invalid jobs are refused with file, line and key.
func TestJobErrors(t *testing.T) {
	const ring = "{collective: all-reduce, size: 1MB}"
	for text, want := range map[string]string{
		"{phases: [" + ring + "], speed: 3}":                  "x.yaml:5: jobs[0].speed",
		"{phases: [{compute: 1ms, wait: 2ms}, " + ring + "]}": "x.yaml:5: jobs[0].phases[0].wait",
		"{}":                         "x.yaml:5: jobs[0]: no phases: want phases: [",
		"{phases: [{compute: 1ms}]}": "x.yaml:5: jobs[0].phases: no phase communicates",
		"{phases: [{}]}":             "x.yaml:5: jobs[0].phases[0]: want one of compute, collective and pipeline",
		"{phases: [{compute: 1ms, collective: all-reduce}]}":                                                            "x.yaml:5: jobs[0].phases[0]: want one of compute",
		"{phases: [{collective: gossip, size: 1MB}]}":                                                                   `x.yaml:5: jobs[0].phases[0]: collective "gossip": want one of`,
		"{phases: [{collective: all-reduce}]}":                                                                          "x.yaml:5: jobs[0].phases[0]: collective all-reduce: want size",
		"{phases: [{collective: all-reduce, size: 5}]}":                                                                 "x.yaml:5: jobs[0].phases[0]: size 5 of 32 ranks: want at least a byte",
		"{phases: [{collective: all-reduce, size: 1MB, over: model}]}":                                                  `x.yaml:5: jobs[0].phases[0].over: over "model": want data, pipeline,`,
		"{phases: [{collective: all-reduce, size: 1MB, over: tensor}]}":                                                 "x.yaml:5: jobs[0].phases[0].over: over tensor: the job has one rank",
		"{tensor: 3, phases: [" + ring + "]}":                                                                           "x.yaml:5: jobs[0]: pipeline 1 times tensor 3 is 3: want a divisor of the 32 ranks",
		"{ranks: 16, data: 4, tensor: 2, phases: [" + ring + "]}":                                                       "x.yaml:5: jobs[0]: data 4 times pipeline 1 times tensor 2 is 8: want the 16 ranks",
		"{expert: 5, phases: [" + ring + "]}":                                                                           "x.yaml:5: jobs[0]: expert 5: want a divisor of data, which is 32",
		"{ranks: 64, phases: [" + ring + "]}":                                                                           "x.yaml:5: jobs[0]: ranks 64, data 0, pipeline 0, tensor 0, expert 0: there are 32 hosts",
		"{ranks: -1, phases: [" + ring + "]}":                                                                           "x.yaml:5: jobs[0]: ranks -1, data 0",
		"{ranks: 1, phases: [" + ring + "]}":                                                                            "x.yaml:5: jobs[0]: one rank: want 2 or more",
		"{placement: scattered, phases: [" + ring + "]}":                                                                `x.yaml:5: jobs[0].placement: placement "scattered": want packed, spread or random, or a list`,
		"{placement: [h1, h99], phases: [" + ring + "]}":                                                                `x.yaml:5: jobs[0].placement: there is no host "h99"`,
		"{placement: [h1, h2], ranks: 4, phases: [" + ring + "]}":                                                       "x.yaml:5: jobs[0].placement: 2 hosts for 4 ranks: want as many",
		"{placement: [h1, h2, h1..h4], phases: [" + ring + "]}":                                                         "x.yaml:5: jobs[0].placement: h1 is listed twice",
		"{iterations: -1, phases: [" + ring + "]}":                                                                      "x.yaml:5: jobs[0].iterations: iterations -1",
		"{iterations: 999999, phases: [" + ring + "]}":                                                                  "x.yaml:5: jobs[0]: 2079997920 messages and computations: want at most",
		"{microbatches: 2, phases: [" + ring + "]}":                                                                     "x.yaml:5: jobs[0].microbatches: microbatches 2: want a phase with pipeline",
		"{connections: tls, phases: [" + ring + "]}":                                                                    `x.yaml:5: jobs[0].connections: connections "tls": want persistent, per-message or queue-pair`,
		"{name: 'a:b', phases: [" + ring + "]}":                                                                         `x.yaml:5: jobs[0].name: name "a:b"`,
		"{phases: [{pipeline: forward, size: 1KB, phases: [{compute: 1ms}]}]}":                                          "x.yaml:5: jobs[0].phases[0].pipeline: pipeline: the job has one stage",
		"{pipeline: 2, phases: [{pipeline: up, size: 1KB}]}":                                                            `x.yaml:5: jobs[0].phases[0].pipeline: pipeline "up": want forward, backward or 1f1b`,
		"{pipeline: 2, phases: [{pipeline: forward, size: 1KB, phases: [{compute: 1ms}], backward: [{compute: 1ms}]}]}": "x.yaml:5: jobs[0].phases[0].backward: backward: want pipeline: 1f1b",
		"{pipeline: 2, phases: [{pipeline: 1f1b, size: 1KB, phases: [{compute: 1ms}]}]}":                                "x.yaml:5: jobs[0].phases[0].pipeline: pipeline 1f1b: want backward",
		"{pipeline: 2, phases: [{pipeline: 1f1b, size: 1KB, phases: [{compute: 1ms}], backward: [{compute: 1ms}, {collective: all-reduce, size: 1KB, over: pipeline}]}]}": "x.yaml:5: jobs[0].phases[0].backward[1].over: over pipeline within a stage",
		"{pipeline: 2, phases: [{pipeline: forward, phases: [{compute: 1ms}]}]}":                                                                                          "x.yaml:5: jobs[0].phases[0].pipeline: pipeline: want size",
		"{pipeline: 2, phases: [{pipeline: forward, size: 1KB}]}":                                                                                                         "x.yaml:5: jobs[0].phases[0].pipeline: pipeline: want phases",
		"{phases: [{compute: 1ms, phases: [{compute: 1ms}]}]}":                                                                                                            "x.yaml:5: jobs[0].phases[0].phases: phases in a phase: want pipeline",
		"{phases: [{compute: 1ms, over: data}]}":                                                                                                                          "x.yaml:5: jobs[0].phases[0]: over, algorithm, window and chunks: want collective",
		"{phases: [{compute: 1ms, size: 1KB}]}":                                                                                                                           "x.yaml:5: jobs[0].phases[0].size: size of a computation",
		"{phases: [{name: a, compute: 1ms}, {name: a, compute: 1ms}]}":                                                                                                    `x.yaml:5: jobs[0].phases[1].name: name "a": want a name of its own`,
		"{phases: [{name: start, compute: 1ms}]}":                                                                                                                         `x.yaml:5: jobs[0].phases[0].name: name "start": want a name`,
		"{phases: [{compute: 1ms, after: [b]}]}":                                                                                                                          `x.yaml:5: jobs[0].phases[0].after: after "b": there is no phase of this name`,
		"{phases: [{name: a, compute: 1ms, after: [b]}, {name: b, collective: all-reduce, size: 1MB}]}":                                                                   "x.yaml:5: jobs[0].phases[0]: phases wait for each other: a after b after a",
		"{pipeline: 2, phases: [{pipeline: forward, size: 1KB, phases: [{name: x, after: [x], compute: 1ms}]}]}":                                                          "x.yaml:5: jobs[0].phases[0].phases[0]: phases wait for each other: x after x",
		"{pipeline: 2, phases: [{pipeline: forward, size: 1KB, phases: [{collective: send-recv, over: pipeline}]}]}":                                                      "x.yaml:5: jobs[0].phases[0].phases[0].over: over pipeline within a stage",
		"{microbatches: -1, phases: [" + ring + "]}":                                                                                                                      "x.yaml:5: jobs[0].microbatches: microbatches -1: want 0 to 1000000",
		"{pipeline: 2, microbatches: 1000001, phases: [{pipeline: forward, size: 1KB, phases: [{compute: 1ms}]}]}":                                                        "x.yaml:5: jobs[0].microbatches: microbatches 1000001: want 0 to 1000000",
		"{iterations: 1000001, phases: [" + ring + "]}":                                                                                                                   "x.yaml:5: jobs[0].iterations: iterations 1000001: want 0 to 1000000",
		"{data: 4, ranks: 4, tensor: -1, phases: [" + ring + "]}":                                                                                                         "x.yaml:5: jobs[0]: ranks 4, data 4, pipeline 0, tensor -1, expert 0: want 0 or more",
		"{data: 32, tensor: 2, phases: [" + ring + "]}":                                                                                                                   "x.yaml:5: jobs[0]: 64 ranks: there are 32 hosts",
		"{data: 33, phases: [" + ring + "]}":                                                                                                                              "x.yaml:5: jobs[0]: ranks 0, data 33, pipeline 0, tensor 0, expert 0: there are 32 hosts",
		"{placement: [h1, h2], data: 4, phases: [" + ring + "]}":                                                                                                          "x.yaml:5: jobs[0].placement: 2 hosts for 4 ranks: want as many",
		"{ranks: 20, phases: [" + ring + "]}\n  - {ranks: 20, phases: [" + ring + "]}":                                                                                    "x.yaml:6: jobs[1]: 20 ranks, and other jobs leave 12 of 32 hosts",
		"{name: a, ranks: 2, phases: [" + ring + "]}\n  - {name: a, ranks: 2, phases: [" + ring + "]}":                                                                    "x.yaml:6: jobs[1]: two jobs are called a",
		"{name: a, phases: [" + ring + "]}\nmetrics: ['iteration-time:b']":                                                                                                `x.yaml:6: metrics[0]: metric iteration-time: there is no job "b"`,
	} {
		_, err := jobSetting(t, "  - "+text+"\n")
		if err == nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s:\n%v\nwant %s", text, err, want)
		}
	}
}

// TestTurns: the order of 1F1B for three stages, and for fewer microbatches than stages.
func TestTurns(t *testing.T) {
	for _, c := range []struct {
		stage, stages, batches int
		want                   string
	}{
		{0, 3, 4, "F0 F1 F2 B0 F3 B1 B2 B3"},
		{1, 3, 4, "F0 F1 B0 F2 B1 F3 B2 B3"},
		{2, 3, 4, "F0 B0 F1 B1 F2 B2 F3 B3"},
		{0, 4, 2, "F0 F1 B0 B1"},
	} {
		var got []string
		for _, turn := range turns(c.stage, c.stages, c.batches) {
			way := map[bool]string{false: "F", true: "B"}[turn.back]
			got = append(got, fmt.Sprint(way, turn.batch))
		}
		if text := strings.Join(got, " "); text != c.want {
			t.Errorf("stage %d of %d, %d microbatches: %s, want %s", c.stage, c.stages, c.batches, text, c.want)
		}
	}
}

// TestJobForm: an experiment with jobs survives its canonical form.
func TestJobForm(t *testing.T) {
	x, err := jobSetting(t, `  - {placement: random, ranks: 8, pipeline: 2, microbatches: 2, phases: [{name: f, pipeline: forward, size: 1KB, phases: [{compute: 1ms}]}, {after: [start], collective: all-reduce, size: 1MB}]}`)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%+v", x.Cases[0].Jobs)
	form := formText(x)
	again, err := FromForm(form)
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprintf("%+v", again.Cases[0].Jobs); got != b.String() {
		t.Errorf("%s\nwas\n%s", got, b.String())
	}
	if x.Cases[0].Traffic != nil || again.Cases[0].Traffic != nil {
		t.Errorf("jobs alone have traffic: %v", x.Cases[0].Traffic)
	}
}

func formText(x *Experiment) []byte {
	var b bytes.Buffer
	WriteForm(&b, "", *x)
	return b.Bytes()
}
