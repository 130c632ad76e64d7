package lab

import (
	"bufio"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/p4lb/p4lb/internal/network/fabric"
	"github.com/p4lb/p4lb/internal/sim"
)

// idleSampler returns a sampler of an idle network of two leaves and two spines. It
// measures from 1 to 3 ms. The uplinks have 1 Gbit/s: 250,000 bytes in this time.
func idleSampler(t *testing.T, more string) *sampler {
	t.Helper()
	x, top := loaded(t, 1000, 1000, "traffic: [{workload: webserver, pattern: all-to-all}]\nwarmup: 1ms\nduration: 3ms\n"+more)
	net, err := sim.New(top, sim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s := newSampler(&running{Job: &Job{Case: &x.Cases[0], x: x}, net: net, topo: top}, nil)
	if len(s.up) != 4 {
		t.Fatalf("%d uplinks, want 4", len(s.up))
	}
	s.beginning, s.finish = totals{at: time.Millisecond}, totals{at: 3 * time.Millisecond}
	return s
}

// carried sets the bytes that the uplinks carried in the measured time.
func (s *sampler) carried(bytes ...int64) {
	for i, b := range bytes {
		s.up[i].begin.Bytes, s.up[i].end.Bytes = 1000, 1000+b
	}
}

func near(a, b float64) bool {
	return math.IsNaN(a) && math.IsNaN(b) || math.Abs(a-b) <= 1e-9*math.Max(1, math.Abs(b))
}

// Rates of the whole network are differences between the end of the warm-up and the end
// of the duration.
func TestTotalsByHand(t *testing.T) {
	s := idleSampler(t, "")
	s.carried(125000, 25000, 250000, 50000)
	a, b := &s.beginning, &s.finish
	a.payload, b.payload = 5000, 255000 // 250,000 bytes in 2 ms
	a.received, b.received = 100, 500
	a.lost, b.lost = 3, 7
	a.round, b.round = 20, 120
	a.copied, b.copied = 1000, 6000
	a.delivered.Bytes, b.delivered.Bytes = 10000, 60000
	s.occupancy = []float64{0.5}
	s.ages.add(2)
	s.ages.add(5)
	s.grains.add(9)
	m := s.measured()
	for name, v := range map[string][2]float64{
		"goodput": {m.goodput, 1e9}, "dropped": {m.dropped, 1}, "recirculated": {m.recirculated, 25}, "copies": {m.copies, 10},
		"utilisation": {m.utilisation, 0.45}, "idlest": {m.idlest, 0.1}, "paths used": {m.pathsUsed, 1},
		"age": {m.age, 3.5}, "granularity": {m.granularity, 9}, "probes": {m.probes, 0},
	} {
		if !near(v[0], v[1]) {
			t.Errorf("%s is %g, want %g", name, v[0], v[1])
		}
	}
	if !slices.Equal(m.occupancy, []float64{0.5}) {
		t.Errorf("occupancy %v", m.occupancy)
	}
}

// An uplink is used from 5 % of its equal share of the leaf's bytes on. Leaves without
// bytes or with a single uplink have no paths to use.
func TestPathsUsedByHand(t *testing.T) {
	for _, c := range []struct {
		bytes []int64
		only  bool // l2 has one uplink
		want  float64
	}{
		{[]int64{975, 25, 500, 500}, false, 1}, // equal share 500, of which 25 is 5 %
		{[]int64{976, 24, 500, 500}, false, 0.75},
		{[]int64{1000, 0, 0, 0}, false, 0.5},
		{[]int64{1000, 0, 1000, 0}, true, 0.5},
		{[]int64{0, 0, 0, 0}, false, math.NaN()},
	} {
		s := idleSampler(t, "")
		s.carried(c.bytes...)
		if c.only {
			s.up = s.up[:3]
		}
		if got := s.pathsUsed(); !near(got, c.want) {
			t.Errorf("%v: %g, want %g", c.bytes, got, c.want)
		}
	}
}

// The load-sharing accuracy is max/min - 1 over the uplinks of a leaf, averaged over
// five time slots of equal length and the leaves. Slots with an idle uplink do not count,
// and bytes count relative to the rate.
func TestSharingByHand(t *testing.T) {
	s := idleSampler(t, "")
	rows := [][]int64{
		{10, 10, 20, 0, 30, 5, 0, 0, 8, 8}, // slots of two samples: 20, 20, 35, 0, 16
		{5, 5, 10, 10, 50, 20, 7, 7, 2, 2}, // 10, 20, 70, 14, 4
		{1, 1, 1, 1, 1, 1, 1, 1, 1, 1},
		{1, 1, 1, 1, 1, 1, 1, 1, 1, 1},
	}
	for i, w := range s.up {
		w.slots = rows[i]
	}
	want := ((20.0/10 - 1) + 0 + (70.0/35 - 1) + (16.0/4 - 1) + 5*0) / 9
	if got := s.sharing(); !near(got, want) {
		t.Errorf("%g, want %g", got, want)
	}
	s.up[3].full *= 4 // a quarter of the utilisation
	want += 5 * 3.0 / 9
	if got := s.sharing(); !near(got, want) {
		t.Errorf("with a faster link: %g, want %g", got, want)
	}
	for _, w := range s.up {
		w.slots = nil
	}
	if got := s.sharing(); !math.IsNaN(got) {
		t.Errorf("without samples: %g", got)
	}
}

// Probes are copies without a recirculation. Their load is a share of the capacity of all
// links between switches.
func TestProbeLoadByHand(t *testing.T) {
	for _, c := range []struct {
		sent, bytes, copies, rounds int64
		want                        float64
	}{
		{10, 1000, 900, 400, 2.5}, // 500 frames of 100 bytes: 400 kbit, of 8 links at 1 Gbit/s for 2 ms
		{10, 2000, 900, 400, 5},
		{10, 1000, 300, 400, 0},
		{0, 0, 900, 400, 0},
	} {
		s := idleSampler(t, "")
		s.r.tasks = &taskFabric{sent: c.sent, bytes: c.bytes}
		s.beginning.copies, s.finish.copies = 50, 50+c.copies
		s.beginning.round, s.finish.round = 7, 7+c.rounds
		if got := s.measured().probes; !near(got, c.want) {
			t.Errorf("%+v: %g %%, want %g", c, got, c.want)
		}
	}
}

// The age of a probe is the time since it came back, minus its round-trip time: the
// network is as old as the probe left it. Probes that would come from the future do not count.
func TestProbeAge(t *testing.T) {
	const us = time.Microsecond
	s := idleSampler(t, "")
	s.probeAge("l1", 0) // no controller
	s.r.tasks = &taskFabric{lately: map[string][]time.Duration{"l1": {-90 * us, -30 * us, -10 * us}, "l2": {-5 * us}}}
	for _, c := range []struct {
		leaf string
		trip time.Duration
		want float64 // ms
	}{{"l1", 4 * us, 0.006}, {"l1", 10 * us, 0}, {"l1", 11 * us, 0.019}, {"l2", 6 * us, math.NaN()}, {"l3", 0, math.NaN()}} {
		s.ages = mean{}
		if s.probeAge(c.leaf, c.trip); !near(s.ages.value(), c.want) {
			t.Errorf("%s, round trip %v: %g ms, want %g", c.leaf, c.trip, s.ages.value(), c.want)
		}
	}
}

// The lab remembers when the last eight frames reached each switch. Frames that reach it at the
// same time count as one.
func TestProbeTimes(t *testing.T) {
	const us = time.Microsecond
	s := idleSampler(t, "")
	f := &taskFabric{r: s.r, latency: 5 * us, lately: map[string][]time.Duration{}}
	s.r.tasks = f
	for i := range 10 {
		s.r.net.At(time.Duration(i)*10*us, func() {
			f.note("l1")
			f.note("l1")
			if i == 3 {
				f.note("l2")
			}
		})
	}
	if err := s.r.net.Run(100 * us); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		leaf string
		trip time.Duration
		want float64 // ms
	}{{"l1", 0, 0.005}, {"l1", 20 * us, 0.005}, {"l1", 65 * us, 0}, {"l1", 66 * us, 0.009}, {"l1", 75 * us, 0}, {"l1", 76 * us, math.NaN()}, {"l2", 0, 0.065}} {
		s.ages = mean{}
		if s.probeAge(c.leaf, c.trip); !near(s.ages.value(), c.want) {
			t.Errorf("%s, round trip %v: %g ms, want %g", c.leaf, c.trip, s.ages.value(), c.want)
		}
	}
}

// A probe has the round-trip time to the farthest other leaf.
func TestProbeRoundTrip(t *testing.T) {
	s := idleSampler(t, "links: [{link: l2, delay: 50us}]\n")
	routes := s.r.topo.Routes()
	span, ok := routes.Span("l1", "l2")
	if got := s.probeRTT("l1"); !ok || got != span.RTT || got < 100*time.Microsecond {
		t.Errorf("%v, want %v", got, span.RTT)
	}
}

// Shares of paths are relative to the leaf's bytes; idle leaves have none.
func TestSharesByHand(t *testing.T) {
	s := idleSampler(t, "")
	s.carried(300, 100, 0, 0)
	p := s.plots()
	if got, want := fmt.Sprint(p.Names, p.Shares), "[l1:3-s1 l1:4-s2 l2:3-s1 l2:4-s2] [0.75 0.25 0 0]"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if p.Uses != nil {
		t.Errorf("a run without collectives has %+v", p.Uses)
	}
	s.untilLastFlow = true
	if s.plots().Uses != nil {
		t.Error("idle links have utilisations")
	}
	s.up[0].slots = []int64{1}
	if s.plots().Uses == nil {
		t.Error("a run with collectives has no utilisations")
	}
	s.up = slices.Repeat(s.up, 9)
	if p := s.plots(); len(p.Names) != 32 || len(p.Shares) != 32 || len(p.Uses.Links) != 32 {
		t.Errorf("%d names, %d shares, %d links, want 32", len(p.Names), len(p.Shares), len(p.Uses.Links))
	}
}

// Utilisations begin after the warm-up and end with the last interval in use. From 61
// intervals on, neighbours share a value.
func TestUsesByHand(t *testing.T) {
	s := idleSampler(t, "interval: 100us\n") // 12,500 bytes at 1 Gbit/s
	s.up = s.up[:2]
	s.up[0].slots = []int64{12500, 0, 6250, 0, 0}
	s.up[1].slots = []int64{0, 20000}
	u := s.uses()
	if got, want := fmt.Sprint(u.Links, u.To, u.Use), "[l1:3-s1 l1:4-s2] [1.1 1.2 1.3] [[1 0 0.5] [0 1 0]]"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	for n, want := range map[int]int{60: 60, 61: 31, 120: 60, 121: 41} {
		s.up[0].slots = slices.Repeat([]int64{6250}, n)
		s.up[1].slots = nil
		u := s.uses()
		if len(u.To) != want || len(u.Use[0]) != want || len(u.Use[1]) != want || u.Use[0][0] != 0.5 || u.Use[0][want-1] != 0.5 || u.Use[1][0] != 0 {
			t.Errorf("%d intervals: %d ends, %v", n, len(u.To), u.Use)
		}
		if last := 1 + float64(n)/10; !near(u.To[want-1], round(last)) {
			t.Errorf("%d intervals: the last ends at %g ms, want %g", n, u.To[want-1], last)
		}
	}
}

// Leaves without senders carry no data upwards. Without knowledge of the senders, all
// leaves count.
func TestSendingLeaves(t *testing.T) {
	for text, want := range map[string]string{
		"traffic: [{workload: webserver, pattern: halves}]":                                 "map[l1:true]",
		"traffic: [{pattern: pairs, pairs: [h3-h1], size: 1KB}]":                            "map[l2:true]",
		"traffic: [{workload: webserver, pattern: all-to-all}]":                             "map[l1:true l2:true]",
		"traffic: [{pattern: pairs, pairs: [h3-h1], size: 1KB}, {pattern: halves}]":         "map[l1:true l2:true]",
		"jobs: [{ranks: 4, phases: [{compute: 1ms}, {collective: all-reduce, size: 1MB}]}]": "map[]",
	} {
		x, top := loaded(t, 1000, 1000, text)
		got := sendingLeaves(&x.Cases[0], top)
		if fmt.Sprint(got) != want || (got == nil) != (want == "map[]") {
			t.Errorf("%s: %v, want %s", text, got, want)
		}
	}
}

// busy is a network with full queues, a slow uplink and marks, or pauses.
const busy = `
name: busy
topology: {leaf-spine: {leaves: 2, spines: 2, hosts: 4, rate: 1G, host-rate: 1G, delay: 2us, host-delay: 1us, queue: 16}}
schemes: [rps]
traffic: [{pattern: halves, size: 100KB, load-of: fabric}]
loads: [0.9]
engine: native
seeds: 1
duration: 4ms
warmup: 1ms
drain: 2ms
interval: 250us
`

// TestLinksRecorded compares links.csv and the metrics of links with the ports of the
// simulated network: a row for each interval and port with packets, counted since the
// previous interval.
func TestLinksRecorded(t *testing.T) {
	for name, more := range map[string]string{
		"losses": "transport: dctcp\nswitches: {ecn: 4}\nfaults: [{at: 2ms, link: l1-s1, rate: 500M}]\n",
		"pauses": "transport: dcqcn\nswitches: {pfc: true}\nfaults: [{at: 1500us, link: l2-s1, rate: 100M}]\n",
	} {
		dir := t.TempDir()
		x := load(t, busy+more)
		o := &portObserver{last: map[string]sim.Counters{}, mark: map[string]sim.Counters{}}
		result := run(t, &Runner{Dir: dir, Begin: o.begin}, x).Results[0]
		text, err := os.ReadFile(filepath.Join(dir, "runs", filepath.FromSlash(o.view.Job.Name()), linksFile))
		if err != nil {
			t.Fatal(err)
		}
		if got, want := strings.Split(string(text), "\n"), append(append([]string{strings.TrimSpace(linkHead)}, o.rows...), ""); !slices.Equal(got, want) {
			for i := range min(len(got), len(want)) {
				if got[i] != want[i] {
					t.Errorf("%s, line %d: %q, want %q", name, i+1, got[i], want[i])
					break
				}
			}
			t.Errorf("%s: %d lines, want %d", name, len(got), len(want))
		}
		if o.seen["dropped"]+o.seen["marked"] == 0 && o.seen["paused"] == 0 {
			t.Fatalf("%s: nothing happened: %v", name, o.seen)
		}
		o.finish()
		for metric, want := range o.want {
			if got, ok := result.Metrics[metric]; !ok || math.Abs(got-want) > 1e-6*math.Max(1, want) {
				t.Errorf("%s: %s is %g (%v), want %g", name, metric, got, ok, want)
			}
		}
		if got := fmt.Sprint(result.Plots.Time); got != fmt.Sprint(o.times) || fmt.Sprint(result.Plots.Queue) != fmt.Sprint(o.queues) {
			t.Errorf("%s: queues %v at %v, want %v at %v", name, result.Plots.Queue, got, o.queues, o.times)
		}
	}
}

// A portObserver computes the metrics of links from the ports of a run.
type portObserver struct {
	view       *View
	last, mark map[string]sim.Counters
	rows       []string
	seen       map[string]int64
	want       map[string]float64
	times      []float64
	queues     []float64
	occupancy  []float64
}

// ports calls f for each port between switches.
func (o *portObserver) ports(f func(name string, p *sim.Port, q fabric.Port, up bool)) {
	for _, sw := range o.view.Net.Switches() {
		for _, q := range o.view.Topology.Ports(sw.Name) {
			if q.PeerTier > 0 {
				// halves sends from the hosts of l1 to hosts of l2
				f(fmt.Sprintf("%s:%d,%s", sw.Name, q.Number, q.Peer), sw.Port(q.Number), q, sw.Name == "l1")
			}
		}
	}
}

func (o *portObserver) count() (received, lost int64) {
	for _, sw := range o.view.Net.Switches() {
		received += sw.Counters().Received
	}
	return received, o.view.Net.Lost(sim.QueueFull).Packets + o.view.Net.Lost(sim.BufferFull).Packets
}

func (o *portObserver) begin(v *View) error {
	o.view, o.seen, o.want = v, map[string]int64{}, map[string]float64{}
	c := v.Job.Case
	warmup, length, interval := c.WarmupTime(), c.Length(), 250*time.Microsecond
	var received, lost int64
	v.Net.At(warmup, func() {
		o.ports(func(name string, p *sim.Port, _ fabric.Port, _ bool) { o.mark[name] = p.Counters() })
		received, lost = o.count()
	})
	v.Net.Every(interval, func(now time.Duration) bool {
		fill := 0.0
		o.ports(func(name string, p *sim.Port, _ fabric.Port, up bool) {
			c, last := p.Counters(), o.last[name]
			o.last[name] = c
			o.seen["dropped"] += c.Dropped - last.Dropped
			o.seen["marked"] += c.Marked - last.Marked
			o.seen["paused"] += int64(c.Paused - last.Paused)
			if c.Bytes > last.Bytes || p.Queue() > 0 || c.Dropped > last.Dropped {
				use := float64(c.Bytes-last.Bytes) * 8 / (float64(p.Rate()) * 250e-6)
				o.rows = append(o.rows, fmt.Sprintf("%.9g,%s,%d,%.4g,%d,%d,%d,%d,%.6g", now.Seconds(), name, c.Bytes-last.Bytes, use, p.Queue(), p.QueuePackets(),
					c.Dropped-last.Dropped, c.Marked-last.Marked, (c.Paused-last.Paused).Seconds()))
			}
			if up {
				share := min(1, float64(p.Queue())/float64(p.Limit()))
				if p.Limit() <= 0 { // with PFC, queues have no limit: 256 packets are full
					share = min(1, float64(p.Queue())/(256*1514))
				}
				fill += share / 2
				if now > warmup {
					o.occupancy = append(o.occupancy, share)
				}
			}
		})
		o.times, o.queues = append(o.times, round(now.Seconds())), append(o.queues, round(fill))
		return now+interval <= length
	})
	v.Net.At(length, func() {
		seconds := (length - warmup).Seconds()
		idlest, sum, links := math.Inf(1), 0.0, 0.0
		o.want["pauses"], o.want["paused"] = 0, 0
		o.ports(func(name string, p *sim.Port, q fabric.Port, up bool) {
			a, b := o.mark[name], p.Counters()
			o.want["pauses"] += float64(b.Pauses-a.Pauses) / seconds
			o.want["paused"] += 100 * (b.Paused - a.Paused).Seconds() / seconds
			links++
			if up {
				use := 100 * float64(b.Bytes-a.Bytes) * 8 / 1e9 / seconds
				idlest, sum = min(idlest, use), sum+use
			}
		})
		o.want["paused"] /= links
		o.want["utilisation"], o.want["utilisation-min"] = sum/2, idlest
		r, l := o.count()
		o.want["dropped"] = 100 * float64(l-lost) / float64(r-received)
	})
	return nil
}

// finish computes the metrics of the whole run.
func (o *portObserver) finish() {
	sum := 0.0
	o.ports(func(_ string, p *sim.Port, _ fabric.Port, up bool) {
		if up {
			sum += 100 * float64(p.Counters().Bytes) * 8 / 1e9 / o.view.Net.Now().Seconds() / 2
		}
	})
	o.want["utilisation-whole"] = sum
	o.want["queue-mean"] = 100 * average(o.occupancy)
	o.want["queue-variance"] = variance(o.occupancy)
}

// A row that cannot be written is an error at the end of the run, whether it was written at
// once or at the end.
func TestRowsThatCannotBeWritten(t *testing.T) {
	s := idleSampler(t, "")
	if err := s.err(); err != nil {
		t.Errorf("without rows: %v", err)
	}
	lost := errors.New("no space left on device")
	for _, rows := range []int{1, 500} {
		s.out = bufio.NewWriter(lostDisk{lost})
		for range rows {
			s.print("%d,%d\n", 123456, 123456)
		}
		if err := s.err(); err != lost {
			t.Errorf("%d rows: %v, want %v", rows, err, lost)
		}
	}
}

// A lostDisk fails at each write.
type lostDisk struct{ err error }

func (d lostDisk) Write([]byte) (int, error) { return 0, d.err }
