package program

import "testing"

// TestMix: hashes that agree in their low bits select all of four members, about equally often.
func TestMix(t *testing.T) {
	var used [4]int
	for i := range uint32(400) {
		used[mix(i<<2)%4]++
	}
	for i, n := range used {
		if n < 70 || n > 130 {
			t.Errorf("member %d is selected %d times of 400", i, n)
		}
	}
}
