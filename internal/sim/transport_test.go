package sim

import (
	"math/rand/v2"
	"testing"
	"time"
)

// TestDelivery sends flows through a cable that loses, copies and reorders: each
// byte arrives at the application once, in order, and the sender's books are
// right all the time.
func TestDelivery(t *testing.T) {
	leftToPlainRun(t)
	for _, c := range []struct {
		name   string
		change func(*Tuning)
		make   func(*Tuning, *FlowStats, int64) (half, half)
	}{
		{"tcp", nil, tcpHalves(false)},
		{"tcp, delayed acknowledgments", func(u *Tuning) { u.DelayedAck = 200 * time.Microsecond }, tcpHalves(false)},
		{"dctcp", nil, tcpHalves(true)},
		{"dctcp, delayed acknowledgments", func(u *Tuning) { u.DelayedAck = 200 * time.Microsecond }, tcpHalves(true)},
		{"dcqcn", nil, dcqcnHalves},
		{"dcqcn, few acknowledgments, window", func(u *Tuning) { u.RDMA.AckEvery, u.RDMA.Window = 4, 20*segment }, dcqcnHalves},
	} {
		t.Run(c.name, func(t *testing.T) {
			for seed := range uint64(80) {
				random := rand.New(rand.NewPCG(seed, 7))
				size := 1 + random.Int64N(120*segment)
				var stats FlowStats
				w := &cable{delay: 50 * time.Microsecond, spacing: time.Microsecond}
				w.a, w.b = c.make(usual(t, c.change), &stats, size)
				w.fate = nasty(random)
				w.after = func() { audit(t, w, &stats, size) }
				w.run(time.Hour)
				if stats.Received != size || arrived(w.b) != size || acknowledged(w.a) != size {
					t.Fatalf("seed %d: %d bytes of %d arrived, %d acknowledged, at %v: %+v", seed, stats.Received, size, acknowledged(w.a), w.now, stats)
				}
				if t.Failed() {
					t.Fatalf("seed %d", seed)
				}
			}
		})
	}
}

func tcpHalves(ecn bool) func(*Tuning, *FlowStats, int64) (half, half) {
	return func(t *Tuning, c *FlowStats, size int64) (half, half) {
		return newTCPSender(t, c, size, ecn), newTCPReceiver(t, c)
	}
}

func dcqcnHalves(t *Tuning, c *FlowStats, size int64) (half, half) {
	return newDCQCNSender(t, c, size, 10e9), newGoBackReceiver(t, c)
}

// nasty is a fate with random shares of loss, copies, delay and marks.
func nasty(random *rand.Rand) func(*Packet, int) []time.Duration {
	lose, repeat, delay, mark := random.Float64()*0.3, random.Float64()*0.2, random.Float64()*0.3, random.Float64()
	return func(p *Packet, n int) []time.Duration {
		late := []time.Duration{0}
		if random.Float64() < lose {
			late = nil
		}
		if random.Float64() < repeat {
			late = append(late, 0)
		}
		for i := range late {
			if random.Float64() < delay {
				late[i] = time.Duration(random.Int64N(int64(300 * time.Microsecond)))
			}
		}
		p.CE = p.ECT && random.Float64() < mark
		return late
	}
}

func arrived(h half) int64 {
	switch r := h.(type) {
	case *tcpReceiver:
		return r.expected
	case *goBackReceiver:
		return r.expected
	}
	return -1
}

func acknowledged(h half) int64 {
	switch s := h.(type) {
	case *tcpSender:
		return s.una
	case *dcqcnSender:
		return s.una
	}
	return -1
}

// audit checks the invariants.
func audit(t *testing.T, w *cable, stats *FlowStats, size int64) {
	t.Helper()
	if acknowledged(w.a) > arrived(w.b) {
		t.Fatalf("acknowledged %d, arrived %d", acknowledged(w.a), arrived(w.b))
	}
	s, ok := w.a.(*tcpSender)
	if !ok {
		return
	}
	if s.una < s.high && s.deadline() == never {
		t.Fatal("something is outstanding, and no timer runs")
	}
	r := w.b.(*tcpReceiver)
	if s.una > s.repeat || s.una > s.lost || s.repeat > s.high || s.lost > s.high || s.high > s.size {
		t.Fatalf("una %d, repeat %d, lost %d, high %d", s.una, s.repeat, s.lost, s.high)
	}
	if got := s.sacked.within(0, size); got != s.sackedBytes || s.sacked.top() > s.high {
		t.Fatalf("%v: %d bytes, %d in the books", s.sacked, got, s.sackedBytes)
	}
	if s.pipe() < 0 || s.window < segment {
		t.Fatalf("%d bytes in the network, window %d", s.pipe(), s.window)
	}
	if got := r.expected + r.held.within(0, size); got != stats.Received {
		t.Fatalf("%d bytes arrived, %d counted", got, stats.Received)
	}
	if s.phase == tcpOpen && (s.repeat != s.una || s.lost != s.una || s.unsent != 0) {
		t.Fatalf("nothing is wrong, but una %d, repeat %d, lost %d, owed %d", s.una, s.repeat, s.lost, s.unsent)
	}
}

// FuzzDelivery reads the fate of each packet from the input. After the input all packets
// pass, so everything must arrive.
func FuzzDelivery(f *testing.F) {
	f.Add([]byte{1, 0, 0, 4, 1, 8, 250}, uint16(30_000))
	f.Add([]byte{0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 77}, uint16(9_999))
	f.Fuzz(func(t *testing.T, fates []byte, size uint16) {
		bytes := int64(size) + 1
		for _, make := range []func(*Tuning, *FlowStats, int64) (half, half){tcpHalves(false), tcpHalves(true), dcqcnHalves} {
			var stats FlowStats
			left := fates
			w := &cable{delay: 50 * time.Microsecond, spacing: time.Microsecond}
			w.a, w.b = make(usual(t, nil), &stats, bytes)
			w.fate = func(p *Packet, _ int) []time.Duration {
				if len(left) == 0 {
					return []time.Duration{0}
				}
				b := left[0]
				left = left[1:]
				p.CE = p.ECT && b&2 != 0
				late := time.Duration(b>>3) * 5 * time.Microsecond
				switch {
				case b&1 != 0:
					return nil
				case b&4 != 0:
					return []time.Duration{late, 2 * late}
				}
				return []time.Duration{late}
			}
			w.after = func() { audit(t, w, &stats, bytes) }
			// Each packet that is lost may cost the longest timeout.
			w.run(time.Hour + time.Duration(len(fates))*usualMaxRTO)
			if arrived(w.b) != bytes || acknowledged(w.a) != bytes {
				t.Fatalf("%d bytes of %d arrived, %d acknowledged: %+v", arrived(w.b), bytes, acknowledged(w.a), stats)
			}
		}
	})
}
