package p4rt

import (
	"math/bits"

	"google.golang.org/grpc/codes"
)

// P4Runtime carries integers as big-endian byte strings. A receiver takes any
// length as long as the number fits its type; a sender writes the shortest
// string. Zero is one zero byte, never the empty string.

// unsigned checks that b encodes a bit<width> and returns its canonical form,
// which shares b's memory.
func unsigned(b []byte, width int) ([]byte, error) {
	if len(b) == 0 {
		return nil, failf(codes.OutOfRange, "an empty byte string is no number: zero is \\x00")
	}
	for len(b) > 1 && b[0] == 0 {
		b = b[1:]
	}
	if n := bitLen(b); n > width {
		return nil, failf(codes.OutOfRange, "0x%x takes %d bits, more than the %d of the type", b, n, width)
	}
	return b, nil
}

// canonize replaces an unsigned byte string in a message by its canonical form.
// It does not touch one that is canonical already: messages that are stored
// are, and readers share them.
func canonize(field *[]byte, width int) ([]byte, error) {
	b, err := unsigned(*field, width)
	if err == nil && len(b) != len(*field) {
		*field = b
	}
	return b, err
}

// signed checks that b encodes an int<width> in two's complement and returns
// its canonical form, which shares b's memory.
func signed(b []byte, width int) ([]byte, error) {
	if len(b) == 0 {
		return nil, failf(codes.OutOfRange, "an empty byte string is no number: zero is \\x00")
	}
	for len(b) > 1 && isSignExtension(b[0], b[1]) {
		b = b[1:]
	}
	if n := signedBitLen(b); n > width {
		return nil, failf(codes.OutOfRange, "0x%x takes %d bits, more than the %d of the signed type", b, n, width)
	}
	return b, nil
}

// isSignExtension reports whether first only repeats the sign bit of second.
func isSignExtension(first, second byte) bool {
	return first == 0 && second < 0x80 || first == 0xff && second >= 0x80
}

// bitLen is the number of bits of a canonical unsigned number, 0 for zero.
func bitLen(b []byte) int {
	return 8*(len(b)-1) + bits.Len8(b[0])
}

// signedBitLen is the number of bits of a canonical signed number, its sign
// included.
func signedBitLen(b []byte) int {
	top := b[0]
	if top >= 0x80 {
		top = ^top
	}
	return 8*(len(b)-1) + bits.Len8(top) + 1
}

// shortest writes the low width bits of a number as a canonical unsigned byte
// string. The number is given in words, least significant first.
func shortest(words []uint64, width int) []byte {
	b := wordsToBytes(words, width)
	for len(b) > 1 && b[0] == 0 {
		b = b[1:]
	}
	return b
}

// shortestSigned is shortest for an int<width> in two's complement.
func shortestSigned(words []uint64, width int) []byte {
	b := wordsToBytes(words, width)
	if spare := 8*len(b) - width; spare > 0 && b[0]>>(7-spare)&1 == 1 {
		b[0] |= 0xff << (8 - spare)
	}
	for len(b) > 1 && isSignExtension(b[0], b[1]) {
		b = b[1:]
	}
	return b
}

// wordsToBytes writes the low width bits of a number in as many bytes as they
// take, at least one.
func wordsToBytes(words []uint64, width int) []byte {
	b := make([]byte, max(1, (width+7)/8))
	for i := range b {
		if n := len(b) - 1 - i; n/8 < len(words) {
			b[i] = byte(words[n/8] >> (n % 8 * 8))
		}
	}
	if spare := 8*len(b) - width; spare > 0 && width > 0 {
		b[0] &= 0xff >> spare
	}
	return b
}

// toWords reads an unsigned byte string into n words, least significant first.
func toWords(b []byte, n int) []uint64 {
	words := make([]uint64, n)
	for i, x := range b {
		if at := len(b) - 1 - i; at/8 < n {
			words[at/8] |= uint64(x) << (at % 8 * 8)
		}
	}
	return words
}

// toUint64 reads a canonical byte string of at most eight bytes.
func toUint64(b []byte) uint64 {
	var v uint64
	for _, x := range b {
		v = v<<8 | uint64(x)
	}
	return v
}

// trailingZeros reports whether the low n bits of b are zero.
func trailingZeros(b []byte, n int) bool {
	for i := len(b) - 1; i >= 0 && n > 0; i, n = i-1, n-8 {
		if n >= 8 && b[i] != 0 || n < 8 && b[i]&(1<<n-1) != 0 {
			return false
		}
	}
	return true
}

// within reports whether value, canonical, has no bit outside mask.
func within(value, mask []byte) bool {
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

// isZero reports whether b, canonical, is zero.
func isZero(b []byte) bool { return len(b) == 1 && b[0] == 0 }

// allOnes reports whether b, canonical, is the largest bit<width>.
func allOnes(b []byte, width int) bool {
	if bitLen(b) != width {
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
