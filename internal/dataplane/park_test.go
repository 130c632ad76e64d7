package dataplane

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestParkedWords writes words and reads them back.
func TestParkedWords(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for n := range 100 {
		w := make([]uint64, n)
		for i := range w {
			w[i] = rnd.Uint64() >> rnd.IntN(64) * uint64(rnd.IntN(2))
		}
		b := append(appendWords(nil, w), "rest"...)
		got := slices.Repeat([]uint64{7}, n)
		if rest := readWords(got, b); !slices.Equal(got, w) || string(rest) != "rest" {
			t.Fatalf("%x becomes %x and %q", w, got, rest)
		}
	}
}

// Packets that are parked in their queue, with missing bytes, leave with the
// same bytes as packets that are not.
func TestPark(t *testing.T) {
	plain, parking := flowlet(t).sw, flowlet(t).sw
	queue := func(s *Switch, n int) *Packet {
		p := s.receiveHead(1, udp(100+n, 0x0b000000, 0x0a000001, uint16(n), 80), 1000, 55)
		out := s.Ingress(p, 55, nil)
		if len(out) != 1 || out[0].Kind != ToQueue {
			t.Fatalf("packet %d becomes %+v", n, out)
		}
		s.Enqueued(p, 3, 66)
		return p
	}
	for n := range 50 {
		a, b := queue(plain, n), queue(parking, n)
		parking.park(b)
		other := queue(parking, n) // gets the storage
		x, y := plain.Egress(a, 3, 77, nil), parking.Egress(b, 3, 77, nil)
		if len(x) != 1 || len(y) != 1 || x[0].Port != y[0].Port || !bytes.Equal(a.Bytes(), b.Bytes()) {
			t.Fatalf("packet %d: %+v unless parked, else %+v", n, x, y)
		}
		if a.Len() != 1100+n || b.Len() != a.Len() || a.extraBytes() != 1000 || b.extraBytes() != 1000 {
			t.Fatalf("packet %d: %d and %d bytes, %d and %d of them not there", n, a.Len(), b.Len(), a.extraBytes(), b.extraBytes())
		}
		plain.Free(a)
		parking.Free(b)
		parking.Free(other)
	}
}

// TestTruncateHead truncates packets with missing bytes.
func TestTruncateHead(t *testing.T) {
	for _, x := range []struct{ limit, bytes, extra int }{{20, 20, 0}, {50, 50, 0}, {70, 50, 20}, {2000, 50, 100}} {
		s := flowlet(t).sw
		p := s.receiveHead(1, udp(50, 1, 2, 3, 4), 100, 0)
		p.st.Truncate(uint64(x.limit))
		if len(p.Bytes()) != x.bytes || p.extraBytes() != x.extra {
			t.Errorf("150 bytes cut to %d: %d and %d follow, want %d and %d", x.limit, len(p.Bytes()), p.extraBytes(), x.bytes, x.extra)
		}
	}
}
