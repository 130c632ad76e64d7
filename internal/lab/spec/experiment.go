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

// An Experiment compares schemes in one network under the same flows. Each
// scheme is run in each case at each load with each seed.
type Experiment struct {
	File    string   `yaml:"-"` // of a paper's experiment: its name for PaperFile
	Name    string   `yaml:"name"`
	About   string   `yaml:"about"`
	Paper   string   `yaml:"paper"`
	Figures []string `yaml:"figures"`
	Assumed []string `yaml:"assumed"` // details that the paper omits and that were chosen here
	Scaled  string   `yaml:"scaled"`  // differences to the paper's size

	Setting `yaml:",inline"`

	Schemes  []Scheme    `yaml:"schemes"`
	Blocks   string      `yaml:"blocks"` // a folder of blocks and rows beside the catalogue's
	Loads    []LoadLevel `yaml:"loads"`
	Seeds    Seeds       `yaml:"seeds"`
	Engine   string      `yaml:"engine"`
	Values   string      `yaml:"parameters"` // of the schemes that are not set: advised for each network, or default
	Arch     string      `yaml:"arch"`       // that the programs are for: v1model, tna or t2na
	Probes   string      `yaml:"probes"`     // on Tofino: from the controller, or from the packet generator, which knows no latency
	State    string      `yaml:"state-path"` // of the schemes that have one: recirc, shared where a switch reads its queues at once, or ghost
	Interval Time        `yaml:"interval"`   // between samples of the links
	Latency  Time        `yaml:"latency"`    // of a controller task: from its look to its effect
	Classes  []Class     `yaml:"classes"`    // of flows, by size
	Metrics  []string    `yaml:"metrics"`    // of the table

	// MetricsAsked: the experiment names its metrics, and wants to see all of them.
	MetricsAsked bool `yaml:"-" json:"-"`

	Observe *Observing `yaml:"observe"` // and fit, for the metrics that begin with fit-

	// Accept has the reasons for warnings that the experiment accepts, by rule: see Lint.
	Accept map[string]string `yaml:"accept"`

	// Expect are thresholds: see Expectation.
	Expect []string `yaml:"expect"`

	Ceiling []string `yaml:"ceiling"` // upper bounds for any scheme: see Ceilings
	Vary    *Vary    `yaml:"vary"`    // details that a paper omits
	Cases   []Case   `yaml:"cases"`
	Full    *Case    `yaml:"full"` // as the paper has it, where that takes long
	Targets []Target `yaml:"targets"`

	origin origin
	figure string // that the experiment has been cut to; "" is all

	noTraffic bool   // the experiment has none, so that cases with jobs have none
	unadvised error  // why the parameters are the catalogue's, where the file leaves it open
	files     *files // that it names, as they were read
}

// Text returns the file of the experiment, nil if it was not read from one.
func (x *Experiment) Text() []byte { return x.origin.text }

// An origin is the source of an experiment, so that it can be read again with other
// choices.
type origin struct {
	file    string
	text    []byte
	read    Reader
	library *scheme.Library
}

// A Setting contains the values of an experiment that a case may change.
type Setting struct {
	Topology  Network       `yaml:"topology"`
	Links     []LinkChange  `yaml:"links"`
	Fail      []string      `yaml:"fail"` // links that are down from the start
	IPv6      bool          `yaml:"ipv6"` // in place of IPv4
	MTU       int           `yaml:"mtu"`  // bytes of the largest IP packet; 0: 1500
	Traffic   []Traffic     `yaml:"traffic"`
	Jobs      []Job         `yaml:"jobs"`
	Transport TransportSpec `yaml:"transport"`
	Switches  SwitchSpec    `yaml:"switches"`
	Like      string        `yaml:"like"` // what choices of modelling that are not given are like: see Presets
	Ties      string        `yaml:"ties"` // which of two events at the same time comes first
	Lines     string        `yaml:"lines"`
	Faults    []Fault       `yaml:"faults"`
	Duration  Time          `yaml:"duration"` // in which flows start
	Warmup    Warmup        `yaml:"warmup"`   // flows that start earlier do not count
	Drain     Time          `yaml:"drain"`    // for the last flows to end
}

// A Case is an experiment with something changed.
type Case struct {
	Name    string            `yaml:"name"`
	X       float64           `yaml:"x"` // its place on the axis, where cases are a sweep
	Setting `yaml:",inline"`  // omitted values are inherited from the experiment
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
	Rail      *Rail      `yaml:"rail"`
}

// LeafSpine is fabric.LeafSpine as a file writes it.
type LeafSpine struct {
	Leaves           int     `yaml:"leaves"`
	Spines           int     `yaml:"spines"`
	Parallel         int     `yaml:"parallel"`
	Hosts            int     `yaml:"hosts"`
	Rails            bool    `yaml:"rails"`    // hosts are numbered across leaves
	DualToR          bool    `yaml:"dual-tor"` // each host has a second port at the next leaf
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

// Rail is fabric.Rail as a file writes it.
type Rail struct {
	Rails   int  `yaml:"rails"`
	Servers int  `yaml:"servers"`
	Spines  int  `yaml:"spines"` // of each plane
	Planes  int  `yaml:"planes"` // each with a port of every host
	Buffer  Size `yaml:"buffer"`
	Links   `yaml:",inline"`
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
	Coeffs    string            `yaml:"coeffs"` // a model's file, or its JSON text
	Errata    string            `yaml:"errata"`

	// Candidates are the candidates of the scheme's choice: the ports to the next
	// switches, or the paths that start with them; a port may have several paths.
	Candidates string `yaml:"candidates"`

	Engine string `yaml:"engine"`
	Arch   string `yaml:"arch"` // "" stands for v1model, once the experiment has been checked

	made        scheme.Scheme // by Complete
	engineGiven bool          // the row names its engine
}

// TransportSpec is what hosts send with.
type TransportSpec struct {
	Kind   string `yaml:"kind"` // tcp, dctcp, dcqcn, udp or uec
	MinRTO Time   `yaml:"min-rto"`
	DupAck int    `yaml:"dupacks"`
	MaxDup int    `yaml:"max-dupacks"` // as far as dupacks rises where packets are reordered, as in Linux up to 300
	MSS    int    `yaml:"mss"`
	Window int    `yaml:"window"` // of the beginning, in packets

	MaxWindow Size `yaml:"max-window"` // that the receiver allows

	Entropy string `yaml:"entropy"` // how source ports are chosen: flow, oblivious, reps, bitmap or mixed
	Paths   int    `yaml:"paths"`   // source ports of a flow, a power of two
	Ports   string `yaml:"ports"`   // source ports: consecutive, or random from the seed

	// Choices: see there.
	Waiting string `yaml:"waiting"`
	Loss    string `yaml:"recovery"`
	Alpha   string `yaml:"dctcp-alpha"`
	Cut     string `yaml:"dctcp-cut"`

	RDMA RDMASpec `yaml:"rdma"` // of dcqcn
	UEC  UECSpec  `yaml:"uec"`
}

// Sprays reports whether senders choose a source port for each packet.
func (t *TransportSpec) Sprays() bool { return t.Entropy != "" && t.Entropy != "flow" }

// IgnoresPorts reports whether a scheme chooses the path of each packet by other means
// than a hash of its ports.
func (s *Scheme) IgnoresPorts() bool {
	row, ok := scheme.RowOf(s.made)
	return ok && row.Granularity == "packet" && row.Choice != "hash"
}

// ForwardsIPv6 reports whether the scheme's programs are generated to forward IPv6.
func (s *Scheme) ForwardsIPv6(t *fabric.Topology) bool {
	_, generated := scheme.RowOf(s.made)
	return generated && t.HasIPv6()
}

// Tuning is the simulator's form.
func (t *TransportSpec) Tuning() *sim.Tuning {
	entropy, _ := sim.ParseEntropy(cmp.Or(t.Entropy, "flow")) // which has been checked
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

// RDMASpec is sim.RDMA in a file; omitted values have its defaults.
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
	Reordering    Time    `yaml:"reordering"`
	BaseRTT       Time    `yaml:"base-rtt"`
	BTH           bool    `yaml:"bth"`

	// Choices: see there.
	Nack    string `yaml:"nack"`
	NackAs  string `yaml:"nack-as"`
	Repeat  string `yaml:"repeat"`
	Notices string `yaml:"notices"`
	Headers Size   `yaml:"headers"`
	Answer  Size   `yaml:"answer"`
}

// A UECSpec is sim.UEC in a file; omitted values have its defaults.
type UECSpec struct {
	Control     string `yaml:"control"`      // of the window: nscc, per-mark, constant or rccc
	Loss        string `yaml:"loss"`         // how losses are detected: trim, timeout or gap
	BaseRTT     Time   `yaml:"base-rtt"`     // of the network without queues
	TargetDelay Time   `yaml:"target-delay"` // of queues
	AckBytes    Size   `yaml:"ack-bytes"`    // to an acknowledgment
	Headers     Size   `yaml:"headers"`
	Answer      Size   `yaml:"answer"`
}

// tuning is the simulator's form. Names have been checked.
func (u *UECSpec) tuning() sim.UEC {
	return sim.UEC{
		Control: sim.UECControl(max(0, slices.Index(sim.UECControls(), u.Control))),
		Loss:    sim.UECLoss(max(0, slices.Index(sim.UECLosses(), u.Loss))),
		BaseRTT: time.Duration(u.BaseRTT), Target: time.Duration(u.TargetDelay), AckBytes: int64(u.AckBytes),
		Headers: int(u.Headers), Answer: int(u.Answer),
	}
}

// SwitchSpec configures the queues of the switches.
type SwitchSpec struct {
	ECN   Threshold `yaml:"ecn"`     // mark from so many packets
	KMin  Size      `yaml:"ecn-min"` // or by RED between two sizes
	KMax  Size      `yaml:"ecn-max"`
	PMax  float64   `yaml:"ecn-p"`
	Queue int       `yaml:"queue"` // packets, instead of the topology's
	PFC   *bool     `yaml:"pfc"`
	Pause Size      `yaml:"pfc-threshold"` // of an ingress port; 0: a share of the free buffer, or 256 KiB without a buffer
	Alpha float64   `yaml:"pfc-alpha"`
	Clock Time      `yaml:"clock-step"` // the n-th switch's clock is n times this ahead

	// Choices: see there.
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

// A Fault is something that happens to a link or a switch while flows run.
type Fault struct {
	At     Time    `yaml:"at"`
	Until  Time    `yaml:"until"` // 0: to the end
	Link   string  `yaml:"link"`  // such as l1-s2 or l1:3
	Switch string  `yaml:"switch"`
	Plane  int     `yaml:"plane"`      // all links of a plane, from 1
	Down   bool    `yaml:"down"`       // the link or the switch is down, and the controller is notified
	Drop   float64 `yaml:"drop"`       // the switch silently drops this share of the packets
	Hole   float64 `yaml:"black-hole"` // it loses all packets of this share of the pairs of hosts; 1: and all probes
	Rate   Bitrate `yaml:"rate"`       // the link, or all links of the switch, silently have this rate
	Known  bool    `yaml:"known"`      // the controller is notified of the rate
	Errors float64 `yaml:"bit-errors"` // the share of wrong bits on the link, or all links of the switch
	Every  Time    `yaml:"every"`      // it begins again after this time
	Times  int     `yaml:"times"`      // so often in all
}

// A Class contains the flows up to a size and above the previous class.
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

// Seeds are the seeds of an experiment: a number of seeds from 1, or a list.
type Seeds []uint64

// A LoadLevel is a share from 0 to 1, both left out.
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

// name returns the name of the scheme, with the architecture if it is hardware.
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

// errNoAdvice is wrapped by the refusal to compute parameters for a network that
// the papers' formulas cannot be applied to.
var errNoAdvice = errors.New("there is no advice")

// Parameters returns the scheme's parameters in a case with network t: values of the
// row, else of the case, else advised values.
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

// advised are the values that the papers' formulas give the scheme in a network.
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

// advisedOn is the case's network as the formulas see it.
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

// Length is the time in which flows start: to the last of them where their
// times are given.
func (s *Setting) Length() time.Duration { return time.Duration(s.Duration) }

// Adjust sets the engine of all rows and the seeds of all cases, unless they are empty.
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

// Observing describes the observations of ports while flows start, which are fitted at
// the end of the run: QALL's dataset (Section III-B) and its Table I. The interval is
// the time between the last two packets, as a switch measures it.
type Observing struct {
	Every    Time     `yaml:"every"`
	Switches []string `yaml:"switches"` // the switches with observed ports to other switches; empty: all
	Outliers string   `yaml:"outliers"` // as p4lb fit drops them: none, sigma:3
	Test     float64  `yaml:"test"`     // share of the rows that is held back
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

// Made is the scheme, once the experiment has been checked.
func (s *Scheme) Made() scheme.Scheme { return s.made }

// A Reader reads the files that an experiment names: topologies, workloads,
// flow lists, models.
type Reader func(name string) ([]byte, error)
