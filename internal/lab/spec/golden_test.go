package spec

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/p4lb/p4lb/internal/text/lists"
)

var update = flag.Bool("update", false, "rewrite the expected texts in testdata")

// golden compares a text with a file of testdata.
func golden(t *testing.T, name, text string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	got, old := strings.Split(text, "\n"), strings.Split(string(want), "\n")
	for i := range max(len(got), len(old)) {
		if i >= len(got) || i >= len(old) || got[i] != old[i] {
			t.Fatalf("%s:%d: got %q, want %q: go test -update rewrites it", file, i+1, got[i:min(len(got), i+1)], old[i:min(len(old), i+1)])
		}
	}
}

// TestFlows lists the flows of each pattern, collective and job: their ends, sizes,
// start times, groups, connections and predecessors.
func TestFlows(t *testing.T) {
	const all = "{collective: %s, algorithm: %s, size: 1001, ranks: %d%s}"
	var texts []string
	for _, name := range Collectives {
		for _, algorithm := range algorithms[name] {
			for _, ranks := range []int{2, 4} {
				texts = append(texts, fmt.Sprintf("traffic: ["+all+"]", name, algorithm, ranks, ""))
			}
			if algorithm != halvingDoubling {
				texts = append(texts, fmt.Sprintf("traffic: ["+all+"]", name, algorithm, 3, ", repeat: 2"))
			}
		}
	}
	texts = append(texts,
		"traffic: [{collective: all-reduce, algorithm: tree, size: 1001, ranks: 3, chunks: 2}]",
		"traffic: [{collective: broadcast, algorithm: ring, size: 1001, ranks: 3, chunks: 3}]",
		"traffic: [{collective: all-to-all, size: 1001, ranks: 4, window: 2}]",
		"traffic: [{collective: all-reduce, size: 1001, groups: 2, order: strided, connections: persistent}]",
		"traffic: [{collective: all-reduce, size: 1001, groups: 4, order: random, connections: per-message}]",
		"traffic: [{collective: all-reduce, size: 1001, groups: 2, compute: 7us, connections: queue-pair, repeat: 2}]",
		"traffic: [{collective: all-gather, size: 1001, ranks: 2, from: [h3..h8], start: 5us}]",
		"traffic: [{size: 10KB}]",
		"traffic: [{size: 10KB, min-size: 3, load: 0.1}]",
		"traffic: [{size: 10MB, min-size: 1KB, tail: true, share: 0.5}]",
		"traffic: [{workload: websearch}, {workload: datamining, cut: none, rate: 100}]",
		"traffic: [{workload: cachefollower, pattern: all-to-all, from: [l1, h7], to: [h2..h4, h8]}]",
		"traffic: [{size: 10KB, pattern: permutation, start: 100us, stop: 1ms}]",
		"traffic: [{size: 10KB, pattern: incast, degree: 2, flows: 3}, {size: 10KB, pattern: incast, flows: 2}]",
		"traffic: [{size: 10KB, pattern: pairs, pairs: [h1-h5, h2..h3-h6..h7], connections: persistent}]",
		"traffic: [{size: 10KB, min-size: 5KB, pattern: pairs, pairs: [h1-h5, h2..h3-h6..h7], at: [0s, 3us]}]",
		"traffic: [{size: 10KB, pattern: burst, from: [h1..h3], to: [h2, h6], at: [2us, 1us], degree: 2}, {size: 5, pattern: burst, at: [0s], from: [h1], to: [h2, h3]}]",
		"traffic: [{size: 10KB, load-of: hosts}, {size: 1KB, load-of: 500Mbps, transport: udp, udp-rate: 3Mbps, count: true}]",
		"jobs: [{ranks: 2, iterations: 2, phases: [{compute: 1ms}, {collective: all-reduce, size: 1001}]}]",
		"jobs: [{ranks: 8, data: 2, tensor: 2, pipeline: 2, microbatches: 2, start: 3us, phases: [{pipeline: 1f1b, size: 1KB, phases: [{compute: 1ms}, {collective: all-reduce, over: tensor, size: 9}], backward: [{compute: 2ms}]}, {collective: reduce-scatter, over: data, size: 1001}]}]",
		"jobs: [{ranks: 4, pipeline: 4, microbatches: 3, phases: [{pipeline: forward, size: 1KB, phases: [{compute: 1ms}]}, {pipeline: backward, size: 1KB, phases: [{compute: 2ms}]}]}]",
		"jobs: [{ranks: 4, expert: 2, phases: [{name: a, compute: 1ms, after: [start]}, {name: b, collective: all-to-all, over: expert, size: 100, after: [start]}, {collective: send-recv, over: data, size: 10, after: [a, b]}, {collective: broadcast, size: 10, after: [b]}]}]",
		"jobs: [{placement: [h1, h5], phases: [{collective: all-gather, size: 10}]}, {data: 2, tensor: 1, placement: spread, phases: [{collective: send-recv, size: 10}], connections: queue-pair}, {data: 2, placement: random, shared: true, phases: [{collective: send-recv, size: 10}]}]",
	)
	var b strings.Builder
	for _, text := range texts {
		x, err := Load("x.yaml", []byte("topology: {leaf-spine: {leaves: 2, spines: 2, hosts: 4, rate: 1G, host-rate: 1G}}\nschemes: [ecmp]\nduration: 4ms\nwarmup: 0\n"+text+"\n"), nil, nil)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		c := &x.Cases[0]
		topo, err := c.Network(NoFiles)
		if err != nil {
			t.Fatal(err)
		}
		flows, err := c.Flows(topo, 0.5, 7)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		sum := int64(0)
		for _, f := range flows {
			sum += f.Bytes
		}
		fmt.Fprintf(&b, "%s\n\t%d flows, %d bytes", text, len(flows), sum)
		for i := range c.Traffic {
			if count, mean, err := c.Traffic[i].Expected(topo, 0.5, c.Length()); err == nil {
				fmt.Fprintf(&b, "; expected %.6g of %.6g bytes", count, mean)
			}
		}
		if o, ok := c.Offer(topo, 0.5); ok {
			fmt.Fprintf(&b, "; offered %.6g of the hosts, %.6g of the fabric", o.Hosts, o.Fabric)
		}
		b.WriteString("\n")
		for i, f := range flows[:min(len(flows), 48)] {
			fmt.Fprintf(&b, "\t%d: h%d to h%d", i, f.Src+1, f.Dst+1)
			if f.Compute {
				b.WriteString(" compute")
			} else {
				fmt.Fprintf(&b, " %d", f.Bytes)
			}
			fmt.Fprintf(&b, " at %v", f.Start)
			for _, n := range []struct {
				name  string
				value int
			}{{"group", f.Group}, {"connection", int(f.Connection)}, {"ends", int(f.Ends)}} {
				if n.value != 0 {
					fmt.Fprintf(&b, " %s %d", n.name, n.value)
				}
			}
			if w := f.Waits; w != nil {
				fmt.Fprintf(&b, " after %v %v %v", w.After, w.AfterAck, w.Delay)
			}
			b.WriteString("\n")
		}
	}
	golden(t, "flows.txt", b.String())
}

// TestCompleted lists the values that settings get in addition to the file.
func TestCompleted(t *testing.T) {
	form := func(text string) []string {
		const head = "topology: {leaf-spine: {leaves: 2, spines: 4, hosts: 4, rate: 1G, host-rate: 1G}}\n"
		if !strings.Contains(text, "topology:") {
			text = head + text
		}
		if !strings.Contains(text, "schemes:") {
			text += "\nschemes: [ecmp, drill]"
		}
		x, err := Load("x.yaml", []byte(text+"\n"), nil, nil)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			return nil
		}
		var b bytes.Buffer
		WriteForm(&b, "", *x)
		for i := range x.Cases {
			c := &x.Cases[i]
			fmt.Fprintf(&b, "case %q: %v after %v of warm-up, samples each %v, %v\n", c.Name, c.Length(), c.WarmupTime(), DefaultInterval(c.Length()), lists.Map(c.Chosen(), func(k Chosen) string { return k.Key + ": " + k.Value + " not " + k.Default }))
		}
		for i := range x.Traffic {
			fmt.Fprintf(&b, "described: %s\n", x.Traffic[i].Describe())
		}
		for i := range x.Jobs {
			fmt.Fprintf(&b, "described: %s\n", x.Jobs[i].Describe())
		}
		fmt.Fprintf(&b, "runs: %g\n", x.Runs())
		// A form that is read again and completed is the same.
		again, err := FromForm(b.Bytes()[:bytes.Index(b.Bytes(), []byte("case \""))])
		if err == nil {
			err = again.Complete("again", nil, nil)
		}
		if err != nil {
			t.Errorf("%s: %v", text, err)
			return nil
		}
		var first, second bytes.Buffer
		WriteForm(&first, "", x.Cases)
		WriteForm(&second, "", again.Cases)
		if first.String() != second.String() {
			t.Errorf("%s: read again it is\n%s\nand was\n%s", text, &second, &first)
		}
		return strings.Split(strings.TrimSpace(b.String()), "\n")
	}
	plain := form("")
	out := append([]string{"plain"}, plain...)
	for _, text := range []string{
		"engine: native\nloads: [0.2, 60%]\nseeds: 3\nfull: {duration: 2s, loads: [0.5], seeds: 20}",
		"transport: dctcp\nswitches: {queue: 64}\ncases: [{name: a, transport: tcp}, {name: b, duration: 1ms, warmup: 5%}, {name: c, traffic: [{size: 3KB, load-of: hosts}], loads: [0.3], seeds: [4]}]",
		"transport: {kind: dcqcn}\nswitches: {pfc: true, ecn-min: 15KB, ecn-max: 60KB, ecn-p: 0.2}\nlike: ns3\nengine: native",
		"transport: {kind: dcqcn}\nswitches: {pfc: true, ecn: none}\nlike: hardware",
		"transport: {kind: dctcp}\nlike: htsim\nengine: native",
		"transport: {kind: tcp}\nlike: ns2\nengine: native",
		"transport: {kind: uec, uec: {control: rccc}}",
		"transport: {kind: dcqcn}\nswitches: {pfc: true}\nceiling: [no-pauses, keep-early, fast-core, oracle]\nlinks: [{link: l1-s1, rate: 500Mbps}]\ntraffic: [{}]\ntargets: [{name: a, metric: fct-mean, of: drill, against: ecmp, at-least: 5}]\nengine: native",
		"topology: {rail: {rails: 2, servers: 4, spines: 2, rate: 1G, host-rate: 1G}}\ntransport: dctcp\nceiling: [keep-early, fast-core]\nfull: {duration: 30ms}",
		"topology: {fat-tree: {k: 4, rate: 1G, host-rate: 1G}}\ntransport: tcp\nceiling: [fast-core]\nfull: {topology: {fat-tree: {k: 6, rate: 1G, host-rate: 1G}}, duration: 40ms, warmup: 1ms, loads: [0.4], seeds: 2}",
		"traffic: [{pattern: incast, size: 20KB}, {pattern: incast, degree: 3, cut: 5KB}]",
		"traffic: [{size: 10KB, min-size: 1KB, rate: 10}, {from: [h1], to: [h5..h8]}, {transport: udp, udp-rate: 1Mbps, size: 1GB, load: 0.1}]\nduration: 1ms",
		"traffic: [{collective: all-reduce, size: 1MB}]",
		"traffic: [{collective: all-to-all, size: 1MB}]\nduration: 1s\ndrain: 5s\nwarmup: 1ms\nlike: ns3\nengine: native\ntransport: dcqcn\nswitches: {pfc: true}",
		"jobs: [{ranks: 8, data: 4, tensor: 2, iterations: 3, microbatches: 2, phases: [{compute: 1ms}, {collective: all-reduce, over: data, size: 1MB}, {compute: 2s}]}, {name: b, placement: [h1, h2, h3, h4, h5], shared: true, phases: [{collective: all-reduce, size: 1MB}]}]\n",
	} {
		if strings.HasPrefix(text, "jobs") { // all hosts are shared
			text = strings.Replace(text, "{ranks: 8", "{shared: true, ranks: 8", 1)
			text = strings.Replace(text, "microbatches: 2, ", "", 1)
		}
		lines := lists.Filter(form(text), func(line string) bool { return !slices.Contains(plain, line) })
		out = append(append(out, "", text), lines...)
	}
	golden(t, "completed.txt", strings.Join(out, "\n")+"\n")
	if got := DefaultInterval(time.Millisecond); got != 10*time.Microsecond {
		t.Errorf("samples of 1 ms each %v: want 10us at least", got)
	}
}
