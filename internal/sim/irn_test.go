package sim

import (
	"math/rand/v2"
	"testing"
	"time"
)

// patientCable joins the halves of an IRN connection over a line of 10 Gb/s.
func patientCable(t *testing.T, size int64) (*cable, *FlowStats) {
	u := usual(t, func(u *Tuning) {
		u.RDMA.Nack, u.RDMA.Reordering, u.RDMA.Window = Patient, 10*µs, 100*segment
		u.MinRTO, u.FirstRTO, u.MaxRTO = time.Millisecond, time.Millisecond, time.Millisecond
	})
	c := new(FlowStats)
	return &cable{a: newDCQCNSender(u, c, size, 10e9), b: newGoBackReceiver(u, c), delay: 20 * µs, spacing: 800 * time.Nanosecond}, c
}

// TestPatientReordering repeats nothing while packets are late by less than Reordering.
func TestPatientReordering(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	w, c := patientCable(t, 1000*segment)
	w.fate = func(p *Packet, _ int) []time.Duration { return []time.Duration{time.Duration(random.IntN(4500))} }
	w.run(time.Second)
	if c.Received != 1000*segment || c.Acknowledged == 0 || c.OutOfOrder == 0 || c.Retransmitted > 0 || c.Timeouts > 0 {
		t.Errorf("%+v: want packets out of order, and none sent again", c)
	}
}

// TestPatientLoss repeats a lost packet after the Reordering, without the timer, and again
// if its repetition is lost.
func TestPatientLoss(t *testing.T) {
	for _, c := range []struct {
		lost  []int
		again int64
		limit time.Duration
	}{
		{[]int{30}, 1, 950 * µs},
		{[]int{30, 31, 40}, 3, 950 * µs},
	} {
		w, stats := patientCable(t, 1000*segment)
		w.fate = losing(c.lost...)
		w.run(time.Second)
		if stats.Retransmitted != c.again || stats.Timeouts > 0 || stats.Acknowledged == 0 || stats.Acknowledged > c.limit {
			t.Errorf("%v lost: %+v: want %d packets sent again before %v", c.lost, stats, c.again, c.limit)
		}
	}
	w, stats := patientCable(t, 1000*segment)
	n := 0
	w.fate = func(p *Packet, _ int) []time.Duration {
		if p.Kind == data && p.Seq == 30*segment {
			if n++; n <= 2 {
				return nil
			}
		}
		return []time.Duration{0}
	}
	w.run(time.Second)
	if n < 3 || stats.Timeouts > 0 || stats.Acknowledged == 0 || stats.Acknowledged > 1050*µs {
		t.Errorf("a packet lost twice: sent %d times, %+v: want no timeout", n, stats)
	}
}

// TestPatientRandom loses, copies and delays packets, and all bytes arrive.
func TestPatientRandom(t *testing.T) {
	for seed := range uint64(50) {
		random := rand.New(rand.NewPCG(seed, 3))
		size := 1 + random.Int64N(500*segment)
		w, c := patientCable(t, size)
		w.fate = func(p *Packet, _ int) []time.Duration {
			switch random.IntN(20) {
			case 0:
				return nil
			case 1:
				return []time.Duration{0, 5 * µs}
			case 2:
				return []time.Duration{time.Duration(random.IntN(40000))}
			}
			return []time.Duration{0}
		}
		w.run(10 * time.Second)
		if c.Received != size || c.Acknowledged == 0 {
			t.Fatalf("seed %d: %d of %d bytes, %+v", seed, c.Received, size, c)
		}
	}
}
