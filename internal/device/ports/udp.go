package ports

import (
	"errors"
	"fmt"
	"net"
	"syscall"
)

// A udpPort has packets as datagrams between two addresses: it needs no
// rights, and reaches other machines.
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
	// Best effort: the kernel has a limit of its own.
	conn.SetReadBuffer(4 << 20)
	conn.SetWriteBuffer(4 << 20)
	return &udpPort{conn}, nil
}

// Receive is part of Port.
func (u *udpPort) Receive(deliver func([][]byte)) error {
	buf := make([]byte, maxPacket)
	burst := make([][]byte, 1)
	for {
		n, err := u.conn.Read(buf)
		switch {
		case errors.Is(err, net.ErrClosed):
			return nil
		case errors.Is(err, syscall.ECONNREFUSED):
			continue // nobody listens at the other end yet
		case err != nil:
			return err
		}
		burst[0] = buf[:n]
		deliver(burst)
	}
}

// Send is part of Port. A datagram that cannot be sent is lost, as packets are.
func (u *udpPort) Send(packet []byte) { u.conn.Write(packet) }

// Flush is part of Port.
func (u *udpPort) Flush() error { return nil }

// Close is part of Port.
func (u *udpPort) Close() error { return u.conn.Close() }
