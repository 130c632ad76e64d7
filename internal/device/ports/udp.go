package ports

import (
	"errors"
	"fmt"
	"net"
	"syscall"
)

// A udpPort exchanges packets as UDP datagrams between two addresses. It needs
// no privileges and reaches other machines.
type udpPort struct {
	conn *net.UDPConn
}

func openUDP(local, remote string) (Port, error) {
	from, err := net.ResolveUDPAddr("udp", local)
	if err != nil {
		return nil, fmt.Errorf("port udp:%s,%s: local address: %w", local, remote, err)
	}
	to, err := net.ResolveUDPAddr("udp", remote)
	if err != nil {
		return nil, fmt.Errorf("port udp:%s,%s: remote address: %w", local, remote, err)
	}
	conn, err := net.DialUDP("udp", from, to)
	if err != nil {
		return nil, fmt.Errorf("port udp:%s,%s: %w", local, remote, err)
	}
	// Best effort: the kernel has its own limit.
	conn.SetReadBuffer(4 << 20)
	conn.SetWriteBuffer(4 << 20)
	return &udpPort{conn}, nil
}

// Receive implements Port.
func (u *udpPort) Receive(deliver func([][]byte)) error {
	buf := make([]byte, maxPacket)
	burst := make([][]byte, 1)
	for {
		n, err := u.conn.Read(buf)
		switch {
		case errors.Is(err, net.ErrClosed):
			return nil
		case errors.Is(err, syscall.ECONNREFUSED):
			continue // nothing listens at the remote address yet
		case err != nil:
			return err
		}
		burst[0] = buf[:n]
		deliver(burst)
	}
}

// Send implements Port. A datagram that cannot be sent is lost.
func (u *udpPort) Send(packet []byte) { u.conn.Write(packet) }

// Flush implements Port.
func (u *udpPort) Flush() error { return nil }

// Close implements Port.
func (u *udpPort) Close() error { return u.conn.Close() }
