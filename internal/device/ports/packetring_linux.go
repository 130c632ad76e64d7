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

	out  []byte // packets to send, concatenated
	ends []int
	msgs []mmsghdr
	vecs []unix.Iovec

	unread, unsent uint64 // lost packets
}

const (
	ringBytes  = 4 << 20
	sendBuffer = 4 << 20

	vlanTag       = 4
	ethernetHosts = 12 // length of the addresses before the tag
)

// A mmsghdr is the structure that sendmmsg takes per packet.
type mmsghdr struct {
	hdr unix.Msghdr
	len uint32
	_   [4]byte
}

// newPacketRing makes a packet socket receive from an interface.
func newPacketRing(fd int, link *net.Interface) (exchange, error) {
	p := &packetRing{fd: fd}
	if err := p.makeRing(link.MTU); err != nil {
		return nil, fmt.Errorf("making the receive ring: %w", err)
	}
	// Both are optional: older kernels lack the first.
	unix.SetsockoptInt(p.fd, unix.SOL_PACKET, unix.PACKET_IGNORE_OUTGOING, 1)
	unix.SetsockoptInt(p.fd, unix.SOL_SOCKET, unix.SO_SNDBUFFORCE, sendBuffer)
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
		if packet := p.packet(p.next, h); packet != nil {
			burst = append(burst, packet)
		}
		p.next = (p.next + 1) % p.frames
		if len(p.vlan) > 0 {
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

// packet returns the packet in a frame, or nil if the host has sent it itself
// or it does not fit.
//
// Hostile input: the bytes and the length of the packet. The kernel writes Mac and
// Snaplen, and slicing checks both against the ring.
func (p *packetRing) packet(frame int, h *unix.Tpacket2Hdr) []byte {
	const address = (unix.SizeofTpacket2Hdr + unix.TPACKET_ALIGNMENT - 1) &^ (unix.TPACKET_ALIGNMENT - 1)
	from := (*unix.RawSockaddrLinklayer)(unsafe.Pointer(&p.ring[frame*p.frameSize+address]))
	if from.Pkttype == unix.PACKET_OUTGOING || h.Snaplen < h.Len {
		return nil
	}
	data := p.ring[frame*p.frameSize+int(h.Mac):][:h.Snaplen]
	if h.Status&unix.TP_STATUS_VLAN_VALID == 0 || len(data) < ethernetHosts {
		return data
	}
	return p.tagged(data, h)
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
}

func (p *packetRing) put(packet []byte) bool {
	p.out = append(p.out, packet...)
	p.ends = append(p.ends, len(p.out))
	return len(p.ends) == maxBurst
}

// flush implements exchange. If the interface's queue is full, packets are
// lost: waiting would block the whole switch.
//
// Hostile input: the bytes and the length of the packets, which prepare has put into p.msgs.
func (p *packetRing) flush() error {
	if len(p.ends) == 0 {
		return nil
	}
	p.prepare()
	defer func() { p.out, p.ends = p.out[:0], p.ends[:0] }()
	for sent := 0; sent < len(p.ends); {
		n, _, errno := unix.Syscall6(unix.SYS_SENDMMSG, uintptr(p.fd),
			uintptr(unsafe.Pointer(&p.msgs[sent])), uintptr(len(p.ends)-sent), unix.MSG_DONTWAIT, 0, 0)
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
	from := 0
	for i, end := range p.ends {
		p.vecs[i].Base = nil
		if end > from {
			p.vecs[i].Base = &p.out[from]
		}
		p.vecs[i].SetLen(end - from)
		p.msgs[i].hdr.Iov = &p.vecs[i]
		p.msgs[i].hdr.SetIovlen(1)
		from = end
	}
}
