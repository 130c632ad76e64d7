package dataplane

import (
	"encoding/binary"
	"math/bits"
)

// park compresses a packet.
func (s *Switch) park(p *Packet) {
	p.parked = appendWords(p.parked[:0], p.st.W)
	p.parked = append(p.parked, p.st.Buf[p.st.Head:p.st.End]...)
	p.st.End -= p.st.Head
	s.strip(p)
}

// appendWords compresses words. For each group of 32 words, it writes eight bytes
// that mark the non-zero words and the words above 32 bits. The non-zero words
// follow.
func appendWords(b []byte, w []uint64) []byte {
	for len(w) > 0 {
		block := w[:min(32, len(w))]
		w = w[len(block):]
		at := len(b)
		b = append(b, 0, 0, 0, 0, 0, 0, 0, 0)
		var some, long uint32
		for i, v := range block {
			switch {
			case v == 0:
			case v>>32 == 0:
				some |= 1 << i
				b = binary.LittleEndian.AppendUint32(b, uint32(v))
			default:
				some |= 1 << i
				long |= 1 << i
				b = binary.LittleEndian.AppendUint64(b, v)
			}
		}
		binary.LittleEndian.PutUint32(b[at:], some)
		binary.LittleEndian.PutUint32(b[at+4:], long)
	}
	return b
}

// readWords reads words written by appendWords and returns the rest of b.
func readWords(w []uint64, b []byte) []byte {
	clear(w)
	for len(w) > 0 {
		block := w[:min(32, len(w))]
		w = w[len(block):]
		some, long := binary.LittleEndian.Uint32(b), binary.LittleEndian.Uint32(b[4:])
		b = b[8:]
		for some != 0 {
			i := bits.TrailingZeros32(some)
			some &= some - 1
			if long>>i&1 == 0 {
				block[i] = uint64(binary.LittleEndian.Uint32(b))
				b = b[4:]
			} else {
				block[i] = binary.LittleEndian.Uint64(b)
				b = b[8:]
			}
		}
	}
	return b
}
