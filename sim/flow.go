package sim

import (
	"fmt"
	"time"
)

// A FlowSpec is what a flow is to be.
type FlowSpec struct {
	From, To  string // hosts
	Bytes     int64  // payload; 0: without end
	Transport Transport
	Tuning    *Tuning // of the transport; nil: as usual
	// Sport and Dport are its ports; zero: some that depend on its number.
	Sport, Dport uint16
	// Rate is that of the transports that keep one, of payload, in bit/s; zero:
	// that of the NIC.
	Rate int64
	// Done is called when the flow has finished, if not nil.
	Done func(*Flow)
}

// A Flow is a number of bytes on their way from one host to another.
type Flow struct {
	FlowSpec
	ID       int // counts from 1 in the order of StartFlow
	Src, Dst *Host

	Started  time.Duration
	Finished time.Duration // when the last byte arrived, or was lost with UDP; 0: not yet

	FlowStats

	net         *Network
	ahead, back headers
	sender      sender
	receiver    endpoint
}

// An endpoint is one end of a flow. It must not keep the packet.
type endpoint interface{ receive(p *Packet) }

// A sender begins to send when told so.
type sender interface {
	endpoint
	start()
}

// StartFlow starts a flow now.
func (n *Network) StartFlow(s FlowSpec) (*Flow, error) {
	f := &Flow{FlowSpec: s, net: n, Src: n.Host(s.From), Dst: n.Host(s.To), Started: n.now}
	if f.Src == nil || f.Dst == nil || f.Src == f.Dst {
		return nil, fmt.Errorf("a flow from %q to %q: want two hosts", s.From, s.To)
	}
	n.flows++
	f.ID = n.flows
	if n.ns3 != nil {
		n.ns3.ports(f)
	}
	if f.Sport == 0 {
		f.Sport = uint16(10000 + f.ID%50000)
	}
	if f.Dport == 0 {
		f.Dport = 5001
	}
	protocol := s.Transport.protocol()
	f.ahead = newHeaders(f.Src, f.Dst, protocol, f.Sport, f.Dport)
	f.back = newHeaders(f.Dst, f.Src, protocol, f.Dport, f.Sport)
	if err := f.connect(); err != nil {
		return nil, err
	}
	f.sender.start()
	return f, nil
}

// toward is the headers of packets of a kind.
func (f *Flow) toward(k Kind) *headers {
	if k == Data {
		return &f.ahead
	}
	return &f.back
}

// finish notes that the flow is over. It is called once.
func (f *Flow) finish() {
	f.Finished = f.net.now
	if f.Done != nil {
		f.net.outside(func() { f.Done(f) })
	}
}
