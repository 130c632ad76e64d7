package spec

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/p4lb/p4lb/internal/text/lists"
	"github.com/p4lb/p4lb/internal/text/plain"
)

// A Metric is a number that a run measures.
type Metric struct {
	Name  string
	Unit  string
	About string

	// Higher: larger values are better.
	Higher bool
	// ByClass: the metric also exists for each class of flows, as in fct-p99:short.
	ByClass bool
}

// defaultMetrics lists the columns of an experiment that names no metrics. short is the class of
// the smallest flows. UDP has lost packets instead of retransmissions.
func defaultMetrics(transport, short string, collective bool) []string {
	if collective {
		return []string{"cct", "cct-ratio", "bus-bandwidth", "fct-p99", "straggler-share", "link-imbalance", "reordered", "retransmitted"}
	}
	if transport == "udp" {
		return []string{"fct-mean", "fct-p99", "fct-mean:" + short, "throughput", "dropped", "reordered", "queue-mean", "sharing"}
	}
	return []string{"fct-mean", "fct-p99", "fct-mean:" + short, "slowdown-mean", "reordered", "retransmitted", "queue-mean", "sharing"}
}

// Metrics lists all metrics.
func Metrics() []Metric { return slices.Clone(metrics) }

var metrics = slices.Concat([]Metric{
	{"fct-mean", "ms", "flow completion time, from the start of a flow to the arrival of its last byte: mean over the flows", false, true},
	{"fct-p50", "ms", "flow completion time: median over the flows", false, true},
	{"fct-p99", "ms", "flow completion time: 99th percentile over the flows", false, true},
	{"fct-acked-mean", "ms", "time from the start of a flow until its sender has the acknowledgment of all its bytes: mean over the flows", false, true},
	{"fct-acked-p99", "ms", "time until the sender has the acknowledgment of all bytes: 99th percentile over the flows", false, true},
	{"fct-max", "ms", "for collectives and flow lists: completion time of the slowest flow", false, true},
	{"slowdown-mean", "", "completion time of a flow, divided by the minimum time in the same network without other flows (any paths, no window); at least 1; mean over the flows", false, true},
	{"slowdown-p50", "", "slowdown: median over the flows", false, true},
	{"slowdown-p99", "", "slowdown: 99th percentile over the flows", false, true},
	{"request-mean", "ms", "for incast: time from a request to the last byte of its last answer, mean over the requests", false, false},
	{"request-p99", "ms", "for incast: time of a request, 99th percentile over the requests", false, false},
	{"cct", "ms", "collective completion time, from the start of a collective or flow list to the arrival of its last byte: mean over the iterations", false, false},
	{"cct-p99", "ms", "collective completion time: 99th percentile over the iterations", false, false},
	{"cct-ideal", "ms", "lower bound of the collective completion time: the longest chain of its messages in an idle network, or the busiest host's link at full rate", false, false},
	{"cct-ratio", "", "collective completion time divided by cct-ideal", false, false},
	{"algorithm-bandwidth", "Gbit/s", "buffer size of a rank divided by the collective completion time, as in nccl-tests", true, false},
	{"bus-bandwidth", "Gbit/s", "algorithm bandwidth times the fraction of the buffer that each link carries, as in nccl-tests", true, false},
	{"straggler-share", "%", "time between the last byte of the median rank and the last byte of the last rank, as a fraction of the collective completion time", false, false},
	{"iteration-time", "ms", "time of an iteration: of a collective, between the starts of two iterations, including computation; of a job, from its start to the end of its last finished iteration, divided by the number of iterations; mean over the jobs", false, false},
	{"iteration-ratio", "", "for jobs: iteration time divided by its lower bound, in which each message is alone in the network and the links of hosts are never idle without need; mean over the jobs", false, false},
	{"step-time", "ms", "for jobs: time of a collective operation in one group of ranks, or of a message between stages of the pipeline; mean", false, false},
	{"step-ratio", "", "for jobs: step time divided by its lower bound; mean", false, false},
	{"exposed-communication", "ms", "for jobs: time of an iteration in which a rank does not compute, but waits for messages; mean over the ranks, the iterations and the jobs", false, false},
	{"exposed-ratio", "", "for jobs: exposed communication divided by the exposed communication in the lower bound of the iteration time; none if the lower bound has none", false, false},
	{"throughput", "Mbit/s", "payload delivered per second to all hosts, while flows start", true, false},
	{"flow-rate", "Mbit/s", "payload of a flow divided by its completion time: mean over the flows", true, true},
	{"unfinished", "%", "fraction of flows that had not finished at the end of the run; their completion time counts until the end", false, true},
	{"out-of-order", "%", "data packets that reached the receiver before an earlier packet of their flow, because of reordering or because of a loss, as a fraction of all sent", false, true},
	{"reordered", "%", "data packets that a later packet of the same flow overtook in the network, as a fraction of all sent: the reordering that the load balancer causes", false, true},
	{"degree-p99", "packets", "out-of-order degree: packets that a receiver buffers until the missing packet arrives; maximum of each flow, 99th percentile over the flows", false, true},
	{"dupacks", "%", "fraction of flows with a duplicate ACK", false, true},
	{"dupacks-3", "%", "fraction of flows with more than three duplicate ACKs in a row", false, true},
	{"retransmitted", "%", "data packets sent again, as a fraction of all sent", false, true},
	{"timeouts", "1/flow", "retransmission timeouts: mean over the flows", false, true},
	{"marked", "%", "data packets that arrived with an ECN mark, as a fraction of all sent", false, true},
	{"trimmed", "%", "for uec: data packets that arrived without their payload, as a fraction of all sent", false, true},
	{"recovery", "ms", "with faults: time from the start of a fault to the last packet that a fault loses; maximum over the faults, 0 if none loses packets", false, false},
	{"queue-mean", "%", "occupancy of the queues from leaves to spines, as a fraction of their capacity: mean over ports and samples, while flows start", false, false},
	{"queue-p99", "%", "occupancy of the queues from leaves to spines: 99th percentile over ports and samples", false, false},
	{"queue-variance", "", "variance of that occupancy, on a scale of 0 to 1, over ports and samples", false, false},
	{"sharing", "%", "load imbalance: utilisation of a leaf's busiest uplink divided by the least used one's, minus 1, in each fifth of the time; mean over these and the leaves", false, false},
	{"link-imbalance", "%", "for collectives and flow lists: utilisation of the busiest uplink divided by the mean of all uplinks, minus 1, until the last flow finishes", false, false},
	{"buffer-peak", "KB", "for collectives and flow lists: maximum bytes queued in one switch", false, false},
	{"utilisation", "%", "bytes sent on the uplinks as a fraction of their capacity, while flows start", true, false},
	{"utilisation-whole", "%", "bytes sent on the uplinks as a fraction of their capacity, until the last flow finishes", true, false},
	{"paths-used", "%", "fraction of the uplinks that carry data, mean over the leaves that send; an uplink counts if it carries at least 5 % of its equal share of the leaf's bytes", true, false},
	{"utilisation-min", "%", "utilisation of the least used uplink, while flows start", true, false},
	{"dropped", "%", "packets that a full queue dropped, as a fraction of all that arrived at a switch", false, false},
	{"pauses", "1/s", "PFC pause frames sent, per second of the run", false, false},
	{"paused", "%", "time that ports between switches were paused, as a fraction of the run: mean over the ports", false, false},
	{"recirculated", "%", "packets that a switch recirculated, as a fraction of all that arrived at a switch", false, false},
	{"copies", "%", "bytes of clones, reports and probes, as a fraction of all bytes delivered", false, false},
	{"probe-load", "%", "bytes of probes on the links between switches, as a fraction of the capacity of these links", false, false},
	{"decision-delay", "ms", "age of a port's state when a decision uses it: mean over the decisions; none for schemes without such state", false, false},
	{"granularity", "packets", "for PDLB: mean size of the flowcells", false, false},
}, fitMetrics())

// jobMetrics also exist for each job, as in iteration-time:NAME. They are the default columns of
// an experiment with jobs.
var jobMetrics = []string{"iteration-time", "iteration-ratio", "step-time", "step-ratio", "exposed-communication", "exposed-ratio"}

// ByJob reports whether the metric also exists for each job.
func (m *Metric) ByJob() bool { return slices.Contains(jobMetrics, m.Name) }

// Metric finds a metric by name, or one that the caller of Load has defined. It returns an error
// for a metric of an unknown job.
func (x *Experiment) Metric(name string) (Measure, error) {
	if i := slices.IndexFunc(x.origin.own, func(m Metric) bool { return m.Name == name }); i >= 0 {
		return Measure{&x.origin.own[i], -1, name}, nil
	}
	m, err := MetricNamed(name, x.Classes)
	if base, job, of := strings.Cut(name, ":"); err == nil && of && m.ByJob() && !slices.Contains(x.JobNames(), job) {
		return m, fmt.Errorf("metric %s: there is no job %q in jobs of %s", base, job, cmp.Or(x.Name, "the experiment"))
	}
	return m, err
}

// FittedDegrees lists the degrees of the polynomials in QALL's Table I.
var FittedDegrees = []int{1, 2, 3, 5, 8, 10}

// fitMetrics returns the metrics of the fitted polynomials, for each degree.
func fitMetrics() []Metric {
	list := []Metric{
		{"fit-rows", "rows", "observations of ports used for the fit, if the experiment fits polynomials", true, false},
		{"fit-pearson-l", "", "correlation between the traffic and the queue length of a port", true, false},
		{"fit-pearson-t", "", "correlation between the traffic of a port and the interval between its packets", false, false},
	}
	for _, degree := range FittedDegrees {
		list = append(list,
			Metric{fmt.Sprintf("fit-r2-%d", degree), "", fmt.Sprintf("R² of the fit of degree %d on the test rows", degree), true, false},
			Metric{fmt.Sprintf("fit-mre-%d", degree), "", fmt.Sprintf("mean relative error of the fit of degree %d", degree), false, false},
		)
	}
	return list
}

// A Measure is a Metric, optionally of one class.
type Measure struct {
	*Metric
	Class int // index in Experiment.Classes; -1: all flows
	Key   string
}

// MetricNamed finds a metric by name, with an optional class after a colon.
func MetricNamed(name string, classes []Class) (Measure, error) {
	base, class, byClass := strings.Cut(name, ":")
	i := slices.IndexFunc(metrics, func(m Metric) bool { return m.Name == base })
	if base == "overtaken" {
		return Measure{}, errors.New("overtaken is now called reordered, and the former reordered is now out-of-order")
	}
	if i < 0 {
		names := lists.Map(metrics, func(m Metric) string { return m.Name })
		if meant := plain.Nearest(base, names); meant != "" {
			return Measure{}, fmt.Errorf("there is no metric %q; did you mean %s?", base, meant)
		}
		return Measure{}, fmt.Errorf("there is no metric %q (p4lb lab list metrics lists them)", base)
	}
	c := Measure{&metrics[i], -1, name}
	if !byClass {
		return c, nil
	}
	one := metrics[i]
	if one.ByJob() {
		one.About += "; only of job " + class
		c.Metric = &one
		return c, nil
	}
	if !c.ByClass {
		return Measure{}, fmt.Errorf("metric %s is not measured by class", base)
	}
	if c.Class = slices.IndexFunc(classes, func(k Class) bool { return k.Name == class }); c.Class < 0 {
		return Measure{}, fmt.Errorf("metric %s: there is no class %q", name, class)
	}
	one.About += "; only of " + class + " flows, " + sizes(classes, c.Class)
	c.Metric = &one
	return c, nil
}

// sizes describes a class by its limits; classes are sorted by size, and the last has none.
func sizes(classes []Class, i int) string {
	upto := classes[i].Upto
	switch {
	case len(classes) == 1:
		return "of any size"
	case i == 0:
		return fmt.Sprintf("of up to %v", upto)
	case upto == 0:
		return fmt.Sprintf("of more than %v", classes[i-1].Upto)
	}
	return fmt.Sprintf("of more than %v and up to %v", classes[i-1].Upto, upto)
}

// AllMetrics lists all metrics of an experiment with the given classes and jobs.
func AllMetrics(classes []Class, jobs []string) []Measure {
	var list []Measure
	for i := range metrics {
		list = append(list, Measure{&metrics[i], -1, metrics[i].Name})
		if metrics[i].ByClass && len(classes) > 1 {
			for k, class := range classes {
				list = append(list, Measure{&metrics[i], k, metrics[i].Name + ":" + class.Name})
			}
		}
		if metrics[i].ByJob() {
			for _, job := range jobs {
				list = append(list, Measure{&metrics[i], -1, metrics[i].Name + ":" + job})
			}
		}
	}
	return list
}

// Label returns the metric's heading in tables.
func (c Measure) Label() string {
	if c.Unit == "" {
		return c.Key
	}
	return c.Key + " (" + c.Unit + ")"
}
