package dataplane

import (
	"encoding/binary"

	"github.com/p4lb/p4lb/dataplane/num"
)

// A chunk is a run of fields of a header that ends on a byte boundary and has
// at most 64 bits, and as many of them as it can: it is read from and written
// to the packet with one load or store. A wider field is a chunk of its own if
// it lies on bytes.
type chunk struct {
	bytes  int
	shift  int // of an 8-byte load, to bring the chunk's end to bit 0
	parts  []part
	wide   bool // parts[0] is a field of more than 64 bits
	single bool // one unsigned part that fills the chunk
}

// A part is one field in a chunk.
type part struct {
	off   int // relative to the header's base
	shift int
	mask  uint64
	width int
	// signed fields are extended when read.
	signed bool
}

// cutChunks cuts a header into chunks. The result is nil for a header that
// has a variable-length field or cannot be cut; such headers are read and
// written bit by bit.
func cutChunks(t *headerType) []chunk {
	if t.varLen >= 0 {
		return nil
	}
	var chunks []chunk
	for i := 0; i < len(t.fields); {
		n, width := longestRun(t.fields[i:])
		if n == 0 {
			return nil
		}
		chunks = append(chunks, newChunk(t.fields[i:i+n], width, width > 64))
		i += n
	}
	return chunks
}

// longestRun is how many of the fields make a chunk, and their bits; 0 if none
// do.
func longestRun(fields []field) (n, width int) {
	if first := fields[0].width; first > 64 && first%8 == 0 {
		return 1, first
	}
	bits := 0
	for i, f := range fields {
		if bits += f.width; bits > 64 {
			break
		}
		if bits%8 == 0 {
			n, width = i+1, bits
		}
	}
	return n, width
}

func newChunk(fields []field, width int, wide bool) chunk {
	c := chunk{bytes: width / 8, shift: 64 - width, wide: wide}
	for _, f := range fields {
		width -= f.width
		p := part{off: f.off, shift: width, mask: ^uint64(0), width: f.width, signed: f.signed}
		if f.width < 64 {
			p.mask = num.Mask64(f.width)
		}
		c.parts = append(c.parts, p)
	}
	c.single = len(c.parts) == 1 && !wide && !c.parts[0].signed
	return c
}

// readChunks fills the header at w from data, which has at least eight bytes
// more than the header.
func readChunks(chunks []chunk, w []uint64, data []byte) {
	at := 0
	for i := range chunks {
		c := &chunks[i]
		if c.wide {
			num.ReadBytes(w[c.parts[0].off:][:num.Words(c.parts[0].width)], data[at:at+c.bytes])
			if c.parts[0].signed {
				num.Extend(w[c.parts[0].off:][:num.Words(c.parts[0].width)], c.parts[0].width)
			}
			at += c.bytes
			continue
		}
		v := binary.BigEndian.Uint64(data[at:]) >> uint(c.shift)
		at += c.bytes
		if c.single {
			w[c.parts[0].off] = v
			continue
		}
		for j := range c.parts {
			p := &c.parts[j]
			x := v >> uint(p.shift) & p.mask
			if p.signed {
				x = num.SignExtend(x, p.width)
			}
			w[p.off] = x
		}
	}
}

// writeChunks writes the header at w to data.
func writeChunks(chunks []chunk, w []uint64, data []byte) {
	at := 0
	for i := range chunks {
		c := &chunks[i]
		if c.wide {
			num.PutBytes(data[at:at+c.bytes], w[c.parts[0].off:][:num.Words(c.parts[0].width)])
			at += c.bytes
			continue
		}
		var v uint64
		for j := range c.parts {
			p := &c.parts[j]
			v |= w[p.off] & p.mask << uint(p.shift)
		}
		putChunk(data[at:at+c.bytes], v)
		at += c.bytes
	}
}

func putChunk(dst []byte, v uint64) {
	switch len(dst) {
	case 1:
		dst[0] = byte(v)
	case 2:
		binary.BigEndian.PutUint16(dst, uint16(v))
	case 4:
		binary.BigEndian.PutUint32(dst, uint32(v))
	case 6:
		binary.BigEndian.PutUint16(dst, uint16(v>>32))
		binary.BigEndian.PutUint32(dst[2:], uint32(v))
	case 8:
		binary.BigEndian.PutUint64(dst, v)
	default:
		for i := len(dst) - 1; i >= 0; i-- {
			dst[i] = byte(v)
			v >>= 8
		}
	}
}
