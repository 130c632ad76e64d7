package lab

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/p4lb/p4lb/internal/controller/inspect"
	"github.com/p4lb/p4lb/internal/controller/plan"
	"github.com/p4lb/p4lb/internal/dataplane"
	"github.com/p4lb/p4lb/internal/lab/spec"
	"github.com/p4lb/p4lb/internal/network/fabric"
	"github.com/p4lb/p4lb/internal/scheme/manifest"
	"github.com/p4lb/p4lb/internal/sim"
	"github.com/p4lb/p4lb/internal/text/lists"
)

// A sampler records the state of the links between switches at intervals, while flows start.
type sampler struct {
	r        *running
	interval time.Duration
	out      *bufio.Writer // for rows of links.csv; nil: none

	ports   []*watched
	up      []*watched               // uplinks of leaves
	senders map[string]bool          // leaves with hosts that send; nil: all leaves
	news    map[string]*inspect.News // by leaf
	trips   map[string]time.Duration // round-trip times of probes, for leaves that do not record their return
	cells   []uint64

	occupancy []float64
	times     []float64
	queues    []float64
	ages      mean
	grains    mean

	untilLastFlow bool   // measure until the last flow has ended, instead of the duration
	beginning     totals // at the end of the warm-up
	finish        totals // at the end of the duration
}

// A watched is a port between switches.
type watched struct {
	*sim.Port
	sw    *sim.Switch
	leaf  string // leaf whose uplink it is; "": not an uplink
	name  string
	last  sim.Counters
	begin sim.Counters // at the end of the warm-up
	end   sim.Counters
	slots []int64 // bytes by time slot, since the warm-up
	limit float64
	full  fabric.Rate // rate of the link without faults
}

// totals holds counters of the whole network.
type totals struct {
	at                                    time.Duration
	delivered                             sim.Tally
	received, round, copies, copied, lost int64
	payload                               int64
}

type mean struct {
	sum float64
	n   int
}

func (m *mean) add(v float64) { m.sum, m.n = m.sum+v, m.n+1 }

func (m *mean) value() float64 {
	if m.n == 0 {
		return math.NaN()
	}
	return m.sum / float64(m.n)
}

// linkHead contains the columns of links.csv.
const linkHead = "t_s,from,to,bytes,utilisation,queue_bytes,queue_packets,dropped,marked,paused_s\n"

func newSampler(r *running, out io.Writer) *sampler {
	s := &sampler{r: r, interval: time.Duration(r.x.Interval), news: map[string]*inspect.News{}, trips: map[string]time.Duration{}}
	if s.interval == 0 {
		s.interval = spec.DefaultInterval(r.Case.Length())
	}
	s.senders = sendingLeaves(r.Case, r.topo)
	if out != nil {
		s.out = bufio.NewWriterSize(out, 1<<16)
		s.print(linkHead)
	}
	for _, sw := range r.net.Switches() {
		s.watch(sw)
	}
	for _, n := range r.nodes {
		switch news := inspect.NewsOf(n); {
		case n.Leaf == 0:
		case news != nil:
			s.news[n.Name] = news
		case n.Manifest.Task(manifest.PathProbe) != nil:
			s.trips[n.Name] = s.probeRTT(n.Name)
		}
	}
	return s
}

// watch adds the ports of a switch that lead to switches.
func (s *sampler) watch(sw *sim.Switch) {
	spec := s.r.topo.Switch(sw.Name)
	for _, p := range s.r.topo.Ports(sw.Name) {
		port := sw.Port(p.Number)
		if p.PeerTier == 0 || p.Down || port == nil {
			continue
		}
		w := &watched{Port: port, sw: sw, name: fmt.Sprintf("%s:%d-%s", sw.Name, p.Number, p.Peer), limit: float64(port.Limit()), full: port.Rate()}
		if w.limit <= 0 {
			w.limit = 256 * 1514
		}
		s.ports = append(s.ports, w)
		if spec.Leaf > 0 && p.PeerTier > spec.Role.Tier() && s.sends(sw.Name) {
			w.leaf = sw.Name
			s.up = append(s.up, w)
		}
	}
}

// sends reports whether a host of the leaf sends any traffic. If senders and receivers are
// separate, uplinks of the receivers' leaves carry no data.
func (s *sampler) sends(leaf string) bool { return s.senders == nil || s.senders[leaf] }

// sendingLeaves returns the leaves of sending hosts; nil: all leaves.
func sendingLeaves(c *spec.Case, t *fabric.Topology) map[string]bool {
	if len(c.Jobs) > 0 {
		return nil
	}
	leaves := map[string]bool{}
	for i := range c.Traffic {
		d, err := c.Traffic[i].Maker(t)
		if err != nil || d.Pattern == spec.List {
			return nil
		}
		for _, name := range d.SendingLeaves() {
			leaves[name] = true
		}
	}
	return leaves
}

func (s *sampler) start() {
	length := s.r.Case.Length()
	s.r.net.At(s.r.Case.WarmupTime(), func() { s.mark(&s.beginning, func(w *watched) { w.begin = w.Counters() }) })
	s.untilLastFlow = s.r.Case.Collective()
	s.r.net.Every(s.interval, func(now time.Duration) bool {
		s.sample(now)
		return now+s.interval <= length || s.untilLastFlow && now < wholeFor*length
	})
	if !s.untilLastFlow {
		s.r.net.At(length, s.end)
	}
}

// wholeFor is the maximum time for sampling a collective, as a multiple of the
// duration.
const wholeFor = 100

func (s *sampler) end() { s.mark(&s.finish, func(w *watched) { w.end = w.Counters() }) }

// ended stops the measurement of a run in which messages start until the end.
func (s *sampler) ended() {
	if s.untilLastFlow {
		s.end()
	}
}

// mark records all counters at one time.
func (s *sampler) mark(t *totals, each func(*watched)) {
	*t = s.totals()
	for _, w := range s.ports {
		each(w)
	}
}

func (s *sampler) totals() totals {
	n := s.r.net
	t := totals{at: n.Now(), delivered: n.Delivered(), lost: n.Lost(sim.QueueFull).Packets + n.Lost(sim.BufferFull).Packets}
	for _, sw := range n.Switches() {
		c := sw.Counters()
		t.received += c.Received
		t.round += c.Recirculated
		t.copies += c.Copies
		t.copied += c.CopyBytes
	}
	for _, f := range s.r.flows {
		t.payload += f.Received
	}
	return t
}

// sample records the ports.
func (s *sampler) sample(now time.Duration) {
	measuring := now > s.r.Case.WarmupTime()
	sum := 0.0
	for _, w := range s.ports {
		c := w.Counters()
		bytes := c.Bytes - w.last.Bytes
		if s.out != nil && (bytes > 0 || w.Queue() > 0 || c.Dropped > w.last.Dropped) {
			s.row(now, w, c, bytes)
		}
		if measuring {
			w.slots = append(w.slots, bytes)
		}
		w.last = c
	}
	for _, w := range s.up {
		o := min(1, float64(w.Queue())/w.limit)
		sum += o
		if measuring {
			s.occupancy = append(s.occupancy, o)
		}
	}
	s.times = append(s.times, round(now.Seconds()))
	s.queues = append(s.queues, round(sum/float64(len(s.up))))
	if measuring {
		s.sampleSchemes()
	}
}

func (s *sampler) row(now time.Duration, w *watched, c sim.Counters, bytes int64) {
	from, to, _ := strings.Cut(w.name, "-")
	use := float64(bytes) * 8 / float64(w.Rate()) / s.interval.Seconds()
	s.print("%.9g,%s,%s,%d,%.4g,%d,%d,%d,%d,%.6g\n", now.Seconds(), from, to, bytes, use, w.Queue(), w.QueuePackets(),
		c.Dropped-w.last.Dropped, c.Marked-w.last.Marked, (c.Paused - w.last.Paused).Seconds())
}

func (s *sampler) print(format string, args ...any) {
	fmt.Fprintf(s.out, format, args...) // err returns its error
}

// sampleSchemes reads values inside the schemes: the age of the port state, and the size of PDLB's
// flowcells at leaves with several paths.
func (s *sampler) sampleSchemes() {
	for _, n := range s.r.nodes {
		if n.Leaf == 0 || !s.sends(n.Name) {
			continue
		}
		if news := s.news[n.Name]; news != nil {
			s.lookAge(n.Name, news)
		} else if trip, ok := s.trips[n.Name]; ok {
			s.probeAge(n.Name, trip)
		}
		if r := granularity(n.Manifest); r != nil {
			for _, g := range n.Groups {
				if v, ok := s.cell(n.Name, r.Name, g.ID); ok && v > 0 && len(g.Hops) > 1 {
					s.grains.add(float64(v))
				}
			}
		}
	}
}

// probeRTT returns the round-trip time of a probe from a leaf to the farthest other leaf, without
// queueing.
func (s *sampler) probeRTT(leaf string) (longest time.Duration) {
	routes := s.r.topo.Routes()
	for _, other := range s.r.topo.Leaves() {
		if span, ok := routes.Span(leaf, other.Name); ok {
			longest = max(longest, span.RTT)
		}
	}
	return longest
}

// probeAge records the time since the latest returned probe came back, for programs that do not
// record it.
func (s *sampler) probeAge(leaf string, trip time.Duration) {
	if s.r.tasks == nil {
		return
	}
	for _, at := range slices.Backward(s.r.tasks.lately[leaf]) {
		if age := s.r.net.Now() - at - trip; age >= 0 {
			s.ages.add(float64(age.Microseconds()) / 1e3)
			return
		}
	}
}

func (s *sampler) lookAge(name string, news *inspect.News) {
	up := map[int]bool{}
	for _, w := range s.up {
		up[w.Number] = up[w.Number] || w.sw.Name == name
	}
	// If a switch cannot be read, the run continues without this metric.
	sw := s.r.net.Switch(name)
	_ = news.Ages(sw.ReadRegister, sw.Clock(), func(i int, age time.Duration) {
		if up[i] || !news.ByPort {
			s.ages.add(float64(age.Microseconds()) / 1e3)
		}
	})
}

func (s *sampler) cell(name, register string, i int) (uint64, bool) {
	cells, err := s.r.net.Switch(name).ReadRegister(register, s.cells[:0])
	s.cells = cells
	if err != nil || i >= len(cells) {
		return 0, false
	}
	return cells[i], true
}

// granularity returns the register with the size of flowcells by group, or nil.
func granularity(m *manifest.Manifest) *manifest.Register {
	i := slices.IndexFunc(m.Registers, func(r manifest.Register) bool {
		return r.Kind == manifest.Granularity && r.Index == manifest.ByGroup
	})
	if i < 0 {
		return nil
	}
	return &m.Registers[i]
}

func (s *sampler) err() error {
	if s.out == nil {
		return nil
	}
	return s.out.Flush()
}

// measured computes the measurements from the samples.
func (s *sampler) measured() *measured {
	a, b := s.beginning, s.finish
	seconds := (b.at - a.at).Seconds()
	m := &measured{occupancy: s.occupancy, age: s.ages.value(), granularity: s.grains.value()}
	m.goodput = float64(b.payload-a.payload) * 8 / seconds
	m.dropped = 100 * ratio(b.lost-a.lost, b.received-a.received)
	m.recirculated = 100 * ratio(b.round-a.round, b.received-a.received)
	m.copies = 100 * ratio(b.copied-a.copied, b.delivered.Bytes-a.delivered.Bytes)
	s.utilisation(m, seconds)
	m.sharing, m.pathsUsed = s.sharing(), s.pathsUsed()
	s.probes(m, seconds)
	return m
}

func ratio(a, b int64) float64 { return float64(a) / float64(b) }

// utilisation computes the metrics of links from their counters.
func (s *sampler) utilisation(m *measured, seconds float64) {
	m.idlest = math.Inf(1)
	var all mean
	for _, w := range s.up {
		u := float64(w.end.Bytes-w.begin.Bytes) * 8 / float64(w.full) / seconds
		all.add(u)
		m.idlest = min(m.idlest, u)
	}
	m.utilisation = all.value()
	for _, w := range s.up {
		m.whole += float64(w.Counters().Bytes) * 8 / float64(w.full) / s.r.net.Now().Seconds() / float64(len(s.up))
	}
	m.imbalance = s.imbalance()
	for _, sw := range s.r.net.Switches() {
		m.bufferPeak = max(m.bufferPeak, float64(sw.Counters().MaxBuffer)/1e3)
	}
	for _, w := range s.ports {
		m.pauses += float64(w.end.Pauses-w.begin.Pauses) / seconds
		m.paused += 100 * (w.end.Paused - w.begin.Paused).Seconds() / seconds / float64(len(s.ports))
	}
}

// imbalance returns the utilisation of the busiest uplink divided by the mean of all uplinks,
// minus 1, until the end of the run.
func (s *sampler) imbalance() float64 {
	uses := lists.Map(s.up, func(w *watched) float64 { return float64(w.Counters().Bytes) / float64(w.full) })
	return greatest(uses)/average(uses) - 1
}

// slotCount is the number of time slots of a run for the load-sharing accuracy.
const slotCount = 5

// sharing returns QALL's load-sharing accuracy: max U / min U - 1 over the uplinks, averaged over
// time slots and leaves.
func (s *sampler) sharing() float64 {
	byLeaf := map[string][]*watched{}
	var leaves []string
	for _, w := range s.up {
		if byLeaf[w.leaf] == nil {
			leaves = append(leaves, w.leaf)
		}
		byLeaf[w.leaf] = append(byLeaf[w.leaf], w)
	}
	var all mean
	for _, leaf := range leaves {
		ports := byLeaf[leaf]
		n := len(ports[0].slots)
		for k := range slotCount {
			from, to := n*k/slotCount, n*(k+1)/slotCount
			low, high := math.Inf(1), 0.0
			for _, w := range ports {
				u := 0.0
				for _, b := range w.slots[from:to] {
					u += float64(b) / float64(w.full)
				}
				low, high = min(low, u), max(high, u)
			}
			if low > 0 {
				all.add(high/low - 1)
			}
		}
	}
	return all.value()
}

// pathsUsed returns the share of upward ports that carry data, as the mean over the leaves that
// send upwards. It is NaN if no leaf sends upwards or has a choice.
func (s *sampler) pathsUsed() float64 {
	type uplinks struct{ bytes, ports, used int64 }
	byLeaf := map[string]*uplinks{}
	var leaves []*uplinks
	sent := func(w *watched) int64 { return w.end.Bytes - w.begin.Bytes }
	for _, w := range s.up {
		if byLeaf[w.leaf] == nil {
			byLeaf[w.leaf] = new(uplinks)
			leaves = append(leaves, byLeaf[w.leaf])
		}
		byLeaf[w.leaf].ports++
		byLeaf[w.leaf].bytes += sent(w)
	}
	const least = 20 // an uplink is used from 1/20 (5 %) of an equal share on
	for _, w := range s.up {
		if u := byLeaf[w.leaf]; u.bytes > 0 && sent(w)*least*u.ports >= u.bytes {
			u.used++
		}
	}
	var all mean
	for _, u := range leaves {
		if u.bytes > 0 && u.ports > 1 {
			all.add(ratio(u.used, u.ports))
		}
	}
	return all.value()
}

// probes estimates the load of probes: the controller's probes and their forwarded
// copies. Each report is copied once and recirculated once, so copies without
// recirculation are probes.
func (s *sampler) probes(m *measured, seconds float64) {
	if s.r.tasks == nil || s.r.tasks.sent == 0 {
		return
	}
	a, b := s.beginning, s.finish
	frames := float64(max(0, (b.copies-a.copies)-(b.round-a.round)))
	size := float64(s.r.tasks.bytes) / float64(s.r.tasks.sent)
	capacity := 0.0
	for _, w := range s.ports {
		capacity += float64(w.full)
	}
	m.probes = 100 * frames * size * 8 / (capacity * seconds)
}

// plots returns the curves of the samples.
func (s *sampler) plots() Plots {
	p := Plots{Time: s.times, Queue: s.queues}
	sums := map[string]int64{}
	for _, w := range s.up {
		sums[w.leaf] += w.end.Bytes - w.begin.Bytes
	}
	const most = 32 // a plot cannot show more
	for _, w := range s.up[:min(most, len(s.up))] {
		p.Names = append(p.Names, w.name)
		share := 0.0
		if sums[w.leaf] > 0 {
			share = round(ratio(w.end.Bytes-w.begin.Bytes, sums[w.leaf]))
		}
		p.Shares = append(p.Shares, share)
	}
	if s.untilLastFlow {
		p.Uses = s.uses()
	}
	return p
}

// A View gives a Recorder access to a run.
type View struct {
	Job      *Job
	Net      *sim.Network
	Topology *fabric.Topology
	Nodes    []*plan.Node
	// Left returns the number of flows that have not ended.
	Left func() int
	// Progress returns the progress of collectives, or nil in a run without collectives.
	Progress func() *CollectiveProgress
	// Report adds a value to the metrics of the run.
	Report func(metric string, value float64)
	// Fail ends the run with an error.
	Fail func(error)
	// OnDigest makes a switch with a program pass its digests to f.
	OnDigest func(sw string, f func(dataplane.Digest))
}

// A Recorder observes a run.
type Recorder interface {
	Begin(v *View) error // is called before the first flow, and schedules the Recorder's events with v.Net
	End() error
}

func (r *running) view() *View {
	v := &View{Job: r.Job, Net: r.net, Topology: r.topo, Nodes: r.nodes, Fail: r.fail}
	v.Left = func() int { return r.left }
	if r.Case.Collective() {
		v.Progress = (&collectiveView{r: r}).now
	}
	v.OnDigest = func(sw string, f func(dataplane.Digest)) {
		if r.onDigest == nil {
			r.onDigest = map[string]func(dataplane.Digest){}
		}
		r.onDigest[sw] = f
	}
	v.Report = func(metric string, value float64) {
		if r.reported == nil {
			r.reported = map[string]float64{}
		}
		r.reported[metric] = value
	}
	return v
}

// maxUseTimes is the largest number of intervals in Uses.
const maxUseTimes = 60

// uses returns the utilisations of the links upwards until the last was in use.
func (s *sampler) uses() *Uses {
	const most = 32
	list := s.up[:min(most, len(s.up))]
	last := 0
	for _, w := range list {
		for k, bytes := range w.slots {
			if bytes > 0 {
				last = max(last, k+1)
			}
		}
	}
	if last == 0 {
		return nil
	}
	each := (last + maxUseTimes - 1) / maxUseTimes
	out := &Uses{}
	start := s.r.Case.WarmupTime()
	for k := 0; k < last; k += each {
		end := start + s.interval*time.Duration(min(k+each, last))
		out.To = append(out.To, round(end.Seconds()*1e3))
	}
	for _, w := range list {
		out.Links = append(out.Links, w.name)
		var use []float64
		for k := 0; k < last; k += each {
			slots := w.slots[min(k, len(w.slots)):min(k+each, len(w.slots))]
			sum := int64(0)
			for _, b := range slots {
				sum += b
			}
			full := float64(w.full) / 8 * s.interval.Seconds() * float64(max(1, len(slots)))
			use = append(use, round(min(1, float64(sum)/full)))
		}
		out.Use = append(out.Use, use)
	}
	return out
}
