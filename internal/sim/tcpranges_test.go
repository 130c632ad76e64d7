package sim

import (
	"math/rand/v2"
	"testing"
)

// TestRanges compares the set with a set of single bytes.
func TestRanges(t *testing.T) {
	const size = 60
	random := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		var s ranges
		var plain [size]bool
		for range 40 {
			from := random.Int64N(size)
			to := from + random.Int64N(size-from+1)
			if random.IntN(8) == 0 {
				if got, want := s.drop(from), clear(&plain, from); got != want {
					t.Fatalf("drop(%d) = %d, want %d", from, got, want)
				}
			} else if got, want := s.add(Range{from, to}), set(&plain, from, to); got != want {
				t.Fatalf("add(%d, %d) = %d, want %d", from, to, got, want)
			}
			compare(t, s, &plain)
			if got, want := s.within(from, to), count(&plain, from, to); got != want {
				t.Fatalf("%v: within(%d, %d) = %d, want %d", s, from, to, got, want)
			}
			checkGap(t, s, &plain, from, to)
			checkLost(t, s, &plain)
		}
	}
}

func set(plain *[60]bool, from, to int64) (n int64) {
	n = to - from - count(plain, from, to)
	for i := from; i < to; i++ {
		plain[i] = true
	}
	return n
}

func clear(plain *[60]bool, to int64) (n int64) {
	n = count(plain, 0, to)
	for i := range to {
		plain[i] = false
	}
	return n
}

func count(plain *[60]bool, from, to int64) (n int64) {
	for i := from; i < to; i++ {
		if plain[i] {
			n++
		}
	}
	return n
}

// compare checks the contents of the set, and its form.
func compare(t *testing.T, s ranges, plain *[60]bool) {
	t.Helper()
	var got [60]bool
	for i, r := range s {
		if r.From >= r.To || i > 0 && r.From <= s[i-1].To {
			t.Fatalf("%v is not in order", s)
		}
		for x := r.From; x < r.To; x++ {
			got[x] = true
		}
	}
	if got != *plain {
		t.Fatalf("%v, want %v", s, plain)
	}
}

func checkGap(t *testing.T, s ranges, plain *[60]bool, x, end int64) {
	t.Helper()
	from := x
	for from < 60 && plain[from] {
		from++
	}
	to := from
	for to < end && !plain[to] {
		to++
	}
	if gotFrom, gotTo := s.gap(x, end); gotFrom != from || from < end && gotTo != to {
		t.Fatalf("%v: gap(%d, %d) = %d, %d, want %d, %d", s, x, end, gotFrom, gotTo, from, to)
	}
}

// checkLost tries IsLost of RFC 6675 for each byte that is missing: three
// ranges, or more than two segments of 5, beyond it.
func checkLost(t *testing.T, s ranges, plain *[60]bool) {
	t.Helper()
	edge := s.lost(3, 5)
	for x := range int64(60) {
		if plain[x] {
			continue
		}
		bytes, runs := count(plain, x, 60), 0
		for y := x + 1; y < 60; y++ {
			if plain[y] && !plain[y-1] {
				runs++
			}
		}
		if want := bytes > 10 || runs >= 3; (x < edge) != want {
			t.Fatalf("%v: byte %d is lost: %v, want %v", s, x, x < edge, want)
		}
	}
}
