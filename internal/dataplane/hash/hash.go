// Package hash holds the hash algorithms, checksums and CRCs of programs for
// BMv2 and Tofino, and the calculations that apply them to fields.
package hash

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math/bits"

	"github.com/p4lb/p4lb/internal/dataplane/num"
)

// A Hasher is one of BMv2's hash algorithms.
type Hasher interface {
	Sum(data []byte) uint64
}

// Func is a hasher without state.
type Func func(data []byte) uint64

// Sum calls f.
func (f Func) Sum(data []byte) uint64 { return f(data) }

// New returns the hasher called algo. Like BMv2, it refuses the algorithm random.
func New(algo string) (Hasher, error) {
	switch algo {
	case "crc32":
		return Func(func(d []byte) uint64 { return uint64(crc32.ChecksumIEEE(d)) }), nil
	case "crc16":
		return Func(crc16), nil
	case "crcCCITT":
		return NewCRC(CRC{Width: 16, Poly: 0x1021, Init: 0xffff}), nil
	case "crc8_custom":
		return NewCRC(CRC{Width: 8, Poly: 0x07}), nil
	case "crc16_custom":
		return NewCRC(CRC{Width: 16, Poly: 0x8005, ReflectIn: true, ReflectOut: true}), nil
	case "crc32_custom":
		return NewCRC(CRC{Width: 32, Poly: 0x04c11db7, Init: 0xffffffff, XorOut: 0xffffffff, ReflectIn: true, ReflectOut: true}), nil
	case "crc64_custom":
		return NewCRC(CRC{Width: 64, Poly: 0x1b, ReflectIn: true, ReflectOut: true}), nil
	case "csum16", "cksum16":
		return Func(func(d []byte) uint64 { return uint64(Internet(d)) }), nil
	case "xor8": // algorithms of Tofino
		return Func(func(d []byte) uint64 { return xorSum(d, 1) }), nil
	case "xor16":
		return Func(func(d []byte) uint64 { return xorSum(d, 2) }), nil
	case "xor32":
		return Func(func(d []byte) uint64 { return xorSum(d, 4) }), nil
	case "identity":
		return Func(identityHash), nil
	case "xxh64", "bmv2_hash":
		return Func(xxh64), nil
	case "hash_ex":
		return Func(hashEx), nil
	case "round_robin":
		return new(roundRobin), nil
	case "round_robin_consistent":
		return &roundRobinConsistent{seen: map[string]uint64{}}, nil
	case "toeplitz":
		return &Toeplitz{Key: []uint32{0}}, nil
	}
	return nil, fmt.Errorf("unknown hash algorithm %q", algo)
}

// Internet returns the ones' complement sum (RFC 1071).
func Internet(d []byte) uint16 {
	var sum, carry uint64
	for len(d) >= 8 {
		sum, carry = bits.Add64(sum, binary.BigEndian.Uint64(d), 0)
		sum += carry
		d = d[8:]
	}
	var last [8]byte
	copy(last[:], d)
	sum, carry = bits.Add64(sum, binary.BigEndian.Uint64(last[:]), 0)
	sum += carry
	sum = sum>>32 + sum&0xffffffff
	sum = sum>>16 + sum&0xffff
	sum = sum>>16 + sum&0xffff
	sum = sum>>16 + sum&0xffff
	return ^uint16(sum)
}

// xorSum returns the exclusive or of big-endian words of n bytes; the last word
// is padded with zeros on the right.
func xorSum(d []byte, n int) uint64 {
	var x uint64
	for i, c := range d {
		x ^= uint64(c) << ((n - 1 - i%n) * 8)
	}
	return x
}

// identityHash returns the first eight bytes as a number.
func identityHash(d []byte) uint64 {
	return num.Uint64(d[:min(len(d), 8)])
}

// hashEx returns the FNV-like hash of simple_switch, with signed bytes.
func hashEx(d []byte) uint64 {
	h := uint32(2166136261)
	for _, c := range d {
		h = (h ^ uint32(int32(int8(c)))) * 16777619
	}
	h += h << 13
	h ^= h >> 7
	h += h << 3
	h ^= h >> 17
	h += h << 5
	return uint64(h)
}

// roundRobin counts its calls and ignores the data.
type roundRobin struct{ n uint64 }

// Sum returns the number of earlier calls.
func (r *roundRobin) Sum([]byte) uint64 {
	r.n++
	return r.n - 1
}

// roundRobinConsistent numbers distinct inputs in the order of their first
// appearance.
type roundRobinConsistent struct{ seen map[string]uint64 }

// Sum returns the number of an input.
func (r *roundRobinConsistent) Sum(d []byte) uint64 {
	n, ok := r.seen[string(d)]
	if !ok {
		n = uint64(len(r.seen))
		r.seen[string(d)] = n
	}
	return n
}

// Toeplitz is the hash of receive-side scaling.
type Toeplitz struct{ Key []uint32 }

// Sum returns the hash of data.
func (t *Toeplitz) Sum(d []byte) uint64 {
	var x uint32
	for i := 0; i < len(d); i += 4 {
		var word [4]byte
		copy(word[:], d[i:])
		left, right := t.Key[i/4%len(t.Key)], t.Key[(i/4+1)%len(t.Key)]
		window := uint64(left)<<32 | uint64(right)
		for w := binary.BigEndian.Uint32(word[:]); w != 0; w &= w - 1 {
			x ^= uint32(window >> (bits.TrailingZeros32(w) + 1))
		}
	}
	return uint64(x)
}

// xxh64 returns xxHash, 64 bits, seed 0.
func xxh64(d []byte) uint64 {
	const p1, p2, p3, p4, p5 = 11400714785074694791, 14029467366897019727, 1609587929392839161, 9650029242287828579, 2870177450012600261
	round := func(acc, v uint64) uint64 { return bits.RotateLeft64(acc+v*p2, 31) * p1 }
	n := uint64(len(d))
	var h uint64 = p5
	if len(d) >= 32 {
		var zero uint64
		v := [4]uint64{p1, p2, 0, zero - p1}
		v[0] += p2
		for ; len(d) >= 32; d = d[32:] {
			for i := range v {
				v[i] = round(v[i], binary.LittleEndian.Uint64(d[8*i:]))
			}
		}
		h = bits.RotateLeft64(v[0], 1) + bits.RotateLeft64(v[1], 7) + bits.RotateLeft64(v[2], 12) + bits.RotateLeft64(v[3], 18)
		for i := range v {
			h = (h^round(0, v[i]))*p1 + p4
		}
	}
	h += n
	for ; len(d) >= 8; d = d[8:] {
		h = bits.RotateLeft64(h^round(0, binary.LittleEndian.Uint64(d)), 27)*p1 + p4
	}
	if len(d) >= 4 {
		h = bits.RotateLeft64(h^uint64(binary.LittleEndian.Uint32(d))*p1, 23)*p2 + p3
		d = d[4:]
	}
	for _, c := range d {
		h = bits.RotateLeft64(h^uint64(c)*p5, 11) * p1
	}
	h ^= h >> 33
	h *= p2
	h ^= h >> 29
	h *= p3
	return h ^ h>>32
}
