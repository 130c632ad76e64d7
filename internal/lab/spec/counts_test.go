package spec

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/p4lb/p4lb/internal/network/fabric"
	"github.com/p4lb/p4lb/internal/sim"
	"github.com/p4lb/p4lb/internal/text/lists"
)

// TestJobBudget: the messages and computations of a job's iterations are limited. Each phase counts
// its messages and a step for each rank that takes part. The end of an iteration counts a step for
// each rank.
func TestJobBudget(t *testing.T) {
	const most = 1_000_000
	for _, c := range []struct {
		job  string
		want int // of an iteration
	}{
		{"ranks: 4, phases: [{collective: all-reduce, size: 1MB}]", 2*4*3 + 4 + 4 + 4},
		{"ranks: 4, phases: [{compute: 1ms}, {collective: all-reduce, size: 1MB}]", 4 + 2*4*3 + 4 + 4 + 4},
		{"ranks: 4, phases: [{collective: all-gather, size: 1MB}]", 4*3 + 4 + 4 + 4},
		{"ranks: 4, phases: [{collective: broadcast, size: 1MB}]", 3 + 4 + 4},
		{"ranks: 4, phases: [{collective: broadcast, size: 1MB, chunks: 5}]", 3*5 + 4 + 4},
		{"ranks: 4, phases: [{collective: all-reduce, algorithm: tree, size: 1MB, chunks: 5}]", 2*3*5 + 4 + 4},
		{"ranks: 4, phases: [{collective: all-reduce, algorithm: double-tree, size: 1MB, chunks: 5}]", 4*3*5 + 4 + 4},
		{"ranks: 4, phases: [{collective: all-reduce, algorithm: halving-doubling, size: 1MB}]", 2*4*2 + 4 + 4},
		{"ranks: 4, phases: [{collective: all-gather, algorithm: halving-doubling, size: 1MB}]", 4*2 + 4 + 4},
		{"ranks: 4, phases: [{collective: send-recv, size: 1MB}]", 4 + 4 + 4},
		// Each of two groups of two ranks has its own collective.
		{"data: 2, tensor: 2, phases: [{collective: all-reduce, over: tensor, size: 1MB}]", 2*(2*2*1+2+2) + 4},
		// Each of two stages of two ranks computes for each microbatch, and each rank may send it on.
		{"data: 2, pipeline: 2, phases: [{pipeline: forward, size: 1KB, phases: [{compute: 1ms}]}]", 2*2 + 4 + 4},
		{"data: 2, pipeline: 2, microbatches: 1, phases: [{pipeline: forward, size: 1KB, phases: [{compute: 1ms}]}]", 2*2 + 4 + 4},
		{"data: 2, pipeline: 2, microbatches: 3, phases: [{pipeline: backward, size: 1KB, phases: [{compute: 1ms}]}]", 3*(2*2+4) + 4},
		{"data: 2, pipeline: 2, microbatches: 3, phases: [{pipeline: 1f1b, size: 1KB, phases: [{compute: 1ms}], backward: [{compute: 1ms}, {compute: 1ms}]}]", 3*(2*(2+4)+2*4) + 4},
		{"data: 2, pipeline: 2, tensor: 2, phases: [{pipeline: forward, size: 1KB, phases: [{collective: all-reduce, over: tensor, size: 1KB}]}]", 2*(2*(2*2*1+2+2)) + 8 + 8},
		// All 32 hosts of the network compute beside two stages.
		{"pipeline: 2, phases: [{compute: 1ms}, {pipeline: forward, size: 1KB, phases: [{compute: 1ms}, {compute: 1ms}]}]", 32 + 32*2 + 32 + 32},
	} {
		_, err := jobSetting(t, fmt.Sprintf("  - {%s, iterations: %d}\n", c.job, most))
		if want := fmt.Sprintf("x.yaml:5: jobs[0]: %d messages and computations: want at most 4194304", c.want*most); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", c.job, err, want)
		}
	}
	// An iteration of two ranks counts 10, so the limit of 4,194,304 allows 419,430 iterations.
	const two = "  - {ranks: 2, iterations: %d, phases: [{collective: all-reduce, size: 1MB}]}\n"
	if _, err := jobSetting(t, fmt.Sprintf(two, maxMessages/10)); err != nil {
		t.Error(err)
	}
	if _, err := jobSetting(t, fmt.Sprintf(two, maxMessages/10+1)); err == nil || !strings.HasSuffix(err.Error(), "jobs[0]: 4194310 messages and computations: want at most 4194304") {
		t.Errorf("more than the limit: %v", err)
	}
}

// TestPhaseKeys refuses each key of a phase beside the kind of phase that it does not belong to.
func TestPhaseKeys(t *testing.T) {
	const head = "x.yaml:5: jobs[0].phases[0]"
	for text, want := range map[string]string{
		"{phases: [{compute: 1ms, algorithm: ring}]}":                                                                                                                              head + ": over, algorithm, window and chunks: want collective beside them",
		"{phases: [{compute: 1ms, window: 1}]}":                                                                                                                                    head + ": over, algorithm, window and chunks: want collective beside them",
		"{phases: [{compute: 1ms, chunks: 1}]}":                                                                                                                                    head + ": over, algorithm, window and chunks: want collective beside them",
		"{pipeline: 2, phases: [{pipeline: forward, chunks: 1, size: 1KB, phases: [{compute: 1ms}]}]}":                                                                             head + ": over, algorithm, window and chunks: want collective beside them",
		"{phases: [{compute: 1ms, backward: [{compute: 1ms}]}]}":                                                                                                                   head + ".backward: backward: want pipeline: 1f1b beside it",
		"{pipeline: 2, phases: [{pipeline: backward, size: 1KB, phases: [{compute: 1ms}], backward: [{compute: 1ms}]}]}":                                                           head + ".backward: backward: want pipeline: 1f1b beside it",
		"{phases: [{collective: all-reduce, size: 1KB, phases: [{compute: 1ms}]}]}":                                                                                                head + ".phases: phases in a phase: want pipeline beside them",
		"{phases: [{compute: 1ms, pipeline: forward}]}":                                                                                                                            head + ": want one of compute, collective and pipeline",
		"{phases: [{collective: all-reduce, pipeline: forward}]}":                                                                                                                  head + ": want one of compute, collective and pipeline",
		"{pipeline: 2, phases: [{pipeline: forward, size: 1KB, phases: [{collective: all-reduce, size: 1KB, over: all}]}]}":                                                        head + ".phases[0].over: over all within a stage of the pipeline: want data, tensor or expert",
		"{pipeline: 2, phases: [{pipeline: forward, size: 1KB, phases: [{pipeline: forward, size: 1KB, phases: [{compute: 1ms}]}]}]}":                                              head + ".phases[0].pipeline: pipeline within a stage of the pipeline: want compute or collective",
		"{pipeline: 2, data: 1, tensor: 16, phases: [{collective: all-reduce, size: 1MB}]}":                                                                                        head + ".over: over data: the job has one rank in each group, want data: 2 or more",
		"{pipeline: 2, phases: [{pipeline: 1f1b, size: 1KB, phases: [{compute: 1ms}], backward: [{name: b, compute: 1ms}, {name: b, compute: 1ms}]}]}":                             head + `.backward[1].name: name "b": want a name of its own`,
		"{phases: [{compute: 1ms, after: ['']}, {collective: all-reduce, size: 1MB}]}":                                                                                             head + `.after: after "": there is no phase of this name beside it, and want start for the start of an iteration`,
		"{phases: [{name: a, compute: 1ms, after: [c]}, {compute: 1ms, after: [a]}, {name: c, collective: all-reduce, size: 1MB}]}":                                                head + ": phases wait for each other: a after c after phases[1] after a",
		"{pipeline: 2, phases: [{name: f, pipeline: forward, size: 1KB, phases: [{compute: 1ms, after: [f]}]}]}":                                                                   head + `.phases[0].after: after "f": there is no phase of this name beside it, and want start for the start of an iteration`,
		"{microbatches: 2, phases: [{compute: 1ms}, {collective: all-reduce, size: 1MB}]}":                                                                                         "x.yaml:5: jobs[0].microbatches: microbatches 2: want a phase with pipeline: forward, backward or 1f1b",
		"{placement: h1..h2, phases: [{collective: all-reduce, size: 1MB}], ranks: 3}":                                                                                             "x.yaml:5: jobs[0].placement: 2 hosts for 3 ranks: want as many",
		"{placement: l9, phases: [{collective: all-reduce, size: 1MB}]}":                                                                                                           `x.yaml:5: jobs[0].placement: placement "l9": want packed, spread or random, or a list of hosts`,
		"{placement: h1, phases: [{collective: all-reduce, size: 1MB}]}":                                                                                                           "x.yaml:5: jobs[0]: one rank: want 2 or more",
		"{name: 'a b', phases: [{collective: all-reduce, size: 1MB}]}":                                                                                                             `x.yaml:5: jobs[0].name: name "a b": want no colon, comma or space, as metrics are called iteration-time:NAME`,
		"{name: 'a,b', phases: [{collective: all-reduce, size: 1MB}]}":                                                                                                             `x.yaml:5: jobs[0].name: name "a,b": want no colon, comma or space, as metrics are called iteration-time:NAME`,
		"{ranks: 30, phases: [{collective: all-reduce, size: 1MB}]}\n  - {ranks: 2, phases: [{collective: all-reduce, size: 1MB}]}\n  - {phases: [{compute: 1ms}]}":                "x.yaml:7: jobs[2].phases: no phase communicates: want collective or pipeline in one of them",
		"{ranks: 31, phases: [{collective: all-reduce, size: 1MB}]}\n  - {ranks: 2, phases: [{collective: all-reduce, size: 1MB}]}":                                                "x.yaml:6: jobs[1]: 2 ranks, and other jobs leave 1 of 32 hosts: want fewer ranks, or shared: true in these jobs",
		"{placement: [h1, h2], phases: [{collective: all-reduce, size: 1MB}]}\n  - {placement: [h2, h3], shared: true, phases: [{collective: all-reduce, size: 1MB}]}":             "x.yaml:6: jobs[1].placement: h2 is a host of job job1 too: want other hosts, or shared: true in both jobs",
		"{placement: [h1, h2], shared: true, phases: [{collective: all-reduce, size: 1MB}]}\n  - {placement: [h2, h3], phases: [{collective: all-reduce, size: 1MB}]}":             "x.yaml:6: jobs[1].placement: h2 is a host of job job1 too: want other hosts, or shared: true in both jobs",
		"{iterations: 1000000, ranks: 2, start: -1ms, phases: [{collective: all-reduce, size: 1MB}]}":                                                                              "x.yaml:5: jobs[0].start: ",
		"{pipeline: 2, phases: [{pipeline: 1f1b, size: 1KB, phases: [{compute: 1ms}], backward: [{compute: 1ms, backward: [{compute: 1ms}]}]}]}":                                   head + ".backward[0].backward: backward: want pipeline: 1f1b beside it",
		"{pipeline: 2, phases: [{pipeline: forward, size: 1KB, phases: [{compute: 1ms}, {collective: all-reduce, size: 1KB, over: data, algorithm: halving-doubling}]}], data: 3}": head + ".phases[1]: algorithm halving-doubling of 3 ranks: want a power of two",
	} {
		_, err := jobSetting(t, "  - "+text+"\n")
		if err == nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s:\n%v\nwant %s", text, err, want)
		}
	}
	// A phase may name the same phase as another of its own list, and the start of the iteration.
	for _, text := range []string{
		"{pipeline: 2, phases: [{name: x, pipeline: forward, size: 1KB, phases: [{name: x, compute: 1ms}, {after: [x, start], compute: 1ms}]}]}",
		"{phases: [{name: a, compute: 1ms}, {compute: 2ms, after: [start]}, {after: [a], collective: all-reduce, size: 1MB, over: all}]}",
		"{placement: h1..h4, phases: [{collective: all-reduce, size: 1MB}]}", "{placement: l1, phases: [{collective: all-reduce, size: 1MB}]}",
	} {
		if _, err := jobSetting(t, "  - "+text+"\n"); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// TestWorkloadLimits: each number of a workload has limits, and an error names the line and the
// value.
func TestWorkloadLimits(t *testing.T) {
	const layer = "\n1\na -1 1 NONE 0 1 NONE 0 1 ALLREDUCE 100 1\n"
	two := func(header string) string {
		return header + "\n2\na -1 1 NONE 0 1 NONE 0 1 ALLREDUCE 100 1\nb -1 1 NONE 0 1 NONE 0 1 ALLREDUCE 100 1\n"
	}
	for text, want := range map[string]string{
		"MICRO model_parallel_NPU_group: 2.0" + layer:           "",
		"MICRO pp: 2147483647" + layer:                          "",
		"MICRO pp: 2147483648" + layer:                          "w:1: pp 2147483648: want a whole number",
		"MICRO vpp: 0 ga: 0 pp_comm: 5" + layer:                 "",
		"MICRO ep: 0" + layer:                                   "w:1: ep 0: want 1 or more",
		"MICRO expert_parallel_npu_group: 1" + layer:            "",
		"MICRO all_gpus: 4 pp" + layer:                          "w:1: pp: the number is missing",
		"MICRO all_gpus: 8" + layer:                             "",
		"MICRO all_gpus: 9" + layer:                             "w:1: all_gpus 9: the topology has 8 hosts: want ranks: to run it with fewer",
		two("MICRO checkpoints: 2 0 1"):                         "",
		two("MICRO checkpoints: 0 pp: 1"):                       "",
		two("HYBRID_TRANSFORMER checkpoints: 2 0"):              "w:1: checkpoints 2: want as many layers after it",
		two("HYBRID_TRANSFORMER checkpoints: 3 0"):              "w:1: checkpoints 3: want as many layers after it",
		two("HYBRID_TRANSFORMER checkpoints: 1"):                "w:1: checkpoints 1: want as many layers after it",
		two("HYBRID_TRANSFORMER checkpoints: 1 2"):              "w:1: checkpoint layer 2: want 0 to 1",
		two("HYBRID_TRANSFORMER checkpoints: 1 -1"):             `w:1: checkpoints: layer "-1": want a number from 0`,
		two("HYBRID_TRANSFORMER checkpoint_initiates: 1 x"):     `w:1: checkpoint_initiates: layer "x": want a number from 0`,
		two("HYBRID_TRANSFORMER checkpoint_initiates: 1 1"):     "w:1: checkpoint_initiates 1: there is no checkpoint at or below this layer",
		two("MICRO checkpoints: 1 1 checkpoint_initiates: 1 0"): "w:1: checkpoint_initiates 0: there is no checkpoint at or below this layer",
		two("MICRO checkpoints: 1 1 checkpoint_initiates: 1 1"): "",
		"MICRO\n0\n":   `w:2: "0": want the number of layers`,
		"MICRO\n1 2\n": `w:2: "1 2": want the number of layers`,
		"MICRO\n-1\n":  `w:2: "-1": want the number of layers`,
		"MICRO\n\n\n1\n\na -1 1 NONE 0 1 NONE 0 1 ALLREDUCE 100 1\n\n":              "",
		"MICRO\n2\na -1 1 NONE 0 1 NONE 0 1 ALLREDUCE 100 1\n":                      "w:2: 2 layers: the file has 1",
		"MICRO\n1\na x 1 NONE 0 1 NONE 0 1 ALLREDUCE 100 1\n":                       `w:3: dependency "x": want a number`,
		"MICRO\n1\na -1 1 NONE 0 1 NONE 0 1 ALLREDUCE 100 x\n":                      `w:3: update time: "x": want nanoseconds, 0 to 1000000000000000`,
		"MICRO\n1\na -1 1000000000000000 NONE 0 1 NONE 0 1 ALLREDUCE 100 1\n":       "",
		"MICRO\n1\na -1 1 NONE 0 1 NONE 0 1000000000000001 ALLREDUCE 100 1\n":       `w:3: computation: "1000000000000001": want nanoseconds, 0 to 1000000000000000`,
		"MICRO\n1\na -1 -1 NONE 0 1 NONE 0 1 ALLREDUCE 100 1\n":                     `w:3: computation: "-1": want nanoseconds`,
		"MICRO\n1\na -1 1 NONE 0 1 NONE 0 1 ALLREDUCE 1.5 1\n":                      `w:3: bytes "1.5": want a whole number`,
		"MICRO\n1\na -1 1 NONE x 1 NONE 0 1 ALLREDUCE 5 1\n":                        `w:3: bytes "x": want a whole number`,
		"MICRO\n1\na -1 1 none 0 1 NONE 0 1 ALLREDUCE 5 1\n":                        "w:3: collective none: want NONE",
		"MICRO\n1\na -1 1 NONE 0 1 NONE 0 1 ALLREDUCE_ 5 1\n":                       "w:3: collective ALLREDUCE_: want NONE",
		"MICRO\n1\na -1 1 NONE 0 1 NONE 0 1 ALLREDUCE 0 1\n":                        "w: no collective has bytes for 8 ranks",
		"MICRO\n1\na -1 1 NONE 0 1 NONE 0 1 ALLREDUCE 100 1 1\n":                    "w:3: 13 columns: want 12",
		"HYBRID_TRANSFORMER model_parallel_NPU_group: 8 ep: 2" + layer:              "w:1: ep 2 of 1 data-parallel groups (8 ranks): want a divisor",
		"HYBRID_TRANSFORMER model_parallel_NPU_group: 16" + layer:                   "w:1: model_parallel_NPU_group 16 of 8 ranks: want a divisor",
		"MICRO " + strings.Repeat("pp: 1 ", 1000) + layer:                           "",
		"HYBRID_TRANSFORMER model_parallel_NPU_group: 1 ep: 8 " + layer + "\n":      "",
		"MICRO\n1\na -1 1 NONE 0 1 NONE 0 1 BROADCAST 1 1\n":                        "",
		"MICRO\n1\na -1 1 NONE 0 1 NONE 0 1 ALLREDUCE 9223372036854775808 1\n":      `w:3: bytes "9223372036854775808": want a whole number`,
		"HYBRID_TRANSFORMER model_parallel_NPU_group: 0 all_gpus: 4" + layer:        "w: no collective has bytes for 4 ranks", // one tensor-parallel group of all
		"HYBRID_TRANSFORMER model_parallel_NPU_group: 2 all_gpus: 4 pp: 2" + layer:  "",
		"HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 1 ga: 2" + layer: "",
	} {
		tr := &Traffic{Pattern: List, File: "w"}
		_, err := tr.readList(hosts(t, 8), from(map[string]string{"w": text}))
		if want == "" && err != nil || want != "" && (err == nil || !strings.HasPrefix(err.Error(), want)) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	tr := &Traffic{Pattern: List, File: "w", Ranks: 9}
	if _, err := tr.readList(hosts(t, 8), from(map[string]string{"w": "MICRO" + layer})); err == nil || err.Error() != "ranks 9: the topology has 8 hosts" {
		t.Error(err)
	}
	tr.Ranks = 8
	if _, err := tr.readList(hosts(t, 8), from(map[string]string{"w": "MICRO all_gpus: 64" + layer})); err != nil {
		t.Errorf("fewer ranks than the file has: %v", err)
	}
}

// TestFaultAtTheEnd: a fault may begin when the run ends, at duration and drain together, and not
// later. The faults of an experiment are limited, with their repetitions.
func TestFaultAtTheEnd(t *testing.T) {
	load := func(faults string) error {
		_, err := Load("x.yaml", []byte("topology: {leaf-spine: {leaves: 2, spines: 2, hosts: 2, rate: 1G}}\nschemes: [ecmp]\nduration: 3ms\ndrain: 4ms\nfaults: ["+faults+"]\n"), nil, nil)
		return err
	}
	const one = "{at: %s, link: l1-s1, down: true}"
	if err := load(fmt.Sprintf(one, "7ms")); err != nil {
		t.Errorf("at the end: %v", err)
	}
	if err := load(fmt.Sprintf(one, "7001us")); err == nil || err.Error() != "x.yaml:5: faults[0]: at 7.001ms: the run ends after 7ms (duration and drain): want an earlier time" {
		t.Errorf("after the end: %v", err)
	}
	const many = "{at: 1us, until: 2us, every: 10us, times: %d, link: l1-s1, rate: 100M}"
	if err := load(fmt.Sprintf(many, maxFaults-1) + ", " + fmt.Sprintf(one, "1ms")); err != nil {
		t.Errorf("as many as allowed: %v", err)
	}
	if err := load(fmt.Sprintf(many, maxFaults) + ", " + fmt.Sprintf(one, "1ms")); err == nil || err.Error() != fmt.Sprintf("x.yaml:5: faults: %d of them: want %d at most", maxFaults+1, maxFaults) {
		t.Errorf("more than allowed: %v", err)
	}
}

// TestStartAtTheEnd: a listed flow may start when the run ends, and not later, unless it waits for
// another flow.
func TestStartAtTheEnd(t *testing.T) {
	s := &Setting{Duration: Time(3 * time.Millisecond), Drain: Time(4 * time.Millisecond)}
	for _, c := range []struct {
		f    Flow
		want string
	}{
		{Flow{Start: 7 * time.Millisecond}, ""},
		{Flow{Start: 7*time.Millisecond + 1}, "l: flow 2 starts at 7000.001us, and the run ends after 7ms (duration and drain): want a longer drain"},
		{Flow{Start: 8 * time.Millisecond, Waits: &Waits{After: []int32{0}}}, ""},
	} {
		tr := &Traffic{File: "l", flows: []Flow{{}, c.f}}
		if err := s.checkStarts(tr); c.want == "" && err != nil || c.want != "" && (err == nil || err.Error() != c.want) {
			t.Errorf("%+v: %v, want %q", c.f, err, c.want)
		}
	}
}

// TestLinkChanges: a change of a link sets the keys that it has, on the links that it names, and
// leaves all others. A link that is down stays down.
func TestLinkChanges(t *testing.T) {
	const base = "topology: {leaf-spine: {leaves: 2, spines: 2, hosts: 1, rate: 1G, host-rate: 2G, delay: 5us, host-delay: 7us, queue: 30}}\nschemes: [ecmp]\nduration: 1ms\n"
	links := func(text string) []string {
		x, err := Load("x.yaml", []byte(base+text+"\n"), nil, nil)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		topo, err := x.Cases[0].Network(NoFiles)
		if err != nil {
			t.Fatal(err)
		}
		return lists.Map(topo.Links, func(l fabric.Link) string {
			return fmt.Sprint(l.A.Node, "-", l.B.Node, " ", l.Rate, " ", l.Delay, " ", l.Queue, " ", l.Down)
		})
	}
	plain := links("")
	for text, want := range map[string][]string{
		"links: [{link: l1-s1, rate: 3G}]":                            {"l1-s1 3Gbps 5µs 30 false"},
		"links: [{link: l1-s1, delay: 9us}]":                          {"l1-s1 1Gbps 9µs 30 false"},
		"links: [{link: l1-s1, queue: 1}]":                            {"l1-s1 1Gbps 5µs 1 false"},
		"links: [{link: l1-s1, down: true}]":                          {"l1-s1 1Gbps 5µs 30 true"},
		"links: [{link: l1-s1, down: true}, {link: l1-s1, queue: 4}]": {"l1-s1 1Gbps 5µs 4 true"},
		"links: [{link: s2, rate: 3G, delay: 9us, queue: 4}]":         {"l1-s2 3Gbps 9µs 4 false", "l2-s2 3Gbps 9µs 4 false"},
		"links: [{link: s2, rate: 3G}, {link: l2-s2, rate: 4G}]":      {"l1-s2 3Gbps 5µs 30 false", "l2-s2 4Gbps 5µs 30 false"},
		"fail: [l2-s1]":        {"l2-s1 1Gbps 5µs 30 true"},
		"fail: [l2-s1, l1-s2]": {"l1-s2 1Gbps 5µs 30 true", "l2-s1 1Gbps 5µs 30 true"},
		"fail: [l2-s1]\nlinks: [{link: l2-s1, rate: 3G}]":                      {"l2-s1 3Gbps 5µs 30 true"},
		"switches: {queue: 1}":                                                 nil,
		"switches: {queue: 77}\nlinks: [{link: l1-s1, queue: 5, delay: 11us}]": nil,
	} {
		got := links(text)
		if want == nil { // the queues of all links
			n := "77 false"
			if strings.Contains(text, "queue: 1}") {
				n = "1 false"
			}
			for i, l := range got {
				if other := strings.HasPrefix(l, "l1-s1") && n == "77 false"; other && l != "l1-s1 1Gbps 11µs 5 false" || !other && (!strings.HasSuffix(l, " "+n) || l[:9] != plain[i][:9]) {
					t.Errorf("%s: %s", text, l)
				}
			}
			continue
		}
		var changed []string
		for i, l := range got {
			if l != plain[i] {
				changed = append(changed, l)
			}
		}
		if slices.Sort(changed); !slices.Equal(changed, want) {
			t.Errorf("%s: %q, want %q", text, changed, want)
		}
	}
}

// TestAdvisedOn: the formulas of the papers see the queues and marks of the case where it sets
// them, and otherwise the queues of its network.
func TestAdvisedOn(t *testing.T) {
	for _, c := range []struct {
		queue, text      string
		buffer, ecn, mtu int
	}{
		{", queue: 40", "", 40, 0, 0}, {"", "", usualQueue, 0, 0}, {", queue: 40", "switches: {queue: 1}", 1, 0, 0}, {", queue: 40", "switches: {queue: 90}\nmtu: 9000", 90, 0, 9000},
		{", queue: 40", "transport: dctcp\nswitches: {ecn: 40}", 40, 40, 0}, {", queue: 40", "transport: dctcp\nswitches: {ecn: 41}", 40, 0, 0}, {", queue: 40", "transport: dctcp\nswitches: {ecn: 1}", 40, 1, 0},
		{", queue: 40", "transport: dctcp\nswitches: {ecn: none}", 40, 0, 0},
	} {
		x, err := Load("x.yaml", []byte("topology: {leaf-spine: {leaves: 2, spines: 2, hosts: 2, rate: 1G"+c.queue+"}}\nschemes: [ecmp]\nduration: 1ms\n"+c.text+"\n"), nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		topo, err := x.Cases[0].Topology.make(NoFiles)
		if err != nil {
			t.Fatal(err)
		}
		n, err := x.Cases[0].advisedOn(topo)
		if err != nil || n.Buffer != c.buffer || n.ECN != c.ecn || n.MTU != c.mtu {
			t.Errorf("%s, %s: buffer %d, ECN %d, MTU %d, %v; want %d, %d, %d", c.queue, c.text, n.Buffer, n.ECN, n.MTU, err, c.buffer, c.ecn, c.mtu)
		}
	}
}

// TestFormRoom: all lists of a form share the room for items.
func TestFormRoom(t *testing.T) {
	var a, b []int64
	f := &formReader{room: 48}
	read := func(list *[]int64, n int) error {
		return f.leaf(reflect.ValueOf(list).Elem(), fmt.Sprintf("%d items", n))
	}
	if err := read(&a, 7); err == nil || !strings.Contains(err.Error(), `"7 items": all items would take more than 256 MiB`) || a != nil || f.room != 48 {
		t.Errorf("%v, %d items, room %d", err, len(a), f.room)
	}
	if err := read(&a, 4); err != nil || len(a) != 4 || f.room != 16 {
		t.Errorf("%v, %d items, room %d", err, len(a), f.room)
	}
	if err := read(&b, 3); err == nil {
		t.Error("more items than the room is for")
	}
	if err := read(&b, 2); err != nil || len(b) != 2 || f.room != 0 {
		t.Errorf("%v, %d items, room %d", err, len(b), f.room)
	}
	for _, text := range []string{"-1 items", "x items", "1.5 items"} {
		if err := f.leaf(reflect.ValueOf(&a).Elem(), text); err == nil || err.Error() != fmt.Sprintf("%q: want a number of items", text) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// TestHeaderBytes: the headers of a transport have at least the bytes of Ethernet, IP and UDP, and
// no more than the simulator's packets have room for.
func TestHeaderBytes(t *testing.T) {
	for _, key := range []string{"headers", "answer"} {
		for bytes, good := range map[int]bool{1: false, 41: false, 42: true, sim.MostHeaders: true, sim.MostHeaders + 1: false} {
			_, err := Load("x.yaml", []byte(fmt.Sprintf("topology: {leaf-spine: {leaves: 2, spines: 2, hosts: 2, rate: 1G}}\nschemes: [ecmp]\nduration: 1ms\ntransport: {kind: dcqcn, rdma: {%s: %d}}\n", key, bytes)), nil, nil)
			if want := fmt.Sprintf("x.yaml:4: transport: rdma: %s of %v: want 42 bytes, ", key, Size(bytes)); good && err != nil || !good && (err == nil || !strings.HasPrefix(err.Error(), want) || !strings.HasSuffix(err.Error(), fmt.Sprint(" to ", sim.MostHeaders))) {
				t.Errorf("%s %d: %v, want %s", key, bytes, err, want)
			}
		}
	}
}

// TestCollectiveTypes: a Chakra trace may contain the collectives that p4lb makes. The message about
// another one has its name, or its number if Chakra has none.
func TestCollectiveTypes(t *testing.T) {
	for kind, want := range map[int]string{
		0: "", 1: "REDUCE, which has a root that traces do not state", 2: "", 3: "GATHER, which", 4: "SCATTER, which", 5: "", 6: "", 7: "", 8: "", 9: "", 10: "10", 11: "11", 32767: "32767",
	} {
		node := map[string]any{"comm_type": kind, "comm_size": 100}
		text := string(newTrace().node(1, etColl, nil, node).b)
		tr := &Traffic{Pattern: List, File: "t.*.et"}
		_, err := tr.readList(hosts(t, 2), from(map[string]string{"t.0.et": text, "t.1.et": text}))
		if want == "" && err != nil || want != "" && (err == nil || !strings.HasPrefix(err.Error(), "t.0.et: message 1, node 1: comm_type "+want) || !strings.HasSuffix(err.Error(), ": want ALL_REDUCE, ALL_GATHER, REDUCE_SCATTER, ALL_TO_ALL, BROADCAST or BARRIER")) {
			t.Errorf("type %d: %v, want %q", kind, err, want)
		}
	}
}

// TestBroadcastPhase: in a workload, the first rank of a broadcast goes on when the messages of all
// its chunks have arrived.
func TestBroadcastPhase(t *testing.T) {
	tr := &Traffic{Pattern: List, File: "w", Chunks: 2}
	text := "MICRO\n2\na -1 1 NONE 0 1 NONE 0 1 ALLREDUCE 4000 1\nb -1 1 NONE 0 1 NONE 0 1 BROADCAST 100 1\n"
	flows, err := tr.readList(hosts(t, 4), from(map[string]string{"w": text}))
	if err != nil {
		t.Fatal(err)
	}
	var sent []int32
	for i, f := range flows {
		if !f.Compute && f.Bytes == 50 && f.Src == 0 {
			sent = append(sent, int32(i))
		}
	}
	if len(sent) != 2 {
		t.Fatalf("the first rank sends the messages %v, want one for each of two chunks", sent)
	}
	waits := func(f Flow) bool {
		return f.Compute && f.Src == 0 && f.Waits != nil && !slices.ContainsFunc(sent, func(i int32) bool { return !slices.Contains(f.Waits.After, i) })
	}
	if !slices.ContainsFunc(flows, waits) {
		t.Errorf("no step of the first rank waits for the messages %v", sent)
	}
}

// TestDefaultMetrics: an experiment with a job, or with a case that has one, shows the metrics of jobs,
// unless it names others.
func TestDefaultMetrics(t *testing.T) {
	const job = "jobs: [{ranks: 2, phases: [{collective: all-reduce, size: 1MB}]}]"
	for text, want := range map[string]string{
		job: strings.Join(jobMetrics, " "), "cases: [{name: a}, {name: b, " + job + "}]": strings.Join(jobMetrics, " "), "metrics: [fct-mean]\n" + job: "fct-mean",
		"transport: udp": strings.Join(defaultMetrics("udp", "short", false), " "), "": strings.Join(defaultMetrics("tcp", "short", false), " "),
	} {
		x, err := Load("x.yaml", []byte("topology: {leaf-spine: {leaves: 2, spines: 2, hosts: 4, rate: 1G}}\nschemes: [ecmp]\nduration: 1ms\n"+text+"\n"), nil, nil)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got := strings.Join(x.Metrics, " "); got != want || x.MetricsAsked != strings.Contains(text, "metrics:") {
			t.Errorf("%s: %s, asked %v; want %s", text, got, x.MetricsAsked, want)
		}
	}
}
