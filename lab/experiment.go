package lab

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/p4lb/p4lb/advice"
	"github.com/p4lb/p4lb/codegen"
	"github.com/p4lb/p4lb/fabric"
	"github.com/p4lb/p4lb/scheme"
	"github.com/p4lb/p4lb/sim"
)

// An Experiment compares schemes in one network under the same flows. Each
// scheme is run in each case at each load with each seed.
type Experiment struct {
	File    string   `yaml:"-"` // of a paper's experiment: its name for PaperFile
	Name    string   `yaml:"name"`
	About   string   `yaml:"about"`
	Paper   string   `yaml:"paper"`
	Figures []string `yaml:"figures"`
	Assumed []string `yaml:"assumed"` // what the paper leaves out, and was chosen here
	Scaled  string   `yaml:"scaled"`  // what is smaller than in the paper

	Setting `yaml:",inline"`

	Schemes  []Scheme    `yaml:"schemes"`
	Blocks   string      `yaml:"blocks"` // a folder of blocks and rows beside the catalogue's
	Loads    []LoadLevel `yaml:"loads"`
	Seeds    Seeds       `yaml:"seeds"`
	Engine   string      `yaml:"engine"`
	Values   string      `yaml:"parameters"` // of the schemes that are not set: default, or advised for each network
	Arch     string      `yaml:"arch"`       // that the programs are for: v1model, tna or t2na
	Probes   string      `yaml:"probes"`     // on Tofino: from the controller, or from the packet generator, which knows no latency
	State    string      `yaml:"state-path"` // of the schemes that have one: recirc, shared where a switch reads its queues at once, or ghost
	Interval Time        `yaml:"interval"`   // between samples of the links
	Latency  Time        `yaml:"latency"`    // of a controller task: from its look to its effect
	Classes  []Class     `yaml:"classes"`    // of flows, by size
	Metrics  []string    `yaml:"metrics"`    // of the table
	Observe  *Observing  `yaml:"observe"`    // and fit, for the metrics that begin with fit-

	Ceiling []string `yaml:"ceiling"` // what the best possible scheme could save: see Ceilings
	Vary    *Vary    `yaml:"vary"`    // what a paper leaves open
	Cases   []Case   `yaml:"cases"`
	Full    *Case    `yaml:"full"` // as the paper has it, where that takes long
	Targets []Target `yaml:"targets"`

	origin origin
	figure string // that the experiment has been cut to; "" is all
	files  *files // that it names, as they were read
}

// An origin is what an experiment was read from, so that it can be read once more
// with other choices.
type origin struct {
	file    string
	text    []byte
	read    Reader
	library *scheme.Library
}

// A Setting is what a case may change of an experiment.
type Setting struct {
	Topology  Network       `yaml:"topology"`
	Links     []LinkChange  `yaml:"links"`
	Fail      []string      `yaml:"fail"` // links that are down from the start
	Traffic   []Traffic     `yaml:"traffic"`
	Transport TransportSpec `yaml:"transport"`
	Switches  SwitchSpec    `yaml:"switches"`
	Like      string        `yaml:"like"` // what choices of modelling that are not given are like: see Presets
	Ties      string        `yaml:"ties"` // which of two events at the same time comes first
	Faults    []Fault       `yaml:"faults"`
	Duration  Time          `yaml:"duration"` // in which flows start
	Warmup    Warmup        `yaml:"warmup"`   // flows that start earlier do not count
	Drain     Time          `yaml:"drain"`    // for the last flows to end
}

// A Case is an experiment with something changed.
type Case struct {
	Name    string            `yaml:"name"`
	X       float64           `yaml:"x"` // its place on the axis, where cases are a sweep
	Setting `yaml:",inline"`  // what is not given is as in the experiment
	Loads   []LoadLevel       `yaml:"loads"`
	Seeds   Seeds             `yaml:"seeds"`
	Schemes []string          `yaml:"schemes"` // labels; empty: all
	Set     map[string]string `yaml:"set"`     // parameters of all schemes that have them

	ceilingOf, ceiling string // of a ceiling: the case that it is one of, and which
}

// A Network is the topology of an experiment: a preset or file, or a maker.
type Network struct {
	Name      string     `yaml:"-"`
	LeafSpine *LeafSpine `yaml:"leaf-spine"`
	FatTree   *FatTree   `yaml:"fat-tree"`
}

// LeafSpine is fabric.LeafSpine as a file writes it.
type LeafSpine struct {
	Leaves           int     `yaml:"leaves"`
	Spines           int     `yaml:"spines"`
	Parallel         int     `yaml:"parallel"`
	Hosts            int     `yaml:"hosts"`
	Oversubscription float64 `yaml:"oversubscription"`
	Buffer           Size    `yaml:"buffer"`
	Links            `yaml:",inline"`
}

// FatTree is fabric.FatTree as a file writes it.
type FatTree struct {
	K      int  `yaml:"k"`
	Hosts  int  `yaml:"hosts"`
	Buffer Size `yaml:"buffer"`
	Links  `yaml:",inline"`
}

// Links is fabric.Links as a file writes it.
type Links struct {
	HostRate  Bitrate `yaml:"host-rate"`
	Rate      Bitrate `yaml:"rate"`
	HostDelay Time    `yaml:"host-delay"`
	Delay     Time    `yaml:"delay"`
	Queue     int     `yaml:"queue"`
}

// A Scheme is a row of the comparison.
type Scheme struct {
	Scheme    string            `yaml:"scheme"`
	Label     string            `yaml:"label"` // the scheme's name where there is none
	Set       map[string]string `yaml:"set"`
	StatePath string            `yaml:"state-path"`
	Coeffs    string            `yaml:"coeffs"` // a model's file
	Errata    string            `yaml:"errata"`

	// Candidates are what the scheme chooses among: the ports to the next
	// switches, or the paths that begin with them, of which a port may have
	// several.
	Candidates string `yaml:"candidates"`

	Engine string `yaml:"engine"`
	Arch   string `yaml:"arch"` // "" stands for v1model, once the experiment has been checked

	made scheme.Scheme // by Complete
}

// TransportSpec is what hosts send with.
type TransportSpec struct {
	Kind   string `yaml:"kind"` // tcp, dctcp, dcqcn or udp
	MinRTO Time   `yaml:"min-rto"`
	DupAck int    `yaml:"dupacks"`
	MaxDup int    `yaml:"max-dupacks"` // as far as dupacks rises where packets are reordered, as in Linux up to 300
	MSS    int    `yaml:"mss"`
	Window int    `yaml:"window"` // of the beginning, in packets

	MaxWindow Size `yaml:"max-window"` // that the receiver allows

	// Choices: see there.
	Waiting string `yaml:"waiting"`
	Loss    string `yaml:"recovery"`
	Alpha   string `yaml:"dctcp-alpha"`
	Cut     string `yaml:"dctcp-cut"`

	RDMA RDMASpec `yaml:"rdma"` // of dcqcn
}

// RDMASpec is sim.RDMA as a file writes it; what is not given is as there.
type RDMASpec struct {
	AlphaInterval Time    `yaml:"alpha-interval"`
	CutInterval   Time    `yaml:"cut-interval"`
	RaiseInterval Time    `yaml:"raise-interval"`
	RaiseBytes    Size    `yaml:"raise-bytes"`
	Recovery      int     `yaml:"recovery"`
	Additive      Bitrate `yaml:"additive"`
	Hyper         Bitrate `yaml:"hyper"`
	NoticeEvery   Time    `yaml:"notice-every"`
	NackEvery     Time    `yaml:"nack-every"`
	Window        Size    `yaml:"window"` // outstanding at most

	// Choices: see there.
	Nack   string `yaml:"nack"`
	NackAs string `yaml:"nack-as"`
}

// tuning is the simulator's form.
func (s *RDMASpec) tuning() sim.RDMA {
	return sim.RDMA{
		AlphaInterval: time.Duration(s.AlphaInterval), CutInterval: time.Duration(s.CutInterval),
		RaiseInterval: time.Duration(s.RaiseInterval), RaiseBytes: int64(s.RaiseBytes), Recovery: s.Recovery,
		Additive: int64(s.Additive), Hyper: int64(s.Hyper),
		NoticeEvery: time.Duration(s.NoticeEvery), NackEvery: time.Duration(s.NackEvery), Window: int64(s.Window),
		Nack: s.nackPolicy(), NackNotice: s.NackAs == withNotice,
	}
}

// SwitchSpec is what the switches' queues do.
type SwitchSpec struct {
	ECN   int     `yaml:"ecn"`     // mark from so many packets
	KMin  Size    `yaml:"ecn-min"` // or by RED between two sizes
	KMax  Size    `yaml:"ecn-max"`
	PMax  float64 `yaml:"ecn-p"`
	Queue int     `yaml:"queue"` // packets, instead of the topology's
	PFC   *bool   `yaml:"pfc"`
	Pause Size    `yaml:"pfc-threshold"` // of an ingress port; 0: a share of what is free of the buffer, 256 KiB without one
	Alpha float64 `yaml:"pfc-alpha"`

	// Choices: see there.
	Marking     string `yaml:"marking"`
	Control     string `yaml:"control"`
	Priority    string `yaml:"control-priority"`
	Hash        string `yaml:"hash"`
	Hysteresis  Size   `yaml:"pfc-hysteresis"`
	DrillMemory string `yaml:"drill-memory"`
	DrillTies   string `yaml:"drill-ties"`
	Knowledge   string `yaml:"knowledge"`
}

// A Fault is something that happens to a link or a switch while flows run.
type Fault struct {
	At     Time    `yaml:"at"`
	Until  Time    `yaml:"until"` // 0: to the end
	Link   string  `yaml:"link"`  // such as l1-s2 or l1:3
	Switch string  `yaml:"switch"`
	Down   bool    `yaml:"down"`       // the link is down, or all of the switch, and the controller is told
	Drop   float64 `yaml:"drop"`       // the switch loses this share of the packets, and nobody is told
	Hole   float64 `yaml:"black-hole"` // it loses all packets of this share of the pairs of hosts
	Rate   Bitrate `yaml:"rate"`       // the link, or all of the switch, is that fast meanwhile, and nobody is told
}

// A Class is the flows up to a size, and above that of the class before.
type Class struct {
	Name string `yaml:"name"`
	Upto Size   `yaml:"upto"` // 0: no limit
}

// Warmup is a time, or a share of the duration.
type Warmup struct {
	Share float64
	Time  Time
	given bool
}

// NoWarmup lets all flows count.
func NoWarmup() Warmup { return Warmup{given: true} }

// Seeds are the seeds of an experiment: so many from 1, or those of a list.
type Seeds []uint64

// A LoadLevel is a share from 0 to 1, both left out.
type LoadLevel float64

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
	FromController = "controller"
	FromGenerator  = "generator"
)

// What a scheme chooses among.
const (
	ByPorts = "ports"
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
	if x.Engine == "" {
		x.Engine = EngineP4
	}
	if x.Values == "" {
		x.Values = DefaultValues
	}
	if x.Latency == 0 {
		x.Latency = defaultLatency
	}
	if len(x.Classes) == 0 {
		x.Classes = defaultClasses
	}
	x.Setting.defaults()
	if len(x.Metrics) == 0 {
		x.Metrics = DefaultMetrics(x.Transport.Kind)
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
		if s.Label == "" {
			s.Label = s.name()
		}
		if s.Engine == "" {
			s.Engine = x.Engine
		}
		if s.StatePath == "" {
			s.StatePath = x.State
		}
	}
}

func (s *Setting) defaults() {
	if s.Topology == (Network{}) {
		s.Topology.Name = "qall"
	}
	if len(s.Traffic) == 0 {
		s.Traffic = []Traffic{{}}
	}
	if s.Duration == 0 {
		s.Duration = defaultDuration
	}
	if !s.Warmup.given {
		s.Warmup = Warmup{Share: defaultWarmup}
	}
	if s.Drain == 0 {
		s.Drain = 20 * s.Duration
	}
	if s.Transport.Kind == "" {
		s.Transport.Kind = "tcp"
	}
	for i := range s.Traffic {
		t := &s.Traffic[i]
		if t.Pattern == "" {
			t.Pattern = AllToAll
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
	if c.Topology == (Network{}) {
		c.Topology = x.Topology
	}
	if c.Links == nil {
		c.Links = x.Links
	}
	if c.Fail == nil {
		c.Fail = x.Fail
	}
	if c.Traffic == nil {
		c.Traffic = x.Traffic
	}
	if c.Transport.Kind == "" {
		c.Transport = x.Transport
	}
	if c.Switches == (SwitchSpec{}) {
		c.Switches = x.Switches
	}
	if c.Like == "" {
		c.Like = x.Like
	}
	if c.Ties == "" {
		c.Ties = x.Ties
	}
	if c.Faults == nil {
		c.Faults = x.Faults
	}
	if c.Duration == 0 {
		c.Duration = x.Duration
		if c.Drain == 0 {
			c.Drain = x.Drain
		}
	}
	if !c.Warmup.given {
		c.Warmup = x.Warmup
	}
	if c.Loads == nil {
		c.Loads = x.Loads
	}
	if c.Seeds == nil {
		c.Seeds = x.Seeds
	}
	c.Setting.defaults()
	c.Setting.as(c.Like)
}

// warmup is the time before which flows do not count.
func (s *Setting) warmup() time.Duration {
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

// schemesOf lists the rows of a case.
func (x *Experiment) schemesOf(c *Case) []*Scheme {
	var list []*Scheme
	for i := range x.Schemes {
		if s := &x.Schemes[i]; len(c.Schemes) == 0 || slices.Contains(c.Schemes, s.Label) {
			list = append(list, s)
		}
	}
	return list
}

// settleArch finds out what a row is for: a scheme may be called drill@tna. What
// is for v1model says nothing of it.
func (s *Scheme) settleArch(common string) {
	if i := strings.LastIndexByte(s.Scheme, '@'); i > strings.LastIndexByte(s.Scheme, '/') {
		s.Scheme, s.Arch = s.Scheme[:i], s.Scheme[i+1:]
	}
	s.Arch = cmp.Or(s.Arch, common)
	if s.Arch == codegen.Archs[0] {
		s.Arch = ""
	}
}

// settleOwn takes from a scheme that is not of the catalogue what its programs
// are for, and what it is called unless another row is called that.
func (s *Scheme) settleOwn(rows []Scheme) {
	if s.made.Native() == nil {
		return
	}
	named := s.Label == s.name()
	if arch := s.made.Archs()[0]; s.Arch == "" && arch != codegen.Archs[0] {
		s.Arch = arch
	}
	name := s.made.Name()
	if named && !slices.ContainsFunc(rows, func(r Scheme) bool { return r.Label == name }) {
		s.Label = name
	}
}

// name is the scheme's, with what it is for where that is hardware.
func (s *Scheme) name() string {
	if s.Arch == "" {
		return s.Scheme
	}
	return s.Scheme + "@" + s.Arch
}

// grouping is what the scheme's groups are made of at least.
func (s *Scheme) grouping() fabric.Grouping {
	if s.Candidates == ByPaths {
		return fabric.ByPath
	}
	return fabric.ByHops
}

// parameters are those that the scheme has.
func (s *Scheme) parameters() []codegen.Param {
	list, _ := s.made.Parameters(s.Arch) // the architecture has been checked
	return list
}

// has reports whether the scheme has a parameter.
func (s *Scheme) has(name string) bool {
	return slices.ContainsFunc(s.parameters(), func(p codegen.Param) bool { return p.Name == name })
}

// ErrNoAdvice is wrapped by the refusal to compute parameters for a network that
// the papers' formulas cannot be applied to.
var ErrNoAdvice = errors.New("there is no advice")

// set is what a scheme's parameters are set to in a case, whose network is t: by
// the row, else by the case, else by advice.
func (x *Experiment) set(s *Scheme, c *Case, t *fabric.Topology) (map[string]string, error) {
	set := map[string]string{}
	if x.Values == AdvisedValues {
		advised, err := s.advised(c, t)
		if err != nil {
			return nil, fmt.Errorf("%w for %s: %w", ErrNoAdvice, s.Label, err)
		}
		maps.Copy(set, advised)
	}
	for _, p := range s.parameters() {
		if v, ok := c.Set[p.Name]; ok {
			set[p.Name] = v
		}
	}
	maps.Copy(set, s.Set)
	return set, nil
}

// advised are the values that the papers' formulas give the scheme in a network.
func (s *Scheme) advised(c *Case, t *fabric.Topology) (map[string]string, error) {
	n, err := c.advisedOn(t)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, p := range s.parameters() {
		names = append(names, p.Name)
	}
	return advice.Set(n, s.Scheme, names)
}

// advice is all that can be said of the scheme's parameters, nothing where there
// is no formula.
func (s *Scheme) advice(c *Case, t *fabric.Topology) []advice.Parameter {
	n, err := c.advisedOn(t)
	if err != nil {
		return nil
	}
	list, err := advice.For(n, s.Scheme)
	if err != nil {
		return nil
	}
	return list
}

// advisedOn is the case's network as the formulas see it.
func (c *Case) advisedOn(t *fabric.Topology) (advice.Network, error) {
	n, err := advice.Of(t)
	if c.Switches.Queue > 0 {
		n.Buffer = c.Switches.Queue
	} else if n.Buffer == 0 {
		n.Buffer = usualQueue
	}
	if c.Switches.ECN > 0 && c.Switches.ECN <= n.Buffer {
		n.ECN = c.Switches.ECN
	}
	return n, err
}

// LengthFor is the time within which so many flows begin on average, at the
// smallest load of an experiment that has not been completed yet; 0 where flows
// come by no rate.
func (x *Experiment) LengthFor(flows float64, read Reader) (time.Duration, error) {
	one := *x
	one.Traffic = slices.Clone(x.Traffic)
	one.Setting.defaults()
	t, err := one.network(read)
	if err != nil {
		return 0, err
	}
	load := float64(defaultLoad)
	if len(x.Loads) > 0 {
		load = float64(slices.Min(x.Loads))
	}
	c := Case{Setting: one.Setting}
	c.Duration = Time(time.Second)
	for i := range c.Traffic {
		if err := c.Traffic[i].resolve(t, read); err != nil {
			return 0, err
		}
	}
	o, ok := c.offer(t, load)
	if !ok {
		return 0, nil
	}
	length := flows / o.Flows * 1e9 // ns
	digit := math.Pow(10, math.Floor(math.Log10(length))-1)
	return time.Duration(math.Ceil(length/digit) * digit), nil
}

// length is the time in which flows start: to the last of them where their
// times are given.
func (s *Setting) length() time.Duration { return time.Duration(s.Duration) }

// Adjust takes another engine for all rows, and the seeds 1 to n, unless they
// are "" and 0.
func (x *Experiment) Adjust(engine string, seeds int) error {
	if engine != "" && engine != EngineP4 && engine != EngineNative || seeds < 0 {
		return fmt.Errorf("engine %q with %d seeds: want p4 or native, and at least one seed", engine, seeds)
	}
	for i := range x.Schemes {
		if engine == EngineNative {
			if err := x.Schemes[i].made.Native(); err != nil {
				return err
			}
		}
		if engine != "" {
			x.Schemes[i].Engine = engine
		}
	}
	for i := range x.Cases {
		if seeds > 0 {
			x.Cases[i].Seeds = FirstSeeds(seeds)
		}
	}
	return nil
}
