package lab

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/p4lb/p4lb/fitting"
	"github.com/p4lb/p4lb/internal/bmv2"
	"github.com/p4lb/p4lb/internal/controller/plan"
	"github.com/p4lb/p4lb/internal/dataplane"
	"github.com/p4lb/p4lb/internal/lab/spec"
	"github.com/p4lb/p4lb/internal/network/fabric"
	"github.com/p4lb/p4lb/internal/scheme/manifest"
	"github.com/p4lb/p4lb/internal/sim"
	"github.com/p4lb/p4lb/internal/text/lists"
	"github.com/p4lb/p4lb/internal/text/plain"
)

// A Job is one run to execute: a row in a case, at a load, with a seed.
type Job struct {
	Case   *spec.Case
	Scheme *spec.Scheme
	Load   float64
	Seed   uint64

	setup  *setup
	x      *spec.Experiment
	rounds int               // limit on the rounds of a packet in a switch; 0: the data plane's default
	cores  int               // number of cores for this run, if ties are decided by place
	world  string            // world in real time; "": the simulator
	deploy deployer          // deploys P4 programs; nil: deployDirect
	begin  func(*View) error // called before the first packet; nil: none
	warn   func(row, text string)
	serve  *Serve // controllers of the user; nil: none
}

// Name returns the name of the run and of its folder.
func (j *Job) Name() string {
	name := fmt.Sprintf("%s/load-%s/seed-%d", plain.Folder(j.Scheme.Label), spec.Number(j.Load), j.Seed)
	if j.Case.Name != "" {
		name = plain.Folder(j.Case.Name) + "/" + name
	}
	return name
}

// Serve lets controllers of the user drive the switches of a row in virtual time. The clock stops
// at points in time called moments. Requests of controllers are processed while the clock stands
// still.
type Serve struct {
	// Address is the address of the page about the switches. The P4Runtime servers of the
	// switches use the following ports, in the order of the topology. Port 0 selects free ports.
	Address string
	// BfRt serves BfRt instead of P4Runtime, for programs for Tofino.
	BfRt bool
	// Every is the virtual time between moments.
	Every time.Duration
	// Wait is the number of controllers that call /next at each moment. With 0, the clock waits
	// until real time catches up.
	Wait int
	// Slow is the least real time, in seconds, that a second of virtual time takes if Wait is 0;
	// 0: 1.
	Slow float64
	// Timeout is how long a controller may be silent at a moment; 0: a second.
	Timeout time.Duration
	// Start is how long the first moment waits for controllers; 0: a minute.
	Start time.Duration
	// Log receives lines about controllers; nil discards them.
	Log func(text string)
	// Warnings receives the log of the servers and switches, such as malformed calls; nil discards
	// it.
	Warnings *slog.Logger

	row string     // label of the row
	mu  sync.Mutex // locked during the run that is being served
}

// A guided deployment lets controllers of the user take part in a run.
type guided interface {
	begin(ctx context.Context)
	setLinks(links []int, up bool)
	finish()
}

// A Result holds the measurements of a run.
type Result struct {
	Experiment string             `json:"experiment"`
	Case       string             `json:"case,omitempty"`
	Scheme     string             `json:"scheme"`
	Label      string             `json:"label"`
	Engine     string             `json:"engine"`
	Arch       string             `json:"arch,omitempty"`  // "": v1model
	World      string             `json:"world,omitempty"` // "": Sim
	Load       float64            `json:"load"`
	Seed       uint64             `json:"seed"`
	Spec       string             `json:"spec"` // key of the run: see Job.Key
	Programs   map[string]string  `json:"programs"`
	Parameters map[string]string  `json:"parameters"`
	Flows      int                `json:"flows"`   // number of flows that count
	Hops       int64              `json:"hops"`    // packets that switches received
	Elapsed    time.Duration      `json:"elapsed"` // in virtual time
	Metrics    map[string]float64 `json:"metrics"`
	Lost       map[string]int64   `json:"lost,omitempty"` // lost packets by reason
	Plots      Plots              `json:"plots"`
	Alerts     []string           `json:"alerts,omitempty"`
}

// Plots are the curves of one run.
type Plots struct {
	FCT      []float64 `json:"fct_ms"`   // quantiles from 0 to 100 % in steps of 1 %
	Slowdown []float64 `json:"slowdown"` // quantiles in the same steps
	Sizes    []sizeBin `json:"sizes"`    // by bin of sizeBins
	Time     []float64 `json:"time_s"`
	Queue    []float64 `json:"queue"`  // occupancy of upward queues, by Time
	Names    []string  `json:"paths"`  // names of upward links
	Shares   []float64 `json:"shares"` // share of the leaf's bytes, by Names

	// For collectives:
	Tail  []float64 `json:"tail_ms,omitempty"` // quantiles 99.1 to 99.9 % of the completion times
	Steps *Steps    `json:"steps,omitempty"`
	Uses  *Uses     `json:"uses,omitempty"`
}

// A sizeBin is the flows of similar size.
type sizeBin struct {
	Flows    int     `json:"flows"`
	Slowdown float64 `json:"slowdown"` // mean slowdown
}

// sizeBins are the upper limits of the bins; the last has none.
var sizeBins = []int64{10e3, 30e3, 100e3, 300e3, 1e6, 3e6, 10e6, 0}

// sizeName returns the name of a bin.
func sizeName(bin int) string {
	if sizeBins[bin] == 0 {
		return "> " + spec.Size(sizeBins[bin-1]).String()
	}
	return "≤ " + spec.Size(sizeBins[bin]).String()
}

// bySize sorts the flows that count into the bins.
func bySize(flows []*outcome) []sizeBin {
	bins := make([]sizeBin, len(sizeBins))
	for _, f := range flows {
		if f.counts {
			i := slices.IndexFunc(sizeBins, func(upto int64) bool { return upto == 0 || f.Bytes <= upto })
			bins[i].Flows++
			bins[i].Slowdown += slowdown(f)
		}
	}
	for i := range bins {
		if bins[i].Flows > 0 {
			bins[i].Slowdown = round(bins[i].Slowdown / float64(bins[i].Flows))
		}
	}
	return bins
}

// run executes a job. It writes the rows of flows and links to the writers, which may be nil.
// record, if not nil, observes the run.
func (j *Job) run(ctx context.Context, flows, links io.Writer, record Recorder) (*Result, error) {
	if record != nil || j.begin != nil || j.serve != nil || len(j.setup.topo.Services) > 0 {
		alone := *j
		alone.cores = 1 // callbacks handle packets in one goroutine, and servers are only known during the run
		j = &alone
	}
	r, err := j.prepare(ctx)
	if err != nil {
		return nil, err
	}
	defer r.close()
	guided, _ := r.deploy.(guided)
	if guided != nil {
		guided.begin(ctx)
	}
	if j.begin != nil {
		if err := j.begin(r.view()); err != nil {
			return nil, err
		}
	}
	if record != nil {
		if err := record.Begin(r.view()); err != nil {
			return nil, err
		}
	}
	r.sampler = newSampler(r, links)
	r.sampler.start()
	rows := r.observe()
	if err := r.startFlows(); err != nil {
		return nil, err
	}
	if err := r.planFaults(ctx); err != nil {
		return nil, err
	}
	r.startTasks()
	if err := r.advance(ctx); err != nil {
		return nil, err
	}
	if len(r.flows) >= manyFlows {
		runtime.GC()
	}
	if record != nil {
		if err := record.End(); err != nil {
			return nil, err
		}
	}
	if err := r.sampler.err(); err != nil {
		return nil, err
	}
	fit, err := r.fit(ctx, rows)
	if err != nil {
		return nil, err
	}
	if guided != nil {
		guided.finish()
	}
	result := r.result(fit)
	maps.Copy(result.Metrics, r.reported)
	return result, writeFlows(flows, r)
}

// manyFlows is the number of flows from which a run frees the simulator's state before it computes
// metrics, whose lists would otherwise extend the heap.
const manyFlows = 100_000

// A running is the state of a run.
type running struct {
	*Job
	net      *sim.Network
	topo     *fabric.Topology
	deploy   deployment
	planned  *plan.Plan // initial plan of the switches
	nodes    []*plan.Node
	flows    []*outcome
	sims     []*sim.Flow        // by flow, in networks with services; nil: not started
	tunings  map[string]*tuning // by the kind of transport that a flow names
	services []*sim.Service
	work     *dependent // nil: no flow waits for another
	left     int        // number of unfinished flows
	done     func(*sim.Flow)
	sampler  *sampler
	tasks    *taskFabric
	finish   func() // checks the work of the tasks; nil: there are none
	alerts   []string
	failed   error // error of an event
	unturned overRounds
	drops    []*[bmv2.DropReasons]int64 // drops of programs by reason, for each planned switch; nil: not counted
	recovery recovery
	reported map[string]float64                // metrics from the caller's Recorder
	onDigest map[string]func(dataplane.Digest) // by switch name
}

// overRounds counts the packets that exceeded their rounds in a switch. Switches on several cores
// report them.
type overRounds struct {
	mu    sync.Mutex
	n     int64
	least string // smallest alert by text, printed if the first one is unknown
}

// prepare builds the network and loads its switches.
func (j *Job) prepare(ctx context.Context) (*running, error) {
	r := &running{Job: j, topo: j.setup.topo}
	r.done = r.finished // one function value for all flows
	var err error
	if r.net, err = sim.New(r.topo, j.simOptions()); err != nil {
		return nil, err
	}
	if r.deploy, err = deploy(ctx, r); err != nil {
		return nil, err
	}
	r.nodes = r.planned.Nodes()
	return r, nil
}

// passDigest passes a digest of a switch to the caller, after the packet.
func (r *running) passDigest(sw string, d dataplane.Digest) {
	if f := r.onDigest[sw]; f != nil {
		d.Data = slices.Clone(d.Data)
		r.net.Switch(sw).Later(func() { f(d) })
	}
}

// faulty reports a fault of the scheme while the run goes on.
func (r *running) faulty(text string) {
	if r.warn != nil {
		r.warn(r.Scheme.Label, text)
	}
}

// noRound is the reason for the loss of packets that their switch recirculated, resubmitted or
// cloned too often.
const noRound = "no round left"

// packetEnded records a packet that its switch dropped after too many rounds.
func (r *running) packetEnded(e dataplane.Ended) {
	u := &r.unturned
	u.mu.Lock()
	defer u.mu.Unlock()
	u.n++
	switch text := e.String(); {
	case r.Case.Ties != spec.ByPlace && u.n == 1:
		r.alerts = append(r.alerts, text)
	case r.Case.Ties == spec.ByPlace && (u.n == 1 || text < u.least):
		u.least = text
	}
}

func (r *running) close() { r.deploy.close() }

// simOptions returns the options of the simulated network.
func (j *Job) simOptions() sim.Options {
	w := &j.Case.Switches
	frame := j.Case.Frame()
	o := sim.Options{Seed: j.Seed, Alpha: w.Alpha, Cores: j.cores, MTU: j.Case.MTU}
	if j.Case.Ties == spec.ByPlace {
		o.Ties = sim.ByPlace
	}
	o.Cut = j.Case.Lines == spec.WholeNanoseconds
	if w.PFC != nil && *w.PFC {
		o.PFC = sim.PFC{On: true, Pause: fabric.Size(w.Pause), Alpha: w.Alpha}
		o.Alpha = 0
	}
	switch {
	case w.KMax > 0:
		o.ECN = sim.ECN{Min: fabric.Size(w.KMin), Max: fabric.Size(w.KMax), P: w.PMax}
	case w.ECN > 0:
		k := fabric.Size(int(w.ECN) * frame)
		o.ECN = sim.ECN{Min: k, Max: k}
	}
	o.Trim, o.ECN.ByBDP = j.Case.Trims(), j.Case.MarksByBDP()
	o.UntilSent, o.ECN.Fabric = o.Trim, j.Case.MarksFabric()
	if w.Queue > 0 {
		o.Queue = fabric.Size(w.Queue * frame)
	}
	var programs []*manifest.Manifest
	for _, p := range j.setup.byRole {
		programs = append(programs, &p.Manifest)
	}
	o.ByMAC = manifest.OneSegment(programs)
	for _, m := range programs {
		if dscp := m.TrimmableDSCP(); dscp > 0 {
			o.Trim, o.UntilSent, o.TrimmableDSCP = false, false, dscp
		}
	}
	w.Apply(&o)
	return o
}

// startFlows plans the start of all flows.
func (r *running) startFlows() error {
	if err := r.drawFlows(); err != nil {
		return err
	}
	var err error
	if r.services, err = servicesOf(r.topo, r.flows, r.Scheme.Engine); err != nil {
		return err
	}
	if len(r.services) > 0 {
		r.sims = make([]*sim.Flow, len(r.flows))
	}
	if waits(r.flows) {
		r.work = &dependent{net: r.net, topo: r.topo, setting: &r.Case.Setting, flows: r.flows}
		return r.work.plan(r.flowSpec, r.sims)
	}
	for i, o := range r.flows {
		var to **sim.Flow
		if r.sims != nil {
			to = &r.sims[i]
		}
		if err := r.net.PlanFlow(o.Start, r.flowSpec(i), to); err != nil {
			return err
		}
	}
	return nil
}

// finished records the end of a flow that counts, and stops the network after the last one.
func (r *running) finished(*sim.Flow) {
	if r.left--; r.left == 0 && r.net.Now() >= r.Case.Length() {
		r.net.Stop()
	}
}

// flowSpec converts a flow to the simulator's description.
func (r *running) flowSpec(i int) sim.FlowSpec {
	o := r.flows[i]
	t := r.transport(&o.Flow)
	described := sim.FlowSpec{
		From: r.topo.Hosts[o.Src].Name, To: r.topo.Hosts[o.Dst].Name, Bytes: o.Bytes,
		Transport: t.kind, Tuning: t.Tuning, Rate: int64(o.Rate), Stats: &o.FlowStats,
	}
	if o.Service > 0 {
		described.Service = r.services[o.Service-1]
	}
	if r.Case.Transport.Ports == spec.RandomPorts {
		number := uint64(i) << 32
		if o.Connection > 0 {
			number = uint64(o.Connection) // flows of a connection use the same ports
		}
		described.PortSeed = sim.PortSeed(r.Seed, number)
	}
	if o.counts || o.Ends > 0 {
		described.Done = r.done
	}
	return described
}

// drawFlows draws the flows of the run, which are the same in every world.
func (r *running) drawFlows() error {
	flows, err := r.Case.Flows(r.topo, r.Load, r.Seed)
	if err != nil {
		return err
	}
	if len(flows) == 0 {
		return fmt.Errorf("no flow begins within %v: want a longer duration", r.Case.Duration)
	}
	r.flows = make([]*outcome, len(flows))
	least := newIdealTimer(r.topo, r.Case.Lines == spec.WholeNanoseconds)
	outcomes := make([]outcome, len(flows))
	for i := range flows {
		o, f := &outcomes[i], &flows[i]
		o.Flow, o.class, o.Started = *f, classOf(r.x.Classes, f.Bytes), f.Start
		o.counts = f.Start >= r.Case.WarmupTime() && !f.Background && !f.Compute
		if !f.Compute {
			frames := r.transport(f).framing
			o.ideal = least.of(f, frames)
			o.wire = f.Bytes + (f.Bytes+frames.segment-1)/frames.segment*frames.headers
		}
		r.flows[i] = o
		if o.counts || o.Ends > 0 {
			r.left++
		}
	}
	switch {
	case r.left > 0:
	case !slices.ContainsFunc(flows, func(f spec.Flow) bool { return !f.Background && !f.Compute }):
		return errors.New("all traffic is background load, which no metric counts: want count: true for some of it")
	default:
		return fmt.Errorf("all flows that count begin in the warm-up of %v: want a longer duration, or warmup: 0", r.Case.WarmupTime())
	}
	return nil
}

func (r *running) fail(err error) {
	if r.failed == nil {
		r.failed = err
	}
	r.net.Stop()
}

// A tuning is a transport and its parameters.
type tuning struct {
	kind sim.Transport
	*sim.Tuning
	framing framing
}

// transport returns the transport of a flow, which flows share.
func (r *running) transport(f *spec.Flow) *tuning {
	t := r.tunings[f.Kind]
	if t == nil {
		k, err := sim.ParseTransport(cmp.Or(f.Kind, r.Case.Transport.Kind))
		if err != nil {
			panic(err) // checked when the experiment was loaded
		}
		t = &tuning{kind: k, Tuning: r.Case.Transport.Tuning()}
		t.framing = r.framingOf(k, t.Tuning)
		if r.tunings == nil {
			r.tunings = map[string]*tuning{}
		}
		r.tunings[f.Kind] = t
	}
	return t
}

// framingOf returns the framing of a transport. In real time the kernel may send several
// segments under one header, so headers do not count there.
func (r *running) framingOf(kind sim.Transport, t *sim.Tuning) framing {
	frame := int64(r.Case.Frame())
	f := framing{headers: sim.UDPHeaders}
	switch kind {
	case sim.TCP, sim.DCTCP:
		f.headers = sim.TCPHeaders
	case sim.DCQCN:
		f.headers = max(f.headers, int64(t.RDMA.Headers))
	case sim.UltraEthernet:
		f.headers = int64(cmp.Or(t.UEC.Headers, sim.UECHeaders))
	}
	if r.topo.HasIPv6() {
		f.headers += 20
	}
	f.segment = frame - f.headers
	if t.Segment > 0 {
		f.segment = int64(t.Segment)
	}
	if r.world != "" {
		f.headers = 0
	}
	return f
}

// advance lets virtual time pass: to the end of the duration, and then until all flows have ended
// or the drain time is over. Between steps it checks whether the run should stop. In the end it
// checks that no byte was lost without a reason.
func (r *running) advance(ctx context.Context) error {
	length, end := r.Case.Length(), r.Case.Length()+time.Duration(r.Case.Drain)
	const steps = 1024
	k, at := 0, time.Duration(0)
	var err error
	r.net.AdvanceIn(func() (time.Duration, bool) {
		if k++; k > 1 {
			err = r.stepped(ctx)
		}
		switch {
		case err != nil:
			return 0, false
		case k <= steps:
			at = length * time.Duration(k) / steps
		case at < end && r.left > 0:
			at = min(at+max(length/steps, 10*time.Microsecond, (end-length)/maxDrainSteps), end)
		default:
			return 0, false
		}
		return at, true
	})
	if err != nil {
		return err
	}
	return r.net.Audit()
}

// maxDrainSteps limits the number of steps after the duration.
const maxDrainSteps = 1_000_000

// stepped returns the reason to stop after a step.
func (r *running) stepped(ctx context.Context) error {
	if r.failed != nil {
		return r.failed
	}
	if err := r.work.stuck(); err != nil {
		return err
	}
	return ctx.Err()
}

// result collects the measurements of the run.
func (r *running) result(fit *fitting.Fit) *Result {
	end := r.net.Now()
	for i, o := range r.flows {
		o.end = end
		if o.Ends > 0 {
			o.Finished, _ = r.work.work.Ended(i)
		}
	}
	if r.finish != nil {
		r.finish()
	}
	for _, text := range serversOf(r.topo, r.flows, r.sims) {
		r.alerts = append(r.alerts, text)
		r.faulty(text)
	}
	if text := r.work.waitingFor(); text != "" {
		r.alerts = append(r.alerts, text)
	}
	r.sampler.ended()
	m := r.sampler.measured()
	m.flows, m.classes, m.fit, m.ideals, m.trims = r.flows, r.x.Classes, fit, idealTimes(r.topo, r.flows), r.Case.Trims()
	m.jobs = jobTimes(r.topo, r.flows)
	if m.recovery = math.NaN(); r.recovery.faults > 0 && (r.Case.Collective() || slices.Contains(r.x.Metrics, "recovery")) {
		m.recovery = r.recovery.now(r.net).Seconds() * 1e3
	}
	res := r.blankResult()
	res.Hops, res.Elapsed, res.Metrics, res.Plots, res.Alerts = r.net.Hops(), end, m.values(), r.plots(r.sampler.plots()), r.alerts
	lost := map[string]int64{noRound: r.unturned.n}
	for _, why := range sim.Reasons() {
		lost[why.String()] = r.net.Lost(why).Packets
	}
	maps.DeleteFunc(lost, func(_ string, n int64) bool { return n == 0 })
	if len(lost) > 0 {
		res.Lost = lost
	}
	if res.Metrics["unfinished"] == 100 {
		res.Alerts = append(res.Alerts, r.losses()...)
		res.Alerts = append(res.Alerts, r.emptyTables()...)
	}
	if r.unturned.least != "" {
		res.Alerts = append(res.Alerts, r.unturned.least)
	}
	return res
}

// blankResult returns a result that describes the run, without measurements.
func (r *running) blankResult() *Result {
	res := &Result{
		Experiment: r.x.Name, Case: r.Case.Name, Scheme: r.Scheme.Scheme, Label: r.Scheme.Label, Engine: r.Scheme.Engine,
		Arch: r.Scheme.Arch, Load: r.Load, Seed: r.Seed, Spec: r.Key(), Programs: r.setup.digests(), Parameters: r.setup.parameters(),
		World: r.world,
	}
	for _, o := range r.flows {
		if o.counts {
			res.Flows++
		}
	}
	return res
}

// plots adds the curves of the flows to the network's.
func (r *running) plots(p Plots) Plots {
	for i, v := range p.Queue {
		if math.IsNaN(v) {
			p.Queue[i] = 0 // no upward queue
		}
	}
	var fct, slow []float64
	for _, o := range r.flows {
		if o.counts {
			fct = append(fct, fctMS(o))
			slow = append(slow, slowdown(o))
		}
	}
	p.Sizes = bySize(r.flows)
	slices.Sort(fct)
	slices.Sort(slow)
	for q := 0; q <= 100; q++ {
		p.FCT = append(p.FCT, round(percentile(fct, float64(q)/100)))
		p.Slowdown = append(p.Slowdown, round(percentile(slow, float64(q)/100)))
	}
	if slices.ContainsFunc(r.flows, func(o *outcome) bool { return o.Instance != nil }) {
		p.Tail, p.Steps = tails(fct), steps(r.topo, r.flows)
	}
	return p
}

// emptyTables returns an alert for each table that the plan leaves empty. It plans again, because
// a deployment discards the entries.
func (r *running) emptyTables() []string {
	plan, err := r.plan(r.topo)
	if err != nil {
		return []string{err.Error()}
	}
	return lists.Map(plan.Empty(), func(table string) string {
		return fmt.Sprintf("nothing fills the table %s: every packet takes its default action", table)
	})
}

// goesRound is the mean number of switches that a packet passes above which entries form a loop.
const goesRound = 16

// losses names the switches at which packets end: loops between switches, ports that do not
// exist, and the switch whose program drops most packets.
func (r *running) losses() (list []string) {
	if n := r.net.Began().Packets; n > 0 && r.net.Hops() > goesRound*n {
		list = append(list, fmt.Sprintf("each packet passes %d switches: it goes round between them", r.net.Hops()/n))
	}
	for _, s := range r.net.Switches() {
		if n := s.Counters().NoPort; n > 0 {
			list = append(list, fmt.Sprintf("%s sends %d packets to ports without a link", s.Name, n))
		}
	}
	var most int64
	var where string
	for i, drops := range r.drops {
		for why, n := range drops {
			if why := bmv2.DropReason(why); n > most && why != bmv2.EndCopy {
				most, where = n, fmt.Sprintf("most drops are at %s (%v)", r.planned.Switches[i].Name, why)
			}
		}
	}
	if where != "" {
		list = append(list, where)
	}
	return list
}

// classOf returns the index of the class for flows of a size.
func classOf(classes []spec.Class, bytes int64) int32 {
	for i, c := range classes {
		if c.Upto == 0 || bytes <= int64(c.Upto) {
			return int32(i)
		}
	}
	return int32(len(classes) - 1)
}

// parameters returns the programs' parameters by name, from the manifests.
func (u *setup) parameters() map[string]string {
	p := map[string]string{}
	for _, role := range slices.Sorted(maps.Keys(u.byRole)) {
		for _, v := range u.byRole[role].Manifest.Parameters {
			p[v.Name] = v.Text
		}
	}
	return p
}

// tails returns the quantiles above 99 %.
func tails(fct []float64) []float64 {
	if len(fct) < 1000 {
		return nil
	}
	var list []float64
	for q := 991; q < 1000; q++ {
		list = append(list, round(percentile(fct, float64(q)/1000)))
	}
	return list
}
