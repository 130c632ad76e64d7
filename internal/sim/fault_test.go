package sim

import (
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/p4lb/p4lb/internal/network/fabric"
)

// TestLinkFailure cuts a link while a flow uses it: packets on it are lost, and
// so are later ones, until it is restored and TCP recovers.
func TestLinkFailure(t *testing.T) {
	d := newDumbbell(t, 1, Options{})
	done := false
	f, err := d.StartFlow(FlowSpec{From: "h1", To: "h2", Bytes: 20e6, Transport: TCP, Done: func(*Flow) { done = true }})
	if err != nil {
		t.Fatal(err)
	}
	link := d.bottleneck(t).Link()
	var stalled int64
	d.At(4*time.Millisecond, link.Fail)
	d.At(5*time.Millisecond, func() { stalled = f.Received })
	d.At(9*time.Millisecond, func() {
		if f.Received != stalled || !link.Down() {
			t.Errorf("%d bytes arrive over a link that is down", f.Received-stalled)
		}
	})
	d.At(10*time.Millisecond, link.Restore)
	d.run(t, time.Second)
	if !done || d.Lost(LinkDown).Packets == 0 || f.Timeouts == 0 {
		t.Errorf("done: %v; lost %v; %d timeouts", done, d.Lost(LinkDown), f.Timeouts)
	}
}

// TestFailureEndsPause cuts a link with a port that is paused, or about to be. No peer
// could end that.
func TestFailureEndsPause(t *testing.T) {
	d := newDumbbell(t, 1, Options{PFC: PFC{On: true}})
	port := d.bottleneck(t)
	port.pause()
	port.peer.signal(true)
	port.link.Fail()
	if port.Paused() {
		t.Error("the port is still paused")
	}
	port.link.Restore()
	d.run(t, time.Second)
	if port.Paused() || port.peer.pfc.pausing {
		t.Error("a pause has outlasted the failure")
	}
}

// TestSlowerLink makes the link that a flow uses a tenth as fast, and repairs it:
// the flow brings that much meanwhile, and nothing is lost where PFC pauses.
func TestSlowerLink(t *testing.T) {
	d := newDumbbell(t, 1, Options{PFC: PFC{On: true, Pause: 50e3}})
	f, err := d.StartFlow(FlowSpec{From: "h1", To: "h2", Bytes: 1e9, Rate: int64(dumbbellRate)})
	if err != nil {
		t.Fatal(err)
	}
	link := d.bottleneck(t).Link()
	rate := link.A.Rate()
	change := func(at time.Duration, r fabric.Rate) {
		d.At(at, func() {
			if err := link.SetRate(r); err != nil {
				t.Error(err)
			}
		})
	}
	change(4*time.Millisecond, rate/10)
	change(8*time.Millisecond, rate)
	brought := func(from, to time.Duration) float64 {
		d.run(t, from)
		before := f.Received
		d.run(t, to)
		return float64(f.Received-before) * 8 / (to - from).Seconds() / float64(rate)
	}
	for _, c := range []struct {
		from, to time.Duration
		want     float64
	}{{2, 4, 1}, {5, 8, 0.1}, {9, 11, 1}} {
		if got := brought(c.from*time.Millisecond, c.to*time.Millisecond); got < 0.9*c.want || got > c.want {
			t.Errorf("from %d to %d ms %.3f of the link's rate arrives, want about %g", c.from, c.to, got, c.want)
		}
	}
	for _, why := range Reasons() {
		if lost := d.Lost(why); lost.Packets > 0 {
			t.Errorf("%v lost by %v", lost, why)
		}
	}
	if err := link.SetRate(0); err == nil {
		t.Error("a rate of 0 is accepted")
	}
}

// TestSilentDrops loses a share of the packets that arrive.
func TestSilentDrops(t *testing.T) {
	d := newDumbbell(t, 1, Options{Seed: 2})
	if err := d.Switch("s1").DropSilently(0.05); err != nil {
		t.Fatal(err)
	}
	f, err := d.StartFlow(FlowSpec{From: "h1", To: "h2", Bytes: 30e6})
	if err != nil {
		t.Fatal(err)
	}
	d.run(t, Forever)
	share := float64(d.Lost(Silent).Packets) / float64(f.Sent)
	if share < 0.04 || share > 0.06 {
		t.Errorf("%.3f of the packets are lost, want 0.05", share)
	}
	if err := d.Switch("s1").DropSilently(1.5); err == nil {
		t.Error("a share of 1.5 is accepted")
	}
}

// TestBlackHole loses all packets from one host to another, and no others.
func TestBlackHole(t *testing.T) {
	d := newDumbbell(t, 2, Options{})
	if err := d.Switch("s1").BlackHole("h1", "h3", true); err != nil {
		t.Fatal(err)
	}
	if err := d.Switch("s1").BlackHole("", "h3", true); err == nil {
		t.Error("a black hole from no host to h3 is accepted")
	}
	if err := d.Switch("s1").BlackHole("h1", "h99", true); err == nil || !strings.Contains(err.Error(), "h99") {
		t.Errorf("a black hole for a host that is not there: %v", err)
	}
	d.start(t, 2, FlowSpec{Bytes: 1e6, Rate: 1e9})
	d.run(t, Forever)
	if d.flows[0].Received != 0 || d.flows[1].Received != 1e6 {
		t.Errorf("%d and %d bytes arrive, want 0 and 1000000", d.flows[0].Received, d.flows[1].Received)
	}
	if err := d.Switch("s1").BlackHole("h1", "h3", false); err != nil {
		t.Fatal(err)
	}
	if lost := d.Lost(BlackHole); lost.Packets != d.flows[0].Sent {
		t.Errorf("%v lost of %d", lost, d.flows[0].Sent)
	}
}

// TestAudit removes one packet and adds another one: the audit must
// find both.
func TestAudit(t *testing.T) {
	for _, tamper := range []func(*Network){
		func(n *Network) { n.ledger.delivered.Packets-- },
		func(n *Network) { n.ledger.lost[Silent].Bytes++ },
	} {
		d := newDumbbell(t, 1, Options{})
		d.start(t, 1, FlowSpec{})
		d.run(t, time.Millisecond)
		tamper(d.Network)
		if err := d.Audit(); err == nil {
			t.Error("the audit finds nothing")
		}
	}
}

// TestNoProgram sends through switches without a program.
func TestNoProgram(t *testing.T) {
	topo, err := fabric.LeafSpine{}.Make()
	if err != nil {
		t.Fatal(err)
	}
	n, err := New(topo, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := n.StartFlow(FlowSpec{From: "h1", To: "h3", Bytes: 1000}); err != nil {
		t.Fatal(err)
	}
	if err := n.Run(Forever); err != nil || n.Lost(noProgram).Packets != 1 {
		t.Errorf("lost %v, %v", n.Lost(noProgram), err)
	}
	if _, err := n.Switch("l1").ReadRegister("x", nil); err == nil {
		t.Error("there is a register x")
	}
}

// TestSameSeed runs the same twice, and with another seed.
func TestSameSeed(t *testing.T) {
	run := func(seed uint64) string {
		d := newDumbbell(t, 8, Options{Seed: seed, ECN: ECN{Min: 20e3, Max: 80e3, P: 0.3}})
		if err := d.Switch("s1").DropSilently(0.01); err != nil {
			t.Fatal(err)
		}
		d.start(t, 8, FlowSpec{Bytes: 2e6, Transport: DCTCP})
		d.run(t, Forever)
		var b strings.Builder
		for _, f := range d.flows {
			fmt.Fprintln(&b, f.Finished, f.FlowStats)
		}
		for _, s := range d.Switches() {
			for _, o := range s.Ports() {
				fmt.Fprintln(&b, o.Counters())
			}
		}
		return b.String()
	}
	a, b, c := run(1), run(1), run(2)
	if !reflect.DeepEqual(a, b) {
		t.Errorf("one seed, two results:\n%s\n%s", a, b)
	}
	if a == c {
		t.Error("two seeds, one result")
	}
}

// TestBitErrors loses packets by their length: with the share p of wrong bits, one of n
// bytes with the probability 1-(1-p)^(8n).
func TestBitErrors(t *testing.T) {
	for _, payload := range []int{100, 1400} {
		n := newDumbbell(t, 2, Options{Seed: 7})
		const rate, packets = 2e-5, 20000
		if err := n.Links()[len(n.Links())-1].SetBitErrors(rate); err != nil {
			t.Fatal(err)
		}
		var flows []*Flow
		for _, ends := range [][2]string{{"h1", "h3"}, {"h3", "h1"}} {
			f, err := n.StartFlow(FlowSpec{From: ends[0], To: ends[1], Bytes: int64(packets * payload), Transport: UDP, Rate: 1e8, Tuning: &Tuning{Segment: payload}})
			if err != nil {
				t.Fatal(err)
			}
			flows = append(flows, f)
		}
		if err := n.Run(time.Minute); err != nil {
			t.Fatal(err)
		}
		lost := float64(n.Lost(Corrupted).Packets)
		want := (1 - math.Pow(1-rate, float64(8*(payload+UDPHeaders)))) * packets
		crossed := 0.0
		for _, f := range flows {
			if f.Received < f.Bytes {
				crossed++
			}
		}
		if want *= crossed; crossed == 0 || math.Abs(lost-want) > 5*math.Sqrt(want) {
			t.Errorf("packets of %d bytes: %.0f lost: want about %.0f", payload, lost, want)
		}
	}
	if err := newDumbbell(t, 2, Options{}).Links()[0].SetBitErrors(1); err == nil {
		t.Error("all bits may be wrong")
	}
}
