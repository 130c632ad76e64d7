// Package ports connects a switch in real time with what is outside: network
// interfaces, UDP sockets and packet captures. Each port is what package p4rt
// calls a Port.
package ports

import (
	"fmt"
	"strings"
)

// A Port moves packets between a switch and what is outside.
type Port interface {
	// Receive hands on the packets that come in until Close. The packets are
	// the port's again once deliver returns.
	Receive(deliver func(packets [][]byte)) error
	// Send takes a packet, which is the caller's again when Send returns.
	Send(packet []byte)
	// Flush sends what Send has taken.
	Flush() error
	// Close ends Receive.
	Close() error
}

// Open opens what a description says:
//
//	NAME                    a network interface, through XDP where it can
//	packet:NAME             a network interface, through a packet socket
//	xdp:NAME                a network interface, through XDP
//	pcap:IN.pcap,OUT.pcap   captures to read and to write; either may be empty
//	udp:LOCAL,REMOTE        a UDP socket; a datagram is a packet
func Open(description string) (Port, error) {
	kind, rest, found := strings.Cut(description, ":")
	if !found {
		return openInterface("", description)
	}
	a, b, two := strings.Cut(rest, ",")
	switch {
	case kind == "xdp" || kind == "packet":
		return openInterface(kind, rest)
	case kind == "pcap" && two:
		return openPcap(a, b)
	case kind == "udp" && two:
		return openUDP(a, b)
	}
	return nil, fmt.Errorf("port %q: want INTERFACE, xdp:INTERFACE, packet:INTERFACE, pcap:IN,OUT or udp:LOCAL,REMOTE", description)
}

// maxPacket is the size of the largest packet that a port takes.
const maxPacket = 1 << 16
