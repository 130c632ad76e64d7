package dataplane

import (
	"encoding/binary"
	"slices"
)

// A bitWriter appends fields of any width to a buffer, most significant bit
// first. It is what headers that do not fall into bytes, hash inputs and
// variable-length fields are written with. It writes up to eight bytes beyond
// what it appends if the buffer has them to spare.
type bitWriter struct {
	buf []byte
	acc uint64 // the last n bits not yet in buf, n < 8
	n   int
}

// maxRun is the most bits that a bitWriter takes at once.
const maxRun = 56

// put appends the low width bits of v, which has no others; width is at most
// 56.
func (b *bitWriter) put(v uint64, width int) {
	b.acc = b.acc<<uint(width) | v
	b.n += width
	whole, at := b.n/8, len(b.buf)
	b.n %= 8
	if at+8 > cap(b.buf) {
		b.buf = slices.Grow(b.buf, 64)
	}
	binary.BigEndian.PutUint64(b.buf[at:at+8], b.acc>>uint(b.n)<<uint(64-8*whole))
	b.buf = b.buf[:at+whole]
}

// putWords appends the low width bits of v, which are least significant first.
func (b *bitWriter) putWords(v []uint64, width int) {
	for width > 0 {
		n := width % 32
		if n == 0 {
			n = 32
		}
		width -= n
		b.put(v[width/64]>>uint(width%64)&mask64(n), n)
	}
}

// finish pads the last byte with zeros and returns the buffer.
func (b *bitWriter) finish() []byte {
	if b.n > 0 {
		b.put(0, 8-b.n)
	}
	return b.buf
}

// readBits reads width bits of data from bit at on into words; bits beyond
// the end are zero.
func readBits(dst []uint64, data []byte, at, width int) {
	clear(dst)
	for width > 0 {
		n := min(8-at%8, width)
		var c uint64
		if at/8 < len(data) {
			c = uint64(data[at/8]) >> uint(8-at%8-n) & mask64(n)
		}
		at += n
		width -= n
		// The chunk c belongs at bit position width; it may straddle a word.
		dst[width/64] |= c << uint(width%64)
		if width%64+n > 64 {
			dst[width/64+1] |= c >> uint(64-width%64)
		}
	}
}
