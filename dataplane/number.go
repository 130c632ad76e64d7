package dataplane

import "math/bits"

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
