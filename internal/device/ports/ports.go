// Package ports connects a switch to its environment in real time: to network
// interfaces, UDP sockets and packet captures. Each port implements p4rt.Port.
package ports

import (
	"errors"
	"strings"
)

// A Port moves packets between a switch and its environment.
type Port interface {
	// Receive passes incoming packets to deliver until Close. The port may
	// reuse the packets after deliver returns.
	Receive(deliver func(packets [][]byte)) error
	// Send sends a packet, possibly not before Flush. The caller may reuse the
	// packet after Send returns.
	Send(packet []byte)
	// Flush sends all packets passed to Send.
	Flush() error
	// Close ends Receive.
	Close() error
}

// Open opens the port with the given description:
//
//	NAME                    a network interface, with XDP if it supports it
//	packet:NAME             a network interface, with a packet socket
//	xdp:NAME                a network interface, with XDP
//	offload:NAME            a network interface, with a packet socket that does what the
//	                        peer leaves to its card: checksums and TCP segments
//	pcap:IN.pcap,OUT.pcap   captures to read and to write; either may be empty
//	udp:LOCAL,REMOTE        a UDP socket; each datagram is a packet
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

// Check reports a description with invalid syntax.
func Check(description string) error {
	kind, rest, found := strings.Cut(description, ":")
	a, b, two := strings.Cut(rest, ",")
	switch {
	case !found && description != "",
		(kind == "xdp" || kind == "packet" || kind == "offload") && rest != "",
		kind == "pcap" && two,
		kind == "udp" && a != "" && b != "":
		return nil
	}
	return errors.New("want INTERFACE, xdp:INTERFACE, packet:INTERFACE, offload:INTERFACE, pcap:IN,OUT or udp:LOCAL,REMOTE")
}

// maxPacket is the size of the largest supported packet.
const maxPacket = 1 << 16
