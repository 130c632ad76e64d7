package lab

import (
	"strings"
	"testing"

	"github.com/p4lb/p4lb/internal/lab/spec"
)

const recoveryText = `
name: recovery
topology: {leaf-spine: {leaves: 2, spines: 2, hosts: 2, rate: 10G, host-rate: 10G, delay: 1us, host-delay: 1us, queue: 64}}
schemes: [rps]
traffic: [{pattern: permutation, workload: websearch, load-of: hosts}]
loads: [0.5]
transport: udp
metrics: [recovery]
engine: native
duration: 10ms
latency: 300us
seeds: 1
`

// TestRecovery measures the time to the last packet that a fault loses: the latency of
// the controller for a failed link, and the whole fault where the controller does not
// know it.
func TestRecovery(t *testing.T) {
	leftToPlainRun(t)
	for _, c := range []struct {
		faults   string
		low, top float64 // ms
	}{
		{"{at: 4ms, link: l1-s1, down: true}", 0.25, 0.32},
		{"{at: 4ms, until: 6ms, switch: s1, drop: 0.2}", 1.9, 2.01},
		{"{at: 4ms, link: l1-s1, rate: 9G}", 0, 0},
		{"{at: 3ms, until: 4ms, switch: s1, drop: 0.2}, {at: 6ms, link: l1-s1, down: true}", 0.9, 1.01},
	} {
		r := run(t, &Runner{}, load(t, recoveryText+"faults: ["+c.faults+"]\n")).Rows[0].Runs[0]
		if got, ok := r.Metrics["recovery"]; !ok || got < c.low || got > c.top {
			t.Errorf("%s: recovery takes %g ms, want %g to %g", c.faults, got, c.low, c.top)
		}
	}
	r := run(t, &Runner{}, load(t, recoveryText)).Rows[0].Runs[0]
	if got, ok := r.Metrics["recovery"]; ok {
		t.Errorf("without faults recovery takes %g ms", got)
	}
}

// TestKnownRates degrades a link to a quarter. WCMP's weights follow after the controller's
// latency, if it is notified: the slow link then carries 1/5 of its leaf's bytes, before
// 1/2.
func TestKnownRates(t *testing.T) {
	leftToPlainRun(t)
	text := `
name: known
topology: {leaf-spine: {leaves: 2, spines: 2, hosts: 8, rate: 10G, host-rate: 2G, delay: 1us, host-delay: 1us, queue: 64}}
schemes: [wcmp]
traffic: [{workload: webserver, load-of: hosts}]
loads: [0.3]
transport: dctcp
duration: 40ms
warmup: 2ms
seeds: 1
latency: 500us
`
	share := func(engine, fault string) float64 {
		r := run(t, &Runner{}, load(t, text+"engine: "+engine+"\nfaults: ["+fault+"]\n")).Rows[0].Runs[0]
		for i, name := range r.Plots.Names {
			if strings.HasSuffix(name, "-s1") && strings.HasPrefix(name, "l1:") {
				return r.Plots.Shares[i]
			}
		}
		t.Fatalf("no link to s1 among %v", r.Plots.Names)
		return 0
	}
	for _, engine := range []string{"native", "p4"} {
		if got := share(engine, "{at: 1ms, link: l1-s1, rate: 2.5G}"); got < 0.42 || got > 0.58 {
			t.Errorf("%s: unknown: the slow link carries %g, want about 1/2", engine, got)
		}
		if got := share(engine, "{at: 1ms, link: l1-s1, rate: 2.5G, known: true}"); got < 0.14 || got > 0.27 {
			t.Errorf("%s: known: the slow link carries %g, want about 1/5", engine, got)
		}
	}
	_, err := spec.Load("t.yaml", []byte(text+"faults: [{at: 1ms, link: l1-s1, down: true, known: true}]\n"), nil, nil)
	if err == nil || !strings.Contains(err.Error(), "t.yaml:") || !strings.Contains(err.Error(), "known") {
		t.Errorf("known beside down: %v", err)
	}
}
