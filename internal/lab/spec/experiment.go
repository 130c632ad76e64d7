// Package spec defines experiments: a network, schemes, traffic and workloads, faults,
// modelling choices and targets. An Experiment that Load or Complete returns is
// checked and complete. Nothing in this package runs it.
package spec

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/p4lb/p4lb/codegen"
	"github.com/p4lb/p4lb/fitting"
	"github.com/p4lb/p4lb/internal/network/fabric"
	"github.com/p4lb/p4lb/internal/scheme"
	"github.com/p4lb/p4lb/internal/scheme/advice"
	"github.com/p4lb/p4lb/internal/sim"
	"github.com/p4lb/p4lb/internal/text/lists"
)

// An Experiment compares schemes in one network with the same flows. Each scheme runs in each
// case, at each load and with each seed.
type Experiment struct {
	File    string   `yaml:"-"` // for a paper's experiment: its name for PaperFile
	Name    string   `yaml:"name"`
	About   string   `yaml:"about"`
	Paper   string   `yaml:"paper"`
	Figures []string `yaml:"figures"`
	Assumed []string `yaml:"assumed"` // assumptions for details that the paper omits
	Scaled  string   `yaml:"scaled"`  // how the size differs from the paper's

	Setting `yaml:",inline"`

	Schemes  []Scheme    `yaml:"schemes"`
	Blocks   string      `yaml:"blocks"` // folder with the user's blocks and rows
	Loads    []LoadLevel `yaml:"loads"`
	Seeds    Seeds       `yaml:"seeds"`
	Engine   string      `yaml:"engine"`
	Values   string      `yaml:"parameters"` // source of scheme parameters that are not set: advised (for each network) or default
	Arch     string      `yaml:"arch"`       // architecture of the programs: v1model, tna or t2na
	Probes   string      `yaml:"probes"`     // on Tofino: from the controller, or from the packet generator, which has no latency
	State    string      `yaml:"state-path"` // for schemes with a choice: recirc, shared (the switch must read its queues directly) or ghost
	Interval Time        `yaml:"interval"`   // sampling interval of the links
	Latency  Time        `yaml:"latency"`    // latency of a controller task, from reading to effect
	Classes  []Class     `yaml:"classes"`    // classes of flows by size
	Metrics  []string    `yaml:"metrics"`    // columns of the table

	// MetricsAsked is set if the experiment names its metrics and so requests all of them.
	MetricsAsked bool `yaml:"-" json:"-"`

	Observe *Observing `yaml:"observe"` // observations to record and fit, for the metrics that begin with fit-

	// Accept contains, by rule, the reasons for which the experiment accepts warnings: see Lint.
	Accept map[string]string `yaml:"accept"`

	// Expect contains conditions for the results: see Expectation.
	Expect []string `yaml:"expect"`

	Ceiling []string `yaml:"ceiling"` // upper bounds for every scheme: see Ceilings
	Vary    *Vary    `yaml:"vary"`    // details that the paper omits, and values to try
	Cases   []Case   `yaml:"cases"`
	Full    *Case    `yaml:"full"` // the case at the paper's size, if that takes long
	Targets []Target `yaml:"targets"`

	origin origin
	figure string // figure to which the experiment has been reduced; "": all

	noTraffic bool         // the experiment has no traffic, so cases with jobs have none either
	unadvised error        // why there is no advice for some network, if the file does not choose the source of parameters
	files     *files       // the contents of all files that it names
	last      *lastNetwork // see NetworkOf
}

// Text returns the file of the experiment, or nil if it was not read from one.
func (x *Experiment) Text() []byte { return x.origin.text }

// A Setting contains the values of an experiment that a case can override.
type Setting struct {
	Topology  Network       `yaml:"topology"`
	Links     []LinkChange  `yaml:"links"`
	Fail      []string      `yaml:"fail"` // links that are down from the start
	IPv6      bool          `yaml:"ipv6"` // use IPv6 instead of IPv4
	MTU       int           `yaml:"mtu"`  // size of the largest IP packet; 0: 1500
	Traffic   []Traffic     `yaml:"traffic"`
	Jobs      []Job         `yaml:"jobs"`
	Transport TransportSpec `yaml:"transport"`
	Switches  SwitchSpec    `yaml:"switches"`
	Like      string        `yaml:"like"` // preset for modelling choices that are not set: see Presets
	Ties      string        `yaml:"ties"` // order of events at the same time
	Lines     string        `yaml:"lines"`
	Faults    []Fault       `yaml:"faults"`
	Duration  Time          `yaml:"duration"` // time in which flows start
	Warmup    Warmup        `yaml:"warmup"`   // flows that start earlier do not count
	Drain     Time          `yaml:"drain"`    // time for the last flows to end
}

// A Case is a variant of an experiment.
type Case struct {
	Name    string            `yaml:"name"`
	X       float64           `yaml:"x"` // position on the axis, if the cases are a sweep
	Setting `yaml:",inline"`  // omitted values are inherited from the experiment
	Loads   []LoadLevel       `yaml:"loads"`
	Seeds   Seeds             `yaml:"seeds"`
	Schemes []string          `yaml:"schemes"` // labels of the rows; empty: all
	Set     map[string]string `yaml:"set"`     // parameters for all schemes that have them

	ceilingOf, ceiling string // if it is a ceiling: its original case, and the kind of ceiling
}

// A Network is the topology of an experiment: a preset, a file, or a generated topology.
type Network struct {
	Name      string     `yaml:"-"`
	LeafSpine *LeafSpine `yaml:"leaf-spine"`
	FatTree   *FatTree   `yaml:"fat-tree"`
	Rail      *Rail      `yaml:"rail"`
}

// LeafSpine is the form of fabric.LeafSpine in files.
type LeafSpine struct {
	Leaves           int     `yaml:"leaves"`
	Spines           int     `yaml:"spines"`
	Parallel         int     `yaml:"parallel"`
	Hosts            int     `yaml:"hosts"`
	Rails            bool    `yaml:"rails"`    // hosts are numbered round-robin over the leaves
	DualToR          bool    `yaml:"dual-tor"` // each host has a second port, at the next leaf
	Oversubscription float64 `yaml:"oversubscription"`
	Buffer           Size    `yaml:"buffer"`
	Links            `yaml:",inline"`
}

// FatTree is the form of fabric.FatTree in files.
type FatTree struct {
	K      int  `yaml:"k"`
	Hosts  int  `yaml:"hosts"`
	Buffer Size `yaml:"buffer"`
	Links  `yaml:",inline"`
}

// Rail is the form of fabric.Rail in files.
type Rail struct {
	Rails   int  `yaml:"rails"`
	Servers int  `yaml:"servers"`
	Spines  int  `yaml:"spines"` // spines of each plane
	Planes  int  `yaml:"planes"` // number of planes; every host has a port in each
	Buffer  Size `yaml:"buffer"`
	Links   `yaml:",inline"`
}

// Links is the form of fabric.Links in files.
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
	Label     string            `yaml:"label"` // default: the name of the scheme
	Set       map[string]string `yaml:"set"`
	StatePath string            `yaml:"state-path"`
	Coeffs    string            `yaml:"coeffs"` // file of a fitted model, or its JSON text
	Errata    string            `yaml:"errata"`

	// Candidates selects whether the scheme chooses ports to the next switches, or paths.
	// Several paths may start at one port.
	Candidates string `yaml:"candidates"`

	Engine string `yaml:"engine"`
	Arch   string `yaml:"arch"` // "": v1model, after the experiment has been checked

	made        scheme.Scheme // set by Complete
	engineGiven bool          // the row names an engine
}

// TransportSpec configures the transport of hosts.
type TransportSpec struct {
	Kind   string `yaml:"kind"` // tcp, dctcp, dcqcn, udp or uec
	MinRTO Time   `yaml:"min-rto"`
	DupAck int    `yaml:"dupacks"`
	MaxDup int    `yaml:"max-dupacks"` // limit for raising dupacks after reordering; Linux: 300
	MSS    int    `yaml:"mss"`
	Window int    `yaml:"window"` // initial window in packets

	MaxWindow Size `yaml:"max-window"` // receive window

	Entropy string `yaml:"entropy"` // choice of source ports: flow, oblivious, reps, bitmap or mixed
	Paths   int    `yaml:"paths"`   // number of source ports of a flow, a power of two
	Ports   string `yaml:"ports"`   // source ports: consecutive, or random from the seed

	// Modelling choices: see Choices.
	Waiting string `yaml:"waiting"`
	Loss    string `yaml:"recovery"`
	Alpha   string `yaml:"dctcp-alpha"`
	Cut     string `yaml:"dctcp-cut"`

	RDMA RDMASpec `yaml:"rdma"` // parameters of dcqcn
	UEC  UECSpec  `yaml:"uec"`
}

// Sprays reports whether senders choose a source port for each packet.
func (t *TransportSpec) Sprays() bool { return t.Entropy != "" && t.Entropy != "flow" }

// IgnoresPorts reports whether a scheme chooses the path of each packet without a hash of its
// ports.
func (s *Scheme) IgnoresPorts() bool {
	row, ok := scheme.RowOf(s.made)
	return ok && row.Granularity == "packet" && row.Choice != "hash"
}

// ForwardsIPv6 reports whether the scheme's programs are generated to forward IPv6.
func (s *Scheme) ForwardsIPv6(t *fabric.Topology) bool {
	_, generated := scheme.RowOf(s.made)
	return generated && t.HasIPv6()
}

// Tuning converts the parameters to the simulator's type.
func (t *TransportSpec) Tuning() *sim.Tuning {
	entropy, _ := sim.ParseEntropy(cmp.Or(t.Entropy, "flow")) // checked when the experiment was loaded
	return &sim.Tuning{
		Entropy: entropy, Paths: t.Paths,
		Segment: t.MSS, Window: t.Window, DupAcks: t.DupAck, MaxDupAcks: t.MaxDup, MinRTO: time.Duration(t.MinRTO), MaxWindow: int64(t.MaxWindow),
		AtOnce: t.Waiting == waitsInCard, NewReno: t.Loss == withoutSACK, AlphaFromZero: t.Alpha == "0", CutEachWindow: t.Cut == cutEachWindow,
		RDMA: sim.RDMA{
			AlphaInterval: time.Duration(t.RDMA.AlphaInterval), CutInterval: time.Duration(t.RDMA.CutInterval),
			RaiseInterval: time.Duration(t.RDMA.RaiseInterval), RaiseBytes: int64(t.RDMA.RaiseBytes), Recovery: t.RDMA.Recovery,
			Additive: int64(t.RDMA.Additive), Hyper: int64(t.RDMA.Hyper),
			NoticeEvery: time.Duration(t.RDMA.NoticeEvery), NackEvery: time.Duration(t.RDMA.NackEvery), Window: int64(t.RDMA.Window),
			Reordering: time.Duration(t.RDMA.Reordering), BaseRTT: time.Duration(t.RDMA.BaseRTT), BTH: t.RDMA.BTH,
			Nack: t.RDMA.nackPolicy(), NackNotice: t.RDMA.NackAs == withNotice, Answered: t.RDMA.Notices == ofAnswered,
			RepeatAll: t.RDMA.Nack == nackSelective && t.RDMA.Repeat == repeatAll,
			Headers:   int(t.RDMA.Headers), Answer: int(t.RDMA.Answer),
		},
		UEC: t.UEC.tuning(),
	}
}

// RDMASpec is the form of sim.RDMA in files. Omitted values have its defaults.
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
	Window        Size    `yaml:"window"` // most bytes outstanding
	Reordering    Time    `yaml:"reordering"`
	BaseRTT       Time    `yaml:"base-rtt"`
	BTH           bool    `yaml:"bth"`

	// Modelling choices: see Choices.
	Nack    string `yaml:"nack"`
	NackAs  string `yaml:"nack-as"`
	Repeat  string `yaml:"repeat"`
	Notices string `yaml:"notices"`
	Headers Size   `yaml:"headers"`
	Answer  Size   `yaml:"answer"`
}

// A UECSpec is the form of sim.UEC in files. Omitted values have its defaults.
type UECSpec struct {
	Control     string `yaml:"control"`      // window control: nscc, per-mark, constant or rccc
	Loss        string `yaml:"loss"`         // detection of losses: trim, timeout or gap
	BaseRTT     Time   `yaml:"base-rtt"`     // round-trip time without queueing
	TargetDelay Time   `yaml:"target-delay"` // target for the queueing delay
	AckBytes    Size   `yaml:"ack-bytes"`    // received bytes per acknowledgment
	Headers     Size   `yaml:"headers"`
	Answer      Size   `yaml:"answer"`

	Oversubscription float64 `yaml:"oversubscription"` // of the fabric, for rccc
}

// tuning converts the parameters to the simulator's type. Names have been checked.
func (u *UECSpec) tuning() sim.UEC {
	return sim.UEC{
		Control: sim.UECControl(max(0, slices.Index(sim.UECControls(), u.Control))),
		Loss:    sim.UECLoss(max(0, slices.Index(sim.UECLosses(), u.Loss))),
		BaseRTT: time.Duration(u.BaseRTT), Target: time.Duration(u.TargetDelay), AckBytes: int64(u.AckBytes),
		Headers: int(u.Headers), Answer: int(u.Answer), Oversubscription: u.Oversubscription,
	}
}

// SwitchSpec configures the queues of the switches.
type SwitchSpec struct {
	ECN   Threshold `yaml:"ecn"`     // mark from this number of packets on
	KMin  Size      `yaml:"ecn-min"` // or with RED between two sizes
	KMax  Size      `yaml:"ecn-max"`
	PMax  float64   `yaml:"ecn-p"`
	Queue int       `yaml:"queue"` // limit in packets, instead of the topology's
	PFC   *bool     `yaml:"pfc"`
	Pause Size      `yaml:"pfc-threshold"` // pause threshold of an ingress port; 0: a share of the free buffer, or 256 KiB without a buffer
	Alpha float64   `yaml:"pfc-alpha"`
	Clock Time      `yaml:"clock-step"` // clock offset: the clock of switch n is n times this ahead

	// Modelling choices: see Choices.
	Marking     string `yaml:"marking"`
	Control     string `yaml:"control"`
	Priority    string `yaml:"control-priority"`
	Hash        string `yaml:"hash"`
	Draws       string `yaml:"draws"`
	Hysteresis  Size   `yaml:"pfc-hysteresis"`
	Promised    string `yaml:"pfc-promised"`
	Limit       string `yaml:"queue-limit"`
	SlowLinks   string `yaml:"slow-links"`
	DrillMemory string `yaml:"drill-memory"`
	DrillTies   string `yaml:"drill-ties"`
	FlowKey     string `yaml:"flow-key"`
	CongaPaths  string `yaml:"conga-paths"`
	Overlay     string `yaml:"overlay"`
	CongaRates  string `yaml:"conga-rates"`
	CongaNews   string `yaml:"conga-news"`
	Knowledge   string `yaml:"knowledge"`
}

// A Fault is a failure of a link or a switch during the run, or the absence of a server from its
// pools.
type Fault struct {
	At     Time    `yaml:"at"`
	Until  Time    `yaml:"until"` // 0: until the end
	Link   string  `yaml:"link"`  // such as l1-s2 or l1:3
	Switch string  `yaml:"switch"`
	Plane  int     `yaml:"plane"`      // all links of a plane, counted from 1
	Server string  `yaml:"server"`     // a host, which leaves the pools of its services
	Of     string  `yaml:"service"`    // beside server: the only service whose pool it leaves
	Down   bool    `yaml:"down"`       // the link, switch or server is down, and the controller is notified
	Drop   float64 `yaml:"drop"`       // the switch silently drops this share of the packets
	Hole   float64 `yaml:"black-hole"` // the switch drops all packets of this share of host pairs; 1 includes probes
	Rate   Bitrate `yaml:"rate"`       // the link, or all links of the switch, have this rate without notification
	Known  bool    `yaml:"known"`      // the controller is notified of the rate
	Errors float64 `yaml:"bit-errors"` // bit error rate on the link, or on all links of the switch
	Every  Time    `yaml:"every"`      // period of repetitions
	Times  int     `yaml:"times"`      // number of repetitions
}

// A Class contains the flows up to a size, and above the previous class.
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

// NoWarmup makes all flows count.
func NoWarmup() Warmup { return Warmup{given: true} }

// Seeds are the seeds of an experiment. A file gives their number, or a list.
type Seeds []uint64

// A LoadLevel is a load between 0 and 1, both excluded.
type LoadLevel float64

// settleArch determines the architecture of a row: a scheme may be written as
// drill@tna. The name of a v1model row has no suffix.
func (s *Scheme) settleArch(common string) {
	if i := strings.LastIndexByte(s.Scheme, '@'); i > strings.LastIndexByte(s.Scheme, '/') {
		s.Scheme, s.Arch = s.Scheme[:i], s.Scheme[i+1:]
	}
	s.Arch = cmp.Or(s.Arch, common)
	if s.Arch == codegen.Archs[0] {
		s.Arch = ""
	}
}

// modelOnly reports whether there is no program of the scheme.
func (s *Scheme) modelOnly() bool { return len(s.made.Archs()) == 0 }

// settleOwn copies the architecture and the name of a scheme outside the catalogue,
// unless another row has that name.
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

// name returns the name of the scheme, with the architecture if it is not v1model.
func (s *Scheme) name() string {
	if s.Arch == "" {
		return s.Scheme
	}
	return s.Scheme + "@" + s.Arch
}

// Grouping returns the minimum grouping for the scheme's groups.
func (s *Scheme) Grouping() fabric.Grouping {
	if s.Candidates == ByPaths {
		return fabric.ByPath
	}
	return fabric.ByHops
}

// Parameters lists the parameters of the scheme on its architecture.
func (s *Scheme) Parameters() []codegen.Param {
	list, _ := s.made.Parameters(s.Arch) // the architecture has been checked
	return list
}

// has reports whether the scheme has a parameter.
func (s *Scheme) has(name string) bool {
	return slices.ContainsFunc(s.Parameters(), func(p codegen.Param) bool { return p.Name == name })
}

// errNoAdvice is wrapped by the error about computing parameters for a network to which the
// papers' formulas do not apply.
var errNoAdvice = errors.New("there is no advice")

// Parameters returns the scheme's parameters in a case with network t. Values of the row take
// precedence over values of the case, and these over advised values.
func (x *Experiment) Parameters(s *Scheme, c *Case, t *fabric.Topology) (map[string]string, error) {
	set := map[string]string{}
	if x.Values == AdvisedValues {
		advised, err := s.advised(c, t)
		if err != nil {
			return nil, fmt.Errorf("%w for %s: %w", errNoAdvice, s.Label, err)
		}
		maps.Copy(set, advised)
	}
	for _, p := range s.Parameters() {
		if v, ok := c.Set[p.Name]; ok {
			set[p.Name] = v
		}
	}
	maps.Copy(set, s.Set)
	return set, nil
}

// advised returns the parameters that the papers' formulas give for a network.
func (s *Scheme) advised(c *Case, t *fabric.Topology) (map[string]string, error) {
	n, err := c.advisedOn(t)
	if err != nil {
		return nil, err
	}
	names := lists.Map(s.Parameters(), func(p codegen.Param) string { return p.Name })
	return advice.Set(n, s.Scheme, names)
}

// Advice returns all advised parameters of the scheme, or nil if there is no formula.
func (s *Scheme) Advice(c *Case, t *fabric.Topology) []advice.Parameter {
	n, err := c.advisedOn(t)
	if err != nil {
		return nil
	}
	list, _ := advice.For(n, s.Scheme)
	return list
}

// advisedOn describes the case's network for the formulas.
func (c *Case) advisedOn(t *fabric.Topology) (advice.Network, error) {
	n, err := advice.Of(t)
	n.MTU = cmp.Or(c.MTU, n.MTU)
	if c.Switches.Queue > 0 {
		n.Buffer = c.Switches.Queue
	} else if n.Buffer == 0 {
		n.Buffer = usualQueue
	}
	if c.Switches.ECN > 0 && int(c.Switches.ECN) <= n.Buffer {
		n.ECN = int(c.Switches.ECN)
	}
	return n, err
}

// Length returns the time in which flows start. With listed flows it ends with the last start.
func (s *Setting) Length() time.Duration { return time.Duration(s.Duration) }

// Adjust sets the engine of all rows and the seeds of all cases. Empty arguments change nothing.
func (x *Experiment) Adjust(engine string, seeds Seeds) error {
	if engine != "" && engine != EngineP4 && engine != EngineNative {
		return fmt.Errorf("engine %q: want p4 or native", engine)
	}
	for i := range x.Schemes {
		if engine == EngineNative {
			if err := x.Schemes[i].made.Native(); err != nil {
				return err
			}
		}
		if engine != "" && !x.Schemes[i].modelOnly() {
			x.Schemes[i].Engine = engine
		}
	}
	for i := range x.Cases {
		if len(seeds) > 0 {
			x.Cases[i].Seeds = seeds
		}
	}
	return x.checkRuns()
}

// Observing configures the recording of ports' behaviour while flows start, and the fit at the
// end of the run: QALL's dataset (Section III-B) and its Table I. The interval is the time
// between the last two packets, as a switch measures it.
type Observing struct {
	Every    Time     `yaml:"every"`
	Switches []string `yaml:"switches"` // the switches with observed ports to other switches; empty: all
	Outliers string   `yaml:"outliers"` // how to drop outliers, as in p4lb fit: none, sigma:3
	Test     float64  `yaml:"test"`     // share of the rows held back for the test
}

func (o *Observing) check() error {
	switch {
	case o.Every <= 0:
		return fmt.Errorf("every %v: want a time above 0", o.Every)
	case !(o.Test > 0 && o.Test < 1):
		return fmt.Errorf("test %g: want a share of the rows above 0 and below 1", o.Test)
	}
	_, err := fitting.ParseOutliers(o.Outliers)
	return err
}

// Made returns the scheme, after the experiment has been checked.
func (s *Scheme) Made() scheme.Scheme { return s.made }

// A Reader reads the files that an experiment names: topologies, workloads, flow lists and
// models.
type Reader func(name string) ([]byte, error)
