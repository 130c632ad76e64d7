package sim

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/p4lb/p4lb/internal/network/fabric"
	"github.com/p4lb/p4lb/internal/scheme/model"
)

// TestUDPRate keeps the rate exactly, also where an interval is no whole number
// of ns, and where the sender is asked late.
func TestUDPRate(t *testing.T) {
	s := newUDPSender(usual(t, nil), new(FlowStats), never64, 3e9, 0)
	n := 0
	for now := time.Duration(0); now <= 8*time.Millisecond; now += 8 * µs {
		for s.ready(now) {
			s.emit(now, new(Packet))
			n++
		}
	}
	// 3 Gb/s in packets of 1000 bytes.
	if n != 3001 {
		t.Errorf("%d packets in 8 ms", n)
	}
	if s.at != time.Duration(int64(n)*segment*8/3) {
		t.Errorf("packet %d is due at %v", n, s.at)
	}
}

// TestPoisson checks mean and variance of the intervals.
func TestPoisson(t *testing.T) {
	s := newUDPSender(usual(t, nil), new(FlowStats), never64, 1e9, 0)
	s.random = rand.New(rand.NewPCG(5, 6))
	var sum, squares float64
	const n = 200000
	for range n {
		at := s.at
		s.emit(at, new(Packet))
		d := float64(s.at - at)
		sum += d
		squares += d * d
	}
	mean := sum / n
	deviation := math.Sqrt(squares/n - mean*mean)
	if math.Abs(mean-8000) > 80 || math.Abs(deviation-8000) > 120 {
		t.Errorf("intervals of %.0f ns, deviation %.0f, want 8000", mean, deviation)
	}
}

// TestMD1 compares the queue of a port with theory: if packets of one length arrive at
// random, ρ²/2(1-ρ) wait on average (Pollaczek and Khinchine).
func TestMD1(t *testing.T) {
	leftToPlainRun(t)
	const sources, rate = 8, 1e9
	for _, load := range []float64{0.5, 0.7} {
		n := newNetwork(t, fabric.LeafSpine{Leaves: 2, Spines: 1, Hosts: sources, Links: fabric.Links{
			HostRate: 100 * fabric.Gbps, Rate: rate, Queue: 100000,
		}}, model.Config{Granularity: "flow", Signal: "none", Choice: "hash"}, Options{Seed: 1})
		d := &dumbbell{Network: n, hosts: sources}
		share := 1472.0 / 1514 // of payload
		d.start(t, sources, FlowSpec{Rate: int64(load * rate * share / sources), Tuning: &Tuning{Poisson: true}})
		port, sum, samples := d.bottleneck(t), 0, 0
		d.Every(5*µs, func(time.Duration) bool {
			sum += port.QueuePackets()
			samples++
			return true
		})
		d.run(t, 8*time.Second)
		got, want := float64(sum)/float64(samples), load*load/2/(1-load)
		t.Logf("load %.1f: %.4f packets wait on average, theory says %.4f, of %d", load, got, want, port.Counters().Packets)
		if math.Abs(got/want-1) > 0.03 {
			t.Errorf("load %.1f: %.4f packets wait on average, theory says %.4f", load, got, want)
		}
	}
}
