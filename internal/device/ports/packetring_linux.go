package ports

import (
	"encoding/binary"
	"fmt"
	"net"
	"runtime"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A packetRing is a raw socket. It receives packets through a ring shared with
// the kernel, without a system call per packet under load. Packets to send are
// collected and passed to the kernel in one call.
//
// Each packet has a packetHeader, in the ring and in messages to the kernel. A packet
// larger than a frame, such as a TCP packet for the splitter, waits in the socket's
// queue, and its frame has a flag.
//
// The ring has version 2. Version 3 uses memory better, but it reports a block
// only when it is full or after a timer of at least a millisecond, which would
// delay a single packet at every hop.
type packetRing struct {
	fd    int
	ring  []byte
	first int // first frame of the burst
	next  int // next frame of the ring

	frameSize, frames int
	vlan              []byte // buffer for a packet with its tag inserted
	large             []byte // buffer for a packet larger than a frame
	splitter

	joiner // packets to send
	msgs   []mmsghdr
	vecs   []unix.Iovec

	unread, unsent uint64 // lost packets
}

const (
	ringBytes  = 4 << 20
	sendBuffer = 4 << 20
	queueBytes = 4 << 20 // of packets larger than a frame

	vlanTag       = 4
	ethernetHosts = 12 // length of the addresses before the tag
)

// A mmsghdr is the structure that sendmmsg takes per packet.
type mmsghdr struct {
	hdr unix.Msghdr
	len uint32
	_   [4]byte
}

// newPacketRing makes a packet socket receive from an interface. joins combines TCP segments
// to send.
func newPacketRing(fd int, link *net.Interface, joins bool) (exchange, error) {
	p := &packetRing{fd: fd, joiner: joiner{joins: joins}, large: make([]byte, packetHeaderLen+maxPacket+vlanTag)}
	if err := unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_VNET_HDR, 1); err != nil {
		return nil, fmt.Errorf("asking for the state of checksums: %w", err)
	}
	if err := unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_COPY_THRESH, 1); err != nil {
		return nil, fmt.Errorf("asking for packets larger than a frame: %w", err)
	}
	if err := p.makeRing(link.MTU); err != nil {
		return nil, fmt.Errorf("making the receive ring: %w", err)
	}
	// These are optional: older kernels lack the first, and the others need privileges.
	unix.SetsockoptInt(p.fd, unix.SOL_PACKET, unix.PACKET_IGNORE_OUTGOING, 1)
	unix.SetsockoptInt(p.fd, unix.SOL_SOCKET, unix.SO_SNDBUFFORCE, sendBuffer)
	unix.SetsockoptInt(p.fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, queueBytes)
	if err := unix.Bind(p.fd, &unix.SockaddrLinklayer{Protocol: networkOrder(unix.ETH_P_ALL), Ifindex: link.Index}); err != nil {
		p.free()
		return nil, err
	}
	return p, nil
}

func (p *packetRing) pollFd() int { return p.fd }

func (p *packetRing) free() {
	if p.ring != nil {
		unix.Munmap(p.ring)
	}
}

func networkOrder(v uint16) uint16 {
	return binary.NativeEndian.Uint16(binary.BigEndian.AppendUint16(nil, v))
}

// makeRing creates a ring with frames large enough for the interface's MTU.
func (p *packetRing) makeRing(mtu int) error {
	if err := unix.SetsockoptInt(p.fd, unix.SOL_PACKET, unix.PACKET_VERSION, unix.TPACKET_V2); err != nil {
		return err
	}
	const headers = 256 // frame header, Ethernet header, and a tag
	p.frameSize = 2048
	for p.frameSize < min(mtu+headers, maxPacket) {
		p.frameSize *= 2
	}
	p.frames = max(ringBytes/p.frameSize, maxBurst)
	block := max(p.frameSize, 1<<16)
	req := unix.TpacketReq{
		Block_size: uint32(block), Block_nr: uint32(p.frames * p.frameSize / block),
		Frame_size: uint32(p.frameSize), Frame_nr: uint32(p.frames),
	}
	if err := unix.SetsockoptTpacketReq(p.fd, unix.SOL_PACKET, unix.PACKET_RX_RING, &req); err != nil {
		return err
	}
	var err error
	p.ring, err = unix.Mmap(p.fd, 0, p.frames*p.frameSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	return err
}

// collect implements exchange.
func (p *packetRing) collect(burst [][]byte) ([][]byte, bool) {
	p.first = p.next
	for range maxBurst {
		h := p.header(p.next)
		if atomic.LoadUint32(&h.Status)&unix.TP_STATUS_USER == 0 {
			break
		}
		burst = p.receive(burst, h)
		p.next = (p.next + 1) % p.frames
		if len(p.vlan) > 0 || len(burst) >= maxBurst {
			break // only one packet per burst can use vlan
		}
	}
	return burst, p.next != p.first
}

// Hostile input: none. frame counts from 0 to p.frames-1, and the index is checked.
// A packet controls only the bytes after its header, which the kernel writes.
func (p *packetRing) header(frame int) *unix.Tpacket2Hdr {
	return (*unix.Tpacket2Hdr)(unsafe.Pointer(&p.ring[frame*p.frameSize]))
}

// receive appends the packet of the next frame to burst: whole, or in segments if the kernel has left
// segmentation to the interface. Packets that the host has sent itself through the interface do
// not count.
//
// Hostile input: the bytes and the length of the packet. The kernel writes Mac and
// Snaplen, and slicing checks both against the ring.
func (p *packetRing) receive(burst [][]byte, h *unix.Tpacket2Hdr) [][]byte {
	const address = (unix.SizeofTpacket2Hdr + unix.TPACKET_ALIGNMENT - 1) &^ (unix.TPACKET_ALIGNMENT - 1)
	frame := p.ring[p.next*p.frameSize:][:p.frameSize]
	from := (*unix.RawSockaddrLinklayer)(unsafe.Pointer(&frame[address]))
	packet := frame[h.Mac-packetHeaderLen:][:packetHeaderLen+h.Snaplen]
	isLarge := h.Status&unix.TP_STATUS_COPY != 0
	if isLarge {
		n, _, err := unix.Recvfrom(p.fd, p.large, unix.MSG_DONTWAIT)
		if err != nil || n < packetHeaderLen {
			p.unread++
			return burst
		}
		packet = p.large[:n]
	}
	if from.Pkttype == unix.PACKET_OUTGOING {
		return burst
	}
	if !isLarge && h.Snaplen < h.Len {
		p.unread++
		return burst
	}
	head, packet := readPacketHeader(packet), packet[packetHeaderLen:]
	if h.Status&unix.TP_STATUS_VLAN_VALID != 0 && len(packet) >= ethernetHosts {
		packet = p.tagged(packet, h)
		head.sumFrom += vlanTag
	}
	if isLarge && head.kind == kindNone {
		packet = p.keep(packet) // the next large packet replaces this one
	}
	burst, ok := p.split(burst, packet, head)
	if !ok {
		p.unread++
	}
	return burst
}

// tagged inserts the VLAN tag that the kernel has removed.
func (p *packetRing) tagged(data []byte, h *unix.Tpacket2Hdr) []byte {
	tpid := uint16(unix.ETH_P_8021Q)
	if h.Status&unix.TP_STATUS_VLAN_TPID_VALID != 0 {
		tpid = h.Vlan_tpid
	}
	p.vlan = append(p.vlan[:0], data[:ethernetHosts]...)
	p.vlan = binary.BigEndian.AppendUint16(p.vlan, tpid)
	p.vlan = binary.BigEndian.AppendUint16(p.vlan, h.Vlan_tci)
	p.vlan = append(p.vlan, data[ethernetHosts:]...)
	return p.vlan
}

func (p *packetRing) giveBack() {
	for i := p.first; i != p.next; i = (i + 1) % p.frames {
		atomic.StoreUint32(&p.header(i).Status, unix.TP_STATUS_KERNEL)
	}
	p.vlan = p.vlan[:0]
	p.splitter.reset()
}

func (p *packetRing) put(packet []byte) bool {
	p.joiner.put(packet)
	return len(p.list) == maxBurst
}

// flush implements exchange. If the interface's queue is full, packets are
// lost: waiting would block the whole switch.
//
// Hostile input: the bytes and the length of the packets, which prepare has put into p.msgs.
func (p *packetRing) flush() error {
	if len(p.list) == 0 {
		return nil
	}
	p.prepare()
	defer p.joiner.reset()
	for sent := 0; sent < len(p.list); {
		n, _, errno := unix.Syscall6(unix.SYS_SENDMMSG, uintptr(p.fd),
			uintptr(unsafe.Pointer(&p.msgs[sent])), uintptr(len(p.list)-sent), unix.MSG_DONTWAIT, 0, 0)
		switch errno {
		case 0:
			sent += int(n)
		case unix.EINTR:
		case unix.EAGAIN, unix.ENOBUFS, unix.ENETDOWN, unix.EMSGSIZE, unix.ENXIO:
			sent++
			p.unsent++
		default:
			return errno
		}
	}
	runtime.KeepAlive(p.out)
	return nil
}

func (p *packetRing) lost() (in, out uint64) {
	// The kernel resets the count whenever it is read.
	if s, err := unix.GetsockoptTpacketStats(p.fd, unix.SOL_PACKET, unix.PACKET_STATISTICS); err == nil {
		p.unread += uint64(s.Drops)
	}
	return p.unread, p.unsent
}

// prepare points the messages to the packets.
func (p *packetRing) prepare() {
	if p.msgs == nil {
		p.msgs, p.vecs = make([]mmsghdr, maxBurst), make([]unix.Iovec, maxBurst)
	}
	p.seal()
	for i := range p.list {
		message := p.message(i)
		p.vecs[i].Base = &message[0]
		p.vecs[i].SetLen(len(message))
		p.msgs[i].hdr.Iov = &p.vecs[i]
		p.msgs[i].hdr.SetIovlen(1)
	}
}
