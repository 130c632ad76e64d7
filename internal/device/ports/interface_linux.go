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

// An interfacePort is a network interface. Packets come and go through memory
// that is shared with the kernel, in one of two ways (an exchange); the port
// itself watches the link, waits, and ends.
type interfacePort struct {
	name  string
	fd    int // a packet socket; the link answers to it, and is promiscuous for it
	wake  int // an eventfd that ends Receive
	links int // a netlink socket that tells of changes of links
	exchange

	mu sync.Mutex
	// What is last, the end of Receive or Close, releases the memory.
	receiving, closed bool

	onLink func(up bool)
	up     bool // as last told
}

// An exchange is how packets get from the kernel and to it.
type exchange interface {
	// collect takes packets that are there, as far as one burst goes, and says
	// whether there were any, be they for the port or not. They are the
	// kernel's again behind giveBack.
	collect(burst [][]byte) ([][]byte, bool)
	giveBack()
	// put takes a packet to send; it reports that there is a burst. flush sends
	// them, and returns the error that is more than the loss of packets.
	put(packet []byte) bool
	flush() error
	// lost is how many packets had no room before they came in, and how many could
	// not be sent.
	lost() (in, out uint64)
	// pollFd can be read when packets are there.
	pollFd() int
	free()
}

const maxBurst = 64

// ways are the exchanges by what a description may ask for. Without asking it is
// the first that the interface can do.
var ways = []struct {
	name string
	open func(*interfacePort, *net.Interface) (exchange, error)
}{
	{"xdp", func(_ *interfacePort, link *net.Interface) (exchange, error) { return newXDP(link) }},
	{"packet", func(p *interfacePort, link *net.Interface) (exchange, error) { return newPacketRing(p.fd, link) }},
}

// openInterface opens an interface in a way, or without one in the best.
func openInterface(way, name string) (Port, error) {
	p, err := newInterface(way, name)
	switch {
	case errors.Is(err, unix.EPERM):
		return nil, fmt.Errorf("port %s: raw sockets want root or CAP_NET_RAW", name)
	case err != nil:
		return nil, fmt.Errorf("port %s: %w", name, err)
	}
	return p, nil
}

func newInterface(way, name string) (*interfacePort, error) {
	link, err := net.InterfaceByName(name)
	if err != nil {
		return nil, errors.New("there is no such network interface")
	}
	// Without a protocol nothing comes in here.
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

// Receive is part of Port.
func (p *interfacePort) Receive(deliver func([][]byte)) error {
	if !p.begin() {
		return nil
	}
	defer p.finish()
	p.tellLink()
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

// waitForPackets reports true when the port is closed.
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
		p.tellLink()
		if p.gone() {
			return false, fmt.Errorf("port %s: the interface has been deleted", p.name)
		}
	}
	if fds[0].Revents&unix.POLLERR != 0 {
		// An interface that is down says so once; it may come back.
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

// Send is part of Port.
func (p *interfacePort) Send(packet []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.closed && p.put(packet) {
		p.exchange.flush()
	}
}

// Flush is part of Port.
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

// Lost is how many packets had no room before they came in, and how many the
// interface would not send.
func (p *interfacePort) Lost() (in, out uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return 0, 0
	}
	return p.lost()
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
	if p.exchange != nil {
		p.free()
	}
	for _, fd := range []int{p.fd, p.wake, p.links} {
		if fd >= 0 {
			unix.Close(fd)
		}
	}
}
