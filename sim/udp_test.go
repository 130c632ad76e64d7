package sim

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
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
