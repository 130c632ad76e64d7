package dataplane

import (
	"encoding/binary"
	"fmt"
	"math/bits"

	"github.com/p4lb/p4lb/bmv2"
)

// A CRC describes a cyclic redundancy check as BMv2's custom ones are
// configured. Width is 8, 16, 32 or 64.
type CRC struct {
	Width                 int
	Poly, Init, XorOut    uint64
	ReflectIn, ReflectOut bool
}

// crcTable is a CRC with the remainders of all bytes.
type crcTable struct {
	CRC
	table [256]uint64
}

func newCRC(c CRC) *crcTable {
	t := &crcTable{CRC: c}
	top := uint64(1) << (c.Width - 1)
	for i := range t.table {
		r := uint64(i) << (c.Width - 8)
		for range 8 {
			if r&top != 0 {
				r = r<<1 ^ c.Poly
			} else {
				r <<= 1
			}
		}
		t.table[i] = r & mask64(c.Width)
	}
	return t
}

func (t *crcTable) sum(d []byte) uint64 {
	r, m, shift := t.Init, mask64(t.Width), uint(t.Width-8)
	for _, c := range d {
		if t.ReflectIn {
			c = bits.Reverse8(c)
		}
		r = t.table[c^byte(r>>shift)] ^ r<<8&m
	}
	if t.ReflectOut {
		r = bits.Reverse64(r) >> (64 - t.Width)
	}
	return (r ^ t.XorOut) & m
}

// crc16Table has the remainders of CRC-16/ARC for reflected bytes, and after
// k more zero bytes, so that eight bytes go at once.
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

// crc16 is CRC-16/ARC: reflected 0x8005 without preset.
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

// SetCRC changes the parameters of a calculation with one of the algorithms
// crc8_custom, crc16_custom, crc32_custom and crc64_custom.
func (s *Switch) SetCRC(calculation string, c CRC) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.calcs[calculation]
	if k == nil {
		return fmt.Errorf("unknown calculation %q", calculation)
	}
	t, ok := k.algo.(*crcTable)
	if !ok || t.Width != c.Width || k.algoID == "crcCCITT" {
		return fmt.Errorf("calculation %s is no custom CRC of %d bits", calculation, c.Width)
	}
	k.algo = newCRC(c)
	return nil
}

// SetToeplitzKey changes the key of a calculation with the algorithm toeplitz: 4
// bytes or a multiple.
func (s *Switch) SetToeplitzKey(calculation string, key []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.calcs[calculation]
	if k == nil {
		return fmt.Errorf("unknown calculation %q", calculation)
	}
	t, ok := k.algo.(*toeplitz)
	switch {
	case !ok:
		return fmt.Errorf("calculation %s is no Toeplitz hash", calculation)
	case len(key) == 0 || len(key)%4 != 0:
		return fmt.Errorf("calculation %s: a key of %d bytes, want a multiple of 4", calculation, len(key))
	}
	t.key = nil
	for ; len(key) > 0; key = key[4:] {
		t.key = append(t.key, binary.BigEndian.Uint32(key))
	}
	return nil
}

// crcOf makes the CRC that a calculation brings along.
func crcOf(c *bmv2.CRC) *crcTable {
	number := func(hex string) uint64 {
		v, err := bmv2.ParseHex(hex)
		if err != nil {
			return 0 // not of a document that is valid
		}
		return lowBits(v)
	}
	return newCRC(CRC{
		Width: c.Width, Poly: number(c.Poly), Init: number(c.Init), XorOut: number(c.Xor),
		ReflectIn: c.Reversed, ReflectOut: c.Reversed,
	})
}
