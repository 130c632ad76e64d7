package spec

import (
	"cmp"
	"slices"
	"time"

	"github.com/p4lb/p4lb/internal/text/lists"
)

// The engines.
const (
	EngineP4     = "p4"     // every switch runs the generated program
	EngineNative = "native" // every switch runs the reference model
)

// What the parameters of schemes are that an experiment does not set.
const (
	DefaultValues = "default" // those of the catalogue, which are for no network in particular
	AdvisedValues = "advised" // what package advice computes for the network
)

// Where probes come from on Tofino.
const (
	fromController = "controller"
	FromGenerator  = "generator"
)

// What a scheme chooses among.
const (
	byPorts = "ports"
	ByPaths = "paths"
)

// Transports lists what hosts can send with.
var Transports = []string{"tcp", "dctcp", "dcqcn", "udp"}

// The defaults of an experiment.
const (
	defaultDuration = Time(time.Second)
	defaultWarmup   = 0.05
	defaultLoad     = 0.7
	defaultLatency  = Time(100 * time.Microsecond)
	usualQueue      = 64 // packets, as simple_switch has them
)

// defaultClasses are the mice and elephants that the papers speak of.
var defaultClasses = []Class{{"short", 100 * 1000}, {"medium", 1000 * 1000}, {"long", 0}}

// defaults fills in what an experiment leaves out.
func (x *Experiment) defaults() {
	if len(x.Loads) == 0 {
		x.Loads = []LoadLevel{defaultLoad}
	}
	if len(x.Seeds) == 0 {
		x.Seeds = Seeds{1}
	}
	x.Engine = cmp.Or(x.Engine, EngineP4)
	x.Values = cmp.Or(x.Values, DefaultValues)
	x.Latency = cmp.Or(x.Latency, defaultLatency)
	if len(x.Classes) == 0 {
		x.Classes = defaultClasses
	}
	x.Setting.defaults()
	if len(x.Metrics) == 0 {
		x.Metrics = defaultMetrics(x.Transport.Kind)
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
		s.Engine = cmp.Or(s.Engine, x.Engine)
		s.StatePath = cmp.Or(s.StatePath, x.State)
	}
}

func (s *Setting) defaults() {
	if s.Topology == (Network{}) {
		s.Topology.Name = "qall"
	}
	if len(s.Traffic) == 0 {
		s.Traffic = []Traffic{{}}
	}
	s.Duration = cmp.Or(s.Duration, defaultDuration)
	if !s.Warmup.given {
		s.Warmup = Warmup{Share: defaultWarmup}
	}
	s.Drain = cmp.Or(s.Drain, 20*s.Duration)
	s.Transport.Kind = cmp.Or(s.Transport.Kind, "tcp")
	for i := range s.Traffic {
		t := &s.Traffic[i]
		if t.Pattern == "" {
			t.Pattern = AllToAll
			if t.File != "" {
				t.Pattern = List
			}
		}
		if t.Workload == "" && t.Size == 0 {
			t.Workload = "websearch"
		}
		if t.Pattern == Incast && t.Degree == 0 {
			t.Degree = 15
		}
	}
}

// inherit takes over what the case leaves as it is.
func (c *Case) inherit(x *Experiment) {
	c.Topology = cmp.Or(c.Topology, x.Topology)
	c.Links = lists.Or(c.Links, x.Links)
	c.Fail = lists.Or(c.Fail, x.Fail)
	c.Traffic = lists.Or(c.Traffic, x.Traffic)
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

// WarmupTime is the time before which flows do not count.
func (s *Setting) WarmupTime() time.Duration {
	if s.Warmup.Time > 0 {
		return time.Duration(s.Warmup.Time)
	}
	return time.Duration(s.Warmup.Share * float64(s.Duration))
}

// Whole is the experiment as the paper has it, without what was scaled down.
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
			if err := c.Setting.lift(c.ceiling); err != nil {
				panic(err) // it could be in the smaller one, which has been checked
			}
		}
	}
	return &whole
}

// SchemesOf lists the rows of a case.
func (x *Experiment) SchemesOf(c *Case) []*Scheme {
	var list []*Scheme
	for i := range x.Schemes {
		if s := &x.Schemes[i]; len(c.Schemes) == 0 || slices.Contains(c.Schemes, s.Label) {
			list = append(list, s)
		}
	}
	return list
}

// Runs is how many runs an experiment has, one for each seed of a row at a load;
// it may be more than there is room for.
func (x *Experiment) Runs() float64 {
	n := 0.0
	for i := range x.Cases {
		c := &x.Cases[i]
		n += float64(len(c.Loads)) * float64(len(x.SchemesOf(c))) * float64(len(c.Seeds))
	}
	return n
}

// DefaultInterval is the time between samples of who says nothing about it.
func DefaultInterval(length time.Duration) time.Duration {
	return max(length/sampleCount, 10*time.Microsecond)
}

// sampleCount is the number of samples of a run whose interval is not given.
const sampleCount = 200
