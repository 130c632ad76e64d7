package ports

import (
	"bytes"
	"encoding/binary"
	"math/bits"
)

// A host that leaves checksums and segmentation to its network card sends TCP packets
// of many kilobytes, and expects such packets too. A packet socket then passes a
// packetHeader with each packet. A splitter cuts these packets into segments before the
// switch receives them. A joiner combines the segments that the switch sends, as a
// network card does. The program in the switch sees complete segments only.

// A packetHeader precedes each packet of the socket (struct virtio_net_hdr in
// linux/virtio_net.h).
type packetHeader struct {
	flags, kind       uint8
	headers           uint16 // length of all headers
	segment           uint16 // length of the payload of a segment
	sumFrom, sumField uint16 // first byte of the sum, and where it belongs after that byte
}

const (
	packetHeaderLen = 10

	partialSum = 1 // flag: the field holds the sum of the pseudo-header only

	// Kinds of segmentation. A flag is set for TCP with congestion notification.
	kindNone  = 0
	kindTCPv4 = 1
	kindTCPv6 = 4
	kindECN   = 0x80
)

func readPacketHeader(b []byte) packetHeader {
	return packetHeader{
		b[0], b[1], binary.NativeEndian.Uint16(b[2:]), binary.NativeEndian.Uint16(b[4:]),
		binary.NativeEndian.Uint16(b[6:]), binary.NativeEndian.Uint16(b[8:]),
	}
}

func (h packetHeader) write(b []byte) {
	b[0], b[1] = h.flags, h.kind
	binary.NativeEndian.PutUint16(b[2:], h.headers)
	binary.NativeEndian.PutUint16(b[4:], h.segment)
	binary.NativeEndian.PutUint16(b[6:], h.sumFrom)
	binary.NativeEndian.PutUint16(b[8:], h.sumField)
}

const (
	ethernetLen = 14
	ipv4Len     = 20 // without options
	ipv6Len     = 40
	tcpLen      = 20 // without options

	etherIPv4 = 0x0800
	etherIPv6 = 0x86dd
	protoTCP  = 6

	// Offsets in TCP headers.
	tcpSequence, tcpLength, tcpFlags, tcpSum = 4, 12, 13, 16

	tcpFIN, tcpPSH, tcpACK, tcpCWR = 0x01, 0x08, 0x10, 0x80
)

// A splitter completes packets.
type splitter struct {
	segments []byte // of the current burst
}

// split appends a packet's segments to burst, or the packet itself with its checksum. They are valid
// until the splitter is reset. It returns false if the header does not suit the packet.
//
// Hostile input: the packet. The kernel writes the header from its own view of the packet; every
// length of the two is checked here nevertheless.
func (s *splitter) split(burst [][]byte, packet []byte, h packetHeader) ([][]byte, bool) {
	if h.kind == kindNone {
		if h.flags&partialSum != 0 && !complete(packet, int(h.sumFrom), int(h.sumField)) {
			return burst, false
		}
		return append(burst, packet), true
	}
	ip, tcp := ethernetLen, int(h.sumFrom)
	if len(packet) < tcp+tcpLen || h.segment == 0 || h.sumField != tcpSum {
		return burst, false
	}
	for isTag(packet[ip-2:]) {
		ip += vlanTag
		if ip > tcp {
			return burst, false
		}
	}
	v4 := h.kind&^kindECN == kindTCPv4
	switch h.kind &^ kindECN {
	case kindTCPv4:
		if tcp < ip+ipv4Len || tcp != ip+int(packet[ip]&0x0f)*4 {
			return burst, false
		}
	case kindTCPv6:
		if tcp < ip+ipv6Len {
			return burst, false
		}
	default:
		return burst, false
	}
	data := tcp + int(packet[tcp+tcpLength]>>4)*4
	if data < tcp+tcpLen || data >= len(packet) {
		return burst, false
	}
	header, payload, flags := packet[:data], packet[data:], packet[tcp+tcpFlags]
	identification := binary.BigEndian.Uint16(packet[ip+4:])
	sequence := binary.BigEndian.Uint32(packet[tcp+tcpSequence:])
	for i := uint16(0); len(payload) > 0; i++ {
		part := payload[:min(int(h.segment), len(payload))]
		payload = payload[len(part):]
		p := s.keep(header, part)
		if v4 {
			binary.BigEndian.PutUint16(p[ip+4:], identification+i)
			sealIPv4(p[ip:tcp], len(p)-ip)
		} else {
			binary.BigEndian.PutUint16(p[ip+4:], uint16(len(p)-ip-ipv6Len))
		}
		binary.BigEndian.PutUint32(p[tcp+tcpSequence:], sequence)
		sequence += uint32(len(part))
		p[tcp+tcpFlags] = flags
		if len(payload) > 0 {
			p[tcp+tcpFlags] &^= tcpFIN | tcpPSH
		}
		if i > 0 {
			p[tcp+tcpFlags] &^= tcpCWR
		}
		binary.BigEndian.PutUint16(p[tcp+tcpSum:], pseudoSum(p[ip:], v4, len(p)-tcp))
		complete(p, tcp, tcpSum)
		burst = append(burst, p)
	}
	return burst, true
}

// keep copies the parts of a packet to memory that is valid until the splitter is reset.
func (s *splitter) keep(parts ...[]byte) []byte {
	from := len(s.segments)
	for _, p := range parts {
		s.segments = append(s.segments, p...)
	}
	return s.segments[from:len(s.segments):len(s.segments)]
}

func (s *splitter) reset() { s.segments = s.segments[:0] }

func isTag(etherType []byte) bool {
	t := binary.BigEndian.Uint16(etherType)
	return t == 0x8100 || t == 0x88a8
}

// complete finishes a checksum. Its field holds the sum of the pseudo-header.
func complete(packet []byte, from, field int) bool {
	if from+field+2 > len(packet) {
		return false
	}
	sum := ^onesSum(packet[from:], 0)
	if sum == 0 {
		sum = 0xffff // 0 means no checksum in UDP, and is the same number in TCP
	}
	binary.BigEndian.PutUint16(packet[from+field:], sum)
	return true
}

// sealIPv4 writes the total length and the checksum of a header.
func sealIPv4(header []byte, total int) {
	binary.BigEndian.PutUint16(header[2:], uint16(total))
	binary.BigEndian.PutUint16(header[10:], 0)
	binary.BigEndian.PutUint16(header[10:], ^onesSum(header, 0))
}

// pseudoSum returns the sum of the pseudo-header of a TCP segment with its header.
func pseudoSum(ip []byte, v4 bool, length int) uint16 {
	if v4 {
		return onesSum(ip[12:20], uint64(protoTCP+length))
	}
	return onesSum(ip[8:40], uint64(protoTCP+length))
}

// onesSum returns the ones' complement sum of the 16-bit words of b and of start.
func onesSum(b []byte, start uint64) uint16 {
	var sum, carry uint64
	for len(b) >= 32 {
		sum, carry = bits.Add64(sum, binary.BigEndian.Uint64(b), carry)
		sum, carry = bits.Add64(sum, binary.BigEndian.Uint64(b[8:]), carry)
		sum, carry = bits.Add64(sum, binary.BigEndian.Uint64(b[16:]), carry)
		sum, carry = bits.Add64(sum, binary.BigEndian.Uint64(b[24:]), carry)
		b = b[32:]
	}
	for len(b) >= 8 {
		sum, carry = bits.Add64(sum, binary.BigEndian.Uint64(b), carry)
		b = b[8:]
	}
	var rest [8]byte
	copy(rest[:], b)
	sum, carry = bits.Add64(sum, binary.BigEndian.Uint64(rest[:]), carry)
	sum, carry = bits.Add64(sum, start, carry)
	sum += carry
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	return uint16(sum)
}

// joined are the packets that one message of the socket holds.
type joined struct {
	from     int // where its packetHeader begins in joiner.out
	ip, tcp  int // offsets of the headers after the packetHeader; tcp 0: not joinable
	data     int // offset of the payload
	segment  int // length of the first payload
	parts    int
	verified bool // the first packet is correct
	full     bool // no further packet may follow
}

// A joiner collects packets to send, each after its packetHeader.
type joiner struct {
	joins bool // combine consecutive TCP segments
	out   []byte
	list  []joined
}

// maxParts bounds a combined packet, like the kernel's own limit for receivers.
const maxParts = 64

// put appends a packet. Only a packet with correct checksums becomes part of another one: the
// receiver does not check a combined packet.
func (j *joiner) put(packet []byte) {
	var m joined
	if j.joins {
		m = joinable(packet)
	}
	if m.tcp > 0 && len(j.list) > 0 && j.extend(&j.list[len(j.list)-1], packet, m) {
		return
	}
	m.from = len(j.out)
	j.out = append(j.out, make([]byte, packetHeaderLen)...)
	j.out = append(j.out, packet...)
	j.list = append(j.list, m)
}

// joinable finds the headers of a TCP segment that others may follow. IP options, fragments and
// flags other than ACK and PSH exclude it.
func joinable(p []byte) (m joined) {
	if len(p) < ethernetLen+ipv4Len+tcpLen {
		return m
	}
	ip, tcp := ethernetLen, ethernetLen+ipv4Len
	switch binary.BigEndian.Uint16(p[ip-2:]) {
	case etherIPv4:
		fragment := binary.BigEndian.Uint16(p[ip+6:]) &^ 0x4000
		if p[ip] != 0x45 || p[ip+9] != protoTCP || fragment != 0 || int(binary.BigEndian.Uint16(p[ip+2:])) != len(p)-ip {
			return m
		}
	case etherIPv6:
		tcp = ip + ipv6Len
		if len(p) < tcp+tcpLen || p[ip]>>4 != 6 || p[ip+6] != protoTCP || int(binary.BigEndian.Uint16(p[ip+4:])) != len(p)-tcp {
			return m
		}
	default:
		return m
	}
	data := tcp + int(p[tcp+tcpLength]>>4)*4
	if data < tcp+tcpLen || data >= len(p) || p[tcp+tcpFlags]&^tcpPSH != tcpACK || p[tcp+tcpLength]&0x0f != 0 {
		return m
	}
	return joined{ip: ip, tcp: tcp, data: data, segment: len(p) - data, parts: 1, full: p[tcp+tcpFlags]&tcpPSH != 0}
}

// extend appends a segment to a message if it follows the last segment there.
func (j *joiner) extend(m *joined, p []byte, next joined) bool {
	if m.tcp != next.tcp || m.data != next.data || m.full || next.segment > m.segment || m.parts == maxParts {
		return false
	}
	first := j.out[m.from+packetHeaderLen:]
	if len(first)+next.segment > maxPacket-1 || !m.sameFlow(first, p) {
		return false
	}
	if !m.verified {
		if !correct(first, m.ip, m.tcp) {
			m.full = true
			return false
		}
		m.verified = true
	}
	if !correct(p, m.ip, m.tcp) {
		return false
	}
	j.out = append(j.out, p[m.data:]...)
	first = j.out[m.from+packetHeaderLen:]
	first[m.tcp+tcpFlags] |= p[m.tcp+tcpFlags]
	m.parts++
	m.full = next.full || next.segment < m.segment
	return true
}

// sameFlow reports whether p is the next segment of the flow: its headers equal the headers of first, to
// which parts have been appended, but for the sequence number, lengths, checksums and flags.
func (m *joined) sameFlow(first, p []byte) bool {
	step := uint32(len(first) - m.data)
	if binary.BigEndian.Uint32(p[m.tcp+tcpSequence:]) != binary.BigEndian.Uint32(first[m.tcp+tcpSequence:])+step {
		return false
	}
	equal := func(from, to int) bool { return bytes.Equal(first[from:to], p[from:to]) }
	// Lengths, checksums, flags and, for IPv4, the identification differ.
	network := m.tcp == m.ip+ipv4Len && equal(0, m.ip+2) && equal(m.ip+6, m.ip+10) && equal(m.ip+12, m.tcp) ||
		m.tcp == m.ip+ipv6Len && equal(0, m.ip+4) && equal(m.ip+6, m.tcp)
	return network && equal(m.tcp, m.tcp+tcpSequence) && equal(m.tcp+tcpSequence+4, m.tcp+tcpFlags) &&
		equal(m.tcp+tcpFlags+1, m.tcp+tcpSum) && equal(m.tcp+tcpSum+2, m.data)
}

// correct checks the checksums of a packet.
func correct(p []byte, ip, tcp int) bool {
	v4 := tcp == ip+ipv4Len
	if v4 && onesSum(p[ip:tcp], 0) != 0xffff {
		return false
	}
	return onesSum(p[tcp:], uint64(pseudoSum(p[ip:], v4, len(p)-tcp))) == 0xffff
}

// message returns a packet with its packetHeader.
func (j *joiner) message(i int) []byte {
	end := len(j.out)
	if i+1 < len(j.list) {
		end = j.list[i+1].from
	}
	return j.out[j.list[i].from:end]
}

// seal completes the headers of combined packets.
func (j *joiner) seal() {
	for i := range j.list {
		m := &j.list[i]
		if m.parts < 2 {
			continue
		}
		p := j.message(i)[packetHeaderLen:]
		h := packetHeader{flags: partialSum, kind: kindTCPv6, headers: uint16(m.data), segment: uint16(m.segment), sumFrom: uint16(m.tcp), sumField: tcpSum}
		v4 := m.tcp == m.ip+ipv4Len
		if v4 {
			h.kind = kindTCPv4
			sealIPv4(p[m.ip:m.tcp], len(p)-m.ip)
		} else {
			binary.BigEndian.PutUint16(p[m.ip+4:], uint16(len(p)-m.tcp))
		}
		binary.BigEndian.PutUint16(p[m.tcp+tcpSum:], pseudoSum(p[m.ip:], v4, len(p)-m.tcp))
		h.write(j.out[m.from:])
	}
}

func (j *joiner) reset() { j.out, j.list = j.out[:0], j.list[:0] }
