package lab

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/p4lb/p4lb/codegen"
	"github.com/p4lb/p4lb/internal/lab/spec"
)

// The worlds in which an experiment can run. Sim has virtual time. The other two run in real
// time, and the kernel's TCP sends between hosts on this machine.
const (
	Sim      = "sim"      // the simulator
	Embedded = "embedded" // the embedded switches
	BMv2     = "bmv2"     // simple_switch_grpc
)

// Worlds lists the worlds.
var Worlds = []string{Sim, Embedded, BMv2}

// A RealOptions configures runs in real time.
type RealOptions struct {
	Overload bool // also run loads beyond the machine's capacity
	Cores    int  // number of cores for the switches
}

// checkWorld returns the reason why a job cannot run in a world.
func (j *Job) checkWorld(world string) error {
	c := j.Case
	kinds := []string{c.Transport.Kind}
	for _, t := range c.Traffic {
		if t.Kind != "" {
			kinds = append(kinds, t.Kind)
		}
	}
	switch {
	case world == Sim:
		return nil
	case slices.ContainsFunc(kinds, func(k string) bool { return k != "tcp" }):
		return fmt.Errorf("transport %s is the simulator's alone: in world %s the kernel sends, by tcp", strings.Join(kinds, ", "), world)
	case j.Scheme.Engine == spec.EngineNative:
		return fmt.Errorf("%s: engine native is the simulator's alone: in world %s the programs forward", j.Scheme.Label, world)
	case slices.ContainsFunc(c.Faults, func(f spec.Fault) bool { return !f.Down }):
		return fmt.Errorf("faults other than down are the simulator's alone: in world %s links and switches fail and come back", world)
	case c.Switches.PFC != nil && *c.Switches.PFC, c.Switches.ECN > 0, c.Switches.KMax > 0:
		return fmt.Errorf("pfc and ecn are the simulator's alone: the switches of world %s neither pause nor mark", world)
	case j.setup != nil && j.setup.topo.NICs() < len(j.setup.topo.Hosts):
		return fmt.Errorf("hosts with several ports are the simulator's alone: in world %s a host has one", world)
	case c.MTU != 0:
		return fmt.Errorf("mtu is the simulator's alone: the links of world %s have 1500 bytes", world)
	case j.x.Observe != nil:
		return fmt.Errorf("observe is the simulator's alone; in world %s, p4lb observe looks at switches that run", world)
	case world == BMv2 && j.Scheme.Arch != "" && j.Scheme.Arch != codegen.Archs[0]:
		return fmt.Errorf("%s: simple_switch runs programs for %s alone", j.Scheme.Label, codegen.Archs[0])
	}
	return nil
}

// measuredReal lists the metrics that the kernel can measure.
var measuredReal = []string{
	"fct-mean", "fct-p50", "fct-p99", "slowdown-mean", "slowdown-p50", "slowdown-p99", "request-mean", "request-p99",
	"flow-rate", "unfinished", "out-of-order", "dupacks", "retransmitted", "timeouts",
}

// SideBySide compares the results of one experiment in several worlds. For each row and metric it
// returns the value in each world, and the ratio to the first world.
func SideBySide(list []*Comparison) [][]string {
	first := list[0]
	head := []string{"SCHEME", "LOAD", "METRIC"}
	for _, c := range list {
		head = append(head, c.World)
	}
	for _, c := range list[1:] {
		head = append(head, c.World+"/"+first.World)
	}
	table := [][]string{head}
	for _, row := range first.Rows {
		for _, name := range first.Experiment.Metrics {
			metric, _ := first.Experiment.Metric(name)
			if base, _, _ := strings.Cut(name, ":"); !slices.Contains(measuredReal, base) {
				continue
			}
			label := row.Scheme.Label
			if row.Case.Name != "" {
				label = row.Case.Name + " " + label
			}
			line := []string{label, spec.Number(row.Load), metric.Label()}
			var means []float64
			for _, c := range list {
				e := newEstimate(nil)
				if other := c.Row(row.Case.Name, row.Scheme.Label, row.Load); other != nil {
					e = other.Estimate(name)
				}
				means = append(means, e.Mean)
				line = append(line, e.String())
			}
			for _, v := range means[1:] {
				ratio := "-"
				if q := v / means[0]; !math.IsNaN(q) && !math.IsInf(q, 0) {
					ratio = fmt.Sprintf("%.2f", q)
				}
				line = append(line, ratio)
			}
			table = append(table, line)
		}
	}
	return table
}
