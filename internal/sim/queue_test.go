package sim

import (
	"fmt"
	"testing"
	"time"

	"github.com/p4lb/p4lb/internal/network/fabric"
	"github.com/p4lb/p4lb/internal/scheme/model"
)

// hashing is the scheme of networks that are not about schemes.
var hashing = model.Config{Granularity: "flow", Signal: "none", Choice: "hash"}

// TestMG1 compares the queue of a port with the Pollaczek–Khinchine formula: packets of
// two lengths with random arrivals wait λE[S²]/2(1-ρ) on average, so λ times that many
// wait at any time.
func TestMG1(t *testing.T) {
	leftToPlainRun(t)
	const load, rate = 0.7, 1e9
	n := newNetwork(t, fabric.LeafSpine{Leaves: 2, Spines: 1, Hosts: 8, Links: fabric.Links{
		HostRate: 100 * rate, Rate: rate, Queue: 1 << 20,
	}}, hashing, Options{})
	// One of four hosts sends long packets, the others send the same number of short ones.
	const long, short = 1458 + UDPHeaders, 58 + UDPHeaders
	service := func(bytes float64) float64 { return bytes * 8 / rate } // s
	lambda := load / (service(long)/2 + service(short)/2)
	for i := range 8 {
		payload := []int{long - UDPHeaders, short - UDPHeaders}[i%2]
		_, err := n.StartFlow(FlowSpec{
			From: fmt.Sprint("h", i+1), To: fmt.Sprint("h", i+9), Rate: int64(lambda / 8 * float64(payload) * 8),
			Tuning: &Tuning{Segment: payload, Poisson: true},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	var port *Port
	for _, o := range n.Switch("l1").Ports() {
		if peer, _ := o.Peer(); peer == "s1" {
			port = o
		}
	}
	var waiting, samples float64
	n.Every(11*time.Microsecond, func(time.Duration) bool {
		waiting += float64(port.QueuePackets())
		samples++
		return true
	})
	if err := n.Run(8 * time.Second); err != nil {
		t.Fatal(err)
	}
	second := service(long)*service(long)/2 + service(short)*service(short)/2
	want := lambda * lambda * second / (2 * (1 - load))
	if got := waiting / samples; got < 0.97*want || got > 1.03*want {
		t.Errorf("%.4f packets wait on average, theory says %.4f", got, want)
	}
}

// incast sends from several hosts to one, and returns the arrivals.
func incast(t *testing.T, o Options, buffer fabric.Size) (n *Network, flows []*Flow) {
	t.Helper()
	n = newNetwork(t, fabric.LeafSpine{Leaves: 3, Spines: 2, Hosts: 8, Buffer: buffer, Links: fabric.Links{
		HostRate: 10 * fabric.Gbps, Rate: 40 * fabric.Gbps, HostDelay: time.Microsecond, Delay: 2 * time.Microsecond, Queue: 100,
	}}, hashing, o)
	for i := range 16 {
		f, err := n.StartFlow(FlowSpec{From: fmt.Sprint("h", i+9), To: "h1", Bytes: 1e6})
		if err != nil {
			t.Fatal(err)
		}
		flows = append(flows, f)
	}
	if err := n.Run(Forever); err != nil {
		t.Fatal(err)
	}
	return n, flows
}

// TestPFC sends far more to a host than its link carries. Without PFC most of it
// is lost. With it everything arrives, although it may be the hosts that wait;
// no pause outlasts its cause.
func TestPFC(t *testing.T) {
	leftToPlainRun(t)
	n, _ := incast(t, Options{}, 0)
	if lost := n.Lost(QueueFull).Packets; lost == 0 {
		t.Error("nothing is lost without PFC")
	}
	for _, c := range []struct {
		pfc    PFC
		buffer fabric.Size
	}{
		{PFC{On: true, Pause: 100 * fabric.KB}, 2 * fabric.MB},
		{PFC{On: true, Pause: 10 * fabric.KB, Resume: 1}, 2 * fabric.MB},
		{PFC{On: true}, 2 * fabric.MB},
		{PFC{On: true, Alpha: 1}, 2 * fabric.MB},
		{PFC{On: true, Promised: true}, 2 * fabric.MB},
		{PFC{On: true}, 0},
	} {
		pfc := c.pfc
		n, flows := incast(t, Options{PFC: pfc}, c.buffer)
		if most := n.Switch("l1").Counters().MaxBuffer; c.buffer == 0 && (most <= usualPause || most > 3*usualPause) {
			t.Errorf("without a buffer l1 held %d bytes of two ports, want somewhat more than %d of each", most, usualPause)
		}
		for why := range reasons {
			if lost := n.Lost(why); lost.Packets != 0 {
				t.Errorf("%+v: %v lost, %v", pfc, lost, why)
			}
		}
		for _, f := range flows {
			if f.Received != 1e6 {
				t.Errorf("%+v: flow %d has received %d bytes", pfc, f.ID, f.Received)
			}
		}
		checkPauses(t, n, pfc)
	}
}

// TestPFCPromised: a reserve of queues leaves less to share, and an ingress
// port has two packets of its own.
func TestPFCPromised(t *testing.T) {
	at := func(promised bool) int {
		o := newDumbbell(t, 2, Options{PFC: PFC{On: true, Alpha: 0.5, Promised: promised}}).Switch("l1").Ports()[0]
		return o.pauseAt()
	}
	const frame, ports = 1514, 3
	if got, want := at(true), at(false)-8*frame*ports/2+2*frame; got != want {
		t.Errorf("a port is paused at %d bytes, want %d", got, want)
	}
	for _, promised := range []bool{false, true} {
		o := Options{ECN: ECN{Min: 100e3, Max: 100e3}, PFC: PFC{On: true, Promised: promised}}
		sw, threshold := newDumbbell(t, 2, o).Switch("l1"), 100_000
		if promised {
			threshold += frame
		}
		if sw.marks(&Port{rateShare: 1}, threshold) || !sw.marks(&Port{rateShare: 1}, threshold+1) {
			t.Errorf("promised %t: %d bytes are marked: %t, one more %t", promised, threshold, sw.marks(&Port{rateShare: 1}, threshold), sw.marks(&Port{rateShare: 1}, threshold+1))
		}
	}
}

// checkPauses checks that there were pauses, up to the hosts, and that none is
// left.
func checkPauses(t *testing.T, n *Network, pfc PFC) {
	t.Helper()
	var atHosts, atSwitches int64
	for _, h := range n.Hosts() {
		atHosts += h.NIC().Counters().Pauses
		if h.NIC().Paused() {
			t.Errorf("%+v: host %s is still paused", pfc, h.Name)
		}
	}
	for _, s := range n.Switches() {
		if s.Buffered() != 0 {
			t.Errorf("%+v: %d bytes wait in %s", pfc, s.Buffered(), s.Name)
		}
		for _, o := range s.Ports() {
			atSwitches += o.Counters().Pauses
			if o.Paused() || o.pfc.held != 0 {
				t.Errorf("%+v: port %d of %s is still paused, or holds %d", pfc, o.Number, s.Name, o.pfc.held)
			}
		}
	}
	if atHosts == 0 || atSwitches == 0 {
		t.Errorf("%+v: %d pauses of hosts, %d of switches", pfc, atHosts, atSwitches)
	}
}

// TestDynamicThreshold fills one queue of a switch: with α = 1 it gets half of
// the buffer.
func TestDynamicThreshold(t *testing.T) {
	n, _ := incast(t, Options{Alpha: 1}, 600*fabric.KiB)
	var longest int
	for _, o := range n.Switch("l1").Ports() {
		longest = max(longest, o.Counters().MaxQueue)
	}
	if half := 300 << 10; longest > half+1514 || longest < half-1514 {
		t.Errorf("the queue grew to %d bytes, want half of the buffer, %d", longest, half)
	}
	if n.Lost(BufferFull).Packets != 0 || n.Lost(QueueFull).Packets == 0 {
		t.Errorf("lost for want of room in the buffer %v, in the queue %v", n.Lost(BufferFull), n.Lost(QueueFull))
	}
}

// TestRED marks a share of packets that rises with the queue.
func TestRED(t *testing.T) {
	s := &Switch{net: &Network{opts: Options{ECN: ECN{Min: 1000, Max: 3000, P: 0.5}}}, random: stream(1, "red")}
	share := func(bytes int) float64 {
		hits := 0
		for range 20000 {
			if s.marks(&Port{rateShare: 1}, bytes) {
				hits++
			}
		}
		return float64(hits) / 20000
	}
	for bytes, want := range map[int]float64{500: 0, 1000: 0, 1500: 0.125, 2000: 0.25, 2800: 0.45, 3001: 1} {
		if got := share(bytes); got < want-0.02 || got > want+0.02 {
			t.Errorf("of packets that make the queue %d bytes long, %.3f are marked, want %.3f", bytes, got, want)
		}
	}
}

// TestQueuesOfSlowLinks: a model that reads queues gets lengths relative to their scaled limits, but
// a scheme that computes times from the rates of ports gets bytes, and the bytes of the next switch
// in the time of its own port.
func TestQueuesOfSlowLinks(t *testing.T) {
	n := newNetwork(t, fabric.LeafSpine{Leaves: 2, Spines: 2, Hosts: 1}, hashing, Options{Scaled: true})
	leaf, spine := n.Switch("l1"), n.Switch("s1")
	var own, next *Port
	for _, l := range n.Links() {
		switch {
		case l.A.sw == leaf && l.B.sw == spine:
			own = l.A
		case l.A.sw == n.Switch("l2") && l.B.sw == spine:
			next = l.B
			if err := l.SetRate(fabric.Rate(own.rate / 4)); err != nil {
				t.Fatal(err)
			}
		}
	}
	own.bytes, next.bytes = 1000, 3000
	to := model.Flow{Dst: n.Host("h2").IP}
	for _, c := range []struct {
		signal, choice string
		own, next      uint32 // lengths of l1's port and of the spine's slow one
		sum            uint32
	}{
		{"queue", "sampled", 1000, 12000, 13000},
		{"occupancy", "least", 1000, 12000, 13000},
		{"drain", "least", 1000, 3000, 13000}, // the slow port needs the time of 12,000 bytes
		{"queue", "ordered", 1000, 3000, 13000},
	} {
		config := model.Config{Signal: c.signal, Choice: c.choice}
		at := func(o *Port, onward bool) uint32 {
			return (&native{s: o.sw, o: Model{Config: config, Onward: onward}}).queueNow(o.Number, to)
		}
		if a, b, sum := at(own, false), at(next, false), at(own, true); a != c.own || b != c.next || sum != c.sum {
			t.Errorf("%s %s: %d, %d and together %d bytes, want %d, %d and %d", c.signal, c.choice, a, b, sum, c.own, c.next, c.sum)
		}
	}
}
