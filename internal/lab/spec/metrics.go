package spec

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/p4lb/p4lb/internal/text/lists"
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
}

// defaultMetrics lists the columns of an experiment that names none. UDP repeats
// nothing, and loses instead.
func defaultMetrics(transport string, collective bool) []string {
	if collective {
		return []string{"cct", "cct-ratio", "bus-bandwidth", "fct-p99", "straggler-share", "link-imbalance", "reordered", "retransmitted"}
	}
	if transport == "udp" {
		return []string{"fct-mean", "fct-p99", "fct-mean:short", "throughput", "dropped", "reordered", "queue-mean", "sharing"}
	}
	return []string{"fct-mean", "fct-p99", "fct-mean:short", "slowdown-mean", "reordered", "retransmitted", "queue-mean", "sharing"}
}

// Metrics lists all metrics.
func Metrics() []Metric { return slices.Clone(metrics) }

var metrics = slices.Concat([]Metric{
	{"fct-mean", "ms", "flow completion time: from a flow's start to the arrival of its last byte, mean over the flows", false, true},
	{"fct-p50", "ms", "flow completion time, median", false, true},
	{"fct-p99", "ms", "flow completion time that 99 % of the flows do not exceed", false, true},
	{"fct-max", "ms", "of collectives and flow lists: completion time of the slowest flow", false, true},
	{"slowdown-mean", "", "a flow's completion time over the least time that the network without other flows needs to carry it, by any paths and without windows; never below 1; mean", false, true},
	{"slowdown-p50", "", "slowdown, median", false, true},
	{"slowdown-p99", "", "slowdown that 99 % of the flows do not exceed", false, true},
	{"request-mean", "ms", "of incast: from a request to the last byte of its last answer, mean over the requests", false, false},
	{"request-p99", "ms", "time of a request that 99 % of them do not exceed", false, false},
	{"cct", "ms", "collective completion time: from the start of a collective or flow list to the arrival of its last byte, mean over the iterations", false, false},
	{"cct-p99", "ms", "collective completion time that 99 % of the iterations do not exceed", false, false},
	{"cct-ideal", "ms", "least time that a collective can take: the longest chain of its messages alone in the network, or the busiest host's link at full rate", false, false},
	{"cct-ratio", "", "collective completion time over cct-ideal", false, false},
	{"algorithm-bandwidth", "Gbit/s", "buffer of a rank over the collective completion time, as nccl-tests define it", true, false},
	{"bus-bandwidth", "Gbit/s", "algorithm bandwidth times the share of the buffer that each link carries, as nccl-tests define it", true, false},
	{"straggler-share", "%", "time from the median rank's last byte to that of the last rank, of the collective completion time", false, false},
	{"iteration-time", "ms", "from the start of an iteration of a collective to the start of the next one, computation included, mean", false, false},
	{"throughput", "Mbit/s", "payload delivered per second while flows begin, of all hosts together", true, false},
	{"flow-rate", "Mbit/s", "a flow's payload over its completion time, mean over the flows", true, true},
	{"unfinished", "%", "flows that had not ended when the run did, of all; the time until then counts as their completion time", false, true},
	{"out-of-order", "%", "data packets that reached the receiver before an earlier one of their flow, of all sent: because they overtook it, or because it was lost and sent again", false, true},
	{"reordered", "%", "packets overtaken in the network by one of their flow that was sent later, of all data packets sent: what a balancer does to the order", false, true},
	{"degree-p99", "packets", "out-of-order degree: the packets that a receiver has to keep until the missing one comes; the largest of each flow, and of these the 99th percentile", false, true},
	{"dupacks", "%", "flows that saw a duplicate ACK, of all", false, true},
	{"dupacks-3", "%", "flows that saw more than three duplicate ACKs in a row, of all", false, true},
	{"retransmitted", "%", "data packets sent again, of all sent", false, true},
	{"timeouts", "1/flow", "retransmission timeouts, mean over the flows", false, true},
	{"marked", "%", "data packets that came with an ECN mark, of all sent", false, true},
	{"queue-mean", "%", "occupancy of the queues from leaves to spines, of their capacity, mean over ports and samples while flows begin", false, false},
	{"queue-p99", "%", "that occupancy, 99th percentile over ports and samples", false, false},
	{"queue-variance", "", "variance of that occupancy, taken from 0 to 1, over ports and samples", false, false},
	{"sharing", "%", "load imbalance: the utilisation of the busiest link upwards of a leaf over that of its idlest, less 1, in each fifth of the time; mean over these and the leaves", false, false},
	{"link-imbalance", "%", "of collectives and flow lists: utilisation of the busiest link upwards over the mean of all, less 1, until the last flow has ended", false, false},
	{"buffer-peak", "KB", "of collectives and flow lists: most bytes that waited in one switch", false, false},
	{"utilisation", "%", "bytes sent on the links upwards over what they can carry, while flows begin", true, false},
	{"utilisation-whole", "%", "the same until the last flow has ended", true, false},
	{"paths-used", "%", "ports upwards that carry data, of those of leaves that send: a port counts from a twentieth of its equal share of the leaf's bytes on; mean over the leaves", true, false},
	{"utilisation-min", "%", "the same of the idlest link, while flows begin", true, false},
	{"dropped", "%", "packets that found no room in a queue, of all that came to a switch", false, false},
	{"pauses", "1/s", "PFC pause frames sent, per second of the run", false, false},
	{"paused", "%", "time that ports between switches were paused, of the run, mean over the ports", false, false},
	{"recirculated", "%", "packets that a switch recirculated, of all that came to one", false, false},
	{"copies", "%", "bytes of clones, reports and probes, of all bytes delivered", false, false},
	{"probe-load", "%", "bytes of probes on the links between switches, of what these can carry", false, false},
	{"decision-delay", "ms", "age of the news of a port at the moment of the decision that used it, mean over the decisions; none for schemes that use no news", false, false},
	{"granularity", "packets", "PDLB: size of the flowcells, mean", false, false},
}, fitMetrics())

// FittedDegrees lists the degrees of the polynomials in QALL's Table I.
var FittedDegrees = []int{1, 2, 3, 5, 8, 10}

// fitMetrics returns the metrics of the fitted polynomials, for each degree.
func fitMetrics() []Metric {
	list := []Metric{
		{"fit-rows", "rows", "observations of ports, where the experiment has them fitted", true, false},
		{"fit-pearson-l", "", "correlation of a port's traffic with its queue", true, false},
		{"fit-pearson-t", "", "correlation of a port's traffic with the interval between its packets", false, false},
	}
	for _, degree := range FittedDegrees {
		list = append(list,
			Metric{fmt.Sprintf("fit-r2-%d", degree), "", fmt.Sprintf("R² of the fit of degree %d, over the rows held back", degree), true, false},
			Metric{fmt.Sprintf("fit-mre-%d", degree), "", fmt.Sprintf("mean relative error of the fit of degree %d", degree), false, false},
		)
	}
	return list
}

// A Measure is a Metric, optionally of one class.
type Measure struct {
	*Metric
	Class int // in Experiment.Classes; -1: all flows
	Key   string
}

// MetricNamed finds a metric by its name, with a class behind a colon.
func MetricNamed(name string, classes []Class) (Measure, error) {
	base, class, byClass := strings.Cut(name, ":")
	i := slices.IndexFunc(metrics, func(m Metric) bool { return m.Name == base })
	if i < 0 && base == "overtaken" {
		return Measure{}, errors.New("overtaken is called reordered now; what used to be reordered is out-of-order")
	}
	if i < 0 {
		names := lists.Map(metrics, func(m Metric) string { return m.Name })
		return Measure{}, fmt.Errorf("there is no metric %q: there are %s", base, strings.Join(names, ", "))
	}
	c := Measure{&metrics[i], -1, name}
	if !byClass {
		return c, nil
	}
	if !c.ByClass {
		return Measure{}, fmt.Errorf("metric %s is not measured by class", base)
	}
	if c.Class = slices.IndexFunc(classes, func(k Class) bool { return k.Name == class }); c.Class < 0 {
		return Measure{}, fmt.Errorf("metric %s: there is no class %q", name, class)
	}
	return c, nil
}

// AllMetrics are all that an experiment's runs are measured by.
func AllMetrics(classes []Class) []Measure {
	var list []Measure
	for i := range metrics {
		list = append(list, Measure{&metrics[i], -1, metrics[i].Name})
		if metrics[i].ByClass && len(classes) > 1 {
			for k, class := range classes {
				list = append(list, Measure{&metrics[i], k, metrics[i].Name + ":" + class.Name})
			}
		}
	}
	return list
}

// Label is what tables call the metric.
func (c Measure) Label() string {
	if c.Unit == "" {
		return c.Key
	}
	return c.Key + " (" + c.Unit + ")"
}
