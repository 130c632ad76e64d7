package lab

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/p4lb/p4lb/internal/lab/spec"
)

// recordedRuns cover both engines, the transports, PFC, a fault, probes and a
// program for Tofino.
const recordedRuns = `
name: recorded
topology: {leaf-spine: {leaves: 2, spines: 2, hosts: 2, rate: 200Mbps}}
schemes:
  - qall-poly3
  - {scheme: conga, engine: native}
  - {scheme: drill, arch: tna}
  - dhlb
traffic: [{workload: webserver, pattern: all-to-all, load-of: hosts, cut: none}]
loads: [0.6]
seeds: 1
duration: 4ms
parameters: default
cases:
  - {name: tcp}
  - {name: dctcp, transport: dctcp, switches: {ecn: 20}, faults: [{at: 1ms, until: 2ms, link: l1-s1, down: true}]}
  - {name: rdma, transport: dcqcn, switches: {ecn: 20, pfc: true}, schemes: [qall-poly3, conga]}
`

const recordedFile = "testdata/result-version.txt"

// TestResultVersion fails if a run has other bytes than recorded and ResultVersion is the
// same, because stores would return outdated results.
func TestResultVersion(t *testing.T) {
	leftToPlainRun(t)
	x := loadSweep(t, recordedRuns)
	jobs, err := (&Runner{}).Jobs(x)
	if err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	fmt.Fprintf(&got, "result version %d\n", resultVersion)
	for _, j := range jobs {
		flows, links := sha256.New(), sha256.New()
		r, err := j.run(t.Context(), flows, links, nil)
		if err != nil {
			t.Fatalf("%s: %v", j.Name(), err)
		}
		r.Spec, r.Programs = "", nil // programs have a key of their own
		text, err := storedForm(r)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&got, "%s %.8x %.8x %.8x\n", j.Name(), sha256.Sum256(text), flows.Sum(nil), links.Sum(nil))
	}
	text, err := os.ReadFile(recordedFile)
	if err != nil && !*update {
		t.Fatal(err)
	}
	want := string(text)
	head, _, _ := strings.Cut(want, "\n")
	same := head == fmt.Sprintf("result version %d", resultVersion)
	switch {
	case got.String() == want:
	case same:
		t.Errorf("runs come to other results: raise ResultVersion, then run this test with -update\n%s\nwant\n%s", got.String(), want)
	case *update:
		if err := os.WriteFile(recordedFile, []byte(got.String()), 0o666); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("%s is of another version: run this test with -update", recordedFile)
	}
}

// TestKey: the key contains everything that affects a run and nothing else, and is the
// same on every machine.
func TestKey(t *testing.T) {
	key := func(text string) string {
		t.Helper()
		k, err := described(loadSweep(t, text))
		if err != nil {
			t.Fatal(err)
		}
		return k.Runs[0].Key
	}
	base := key(smallSweep)
	with := func(old, new string) string { return strings.Replace(smallSweep, old, new, 1) }
	for _, same := range []string{
		with("name: sweep", "name: other\nabout: something else"),
		with("ecmp,", "{scheme: ecmp, label: mine},"),
		with("seeds: 2", "seeds: [1, 7]"),
		with("duration: 5ms", "duration: 5ms\nmetrics: [fct-p99]"),
		with("duration: 5ms", "duration: 5ms\nwarmup: 5%\ntransport: tcp"), // the defaults
		with("duration: 5ms", "duration: 5ms\nswitches: {control: balanced}"),
		with("duration: 5ms", "duration: 0.005s"),
		with("[0.4, 0.6]", "[40%]"),
	} {
		if key(same) != base {
			t.Errorf("another key for what is the same:\n%s", same)
		}
	}
	for _, other := range []string{
		with("duration: 5ms", "duration: 6ms"),
		with("duration: 5ms", "duration: 5ms\ndrain: 1s"),
		with("duration: 5ms", "duration: 5ms\ntransport: dctcp"),
		with("duration: 5ms", "duration: 5ms\nswitches: {ecn: 10}"),
		with("duration: 5ms", "duration: 5ms\nswitches: {pfc: false}\nfaults: [{at: 1ms, switch: s1, drop: 0.1}]"),
		with("duration: 5ms", "duration: 5ms\nclasses: [{name: short}]"),
		with("duration: 5ms", "duration: 5ms\ninterval: 1ms"),
		with("rate: 100Mbps", "rate: 100001kbps"),
		with("workload: webserver", "workload: websearch"),
		with("cut: none", "cut: 1MB"),
		with("[ecmp,", "[{scheme: ecmp, engine: native},"),
		with("[ecmp,", "[letflow,"),
		with("[ecmp,", "[{scheme: letflow, set: {gap: 300us}},"),
		with("seeds: 2", "seeds: [2]"),
		with("[0.4, 0.6]", "[0.40001]"),
	} {
		if key(other) == base {
			t.Errorf("the same key for what is another run:\n%s", other)
		}
	}
	// The inputs of keys except programs: a change here changes the keys of all stores.
	jobs, err := (&Runner{}).Jobs(loadSweep(t, smallSweep))
	if err != nil {
		t.Fatal(err)
	}
	var form bytes.Buffer
	d := jobs[0].decisive()
	spec.WriteForm(&form, "", d)
	if form.String() != keyForm {
		t.Errorf("the form of a run is\n%s\nwant\n%s", form.String(), keyForm)
	}
	for _, f := range []string{"a=1", "topology=2 items\n", "schemes[7].scheme=\"x\"", "loads=99999999999 items", "duration=x", "set{=1"} {
		if err := spec.ReadForm([]byte(f+"\n"), new(spec.Experiment)); err == nil {
			t.Errorf("%s is a form", f)
		}
	}
}

const keyForm = `traffic=1 items
traffic[0].pattern="all-to-all"
transport.kind="tcp"
duration=5000000
warmup.share=0.05
drain=100000000
scheme.scheme="ecmp"
scheme.engine="p4"
classes=3 items
classes[0].name="short"
classes[0].upto=100000
classes[1].name="medium"
classes[1].upto=1000000
classes[2].name="long"
latency=100000
load=0.4
seed=1
`

// described returns an experiment in the stored form.
func described(x *spec.Experiment) (*Kept, error) {
	r := &Runner{}
	jobs, err := r.prepare(x)
	if err != nil {
		return nil, err
	}
	return r.describe(x, jobs), nil
}
