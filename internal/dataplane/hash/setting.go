package hash

import (
	"fmt"
	"math/bits"

	"github.com/p4lb/p4lb/internal/bmv2"
	"github.com/p4lb/p4lb/internal/dataplane/num"
)

// A Setting replaces the function of a hash of Tofino; the control plane sets
// it.
type Setting struct {
	// Slices are the parts of the input to hash, in order.
	Slices   []Slice
	Function Function
	// Rotate is the number of places by which the used bits rotate to the left.
	Rotate int
	// Seed, if not nil, replaces the function's value for an input of zeros.
	Seed *uint64
}

// A Slice is Width bits of the input. At is the number of its first bit, counted
// from the front. With is the start of a slice with which it may be exchanged.
type Slice struct {
	At, Width int
	With      int // -1: with none
}

// A Function is the algorithm of a hash with its number of bits.
type Function struct {
	Width  int
	CRC    *Table // nil: exclusive or of words of Width bits
	Copy   bool   // the hash is the last bits of the input
	Extend bool   // the bits repeat if the program uses more
}

// functionOf returns the function of a calculation for Tofino.
func functionOf(c *bmv2.Calculation) (Function, error) {
	f := Function{Extend: c.Hash.Extend}
	switch c.Algo {
	case bmv2.AlgoCRC:
		f.CRC = crcOf(c.CRC)
	case "crc16", "crc32":
		h, err := New(c.Algo + "_custom") // the algorithm with any parameters
		if err != nil {
			return f, err
		}
		f.CRC = h.(*Table)
	case "xor8", "xor16", "xor32":
		f.Width = map[string]int{"xor8": 8, "xor16": 16, "xor32": 32}[c.Algo]
	default:
		return f, fmt.Errorf("algorithm %s: Tofino has no such hash", c.Algo)
	}
	if f.CRC != nil {
		f.Width = f.CRC.Width
	}
	return f, nil
}

// sum computes the function of bits, one per byte, first bit first. Like the chip,
// it pads with zeros: the front of a CRC's input to whole bytes, and the last word
// of a sum at its end.
func (f *Function) sum(in []byte) uint64 {
	switch {
	case f.CRC != nil:
		w := num.BitWriter{Buf: make([]byte, 0, len(in)/8+9)}
		w.Put(0, -len(in)&7)
		for _, b := range in {
			w.Put(uint64(b), 1)
		}
		return f.CRC.Sum(w.Finish())
	case f.Copy:
		in = in[max(0, len(in)-f.Width):]
		var v uint64
		for _, b := range in {
			v = v<<1 | uint64(b)
		}
		return v
	}
	var v uint64
	for i, b := range in {
		v ^= uint64(b) << (f.Width - 1 - i%f.Width)
	}
	return v
}

// extended repeats the bits of a value up to a width if the function extends.
func (f *Function) extended(v uint64, width int) uint64 {
	for n := f.Width; f.Extend && n < width; n += f.Width {
		v |= v & num.Mask64(f.Width) << n
	}
	return v & num.Mask64(width)
}

// A Matrix is the chip's form of a hash: a column for each input bit, and the
// seed. The hash is the exclusive or of the seed and the columns of the bits
// that are set.
type Matrix struct {
	columns []column
	seed    uint64
}

// A column is the contribution of an input bit, numbered from the front.
type column struct {
	bit int
	add uint64
}

// Matrix computes the matrix of a setting as Tofino's drivers do, for the bits of
// the hash that the program uses. If two slices may be exchanged, both get the bits
// of both columns. The drivers intend the exclusive or of the columns, but never
// clear bits.
func (s *Setting) Matrix(h *bmv2.Hash) *Matrix {
	var in []byte
	for _, x := range s.Slices {
		in = append(in, make([]byte, x.Width)...)
	}
	m, zeros, of := &Matrix{}, uint64(0), map[int]uint64{}
	if len(in) > 0 {
		zeros = s.Function.extended(s.Function.sum(in), h.Width)
	}
	i := 0
	for _, x := range s.Slices {
		for k := range x.Width {
			in[i] = 1
			of[x.At+k] = s.Function.extended(s.Function.sum(in), h.Width) ^ zeros
			in[i] = 0
			i++
		}
	}
	for _, x := range s.Slices {
		for k := range x.Width {
			add := of[x.At+k]
			if x.With >= 0 {
				add |= of[x.With+k]
			}
			m.columns = append(m.columns, column{x.At + k, s.turned(add, h)})
		}
	}
	if s.Seed != nil {
		zeros = *s.Seed
	}
	m.seed = s.turned(zeros, h)
	return m
}

// turned returns a value with the used bits rotated and the other bits cleared.
func (s *Setting) turned(v uint64, h *bmv2.Hash) uint64 {
	n := h.High - h.Low + 1
	v = v >> h.Low & num.Mask64(n)
	if k := s.Rotate % n; k > 0 {
		v = (v<<k | v>>(n-k)) & num.Mask64(n)
	}
	return v << h.Low
}

// Sum returns the hash of an input whose bits begin at the front of raw.
func (m *Matrix) Sum(raw []byte) uint64 {
	v := m.seed
	for _, c := range m.columns {
		v ^= c.add & -uint64(raw[c.bit/8]>>(7-c.bit%8)&1)
	}
	return v
}

// Seed returns the hash of an input of zeros.
func (m *Matrix) Seed() uint64 { return m.seed }

// Reflected returns a CRC as the chip computes it: with ReflectIn, it also reflects
// the result, after adding XorOut.
func Reflected(c CRC) *Table {
	if c.ReflectIn {
		c.ReflectOut = true
		c.XorOut = bits.Reverse64(c.XorOut) >> (64 - c.Width)
	}
	return NewCRC(c)
}

// Configurable returns, for a hash that the control plane may change, the
// program's own function and the number of input bits.
func (k *Calculation) Configurable() (Function, int) { return k.own, k.bits }
