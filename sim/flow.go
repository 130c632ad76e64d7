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
	f, err := n.newFlow(s)
	if err != nil {
		return nil, err
	}
	return f, f.begin()
}

// PlanFlow has a flow start at a time; to is set to it then.
func (n *Network) PlanFlow(at time.Duration, s FlowSpec, to **Flow) error {
	at = max(at, n.now)
	if !n.placed() {
		if err := n.checkFlow(&s); err != nil {
			return err
		}
		n.At(at, func() { *to, _ = n.StartFlow(s) }) // which has been checked
		return nil
	}
	f, err := n.newFlow(s)
	if err != nil {
		return err
	}
	b := &beginning{flow: f, to: to}
	b.ev.what = b
	f.Src.net.events.planAs(&b.ev, at, uint64(f.place(sending)))
	return nil
}

// A beginning is a flow that begins in the part of the network that it comes from.
type beginning struct {
	ev   event
	flow *Flow
	to   **Flow
}

func (b *beginning) soon(bool) {}

func (b *beginning) fire() {
	*b.to = b.flow
	if err := b.flow.begin(); err != nil {
		panic(err) // it has been checked
	}
}

// checkFlow says why a flow cannot be.
func (n *Network) checkFlow(s *FlowSpec) error {
	src, dst := n.Host(s.From), n.Host(s.To)
	if src == nil || dst == nil || src == dst {
		return fmt.Errorf("a flow from %q to %q: want two hosts", s.From, s.To)
	}
	_, err := n.tune(s, int64(src.nic.Rate()))
	return err
}

// newFlow makes a flow that has its number and its ports, and no ends.
func (n *Network) newFlow(s FlowSpec) (*Flow, error) {
	if err := n.checkFlow(&s); err != nil {
		return nil, err
	}
	f := &Flow{FlowSpec: s, net: n, Src: n.Host(s.From), Dst: n.Host(s.To)}
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
	return f, nil
}

// begin lets the flow begin.
func (f *Flow) begin() error {
	f.Started = f.Src.net.now
	protocol := f.Transport.protocol()
	f.ahead = newHeaders(f.Src, f.Dst, protocol, f.Sport, f.Dport)
	f.back = newHeaders(f.Dst, f.Src, protocol, f.Dport, f.Sport)
	if err := f.connect(); err != nil {
		return err
	}
	f.sender.start()
	return nil
}

// toward is the headers of packets of a kind.
func (f *Flow) toward(k Kind) *headers {
	if k == Data {
		return &f.ahead
	}
	return &f.back
}

// finish notes that the flow is over, which the part n of the network has seen. It
// is called once.
func (f *Flow) finish(n *Network) {
	f.Finished = n.now
	switch {
	case f.Done == nil:
	case n.placed():
		n.defers(f.place(receiving), func() { f.Done(f) })
	default:
		n.outside(func() { f.Done(f) })
	}
}
