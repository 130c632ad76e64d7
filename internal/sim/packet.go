package sim

import (
	"encoding/binary"
	"time"
	"unsafe"

	"github.com/p4lb/p4lb/internal/dataplane"
	"github.com/p4lb/p4lb/internal/dataplane/asm"
	"github.com/p4lb/p4lb/internal/scheme/model"
)

// A Kind is the role of a packet in a transport.
type Kind uint8

// The kinds of packet.
const (
	data    Kind = iota // from the source of its flow to the destination
	Ack                 // back, as the kinds that follow
	nack                // DCQCN: Ack is the first byte that is missing
	cnp                 // DCQCN: congestion was seen
	grant               // UEC: credit for the sender
	Control             // of a switch or controller: belongs to no flow
)

// Lengths of headers, in bytes.
const (
	ethernetLen = 14
	ipv4Len     = 20
	ipv6Len     = 40
	udpLen      = 8
	tcpLen      = 20

	// UDPHeaders and TCPHeaders are the bytes in front of the payload, with IPv4.
	UDPHeaders = ethernetLen + ipv4Len + udpLen
	TCPHeaders = ethernetLen + ipv4Len + tcpLen
)

// A Range is the bytes from From to before To.
type Range struct{ From, To int64 }

// A Packet is a packet in the network. Its fields carry the information that hosts
// exchange; switches see equivalent header bytes, and no payload but its
// length. Packets belong to the Network: receive must not keep
// it.
type Packet struct {
	// What every hop looks at is two lines of the cache.
	next *Packet // in the queue that it is in, or the pool
	from *Port   // the port of this switch that it came in at
	dp   *dataplane.Packet
	Flow *Flow
	Dst  *Host
	// Size is the length on the wire, from the Ethernet header on. Send sets
	// it.
	Size  int
	place int32 // of Dst among the hosts
	met   int32 // packets that stood in the queue when it came

	Kind    Kind
	ECT     bool // capable of ECN
	CE      bool // congestion was met
	Echo    bool // Ack: the receiver has seen CE (ECE); data of UEC: to be acknowledged at once
	Last    bool // Data: the flow ends with it
	mark    bool // gets CE on its way out
	charged bool // it occupies the switch's buffer
	again   bool // it recirculates

	Src     *Host
	born    int32  // bytes that it is accounted for with, from its beginning to its end
	padding int32  // bytes behind head that are no flow's
	head    []byte // the header bytes, where switches run P4
	extra   int    // bytes that follow head: padding and payload
	Payload int    // bytes
	// Entropy is the choice among the flow's source ports; in an answer, the choice of the
	// answered packet, because that packet's source port is the answer's destination.
	Entropy uint16
	first   bool     // it goes before others in queues
	plane   uint8    // of the ports that it goes between, from 0
	queued  uint8    // the queue of its port that a model has picked, or carriesWoven
	Trimmed trimming // data: a switch has cut the payload off; answers: of the packet that is answered
	Spoiled bool     // answers: the packet that is answered has met congestion
	NSacks  int8     // of Sacks in use

	// Hosts look at the next lines.
	Seq   int64 // Data: place of the first byte in the flow
	Ack   int64 // Ack, Nack: all bytes before have arrived; with RCCC, data: the credit that is asked for; grant: all credit
	Sacks [3]Range

	Sent   time.Duration // when it was given to the NIC
	Stamp  time.Duration // the transport's own: an Ack echoes Sent
	Number int64         // the transport's own: say, transmissions before

	native nativePacket // what models add
	ctl    *control     // its contents, if it has no flow
}

// nativePacket is the state of models in a packet, from hop to hop and from ingress to
// egress.
type nativePacket struct {
	overlay  model.Overlay
	round    model.Round
	received int        // bytes, when it came in
	came     int        // bytes, when it came in last: it may have been recirculated
	short    int32      // bytes when it was recirculated, of a report
	cut      int32      // bytes that this switch has trimmed: copies still have them
	queued   model.Time // when it was
	stamp    model.Time // when it was recirculated
}

// newPacket takes a packet from the pool.
func (n *Network) newPacket() *Packet {
	p := n.pool
	if p == nil {
		r := new(roomy)
		r.head = r.room[:0]
		return &r.Packet
	}
	n.pool = p.next
	head, ctl := p.head[:0], p.ctl
	*p = Packet{head: head, ctl: ctl}
	return p
}

// A roomy packet has its header bytes right behind it, so that their address in
// memory is known before the packet is in the cache. Its size is a multiple of a cache
// line, so that two packets share none: their parts of the network may differ.
type roomy struct {
	Packet
	room [112]byte
}

// fetch prefetches the fields that a hop reads, with the header bytes if asked
// for.
//
// Hostile input: none. A prefetch reads nothing that the program sees; the room follows the
// packet in the same allocation.
func (p *Packet) fetch(bytes bool) {
	asm.Prefetch(unsafe.Pointer(p))
	if bytes {
		asm.Prefetch(unsafe.Add(unsafe.Pointer(p), unsafe.Sizeof(*p)))
	}
}

// claim prefetches, for writing, the fields of a hop from a packet that another core has written.
//
// Hostile input: none, as above.
func (p *Packet) claim(bytes bool) {
	asm.Claim(unsafe.Pointer(p), 2)
	if bytes {
		asm.Claim(unsafe.Add(unsafe.Pointer(p), unsafe.Sizeof(*p)), 2)
	}
}

// fetchRest prefetches the fields that only a host reads.
//
// Hostile input: none, as above.
func (p *Packet) fetchRest() { asm.Prefetch(unsafe.Pointer(&p.Seq)) }

// release gives a packet back.
func (n *Network) release(p *Packet) {
	p.next = n.pool
	p.Flow, p.Src, p.Dst, p.from = nil, nil, nil, nil
	n.pool = p
}

// NewPacket makes a packet of a flow, for Host.Send: Data for its destination,
// other kinds for its source. payload is in bytes.
func (n *Network) NewPacket(f *Flow, k Kind, payload int) *Packet {
	p := n.newPacket()
	p.Flow, p.Kind, p.Payload = f, k, payload
	p.Src, p.Dst = f.Src, f.Dst
	if k != data {
		p.Src, p.Dst = f.Dst, f.Src
	}
	p.place = int32(p.Dst.place)
	return p
}

// answers reports whether the packet is one of a receiver's: an acknowledgment, a
// Nack or a notice.
func (k Kind) answers() bool { return k != data && k != Control }

// queue returns the queue of its port that the program or model has picked.
func (p *Packet) queue() uint8 {
	if p.dp == nil {
		return p.queued
	}
	return p.dp.Queue()
}

// urgent reports whether a packet goes before others.
func (n *Network) urgent(p *Packet) bool { return p.first || n.opts.Answers.First && p.Kind.answers() }

// A trimming is where a switch has cut the payload of a packet off.
type trimming uint8

const (
	notTrimmed     trimming = iota
	trimmedEarlier          // on the way
	trimmedAtLast           // at the port of the destination
)

// A headers is the bytes in front of the payload of a flow's packets in one
// direction.
type headers struct {
	bytes [TCPHeaders + ipv6Len - ipv4Len]byte
	n     int
	ip    int    // length of the IP header
	sum   uint32 // of the IP header, without length and checksum
	tuple model.Flow
}

const (
	typeIPv4    = 0x0800
	typeIPv6    = 0x86dd
	protocolTCP = 6
	protocolUDP = 17
)

// ipLen is the length of IP headers.
func (n *Network) ipLen() int {
	if n.upper != nil {
		return ipv6Len
	}
	return ipv4Len
}

// newHeaders makes the headers from one host to another.
func newHeaders(from, to *Host, protocol uint8, sport, dport uint16) headers {
	h := headers{ip: from.net.ipLen(), tuple: model.Flow{Src: from.IP, Dst: to.IP, Protocol: protocol, Sport: sport, Dport: dport, Upper: from.net.upper}}
	h.n = ethernetLen + h.ip + udpLen
	b := h.bytes[:]
	if protocol == protocolTCP {
		h.n = ethernetLen + h.ip + tcpLen
		b[ethernetLen+h.ip+12] = 5 << 4 // the header's length
	}
	copy(b, from.gateway[:])
	if from.net.opts.ByMAC {
		copy(b, to.mac[:])
	}
	copy(b[6:], from.mac[:])
	ip := b[ethernetLen:]
	binary.BigEndian.PutUint16(ip[h.ip:], sport)
	binary.BigEndian.PutUint16(ip[h.ip+2:], dport)
	if upper := from.net.upper; upper != nil {
		binary.BigEndian.PutUint16(b[12:], typeIPv6)
		ip[0], ip[6], ip[7] = 0x60, protocol, 64
		binary.BigEndian.PutUint32(ip[8+copy(ip[8:], upper[:]):], from.IP)
		binary.BigEndian.PutUint32(ip[24+copy(ip[24:], upper[:]):], to.IP)
		return h
	}
	binary.BigEndian.PutUint16(b[12:], typeIPv4)
	ip[0], ip[8], ip[9] = 0x45, 64, protocol
	binary.BigEndian.PutUint32(ip[12:], from.IP)
	binary.BigEndian.PutUint32(ip[16:], to.IP)
	for i := 0; i < ipv4Len; i += 2 {
		h.sum += uint32(binary.BigEndian.Uint16(ip[i:]))
	}
	return h
}

// setDSCP gives the packets a DSCP.
func (h *headers) setDSCP(v uint8) {
	if h.ip == ipv6Len {
		h.bytes[ethernetLen] |= v >> 2
		h.bytes[ethernetLen+1] = v << 6
		return
	}
	h.bytes[ethernetLen+1] = v << 2
	h.sum += uint32(v) << 2
}

// write puts the headers of a packet in front of it.
func (h *headers) write(p *Packet) {
	b := append(p.head[:0], h.bytes[:h.n]...)
	ip := b[ethernetLen:]
	length := h.n - ethernetLen + int(p.padding) + p.Payload
	ecn := uint32(0)
	if p.ECT {
		ecn = 2
	}
	if h.ip == ipv6Len {
		ip[1] |= byte(ecn << 4)
		binary.BigEndian.PutUint16(ip[4:], uint16(length-ipv6Len))
	} else {
		ip[1] |= byte(ecn)
		binary.BigEndian.PutUint16(ip[2:], uint16(length))
		binary.BigEndian.PutUint16(ip[10:], ^fold(h.sum+ecn+uint32(uint16(length))))
	}
	if h.tuple.Protocol == protocolTCP {
		writeTCP(b[ethernetLen+h.ip:], p)
	}
	if p.Entropy != 0 {
		port := ip[h.ip:]
		if p.Kind != data && p.Flow.roce == nil {
			port = port[2:]
		}
		binary.BigEndian.PutUint16(port, p.Flow.port(p.Entropy))
	}
	p.head, p.extra = b, int(p.padding)+p.Payload
	if p.Flow.roce != nil {
		p.head = p.Flow.roce.write(b, p)
		p.extra -= len(p.head) - len(b)
	}
}

// tuple returns the addresses and ports of a packet of a flow.
func (p *Packet) tuple() model.Flow {
	t := p.headers().tuple
	if p.Kind == data || p.Flow.roce != nil {
		t.Sport = p.Flow.port(p.Entropy)
	} else {
		t.Dport = p.Flow.port(p.Entropy)
	}
	return t
}

func writeTCP(b []byte, p *Packet) {
	binary.BigEndian.PutUint32(b[4:], uint32(p.Seq))
	binary.BigEndian.PutUint32(b[8:], uint32(p.Ack))
	flags := byte(0)
	if p.Kind == Ack {
		flags = tcpAck
	}
	if p.Echo {
		flags |= tcpEcho
	}
	b[13] = flags
}

// Flags of TCP.
const (
	tcpAck  = 0x10
	tcpEcho = 0x40
)

// fold adds the carries of a ones' complement sum.
func fold(sum uint32) uint16 {
	sum = sum>>16 + sum&0xFFFF
	return uint16(sum + sum>>16)
}

// markBytes sets CE in the header bytes of a packet that is capable of ECN. The
// checksum follows.
func markBytes(b []byte) {
	if at := ipv6At(b); at != 0 {
		if b[at+1]>>4&3 != 0 {
			b[at+1] |= 3 << 4
		}
		return
	}
	at := ipv4At(b)
	if at == 0 || b[at+1]&3 == 0 {
		return
	}
	ip := b[at:]
	before := uint32(ip[1])
	ip[1] |= 3
	sum := uint32(^binary.BigEndian.Uint16(ip[10:])) + uint32(^uint16(before)) + uint32(ip[1])
	binary.BigEndian.PutUint16(ip[10:], ^fold(sum))
}

// marked reports whether the header bytes are marked CE.
func marked(b []byte) bool {
	if at := ipv6At(b); at != 0 {
		return b[at+1]>>4&3 == 3
	}
	at := ipv4At(b)
	return at != 0 && b[at+1]&3 == 3
}

// An ipForm is what tells the header of a version of IP from other bytes.
type ipForm struct {
	typ         uint16 // of Ethernet
	length      int
	mask, first byte // of the first byte
	protocol    int  // the place of the protocol
}

var (
	ipv4Form = ipForm{typeIPv4, ipv4Len, 0xFF, 0x45, 9}
	ipv6Form = ipForm{typeIPv6, ipv6Len, 0xF0, 0x60, 6}
)

func ipv4At(b []byte) int { return ipv4Form.at(b) }
func ipv6At(b []byte) int { return ipv6Form.at(b) }

// at finds the IP header, at the end of the Ethernet header; 0 if there is
// none. Behind another type, by which schemes mark their own headers, it is found
// by the length of the whole: what hosts send has UDP, TCP or RoCE behind IP.
func (f *ipForm) at(b []byte) int {
	longer := f.length - ipv4Len
	if len(b) < UDPHeaders+longer {
		return 0
	}
	switch binary.BigEndian.Uint16(b[12:]) {
	case f.typ:
		return ethernetLen
	case typeIPv4, typeIPv6:
		return 0
	}
	for _, n := range [...]int{TCPHeaders, UDPHeaders, UDPHeaders + bthLen, UDPHeaders + bthLen + aethLen} {
		at := len(b) - n - longer + ethernetLen
		if at < ethernetLen || b[at]&f.mask != f.first {
			continue
		}
		protocol := b[at+f.protocol]
		roce := protocol == protocolUDP && binary.BigEndian.Uint16(b[at+f.length+2:]) == rocePort
		switch {
		case n == TCPHeaders && protocol == protocolTCP, n == UDPHeaders && protocol != protocolTCP, n >= UDPHeaders+bthLen && roce:
			return at
		}
	}
	return 0
}

// With RoCEv2, a packet has UDP port 4791, the base transport header (BTH)
// of InfiniBand, and in ACKs and Nacks the extended header (AETH). Switches with programs
// see them in place of the first bytes behind UDP. Hosts exchange fields of Packet.
//
// A flow is a message of SENDs on a reliable connection. Its queue pair is its number, in
// both directions, and packet sequence numbers count from 0.

const (
	rocePort = 4791
	bthLen   = 12
	aethLen  = 4
	icrcLen  = 4

	// RoCEHeaders is the length of a packet of data beside its payload.
	RoCEHeaders = UDPHeaders + bthLen + icrcLen
	// RoCEAnswer is the length of an ACK or a Nack.
	RoCEAnswer = RoCEHeaders + aethLen
)

// Opcodes of the BTH.
const (
	sendFirst  = 0x00
	sendMiddle = 0x01
	sendLast   = 0x02
	sendOnly   = 0x04
	opAck      = 0x11
	opNotice   = 0x81 // CNP
)

// backwardNotice is the bit BECN beside the queue pair. It is in notices, and in ACKs and
// Nacks that a receiver sends in place of a separate notice.
const backwardNotice = 1 << 30

// Syndromes of the AETH.
const (
	syndromeAck      = 0x1F // no limit to credit
	syndromeSequence = 0x60 // a packet is missing
)

// A roce holds the facts about a flow that its RoCE headers contain.
type roce struct {
	segment int64 // bytes of a full packet
	pair    uint32
	last    int64 // the first byte of the last packet
}

// write returns the header bytes with BTH and AETH behind UDP.
func (r *roce) write(b []byte, p *Packet) []byte {
	udp := b[len(b)-udpLen:]
	binary.BigEndian.PutUint16(udp[4:], uint16(udpLen+int(p.padding)+p.Payload))
	opcode, sequence := byte(sendMiddle), p.Seq/r.segment
	syndrome := -1
	switch {
	case p.Kind == cnp:
		opcode, sequence = opNotice, 0
	case p.Kind == nack:
		opcode, sequence, syndrome = opAck, p.Ack/r.segment, syndromeSequence
	case p.Kind == Ack:
		opcode, sequence, syndrome = opAck, (p.Ack+r.segment-1)/r.segment-1, syndromeAck
	case p.Seq == 0 && r.last == 0:
		opcode = sendOnly
	case p.Seq == 0:
		opcode = sendFirst
	case p.Seq >= r.last:
		opcode = sendLast
	}
	b = append(b, opcode, 0, 0xFF, 0xFF) // the default partition
	pair := r.pair
	if p.Echo || p.Kind == cnp {
		pair |= backwardNotice
	}
	b = binary.BigEndian.AppendUint32(b, pair)
	word := uint32(sequence) & 0xFFFFFF
	if p.Kind == data {
		word |= 1 << 31 // the receiver answers each packet
	}
	b = binary.BigEndian.AppendUint32(b, word)
	if syndrome >= 0 {
		b = binary.BigEndian.AppendUint32(b, uint32(syndrome)<<24)
	}
	return b
}
