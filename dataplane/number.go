package dataplane

import (
	"math/big"
	"math/bits"
)

// The control plane's numbers are big-endian bytes, with or without leading
// zeros. Tables are filled with a hundred thousand of them: they are checked
// and turned into words as they are, without math/big.

// fits reports whether a number has at most width bits.
func fits(b []byte, width int) bool {
	for len(b) > 0 && b[0] == 0 {
		b = b[1:]
	}
	return len(b) == 0 || (len(b)-1)*8+bits.Len8(b[0]) <= width
}

// limbs are the n lowest words of a number, the lowest first.
func limbs(b []byte, n int) []uint64 {
	w := make([]uint64, n)
	readWide(w, b[max(0, len(b)-8*n):])
	return w
}

// aligned is a number in n bytes.
func aligned(b []byte, n int) []byte {
	out := make([]byte, n)
	copy(out[max(0, n-len(b)):], b[max(0, len(b)-n):])
	return out
}

// clearLow clears the n lowest bits of a number.
func clearLow(b []byte, n int) {
	for i := len(b) - 1; i >= 0 && n > 0; i-- {
		b[i] &= ^byte(0) << min(n, 8)
		n -= 8
	}
}

// prefixLimbs are words with the first n of width bits set.
func prefixLimbs(width, n int) []uint64 {
	b := make([]byte, bytesOf(width))
	for i := range b {
		b[i] = 0xff
	}
	clearLow(b, width-n)
	w := limbs(b, wordsOf(width))
	wideMask(w, width)
	return w
}

// leastSigned is -2^(width-1), the smallest number of int<width>.
func leastSigned(width int) *big.Int {
	v := new(big.Int).Lsh(big.NewInt(1), uint(width-1))
	return v.Neg(v)
}

// pow2less1 is 2^n - 1.
func pow2less1(n int) *big.Int {
	v := new(big.Int).Lsh(big.NewInt(1), uint(n))
	return v.Sub(v, big.NewInt(1))
}

// lowBits is v modulo 2^64.
func lowBits(v *big.Int) uint64 { return bigLimbs(v, 1)[0] }

// bigLimbs is v modulo 2^(64n) in n limbs.
func bigLimbs(v *big.Int, n int) []uint64 {
	m, word := new(big.Int).And(v, pow2less1(64*n)), pow2less1(64)
	limbs := make([]uint64, n)
	for i := range limbs {
		limbs[i] = new(big.Int).And(m, word).Uint64()
		m.Rsh(m, 64)
	}
	return limbs
}

// readWide reads big-endian bytes into limbs.
func readWide(dst []uint64, data []byte) {
	clear(dst)
	for i := range data {
		n := len(data) - 1 - i
		dst[n/8] |= uint64(data[i]) << (n % 8 * 8)
	}
}

// putBytes writes v as len(dst) big-endian bytes.
func putBytes(dst []byte, v []uint64) {
	for i := range dst {
		n := len(dst) - 1 - i
		dst[i] = 0
		if n/8 < len(v) {
			dst[i] = byte(v[n/8] >> (n % 8 * 8))
		}
	}
}
