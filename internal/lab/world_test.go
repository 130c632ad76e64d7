package lab

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/p4lb/p4lb/internal/lab/spec"
	"github.com/p4lb/p4lb/internal/network/hosts"
)

const worldExperiment = `
name: worlds
topology: {leaf-spine: {leaves: 2, spines: 2, hosts: 2, rate: 20Mbps, host-rate: 20Mbps, queue: 64}}
schemes: [ecmp, letflow]
traffic: [{workload: websearch, cut: 100KB, pattern: halves, flows: 20}]
loads: [0.3]
duration: 1s
warmup: 0
drain: 60s
metrics: [fct-mean, "fct-p99:short", queue-mean, out-of-order]
`

// TestWorlds runs one experiment in virtual time and in real time: the same
// flows, all of which end, and what only the simulator can see left out.
func TestWorlds(t *testing.T) {
	if !hosts.Capable() {
		t.Skip("network namespaces want root, or a user namespace around the test")
	}
	x, err := spec.Load("worlds.yaml", []byte(worldExperiment), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	var list []*Comparison
	for _, world := range []string{Sim, Embedded} {
		r := &Runner{World: world, Real: RealOptions{Overload: true}, Dir: t.TempDir()}
		c, err := r.Run(t.Context(), x)
		if errors.Is(err, hosts.ErrNotHere) {
			t.Skip(err)
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Keep(r.Dir, Origin{}); err != nil {
			t.Fatal(err)
		}
		list = append(list, c)
	}
	for i, real := range list[1].Results {
		sim := list[0].Results[i]
		if real.World != Embedded || real.Spec == sim.Spec || real.Flows != 20 || sim.Flows != 20 {
			t.Errorf("%s: %+v beside %+v", real.Label, real, sim)
		}
		if real.Metrics["unfinished"] != 0 || !(real.Metrics["fct-mean"] > 0) {
			t.Errorf("%s: %v", real.Label, real.Metrics)
		}
		if early, dup := real.Metrics["out-of-order"], real.Metrics["dupacks"]; (early > 0) != (dup > 0) {
			t.Errorf("%s: %g %% of the segments came early, and %g %% of the flows saw a duplicate ACK", real.Label, early, dup)
		}
		if _, ok := real.Metrics["queue-mean"]; ok {
			t.Errorf("%s: a queue that nobody has looked at is %v", real.Label, real.Metrics["queue-mean"])
		}
	}
	table := SideBySide(list)
	if want := []string{"SCHEME", "LOAD", "METRIC", "sim", "embedded", "embedded/sim"}; !slices.Equal(table[0], want) {
		t.Errorf("the table's head is %q", table[0])
	}
	if len(table) != 1+2*3 { // queue-mean is not in it
		t.Errorf("%d lines: %q", len(table), table)
	}
}

// TestNotInRealTime lists what only the simulator can do.
func TestNotInRealTime(t *testing.T) {
	for change, want := range map[string]string{
		"transport: dcqcn\nswitches: {pfc: true}\n":    "transport dcqcn is the simulator's alone",
		"engine: native\n":                             "engine native is the simulator's alone",
		"faults: [{at: 1ms, switch: s1, drop: 0.1}]\n": "faults other than down are the simulator's alone",
		"switches: {ecn: 10}\n":                        "pfc and ecn are the simulator's alone",
		"arch: tna\n":                                  "simple_switch runs programs for v1model alone",
	} {
		x, err := spec.Load("worlds.yaml", []byte(worldExperiment+change), nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := (&Runner{World: BMv2}).Run(t.Context(), x); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", change, err, want)
		}
	}
	x, err := spec.Load("worlds.yaml", []byte(strings.ReplaceAll(worldExperiment, "20Mbps", "20Gbps")), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	x.Cases[0].Traffic[0].Flows = 0
	_, err = (&Runner{World: Embedded, Cores: 1}).Run(t.Context(), x)
	if !errors.Is(err, errOverload) || !strings.Contains(err.Error(), "want load 0.0") {
		t.Errorf("20 Gbit/s in real time: %v", err)
	}
}

// TestFaultsInRealTime cuts a leaf off for most of a run: flows that begin
// meanwhile end once it is back, and not before.
func TestFaultsInRealTime(t *testing.T) {
	leftToPlainRun(t)
	if !hosts.Capable() {
		t.Skip("network namespaces want root, or a user namespace around the test")
	}
	mean := func(faults string) float64 {
		text := strings.Replace(worldExperiment, "schemes: [ecmp, letflow]", "schemes: [ecmp]", 1) + faults
		x, err := spec.Load("faults.yaml", []byte(text), nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		c, err := (&Runner{World: Embedded, Real: RealOptions{Overload: true}, Dir: t.TempDir()}).Run(t.Context(), x)
		if errors.Is(err, hosts.ErrNotHere) {
			t.Skip(err)
		}
		if err != nil {
			t.Fatal(err)
		}
		if r := c.Results[0]; r.Metrics["unfinished"] != 0 {
			t.Errorf("with faults %q: %v", faults, r.Metrics)
		}
		return c.Results[0].Metrics["fct-mean"]
	}
	whole := mean("")
	cut := mean("faults: [{at: 100ms, until: 1900ms, link: l1-s1, down: true}, {at: 100ms, until: 1900ms, link: l1-s2, down: true}]\n")
	if cut < whole+0.3 {
		t.Errorf("flows take %.3g s on average, and %.3g s where a leaf is cut off for 1.8 s", whole, cut)
	}
}
