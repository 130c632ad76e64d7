package ports

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// An interfacePort is a raw socket on a network interface. Packets come in
// through a ring that is shared with the kernel, so that under load they cost
// no system call each; those to send are collected and handed over with one
// call.
//
// The ring is of version 2: version 3 packs packets better, but tells of a
// block only when it is full or a timer of at least a millisecond has run out,
// and each hop would cost a lone packet that time.
type interfacePort struct {
	name  string
	fd    int
	wake  int // an eventfd that ends Receive
	links int // a netlink socket that tells of changes of links
	ring  []byte
	next  int // frame of the ring

	frameSize, frames int
	vlan              []byte // room for a packet whose tag is put back

	mu   sync.Mutex
	out  []byte // the packets to send, one after the other
	ends []int
	msgs []mmsghdr
	vecs []unix.Iovec
	// What is last, the end of Receive or Close, releases the ring.
	receiving, closed bool

	onLink func(up bool)
	up     bool // as last told
}

const (
	ringBytes  = 4 << 20
	maxBurst   = 64
	sendBuffer = 4 << 20

	vlanTag       = 4
	ethernetHosts = 12 // the addresses before the tag
)

// A mmsghdr is what sendmmsg takes for each packet.
type mmsghdr struct {
	hdr unix.Msghdr
	len uint32
	_   [4]byte
}

func openInterface(name string) (Port, error) {
	p, err := newInterface(name)
	switch {
	case errors.Is(err, unix.EPERM):
		return nil, fmt.Errorf("port %s: raw sockets want root or CAP_NET_RAW", name)
	case err != nil:
		return nil, fmt.Errorf("port %s: %w", name, err)
	}
	return p, nil
}

func newInterface(name string) (*interfacePort, error) {
	link, err := net.InterfaceByName(name)
	if err != nil {
		return nil, errors.New("there is no such network interface")
	}
	// Without a protocol nothing comes in before all is set up.
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	p := &interfacePort{name: name, fd: fd, wake: -1, links: -1, up: true}
	if err := p.setUp(link); err != nil {
		p.release()
		return nil, err
	}
	return p, nil
}

func (p *interfacePort) setUp(link *net.Interface) error {
	var err error
	if p.wake, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err != nil {
		return err
	}
	if err := p.watchLinks(); err != nil {
		return fmt.Errorf("watching the link: %w", err)
	}
	if err := p.makeRing(link.MTU); err != nil {
		return fmt.Errorf("making the receive ring: %w", err)
	}
	// Neither is vital: older kernels lack the first.
	unix.SetsockoptInt(p.fd, unix.SOL_PACKET, unix.PACKET_IGNORE_OUTGOING, 1)
	unix.SetsockoptInt(p.fd, unix.SOL_SOCKET, unix.SO_SNDBUFFORCE, sendBuffer)
	member := unix.PacketMreq{Ifindex: int32(link.Index), Type: unix.PACKET_MR_PROMISC}
	if err := unix.SetsockoptPacketMreq(p.fd, unix.SOL_PACKET, unix.PACKET_ADD_MEMBERSHIP, &member); err != nil {
		return fmt.Errorf("listening to all packets: %w", err)
	}
	return unix.Bind(p.fd, &unix.SockaddrLinklayer{Protocol: networkOrder(unix.ETH_P_ALL), Ifindex: link.Index})
}

func (p *interfacePort) watchLinks() (err error) {
	p.links, err = unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, unix.NETLINK_ROUTE)
	if err != nil {
		return err
	}
	return unix.Bind(p.links, &unix.SockaddrNetlink{Family: unix.AF_NETLINK, Groups: unix.RTMGRP_LINK})
}

// OnLink makes Receive tell of the link: once if it is down at the beginning,
// and whenever it changes. It is called before Receive.
func (p *interfacePort) OnLink(f func(up bool)) { p.onLink = f }

// tellLink asks for the state of the link, which is what the netlink messages,
// of all links, are worth.
func (p *interfacePort) tellLink() {
	up := p.running()
	if up != p.up && p.onLink != nil {
		p.up = up
		p.onLink(up)
	}
}

// running asks the socket, which knows the interface in the namespace where it
// was opened, wherever the thread that asks is.
func (p *interfacePort) running() bool {
	request, err := unix.NewIfreq(p.name)
	if err != nil || unix.IoctlIfreq(p.fd, unix.SIOCGIFFLAGS, request) != nil {
		return false
	}
	return request.Uint16()&unix.IFF_RUNNING != 0
}

// gone reports whether the interface has been deleted: the kernel then takes the
// socket off it.
func (p *interfacePort) gone() bool {
	a, err := unix.Getsockname(p.fd)
	link, ok := a.(*unix.SockaddrLinklayer)
	return err == nil && ok && int32(link.Ifindex) == -1
}

func (p *interfacePort) drainLinks() {
	buf := make([]byte, 1<<13)
	for {
		// An overrun is as good as a message.
		if _, err := unix.Read(p.links, buf); err != nil && !errors.Is(err, unix.ENOBUFS) {
			return
		}
	}
}

func networkOrder(v uint16) uint16 {
	return binary.NativeEndian.Uint16(binary.BigEndian.AppendUint16(nil, v))
}

// makeRing makes frames for packets as large as the interface has them.
func (p *interfacePort) makeRing(mtu int) error {
	if err := unix.SetsockoptInt(p.fd, unix.SOL_PACKET, unix.PACKET_VERSION, unix.TPACKET_V2); err != nil {
		return err
	}
	const headers = 256 // of the frame, of Ethernet, and a tag
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

// Receive is part of Port.
func (p *interfacePort) Receive(deliver func([][]byte)) error {
	if !p.begin() {
		return nil
	}
	defer p.finish()
	p.tellLink()
	burst := make([][]byte, 0, maxBurst)
	for {
		first := p.next
		burst = p.collect(burst[:0])
		if len(burst) > 0 {
			deliver(burst)
		}
		taken := p.next != first
		p.giveBack(first)
		if taken {
			if p.isClosed() {
				return nil
			}
			continue
		}
		if ended, err := p.waitForPackets(); ended || err != nil {
			return err
		}
	}
}

// collect takes the packets that are there, as far as one burst goes.
func (p *interfacePort) collect(burst [][]byte) [][]byte {
	for range maxBurst {
		h := p.header(p.next)
		if atomic.LoadUint32(&h.Status)&unix.TP_STATUS_USER == 0 {
			return burst
		}
		if packet := p.packet(p.next, h); packet != nil {
			burst = append(burst, packet)
		}
		p.next = (p.next + 1) % p.frames
		if len(p.vlan) > 0 {
			return burst // the room for tags is taken
		}
	}
	return burst
}

func (p *interfacePort) header(frame int) *unix.Tpacket2Hdr {
	return (*unix.Tpacket2Hdr)(unsafe.Pointer(&p.ring[frame*p.frameSize]))
}

// packet returns the packet in a frame; nil if it is one that the machine has
// sent itself or that does not fit.
func (p *interfacePort) packet(frame int, h *unix.Tpacket2Hdr) []byte {
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

// tagged puts back the tag that the kernel has taken off.
func (p *interfacePort) tagged(data []byte, h *unix.Tpacket2Hdr) []byte {
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

// giveBack leaves the frames from first on to the kernel again.
func (p *interfacePort) giveBack(first int) {
	for i := first; i != p.next; i = (i + 1) % p.frames {
		atomic.StoreUint32(&p.header(i).Status, unix.TP_STATUS_KERNEL)
	}
	p.vlan = p.vlan[:0]
}

// waitForPackets reports true when the port is closed.
func (p *interfacePort) waitForPackets() (ended bool, err error) {
	fds := []unix.PollFd{
		{Fd: int32(p.fd), Events: unix.POLLIN}, {Fd: int32(p.wake), Events: unix.POLLIN}, {Fd: int32(p.links), Events: unix.POLLIN},
	}
	if _, err := unix.Poll(fds, -1); err != nil && !errors.Is(err, unix.EINTR) {
		return false, err
	}
	if fds[1].Revents != 0 {
		return true, nil
	}
	if fds[2].Revents != 0 {
		p.drainLinks()
		p.tellLink()
		if p.gone() {
			return false, fmt.Errorf("port %s: the interface has been deleted", p.name)
		}
	}
	if fds[0].Revents&unix.POLLERR != 0 {
		// An interface that is down says so once; it may come back.
		if n, err := unix.GetsockoptInt(p.fd, unix.SOL_SOCKET, unix.SO_ERROR); err == nil && n != 0 && syscall.Errno(n) != unix.ENETDOWN {
			return false, syscall.Errno(n)
		}
	}
	return false, nil
}

func (p *interfacePort) isClosed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.closed
}

// Send is part of Port.
func (p *interfacePort) Send(packet []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.out = append(p.out, packet...)
	p.ends = append(p.ends, len(p.out))
	if len(p.ends) == maxBurst {
		p.flush()
	}
}

// Flush is part of Port.
func (p *interfacePort) Flush() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.flush()
}

// flush sends what is collected. Like any queue that is full, an interface
// that takes no more loses packets: waiting would stop the whole switch.
func (p *interfacePort) flush() error {
	if p.closed || len(p.ends) == 0 {
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
			sent++ // lost
		default:
			return fmt.Errorf("port %s: sending: %w", p.name, errno)
		}
	}
	runtime.KeepAlive(p.out)
	return nil
}

// prepare points the messages at the packets.
func (p *interfacePort) prepare() {
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

// Close is part of Port.
func (p *interfacePort) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil
	}
	p.closed = true
	if !p.receiving {
		p.release()
		return nil
	}
	_, err := unix.Write(p.wake, binary.NativeEndian.AppendUint64(nil, 1))
	return err
}

// begin reports false if the port is closed already.
func (p *interfacePort) begin() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.receiving = !p.closed
	return p.receiving
}

func (p *interfacePort) finish() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.receiving = false
	if p.closed {
		p.release()
	}
}

func (p *interfacePort) release() {
	if p.ring != nil {
		unix.Munmap(p.ring)
	}
	for _, fd := range []int{p.fd, p.wake, p.links} {
		if fd >= 0 {
			unix.Close(fd)
		}
	}
}
