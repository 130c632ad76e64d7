package hash

import (
	"hash/crc32"
	"math/bits"
	"sync"

	"github.com/p4lb/p4lb/internal/bmv2"
	"github.com/p4lb/p4lb/internal/dataplane/num"
)

// A CRC describes a cyclic redundancy check like BMv2's custom CRCs. Width is 1
// to 64.
type CRC struct {
	Width                 int
	Poly, Init, XorOut    uint64
	ReflectIn, ReflectOut bool
}

// A Table is a CRC with a table of the remainders of all bytes. The remainders are
// in the topmost bits for any width.
type Table struct {
	CRC
	table [256]uint64
}

// NewCRC returns the table of a CRC.
func NewCRC(c CRC) *Table {
	t := &Table{CRC: c}
	poly := c.Poly << (64 - c.Width)
	for i := range t.table {
		r := uint64(i) << 56
		for range 8 {
			r = r<<1 ^ poly*(r>>63)
		}
		t.table[i] = r
	}
	return t
}

// Sum returns the CRC of data.
func (t *Table) Sum(d []byte) uint64 {
	r := t.Init << (64 - t.Width)
	for _, c := range d {
		if t.ReflectIn {
			c = bits.Reverse8(c)
		}
		r = t.table[c^byte(r>>56)] ^ r<<8
	}
	if t.ReflectOut {
		r = bits.Reverse64(r)
	} else {
		r >>= 64 - t.Width
	}
	return (r ^ t.XorOut) & num.Mask64(t.Width)
}

// crc16Table holds the remainders of CRC-16/ARC for reflected bytes followed by
// k zero bytes, to process eight bytes at once.
var crc16Table = makeCRC16Table()

func makeCRC16Table() (t [8][256]uint16) {
	for i := range t[0] {
		r := uint16(i)
		for range 8 {
			r = r>>1 ^ 0xa001*(r&1)
		}
		t[0][i] = r
	}
	for k := 1; k < len(t); k++ {
		for i := range t[k] {
			prev := t[k-1][i]
			t[k][i] = prev>>8 ^ t[0][byte(prev)]
		}
	}
	return t
}

// crc16 returns CRC-16/ARC: reflected 0x8005, initial value 0.
func crc16(d []byte) uint64 {
	t := &crc16Table
	var r uint16
	for ; len(d) >= 8; d = d[8:] {
		r = t[7][d[0]^byte(r)] ^ t[6][d[1]^byte(r>>8)] ^ t[5][d[2]] ^ t[4][d[3]] ^
			t[3][d[4]] ^ t[2][d[5]] ^ t[1][d[6]] ^ t[0][d[7]]
	}
	for _, c := range d {
		r = r>>8 ^ t[0][byte(r)^c]
	}
	return uint64(r)
}

// crcOf returns the CRC of a calculation, as the chip computes it.
func crcOf(c *bmv2.CRC) *Table {
	number := func(hex string) uint64 {
		v, err := bmv2.ParseHex(hex)
		if err != nil {
			return 0 // Validate has rejected such documents
		}
		return num.LowOfBig(v)
	}
	return Reflected(CRC{Width: c.Width, Poly: number(c.Poly), Init: number(c.Init), XorOut: number(c.Xor), ReflectIn: c.Reversed})
}

// A Sliced is a reflected CRC of at most 32 bits: Table[k] holds the remainders
// of a byte followed by k more bytes.
type Sliced struct {
	Table     [8][256]uint32
	Init, Xor uint32
}

// SlicedCRCs maps algorithm names to the CRCs that machine code computes, eight
// bytes at a time.
var SlicedCRCs = sync.OnceValue(func() map[string]*Sliced {
	return map[string]*Sliced{
		"crc16": newSlicedCRC(0xa001, 0),
		"crc32": newSlicedCRC(crc32.IEEE, 0xffffffff),
	}
})

func newSlicedCRC(poly, initAndXor uint32) *Sliced {
	c := &Sliced{Init: initAndXor, Xor: initAndXor}
	for i := range c.Table[0] {
		r := uint32(i)
		for range 8 {
			r = r>>1 ^ poly*(r&1)
		}
		c.Table[0][i] = r
	}
	for k := 1; k < len(c.Table); k++ {
		for i, before := range c.Table[k-1] {
			c.Table[k][i] = before>>8 ^ c.Table[0][byte(before)]
		}
	}
	return c
}
