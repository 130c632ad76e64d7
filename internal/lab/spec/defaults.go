package spec

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/p4lb/p4lb/internal/network/fabric"
	"github.com/p4lb/p4lb/internal/sim"
	"github.com/p4lb/p4lb/internal/text/lists"
)

// The engines.
const (
	EngineP4     = "p4"     // every switch runs the generated program
	EngineNative = "native" // every switch runs the reference model
)

// Sources of scheme parameters that an experiment does not set.
const (
	DefaultValues = "default" // the catalogue's values, which are not adapted to a network
	AdvisedValues = "advised" // values that package advice computes for the network
)

// The origins of probes on Tofino.
const (
	fromController = "controller"
	FromGenerator  = "generator"
)

// The candidates among which a scheme chooses.
const (
	byPorts = "ports"
	ByPaths = "paths"
)

// Transports lists the transports of hosts.
var Transports = []string{"tcp", "dctcp", "dcqcn", "udp", "uec"}

// Defaults of an experiment, for flags and files. The fabric is the bottleneck, flows end within
// the run, and a run of about a minute has enough flows to distinguish schemes.
const (
	DefaultTopology = "leaf-spine"
	DefaultWorkload = "websearch"
	DefaultPattern  = Halves
	DefaultLoadOf   = OfFabric
	DefaultCut      = Cut(2 * 1000 * 1000)
	DefaultLoad     = 0.7
	DefaultSeeds    = 5
	DefaultFlows    = 1000 // number of flows that start in the duration

	fixedDuration  = Time(time.Second) // duration if flows do not arrive at a rate
	defaultWarmup  = 0.05
	defaultLatency = Time(100 * time.Microsecond)
	defaultECN     = Threshold(65) // marking threshold for longer queues
	usualQueue     = 64            // packets, as in simple_switch

	collectiveDuration = Time(time.Millisecond)
	collectiveDrain    = Time(10 * time.Second)
)

// defaultClasses are the mice and elephants of the papers.
var defaultClasses = []Class{{"short", 100 * 1000}, {"medium", 1000 * 1000}, {"long", 0}}

// defaults fills in missing values of an experiment.
func (x *Experiment) defaults() {
	if len(x.Loads) == 0 {
		x.Loads = []LoadLevel{DefaultLoad}
	}
	if len(x.Seeds) == 0 {
		x.Seeds = FirstSeeds(DefaultSeeds)
	}
	x.Engine = cmp.Or(x.Engine, EngineP4)
	x.Latency = cmp.Or(x.Latency, defaultLatency)
	if len(x.Classes) == 0 {
		x.Classes = defaultClasses
	}
	x.noTraffic = len(x.Traffic) == 0
	x.Setting.defaults()
	if x.MetricsAsked = len(x.Metrics) > 0; !x.MetricsAsked {
		x.Metrics = defaultMetrics(x.Transport.Kind, x.Classes[0].Name, x.Collective())
		if len(x.Jobs) > 0 || slices.ContainsFunc(x.Cases, func(c Case) bool { return len(c.Jobs) > 0 }) {
			x.Metrics = slices.Clone(jobMetrics)
		}
	}
	if len(x.Cases) == 0 {
		x.Cases = []Case{{}}
	}
	for i := range x.Cases {
		x.Cases[i].inherit(x)
	}
	for i := range x.Schemes {
		s := &x.Schemes[i]
		s.settleArch(x.Arch)
		s.Label = cmp.Or(s.Label, s.name())
		s.engineGiven = s.Engine != ""
		s.Engine = cmp.Or(s.Engine, x.Engine)
		s.StatePath = cmp.Or(s.StatePath, x.State)
	}
}

// defaults fills in missing values that do not depend on the network. settle fills in the others.
func (s *Setting) defaults() {
	if s.Topology == (Network{}) {
		s.Topology.Name = DefaultTopology
	}
	if len(s.Traffic) == 0 && len(s.Jobs) == 0 {
		s.Traffic = []Traffic{{}}
	}
	for i := range s.Traffic {
		s.Traffic[i].defaults()
	}
	if s.Collective() {
		// Messages start when others end, not at a rate. So there is no warm-up,
		// but time for the last message.
		s.Duration = cmp.Or(s.Duration, collectiveDuration)
		if s.Drain == 0 {
			s.Drain = collectiveDrain
			for i := range s.Jobs {
				s.Drain = min(s.Drain+Time(s.Jobs[i].computing()), Time(maxTime))
			}
		}
		if !s.Warmup.given {
			s.Warmup = NoWarmup()
		}
	}
	if !s.Warmup.given {
		s.Warmup = Warmup{Share: defaultWarmup}
	}
	s.Drain = cmp.Or(s.Drain, drainFactor*s.Duration)
	s.Transport.Kind = cmp.Or(s.Transport.Kind, "tcp")
}

// The choices of source ports.
const (
	// RandomPorts are drawn from the seed, for each path of each flow, or of each
	// connection of a collective.
	RandomPorts      = "random"
	consecutivePorts = "consecutive" // numbered by flow
)

// settleDependent fills in defaults of flows that wait for others. They have no warm-up, because
// they do not arrive at a rate. Only their source ports depend on the seed, so these are random
// by default.
func (s *Setting) settleDependent() {
	ports := RandomPorts
	if s.Switches.Hash == hashLikeNS3 {
		ports = consecutivePorts // ns-3's hosts use these
	}
	if s.Collective() {
		s.Transport.Ports = cmp.Or(s.Transport.Ports, ports)
		return
	}
	waits := false
	for i := range s.Traffic {
		if s.Traffic[i].Pattern != List {
			return
		}
		waits = waits || slices.ContainsFunc(s.Traffic[i].flows, func(f Flow) bool { return f.Waits != nil })
	}
	if !waits {
		return
	}
	s.Transport.Ports = cmp.Or(s.Transport.Ports, ports)
	if !s.Warmup.given {
		s.Warmup = NoWarmup()
	}
}

// drainFactor is the time that a run waits for its last flows, in durations.
const drainFactor = 20

func (t *Traffic) defaults() {
	if t.Pattern == "" {
		switch {
		case t.File != "":
			t.Pattern = List
		case t.Collective != "":
			t.Pattern = Collective
		case len(t.From)+len(t.To) > 0:
			t.Pattern = AllToAll // Halves refers to all hosts
		default:
			t.Pattern = DefaultPattern
		}
	}
	if t.Workload == "" && t.Size == 0 && t.Collective == "" {
		t.Workload = DefaultWorkload
	}
	if t.draws() {
		t.Cut = cmp.Or(t.Cut, DefaultCut)
	}
	if t.hasLoad() {
		t.LoadOf = cmp.Or(t.LoadOf, DefaultLoadOf)
	}
	if t.Pattern == Incast && t.Degree == 0 {
		t.Degree = 15
	}
}

// draws reports whether the sizes of the flows are drawn from a distribution.
func (t *Traffic) draws() bool { return t.Size == 0 && t.Pattern != List && t.Pattern != Collective }

// hasLoad reports whether the arrival rate of the flows follows from a load.
func (t *Traffic) hasLoad() bool {
	return t.Rate == 0 && len(t.At) == 0 && t.Pattern != List && t.Pattern != Collective
}

// HasLoad reports whether the arrival rate of any flows in the case follows from a
// load.
func (c *Case) HasLoad() bool {
	return slices.ContainsFunc(c.Traffic, func(t Traffic) bool { return t.hasLoad() })
}

// settle fills in values of a case that depend on its network: the duration and the marking
// threshold. Flows must have been resolved.
func (c *Case) settle(t *fabric.Topology) error {
	if c.Duration == 0 {
		length, err := c.lengthFor(DefaultFlows, t)
		if err != nil {
			return err
		}
		c.Duration = cmp.Or(length, fixedDuration)
	}
	c.Drain = cmp.Or(c.Drain, drainFactor*c.Duration)
	if w := &c.Switches; w.ECN == 0 && w.KMax == 0 && c.marks() {
		w.ECN = defaultECN
		if n, _ := c.advisedOn(t); n.Buffer <= int(defaultECN) {
			w.ECN = Threshold(max(1, n.Buffer/4))
		}
	}
	return nil
}

// marks reports whether a transport of the setting needs an ECN threshold in packets.
func (s *Setting) marks() bool {
	return s.Uses("dctcp") || s.Uses("dcqcn")
}

// MarksByBDP reports whether ECN thresholds follow the bandwidth-delay product: no thresholds are
// set, and only Ultra Ethernet reacts to marks.
func (s *Setting) MarksByBDP() bool {
	return s.Switches.ECN == 0 && s.Switches.KMax == 0 && s.Uses("uec") && !s.marks()
}

// MarksFabric reports whether only links between switches mark packets by default: receivers grant
// credit for their own link.
func (s *Setting) MarksFabric() bool {
	return s.MarksByBDP() && s.Transport.UEC.Control == sim.UECControls()[sim.UECCredit]
}

// Uses reports whether flows have a kind of transport.
func (s *Setting) Uses(kind string) bool {
	return s.Transport.Kind == kind || slices.ContainsFunc(s.Traffic, func(t Traffic) bool { return t.Kind == kind })
}

// Trims reports whether switches trim packets.
func (s *Setting) Trims() bool {
	return s.Uses("uec") && cmp.Or(s.Transport.UEC.Loss, sim.UECLosses()[sim.UECTrim]) == sim.UECLosses()[sim.UECTrim]
}

// lengthFor returns the time in which n flows start on average, at the smallest load of the case,
// to two digits. It returns 0 if flows do not arrive at a rate.
func (c *Case) lengthFor(n float64, t *fabric.Topology) (Time, error) {
	if slices.ContainsFunc(c.Traffic, func(t Traffic) bool { return t.Flows > 0 }) {
		return 0, nil
	}
	one := *c
	one.Duration = Time(time.Second)
	o, ok := one.Offer(t, float64(slices.Min(c.Loads)))
	if !ok {
		return 0, nil
	}
	length := n / o.Flows * 1e9 // ns
	digit := math.Pow(10, math.Floor(math.Log10(length))-1)
	length = math.Ceil(length/digit) * digit
	if !(length < float64(maxTime)) {
		return 0, fmt.Errorf("%.0f flows would take %.3g hours to begin: want a duration", n, length/float64(time.Hour))
	}
	return max(1, Time(length)), nil
}

// Collective reports whether all traffic is collectives and jobs.
func (s *Setting) Collective() bool {
	return !slices.ContainsFunc(s.Traffic, func(t Traffic) bool { return t.Pattern != Collective })
}

// inherit copies the experiment's values that the case does not set.
func (c *Case) inherit(x *Experiment) {
	c.Topology = cmp.Or(c.Topology, x.Topology)
	c.Links = lists.Or(c.Links, x.Links)
	c.Fail = lists.Or(c.Fail, x.Fail)
	c.MTU = cmp.Or(c.MTU, x.MTU)
	c.IPv6 = c.IPv6 || x.IPv6
	c.Jobs = slices.Clone(lists.Or(c.Jobs, x.Jobs))
	if len(c.Jobs) == 0 || !x.noTraffic {
		c.Traffic = lists.Or(c.Traffic, x.Traffic)
	}
	if c.Transport.Kind == "" {
		c.Transport = x.Transport
	}
	c.Switches = cmp.Or(c.Switches, x.Switches)
	c.Like = cmp.Or(c.Like, x.Like)
	c.Lines = cmp.Or(c.Lines, x.Lines)
	c.Ties = cmp.Or(c.Ties, x.Ties)
	c.Faults = lists.Or(c.Faults, x.Faults)
	if c.Duration == 0 {
		c.Duration = x.Duration
		c.Drain = cmp.Or(c.Drain, x.Drain)
	}
	if !c.Warmup.given {
		c.Warmup = x.Warmup
	}
	c.Loads = lists.Or(c.Loads, x.Loads)
	c.Seeds = lists.Or(c.Seeds, x.Seeds)
	c.Setting.defaults()
	c.Setting.as(c.Like)
}

// WarmupTime returns the end of the warm-up. Flows that start earlier do not count.
func (s *Setting) WarmupTime() time.Duration {
	if s.Warmup.Time > 0 {
		return time.Duration(s.Warmup.Time)
	}
	return time.Duration(s.Warmup.Share * float64(s.Duration))
}

// Whole returns the experiment at the paper's size.
func (x *Experiment) Whole() *Experiment {
	if x.Full == nil {
		return x
	}
	whole := *x
	f := *x.Full
	f.inherit(x)
	whole.Setting, whole.Loads, whole.Seeds, whole.Full, whole.Scaled = f.Setting, f.Loads, f.Seeds, nil, ""
	whole.Cases = slices.Clone(x.Cases)
	for i := range whole.Cases {
		c := &whole.Cases[i]
		if x.Full.Topology != (Network{}) {
			c.Topology = f.Topology
		}
		if x.Full.Duration != 0 {
			c.Duration, c.Warmup, c.Drain = f.Duration, f.Warmup, f.Drain
		}
		if x.Full.Loads != nil {
			c.Loads = f.Loads
		}
		if x.Full.Seeds != nil {
			c.Seeds = f.Seeds
		}
		if c.ceiling != "" {
			if err := c.Setting.removeEffect(c.ceiling); err != nil {
				panic(err) // the smaller experiment has passed the same checks
			}
		}
	}
	return &whole
}

// SchemesOf returns the rows of a case.
func (x *Experiment) SchemesOf(c *Case) []*Scheme {
	var list []*Scheme
	for i := range x.Schemes {
		if s := &x.Schemes[i]; len(c.Schemes) == 0 || slices.Contains(c.Schemes, s.Label) {
			list = append(list, s)
		}
	}
	return list
}

// Runs returns the number of runs of an experiment: one for each row, case, load and seed. It may
// exceed the range of an int.
func (x *Experiment) Runs() float64 {
	n := 0.0
	for i := range x.Cases {
		c := &x.Cases[i]
		n += float64(len(c.Loads)) * float64(len(x.SchemesOf(c))) * float64(len(c.Seeds))
	}
	return n
}

// DefaultInterval returns the default time between samples.
func DefaultInterval(length time.Duration) time.Duration {
	return max(length/sampleCount, 10*time.Microsecond)
}

// sampleCount is the number of samples per run if no interval is given.
const sampleCount = 200
