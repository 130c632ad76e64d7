package lab

import (
	"fmt"
	"math"
	"strings"
	"testing"
)

// apart is an experiment with leaves whose clocks are apart. Single packets measure
// the first paths before the other flows begin.
const apart = `
name: apart
engine: %s
state-path: %s
topology: {leaf-spine: {leaves: 2, spines: 4, hosts: 4, rate: 1G, host-rate: 1G, delay: 5us, host-delay: 1us, queue: 256}}
traffic:
- {size: 100B, pattern: all-to-all, from: [l2], to: [l1], rate: 5000, stop: 4ms, count: false}
- {workload: webserver, pattern: all-to-all, from: [l2], to: [l1], start: 5ms}
- {workload: webserver, pattern: all-to-all, from: [l1], to: [l2], start: 5ms}
loads: [0.7]
seeds: [7]
duration: 30ms
transport: dctcp
switches: {ecn: 65, clock-step: %s}
schemes: [{scheme: %s}]
`

// TestClocksApart: QDAPS* compares delays that contain the offset between the
// clocks of two leaves. Whatever the offset, no choice depends on it: not even on
// paths whose delay is not known yet. One leaf is ahead and the other one behind.
func TestClocksApart(t *testing.T) {
	leftToPlainRun(t)
	for _, c := range []struct{ scheme, engine string }{
		{"qdaps-star", "native"}, {"qdaps-star", "p4"}, {"qdaps-star@t2na", "native"}, {"qdaps-star@t2na", "p4"},
	} {
		t.Run(c.scheme+"/"+c.engine, func(t *testing.T) {
			state := "shared"
			if strings.Contains(c.scheme, "@") {
				state = "recirc"
			}
			mean := map[string]float64{}
			for _, step := range []string{"0s", "300ms", "5s"} {
				x := loadOnce(t, fmt.Sprintf(apart, c.engine, state, step, c.scheme))
				r := run(t, &Runner{}, x).Row("", c.scheme, 0.7).Runs[0]
				mean[step] = r.Metrics["fct-mean"]
			}
			for _, step := range []string{"300ms", "5s"} {
				within := 0.1 // a tick of hardware begins at another moment
				if state == "shared" {
					within = 0
				}
				if ratio := mean[step] / mean["0s"]; !(math.Abs(ratio-1) <= within) {
					t.Errorf("clocks %s apart: mean FCT %.3g, with equal clocks %.3g", step, mean[step], mean["0s"])
				}
			}
		})
	}
}
