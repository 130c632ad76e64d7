package model

import (
	"encoding/binary"
	"hash/crc32"
)

// A Flow identifies a flow by its 5-tuple. Ports are 0 for protocols without ports.
type Flow struct {
	Src, Dst     uint32
	Protocol     uint8
	Sport, Dport uint16

	// Upper is the upper part that all IPv6 addresses share. Src and Dst contain
	// the lower part. nil: the programs forward only IPv4.
	Upper *[12]byte
}

// flowSlots is the number of flow slots. Flows whose hashes are equal share a slot and count as one
// flow.
const flowSlots = 1 << 16

// Hash returns the CRC16 of the 5-tuple, by which QALL and QDAPS identify flows.
func (f Flow) Hash() uint16 {
	if f.Upper != nil {
		return crc16(f.wide())
	}
	b := f.bytes()
	return crc16(b[:])
}

func crc16(data []byte) uint16 {
	var crc uint16
	for _, b := range data {
		crc = crc>>8 ^ crcTable[byte(crc)^b]
	}
	return crc
}

func (f Flow) reverse() Flow { return Flow{f.Dst, f.Src, f.Protocol, f.Dport, f.Sport, f.Upper} }

// pathHash returns the CRC32 of the 5-tuple, followed by more, for choosing a path. Above the
// edge, source and destination are swapped: the unchanged hash would repeat the choice of the
// edge switch.
func (f Flow) pathHash(edge bool, more ...byte) uint64 {
	if !edge {
		f = f.reverse()
	}
	if f.Upper != nil {
		return uint64(crc32.Update(crc32.ChecksumIEEE(f.wide()), crc32.IEEETable, more))
	}
	b := f.bytes()
	return uint64(crc32.Update(crc32.ChecksumIEEE(b[:]), crc32.IEEETable, more))
}

func (f Flow) bytes() [13]byte {
	return [13]byte{
		byte(f.Src >> 24), byte(f.Src >> 16), byte(f.Src >> 8), byte(f.Src),
		byte(f.Dst >> 24), byte(f.Dst >> 16), byte(f.Dst >> 8), byte(f.Dst),
		f.Protocol, byte(f.Sport >> 8), byte(f.Sport), byte(f.Dport >> 8), byte(f.Dport),
	}
}

// wide returns the 5-tuple of an IPv6 flow.
func (f Flow) wide() []byte {
	b := binary.BigEndian.AppendUint32(append(make([]byte, 0, 37), f.Upper[:]...), f.Src)
	b = binary.BigEndian.AppendUint32(append(b, f.Upper[:]...), f.Dst)
	b = binary.BigEndian.AppendUint16(append(b, f.Protocol), f.Sport)
	return binary.BigEndian.AppendUint16(b, f.Dport)
}

// crcTable is the table for CRC-16 with the reflected polynomial 0x8005.
var crcTable = func() (t [256]uint16) {
	for i := range t {
		crc := uint16(i)
		for range 8 {
			if crc&1 != 0 {
				crc = crc>>1 ^ 0xA001
			} else {
				crc >>= 1
			}
		}
		t[i] = crc
	}
	return t
}()

// A Time is a time of a switch's clock: 48 bits that wrap. It counts microseconds and wraps after
// nine years. On hardware the upper 32 bits count units of 1024 ns, and it wraps after 73
// minutes. Only differences of times are used.
type Time uint64

const clockMask Time = 1<<48 - 1

// Since returns the time from then to t, also after a wrap.
func (t Time) Since(then Time) Time { return (t - then) & clockMask }

// After returns the time d after t.
func (t Time) After(d Time) Time { return (t + d) & clockMask }

// signed returns the time from then to t, which is negative if t is earlier. A distance of more
// than half the clock's range counts as negative.
func (t Time) signed(then Time) int64 { return int64((t-then)<<16) >> 16 }
