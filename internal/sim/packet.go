package sim

import (
	"bytes"
	"encoding/binary"
	"time"
	"unsafe"

	"github.com/p4lb/p4lb/internal/dataplane"
	"github.com/p4lb/p4lb/internal/dataplane/asm"
	"github.com/p4lb/p4lb/internal/network/fabric"
	"github.com/p4lb/p4lb/internal/scheme/model"
)

// A Kind is the role of a packet in a transport.
type Kind uint8

// The kinds of packet.
const (
	data    Kind = iota // payload from the source of the flow to its destination
	Ack                 // acknowledgment; this and the next three kinds travel from the destination to the source
	nack                // negative acknowledgment (DCQCN, UEC)
	cnp                 // congestion notification packet (DCQCN)
	grant               // credit for the sender (UEC)
	Control             // from a switch or controller; belongs to no flow
)

// Lengths of headers, in bytes.
const (
	ethernetLen = 14
	ipv4Len     = 20
	ipv6Len     = 40
	udpLen      = 8
	tcpLen      = 20

	// UDPHeaders and TCPHeaders are the lengths of all headers up to UDP and TCP, with IPv4.
	UDPHeaders = ethernetLen + ipv4Len + udpLen
	TCPHeaders = ethernetLen + ipv4Len + tcpLen
)

// A Range is the bytes from From up to but excluding To.
type Range struct{ From, To int64 }

// A Packet is a packet in the network. Its fields carry the information that hosts exchange.
// Switches see the equivalent header bytes, and only the length of the payload. Packets belong to
// the Network: an endpoint's receive must not keep them.
type Packet struct {
	// The fields that every hop reads fill two cache lines.
	next *Packet // next packet in the same queue or in the pool
	from *Port   // ingress port of the current switch
	dp   *dataplane.Packet
	Flow *Flow
	Dst  *Host
	// Size is the length on the wire, from the Ethernet header on. Host.Send sets it.
	Size     int
	dstIndex int32 // index of Dst among the hosts
	depth    int32 // length of the egress queue, in packets, when this one joined it

	Kind         Kind
	ECT          bool // ECN-capable transport
	CE           bool // congestion experienced (ECN)
	Echo         bool // ACK: the receiver has seen CE (ECE); UEC data: acknowledge at once
	Last         bool // data: last packet of the flow
	mark         bool // set CE when the packet is sent
	charged      bool // the packet occupies the switch's buffer
	recirculated bool // the packet was recirculated

	Src       *Host
	firstSize int32  // length when first sent; the ledger counts packets with it
	padding   int32  // bytes after head that belong to no flow
	head      []byte // header bytes, if switches run P4 programs
	extra     int    // bytes after head: padding and payload
	Payload   int    // bytes of payload
	// Entropy is the chosen source port, as an offset from the flow's own. An answer repeats the
	// choice of the packet that it answers, because it is sent to that packet's source port.
	Entropy   uint16
	priority  bool     // takes priority over others in queues
	plane     uint8    // index of the host ports that the packet travels between
	portQueue uint8    // queue of the egress port that a model has chosen, or carriesWoven
	Trimmed   trimming // data: where a switch cut the payload off; answers: copied from the answered packet
	Spoiled   bool     // answers: the answered packet met congestion
	NSacks    int8     // number of Sacks in use

	// Only hosts read the following fields.
	Seq   int64 // data: position of the first byte in the flow
	Ack   int64 // ACK, Nack: all bytes below have arrived; RCCC: data: total credit requested, grant: total credit granted
	Sacks [3]Range

	Sent   time.Duration // when the packet was given to the NIC
	Stamp  time.Duration // timestamp of the transport: an ACK echoes Sent
	Number int64         // free for the transport: for example, the number of earlier transmissions

	native nativePacket // fields that models add
	ctl    *control     // contents of a packet without a flow
}

// nativePacket is the models' part of a packet: it carries their state from hop to hop and from
// ingress to egress.
type nativePacket struct {
	overlay        model.Overlay
	round          model.Round
	received       int        // length when the packet arrived at the switch
	entered        int        // length when it last entered ingress, also by recirculation
	reportLen      int32      // length of a report when it was recirculated
	trimmed        int32      // bytes that this switch has trimmed; copies still have them
	queued         model.Time // when the packet was queued
	recirculatedAt model.Time // when the packet was recirculated
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

// A roomy packet is followed by its header bytes, so that their address is known before the
// packet is in the cache. Its size is a multiple of a cache line, so that no two packets share a
// line: they may belong to different parts of the network.
type roomy struct {
	Packet
	room [112]byte
}

// fetch prefetches the fields that a hop reads, and the header bytes if bytes is set.
//
// Hostile input: none. A prefetch reads nothing that the program sees; the room follows the
// packet in the same allocation.
func (p *Packet) fetch(bytes bool) {
	asm.Prefetch(unsafe.Pointer(p))
	if bytes {
		asm.Prefetch(unsafe.Add(unsafe.Pointer(p), unsafe.Sizeof(*p)))
	}
}

// claim prefetches the fields that a hop reads, for writing. Another core has written the packet.
//
// Hostile input: none. The instruction only moves cache lines.
func (p *Packet) claim(bytes bool) {
	asm.Claim(unsafe.Pointer(p), 2)
	if bytes {
		asm.Claim(unsafe.Add(unsafe.Pointer(p), unsafe.Sizeof(*p)), 2)
	}
}

// fetchRest prefetches the fields that only a host reads.
//
// Hostile input: none. The instruction only moves cache lines.
func (p *Packet) fetchRest() { asm.Prefetch(unsafe.Pointer(&p.Seq)) }

// fetchHeaders prefetches the addresses and ports, which models read.
//
// Hostile input: none. A prefetch reads nothing that the program sees.
func (p *Packet) fetchHeaders() {
	at := unsafe.Offsetof(Flow{}.back)
	if p.Kind == data {
		at = unsafe.Offsetof(Flow{}.ahead)
	}
	asm.Prefetch(unsafe.Add(unsafe.Pointer(p.Flow), at))
}

// release returns a packet to the pool.
func (n *Network) release(p *Packet) {
	p.next = n.pool
	p.Flow, p.Src, p.Dst, p.from = nil, nil, nil, nil
	n.pool = p
}

// flowPacket makes a packet of a flow for Host.Send. Data is sent to the flow's destination, other
// kinds to its source. payload is in bytes.
func (n *Network) flowPacket(f *Flow, k Kind, payload int) *Packet {
	p := n.newPacket()
	p.Flow, p.Kind, p.Payload = f, k, payload
	p.Src, p.Dst = f.Src, f.Dst
	if k != data {
		p.Src, p.Dst = f.Dst, f.Src
	}
	p.dstIndex = int32(p.Dst.place)
	return p
}

// answers reports whether the packet is an answer of a receiver: an ACK, a Nack, a notification
// or a grant.
func (k Kind) answers() bool { return k != data && k != Control }

// queue returns the queue of its port that the program or model has picked.
func (p *Packet) queue() uint8 {
	if p.dp == nil {
		return p.portQueue
	}
	return p.dp.Queue()
}

// urgent reports whether a packet goes before others.
func (n *Network) urgent(p *Packet) bool {
	return p.priority || n.opts.Answers.First && p.Kind.answers()
}

// A trimming is the place where a switch has cut off the payload of a packet.
type trimming uint8

const (
	notTrimmed     trimming = iota
	trimmedEarlier          // cut off before the last switch port
	trimmedAtLast           // cut off at the switch port to the destination
)

// A headers describes the headers of a flow's packets in one direction.
type headers struct {
	tuple    model.Flow
	frame    *frame // nil: no packet has needed its bytes yet
	to, from fabric.MAC
	dscp     uint8
	n        uint8 // length of the headers in bytes
}

// A frame is the header bytes that the packets of a flow have in common.
type frame struct {
	bytes [TCPHeaders + ipv6Len - ipv4Len]byte
	sum   uint32 // checksum of the IP header without its length and checksum fields
}

const (
	typeIPv4    = 0x0800
	typeIPv6    = 0x86dd
	protocolTCP = 6
	protocolUDP = 17
)

// ipLen returns the length of IP headers.
func (n *Network) ipLen() int {
	if n.upper != nil {
		return ipv6Len
	}
	return ipv4Len
}

// newHeaders returns the headers from one host to another.
func newHeaders(from, to *Host, protocol uint8, sport, dport uint16) headers {
	h := headers{
		tuple: model.Flow{Src: from.IP, Dst: to.IP, Protocol: protocol, Sport: sport, Dport: dport, Upper: from.net.upper},
		to:    from.gateway, from: from.mac,
	}
	if from.net.opts.ByMAC {
		h.to = to.mac
	}
	h.n = uint8(ethernetLen + h.ip() + udpLen)
	if protocol == protocolTCP {
		h.n = uint8(ethernetLen + h.ip() + tcpLen)
	}
	return h
}

// ip returns the length of the IP header.
func (h *headers) ip() int {
	if h.tuple.Upper != nil {
		return ipv6Len
	}
	return ipv4Len
}

// newFrame returns the bytes of the headers.
func (h *headers) newFrame() *frame {
	f, t, n := new(frame), &h.tuple, h.ip()
	b := f.bytes[:]
	copy(b, h.to[:])
	copy(b[6:], h.from[:])
	ip := b[ethernetLen:]
	if t.Protocol == protocolTCP {
		ip[n+12] = 5 << 4 // the header's length
	}
	binary.BigEndian.PutUint16(ip[n:], t.Sport)
	binary.BigEndian.PutUint16(ip[n+2:], t.Dport)
	if upper := t.Upper; upper != nil {
		binary.BigEndian.PutUint16(b[12:], typeIPv6)
		ip[0], ip[1], ip[6], ip[7] = 0x60|h.dscp>>2, h.dscp<<6, t.Protocol, 64
		binary.BigEndian.PutUint32(ip[8+copy(ip[8:], upper[:]):], t.Src)
		binary.BigEndian.PutUint32(ip[24+copy(ip[24:], upper[:]):], t.Dst)
		return f
	}
	binary.BigEndian.PutUint16(b[12:], typeIPv4)
	ip[0], ip[1], ip[8], ip[9] = 0x45, h.dscp<<2, 64, t.Protocol
	binary.BigEndian.PutUint32(ip[12:], t.Src)
	binary.BigEndian.PutUint32(ip[16:], t.Dst)
	for i := 0; i < ipv4Len; i += 2 {
		f.sum += uint32(binary.BigEndian.Uint16(ip[i:]))
	}
	return f
}

// write writes the headers into the packet's head.
func (h *headers) write(p *Packet) {
	if h.frame == nil {
		h.frame = h.newFrame()
	}
	b := append(p.head[:0], h.frame.bytes[:h.n]...)
	ip := b[ethernetLen:]
	length := int(h.n) - ethernetLen + int(p.padding) + p.Payload
	ecn := uint32(0)
	if p.ECT {
		ecn = 2
	}
	if h.ip() == ipv6Len {
		ip[1] |= byte(ecn << 4)
		binary.BigEndian.PutUint16(ip[4:], uint16(length-ipv6Len))
	} else {
		ip[1] |= byte(ecn)
		binary.BigEndian.PutUint16(ip[2:], uint16(length))
		binary.BigEndian.PutUint16(ip[10:], ^fold(h.frame.sum+ecn+uint32(uint16(length))))
	}
	if h.tuple.Protocol == protocolTCP {
		writeTCP(b[ethernetLen+h.ip():], p)
	}
	if p.Entropy != 0 {
		port := ip[h.ip():]
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

// markBytes sets CE in the header bytes of an ECN-capable packet and updates the checksum.
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

// An ipForm describes how to recognise the header of an IP version.
type ipForm struct {
	typ         uint16 // EtherType
	length      int
	mask, first byte // mask and value of the first byte
	protocol    int  // offset of the protocol field
}

var (
	ipv4Form = ipForm{typeIPv4, ipv4Len, 0xFF, 0x45, 9}
	ipv6Form = ipForm{typeIPv6, ipv6Len, 0xF0, 0x60, 6}
)

// ends are the addresses and ports of a packet. An address of IPv6 is its last 32 bits.
type ends struct {
	src, dst     uint32
	sport, dport uint16
}

// endsOf returns the addresses and ports of a packet of the network's version of IP. It
// returns false for other packets, and for IPv6 addresses of another subnet.
func (n *Network) endsOf(b []byte) (e ends, ok bool) {
	addresses, size, at := 12, 4, ipv4At(b)
	if n.upper != nil {
		addresses, size, at = 8, 16, ipv6At(b)
	}
	if at == 0 || len(b) < at+n.ipLen()+4 {
		return e, false
	}
	ip := b[at:]
	src, dst, l4 := ip[addresses:addresses+size], ip[addresses+size:addresses+2*size], ip[n.ipLen():]
	if n.upper != nil && (!bytes.HasPrefix(src, n.upper[:]) || !bytes.HasPrefix(dst, n.upper[:])) {
		return e, false
	}
	e.src, e.dst = binary.BigEndian.Uint32(src[size-4:]), binary.BigEndian.Uint32(dst[size-4:])
	e.sport, e.dport = binary.BigEndian.Uint16(l4), binary.BigEndian.Uint16(l4[2:])
	return e, true
}

func ipv4At(b []byte) int { return ipv4Form.at(b) }
func ipv6At(b []byte) int { return ipv6Form.at(b) }

// at returns the offset of the IP header, or 0 if there is none. It usually follows the Ethernet
// header. After another EtherType, which schemes use for their own headers, at finds the IP
// header by the total length, because hosts send only UDP, TCP and RoCE over IP.
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

// With RoCEv2, a packet has UDP port 4791, InfiniBand's base transport header (BTH), and in ACKs
// and Nacks the extended header (AETH). Switches with programs see these headers instead of the
// first bytes after UDP. Hosts exchange the fields of Packet.
//
// A flow is a message of SENDs on a reliable connection. The flow's number is the queue pair in
// both directions. Packet sequence numbers count from 0.

const (
	rocePort = 4791
	bthLen   = 12
	aethLen  = 4
	icrcLen  = 4

	// RoCEHeaders is the length of a data packet without its payload.
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
	opNotice   = 0x81 // congestion notification packet
)

// backwardNotice is the BECN bit next to the queue pair. It is set in CNPs, and in ACKs and Nacks
// that replace a separate CNP.
const backwardNotice = 1 << 30

// Syndromes of the AETH.
const (
	syndromeAck      = 0x1F // unlimited credit
	syndromeSequence = 0x60 // PSN sequence error
)

// A roce holds the properties of a flow that its RoCE headers contain.
type roce struct {
	segment int64 // bytes of payload in a full packet
	pair    uint32
	last    int64 // first byte of the last packet
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
