package lab

import (
	"bytes"
	"strings"
	"testing"

	"github.com/p4lb/p4lb/internal/lab/spec"
)

// inParts is an experiment with runs that may use several cores.
const inParts = `name: parts
topology: {leaf-spine: {leaves: 4, spines: 2, hosts: 4, rate: 10G, host-rate: 10G, delay: 2us, host-delay: 1us}}
ties: place
seeds: 2
loads: [0.7]
duration: 1ms
transport: dctcp
switches: {ecn: 65}
traffic: [{workload: websearch, load-of: fabric}]
faults: [{at: 300us, until: 600us, link: l1-s1, rate: 2G}]
`

// TestCoresWithinARun: a run has the same result and the same rows of flows and links on
// one core, two and four, with programs and with models, under the same key.
func TestCoresWithinARun(t *testing.T) {
	for i, more := range []string{
		"engine: p4\nschemes: [ecmp, drill, qall-poly3]\n",
		"engine: native\nschemes: [letflow, hula, qdaps, pdlb]\n",
		"engine: native\nschemes: [drill+rlb, dhlb]\ncontrol: {pfc: true}\n",
	} {
		cores := []int{1, 2, 4}
		if testing.Short() { // under the race detector each window takes long
			if i > 0 {
				continue
			}
			more, cores = "engine: p4\nschemes: [drill]\n", cores[:2]
		}
		if strings.Contains(more, "control:") {
			more = strings.Replace(more, "control: {pfc: true}\n", "", 1)
			more = "transport: {kind: dcqcn}\nswitches: {pfc: true, ecn-min: 15KB, ecn-max: 60KB, ecn-p: 0.2}\n" + more
		}
		text := inParts
		for _, line := range strings.SplitAfter(more, "\n") {
			if key, _, ok := strings.Cut(line, ":"); ok && strings.Contains(text, "\n"+key+":") {
				text = withoutLine(text, key)
			}
		}
		x := load(t, text+more)
		var want []string
		for _, n := range cores {
			r := &Runner{Within: n}
			jobs, err := r.Jobs(x)
			if err != nil {
				t.Fatal(err)
			}
			for i, j := range jobs {
				var flows, links bytes.Buffer
				result, err := j.run(t.Context(), &flows, &links, nil)
				if err != nil {
					t.Fatal(err)
				}
				got := j.Key() + "\n" + written(t, result) + flows.String() + links.String()
				if n == 1 {
					want = append(want, got)
				} else if got != want[i] {
					t.Errorf("%s on %d cores comes to something else", j.Name(), n)
				}
			}
		}
	}
}

// withoutLine is a text without the line of a key.
func withoutLine(text, key string) string {
	before, after, _ := strings.Cut(text, "\n"+key+":")
	_, after, _ = strings.Cut(after, "\n")
	return before + "\n" + after
}

// TestCoresWithinARunAreRefused: runs without ties: place use one core, and knowledge
// of queues in other parts of the network is refused.
func TestCoresWithinARunAreRefused(t *testing.T) {
	x := load(t, strings.Replace(inParts, "ties: place\n", "", 1)+"schemes: [ecmp]\n")
	_, err := (&Runner{Within: 2}).Run(t.Context(), x)
	if err == nil || !strings.Contains(err.Error(), "want ties: place") {
		t.Errorf("on two cores: %v", err)
	}
	text := withoutLine(inParts, "switches") + "schemes: [drill]\nengine: native\nswitches: {knowledge: everywhere}\n"
	if _, err := spec.Load("exp.yaml", []byte(text), nil, nil); err == nil || !strings.Contains(err.Error(), "want planned") {
		t.Errorf("knowing other switches at once: %v", err)
	}
}

// TestCoresChosen splits runs over idle cores. 288 NICs of 40 Gb/s at load 0.7 send 1,300
// packets of 1.5 KB in 2 us, 8 NICs of 1 Gb/s less than one.
func TestCoresChosen(t *testing.T) {
	large := "topology: {leaf-spine: {leaves: 12, spines: 2, hosts: 24, rate: 40G, host-rate: 40G, delay: 2us}}\n"
	small := "topology: {leaf-spine: {leaves: 4, spines: 2, hosts: 2, rate: 1G, host-rate: 1G, delay: 2us}}\n"
	for _, c := range []struct {
		name, text  string
		cores, want int
	}{
		{"one run", large + "ties: place\nseeds: 1\n", 2, 2},
		{"one run on eight cores", large + "ties: place\nseeds: 1\n", 8, 8},
		{"as many runs as cores", large + "ties: place\nseeds: 2\n", 2, 0},
		{"three runs on eight cores", large + "ties: place\nseeds: 3\n", 8, 2},
		{"a small network", small + "ties: place\nseeds: 1\n", 2, 0},
		{"ties as planned", large + "seeds: 1\n", 2, 0},
	} {
		r := &Runner{Cores: c.cores}
		jobs, err := r.prepare(load(t, "name: chosen\nschemes: [ecmp]\nengine: native\ntraffic: [{workload: websearch}]\nloads: [0.7]\n"+c.text))
		if err != nil {
			t.Fatal(c.name, err)
		}
		if r.Within != c.want || jobs[0].cores != c.want {
			t.Errorf("%s: %d cores for each run, want %d", c.name, r.Within, c.want)
		}
	}
}
