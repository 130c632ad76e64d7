package num

import (
	"math/big"
	"math/bits"
)

// The control plane's numbers are big-endian bytes, with or without leading zeros.
// A table may get a hundred thousand of them, so these functions check and convert
// them without math/big.

// Fits reports whether a number has at most width bits.
func Fits(b []byte, width int) bool {
	for len(b) > 0 && b[0] == 0 {
		b = b[1:]
	}
	return len(b) == 0 || (len(b)-1)*8+bits.Len8(b[0]) <= width
}

// OfBytes returns the n lowest words of a number, lowest first.
func OfBytes(b []byte, n int) []uint64 {
	w := make([]uint64, n)
	ReadBytes(w, b[max(0, len(b)-8*n):])
	return w
}

// Aligned returns a number in n bytes.
func Aligned(b []byte, n int) []byte {
	out := make([]byte, n)
	copy(out[max(0, n-len(b)):], b[max(0, len(b)-n):])
	return out
}

// ClearLow clears the n lowest bits of a number.
func ClearLow(b []byte, n int) {
	for i := len(b) - 1; i >= 0 && n > 0; i-- {
		b[i] &= ^byte(0) << min(n, 8)
		n -= 8
	}
}

// Prefix returns words with the first n of width bits set.
func Prefix(width, n int) []uint64 {
	b := make([]byte, Bytes(width))
	for i := range b {
		b[i] = 0xff
	}
	ClearLow(b, width-n)
	w := OfBytes(b, Words(width))
	Mask(w, width)
	return w
}

// LeastSigned returns -2^(width-1), the smallest number of int<width>.
func LeastSigned(width int) *big.Int {
	v := new(big.Int).Lsh(big.NewInt(1), uint(width-1))
	return v.Neg(v)
}

// Most returns 2^n - 1.
func Most(n int) *big.Int {
	v := new(big.Int).Lsh(big.NewInt(1), uint(n))
	return v.Sub(v, big.NewInt(1))
}

// LowOfBig returns v modulo 2^64.
func LowOfBig(v *big.Int) uint64 { return OfBig(v, 1)[0] }

// OfBig returns v modulo 2^(64n) in n limbs.
func OfBig(v *big.Int, n int) []uint64 {
	m, word := new(big.Int).And(v, Most(64*n)), Most(64)
	limbs := make([]uint64, n)
	for i := range limbs {
		limbs[i] = new(big.Int).And(m, word).Uint64()
		m.Rsh(m, 64)
	}
	return limbs
}

// ReadBytes reads big-endian bytes into limbs.
func ReadBytes(dst []uint64, data []byte) {
	clear(dst)
	for i := range data {
		n := len(data) - 1 - i
		dst[n/8] |= uint64(data[i]) << (n % 8 * 8)
	}
}

// PutBytes writes v as len(dst) big-endian bytes.
func PutBytes(dst []byte, v []uint64) {
	for i := range dst {
		n := len(dst) - 1 - i
		dst[i] = 0
		if n/8 < len(v) {
			dst[i] = byte(v[n/8] >> (n % 8 * 8))
		}
	}
}
