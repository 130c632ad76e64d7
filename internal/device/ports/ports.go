// Package ports connects a switch in real time with what is outside: network
// interfaces, UDP sockets and packet captures. Each port is what package p4rt
// calls a Port.
package ports

import (
	"errors"
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
	if err := Check(description); err != nil {
		return nil, err
	}
	kind, rest, found := strings.Cut(description, ":")
	a, b, _ := strings.Cut(rest, ",")
	switch {
	case !found:
		return openInterface("", description)
	case kind == "pcap":
		return openPcap(a, b)
	case kind == "udp":
		return openUDP(a, b)
	}
	return openInterface(kind, rest)
}

// Check finds what no port can be opened from, whatever there is.
func Check(description string) error {
	kind, rest, found := strings.Cut(description, ":")
	a, b, two := strings.Cut(rest, ",")
	switch {
	case !found && description != "",
		(kind == "xdp" || kind == "packet") && rest != "",
		kind == "pcap" && two,
		kind == "udp" && a != "" && b != "":
		return nil
	}
	return errors.New("want INTERFACE, xdp:INTERFACE, packet:INTERFACE, pcap:IN,OUT or udp:LOCAL,REMOTE")
}

// maxPacket is the size of the largest packet that a port takes.
const maxPacket = 1 << 16
