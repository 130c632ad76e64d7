package num

import "testing"

func TestBitWriterAgainstReadBits(t *testing.T) {
	widths := []int{1, 3, 8, 13, 32, 48, 56, 64, 65, 128, 7, 8, 5}
	var b BitWriter
	var values [][]uint64
	for i, w := range widths {
		v := make([]uint64, Words(w))
		for j := range v {
			v[j] = 0x9e3779b97f4a7c15 * uint64(i+j+1)
		}
		Mask(v, w)
		values = append(values, v)
		b.PutWords(v, w)
	}
	out, at := b.Finish(), 0
	for i, w := range widths {
		got := make([]uint64, Words(w))
		ReadBits(got, out, at, w)
		at += w
		for j := range got {
			if got[j] != values[i][j] {
				t.Errorf("field %d of %d bits: %x, want %x", i, w, got, values[i])
			}
		}
	}
}
