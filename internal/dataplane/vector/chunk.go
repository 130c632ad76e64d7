package vector

import (
	"encoding/binary"

	"github.com/p4lb/p4lb/internal/dataplane/num"
)

// A Chunk is the longest run of header fields that ends on a byte boundary and has
// at most 64 bits. One load or store transfers it. A byte-aligned wider field is a
// separate chunk.
type Chunk struct {
	Bytes  int
	Shift  int // shift after an 8-byte load that moves the chunk's end to bit 0
	Parts  []Part
	Wide   bool // parts[0] is a field of more than 64 bits
	single bool // one unsigned part that fills the chunk
}

// A Part is one field in a chunk.
type Part struct {
	Off   int // relative to the header's base
	Shift int
	Mask  uint64
	Width int
	// Signed fields are sign-extended when read.
	Signed bool
}

// cutChunks splits a header into chunks. It returns nil for a header with a
// variable-length field or without such a split; these headers are read and
// written bit by bit.
func cutChunks(t *HeaderType) []Chunk {
	if t.VarLen >= 0 {
		return nil
	}
	var chunks []Chunk
	for i := 0; i < len(t.Fields); {
		n, width := longestRun(t.Fields[i:])
		if n == 0 {
			return nil
		}
		chunks = append(chunks, newChunk(t.Fields[i:i+n], width, width > 64))
		i += n
	}
	return chunks
}

// longestRun returns the number of fields in the next chunk and their bits; 0
// if no run fits.
func longestRun(fields []Field) (n, width int) {
	if first := fields[0].Width; first > 64 && first%8 == 0 {
		return 1, first
	}
	bits := 0
	for i, f := range fields {
		if bits += f.Width; bits > 64 {
			break
		}
		if bits%8 == 0 {
			n, width = i+1, bits
		}
	}
	return n, width
}

func newChunk(fields []Field, width int, wide bool) Chunk {
	c := Chunk{Bytes: width / 8, Shift: 64 - width, Wide: wide}
	for _, f := range fields {
		width -= f.Width
		p := Part{Off: f.Off, Shift: width, Mask: ^uint64(0), Width: f.Width, Signed: f.Signed}
		if f.Width < 64 {
			p.Mask = num.Mask64(f.Width)
		}
		c.Parts = append(c.Parts, p)
	}
	c.single = len(c.Parts) == 1 && !wide && !c.Parts[0].Signed
	return c
}

// ReadChunks fills the header at w from data, which must have eight bytes more
// than the header.
func ReadChunks(chunks []Chunk, w []uint64, data []byte) {
	at := 0
	for i := range chunks {
		c := &chunks[i]
		if c.Wide {
			num.ReadBytes(w[c.Parts[0].Off:][:num.Words(c.Parts[0].Width)], data[at:at+c.Bytes])
			if c.Parts[0].Signed {
				num.Extend(w[c.Parts[0].Off:][:num.Words(c.Parts[0].Width)], c.Parts[0].Width)
			}
			at += c.Bytes
			continue
		}
		v := binary.BigEndian.Uint64(data[at:]) >> uint(c.Shift)
		at += c.Bytes
		if c.single {
			w[c.Parts[0].Off] = v
			continue
		}
		for j := range c.Parts {
			p := &c.Parts[j]
			x := v >> uint(p.Shift) & p.Mask
			if p.Signed {
				x = num.SignExtend(x, p.Width)
			}
			w[p.Off] = x
		}
	}
}

// WriteChunks writes the header at w to data.
func WriteChunks(chunks []Chunk, w []uint64, data []byte) {
	at := 0
	for i := range chunks {
		c := &chunks[i]
		if c.Wide {
			num.PutBytes(data[at:at+c.Bytes], w[c.Parts[0].Off:][:num.Words(c.Parts[0].Width)])
			at += c.Bytes
			continue
		}
		var v uint64
		for j := range c.Parts {
			p := &c.Parts[j]
			v |= w[p.Off] & p.Mask << uint(p.Shift)
		}
		putChunk(data[at:at+c.Bytes], v)
		at += c.Bytes
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
