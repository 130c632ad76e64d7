// Package traffic sends flows between hosts over the kernel's TCP, or as RDMA messages
// (RoCEv2) over its UDP, and measures their completion times.
//
// The hosts are network namespaces of this machine, but one process sends and
// receives all flows: a socket belongs to the namespace in which it was
// created. Both ends of a flow therefore use the same clock.
package traffic

import (
	"errors"
	"net/netip"
	"time"
)

// A Flow is a number of bytes sent from one host to another.
type Flow struct {
	From, To string
	Bytes    int64
	Start    time.Duration // after the beginning of the run
	// Service, if not nil, is the destination instead of To.
	Service *Service
}

// A Service is an address that several hosts serve. The network forwards a connection to
// one of them.
type Service struct {
	Address netip.AddrPort // port 0: any
	Servers []string
	Direct  bool // the servers have the address themselves
}

// An Outcome is the result of a flow, counted by the kernel or, for RDMA, by this package.
type Outcome struct {
	Started  time.Duration // time at which the sender opened the connection
	Finished time.Duration // time at which the receiver had read the last byte; 0: not in time
	Received int64         // bytes read by the receiver

	Sent          int64 // data segments
	Retransmitted int64 // retransmitted ones among these
	Timeouts      int64
	OutOfOrder    int64 // segments that arrived out of order
	RTT           time.Duration
	Err           error // the reason if the connection failed
}

// A Network contains the hosts.
type Network interface {
	// Socket creates a TCP socket on a host. The caller owns the file
	// descriptor.
	Socket(host string) (fd int, err error)
	// Address returns the address of a host.
	Address(host string) netip.Addr
}

// Options describe how flows are sent.
type Options struct {
	// Congestion is the kernel's congestion control, such as reno; "": the system's default.
	Congestion string
	// Drain is the time limit for flows after the last one has started.
	Drain time.Duration
	// RDMA creates a UDP socket on a host, for flows that are messages of RoCEv2 instead of TCP
	// connections; nil: TCP.
	RDMA func(host string) (fd int, err error)
	// Done is called whenever a flow has ended.
	Done func(ended int)
}

// errCongestion is wrapped by the error about a congestion control that the
// kernel does not have or does not allow this user to select.
var errCongestion = errors.New("no such congestion control")
