package sim

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

func entropyOf(kind Entropy, paths int) *entropySource {
	return newEntropySource(&Tuning{Entropy: kind, Paths: paths}, rand.New(rand.NewPCG(1, 2)))
}

// TestEntropyTurns uses every port once in each turn, in orders that differ.
func TestEntropyTurns(t *testing.T) {
	s := entropyOf(EntropyOblivious, 16)
	orders := map[string]bool{}
	for range 8 {
		var ports []uint16
		for range 16 {
			ports = append(ports, s.next(0))
		}
		orders[string(func() (b []byte) {
			for _, p := range ports {
				b = append(b, byte(p))
			}
			return b
		}())] = true
		slices.Sort(ports)
		if len(slices.Compact(ports)) != 16 {
			t.Fatalf("ports %v: want each once", ports)
		}
	}
	if len(orders) < 3 {
		t.Errorf("%d orders in 8 turns", len(orders))
	}
}

// TestREPS recycles each good port once, the oldest first, and keeps eight (Algorithm 1
// of the paper).
func TestREPS(t *testing.T) {
	s := entropyOf(EntropyREPS, 1024)
	for i := range uint16(10) {
		s.heed(0, i, pathGood)
	}
	s.heed(0, 500, pathMarked)
	for want := uint16(2); want < 10; want++ {
		if got := s.next(0); got != want {
			t.Errorf("port %d: want %d", got, want)
		}
	}
	drawn := map[uint16]bool{}
	for range 20 {
		drawn[s.next(0)] = true
	}
	if len(drawn) < 15 {
		t.Errorf("without good ports, %d different ones in 20 packets", len(drawn))
	}
	// A timeout freezes the buffer: old ports in turn, used or not. Afterwards it
	// explores with random ports.
	s.heed(time.Millisecond, 7, pathTimeout)
	for i := range 16 {
		if got, want := s.next(2*time.Millisecond), uint16([]int{8, 9, 2, 3, 4, 5, 6, 7}[i%8]); got != want {
			t.Errorf("frozen, port %d: want %d", got, want)
		}
	}
	s.heed(20*time.Millisecond, 3, pathGood)
	drawn = map[uint16]bool{}
	for range repsExplore {
		drawn[s.next(20*time.Millisecond)] = true
	}
	if len(drawn) < repsExplore-2 {
		t.Errorf("exploring, %d different ports in %d packets", len(drawn), repsExplore)
	}
	if got := s.next(20 * time.Millisecond); got != 3 {
		t.Errorf("after exploring, port %d: want 3", got)
	}
}

// TestBitmap skips a port for as many turns as it has penalties, and no other.
func TestBitmap(t *testing.T) {
	s := entropyOf(entropyBitmap, 8)
	s.heed(0, 5, pathMarked)
	s.heed(0, 5, pathMarked)
	for turn, want := range []int{0, 0, 1} {
		used := 0
		for range 8 - 1 + want {
			if s.next(0) == 5 {
				used++
			}
		}
		if used != want {
			t.Errorf("turn %d: port 5 is used %d times, want %d", turn, used, want)
		}
	}
	s.heed(0, 6, pathTimeout)
	if s.penalty[6] != maxPenalty {
		t.Errorf("penalty %d after a timeout: want %d", s.penalty[6], maxPenalty)
	}
}

// TestMixed prefers recycled ports and falls back on the bitmap.
func TestMixed(t *testing.T) {
	s := entropyOf(EntropyMixed, 8)
	s.heed(0, 3, pathGood)
	s.heed(0, 4, pathGood)
	s.heed(0, 6, pathMarked)
	if a, b := s.next(0), s.next(0); a != 3 || b != 4 {
		t.Errorf("ports %d, %d: want 3 and 4", a, b)
	}
	for range 7 {
		if s.next(0) == 6 {
			t.Error("port 6 was marked and is used in its turn")
		}
	}
}
