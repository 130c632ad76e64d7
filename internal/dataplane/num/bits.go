package num

import (
	"encoding/binary"
	"slices"
)

// A BitWriter appends fields of any width to a buffer, most significant bit
// first: headers that are not byte-aligned, hash inputs and variable-length
// fields. It may write up to eight bytes beyond its end if the buffer has room.
type BitWriter struct {
	Buf []byte
	acc uint64 // the last n bits not yet in buf, n < 8
	n   int
}

// MaxPut is the largest number of bits of one Put.
const MaxPut = 56

// Put appends the low width bits of v, whose other bits must be zero; width is
// at most 56.
func (b *BitWriter) Put(v uint64, width int) {
	b.acc = b.acc<<uint(width) | v
	b.n += width
	whole, at := b.n/8, len(b.Buf)
	b.n %= 8
	if at+8 > cap(b.Buf) {
		b.Buf = slices.Grow(b.Buf, 64)
	}
	binary.BigEndian.PutUint64(b.Buf[at:at+8], b.acc>>uint(b.n)<<uint(64-8*whole))
	b.Buf = b.Buf[:at+whole]
}

// PutWords appends the low width bits of v, least significant word first.
func (b *BitWriter) PutWords(v []uint64, width int) {
	for width > 0 {
		n := width % 32
		if n == 0 {
			n = 32
		}
		width -= n
		b.Put(v[width/64]>>uint(width%64)&Mask64(n), n)
	}
}

// Finish pads the last byte with zeros and returns the buffer.
func (b *BitWriter) Finish() []byte {
	if b.n > 0 {
		b.Put(0, 8-b.n)
	}
	return b.Buf
}

// ReadBits reads width bits of data, starting at bit at, into words. Bits
// beyond the end are zero.
func ReadBits(dst []uint64, data []byte, at, width int) {
	clear(dst)
	for width > 0 {
		n := min(8-at%8, width)
		var c uint64
		if at/8 < len(data) {
			c = uint64(data[at/8]) >> uint(8-at%8-n) & Mask64(n)
		}
		at += n
		width -= n
		// The chunk c starts at bit position width and may cross a word boundary.
		dst[width/64] |= c << uint(width%64)
		if width%64+n > 64 {
			dst[width/64+1] |= c >> uint(64-width%64)
		}
	}
}
