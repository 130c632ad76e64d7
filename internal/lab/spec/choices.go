package spec

import (
	"bytes"
	"cmp"
	_ "embed"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/p4lb/p4lb/internal/network/fabric"
	"github.com/p4lb/p4lb/internal/scheme"
	"github.com/p4lb/p4lb/internal/sim"
	"github.com/p4lb/p4lb/internal/text/lists"
)

// A Choice is a modelling choice: a detail that simulators, network cards and switches
// implement differently and that papers omit. docs/fidelity.md lists the effect of
// each choice.
type Choice struct {
	Key     string   // such as switches.marking
	Values  []string // possible values; none: it is a quantity
	Default string
	About   string
	Why     string // reason for the default

	like   map[string]string // values of the presets that differ from the default
	Kind   string            // kind of transport that it applies to; "": all
	native []string          // values that generated programs do not support
}

// Presets are named sets of choices besides the defaults: ns-3's simulator of RDMA with load
// balancers (conweave-ns3), ns-2 as used by the authors of PDLB and QDAPS, htsim (csg-htsim), and
// commercial network cards and switches.
var Presets = []string{"ns3", "ns2", "htsim", "hardware"}

// Values of choices that the code compares with.
const (
	ByPlace          = "place"
	WholeNanoseconds = "whole"
	exactLines       = "exact"
	atDequeue        = "dequeue"
	hashed           = "hashed"
	first            = "first"
	hashLikeNS3      = "ns3"
	ownDraws         = "own"
	drawsLikeNS3     = "ns3"
	byHost           = "host"
	remembered       = "remembered"
	fiveTuple        = "5-tuple"
	keyLikeNS3       = "ns3"
	allPaths         = "all"
	fourPaths        = "four"
	carried          = "carried"
	notCarried       = "free"
	fading           = "fading"
	inSteps          = "steps"
	inTurn           = "turn"
	asHeard          = "heard"
	atEnqueue        = "enqueue"
	atOnce           = "now"
	everywhere       = "everywhere"
	nackAny          = "any"
	nackExpected     = "expected"
	nackSelective    = "selective"
	nackNone         = "none"
	nackIRN          = "irn"
	withNotice       = "notice"
	everyMark        = "each mark"
	repeatMissing    = "missing"
	repeatAll        = "all"
	udpHeaders       = "42"
	ofEach           = "each"
	ofAnswered       = "answered"
	twoFullPackets   = "two packets"
	waitsInHost      = "host"
	waitsInCard      = "card"
	fixedShare       = "share"
	scaledLinks      = "scaled"
	noPromise        = "none"
	promisedQueues   = "queues"
	whatIsFree       = "free"
	withSACK         = "sack"
	withoutSACK      = "newreno"
	cutAtMark        = "mark"
	cutEachWindow    = "window"
)

// Choices lists all modelling choices.
func Choices() []Choice { return slices.Clone(choices) }

var choices = []Choice{
	{
		Key: "ties", Values: []string{"planned", ByPlace}, Default: "planned",
		About: "the order of simultaneous events: by scheduling time, or by port or flow; place lets one run use several cores (--cores-per-run) with the same bytes on any number",
		Why:   "every single-core simulator does so; with place, results differ as with another seed, and a run ends up to the shortest link's delay later",
	},
	{
		Key: "lines", Values: []string{exactLines, WholeNanoseconds}, Default: exactLines,
		About: "the transmission time of a packet: exact, with fractions of a nanosecond carried over to the next packet, or whole nanoseconds, so that packets of one size take equally long and arrive exactly when space becomes free",
		Why:   "exact times give the exact rate, while whole nanoseconds add 4 % at 400 Gb/s; with drop-tail queues, exact times make losses random instead of always hitting the same flow",
		like:  map[string]string{"ns3": WholeNanoseconds, "htsim": WholeNanoseconds},
	},
	{
		Key: "switches.marking", Values: []string{atEnqueue, atDequeue}, Default: atEnqueue,
		About: "when ECN marks: on arrival, by the queue in front of the packet, or on departure, by the queue behind it",
		Why:   "RED and DCTCP are defined like this, and so is ns-2, which three of the papers used",
		like:  map[string]string{"ns3": atDequeue, "htsim": atDequeue, "hardware": atDequeue},
	},
	{
		Key: "switches.control", Values: []string{"balanced", hashed}, Default: "balanced",
		About: "the paths of ACKs, Nacks and notices: chosen by the scheme, as for data, or by a hash of their flow, hidden from the scheme",
		Why:   "the programs, like those of the papers, treat them like data",
		like:  map[string]string{"ns3": hashed}, native: []string{hashed},
	},
	{
		Key: "switches.control-priority", Values: []string{"none", first}, Default: "none",
		About: "whether ACKs, Nacks and notices overtake data in queues and are exempt from PFC",
		Why:   "the papers' switches and the default BMv2 have one queue per port",
		like:  map[string]string{"ns3": first},
	},
	{
		Key: "switches.hash", Values: []string{"crc32", hashLikeNS3}, Default: "crc32",
		About: "the hash for paths: CRC32, or MurmurHash3 of ns-3's addresses and ports with the switch's number",
		Why:   "the programs compute CRC32; the other hash reproduces the paths of ECMP in ns-3",
		like:  map[string]string{"ns3": hashLikeNS3}, native: []string{hashLikeNS3},
	},
	{
		Key: "switches.draws", Values: []string{ownDraws, drawsLikeNS3}, Default: ownDraws,
		About: "the source of schemes' random numbers: one stream per switch, or one for all, glibc's rand() seeded with the run's seed as in conweave-ns3 with that RANDOM_SEED",
		Why:   "draws of one switch are then independent of others; the other source reproduces LetFlow's paths in ns-3, until a flowlet ends in only one of the two",
		like:  map[string]string{"ns3": drawsLikeNS3}, native: []string{drawsLikeNS3},
	},
	{
		Key: "switches.pfc-hysteresis", Default: twoFullPackets,
		About: "how far below the pause threshold a port resumes",
		Why:   "RLB's description and network cards do so; ns-3 resumes 16 bytes times alpha below, which is one byte",
		like:  map[string]string{"ns3": "1"},
	},
	{
		Key: "switches.pfc-promised", Values: []string{noPromise, promisedQueues}, Default: noPromise,
		About: "buffer reserved before ports share it by pfc-alpha: none, or a packet for each of the eight queues of a port, which ECN then ignores; an ingress port also has two packets in addition to its share",
		Why:   "RLB's description shares everything but the headroom; ns-3 follows a Broadcom switch",
		like:  map[string]string{"ns3": promisedQueues},
	},
	{
		Key: "switches.queue-limit", Values: []string{fixedShare, whatIsFree}, Default: fixedShare,
		About: "without PFC, the queue limit at a port of a switch with a buffer: its share of the buffer or the link's number of packets, or as much as is free in the buffer (a dynamic threshold with alpha 1; pfc-alpha sets another)",
		Why:   "topologies, papers and BMv2 specify queues in packets; with the free buffer as limit, one incast takes half of the buffer",
		like:  map[string]string{"ns3": whatIsFree, "hardware": whatIsFree},
	},
	{
		Key: "switches.slow-links", Values: []string{"same", scaledLinks}, Default: "same",
		About: "queue limits and ECN thresholds of a link between switches that is slower than the fastest one: the same bytes, or the same time, in proportion to its rate",
		Why:   "a switch does not know that a link is degraded; htsim reduces both with the rate, so that senders which avoid marked paths leave a slow link earlier",
		like:  map[string]string{"htsim": scaledLinks},
	},
	{
		Key: "switches.drill-memory", Values: []string{"group", byHost}, Default: "group",
		About: "whether DRILL remembers its least loaded path for each group of next hops, or for each destination host",
		Why:   "DRILL's paper has one memory per engine and group; the program has one cell per group",
		like:  map[string]string{"ns3": byHost}, native: []string{byHost},
	},
	{
		Key: "switches.drill-ties", Values: []string{"sampled", remembered}, Default: "sampled",
		About: "which of two equal queues DRILL takes: a drawn one, or the remembered one",
		Why:   "the program compares drawn paths first",
		like:  map[string]string{"ns3": remembered}, native: []string{remembered},
	},
	{
		Key: "switches.flow-key", Values: []string{fiveTuple, keyLikeNS3}, Default: fiveTuple,
		About: "the key of flow tables: the 5-tuple, or, as in conweave-ns3's LetFlow and CONGA, the destination and the ports with four destination ports merged; the first flows of several hosts of a leaf to one host then share an entry and a path",
		Why:   "the papers use the 5-tuple, and the programs hash it; the shorter key in ns-3 is an oversight",
		like:  map[string]string{"ns3": keyLikeNS3}, native: []string{keyLikeNS3},
	},
	{
		Key: "switches.conga-paths", Values: []string{allPaths, fourPaths}, Default: allPaths,
		About: "the paths that CONGA compares: all, with ties resolved from a random one on, or four adjacent ones, with random ties, so that of six paths the two in the middle are chosen three times as often as the outer ones",
		Why:   "CONGA's paper compares all; the program compares them in sequence",
		like:  map[string]string{"ns3": fourPaths}, native: []string{fourPaths},
	},
	{
		Key: "switches.overlay", Values: []string{carried, notCarried}, Default: carried,
		About: "whether the headers with path information between leaves (CONGA, QDAPS*) take time on links",
		Why:   "the programs insert them before IPv4; if hosts' links are as fast as the fabric's, a flow at full rate then slightly overloads any path, with lines: whole by one of 21 nanoseconds at 400 Gb/s",
		like:  map[string]string{"ns3": notCarried}, native: []string{notCarried},
	},
	{
		Key: "switches.conga-rates", Values: []string{fading, inSteps}, Default: fading,
		About: "CONGA's estimate of a port's rate: each decays with the time since its last packet and is 0 after 2^window us, or all decay by a fifth each 50 us",
		Why:   "the program has HULA's estimator, which needs no timer; the paper has the other one",
		like:  map[string]string{"ns3": inSteps}, native: []string{inSteps},
	},
	{
		Key: "switches.conga-news", Values: []string{inTurn, asHeard}, Default: inTurn,
		About: "the path information that a leaf with CONGA reports: all paths in turn, with the latest value of any age, or a random path with arrivals in the last 500 us; older information then expires",
		Why:   "the program reports in turn, as the paper, and expires information after ageing",
		like:  map[string]string{"ns3": asHeard}, native: []string{asHeard},
	},
	{
		Key: "switches.knowledge", Values: []string{"departure", atEnqueue, atOnce, everywhere}, Default: "departure",
		About: "when a scheme learns queue lengths: at departures, also at arrivals, or at the decision itself, in bytes, with the packet being sent if switches trim; with now a scheme that uses loads counts packets on arrival; everywhere is now, with the queues of the next switch",
		Why:   "a software switch measures in egress and learns by report or shared register; the ghost thread of Tofino 2 sees arrivals and departures; no switch sees a queue at once",
		like:  map[string]string{"ns3": atOnce, "htsim": atOnce, "ns2": atOnce}, native: []string{atEnqueue, atOnce, everywhere},
	},
	{
		Key: "transport.waiting", Values: []string{waitsInHost, waitsInCard}, Default: waitsInHost, Kind: "tcp dctcp",
		About: "where segments of TCP's window wait for the host's link: in the host, with flows in turn, or in the card, in order, with ACKs of other flows behind them",
		Why:   "Linux holds segments back until its card has room (TCP small queues), and its fair queueing serves flows in turn",
		like:  map[string]string{"htsim": waitsInCard},
	},
	{
		Key: "transport.recovery", Values: []string{withSACK, withoutSACK}, Default: withSACK, Kind: "tcp dctcp",
		About: "TCP's information about losses: all arrivals (SACK, RFC 6675), or the first missing byte, so that each round trip repairs one loss (NewReno, RFC 6582)",
		Why:   "Mininet's hosts run Linux, which uses SACK",
		like:  map[string]string{"htsim": withoutSACK},
	},
	{
		Key: "transport.dctcp-alpha", Values: []string{"1", "0"}, Default: "1", Kind: "dctcp",
		About: "DCTCP's initial estimate of congestion: the first mark halves the window, or hardly changes it",
		Why:   "RFC 8257 recommends it, and Linux does so",
		like:  map[string]string{"htsim": "0"},
	},
	{
		Key: "transport.dctcp-cut", Values: []string{cutAtMark, cutEachWindow}, Default: cutAtMark, Kind: "dctcp",
		About: "when DCTCP reduces the window: at a mark, once per window of data, or at the end of each window, even without a mark",
		Why:   "RFC 8257 specifies it",
		like:  map[string]string{"htsim": cutEachWindow},
	},
	{
		Key: "transport.rdma.nack", Values: []string{nackAny, nackExpected, nackSelective, nackNone, nackIRN}, Default: nackAny, Kind: "dcqcn",
		About: "early packets are dropped, and the sender goes back on any Nack, or on one of the first unacknowledged byte; or they are kept, and it repeats missing ones (selective, as in IRN), or nothing before a timeout (none), or those missing for longer than reordering, with a window of one round trip and short timeouts (irn)",
		Why:   "an ACK may overtake a Nack if control packets are balanced; a sender that ignores the Nack waits for a timeout",
		like:  map[string]string{"hardware": nackExpected},
	},
	{
		Key: "transport.rdma.nack-as", Values: []string{"nack", withNotice}, Default: "nack", Kind: "dcqcn",
		About: "whether a Nack slows the sender as a congestion notice does",
		Why:   "DCQCN's notices only report marks; conweave-ns3 adds them to Nacks, and ConnectX cards slow down on their own (RoCE slow restart)",
		like:  map[string]string{"ns3": withNotice, "hardware": withNotice},
	},
	{
		Key: "transport.rdma.repeat", Values: []string{repeatMissing, repeatAll}, Default: repeatMissing, Kind: "dcqcn",
		About: "with nack: selective, the data that a Nack repeats: missing data below the highest arrival, or all data in flight from the first missing byte on, except one range that has arrived",
		Why:   "IRN's description specifies it; conweave-ns3 goes back like go-back-N, and repeats four times as much if packets overtake each other",
		like:  map[string]string{"ns3": repeatAll},
	},
	{
		Key: "transport.rdma.notices", Values: []string{ofEach, ofAnswered}, Default: ofEach, Kind: "dcqcn",
		About: "the marks that reach the sender: those of each packet, or only of acknowledged packets, not of early packets that arrive too soon for another Nack",
		Why:   "DCQCN's receiver sends separate notices; conweave-ns3 sets a bit in ACKs and Nacks",
		like:  map[string]string{"ns3": ofAnswered},
	},
	{
		Key: "transport.rdma.notice-every", Default: everyMark, Kind: "dcqcn",
		About: "the least time between two congestion notices to one sender; values up to alpha-interval have no effect",
		Why:   "the sender uses one per interval of alpha and of reductions anyway; a separate limit would suppress one that falls into the next interval",
		like:  map[string]string{"hardware": "4us"},
	},
	{
		Key: "transport.rdma.headers", Default: udpHeaders, Kind: "dcqcn",
		About: "bytes of a data packet in addition to its payload, including Ethernet; switches treat bytes beyond Ethernet, IP and UDP as payload",
		Why:   "the programs parse this much; RoCEv2 has 16 bytes more (BTH and ICRC), conweave-ns3 six",
		like:  map[string]string{"ns3": "48", "hardware": "58"},
	},
	{
		Key: "transport.rdma.answer", Default: udpHeaders, Kind: "dcqcn",
		About: "bytes of an ACK, Nack or notice, including Ethernet",
		Why:   "as for headers; RoCEv2 has 20 bytes more (BTH, AETH and ICRC), conweave-ns3 the shortest Ethernet frame",
		like:  map[string]string{"ns3": "60", "hardware": "62"},
	},
}

// places holds the indices of a setting's fields by key. It is computed once, because the key of
// each run needs all choices.
var places = sync.OnceValue(func() map[string][]int {
	list := map[string][]int{}
	var walk func(t reflect.Type, path string, index []int)
	walk = func(t reflect.Type, path string, index []int) {
		for i := range t.NumField() {
			name, ok := formName(t.Field(i))
			key, at := path+name, append(slices.Clip(index), i)
			if ok {
				list[strings.TrimPrefix(key, ".")] = at
			}
			if t := t.Field(i).Type; ok && t.Kind() == reflect.Struct {
				walk(t, key, at)
			}
		}
	}
	walk(reflect.TypeFor[Setting](), "", nil)
	return list
})

// field returns the field of a setting that holds the choice.
func (c *Choice) field(s *Setting) reflect.Value {
	return reflect.ValueOf(s).Elem().FieldByIndex(places()[c.Key])
}

// get returns the choice in a setting as text; "": not set.
func (c *Choice) get(s *Setting) string {
	v := c.field(s)
	if v.IsZero() {
		return ""
	}
	return fmt.Sprint(v.Interface())
}

func (c *Choice) set(s *Setting, value string) {
	var err error
	switch v := c.field(s).Addr().Interface().(type) {
	case *string:
		*v = value
	case *Size:
		err = v.Parse(value)
	case *Time:
		err = v.parse(value)
	}
	if err != nil {
		panic(err) // an invalid preset value
	}
}

// concerns reports whether the choice applies to a setting's transport.
func (c *Choice) concerns(s *Setting) bool {
	if s.Ties == ByPlace && c.Key == "switches.draws" {
		return false // a single random sequence for all switches requires one order of events
	}
	return c.Kind == "" || slices.Contains(strings.Fields(c.Kind), s.Transport.Kind)
}

// Like returns the value in a preset. The preset "" has the default values.
func (c *Choice) Like(preset string) string { return cmp.Or(c.like[preset], c.Default) }

// as applies a preset to all unset choices.
func (s *Setting) as(preset string) {
	for i := range choices {
		c := &choices[i]
		if v, ok := c.like[preset]; ok && c.concerns(s) && c.get(s) == "" {
			c.set(s, v)
		}
	}
}

// Of returns the value of the choice in a setting.
func (c *Choice) Of(s *Setting) string { return cmp.Or(c.get(s), c.Default) }

// checkChoices returns an error for an unknown choice or one that a row does not support, and the
// key of the choice in the file.
func (x *Experiment) checkChoices(c *Case) (key string, err error) {
	if c.Like != "" && !slices.Contains(Presets, c.Like) {
		return "like", fmt.Errorf("like %q: want one of %s", c.Like, strings.Join(Presets, ", "))
	}
	for i := range choices {
		k := &choices[i]
		v := k.Of(&c.Setting)
		if len(k.Values) > 0 && !slices.Contains(k.Values, v) {
			return k.Key, fmt.Errorf("%q: want %s", v, orList(k.Values))
		}
		if err := x.fits(c, k, v); err != nil {
			return k.Key, err
		}
	}
	w, r := &c.Switches, &c.Transport.RDMA
	if c.Ties == ByPlace && w.Knowledge == everywhere {
		return "ties", errors.New("place cannot read queues of other switches at once, which knowledge: everywhere requires: want planned")
	}
	if c.Ties == ByPlace && w.Draws == drawsLikeNS3 {
		return "ties", errors.New("place has no order in which switches draw from one sequence, which draws: ns3 asks for: want planned")
	}
	pfc := w.PFC != nil && *w.PFC
	switch {
	case w.Hysteresis > 0 && !pfc && c.Like == "":
		return "switches.pfc-hysteresis", errors.New("without pfc nothing is paused: want pfc: true")
	case w.Limit == whatIsFree && w.Queue > 0 && c.Like == "":
		return "switches.queue-limit", fmt.Errorf("free, and queue: %d packets: want one of them", w.Queue)
	case w.Pause > 0 && w.Hysteresis > w.Pause:
		return "switches.pfc-hysteresis", fmt.Errorf("%v is more than the threshold of %v: a port would not go on", w.Hysteresis, w.Pause)
	case w.Marking != "" && w.ECN <= 0 && w.KMax == 0 && c.Like == "" && !c.MarksByBDP():
		return "switches.marking", errors.New("nothing is marked: want ecn, or ecn-min and ecn-max")
	case c.Transport.Loss == withoutSACK && c.Transport.MaxDup > 0:
		return "transport.max-dupacks", errors.New("recovery newreno cannot distinguish reordering from loss: want recovery: sack, or no max-dupacks")
	case r.NackAs == withNotice && r.Nack == nackNone:
		return "transport.rdma.nack-as", errors.New("there are no Nacks with nack: none")
	case (r.Reordering > 0 || r.BaseRTT > 0) && r.Nack != nackIRN:
		return "transport.rdma.reordering", errors.New("reordering and base-rtt are of nack: irn alone")
	case r.NackEvery > 0 && r.Nack == nackNone:
		return "transport.rdma.nack-every", errors.New("there are no Nacks with nack: none")
	}
	return "", nil
}

// fits reports whether all rows of a case can have a value of a choice.
func (x *Experiment) fits(c *Case, k *Choice, value string) error {
	if !slices.Contains(k.native, value) {
		return nil
	}
	for _, s := range x.SchemesOf(c) {
		switch {
		case s.Engine == EngineP4:
			return fmt.Errorf("%s runs a generated program, which cannot have %q: want engine native, or %s", s.Label, value, k.Default)
		case value == hashed && s.heedsEchoes():
			return fmt.Errorf("%s needs the congestion echo in acknowledgments, which is hidden from it", s.Label)
		}
	}
	return nil
}

// heedsEchoes reports whether a scheme learns from acknowledgments.
func (s *Scheme) heedsEchoes() bool {
	row, ok := scheme.RowOf(s.made)
	return ok && row.Signal == "echo"
}

func orList(values []string) string {
	n := len(values) - 1
	return strings.Join(values[:n], ", ") + " or " + values[n]
}

// Apply applies the choices to the options of a network.
func (w *SwitchSpec) Apply(o *sim.Options) {
	o.ClockStep = time.Duration(w.Clock)
	o.ECN.Dequeue = w.Marking == atDequeue
	o.Answers = sim.Answers{Hashed: w.Control == hashed, First: w.Priority == first}
	o.Scaled = w.SlowLinks == scaledLinks
	o.PFC.Resume, o.PFC.Promised = fabric.Size(w.Hysteresis), w.Promised == promisedQueues
	if w.Limit == whatIsFree && w.Queue == 0 && !o.PFC.On && o.Alpha == 0 {
		o.Alpha = 1
	}
	if w.Hash == hashLikeNS3 {
		o.Hash = sim.HashNS3
	}
	if w.Draws == drawsLikeNS3 {
		o.Draws = sim.DrawsNS3
	}
}

// Vary applies the choices to a model.
func (w *SwitchSpec) Vary(m *sim.Model) {
	m.HostMemory, m.MemoryFirst = w.DrillMemory == byHost, w.DrillTies == remembered
	m.LooseFlows, m.FourPaths = w.FlowKey == keyLikeNS3, w.CongaPaths == fourPaths
	m.Steps, m.HeardNews = w.CongaRates == inSteps, w.CongaNews == asHeard
	if w.Overlay == notCarried {
		m.OverlayLen = 0
	}
	switch w.Knowledge {
	case atEnqueue:
		m.Ghost = true
	case atOnce, everywhere:
		m.AtOnce, m.Onward = true, w.Knowledge == everywhere
	}
}

// nackPolicy converts the choice to the simulator's type.
func (s *RDMASpec) nackPolicy() sim.NackPolicy {
	switch s.Nack {
	case nackExpected:
		return sim.GoBackOnExpected
	case nackSelective:
		return sim.Selective
	case nackNone:
		return sim.KeepEarly
	case nackIRN:
		return sim.Patient
	}
	return sim.GoBackOnAny
}

// A Chosen is a choice that differs from the default, for reports.
type Chosen struct{ Key, Value, Default string }

// Chosen lists the choices of a setting that differ from the defaults.
func (s *Setting) Chosen() []Chosen {
	var list []Chosen
	for i := range choices {
		if c := &choices[i]; c.concerns(s) && c.Of(s) != c.Default {
			list = append(list, Chosen{c.Key, c.Of(s), c.Default})
		}
	}
	return list
}

// Apart names the choice that changes the results of some rows by more than a tenth
// compared with ns-3, and the size of the effect. docs/fidelity.md contains the
// measurements.
func (x *Experiment) Apart(c *Case) string {
	r := &c.Transport.RDMA
	if c.Transport.Kind != "dcqcn" || r.NackAs == withNotice || r.Nack == nackSelective || r.Nack == nackNone || r.Nack == nackIRN {
		return ""
	}
	var rows []string
	for _, s := range x.SchemesOf(c) {
		if row, ok := scheme.RowOf(s.made); ok && (row.Granularity == "packet" || row.Granularity == "flowcell") {
			rows = append(rows, s.Label)
		}
	}
	if rows == nil {
		return ""
	}
	return strings.Join(rows, ", ") + ": packets overtake each other, and a Nack does not slow the sender (transport.rdma.nack-as: nack), which then sends again and again at full rate; where it does, as in ns-3, such flows took 0.4 to 0.6 of the time"
}

// Defaults returns the choices as part of an experiment file, with the reasons of the
// defaults. For a preset it returns the choices that differ from the defaults.
func Defaults(preset string) ([]byte, error) {
	if preset != "" && !slices.Contains(Presets, preset) {
		return nil, fmt.Errorf("like %q: want one of %s", preset, strings.Join(Presets, ", "))
	}
	var b bytes.Buffer
	if preset != "" {
		fmt.Fprintf(&b, "# the same as like: %s\n", preset)
	}
	above := []string{}
	for i := range choices {
		c := &choices[i]
		path := strings.Split(c.Key, ".")
		same := 0
		for same < len(above) && above[same] == path[same] {
			same++
		}
		for d := same; d < len(path)-1; d++ {
			fmt.Fprintf(&b, "%s%s:\n", strings.Repeat("  ", d), path[d])
			if path[d] == "transport" {
				b.WriteString("  kind: dcqcn\n")
			}
		}
		above = path[:len(path)-1]
		c.write(&b, strings.Repeat("  ", len(above)), path[len(path)-1], preset)
	}
	return b.Bytes(), nil
}

// write writes one choice. It omits a default that is not a possible value.
func (c *Choice) write(b *bytes.Buffer, indent, name, preset string) {
	value := c.Like(preset)
	why := "default, because " + c.Why
	if value != c.Default {
		why = "default " + c.Default
	}
	fmt.Fprintf(b, "%s# %s\n%s# %s\n", indent, c.About, indent, why)
	if len(c.Values) == 0 && value == c.Default {
		fmt.Fprintf(b, "%s# %s: %s\n", indent, name, value)
		return
	}
	fmt.Fprintf(b, "%s%s: %s", indent, name, value)
	if len(c.Values) > 0 {
		fmt.Fprintf(b, " # %s", orList(c.Values))
	}
	b.WriteString("\n")
}

// Nearest returns the presets that agree with a setting in all choices.
func (s *Setting) Nearest() []string {
	agree := map[string]bool{}
	for _, p := range Presets {
		agree[p] = !slices.ContainsFunc(choices, func(c Choice) bool { return c.concerns(s) && c.Of(s) != c.Like(p) })
	}
	maps.DeleteFunc(agree, func(_ string, ok bool) bool { return !ok })
	return slices.Sorted(maps.Keys(agree))
}

// Otherwise describes the choices that differ from the defaults.
func (s *Setting) Otherwise() string {
	list := lists.Map(s.Chosen(), func(c Chosen) string { return fmt.Sprintf("%s: %s (default %s)", c.Key, c.Value, c.Default) })
	text := strings.Join(list, "; ")
	if same := s.Nearest(); text != "" && len(same) > 0 {
		text += "; so they are all like " + strings.Join(same, ", ")
	}
	return text
}

// ClearDefaults removes choices that equal the default, and the preset. Equivalent
// settings then become equal, regardless of how they were written.
func (s *Setting) ClearDefaults() {
	s.Like = ""
	if s.Transport.Ports == consecutivePorts {
		s.Transport.Ports = ""
	}
	for i := range choices {
		if c := &choices[i]; len(c.Values) > 0 && c.Of(s) == c.Default {
			c.set(s, "")
		}
	}
}
