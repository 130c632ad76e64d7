package num

import "math/bits"

// Numbers of P4Runtime are canonical: at least one byte, without leading zeros,
// and for signed numbers without leading bytes that only repeat the sign.

// BitLen returns the number of bits of a canonical unsigned number, 0 for zero.
func BitLen(b []byte) int {
	return 8*(len(b)-1) + bits.Len8(b[0])
}

// SignedBitLen returns the number of bits of a canonical signed number with its
// sign.
func SignedBitLen(b []byte) int {
	top := b[0]
	if top >= 0x80 {
		top = ^top
	}
	return 8*(len(b)-1) + bits.Len8(top) + 1
}

// IsSignExtension reports whether first only repeats the sign bit of second.
func IsSignExtension(first, second byte) bool {
	return first == 0 && second < 0x80 || first == 0xff && second >= 0x80
}

// Shortest returns the low width bits of a number as a canonical unsigned byte
// string. The words are least significant first.
func Shortest(words []uint64, width int) []byte {
	b := BytesOf(words, width)
	for len(b) > 1 && b[0] == 0 {
		b = b[1:]
	}
	return b
}

// ShortestSigned does the same for an int<width> in two's complement.
func ShortestSigned(words []uint64, width int) []byte {
	b := BytesOf(words, width)
	if spare := 8*len(b) - width; spare > 0 && b[0]>>(7-spare)&1 == 1 {
		b[0] |= 0xff << (8 - spare)
	}
	for len(b) > 1 && IsSignExtension(b[0], b[1]) {
		b = b[1:]
	}
	return b
}

// BytesOf returns the low width bits of a number in the bytes of that width, at
// least one.
func BytesOf(words []uint64, width int) []byte {
	b := make([]byte, max(1, (width+7)/8))
	PutBytes(b, words)
	if spare := 8*len(b) - width; spare > 0 && width > 0 {
		b[0] &= 0xff >> spare
	}
	return b
}

// Uint64 reads a canonical byte string of at most eight bytes.
func Uint64(b []byte) uint64 {
	var v uint64
	for _, x := range b {
		v = v<<8 | uint64(x)
	}
	return v
}

// TrailingZeros reports whether the low n bits of b are zero.
func TrailingZeros(b []byte, n int) bool {
	for i := len(b) - 1; i >= 0 && n > 0; i, n = i-1, n-8 {
		if n >= 8 && b[i] != 0 || n < 8 && b[i]&(1<<n-1) != 0 {
			return false
		}
	}
	return true
}

// Within reports whether value, canonical, has no bit outside mask.
func Within(value, mask []byte) bool {
	if len(value) > len(mask) {
		return false
	}
	mask = mask[len(mask)-len(value):]
	for i, x := range value {
		if x&^mask[i] != 0 {
			return false
		}
	}
	return true
}

// IsZero reports whether b, canonical, is zero.
func IsZero(b []byte) bool { return len(b) == 1 && b[0] == 0 }

// AllOnes reports whether b, canonical, is the largest bit<width>.
func AllOnes(b []byte, width int) bool {
	if BitLen(b) != width {
		return false
	}
	for i, x := range b {
		want := byte(0xff)
		if spare := 8*len(b) - width; i == 0 && spare > 0 {
			want >>= spare
		}
		if x != want {
			return false
		}
	}
	return true
}
