package lab

import (
	"slices"
	"strings"
	"testing"
)

// failing is RLB* in a fabric where packets recirculate, healthy and with a spine that
// silently loses packets.
const failing = `
name: failing
engine: native
parameters: default
state-path: shared
latency: 1us
warmup: 0
drain: 30ms
transport: {kind: dcqcn, rdma: {alpha-interval: 55us, cut-interval: 50us, raise-interval: 55us, raise-bytes: 10MB, recovery: 5, additive: 40Mbps, hyper: 400Mbps, notice-every: 50us, nack-every: 500us}}
switches: {pfc: true, pfc-threshold: 256KiB, ecn-min: 5KB, ecn-max: 200KB, ecn-p: 0.01}
topology: {leaf-spine: {leaves: 6, spines: 6, hosts: 12, rate: 40G, host-rate: 40G, delay: 2us, host-delay: 2us, buffer: 9MiB}}
traffic: [{workload: websearch, load-of: fabric, pattern: all-to-all, cut: none}]
loads: [0.8]
duration: 4ms
seeds: [101]
schemes:
- {scheme: letflow+rlb-star, label: RLB, set: {dt: 2us, twarn: 10us, hold: 200us, tpath: 50us}}
- {scheme: letflow+rlb-star, label: RLB random, set: {dt: 2us, twarn: 10us, hold: 200us, tpath: 50us, suboptimal: random}}
cases:
- {name: healthy}
- {name: drops, faults: [{at: 0s, switch: s2, drop: 0.0035}], schemes: [RLB]}
- {name: dead, faults: [{at: 300us, switch: s2, drop: 1}], schemes: [RLB]}
- {name: hole, faults: [{at: 300us, switch: s5, black-hole: 1}], schemes: [RLB random]}
`

// TestFailureDetection: RLB's Algorithm 2 finds the spine that loses every packet, or
// the packets of all pairs of hosts. Each leaf reports it once. Algorithm 2 suspects no
// spine where probes come back: in a healthy network, and where so few packets are lost
// that hardly a probe is among them.
func TestFailureDetection(t *testing.T) {
	leftToPlainRun(t)
	c := run(t, &Runner{}, loadOnce(t, failing))
	for _, row := range []struct{ name, scheme, spine string }{
		{"healthy", "RLB", ""}, {"healthy", "RLB random", ""}, {"drops", "RLB", ""}, {"dead", "RLB", "s2"}, {"hole", "RLB random", "s5"},
	} {
		alerts := c.Row(row.name, row.scheme, 0.8).Runs[0].Alerts
		if (len(alerts) > 0) != (row.spine != "") {
			t.Errorf("%s, %s: alerts %v, want some about %q", row.name, row.scheme, alerts, row.spine)
		}
		for i, a := range alerts {
			if !strings.Contains(a, row.spine+" behind it has failed") || slices.Contains(alerts[:i], a) {
				t.Errorf("%s, %s: alert %q among %v, want each leaf to report %q once", row.name, row.scheme, a, alerts, row.spine)
			}
		}
	}
}

// TestFailureOnHardware: on Tofino 2, where programs do not know overdue probes, the
// controller finds them. A dead spine counts as failed. In a healthy network no switch
// does, although packets recirculate more than once.
func TestFailureOnHardware(t *testing.T) {
	leftToPlainRun(t)
	x := loadOnce(t, `
name: hardware
engine: native
latency: 1us
warmup: 0
drain: 30ms
transport: {kind: dcqcn, rdma: {alpha-interval: 55us, cut-interval: 50us, raise-interval: 55us, raise-bytes: 10MB, recovery: 5, additive: 40Mbps, hyper: 400Mbps, notice-every: 50us, nack-every: 500us}}
switches: {pfc: true, pfc-threshold: 256KiB, ecn-min: 5KB, ecn-max: 200KB, ecn-p: 0.01}
topology: {leaf-spine: {leaves: 4, spines: 4, hosts: 8, rate: 40G, host-rate: 40G, delay: 2us, host-delay: 2us, buffer: 6MiB}}
traffic: [{workload: websearch, load-of: fabric, pattern: all-to-all, cut: none}]
loads: [0.8]
duration: 4ms
seeds: [102]
schemes: [{scheme: letflow+rlb-star@t2na, label: RLB, set: {dt: 2us, twarn: 10us, hold: 200us, tpath: 50us}}]
cases:
- {name: healthy}
- {name: dead, faults: [{at: 300us, switch: s2, drop: 1}]}
`)
	c := run(t, &Runner{}, x)
	for name, spine := range map[string]string{"healthy": "", "dead": "s2"} {
		r := c.Row(name, "RLB", 0.8).Runs[0]
		if r.Metrics["recirculated"] == 0 || (len(r.Alerts) > 0) != (spine != "") {
			t.Errorf("%s: %.2f %% of the packets recirculate, alerts %v, want some about %q", name, r.Metrics["recirculated"], r.Alerts, spine)
		}
		for _, a := range r.Alerts {
			if !strings.Contains(a, spine+" behind it has failed") {
				t.Errorf("%s: alert %q", name, a)
			}
		}
	}
}
