package ports

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// An interfacePort is a network interface. An exchange moves packets through
// memory shared with the kernel; the port itself watches the link, waits for
// packets, and handles Close.
type interfacePort struct {
	name  string
	fd    int // packet socket: for link queries and promiscuous mode
	wake  int // eventfd that ends Receive
	links int // netlink socket for link changes
	exchange

	mu sync.Mutex
	// The last of Receive and Close to end releases the memory.
	receiving, closed bool

	onLink func(up bool)
	up     bool // last state passed to onLink
}

// An exchange moves packets from and to the kernel.
type exchange interface {
	// collect appends available packets to burst, up to maxBurst, and reports
	// whether it took any, including packets for others. They are valid until
	// giveBack.
	collect(burst [][]byte) ([][]byte, bool)
	giveBack()
	// put queues a packet and reports whether the burst is full. flush sends
	// the queued packets; its error means more than lost packets.
	put(packet []byte) bool
	flush() error
	// lost returns the number of packets dropped before they were received, and
	// of packets that could not be sent.
	lost() (in, out uint64)
	// pollFd returns a descriptor that is readable when packets are available.
	pollFd() int
	free()
}

const maxBurst = 64

// ways lists the exchanges by the prefix that selects them. Without a prefix,
// the first one that the interface supports is used.
var ways = []struct {
	name string
	open func(*interfacePort, *net.Interface) (exchange, error)
}{
	{"xdp", func(_ *interfacePort, link *net.Interface) (exchange, error) { return newXDP(link) }},
	{"packet", func(p *interfacePort, link *net.Interface) (exchange, error) { return newPacketRing(p.fd, link, false) }},
	{"offload", func(p *interfacePort, link *net.Interface) (exchange, error) { return newPacketRing(p.fd, link, true) }},
}

// openInterface opens an interface with the given exchange, or with the best
// one if way is empty.
func openInterface(way, name string) (Port, error) {
	p, err := newInterface(way, name)
	switch {
	case errors.Is(err, unix.EPERM):
		return nil, fmt.Errorf("port %s: no permission for raw sockets: run as root or with CAP_NET_RAW", name)
	case err != nil:
		return nil, fmt.Errorf("port %s: %w", name, err)
	}
	return p, nil
}

func newInterface(way, name string) (*interfacePort, error) {
	link, err := net.InterfaceByName(name)
	if err != nil {
		return nil, errors.New("no such network interface")
	}
	// Without a protocol this socket receives no packets.
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	p := &interfacePort{name: name, fd: fd, wake: -1, links: -1, up: true}
	if err := p.setUp(way, link); err != nil {
		p.release()
		return nil, err
	}
	return p, nil
}

func (p *interfacePort) setUp(way string, link *net.Interface) error {
	var err error
	if p.wake, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err != nil {
		return err
	}
	if err := p.watchLinks(); err != nil {
		return fmt.Errorf("watching the link: %w", err)
	}
	member := unix.PacketMreq{Ifindex: int32(link.Index), Type: unix.PACKET_MR_PROMISC}
	if err := unix.SetsockoptPacketMreq(p.fd, unix.SOL_PACKET, unix.PACKET_ADD_MEMBERSHIP, &member); err != nil {
		return fmt.Errorf("listening to all packets: %w", err)
	}
	if err := unix.Bind(p.fd, &unix.SockaddrLinklayer{Ifindex: link.Index}); err != nil {
		return err
	}
	for _, w := range ways {
		if way != "" && way != w.name {
			continue
		}
		if p.exchange, err = w.open(p, link); err == nil {
			return nil
		}
	}
	return err
}

func (p *interfacePort) watchLinks() (err error) {
	p.links, err = unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, unix.NETLINK_ROUTE)
	if err != nil {
		return err
	}
	return unix.Bind(p.links, &unix.SockaddrNetlink{Family: unix.AF_NETLINK, Groups: unix.RTMGRP_LINK})
}

// OnLink registers a function that Receive calls if the link is down at the
// beginning, and whenever it changes. It must be called before Receive.
func (p *interfacePort) OnLink(f func(up bool)) { p.onLink = f }

// checkLink queries the link's state and reports a change. Netlink messages,
// which concern all links, only trigger it.
func (p *interfacePort) checkLink() {
	up := p.running()
	if up != p.up && p.onLink != nil {
		p.up = up
		p.onLink(up)
	}
}

// running queries the state through the socket, which refers to the namespace
// where it was opened, regardless of the calling thread's namespace.
func (p *interfacePort) running() bool {
	request, err := unix.NewIfreq(p.name)
	if err != nil || unix.IoctlIfreq(p.fd, unix.SIOCGIFFLAGS, request) != nil {
		return false
	}
	return request.Uint16()&unix.IFF_RUNNING != 0
}

// gone reports whether the interface has been deleted: the kernel then unbinds
// the socket.
func (p *interfacePort) gone() bool {
	a, err := unix.Getsockname(p.fd)
	link, ok := a.(*unix.SockaddrLinklayer)
	return err == nil && ok && int32(link.Ifindex) == -1
}

func (p *interfacePort) drainLinks() {
	buf := make([]byte, 1<<13)
	for {
		// An overrun means that messages were lost; checkLink queries the state
		// anyway.
		if _, err := unix.Read(p.links, buf); err != nil && !errors.Is(err, unix.ENOBUFS) {
			return
		}
	}
}

// Receive implements Port.
func (p *interfacePort) Receive(deliver func([][]byte)) error {
	if !p.begin() {
		return nil
	}
	defer p.finish()
	p.checkLink()
	burst := make([][]byte, 0, maxBurst)
	for {
		var taken bool
		if burst, taken = p.collect(burst[:0]); len(burst) > 0 {
			deliver(burst)
		}
		if taken {
			p.giveBack()
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

// waitForPackets waits for packets or a link change. It returns true when the
// port is closed.
func (p *interfacePort) waitForPackets() (ended bool, err error) {
	fds := []unix.PollFd{
		{Fd: int32(p.pollFd()), Events: unix.POLLIN}, {Fd: int32(p.wake), Events: unix.POLLIN}, {Fd: int32(p.links), Events: unix.POLLIN},
	}
	if _, err := unix.Poll(fds, -1); err != nil && !errors.Is(err, unix.EINTR) {
		return false, err
	}
	if fds[1].Revents != 0 {
		return true, nil
	}
	if fds[2].Revents != 0 {
		p.drainLinks()
		p.checkLink()
		if p.gone() {
			return false, fmt.Errorf("port %s: the interface has been deleted", p.name)
		}
	}
	if fds[0].Revents&unix.POLLERR != 0 {
		// The kernel reports ENETDOWN once when the interface goes down; it may
		// come up again.
		if n, err := unix.GetsockoptInt(p.pollFd(), unix.SOL_SOCKET, unix.SO_ERROR); err == nil && n != 0 && syscall.Errno(n) != unix.ENETDOWN {
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

// Send implements Port.
func (p *interfacePort) Send(packet []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.closed && p.put(packet) {
		p.exchange.flush()
	}
}

// Flush implements Port.
func (p *interfacePort) Flush() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil
	}
	if err := p.exchange.flush(); err != nil {
		return fmt.Errorf("port %s: sending: %w", p.name, err)
	}
	return nil
}

// Lost returns the number of packets dropped before they were received, and of
// packets that the interface did not send.
func (p *interfacePort) Lost() (in, out uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return 0, 0
	}
	return p.lost()
}

// Close implements Port.
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

// begin returns false if the port is closed.
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
	if p.exchange != nil {
		p.free()
	}
	for _, fd := range []int{p.fd, p.wake, p.links} {
		if fd >= 0 {
			unix.Close(fd)
		}
	}
}
