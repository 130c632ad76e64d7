package code

import (
	"slices"

	"github.com/p4lb/p4lb/internal/dataplane/asm"
	"github.com/p4lb/p4lb/internal/dataplane/hash"
	"github.com/p4lb/p4lb/internal/dataplane/vector"
)

// maxPicked is the size in bytes of the largest header that machine code reads and
// writes.
const maxPicked = 256

// Compiles reports whether machine code can read and write headers of a type.
func Compiles(t *vector.HeaderType) bool {
	return t.Chunks != nil && t.Bits <= 8*maxPicked && !slices.ContainsFunc(t.Chunks, func(c vector.Chunk) bool {
		return c.Wide && (c.Parts[0].Width%64 != 0 || c.Parts[0].Signed)
	})
}

// ReadChunk reads a chunk of a header. It may load up to eight bytes after the
// header.
func (k *Writer) ReadChunk(c *vector.Chunk, base int, m asm.Mem) {
	r := Pool[0]
	if c.Wide {
		for i := range c.Bytes / 8 {
			at := m
			at.Disp += int32(c.Bytes - 8 - 8*i)
			k.Load(r, at)
			k.Swap(r, 8)
			k.Store(Word(base+c.Parts[0].Off+i), r)
		}
		return
	}
	switch c.Bytes {
	case 1, 2, 4, 8:
		k.LoadBytes(r, m, c.Bytes)
		k.Swap(r, c.Bytes)
	default:
		k.Load(r, m)
		k.Swap(r, 8)
		k.ShiftConst(asm.Shr, r, byte(c.Shift))
	}
	for i := range c.Parts {
		p, x := &c.Parts[i], r
		if i < len(c.Parts)-1 {
			x = Pool[1]
			k.Move(x, r)
		}
		k.ShiftConst(asm.Shr, x, byte(p.Shift))
		switch {
		case p.Signed:
			k.ShiftConst(asm.Shl, x, byte(64-p.Width))
			k.ShiftConst(asm.Sar, x, byte(64-p.Width))
		case i > 0: // no bits are above the first part
			k.Mask(x, p.Mask)
		}
		k.Store(Word(base+p.Off), x)
	}
}

// WriteChunk writes a chunk of a header to memory.
func (k *Writer) WriteChunk(c *vector.Chunk, base int, m asm.Mem) {
	r := Pool[0]
	if c.Wide {
		for i := range c.Bytes / 8 {
			at := m
			at.Disp += int32(c.Bytes - 8 - 8*i)
			k.Load(r, Word(base+c.Parts[0].Off+i))
			k.Swap(r, 8)
			k.Store(at, r)
		}
		return
	}
	for i := range c.Parts {
		p := &c.Parts[i]
		k.LoadField(Pool[min(i, 1)], base+p.Off, p.Width)
		k.ShiftConst(asm.Shl, Pool[min(i, 1)], byte(p.Shift))
		if i > 0 {
			k.Do(asm.Or, r, Pool[1])
		}
	}
	switch c.Bytes {
	case 1, 2, 4, 8:
		k.Swap(r, c.Bytes)
		k.StoreBytes(m, r, c.Bytes)
		return
	}
	k.ShiftConst(asm.Shl, r, byte(64-8*c.Bytes))
	k.Swap(r, 8)
	for left := c.Bytes; left > 0; {
		n := 4
		for n > left {
			n /= 2
		}
		k.StoreBytes(m, r, n)
		k.ShiftConst(asm.Shr, r, byte(8*n))
		m.Disp += int32(n)
		left -= n
	}
}

// Checksum computes the Internet checksum of a calculation's terms into the first
// register of the pool; see hash.SumTerm. In that sum, a carry out of 64 bits
// counts as one.
func (k *Writer) Checksum(c *hash.Calculation) {
	r, x := Pool[0], Pool[1]
	invalid := k.NewLabel()
	k.Set(r, 0)
	k.MemConst(asm.Cmp, Word(c.TermsValid), 0)
	k.JumpIf(asm.Equal, invalid)
	for i := range c.Terms {
		t := &c.Terms[i]
		switch t.Mask {
		case 0xff:
			k.LoadBytes(x, Word(t.Off), 1)
		case 0xffff:
			k.LoadBytes(x, Word(t.Off), 2)
		case 0xffffffff:
			k.LoadBytes(x, Word(t.Off), 4)
		default:
			k.Load(x, Word(t.Off))
			k.Mask(x, t.Mask)
		}
		k.ShiftConst(asm.Shl, x, byte(t.Shift))
		k.Do(asm.Add, r, x)
		k.DoConst(asm.Adc, r, 0)
	}
	for _, half := range []byte{32, 16, 16, 16} {
		k.Move(x, r)
		k.ShiftConst(asm.Shr, x, half)
		if half == 32 {
			k.Low32(r)
		} else {
			k.DoConst(asm.And, r, 0xffff)
		}
		k.Do(asm.Add, r, x)
	}
	k.Bind(invalid)
	k.Not(r)
	k.DoConst(asm.And, r, 0xffff)
}
