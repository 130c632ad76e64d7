package lab

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/p4lb/p4lb/internal/lab/spec"
)

const chosenText = `
name: chosen
engine: native
topology: {leaf-spine: {leaves: 2, spines: 3, hosts: 6, rate: 10G, host-rate: 10G, delay: 2us, host-delay: 1us, buffer: 1MiB}}
traffic: [{workload: websearch, cut: 300KB, pattern: all-to-all}]
loads: [0.8]
duration: 2ms
schemes: [drill]
`

const chosenRDMA = chosenText + "transport: {kind: dcqcn}\nswitches: {pfc: true, ecn-min: 15KB, ecn-max: 60KB, ecn-p: 0.2}\n"

// chosenTCP loses packets too.
const chosenTCP = chosenText + "transport: {kind: dctcp}\nswitches: {ecn: 20, queue: 30}\n"

// TestDefaults: the output of lab defaults is part of an experiment file, and the key
// like has the same effect.
func TestDefaults(t *testing.T) {
	for _, preset := range append([]string{""}, spec.Presets...) {
		text, err := spec.Defaults(preset)
		if err != nil {
			t.Fatal(err)
		}
		// The block switches: needs pauses and marks.
		in := strings.Replace(string(text), "switches:\n", "switches:\n  pfc: true\n  ecn-min: 15KB\n  ecn-max: 60KB\n", 1)
		written := load(t, chosenText+in)
		for i := range spec.Choices() {
			c := &spec.Choices()[i]
			if got := c.Of(&written.Cases[0].Setting); got != c.Like(preset) {
				t.Errorf("like %q: %s is %s, want %s", preset, c.Key, got, c.Like(preset))
			}
		}
		if preset == "" {
			continue
		}
		like := load(t, chosenRDMA+"like: "+preset+"\n")
		if a, b := like.Cases[0].Chosen(), written.Cases[0].Chosen(); !slices.Equal(a, b) {
			t.Errorf("like %q: %v, written out %v", preset, a, b)
		}
		if !slices.Contains(like.Cases[0].Nearest(), preset) {
			t.Errorf("like %q: the nearest are %v", preset, like.Cases[0].Nearest())
		}
	}
	if _, err := spec.Defaults("ns4"); err == nil || !strings.Contains(err.Error(), "ns4") {
		t.Errorf("like ns4: %v", err)
	}
}

// TestChoicesReachTheNetwork: every value of every choice runs, and each value other
// than the default changes the results.
func TestChoicesReachTheNetwork(t *testing.T) {
	leftToPlainRun(t)
	results := map[string]string{}
	result := func(text string) string { // by one run of each text
		if results[text] == "" {
			r := run(t, &Runner{}, load(t, text))
			results[text] = written(t, &Result{Metrics: r.Results[0].Metrics})
		}
		return results[text]
	}
	lossy := strings.NewReplacer("pfc: true", "pfc: false", "buffer: 1MiB", "buffer: 200KiB").Replace
	usual := map[string]string{"": result(chosenRDMA), "dcqcn": result(chosenRDMA), "tcp dctcp": result(chosenTCP), "dctcp": result(chosenTCP)}
	for i := range spec.Choices() {
		c := &spec.Choices()[i]
		values := c.Values
		if v := c.Like("ns3"); values == nil && v != c.Default {
			values = []string{v} // of a quantity
		}
		for _, v := range values {
			if c.Key == "switches.hash" {
				continue // DRILL has no use for it, its ACKs do with control: hashed
			}
			base := chosenRDMA
			if scheme, ok := map[string]string{"switches.flow-key": "letflow", "switches.conga-paths": "conga", "switches.overlay": "conga", "switches.conga-rates": "conga", "switches.conga-news": "conga"}[c.Key]; ok { // neither is DRILL's
				base = strings.Replace(base, "[drill]", "["+scheme+"]", 1)
			}
			if usual[c.Kind] == usual["dctcp"] {
				base = chosenTCP
			}
			text, want := "cases: [{"+inCase(c.Key, v)+"}]\n", usual[c.Kind]
			if !strings.Contains(base, "[drill]") {
				base += "like: ns3\n"
				want = result(base + "cases: [{" + inCase(c.Key, c.Default) + "}]\n")
			}
			if c.Key == "switches.queue-limit" { // with PFC only the buffer is limited
				base, text, want = lossy(base), lossy(text), result(lossy(base))
			}
			if c.Key == "switches.slow-links" { // of which there is none
				base += "links: [{link: s1, rate: 5G}]\n"
				want = result(base)
			}
			if c.Key == "transport.rdma.repeat" { // without selective Nacks nothing is kept
				selective := func(s string) string { return strings.Replace(s, "repeat: ", "nack: selective, repeat: ", 1) }
				text, want = selective(text), result(base+selective("cases: [{"+inCase(c.Key, c.Default)+"}]\n"))
			}
			if same := result(base+text) == want; same != (v == c.Default) {
				t.Errorf("%s: the same as by default: %t", text, same)
			}
		}
	}
}

// inCase writes a choice as part of a case, with the other keys of its block.
func inCase(key, value string) string {
	if name, ok := strings.CutPrefix(key, "switches."); ok {
		return "switches: {pfc: true, ecn-min: 15KB, ecn-max: 60KB, ecn-p: 0.2, " + name + ": " + value + "}"
	}
	if name, ok := strings.CutPrefix(key, "transport.rdma."); ok {
		return "transport: {kind: dcqcn, rdma: {" + name + ": " + value + "}}"
	}
	if name, ok := strings.CutPrefix(key, "transport."); ok {
		return "transport: {kind: dctcp, " + name + ": " + value + "}"
	}
	return key + ": " + value
}

// TestChoicesRefused: incompatible choices are refused before anything runs.
func TestChoicesRefused(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"like: ns4\n", `like: like "ns4": want one of ns3, ns2, htsim, hardware`},
		{"cases: [{" + inCase("switches.marking", "never") + "}]\n", `switches.marking: "never": want enqueue or dequeue`},
		{"engine: p4\nlike: ns3\n", `switches.control: drill runs a generated program, which cannot have "hashed": want engine native, or balanced`},
		{"schemes: [flowbender]\ncases: [{" + inCase("switches.control", "hashed") + "}]\n", "needs the congestion echo in acknowledgments"},
		{"cases: [{switches: {pfc-hysteresis: 2B, ecn: 5}}]\n", "without pfc nothing is paused"},
		{"cases: [{switches: {pfc: true, pfc-threshold: 1KB, pfc-hysteresis: 2KB}}]\n", "a port would not go on"},
		{"cases: [{switches: {queue-limit: free, queue: 30}}]\n", "queue-limit: free, and queue: 30 packets: want one of them"},
		{"cases: [{switches: {ecn: none, pfc: true, marking: dequeue}}]\n", "nothing is marked"},
		{"cases: [{ties: place, switches: {draws: ns3}}]\n", "place has no order in which switches draw from one sequence"},
		{"cases: [{transport: {kind: dcqcn, rdma: {nack: none, nack-as: notice}}}]\n", "there are no Nacks"},
		{"cases: [{transport: {kind: dcqcn, rdma: {nack: none, nack-every: 4us}}}]\n", "there are no Nacks"},
		{"cases: [{transport: {kind: dcqcn, rdma: {headers: 20B}}}]\n", "rdma: headers of 20: want 42 bytes, those of Ethernet, IP and UDP, to 128"},
		{"cases: [{transport: {kind: dcqcn, rdma: {answer: 1KB}}}]\n", "rdma: answer of 1KB: want"},
		{"cases: [{transport: {kind: tcp, rdma: {nack: any}}}]\n", "its constants are dcqcn's"},
		{"cases: [{transport: {kind: tcp, recovery: reno}}]\n", `transport.recovery: "reno": want sack or newreno`},
		{"cases: [{transport: {kind: tcp, recovery: newreno, max-dupacks: 300}}]\n", "cannot distinguish reordering from loss"},
	} {
		text := chosenRDMA + c.text
		for _, key := range []string{"schemes: [drill]\n", "engine: native\n"} {
			if name, _, _ := strings.Cut(key, ":"); strings.Contains(c.text, name+": ") {
				text = strings.Replace(text, key, "", 1)
			}
		}
		_, err := spec.Load("exp.yaml", []byte(text), nil, nil)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v\nwant %s", c.text, err, c.want)
		}
	}
}

// TestFidelityTable: the page about choices lists the present choices and defaults.
func TestFidelityTable(t *testing.T) {
	page, err := os.ReadFile("../../docs/fidelity.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range spec.Choices() {
		row := []string{"", c.Key, c.Default}
		for _, preset := range spec.Presets {
			row = append(row, c.Like(preset))
		}
		if line := strings.TrimSpace(strings.Join(append(row, ""), " | ")); !strings.Contains(string(page), line) {
			t.Errorf("docs/fidelity.md lacks %s", line)
		}
	}
}

// TestApart: a report names the choice that makes reordering rows slower than in ns-3,
// but not if the choice is made as in ns-3 or no row reorders.
func TestApart(t *testing.T) {
	text := strings.Replace(chosenRDMA, "schemes: [drill]", "schemes: [drill, letflow]", 1)
	for add, want := range map[string]bool{"": true, "like: ns3\n": false} {
		x := load(t, text+add)
		if got := x.Apart(&x.Cases[0]); strings.HasPrefix(got, "drill: ") != want {
			t.Errorf("%q: %q", add, got)
		}
	}
	if x := load(t, strings.Replace(text, "drill, letflow", "letflow", 1)); x.Apart(&x.Cases[0]) != "" {
		t.Error("LetFlow keeps the order")
	}
}
