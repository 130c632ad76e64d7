// Package traffic sends flows between hosts by the kernel's own TCP, and measures
// when they are complete.
//
// The hosts are network namespaces of this machine, but one process sends and
// receives all flows: a socket belongs to the namespace that it was made in. So
// both ends of a flow are seen by one clock.
package traffic

import (
	"errors"
	"net/netip"
	"time"
)

// A Flow is a number of bytes that one host is to send to another.
type Flow struct {
	From, To string
	Bytes    int64
	Start    time.Duration // after the beginning
}

// An Outcome is what became of a flow, by the kernel's count.
type Outcome struct {
	Started  time.Duration // when the sender asked for the connection
	Finished time.Duration // when the receiver had read the last byte; 0: not in time
	Received int64         // bytes that the receiver has read

	Sent          int64 // segments with data
	Retransmitted int64 // of these, those sent again
	Timeouts      int64
	OutOfOrder    int64 // segments that came before one that should be first
	RTT           time.Duration
	Err           error // why the connection broke
}

// A Network is where the hosts are.
type Network interface {
	// Socket makes a TCP socket on a host, whose file descriptor is the caller's.
	Socket(host string) (fd int, err error)
	// Address is the address of a host.
	Address(host string) netip.Addr
}

// Options are how flows are sent.
type Options struct {
	// Congestion is the kernel's congestion control, such as reno; "" stands for
	// what the machine is set to.
	Congestion string
	// Drain is how long flows may take after the last has started.
	Drain time.Duration
	// Done hears of every flow that has ended.
	Done func(ended int)
}

// errCongestion is wrapped by the refusal of a congestion control that the
// kernel does not have, or keeps from this user.
var errCongestion = errors.New("no such congestion control")
