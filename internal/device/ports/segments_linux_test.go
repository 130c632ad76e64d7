package ports

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"
)

// wordSum adds the 16-bit words of the parts as RFC 1071 describes it.
func wordSum(parts ...[]byte) uint16 {
	sum := 0
	for _, p := range parts {
		for i, b := range p {
			if i%2 == 0 {
				sum += int(b) << 8
			} else {
				sum += int(b)
			}
		}
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	return uint16(sum)
}

// A segment describes a TCP packet to build.
type segment struct {
	v6         bool
	tags       int // VLAN tags
	ipOptions  []byte
	id         uint16
	port       uint16
	sequence   uint32
	flags      byte
	tcpOptions []byte
	payload    []byte
}

// bytes builds the packet with correct checksums, and returns the offset of the TCP header.
func (s segment) bytes() ([]byte, int) {
	tcp := binary.BigEndian.AppendUint16(nil, s.port)
	tcp = append(tcp, 0, 80)
	tcp = binary.BigEndian.AppendUint32(tcp, s.sequence)
	tcp = append(tcp, 0, 0, 0, 7, byte(5+len(s.tcpOptions)/4)<<4, s.flags, 1, 0, 0, 0, 0, 0)
	tcp = append(append(tcp, s.tcpOptions...), s.payload...)
	p := []byte{2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2}
	for range s.tags {
		p = append(p, 0x81, 0, 0, 5)
	}
	addresses := []byte{10, 0, 0, 1, 10, 0, 0, 2}
	if s.v6 {
		addresses = bytes.Repeat([]byte{0xfd, 1, 2, 3}, 8)
	}
	length := []byte{0, 6, byte(len(tcp) >> 8), byte(len(tcp))}
	binary.BigEndian.PutUint16(tcp[16:], ^wordSum(addresses, length, tcp))
	if s.v6 {
		p = append(p, 0x86, 0xdd, 0x60, 0, 0, 0, byte(len(tcp)>>8), byte(len(tcp)), 6, 64)
		p = append(p, addresses...)
		return append(p, tcp...), len(p)
	}
	total := 20 + len(s.ipOptions) + len(tcp)
	ip := []byte{0x45 + byte(len(s.ipOptions)/4), 0, byte(total >> 8), byte(total), byte(s.id >> 8), byte(s.id), 0x40, 0, 64, 6, 0, 0}
	ip = append(append(ip, addresses...), s.ipOptions...)
	binary.BigEndian.PutUint16(ip[10:], ^wordSum(ip))
	p = append(append(p, 8, 0), ip...)
	return append(p, tcp...), len(p)
}

func random(n int) []byte {
	r := rand.New(rand.NewPCG(1, uint64(n)))
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

// partial turns a packet into the form that the kernel passes to a network card: the card
// completes the checksum.
func partial(packet []byte, tcp int, v6 bool) []byte {
	length := len(packet) - tcp
	addresses := packet[tcp-8 : tcp]
	if v6 {
		addresses = packet[tcp-32 : tcp]
	}
	sum := wordSum(addresses, []byte{0, 6, byte(length >> 8), byte(length)})
	binary.BigEndian.PutUint16(packet[tcp+16:], sum)
	return packet
}

var shapes = []struct {
	name string
	segment
	kind uint8
}{
	{"IPv4", segment{}, kindTCPv4},
	{"IPv4 with a congestion mark", segment{flags: tcpCWR}, kindTCPv4 | kindECN},
	{"IPv6", segment{v6: true}, kindTCPv6},
	{"tagged", segment{tags: 2}, kindTCPv4},
	{"timestamps", segment{tcpOptions: random(12)}, kindTCPv4},
	{"identification that overflows", segment{id: 0xffff}, kindTCPv4},
	{"sequence that overflows", segment{sequence: 0xffffff00}, kindTCPv4},
}

func TestSplit(t *testing.T) {
	for _, shape := range shapes {
		for _, length := range []int{1, 999, 1000, 1001, 4000, 31234} {
			s := shape.segment
			s.payload, s.port, s.flags = random(length), 1234, s.flags|tcpACK|tcpPSH|tcpFIN
			whole, tcp := s.bytes()
			headers := len(whole) - length
			var cut splitter
			got, ok := cut.split(nil, partial(whole, tcp, s.v6), packetHeader{partialSum, shape.kind, uint16(headers), 1000, uint16(tcp), 16})
			if !ok {
				t.Fatalf("%s, %d bytes: refused", shape.name, length)
			}
			if want := (length + 999) / 1000; len(got) != want {
				t.Fatalf("%s, %d bytes: %d segments, want %d", shape.name, length, len(got), want)
			}
			for i, p := range got {
				part := s
				part.payload = s.payload[i*1000 : min(length, (i+1)*1000)]
				part.sequence += uint32(i) * 1000
				part.id += uint16(i)
				if i < len(got)-1 {
					part.flags &^= tcpPSH | tcpFIN
				}
				if i > 0 {
					part.flags &^= tcpCWR
				}
				if want, _ := part.bytes(); !bytes.Equal(p, want) {
					t.Errorf("%s, %d bytes, segment %d:\n%x\nwant\n%x", shape.name, length, i, p[:headers], want[:headers])
				}
			}
		}
	}
}

// A packet without segments only needs its checksum. A UDP checksum of 0 means none.
func TestCompleteChecksum(t *testing.T) {
	whole, tcp := segment{payload: random(77)}.bytes()
	want := slices.Clone(whole)
	var s splitter
	got, ok := s.split(nil, partial(whole, tcp, false), packetHeader{flags: partialSum, sumFrom: uint16(tcp), sumField: 16})
	if !ok || len(got) != 1 || !bytes.Equal(got[0], want) {
		t.Errorf("got %x, want %x", got, want)
	}
	zero := []byte{0xff, 0xff, 0, 0}
	if complete(zero, 0, 2); zero[2] != 0xff || zero[3] != 0xff {
		t.Errorf("a checksum of 0 is written as %x, want ffff", zero[2:])
	}
}

// For any header in front of a packet, the splitter does not panic, and forwards only
// packets whose parts it knows.
func TestSplitRefuses(t *testing.T) {
	whole, tcp := segment{payload: random(3000)}.bytes()
	for _, h := range []packetHeader{
		{partialSum, kindTCPv4, 54, 0, uint16(tcp), 16},    // no length of segments
		{partialSum, kindTCPv4, 54, 1000, uint16(tcp), 6},  // a checksum elsewhere
		{partialSum, kindTCPv4, 54, 1000, 20, 16},          // TCP within the IP header
		{partialSum, kindTCPv4, 54, 1000, 60000, 16},       // TCP after the end
		{partialSum, kindTCPv6, 54, 1000, uint16(tcp), 16}, // another version of IP
		{partialSum, 5, 54, 1000, uint16(tcp), 16},         // UDP
		{flags: partialSum, sumFrom: 60000, sumField: 16},  // a sum after the end
	} {
		var s splitter
		if got, ok := s.split(nil, slices.Clone(whole), h); ok || len(got) > 0 {
			t.Errorf("%+v: %d packets, want a refusal", h, len(got))
		}
	}
	for cut := range whole[:200] {
		var s splitter
		s.split(nil, slices.Clone(whole[:cut]), packetHeader{partialSum, kindTCPv4, 54, 1000, uint16(tcp), 16})
	}
}

// joins puts packets into a joiner and returns the messages.
func joins(packets ...[]byte) (list []packetHeader, messages [][]byte) {
	j := joiner{joins: true}
	for _, p := range packets {
		j.put(p)
	}
	j.seal()
	for i := range j.list {
		m := j.message(i)
		list = append(list, readPacketHeader(m))
		messages = append(messages, slices.Clone(m[packetHeaderLen:]))
	}
	return list, messages
}

// The splitter cuts a packet of the joiner into the original segments.
func TestJoin(t *testing.T) {
	for _, shape := range shapes {
		if shape.tags > 0 || shape.kind&kindECN != 0 {
			continue // not joined
		}
		var segments [][]byte
		s := shape.segment
		s.flags = tcpACK
		for i, n := range []int{1000, 1000, 1000, 400} {
			s.payload = random(n)
			if i == 3 {
				s.flags |= tcpPSH
			}
			p, _ := s.bytes()
			segments = append(segments, p)
			s.sequence += uint32(n)
			s.id++
		}
		heads, messages := joins(segments...)
		if len(messages) != 1 || heads[0].kind != shape.kind || heads[0].segment != 1000 || heads[0].flags != partialSum {
			t.Fatalf("%s: %d messages with %+v", shape.name, len(messages), heads)
		}
		var cut splitter
		got, ok := cut.split(nil, messages[0], heads[0])
		if !ok || !slices.EqualFunc(got, segments, bytes.Equal) {
			t.Errorf("%s: the splitter does not return the segments", shape.name)
		}
	}
}

// Packets that a receiver would not take as consecutive parts of one stream stay as they are.
func TestNotJoined(t *testing.T) {
	one := segment{id: 1, port: 9, sequence: 5, flags: tcpACK, tcpOptions: random(12), payload: random(500)}
	two := one
	two.id, two.sequence = 2, 505
	change := func(s segment, f func(*segment)) segment { f(&s); return s }
	damaged := func(s segment, at int) []byte {
		p, tcp := s.bytes()
		p[tcp+at]++
		return p
	}
	packet := func(s segment) []byte { p, _ := s.bytes(); return p }
	for name, pair := range map[string][2][]byte{
		"a gap":                     {packet(one), packet(change(two, func(s *segment) { s.sequence++ }))},
		"another port":              {packet(one), packet(change(two, func(s *segment) { s.port++ }))},
		"other options":             {packet(one), packet(change(two, func(s *segment) { s.tcpOptions = random(8) }))},
		"other timestamps":          {packet(one), packet(change(two, func(s *segment) { s.tcpOptions = append([]byte{1}, s.tcpOptions[1:]...) }))},
		"the end of the connection": {packet(one), packet(change(two, func(s *segment) { s.flags |= tcpFIN }))},
		"after the end of a push":   {packet(change(one, func(s *segment) { s.flags |= tcpPSH })), packet(two)},
		"a larger segment":          {packet(one), packet(change(two, func(s *segment) { s.payload = random(501) }))},
		"no payload":                {packet(one), packet(change(two, func(s *segment) { s.payload = nil }))},
		"IP options":                {packet(change(one, func(s *segment) { s.ipOptions = random(4) })), packet(change(two, func(s *segment) { s.ipOptions = random(4) }))},
		"another version of IP":     {packet(one), packet(change(two, func(s *segment) { s.v6 = true }))},
		"a wrong payload before":    {damaged(one, 40), packet(two)},
		"a wrong payload after":     {packet(one), damaged(two, 40)},
		"a wrong IP header":         {packet(one), damaged(two, -16)},
		"a fragment":                {packet(one), damaged(two, -13)},
		"padding":                   {packet(one), append(packet(two), 0)},
	} {
		heads, messages := joins(pair[0], pair[1])
		if len(messages) != 2 || !bytes.Equal(messages[0], pair[0]) || !bytes.Equal(messages[1], pair[1]) || heads[0] != (packetHeader{}) || heads[1] != (packetHeader{}) {
			t.Errorf("%s: %d messages with %+v, want both packets unchanged", name, len(messages), heads)
		}
	}
	if _, messages := joins(packet(one), packet(two)); len(messages) != 1 {
		t.Errorf("without a difference: %d messages, want 1", len(messages))
	}
}

// A combined packet stays below the largest IP packet and the largest number of parts.
func TestJoinLimits(t *testing.T) {
	for _, c := range []struct{ length, count, want int }{{100, 65, 64}, {8900, 8, 7}} {
		s := segment{flags: tcpACK, payload: random(c.length)}
		var list [][]byte
		for range c.count {
			p, _ := s.bytes()
			list = append(list, p)
			s.sequence += uint32(c.length)
			s.id++
		}
		if _, messages := joins(list...); len(messages) != 2 || len(messages[0]) != 54+c.length*c.want {
			t.Errorf("%d segments of %d bytes: %d messages, the first of %d bytes; want 2, the first with %d segments", c.count, c.length, len(messages), len(messages[0]), c.want)
		}
	}
}
