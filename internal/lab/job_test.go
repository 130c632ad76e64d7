package lab

import (
	"fmt"
	"math"
	"strings"
	"testing"
)

const jobTest = `
name: jobs
topology: {leaf-spine: {leaves: 2, spines: 2, hosts: 4, rate: 100G, host-rate: 100G, delay: 500ns, host-delay: 500ns, queue: 100}}
schemes: [rps]
transport: {kind: dcqcn, rdma: {nack: selective}}
mtu: 4160
seeds: 1
jobs:
%s`

// alone returns the time in ms that a message of some bytes takes between two hosts of a
// leaf with nothing else in the network. Packets carry 4,116 bytes of payload behind 58
// of headers (Ethernet, IP, UDP, BTH and ICRC). Two links have 100 Gbit/s and 500 ns.
func alone(bytes float64) float64 {
	const payload, headers, rate, delay = 4116, 58, 100e9 / 8, 500e-9
	packets := math.Ceil(bytes / payload)
	last := bytes - (packets-1)*payload + headers
	return ((bytes+packets*headers)/rate + last/rate + 2*delay) * 1e3
}

// measuredJob runs an experiment with jobs with both engines, which must agree, and
// returns its metrics.
func measuredJob(t *testing.T, jobs string) map[string]float64 {
	t.Helper()
	var before map[string]float64
	for _, engine := range []string{"p4", "native"} {
		m := run(t, &Runner{}, load(t, fmt.Sprintf(jobTest, jobs)+"engine: "+engine+"\n")).Rows[0].Runs[0].Metrics
		for name, v := range before {
			if m[name] != v {
				t.Errorf("%s: %g with models, %g with programs", name, m[name], v)
			}
		}
		before = m
	}
	return before
}

// atMost checks that a metric is at least a value, and larger by at most a fraction.
func atMost(t *testing.T, m map[string]float64, name string, want, share float64) {
	t.Helper()
	if got, ok := m[name]; !ok || got < want*(1-1e-6) || got > want*(1+share) {
		t.Errorf("%s: %.5f, want %.5f and up to %g %% more", name, got, want, 100*share)
	}
}

// TestJobData: n ranks that compute for C and pass S bytes around a ring take
// C + 2(n-1) messages of S/n in each iteration, and all but C is exposed.
func TestJobData(t *testing.T) {
	m := measuredJob(t, `  - name: train
    start: 30us
    placement: [l1]
    iterations: 3
    phases:
      - {compute: 200us}
      - {collective: all-reduce, size: 4MB}
`)
	ring := 6 * alone(1e6)
	atMost(t, m, "iteration-time", 0.2+ring, 0.01)
	atMost(t, m, "iteration-time:train", 0.2+ring, 0.01)
	atMost(t, m, "iteration-ratio", 1, 0.01)
	atMost(t, m, "step-time", ring, 0.011)
	atMost(t, m, "exposed-communication", ring, 0.011)
	atMost(t, m, "exposed-ratio", 1, 0.011)
}

// TestJobOverlap: communication that overlaps with a longer computation is not exposed.
func TestJobOverlap(t *testing.T) {
	m := measuredJob(t, `  - placement: [l1]
    iterations: 2
    phases:
      - {name: late, compute: 1ms}
      - {name: gradients, after: [late], collective: all-reduce, size: 4MB}
      - {name: early, after: [late], compute: 700us}
`)
	atMost(t, m, "iteration-time", 1.7, 0)
	atMost(t, m, "iteration-ratio", 1, 0)
	atMost(t, m, "exposed-communication", 0, 0)
	if v, ok := m["exposed-ratio"]; ok {
		t.Errorf("exposed-ratio %g: want none", v)
	}
}

// TestJobPipeline: M microbatches pass P stages in (P-1)(T+m) + M·T, if a message takes
// m < T; and back in the other direction. Each stage is exposed for the rest of the time
// from its start to its end.
func TestJobPipeline(t *testing.T) {
	m := measuredJob(t, `  - placement: [l1]
    pipeline: 4
    microbatches: 6
    iterations: 2
    phases:
      - {pipeline: forward, size: 500KB, phases: [{compute: 100us}]}
      - {pipeline: backward, size: 500KB, phases: [{compute: 200us}]}
`)
	message := alone(500e3)
	// The last stage turns around at once; then the first stage waits for it.
	want := 3*(0.1+message) + 6*0.1 + 3*(0.2+message) + 6*0.2
	atMost(t, m, "iteration-time", want, 0.01)
	atMost(t, m, "iteration-ratio", 1, 0.01)
	atMost(t, m, "step-time", message, 0.012)
}

// TestJobAlternates: in 1f1b with two stages, the second stage waits two messages for its
// third microbatch: the first stage goes back once before it sends it. The total is
// m + 5 (F + B) + 3 m by hand, for four microbatches that take F forward, B backward and
// m < F between the stages.
func TestJobAlternates(t *testing.T) {
	m := measuredJob(t, `  - placement: [l1]
    pipeline: 2
    microbatches: 4
    phases: [{pipeline: 1f1b, size: 500KB, phases: [{compute: 100us}], backward: [{compute: 200us}]}]
`)
	message := alone(500e3)
	atMost(t, m, "iteration-time", 5*0.3+4*message, 0.01)
	atMost(t, m, "iteration-ratio", 1, 0.01)
	// Without messages, both ways take the time of all microbatches and a pass of the pipeline.
	m = measuredJob(t, `  - placement: [l1]
    pipeline: 4
    microbatches: 8
    phases: [{pipeline: 1f1b, size: 1B, phases: [{compute: 100us}], backward: [{compute: 200us}]}]
`)
	atMost(t, m, "iteration-time", (8+4-1)*0.3, 0.02)
}

// TestJobExperts: an all-to-all without a window takes the time of n-1 shares on the
// link of a host, at least.
func TestJobExperts(t *testing.T) {
	m := measuredJob(t, `  - placement: [l1]
    expert: 4
    phases:
      - {compute: 10us}
      - {collective: all-to-all, over: expert, size: 4MB}
      - {compute: 10us}
`)
	atMost(t, m, "iteration-time", 0.02+3*(alone(1e6)-0.001), 0.03)
	atMost(t, m, "iteration-ratio", 1, 0.03)
}

// TestJobsShareFabric: two jobs that cross the same links are slower than alone, and
// each has its metrics.
func TestJobsShareFabric(t *testing.T) {
	leftToPlainRun(t)
	one := `  - {name: a, placement: [h1, h5, h2, h6], iterations: 2, phases: [{compute: 20us}, {collective: all-reduce, size: 4MB}]}
`
	two := one + `  - {name: b, start: 10us, placement: [h3, h7, h4, h8], iterations: 2, phases: [{compute: 20us}, {collective: all-reduce, size: 4MB}]}
`
	alone, both := measuredJob(t, one), measuredJob(t, two)
	if a, b := alone["iteration-time:a"], both["iteration-time:a"]; b < a*1.2 {
		t.Errorf("job a takes %.4f ms alone and %.4f beside b: want a fifth more", a, b)
	}
	if got, want := both["iteration-time"], (both["iteration-time:a"]+both["iteration-time:b"])/2; !(math.Abs(got-want) <= 1e-9) {
		t.Errorf("iteration-time %g: want the mean of the jobs, %g", got, want)
	}
}

// TestJobFolder: results of jobs have columns for each job.
func TestJobFolder(t *testing.T) {
	x := load(t, fmt.Sprintf(jobTest, `  - {name: a, placement: [l1], phases: [{collective: all-reduce, size: 1MB}]}
  - {name: b, ranks: 4, phases: [{collective: all-gather, size: 1MB}]}
`)+"metrics: ['iteration-time:b', step-ratio]\nengine: native\nexpect: ['iteration-time:a < 1']\n")
	c := run(t, &Runner{}, x)
	if csv := string(c.csv()); !strings.Contains(csv, "iteration-time:a,ms") || !strings.Contains(csv, "exposed-communication:b,ms") {
		t.Errorf("table:\n%s", csv)
	}
	if head := strings.Join(c.Table()[0], " "); !strings.Contains(head, "iteration-time:b (ms)") {
		t.Errorf("columns %s", head)
	}
}
