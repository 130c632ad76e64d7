// Package num computes with numbers of any width: in words, in big-endian
// bytes, and bit by bit.
package num

import "math/bits"

// Numbers above 64 bits are two's complement limbs, least significant first.
// BMv2 computes with unbounded integers. The widths in an expression are known
// at compile time, so the functions get enough limbs to keep all bits of the
// result. All functions take slices of equal length and wrap around.

// Add adds.
func Add(dst, a, b []uint64) {
	var carry uint64
	for i := range dst {
		dst[i], carry = bits.Add64(a[i], b[i], carry)
	}
}

// Sub subtracts.
func Sub(dst, a, b []uint64) {
	var borrow uint64
	for i := range dst {
		dst[i], borrow = bits.Sub64(a[i], b[i], borrow)
	}
}

// Mul multiplies; dst must not overlap a or b.
func Mul(dst, a, b []uint64) {
	clear(dst)
	for i := range a {
		var carry uint64
		for j := 0; i+j < len(dst); j++ {
			hi, lo := bits.Mul64(a[i], b[j])
			var c uint64
			lo, c = bits.Add64(lo, carry, 0)
			hi += c
			dst[i+j], c = bits.Add64(dst[i+j], lo, 0)
			carry = hi + c
		}
	}
}

// Shl shifts left by n bits; dst may be a.
func Shl(dst, a []uint64, n uint64) {
	limbs, shift := n/64, n%64
	for i := len(dst) - 1; i >= 0; i-- {
		var v uint64
		if j := uint64(i); j >= limbs {
			v = a[j-limbs] << shift
			if shift != 0 && j > limbs {
				v |= a[j-limbs-1] >> (64 - shift)
			}
		}
		dst[i] = v
	}
}

// Shr shifts right by n bits, filling with the sign; dst may be a.
func Shr(dst, a []uint64, n uint64) {
	fill := Sign(a)
	limbs, shift := n/64, n%64
	at := func(i uint64) uint64 {
		if i >= uint64(len(a)) || i < limbs {
			return fill
		}
		return a[i]
	}
	for i := range dst {
		j := uint64(i) + limbs
		if n >= uint64(len(a))*64 {
			dst[i] = fill
			continue
		}
		v := at(j) >> shift
		if shift != 0 {
			v |= at(j+1) << (64 - shift)
		}
		dst[i] = v
	}
}

// Sign returns all ones if a is negative, else 0.
func Sign(a []uint64) uint64 { return uint64(int64(a[len(a)-1]) >> 63) }

// Cmp compares as signed numbers.
func Cmp(a, b []uint64) int {
	last := len(a) - 1
	if x, y := int64(a[last]), int64(b[last]); x != y {
		if x < y {
			return -1
		}
		return 1
	}
	for i := last - 1; i >= 0; i-- {
		switch {
		case a[i] < b[i]:
			return -1
		case a[i] > b[i]:
			return 1
		}
	}
	return 0
}

// Mask keeps the low width bits of a.
func Mask(a []uint64, width int) {
	limb := width / 64
	if limb >= len(a) {
		return
	}
	a[limb] &= 1<<(width%64) - 1
	clear(a[limb+1:])
}

// Extend makes bit width-1 of a its sign.
func Extend(a []uint64, width int) {
	limb, bit := (width-1)/64, uint(63-(width-1)%64)
	if limb >= len(a) {
		return
	}
	a[limb] = uint64(int64(a[limb]<<bit) >> bit)
	for i, sign := limb+1, uint64(int64(a[limb])>>63); i < len(a); i++ {
		a[i] = sign
	}
}

// Copy copies src into dst and extends or truncates the sign.
func Copy(dst, src []uint64) {
	n := copy(dst, src)
	for fill := Sign(src); n < len(dst); n++ {
		dst[n] = fill
	}
}

// CopyUnsigned copies src into dst and fills with zeros.
func CopyUnsigned(dst, src []uint64) { clear(dst[copy(dst, src):]) }

// Words returns the number of words for width bits.
func Words(width int) int { return (width + 63) / 64 }

// Bytes returns the number of bytes for width bits.
func Bytes(width int) int { return (width + 7) / 8 }

// Mask64 returns a number with the low width bits set; width is at most 64.
func Mask64(width int) uint64 { return 1<<width - 1 }

// SignExtend makes bit width-1 the sign; width is at most 64.
func SignExtend(v uint64, width int) uint64 {
	shift := uint(64 - width)
	return uint64(int64(v<<shift) >> shift)
}
