package num

import (
	"math/big"
	"math/rand/v2"
	"testing"
)

// The functions for numbers of the control plane agree with math/big.
func TestNumbers(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 1))
	for range 5000 {
		b := make([]byte, r.IntN(24))
		for i := range b {
			b[i] = byte(r.Uint32() >> r.IntN(9) & 0xff)
		}
		for i := range min(len(b), r.IntN(12)) {
			b[i] = 0
		}
		v, width := new(big.Int).SetBytes(b), 1+r.IntN(160)
		if got, want := Fits(b, width), v.BitLen() <= width; got != want {
			t.Fatalf("fits(%x, %d) = %v", b, width, got)
		}
		n := 1 + r.IntN(3)
		for i, x := range OfBytes(b, n) {
			if want := LowOfBig(new(big.Int).Rsh(v, uint(64*i))); x != want {
				t.Fatalf("limbs(%x, %d)[%d] = %#x, want %#x", b, n, i, x, want)
			}
		}
		if !Fits(b, width) {
			continue
		}
		a, length := Aligned(b, Bytes(width)), r.IntN(width+1)
		ClearLow(a, width-length)
		mask := new(big.Int).Lsh(Most(length), uint(width-length))
		if got, want := new(big.Int).SetBytes(a), new(big.Int).And(v, mask); got.Cmp(want) != 0 {
			t.Fatalf("the first %d of %d bits of %x are %x, want %x", length, width, b, got, want)
		}
		for i, x := range Prefix(width, length) {
			if want := LowOfBig(new(big.Int).Rsh(mask, uint(64*i))); x != want {
				t.Fatalf("prefixLimbs(%d, %d)[%d] = %#x, want %#x", width, length, i, x, want)
			}
		}
	}
}
