package lab

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/p4lb/p4lb/fitting"
	"github.com/p4lb/p4lb/sim"
)

// A Metric is a number that a run comes to.
type Metric struct {
	Name  string
	Unit  string
	About string

	// Higher: more is better.
	Higher bool
	// ByClass: there is one for each class of flows as well, as in fct-p99:short.
	ByClass bool

	of func(m *measured, flows []*outcome) float64
}

// DefaultMetrics are those of the table where an experiment names none. UDP
// repeats nothing, and loses instead.
func DefaultMetrics(transport string) []string {
	if transport == "udp" {
		return []string{"fct-mean", "fct-p99", "fct-mean:short", "throughput", "dropped", "reordered", "queue-mean", "sharing"}
	}
	return []string{"fct-mean", "fct-p99", "fct-mean:short", "slowdown-mean", "reordered", "retransmitted", "queue-mean", "sharing"}
}

// Metrics lists what can be measured.
func Metrics() []Metric { return slices.Clone(metrics) }

var metrics = slices.Concat([]Metric{
	{"fct-mean", "ms", "flow completion time: from a flow's start to the arrival of its last byte, mean over the flows", false, true, overFlows(fctMS, average)},
	{"fct-p50", "ms", "flow completion time, median", false, true, overFlows(fctMS, quantile(0.5))},
	{"fct-p99", "ms", "flow completion time that 99 % of the flows do not exceed", false, true, overFlows(fctMS, quantile(0.99))},
	{"slowdown-mean", "", "a flow's completion time over the one that it would have alone in the network, mean", false, true, overFlows(slowdown, average)},
	{"slowdown-p50", "", "slowdown, median", false, true, overFlows(slowdown, quantile(0.5))},
	{"slowdown-p99", "", "slowdown that 99 % of the flows do not exceed", false, true, overFlows(slowdown, quantile(0.99))},
	{"request-mean", "ms", "of incast: from a request to the last byte of its last answer, mean over the requests", false, false, requests(average)},
	{"request-p99", "ms", "time of a request that 99 % of them do not exceed", false, false, requests(quantile(0.99))},
	{"throughput", "Mbit/s", "payload delivered per second while flows begin, of all hosts together", true, false, func(m *measured, _ []*outcome) float64 { return m.goodput / 1e6 }},
	{"flow-rate", "Mbit/s", "a flow's payload over its completion time, mean over the flows", true, true, overFlows(flowRate, average)},
	{"unfinished", "%", "flows that had not ended when the run did, of all; the time until then counts as their completion time", false, true, overFlows(unfinished, percentOf)},
	{"out-of-order", "%", "data packets that reached the receiver before an earlier one of their flow, of all sent: because they overtook it, or because it was lost and sent again", false, true, perPacket(func(f *outcome) int64 { return f.OutOfOrder })},
	{"reordered", "%", "packets overtaken in the network by one of their flow that was sent later, of all data packets sent: what a balancer does to the order", false, true, perPacket(func(f *outcome) int64 { return f.Overtaken })},
	{"degree-p99", "packets", "out-of-order degree: the packets that a receiver has to keep until the missing one comes; the largest of each flow, and of these the 99th percentile", false, true, overFlows(degree, quantile(0.99))},
	{"dupacks", "%", "flows that saw a duplicate ACK, of all", false, true, overFlows(func(f *outcome) float64 { return truth(f.DupAcks > 0) }, percentOf)},
	{"dupacks-3", "%", "flows that saw more than three duplicate ACKs in a row, of all", false, true, overFlows(func(f *outcome) float64 { return truth(f.DupRun > 3) }, percentOf)},
	{"retransmitted", "%", "data packets sent again, of all sent", false, true, perPacket(func(f *outcome) int64 { return f.Retransmitted })},
	{"timeouts", "1/flow", "retransmission timeouts, mean over the flows", false, true, overFlows(func(f *outcome) float64 { return float64(f.Timeouts) }, average)},
	{"marked", "%", "data packets that came with an ECN mark, of all sent", false, true, perPacket(func(f *outcome) int64 { return f.Marked })},
	{"queue-mean", "%", "occupancy of the queues from leaves to spines, of their capacity, mean over ports and samples while flows begin", false, false, func(m *measured, _ []*outcome) float64 { return 100 * average(m.occupancy) }},
	{"queue-p99", "%", "that occupancy, 99th percentile over ports and samples", false, false, func(m *measured, _ []*outcome) float64 { return 100 * quantile(0.99)(m.occupancy) }},
	{"queue-variance", "", "variance of that occupancy, taken from 0 to 1, over ports and samples", false, false, func(m *measured, _ []*outcome) float64 { return variance(m.occupancy) }},
	{"sharing", "%", "load imbalance: the utilisation of the busiest link upwards of a leaf over that of its idlest, less 1, in each fifth of the time; mean over these and the leaves", false, false, func(m *measured, _ []*outcome) float64 { return 100 * m.sharing }},
	{"utilisation", "%", "bytes sent on the links upwards over what they can carry, while flows begin", true, false, func(m *measured, _ []*outcome) float64 { return 100 * m.utilisation }},
	{"utilisation-whole", "%", "the same until the last flow has ended", true, false, func(m *measured, _ []*outcome) float64 { return 100 * m.whole }},
	{"utilisation-min", "%", "the same of the idlest link, while flows begin", true, false, func(m *measured, _ []*outcome) float64 { return 100 * m.idlest }},
	{"dropped", "%", "packets that found no room in a queue, of all that came to a switch", false, false, func(m *measured, _ []*outcome) float64 { return m.dropped }},
	{"pauses", "1/s", "PFC pause frames sent, per second of the run", false, false, func(m *measured, _ []*outcome) float64 { return m.pauses }},
	{"paused", "%", "time that ports between switches were paused, of the run, mean over the ports", false, false, func(m *measured, _ []*outcome) float64 { return m.paused }},
	{"recirculated", "%", "packets that a switch recirculated, of all that came to one", false, false, func(m *measured, _ []*outcome) float64 { return m.recirculated }},
	{"copies", "%", "bytes of clones, reports and probes, of all bytes delivered", false, false, func(m *measured, _ []*outcome) float64 { return m.copies }},
	{"probe-load", "%", "bytes of probes on the links between switches, of what these can carry", false, false, func(m *measured, _ []*outcome) float64 { return m.probes }},
	{"decision-delay", "ms", "age of the news of a port at the moment of the decision that used it, mean over the decisions; none for schemes that use no news", false, false, func(m *measured, _ []*outcome) float64 { return m.age }},
	{"granularity", "packets", "PDLB: size of the flowcells, mean", false, false, func(m *measured, _ []*outcome) float64 { return m.granularity }},
}, fitMetrics())

// A chosen metric is a Metric, of one class where it says so.
type chosen struct {
	*Metric
	class int // in Experiment.Classes; -1: all flows
	key   string
}

// metricNamed finds a metric by its name, with a class behind a colon.
func metricNamed(name string, classes []Class) (chosen, error) {
	base, class, byClass := strings.Cut(name, ":")
	i := slices.IndexFunc(metrics, func(m Metric) bool { return m.Name == base })
	if i < 0 && base == "overtaken" {
		return chosen{}, errors.New("overtaken is called reordered now; what used to be reordered is out-of-order")
	}
	if i < 0 {
		return chosen{}, fmt.Errorf("there is no metric %q: there are %s", base, metricNames())
	}
	c := chosen{&metrics[i], -1, name}
	if !byClass {
		return c, nil
	}
	if !c.ByClass {
		return chosen{}, fmt.Errorf("metric %s is not measured by class", base)
	}
	if c.class = slices.IndexFunc(classes, func(k Class) bool { return k.Name == class }); c.class < 0 {
		return chosen{}, fmt.Errorf("metric %s: there is no class %q", name, class)
	}
	return c, nil
}

func metricNames() string {
	var names []string
	for _, m := range metrics {
		names = append(names, m.Name)
	}
	return strings.Join(names, ", ")
}

// allMetrics are all that an experiment's runs are measured by.
func allMetrics(classes []Class) []chosen {
	var list []chosen
	for i := range metrics {
		list = append(list, chosen{&metrics[i], -1, metrics[i].Name})
		if metrics[i].ByClass && len(classes) > 1 {
			for k, class := range classes {
				list = append(list, chosen{&metrics[i], k, metrics[i].Name + ":" + class.Name})
			}
		}
	}
	return list
}

// label is what tables call the metric.
func (c chosen) label() string {
	if c.Unit == "" {
		return c.key
	}
	return c.key + " (" + c.Unit + ")"
}

// An outcome is a flow and what became of it.
type outcome struct {
	Flow
	sim.FlowStats
	Started  time.Duration
	Finished time.Duration // 0: not in time
	ideal    time.Duration // alone in the network
	end      time.Duration // of the run
	class    int
	counts   bool // in the statistics: it began after the warm-up, and was to end
}

// fct is the completion time; of a flow that had not ended, the time it had.
func (f *outcome) fct() time.Duration {
	if f.Finished == 0 {
		return f.end - f.Started
	}
	return f.Finished - f.Started
}

// measured is what a run comes to beside its flows.
type measured struct {
	flows   []*outcome
	classes []Class

	goodput     float64   // bit/s
	occupancy   []float64 // samples of the queues upwards, 0 to 1
	sharing     float64
	utilisation float64
	whole       float64 // utilisation until the run was over
	idlest      float64

	dropped, pauses, paused, recirculated, copies, probes float64
	age, granularity                                      float64

	fit *fitting.Fit // of the ports; nil: the experiment has none
}

// values are all metrics of a run by name. What is not a number is left out.
func (m *measured) values() map[string]float64 {
	byClass := make([][]*outcome, len(m.classes))
	var all []*outcome
	for _, f := range m.flows {
		if f.counts {
			all = append(all, f)
			byClass[f.class] = append(byClass[f.class], f)
		}
	}
	v := map[string]float64{}
	for _, c := range allMetrics(m.classes) {
		flows := all
		if c.class >= 0 {
			flows = byClass[c.class]
		}
		if x := c.of(m, flows); !math.IsNaN(x) && !math.IsInf(x, 0) {
			v[c.key] = x
		}
	}
	return v
}

func overFlows(of func(*outcome) float64, sum func([]float64) float64) func(*measured, []*outcome) float64 {
	return func(_ *measured, flows []*outcome) float64 {
		values := make([]float64, len(flows))
		for i, f := range flows {
			values[i] = of(f)
		}
		return sum(values)
	}
}

func fctMS(f *outcome) float64      { return f.fct().Seconds() * 1e3 }
func slowdown(f *outcome) float64   { return float64(f.fct()) / float64(f.ideal) }
func unfinished(f *outcome) float64 { return truth(f.Finished == 0) }
func degree(f *outcome) float64     { return float64(f.Degree) }
func flowRate(f *outcome) float64   { return float64(f.Received) * 8 / f.fct().Seconds() / 1e6 }

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

func percentOf(values []float64) float64 { return 100 * average(values) }

func quantile(p float64) func([]float64) float64 {
	return func(values []float64) float64 {
		sorted := slices.Clone(values)
		slices.Sort(sorted)
		return percentile(sorted, p)
	}
}

func perPacket(count func(*outcome) int64) func(*measured, []*outcome) float64 {
	return func(_ *measured, flows []*outcome) float64 {
		n, sent := int64(0), int64(0)
		for _, f := range flows {
			n += count(f)
			sent += f.Sent
		}
		return 100 * float64(n) / float64(sent)
	}
}

// requests are the times from a request's first byte to its last.
func requests(sum func([]float64) float64) func(*measured, []*outcome) float64 {
	return func(_ *measured, flows []*outcome) float64 {
		last := map[int]float64{}
		var order []int
		for _, f := range flows {
			if f.Group == 0 {
				continue
			}
			if _, ok := last[f.Group]; !ok {
				order = append(order, f.Group)
			}
			last[f.Group] = max(last[f.Group], fctMS(f))
		}
		var values []float64
		for _, g := range order {
			values = append(values, last[g])
		}
		return sum(values)
	}
}
